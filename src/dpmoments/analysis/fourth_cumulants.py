"""What is known of fourth moments from shares alone: how a sample's second moments of levels and Booleans vary."""

from __future__ import annotations

import numpy as np

from dpmoments.analysis.feature_variances import indicators
from dpmoments.analysis.levels import columns_with_places
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray, IntegerArray

__all__ = ["fourth_cumulants"]


def fourth_cumulants(release: Released, chosen: IntegerArray, scale: FloatArray, weights: FloatArray) -> FloatArray:
    """What columns of levels add to the variance of xᵀWx beyond that of normal rows with their covariance, shape (p,).

    Of a row, x centred and divided by ``scale``; column by column, as though fourth cumulants between columns were 0, as those of
    numbers are taken to be.

    Parameters
    ----------
    release : Released
        With a mean; without one nothing is added.
    chosen : integer ndarray of shape (k,)
        Features.
    scale : ndarray of shape (k,)
    weights : ndarray of shape (p, k, k)
        Symmetric W.
    """
    added = np.zeros(len(weights))
    if release.noisy_sum is None:
        return added
    zero_one, mean = indicators(release), release.mean
    for _, features in columns_with_places(release):
        places = np.flatnonzero(np.isin(chosen, features))
        if not len(places) or not zero_one[chosen[places]].all():
            continue
        shares = np.clip(mean[chosen[places]], 0.0, 1.0)
        shares = shares / max(1.0, float(shares.sum()))
        # the values that the column takes: each level, and none of those chosen
        outcomes = np.vstack([np.eye(len(places)), np.zeros(len(places))])
        chances = np.concatenate([shares, [1.0 - float(shares.sum())]])
        deviations = (outcomes - shares) / scale[places]
        own = weights[:, places[:, None], places[None, :]]
        forms = np.einsum("oi,pij,oj->po", deviations, own, deviations)
        covariance = (deviations.T * chances) @ deviations
        normal = 2.0 * np.einsum("pij,jk,pkl,li->p", own, covariance, own, covariance, optimize=True)
        added += forms**2 @ chances - (forms @ chances) ** 2 - normal
    return added
