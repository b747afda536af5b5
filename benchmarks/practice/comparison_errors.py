"""Four errors of a release of a public table: of covariance, correlations, means and one regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import dpmoments as dpm
from dpmoments.base.values import FloatArray
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.rows.rows import Rows

RIDGE = 0.01
"""Ridge of the regression, as a share of the mean variance of its features."""
CAP = 1.0
"""Largest excess risk of a regression: a fit that loses as much as the target varies has failed, however badly."""
LATTICE_BITS = 22
LEAST_VARIANCE = 1e-12
"""In encoded units: what varies less is constant, up to the rounding of exact sums."""


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact moments of an encoded table, and how far a release is from them."""

    n_rows: int
    mean: FloatArray  # (d,)
    # (d, d), of encoded rows: every column in units of its half-width times the bound on a row's norm
    covariance: FloatArray
    scale: FloatArray  # (d,), the table's units in one encoded unit
    target: int | None  # the feature that the regression predicts
    features: npt.NDArray[np.intp]  # those that it predicts from: all of other columns

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema, target: str | None) -> Truth:
        """Of all rows that the schema does not drop, as they are, whatever a mechanism would make of them."""
        moments = Rows.of(data, schema, mean=True, threads=1).moments(bits=LATTICE_BITS)
        n_rows = moments.count - moments.dropped
        mean = np.asarray(moments.sum, dtype=np.float64) * moments.scale / n_rows
        second = np.asarray(moments.gram, dtype=np.float64) * moments.scale**2 / n_rows
        names = list(schema.feature_names)
        own = next((column.feature_names for column in schema.columns if target in column.feature_names), ())
        return cls(
            n_rows=n_rows,
            mean=mean,
            covariance=second - np.outer(mean, mean),
            scale=schema.encoding(mean=True).scale,
            target=None if target is None else names.index(target),
            features=np.array([i for i, name in enumerate(names) if name not in own], dtype=np.intp),
        )

    def errors(self, release: MomentRelease) -> dict[str, float]:
        """One number a kind of error; NaN for a regression without a target."""
        covariance = release.covariance / np.outer(self.scale, self.scale)
        # Columns may lie far from 0 for their width, so that differences are taken before they are scaled.
        exact = release.schema.encoding(mean=True).decode_mean(self.mean)
        means = (release.mean - exact) / self.scale
        return {
            "covariance": float(np.linalg.norm(covariance - self.covariance) / np.linalg.norm(self.covariance)),
            "correlations": self.correlation_error(covariance),
            "means": float(np.linalg.norm(means) / np.sqrt(np.trace(self.covariance))),
            "regression": self.regression_error(covariance),
        }

    def correlation_error(self, covariance: FloatArray) -> float:
        """Root mean square over the pairs of features that vary."""
        varying = np.diagonal(self.covariance) > LEAST_VARIANCE
        pairs = np.triu_indices(int(varying.sum()), 1)
        found, exact = (
            correlations(matrix[np.ix_(varying, varying)])[pairs] for matrix in (covariance, self.covariance)
        )
        return float(np.sqrt(np.mean((found - exact) ** 2)))

    def regression_error(self, covariance: FloatArray) -> float:
        """Excess risk of a ridge regression on the table itself, as a share of the target's variance, at most the cap.

        The ridge is a share of the features' mean variance in the table, so that all releases solve one problem; where
        released moments allow no solution, the cap.
        """
        if self.target is None:
            return float("nan")
        inner = np.ix_(self.features, self.features)
        alpha = RIDGE * float(np.diagonal(self.covariance)[self.features].mean()) / 2.0
        system = covariance[inner] + 2.0 * alpha * np.eye(len(self.features))
        try:
            coefficients = np.linalg.solve(system, covariance[self.features, self.target])
        except np.linalg.LinAlgError:
            return CAP
        excess = dpm.metrics.excess_ridge_risk(
            coefficients, self.covariance[inner], self.covariance[self.features, self.target], alpha=alpha
        )
        return min(2.0 * excess / float(self.covariance[self.target, self.target]), CAP)


def correlations(covariance: FloatArray) -> FloatArray:
    """Within −1 and 1; 0 beside a variance that is not positive."""
    variances = np.diagonal(covariance)
    deviations = np.sqrt(np.where(variances > 0.0, variances, np.inf))
    return np.asarray(np.clip(covariance / np.outer(deviations, deviations), -1.0, 1.0), dtype=np.float64)
