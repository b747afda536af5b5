"""What a release says of regression coefficients: estimates, standard errors, intervals, p-values, and what it cannot say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpmoments.analysis.answers import number, unless_beyond_floating_point
from dpmoments.analysis.functionals import NOT_DISTINGUISHABLE
from dpmoments.analysis.inverted_test import confidence_limits, smallest_statistic
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.foundation.arrays import FloatArray

__all__ = ["CoefficientInference"]


def _unknown_matrix(inference: CoefficientInference) -> FloatArray:
    return np.full((inference.equations.n_regressors,) * 2, np.nan)


def _unknown_values(inference: CoefficientInference) -> FloatArray:
    return np.full(inference.equations.n_regressors, np.nan)


def _unknown_value(*_: object) -> float:
    return math.nan


def _unbounded(inference: CoefficientInference, level: float) -> FloatArray:
    del level
    return np.tile([-math.inf, math.inf], (inference.equations.n_regressors, 1))


@dataclass(frozen=True, eq=False)
class CoefficientInference:
    """Least-squares coefficients of the population that the table's rows are a sample of.

    β̂ solves the noisy equations M_AA β = M_Ay. With g = (M b)_A, b = (−β, 1): β̂ − β = M_AA⁻¹ g, so that

        Cov(β̂) = M_AA⁻¹ (Cov((N b)_A) + s² M_AA) M_AA⁻¹,

    privacy's part from the law of the noise N and sampling's from the variance s² of the residuals, taken to be the same for all
    rows: a release holds no fourth moments. That is the delta method, and holds where noise is small beside the least eigenvalue
    of M_AA (``identified``). Intervals and p-values are those of the inverted test
    (:func:`dpmoments.analysis.inverted_test.smallest_statistic`), which holds everywhere and may be unbounded; where noise is so
    small that it is all one, they are the delta method's, which is faster.

    Attributes
    ----------
    equations : NormalEquations
        The slopes are about the release's centre.
    at_zero : NormalEquations or None
        The same about the zero of the table's units, where there is a constant.
    units : ndarray of shape (k, k)
        Linear map from β to the coefficients in the table's units.
    offset : float
        What is added to the constant.
    target_unit : float
        The table's units in one encoded unit of the target.
    """

    equations: NormalEquations
    at_zero: NormalEquations | None
    units: FloatArray
    offset: float
    target_unit: float

    @property
    def identified(self) -> bool:
        """Whether the delta method holds for all coefficients."""
        return self.equations.identified

    @property
    def degrees_of_freedom(self) -> float:
        """n − k, at least 1."""
        return max(self.equations.n_rows - self.equations.n_regressors, 1.0)

    @cached_property
    def beyond(self) -> FloatArray:
        """b = (−β̂, 1), shape (k + 1,)."""
        return np.append(-self.equations.solution, 1.0)

    @cached_property
    def coefficients(self) -> FloatArray:
        """In the table's units, the constant first where there is one, shape (k,)."""
        found = np.asarray(self.units @ self.equations.solution, dtype=np.float64)
        if self.equations.with_constant:
            found[0] += self.offset
        return found

    @cached_property
    @unless_beyond_floating_point(_unknown_matrix)
    def privacy_covariance(self) -> FloatArray:
        """The part of Cov(β̂) that is privacy's noise, in the table's units, shape (k, k)."""
        return self._carried(self.equations.noise_covariance(self.beyond))

    @cached_property
    @unless_beyond_floating_point(_unknown_matrix)
    def sampling_covariance(self) -> FloatArray:
        """The part of Cov(β̂) that is there without privacy, in the table's units, shape (k, k)."""
        variance = self.equations.residual_variance(self.beyond, self.degrees_of_freedom)
        return self._carried(variance * self.equations.possible_gram)

    @cached_property
    def privacy_errors(self) -> FloatArray:
        """Standard deviations of privacy's noise on each coefficient; NaN where the fit is not identified."""
        return self._errors(self.privacy_covariance)

    @cached_property
    def sampling_errors(self) -> FloatArray:
        """Standard errors without privacy; NaN where the fit is not identified."""
        return self._errors(self.sampling_covariance)

    def residual_deviation(self, level: float = 0.5) -> float:
        """What the standard deviation of the residuals is at most, with confidence ``level``, in the table's units."""
        total = float(self.beyond @ self.equations.moments @ self.beyond)
        total += float(scipy.special.ndtri(level)) * self.equations.residual_noise(self.beyond)
        return math.sqrt(max(total, 0.0) / self.degrees_of_freedom) * self.target_unit

    @cached_property
    def residuals_are_noise(self) -> bool:
        """Whether noise alone could have made the residuals' sum of squares what it is (two standard deviations or less)."""
        total = float(self.beyond @ self.equations.moments @ self.beyond)
        return total <= 2.0 * self.equations.residual_noise(self.beyond)

    @property
    def about_residuals(self) -> str:
        """What is to be said where sampling's part rests on residuals that are lost in noise; else empty."""
        if not self.residuals_are_noise:
            return ""
        most = number(self.residual_deviation(0.975))
        return f" How far rows are from the line is {NOT_DISTINGUISHABLE} ({most} at most): so is sampling's part."

    @cached_property
    def standard_errors(self) -> FloatArray:
        """Both parts together, shape (k,); NaN where the fit is not identified."""
        return np.asarray(np.hypot(self.privacy_errors, self.sampling_errors), dtype=np.float64)

    @unless_beyond_floating_point(_unbounded)
    def intervals(self, level: float) -> FloatArray:
        """Confidence intervals in the table's units, shape (k, 2); infinite ends where the release bounds nothing."""
        if self.equations.nearly_linear:
            reach = float(scipy.special.stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level)) * self.standard_errors
            return np.column_stack([self.coefficients - reach, self.coefficients + reach])
        limit = float(scipy.special.chdtri(1, 1.0 - level))
        return np.array([self._inverted(place, limit) for place in range(self.equations.n_regressors)])

    @cached_property
    @unless_beyond_floating_point(_unknown_values)
    def p_values(self) -> FloatArray:
        """Of the hypothesis that the coefficient is 0, two-sided, shape (k,)."""
        if self.equations.nearly_linear:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.abs(self.coefficients) / self.standard_errors
            return np.asarray(2.0 * scipy.special.stdtr(self.degrees_of_freedom, -ratio))
        return np.array([self.inverted_p_value(place, 0.0) for place in range(self.equations.n_regressors)])

    @unless_beyond_floating_point(_unknown_value)
    def inverted_p_value(self, place: int, value: float) -> float:
        """Of the hypothesis that a coefficient has a value, in the table's units, by the inverted test: identified or not.

        The intervals of a fit that is not identified are the values at which it is 1 − ``level`` or above.
        """
        equations = self._equations_of(place)
        fixed = {place: -value / float(self.units[place, place]), equations.n_regressors: 1.0}
        return float(scipy.special.chdtrc(1, smallest_statistic(equations, fixed, np.append(-equations.solution, 1.0))))

    @cached_property
    @unless_beyond_floating_point(_unknown_value)
    def p_value_of_fit(self) -> float:
        """Of the hypothesis that all coefficients but the constant are 0; it holds whether the fit is identified or not."""
        last = self.equations.n_regressors
        fixed = dict.fromkeys(range(1 if self.equations.with_constant else 0, last), 0.0)
        if not fixed:
            return math.nan
        return float(scipy.special.chdtrc(len(fixed), smallest_statistic(self.equations, fixed | {last: 1.0})))

    def _equations_of(self, place: int) -> NormalEquations:
        """The equations in which a coefficient of the table's units is one of β, but for its unit."""
        return self.at_zero if place == 0 and self.at_zero is not None else self.equations

    def _inverted(self, place: int, limit: float) -> tuple[float, float]:
        equations = self._equations_of(place)
        step = 2.0 * float(equations.rough_errors[place])
        lower, upper = confidence_limits(equations, place, limit, step)
        unit = float(self.units[place, place])
        return lower * unit, upper * unit

    def _carried(self, of_equations: FloatArray) -> FloatArray:
        """Cov(g) → Cov(β̂) in the table's units."""
        solved = self.units @ np.linalg.pinv(self.equations.gram)
        return np.asarray(solved @ of_equations @ solved.T)

    def _errors(self, covariance: FloatArray) -> FloatArray:
        if not self.identified:
            return np.full(len(covariance), np.nan)
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)), dtype=np.float64)
