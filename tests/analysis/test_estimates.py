"""Estimates of functions of moments against draws of the noise and of rows, and against other packages' formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri
from scipy.stats import chi2, multivariate_normal, norm

import dpmoments as dpm
from dpmoments.analysis import estimate, instruments, scales
from dpmoments.analysis.confidence import error_rate
from support.drawn_releases import drawn, planted, template
from support.said import refused

Z = float(ndtri(0.975))
N_ROWS = 2_000
NAMES = ("g", "x", "m", "y", "ill", "z1", "z2", "d", "w", "a1", "a2", "a3", "g:x", "g:m")
SCHEMA = dpm.Schema(
    dpm.Boolean("g"),
    *(dpm.Numeric(name, -7, 7) for name in ("x", "m", "y")),
    dpm.Boolean("ill"),
    *(dpm.Numeric(name, -7, 7) for name in ("z1", "z2", "d", "w", "a1", "a2", "a3")),
    dpm.Product("g", "x"),
    dpm.Product("g", "m"),
)
ITEMS = ["a1", "a2", "a3"]


def rows(rng: np.random.Generator, n: int = N_ROWS) -> np.ndarray:
    g = rng.random(n) < 0.4
    x = rng.normal(0.0, 1.0, n) - 0.5 * g
    m = 0.5 * x + rng.normal(0.0, 1.0, n)
    y = 0.3 * x + 0.7 * m - 1.0 * g + 0.2 * g * x + rng.normal(0.0, 1.0, n)
    ill = rng.random(n) < np.where(g, 0.3, 0.15)
    u, z1, z2 = rng.normal(0.0, 1.0, (3, n))
    d = 0.5 * z1 + 0.4 * z2 + 0.6 * u + rng.normal(0.0, 1.0, n)
    w = 0.5 * d - u + rng.normal(0.0, 1.0, n)
    items = 0.8 * rng.normal(0.0, 1.0, (n, 1)) + 0.6 * rng.normal(0.0, 1.0, (n, 3))
    return np.column_stack([g, x, m, y, ill, z1, z2, d, w, items, g * x, g * m]).astype(float)


@cache
def of_noise(rho: float = 250.0) -> dpm.MomentRelease:
    return template(SCHEMA, "gaussian", rho=rho)


@cache
def without_noise() -> dpm.MomentRelease:
    return drawn(of_noise(1e9), rows(np.random.default_rng(99), 400_000), None)


ANSWERS: dict[str, Callable[[dpm.MomentRelease], estimate.Estimates]] = {
    "odds_ratio": lambda release: release.odds_ratio("ill", "g"),
    "vif": lambda release: release.vif(["x", "m"]),
    "mediation": lambda release: release.mediation("y", "x", "m"),
    "oaxaca": lambda release: release.oaxaca("y", ["x", "m"], by="g"),
    "tetrachoric": lambda release: release.tetrachoric(["g", "ill"]),
    "cancorr": lambda release: release.cancorr(["x", "m"], ["y"]).cancorr,
    "iv": lambda release: release.iv("w ~ [d ~ z1 + z2]").estimates,
    "cronbach_alpha": lambda release: release.cronbach_alpha(ITEMS),
    "mcdonald_omega": lambda release: release.mcdonald_omega(ITEMS),
    "a sum": lambda release: release.estimate(
        lambda mean, covariance: {"mean": mean.sum(), "variance": covariance.sum()}, ITEMS
    ),
}


@pytest.mark.long
def test_no_estimate_is_exact_where_noise_hides_a_variance() -> None:
    rng, columns = np.random.default_rng(1), (dpm.Boolean("rare"), dpm.Numeric("x", -1e3, 1e3), dpm.Numeric("y", 0, 10))
    table = pd.DataFrame({"rare": rng.random(400) < 0.02, "x": rng.normal(0, 1, 400), "y": rng.uniform(4, 6, 400)})
    negative = 0
    for seed in range(5):
        released = dpm.release(table, dpm.Schema(*columns), epsilon=0.5, insecure_seed=seed)
        described, names = released.describe(), ["rare", "x", "y"]
        found = released.estimate(lambda mean, _: mean, names)
        negative += (released.with_repair("none").covariance.diagonal() <= 0.0).sum() + (found.value[0] < 0.0)
        known = np.isfinite(found.value)
        assert (found.upper - found.lower >= 1.9 * described.mean_noise)[known].all()
        np.testing.assert_allclose(found.privacy_noise[known], described.mean_noise[known], rtol=0.02)
    assert negative > 2


def test_an_inflation_factor_is_at_least_one_and_known_where_noise_is_small_against_it() -> None:
    rng = np.random.default_rng(0)
    cm = rng.normal(170.0, 10.0, 5_000)
    table = pd.DataFrame({"cm": cm, "inch": cm / 2.54 + rng.normal(0.0, 0.02, 5_000), "z": rng.normal(0.0, 1.0, 5_000)})
    columns = dpm.Numeric("cm", 100, 250), dpm.Numeric("inch", 40, 100), dpm.Numeric("z", -6, 6)
    found = dpm.release(table, dpm.Schema(*columns), epsilon=1e6, insecure_seed=0).vif(["cm", "inch", "z"])
    truth, error = np.diag(np.linalg.inv(table.corr())), np.hypot(found.privacy_noise, found.sampling_noise)
    assert truth[0] > 38_000.0
    np.testing.assert_allclose(found.value, truth, rtol=0.02)
    assert found.lower[2] == 1.0
    np.testing.assert_allclose(found.upper[2], found.value[2] + 1.96 * error[2], rtol=1e-4)  # errors of the interval
    assert error[0] < 0.05 * truth[0]
    assert found.upper[2] < 1.01


def mean_square(answer: Callable[[dpm.MomentRelease], estimate.Estimates], n: int = 50, rho: float = 250.0) -> float:
    """Mean square of the errors of intervals' middles on their scale, in the intervals' own standard errors."""
    truth, squares = answer(without_noise()), []
    for seed in range(n):
        rng = np.random.default_rng([5, seed])
        found = answer(drawn(of_noise(rho), rows(rng), rng))
        scale, known = estimate.SCALES[found.link].of, np.isfinite(found.value)
        lower, upper, true = (scale(ends[known]) for ends in (found.lower, found.upper, truth.value))
        squares.extend((((lower + upper) / 2.0 - true) ** 2 / ((upper - lower) / (2.0 * Z)) ** 2).tolist())
    return float(np.mean(squares))


@pytest.mark.long
@pytest.mark.parametrize("name", ANSWERS)
def test_stated_errors_are_those_of_draws(name: str) -> None:
    assert 0.65 < mean_square(ANSWERS[name]) < 1.4


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        (estimate.MomentErrors.sampling, "result / self.moments", "0.2 * result / self.moments"),
        (estimate.MomentErrors.privacy, "return self.moments", "return 0.2 * self.moments"),
        (estimate.MomentErrors.gradients, "basis[:, i])) / 2.0", "basis[:, i]))"),
    ],
)
def test_a_fault_in_errors_is_found(function: Any, before: str, after: str) -> None:
    with planted(function, before, after):
        assert not 0.65 < mean_square(ANSWERS["mediation"], 20) < 1.4


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("self.law.covariance_of_product(b)", "0.0 * self.law.covariance_of_product(b)"),
        ("* self.rows_per_unit * semidefinite", "* 0.2 * semidefinite"),
    ],
)
def test_a_fault_in_the_errors_of_instruments_is_found(before: str, after: str) -> None:
    with planted(instruments.Equations.errors, before, after):
        assert not 0.65 < mean_square(ANSWERS["iv"], 20, rho=60.0) < 1.4


@pytest.mark.long
def test_a_fault_in_the_cells_of_two_booleans_is_found() -> None:
    with planted(estimate.MomentErrors.sampling_of_cells, "2.0 * of_covariance[:, 0, 1]", "of_covariance[:, 0, 1]"):
        assert not 0.65 < mean_square(ANSWERS["odds_ratio"], 30) < 1.4


# Instruments -------------------------------------------------------------------------------------------------------------


def of_instruments(weak: float, n: int = 60) -> np.ndarray:
    """Whether the set holds the coefficient, and the p-values of over-identification, a replication a row."""
    schema = dpm.Schema(*(dpm.Numeric(name, -8, 8) for name in ("z1", "z2", "d", "w")))
    release, found = template(schema, "gaussian", rho=3.0), []
    for seed in range(n):
        rng = np.random.default_rng([6, seed])
        u, z1, z2 = rng.normal(0.0, 1.0, (3, N_ROWS))
        d = weak * (z1 + z2) + 0.6 * u + rng.normal(0.0, 1.0, N_ROWS)
        w = 0.5 * d - u + rng.normal(0.0, 1.0, N_ROWS)
        answer = drawn(release, np.column_stack([z1, z2, d, w]), rng).iv("w ~ [d ~ z1 + z2]")
        assert answer.sargan is not None
        covered = any(low <= 0.5 <= high for low, high in answer.anderson_rubin_set())
        found.append((covered, answer.sargan.p_value, answer.weak))
    return np.array(found, dtype=float)


@pytest.mark.slow
@pytest.mark.parametrize("weak", [0.02, 0.4])
def test_the_anderson_rubin_set_holds_the_coefficient_at_any_strength(weak: float) -> None:
    covered, over_identified, is_weak = of_instruments(weak).T
    assert 0.9 <= covered.mean() <= 0.99
    assert (is_weak.mean() > 0.9) == (weak == 0.02)
    assert weak == 0.02 or over_identified.mean() == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
def test_noise_left_out_of_the_tests_of_instruments_is_found() -> None:
    with planted(instruments.Equations.errors, "return self.law.covariance_of_product(b)", "return 0.0 * self.moments"):
        covered, p_value, _ = of_instruments(0.4).T
    assert covered.mean() < 0.9
    assert p_value.mean() < 0.4


def test_a_set_of_weak_instruments_is_unbounded_and_says_so() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, -8, 8) for name in ("z", "d", "w")))
    rng = np.random.default_rng(0)
    table = rng.normal(0.0, 1.0, (400, 3))
    answer = drawn(template(schema, "gaussian", rho=1.0), table, rng).iv("w ~ [d ~ z]")
    assert answer.weak
    assert "weak instruments" in answer.verdict
    assert any(not np.isfinite(end) for piece in answer.anderson_rubin_set() for end in piece)


def test_a_set_is_stated_if_noise_leaves_a_sum_of_squares_below_zero() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in ("x", "y", "z")))
    rows = pd.DataFrame(np.random.default_rng(0).uniform(0.0, 1.0, (100, 3)), columns=["x", "y", "z"])
    with pytest.warns(dpm.ReleaseWarning, match="Too few rows"):
        released = dpm.release(rows, schema, epsilon=0.05, mechanism="laplace", insecure_seed=1)
    answer = released.iv("y ~ [x ~ z]")
    squares = np.diag(answer.equations.moments)[[answer.equations.target, answer.equations.regressors[-1]]]
    assert squares.prod() < 0.0
    assert answer.anderson_rubin_set() == ((-np.inf, np.inf),)
    assert "∞" in str(answer)


def test_tests_of_instruments_are_named_as_tests_and_nothing_is_printed_as_nan() -> None:
    rng = np.random.default_rng(0)
    x, k = rng.normal(0.0, 1.0, 1_000), np.ones(1_000)
    rows = pd.DataFrame({"x": x, "z": x + rng.normal(0.0, 1.0, 1_000), "k": k, "y": x})
    schema = dpm.Schema(*(dpm.Numeric(name, -4, 4) for name in ("x", "z", "k", "y")))
    released = dpm.release(rows.clip(-4, 4), schema, epsilon=5.0, insecure_seed=1)
    answer = str(released.iv("y ~ [x ~ z + k]"))
    assert "test of exogeneity (Wu–Hausman): F(" in answer
    assert "test that instruments agree (Sargan): χ²(" in answer
    constant = replace(released.iv("y ~ [x ~ z]"), first_stage={"x": {"f": 1.0, "p_value": 0.4, "partial_r2": np.nan}})
    assert "partial R² = –" in str(constant)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("w ~ d", "brackets"),
        ("w ~ [d ~ d]", "own instrument"),
        ("w ~ [d + x ~ z1]", "as many instruments"),
        ("w ~ 0 + x + [d ~ z1]", "no constant"),
    ],
)
def test_formulas_that_have_no_two_stages_are_refused(formula: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        without_noise().iv(formula)


# Exports -----------------------------------------------------------------------------------------------------------------


def test_nacov_is_the_covariance_of_draws() -> None:
    """The mean of δᵀ(NACOV/n)⁻¹δ over draws is the number of moments, and its entries are in lavaan's order."""
    columns, found = ["x", "m", "y"], []
    truth = without_noise()
    chosen = [truth.feature_names.index(name) for name in columns]

    def moments(release: dpm.MomentRelease) -> np.ndarray:
        mean, covariance = release.mean[chosen], release.covariance[np.ix_(chosen, chosen)]
        return np.concatenate([mean, [covariance[i, j] for j in range(3) for i in range(j, 3)]])

    for seed in range(60):
        rng = np.random.default_rng([8, seed])
        release = drawn(of_noise(), rows(rng), rng).with_repair("none")
        apart = moments(release) - moments(truth)
        found.append(apart @ np.linalg.solve(release.nacov(columns) / release.n_rows, apart) / len(apart))
    assert 0.85 < np.mean(found) < 1.15


def test_draws_of_the_covariance_spread_as_the_noise_does() -> None:
    release = drawn(of_noise(), rows(np.random.default_rng(1)), np.random.default_rng(2))
    _, covariances = release.covariance_draws(2_000, ["x", "m"])
    stated = release.estimate(lambda _, covariance: covariance[0, 1], ["x", "m"]).privacy_noise[0]
    assert covariances[:, 0, 1].std() == pytest.approx(stated, rel=0.06)


def test_exact_rows_have_the_moments_of_the_release() -> None:
    release = drawn(of_noise(), rows(np.random.default_rng(1)), None)
    frame = release.synthetic(500, exact=True)
    np.testing.assert_allclose(frame.mean(), release.mean, atol=1e-12)
    np.testing.assert_allclose(frame.cov(), release.covariance, atol=1e-12)
    with pytest.raises(ValueError, match="more than 14 rows"):
        release.synthetic(14, exact=True)


def test_scripts_hold_every_moment() -> None:
    release = without_noise()
    columns = ["x", "y"]
    chosen = [release.feature_names.index(name) for name in columns]
    covariance = release.covariance[np.ix_(chosen, chosen)]
    for program in ("lavaan", "stata", "spss"):
        script = release.export(program, columns)
        assert all(f"{number:.17g}" in script for number in (*release.mean[chosen], covariance[1, 0], covariance[1, 1]))
        assert "NOT PRIVATE" in script
    assert "g_x is 'g:x'" in release.export("lavaan")


# Functions of a reader's own ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda _, covariance: np.log(-covariance[0, 0]), ""),
        (lambda _, covariance: math.log(-covariance[0, 0]), " (ValueError)"),
        (lambda *_: 1 / 0, " (ZeroDivisionError)"),
    ],
)
def test_a_function_that_is_not_defined_there_is_not_estimable(function: Callable[..., float], error: str) -> None:
    release = drawn(of_noise(), rows(np.random.default_rng(1)), None)
    answer = release.estimate(function, ["x"])
    assert answer.verdict == ("not estimable at this budget",)
    assert np.isnan(answer.value).all()
    assert f"The function is not defined at the released moments{error}." in str(answer)


@pytest.mark.parametrize("returned", [None, "a", [1.0, None], [], {"x": [1.0, 2.0]}])
def test_a_function_that_returns_no_numbers_is_refused(returned: object) -> None:
    release = drawn(of_noise(), rows(np.random.default_rng(1)), None)
    with refused("what the function returns must be a number", TypeError, got=type(returned).__name__):
        release.estimate(lambda *_: returned, ["x"])


def test_a_function_that_bends_over_its_interval_is_not_estimable() -> None:
    """A ratio whose divisor is not distinguishable from 0."""
    rng = np.random.default_rng(3)
    release = drawn(of_noise(), rows(rng), rng)
    answer = release.estimate(lambda _, covariance: 1.0 / covariance[0, 1], ["z1", "z2"])
    assert answer.verdict == ("not estimable at this budget",)


@pytest.mark.long
@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.99])
def test_a_p_value_is_below_one_less_the_level_exactly_if_its_interval_excludes_nothing(level: float) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        release = drawn(of_noise(), rows(rng), rng)
        for answer in (
            release.mediation("ill", "z1", "x", level=level),
            release.odds_ratio("ill", "g", level=level),
        ):
            nothing = estimate.SCALES[answer.link].nothing
            outside = (answer.lower > nothing) | (answer.upper < nothing)
            np.testing.assert_array_equal(outside, answer.p_value < error_rate(level))


def test_answers_are_textbook_answers_without_noise() -> None:
    table = rows(np.random.default_rng(4), 5_000)
    release = drawn(of_noise(1e9), table, None)
    frame = pd.DataFrame(table, columns=NAMES)
    g, ill = frame.g > 0.5, frame.ill > 0.5
    cells = np.array([(g & ill).sum(), (g & ~ill).sum(), (~g & ill).sum(), (~g & ~ill).sum()], dtype=float)
    log_error = np.sqrt((1.0 / cells).sum())  # Woolf's
    odds = cells[0] * cells[3] / (cells[1] * cells[2])
    value, lower, upper = release.odds_ratio("ill", "g")["oddsratio"]
    assert value == pytest.approx(odds)
    assert np.log(upper / lower) / 2.0 == pytest.approx(Z * log_error, rel=1e-3)

    one = release.factor_analysis(1, ITEMS, "ml")
    other = release.factor_analysis(1, ITEMS, "minres")
    np.testing.assert_allclose(one.loadings_, other.loadings_, atol=1e-6)
    np.testing.assert_allclose(one.get_communalities() + one.get_uniquenesses(), 1.0, atol=1e-9)


LOADINGS = np.array([[0.8, 0.1], [0.7, 0.2], [0.6, 0.1], [0.1, 0.9], [0.3, 0.5], [0.2, 0.6]])


def two_factors() -> scales.FactorAnalysis:
    rng = np.random.default_rng(5)
    names = [f"i{at}" for at in range(6)]
    factors, unique = rng.normal(0.0, 1.0, (2_000, 2)), np.sqrt(1.0 - (LOADINGS**2).sum(axis=1))
    table = factors @ LOADINGS.T + unique * rng.normal(0.0, 1.0, (2_000, 6))
    schema = dpm.Schema(*(dpm.Numeric(name, -6, 6) for name in names))
    return drawn(template(schema, "gaussian", rho=1e9), table, None).factor_analysis(2)


def test_shares_of_factors_that_noise_hides_are_not_printed() -> None:
    answer = two_factors()
    value = answer.estimates.value.copy()
    for hidden, printed in (([0], "share of the variance: –, "), ([0, 6], "")):
        value[hidden] = np.nan
        said = replace(answer, estimates=replace(answer.estimates, value=value)).remarks[0]
        assert said.startswith(printed)
        assert bool(said) == bool(printed)


def test_a_rotation_is_the_one_of_greatest_variance() -> None:
    """No rotation by a small angle has a greater sum of variances of squared, normalized loadings."""
    found = two_factors().loadings_

    def variance(angle: float) -> float:
        turned = found @ np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        squares = turned**2 / (found**2).sum(axis=1, keepdims=True)
        return float(squares.var(axis=0).sum())

    assert all(variance(0.0) > variance(angle) for angle in (-0.3, -0.01, 0.01, 0.3))
    assert np.abs(found).max(axis=1) == pytest.approx(LOADINGS.max(axis=1), abs=0.1)


@pytest.mark.long
def test_the_test_of_no_relation_is_uniform_under_none() -> None:
    found = []
    for seed in range(30):
        rng = np.random.default_rng([9, seed])
        found.append(drawn(of_noise(), rows(rng), rng).cancorr(["x", "y"], ["z1", "a1"]).p_value)
    assert np.mean(found) == pytest.approx(0.5, abs=0.1)
    assert chi2.sf(-2.0 * np.log(found).sum(), 60) > 1e-3


def test_a_tetrachoric_correlation_is_that_of_the_normals_behind() -> None:
    x = np.random.default_rng(6).multivariate_normal([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]], 200_000)
    schema = dpm.Schema(dpm.Boolean("one"), dpm.Boolean("two"))
    table = (x > norm.isf([0.1, 0.5])).astype(float)
    release = drawn(template(schema, "gaussian", rho=1e9), table, None)
    assert release.tetrachoric(["one", "two"]).value[0] == pytest.approx(0.6, abs=0.015)


def test_what_users_of_statsmodels_type() -> None:
    """A level in place of alpha, one row of a frame, and names of what is left over."""
    table = rows(np.random.default_rng(4), 3_000)
    release = drawn(of_noise(1e9), table, None)
    fit, ratios = release.ols("y ~ x + m"), release.cross_table("g", "ill")
    for ask in (fit.conf_int, ratios.oddsratio_confint, ratios.riskratio_confint):
        with pytest.raises(TypeError, match="level="):
            ask(alpha=0.1)
    frame = pd.DataFrame(table, columns=NAMES)
    assert fit.predict(frame.iloc[0]) == pytest.approx(fit.predict(frame.iloc[:1]))
    residual = frame.y - np.column_stack([np.ones(3_000), frame.x, frame.m]) @ fit.params.to_numpy()
    assert fit.ssr == pytest.approx(residual @ residual, rel=1e-6)
    assert fit.scale == fit.mse_resid == pytest.approx(residual @ residual / 2_997, rel=1e-6)
    assert str(fit.f_test("x = 0")) == str(fit.wald_test("x = 0"))
    assert fit.params["Intercept"] == fit.params["const"] == fit.params["(intercept)"] == fit.params.iloc[0]
    with pytest.raises(AttributeError, match="wald_test"):
        fit.aic  # noqa: B018
    release = drawn(of_noise(1e9), table, None)
    for name, words in (("iv_gmm", "Anderson"), ("ttest_ind", "t_test"), ("oddsratio", "Did you mean 'odds_ratio'")):
        with pytest.raises(AttributeError, match=words):
            getattr(release, name)


@pytest.mark.parametrize(
    "ask",
    [
        lambda release, kind: release.vif(["x", *kind]),
        lambda release, kind: release.mediation("y", "x", "m", kind),
        lambda release, kind: release.cancorr(["x", *kind], ["y", "m"]).cancorr,
        lambda release, kind: release.factor_analysis(1, ["x", "y", "m", *kind]).estimates,
    ],
)
def test_of_all_levels_of_a_column_the_most_frequent_is_left_out(ask: Callable[..., Any]) -> None:
    """Else a covariance is singular, and what is left of it noise or rounding."""
    rng = np.random.default_rng(3)
    kind, values = rng.choice(3, 2_000, p=[0.5, 0.3, 0.2]), rng.normal(0.0, 1.0, (2_000, 3))
    values[:, 1:] += 0.5 * values[:, [0]]
    numbers = (dpm.Numeric(name, -7, 7) for name in ("x", "m", "y"))
    schema = dpm.Schema(dpm.Categorical("kind", ["a", "b", "c"]), *numbers)
    every = np.column_stack([np.eye(3)[kind], values])
    release = drawn(template(schema, "gaussian", rho=250.0), every, np.random.default_rng(4))
    np.testing.assert_array_equal(ask(release, ["kind"]).value, ask(release, ["kind=b", "kind=c"]).value)


def test_a_list_of_items_is_named_wherever_columns_are() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, -7, 7) for name in NAMES[1:4]), item_lists={"scale": ["x", "m"]})
    release = drawn(template(schema, "gaussian", rho=1e9), rows(np.random.default_rng(4))[:, 1:4], None)
    assert release.cronbach_alpha("scale").value == release.cronbach_alpha(["x", "m"]).value
    assert release.cancorr("scale", ["y"]).x_names == ("x", "m")
    assert release.correlations(["y", "scale"]).feature_names == ("x", "m", "y")
    with pytest.raises(TypeError, match="list of items: 'scale'"):
        release.cronbach_alpha("scales")


def test_odds_ratios_of_a_discriminant_are_those_of_normal_groups() -> None:
    """Of two normals with one covariance the logarithm of the odds is linear: here by 0.5 per unit."""
    schema = dpm.Schema(dpm.Boolean("g"), dpm.Numeric("x", -9, 9))
    rng = np.random.default_rng(3)
    g = rng.random(200_000) < 0.3
    found = drawn(
        template(schema, "gaussian", rho=1e9), np.column_stack([g, rng.normal(0.5 * g, 1.0)]).astype(float), None
    ).lda("g")
    assert found.odds_ratios().value == pytest.approx([np.exp(0.5)], rel=0.02)
    assert "Approximate" in str(found.odds_ratios())


def test_effect_sizes_of_group_tests_are_the_textbooks() -> None:
    table = rows(np.random.default_rng(4), 3_000)
    release = drawn(of_noise(1e9), table, None)
    y, g = table[:, 3], table[:, 0] > 0.5
    groups = y[~g], y[g]
    within = sum(np.sum((each - each.mean()) ** 2) for each in groups) / (len(y) - 2)
    found = release.t_test("y", "g")
    assert found.cohen_d == pytest.approx((groups[0].mean() - groups[1].mean()) / np.sqrt(within), rel=1e-6)
    assert 0.0 < found.cohen_d_interval[0] < found.cohen_d < found.cohen_d_interval[1]
    answer = release.anova("y", "g")
    low, high = answer.eta_squared_interval
    assert 0.0 < low < answer.eta_squared < high < 0.5


@pytest.mark.slow
def test_cohens_d_covers() -> None:
    truth, squares = without_noise().t_test("y", "g").cohen_d, []
    for seed in range(50):
        rng = np.random.default_rng([5, seed])
        found = drawn(of_noise(), rows(rng), rng).t_test("y", "g")
        low, high = found.cohen_d_interval
        squares.append(((low + high) / 2.0 - truth) ** 2 / ((high - low) / (2.0 * Z)) ** 2)
    assert 0.65 < np.mean(squares) < 1.4


@pytest.mark.parametrize("name", estimate.SCALES)
def test_the_slope_of_a_scale_is_its_derivative(name: str) -> None:
    scale, x, step = estimate.SCALES[name], np.array([0.2, 0.7]), 1e-6
    np.testing.assert_allclose(scale.slope(x), (scale.of(x + step) - scale.of(x - step)) / (2.0 * step), rtol=1e-6)
    np.testing.assert_allclose(scale.back(scale.of(x)), x)


@pytest.mark.parametrize(("p", "q", "r"), [(0.05, 0.9, 0.6), (0.02, 0.1, -0.4), (0.97, 0.8, 0.3)])
def test_two_normals_are_below_their_quantiles_as_often_as_scipy_says(p: float, q: float, r: float) -> None:
    expected = multivariate_normal.cdf([ndtri(p), ndtri(q)], cov=[[1.0, r], [r, 1.0]])
    assert scales._both_below(p, q, r) == pytest.approx(expected, abs=1e-7)
