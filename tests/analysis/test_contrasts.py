"""Linear restrictions as they are written, and tests of contrasts: without noise as the textbooks have them, and identities."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.analysis.contrasts import Restrictions
from dpmoments.analysis.regression_results import FittedLine
from support.drawn_releases import drawn
from support.said import Said, refused

pytestmark = pytest.mark.long(sets=None)

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("hours-per-week", 0, 80),
    dpm.Boolean("smoker"),
    dpm.Categorical("region", ["north", "south", "far, east"]),
    dpm.Numeric("income", 0, 200),
    dpm.Power("age", 2),
    dpm.Product("age", "region"),
)
FEATURES = ["age", "hours-per-week", "smoker", "region", "age:region"]
N_ROWS = 400


@cache
def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age, smoker = rng.uniform(20, 80, N_ROWS), rng.random(N_ROWS) < 0.3
    region = rng.choice(SCHEMA.columns[3].levels, N_ROWS, p=[0.5, 0.3, 0.2])  # type: ignore[union-attr]
    income = 20 + 0.8 * age + 10 * (region == "south") - 4.0 * smoker + rng.normal(0, 8, N_ROWS)
    hours = rng.uniform(0, 60, N_ROWS)
    columns = {"age": age, "hours-per-week": hours, "smoker": smoker, "region": region, "income": income}
    return pd.DataFrame(columns)


@cache
def exact() -> FittedLine:
    release = dpm.release(people(), SCHEMA, epsilon=1e13, repair="none", insecure_seed=0)
    return release.ols("income", FEATURES, reference=["region=north"])


@cache
def noisy() -> FittedLine:
    """A fit by test inversion whose coefficients are estimable."""
    schema = dpm.Schema(*(dpm.Numeric(name, -9, 9) for name in "aby"))
    template = dpm.release(np.zeros((1_000, 3)), schema, rho=10.0, mechanism="gaussian", insecure_seed=0)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1_000, 2)) + [1.0, -2.0]
    y = x @ [0.5, 0.4] + rng.standard_normal(1_000) + 1.0
    fit = drawn(template, np.column_stack([x, y]), rng).ols("y")
    assert fit.equations is not None
    assert not fit.equations.delta_method_valid
    assert all(each.estimable for each in fit.estimates)
    return fit


# How restrictions are written ---------------------------------------------------------------------------------------------

NAMES = ("(intercept)", "age", "hours-per-week", "smoker", "region=south", "region=far, east")
NAMES = (*NAMES, "age:region=south", "age:region=far, east")


def row(**weights: float) -> list[float]:
    names = dict(
        zip(("one", "age", "hours", "smoker", "south", "east", "age_south", "age_east"), range(8), strict=True)
    )
    result = [0.0] * 8
    for name, weight in weights.items():
        result[names[name]] = weight
    return result


def read(given: Any) -> Restrictions:
    return Restrictions.of(
        given, NAMES, schema=SCHEMA, references=["region=north", "age:region=north"], merged=["x=rare"]
    )


@pytest.mark.parametrize(
    ("given", "matrix", "values"),
    [
        ("age", [row(age=1)], [0]),
        ("age = 2*hours-per-week", [row(age=1, hours=-2)], [0]),
        ("age - hours-per-week = 3", [row(age=1, hours=-1)], [3]),
        ("2 * (age + smoker) / 4 = -1.5e0 + smoker", [row(age=0.5, smoker=-0.5)], [-1.5]),
        ("age + age:region[south]", [row(age=1, age_south=1)], [0]),
        ("region[T.south]:age = C(region)[far, east]", [row(age_south=1, east=-1)], [0]),
        ("region=south = region=far, east, age", [row(south=1, east=-1), row(age=1)], [0, 0]),
        ("region[north] - region[south]", [row(south=-1)], [0]),
        ("age = smoker = 1", [row(age=1, smoker=-1), row(smoker=1)], [0, 1]),
        ("Intercept + `hours-per-week`*40", [row(one=1, hours=40)], [0]),
        ("-age", [row(age=-1)], [0]),
        (["age = 1", "const"], [row(age=1), row(one=1)], [1, 0]),
        ({"age": 1, "region[south]": -2}, [row(age=1, south=-2)], [0]),
        (pd.Series({"age": 1.0}), [row(age=1)], [0]),
        (pd.DataFrame([{"age": 1.0, "smoker": 0.0}, {"age": 0.0, "smoker": 2.0}]), [row(age=1), row(smoker=2)], [0, 0]),
        (np.eye(8)[1], [row(age=1)], [0]),
        ((np.eye(8)[1:3], [1.0, 2.0]), [row(age=1), row(hours=1)], [1, 2]),
        ((np.eye(8)[1:3], 4.0), [row(age=1), row(hours=1)], [4, 4]),
    ],
    ids=str,
)
def test_restrictions_are_read(given: Any, matrix: list[list[float]], values: list[float]) -> None:
    found = read(given)
    np.testing.assert_array_equal(found.matrix, matrix)
    np.testing.assert_array_equal(found.values, values)
    assert len(found.labels) == len(matrix)


@pytest.mark.parametrize(
    ("given", "close"),
    [("agee = 1", "age"), ("2*region[sout]", "region[south]"), ("smoker + region", "region=south"), ({"ag": 1}, "age")],
)
def test_unknown_names_are_refused_with_the_closest(given: Any, close: str) -> None:
    with refused("is not a coefficient of this fit", close=close):
        read(given)


@pytest.mark.parametrize("given", ["age +", "age * smoker", "age / 0", "(age", "age smoker", "1 / age"])
def test_what_is_not_linear_is_refused(given: str) -> None:
    with refused("is not a linear restriction: write it as 'age + 2*height ="):
        read(given)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("1 = 1", ValueError, Said("a restriction has no coefficient of the fit (that of a")),
        ("region[north]", ValueError, Said("a restriction has no coefficient of the fit (that of a")),
        ("x=rare", ValueError, Said("is not a coefficient of this fit", name="x")),
        ("#age", ValueError, Said("is not a coefficient of this fit", name="#age")),
        ("age + ~", ValueError, Said("is not a coefficient of this fit", name="~")),
        ("`x=rare`", ValueError, Said("has too few rows: it is merged into the reference level", level="x=rare")),
        (
            np.eye(3),
            ValueError,
            Said("is not one of restrictions: it has a column for each of the", shape="(3, 3)", coefficients=8),
        ),
        (np.full(8, np.nan), ValueError, Said("the coefficients and values of restrictions are finite")),
        ({"age": "1"}, TypeError, Said("a mapping gives a number for each name: {")),
        (
            [],
            ValueError,
            Said("is not one of restrictions: it has a column for each of the", shape="(0,)", coefficients=8),
        ),
        (
            print,
            TypeError,
            Said("restrictions are text such as 'age + height = 0', a mapping", got=type(print).__name__),
        ),
    ],
)
def test_other_restrictions_that_say_nothing(given: Any, kind: type[Exception], said: Said) -> None:
    with refused(said, kind):
        read(given)


# Identities ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit", [exact, noisy], ids=["delta method", "test inversion"])
def test_a_contrast_of_one_coefficient_is_the_coefficient(fit: Any) -> None:
    line = fit()
    found = line.t_test(np.eye(len(line.names)))
    for one, other in zip(found.estimates, line.estimates, strict=True):
        assert one == other
    np.testing.assert_array_equal(found.conf_int(0.8), line.conf_int(0.8))
    np.testing.assert_array_equal(found.tvalues, line.tvalues)
    twice = line.t_test(-2.0 * np.eye(len(line.names)))
    np.testing.assert_allclose(twice.conf_int()["upper"], -2.0 * line.conf_int()["lower"].to_numpy())


@pytest.mark.parametrize("fit", [exact, noisy], ids=["delta method", "test inversion"])
def test_one_restriction_has_the_square_of_t(fit: Any) -> None:
    line = fit()
    for place, value in ((0, 0.0), (1, 0.3), (2, 0.0)):
        restriction = (np.eye(len(line.names))[place], value)
        one, joint = line.t_test(restriction), line.wald_test(restriction)
        assert joint.statistic[0] == pytest.approx(one.tvalues[0] ** 2, rel=1e-6)
        assert joint.pvalues[0] == pytest.approx(one.pvalues[0], rel=1e-6)


def test_an_inverted_contrast_ends_where_the_test_rejects() -> None:
    line = noisy()
    for text in ("a - b", "(intercept) + a - 2*b"):
        ends = line.t_test(text, level=0.9).conf_int().iloc[0]
        for end in ends:
            assert line.wald_test(f"{text} = {end:.15g}").pvalues[0] == pytest.approx(0.1, rel=1e-4)
        found = line.t_test(text)
        assert ends["lower"] < found.effect[0] < ends["upper"]
        assert line.t_test(f"{text} = {found.effect[0]:.15g}").pvalues[0] > 0.5


def test_the_sampling_part_of_an_inverted_interval_is_about_that_of_the_rows_alone() -> None:
    line = noisy()
    assert line.sampling_errors == pytest.approx(1.0 / math.sqrt(1_000), rel=0.2)
    np.testing.assert_allclose(np.hypot(line.privacy_errors, line.sampling_errors), line.standard_errors)


def test_the_joint_test_of_all_slopes_is_that_of_the_fit() -> None:
    line = noisy()
    assert line.wald_test("a, b").pvalues[0] == line.p_value_of_fit
    assert math.isinf(line.wald_test("a, b").df_denom[0])
    assert line.equations is not None
    assert line.fvalue == line.equations.overall_test.statistic / 2  # χ² over its degrees
    new = {"a": [0.5, 1.0], "b": [0.0, -1.0]}
    found = line.get_prediction(new)
    contrasts = line.t_test(np.array([[1.0, 0.5, 0.0], [1.0, 1.0, -1.0]]))
    np.testing.assert_array_equal(found.conf_int(), contrasts.conf_int())
    np.testing.assert_allclose(found.predicted_mean, contrasts.effect)


# Fits without errors ------------------------------------------------------------------------------------------------------


def test_penalized_fits_have_no_errors() -> None:
    release = dpm.release(people(), SCHEMA, epsilon=1e13, repair="none", insecure_seed=0)
    for fit in (release.ridge("income", ["age"]), release.lasso("income", ["age"], alpha=1e-6)):
        for ask in (
            fit.conf_int,
            fit.cov_params,
            fit.wald_test_terms,
            lambda: fit.t_test("age"),  # noqa: B023
            lambda: fit.wald_test("age"),  # noqa: B023
        ):
            with refused("fit has no standard errors", method=fit.method):
                ask()
        assert np.isnan(fit.standard_errors).all()
        assert fit.bse.isna().all()
        assert fit.to_dict()["standard_errors"] == {"age": None}
        assert fit.params.notna().all()
        assert len(fit.table()[0]) == 2
        assert fit.to_pandas()[["std_err", "p_value", "lower", "upper"]].isna().all(axis=None)


def test_a_covariance_matrix_needs_the_delta_method() -> None:
    with refused("noise is too large for a covariance matrix of the"):
        noisy().cov_params()


def test_labels_say_signs_factors_and_values() -> None:
    names = ["(intercept)", "age", "size"]
    for given, label in (
        ("-0.5*age", "-0.5*age"),
        ("-age", "-age"),
        ("-2*age + size", "-2*age + size"),
        ("age - 0.5*size", "age - 0.5*size"),
    ):
        assert Restrictions.of(given, names).labels == (label,)
    name = exact().params.index[1]
    assert exact().t_test(f"`{name}` = 2").table()[1][0] == f"{name} = 2"
    assert exact().t_test(f"`{name}`").table()[1][0] == name
