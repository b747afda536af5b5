"""Standard errors, intervals and verdicts of regressions: against draws, with faults that the checks find."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.special import ndtr
from scipy.stats import chi2

import dpmoments as dpm
from dpmoments.analysis.confidence import agreeing_p_value
from dpmoments.analysis.inverted_test import Search
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.robust_errors import known_ratio, robust_covariance
from dpmoments.moments.law import NoiseLaw
from support.drawn_releases import drawn
from support.noise_models import gaussian
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

UNLIMITED: dict[str, Any] = dict(epsilon=1e13, repair="none", insecure_seed=0)
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Boolean("smoker"),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Numeric("income", 0, 200),
    dpm.Power("age", 2),
    dpm.Product("age", "smoker"),
)


@cache
def people(n_rows: int = 5_000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age, smoker = rng.uniform(20, 80, n_rows), rng.random(n_rows) < 0.3
    region = rng.choice(["north", "south", "east"], n_rows, p=[0.5, 0.3, 0.2])
    income = 20 + 0.8 * age + 10 * (region == "south") - 0.2 * age * smoker + rng.normal(0, 8, n_rows)
    return pd.DataFrame({"age": age, "smoker": smoker, "region": region, "income": np.clip(income, 0, 200)})


@cache
def exact() -> dpm.MomentRelease:
    return dpm.release(people(), SCHEMA, **UNLIMITED)


# Against draws of data and noise ------------------------------------------------------------------------------------------

K, N_ROWS = 3, 4_000
SLOPES = np.array([0.7, -0.4, 0.2])
LAW = gaussian(K + 1, 6_000.0, 3_000.0, 3_000.0, 3_000.0).law()
"""About as large beside the sampling error as it is on real releases: half of the variance of a coefficient."""


def drawn_equations(seed: int, law: NoiseLaw = LAW, features: float = 1.0) -> NormalEquations:
    """A sample of rows of known coefficients, and noise of a known law on its moments."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(0, features, (N_ROWS, K)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(K)).T
    target = 0.3 + rows @ SLOPES + rng.normal(0, 1, N_ROWS)
    z = np.column_stack([np.ones(N_ROWS), rows, target])
    noise = rng.normal(size=(K + 2, K + 2)) * np.sqrt(law.cell_variances())
    noisy = z.T @ z + np.triu(noise) + np.triu(noise, 1).T
    return NormalEquations(noisy, float(noisy[0, 0]), True, law, np.eye(K + 2))


def noisy_fit(seed: int, rho: float = 20.0, features: float = 9.0, target: float = 9.0) -> FittedLine:
    """Noise that hides features from each other: at half of the seeds and coefficients nothing is bounded."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(0, 1, (1_000, 4)) @ np.array(
        [[1, 0.8, 0.5, 0.2], [0, 0.6, 0.3, 0.4], [0, 0, 0.8, 0], [0, 0, 0, 0.7]]
    )
    numbers = (dpm.Numeric(name, -features, features) for name in "abc")
    schema = dpm.Schema(*numbers, dpm.Numeric("y", -target, target))
    return drawn(noisy_template(schema, rho), rows, rng).ols("y")


@cache
def noisy_template(schema: dpm.Schema, rho: float) -> dpm.MomentRelease:
    return dpm.release(np.zeros((1_000, 4)), schema, rho=rho, mechanism="gaussian", insecure_seed=0)


def test_the_statistic_has_the_derivatives_that_the_search_takes_it_to_have() -> None:
    equations = noisy_fit(0).equations
    assert equations is not None
    search = equations.search
    beyond = 1.1 * equations.beyond + 0.01
    gradient, curvature = search.derivatives(search.at(beyond))
    steps = np.diag(1e-6 * np.abs(beyond))
    numeric = [(search.at(beyond + step).statistic - search.at(beyond - step).statistic) / step.sum() for step in steps]
    np.testing.assert_allclose(gradient, np.array(numeric) / 4.0, rtol=1e-5)
    slopes = [
        search.derivatives(search.at(beyond + step))[0] - search.derivatives(search.at(beyond - step))[0]
        for step in steps
    ]
    np.testing.assert_allclose(curvature, np.array(slopes) / (2.0 * steps.sum(axis=1))[:, None], rtol=1e-4, atol=1e-6)


def least_by_general_search(equations: NormalEquations, start: np.ndarray) -> float:
    """The least statistic at a first slope of 0, by a search that needs no derivatives."""
    last = equations.n_regressors
    free = [place for place in range(last) if place != 1]

    def statistic(values: np.ndarray) -> float:
        beyond = np.zeros(last + 1)
        beyond[free], beyond[last] = values, 1.0
        return float(equations.search.at(beyond).statistic)

    return float(minimize(statistic, start[free], method="Nelder-Mead", options={"maxiter": 2_000, "fatol": 1e-9}).fun)


def test_the_least_statistic_is_no_larger_than_what_a_general_search_finds() -> None:
    for seed in range(2):
        equations = noisy_fit(seed, 6.0).equations
        assert equations is not None
        found = equations.search.least({1: 0.0, equations.n_regressors: 1.0}, [equations.beyond])
        for start in (equations.beyond, np.append(-equations.solution, 1.0)):
            assert found.statistic <= least_by_general_search(equations, start) * (1.0 + 1e-6)


@pytest.mark.long
@pytest.mark.parametrize("rho", [2.0, 20.0])
def test_one_direction_shows_that_coefficients_are_unbounded_as_their_own_searches_do(rho: float) -> None:
    limit = float(chi2.ppf(0.95, 1))
    for seed in range(2):
        equations = noisy_fit(seed, rho).equations
        assert equations is not None
        last = equations.n_regressors
        for place in range(last):
            alone = equations.search.least({place: 1.0, last: 0.0}).statistic
            assert (equations.search.at_infinity(place, limit) <= limit) == (alone <= limit)


def test_an_interval_that_reaches_into_another_valley_ends_where_the_test_rejects() -> None:
    line = noisy_fit(6, 2.0, features=40.0, target=4.0)
    assert np.isfinite(line.conf_int(0.6)).all(axis=None)
    for name, ends in line.conf_int(0.6).iterrows():
        for end in ends:
            assert line.wald_test(f"{name} = {end:.15g}").pvalues[0] == pytest.approx(0.4, rel=1e-4)


# What is asked for --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "code"),
    [
        ("income ~ age:region", "was not released: it needs"),
        ("income ~ np.log(age)", "of each row is not a function of them"),
        ("income ~ age +", "write it as 'target ~ feature + feature', names with other"),
        ("~ age", "has no target: write it as 'target ~ feature + feature'"),
        ("income ~ age + age**2", "crosses"),
        ("income ~ smoker + `age` ^ 2", "crosses"),
        ("income ~ height", "is not a column or feature of this release"),
        ("income ~ age | region", "dpm.release_groups makes a release for each group"),
        ("income ~ I(age > 40)", "of each row is not a function of them"),
        ("income ~ poly(age, 3)", "age^3 was not released: it needs dpm.Power('age', 3)"),
        ("income ~ I(region/2)", "write I(region == 'level')"),
        ("income ~ C(region, Sum) + C(region, Foo)", "has an unknown coding"),
        ("income ~ I(income/2) + age", "are computed one from the other: leave it out"),
        ("I(income + age) ~ age", "are computed one from the other: leave it out"),
        ("income ~ 1", "describe() has the mean of a column"),
        ("income ~ C(age)", "is not a categorical column of the release"),
        ("`age^2` ~ age", "are computed one from the other: leave it out"),
        (
            "income ~ smoker + I(1 - smoker)",
            "of 'smoker', 'I(1 - smoker)' and the constant one follows from the others",
        ),
        ("income ~ 0 + age + I(2*age)", "of 'age', 'I(2 * age)' one follows from the others"),
        (
            "income ~ region + I(region != 'north')",
            "'I(region != 'north')' and the constant one follows from the others",
        ),
        ("income ~ [smoker ~ age + I(2*age)]", "of 'age', 'I(2 * age)' and the constant one follows from the others"),
    ],
)
def test_formulas_that_a_release_cannot_answer(formula: str, code: str) -> None:
    with refused(code):
        (exact().iv if "[" in formula else exact().ols)(formula)


def test_terms_of_a_formula_are_other_coordinates_of_the_same_fit() -> None:
    """At any noise, and with robust errors; predictions and joint tests are the same, and what is missing is counted alike."""
    for release in (exact(), dpm.release(people(), SCHEMA, epsilon=3.0, insecure_seed=0)):
        plain = release.ols("income ~ age + C(region)")
        turned = release.ols("income ~ I(age/10 - 4) + C(region, Sum)")
        np.testing.assert_allclose(turned.predict(people()), plain.predict(people()), rtol=1e-6)
        assert turned.params["I(age / 10 - 4)"] == pytest.approx(10.0 * plain.params["age"], rel=1e-6)
        assert turned.bse["I(age / 10 - 4)"] == pytest.approx(10.0 * plain.bse["age"], rel=1e-4)
        assert turned.wald_test_terms().statistic[-1] == pytest.approx(plain.wald_test_terms().statistic[-1], rel=1e-4)
        assert turned.rsquared == pytest.approx(plain.rsquared, rel=1e-6)
        contrast = turned.t_test("C(region, Sum)[S.north] - C(region, Sum)[S.south]")
        assert contrast.effect[0] == pytest.approx(plain.t_test("region[north] - region[south]").effect[0], rel=1e-5)
    halves = exact().ols("I(income/2) ~ age")
    assert halves.params["age"] == pytest.approx(exact().ols("income ~ age").params["age"] / 2.0)
    assert exact().ols("region[north] ~ .").features[:1] == ("age",)
    smokers, others = (exact().ols(f"income ~ {term}").params for term in ("smoker", "I(smoker == False)"))
    assert others.iloc[0] == pytest.approx(smokers.sum())


def test_a_term_of_columns_that_are_missing_in_different_rows_is_refused() -> None:
    schema = dpm.Schema(dpm.Numeric("x", 0, 1, missing="available"), dpm.Numeric("z", 0, 1), dpm.Numeric("y", 0, 1))
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(0, 1, (2_000, 3)), columns=["x", "z", "y"])
    table.loc[::5, "x"] = np.nan
    release = dpm.release(table, schema, **UNLIMITED)
    assert release.ols("y ~ I(x/2)").bse["I(x / 2)"] == pytest.approx(2.0 * release.ols("y ~ x").bse["x"])
    with refused("whose values are missing in different rows"):
        release.ols("y ~ I(x + z)")


def test_a_product_of_two_columns_of_levels_is_to_be_a_column_of_pairs() -> None:
    schema = dpm.Schema(dpm.Categorical("g", ["a", "b"]), dpm.Categorical("h", ["c", "d"]), dpm.Numeric("y", 0, 1))
    table = pd.DataFrame({"g": ["a", "b"] * 50, "h": ["c"] * 50 + ["d"] * 50, "y": np.linspace(0, 1, 100)})
    with refused("the product of 'g' and 'h' was not released") as caught:
        dpm.release(table, schema, **UNLIMITED).ols("y ~ g:h")
    assert str(caught.value).endswith("as a column of its own with a level for each pair of levels")


def test_levels_of_few_rows_are_counted_with_the_reference() -> None:
    rng = np.random.default_rng(0)
    levels = ["a", "b", "rare"]
    group = np.array(levels)[rng.choice(3, 4_000, p=[0.6, 0.398, 0.002])]
    table = pd.DataFrame({"group": group, "y": rng.uniform(0, 1, 4_000)})
    schema = dpm.Schema(dpm.Categorical("group", levels), dpm.Numeric("y", 0, 1))
    fit = dpm.release(table, schema, epsilon=1.0, insecure_seed=0).ols("y", ["group"])
    assert fit.too_few == ("group=rare",)
    assert "merged into the reference level (rare, noise hides them): group=rare" in fit.summary()
    assert fit.identified
    assert dpm.release(table, schema, **UNLIMITED).ols("y", ["group"]).too_few == ()
    table["group"] = np.array(levels)[rng.choice(3, 4_000, p=[0.997, 0.002, 0.001])]
    all_lost = dpm.release(table, schema, epsilon=1.0, insecure_seed=0).ols("y", ["group"])
    assert (all_lost.features, all_lost.too_few) == (("group=b",), ("group=rare",))


# The answer ---------------------------------------------------------------------------------------------------------------


def test_statsmodels_names() -> None:
    fit = exact().ols("income", ["age", "region"])
    assert isinstance(fit, FittedLine)
    names = ["(intercept)", *fit.features]
    assert list(fit.params.index) == list(fit.bse.index) == list(fit.pvalues.index) == names
    assert fit.params["age"] == fit.coefficients[0]
    assert fit.bse["age"] == fit.standard_errors[0]
    assert (fit.rsquared, fit.rsquared_adj, fit.nobs) == (fit.r_squared, fit.adjusted_r_squared, 5_000)
    assert fit.rsquared_adj < fit.rsquared
    intervals = fit.conf_int(0.9)
    assert list(intervals.index) == names
    assert list(intervals.columns) == ["lower", "upper"]
    assert (intervals["lower"] < fit.params).all()
    assert (fit.params < intervals["upper"]).all()
    wider = fit.conf_int(0.9, adjust="bonferroni")
    np.testing.assert_array_equal(wider, fit.conf_int(1.0 - 0.1 / len(names)))
    with refused("use 'bonferroni', or None for intervals that hold one by one"):
        fit.conf_int(adjust="holm")  # type: ignore[arg-type]
    assert (fit.df_resid, fit.df_model) == (pytest.approx(5_000 - len(names)), 3)
    assert fit.residual_standard_deviation == pytest.approx(9.2, abs=0.2)
    np.testing.assert_allclose(fit.tvalues, fit.params / fit.bse)
    assert fit.f_pvalue == fit.p_value_of_fit
    for level in (0.05, 0.49, 1.0, "0.95"):
        with refused("statsmodels' alpha is 1"):
            fit.conf_int(level)  # type: ignore[arg-type]
    assert list(fit.identified) == [True] * 3
    frame = fit.to_pandas()
    assert list(frame["feature"]) == names
    assert fit.to_arrow().num_rows == 4
    assert "<td" in fit._repr_html_()


def test_predictions_are_read_by_name() -> None:
    fit = exact().ols("income", ["age", "region"])
    frame = pd.DataFrame({"other": [1, 2], "region": ["south", "east"], "age": [30.0, np.nan]})
    found = fit.predict(frame)
    assert np.isfinite(found[0])
    assert np.isnan(found[1])
    turned = frame[["age", "other", "region"]]
    for form in (turned, pl.from_pandas(frame), pa.Table.from_pandas(frame), frame.to_dict("list")):
        np.testing.assert_array_equal(fit.predict(form), found)
    with refused("the names must be the release's"):
        fit.predict(frame.rename(columns={"age": "Age"}))
    with refused("leave those rows out, or give them a level", column="region") as caught:
        fit.predict(frame.assign(region=["south", "secret"]))
    assert "secret" not in str(caught.value)


def test_prediction_intervals() -> None:
    fit = exact().ols("income", ["age", "smoker", "age:smoker", "region"])
    new = people().sample(2_000, random_state=1)
    found = fit.get_prediction(new, level=0.9)
    row = found.limits(obs=True)
    inside = (row[:, 0] <= new["income"]) & (new["income"] <= row[:, 1])
    assert 0.88 <= inside.mean() <= 0.92
    np.testing.assert_array_equal(found.predicted_mean, fit.predict(new))
    frame = found.summary_frame()
    names = ["mean", "mean_se", "mean_ci_lower", "mean_ci_upper", "obs_ci_lower", "obs_ci_upper"]
    assert (list(frame.columns), len(frame)) == (names, 2_000)
    np.testing.assert_array_equal(found.conf_int(obs=True)["upper"], frame["obs_ci_upper"])
    assert "1,980 more rows" in found.summary()
    with refused("fit has no standard errors", method="ridge"):
        exact().ridge("income", ["age"]).get_prediction(new)


def test_prediction_intervals_allow_for_noise_on_the_residual_variance() -> None:
    """Noise hides how much residuals vary: taken as estimated, intervals of new rows held two thirds of them."""
    schema = dpm.Schema(dpm.Numeric("y", -2, 2), dpm.Numeric("x", -1, 1))
    inside, too_narrow = [], []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-0.8, 0.8, 1_000)
        table = pd.DataFrame({"y": 0.5 * x + rng.normal(0, 0.1, 1_000), "x": x})
        fit = dpm.release(table, schema, epsilon=1.0, mechanism="matrix-laplace", insecure_seed=seed).ols("y ~ x")
        if not fit.identified:
            continue
        found = fit.get_prediction({"x": [-0.7, 0.1, 0.6]})
        line, row = found.limits(), found.limits(obs=True)
        new = 0.5 * np.array([-0.7, 0.1, 0.6]) + rng.normal(0, 0.1, 3)
        inside += ((row[:, 0] <= new) & (new <= row[:, 1])).tolist()
        too_narrow += ((line[:, 0] <= new) & (new <= line[:, 1])).tolist()
    assert np.mean(inside) > 0.9
    assert np.mean(too_narrow) < 0.8


def test_a_feature_that_hardly_varies_is_named() -> None:
    table = people().assign(smoker=False)
    fit = dpm.release(table, SCHEMA, epsilon=5.0, insecure_seed=1).ols("income", ["age", "smoker"])
    assert not fit.identified
    assert "Noise hides how much smoker varies: leave it out." in fit.summary()
    assert dpm.release(table, SCHEMA, epsilon=5.0, insecure_seed=1).ols("income", ["age"]).identified


def test_features_that_follow_from_each_other_are_named_if_noise_leaves_no_doubt() -> None:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, 4_000).astype(float)
    table = pd.DataFrame({"age": age, "months": 12 * age, "dose": rng.uniform(0, 9, 4_000), "y": 0.3 * age})
    ranges = {"age": (18, 90), "months": (216, 1_080), "dose": (0, 9), "y": (-20, 60)}
    schema = dpm.Schema(*(dpm.Numeric(name, *bounds) for name, bounds in ranges.items()))
    said = "The features age, months nearly follow from each other (all but 1% of their variance): leave one out."
    for epsilon, known in ((1.0, False), (200.0, True), (1e6, True)):
        fit = dpm.release(table, schema, epsilon=epsilon, insecure_seed=1).ols("y ~ age + months + dose")
        assert not fit.identified
        assert (said in str(fit)) == known
        assert ("It takes" in str(fit)) != known


def test_a_fit_that_noise_hides_says_so_and_bounds_nothing() -> None:
    table = people(300)
    fit = dpm.release(table, SCHEMA, epsilon=0.05, insecure_seed=1).ols("income", ["age", "smoker"])
    assert not fit.identified
    assert np.isnan(fit.standard_errors).all()
    assert np.isinf(fit.conf_int()).to_numpy().any()
    text = fit.summary()
    assert text.startswith("WHOLE FIT: NOT CLEAR")
    assert "It takes fewer features" in text or "Noise hides how much" in text
    assert text.count("not estimable at this budget") >= 3
    assert "R² =" not in text  # any would be compatible
    assert fit.params[["age", "smoker"]].isna().all()
    assert fit.pvalues[["age", "smoker"]].isna().all()
    assert np.isfinite(fit.predict(table)).all()
    assert fit.to_dict()["standard_errors"] == {"age": None, "smoker": None}
    found = fit.get_prediction(table[:3])
    np.testing.assert_array_equal(found.predicted_mean, fit.predict(table[:3]))
    assert np.isinf(found.limits(obs=True)).all()
    assert np.isnan(found.se_mean).all()
    with refused("are predicted with intervals at once", most=1_000):
        fit.get_prediction(people(1_001))


def test_a_mechanism_of_no_law_has_no_standard_errors() -> None:
    padded = dpm.mechanisms.JohnsonLindenstrauss(subtract_padding=False)  # a bias that is left in is no noise
    fit = dpm.release(people(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism=padded, insecure_seed=0).ols(
        "income", ["age"]
    )
    assert np.isnan(fit.standard_errors).all()
    assert "noise unknown" in fit.summary()
    assert fit.to_dict()["p_value_of_fit"] is None


def test_residuals_that_noise_hides_are_said_to_be_hidden() -> None:
    """What a fit says of its residuals turns with their true size; the bound that it gives holds."""
    rng = np.random.default_rng(0)
    schema = dpm.Schema(*(dpm.Numeric(name, -1, 1) for name in "aby"))
    for deviation, hidden in ((0.005, True), (0.3, False)):
        x = rng.uniform(-1, 1, (3_000, 2))
        table = np.column_stack([x, x @ [0.3, 0.2] + rng.normal(0, deviation, 3_000)])
        fit = dpm.release(table, schema, epsilon=1.0, mechanism="matrix-laplace", insecure_seed=3).ols("y", ["a", "b"])
        assert fit.identified
        assert fit.equations is not None
        assert fit.equations.residuals_are_noise == hidden
        assert ("so is the sampling part" in fit.summary()) == hidden
        assert fit.equations.residual_deviation(0.975) > deviation


def test_a_bound_on_hidden_residuals_is_at_most_half_the_range() -> None:
    schema = dpm.Schema(dpm.Numeric("a", -1, 1), dpm.Numeric("y", -1, 1, weight=0.01))
    table = np.tile([[-1.0, -0.5], [1.0, 0.5]], (12, 1))
    fit = dpm.release(table, schema, epsilon=1.0, mechanism="matrix-laplace", insecure_seed=3).ols("y", ["a"])
    assert fit.equations is not None
    assert fit.equations.residual_deviation(0.975) > 1.2
    assert "is not clear (noise), at most 1: so is the sampling part" in " ".join(fit.summary().split())


# Robust errors ----------------------------------------------------------------------------------------------------------------


def test_robust_errors_without_products_are_refused_with_their_names() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("smoker"), dpm.Numeric("pay", 0, 9))
    rows = pd.DataFrame(
        {
            "age": [30.0, 40.0] * 200,
            "smoker": [True, False, False, True] * 100,
            "pay": np.random.default_rng(0).uniform(1, 5, 400),
        }
    )
    without = dpm.release(rows, schema, rho=1e6, insecure_seed=0)
    for kind in ("HC", "HC1"):
        with refused("not in this release: age:pay, age:smoker, age^2, pay:smoker, pay^2."):
            without.ols("pay", ["age", "smoker"], cov_type=kind)
    for kind, code in (
        ("HC2", "divides each squared residual by a power of 1 less the"),
        ("HC3", "divides each squared residual by a power of 1 less the"),
        ("HC4", "use 'HC' (HC1), 'nonrobust' or 'auto' (HC1 if the release"),
    ):
        with refused(code):
            without.ols("pay", ["age"], cov_type=kind)
    assert not without.ols("pay", ["age", "smoker"]).equations.robust
    with_them = dpm.release(rows, schema.with_products(schema.names), rho=1e6, insecure_seed=0)
    assert with_them.ols("pay", ["age", "smoker"]).equations.robust
    assert not with_them.ols("pay", ["age", "smoker"], cov_type="nonrobust").equations.robust
    plain, scaled = (with_them.ols(f"pay ~ {age} + smoker", cov_type="HC1") for age in ("age", "I(age/10)"))
    np.testing.assert_allclose(scaled.bse, plain.bse * [1.0, 10.0, 1.0], rtol=1e-4)


def test_products_are_added_once() -> None:
    region = dpm.Categorical("region", ["north", "south"])
    schema = dpm.Schema(dpm.Numeric("age", 0, 9), region, dpm.Boolean("smoker"), dpm.Product("smoker", "age"))
    more = schema.with_products(schema.names)
    assert more.feature_names[4:] == (
        *("smoker:age", "age^2", "age:region=north", "age:region=south"),
        *("region=north:smoker", "region=south:smoker"),
    )
    assert more.with_products(schema.names) == more
    assert dpm.Schema(*schema.columns, row_norm=1.0).with_products(["age"]).row_norm == 1.0
    with refused("are both categorical: robust errors would need the products"):
        dpm.Schema(region, dpm.Categorical("sex", ["f", "m"])).with_products(["region", "sex"])
    with refused("The schema has no column", name="agee", close="age"):
        schema.with_products(["agee"])


def test_answers_without_products_quote_what_was_measured() -> None:
    page = Path(__file__).parents[2] / "docs" / "evidence" / "regression-coverage.md"
    assert not exact().correlations(["smoker", "region"]).remarks[1]
    equations = exact().ols("income", ["age"]).equations
    assert equations is not None
    for said in (equations.about_sampling.removesuffix(")."), exact().correlations(["age", "income"]).remarks[1][:-1]):
        quoted = said.partition(": ")[2]
        assert quoted
        assert f"In short, {quoted} " in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("square", ["age", "income"])
def test_correlations_of_which_one_square_was_not_released_assume_normal_rows(square: str) -> None:
    numbers = dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 200)
    schema = dpm.Schema(*numbers, dpm.Power(square, 2), dpm.Product("age", "income"))
    found = dpm.release(people(), schema, **UNLIMITED).correlations(["age", "income"])
    assert "assumes normal rows" in found.summary()
    plain = exact().correlations(["age", "income"])
    np.testing.assert_allclose(found.sampling_noise, plain.sampling_noise, rtol=1e-5)


def test_residuals_that_are_zero_in_a_group_make_no_combination_of_coefficients_certain() -> None:
    singular = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = robust_covariance(singular, np.zeros(2), np.eye(2))
    assert np.linalg.eigvalsh(found)[0] > 1e-7
    assert np.allclose(found, singular, atol=1e-5)


def test_one_noisy_robust_error_leaves_the_classical_correlations() -> None:
    """Variances are drawn to the classical ones by their noise, each by its own."""
    classical = np.array([[1.0, 0.5, 0.2], [0.5, 4.0, 0.0], [0.2, 0.0, 9.0]])
    found = robust_covariance(np.diag([0.5, 1.0, 25.0]), np.array([0.01, 0.5, 20.0]), classical)
    variances = np.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(
        np.diag(found),
        variances * known_ratio(np.array([0.5, 1.0, 25.0]) / variances, np.array([0.01, 0.125, 20.0 / 9.0])),
    )
    assert np.diag(found)[0] == pytest.approx(0.5, abs=0.001)
    assert found[0, 1] / math.sqrt(found[0, 0] * found[1, 1]) == pytest.approx(0.25)
    robust = np.array([[4.0, 1.0], [1.0, 1.0]])
    just_known = robust_covariance(robust, np.array([0.99, 0.0]), 9.0 * np.eye(2))
    assert just_known[0, 1] / math.sqrt(just_known[0, 0] * just_known[1, 1]) == pytest.approx(0.5)
    assert robust_covariance(robust, np.array([1.01, 0.0]), 9.0 * np.eye(2))[0, 1] == 0.0


def test_intervals_by_noisy_robust_variances_cover_as_often() -> None:
    """Over normal noise on the ratio of variances, as exact integrals: neither the larger of both nor the robust one would."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)

    def coverage(rule: Callable[[np.ndarray, np.ndarray], np.ndarray], ratio: float, noise: float) -> float:
        found = np.maximum(rule(ratio + noise * nodes, np.array(noise)), 0.0)
        return float(weights / weights.sum() @ (2.0 * ndtr(1.96 * np.sqrt(found / ratio)) - 1.0))

    cells = [(ratio, noise) for ratio in (0.8, 1.0, 1.3, 1.7) for noise in (0.0, 0.1, 0.25, 0.5, 1.0)]
    assert all(0.935 < coverage(known_ratio, *cell) < 0.978 for cell in cells)
    for rule in (lambda ratio, _: np.maximum(ratio, 1.0), lambda ratio, _: ratio, lambda ratio, _: np.ones_like(ratio)):
        assert not all(0.935 < coverage(rule, *cell) < 0.978 for cell in cells)


def test_a_p_value_agrees_with_its_interval() -> None:
    """The hull of a confidence set may hold 0 in a gap."""
    assert agreeing_p_value(0.01, -1.0, 2.0, 0.95) == pytest.approx(0.05)
    assert agreeing_p_value(0.30, -1.0, 2.0, 0.95) == 0.30
    assert agreeing_p_value(0.01, 1.0, 2.0, 0.95) == 0.01
    assert 0.0499 < agreeing_p_value(0.07, 1.0, 2.0, 0.95) < 1.0 - 0.95
    assert agreeing_p_value(0.01, 0.0, 2.0, 0.95) == pytest.approx(0.05)
    assert agreeing_p_value(0.01, -2.0, 0.0, 0.95) == pytest.approx(0.05)


@pytest.mark.parametrize(("index", "side"), [(1, 1.0), (2, -1.0)])
def test_an_interval_holds_every_part_of_its_confidence_set(
    index: int, side: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the search ends at a gap short of 0, which is not refuted, the interval goes on behind 0."""
    whole = drawn_equations(2, features=0.2).estimates(0.95)[index]
    assert whole.lower < 0.0 < whole.upper
    kept = sorted((side * 1e-3, whole.upper if side > 0.0 else whole.lower))
    monkeypatch.setattr(Search, "limits", lambda *_: tuple(kept))
    found = drawn_equations(2, features=0.2).estimates(0.95)[index]
    np.testing.assert_allclose([found.lower, found.upper], [whole.lower, whole.upper], rtol=1e-5)
    assert found.p_value == pytest.approx(whole.p_value)


def test_missing_values_leave_errors_finite_where_noise_hides_the_residuals() -> None:
    whole = drawn_equations(0)
    noisy = whole.moments.copy()
    noisy[-1, -1] -= 1.5 * float(whole.beyond @ whole.moments @ whole.beyond)
    equations = replace(whole, moments=noisy, gaps=np.array([0.0, 0.2, 0.1, 0.0, 0.3]))
    assert equations.residual_variance(equations.beyond) == 0.0
    assert np.isfinite(equations.sampling_covariance).all()
    assert all(each.estimable for each in equations.estimates(0.95))


def test_a_coefficient_without_error_is_certain() -> None:
    equations = drawn_equations(0)
    none = np.zeros((equations.n_regressors,) * 2)
    equations.__dict__.update(privacy_covariance=none, sampling_covariance=none)
    first = np.eye(equations.n_regressors)[0]
    value = float(equations.coefficients[0])
    assert equations.contrast(first, 0.95, value - 1.5).p_value == 0.0
    assert equations.contrast(first, 0.95, value).p_value == 1.0


def test_residuals_of_a_noisy_fit_are_about_the_shrunken_line() -> None:
    """Its slopes, and the constant at which they add up to 0."""
    slopes = np.array([0.3, -0.2, 0.1])
    few = drawn_equations(0, features=1e-4)
    shrunken = replace(few, toward=np.append(np.nan, slopes))
    assert not shrunken.delta_method_valid
    assert shrunken._pilot[1:] == pytest.approx(slopes)
    assert few.moments[0] @ np.append(-shrunken._pilot, 1.0) == pytest.approx(0.0, abs=1e-9 * N_ROWS)
    assert few._pilot == pytest.approx(few.solution)
    many = replace(drawn_equations(0, features=100.0), toward=np.append(np.nan, slopes))
    assert many.delta_method_valid
    assert many._pilot == pytest.approx(many.solution)
