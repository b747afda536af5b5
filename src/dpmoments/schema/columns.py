"""Column kinds of a schema, and the rule each has for missing and invalid values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import check_choice, check_description, check_name, check_text, shown
from dpmoments.messages.message import Message
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import MissingNumber, Numeric

MissingLevel = Literal["error", "zero", "drop"]

_MAX_LEVEL = 2**53 - 1
"""Largest integer level.

Data frames hold integer columns with gaps in float64, exact up to here.
"""


@dataclass(frozen=True)
class Boolean:
    """True/false column: one feature, 0 or 1 in original units.

    Parameters
    ----------
    name : str
    missing : {"error", "center", "drop"}
        As for :class:`Numeric`; ``"center"`` counts as one half.
    description : str, optional
        As for :class:`Numeric`.

    Examples
    --------
    >>> Boolean("employed").feature_names
    ('employed',)
    """

    name: str
    missing: MissingNumber = "error"
    description: str | None = field(default=None, kw_only=True, compare=False, repr=False)

    kind: ClassVar[str] = "boolean"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_description(self.name, self.description)
        check_choice(self.name, "missing", self.missing, ("error", "center", "drop"))

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
        return Message("two-values", column=self.name, missing=self.missing)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The column's name: one feature."""
        return (self.name,)

    def offset(self, mean: bool) -> FloatArray:
        """Return the value encoded as 0, shape (1,)."""
        return np.array([0.5 if mean else 0.0])

    def unit(self, mean: bool) -> FloatArray:
        """Return the distance from the offset that is encoded as 1, shape (1,)."""
        return np.array([0.5 if mean else 1.0])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return _to_dict(self)


@dataclass(frozen=True)
class Categorical:
    """Column of k public levels, encoded as k features ``name=level``.

    One of them is 1 and the others are 0.

    Parameters
    ----------
    name : str
    levels : sequence of str or int
        All valid levels, from public knowledge. Text values of a file are compared with ``str(level)``.
    missing : {"error", "zero", "drop"}
        Treatment of a missing value: stop the release, set all k features to 0, or drop its row.
    other : {"drop", "zero"}
        Treatment of a value outside ``levels``, or one that cannot be read: drop its row, or set all k features to 0.
    description : str, optional
        As for :class:`Numeric`.

    Examples
    --------
    >>> Categorical("region", ["north", "south"]).feature_names
    ('region=north', 'region=south')
    """

    name: str
    levels: tuple[str | int, ...]
    missing: MissingLevel = "error"
    other: Literal["drop", "zero"] = "drop"
    description: str | None = field(default=None, kw_only=True, compare=False, repr=False)

    kind: ClassVar[str] = "categorical"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_description(self.name, self.description)
        check_choice(self.name, "missing", self.missing, ("error", "zero", "drop"))
        check_choice(self.name, "other", self.other, ("drop", "zero"))
        if isinstance(self.levels, str) and self.levels:
            raise InputValueError(
                f"column {self.name!r}: levels={shown(self.levels)} is one text: give a list of levels"
            )
        if self.levels is None or isinstance(self.levels, str) or not isinstance(self.levels, Sequence | np.ndarray):
            raise InputValueError(
                f"column {self.name!r} has no levels: list them from public knowledge (they are never read from "
                f"the data)"
            )
        levels = tuple(level.item() if isinstance(level, np.generic) else level for level in self.levels)
        if not levels:
            raise InputValueError(f"column {self.name!r} has no levels: list them from public knowledge")
        if any(isinstance(level, bool) or not isinstance(level, str | int) for level in levels):
            raise InputTypeError(
                f"column {self.name!r}: levels must be strings or integers (Boolean is for true/false; in a file, quote true, "
                "false, null and numbers with a point where they are text)"
            )
        if len({type(level) for level in levels}) > 1:
            raise InputTypeError(
                f"column {self.name!r}: levels must be all strings or all integers (in a file, put the numbers into quotes)"
            )
        if len(set(levels)) < len(levels):
            twice = next(level for index, level in enumerate(levels) if level in levels[:index])
            raise InputValueError(f"column {self.name!r}: a level is listed twice in levels, {shown(twice)}")
        for level in levels:
            if isinstance(level, int) and abs(level) > _MAX_LEVEL:
                raise InputValueError(
                    f"column {self.name!r}: integer levels go up to 2^53 − 1, and {level} is larger: give the "
                    f"levels, and the column, as text"
                )
            if isinstance(level, str):
                check_text(level, f"column {self.name!r}: a level")
        object.__setattr__(self, "levels", levels)

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

    def unit(self, mean: bool) -> FloatArray:
        """Return ones: a one-hot block already has norm 1."""
        del mean
        return np.ones(len(self.levels))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return _to_dict(self) | {"levels": list(self.levels)}


@dataclass(frozen=True)
class Coordinate:
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

    name: str
    missing: MissingNumber = "error"
    description: str | None = field(default=None, kw_only=True, compare=False, repr=False)

    kind: ClassVar[str] = "coordinate"

    def __post_init__(self) -> None:
        check_name(self.name)
        check_description(self.name, self.description)
        check_choice(self.name, "missing", self.missing, ("error", "center", "drop"))

    @property
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""
        return "row clipped in length"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The coordinate's name: one feature."""
        return (self.name,)

    def offset(self, mean: bool) -> FloatArray:
        """Return 0: coordinates are not scaled."""
        del mean
        return np.zeros(1)

    def unit(self, mean: bool) -> FloatArray:
        """Return 1: coordinates are not scaled."""
        del mean
        return np.ones(1)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return _to_dict(self)


Column = Numeric | Date | Categorical | Boolean | Coordinate


def coordinates(
    n_features: int, names: Sequence[str] | None, missing: Literal["error", "center", "drop"]
) -> list[Coordinate]:
    """Return coordinates with these names, ``x0``, ``x1``, … by default."""
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer):
        raise InputTypeError(f"n_features must be an integer, got {type(n_features).__name__}")
    if n_features < 1:
        raise InputValueError(f"n_features={n_features}: a table needs at least one feature")
    if names is None:
        names = [f"x{index}" for index in range(n_features)]
    if isinstance(names, str) or len(names) != n_features:
        raise InputValueError(f"{len(names)} names for {n_features} features")
    return [Coordinate(name, missing=missing) for name in names]


def _to_dict(column: Boolean | Categorical | Coordinate) -> dict[str, Any]:
    values = {option.name: getattr(column, option.name) for option in fields(column)}
    if column.description is None:
        del values["description"]
    return {"kind": column.kind} | values
