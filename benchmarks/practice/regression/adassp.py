"""AdaSSP (Wang 2018, algorithm 2): sufficient statistics with noise, and a ridge just large enough for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from benchmarks.practice.regression.vector_noise import gaussian_distance, vector_noise
from dpmoments.noise import matrix_laplace, symmetric_gaussian
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget

FloatArray = npt.NDArray[np.float64]

FAILURE = 0.05
"""ϱ of the paper: its bounds fail with this probability."""
PARTS = 3
"""Queries, each at a third of the budget: the least eigenvalue, XᵀX, Xᵀy; all of sensitivity 1 under add-remove."""


@dataclass(frozen=True, eq=False)
class NoisyStatistics:
    """What AdaSSP releases.

    Attributes
    ----------
    gram : ndarray of shape (k, k)
    cross : ndarray of shape (k,)
    least_eigenvalue : float
        A lower bound on that of XᵀX but with probability ``FAILURE``, at least 0.
    noise_norm : float
        A bound on the spectral norm of the noise in ``gram``, with the same exception.
    """

    gram: FloatArray
    cross: FloatArray
    least_eigenvalue: float
    noise_norm: float


def noisy_statistics(
    gram: FloatArray, cross: FloatArray, budget: PrivacyBudget, rng: np.random.Generator
) -> NoisyStatistics:
    """The three parts, calibrated jointly.

    Where the paper gives each (ε/3, δ/3) by the classical bound, here Δ/σ = μ/√3 each, μ that of the whole (ε, δ) budget: all
    three together are one Gaussian mechanism. The noise on XᵀX is isotropic, with half the variance off the diagonal, and the
    bound on its norm is a simulated quantile in place of the paper's √(k log(2k²/ϱ)), which is larger. Under a pure ε, for which
    the paper has nothing: ε/3 each, Laplace, matrix Laplace and noise of Gamma length.
    """
    k, least = len(cross), float(np.linalg.eigvalsh(gram)[0])
    if budget.kind is BudgetKind.PURE:
        scale = PARTS / budget.epsilon
        noise = matrix_laplace(k, 1.0 / scale, rng)
        least += scale * (float(rng.laplace()) - math.log(0.5 / FAILURE))
    else:
        scale = math.sqrt(PARTS) / gaussian_distance(budget)
        noise = symmetric_gaussian(k, scale, rng)
        least += scale * (float(rng.standard_normal()) + float(ndtri(FAILURE)))
    norm = scale * typical_norm(k, budget.kind)
    noisy_cross = cross + vector_noise((k,), 1.0, budget, 1.0 / PARTS, rng)
    return NoisyStatistics(gram + noise, noisy_cross, max(least, 0.0), norm)


@cache
def typical_norm(k: int, kind: BudgetKind) -> float:
    """What the spectral norm of the noise on XᵀX at scale 1 passes with probability ``FAILURE``, of 400 draws."""
    rng = np.random.default_rng(k)
    draw = matrix_laplace if kind is BudgetKind.PURE else symmetric_gaussian
    norms = [float(np.abs(np.linalg.eigvalsh(draw(k, 1.0, rng))).max()) for _ in range(400)]
    return float(np.quantile(norms, 1.0 - FAILURE))


def adassp(gram: FloatArray, cross: FloatArray, budget: PrivacyBudget, rng: np.random.Generator) -> FloatArray:
    """The weights of one run, shape (k,): (XᵀX + noise + λI)⁻¹(Xᵀy + noise).

    λ = max(0, bound on the noise − bound on the least eigenvalue).
    """
    found = noisy_statistics(gram, cross, budget, rng)
    ridge = max(0.0, found.noise_norm - found.least_eigenvalue)
    return np.asarray(np.linalg.solve(found.gram + ridge * np.eye(len(cross)), found.cross))
