"""What adaptive-ball can be expected to find on rows that are assumed: the radius it chooses, and the noise for that."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.adaptive_ball import (
    EXCESS_FOR_NOISE,
    LARGEST_RADIUS,
    LENIENT_BELOW,
    AdaptiveBallPlan,
)
from dpmoments.mechanisms.ball_budget import BEYOND_SHARE, COUNT_SHARE, BallBudget
from dpmoments.mechanisms.ball_search import (
    COMPARISONS,
    SCREEN_PLACE,
    preference,
    radius_at,
    radius_places,
)
from dpmoments.mechanisms.row_count import count_error
from dpmoments.noise.law import NoiseLaw
from dpmoments.planning.imagined_release import LawOfRun
from dpmoments.planning.typical_table import TypicalTable

__all__ = ["ball_laws"]

LEAST_PROBABILITY = 1e-4
MOST_LEFT_OUT = 1e-2
"""Radii that are less likely are left out; all of them together are less likely than this."""


def ball_laws(plan: AdaptiveBallPlan, typical: TypicalTable, n_rows: int) -> tuple[LawOfRun, ...]:
    """The laws that a run can end with: about a centre for the radii it may choose, and at the public bounds.

    The steps of a run as they are, with the probabilities of its choices: squared distances from the mean follow the gamma law
    of :attr:`TypicalTable.squared_distance`.

    Parameters
    ----------
    plan : AdaptiveBallPlan
    typical : TypicalTable
    n_rows : int

    Returns
    -------
    tuple of LawOfRun
        One for each radius that is likely enough, and that at the bounds.
    """
    budget = plan.budget
    spent = 0.0 if plan.count_is_public else COUNT_SHARE
    least_rows = n_rows - (count_error(budget.part(COUNT_SHARE)) if spent else 0.0)
    rows_beyond = budget.rows_beyond(least_rows) if least_rows >= 1.0 else None
    outside = plan.last_step(budget.whole).noise
    if rows_beyond is None:
        return (LawOfRun(1.0, _with_share(outside, budget, 1.0 - spent)),)
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
            return (LawOfRun(1.0, _with_share(outside, budget, 1.0 - spent)),)
    search = budget.search_share(least_rows)
    spent += search
    places = radius_places(budget.pure)
    radii = np.array([radius_at(place) for place in places])
    beyond = distances.rows_beyond(radii)
    if budget.pure:
        chosen = _chosen_by_score(beyond, rows_beyond, places, budget.part(search).epsilon)
    else:
        chosen = _chosen_by_comparisons(beyond, rows_beyond, budget.deviation(search / COMPARISONS))
    inner = plan.last_step(budget.whole, in_ball=True).noise
    laws = []
    for place in np.flatnonzero((chosen > LEAST_PROBABILITY) & (radii < LARGEST_RADIUS)):
        radius = float(radii[place])
        looked = spent + budget.excess_share(radius)
        error = _with_share(outside, budget, 1.0 - looked).frobenius_error
        probability = float(chosen[place]) * distances.passes(radius, error, budget)
        if probability > LEAST_PROBABILITY:
            law = _with_share(inner, budget, 1.0 - looked - BEYOND_SHARE).of_rows_in_ball(radius)
            laws.append(LawOfRun(probability, law, centered=True))
    inside = math.fsum(part.probability for part in laws)
    if inside < 1.0 - MOST_LEFT_OUT:
        laws.append(LawOfRun(1.0 - inside, _with_share(outside, budget, 1.0 - spent)))
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
        place = radii**2 / (self.size * self.unevenness)
        return np.asarray(self.n_rows * scipy.special.gammaincc(1.0 / self.unevenness, place))

    def excess(self, radius: float) -> float:
        """Σ max(0, D² − r²)."""
        if self.size <= 0.0 or self.unevenness <= 0.0:
            return self.n_rows * max(0.0, self.size - radius**2)
        shape, place = 1.0 / self.unevenness, radius**2 / (self.size * self.unevenness)
        return float(
            self.n_rows
            * (
                self.size * scipy.special.gammaincc(shape + 1.0, place)
                - radius**2 * scipy.special.gammaincc(shape, place)
            )
        )

    def passes(self, radius: float, error: float, budget: BallBudget) -> float:
        """Probability that the noisy excess lets the ball pass, ``error`` that of the release at the bounds."""
        most = max(self.farthest**2 - radius**2, 0.0)
        deviation = budget.deviation(budget.excess_share(radius)) * most
        lenience = deviation * max(0.0, 1.0 - (radius / LENIENT_BELOW) ** 2)
        room = EXCESS_FOR_NOISE * error * (1.0 - radius**2) + lenience - self.excess(radius)
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
    scores = -np.abs(np.round(beyond) - rows_beyond) + np.array([preference(place, epsilon) for place in places])
    odds = np.exp(epsilon / 2.0 * (scores - scores.max()))
    return np.asarray(odds / odds.sum())


def _chosen_by_comparisons(beyond: FloatArray, rows_beyond: int, deviation: float) -> FloatArray:
    """Probabilities of a binary search whose counts have normal noise."""
    fewer = scipy.special.ndtr((rows_beyond - beyond) / deviation)
    found = np.zeros(len(beyond))
    found[0] = 1.0
    half = len(beyond)
    for _ in range(COMPARISONS):
        half //= 2
        for step in range(0, len(beyond), 2 * half):
            found[step + half] = found[step] * fewer[step + half]
            found[step] -= found[step + half]
    return found


def _strength(budget: BallBudget, share: float) -> float:
    """What variances of noise fall by, where it has that share of the budget in place of all: with the square of ε, or with ρ."""
    return share**2 if budget.pure else share


def _with_share(law: NoiseLaw, budget: BallBudget, share: float) -> NoiseLaw:
    factor = 1.0 / _strength(budget, share)
    return _scaled(law, factor, factor, factor)


def _scaled(law: NoiseLaw, of_gram: float, of_sum: float, of_count: float) -> NoiseLaw:
    """The law with its variances multiplied."""
    return replace(
        law.of_rows_in_ball(of_gram**0.25),
        sum_variance=(law.sum_variance or 0.0) * of_sum,
        count_variance=(law.count_variance or 0.0) * of_count,
    )
