"""Noise of a planned release: what the analyses state of an imagined one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache

import numpy as np

from dpmoments.analysis.correlations import correlation_noise
from dpmoments.analysis.description import Description
from dpmoments.analysis.released import correlation_of, unrelated
from dpmoments.analysis.resolvability import smallest_seen
from dpmoments.base.arrays import BoolArray, FloatArray
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.request import PrivacyRequest
from dpmoments.releases.moment_release import MomentRelease, of_present_values
from dpmoments.schema.schema import Schema
from dpmoments.spending.imagined import imagined_release

_MANY = 30
"""Number of features above which the pairs of that many stand for all."""
_MANY_TIMES = 1e9
"""Factor on the rows that reveals first-order noise where it hides the value."""


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Release that could be made, from public numbers."""

    typical: TypicalTable  # with the schema
    n_rows: int  # with a privacy unit, the number of rows that count
    request: PrivacyRequest
    mechanism: Mechanism
    mean: bool = True

    @cached_property
    def plan(self) -> Plan:
        """Plan of the run; for units, the plan that runs on the counted rows."""
        # Where the number of rows is private a release plans without it.
        n_rows = self.n_rows if self.request.neighbors.table_size_is_public else None
        return _planned(self.mechanism, self.typical.schema, self.mean, n_rows, self.request)

    @property
    def imagined(self) -> ForecastNoise:
        """Imagined release of the typical rows, without noise in its numbers."""
        plan = replace(self.plan, chosen_because=None)
        return _imagined(plan, self.typical, max(1, round(self.n_rows * self.typical.kept_share)), self.request)

    @property
    def noise(self) -> ForecastNoise | None:
        """Imagined noise; None without a mean, or for a mechanism that is biased on purpose."""
        return self.imagined if self.mean and self.imagined.release.noise is not None else None

    @property
    def known_noise(self) -> ForecastNoise | None:
        """Imagined noise; None if it is unknown, or no such release can be planned."""
        try:
            return self.noise
        except (ValueError, OverflowError):
            return None

    def with_budget(self, size: float) -> ReleasePlan:
        """Return the plan with another ε (and the same δ), or ρ."""
        budget = self.request.budget
        return self.under(replace(budget, rho=size) if self.symbol == "ρ" else replace(budget, epsilon=size))

    def under(self, budget: PrivacyBudget) -> ReleasePlan:
        """Return the plan with another budget."""
        return replace(self, request=replace(self.request, budget=budget))

    @property
    def size_of_budget(self) -> float:
        """Size of the budget, ε or ρ."""
        return self.request.budget.rho if self.symbol == "ρ" else self.request.budget.epsilon

    @property
    def symbol(self) -> str:
        """Symbol of that size."""
        return "ρ" if self.request.budget.kind is BudgetKind.ZCDP else "ε"


@lru_cache(maxsize=64)
def _planned(mechanism: Mechanism, schema: Schema, mean: bool, n_rows: int | None, request: PrivacyRequest) -> Plan:
    return mechanism.plan_for(MomentShape.of(schema, mean=mean, n_rows=n_rows), request)


@lru_cache(maxsize=64)
def _imagined(plan: Plan, typical: TypicalTable, n_rows: int, request: PrivacyRequest) -> ForecastNoise:
    block = typical.encoded(n_rows, mean=plan.shape.mean)
    return ForecastNoise(imagined_release(plan, typical.schema, block, n_rows, request), typical, n_rows)


@dataclass(frozen=True, eq=False)
class ForecastNoise:
    """Noise SDs before repair, as analyses state them of an imagined release."""

    release: MomentRelease
    typical: TypicalTable
    n_rows: int
    _known: dict[tuple[int, ...], tuple[FloatArray, BoolArray]] = field(default_factory=dict, repr=False)

    @property
    def _typical_moments(self) -> tuple[FloatArray, FloatArray]:
        """Means and covariance of the typical rows, which a run may clip."""
        return self.typical.moments(self.n_rows)[:2]

    @cached_property
    def description(self) -> Description:
        """Result of ``describe()``, with means and standard deviations that no clipping has moved."""
        typical = self.typical
        return replace(self.release.describe(), mean=typical.means, standard_deviation=typical.standard_deviations)

    @property
    def clipped_deviations(self) -> FloatArray:
        """Share by which clipping makes each standard deviation of typical rows smaller, shape (d,)."""
        known = np.diag(self._typical_moments[1])
        kept = np.divide(np.diag(self.release.covariance), known, out=np.ones(len(known)), where=known > 0.0)
        return np.asarray(1.0 - np.sqrt(np.clip(kept, 0.0, 1.0)))

    @property
    def mean(self) -> FloatArray:
        """Noise on each feature's mean (or share), in original units, shape (d,)."""
        return self.description.mean_noise

    @property
    def standard_deviation(self) -> FloatArray:
        """Noise on each feature's standard deviation, in original units, shape (d,)."""
        return self.description.standard_deviation_noise

    @cached_property
    def mean_in_deviations(self) -> FloatArray:
        """Noise on each feature's mean, in its typical standard deviations; infinite for a constant."""
        known = self.typical.standard_deviations
        return np.asarray(np.divide(self.mean, known, out=np.full(len(known), np.inf), where=known > 0.0))

    @property
    def mean_error(self) -> float:
        """Root mean square error of the means in standard deviations; NaN if nothing varies.

        By noise and by clipping.
        """
        mean, covariance = self._typical_moments
        vary = np.diag(covariance) > 0.0
        squares = (self.mean**2 + (self.release.mean - mean) ** 2)[vary] / np.diag(covariance)[vary]
        return float(np.sqrt(np.mean(squares))) if vary.any() else math.nan

    @property
    def correlation_error(self) -> float:
        """Root mean square error of correlations of different columns; NaN for one column.

        By noise (at most 1) and by clipping.
        """
        chosen = self._some(range(len(self.typical.columns)))
        noise, _ = self._correlations(chosen)
        pairs = np.ix_(chosen, chosen)
        moved = correlation_of(self.release.unit_ball_covariance[pairs]) - correlation_of(
            self._typical_moments[1][pairs]
        )
        squares = np.minimum(noise**2, 1.0) + np.nan_to_num(moved) ** 2
        known = squares[self.comparable[pairs] & ~np.isnan(squares)]
        return float(np.sqrt(np.mean(known))) if len(known) else math.nan

    @staticmethod
    def _some(features: Sequence[int]) -> tuple[int, ...]:
        """Return the features whose pairs stand for those of many."""
        return tuple(features[:: -(-len(features) // _MANY) or 1])

    def _correlations(self, chosen: tuple[int, ...]) -> tuple[FloatArray, BoolArray]:
        """Return first-order noise on correlations, shape (k, k), and where it hides them."""
        # NaN within a column, and for a constant feature; infinite where it is hidden by noise that grows with the moments.
        if chosen not in self._known:
            columns = np.array(self.typical.columns, dtype=object)[list(chosen)]
            vary = self.typical.standard_deviations[list(chosen)] > 0.0
            apart = (columns[:, None] != columns[None, :]) & vary[:, None] & vary[None, :]
            model = self.release.as_drawn.noise_model
            result = stated = np.full(apart.shape, np.nan)
            if apart.any():
                result = stated = correlation_noise(self.release, chosen)
            if np.isnan(stated[apart]).any() and model is not None and model.fixed_law is not None:
                # the same noise on many times as many rows
                drawn = self.release.as_drawn
                values = {entry.name: getattr(drawn, entry.name) for entry in fields(MomentRelease)}
                for name in ("noisy_count", "noisy_sum", "noisy_gram"):
                    values[name] = values[name] * _MANY_TIMES
                many = correlation_noise(of_present_values(MomentRelease(**values)), chosen) * _MANY_TIMES
                result = np.where(np.isnan(stated), many, stated)
            result = np.where(apart, np.nan_to_num(result, nan=np.inf, posinf=np.inf), np.nan)
            self._known[chosen] = result, apart & np.isnan(stated)
        return self._known[chosen]

    @property
    def correlation(self) -> FloatArray:
        """First-order noise on correlations, shape (d, d)."""
        return self._correlations(tuple(range(len(self.typical.columns))))[0]

    @property
    def correlation_is_noise(self) -> BoolArray:
        """Correlations hidden by noise (a variance is noise-dominated), shape (d, d)."""
        return self._correlations(tuple(range(len(self.typical.columns))))[1]

    def typical_correlation(self, among: Sequence[int] | None = None) -> float:
        """Return the median noise on correlations of numeric columns, else of any two; NaN for one."""
        noise, _ = self._typical_pairs(among)
        return float(np.median(noise)) if len(noise) else math.nan

    @property
    def typical_correlation_is_noise(self) -> bool:
        """True if noise hides most of those correlations."""
        _, hidden = self._typical_pairs(None)
        return bool(2 * np.sum(hidden) > len(hidden))

    @cached_property
    def comparable(self) -> BoolArray:
        """Mask of the pairs of features that a table of correlations compares, shape (d, d)."""
        return unrelated(self.release, range(len(self.typical.columns)))

    @property
    def n_pairs(self) -> int:
        """Number of those pairs."""
        return int(np.tril(self.comparable, -1).sum())

    def smallest_correlations(self) -> FloatArray:
        """Return the smallest correlation whose sign is clear with 80 % probability.

        Each feature's median over its pairs.
        In a table of all pairs, privacy noise and sampling error together; infinite if it would be above 1, or noise hides it.
        Shape (d,); NaN without pairs.
        """
        law = self.release.as_drawn.noise
        assert law is not None
        together = np.maximum(self.typical.moments(self.n_rows)[2] * self.n_rows, 1.0)
        sampling = self.release.privacy.rows_per_unit / together
        privacy = np.nan_to_num(self.correlation, nan=0.0, posinf=1.0) ** 2
        smallest = smallest_seen(privacy, sampling, self.n_pairs, law)
        smallest = np.where((smallest > 1.0) | self.correlation_is_noise, np.inf, smallest)
        smallest = np.where(self.comparable & ~np.isnan(self.correlation), smallest, np.nan)
        return np.array([np.median(known) if len(known := row[~np.isnan(row)]) else np.nan for row in smallest])

    @property
    def worst_correlation(self) -> tuple[str, str, float, bool]:
        """Pair with the most noise, its noise, and whether it is hidden; no names for one column."""
        first, second = np.nonzero(np.tril(~np.isnan(self.correlation), -1))
        if not len(first):
            return "", "", math.nan, False
        worst = int(np.argmax(self.correlation[first, second]))
        i, j, names = first[worst], second[worst], self.typical.schema.feature_names
        return names[j], names[i], float(self.correlation[i, j]), bool(self.correlation_is_noise[i, j])

    def _typical_pairs(self, among: Sequence[int] | None) -> tuple[FloatArray, BoolArray]:
        chosen = np.arange(len(self.typical.columns)) if among is None else np.asarray(among, dtype=int)
        for candidates in (chosen[~self.typical.shares[chosen]], chosen):
            noise, hidden = self._correlations(self._some(candidates.tolist()))
            apart = np.tril(~np.isnan(noise), -1)
            if apart.any():
                break
        return noise[apart], hidden[apart]

    @cached_property
    def regression(self) -> TypicalRegression | None:
        """Typical regression of a feature on all others, or on some of many; None if impossible."""
        numbers = np.flatnonzero(~self.typical.shares)
        candidates = numbers if len(numbers) else np.flatnonzero(~np.isnan(self.correlation).all(axis=0))
        if len(set(self.typical.columns)) < 2 or not len(candidates):
            return None
        deviations = self.typical.standard_deviations[candidates] / self.release.encoding.scale[candidates]
        target = int(candidates[np.argsort(deviations, kind="stable")[(len(candidates) - 1) // 2]])
        others = [name for name in dict.fromkeys(self.typical.columns) if name != self.typical.columns[target]]
        by = None if len(others) <= _MANY else [others[index] for index in self._some(range(len(others)))]
        return self.regression_on(self.typical.schema.feature_names[target], by)

    def regression_on(self, target: str, by: Sequence[str] | None = None) -> TypicalRegression | None:
        """Return the noise of a regression; None if there is nothing to regress it on."""
        try:
            fit = self.release.ols(target, by)
        except ValueError:  # no features, or none whose number of rows noise does not hide
            return None
        names, known = self.typical.schema.feature_names, self.typical.standard_deviations
        indices = [names.index(feature) for feature in fit.features]
        of_target = float(known[names.index(target)])
        if fit.equations is None or not of_target > 0.0:
            return TypicalRegression(target, len(indices), math.inf)
        # The coefficients in the middle by the delta method, with the errors that the fit states of them.
        deviations, numbers = known[indices], ~self.typical.shares[indices]
        kept = np.flatnonzero(numbers if numbers.any() else ~numbers)
        first = int(fit.with_intercept)
        rough = (np.abs(np.diag(fit.equations.units_map)) * fit.equations.delta_method_errors)[first:] * deviations
        ordered = kept[np.argsort(rough[kept], kind="stable")]
        middle = ordered[(len(kept) - 1) // 2 : len(kept) // 2 + 1]
        chosen = np.eye(fit.equations.n_regressors)[first + middle]
        errors = [fit.equations.contrast(weights, fit.level).privacy for weights in chosen]
        noise = float(np.mean(errors * deviations[middle]))
        return TypicalRegression(target, len(indices), noise / of_target if math.isfinite(noise) else math.inf)

    @property
    def coefficient(self) -> float:
        """Median noise on the standardized coefficients of :attr:`regression`.

        Infinite if hidden, NaN without a regression.
        """
        return math.nan if self.regression is None else self.regression.noise


@dataclass(frozen=True)
class TypicalRegression:
    """Regression of one feature on others.

    ``noise`` is the median noise SD on standardized coefficients of numeric columns (or of all, if none is numeric);
    infinite if the fit is not identified.
    """

    target: str
    regressors: int
    noise: float
