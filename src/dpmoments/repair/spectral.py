"""What repairs know about the noise on a symmetric matrix: its free law, that is what it does to eigenvalues."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import NoiseLaw

__all__ = ["SpectralNoise", "noise_on_the_spread"]

FloatOrComplex = TypeVar("FloatOrComplex", float, npt.NDArray[np.complex128])


@dataclass(frozen=True, slots=True)
class SpectralNoise:
    """Noise on a d × d symmetric matrix whose law does not change under rotations, as seen by eigenvalues.

    For a large d it is described by its R-transform, R(g) = v g / ((1 − κ₊ g)(1 + κ₋ g))
    (``docs/derivations/repairs.md``):

    - Gaussian, v = dσ²/2, κ₊ = κ₋ = 0 (a semicircle);
    - matrix Laplace (W₁ − W₂)/(2c) with ν degrees of freedom, v = νd/(2c²), κ₊ = κ₋ = d/(2c) (a free difference of two
      Marchenko–Pastur laws);
    - one Wishart less its mean, (W − νI)/(2c), v = νd/(4c²), κ₊ = d/(2c), κ₋ = 0.

    Attributes
    ----------
    size : int
        d.
    cell_variance : float
        Variance of a cell off the diagonal (σ²/2); on it, twice as much.
    trace_variance : float
        Of the trace.
    upper_skew, lower_skew : float
        κ₊ and κ₋.

    Examples
    --------
    >>> from dpmoments.noise import GaussianNoise
    >>> noise = SpectralNoise.of(GaussianNoise(50, 2.0, 1.0, None, 0.0))
    >>> round(noise.edge, 3), round(noise.threshold, 3)  # 2√v and √v
    (14.142, 7.071)
    """

    size: int
    cell_variance: float
    trace_variance: float
    upper_skew: float = 0.0
    lower_skew: float = 0.0

    @classmethod
    def of(cls, law: NoiseLaw) -> SpectralNoise:
        """The spectral law of the noise on a Gram matrix.

        A law that changes under rotations (independent entries of equal variance) is replaced by the one of the same total
        energy that does not.
        """
        d = law.n_features
        energy = (d - 1) * law.diagonal_variance + d * (d - 1) * law.off_diagonal_variance
        cell = law.diagonal_variance / 2.0 if d == 1 else energy / ((d - 1) * (d + 2))
        upper_skew, lower_skew = law.spectral_skews
        return cls(
            size=d,
            cell_variance=cell,
            trace_variance=d * law.diagonal_variance,
            upper_skew=upper_skew,
            lower_skew=lower_skew,
        )

    def block(self, size: int) -> SpectralNoise:
        """The law of the noise on a subspace of ``size`` dimensions (chosen without looking at the noise)."""
        share = size / self.size
        return replace(
            self,
            size=size,
            trace_variance=self.trace_variance * share,
            upper_skew=self.upper_skew * share,
            lower_skew=self.lower_skew * share,
        )

    @property
    def variance(self) -> float:
        """v: the mean square of an eigenvalue of the noise, at large d."""
        return self.size * self.cell_variance

    @property
    def dimensions(self) -> float:
        """Dimensions of the traceless symmetric matrices, (d − 1)(d + 2)/2."""
        return (self.size - 1) * (self.size + 2) / 2.0

    @property
    def energy(self) -> float:
        """E‖N − (tr N/d) I‖_F²."""
        return 2.0 * self.cell_variance * self.dimensions

    def correction(self, g: FloatOrComplex) -> FloatOrComplex:
        """R(g)·g."""
        result: FloatOrComplex = self.variance * g * g / ((1.0 - self.upper_skew * g) * (1.0 + self.lower_skew * g))
        return result

    @property
    def threshold(self) -> float:
        """Height over a flat spectrum from which an eigenvalue stands out of the noise (Baik, Ben Arous & Péché 2005).

        It is 1/g with g the least positive root of d/dg[1/g + R(g)] = 0.
        """
        return 1.0 / self._edge_point

    @property
    def edge(self) -> float:
        """Upper end of the spectrum of the noise, 1/g + R(g) at that root."""
        g = self._edge_point
        if math.isinf(g):  # the eigenvalues at the upper end are all the same: lim R(g) as g → ∞
            return self.variance / self.lower_skew
        return 1.0 / g + self.correction(g) / g

    @property
    def _edge_point(self) -> float:
        # The root s = g√v of (1 − as)²(1 + bs)² = s²(1 + ab s²), a = κ₊/√v, b = κ₋/√v; that it is the only one on (0, 1/a) is
        # shown in docs/derivations/repairs.md (edge and threshold).
        scale = math.sqrt(self.variance)
        a, b = self.upper_skew / scale, self.lower_skew / scale
        if a == b:
            q = a * a
            return math.sqrt(2.0 / (2.0 * q + 1.0 + math.sqrt(8.0 * q + 1.0))) / scale
        if b == 0.0:
            return 1.0 / (1.0 + a) / scale
        if a == 0.0:
            return 1.0 / (1.0 - b) / scale if b < 1.0 else math.inf

        def excess(s: float) -> float:
            return (1.0 - a * s) * (1.0 + b * s) - s * math.sqrt(1.0 + a * b * s * s)

        return float(scipy.optimize.brentq(excess, 0.0, 1.0 / a, xtol=1e-300, rtol=1e-14)) / scale


def noise_on_the_spread(noise: NoiseLaw, mean: FloatArray) -> NoiseLaw:
    """The law of the noise on Σxxᵀ − n·μμᵀ: that on Σxxᵀ, plus −(e μᵀ + μ eᵀ) with e the noise on Σx.

    The second part has the mean square norm 2(d + 1)‖μ‖² Var(e_i); it is spread evenly over all directions.
    """
    if noise.sum_variance is None:
        return noise
    extra = 2.0 * float(mean @ mean) * noise.sum_variance / noise.n_features
    return replace(
        noise,
        diagonal_variance=noise.diagonal_variance + 2.0 * extra,
        off_diagonal_variance=noise.off_diagonal_variance + extra,
    )
