"""Options, encoding, file form and cleaning rules of columns of every kind."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputTypeError, InputValueError, of_column, out_of_range, shown, wrong_type
from dpmoments.base.values import FloatArray, check_description, check_name, check_text, is_finite_number

MissingNumber = Literal["error", "available", "fill", "drop", "center"]

MAX_ANCHOR = 0.85
"""Max distance of a missing value's stand-in from the center, in half-widths.

With its indicator a missing value is then no longer than a present one.
"""


class EncodedColumn(ABC):
    """Base of columns and derived features: bounds of values, and how features encode them."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """(lower, upper) of the feature in original units."""

    @property
    @abstractmethod
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded features."""

    @property
    def is_bounded(self) -> bool:
        """True if public bounds limit the values."""
        return math.isfinite(self.bounds[1])

    @property
    def is_centered(self) -> bool:
        """True if features are encoded about the middle of their bounds if a mean is released."""
        return True

    def offset(self, mean: bool) -> FloatArray:
        """Return the value of each feature that is encoded as 0."""
        lower, upper = self.bounds
        middle = lower + (upper - lower) / 2.0 if mean and self.is_centered else 0.0
        return np.full(len(self.feature_names), middle)

    def unit_length(self, mean: bool) -> FloatArray:
        """Return the distance from the offset that is encoded as 1, for each feature.

        It is the larger of the offset's distances to the two bounds, which differ if the midpoint is rounded: (value −
        offset)/unit then stays in [−1, 1].
        """
        lower, upper = self.bounds
        offset = self.offset(mean)
        return np.maximum(upper - offset, offset - lower)


@dataclass(frozen=True, repr=False)
class TableColumn(EncodedColumn):
    """Base of all columns of a table: one feature, with bounds, unless a kind says otherwise."""

    name: str
    description: str | None = field(default=None, kw_only=True, compare=False)

    kind: ClassVar[str]
    options: ClassVar[tuple[str, ...]]
    """Arguments of the column, in the order of a file."""
    missing_rules: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        check_name(self.name)
        check_one_of("missing", self.missing, self.missing_rules, column=self.name)
        check_description(self.name, self.description)

    def _wrong(self, sentence: str) -> InputValueError:
        """Return the error of a column that cannot be as it is stated."""
        return InputValueError(f"column '{self.name}': {sentence}")

    def _set(self, **values: object) -> None:
        """Set options to their checked values, which dataclasses allow in no other way."""
        for option, value in values.items():
            object.__setattr__(self, option, value)

    @property
    @abstractmethod
    def missing(self) -> str:
        """Rule for missing values."""

    @property
    def clipped_to(self) -> tuple[float, float]:
        """(lower, upper) to which values are clipped."""
        return self.bounds

    @property
    @abstractmethod
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""

    @property
    def rough(self) -> tuple[float, float, float, float] | None:
        """(smallest SD, largest SD, center, radius) with a scale range, else None."""
        return None

    @property
    def typical_within_bounds(self) -> tuple[float, float] | None:
        """Part of the typical range inside the bounds; None without a typical range."""
        return None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded features: the column's own, for one feature."""
        return (self.name,)

    def _stated(self) -> dict[str, Any]:
        """Return the options that are not None."""
        options = {option: getattr(self, option) for option in self.options}
        return {option: value for option, value in options.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        plain = {option: list(value) if isinstance(value, tuple) else value for option, value in self._stated().items()}
        return {"kind": self.kind} | plain

    def __repr__(self) -> str:
        options = (f"{option}={value!r}" for option, value in self._stated().items() if option != "description")
        return f"{type(self).__name__}({', '.join(options)})"


@dataclass(frozen=True, repr=False)
class NamedColumn(TableColumn):
    """Base of columns with a name in the table and rules for how it writes values."""

    missing_values: MarkedMissing | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)
    weight: float | None = field(default=None, kw_only=True)
    missing_share: float | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_missing_share(self.name, self.missing_share, self.missing)
        if self.source is not None:
            if not isinstance(self.source, str) or not self.source:
                raise InputTypeError(
                    f"column '{self.name}': source={shown(self.source)} must be the column's name in the table, a text"
                )
            check_text(self.source, "source", self.name)
        self._set(
            weight=None if self.weight is None else checked_weight(self.weight, column=self.name),
            missing_values=checked_marks(self.name, self.missing_values),
        )


@dataclass(frozen=True, repr=False)
class FilledColumn(NamedColumn):
    """Base of columns of numbers, in which a public value can take the place of a missing one."""

    missing_rules: ClassVar[tuple[str, ...]] = ("error", "available", "fill", "drop", "center")

    @property
    @abstractmethod
    def fill(self) -> object:
        """Stated value in place of a missing one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.missing == "fill" and self.fill is None:
            raise self._wrong(
                "missing='fill' needs fill=, a public value that replaces missing ones (never "
                "one computed from the table)"
            )
        if self.fill is not None and self.missing not in ("fill", "available"):
            raise self._fill_without_rule()

    def _fill_without_rule(self) -> InputValueError:
        return self._wrong(
            f"fill={shown(self.fill)} goes with missing='fill', or with 'available' in a column "
            f"of numbers or dates, and the rule is {shown(self.missing)}"
        )

    @property
    def fill_as_number(self) -> float | None:
        """Stated value in place of a missing one, in the column's unit."""
        fill: Any = self.fill
        return None if fill is None else float(fill)

    @property
    def replacement(self) -> float:
        """Number in place of a missing value (rules ``available``, ``fill`` and ``center``)."""
        center, fill, typical = float(self.offset(mean=True)[0]), self.fill_as_number, self.typical_within_bounds
        if self.missing != "available":
            return center if fill is None else fill
        middle = center if typical is None else typical[0] / 2.0 + typical[1] / 2.0
        room = MAX_ANCHOR * float(self.unit_length(mean=True)[0])  # for an indicator of missing values
        return min(max(middle if fill is None else fill, center - room), center + room)


def check_missing_share(column: str, share: object, rule: str) -> None:
    """Raise ValueError unless a guessed share of missing values is possible."""
    if share is None:
        return
    if not (is_finite_number(share) and 0.0 <= share < 1.0):
        raise InputValueError(f"column '{column}': missing_share={shown(share)} must be a number from 0 to below 1")
    if rule == "error" and share > 0.0:
        raise InputValueError(
            f"column '{column}': missing_share={shown(share)}, but missing='error' stops a release at the first missing "
            "value: choose missing='available', 'drop' or 'fill', or leave missing_share out"
        )


# Cleaning rules: public statements on how a table writes its values, each read by itself.

MarkedMissing = tuple[str | int | float, ...]
"""Values that mean a missing one: texts as they are written, and numbers."""
MAX_WEIGHT = 1024.0
"""Max weight of a column or of means, and of its reciprocal."""


def checked_weight(weight: object, parameter: str = "weight", *, column: str = "") -> float:
    """Return the weight of a column, or of means: from 1/1024 to 1024.

    >>> checked_weight(4)
    4.0
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.integer | np.floating):
        raise wrong_type(parameter, "a number", weight, column=column)
    if not 1.0 / MAX_WEIGHT <= weight <= MAX_WEIGHT:
        expected = f"from 1/{MAX_WEIGHT:g} to {MAX_WEIGHT:g}; 1 is the default"
        raise out_of_range(parameter, weight, expected, column=column)
    return float(weight)


def checked_marks(column: str, values: object, option: str = "missing_values") -> MarkedMissing | None:
    """Return a list of texts and numbers as a tuple; None if it is not given.

    >>> checked_marks("pay", [-9, "NA", ""])
    (-9, 'NA', '')
    """
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise InputTypeError(f"{of_column(column)}{option}={shown(values)} must be a list of texts and numbers")
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    for value in plain:
        if isinstance(value, str):
            check_text(value, option, column or None)
        elif not is_finite_number(value):
            raise InputTypeError(
                f"{of_column(column)}{option} holds {shown(value)}: it must be a list of texts and finite numbers (in "
                "a file, quote true, false and null where they are text)"
            )
    return plain


def as_text(value: str | int | float) -> str:
    """Format a number as the text of a table: whole ones without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**63:
        return str(int(value))
    return str(value)


def texts_of(values: MarkedMissing) -> tuple[str, ...]:
    """Return the texts by which these values are found in a column of text.

    >>> texts_of((-9, "NA", 99.5))
    ('-9', '-9.0', 'NA', '99.5')
    """
    texts: list[str] = []
    for value in values:
        text = as_text(value)
        texts += [text, f"{text}.0"] if is_finite_number(value) and text.lstrip("-").isdigit() else [text]
    return tuple(dict.fromkeys(texts))


def numbers_of(values: MarkedMissing) -> tuple[float, ...]:
    """Return the numbers among values."""
    return tuple(float(value) for value in values if is_finite_number(value))
