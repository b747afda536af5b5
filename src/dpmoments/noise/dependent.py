"""Pivots that are symmetric normal matrices: in the coordinates of a last step, or on the inverse of the Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.extreme_eigenvalues import normal_norm_quantile
from dpmoments.noise.pivots import MomentInterval, MomentPivot, register_moment_pivot

__all__ = ["InverseNormalPivot", "LastStepPivot"]


@register_moment_pivot
@dataclass(frozen=True, kw_only=True, eq=False)
class LastStepPivot(MomentPivot):
    """The noisy sums of w = linear·(x − center), clipped to a ball, that a recursive estimator ended with.

    Symmetric normal noise of standard deviations σ on and σ/√2 off the diagonal of Σ w wᵀ, and s on Σ w. With κ = σ/(√2 s) the
    moments of (κ, w) have the noise of a symmetric normal matrix but for its corner, which has none: that makes its spectral norm
    no larger at any level (``docs/derivations/utility-bounds-wishart.md``).

    Attributes
    ----------
    linear : ndarray of shape (d, d)
    center : ndarray of shape (d,)
    step_gram : ndarray of shape (d, d)
        As the step released it, in the units of w; before what the mechanism made of it.
    step_sum : ndarray of shape (d,) or None
    gram_scale, sum_scale : float
        σ and s.
    """

    linear: FloatArray
    center: FloatArray
    step_gram: FloatArray
    step_sum: FloatArray | None
    gram_scale: float
    sum_scale: float

    name: ClassVar[str] = "last-step"
    arrays: ClassVar[dict[str, int]] = {"linear": 2, "center": 1, "step_gram": 2, "step_sum": 1}

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(getattr(self, name) is None for name in ("linear", "center", "step_gram")):
            raise ValueError("the pivot of a last step needs its linear, center and step_gram")
        if self.step_sum is not None and not self.sum_scale > 0.0:
            raise ValueError("the pivot has a step_sum without noise: sum_scale must be above 0")

    @property
    def covers(self) -> str:
        return "against the fit on the rows as the last step clipped them: what clipping took away comes on top"

    def interval(
        self, count: float | None, total: FloatArray | None, gram: FloatArray, chosen: Sequence[int], failure: float
    ) -> MomentInterval | None:
        del total, gram  # what the step released stands here; they have been repaired by the mechanism
        back = np.linalg.inv(self.linear)[list(chosen)]
        parts = 2.0 if self.count_scale else 1.0
        of_count = self.count_bound(failure / parts)
        if self.step_sum is None:
            reach = self.gram_scale * normal_norm_quantile(len(back), failure / parts)
            return MomentInterval(back @ self.step_gram @ back.T, reach * (back @ back.T), False, of_count)
        if count is None:
            return None
        kappa = self.gram_scale / (math.sqrt(2.0) * self.sum_scale)
        beside = kappa * self.step_sum[None, :]
        moments = np.block([[np.array([[kappa**2 * count]]), beside], [beside.T, self.step_gram]])
        start = np.zeros((1, 1 + self.n_features))
        start[0, 0] = 1.0 / kappa
        matrix = np.block([[start], [self.center[list(chosen)][:, None] / kappa, back]])
        reach = self.gram_scale * normal_norm_quantile(len(matrix), failure / parts)
        constant = np.concatenate([[1.0], self.center[list(chosen)]])
        spread = reach * (matrix @ matrix.T) + of_count * np.outer(constant, constant)
        return MomentInterval(matrix @ moments @ matrix.T, spread, True, of_count)


@register_moment_pivot
@dataclass(frozen=True, kw_only=True, eq=False)
class InverseNormalPivot(MomentPivot):
    """Symmetric normal noise on the inverse of the Gram matrix; normal noise on the sum.

    Attributes
    ----------
    inverse : ndarray of shape (d, d)
        As released.
    inverse_scale : float
        Standard deviation of the noise on its diagonal entries; 1/√2 of it off the diagonal.
    smallest_eigenvalue : float
        What the caller asserted.
    sum_scale : float or None
        Standard deviation on each entry of the sum; None where no sum was released.
    """

    inverse: FloatArray
    inverse_scale: float
    smallest_eigenvalue: float
    sum_scale: float | None

    name: ClassVar[str] = "inverse-normal"
    arrays: ClassVar[dict[str, int]] = {"inverse": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inverse is None or not self.smallest_eigenvalue > 0.0:
            raise ValueError("the pivot needs its inverse, and a smallest_eigenvalue above 0")

    @property
    def covers(self) -> str:
        return "where no eigenvalue is below the stated smallest_eigenvalue"

    def interval(
        self, count: float | None, total: FloatArray | None, gram: FloatArray, chosen: Sequence[int], failure: float
    ) -> MomentInterval | None:
        del gram  # made of the inverse, as clipped by the mechanism
        parts = 1.0 + (self.sum_scale is not None) + (self.count_scale > 0.0)
        if count is None or (self.sum_scale is not None and total is None):
            return None
        of_count = self.count_bound(failure / parts)
        low, high = self._gram_between(count + of_count, failure / parts)
        block = np.ix_(chosen, chosen)
        center, spread = (high + low)[block] / 2.0, (high - low)[block] / 2.0
        if self.sum_scale is None or total is None:
            return MomentInterval(center, spread, False, of_count)
        m = len(chosen)
        of_sum = self.sum_scale * (math.sqrt(m) + math.sqrt(2.0 * math.log(parts / failure)))
        # ±(e₀eᵀ + ee₀ᵀ) ⪯ ‖e‖(η e₀e₀ᵀ + I/η) for every η > 0
        weight = math.sqrt(max(count, 1.0) * m / max(float(np.trace(center)), self.smallest_eigenvalue))
        corner = np.array([[of_count + of_sum * weight]])
        beside, zeros = total[list(chosen)][None, :], np.zeros((1, m))
        return MomentInterval(
            np.block([[np.array([[count]]), beside], [beside.T, center]]),
            np.block([[corner, zeros], [zeros.T, spread + of_sum / weight * np.eye(m)]]),
            True,
            of_count,
        )

    def _gram_between(self, most_rows: float, failure: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the Gram matrix from both sides; its trace, and so each eigenvalue, is at most the number of rows."""
        reach = self.inverse_scale * normal_norm_quantile(self.n_features, failure)
        eigenvalues, vectors = np.linalg.eigh(self.inverse)
        least = 1.0 / max(most_rows, self.smallest_eigenvalue)
        low = (vectors / np.maximum(eigenvalues + reach, least)) @ vectors.T
        if eigenvalues[0] - reach <= least:
            return low, np.eye(self.n_features) / least
        return low, (vectors / (eigenvalues - reach)) @ vectors.T
