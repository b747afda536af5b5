"""What readers ask of a table: errors that are worked out by hand, and those of exact answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from benchmarks.peers.answers import Asked, Line, Moments, Truth, cross_tables, missed_variance, share_found
from benchmarks.peers.six_tables import QUESTIONS, medians

import dpmoments as dpm

SCHEMA = dpm.Schema(
    dpm.Numeric("x", 0, 10), dpm.Numeric("y", 0, 10), dpm.Categorical("g", ("a", "b", "c")), dpm.Boolean("h")
)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 6, 600).astype(float)
    group = rng.choice(["a", "b", "c"], 600)
    return pd.DataFrame(
        {"x": x, "y": x + (group == "a") + rng.integers(0, 3, 600), "g": group, "h": rng.random(600) < 0.4}
    )


@pytest.fixture(scope="module")
def truth(rows: pd.DataFrame) -> Truth:
    return Truth.of(rows, SCHEMA, Asked("y", "y", "g"))


def test_the_table_answers_itself(rows: pd.DataFrame, truth: Truth) -> None:
    errors = truth.errors(Moments.of(rows, SCHEMA), cross_tables(rows, SCHEMA))
    assert set(errors) == set(QUESTIONS)
    assert errors["pairs found"] == 1.0
    regressions = errors.pop("one regression"), errors.pop("five regressions")
    assert max(regressions) < 1e-3  # of the ridge
    assert max(error for question, error in errors.items() if question != "pairs found") < 1e-6


def test_errors_are_in_units_that_readers_know(truth: Truth) -> None:
    shifted = replace(truth.moments, mean=truth.moments.mean + 0.5 * truth.moments.deviations)
    errors = truth.errors(shifted)
    assert errors["means"] == pytest.approx(0.5)
    assert errors["correlations"] == pytest.approx(0.0)
    table = {pair: counts.copy() for pair, counts in truth.tables.items()}
    table["g", "h"][0, 0] += 6
    table["g", "h"][1, 1] -= 6
    assert truth.errors(truth.moments, table)["one cross table"] == pytest.approx(6 / 600)


def test_a_regression_loses_what_its_line_misses(rows: pd.DataFrame, truth: Truth) -> None:
    y = rows["y"].to_numpy()
    flat = Line(np.zeros(len(truth.moments.mean)), float(y.mean()))
    x = np.column_stack([rows["x"], pd.get_dummies(rows["g"]), rows["h"]]).astype(float)
    fitted = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    explained = 1.0 - np.var(y - fitted) / np.var(y)
    assert truth.lost(flat, truth.targets[0]) == pytest.approx(explained, abs=1e-6)
    assert truth.lost(replace(flat, intercept=1e6), truth.targets[0]) == 1.0


def test_group_means_are_of_rows(rows: pd.DataFrame, truth: Truth) -> None:
    """A planted fault: means of y about a constant are wrong by each group's difference from it."""
    covariance = truth.moments.covariance.copy()
    names = list(SCHEMA.feature_names)
    groups = [names.index(f"g={level}") for level in "abc"]
    covariance[groups, names.index("y")] = 0.0
    means = rows.groupby("g")["y"].mean()
    expected = np.sqrt(np.mean((means - rows["y"].mean()) ** 2)) / rows["y"].std(ddof=0)
    assert truth.error_of_groups(replace(truth.moments, covariance=covariance)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("found", "related", "share"),
    [
        ([0.9, 0.8, 0.7, 0.1], [True, True, True, False], 1.0),
        ([0.9, 0.8, 0.7, 0.1], [True, False, True, True], 1 / 3),
        ([0.0, 0.0, 0.0, 0.0], [True, True, True, True], 0.0),
        ([-0.9, 0.1, 0.2, 0.3], [True, False, False, False], 1.0),
    ],
)
def test_pairs_are_found_in_the_longest_list_with_few_false(
    found: list[float], related: list[bool], share: float
) -> None:
    assert share_found(np.array(found), np.array(related)) == pytest.approx(share)


def test_components_miss_the_variance_of_directions_not_found() -> None:
    exact = np.diag([4.0, 3.0, 2.0, 1.0])
    assert missed_variance(exact, exact) == pytest.approx(0.0)
    assert missed_variance(np.diag([4.0, 3.0, 1.0, 2.0]), exact) == pytest.approx(1 / 9)


def test_the_file_of_runs_has_every_way_and_no_error_below_zero() -> None:
    found = medians()
    assert {"no privacy", "release", "release, δ", "MST, δ"} <= set(found.index.get_level_values("shown"))
    assert found.fillna(0.0).to_numpy().min() >= 0.0
