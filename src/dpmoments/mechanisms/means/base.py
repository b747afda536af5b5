"""Estimators of means: their contract, and sums within public bounds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.additive import COARSEST_BITS, budget_too_small, choose_bits
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, CalibratedPlan, ConfiguredMechanism
from dpmoments.mechanisms.lattice_noise import (
    count_error,
    noise_scale_for,
    noisy_count,
    split_for_count,
    with_gaussian_noise,
)
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.moments.cells import KNormCells
from dpmoments.moments.law import with_rounding
from dpmoments.moments.models import MeanModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import KNorm
from dpmoments.privacy.sensitivity import row_sum_l2, sums_in_body
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

_MIN, _MAX = 1e-60, 1e60
"""Limits of public radii and scales: the squares of their ratios are finite."""


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """Result of a run, in encoded units."""

    mean: FloatArray  # (d,)
    count: float  # exact if the number of rows is public, else noisy
    # other private results of the run; covered by the plan's cost
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    # noise distribution of the mean, from public numbers and noisy results; None without a closed form
    noise: MeanModel | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NormalRows:
    """Rows that a forecast assumes: independent normal coordinates, SDs of shape (d,)."""

    n_rows: int
    standard_deviations: FloatArray


@dataclass(frozen=True)
class MeanPlan(CalibratedPlan[NoisyMean]):
    """Calibrated :class:`MeanMechanism`."""

    mechanism: MeanMechanism

    error_needs_rows: ClassVar[bool] = True
    """True if :meth:`expected_errors` depends on more of the assumed rows than their number."""

    def expected_errors(self, assumed: NormalRows) -> FloatArray | None:
        """Return the RMS noise of every coordinate on such rows, shape (d,), or None if unknown."""
        return None

    def count_of(self, rows: Rows, privacy_filter: PrivacyFilter) -> float:
        """Return the number of rows to divide by."""
        # Exact if public, else paid for by `count_loss`.
        n_rows = self.released_count(rows.count(), privacy_filter)
        if n_rows is None:
            raise AssertionError("no draw was planned for the private number of rows: a defect, please report it")
        return n_rows


@dataclass(frozen=True)
class MeanMechanism(ConfiguredMechanism[MeanPlan]):
    """Frozen options of one published estimator of means."""

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    needs_row_norm: ClassVar[bool] = False
    noun: ClassVar[str] = "estimator of means"

    def budget_advice(self) -> str:
        advice = super().budget_advice()
        return advice if BudgetKind.PURE in self.budget_kinds else f"{advice}; or leave the mechanism out"

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        super().check_support(shape, budget, neighbors)
        if shape.n_rows == 0:
            raise InputValueError("a table that is publicly empty has no mean")

    def divide_for_count(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors
    ) -> tuple[PrivacyBudget | None, PrivacyBudget]:
        """Return the budgets of the number of rows (None if it is public) and of the rest."""
        whole = self.drawable_budget(budget)
        return (None, whole) if shape.count_is_public(neighbors) else split_for_count(whole)

    def require_positive(self, *names: str) -> None:
        """Raise unless the named options are positive numbers with finite squares, or None."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if not (not isinstance(value, bool) and isinstance(value, int | float) and 0.0 < value < math.inf):
                raise out_of_range(name, value, "a positive finite number")
            if not _MIN <= value <= _MAX:
                raise InputValueError(
                    f"{name}={shown(value)} must be in [{_MIN:g}, {_MAX:g}]: give the table in other units"
                )

    def known_radius(self, radius: float | None, shape: MomentShape) -> float:
        """Return the public bound on the mean: as given, or 1 for rows in the unit ball."""
        if radius is not None:
            return radius
        if shape.row_norm is None:
            raise InputValueError(
                f"means by '{self.name}' need a public bound on the mean: give radius, or use variance-aware"
            )
        return shape.row_norm

    def known_scale(self, scale: float | None, shape: MomentShape) -> float:
        """Return the public bound on an SD: as given, or 1/√d for rows in the unit ball."""
        if scale is not None:
            return scale
        if shape.row_norm is None:
            raise InputValueError(
                f"means by '{self.name}' need a public bound on the standard deviation: give scale, or use "
                "variance-aware"
            )
        return shape.row_norm / math.sqrt(shape.n_features)


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
    def expected_count_error(self) -> float:
        """Noise SD of the number of rows, 0 if it is public."""

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        of_count = self.expected_count_error * math.sqrt(_MEAN_SQUARE / self.shape.n_features)
        return np.hypot(self.sum_deviations, of_count) / assumed.n_rows


# Under pure ε, count and sums in one draw of K-norm noise.


@dataclass(frozen=True)
class _Body:
    """Box times cross-polytopes that holds every row, and a private count in [−1, 1]."""

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


@dataclass(frozen=True)
class KNormSumsPlan(BoundedSumsPlan):
    """Count and sums in one draw of K-norm noise; the query's unit is 2^−unit_bits of the body."""

    body: _Body
    unit_bits: int

    @property
    def noise_scale(self) -> float:
        """Scale of the noise, in units of the body: Δ/ε rounded up."""
        return noise_scale_for(self.cost, sums_in_body(self.neighbors, self.body.dimension, self.body.blocks).value)

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
    def expected_count_error(self) -> float:
        in_rows = math.ldexp(self.noise_scale, self.unit_bits) / self._count_factor
        return in_rows * math.sqrt(KNormCells(self.body.dimension).variance) if self.body.has_count else 0.0

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        sums, noisy_rows = self.noisy_sums(rows.moments(bits=self.bits), privacy_filter)
        n_rows = max(1.0, float(round(noisy_rows)))
        mean = np.clip(sums / n_rows, *rows.schema.encoding(mean=True).values_in_ball(*rows.schema.feature_bounds))
        of_sums = with_rounding(self.sum_deviations / n_rows, 0.5 * 2.0**-self.bits)
        deviations = of_sums, np.abs(mean) * self.expected_count_error / n_rows
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


@dataclass(frozen=True)
class GaussianSumsPlan(BoundedSumsPlan):
    """Private count and sums with Gaussian noise, the budget split for least error of the mean."""

    budget: PrivacyBudget  # what the draws may lose together

    @property
    def _parts(self) -> tuple[PrivacyBudget | None, PrivacyBudget]:
        """Budgets of a private count and of the sums."""
        if self.count_is_public:
            return None, self.budget
        share = math.sqrt(_MEAN_SQUARE / self.shape.n_features) / row_sum_l2(self.neighbors).value
        for_count, for_sums = self.budget.split(share, 1.0)
        return for_count, for_sums

    @property
    def _scale(self) -> float:
        return noise_scale_for(self._parts[1], row_sum_l2(self.neighbors).value)

    @property
    def sum_deviations(self) -> FloatArray:
        return np.full(self.shape.n_features, self._scale)

    @property
    def expected_count_error(self) -> float:
        for_count, _ = self._parts
        return 0.0 if for_count is None else count_error(for_count)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        moments, (for_count, _) = rows.moments(bits=self.bits), self._parts
        n_rows = float(moments.count)
        if for_count is not None:
            n_rows = noisy_count(moments.count, privacy_filter, for_count, self.neighbors)
        of_row = row_sum_l2(self.neighbors)
        sums = with_gaussian_noise(privacy_filter, "sum", moments.sum, of_row, self._scale, bits=self.bits)
        mean = np.clip(sums / n_rows, *rows.schema.encoding(mean=True).values_in_ball(*rows.schema.feature_bounds))
        noise = with_rounding(self.sum_deviations / n_rows, 0.5 * 2.0**-self.bits)
        law = MeanModel("gaussian", noise, np.abs(mean) * self.expected_count_error / n_rows)
        return NoisyMean(mean, n_rows, {"warnings": ()}, law)


@dataclass(frozen=True)
class BoundedSums(MeanMechanism):
    """Noisy count and sums of rows within public bounds; the mean is within its bounds.

    Under pure ε the number of rows (if it is private) and the sums get one draw of K-norm noise (Hardt & Talwar 2010) on a box of
    the count, numbers and Booleans times a cross-polytope for each column of levels. Each column has the noise of its own bounds,
    so weights of columns make no difference.

    Under ρ they get discrete Gaussian noise. An (ε, δ) budget is spent on whichever of the two has less noise.

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
    summary: ClassVar[str] = "noisy count and sums within public bounds"
    source: ClassVar[str] = "K-norm mechanism (Hardt & Talwar 2010), Gaussian mechanism (Dwork et al. 2006)"

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> BoundedSumsPlan:
        plans = list[BoundedSumsPlan]()
        if budget.kind is not BudgetKind.ZCDP:
            pure, d, has_count = (
                PrivacyBudget.pure(budget.epsilon),
                shape.n_features,
                not shape.count_is_public(neighbors),
            )
            # A box with a block for each column of levels.
            ends = np.cumsum([size for size, _ in shape.columns]).tolist()
            columns = [(range(end - size, end), edge) for end, (size, edge) in zip(ends, shape.columns, strict=True)]
            columns.sort(key=lambda column: len(column[0]) > 1)
            features = tuple(feature for column, _ in columns for feature in column)
            edges = tuple(edge for column, edge in columns for _ in column)
            blocks = tuple(len(column) for column, _ in columns if len(column) > 1)
            box = _Body(features, edges, blocks, has_count)
            # One entry at most of each column is not 0, so that the ℓ1 norm of a row of the unit ball is √k or less.
            one_block = _Body(tuple(range(d)), (math.sqrt(len(columns)),) * d, (d,), has_count)
            body = min(box, one_block, key=lambda body: _error_in_spreads(body.deviations, shape))

            scale = noise_scale_for(pure, sums_in_body(neighbors, body.dimension, body.blocks).value)
            # The finest unit in which the noise can be drawn, but for a factor of 2.
            unit_bits = min(math.frexp(2.0**52 / (body.dimension + 1) / scale)[1] - 2, _MOST_UNIT_BITS)
            bits = min(choose_bits(scale, d), unit_bits - _EDGE_BITS)
            if bits < COARSEST_BITS:
                raise budget_too_small(scale)
            plans.append(KNormSumsPlan(self, shape, neighbors, pure, bits, body, unit_bits))
        if budget.kind is not BudgetKind.PURE:
            plan = GaussianSumsPlan(self, shape, neighbors, budget, 0, self.drawable_budget(budget))
            plans.append(replace(plan, bits=choose_bits(float(plan.sum_deviations[0]), shape.n_features)))
        one_row = NormalRows(1, np.ones(shape.n_features))
        return min(plans, key=lambda plan: _error_in_spreads(plan.expected_errors(one_row), shape))


def _error_in_spreads(errors: FloatArray, shape: MomentShape) -> float:
    """Return the RMS of errors of all features in units of assumed spreads."""
    # That of a feature is its bound, or 1/√m of it for one of m levels.
    spreads = [edge / math.sqrt(size) for size, edge in shape.columns for _ in range(size)]
    return float(np.sqrt(np.mean(np.square(errors / spreads))))
