"""What a run of a mechanism comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import NoiseLaw
from dpmoments.noise.pivots import MomentPivot

__all__ = ["NoisyMoments"]


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """What a run releases, for rows in the unit ball.

    Attributes
    ----------
    count : float or None
        Number of rows that count: exact where it is public, noisy where it was paid for, else None.
    sum : ndarray of shape (d,) or None
        Σ(x − center).
    gram : ndarray of shape (d, d)
        Σ(x − center)(x − center)ᵀ, symmetric; not repaired.
    diagnostics : mapping
        What else the run learned privately (plain values and arrays); covered by the plan's cost.
    center : ndarray of shape (d,) or None
        What sum and Gram matrix are taken about, itself a private answer; None for 0. About 0 the moments of rows whose mean
        is far from 0 hold no covariance: in float64 none is left where the mean is 10⁸ standard deviations away.
    pivot : MomentPivot or None
        The law of this run, where the noise is not added cell by cell, with what else the run released that it needs.
    noise : NoiseLaw or None
        The law of the noise of this run, where its plan could not know it; None where it is the plan's.
    rules : tuple of str
        What the run did to rows, a sentence for each rule, for the privacy statement.
    """

    count: float | None
    sum: FloatArray | None
    gram: FloatArray
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    center: FloatArray | None = None
    pivot: MomentPivot | None = None
    noise: NoiseLaw | None = None
    rules: tuple[str, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """E[x], not repaired, shape (d,); needs count and sum."""
        from_center = np.asarray(self.sum) / self.count
        return from_center if self.center is None else self.center + from_center

    @property
    def second_moment_sum(self) -> FloatArray:
        """Σ x xᵀ about 0, not repaired, shape (d, d): the Gram matrix where it is about 0, else moved there."""
        if self.center is None:
            return self.gram
        cross = np.outer(self.center, np.asarray(self.sum))
        return np.asarray(self.gram + cross + cross.T + float(self.count or 0.0) * np.outer(self.center, self.center))

    @property
    def covariance(self) -> FloatArray:
        """Cov(x), not repaired, shape (d, d); needs count and sum."""
        from_center = np.asarray(self.sum) / self.count
        return np.asarray(self.gram / np.asarray(self.count) - np.outer(from_center, from_center))
