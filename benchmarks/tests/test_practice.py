"""The default release: its errors, its gains and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.practice.comparison_errors import CAP, RIDGE, Truth, correlations
from benchmarks.practice.default_errors import OwnMoments, collection, measured
from benchmarks.practice.tables import TABLES, Entry, chosen, made

import dpmoments as dpm

SCHEMA = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", -1, 1), dpm.Categorical("c", ("u", "v")))


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    shared = rng.uniform(-0.5, 0.5, 400)
    cells = {"a": 5 + 6 * shared, "b": shared + rng.uniform(-0.4, 0.4, 400), "c": np.where(shared > 0.2, "u", "v")}
    return pd.DataFrame(cells)


def released(covariance: np.ndarray, mean: np.ndarray) -> Any:
    """What a release of those encoded moments says."""
    encoding = SCHEMA.encoding(mean=True)
    return SimpleNamespace(
        schema=SCHEMA, covariance=encoding.decode_covariance(covariance), mean=encoding.decode_mean(mean)
    )


def test_a_release_without_noise_has_no_error(table: pd.DataFrame) -> None:
    truth = Truth.of(table, SCHEMA, "b")
    exact = dpm.release(table, SCHEMA, epsilon=1e13, repair="none", insecure_seed=0)
    assert max(truth.errors(exact).values()) < 1e-4
    assert truth.n_rows == 400
    assert np.allclose(
        truth.covariance * np.outer(truth.scale, truth.scale), np.cov(features(table).T, bias=True), atol=1e-4
    )


def features(table: pd.DataFrame) -> np.ndarray:
    return np.column_stack([table["a"], table["b"], table["c"] == "u", table["c"] == "v"]).astype(float)


def test_errors_are_relative_and_in_encoded_units(table: pd.DataFrame) -> None:
    truth = Truth.of(table, SCHEMA, "b")
    shift = np.array([3.0, 0.0, 0.0, 0.0]) * math.sqrt(np.trace(truth.covariance))
    found = truth.errors(released(1.5 * truth.covariance, truth.mean + shift))
    assert found["covariance"] == pytest.approx(0.5)
    assert found["correlations"] == pytest.approx(0.0, abs=1e-6)
    assert found["means"] == pytest.approx(3.0)


def test_correlations_count_every_pair_of_features_that_vary_once(table: pd.DataFrame) -> None:
    constant = table.assign(b=0.25)
    truth = Truth.of(constant, SCHEMA, None)
    covariance = truth.covariance.copy()
    pair = correlations(truth.covariance)[0, 2]
    covariance[0, 2] = covariance[2, 0] = 0.0
    covariance[1, 1] = 7.0  # does not vary in the table
    found = truth.errors(released(covariance, truth.mean))
    assert found["correlations"] == pytest.approx(abs(pair) / math.sqrt(3), rel=1e-4)
    assert math.isnan(found["regression"])


def test_regression_is_the_risk_over_that_of_the_best_ridge(table: pd.DataFrame) -> None:
    truth = Truth.of(table, SCHEMA, "b")
    assert list(truth.features) == [0, 2, 3]  # whole columns but the target's
    inner = truth.covariance[np.ix_(truth.features, truth.features)]
    cross = truth.covariance[truth.features, 1]
    ridge = RIDGE * np.diagonal(inner).mean() * np.eye(3)
    nothing = truth.covariance.copy()
    nothing[1, [0, 2, 3]] = nothing[[0, 2, 3], 1] = 0.0
    # At w = 0 the ridge objective exceeds its least value by crossᵀ(S + 2αI)⁻¹cross/2.
    expected = cross @ np.linalg.solve(inner + ridge, cross) / truth.covariance[1, 1]
    assert truth.regression_error(nothing) == pytest.approx(expected)
    assert 0.1 < expected < CAP
    wild = truth.covariance.copy()
    wild[1, 0] = wild[0, 1] = 50.0
    assert truth.regression_error(wild) == CAP


def test_the_default_has_no_error_without_noise_and_a_plain_one_with_it() -> None:
    (entry,) = collection(names=["airfoil"])
    (exact,), (noisy,) = (list(measured(entry, [(epsilon, 0.0)], 1)) for epsilon in (1e7, 1.0))
    errors = ("correlations", "means", "sds", "ridge", "release_mean")
    assert all(exact[error] < 1e-4 < noisy[error] for error in errors)
    assert (exact["kind"], exact["n"], exact["d"]) == ("numbers", 1503, 6)


def test_errors_of_the_default_are_in_standard_deviations_and_of_different_columns(table: pd.DataFrame) -> None:
    own = OwnMoments.of(table, SCHEMA)
    rows = features(table)
    covariance = np.cov(rows.T, bias=True)
    assert own.covariance == pytest.approx(covariance)
    wrong = covariance.copy()
    wrong[2, 3] = wrong[3, 2] = 0.0  # levels of one column: not a pair
    wrong[0, 1] = wrong[1, 0] = 0.0
    answer = SimpleNamespace(correlation=np.corrcoef(rows.T), privacy_noise=np.ones((4, 4)))
    told = SimpleNamespace(
        covariance=wrong, mean=rows.mean(axis=0) + 0.5 * rows.std(axis=0), correlations=lambda _: answer
    )
    found = own.errors(told)
    assert found["correlations"] == pytest.approx(np.corrcoef(rows.T)[0, 1] / math.sqrt(5))
    assert (found["means"], found["sds"], found["coverage"]) == pytest.approx((0.5, 0.0, 1.0))
    line = SimpleNamespace(target="b", features=("a",), coefficients=np.zeros(1), intercept=table["b"].mean())
    of_others = [rows[:, [0, 2]], np.ones((400, 1))]
    residuals = np.linalg.lstsq(np.hstack(of_others), rows[:, 1], rcond=None)[1][0]
    assert own.excess(line) == pytest.approx(1.0 - residuals / 400 / covariance[1, 1])


def small_tables() -> Iterator[Entry]:
    """Those made in no time, of files that come with what the tests need."""
    yield from chosen(names=["wine-cultivar", "diabetes", "breast-cancer", "iris"])
    yield from (entry for entry in TABLES if not entry.real and "0000" not in entry.name)


@pytest.mark.long(sets=6)
@pytest.mark.parametrize("entry", list(small_tables()), ids=lambda entry: entry.name)
def test_tables_are_made_alike_every_time_and_fit_their_schema(entry: Entry) -> None:
    first, second = made(entry), made(entry)
    assert first is not None
    assert second is not None
    truths = [Truth.of(data, schema, entry.target) for data, schema in (first, second)]
    assert truths[0].n_rows >= 30
    assert np.array_equal(truths[0].covariance, truths[1].covariance)
    assert np.trace(truths[0].covariance) > 0.0
