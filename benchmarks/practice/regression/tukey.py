"""TukeyEM (Amin, Joseph, Ribero & Vassilvitskii, ICLR 2023): a deep point among least-squares fits to parts of the table."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpmoments.privacy.budget import BudgetKind, PrivacyBudget

FloatArray = npt.NDArray[np.float64]
MODELS = 1000
"""Fits, each to a part of the rows; the paper's heuristic wants 1,000 rows per feature. With fewer, as many as have k rows."""


def tukey_fit(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator
) -> FloatArray | None:
    """Return the weights of one run, shape (k,), or None if the test that precedes the draw fails."""
    n, k = rows.shape
    models = min(MODELS, n // k)
    if models < 8:
        return None
    parts = np.array_split(rng.permutation(n), models)
    fits = np.array([np.linalg.lstsq(rows[part], target[part], rcond=None)[0] for part in parts])
    return tukey_median(fits, budget, rng)


def tukey_median(fits: FloatArray, budget: PrivacyBudget, rng: np.random.Generator) -> FloatArray | None:
    """Return a point drawn by the exponential mechanism on its approximate Tukey depth among the fits, or None.

    Half of ε tests whether a draw from points of depth at least m/4 is safe (lemma 3.6), with Laplace noise of scale 2/ε; the
    authors' program (google-research/dp_regression) has ε/2 there. The other half draws.
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("TukeyEM is for (ε, δ)")
    epsilon, delta = budget.epsilon / 2.0, budget.delta
    models = len(fits)
    ordered = np.sort(fits.T + 1e-10 * rng.random(fits.T.shape), axis=1)
    deepest = models // 2
    widths = np.log(ordered[:, ::-1][:, :deepest] - ordered[:, :deepest])
    log_volumes = widths.sum(axis=0)  # of the points of depth above i
    least = deepest // 2

    def safe(distance: int) -> bool:
        inner = log_volumes[least + distance + 1 : deepest - 1]
        if least - distance - 2 < 0 or not len(inner):
            return False
        steps = epsilon / 2.0 * np.arange(1, len(inner) + 1)
        return bool(np.min(log_volumes[least - distance - 2] - inner - steps) <= math.log(delta / 8.0) - epsilon)

    distance = -1
    while safe(distance + 1):
        distance += 1
    if distance + rng.laplace(scale=1.0 / epsilon) <= math.log(0.5 / delta) / epsilon:
        return None
    depths = np.arange(least, deepest + 1)
    volumes = log_volumes[depths - 1]
    shells = volumes.copy()
    shells[:-1] += np.log1p(-np.exp(np.minimum(np.diff(volumes), -1e-12)))
    depth = int(depths[np.argmax(shells + epsilon * depths + rng.gumbel(size=len(depths)))])
    low, high = ordered[:, depth - 1], ordered[:, models - depth]
    while True:
        point = rng.uniform(low, high)
        if depth == deepest or np.any(point < ordered[:, depth]) or np.any(point > ordered[:, models - depth - 1]):
            return np.asarray(point)
