"""Covariances of features in units of their deviations or of the noise, repaired and not, and what of them the noise leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.functionals import NO_MEAN, LocalMoments, noise_edges
from dpmoments.analysis.released import Released, chosen_features
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.schema.constraints import Constraints

SINGULAR = 1e-9
"""A direction of less than this share of the largest variance is one of none."""


@dataclass(frozen=True, eq=False)
class Standardised:
    """The covariance of some features in chosen units, its directions, and the noise on it.

    Attributes
    ----------
    features : integer ndarray of shape (k,)
        Places in the release; every one has a variance above 0.
    mean, scale : ndarray of shape (k,)
        Released mean in the table's units, and what deviations are divided by.
    covariance : ndarray of shape (k, k)
        Repaired.
    noisy : ndarray of shape (k, k)
        Before repair, in the same units.
    cells : ndarray of shape (k, k)
        Variances of the noise on its cells; NaN where it is not known.
    eigenvalues, directions : ndarray of shape (k,) and (k, k)
        Of ``covariance``, the largest first; rows are directions.
    edge : ndarray of shape (k,)
        What the noise reaches in a direction and those after it; NaN where it is not known.
    moments : NoisyMoments
    """

    features: IntegerArray
    mean: FloatArray
    scale: FloatArray
    covariance: FloatArray
    noisy: FloatArray
    cells: FloatArray
    eigenvalues: FloatArray
    directions: FloatArray
    edge: FloatArray
    moments: LocalMoments

    @classmethod
    def of(cls, release: Released, chosen: Sequence[int], *, by_deviation: bool = True) -> Standardised:
        """Those of some features, without the ones whose released variance is 0.

        Parameters
        ----------
        release : Released
        chosen : sequence of int
        by_deviation : bool
            Whether features are divided by their released standard deviations; else by the scale of the encoding, in which the
            noise is the same in all directions.

        Raises
        ------
        ValueError
            If no mean was released, or no feature varies.
        """
        if release.noisy_sum is None:
            raise ValueError(NO_MEAN)
        variances = np.diag(release.covariance)
        features = np.array([feature for feature in chosen if variances[feature] > 0.0], dtype=int)
        if not len(features):
            raise ValueError(
                "no feature has a released variance above 0: the noise hides them all, or they are constant; name other columns"
            )
        scale = np.sqrt(variances[features]) if by_deviation else release.encoding.scale[features]
        covariance = release.covariance[np.ix_(features, features)] / np.outer(scale, scale)
        moments = LocalMoments.of(release)
        in_units = moments.unit[features] / scale
        squares = np.outer(in_units, in_units) / moments.n_rows
        cells = moments.cell_variances(features) * squares**2
        eigenvalues, vectors = np.linalg.eigh(covariance)
        directions = vectors.T[::-1]
        return cls(
            features=features,
            mean=release.mean[features],
            scale=scale,
            covariance=covariance,
            noisy=moments.moments[np.ix_(features + 1, features + 1)] * squares,
            cells=cells,
            eigenvalues=eigenvalues[::-1],
            directions=directions,
            edge=noise_edges(cells, directions, moments.law),
            moments=moments,
        )

    @property
    def stands_out(self) -> BoolArray:
        """Directions whose variance before repair is beyond what noise makes; where that is not known, those of any variance."""
        varies = self.eigenvalues > SINGULAR * max(float(self.eigenvalues[0]), 0.0)
        if self.moments.law is None:
            return np.asarray(varies)
        result = np.einsum("pi,ij,pj->p", self.directions, self.noisy, self.directions)
        return np.asarray(varies & (result > self.edge))

    @property
    def precision(self) -> FloatArray:
        """Pseudo-inverse of the covariance on the directions that stand out, in the table's units, shape (k, k)."""
        kept = self.stands_out
        scaled = self.directions[kept] / self.scale
        return np.asarray((scaled.T / self.eigenvalues[kept]) @ scaled)


def precision(release: Released) -> tuple[FloatArray, int]:
    """Σ⁺ of all features on the directions that stand out of the noise, and how many directions do not.

    Where no released variance is above 0, those are all. :func:`dpmoments.analysis.distances.mahalanobis` measures by Σ⁺.

    Parameters
    ----------
    release : Released

    Returns
    -------
    ndarray of shape (d, d), int

    Raises
    ------
    ValueError
        If no mean was released.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> found, n_noise = precision(dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0))
    >>> found.round() + 0.0, n_noise
    (array([[25.,  0.],
           [ 0., 25.]]), 0)
    """
    d = len(release.feature_names)
    result = np.zeros((d, d))
    if release.noisy_sum is None:
        raise ValueError(NO_MEAN)
    if not (np.diag(release.covariance) > 0.0).any():
        return result, d
    standardised = Standardised.of(release, range(d), by_deviation=False)
    result[np.ix_(standardised.features, standardised.features)] = standardised.precision
    return result, d - int(standardised.stands_out.sum())


def without_redundant_levels(release: Released, columns: Sequence[str] | None) -> list[int]:
    """Places of features, less the most frequent level of every column whose levels are all there: they add up to one."""
    chosen = chosen_features(release, columns)
    shares = release.mean
    for block in Constraints.of(release.schema, mean=True).blocks:
        whole = set(range(block.start, block.stop))
        if block.complete and whole <= set(chosen):
            chosen.remove(block.start + int(np.argmax(shares[block.features])))
    return chosen
