"""Ridge regression from moments against scikit-learn on the table, and Lemma 1's bound against trials."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

import dpmoments as dpm

UNLIMITED = dict(epsilon=1e13, insecure_seed=0, repair="none")


def people(n_rows: int = 4000, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, n_rows)
    region = rng.choice(["north", "south", "east"], n_rows)
    income = 5_000 + 800 * age + 20_000 * (region == "north") + rng.normal(0, 8_000, n_rows)
    return {"age": age, "region": region, "income": np.clip(income, 0, 150_000)}


def schema() -> dpm.Schema:
    return dpm.Schema(
        dpm.Numeric("age", 18, 90),
        dpm.Categorical("region", ["north", "south", "east"]),
        dpm.Numeric("income", 0, 150_000),
    )


def released(**options: object) -> dpm.MomentRelease:
    import pyarrow as pa

    return dpm.release(pa.table(people()), schema(), **(UNLIMITED | options))  # type: ignore[arg-type]


def test_without_noise_it_is_least_squares_in_the_tables_units() -> None:
    table = people()
    design = np.column_stack([table["age"], table["region"] == "north", table["region"] == "south"]).astype(float)
    reference = LinearRegression().fit(design, table["income"])
    fit = released().ridge("income", ["age", "region=north", "region=south"])
    np.testing.assert_allclose(fit.coefficients, reference.coef_, rtol=1e-4)
    assert fit.intercept == pytest.approx(reference.intercept_, rel=1e-3)
    np.testing.assert_allclose(fit.predict(design[:5]), reference.predict(design[:5]), rtol=1e-4)
    assert fit.r_squared == pytest.approx(reference.score(design, table["income"]), abs=1e-4)


@settings(deadline=None, max_examples=15)
@given(alpha=st.floats(1e-4, 1.0), seed=st.integers(0, 10))
def test_penalty_is_that_of_the_paper_in_the_unit_ball(alpha: float, seed: int) -> None:
    """(G + 2αn I)w = g: scikit-learn's Ridge with penalty 2αn on the encoded rows."""
    rng = np.random.default_rng(seed)
    table = rng.uniform(-0.4, 0.4, (500, 4)) + [0.1, 0.0, -0.1, 0.0]
    release = dpm.release(table, dpm.Schema.unit_ball(4), mean=False, neighbors="replace_one", **UNLIMITED)
    fit = release.ridge("x3", alpha=alpha)
    reference = Ridge(alpha=2 * alpha * len(table), fit_intercept=False).fit(table[:, :3], table[:, 3])
    np.testing.assert_allclose(fit.coefficients, reference.coef_, atol=1e-5)
    centered = dpm.release(table, dpm.Schema.unit_ball(4), neighbors="replace_one", **UNLIMITED)
    reference = Ridge(alpha=2 * alpha * len(table)).fit(table[:, :3], table[:, 3])
    np.testing.assert_allclose(centered.ridge("x3", alpha=alpha).coefficients, reference.coef_, atol=1e-5)


def test_regression_through_the_origin_of_the_tables_units() -> None:
    table = people()
    reference = LinearRegression(fit_intercept=False).fit(table["age"][:, None], table["income"])
    for mean in (True, False):
        fit = released(mean=mean, neighbors="replace_one").ridge("income", ["age"], intercept=False)
        np.testing.assert_allclose(fit.coefficients, reference.coef_, rtol=1e-4)
        assert fit.intercept == 0.0


@pytest.mark.parametrize("mechanism", ["matrix-laplace", "laplace", "gaussian"])
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_bound_holds(mechanism: str, mean: bool, neighbors: str) -> None:
    rng = np.random.default_rng(1)
    table = rng.uniform(-0.5, 0.5, (20_000, 3)) @ np.array([[1, 0.3, 0.2], [0, 0.7, 0.1], [0, 0, 0.4]])
    ball = dpm.Schema.unit_ball(3)
    budget = dict(rho=0.5) if mechanism == "gaussian" else dict(epsilon=1.0)
    options = dict(mean=mean, neighbors=neighbors, mechanism=mechanism)
    if not mean and neighbors == "add_remove":
        options["n_rows"] = 20_000
    exact_budget = dict(rho=1e20) if mechanism == "gaussian" else dict(epsilon=1e13)
    exact = dpm.release(table, ball, insecure_seed=0, repair="none", **exact_budget, **options)
    truth = exact.ridge("x2", alpha=0.01).unit_ball_coefficients
    gaps, bounds = [], []
    for seed in range(40):
        fit = dpm.release(table, ball, insecure_seed=seed, **budget, **options).ridge("x2", alpha=0.01)
        gaps.append(float(np.linalg.norm(fit.unit_ball_coefficients - truth)))
        assert fit.unit_ball_error_bound is not None
        bounds.append(fit.unit_ball_error_bound)
    assert (np.array(gaps) <= np.array(bounds)).mean() >= 0.95
    # planted fault: a bound a fiftieth of the size is broken, so the comparison can fail
    assert (np.array(gaps) <= np.array(bounds) / 50).mean() < 0.95


def test_defaults_leave_the_targets_column_out() -> None:
    fit = released().ridge("income", alpha=1e-3)
    assert fit.features == ("age", "region=north", "region=south", "region=east")
    fit = released().ridge("region=north", alpha=1e-3)
    assert fit.features == ("age", "income")
    assert released().ridge("income", ["region"], alpha=1e-3).features == (
        "region=north",
        "region=south",
        "region=east",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(target="wage"), "no feature 'wage'"),
        (dict(target="region"), "categorical"),
        (dict(target="income", features=["income"]), "among the features"),
        (dict(target="income", features=["age", "age"]), "twice"),
        (dict(target="income", features=[]), "no features"),
        (dict(target="income", alpha=-1.0), "alpha"),
        (dict(target="income", alpha=float("nan")), "alpha"),
        (dict(target="income", features=["region"], alpha=0.0), "singular"),
    ],
)
def test_bad_requests(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        released(repair="auto").ridge(**arguments)  # type: ignore[arg-type]


def test_an_intercept_needs_a_mean() -> None:
    with pytest.raises(ValueError, match="mean=False"):
        released(mean=False, neighbors="replace_one").ridge("income", intercept=True)
    with pytest.raises(TypeError, match="list"):
        released().ridge("income", "age")  # type: ignore[arg-type]


def test_summary_reads() -> None:
    text = released().ridge("income", ["age"], alpha=0.001).summary()
    assert "ridge regression of income" in text
    assert "age" in text
    assert "confidence" in text


def test_collinear_levels_are_never_fitted_silently() -> None:
    """Noise hides from the eigenvalues that all levels and an intercept are collinear; the schema does not."""
    noisy = released(epsilon=1.0)
    fit = noisy.ridge("income")
    assert fit.features == ("age", "region=south", "region=east")
    with pytest.raises(ValueError, match="leave one level out"):
        noisy.ridge("income", ["age", "region"])
    assert "region=north" in noisy.ridge("income", alpha=1e-3).features
