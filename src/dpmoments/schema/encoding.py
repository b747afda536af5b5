"""Affine map between original units and the unit ball, for values and for moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError, shown, wrong_type
from dpmoments.base.values import FloatArray
from dpmoments.schema.columns import MAX_BOUND, Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema.derived import DerivedColumn, MissingIndicator, SchemaColumn, stated_columns


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encoding value = offset + unit · row_norm · x/weight of each feature.

    x is in the unit ball.
    """

    offset: FloatArray  # (d,), value encoded as 0
    unit: FloatArray  # (d,), half-widths of the columns (1 for one-hot features)
    row_norm: float  # B, the bound on the norm of weight · (value − offset)/unit
    # (d,), optional, relative share of the ball (:func:`column_weights`); None: 1 for every feature
    weight: FloatArray | None = None

    @property
    def scale(self) -> FloatArray:
        """``unit · row_norm/weight``, shape (d,): original units per unit of x."""
        scale = self.unit * self.row_norm
        return scale if self.weight is None else scale / self.weight

    def of_features(self, features: npt.NDArray[np.int64]) -> Encoding:
        """Return the map of some of the features."""
        weight = None if self.weight is None else self.weight[features]
        return Encoding(self.offset[features], self.unit[features], self.row_norm, weight)

    def values_in_ball(self, *values: FloatArray) -> tuple[FloatArray, ...]:
        """Encode one value for each feature, such as bounds: value → x, each of shape (d,)."""
        return tuple((value - self.offset) / self.scale for value in values)

    def decode_mean(self, mean: FloatArray) -> FloatArray:
        """Convert E[x] to E[value], shape (d,)."""
        return self.offset + self.scale * mean

    def decode_covariance(self, covariance: FloatArray) -> FloatArray:
        """Convert Cov(x) to Cov(value), shape (d, d)."""
        return covariance * np.outer(self.scale, self.scale)

    def decode_second_moment(self, second_moment: FloatArray, mean: FloatArray | None) -> FloatArray:
        """Convert E[x xᵀ] to E[value valueᵀ], shape (d, d)."""
        # With offset c and m = scale·E[x]: E[v vᵀ] = c cᵀ + c mᵀ + m cᵀ + scale·E[x xᵀ]·scale. The mean is not needed
        # if c = 0.
        scaled = self.decode_covariance(second_moment)
        if not self.offset.any():
            return scaled
        if mean is None:
            raise InputValueError(
                "the second moment in original units needs the mean, because the encoding is centered"
            )
        cross = np.outer(self.offset, self.scale * mean)
        return np.outer(self.offset, self.offset) + cross + cross.T + scaled

    def encode_cells(self, values: FloatArray, feature: int, out: FloatArray | None = None) -> FloatArray:
        """Compute (value − offset)/unit of a feature, shape (n,)."""
        # In [−1, 1] within bounds, not yet in the ball.
        encoded: FloatArray = np.subtract(values, self.offset[feature], out=out)
        np.divide(encoded, self.unit[feature], out=encoded)
        return encoded

    def scale_into_ball(self, block: FloatArray, first: int = 0) -> None:
        """Multiply encoded values, (n, k), of k features from ``first`` on, by weight/B."""
        # Finite ones stay finite.
        if self.weight is not None:
            block *= self.weight[first : first + block.shape[1]]
        if self.row_norm < 1:
            largest = 2.0**1023 * self.row_norm
            np.clip(block, -largest, largest, out=block)
        if self.row_norm != 1:
            block /= self.row_norm


# The public bound on the norm of an encoded row: what it may be, and whether it is below what the columns allow.

LATTICE = 2**16
"""Level entries of a schema's encoded rows are multiples of 1/LATTICE.

Exact on that lattice and finer ones.
"""


def longest_row_norm(columns: Sequence[SchemaColumn]) -> float:
    """Return a bound on the norm of a row of bounded columns.

    √(number of columns), or slightly more.

    If a column is categorical, it is the next number that makes a level, 1/row_norm, a multiple of 2⁻¹⁶. Rows are later
    rounded to multiples that are as fine or finer: a level rounded up would make some rows longer than the ball, and
    each of their entries dependent on the whole row (``docs/evidence/derivations/exact-sums.md``, section 6).

    >>> from dpmoments import Categorical
    >>> columns = [Numeric("a", 0, 1), Categorical("b", ["x", "y"])]
    >>> longest_row_norm(columns[:1] * 2) == 2**0.5, longest_row_norm(columns) == 2**16 / 46340
    (True, True)
    """
    columns = stated_columns(columns)  # an indicator is 0 unless its column is
    if not any(isinstance(column, Categorical) for column in columns):
        return math.sqrt(len(columns))
    return LATTICE / math.isqrt(LATTICE**2 // len(columns))


def lattice_weights(weights: FloatArray, row_norm: float) -> FloatArray:
    """Round column weights down so that a level is a multiple of 2⁻¹⁶, as it is without weights.

    >>> (lattice_weights(np.array([0.9, 1.1]), longest_row_norm([Numeric("a", 0, 1)])) * 2**16).tolist()
    [58982.0, 72089.0]
    """
    steps = round(LATTICE / row_norm)
    return np.floor(weights * steps) / steps


def checked_row_norm(columns: Sequence[SchemaColumn], row_norm: float | Literal["default"] | None) -> float | None:
    """Return the row-norm bound of these columns; None if unbounded.

    It is at most :func:`longest_row_norm`, the default.

    >>> columns = [Numeric("a", 0, 1), Numeric("b", 0, 1), Numeric("c", 0, 1), Numeric("d", 0, 1)]
    >>> checked_row_norm(columns, "default"), checked_row_norm(columns, 1.5), checked_row_norm(columns, 7)
    (2.0, 1.5, 2.0)
    """
    unbounded = any(isinstance(column, Coordinate) for column in columns)
    if rough := [column.name for column in columns if isinstance(column, Numeric) and column.scale is not None]:
        if unbounded:
            raise InputValueError(
                f"column '{rough[0]}' has a scale, and coordinates have neither bounds nor a scale: give every "
                "column bounds or a scale"
            )
        if row_norm not in ("default", None):
            raise InputValueError(
                f"row_norm={shown(row_norm)} and column '{rough[0]}' has a scale, in place of bounds: nothing "
                "bounds a row, so leave row_norm out"
            )
        return None
    longest = longest_row_norm(columns)
    if row_norm == "default":
        if unbounded:
            raise InputValueError("coordinates have no bounds of their own: give row_norm, or use Schema.unit_ball(d)")
        return longest
    if row_norm is None:
        if not unbounded:
            raise InputValueError("row_norm=None is for coordinates without bounds: bounded columns bound the row")
        return None
    if isinstance(row_norm, bool) or not isinstance(row_norm, int | float | np.integer | np.floating):
        raise wrong_type("row_norm", "a number", row_norm)
    bound = row_norm if isinstance(row_norm, int) else float(row_norm)
    if not 1.0 / MAX_BOUND <= bound <= MAX_BOUND:
        raise InputValueError(
            f"row_norm={shown(bound)}: the bound on a row's norm must be positive and finite, from "
            f"{1.0 / MAX_BOUND:g} to {MAX_BOUND:g}"
        )
    return float(bound) if unbounded else min(float(bound), longest)


def may_be_shortened(columns: Sequence[SchemaColumn], row_norm: float | None) -> bool:
    """Return True if a row within its bounds can exceed the row-norm bound."""
    # It is then scaled down.
    free = any(isinstance(column, Coordinate) for column in columns)
    return row_norm is not None and (free or row_norm < math.sqrt(len(stated_columns(columns))) * (1.0 - 1e-12))


# Division of the unit ball among columns by typical ranges (``docs/evidence/derivations/typical-ranges.md``).

DOUBT = 1.75
"""Assumed error factor of a guess.

Columns differ in share only as far as guesses this wrong leave no doubt.
"""
MAX = 3.0
"""Max factor between a column's requested share and the common one.

Columns drowned in noise get no more.
"""
TRUST = 0.5
"""Fraction of the ball divided by typical ranges, the rest equally.

1 − TRUST bounds a wrong guess's cost.
"""
_MIN_SHARE = 1e-6
"""Min typical variation, as a fraction of the column's half-width."""


def check_typical_ranges(columns: Sequence[SchemaColumn], row_norm: float | None) -> None:
    """Raise ValueError if typical ranges are combined with options that exclude them."""
    # Such options cannot share the unit ball with them.
    columns = stated_columns(columns)
    typical = [column.name for column in columns if isinstance(column, Numeric) and column.typical is not None]
    weighted = [column.name for column in columns if column_weight(column) != 1.0]
    if weighted and (row_norm is None or row_norm < math.sqrt(len(columns))):
        raise InputValueError(
            f"column '{weighted[0]}' has a weight, and row_norm={shown(row_norm)}: weights divide the norm "
            "bound that follows from bounds on every column; leave one of the two out"
        )
    if not typical:
        return
    for column in columns:
        if not column.is_bounded:
            raise InputValueError(
                f"column '{typical[0]}' has a typical range and {shown(column.name)} has no bounds: typical ranges "
                "need bounds on every column: add them, or leave typical out"
            )
    if row_norm is None or row_norm < math.sqrt(len(columns)):
        raise InputValueError(
            f"row_norm={shown(row_norm)} and column '{typical[0]}' has a typical range: the norm bound does not "
            "apply to rows whose columns are weighted; leave one of the two out"
        )


def column_weight(column: SchemaColumn) -> float:
    """Return the weight that a column states, or 1."""
    weight = getattr(column, "weight", None)
    return 1.0 if weight is None else float(weight)


def column_weights(columns: Sequence[SchemaColumn], *, mean: bool) -> FloatArray | None:
    """Return the factor by which typical ranges lengthen each column's entries.

    None without such ranges.

    A column of k features, whose rows have the mean square V in units of its bounds, requests the share a/Σa of a row's
    squared length, a = √(k/V), which minimizes the sum over pairs of columns of (noise/typical size)². Guesses may be
    wrong, so a is first moved towards the common value by a factor of at most ``DOUBT``, then limited to within a
    factor ``MAX`` of it; and half of the squared length is divided equally, so that no entry ever has more than twice
    the noise that it has without typical ranges (``docs/evidence/derivations/typical-ranges.md``). V is about the columns' means
    if ``mean``, else about zero, as the second moment is. The squared weights sum to the number of columns; none may be
    a coordinate or have a scale range.
    """
    stated = stated_columns(columns)
    if len(stated) < len(columns):  # an indicator has its column's weight
        weights = column_weights(stated, mean=mean)
        if weights is None:
            return None
        by_name = dict(zip((column.name for column in stated), weights.tolist(), strict=True))
        owners = (column.stated.column if isinstance(column, MissingIndicator) else column.name for column in columns)
        return np.array([by_name.get(name, 1.0) for name in owners])  # a weight that is no feature has 1
    n_columns, shares = len(columns), [1.0] * len(columns)
    has_ranges = any(isinstance(column, Numeric) and column.typical is not None for column in columns)
    if has_ranges:
        # a = √(k/V), the share that a column requests before `DOUBT`
        asked = [math.sqrt(len(column.feature_names) / _mean_square(column, mean)) for column in columns]
        ends = sorted([value / DOUBT for value in asked] + [value * DOUBT for value in asked])
        # the median: in, or nearest to, most columns' ranges of doubt
        agreed = math.sqrt(ends[n_columns - 1] * ends[n_columns])
        kept = [min(max(agreed, value / DOUBT), value * DOUBT) for value in asked]
        kept = [min(max(value, agreed / MAX), agreed * MAX) for value in kept]
        total = math.fsum(kept)
        shares = [(1.0 - TRUST) + TRUST * n_columns * (value / total) for value in kept]

    priorities = [math.sqrt(column_weight(column)) for column in columns]
    if all(priority == 1.0 for priority in priorities):
        return np.sqrt(shares) if has_ranges else None
    shares = [share * priority for share, priority in zip(shares, priorities, strict=True)]
    factor = n_columns / math.fsum(shares)
    return np.array([math.sqrt(factor * share) for share in shares])


def _mean_square(column: SchemaColumn, mean: bool) -> float:
    """Compute a typical row's mean square, about the mean or about zero."""
    # In units of the column's bounds.
    if isinstance(column, Boolean):
        return 4.0 / 6.0 if mean else 0.5
    if isinstance(column, Categorical):
        levels = len(column.levels)
        return max((levels - 1) / (levels + 1), 1.0 / 6.0) if mean else 1.0
    assert not isinstance(column, Coordinate), "a coordinate has no bounds of its own"
    lower, upper = column.typical_within_bounds or column.bounds
    unit = float(column.unit_length(mean)[0])
    deviation = (upper / unit - lower / unit) / 4.0
    middle = lower / unit / 2.0 + upper / unit / 2.0
    if isinstance(column, DerivedColumn) and column.levels is not None:
        levels = len(column.levels.levels)
        middle *= math.sqrt((levels - 1) / (levels + 1)) if mean else 1.0
    elif mean:
        middle = 0.0
    return max(math.hypot(deviation, middle), _MIN_SHARE) ** 2


# What a schema with rough scales says about the moments of encoded rows.

_ROUGH_SCALE_LEAST_SHARE = 1e-3
"""Assumed min SD of a bounded feature, as a fraction of its unit."""
_MIN_FLAG = 0.1
"""Min SD of a feature with two values.

With a smaller SD, its few rows with 1 would be clipped.
"""


@dataclass(frozen=True, slots=True)
class RoughScale:
    """Ranges of the encoded features' moments, one entry per feature.

    Privacy never depends on them.
    """

    # with `largest`: range of the standard deviation (of the root mean square if the encoding subtracts no center)
    least: tuple[float, ...]
    largest: tuple[float, ...]
    radius: tuple[float, ...]  # bound on the distance of the mean from 0
    span: tuple[float, ...]  # distance between the two values of a Boolean or a level; 0 for other features

    @classmethod
    def of(cls, columns: Sequence[SchemaColumn], *, mean: bool) -> RoughScale | None:
        """Return the ranges that columns state.

        None without a scale range, which excludes derived features.

        Bounded features are at most one unit from their offset. Bounds do not limit how little a feature varies: a
        standard deviation below 1/1000 of the unit (1/10 for Booleans and levels) is assumed to be that large.
        """
        if not any(isinstance(column, Numeric) and column.scale is not None for column in columns):
            return None
        ranges: list[tuple[float, float, float, float]] = []
        for column in columns:
            if isinstance(column, Boolean | Categorical):
                ranges += [(_MIN_FLAG, 1.0, 1.0, 1.0 / unit) for unit in column.unit_length(mean).tolist()]
                continue
            rough = column.rough if isinstance(column, Numeric) else None
            if rough is None:
                ranges.append((_ROUGH_SCALE_LEAST_SHARE, 1.0, 1.0, 0.0))
                continue
            unit = float(column.unit_length(mean)[0])
            least, largest, center, radius = rough
            if not mean:
                largest = math.hypot(largest, abs(center) + radius)
            ranges.append((least / unit, largest / unit, radius / unit, 0.0))
        return cls(*zip(*ranges, strict=True))

    @property
    def anchor(self) -> tuple[tuple[float, ...], ...]:
        """Anchor A = diag(least²), which minimizes :attr:`spread`."""
        # Any covariance C whose variances are in these ranges has C ⪯ tr(A⁻¹C)·A ⪯ Σ_j (largest_j/least_j)²·A, and any
        # other diagonal A ⪯ diag(least²) makes that trace larger.
        d = len(self.least)
        return tuple(tuple(self.least[i] ** 2 if i == j else 0.0 for j in range(d)) for i in range(d))

    @property
    def spread(self) -> float:
        """Bound on the covariance's largest eigenvalue relative to :attr:`anchor`."""
        # Σ_j (largest_j/least_j)².
        return math.fsum((high / low) ** 2 for low, high in zip(self.least, self.largest, strict=True))

    @property
    def mean_radius(self) -> float:
        """Bound on the norm of the mean relative to :attr:`anchor`."""
        return math.sqrt(math.fsum((reach / low) ** 2 for low, reach in zip(self.least, self.radius, strict=True)))
