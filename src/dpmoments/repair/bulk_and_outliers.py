"""The automatic repair: eigenvalues lost in the noise are pooled, eigenvalues that stand out of it are corrected one by one."""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.repair.rotation_invariant import possible_eigenvalues, rotation_invariant_eigenvalues
from dpmoments.repair.spectral import SpectralNoise

__all__ = ["bulk_and_outlier_eigenvalues", "pooled_spread", "trace_estimate"]


OUTLIER_CENTER = 1.5
"""An eigenvalue so far beyond the edge is taken for an outlier with probability 1/2, in units of √v·d^(−2/3). In those units the
largest eigenvalue of noise has mean −1.2 and standard deviation 1.3 (Tracy & Widom 1996)."""
OUTLIER_WIDTH = 2.0
"""The odds are e times as high for every such distance more, in the same units."""
PRIOR_TRACES = np.exp(np.linspace(math.log(1e-4), 0.0, 240))
CLEAR = 20.0
"""So many standard deviations above 0 a trace is taken as it is."""
NEGLIGIBLE = 1e-3
"""A bulk of less weight than this is left out of the average."""


def bulk_and_outlier_eigenvalues(
    eigenvalues: FloatArray, noise: SpectralNoise, upper: float | None, attained: float = 0.0
) -> FloatArray:
    """Estimate v_iᵀ G v_i, v_i the eigenvectors of a noisy matrix G + N, at any noise and any d.

    The lowest b eigenvalues are taken for a bulk in which noise dominates, the others for outliers. Outliers get their
    rotation-invariant values. The bulk is pulled towards its mean by the share of its spread that the noise explains, which uses
    the whole bulk at once and so is steadier than any correction of single eigenvalues; its mean comes from what the trace leaves
    to it. The result is the average over b, weighted by how far each eigenvalue stands out of the bulk below it.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Of the noisy matrix, ascending.
    noise : SpectralNoise
    upper : float or None
        Bound on the trace of G; None where there is none.
    attained : float
        Prior probability that the trace of G equals ``upper``, as it does when all rows have the largest norm allowed.

    Returns
    -------
    ndarray of shape (d,)
        Ascending, non-negative, with a sum of at most ``upper``.

    Notes
    -----
    Derivation, and why the constants hardly matter: ``docs/derivations/repairs.md``.

    Examples
    --------
    >>> noise = SpectralNoise(size=4, cell_variance=0.5, trace_variance=4.0)
    >>> bulk_and_outlier_eigenvalues(np.array([-2.0, -0.5, 1.0, 40.0]), noise, upper=100.0).round(1)
    array([ 0. ,  0. ,  0. , 39.9])
    """
    d = len(eigenvalues)
    alone = rotation_invariant_eigenvalues(eigenvalues, noise)
    if noise.variance == 0.0 or d < 2:
        return possible_eigenvalues(alone, upper)
    deviation = math.sqrt(noise.trace_variance)
    trace = trace_estimate(float(eigenvalues.sum()), deviation, upper, attained)
    above = np.append(
        np.cumsum(np.maximum(alone, 0.0)[::-1])[::-1], 0.0
    )  # above[b]: what outliers from b on take of the trace
    means = np.cumsum(eigenvalues) / np.arange(1, d + 1)
    total = np.zeros(d)
    assigned, open_weight = 0.0, 1.0
    for size in range(d, 0, -1):
        room = max(trace - float(above[size]), 0.0)
        mean = float(means[size - 1])
        within = noise.block(size)
        stands_out = _outlier_weight(float(eigenvalues[size - 1]) - mean, within, room) if size > 1 else 0.0
        weight, open_weight = open_weight * (1.0 - stands_out), open_weight * stands_out
        if weight > NEGLIGIBLE:
            estimate = alone.copy()
            if size > 1:
                bulk = room / size + pooled_spread(eigenvalues[:size] - mean, within, _largest(room, deviation, upper))
                # Pooling gains where a bulk has many dimensions; in two it cannot (Stein 1956).
                local = min(1.0, 2.0 / within.dimensions)
                estimate[:size] = (1.0 - local) * bulk + local * alone[:size]
            total += weight * possible_eigenvalues(estimate, upper)
            assigned += weight
        if open_weight < NEGLIGIBLE:
            break
    return total / assigned


def pooled_spread(deviations: FloatArray, noise: SpectralNoise, largest_trace: float) -> FloatArray:
    """Deviations from the mean, times the share of their sum of squares that noise does not explain.

    Parameters
    ----------
    deviations : ndarray of shape (b,)
        Eigenvalues less their mean.
    noise : SpectralNoise
        On the same b dimensions.
    largest_trace : float
        t: no matrix of trace at most t has ‖G − (tr G/b) I‖_F² above t²(1 − 1/b).
    """
    observed = float(np.sum(deviations**2))
    if observed == 0.0:
        return deviations
    possible = largest_trace**2 * (1.0 - 1.0 / len(deviations))
    spread = min(max(observed - noise.energy, 0.0), possible)
    return deviations * (spread / observed)


def trace_estimate(noisy_trace: float, deviation: float, upper: float | None, attained: float = 0.0) -> float:
    """Estimate a trace known to lie in [0, upper], seen with noise of standard deviation ``deviation``.

    Its posterior mean, the noise being taken for normal. Prior: its logarithm uniform on four decades below ``upper``, since
    rows seldom fill their bounds. With ``attained`` > 0, for second moments: that probability on
    ``upper`` itself, and the possible value nearest to the noisy one in the place of the rest.

    Examples
    --------
    >>> trace_estimate(2000.0, 10.0, upper=1000.0)
    1000.0
    >>> round(trace_estimate(5.0, 10.0, upper=1000.0), 1)
    3.6
    >>> round(trace_estimate(95.0, 10.0, upper=100.0, attained=0.2), 1)
    97.8
    """
    limit = math.inf if upper is None else upper
    nearest = min(max(noisy_trace, 0.0), limit)
    if upper is None or upper <= 0.0 or deviation == 0.0:
        return nearest
    if attained == 0.0:
        if noisy_trace > CLEAR * deviation:
            return nearest
        possible = upper * PRIOR_TRACES
        logarithms = -0.5 * ((noisy_trace - possible) / deviation) ** 2
        weights = np.exp(logarithms - logarithms.max())
        return float(weights @ possible / weights.sum())
    low, high = -noisy_trace / deviation, (limit - noisy_trace) / deviation
    at_limit = attained * math.exp(-high * high / 2.0) / (math.sqrt(2.0 * math.pi) * deviation)
    below = (1.0 - attained) * float(scipy.special.ndtr(high) - scipy.special.ndtr(low)) / limit
    if at_limit + below == 0.0:
        return nearest
    return (at_limit * limit + below * nearest) / (at_limit + below)


def _outlier_weight(height: float, noise: SpectralNoise, room: float) -> float:
    """Probability given to an eigenvalue, ``height`` above the mean of a bulk of which it is the largest, being an outlier."""
    unit = math.sqrt(noise.variance) * noise.size ** (-2.0 / 3.0)
    beyond = ((height - noise.edge) / unit - OUTLIER_CENTER) / OUTLIER_WIDTH
    # An eigenvalue of G stands out only from the threshold on, and none is larger than the trace.
    threshold = noise.threshold
    can_stand_out = min(1.0, max(0.0, 2.0 * (room / threshold - 1.0))) if threshold > 0.0 else 1.0
    return float(scipy.special.expit(beyond)) * can_stand_out


def _largest(room: float, deviation: float, upper: float | None) -> float:
    reach = room + 2.0 * deviation
    return reach if upper is None else min(reach, upper)
