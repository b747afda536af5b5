"""Auto: which plan it takes, what it asks of a budget, and what it says where none will do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import Recorder
from dpmoments.mechanisms.additive import Gaussian, Laplace, MatrixLaplace
from dpmoments.mechanisms.auto import _CANDIDATES
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.coinpress import CoinPressPlan
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from dpmoments.schema.encoding import RoughScale
from support.said import refused

AUTO = dpm.mechanisms.Auto()
PURE, ZCDP, APPROXIMATE = PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(1.0, 1e-6)
ROUGH = RoughScale(least=(1.0,) * 3, largest=(10.0,) * 3, radius=(0.5,) * 3, span=(0.0,) * 3)
NO_BOUND = MomentShape(3, n_rows=100, row_norm=None)
SCALED = MomentShape(3, n_rows=100, row_norm=None, rough_scale=ROUGH)


@pytest.mark.parametrize("budget", [PURE, ZCDP, APPROXIMATE], ids=str)
@pytest.mark.parametrize("d", [1, 2, 5, 13, 60])
@pytest.mark.parametrize("mean", [True, False])
def test_the_plan_is_the_candidate_of_the_least_error(budget: PrivacyBudget, d: int, mean: bool) -> None:
    """Under (ε, δ) the pure ones at ε alone; under ρ none of them."""
    shape, errors = MomentShape(d, n_rows=500, mean=mean), {}
    names: dict[str, Mechanism] = {
        one.name: one for one in (MatrixLaplace(), dpm.mechanisms.Isotropic(), Gaussian(), Laplace())
    }
    assert {one.name for one in _CANDIDATES} == set(names)
    for name, mechanism in names.items():
        spend = (
            PrivacyBudget.pure(1.0) if budget is APPROXIMATE and budget.kind not in mechanism.budget_kinds else budget
        )
        if spend.kind in mechanism.budget_kinds:
            errors[name] = mechanism.plan(shape, spend, "replace_one").expected_error or math.inf
    chosen = AUTO.plan(shape, budget, "replace_one")
    assert chosen.mechanism.name == min(errors, key=errors.__getitem__)
    assert chosen.expected_error == min(errors.values())
    assert budget.covers(chosen.cost)
    assert chosen.chosen_because is not None
    best, *others = sorted(errors, key=errors.__getitem__)
    assert chosen.chosen_because.facts.get("second") == (others[0] if others else None)
    assert chosen.chosen_because.facts.get("times", 1.0) == errors[others[0] if others else best] / errors[best]


NUMBERS = tuple(dpm.Numeric(f"x{j}", 0, 1) for j in range(4))
FLAGS = tuple(dpm.Boolean(f"b{j}") for j in range(10))


@pytest.mark.parametrize(
    "columns", [NUMBERS[:1], NUMBERS, FLAGS, (*FLAGS, NUMBERS[0]), (dpm.Categorical("c", tuple("abcdef")), *FLAGS[:2])]
)
@pytest.mark.parametrize("budget", [PURE, ZCDP, APPROXIMATE], ids=str)
def test_columns_with_bounds_are_standardized_where_a_mean_is_released(
    columns: tuple[Any, ...], budget: PrivacyBudget
) -> None:
    schema = dpm.Schema(*columns)
    plan = AUTO.plan(MomentShape.of(schema, mean=True), budget, "add_remove")
    assert plan.mechanism.name == "standardized"
    assert plan.chosen_because is not None
    assert plan.chosen_because.code == "rough-private-scales"
    for shape in (MomentShape.of(schema, mean=False), MomentShape.of(dpm.Schema.unit_ball(4), mean=True)):
        other = AUTO.plan(shape, budget, "add_remove")
        assert other.chosen_because is not None
        assert (other.mechanism.name == "standardized", other.chosen_because.code) == (False, "least-error")
    least = dpm.mechanisms.Auto(rule="least-error").plan(MomentShape.of(schema, mean=True), budget, "add_remove")
    assert least.mechanism.name in {one.name for one in _CANDIDATES}


def test_columns_with_a_scale_go_to_coinpress() -> None:
    for budget in (ZCDP, APPROXIMATE):
        plan = AUTO.plan(SCALED, budget, "replace_one")
        assert isinstance(plan, CoinPressPlan)
        assert plan == dpm.mechanisms.CoinPress().plan(SCALED, budget, "replace_one")
    with refused("needs bounds on every column, and some have a scale range"):
        AUTO.check_support(SCALED, PURE, dpm.privacy.unit.Neighbors.REPLACE_ONE)
    with refused("needs bounds on every column, and some have a scale range"):
        AUTO.plan(SCALED, PURE, "replace_one")
    with refused("'log-scale-histogram' does not take sampling weights"):
        AUTO.check_support(MomentShape(1, row_norm=None, weight_bits=20), PURE, dpm.privacy.unit.Neighbors.REPLACE_ONE)


@pytest.mark.parametrize("budget", [PURE, ZCDP, APPROXIMATE], ids=str)
def test_rows_of_which_nothing_is_known_are_refused(budget: PrivacyBudget) -> None:
    with refused("needs a bound on the norm of a row and the schema gives"):
        AUTO.plan(NO_BOUND, budget, "replace_one")


def test_a_schema_in_the_ball_goes_to_no_coinpress_though_columns_have_scales() -> None:
    bounded = MomentShape(3, n_rows=100, rough_scale=ROUGH)
    for budget in (PURE, ZCDP, APPROXIMATE):
        assert AUTO.plan(bounded, budget, "replace_one").mechanism.name != "coinpress"


def test_of_several_refusals_the_first_candidates_is_said() -> None:
    """Each names the noise that it would need, which is another for each."""
    shape, budget = MomentShape(1000, mean=False), PrivacyBudget.pure(1e-30)

    def refusal(mechanism: Mechanism) -> str:
        with refused("per entry would hide a table of any size: give a larger") as caught:
            mechanism.plan(shape, budget, "add_remove")
        return str(caught.value)

    said = [refusal(mechanism) for mechanism in _CANDIDATES if PURE.kind in mechanism.budget_kinds]
    assert len(set(said)) == len(said) == 3
    assert refusal(AUTO) == said[0]


@pytest.mark.parametrize("budget", [PURE, ZCDP, APPROXIMATE], ids=str)
def test_the_number_of_rows_is_paid_for_once(budget: PrivacyBudget) -> None:
    """Where rules drop rows and no mean is wanted it has a draw of its own: 5 % of ρ, 10 % of ε."""
    schema = dpm.Schema.unit_ball(3, missing="drop")
    shape = MomentShape.of(schema, mean=False, n_rows=200)
    plan = AUTO.plan(shape, budget, "replace_one")
    rows = Rows.of(np.random.default_rng(0).normal(0.0, 0.2, (200, 3)), schema, mean=False, neighbors="replace_one")
    recorder = Recorder(plan, insecure_generator(0))
    plan.run(rows, recorder)
    counts: list[Any] = [exchange.made for exchange in recorder.exchanges if exchange.made.what.code == "count"]
    receipt = recorder.close()
    assert len(counts) == 1
    assert float(counts[0].loss.amount / receipt.allowance.amount) == pytest.approx(0.05 if budget is ZCDP else 0.1)
    assert receipt.exhausts
