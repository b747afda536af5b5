"""Budgets: validation, comparison, splitting, composition."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpmoments.base.message import Message
from dpmoments.base.values import no_less
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import discrete_gaussian_rho
from dpmoments.privacy.receipt import PrivacyStatement
from dpmoments.privacy.unit import Neighbors
from support.said import refused

positive = st.floats(1e-12, 1e12)
deltas = st.floats(1e-300, 0.999)
budgets = st.one_of(
    positive.map(PrivacyBudget.pure),
    st.builds(PrivacyBudget.approximate, positive, deltas),
    positive.map(PrivacyBudget.zcdp),
)

RULES = (Message("row-norm-bound", norm=2.0), Message("two-values", column="member", missing="drop"))


POSITIVE = "must be positive and finite (at most"
PROBABILITY = "delta must be a probability of failure, above 0 and"
OF_RHO = "a zCDP budget has only rho: leave epsilon and delta out"
IMPOSSIBLE: list[tuple[Callable[[], object], str]] = [
    *((lambda value=value: PrivacyBudget.of(epsilon=value), POSITIVE) for value in (0, -1.0, math.inf, math.nan, 10**400)),
    *((lambda value=value: PrivacyBudget.of(rho=value), POSITIVE) for value in (0, -0.5, math.inf, math.nan, 1e200)),
    *((lambda value=value: PrivacyBudget.of(epsilon=1.0, delta=value), PROBABILITY) for value in (1.0, -1e-9, math.nan)),
    *((lambda value=value: PrivacyBudget.pure(value), "epsilon must be a number") for value in ("1", None, [1.0], True)),
    *((lambda value=value: PrivacyBudget.approximate(1.0, value), "delta must be") for value in ("1", None, True)),
    (lambda: PrivacyBudget.of(), "give the privacy budget as epsilon (with or without delta) or as rho, none"),
    (lambda: PrivacyBudget.of(epsilon=1.0, rho=1.0), "give the privacy budget as epsilon (with or without delta) or as rho, not"),
    (lambda: PrivacyBudget.of(rho=1.0, delta=1e-6), "delta goes with epsilon: a rho-zCDP budget has none"),
    (lambda: PrivacyBudget(BudgetKind.PURE, epsilon=1.0, rho=1.0), "a pure budget has no rho"),
    (lambda: PrivacyBudget(BudgetKind.PURE, epsilon=1.0, delta=1e-6), "a pure budget has delta = 0"),
    (lambda: PrivacyBudget(BudgetKind.APPROXIMATE, epsilon=1.0, delta=1e-6, rho=1.0), "budget has no rho"),
    (lambda: PrivacyBudget(BudgetKind.APPROXIMATE, epsilon=1.0), PROBABILITY),
    (lambda: PrivacyBudget(BudgetKind.ZCDP, rho=1.0, epsilon=1.0), OF_RHO),
    (lambda: PrivacyBudget(BudgetKind.ZCDP, rho=1.0, delta=1e-6), OF_RHO),
    (lambda: PrivacyBudget(BudgetKind.ZCDP, epsilon=1.0), "rho must be positive"),
    *(
        (lambda budget=budget, weights=weights: budget.split(*weights), "must be positive numbers")
        for budget in (PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(1.0), PrivacyBudget.approximate(1.0, 1e-6))
        for weights in ((), (1.0, 0.0), (1.0, -1.0), (math.inf, 1.0), (math.nan,))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("make", "said"), IMPOSSIBLE)
def test_a_budget_that_cannot_be_is_refused(make: Callable[[], object], said: str) -> None:
    with refused(said, (ValueError, TypeError)):
        make()


def test_the_largest_loss_is_a_budget_and_none_beyond() -> None:
    for make in (PrivacyBudget.pure, PrivacyBudget.zcdp):
        assert make(1e100) == make(10**100)
        with refused(POSITIVE):
            make(math.nextafter(1e100, math.inf))
        assert make(5e-324)


@pytest.mark.long
@given(budgets, st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6))
def test_parts_never_add_up_to_more_than_the_whole(budget: PrivacyBudget, weights: list[float]) -> None:
    parts = budget.split(*weights)
    for whole, pieces in [
        (budget.epsilon, [part.epsilon for part in parts]),
        (budget.delta, [part.delta for part in parts]),
        (budget.rho, [part.rho for part in parts]),
    ]:
        exact = sum((Fraction(piece) for piece in pieces), Fraction(0))
        assert exact <= Fraction(whole)
        assert float(exact) == pytest.approx(whole, rel=1e-12, abs=0)


@given(budgets, budgets)
def test_sums_round_up_and_cover_their_parts(first: PrivacyBudget, second: PrivacyBudget) -> None:
    if (first.kind is BudgetKind.ZCDP) != (second.kind is BudgetKind.ZCDP):
        with refused("budget do not add up: convert one (see"):
            first + second
        return
    if first.delta + second.delta >= 1:
        return
    total = first + second
    assert Fraction(total.epsilon) >= Fraction(first.epsilon) + Fraction(second.epsilon)
    assert Fraction(total.rho) >= Fraction(first.rho) + Fraction(second.rho)
    assert total.covers(first)
    assert total.covers(second)


def test_what_a_budget_implies_at_a_delta() -> None:
    budget = PrivacyBudget.approximate(1.0, 1e-6)
    assert budget.to_epsilon(1e-6) == budget.to_epsilon(1e-5) == 1.0
    with refused("is above the delta asked for"):
        budget.to_epsilon(math.nextafter(1e-6, 0.0))
    assert PrivacyBudget.pure(2.0).to_epsilon(1e-6) == 2.0
    with refused("no ρ implies a pure budget of"):
        PrivacyBudget.pure(2.0).to_rho()


@given(st.floats(1e-300, 1e12), st.integers(1, 8))
def test_words_never_say_less_than_was_spent(loss: float, digits: int) -> None:
    shown = float(no_less(loss, digits))
    assert loss <= shown <= loss * (1.0 + 1.01 * 10.0 ** (1 - digits))


# The statement of a release in words ------------------------------------------------------------------------------------


def statement(budget: PrivacyBudget, **changes: Any) -> PrivacyStatement:
    values: dict[str, Any] = {"neighbors": Neighbors.ADD_REMOVE, "arithmetic": "idealized", "private": True}
    return PrivacyStatement(budget, **(values | {"rules": RULES, "version": "7.8"} | changes))


def test_a_statement_has_the_losses_of_its_kind() -> None:
    losses = {
        PrivacyBudget.pure(0.3): (0.3, 0.0, None),
        PrivacyBudget.approximate(0.3, 1e-7): (0.3, 1e-7, None),
        PrivacyBudget.zcdp(0.3): (None, None, 0.3),
    }
    for budget, expected in losses.items():
        stated = statement(budget)
        assert (stated.epsilon, stated.delta, stated.rho) == expected
        assert PrivacyStatement.from_dict(stated.to_dict()) == stated


def test_words_of_a_statement_round_up() -> None:
    words = statement(PrivacyBudget.pure(1.0000049)).describe()
    assert "e^1.00001 times" in words
    assert "(ε-differential privacy, ε = 1.00001)" in words
    words = statement(PrivacyBudget.approximate(1.0000049, 1.0000049e-6)).describe()
    assert "e^1.00001 times" in words
    assert "plus 1.00001e-06 ((ε, δ)-differential privacy, ε = 1.00001, δ = 1.00001e-06)" in words
    for rho in (0.10000049, 0.5, 3.0):
        words = statement(PrivacyBudget.zcdp(rho)).describe()
        assert f"ρ = {no_less(rho)})" in words
        assert f"at most {no_less(rho)}·α for every α > 1" in words
        shown = re.search(r"implies ε = (\S+) at δ = 1e-06", words)
        assert shown is not None
        implied = PrivacyBudget.zcdp(rho).to_epsilon(1e-6)
        assert implied <= float(shown[1]) <= implied * 1.001
        assert len(shown[1].replace(".", "").lstrip("0")) == 4


def test_a_delta_of_any_number_type_is_kept_as_a_float() -> None:
    for delta in (Fraction(1, 8), np.float32(0.125), 0.125):
        kept = PrivacyBudget.approximate(1.0, delta)  # type: ignore[arg-type]
        assert type(kept.delta) is float
        assert kept == PrivacyBudget.approximate(1.0, 0.125)
    assert type(PrivacyBudget(BudgetKind.PURE, epsilon=1.0, delta=0).delta) is float


def test_a_pure_cost_fits_a_rho_of_half_its_square() -> None:
    for epsilon in (0.25, 0.5, 2.0, 8.0):
        pure, half_square = PrivacyBudget.pure(epsilon), epsilon**2 / 2
        assert PrivacyBudget.zcdp(half_square).covers(pure)
        assert not PrivacyBudget.zcdp(math.nextafter(half_square, 0.0)).covers(pure)
        assert not pure.covers(PrivacyBudget.zcdp(1e-9))
        assert not pure.covers(PrivacyBudget.pure(math.nextafter(epsilon, math.inf)))


@pytest.mark.parametrize("delta", [1e-9, 0.5])
def test_jointly_counted_draws_may_lose_whichever_rho_is_the_larger(delta: float) -> None:
    """The joint curve's for all budgets of use; where its margin has grown past its gain, what zCDP gives."""
    for epsilon, joint in ((1.0, True), (1e9, True), (1e16, False), (1e19, False)):
        budget = PrivacyBudget.approximate(epsilon, delta)
        allowed = allowance(budget, LossUnit.GAUSSIAN_RHO).amount
        assert allowed == (discrete_gaussian_rho(epsilon, delta) if joint else budget.to_rho())
        assert allowed >= budget.to_rho()
        assert (allowed > budget.to_rho()) is joint
