"""Normal equations of a regression: coefficients, noise covariances, intervals and tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from dpmoments.analysis.answers import number, unless_beyond_floating_point
from dpmoments.analysis.confidence import NOT_CLEAR_NOISE, Estimate, agreeing_p_value, format_probability, holding
from dpmoments.analysis.functionals import (
    bilinear,
    covariance_of_gaps,
    gaps_of,
    indicator_mask,
    joint_gaps_of,
    semidefinite,
)
from dpmoments.analysis.inverted_test import Search
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Moments, by_squared_weights, complete_share, rows_per_independent
from dpmoments.analysis.robust_errors import ResidualProducts, moments_with_constant, robust_covariance
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, IntegerArray, bordered
from dpmoments.moments.law import NoiseLaw

_AGREEMENT = 30.0
"""Standard deviations of a cell.

A change of method at which the two differ would lose coverage by itself.
"""


_NOT_REFUTED = 0.4549364231195724 * (1.0 - 1e-2)
"""Largest test statistic of an estimate: the median of χ²(1), less 1 %.

The estimate so lies in its intervals at levels of 0.5 or more.
"""


_CLASSICAL = "on 16 real tables, robust errors were 0.9 to 1.2 times these for 80 % of coefficients"
"""Error of an assumption, as ``benchmarks/practice/unequal_variance.py`` measured it."""


def _unknown_matrix(equations: NormalEquations) -> FloatArray:
    return np.full((equations.n_regressors,) * 2, np.nan)


@dataclass(frozen=True)
class JointTest:
    """A test of several linear restrictions together.

    >>> JointTest(12.25, 2, 4994.0, 5e-6, 0.5).description
    'F(2, 4,994) = 12.25, p < 0.001'
    """

    statistic: float  # F where the delta method is valid, else the χ² of test inversion; NaN if it is not known
    numerator: int  # number of restrictions that do not follow from others
    denominator: float  # residual degrees of freedom of F; infinite for χ²
    p_value: float
    # fraction of the variance that the privacy noise causes, on average over the restrictions; NaN for χ²
    privacy_share: float

    @property
    def stat(self) -> float:
        """``statistic``, by the name of linearmodels."""
        return self.statistic

    @property
    def pval(self) -> float:
        """``p_value``, by the name of linearmodels."""
        return self.p_value

    @property
    def f(self) -> float:
        """F, or χ² over its degrees, which is F with infinite residual degrees."""
        if self.numerator == 0:
            return math.nan
        return self.statistic / self.numerator if math.isinf(self.denominator) else self.statistic

    @property
    def description(self) -> str:
        """The statistic with its degrees of freedom, and the p-value."""
        if math.isnan(self.statistic):
            return "p unknown"
        return f"{self.name} = {self.statistic:,.2f}, {format_probability(self.p_value, digits=3)}"

    @property
    def name(self) -> str:
        """Name of the statistic with its degrees of freedom."""
        if math.isinf(self.denominator):
            return f"χ²({self.numerator})"
        return f"F({self.numerator}, {self.denominator:,.0f})"


_DEPENDENT = 1e-9
"""Relative size below which a restriction follows from others."""


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """Noisy normal equations M_AA β = M_Ay, before any repair, and their solution.

    The moments are of k regressors A and a target y.

    With b = (−β, 1), the error of the equations at the true β is g = (M b)_A = (N b)_A + Σ zᵢeᵢ: privacy noise and sampling
    error. β̂ solves them: β̂ − β = M_AA⁻¹ g, so that

        Cov(β̂) = M_AA⁻¹ (Cov((N b)_A) + s² M_AA) M_AA⁻¹,

    the privacy part from the distribution of the noise N and the sampling part from the residual variance s², assumed to be the
    same for all rows of the population, or from ``products``, which need no assumption: Σ e² zₐzₐᵀ in place of s² M_AA. This is
    the delta method; it is valid if noise is small compared with the least eigenvalue of M_AA (``identified``). Intervals and
    p-values come from test inversion (``inverted_test.py``), which is valid everywhere and may be unbounded; if noise is so small
    that both agree, they come from the delta method, which is faster.
    """

    # (k + 1, k + 1): M, the regressors (the constant first, if there is one), then the target; of encoded rows about
    # the release's center, or about the zero of the original units
    moments: FloatArray
    n_rows: float
    with_constant: bool
    noise: NoiseLaw  # noise distribution of Σ z zᵀ, z = (1, x) of all features
    design_map: FloatArray  # (k + 1, d + 1): T: the regressors and the target are T z
    # (k, k) or None, linear map from β to the coefficients in original units; None is the identity
    units: FloatArray | None = None
    offset: float = 0.0  # added to the constant
    target_unit: float = 1.0  # original units in one encoded unit of the target
    # (k + 1, k + 1) or None, linear map to moments about the zero of the original units, if these equations are not and
    # there is a constant
    zero_map: FloatArray | None = None
    psd: FloatArray | None = None  # (k, k) or None: S_AA of equations that were mapped from others
    # (k,) or None, the β that the estimate is drawn to, NaN for a coefficient that is free; None leaves the estimate at
    # the solution
    toward: FloatArray | None = None
    # (k,) or None, the β of the moments after repair, if the regressors are one column: then it is the estimate, and
    # their correlations and the means of its levels are those that other answers have
    repaired: FloatArray | None = None
    target_range: tuple[float, float] = (-math.inf, math.inf)  # the target's bounds
    of_groups: bool = False  # true if the regressors are levels of one column, compared with another level
    # for sampling errors that allow for residuals of unequal variance; None for one residual variance
    products: ResidualProducts | None = None
    shape: FloatArray | None = None  # (k, k) or None: `sampling_shape` of equations that were mapped from others
    # largest number of rows of one unit: it multiplies sampling variances, an upper bound if they depend on each other
    rows_per_unit: float = 1.0
    # (k + 1,) or None, missing over present values of the regressors and the target; None without missing values
    gaps: FloatArray | None = None
    joint_gaps: FloatArray | None = None  # (k + 1, k + 1) or None, see `LocalMoments`
    weighted: FloatArray | None = None  # (k, k) or None, M_AA by squared weights less M_AA
    complete: float = 1.0  # share of the rows with values of all regressors and the target

    @classmethod
    def of(
        cls, release: Moments, chosen: Regressors, products: ResidualProducts | None = None
    ) -> NormalEquations | None:
        """Return the equations of a regression; None if the noise distribution is not known."""
        noise = release.noise
        if noise is None:
            return None
        features, scale, shift = list(chosen.features), release.encoding.scale, release.zero_of_units
        target, unit, k = chosen.target, float(scale[chosen.target]), len(features)
        slopes = np.diag(unit / scale[features])
        indices = [*features, target]
        design_map = np.eye(len(release.feature_names) + 1)[np.array(indices) + 1]
        if chosen.intercept:
            design_map = np.vstack([np.eye(1, design_map.shape[1]), design_map])
        elif release.noisy_sum is not None:
            design_map[:, 0] = shift[indices]
        whole = moments_with_constant(release)
        gaps = joint_gaps = zero_map = None
        if release.present is not None:
            lead = int(chosen.intercept)
            gaps = np.append(np.zeros(lead), gaps_of(release)[indices])
            joint_gaps = np.pad(joint_gaps_of(release)[np.ix_(indices, indices)], (lead, 0))
        moments = design_map @ whole @ design_map.T
        moments = (moments + moments.T) / 2.0
        n_rows, weighted = float(whole[0, 0]), None
        if release.weighting is not None:
            mean, moved = whole[0, 1:] / n_rows, release.weighting.shift / scale
            about = release.weighting.spread / np.outer(scale, scale) + np.outer(mean, moved) + np.outer(moved, mean)
            weighted = n_rows * design_map[:-1] @ bordered(0.0, moved, about) @ design_map[:-1].T
        units, offset, repaired = slopes, 0.0, None
        of_one_column = (
            chosen.intercept and len({release.column_names[feature] for feature in chosen.unmerged or features}) == 1
        )
        if of_one_column:
            covariance, mean = release.unit_ball_covariance, release.unit_ball_mean
            if release.center is not None:
                mean = mean - release.center
            block = np.ix_(features, features)
            of_features = np.linalg.lstsq(covariance[block], covariance[features, target], rcond=None)[0]
            repaired = np.append(mean[target] - of_features @ mean[features], of_features)
        lower, upper = (float(bound[target]) for bound in release.feature_bounds)
        if chosen.intercept:
            units = np.zeros((k + 1, k + 1))
            units[0, 0] = unit
            units[0, 1:] = -unit * shift[features]
            units[1:, 1:] = slopes
            offset = unit * float(shift[target])
            zero_map = np.eye(k + 2)
            zero_map[1:, 0] = shift[indices]
        return cls(
            moments,
            n_rows,
            chosen.intercept,
            noise,
            design_map,
            units=units,
            offset=offset,
            target_unit=unit,
            zero_map=zero_map,
            repaired=repaired,
            target_range=(lower, upper),
            of_groups=of_one_column and bool(indicator_mask(release)[features].all()),
            products=products,
            rows_per_unit=rows_per_independent(release, target),
            gaps=gaps,
            joint_gaps=joint_gaps,
            weighted=weighted,
            complete=complete_share(release, indices)[0],
        )

    @cached_property
    def at_zero(self) -> NormalEquations | None:
        """These equations about the zero of the original units."""
        # None without a constant, or if they are about it already.
        return None if self.zero_map is None else self.mapped(self.zero_map)

    def mapped(self, matrix: FloatArray) -> NormalEquations:
        """Return equations of k + 1 linear combinations."""
        # S_AA and the shape are mapped too; test statistics stay.
        carried = matrix[:-1, :-1]
        moments = matrix @ self.moments @ matrix.T
        return NormalEquations(
            (moments + moments.T) / 2.0,
            self.n_rows,
            self.with_constant,
            self.noise,
            matrix @ self.design_map,
            psd=carried @ self.psd_gram @ carried.T,
            shape=carried @ self.sampling_shape @ carried.T,
            rows_per_unit=self.rows_per_unit,
            complete=self.complete,
        )

    @property
    def n_regressors(self) -> int:
        """Number k of regressors."""
        return len(self.moments) - 1

    @property
    def gram(self) -> FloatArray:
        """M_AA, shape (k, k)."""
        return self.moments[:-1, :-1]

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues of M_AA, ascending, and eigenvectors as columns."""
        eigenvalues, vectors = np.linalg.eigh(self.gram)
        return np.asarray(eigenvalues, dtype=np.float64), np.asarray(vectors, dtype=np.float64)

    @property
    def least_eigenvalue(self) -> float:
        """λ: how much the regressors vary where they vary least."""
        return float(self._spectrum[0][0])

    @cached_property
    def psd_gram(self) -> FloatArray:
        """S_AA: ``psd``, or the positive semi-definite matrix nearest to M_AA."""
        if self.psd is not None:
            return self.psd
        eigenvalues, vectors = self._spectrum
        return (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T

    @cached_property
    def sampling_shape(self) -> FloatArray:
        """Shape V of the sampling covariance bᵀM b/n · V of the equations at b."""
        # It is S_AA, or what `products` give, times dependence.
        if self.shape is not None:
            return self.shape
        result = self._robust_shape
        if result is None:
            result = self.psd_gram if self.weighted is None else by_squared_weights(self.psd_gram, self.weighted)
        if self.gaps is not None:  # pairs of features are of other rows
            at = np.append(-self._pilot, 1.0)
            spread = self.moments / self.n_rows
            if self.with_constant:
                spread = spread - np.outer(spread[0], spread[0])
            # relative to residuals that noise leaves nothing of, it would have no bound
            total = max(self.residual_variance(at), self.residual_noise(at) / self.n_rows, np.finfo(float).tiny)
            weights = bilinear(np.eye(len(at))[:-1], at)  # of the error of each equation, (E b)_a
            added = covariance_of_gaps(weights, spread, self.gaps, self.joint_gaps)
            result = result + semidefinite(added * (self.n_rows / total))
        return self.rows_per_unit * result

    @property
    def robust(self) -> bool:
        """True if sampling errors allow for residuals of unequal variance."""
        return self._robust_shape is not None

    @cached_property
    def _robust_shape(self) -> FloatArray | None:
        """Matrix Σ e² zₐzₐᵀ over bᵀM b/n; in the coefficients' coordinates by the delta method."""
        if self.products is None:
            return None
        at = np.append(-self._pilot, 1.0)
        total = float(at @ self.moments @ at)
        if total <= 2.0 * self.residual_noise(at):  # residuals are noise: nothing is known of their variances
            return None
        variance, basis = total / self.n_rows, np.eye(self.n_regressors)
        if self.delta_method_valid:
            basis = self.units_map @ np.linalg.inv(self.gram)
        classical = variance * basis @ self.psd_gram @ basis.T
        back = np.linalg.inv(basis)
        result = robust_covariance(*self.products.covariance(at, basis), classical)
        return back @ result @ back.T / variance

    @property
    def _pilot(self) -> FloatArray:
        """Coefficients before an estimate, whose residuals shape the sampling covariance."""
        if self.toward is None or self.delta_method_valid:
            return self.solution
        if not self.with_constant:
            return self.toward
        slopes = self.toward[1:]
        constant = (self.moments[0, -1] - self.moments[0, 1:-1] @ slopes) / self.moments[0, 0]
        return np.append(constant, slopes)

    @cached_property
    def own_noise(self) -> NoiseLaw:
        """The noise on ``moments``."""
        return self.noise.carried(self.design_map)

    @cached_property
    def noise_variance(self) -> float:
        """v: the variance of a cell of noise, where the regressors vary least."""
        return 0.5 * self.noise.variance_of_square(self.design_map[:-1].T @ self._spectrum[1][:, 0])

    @property
    def noise_floor(self) -> float:
        """2√(v k): the least eigenvalue of the regressors that noise leaves to be seen."""
        return 2.0 * math.sqrt(self.noise_variance * self.n_regressors)

    @property
    def identified(self) -> bool:
        """True if noise is small enough for the delta method."""
        # The least eigenvalue is at least 2√(v k), v the noise variance of an entry.
        least = self.least_eigenvalue
        return least >= self.noise_floor and least > 1e-12 * float(np.trace(self.gram))

    @property
    def delta_method_valid(self) -> bool:
        """True if the delta method and test inversion agree: least λ ≥ 2√(v k) + 30√v."""
        agree = self.noise_floor + _AGREEMENT * math.sqrt(self.noise_variance)
        return self.identified and self.least_eigenvalue >= agree

    @property
    def linearized(self) -> bool:
        """True if the noise is linearized, so that no penalty is chosen by it."""
        return self.identified and "linearized" in self.noise.caveats

    def residual_noise(self, beyond: FloatArray) -> float:
        """Return the SD of the noise on bᵀM b."""
        return math.sqrt(max(self.noise.variance_of_square(self.design_map.T @ beyond), 0.0))

    def noise_covariance(self, beyond: FloatArray) -> FloatArray:
        """Return Cov((N b)_A) for b over regressors and target, shape (k + 1,) → (k, k)."""
        return self.own_noise.covariance_of_product(beyond, np.arange(self.n_regressors))

    def residual_variance(self, beyond: FloatArray, degrees_of_freedom: float | None = None) -> float:
        """Return bᵀM b over the row count, or over the degrees of freedom; at least 0."""
        over = self.n_rows if degrees_of_freedom is None else degrees_of_freedom
        return max(float(beyond @ self.moments @ beyond), 0.0) / over

    def error_covariance(self, beyond: FloatArray) -> FloatArray:
        """Return Cov(g) at b: noise and sampling."""
        return self.noise_covariance(beyond) + self.residual_variance(beyond) * self.sampling_shape

    @cached_property
    def solution(self) -> FloatArray:
        """β of the equations as they are, shape (k,)."""
        return np.asarray(np.linalg.lstsq(self.gram, self.moments[:-1, -1], rcond=None)[0], dtype=np.float64)

    @cached_property
    def delta_method_errors(self) -> FloatArray:
        """Standard errors by the delta method, valid or not, shape (k,)."""
        solved = np.linalg.pinv(self.gram)
        covariance = solved @ self.error_covariance(np.append(-self.solution, 1.0)) @ solved.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)), dtype=np.float64)

    @cached_property
    def search(self) -> Search:
        """Searches for the least test statistic."""
        spread = self.own_noise, self.sampling_shape
        return Search(self.moments, self.n_rows, *spread, self.solution, self.delta_method_errors)

    @property
    def degrees_of_freedom(self) -> float:
        """Residual degrees of freedom n − k, at least 1."""
        # n counts the rows with values of all that is used. If a unit has several rows, n is the number of full units.
        return max(self.n_rows / self._rows_per_residual - self.n_regressors, 1.0)

    @property
    def _rows_per_residual(self) -> float:
        return self.rows_per_unit / self.complete

    @property
    def estimate(self) -> FloatArray:
        """Estimate β̂ of the moments after repair for one column, else the unrefuted one."""
        return self.unrefuted if self.repaired is None else self.repaired

    @cached_property
    @unless_beyond_floating_point(lambda equations: equations.solution)
    def unrefuted(self) -> FloatArray:
        """The β nearest to ``toward`` that the release does not refute."""
        # It is in every interval before repair, and the solution if the delta method holds.
        if self.toward is None or self.delta_method_valid:
            return self.solution
        return -self.search.nearest(self.toward, _NOT_REFUTED)[:-1]

    @property
    def after_repair(self) -> bool:
        """True if repair has moved the coefficients from those that are tested."""
        return self.repaired is not None and not np.allclose(self.repaired, self.unrefuted, rtol=1e-3, atol=0.0)

    @cached_property
    def beyond(self) -> FloatArray:
        """Vector (−β̂, 1), shape (k + 1,)."""
        return np.append(-self.estimate, 1.0)

    @cached_property
    def units_map(self) -> FloatArray:
        """Linear map from β to the coefficients in the table's units, shape (k, k)."""
        return np.eye(self.n_regressors) if self.units is None else self.units

    @cached_property
    def coefficients(self) -> FloatArray:
        """In the table's units, the constant first where there is one, shape (k,)."""
        return self.in_units(self.estimate)

    def in_units(self, solution: FloatArray) -> FloatArray:
        """Convert β to coefficients in the table's units."""
        result = np.asarray(self.units_map @ solution, dtype=np.float64)
        if self.with_constant:
            result[0] += self.offset
        return result

    @cached_property
    @unless_beyond_floating_point(_unknown_matrix)
    def privacy_covariance(self) -> FloatArray:
        """The part of Cov(β̂) that is privacy's noise, in the table's units, shape (k, k)."""
        return self._carried(self.noise_covariance(self.beyond))

    @cached_property
    @unless_beyond_floating_point(_unknown_matrix)
    def sampling_covariance(self) -> FloatArray:
        """The part of Cov(β̂) that is there without privacy, in the table's units, shape (k, k)."""
        variance = self.residual_variance(self.beyond, self._rows_per_residual * self.degrees_of_freedom)
        return self._carried(variance * self.sampling_shape)

    def residual_deviation(self, level: float = 0.5) -> float:
        """Return an upper bound of the residual SD with confidence ``level``, in original units."""
        total = float(self.beyond @ self.moments @ self.beyond)
        total += float(scipy.special.ndtri(level)) * self.residual_noise(self.beyond)
        return math.sqrt(max(total, 0.0) / (self._rows_per_residual * self.degrees_of_freedom)) * self.target_unit

    @cached_property
    def residuals_are_noise(self) -> bool:
        """True if noise explains the residual sum of squares (at most two SDs of noise)."""
        total = float(self.beyond @ self.moments @ self.beyond)
        return total <= 2.0 * self.residual_noise(self.beyond)

    @property
    def about_sampling(self) -> str:
        """End of the sentence on standard errors: what they assume of residuals."""
        if self.robust:
            return " (robust to residuals of unequal variance, HC1)."
        return f" (residuals of equal variance assumed: {_CLASSICAL})."

    @property
    def about_residuals(self) -> str:
        """Note that the sampling part rests on noise-dominated residuals; else empty."""
        if not self.residuals_are_noise:
            return ""
        most = min(self.residual_deviation(0.975), (self.target_range[1] - self.target_range[0]) / 2.0)
        limit = f", at most {number(most)}" if most > 0.0 else ""
        return f" The residual standard deviation is {NOT_CLEAR_NOISE}{limit}: so is the sampling part."

    def estimates(self, level: float) -> tuple[Estimate, ...]:
        """Estimate each coefficient, in the table's units, with the confidence ``level``."""
        if level not in self._estimates:
            self._estimates[level] = tuple(self.contrast(weights, level) for weights in np.eye(self.n_regressors))
        return self._estimates[level]

    @cached_property
    def _estimates(self) -> dict[float, tuple[Estimate, ...]]:
        return {}

    @unless_beyond_floating_point(lambda _, weights, level, *__: Estimate.not_estimable(level))  # noqa: ARG005
    def contrast(self, weights: FloatArray, level: float, value: float = 0.0) -> Estimate:
        """Estimate c'β − v of the coefficients in original units; its p-value is of c'β = v."""
        # By the delta method where it is valid, else by test inversion, after a change of basis in which c'β is a
        # coefficient. `weights` is c, the constant's first if there is one; not all 0.
        if not self.delta_method_valid:
            return self._inverted(weights, level, value)
        privacy, sampling = (
            math.sqrt(max(float(weights @ part @ weights), 0.0))
            for part in (self.privacy_covariance, self.sampling_covariance)
        )
        middle, excess = (float(weights @ each) - value for each in (self.in_units(self.unrefuted), self.coefficients))
        error, degrees = math.hypot(privacy, sampling), self.degrees_of_freedom
        reach = float(scipy.special.stdtrit(degrees, 0.5 + 0.5 * level)) * error
        p_value = (
            2.0 * float(scipy.special.stdtr(degrees, -abs(middle) / error)) if error > 0.0 else float(middle == 0.0)
        )
        lower, upper = self._possible(weights, value, excess, (middle - reach, middle + reach))
        return Estimate(excess, lower, upper, agreeing_p_value(p_value, lower, upper, level), privacy, sampling, level)

    def _possible(
        self, weights: FloatArray, value: float, excess: float, ends: tuple[float, float]
    ) -> tuple[float, float]:
        """Return an interval of c'β − v that holds the estimate, within the target's bounds."""
        lower, upper = map(float, holding(np.array(ends[0]), np.array(ends[1]), np.array(excess)))
        if self.of_groups:  # the constant is the mean of one group, and with a slope that of another
            of_groups = np.append(weights[0] - weights[1:].sum(), weights[1:])
            least, greatest = np.sort(np.outer(of_groups, self.target_range)).sum(axis=0) - value
            lower, upper = max(lower, min(least, excess)), min(upper, max(greatest, excess))
        return lower, upper

    def _inverted(self, weights: FloatArray, level: float, value: float) -> Estimate:
        equations, basis, indices, units = self._rotated(weights[None, :])
        index, unit = int(indices[0]), float(units[0, 0])
        unrefuted, last = self.in_units(self.unrefuted), self.n_regressors
        total = float(weights @ unrefuted)
        limit, excess = float(scipy.special.chdtri(1, 1.0 - level)), float(weights @ self.coefficients) - value
        if equations is self:
            inside = np.append(-self.unrefuted, 1.0)
        else:
            scaled = unrefuted / np.diag(self.units_map)
            inside = np.append(-scaled if basis is None else -basis @ scaled, 1.0)
        inside[index] = -total / unit
        # far out the target does not matter: both ends have one limit, at least that of all directions
        far_out = self.search.least_direction.statistic
        if far_out <= limit and equations.search.at_infinity(index, limit) <= limit:
            return Estimate.not_estimable(level)
        ends = sorted(end * unit - value for end in equations.search.limits(index, limit, inside))
        if not all(map(math.isfinite, ends)):
            return Estimate.not_estimable(level)
        lower, upper = ends
        of_value = 0.0  # of the unrefuted coefficients themselves
        if total != value:
            at_value = equations.search.least({index: -value / unit, last: 1.0}, [inside])
            of_value = at_value.statistic
            if of_value <= limit and not lower <= 0.0 <= upper:  # another part of the set, which need not be connected
                side = math.copysign(1.0, lower * unit)
                end = -equations.search.end(index, limit, at_value, side, thorough=True) * unit - value
                if not math.isfinite(end):
                    return Estimate.not_estimable(level)
                lower, upper = min(lower, end), max(upper, end)
        # beyond all bounds is refuted too, but perhaps less than v is
        if of_value > far_out:
            far_out = equations.search.at_infinity(index)
        p_value = float(scipy.special.chdtrc(1, min(of_value, far_out)))
        lower, upper = self._possible(weights, value, excess, (lower, upper))
        parts = (float(weights @ part @ weights) for part in (self.privacy_covariance, self.sampling_covariance))
        privacy, sampling = (max(part, 0.0) for part in parts)
        share = privacy / max(privacy + sampling, np.finfo(float).tiny)
        agreeing = agreeing_p_value(p_value, lower, upper, level)
        return Estimate.of_interval(excess, lower, upper, agreeing, level, min(share, 1.0))

    def _rotated(self, matrix: FloatArray) -> tuple[NormalEquations, FloatArray | None, IntegerArray, FloatArray]:
        """Return equations in which q combinations of coefficients are entries of β."""
        # The new β is `basis`, (k, k), times the coefficients in original units over their units; the combinations are
        # `units`, (q, q), times the entries of β at `indices`.
        base = self
        if self.at_zero is not None and matrix[:, 0].any():
            base = self.at_zero
        encoded = matrix * np.diag(self.units_map)
        rows, entries = np.nonzero(encoded)
        if len(rows) == len(matrix) == len(set(rows.tolist())) == len(set(entries.tolist())):
            return base, None, entries, encoded[:, entries]
        scaled = encoded / np.linalg.norm(encoded, axis=1, keepdims=True)
        indices = np.asarray(scipy.linalg.qr(scaled, mode="r", pivoting=True)[1][: len(matrix)], dtype=int)
        units = encoded[:, indices]
        basis = np.eye(self.n_regressors)
        basis[indices] = np.linalg.solve(units, encoded)
        basis[indices[:, None], indices] = np.eye(len(indices))
        carried = np.eye(self.n_regressors + 1)
        carried[:-1, :-1] = np.linalg.inv(basis).T
        return base.mapped(carried), basis, indices, units

    @unless_beyond_floating_point(lambda _, matrix, *__: JointTest(math.nan, len(matrix), math.inf, math.nan, math.nan))
    def joint_test(self, matrix: FloatArray, values: FloatArray) -> JointTest:
        """Test Rβ = r of the coefficients in original units."""
        # F with residual degrees of freedom where the delta method is valid; else the least test statistic over all β
        # with Rβ = r, by χ²: valid for every release. The constant's column of R is the first; rows that follow from
        # others are not counted.
        matrix, values = self._independent(matrix, values)
        q, degrees = len(matrix), self.degrees_of_freedom
        if self.delta_method_valid:
            parts = (self.privacy_covariance, self.sampling_covariance)
            privacy, sampling = (matrix @ part @ matrix.T for part in parts)
            total = np.maximum(np.diag(privacy) + np.diag(sampling), np.finfo(float).tiny)
            share = float(np.mean(np.clip(np.diag(privacy) / total, 0.0, 1.0)))
            own = 1.0 / np.sqrt(total)
            excess = (matrix @ self.in_units(self.unrefuted) - values) * own
            solved = np.linalg.solve((privacy + sampling) * np.outer(own, own), excess)
            statistic = max(float(excess @ solved), 0.0) / q
            return JointTest(statistic, q, degrees, float(scipy.special.fdtrc(q, degrees, statistic)), share)
        equations, _, indices, units = self._rotated(matrix)
        entries = np.linalg.solve(units, values)
        fixed = {int(index): -float(entry) for index, entry in zip(indices, entries, strict=True)}
        starts = [np.append(-equations.solution, 1.0)]
        statistic = equations.search.least({**fixed, self.n_regressors: 1.0}, starts).statistic
        if q == 1:  # as its interval has it
            statistic = min(statistic, equations.search.at_infinity(int(indices[0])))
        return JointTest(statistic, q, math.inf, float(scipy.special.chdtrc(q, statistic)), math.nan)

    def _independent(self, matrix: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the restrictions without those that follow from others."""
        encoded = matrix * np.diag(self.units_map)
        size = np.linalg.norm(encoded, axis=1)
        scaled = encoded / size[:, None]
        triangle, order = scipy.linalg.qr(scaled.T, mode="r", pivoting=True)
        diagonal = np.abs(np.diag(triangle))
        rank = int(np.count_nonzero(diagonal > _DEPENDENT * diagonal[0]))
        kept, left = np.sort(order[:rank]), order[rank:]
        stated = values / size
        if len(left):
            combined = np.linalg.lstsq(scaled[kept].T, scaled[left].T, rcond=None)[0]
            if not np.allclose(combined.T @ stated[kept], stated[left], rtol=1e-7, atol=1e-12):
                raise InputValueError("the restrictions contradict each other: no coefficients fulfill all of them")
        return matrix[kept], values[kept]

    @cached_property
    def overall_test(self) -> JointTest:
        """Test of the hypothesis that all coefficients but the constant are 0; valid for every fit."""
        slopes = np.eye(self.n_regressors)[1 if self.with_constant else 0 :]
        return self.joint_test(slopes, np.zeros(len(slopes)))

    def _carried(self, of_equations: FloatArray) -> FloatArray:
        """Convert Cov(g) to Cov(β̂) in original units."""
        solved = self.units_map @ np.linalg.pinv(self.gram)
        return solved @ of_equations @ solved.T
