"""The noise on released covariances, to first order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmoments.analysis.feature_variances import FeatureVariances, indicators, shows_shares
from dpmoments.analysis.functionals import NoisyMoments
from dpmoments.analysis.levels import columns_of
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray, IntegerArray

__all__ = ["covariance_noise"]


def covariance_noise(release: Released, chosen: Sequence[int]) -> FloatArray:
    """Standard deviations of the noise on the covariances of some features, shape (k, k), in the table's units.

    Before repair; NaN where no law of the noise is known. Where the repair makes the covariances of a column's levels those of
    their shares, and the variance of a Boolean, so is their noise, as in ``release.describe()``.

    Parameters
    ----------
    release : Released
        With a mean.
    chosen : sequence of int
        Places of the features.

    Examples
    --------
    >>> import dpmoments as dpm
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 2))
    >>> options = dict(rho=0.5, neighbors="replace_one", mechanism="gaussian", insecure_seed=0)
    >>> covariance_noise(dpm.release(table, dpm.Schema.unit_ball(2), **options), [0, 1]).round(6)
    array([[4.2e-05, 3.0e-05],
           [3.0e-05, 4.2e-05]])
    """
    moments = NoisyMoments.of(release)
    places = np.asarray(chosen, dtype=int)
    unit = moments.unit[places]
    first, second = np.tril_indices(len(places), -1)
    i, j = places[first], places[second]
    weights = np.zeros((len(i), 3, 3))
    weights[:, 1, 2] = weights[:, 2, 1] = 0.5
    # about the mean the sums are 0, and so is what noise on them does
    weights[:, 0, 0] = -moments.moments[i + 1, j + 1] / moments.n_rows
    _read_off_shares(release, moments, weights, i, j)
    variances = moments.variances(np.stack([np.zeros(len(i), dtype=int), i + 1, j + 1], axis=1), weights)
    found = np.diag(FeatureVariances.of(release, moments, as_shown=True).noise_per_row(moments)[places])
    found[first, second] = found[second, first] = np.sqrt(variances) / moments.n_rows
    return np.asarray(found * np.outer(unit, unit))


def _read_off_shares(
    release: Released, moments: NoisyMoments, weights: FloatArray, i: IntegerArray, j: IntegerArray
) -> None:
    """Set the weights of two levels of one column: −p_i p_j, whose noise is that of p_j s_i + p_i s_j about the mean."""
    if not shows_shares(release):
        return
    columns, by_shares = np.array(columns_of(release, range(len(moments.location)))), indicators(release)
    same = (columns[i] == columns[j]) & by_shares[i] & by_shares[j]
    shares = np.clip(moments.location, 0.0, 1.0) / moments.unit
    weights[same] = 0.0
    for place, other in ((1, j), (2, i)):
        weights[same, 0, place] = weights[same, place, 0] = -shares[other[same]] / 2.0
