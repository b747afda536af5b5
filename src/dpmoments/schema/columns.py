"""Column kinds of a schema, and the rule each has for missing and invalid values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from dpmoments.base.checks import check_one_of, is_whole
from dpmoments.base.errors import InputTypeError, InputValueError, out_of_range, shown, wrong_type
from dpmoments.base.message import Message
from dpmoments.base.text_files import TextFormat
from dpmoments.base.values import FloatArray, check_text, is_finite_number, number_as_text
from dpmoments.schema.column import (
    FilledColumn,
    MarkedMissing,
    MissingNumber,
    NamedColumn,
    TableColumn,
    as_text,
    checked_marks,
)
from dpmoments.schema.dates import Date

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
            raise self._wrong(f"{error}") from None
        if self.scale is None:
            self._check_bounds()
        else:
            self._check_scale()
        if self.fill is not None:
            fill = self._number("fill", self.fill)
            lower, upper = self.bounds
            if not lower <= fill <= upper:
                raise self._wrong(f"fill={shown(fill)} is outside the bounds {shown(lower)} to {shown(upper)}")
            self._set(fill=fill)

    def _check_bounds(self) -> None:
        if (self.center, self.radius) != (None, None):
            raise self._wrong("center and radius need scale: with bounds they are redundant")
        if self.lower is None or self.upper is None:
            raise InputValueError(
                f"column '{self.name}' has no bounds: give lower and upper from public knowledge (they are never "
                "read from the data, because that would leak it), or scale=(min, max) of its standard deviation"
            )
        self._set(lower=self._number("lower", self.lower), upper=self._number("upper", self.upper))
        lower, upper = self.bounds
        if not lower < upper:
            raise self._wrong(f"lower={shown(lower)} must be below upper={shown(upper)}")
        if upper - lower < 1.0 / MAX_BOUND:
            raise self._wrong(
                f"lower={shown(lower)} and upper={shown(upper)} are too close together for "
                "floating point: use a smaller unit of measurement"
            )
        if self.typical is None:
            return
        least, largest = self._pair("typical", self.typical, "the ends of the typical range")
        if not least < largest:
            raise self._wrong(f"typical=({shown(least)}, {shown(largest)}) must be a range (low, high) with low < high")
        if not max(least, lower) < min(largest, upper):
            raise self._wrong(
                f"typical=({shown(least)}, {shown(largest)}) is outside the bounds "
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
            raise self._wrong(
                f"scale=({shown(least)}, {shown(largest)}) must be a range of standard "
                "deviations (min, max), 0 < min ≤ max"
            )
        if least < 1.0 / MAX_BOUND or largest > _MAX_SCALE * least:
            raise self._wrong(
                f"scale=({shown(least)}, {shown(largest)}) must start at {1.0 / MAX_BOUND:g} "
                f"or above and span a factor of {_MAX_SCALE:g} at most"
            )
        center = 0.0 if self.center is None else self._number("center", self.center)
        radius = _DEFAULT_RADIUS * largest if self.radius is None else self._number("radius", self.radius)
        if radius < 0.0:
            raise self._wrong(f"radius={shown(radius)} must not be negative")
        if abs(center) + radius > _FARTHEST_MEAN * least:
            raise self._wrong(
                f"a mean at {shown(center)} ± {shown(radius)} is too far from 0 for a "
                f"standard deviation of {shown(least)}, which floating point does not resolve there: subtract a "
                "public constant, or raise the lower end of scale"
            )
        self._set(scale=(least, largest), center=center, radius=radius)

    def _pair(self, option: str, value: object, meaning: str) -> tuple[float, float]:
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or len(value) != 2:
            raise self._wrong(f"{option}={shown(value)} must be a pair, {meaning}")
        return self._number(f"{option}[0]", value[0]), self._number(f"{option}[1]", value[1])

    def _number(self, label: str, value: object) -> float:
        """Return a finite number of moderate size."""
        if isinstance(value, str):
            raise InputTypeError(f"column '{self.name}': {label} {number_as_text(value)}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise wrong_type(label, "a number", value, column=self.name)
        number = value if isinstance(value, int) else float(value)  # an int may be beyond floats
        if not -MAX_BOUND <= number <= MAX_BOUND:
            raise self._wrong(f"{label}={shown(value)} must be finite, and at most {MAX_BOUND:g} in magnitude")
        return float(number)

    @property
    def bounds(self) -> tuple[float, float]:
        """(lower, upper); infinite for a column with a scale range."""
        if self.lower is None or self.upper is None:
            return -math.inf, math.inf
        return self.lower, self.upper

    @property
    def clipped_to(self) -> tuple[float, float]:
        """(lower, upper) to which values are clipped; vast for a column with a scale range."""
        return self.bounds if self.scale is None else (-MAX_CELL, MAX_CELL)

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


WEIGHT_BITS = 12
"""Binary digits of a sampling weight as a part of its cap: an even number."""
_CAP_IN_MEANS, _CAP_OF_LARGE = (3.0, 5.0), 10_000.0
"""Caps in mean weights by the public rule, and the n·ε from which it is the second."""


@dataclass(frozen=True, repr=False)
class SamplingWeight(TableColumn):
    """Sampling weight: the number of members of the population that a row stands for.

    State it last. Every mean, covariance and answer is weighted by it, and it is not a feature itself.

    Parameters
    ----------
    name : str
    upper : float, optional
        Cap W, from public knowledge: larger weights count as W. Noise is in proportion to W·n/Σw. Default, if ``population``
        and ``sample_size`` are given: 3 mean weights, or 5 where n·ε is 10,000 or more.
    population : float, optional
        Public size of the population, Σw: intervals of means then allow for what the cap takes.
    sample_size : int, optional
        Public, usual number of rows, or of privacy units of several rows, from the survey's documentation.
    design_effect : float or mapping of str to float, optional
        Public ratio of a sampling variance to that of a simple random sample of as many rows (or units), from its documentation:
        one number, or one for each of some columns. With one number the weights' own effect is not released, and costs no noise.
    computed_from : {"design", "table"}
        "table" if weights were computed from these rows (raking, post-stratification). One row then changes other rows' weights,
        which the guarantee does not cover: a release warns.
    missing : {"error", "drop"}
        Treatment of a missing, negative or infinite weight: stop the release, or drop its row.
    missing_values, source, description : optional
        As for :class:`Numeric`.

    Notes
    -----
    **Privacy.** A row enters as (w/W) times what it contributes without weights, so no sensitivity grows. Neighbors differ by one
    row with its weight; the weights of other rows stay (``docs/evidence/derivations/sensitivities.md``).

    Examples
    --------
    >>> SamplingWeight("finalwgt", population=117e6, sample_size=9_000).mean_weight
    13000.0
    """

    upper: float | None = None
    population: float | None = field(default=None, kw_only=True)
    sample_size: int | None = field(default=None, kw_only=True)
    design_effect: float | Mapping[str, float] | None = field(default=None, kw_only=True, hash=False)
    computed_from: Literal["design", "table"] = field(default="design", kw_only=True)
    missing: Literal["error", "drop"] = field(default="error", kw_only=True)
    missing_values: MarkedMissing | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "sampling_weight"
    missing_rules: ClassVar[tuple[str, ...]] = ("error", "drop")
    options: ClassVar[tuple[str, ...]] = (
        *("name", "upper", "population", "sample_size", "design_effect", "computed_from", "missing", "missing_values"),
        *("source", "description"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("computed_from", self.computed_from, ("design", "table"), column=self.name)
        effects = self.design_effect if isinstance(self.design_effect, Mapping) else {"": self.design_effect}
        numbers = {"upper": self.upper, "population": self.population, "sample_size": self.sample_size}
        numbers = {name: value.item() if isinstance(value, np.generic) else value for name, value in numbers.items()}
        self._set(**numbers)
        for option, value in [*numbers.items(), *(("design_effect", effect) for effect in effects.values())]:
            if value is not None and not (is_finite_number(value) and 1.0 / MAX_BOUND <= value <= MAX_BOUND):
                raise self._wrong(f"{option}={shown(value)} must be a number above 0")
        if self.sample_size is not None and not is_whole(self.sample_size):
            raise wrong_type("sample_size", "a whole number", self.sample_size, column=self.name)
        if self.upper is None and self.mean_weight is None:
            raise InputValueError(
                f"column '{self.name}' has no cap: give upper from public knowledge (never a quantile of the table), or the "
                "public population and sample_size, from which it follows"
            )
        if isinstance(self.design_effect, Mapping):
            self._set(design_effect={str(name): float(effect) for name, effect in self.design_effect.items()})
        self._set(missing_values=checked_marks(self.name, self.missing_values))

    @property
    def mean_weight(self) -> float | None:
        """N/n, if both are public."""
        return None if self.population is None or self.sample_size is None else self.population / self.sample_size

    @property
    def cost_factor(self) -> float | None:
        """Factor κ = W·n/N by which weights raise noise, if it is public."""
        return None if self.upper is None or self.mean_weight is None else self.upper / self.mean_weight

    @property
    def is_released(self) -> bool:
        """True if the weight is a hidden feature of the release."""
        return not isinstance(self.design_effect, float | int)

    @property
    def bounds(self) -> tuple[float, float]:
        """(0, cap)."""
        return 0.0, math.inf if self.upper is None else float(self.upper)

    @property
    def public_values_text(self) -> str:
        return f"sampling weight up to {self.upper:g}" if self.upper is not None else "sampling weight"

    @property
    def rule(self) -> Message:
        """Treatment of the weights, for the privacy statement."""
        facts = {"column": self.name, "upper": self.upper, "missing": self.missing, "computed_from": self.computed_from}
        return Message("rows-weighted", **facts)

    def capped(self, epsilon: float) -> SamplingWeight:
        """Return the weight with the cap of the public rule, if it has none."""
        if self.upper is not None or self.mean_weight is None or self.sample_size is None:
            return self
        usual, of_large = _CAP_IN_MEANS
        return replace(
            self, upper=self.mean_weight * (of_large if self.sample_size * epsilon >= _CAP_OF_LARGE else usual)
        )


@dataclass(frozen=True, repr=False)
class WeightColumn(Numeric):
    """Sampling weight as rows are read and encoded; the last feature, hidden from analyses."""

    missing_rules: ClassVar[tuple[str, ...]] = ("error", "drop")

    released: bool = field(default=True, kw_only=True)
    """False: a column that is read, and no feature."""

    @classmethod
    def of(cls, weight: SamplingWeight) -> WeightColumn:
        """Return the column of a weight with a cap."""
        if weight.upper is None:
            raise InputValueError(f"the sampling weight '{weight.name}' has no cap yet: use schema.capped(epsilon)")
        marks, source = weight.missing_values, weight.source
        return cls(
            weight.name,
            *weight.bounds,
            weight.missing,
            released=weight.is_released,
            missing_values=marks,
            source=source,
        )


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
    public_values_text: ClassVar[str] = "true or false"
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
        for option in ("true_values", "false_values"):
            self._set(**{option: checked_marks(self.name, getattr(self, option), option)})
        true, false = set(self.true_values or ()), set(self.false_values or ())
        if both := true & false:
            raise self._wrong(f"{shown(next(iter(both)))} is both in true_values and in false_values")
        if both := set(self.missing_values or ()) & (true | false):
            raise self._wrong(f"{shown(next(iter(both)))} is in missing_values and means true or false")

    @property
    def codes(self) -> MarkedMissing:
        """Stated values that mean true or false."""
        return (*(self.true_values or ()), *(self.false_values or ()))

    @property
    def reads_text(self) -> bool:
        """True if text in the column is read as true and false."""
        return any(isinstance(value, str) for value in self.codes)

    @property
    def is_flag(self) -> bool:
        """True if every value is true or false: no missing one is replaced by one half."""
        return self.missing != "center"

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
    levels : sequence of str or int, or "discover"
        All valid levels, from public knowledge. Text values of a file are compared with ``str(level)``. With ``"discover"`` a
        release under (ε, δ) first publishes the names that many rows have; all others are one level, ``other``.
    missing : {"error", "available", "zero", "drop"}
        Treatment of a missing value: stop the release, leave the row out of this column's moments, set all k features to 0
        (no level), or drop its row. With ``"available"`` a row without a level counts as one with a missing value.
    other : {"drop", "zero"} or a level
        Treatment of a value outside ``levels``, or one that cannot be read: drop its row, set all k features to 0, or count it
        as this level.
    aliases : dict of level to list of str, optional
        Other spellings of levels: ``{"east": ["E", "Est"]}``.
    strip, casefold : bool
        True to ignore spaces around a value, and to ignore its case.
    max_levels : int, optional
        With ``levels="discover"``: the most names to publish, up to 1,000. Noise is planned for this number.
    levels_share : float, optional
        With ``levels="discover"``: the share of ε and of δ that finds the names. Default: 0.05.
    missing_values, source, weight, missing_share, description : optional
        As for :class:`Numeric`. A level or an alias is never a missing value of the table's.

    Examples
    --------
    >>> Categorical("region", ["north", "south"]).feature_names
    ('region=north', 'region=south')
    >>> Categorical("town", "discover", max_levels=2).feature_names
    ('town=level 1', 'town=level 2', 'town=other')
    """

    levels: Sequence[str | int]
    missing: Literal["error", "available", "zero", "drop"] = "error"
    other: str | int = "drop"
    aliases: Mapping[str | int, Sequence[str | int]] | None = field(default=None, kw_only=True, hash=False)
    strip: bool = field(default=False, kw_only=True)
    casefold: bool = field(default=False, kw_only=True)
    max_levels: int | None = field(default=None, kw_only=True)
    levels_share: float | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "categorical"
    coded: ClassVar[bool] = True
    """True if a row is encoded by the index of its level."""
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    is_centered: ClassVar[bool] = False
    missing_rules: ClassVar[tuple[str, ...]] = ("error", "available", "zero", "drop")
    options: ClassVar[tuple[str, ...]] = (
        *("name", "levels", "max_levels", "levels_share", "missing", "other", "description", "aliases", "strip"),
        *("casefold", "missing_values", "source", "weight", "missing_share"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.max_levels, self.levels_share) != (None, None) or _is_found(self.levels, 0):
            self._check_discovery()
        if isinstance(self.levels, str) and self.levels:
            raise self._wrong(f"levels={shown(self.levels)} is one text: give a list of levels")
        listed = self.levels if isinstance(self.levels, Sequence | np.ndarray) else ()
        levels = tuple(level.item() if isinstance(level, np.generic) else level for level in listed)
        if not levels:
            raise InputValueError(
                f"column '{self.name}' has no levels: list them from public knowledge (they are never read from the "
                "data); or find them privately, by levels='discover' and max_levels"
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
            raise self._wrong(f"a level is listed twice in levels, {shown(twice)}")
        for level in levels:
            if isinstance(level, int) and abs(level) > _MAX_LEVEL:
                raise self._wrong(
                    f"integer levels go up to 2^53 − 1, and {level} is larger: give the levels, and the column, as text"
                )
            if isinstance(level, str):
                check_text(level, "levels", self.name)
        self._set(levels=levels)
        if self.other not in levels:
            check_one_of("other", self.other, ("drop", "zero"), column=self.name)
        for option in ("strip", "casefold"):
            if not isinstance(getattr(self, option), bool):
                value = shown(getattr(self, option))
                raise InputTypeError(f"column '{self.name}': {option}={value} must be true or false")
        self._set(aliases=self._checked_aliases() or None)
        _ = self.spellings  # raises if a text has two meanings

    def _check_discovery(self) -> None:
        """Set placeholders for the levels that a release finds."""
        most, share = self.max_levels, _SHARE_OF_LEVELS if self.levels_share is None else self.levels_share
        if most is None or not is_whole(most) or not 1 <= most <= _MAX_FOUND or not _is_found(self.levels, most):
            raise self._wrong(
                f"levels='discover' goes with max_levels, the most names to publish (from 1 to "
                f"{_MAX_FOUND:,}), and neither it nor levels_share with a list of levels; got max_levels={shown(most)}"
            )
        if not is_finite_number(share) or not 0.0 < share <= 0.5:
            raise out_of_range("levels_share", share, "a number above 0, at most 0.5", column=self.name)
        if self.aliases is not None or self.other not in ("drop", OTHER):
            raise self._wrong(
                f"with levels='discover' every value that is not found is the level '{OTHER}', so "
                "leave aliases and other out"
            )
        self._set(levels=_placeholders(int(most)), levels_share=float(share), other=OTHER)

    @property
    def finds_levels(self) -> bool:
        """True if a release finds the levels; these are placeholders."""
        return self.max_levels is not None

    def with_found(self, names: Sequence[str]) -> Categorical:
        """Return the column with the levels that a release found."""
        return replace(self, levels=(*names, OTHER), max_levels=None, levels_share=None)

    @property
    def complete(self) -> bool:
        """True if every kept row has a level, so that its features add up to one."""
        return self.missing != "zero" and self.other != "zero"

    def folded(self, text: str) -> str:
        """Return a text without surrounding spaces, and in one case, as the column states.

        >>> Categorical("size", ["gross"], strip=True, casefold=True).folded(" Groß ")
        'gross'
        """
        text = text.strip() if self.strip else text
        return text.casefold() if self.casefold else text

    @cached_property
    def spellings(self) -> tuple[dict[str, int], frozenset[str]]:
        """Texts of levels with the levels' indices, and texts of missing values; folded."""
        # Raise if a spelling means two levels, or a level and a missing value.
        result: dict[str, int] = {}
        for index, level in enumerate(self.levels):
            for spelling in (level, *(self.aliases or {}).get(level, ())):
                text = self.folded(str(spelling))
                if result.setdefault(text, index) != index:
                    other = self.levels[result[text]]
                    raise self._wrong(
                        f"{shown(str(spelling))} would be read as the level {shown(other)} and as {shown(level)}: levels, "
                        "aliases, strip and casefold must leave every level apart"
                    )
        nothing = frozenset(self.folded(as_text(value)) for value in self.missing_values or ())
        if both := sorted(nothing & result.keys()):
            level = self.levels[result[both[0]]]
            raise self._wrong(f"{shown(both[0])} is both in missing_values and a spelling of the level {shown(level)}")
        return result, nothing

    def _checked_aliases(self) -> dict[str | int, tuple[str | int, ...]]:
        """Return the other spellings of levels: {level: (spelling, …)}."""
        aliases: object = self.aliases
        if aliases is None:
            return {}
        if not isinstance(aliases, Mapping):
            raise InputTypeError(
                f"column '{self.name}': aliases={shown(aliases)} must map levels to lists of their other spellings: {{"
                '"east": ["E", "Est"]}'
            )
        by_text = {str(level): level for level in self.levels}  # a file of JSON has no integers for keys
        result: dict[str | int, tuple[str | int, ...]] = {}
        for key, spellings in aliases.items():
            level = by_text.get(str(key))
            if level is None or isinstance(key, bool):
                raise self._wrong(f"aliases name {shown(key)}, which is not one of its levels")
            of_level = f"column '{self.name}': the aliases of {shown(level)} must be"
            if isinstance(spellings, str) or not isinstance(spellings, Sequence | np.ndarray):
                raise InputTypeError(f"{of_level} a list of texts: [{shown(spellings)}]")
            plain = tuple(value.item() if isinstance(value, np.generic) else value for value in spellings)
            for spelling in plain:
                if isinstance(spelling, bool) or not isinstance(spelling, str | int):
                    raise InputTypeError(f"{of_level} texts or integers, got {shown(spelling)}")
                if isinstance(spelling, str):
                    check_text(spelling, "aliases", self.name)
            result[level] = plain
        return result

    @property
    def public_values_text(self) -> str:
        if self.finds_levels:
            return f"at most {self.max_levels:,} names that a release finds"
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

    def _stated(self) -> dict[str, Any]:
        stated = {option: value for option, value in super()._stated().items() if value is not False}
        if self.finds_levels:
            stated["levels"] = "discover"
            del stated["other"]
        return stated

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        values = super().to_dict()
        if self.aliases is not None:
            values["aliases"] = {str(level): list(texts) for level, texts in self.aliases.items()}
        return values


OTHER = "other"
"""Level of every value that is not one of the found levels."""
_MAX_FOUND = 1_000
_SHARE_OF_LEVELS = 0.05


def _placeholders(n_levels: int) -> tuple[str, ...]:
    """Return the levels for which a release is planned before it finds them."""
    return (*(f"level {index + 1}" for index in range(n_levels)), OTHER)


def _is_found(levels: object, most: int) -> bool:
    """Return True for levels that a release finds, as stated or as placeholders."""
    return levels == "discover" or (most > 0 and levels == _placeholders(most))


NAME_WORDS = 8
"""Numbers that hold the text of a value, six bytes each: longer values are not published."""


@dataclass(frozen=True, repr=False)
class NameColumn(Categorical):
    """Categorical column in the pass that finds its levels.

    Its features are the bytes of a value's text.
    """

    coded: ClassVar[bool] = False

    @classmethod
    def of(cls, column: Categorical) -> NameColumn:
        """Return the column for the pass that finds the levels of ``column``."""
        return cls(**{entry.name: getattr(column, entry.name) for entry in fields(column)})

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the numbers that hold the text."""
        return tuple(f"{self.name} {index}" for index in range(NAME_WORDS))


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
    is_centered: ClassVar[bool] = False
    missing_rules: ClassVar[tuple[str, ...]] = ("error", "center", "drop")
    options: ClassVar[tuple[str, ...]] = ("name", "missing", "description")
    missing_values: ClassVar[None] = None
    source: ClassVar[None] = None
    reads_text: ClassVar[bool] = False
    replacement: ClassVar[float] = 0.0
    public_values_text: ClassVar[str] = "row clipped in length"

    def unit_length(self, mean: bool) -> FloatArray:
        """Return 1: coordinates are not scaled."""
        return np.ones(1)


Column = Numeric | Date | Categorical | Boolean | Coordinate
OneColumn = TypeVar("OneColumn", bound=Column | SamplingWeight)

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
