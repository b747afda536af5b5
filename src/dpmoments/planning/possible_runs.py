"""What adaptive-ball can be expected to find on rows that are assumed: the radius it chooses, and the noise for that."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
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
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.lattice_noise import count_error
from dpmoments.noise.terms import NoiseLaw
from dpmoments.planning.typical_table import TypicalTable

_MIN_PROBABILITY = 1e-4
_MAX_LEFT_OUT = 1e-2
"""Radii that are less likely are left out; all of them together are less likely than this."""


@dataclass(frozen=True)
class PossibleRun:
    """The noise that a run can turn out to have.

    Attributes
    ----------
    law : NoiseLaw
        With the right variances; a forecast reads no more of it.
    centered : bool
        True if moments are released about a center near the mean, so that noise on the count hardly matters.
    """

    probability: float
    law: NoiseLaw
    centered: bool = False


def possible_runs(plan: Plan, typical: TypicalTable, n_rows: int) -> tuple[PossibleRun, ...] | None:
    """The noise of a run of the plan, more than one if the run chooses; None if it is not known before a run."""
    if isinstance(plan, AdaptiveBallPlan):
        return _runs_of_ball(plan, typical, n_rows)
    law = None if plan.model is None else plan.model.fixed_law
    if law is None or not plan.shape.mean or plan.shape.row_norm is None:
        return None
    return (PossibleRun(1.0, law),)


def worst_run(plan: Plan) -> PossibleRun | None:
    """For a plan that adapts to the table: the noise that no table makes larger; None for others."""
    return PossibleRun(1.0, plan.guaranteed.model.fixed_law) if isinstance(plan, AdaptiveBallPlan) else None


def _runs_of_ball(plan: AdaptiveBallPlan, typical: TypicalTable, n_rows: int) -> tuple[PossibleRun, ...]:
    """What a run can end with: in a ball of the radii that it may choose, and at the public bounds."""
    budget = plan.budget
    spent = 0.0 if plan.count_is_public else COUNT_SHARE
    least_rows = n_rows - (count_error(budget.part(COUNT_SHARE)) if spent else 0.0)
    rows_beyond = budget.rows_beyond(least_rows) if least_rows >= 1.0 else None
    outside = plan.last_step(budget.whole).model.fixed_law
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
    inner = plan.last_step(budget.whole, in_ball=True).model.fixed_law
    error_at_bounds = math.sqrt(outside.energy)
    runs = []
    for index in np.flatnonzero((chosen > _MIN_PROBABILITY) & (radii < MAX_RADIUS)):
        radius = float(radii[index])
        looked = spent + budget.excess_share(radius)
        error = error_at_bounds / math.sqrt(_strength(budget, 1.0 - looked))
        probability = float(chosen[index]) * distances.passes(radius, error, budget)
        if probability > _MIN_PROBABILITY:
            law = _with_share(inner, budget, 1.0 - looked - BEYOND_SHARE).in_ball(radius)
            runs.append(PossibleRun(probability, law, centered=True))
    inside = math.fsum(run.probability for run in runs)
    if inside < 1.0 - _MAX_LEFT_OUT:
        runs.append(PossibleRun(1.0 - inside, _with_share(outside, budget, 1.0 - spent)))
    return tuple(runs)


@dataclass(frozen=True)
class _Distances:
    """Squared distances D² of n rows from their center: gamma distributed; its mean, and its variance over the squared mean."""

    size: float
    unevenness: float
    n_rows: int
    farthest: float

    def rows_beyond(self, radii: FloatArray) -> FloatArray:
        """Expected numbers of rows beyond each radius."""
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
    """Upper bound on the distance of a row from the mean."""
    _, means = typical.in_unit_ball
    lower, upper = typical.encoding.values_in_ball(*typical.schema.feature_bounds)
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
    """Factor by which noise variances grow if all of the budget becomes that share of it, inverted: ε², or ρ."""
    return share**2 if budget.pure else share


def _with_share(law: NoiseLaw, budget: BallBudget, share: float) -> NoiseLaw:
    """Return the noise if it has that share of the budget in place of all."""
    return law.scaled(1.0 / _strength(budget, share))
