"""Cells of a covariance, most of them nearly zero, estimated by their posterior means under a prior that is read off them."""

from __future__ import annotations

import numpy as np

from dpmoments.foundation.arrays import FloatArray

__all__ = ["SPREADS", "posterior_moments"]


SPREADS = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8])
"""Standard deviations τ_k of the parts of the prior, in correlations."""
STEPS = 40
"""Of the EM algorithm."""
LEAST_SPREAD = 1e-40
"""In squared correlations: a cell without noise stays as it is."""


def posterior_moments(
    cells: FloatArray, noise_variances: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """E[θ_i | x_i] and Var(θ_i | x_i) for x_i ~ N(θ_i, s_i²) and θ_i ~ c_i·Σ_k π_k N(0, τ_k²), π of greatest likelihood.

    The prior is in correlations: with c = √(v_i v_j) most pairs of features have one near 0, and how many have not is read off
    the cells themselves (Robbins 1956; the mixture of normals about 0 is that of Stephens 2017).

    Parameters
    ----------
    cells : ndarray of shape (m,)
        x.
    noise_variances : ndarray of shape (m,)
        s².
    scales : ndarray of shape (m,)
        c ≥ 0: the largest magnitude that θ can have. Where it is 0, so is the estimate.

    Returns
    -------
    means : ndarray of shape (m,)
        Each between 0 and x_i.
    variances : ndarray of shape (m,)

    Examples
    --------
    >>> cells = np.array([0.3, 0.01, -0.02, 0.005, 0.0, -0.01, 0.02, 0.01])
    >>> posterior_moments(cells, np.full(8, 1e-4), np.ones(8))[0].round(2) + 0.0
    array([ 0.3 ,  0.  , -0.01,  0.  ,  0.  ,  0.  ,  0.01,  0.  ])
    """
    means, variances = np.zeros_like(cells), np.zeros_like(cells)
    possible = scales > 0.0
    if not possible.any():
        return means, variances
    x = cells[possible, None]
    noise = noise_variances[possible, None]
    prior = (scales[possible, None] * SPREADS) ** 2
    spread = np.maximum(noise + prior, LEAST_SPREAD * scales[possible, None] ** 2)
    log_likelihood = -0.5 * (np.log(spread) + x**2 / spread)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(SPREADS), 1.0 / len(SPREADS))
    for _ in range(STEPS):
        weights = weights * (likelihood.T @ (1.0 / (likelihood @ weights))) / len(x)
    posterior = likelihood * weights / (likelihood @ weights)[:, None]
    kept = prior / spread
    mean = (posterior * kept).sum(axis=1) * x[:, 0]
    means[possible] = mean
    variances[possible] = (posterior * (kept * noise + (kept * x) ** 2)).sum(axis=1) - mean**2
    return means, np.maximum(variances, 0.0)
