"""The noise laws of the mechanisms of this package, one small class each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.gamma_quantiles import gamma_difference_quantile, gamma_quantile
from dpmoments.noise.law import NoiseLaw, register_noise_law
from dpmoments.privacy.curves import gaussian_epsilon

__all__ = ["GaussianNoise", "IsotropicNoise", "LaplaceNoise", "MatrixLaplaceNoise", "WishartNoise"]


@register_noise_law
@dataclass(frozen=True)
class GaussianNoise(NoiseLaw):
    """Independent normal cells.

    Spectral norm of m rows: σ(√(2m) + √(2 ln(2/β))) for the isotropic law (Gaussian concentration around E‖N‖_op ≤ σ√(2m),
    two-sided by symmetry), and the same with √2σ for equal variances. Sum: √(variance)·(√m + √(2 ln(1/β))).
    Loss: the curve of two normals at distance μ, μ² = Σ Δ²/variance over the cells (Balle & Wang 2018).

    Examples
    --------
    >>> law = GaussianNoise(3, 2.0, 1.0, None, 0.0)
    >>> round(law.frobenius_error, 3), round(law.cell_quantile(0.975, diagonal=False), 3)
    (3.464, 1.96)
    """

    name: ClassVar[str] = "gaussian"

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        scale = math.sqrt(max(self.diagonal_variance, 2.0 * self.off_diagonal_variance))
        return scale * (math.sqrt(2.0 * m) + math.sqrt(2.0 * math.log(2.0 / failure)))

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        m = self._bounded_rows(failure, size)
        return math.sqrt(self.sum_variance) * (math.sqrt(m) + math.sqrt(2.0 * math.log(1.0 / failure)))

    def count_bound(self, failure: float) -> float:
        if self.count_variance is None:
            raise ValueError("no count was released")
        return math.sqrt(self.count_variance) * math.sqrt(2.0 * math.log(2.0 / failure))

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - the same on all cells

        return float(scipy.special.ndtri(level))

    def privacy_loss(
        self, gram_shift: FloatArray, sum_shift: FloatArray, count_shift: float, delta: float
    ) -> float | None:
        cells = self._noisy_cells(gram_shift, sum_shift, count_shift)
        if cells is None:
            return math.inf
        distance = math.sqrt(math.fsum(shift**2 / variance for shift, variance in cells))
        if distance == 0.0:
            return 0.0
        return gaussian_epsilon(delta, distance, 1.0) if delta > 0.0 else math.inf


@register_noise_law
@dataclass(frozen=True)
class LaplaceNoise(NoiseLaw):
    """Independent Laplace cells.

    Spectral norm of m rows: m times the largest of m(m+1)/2 entries, by a union bound. Loss: Σ |Δ|/scale over the cells,
    reached where every cell lies beyond both means.
    """

    name: ClassVar[str] = "laplace"

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        return math.sqrt(self.diagonal_variance / 2.0) * math.log(m * (m + 1) / 2.0 / failure) * m

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - the same on all cells
        tail = math.log(2.0 * min(level, 1.0 - level)) / math.sqrt(2.0)
        return tail if level < 0.5 else -tail

    def privacy_loss(
        self,
        gram_shift: FloatArray,
        sum_shift: FloatArray,
        count_shift: float,
        delta: float,  # noqa: ARG002 - pure
    ) -> float | None:
        cells = self._noisy_cells(gram_shift, sum_shift, count_shift)
        if cells is None:
            return math.inf
        return math.fsum(abs(shift) / math.sqrt(variance / 2.0) for shift, variance in cells)


@register_noise_law
@dataclass(frozen=True)
class IsotropicNoise(NoiseLaw):
    """Density ∝ e^{−c‖N‖_F} on the augmented matrix: variances 2a/c², a/c², a = (m + 1)/2, m the cells of its triangle.

    N = √(2Y)·Z/c with Y ~ Gamma(a) and Z symmetric normal noise of variances 1 and 1/2, independent
    (``docs/derivations/isotropic.md``): every cell, standardised, is the difference of two Gamma(a), exactly.

    Bounds: that of Z as for :class:`GaussianNoise`, times √(2Y)/c, each at half the failure probability; a Gamma(a) is below
    a + √(2ax) + x but with probability e^{−x} (Laurent & Massart 2000). For matrices that of ‖N‖_F, Gamma(m)/c, where it is
    less.

    Loss: c times the norm of the released shift in svec coordinates. The log density of those cells falls along a ray at a
    rate of at most c, and of c far out.

    Attributes
    ----------
    rate : float
        c.
    """

    rate: float

    name: ClassVar[str] = "isotropic"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rate > 0:
            raise ValueError("the noise law has no rate: it must be above 0")
        if not math.isfinite(self.diagonal_variance * self.rate * self.rate):
            raise ValueError(
                f"no isotropic noise of rate={self.rate!r} has diagonal_variance={self.diagonal_variance!r}"
            )

    def of_rows_in_ball(self, radius: float) -> NoiseLaw:
        return replace(self, **self._scaled_variances(radius), rate=self.rate / radius**2)

    @property
    def mixing_shape(self) -> float:
        """a above."""
        return self.diagonal_variance * self.rate * self.rate / 2.0

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        of_normal = math.sqrt(2.0 * m) + math.sqrt(2.0 * math.log(4.0 / failure))
        by_mixture = math.sqrt(self.diagonal_variance) * self._mixing_bound(failure / 2.0) * of_normal
        coordinates = max(2.0 * self.mixing_shape - 1.0, 1.0)
        return min(by_mixture, _gamma_bound(failure, coordinates) / self.rate)

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        m = self._bounded_rows(failure, size)
        of_normal = math.sqrt(m) + math.sqrt(2.0 * math.log(2.0 / failure))
        return math.sqrt(self.sum_variance) * self._mixing_bound(failure / 2.0) * of_normal

    def count_bound(self, failure: float) -> float:
        return -self.count_quantile(failure / 2.0)

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - the same on all cells
        return gamma_difference_quantile(level, self.mixing_shape)

    def privacy_loss(
        self,
        gram_shift: FloatArray,
        sum_shift: FloatArray,
        count_shift: float,
        delta: float,  # noqa: ARG002 - pure
    ) -> float | None:
        cells = self._noisy_cells(gram_shift, sum_shift, count_shift)
        if cells is None:
            return math.inf
        # A svec coordinate has the diagonal's variance, whichever cell it stands for.
        square = math.fsum(shift**2 / variance for shift, variance in cells) * self.diagonal_variance
        return self.rate * math.sqrt(square)

    def _mixing_bound(self, failure: float) -> float:
        """What √(Y/a) stays below but with probability ``failure``."""
        a = self.mixing_shape
        return math.sqrt(_gamma_bound(failure, a) / a) if a > 0.0 else 1.0


def _gamma_bound(failure: float, shape: float) -> float:
    """What a Gamma variable stays below but with probability ``failure`` (Laurent & Massart 2000)."""
    x = -math.log(failure)
    return shape + math.sqrt(2.0 * shape * x) + x


@dataclass(frozen=True)
class NoiseOfWisharts(NoiseLaw):
    """What the laws made of Wisharts of scale matrix I/(2c) share.

    Attributes
    ----------
    rate : float
        c.
    """

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rate > 0:
            raise ValueError("the noise law has no rate: it must be above 0")
        if not math.isfinite(self.diagonal_variance * self.rate * self.rate):
            raise ValueError(f"no Wishart of rate={self.rate!r} has diagonal_variance={self.diagonal_variance!r}")

    def of_rows_in_ball(self, radius: float) -> NoiseLaw:
        return replace(self, **self._scaled_variances(radius), rate=self.rate / radius**2)


@register_noise_law
@dataclass(frozen=True)
class MatrixLaplaceNoise(NoiseOfWisharts):
    """The difference of two Wisharts, N = (UᵀU − VᵀV)/(2c) with U, V ν × d standard normal: variances ν/c², ν/(2c²).

    Spectral norm of m rows: the singular values of U and V leave √ν ± (√m + t) with probability ≤ e^{−t²/2} a side (Davidson
    & Szarek 2001), so ‖N‖ ≤ (√ν + √m + t)²/(2c) with two such events, and 2√ν(√m + t)/c with four.

    Quantiles: a diagonal cell of UᵀU is χ²_ν, so one of N is the difference of two Gamma(ν/2)/c. Off the diagonal
    u_i u_j = ((u_i + u_j)² − (u_i − u_j)²)/4 turns a cell of UᵀU into the difference of two χ²_ν/2, and one of N into that of
    two Gamma(ν)/(2c).

    Loss: c‖Δ‖_*, Δ the shift of the augmented matrix: reached where Ĝ − G is definite if Δ is semi-definite (the density
    there is ∝ e^{−c·tr}), else the limit far along Δ (``docs/derivations/matrix_laplace.md``). None where the
    count cell is not released beside a sum: a marginal law without a closed form.
    """

    name: ClassVar[str] = "matrix-laplace"

    @property
    def spectral_skews(self) -> tuple[float, float]:
        skew = self.n_features / (2.0 * self.rate)
        return skew, skew

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        root = math.sqrt(self.diagonal_variance * self.rate**2)
        largest = (root + math.sqrt(m) + math.sqrt(2.0 * math.log(2.0 / failure))) ** 2 / (2.0 * self.rate)
        reach = math.sqrt(m) + math.sqrt(2.0 * math.log(4.0 / failure))
        return min(largest, 2.0 * root * reach / self.rate) if reach < root else largest

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:
        squared_rate = self.rate * self.rate
        shape = (
            self.diagonal_variance * squared_rate / 2.0 if diagonal else 2.0 * self.off_diagonal_variance * squared_rate
        )
        return gamma_difference_quantile(level, shape)

    def privacy_loss(
        self,
        gram_shift: FloatArray,
        sum_shift: FloatArray,
        count_shift: float,
        delta: float,  # noqa: ARG002 - pure
    ) -> float | None:
        if self._noisy_cells(gram_shift, sum_shift, count_shift) is None:
            return math.inf
        shift = gram_shift
        if self.sum_variance is not None:
            if not self.count_variance:
                return None
            w = math.sqrt(self.off_diagonal_variance / self.sum_variance)
            total, corner = w * sum_shift, np.array([[w * w * count_shift]])
            shift = np.block([[corner, total[None, :]], [total[:, None], gram_shift]])
        return self.rate * float(np.abs(np.linalg.eigvalsh(shift)).sum())


@register_noise_law
@dataclass(frozen=True)
class WishartNoise(NoiseOfWisharts):
    """One Wishart less its mean, N = (UᵀU − kI)/(2c) with U k × d standard normal: variances k/(2c²), k/(4c²).

    Spectral norm of m rows: the singular values of U, as for :class:`MatrixLaplaceNoise`; two events. Quantiles: a diagonal
    cell is (χ²_k − k)/(2c), one off the diagonal the difference of two Gamma(k/2)/(2c).
    """

    name: ClassVar[str] = "wishart"

    @property
    def spectral_skews(self) -> tuple[float, float]:
        return self.n_features / (2.0 * self.rate), 0.0

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        degrees = 2.0 * self.diagonal_variance * self.rate**2
        root, reach = math.sqrt(degrees), math.sqrt(m) + math.sqrt(2.0 * math.log(2.0 / failure))
        above, below = (root + reach) ** 2 - degrees, degrees - max(root - reach, 0.0) ** 2
        return max(above, below) / (2.0 * self.rate)

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:
        squared_rate = self.rate * self.rate
        if diagonal:
            return gamma_quantile(level, self.diagonal_variance * squared_rate)
        return gamma_difference_quantile(level, 2.0 * self.off_diagonal_variance * squared_rate)
