"""Typical rows: means and standard deviations as guessed, values within bounds, columns that go together a little."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.rows.rows import Rows
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, typical=(20, 80)),
    dpm.Numeric("income", -50, 350),
    dpm.Boolean("smoker"),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Date("visit", "2020-01-01", "2024-12-31"),
    dpm.Power("age", 2),
    dpm.Product("income", "smoker"),
)


@pytest.mark.parametrize("n_rows", [1024, 40])
def test_columns_have_the_moments_that_are_assumed(n_rows: int) -> None:
    values = TypicalTable.of(SCHEMA, typical_mean={"income": 20.0}).values(n_rows)
    lower, upper = SCHEMA.feature_bounds
    assert (values >= lower).all()
    assert (values <= upper).all()
    width = upper[6] - lower[6]
    np.testing.assert_allclose(values[:, [0, 1, 6]].mean(axis=0), [50.0, 20.0, lower[6] + width / 4.0], rtol=1e-3)
    np.testing.assert_allclose(values[:, [0, 1, 6]].std(axis=0), [15.0, 40.0, width / 10.0], rtol=1e-3)
    assert values[:, 2].mean() == pytest.approx(0.25, abs=1.0 / n_rows)
    np.testing.assert_allclose(values[:, 3:6].mean(axis=0), 1.0 / 3.0, atol=1.0 / n_rows)
    np.testing.assert_array_equal(values[:, 3:6].sum(axis=1), 1.0)
    np.testing.assert_array_equal(values[:, 7], values[:, 0] ** 2)
    np.testing.assert_array_equal(values[:, 8], values[:, 1] * values[:, 2])


def test_numbers_have_a_beta_distribution_and_a_common_factor() -> None:
    schema = dpm.Schema(*(dpm.Numeric(f"x{index}", 0, 10) for index in range(12)))
    values = TypicalTable.of(schema).values(1024)
    of_normal = stats.norm.ppf((stats.rankdata(values, axis=0) - 0.5) / 1024)
    pairs = np.corrcoef(of_normal.T)[np.tril_indices(12, -1)]
    assert pairs.mean() == pytest.approx(0.25, abs=0.03)
    assert (np.abs(pairs - 0.25) < 0.13).all()  # four standard errors of a correlation
    both = 0.25 * 0.75 / 0.01 - 1.0
    assert stats.kstest(values[:, 3] / 10.0, stats.beta(0.25 * both, 0.75 * both).cdf).statistic < 0.01


def test_an_impossible_mean_moves_and_the_largest_deviation_has_two_values() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", 0, 10))
    table = TypicalTable.of(schema, typical_sd={"a": 5.0, "b": 4.8})
    np.testing.assert_allclose(table.standard_deviations, [5.0, 4.8], rtol=0.02)
    assert table.means[0] == pytest.approx(5.0, rel=0.01)
    inside = np.abs(table.values(1024)[:, 0] - 5.0) < 4.9
    assert inside.mean() < 0.1


def test_shares_that_are_given_leave_the_rest_to_the_others() -> None:
    table = TypicalTable.of(SCHEMA, typical_mean={"region=north": 0.6, "smoker": 0.01})
    np.testing.assert_allclose(table.means[2:6], [0.01, 0.6, 0.2, 0.2], atol=1e-3)
    assert table.assumed[2:6].tolist() == [False, False, True, True]
    np.testing.assert_allclose(table.standard_deviations[2:6] ** 2, table.means[2:6] * (1.0 - table.means[2:6]))


def test_coordinates_lie_evenly_in_the_ball_and_rough_scales_in_their_middle() -> None:
    table = TypicalTable.of(dpm.Schema.unit_ball(5))
    lengths = np.linalg.norm(table.values(1024), axis=1)
    assert stats.kstest(lengths**5, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(table.standard_deviations, 1.0 / math.sqrt(7.0), rtol=0.06)
    scales = dpm.Schema(dpm.Numeric("a", scale=(1, 1e4), center=7.0), dpm.Numeric("b", scale=(4, 4)))
    table = TypicalTable.of(scales)
    np.testing.assert_allclose(table.standard_deviations, [100.0, 4.0], rtol=1e-6)
    np.testing.assert_allclose(table.means, [7.0, 0.0], atol=1e-9)


def test_moments_are_those_of_the_rows_as_often_as_they_count() -> None:
    table = TypicalTable.of(SCHEMA)
    rows = table.values(1024)
    repeated = np.vstack([rows, rows, rows[:100]])
    mean, covariance, _ = table.moments(2148)
    np.testing.assert_allclose(mean, repeated.mean(axis=0))
    np.testing.assert_allclose(covariance, np.cov(repeated.T, ddof=0), atol=1e-6)


def test_encoded_rows_are_those_of_a_table_of_these_values() -> None:
    schema = dpm.Schema(
        dpm.Numeric("a", 0, 10), dpm.Boolean("b"), dpm.Numeric("c", -1, 1, missing="available"), dpm.Power("a", 2)
    )
    table = TypicalTable.of(schema)
    values = table.values(64)
    read = Rows.of(np.ascontiguousarray(values[:, :3]), schema.with_indicators, threads=1).moments(bits=22)
    block = table.encoded(64, mean=True)
    assert block.shape == (64, 5)
    np.testing.assert_allclose(block.sum(axis=0), read.sum.astype(float) * read.scale, atol=1e-6)
    np.testing.assert_allclose(block.T @ block, read.gram.astype(float) * read.scale**2, atol=1e-6)


GAPS = dpm.Schema(
    dpm.Numeric("a", 0, 10, missing="available", fill=6.0, missing_share=0.25),
    dpm.Numeric("b", 0, 10, missing="fill", fill=9.0, missing_share=0.5),
    dpm.Numeric("c", 0, 10, missing="drop", missing_share=0.2),
    dpm.Boolean("d", missing="available", missing_share=0.1),
    dpm.Categorical("e", ["x", "y"], missing="available", missing_share=0.4),
    dpm.Power("a", 2),
)


def test_missing_values_are_treated_as_the_schema_says() -> None:
    table = TypicalTable.of(GAPS, typical_mean={"b": 5.0, "d": 0.3})
    mean, covariance, both = table.moments(1024)
    np.testing.assert_allclose(np.diag(both), [0.75, 1.0, 1.0, 0.9, 0.6, 0.6, 0.75], atol=2e-3)
    np.testing.assert_allclose(mean[:4], [6.0, 7.0, 2.5, 0.3], atol=0.06)
    assert mean[4] + mean[5] == pytest.approx(1.0)
    assert table.kept_share == pytest.approx(0.8)
    assert both[0, 4] == pytest.approx(0.45, abs=0.03)  # columns miss values independently
    values, present = table.values(1024), table.present(1024).astype(bool)
    np.testing.assert_allclose(covariance[0, 0], values[present[:, 0], 0].var())
    rows = present[:, 0] & present[:, 3]
    expected = np.mean((values[rows, 0] - mean[0]) * (values[rows, 3] - mean[3]))
    assert covariance[0, 3] == pytest.approx(expected)


def test_rows_of_several_weights_lack_the_same_values() -> None:
    schema = dpm.Schema(GAPS.columns[0], dpm.Numeric("x", 0, 1), dpm.SamplingWeight("w", 10.0))
    alone, weighted = (
        TypicalTable.of(each).encoded(5120, mean=True) for each in (dpm.Schema(*schema.columns[:2]), schema)
    )
    gaps = list(schema.with_indicators.feature_names).index("a (missing)")
    np.testing.assert_array_equal(np.unique(weighted[:, gaps]), np.unique(weighted[::5, gaps]))
    np.testing.assert_array_equal(weighted[:, gaps] > 0.0, np.repeat(alone[:, gaps] > 0.0, 5))


@pytest.mark.long
def test_missing_values_make_the_noise_on_a_mean_larger() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 1, missing="available"), dpm.Numeric("b", 0, 1))
    plain, gaps = (
        dpm.forecast(schema, n_rows=9000, rho=1.0, missing_share=guess, mechanism="gaussian").noise
        for guess in ({}, {"a": 0.5})
    )
    assert plain is not None
    assert gaps is not None
    assert gaps.mean[0] == pytest.approx(2.0 * plain.mean[0], rel=0.3)
    assert gaps.mean[1] == pytest.approx(plain.mean[1], rel=1e-2)


def test_guesses_by_pattern_give_way_to_names() -> None:
    schema = dpm.Schema(
        *(dpm.Numeric(name, 0, 10) for name in ("A1", "A2", "B1")), dpm.Boolean("A3", missing="available")
    )
    table = TypicalTable.of(schema, typical_sd={"A2": 3.0, "A[12]": 1.0}, missing_share={"*": 0.1})
    np.testing.assert_allclose(table.guessed_deviations[:3], [1.0, 3.0, 1.0])
    assert table.assumed.tolist() == [False, False, True, True]
    assert table.missing == {"A3": 0.1}
    with refused("matches none of the names. They are 'A1', 'A2', 'B1', 'A3'", names=("C*",)):
        TypicalTable.of(schema, typical_sd={"C*": 1.0})
    with refused("'A*' and '*1' both match 'A1': narrow one of them"):
        TypicalTable.of(schema, typical_sd={"A*": 1.0, "*1": 1.0})
    both = TypicalTable.of(schema, typical_sd={"A[12]": 1.0, "*1": 1.0, "A1": 3.0})
    np.testing.assert_allclose(both.guessed_deviations[:3], [3.0, 1.0, 1.0])
    with refused("whose rule is not missing='error': 'B*' matches none of the names. They are 'A3'"):
        TypicalTable.of(schema, missing_share={"B*": 0.1})
    with refused("names", names=("age^2",)):
        TypicalTable.of(SCHEMA, typical_sd={"age^2": 5.0})
    with refused("must be a number between 0 and 10, the feature's bounds"):
        TypicalTable.of(schema, typical_mean={"A1": 11.0})
    with refused("stops a release at the first missing value"):
        TypicalTable.of(schema, missing_share={"A1": 0.1})


def test_a_fill_near_a_bound_leaves_little_to_vary() -> None:
    table = TypicalTable.of(dpm.Schema(dpm.Numeric("pay", 0, 1e6, missing="available", fill=20_000)))
    assert table.means[0] == pytest.approx(20_000, rel=0.02)
    assert table.standard_deviations[0] == pytest.approx(20_000, rel=0.05)
    assert (table.assumed[0], table.assumed_means[0]) == (True, False)


def test_a_share_of_missing_values_is_kept_in_the_file_and_compares_equal() -> None:
    assert dpm.Schema.from_dict(GAPS.to_dict()) == GAPS
    assert dpm.Schema.from_dict(GAPS.to_dict()).columns[1].missing_share == 0.5  # type: ignore[union-attr]
    assert dpm.Boolean("d", missing="drop", missing_share=0.1) == dpm.Boolean("d", missing="drop")
    for share in (-0.1, 1.0, float("nan"), "0.1", True):
        with refused("must be a number from 0 to below 1"):
            dpm.Numeric("a", 0, 1, missing="drop", missing_share=share)  # type: ignore[arg-type]
