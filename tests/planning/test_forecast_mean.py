"""A forecast of means states what the estimators then do: exactly where public numbers say it, else for the rows assumed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.base.errors import InputValueError
from dpmoments.mechanisms.means.base import NormalRows
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from support.said import refused

SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 1e5), dpm.Boolean("employed"))
BUDGETS: dict[str, dict[str, float]] = {
    "pure": dict(epsilon=1.0),
    "approximate": dict(epsilon=1.0, delta=1e-6),
    "zcdp": dict(rho=0.5),
}


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_every_estimator_has_a_row_or_a_refusal(budget: str, neighbors: Neighbors) -> None:
    forecast = dpm.forecast_mean(SCHEMA, n_rows=3000, neighbors=neighbors, **BUDGETS[budget])
    assert sorted(row.mechanism for row in forecast) == list(MEAN_MECHANISMS)
    given = dict(zip(("epsilon", "delta", "rho"), (None, 0.0, None), strict=True)) | BUDGETS[budget]
    shape = MomentShape.of(SCHEMA, mean=True, n_rows=3000 if neighbors is Neighbors.REPLACE_ONE else None)
    for row in forecast:
        mechanism = make_mean_mechanism(row.mechanism)
        if row.refusal is not None:
            with pytest.raises(InputValueError) as caught:
                mechanism.plan(shape, PrivacyBudget.of(**given), neighbors)
            assert row.refusal == str(caught.value)
            assert (row.error, row.feature_errors, row.arithmetic) == (None, None, None)
            continue
        plan = mechanism.plan(shape, PrivacyBudget.of(**given), neighbors)
        assert row.arithmetic == str(plan.arithmetic)
        assert row.feature_errors is not None
        assert row.error == pytest.approx(float(np.linalg.norm(row.feature_errors)))
        assert forecast[row.mechanism] is row
    errors = [row.error or math.inf for row in forecast]
    assert errors == sorted(errors)
    assert len(forecast) == len(MEAN_MECHANISMS)
    with pytest.raises(KeyError):
        forecast["laplace"]


@pytest.mark.parametrize("budget", ["pure", "zcdp"])
def test_what_follows_from_public_numbers_is_what_a_release_states(budget: str) -> None:
    rng = np.random.default_rng(0)
    table = np.c_[rng.uniform(20, 60, 700), rng.uniform(0, 1e5, 700), rng.integers(0, 2, 700)]
    options: dict[str, Any] = dict(neighbors="replace_one", **BUDGETS[budget])
    row = dpm.forecast_mean(SCHEMA, n_rows=700, **options)["naive"]
    assert not row.assumes_rows
    released = dpm.release_mean(table, SCHEMA, mechanism="naive", insecure_seed=0, **options)
    assert row.feature_errors == pytest.approx(released.standard_errors, rel=1e-12)
    other = dpm.forecast_mean(SCHEMA, n_rows=700, standard_deviation=0.01, **options)["naive"]
    assert other.error == row.error


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_coinpress_with_a_fixed_clip_follows_from_public_numbers_but_for_a_noisy_count(neighbors: Neighbors) -> None:
    table = np.random.default_rng(0).normal(size=(4000, 4))
    shape = MomentShape(4, n_rows=4000 if neighbors is Neighbors.REPLACE_ONE else None, row_norm=None)
    mechanism = make_mean_mechanism("coinpress", radius=10.0, scale=1.0, clip="gaussian")
    plan = mechanism.plan(shape, PrivacyBudget.zcdp(0.5), neighbors)
    assert not plan.error_needs_rows
    expected = plan.expected_errors(NormalRows(4000, np.ones(4)))
    rows = Rows.of(table, dpm.Schema.unbounded(4), neighbors=neighbors, threads=1)
    stated = plan.run(rows, PrivacyFilter(plan, insecure_generator(0))).noise
    assert expected is not None
    assert stated is not None
    # Beside the noise it counts what clipping about a center that is not the mean brings: little.
    ratio = expected / stated.deviations
    assert (ratio >= 0.99).all()
    assert (ratio < 1.06).all()


TRIALS = 60
ASSUMED: dict[str, tuple[str, dict[str, Any], list[float], int]] = {
    "naive": ("naive", dict(radius=4.0, scale=1.0), [1.0, 1.0], 1000),
    "karwa-vadhan": ("karwa-vadhan", dict(radius=8.0, scale=1.0), [1.0, 1.0], 1000),
    "karwa-vadhan, scale searched": ("karwa-vadhan", dict(radius=8.0), [1.5, 1.5], 6000),
    "symq": ("symq", dict(radius=8.0), [1.0, 1.0], 1000),
    "symq, far searched": ("symq", dict(radius=1e4), [1.0, 1.0], 1000),
    "coinpress": ("coinpress", dict(radius=8.0, scale=1.0), [1.0] * 5, 2000),
    "log-scale-histogram": ("log-scale-histogram", {}, [1.0, 20.0], 6000),
    "variance-aware": ("variance-aware", {}, [1.0, 0.5, 0.2, 0.1, 0.1], 6000),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ASSUMED)
def test_errors_for_rows_assumed_are_those_of_such_rows(case: str) -> None:
    """Root mean square over releases; a forecast half or twice as large would not pass."""
    name, options, deviations, n = ASSUMED[case]
    d = len(deviations)
    plan = make_mean_mechanism(name, **options).plan(
        MomentShape(d, n_rows=n, row_norm=None), PrivacyBudget.zcdp(0.5), "replace_one"
    )
    expected = plan.expected_errors(NormalRows(n, np.array(deviations)))
    assert expected is not None
    squares = []
    for seed in range(1000, 1000 + TRIALS):
        table = np.random.default_rng(seed).normal(0.4, deviations, (n, d))
        rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="replace_one", threads=1)
        found = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))
        squares.append((found.mean - table.mean(axis=0)) ** 2)
    measured = float(np.sqrt(np.mean(squares, axis=0).sum()))
    # Where spreads differ, clipping about a noisy center adds to the noise that `variance-aware` forecasts.
    least, most = (0.75, 1.4) if name == "variance-aware" else (0.8, 1.2)
    assert least < measured / float(np.linalg.norm(expected)) < most


def test_the_assumption_is_settable_and_told() -> None:
    options: dict[str, Any] = dict(n_rows=5000, rho=0.5, neighbors="replace_one")
    wide = dpm.forecast_mean(SCHEMA, **options)
    assert wide.standard_deviations == pytest.approx([50.0, 5e4, 0.5])  # as wide as the bounds allow
    narrow = dpm.forecast_mean(SCHEMA, standard_deviation={"age": 5.0, "income": 5e3}, **options)
    assert narrow.standard_deviations == pytest.approx([5.0, 5e3, 0.5])
    first, second = wide["variance-aware"].error, narrow["variance-aware"].error
    assert first is not None
    assert second is not None
    assert second < 0.5 * first
    assert "~ depends on assumed rows" in str(narrow)
    assert [line[-1] for line in narrow.feature_table()] == ["assumed", "5", "5000", "0.5"]
    by_scale = dpm.forecast_mean(SCHEMA, scale=0.1, **options)
    assert by_scale.standard_deviations == pytest.approx(0.1 * SCHEMA.encoding(mean=True).scale)


def test_rows_without_bounds_need_radius_scale_or_an_assumption() -> None:
    options: dict[str, Any] = dict(n_rows=5000, rho=0.5, neighbors="replace_one")
    nothing = dpm.forecast_mean(dpm.Schema.unbounded(2), **options)
    assert all(row.refusal is not None for row in nothing)
    assert "give a standard deviation, to assume it" in str(nothing["variance-aware"].refusal)
    assert "need a public bound on the mean: give radius" in str(nothing["naive"].refusal)
    every = dpm.forecast_mean(dpm.Schema.unbounded(2), radius=10.0, scale=1.0, **options)
    assert {row.mechanism for row in every if row.error is None} == {"bounded-sums"}


def test_one_column_has_no_forecast_of_the_variance_aware_mean() -> None:
    """Its error there is that of clipping, for which there is no formula."""
    row = dpm.forecast_mean(dpm.Schema.unbounded(1), n_rows=5000, rho=0.5, standard_deviation=1.0)["variance-aware"]
    assert (row.error, row.refusal) == (None, None)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (dict(standard_deviation=0.0), "must be a positive finite number"),
        (dict(standard_deviation=math.nan), "must be a positive finite number"),
        (dict(standard_deviation={"age": -1.0}), "must be a positive finite number"),
        (
            dict(standard_deviation={"agee": 1.0}),
            "standard deviation: 'agee' matches none of the names. Did you mean 'age'?",
        ),
        (dict(n_rows=0), "must be"),
        (dict(rho=None), "give the privacy budget as epsilon (with or without"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], code: str) -> None:
    with refused(code):
        dpm.forecast_mean(SCHEMA, **(dict(n_rows=100, rho=0.5) | given))


def test_a_column_that_no_mean_only_release_takes_has_no_forecast() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 10, "available"))
    with refused("which needs the number of present values", names="'income'"):
        dpm.forecast_mean(schema, n_rows=100, rho=0.5)


def test_an_assumption_for_some_features_alone_needs_a_scale_for_the_others() -> None:
    with refused("give scale, for those, or all of them", names="'x1'"):
        dpm.forecast_mean(dpm.Schema.unbounded(2), n_rows=100, rho=0.5, standard_deviation={"x0": 1.0})


def test_extreme_budgets_have_a_forecast() -> None:
    for budget in (dict(rho=1e90), dict(epsilon=1e100, delta=1e-300), dict(rho=1e-9)):
        forecast = dpm.forecast_mean(SCHEMA, n_rows=1000, **budget)
        assert all(row.error is None or math.isfinite(row.error) for row in forecast)


def test_every_feature_has_a_line() -> None:
    forecast = dpm.forecast_mean(dpm.Schema.unit_ball(40), n_rows=5000, rho=0.5, neighbors="replace_one")
    found = forecast["naive"].feature_errors
    assert found is not None
    assert found.shape == (40,)
    head, *lines = forecast.feature_table()
    assert head == ("feature", *(row.mechanism for row in forecast), "assumed")
    assert [line[0] for line in lines] == list(forecast.feature_names)
    assert lines[7][head.index("naive")] == f"{found[7]:.3g}"
    assert str(forecast).count("\n") > 45
