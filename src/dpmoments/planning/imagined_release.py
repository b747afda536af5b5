"""From the law of a plan's noise to the noise on means, standard deviations, shares, correlations and coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, finite_or_none, number_or_none
from dpmoments.analysis.confidence import deviations_by_quantile
from dpmoments.analysis.correlations import KNOWN_VARIANCE
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.mechanisms.adaptive_ball import LENIENT_BELOW, MAX_CLIPPING_PER_NOISE, MAX_RADIUS, AdaptiveBallPlan
from dpmoments.mechanisms.ball_search import (
    BEYOND_SHARE,
    COMPARISONS,
    COUNT_SHARE,
    SCREEN_PLACE,
    BallBudget,
    preference,
    radius_at,
    radius_places,
)
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.lattice_noise import count_error
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.noise.models import AdditiveModel
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.schema.constraints import Constraints

_LEVEL = 0.95
"""Confidence of the half-widths."""
EXPLAINED = 0.5
"""Share of the variance that the regressors of a typical regression explain together."""


@dataclass(frozen=True)
class PossibleRun:
    """The law that the noise of a run can turn out to have.

    Attributes
    ----------
    probability : float
    law : AdditiveModel
    centered : bool
        Whether moments are released about a centre near the mean, on which noise in the count then tells little.
    """

    probability: float
    law: AdditiveModel
    centered: bool = False


@dataclass(frozen=True, eq=False)
class NoiseInUnits:
    """Standard deviations of the noise that a plan adds, before any repair, to first order, as ``describe`` states them.

    Attributes
    ----------
    typical : TypicalTable
    n_rows : int
    laws : tuple of PossibleRun
        More than one where the run chooses: numbers are then root mean squares over what it may choose.
    """

    typical: TypicalTable
    n_rows: int
    laws: tuple[PossibleRun, ...]

    @cached_property
    def mean(self) -> FloatArray:
        """On the mean of every feature (the share, of flags and levels), in the table's units, shape (d,).

        Of (noise of the sum − mean · noise of the count)/n, the mean in units of the encoding.
        """
        _, means = self.typical.in_unit_ball

        def variance(law: AdditiveModel, means: FloatArray) -> FloatArray:
            return np.asarray(_of_sum(law) + means**2 * _of_count(law))

        return self._certain(self._averaged(variance, means) / self.n_rows * self._scale)

    @cached_property
    def mean_half_width(self) -> FloatArray:
        """Half the width of a 95 % interval for the noise on the mean alone, shape (d,)."""
        return self.mean * self._deviations(self.mean)

    @cached_property
    def standard_deviation(self) -> FloatArray:
        """On the standard deviation of every feature, in the table's units, shape (d,)."""
        known, scale = self.typical.standard_deviations, self._scale

        def moved(of_variance: FloatArray) -> FloatArray:
            noise = of_variance * scale**2
            # as in a description: no root moves further than the root of the noise on the variance
            quotient = np.divide(noise, 2.0 * known, out=np.sqrt(noise), where=known > 0.0)
            return np.asarray(np.minimum(np.sqrt(noise), quotient))

        return self._root_mean_square([moved(noise) for noise in self._of_variance])

    @cached_property
    def standard_deviation_half_width(self) -> FloatArray:
        """Half the width of a 95 % interval for the noise on the standard deviation alone, shape (d,)."""
        return self.standard_deviation * self._deviations(self.standard_deviation)

    @property
    def count(self) -> FloatArray:
        """On the number of rows for which a flag is true, or that have a level, shape (d,); NaN for columns of numbers."""
        encoding = self.typical.schema.encoding(mean=True)
        offsets = encoding.offset / encoding.scale

        def variance(law: AdditiveModel, offsets: FloatArray) -> FloatArray:
            return np.asarray(_of_sum(law) + offsets**2 * _of_count(law))

        noise = self._averaged(variance, offsets, centered=offsets) * self._scale
        return np.where(self.typical.shares, noise, np.nan)

    @cached_property
    def correlation(self) -> FloatArray:
        """On the correlation of every two features that are not correlated, shape (d, d); NaN within a column.

        First order, whatever its size: :attr:`correlation_is_noise` says where it tells nothing.
        """
        deviations, means = self.typical.in_unit_ball

        def of_law(part: PossibleRun) -> FloatArray:
            squares = np.zeros_like(means) if part.centered else means**2
            cells = (
                part.law.off_diagonal_variance
                + np.add.outer(squares, squares) * _of_sum(part.law)
                + np.outer(squares, squares) * _of_count(part.law)
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                result = np.sqrt(cells) / np.outer(deviations, deviations) / self.n_rows
            return (
                result if len(self.laws) == 1 else np.minimum(result, 1.0)
            )  # a rare bad run loses what there is, not more

        noise = self._root_mean_square([of_law(part) for part in self.laws])
        columns = np.array(self.typical.columns, dtype=object)
        noise[columns[:, None] == columns[None, :]] = np.nan
        noise[~np.isfinite(noise)] = np.nan
        return noise

    @property
    def mean_is_noise(self) -> BoolArray:
        """Whether the noise on a mean is as large as the spread of a guess within the bounds, shape (d,)."""
        lower, upper = self.typical.schema.feature_bounds
        return np.asarray(self.mean >= (upper - lower) / math.sqrt(12.0))

    @property
    def standard_deviation_is_noise(self) -> BoolArray:
        """Whether the noise on a variance is as large as itself, shape (d,)."""
        return self._variance_is_below(1.0)

    @property
    def standard_deviation_is_rough(self) -> BoolArray:
        """Whether the first order says too little of a standard deviation, shape (d,).

        Normal noise of t times a variance moves its root by t/2·(1 + 15t²/16 + …)^½, in the root mean square.
        """
        return self._variance_is_below(KNOWN_VARIANCE)

    @property
    def correlation_is_noise(self) -> BoolArray:
        """Features whose correlations will be said to be indistinguishable from noise, their variance being lost, shape (d,)."""
        return self._variance_is_below(KNOWN_VARIANCE)

    def _variance_is_below(self, times: float) -> BoolArray:
        """Whether a variance is so many times its noise at most, in half of all runs or more, shape (d,)."""
        variances = (self.typical.standard_deviations / self._scale) ** 2
        lost = [
            part.probability * ((variances <= times * noise) & (noise > 0.0))
            for part, noise in zip(self.laws, self._of_variance, strict=True)
        ]
        return np.asarray(np.sum(lost, axis=0) >= 0.5 * sum(part.probability for part in self.laws))

    def typical_correlation(self, among: Sequence[int] | None = None) -> float:
        """Median of the noise on correlations of two columns of numbers; of any two columns where there are fewer; else NaN."""
        pairs = self.correlation[self._typical_pairs(among)]
        return float(np.median(pairs)) if len(pairs) else math.nan

    @property
    def typical_correlation_is_noise(self) -> bool:
        """Whether most of those pairs are lost."""
        first, second = self._typical_pairs(None)
        lost = self.correlation_is_noise
        return bool(2 * np.sum(lost[first] | lost[second]) > len(first))

    @property
    def worst_correlation(self) -> tuple[str, str, float]:
        """The two features on whose correlation there is most noise, and how much; no names where there is one column."""
        first, second = np.nonzero(np.tril(np.isfinite(self.correlation), -1))
        if not len(first):
            return "", "", math.nan
        worst = int(np.argmax(self.correlation[first, second]))
        names = self.typical.schema.feature_names
        return names[second[worst]], names[first[worst]], float(self.correlation[first[worst], second[worst]])

    def _typical_pairs(self, among: Sequence[int] | None) -> tuple[IntegerArray, IntegerArray]:
        chosen = np.arange(len(self.mean)) if among is None else np.asarray(among, dtype=int)
        numbers = chosen[~self.typical.shares[chosen]]
        for candidates in (numbers, chosen):
            first, second = (candidates[indices] for indices in np.tril_indices(len(candidates), -1))
            apart = np.isfinite(self.correlation[first, second])
            if apart.any():
                return first[apart], second[apart]
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int)

    @property
    def regressors(self) -> int:
        """k of the typical regression: all features but one, and one level of each column of levels."""
        blocks = sum(
            int(len(indices) > 1 and bool(self.typical.shares[indices[0]]))
            for indices in self.typical.features_of_columns.values()
        )
        return max(1, len(self.typical.columns) - blocks - 1)

    @property
    def coefficient(self) -> float:
        """On a standardised coefficient: k uncorrelated regressors, alike in their noise, that explain half of the variance.

        To first order the noise on R⁻¹r, R the correlations of the regressors and r those with what is regressed, is
        σ√(1 + Σβ²), σ the noise on a correlation. The noise on R spreads its eigenvalues over a semicircle of variance s² = kσ²
        about 1, over which 1/λ² has the mean (1/√(1 − 4s²) − 1)/(2s²). Infinite where the semicircle reaches 0.
        """
        sigma, k = self.typical_correlation(), self.regressors
        square = (k - 1) * sigma**2
        if not math.isfinite(sigma):
            return math.nan
        if 4.0 * square >= 1.0:
            return math.inf
        spread = (1.0 / math.sqrt(1.0 - 4.0 * square) - 1.0) / (2.0 * square) if square > 1e-9 else 1.0
        return sigma * math.sqrt((1.0 + EXPLAINED) * spread)

    @property
    def coefficient_is_noise(self) -> bool:
        """Whether a regression on all columns has no answer, or one that is noise."""
        sigma = self.typical_correlation()
        if not math.isfinite(sigma):
            return False
        edge = sigma * math.sqrt(self.regressors) * (2.0 + self.regressors ** (-2.0 / 3.0))
        return self.typical_correlation_is_noise or edge >= 1.0

    def at(self, n_rows: int) -> NoiseInUnits:
        """The same laws with another number of rows."""
        return replace(self, n_rows=n_rows)

    @property
    def _scale(self) -> FloatArray:
        return self.typical.schema.encoding(mean=True).scale

    @cached_property
    def _of_variance(self) -> tuple[FloatArray, ...]:
        """On the variance of every feature in the unit ball, shape (d,), for each law: of a share p that on p(1 − p)."""
        deviations, means = self.typical.in_unit_ball
        variances, shares = deviations**2, self.typical.means
        result = []
        for part in self.laws:
            about = np.zeros_like(means) if part.centered else means
            of_count = (about**2 - variances) ** 2 * _of_count(part.law)
            square = part.law.diagonal_variance + 4.0 * about**2 * _of_sum(part.law) + of_count
            if not part.centered:  # about a centre a share's variance is read off the second moment
                of_share = (_of_sum(part.law) + about**2 * _of_count(part.law)) / self._scale**2
                square = np.where(self._indicators, (1.0 - 2.0 * np.clip(shares, 0.0, 1.0)) ** 2 * of_share, square)
            result.append(self._certain(np.sqrt(square) / self.n_rows))
        return tuple(result)

    @property
    def _indicators(self) -> BoolArray:
        """Features that are 0 or 1 in every row as the schema's constraints know them."""
        constraints = Constraints.of(self.typical.schema, mean=True)
        result = np.zeros(len(self.typical.columns), dtype=bool)
        for block in constraints.blocks:
            result[block.features] = True
        result[list(constraints.flags)] = True
        return result

    def _certain(self, noise: FloatArray) -> FloatArray:
        """0 for a column of one level, whose share is 1 in every table."""
        result = np.array(noise, dtype=np.float64)
        result[list(Constraints.of(self.typical.schema, mean=True).certain)] = 0.0
        return result

    def _averaged(
        self,
        variance: Callable[[AdditiveModel, FloatArray], FloatArray],
        means: FloatArray,
        centered: FloatArray | None = None,
    ) -> FloatArray:
        """Root of the mean variance over what a run can turn out to be; means are 0 about a centre."""
        zeros = np.zeros_like(means) if centered is None else centered
        return self._root_mean_square(
            [np.sqrt(variance(part.law, zeros if part.centered else means)) for part in self.laws]
        )

    def _root_mean_square(self, found: Sequence[FloatArray]) -> FloatArray:
        """Over what a run can turn out to be."""
        parts = [part.probability * values**2 for part, values in zip(self.laws, found, strict=True)]
        return np.asarray(np.sqrt(np.sum(parts, axis=0)))

    def _deviations(self, noise: FloatArray) -> FloatArray:
        likely = max(self.laws, key=lambda part: part.probability).law
        quantile = _standard_quantile(likely, (1.0 + _LEVEL) / 2.0)
        return deviations_by_quantile(_LEVEL, quantile, noise**2, np.zeros_like(noise))


@lru_cache(maxsize=256)
def _standard_quantile(law: AdditiveModel, level: float) -> float:
    return law.cells.quantile(level, diagonal=False)


def _of_sum(law: AdditiveModel) -> float:
    return law.sum_variance or 0.0


def _of_count(law: AdditiveModel) -> float:
    return law.count_variance or 0.0


# What adaptive-ball can be expected to find on rows that are assumed: the radius it chooses, and the noise for that.

MIN_PROBABILITY = 1e-4
MAX_LEFT_OUT = 1e-2
"""Radii that are less likely are left out; all of them together are less likely than this."""


def _possible_runs(plan: AdaptiveBallPlan, typical: TypicalTable, n_rows: int) -> tuple[PossibleRun, ...]:
    """The laws that a run can end with: about a centre for the radii it may choose, and at the public bounds."""
    budget = plan.budget
    spent = 0.0 if plan.count_is_public else COUNT_SHARE
    least_rows = n_rows - (count_error(budget.part(COUNT_SHARE)) if spent else 0.0)
    rows_beyond = budget.rows_beyond(least_rows) if least_rows >= 1.0 else None
    outside = plan.last_step(budget.whole).model
    if rows_beyond is None:
        return (PossibleRun(1.0, _with_share(outside, budget, 1.0 - spent)),)
    center_share = budget.center_share(least_rows)
    spent += center_share
    size, unevenness = typical.squared_distance
    size += min((budget.center_noise(center_share) / n_rows) ** 2, size)
    distances = _Distances(size, unevenness, n_rows, _farthest(typical))
    screened = budget.screen_share(least_rows)
    if screened is not None:
        spent += screened
        [first_look] = distances.rows_beyond(np.array([radius_at(SCREEN_PLACE)]))
        if first_look > budget.screened_rows(least_rows, rows_beyond):
            return (PossibleRun(1.0, _with_share(outside, budget, 1.0 - spent)),)
    search = budget.search_share(least_rows)
    spent += search
    indices = radius_places(budget.pure)
    radii = np.array([radius_at(index) for index in indices])
    beyond = distances.rows_beyond(radii)
    if budget.pure:
        chosen = _chosen_by_score(beyond, rows_beyond, indices, budget.part(search).epsilon)
    else:
        chosen = _chosen_by_comparisons(beyond, rows_beyond, budget.deviation(search / COMPARISONS))
    inner = plan.last_step(budget.whole, in_ball=True).model
    laws = []
    for index in np.flatnonzero((chosen > MIN_PROBABILITY) & (radii < MAX_RADIUS)):
        radius = float(radii[index])
        looked = spent + budget.excess_share(radius)
        error = _with_share(outside, budget, 1.0 - looked).frobenius_error
        probability = float(chosen[index]) * distances.passes(radius, error, budget)
        if probability > MIN_PROBABILITY:
            law = _with_share(inner, budget, 1.0 - looked - BEYOND_SHARE).in_ball(radius)
            laws.append(PossibleRun(probability, law, centered=True))
    inside = math.fsum(part.probability for part in laws)
    if inside < 1.0 - MAX_LEFT_OUT:
        laws.append(PossibleRun(1.0 - inside, _with_share(outside, budget, 1.0 - spent)))
    return tuple(laws)


@dataclass(frozen=True)
class _Distances:
    """Squared distances D² of n rows from their centre: a gamma law of that mean, and variance over squared mean."""

    size: float
    unevenness: float
    n_rows: int
    farthest: float

    def rows_beyond(self, radii: FloatArray) -> FloatArray:
        """How many rows are farther than each radius."""
        if self.size <= 0.0 or self.unevenness <= 0.0:
            return np.where(radii**2 < self.size, float(self.n_rows), 0.0)
        index = radii**2 / (self.size * self.unevenness)
        return np.asarray(self.n_rows * scipy.special.gammaincc(1.0 / self.unevenness, index))

    def excess(self, radius: float) -> float:
        """Σ max(0, D² − r²)."""
        if self.size <= 0.0 or self.unevenness <= 0.0:
            return self.n_rows * max(0.0, self.size - radius**2)
        shape, index = 1.0 / self.unevenness, radius**2 / (self.size * self.unevenness)
        return float(
            self.n_rows
            * (
                self.size * scipy.special.gammaincc(shape + 1.0, index)
                - radius**2 * scipy.special.gammaincc(shape, index)
            )
        )

    def passes(self, radius: float, error: float, budget: BallBudget) -> float:
        """Probability that the noisy excess lets the ball pass, ``error`` that of the release at the bounds."""
        most = max(self.farthest**2 - radius**2, 0.0)
        deviation = budget.deviation(budget.excess_share(radius)) * most
        lenience = deviation * max(0.0, 1.0 - (radius / LENIENT_BELOW) ** 2)
        room = MAX_CLIPPING_PER_NOISE * error * (1.0 - radius**2) + lenience - self.excess(radius)
        if deviation <= 0.0:
            return float(room >= 0.0)
        if budget.pure:
            half = 0.5 * math.exp(-math.sqrt(2.0) * abs(room) / deviation)
            return 1.0 - half if room >= 0.0 else half
        return float(scipy.special.ndtr(room / deviation))


def _farthest(typical: TypicalTable) -> float:
    """How far from the mean a row can be."""
    schema, (_, means) = typical.schema, typical.in_unit_ball
    lower, upper = schema.encoding(mean=True).values_in_ball(*schema.feature_bounds)
    corner = np.maximum(np.abs(lower - means), np.abs(upper - means))
    return min(float(np.linalg.norm(corner)), 1.0 + float(np.linalg.norm(means)))


def _chosen_by_score(beyond: FloatArray, rows_beyond: int, places: tuple[int, ...], epsilon: float) -> FloatArray:
    """Probabilities of the exponential mechanism."""
    scores = -np.abs(np.round(beyond) - rows_beyond) + np.array([preference(index, epsilon) for index in places])
    odds = np.exp(epsilon / 2.0 * (scores - scores.max()))
    return np.asarray(odds / odds.sum())


def _chosen_by_comparisons(beyond: FloatArray, rows_beyond: int, deviation: float) -> FloatArray:
    """Probabilities of a binary search whose counts have normal noise."""
    fewer = scipy.special.ndtr((rows_beyond - beyond) / deviation)
    result = np.zeros(len(beyond))
    result[0] = 1.0
    half = len(beyond)
    for _ in range(COMPARISONS):
        half //= 2
        for step in range(0, len(beyond), 2 * half):
            result[step + half] = result[step] * fewer[step + half]
            result[step] -= result[step + half]
    return result


def _strength(budget: BallBudget, share: float) -> float:
    """What variances of noise fall by, where it has that share of the budget in place of all: with the square of ε, or with ρ."""
    return share**2 if budget.pure else share


def _with_share(law: AdditiveModel, budget: BallBudget, share: float) -> AdditiveModel:
    factor = 1.0 / _strength(budget, share)
    return _scaled(law, factor, factor, factor)


def _scaled(law: AdditiveModel, of_gram: float, of_sum: float, of_count: float) -> AdditiveModel:
    """The law with its variances multiplied."""
    return replace(
        law.in_ball(of_gram**0.25),
        sum_variance=(law.sum_variance or 0.0) * of_sum,
        count_variance=(law.count_variance or 0.0) * of_count,
    )


# What a release would be made with, all of it public, and the noise that its plan then has in the table's units.


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """A release that could be made.

    Attributes
    ----------
    typical : TypicalTable
        With the schema.
    n_rows : int
        With a privacy unit, of the rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    mechanism : Mechanism
    rivals : tuple of Mechanism
        Others that may be the better choice once something is changed.
    privacy_unit : PrivacyUnit or None
        For whom the budget is, where that is not one row.
    """

    typical: TypicalTable
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    mechanism: Mechanism
    rivals: tuple[Mechanism, ...] = ()
    privacy_unit: PrivacyUnit | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the release, with count and mean; of one for units, what runs on the rows that count.

        Raises
        ------
        ValueError, OverflowError
            If it is not possible.
        """
        # Where the number of rows is private a release plans without it.
        n_rows = self.n_rows if self.neighbors.table_size_is_public else None
        shape = MomentShape.of(self.typical.schema, mean=True, n_rows=n_rows)
        return plan_before_release(self.mechanism, shape, self.budget, self.neighbors, self.privacy_unit)

    @property
    def noise(self) -> NoiseInUnits | None:
        """The noise of the plan; None where its law is not known.

        Raises
        ------
        ValueError, OverflowError
            If the plan is not possible.
        """
        laws = laws_of_plan(self.plan, self.typical, self.n_rows)
        return None if laws is None else NoiseInUnits(self.typical, self.n_rows, laws)

    def with_budget(self, size: float) -> ReleasePlan:
        """With another ε (the same δ), or ρ."""
        budget = self.budget
        if budget.kind is BudgetKind.ZCDP:
            return replace(self, budget=PrivacyBudget.zcdp(size))
        if budget.kind is BudgetKind.PURE:
            return replace(self, budget=PrivacyBudget.pure(size))
        return replace(self, budget=PrivacyBudget.approximate(size, budget.delta))

    @property
    def size_of_budget(self) -> float:
        """ε, or ρ."""
        return self.budget.rho if self.budget.kind is BudgetKind.ZCDP else self.budget.epsilon


def laws_of_plan(plan: Plan, typical: TypicalTable, n_rows: int) -> tuple[PossibleRun, ...] | None:
    """What the law of the noise can turn out to be; None where no closed one is known, or no mean is released."""
    if isinstance(plan, AdaptiveBallPlan):
        return _possible_runs(plan, typical, n_rows)
    law = plan.model
    if not isinstance(law, AdditiveModel) or None in (law.sum_variance, law.count_variance, plan.shape.row_norm):
        return None
    return (PossibleRun(1.0, law),)


def worst_laws(plan: Plan) -> tuple[PossibleRun, ...] | None:
    """For a plan that adapts to the table: what no table makes worse; None for others."""
    return (PossibleRun(1.0, plan.guaranteed.model),) if isinstance(plan, AdaptiveBallPlan) else None


NOISE = "noise"
"""Stands in place of a number that is noise: as large as what could be learnt."""
MORE = ">"
"""Before a number that says too little."""
_FAR_WORSE = 1.5
"""The worst pair is named where it has so many times the noise of the typical one."""


def column_table(noise: NoiseInUnits) -> list[tuple[str, ...]]:
    """Rows of text, the head first: a line a feature."""
    typical = noise.typical
    lines: list[tuple[str, ...]] = [("feature", "typical sd", "± mean", "95 %", "± sd", "of the sd", "± rows")]
    lost = noise.mean_is_noise, noise.standard_deviation_is_noise
    more = [MORE if rough else "" for rough in noise.standard_deviation_is_rough]
    for index, name in enumerate(typical.schema.feature_names):
        share, deviation = typical.shares[index], float(typical.standard_deviations[index])
        spread = float(noise.standard_deviation[index])
        lines.append(
            (
                name,
                f"{'~' if typical.assumed[index] else ''}{digits(deviation, 3)}",
                NOISE if lost[0][index] else digits(noise.mean[index]),
                NOISE if lost[0][index] else digits(noise.mean_half_width[index]),
                "–" if share else NOISE if lost[1][index] else f"{more[index]}{digits(spread)}",
                "–" if share or lost[1][index] or deviation <= 0.0 else f"{more[index]}{spread / deviation:.1%}",
                digits(noise.count[index]) if share else "–",
            )
        )
    return lines


def describe_columns(noise: NoiseInUnits, worst: NoiseInUnits | None, mechanism: str) -> tuple[str, ...]:
    """Sentences below that table.

    Parameters
    ----------
    noise : NoiseInUnits
    worst : NoiseInUnits or None
        Where the mechanism gains nothing, if it adapts to the table.
    mechanism : str
    """
    said = [*_correlations(noise, worst, mechanism)]
    if not said and worst is not None:
        times = float(np.nanmax(worst.mean / noise.mean))
        said.append(f"where rows fill their bounds and {mechanism} gains nothing the noise is up to {times:.2g} × that")
    if noise.typical.words:
        said.append(noise.typical.words)
    cells = [cell for line in column_table(noise)[1:] for cell in line[1:]]
    if NOISE in cells or any(f" {NOISE}" in line for line in said):
        said.append(f"{NOISE}: that is as large as what could be learnt")
    if any(cell.startswith(MORE) for cell in cells):
        said.append(f"{MORE}: and more, the noise being so large that its square counts, too")
    return tuple(said)


def _correlations(noise: NoiseInUnits, worst: NoiseInUnits | None, mechanism: str) -> list[str]:
    correlation = noise.typical_correlation()
    if not math.isfinite(correlation):
        return []
    at_most = ""
    if worst is not None:
        most = NOISE if worst.typical_correlation_is_noise else f"{worst.typical_correlation():.2g}"
        at_most = f"; {most} where rows fill their bounds and {mechanism} gains nothing"
    shown = NOISE if noise.typical_correlation_is_noise else f"{correlation:.2g}"
    said = [f"± on a correlation (the median of two columns that are not correlated): {shown}{at_most}"]
    first, second, largest = noise.worst_correlation
    if largest > _FAR_WORSE * correlation:
        said.append(
            f"± on the worst, {first} ~ {second}: {largest:.2g}" if largest < 1.0 else f"lost: {first} ~ {second}"
        )
    shown = NOISE if noise.coefficient_is_noise else f"{noise.coefficient:.2g}"
    which = "one regressor" if noise.regressors == 1 else f"{noise.regressors} uncorrelated regressors"
    said.append(
        f"± on a standardised coefficient ({which} that explain{'s' if noise.regressors == 1 else ''} {EXPLAINED:.0%} of the "
        f"variance): {shown}"
    )
    return said


def plain_columns(noise: NoiseInUnits) -> Mapping[str, Sequence[Any]]:
    """A feature a row as plain values; the words of the table are flags."""
    typical = noise.typical
    return {
        "feature": typical.schema.feature_names,
        "typical_sd": typical.standard_deviations.tolist(),
        "typical_sd_assumed": typical.assumed.tolist(),
        "mean_noise": finite_or_none(noise.mean),
        "mean_half_width": finite_or_none(noise.mean_half_width),
        "mean_is_noise": noise.mean_is_noise.tolist(),
        "standard_deviation_noise": finite_or_none(noise.standard_deviation),
        "standard_deviation_half_width": finite_or_none(noise.standard_deviation_half_width),
        "standard_deviation_is_noise": noise.standard_deviation_is_noise.tolist(),
        "standard_deviation_is_rough": noise.standard_deviation_is_rough.tolist(),
        "count_noise": finite_or_none(noise.count),
        "correlation_is_noise": noise.correlation_is_noise.tolist(),
    }


def plain_noise(noise: NoiseInUnits, worst: NoiseInUnits | None) -> dict[str, Any]:
    """Columns, correlations and the coefficient as JSON holds them."""
    return {
        "columns": {name: list(values) for name, values in plain_columns(noise).items()},
        "correlation": number_or_none(noise.typical_correlation()),
        "correlation_is_noise": noise.typical_correlation_is_noise,
        "correlation_at_most": None if worst is None else number_or_none(worst.typical_correlation()),
        "coefficient": number_or_none(noise.coefficient),
        "coefficient_is_noise": noise.coefficient_is_noise,
        "regressors": noise.regressors,
        "assumes": noise.typical.words,
    }


def digits(value: float, significant: int = 2) -> str:
    """So many significant digits, without an exponent where the number is one that people write out.

    Examples
    --------
    >>> digits(20000.0), digits(0.00451), digits(1234567.0), digits(0.0)
    ('20,000', '0.0045', '1,200,000', '0')
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if not -5 < size < 9:
        return f"{value:.{significant}g}"
    rounded = round(value, significant - 1 - size)
    return f"{rounded:,.0f}" if size >= significant - 1 else f"{rounded:.{max(0, significant - 1 - size)}f}"


class TableInWords(Answer):
    """A table with what stands above and below it."""

    def __init__(self, heading: Sequence[str], rows: Sequence[Sequence[str]], remarks: Sequence[str]) -> None:
        self._heading, self._rows, self._remarks = tuple(heading), rows, tuple(remarks)

    @property
    def heading(self) -> tuple[str, ...]:
        return self._heading

    def table(self) -> Sequence[Sequence[str]]:
        return self._rows

    @property
    def remarks(self) -> tuple[str, ...]:
        return self._remarks

    def columns(self) -> Mapping[str, Sequence[Any]]:
        head, *rows = self._rows
        return {name: [row[index] for row in rows] for index, name in enumerate(head)}

    def to_dict(self) -> dict[str, Any]:
        return {name: list(values) for name, values in self.columns().items()}
