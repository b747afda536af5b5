"""A forecast runs the plan that a release runs: every mechanism, budget and relation, none without a number."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.additive import AdditivePlan, augmented_gram, taken_apart
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.planning import forecast_noise
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget, PrivacyRequest
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from support.said import refused

pytestmark = pytest.mark.long

N_ROWS = 150
BUDGETS: dict[str, dict[str, float]] = {
    "pure": dict(epsilon=1.0),
    "approximate": dict(epsilon=1.0, delta=1e-6),
    "zcdp": dict(rho=0.5),
}
SCHEMAS = {
    "unit ball": dpm.Schema.unit_ball(3),
    "columns": dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 1e5), dpm.Boolean("employed")),
    "rough scales": dpm.Schema.unbounded(3),
}
every_relation = pytest.mark.parametrize("neighbors", list(Neighbors))
every_budget = pytest.mark.parametrize("budget", BUDGETS)
every_schema = pytest.mark.parametrize("schema", SCHEMAS)


class PlannedError(Exception):
    """Carries the plan of a release, which stops before it reads a row."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan


def plan_of_a_release(
    name: str, schema: dpm.Schema, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> Plan | ValueError:
    """The plan for which a release opens its privacy filter, or its refusal."""

    def stop(plan: Plan, **_: Any) -> None:
        raise PlannedError(plan)

    table = np.zeros((N_ROWS, 3))
    with monkeypatch.context() as patched:
        patched.setattr(PrivacyFilter, "open", stop)
        try:
            dpm.release(table, schema, mechanism=make_mechanism(name), insecure_seed=0, **options)
        except PlannedError as planned:
            return planned.plan
        except ValueError as refusal:
            return refusal
    raise AssertionError("the release opened no filter")


def compared(schema: str, budget: str, neighbors: Neighbors, mean: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare the plan, or the refusal, of every mechanism."""
    options: dict[str, Any] = dict(neighbors=neighbors, mean=mean, **BUDGETS[budget])
    forecast = dpm.forecast(SCHEMAS[schema], n_rows=N_ROWS, **options)
    assert sorted(row.mechanism for row in forecast) == list(MECHANISMS)
    typical, spent = TypicalTable.of(SCHEMAS[schema]), PrivacyBudget.of(**BUDGETS[budget])
    for row in forecast:
        plan = plan_of_a_release(row.mechanism, SCHEMAS[schema], monkeypatch, **options)
        if isinstance(plan, ValueError):
            assert row.refusal == str(plan)
            assert (row.correlation_error, row.mean_error, row.arithmetic) == (None, None, None)
            continue
        assert row.refusal is None, row.mechanism
        assert row.arithmetic == str(plan.arithmetic)
        foreseen = ReleasePlan(
            typical, N_ROWS, PrivacyRequest(spent, neighbors), MECHANISMS[row.mechanism](), mean=mean
        ).plan
        assert foreseen == plan, row.mechanism
        assert row.mean_error is None or mean


@every_relation
@every_budget
@every_schema
@pytest.mark.parametrize("mean", [True, False])
def test_every_plan_is_that_of_a_release(
    schema: str, budget: str, neighbors: Neighbors, mean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared(schema, budget, neighbors, mean, monkeypatch)


def test_a_forecast_that_takes_a_private_number_of_rows_for_public_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: under add-remove the guessed number of rows goes into the plan, and divides its budget by it."""

    shape_of = MomentShape.of

    def with_the_guess(schema: dpm.Schema, *, mean: bool, n_rows: int | None = None) -> MomentShape:
        return shape_of(schema, mean=mean, n_rows=N_ROWS if n_rows is None else n_rows)

    forecast_noise._planned.cache_clear()
    monkeypatch.setattr(forecast_noise, "MomentShape", SimpleNamespace(of=with_the_guess))
    with pytest.raises(AssertionError):
        compared("unit ball", "pure", Neighbors.ADD_REMOVE, True, monkeypatch)
    compared("unit ball", "pure", Neighbors.REPLACE_ONE, True, monkeypatch)  # there it is public


@pytest.mark.parametrize(
    ("n_rows", "options"),
    [
        (1, {"epsilon": 1e60}),
        (2, {"rho": 1e90, "neighbors": "replace_one"}),
        (1000, {"epsilon": 1e100, "delta": 1e-300}),
        (10**12, {"epsilon": 1.0, "delta": 1e-6}),
    ],
)
def test_extreme_budgets_and_numbers_of_rows_have_a_forecast(n_rows: int, options: dict[str, Any]) -> None:
    """Sums beyond 64 bits stay whole numbers."""
    forecast = dpm.forecast(SCHEMAS["columns"], n_rows=n_rows, **options)
    assert forecast["auto"].refusal is None
    assert str(forecast)


def test_auto_takes_what_remains_where_a_candidate_refuses() -> None:
    shape = MomentShape(1000, mean=False)
    with refused("per entry would hide a table of any size: give a larger"):
        dpm.mechanisms.Laplace().plan(shape, PrivacyBudget.pure(1e-8), "add_remove")
    assert dpm.mechanisms.Auto().plan(shape, PrivacyBudget.pure(1e-8), "add_remove").mechanism.name == "matrix-laplace"
    with refused("per entry would hide a table of any size: give a larger"):
        dpm.mechanisms.Auto().plan(shape, PrivacyBudget.pure(1e-30), "add_remove")


# ---------------------------------------------------------------- errors of mechanisms


@dataclass(frozen=True)
class TightBallPlan(AdditivePlan):
    """Clips rows to a part of the ball."""

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        moments, w = rows.moments(radius=0.5, bits=self.bits), self.augmentation
        values = self.add_noise(privacy_filter, "count-sum-gram", augmented_gram(moments, w))
        result = taken_apart(values, w, self.released_count(moments.count, privacy_filter))
        assert result.sum is not None
        return replace(result, sum=result.sum * 0.5, gram=result.gram * 0.25, model=self.model)


class TightBall(dpm.mechanisms.Gaussian):
    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> AdditivePlan:
        plan = super().calibrate(shape, budget, neighbors)
        return TightBallPlan(**{entry.name: getattr(plan, entry.name) for entry in fields(plan)})


def test_errors_are_of_noise_and_of_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rho = SCHEMAS["columns"], 1e9  # clipping alone
    plain = dpm.forecast(schema, n_rows=100_000, rho=rho, mechanism="gaussian")
    assert plain["gaussian"].mean_error is not None
    assert plain["gaussian"].mean_error < 1e-4
    known = dpm.mechanisms.Gaussian, dict(MECHANISMS)
    monkeypatch.setitem(dpm.forecast.__globals__, "MECHANISMS", known[1] | {"gaussian": TightBall})
    monkeypatch.setattr("dpmoments.planning.forecast.make_mechanism", lambda _: TightBall())
    clipped = dpm.forecast(schema, n_rows=100_000, rho=rho, mechanism="gaussian")
    assert clipped.noise is not None
    rows = TypicalTable.of(schema).encoded(1024, mean=True)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    moved = rows * np.minimum(1.0, 0.5 / lengths)
    error = np.sqrt(np.mean(((moved.mean(axis=0) - rows.mean(axis=0)) / rows.std(axis=0)) ** 2))
    assert clipped["gaussian"].mean_error == pytest.approx(error, rel=0.01)
    shares = 1.0 - moved.std(axis=0) / rows.std(axis=0)
    np.testing.assert_allclose(clipped.noise.clipped_deviations, np.maximum(shares, 0.0), atol=2e-3)
    assert f"up to {shares.max():.0%} smaller" in str(clipped)
    assert "smaller" not in str(plain).split("what would help")[0]


def test_errors_of_means_are_root_mean_squares_in_standard_deviations() -> None:
    noise = dpm.forecast(SCHEMAS["columns"], n_rows=4096, epsilon=1.0, mechanism="laplace").noise
    assert noise is not None
    relative = noise.mean / noise.typical.standard_deviations
    assert noise.mean_error == pytest.approx(np.sqrt(np.mean(relative**2)), rel=1e-3)
    below = np.tril_indices(3, -1)
    assert noise.correlation_error == pytest.approx(np.sqrt(np.mean(noise.correlation[below] ** 2)), rel=1e-3)


def test_mechanisms_are_ordered_by_their_errors_and_hidden_correlations_count_as_lost() -> None:
    table = dpm.forecast(SCHEMAS["columns"], n_rows=300, epsilon=0.1, delta=1e-6)
    ran = [row for row in table if row.refusal is None]
    assert [row.errors for row in ran] == sorted(row.errors for row in ran)
    assert table["johnson-lindenstrauss"].correlation_error == pytest.approx(1.0, abs=0.1)
    with pytest.raises(KeyError):
        table["magic"]
