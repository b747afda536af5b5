"""Answers as people expect them: indexed by name, in parts, and refusals that say what to use instead."""

from __future__ import annotations

import inspect

import numpy as np
import pyarrow as pa
import pytest
import scipy

import dpmoments as dpm
from dpmoments.base.errors import InputAttributeError, InputError
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("income", 0, 100_000),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
)


def release(epsilon: float = 3.0, n: int = 5_000) -> dpm.MomentRelease:
    rng = np.random.default_rng(2)
    age = rng.uniform(18, 90, n)
    table = pa.table(
        {
            "age": age,
            "income": rng.normal(30_000, 8_000, n) + 200 * age,
            "region": rng.choice(["north", "south", "east"], n),
            "smoker": rng.random(n) < 0.3,
        }
    )
    return dpm.release(table, SCHEMA, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=1)


RELEASE = release()


def test_covariance_and_correlation_are_frames_by_name() -> None:
    for frame, array in (
        (RELEASE.covariance_frame(), RELEASE.covariance),
        (RELEASE.correlation_frame(), RELEASE.correlation),
    ):
        assert list(frame.index) == list(frame.columns) == list(RELEASE.feature_names)
        np.testing.assert_array_equal(frame.to_numpy(), array)
    assert RELEASE.covariance_frame().loc["age", "income"] == RELEASE.covariance[0, 1]


def test_a_close_name_is_suggested() -> None:
    for ask in (
        lambda: RELEASE.describe(["incom"]),
        lambda: RELEASE.describe()["Income "],
        lambda: RELEASE.correlations()[["age", "incme"]],
        lambda: RELEASE.ols("incom", ["age"]),
        lambda: RELEASE.ols("incom ~ age"),
        lambda: RELEASE.group_means("region", ["incom"]),
        lambda: RELEASE.t_test("incom", "smoker"),
    ):
        with pytest.raises((ValueError, KeyError), match="Did you mean 'income'") as caught:
            ask()
        assert isinstance(caught.value, InputError)


def test_a_close_level_or_grouping_column_is_suggested() -> None:
    with refused("is not a column of the schema", name="regoin", close="region"):
        RELEASE.group_means("regoin")
    with refused("is not a column of the schema", name="smokr", close="smoker"):
        RELEASE.cross_table("region", "smokr")
    with refused("has no level", column="region", names=("soth",), close="region=south"):
        RELEASE.t_test("age", "region", groups=["north", "soth"])


def test_nothing_is_suggested_that_is_not_close() -> None:
    for name in ("height", "", "x" * 10_000):
        with pytest.raises(ValueError) as caught:
            RELEASE.describe([name])
        assert "Did you mean" not in str(caught.value)


def test_what_moments_cannot_give_is_refused_with_an_alternative() -> None:
    for name, said in (
        ("median", "quantiles need the order of the values, and a"),
        ("quantile", "quantiles need the order of the values, and a"),
        ("logit", "a logistic or other generalized linear model needs"),
        ("glm", "a logistic or other generalized linear model needs"),
        ("hist", "it holds count, mean and covariance, and no"),
        ("corr", "correlations() has correlations, covariance_frame()"),
        ("undo", "what was drawn counts as spent even if its file is"),
        ("filter", "rows cannot be chosen after a release;"),
        ("groupby", "group_means(by), anova(target, by) and"),
    ):
        with refused(said, InputAttributeError):
            getattr(RELEASE, name)
        assert not hasattr(RELEASE, name)


def test_other_attributes_are_refused_as_always() -> None:
    with pytest.raises(AttributeError) as caught:
        RELEASE.medians  # noqa: B018
    assert not isinstance(caught.value, InputError)


def test_components_are_by_default_those_of_the_plot() -> None:
    found = RELEASE.pca(2)
    assert found.scaling == "bounds"
    assert found.scaling == inspect.signature(RELEASE.plot.spectrum).parameters["scaling"].default


def test_small_loadings_are_not_shown() -> None:
    found = release(epsilon=1e6).pca(scaling="units")
    loadings = [entry for row in found.table()[1:] for entry in row[-1].split(", ") if entry[:1] in "+-"]
    assert loadings
    assert all(abs(float(entry.split()[0])) >= 0.05 for entry in loadings)
    assert (np.abs(found.components) < 0.05).any()


@pytest.mark.parametrize("epsilon", [0.3, 1e6])
def test_a_printed_p_belongs_to_the_statistic_beside_it(epsilon: float) -> None:
    made = release(epsilon)
    variance = made.anova("income", "region")
    fit = made.ols("income", ["region"], cov_type="nonrobust")
    assert (variance.f, variance.p_value) == pytest.approx((fit.fvalue, fit.f_pvalue), rel=1e-9)
    assert variance.test.description in str(variance)
    table = made.cross_table("region", "smoker")
    assert table.p_value == pytest.approx(scipy.stats.chi2.sf(table.statistic, table.degrees))
    test = made.t_test("income", "smoker")
    assert test.p_value == pytest.approx(2.0 * scipy.stats.t.sf(abs(test.statistic), test.degrees))
    assert test.degrees <= made.n_rows
