"""Options, encoding and file form that columns of every kind have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import check_one_of
from dpmoments.foundation.errors import InputTypeError, InputValueError, shown
from dpmoments.foundation.values import check_description, check_name, check_text
from dpmoments.schema.cleaning import MarkedMissing, checked_marks, checked_weight

MissingNumber = Literal["error", "available", "fill", "drop", "center"]

MAX_ANCHOR = 0.85
"""Max distance of a missing value's stand-in from the center, in half-widths.

With its indicator a missing value is then no longer than a present one.
"""


@dataclass(frozen=True, repr=False)
class TableColumn(ABC):
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

    def _set(self, **values: object) -> None:
        """Set options to their checked values, which dataclasses allow in no other way."""
        for option, value in values.items():
            object.__setattr__(self, option, value)

    @property
    @abstractmethod
    def missing(self) -> str:
        """Rule for missing values."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float]:
        """(lower, upper) of the feature in original units."""

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

    def offset(self, mean: bool) -> FloatArray:
        """Return the value of each feature that is encoded as 0."""
        lower, upper = self.bounds
        return np.array([lower + (upper - lower) / 2.0 if mean else 0.0])

    def unit_length(self, mean: bool) -> FloatArray:
        """Return the distance from the offset that is encoded as 1, for each feature.

        It is the larger of the offset's distances to the two bounds, which differ if the midpoint is rounded: (value −
        offset)/unit then stays in [−1, 1].
        """
        lower, upper = self.bounds
        offset = self.offset(mean)
        return np.maximum(upper - offset, offset - lower)

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

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source is not None:
            if not isinstance(self.source, str) or not self.source:
                raise InputTypeError(
                    f"column '{self.name}': source={shown(self.source)} must be the column's name in the table, a text"
                )
            check_text(self.source, "source", self.name)
        self._set(
            weight=checked_weight(self.name, self.weight),
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
            raise InputValueError(
                f"column '{self.name}': missing='fill' needs fill=, a public value that replaces missing ones (never "
                "one computed from the table)"
            )
        if self.fill is not None and self.missing not in ("fill", "available"):
            raise self._fill_without_rule()

    def _fill_without_rule(self) -> InputValueError:
        return InputValueError(
            f"column '{self.name}': fill={shown(self.fill)} goes with missing='fill', or with 'available' in a column "
            f"of numbers or dates, and the rule is {shown(self.missing)}"
        )

    def _fill_as_number(self) -> float | None:
        fill: Any = self.fill
        return None if fill is None else float(fill)

    @property
    def replacement(self) -> float:
        """Number in place of a missing value (rules ``available``, ``fill`` and ``center``)."""
        center, fill, typical = float(self.offset(mean=True)[0]), self._fill_as_number(), self.typical_within_bounds
        if self.missing != "available":
            return center if fill is None else fill
        middle = center if typical is None else typical[0] / 2.0 + typical[1] / 2.0
        return anchored(middle if fill is None else fill, center, float(self.unit_length(mean=True)[0]))


def anchored(fill: float, center: float, unit: float) -> float:
    """Return the value nearest to ``fill`` that leaves room for an indicator of missing values.

    >>> anchored(0.0, 50.0, 50.0)
    7.5
    """
    return min(max(fill, center - MAX_ANCHOR * unit), center + MAX_ANCHOR * unit)
