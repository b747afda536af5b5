"""Parts of answers by themselves: texts of numbers, verdicts, limits by search, formulas on numbers made for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.analysis import (
    classifiers,
    components,
    cross_table,
    frames,
    functionals,
    group_means,
    group_tests,
    regression,
    synthetic,
)
from dpmoments.analysis import correlations as pairs
from dpmoments.analysis.answers import (
    Answer,
    Column,
    aligned,
    confidence_level,
    escaped,
    html_table,
    intervals,
    label,
    number,
    plain,
    rounded,
    rounded_cells,
)
from dpmoments.analysis.confidence import (
    Estimate,
    fieller_interval,
    format_probability,
    score_test,
)
from dpmoments.analysis.description import Description, describe
from dpmoments.moments.cells import CountNoise
from dpmoments.moments.models import MomentInterval
from support.drawn_releases import drawn, template
from support.noise_models import gaussian, laplace
from support.said import Said, refused

NAN, INF = math.nan, math.inf
NORMAL, HEAVY = gaussian(2, 2.0, 1.0, 3.0, 4.0).law(), laplace(2, 2.0, 2.0, 3.0, 4.0).law()

# --- texts --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Made(Answer):
    names: tuple[str, ...] = ("age", "<b>")
    values: Any = (1.5, NAN)
    more: Any = None

    facts = ("size: more", "left?: more", "kept: names", "of: values by names", "rows: *", "**: further")

    @property
    def further(self) -> dict[str, float]:
        return {"one": 1.0, "two": INF}

    @property
    def heading(self) -> tuple[str, ...]:
        return "made & kept", "second", ""

    @property
    def remarks(self) -> tuple[str, ...]:
        return "", "a remark\nof two lines"

    def _columns(self) -> list[Column]:
        return [
            Column("name", self.names, "name", label=True),
            Column("value", np.array(self.values), "value ±"),
            Column("hidden", None),
            Column("", None, "shown", ["x", "yy"]),
        ]


def test_an_answer_is_text_html_latex_and_plain_values() -> None:
    made = Made()
    assert made.table() == [("name", "value ±", "shown"), ("age", "1.5", "x"), ("<b>", "–", "yy")]
    table = "name  value ±  shown\nage       1.5      x\n<b>         –     yy"
    assert made.text() == f"made & kept\nsecond\n{table}\na remark\nof two lines"
    assert made.columns() == {"name": ["age", "<b>"], "value": [1.5, None], "hidden": [None, None]}
    assert replace(made, values=(INF, NAN)).to_pandas().loc["age", "value"] == INF
    assert replace(made, values=(INF, NAN)).to_arrow()["value"].null_count == 1
    assert made.to_dict() == {
        "size": None,
        "kept": ["age", "<b>"],
        "of": {"age": 1.5, "<b>": None},
        "rows": {"name": ["age", "<b>"], "value": [1.5, None], "hidden": [None, None]},
        "one": 1.0,
        "two": None,
    }
    assert replace(made, more=3).to_dict()["left"] == 3
    html = made._repr_html_()
    assert html.startswith("<div><p>made &amp; kept</p><p>second</p><div style=")
    assert html.endswith('<pre style="overflow-x:auto">a remark\nof two lines</pre></div>')
    assert '<td style="text-align:left">&lt;b&gt;</td><td style="text-align:right">–</td>' in html
    assert '<th style="text-align:left">name</th>' in html_table(made.table())
    frame = made.to_pandas()
    assert frame.index.tolist() == ["age", "<b>"]
    latex = made.summary().as_latex().splitlines()
    assert latex[:5] == [
        r"\begin{table}",
        r"\caption{made \& kept}",
        r"\begin{tabular}{lrr}",
        r"\hline",
        r"name & value $\pm$ & shown \\",
    ]
    assert latex[5:] == [
        r"\hline",
        r"age & 1.5 & x \\",
        r"$<$b$>$ & -- & yy \\",
        r"\hline",
        r"\end{tabular}",
        r"\par\footnotesize second",
        r"\par\footnotesize a remark",
        r"\par\footnotesize of two lines",
        r"\end{table}",
    ]


def test_plain_values_have_no_number_that_is_none() -> None:
    assert plain(np.array([[1.0, NAN], [INF, 2.0]])) == [[1.0, None], [INF, 2.0]]
    assert plain(np.array([[1.0, NAN], [INF, 2.0]]), finite=True) == [[1.0, None], [None, 2.0]]
    assert plain(np.array([1, 2])) == [1, 2]
    assert plain(np.array(["a", "b"])) == ["a", "b"]
    assert plain((np.float64(NAN), np.int64(3), "x", None)) == [None, 3, "x", None]
    assert plain({"a": np.array([INF])}) == {"a": [INF]}
    assert plain(INF) == INF
    assert plain(INF, finite=True) is None
    assert type(plain(np.int64(3))) is int


def test_numbers_are_rounded_to_their_errors() -> None:
    for value, error, words in (
        *((38.5123, 0.214, "38.51"), (38.5123, 2.14, "38.5"), (38.5123, 21.4, "39"), (1234567.0, 214.0, "1,234,570")),
        *((-0.0001, 0.05, "0.000"), (38.5123, 0.0996, "38.51"), (38.5123, 0.09996, "38.51"), (38.5123, NAN, "38.512")),
        *((38.5123, 0.0, "38.512"), (NAN, 1.0, "–"), (None, 1.0, "–"), (38.5123, None, "38.512"), (INF, 1.0, "–")),
        *(
            (1e-9, 1e-9, "1.0e-09"),
            (0.4999974, 9.1e-8, "0.49999740"),
            (1.234e-7, 2e-7, "0.00000012"),
            (1.234e-7, 2e-8, "0.00000012"),
            (8e-8, 2e-8, "8.0e-08"),
            (1e-7, 2e-8, "0.00000010"),
            (-0.4999974, 9.1e-8, "-0.49999740"),
            (1.1e15, 1e3, "1.1e+15"),
        ),
        *((9.9e14, 1e14, "990,000,000,000,000"), (5e20, 1e16, "5e+20"), (38.5123, -1.0, "38.512")),
    ):
        assert rounded(value, error) == words, (value, error)
    assert rounded_cells(np.array([[38.512], [2.5]]), np.array([[0.21], [0.013]])) == ["38.51", "2.500"]
    assert intervals(np.array([1.234]), np.array([2.346]), np.array([0.1])) == ["[1.23, 2.35]"]
    assert intervals([-0.391, 0.0], [-0.0003, 0.4], [0.1, 0.1]) == ["[-0.39, -0.00030]", "[0.00, 0.40]"]
    assert number(0.0) == "0"
    assert number(123456.0) == "1.2346e+05"
    assert aligned([("a", "b"), ("long", "1"), ("x", "")]) == "a     b\nlong  1\nx"
    for level in (0.5, 0.999):
        assert confidence_level(level) == level
    for level in (0.499, 1.0, True, "0.9", NAN):
        with refused("statsmodels' alpha is 1"):
            confidence_level(level)  # type: ignore[arg-type]
    assert format_probability(1e-4) == "p = 0.0001"
    assert format_probability(0.99e-4) == "p < 0.0001"
    assert format_probability(0.0123, 2) == "p = 0.01"


def test_names_are_cut_at_the_column_first() -> None:
    assert label("x" * 40) == "x" * 40
    assert label("x" * 41) == "x" * 39 + "…"
    cut = label("a_long_column_name=north", 20)
    assert len(cut) == 20
    assert cut.endswith("…=north")
    assert label("a_long_column_name=" + "n" * 30, 20) == "a_long_…=nnnnnnnnnn…"
    assert label("column=" + "n" * 30, 20) == "column=nnnnnnnnnnnn…"
    assert label("eightcol=" + "n" * 30, 20) == "eightcol=nnnnnnnnnn…"
    assert label("a\nb") == "a\\nb"
    assert escaped("\n") == "\\n"
    assert escaped("年") == "\\u5e74"


# --- confidence ---------------------------------------------------------------------------------------------------------------


def test_estimates_refuse_to_contradict_themselves() -> None:
    good = (1.0, 0.5, 1.5, 0.01, 0.3, 0.4)
    assert Estimate(*good).standard_error == pytest.approx(0.5)
    for change in (
        (2.0, 0.5, 1.5, 0.01, 0.3, 0.4),
        (1.0, 0.5, 1.5, 0.05, 0.3, 0.4),
        (1.0, 0.0, 1.5, 0.01, 0.3, 0.4),
        (NAN, 0.5, 1.5, 0.01, 0.3, 0.4),
        (1.0, 0.5, 1.5, NAN, 0.3, 0.4),
        (1.0, 0.5, 1.5, 0.01, NAN, 0.4),
        (1.0, -INF, INF, NAN, NAN, NAN),
        (NAN, -INF, INF, 0.5, NAN, NAN),
        (NAN, -INF, 3.0, NAN, NAN, NAN),
        (NAN, -INF, INF, NAN, 1.0, 1.0),
    ):
        with pytest.raises(AssertionError):
            Estimate(*change)
    for kept in ((0.5, 0.5, 1.5, 0.01, 0.3, 0.4), (1.5, 0.5, 1.5, 0.01, 0.3, 0.4), (1.0, 0.0, 1.5, 0.05, 0.3, 0.4)):
        assert Estimate(*kept).estimable
    none = Estimate.not_estimable(0.9)
    assert not none.estimable
    assert none.level == 0.9
    made = Estimate.of_interval(1.0, 0.5, 1.5, 0.001, 0.9, 0.36)
    deviation = 0.5 / stats.norm.ppf(0.95)
    assert (made.privacy, made.sampling) == pytest.approx((0.6 * deviation, 0.8 * deviation))


def test_fiellers_interval_is_every_ratio_that_is_not_refuted() -> None:
    a, b, cov, extra, q = 3.0, 2.0, (0.2, 0.05, 0.1), 0.3, 1.9
    covariance: Any = tuple(np.array([each]) for each in cov)
    others = covariance, np.array([extra]), np.array([q])
    low, high = fieller_interval(np.array([a]), np.array([b]), *others)
    grid = np.linspace(-1.0, 6.0, 70001)
    kept = grid[(a - grid * b) ** 2 <= q**2 * (cov[0] - 2 * grid * cov[1] + grid**2 * cov[2] + extra)]
    assert (low[0], high[0]) == pytest.approx((kept.min(), kept.max()), abs=2e-4)
    for denominator in (0.5, -2.0):
        ends = fieller_interval(np.array([a]), np.array([denominator]), *others)
        assert (ends[0][0], ends[1][0]) == (-INF, INF)


def test_the_score_test_is_a_chi_squared_of_whitened_scores() -> None:
    rng = np.random.default_rng(0)
    half, other = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    privacy, sampling, scores = half @ half.T, other @ other.T, rng.normal(size=3)
    exact = scores @ np.linalg.inv(privacy + sampling) @ scores
    share = np.trace(np.linalg.inv(privacy + sampling) @ privacy) / 3
    for law in (NORMAL, HEAVY):
        z = stats.norm.ppf(0.975)
        heavy = z + max(0.0, law.quantile(0.975, of="cell") - z) * share**2
        value, degrees, p = score_test(scores, privacy, sampling, 3, law)
        assert value == pytest.approx(exact * (z / heavy) ** 2)
        assert degrees == 3
        assert p == pytest.approx(stats.chi2(3).sf(value))
    assert score_test(scores, privacy, sampling, 0, NORMAL) == (0.0, 0, 1.0)
    assert score_test(scores[:0], privacy[:0, :0], sampling[:0, :0], 2, NORMAL) == (0.0, 0, 1.0)
    assert score_test(scores, privacy * NAN, sampling, 0, None) == (0.0, 0, 1.0)
    value, degrees, p = score_test(scores, privacy * NAN, sampling, 3, None)
    assert math.isnan(value)
    assert degrees == 3
    assert math.isnan(p)
    assert score_test(scores, privacy * 0, sampling * 0, 3, NORMAL) == (0.0, 0, 1.0)
    singular = np.outer([1.0, 1.0, 0.0], [1.0, 1.0, 0.0]) + np.diag([0.0, 0.0, 2.0])
    value, degrees, _ = score_test(np.array([1.0, 1.0, 4.0]), np.zeros((3, 3)), singular, 3, NORMAL)
    assert degrees == 2
    assert value == pytest.approx(1.0 + 8.0)
    # of three directions the one of least variance is left out
    value, degrees, _ = score_test(np.array([1.0, 2.0, 3.0]), np.zeros((3, 3)), np.diag([1.0, 1.0, 1e-12]), 2, NORMAL)
    assert degrees == 2


GROUPED = dpm.Schema(dpm.Categorical("g", ["a", "b", "c"]), dpm.Numeric("y", -1, 3))


def grouped(groups: list[int], y: Any, rho: float = 1e4) -> dpm.MomentRelease:
    """Exact moments of rows of three groups, of a law with little noise."""
    rows = np.column_stack([np.eye(3)[groups], y])
    return drawn(template(GROUPED, "gaussian", rho=rho), rows, None)


def test_an_analysis_of_variance_counts_the_groups_that_are_there() -> None:
    rng = np.random.default_rng(0)
    for present in (2, 1):
        groups = [*range(present), *rng.integers(0, present, 300)]
        y = rng.normal(0.5, 0.4, len(groups)).clip(-1, 3) + 0.2 * np.array(groups)
        made = grouped(groups, y).anova("y", "g")
        means = np.array([np.mean(y[np.array(groups) == group]) for group in groups])
        between, total = float(((means - y.mean()) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
        assert made.degrees == (present - 1, len(groups) - present)
        assert made.sum_of_squares == pytest.approx((between, total - between), rel=2e-2, abs=0.01)
        assert math.isnan(made.f) == (present == 1)
    one = dpm.Schema(dpm.Categorical("g", ["a"]), dpm.Numeric("y", -1, 3))
    alone = drawn(template(one, "gaussian", rho=1e4), np.column_stack([np.ones(50), np.linspace(-1, 3, 50)]), None)
    assert (alone.anova("y", "g").p_value, alone.anova("y", "g").degrees) == (1.0, (0.0, 49.0))
    assert math.isnan(replace(alone, noise_model=None).anova("y", "g").p_value)


def test_noise_makes_no_sum_of_squares_negative_and_explains_no_more_than_all() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 3, 200).tolist()
    rows = np.column_stack([np.eye(3)[groups], 1.0 + (np.array(groups) == 0)])
    found = [drawn(template(GROUPED, "gaussian", rho=0.1), rows, rng).anova("y", "g") for _ in range(4)]
    assert min(square for answer in found for square in answer.sum_of_squares) == 0.0
    assert max(answer.eta_squared for answer in found) == 1.0


def test_analyses_refuse_arguments_of_other_libraries_by_name() -> None:
    release = grouped([0, 1, 2] * 30, np.linspace(-1.0, 3.0, 90))
    frame = {"y": [0.5, 1.0]}
    for ask in (
        lambda **more: describe(release, **more),
        lambda **more: pairs.correlations(release, **more),
        lambda **more: pairs.correlation_noise(release, **more),
        lambda **more: pairs.partial_correlation(release, **more),
        lambda **more: components.pca(release, **more),
        lambda **more: components.mahalanobis(release, frame, ["y"], **more),
        lambda **more: classifiers.lda(release, "g", **more),
        lambda **more: group_tests.anova(release, "y", "g", **more),
        lambda **more: group_tests.t_test(release, "y", "g", ["g=a", "g=b"], **more),
        lambda **more: group_means.group_means(release, "g", **more),
        lambda **more: cross_table.cross_table(release, "g", "g", **more),
        lambda **more: regression.ols(release, "y", **more),
        lambda **more: regression.ridge(release, "y", **more),
        lambda **more: regression.lasso(release, "y", **more),
        lambda **more: synthetic.synthetic_rows(release, 10, **more),
        lambda **more: components.graphical_lasso(release, **more),
        lambda **more: classifiers.naive_bayes("g", {"a": release, "b": release}, ["y"], **more),
    ):
        with refused("takes no weights=", TypeError):
            ask(weights=1.0)
    for name in ("cov_type", "method"):
        with refused(f"takes no {name}=", TypeError):
            describe(release, **{name: "w"})
    with pytest.raises(TypeError):
        describe(release, unknown=1)


def test_the_largest_table_that_is_tested_has_the_stated_number_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = np.array([[40.0, 12.0, 7.0], [3.0, 55.0, 21.0]])
    made = cross_table.CountTable.of(("g", "h"), (("a", "b"), ("x", "y", "z")), noisy, CountNoise("laplace", 2.5))
    monkeypatch.setattr(cross_table, "MAX_TESTED", 6)
    found = made.cross_table("g", "h")
    assert found.verdict == "dependent"
    np.testing.assert_array_equal(found.noise, np.full((2, 3), made.standard_error))
    privacy = made.standard_error**2 * np.eye(6)
    assert (found.statistic, found.degrees, found.p_value) == pytest.approx(
        cross_table.independence_test(noisy, privacy, float(made.n_rows), made.noise)
    )
    monkeypatch.setattr(cross_table, "MAX_TESTED", 5)
    with refused("are the most: name columns of fewer levels", cells=6, most=5):
        made.cross_table("g", "h")


def of_form(variances: np.ndarray, weights: np.ndarray) -> float:
    """Var ΣᵢⱼWᵢⱼNᵢⱼ of noise with independent entries of these variances."""
    return float((np.triu(weights * (2.0 - np.eye(len(weights)))) ** 2 * variances).sum())


def local_moments(**facts: Any) -> functionals.LocalMoments:
    """Of two levels of which each row has one, and two numbers; w = shift + stretch · x."""
    rng = np.random.default_rng(0)
    shift, stretch = np.array([0.1, -0.2, 0.3, 0.4]), np.array([1.0, 2.0, 0.5, 3.0])
    level = (rng.random(50) < 0.3).astype(float)
    z = np.column_stack([np.ones(50), level, 1.0 - level, rng.normal(size=(50, 2))])
    matrix = np.diag([1.0, *stretch])
    matrix[1:, 0] = shift
    given = dict(
        moments=matrix @ (z.T @ z) @ matrix.T,
        n_rows=50.0,
        location=np.array([0.3, 0.6, 5.0, 6.0]),
        unit=np.ones(4),
        law=gaussian(4, 2.0, 1.0, 3.0, 4.0).law(),
        shift=shift,
        stretch=stretch,
        rows_per_unit=4,
    )
    return functionals.LocalMoments(**given | facts)  # type: ignore[arg-type]


def test_noise_on_functionals_is_that_of_the_entries_they_are_made_of() -> None:
    """Of two opposite levels, too; without them the kept answers show it."""
    plain, rng = local_moments(), np.random.default_rng(1)
    assert plain.independent_rows == 12.5
    halves = np.eye(5)
    halves[1, 1] = halves[2, 2] = 0.5
    halves[1, 2] = halves[2, 1] = -0.5
    made = plain.with_opposites(np.array([1, 0, -1, -1]))
    np.testing.assert_allclose(made.moments, halves @ plain.moments @ halves.T)
    np.testing.assert_allclose(made.location, [0.35, 0.65, 5.0, 6.0])
    assert plain.location.tolist() == [0.3, 0.6, 5.0, 6.0]
    assert plain.with_opposites(np.full(4, -1)) is plain
    with refused("covariances are defined for unrepaired moments only"):
        made.covariance(np.array([0, 1]), np.zeros((1, 2, 2)))
    matrix = np.diag([1.0, *plain.stretch])
    matrix[1:, 0] = plain.shift
    matrix, noise = halves @ matrix, stated_noise(5, True)
    for indices in ([0, 1, 3], [0, 3, -1], [0, 3], [0, 1, 3, 4]):
        weights = rng.normal(size=(len(indices),) * 2)
        weights = weights + weights.T
        if -1 in indices:
            weights[2] = weights[:, 2] = 0.0
        whole = np.zeros((5, 5))
        there = [index for index in indices if index >= 0]
        whole[np.ix_(there, there)] = weights[: len(there), : len(there)]
        found = made.variances(np.array([indices]), weights[None])[0]
        assert found == pytest.approx(of_form(noise, matrix.T @ whole @ matrix))
    vectors, subtracted, chosen = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), np.array([0, 2, 3])
    for a, own, found in zip(vectors, subtracted, made.variances_of_squares(chosen, vectors, subtracted), strict=True):
        whole = np.zeros((5, 5))
        places = [0, 1, 3, 4]
        whole[np.ix_(places, places)] = np.outer(a, a) - np.diag(own)
        assert found == pytest.approx(of_form(noise, matrix.T @ whole @ matrix))
    unknown = replace(plain, law=None)
    assert np.isnan(unknown.covariance(np.array([0, 1]), np.ones((3, 2, 2)))).all()
    assert unknown.covariance(np.array([0, 1]), np.ones((3, 2, 2))).shape == (3, 3)


def stated_noise(size: int, constant: bool) -> np.ndarray:
    """Variances of independent entries of the noise: of a count, of sums, of squares and of products."""
    variances = np.ones((size, size)) + np.eye(size)
    if constant:
        variances[0] = variances[:, 0] = 3.0
        variances[0, 0] = 4.0
    return variances


def described(**facts: Any) -> Description:
    """Three features within [0, 10]: one clear, one whose noise is as large as its spread, one a share near 0."""
    given = dict(
        feature_names=("a", "b", "c"),
        mean=np.array([5.0, 2.0, 0.05]),
        mean_noise=np.array([0.1, 4.0, 0.04]),
        standard_deviation=np.array([2.0, 1.0, NAN]),
        standard_deviation_noise=np.array([0.2, 1.0, 0.0]),
        root_mean_square=None,
        n_rows=400,
        count_noise=8.0,
        count_is_public=False,
        mean_count_covariance=np.array([0.001, 0.0, 0.0]),
        sampling_variance=np.array([0.01, 0.0025, 0.0001]),
        sampling_degrees=np.full(3, INF),
        noisy_mean=np.array([5.0, 2.0, 0.03]),
        bounds=(np.zeros(3), np.array([10.0, 10.0, 1.0])),
        share_is_unclear=np.array([False, False, True]),
        deviation_below=np.array([0.0, 0.0, 0.0]),
        noise=NORMAL,
    )
    return Description(**given | facts)  # type: ignore[arg-type]


def test_deviations_are_shown_as_numbers_as_limits_or_as_noise() -> None:
    names = tuple("abcdef")
    made = described(
        feature_names=names,
        mean=np.full(6, 5.0),
        noisy_mean=np.full(6, 5.0),
        mean_noise=np.full(6, 0.1),
        standard_deviation=np.array([2.0, 1.0, 1.0, 0.5, NAN, 4.0]),
        standard_deviation_noise=np.array([0.2, 0.6, 0.6, 1.5, 2.0, 6.0]),
        deviation_below=np.array([0.0, 3.0, 0.7, 1.0, 4.9, 0.0]),
        mean_count_covariance=np.zeros(6),
        sampling_variance=np.zeros(6),
        bounds=(np.zeros(6), np.full(6, 10.0)),
        share_is_unclear=np.zeros(6, dtype=bool),
    )
    assert made.standard_deviation_is_noise == [False, False, False, False, False, True]
    np.testing.assert_allclose(made.deviation_limits, [0.0, 3.0, 1.0, 1.5, 4.9, 5.0])
    assert made.deviation_cells == ["2.00", "below 3.00", "below 1.00", "below 1.5", "below 4.9", "noise"]
    assert "“below”" in made.noise_text
    assert "“noise”" in made.noise_text
    assert "“noise”" not in made[["a", "b"]].noise_text
    assert "“below”" not in made["a"].noise_text
    assert made.table()[1] == ("a", "5.00", "0.10", "2.00", "0.20")
    assert described(standard_deviation=None).deviation_cells == []
    assert replace(made, deviation_below=np.full(6, 5.0)).deviation_cells[1] == "noise"
    assert replace(made, deviation_below=np.full(6, 4.99)).deviation_cells[1] == "below 4.99"


def test_frames_are_read_by_name_and_arrays_by_place() -> None:
    schema = dpm.Schema(
        dpm.Numeric("x", 0, 4),
        dpm.Categorical("kind", list("abcdefg"), missing="zero"),
        dpm.Boolean("flag"),
        dpm.Product("x", "flag"),
    )
    frame = {"flag": [True, False], "kind": ["g", None], "x": [9.0, 2.0], "unused": [1, 2]}
    found = frames.feature_values(schema, frame, range(schema.n_features))
    expected = [[9.0, *[0.0] * 6, 1.0, 1.0, 9.0], [2.0, *[NAN] * 7, 0.0, 0.0]]
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(frames.named_values(schema, frame, ["flag", "x"]), [[1.0, 9.0], [0.0, 2.0]])
    np.testing.assert_array_equal(frames.named_values(schema, pa.table(frame), ["x:flag"]), [[9.0], [0.0]])
    batch = pa.RecordBatch.from_pydict({"x": [1.5, 2.5]})
    np.testing.assert_array_equal(frames.named_values(schema, batch, ["x"]), [[1.5], [2.5]])
    asked = frames.feature_values(schema, {"x": [1.0]}, [0])
    assert np.isnan(asked[0, 1:]).all()
    few = "'a', 'b', 'c', 'd', 'e', 'f'"
    with refused("leave those rows out, or give them a level", n_unknown=1, rows=2, column="kind", levels=f"{few}, …"):
        frames.named_values(schema, {"kind": ["a", "z"]}, ["kind=a"])
    six = dpm.Schema(dpm.Categorical("kind", list("abcdef")))
    with refused("leave those rows out, or give them a level", n_unknown=2, rows=3, levels=few):
        frames.named_values(six, {"kind": ["y", "z", "a"]}, ["kind=a"])
    with refused("a dict of columns holds a list of values for each, and", TypeError, column="x"):
        frames.named_values(schema, {"flag": [True], "x": 1.0}, ["x"])
    with refused("a dict of columns holds a list of values for each, and", TypeError, column="x"):
        frames.named_values(schema, {"x": np.array(1.0)}, ["x"])
    with refused("a dict of columns holds a list of values for each, and", TypeError, column="kind"):
        frames.named_values(schema, {"kind": "a"}, ["kind=a"])
    with refused("rows are read from a pandas, Polars or Arrow frame, or from", TypeError, got="list"):
        frames.named_values(schema, [[1.0]], ["x"])
    with refused("the names must be the release's", names=("x",), hint=Said("; it has ", names=("X ",))):
        frames.named_values(schema, pd.DataFrame({"X ": [1.0]}), ["x"])
    with refused("the names must be the release's", names=("x",)) as caught:
        frames.named_values(schema, {"y": [1.0]}, ["x"])
    assert "it has" not in str(caught.value)
    doubled = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    with refused("the frame has more than one column named", names=("x",)):
        frames.named_values(schema, doubled, ["x"])
    twice_elsewhere = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "y", "y"])
    arrow_twice = pa.table([[1.0], [2.0], [3.0]], names=["x", "y", "y"])
    for frame_twice in (twice_elsewhere, arrow_twice):
        assert frames.named_values(schema, frame_twice, ["x"]).tolist() == [[1.0]]
    coordinates = dpm.Schema.unit_ball(2)
    np.testing.assert_array_equal(frames.feature_values(coordinates, np.array([[1, 2]]), [1]), [[1.0, 2.0]])
    with refused("an array has no column names, and rows are read by name", TypeError):
        frames.feature_values(schema, np.zeros((1, 10)), [0])
    for array in (np.zeros(2), np.zeros((1, 3)), np.array([["a", "b"]])):
        with refused("is not one of rows of this release: its columns are the", columns=2):
            frames.feature_values(coordinates, array, [0])


@pytest.mark.parametrize("constant", [True, False])
def test_coefficients_of_every_table_in_an_interval_of_moments_are_within_the_bound(constant: bool) -> None:
    rng = np.random.default_rng(0)
    n, k = 500.0, 2
    rows = rng.normal(0.0, 0.3, (500, 3))
    rows[:, 2] += rows[:, 0] - 0.5 * rows[:, 1]
    z = np.column_stack([np.ones(500), rows]) if constant else rows
    lead = int(constant)
    center, root = z.T @ z, np.linalg.cholesky(np.diag([4.0] * lead + [1.0, 2.0, 3.0]))
    spread = root @ root.T

    def solved(moments: np.ndarray, alpha: float, count: float) -> np.ndarray:
        penalty = np.diag([0.0] * lead + [2.0 * alpha * count] * k)
        return np.linalg.solve(moments[:-1, :-1] + penalty, moments[:-1, -1])[lead:]

    for alpha, error in ((0.0, 0.0), (0.001, 5.0), (0.1, 0.0), (0.1, 50.0)):
        shown = solved(center, alpha, n) + 0.01
        interval = MomentInterval(center, spread, constant, error)
        bound = regression._coefficient_error_bound(interval, shown, alpha, n, error)
        farthest = 0.0
        for _ in range(100):
            turned = np.linalg.qr(rng.normal(size=(len(center),) * 2))[0]
            moved = center + root @ (turned * rng.choice([-1.0, 1.0], len(center))) @ turned.T @ root.T
            length = np.linalg.norm(solved(moved, alpha, n + rng.uniform(-error, error)) - shown)
            farthest = max(farthest, float(length))
        assert farthest <= bound < 3.0 * farthest
    wide = MomentInterval(center, spread * 1e9, constant, 0.0)
    length = math.sqrt((center[-1, -1] + 1e9 * spread[-1, -1]) / (2.0 * 10.0 * n)) / 2.0
    found = regression._coefficient_error_bound(wide, np.array([0.3, 0.4]), 10.0, n, 0.0)
    assert found == pytest.approx(0.5 + length)
    for least, bounded in ((0.9e-12, False), (1.1e-12, True)):
        thin = MomentInterval(np.diag([1.0, least, 1.0]), np.zeros((3, 3)), False, 0.0)
        assert math.isfinite(regression._coefficient_error_bound(thin, np.ones(2), 0.0, n, 0.0)) is bounded


def test_the_bound_on_one_coefficient_is_that_of_the_derivation() -> None:
    center, spread = np.array([[50.0, 20.0], [20.0, 40.0]]), np.diag([8.0, 3.0])
    shown, n = 0.35, 100.0

    def stated(center: np.ndarray, alpha: float, error: float) -> float:
        shares, least = np.array(regression._SHARES), 2.0 * alpha * max(n - error, 0.0)
        below = shares * (center[0, 0] - 8.0) + least
        gradient = abs((center[0, 0] + 2.0 * alpha * n) * shown - 20.0)
        leverage = math.sqrt(shown**2 * 8.0 + 3.0)
        usable = below[below > 0.0]
        bounds = (gradient + np.sqrt(8.0 / usable) * leverage * np.sqrt(usable) + 2.0 * alpha * error * shown) / usable
        whole = shown + math.sqrt(43.0 / least) / 2.0 if least else INF
        return float(min([whole, *bounds]))

    for first, alpha, error in (
        *((50.0, 0.0, 0.0), (50.0, 0.05, 10.0), (50.0, 0.05, 99.0), (50.0, 0.05, 200.0), (9.0, 0.1, 0.0)),
        *((2.0, 0.1, 0.0), (2.0, 5.0, 0.0), (2.0, 0.0, 0.0), (8.0, 0.0, 0.0)),
    ):
        given = center.copy()
        given[0, 0] = first
        found = regression._coefficient_error_bound(
            MomentInterval(given, spread, False, error), np.array([shown]), alpha, n, error
        )
        assert found == pytest.approx(stated(given, alpha, error)), (first, alpha, error)
