"""Column kinds of a schema, and the rule each has for missing and invalid values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from dpmoments.base.arrays import FloatArray
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputTypeError, InputValueError, shown, wrong_type
from dpmoments.base.message import Message
from dpmoments.base.values import check_text
from dpmoments.schema.column import (
    FilledColumn,
    MarkedMissing,
    MissingNumber,
    NamedColumn,
    TableColumn,
    checked_aliases,
    checked_marks,
    spellings_of,
)
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric

MissingLevel = Literal["error", "available", "zero", "drop"]

_MAX_LEVEL = 2**53 - 1
"""Largest integer level.

Data frames hold integer columns with gaps in float64, exact up to here.
"""


@dataclass(frozen=True, repr=False)
class Boolean(FilledColumn):
    """True/false column: one feature, 0 or 1 in original units.

    Parameters
    ----------
    name : str
    missing : {"error", "available", "fill", "drop", "center"}
        As for :class:`Numeric`; ``"center"`` counts as one half.
    fill : bool, optional
        With ``missing="fill"``: the value of missing ones.
    true_values, false_values : list of str or float, optional
        Values that mean true and false, such as ``true_values=["yes", 1], false_values=["no", 2]``, besides true and
        false, and besides 1 and 0 unless these are listed. Other numbers then count as missing ones. In text files they
        take the place of the file's.
    missing_values, source, weight, missing_share, description : optional
        As for :class:`Numeric`.

    Examples
    --------
    >>> Boolean("employed").feature_names
    ('employed',)
    """

    missing: MissingNumber = "error"
    fill: bool | None = field(default=None, kw_only=True)
    true_values: MarkedMissing | None = field(default=None, kw_only=True)
    false_values: MarkedMissing | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "boolean"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    options: ClassVar[tuple[str, ...]] = (
        *("name", "missing", "description", "fill", "true_values", "false_values", "missing_values", "source"),
        *("weight", "missing_share"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fill is not None and self.missing != "fill":
            raise self._fill_without_rule()
        if self.fill is not None and not isinstance(self.fill, bool):
            raise InputTypeError(f"column '{self.name}': fill={shown(self.fill)} must be true or false")
        true = set(checked_marks(self.name, self.true_values, "true_values") or ())
        false = set(checked_marks(self.name, self.false_values, "false_values") or ())
        if both := true & false:
            raise InputValueError(
                f"column '{self.name}': {shown(next(iter(both)))} is both in true_values and in false_values"
            )
        if both := set(self.missing_values or ()) & (true | false):
            raise InputValueError(
                f"column '{self.name}': {shown(next(iter(both)))} is in missing_values and means true or false"
            )
        self._set(
            true_values=checked_marks(self.name, self.true_values, "true_values"),
            false_values=checked_marks(self.name, self.false_values, "false_values"),
        )

    @property
    def reads_text(self) -> bool:
        """True if text in the column is read as true and false."""
        return any(isinstance(value, str) for value in (*(self.true_values or ()), *(self.false_values or ())))

    @property
    def is_flag(self) -> bool:
        """True if every value is true or false: no missing one is replaced by one half."""
        return self.missing != "center"

    @property
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""
        return "true or false"

    @property
    def rule(self) -> Message:
        """Treatment of the column's values, for the privacy statement."""
        fill = {} if self.fill is None else {"fill": float(self.fill)}
        return Message("two-values", column=self.name, missing=self.missing, **fill)


@dataclass(frozen=True, repr=False)
class Categorical(NamedColumn):
    """Column of k public levels, encoded as k features ``name=level``.

    One of them is 1 and the others are 0.

    Parameters
    ----------
    name : str
    levels : sequence of str or int
        All valid levels, from public knowledge. Text values of a file are compared with ``str(level)``.
    missing : {"error", "available", "zero", "drop"}
        Treatment of a missing value: stop the release, leave the row out of this column's moments, set all k features to 0
        (no level), or drop its row. With ``"available"`` a row without a level counts as one with a missing value.
    other : {"drop", "zero"}
        Treatment of a value outside ``levels``, or one that cannot be read: drop its row, or set all k features to 0.
    aliases : dict of level to list of str, optional
        Other spellings of levels: ``{"east": ["E", "Est"]}``.
    strip, casefold : bool
        True to ignore spaces around a value, and to ignore its case.
    missing_values, source, weight, missing_share, description : optional
        As for :class:`Numeric`. A level or an alias is never a missing value of the table's.

    Examples
    --------
    >>> Categorical("region", ["north", "south"]).feature_names
    ('region=north', 'region=south')
    """

    levels: Sequence[str | int]
    missing: MissingLevel = "error"
    other: Literal["drop", "zero"] = "drop"
    aliases: Mapping[str | int, Sequence[str | int]] | None = field(default=None, kw_only=True, hash=False)
    strip: bool = field(default=False, kw_only=True)
    casefold: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "categorical"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    missing_rules: ClassVar[tuple[str, ...]] = ("error", "available", "zero", "drop")
    options: ClassVar[tuple[str, ...]] = (
        *("name", "levels", "missing", "other", "description", "aliases", "strip", "casefold", "missing_values"),
        *("source", "weight", "missing_share"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("other", self.other, ("drop", "zero"), column=self.name)
        if isinstance(self.levels, str) and self.levels:
            raise InputValueError(
                f"column '{self.name}': levels={shown(self.levels)} is one text: give a list of levels"
            )
        listed = self.levels if isinstance(self.levels, Sequence | np.ndarray) else ()
        levels = tuple(level.item() if isinstance(level, np.generic) else level for level in listed)
        if not levels:
            raise InputValueError(
                f"column '{self.name}' has no levels: list them from public knowledge (they are never read from the "
                "data)"
            )
        if any(isinstance(level, bool) or not isinstance(level, str | int) for level in levels):
            raise InputTypeError(
                f"column '{self.name}': levels must be strings or integers (Boolean is for true/false; in a file, "
                "quote true, false, null and numbers with a point where they are text)"
            )
        if len({type(level) for level in levels}) > 1:
            raise InputTypeError(
                f"column '{self.name}': levels must be all strings or all integers (in a file, put the numbers into "
                "quotes)"
            )
        if len(set(levels)) < len(levels):
            twice = next(level for index, level in enumerate(levels) if level in levels[:index])
            raise InputValueError(f"column '{self.name}': a level is listed twice in levels, {shown(twice)}")
        for level in levels:
            if isinstance(level, int) and abs(level) > _MAX_LEVEL:
                raise InputValueError(
                    f"column '{self.name}': integer levels go up to 2^53 − 1, and {level} is larger: give the levels, "
                    "and the column, as text"
                )
            if isinstance(level, str):
                check_text(level, "levels", self.name)
        self._set(levels=levels)
        for option in ("strip", "casefold"):
            if not isinstance(getattr(self, option), bool):
                value = shown(getattr(self, option))
                raise InputTypeError(f"column '{self.name}': {option}={value} must be true or false")
        self._set(aliases=checked_aliases(self.name, self.aliases, self.levels) or None)
        _ = self.spellings  # raises if a text has two meanings

    @property
    def complete(self) -> bool:
        """True if every kept row has a level, so that its features add up to one."""
        return self.missing != "zero" and self.other != "zero"

    @cached_property
    def spellings(self) -> tuple[dict[str, int], frozenset[str]]:
        """Texts of levels with the levels' indices, and texts of missing values; folded."""
        rules: dict[str, Any] = {"strip": self.strip, "casefold": self.casefold}
        return spellings_of(self.name, self.levels, self.aliases or {}, self.missing_values or (), **rules)

    @property
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""
        first = ", ".join(map(str, self.levels[:4]))
        return f"{first}, … ({len(self.levels)} levels)" if len(self.levels) > 4 else first

    @property
    def rule(self) -> Message:
        """Treatment of the column's values, for the privacy statement."""
        facts = {"column": self.name, "missing": self.missing, "other": self.other}
        return Message("public-levels", **facts, levels=len(self.levels))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """``name=level`` of every level."""
        return tuple(f"{self.name}={level}" for level in self.levels)

    def offset(self, mean: bool) -> FloatArray:
        """Return zeros: a one-hot block is not centered."""
        del mean
        return np.zeros(len(self.levels))

    def unit_length(self, mean: bool) -> FloatArray:
        """Return ones: a one-hot block already has norm 1."""
        del mean
        return np.ones(len(self.levels))

    def _stated(self) -> dict[str, Any]:
        return {option: value for option, value in super()._stated().items() if value is not False}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        values = super().to_dict()
        if self.aliases is not None:
            values["aliases"] = {str(level): list(texts) for level, texts in self.aliases.items()}
        return values


@dataclass(frozen=True, repr=False)
class Coordinate(TableColumn):
    """Coordinate of an array whose rows are bounded together, or not at all.

    ``Schema.unit_ball`` bounds them together.

    Parameters
    ----------
    name : str
    missing : {"error", "center", "drop"}
        Treatment of a NaN or infinite value: stop, replace by 0, or drop its row.
    description : str, optional
        As for :class:`Numeric`.
    """

    missing: Literal["error", "center", "drop"] = "error"

    kind: ClassVar[str] = "coordinate"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    missing_rules: ClassVar[tuple[str, ...]] = ("error", "center", "drop")
    options: ClassVar[tuple[str, ...]] = ("name", "missing", "description")
    public_values_text: ClassVar[str] = "row clipped in length"

    def offset(self, mean: bool) -> FloatArray:
        """Return 0: coordinates are not scaled."""
        del mean
        return np.zeros(1)

    def unit_length(self, mean: bool) -> FloatArray:
        """Return 1: coordinates are not scaled."""
        del mean
        return np.ones(1)


Column = Numeric | Date | Categorical | Boolean | Coordinate
OneColumn = TypeVar("OneColumn", bound=Column)

_CLEANING: Mapping[str, Any] = {
    **dict.fromkeys(("missing_values", "source", "decimal", "thousands", "format")),
    **dict.fromkeys(("true_values", "false_values", "aliases")),
    **dict.fromkeys(("strip", "casefold"), False),
}
"""Options that say how a table writes a column's values, as they are when nothing is stated."""


def without_cleaning(column: OneColumn) -> OneColumn:
    """Return a column without its cleaning rules; the other rules stay."""
    return replace(column, **{option: usual for option, usual in _CLEANING.items() if option in column.options})


def coordinates(
    n_features: int, names: Sequence[str] | None, missing: Literal["error", "center", "drop"]
) -> list[Coordinate]:
    """Return coordinates with these names, ``x0``, ``x1``, … by default."""
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer):
        raise wrong_type("n_features", "a whole number", n_features)
    if n_features < 1:
        raise InputValueError(f"n_features={n_features}: a table needs at least one feature")
    if names is None:
        names = [f"x{index}" for index in range(n_features)]
    if isinstance(names, str) or len(names) != n_features:
        raise InputValueError(f"{len(names)} names for {n_features} features")
    return [Coordinate(name, missing=missing) for name in names]
