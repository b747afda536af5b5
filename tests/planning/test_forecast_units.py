"""The forecast in the table's units: what a release says afterwards, what simulated noise does, and what it takes for less."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from dpmoments.mechanisms.adaptive_ball import AdaptiveBallPlan

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.noise.terms import NoiseLaw
from dpmoments.planning import imagined_release
from dpmoments.planning.changes import Wanted, changes
from dpmoments.planning.forecast_table import _refusals_in_a_line
from dpmoments.planning.imagined_release import EXPLAINED, ForecastNoise, ReleasePlan, possible_runs
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from support.said import Said, refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 2e5), dpm.Boolean("smoker"), dpm.Categorical("region", ["n", "s", "e"])
)  # fmt: skip
NUMBERS = dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 100) for place in range(6)))
SPREADS = {"age": 18.0, "income": 30_000.0}
BUDGETS: tuple[dict[str, float], ...] = (dict(epsilon=1.0), dict(epsilon=1.0, delta=1e-6), dict(rho=0.3))
N_ROWS = 4000


def people(n_rows: int = N_ROWS) -> Any:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "age": rng.normal(45, 18, n_rows).clip(0, 100),
            "income": rng.normal(60_000, 30_000, n_rows).clip(0, 2e5),
            "smoker": rng.random(n_rows) < 0.3,
            "region": rng.choice(["n", "s", "e"], n_rows, p=[0.5, 0.3, 0.2]),
        }
    )


def setting(mechanism: str, schema: dpm.Schema = SCHEMA, n_rows: int = N_ROWS, **options: Any) -> ReleasePlan:
    neighbors = options.pop("neighbors", "add_remove")
    budget = PrivacyBudget.of(**{key: options.pop(key) for key in ("epsilon", "delta", "rho") if key in options})
    typical = TypicalTable.of(schema, **options)
    return ReleasePlan(typical, n_rows, budget, Neighbors.of(neighbors), MECHANISMS[mechanism]())


# ---------------------------------------------------------------- as the release says it


def compared_with_description(mechanism: str, budget: dict[str, float], neighbors: str) -> None:
    """A forecast for the moments that a release found has the numbers that its description has."""
    released = dpm.release(
        people(), SCHEMA, neighbors=neighbors, mechanism=mechanism, insecure_seed=5, repair="none", threads=1, **budget
    )
    said = released.describe()
    names, n_rows = SCHEMA.feature_names, released.n_rows
    assert said.mean is not None
    means = np.clip(said.mean, *SCHEMA.feature_bounds)
    assert said.standard_deviation is not None
    guess = {name: float(said.standard_deviation[place]) for place, name in enumerate(names[:2])}
    middle = dict(zip(names, means.tolist(), strict=True))
    found = dpm.forecast(SCHEMA, n_rows=n_rows, neighbors=neighbors, typical_sd=guess, typical_mean=middle, **budget)
    noise = found.noise_of(mechanism)
    np.testing.assert_allclose(noise.mean, said.mean_noise, rtol=1e-9)
    np.testing.assert_allclose(
        noise.standard_deviation[:2], said.standard_deviation_noise[:2], rtol=1e-5
    )  # n is rounded
    if said.count_noise == 0.0:  # else the noisy count is a part of a share's spread
        np.testing.assert_allclose(noise.standard_deviation[2:], said.standard_deviation_noise[2:], rtol=1e-6)


CASES = [
    *(("laplace", BUDGETS[0]), ("matrix-laplace", BUDGETS[0]), ("isotropic", BUDGETS[0])),
    *(("gaussian", BUDGETS[1]), ("gaussian", BUDGETS[2])),
]


@pytest.mark.parametrize(("mechanism", "budget"), CASES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_numbers_are_those_of_the_description_afterwards(
    mechanism: str, budget: dict[str, float], neighbors: str
) -> None:
    compared_with_description(mechanism, budget, neighbors)


def test_a_forecast_that_forgets_the_noise_on_the_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = imagined_release.possible_runs

    def without_count(*of: Any) -> Any:
        found = runs(*of)
        return found and tuple(dataclasses.replace(run, law=exact_count(run.law)) for run in found)

    def exact_count(law: NoiseLaw) -> NoiseLaw:
        [term] = law.terms
        variances = term.variances.copy()
        variances[0, 0] = 0.0
        return NoiseLaw((dataclasses.replace(term, variances=variances),))

    monkeypatch.setattr(imagined_release, "possible_runs", without_count)
    with pytest.raises(AssertionError):
        compared_with_description("laplace", BUDGETS[0], "add_remove")


def test_the_noise_on_a_mean_about_a_center_is_that_about_the_center() -> None:
    """The count's noise moves a mean by its distance from the center, not from the middle of the bounds."""
    rng = np.random.default_rng(0)
    table = rng.normal([80, 10, 50, 30, 70, 50], 1.5, (20_000, 6)).clip(0, 100)
    releases = [
        dpm.release(table, NUMBERS, rho=0.5, insecure_seed=seed, threads=1, repair="none") for seed in range(80)
    ]
    assert all(release.center is not None for release in releases)
    means = np.array([release.mean for release in releases])
    stated = np.sqrt(np.mean([release.describe().mean_noise ** 2 for release in releases], axis=0))
    np.testing.assert_allclose(means.std(axis=0), stated, rtol=0.3)  # 60 releases: 0.1; it was 3 times too large


# ---------------------------------------------------------------- as simulated noise does


def simulated(noise: ForecastNoise, trials: int, correlation: float = 0.0) -> tuple[Any, Any, Any]:
    """Errors of means, standard deviations and correlations of moments to which a plan's noise was added, cell by cell."""
    rng = np.random.default_rng(11)
    [law] = [release.noise for _, release in noise.releases]
    deviations, means = noise.typical.in_unit_ball
    d, n = len(means), noise.n_rows
    covariance = np.outer(deviations, deviations) * ((1 - correlation) * np.eye(d) + correlation)
    matrix = n * np.block([[np.ones((1, 1)), means[None, :]], [means[:, None], covariance + np.outer(means, means)]])
    cells = np.triu(rng.normal(size=(trials, d + 1, d + 1))) * np.sqrt(law.cell_variances())
    noisy = matrix + cells + np.swapaxes(np.triu(cells, 1), 1, 2)
    mean = noisy[:, 0, 1:] / noisy[:, :1, 0]
    second = noisy[:, 1:, 1:] / noisy[:, :1, :1] - mean[:, :, None] * mean[:, None, :]
    roots = np.sqrt(np.maximum(np.einsum("tii->ti", second), 0.0))
    scale = noise.typical.schema.encoding(mean=True).scale
    found = second / (roots[:, :, None] * roots[:, None, :])
    return (mean - means) * scale, (roots - deviations) * scale, found - correlation


@pytest.mark.parametrize(("mechanism", "budget"), [("gaussian", BUDGETS[2]), ("laplace", BUDGETS[0])])
def test_means_spreads_and_correlations_are_within_a_twentieth_of_simulated_noise(
    mechanism: str, budget: dict[str, float]
) -> None:
    guess = {name: 8.0 + 4.0 * place for place, name in enumerate(NUMBERS.feature_names)}
    means = {name: 10.0 + 15.0 * place for place, name in enumerate(NUMBERS.feature_names)}
    noise = setting(mechanism, NUMBERS, 60_000, typical_sd=guess, typical_mean=means, **budget).noise
    assert noise is not None
    of_mean, of_spread, of_correlation = simulated(noise, 3000)
    np.testing.assert_allclose(noise.mean, of_mean.std(axis=0), rtol=0.06)
    np.testing.assert_allclose(noise.standard_deviation, of_spread.std(axis=0), rtol=0.06)
    below = np.tril_indices(6, -1)
    np.testing.assert_allclose(noise.correlation[below], of_correlation.std(axis=0)[below], rtol=0.06)


def test_a_standardized_coefficient_is_within_a_tenth_of_simulated_noise() -> None:
    noise = setting("gaussian", NUMBERS, 9000, typical_sd=dict.fromkeys(NUMBERS.feature_names, 12.0), rho=0.3).noise
    assert noise is not None
    assert noise.regression is not None
    assert noise.regression.regressors == 5
    rng = np.random.default_rng(2)
    sigma, beta = noise.typical_correlation(), np.full(5, math.sqrt(EXPLAINED / 5))
    assert 0.01 < sigma < 0.2
    errors = []
    for _ in range(4000):
        cells = np.triu(rng.normal(size=(6, 6)) * sigma, 1)
        noisy = np.eye(6) + cells + cells.T
        noisy[:5, 5] += beta
        errors.append(np.linalg.solve(noisy[:5, :5], noisy[:5, 5]) - beta)
    assert noise.coefficient == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.1)


def test_what_is_lost_is_called_noise() -> None:
    table = dpm.forecast(SCHEMA, n_rows=40, epsilon=0.5, typical_sd=SPREADS)
    assert table.noise is not None
    assert all(table.noise.description.standard_deviation_is_noise[:2])
    assert table.noise.typical_correlation_is_noise
    assert math.isinf(table.noise.coefficient)
    text = str(table)
    assert re.search(r"age .* noise", text)
    lost = f"{table.noise.typical_correlation():.2g} (noise)"
    assert f"± on a correlation (the median of two columns that are not correlated): {lost}" in text
    assert table.noise.description.noise_text in text  # the words of describe()
    assert "“noise”: the noise is as large as the value" in text
    clear = dpm.forecast(SCHEMA, n_rows=10**6, epsilon=0.5, typical_sd=SPREADS)
    assert "noise: that is" not in str(clear).split("Expected error")[0]


def test_an_imagined_release_is_read_by_analyses_and_is_no_release() -> None:
    """Its moments are the typical ones: what analyses estimate is what was assumed."""
    noise = setting("gaussian", rho=0.5, typical_sd=SPREADS, typical_mean={"age": 40.0}).noise
    assert noise is not None
    release, said = noise.release, noise.description
    assert said.mean is not None
    assert said.standard_deviation is not None
    np.testing.assert_allclose(said.mean, noise.typical.means)
    np.testing.assert_allclose(said.standard_deviation, noise.typical.standard_deviations)
    assert (said.mean[0], said.standard_deviation[0]) == pytest.approx((40.0, 18.0))
    apart = np.isfinite(noise.correlation)
    np.testing.assert_allclose(release.correlations().correlation[apart], 0.0, atol=1e-12)
    assert noise.regression is not None
    target = noise.regression.target
    fit = release.explained_by_others(SCHEMA.feature_names.index(target)).ols(target)
    assert fit.released_r_squared == pytest.approx(EXPLAINED)
    places = [SCHEMA.feature_names.index(name) for name in fit.features if name in SPREADS]
    deviations = noise.typical.standard_deviations
    errors = [
        fit.privacy_errors[fit.features.index(SCHEMA.feature_names[place])] * deviations[place] for place in places
    ]
    assert noise.coefficient == pytest.approx(np.median(errors) / deviations[SCHEMA.feature_names.index(target)])
    assert not release.privacy.private
    assert not hasattr(release, "save")
    assert not hasattr(release, "receipt")


def test_noise_means_the_same_in_every_part_of_a_forecast() -> None:
    table = dpm.forecast(SCHEMA, n_rows=120, epsilon=0.5, typical_sd=SPREADS)
    for row in table:
        if row.typical_noise is not None:
            noise = table.noise_of(row.mechanism)
            hidden = noise.release.correlations().privacy_noise[0, 1]
            assert row.typical_is_noise == noise.typical_correlation_is_noise == math.isnan(hidden)
            assert row.correlation_shown.endswith("noise)") == row.typical_is_noise
    assert {row.typical_is_noise for row in table if row.typical_noise is not None} == {True}
    assert not dpm.forecast(SCHEMA, n_rows=10**6, epsilon=0.5, typical_sd=SPREADS)["laplace"].typical_is_noise


# ---------------------------------------------------------------- adaptive-ball


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_ball_is_foreseen_on_rows_as_assumed(budget: dict[str, float]) -> None:
    """Normal rows with eigenvalues as 1/i: noise on means within a quarter of what 30 releases state of theirs."""
    d, n_rows = 6, 40_000
    rng = np.random.default_rng(7)
    rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
    rows = rng.normal(size=(n_rows, d)) / np.sqrt(np.arange(1, d + 1)) @ rotation
    spread = 6.0 / rows.std(axis=0).mean()
    table = (50.0 + spread * rows).clip(0, 100)
    guess = dict(zip(NUMBERS.feature_names, table.std(axis=0).tolist(), strict=True))
    means = dict.fromkeys(NUMBERS.feature_names, 50.0)
    noise = setting("adaptive-ball", NUMBERS, n_rows, typical_sd=guess, typical_mean=means, **budget).noise
    assert noise is not None
    assert sum(probability for probability, _ in noise.releases) == pytest.approx(1.0, abs=0.01)
    stated = [
        dpm.release(table, NUMBERS, mechanism="adaptive-ball", insecure_seed=seed, threads=1, **budget)
        .describe()
        .mean_noise
        for seed in range(30)
    ]
    ratio = np.linalg.norm(noise.mean) / np.sqrt(np.mean(np.square(stated), axis=0).sum())
    assert 0.75 < ratio < 1.25


def test_the_ball_is_never_worse_than_the_guarantee_and_no_better_than_its_smallest() -> None:
    for budget, n_rows in itertools.product(BUDGETS, (30, 1000, 10**6)):
        plan = setting("adaptive-ball", NUMBERS, n_rows, **budget).plan
        assert isinstance(plan, AdaptiveBallPlan)
        for part in possible_runs(plan, TypicalTable.of(NUMBERS), n_rows) or ():
            assert 0.0 < part.probability <= 1.0 + 1e-9
            assert math.sqrt(part.law.energy) <= plan.guaranteed_error * (1.0 + 1e-9)


def test_the_range_from_no_gain_to_that_gain_is_shown() -> None:
    table = dpm.forecast(NUMBERS, n_rows=N_ROWS, rho=0.5)
    assert table.best == "adaptive-ball"
    assert table.noise is not None
    assert table.worst is not None
    most, expected = table.worst.typical_correlation(), table.noise.typical_correlation()
    assert most > 2.0 * expected
    assert f"{expected:.2g}; {most:.2g} if rows fill their bounds and adaptive-ball gains nothing" in str(table)
    assert table.to_dict()["in_units"]["correlation_at_most"] == most


# ---------------------------------------------------------------- turned round


WANTED: tuple[dict[str, Any], ...] = (
    dict(correlation=0.03),
    dict(coefficient=0.05),
    dict(mean={"age": 0.5}),
    dict(sd={"income": 900.0}),
    dict(share=0.01),
    dict(share={"smoker": 0.01}, mean={"age": 0.2}),
)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", range(len(BUDGETS)))
def test_rows_and_budgets_needed_are_the_smallest(kind: int, neighbors: str) -> None:
    budget, mechanism = BUDGETS[kind], ("matrix-laplace", "gaussian", "gaussian")[kind]
    options: dict[str, Any] = dict(neighbors=neighbors, typical_sd=SPREADS)
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, **budget, **options)
    for wanted in WANTED[:3] if neighbors == "add_remove" else WANTED[3:]:
        goal = Wanted.of(table.noise.typical, **wanted)  # type: ignore[union-attr]

        def holds(
            n_rows: int, budget: dict[str, float], name: str = mechanism, goal: Wanted = goal, options: Any = options
        ) -> bool:
            noise = setting(name, n_rows=n_rows, **budget, **options).noise
            return noise is not None and goal.holds(noise)

        rows = table.rows_needed(mechanism=mechanism, **wanted)
        assert holds(rows, budget)
        assert not holds(rows - 1, budget)
        needed = table.rho_needed if "rho" in budget else table.epsilon_needed
        size = needed(mechanism=mechanism, **wanted)
        name = "rho" if "rho" in budget else "epsilon"
        assert holds(N_ROWS, budget | {name: size})
        assert not holds(N_ROWS, budget | {name: size * (1.0 - 3e-6)})


def test_more_is_needed_for_less_noise() -> None:
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0, typical_sd=SPREADS)
    rows = [table.rows_needed(correlation=value) for value in (0.3, 0.1, 0.03, 0.01)]
    budgets = [table.epsilon_needed(mean={"age": value}) for value in (3.0, 1.0, 0.3, 0.1)]
    assert rows == sorted(rows)
    assert budgets == sorted(budgets)
    assert len({*rows}) == 4


def test_a_search_that_stops_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmoments.planning.changes._holds", lambda setting, _: setting.n_rows >= 37)
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0)
    assert table.rows_needed(correlation=0.1) == 37


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({}, Said("accuracy-needed")),
        (dict(correlation=0.0), Said("not-positive", parameter="correlation")),
        (dict(correlation=float("nan")), Said("not-positive", parameter="correlation")),
        (dict(mean={"Age": 1.0}), Said("unknown-names-in", names=("Age",), parameter="mean")),
        (
            dict(mean={"smoker": 1.0}),
            Said("accuracy-of-other-kind", instead="share", names=("smoker",), parameter="mean"),
        ),
        (
            dict(share={"age": 0.1}),
            Said("accuracy-of-other-kind", instead="mean or sd", names=("age",), parameter="share"),
        ),
        (dict(mean={"age": -1.0}), Said("not-positive", parameter="mean of 'age'", value=-1.0)),
        (dict(mechanism="coinpress", correlation=0.1), Said("original-units-unknown-for", mechanism="coinpress")),
        (dict(mechanism="magic", correlation=0.1), Said("unknown-mechanism", name="magic", of_means=False)),
    ],
)
def test_what_cannot_be_needed_is_refused(wanted: dict[str, Any], said: Said) -> None:
    table = dpm.forecast(SCHEMA, n_rows=30, rho=1.0)
    for needed in (table.rows_needed, table.rho_needed):
        with refused(said):
            needed(**wanted)


def test_an_accuracy_out_of_reach_is_refused() -> None:
    table = dpm.forecast(SCHEMA, n_rows=30, rho=1.0)
    with refused("not-within-rows"):
        table.rows_needed(mean={"age": 1e-14})
    with refused("not-within-budget", symbol="ρ"):
        table.rho_needed(mean={"age": 1e-14})


def test_a_budget_is_needed_in_the_kind_of_the_forecast() -> None:
    with refused("forecast-in-other-units-rho"):
        dpm.forecast(SCHEMA, n_rows=30, rho=1.0).epsilon_needed(correlation=0.1)
    with refused("forecast-in-other-units-epsilon"):
        dpm.forecast(SCHEMA, n_rows=30, epsilon=1.0).rho_needed(correlation=0.1)
    with refused("not-within-budget"):
        dpm.forecast(SCHEMA, n_rows=3, epsilon=1.0).epsilon_needed(mean={"age": 1e-4})
    with refused("nothing-in-original-units"):
        dpm.forecast(dpm.Schema.unbounded(2), n_rows=100, rho=1.0).rows_needed(correlation=0.1)
    with refused("accuracy-of-two-columns"):
        dpm.forecast(dpm.Schema(dpm.Numeric("x", 0, 1)), n_rows=100, rho=1.0).rows_needed(correlation=0.1)


# ---------------------------------------------------------------- what to change


def test_each_change_is_what_a_forecast_of_it_says() -> None:
    before = setting("matrix-laplace", NUMBERS, epsilon=1.0)
    found = {change.kind: change for change in changes(before)}
    assert {"column", "columns", "bounds", "budget", "rows"} <= set(found)
    assert [change.ratio for change in changes(before)] == sorted(change.ratio for change in found.values())
    assert before.noise is not None
    now = before.noise.typical_correlation()
    less = dpm.Schema(*NUMBERS.table_columns[1:])
    then = setting("matrix-laplace", less, epsilon=1.0).noise
    assert then is not None
    assert found["column"].after == pytest.approx(then.typical_correlation(), rel=1e-12)
    assert found["column"].before == pytest.approx(now, rel=1e-12)
    twice = setting("matrix-laplace", NUMBERS, 2 * N_ROWS, epsilon=1.0).noise
    assert twice is not None
    assert found["rows"].after == pytest.approx(twice.typical_correlation(), rel=1e-12)
    assert found["rows"].ratio == pytest.approx(0.5)
    assert found["bounds"].ratio < 0.6


def test_the_column_that_costs_most_is_the_one_named() -> None:
    """In a ball that is found, the flag, whose rows lie farthest apart."""
    schema = dpm.Schema(*NUMBERS.columns, dpm.Boolean("flag"))
    guess = dict.fromkeys(NUMBERS.feature_names, 3.0)
    [change] = [
        c for c in changes(setting("adaptive-ball", schema, 50_000, rho=0.5, typical_sd=guess)) if c.kind == "column"
    ]
    assert change.what == "without flag"
    assert change.ratio < 0.5
    told = dpm.forecast(schema, n_rows=50_000, rho=0.5, typical_sd=guess)
    assert told.best == "gaussian"
    assert "without flag, with adaptive-ball: " in str(told)


@pytest.mark.parametrize(
    ("columns", "rows", "measure"),
    [
        ((dpm.Numeric("age", 0, 120), dpm.Numeric("income", 0, 200_000)), 5000, "correlation"),
        ((dpm.Numeric("age", 0, 120), dpm.Numeric("income", 0, 200_000)), 100, "correlation"),
        ((dpm.Numeric("age", 0, 120),), 5000, "mean"),
    ],
)
def test_the_best_mechanism_is_best_by_the_measure_that_is_named(columns: Any, rows: int, measure: str) -> None:
    found = dpm.forecast(dpm.Schema(*columns), n_rows=rows, epsilon=1.0)
    shown = {line[0]: line[3] for line in found.mechanism_table()[1:] if line[3] != "–"}
    size = {name: float(text.split()[0]) for name, text in shown.items()}
    words = re.search(rf"best: (\S+?),? .*the least noise on a typical {measure}; (\S+) has (\S+) ×", found.heading[1])
    assert words is not None
    best, second, times = words.groups()
    assert size[best] == min(size.values())
    assert float(times) == pytest.approx(size[second] / size[best], rel=0.1)


def test_a_forecast_of_a_mechanism_has_its_numbers() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 120), dpm.Numeric("income", 0, 200_000), dpm.Boolean("smoker"))
    best = dpm.forecast(schema, n_rows=5000, epsilon=1.0)
    assert best.best is not None
    for name in ("laplace", "auto", best.best):
        found = dpm.forecast(schema, n_rows=5000, epsilon=1.0, mechanism=name)
        assert found.noise is not None
        np.testing.assert_array_equal(found.noise.mean, best.noise_of(name).mean)
        assert (found.best, found.asked_of) == (best.best, name)
        assert found.rows_needed(correlation=0.05) == best.rows_needed(correlation=0.05, mechanism=name)
        assert found.heading[1].startswith(f"mechanism: {name}")
        assert found.heading[1].endswith("(the least noise on a typical correlation)") == (name == best.best)
    unknown = dpm.forecast(schema, n_rows=5000, epsilon=1.0, mechanism="iterative-eigenvectors")
    assert unknown.noise is None
    assert "the noise of iterative-eigenvectors is not known beforehand" in str(unknown)
    with refused("budget-of-other-kind"):
        dpm.forecast(schema, n_rows=5000, epsilon=1.0, mechanism="gaussian")
    with refused("unknown-mechanism", name="gausian"):
        dpm.forecast(schema, n_rows=5000, epsilon=1.0, mechanism="gausian")


def test_changes_that_help_little_are_left_out() -> None:
    wide = dpm.Schema(*(dpm.Numeric(f"x{place}", 0, 100) for place in range(40)))
    found = changes(setting("gaussian", wide, epsilon=1.0, delta=1e-6))
    assert found
    assert "column" not in {change.kind for change in found}
    assert all(change.ratio <= 0.92 for change in found)


# ---------------------------------------------------------------- guesses


@pytest.mark.parametrize(
    ("guess", "said"),
    [
        (
            dict(typical_sd={"Age": 3.0}),
            Said("unknown-names-in", known=(*SCHEMA.feature_names,), names=("Age",), parameter="typical_sd"),
        ),
        (dict(typical_sd={"age": 0.0}), Said("not-positive-of-feature", feature="age", parameter="typical_sd")),
        (dict(typical_sd={"age": -1.0}), Said("not-positive-of-feature", feature="age", parameter="typical_sd")),
        (
            dict(typical_sd={"age": float("nan")}),
            Said("not-positive-of-feature", feature="age", parameter="typical_sd"),
        ),
        (
            dict(typical_sd={"age": float("inf")}),
            Said("not-positive-of-feature", feature="age", parameter="typical_sd"),
        ),
        (dict(typical_sd={"age": "18"}), Said("not-positive-of-feature", feature="age", parameter="typical_sd")),
        (
            dict(typical_sd={"age": 51.0}),
            Said("deviation-above-half-range", feature="age", half=50.0, parameter="typical_sd", value=51.0),
        ),
        (
            dict(typical_sd={"smoker": 0.6}),
            Said("deviation-above-half-range", feature="smoker", half=0.5, parameter="typical_sd", value=0.6),
        ),
        (
            dict(typical_mean={"age": 101.0}),
            Said("not-between-bounds", feature="age", parameter="typical_mean", value=101.0),
        ),
        (
            dict(typical_mean={"smoker": 1.5}),
            Said("not-between-bounds", feature="smoker", parameter="typical_mean", value=1.5),
        ),
    ],
)
def test_impossible_guesses_are_refused(guess: dict[str, Any], said: Said) -> None:
    with refused(said):
        dpm.forecast(SCHEMA, n_rows=100, epsilon=1.0, **guess)


def test_guesses_that_are_no_mapping_are_refused() -> None:
    with refused("not-a-mapping-of-features", TypeError):
        dpm.forecast(SCHEMA, n_rows=100, epsilon=1.0, typical_sd=18.0)  # type: ignore[arg-type]
    assert dpm.forecast(SCHEMA, n_rows=100, epsilon=1.0, typical_sd={"age": 50.0}).noise is not None


def test_guesses_come_before_typical_ranges_and_these_before_the_default() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 100, typical=(20, 60)), dpm.Numeric("b", 0, 50), dpm.Boolean("flag"))
    found = TypicalTable.of(schema)
    np.testing.assert_allclose(found.standard_deviations, [10.0, 5.0, math.sqrt(3.0 / 16.0)])
    assert found.assumed.tolist() == [False, True, True]
    assert found.means.tolist() == [40.0, 12.5, 0.25]
    given = TypicalTable.of(schema, typical_sd={"a": 7.0}, typical_mean={"flag": 0.5})
    np.testing.assert_allclose(given.standard_deviations, [7.0, 5.0, 0.5])
    assert given.assumed.tolist() == [False, True, False]
    assert TypicalTable.of(schema, typical_sd={"flag": 0.3}).means[2] == pytest.approx(0.1)
    assert "standard deviations of a tenth of the range" in found.words
    assert "flags" not in given.words
    everything = TypicalTable.of(schema, typical_sd={"a": 7.0, "b": 3.0, "flag": 0.4})
    assert everything.words == ""
    guesses: dict[str, Any] = {"typical_sd": {"a": 7.0, "b": 3.0, "flag": 0.4}, "typical_mean": {"b": 20.0}}
    assert "~" not in str(dpm.forecast(schema, n_rows=10, rho=1.0, **guesses)).split("Expected")[0]


def test_guesses_move_spreads_and_correlations_but_hardly_means() -> None:
    plain, guessed = (setting("gaussian", rho=1.0, typical_sd=guess).noise for guess in ({}, {"age": 20.0}))
    assert plain is not None
    assert guessed is not None
    assert guessed.mean[0] == plain.mean[0]
    assert guessed.standard_deviation[0] == pytest.approx(plain.standard_deviation[0] / 2.0, rel=0.01)
    assert guessed.correlation[0, 1] == pytest.approx(plain.correlation[0, 1] / 2.0, rel=1e-9)


# ---------------------------------------------------------------- how it is shown


def plain_of(table: dpm.Forecast) -> list[float]:
    smallest = table.to_dict()["in_units"]["columns"]["smallest_correlation"]
    return [np.inf if value is None else value for value in smallest]


def test_the_first_screen_and_what_programs_get() -> None:
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0, typical_sd=SPREADS)
    text = str(table)
    first = text.splitlines()
    assert first[0] == "Forecast for 4,000 rows, ε = 1, pure, add_remove; no data read"
    assert first[1].startswith("best: ")
    assert first[3].split() == [
        "feature",
        "typical",
        "mean",
        "±",
        "noise",
        "typical",
        "sd",
        "±",
        "noise",
        "r",
        "seen",
        "from",
    ]
    assert plain_of(table) == [
        pytest.approx(value, nan_ok=True)
        for value in table.noise.smallest_correlations()  # type: ignore[union-attr]
    ]
    assert "what would help:" in text
    assert text.index("what would help:") < text.index("Expected error of every mechanism")
    assert repr(table) == text
    frame = table.to_arrow()
    assert frame.column("feature").to_pylist() == list(SCHEMA.feature_names)
    assert frame.column("typical_sd").to_pylist()[0] == 18.0
    html = table._repr_html_()
    assert html.count("<table>") == 2
    plain = table.to_dict()
    assert plain["best"] == table.best
    assert plain["in_units"]["columns"]["mean_noise"] == frame.column("mean_noise").to_pylist()
    assert [change["kind"] for change in plain["changes"]] == [change.kind for change in table.changes]


def test_names_are_escaped_in_notebooks() -> None:
    schema = dpm.Schema(dpm.Numeric("<b>", 0, 1), dpm.Numeric("y", 0, 1))
    assert "<b>" not in dpm.forecast(schema, n_rows=100, epsilon=1.0)._repr_html_()


@pytest.mark.parametrize(("options", "schema"), [(dict(mean=False), SCHEMA), ({}, dpm.Schema.unbounded(3))])
def test_without_units_the_mechanisms_remain(options: dict[str, Any], schema: dpm.Schema) -> None:
    table = dpm.forecast(schema, n_rows=N_ROWS, rho=0.5, **options)
    assert table.noise is None
    assert table.best is None
    assert "no numbers in original units" in str(table)
    assert table.to_arrow().column("mechanism").to_pylist() == [row.mechanism for row in table]
    assert table.to_dict()["in_units"] is None
    assert table.changes == ()


@pytest.mark.parametrize("budget", BUDGETS)
def test_mechanisms_that_cannot_run_take_one_line(budget: dict[str, float]) -> None:
    table = dpm.forecast(SCHEMA, n_rows=N_ROWS, **budget)
    refused = [row for row in table if row.refusal is not None]
    [line] = [line for line in str(table).splitlines() if line.startswith("cannot run here: ")]
    assert line == _refusals_in_a_line(table.rows)
    assert "not possible" not in str(table)
    for row in refused:
        assert re.search(rf"[ ,]{row.mechanism}[ ,]", line)
        assert row.short_refusal is not None
        assert len(row.short_refusal) < 90


def test_every_schema_of_numbers_flags_and_levels_has_finite_numbers() -> None:
    schemas = [
        dpm.Schema.unit_ball(3),
        dpm.Schema(dpm.Boolean("flag")),
        dpm.Schema(dpm.Categorical("one", ["a"]), dpm.Numeric("x", 0, 1)),
        dpm.Schema(dpm.Numeric("x", -1, 1), dpm.Power("x", 2), dpm.Boolean("f"), dpm.Product("x", "f")),
        dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Categorical("c", ["a", "b"]), dpm.Product("c", "x")),
        dpm.Schema(dpm.Numeric("x", 0, 1, missing="drop"), dpm.Numeric("y", 0, 1e9)),
        dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1), row_norm=0.5),
    ]
    for schema, budget, neighbors in zip(schemas, itertools.cycle(BUDGETS), itertools.cycle(Neighbors), strict=False):
        table = dpm.forecast(schema, n_rows=1000, neighbors=neighbors, **budget)
        assert table.noise is not None
        assert np.isfinite(table.noise.mean).all()
        assert np.isfinite(table.noise.standard_deviation).all()
        assert str(table)


def test_a_law_for_more_rows_has_less_noise_in_proportion() -> None:
    noise = setting("gaussian", rho=0.5).noise
    assert noise is not None
    twice = setting("gaussian", n_rows=2 * N_ROWS, rho=0.5).noise
    assert twice is not None
    np.testing.assert_allclose(twice.mean, noise.mean / 2.0)
    release = noise.release
    halves = ForecastNoise(((0.5, release), (0.5, release)))
    np.testing.assert_allclose(halves.mean, noise.mean)
    np.testing.assert_allclose(halves.correlation, noise.correlation)
    assert halves.coefficient == pytest.approx(noise.coefficient)


def test_the_page_shows_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "forecast.md").read_text(encoding="utf-8")
    made: dict[str, Any] = {}
    printed, shown = [], re.findall(r"(?s)```text\n(.*?)```", page)
    for block in re.findall(r"(?s)```python\n(.*?)```", page):
        exec(block, made)
        printed.append(capsys.readouterr().out)
    assert len(printed) == len(shown) == 3
    assert printed[0].startswith(shown[0])
    assert printed[1:] == shown[1:]


# ---------------------------------------------------------------- for people of many rows


UNIT = dpm.PrivacyUnit("person_id", max_rows=4)


def visits() -> Any:
    table = people(2000)
    table["person_id"] = np.arange(len(table)) % 500  # four rows each: all count
    return table


def compared_with_release_for_units(mechanism: str, budget: dict[str, float]) -> None:
    """What a forecast for units says is what a release for them states of its noise."""
    released = dpm.release(
        visits(), SCHEMA, mechanism=mechanism, privacy_unit=UNIT, insecure_seed=5, repair="none", threads=1, **budget
    )
    found = dpm.forecast(SCHEMA, n_rows=released.n_rows, privacy_unit=UNIT, **budget)
    assert released.noise is not None
    law, known = found.noise_of(mechanism).release.noise, released.noise
    np.testing.assert_array_equal(law.cell_variances(), known.cell_variances())
    expected = math.sqrt(known.energy) / released.n_rows
    assert found[mechanism].second_moment_error == pytest.approx(expected, rel=1e-12)
    assert released.privacy.budget == found.budget


@pytest.mark.parametrize(("mechanism", "budget"), CASES)
def test_a_forecast_for_units_is_what_a_release_for_them_states(mechanism: str, budget: dict[str, float]) -> None:
    compared_with_release_for_units(mechanism, budget)


def test_a_forecast_that_forgets_the_unit_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_rows(mechanism: Any, shape: Any, budget: Any, neighbors: Any, unit: Any) -> Any:
        del unit
        return mechanism.plan(shape, budget, neighbors)

    monkeypatch.setattr(imagined_release, "plan_before_release", of_rows)
    imagined_release.planned.cache_clear()
    with pytest.raises(AssertionError):
        compared_with_release_for_units("laplace", BUDGETS[0])
    imagined_release.planned.cache_clear()


@pytest.mark.parametrize("budget", BUDGETS)
def test_auto_is_foreseen_as_a_release_for_units_chooses_it(budget: dict[str, float]) -> None:
    released = dpm.release(visits(), SCHEMA, privacy_unit=UNIT, insecure_seed=5, threads=1, **budget)
    found = dpm.forecast(SCHEMA, n_rows=2000, privacy_unit=UNIT, **budget)
    assert found["auto"].chosen_because == released.chosen_because


@pytest.mark.slow
def test_what_is_needed_is_a_budget_for_units() -> None:
    """Additive noise: ε = 4 for units of four rows has the noise of ε = 1 for rows; ρ sixteen times."""
    for_units = dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0, privacy_unit=UNIT)
    for_rows = dpm.forecast(SCHEMA, n_rows=N_ROWS, epsilon=1.0)
    wanted: dict[str, Any] = {"correlation": 0.05, "mechanism": "laplace"}
    assert for_units.epsilon_needed(**wanted) == pytest.approx(4 * for_rows.epsilon_needed(**wanted), rel=1e-5)
    needed = for_units.rows_needed(**wanted)
    assert dpm.forecast(SCHEMA, n_rows=needed, epsilon=0.25).noise_of("laplace").typical_correlation() <= 0.05
    assert dpm.forecast(SCHEMA, n_rows=needed - 1, epsilon=0.25).noise_of("laplace").typical_correlation() > 0.05
    wanted["mechanism"] = "gaussian"
    rho = [
        dpm.forecast(SCHEMA, n_rows=N_ROWS, rho=0.5, privacy_unit=unit).rho_needed(**wanted) for unit in (UNIT, None)
    ]
    assert rho[0] == pytest.approx(16 * rho[1], rel=1e-5)


def test_what_would_help_is_planned_for_units() -> None:
    found = dpm.forecast(SCHEMA, n_rows=N_ROWS, rho=0.5, privacy_unit=UNIT)
    of_row = dpm.forecast(SCHEMA, n_rows=N_ROWS, rho=0.5 / 16)
    assert found.changes
    assert found.best == of_row.best
    for change in found.changes:
        [same] = [other for other in of_row.changes if other.kind == change.kind]
        assert (change.before, change.after) == pytest.approx((same.before, same.after), rel=1e-9)


def test_the_number_of_rows_is_said_to_be_of_those_that_count() -> None:
    found = dpm.forecast(SCHEMA, n_rows=N_ROWS, rho=0.5, privacy_unit=UNIT)
    assert "rows that count (at most 4 for each value of person_id), 0.5-zCDP" in found.title
    assert found.to_dict()["protected_unit"] == UNIT.to_dict()
    assert dpm.forecast(SCHEMA, n_rows=N_ROWS, rho=0.5).to_dict()["protected_unit"] == "row"
    means = dpm.forecast_mean(SCHEMA, n_rows=N_ROWS, rho=0.5, privacy_unit=UNIT)
    assert "rows that count (at most 4 for each value of person_id), 0.5-zCDP" in means.title
    assert means.to_dict()["protected_unit"] == UNIT.to_dict()


def test_errors_of_means_are_those_at_what_is_left_for_a_row() -> None:
    """Of every estimator: ρ/16 for a row is ρ for units of four."""
    options: dict[str, Any] = {"n_rows": N_ROWS, "standard_deviation": {"age": 18.0, "income": 3e4, "smoker": 0.4}}
    options["standard_deviation"] |= {f"region={level}": 0.4 for level in ("n", "s", "e")}
    found = dpm.forecast_mean(SCHEMA, rho=0.5, privacy_unit=UNIT, **options)
    of_row = dpm.forecast_mean(SCHEMA, rho=0.5 / 16, **options)
    known = [row for row in found if row.error is not None]
    assert len(known) >= 2
    for row in known:
        assert row.error == pytest.approx(of_row[row.mechanism].error, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (
            {"privacy_unit": "person_id"},
            TypeError,
            Said("wrong-type", expected="privacy-unit", got="str", parameter="privacy_unit"),
        ),
        (
            {"privacy_unit": UNIT, "neighbors": "replace_one"},
            ValueError,
            Said("unit-needs-add-remove", neighbors="replace_one"),
        ),
        ({"privacy_unit": dpm.PrivacyUnit("age", 4)}, ValueError, Said("unit-is-a-feature", column="age")),
    ],
)
@pytest.mark.parametrize("forecast", [dpm.forecast, dpm.forecast_mean])
def test_a_unit_that_a_release_refuses_is_refused(
    forecast: Any, options: dict[str, Any], kind: type[Exception], said: Said
) -> None:
    with refused(said, kind):
        forecast(SCHEMA, n_rows=N_ROWS, rho=0.5, **options)


def test_the_commands_plan_for_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    columns = [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}, {"name": "smoker", "kind": "boolean"}]
    Path("people.yaml").write_text(yaml.safe_dump({"columns": columns}))
    schema = dpm.Schema.load("people.yaml")
    common = ["--schema", "people.yaml", "--n-rows", "5000", "--rho", "0.5", "--neighbors", "add_remove"]
    common += ["--privacy-unit", "person_id", "--max-rows-per-unit", "4"]
    for name, library in (("forecast", dpm.forecast), ("forecast-mean", dpm.forecast_mean)):
        assert main([name, *common, "--json"]) == 0
        found = library(schema, n_rows=5000, rho=0.5, privacy_unit=UNIT)
        assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))
    assert main(["forecast", *common, "--rho-needed", "mean.age=0.1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("ρ needed with 5,000 rows that count (at most 4 for each value of person_id), add_remove")
    assert main(["forecast", *common[:-2]]) != 0
    assert "state the contribution bound" in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_noise_that_differs_by_feature_is_forecast() -> None:
    """Any model whose law is known before a run is read, not only noise alike for all features."""
    scale = np.diag([9.0, 1.0, 1.0, 4.0, 1.0, 1.0])
    mechanism = dpm.mechanisms.AdditiveWishart(scale_matrix=scale.tolist())
    options: dict[str, Any] = dict(epsilon=1.0, delta=1e-6, neighbors="replace_one")
    plan = dataclasses.replace(setting("additive-wishart", NUMBERS, **options), mechanism=mechanism)
    assert plan.noise is not None
    np.testing.assert_allclose(plan.noise.mean / plan.noise.mean[1], np.sqrt(np.diag(scale)), rtol=1e-9)
    table = np.full((N_ROWS, 6), 50.0)
    release = dpm.release(table, NUMBERS, mechanism=mechanism, insecure_seed=0, **options)
    np.testing.assert_allclose(plan.noise.mean, release.describe().mean_noise, rtol=1e-9)


def test_defaults_are_moments_of_what_is_said_to_be_assumed() -> None:
    """All shares of a category equally likely; a quarter of the rows, or of the range; a typical range of two deviations."""
    schema = dpm.Schema(
        *(dpm.Categorical(f"c{k}", [str(level) for level in range(k)]) for k in (2, 5)),
        dpm.Boolean("flag"),
        dpm.Numeric("number", -4, 16),
        dpm.Numeric("typical", -4, 16, typical=(2, 6)),
    )
    typical = dpm.forecast(schema, n_rows=1_000, epsilon=1.0).setting.typical
    expected = [(0.25, 0.1875**0.5), (1.0, 2.0), (4.0, 1.0)]
    for k in (5, 2):
        shares = np.random.default_rng(0).dirichlet(np.ones(k), 50_000)
        expected = [*[(1.0 / k, float(np.sqrt((shares * (1.0 - shares)).mean())))] * k, *expected]
    np.testing.assert_allclose(np.column_stack([typical.means, typical.standard_deviations]), expected, rtol=1e-2)


def test_twice_the_rows_or_budget_halve_the_noise_on_a_mean_of_one_column() -> None:
    schema = dpm.Schema(dpm.Numeric("number", 0, 10, typical=(0, 10)))
    for neighbors in ("add_remove", "replace_one"):
        forecast = dpm.forecast(schema, n_rows=400, epsilon=1.0, neighbors=neighbors)
        assert forecast.setting.plan.count_is_public == (neighbors == "replace_one")
        found = {change.kind: change for change in forecast.changes}
        assert found["rows"].measure == found["budget"].measure == "sd on a mean"
        for kind in ("rows", "budget"):
            assert found[kind].before == pytest.approx(forecast.noise.mean[0] / 2.5)
            assert found[kind].ratio == pytest.approx(0.5, abs=0.05)


def test_squared_distances_of_assumed_rows_vary_as_drawn_ones_do() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(5), 100_000)
    level = shares[
        np.arange(len(shares)), (rng.random((len(shares), 1)) > shares.cumsum(axis=1)).sum(axis=1).clip(max=4)
    ]
    flag = (rng.random(100_000) < 0.25).astype(float)
    drawn = {
        dpm.Categorical("kind", list("abcde")): (4.0 * level.var(), float(1.0 - (shares**2).sum(axis=1).mean())),
        dpm.Boolean("flag"): (((flag - 0.25) ** 2).var(), ((flag - 0.25) ** 2).mean()),
    }
    for column, (variance, mean) in drawn.items():
        assert TypicalTable.of(dpm.Schema(column)).squared_distance[1] == pytest.approx(variance / mean**2, rel=0.03)
    lengths = (rng.standard_normal((100_000, 2)) ** 2) @ [0.8, 0.2]
    numbers = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1))
    size, unevenness = TypicalTable.of(numbers, spectrum=[0.8, 0.2]).squared_distance
    assert unevenness == pytest.approx(lengths.var() / lengths.mean() ** 2, rel=0.03)
    assert size == pytest.approx(2.0 * (0.1 / float(numbers.encoding(mean=True).scale[0])) ** 2)
    with refused("not-positive-of-feature"):
        TypicalTable.of(numbers, typical_sd={"x": 0.0})
