"""The default release: its errors, its gains and its tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from benchmarks.practice.default_errors import OwnMoments, collection, measured
from benchmarks.practice.tables import TABLES, Entry, chosen, made
from benchmarks.practice.tables.entry import exact_moments, plain_rows

import dpmoments as dpm

SCHEMA = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", -1, 1), dpm.Categorical("c", ("u", "v")))


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    shared = rng.uniform(-0.5, 0.5, 400)
    cells = {"a": 5 + 6 * shared, "b": shared + rng.uniform(-0.4, 0.4, 400), "c": np.where(shared > 0.2, "u", "v")}
    return pd.DataFrame(cells)


def test_exact_moments_and_rows_are_those_of_the_table(table: pd.DataFrame) -> None:
    n_rows, mean, covariance = exact_moments(table, SCHEMA)
    encoding, rows = SCHEMA.encoding(mean=True), features(table)
    assert n_rows == 400
    assert np.allclose(plain_rows(table, SCHEMA), rows)
    assert np.allclose(encoding.decode_mean(mean), rows.mean(axis=0), atol=1e-4)
    assert np.allclose(encoding.decode_covariance(covariance), np.cov(rows.T, bias=True), atol=1e-4)


def features(table: pd.DataFrame) -> np.ndarray:
    return np.column_stack([table["a"], table["b"], table["c"] == "u", table["c"] == "v"]).astype(float)


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
    (n_rows, *moments), (_, *again) = (exact_moments(*table) for table in (first, second))
    assert n_rows >= 30
    assert all(np.array_equal(one, other) for one, other in zip(moments, again, strict=True))
    assert np.trace(moments[1]) > 0.0
