"""A release says of each goal what its analyses state."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.analysis.goals import GoalResult, goal_results
from dpmoments.schema.goals import Goal, checked_goals

N_ROWS = 6_000
LEVEL = 0.9
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 18, 100),
    dpm.Numeric("pay", 0, 100_000),
    dpm.Boolean("smoker"),
    dpm.Categorical("ward", ["a", "b", "c"]),
)


@cache
def release(epsilon: float = 1.0, **options: Any) -> dpm.MomentRelease:
    rng = np.random.default_rng(5)
    age = rng.uniform(20, 80, N_ROWS)
    table = {"age": age, "pay": 300 * age + rng.gamma(4, 4000, N_ROWS), "smoker": rng.random(N_ROWS) < 0.3}
    table["ward"] = rng.choice(["a", "b", "c"], N_ROWS, p=[0.6, 0.3, 0.1])
    return dpm.release(pa.table(table), SCHEMA, epsilon=epsilon, insecure_seed=1, **options)


def result(text: str, released: dpm.MomentRelease | None = None) -> GoalResult:
    [found] = goal_results(released or release(), checked_goals([text], SCHEMA.columns))
    return found


def halves(ends: Any) -> list[float]:
    lower, upper = np.asarray(ends).T
    return list((upper - lower) / 2.0)


@pytest.mark.long
def test_goals_are_about_the_intervals_of_the_analyses() -> None:
    released = release()
    ends = released.describe().conf_int(LEVEL)
    assert list(result("mean(age) ± 1 at 0.9").half_widths) == pytest.approx(halves(ends[:1]))
    assert list(result("share(ward) ± 1 at 0.9").half_widths) == pytest.approx(halves(ends[3:]))

    groups = released.group_means("ward", ["pay"], level=LEVEL)
    by = result("mean(pay, by=ward) ± 5 % at 0.9")
    assert by.cells == groups.groups
    assert list(by.half_widths) == pytest.approx((groups.upper - groups.lower)[0] / 2.0 / groups.mean[0])
    differences = groups.differences
    assert list(result("difference(pay, by=ward) ± 1 at 0.9").half_widths) == pytest.approx(
        (differences.upper - differences.lower)[0] / 2.0
    )

    found = released.correlations(level=LEVEL)
    pair = result("correlation(pay, smoker) ± 1 at 0.9")
    assert list(pair.half_widths) == pytest.approx([(found.upper - found.lower)[1, 2] / 2.0])
    assert result("correlation(*) ± 1").cells == ("age ~ pay",)

    fit = released.ols("pay ~ age + C(ward)", level=LEVEL)
    widths = dict(zip(fit.names, (np.asarray(fit.conf_int()) @ [-0.5, 0.5]).tolist(), strict=True))
    named = result("coefficient(pay ~ age + C(ward), age) ± 1 at 0.9")
    assert list(named.half_widths) == pytest.approx([widths["age"]])
    levels = result("coefficient(pay ~ age + C(ward), ward) ± 1 at 0.9")
    assert levels.cells == tuple(name for name in fit.names if name.startswith("ward="))


def test_a_number_that_noise_hides_misses_its_goal() -> None:
    released = release(epsilon=0.002)
    for goal in ("mean(pay, by=ward) ± 50 %", "correlation(*) ± 0.9", "coefficient(pay ~ age, age) ± 1e6"):
        found = result(goal, released)
        assert found.reached == np.inf
        assert found.met is False
        assert found.text(found.reached) == "noise"


@pytest.mark.long
def test_a_release_tells_its_goals() -> None:
    released = release()
    wide, narrow = 1.01 * result("mean(pay) ± 1").reached, 0.99 * result("mean(age) ± 1").reached
    schema = dpm.Schema(*SCHEMA.columns, goals={"mean(pay)": wide, "mean(age)": narrow, "mean(pay, by=ward)": "2 %"})
    with_goals = type(released).from_dict(released.to_dict() | {"schema": schema.to_dict()})
    goals = with_goals.goals
    assert goals is not None
    assert [each.met for each in goals.results] == [True, False, False]
    assert not goals.met
    assert "2 of 3 goals missed" in goals.text()
    assert "mean(pay, by=ward), over 2 %: ward=c ±" in goals.text()
    assert goals.text() in with_goals.summary()
    assert goals.to_dict()["goals"]["met"] == [True, False, False]
    assert released.goals is None


@pytest.mark.parametrize(
    ("half_width", "said"),
    [(499.96, "± 499"), (500.0, "± 500"), (500.02, "± 501"), (0.012345, "± 0.0123"), (123_456.0, "± 124,000")],
)
def test_a_printed_number_is_on_its_side_of_the_margin(half_width: float, said: str) -> None:
    assert GoalResult(Goal("mean", ("pay",), 500.0), ("pay",), np.array([half_width])).text(half_width) == said
