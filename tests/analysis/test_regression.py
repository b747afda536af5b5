"""Ridge regression from moments against scikit-learn on the table, and Lemma 1's bound against trials."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

import dpmoments as dpm
from support.said import refused

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


@pytest.mark.long
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


@pytest.mark.parametrize("budget", [dict(epsilon=3.0, mechanism="matrix-laplace"), dict(rho=0.5, mechanism="gaussian")])
def test_where_noise_is_not_known_the_penalty_is_that_of_the_usual_noise_at_the_budget(budget: dict[str, Any]) -> None:
    rows = np.random.default_rng(3).uniform(-0.3, 0.3, (2_000, 3)) @ np.array([[1, 0, 0.5], [0, 1, 0.1], [0, 0, 0]])
    ball = dpm.Schema.unit_ball(3)
    release = dpm.release(rows, ball, mean=False, neighbors="replace_one", repair="none", insecure_seed=1, **budget)
    unknown = replace(release, noise_model=None)
    assert unknown.ridge("x2").alpha == pytest.approx(release.ridge("x2").alpha, rel=1e-4)


@pytest.mark.long
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


def bound_term_by_term(
    release: dpm.MomentRelease, features: list[str], target: str, alpha: float, level: float, intercept: bool
) -> dict[str, float]:
    """docs/evidence/derivations/ridge-error-bound.md, one term after another: the parts of ‖E‖ and the bound."""
    law, raw, n = release.noise, release.with_repair("none"), release.n_rows
    assert law is not None
    names = list(release.feature_names)
    chosen = [names.index(name) for name in [*features, target]]

    def block(of: dpm.MomentRelease) -> np.ndarray:
        moment = of.unit_ball_gram / n
        if intercept:
            moment = moment - np.outer(of.unit_ball_mean, of.unit_ball_mean)
        return moment[np.ix_(chosen, chosen)]

    noises = ["Gram"] + (["sum"] if intercept else []) + (["count"] if not release.count_is_public else [])
    failure = (1.0 - level) / len(noises)
    terms = {"repair": float(np.linalg.norm(block(release) - block(raw), 2))}
    terms["Gram"] = law.gram_bound(failure, np.array(chosen) + 1) / n
    if "sum" in noises:
        of_mean = law.sum_bound(failure, np.array(chosen) + 1) / n
        terms["sum"] = 2.0 * float(np.linalg.norm(raw.unit_ball_mean[chosen])) * of_mean + of_mean**2
    if "count" in noises:
        of_count = (law.count_bound(failure) + 0.5) / n
        terms["count"] = of_count
        if intercept:
            terms["count"] += of_count * (2.0 + of_count)
    released = block(release)
    system = released[:-1, :-1] + 2.0 * alpha * np.eye(len(features))
    weights = np.linalg.inv(system) @ released[:-1, -1]
    norm = sum(terms.values())
    curvature = max(2.0 * alpha, float(np.linalg.eigvalsh(system)[0]) - norm)
    return terms | {"bound": norm * float(np.sqrt(1.0 + weights @ weights)) / curvature}


@pytest.mark.long(sets=5)
@pytest.mark.parametrize("mechanism", ["matrix-laplace", "laplace", "gaussian"])
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_bound_is_the_one_derived_at_every_level(mechanism: str, mean: bool, neighbors: str) -> None:
    """With all features and with one alone; where twice alpha bounds the least eigenvalue, and where the released one does."""
    table = np.random.default_rng(1).uniform(-0.3, 0.5, (3_000, 3))
    options: dict[str, object] = dict(mean=mean, neighbors=neighbors, mechanism=mechanism, insecure_seed=3)
    if not mean and neighbors == "add_remove":
        options["n_rows"] = len(table)
    budget = dict(rho=0.1) if mechanism == "gaussian" else dict(epsilon=0.5)
    release = dpm.release(table, dpm.Schema.unit_ball(3), **budget, **options)  # type: ignore[arg-type]
    noises = {"Gram"} | ({"sum"} if mean else set()) | ({"count"} if mean and neighbors == "add_remove" else set())
    for alpha in (0.02, 0.0005):
        for features in (["x0", "x1"], ["x1"]):
            found = []
            for level in (0.5, 0.9, 0.95, 0.999):
                fit = release.ridge("x2", features, alpha=alpha, level=level)
                expected = bound_term_by_term(release, features, "x2", alpha, level, intercept=mean)
                assert set(expected) == noises | {"repair", "bound"}
                # every term is large enough that the comparison would miss it
                assert all(expected[noise] > 1e-3 * sum(expected[name] for name in noises) for noise in noises)
                assert fit.unit_ball_error_bound == pytest.approx(expected["bound"], rel=1e-9)
                assert fit.level == fit.to_dict()["level"] == level
                says_something = expected["bound"] < np.linalg.norm(fit.unit_ball_coefficients)
                assert (f"confidence {level:.0%}" in fit.summary()) == bool(says_something)
                found.append(fit.unit_ball_error_bound)
            assert all(low < high for low, high in itertools.pairwise(found))


def test_the_bound_counts_what_the_repair_moved() -> None:
    table = np.random.default_rng(2).uniform(-0.3, 0.3, (200, 3))
    release = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=0.5, insecure_seed=0)
    expected = bound_term_by_term(release, ["x0", "x1"], "x2", 0.5, 0.9, intercept=True)
    assert expected["repair"] > 0.01 * expected["Gram"]
    fit = release.ridge("x2", alpha=0.5, level=0.9)
    assert fit.unit_ball_error_bound == pytest.approx(expected["bound"], rel=1e-9)


def test_a_noisy_count_of_zero_is_one_like_any_other() -> None:
    table = np.random.default_rng(2).uniform(-0.3, 0.3, (200, 3))
    release = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=2.0, insecure_seed=0)
    below, at, above = (
        replace(release, noisy_count=count).ridge("x2", alpha=0.5).unit_ball_error_bound for count in (-1.0, 0.0, 1e-9)
    )
    assert at == pytest.approx(above, rel=1e-6)
    assert below > at * (1.0 + 1e-4)


@pytest.mark.long
def test_defaults_leave_the_targets_column_and_the_most_frequent_levels_out() -> None:
    most = max(set(people()["region"]), key=people()["region"].tolist().count)
    others = tuple(f"region={level}" for level in ("north", "south", "east") if level != most)
    for alpha in (0.0, 1e-3):
        fit = released().ridge("income", alpha=alpha)
        assert fit.features == ("age", *others)
        assert fit.references == {"region": f"region={most}"}
    assert released().ridge("region=north", alpha=1e-3).features == ("age", "income")
    for named in (["region"], ["region=north", "region=south", "region=east"]):
        assert released().ridge("income", named, alpha=1e-3).features == others
    for reference in (["region=south"], {"region": "south"}):
        assert released().ols("income", ["region"], reference=reference).features == ("region=north", "region=east")
    assert released().ols("income", ["region=north"]).references == {}
    assert released().ols("income", ["age", "region"], intercept=False).features[1:] == (
        "region=north",
        "region=south",
        "region=east",
    )


def test_bad_requests() -> None:
    release = released(repair="auto")
    for alpha in (-1.0, float("nan"), "much"):
        with refused("must be"):
            release.ridge("income", alpha=alpha)  # type: ignore[arg-type]
    with refused("statsmodels' alpha is 1"):
        release.ridge("income", level=0.05)
    with refused("an intercept needs the mean, and the release has none"):
        released(mean=False, neighbors="replace_one").ridge("income", intercept=True)


def test_a_categorical_target_is_answered_with_its_features() -> None:
    of_region = ("region=north", "region=south", "region=east")
    with refused("is categorical, and one feature is needed", name="region", features=of_region):
        released().ridge("region")


def test_levels_that_add_up_to_one_are_never_fitted_together() -> None:
    """Noise hides from the eigenvalues that all levels and an intercept are collinear; the schema does not."""
    noisy = released(epsilon=1.0, mechanism="matrix-laplace")
    for fit in (noisy.ridge("income"), noisy.ols("income"), noisy.lasso("income", ["age", "region"])):
        assert len([name for name in fit.features if name.startswith("region=")]) == 2
        assert "levels of region are compared with region=" in fit.summary()


# Levels of which none is set apart ------------------------------------------------------------------------------------------


def registered(n_rows: int = 3_000, *, missing: str = "error") -> tuple[pd.DataFrame, dpm.Schema]:
    """Two columns of levels, one with two rare ones, and a product with the other's levels."""
    rng = np.random.default_rng(5)
    kinds, sizes = ["a", "b", "c", "d", "e"], ["small", "large", "huge"]
    kind = rng.choice(5, n_rows, p=[0.6, 0.3, 0.0988, 0.0006, 0.0006])
    size = rng.choice(3, n_rows, p=[0.5, 0.3, 0.2])
    age = rng.uniform(0, 100, n_rows)
    score = 30.0 + 8.0 * (kind == 1) + 15.0 * (kind == 2) + 0.1 * age * (1 + (size == 2)) + rng.normal(0, 3, n_rows)
    frame = pd.DataFrame(
        {"age": age, "kind": np.array(kinds)[kind], "size": np.array(sizes)[size], "score": np.clip(score, 0, 100)}
    )
    return frame, dpm.Schema(
        dpm.Numeric("age", 0, 100),
        dpm.Categorical("kind", kinds),
        dpm.Categorical("size", sizes, missing=missing),  # type: ignore[arg-type]
        dpm.Numeric("score", 0, 100),
        dpm.Product("age", "size"),
    )


def test_every_level_has_the_same_penalty() -> None:
    """scikit-learn's ridge on the encoded rows, with an indicator for every level."""
    frame, schema = registered()
    released = dpm.release(frame, schema, neighbors="replace_one", **UNLIMITED)
    fit, encoding = released.ridge("score", alpha=0.01), schema.encoding(mean=True)
    names = list(schema.feature_names)
    columns = {name: frame["kind"] == name.partition("=")[2] for name in names if name.startswith("kind=")}
    columns |= {name: frame["size"] == name.partition("=")[2] for name in names if name.startswith("size=")}
    columns |= {
        name: frame["age"] * (frame["size"] == name.partition("=")[2]) for name in names if name.startswith("age:")
    }
    rows = np.column_stack([columns.get(name, frame.get(name)) for name in names]).astype(float)
    encoded = (rows - encoding.offset) / encoding.scale
    y = names.index("score")
    others = [index for index in range(len(names)) if index != y]
    reference = Ridge(alpha=0.02 * len(frame)).fit(encoded[:, others], encoded[:, y])
    expected = encoding.offset[y] + encoding.scale[y] * reference.predict(encoded[:, others])
    np.testing.assert_allclose(fit.predict(frame), expected, atol=1e-3)
    set_apart = [index for index in others if names[index] in fit.features]
    apart = Ridge(alpha=0.02 * len(frame)).fit(encoded[:, set_apart], encoded[:, y])
    assert np.abs(apart.predict(encoded[:, set_apart]) - reference.predict(encoded[:, others])).max() > 0.01


def test_columns_that_are_one_need_a_penalty() -> None:
    age = np.random.default_rng(0).uniform(20.0, 80.0, (500, 1))
    columns = (dpm.Numeric(name, 0, 100) for name in ("age", "years", "score"))
    release = dpm.release(np.hstack([age, age, 0.5 * age]), dpm.Schema(*columns), **UNLIMITED)
    with refused("the system is singular at alpha"):
        release.ridge("score", alpha=0.0)
    np.testing.assert_allclose(release.ridge("score", alpha=1e-6).coefficients, 0.25, rtol=1e-3)


def test_a_level_that_all_rows_have_is_a_constant_with_a_penalty() -> None:
    """Without an intercept two of them share the constant: each has half of it, and so half the penalty."""
    rows = {"income": np.full(1000, 50_000.0), "unit": ["kg"] * 1000, "state": ["done"] * 1000}
    columns = dpm.Numeric("income", 0, 150_000), dpm.Categorical("unit", ["kg"]), dpm.Categorical("state", ["done"])
    release = dpm.release(pd.DataFrame(rows), dpm.Schema(*columns), **UNLIMITED)
    both = release.ridge("income", ["unit=kg", "state=done"], intercept=False, alpha=0.2)
    one = release.ridge("income", ["unit=kg"], intercept=False, alpha=0.1)
    np.testing.assert_allclose(both.coefficients, one.coefficients)


@pytest.mark.slow
def test_rare_levels_of_a_ridge_are_average_ones() -> None:
    frame, schema = registered()
    release = dpm.release(frame, schema, epsilon=2.0, insecure_seed=0)
    fit, least_squares = release.ridge("score"), release.ols("score")
    assert fit.too_few == least_squares.too_few == ("kind=d", "kind=e")
    assert set(fit.features) == {*least_squares.features, *fit.too_few}
    slopes = dict(zip(fit.features, fit.coefficients, strict=True))
    assert slopes["kind=d"] == slopes["kind=e"] != 0.0
    levels = {"kind=a": 0.0} | {name: slope for name, slope in slopes.items() if name in ("kind=b", "kind=c")}
    assert min(levels.values()) < slopes["kind=d"] < max(levels.values())
    assert [fit.identified[name] for name in fit.too_few] == [False, False]
    assert [fit.identified[name] for name in least_squares.features] == list(least_squares.identified)
    from_rare = release.ridge("score", reference=["kind=d"])
    np.testing.assert_allclose(from_rare.predict(frame), fit.predict(frame))


def test_a_column_that_may_have_no_level_keeps_its_reference_level() -> None:
    """Its levels do not add up to one: rows without a level count as rows of the reference level."""
    frame, schema = registered(missing="zero")
    frame.loc[:500, "size"] = None
    release = dpm.release(frame, schema, neighbors="replace_one", **UNLIMITED)
    fit = release.ridge("score", ["size"], alpha=0.01, reference=["size=small"])
    indicators = np.column_stack([frame["size"] == "large", frame["size"] == "huge"]).astype(float)
    scale = schema.encoding(mean=True).scale
    of_level, of_score = (scale[schema.feature_names.index(name)] for name in ("size=large", "score"))
    reference = Ridge(alpha=0.02 * len(frame)).fit(indicators / of_level, frame["score"] / of_score)
    np.testing.assert_allclose(fit.coefficients, reference.coef_ * of_score / of_level, rtol=1e-4)


def test_the_bound_is_of_slopes_relative_to_the_reference_level() -> None:
    frame, schema = registered()
    options: dict[str, Any] = dict(alpha=0.1, reference=["kind=c"])
    exact = dpm.release(frame, schema, mechanism="gaussian", rho=1e9, insecure_seed=0)
    truth = dict(zip((fit := exact.ridge("score", **options)).features, fit.unit_ball_coefficients, strict=True))
    for seed in range(5):
        noisy = dpm.release(frame, schema, mechanism="gaussian", rho=50.0, insecure_seed=seed).ridge("score", **options)
        assert noisy.features == fit.features
        distance = np.linalg.norm(noisy.unit_ball_coefficients - [truth[name] for name in noisy.features])
        assert noisy.unit_ball_error_bound is not None
        assert 0.0 < distance <= noisy.unit_ball_error_bound < np.inf
