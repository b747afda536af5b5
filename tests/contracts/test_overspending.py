"""Overspends planted in the library's own code, one at a time: the privacy filter refuses every one before the draw is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from contracts.cases import run_plan
from dpmoments.mechanisms import Isotropic, MatrixLaplace, lattice_noise
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.registry import make_mean_mechanism, make_mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.mechanisms import (
    additive_wishart,
    coinpress,
    coordinatewise,
    eigenvectors,
    log_scale_histogram,
    wishart_sampling,
)
from dpmoments.papers.mechanisms import variance_aware as variance_aware_module
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.laws import MatrixLaplaceDraw
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import count_l1, gram_frobenius, gram_nuclear, rank_score
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from support.said import refused

PURE, ZCDP, APPROXIMATE = PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(1.0, 1e-6)
ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
Patch = pytest.MonkeyPatch


def noise_of_the_count_halved(patch: Patch) -> None:
    honest = lattice_noise.count_scale
    patch.setattr(lattice_noise, "count_scale", lambda loss: honest(loss) / 2.0)


def a_count_not_paid_for(patch: Patch) -> None:
    def count_first(rows: Any, privacy_filter: Any, rho: float, public_rows: Any) -> tuple[float, float]:
        del public_rows
        return lattice_noise.noisy_count(
            rows.count(), privacy_filter, PrivacyBudget.zcdp(lattice_noise.COUNT_SHARE * rho), rows.neighbors
        ), rho

    patch.setattr(coinpress, "count_first", count_first)


def a_histogram_not_paid_for(patch: Patch) -> None:
    class Whole(PrivacyBudget):
        def split(self, *shares: float) -> tuple[PrivacyBudget, ...]:
            parts = super().split(*shares)
            return (parts[0], self) if shares[0] == coinpress._MAX_HISTOGRAM_SHARE else parts

    patch.setattr(coinpress, "PrivacyBudget", Whole)


def a_loss_spent_twice(patch: Patch) -> None:
    honest = eigenvectors.IterativeEigenvectorsPlan._noisy_eigenvalues

    def twice(self: Any, *arguments: Any) -> Any:
        honest(self, *arguments)
        return honest(self, *arguments)

    patch.setattr(eigenvectors.IterativeEigenvectorsPlan, "_noisy_eigenvalues", twice)


def a_quantile_that_spends_both_shares(patch: Patch) -> None:
    honest = coordinatewise.Coordinate.quantile

    def greedy(self: Any, loss: PrivacyBudget, **options: Any) -> float:
        double = (
            PrivacyBudget.pure(2 * loss.epsilon) if loss.kind is BudgetKind.PURE else PrivacyBudget.zcdp(2 * loss.rho)
        )
        return honest(self, double, **options)

    patch.setattr(coordinatewise.Coordinate, "quantile", greedy)


def zoom_levels_not_split(patch: Patch) -> None:
    class Unsplit(PrivacyBudget):
        def split(self, *shares: float) -> tuple[PrivacyBudget, ...]:
            return (self,) * len(shares)

    honest = coordinatewise.Coordinate.search

    def search(self: Any, ends: Any, width: float, loss: PrivacyBudget, *arguments: Any) -> float:
        return honest(self, ends, width, Unsplit(loss.kind, rho=loss.rho), *arguments)

    patch.setattr(coordinatewise.Coordinate, "search", search)


def calibrated_otherwise(patch: Patch, kind: type, change: Callable[[Any], Any]) -> None:
    honest: Any = kind.calibrate  # type: ignore[attr-defined]
    patch.setattr(kind, "calibrate", lambda *given: change(honest(*given)))


def additive_wishart_without_the_appended_constant(patch: Patch) -> None:
    """The scale of B² = 1 where rows (w, x) have B² = 1 + w²."""

    def scaled(plan: Any) -> Any:
        return replace(plan, noise=replace(plan.noise, scale=plan.noise.scale / (1.0 + plan.augmentation**2)))

    calibrated_otherwise(patch, additive_wishart.AdditiveWishart, scaled)


def padding_without_the_appended_constant(patch: Patch) -> None:
    def padded(plan: Any) -> Any:
        return replace(plan, padding=plan.padding / (1.0 + plan.augmentation**2))

    calibrated_otherwise(patch, wishart_sampling.PaddedGram, padded)


def less_raised_than_relied_upon(patch: Patch) -> None:
    honest = wishart_sampling.RaisedWishartSampling
    patch.setattr(
        wishart_sampling,
        "RaisedWishartSampling",
        lambda degrees, padding, raised, inverse: honest(degrees, padding, 0.9 * raised, inverse),
    )


def an_eigenvalue_bound_without_its_allowance(patch: Patch) -> None:
    honest = wishart_sampling.EigenvalueBound
    patch.setattr(wishart_sampling, "EigenvalueBound", lambda scale, allowance: honest(scale, 0.9 * allowance))


def a_floor_that_was_not_drawn(patch: Patch) -> None:
    honest = wishart_sampling.PaddedGramPlan._eigenvalue_bound
    patch.setattr(wishart_sampling.PaddedGramPlan, "_eigenvalue_bound", lambda *given: honest(*given) + 1.0)


def directions_too_hot(patch: Patch) -> None:
    honest = eigenvectors.temperature
    patch.setattr(eigenvectors, "temperature", lambda *arguments: 2.0 * honest(*arguments))


def choices_too_sharp(patch: Patch) -> None:
    honest = math.sqrt
    patch.setattr("dpmoments.papers.mechanisms.log_scale_histogram.math.sqrt", lambda value: 1.5 * honest(value))


def a_clipped_mean_of_the_wrong_neighbor(patch: Patch) -> None:
    from dpmoments.papers.mechanisms import mapped_rows

    honest = mapped_rows.row_sum_l2
    patch.setattr(mapped_rows, "row_sum_l2", lambda _: honest(ADD_REMOVE))


def half_of_all_gaussian_noise(patch: Patch) -> None:
    honest = lattice_noise.DiscreteGaussian

    def half(scale: float, off_diagonal_scale: float | None) -> Any:
        return honest(scale / 2.0, None if off_diagonal_scale is None else off_diagonal_scale / 2.0)

    patch.setattr(lattice_noise, "DiscreteGaussian", half)


def too_little_noise_off_the_diagonal(patch: Patch) -> None:
    honest = lattice_noise.DiscreteGaussian
    patch.setattr(lattice_noise, "DiscreteGaussian", lambda scale, off: honest(scale, off and off * 0.9))


def a_remainder_counted_before_the_draw(patch: Patch) -> None:
    """The search of variance-aware believes that everything it had at first is left."""
    patch.setattr(variance_aware_module._Run, "left", property(lambda self: self.total))


def sums_at_half_their_noise(patch: Patch) -> None:
    honest = log_scale_histogram.noise_scale_for
    patch.setattr(log_scale_histogram, "noise_scale_for", lambda loss, moved: honest(loss, moved) / 2.0)


def sums_of_the_wrong_neighbor(patch: Patch) -> None:
    honest = log_scale_histogram.sum_and_square_l1
    patch.setattr(log_scale_histogram, "sum_and_square_l1", lambda _, w: honest(ADD_REMOVE, w))


def a_remainder_counted_before_the_clip(patch: Patch) -> None:
    """The sums take what was left before the clipped rows were counted."""

    def clipped(self: Any, loss: PrivacyBudget, half_width: float) -> Any:
        result, left = honest(self, loss, half_width), self.queries.privacy_filter.left.as_budget
        more = PrivacyBudget.pure(left.epsilon + 0.5 * loss.epsilon)
        patch.setattr(PrivacyFilter, "left", type("Left", (), {"as_budget": more}))
        return result

    honest = log_scale_histogram.LocatedColumn.clipped
    patch.setattr(log_scale_histogram.LocatedColumn, "clipped", clipped)


def levels_of_a_search_at_twenty_times_their_share(patch: Patch) -> None:
    honest = log_scale_histogram._at_most

    def at_most(whole: PrivacyBudget, needed: float, share: float) -> PrivacyBudget:
        part = honest(whole, needed, share)
        return PrivacyBudget.pure(20.0 * part.epsilon)

    patch.setattr(log_scale_histogram, "_at_most", at_most)


of, of_means = make_mechanism, make_mean_mechanism
ADAPTIVE = of("johnson-lindenstrauss", adaptive=True)
RAISED = of("johnson-lindenstrauss", smallest_eigenvalue=50.0)
MUCH = PrivacyBudget.approximate(50.0, 0.1)
OVERSPENDS: list[tuple[Callable[[Patch], None], Any, PrivacyBudget, Neighbors, bool]] = [
    (noise_of_the_count_halved, of("coinpress"), ZCDP, ADD_REMOVE, True),
    (a_count_not_paid_for, of("coinpress"), APPROXIMATE, ADD_REMOVE, True),
    (a_histogram_not_paid_for, of("coinpress"), ZCDP, REPLACE_ONE, True),
    (a_loss_spent_twice, of("iterative-eigenvectors"), PURE, ADD_REMOVE, False),
    (a_quantile_that_spends_both_shares, of_means("symq"), PURE, REPLACE_ONE, True),
    (zoom_levels_not_split, of_means("karwa-vadhan", scale=1e-9), ZCDP, REPLACE_ONE, True),
    (additive_wishart_without_the_appended_constant, of("additive-wishart"), APPROXIMATE, ADD_REMOVE, True),
    (padding_without_the_appended_constant, of("johnson-lindenstrauss"), APPROXIMATE, REPLACE_ONE, True),
    (padding_without_the_appended_constant, of("inverse-wishart"), APPROXIMATE, ADD_REMOVE, True),
    (an_eigenvalue_bound_without_its_allowance, ADAPTIVE, APPROXIMATE, ADD_REMOVE, True),
    (a_floor_that_was_not_drawn, of("inverse-wishart", adaptive=True), MUCH, ADD_REMOVE, False),
    (less_raised_than_relied_upon, RAISED, APPROXIMATE, ADD_REMOVE, True),
    (directions_too_hot, of("iterative-eigenvectors"), ZCDP, REPLACE_ONE, False),
    (directions_too_hot, of("kapralov-talwar"), PURE, ADD_REMOVE, False),
    (choices_too_sharp, of_means("symq"), ZCDP, REPLACE_ONE, True),
    (a_clipped_mean_of_the_wrong_neighbor, of_means("coinpress"), ZCDP, REPLACE_ONE, True),
    (half_of_all_gaussian_noise, of("gaussian"), APPROXIMATE, ADD_REMOVE, True),
    (half_of_all_gaussian_noise, of("private-preconditioning"), ZCDP, ADD_REMOVE, False),
    (too_little_noise_off_the_diagonal, of("gaussian"), ZCDP, REPLACE_ONE, True),
    (a_remainder_counted_before_the_draw, of_means("variance-aware"), ZCDP, REPLACE_ONE, True),
    (sums_at_half_their_noise, of("log-scale-histogram"), ZCDP, ADD_REMOVE, True),
    (sums_of_the_wrong_neighbor, of("log-scale-histogram"), PURE, REPLACE_ONE, True),
    (a_remainder_counted_before_the_clip, of("log-scale-histogram"), APPROXIMATE, ADD_REMOVE, False),
    (levels_of_a_search_at_twenty_times_their_share, of("log-scale-histogram"), PURE, REPLACE_ONE, True),
    (levels_of_a_search_at_twenty_times_their_share, of_means("log-scale-histogram"), PURE, ADD_REMOVE, True),
]


def run(mechanism: Any, budget: PrivacyBudget, neighbors: Neighbors, mean: bool) -> Any:
    d = mechanism.most_features or 3
    table = np.random.default_rng(3).uniform(-0.5, 0.5, (300, 3))[:, :d]
    shape = MomentShape(d, n_rows=300 if neighbors.table_size_is_public else None, mean=mean)
    plan = mechanism.plan(shape, budget, neighbors)
    return run_plan(plan, Rows.of(table, Schema.unit_ball(d), neighbors=neighbors), insecure_generator(0))


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(
    ("plant", "mechanism", "budget", "neighbors", "mean"),
    OVERSPENDS,
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_an_overspend_is_refused(
    plant: Callable[[Patch], None],
    mechanism: Any,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    mean: bool,
    monkeypatch: Patch,
) -> None:
    run(mechanism, budget, neighbors, mean)  # as it is, nothing is refused
    plant(monkeypatch)
    with pytest.raises(PrivacyFilterError):
        run(mechanism, budget, neighbors, mean)


@dataclass(frozen=True)
class DoublePlan(Plan):
    """What a newcomer writes who takes ε for each of two parts."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        d, bits = rows.n_features, 10
        moments = rows.moments(bits=bits)
        rate, unit = self.cost.epsilon / gram_nuclear(self.neighbors, d).value, 4.0**bits
        gram = privacy_filter.draw(
            "Gram matrix", MatrixLaplaceDraw(rate, bits), moments.gram, gram_nuclear(self.neighbors, d).in_units(unit)
        )
        noisy_count = lattice_noise.with_noise(
            privacy_filter,
            "count",
            [moments.count],
            count_l1(self.neighbors),
            1.0 / self.cost.epsilon,
            bits=0,
            pure=True,
        )
        return RunResult(float(noisy_count[0]), None, np.asarray(gram, dtype=np.float64) / unit)


@dataclass(frozen=True)
class Double(Mechanism):
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE})

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        return DoublePlan(self, shape, neighbors, budget)


def test_a_new_mechanism_that_spends_twice_its_epsilon_is_refused() -> None:
    with refused("would spend more than the plan states", PrivacyFilterError, query="count"):
        run(Double(), PURE, ADD_REMOVE, mean=False)


class Noting:
    """Stands for a privacy filter: keeps the law that it is asked for."""

    def draw(self, what: str, law: Any, query: Any, sensitivity: Any) -> int:
        del what, query, sensitivity
        self.law = law
        return 0


@pytest.mark.long(sets=None)
def test_no_noise_is_a_last_place_too_small() -> None:
    """In exact fractions, over budgets of all sizes; and none is larger by more than a few last places."""
    rng, widest = np.random.default_rng(4), 1 + Fraction(1, 2**48)
    shapes = [MomentShape(d, n_rows=100, mean=mean) for d in (2, 3, 10) for mean in (True, False)]
    for amount in map(float, np.exp(rng.uniform(math.log(1e-3), math.log(50.0), size=80))):
        exact = Fraction(amount)
        for relation in Neighbors:
            shape = shapes[rng.integers(len(shapes))]
            for mechanism, measured in ((MatrixLaplace(), gram_nuclear), (Isotropic(), gram_frobenius)):
                plan: Any = mechanism.plan(shape, PrivacyBudget.pure(amount), relation)
                spent = Fraction(plan.noise.rate) * Fraction(
                    measured(relation, shape.n_features, plan.augmentation).value
                )
                assert spent <= exact <= spent * widest
            sides = 1 if relation is ADD_REMOVE else 2
            heat = Fraction(eigenvectors.temperature(PrivacyBudget.pure(amount), relation, "tight"))
            assert sides * heat <= exact <= sides * heat * widest
            heat = Fraction(eigenvectors.temperature(PrivacyBudget.zcdp(amount), relation, "tight"))
            assert (sides * heat) ** 2 / 8 <= exact <= (sides * heat) ** 2 / 8 * widest
        moved = float(rng.uniform(0.5, 3.0))
        needed = Fraction(moved) / Fraction(lattice_noise.noise_scale_for(PrivacyBudget.pure(amount), moved))
        assert needed <= exact <= needed * widest
        deviation = Fraction(lattice_noise.noise_scale_for(PrivacyBudget.zcdp(amount), moved))
        assert Fraction(moved) ** 2 / (2 * deviation**2) <= exact <= Fraction(moved) ** 2 / (2 * deviation**2) * widest
        off_diagonal = 2 * Fraction(lattice_noise.off_diagonal(amount)) ** 2
        assert exact**2 <= off_diagonal <= exact**2 * widest
        noting: Any = Noting()
        log_scale_histogram.choose(np.zeros(3), rank_score(ADD_REMOVE), PrivacyBudget.pure(amount), noting, "place")
        assert Fraction(noting.law.epsilon) <= exact <= Fraction(noting.law.epsilon) * widest
        log_scale_histogram.choose(np.zeros(3), rank_score(ADD_REMOVE), PrivacyBudget.zcdp(amount), noting, "place")
        assert Fraction(noting.law.epsilon) ** 2 / 8 <= exact <= Fraction(noting.law.epsilon) ** 2 / 8 * widest


def test_eigenvalues_on_a_lattice_are_paid_for_to_the_last_place() -> None:
    for d in range(1, 120):
        for relation in Neighbors:
            by_l2 = eigenvectors._eigenvalue_sensitivity(relation, d, 3, pure=False).rounding
            assert d <= (Fraction(by_l2) * 64) ** 2 <= d * (1 + Fraction(1, 2**50))
            assert eigenvectors._eigenvalue_sensitivity(relation, d, 3, pure=True).rounding == d / 64
