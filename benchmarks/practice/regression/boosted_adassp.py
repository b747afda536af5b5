"""Boosted AdaSSP (Tang et al. 2023, arXiv 2303.03451, algorithm 1): one noisy Gram matrix, many noisy residual sums."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from benchmarks.practice.regression.adassp import FAILURE, PARTS, typical_norm
from benchmarks.practice.regression.vector_noise import gaussian_distance
from dpmoments.noise import symmetric_gaussian
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget

FloatArray = npt.NDArray[np.float64]


def boosted_adassp(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator, rounds: int = 100
) -> FloatArray:
    """Return the weights of one run, shape (k,).

    The least eigenvalue, XᵀX and all rounds together have a third of the squared Gaussian distance each, as in AdaSSP here. A
    round asks for the sum of x·clip(y − xᵀw, −1, 1), of sensitivity 1, and adds (XᵀX + noise + λI)⁻¹ of it to w. The authors'
    program (github.com/shuaitang/BoostedAdaSSP) has 100 rounds by default.
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("boosted AdaSSP is for (ε, δ)")
    k = rows.shape[1]
    scale = math.sqrt(PARTS) / gaussian_distance(budget)
    gram = rows.T @ rows
    least = float(np.linalg.eigvalsh(gram)[0]) + scale * (float(rng.standard_normal()) + float(ndtri(FAILURE)))
    ridge = max(0.0, scale * typical_norm(k, budget.kind) - max(least, 0.0))
    system = gram + symmetric_gaussian(k, scale, rng) + ridge * np.eye(k)
    weights = np.zeros(k)
    for _ in range(rounds):
        residual_sum = rows.T @ np.clip(target - rows @ weights, -1.0, 1.0)
        noise = scale * math.sqrt(rounds) * rng.standard_normal(k)
        weights = weights + np.linalg.solve(system, residual_sum + noise)
    return weights
