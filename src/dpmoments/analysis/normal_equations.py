"""The normal equations of one regression on released moments, as noisy as they were released, and the law of their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray

__all__ = ["NoiseOfMoments", "NormalEquations"]


AGREEMENT = 30.0
"""Standard deviations of a cell. A change of method at which the two differ would lose coverage by itself."""


class NoiseOfMoments(Protocol):
    """What inference asks of the noise on Σ z zᵀ, z = (1, x).

    :class:`dpmoments.noise.law.NoiseLaw` answers it, and :class:`dpmoments.noise.rotated.RotatedNoise`.
    """

    @property
    def about(self) -> str:
        """What the law is conditional on, a sentence; empty where it holds as it stands."""

    def direction_variance(self, direction: FloatArray) -> float:
        """Var(uᵀN u)/2 for u over z: the variance of a cell off the diagonal, where noise is alike in all directions."""

    def product_covariance(self, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
        """Cov(N b)."""

    def functional_variance(self, weights: FloatArray) -> float:
        """Var(Σ Aᵢⱼ Nᵢⱼ)."""


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """M_AA β = M_Ay: noisy moments of k regressors A and a target y, before any repair.

    Encoded rows, about the release's centre (``origin`` 0) or about the zero of the table's units. With b = (−β, 1), the error of
    the equations at the true β is g = (M b)_A = (N b)_A + Σ zᵢeᵢ: privacy's noise, and what sampling leaves.

    Attributes
    ----------
    moments : ndarray of shape (k + 1, k + 1)
        M, the regressors (the constant first, where there is one), then the target.
    n_rows : float
    with_constant : bool
    noise : NoiseOfMoments
        Of Σ z zᵀ, z = (1, x) of all features.
    carry : ndarray of shape (k + 1, d + 1)
        T: the regressors and the target are T z.
    """

    moments: FloatArray
    n_rows: float
    with_constant: bool
    noise: NoiseOfMoments
    carry: FloatArray

    @classmethod
    def of(
        cls,
        release: Released,
        noise: NoiseOfMoments,
        features: Sequence[int],
        target: int,
        *,
        constant: bool,
        about_zero: bool = False,
    ) -> NormalEquations:
        """The equations of ``target`` on ``features``.

        Parameters
        ----------
        release : Released
            With a number of rows.
        noise : NoiseOfMoments
        features : sequence of int
        target : int
        constant : bool
            Whether a constant is among the regressors.
        about_zero : bool
            True: the constant is the value at the zero of the table's units. Else it is that at the release's centre.
        """
        d = len(release.feature_names)
        whole = np.zeros((d + 1, d + 1))
        whole[1:, 1:] = release.noisy_gram
        whole[0, 0] = release.n_rows if release.noisy_count is None else max(float(release.noisy_count), 1.0)
        if release.noisy_sum is not None:
            whole[0, 1:] = whole[1:, 0] = release.noisy_sum
        chosen = [*features, target]
        carry = np.zeros((len(chosen), d + 1))
        carry[np.arange(len(chosen)), np.array(chosen) + 1] = 1.0
        if about_zero:
            carry[:, 0] = release.zero_of_units[chosen]
        if constant:
            carry = np.vstack([np.eye(1, d + 1), carry])
        moments = carry @ whole @ carry.T
        return cls((moments + moments.T) / 2.0, float(whole[0, 0]), constant, noise, carry)

    @property
    def n_regressors(self) -> int:
        """k."""
        return len(self.moments) - 1

    @property
    def gram(self) -> FloatArray:
        """M_AA, shape (k, k)."""
        return self.moments[:-1, :-1]

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of M_AA, the least first, and eigenvectors, one a column."""
        eigenvalues, vectors = np.linalg.eigh(self.gram)
        return np.asarray(eigenvalues, dtype=np.float64), np.asarray(vectors, dtype=np.float64)

    @property
    def least_eigenvalue(self) -> float:
        """λ: how much the regressors vary where they vary least."""
        return float(self._spectrum[0][0])

    @cached_property
    def possible_gram(self) -> FloatArray:
        """The positive semi-definite matrix nearest to M_AA."""
        eigenvalues, vectors = self._spectrum
        return np.asarray((vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T)

    @cached_property
    def noise_variance(self) -> float:
        """v: the variance of a cell of noise, where the regressors vary least."""
        return self.noise.direction_variance(self.carry[:-1].T @ self._spectrum[1][:, 0])

    @property
    def noise_floor(self) -> float:
        """2√(v k): the least eigenvalue of the regressors that noise leaves to be seen."""
        return 2.0 * math.sqrt(self.noise_variance * self.n_regressors)

    @property
    def identified(self) -> bool:
        """Whether noise is small beside the least eigenvalue of the regressors: λ ≥ 2√(v k), v the variance of a cell."""
        least = self.least_eigenvalue
        return least >= self.noise_floor and least > 1e-12 * float(np.trace(self.gram))

    @property
    def nearly_linear(self) -> bool:
        """Whether noise is so small that the delta method and the inverted test agree: λ ≥ 2√(v k) + 30√v."""
        agree = self.noise_floor + AGREEMENT * math.sqrt(self.noise_variance)
        return self.identified and self.least_eigenvalue >= agree

    def residual_noise(self, beyond: FloatArray) -> float:
        """Standard deviation of the noise on bᵀM b."""
        carried = self.carry.T @ beyond
        return math.sqrt(max(self.noise.functional_variance(np.outer(carried, carried)), 0.0))

    def noise_covariance(self, beyond: FloatArray) -> FloatArray:
        """Cov((N b)_A) for b over regressors and target, shape (k + 1,) → (k, k)."""
        used = np.flatnonzero(self.carry[:-1].any(axis=0))
        rows = self.carry[:-1, used]
        return np.asarray(rows @ self.noise.product_covariance(self.carry.T @ beyond, used.tolist()) @ rows.T)

    def residual_variance(self, beyond: FloatArray, degrees_of_freedom: float | None = None) -> float:
        """bᵀM b over the number of rows, or over the degrees of freedom; 0 where noise made it negative."""
        over = self.n_rows if degrees_of_freedom is None else degrees_of_freedom
        return max(float(beyond @ self.moments @ beyond), 0.0) / over

    def error_covariance(self, beyond: FloatArray) -> FloatArray:
        """Cov(g) at b: of the noise, and of a sample whose residuals have one variance."""
        return self.noise_covariance(beyond) + self.residual_variance(beyond) * self.possible_gram

    @cached_property
    def solution(self) -> FloatArray:
        """β of the equations as they are, shape (k,)."""
        found = np.linalg.lstsq(self.gram, self.moments[:-1, -1], rcond=None)[0]
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def rough_errors(self) -> FloatArray:
        """What standard errors would be by the delta method, whether it holds or not, shape (k,)."""
        solved = np.linalg.pinv(self.gram)
        covariance = solved @ self.error_covariance(np.append(-self.solution, 1.0)) @ solved.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)), dtype=np.float64)
