"""Noise on a vector of known Euclidean sensitivity, under a pure or an approximate budget."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale

FloatArray = npt.NDArray[np.float64]


@cache
def gaussian_distance(budget: PrivacyBudget) -> float:
    """μ of an (ε, δ) budget: Gaussian noise of σ on a query of sensitivity Δ may have Δ/σ = μ (Balle & Wang 2018).

    Several such queries, each perhaps chosen by the answers before, spend √Σμ² together (Dong, Roth & Su 2022, corollary 3.3).
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError(f"Gaussian noise has no calibration to {budget}: give epsilon and delta above 0")
    return 1.0 / gaussian_noise_scale(budget.epsilon, budget.delta, 1.0)


def vector_noise(
    size: tuple[int, ...], sensitivity: float, budget: PrivacyBudget, share: float, rng: np.random.Generator
) -> FloatArray:
    """Noise for a query of shape (k, …), one column a run, at a share of a budget.

    Under a pure budget of density ∝ exp(−ε·share‖z‖₂/Δ): a uniform direction of length Gamma(k, Δ/(ε·share)), and shares of
    queries add up to 1 (Chaudhuri et al. 2011, algorithm 1). Else Gaussian, with Δ/σ = μ√share: shares add up to 1, too.
    """
    normal = rng.standard_normal(size)
    if budget.kind is BudgetKind.PURE:
        length = rng.gamma(size[0], sensitivity / (budget.epsilon * share), size[1:])
        return normal / np.linalg.norm(normal, axis=0) * length
    return normal * (sensitivity / (gaussian_distance(budget) * np.sqrt(share)))
