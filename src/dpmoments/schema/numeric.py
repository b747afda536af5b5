"""Numeric columns with public bounds or a rough public scale.

Bounds may have a typical range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputTypeError, InputValueError, shown, wrong_type
from dpmoments.base.message import Message
from dpmoments.base.text_format import TextFormat
from dpmoments.base.values import number_as_text
from dpmoments.schema.column import FilledColumn, MissingNumber

MAX_BOUND = 1e100
"""Max magnitude of bounds, and of 1/width.

Beyond it squares of unit · noise could overflow float64.
"""
MAX_CELL = 1e200
"""Magnitude to which values of a column without bounds are clipped.

They stay finite in any units.
"""
_MAX_SCALE = 1e12
"""Max ratio of the ends of a scale range."""
_FARTHEST_MEAN = 1e15
"""Max distance of the mean from zero, in units of the smallest SD: float64 resolves no more."""
_DEFAULT_RADIUS = 10.0
"""Default radius of the mean, in units of the largest SD."""


@dataclass(frozen=True, repr=False)
class Numeric(FilledColumn):
    """Numeric column with public bounds, or with a public scale range.

    Parameters
    ----------
    name : str
    lower, upper : float
        Public bounds, lower < upper; values outside are clipped to them. They must come from public knowledge (a
        codebook, physics, legislation), never from the table: a bound computed from the data leaks information about
        it.
    missing : {"error", "available", "fill", "drop", "center"}
        Treatment of a missing, NaN, infinite or unreadable value: stop the release (``"error"``; a stopped release
        reveals that such a value exists), leave the row out of this column's moments (``"available"``, recommended:
        means and covariances are then those of the rows whose values are present), replace it by ``fill`` (``"fill"``),
        drop its row (``"drop"``), or replace it by the midpoint of the bounds or by ``center`` (``"center"``). A replaced
        value pulls mean, variance and correlations towards it: a midpoint far from the mean shifts the mean by
        (midpoint − mean) times the fraction missing.
    fill : float, optional
        A public value within the bounds. With ``missing="fill"`` it counts as the missing one. With
        ``missing="available"`` it is a guess of the mean that shifts nothing; a near one makes the noise smaller.
    scale : (float, float), optional
        In place of bounds: a public range of the column's standard deviation, as wide as needed; accuracy falls only
        with its logarithm. Values are not clipped, and the schema needs the mechanism ``coinpress``. Privacy does not
        depend on the range: if it is wrong, the release is less accurate, and usually warns.
    center, radius : float, optional
        With ``scale``: the column's mean is within ``radius`` of ``center``. Default: within 10 times the largest
        standard deviation of 0.
    typical : (float, float), optional
        With bounds: the range of nearly all rows (about the mean ± 2 standard deviations), which must come from public
        knowledge, like the bounds. No value is clipped to it. A column that varies little within its bounds then gets
        less noise. Other columns get a little more, and at most twice as much if the range is wrong
        (``docs/evidence/forecast-errors.md``).
    description : str, optional
        Public description of the column: one line, published with the schema; ignored when columns are compared.
    missing_values : list of str or float, optional
        Values that mean a missing one, such as ``[-9, "unknown"]``: numbers, and texts as they are written. They take the
        place of the table's (:class:`~dpmoments.Schema`).
    decimal, thousands : str, optional
        Decimal mark, and mark between groups of three digits, of numbers written as text: ``decimal=","``. With either, a
        column of text is read as numbers in every kind of table, not only in text files, where they take the place of the
        file's.
    source : str, optional
        Name of the column in the table, if it is another one.
    weight : float, optional
        Priority of the column, from public knowledge: its correlations get less noise, those of the others a little more
        (``docs/evidence/forecast-errors.md``). Default: 1.
    missing_share : float, optional
        Guess of the fraction of missing values, from public knowledge, for :func:`dpmoments.forecast`. A release does not
        use it; ignored when columns are compared.

    Raises
    ------
    ValueError
        If there are neither bounds nor a scale, or both; if a number is blank or not finite; if bounds are reversed or
        equal, a scale is not positive or is reversed; if a typical range is reversed, empty or outside the bounds, or
        goes with a scale.

    Notes
    -----
    A column with a scale is encoded as (value − center)/√(lo·hi).

    Examples
    --------
    >>> Numeric("income", 0, 200_000, missing="fill", fill=30_000)
    Numeric(name='income', lower=0.0, upper=200000.0, missing='fill', fill=30000.0)
    >>> Numeric("age", 0, 120, typical=(20, 75))
    Numeric(name='age', lower=0.0, upper=120.0, typical=(20.0, 75.0), missing='error')
    >>> Numeric("income", scale=(1, 1e6))
    Numeric(name='income', scale=(1.0, 1000000.0), center=0.0, radius=10000000.0, missing='error')
    """

    lower: float | None = None
    upper: float | None = None
    missing: MissingNumber = "error"
    scale: tuple[float, float] | None = field(default=None, kw_only=True)
    center: float | None = field(default=None, kw_only=True)
    radius: float | None = field(default=None, kw_only=True)
    typical: tuple[float, float] | None = field(default=None, kw_only=True)
    fill: float | None = field(default=None, kw_only=True)
    decimal: str | None = field(default=None, kw_only=True)
    thousands: str | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "numeric"
    options: ClassVar[tuple[str, ...]] = (
        *("name", "lower", "upper", "scale", "center", "radius", "typical", "missing", "fill", "missing_values"),
        *("decimal", "thousands", "source", "weight", "missing_share", "description"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            TextFormat(decimal="." if self.decimal is None else self.decimal, thousands=self.thousands)
        except ValueError as error:
            raise InputValueError(f"column '{self.name}': {error}") from None
        if self.scale is None:
            self._check_bounds()
        else:
            self._check_scale()
        if self.fill is not None:
            fill = self._number("fill", self.fill)
            lower, upper = self.bounds
            if not lower <= fill <= upper:
                raise InputValueError(
                    f"column '{self.name}': fill={shown(fill)} is outside the bounds {shown(lower)} to {shown(upper)}"
                )
            self._set(fill=fill)

    def _check_bounds(self) -> None:
        if (self.center, self.radius) != (None, None):
            raise InputValueError(f"column '{self.name}': center and radius need scale: with bounds they are redundant")
        if self.lower is None or self.upper is None:
            raise InputValueError(
                f"column '{self.name}' has no bounds: give lower and upper from public knowledge (they are never "
                "read from the data, because that would leak it), or scale=(min, max) of its standard deviation"
            )
        self._set(lower=self._number("lower", self.lower), upper=self._number("upper", self.upper))
        lower, upper = self.bounds
        if not lower < upper:
            raise InputValueError(f"column '{self.name}': lower={shown(lower)} must be below upper={shown(upper)}")
        if upper - lower < 1.0 / MAX_BOUND:
            raise InputValueError(
                f"column '{self.name}': lower={shown(lower)} and upper={shown(upper)} are too close together for "
                "floating point: use a smaller unit of measurement"
            )
        if self.typical is None:
            return
        least, largest = self._pair("typical", self.typical, "the ends of the typical range")
        if not least < largest:
            raise InputValueError(
                f"column '{self.name}': typical=({shown(least)}, {shown(largest)}) must be a range (low, high) with "
                "low < high"
            )
        if not max(least, lower) < min(largest, upper):
            raise InputValueError(
                f"column '{self.name}': typical=({shown(least)}, {shown(largest)}) is outside the bounds "
                f"{shown(lower)} to {shown(upper)}, to which every value is clipped: one of the two is wrong"
            )
        self._set(typical=(least, largest))

    def _check_scale(self) -> None:
        if (self.lower, self.upper) != (None, None):
            raise InputValueError(
                f"column '{self.name}' has bounds and a scale: give lower and upper, or scale, not both"
            )
        if self.typical is not None:
            raise InputValueError(
                f"column '{self.name}' has a typical range and a scale: a typical range goes with bounds, so leave "
                "it out"
            )
        if self.missing == "available":
            raise InputValueError(
                f"column '{self.name}' has missing='available', which needs bounds on every column and the row-norm "
                "bound that follows from them: leave row_norm and scale out, or choose missing='drop' or 'fill'"
            )
        least, largest = self._pair("scale", self.scale, "the smallest and the largest possible standard deviation")
        if not 0.0 < least <= largest:
            raise InputValueError(
                f"column '{self.name}': scale=({shown(least)}, {shown(largest)}) must be a range of standard "
                "deviations (min, max), 0 < min ≤ max"
            )
        if least < 1.0 / MAX_BOUND or largest > _MAX_SCALE * least:
            raise InputValueError(
                f"column '{self.name}': scale=({shown(least)}, {shown(largest)}) must start at {1.0 / MAX_BOUND:g} "
                f"or above and span a factor of {_MAX_SCALE:g} at most"
            )
        center = 0.0 if self.center is None else self._number("center", self.center)
        radius = _DEFAULT_RADIUS * largest if self.radius is None else self._number("radius", self.radius)
        if radius < 0.0:
            raise InputValueError(f"column '{self.name}': radius={shown(radius)} must not be negative")
        if abs(center) + radius > _FARTHEST_MEAN * least:
            raise InputValueError(
                f"column '{self.name}': a mean at {shown(center)} ± {shown(radius)} is too far from 0 for a "
                f"standard deviation of {shown(least)}, which floating point does not resolve there: subtract a "
                "public constant, or raise the lower end of scale"
            )
        self._set(scale=(least, largest), center=center, radius=radius)

    def _pair(self, option: str, value: object, meaning: str) -> tuple[float, float]:
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or len(value) != 2:
            raise InputValueError(f"column '{self.name}': {option}={shown(value)} must be a pair, {meaning}")
        return self._number(f"{option}[0]", value[0]), self._number(f"{option}[1]", value[1])

    def _number(self, label: str, value: object) -> float:
        """Return a finite number of moderate size."""
        if isinstance(value, str):
            raise InputTypeError(f"column '{self.name}': {label} {number_as_text(value)}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise wrong_type(label, "a number", value, column=self.name)
        number = value if isinstance(value, int) else float(value)  # an int may be beyond floats
        if not -MAX_BOUND <= number <= MAX_BOUND:
            raise InputValueError(
                f"column '{self.name}': {label}={shown(value)} must be finite, and at most {MAX_BOUND:g} in magnitude"
            )
        return float(number)

    @property
    def bounds(self) -> tuple[float, float]:
        """(lower, upper); infinite for a column with a scale range."""
        if self.lower is None or self.upper is None:
            return -math.inf, math.inf
        return self.lower, self.upper

    @property
    def rough(self) -> tuple[float, float, float, float] | None:
        """(smallest SD, largest SD, center, radius) of a column with a scale range, else None."""
        if self.scale is None or self.center is None or self.radius is None:
            return None
        return (*self.scale, self.center, self.radius)

    @property
    def typical_within_bounds(self) -> tuple[float, float] | None:
        """Part of the typical range inside the bounds; None without a typical range."""
        if self.typical is None:
            return None
        lower, upper = self.bounds
        return max(lower, self.typical[0]), min(upper, self.typical[1])

    @property
    def reads_text(self) -> bool:
        """True if text in the column is read as numbers, in a stated format."""
        return self.decimal is not None or self.thousands is not None

    @property
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""
        if self.rough is None:
            lower, upper = self.bounds
            typical = "" if self.typical is None else ", typically {:g} to {:g}".format(*self.typical)
            return f"{lower:g} to {upper:g}{typical}"
        least, largest, center, radius = self.rough
        return f"standard deviation from {least:g} to {largest:g}, mean within {radius:g} of {center:g}"

    @property
    def rule(self) -> Message:
        """Treatment of the column's values, for the privacy statement."""
        column: dict[str, Any] = {"column": self.name, "missing": self.missing}
        if self.fill is not None:
            column["fill"] = self.fill
        if self.rough is not None:
            least, largest, center, radius = self.rough
            return Message("scale-range", **column, least=least, largest=largest, center=center, radius=radius)
        lower, upper = self.bounds
        typical = (
            {} if self.typical is None else dict(zip(("typical_lower", "typical_upper"), self.typical, strict=True))
        )
        return Message("values-clipped-to-bounds", **column, lower=lower, upper=upper, **typical)

    def offset(self, mean: bool) -> FloatArray:
        """Return the value encoded as 0, shape (1,): the center with a scale range."""
        return np.array([self.rough[2] if mean else 0.0]) if self.rough is not None else super().offset(mean)

    def unit_length(self, mean: bool) -> FloatArray:
        """Return the distance from the offset that is encoded as 1, shape (1,).

        With a scale range it is the geometric mean of its ends, the best public guess.
        """
        if self.rough is None:
            return super().unit_length(mean)
        least, largest, _, _ = self.rough
        return np.array([math.sqrt(least) * math.sqrt(largest)])
