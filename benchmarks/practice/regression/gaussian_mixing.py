"""Regressions from Gaussian sketches with noise: linear mixing (Lev et al. 2025, arXiv 2505.24603), least squares on a sketch of
rows and targets, and iterative Hessian mixing (Lev et al. 2026, arXiv 2601.07545), Newton steps with sketched Hessians."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale

FloatArray = npt.NDArray[np.float64]


def sketch_epsilon(least: float, rows: int, delta: float, sketches: int = 1) -> float:
    """Return ε at δ of sketches of so many rows, if the least eigenvalue of AᵀA plus noise is at least ``least``.

    The Rényi divergence of order α is k/(2(α − 1))·(α log(1 − 1/γ) − log(1 − α/γ)) for rows of norm 1 and 1 < α < γ (theorem 1),
    turned into (ε, δ) by the conversion of Canonne, Kamath & Steinke (2020).
    """

    def epsilon(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        divergence = (
            sketches * rows / (2.0 * (order - 1.0)) * (order * math.log1p(-1.0 / least) - math.log1p(-order / least))
        )
        return divergence + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)

    bounds = (math.log(1e-6), math.log(least - 1.0) - 1e-9)
    return float(minimize_scalar(epsilon, bounds=bounds, method="bounded", options={"xatol": 1e-6}).fun)


@cache
def _least_eigenvalue(epsilon: float, delta: float, rows: int, sketches: int = 1) -> float:
    """Return the γ at which sketches and noisy eigenvalue together cost ε: the eigenvalue's noise is γ/√k."""

    def excess(log_least: float) -> float:
        least = math.exp(log_least)
        of_eigenvalue = math.sqrt(2.0 * math.log(3.75 / delta)) * math.sqrt(rows) / least
        return sketch_epsilon(least, rows, delta / 3.0, sketches) + of_eigenvalue - epsilon

    return math.exp(brentq(excess, math.log(1.01), math.log(1e12)))


def linear_mixing(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator, per_feature: float = 2.5
) -> FloatArray:
    """Return the weights of one run, shape (k,): rows have norm at most 1, and |y| is at most 1.

    The sketch has ``per_feature`` rows per feature; 2.5 is the setting of the authors' program (github.com/omrilev1/GaussMix).
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("linear mixing is for (ε, δ)")
    table = np.column_stack([rows, target]) / math.sqrt(2.0)
    k = rows.shape[1]
    sketched = math.ceil(per_feature * (k + 1))
    wanted = _least_eigenvalue(budget.epsilon, budget.delta, sketched)
    noise = wanted / math.sqrt(sketched)
    margin = math.sqrt(2.0 * math.log(3.0 / budget.delta))
    least = float(np.linalg.eigvalsh(table.T @ table)[0]) + noise * (float(rng.standard_normal()) - margin)
    added = math.sqrt(max(0.0, wanted - max(least, 0.0)))
    sketch = _sketch(table.T @ table, sketched, added, rng)
    return np.asarray(np.linalg.lstsq(sketch[:, :k], sketch[:, k], rcond=None)[0])


def _sketch(gram: FloatArray, sketched: int, added: float, rng: np.random.Generator) -> FloatArray:
    """Draw S·A + noise: for a Gaussian S its rows have the law N(0, AᵀA), and are drawn so, without the n columns of S."""
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    shape = (sketched, len(gram))
    return np.asarray(rng.standard_normal(shape) @ root.T + added * rng.standard_normal(shape))


def hessian_mixing(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator, steps: int = 3
) -> FloatArray:
    """Return the weights of one run, shape (k,): rows have norm at most 1, and |y| is at most 1.

    Three steps, six rows of a sketch for each feature (or as many as its failure probability asks for) and the split of (ε, δ)
    are those of the authors' program (github.com/omrilev1/HessianMix).
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("Hessian mixing is for (ε, δ)")
    epsilon, delta, k = budget.epsilon / 2.0, budget.delta, rows.shape[1]
    failure = delta / 10.0
    sketched = int(6.0 * max(k, math.log(4.0 * steps / failure)))
    wanted = _least_eigenvalue(epsilon, 0.75 * delta, sketched, steps)
    residual_noise = gaussian_noise_scale(epsilon, delta / 4.0, 1.0) * math.sqrt(steps)
    gram = rows.T @ rows
    margin = math.sqrt(2.0 * math.log(4.0 / failure))
    least = float(np.linalg.eigvalsh(gram)[0]) + wanted / math.sqrt(sketched) * (float(rng.standard_normal()) - margin)
    added = math.sqrt(max(0.0, wanted - max(least, 0.0)))
    weights = np.zeros(k)
    for _ in range(steps):
        sketch = _sketch(gram, sketched, added, rng)
        step = rows.T @ np.clip(target - rows @ weights, -1.0, 1.0) + residual_noise * rng.standard_normal(k)
        weights = weights + np.linalg.solve(sketch.T @ sketch / sketched, step)
    return weights
