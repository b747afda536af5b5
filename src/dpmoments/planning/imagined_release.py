"""Imagined releases: typical moments with a plan's noise, without a draw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from dpmoments.analysis.correlations import correlation_noise, correlation_of, correlations
from dpmoments.analysis.description import Description, describe
from dpmoments.analysis.regression import ols
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import unrelated
from dpmoments.analysis.resolvability import smallest_seen
from dpmoments.foundation import __version__
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.messages.message import Message
from dpmoments.noise.terms import NoiseLaw
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.repair.available_cases import Presence
from dpmoments.repair.repair import Repair
from dpmoments.schema.columns import Categorical
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

# What a run can turn out to be.


@dataclass(frozen=True)
class PossibleRun:
    """Noise of a possible run, with its probability.

    ``centered`` is True if moments are about a center near the mean, so that noise on the count hardly matters.
    """

    probability: float
    law: NoiseLaw
    centered: bool = False


def possible_runs(plan: Plan, typical: TypicalTable) -> tuple[PossibleRun, ...] | None:
    """Return the possible noise of a run of the plan; None if it is not known before a run."""
    law = None if plan.model is None else plan.model.fixed_law
    if law is None or not plan.shape.mean or plan.shape.row_norm is None:
        return None
    if typical.schema.has_available:
        matrix = Presence.of(typical.schema.with_indicators, None).typical_map(typical.in_unit_ball[1])
        law = law.carried(matrix)
    return (PossibleRun(1.0, law),)


# The release that analyses read.

EXPLAINED = 0.5
"""Fraction of the variance that the regressors of the typical regression explain."""
MANY_TIMES = 10**9
"""Factor on the rows that reveals first-order noise where it hides the value."""


@dataclass(frozen=True, eq=False)
class ImaginedRelease:
    """Release that analyses can read, made without a table or a draw; it cannot be saved.

    Attributes
    ----------
    plan : Plan
    typical : TypicalTable
        Its means and standard deviations; features of different columns are uncorrelated, unless
        ``unit_ball_covariance`` differs.
    n_rows : int
    noise : NoiseLaw
        Noise that the plan would add, with correct variances and normal cells: intervals are approximate.
    centered : bool
        True if the moments are about the typical means, as in an accepted clipping ball.
    unit_ball_covariance : ndarray of shape (d, d)
        Covariance of the encoded rows.
    tails : NoiseLaw
        Noise of the likeliest run, for quantiles.
    """

    plan: Plan
    typical: TypicalTable
    n_rows: int
    noise: NoiseLaw
    centered: bool
    unit_ball_covariance: FloatArray
    tails: NoiseLaw

    describe = describe
    correlations = correlations
    ols = ols

    @classmethod
    def of(
        cls, plan: Plan, typical: TypicalTable, n_rows: int, runs: Sequence[PossibleRun], *, centered: bool
    ) -> ImaginedRelease:
        """Make the release with the mean variances of runs that share their center.

        A forecast states only variances, for which the family of the noise does not matter: cells are normal here.
        """
        total = math.fsum(run.probability for run in runs)
        first, *rest = (run.law.scaled(run.probability / total) for run in runs)
        law = first
        for other in rest:
            law = law + other
        likeliest = max(runs, key=lambda run: run.probability).law
        return cls(plan, typical, n_rows, law, centered, _typical_covariance(typical), likeliest)

    # What an analysis asks of a release ----------------------------------------------------------------------------------

    repair: ClassVar = Repair.AUTO
    noise_model: ClassVar = None
    available: ClassVar = None
    rows_moved: ClassVar = False
    present: ClassVar = None
    both_present: ClassVar = None

    @property
    def as_drawn(self) -> ImaginedRelease:
        """The release itself: a typical table has no missing values."""
        return self

    @property
    def drawn_parts(self) -> tuple[ImaginedRelease, ...]:
        """The release itself."""
        return (self,)

    warnings: ClassVar[tuple[Message, ...]] = ()

    @property
    def schema(self) -> Schema:
        """Schema of the table."""
        return self.typical.schema

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy statement of a run, with ``private`` False, since nothing was released."""
        plan = self.plan
        arithmetic, unit = str(plan.arithmetic), plan.privacy_unit
        return PrivacyStatement(plan.cost, plan.neighbors, arithmetic, False, (), __version__, unit)

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self.plan.mechanism.name

    @property
    def diagnostics(self) -> Mapping[str, Any]:
        """Empty mapping, since nothing was run."""
        return {}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""
        return self.schema.feature_names

    @property
    def encoding(self) -> Encoding:
        """Affine map between original and encoded units."""
        return self.typical.encoding

    @property
    def center(self) -> FloatArray | None:
        """Center of the sum and Gram matrix; None is the origin."""
        return self.unit_ball_mean if self.centered else None

    @property
    def noisy_count(self) -> float:
        """Number of rows."""
        return float(self.n_rows)

    @property
    def noisy_sum(self) -> FloatArray:
        """Sum of encoded rows about ``center``."""
        return np.zeros(len(self.feature_names)) if self.centered else self.n_rows * self.unit_ball_mean

    @property
    def noisy_gram(self) -> FloatArray:
        """Gram matrix of encoded rows about ``center``."""
        return self.n_rows * self.unit_ball_covariance if self.centered else self.unit_ball_gram

    @property
    def zero_of_units(self) -> FloatArray:
        """Offset from encoded rows about ``center`` to value/scale, shape (d,)."""
        zero = self.encoding.offset / self.encoding.scale
        return zero + self.unit_ball_mean if self.centered else zero

    @property
    def count_is_public(self) -> bool:
        """True if the number of rows has no noise."""
        return self.plan.count_is_public

    @property
    def unit_ball_mean(self) -> FloatArray:
        """Mean of the encoded rows, shape (d,)."""
        return self.typical.in_unit_ball[1]

    @property
    def unit_ball_gram(self) -> FloatArray:
        """Gram matrix of the encoded rows about 0, shape (d, d)."""
        return self.n_rows * (self.unit_ball_covariance + np.outer(self.unit_ball_mean, self.unit_ball_mean))

    @property
    def mean(self) -> FloatArray:
        """Mean, shape (d,)."""
        return self.typical.means

    @property
    def second_moment(self) -> FloatArray:
        """Second moment about 0, shape (d, d)."""
        return self.covariance + np.outer(self.mean, self.mean)

    @property
    def covariance(self) -> FloatArray:
        """Covariance, shape (d, d)."""
        return self.encoding.decode_covariance(self.unit_ball_covariance)

    @property
    def correlation(self) -> FloatArray:
        """Correlation, shape (d, d)."""
        return correlation_of(self.unit_ball_covariance)

    def with_repair(self, repair: str) -> ImaginedRelease:
        """Return the release itself: there is no noise to repair."""
        del repair
        return self

    # What a forecast asks ------------------------------------------------------------------------------------------------

    def explained_by_others(self, target: int, by: Sequence[str] | None = None) -> ImaginedRelease:
        """Return the release in which the regressors explain half the variance of ``target``.

        Equally.

        Raises ValueError if there is nothing to regress it on.
        """
        chosen = list(Regressors.chosen(self, self.feature_names[target], by, None, None).features)
        covariance = self.unit_ball_covariance.copy()
        deviations = np.sqrt(np.diag(covariance))
        slopes = np.divide(1.0, deviations[chosen], out=np.zeros(len(chosen)), where=deviations[chosen] > 0.0)
        explained = float(slopes @ covariance[np.ix_(chosen, chosen)] @ slopes)
        if explained > 0.0:
            shared = covariance[:, chosen] @ slopes * (math.sqrt(EXPLAINED / explained) * deviations[target])
            own = list(self.typical.features_of_columns[self.typical.columns[target]])
            shared[own] = covariance[own, target]
            covariance[:, target] = covariance[target, :] = shared
        return replace(self, unit_ball_covariance=covariance)


def _typical_covariance(typical: TypicalTable) -> FloatArray:
    """Return the covariance of encoded rows; only levels of one column are correlated."""
    deviations, _ = typical.in_unit_ball
    result = np.diag(deviations**2)
    for column in typical.schema.columns:
        if isinstance(column, Categorical) and len(column.feature_names) > 1:
            own = list(typical.features_of_columns[column.name])
            odds = np.clip(typical.means[own], 1e-9, 1.0 - 1e-9)
            root = np.sqrt(odds / (1.0 - odds)) * deviations[own]
            block = -np.outer(root, root)
            np.fill_diagonal(block, deviations[own] ** 2)
            result[np.ix_(own, own)] = block
    result.setflags(write=False)
    return result


# What the analyses say of imagined releases, over all that a run can turn out to be.


@dataclass(frozen=True, eq=False)
class ForecastNoise:
    """Noise SDs of a plan before repair, as analyses of its imagined releases state them."""

    # (float, ImaginedRelease), with their probabilities. Two if a run may accept a ball or use the public bounds:
    # numbers are then root mean squares over both, and the likelier one decides what counts as noise.
    releases: tuple[tuple[float, ImaginedRelease], ...]

    @classmethod
    def of(cls, plan: Plan, typical: TypicalTable, n_rows: int, runs: Sequence[PossibleRun]) -> ForecastNoise:
        """Make it from the possible runs."""
        releases = []
        for centered in (True, False):
            if alike := [run for run in runs if run.centered is centered]:
                probability = math.fsum(run.probability for run in alike)
                release = ImaginedRelease.of(plan, typical, n_rows, alike, centered=centered)
                releases.append((probability, release))
        return cls(tuple(releases))

    @property
    def release(self) -> ImaginedRelease:
        """Likeliest of the imagined releases."""
        return max(self.releases, key=lambda entry: entry[0])[1]

    @property
    def typical(self) -> TypicalTable:
        """Assumed table."""
        return self.release.typical

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.release.n_rows

    @cached_property
    def description(self) -> Description:
        """Result of ``describe()`` on the imagined release."""
        said = [(probability, release.describe()) for probability, release in self.releases]
        likeliest = max(said, key=lambda entry: entry[0])[1]
        if len(said) == 1:
            return likeliest
        known = self.typical.standard_deviations
        lost = np.array(likeliest.standard_deviation_is_noise)
        # a rare bad run loses what there is, not more
        spread = self._averaged([np.minimum(each.standard_deviation_noise, known) for _, each in said])
        return replace(
            likeliest,
            mean_noise=self._averaged([each.mean_noise for _, each in said]),
            standard_deviation_noise=np.where(lost, likeliest.standard_deviation_noise, spread),
        )

    @property
    def mean(self) -> FloatArray:
        """Noise on each feature's mean (or share), in original units, shape (d,)."""
        return self.description.mean_noise

    @property
    def standard_deviation(self) -> FloatArray:
        """Noise on each feature's standard deviation, in original units, shape (d,)."""
        return self.description.standard_deviation_noise

    @cached_property
    def correlation(self) -> FloatArray:
        """First-order noise on correlations of uncorrelated features, shape (d, d)."""
        # NaN within a column, and for a constant feature.
        said = [_first_order(release, noise) for release, noise in self._correlation_noise]
        if len(said) > 1:
            said = [np.minimum(noise, 1.0) for noise in said]
        result = self._averaged(said)
        columns = np.array(self.typical.columns, dtype=object)
        result[columns[:, None] == columns[None, :]] = np.nan
        return result

    @cached_property
    def correlation_is_noise(self) -> BoolArray:
        """Correlations hidden by noise (a variance is noise-dominated), shape (d, d)."""
        if not self._correlation_noise:
            return np.zeros((1, 1), dtype=bool)
        likeliest = next(noise for release, noise in self._correlation_noise if release is self.release)
        return np.isfinite(self.correlation) & np.isnan(likeliest)

    @cached_property
    def _correlation_noise(self) -> tuple[tuple[ImaginedRelease, FloatArray], ...]:
        if len(self.typical.columns) < 2:
            return ()
        return tuple((release, correlation_noise(release)) for _, release in self.releases)

    def typical_correlation(self, among: Sequence[int] | None = None) -> float:
        """Return the median noise on correlations of numeric columns, else of any two; NaN for one."""
        pairs = self._typical_pairs(among)
        return float(np.median(self.correlation[pairs])) if len(pairs[0]) else math.nan

    @property
    def typical_correlation_is_noise(self) -> bool:
        """True if noise hides most of those correlations."""
        pairs = self._typical_pairs(None)
        return bool(2 * np.sum(self.correlation_is_noise[pairs]) > len(pairs[0]))

    @cached_property
    def comparable(self) -> BoolArray:
        """Mask of the pairs of features that a table of correlations compares, shape (d, d)."""
        return unrelated(self.release, range(len(self.typical.columns)))

    @property
    def n_pairs(self) -> int:
        """Number of those pairs."""
        return int(np.tril(self.comparable, -1).sum())

    @cached_property
    def smallest_correlation(self) -> FloatArray:
        """Smallest correlation of each pair whose sign is clear with 80 % probability.

        In a table of all pairs, shape (d, d).

        Privacy noise and sampling error together (that of uncorrelated features); infinite if it would be above 1, or noise hides
        it, and NaN if the pair is not compared.
        """
        sampling = np.full(self.correlation.shape, self.release.privacy.rows_per_unit / self.n_rows)
        result = smallest_seen(self.correlation**2, sampling, self.n_pairs, self.release.tails)
        result = np.where((result > 1.0) | self.correlation_is_noise, np.inf, result)
        return np.where(self.comparable & np.isfinite(self.correlation), result, np.nan)

    def smallest_correlations(self) -> FloatArray:
        """Return the median of :attr:`smallest_correlation` over the pairs of each feature."""
        # Shape (d,); NaN without pairs.
        return np.array(
            [np.median(known) if len(known := row[~np.isnan(row)]) else np.nan for row in self.smallest_correlation]
        )

    @property
    def worst_correlation(self) -> tuple[str, str, float, bool]:
        """Pair with the most noise, its noise, and whether it is hidden; no names for one column."""
        first, second = np.nonzero(np.tril(np.isfinite(self.correlation), -1))
        if not len(first):
            return "", "", math.nan, False
        worst = int(np.argmax(self.correlation[first, second]))
        i, j, names = first[worst], second[worst], self.typical.schema.feature_names
        return names[j], names[i], float(self.correlation[i, j]), bool(self.correlation_is_noise[i, j])

    def _typical_pairs(self, among: Sequence[int] | None) -> tuple[IntegerArray, IntegerArray]:
        chosen = np.arange(len(self.typical.columns)) if among is None else np.asarray(among, dtype=int)
        numbers = chosen[~self.typical.shares[chosen]]
        for candidates in (numbers, chosen):
            first, second = (candidates[indices] for indices in np.tril_indices(len(candidates), -1))
            apart = np.isfinite(self.correlation[first, second])
            if apart.any():
                return first[apart], second[apart]
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int)

    @cached_property
    def regression(self) -> TypicalRegression | None:
        """Typical regression of a feature on all others; None if impossible."""
        numbers = np.flatnonzero(~self.typical.shares)
        candidates = numbers if len(numbers) else np.flatnonzero(np.isfinite(self.correlation).any(axis=0))
        if len(set(self.typical.columns)) < 2 or not len(candidates):
            return None
        deviations = self.typical.in_unit_ball[0][candidates]
        target = int(candidates[np.argsort(deviations, kind="stable")[(len(candidates) - 1) // 2]])
        likeliest = typical_regression(self.release, target)
        if likeliest is None or len(self.releases) == 1 or not math.isfinite(likeliest.noise):
            return likeliest
        said = [typical_regression(release, target) for _, release in self.releases]
        said = [
            fit
            if fit is not None and math.isfinite(fit.noise)
            else typical_regression(release, target, first_order=True)
            for fit, (_, release) in zip(said, self.releases, strict=True)
        ]
        noise = [np.array(1.0 if fit is None else min(fit.noise, 1.0)) for fit in said]
        return replace(likeliest, noise=float(self._averaged(noise)))

    @property
    def coefficient(self) -> float:
        """Median noise on its standardized coefficients; infinite if hidden, NaN without one."""
        return math.nan if self.regression is None else self.regression.noise

    def _averaged(self, values: Sequence[FloatArray]) -> FloatArray:
        """Return the root mean square over the possible runs."""
        if not values:
            return np.full((len(self.typical.columns),) * 2, np.nan)
        parts = zip(self.releases, values, strict=True)
        return np.asarray(np.sqrt(np.sum([probability * values**2 for (probability, _), values in parts], axis=0)))


@dataclass(frozen=True)
class TypicalRegression:
    """Regression of one feature on all others, which explain half of its variance.

    ``noise`` is the median noise SD on standardized coefficients of numeric columns (or of all, if none is numeric);
    infinite if the fit is not identified.
    """

    target: str
    regressors: int
    noise: float


def typical_regression(
    release: ImaginedRelease, target: int, by: Sequence[str] | None = None, *, first_order: bool = False
) -> TypicalRegression | None:
    """Fit the typical regression; ``first_order`` also gives noise that hides the result."""
    name, times = release.feature_names[target], MANY_TIMES if first_order else 1
    try:
        release = replace(release, n_rows=release.n_rows * times)
        imagined = release.explained_by_others(target, by)
    except ValueError:  # no features, or none whose number of rows noise does not hide
        return None
    fit = imagined.ols(name, by)
    deviations, indices = release.typical.standard_deviations, [release.feature_names.index(f) for f in fit.features]
    numbers = ~release.typical.shares[indices]
    kept = numbers if numbers.any() else ~numbers
    noise = _median_error(fit, np.flatnonzero(kept), deviations[indices]) * times
    noise = noise / float(deviations[target]) if deviations[target] > 0.0 else math.inf
    return TypicalRegression(name, len(indices), noise if math.isfinite(noise) else math.inf)


def _median_error(fit: FittedLine, kept: IntegerArray, deviations: FloatArray) -> float:
    """Return the privacy error of the coefficient in the middle by the delta method."""
    if fit.equations is None:
        return math.nan
    first = int(fit.with_intercept)
    rough = (np.abs(np.diag(fit.equations.units_map)) * fit.equations.delta_method_errors)[first:] * deviations
    ordered = kept[np.argsort(rough[kept], kind="stable")]
    middle = ordered[(len(kept) - 1) // 2 : len(kept) // 2 + 1]
    chosen = np.eye(fit.equations.n_regressors)[first + middle]
    errors = [fit.equations.contrast(weights, fit.level).privacy for weights in chosen]
    return float(np.mean(errors * deviations[middle]))


def _first_order(release: ImaginedRelease, noise: FloatArray) -> FloatArray:
    """Return first-order noise also for correlations that it hides."""
    if not np.isnan(noise).any():
        return noise
    many = replace(release, n_rows=release.n_rows * MANY_TIMES)
    return np.asarray(np.where(np.isnan(noise), correlation_noise(many) * MANY_TIMES, noise))


# What a release would be made with, all of it public.


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Release that could be made, from public numbers."""

    typical: TypicalTable  # with the schema
    n_rows: int  # with a privacy unit, the number of rows that count
    budget: PrivacyBudget
    neighbors: Neighbors
    mechanism: Mechanism
    rivals: tuple[Mechanism, ...] = ()  # mechanisms that may be better once something is changed
    privacy_unit: PrivacyUnit | None = None  # the privacy unit, if it is not one row

    @cached_property
    def plan(self) -> Plan:
        """Plan with count and mean; for units, the plan that runs on the counted rows."""
        # Where the number of rows is private a release plans without it.
        n_rows = self.n_rows if self.neighbors.table_size_is_public else None
        shape = MomentShape.of(self.typical.schema, mean=True, n_rows=n_rows)
        return planned(self.mechanism, shape, self.budget, self.neighbors, self.privacy_unit)

    @cached_property
    def noise(self) -> ForecastNoise | None:
        """Noise of the plan; None if it is not known before a run."""
        return forecast_noise(self.plan, self.typical, self.n_rows)

    def with_budget(self, size: float) -> ReleasePlan:
        """Return the plan with another ε (and the same δ), or ρ."""
        budget = self.budget
        if budget.kind is BudgetKind.ZCDP:
            return replace(self, budget=PrivacyBudget.zcdp(size))
        if budget.kind is BudgetKind.PURE:
            return replace(self, budget=PrivacyBudget.pure(size))
        return replace(self, budget=PrivacyBudget.approximate(size, budget.delta))

    @property
    def size_of_budget(self) -> float:
        """Size of the budget, ε or ρ."""
        return self.budget.rho if self.budget.kind is BudgetKind.ZCDP else self.budget.epsilon


@lru_cache(maxsize=64)
def planned(
    mechanism: Mechanism,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    unit: PrivacyUnit | None,
) -> Plan:
    """Return the plan of a release's moments, cached for searches."""
    return plan_before_release(mechanism, shape, budget, neighbors, unit)


def forecast_noise(plan: Plan, typical: TypicalTable, n_rows: int) -> ForecastNoise | None:
    """Return the noise of a plan as analyses state it; None if not known before a run."""
    runs = possible_runs(plan, typical)
    return None if runs is None else ForecastNoise.of(plan, typical, n_rows, runs)
