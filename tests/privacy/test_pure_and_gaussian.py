"""Pure and Gaussian draws in one run: what they may lose together, and receipts that say both."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpmoments.foundation.values import rounded_down
from dpmoments.ledger.accounts import losses_of
from dpmoments.messages.message import Message
from dpmoments.privacy import profile as profile_module
from dpmoments.privacy import receipt as receipt_module
from dpmoments.privacy.accounting import PURE_SHARE, Loss, LossUnit, allowance
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import gaussian_delta
from dpmoments.privacy.curves.zcdp import pure_to_zcdp, zcdp_delta
from dpmoments.privacy.filter import PrivacyFilterError
from dpmoments.privacy.laws import Choice, DiscreteLaplace
from dpmoments.privacy.profile import RunCurve
from dpmoments.privacy.receipt import Draw, Receipt, total_loss
from dpmoments.privacy.sensitivity import count_l1, rank_score
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from support.mixed_runs import CELL, CELLS, COST, FINE, MIXED, gaussian_of, opened, spent_whole
from support.said import Said, refused

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
COSTS = [
    COST,
    PrivacyBudget.approximate(3.0, 1e-9),
    PrivacyBudget.approximate(0.1, 1e-3),
    PrivacyBudget.approximate(8.0, 0.1),
]


# The theorem: what a worst pure pair and a Gaussian lose together ----------------------------------------------------------


def exact_delta(epsilon: float, pure: float, mu: float) -> float:
    """δ(ε) of randomized response and a Gaussian mechanism, exactly: the first loses ``pure``, with its sign at random."""

    def gaussian(at: float) -> float:
        if at >= 0.0:
            return gaussian_delta(at, mu, 1.0)
        return 1.0 - math.exp(at) * (1.0 - gaussian_delta(-at, mu, 1.0))

    likelier = 1.0 / (1.0 + math.exp(-pure))
    return likelier * gaussian(epsilon - pure) + (1.0 - likelier) * gaussian(epsilon + pure)


Allowed = Callable[[PrivacyBudget], Loss]


def keeps_its_cost(cost: PrivacyBudget, allowed: Allowed) -> bool:
    loss = allowed(cost)
    return exact_delta(cost.epsilon, float(loss.amount), math.sqrt(2.0 * float(loss.rho))) <= cost.delta


def honest(cost: PrivacyBudget) -> Loss:
    return allowance(cost, MIXED)


def with_all_of_epsilon(cost: PrivacyBudget) -> Loss:
    """A planted fault: Gaussian draws get ε instead of what pure ones leave."""
    return replace(honest(cost), rho=allowance(cost, LossUnit.GAUSSIAN_RHO).amount)


def with_a_tenth_too_much(cost: PrivacyBudget) -> Loss:
    """A planted fault: a tenth more ε for pure draws than what Gaussian ones leave."""
    return replace(honest(cost), amount=honest(cost).amount * Fraction(11, 10))


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_a_worst_pure_pair_and_a_gaussian_keep_the_cost(cost: PrivacyBudget) -> None:
    assert keeps_its_cost(cost, honest)
    assert not keeps_its_cost(cost, with_all_of_epsilon)
    assert not keeps_its_cost(cost, with_a_tenth_too_much)


def test_the_exact_curve_is_that_of_the_two_laws_together() -> None:
    """Against sums over a grid: the closed form is no formula of ours alone."""
    pure, mu = 0.8, 0.5
    x = np.linspace(-14.0, 14.0, 400_001)
    densities = [np.exp(-0.5 * (x - moved) ** 2) / math.sqrt(2.0 * math.pi) * (x[1] - x[0]) for moved in (0.0, mu)]
    high, low = 1.0 / (1.0 + math.exp(-pure)), 1.0 / (1.0 + math.exp(pure))
    p, q = (
        np.concatenate([high * densities[1], low * densities[1]]),
        np.concatenate([low * densities[0], high * densities[0]]),
    )
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert np.maximum(p - math.exp(epsilon) * q, 0.0).sum() == pytest.approx(
            exact_delta(epsilon, pure, mu), rel=1e-4
        )


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_the_share_of_pure_draws_is_exact_and_the_rest_is_for_gaussian_ones(cost: PrivacyBudget) -> None:
    allowed = allowance(cost, MIXED)
    pure = PURE_SHARE * Fraction(cost.epsilon)
    rest = PrivacyBudget.approximate(rounded_down(Fraction(cost.epsilon) - pure), cost.delta)
    assert (allowed.amount, allowed.delta) == (pure, 0)
    assert allowed.rho == allowance(rest, LossUnit.GAUSSIAN_RHO).amount
    assert allowed.amount + Fraction(rest.epsilon) <= Fraction(cost.epsilon)


# Sums -------------------------------------------------------------------------------------------------------------------


def test_both_parts_are_added_taken_away_and_compared() -> None:
    one, other = Loss(MIXED, Fraction(3), rho=Fraction(1, 8)), Loss(MIXED, Fraction(1), rho=Fraction(1, 16))
    assert one + other == Loss(MIXED, Fraction(4), rho=Fraction(3, 16))
    assert one - other == Loss(MIXED, Fraction(2), rho=Fraction(1, 16))
    assert other.within(one)
    assert one.within(one)
    for larger in (replace(one, amount=Fraction(4)), replace(one, rho=Fraction(1, 7))):
        assert not larger.within(one)
        with refused("loss-negative"):
            _ = one - larger
    assert one.counted_in(LossUnit.EPSILON) == Loss(LossUnit.EPSILON, Fraction(3))
    assert one.counted_in(LossUnit.GAUSSIAN_RHO) == Loss(LossUnit.GAUSSIAN_RHO, Fraction(1, 8))
    assert one.counted_in(MIXED) == one
    for unit in (LossUnit.RHO, LossUnit.EPSILON_DELTA):
        with refused("losses-of-other-units"):
            one.counted_in(unit)
    for unit, other_unit in itertools.permutations(LossUnit, 2):
        if unit is not MIXED:
            with refused("losses-of-other-units", first=unit, second=other_unit):
                Loss(unit, Fraction(1)).counted_in(other_unit)
    with refused("losses-of-two-kinds"):
        _ = one.as_budget
    assert str(one) == "ε = 3, ρ = 0.125"


def test_of_disjoint_groups_the_largest_of_each_part_counts() -> None:
    losses = {None: Loss(MIXED, Fraction(1), rho=Fraction(1))} | {
        name: Loss(MIXED, Fraction(pure), rho=Fraction(rho))
        for name, pure, rho in (("a", 5, 1), ("b", 2, 7), ("c", 3, 4))
    }
    assert total_loss(losses, MIXED, ADD) == Loss(MIXED, Fraction(6), rho=Fraction(8))
    assert total_loss(losses, MIXED, REPLACE) == Loss(MIXED, Fraction(9), rho=Fraction(12))


@pytest.mark.parametrize("unit", [None, PrivacyUnit("person", max_rows=3)], ids=["row", "unit"])
def test_a_run_can_spend_both_parts_and_nothing_more(unit: PrivacyUnit | None) -> None:
    receipt = spent_whole(unit)
    assert receipt.exhausts
    assert [(draw.loss.amount > 0, draw.loss.rho > 0) for draw in receipt.draws] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    k = receipt.rows_per_unit
    assert receipt.allowance.amount * k == allowance(COST, MIXED).amount
    assert receipt.allowance.rho * k**2 == allowance(COST, MIXED).rho
    for spent in ((0, 1), (1, 2)):  # one part alone is not all of it
        assert not replace(receipt, draws=tuple(receipt.draws[index] for index in spent)).exhausts
    for index in range(3):
        with refused("receipt-above-cost"):
            replace(receipt, draws=(*receipt.draws, receipt.draws[index]))


def test_a_budget_left_of_one_kind_pays_for_no_draw_of_the_other() -> None:
    allowed = allowance(COST, MIXED)
    opening = opened()
    opening.draw("all of ε", Choice(rounded_down(allowed.amount)), CELLS, rank_score(ADD))
    assert opening.left.rho == allowed.rho
    with refused("draw-over-budget", PrivacyFilterError):
        opening.draw("more of ε", Choice(1e-6), CELLS, rank_score(ADD))
    opening = opened()
    opening.draw("all of ρ", gaussian_of(allowed.rho), CELL, FINE)
    assert opening.left.amount == allowed.amount
    with refused("draw-over-budget", PrivacyFilterError):
        opening.draw("more of ρ", gaussian_of(allowed.rho / 10**6), CELL, FINE)


class IgnoresTheGaussianPart(Loss):
    """A planted fault."""

    def within(self, other: Loss) -> bool:
        return self.amount <= other.amount and self.delta <= other.delta


def test_a_comparison_of_one_part_would_let_the_other_through() -> None:
    allowed = allowance(COST, MIXED)
    both = Loss(MIXED, Fraction(0), rho=2 * allowed.rho)
    assert not both.within(allowed)
    assert IgnoresTheGaussianPart(both.unit, both.amount, both.delta, both.rho).within(allowed)


def test_parts_of_a_run_see_what_is_left_in_their_own_unit() -> None:
    opening, allowed = opened(), allowance(COST, MIXED)
    pure = opening.for_part(PrivacyBudget.pure(0.5))
    assert pure.unit is LossUnit.EPSILON
    assert pure.left == Loss(LossUnit.EPSILON, Fraction(0.5))
    pure.draw("pure", Choice(0.2), CELLS, rank_score(ADD))
    opening.draw("beside it", gaussian_of(allowed.rho / 2), CELL, FINE)
    assert pure.left == Loss(LossUnit.EPSILON, Fraction(0.5) - Fraction(0.2))
    gaussian = opening.for_part(PrivacyBudget.zcdp(rounded_down(opening.left.rho)))
    assert gaussian.unit is LossUnit.GAUSSIAN_RHO
    pure.draw("pure again", Choice(0.1), CELLS, rank_score(ADD))
    assert gaussian.left.amount == Fraction(rounded_down(opening.left.rho))
    with refused("draw-over-budget", PrivacyFilterError):
        pure.draw("beyond the run", Choice(0.9), CELLS, rank_score(ADD))


# Files ------------------------------------------------------------------------------------------------------------------

WHOLE = spent_whole()


def test_a_receipt_is_read_as_it_was_written() -> None:
    content = json.loads(json.dumps(WHOLE.to_dict()))
    assert Receipt.from_dict(content) == WHOLE
    unit = PrivacyUnit("person", max_rows=3)
    assert Receipt.from_dict(json.loads(json.dumps(spent_whole(unit).to_dict()))) == spent_whole(unit)


def test_receipts_of_other_units_have_no_entry_more() -> None:
    law = DiscreteLaplace(2.0)
    draw = Draw(Message("count"), law, count_l1(ADD), law.loss(count_l1(ADD), LossUnit.EPSILON), 1)
    content = Receipt(ADD, PrivacyBudget.pure(1.0), LossUnit.EPSILON, (draw,)).to_dict()
    assert content.keys() == receipt_module._RECEIPT_ENTRIES
    assert content["draws"][0].keys() == receipt_module._DRAW_ENTRIES
    for place in (content, content["draws"][0]):
        for entry in ("rho", "allowance_rho"):
            place[entry] = 0.0
            with refused("unknown-entries"):
                Receipt.from_dict(content)
            del place[entry]


def first(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(content: dict[str, Any]) -> None:
        draw = content["draws"][0]
        draw[name] = value(draw[name]) if callable(value) else value

    return edit


def between(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(content: dict[str, Any]) -> None:
        draw = content["draws"][1]
        draw[name] = value(draw[name]) if callable(value) else value

    return edit


def of_receipt(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update({name: value(content[name]) if callable(value) else value})


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (between("rho", lambda rho: rho / 2), Said("draw-with-other-loss")),
        (between("rho", "much"), Said("draw-not-finite")),
        (between("rho", math.nan), Said("draw-not-finite")),
        (first("rho", 1e-9), Said("draw-with-other-loss")),
        (between("loss", 1e-9), Said("draw-with-other-loss")),
        (first("loss", lambda loss: loss / 2), Said("draw-with-other-loss")),
        (of_receipt("allowance_rho", lambda rho: 2 * rho), Said("receipt-allowance")),
        (of_receipt("allowance_rho", None), Said("receipt-allowance")),
        (of_receipt("allowance", lambda epsilon: 2 * epsilon), Said("receipt-allowance")),
        (of_receipt("cost", PrivacyBudget.pure(1.0).to_dict()), Said("losses-not-a-cost")),
        (of_receipt("cost", PrivacyBudget.zcdp(1.0).to_dict()), Said("losses-not-a-cost")),
        (of_receipt("loss_unit", "gaussian-rho"), Said("unknown-entries")),
        (of_receipt("draws", lambda draws: [*draws, draws[0]]), Said("receipt-above-cost")),
        (of_receipt("draws", lambda draws: [*draws, draws[1]]), Said("receipt-above-cost")),
    ],
)  # fmt: skip
def test_a_receipt_that_was_changed_is_refused(edit: Callable[[dict[str, Any]], None], said: Said) -> None:
    content = json.loads(json.dumps(WHOLE.to_dict()))
    edit(content)
    with refused(said.code, (KeyError, TypeError, ValueError), **said.facts):
        Receipt.from_dict(content)


def test_a_receipt_without_the_part_of_gaussian_draws_is_refused() -> None:
    for index, entry in ((None, "allowance_rho"), (0, "rho"), (1, "rho")):
        content = json.loads(json.dumps(WHOLE.to_dict()))
        del (content if index is None else content["draws"][index])[entry]
        with pytest.raises(KeyError) as caught:
            Receipt.from_dict(content)
        assert caught.value.args == (entry,)


def test_a_receipt_of_too_many_coordinates_or_of_other_laws_is_refused() -> None:
    wide = replace(WHOLE.draws[1], size=2**30 + 1)
    with refused("receipt-of-many-coordinates"):
        replace(WHOLE, draws=(wide,))
    content = json.loads(json.dumps(WHOLE.to_dict()))
    content["draws"][1]["law"]["scale"] = 1e5
    with refused("noise-too-small-for-lattice"):
        Receipt.from_dict(content)


# What is stated of a run, and what a ledger counts -------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["adaptive-ball", "matrix-laplace"])
def test_the_profile_lies_between_the_exact_curve_and_the_cost(mechanism: str) -> None:
    curve, mu = RunCurve.of(WHOLE, mechanism), math.sqrt(2.0 * float(WHOLE.allowance.rho))
    pure = float(WHOLE.allowance.amount)
    for epsilon in (0.25, 0.5, 0.9, 0.95, 1.0, 1.1):
        delta = curve.at(epsilon).delta
        assert delta >= exact_delta(epsilon, pure, mu)
        if epsilon >= 1.0:
            assert delta <= COST.delta * (1.0 + 1e-6)
    assert curve.at(1.1).delta < 0.1 * COST.delta
    assert curve.mu is None
    assert 0.95 < curve.profile.epsilon_at_reference <= 1.0 + 1e-6


def test_no_delta_of_normal_noise_is_nothing() -> None:
    concentrated = Receipt(ADD, PrivacyBudget.zcdp(1e-4), LossUnit.RHO, ())
    joint = Receipt(ADD, COST, LossUnit.GAUSSIAN_RHO, ())
    for receipt in (WHOLE, concentrated, joint):
        point = RunCurve((profile_module._proven_bounds(receipt, (), False),), receipt.cost, None).at(100.0)
        assert (point.delta, point.exact) == (math.ulp(0.0), False)


def counted_in_rho(cost: PrivacyBudget, losses: Callable[..., Any] = losses_of) -> float:
    return float(losses(cost, MIXED, ADD, ADD).rho)


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_a_ledger_counts_both_parts(cost: PrivacyBudget) -> None:
    losses = losses_of(cost, MIXED, ADD, ADD)
    allowed = allowance(cost, MIXED)
    assert (losses.epsilon, losses.delta) == (Fraction(str(cost.epsilon)), Fraction(str(cost.delta)))
    assert float(losses.rho) == pytest.approx(pure_to_zcdp(float(allowed.amount)) + float(allowed.rho), rel=1e-12)
    assert losses.rho >= allowed.rho
    assert losses.mu_squared is None
    assert not losses.gaussian
    twice = losses_of(cost, MIXED, ADD, REPLACE)
    assert (twice.epsilon, twice.rho) == (2 * losses.epsilon, 4 * losses.rho)


@pytest.mark.parametrize("cost", COSTS, ids=str)
def test_the_rho_of_a_ledger_covers_the_exact_loss(cost: PrivacyBudget) -> None:
    """The Rényi divergence of the worst pair at many orders is no more than α times it, and near it for some α."""
    allowed = allowance(cost, MIXED)
    pure, gaussian = float(allowed.amount), float(allowed.rho)
    rho, high = counted_in_rho(cost), 1.0 / (1.0 + math.exp(-pure))

    def divergence(order: float) -> float:
        terms = [
            order * a + (1.0 - order) * b
            for a, b in ((math.log(high), math.log1p(-high)), (math.log1p(-high), math.log(high)))
        ]
        return float(np.logaddexp(*terms)) / (order - 1.0) + order * gaussian

    orders = [1.0 + 1e-4, 1.5, 2.0, 5.0, 50.0]
    assert all(divergence(order) <= order * rho * (1.0 + 1e-9) for order in orders)
    assert any(divergence(order) > order * (rho - 0.5 * gaussian) for order in orders)
    assert zcdp_delta(rho, cost.epsilon) > 0.0
