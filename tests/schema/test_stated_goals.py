"""Goals are read as analysts write them, checked against the columns, and travel with them."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpmoments as dpm
from dpmoments.schema.goals import Goal, checked_goals
from support.said import refused

COLUMNS = (
    dpm.Numeric("age", 18, 100),
    dpm.Numeric("pay", 0, 200_000),
    dpm.Boolean("smoker"),
    dpm.Categorical("ward", ["a", "b"]),
    dpm.Numeric("a, b", 0, 1),
)
SCHEMA = dpm.Schema(*COLUMNS)


@pytest.mark.parametrize(
    ("written", "goal"),
    [
        ("mean(pay) ± 500", Goal("mean", ("pay",), 500.0)),
        (" mean ( pay )+-5e2 at 90% ", Goal("mean", ("pay",), 500.0, level=0.9)),
        ("mean(pay, by=ward) +/- 5 %", Goal("mean", ("pay",), 0.05, by="ward", relative=True)),
        ("mean(`a, b`) ± .25", Goal("mean", ("a, b",), 0.25)),
        ("share(ward=a) ± 0.01 at 0.8", Goal("share", ("ward=a",), 0.01, level=0.8)),
        ("difference(pay, by=smoker) ± 800", Goal("difference", ("pay",), 800.0, by="smoker")),
        ("correlation(*) ± 0.03", Goal("correlation", ("*",), 0.03)),
        ("coefficient(pay ~ age + C(ward), ward) ± 5", Goal("coefficient", ("pay ~ age + C(ward)", "ward"), 5.0)),
    ],
)
def test_goals_are_read_and_written(written: str, goal: Goal) -> None:
    assert checked_goals([written], SCHEMA.columns) == (goal,)
    assert checked_goals([str(goal)], SCHEMA.columns) == (goal,)
    assert checked_goals({goal.question: goal.asked.removeprefix("± ")}, SCHEMA.columns) == (goal,)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("mean(smoker) ± 1", "ask for share(smoker)"),
        ("share(pay) ± 0.1", "ask for mean(pay)"),
        ("mean(pays) ± 1", "did you mean 'pay'?"),
        ("mean(pay) ± 0", "above 0"),
        ("mean(pay)", "cannot be read"),
        ("median(pay) ± 1", "cannot be read"),
        ("mean(pay) ± 1..2", "cannot be read"),
        ("mean(pay) ± 1 at 0.3", "at least 0.5"),
        ("difference(pay) ± 1", "every difference"),
        ("correlation(pay, age, by=ward) ± .1", "goes with a mean"),
        ("correlation(pay) ± 0.1", "of two columns"),
        ("share(smoker) ± 1 %", "relative error"),
        ("mean(pay, by=age) ± 1", "categorical or Boolean"),
        ("difference(ward, by=ward) ± 1", "makes the groups"),
        ("mean(pay, age) ± 1", "one goal for each"),
        ("coefficient(pay ~ height, age) ± 1", "no column 'height'"),
        ("coefficient(pay ~ age, height) ± 1", "no column 'height'"),
        ("coefficient(pay) ± 1", "a formula and a coefficient"),
        ("coefficient(pay ~ smoker, pay) ± 1", "no coefficient of 'pay'"),
        ("coefficient(ward ~ pay, pay) ± 1", "left side"),
        ("coefficient(~, pay) ± 1", "left side"),
        ("correlation(ward=a, ward=b) ± 0.1", "of two columns"),
        ("mean(pay) ± 1 at 0.9999999999999999", "at least 0.5"),
    ],
)
def test_a_goal_that_cannot_be_answered_is_refused(written: str, said: str) -> None:
    with refused(said):
        dpm.Schema(*COLUMNS, goals=[written])


def test_a_goal_is_given_once_in_a_list() -> None:
    with refused("given twice"):
        dpm.Schema(*COLUMNS, goals=["mean(pay) ± 5", "mean(pay) ± 5.0"])
    with refused("goals are too many"):
        dpm.Schema(*COLUMNS, goals=[f"mean(pay) ± {index}" for index in range(1, 200)])
    with refused("cannot be read"):
        dpm.Schema(*COLUMNS, goals=["mean(" + "," * 100_000 + ") ± 1"])
    with refused("a list of texts", TypeError):
        dpm.Schema(*COLUMNS, goals="mean(pay) ± 5")


def test_goals_go_with_their_columns() -> None:
    stated = ["mean(pay) ± 5", "correlation(*) ± 0.1", "mean(pay, by=ward) ± 5 %", "coefficient(pay ~ age, age) ± 3"]
    schema = dpm.Schema(*COLUMNS, goals=stated)
    assert dpm.Schema.from_dict(schema.to_dict()) == schema
    assert schema.with_text_format(dpm.TextFormat(delimiter=";")).goals == schema.goals
    assert [str(goal) for goal in schema.with_columns(COLUMNS[1:2]).goals] == stated[:1]
    assert [str(goal) for goal in schema.with_columns(COLUMNS[:2]).goals] == [stated[0], stated[1], stated[3]]


def test_a_request_names_columns_of_a_table(tmp_path: Path) -> None:
    asked = tmp_path / "request.yaml"
    asked.write_text("goals:\n- mean(pay, by=ward) ± 5 %\n", encoding="utf-8")
    assert dpm.Schema.load(asked, SCHEMA).names == ("pay", "ward")

    own = "- {name: bmi, kind: numeric, lower: 10, upper: 80}"
    asked.write_text(f"goals:\n- mean(bmi) ± 1\ncolumns:\n- age\n- name: smo*\n{own}\n", encoding="utf-8")
    requested = dpm.Schema.load(asked, SCHEMA)
    assert requested.names == ("age", "smoker", "bmi")
    assert requested.columns[0] == COLUMNS[0]
    assert [str(goal) for goal in requested.goals] == ["mean(bmi) ± 1"]

    asked.write_text("goals: []\ncolumns: [aeg]\n", encoding="utf-8")
    with refused("columns: 'aeg' matches none"):
        dpm.Schema.load(asked, SCHEMA)
