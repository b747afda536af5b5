"""One regression on a table: what a line loses against least squares, and how a method sees it that has all the budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import dpmoments as dpm
from benchmarks.practice.tables.entry import encoded_rows, exact_moments
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.base.values import FloatArray
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema.columns import Coordinate

CONSTANT = 1e-9
"""Directions with less of the largest variance than this are constant in the table (levels that add up to one)."""


@dataclass(frozen=True, eq=False)
class Regression:
    """One feature of an encoded table on all features of the other columns, with an intercept."""

    n_rows: int
    features: npt.NDArray[np.intp]
    target: int
    mean: FloatArray  # (d,)
    covariance: FloatArray  # (d, d), Exact, of the encoded rows
    least_squares: FloatArray  # (k,), The shortest of the coefficients without error

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema, target: str) -> Regression:
        """Of all rows that the schema does not drop."""
        n_rows, mean, covariance = exact_moments(data, schema)
        y, a = list(schema.feature_names).index(target), others_of(schema, target)
        inverse = np.linalg.pinv(covariance[np.ix_(a, a)], rcond=CONSTANT, hermitian=True)
        return cls(n_rows, a, y, mean, covariance, inverse @ covariance[a, y])

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


def others_of(schema: dpm.Schema, target: str) -> npt.NDArray[np.intp]:
    """The features of all columns but that of the target."""
    own = next(column.feature_names for column in schema.columns if target in column.feature_names)
    return np.array([place for place, name in enumerate(schema.feature_names) if name not in own], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class SingleRegression:
    """min ‖Xw − y‖², every row of X of norm at most 1, every |y| at most 1."""

    # (n, k), X: the features of all other columns about the midpoints of their bounds (a column spans −1 to 1, a
    # category is a block of norm 1) and a constant for the intercept, over the largest norm that public bounds allow
    rows: FloatArray
    target: FloatArray  # (n,), y, about the midpoint of its bounds, in its half-width
    line_units: FloatArray  # (k,), A line of a release in encoded units is these times w: slopes, then the constant

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema, target: str) -> SingleRegression:
        """From a table; rows that the schema drops are left out.

        Rows of a schema of the unit ball have norm 1 at most, without the constant.
        """
        encoded = encoded_rows(data, schema)
        y, features = list(schema.feature_names).index(target), others_of(schema, target)
        encoding = schema.encoding(mean=True)
        scale = encoding.scale / encoding.unit
        squares = 1 if isinstance(schema.columns[0], Coordinate) else len(schema.columns) - 1
        norm = float(np.sqrt(squares + 1))
        rows = np.column_stack([encoded[:, features], np.ones(len(encoded))]) / norm
        units = np.append(scale[features], 1.0) / (norm * scale[y])
        return cls(np.ascontiguousarray(rows), np.ascontiguousarray(encoded[:, y]), units)

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.rows.T @ self.rows, self.rows.T @ self.target

    def excess(self, weights: FloatArray, truth: Regression) -> float:
        """Excess risk of the line of those weights, shape (k,), in ``truth``'s terms."""
        line = weights * self.line_units
        return truth.excess(line[:-1], float(line[-1]))
