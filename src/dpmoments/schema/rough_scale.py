"""What a schema with rough scales says about the moments of encoded rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpmoments.schema.columns import Boolean, Categorical, Numeric
from dpmoments.schema.derived import SchemaColumn

__all__ = ["RoughScale"]

LEAST_SHARE = 1e-3
"""Lower bound assumed for the standard deviation of a bounded feature, as a fraction of its unit."""
LEAST_FLAG = 0.1
"""The same for a feature of two values: one that varies less is 1 in so few rows that these would be clipped."""


@dataclass(frozen=True, slots=True)
class RoughScale:
    """Ranges of the moments of the encoded features, one entry for each feature; privacy never depends on them.

    Attributes
    ----------
    least, largest : tuple of float
        Range of the standard deviation (of the root mean square, where the encoding subtracts no centre).
    radius : tuple of float
        Bound on the distance of the mean from 0.
    span : tuple of float
        Distance between the two values of a flag or a level; 0 for other features.
    """

    least: tuple[float, ...]
    largest: tuple[float, ...]
    radius: tuple[float, ...]
    span: tuple[float, ...]

    @classmethod
    def of(cls, columns: Sequence[SchemaColumn], *, mean: bool) -> RoughScale | None:
        """The ranges that columns state; None where no column has a scale. Beside one there are no derived features.

        Bounded features are at most one unit from their offset. Bounds do not say how little a feature varies: a standard
        deviation below 1/1000 of the unit (1/10, for flags and levels) is treated as if it were that large.

        Examples
        --------
        >>> RoughScale.of([Numeric("a", scale=(1, 100), radius=50), Numeric("b", 0, 8)], mean=True)
        RoughScale(least=(0.1, 0.001), largest=(10.0, 1.0), radius=(5.0, 1.0), span=(0.0, 0.0))
        """
        if not any(isinstance(column, Numeric) and column.scale is not None for column in columns):
            return None
        ranges: list[tuple[float, float, float, float]] = []
        for column in columns:
            if isinstance(column, Boolean | Categorical):
                ranges += [(LEAST_FLAG, 1.0, 1.0, 1.0 / unit) for unit in column.unit(mean).tolist()]
                continue
            rough = column.rough if isinstance(column, Numeric) else None
            if rough is None:
                ranges.append((LEAST_SHARE, 1.0, 1.0, 0.0))
                continue
            unit = float(column.unit(mean)[0])
            least, largest, center, radius = rough
            if not mean:
                largest = math.hypot(largest, abs(center) + radius)
            ranges.append((least / unit, largest / unit, radius / unit, 0.0))
        return cls(*zip(*ranges, strict=True))

    @property
    def anchor(self) -> tuple[tuple[float, ...], ...]:
        """A = diag(least²), the anchor that makes :attr:`spread` smallest.

        Any covariance C whose variances are in these ranges has C ⪯ tr(A⁻¹C)·A ⪯ Σ_j (largest_j/least_j)²·A, and any other
        diagonal A ⪯ diag(least²) makes that trace larger.
        """
        d = len(self.least)
        return tuple(tuple(self.least[i] ** 2 if i == j else 0.0 for j in range(d)) for i in range(d))

    @property
    def spread(self) -> float:
        """Bound on the largest eigenvalue of the covariance relative to :attr:`anchor`: Σ_j (largest_j/least_j)²."""
        return math.fsum((high / low) ** 2 for low, high in zip(self.least, self.largest, strict=True))

    @property
    def mean_radius(self) -> float:
        """Bound on the norm of the mean relative to :attr:`anchor`."""
        return math.sqrt(math.fsum((reach / low) ** 2 for low, reach in zip(self.least, self.radius, strict=True)))
