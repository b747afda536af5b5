"""Mean within public bounds.

Noisy count and sums, under ρ of rows clipped to a private ball where that pays.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.adaptive_ball import MAX_RADIUS
from dpmoments.mechanisms.additive import COARSEST_BITS, choose_bits
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
    noise_scale_for,
    noisy_count,
    with_gaussian_noise,
)
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.messages.message import Message
from dpmoments.noise.cells import KNormCells
from dpmoments.noise.models import MeanModel
from dpmoments.noise.rounding import with_rounding
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import KNorm
from dpmoments.privacy.sensitivity import row_sum_l2, sums_in_body
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

_MEAN_SQUARE = 0.3
"""Assumed ‖E[x]‖², for the noise of the count."""
_EDGE_BITS = 10
"""Bits to which the edges of a body are matched to its rows, which fill it but for 2^−10."""
_MOST_UNIT_BITS = 250


@dataclass(frozen=True)
class BoundedSumsPlan(MeanPlan):
    """Calibrated :class:`BoundedSums`."""

    bits: int

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE
    error_needs_rows: ClassVar[bool] = False

    @property
    @abstractmethod
    def sum_deviations(self) -> FloatArray:
        """Noise SDs of the sums at the public bounds, in encoded units, shape (d,)."""

    @property
    @abstractmethod
    def count_deviation(self) -> float:
        """Noise SD of the number of rows, 0 if it is public."""

    @property
    def expected_count_error(self) -> float:
        return self.count_deviation

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        of_count = self.count_deviation * math.sqrt(_MEAN_SQUARE / self.shape.n_features)
        return np.hypot(self.sum_deviations, of_count) / assumed.n_rows


# Under pure ε, count and sums in one draw of K-norm noise.


@dataclass(frozen=True)
class _Body:
    """Box times cross-polytopes that holds every row.

    A private count is one more number in [−1, 1].
    """

    features: tuple[int, ...]  # in the order of the draw, blocks last
    edges: tuple[float, ...]  # for each of them a bound on |x|, or on the sum of |x| over its block
    blocks: tuple[int, ...]
    has_count: bool

    @property
    def dimension(self) -> int:
        """Number of coordinates of the draw."""
        return len(self.features) + self.has_count

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Size of the block of each feature in the order of the draw, 1 for a coordinate of the box."""
        n_singles = len(self.features) - sum(self.blocks)
        return (1,) * n_singles + tuple(size for size in self.blocks for _ in range(size))

    @property
    def deviations(self) -> FloatArray:
        """Noise SDs in encoded units at scale 1, shape (d,)."""
        in_order = np.array(self.edges) * np.sqrt([KNormCells(self.dimension, m).variance for m in self.block_sizes])
        return in_order[np.argsort(self.features)]


def _bodies(shape: MomentShape, has_count: bool) -> Iterator[_Body]:
    """Return the bodies that hold rows of this shape."""
    # A box with a block for each column of levels, and one block of all features.
    ends = np.cumsum([size for size, _ in shape.columns]).tolist()
    columns = [(range(end - size, end), edge) for end, (size, edge) in zip(ends, shape.columns, strict=True)]
    columns.sort(key=lambda column: len(column[0]) > 1)
    features = tuple(feature for column, _ in columns for feature in column)
    edges = tuple(edge for column, edge in columns for _ in column)
    yield _Body(features, edges, tuple(len(column) for column, _ in columns if len(column) > 1), has_count)
    # One entry at most of each column is not 0, so that the ℓ1 norm of a row of the unit ball is √k or less.
    d = shape.n_features
    yield _Body(tuple(range(d)), (math.sqrt(len(columns)),) * d, (d,), has_count)


@dataclass(frozen=True)
class KNormSumsPlan(BoundedSumsPlan):
    """Count and sums in one draw of K-norm noise; the query's unit is 2^−unit_bits of the body."""

    body: _Body
    unit_bits: int

    @property
    def noise_scale(self) -> float:
        """Scale of the noise, in units of the body: Δ/ε rounded up."""
        return noise_scale_for(self.cost, self._sensitivity)

    @property
    def _sensitivity(self) -> float:
        return sums_in_body(self.neighbors, self.body.dimension, self.body.blocks).value

    @property
    def _factors(self) -> list[int]:
        """Units of the query in a lattice unit of each feature, in the order of the draw."""
        # No lattice row exceeds its edge, to which it was rounded, by half a unit or more.
        units = [math.floor(math.ldexp(edge * (1.0 + 2.0**-40), self.bits) + 0.5) for edge in self.body.edges]
        return [(1 << self.unit_bits) // max(unit, 1) for unit in units]

    @property
    def _count_factor(self) -> int:
        """Units of the query in one row."""
        # Under replace-one two kept rows have the same count, and a row that one table drops leaves half the body to the rest.
        return 1 << (self.unit_bits + (self.neighbors is Neighbors.REPLACE_ONE))

    @property
    def sum_deviations(self) -> FloatArray:
        # Edges as they are in units of the query.
        edges = math.ldexp(1.0, self.unit_bits - self.bits) / np.array(self._factors, dtype=np.float64)
        return self.noise_scale * replace(self.body, edges=tuple(edges.tolist())).deviations

    @property
    def count_deviation(self) -> float:
        in_rows = math.ldexp(self.noise_scale, self.unit_bits) / self._count_factor
        return in_rows * math.sqrt(KNormCells(self.body.dimension).variance) if self.body.has_count else 0.0

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        sums, noisy_rows = self.noisy_sums(rows.moments(bits=self.bits), privacy_filter)
        n_rows = max(1.0, float(round(noisy_rows)))
        mean = np.clip(sums / n_rows, *rows.schema.encoding(mean=True).values_in_ball(*rows.schema.feature_bounds))
        of_sums = with_rounding(self.sum_deviations / n_rows, 0.5 * 2.0**-self.bits)
        deviations = of_sums, np.abs(mean) * self.count_deviation / n_rows
        return NoisyMean(mean, n_rows, {"warnings": ()}, self.noise_of_mean(*deviations))

    def noisy_sums(self, moments: ExactMoments, privacy_filter: PrivacyFilter) -> tuple[FloatArray, float]:
        """Return the sums in encoded units, shape (d,), and the number of rows."""
        sums, factors = moments.sum.tolist(), self._factors
        query = [factor * sums[feature] for factor, feature in zip(factors, self.body.features, strict=True)]
        if self.body.has_count:
            query.insert(0, moments.count * self._count_factor)
        law = KNorm(math.ldexp(self.noise_scale, self.unit_bits), self.body.blocks)
        sensitivity = sums_in_body(self.neighbors, len(query), self.body.blocks).in_units(2.0**self.unit_bits)
        what = "sum-and-count" if self.body.has_count else "sum"
        noisy = privacy_filter.draw(what, law, np.array(query, dtype=object), sensitivity).tolist()
        n_rows = noisy.pop(0) / self._count_factor if self.body.has_count else float(moments.count)
        in_order = np.array([entry / factor for entry, factor in zip(noisy, factors, strict=True)])
        return np.ldexp(in_order[np.argsort(self.body.features)], -self.bits), n_rows

    def noise_of_mean(self, deviations: FloatArray, count_deviations: FloatArray) -> MeanModel:
        """Return the noise distribution of a mean from the parts of its SDs."""
        sizes = tuple(np.array(self.body.block_sizes)[np.argsort(self.body.features)].tolist())
        return MeanModel("k-norm", deviations, count_deviations, dimension=self.body.dimension, block_sizes=sizes)


# Under ρ, count and sums one after the other with Gaussian noise, of rows clipped to a private ball where that pays.

_MIN_SQUARE = 1e-4
"""Min of it for the budget share of the count."""
_MIN_SHARE = 0.005
"""Min budget share of a sum of rows."""
_MAX_SEARCH = 0.3
"""Max share of ρ for the search for a ball."""
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
    """Noisy count and sums of rows of mean square norm ``square``, with Gaussian noise."""

    neighbors: Neighbors
    n_features: int
    square: float
    private_count: bool

    def of_sums(self, loss: PrivacyBudget) -> float:
        """Return the noise SD of an entry of the sums."""
        return noise_scale_for(loss, row_sum_l2(self.neighbors).value)

    def parts(self, loss: PrivacyBudget) -> tuple[PrivacyBudget | None, PrivacyBudget]:
        """Split a budget between a private count and the sums for the least error of the mean."""
        if not self.private_count:
            return None, loss
        sensitivity = row_sum_l2(self.neighbors).value
        for_count, rest = loss.split(math.sqrt(max(self.square, _MIN_SQUARE) / self.n_features) / sensitivity, 1.0)
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
            n_rows = noisy_count(moments.count, privacy_filter, for_count, self.neighbors)
            of_count = count_error(for_count)
        of_row, scale = row_sum_l2(self.neighbors), self.of_sums(rest)
        sums = with_gaussian_noise(privacy_filter, "sum", moments.sum, of_row, scale, bits=moments.bits)
        noise = float(with_rounding(scale / n_rows, 0.5 * 2.0**-moments.bits))
        return sums / n_rows, noise, n_rows, of_count


@dataclass(frozen=True)
class GaussianSumsPlan(BoundedSumsPlan):
    """Count, if it is private, and sums with Gaussian noise, in a smaller ball where that pays."""

    budget: BallBudget

    @property
    def sum_deviations(self) -> FloatArray:
        step = self._at_bounds()
        return np.full(self.shape.n_features, step.of_sums(step.parts(self.budget.whole)[1]))

    @property
    def count_deviation(self) -> float:
        for_count, _ = self._at_bounds().parts(self.budget.whole)
        return 0.0 if for_count is None else count_error(for_count)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        moments = rows.moments(bits=self.bits)
        lower, upper = rows.schema.encoding(mean=True).values_in_ball(*rows.schema.feature_bounds)
        box = lower, upper
        in_ball = self._in_ball(rows, moments, privacy_filter, box) if self.shape.numeric_share > 0.0 else None
        if in_ball is not None:
            return in_ball
        mean, noise, n_rows, of_count = self._at_bounds().mean(moments, privacy_filter, privacy_filter.left.as_budget)
        mean = np.clip(mean, *box)
        law = MeanModel("gaussian", np.full(len(mean), noise), np.abs(mean) * of_count / n_rows)
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
        step, left = self._step(off_center), privacy_filter.left.as_budget
        if step.error(left) * radius >= _PAYS * self._at_bounds().error(left):
            return None
        outside = distances.noisy_rows_beyond(privacy_filter, self.budget, BEYOND_SHARE, index)
        above_noise = outside - _CLEAR * self.budget.deviation(BEYOND_SHARE)
        if above_noise > rows_beyond:
            return None
        clipped = rows.moments(center, None, radius, bits=moments.bits)
        moved, noise, n_rows, of_count = step.mean(clipped, privacy_filter, privacy_filter.left.as_budget)
        law = MeanModel(
            "gaussian",
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
        result = self.budget.rows_beyond(least_rows) if searched <= _MAX_SEARCH else None
        return result if result is not None and result <= _MAX_OUTSIDE * least_rows else None

    def _at_bounds(self) -> _CountAndSums:
        return self._step(_MEAN_SQUARE)

    def _step(self, square: float) -> _CountAndSums:
        return _CountAndSums(self.neighbors, self.shape.n_features, square, not self.count_is_public)


@dataclass(frozen=True)
class BoundedSums(MeanMechanism):
    """Noisy count and sums of rows within public bounds; the mean is within its bounds.

    Under pure ε the number of rows (if it is private) and the sums get one draw of K-norm noise (Hardt & Talwar 2010) on a box of
    the count, numbers and Booleans times a cross-polytope for each column of levels. Each column has the noise of its own bounds,
    so weights of columns make no difference.

    Under ρ they get discrete Gaussian noise. On large tables a small share of the budget buys a rough center and a histogram of
    the distances from it. If the rows lie in a ball with less noise than the public bounds have, the rest is spent on the sums of
    rows clipped to that ball. An (ε, δ) budget is spent on whichever has less noise at the bounds.

    **Privacy.** ε, ρ or (ε, δ) by adaptive composition of exact discrete draws, for either relation
    (``docs/evidence/derivations/means.md``).

    Examples
    --------
    >>> plan = BoundedSums().plan(MomentShape(2), PrivacyBudget.pure(1.0), "add_remove")
    >>> plan.sum_deviations.round(3).tolist()  # √(4·5/3): three coordinates, one of them the count
    [2.582, 2.582]
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    needs_row_norm: ClassVar[bool] = True
    summary: ClassVar[str] = "noisy count and sums within public bounds, under ρ in a smaller ball if that pays"
    source: ClassVar[str] = "K-norm mechanism (Hardt & Talwar 2010), Gaussian mechanism (Dwork et al. 2006)"

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> BoundedSumsPlan:
        plans = list[BoundedSumsPlan]()
        if budget.kind is not BudgetKind.ZCDP:
            plans.append(self._k_norm(shape, PrivacyBudget.pure(budget.epsilon), neighbors))
        if budget.kind is not BudgetKind.PURE:
            plans.append(self._gaussian(shape, budget, neighbors))
        one_row = NormalRows(1, np.ones(shape.n_features))
        return min(plans, key=lambda plan: _error_in_spreads(plan.expected_errors(one_row), shape))

    def _k_norm(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> KNormSumsPlan:
        bodies = _bodies(shape, not shape.count_is_public(neighbors))
        body = min(bodies, key=lambda body: _error_in_spreads(body.deviations, shape))
        scale = noise_scale_for(budget, sums_in_body(neighbors, body.dimension, body.blocks).value)
        # The finest unit in which the noise can be drawn, but for a factor of 2.
        unit_bits = min(math.frexp(2.0**52 / (body.dimension + 1) / scale)[1] - 2, _MOST_UNIT_BITS)
        bits = min(choose_bits(scale, shape.n_features), unit_bits - _EDGE_BITS)
        if bits < COARSEST_BITS:
            raise InputValueError(Message("budget-too-small", noise=scale))
        return KNormSumsPlan(self, shape, neighbors, budget, bits, body, unit_bits)

    def _gaussian(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> GaussianSumsPlan:
        whole, d, of_row = self.drawable_budget(budget), shape.n_features, row_sum_l2(neighbors).value
        for_noise = whole.split(SHARE_FOR_NOISE, 1.0 - SHARE_FOR_NOISE)[0]
        of_search = BallBudget(whole, neighbors, d, noise_scale_for(for_noise, of_row) * math.sqrt(d))
        bits = choose_bits(noise_scale_for(of_search.part(_MIN_SHARE), of_row), d)
        return GaussianSumsPlan(self, shape, neighbors, budget, bits, of_search)


def _error_in_spreads(errors: FloatArray, shape: MomentShape) -> float:
    """Return the RMS of errors of all features in units of assumed spreads."""
    # That of a feature is its bound, or 1/√m of it for one of m levels.
    spreads = [edge / math.sqrt(size) for size, edge in shape.columns for _ in range(size)]
    return float(np.sqrt(np.mean(np.square(errors / spreads))))
