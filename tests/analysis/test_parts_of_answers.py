"""Parts of answers by themselves: texts of numbers, verdicts, limits by search, formulas on numbers made for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.analysis import (
    components,
    contrasts,
    discriminant,
    frames,
    functionals,
    graphical_model,
    group_tests,
    regression,
    released,
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
from dpmoments.analysis.clipping import (
    ClippingBounds,
    ClippingEffect,
    TableBounds,
    _highest,
    _of_variances,
    largest_variance,
)
from dpmoments.analysis.confidence import (
    Estimate,
    deviations_by_quantile,
    fieller_interval,
    format_probability,
    score_test,
)
from dpmoments.analysis.contrasts import ContrastTests, Restrictions
from dpmoments.analysis.description import Description, card
from dpmoments.analysis.distances import MahalanobisDistances
from dpmoments.analysis.functionals import without_redundant_levels
from dpmoments.analysis.group_tests import AnalysisOfVariance, TwoGroups, _tested
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.regression_results import ExplainedVariance
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.resolvability import (
    NOISE_UNKNOWN,
    NOT_CLEAR_NOISE,
    NOT_CLEAR_ROWS,
    NOT_ESTIMABLE,
    estimable,
    format_findings,
    holm,
    largest_resolved,
    not_clear,
    p_values,
    resolved,
    sign_verdicts,
    smallest_seen,
)
from dpmoments.messages.message import Message
from dpmoments.noise.models import MomentInterval
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
        *((1e-9, 1e-9, "1e-09"), (1.234e-7, 2e-7, "0.00000012"), (1.1e15, 1e3, "1.1e+15")),
        *((9.9e14, 1e14, "990,000,000,000,000"), (5e20, 1e16, "5e+20"), (38.5123, -1.0, "38.512")),
    ):
        assert rounded(value, error) == words, (value, error)
    assert rounded_cells(np.array([[38.512], [2.5]]), np.array([[0.21], [0.013]])) == ["38.51", "2.500"]
    assert intervals(np.array([1.234]), np.array([2.346]), np.array([0.1])) == ["[1.23, 2.35]"]
    assert number(0.0) == "0"
    assert number(123456.0) == "1.2346e+05"
    assert aligned([("a", "b"), ("long", "1"), ("x", "")]) == "a     b\nlong  1\nx"
    for level in (0.5, 0.999):
        assert confidence_level(level) == level
    for level in (0.499, 1.0, True, "0.9", NAN):
        with refused("level-is-a-confidence"):
            confidence_level(level)  # type: ignore[arg-type]
    assert format_probability(1e-4) == "p = 0.0001"
    assert format_probability(0.99e-4) == "p < 0.0001"
    assert format_probability(0.0123, 2) == "p = 0.01"


def test_names_are_cut_at_the_column_first() -> None:
    assert label("x" * 26) == "x" * 26
    assert label("x" * 27) == "x" * 25 + "…"
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


def test_intervals_widen_with_the_noises_share_squared() -> None:
    privacy, sampling = np.array([0.0, 1.0, 3.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    z = stats.norm.ppf(0.975)
    found = deviations_by_quantile(0.95, 2.5, privacy, sampling)
    np.testing.assert_allclose(found, [z, 2.5, z + (2.5 - z) * 0.75**2, z])
    np.testing.assert_allclose(deviations_by_quantile(0.95, 1.5, privacy, sampling), z)
    np.testing.assert_allclose(deviations_by_quantile(0.95, None, privacy, sampling), z)
    p = p_values(np.array([z, 3.0, NAN]), np.ones(3), np.zeros(3), NORMAL)
    np.testing.assert_allclose(p, [0.05, 2 * stats.norm.sf(3.0), NAN], rtol=1e-6)
    for share in (0.3, 1.0):
        reach = z + (HEAVY.quantile(0.975, of="cell") - z) * share**2
        assert p_values(np.array([reach]), np.array([share]), np.array([1 - share]), HEAVY)[0] == pytest.approx(
            0.05, rel=1e-6
        )
    assert np.isnan(p_values(np.ones(2), np.ones(2), np.ones(2), None)).all()


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


# --- what a release resolves --------------------------------------------------------------------------------------------------


def test_holm_steps_down() -> None:
    p = np.array([0.01, 0.04, NAN, 0.03, 0.9, 0.02])
    known = np.sort(p[~np.isnan(p)])
    adjusted, largest = {}, 0.0
    for place, value in enumerate(known):
        largest = max(largest, min((len(known) - place) * value, 1.0))
        adjusted[value] = largest
    np.testing.assert_allclose(holm(p), [adjusted.get(value, NAN) for value in p])
    assert holm(np.array([[0.01, 0.5]])).shape == (1, 2)
    assert resolved(np.array([0.0249, 0.0499])).tolist() == [True, True]
    assert resolved(np.array([0.0251, 0.04])).tolist() == [False, False]
    assert resolved(np.array([0.05])).tolist() == [False]
    assert largest_resolved(np.array([0.001, 0.02, 0.9, NAN])) == 0.02
    assert largest_resolved(np.array([0.9])) == -1.0
    ends = np.array([0.0, 0.0, -INF, NAN, 0.0])
    tops = np.array([0.99, 1.0, 1.0, 1.0, INF])
    assert estimable(ends, tops, -1.0, 1.0).tolist() == [True, False, False, False, False]


def test_verdicts_say_sign_or_reason() -> None:
    estimate, p = np.array([1.0, -1.0, 0.5, 0.5, 1.0, 1.0, 1.0]), np.array([1e-4, 1e-4, 0.9, 0.9, 0.5, NAN, 1e-4])
    privacy, sampling = np.array([1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    can, counted = np.array([True, False, True, True, False, True, True]), np.array([True] * 6 + [False])
    words = sign_verdicts(estimate, p, privacy, sampling, can, counted=counted)
    assert words == ["positive", "negative", NOT_CLEAR_NOISE, NOT_CLEAR_ROWS, NOT_ESTIMABLE, NOISE_UNKNOWN, ""]
    kept = sign_verdicts(estimate, p, privacy, sampling, can, words=("up", "down"), cutoff=0.5)
    assert kept == ["up", "down", NOT_CLEAR_NOISE, NOT_CLEAR_ROWS, "up", NOISE_UNKNOWN, "up"]
    assert not_clear(1.0, 1.0) == NOT_CLEAR_NOISE
    assert not_clear(1.0, 1.1) == NOT_CLEAR_ROWS
    assert format_findings(["positive", "", NOT_CLEAR_NOISE], "pairs", "related") == (
        "1 of 2 pairs are related (5 % chance that any of these is false)"
    )
    assert format_findings([NOT_ESTIMABLE], "pairs", "related") == "0 of 1 pairs are related"
    seen = smallest_seen(np.array([3.0, 0.0]), np.array([1.0, 4.0]), 10, NORMAL)
    np.testing.assert_allclose(seen, 2.0 * (stats.norm.isf(0.0025) + stats.norm.ppf(0.8)), rtol=1e-6)
    assert smallest_seen(np.array([0.0]), np.array([1.0]), 0, NORMAL)[0] == pytest.approx(
        stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    )


# --- tests of groups ----------------------------------------------------------------------------------------------------------


def two_groups(**facts: Any) -> TwoGroups:
    given = dict(
        target="age",
        by="g",
        levels=("a", "b"),
        counts=np.array([1234.0, 7.0]),
        means=np.array([3.14159, NAN]),
        difference=0.51234,
        lower=0.1,
        upper=0.9,
        privacy_noise=0.03,
        sampling_noise=0.04,
        statistic=2.5,
        degrees=1234.4,
        p_value=0.01,
        own_variances=True,
        level=0.95,
    )
    return TwoGroups(**given | facts)  # type: ignore[arg-type]


def test_a_t_test_says_who_is_higher() -> None:
    made = two_groups()
    assert made.verdict == "a higher"
    assert two_groups(statistic=-2.5).verdict == "b higher"
    assert two_groups(statistic=0.0).verdict == NOT_CLEAR_ROWS
    assert two_groups(p_value=0.05).verdict == NOT_CLEAR_ROWS
    assert two_groups(p_value=0.05, privacy_noise=0.04).verdict == NOT_CLEAR_NOISE
    assert two_groups(p_value=NAN).verdict == NOISE_UNKNOWN
    assert made.heading == ("Welch's t-test of age by g: a higher",)
    assert two_groups(own_variances=False).heading[0].startswith("t-test (pooled variance) of age")
    assert made.table() == [
        ("", "rows", "mean", "± privacy", "± sampling", "95 %"),
        ("a", "1,234", "3.142", "", "", ""),
        ("b", "7", "–", "", "", ""),
        ("difference", "", "0.512", "0.030", "0.040", "[0.100, 0.900]"),
    ]
    assert made.remarks[0] == "t = 2.50, 1,234 degrees of freedom, p = 0.0100, including privacy noise"
    assert (
        two_groups(own_variances=False)
        .remarks[0]
        .endswith("each group's own variance needs the product age:g in the schema")
    )
    assert "noise unknown" in two_groups(p_value=NAN).remarks[0]


@pytest.mark.parametrize("per_unit", [1, 4])
def test_welchs_t_is_that_of_sums_about_the_mean_of_both(per_unit: int) -> None:
    rng = np.random.default_rng(1)
    half = rng.normal(size=(6, 6))
    counts, totals = np.array([40.0, 60.0, 25.0]), np.array([30.0, -20.0, 55.0])
    sampling = np.array([0.02, 0.05, 0.03])
    for size, law in ((1.0, NORMAL), (1.0, HEAVY), (0.0, NORMAL)):
        covariance = size * half @ half.T
        moments = SimpleNamespace(rows_per_unit=per_unit, independent_rows=130.0 / per_unit, law=law)
        sums: Any = SimpleNamespace(
            counts=counts,
            safe_counts=counts,
            sums=totals,
            covariance=covariance,
            sampling_variances=sampling,
            moments=moments,
        )
        t, degrees, parts, p = _tested(sums, [2, 0])
        mean = (55.0 + 30.0) / 65.0
        weights = np.array([mean / 40, 0.0, -mean / 25, -1 / 40, 0.0, 1 / 25])
        privacy = float(weights @ covariance @ weights)
        total = privacy + 0.05
        z = stats.norm.ppf(0.975)
        heavy = z + max(0.0, law.quantile(0.975, of="cell") - z) * (privacy / total) ** 2
        expected = (55 / 25 - 30 / 40) / math.sqrt(total) * z / heavy
        rows = np.array([25.0, 40.0]) / per_unit
        below = 0.03**2 / max(rows[0] - 1, 1) + 0.02**2 / max(rows[1] - 1, 1)
        assert t == pytest.approx(expected)
        assert degrees == pytest.approx(min(total**2 / below, rows.sum() - 2))
        assert parts == pytest.approx((math.sqrt(privacy), math.sqrt(0.05)))
        assert p == pytest.approx(2 * stats.t(degrees).sf(abs(expected)))
    sums.sampling_variances = np.zeros(3)
    assert _tested(sums, [0, 1]) == (0.0, INF, (0.0, 0.0), 1.0)
    sums.covariance = np.full((6, 6), NAN)
    assert math.isnan(_tested(sums, [0, 1])[3])


def test_a_t_test_and_its_interval_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test is of sums about one mean, the interval of two means: the weaker of the two decides."""
    rng = np.random.default_rng(8)
    flag = rng.random(600) < 0.5
    table = pd.DataFrame(
        {"y": 0.3 * rng.standard_normal(600).clip(-3, 3), "z": flag + 0.1 * rng.random(600), "flag": flag}
    )
    schema = dpm.Schema(dpm.Numeric("y", -1, 1), dpm.Numeric("z", 0, 2), dpm.Boolean("flag"))
    release = dpm.release(table, schema, epsilon=50.0, insecure_seed=0)
    for sign in (1.0, -1.0):
        monkeypatch.setattr(group_tests, "_tested", lambda *_, sign=sign: (2.5 * sign, 200.0, (0.1, 0.1), 0.03))
        made = release.t_test("y", "flag")
        assert -0.2 < made.lower <= 0.0 <= made.upper
        assert made.p_value == pytest.approx(0.05)
        assert made.statistic == pytest.approx(sign * stats.t.isf(0.025, 200.0))
        assert release.t_test("y", "flag", level=0.99).p_value == 0.03
    clear = release.t_test("z", "flag")
    assert clear.lower * clear.upper > 0.0
    assert clear.p_value == 0.03
    monkeypatch.setattr(group_tests, "_tested", lambda *_: (1.2, 200.0, (0.1, 0.1), 0.05))
    unclear = release.t_test("z", "flag")
    assert 0.0 in (unclear.lower, unclear.upper)
    assert unclear.p_value == 0.05


def test_errors_of_coefficients_are_roots_of_variances_that_rounding_left_of_nothing() -> None:
    identified: Any = SimpleNamespace(identified=True)
    assert NormalEquations._errors(identified, np.diag([-1e-18, 4.0])).tolist() == [0.0, 2.0]
    unknown: Any = SimpleNamespace(identified=False)
    assert np.isnan(NormalEquations._errors(unknown, np.eye(2))).all()


def variance(**facts: Any) -> AnalysisOfVariance:
    given = dict(
        target="age",
        by="g",
        levels=("a", "b"),
        counts=np.array([10.0, 20.0]),
        sum_of_squares=(30.0, 600.0),
        noise_between=5.0,
        noise=(1.0, 2.0, 3.0),
        degrees=(2.0, 100.0),
        f=2.5,
        eta_squared=0.04762,
        p_value=0.01,
        statistic=9.21,
        degrees_of_test=2,
        reason=NOT_CLEAR_NOISE,
        level=0.95,
    )
    return AnalysisOfVariance(**given | facts)  # type: ignore[arg-type]


def test_an_analysis_of_variance_says_what_is_lost() -> None:
    made = variance()
    assert made.verdict == "groups differ"
    assert variance(p_value=0.05).verdict == NOT_CLEAR_NOISE
    assert variance(p_value=NAN).verdict == NOISE_UNKNOWN
    # noise is more than what chance alone makes of groups: 2 · 600/100
    assert not made.lost
    assert not variance(p_value=0.5, noise_between=12.0).lost
    assert variance(p_value=0.5, noise_between=12.1).lost
    assert not variance(noise_between=12.1).lost
    assert variance(p_value=0.5, noise_between=0.1, degrees=(2.0, 0.0)).lost
    assert made.table() == [
        ("", "sum of squares", "degrees", "mean square"),
        ("between groups", "30.0", "2", "15.00"),
        ("within groups", "600.0", "100", "6.000"),
        ("total", "630.0", "102", ""),
    ]
    lost = variance(p_value=0.5, noise_between=13.0)
    assert lost.table()[1][3] == "noise"
    assert variance(degrees=(0.0, 0.0)).table()[1:3] == [
        ("between groups", "30.0", "0", "–"),
        ("within groups", "600.0", "0", "–"),
    ]
    assert made.remarks[0] == "Score test: χ²(2) = 9.2, p = 0.0100, including privacy noise. eta² = 0.0476."
    assert lost.remarks[0].endswith("eta² = noise.")
    assert "equal group variances" in made.remarks[2].lower()
    assert "(5.0 between groups)" in made.remarks[1]
    assert made.heading == ("analysis of variance of age by g: groups differ",)


def test_distances_say_how_many_are_shown() -> None:
    from dpmoments.analysis import distances

    shown = distances._SHOWN_ROWS
    for m in (shown, shown + 1):
        made = MahalanobisDistances(("a", "b"), np.arange(float(m)), 2, 0)
        assert made.remarks[0] == ("" if m == shown else f"the furthest {shown} of {m:,} rows")
        assert made.table()[1] == (str(m - 1), number(float(m - 1)))
        assert len(made.table()) == shown + 1
    some = MahalanobisDistances(("a", "b"), np.array([1.0, NAN, 3.0]), 1, 2)
    assert [row[0] for row in some.table()[1:]] == ["2", "0", "1"]
    assert some.heading == (f"Mahalanobis distances in 1 direction, 2 of 3 left out: {NOT_CLEAR_NOISE}",)
    assert replace(some, noise_known=False).heading == ("Mahalanobis distances in 1 direction",)
    assert replace(some, n_directions=2, n_noise=0).heading == ("Mahalanobis distances in 2 directions",)
    none = replace(some, n_directions=0, n_noise=3)
    assert none.table() == [("row", "distance")]
    assert "all 3 directions are noise" in none.heading[0]


# --- clipping -----------------------------------------------------------------------------------------------------------------


def test_the_highest_correlation_of_added_parts_is_found_by_search() -> None:
    grid = np.linspace(0.0, 1.0, 401)
    for r in (-0.6, 0.0, 0.3, 0.9):
        for added in ((0.5, 0.1), (0.2, 0.2), (2.0, 0.01), (0.0, 0.3)):
            least = np.array([1.0, 2.0])
            a, b = (grid * math.sqrt(add / low) for add, low in zip(added, least, strict=True))
            best = ((r + np.outer(a, b)) / np.sqrt(np.outer(1 + a**2, 1 + b**2))).max()
            found = _highest(np.array([[1.0, r], [r, 1.0]]), np.array(added), least)
            assert found[0, 1] == pytest.approx(best, abs=2e-4)
            assert found[1, 0] == pytest.approx(found[0, 1])
    assert _highest(np.array([[1.0, -0.1], [-0.1, 1.0]]), np.array([0.1, 0.1]), np.array([0.0, 1.0]))[0, 1] == 1.0


def test_the_largest_correlation_of_a_covariance_and_variances_between() -> None:
    least, most = np.array([1.0, 4.0, 0.0]), np.array([2.0, 9.0, 1.0])
    covariance = np.array([[1.0, 0.6, 0.1], [0.6, 1.0, -0.2], [0.1, -0.2, 1.0]])
    found = _of_variances(covariance, least, most)
    assert found[0, 1] == pytest.approx(0.6 / 2.0)
    assert found[0, 2] == found[1, 2] == 1.0
    assert _of_variances(-covariance, least, most)[0, 1] == pytest.approx(-0.6 / math.sqrt(18.0))
    assert _of_variances(9 * covariance, least, most)[0, 1] == 1.0


def test_the_largest_variance_of_a_mean_between() -> None:
    low, high = np.array([0.0, 3.0, 6.0, 2.0]), np.array([4.0, 8.0, 9.0, 2.0])
    box = np.zeros(4), np.full(4, 10.0)
    expected = [max((10 - m) * m for m in np.linspace(a, b, 2001)) for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(largest_variance(low, high, box), expected, rtol=1e-6)


def made_bounds() -> tuple[ClippingBounds, dict[str, Any]]:
    box = np.array([-0.9, -0.2, 0.1]), np.array([0.5, 0.8, 0.9])
    given: dict[str, Any] = dict(
        radius=0.5, max_rows=10.0, max_excess=2.0, box=box, farthest=1.2, clipped_squares=np.array([0.1, 3.0, 3.0])
    )
    return ClippingBounds.of_ball(*given.values()), given


def test_rows_beyond_a_ball_change_moments_by_no_more_than_stated() -> None:
    """Rows drawn outside the ball: all of them within the excess; and the bounds are those of the derivation."""
    bounds, given = made_bounds()
    share, r = 0.2, 0.5
    norm = math.sqrt(r**2 + share)
    below, above = np.array([0.9, 0.2, 0.0]), np.array([0.5, 0.8, 0.9])
    squares = 10 * share * np.minimum(1.0, np.maximum(below, above) ** 2 / norm**2)
    most = min(1.2**2, r**2 + 2.0) - r**2
    np.testing.assert_allclose(bounds.squares, np.minimum(squares, given["clipped_squares"] * most / r**2))
    np.testing.assert_allclose(bounds.sum_below, 10 * np.minimum(norm - r, below * (1 - r / norm)))
    np.testing.assert_allclose(bounds.sum_above, 10 * np.minimum(norm - r, above * (1 - r / norm)))
    assert bounds.sum_norm == pytest.approx(10 * (norm - r))
    assert bounds.excess == 2.0
    rng = np.random.default_rng(2)
    for _ in range(200):
        rows = rng.uniform(given["box"][0], given["box"][1], (10, 3))
        lengths = np.linalg.norm(rows, axis=1)
        inside = rows * np.minimum(1.0, r / lengths)[:, None]
        if np.maximum(lengths**2 - r**2, 0).sum() > 2.0 or lengths.max() > 1.2:
            continue
        moved = rows.sum(axis=0) - inside.sum(axis=0)
        assert (moved <= bounds.sum_above + 1e-9).all()
        assert (-moved <= bounds.sum_below + 1e-9).all()
        assert np.linalg.norm(moved) <= bounds.sum_norm + 1e-9
    none = ClippingBounds.of_ball(0.5, 0.0, 2.0, given["box"], 1.2, np.ones(3))
    assert not none.squares.any()
    assert none.sum_norm == none.excess == 0.0
    some = bounds.of_features([2, 0])
    np.testing.assert_array_equal(some.sum_above, bounds.sum_above[[2, 0]])
    matrix = np.array([[1.0, -2.0, 0.0], [0.5, 0.5, 0.5]])
    carried = bounds.carried(matrix)
    size = np.linalg.norm(matrix, 2)
    np.testing.assert_allclose(carried.squares, (np.abs(matrix) @ np.sqrt(bounds.squares)) ** 2)
    assert carried.sum_above[0] == pytest.approx(bounds.sum_above[0] + 2 * bounds.sum_below[1])
    assert carried.sum_below[0] == pytest.approx(bounds.sum_below[0] + 2 * bounds.sum_above[1])
    assert (carried.excess, carried.sum_norm) == pytest.approx((2.0 * size**2, bounds.sum_norm * size))


def test_variances_and_products_move_within_their_ranges() -> None:
    bounds, _ = made_bounds()
    mean, n = np.array([0.05, -0.3, 0.4]), 40.0
    fall, rise = bounds.variance_change(mean, n)
    for j in range(3):
        shifts = np.linspace(-bounds.sum_below[j] / n, bounds.sum_above[j] / n, 4001)
        own = 2 * mean[j] * shifts + shifts**2  # what the mean's square grows by
        assert fall[j] == pytest.approx(max(own.max(), 0.0), abs=1e-9)
        assert rise[j] == pytest.approx(bounds.squares[j] / n - own.min(), abs=1e-6)
    left, right = np.array([0.3, 1.0, -0.5, 0.2]), np.array([-0.4, 0.2, 0.7, 1.0])
    low, high = bounds.product_range(left, right)
    weights = left[0] * right[1:] + right[0] * left[1:]
    up = sum(
        max(w, 0) * a + max(-w, 0) * b for w, a, b in zip(weights, bounds.sum_above, bounds.sum_below, strict=True)
    )
    down = sum(
        max(-w, 0) * a + max(w, 0) * b for w, a, b in zip(weights, bounds.sum_above, bounds.sum_below, strict=True)
    )
    reach = bounds.sum_norm * np.linalg.norm(weights)
    middle, size = left[1:] @ right[1:], np.linalg.norm(left[1:]) * np.linalg.norm(right[1:])
    most = (np.abs(left[1:]) @ np.sqrt(bounds.squares)) * (np.abs(right[1:]) @ np.sqrt(bounds.squares))
    assert low == pytest.approx(max(2.0 * (middle - size) / 2, -most) - min(down, reach))
    assert high == pytest.approx(min(2.0 * (middle + size) / 2, most) + min(up, reach))


def test_clipped_columns_are_named_where_clipping_is_clear_or_likely() -> None:
    bounds, _ = made_bounds()
    ones = np.ones(3)
    made = TableBounds(
        share=0.01234,
        clearly=False,
        n_rows=40.0,
        bounds=bounds,
        variance=ones,
        center_mean=ones,
        mean_below=ones,
        mean_above=ones,
        variance_below=ones,
        variance_above=ones,
        largest_ratio=np.array([1.3, 1.31, 1.31]),
        skewed=np.array([True, True, False]),
    )
    assert made.likely.tolist() == [False, True, False]
    assert replace(made, clearly=True).likely.tolist() == [False, True, True]
    assert "at most 1.3 % of the rows" in made.description
    for share, errors, words in (
        (None, None, "how many was not measured"),
        (0.2501, None, "Warning: up to 25%"),
        (0.25, None, "at most 25.00% of the rows"),
        (0.01, np.array([0.5, 3.0]), "by more than 3 of its standard errors"),
        (0.01, np.array([3.01]), "by more than 3 standard errors"),
        (0.01, np.array([]), "(95 % confidence)."),
    ):
        assert words in ClippingEffect(share, standard_errors=errors).description
    assert ClippingEffect(0.01, standard_errors=None).description.endswith("(95 % confidence).")
    assert "bounds" in ClippingEffect(None).description
    assert "bounds" not in ClippingEffect(None, has_bounds=False).description


def test_limits_of_a_table_are_those_of_its_ball_and_columns_near_a_bound_are_skewed() -> None:
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 10) for name in "abc"), dpm.Boolean("flag"))
    rng = np.random.default_rng(0)
    rows = np.column_stack(
        [
            rng.exponential(1.0, 4_000),
            10 - rng.exponential(1.0, 4_000),
            rng.normal(5, 1, 4_000),
            rng.random(4_000) < 0.1,
        ]
    ).clip(0, 10)
    stated = {"radius": 0.6, "share_beyond_bound": 0.02, "trace_bias_bound": 0.004, "excess_beyond": 0.0}
    empty = replace(
        template(schema, "gaussian", rho=100.0), center=np.zeros(4), diagnostics=stated | {"rows_beyond": 0.0}
    )
    release = drawn(empty, rows, None)
    found = TableBounds.of(release)
    assert found is not None
    assert release.noise is not None
    assert found.skewed.tolist() == [True, True, False, False]
    assert not found.clearly
    scale = release.encoding.scale
    encoded = (rows - release.encoding.offset) / scale
    box = tuple((end - release.encoding.offset) / scale for end in schema.feature_bounds)
    np.testing.assert_allclose(found.center_mean, encoded.mean(axis=0))
    np.testing.assert_allclose(found.variance, encoded.var(axis=0))
    noise = np.sqrt(np.diag(release.noise.cell_variances())[1:])
    squares = (encoded**2).sum(axis=0) + stats.norm.ppf(0.95) * noise
    farthest = float(np.linalg.norm(np.maximum(-box[0], box[1])))
    bounds = ClippingBounds.of_ball(0.6, 80.0, 16.0, box, farthest, squares)
    np.testing.assert_allclose(found.bounds.squares, bounds.squares)
    np.testing.assert_allclose(found.mean_below, scale * bounds.sum_below / 4_000)
    np.testing.assert_allclose(found.mean_above, scale * bounds.sum_above / 4_000)
    fall, rise = bounds.variance_change(encoded.mean(axis=0), 4_000.0)
    np.testing.assert_allclose(found.variance_below[:3], (scale**2 * fall)[:3])
    low, high = (np.clip(encoded.mean(axis=0) + by / 4_000, *box) for by in (-bounds.sum_below, bounds.sum_above))
    most = largest_variance(low, high, box) - encoded.var(axis=0)
    np.testing.assert_allclose(found.variance_above, scale**2 * np.minimum(rise, most))
    ends = [(1.0 - share) * share for share in (low * scale + release.encoding.offset)[3:]]
    assert found.variance_below[3] == pytest.approx(rows[:, 3].var() - ends[0])
    for excess, outside, clearly in ((8.01, 0.0, True), (8.0, 2_000.0, False), (0.0, 2_000.1, True)):
        given = stated | {"excess_beyond": excess, "rows_beyond": outside}
        again = TableBounds.of(replace(release, diagnostics=given))
        assert again is not None
        assert again.clearly is clearly
    some = found.of_features([3, 0])
    assert some.skewed.tolist() == [False, True]
    np.testing.assert_array_equal(some.bounds.squares, found.bounds.squares[[3, 0]])


# --- components ---------------------------------------------------------------------------------------------------------------


def test_intervals_of_components_reach_from_zero_to_what_noise_and_bounds_allow() -> None:
    rows = np.random.default_rng(0).normal(0.0, [0.3, 0.2, 0.1], (3_000, 3))
    made = dpm.release(rows, dpm.Schema.unit_ball(3), rho=1.0, insecure_seed=0).pca()
    made = replace(
        made,
        explained_variance=np.array([0.5, 0.3, 0.2]),
        noisy_variance=np.array([0.5, 0.29, -0.1]),
        noise_edge=np.array([0.1, 0.1, 0.05]),
        privacy_noise=np.array([0.03, 0.3, 0.1]),
        sampling_noise=np.array([0.04, 0.4, 0.1]),
        largest_possible=1.1,
        noise=NORMAL,
    )
    z = stats.norm.ppf(0.975)
    assert made.is_noise.tolist() == [False, False, True]
    np.testing.assert_allclose(made.conf_int(), [[0.5 - 0.05 * z, 0.5 + 0.05 * z], [0.0, 1.1], [0.0, 0.2]])
    all_noise = replace(made, noise_edge=np.array([0.5, 0.9, 0.3]))
    assert all_noise.is_noise.all()
    np.testing.assert_allclose(all_noise.conf_int(), [[0.0, 1.0], [0.0, 1.1], [0.0, 0.3]])
    np.testing.assert_allclose(made.conf_int(0.8)[0], 0.5 + 0.05 * stats.norm.ppf(0.9) * np.array([-1.0, 1.0]))
    low_roof = replace(made, largest_possible=0.15, explained_variance=np.array([0.4, 0.3, 0.2]))
    np.testing.assert_allclose(low_roof.conf_int()[0], 0.15)
    assert np.isnan(replace(made, noise=None).conf_int()).all()


# --- discriminants ------------------------------------------------------------------------------------------------------------


def test_a_class_without_rows_is_never_predicted() -> None:
    schema = dpm.Schema(dpm.Categorical("kind", ["a", "b", "c"]), dpm.Numeric("x", 0, 10), dpm.Numeric("y", -5, 5))
    rng = np.random.default_rng(0)
    kind = (rng.random(4_000) < 0.3).astype(int)
    numbers = np.column_stack([rng.normal(3 + 3 * kind, 1), rng.normal(0.5 - kind, 1)]).clip([0, -5], [10, 5])
    release = drawn(template(schema, "gaussian", rho=50.0), np.column_stack([np.eye(3)[kind], numbers]), None)
    made = release.lda("kind", shrinkage=0.0)
    means = [numbers[kind == group].mean(axis=0) for group in range(2)]
    shares = np.array([np.mean(kind == 0), np.mean(kind == 1)])
    within = sum(share * np.cov(numbers[kind == group].T, bias=True) for group, share in enumerate(shares))
    coef = [np.linalg.solve(within, mean - numbers.mean(axis=0)) for mean in means]
    np.testing.assert_allclose(made.coef, [*coef, [0.0, 0.0]], rtol=1e-4)
    np.testing.assert_allclose(made.priors, [*shares, 0.0], rtol=1e-4)
    np.testing.assert_allclose(made.means, [*means, numbers.mean(axis=0)], rtol=1e-4)
    middle = [(numbers.mean(axis=0) + mean) / 2 for mean in means]
    intercepts = [math.log(share) - one @ at for share, one, at in zip(shares, coef, middle, strict=True)]
    np.testing.assert_allclose(made.intercept, [*intercepts, -INF], rtol=1e-4)
    frame = pd.DataFrame({"x": [1.0, 9.0, 4.5], "y": [3.0, -3.0, 0.0]})
    scores = frame.to_numpy() @ np.array(coef).T + intercepts
    np.testing.assert_allclose(made.decision_function(frame), np.column_stack([scores, np.full(3, -INF)]), rtol=1e-4)
    assert made.predict(frame).tolist() == [["a", "b"][best] for best in scores.argmax(axis=1)]
    assert release.lda("kind", shrinkage=0.25).shrinkage == 0.25
    assert "c: number of rows" in discriminant.describe_lost_classes(made.class_names, made.priors)
    assert discriminant.describe_lost_classes(["a", "b"], shares) == ""


# --- correlations -------------------------------------------------------------------------------------------------------------


def test_moments_of_two_shares_are_those_of_four_cells() -> None:
    p, q, r = np.array([0.3, 0.5]), np.array([0.2, 0.5]), np.array([0.1, -0.4])
    found = pairs._of_two_shares(r, p, q)
    for index in range(2):
        a, b, c = p[index], q[index], r[index]
        both = a * b + c * math.sqrt(a * (1 - a) * b * (1 - b))
        total = 0.0
        for x, y, share in ((1, 1, both), (1, 0, a - both), (0, 1, b - both), (0, 0, 1 - a - b + both)):
            u, v = (x - a) / math.sqrt(a * (1 - a)), (y - b) / math.sqrt(b * (1 - b))
            total += share * (u * v - c * (u * u + v * v) / 2) ** 2
        assert found[index] == pytest.approx(total)


def errors(
    r: float,
    privacy: tuple[float, float, float],
    rows: float,
    gaps: float = 0.0,
    joint: float = 0.0,
    times: float = 1.0,
) -> Any:
    of_share = np.array([False, False])
    variances: Any = SimpleNamespace(of_share=of_share, share=np.array([0.5, 0.5]))
    given = [np.array([each]) for each in (r, *privacy)]
    return pairs._Errors(
        *given,
        variances,
        i=np.array([0]),
        j=np.array([1]),
        independent_rows=rows,
        noise=NORMAL,
        gaps=np.array([gaps]),
        joint_gaps=np.array([joint]),
        times=np.array([times]),
        of_normal_rows=np.array([True]),
    )


def test_without_noise_intervals_of_correlations_are_fishers() -> None:
    for r in (-0.8, 0.0, 0.35, 0.97):
        made = errors(r, (0.0, 0.0, 0.0), 200.0)
        reach = stats.norm.ppf(0.975) / math.sqrt(200.0)
        low, high = made.interval(0.95)
        assert (low[0], high[0]) == pytest.approx(
            (math.tanh(math.atanh(r) - reach), math.tanh(math.atanh(r) + reach)), abs=1e-4
        )
        assert made.p_values()[0] == pytest.approx(2 * stats.norm.sf(abs(r) / abs(_error_at_zero(r, 200.0))), abs=1e-6)
    made = errors(0.3, (0.04, 0.01, 0.02), 100.0, gaps=0.2, joint=0.1)
    rho = np.array([0.5])
    privacy, sampling = made.parts(rho)
    assert privacy[0] == pytest.approx(0.04 - 2 * 0.5 * 0.01 + 0.25 * 0.02)
    assert sampling[0] == pytest.approx(((1 - 0.25) ** 2 + 0.2 * (1 - 0.125) + 0.1 * 1.25) / 100)
    assert errors(0.3, (0.0, 0.5, 0.0), 100.0).privacy(rho)[0] == 0.0
    heavy = errors(0.3, (0.04, 0.01, 0.02), 100.0, gaps=0.2, joint=0.1, times=3.0).parts(rho)[1]
    assert heavy[0] == pytest.approx((3 * (1 - 0.25) ** 2 + 0.2 * (1 - 0.125) + 0.1 * 1.25) / 100)
    near = errors(0.3, (0.0, 0.0, 0.0), 100.0)._between(np.array([0.3]))
    assert near[1][0] == pytest.approx((1 - 0.09) ** 2 / 100)


def _error_at_zero(r: float, rows: float) -> float:
    """Of r − 0, constant on the scale of artanh r."""
    return (r / math.atanh(r) if r else 1.0) / math.sqrt(rows)


# --- contrasts ----------------------------------------------------------------------------------------------------------------

NAMES = ("Intercept", "age", "age:sex=f", "sex=f")


@pytest.mark.parametrize(
    ("text", "rows", "values"),
    [
        ("age", [[0, 1, 0, 0]], [0]),
        ("age + age:sex=f = 3", [[0, 1, 1, 0]], [3]),
        ("age = 2*sex=f", [[0, 1, 0, -2]], [0]),
        ("-age - -1", [[0, -1, 0, 0]], [-1]),
        ("(age - sex=f)/4 = .5", [[0, 0.25, 0, -0.25]], [0.5]),
        ("age = sex=f = 1e1", [[0, 1, 0, -1], [0, 0, 0, 1]], [0, 10]),
        ("age, 2*(sex=f + 1) - 2", [[0, 1, 0, 0], [0, 0, 0, 2]], [0, 0]),
        ("`age`*2*3 = +6", [[0, 6, 0, 0]], [6]),
        ("1 + Intercept", [[1, 0, 0, 0]], [-1]),
        ("age*2/4", [[0, 0.5, 0, 0]], [0]),
    ],
)
def test_restrictions_are_read_as_written(text: str, rows: list[list[float]], values: list[float]) -> None:
    found = Restrictions.of(text, NAMES)
    np.testing.assert_allclose(found.matrix, rows)
    np.testing.assert_allclose(found.values, values)


def test_restrictions_are_also_arrays_mappings_and_lists() -> None:
    for given, rows, values in (
        ([0.0, 1.0, 0.0, 2.0], [[0, 1, 0, 2]], [0]),
        (([0.0, 1.0, 0.0, 2.0], 3.0), [[0, 1, 0, 2]], [3]),
        ((np.eye(4)[:2], [1.0, 2.0]), np.eye(4)[:2], [1, 2]),
        ({"age": 2, "sex=f": -1.5}, [[0, 2, 0, -1.5]], [0]),
        (["age", "sex=f = 1"], [[0, 1, 0, 0], [0, 0, 0, 1]], [0, 1]),
    ):
        found = Restrictions.of(given, NAMES)
        np.testing.assert_allclose(found.matrix, rows)
        np.testing.assert_allclose(found.values, values)
    for given, code in (
        ("age +", "not-a-restriction"),
        ("age * sex=f", "not-a-restriction"),
        ("2/age", "not-a-restriction"),
        ("age/0", "not-a-restriction"),
        ("(age", "not-a-restriction"),
        ("age sex=f", "not-a-restriction"),
        ("height", "unknown-coefficient"),
        ("2 = 2", "restriction-without-coefficient"),
        ([1.0, 2.0], "restrictions-shape"),
        ([0.0, math.inf, 0.0, 0.0], "restriction-not-finite"),
        ([], "no-restriction"),
    ):
        with refused((code, "restrictions-shape")):
            Restrictions.of(given, NAMES)
    with refused("restriction-mapping", TypeError):
        Restrictions.of({"age": True}, NAMES)
    with refused("level-merged", level="sex=x"):
        Restrictions.of("`sex=x`", NAMES, merged=["sex=x"])
    for text, name in (
        ("#age", "#age"),
        ("[age", "["),
        ("age + ~", "~"),
        ("height2 = 1", "height2"),
        ("age + (sx)", "sx"),
        ("`#a`", "#a"),
    ):
        with refused("unknown-coefficient", name=name):
            Restrictions.of(text, NAMES)
    for row, words in (
        ([0, 1, 0, -1], "age - sex=f"),
        ([0, -1, 0, 2.5], "-age + 2.5*sex=f"),
        ([0, 0, 0, -0.5], "-0.5*sex=f"),
        ([0, 0, -1, 0], "-age:sex=f"),
        ([2, 0, 0, 0], "2*Intercept"),
    ):
        assert Restrictions.of([float(each) for each in row], NAMES).labels == (words,)


def given_contrasts(valid: bool, values: list[float]) -> ContrastTests:
    """Estimates that are given: one clear, one not, one not estimable."""
    level = 0.95
    estimates = (
        Estimate(2.0, 1.0, 3.0, 1e-4, 0.3, 0.4, level),
        Estimate(-0.1, -1.0, 0.8, 0.8, 0.3, 0.3, level),
        Estimate.not_estimable(level),
    )

    def contrast(weights: np.ndarray, *_: float) -> Estimate:
        return estimates[int(weights[0])]

    equations: Any = SimpleNamespace(delta_method_valid=valid, degrees_of_freedom=1234.0, contrast=contrast)
    equations.about_sampling = " (robust)"
    rows = Restrictions(("a", "b", "c"), np.array([[0.0], [1.0], [2.0]]), np.array(values))
    return ContrastTests(rows, equations, "income", level)


def test_contrasts_are_tested_one_by_one() -> None:
    made = given_contrasts(True, [0.0, 0.0, 0.0])
    assert made.verdict == ("positive", NOT_CLEAR_NOISE, NOT_ESTIMABLE)
    assert made.heading == (
        "t-test of 3 combinations of coefficients, regression of income, 1,234 residual degrees of freedom",
    )
    head, first, second, third = made.table()
    assert head == ("", "estimate", "std err", "privacy", "sampling", "t", "P>|t|", "[0.025", "0.975]", "")
    assert first == ("a", "2.00", "0.50", "0.30", "0.40", "4.00", first[6], "1.00", "3.00", "positive")
    assert second[0] == "b"
    assert third[1:9] == ("–", "–", "–", "–", "–", third[6], "−∞", "∞")
    np.testing.assert_allclose(made.tvalue, [4.0, -0.1 / math.hypot(0.3, 0.3), NAN])
    np.testing.assert_allclose(made.sd, [0.5, math.hypot(0.3, 0.3), NAN])
    moved = given_contrasts(True, [1.5, 0.0, 0.0])
    assert moved.table()[1][:2] == ("a = 1.5", "3.50")
    assert moved.table()[1][7:9] == ("2.50", "4.50")
    assert moved.verdict[0] == "higher"
    np.testing.assert_allclose(moved.effect, [3.5, -0.1, NAN])
    np.testing.assert_allclose(moved.conf_int().iloc[0], [2.5, 4.5])
    assert moved.conf_int().columns.tolist() == ["lower", "upper"]
    inverted = given_contrasts(False, [0.0, 0.0, 0.0])
    assert inverted.heading[0].startswith("test by test inversion of 3 combinations")
    assert "residual" not in inverted.heading[0]
    assert inverted.table()[0][5:7] == ("z", "P>|z|")
    np.testing.assert_allclose(inverted.tvalue, [stats.norm.isf(5e-5), -stats.norm.isf(0.4), NAN], rtol=1e-6)
    assert inverted.remarks[1]
    assert not made.remarks[1]
    assert made.remarks[0].endswith("sampling error (robust)")
    plainly = made.columns()
    assert plainly["lower"] == [1.0, -1.0, -INF]
    assert plainly["p_value"] == [1e-4, 0.8, None]
    assert contrasts.bonferroni(0.95, "bonferroni", 0) == pytest.approx(0.95)
    assert contrasts.bonferroni(0.9, "bonferroni", 4) == pytest.approx(0.975)
    with refused("unknown-adjustment"):
        contrasts.bonferroni(0.9, "holm", 4)  # type: ignore[arg-type]


# --- descriptions -------------------------------------------------------------------------------------------------------------


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
        noisy_mean=np.array([5.0, 2.0, 0.03]),
        bounds=(np.zeros(3), np.array([10.0, 10.0, 1.0])),
        share_is_unclear=np.array([False, False, True]),
        deviation_below=np.array([0.0, 0.0, 0.0]),
        noise=NORMAL,
    )
    return Description(**given | facts)  # type: ignore[arg-type]


def test_what_noise_hides_of_a_description() -> None:
    made = described()
    # uniform on the bounds has a deviation of 10/√12 = 2.89
    assert made.mean_is_noise == [False, True, False]
    edge = 10 / math.sqrt(12)
    assert described(mean_noise=np.array([edge, edge * 0.999, 0.04])).mean_is_noise == [True, False, False]
    # noise as large as the deviation; and of no noise nothing is lost
    assert made.standard_deviation_is_noise == [False, True, False]
    lost = described(standard_deviation=np.array([20.0, 1.0, 0.3]), standard_deviation_noise=np.array([4.9, 0.99, 0.0]))
    assert lost.standard_deviation_is_noise == [False, False, False]
    lost = described(
        standard_deviation=np.array([20.0, 1.0, NAN]), standard_deviation_noise=np.array([5.0, 1.01, 1e-9])
    )
    assert lost.standard_deviation_is_noise == [True, True, True]
    assert described(standard_deviation=None).standard_deviation_is_noise == [False] * 3
    assert made.rows_text == "400 (noisy, standard deviation 8.0)"
    assert described(count_is_public=True).rows_text == "400 (public, exact)"
    assert described(count_noise=None).rows_text == "400 (noisy)"
    assert described(n_rows=None).rows_text.startswith("not released")
    assert made.heading == ("rows: 400 (noisy, standard deviation 8.0)",)
    assert "“noise”" in made.noise_text
    assert "“below”" in made.noise_text
    clear = described(
        mean_noise=np.full(3, 0.01),
        standard_deviation_noise=np.full(3, 0.01),
        share_is_unclear=np.zeros(3, dtype=bool),
        standard_deviation=np.ones(3),
    )
    assert "“" not in clear.noise_text
    assert described(mean=None).noise_text == ""
    assert described(mean_noise=np.full(3, NAN)).noise_text.startswith("noise unknown")
    assert described(clipping=None).clipped == [False] * 3


def test_intervals_of_means_are_fiellers_within_the_bounds() -> None:
    made = described()
    z = stats.norm.ppf(0.975)
    low, high = made.conf_int()[0]
    # every θ with (0 − θ)² ≤ z²(V − 2θC + θ²V_n + sampling), about the noisy mean
    grid = np.linspace(-2.0, 2.0, 80001)
    kept = grid[grid**2 <= z**2 * (0.01 - 2 * grid * 0.001 + grid**2 * (8 / 400) ** 2 + 0.01)]
    assert (low, high) == pytest.approx((5 + kept.min(), 5 + kept.max()), abs=1e-4)
    assert made.conf_int()[1, 0] == 0.0
    assert described(mean_noise=np.array([0.1, 9.0, 0.04])).conf_int()[1].tolist() == [0.0, 10.0]
    # the mean that is shown lies in its interval, wherever the repair moved it
    moved = described(mean=np.array([9.0, 2.0, 0.05]))
    assert moved.conf_int()[0][1] == 9.0
    assert np.isnan(described(noisy_mean=None).conf_int()).all()
    assert np.isnan(described(mean_noise=np.array([NAN, 0.1, 0.1])).conf_int()[0]).all()
    below = made._below
    assert below[:2] == [0.0, 0.0]
    assert below[2] == pytest.approx(max(made.conf_int()[2, 1], 0.04))
    narrow = made.conf_int(0.5)[0]
    assert narrow[1] - narrow[0] < high - low
    mean, spread = made.of_table()
    reach = z * 0.2
    assert spread[0].tolist() == pytest.approx([2.0 - reach, min(2.0 + reach, 5.0)])
    assert mean[0][0] > low
    some = made[["c", "a"]]
    assert some.feature_names == ("c", "a")
    np.testing.assert_array_equal(some.mean_noise, [0.04, 0.1])
    np.testing.assert_array_equal(some.bounds[1], [1.0, 10.0])
    assert made["b"].feature_names == ("b",)


# --- frames -------------------------------------------------------------------------------------------------------------------


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
    with refused("frame-with-unknown-levels", n_unknown=1, rows=2, column="kind", levels=f"{few}, …"):
        frames.named_values(schema, {"kind": ["a", "z"]}, ["kind=a"])
    six = dpm.Schema(dpm.Categorical("kind", list("abcdef")))
    with refused("frame-with-unknown-levels", n_unknown=2, rows=3, levels=few):
        frames.named_values(six, {"kind": ["y", "z", "a"]}, ["kind=a"])
    with refused("column-of-one-value", TypeError, column="x"):
        frames.named_values(schema, {"flag": [True], "x": 1.0}, ["x"])
    with refused("column-of-one-value", TypeError, column="x"):
        frames.named_values(schema, {"x": np.array(1.0)}, ["x"])
    with refused("column-of-one-value", TypeError, column="kind"):
        frames.named_values(schema, {"kind": "a"}, ["kind=a"])
    with refused("rows-of-other-type", TypeError, got="list"):
        frames.named_values(schema, [[1.0]], ["x"])
    with refused("frame-without-columns", names=("x",), hint=Said("names-alike", names=("X ",))):
        frames.named_values(schema, pd.DataFrame({"X ": [1.0]}), ["x"])
    with refused("frame-without-columns", names=("x",)) as caught:
        frames.named_values(schema, {"y": [1.0]}, ["x"])
    assert "hint" not in caught.value.facts
    doubled = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    with refused("frame-with-repeated-columns", names=("x",)):
        frames.named_values(schema, doubled, ["x"])
    twice_elsewhere = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "y", "y"])
    assert frames.named_values(schema, twice_elsewhere, ["x"]).tolist() == [[1.0]]
    coordinates = dpm.Schema.unit_ball(2)
    np.testing.assert_array_equal(frames.feature_values(coordinates, np.array([[1, 2]]), [1]), [[1.0, 2.0]])
    with refused("array-without-names", TypeError):
        frames.feature_values(schema, np.zeros((1, 10)), [0])
    for array in (np.zeros(2), np.zeros((1, 3)), np.array([["a", "b"]])):
        with refused("array-of-other-rows", columns=2):
            frames.feature_values(coordinates, array, [0])


# --- releases -----------------------------------------------------------------------------------------------------------------


def test_intervals_of_means_hold_the_mean_that_a_repair_moved_beyond_them() -> None:
    release = dpm.release(np.full((500, 2), 0.1), dpm.Schema.unit_ball(2), rho=1.0, insecure_seed=0)
    table = release.describe()
    assert table.mean_noise is not None
    for far in (-20.0, 20.0):
        moved = replace(table, mean=table.noisy_mean + far * table.mean_noise)
        ends = moved.conf_int()
        assert (ends[:, 0] <= moved.mean).all()
        assert (moved.mean <= ends[:, 1]).all()


def test_the_most_frequent_level_is_left_out_where_all_levels_are_asked_for_and_no_others() -> None:
    regions = np.repeat(["north", "south", "east"], [300, 500, 200])
    table = pa.table({"region": regions, "age": np.linspace(0.0, 1.0, 1_000)})
    schema = dpm.Schema(dpm.Categorical("region", ["north", "south", "east"]), dpm.Numeric("age", 0, 1))
    release = dpm.release(table, schema, rho=50.0, insecure_seed=0)
    names = release.feature_names
    for columns, kept in (
        (["region"], ["region=north", "region=east"]),
        (["region", "age"], ["region=north", "region=east", "age"]),
        (["region=north", "region=south"], ["region=north", "region=south"]),
    ):
        assert [names[index] for index in without_redundant_levels(release, columns)] == kept


def test_r_squared_of_units_of_several_rows_has_the_sampling_error_of_as_many_units() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 0.1, 4_000)
    rows = np.column_stack([x, x + rng.normal(0.0, 0.1, 4_000)])
    release = dpm.release(rows, dpm.Schema.unit_ball(2), rho=50.0, insecure_seed=0)
    equations = NormalEquations.of(release, Regressors.chosen(release, "x1", ["x0"], True, None))
    assert equations is not None
    line = ExplainedVariance.of_given(equations, equations.solution)
    assert line.sampling_error == pytest.approx(2.0 * math.sqrt(0.5) * 0.5 / math.sqrt(4_000), rel=0.1)
    of_units = ExplainedVariance.of_given(replace(equations, rows_per_unit=4.0), equations.solution)
    assert of_units.sampling_error == pytest.approx(2.0 * line.sampling_error, rel=0.02)
    assert of_units.privacy_error == line.privacy_error


def test_a_card_says_how_many_columns_it_leaves_out() -> None:
    privacy = dpm.release(np.full((50, 2), 0.1), dpm.Schema.unit_ball(2), rho=1.0, insecure_seed=0).privacy
    for rows, more in ((12, None), (13, None), (14, "2 more"), (1_014, "1,002 more")):
        shown = card("a", [], [("feature",), *((f"x{i}",) for i in range(rows))], privacy, [], [])
        assert (more is not None) is ("more</p>" in shown)
        assert more is None or more in shown


def test_without_p_values_none_are_compared() -> None:
    release = dpm.release(
        np.random.default_rng(0).normal(0, 0.2, (500, 3)), dpm.Schema.unit_ball(3), rho=1.0, insecure_seed=0
    )
    assert len(release.correlations().p_values_compared) == 3
    assert len(replace(release.correlations(), p_value=None).p_values_compared) == 0


def test_rare_levels_are_those_noisier_than_four_times_a_quarter_of_all() -> None:
    """Noise whose lower quartile is 1.25: levels beyond 5 are rare."""
    schema = dpm.Schema(dpm.Categorical("g", ["a", "b"]), *(dpm.Numeric(name, 0, 1) for name in "xyz"))
    table = pa.table({name: np.full(40, 0.5) for name in "xyz"} | {"g": ["a", "b"] * 20})
    release = dpm.release(table, schema, rho=1.0, insecure_seed=0)
    for own, named in (([4.9, 5.1, 1.0, 1.25, 2.0], ("g=b",)), ([5.3, 5.1, 1.0, 1.25, 2.0], ("g=a", "g=b"))):
        cells = np.diag(np.square(own))
        hidden = np.array([1e6])
        assert components._rare_levels(release, np.arange(5), cells, hidden, NORMAL) == named
        assert components._rare_levels(release, np.arange(5), cells, np.array([0.0]), NORMAL) == ()


def test_products_of_features_without_an_opposite_keep_their_weights() -> None:
    """Of features 0 and 1 in a release of two levels, 0 and 1, and a number, 2."""
    opposite = np.array([1, 0, -1])
    weights = np.arange(9.0).reshape(1, 3, 3)
    indices, found = functionals._on_both(np.array([[0, 3, 1]]), weights, opposite)
    np.testing.assert_array_equal(indices, [[0, 3, 1, -1, 2]])
    w = np.random.default_rng(0).normal(size=4)  # 1, the levels, the number
    w[0] = 1.0
    merged = np.array([1.0, w[3], 0.5 * (w[1] - w[2])])
    both = np.array([w[0], w[3], w[1], 0.0, w[2]])
    assert both @ found[0] @ both == pytest.approx(merged @ weights[0] @ merged)


def test_correlations_that_are_no_matrix_of_correlations_are_made_one() -> None:
    broken = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    result = graphical_model._definite(broken)
    assert np.linalg.eigvalsh(result)[0] == pytest.approx(graphical_model._MIN_EIGENVALUE)
    np.testing.assert_allclose(np.diag(result), 1.0)
    np.testing.assert_array_equal(graphical_model._definite(np.eye(3)), np.eye(3))


def test_a_tail_that_may_be_unseen_names_its_columns_and_a_share_of_rows() -> None:
    rough = dpm.Numeric("pay", scale=(0.1, 100.0)).rule
    bounded = dpm.Numeric("age", 0, 90).rule

    def said(rules: list[Message], share: Any, *warnings: Message) -> tuple[Message, ...]:
        law = replace(NORMAL, caveats=("clipped-in-last-step", "linearized"))
        release: Any = SimpleNamespace(
            privacy=SimpleNamespace(rules=rules), diagnostics={"share_unseen": share}, noise=law, warnings=warnings
        )
        return released.conditions(release)

    plainly = Message("clipped-in-last-step"), Message("linearized")
    for share, stated in ((0.3, 0.3), (-0.1, 0.0), (1.5, 1.0), (1, 1.0)):
        tail = Message("tail-not-excluded", share=stated, names=["pay"])
        assert said([bounded, rough], share) == (tail, plainly[1])
    for share in (None, NAN, INF):
        assert said([rough], share) == plainly
    assert said([bounded], 0.3) == plainly
    assert said([rough], 0.3, Message("rows-unseen-tail", share=0.3)) == plainly
    assert said([rough], 0.3, Message("clipped-in-last-step"))[0].code == "tail-not-excluded"
    assert released.caveats(None) == ()


def test_margins_of_synthetic_rows_have_the_mean_and_variance_asked_for() -> None:
    grid = synthetic._GRID
    weights = stats.norm.pdf(grid) / stats.norm.pdf(grid).sum()
    for mean, variance, lower, upper in (
        *((3.0, 4.0, -INF, INF), (3.0, 4.0, 0.0, INF), (3.0, 1.0, 0.0, 8.0), (3.0, 1e-7, 0.0, 8.0)),
        *((7.0, 0.5, 0.0, 8.0), (3.0, 14.0, 0.0, 8.0), (3.0, 0.0, -INF, INF), (3.0, 0.0, 0.0, 8.0)),
    ):
        values = synthetic._Margin.of(mean, variance, lower, upper).values
        assert weights @ values == pytest.approx(mean, rel=1e-3)
        assert weights @ (values - mean) ** 2 == pytest.approx(variance, rel=0.02)
        assert (np.diff(values) >= 0.0).all()
    for mean, variance, lower, upper in ((3.0, -1.0, -INF, INF), (3.0, -1.0, 0.0, 8.0)):
        np.testing.assert_array_equal(synthetic._Margin.of(mean, variance, lower, upper).values, 3.0)
    for mean, end in ((-1.0, 0.0), (0.0, 0.0), (8.0, 8.0), (9.0, 8.0)):
        np.testing.assert_array_equal(synthetic._Margin.of(mean, 2.0, 0.0, 8.0).values, end)
    for variance in (15.0, 16.0):
        values = synthetic._Margin.of(3.0, variance, 0.0, 8.0).values
        assert set(values) == {0.0, 8.0}
        assert weights @ values == pytest.approx(3.0, rel=0.01)
    narrow = synthetic._Margin.of(3.0, 15.0 / 1.01e7, 0.0, 8.0).values
    np.testing.assert_allclose(narrow, 3.0 + math.sqrt(15.0 / 1.01e7) * grid)
    near = synthetic._Margin.of(1e-3, 1e-3 * 8.0 / 1.1e7, 0.0, 8.0).values
    assert near.min() >= 0.0


def test_latents_are_looked_up_between_points_of_the_grid() -> None:
    margin = synthetic._Margin.of(3.0, 2.0, 0.0, 8.0)
    latents = np.array([-9.0, -8.0, -7.9999, -0.0001, 0.0, 0.37, 1.2345, 7.9999, 8.0, 9.0])
    np.testing.assert_allclose(margin.of_latents(latents), np.interp(latents, synthetic._GRID, margin.values))


def test_levels_are_the_highest_latent_or_none_below_zero() -> None:
    kind: Any = dpm.Categorical("kind", ["a", "b"], missing="zero")
    latents = np.array([[9.0, 0.5, -1.0], [9.0, -1.0, -0.5], [9.0, 0.2, 0.4]])
    offsets = np.array([7.0, 0.0, 0.0])
    own = np.array([1, 2])
    some = synthetic._Block(kind, own, None, np.array([0.4, 0.4]), may_be_none=True)
    assert some.values(latents, offsets).tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    all_of_them = replace(some, may_be_none=False)
    assert all_of_them.values(latents, offsets).tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    assert all_of_them.values(latents, np.array([0.0, 0.0, 5.0]))[:, 1].all()
    flag = synthetic._Block(dpm.Boolean("flag"), np.array([1]), None, np.array([0.4]))
    assert flag.values(latents, np.array([0.0, -0.3, 0.0])).tolist() == [[1.0], [0.0], [0.0]]


@pytest.mark.parametrize("intercept", [True, False])
def test_gaps_of_a_regression_are_those_of_its_columns_and_none_of_the_constant(intercept: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(5.0, 1.0, (2_000, 2)).clip(0, 10)
    table = pd.DataFrame({"x": x[:, 0], "y": x.mean(axis=1), "z": x[:, 1]})
    for name, share in (("x", 0.2), ("y", 0.5)):
        table.loc[rng.random(2_000) < share, name] = None
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 10, "available", fill=5) for name in "xyz"))
    release = dpm.release(table, schema, rho=1e6, mechanism="gaussian", insecure_seed=0)
    made = NormalEquations.of(release, Regressors.chosen(release, "y", ["z", "x"], intercept, None))
    assert made is not None
    assert made.gaps is not None
    assert made.joint_gaps is not None
    lead = int(intercept)
    share_x, share_y = table.x.notna().mean(), table.y.notna().mean()
    both = (table.x.notna() & table.y.notna()).mean()
    gaps = [0.0] * lead + [0.0, 1 / share_x - 1, 1 / share_y - 1]
    np.testing.assert_allclose(made.gaps, gaps, rtol=0.01)
    joint = np.zeros((3 + lead, 3 + lead))
    joint[-1, -2] = joint[-2, -1] = 1 / both - 1 / share_x - 1 / share_y + 1
    off = ~np.eye(3 + lead, dtype=bool)
    np.testing.assert_allclose(made.joint_gaps[off], joint[off], atol=0.01)
    assert (made.sampling_shape - made.psd_gram)[-1, -1] > 0.0


# --- bounds on coefficients ---------------------------------------------------------------------------------------------------


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
