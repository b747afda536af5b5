"""Where the rows are, privately: a centre, a radius that few rows are beyond, and how far those are beyond it.

Every query is a sum over rows of a number between 0 and 1, or of a row. The histogram that they are computed from is private
and stays here. Sensitivities and rules: ``docs/derivations/adaptive_ball.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import is_finite_number
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for, with_noise
from dpmoments.mechanisms.shape import RunResult
from dpmoments.messages.message import Message, Query
from dpmoments.noise.models import AdditiveModel
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
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
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.kernel import transformed_norms
from dpmoments.rows.moments import Moments
from dpmoments.rows.rows import Rows

# How adaptive-ball divides a budget, step by step, from what it has learnt of the number of rows so far.

COUNT_SHARE = 0.008
_CENTER_SHARES = (0.005, 0.08)
_CENTER_NOISE = 0.1
"""Norm of the noise on the centre that its share is to reach, in units of the ball."""
_SCREEN_ROWS = 0.01
_SCREEN_NOISE = 4.0
_SCREEN_SHARES = (0.0025, 0.045)
"""A share of the rows may lie beyond the first radius looked at, which is so many noise scales; where that costs more, no such
look is taken."""
_SEARCH_SHARES = (0.01, 0.12)
_SEARCH_SHARE_AT_EASE = 0.04
_ROWS_AT_EASE = 0.004
"""Where so small a share of the rows may lie beyond the ball anyway, no more than that is paid to know the radius better."""
_SEARCH_NOISE_PURE, _SEARCH_NOISE_GAUSSIAN = 10.0, 6.0
"""Rows that may lie beyond the ball, at least: so many scales of the noise of the search, or it would find nothing."""
_ROWS_FOR_NOISE = 3.0
"""Rows that may lie beyond the ball: so many times the Frobenius norm of the noise, in rows."""
_MAX_BEYOND = 0.25
"""And never more than this share of all."""
BEYOND_SHARE = 0.01
_EXCESS_SHARE_PER_GAIN = 0.02
_MAX_EXCESS_SHARE = 0.12
"""The last look before rows are clipped is paid for in proportion to what clipping gains."""
SHARE_FOR_NOISE = 0.9
"""The share of the last step by which the others are planned."""


@dataclass(frozen=True)
class BallBudget:
    """Shares of a whole budget for the steps of one run.

    Attributes
    ----------
    whole : PrivacyBudget
        ε or ρ.
    noise_rows : float
        The Frobenius norm of the noise of the last step at radius 1, for ``SHARE_FOR_NOISE`` of the budget: in rows of that
        norm.
    """

    whole: PrivacyBudget
    neighbors: Neighbors
    n_features: int
    noise_rows: float

    @property
    def pure(self) -> bool:
        """Whether losses add up in ε; else in ρ."""
        return self.whole.kind is BudgetKind.PURE

    def part(self, share: float) -> PrivacyBudget:
        """That share of the whole."""
        return self.whole.split(share, 1.0 - share)[0]

    def scale(self, share: float) -> float:
        """Scale of the noise that the share buys for a count."""
        return noise_scale_for(self.part(share), 1.0)

    def deviation(self, share: float) -> float:
        """Its standard deviation."""
        return noise_deviation(self.scale(share), pure=self.pure)

    def share_for(self, scale: float) -> float:
        """The share that buys noise of this scale for a count; infinite for none."""
        if scale <= 0.0:
            return math.inf
        ratio = noise_scale_for(self.whole, 1.0) / scale
        return ratio if self.pure else ratio * ratio

    def search_share(self, least_rows: float) -> float:
        """For the radius, in a table of about so many rows."""
        aim = max(_ROWS_FOR_NOISE * self.noise_rows, _ROWS_AT_EASE * least_rows)
        for_noise = self.share_for(_ROWS_FOR_NOISE * self.noise_rows / self._search_noise)
        wanted = max(
            self.share_for(aim / self._search_noise),
            self.share_for(_MAX_BEYOND * least_rows / self._search_noise),
            min(_SEARCH_SHARE_AT_EASE, for_noise),
        )
        return _within(wanted, _SEARCH_SHARES)

    def rows_beyond(self, least_rows: float) -> int | None:
        """K, how many rows may lie beyond the ball; None where the table has too few for a search."""
        least = self._search_noise * self.scale(self.search_share(least_rows))
        most = _MAX_BEYOND * least_rows
        if least > most:
            return None
        return math.floor(max(least, min(_ROWS_FOR_NOISE * self.noise_rows, most)))

    def center_share(self, least_rows: float) -> float:
        """For the centre."""
        norm = self.center_noise(1.0) / (_CENTER_NOISE * least_rows)
        return _within(norm if self.pure else norm * norm, _CENTER_SHARES)

    def center_scale(self, share: float) -> float:
        """Scale of the noise on every entry of the sum of rows."""
        return noise_scale_for(self.part(share) if share < 1.0 else self.whole, self._sum_sensitivity)

    def center_noise(self, share: float) -> float:
        """Root mean square norm of the noise on the sum of rows."""
        return noise_deviation(self.center_scale(share), pure=self.pure) * math.sqrt(self.n_features)

    def screen_share(self, least_rows: float) -> float | None:
        """For a first look at one large radius; None where it costs too much for a first look."""
        share = self.share_for(_SCREEN_ROWS * least_rows / _SCREEN_NOISE)
        return None if share > _SCREEN_SHARES[1] else max(share, _SCREEN_SHARES[0])

    @staticmethod
    def screened_rows(least_rows: float, rows_beyond: int) -> float:
        """How many rows may lie beyond that radius."""
        return max(float(rows_beyond), _SCREEN_ROWS * least_rows)

    @staticmethod
    def excess_share(radius: float) -> float:
        """For what lies beyond the ball, given its radius."""
        return min(_MAX_EXCESS_SHARE, _EXCESS_SHARE_PER_GAIN / radius**2)

    @property
    def _search_noise(self) -> float:
        return _SEARCH_NOISE_PURE if self.pure else _SEARCH_NOISE_GAUSSIAN

    @property
    def _sum_sensitivity(self) -> float:
        return (row_sum_l1(self.neighbors, self.n_features) if self.pure else row_sum_l2(self.neighbors)).value


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


_MAX_RADIUS = 0.95
_FINENESS = 24
"""Distances are told apart to a factor of 2^(1/24)."""
_OUTERMOST = -26
"""_MAX_RADIUS·2^(26/24) is above 2, and no row of the unit ball is farther from a centre in it."""
_INNERMOST = 189
_STEP_PURE, _STEP_GAUSSIAN = 4, 3
_N_RADII_PURE, _N_RADII_GAUSSIAN = 40, 64
"""The radii that can be chosen: a sixth of an octave apart, or an eighth."""
SCREEN_PLACE = 5
"""The first radius looked at: 0.82."""
COMPARISONS = 6
"""Of a binary search among 64 radii."""
_PREFERENCE = 2.0
"""Among radii that the number of rows beyond does not tell apart, a choice has odds of radius^−2, as the noise would have
it."""
_SHARE_BITS = 20
"""A row's part of a sum is a multiple of 2^-20."""


@dataclass(frozen=True, slots=True, eq=False)
class _DistanceFromCenter:
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
        privacy_filter, "ball-center", moments.sum, sensitivity, scale, bits=moments.bits, pure=budget.pure
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
        ``beyond[i]`` rows are farther than ``radius_at(_OUTERMOST + i)``.
    """

    beyond: IntegerArray

    @classmethod
    def of(cls, rows: Rows, center: FloatArray) -> RowDistances:
        """One pass over the table."""
        edges = np.array([radius_at(index) for index in range(_INNERMOST, _OUTERMOST - 1, -1)])
        counted = rows.histogram(_DistanceFromCenter(center), edges)
        from_outside = np.concatenate([[counted.above], counted.counts[::-1]])
        return cls(np.cumsum(from_outside))

    def at(self, place: int) -> int:
        """Rows farther than ``radius_at(place)``."""
        return int(self.beyond[place - _OUTERMOST])

    def fills_the_bounds(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, allowed: float) -> bool:
        """Whether more rows than are allowed lie beyond the first radius looked at, as seen through noise."""
        noisy = _noisy_count(privacy_filter, "ball-screening", self.at(SCREEN_PLACE), budget, share)
        return noisy > allowed

    def radius(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, rows_beyond: int) -> int:
        """The place of a radius that about so many rows are beyond.

        **Privacy.** That share of the budget. Under pure ε by the exponential mechanism with the score minus the distance of
        N(r) from K and a public preference; under ρ by noisy comparisons.
        """
        part = budget.part(share)
        if budget.pure:
            indices = radius_places(pure=True)
            # Two units in the last place down: the loss is this times the sensitivity of a score, 1.
            law = Choice(math.nextafter(math.nextafter(part.epsilon, 0.0), 0.0))
            scores = [-abs(self.at(index) - rows_beyond) + preference(index, law.epsilon) for index in indices]
            return indices[int(privacy_filter.draw("ball-radius", law, np.array(scores), rank_score(budget.neighbors)))]
        losses = part.split(*[1.0] * COMPARISONS)
        step, half = 0, _N_RADII_GAUSSIAN
        for number, loss in enumerate(losses, 1):
            half //= 2
            sensitivity = count(budget.neighbors)
            scale = noise_scale_for(loss, sensitivity.value)
            query = [self.at(_STEP_GAUSSIAN * (step + half))]
            what = Message("ball-radius", comparison=number)
            [noisy] = with_noise(privacy_filter, what, query, sensitivity, scale, bits=0, pure=False)
            step += half if noisy <= rows_beyond else 0
        return _STEP_GAUSSIAN * step

    def noisy_rows_beyond(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, place: int) -> float:
        """The number of rows beyond the radius at ``place``, with noise."""
        return _noisy_count(privacy_filter, "ball-outside", self.at(place), budget, share)

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
        for outer in range(place, _OUTERMOST, -1):
            within = self.at(outer) - self.at(outer - 1)
            reach = min(radius_at(outer - 1), farthest) ** 2 - radius**2
            part = min(math.nextafter(reach / most, math.inf), 1.0)
            query += within * math.ceil(part * 2.0**_SHARE_BITS)
        query += self.at(_OUTERMOST) * 2**_SHARE_BITS
        sensitivity = share_of_rows_l1(budget.neighbors) if budget.pure else share_of_rows(budget.neighbors)
        scale = noise_scale_for(budget.part(share), sensitivity.value)
        what = "ball-excess"
        [noisy] = with_noise(privacy_filter, what, [query], sensitivity, scale, bits=_SHARE_BITS, pure=budget.pure)
        return float(noisy) * most, budget.deviation(share) * most


def radius_at(place: int) -> float:
    """The radius at a place of the grid.

    Examples
    --------
    >>> radius_at(0), round(radius_at(24), 3), radius_at(-26) > 2.0
    (0.95, 0.475, True)
    """
    return _MAX_RADIUS * math.exp2(-place / _FINENESS)


def radius_places(pure: bool) -> tuple[int, ...]:
    """Places of the radii that a run can choose."""
    step, number = (_STEP_PURE, _N_RADII_PURE) if pure else (_STEP_GAUSSIAN, _N_RADII_GAUSSIAN)
    return tuple(step * index for index in range(number))


def possible_draws(*, pure: bool, count_is_public: bool, in_ball: bool) -> frozenset[tuple[str, ...]]:
    """Every sequence of draws that a run can end after, by the names of their sensitivities."""
    counted, excess, rows_sum = (
        ("count_l1", "share_of_rows_l1", "row_sum_l1") if pure else ("count", "share_of_rows", "row_sum_l2")
    )
    first = () if count_is_public else (counted,)
    searched = ("rank_score",) if pure else (counted,) * COMPARISONS
    joint = ("gram_nuclear" if pure else "gram_frobenius",)
    starts = [(*first, rows_sum, *screened) for screened in ((), (counted,))]
    found = [(*start, *searched, *clipped) for start in starts for clipped in ((), (excess,))]
    if in_ball:
        return frozenset((*draws, counted, *joint) for draws in found)
    return frozenset((*draws, *joint) for draws in (first, *starts, *found))


def preference(place: int, epsilon: float) -> int:
    """What a radius adds to its score, in whole rows, for odds of radius^−2 by itself."""
    return round(2.0 * _PREFERENCE * math.log(2.0) * place / _FINENESS / epsilon)


def _noisy_count(privacy_filter: PrivacyFilter, what: Query, exact: int, budget: BallBudget, share: float) -> float:
    sensitivity = count_l1(budget.neighbors) if budget.pure else count(budget.neighbors)
    scale = noise_scale_for(budget.part(share), sensitivity.value)
    [noisy] = with_noise(privacy_filter, what, [exact], sensitivity, scale, bits=0, pure=budget.pure)
    return float(noisy)


# What a run of adaptive-ball learnt of the rows that it moved, and what it says of that.

_FAILURE = 0.05
"""Probability that one of the bounds on what clipping did does not hold, the noisy answers being independent of one
another."""
_BOUNDS = 3
_NEGLIGIBLE = 0.01
"""What clipping took at most is no matter below this share of all variances together."""


@dataclass(frozen=True)
class BallEvidence:
    """Rows beyond a ball.

    Attributes
    ----------
    rows_beyond, rows_deviation : float
        Their number with noise (NaN before it is asked for), and the noise's standard deviation.
    excess, excess_deviation : float
        The same for Σ(‖x − c‖² − r²) over them.
    farthest : float
        How far from the centre a row can be.
    pure : bool
        Whether the noise is Laplace noise.
    """

    radius: float
    rows_beyond: float
    rows_deviation: float
    excess: float
    excess_deviation: float
    farthest: float
    pure: bool

    @classmethod
    def found(
        cls,
        distances: RowDistances,
        privacy_filter: PrivacyFilter,
        budget: BallBudget,
        place: int,
        farthest: float,
    ) -> BallEvidence:
        """Ask for the excess; the number of rows is asked for when the ball is taken."""
        radius = radius_at(place)
        share = budget.excess_share(radius)
        excess, deviation = distances.noisy_excess(privacy_filter, budget, share, place, farthest)
        return cls(radius, math.nan, budget.deviation(BEYOND_SHARE), excess, deviation, farthest, budget.pure)

    def with_rows(
        self, distances: RowDistances, privacy_filter: PrivacyFilter, budget: BallBudget, place: int
    ) -> BallEvidence:
        """The same with the number of rows beyond the ball."""
        return replace(self, rows_beyond=distances.noisy_rows_beyond(privacy_filter, budget, BEYOND_SHARE, place))

    def diagnostics(self, noisy: RunResult) -> dict[str, Any]:
        """What the rows that were moved did to the moments at most, with a warning where that is more than the noise.

        Clipping takes at most E/n off the trace of the second moment about the centre, E the excess, and moves the mean by at
        most E/(2rn), since ‖x − c‖² − r² ≥ 2r(‖x − c‖ − r).
        """
        model, count = noisy.model, noisy.count
        assert isinstance(model, AdditiveModel)
        assert model.sum_error is not None
        assert count is not None
        assert noisy.sum is not None
        most_rows = max(0.0, self.rows_beyond + self._reach(self.rows_deviation))
        most_excess = max(0.0, self.excess + self._reach(self.excess_deviation))
        most_excess = min(most_excess, most_rows * max(0.0, self.farthest**2 - self.radius**2))
        deviation = math.sqrt(model.count_variance or 0.0)
        count_noise = deviation * model.cells.quantile(1.0 - _FAILURE / _BOUNDS, diagonal=True) if deviation else 0.0
        least_count = max(1.0, count - count_noise)
        result = {
            "radius": self.radius,
            "rows_beyond": self.rows_beyond,
            "excess_beyond": self.excess,
            "share_beyond_bound": min(1.0, most_rows / least_count),
            "trace_bias_bound": most_excess / least_count,
            "mean_bias_bound": most_excess / (2.0 * self.radius * least_count),
        }
        trace_noise = math.sqrt(model.n_features * model.diagonal_variance) / least_count
        lost = result["trace_bias_bound"]
        if lost <= trace_noise and result["mean_bias_bound"] <= model.sum_error / least_count:
            return result
        # Of the covariance clipping takes more than of the second moment where it moves the mean away from the centre.
        at_least_one = max(1.0, count)
        moved = float(np.linalg.norm(noisy.sum)) / at_least_one
        lost *= 1.0 + min(1.0, moved / self.radius)
        spread = float(np.trace(noisy.gram)) / at_least_one - moved**2
        shown = max(spread, trace_noise)
        if lost < _NEGLIGIBLE * shown:
            return result
        facts = {"radius": self.radius, "outside": result["share_beyond_bound"]}
        warning = Message("clipped-rows", **facts, lost=lost / shown, noise=trace_noise / shown)
        return result | {"warnings": (warning,)}

    @staticmethod
    def rules(diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        """What was done to rows, for the privacy statement."""
        if "radius" not in diagnostics:
            return ()
        radius, outside = _recorded(diagnostics, "radius"), _recorded(diagnostics, "share_beyond_bound")
        trace, mean = (_recorded(diagnostics, f"{name}_bias_bound", math.inf) for name in ("trace", "mean"))
        return (Message("rows-clipped-to-ball", radius=radius, outside=outside, trace=trace, mean=mean),)

    @staticmethod
    def recorded_radius(diagnostics: Mapping[str, Any]) -> float | None:
        """The ball of a run; None where it had none."""
        return _recorded(diagnostics, "radius") if "radius" in diagnostics else None

    def _reach(self, deviation: float) -> float:
        failure = _FAILURE / _BOUNDS
        return deviation * (
            -math.log(2.0 * failure) / math.sqrt(2.0) if self.pure else float(-scipy.special.ndtri(failure))
        )


def _recorded(diagnostics: Mapping[str, Any], name: str, most: float = 1.0) -> float:
    value: Any = diagnostics.get(name)
    if not is_finite_number(value) or not 0.0 <= value <= most:
        raise InputValueError(
            f"{name} of the diagnostics must be a number from 0 to {most:g}: the file was changed after the release"
        )
    return float(value)
