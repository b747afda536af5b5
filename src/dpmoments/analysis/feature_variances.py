"""Variances of features as inference reads them: of a level or a Boolean by its share, of others by the second moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.functionals import NoisyMoments
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.repair.repair import Repair
from dpmoments.schema.constraints import Constraints

__all__ = ["FeatureVariances", "indicators", "opposite_levels", "shows_shares"]

OFF_THE_SUM = 0.5
"""Largest distance from 1 of what a centre has of two levels together: moved rows lack a part of it, less than moving takes."""


def indicators(release: Released) -> BoolArray:
    """Features that are 0 or 1 in every row, shape (d,): levels and Booleans, where no row was shortened or moved.

    A Boolean is taken to hold no fractions.
    """
    found = np.zeros(len(release.feature_names), dtype=bool)
    constraints = Constraints.of(release.schema, mean=True)
    if release.center is None:  # only mechanisms that clip rows about a centre have one
        for block in constraints.blocks:
            found[block.features] = True
        found[list(constraints.flags)] = True
    return found


def opposite_levels(release: Released) -> IntegerArray:
    """For every feature the other level of its column, where every row has one of two; −1 elsewhere. Shape (d,).

    Rows that were moved towards a noisy centre keep a sum near 1; intervals do not allow for any moving, and answers say so.
    """
    found = np.full(len(release.feature_names), -1)
    center = None if release.center is None else release.encoding.decode_mean(release.center)
    for block in Constraints.of(release.schema, mean=True).blocks:
        if block.complete and block.size == 2:
            if center is not None and abs(float(center[block.features].sum()) - 1.0) > OFF_THE_SUM:
                continue
            found[block.start], found[block.start + 1] = block.start + 1, block.start
    return found


def shows_shares(release: Released) -> bool:
    """Whether the repair makes the covariance of a column's levels that of their shares, diag(p) − ppᵀ."""
    return release.repair in (Repair.AUTO, Repair.STRUCTURED)


@dataclass(frozen=True, eq=False)
class FeatureVariances:
    """n times the variance of every feature, unrepaired, and its gradient.

    Of a feature that is 0 or 1 it is n p(1 − p), whose noise is that of the count alone.

    Attributes
    ----------
    values : ndarray of shape (d,)
        In squared units of the :class:`NoisyMoments`.
    weights : ndarray of shape (d, 2, 2)
        The gradient on (1, w_f).
    of_share : ndarray of bool, shape (d,)
        Where it is n p(1 − p).
    share : ndarray of shape (d,)
        p there, between 0 and 1; NaN elsewhere.
    """

    values: FloatArray
    weights: FloatArray
    of_share: BoolArray
    share: FloatArray

    @classmethod
    def of(cls, release: Released, moments: NoisyMoments, *, as_shown: bool = False) -> FeatureVariances:
        """Those of all features, about ``moments.location``, which must be the mean of every feature.

        Parameters
        ----------
        release : Released
        moments : NoisyMoments
        as_shown : bool
            Whether they are those of ``release.covariance``: most repairs leave a level's variance to its second moment.
        """
        d = len(moments.location)
        by_shares = not as_shown or shows_shares(release)
        zero_one = indicators(release) & by_shares
        share = np.where(zero_one, moments.location, np.nan)
        possible = np.clip(share, 0.0, 1.0)
        values, weights = np.diag(moments.moments)[1:].copy(), np.zeros((d, 2, 2))
        weights[:, 1, 1] = 1.0
        unit = moments.unit
        spread = possible * (1.0 - possible)
        values[zero_one] = (moments.n_rows * spread / unit**2)[zero_one]
        # n p(1 − p), p = s/n: its derivatives are 1 − 2p in s and p² in n; s = unit·Σw + p·n
        weights[zero_one, 1, 1] = 0.0
        of_sum = (1.0 - 2.0 * possible) / unit
        weights[zero_one, 0, 1] = weights[zero_one, 1, 0] = of_sum[zero_one] / 2.0
        weights[zero_one, 0, 0] = (spread / unit**2)[zero_one]
        certain = list(Constraints.of(release.schema, mean=True).certain) if by_shares else []
        values[certain], weights[certain] = 0.0, 0.0  # a column of one level: its share is 1 in every table
        return cls(values, weights, zero_one, possible)

    def noise(self, moments: NoisyMoments) -> FloatArray:
        """Standard deviation of the noise on the values, shape (d,); NaN where it is not known."""
        return np.sqrt(moments.variances(self._places, self.weights))

    def noise_per_row(self, moments: NoisyMoments) -> FloatArray:
        """Standard deviation of the noise on the values over n, which has noise of its own, shape (d,)."""
        weights = self.weights.copy()
        weights[:, 0, 0] -= self.values / moments.n_rows
        return np.asarray(np.sqrt(moments.variances(self._places, weights)) / moments.n_rows)

    @property
    def _places(self) -> IntegerArray:
        d = len(self.values)
        return np.stack([np.zeros(d, dtype=int), np.arange(d) + 1], axis=1)
