"""Mean within public bounds.

Noisy count and sums, of rows clipped to a private ball where that pays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.adaptive_ball import MAX_RADIUS
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.ball_search import (
    BEYOND_SHARE,
    SHARE_FOR_NOISE,
    BallBudget,
    RowDistances,
    noisy_center,
    radius_at,
)
from dpmoments.mechanisms.lattice_noise import (
    COUNT_SHARE,
    count_error,
    noise_deviation,
    noise_scale_for,
    noisy_count,
    with_noise,
)
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.noise.models import MeanModel
from dpmoments.noise.rounding import with_rounding
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import row_sum_l1, row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

_MEAN_SQUARE = 0.3
"""Assumed ‖E[x]‖² if no center is known."""
_MIN_SQUARE = 1e-4
"""Min of it for the budget share of the count."""
_MIN_SHARE = 0.005
"""Min budget share of a sum of rows."""
_MAX_SEARCH = {True: 0.2, False: 0.3}
"""Max budget share of the search for a ball: of ε, of ρ."""
_MARGIN = 9
"""Steps of the grid, three eighths of an octave, from the radius found to the ball's.

Less bias if the center is off.
"""
_MAX_OUTSIDE = 0.03
"""Max fraction of rows that a search may leave outside.

Clipping moves the mean by up to this part of the radius.
"""
_CLEAR = 3.0
"""Noise SDs above which a count of clipped rows is more than noise."""
_PAYS = 0.9
"""Ratio of the noise in the ball to that at the public bounds, below which rows are clipped."""


@dataclass(frozen=True)
class _CountAndSums:
    """Noisy count and sums of rows with ``nonzero`` entries that are not 0, and mean ``square``."""

    neighbors: Neighbors
    n_features: int
    nonzero: int
    square: float
    private_count: bool

    def of_sums(self, loss: PrivacyBudget) -> float:
        """Return the noise SD of an entry of the sums."""
        pure = loss.kind is BudgetKind.PURE
        return noise_deviation(noise_scale_for(loss, self._sensitivity(pure).value), pure=pure)

    def parts(self, loss: PrivacyBudget) -> tuple[PrivacyBudget | None, PrivacyBudget]:
        """Split a budget between a private count and the sums for the least error of the mean."""
        if not self.private_count:
            return None, loss
        pure = loss.kind is BudgetKind.PURE
        ratio = max(self.square, _MIN_SQUARE) / (self._sensitivity(pure).value ** 2 * self.n_features)
        for_count, rest = loss.split(ratio ** (1.0 / 3.0) if pure else math.sqrt(ratio), 1.0)
        return for_count, rest

    def error(self, loss: PrivacyBudget) -> float:
        """Return the RMS norm of the noise on the mean, times the number of rows."""
        for_count, rest = self.parts(loss)
        of_count = 0.0 if for_count is None else count_error(for_count) * math.sqrt(self.square)
        return math.hypot(self.of_sums(rest) * math.sqrt(self.n_features), of_count)

    def mean(
        self, moments: ExactMoments, privacy_filter: PrivacyFilter, loss: PrivacyBudget
    ) -> tuple[FloatArray, float, float, float]:
        """Return the noisy mean, noise SD of an entry, number of rows, and noise SD of that."""
        for_count, rest = self.parts(loss)
        n_rows, of_count = float(moments.count), 0.0
        if for_count is not None:
            n_rows, of_count = (
                noisy_count(moments.count, privacy_filter, for_count, self.neighbors),
                count_error(for_count),
            )
        noise = with_rounding(self.of_sums(rest) / n_rows, 0.5 * 2.0**-moments.bits)
        return self.sums(moments, privacy_filter, rest) / n_rows, noise, n_rows, of_count

    def sums(self, moments: ExactMoments, privacy_filter: PrivacyFilter, loss: PrivacyBudget) -> FloatArray:
        pure = loss.kind is BudgetKind.PURE
        sensitivity = self._sensitivity(pure)
        scale = noise_scale_for(loss, sensitivity.value)
        return with_noise(privacy_filter, "sum", moments.sum, sensitivity, scale, bits=moments.bits, pure=pure)

    def _sensitivity(self, pure: bool) -> Sensitivity:
        return row_sum_l1(self.neighbors, self.nonzero) if pure else row_sum_l2(self.neighbors)


@dataclass(frozen=True)
class BoundedSumsPlan(MeanPlan):
    """Calibrated :class:`BoundedSums`."""

    budget: BallBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE
    error_needs_rows: ClassVar[bool] = False

    @property
    def expected_count_error(self) -> float | None:
        for_count, _ = self._at_bounds().parts(self.budget.whole)
        return 0.0 if for_count is None else count_error(for_count)

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        """Return the noise at the public bounds: a ball is used only if it has less."""
        d = self.shape.n_features
        return np.full(d, self._at_bounds().error(self.budget.whole) / (math.sqrt(d) * assumed.n_rows))

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        step = self._at_bounds()
        bits = choose_bits(step.of_sums(self.budget.part(_MIN_SHARE)), self.shape.n_features)
        moments = rows.moments(bits=bits)
        lower, upper = rows.schema.encoding(mean=True).values_in_ball(*rows.schema.feature_bounds)
        box = lower, upper
        in_ball = self._in_ball(rows, moments, privacy_filter, box) if self.shape.numeric_share > 0.0 else None
        if in_ball is not None:
            return in_ball
        mean, noise, n_rows, of_count = step.mean(moments, privacy_filter, privacy_filter.left.as_budget)
        mean = np.clip(mean, *box)
        law = MeanModel(self._noise, np.full(len(mean), noise), np.abs(mean) * of_count / n_rows)
        return NoisyMean(mean, n_rows, {"warnings": ()}, law)

    def _in_ball(
        self, rows: Rows, moments: ExactMoments, privacy_filter: PrivacyFilter, box: tuple[FloatArray, FloatArray]
    ) -> NoisyMean | None:
        """Search for a ball, and release the mean of rows clipped to it."""
        # None if the public bounds have less noise.
        n_rows = least_rows = float(moments.count)
        if not self.count_is_public:
            loss = self.budget.part(COUNT_SHARE)
            n_rows = noisy_count(moments.count, privacy_filter, loss, self.neighbors)
            least_rows = n_rows - count_error(loss)
        rows_beyond = self._rows_beyond(least_rows)
        if rows_beyond is None:
            return None
        share = self.budget.center_share(least_rows)
        center = noisy_center(moments, privacy_filter, self.budget, share, n_rows, box)
        distances = RowDistances.of(rows.in_unit_ball(), center)
        screened = self.budget.screen_share(least_rows)
        if screened is not None:
            allowed = self.budget.screened_rows(least_rows, rows_beyond)
            if distances.fills_the_bounds(privacy_filter, self.budget, screened, allowed):
                return None
        index = distances.radius(privacy_filter, self.budget, self.budget.search_share(least_rows), rows_beyond)
        index -= _MARGIN
        radius = radius_at(index)
        if radius >= MAX_RADIUS:
            return None
        off_center = min(self.budget.center_noise(share) / n_rows / radius, 1.0) ** 2
        step, left = self._step(self.shape.n_features, off_center), privacy_filter.left.as_budget
        if step.error(left) * radius >= _PAYS * self._at_bounds().error(left):
            return None
        outside = distances.noisy_rows_beyond(privacy_filter, self.budget, BEYOND_SHARE, index)
        above_noise = outside - _CLEAR * self.budget.deviation(BEYOND_SHARE)
        if above_noise > rows_beyond:
            return None
        clipped = rows.moments(center, None, radius, bits=moments.bits)
        moved, noise, n_rows, of_count = step.mean(clipped, privacy_filter, privacy_filter.left.as_budget)
        law = MeanModel(
            self._noise,
            np.full(len(moved), noise * radius),
            np.abs(moved * radius) * of_count / n_rows,
            clipped=min(outside / n_rows, 1.0) if above_noise > 0.0 else 0.0,
            bias_suspected=above_noise > 0.0,
        )
        steps = [{"center": center.tolist(), "radius": radius}]
        return NoisyMean(np.clip(center + radius * moved, *box), n_rows, {"steps": steps, "warnings": ()}, law)

    def _rows_beyond(self, least_rows: float) -> int | None:
        """Return the rows allowed outside a ball; None if a search is not worth its budget."""
        if least_rows < 1.0:
            return None
        shares = self.budget.center_share(least_rows), self.budget.search_share(least_rows)
        searched = sum(shares) + (self.budget.screen_share(least_rows) or 0.0) + BEYOND_SHARE
        result = self.budget.rows_beyond(least_rows) if searched <= _MAX_SEARCH[self.budget.pure] else None
        return result if result is not None and result <= _MAX_OUTSIDE * least_rows else None

    def _step(self, nonzero: int, square: float) -> _CountAndSums:
        return _CountAndSums(self.neighbors, self.shape.n_features, nonzero, square, not self.count_is_public)

    def _at_bounds(self) -> _CountAndSums:
        return self._step(self.shape.max_nonzero, _MEAN_SQUARE)

    @property
    def _noise(self) -> str:
        return "laplace" if self.budget.pure else "gaussian"


@dataclass(frozen=True)
class BoundedSums(MeanMechanism):
    """Noisy count and sums of rows within public bounds; the mean is within its bounds.

    The number of rows (if it is private) and the sums of all columns get discrete Laplace noise under pure ε and discrete
    Gaussian noise under ρ. An (ε, δ) budget is spent on whichever has less noise. On large tables a small share of the
    budget buys a rough center and a histogram of the distances from it. If the rows lie in a ball with less noise than the
    public bounds have, the rest is spent on the sums of rows clipped to that ball.

    **Privacy.** ε, ρ or (ε, δ) by adaptive composition of exact discrete draws, for either relation. A row encoded about the
    origin has at most one nonzero entry for each column of the table, so that its ℓ1 norm is at most the root of their number
    (``docs/evidence/derivations/means.md``).

    Examples
    --------
    >>> shape = MomentShape(4)
    >>> BoundedSums().plan(shape, PrivacyBudget.pure(1.0), "add_remove").budget.pure
    True
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    needs_row_norm: ClassVar[bool] = True
    summary: ClassVar[str] = "noisy count and sums within public bounds, in a smaller ball where that pays"
    source: ClassVar[str] = "Laplace and Gaussian mechanisms (Dwork et al. 2006); the ball is this library's"

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> BoundedSumsPlan:
        plan = self._plan(shape, budget, neighbors)
        if budget.kind is BudgetKind.APPROXIMATE:
            pure = self._plan(shape, PrivacyBudget.pure(budget.epsilon), neighbors)
            assumed = NormalRows(1, np.ones(shape.n_features))
            if pure.expected_errors(assumed)[0] < plan.expected_errors(assumed)[0]:
                return pure
        return plan

    def _plan(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> BoundedSumsPlan:
        whole, d = self.drawable_budget(budget), shape.n_features
        pure = whole.kind is BudgetKind.PURE
        sensitivity = row_sum_l1(neighbors, d) if pure else row_sum_l2(neighbors)
        loss = whole.split(SHARE_FOR_NOISE, 1.0 - SHARE_FOR_NOISE)[0]
        noise = noise_deviation(noise_scale_for(loss, sensitivity.value), pure=pure) * math.sqrt(d)
        return BoundedSumsPlan(self, shape, neighbors, budget, BallBudget(whole, neighbors, d, noise))
