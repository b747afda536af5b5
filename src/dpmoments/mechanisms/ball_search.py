"""Private search for a center, a radius with few rows outside, and their clipped excess.

Every query is a sum over rows of a number between 0 and 1, or of a row. The histogram behind the queries is private and stays
here. Sensitivities and rules: ``docs/evidence/derivations/adaptive_ball.md``.
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
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice
from dpmoments.privacy.receipt import Receipt
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
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

# Division of the budget, step by step, by the noisy number of rows so far.

COUNT_SHARE = 0.008
"""Budget share of the row count."""
_CENTER_SHARES = (0.005, 0.08)
"""Min and max budget share of the center."""
_CENTER_NOISE = 0.1
"""Target noise norm of the center, in encoded units."""
_SCREEN_ROWS = 0.01
"""Fraction of rows allowed outside the screening radius."""
_SCREEN_NOISE = 4.0
"""Noise scales of the screening count that this fraction of rows must equal."""
_SCREEN_SHARES = (0.0025, 0.045)
"""Min and max budget share of screening; skipped if it would need more."""
_SEARCH_SHARES = (0.01, 0.12)
"""Min and max budget share of the radius search."""
_SEARCH_SHARE_AT_EASE = 0.04
"""Cap on the share spent on a finer resolution than the following."""
_ROWS_AT_EASE = 0.004
"""Search resolution, as a fraction of rows, that is always fine enough."""
_SEARCH_NOISE_PURE, _SEARCH_NOISE_GAUSSIAN = 10.0, 6.0
"""Min number of rows outside the ball, in noise scales of the search."""
_ROWS_FOR_NOISE = 3.0
"""Target number of rows outside, as a multiple of the final noise (Frobenius norm, in rows)."""
_MAX_BEYOND = 0.25
"""Upper limit of that target, as a fraction of all rows."""
BEYOND_SHARE = 0.01
"""Budget share of the count of rows outside."""
_UNSCREENED_BEYOND_SHARE = 0.05
"""Upper limit of that share if no screening was paid for."""
_BEYOND_NOISE = 16.0
"""Noise scales of that count that all rows must equal, up to this limit."""
MAX_OUTSIDE = 0.5
"""Max fraction of rows outside a ball, by the noisy count."""
_EXCESS_SHARE_PER_GAIN = 0.02
"""Budget share of the clipped excess at radius 1; it grows as 1/radius²."""
_MAX_EXCESS_SHARE = 0.12
"""Upper limit of that share."""
SHARE_FOR_NOISE = 0.9
"""Budget share of the final release assumed when planning the other steps."""


@dataclass(frozen=True)
class BallBudget:
    """Budget shares of one run.

    ``noise_rows`` is the final noise (Frobenius norm, radius 1, SHARE_FOR_NOISE) in rows.
    """

    whole: PrivacyBudget
    neighbors: Neighbors
    n_features: int
    noise_rows: float

    @property
    def pure(self) -> bool:
        """True if losses add up in ε, False if in ρ."""
        return self.whole.kind is BudgetKind.PURE

    def part(self, share: float) -> PrivacyBudget:
        """Return this share of the total budget."""
        return self.whole.split(share, 1.0 - share)[0]

    def scale(self, share: float) -> float:
        """Return the noise scale of a count bought with this share."""
        return noise_scale_for(self.part(share), 1.0)

    def deviation(self, share: float) -> float:
        """Return the noise SD of a count bought with this share."""
        return noise_deviation(self.scale(share), pure=self.pure)

    def share_for(self, scale: float) -> float:
        """Return the share needed for a count with this noise scale (inf for scale 0)."""
        if scale <= 0.0:
            return math.inf
        ratio = noise_scale_for(self.whole, 1.0) / scale
        return ratio if self.pure else ratio * ratio

    def search_share(self, least_rows: float) -> float:
        """Return the budget share of the radius search, given a lower estimate of the row count."""
        aim = max(_ROWS_FOR_NOISE * self.noise_rows, _ROWS_AT_EASE * least_rows)
        for_noise = self.share_for(_ROWS_FOR_NOISE * self.noise_rows / self._search_noise)
        wanted = max(
            self.share_for(aim / self._search_noise),
            self.share_for(_MAX_BEYOND * least_rows / self._search_noise),
            min(_SEARCH_SHARE_AT_EASE, for_noise),
        )
        return _within(wanted, _SEARCH_SHARES)

    def rows_beyond(self, least_rows: float) -> int | None:
        """Return K, the rows allowed outside the ball, or None if the table is too small to search."""
        least = self._search_noise * self.scale(self.search_share(least_rows))
        most = _MAX_BEYOND * least_rows
        if least > most:
            return None
        return math.floor(max(least, min(_ROWS_FOR_NOISE * self.noise_rows, most)))

    def center_share(self, least_rows: float) -> float:
        """Return the budget share of the center."""
        norm = self.center_noise(1.0) / (_CENTER_NOISE * least_rows)
        return _within(norm if self.pure else norm * norm, _CENTER_SHARES)

    def center_scale(self, share: float) -> float:
        """Return the noise scale of every entry of the sum of rows."""
        return noise_scale_for(self.part(share) if share < 1.0 else self.whole, self._sum_sensitivity)

    def center_noise(self, share: float) -> float:
        """Return the RMS norm of the noise on the sum of rows."""
        return noise_deviation(self.center_scale(share), pure=self.pure) * math.sqrt(self.n_features)

    def screen_share(self, least_rows: float) -> float | None:
        """Return the budget share of screening at one large radius. None if it would cost too much."""
        share = self.share_for(_SCREEN_ROWS * least_rows / _SCREEN_NOISE)
        return None if share > _SCREEN_SHARES[1] else max(share, _SCREEN_SHARES[0])

    @staticmethod
    def screened_rows(least_rows: float, rows_beyond: int) -> float:
        """Return the number of rows allowed outside the screening radius."""
        return max(float(rows_beyond), _SCREEN_ROWS * least_rows)

    def beyond_share(self, least_rows: float) -> float:
        """Return the budget share of the count of rows outside the ball."""
        if self.screen_share(least_rows) is not None:
            return BEYOND_SHARE
        return _within(self.share_for(least_rows / _BEYOND_NOISE), (BEYOND_SHARE, _UNSCREENED_BEYOND_SHARE))

    @staticmethod
    def excess_share(radius: float) -> float:
        """Return the budget share of the clipped excess at this radius."""
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
"""Bins of distances per octave."""
_OUTERMOST = -26
"""Index of the outermost radius.

_MAX_RADIUS·2^(26/24) is above 2, the diameter of the unit ball.
"""
SMALLEST_INDEX = _INNERMOST = 189
"""Index of the innermost radius, a 250th of the outermost."""
_STEP_PURE, _STEP_GAUSSIAN = 4, 3
_N_RADII_PURE, _N_RADII_GAUSSIAN = 40, 64
"""Numbers of radii to choose from, a sixth or an eighth of an octave apart."""
_EVERY_ROW = -_STEP_PURE
"""Candidate of the exponential mechanism with no row outside: the public bounds."""
SCREEN_PLACE = 5
"""Index of the screening radius, 0.82."""
COMPARISONS = 6
"""Comparisons in the binary search over 64 radii (log2 64)."""
_PREFERENCE = 4.0
"""Exponent of the prior odds radius^−4 among radii with equally many rows outside.

The noise variance grows with radius⁴.
"""
_LEAST_PREFERRED = 64
"""Index of the radius, 0.15, below which none is preferred.

Few rows would remain in the ball.
"""
_SHARE_BITS = 20
"""Bits of a row's contribution to a sum: multiples of 2^-20."""


@dataclass(frozen=True, slots=True, eq=False)
class _DistanceFromCenter:
    """Row statistic ‖x − center‖/unit, in all features or some."""

    center: FloatArray
    features: tuple[int, ...] | None
    unit: float

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return distances of a batch of rows, shape (m, d) → (m,)."""
        if self.features is None:
            return transformed_norms(block, center=self.center)
        chosen = list(self.features)
        norms = transformed_norms(np.ascontiguousarray(block[:, chosen]), center=self.center[chosen])
        return np.asarray(norms / self.unit)


def noisy_center(
    moments: ExactMoments,
    privacy_filter: PrivacyFilter,
    budget: BallBudget,
    share: float,
    n_rows: float,
    box: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return the noisy mean, shrunk towards 0 by its noise and clipped to public bounds.

    James & Stein (1961).

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
    """Exact (private) row counts by distance from the center.

    ``beyond[i]`` rows are further than ``radius_at(_OUTERMOST + i)``, in a given unit.
    """

    beyond: IntegerArray

    @classmethod
    def of(
        cls, rows: Rows, center: FloatArray, features: tuple[int, ...] | None = None, unit: float = 1.0
    ) -> RowDistances:
        """Count the distances in one pass over the table."""
        # They are in all features or in some, in units of `unit`.
        edges = np.array([radius_at(index) for index in range(_INNERMOST, _OUTERMOST - 1, -1)])
        counted = rows.histogram(_DistanceFromCenter(center, features, unit), edges)
        from_outside = np.concatenate([[counted.above], counted.counts[::-1]])
        return cls(np.cumsum(from_outside))

    def at(self, index: int) -> int:
        """Return the number of rows further than ``radius_at(index)``."""
        return int(self.beyond[index - _OUTERMOST])

    def fills_the_bounds(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, allowed: float) -> bool:
        """Return True if a noisy count puts more than ``allowed`` rows outside the screening radius."""
        noisy = _noisy_count(privacy_filter, "ball-screening", self.at(SCREEN_PLACE), budget, share)
        return noisy > allowed

    def radius(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, rows_beyond: int) -> int:
        """Return the index of a radius with about ``rows_beyond`` rows outside; below 0: the bounds."""
        # **Privacy.** That share of the budget. Under pure ε by the exponential mechanism with the score minus the
        # distance of N(r) from K and a public preference, 0 in place of N(r) for the public bounds; under ρ by noisy
        # comparisons.
        part = budget.part(share)
        if budget.pure:
            indices = (_EVERY_ROW, *radius_indices(pure=True))
            # Two units in the last place down: the loss is this times the sensitivity of a score, 1.
            law = Choice(math.nextafter(math.nextafter(part.epsilon, 0.0), 0.0))
            outside = [0, *(self.at(index) for index in indices[1:])]
            scores = [
                -abs(number - rows_beyond) + preference(index, law.epsilon)
                for index, number in zip(indices, outside, strict=True)
            ]
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

    def noisy_rows_beyond(self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, index: int) -> float:
        """Return the noisy number of rows outside the radius at an index."""
        return _noisy_count(privacy_filter, "ball-outside", self.at(index), budget, share)

    def noisy_excess(
        self, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, index: int, farthest: float
    ) -> tuple[float, float]:
        """Return the noisy clipped excess and its noise SD.

        The excess is Σ(‖x − c‖² − r²) over rows outside the ball.

        It bounds the reduction of the trace of the second moment about c by clipping. Distances are rounded up to the next bin
        edge, and end at ``farthest``, which no row exceeds.

        **Privacy.** That share of the budget: a row contributes between 0 and farthest² − r².
        """
        radius = radius_at(index)
        most = farthest**2 - radius**2
        if most <= 0.0:
            return 0.0, 0.0
        query = 0
        for outer in range(index, _OUTERMOST, -1):
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


def radius_at(index: int) -> float:
    """Return the radius at an index of the grid, halved every _FINENESS steps."""
    return _MAX_RADIUS * math.exp2(-index / _FINENESS)


def radius_indices(pure: bool) -> tuple[int, ...]:
    """Return the indices of the radii that a run can choose."""
    step, number = (_STEP_PURE, _N_RADII_PURE) if pure else (_STEP_GAUSSIAN, _N_RADII_GAUSSIAN)
    return tuple(step * index for index in range(number))


def possible_draws(*, pure: bool, count_is_public: bool, in_ball: bool) -> frozenset[tuple[str, ...]]:
    """Return every sequence of draws that a run can end after."""
    # Draws are named by their sensitivities.
    counted, excess, rows_sum = (
        ("count_l1", "share_of_rows_l1", "row_sum_l1") if pure else ("count", "share_of_rows", "row_sum_l2")
    )
    first = () if count_is_public else (counted,)
    searched = ("rank_score",) if pure else (counted,) * COMPARISONS
    joint = ("gram_nuclear" if pure else "gram_frobenius",)
    starts = [(*first, rows_sum, *screened) for screened in ((), (counted,))]
    searches = [(*start, *searched, *clipped) for start in starts for clipped in ((), (excess,))]
    held = [(*draws, counted) for draws in searches]
    ends = held if in_ball else [first, *starts, *searches, *held]
    return frozenset((*draws, *joint) for draws in ends)


def preference(index: int, epsilon: float) -> int:
    """Return a radius's bonus to its score, in whole rows, for the prior odds."""
    return round(2.0 * _PREFERENCE * math.log(2.0) * min(index, _LEAST_PREFERRED) / _FINENESS / epsilon)


def _noisy_count(privacy_filter: PrivacyFilter, what: Query, exact: int, budget: BallBudget, share: float) -> float:
    sensitivity = count_l1(budget.neighbors) if budget.pure else count(budget.neighbors)
    scale = noise_scale_for(budget.part(share), sensitivity.value)
    [noisy] = with_noise(privacy_filter, what, [exact], sensitivity, scale, bits=0, pure=budget.pure)
    return float(noisy)


# Evidence of a run on the rows that it clipped, and the warnings that follow.

_FAILURE = 0.05
"""Max probability that one of a run's bounds on the effect of clipping fails.

Before the run, by the union bound.
"""
_BOUNDS = 3
_OUTLYING = 1.5
"""Distance of an outlying row from the center, in radii of the ball, at the least."""
_CLEAR = 3.0
"""Noise SDs above which an excess is more than noise: 0.7 % of Laplace noise exceeds them."""


@dataclass(frozen=True)
class BallEvidence:
    """Noisy evidence on the rows outside a ball."""

    radius: float
    rows_beyond: float  # with `rows_deviation`: their noisy number (NaN before it is queried), and its noise SD
    rows_deviation: float
    excess: float  # with `excess_deviation`: their noisy clipped excess Σ(‖x − c‖² − r²), and its noise SD
    excess_deviation: float
    farthest: float  # largest possible distance of a row from the center
    pure: bool  # true if the noise is Laplace noise

    @classmethod
    def measured(
        cls, distances: RowDistances, privacy_filter: PrivacyFilter, budget: BallBudget, index: int, farthest: float
    ) -> BallEvidence:
        """Return the evidence of the clipped excess; the rows are counted if it allows the ball."""
        radius = radius_at(index)
        share = budget.excess_share(radius)
        excess, deviation = distances.noisy_excess(privacy_filter, budget, share, index, farthest)
        return cls(radius, math.nan, math.nan, excess, deviation, farthest, budget.pure)

    @classmethod
    def recorded(
        cls,
        diagnostics: Mapping[str, Any],
        receipt: Receipt,
        radius: float,
        unit: float,
        farthest: float,
        *,
        pure: bool,
    ) -> BallEvidence:
        """Return the evidence of a run from its record; the noise is from the losses of its draws."""
        kind = PrivacyBudget.pure if pure else PrivacyBudget.zcdp
        losses = {draw.what.code: kind(float(draw.loss.amount)) for draw in receipt.draws}

        def deviation(query: str) -> float:
            return noise_deviation(noise_scale_for(losses[query], 1.0), pure=pure) if query in losses else 0.0

        most = max(farthest**2 - radius**2, 0.0)
        rows, excess = (_recorded(diagnostics, name, math.inf, -math.inf) for name in ("rows_beyond", "excess_beyond"))
        reach = deviation("ball-excess") * most
        return cls(radius, rows, deviation("ball-outside"), excess / unit**2, reach, farthest, pure)

    def with_rows(
        self, distances: RowDistances, privacy_filter: PrivacyFilter, budget: BallBudget, share: float, index: int
    ) -> BallEvidence:
        """Return the evidence with the noisy number of rows outside the ball."""
        noisy = distances.noisy_rows_beyond(privacy_filter, budget, share, index)
        return replace(self, rows_beyond=noisy, rows_deviation=budget.deviation(share))

    def excess_of_near_rows(self, rows_beyond: int) -> float:
        """Return the largest excess of that many rows, if none is outlying."""
        return (_OUTLYING**2 - 1.0) * self.radius**2 * rows_beyond

    @property
    def room_for_outlying_rows(self) -> float:
        """1 in a small ball, 0 if no row can be outlying."""
        return max(0.0, 1.0 - (_OUTLYING * self.radius / self.farthest) ** 4) if self.farthest > 0.0 else 0.0

    def shows_outlying_rows(self, rows_beyond: int) -> bool:
        """Return True if the excess is more than noise and that many rows near the ball explain."""
        return self.excess > self.excess_of_near_rows(rows_beyond) + _CLEAR * self.excess_deviation

    def diagnostics(self, noisy: RunResult, unit: float = 1.0) -> dict[str, Any]:
        """Bound what clipping did to the moments, from evidence in this unit."""
        # It takes at most E/n off the trace of the second moment about the center, E the excess, and moves the mean by
        # at most E/(2rn), since ‖x − c‖² − r² ≥ 2r(‖x − c‖ − r).
        law, count = None if noisy.model is None else noisy.model.fixed_law, noisy.count
        assert law is not None
        assert count is not None
        # a noisy answer below 0 is no evidence that nothing was clipped
        most_rows = max(self.rows_beyond, 0.0) + self._reach(self.rows_deviation)
        most_excess = max(self.excess, 0.0) + self._reach(self.excess_deviation)
        most_excess = min(most_excess, most_rows * max(0.0, self.farthest**2 - self.radius**2))
        deviation = math.sqrt(law.count_variance)
        count_noise = deviation * law.quantile(1.0 - _FAILURE / _BOUNDS, of="count") if deviation else 0.0
        least_count = max(1.0, count - count_noise)
        return {
            "radius": self.radius * unit,
            "rows_beyond": self.rows_beyond,
            "excess_beyond": self.excess * unit**2,
            "share_beyond_bound": min(1.0, most_rows / least_count),
            "trace_bias_bound": most_excess / least_count * unit**2,
            "mean_bias_bound": most_excess / (2.0 * self.radius * least_count) * unit,
        }

    @staticmethod
    def rules(diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return the clipping rule, for the privacy statement."""
        if "radius" not in diagnostics:
            return ()
        radius, outside = _recorded(diagnostics, "radius"), _recorded(diagnostics, "share_beyond_bound")
        trace, mean = (_recorded(diagnostics, f"{name}_bias_bound", math.inf) for name in ("trace", "mean"))
        code = "numbers-clipped-to-ball" if diagnostics.get("numbers_alone") is True else "rows-clipped-to-ball"
        return (Message(code, radius=radius, outside=outside, trace=trace, mean=mean),)

    @staticmethod
    def recorded_radius(diagnostics: Mapping[str, Any]) -> float | None:
        """Return the ball's radius, or None for a run without a ball."""
        return _recorded(diagnostics, "radius") if "radius" in diagnostics else None

    def _reach(self, deviation: float) -> float:
        failure = _FAILURE / _BOUNDS
        return deviation * (
            -math.log(2.0 * failure) / math.sqrt(2.0) if self.pure else float(-scipy.special.ndtri(failure))
        )


def _recorded(diagnostics: Mapping[str, Any], name: str, most: float = 1.0, least: float = 0.0) -> float:
    value: Any = diagnostics.get(name)
    if not is_finite_number(value) or not least <= value <= most:
        raise InputValueError(Message("diagnostic-out-of-range", name=name, most=most))
    return float(value)
