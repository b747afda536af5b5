"""Exact losses of runs that draw one direction, from its Bingham density; and the temperature it was drawn at, from draws.

A run of ``iterative-eigenvectors`` that pays for one direction (in the plane, or of rank 1) is a few independent draws: noise on
the eigenvalues, on sum and count, and one direction with density ∝ exp(t uᵀGu). All their densities are known, the
direction's by its constant (:mod:`dpmoments.audit.exact`), which in the plane is a Bessel function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from dpmoments.audit.exact import bingham_epsilon, bingham_log_normalizer, bingham_rho
from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.base import Plan
from dpmoments.papers.mechanisms.iterative_eigenvectors import IterativeEigenvectorsPlan
from dpmoments.papers.mechanisms.spectral import temperature
from dpmoments.privacy.curves import zcdp_epsilon
from dpmoments.rows.moments import Moments

__all__ = [
    "leading_scores",
    "one_direction_epsilon",
    "stated_temperature",
    "temperature_at_least",
]

DISTINCT = 1e-6
"""Relative gap of two noisy eigenvalues above which the leading eigenvector of their sum is the direction that was drawn."""


def stated_temperature(plan: Plan) -> float | None:
    """The t that a plan states for its first direction, where that is the only one it pays for; else None.

    Then t is public, and does not depend on earlier draws.

    Examples
    --------
    >>> from dpmoments.mechanisms import IterativeEigenvectors, MomentShape
    >>> from dpmoments.privacy.budget import PrivacyBudget
    >>> mechanism = IterativeEigenvectors(eigenvalue_share=0.25)
    >>> plan = mechanism.plan(MomentShape(2, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> round(stated_temperature(plan), 12)
    0.75
    """
    if not isinstance(plan, IterativeEigenvectorsPlan) or plan.direction_budget is None:
        return None
    if min(plan.rank, plan.shape.n_features - 1) != 1:
        return None
    return temperature(plan.direction_budget, plan.neighbors, plan.mechanism.calibration)


def one_direction_epsilon(
    plan: Plan, first: Moments, second: Moments, delta: float, *, strength: float | None = None
) -> float | None:
    """The exact loss between two tables of all that a run draws.

    Parameters
    ----------
    plan : Plan
    first, second : Moments
        Exact moments of the two tables.
    delta : float
        For a zCDP plan, where the least ρ is stated as the ε that it implies; a pure plan does not look at it.
    strength : float, optional
        The temperature of the direction; default: as the plan states it.

    Returns
    -------
    float or None
        None for plans that pay for another number of directions than one.

    Notes
    -----
    Laplace noise on eigenvalues, sum and count: the suprema of their log-ratios add to the direction's, since the draws are
    independent and each supremum is reached on either side. Gaussian noise: its Rényi divergences are αμ²/2, the
    direction's are closed forms too, and they add. What is released is sorted and cut, and may lose less.
    """
    t = stated_temperature(plan)
    if t is None:
        return None
    assert isinstance(plan, IterativeEigenvectorsPlan)
    t = t if strength is None else strength
    grams = [np.asarray(moments.gram, dtype=np.float64) * moments.scale**2 for moments in (first, second)]
    eigenvalues = [np.linalg.eigvalsh(gram) for gram in grams]
    shifts = list((eigenvalues[1] - eigenvalues[0]) / plan.eigenvalue_scale)
    if plan.sum_scale is not None:
        sums = [np.asarray(moments.sum, dtype=np.float64) * moments.scale for moments in (first, second)]
        shifts += list((sums[1] - sums[0]) / plan.sum_scale)
        if not plan.count_is_public:
            shifts.append((second.count - first.count) / plan.sum_scale)
    hot = t * grams[0], t * grams[1]
    if plan.pure:
        return math.fsum(map(abs, shifts)) + bingham_epsilon(*hot)
    rho = math.fsum(shift**2 for shift in shifts) / 2.0 + bingham_rho(*hot)
    return zcdp_epsilon(rho, delta) if rho > 0.0 else 0.0


def leading_scores(grams: FloatArray, exact: FloatArray) -> FloatArray:
    """uᵀGu less its largest value, for u the leading eigenvector of released matrices that have one.

    Parameters
    ----------
    grams : ndarray of shape (N, d, d)
        Released.
    exact : ndarray of shape (d, d)
        G.

    Returns
    -------
    ndarray of shape (at most N,), none above 0
        Matrices whose two leading eigenvalues are equal do not show the direction, and are left out: the noise on eigenvalues
        is independent of it.
    """
    eigenvalues, vectors = np.linalg.eigh(grams)
    shown = eigenvalues[:, -1] - eigenvalues[:, -2] > DISTINCT * np.abs(eigenvalues).max(axis=1)
    u = vectors[shown, :, -1]
    gaps = np.linalg.eigvalsh(exact)[-1] * np.eye(len(exact)) - exact
    return np.asarray(-np.einsum("ni,ij,nj->n", u, gaps, u))


def temperature_at_least(scores: Sequence[FloatArray], exact: Sequence[FloatArray], failure: float) -> float:
    """A lower confidence bound on the temperature of Bingham draws, the same on several tables.

    The density exp(t·s(u) − log Z(t)) is an exponential family in t, s the score. By Chernoff's bound the total score of the
    draws reaches S with probability at most exp(−[f(t̂) − f(t)]) at any t below t̂, f(t) = tS − Σ log Z(t) and t̂ its maximum. The
    bound is the t at which that is ``failure``. Where temperatures differ between draws it bounds the largest.

    Parameters
    ----------
    scores : sequence of ndarray
        Of the draws on each table, as of :func:`leading_scores`.
    exact : sequence of ndarray of shape (d, d)
        The tables' Gram matrices.
    failure : float
        Probability that the bound is above the temperature.

    Examples
    --------
    >>> from dpmoments.noise import sample_bingham
    >>> gram = np.diag([4.0, 0.0])
    >>> draws = sample_bingham(3.0 * gram, 4000, np.random.default_rng(0))
    >>> 2.5 < temperature_at_least([-4.0 * draws[:, 1] ** 2], [gram], 0.001) < 3.0
    True
    """
    total = math.fsum(float(part.sum()) for part in scores)
    spectra = [np.linalg.eigvalsh(gram) for gram in exact]
    counted = [(len(part), spectrum - spectrum[-1]) for part, spectrum in zip(scores, spectra, strict=True)]

    def log_likelihood(t: float) -> float:
        return t * total - math.fsum(size * bingham_log_normalizer(t * spectrum) for size, spectrum in counted)

    highest = 1.0
    while log_likelihood(2.0 * highest) > log_likelihood(highest):
        highest *= 2.0
    found = scipy.optimize.minimize_scalar(
        lambda t: -log_likelihood(t), bounds=(0.0, 2.0 * highest), method="bounded", options={"xatol": 1e-9}
    )
    likeliest = float(found.x)
    enough = log_likelihood(likeliest) + math.log(failure)
    if enough <= 0.0:  # the uniform distribution, where f is 0, is not excluded
        return 0.0
    return float(scipy.optimize.brentq(lambda t: log_likelihood(t) - enough, 0.0, likeliest))
