"""The forecast in the table's units: what a release says afterwards, what simulated noise does, and what it takes for less."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.planning.changes import Wanted, changes
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget, PrivacyRequest
from dpmoments.privacy.unit import Neighbors
from support.said import Said, refused

pytestmark = pytest.mark.long

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 2e5), dpm.Boolean("smoker"), dpm.Categorical("region", ["n", "s", "e"])
)  # fmt: skip
NUMBERS = dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 100) for place in range(6)))
SPREADS = {"age": 18.0, "income": 30_000.0}
BUDGETS: tuple[dict[str, float], ...] = (dict(epsilon=1.0), dict(epsilon=1.0, delta=1e-6), dict(rho=0.3))
N_ROWS = 4000


def people(n_rows: int = N_ROWS) -> Any:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "age": rng.normal(45, 18, n_rows).clip(0, 100),
            "income": rng.normal(60_000, 30_000, n_rows).clip(0, 2e5),
            "smoker": rng.random(n_rows) < 0.3,
            "region": rng.choice(["n", "s", "e"], n_rows, p=[0.5, 0.3, 0.2]),
        }
    )


def setting(mechanism: str, schema: dpm.Schema = SCHEMA, n_rows: int = N_ROWS, **options: Any) -> ReleasePlan:
    neighbors = options.pop("neighbors", "add_remove")
    budget = PrivacyBudget.of(**{key: options.pop(key) for key in ("epsilon", "delta", "rho") if key in options})
    typical = TypicalTable.of(schema, **options)
    return ReleasePlan(typical, n_rows, PrivacyRequest(budget, Neighbors.of(neighbors)), MECHANISMS[mechanism]())


CASES = [("matrix-laplace", BUDGETS[0]), ("gaussian", BUDGETS[2])]


def test_noise_means_the_same_in_every_part_of_a_forecast() -> None:
    table = dpm.forecast(SCHEMA, n_rows=120, epsilon=0.5, typical_sd=SPREADS)
    noise = table.noise_of("laplace")
    hidden = noise.release.correlations().privacy_noise[0, 1]
    assert math.isinf(noise.typical_correlation())
    assert math.isnan(hidden)
    assert math.isinf(noise.smallest_correlations()[0])
    assert table["laplace"].correlation_error == pytest.approx(1.0, abs=0.3)
    assert noise.regression is not None
    assert noise.regression.target in ("age", "income")  # a number, where there is one


# ---------------------------------------------------------------- turned round


WANTED: tuple[dict[str, Any], ...] = (
    dict(correlation=0.03),
    dict(coefficient=0.05),
    dict(mean={"age": 0.5}),
    dict(sd={"income": 900.0}),
    dict(share=0.01),
    dict(share={"smoker": 0.01}, mean={"age": 0.2}),
)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", range(len(BUDGETS)))
def test_rows_and_budgets_needed_are_the_smallest(kind: int, neighbors: str) -> None:
    """The typical rows of n and n − 1 rows differ a little: rows are the smallest to within a fiftieth."""
    budget, mechanism = BUDGETS[kind], ("standardized", "gaussian", "gaussian")[kind]
    options: dict[str, Any] = dict(neighbors=neighbors, typical_sd=SPREADS)
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, **budget, **options)
    for wanted in WANTED[:3] if neighbors == "add_remove" else WANTED[3:]:
        goal = Wanted(table.noise.typical, **wanted)  # type: ignore[union-attr]

        def holds(
            n_rows: int, budget: dict[str, float], name: str = mechanism, goal: Wanted = goal, options: Any = options
        ) -> bool:
            return goal.holds(setting(name, n_rows=n_rows, **budget, **options))

        rows = table.rows_needed(mechanism=mechanism, **wanted)
        assert holds(rows, budget)
        assert not holds(int(rows * 0.98), budget)
        needed = table.rho_needed if "rho" in budget else table.epsilon_needed
        size = needed(mechanism=mechanism, **wanted)
        name = "rho" if "rho" in budget else "epsilon"
        assert holds(N_ROWS, budget | {name: size})
        assert not holds(N_ROWS, budget | {name: size * (1.0 - 3e-6)})


def test_what_cannot_be_needed_is_refused() -> None:
    table = dpm.forecast(SCHEMA, n_rows=30, rho=1.0)
    refusals: list[tuple[dict[str, Any], str]] = [
        ({}, "say what is wanted: correlation=0.02, mean={"),
        (dict(correlation=0.0), "correlation: 0.0 must be a positive finite number"),
        (dict(correlation=float("nan")), "must be a positive finite number"),
        (dict(mean={"Age": 1.0}), "'Age'"),
        (dict(mean={"smoker": 1.0}), "share"),
        (dict(share={"age": 0.1}), "mean or sd"),
        (dict(mean={"age": -1.0}), "mean of 'age'"),
        (dict(mechanism="magic", correlation=0.1), "Unknown "),
    ]
    for wanted, said in refusals:
        for needed in (table.rows_needed, table.rho_needed):
            with refused(said):
                needed(**wanted)


@pytest.mark.slow
def test_an_accuracy_out_of_reach_is_refused() -> None:
    table = dpm.forecast(SCHEMA, n_rows=30, rho=1.0)
    with refused("rows: give a larger budget, or ask for less"):
        table.rows_needed(mean={"age": 1e-14})
    with refused("more rows, fewer columns or tighter bounds would do more", symbol="ρ"):
        table.rho_needed(mean={"age": 1e-14})


# ---------------------------------------------------------------- what to change


def test_each_change_is_what_a_forecast_of_it_says() -> None:
    before = setting("matrix-laplace", NUMBERS, epsilon=1.0)
    found = {change.kind: change for change in changes(before)}
    assert {"column", "columns", "bounds", "budget", "rows"} <= set(found)
    assert [change.ratio for change in changes(before)] == sorted(change.ratio for change in found.values())
    assert before.noise is not None
    now = before.noise.typical_correlation()
    left = found["column"].what.removeprefix("without ")
    less = dpm.Schema(*(column for column in NUMBERS.table_columns if column.name != left))
    then = setting("matrix-laplace", less, epsilon=1.0).noise
    assert then is not None
    assert found["column"].after == pytest.approx(then.typical_correlation(), rel=1e-9)
    assert found["column"].before == pytest.approx(
        before.noise.typical_correlation([NUMBERS.names.index(name) for name in less.names]), rel=1e-12
    )
    twice = setting("matrix-laplace", NUMBERS, 2 * N_ROWS, epsilon=1.0).noise
    assert twice is not None
    assert found["rows"].before == now
    assert found["rows"].after == pytest.approx(twice.typical_correlation(), rel=1e-12)
    assert found["rows"].ratio == pytest.approx(0.5, rel=0.02)
    assert found["bounds"].ratio < 0.6


def test_the_only_column_that_no_goal_names_is_left_out_once() -> None:
    goals = dpm.Schema(*NUMBERS.columns[:2], goals=["mean(x0) ± 10"]).goals
    plan = setting("matrix-laplace", dpm.Schema(*NUMBERS.columns[:2]), 300, epsilon=0.3)
    found = {change.kind: change.what for change in changes(plan, goals, goals[0])}
    assert found["columns"] == "without x1, which no goal names"
    assert "column" not in found


@pytest.mark.slow
def test_dropping_rows_with_missing_values_is_planned_where_available_costs_more() -> None:
    def schema(missing: Any) -> dpm.Schema:
        first = dpm.Numeric("age", 0, 100, missing=missing)
        return dpm.Schema(first, dpm.Numeric("debt", 0, 10), dpm.Boolean("smoker", missing=missing))

    found = dpm.forecast(schema("available"), n_rows=20_000, epsilon=1.0, mechanism="laplace")
    [change] = [change for change in found.changes if change.kind == "complete"]
    then = setting("laplace", schema("drop"), 15_000, epsilon=1.0).noise
    assert then is not None
    assert change.after == pytest.approx(then.typical_correlation(), rel=1e-9)
    assert "complete" not in {change.kind for change in dpm.forecast(schema("drop"), n_rows=999, epsilon=1.0).changes}
    assert "tests of groups count the rows with both values" in str(found)


def test_a_small_delta_is_planned_where_the_mechanism_takes_one() -> None:
    wide = dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 100) for place in range(30)))
    [change] = [change for change in changes(setting("auto", wide, epsilon=1.0)) if change.kind == "delta"]
    then = setting("auto", wide, epsilon=1.0, delta=1e-9).noise
    assert then is not None
    assert change.after == then.typical_correlation()


@pytest.mark.slow
def test_what_derived_features_and_products_cost_is_said() -> None:
    schema = dpm.Schema(*NUMBERS.table_columns, dpm.Power("x0", 2), dpm.Product("x1", "x2"))
    found = dpm.forecast(schema, n_rows=N_ROWS, epsilon=1.0, robust=["x0", "x1"])
    assert found.derived_cost is not None
    assert found.derived_cost.ratio < 1.0
    assert f"without x0^2, x1:x2: ± {found.derived_cost.before:.2g}" in str(found)
    assert found.robust_cost is not None
    assert found.robust_cost.what == "with x1^2, x0:x1, for robust standard errors"
    assert found.robust_cost.after > found.robust_cost.before
    plain = dpm.forecast(NUMBERS, n_rows=N_ROWS, epsilon=1.0)
    assert (plain.derived_cost, plain.robust_cost) == (None, None)


# ---------------------------------------------------------------- guesses


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        (dict(typical_sd={"Age": 3.0}), "Did you mean 'age'?"),
        (dict(typical_sd={"age": 0.0}), "must be a positive finite number"),
        (dict(typical_sd={"age": float("inf")}), "must be a positive finite number"),
        (dict(typical_sd={"age": "18"}), "must be a positive finite number"),
        (dict(typical_sd={"age": 51.0}), Said("the largest possible standard deviation between", half=50.0)),
        (dict(typical_sd={"smoker": 0.6}), Said("the largest possible standard deviation between", half=0.5)),
        (dict(typical_mean={"age": 101.0}), Said("must be a number between", feature="age")),
        (dict(typical_mean={"smoker": 1.5}), Said("must be a number between", feature="smoker")),
        (
            dict(typical_mean={"region=n": 0.9, "region=s": 0.9}),
            "the typical shares of levels of 'region' add up to 1.8",
        ),
        (dict(typical_sd=18.0), "is a mapping of features to numbers, as in"),
    ],
)
def test_impossible_guesses_are_refused(guess: dict[str, Any], said: Said | str) -> None:
    with refused(said, (ValueError, TypeError)):
        dpm.forecast(SCHEMA, n_rows=100, epsilon=1.0, **guess)


def test_guesses_come_before_typical_ranges_and_these_before_the_default() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 100, typical=(20, 60)), dpm.Numeric("b", 0, 50), dpm.Boolean("flag"))
    found = TypicalTable.of(schema)
    np.testing.assert_allclose(found.standard_deviations, [10.0, 5.0, math.sqrt(3.0 / 16.0)])
    assert found.assumed.tolist() == [False, True, True]
    np.testing.assert_allclose(found.means, [40.0, 12.5, 0.25])
    given = TypicalTable.of(schema, typical_sd={"a": 7.0}, typical_mean={"flag": 0.5})
    np.testing.assert_allclose(given.standard_deviations, [7.0, 5.0, 0.5])
    assert given.assumed.tolist() == [False, True, False]
    assert TypicalTable.of(schema, typical_sd={"flag": 0.3}).means[2] == pytest.approx(0.1, abs=1e-3)
    assert "standard deviations of a tenth of the range" in found.words
    assert "flags" not in given.words
    everything = TypicalTable.of(schema, typical_sd={"a": 7.0, "b": 3.0, "flag": 0.4})
    assert everything.words == ""
    guesses: dict[str, Any] = {"typical_sd": {"a": 7.0, "b": 3.0, "flag": 0.4}, "typical_mean": {"b": 20.0}}
    assert "~" not in str(dpm.forecast(schema, n_rows=10, rho=1.0, **guesses)).split("Error of every")[0]


def test_guesses_move_spreads_and_correlations_but_hardly_means() -> None:
    plain, guessed = (setting("gaussian", rho=1.0, typical_sd=guess).noise for guess in ({}, {"age": 20.0}))
    assert plain is not None
    assert guessed is not None
    assert guessed.mean[0] == pytest.approx(plain.mean[0], rel=1e-3)
    assert guessed.standard_deviation[0] == pytest.approx(plain.standard_deviation[0] / 2.0, rel=0.02)
    assert guessed.correlation[0, 1] == pytest.approx(plain.correlation[0, 1] / 2.0, rel=0.05)


# ---------------------------------------------------------------- how it is shown


def test_the_first_screen_and_what_programs_get() -> None:
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0, typical_sd=SPREADS)
    text = str(table)
    first = text.splitlines()
    assert first[0] == "Forecast for 4,000 rows, ε = 1, pure, add_remove; no data read"
    assert first[1] == table.headline
    assert first[2].startswith("mechanism: auto")
    assert first[4].split() == [
        "feature",
        "typical",
        "mean",
        "±",
        "noise",
        "typical",
        "sd",
        "±",
        "noise",
        "r",
        "clear",
        "from",
    ]
    assert text.index("what would help, with auto:") < text.index("Error of every mechanism")
    assert repr(table) == text
    frame = table.to_arrow()
    assert frame.column("feature").to_pylist() == list(SCHEMA.feature_names)
    assert frame.column("typical_sd").to_pylist()[0] == pytest.approx(18.0)
    assert np.isfinite(frame.column("standard_deviation_noise").to_numpy()).tolist() == [True] * 2 + [False] * 4
    html = table._repr_html_()
    assert html.count("<table>") == 2
    plain = table.to_dict()
    assert plain["best"] == table.best
    assert table.noise is not None
    smallest = [math.inf if value is None else value for value in plain["in_units"]["columns"]["smallest_correlation"]]
    assert smallest == pytest.approx(list(table.noise.smallest_correlations()), nan_ok=True)
    assert plain["in_units"]["columns"]["mean_noise"] == frame.column("mean_noise").to_pylist()
    assert [change["kind"] for change in plain["changes"]] == [change.kind for change in table.changes]


def test_names_are_escaped_in_notebooks() -> None:
    schema = dpm.Schema(dpm.Numeric("<b>", 0, 1), dpm.Numeric("y", 0, 1))
    assert "<b>" not in dpm.forecast(schema, n_rows=100, epsilon=1.0)._repr_html_()


def test_columns_with_scale_ranges_have_numbers_in_original_units() -> None:
    schema = dpm.Schema(dpm.Numeric("a", scale=(1, 1e4)), dpm.Numeric("b", scale=(1, 1e4)))
    table = dpm.forecast(schema, n_rows=20_000, rho=0.5)
    assert table.noise is not None
    assert table.setting is not None
    assert table.setting.plan.mechanism.name == "coinpress"
    np.testing.assert_allclose(table.noise.typical.standard_deviations, 100.0)
    assert "in the middle of their scale ranges" in str(table)


def test_mechanisms_that_cannot_run_take_one_line() -> None:
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, rho=0.3)
    refused = [row for row in table if row.refusal is not None]
    [line] = [line for line in str(table).splitlines() if line.startswith("cannot run here: ")]
    assert line == table.mechanisms.remarks[-1]
    assert "not possible" not in str(table)
    for row in refused:
        assert re.search(rf"[ ,]{row.mechanism}[ ,]", line)
        assert row.short_refusal is not None
        assert len(row.short_refusal) < 90


def test_every_schema_of_numbers_flags_and_levels_has_finite_numbers() -> None:
    schemas = [
        dpm.Schema.unit_ball(3),
        dpm.Schema(dpm.Categorical("one", ["a"]), dpm.Numeric("x", 0, 1)),
        dpm.Schema(dpm.Numeric("x", -1, 1), dpm.Power("x", 2), dpm.Boolean("f"), dpm.Product("x", "f")),
        dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Categorical("c", ["a", "b"]), dpm.Product("c", "x")),
        dpm.Schema(dpm.Numeric("x", 0, 1, missing="drop"), dpm.Numeric("y", 0, 1e9)),
        dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1), row_norm=0.5),
    ]
    for schema, budget, neighbors in zip(schemas, itertools.cycle(BUDGETS), itertools.cycle(Neighbors), strict=False):
        noise = setting("auto", schema, 1000, neighbors=neighbors, **budget).noise
        assert noise is not None
        assert np.isfinite(noise.mean).all()
        assert np.isfinite(noise.standard_deviation).all()
    assert str(dpm.forecast(dpm.Schema(dpm.Boolean("flag")), n_rows=1000, epsilon=1.0))


@pytest.mark.slow
def test_the_page_shows_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "forecast.md").read_text(encoding="utf-8")
    made: dict[str, Any] = {}
    printed, shown = [], re.findall(r"(?s)```text\n(.*?)```", page)
    for block in re.findall(r"(?s)```python\n(.*?)```", page):
        exec(block, made)
        printed.append(capsys.readouterr().out)
    assert len(printed) == len(shown) == 3
    assert printed[0].startswith(shown[0])
    assert printed[1:] == shown[1:]


# ---------------------------------------------------------------- for people of many rows


UNIT = dpm.PrivacyUnit("person_id", max_rows=4)


def visits() -> Any:
    table = people(2000)
    table["person_id"] = np.arange(len(table)) % 500  # four rows each: all count
    return table


@pytest.mark.parametrize(("mechanism", "budget"), CASES)
def test_a_forecast_for_units_is_what_a_release_for_them_states(mechanism: str, budget: dict[str, float]) -> None:
    options: dict[str, Any] = {"privacy_unit": UNIT, "insecure_seed": 5, "threads": 1}
    released = dpm.release(visits(), SCHEMA, mechanism=mechanism, repair="none", **options, **budget)
    found = dpm.forecast(SCHEMA, n_rows=released.n_rows, privacy_unit=UNIT, **budget)
    foreseen = found.noise_of(mechanism).release
    assert released.noise is not None
    assert foreseen.noise is not None
    np.testing.assert_array_equal(foreseen.noise.cell_variances(), released.noise.cell_variances())
    assert foreseen.privacy.to_dict() == released.privacy.to_dict()
    chosen = dpm.release(visits(), SCHEMA, **options, **budget)
    assert found["auto"].chosen_because == chosen.chosen_because


def test_errors_of_means_are_those_at_what_is_left_for_a_row() -> None:
    """Of every estimator: ρ/16 for a row is ρ for units of four."""
    options: dict[str, Any] = {"n_rows": N_ROWS, "standard_deviation": {"age": 18.0, "income": 3e4, "smoker": 0.4}}
    options["standard_deviation"] |= {f"region={level}": 0.4 for level in ("n", "s", "e")}
    found = dpm.forecast_mean(SCHEMA, rho=0.5, privacy_unit=UNIT, **options)
    of_row = dpm.forecast_mean(SCHEMA, rho=0.5 / 16, **options)
    known = [row for row in found if row.error is not None]
    assert len(known) >= 2
    for row in known:
        assert row.error == pytest.approx(of_row[row.mechanism].error, rel=1e-9)


@pytest.mark.parametrize("forecast", [dpm.forecast, dpm.forecast_mean])
def test_a_unit_that_a_release_refuses_is_refused(forecast: Any) -> None:
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"privacy_unit": "person_id"}, "must be a dpmoments.PrivacyUnit"),
        ({"privacy_unit": UNIT, "neighbors": "replace_one"}, "the number of kept rows depends on how many each"),
        ({"privacy_unit": dpm.PrivacyUnit("age", 4)}, "is in the schema, so it would be a feature of the release"),
    ]
    for options, said in refusals:
        with refused(said, (TypeError, ValueError)):
            forecast(SCHEMA, n_rows=N_ROWS, rho=0.5, **options)


def test_the_commands_plan_for_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    columns = [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}, {"name": "smoker", "kind": "boolean"}]
    Path("people.yaml").write_text(yaml.safe_dump({"columns": columns}))
    schema = dpm.Schema.load("people.yaml")
    common = ["--schema", "people.yaml", "--n-rows", "5000", "--rho", "0.5", "--neighbors", "add_remove"]
    common += ["--privacy-unit", "person_id", "--max-rows-per-unit", "4"]
    for name, library in (("forecast", dpm.forecast), ("forecast-mean", dpm.forecast_mean)):
        assert main([name, *common, "--json"]) == 0
        found = library(schema, n_rows=5000, rho=0.5, privacy_unit=UNIT)
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))
    assert main(["forecast", *common[:-2]]) != 0
    assert "state the contribution bound" in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_twice_the_rows_or_budget_halve_the_noise_on_a_mean_of_one_column() -> None:
    schema = dpm.Schema(dpm.Numeric("number", 0, 10, typical=(0, 10)))
    for neighbors in ("add_remove", "replace_one"):
        forecast = dpm.forecast(schema, n_rows=512, epsilon=1.0, neighbors=neighbors, mechanism="laplace")
        assert forecast.setting.plan.count_is_public == (neighbors == "replace_one")
        found = {change.kind: change for change in forecast.changes}
        assert found["rows"].measure == found["budget"].measure == "sd on a mean"
        for kind in ("rows", "budget"):
            assert found[kind].before == pytest.approx(forecast.noise.mean[0] / 2.5, rel=1e-6)
            assert found[kind].ratio == pytest.approx(0.5, abs=0.05)


def test_changes_are_measured_by_the_means_of_the_same_columns() -> None:
    """Of three numbers with like noise; levels, which have less, are not among them."""
    numbers = [dpm.Numeric(name, 0, 100) for name in ("age", "pulse", "weight")]
    schema = dpm.Schema(*numbers, dpm.Boolean("smoker"), dpm.Categorical("ward", ["a", "b", "c"]))
    forecast = dpm.forecast(schema, n_rows=200, epsilon=0.3)
    found = {change.kind: change for change in forecast.changes if "sd on a mean" in change.measure}
    assert {"rows", "budget", "column", "columns"} <= found.keys()
    assert len({round(change.before, 3) for change in found.values()}) == 1
