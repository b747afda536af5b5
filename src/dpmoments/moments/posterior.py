"""Posterior moments of many noisy numbers under a prior that fits all of them.

Numbers of one kind (the correlations of two kinds of columns, the variances of numbers) have a common prior, a mixture whose
weights are found by expectation maximization. What noise hides moves to what the others show; what is clear stays.
"""

from __future__ import annotations

import numpy as np

from dpmoments.base.arrays import FloatArray

_SPREADS = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8])
"""SDs of the normal distributions that the prior of a correlation mixes."""
_STEPS = 40
_FOUND, _CLEAR = 6.0, 8.0
"""Noise SDs above 0 up to which a variance is its posterior, and from which it is unchanged."""
_SIZES = np.exp(np.linspace(np.log(1e-4), 0.0, 34))
"""Grid of variances, as shares of the largest possible one."""
_ALIKE = 20.0
"""Variances that the prior counts as seen evenly over the grid: wide with few columns."""
_FRACTIONS = 6.0
"""Noise SDs by which a Boolean's variance falls short if it surely holds fractions."""


def posterior_mean(values: FloatArray, variances: FloatArray, scales: FloatArray) -> FloatArray:
    """Return E[θ | values], values ~ N(θ, variances).

    θ is the scale times a draw from one mixture of normals about 0.
    """
    prior = (scales[:, None] * _SPREADS) ** 2
    total = np.maximum(variances[:, None] + prior, 1e-300)
    weights, likelihood = _fitted(-0.5 * (np.log(total) + values[:, None] ** 2 / total), 0.0)
    posterior = likelihood * weights / (likelihood @ weights)[:, None]
    return np.asarray((posterior * prior / total).sum(axis=1) * values)


def posterior_variance(values: FloatArray, noise: FloatArray, largest: FloatArray) -> FloatArray:
    """Return √E[v² | values] of variances v in (0, largest], values ~ N(v, noise²).

    The root mean square rather than the mean: a scale that is too small costs more than one that is too large.
    """
    if not len(values):
        return values
    sizes = largest[:, None] * _SIZES
    deviations = np.maximum(noise, 1e-300)[:, None]
    weights, likelihood = _fitted(-0.5 * ((values[:, None] - sizes) / deviations) ** 2, _ALIKE)
    posterior = likelihood * weights / (likelihood @ weights)[:, None]
    found = np.sqrt((posterior * sizes**2).sum(axis=1))
    clear = np.clip((values / deviations[:, 0] - _FOUND) / (_CLEAR - _FOUND), 0.0, 1.0)
    return np.asarray(found + clear * (np.minimum(values, largest) - found))


def surety_of_fractions(lacking: FloatArray, noise: FloatArray) -> FloatArray:
    """Return how surely Booleans hold fractions: 0 to 1, by the lack of their variances.

    ``lacking`` is p(1 − p) less the variance and what clipping or rounding may take, ``noise`` its SD. The result is 0 up
    to 3 SDs, and 1 from 6 SDs.
    """
    return np.asarray(np.clip(2.0 * (lacking / (_FRACTIONS * noise + 1e-9)) - 1.0, 0.0, 1.0))


def _fitted(logarithms: FloatArray, alike: float) -> tuple[FloatArray, FloatArray]:
    """Return the mixture's weights and likelihoods, (n, components), each row up to a factor."""
    likelihood = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    n, m = likelihood.shape
    weights = np.full(m, 1.0 / m)
    for _ in range(_STEPS):
        weights = (weights * (likelihood.T @ (1.0 / (likelihood @ weights))) + alike / m) / (n + alike)
    return weights, likelihood
