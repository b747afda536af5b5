"""A forecast says which goals are met, the smallest budget that meets them, and what else would: as releases then show."""

from __future__ import annotations

import html
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.cli.entry import main
from dpmoments.planning.changes import _SIZES, ForecastGoals
from support.said import refused

N_ROWS, RELEASES = 5_000, 5
SPREADS, MIDDLES = {"age": 14.0, "pay": 20_000.0}, {"age": 45.0, "pay": 60_000.0, "smoker": 0.3}
GOALS = {
    "mean(pay)": 900,
    "share(smoker)": 0.015,
    "mean(pay, by=ward)": "4 %",
    "difference(pay, by=smoker)": 1500,
    "correlation(*)": 0.05,
    "coefficient(pay ~ age + smoker, age)": 60,
}
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 110),
    dpm.Numeric("pay", 0, 200_000),
    dpm.Numeric("bmi", 10, 70),
    dpm.Boolean("smoker"),
    dpm.Categorical("ward", ["a", "b"]),
    goals=GOALS,
)


@cache
def forecast(**options: Any) -> dpm.Forecast:
    return dpm.forecast(SCHEMA, n_rows=N_ROWS, typical_sd=SPREADS, typical_mean=MIDDLES, **options)


def goals_of(**options: Any) -> ForecastGoals:
    goals = forecast(**options).goals
    assert goals is not None
    return goals


@cache
def released(**options: Any) -> list[dpm.MomentRelease]:
    rng = np.random.default_rng(2)
    common = rng.standard_normal(N_ROWS)
    table: dict[str, Any] = {
        name: (MIDDLES[name] + spread * (0.5 * common + 0.75**0.5 * rng.standard_normal(N_ROWS))).clip(0)
        for name, spread in SPREADS.items()
    }
    table |= {"bmi": rng.normal(25, 6, N_ROWS), "smoker": rng.random(N_ROWS) < 0.3}
    frame = pa.table(table | {"ward": rng.choice(["a", "b"], N_ROWS)})
    return [dpm.release(frame, SCHEMA, insecure_seed=seed, threads=1, **options) for seed in range(RELEASES)]


def ratios(stated: ForecastGoals, **options: Any) -> list[float]:
    """Expected over what releases print on average, goal by goal."""
    printed = [[result.reached for result in one.goals.results] for one in released(**options) if one.goals]
    expected = [result.reached for result in stated.results]
    return list(np.array(expected) / np.mean(printed, axis=0))


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        dict(epsilon=2.0, mechanism="matrix-laplace"),
        *(pytest.param(options, marks=pytest.mark.slow) for options in (dict(epsilon=1.0), dict(rho=0.5))),
    ],
    ids=str,
)
def test_a_forecast_of_goals_is_what_releases_print(options: dict[str, Any]) -> None:
    assert all(0.8 <= ratio <= 1.25 for ratio in ratios(goals_of(**options), **options))


@pytest.mark.slow
def test_a_forecast_of_another_budget_is_found() -> None:
    found = ratios(goals_of(epsilon=0.8, mechanism="matrix-laplace"), epsilon=2.0, mechanism="matrix-laplace")
    assert max(found) > 1.25


@pytest.mark.slow
def test_the_smallest_budget_meets_all_goals_and_the_next_smaller_one_does_not() -> None:
    goals = goals_of(epsilon=1.0)
    size = goals.budget_for_all
    assert size is not None
    assert size == max(budget for budget in goals.budgets if budget is not None)
    assert goals.budgets[goals.goals.index(goals.dear)] == size
    for tried, met in ((size, True), (_SIZES[_SIZES.index(size) - 1], False)):
        again = ForecastGoals.of(goals.setting.with_budget(tried), goals.goals)
        assert again is not None
        assert again.met is met
    assert f"all goals take ε = {size:.3g}" in goals.text()


@pytest.mark.slow
def test_goals_stand_in_for_a_budget() -> None:
    planned = forecast()
    assert planned.goals is not None
    assert planned.goals.met
    assert planned.budget.epsilon == goals_of(epsilon=1.0).budget_for_all
    assert planned.goals.to_pandas()["met"].all()
    assert planned.to_dict()["goals"]["budget_for_all"] == planned.budget.epsilon
    with refused("give the privacy budget"):
        dpm.forecast(SCHEMA, n_rows=N_ROWS, goals=[])


def test_goals_that_sampling_alone_misses_take_rows() -> None:
    options: dict[str, Any] = dict(typical_sd={"age": SPREADS["age"]}, goals=["mean(age) ± 0.2"], epsilon=1.0)
    found = dpm.forecast(dpm.Schema(SCHEMA.columns[0]), n_rows=N_ROWS, mechanism="matrix-laplace", **options).goals
    assert found is not None
    assert found.budgets == (None,)
    assert found.budget_for_all is None
    assert found.rows_for_all is not None
    assert found.rows_for_all > (1.96 * SPREADS["age"] / 0.2) ** 2
    text = found.text()
    assert "no budget meets all goals: at ε = 100, mean(age) is ±" in text
    assert f"{found.rows_for_all:,} rows at ε = 1 would" in text


@pytest.mark.slow
def test_what_would_help_is_measured_by_the_dear_goal() -> None:
    planned = forecast(epsilon=0.4)
    goals, changes = planned.goals, {change.kind: change for change in planned.changes}
    assert goals is not None
    assert {"rows", "budget", "bounds"} <= changes.keys()
    for change in changes.values():
        assert change.measure.endswith(f"on {goals.dear.question}")
        assert change.before == pytest.approx(
            next(result.reached for result in goals.results if result.goal == goals.dear)
        )
    assert "meets all goals" in str(next(iter(forecast(epsilon=2.0).changes)))


@pytest.mark.slow
def test_columns_that_no_goal_names_can_go() -> None:
    columns = [dpm.Numeric(f"x{index}", 0, 1) for index in range(8)]
    planned = dpm.forecast(dpm.Schema(*columns, goals=["correlation(x0, x1) ± 0.02"]), n_rows=3000, epsilon=0.5)
    left_out = next(change for change in planned.changes if change.kind == "columns")
    assert left_out.what == "without x2, x3, x4, x5, x6 and 1 more, which no goal names"
    assert left_out.ratio < 0.6


@pytest.mark.slow
def test_a_weight_on_the_columns_of_the_dear_goal_is_tried() -> None:
    columns = [dpm.Numeric(f"x{index}", 0, 1) for index in range(12)]
    goals = [*(f"mean(x{index}) ± 0.5" for index in range(1, 12)), "mean(x0) ± 0.004"]
    schema = dpm.Schema(*columns, goals=goals)
    planned = dpm.forecast(schema, n_rows=3000, epsilon=0.5, mechanism="matrix-laplace")
    weights = {change.kind: change.what for change in planned.changes if "weight" in change.kind}
    assert weights["weight"] == "weight: 4 on x0"
    assert "mean_weight" in weights


def test_goals_without_noise_in_units_are_refused() -> None:
    with refused("goals cannot be forecast"):
        dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0, mean=False, goals=["mean(age) ± 1"])


@pytest.mark.slow
def test_a_request_is_answered_with_its_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SCHEMA.save(tmp_path / "people.yaml")
    request = tmp_path / "request.yaml"
    request.write_text("goals:\n- mean(age) ± 1\n", encoding="utf-8")
    given = ["--n-rows", "5000", "--neighbors", "add_remove"]
    of_table = ["--schema", str(tmp_path / "people.yaml")]
    asked = dpm.forecast(dpm.Schema(SCHEMA.columns[0], goals=["mean(age) ± 1"]), n_rows=5000)
    assert asked.goals is not None

    assert main(["forecast", *of_table, "--request", str(request), *given]) == 0
    printed = capsys.readouterr().out
    assert asked.title in " ".join(printed.split())
    assert f"ε = {asked.budget.epsilon:.3g}" in printed
    assert "Error of every mechanism" not in printed

    assert main(["forecast", *of_table, "--goal", "mean(age) +- 1", *given, "--epsilon", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["goals"]["goals"]["goal"] == ["mean(age)"]

    assert main(["forecast", *given]) != 0
    assert "give --schema" in " ".join(capsys.readouterr().err.split())


@pytest.mark.long
def test_the_page_of_a_forecast_has_its_goals(tmp_path: Path) -> None:
    schema = dpm.Schema(SCHEMA.columns[0], goals=["mean(age) ± 1"])
    planned = dpm.forecast(schema, n_rows=N_ROWS, epsilon=1.0)
    assert planned.goals is not None
    dpm.report(planned, tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert all(html.escape(goal.question) in page for goal in planned.goals.goals)


@pytest.mark.slow
def test_the_page_on_goals_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "goals.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block, shown in re.findall(r"(?s)```python\n(.*?)```\n\n```text\n(.*?)```", page):
        exec(block, names)
        assert capsys.readouterr().out == shown
    report = Path("report.html").read_text(encoding="utf-8")
    assert "Goals of the schema" in report
