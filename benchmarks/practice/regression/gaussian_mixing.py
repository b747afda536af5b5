"""Linear mixing (Lev et al. 2025, arXiv 2505.24603): least squares on a Gaussian sketch of rows and targets with noise."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar

from dpmoments.privacy.budget import BudgetKind, PrivacyBudget

__all__ = ["linear_mixing", "sketch_epsilon"]

FloatArray = npt.NDArray[np.float64]


def sketch_epsilon(least: float, rows: int, delta: float) -> float:
    """Return ε at δ of a sketch of so many rows, if the least eigenvalue of AᵀA plus noise is at least ``least``.

    The Rényi divergence of order α is k/(2(α − 1))·(α log(1 − 1/γ) − log(1 − α/γ)) for rows of norm 1 and 1 < α < γ (theorem 1),
    turned into (ε, δ) by the conversion of Canonne, Kamath & Steinke (2020).
    """

    def epsilon(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        divergence = rows / (2.0 * (order - 1.0)) * (order * math.log1p(-1.0 / least) - math.log1p(-order / least))
        return divergence + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)

    bounds = (math.log(1e-6), math.log(least - 1.0) - 1e-9)
    return float(minimize_scalar(epsilon, bounds=bounds, method="bounded", options={"xatol": 1e-6}).fun)


@cache
def _least_eigenvalue(epsilon: float, delta: float, rows: int) -> float:
    """Return the γ at which sketch and noisy eigenvalue together cost ε: the eigenvalue's noise is γ/√k."""

    def excess(log_least: float) -> float:
        least = math.exp(log_least)
        of_eigenvalue = math.sqrt(2.0 * math.log(3.75 / delta)) * math.sqrt(rows) / least
        return sketch_epsilon(least, rows, delta / 3.0) + of_eigenvalue - epsilon

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
    # S·A for a Gaussian S has rows of law N(0, AᵀA): drawn so, without the n columns of S.
    values, vectors = np.linalg.eigh(table.T @ table)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    sketch = rng.standard_normal((sketched, k + 1)) @ root.T + added * rng.standard_normal((sketched, k + 1))
    return np.asarray(np.linalg.lstsq(sketch[:, :k], sketch[:, k], rcond=None)[0])
