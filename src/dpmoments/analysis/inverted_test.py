"""The inverted test of Anderson & Rubin (1949): a confidence set that holds however noisy the regressors are."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import scipy

from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.foundation.arrays import FloatArray

__all__ = ["confidence_limits", "smallest_statistic"]

ROUNDS = 25
"""Re-weightings at most; nearly all searches need five."""
SETTLED = 1e-6
FARTHEST_STEPS = 60
"""Doublings of the step in which an end of the set is looked for."""


def smallest_statistic(
    equations: NormalEquations, fixed: Mapping[int, float], start: FloatArray | None = None
) -> float:
    """min over the entries of b that are not fixed of gᵀ Cov(g)⁻¹ g, g = (M b)_A.

    At the true b the statistic is χ² with as many degrees of freedom as coefficients are fixed, since each of the others takes
    one away; that needs nothing of M_AA, so that it holds where noise hides the regressors.

    Parameters
    ----------
    equations : NormalEquations
    fixed : mapping of int to float
        Entries of b = (−β, 1), the target's among them (last).
    start : ndarray of shape (k + 1,), optional
        Where to start.

    Notes
    -----
    Cov(g) depends on b: the entries are found for given weights, the weights for given entries, in turn; the least value met is
    returned, of all at weights that belong to their entries.
    """
    size = equations.n_regressors + 1
    beyond = np.zeros(size) if start is None else start.copy()
    held = np.array(sorted(fixed))
    beyond[held] = [fixed[place] for place in held]
    free = np.setdiff1d(np.arange(size), held)
    system = equations.moments[:-1]
    best = math.inf
    for _ in range(ROUNDS):
        root = _inverse_root(equations.error_covariance(beyond))
        whitened = root @ system
        best = min(best, float(np.sum((whitened @ beyond) ** 2)))
        if not len(free):
            break
        found = np.linalg.lstsq(whitened[:, free], -whitened[:, held] @ beyond[held], rcond=None)[0]
        moved = float(np.linalg.norm(found - beyond[free]))
        beyond[free] = found
        if moved <= SETTLED * float(np.linalg.norm(beyond)):
            break
    return best


def confidence_limits(equations: NormalEquations, place: int, limit: float, step: float) -> tuple[float, float]:
    """The ends of {β_j : smallest statistic ≤ limit}; infinite where the set is unbounded.

    Parameters
    ----------
    equations : NormalEquations
    place : int
        j among the regressors.
    limit : float
        Quantile of χ² with one degree of freedom.
    step : float
        A guess of the half-width.
    """
    last = equations.n_regressors
    # Far out the target does not matter: both ends have one limit.
    if smallest_statistic(equations, {place: 1.0, last: 0.0}) <= limit:
        return -math.inf, math.inf
    middle = float(equations.solution[place])
    start = np.append(-equations.solution, 1.0)

    def excess(value: float) -> float:
        return smallest_statistic(equations, {place: -value, last: 1.0}, start) - limit

    if not excess(middle) <= 0.0:  # where rounding decides, nothing is bounded
        return -math.inf, math.inf
    ends = []
    for side in (-1.0, 1.0):
        reach = step if step > 0.0 and math.isfinite(step) else 1.0
        inside = 0.0
        for _ in range(FARTHEST_STEPS):
            if excess(middle + side * reach) > 0.0:
                break
            inside, reach = reach, 2.0 * reach
        else:
            ends.append(side * math.inf)
            continue
        found = scipy.optimize.brentq(
            lambda offset, side=side: excess(middle + side * offset), inside, reach, rtol=1e-4
        )
        ends.append(middle + side * float(found))
    return ends[0], ends[1]


def _inverse_root(covariance: FloatArray) -> FloatArray:
    """R with RᵀR = covariance⁻¹; directions without any error count as known to twelve digits."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    floor = max(float(eigenvalues[-1]) * 1e-12, np.finfo(float).tiny)
    return np.asarray((vectors / np.sqrt(np.maximum(eigenvalues, floor))).T)
