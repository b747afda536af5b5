"""The privacy filter refuses what is not paid for and draws nothing then; a receipt adds up again, or is refused."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
import math
import pickle
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.cases import CASES, COMPARISONS, MEAN_CASES, Case
from dpmoments.audit.replay import Recorder, Replayer
from dpmoments.base.message import Message
from dpmoments.base.values import rounded_down
from dpmoments.mechanisms.counts import FindingPlan
from dpmoments.papers.laws import (
    AdditiveWishartDraw,
    Directions,
    EigenvalueBound,
    GaussianDraw,
    RaisedWishartSampling,
    WishartSampling,
)
from dpmoments.privacy.accounting import Loss, LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.privacy.curves import (
    MAX_COMPOSED_COORDINATES,
    MIN_COMPOSED_SCALE,
    discrete_gaussian_rho,
    raised_wishart_ratio,
    wishart_sampling_padding,
)
from dpmoments.privacy.filter import GroupFilter, PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.laws import LAWS, Choice, DiscreteGaussian, DiscreteLaplace, DrawLaw, MatrixLaplaceDraw
from dpmoments.privacy.receipt import Draw, PrivacyStatement, Receipt, total_loss
from dpmoments.privacy.sampling import SecureGenerator, insecure_generator, noised
from dpmoments.privacy.sensitivity import (
    Norm,
    Sensitivity,
    count,
    gram_frobenius,
    gram_nuclear,
    quadratic_form,
    rank_score,
    row_norm_square,
    row_sum_l1,
    smallest_eigenvalue,
)
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Categorical, Numeric
from dpmoments.schema.constraints import schema_of_names
from dpmoments.schema.schema import Schema
from support.examples import examples
from support.said import refused

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
APPROXIMATE = PrivacyBudget.approximate(0.731, 1.37e-6)
PRIVATE = 271828
"""Stands in every query whose draw is refused: no message may hold it."""


@dataclass(frozen=True)
class OpenPlan:
    """All that a filter needs to know."""

    cost: PrivacyBudget
    neighbors: Neighbors
    loss_unit: LossUnit
    privacy_unit: PrivacyUnit | None = None


def opened(
    cost: PrivacyBudget,
    unit: LossUnit,
    neighbors: Neighbors = ADD,
    seed: int = 0,
    kind: type[PrivacyFilter] = PrivacyFilter,
) -> PrivacyFilter:
    return kind(OpenPlan(cost, neighbors, unit), insecure_generator(seed))


# What is refused -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Overreach:
    """Draws that a plan pays for, and then one that it does not."""

    cost: PrivacyBudget
    unit: LossUnit
    law: DrawLaw
    sensitivity: Sensitivity
    query: Any
    claim: PrivacyBudget | None = None
    before: tuple[tuple[DrawLaw, Any, Sensitivity], ...] = ()
    neighbors: Neighbors = ADD


CELLS = np.array([PRIVATE, -PRIVATE])
LARGE = 4.0 * MIN_COMPOSED_SCALE
PADDING = wishart_sampling_padding(APPROXIMATE.epsilon / 2, APPROXIMATE.delta / 2, 9, ADD)
RAISED = raised_wishart_ratio(APPROXIMATE.epsilon / 2, APPROXIMATE.delta / 2, 9)
HALF = APPROXIMATE.split(1.0, 1.0)[1]
BOUND = (EigenvalueBound(4.0, 60.0), float(PRIVATE), smallest_eigenvalue(ADD))
GRAM = PRIVATE * np.eye(3)
MANY = np.broadcast_to(np.int64(PRIVATE), (MAX_COMPOSED_COORDINATES + 1,))  # takes no memory
PURE, RHO = PrivacyBudget.pure(0.731), PrivacyBudget.zcdp(0.0731)


OVERREACHES: dict[str, Overreach] = {
    "ε beyond the allowance": Overreach(PURE, LossUnit.EPSILON, DiscreteLaplace(1.0), row_sum_l1(ADD, 1), CELLS),
    "ε beyond what is left": Overreach(
        PURE, LossUnit.EPSILON, Choice(0.5), rank_score(ADD), CELLS, before=((Choice(0.3), CELLS, rank_score(ADD)),)
    ),
    "ρ beyond the allowance": Overreach(RHO, LossUnit.RHO, GaussianDraw(2.0), count(ADD), CELLS),
    "μ beyond the allowance": Overreach(
        APPROXIMATE, LossUnit.GAUSSIAN_RHO, GaussianDraw(3.0), count(ADD), CELLS, before=((GaussianDraw(9.0), CELLS, count(ADD)),)
    ),
    "δ beyond the allowance": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, EigenvalueBound(4.0, 9.0), smallest_eigenvalue(ADD), float(PRIVATE)
    ),
    "a claim beyond what is left": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, WishartSampling(9, 10 * PADDING), row_norm_square(ADD), GRAM, APPROXIMATE, (BOUND,)
    ),
    "a claim below the exact curve": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, WishartSampling(9, 0.9 * PADDING), row_norm_square(ADD), GRAM, HALF
    ),
    "no claim": Overreach(APPROXIMATE, LossUnit.EPSILON_DELTA, WishartSampling(9, PADDING), row_norm_square(ADD), GRAM),
    "another relation": Overreach(PURE, LossUnit.EPSILON, DiscreteLaplace(100.0), row_sum_l1(REPLACE, 1), CELLS),
    "the other relation": Overreach(
        PURE, LossUnit.EPSILON, DiscreteLaplace(100.0), row_sum_l1(ADD, 1), CELLS, neighbors=REPLACE
    ),
    "another norm": Overreach(PURE, LossUnit.EPSILON, DiscreteLaplace(100.0), count(ADD), CELLS),
    "another norm of a matrix": Overreach(PURE, LossUnit.EPSILON, MatrixLaplaceDraw(0.01, 0), gram_frobenius(ADD, 3), GRAM),
    "a unit without δ": Overreach(PURE, LossUnit.EPSILON, GaussianDraw(1e6), count(ADD), CELLS),
    "a unit of Gaussians": Overreach(APPROXIMATE, LossUnit.GAUSSIAN_RHO, Choice(1e-6), rank_score(ADD), CELLS),
    "a unit of parts": Overreach(APPROXIMATE, LossUnit.EPSILON_DELTA, GaussianDraw(1e6), count(ADD), CELLS),
    "noise too fine to compose": Overreach(APPROXIMATE, LossUnit.GAUSSIAN_RHO, DiscreteGaussian(1e5), count(ADD), CELLS),
    "less noise off the diagonal": Overreach(
        RHO, LossUnit.RHO, DiscreteGaussian(100.0, 60.0), gram_frobenius(ADD, 3), GRAM.astype(int)
    ),
    "too many coordinates": Overreach(APPROXIMATE, LossUnit.GAUSSIAN_RHO, DiscreteGaussian(LARGE), count(ADD), MANY),
    "too many coordinates together": Overreach(
        APPROXIMATE, LossUnit.GAUSSIAN_RHO, DiscreteGaussian(LARGE), count(ADD), MANY[2:],
        before=((DiscreteGaussian(LARGE), CELLS, count(ADD)),),
    ),
    "a floor without a bound": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, WishartSampling(9, PADDING, 5e-324), row_norm_square(ADD), GRAM, HALF
    ),
    "a floor above its bound": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, WishartSampling(9, PADDING, 1e6), row_norm_square(ADD), GRAM, HALF, (BOUND,)
    ),
    "raised by less than the bound asks": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, RaisedWishartSampling(9, 1.0, 0.99 * RAISED - 1.0), gram_frobenius(ADD, 3),
        GRAM, HALF
    ),
    "raised as for a norm of rows": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, RaisedWishartSampling(9, 0.0, RAISED), row_norm_square(ADD), GRAM, HALF
    ),
    "a law without a sampler": Overreach(
        PURE, LossUnit.EPSILON, replace(WishartSampling(9, PADDING)), row_norm_square(ADD), GRAM, HALF
    ),
    "the bound of a function in another norm": Overreach(
        PURE, LossUnit.EPSILON, DiscreteLaplace(100.0), replace(gram_frobenius(ADD, 3), norm=Norm.L1), GRAM.astype(int)
    ),
    "a price in ρ beyond floating point": Overreach(RHO, LossUnit.RHO, DiscreteLaplace(5e-324), row_sum_l1(ADD, 1), CELLS),
    "a claim beyond floating point": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, WishartSampling(9, 1e-300), row_norm_square(ADD), GRAM, APPROXIMATE
    ),
    "a symmetric law on a vector, which comes back once a row": Overreach(
        RHO, LossUnit.RHO, DiscreteGaussian(5.0, 5.0), count(ADD), CELLS
    ),
    "a symmetric normal law on a vector": Overreach(RHO, LossUnit.RHO, GaussianDraw(5.0, True), count(ADD), CELLS),
    "a matrix law on a vector": Overreach(PURE, LossUnit.EPSILON, MatrixLaplaceDraw(0.5, 0), gram_nuclear(ADD, 3), CELLS),
    "directions in one dimension, which are free, of a matrix of three": Overreach(
        PURE, LossUnit.EPSILON, Directions((1e6,), 1), quadratic_form(ADD), GRAM
    ),
    "one cell of Wishart noise on all cells of a matrix": Overreach(
        APPROXIMATE, LossUnit.EPSILON_DELTA, AdditiveWishartDraw(1, 80, 10.0, 0), row_norm_square(ADD), GRAM.astype(int),
        PrivacyBudget.approximate(0.7, 1.3e-6),
    ),
    **{
        f"noise on a lattice for {cells}": Overreach(RHO, LossUnit.RHO, DiscreteGaussian(5.0), count(ADD), cells)
        for cells in ([0.25], [1.0], [math.nan], np.array([1.0], dtype=object), np.array([True]))
    },
}  # fmt: skip

NUMBER = re.compile(r"\d\.\d|\d{2,}|\de[-+]?\d")


def is_refused(overreach: Overreach, kind: type[PrivacyFilter] = PrivacyFilter) -> bool:
    """Whether the draw is refused, the filter closed, nothing drawn, and nothing told by the words."""
    opening = opened(overreach.cost, overreach.unit, overreach.neighbors, kind=kind)
    for law, query, sensitivity in overreach.before:
        opening.draw("what is paid for", law, query, sensitivity)
    generator = opening._generator
    before, left = copy.deepcopy(generator.bit_generator.state), opening.left
    try:
        opening.draw("what is not", overreach.law, overreach.query, overreach.sensitivity, overreach.claim)
    except PrivacyFilterError as refusal:
        told = bool(NUMBER.search(str(refusal))) or "what is not" not in str(refusal)
    else:
        return False
    # What came before the refusal stays in the receipt, and nothing can be drawn any more, paid for or not.
    try:
        opening.draw("a small one", GaussianDraw(1e9), CELLS, count(overreach.neighbors))
        closed = False
    except PrivacyFilterError as refusal:
        closed = "This run has ended" in str(refusal)
    made = [str(draw.what) for draw in opening.close().draws]
    untouched = generator.bit_generator.state == before and opening.left == left
    return closed and not told and untouched and made == ["what is paid for"] * len(overreach.before)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of a curve at the ends of float64
@pytest.mark.parametrize("name", OVERREACHES)
def test_what_is_not_paid_for_is_refused_and_nothing_is_drawn(name: str) -> None:
    assert is_refused(OVERREACHES[name])


class StaysOpen(PrivacyFilter):
    """A planted fault."""

    def _refuse(self, reason: str) -> Any:
        raise PrivacyFilterError(reason)


class TellsTheBudget(PrivacyFilter):
    """A planted fault."""

    def _refuse(self, reason: str) -> Any:
        super()._refuse(f"{reason} It costs {self._plan.cost}.")


class DrawsFirst(PrivacyFilter):
    """A planted fault."""

    def draw(self, what: str, law: DrawLaw, query: Any, sensitivity: Sensitivity, *rest: Any, **options: Any) -> Any:
        self._generator.standard_normal()
        return super().draw(what, law, query, sensitivity, *rest, **options)


class TakesEverything(PrivacyFilter):
    """A planted fault: every loss is nothing."""

    def draw(self, what: str, law: DrawLaw, query: Any, sensitivity: Sensitivity, *rest: Any, **options: Any) -> Any:
        del rest, options
        made = Draw(what, law, sensitivity, Loss.none(self.unit), np.size(query))
        self._draws = [*self._draws, made]
        return self._answer(made, query)


@pytest.mark.parametrize("fault", [StaysOpen, TellsTheBudget, DrawsFirst, TakesEverything])
@pytest.mark.parametrize("name", ["ε beyond what is left", "another relation", "another norm"])
def test_a_faulty_filter_is_found_out(name: str, fault: type[PrivacyFilter]) -> None:
    assert not is_refused(OVERREACHES[name], fault)


def test_a_sensitivity_that_was_taken_once_lets_no_other_in() -> None:
    """Not one that compares as equal to it, nor one that is stated as less."""
    law, query = GaussianDraw(100.0, symmetric=True), np.zeros((3, 3))
    honest = gram_frobenius(ADD, 3)
    for wrong in (
        replace(honest, arguments=tuple((k, 3.0 if k == "n_features" else v) for k, v in honest.arguments)),
        replace(honest, value=math.nextafter(honest.value, 0.0)),
        replace(honest, units=2.0**-30, value=honest.value * 2.0**-30),
        replace(honest, rounding=-1.0, value=honest.value - 0.5),
        replace(honest, name="no_such_sensitivity"),
        replace(honest, arguments=()),
    ):
        opening = opened(RHO, LossUnit.RHO)
        opening.draw("right", law, query, honest)
        with pytest.raises(PrivacyFilterError):
            opening.draw("wrong", law, query, wrong)


def test_a_filter_that_was_closed_or_whose_sampler_failed_draws_nothing() -> None:
    opening = opened(PURE, LossUnit.EPSILON)
    opening.draw("first", Choice(0.1), CELLS, rank_score(ADD))
    receipt = opening.close()
    failed = opened(PrivacyBudget.zcdp(0.5), LossUnit.RHO)
    with refused("must be", parameter="scale"):
        failed.draw("count", DiscreteGaussian(2.0**60), [1], count(ADD))
    for ended in (opening, opening.for_group("a"), failed):
        with refused("This run has ended", PrivacyFilterError):
            ended.draw("second", Choice(0.1), CELLS, rank_score(ADD))
    assert opening.close() == receipt
    assert [str(draw.what) for draw in receipt.draws] == ["first"]
    with refused("no sampler for noise", TypeError, got="int"):
        noised(3, [1], insecure_generator(0))  # type: ignore[arg-type]


def test_which_losses_add_up_to_which_cost() -> None:
    pure, zcdp = PrivacyBudget.pure(0.7), PrivacyBudget.zcdp(0.3)
    known = {
        (pure, LossUnit.EPSILON): (0.7, 0.0),
        (APPROXIMATE, LossUnit.RHO): (APPROXIMATE.to_rho(), 0.0),
        (APPROXIMATE, LossUnit.GAUSSIAN_RHO): (discrete_gaussian_rho(0.731, 1.37e-6), 0.0),
        (APPROXIMATE, LossUnit.EPSILON_DELTA): (0.731, 1.37e-6),
        (zcdp, LossUnit.RHO): (0.3, 0.0),
    }
    for cost in (pure, APPROXIMATE, zcdp):
        for unit in LossUnit:
            if (cost, unit) in known:
                most = allowance(cost, unit)
                assert (most.unit, most.amount, most.delta) == (unit, *map(Fraction, known[cost, unit]))
            else:
                with refused("do not add up to a cost of"):
                    allowance(cost, unit)


def test_losses_of_one_unit_alone_are_added_and_compared() -> None:
    one, other = Loss(LossUnit.EPSILON_DELTA, Fraction(3), Fraction(1, 8)), Loss(LossUnit.RHO, Fraction(1))
    part = Loss(LossUnit.EPSILON_DELTA, Fraction(1), Fraction(1, 16))
    assert one - part == Loss(LossUnit.EPSILON_DELTA, Fraction(2), Fraction(1, 16))
    assert one + part == Loss(LossUnit.EPSILON_DELTA, Fraction(4), Fraction(3, 16))
    for combined in (Loss.__add__, Loss.__sub__):
        with refused(("cannot be subtracted from one in", "losses in")):
            combined(one, other)
    assert part.within(one)
    assert one.within(one)
    assert not one.within(part)
    assert not Loss(LossUnit.EPSILON_DELTA, Fraction(1), Fraction(math.nextafter(0.125, 1.0))).within(one)
    assert not Loss(LossUnit.RHO, Fraction(0)).within(one)
    for amounts in ((Fraction(-1), Fraction(0)), (Fraction(1), Fraction(-1))):
        with refused("a loss must not be negative"):
            Loss(LossUnit.EPSILON_DELTA, *amounts)
    assert Loss.none(LossUnit.RHO) == Loss(LossUnit.RHO, Fraction(0))
    # Noise of any scale may be counted where nothing is composed jointly.
    assert {unit: unit.least_lattice_scale > 0 for unit in LossUnit if unit.least_lattice_scale != 0} == {
        LossUnit.GAUSSIAN_RHO: True,
    }


def test_as_many_coordinates_as_the_composition_is_proven_for() -> None:
    """The limit itself passes; it is for Gaussian draws under (ε, δ) alone."""

    class DrawsNothing(PrivacyFilter):
        def _answer(self, made: Draw, query: Any) -> Any:
            del made, query

    law, one_row = DiscreteGaussian(LARGE), count(ADD)
    opening = opened(APPROXIMATE, LossUnit.GAUSSIAN_RHO, kind=DrawsNothing)
    opening.draw("most", law, MANY[2:], one_row)
    opening.draw("one more", law, CELLS[:1], one_row)
    with refused("has more coordinates than the composition is proven for", PrivacyFilterError):
        opening.draw("and another", law, CELLS[:1], one_row)
    receipt = opening.close()
    larger = (*receipt.draws, replace(receipt.draws[1]))
    with refused("the draws of this receipt have more coordinates than their"):
        replace(receipt, draws=larger)
    with refused("the draws of this receipt have more coordinates than their"):
        Receipt.from_dict(in_a_file(receipt) | {"draws": [draw.to_dict() for draw in larger]})
    opening = opened(RHO, LossUnit.RHO, kind=DrawsNothing)
    opening.draw("more", law, MANY, one_row)
    assert opening.close().draws[0].size == MAX_COMPOSED_COORDINATES + 1


def test_a_floor_is_covered_by_the_highest_bound_that_was_drawn() -> None:
    """One row may be missing: the floor is a row's square below the bound, and not one ulp more."""
    one_row = row_norm_square(ADD)

    def with_floor(nudge: float, *, bounds: int = 2) -> Receipt:
        opening = opened(APPROXIMATE, LossUnit.EPSILON_DELTA, seed=4)
        part = HALF.split(*[1.0] * bounds)[0]
        law = EigenvalueBound(1.0 / part.epsilon * (1.0 + 1e-12), 200.0)
        found = [opening.draw("bound", law, 5000.0 + step, smallest_eigenvalue(ADD)) for step in range(bounds)]
        floor = max(found) - one_row.value if nudge == 0 else math.nextafter(max(found) - one_row.value, nudge)
        opening.draw("matrix", WishartSampling(9, 0.0, floor), GRAM, one_row, HALF)
        return opening.close()

    receipt = with_floor(0.0)
    with_floor(-math.inf)
    with refused("relies on a bound on the smallest eigenvalue", PrivacyFilterError):
        with_floor(math.inf)
    # The answer is not in the receipt; that a bound was drawn is.
    assert Receipt.from_dict(in_a_file(receipt)) == receipt
    first, _, last = in_a_file(receipt)["draws"]
    Receipt.from_dict(in_a_file(receipt) | {"draws": [first, last]})
    for draws in ([last], [last, first]):
        with refused("a draw of this receipt relies on a bound on the smallest"):
            Receipt.from_dict(in_a_file(receipt) | {"draws": draws})
    opening = opened(APPROXIMATE, LossUnit.EPSILON_DELTA)
    bound = opening.for_group("many rows").draw("bound", *BOUND)
    with refused("relies on a bound on the smallest eigenvalue", PrivacyFilterError):
        opening.for_group("no rows").draw("matrix", WishartSampling(9, PADDING, bound - 1.0), GRAM, one_row, HALF)


def test_a_filter_draws_from_the_operating_system_unless_told_otherwise() -> None:
    plan = OpenPlan(PrivacyBudget.zcdp(0.5), ADD, LossUnit.RHO)
    law, query = DiscreteGaussian(2.0**30), np.zeros(4, dtype=np.int64)

    def drawn(**arguments: Any) -> list[int]:
        opening = PrivacyFilter.open(plan, **arguments)
        assert isinstance(opening._generator, SecureGenerator) == (not arguments)
        return opening.draw("count", law, query, count(ADD)).tolist()

    assert drawn() != drawn()
    assert drawn(insecure_seed=3) == drawn(insecure_seed=3) != drawn(insecure_seed=4)


# Parts of a budget add up exactly ------------------------------------------------------------------------------------


def law_of(part: PrivacyBudget) -> tuple[DrawLaw, Sensitivity, PrivacyBudget | None]:
    """A draw that costs a part of a budget, as exactly as its law can."""
    if part.kind is BudgetKind.PURE:
        return Choice(part.epsilon), rank_score(ADD), None
    if part.kind is BudgetKind.APPROXIMATE:
        padding = wishart_sampling_padding(part.epsilon, part.delta, 9, ADD)
        return WishartSampling(9, padding), row_norm_square(ADD), part
    scale = math.sqrt(1.0 / (2.0 * part.rho))
    while Fraction(scale) ** 2 * 2 * Fraction(part.rho) < 1:
        scale = math.nextafter(scale, math.inf)
    return DiscreteGaussian(scale), count(ADD), None


UNITS = {
    BudgetKind.PURE: LossUnit.EPSILON,
    BudgetKind.ZCDP: LossUnit.RHO,
    BudgetKind.APPROXIMATE: LossUnit.EPSILON_DELTA,
}
WHOLES = [
    PrivacyBudget.pure(1.0),
    PrivacyBudget.pure(0.1),
    PrivacyBudget.pure(math.nextafter(0.7, 1.0)),
    PrivacyBudget.zcdp(0.3),
    PrivacyBudget.zcdp(1e-7),
    PrivacyBudget.approximate(0.3, 1.1e-7),
]


@pytest.mark.parametrize("n_parts", [3, 7, 10])
@pytest.mark.parametrize("whole", WHOLES, ids=str)
def test_parts_of_a_budget_always_fit(whole: PrivacyBudget, n_parts: int) -> None:
    weights = np.random.default_rng(n_parts).uniform(0.5, 2.0, n_parts)
    for parts in (whole.split(*[1.0] * n_parts), whole.split(*map(float, weights))):
        opening = opened(whole, UNITS[whole.kind])
        for part in parts:
            law, sensitivity, claim = law_of(part)
            query = GRAM if claim else np.array([1, 2])
            opening.draw("part", law, query, sensitivity, claim)
        assert 0 <= opening.left.amount < Fraction(1, 2**45) * opening.close().allowance.amount


@pytest.mark.parametrize("n_parts", [3, 7, 10])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 2.0 / 3.0, 1e-9, 13.7])
def test_one_ulp_more_than_what_is_left_does_not_fit(epsilon: float, n_parts: int) -> None:
    """Sums of floats would let it pass, or refuse the parts: the filter's are exact."""
    for nudge in (0, 1):
        opening = opened(PrivacyBudget.pure(epsilon), LossUnit.EPSILON)
        for part in PrivacyBudget.pure(epsilon).split(*[1.0] * n_parts)[1:]:
            opening.draw("part", Choice(part.epsilon), [1, 2], rank_score(ADD))
        last = rounded_down(opening.left.amount)
        if nudge:
            with refused("would spend more than the plan states", PrivacyFilterError):
                opening.draw("last", Choice(math.nextafter(last, math.inf)), [1, 2], rank_score(ADD))
        else:
            opening.draw("last", Choice(last), [1, 2], rank_score(ADD))
            assert opening.close().exhausts


def test_what_is_left_is_a_budget_that_fits() -> None:
    opening = opened(PrivacyBudget.zcdp(0.3), LossUnit.RHO)
    law, sensitivity, _ = law_of(PrivacyBudget.zcdp(0.1))
    opening.draw("first", law, [1, 2], sensitivity)
    assert Fraction(opening.left.as_budget.rho) <= opening.left.amount
    law, sensitivity, _ = law_of(opening.left.as_budget)
    opening.draw("second", law, [1, 2], sensitivity)
    assert opening.close().exhausts


# Groups --------------------------------------------------------------------------------------------------------------


def counted(amounts: list[tuple[str | None, Fraction]], neighbors: Neighbors) -> Fraction:
    """By the definition: the most that any row, or any two rows' groups, can lose."""
    groups = sorted({group for group, _ in amounts if group is not None})
    touched = [*groups, "none", "none of the two"]
    return max(
        sum((amount for group, amount in amounts if group is None or group in chosen), Fraction(0))
        for chosen in combinations(touched, 1 if neighbors is ADD else 2)
    )


def draw_choice(opening: PrivacyFilter, epsilon: float, group: str | None) -> None:
    door = opening if group is None else opening.for_group(group)
    door.draw("scores", Choice(epsilon), [1, 2, 3], rank_score(opening._plan.neighbors))


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("seed", range(12))
def test_groups_count_as_the_rows_they_touch(seed: int, neighbors: Neighbors) -> None:
    """Random draws for random groups: what passes, what is counted, and what is left for each."""
    rng = np.random.default_rng(seed)
    opening = opened(PrivacyBudget.pure(1.0), LossUnit.EPSILON, neighbors)
    amounts: list[tuple[str | None, Fraction]] = []
    for _ in range(40):
        group = [None, "a", "b", "c"][rng.integers(0, 4)]
        epsilon = float(rng.uniform(0.0, 0.2))
        wanted = [*amounts, (group, Fraction(epsilon))]
        if counted(wanted, neighbors) > 1:
            with refused("would spend more than the plan states", PrivacyFilterError):
                draw_choice(opening, epsilon, group)
            break
        draw_choice(opening, epsilon, group)
        amounts = wanted
        assert opening.left.amount == 1 - counted(amounts, neighbors)
        for level in ("a", "b", "c", "d"):
            left = opening.left_for(level).amount
            assert opening.for_group(level).left.amount == left
            # All of it may be spent on the group, and no more.
            assert counted([*amounts, (level, left)], neighbors) <= 1
            assert counted([*amounts, (level, left + Fraction(1, 2**80))], neighbors) > 1
    else:
        pytest.fail("no draw was refused")
    assert opening.close().total.amount == counted(amounts, neighbors)


def test_the_largest_losses_of_groups_count_part_by_part() -> None:
    """One group may have the largest ε, another the largest δ."""
    unit = LossUnit.EPSILON_DELTA
    losses = {
        None: Loss(unit, Fraction(1, 2), Fraction(1, 1000)),
        "a": Loss(unit, Fraction(3), Fraction(1, 64)),
        "b": Loss(unit, Fraction(1), Fraction(1, 8)),
        "c": Loss(unit, Fraction(2), Fraction(1, 16)),
    }
    assert total_loss(losses, unit, ADD) == Loss(unit, Fraction(7, 2), Fraction(126, 1000))
    assert total_loss(losses, unit, REPLACE) == Loss(unit, Fraction(11, 2), Fraction(3, 16) + Fraction(1, 1000))
    assert total_loss({}, unit, REPLACE) == Loss.none(unit)


def test_the_filter_of_a_group() -> None:
    opening = opened(PURE, LossUnit.EPSILON)
    door = opening.for_group("north")
    assert isinstance(door, GroupFilter)
    assert (door.unit, door.left) == (LossUnit.EPSILON, opening.left)
    door.draw("scores", Choice(0.5), [1, 2], rank_score(ADD))
    for nested in (partial(door.draw, group="south"), door.for_group("south").draw):
        with refused("groups within groups are not supported"):
            nested("scores", Choice(0.1), [1, 2], rank_score(ADD))
    with refused("close the filter of the whole run", TypeError):
        door.close()
    (draw,) = opening.close().draws
    assert (draw.what, draw.group) == (Message("query", name="scores"), "north")
    assert opening.receipt.lines()[0][0] == draw.what.within("north").text("short")


# Receipts of real releases -------------------------------------------------------------------------------------------

EVERY_CASE = [*CASES, *MEAN_CASES]
BY_ID = {case.id: case for case in EVERY_CASE}


@cache
def recorded(name: str) -> Receipt:
    case = BY_ID[name]
    plan = case.plan()
    privacy_filter = PrivacyFilter(plan, insecure_generator(3))
    plan.run(case.rows(), privacy_filter)
    return privacy_filter.close()


def in_a_file(receipt: Receipt) -> dict[str, Any]:
    return dict(json.loads(json.dumps(receipt.to_dict())))


@pytest.mark.long(sets=None)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", EVERY_CASE, ids=lambda case: case.id)
def test_receipt_of_a_release(case: Case) -> None:
    plan, receipt = case.plan(), recorded(case.id)
    # The unit is one in which the kind of budget adds up, and every draw is counted in it.
    counted_in = allowance(plan.cost, plan.loss_unit).unit
    assert (
        counted_in
        in {
            BudgetKind.PURE: {LossUnit.EPSILON},
            BudgetKind.ZCDP: {LossUnit.RHO},
            BudgetKind.APPROXIMATE: {LossUnit.RHO, LossUnit.GAUSSIAN_RHO, LossUnit.EPSILON_DELTA},
        }[plan.cost.kind]
    )  # of a pure cost where that is the better way to spend (ε, δ)
    assert receipt.draws
    assert {draw.loss.unit for draw in receipt.draws} == {counted_in}
    assert (receipt.unit, receipt.neighbors, receipt.cost) == (plan.loss_unit, case.neighbors, plan.cost)
    # All of it is spent, δ too, unless the plan says why not.
    if plan.unspent_reason is None:
        assert receipt.exhausts
        assert receipt.total.delta >= receipt.allowance.delta * Fraction(1.0 - 1e-9)
    else:
        assert plan.unspent_reason.strip()
        assert not receipt.exhausts, "nothing is left: the reason is idle"
    # A file of it adds up again, to the same fractions.
    again = Receipt.from_dict(in_a_file(receipt))
    assert again == receipt
    assert again.total == receipt.total
    assert again.to_dict() == receipt.to_dict()
    assert len(receipt.lines()) == len(receipt.draws) + 1


@cache
def receipts() -> tuple[Receipt, ...]:
    """Of mechanisms that spend what they state, one for each law in each unit, relations in turn."""
    cases: dict[Any, dict[Neighbors, Case]] = {}
    for case in (case for case in EVERY_CASE if case.mechanism.registry_name() not in COMPARISONS):
        options = case.mechanism.options
        kind = (case.mechanism.registry_name(), options.get("adaptive"), options.get("smallest_eigenvalue") is None)
        cases.setdefault((*kind, case.kind), {}).setdefault(case.neighbors, case)
    chosen = [list(of_kind.values())[place % len(of_kind)] for place, of_kind in enumerate(cases.values())]
    found, seen = [], set[Any]()
    for receipt in (recorded(case.id) for case in chosen):
        laws = {(draw.law.name, receipt.unit) for draw in receipt.draws}
        if not laws <= seen:
            seen |= laws
            found.append(receipt)
    return (*found, receipt_of_found_levels())


def receipt_of_found_levels() -> Receipt:
    """What is drawn before a release that finds the levels of a column."""
    schema = Schema(Categorical("town", "discover", max_levels=3), Numeric("age", 0, 100))
    plan = FindingPlan.of(schema, PrivacyRequest(PrivacyBudget.approximate(1.0, 1e-6), ADD))
    assert plan is not None
    privacy_filter = PrivacyFilter(plan, insecure_generator(0))
    plan.run(Rows.of(pa.table({"town": ["Oslo"] * 900, "age": [30] * 900}), schema_of_names(schema)), privacy_filter)
    return privacy_filter.close()


@pytest.mark.long(sets=None)
def test_the_receipts_that_are_tampered_with_hold_every_law() -> None:
    laws = {draw.law.name for receipt in receipts() for draw in receipt.draws}
    assert laws == set(LAWS)
    assert {receipt.unit for receipt in receipts()} == set(LossUnit)


# Tampering -----------------------------------------------------------------------------------------------------------

Plain = dict[str, Any]
Steps = list[tuple[str, Any]]
"""Places in a receipt's file, each with a value or a function of what was there.

``draw`` is the draw that loses most, a law's name the first draw of it, ``cost.amount`` the ε or ρ.
"""


def change(content: Plain, place: str, value: Any) -> None:
    first, *inside = place.split(".")
    target: Any = {"draw": max(content["draws"], key=lambda draw: draw["loss"])}.get(first, content)
    if first in LAWS:
        target = next((draw for draw in content["draws"] if draw["law"]["name"] == first), None)
    elif first != "draw":
        inside = [first, *inside]
    for part in inside[:-1]:
        target = target and target[part]
    key = inside[-1] if inside[-1] != "amount" else "rho" if "rho" in target else "epsilon"
    if target:
        target[key] = value(target[key]) if callable(value) else value


def tampered(receipt: Receipt, steps: Steps) -> Plain | None:
    """The file after an edit; None where the edit found nothing to do."""
    content = in_a_file(receipt)
    for place, value in steps:
        change(content, place, value)
    return None if repr(content) == repr(in_a_file(receipt)) else content


def times(factor: float) -> Callable[[float], float]:
    return lambda value: factor * value


def down(value: float) -> float:
    return math.nextafter(value, -math.inf)


def up(value: float) -> float:
    return math.nextafter(value, math.inf)


def other(neighbors: str) -> str:
    return str(REPLACE if neighbors == ADD else ADD)


TAMPERINGS: dict[str, Steps] = {
    "a loss halved": [("draw.loss", times(0.5))],
    "a loss one ulp lower": [("draw.loss", down)],
    "a loss negative": [("draw.loss", times(-1.0))],
    "a δ lower": [("draw.delta", down)],
    "a δ higher": [("draw.delta", up)],
    "a δ of false for 0": [("draw.delta", lambda delta: delta or False)],
    "a sensitivity lowered": [("draw.sensitivity.value", times(0.5))],
    "a sensitivity one ulp lower": [("draw.sensitivity.value", down)],
    "a sensitivity and its loss lowered": [("draw.sensitivity.value", times(0.5)), ("draw.loss", times(0.25))],
    "units negative": [("draw.sensitivity.units", times(-1.0))],
    "units 0": [("draw.sensitivity.units", 0)],
    "rounding negative": [("draw.sensitivity.rounding", lambda rounding: rounding - 1.0)],
    "an unknown sensitivity": [("draw.sensitivity.name", "no_such_bound")],
    "a sensitivity that is an array": [
        ("draw.sensitivity", {"$array": {"dtype": "int8", "shape": [1], "values": [1]}})
    ],
    "a law unknown": [("draw.law.name", "no-such-law")],
    **{f"a law renamed {name}": [("draw.law.name", name)] for name in LAWS},
    **{f"unit changed to {unit}": [("loss_unit", str(unit))] for unit in LossUnit},
    "a unit unknown": [("loss_unit", "bits")],
    "neighbors changed": [("neighbors", other)],
    "neighbors of a draw changed": [("draw.sensitivity.neighbors", other)],
    "another protected unit": [("protected_unit", "user")],
    "allowance doubled": [("allowance", times(2.0))],
    "allowance one ulp higher": [("allowance", up)],
    "allowance one ulp lower": [("allowance", down)],
    "cost doubled": [("cost.amount", times(2.0))],
    "cost halved": [("cost.amount", times(0.5))],
    "cost negative": [("cost.amount", times(-1.0))],
    "cost and allowance halved": [("cost.amount", times(0.5)), ("allowance", times(0.5))],
    "a cost of ε or ρ = 1e-300": [("cost.amount", 1e-300)],
    "a cost of δ = 10^400": [("cost.delta", 10**400)],
    "a negative scale": [("discrete-gaussian.law.scale", times(-1.0))],
    "scale 0": [("discrete-gaussian.law.scale", 0)],
    "scale ∞": [("discrete-gaussian.law.scale", {"$float": "inf"})],
    "rate 10^400": [("matrix-laplace.law.rate", 10**400)],
    "degrees 1e300": [("wishart-sampling.law.degrees", 1e300)],
    "padding 1e-300": [("wishart-sampling.law.padding", 1e-300)],
    "raised 10^400": [("raised-wishart-sampling.law.raised", 10**400)],
    "a law's default left out": [
        ("wishart-sampling.law", lambda law: {name: value for name, value in law.items() if name != "inverse"})
    ],
    "projected of text": [("directions.law.projected", "no")],
    "a free direction of text": [("directions.law.temperatures.$tuple", lambda known: [*known, "hot"])],
    "a number of features that is none": [("directions.law.n_features", 2.5e9)],
}
"""Edits that change a loss, or none: refused as well, so that a file says what it means in one way alone."""


@pytest.mark.long(sets=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of curves at the ends of float64
@pytest.mark.parametrize("name", list(TAMPERINGS))
def test_a_tampered_receipt_is_refused(name: str) -> None:
    contents = [tampered(receipt, TAMPERINGS[name]) for receipt in receipts()]
    changed = [content for content in contents if content is not None]
    assert changed, "no receipt was changed"
    for content in changed:
        with pytest.raises((ValueError, TypeError, KeyError)):
            Receipt.from_dict(content)


@pytest.mark.long(sets=None)
def test_untouched_receipts_and_those_with_a_draw_less_are_accepted() -> None:
    """A draw that is left out cannot be seen in the file; what is left still adds up to the cost or less."""
    for receipt in receipts():
        assert Receipt.from_dict(in_a_file(receipt)) == receipt
        with refused("the draws of this receipt add up to more than the stated cost"):
            replace(receipt, draws=2 * receipt.draws)
        last = len(receipt.draws) - 1
        for place in {0, last // 2, last}:
            content = in_a_file(receipt)
            del content["draws"][place]
            fewer = Receipt.from_dict(content)
            assert fewer.draws == receipt.draws[:place] + receipt.draws[place + 1 :]
            assert fewer.total.within(receipt.total)


def test_a_receipt_is_for_one_statement() -> None:
    cost, law, moved = PrivacyBudget.zcdp(0.5), DiscreteGaussian(5.0), count(ADD)
    draw = Draw(Message("count"), law, moved, law.loss(moved, LossUnit.RHO), 1)
    receipt = Receipt(ADD, cost, LossUnit.RHO, (draw, draw))
    statement = PrivacyStatement(cost, ADD, "idealized", True, (), "1")
    receipt.require_for(statement)
    for faulty in (replace(statement, budget=PrivacyBudget.zcdp(1.0)), replace(statement, neighbors=REPLACE)):
        with refused("the receipt is not for the stated budget and relation"):
            receipt.require_for(faulty)
    with refused("the receipt is of several groups of rows, and this release"):
        replace(receipt, draws=(draw, replace(draw, group="a"))).require_for(statement)


# Any edit at all -----------------------------------------------------------------------------------------------------


def places(content: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, entry in entries:
        yield (*before, key)
        yield from places(entry, (*before, key))


FACTORS = st.sampled_from([-1.0, 0.5, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 1.01, 2.0])
ODD_VALUES = st.sampled_from(
    [None, True, math.nan, "", "x", "pure", [], [1.0], {}, {"x": 1}, {"$tuple": [1]}, {"$float": "nan"}]
    + [0, 0.0, -1, 1e-300, 1e300, -1e308, math.inf, -math.inf, 10**400, {"$float": "inf"}]
    + [{"$array": {"dtype": "int8", "shape": [1], "values": [300]}}]
)


@st.composite
def edited(draw: st.DrawFn) -> tuple[Receipt, tuple[Any, ...], Plain]:
    """A receipt, the place of an edit, and the file after it."""
    receipt = draw(st.sampled_from(receipts()))
    content = in_a_file(receipt)
    path = draw(st.sampled_from(list(places(content))))
    target = content
    for key in path[:-1]:
        target = target[key]
    known = target[path[-1]]
    how = draw(st.sampled_from(["set", "delete", "add", "scale"]))
    if how == "delete":
        del target[path[-1]]
    elif how == "add" and isinstance(known, dict):
        known[draw(st.sampled_from(["magic", "$tuple", "name", "scale"]))] = draw(ODD_VALUES)
    elif how == "add" and isinstance(known, list):
        known.append(draw(ODD_VALUES))
    elif how == "scale" and isinstance(known, float):
        target[path[-1]] = known * draw(FACTORS)
    elif how == "scale" and isinstance(known, int) and not isinstance(known, bool):
        target[path[-1]] = known + draw(st.integers(-3, 3))
    else:
        target[path[-1]] = draw(ODD_VALUES)
    return receipt, path, json.loads(json.dumps(content))


def is_refused_or_means_the_same(receipt: Receipt, path: tuple[Any, ...], content: Plain) -> bool:
    """Whether no loss passes as less than it was; any exception but the three that readers expect is let through."""
    try:
        read = Receipt.from_dict(content)
    except (ValueError, TypeError, KeyError):
        return True
    if path == ("draws",) or (len(path) == 2 and path[0] == "draws"):
        return read.total.within(receipt.total)  # draws were left out
    same_losses = [draw.loss for draw in read.draws] == [draw.loss for draw in receipt.draws]
    # A cost of another δ is a receipt for another statement, and is not taken for this one.
    return same_losses and read.neighbors is receipt.neighbors and (read.cost == receipt.cost or path[0] == "cost")


@pytest.mark.long(sets=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(400), deadline=None, derandomize=True, print_blob=False, report_multiple_bugs=False)
@given(edited())
def test_any_edit_is_refused_or_changes_no_loss(edit: tuple[Receipt, tuple[Any, ...], Plain]) -> None:
    assert is_refused_or_means_the_same(*edit)


# Recording and replaying ---------------------------------------------------------------------------------------------


def test_a_replay_gives_the_recorded_answers_and_notes_what_changed() -> None:
    plan = OpenPlan(PrivacyBudget.zcdp(1.0), ADD, LossUnit.RHO)
    recorder = Recorder(plan, insecure_generator(0))

    def replayed(*queries: list[int], scale: float = 5.0, what: str = "count") -> Replayer:
        replayer = Replayer(plan, recorder.exchanges)
        for place, query in enumerate(queries):
            answer = replayer.draw(what, DiscreteGaussian(scale), np.array(query), count(ADD))
            assert answer.tolist() == recorded[place].tolist()
            answer += 1  # what the run does with it does not change the record
        replayer.check_all_made()
        return replayer

    recorded = [
        recorder.draw("count", DiscreteGaussian(5.0), np.array(query), count(ADD)) for query in ([PRIVATE, 20], [7])
    ]
    assert str(PRIVATE) not in repr(recorder.exchanges)
    first, moved = [PRIVATE, 20], [PRIVATE, 21]
    assert replayed(first, [7]).faults == []
    assert replayed(moved, [8]).faults == []  # as far as the sensitivity
    for queries, told in (
        (([PRIVATE + 1, 21], [7]), "moved by 1.41"),  # √2
        ((first, [9]), "draw 1, count"),
        (([*first, 30], [7]), "moved by inf"),  # another shape
        ((first,), "1 draws of the other run were not made"),
    ):
        (fault,) = replayed(*queries).faults
        assert told in fault
    assert len(replayed(first, [7], scale=5.5).faults) == len(replayed(first, [7], what="other").faults) == 2
    with refused("would spend more than the plan states", PrivacyFilterError):
        replayed(first, scale=0.5)
    replayer = replayed(first, [7])
    with pytest.raises(PrivacyFilterError, match="the other run did not make"):
        replayer.draw("count", DiscreteGaussian(5.0), np.array([7]), count(ADD))
    assert "the other run did not make" in replayer.faults[0]


# Defects -------------------------------------------------------------------------------------------------------------


def test_a_filter_is_not_copied() -> None:
    opening = opened(PURE, LossUnit.EPSILON)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with refused("a privacy filter is for one run and cannot be copied: its", TypeError):
            duplicate(opening)


def test_a_key_of_units_has_every_bit() -> None:
    opening = opened(PURE, LossUnit.EPSILON)
    for half in zip(*(opening.selection_key() for _ in range(64)), strict=True):
        assert functools.reduce(int.__or__, half) == 2**64 - 1
        assert functools.reduce(int.__and__, half) == 0


def test_two_threads_cannot_spend_one_budget_twice() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            opening = opened(PURE, LossUnit.EPSILON)
            outcomes: list[Any] = []

            def spend(opening: PrivacyFilter = opening, outcomes: list[Any] = outcomes) -> None:
                with contextlib.suppress(PrivacyFilterError):
                    outcomes.append(opening.draw("all", DiscreteLaplace(1.0 / 0.7), [1], row_sum_l1(ADD, 1)))

            threads = [threading.Thread(target=spend) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(outcomes) == len(opening.close().draws) == 1
    finally:
        sys.setswitchinterval(interval)
