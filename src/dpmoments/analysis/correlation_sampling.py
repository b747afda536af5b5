"""How correlations vary from sample to sample, by what kind of features they are of."""

from __future__ import annotations

import numpy as np

from dpmoments.analysis.feature_variances import FeatureVariances
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray

__all__ = ["sampling_variances"]


def sampling_variances(
    correlation: FloatArray, variances: FeatureVariances, i: IntegerArray, j: IntegerArray
) -> FloatArray:
    """n times the variance of correlations of rows drawn from a population, to first order.

    Of two features that are 0 or 1, their joint shares tell. Of one and a number that is normal given it, Das Gupta's (1960)
    (1 − r²)²·[1 + r²(1 − 6pq)/(4pq(1 − r²))]: the level's share varies with the sample. Else (1 − r²)².
    """
    square = correlation**2
    found = (1.0 - square) ** 2
    spread = np.clip(variances.share * (1.0 - variances.share), 1e-9, None)
    for of_share, other in ((i, j), (j, i)):
        mixed = variances.of_share[of_share] & ~variances.of_share[other]
        p_q = spread[of_share]
        biserial = (1.0 - square) * (1.0 - 1.5 * square + square / (4.0 * p_q))
        found[mixed] = biserial[mixed]
    both: BoolArray = variances.of_share[i] & variances.of_share[j]
    if both.any():
        found[both] = _of_two_shares(correlation[both], variances.share[i[both]], variances.share[j[both]])
    return np.maximum(found, 0.0)


def _of_two_shares(correlation: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """E[ψ²], ψ = uv − r(u² + v²)/2 the influence of a row, u and v standardised, over the four cells of their joint shares."""
    p, q = np.clip(p, 1e-9, 1.0 - 1e-9), np.clip(q, 1e-9, 1.0 - 1e-9)
    deviation = np.sqrt(p * (1.0 - p) * q * (1.0 - q))
    joint = np.clip(p * q + correlation * deviation, np.maximum(0.0, p + q - 1.0), np.minimum(p, q))
    total = np.zeros_like(p)
    for x, y, share in ((1, 1, joint), (1, 0, p - joint), (0, 1, q - joint), (0, 0, 1.0 - p - q + joint)):
        u, v = (x - p) / np.sqrt(p * (1.0 - p)), (y - q) / np.sqrt(q * (1.0 - q))
        total += share * (u * v - correlation * (u**2 + v**2) / 2.0) ** 2
    return total
