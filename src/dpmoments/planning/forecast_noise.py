"""Noise of a planned release: what the analyses state of an imagined one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, Column, rounded
from dpmoments.analysis.confidence import POWER, estimable, half_widths, smallest_seen
from dpmoments.analysis.correlations import correlation_noise
from dpmoments.analysis.description import Description
from dpmoments.analysis.goals import GoalResult, goal_results
from dpmoments.analysis.released import chosen_features, correlation_of, unrelated
from dpmoments.base.errors import listed
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.standardized import StandardizedPlan
from dpmoments.planning.typical_table import TypicalTable, noise_chances
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.schema.goals import Goal
from dpmoments.schema.schema import Schema
from dpmoments.spending.imagined import imagined_release

_MANY = 30
"""Number of features above which the pairs of that many stand for all."""
_LIKELY = (1, 2, 3)
"""Seeds of releases whose mean is near the mean of many."""
AS_LARGE_AS_A_GUESS = 2.0 / math.sqrt(12.0)
"""Noise on a correlation or standardized coefficient that says no more than its range."""
_NOISE = "noise"
_CLEAR_FROM = "r clear from"
IN_HOW_MANY = f"{round(5 * POWER)} of 5 releases"
_FAR_WORSE = 1.5
"""Name the worst pair if it has this many times the noise of the typical one."""
_MOVED = 0.01
"""Name what clipping does to standard deviations from this share on."""
_COUNTED = (
    "where values are missing, tests of groups count the rows with both values, with more noise than here: about 3 times that of "
    "the rows of a group"
)
"""Measured: 2.6 to 2.9 times, by Laplace and matrix Laplace noise on three groups."""
_QUANTILE = float(scipy.special.ndtri(0.975))
"""Normal quantile of 95 % intervals."""


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
        schema = self.typical.schema
        return _planned(self.mechanism, schema, self.mean, n_rows, self.request.divided(schema)[0])

    @property
    def imagined(self) -> ForecastNoise:
        """Imagined release of the typical rows, without noise in its numbers."""
        return self._imagined_with(None)

    @property
    def likely(self) -> list[ForecastNoise]:
        """Imagined releases with noise that chooses the ball; their mean is to be expected."""
        if not (isinstance(self.plan, StandardizedPlan) and self.plan.coordinates.has_numbers):
            return [self.imagined]
        return [self._imagined_with(seed) for seed in _LIKELY]

    def _imagined_with(self, seed: int | None) -> ForecastNoise:
        plan = replace(self.plan, chosen_because=None)
        request = self.request.divided(self.typical.schema)[0]
        return _imagined(plan, self.typical, max(1, round(self.n_rows * self.typical.kept_share)), request, seed)

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

    @property
    def is_readable(self) -> bool:
        """True if anything could be read in a release."""
        return self.known_noise is not None and any(count for count, _ in self.known_noise.readable.values())

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

    @property
    def budget_text(self) -> str:
        """Budget in few digits."""
        delta = f", δ = {self.request.budget.delta:g}" if self.request.budget.kind is BudgetKind.APPROXIMATE else ""
        return f"{self.symbol} = {self.size_of_budget:.4g}{delta}"


@lru_cache(maxsize=64)
def _planned(mechanism: Mechanism, schema: Schema, mean: bool, n_rows: int | None, request: PrivacyRequest) -> Plan:
    return mechanism.plan_for(MomentShape.of(schema, mean=mean, n_rows=n_rows), request)


@lru_cache(maxsize=64)
def _imagined(
    plan: Plan, typical: TypicalTable, n_rows: int, request: PrivacyRequest, seed: int | None
) -> ForecastNoise:
    block = typical.encoded(n_rows, mean=plan.shape.mean)
    chances = None if seed is None else noise_chances(seed)
    return ForecastNoise(imagined_release(plan, typical.schema, block, n_rows, request, chances), typical, n_rows)


@dataclass(frozen=True, eq=False, repr=False)
class ForecastNoise(Answer):
    """Noise SDs before repair, as analyses state them of an imagined release."""

    release: MomentRelease
    typical: TypicalTable
    n_rows: int
    _known: dict[tuple[int, ...], FloatArray] = field(default_factory=dict, repr=False)
    _results: dict[Goal, GoalResult] = field(default_factory=dict, repr=False)

    def results(self, goals: Sequence[Goal]) -> tuple[GoalResult, ...]:
        """Return how precise the answers are that goals name."""
        new = [goal for goal in goals if goal not in self._results]
        self._results.update(zip(new, goal_results(self.release, new), strict=True))
        return tuple(self._results[goal] for goal in goals)

    @cached_property
    def description(self) -> Description:
        """Result of ``describe()``, with means and standard deviations that no clipping has moved."""
        typical = self.typical
        return replace(self.release.describe(), mean=typical.means, standard_deviation=typical.standard_deviations)

    @property
    def clipped_deviations(self) -> FloatArray:
        """Share by which clipping makes each standard deviation of typical rows smaller, shape (d,)."""
        known = np.diag(self.typical.moments(self.n_rows)[1])
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
        mean, covariance, _ = self.typical.moments(self.n_rows)  # before clipping
        vary = np.diag(covariance) > 0.0
        squares = (self.mean**2 + (self.release.mean - mean) ** 2)[vary] / np.diag(covariance)[vary]
        return float(np.sqrt(np.mean(squares))) if vary.any() else math.nan

    @property
    def correlation_error(self) -> float:
        """Root mean square error of correlations of different columns; NaN for one column.

        By noise (at most 1) and by clipping.
        """
        chosen = self._some(range(len(self.typical.columns)))
        noise = self._correlations(chosen)
        pairs = np.ix_(chosen, chosen)
        moved = correlation_of(self.release.unit_ball_covariance[pairs]) - correlation_of(
            self.typical.moments(self.n_rows)[1][pairs]
        )
        squares = np.minimum(noise**2, 1.0) + np.nan_to_num(moved) ** 2
        known = squares[self.comparable[pairs] & ~np.isnan(squares)]
        return float(np.sqrt(np.mean(known))) if len(known) else math.nan

    @staticmethod
    def _some(features: Sequence[int]) -> tuple[int, ...]:
        """Return the features whose pairs stand for those of many."""
        return tuple(features[:: -(-len(features) // _MANY) or 1])

    def _correlations(self, chosen: tuple[int, ...]) -> FloatArray:
        """Return the noise on correlations, shape (k, k), infinite if a release would state none."""
        # NaN within a column, and for a constant feature.
        if chosen not in self._known:
            columns = np.array(self.typical.columns, dtype=object)[list(chosen)]
            vary = self.typical.standard_deviations[list(chosen)] > 0.0
            apart = (columns[:, None] != columns[None, :]) & vary[:, None] & vary[None, :]
            stated = correlation_noise(self.release, chosen) if apart.any() else np.full(apart.shape, np.nan)
            known = np.nan_to_num(stated, nan=np.inf) < AS_LARGE_AS_A_GUESS
            self._known[chosen] = np.where(apart, np.where(known, stated, np.inf), np.nan)
        return self._known[chosen]

    @property
    def correlation(self) -> FloatArray:
        """Noise on correlations, shape (d, d): NaN within a column, infinite if noise hides them."""
        return self._correlations(tuple(range(len(self.typical.columns))))

    @property
    def correlation_is_noise(self) -> BoolArray:
        """Mask of the correlations that noise hides, shape (d, d)."""
        return np.isinf(self.correlation)

    @property
    def hidden_features(self) -> list[str]:
        """Features none of whose correlations can be stated since noise hides how much they vary."""
        names, known = self.typical.schema.feature_names, ~np.isnan(self.correlation)
        lost = known.any(axis=0) & (self.correlation_is_noise | ~known).all(axis=0)
        return [names[index] for index in np.flatnonzero(lost & (self.description.deviation_limits > 0.0))]

    def typical_correlation(self, among: Sequence[int] | None = None) -> float:
        """Return the median noise on correlations of numeric columns, else of any two.

        NaN for one column, infinite if noise hides most of them.
        """
        chosen = np.arange(len(self.typical.columns)) if among is None else np.asarray(among, dtype=int)
        for candidates in (chosen[~self.typical.shares[chosen]], chosen):
            noise = self._correlations(self._some(candidates.tolist()))
            apart = np.tril(~np.isnan(noise), -1)
            if apart.any():
                return float(np.median(noise[apart]))
        return math.nan

    @cached_property
    def comparable(self) -> BoolArray:
        """Mask of the pairs of features that a table of correlations compares, shape (d, d)."""
        return unrelated(self.release, range(len(self.typical.columns)))

    @property
    def n_pairs(self) -> int:
        """Number of those pairs."""
        return int(np.tril(self.comparable, -1).sum())

    def _columns(self) -> list[Column]:
        typical, noise = self.typical, self.description.columns()
        _, *rows = replace(self.description, opposites={}).table()
        names, means, of_means, deviations, of_deviations = zip(*rows, strict=True)
        smallest = self.smallest_correlations()
        return [
            Column("feature", names, "feature", label=True),
            Column("typical_mean", typical.means, "typical mean", _marked(means, typical.assumed_means)),
            Column("mean_noise", noise["mean_noise"], "± noise", of_means),
            Column("typical_sd", typical.standard_deviations, "typical sd", _marked(deviations, typical.assumed)),
            Column(
                "standard_deviation_noise",
                np.where(typical.shares, np.nan, noise["standard_deviation_noise"]),
                "± noise",
                ["–" if share else cell for cell, share in zip(of_deviations, typical.shares, strict=True)],
            ),
            Column(
                "smallest_correlation",
                np.where(np.isfinite(smallest), smallest, np.nan),
                _CLEAR_FROM if self.n_pairs else None,
                [clear_from(size) for size in smallest.tolist()],
            ),
            Column("typical_mean_assumed", typical.assumed_means),
            Column("typical_sd_assumed", typical.assumed),
            *(Column(name, values) for name, values in noise.items() if name.endswith("_is_noise")),
        ]

    @property
    def _shown_rows(self) -> list[int]:
        return self.description._shown_rows

    def table_of_columns(self) -> list[Sequence[str]]:
        """Return a line for each column, head first; of several levels the noisiest."""
        features = dict[str, list[int]]()
        for index in self._shown_rows:
            features.setdefault(self.typical.columns[index], []).append(index)
        worst = [max(levels, key=lambda index: self.mean[index]) for levels in features.values()]
        names = [f"{column} ({len(levels)} levels)" if len(levels) > 1 else "" for column, levels in features.items()]
        rows = zip(["", *names], self.table_of(worst), strict=True)
        return [(name or row[0], *row[1:3], *row[5:]) for name, row in rows]

    @property
    def remarks(self) -> tuple[str, ...]:
        lines = [self.description.noise_text]
        moved = self.clipped_deviations.max(initial=0.0)
        if moved > _MOVED or self.release.mechanism == "standardized":
            smaller = f" (standard deviations up to {moved:.0%} smaller)" if moved > _MOVED else ""
            lines.append(
                f"± includes clipping of typical rows{smaller}: longer tails are clipped more, and a release then states more"
            )
        if not math.isnan(correlation := self.typical_correlation()):
            hidden = f" ({listed(self.hidden_features, quoted=False)})" if self.hidden_features else ""
            why = f": noise hides how much features vary{hidden}" if math.isinf(correlation) else ""
            of = "numeric columns" if (~self.typical.shares).sum() > 1 else "columns"
            lines += [
                f"± on a correlation (the median over pairs of {of}): {_noise_text(correlation)}{why}",
                f"{_CLEAR_FROM}: smallest correlation whose sign is clear in {IN_HOW_MANY}, despite noise and sampling error "
                "(the median over other features of its kind; clear: the 95 % interval excludes 0); none: no sign would be",
            ]
            pairs = np.tril(np.nan_to_num(self.correlation, nan=-1.0, posinf=np.inf), -1)
            second, first = np.unravel_index(np.argmax(pairs), pairs.shape)
            if (largest := float(pairs[second, first])) > _FAR_WORSE * correlation:
                names = self.typical.schema.feature_names
                lines.append(f"± on the worst, {names[first]} ~ {names[second]}: {_noise_text(largest)}")
            if (regression := self.regression) is not None:
                others = "one other" if regression.regressors == 1 else f"{regression.regressors} others"
                noise = _noise_text(regression.noise)
                lines.append(f"± on a standardized coefficient (of {regression.target} on {others}): {noise}")
        counted = _COUNTED if self.typical.schema.has_available else ""
        return tuple(filter(None, [*lines, counted, self.typical.words]))

    def _correlation_errors(self, chosen: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return variances of correlations near 0 by noise and by sampling, each of shape (k, k)."""
        together = np.maximum(self.typical.moments(self.n_rows)[2][np.ix_(chosen, chosen)] * self.n_rows, 1.0)
        privacy = np.nan_to_num(self._correlations(chosen), nan=0.0, posinf=1.0) ** 2
        return privacy, self.release.privacy.rows_per_unit / together

    def _smallest_clear(self, chosen: tuple[int, ...]) -> FloatArray:
        """Return the smallest correlation of clear sign, shape (k, k), infinite above 1."""
        law, noise = self.release.as_drawn.noise, self._correlations(chosen)
        assert law is not None
        smallest = smallest_seen(*self._correlation_errors(chosen), 1, law)
        smallest = np.where((smallest > 1.0) | np.isinf(noise), np.inf, smallest)
        return np.where(self.comparable[np.ix_(chosen, chosen)] & ~np.isnan(noise), smallest, np.nan)

    def smallest_correlations(self) -> FloatArray:
        """Return the median of each feature's pairs with others of its kind, shape (d,)."""
        smallest, shares = self._smallest_clear(tuple(range(len(self.typical.columns)))), self.typical.shares
        alike = np.where(shares[:, None] == shares[None, :], smallest, np.nan)
        known = np.where(np.isnan(alike).all(axis=1, keepdims=True), smallest, alike)
        return np.array([np.median(pairs) if len(pairs := row[~np.isnan(row)]) else np.nan for row in known])

    @cached_property
    def smallest_between(self) -> dict[str, float]:
        """Smallest correlation clear in half of the pairs, of two kinds at most."""
        shares, numbers, found = self.typical.shares, np.asarray(~self.typical.shares), dict[str, float]()
        kinds = {
            "numbers": (numbers, numbers),
            "yes/no values": (shares, shares),
            "a number and a yes/no value": (numbers, shares),
        }
        for kind, (first, second) in kinds.items():
            chosen = self._some(np.flatnonzero(first | second).tolist())
            if len(found) == 2 or not (chosen and self.n_pairs):
                continue
            pairs = self._smallest_clear(chosen)[np.ix_(first[list(chosen)], second[list(chosen)])]
            if len(known := pairs[~np.isnan(pairs)]):
                found[kind] = float(np.median(known))
        return found

    @property
    def clear_text(self) -> str:
        """From which size on the sign of a correlation is clear; empty without pairs."""
        sizes = self.smallest_between
        if all(map(math.isinf, sizes.values())):
            return "the sign of no correlation is clear" if sizes else ""
        said = [
            f"{'never' if math.isinf(size) else f'from {size:.2g} on'} between {kind}" for kind, size in sizes.items()
        ]
        return f"the sign of a correlation is clear {joined(said)}"

    @cached_property
    def readable(self) -> dict[str, tuple[int, int]]:
        """Number of means, shares, correlations and regressions to be stated, and their total."""
        law, said, shares = self.release.as_drawn.noise, self.description, self.typical.shares
        assert law is not None
        means = ~(np.array(said.mean_is_noise) | said.share_is_unclear)
        privacy, sampling = self._correlation_errors(tuple(range(len(shares))))
        total = privacy + sampling
        reach = half_widths(law)(np.full(total.shape, _QUANTILE), privacy / total) * np.sqrt(total)
        once = np.isin(np.arange(len(shares)), chosen_features(self.release, None))  # one of two levels
        pairs = np.tril(self.comparable & ~np.isnan(self.correlation) & np.outer(once, once), -1)
        seen = estimable(-reach, reach, -1.0, 1.0) & ~self.correlation_is_noise
        found = {
            "mean": (int(means[~shares].sum()), int((~shares).sum())),
            "share": (int(means[shares & once].sum()), int((shares & once).sum())),
            "correlation": (int(seen[pairs].sum()), int(pairs.sum())),
            "regression": (int(math.isfinite(self.coefficient)), int(self.regression is not None)),
        }
        return {what: counts for what, counts in found.items() if counts[1]}

    @property
    def readable_text(self) -> str:
        """Kinds of numbers that could be read in a release, and those that could not."""
        can = [
            f"{what}s" if count == total else f"{count:,} of {total:,} {what}s"
            for what, (count, total) in self.readable.items()
            if count
        ]
        cannot = [f"no {what}" for what, (count, _) in self.readable.items() if not count]
        if not can:
            return f"nothing can be read: {joined(cannot)}"
        return ", ".join(filter(None, [f"{joined(can)} can be read", joined(cannot)]))

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
        noise = float(np.mean(errors * deviations[middle])) / of_target
        return TypicalRegression(target, len(indices), noise if noise < AS_LARGE_AS_A_GUESS else math.inf)

    @property
    def coefficient(self) -> float:
        """Median noise on the standardized coefficients of :attr:`regression`.

        Infinite if hidden, NaN without a regression.
        """
        return math.nan if self.regression is None else self.regression.noise


def _marked(cells: Sequence[str], assumed: BoolArray) -> list[str]:
    """Mark the cells that are assumed."""
    return [f"~{cell}" if guess and cell != _NOISE else cell for cell, guess in zip(cells, assumed, strict=True)]


def clear_from(smallest: float) -> str:
    """Format the smallest correlation, – for a feature that is compared with no other."""
    return "–" if math.isnan(smallest) else "none" if math.isinf(smallest) else f"{smallest:.2g}"


def _noise_text(noise: float) -> str:
    return rounded(noise, noise) if math.isfinite(noise) else _NOISE


def joined(words: Sequence[str]) -> str:
    """Return words as a sentence lists them.

    >>> joined(["means", "shares", "correlations"])
    'means, shares and correlations'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


@dataclass(frozen=True)
class TypicalRegression:
    """Regression of one feature on others.

    ``noise`` is the median noise SD on standardized coefficients of numeric columns (or of all, if none is numeric);
    infinite if the fit is not identified.
    """

    target: str
    regressors: int
    noise: float
