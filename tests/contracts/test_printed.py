"""Every number printed in a text, a table of HTML or at the shell is one of the API's.

`test_numbers_that_are_not_the_api_s_are_found` plants some that are not.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from contracts.contradictions import Found, tables
from contracts.printed import Asked, contradictions_of, read_answers
from dpmoments.analysis import answers, components, cross_table, group_tests, regression_results
from dpmoments.cli import output
from support.drawn_releases import planted

PARTS = 6
"""Of every so many answers of a release one is read."""


def budgets(count: int) -> list[tuple[str, float, int]]:
    """Tables in turn at budgets from .1 to 100, with a seed each."""
    names = list(tables())
    epsilons = np.exp(np.linspace(math.log(0.1), math.log(100.0), count)).round(3).tolist()
    return [(names[seed % len(names)], epsilons[(7 * seed) % count], seed) for seed in range(count)]


@pytest.mark.long
@pytest.mark.parametrize(("name", "epsilon", "seed"), budgets(12))
def test_every_printed_number_is_the_api_s(name: str, epsilon: float, seed: int, tmp_path: Path) -> None:
    found = contradictions_of(name, epsilon, seed + seed // 6, tmp_path, PARTS)
    assert found.rows
    assert found == []


@pytest.mark.slow
def test_every_number_of_200_releases_is_the_api_s(tmp_path: Path) -> None:
    every = [contradictions_of(name, epsilon, 100 + 7 * seed, tmp_path, PARTS) for name, epsilon, seed in budgets(200)]
    assert [each for found in every for each in found] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "function", "before", "after"),
    [
        (0, answers.Answer._repr_html_, "self.table()", "self.table()[:-1]"),
        (1, answers.rounded, "round(value, decimals)", "round(1.1 * value, decimals)"),
        (2, regression_results.FittedLine.r_squared_text.fget, "interval {lower:.3f}", "interval {0.9 * lower:.3f}"),
        (2, output.print_answer, "answer.text()", "answer.text().replace('0', '1')"),
        (8, components.PrincipalComponents._columns, "{each:.1%}", "{each / 2:.1%}"),
        (14, group_tests.AnalysisOfVariance.table, "between + within", "1.2 * between + within"),
        (16, cross_table.CrossTable.table, 'else f"{count:,}"', 'else f"{count + 1:,}"'),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_numbers_that_are_not_the_api_s_are_found(
    asked: int, function: Any, before: str, after: str, tmp_path: Path
) -> None:
    with planted(function, before, after):
        assert contradictions_of("made", 3.0, asked, tmp_path, 18)


def visits_release(epsilon: float) -> tuple[Asked, dpm.MomentRelease]:
    """A release of dates, and what is asked of it."""
    rng, n = np.random.default_rng(0), 3_000
    group, days = rng.choice(["a", "b", "c"], n), rng.integers(0, 2_000, n)
    table = pd.DataFrame(
        {
            "opened": pd.Timestamp("2015-01-01") + pd.to_timedelta(days + 400 * (group == "a"), unit="D"),
            "group": group,
            "late": rng.random(n) < 0.4,
            "y": rng.normal(0.0, 1.0, n) + days / 1_000.0,
        }
    )
    schema = dpm.Schema(
        dpm.Date("opened", "2014-01-01", "2025-01-01"),
        *(dpm.Categorical("group", ["a", "b", "c"]), dpm.Boolean("late"), dpm.Numeric("y", -5, 10)),
    )
    release = dpm.release(table, schema, epsilon=epsilon, insecure_seed=1)
    return Asked(table, "opened", ["late", "group"], "group"), release


def visits(epsilon: float, folder: Path) -> Found:
    """What is printed of a release of dates and the API does not say."""
    asked, release = visits_release(epsilon)
    release.save(file := folder / f"visits {epsilon}.json")
    return read_answers(asked, file, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_dates_are_printed_as_dates_and_their_differences_as_durations(epsilon: float, tmp_path: Path) -> None:
    assert visits(epsilon, tmp_path) == []
    release = dpm.load(tmp_path / f"visits {epsilon}.json")
    assert isinstance(release, dpm.MomentRelease)
    means = release.group_means("group", ["opened"])
    assert all(re.fullmatch(r"\d{4}(-\d\d){0,2}", row[4]) and row[5].endswith(" days") for row in means.table()[1:])
    assert all(row[2].endswith(" days") for row in means.differences.table()[1:])
    assert "opened counts days since 2014-01-01" in str(release.ols("y ~ opened"))
    with planted(answers.Column.text, "np.ravel(each)[index]", "np.ravel(each)[index] + 400.0"):
        assert visits(epsilon + 1e-6, tmp_path)
