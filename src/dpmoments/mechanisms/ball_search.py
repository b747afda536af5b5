"""Where the rows are, privately: a centre, a radius that few rows are beyond, and how far those are beyond it.

Every query is a sum over rows of a number between 0 and 1, or of a row. The histogram that they are computed from is private
and stays here. Sensitivities and rules: ``docs/derivations/adaptive_ball.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.mechanisms.ball_budget import BallBudget
from dpmoments.mechanisms.lattice_noise import noise_scale_for, with_noise
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice
from dpmoments.privacy.sensitivity import (
    count,
    count_l1,
    rank_score,
    row_sum_l1,
    row_sum_l2,
    share_of_rows,
    share_of_rows_l1,
)
from dpmoments.rows.kernel import transformed_norms
from dpmoments.rows.moments import Moments
from dpmoments.rows.rows import Rows

__all__ = [
    "DistanceFromCenter",
    "RowDistances",
    "draws_in_words",
    "noisy_center",
    "preference",
    "radius_at",
    "radius_places",
]

LARGEST_RADIUS = 0.95
FINENESS = 24
"""Distances are told apart to a factor of 2^(1/24)."""
OUTERMOST = -26
"""LARGEST_RADIUS·2^(26/24) is above 2, and no row of the unit ball is farther from a centre in it."""
INNERMOST = 189
STEP_PURE, STEP_GAUSSIAN = 4, 3
N_RADII_PURE, N_RADII_GAUSSIAN = 40, 64
"""The radii that can be chosen: a sixth of an octave apart, or an eighth."""
SCREEN_PLACE = 5
"""The first radius looked at: 0.82."""
JOINT_RELEASE = "count, sum and Gram matrix"
COMPARISONS = 6
"""Of a binary search among 64 radii."""
PREFERENCE = 2.0
"""Among radii that the number of rows beyond does not tell apart, a choice has odds of radius^−2, as the noise would have
it."""
SHARE_BITS = 20
"""A row's part of a sum is a multiple of 2^-20."""


@dataclass(frozen=True, slots=True, eq=False)
class DistanceFromCenter:
    """The statistic ‖x − center‖ of a row."""

    center: FloatArray

    def __call__(self, block: FloatArray) -> FloatArray:
        """Distances of a block's rows, shape (m, d) → (m,)."""
        return transformed_norms(block, center=self.center)


def noisy_center(
    moments: Moments,
    privacy_filter: PrivacyFilter,
    budget: BallBudget,
    share: float,
    n_rows: float,
    box: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """The mean with noise, pulled towards 0 by what the noise explains of it (James & Stein 1961), within public bounds.

    **Privacy.** That share of the budget: the noise is on the sum of rows.
    """
    d = budget.n_features
    sensitivity = row_sum_l1(budget.neighbors, d) if budget.pure else row_sum_l2(budget.neighbors)
    scale = budget.center_scale(share)
    noisy = with_noise(
        privacy_filter, "sum of rows", moments.sum, sensitivity, scale, bits=moments.bits, pure=budget.pure
    )
    mean = noisy / n_rows
    square = float(mean @ mean)
    noise = (budget.center_noise(share) / n_rows) ** 2
    kept = 1.0 if d < 3 else max(0.0, 1.0 - (d - 2) / d * noise / square) if square > 0.0 else 0.0
    center: FloatArray = np.clip(kept * mean, *box)
    return center


@dataclass(frozen=True, eq=False, repr=False)
class RowDistances:
    """Exact numbers of rows by their distance from a centre; private.

    Attributes
    ----------
    beyond : ndarray of int64
        ``beyond[i]`` rows are farther than ``radius_at(OUTERMOST + i)``.
    """

    beyond: IntegerArray

    @classmethod
    def of(cls, rows: Rows, center: FloatArray) -> RowDistances:
        """One pass over the table."""
        edges = np.array([radius_at(place) for place in range(INNERMOST, OUTERMOST - 1, -1)])
        counted = rows.histogram(DistanceFromCenter(center), edges)
        from_outside = np.concatenate([[counted.above], counted.counts[::-1]])
        return cls(np.cumsum(from_outside))

    def at(self, place: int) -> int:
        """Rows farther than ``radius_at(place)``."""
        return int(self.beyond[place - OUTERMOST])

    def fills_the_bounds(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, allowed: float) -> bool:
        """Whether more rows than are allowed lie beyond the first radius looked at, as seen through noise."""
        noisy = _noisy_count(
            privacy_filter, f"rows beyond {radius_at(SCREEN_PLACE):.2f}", self.at(SCREEN_PLACE), budget, share
        )
        return noisy > allowed

    def radius(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, rows_beyond: int) -> int:
        """The place of a radius that about so many rows are beyond.

        **Privacy.** That share of the budget. Under pure ε by the exponential mechanism with the score minus the distance of
        N(r) from K and a public preference; under ρ by noisy comparisons.
        """
        part = budget.part(share)
        if budget.pure:
            places = radius_places(pure=True)
            # Two units in the last place down: the loss is this times the sensitivity of a score, 1.
            law = Choice(math.nextafter(math.nextafter(part.epsilon, 0.0), 0.0))
            scores = [-abs(self.at(place) - rows_beyond) + preference(place, law.epsilon) for place in places]
            return places[int(privacy_filter.draw("radius", law, np.array(scores), rank_score(budget.neighbors)))]
        losses = part.split(*[1.0] * COMPARISONS)
        step, half = 0, N_RADII_GAUSSIAN
        for number, loss in enumerate(losses, 1):
            half //= 2
            sensitivity = count(budget.neighbors)
            scale = noise_scale_for(loss, sensitivity.value)
            query = [self.at(STEP_GAUSSIAN * (step + half))]
            what = f"radius: comparison {number}"
            [noisy] = with_noise(privacy_filter, what, query, sensitivity, scale, bits=0, pure=False)
            step += half if noisy <= rows_beyond else 0
        return STEP_GAUSSIAN * step

    def noisy_rows_beyond(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, place: int) -> float:
        """The number of rows beyond the radius at ``place``, with noise."""
        return _noisy_count(privacy_filter, "rows beyond the ball", self.at(place), budget, share)

    def noisy_excess(
        self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, place: int, farthest: float
    ) -> tuple[float, float]:
        """Σ(‖x − c‖² − r²) over the rows beyond the ball, with noise, and the noise's standard deviation.

        It bounds what clipping takes off the trace of the second moment about c. Distances are rounded up to where they are
        told apart, and end at ``farthest``, which no row can pass.

        **Privacy.** That share of the budget: a row's part is between 0 and farthest² − r².
        """
        radius = radius_at(place)
        most = farthest**2 - radius**2
        if most <= 0.0:
            return 0.0, 0.0
        query = 0
        for outer in range(place, OUTERMOST, -1):
            within = self.at(outer) - self.at(outer - 1)
            reach = min(radius_at(outer - 1), farthest) ** 2 - radius**2
            part = min(math.nextafter(reach / most, math.inf), 1.0)
            query += within * math.ceil(part * 2.0**SHARE_BITS)
        query += self.at(OUTERMOST) * 2**SHARE_BITS
        sensitivity = share_of_rows_l1(budget.neighbors) if budget.pure else share_of_rows(budget.neighbors)
        scale = noise_scale_for(budget.part(share), sensitivity.value)
        what = "squared distance beyond the ball"
        [noisy] = with_noise(privacy_filter, what, [query], sensitivity, scale, bits=SHARE_BITS, pure=budget.pure)
        return float(noisy) * most, budget.deviation(share) * most


def radius_at(place: int) -> float:
    """The radius at a place of the grid.

    Examples
    --------
    >>> radius_at(0), round(radius_at(24), 3), radius_at(-26) > 2.0
    (0.95, 0.475, True)
    """
    return LARGEST_RADIUS * math.exp2(-place / FINENESS)


def radius_places(pure: bool) -> tuple[int, ...]:
    """Places of the radii that a run can choose."""
    step, number = (STEP_PURE, N_RADII_PURE) if pure else (STEP_GAUSSIAN, N_RADII_GAUSSIAN)
    return tuple(step * place for place in range(number))


def draws_in_words(pure: bool, *, in_ball: bool) -> str:
    """A pattern of what the draws of a run are for, in order, joined by semicolons."""
    comparisons = "; ".join(f"radius: comparison {number}" for number in range(1, COMPARISONS + 1))
    screen = rf"(rows beyond {radius_at(SCREEN_PLACE):.2f}; )?"
    found, excess = "radius" if pure else comparisons, "(squared distance beyond the ball; )?"
    if in_ball:
        return rf"(count; )?sum of rows; {screen}{found}; {excess}rows beyond the ball; {JOINT_RELEASE}"
    return rf"(count; )?(sum of rows; {screen}({found}; {excess})?)?{JOINT_RELEASE}"


def preference(place: int, epsilon: float) -> int:
    """What a radius adds to its score, in whole rows, for odds of radius^−2 by itself."""
    return round(2.0 * PREFERENCE * math.log(2.0) * place / FINENESS / epsilon)


def _noisy_count(privacy_filter: PrivacyFilter, what: str, exact: int, budget: BallBudget, share: float) -> float:
    sensitivity = count_l1(budget.neighbors) if budget.pure else count(budget.neighbors)
    scale = noise_scale_for(budget.part(share), sensitivity.value)
    [noisy] = with_noise(privacy_filter, what, [exact], sensitivity, scale, bits=0, pure=budget.pure)
    return float(noisy)
