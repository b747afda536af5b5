"""Parts of answers by themselves: texts of numbers, verdicts, limits by search, formulas on numbers made for them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy
from scipy import stats

import dpmoments as dpm
from dpmoments.analysis import (
    classifiers,
    components,
    contrasts,
    cross_table,
    description,
    frames,
    functionals,
    group_means,
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
from dpmoments.analysis.components import MahalanobisDistances
from dpmoments.analysis.confidence import (
    Estimate,
    deviations_for,
    fieller_interval,
    format_probability,
    score_test,
)
from dpmoments.analysis.contrasts import ContrastTests, Restrictions
from dpmoments.analysis.description import Description, card, describe
from dpmoments.analysis.functionals import without_redundant_levels
from dpmoments.analysis.group_tests import AnalysisOfVariance, TwoGroups, _tested
from dpmoments.analysis.inverted_test import Search
from dpmoments.analysis.normal_equations import JointTest, NormalEquations
from dpmoments.analysis.regression_results import ExplainedVariance, FittedLine
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.resolvability import (
    NOISE_UNKNOWN,
    NOT_CLEAR_NOISE,
    NOT_CLEAR_ROWS,
    NOT_ESTIMABLE,
    NOT_ESTIMABLE_ROWS,
    estimable,
    not_clear,
    p_values,
    smallest_seen,
)
from dpmoments.base.message import Message
from dpmoments.moments.cells import CountNoise
from dpmoments.moments.models import MomentInterval
from dpmoments.moments.spectral import SpectralNoise
from dpmoments.privacy import sensitivity
from dpmoments.privacy.budget import BudgetKind
from support.coefficients import inverted_p_value
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


AFTER_ESTIMATES = ("std err", "privacy", "sampling", "t", "P>|t|", "[0.025", "0.975]", "verdict", "among all")
"""The heads of a table of estimates."""


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
        *(
            (1e-9, 1e-9, "1.0e-09"),
            (0.4999974, 9.1e-8, "0.49999740"),
            (1.234e-7, 2e-7, "0.00000012"),
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


def test_intervals_widen_with_the_noises_share_squared() -> None:
    privacy, sampling = np.array([0.0, 1.0, 3.0, 0.0]), np.array([1.0, 0.0, 1.0, 0.0])
    z = stats.norm.ppf(0.975)
    wide, narrow = (SimpleNamespace(quantile=lambda *_, q=q, **__: q) for q in (2.5, 1.5))
    found = deviations_for(0.95, wide, privacy, sampling)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [z, 2.5, z + (2.5 - z) * 0.75**2, z])
    np.testing.assert_allclose(deviations_for(0.95, narrow, privacy, sampling), z)  # type: ignore[arg-type]
    np.testing.assert_allclose(deviations_for(0.95, None, privacy, sampling), z)
    t = stats.t.ppf(0.975, [6.0, 1e12, 96.0, 6.0])
    np.testing.assert_allclose(deviations_for(0.95, None, privacy, sampling, 6.0), t)
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


# --- what a release resolves --------------------------------------------------------------------------------------------------


def test_an_effect_is_seen_from_its_size_on() -> None:
    ends = np.array([0.0, 0.0, -INF, NAN, 0.0])
    tops = np.array([0.99, 1.0, 1.0, 1.0, INF])
    assert estimable(ends, tops, -1.0, 1.0).tolist() == [True, False, False, False, False]
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
        count_noise=np.array([12.0, 0.0]),
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
        effect_size=None,
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
        ("", "rows", "± noise", "mean", "± privacy", "± sampling", "95 %"),
        ("a", "1,234", "12", "3.142", "", "", ""),
        ("b", "7", "0", "–", "", "", ""),
        ("difference", "", "", "0.512", "0.030", "0.040", "[0.100, 0.900]"),
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
            own=np.ones(3, dtype=bool),
            present=np.ones(3, dtype=bool),
            sampling_variances=sampling,
            sampling_degrees=np.maximum(counts / per_unit - 1.0, 1.0),
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
    table["less"] = 2.0 - table.z
    schema = dpm.Schema(
        dpm.Numeric("y", -1, 1), *(dpm.Numeric(name, 0, 2) for name in ("z", "less")), dpm.Boolean("flag")
    )
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
    for name, end in (("z", "upper"), ("less", "lower")):
        unclear = release.t_test(name, "flag")
        assert getattr(unclear, end) == 0.0 != unclear.lower + unclear.upper
        assert unclear.p_value == 0.05


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
        test=JointTest(2.5, 2, 100.0, facts.pop("p_value", 0.01), 0.5),
        eta_squared=0.04762,
        eta_squared_interval=(0.0, 0.2),
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
    assert made.remarks[0] == "F(2, 100) = 2.50, p = 0.010, including privacy noise. eta² = 0.0476."
    assert lost.remarks[0].endswith("eta² = noise.")
    assert "equal group variances" in made.remarks[2].lower()
    assert "(5.0 between groups)" in made.remarks[1]
    assert made.heading == ("analysis of variance of age by g: groups differ",)


def test_distances_say_how_many_are_shown() -> None:
    shown = components._SHOWN_ROWS
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


GROUPED = dpm.Schema(dpm.Categorical("g", ["a", "b", "c"]), dpm.Numeric("y", -1, 3))


def grouped(groups: list[int], y: Any, rho: float = 1e4) -> dpm.MomentRelease:
    """Exact moments of rows of three groups, of a law with little noise."""
    rows = np.column_stack([np.eye(3)[groups], y])
    return drawn(template(GROUPED, "gaussian", rho=rho), rows, None)


def test_an_analysis_of_variance_counts_the_groups_that_are_there() -> None:
    rng = np.random.default_rng(0)
    for present in (3, 2, 1):
        groups = [*range(present), *rng.integers(0, present, 300)]
        y = rng.normal(0.5, 0.4, len(groups)).clip(-1, 3) + 0.2 * np.array(groups)
        made = grouped(groups, y).anova("y", "g")
        means = np.array([np.mean(y[np.array(groups) == group]) for group in groups])
        between, total = float(((means - y.mean()) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
        assert made.degrees == (present - 1, len(groups) - present)
        assert made.sum_of_squares == pytest.approx((between, total - between), rel=2e-2, abs=0.01)
        if present == 1:
            assert math.isnan(made.f)
            assert made.verdict != "groups differ"
            continue
        f = (between / (present - 1)) / ((total - between) / (len(groups) - present))
        assert made.f == pytest.approx(f, rel=2e-2)
        assert made.eta_squared == pytest.approx(between / total, rel=2e-2)
        assert made.counts.tolist() == pytest.approx(np.bincount(groups, minlength=3).tolist())
    one = dpm.Schema(dpm.Categorical("g", ["a"]), dpm.Numeric("y", -1, 3))
    alone = drawn(template(one, "gaussian", rho=1e4), np.column_stack([np.ones(50), np.linspace(-1, 3, 50)]), None)
    assert alone.anova("y", "g").p_value == 1.0
    assert alone.anova("y", "g").degrees == (0.0, 49.0)
    assert math.isnan(replace(alone, noise_model=None).anova("y", "g").p_value)


def test_an_interval_of_a_difference_is_within_the_width_of_the_bounds() -> None:
    for y in ([-1, 3, -1, -1, 3, 3], [3, -1, 3, 3, -1, -1]):
        made = grouped([0, 0, 0, 1, 1, 1], np.array(y, dtype=float)).t_test("y", "g", ["g=a", "g=b"], level=0.999)
        assert made.difference == pytest.approx(4 / 3 * np.sign(sum(y[:3]) - sum(y[3:])), abs=0.01)
        assert -4.0 <= made.lower < 0.0 < made.upper <= 4.0
    y = np.array([-0.4, 0.0, 0.3, 1.0, 1.4, 1.1, 1.2, 0.8])
    made = grouped([0, 0, 0, 0, 1, 1, 1, 1], y).t_test("y", "g", ["g=a", "g=b"], level=0.9)
    own = made.sampling_noise
    reach = stats.t.ppf(0.95, made.degrees) * own
    assert (made.lower, made.upper) == pytest.approx((made.difference - reach, made.difference + reach), rel=0.1)


def test_edges_of_noise_are_those_of_its_own_spectrum_where_that_is_wider() -> None:
    schema = dpm.Schema.unit_ball(6)
    for mechanism, wider in (("gaussian", False), ("matrix-laplace", True)):
        law = (
            template(schema, mechanism, rho=1.0).noise if not wider else template(schema, mechanism, epsilon=1.0).noise
        )
        assert law is not None
        spectral = SpectralNoise.of(law)
        beyond = spectral.edge / (2.0 * math.sqrt(spectral.variance))
        assert (beyond > 1.01) is wider
        expected = 3.0 * (2.0 + 8.0 ** (-2 / 3)) * max(1.0, beyond)
        assert functionals._noise_edge(9.0, 8, law) == pytest.approx(expected)
    assert math.isnan(functionals._noise_edge(9.0, 8, None))
    silent = replace(law, terms=tuple(replace(term, variances=0.0 * term.variances) for term in law.terms))
    assert functionals._noise_edge(9.0, 8, silent) == pytest.approx(3.0 * 2.25)


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


def test_groups_have_their_own_variances_where_products_are_released() -> None:
    rng = np.random.default_rng(0)
    n = 3_000
    flag, g, x = rng.random(n) < 0.3, rng.integers(0, 3, n), rng.normal(2.0, 1.0, n).clip(-6, 6)
    x[flag] = (2.0 * x[flag]).clip(-6, 6)
    schema = dpm.Schema(
        dpm.Numeric("x", -6, 6),
        dpm.Boolean("flag"),
        dpm.Categorical("g", ["a", "b", "c"]),
        dpm.Product("x", "flag"),
        dpm.Product("x", "g"),
        dpm.Boolean("other"),
    )
    rows = np.column_stack([x, flag, np.eye(3)[g], x * flag, x[:, None] * np.eye(3)[g], g == 1])
    release = drawn(template(schema, "gaussian", rho=1e6), rows, None)
    for by, members in (("flag", [~flag, flag]), ("g", [g == level for level in range(3)])):
        levels = group_means.Levels.of(release, by)
        sums = group_means.GroupSums.of(release, 0, levels)
        assert sums.own.all()
        assert not sums.some_missing
        np.testing.assert_allclose(sums.counts, [mask.sum() for mask in members], rtol=1e-6)
        np.testing.assert_allclose(sums.means, [x[mask].mean() for mask in members], rtol=1e-6)
        np.testing.assert_allclose(sums.unit**2 * sums.variances, [x[mask].var() for mask in members], rtol=1e-6)
        own = [x[mask].var() / (mask.sum() - 1.0) for mask in members]
        np.testing.assert_allclose(sums.unit**2 * sums.sampling_variances, own, rtol=1e-6)
        assert sums.unit**2 * sums.total_variance == pytest.approx(x.var())
    pooled = group_means.GroupSums.of(release, schema.feature_names.index("other"), levels)
    counts = np.array([(g == level).sum() for level in range(3)])
    share = np.array([0.5, counts[1] + 0.5, 0.5]) / (counts + 1.0)
    np.testing.assert_allclose(pooled.unit**2 * pooled.variances, share * (1.0 - share), rtol=1e-5)
    plainly = dpm.Schema(dpm.Numeric("x", -6, 6), dpm.Categorical("g", ["a", "b", "c"]))
    bare = drawn(template(plainly, "gaussian", rho=1e6, max_rows=2), np.column_stack([x, np.eye(3)[g]]), None)
    sums = group_means.GroupSums.of(bare, 0, group_means.Levels.of(bare, "g"))
    assert not sums.own.any()
    within = sum(x[g == level].var() * (g == level).sum() for level in range(3)) / n
    np.testing.assert_allclose(sums.unit**2 * sums.variances, within, rtol=1e-3)
    independent = counts / 2.0 * (1.0 - 3.0 / (n / 2.0))
    np.testing.assert_allclose(sums.unit**2 * sums.sampling_variances, within / independent, rtol=1e-3)


def test_groups_are_compared_by_sums_less_their_share_of_the_total() -> None:
    rng = np.random.default_rng(3)
    half = rng.normal(size=(6, 6))
    covariance = half @ half.T
    for counts, n in ((np.array([40.0, 60.0, -2.0]), 100.0), (np.array([40.0, 60.0, 0.4]), 50.0)):
        sums: Any = SimpleNamespace(
            counts=counts,
            n_rows=n,
            sums=np.array([30.0, -20.0, 1.0]),
            covariance=covariance,
            total_variance=2.5,
            safe_counts=np.maximum(counts, 1.0),
            count_noise=np.array([2.0, 70.0, NAN]),
            moments=SimpleNamespace(rows_per_unit=2, law=NORMAL),
        )
        squares, added, deviation, reason = group_tests._between_groups(sums)
        shares = np.maximum(counts, 0.0) / n
        shares /= max(1.0, shares.sum())
        scores = sums.sums - shares * 11.0
        centring = np.eye(3) - np.outer(shares, np.ones(3))
        noise = centring @ covariance[3:, 3:] @ centring.T
        rows = np.maximum(counts, 0.0) + 1 / 3
        sampling = 2.0 * centring @ np.diag(rows * 2.5) @ centring.T
        weights = np.array([1 / 40, 1 / 70, 1.0])
        assert squares == pytest.approx((weights * scores**2).sum())
        assert added == pytest.approx((weights * np.diag(noise)).sum())
        variance = sum(
            4.0 * weights[i] * weights[j] * scores[i] * scores[j] * noise[i, j]
            + 2.0 * weights[i] * weights[j] * noise[i, j] ** 2
            for i in range(3)
            for j in range(3)
        )
        assert deviation == pytest.approx(math.sqrt(variance))
        assert reason == not_clear(float(weights @ np.diag(noise)), float(weights @ np.diag(sampling)))


def test_intervals_of_two_means_are_combined_by_the_correlation_of_their_noise() -> None:
    for r in (-0.5, 0.0, 0.7):
        found = group_means._combined(np.array([3.0, 2.0]), np.array([4.0, 2.0]), np.array([r, 1.0]))
        np.testing.assert_allclose(found, [math.sqrt(25.0 - 24.0 * r), 0.0], atol=1e-9)
    counts, noise = np.array([3.9, 4.0, 0.5, 0.6, 5.0]), np.array([2.0, 2.0, 0.0, 0.0, NAN])
    lost = group_means._lost(counts, noise, NORMAL, 0.95)
    assert lost.tolist() == [True, False, True, False, False]
    assert group_means._lost(counts, noise, NORMAL, 0.99).tolist() == [True, True, True, False, False]


# --- counts by two columns ----------------------------------------------------------------------------------------------------


def crossed(**facts: Any) -> cross_table.CrossTable:
    given = dict(
        by="g",
        other="h",
        rows=("g=a", "g=b"),
        labels=("h=x", "h=y"),
        counts=np.array([[1_400, 100], [300, 200]]),
        noise=np.array([[3.0, 3.0], [3.0, 6.0]]),
        below=np.array([[0, 0], [0, 0]]),
        margin_noise=(np.array([4.0, 0.0]), np.array([5.0, 60.0]), 0.0),
        n_rows=2_000,
        statistic=12.345,
        degrees=1,
        p_value=0.001,
        level=0.95,
    )
    return cross_table.CrossTable(**given | facts)  # type: ignore[arg-type]


def test_a_cross_table_says_whether_its_columns_depend() -> None:
    made = crossed()
    assert made.verdict == "dependent"
    assert crossed(p_value=0.0501).verdict == NOT_CLEAR_ROWS
    assert crossed(p_value=0.0501, level=0.94).verdict == "dependent"
    assert crossed(p_value=NAN).verdict == NOISE_UNKNOWN
    p, q = np.array([1_500, 500]) / 2_000, np.array([1_700, 300]) / 2_000
    expected = np.outer(p, q)
    for per_unit in (1, 3):
        sampling = per_unit * 2_000 * (expected * (1.0 - expected)).sum()
        for factor, word in ((0.999, NOT_CLEAR_ROWS), (1.001, NOT_CLEAR_NOISE)):
            noise = np.full((2, 2), math.sqrt(sampling / 4.0 * factor))
            assert crossed(p_value=0.5, noise=noise, rows_per_unit=per_unit).verdict == word
    assert made.heading == ("g by h: 2,000 rows",)
    assert crossed(some_missing=True).heading == ("g by h: 2,000 rows with both",)
    assert made.table() == [
        ("", "h=x", "h=y", "total"),
        ("g=a", "1,400", "100", "1,500 ± 4.0"),
        ("g=b", "300", "200", "500"),
        ("total", "1,700 ± 5.0", "300 ± 60", "2,000"),
    ]
    below = crossed(below=np.array([[0, 1_200], [0, 0]]))
    assert below.table()[1] == ("g=a", "1,400", "100 (below 1,200)", "1,500 ± 4.0")
    below = crossed(below=np.array([[900, 1_200], [800, 700]]))
    assert [row[1:3] for row in below.table()[1:3]] == [("below 900", "below 1,200"), ("below 800", "below 700")]
    assert crossed(margin_noise=(np.ones(2), np.ones(2), 3.0)).heading == ("g by h: 2,000 ± 3.0 rows",)
    assert "“below”" in below.remarks[1]
    assert made.remarks[1] == ""
    assert made.remarks[0].startswith("noise on a count: ± 3.0 to 6.0 (")
    assert crossed(noise=np.full((2, 2), 3.01)).remarks[0].startswith("noise on a count: ± 3.0 (")
    assert made.remarks[2] == (
        "Independence test: χ²(1) = 12.3, p = 0.0010, including privacy noise: the columns are dependent"
    )
    assert crossed(p_value=0.5).remarks[2].endswith(f"dependence {NOT_CLEAR_ROWS}")
    assert len(crossed(p_value=NAN).remarks) == 2
    assert list(crossed(other="g").columns()) == ["g", "g ", "count", "noise"]
    assert made.columns()["h"] == ["h=x", "h=y"] * 2
    assert made.columns()["g"] == ["g=a", "g=a", "g=b", "g=b"]


def test_independence_is_tested_by_counts_less_the_product_of_their_margins() -> None:
    rng = np.random.default_rng(0)
    joint = np.array([[40.0, 20.0, -3.0], [10.0, 25.0, 0.05]])
    half = rng.normal(size=(6, 6))
    privacy = half @ half.T
    p, q = np.array([57.0, 35.05]) / 92.05, np.array([50.0, 45.0, 0.1]) / 95.1
    moved = np.zeros((6, 6))
    for cell in range(6):
        one = np.zeros(6)
        one[cell] = 1.0
        table = one.reshape(2, 3)
        left = table - np.outer(p, table.sum(axis=0)) - np.outer(table.sum(axis=1), q) + np.outer(p, q) * table.sum()
        moved[:, cell] = left.ravel()
    expected = np.outer(p, q).ravel()
    sampling = 150.0 * (np.diag(expected) - np.outer(expected, expected))
    wanted = score_test(moved @ joint.ravel(), moved @ privacy @ moved.T, moved @ sampling @ moved.T, 2, NORMAL)
    assert cross_table.independence_test(joint, privacy, 150.0, NORMAL) == pytest.approx(wanted)
    assert wanted[1] == 2


def test_counts_that_noise_hides_are_below_a_round_number() -> None:
    noisy, noise = np.array([[-5.0, 300.0], [12.0, 130.0]]), np.array([[4.0, 4.0], [150.0, 0.0]])
    ends = np.maximum(noisy, 0.0) + stats.norm.ppf(0.975) * noise
    below = cross_table.counts_below(noisy, noise, np.array([[0, 300], [10, 130]]), NORMAL)
    assert below.tolist() == [[math.floor(ends[0, 0]) + 1, 0], [(math.floor(ends[1, 0] / 10) + 1) * 10, 0]]
    raised = cross_table.counts_below(noisy, noise, np.array([[20, 300], [10, 130]]), NORMAL)
    assert raised[0, 0] == 21
    assert not cross_table.counts_below(noisy, noise, np.zeros((2, 2), dtype=int), None).any()


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


def test_shares_of_classes_are_repaired_and_none_where_noise_hides_the_rows() -> None:
    release: Any = SimpleNamespace(mean=np.array([0.5, 0.4, -0.1, 0.3]))
    levels: Any = SimpleNamespace(weights=np.eye(5)[1:], features=(0, 1, 2, 3))

    def priors(counts: list[float], noise: list[float], known: float) -> list[float]:
        sums: Any = SimpleNamespace(counts=np.array(counts), count_noise=np.array(noise))
        found, share = classifiers._priors(release, levels, sums)
        assert share == pytest.approx(known)
        return found.tolist()  # type: ignore[no-any-return]

    assert priors([9.0, 9.0, 9.0, 9.0], [1.0] * 4, 1.0) == pytest.approx([0.5 / 1.2, 0.4 / 1.2, 0.0, 0.3 / 1.2])
    assert priors([9.0, 8.0, 9.0, 8.1], [1.0, 4.0, 1.0, 4.0], 0.8 / 1.2) == pytest.approx([0.625, 0.0, 0.0, 0.375])
    assert priors([0.51, 0.5, 9.0, 0.6], [0.0, 0.0, 0.0, NAN], 0.8 / 1.2) == pytest.approx([0.625, 0.0, 0.0, 0.375])
    assert priors([0.0] * 4, [1.0] * 4, 0.0) == [0.25] * 4


def test_a_variance_that_noise_dominates_is_the_repaired_one() -> None:
    rows = np.random.default_rng(0).normal(0.5, 0.2, (400, 1)).clip(-1, 3)
    for rho, repaired in ((1e3, False), (1e-4, True)):
        empty = template(dpm.Schema(dpm.Numeric("y", -1, 3)), "gaussian", rho=rho)
        release = drawn(empty, rows, None)
        moments = functionals.LocalMoments.of(release)
        every = functionals.FeatureVariances.of(release, moments)
        value, noise = group_means._total_variance(release, 0)
        assert noise == pytest.approx(every.noise(moments)[0] / 400.0)
        encoded = rows.var() / release.encoding.scale[0] ** 2
        assert bool(encoded <= 2.0 * noise) is repaired
        assert value == (release.unit_ball_covariance[0, 0] if repaired else pytest.approx(encoded))


def test_a_noisy_fit_is_told_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(names: str, least: float, hidden: str = "", identified: bool = False) -> str:
        equations: Any = SimpleNamespace(identified=identified, noise_floor=10.0, least_eigenvalue=least)
        below = np.array([float(name in hidden) for name in names])
        described = MagicMock(deviation_below=below, standard_deviation_is_noise=[False] * len(names))
        described.__getitem__.return_value = described
        monkeypatch.setattr(regression, "describe", lambda _: described)
        return regression._help(None, equations, list(names))  # type: ignore[arg-type]

    assert told("ab", 5.0) == "It takes fewer features, or at least 2.0 times the rows or the budget."
    assert told("a", 5.0) == "It takes at least 2.0 times the rows or the budget."
    assert told("ab", 9.0).endswith("at least 1.5 times the rows or the budget.")
    assert told("ab", 0.51).endswith("at least 19.6 times the rows or the budget.")
    assert told("ab", 0.5) == "It takes fewer features, or far more rows or a far larger budget."
    assert told("abc", 5.0, "bc") == "Noise hides how much b, c vary: leave them out."
    assert told("abc", 5.0, "b") == "Noise hides how much b varies: leave it out."
    assert told("ab", 5.0, "ab").startswith("It takes fewer features")
    assert told("ab", 5.0, "b", identified=True).startswith("More rows")
    assert regression._help(None, None, ["a"]) == ""  # type: ignore[arg-type]


def test_columns_that_a_fit_is_told_to_leave_out_are_those_that_describe_cannot_read() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 1.0, 2_000)
    table = pa.table({"x": x, "wide": rng.normal(0.0, 1.0, 2_000), "y": x + rng.normal(0.0, 1.0, 2_000)})
    schema = dpm.Schema(dpm.Numeric("x", -4, 4), dpm.Numeric("wide", -1e6, 1e6), dpm.Numeric("y", -5, 5))
    named = 0
    for seed in range(4):
        release = dpm.release(table, schema, epsilon=0.3, insecure_seed=seed)
        told, cells = release.ols("y", ["x", "wide"]).help, release.describe().deviation_cells
        for name, cell in zip(("x", "wide"), cells, strict=False):
            blamed = told.startswith("Noise hides how much") and name in told.split(" var")[0]
            named += blamed
            assert not blamed or cell == "noise" or cell.startswith("below")
    assert named > 0


def test_repaired_means_of_groups_of_less_than_half_a_row_are_the_mean_of_all() -> None:
    shares = np.array([0.5, 0.4959, 0.004, 0.0001])
    release: Any = SimpleNamespace(
        mean=np.append(shares, 3.0),
        covariance=np.outer(np.ones(5), np.array([0.2, -0.1, 0.01, 0.0001, 1.0])) + np.zeros((5, 5)),
        sample_size=120,
        schema=SimpleNamespace(feature_bounds=(np.zeros(5), np.full(5, 5.0))),
    )
    levels: Any = SimpleNamespace(weights=np.eye(5)[1:], features=(0, 1, 2, 3))
    found = group_means.repaired_means(release, levels, [4])
    np.testing.assert_allclose(found, [[3.0 + 0.2 / 0.5, 3.0 - 0.1 / 0.4959, 3.0, 3.0]])
    release.sample_size = 126
    np.testing.assert_allclose(group_means.repaired_means(release, levels, [4])[0, 2], 5.0)


# --- functionals of moments ---------------------------------------------------------------------------------------------------


def of_form(variances: np.ndarray, weights: np.ndarray) -> float:
    """Var ΣᵢⱼWᵢⱼNᵢⱼ of noise with independent entries of these variances."""
    return float((np.triu(weights * (2.0 - np.eye(len(weights)))) ** 2 * variances).sum())


def local_moments(**facts: Any) -> functionals.LocalMoments:
    """Of two levels of which each row has one, and two numbers; w = shift + stretch · x."""
    rng = np.random.default_rng(0)
    shift, stretch = np.array([0.1, -0.2, 0.3, 0.4]), np.array([1.0, 2.0, 0.5, 3.0])
    level = (rng.random(50) < 0.3).astype(float)
    z = np.column_stack([np.ones(50), level, 1.0 - level, rng.normal(size=(50, 2))])
    matrix = functionals._shifted(shift, stretch)
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


@pytest.mark.parametrize("opposites", [False, True])
def test_noise_on_functionals_is_that_of_the_entries_they_are_made_of(opposites: bool) -> None:
    made, rng = local_moments(), np.random.default_rng(1)
    assert made.independent_rows == 12.5
    matrix = np.diag([1.0, *made.stretch])
    matrix[1:, 0] = made.shift
    if opposites:
        opposite = np.array([1, 0, -1, -1])
        halves = np.eye(5)
        halves[1, 1] = halves[2, 2] = 0.5
        halves[1, 2] = halves[2, 1] = -0.5
        other = made.with_opposites(opposite)
        np.testing.assert_allclose(other.moments, halves @ made.moments @ halves.T)
        np.testing.assert_allclose(other.location, [0.35, 0.65, 5.0, 6.0])
        assert made.location.tolist() == [0.3, 0.6, 5.0, 6.0]
        assert made.with_opposites(np.full(4, -1)) is made
        made, matrix = other, halves @ matrix
        with refused("covariances are defined for unrepaired moments only"):
            made.covariance(np.array([0, 1]), np.zeros((1, 2, 2)))
    noise = stated_noise(5, True)
    for indices in ([0, 1, 3], [0, 4, 2], [0, 3, -1], [0, 3], [0, 1, 3, 4]):
        weights = rng.normal(size=(len(indices),) * 2)
        weights = weights + weights.T
        if -1 in indices:
            weights[2] = weights[:, 2] = 0.0
        whole = np.zeros((5, 5))
        there = [index for index in indices if index >= 0]
        whole[np.ix_(there, there)] = weights[: len(there), : len(there)]
        expected = of_form(noise, matrix.T @ whole @ matrix)
        assert made.variances(np.array([indices]), weights[None])[0] == pytest.approx(expected)
        if not opposites and -1 not in indices:
            both = np.stack([weights, weights @ weights])
            found = made.covariance(np.array(indices), both)
            assert found[0, 0] == pytest.approx(expected)
            total = made.covariance(np.array(indices), both.sum(axis=0)[None])[0, 0]
            assert found.sum() == pytest.approx(total)
    cells = made.cell_variances(np.array([0, 2, 3]))
    for i, one in enumerate([1, 3, 4]):
        for j, other_one in enumerate([1, 3, 4]):
            whole = (
                np.outer(np.eye(5)[one], np.eye(5)[other_one]) + np.outer(np.eye(5)[other_one], np.eye(5)[one])
            ) / 2
            assert cells[i, j] == pytest.approx(of_form(noise, matrix.T @ whole @ matrix))
    vectors, subtracted = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    chosen = np.array([0, 2, 3])
    for a, own, found in zip(vectors, subtracted, made.variances_of_squares(chosen, vectors, subtracted), strict=True):
        whole = np.zeros((5, 5))
        places = [0, 1, 3, 4]
        whole[np.ix_(places, places)] = np.outer(a, a) - np.diag(own)
        assert found == pytest.approx(of_form(noise, matrix.T @ whole @ matrix))
    unknown = replace(made, law=None, opposite=None)
    assert np.isnan(unknown.variances(np.array([[0, 1]]), np.ones((1, 2, 2)))).all()
    assert np.isnan(unknown.covariance(np.array([0, 1]), np.ones((3, 2, 2)))).all()
    assert unknown.covariance(np.array([0, 1]), np.ones((3, 2, 2))).shape == (3, 3)
    assert np.isnan(unknown.variances_of_squares(chosen, vectors, subtracted)).all()


def test_many_indices_are_converted_as_few_are() -> None:
    made, rng = local_moments(), np.random.default_rng(2)
    weights = rng.normal(size=(2, 5, 5))
    weights = weights + np.swapaxes(weights, 1, 2)
    matrix = functionals._shifted(made.shift, made.stretch)
    indices = np.array([[0, 1, 2, 3, 4], [0, 4, 3, 2, 1]])
    assert indices.shape[1] > functionals._FEW_INDICES
    order = [0, 4, 3, 2, 1]
    found = made._of_released(indices, weights)
    np.testing.assert_allclose(found[0], matrix.T @ weights[0] @ matrix)
    turned = matrix[np.ix_(order, order)]
    np.testing.assert_allclose(found[1], turned.T @ weights[1] @ turned)


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


def test_axes_of_classes_are_those_of_their_means_in_units_within() -> None:
    schema = dpm.Schema(dpm.Categorical("kind", ["a", "b", "c"]), *(dpm.Numeric(name, -9, 9) for name in "xyz"))
    rng = np.random.default_rng(0)
    kind = rng.choice(3, 6_000, p=[0.5, 0.3, 0.2])
    centers = np.array([[0.0, 0.0, 1.0], [2.0, -1.0, 0.0], [-1.0, -2.0, 0.5]])
    numbers = (centers[kind] + rng.normal(size=(6_000, 3)) * [1.0, 0.5, 2.0]).clip(-9, 9)
    release = drawn(template(schema, "gaussian", rho=1e5), np.column_stack([np.eye(3)[kind], numbers]), None)
    made = release.lda("kind", shrinkage=0.0)
    means, shares = np.array([numbers[kind == g].mean(axis=0) for g in range(3)]), np.bincount(kind) / 6_000
    within = sum(share * np.cov(numbers[kind == g].T, bias=True) for g, share in enumerate(shares))
    apart = means - shares @ means
    _, vectors = scipy.linalg.eigh((apart.T * shares) @ apart, within)
    expected = vectors.T[::-1][:2]
    expected = expected * np.sign(expected[np.arange(2), np.abs(expected).argmax(axis=1)])[:, None]
    assert made.axes.shape == (2, 3)
    np.testing.assert_allclose(made.axes, expected, atol=2e-4)
    np.testing.assert_allclose(made.axes @ within @ made.axes.T, np.eye(2), atol=1e-3)
    frame = dict(zip("xyz", numbers[:5].T, strict=True))
    np.testing.assert_allclose(made.transform(frame), (numbers[:5] - shares @ means) @ expected.T, atol=2e-3)
    assert made.verdict == "groups differ"
    assert made.heading == (
        "linear discriminant of kind: between-group differences: groups differ (Wilks' lambda = 0.123, p < 0.0001)",
    )
    unclear = replace(made, p_value=0.0501)
    assert unclear.verdict == made.reason
    assert replace(made, p_value=0.0501, level=0.94).verdict == "groups differ"
    assert replace(made, p_value=NAN).verdict == NOISE_UNKNOWN
    assert "(p" not in replace(made, p_value=NAN).heading[0]
    assert made.remarks[1].endswith("within the groups.")
    assert replace(made, shrinkage=0.5).remarks[1].endswith("with a shrinkage of 0.5.")
    assert "too large" in replace(made, errors=None).remarks[1]
    assert np.isnan(replace(made, errors=None).standard_errors).all()
    head, share, constant, first, *_ = made.table()
    assert head == ("", "kind=a", "kind=b", "kind=c")
    assert share == ("share", *(f"{each:.1%}" for each in shares))
    assert constant[0] == "(intercept)"
    assert " ± " in first[1]
    lost = replace(made, priors=np.array([0.6, 0.4, 0.0]), known_share=0.5)
    assert lost.table()[1] == ("share", "30.0%", "20.0%", "noise")
    none = replace(made, priors=np.full(3, 1.0 / 3.0), known_share=0.0)
    assert none.table()[1] == ("share", "noise", "noise", "noise")
    assert "equal shares are assumed" in none.remarks[0]
    assert classifiers._with_error(1.23456, NAN) == "1.2346"
    assert classifiers._with_error(1.23456, 0.12) == "1.23 ± 0.12"


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
    assert "c: number of rows" in made._describe_lost(made.class_names)
    assert replace(made, priors=np.array([*shares, 0.1]))._describe_lost(made.class_names) == ""


def test_explained_variances_of_levels_vary_as_their_shares_say() -> None:
    """Independent columns, every combination of their levels: variances of forms are sums over these."""
    schema = dpm.Schema(dpm.Categorical("g", ["a", "b", "c"]), dpm.Boolean("flag"))
    rows = np.array([[*np.eye(3)[g], flag] for g in (0, 0, 0, 1, 1, 2) for flag in (0, 0, 0, 1)] * 100)
    release = drawn(template(schema, "gaussian", rho=1e6), rows, None)
    moments, rng = functionals.LocalMoments.of(release, about_zero=True), np.random.default_rng(0)
    for chosen in (np.array([0, 1, 2, 3]), np.array([1, 3]), np.array([2, 0])):
        scale = np.array([1.0, 2.0, 0.5, 1.5])[chosen]
        deviations = (rows[:, chosen] - rows[:, chosen].mean(axis=0)) / scale
        matrix = np.cov(deviations.T, bias=True)
        v, eigenvalues = np.linalg.qr(rng.normal(size=(len(chosen),) * 2))[0], np.linspace(0.5, 1.5, len(chosen))
        for by_deviation in (False, True):
            less = eigenvalues[:, None] * v**2 * by_deviation
            forms = (deviations @ v.T) ** 2 - deviations**2 @ less.T
            privacy, sampling = components._explained_variance_noise(
                release, moments, chosen, scale, v, eigenvalues, matrix, by_deviation=by_deviation
            )
            normal = [
                2.0 * np.trace(np.linalg.matrix_power((np.outer(a, a) - np.diag(b)) @ matrix, 2))
                for a, b in zip(v, less, strict=True)
            ]
            expected = np.maximum(forms.var(axis=0), 0.05 * np.array(normal)) / len(rows)
            np.testing.assert_allclose(sampling, expected, rtol=1e-3)
            units, n = moments.unit[chosen] / scale, float(len(rows))
            on, off = (
                np.column_stack([0.0 * eigenvalues, v * units]),
                np.column_stack([eigenvalues * (not by_deviation), less * units**2]),
            )
            np.testing.assert_allclose(privacy, moments.variances_of_squares(chosen, on, off) / n**2, rtol=1e-6)
    numbers = dpm.release(np.full((500, 2), 0.1), dpm.Schema.unit_ball(2), rho=1.0, insecure_seed=0)
    own = np.eye(2)
    assert components._fourth_cumulants(numbers, np.arange(2), np.ones(2), own, 0.0 * own).tolist() == [0.0, 0.0]
    for bounds, mean, expected in (((-1.0, 3.0), True, 4.0), ((-1.0, 3.0), False, 9.0), ((-5.0, 3.0), False, 25.0)):
        of_bounds: Any = SimpleNamespace(
            schema=SimpleNamespace(feature_bounds=tuple(np.array([each, each]) for each in bounds)),
            noisy_sum=np.zeros(2) if mean else None,
        )
        found = components._largest_possible_variance(of_bounds, np.arange(2), np.array([1.0, 2.0]))
        assert found == pytest.approx(expected * 1.25)


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
    joint_gaps = np.array([[0.0, joint], [joint, 0.0]])
    moments: Any = SimpleNamespace(independent_rows=rows, law=NORMAL, gaps=np.array([gaps, 0.0]), joint_gaps=joint_gaps)
    return pairs._Errors(
        *given,
        variances,
        i=np.array([0]),
        j=np.array([1]),
        moments=moments,
        times=np.array([times]),
        of_normal_rows=np.array([True]),
    )


def test_errors_of_correlations_are_those_of_the_derivation() -> None:
    made = errors(0.3, (0.04, 0.01, 0.02), 103.0, gaps=0.2, joint=0.1)
    rho = np.array([0.5])
    privacy, sampling = made.parts(rho)
    assert privacy[0] == pytest.approx(0.04 - 2 * 0.5 * 0.01 + 0.25 * 0.02)
    assert sampling[0] == pytest.approx(((1 - 0.25) ** 2 + 0.2 * (1 - 0.125) + 0.1 * 1.25) / 100)
    assert errors(0.3, (0.0, 0.5, 0.0), 103.0).privacy(rho)[0] == 0.0
    heavy = errors(0.3, (0.04, 0.01, 0.02), 103.0, gaps=0.2, joint=0.1, times=3.0).parts(rho)[1]
    assert heavy[0] == pytest.approx((3 * (1 - 0.25) ** 2 + 0.2 * (1 - 0.125) + 0.1 * 1.25) / 100)
    near = errors(0.3, (0.0, 0.0, 0.0), 103.0)._between(np.array([0.3]))
    assert near[1][0] == pytest.approx((1 - 0.09) ** 2 / 100)


def three_correlations(**facts: Any) -> pairs.Correlations:
    """Of a and b clear, of a and c as noisy as sampled, of b and c made of one column."""

    def both(one: float, other: float, third: float, diagonal: float = 1.0) -> np.ndarray:
        return np.array([[diagonal, one, other], [one, diagonal, third], [other, third, diagonal]])

    given = dict(
        feature_names=("a", "b", "c"),
        correlation=both(-0.5, 0.123, 0.9),
        privacy_noise=both(0.03, 0.1, 0.01, 0.0),
        sampling_noise=both(0.04, 0.1, 0.01, 0.0),
        lower=both(-0.6, -0.2, 0.88),
        upper=both(-0.4, 0.4, 0.92),
        level=0.9,
        p_value=both(1e-5, 0.4, 1e-9, 0.0),
        comparable=np.array([[False, True, True], [True, False, False], [True, False, False]]),
        columns_of_features=("a", "b", "b"),
    )
    return pairs.Correlations(**given | facts)  # type: ignore[arg-type]


def test_correlations_say_a_sign_or_why_not() -> None:
    made = three_correlations()
    assert made.verdict == (("", "negative", NOT_CLEAR_NOISE), ("negative", "", ""), (NOT_CLEAR_NOISE, "", ""))
    assert made.heading == ("correlations: 1 of 2 pairs hold among all (10 % chance that any of these is false)",)
    assert made.table() == [
        ("pair", "correlation", "± privacy", "± sampling", "90 %", "verdict", "among all"),
        ("a ~ b", "-0.500", "0.030", "0.040", "[-0.600, -0.400]", "negative", "holds"),
        ("a ~ c", "0.12", "0.10", "0.10", "[-0.20, 0.40]", NOT_CLEAR_NOISE, ""),
    ]
    assert three_correlations(partial=True).heading[0].startswith("partial correlations, given all others")
    assert three_correlations(comparable=None).verdict[2][1] == "positive"
    assert [row[0] for row in three_correlations(comparable=None).table()[1:]] == ["b ~ c", "a ~ b", "a ~ c"]
    np.testing.assert_array_equal(made.comparisons[0], [1e-5, 0.4])
    np.testing.assert_array_equal(three_correlations(comparable=None).comparisons[0], [1e-5, 0.4, 1e-9])
    assert three_correlations(p_value=None).comparisons[0].shape == (2,)
    assert three_correlations(cutoff=1e-6).verdict == made.verdict
    assert made.holds_among_all[0, 1]
    assert not three_correlations(cutoff=1e-6).holds_among_all.any()
    whole = three_correlations(lower=-np.ones((3, 3)), upper=np.ones((3, 3)))
    assert whole.verdict[1][0] == NOT_ESTIMABLE_ROWS
    assert whole.verdict[2][0] == NOT_ESTIMABLE
    unknown = three_correlations(p_value=None, noise_known=False)
    assert unknown.verdict[1][0] == NOISE_UNKNOWN
    assert unknown.remarks[2]
    assert not made.remarks[2]
    lost = three_correlations(identified=False, p_value=np.full((3, 3), NAN))
    assert lost.verdict[1][0] == NOT_ESTIMABLE
    assert lost.table()[1:] == []
    assert NOT_ESTIMABLE in lost.heading[0]
    assert replace(lost, noise_known=False).verdict[1][0] == NOISE_UNKNOWN
    assert three_correlations(normal_rows=True).remarks[1].startswith("± sampling assumes normal rows")
    assert made.remarks[1] == replace(lost, normal_rows=True).remarks[1] == ""
    some = made[["c", "a"]]
    assert some.feature_names == ("c", "a")
    assert some.columns_of_features == ("b", "a")
    assert some.correlation[1, 0] == 0.123
    assert replace(made, columns_of_features=())[["c", "a"]].columns_of_features == ()
    with refused("a correlation is of two features: name two at least"):
        made[["a"]]
    plainly = made.columns()
    assert plainly["feature"] == ["a", "a", "b"]
    assert plainly["other"] == ["b", "c", "c"]
    assert plainly["p_value"] == [1e-5, 0.4, 1e-9]
    assert plainly["lower"] == [-0.6, -0.2, 0.88]


def test_of_many_correlations_sixty_are_shown() -> None:
    size, shown = 12, pairs._SHOWN_PAIRS
    names = tuple(f"x{index}" for index in range(size))
    full = np.full((size, size), 0.1)
    made = three_correlations(
        feature_names=names,
        **dict.fromkeys(("correlation", "privacy_noise", "sampling_noise", "lower", "upper", "p_value"), full),
        comparable=None,
        columns_of_features=(),
    )
    assert len(made.table()) == shown + 1
    assert made.remarks[0].startswith("… 6 more pairs:")
    comparable = np.ones((size, size), dtype=bool)
    comparable[-1, :6] = False
    assert replace(made, comparable=comparable).remarks[0] == ""
    comparable[-1, 5] = True
    assert replace(made, comparable=comparable).remarks[0].startswith("… 1 more pairs:")


def test_fishers_intervals_keep_their_distance_from_one() -> None:
    r, privacy, sampling = (
        np.array([0.5, -0.99, 0.0, 0.3]),
        np.array([0.01, 0.02, 0.0, 0.0]),
        np.array([0.02, 0.02, 0.0, 0.0]),
    )
    low, high, size = pairs._fisher_interval(r, privacy, sampling, np.full(4, 2.0))
    deviation = math.sqrt(0.03)
    unit = deviation / 0.75
    assert (low[0], high[0]) == pytest.approx(
        (math.tanh(math.atanh(0.5) - 2 * unit), math.tanh(math.atanh(0.5) + 2 * unit))
    )
    assert size[0] == pytest.approx(math.atanh(0.5) / unit)
    inside = -(1 - math.sqrt(0.04))
    assert low[1] == pytest.approx(math.tanh(math.atanh(inside) - 2 * 0.2 / (1 - inside**2)))
    assert size[1] == pytest.approx(-math.atanh(inside) * (1 - inside**2) / 0.2)
    assert (low[2], high[2], size[2]) == (0.0, 0.0, 0.0)
    assert (low[3], high[3], size[3]) == (pytest.approx(0.3), pytest.approx(0.3), INF)
    np.testing.assert_allclose(
        pairs._inside(np.array([1.0, -1.0, 1.0]), np.array([0.0, 0.25, 1.5])), [1.0, -0.75, 0.0], atol=1e-6
    )


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
        ("age +", "is not a linear restriction: write it as 'age + 2*height ="),
        ("age * sex=f", "is not a linear restriction: write it as 'age + 2*height ="),
        ("2/age", "is not a linear restriction: write it as 'age + 2*height ="),
        ("age/0", "is not a linear restriction: write it as 'age + 2*height ="),
        ("(age", "is not a linear restriction: write it as 'age + 2*height ="),
        ("age sex=f", "is not a linear restriction: write it as 'age + 2*height ="),
        ("height", "is not a coefficient of this fit"),
        ("2 = 2", "a restriction has no coefficient of the fit (that of a"),
        ([1.0, 2.0], "is not one of restrictions: it has a column for each of the"),
        ([0.0, math.inf, 0.0, 0.0], "the coefficients and values of restrictions are finite"),
        ([], "no restriction is given: name a coefficient, as in 'age = 0"),
    ):
        with refused((code, "is not one of restrictions: it has a column for each of the")):
            Restrictions.of(given, NAMES)
    with refused("a mapping gives a number for each name: {", TypeError):
        Restrictions.of({"age": True}, NAMES)
    with refused("has too few rows: it is merged into the reference level", level="sex=x"):
        Restrictions.of("`sex=x`", NAMES, merged=["sex=x"])
    for text, name in (
        ("#age", "#age"),
        ("[age", "["),
        ("age + ~", "~"),
        ("height2 = 1", "height2"),
        ("age + (sx)", "sx"),
        ("`#a`", "#a"),
    ):
        with refused("is not a coefficient of this fit", name=name):
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

    equations: Any = SimpleNamespace(
        delta_method_valid=valid, after_repair=False, degrees_of_freedom=1234.0, contrast=contrast
    )
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
    assert head == ("", "estimate", *AFTER_ESTIMATES)
    assert first == ("a", "2.00", "0.50", "0.30", "0.40", "4.00", first[6], "1.00", "3.00", "positive", "holds")
    assert second[0] == "b"
    assert third[1:9] == ("–", "–", "–", "–", "–", third[6], "−∞", "∞")
    np.testing.assert_allclose(made.tvalues, [4.0, -0.1 / math.hypot(0.3, 0.3), NAN])
    np.testing.assert_allclose(made.sd, [0.5, math.hypot(0.3, 0.3), NAN])
    moved = given_contrasts(True, [1.5, 0.0, 0.0])
    assert moved.table()[1][:2] == ("a = 1.5", "3.50")
    assert moved.table()[1][7:9] == ("2.50", "4.50")
    assert moved.verdict[0] == "higher"
    np.testing.assert_allclose(moved.effect, [3.5, -0.1, NAN])
    np.testing.assert_allclose(moved.conf_int().iloc[0], [2.5, 4.5])
    assert moved.conf_int().columns.tolist() == ["lower", "upper"]
    inverted = given_contrasts(False, [0.0, 0.0, 0.0])
    assert inverted.heading[0].startswith("test of 3 combinations of coefficients, by test inversion")
    assert "residual" not in inverted.heading[0]
    assert inverted.table()[0][5:7] == ("z", "P>|z|")
    np.testing.assert_allclose(inverted.tvalues, [stats.norm.isf(5e-5), -stats.norm.isf(0.4), NAN], rtol=1e-6)
    assert inverted.remarks[1]
    assert not made.remarks[1]
    assert made.remarks[0].endswith("sampling error (robust)")
    plainly = made.columns()
    assert plainly["lower"] == [1.0, -1.0, -INF]
    assert plainly["p_value"] == [1e-4, 0.8, None]
    assert contrasts.bonferroni(0.95, "bonferroni", 0) == pytest.approx(0.95)
    assert contrasts.bonferroni(0.9, "bonferroni", 4) == pytest.approx(0.975)
    with refused("use 'bonferroni', or None for intervals that hold one by one"):
        contrasts.bonferroni(0.9, "holm", 4)  # type: ignore[arg-type]


def test_joint_tests_say_which_terms_are_related() -> None:
    tests = (
        JointTest(12.25, 2, 94.0, 1e-5, 0.5),
        JointTest(0.5, 1, 94.0, 0.5, 0.51),
        JointTest(0.4, 1, 94.0, 0.6, 0.49),
        JointTest(0.4, 1, INF, 0.6, NAN),
        JointTest(NAN, 3, 94.0, NAN, NAN),
    )
    made = contrasts.WaldTests(tuple("abcde"), tests, "income")
    assert made.verdict == ("related", NOT_CLEAR_NOISE, NOT_CLEAR_ROWS, NOT_CLEAR_NOISE, NOISE_UNKNOWN)
    assert made.heading == ("joint tests of coefficients, regression of income",)
    assert replace(made, names=("a",), tests=tests[:1]).heading == ("joint test of coefficients, regression of income",)
    assert made.remarks[0].startswith("χ² is the least statistic")
    assert replace(made, names=("a", "b"), tests=tests[:2]).remarks == (
        "The covariance includes privacy noise and sampling error.",
    )
    head, *rows = made.table()
    assert head == ("term", "statistic", "p", "verdict", "among all")
    assert rows[0] == ("a", "F(2, 94) = 12.25", rows[0][2], "related", "holds")
    assert rows[3][1] == "χ²(1) = 0.40"
    assert rows[4][1].endswith("= –")
    assert replace(made, finding="refuted").table()[0][0] == "hypothesis"
    assert replace(made, finding="refuted").verdict[0] == "refuted"
    np.testing.assert_array_equal(made.df_num, [2, 1, 1, 1, 3])
    np.testing.assert_array_equal(made.df_denom, [94, 94, 94, INF, 94])
    np.testing.assert_array_equal(made.statistic, [12.25, 0.5, 0.4, 0.4, NAN])


def lines(valid: bool, **facts: Any) -> Any:
    def contrast(row: np.ndarray, level: float, value: float) -> Estimate:
        assert row @ [10.0, 2.0] == value
        return Estimate(0.5, -1.0 - level, 2.0 + level, 0.5, 0.3, 0.4, level)

    return SimpleNamespace(
        delta_method_valid=valid,
        privacy_covariance=np.diag([1.0, 0.04]),
        sampling_covariance=np.diag([3.0, 0.05]),
        degrees_of_freedom=50.0,
        coefficients=np.array([10.0, 2.0]),
        unrefuted=np.array([10.0, 2.0]),
        in_units=lambda solution: solution,
        residual_deviation=lambda level: 5.0 + level,
        **{"contrast": contrast} | facts,
    )


def test_predictions_have_intervals_of_the_line_and_of_new_rows() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 10.0], [0.0, 10.0]])
    made = contrasts.Predictions(rows, lines(True), rows @ [10.0, 2.0], 0.9)
    errors, t = np.sqrt([4.0, 4.0 + 9.0, 9.0]), stats.t.ppf(0.95, 50)
    np.testing.assert_allclose(made.se_mean, errors)
    middle = np.array([10.0, 30.0, 20.0])
    np.testing.assert_allclose(made.limits(), np.column_stack([middle - t * errors, middle + t * errors]))
    wide = np.hypot(t * errors, t * 5.95)
    np.testing.assert_allclose(made.limits(obs=True), np.column_stack([middle - wide, middle + wide]))
    narrow, t80 = made.limits(level=0.8), stats.t.ppf(0.9, 50)
    np.testing.assert_allclose(narrow[:, 1] - middle, t80 * errors)
    np.testing.assert_allclose(made.limits(True, 0.8)[:, 1] - middle, np.hypot(t80 * errors, t80 * 5.9))
    assert made.conf_int().columns.tolist() == ["lower", "upper"]
    np.testing.assert_array_equal(made.conf_int(obs=True, level=0.8), made.limits(True, 0.8))
    head, first, *_ = made.table()
    assert head == ("row", "prediction", "std err", "line, 90 %", "new row, 90 %")
    assert first[:3] == ("0", "10.0", "2.0")
    assert first[3] == f"[{middle[0] - t * 2:.1f}, {middle[0] + t * 2:.1f}]"
    assert made.remarks == ("", "")
    for size, shown, more in ((20, 20, ""), (21, 20, "… 1 more rows")):
        many = contrasts.Predictions(np.ones((size, 2)), lines(True), np.ones(size), 0.9)
        assert len(many.table()) == shown + 1
        assert many.remarks[0] == more


def test_predictions_by_test_inversion_are_contrasts_about_the_prediction() -> None:
    rows = np.array([[1.0, 1.0], [0.0, 0.0], [NAN, 1.0]])
    made = contrasts.Predictions(rows, lines(False), np.array([12.0, 0.0, NAN]), 0.9)
    np.testing.assert_allclose(made.limits(), [[12.0 - 1.9, 12.0 + 2.9], [0.0, 0.0], [NAN, NAN]])
    np.testing.assert_allclose(made.se_mean, [0.5, 0.0, NAN])
    open_ended = lines(False, contrast=lambda *given: Estimate.not_estimable(given[1]))
    lost = contrasts.Predictions(rows[:1], open_ended, np.array([12.0]), 0.9)
    assert lost.table()[1][1:4] == ("–", "–", "[−∞, ∞]")
    assert lost.remarks[1].startswith("–: the release does not bound")
    assert lost.columns()["mean"] == [None]
    most = contrasts.MAX_INVERTED_ROWS
    contrasts.Predictions(np.zeros((most, 2)), lines(False), np.zeros(most), 0.9)
    contrasts.Predictions(np.zeros((most + 1, 2)), lines(True), np.zeros(most + 1), 0.9)
    with refused("are predicted with intervals at once", rows=most + 1):
        contrasts.Predictions(np.zeros((most + 1, 2)), lines(False), np.zeros(most + 1), 0.9)


def test_noise_without_a_law_grows_with_the_rows_of_a_unit() -> None:
    moment, n = np.diag([0.3, 0.2]), 200
    for budget in (dpm.PrivacyBudget.pure(2.0), dpm.PrivacyBudget.zcdp(0.5)):
        for per_unit in (1, 3):
            for bound, square in ((1.0, 1.0), (None, 0.25)):
                release: Any = SimpleNamespace(
                    privacy=SimpleNamespace(budget=budget, neighbors=dpm.Neighbors.REPLACE_ONE, rows_per_unit=per_unit),
                    schema=SimpleNamespace(row_norm=bound),
                    sample_size=n,
                )
                if budget.kind is BudgetKind.PURE:
                    rate = 2.0 / per_unit / sensitivity.gram_nuclear(dpm.Neighbors.REPLACE_ONE, 2).value
                    variance = 3 / (2.0 * rate**2)
                else:
                    variance = sensitivity.gram_frobenius(dpm.Neighbors.REPLACE_ONE, 2).value ** 2 * per_unit**2 / 2.0
                expected = variance * square / n**2
                assert regression._typical_noise(release, moment) == pytest.approx(expected)
    assert regression._typical_noise(release, np.diag([-1.0, 0.5])) == 0.0


def line(**facts: Any) -> FittedLine:
    """Of two features, the first clear; equations are stated, not solved."""
    estimates = (
        Estimate(1.0, 0.5, 1.5, 1e-4, 0.2, 0.1),
        Estimate(3.0, 2.0, 4.0, 1e-5, 0.4, 0.3),
        Estimate(0.1, -0.5, 0.7, 0.7, 0.3, 0.2),
    )
    equations = SimpleNamespace(
        noise=SimpleNamespace(count_variance=9.0),
        identified=True,
        delta_method_valid=True,
        after_repair=False,
        degrees_of_freedom=97.0,
        residuals_are_noise=False,
        about_sampling=" (about sampling).",
        about_residuals=" About residuals.",
        overall_test=JointTest(20.0, 2, 97.0, 1e-6, 0.5),
        residual_deviation=lambda: 0.75,
        estimates=lambda level: tuple(replace(each, level=level) for each in estimates),
    )
    given = dict(
        method="least squares",
        target="y",
        features=("a", "b"),
        coefficients=np.array([3.0, 0.1]),
        intercept=1.0,
        alpha=0.0,
        references={},
        too_few=(),
        level=0.95,
        equations=equations,
        explained=ExplainedVariance(0.5, 0.04, 0.03, 97.0, 100.0),
        unit_ball_coefficients=np.array([0.3, 0.4]),
        unit_ball_error_bound=0.1,
        error_bound_note="a note",
        released_r_squared=0.6,
        n_rows=100,
        with_intercept=True,
        release=SimpleNamespace(
            schema=dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Numeric("b", 0, 1), dpm.Numeric("y", 0, 1))
        ),
        help="Fewer features.",
    )
    return FittedLine(**given | facts)  # type: ignore[arg-type]


def without(made: FittedLine, **facts: Any) -> FittedLine:
    """The same fit with other equations."""
    return replace(made, equations=SimpleNamespace(**vars(made.equations) | facts))  # type: ignore[arg-type]


def test_r_squared_is_a_number_only_where_noise_leaves_one() -> None:
    made, z = line(), stats.norm.ppf(0.975)
    assert made.r_squared == 0.5
    assert made.adjusted_r_squared == pytest.approx(1 - 0.5 * 99 / 97)
    assert made.r_squared_interval() == pytest.approx((0.5 - 0.05 * z, 0.5 + 0.05 * z))
    assert made.r_squared_text == "R² = 0.500 (95% interval 0.402 to 0.598)"
    assert made.r_squared_interval(0.8)[1] == pytest.approx(0.5 + 0.05 * stats.norm.ppf(0.9))
    low = line(explained=ExplainedVariance(0.05, 0.04, 0.0, 97.0, 100.0))
    assert low.r_squared_text == "R² is below 0.128 (95% interval 0.000 to 0.128)"
    assert math.isnan(low.r_squared)
    assert math.isnan(low.adjusted_r_squared)
    high = line(explained=ExplainedVariance(0.95, 0.04, 0.0, 97.0, 100.0))
    assert high.r_squared_text == "R² is at least 0.872 (95% interval 0.872 to 1.000)"
    by_sampling = line(explained=ExplainedVariance(0.5, 0.04, 0.9, 97.0, 100.0))
    assert by_sampling.r_squared == 0.5
    assert by_sampling.r_squared_interval() == (0.0, 1.0)
    lost = line(explained=ExplainedVariance(0.5, 0.9, 0.0, 97.0, 100.0))
    assert lost.r_squared_text == f"R² is {NOT_ESTIMABLE}"
    unclear = without(made, overall_test=JointTest(1.0, 2, 97.0, 0.0501, 0.5))
    assert unclear.is_noise
    assert unclear.r_squared_interval()[0] == 0.0
    assert not without(made, overall_test=JointTest(1.0, 2, 97.0, 0.0499, 0.5)).is_noise
    unidentified = without(made, identified=False)
    assert unidentified.r_squared_interval() == (pytest.approx(0.5 - 0.05 * z), 1.0)
    assert unidentified.r_squared_text == f"R² is {NOT_ESTIMABLE}"
    unknown = line(explained=None, equations=None)
    assert unknown.r_squared == 0.6
    assert unknown.r_squared_interval() == (0.0, 1.0)
    assert math.isnan(unknown.adjusted_r_squared)
    assert unknown.r_squared_text == "R² = 0.60 (at the released moments; too large by an unknown amount)"
    assert unknown.is_noise
    certain = line(explained=ExplainedVariance(0.5, 1e-6, 0.0, 97.0, 100.0))
    assert certain.r_squared_text.startswith("R² = 0.5000 ")


def test_a_fit_says_what_it_is_of() -> None:
    made = line()
    assert made.heading == (
        "least squares regression of y on 2 features, 100 ± 3.0 rows",
        "R² = 0.500 (95% interval 0.402 to 0.598), adjusted 0.490, both less what noise adds; residual standard deviation 0.75; "
        "overall test: F(2, 97) = 20.00, p < 0.001",
    )
    exact = line(explained=replace(made.explained, privacy_error=1e-6))
    assert "adjusted 0.490; residual" in exact.heading[1]
    assert "residual" not in without(made, residual_deviation=lambda: 0.0).heading[1]
    assert "residual" not in without(made, delta_method_valid=False).heading[1]
    assert math.isnan(without(made, residuals_are_noise=True).residual_standard_deviation)
    lost = without(made, overall_test=JointTest(1.0, 2, 97.0, 0.3, 0.5))
    assert lost.heading[0] == f"WHOLE FIT: {NOT_CLEAR_NOISE.upper()} (p = 0.3). Fewer features."
    of_levels = line(features=("g=b", "g=c"), references={"g": "g=a", "h": "h=x"}, too_few=("g=d",))
    assert (
        of_levels.heading[2]
        == "levels of g are compared with g=a; merged into the reference level (rare, noise hides them): g=d"
    )
    ridge = line(method="ridge", alpha=0.0123456, too_few=("g=d",), features=("a",), coefficients=np.array([3.0]))
    assert ridge.heading[0] == "ridge regression of y on 1 feature, alpha = 0.01235, 100 ± 3.0 rows"
    assert ridge.heading[-1] == "counted as an average level (rare, noise hides them): g=d"
    assert "residual" not in ridge.heading[1]
    assert made.verdict == ("", "positive", NOT_CLEAR_NOISE)
    assert line(cutoff=1e-6).verdict == made.verdict
    assert made.holds_among_all.tolist() == [False, True, False]
    assert not line(cutoff=1e-6).holds_among_all.any()
    head, constant, first, _ = made.table()
    assert head == ("", "coef", *AFTER_ESTIMATES)
    assert constant[0] == "(intercept)"
    assert (first[0], first[1], first[-4:]) == ("a", "3.00", ("2.00", "4.00", "positive", "holds"))
    assert without(made, delta_method_valid=False).table()[0][5:7] == ("z", "P>|z|")
    assert ridge.table() == [("", "coef"), ("(intercept)", "1"), ("a", "3")]
    unknown = line(equations=None, explained=None)
    assert unknown.verdict == (NOISE_UNKNOWN,) * 3
    assert unknown.table()[1] == ("(intercept)", "1", NOISE_UNKNOWN)
    assert unknown.remarks[0] == "No standard errors: a note."
    assert (
        line(equations=None, error_bound_note="").remarks[0] == "No standard errors: the noise distribution is unknown."
    )
    assert made.remarks[0].endswith("sampling error (about sampling). About residuals.")
    assert "test inversion" in without(made, identified=False).remarks[0]
    assert ridge.remarks[0].startswith("The errors of penalized coefficients are not known")
    assert made.remarks[-1].startswith("Privacy noise moved the encoded coefficients (norm 0.5) by at most 0.1, ")
    for bound in (0.5, None):
        assert not any("moved" in each for each in line(unit_ball_error_bound=bound).remarks)
    assert any("moved" in each for each in line(unit_ball_error_bound=0.499).remarks)


def test_parts_of_a_fit_leave_its_constant_out() -> None:
    made = line()
    assert made.names == ("(intercept)", "a", "b")
    np.testing.assert_allclose(made.lower, [2.0, -0.5])
    np.testing.assert_allclose(made.upper, [4.0, 0.7])
    np.testing.assert_allclose(made.privacy_errors, [0.4, 0.3])
    np.testing.assert_allclose(made.sampling_errors, [0.3, 0.2])
    np.testing.assert_allclose(made.p_values, [1e-5, 0.7])
    np.testing.assert_allclose(made.standard_errors, [0.5, math.hypot(0.3, 0.2)])
    assert made.params.to_dict() == {"(intercept)": 1.0, "a": 3.0, "b": 0.1}
    assert made.bse["a"] == pytest.approx(0.5)
    assert made.pvalues["b"] == 0.7
    assert made.tvalues["a"] == pytest.approx(6.0)
    assert (made.df_resid, made.df_model, made.nobs) == (97.0, 2.0, 100)
    assert made.fvalue == 20.0
    assert without(made, overall_test=JointTest(20.0, 2, INF, 1e-6, NAN)).fvalue == 10.0
    assert made.to_dict()["intercept_lower"] == 0.5
    np.testing.assert_allclose(made.predict({"a": [0.0, 1.0], "b": [0.5, 1.0]}), [1.05, 4.1])
    assert made.conf_int().loc["a"].tolist() == [2.0, 4.0]
    assert dict(zip(made.features, made.identified.coefficients, strict=True)) == {"a": True, "b": True}
    unknown = line(equations=None, explained=None)
    assert unknown.df_resid == 97.0
    assert unknown.params.to_dict() == {"(intercept)": 1.0, "a": 3.0, "b": 0.1}
    assert unknown.tvalues.isna().all()
    assert math.isnan(unknown.fvalue)
    assert line(equations=None, n_rows=2).df_resid == 1.0
    assert np.isnan(unknown.lower).all() or np.isinf(unknown.lower).all()
    with refused("no standard errors", note="a note"):
        unknown.cov_params()
    with refused("no standard errors: the noise distribution is"):
        line(equations=None, error_bound_note="").cov_params()
    with refused("fit has no standard errors", method="ridge"):
        line(method="ridge").conf_int()
    with refused("noise is too large for a covariance matrix of the"):
        without(made, delta_method_valid=False).cov_params()
    for ask in (
        lambda: made.wald_test_terms(weights=1.0),  # type: ignore[call-arg]
        lambda: made.wald_test("a", weights=1.0),  # type: ignore[call-arg]
        lambda: made.t_test("a", weights=1.0),  # type: ignore[call-arg]
        lambda: made.get_prediction({"a": [1.0], "b": [1.0]}, weights=1.0),  # type: ignore[call-arg]
    ):
        with refused("takes no weights=", TypeError):
            ask()


def stated_noise(size: int, constant: bool) -> np.ndarray:
    """Variances of independent entries of the noise: of a count, of sums, of squares and of products."""
    variances = np.ones((size, size)) + np.eye(size)
    if constant:
        variances[0] = variances[:, 0] = 3.0
        variances[0, 0] = 4.0
    return variances


def of_product(variances: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """Cov((N b)_i, (N b)_j) of the first entries, one entry of the noise at a time."""
    result = np.zeros((size, size))
    for p in range(len(b)):
        for q in range(p, len(b)):
            matrix = np.zeros((len(b), len(b)))
            matrix[p, q] = matrix[q, p] = 1.0
            moved = (matrix @ b)[:size]
            result += variances[p, q] * np.outer(moved, moved)
    return result


@pytest.mark.parametrize("constant", [True, False])
def test_r_squared_and_its_errors_are_those_of_the_derivation(constant: bool) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(0.2, 1.0, (400, 3))
    rows[:, 2] += 0.8 * rows[:, 0] - 0.3 * rows[:, 1]
    z = np.column_stack([np.ones(400), rows]) if constant else rows
    moments, k = z.T @ z, z.shape[1] - 1
    law = gaussian(3, 2.0, 1.0, 3.0, 4.0).law()
    design = np.eye(4)[0 if constant else 1 :]
    equations = NormalEquations(moments, 400.0, constant, law, design, rows_per_unit=2)
    variances = stated_noise(k + 1, constant)
    target = np.append(np.zeros(k), 1.0)
    if constant:
        target[0] = -moments[0, -1] / moments[0, 0]
    total = target @ moments @ target
    solution = np.linalg.solve(moments[:-1, :-1], moments[:-1, -1])
    slopes = 0.7 * solution[int(constant) :]
    of_line = np.append([(moments[0, -1] - moments[0, 1:-1] @ slopes) / 400.0] if constant else [], slopes)
    ridge = np.diag([0.0] * int(constant) + [30.0] * 2)
    for found, b, inverse, times in (
        (ExplainedVariance.of_population(equations), solution, np.linalg.inv(moments[:-1, :-1]), 1.0),
        (ExplainedVariance.of_line(equations, slopes, 30.0), of_line, np.linalg.inv(moments[:-1, :-1] + ridge), 2.0),
    ):
        beyond = np.append(-b, 1.0)
        product = inverse @ of_product(variances, beyond, k)
        by_mean = of_product(variances, target, k)[0, 0] / 400.0 if constant else 0.0
        share = 1.0 - (beyond @ moments @ beyond + times * np.trace(product)) / (total + by_mean)
        gradient = ((1.0 - share) * np.outer(target, target) - np.outer(beyond, beyond)) / total
        privacy = (np.triu(gradient * (2.0 - np.eye(k + 1))) ** 2 * variances).sum()
        privacy += 2.0 * times * np.trace(product @ product) / total**2
        sampling = (4.0 * share / 200.0 + 2.0 * 2 / 200.0**2) * (1.0 - share) ** 2
        assert found.share == pytest.approx(share)
        assert found.privacy_error == pytest.approx(math.sqrt(privacy))
        assert found.sampling_error == pytest.approx(math.sqrt(sampling))
        assert (found.degrees_of_freedom, found.n_rows) == (400.0 - k, 400.0)
        assert found.adjusted == pytest.approx(1.0 - (1.0 - share) * (400.0 - constant) / (400.0 - k))
    empty = replace(equations, moments=np.zeros_like(moments) + np.diag([400.0] + [0.0] * k))
    for nothing in (ExplainedVariance.of_line(empty, factor * slopes, 30.0) for factor in (0.0, 1.0)):
        assert (nothing.share, nothing.privacy_error, nothing.sampling_error) == (0.0, INF, INF)
    loud = replace(equations, noise=gaussian(3, 2e9, 1e9, 3e9, 4.0).law())
    drowned = ExplainedVariance.of_line(loud, slopes, 30.0)
    assert drowned.privacy_error > 1.0
    assert drowned.sampling_error == pytest.approx(math.sqrt(4.0 / 200.0**2))
    few = ExplainedVariance.of_line(replace(equations, n_rows=2.0), slopes, 30.0)
    assert few.degrees_of_freedom == 1.0


@pytest.mark.parametrize("constant", [True, False])
def test_errors_of_coefficients_are_of_noise_and_of_residuals_of_one_variance(constant: bool) -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(0.0, 1.0, (40_000, 3))
    rows[:, 2] += 1.5 + rows[:, 0]
    z = np.column_stack([np.ones(len(rows)), rows]) if constant else rows
    moments, k = z.T @ z, z.shape[1] - 1
    design = np.eye(4)[0 if constant else 1 :]
    units = np.diag([2.0] * k)
    law = gaussian(3, 2.0, 1.0, 3.0, 4.0).law()
    made = NormalEquations(
        moments, 40_000.0, constant, law, design, units=units, offset=7.0, target_unit=2.0, rows_per_unit=2
    )
    solution = np.linalg.solve(moments[:-1, :-1], moments[:-1, -1])
    beyond, inverse = np.append(-solution, 1.0), np.linalg.inv(moments[:-1, :-1])
    assert made.delta_method_valid
    np.testing.assert_allclose(made.coefficients, 2.0 * solution + 7.0 * np.eye(k)[0] * constant)
    noise = of_product(stated_noise(k + 1, constant), beyond, k)
    np.testing.assert_allclose(made.privacy_covariance, 4.0 * inverse @ noise @ inverse)
    degrees = 20_000.0 - k
    assert made.degrees_of_freedom == degrees
    square = beyond @ moments @ beyond
    np.testing.assert_allclose(made.sampling_covariance, 4.0 * square / (2.0 * degrees) * 2.0 * inverse)
    own = (np.triu(np.outer(beyond, beyond) * (2.0 - np.eye(k + 1))) ** 2 * stated_noise(k + 1, constant)).sum()
    assert made.residual_noise(beyond) == pytest.approx(math.sqrt(own))
    assert made.residual_deviation() == pytest.approx(2.0 * math.sqrt(square / (2.0 * degrees)))
    upper = square + stats.norm.ppf(0.975) * math.sqrt(own)
    assert made.residual_deviation(0.975) == pytest.approx(2.0 * math.sqrt(upper / (2.0 * degrees)))
    assert not made.residuals_are_noise
    loud = NormalEquations(moments, 40_000.0, constant, gaussian(3, square**2, 1.0, 3.0, 4.0).law(), design)
    assert loud.residuals_are_noise
    matrix = np.zeros((2, k))
    matrix[0, -1], matrix[1, -2:] = 3.0, (1.0, -2.0)
    values = matrix @ made.coefficients - [0.01, 0.02]
    test = made.joint_test(matrix, values)
    total = matrix @ (made.privacy_covariance + made.sampling_covariance) @ matrix.T
    statistic = np.array([0.01, 0.02]) @ np.linalg.solve(total, [0.01, 0.02]) / 2.0
    assert test.statistic == pytest.approx(statistic)
    assert test.p_value == pytest.approx(stats.f.sf(statistic, 2, degrees))
    privacy = np.diag(matrix @ made.privacy_covariance @ matrix.T)
    assert test.privacy_share == pytest.approx(np.mean(privacy / np.diag(total)))
    assert (test.numerator, test.denominator) == (2, degrees)
    doubled = made.joint_test(np.vstack([matrix, matrix[:1] * 2.0]), np.append(values, 2.0 * values[0]))
    assert (doubled.numerator, doubled.statistic) == (2, pytest.approx(statistic))
    with refused("the restrictions contradict each other: no coefficients"):
        made.joint_test(np.vstack([matrix, matrix[:1] * 2.0]), np.append(values, 2.0 * values[0] + 0.1))


def test_beyond_all_bounds_is_refuted_no_more_than_at_infinity(monkeypatch: pytest.MonkeyPatch) -> None:
    """A = 7 ± 2 and b = 20 ± 1: 0 is 20 deviations off, and the far end 3.5."""
    right = Search.derivatives
    law = gaussian(2, 4.0, 1.0, 3.0, 4.0).law()
    for sign in (1.0, -1.0):
        moments = np.array([[7.0, sign * 20.0], [sign * 20.0, 100.0]])
        made = NormalEquations(moments, 1e9, False, law, np.eye(3)[1:])
        assert not made.delta_method_valid
        (found,) = made.estimates(0.95)
        z = stats.norm.ppf(0.975) ** 2
        ends = sorted(np.roots([49.0 - 4.0 * z, -280.0, 400.0 - z]).real * sign)
        assert (found.lower, found.upper) == pytest.approx(ends, rel=1e-4)
        assert found.p_value == pytest.approx(stats.chi2.sf(49.0 / 4.0, 1), rel=1e-3)
        center, limit = made.search.at(made.beyond), z
        for halved in (False, True):
            if halved:
                monkeypatch.setattr(Search, "derivatives", lambda *given: tuple(0.0 * each for each in right(*given)))
            below, above = (-made.search._end(0, limit, center, side) for side in (1.0, -1.0))
            assert (below, above) == pytest.approx(ends, rel=1e-4)
        monkeypatch.setattr(Search, "derivatives", right)
        assert inverted_p_value(made, 0, sign * 2.5) == pytest.approx(stats.chi2.sf(2.5**2 / 26.0, 1), rel=1e-3)
        weak = replace(made, moments=moments * [[1.0, 0.0], [0.0, 1.0]] + [[0.0, sign * 1.0], [sign * 1.0, 0.0]])
        assert weak.estimates(0.95)[0].p_value == pytest.approx(stats.chi2.sf(1.0, 1), rel=1e-3)


def test_a_line_of_one_feature_through_zero_has_an_interval_at_every_budget() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0.0, 0.3, 300).clip(-0.6, 0.6)
    table = np.column_stack([x, 0.5 * x + 0.1 * rng.normal(size=300)])
    for epsilon in (0.1, 1.0, 5.0):
        release = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=epsilon, insecure_seed=0)
        low, high = release.ols("x1", ["x0"], intercept=False).conf_int().loc["x0"]
        assert low < 0.5 < high


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
        sampling_degrees=np.full(3, INF),
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
    # noise beyond half of the bounds; and of no noise nothing is lost
    lost = described(standard_deviation=np.array([20.0, 1.0, 0.3]), standard_deviation_noise=np.array([4.9, 0.99, 0.0]))
    assert lost.standard_deviation_is_noise == [False, False, False]
    lost = described(
        standard_deviation=np.array([20.0, 1.0, NAN]), standard_deviation_noise=np.array([5.0, 1.01, 1e-9])
    )
    assert lost.standard_deviation_is_noise == [True, False, False]
    np.testing.assert_allclose(lost.deviation_limits, [5.0, 1.01, 1e-9])
    assert described(standard_deviation=None).standard_deviation_is_noise == [False] * 3
    assert made.rows_text == "400 ± 8.0"
    assert described(count_is_public=True).rows_text == "400 (public, exact)"
    assert described(count_noise=None).rows_text == "400 (noisy)"
    assert described(n_rows=None).rows_text.startswith("not released")
    assert made.heading == ("rows: 400 ± 8.0",)
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
    some = made[["c", "a"]]
    assert some.feature_names == ("c", "a")
    np.testing.assert_array_equal(some.mean_noise, [0.04, 0.1])
    np.testing.assert_array_equal(some.bounds[1], [1.0, 10.0])
    assert made["b"].feature_names == ("b",)


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


def test_cards_count_features_and_columns() -> None:
    one = dpm.release(np.full((500, 1), 0.1), dpm.Schema.unit_ball(1), rho=1.0, insecure_seed=0)
    assert "Release of 1 feature by" in description.release_card(one)
    long = "a_column_with_a_name_of_more_than_forty_eight_letters"
    schema = dpm.Schema(dpm.Categorical("kind", ["a", "b"]), dpm.Numeric(long, 0, 1))
    table = pa.table({"kind": ["a", "b"] * 250, long: np.linspace(0.0, 1.0, 500)})
    release = dpm.release(table, schema, rho=1.0, insecure_seed=0)
    card_of_three = description.release_card(release)
    assert "Release of 3 features of 2 columns by" in card_of_three
    assert long[:47] + "…" in card_of_three
    assert f"rows: {release.describe().rows_text}" in card_of_three
    assert "release.describe()" in card_of_three
    assert "noise unknown" not in card_of_three
    unknown = description.release_card(replace(release, noise_model=None))
    assert "noise unknown" in unknown


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
    assert frames.named_values(schema, twice_elsewhere, ["x"]).tolist() == [[1.0]]
    coordinates = dpm.Schema.unit_ball(2)
    np.testing.assert_array_equal(frames.feature_values(coordinates, np.array([[1, 2]]), [1]), [[1.0, 2.0]])
    with refused("an array has no column names, and rows are read by name", TypeError):
        frames.feature_values(schema, np.zeros((1, 10)), [0])
    for array in (np.zeros(2), np.zeros((1, 3)), np.array([["a", "b"]])):
        with refused("is not one of rows of this release: its columns are the", columns=2):
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
    line = ExplainedVariance.of_population(equations)
    assert line.sampling_error == pytest.approx(2.0 * math.sqrt(0.5) * 0.5 / math.sqrt(4_000), rel=0.1)
    of_units = ExplainedVariance.of_population(replace(equations, rows_per_unit=4.0))
    assert of_units.sampling_error == pytest.approx(2.0 * line.sampling_error, rel=0.02)
    assert of_units.privacy_error == line.privacy_error


def test_a_card_says_how_many_columns_it_leaves_out() -> None:
    privacy = dpm.release(np.full((50, 2), 0.1), dpm.Schema.unit_ball(2), rho=1.0, insecure_seed=0).privacy
    for rows, more in ((12, None), (13, None), (14, "2 more"), (1_014, "1,002 more")):
        shown = card("a", [], [("feature",), *((f"x{i}",) for i in range(rows))], privacy, [], [])
        assert (more is not None) is ("more</p>" in shown)
        assert more is None or more in shown


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
    result = components._definite(broken)
    assert np.linalg.eigvalsh(result)[0] == pytest.approx(components._MIN_EIGENVALUE)
    np.testing.assert_allclose(np.diag(result), 1.0)
    np.testing.assert_array_equal(components._definite(np.eye(3)), np.eye(3))


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
