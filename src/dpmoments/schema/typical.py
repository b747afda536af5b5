"""Division of the unit ball among columns by typical ranges.

``docs/evidence/derivations/typical-ranges.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError, shown
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.derived import DerivedColumn, MissingIndicator, SchemaColumn, stated_columns
from dpmoments.schema.numeric import Numeric

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
        if isinstance(column, Coordinate) or (isinstance(column, Numeric) and column.scale is not None):
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
        return np.array([by_name[name] for name in owners])
    priorities = [math.sqrt(column_weight(column)) for column in columns]
    weighted = any(priority != 1.0 for priority in priorities)
    shares = _typical_shares(columns, mean)
    if not weighted:
        return None if shares is None else np.sqrt(shares)
    shares = [share * priority for share, priority in zip(shares or [1.0] * len(columns), priorities, strict=True)]
    factor = len(columns) / math.fsum(shares)
    return np.array([math.sqrt(factor * share) for share in shares])


def _typical_shares(columns: Sequence[SchemaColumn], mean: bool) -> list[float] | None:
    """Return the squared weights by typical ranges; their sum is the number of columns."""
    if not any(isinstance(column, Numeric) and column.typical is not None for column in columns):
        return None
    # a = √(k/V), the share that a column requests before `DOUBT`
    asked = [math.sqrt(len(column.feature_names) / _mean_square(column, mean)) for column in columns]
    n_columns, ends = len(columns), sorted([value / DOUBT for value in asked] + [value * DOUBT for value in asked])
    agreed = math.sqrt(
        ends[n_columns - 1] * ends[n_columns]
    )  # the median: in, or nearest to, most columns' ranges of doubt
    kept = [min(max(agreed, value / DOUBT), value * DOUBT) for value in asked]
    kept = [min(max(value, agreed / MAX), agreed * MAX) for value in kept]
    total = math.fsum(kept)
    return [(1.0 - TRUST) + TRUST * n_columns * (value / total) for value in kept]


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
