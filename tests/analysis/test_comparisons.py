"""What describes and compares: noise called noise, nothing impossible, intervals and tests that hold."""

from __future__ import annotations

import json
import re
import warnings
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.analysis import confidence, cross_table
from dpmoments.analysis.confidence import NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS
from dpmoments.analysis.correlations import correlation_noise
from dpmoments.analysis.cross_table import _rounded_to_margins
from dpmoments.moments.cells import GaussianCells
from dpmoments.moments.law import NoiseLaw
from support.drawn_releases import planted
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

SCHEMA = dpm.Schema(
    dpm.Numeric("income", 0, 60),
    dpm.Numeric("age", 0, 100),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
)
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("correlations", {}),
    ("partial_correlation", {"columns": ["income", "age"]}),
    ("group_means", {"by": "region"}),
    ("anova", {"target": "income", "by": "region"}),
    ("t_test", {"target": "income", "by": "smoker"}),
    ("cross_table", {"by": "region", "other": "smoker"}),
    ("lda", {"by": "region"}),
]


def people(n: int, seed: int = 0, *, differ: bool = True) -> pa.Table:
    rng = np.random.default_rng(seed)
    region, smoker = rng.choice(["north", "south", "east"], n, p=[0.6, 0.35, 0.05]), rng.random(n) < 0.3
    income = np.clip(rng.normal(20, 6, n) + differ * 12 * (region == "south"), 0, 60)
    return pa.table({"smoker": smoker, "region": region, "income": income, "age": rng.uniform(20, 80, n)})


def released(n: int = 5_000, seed: int = 0, *, differ: bool = True, **options: Any) -> dpm.MomentRelease:
    settings: dict[str, Any] = dict(epsilon=1.0, insecure_seed=seed) | options
    return dpm.release(people(n, seed, differ=differ), SCHEMA, **settings)


@cache
def usual() -> dpm.MomentRelease:
    return released()


@cache
def noisy() -> dpm.MomentRelease:
    return released(200, seed=3, epsilon=0.05)


# Noise on functionals --------------------------------------------------------------------------------------------------------


def test_a_count_within_its_noise_does_not_blow_products_up() -> None:
    """Products of means over a count near 0 were up to 200 SDs of it; 8 remain where the noise is no longer linear."""
    for seed in range(4):
        release = released(200, seed, differ=False, epsilon=0.05, mechanism="standardized")
        assert release.noise is not None
        assert (np.abs(release.noisy_gram[0, 1:]) < 20.0 * np.sqrt(release.noise.cell_variances()[1, 2:])).all()


# Noise called noise ----------------------------------------------------------------------------------------------------------


def test_numbers_that_are_noise_are_called_noise() -> None:
    release = noisy()
    assert "noise" in {row[3] for row in release.describe().table()[1:]}
    assert {word for words in release.correlations().verdict for word in words} == {"", NOT_ESTIMABLE}
    assert np.isnan(release.correlations().correlation[0, 1])
    means = release.group_means("region", ["income"])
    assert means.lost[2]
    assert "lost in noise" in {row[4] for row in means.table()[1:]}
    assert "number of rows not clear (noise)" in str(means)
    assert np.isnan(means.mean[0, 2])
    assert release.anova("income", by="region").verdict == "not clear (noise)"
    anova = release.anova("income", by="region")
    between, within, _ = anova.table()[1:]
    assert [row.count("noise") for row in (between, within)] == [2, 2]
    assert anova.noise[1] > anova.sum_of_squares[1]
    assert np.isnan(anova.to_pandas()["sum_of_squares"]).all()
    assert release.t_test("income", by="smoker").verdict == NOT_ESTIMABLE
    assert not release.partial_correlation().identified
    assert "too noisy to invert" in str(release.partial_correlation())
    assert release.pca().is_noise.all()
    assert "not clear (noise)" in str(release.pca(1))
    assert not release.graphical_lasso().edges
    assert "dependence not clear (noise)" in str(release.graphical_lasso())
    assert "no edges, since no correlation exceeds alpha" in str(usual().graphical_lasso(alpha=1.0))
    assert release.lda("region").verdict == "not clear (noise)"
    assert np.isnan(release.mahalanobis(people(3)).distances).all()
    for name, arguments in ASKED:
        assert "too-few-rows" in str(getattr(release, name)(**arguments)), name


@pytest.mark.parametrize(("epsilon", "verdict"), [(1.0, NOT_ESTIMABLE), (1e6, NOT_ESTIMABLE_ROWS)])
def test_a_group_that_has_all_rows_is_compared_with_none(epsilon: float, verdict: str) -> None:
    table = people(5_000).set_column(0, "smoker", pa.array([False] * 5_000))
    release = dpm.release(table, SCHEMA, epsilon=epsilon, insecure_seed=1)
    assert release.group_means("smoker", ["income"]).differences.verdict == ((verdict,),)
    for answer in (release.t_test("income", by="smoker"), release.lda("smoker", ["income"])):
        assert answer.verdict == verdict
        assert not re.search("= nan|p [=<]|t =", str(answer))


def test_wilks_lambda_is_what_a_regression_leaves_of_the_same_release() -> None:
    release = usual()
    for found, formula in (
        (release.lda("smoker", ["region", "income"]), "smoker ~ region + income"),
        (release.lda("region", ["income"]), "income ~ region"),
    ):
        fit = release.ols(formula)
        lower, upper = fit.r_squared_interval()
        np.testing.assert_allclose([1.0 - upper, 1.0 - lower], found.wilks_interval)
        np.testing.assert_allclose(1.0 - fit.r_squared, found.wilks)
    assert release.lda("region", ["income"]).wilks < 0.7
    several, exact = release.lda("region", ["income", "age"]), released(epsilon=1e9).lda("region", ["income", "age"])
    assert several.wilks_interval[0] < exact.wilks < several.wilks_interval[1]
    assert "Wilks' lambda is not estimable at this budget" in str(released(epsilon=0.02).lda("smoker"))
    assert f"= {several.wilks:.3f}, 95% interval {several.wilks_interval[0]:.3f} to" in str(several)


def test_a_law_that_is_linearized_is_asked_and_the_answers_say_so() -> None:
    release = released(mechanism="iterative-eigenvectors")
    assert release.noise is not None
    assert np.isfinite(release.describe().mean_noise).all()
    assert release.graphical_lasso().feature_names
    for name, arguments in ASKED:
        answer = str(getattr(release, name)(**arguments))
        assert "noise unknown" not in answer, name
        assert "linearized" in answer, name


def test_a_level_is_a_confidence() -> None:
    for name, arguments in ASKED:
        with refused("statsmodels' alpha is 1"):
            getattr(usual(), name)(**arguments, level=0.05)
    for answer in (usual().describe(), usual().pca(1)):
        with refused("statsmodels' alpha is 1"):
            answer.conf_int(0.05)


@pytest.mark.parametrize(("name", "arguments"), [*ASKED, ("describe", {}), ("pca", {}), ("graphical_lasso", {})])
def test_answers_are_labeled_tables(name: str, arguments: dict[str, Any]) -> None:
    answer = getattr(usual(), name)(**arguments)
    head, *rows = answer.table()
    assert all(len(row) == len(head) for row in rows)
    frame = answer.to_pandas()
    assert answer.to_arrow().num_rows == len(frame)
    first = frame.columns[0]  # rows are found by name, and the names stay columns
    assert list(frame.index.get_level_values(0)) == list(frame[first])
    assert "<table>" in answer._repr_html_()
    json.dumps(answer.to_dict(), allow_nan=False)


# Nothing impossible ----------------------------------------------------------------------------------------------------------


def test_counts_of_a_cross_table_are_nearest_to_those_fitted() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        shape = tuple(rng.integers(1, 5, 2))
        fitted = rng.gamma(0.3, 5.0, shape)
        whole = np.floor(fitted + rng.random(shape)).astype(np.int64)
        margins = whole.sum(axis=1), whole.sum(axis=0)
        found = _rounded_to_margins(fitted, *margins)
        assert found.min() >= 0
        for axis, margin in zip((1, 0), margins, strict=True):
            np.testing.assert_array_equal(found.sum(axis=axis), margin)
        assert np.abs(found - fitted).sum() <= np.abs(whole - fitted).sum() + 1e-9


def test_margins_far_from_the_counts_fitted_are_met() -> None:
    found = _rounded_to_margins(np.array([[0.2, 0.1], [3.0, 0.0]]), np.array([4, 1]), np.array([2, 3]))
    assert (found.sum(axis=1).tolist(), found.sum(axis=0).tolist(), int(found.min())) == ([4, 1], [2, 3], 0)


# Frames ----------------------------------------------------------------------------------------------------------------------


def test_frames_are_read_by_name() -> None:
    release, rows = usual(), people(6, 3)
    turned = rows.select(rows.column_names[::-1]).append_column("other", pa.array(range(6)))
    fit, components = release.lda("region"), release.pca(2)
    np.testing.assert_array_equal(fit.predict(rows), fit.predict(turned))
    np.testing.assert_array_equal(components.transform(rows), components.transform(turned))
    np.testing.assert_array_equal(release.mahalanobis(rows).distances, release.mahalanobis(turned).distances)
    without = rows.drop_columns(["age"])
    for ask in (fit.predict, components.transform, release.mahalanobis):
        with refused("the names must be the release's"):
            ask(without)
    empty = rows.set_column(rows.column_names.index("age"), "age", pa.array([None] * 6, pa.float64()))
    assert np.isnan(release.mahalanobis(empty).distances).all()
    with refused("rows with a missing value have no prediction: fill the"):
        fit.predict(empty)


# Bad input -------------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_refused() -> None:
    release = usual()
    with refused("Bands of numbers must be made", name="income"):
        release.group_means("income")
    with refused("a t-test is of two groups, and here are"):
        release.t_test("income", by="region")
    with refused("is categorical, and one feature is needed", name="region"):
        release.anova("region", by="smoker")
    with refused("are a list of names, not one string", TypeError):
        release.correlations("age")
    with refused("that makes the classes: name other columns"):
        release.lda("region", ["region"])
    with refused("must be", parameter="shrinkage"):
        release.lda("region", shrinkage=-1.0)
    with refused("must be", parameter="alpha"):
        release.graphical_lasso(0.0)
    with refused("a level is named twice"):
        release.t_test("income", "region", ["north", "north"])


def test_one_level_and_constant_columns_are_no_crash() -> None:
    table = pa.table({"kind": ["a"] * 500, "size": [7.0] * 500, "old": [True] * 500})
    schema = dpm.Schema(dpm.Categorical("kind", ["a"]), dpm.Numeric("size", 0, 10), dpm.Boolean("old"))
    for epsilon in (0.1, 1e9):
        release = dpm.release(table, schema, epsilon=epsilon, insecure_seed=0)
        assert release.anova("size", by="kind").p_value == 1.0
        assert len(release.group_means("kind").groups) == 1
        assert release.cross_table("kind", "old").verdict.startswith("not clear")
        str(release.correlations())
        str(release.lda("kind", ["size"]))
        str(release.pca(scaling="correlation"))


def test_the_noise_of_correlations_alone_is_that_of_the_table() -> None:
    rows = np.random.default_rng(0).normal(50.0, 9.0, (400, 4))
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 100) for name in "abcd"))
    release = dpm.release(rows, schema, epsilon=4.0, insecure_seed=0, mechanism="matrix-laplace")
    noise = release.correlations().privacy_noise
    assert np.isfinite(noise).any()
    np.testing.assert_array_equal(correlation_noise(release, range(4)), noise)


NORMAL = NoiseLaw.additive(GaussianCells(), 2, diagonal=2.0, off_diagonal=1.0, of_sum=1.0, of_count=1.0)


def cells_below(draws: int) -> tuple[float, float]:
    """Share of the limits of unclear cells that hold, and of tables in which an empty cell is a number."""
    exact = np.array([[700.0, 250.0, 30.0, 12.0, 5.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    held, hidden, found = 0, 0, 0
    for seed in range(draws):
        noisy = exact + 6.0 * np.random.default_rng(seed).standard_normal(exact.shape)
        counts = np.maximum(np.round(noisy), 0.0).astype(int)
        limits = cross_table.counts_below(noisy, np.full(exact.shape, 6.0), counts, NORMAL)
        below = limits > 0
        assert not below[0, :2].any()
        assert (counts < limits)[below].all()
        held, hidden = held + int((exact < limits)[below].sum()), hidden + int(below.sum())
        found += int((~below[1]).any())
    return held / hidden, found / draws


def test_a_cell_without_noise_has_no_limit_however_small_the_noise_of_others() -> None:
    noisy = np.array([0.0, 0.1, 3.0])
    limits = cross_table.counts_below(noisy, np.array([0.0, 0.5, 0.0]), noisy.astype(int), NORMAL)
    np.testing.assert_array_equal(limits, [0, 2, 0])


@pytest.mark.slow
def test_cells_that_noise_does_not_distinguish_from_empty_ones_are_below_their_largest_count() -> None:
    held, found = cells_below(150)
    assert held >= 0.95
    assert found <= 0.05
    with planted(confidence.most_with_noise, "deviations_for(0.95,", "0.1 * deviations_for(0.95,"):
        assert cells_below(150)[0] < 0.95
    with planted(
        confidence.hidden_by_noise,
        "~holds_among_all(p, np.ones(p.shape) if counts_as is None else counts_as, 0.95)",
        "~(p < 0.05)",
    ):
        assert cells_below(150)[1] > 0.05


def test_two_columns_that_are_one_have_the_correlation_one() -> None:
    """Without noise the sampling error of counts is 0 there, and on the scale of artanh r it has no bound."""
    night = np.random.default_rng(0).random(900) < 0.3
    rows = pa.table({"night": night, "shift": np.where(night, "night", "day")})
    schema = dpm.Schema(dpm.Boolean("night"), dpm.Categorical("shift", ["night", "day", "late"]))
    found = dpm.release(rows, schema, epsilon=1e13, insecure_seed=0, repair="none").correlations()
    assert found.correlation[1, 0] == pytest.approx(1.0)
    assert found.lower[1, 0] > 0.9
    assert found.verdict[1][0] == "positive"


def _trial(seed: int, epsilon: float, n: int = 418) -> dpm.MomentRelease:
    """A trial with two arms of equal size among many other columns."""
    rng = np.random.default_rng(seed)
    numbers = {f"x{index}": rng.normal(5.0, 2.0, n).clip(0.0, 10.0) for index in range(8)}
    table = pa.table(
        numbers
        | {"trt": rng.permutation(["drug", "placebo"] * (n // 2)), "site": rng.choice([*"abcdefgh"], n)}
        | {"bili": np.exp(rng.normal(0.5, 1.0, n)).clip(0.0, 30.0)}
    )
    schema = dpm.Schema(
        *(dpm.Numeric(name, 0, 10) for name in numbers),
        dpm.Categorical("trt", ["drug", "placebo"]),
        dpm.Categorical("site", [*"abcdefgh"]),
        dpm.Numeric("bili", 0, 30),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpm.release(table, schema, epsilon=epsilon, insecure_seed=seed)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_an_arm_of_a_trial_keeps_its_line(epsilon: float) -> None:
    for seed in range(2):
        fit = _trial(seed, epsilon).ols("bili ~ x0 + C(trt) + C(site)")
        [arm] = [row for row in fit.table() if row[0].startswith("trt=")]
        assert not any(name.startswith("trt=") for name in fit.too_few)
        bounded = bool(np.isfinite(fit.conf_int().loc[arm[0]]).all())
        assert (arm[-2] == "not estimable at this budget") == (not bounded)


def test_a_column_of_two_levels_is_one_feature() -> None:
    release = _trial(0, 3.0)
    described, names = release.describe(), release.feature_names
    assert [row[0] for row in described.table()[1:]] == [name for name in names if name != "trt=placebo"]
    assert described["trt=placebo"].table()[1][0] == "trt=placebo"
    ends = dict(zip(names, described.conf_int().tolist(), strict=True))
    np.testing.assert_allclose(ends["trt=placebo"], [1.0 - end for end in reversed(ends["trt=drug"])])
    for answer in (release.correlations(), release.pca()):
        assert "trt=placebo" not in answer.feature_names
        assert "trt=drug" in answer.feature_names
    assert release.correlations(["trt", "x0"]).feature_names == ("x0", "trt=drug")
    assert release.correlations(["trt=placebo", "x0"]).feature_names == ("x0", "trt=placebo")
    one, other = (release.correlations([name, "x0"]).correlation[1, 0] for name in ("trt=drug", "trt=placebo"))
    assert one == pytest.approx(-other)
    # 10 columns of one feature, and 7 degrees of freedom
    assert release.correlations().comparisons[1].sum() == pytest.approx(10 * 9 / 2 + 10 * 7)


def test_a_group_that_noise_hides_leaves_the_means_of_the_others_of_a_column_without_bounds() -> None:
    rng = np.random.default_rng(1)
    groups = rng.choice(["large", "small", "rare"], 1500, p=[0.6, 0.39, 0.01])
    schema = dpm.Schema(dpm.Categorical("g", ["large", "small", "rare"]), dpm.Numeric("x", scale=(0.1, 100.0)))
    table = pa.table({"g": groups, "x": rng.normal(5.0, 2.0, 1500)})
    means = dpm.release(table, schema, epsilon=1.0, delta=1e-6, insecure_seed=2).group_means("g", ["x"])
    bounded = np.isfinite(means.lower[0]) & np.isfinite(means.upper[0])
    assert bounded.tolist() == [True, True, False]
    assert np.isfinite(means.differences.lower[0]).tolist() == [True, False, False]


def test_a_term_of_rare_levels_alone_keeps_a_line() -> None:
    rng = np.random.default_rng(0)
    schema = dpm.Schema(
        dpm.Numeric("x", 0, 1), dpm.Categorical("group", ["most", "few", "fewer"]), dpm.Numeric("y", 0, 1)
    )
    groups = rng.choice(["most", "few", "fewer"], 400, p=[0.95, 0.03, 0.02])
    table = pa.table({"x": rng.random(400), "group": groups, "y": rng.random(400)})
    fit = dpm.release(table, schema, epsilon=0.3, insecure_seed=0).ols("y ~ x + C(group)")
    assert [name for name in fit.names if name.startswith("group=")]
