"""Pivots that are symmetric normal matrices: in the coordinates of a last step, or on the inverse of the Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.extreme_eigenvalues import normal_norm_quantile, wishart_eigenvalue_range
from dpmoments.noise.law import MomentInterval, MomentPivot, register_moment_pivot


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


# The pivot of a draw around the padded Gram matrix: a Wishart matrix of scale I, whatever the table.


@register_moment_pivot
@dataclass(frozen=True, kw_only=True, eq=False)
class WishartPivot(MomentPivot):
    """One draw W around Σ = Σ z zᵀ + ψI, z = (w, x): Wishart(Σ, ν)/ν, or (ν − D − 1) times inverse Wishart(Σ, ν).

    Of any features the block is of the same kind: m rows of the first have Wishart(Σ, ν)/ν, of the second inverse Wishart with
    ν − D + m degrees. So ν Σ^{−½}WΣ^{−½}, or (ν − D − 1) Σ^{½}W⁻¹Σ^{½}, is a Wishart matrix of scale I, and the range of its
    eigenvalues bounds Σ from both sides (``docs/derivations/utility-bounds-wishart.md``).

    Attributes
    ----------
    degrees : float
        ν.
    padding : float
        ψ, in unit-ball units.
    subtracted : bool
        Whether the released moments are W less ψI.
    inverse : bool
    augmentation : float
        w; 0 where the Gram matrix went alone.
    corner : float
        The cell of W that belongs to the constant; 0 where there is none.
    raised : float
        What smaller eigenvalues were raised to before the draw; 0 where none were.
    """

    degrees: float
    padding: float
    subtracted: bool
    inverse: bool
    augmentation: float
    corner: float
    raised: float

    name: ClassVar[str] = "wishart-sampling"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees < self.dimension + (2.0 if self.inverse else 0.0):
            raise ValueError(f"degrees={self.degrees!r} of the pivot are too few for {self.dimension} rows")

    @property
    def dimension(self) -> int:
        """D, the rows of the whole matrix."""
        return self.n_features + (1 if self.augmentation else 0)

    @property
    def covers(self) -> str:
        return "where no eigenvalue is below the stated smallest_eigenvalue" if self.raised else ""

    def interval(
        self, count: float | None, total: FloatArray | None, gram: FloatArray, chosen: Sequence[int], failure: float
    ) -> MomentInterval | None:
        parts = 2 if self.count_scale else 1
        back = self.padding if self.subtracted else 0.0
        drawn = gram[np.ix_(chosen, chosen)] + back * np.eye(len(chosen))
        if self.augmentation:
            if total is None:
                return None
            beside = self.augmentation * total[list(chosen)]
            drawn = np.block([[np.array([[self.corner]]), beside[None, :]], [beside[:, None], drawn]])
        low, high = self.scale_factors(len(drawn), failure / parts)
        if not np.isfinite(high):
            return None
        size = np.eye(len(drawn))
        result = MomentInterval(
            drawn * (low + high) / 2.0 - self.padding * size,
            drawn * (high - low) / 2.0,
            False,
            self.count_bound(failure / 2.0),
        )
        if not self.augmentation:
            return result
        unit = np.ones(len(drawn))
        unit[0] = 1.0 / self.augmentation
        result = MomentInterval(result.center, result.spread, True, 0.0).mapped(np.diag(unit))
        if count is None:
            return result
        off = abs(count - float(result.center[0, 0])) + float(result.spread[0, 0]) + 0.5
        return MomentInterval(result.center, result.spread, True, off)

    def scale_factors(self, size: int, failure: float) -> tuple[float, float]:
        """a and b with aW ⪯ Σ ⪯ bW for a block of ``size`` rows, but with probability ``failure``; b may be infinite.

        Examples
        --------
        >>> law = dict(padding=0.0, subtracted=True, augmentation=0.0, corner=0.0, raised=0.0)
        >>> [round(end, 2) for end in WishartPivot(n_features=4, degrees=1000, inverse=False, **law).scale_factors(4, 0.05)]
        [0.86, 1.18]
        """
        if self.inverse:
            low, high = wishart_eigenvalue_range(size, self.degrees - self.dimension + size, failure)
            center = self.degrees - self.dimension - 1.0
            return low / center, high / center
        low, high = wishart_eigenvalue_range(size, self.degrees, failure)
        return self.degrees / high, self.degrees / low if low > 0.0 else float("inf")
