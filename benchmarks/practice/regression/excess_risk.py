"""What a line loses on the table itself against least squares on all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import dpmoments as dpm
from benchmarks.practice.comparison.errors import Truth
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.releases.moment_release import MomentRelease

FloatArray = npt.NDArray[np.float64]

CONSTANT = 1e-9
"""Directions with less of the largest variance than this are constant in the table (levels that add up to one)."""


@dataclass(frozen=True, eq=False)
class Regression:
    """One feature of an encoded table on all features of the other columns, with an intercept.

    Attributes
    ----------
    n_rows : int
    features : ndarray of int
    target : int
    mean : ndarray of shape (d,)
    covariance : ndarray of shape (d, d)
        Exact, of the encoded rows.
    least_squares : ndarray of shape (k,)
        The shortest of the coefficients without error.
    """

    n_rows: int
    features: npt.NDArray[np.intp]
    target: int
    mean: FloatArray
    covariance: FloatArray
    least_squares: FloatArray

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema, target: str) -> Regression:
        """Of all rows that the schema does not drop."""
        truth = Truth.of(data, schema, target)
        assert truth.target is not None
        a, covariance = truth.features, truth.covariance
        inverse = np.linalg.pinv(covariance[np.ix_(a, a)], rcond=CONSTANT, hermitian=True)
        return cls(truth.n_rows, a, truth.target, truth.mean, covariance, inverse @ covariance[a, truth.target])

    @property
    def explained_share(self) -> float:
        """R² of least squares: the excess risk of the constant line at the mean."""
        return float(self.covariance[self.features, self.target] @ self.least_squares) / self._variance

    def excess(self, coefficients: FloatArray, constant: float) -> float:
        """(Risk of the line − risk of least squares) / Var(y), over the rows of the table; nothing is clipped.

        The line is constant + coefficients · x in encoded units.
        """
        a, y = self.features, self.target
        difference = coefficients - self.least_squares
        off = constant + float(coefficients @ self.mean[a]) - float(self.mean[y])
        return (float(difference @ self.covariance[np.ix_(a, a)] @ difference) + off**2) / self._variance

    def excess_of_fit(self, fit: FittedLine) -> float:
        """Excess risk of the line that ``ridge`` or ``ols`` of a release prints."""
        names, encoding = fit.schema.feature_names, fit.schema.encoding(mean=True)
        slopes = np.zeros(len(names))
        slopes[[names.index(name) for name in fit.features]] = fit.unit_ball_coefficients
        in_units = slopes * encoding.scale[self.target] / encoding.scale
        constant = fit.intercept + in_units @ encoding.offset - encoding.offset[self.target]
        return self.excess(slopes[self.features], float(constant / encoding.scale[self.target]))

    def excess_of_release(self, release: MomentRelease, alpha: float) -> float:
        """Excess risk of a release's ridge line with this α, the reference levels not penalized."""
        a, y = self.features, self.target
        coefficients = ridge_coefficients(release.unit_ball_covariance, a, y, alpha)
        mean = release.unit_ball_mean
        return self.excess(coefficients, float(mean[y] - coefficients @ mean[a]))

    @property
    def _variance(self) -> float:
        return float(self.covariance[self.target, self.target])


def ridge_coefficients(covariance: FloatArray, features: npt.NDArray[np.intp], target: int, alpha: float) -> FloatArray:
    """(S_AA + 2αI)⁻¹ S_Ay; where that is singular, the shortest solution."""
    system = covariance[np.ix_(features, features)] + 2.0 * alpha * np.eye(len(features))
    return np.asarray(np.linalg.pinv(system, rcond=1e-13, hermitian=True) @ covariance[features, target])
