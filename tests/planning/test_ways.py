"""The ways to an answer: errors are those of the releases, and the best is named."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.planning.ways import Way
from support.said import refused

N_ROWS = 20_000
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("income", 0, 200_000),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
)
BUDGETS: dict[str, dict[str, float]] = {"pure": {"epsilon": 1.0}, "zcdp": {"rho": 0.1}}


@cache
def forecast(**options: Any) -> Any:
    return dpm.forecast(SCHEMA, n_rows=N_ROWS, **options)


def people() -> pa.Table:
    """Rows as the forecast takes them to be: numbers vary by a tenth of their range."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": np.clip(rng.normal(50, 10, N_ROWS), 0, 100),
            "income": np.clip(rng.normal(1e5, 2e4, N_ROWS), 0, 2e5),
            "region": rng.choice(["north", "south", "east"], N_ROWS),
            "smoker": rng.random(N_ROWS) < 0.25,
        }
    )


@pytest.mark.long
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_errors_are_those_of_the_releases(budget: dict[str, float]) -> None:
    found = forecast(**budget).ways(means=True, tables=[["region", "smoker"], ["region"]])
    means, table, margin = found.ways
    whole = dpm.release(people(), SCHEMA, insecure_seed=0, **budget)
    # the rows may be clipped to a ball, which the forecast gives its probability
    assert table.one_release == pytest.approx(
        np.sqrt(np.mean(whole.cross_table("region", "smoker").noise ** 2)), rel=0.35
    )
    own = dpm.release_counts(people(), SCHEMA, by=["region", "smoker"], insecure_seed=0, **budget)
    noise, places = (
        forecast(**budget).noise,
        [SCHEMA.feature_names.index(f"region={each}") for each in ("north", "south", "east")],
    )
    assert margin.one_release == pytest.approx(N_ROWS * math.sqrt(np.mean(noise.mean[places] ** 2)), rel=0.05)
    assert table.own_release == own.standard_error == margin.own_release
    of_means = dpm.release_mean(people(), SCHEMA, insecure_seed=0, **budget)
    deviations = forecast(**budget).noise.typical.standard_deviations
    assert means.own_release >= 0.9 * math.sqrt(np.mean((of_means.standard_errors / deviations) ** 2))
    third = {name: value / 3.0 for name, value in budget.items()}
    share = dpm.forecast_counts(SCHEMA, by=["region", "smoker"], **third).standard_errors[0]
    assert table.own_share == pytest.approx(share, rel=1e-6)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_error_of_means_is_that_of_their_own_forecast(neighbors: str) -> None:
    schema = dpm.Schema(dpm.Numeric("a", scale=(1, 1e4)), dpm.Numeric("b", scale=(1, 1e4)))
    options: dict[str, Any] = dict(n_rows=5000, rho=0.5, neighbors=neighbors)
    known = dpm.forecast_mean(schema, standard_deviation=100.0, **options)["variance-aware"].error
    (found,) = dpm.forecast(schema, **options).ways(means=True).ways
    assert found.own_release == pytest.approx(known / 100.0 / math.sqrt(2.0), rel=1e-9)


@pytest.mark.long
def test_a_regression_is_answered_by_the_release_with_less_noise() -> None:
    (found,) = forecast(epsilon=1.0).ways(regressions=[["income", "age", "region"]]).ways
    few = dpm.Schema(*(column for column in SCHEMA.columns if column.name != "smoker"))
    even = {f"region={each}": 1 / 3 for each in ("north", "south", "east")}
    alone = dpm.forecast(few, n_rows=N_ROWS, epsilon=1.0, typical_mean=even)
    regression = alone.noise_of("auto").regression_on("income", ["age", "region"])
    assert regression is not None
    assert found.own_release == pytest.approx(regression.noise, rel=1e-6)
    assert 0.5 < found.one_release / found.own_release < 3.0
    assert found.best == (found.call if found.own_release < found.one_release else "release(…)")


@pytest.mark.long
def test_many_questions_are_answered_by_one_release_and_one_table_by_counts() -> None:
    one = forecast(epsilon=1.0).ways(tables=[["region", "smoker"]])
    assert one.best == "release_counts(…)"
    assert one.remarks[1] == "One release also answers every other question at no further cost."
    many = forecast(epsilon=1.0).ways(
        means=True, regressions=[["income", "age"], ["age", "income"], ["income", "smoker"], ["age", "region"]]
    )
    assert many.best == "release(…)"
    assert {way.best for way in many.ways} == {"release(…)"}
    mixed = forecast(epsilon=1.0).ways(
        means=True, tables=[["region", "smoker", "region"][:2]], regressions=[["income", "age"]]
    )
    assert mixed.best == "depends on the question"
    json.dumps(mixed.to_dict(), allow_nan=False)
    assert "1/3" in str(mixed)


def test_a_release_is_the_best_way_where_it_is_as_good_within_a_twentieth() -> None:
    for one, best in [(1.049, "release(…)"), (1.051, "own(…)"), (0.6, "release(…)")]:
        assert Way("q", "u", "own(…)", one, 0.1, 1.0).best == best


@pytest.mark.long
def test_a_table_of_three_columns_needs_counts() -> None:
    schema = dpm.Schema(*SCHEMA.columns, dpm.Boolean("insured"))
    (found,) = dpm.forecast(schema, n_rows=N_ROWS, epsilon=1.0).ways(tables=[["region", "smoker", "insured"]]).ways
    assert math.isnan(found.one_release)
    assert found.best == "release_counts(…)"


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(
    "columns",
    [
        (dpm.Numeric("age", 0, 100, missing="available"), dpm.Boolean("smoker")),
        (dpm.Numeric("age", 0, 100), dpm.Boolean("smoker"), dpm.SamplingWeight("weight", 10)),
    ],
    ids=["present values", "weights"],
)
def test_what_release_mean_refuses_has_its_means_from_a_release(columns: Any) -> None:
    schema = dpm.Schema(*columns)
    (found,) = dpm.forecast(schema, n_rows=N_ROWS, epsilon=1.0).ways(means=True).ways
    assert 0.0 < found.one_release < 1.0
    assert math.isnan(found.own_release)
    assert found.best == "release(…)"


def test_mistakes_are_refused() -> None:
    known = forecast(epsilon=1.0)
    with refused("Bands of numbers must be made", name="age"):
        known.ways(tables=[["age", "region"]])
    refusals: list[tuple[dict[str, Any], str]] = [
        ({}, "state a question: means=True, tables=[['region', 'sex']] or"),
        ({"regressions": [["region", "age"]]}, "has several features: the target of a regression must have"),
        ({"regressions": [["income", "agee"]]}, "'agee' is not a column of the schema (did you mean 'age'?)"),
        ({"regressions": [["income"]]}, "a regression is a target and its regressors, ['income'"),
    ]
    for questions, said in refusals:
        with refused(said):
            known.ways(**questions)
    for questions in ({"regressions": ["age"]}, {"regressions": "age"}, {"tables": ["age", "region"]}):
        with refused(
            "is a list of lists of names, [['income', 'age']], and has", TypeError, parameter=next(iter(questions))
        ):
            known.ways(**questions)
    unbounded = dpm.forecast(dpm.Schema.unbounded(2), n_rows=100, rho=0.5)
    with refused("nothing is known in original units"):
        unbounded.ways(means=True)


@pytest.mark.long
def test_the_command_prints_what_the_method_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SCHEMA.save(tmp_path / "people.yaml")
    given = ["forecast", "--schema", str(tmp_path / "people.yaml"), "--n-rows", str(N_ROWS), "--epsilon", "1"]
    given += ["--neighbors", "add_remove", "--means", "--table", "region:smoker", "--regression", "income:age"]
    assert main([*given, "--json"]) == 0
    expected = forecast(epsilon=1.0).ways(means=True, tables=[["region", "smoker"]], regressions=[["income", "age"]])
    assert json.loads(capsys.readouterr().out) == expected.to_dict()
    assert main(given) == 0
    assert capsys.readouterr().out.split() == str(expected).split()  # lines are wrapped
    assert main([*given, "--html", "plan.html"]) == 2
