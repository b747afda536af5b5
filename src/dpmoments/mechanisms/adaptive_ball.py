"""Adaptive ball: find privately where the rows are, and clip them to a ball there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.additive import choose_augmentation_about_levels, require_levels
from dpmoments.mechanisms.ball_of_numbers import MEAN_WEIGHT as MEAN_WEIGHT_IN_BALL
from dpmoments.mechanisms.ball_of_numbers import BallOfNumbers
from dpmoments.mechanisms.ball_search import (
    COUNT_SHARE,
    MAX_OUTSIDE,
    SHARE_FOR_NOISE,
    SMALLEST_INDEX,
    BallBudget,
    BallEvidence,
    RowDistances,
    noisy_center,
    possible_draws,
    radius_at,
    radius_indices,
)
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism, Plan, Recorded
from dpmoments.mechanisms.gaussian import Gaussian, GaussianPlan
from dpmoments.mechanisms.lattice_noise import count_error, noisy_count
from dpmoments.mechanisms.level_coordinates import LATTICE_BITS, MEAN_WEIGHT
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace, MatrixLaplacePlan
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.schema.encoding import farthest_distance

MAX_RADIUS = 0.9
"""Largest ball radius; beyond it clipping is not worth its cost."""
_MEAN_SQUARE, _COVARIANCE_SQUARE = 0.3, 0.4
"""Assumed squared norms of rows in a ball about their mean, over radius².

The first is ‖μ‖², the second that of the second moment.
"""
# A ball is accepted if its noisy excess is at most the larger of two limits (`allowed_excess`). Each of the first two
# constants is for a small ball, and for one so large that no row can be outlying.
MAX_CLIPPING_PER_NOISE = 0.5, 3.0
"""Multiples of the noise saved: the first limit."""
_MAX_DEVIATIONS = 3.5, 1.0
"""Noise SDs of the excess: the second limit at radius 0, or for rows near the ball.

A small ball saves most of the noise: chance must hardly ever refuse it.
"""
LENIENT_BELOW = 0.9
"""Radius from which on the second limit is 0."""
_GAUSSIAN_TOLERANCE = 1.05
"""Keep Gaussian noise up to this multiple of the final noise of pure ε.

The search is more accurate with it.
"""
MAX_SPENT = 0.39
"""Max budget share spent before the last step."""


@dataclass(frozen=True)
class AdaptiveBallPlan(Plan):
    """Calibrated :class:`AdaptiveBall`.

    ``guaranteed`` is the joint release at the public bounds with the min final budget.
    """

    mechanism: AdaptiveBall
    budget: BallBudget
    guaranteed: GaussianPlan | MatrixLaplacePlan

    @property
    def arithmetic(self) -> Arithmetic:  # type: ignore[override]
        return self.guaranteed.arithmetic

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise": self.guaranteed.mechanism.name, "lattice_bits": self.guaranteed.bits}

    @property
    def expected_count_error(self) -> float | None:
        return self.guaranteed.expected_count_error

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        require_levels(rows, self.guaranteed.levels)
        moments = rows.moments(bits=self.guaranteed.bits)
        if self.count_is_public:
            n_rows = least_rows = float(moments.count)
        else:
            loss = self.budget.part(COUNT_SHARE)
            n_rows = noisy_count(moments.count, privacy_filter, loss, self.neighbors)
            least_rows = n_rows - count_error(loss)
        rows_beyond = self.budget.rows_beyond(least_rows) if least_rows >= 1.0 else None
        if rows_beyond is None:
            return self._at_the_bounds(moments, privacy_filter, "few-rows-for-ball")
        share = self.budget.center_share(least_rows)
        lower, upper = rows.schema.encoding(mean=True).values_in_ball(*rows.schema.feature_bounds)
        box = lower, upper
        center = noisy_center(moments, privacy_filter, self.budget, share, n_rows, box)
        numbers, budget = self.numbers_alone(center), self.budget
        rows = rows.in_unit_ball()
        if numbers is None:
            distances, farthest = RowDistances.of(rows, center), farthest_distance(center, *box)
        else:
            budget, chosen = self.budget_of_numbers, list(numbers.features)
            rows_beyond = budget.rows_beyond(least_rows)
            if rows_beyond is None:
                return self._at_the_bounds(moments, privacy_filter, "few-rows-for-ball")
            distances = RowDistances.of(rows, center, numbers.features, numbers.unit)
            farthest = farthest_distance(*(ends[chosen] / numbers.unit for ends in (center, *box)))
        screened = budget.screen_share(least_rows)
        if screened is not None:
            allowed = budget.screened_rows(least_rows, rows_beyond)
            if distances.fills_the_bounds(privacy_filter, budget, screened, allowed):
                return self._at_the_bounds(moments, privacy_filter, "rows-fill-bounds")
        index = distances.radius(privacy_filter, budget, budget.search_share(least_rows), rows_beyond)
        radius = radius_at(index)
        if radius >= MAX_RADIUS:
            return self._at_the_bounds(moments, privacy_filter, "rows-fill-bounds")
        evidence = BallEvidence.measured(distances, privacy_filter, budget, index, farthest)
        noise = self.noise_saved_by_point(privacy_filter.left.as_budget, numbers)
        share = 1.0 if numbers is None else numbers.share
        if evidence.excess > allowed_excess(evidence, noise, rows_beyond, share):
            warnings = (Message("no-ball", spent=MAX_SPENT),) if evidence.shows_outlying_rows(rows_beyond) else ()
            return self._at_the_bounds(moments, privacy_filter, "ball-clips-too-much", warnings=warnings)
        share = budget.beyond_share(least_rows)
        evidence = evidence.with_rows(distances, privacy_filter, budget, share, index)
        if evidence.rows_beyond > MAX_OUTSIDE * n_rows:
            return self._at_the_bounds(moments, privacy_filter, "ball-holds-few-rows")
        if numbers is not None:
            return self._with_numbers_in_the_ball(rows, privacy_filter, numbers, center, evidence)
        return self._in_the_ball(rows, privacy_filter, center, evidence)

    @cached_property
    def numbers(self) -> BallOfNumbers | None:
        """Features of a ball of numbers; None if the schema has none."""
        # Also None if the lattice is too coarse.
        bits = self.guaranteed.bits
        found = BallOfNumbers.of(self.guaranteed.levels, radius_at(SMALLEST_INDEX), bits)
        if found is None:
            return None
        least = self.budget.whole.split(1.0 - MAX_SPENT, MAX_SPENT)[0]
        largest = _joint(self._shape_beside(found, MAX_RADIUS), least, self.neighbors, bits=bits)
        return None if largest.levels is None else found

    def numbers_alone(self, center: FloatArray) -> BallOfNumbers | None:
        """Return the ball of numbers if it pays by the noisy center, else None."""
        return self.numbers if self.numbers is not None and self.numbers.pays(center) else None

    @cached_property
    def budget_of_numbers(self) -> BallBudget:
        """Budget of the search for a ball of numbers."""
        whole = self.budget.whole.split(SHARE_FOR_NOISE, 1.0 - SHARE_FOR_NOISE)[0]
        return replace(self.budget, noise_rows=self.noise_saved_by_point(whole, self.numbers))

    def last_step(
        self, left: PrivacyBudget, *, in_ball: bool = False, radius_of_numbers: float | None = None
    ) -> GaussianPlan | MatrixLaplacePlan:
        """Return the joint release with the remaining budget."""
        # It is at the public bounds, in a ball about the mean, or has only its numbers in a ball of a radius of the
        # search.
        shape = self.shape
        if radius_of_numbers is not None:
            assert self.numbers is not None
            shape = self._shape_beside(self.numbers, radius_of_numbers)
        return _joint(shape, left, self.neighbors, bits=self.guaranteed.bits, in_ball=in_ball)

    def _shape_beside(self, numbers: BallOfNumbers, radius: float) -> MomentShape:
        """Return the shape of rows whose numbers are in a ball of this radius."""
        levels = numbers.coordinates(radius, self.guaranteed.bits)
        weight = self.shape.mean_weight * MEAN_WEIGHT_IN_BALL / MEAN_WEIGHT
        return replace(self.shape, levels=levels, mean_weight=weight)

    def noise_saved_by_point(self, left: PrivacyBudget, numbers: BallOfNumbers | None) -> float:
        """Return the noise that a ball of radius 0 would save, for rows of norm 1."""
        # It is the noise about 0, or about the center of levels in proportion to a row's squared norm there.
        if numbers is None:
            return self.noise_about_zero(left)
        return self.last_step(left).expected_error / numbers.levels.row_square

    def noise_about_zero(self, left: PrivacyBudget) -> float:
        """Return the noise at the public bounds about 0, by which a ball is judged."""
        # About the center of levels there is less, but a ball about the mean also has less noise from means.
        about_zero = replace(self.shape, levels=None)
        return _joint(about_zero, left, self.neighbors, bits=self.guaranteed.bits).expected_error

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any]:
        """Return the model's entries from the receipt."""
        # Refuse draws that no run with these diagnostics makes.
        radius, relative, numbers = self._recorded_ball(diagnostics)
        made = tuple(draw.sensitivity.name for draw in receipt.draws)
        in_ball, is_public = radius is not None, self.count_is_public
        if made not in possible_draws(pure=self.budget.pure, count_is_public=is_public, in_ball=in_ball):
            raise InputValueError(Message("draws-of-no-run", names=made))
        if radius is not None and relative is None:
            raise InputValueError(Message("radius-not-possible", radius=radius))
        left = allowance(self.cost, self.loss_unit)
        for draw in receipt.draws[:-1]:
            left = left - draw.loss
        if radius is None:
            return self.last_step(left.as_budget).model.to_dict()
        if numbers is not None:
            return self.last_step(left.as_budget, radius_of_numbers=relative).model.to_dict()
        return self.last_step(left.as_budget, in_ball=True).model.in_ball(radius).to_dict()

    def _recorded_ball(self, diagnostics: Mapping[str, Any]) -> tuple[float | None, float | None, BallOfNumbers | None]:
        """Return the recorded radius, as the search has it, and the ball of numbers."""
        # The latter is None for a ball of whole rows.
        radius = BallEvidence.recorded_radius(diagnostics)
        numbers = self.numbers if radius is not None and diagnostics.get("numbers_alone") is True else None
        unit = 1.0 if numbers is None else numbers.unit
        radii = map(radius_at, radius_indices(self.budget.pure))
        return radius, next((one for one in radii if one * unit == radius), None), numbers

    def bounds_of_run(self, release: Recorded) -> Mapping[str, float]:
        _, radius, numbers = self._recorded_ball(release.diagnostics)
        if radius is None or release.center is None:
            return {}
        ends = release.center, *release.schema.encoding(mean=True).values_in_ball(*release.schema.feature_bounds)
        unit = 1.0
        if numbers is not None:
            unit, chosen = numbers.unit, list(numbers.features)
            ends = tuple(values[chosen] / unit for values in ends)
        evidence = BallEvidence.recorded(
            release.diagnostics, release.receipt, radius, unit, farthest_distance(*ends), pure=self.budget.pure
        )
        model = release.noise_model
        noisy = RunResult(count=release.noisy_count, sum=None, gram=release.noisy_gram, model=model)
        return evidence.diagnostics(noisy, unit)

    def has_center(self, diagnostics: Mapping[str, Any]) -> bool | None:
        return "radius" in diagnostics

    def rules_of_run(self, diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        return BallEvidence.rules(diagnostics)

    def _at_the_bounds(
        self, moments: ExactMoments, privacy_filter: PrivacyFilter, reason: str, **said: tuple[Message, ...]
    ) -> RunResult:
        plan = self.last_step(privacy_filter.left.as_budget)
        diagnostics = {"public_bounds": reason, **said}
        return replace(plan.released(moments, privacy_filter), diagnostics=diagnostics)

    def _in_the_ball(
        self, rows: Rows, privacy_filter: PrivacyFilter, center: FloatArray, evidence: BallEvidence
    ) -> RunResult:
        plan, radius = self.last_step(privacy_filter.left.as_budget, in_ball=True), evidence.radius
        result = plan.released(rows.moments(center, None, radius, bits=plan.bits), privacy_filter)
        assert result.sum is not None
        model = plan.model.in_ball(radius)
        noisy = replace(result, sum=result.sum * radius, gram=result.gram * radius**2, center=center, model=model)
        diagnostics = evidence.diagnostics(self._within_table(noisy, rows))
        return replace(noisy, diagnostics=diagnostics, rules=self.rules_of_run(diagnostics))

    def _within_table(self, noisy: RunResult, rows: Rows) -> RunResult:
        """Return the result with the count that its release states."""
        # From this count `verify` computes the bounds again.
        if noisy.count is None or self.count_is_public or not self.neighbors.table_size_is_public:
            return noisy
        return replace(noisy, count=min(noisy.count, float(rows.table_size())))

    def _with_numbers_in_the_ball(
        self,
        rows: Rows,
        privacy_filter: PrivacyFilter,
        numbers: BallOfNumbers,
        center: FloatArray,
        evidence: BallEvidence,
    ) -> RunResult:
        plan = self.last_step(privacy_filter.left.as_budget, radius_of_numbers=evidence.radius)
        limit, center = numbers.limit(evidence.radius, plan.bits), numbers.center(center)
        moved = rows.moments_of_moved(numbers.features, center[list(numbers.features)], limit, bits=plan.bits)
        noisy = replace(plan.released(moved, privacy_filter), center=center)
        diagnostics = {**evidence.diagnostics(self._within_table(noisy, rows), numbers.unit), "numbers_alone": True}
        return replace(noisy, diagnostics=diagnostics, rules=self.rules_of_run(diagnostics))


@dataclass(frozen=True)
class AdaptiveBall(Mechanism):
    """Noise for rows clipped to a privately found ball.

    On most tables the ball is far smaller than the public bounds.

    The joint release of count, sum and Gram matrix has noise for the longest row that the bounds allow, but real rows are in a
    small ball about their mean. Steps: a count, if it is private; a rough center; the radius of a ball with few rows outside;
    their clipped excess in total; and the joint release about the center with noise for that radius. Each step gets a budget by
    the benefit that earlier answers predict (a table of few rows pays for a count only). If a ball would not pay, the release
    falls back to the public bounds with the remaining budget. If the center shows that levels and Booleans fill their bounds
    about any center, only numbers are clipped, in a ball of their own, and levels are coded about their public center.

    The moments describe the clipped rows: variances of columns with outlying rows are smaller than the table's. The release
    states by how much at most.

    **Privacy.** Under pure ε every step is Laplace noise, the exponential mechanism or matrix Laplace noise, and the ε of the
    steps add up. Under ρ all are exact discrete Gaussian releases; under (ε, δ) these compose as one Gaussian mechanism. In few
    dimensions an (ε, δ) budget is spent as pure ε, and the release says so. The budget of a step depends only on noisy answers
    (``docs/evidence/derivations/adaptive_ball.md``, ``docs/evidence/derivations/composition.md``).

    Parameters
    ----------
    dominant_rows : bool
        True if few rows make up much of a column (wealth, firms): no ball is searched, and no row is clipped.

    Examples
    --------
    >>> plan = AdaptiveBall().plan(MomentShape(10), PrivacyBudget.pure(1.0), "add_remove")
    >>> plan.details["noise"], plan.budget.rows_beyond(5000.0)
    ('matrix-laplace', 105)
    """

    dominant_rows: bool = False

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    summary: ClassVar[str] = "noise for rows clipped to a small, privately found ball; for loose bounds"
    source: ClassVar[str] = "this library (docs/evidence/derivations/adaptive_ball.md)"

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        super().check_support(shape, budget, neighbors)
        if not shape.mean:
            raise InputValueError(Message("ball-needs-mean"))

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        spent = self._as_pure_or_gaussian(shape, budget, neighbors)
        if self.dominant_rows:
            mechanism = MatrixLaplace() if spent.kind is BudgetKind.PURE else Gaussian()
            return mechanism.plan(shape, spent, neighbors)
        whole = self.drawable_budget(spent)
        least = _joint(shape, whole.split(1.0 - MAX_SPENT, MAX_SPENT)[0], neighbors)
        planned = _joint(shape, whole.split(SHARE_FOR_NOISE, 1.0 - SHARE_FOR_NOISE)[0], neighbors, in_ball=True)
        return AdaptiveBallPlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=spent,
            budget=BallBudget(whole, neighbors, shape.n_features, planned.expected_error),
            guaranteed=least,
        )

    def _as_pure_or_gaussian(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PrivacyBudget:
        """Return an (ε, δ) budget as pure ε if that gives less noise."""
        if budget.kind is not BudgetKind.APPROXIMATE:
            return budget
        pure = PrivacyBudget.pure(budget.epsilon)
        by_pure, by_gaussian = (
            _joint(shape, self.drawable_budget(spent), neighbors, in_ball=True).expected_error
            for spent in (pure, budget)
        )
        return budget if by_gaussian <= _GAUSSIAN_TOLERANCE * by_pure else pure


def _joint(
    shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, *, bits: int | None = None, in_ball: bool = False
) -> GaussianPlan | MatrixLaplacePlan:
    """Return the joint release, with matrix Laplace or Gaussian noise by the budget."""
    mechanism = MatrixLaplace() if budget.kind is BudgetKind.PURE else Gaussian()
    if in_ball or (bits is not None and bits < LATTICE_BITS):  # a ball has its own center
        shape = replace(shape, levels=None)
    plan = mechanism.augmented(shape, budget, neighbors, _augmentation(mechanism, shape, neighbors, in_ball))
    return plan if bits is None else replace(plan, bits=bits)


def allowed_excess(evidence: BallEvidence, noise: float, rows_beyond: int, share: float = 1.0) -> float:
    """Return the largest noisy excess with which a ball is accepted."""
    # A ball of radius 0 would save `noise`, which is this `share` of all. Where a ball leaves a fraction q of all noise, an
    # excess in one direction of √(1 − q²) times it takes the whole gain away.
    room = evidence.room_for_outlying_rows
    multiple, deviations = (
        room * small + (1.0 - room) * large for small, large in (MAX_CLIPPING_PER_NOISE, _MAX_DEVIATIONS)
    )
    saved = share * (1.0 - evidence.radius**2)
    usual = max(deviations * evidence.excess_deviation, evidence.excess_of_near_rows(rows_beyond))
    lenience = usual * max(0.0, 1.0 - (evidence.radius / LENIENT_BELOW) ** 2)
    return max(multiple * noise / share * math.sqrt(saved * (2.0 - saved)), lenience)


@lru_cache(maxsize=64)
def _augmentation(
    mechanism: MatrixLaplace | Gaussian, shape: MomentShape, neighbors: Neighbors, in_ball: bool
) -> float:
    """Return the appended constant; it does not depend on the budget, which is divided."""
    return choose_augmentation_about_levels(
        shape,
        neighbors,
        mechanism.noise_sensitivity,
        mean_square=_MEAN_SQUARE if in_ball else 1.0,
        covariance_square=_COVARIANCE_SQUARE if in_ball else 1.0,
    )
