"""Mechanism × analysis × calibration: an answer has its ± and errs by it, or the release says why it has none.

Releases of one table are drawn again and again, so that only noise differs. The root mean square of (answer − truth)/± is 1
if the ± is right. By default 25 draws: the ratio over all numbers of an answer (3 to 6 of them) must be in [0.75, 1.25], and
that of each number in [0.55, 1.5]. A ± that is 1.5 times too small or too large throughout is found in 98 of 100 runs, and one
that is half of what it should be in a single number as often. By default each case is tried with one analysis, and each analysis
with two cases. The slow version draws 300 of every cell and holds each number to [0.7, 1.3], where rows are clipped to
[0.5, 1.3].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.comparison_cases import EVERY_ANALYSIS
from dpmoments.mechanisms.registry import MECHANISMS as MECHANISMS_BY_NAME
from dpmoments.moments.cells import GaussianCells
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm
from support.drawn_releases import without_bisection

pytestmark = pytest.mark.long(sets=None)

N_ROWS = 4_000
REGIONS = ("north", "south", "east")
DRAWS, SLOW_DRAWS = 25, 300
DRAWS_OF = {"laplace": 40}
"""Noise with heavy tails needs more."""

Numbers = Mapping[str, tuple[float, float]]
"""What an answer says, and its ± (NaN if it has none)."""


@cache
def table() -> pa.Table:
    rng = np.random.default_rng(11)
    age, employed = rng.uniform(18, 80, N_ROWS), rng.random(N_ROWS) < 0.6
    region = rng.choice(REGIONS, N_ROWS, p=[0.5, 0.3, 0.2])
    income = 500 * age + 10_000 * (region == "north") + 5_000 * employed + rng.normal(0, 12_000, N_ROWS)
    return pa.table({"age": age, "income": income, "region": region, "employed": employed})


SITES = ("a", "b")


@cache
def table_of_sites() -> pa.Table:
    return table().append_column("site", pa.array(SITES * (N_ROWS // 2)))


def schema(*, wide: bool = False) -> dpm.Schema:
    """Public bounds near the values, or three times as far."""
    age, income = ((0, 200), (-200_000, 200_000)) if wide else ((10, 90), (-40_000, 120_000))
    numbers = dpm.Numeric("age", *age), dpm.Numeric("income", *income)
    return dpm.Schema(*numbers, dpm.Categorical("region", REGIONS), dpm.Boolean("employed"))


# Mechanisms ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One way to release."""

    mechanism: Any
    budget: dict[str, float]  # large enough for first-order errors
    options: dict[str, Any]  # more of dpm.release
    wide: bool = False
    clips: bool = False  # rows are clipped in earnest: the ± is about the rows as clipped, errors are about their mean
    pooled: bool = False  # two halves are released, and pooled
    grouped: bool = False  # the halves are groups of one grouped release

    def release(self, seed: int) -> dpm.MomentRelease:
        public = schema(wide=self.wide)
        options: dict[str, Any] = dict(mechanism=self.mechanism, repair="none") | self.budget | self.options
        if self.grouped:
            public, rows = dpm.Schema(*public.columns, dpm.Categorical("site", SITES)), table_of_sites()
            groups = dpm.release_groups(rows, public, by="site", insecure_seed=seed, **options)
            return dpm.pool(groups.values()).with_repair("none")
        if not self.pooled:
            return dpm.release(table(), public, insecure_seed=seed, **options)
        halves = table().slice(0, N_ROWS // 2), table().slice(N_ROWS // 2)
        return dpm.pool(
            [dpm.release(half, public, insecure_seed=2 * seed + i, **options) for i, half in enumerate(halves)]
        ).with_repair("none")


MECHANISMS = dpm.mechanisms
ADD, REPLACE = dict(neighbors="add_remove"), dict(neighbors="replace_one")
PURE, ZCDP, APPROXIMATE = dict(epsilon=20.0), dict(rho=20.0), dict(epsilon=20.0, delta=1e-6)
SCALE = np.diag([2.0, 3.0, 1.5, 1.0, 1.0, 2.0]) + 0.0
CASES: dict[str, Case] = {
    "gaussian": Case("gaussian", ZCDP, ADD),
    "gaussian, public count": Case("gaussian", ZCDP, REPLACE),
    "laplace": Case("laplace", PURE, ADD),
    "isotropic": Case("isotropic", PURE, ADD),
    "matrix-laplace": Case("matrix-laplace", PURE, ADD),
    "additive-wishart": Case("additive-wishart", APPROXIMATE, ADD),
    "additive-wishart of a scale": Case(MECHANISMS.AdditiveWishart(scale_matrix=SCALE.tolist()), APPROXIMATE, ADD),
    # rows that are clipped have a ± that is wider than their noise: see tests/mechanisms/test_standardized.py
    "standardized": Case(MECHANISMS.Standardized(clip=False), PURE, ADD, wide=True),
    "standardized, public count": Case(MECHANISMS.Standardized(clip=False), ZCDP, REPLACE, wide=True),
    "pooled": Case("matrix-laplace", dict(epsilon=8.0), ADD, pooled=True),  # a count is a whole number: noise above it
    "pooled standardized": Case(MECHANISMS.Standardized(clip=False), PURE, ADD, wide=True, pooled=True),
    "auto": Case("auto", APPROXIMATE, ADD, clips=True),
    "pooled groups": Case("gaussian", ZCDP, ADD, grouped=True),
    "pooled coinpress": Case("coinpress", ZCDP, ADD, clips=True, pooled=True),
    "pooled johnson-lindenstrauss": Case("johnson-lindenstrauss", APPROXIMATE, ADD, pooled=True),
    "pooled eigenvectors": Case("iterative-eigenvectors", dict(epsilon=400.0), ADD, pooled=True),
    "iterative-eigenvectors": Case("iterative-eigenvectors", dict(epsilon=400.0), ADD),
    "iterative-eigenvectors, zcdp": Case("iterative-eigenvectors", dict(rho=400.0), REPLACE),
    "kapralov-talwar": Case("kapralov-talwar", dict(epsilon=2_000.0), REPLACE),
    "johnson-lindenstrauss": Case("johnson-lindenstrauss", APPROXIMATE, ADD),
    "johnson-lindenstrauss, public count": Case("johnson-lindenstrauss", APPROXIMATE, REPLACE),
    "inverse-wishart": Case(MECHANISMS.InverseWishart(degrees_of_freedom=20_000), APPROXIMATE, REPLACE),
    "inverse-gaussian": Case(MECHANISMS.InverseGaussian(smallest_eigenvalue=19.0), dict(rho=400.0), ADD),
    "coinpress": Case("coinpress", ZCDP, ADD, clips=True),
    "coinpress, public count": Case("coinpress", ZCDP, REPLACE, clips=True),
}


# Analyses -----------------------------------------------------------------------------------------------------------------------


def named(names: Any, values: Any, noise: Any) -> Numbers:
    triples = zip(names, np.ravel(values), np.ravel(noise), strict=True)
    return {str(name): (float(value), float(error)) for name, value, error in triples}


def below(found: Any) -> Numbers:
    first, second = np.tril_indices(len(found.feature_names), -1)
    columns = np.array(found.columns_of_features)
    several = columns[first] != columns[second]  # two levels of one column have no correlation that anyone asks for
    first, second = first[several], second[several]
    names = [f"{found.feature_names[i]} ~ {found.feature_names[j]}" for i, j in zip(first, second, strict=True)]
    return named(names, found.correlation[first, second], found.privacy_noise[first, second])


def of_fit(fit: Any) -> Numbers:
    if fit.equations is None:
        return dict.fromkeys(fit.features, (math.nan, math.nan))
    return named(fit.features, fit.coefficients, fit.privacy_errors)


def of_penalized_fit(fit: Any) -> Numbers:
    """Its coefficients have no errors; the test of the whole fit knows of noise."""
    return {"p": (fit.p_value_of_fit, fit.p_value_of_fit)}


@dataclass(frozen=True)
class Analysis:
    ask: Callable[[dpm.MomentRelease], Any]
    numbers: Callable[[Any], Numbers]


ANALYSES: dict[str, Analysis] = {
    "mean": Analysis(lambda r: r.describe(), lambda a: named(a.feature_names, a.noisy_mean, a.mean_noise)),
    "standard deviation": Analysis(
        lambda r: r.describe(), lambda a: named(a.feature_names, a.standard_deviation, a.standard_deviation_noise)
    ),
    "correlations": Analysis(lambda r: r.correlations(["age", "income", "employed"]), below),
    "correlations of levels": Analysis(lambda r: r.correlations(["income", "region"]), below),
    "partial correlations": Analysis(lambda r: r.partial_correlation(["age", "income", "employed"]), below),
    "ols": Analysis(lambda r: r.ols("income", ["age", "employed"]), of_fit),
    "ols on levels": Analysis(lambda r: r.ols("income", ["age", "region"]), of_fit),
    "group means": Analysis(
        lambda r: r.group_means("region", of=["income", "age"]),
        lambda a: named([f"{f}, {g}" for f in a.features for g in a.groups], a.mean, a.privacy_noise),
    ),
    "t-test": Analysis(
        lambda r: r.t_test("income", by="employed"), lambda a: {"difference": (a.difference, a.privacy_noise)}
    ),
    "cross table": Analysis(
        lambda r: r.cross_table("region", "employed"),
        lambda a: named([f"{row}, {column}" for row in a.rows for column in ("no", "yes")], a.counts, a.noise),
    ),
    "components": Analysis(
        lambda r: r.pca(columns=["age", "income", "employed"], scaling="correlation"),
        lambda a: named(["first", "second", "third"], a.noisy_variance, a.privacy_noise),
    ),
}
"""What states a ± for privacy alone."""
VERDICTS: dict[str, Analysis] = {
    "ridge": Analysis(lambda r: r.ridge("income", ["age", "employed"], alpha=1.0), of_penalized_fit),
    "lasso": Analysis(lambda r: r.lasso("income", ["age", "employed"], alpha=1.0), of_penalized_fit),
    "anova": Analysis(lambda r: r.anova("income", by="region"), lambda a: {"p": (a.p_value, a.p_value)}),
    "discriminant": Analysis(lambda r: r.lda("region"), lambda a: {"p": (a.p_value, a.p_value)}),
    "graphical lasso": Analysis(lambda r: r.graphical_lasso(0.1), lambda a: {"noise": (a.noise, a.noise)}),
    "distances": Analysis(
        lambda r: r.mahalanobis(table().slice(0, 3)), lambda a: {"known": (0.0, 0.0 if a.noise_known else math.nan)}
    ),
}
"""What uses the law for a verdict."""


@cache
def release_of(case: str, seed: int) -> dpm.MomentRelease:
    return CASES[case].release(seed)


def releases(case: str, draws: int) -> list[dpm.MomentRelease]:
    return [release_of(case, seed) for seed in range(draws)]


@cache
def truth(wide: bool) -> dpm.MomentRelease:
    return dpm.release(
        table(), schema(wide=wide), epsilon=1e13, repair="none", mechanism="matrix-laplace", insecure_seed=0
    )


def ratios(case: str, analysis: str, draws: int) -> dict[str, float] | None:
    """Root mean square of (answer − truth)/± by number; None if no number has a ±."""
    asked, settings = ANALYSES[analysis], CASES[case]
    answers = [asked.numbers(asked.ask(release)) for release in releases(case, draws)]
    if all(math.isnan(noise) for answer in answers for _, noise in answer.values()):
        return None
    exact = asked.numbers(asked.ask(truth(settings.wide)))
    found = {}
    for name in answers[0]:
        pairs = np.array([answer[name] for answer in answers])
        assert not np.isnan(pairs).any(), f"{name} has a ± in some answers only"
        center = pairs[:, 0].mean() if settings.clips else exact[name][0]
        lost = draws / (draws - 1.0) if settings.clips else 1.0
        found[name] = math.sqrt(lost * float(np.mean(((pairs[:, 0] - center) / pairs[:, 1]) ** 2)))
    return found


CELLS = [(case, analysis) for case in CASES for analysis in ANALYSES]
SLOW_CASES = {"pooled coinpress", "pooled johnson-lindenstrauss", "pooled eigenvectors", "coinpress, public count"}
"""They take longest: other laws and centers are pooled, other counts are public, and other rows are clipped."""
TRIED = [
    (case, list(ANALYSES)[place % len(ANALYSES)]) for place, case in enumerate(CASES) if case not in SLOW_CASES
] + [("coinpress", "ols on levels")]


@pytest.fixture
def no_bisection(monkeypatch: pytest.MonkeyPatch) -> None:
    without_bisection(monkeypatch)


@pytest.mark.usefixtures("no_bisection")
@pytest.mark.parametrize(("case", "analysis"), TRIED)
def test_an_answer_errs_by_what_it_states(case: str, analysis: str) -> None:
    found = ratios(case, analysis, DRAWS_OF.get(case, DRAWS))
    assert found is not None, "no number has a ±"
    values = np.array(list(found.values()))
    if len(values) >= 3:
        assert 0.75 <= math.sqrt(float(np.mean(values**2))) <= 1.25, found
    assert (values > 0.55).all(), found
    assert (values < 1.5).all(), found


@pytest.mark.slow
@pytest.mark.usefixtures("no_bisection")
@pytest.mark.parametrize(("case", "analysis"), CELLS)
def test_each_number_errs_by_what_it_states(case: str, analysis: str) -> None:
    found = ratios(case, analysis, SLOW_DRAWS)
    assert found is not None, "no number has a ±"
    least = 0.5 if CASES[case].mechanism == "auto" else 0.7  # a ± of numbers has what clipping may hide, too
    assert all(least <= ratio <= 1.3 for ratio in found.values()), found


AGAIN = {name for name in CASES if ", " in name or " of " in name} | SLOW_CASES
"""Of a mechanism that is there with another budget, relation or scale."""


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.slow) if case in AGAIN else case for case in CASES]
)
def test_either_every_analysis_of_a_release_knows_its_noise_or_none_does(case: str) -> None:
    release = release_of(case, 0)
    known = {}
    for name, asked in (ANALYSES | VERDICTS).items():
        answer = asked.ask(release)
        known[name] = not all(math.isnan(noise) for _, noise in asked.numbers(answer).values())
        assert known[name] or "noise unknown" in str(answer), name
    assert len(set(known.values())) == 1, known


WITHOUT_NUMBERS = {"synthetic"}
"""Analyses that state no number of their own: rows are drawn."""


def test_every_mechanism_and_every_analysis_is_here() -> None:
    names = {case.mechanism if isinstance(case.mechanism, str) else case.mechanism.name for case in CASES.values()}
    assert names == set(MECHANISMS_BY_NAME) - {"log-scale-histogram", "private-preconditioning"}, "these two are below"
    asked = {call for analysis in (ANALYSES | VERDICTS).values() for call in analysis.ask.__code__.co_names}
    every = {case.name for case in EVERY_ANALYSIS}
    assert every - WITHOUT_NUMBERS <= asked
    assert {True} == {any(getattr(case, kind) for case in CASES.values()) for kind in ("pooled", "grouped", "clips")}


def test_one_column_of_unknown_scale_says_why_its_noise_is_unknown() -> None:
    """``log-scale-histogram`` takes one column, and finds its unit in the data."""
    public = dpm.Schema(dpm.Numeric("income", scale=(1e2, 1e7)))
    release = dpm.release(
        table().select(["income"]), public, mechanism="log-scale-histogram", repair="none", insecure_seed=0, rho=20.0
    )
    assert release.noise is None
    assert "noise unknown: " in str(release.describe())
    assert np.isnan(release.describe().mean_noise).all()


def test_preconditioned_rows_without_a_mean_err_by_what_they_state() -> None:
    """``private-preconditioning`` releases no mean: the regression through the origin is what it has a ± for."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, 3)) * [0.3, 0.2, 0.1]
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
    mechanism = MECHANISMS.PrivatePreconditioning(eigenvalue_bounds=(0.01, 1.0))
    options: dict[str, Any] = dict(mechanism=mechanism, mean=False, repair="none", rho=20.0, **REPLACE)
    fits = [
        dpm.release(rows, dpm.Schema.unit_ball(3), insecure_seed=seed, **options).ols(
            "x0", ["x1", "x2"], intercept=False
        )
        for seed in range(DRAWS)
    ]
    values, errors = (np.array([getattr(fit, name) for fit in fits]) for name in ("coefficients", "privacy_errors"))
    ratio = np.sqrt(np.mean(((values - values.mean(axis=0)) / errors) ** 2, axis=0))
    assert ((ratio > 0.7) & (ratio < 1.3)).all(), ratio


def halved(law: NoiseLaw) -> NoiseLaw:
    """A variance that is half of what it should be."""
    return replace(law, terms=tuple(replace(term, variances=term.variances / 2.0) for term in law.terms))


def without_a_part(law: NoiseLaw) -> NoiseLaw:
    """One of two pooled releases forgotten."""
    return replace(law, terms=law.terms[1:])


def uncorrelated(law: NoiseLaw) -> NoiseLaw:
    """The variance of every cell, and no covariance."""
    variances = law.cell_variances()
    return NoiseLaw((NoiseTerm(GaussianCells(), (variances + variances.T) / 2.0),), law.caveats)


@pytest.mark.usefixtures("no_bisection")
@pytest.mark.parametrize(
    ("fault", "case", "analysis"),
    [
        # of three numbers or more: their ratio together is held to 1.25, that of each number only to 1.5
        (halved, "gaussian", "mean"),
        (halved, "standardized", "group means"),
        (halved, "coinpress", "standard deviation"),
        (without_a_part, "pooled", "cross table"),
        (uncorrelated, "coinpress", "ols on levels"),
    ],
)
def test_a_wrong_law_is_found(
    fault: Callable[[NoiseLaw], NoiseLaw], case: str, analysis: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (case, analysis) in TRIED, "the right law passes"
    wrong = [release.with_repair("none") for release in releases(case, DRAWS)]
    for release in wrong:
        assert release.noise is not None
        release.__dict__["noise"] = fault(release.noise)
    monkeypatch.setitem(globals(), "releases", lambda *_: wrong)
    with pytest.raises(AssertionError):
        test_an_answer_errs_by_what_it_states(case, analysis)


@pytest.mark.usefixtures("no_bisection")
@pytest.mark.parametrize(("fault", "analysis"), [(1.5, "mean"), (1.0 / 1.5, "mean")])
def test_a_wrong_error_is_found(fault: float, analysis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case, tried in TRIED if tried == analysis)
    right = ANALYSES[analysis]

    def wrong(answer: Any) -> Numbers:
        return {name: (value, noise / fault) for name, (value, noise) in right.numbers(answer).items()}

    monkeypatch.setitem(ANALYSES, analysis, Analysis(right.ask, wrong))
    with pytest.raises(AssertionError):
        test_an_answer_errs_by_what_it_states(case, analysis)
