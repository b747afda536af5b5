"""Forecasts against plain formulas: the noise of independent cells, typical rows that are drawn, plans that are made again."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from dpmoments.planning.imagined_release import ForecastNoise, ImaginedRelease

import dpmoments as dpm
from dpmoments.planning.typical_table import TypicalTable

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, typical=(20, 80)),
    dpm.Numeric("income", -50, 350),
    dpm.Numeric("debt", 0, 10),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
)
NUMBERS = 3


def noise_of(mechanism: str = "laplace", schema: dpm.Schema = SCHEMA, **options: Any) -> ForecastNoise:
    options = {"n_rows": 20_000, "epsilon": 1.0, **options}
    noise = dpm.forecast(schema, mechanism=mechanism, **options).noise
    assert noise is not None
    return noise


def plain(release: ImaginedRelease) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise SDs of means, standard deviations and correlations of independent cells about 0, encoded units.

    n·cov(i, j) is off by N_ij − m_i N_0j − m_j N_0i + (m_i m_j − cov(i, j)) N_00, a sum by N_0j, a count by N_00.
    """
    cells = release.noise.cell_variances()
    mean, n = release.unit_ball_mean, release.n_rows
    deviation = np.sqrt(np.diag(release.unit_ball_covariance))
    d = len(mean)
    of_mean = [math.sqrt(cells[0, j + 1] + mean[j] ** 2 * cells[0, 0]) / n for j in range(d)]
    of_deviation, of_pair = [], np.zeros((d, d))
    for j in range(d):
        square = (
            cells[j + 1, j + 1]
            + 4.0 * mean[j] ** 2 * cells[0, j + 1]
            + (mean[j] ** 2 - deviation[j] ** 2) ** 2 * cells[0, 0]
        )
        of_deviation.append(math.sqrt(square) / (2.0 * n * deviation[j]))
    for i, j in combinations(range(d), 2):
        square = cells[i + 1, j + 1] + mean[i] ** 2 * cells[0, j + 1] + mean[j] ** 2 * cells[0, i + 1]
        square += (mean[i] * mean[j]) ** 2 * cells[0, 0]
        of_pair[i, j] = of_pair[j, i] = math.sqrt(square) / (n * deviation[i] * deviation[j])
    return np.array(of_mean), np.array(of_deviation), of_pair


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("laplace", {}),
        ("laplace", {"neighbors": "replace_one"}),
        ("laplace", {"epsilon": 0.2, "typical_mean": {"income": 20.0}, "typical_sd": {"debt": 0.7}}),
    ],
)
def test_the_noise_of_independent_cells_is_that_of_plain_formulas(mechanism: str, options: dict[str, Any]) -> None:
    noise = noise_of(mechanism, **options)
    release = noise.release
    assert not release.centered
    of_mean, of_deviation, of_pair = plain(release)
    unit = release.encoding.scale
    np.testing.assert_allclose(unit[:NUMBERS], math.sqrt(5.0) * np.array([50.0, 200.0, 5.0]), rtol=1e-4)  # five columns
    np.testing.assert_allclose(noise.mean[:NUMBERS], (unit * of_mean)[:NUMBERS], rtol=1e-9)
    np.testing.assert_allclose(noise.standard_deviation[:NUMBERS], (unit * of_deviation)[:NUMBERS], rtol=1e-9)
    pairs = [of_pair[i, j] for i, j in combinations(range(NUMBERS), 2)]
    assert noise.typical_correlation(range(NUMBERS)) == pytest.approx(float(np.median(pairs)), rel=1e-9)
    # twice the budget, or twice the rows: half the noise, and Laplace noise is in inverse proportion to both
    for change in ({"epsilon": 2.0 * options.get("epsilon", 1.0)}, {"n_rows": 40_000}):
        other = noise_of(mechanism, **(options | change))
        np.testing.assert_allclose(noise.mean / other.mean, 2.0, rtol=1e-6)
        np.testing.assert_allclose(noise.standard_deviation[:3] / other.standard_deviation[:3], 2.0, rtol=1e-6)


def test_what_an_analysis_asks_of_an_imagined_release_is_one_table() -> None:
    release = noise_of().release
    n, mean = release.n_rows, release.mean
    np.testing.assert_allclose(release.second_moment, release.covariance + np.outer(mean, mean))
    np.testing.assert_allclose(mean, release.encoding.scale * release.unit_ball_mean + release.encoding.offset)
    np.testing.assert_allclose(release.noisy_sum, n * release.unit_ball_mean)
    np.testing.assert_allclose(release.noisy_gram, release.unit_ball_gram)
    square = release.unit_ball_gram / n - np.outer(release.unit_ball_mean, release.unit_ball_mean)
    np.testing.assert_allclose(square, release.unit_ball_covariance, atol=1e-14)
    np.testing.assert_allclose(np.sqrt(np.diag(release.covariance)), release.typical.standard_deviations)
    np.testing.assert_allclose(np.diag(release.correlation), 1.0)
    np.testing.assert_allclose(release.zero_of_units, release.encoding.offset / release.encoding.scale)
    shares = mean[NUMBERS : NUMBERS + 3]
    block = release.covariance[NUMBERS : NUMBERS + 3, NUMBERS : NUMBERS + 3]
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(block.sum(axis=0), 0.0, atol=1e-12)  # levels add up to one in every row


def test_the_typical_regression_explains_half_of_the_variance() -> None:
    release = noise_of().release
    for target, by in ((1, None), (1, ["age", "debt"])):
        imagined = release.explained_by_others(target, by)
        fit = imagined.ols(release.feature_names[target], by)
        assert fit.r_squared == pytest.approx(0.5, abs=0.01)
        np.testing.assert_allclose(
            np.sqrt(np.diag(imagined.covariance)), np.sqrt(np.diag(release.covariance)), rtol=1e-9
        )
    deviation = dict(zip(release.feature_names, release.typical.standard_deviations, strict=True))
    sizes = [abs(fit.params[name]) * deviation[name] for name in ("age", "debt")]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)  # equally


# The typical table --------------------------------------------------------------------------------------------------------


def test_defaults_are_those_of_the_page() -> None:
    typical = TypicalTable.of(SCHEMA)
    third = math.sqrt(2.0 / (3.0 * 4.0))  # of a share of which nothing is known: E p(1 − p)
    np.testing.assert_allclose(typical.standard_deviations, [15.0, 40.0, 1.0, *[third] * 3, math.sqrt(0.1875)])
    np.testing.assert_allclose(typical.means[[0, 3, 4, 5, 6]], [50.0, 1 / 3, 1 / 3, 1 / 3, 0.25])
    assert typical.assumed.tolist() == typical.assumed_means.tolist() == [False, *[True] * 6]
    assert typical.shares.tolist() == [False] * NUMBERS + [True] * 4
    np.testing.assert_allclose(typical.spectrum, [1.0, 1 / 2, 1 / 3])
    told = TypicalTable.of(SCHEMA, typical_mean={"smoker": 0.1}, typical_sd={"region=east": 0.4})
    assert told.standard_deviations[-1] == pytest.approx(0.3)
    assert told.means[5] * (1.0 - told.means[5]) == pytest.approx(0.16)
    assert told.means[5] < 0.5
    assert told.assumed.tolist() == [False, True, True, True, True, False, False]
    assert told.assumed_means.tolist() == [False, True, True, True, True, False, False]


def test_squared_distances_are_those_of_drawn_rows() -> None:
    """Of levels a row's squared distance is 1 − 2p and a constant, p the share of its level, all shares equally likely."""
    rng = np.random.default_rng(0)
    numbers = dpm.Schema(*(dpm.Numeric(name, -8, 8) for name in "abc"))
    typical = TypicalTable.of(numbers, typical_sd={"a": 1.0, "b": 1.0, "c": 1.0}, decay=0.0)
    deviations, _ = typical.in_unit_ball
    squares = np.sum((rng.normal(size=(400_000, 3)) * deviations) ** 2, axis=1)
    size, unevenness = typical.squared_distance
    assert size == pytest.approx(squares.mean(), rel=0.01)
    assert unevenness == pytest.approx(squares.var() / squares.mean() ** 2, rel=0.02)
    flag = TypicalTable.of(dpm.Schema(dpm.Boolean("flag")))
    values = (rng.random(400_000) < 0.25) / flag.encoding.scale[0]
    squares = (values - values.mean()) ** 2
    size, unevenness = flag.squared_distance
    assert size == pytest.approx(squares.mean(), rel=0.01)
    assert unevenness == pytest.approx(squares.var() / squares.mean() ** 2, rel=0.02)
    levels = TypicalTable.of(dpm.Schema(dpm.Categorical("level", list("abcd"))))
    scale = levels.encoding.scale[0]
    sizes, variances = [], list[np.ndarray]()
    for shares in rng.dirichlet(np.ones(4), 4_000):
        sizes.append((1.0 - np.sum(shares**2)) / scale**2)
        variances.append(rng.choice(shares, 50, p=shares))
    size, unevenness = levels.squared_distance
    assert size == pytest.approx(np.mean(sizes), rel=0.02)
    assert unevenness == pytest.approx(4.0 * np.var(variances) / scale**4 / np.mean(sizes) ** 2, rel=0.05)


# Changes, and what is needed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wide", [False, True])
def test_every_change_is_a_forecast_of_the_changed_plan(wide: bool) -> None:
    """Where the numbers fill their range no ball, which would depend on the eigenvalues of all columns, is better."""
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 10.0) for name in "abcd"), dpm.Categorical("kind", list("xyz")))
    options: dict[str, Any] = {"n_rows": 3_000, "epsilon": 1.0, "mechanism": "matrix-laplace"}
    if wide:
        options["typical_sd"] = dict.fromkeys("abcd", 4.0)
    forecast = dpm.forecast(schema, **options)
    found = {change.kind: change for change in forecast.changes}
    assert {"column", "columns", "budget", "rows"} <= set(found)
    assert ("bounds" in found) != wide
    assert [change.ratio for change in forecast.changes] == sorted(change.ratio for change in forecast.changes)
    assert len(forecast.changes) <= 6

    def noise(of: Any, kind: str = "", **changed: Any) -> ForecastNoise:
        rival = found[kind].what.partition(", with ")[2] if kind else ""
        known = {name: sd for name, sd in options.get("typical_sd", {}).items() if name in of.names}
        asked = options | {"typical_sd": known} | changed | ({"mechanism": rival} if rival else {})
        planned = dpm.forecast(of, **asked).noise
        assert planned is not None
        return planned

    def typical(of: Any, names: list[str] | None = None, kind: str = "", **changed: Any) -> float:
        planned = noise(of, kind, **changed)
        indices = [of.feature_names.index(name) for name in names or of.feature_names]
        return planned.typical_correlation(indices)

    def part(names: list[str]) -> dpm.Schema:
        return dpm.Schema(*(column for column in schema.columns if column.name in names))

    for kind, changed in (("budget", {"epsilon": 2.0}), ("rows", {"n_rows": 6_000})):
        assert found[kind].after == pytest.approx(typical(schema, None, kind, **changed))
        assert found[kind].before == pytest.approx(typical(schema))
    if wide:
        left = found["column"].what.removeprefix("without ").split(",")[0]
        rest = part([column.name for column in schema.columns if column.name != left])
        assert found["column"].after == pytest.approx(typical(rest, None, "column"))
        assert found["column"].before == pytest.approx(typical(schema, list(rest.feature_names)))
        others = [part([c.name for c in schema.columns if c.name != out]) for out in ("a", "kind")]
        ratios = [typical(other, None, "column") / typical(schema, list(other.feature_names)) for other in others]
        assert found["column"].ratio <= min(ratios) * (1.0 + 1e-9)
        first = part(["a", "b", "c"])
        assert found["columns"].after == pytest.approx(typical(first, None, "columns"))
        assert found["columns"].before == pytest.approx(typical(schema, ["a", "b", "c"]))
        return
    column = found["bounds"].what.split("range of ")[1].split(",")[0]
    index, typical_table = schema.names.index(column), forecast.noise.typical  # type: ignore[union-attr]
    mean = float(typical_table.means[index])
    lower = min(max(mean - 2.5, 0.0), 5.0)  # half the range, about the mean
    half = dpm.Schema(*(dpm.Numeric(c.name, lower, lower + 5.0) if c.name == column else c for c in schema.columns))
    guesses = {
        name: dict(zip(schema.names[:4], values, strict=False))
        for name, values in (("typical_sd", typical_table.standard_deviations), ("typical_mean", typical_table.means))
    }
    assert found["bounds"].after == pytest.approx(noise(half, "bounds", **guesses).mean[index])
    assert found["bounds"].before == pytest.approx(noise(schema).mean[index])


def test_dropping_rows_with_missing_values_is_planned_where_available_costs_more() -> None:
    def schema(missing: Any, **fill: float) -> dpm.Schema:
        first = dpm.Numeric("age", 0, 100, missing=missing, **fill)
        return dpm.Schema(first, dpm.Numeric("debt", 0, 10), dpm.Boolean("smoker", missing=missing))

    forecast = dpm.forecast(schema("available", fill=40.0), n_rows=20_000, epsilon=1.0, mechanism="laplace")
    [change] = [change for change in forecast.changes if change.kind == "complete"]
    assert change.before == pytest.approx(noise_of(schema=schema("available", fill=40.0)).typical_correlation())
    best = change.what.rpartition(", with ")[2]
    assert change.after == pytest.approx(noise_of(best, schema("drop"), n_rows=15_000).typical_correlation())
    assert "complete" not in {
        change.kind for change in dpm.forecast(schema("drop"), n_rows=20_000, epsilon=1.0).changes
    }


@pytest.mark.parametrize("wanted", [{"correlation": 0.02}, {"coefficient": 0.05}, {"mean": {"age": 0.3}}])
def test_what_is_needed_is_enough_and_a_little_less_is_not(wanted: dict[str, Any]) -> None:
    def reached(**options: Any) -> bool:
        noise = noise_of(**options)
        index = SCHEMA.feature_names.index("age")
        is_noise = noise.typical_correlation_is_noise
        return (
            (
                noise.typical_correlation() <= wanted.get("correlation", math.inf)
                and not (is_noise and "correlation" in wanted)
            )
            and ("coefficient" not in wanted or noise.coefficient <= wanted["coefficient"])
            and noise.mean[index] <= wanted.get("mean", {}).get("age", math.inf)
        )

    forecast = dpm.forecast(SCHEMA, n_rows=20_000, epsilon=1.0, mechanism="laplace")
    rows = forecast.rows_needed(**wanted)
    assert reached(n_rows=rows)
    assert not reached(n_rows=rows - 1)
    epsilon = forecast.epsilon_needed(**wanted)
    assert reached(epsilon=epsilon)
    assert not reached(epsilon=epsilon * (1.0 - 1e-5))
