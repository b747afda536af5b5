"""The rule of resolvability: p-values that agree with intervals, Holm's correction, effects seen in advance."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy

import dpmoments as dpm
from dpmoments.analysis import confidence
from dpmoments.analysis.confidence import deviations_for
from dpmoments.moments.cells import CellFamily, GaussianCells, IsotropicCells, LaplaceCells, MatrixLaplaceCells
from dpmoments.moments.law import NoiseLaw


def _law(family: CellFamily) -> NoiseLaw:
    return NoiseLaw.additive(family, 3, diagonal=2.0, off_diagonal=1.0, of_sum=1.0, of_count=2.0)


@pytest.mark.parametrize("size", [3, 5, 14])
def test_the_monotone_interpolant_is_that_of_scipy(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (np.cumsum(rng.exponential(size=size)), np.maximum(rng.normal(size=size), 0.0)):
        x = np.sort(rng.normal(size=size))
        at = np.concatenate([x, rng.uniform(x[0], x[-1], 50)])
        expected = scipy.interpolate.PchipInterpolator(x, values)(at)
        np.testing.assert_allclose(confidence._monotone(x, values)(at), expected, atol=1e-13)


FAMILIES = [GaussianCells(), LaplaceCells(), MatrixLaplaceCells(4), IsotropicCells(4)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999, 1 - 1e-6])
def test_p_is_what_the_interval_that_touches_zero_leaves(family: CellFamily, level: float) -> None:
    law = _law(family)
    privacy = np.array([0.0, 0.3, 0.7, 1.0])
    sampling = 1.0 - privacy
    reach = deviations_for(level, law, privacy, sampling)
    found = confidence.p_values(reach, privacy, sampling, law)
    np.testing.assert_allclose(found, 1.0 - level, rtol=0.02)
    if level == 0.95:  # a p-value below .05 and an interval without 0 are the same statement
        outside = confidence.p_values(reach * (1 + 1e-6), privacy, sampling, law)
        inside = confidence.p_values(reach * (1 - 1e-6), privacy, sampling, law)
        assert (outside < 0.05).all()
        assert (inside > 0.05).all()


def test_unknown_noise_has_no_p() -> None:
    assert np.isnan(confidence.p_values(np.ones(2), np.ones(2), np.ones(2), None)).all()


def _holds(p: np.ndarray, counts_as: np.ndarray | None = None) -> np.ndarray:
    return confidence.holds_among_all(p, np.ones(p.shape) if counts_as is None else counts_as, 0.95)


def _holm_by_steps(p: np.ndarray, counts_as: np.ndarray, rate: float = 0.05) -> np.ndarray:
    """The weighted step-down procedure as Holm (1979) states it."""
    rejected, left = np.zeros(len(p), dtype=bool), float(counts_as.sum())
    for index in np.argsort(p / counts_as):
        if p[index] >= rate * counts_as[index] / left:
            break
        rejected[index], left = True, left - counts_as[index]
    return rejected


def test_holm_is_the_step_down_procedure() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.uniform(size=rng.integers(1, 12)) ** rng.integers(1, 6)
        for counts_as in (np.ones(len(p)), rng.uniform(0.1, 1.0, len(p))):
            np.testing.assert_array_equal(_holds(p, counts_as), _holm_by_steps(p, counts_as))
            with_unknown = _holds(np.insert(p, 0, np.nan), np.insert(counts_as, 0, 0.5))
            np.testing.assert_array_equal(with_unknown[1:], _holm_by_steps(p, counts_as))


def _false_tables(rule: object, m: int = 30, tables: int = 4_000) -> float:
    p = np.random.default_rng(1).uniform(size=(tables, m))
    return float(np.mean([rule(row).any() for row in p]))  # type: ignore[operator]


@pytest.mark.long
def test_one_table_in_twenty_holds_a_false_statement() -> None:
    assert _false_tables(_holds) == pytest.approx(0.05, abs=0.012)
    assert _false_tables(lambda p: p < 0.05) > 0.7  # the verdicts by themselves


def test_what_is_forecast_is_seen_in_four_of_five() -> None:
    m, deviation, tables = 20, 0.3, 4_000
    none, sampling, normal = np.zeros(1), np.array([deviation**2]), _law(GaussianCells())
    effect = float(confidence.smallest_seen(none, sampling, m, normal)[0])
    rng = np.random.default_rng(2)
    estimate = rng.normal(0.0, deviation, (tables, m))
    estimate[:, 0] += effect
    p = 2.0 * scipy.stats.norm.sf(np.abs(estimate) / deviation)
    seen = np.mean([_holds(row)[0] for row in p])
    assert 0.78 < seen < 0.83
    alone = float(confidence.smallest_seen(none, sampling, 1, normal)[0])
    assert alone == pytest.approx(deviation * (1.959964 + 0.841621), rel=1e-6)
    heavy = confidence.smallest_seen(sampling, none, m, _law(LaplaceCells()))
    assert heavy[0] > 1.2 * effect  # Laplace tails reach further


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "n", "epsilon"),
    [("matrix-laplace", 3_000, 1.0), ("matrix-laplace", 20_000, 3.0), ("laplace", 8_000, 3.0)],
)
def test_forecast_correlations_are_seen_in_releases(mechanism: str, n: int, epsilon: float) -> None:
    """The planted correlation is what the forecast says will be seen with 80 % probability, by its own interval."""
    schema = dpm.Schema(*(dpm.Numeric(f"x{index}", -1, 1) for index in range(6)))
    forecast = dpm.forecast(schema, n_rows=n, epsilon=epsilon, typical_sd=dict.fromkeys(schema.feature_names, 0.2))
    planted = float(forecast.noise_of(mechanism).smallest_correlations()[1])
    assert forecast.noise_of(mechanism).smallest_between == {"numbers": pytest.approx(planted, rel=0.1)}
    seen = 0
    for seed in range(40):
        rows = np.random.default_rng(seed).normal(size=(n, 6))
        rows[:, 1] = planted * rows[:, 0] + np.sqrt(1.0 - planted**2) * rows[:, 1]
        release = dpm.release(
            np.clip(0.2 * rows, -1.0, 1.0), schema, epsilon=epsilon, mechanism=mechanism, insecure_seed=seed
        )
        seen += release.correlations().verdict[1][0] == "positive"
    assert 24 <= seen <= 39


def test_the_reason_is_the_larger_part() -> None:
    verdicts = confidence.sign_verdicts(
        np.array([0.4, -0.4, 0.01, 0.01, 0.2, 0.9]),
        np.array([0.04, 1e-9, 0.5, 0.5, np.nan, 0.5]),
        np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0]),
        np.array([1.0, 1.0, 1.0, 2.0, 1.0, 1.0]),
        np.array([True, True, True, True, True, False]),
        0.95,
    )
    reasons = ["not clear (noise)", "not clear (too few rows)", "noise unknown", "not estimable at this budget"]
    assert verdicts == ["positive", "negative", *reasons]


def test_equal_parts_are_called_noise() -> None:
    assert confidence.not_clear(1.0, 1.0) == confidence.not_clear(1.0 + 1e-9, 1.0) == confidence.NOT_CLEAR_NOISE
    assert confidence.not_clear(1.0, 1.0 + 1e-9) == confidence.NOT_CLEAR_ROWS


def test_estimable_is_half_of_what_was_public() -> None:
    lower, upper = np.array([-0.49, -0.5, -np.inf, np.nan]), np.array([0.49, 0.5, 0.0, 0.1])
    assert confidence.estimable(lower, upper, -1.0, 1.0).tolist() == [True, False, False, False]


def _groups(seed: int, epsilon: float = 1.0, *, differ: bool = False) -> dpm.MomentRelease:
    rng = np.random.default_rng(seed)
    levels = [f"r{index}" for index in range(5)]
    region = rng.choice(levels, 5_000)
    value = rng.normal(50.0, 10.0, (5_000, 2)).clip(0.0, 100.0)
    value[:, 0] += 8.0 * differ * (region == "r0")
    frame = pa.table({"region": region, "a": value[:, 0].clip(0.0, 100.0), "b": value[:, 1]})
    schema = dpm.Schema(dpm.Categorical("region", levels), dpm.Numeric("a", 0, 100), dpm.Numeric("b", 0, 100))
    return dpm.release(frame, schema, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=seed)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
def test_p_of_a_difference_agrees_with_its_interval(epsilon: float) -> None:
    for seed in range(6):
        found = _groups(seed, epsilon, differ=seed % 2 == 0).group_means("region").differences
        outside = (found.lower > 0.0) | (found.upper < 0.0)
        np.testing.assert_array_equal(found.p_value < 0.05, outside)
        seen = ~np.isnan(found.difference)
        assert (found.lower[seen] <= found.difference[seen]).all()
        assert (found.difference[seen] <= found.upper[seen]).all()


@pytest.mark.slow
def test_groups_that_do_not_differ_are_seldom_said_to() -> None:
    """Twenty differences a table: without a correction four tables in ten would state a false one."""
    false, uncorrected = 0, 0
    for seed in range(60):
        found = _groups(seed, 3.0).group_means("region").differences
        false += bool(found.holds_among_all.any())
        named = np.array([["higher" in word for word in row] for row in found.verdict])
        np.testing.assert_array_equal(named, found.p_value < 0.05)
        uncorrected += bool(named.any())
    assert false <= 5
    assert uncorrected >= 12


def test_groups_that_differ_are_named() -> None:
    found = _groups(0, 3.0, differ=True).group_means("region", ["a"]).differences
    named = [word for pair, word in zip(found.pairs, found.verdict[0], strict=True) if "region=r0" in pair]
    assert named == ["region=r0 higher"] * 4
    assert found.holds_among_all.sum() >= 4
    assert found.comparisons[1].sum() == pytest.approx(4.0)  # ten pairs of five groups


def _nulls(seed: int, epsilon: float = 3.0) -> dpm.MomentRelease:
    rng = np.random.default_rng(seed)
    table = rng.uniform(-0.3, 0.3, (5_000, 9))
    table[:, 1] = 0.8 * table[:, 0] + 0.6 * table[:, 1]
    schema = dpm.Schema.unit_ball(9)
    return dpm.release(table, schema, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=seed)


@pytest.mark.slow
def test_columns_that_are_not_related_are_seldom_said_to_be() -> None:
    """Of 36 pairs one is related: without a correction most tables state a false sign."""
    false, uncorrected, seen = 0, 0, 0
    for seed in range(60):
        found = _nulls(seed).correlations()
        verdict = np.array(found.verdict, dtype=object)
        seen += found.holds_among_all[1, 0]
        false += bool(np.tril(found.holds_among_all).sum() > found.holds_among_all[1, 0])
        assert found.p_value is not None
        pairs = np.tril_indices(9, -1)
        outside = (found.lower[pairs] > 0.0) | (found.upper[pairs] < 0.0)
        np.testing.assert_array_equal(found.p_value[pairs] < 0.05, outside)
        np.testing.assert_array_equal(np.isin(verdict[pairs], ["positive", "negative"]), outside)
        uncorrected += bool(outside.sum() > 1)
    assert false <= 5
    assert uncorrected >= 30
    assert seen == 60


def test_a_column_of_many_levels_takes_little_from_the_others() -> None:
    """Its k levels count as k − 1 comparisons, and nothing that is printed of another pair changes with them."""
    rng, levels = np.random.default_rng(0), [f"s{index}" for index in range(12)]
    frame = pa.table({"x": rng.normal(0, 1, 4_000), "y": rng.normal(0, 1, 4_000), "state": rng.choice(levels, 4_000)})
    schema = dpm.Schema(dpm.Numeric("x", -4, 4), dpm.Numeric("y", -4, 4), dpm.Categorical("state", levels))
    release = dpm.release(frame, schema, epsilon=3.0, insecure_seed=0)
    whole, two = release.correlations(), release.correlations(["x", "y"])
    assert whole.comparisons[1].sum() == pytest.approx(1 + 2 * 11)
    assert whole.verdict[1][0] == two.verdict[1][0]
    assert release.group_means("state").differences.comparisons[1].sum() == pytest.approx(2 * 11)


def test_features_of_one_column_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    frame = pa.table({"age": rng.uniform(0, 100, 3_000), "sex": rng.random(3_000) < 0.5})
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("sex"), dpm.Power("age", 2), dpm.Product("age", "sex"))
    found = dpm.release(frame, schema, epsilon=10.0, insecure_seed=0).correlations()
    names = found.feature_names
    said = {(names[j], names[i]) for i in range(4) for j in range(i) if found.verdict[i][j]}
    assert said == {("age", "sex"), ("sex", "age^2")}
    assert "of 2 pairs" in found.heading[0]


@cache
def _steep(epsilon: float) -> list[Any]:
    """Return fits of y on x, R² of 0.89, 400 rows."""
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(0.0, 1.0, 400), -4.0, 4.0)
    table = pd.DataFrame({"x": x, "y": np.clip(2.0 * x + rng.normal(0.0, 0.7, 400), -10.0, 10.0)})
    schema = dpm.Schema(dpm.Numeric("x", -4, 4), dpm.Numeric("y", -10, 10))
    made = (dpm.release(table, schema, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=i) for i in range(40))
    return [release.ols("y", ["x"]) for release in made]


@pytest.mark.slow
def test_an_r_squared_that_is_not_clear_is_not_printed_as_a_number() -> None:
    seen = set()
    for fit in [*_steep(1.0), *_steep(4.0), *_steep(200.0)]:
        (lower, upper), words = fit.r_squared_interval(), fit.r_squared_text
        kind = "not" if "not estimable" in words else words.split()[2] if words.startswith("R² is") else "="
        reach = 1.96 * fit.explained.privacy_error
        known = reach < 0.25 and reach < fit.explained.share < 1.0 - reach and fit.equations.identified
        unknown = "not" if upper - lower >= 0.5 else "below" if lower <= 0.0 else "at"
        assert kind == ("=" if known else unknown), words
        assert math.isfinite(fit.r_squared) == known
        assert (fit.to_dict()["r_squared"] is not None) == known
        assert any(line.startswith(words) for line in fit.heading)
        seen.add(kind)
        nearest = min(fit.explained.share, 1.0 - fit.explained.privacy_error)
        assert fit.explained.sampling_error >= 2.0 * np.sqrt(max(nearest, 0.0) / 410.0) * (1.0 - nearest)
    assert {"not", "at", "="} <= seen
