"""A forecast states the error of the plan that a release makes: every mechanism, budget and relation, none without a number."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.gaussian import GaussianPlan
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.mechanisms.synthetic_spectrum import ErrorsOnTable, SyntheticSpectrum
from dpmoments.noise.models import AdditiveModel
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from support.said import Said, refused

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


def compared(schema: str, budget: str, neighbors: Neighbors, mean: bool, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare every mechanism; how many have an error that does not depend on the table."""
    options: dict[str, Any] = dict(neighbors=neighbors, mean=mean, **BUDGETS[budget])
    forecast = dpm.forecast(SCHEMAS[schema], n_rows=N_ROWS, **options)
    assert sorted(row.mechanism for row in forecast) == list(MECHANISMS)
    known = 0
    for row in forecast:
        plan = plan_of_a_release(row.mechanism, SCHEMAS[schema], monkeypatch, **options)
        if isinstance(plan, ValueError):
            assert row.refusal == str(plan)
            assert (row.second_moment_error, row.mean_error, row.arithmetic) == (None, None, None)
            continue
        assert row.refusal is None, row.mechanism
        assert row.arithmetic == str(plan.arithmetic)
        filters = (PrivacyFilter.open(plan, insecure_seed=seed) for seed in range(plan.measured_runs))
        errors = plan.errors_on(forecast.assumption.table(N_ROWS), filters)
        assert row.second_moment_error == errors.gram / N_ROWS, row.mechanism
        assert row.mean_error == (None if errors.sum is None else errors.sum / N_ROWS), row.mechanism
        assert (row.assumed, row.mean_assumed) == (errors.gram_assumed, errors.sum_assumed)
        assert row.second_moment_error > 0.0
        assert (row.mean_error is None) != mean
        if not row.assumed:
            assert plan.expected_error is not None
            assert row.second_moment_error == plan.expected_error / N_ROWS
        known += not row.assumed
    return known


@every_relation
@every_budget
@every_schema
@pytest.mark.parametrize("mean", [True, False])
def test_every_error_is_that_of_the_plan_of_a_release(
    schema: str, budget: str, neighbors: Neighbors, mean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = compared(schema, budget, neighbors, mean, monkeypatch)
    assert (known > 0) == (schema != "rough scales")


def test_the_plan_is_that_of_a_release_that_runs() -> None:
    """Without the stop: the noise law of the release has the error that was forecast."""
    table = np.random.default_rng(0).uniform(-0.5, 0.5, (N_ROWS, 3))
    for neighbors in Neighbors:
        options: dict[str, Any] = dict(epsilon=1.0, neighbors=neighbors)
        forecast = dpm.forecast(SCHEMAS["unit ball"], n_rows=N_ROWS, **options)
        for name in ("isotropic", "laplace", "matrix-laplace"):
            law = dpm.release(table, SCHEMAS["unit ball"], mechanism=name, insecure_seed=0, **options).noise_model
            assert isinstance(law, AdditiveModel)
            assert law.sum_error is not None
            assert forecast[name].second_moment_error == law.frobenius_error / N_ROWS
            assert forecast[name].mean_error == law.sum_error / N_ROWS


def test_a_forecast_that_takes_a_private_number_of_rows_for_public_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: under add-remove the guessed number of rows goes into the plan, and divides its budget by it."""
    original = MomentShape.of

    def with_the_guess(schema: dpm.Schema, *, mean: bool, n_rows: int | None = None) -> MomentShape:
        return original(schema, mean=mean, n_rows=N_ROWS if n_rows is None else n_rows)

    class FaultyShape:
        of = staticmethod(with_the_guess)

    monkeypatch.setitem(dpm.forecast.__globals__, "MomentShape", FaultyShape)
    with pytest.raises(AssertionError, match="iterative-eigenvectors"):
        compared("unit ball", "pure", Neighbors.ADD_REMOVE, True, monkeypatch)
    compared("unit ball", "pure", Neighbors.REPLACE_ONE, True, monkeypatch)  # there it is public


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 1e60},
        {"epsilon": 1e100},
        {"rho": 1e90},
        {"epsilon": 1e60, "delta": 1e-6},
        {"epsilon": 1e100, "delta": 1e-300},
    ],
)
def test_extreme_budgets_have_a_forecast(budget: dict[str, float], neighbors: str) -> None:
    forecast = dpm.forecast(dpm.Schema.unit_ball(4), n_rows=1000, neighbors=neighbors, **budget)
    assert forecast["auto"].refusal is None


def test_auto_takes_what_remains_where_a_candidate_refuses() -> None:
    shape = MomentShape(1000, mean=False)
    with refused("budget-too-small"):
        dpm.mechanisms.Laplace().plan(shape, PrivacyBudget.pure(1e-8), "add_remove")
    assert dpm.mechanisms.Auto().plan(shape, PrivacyBudget.pure(1e-8), "add_remove").mechanism.name == "matrix-laplace"
    with refused("budget-too-small"):
        dpm.mechanisms.Auto().plan(shape, PrivacyBudget.pure(1e-30), "add_remove")


# ---------------------------------------------------------------- what is assumed


@dataclass(frozen=True)
class TightBallPlan(GaussianPlan):
    """Clips rows to half the ball, and has no closed form of its error."""

    def exact_errors_on(self, assumed: SyntheticSpectrum) -> ErrorsOnTable | None:
        del assumed

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        result = self.released(rows.moments(radius=0.5, bits=self.bits), privacy_filter)
        assert result.sum is not None
        return replace(result, sum=result.sum * 0.5, gram=result.gram * 0.25)


class TightBall(dpm.mechanisms.Gaussian):
    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> GaussianPlan:
        plan = super().calibrate(shape, budget, neighbors)
        return TightBallPlan(**{entry.name: getattr(plan, entry.name) for entry in fields(plan)})


def test_a_forecast_of_clipped_rows_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(dpm.forecast.__globals__, "MECHANISMS", {"tight-ball": TightBall})
    table = dpm.forecast(SCHEMAS["columns"], n_rows=1000, rho=0.5)
    assert table["tight-ball"].clipped > 0.1
    assert table["tight-ball"].assumed
    assert (
        f"errors include the clipping of assumed rows: tight-ball ({table['tight-ball'].clipped:.2g} of them)"
        in str(table)
    )
    assert table.to_dict()["mechanisms"][0]["clipped"] == table["tight-ball"].clipped
    monkeypatch.undo()
    plain = dpm.forecast(SCHEMAS["columns"], n_rows=1000, rho=0.5)
    assert plain["gaussian"].clipped == plain["iterative-eigenvectors"].clipped == 0.0


def test_what_does_not_depend_on_the_table_is_not_marked_and_does_not_move() -> None:
    options: dict[str, Any] = dict(n_rows=1000, epsilon=1.0, delta=1e-6)
    plain = dpm.forecast(dpm.Schema.unit_ball(4), **options)
    steep = dpm.forecast(dpm.Schema.unit_ball(4), spectrum=[0.2, 0.0, 0.0, 0.0], **options)
    for row in plain:
        if row.refusal is None and not row.assumed:
            assert steep[row.mechanism].second_moment_error == row.second_moment_error
        elif row.refusal is None:
            assert steep[row.mechanism].second_moment_error != row.second_moment_error
    assert {row.mechanism for row in plain if row.assumed} == {
        "adaptive-ball",
        "auto",
        "coinpress",
        "inverse-wishart",
        "johnson-lindenstrauss",
    }
    assert "~" in plain["coinpress"].second_moment_shown
    assert "~" not in plain["gaussian"].second_moment_shown
    assert "~ assumes: normal rows, eigenvalues of their second moment as 1/i with sum 1" in str(plain)
    assert "~ assumes: normal rows, eigenvalues of their second moment 0.2, 0, 0, …, as given" in str(steep)
    pure = dpm.forecast(dpm.Schema.unit_ball(1), n_rows=10, epsilon=1.0)
    assert pure["iterative-eigenvectors"].assumed
    assert not pure["iterative-eigenvectors"].mean_assumed


def test_the_assumption_follows_the_schema_and_the_decay() -> None:
    def spectrum(schema: str, **options: Any) -> list[float]:
        table = dpm.forecast(SCHEMAS[schema], n_rows=100, rho=0.5, **options)
        return [round(value, 9) for value in table.assumption.spectrum]

    assert spectrum("unit ball") == [round(6 / 11, 9), round(3 / 11, 9), round(2 / 11, 9)]
    assert sum(spectrum("columns")) == pytest.approx(0.5)
    assert spectrum("unit ball", decay=0.0) == [round(1 / 3, 9)] * 3
    assert spectrum("columns", spectrum=[0.1, 0.5, 0.0]) == [0.5, 0.1, 0.0]
    table = dpm.forecast(dpm.Schema(dpm.Numeric("a", scale=(1, 1e4)), dpm.Boolean("b")), n_rows=5000, rho=0.5)
    assert table.assumption.units == pytest.approx((1.0, 0.1**0.5))
    assert table.assumption.spectrum == (1.0, 1.0)
    assert "in assumed standard deviations" in str(table)
    assert table["coinpress"].assumed
    assert table["coinpress"].mean_assumed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(spectrum=[0.1, 0.1]), Said("spectrum-of-other-length", eigenvalues=2, features=3)),
        (dict(spectrum=[0.5, 0.5, 0.5]), Said("spectrum-too-large", sum=1.5)),
        (dict(spectrum=[0.5, -0.1, 0.1]), Said("spectrum-negative")),
        (dict(spectrum=[0.5, float("nan"), 0.1]), Said("spectrum-negative")),
        (dict(spectrum=[0.1] * 3, decay=1.0), Said("spectrum-and-decay")),
        (dict(decay=-1.0), Said("decay-out-of-range", decay=-1.0)),
        (dict(decay=float("inf")), Said("decay-out-of-range")),
    ],
)
def test_an_impossible_assumption_is_refused(options: dict[str, Any], said: Said) -> None:
    with refused(said):
        dpm.forecast(SCHEMAS["unit ball"], n_rows=100, epsilon=1.0, **options)


def test_auto_chooses_as_before_whatever_is_assumed() -> None:
    """Mechanisms whose error is assumed are no candidates, however small it is."""
    for budget in BUDGETS.values():
        plan = dpm.mechanisms.Auto().plan(MomentShape(2), PrivacyBudget.of(**budget), "add_remove")
        for spectrum in (None, [1e-9, 0.0]):
            table = dpm.forecast(dpm.Schema.unit_ball(2), n_rows=10**6, spectrum=spectrum, **budget)  # type: ignore[arg-type]
            assert not table["auto"].assumed
            assert plan.expected_error is not None
            assert table["auto"].second_moment_error == plan.expected_error / 10**6
            assert plan.mechanism.name in ("gaussian", "matrix-laplace", "isotropic", "laplace")
