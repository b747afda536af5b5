"""How sure an explained variance is: what noise and sampling do to it, to first order."""

from __future__ import annotations

import numpy as np

from dpmoments.analysis.fourth_cumulants import fourth_cumulants
from dpmoments.analysis.functionals import NoisyMoments
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray, IntegerArray

__all__ = ["explained_variance_noise", "largest_possible_variance"]

LEAST_SAMPLING = 0.05
"""The sampling variance is this share of that of normal rows at least."""
LARGEST_BLOCK = 4_000_000
"""Weights of several components at a time, so many numbers at most."""


def explained_variance_noise(
    release: Released,
    moments: NoisyMoments,
    chosen: IntegerArray,
    scale: FloatArray,
    components: FloatArray,
    eigenvalues: FloatArray,
    matrix: FloatArray,
    *,
    by_deviation: bool,
) -> tuple[FloatArray, FloatArray]:
    """Variances of vᵀSv, S the scaled covariance, by noise and by sampling, each of shape (k,).

    Parameters
    ----------
    release : Released
    moments : NoisyMoments
        Of the release, about its mean, or about zero where it has none.
    chosen : integer ndarray of shape (d,)
        Features.
    scale : ndarray of shape (d,)
        What they are divided by, in the table's units.
    components : ndarray of shape (k, d)
        v, rows.
    eigenvalues : ndarray of shape (k,)
        vᵀSv.
    matrix : ndarray of shape (d, d)
        S.
    by_deviation : bool
        Whether the scale is the released standard deviation, which varies too: dR = dC − R·(dC_ii + dC_jj)/2 in its units.
    """
    d, n = len(chosen), moments.n_rows
    in_units = moments.unit[chosen] / scale
    privacy, sampling = np.empty(len(components)), np.empty(len(components))
    step = max(1, LARGEST_BLOCK // d**2)
    for start in range(0, len(components), step):
        block = slice(start, start + step)
        vectors, values = components[block], eigenvalues[block]
        weights = vectors[:, :, None] * vectors[:, None, :]
        if by_deviation:
            weights[:, np.arange(d), np.arange(d)] -= values[:, None] * vectors**2
        product = weights @ matrix
        normal = np.maximum(2.0 * np.einsum("pij,pji->p", product, product), 0.0)
        beyond = fourth_cumulants(release, chosen, scale, weights)
        sampling[block] = np.maximum(normal + beyond, LEAST_SAMPLING * normal) / n
        on_moments = np.zeros((len(vectors), d + 1, d + 1))
        on_moments[:, 1:, 1:] = weights * np.outer(in_units, in_units)
        if not by_deviation:
            on_moments[:, 0, 0] = -values  # the count divides, and has noise of its own
        places = np.broadcast_to(np.concatenate([[0], chosen + 1]), (len(vectors), d + 1))
        privacy[block] = moments.variances(places, on_moments) / n**2
    return privacy, sampling


def largest_possible_variance(release: Released, chosen: IntegerArray, scale: FloatArray) -> float:
    """The variance of all features together, each as far from the middle of its bounds as can be; about zero, from that."""
    lower, upper = (bound[chosen] / scale for bound in release.schema.feature_bounds)
    reach = (upper - lower) / 2.0 if release.noisy_sum is not None else np.maximum(np.abs(lower), np.abs(upper))
    return float(np.sum(reach**2))
