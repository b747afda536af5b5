"""Every statistic is that of statsmodels, SciPy and scikit-learn where there is no noise, or named with the reason.

Their values are kept in a file (``references/textbook.py``). Without noise and rounding ours are equal to six digits. Those of
a release of nearly no noise, whose rows are rounded to a lattice, are equal to four digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.analysis import (
    classifiers,
    components,
    confidence,
    contrasts,
    correlations,
    cross_table,
    description,
    group_means,
    group_tests,
    normal_equations,
    regression_results,
    robust_errors,
)
from references.textbook import FORMULAS, KEPT, NUMBERS, REGIONS, ROWS, named, table
from support.drawn_releases import drawn, planted
from support.noise_models import gaussian

SCHEMA = dpm.Schema(
    *(dpm.Numeric(name, -64, 64) for name in NUMBERS), dpm.Categorical("region", REGIONS), dpm.Boolean("smoker")
).with_products(["age", "income", "smoker"])


@cache
def released(name: str) -> dpm.MomentRelease:
    return dpm.release(table(name), SCHEMA, epsilon=1e13, repair="none", insecure_seed=0)


@cache
def exact(name: str) -> dpm.MomentRelease:
    """The release with the table's own moments, and no noise."""
    data = pd.get_dummies(table(name), columns=["region"], prefix_sep="=").astype(float)
    release = released(name)
    columns = []
    for feature in release.feature_names:
        factors = [data[factor] for factor in re.sub(r"(\w+)\^2", r"\1:\1", feature).split(":")]
        columns.append(np.prod(factors, axis=0))
    of_table = drawn(release, np.column_stack(columns), None)
    return replace(of_table, noise_model=gaussian(len(columns), 0.0, 0.0, 0.0, 0.0))


def ours(release: dpm.MomentRelease, data: pd.DataFrame) -> dict[str, float]:
    found: dict[str, float] = {"rows": release.n_rows}
    ends = ("lower", "upper")

    described = release.describe()[NUMBERS]
    assert described.mean is not None
    found |= named("describe mean", NUMBERS, described.mean)
    found |= named("describe sd", NUMBERS, described.standard_deviation)
    for name, interval in zip(NUMBERS, described.conf_int(), strict=True):
        found |= named(f"describe {name}", ends, interval)

    fits = {
        label: release.ols(formula, reference={"region": "east"} if "region" in formula else None, cov_type="nonrobust")
        for label, formula in FORMULAS.items()
    }
    for label, fit in fits.items():
        for word in ("params", "bse", "tvalues", "pvalues"):
            found |= named(f"ols {label} {word}", fit.names, getattr(fit, word))
        for word in ("rsquared", "rsquared_adj", "fvalue", "f_pvalue", "df_resid", "df_model", "nobs"):
            found[f"ols {label} {word}"] = float(getattr(fit, word))
        for end in ends:
            found |= named(f"ols {label} {end}", fit.names, fit.conf_int()[end])
        found[f"ols {label} residual sd"] = fit.residual_standard_deviation
        covariance = fit.cov_params()
        for one, other in combinations(fit.names, 2):
            value = float(covariance.loc[one, other])
            found |= {f"ols {label} cov[{one}, {other}]": value, f"ols {label} cov[{other}, {one}]": value}
        predicted = fit.get_prediction(data.iloc[:3])
        for word, values in (
            ("mean", predicted.predicted_mean),
            ("se", predicted.se_mean),
            ("ends", predicted.conf_int()),
            ("new ends", predicted.conf_int(obs=True)),
        ):
            found |= named(f"prediction {label} {word}", range(np.size(values)), np.asarray(values))
    fit = fits["levels"]
    contrast = fit.t_test("age = height")
    found |= {"contrast t": float(contrast.tvalues[0]), "contrast p": float(contrast.pvalues[0])}
    found |= named("contrast", ends, contrast.conf_int())
    joint = fit.wald_test("age = 0.1, height = 0.2")
    found |= {"joint F": float(joint.statistic[0]), "joint p": float(joint.pvalues[0])}
    terms = fit.wald_test_terms()
    for term, test in zip(terms.names, terms.tests, strict=True):
        found |= {f"term F[{term}]": test.f, f"term p[{term}]": test.p_value}
    robust = release.ols("income ~ age + smoker", cov_type="HC1")
    for word in ("bse", "tvalues", "pvalues"):
        found |= named(f"HC1 {word}", robust.names, getattr(robust, word))
    found |= {"HC1 fvalue": robust.fvalue, "HC1 f_pvalue": robust.f_pvalue}

    for word, target in (("pooled", "height"), ("Welch", "income")):
        test = release.t_test(target, "smoker")
        found |= {
            f"t-test {word} t": test.statistic,
            f"t-test {word} df": test.degrees,
            f"t-test {word} p": test.p_value,
        }
        found |= named(f"t-test {word}", ends, (test.lower, test.upper))
    for by in ("region", "smoker"):
        one_way = release.anova("height", by)
        found |= named(f"anova {by} sums", ("between", "within"), one_way.sum_of_squares)
        found |= named(f"anova {by} df", ("between", "within"), one_way.degrees)
        found |= {f"anova {by} F": one_way.f, f"anova {by} p": one_way.p_value, f"anova {by} eta": one_way.eta_squared}
    means = release.group_means("region", ["height"])
    found |= named("group mean", REGIONS, means.mean) | named("group se", REGIONS, means.sampling_noise)
    found |= named("group lower", REGIONS, means.lower) | named("group upper", REGIONS, means.upper)
    differences = means.differences
    for index, (one, other) in enumerate(combinations(REGIONS, 2)):
        found[f"group p[{one}, {other}]"] = float(differences.p_value[0, index])
        interval = differences.lower[0, index], differences.upper[0, index]
        found |= named(f"group difference [{one}, {other}]", ends, interval)

    for partial, word in ((False, "r"), (True, "partial")):
        pairs = release.partial_correlation(NUMBERS) if partial else release.correlations(["age", "height", "nearly"])
        for j, i in combinations(range(len(pairs.feature_names)), 2):
            key = f"[{pairs.feature_names[j]}, {pairs.feature_names[i]}]"
            assert pairs.p_value is not None
            found |= {f"{word}{key}": pairs.correlation[i, j], f"{word} p{key}": pairs.p_value[i, j]}
            found |= named(f"{word} {key}", ends, (pairs.lower[i, j], pairs.upper[i, j]))

    crossed = release.cross_table("region", "smoker")
    found |= {"chi2": crossed.statistic, "chi2 df": crossed.degrees, "chi2 p": crossed.p_value}
    discriminant = release.lda("region", ["age", "height"], shrinkage=0.0)
    found |= {"Wilks": discriminant.wilks, "Wilks p": discriminant.p_value}
    found |= named("lda coef", range(6), discriminant.coef - discriminant.coef[0])
    found |= named("lda intercept", REGIONS, discriminant.intercept - discriminant.intercept[0])
    two = release.lda("smoker", ["age", "height", "nearly"], shrinkage=0.0)
    found |= {"Wilks of two": two.wilks, "Wilks of two p": two.p_value}

    found_components = release.pca(columns=NUMBERS, scaling="units")
    found |= named("pca variance", range(4), found_components.explained_variance)
    found |= named("pca share", range(4), found_components.explained_variance_ratio)
    found |= named("pca component", range(16), found_components.components)
    unit = float(release.encoding.scale[0] / 100.0) ** 2
    for word, line in (
        ("ridge", release.ridge("income", ["age", "height", "nearly"], alpha=0.01 / unit)),
        ("lasso", release.lasso("income", ["age", "height", "nearly"], alpha=0.002 / unit)),
    ):
        found |= named(f"{word} coef", line.features, line.coefficients)
    return found


@dataclass(frozen=True)
class Named:
    """Statistics that are not equal, and why."""

    pattern: str
    reason: str
    tolerance: float | None = None  # None: ours is NaN

    def holds(self, key: str, value: float, expected: float) -> bool:
        if re.search(self.pattern, key) is None:
            return False
        return bool(np.isnan(value)) if self.tolerance is None else near(value, expected, self.tolerance)


def near(value: float, expected: float, tolerance: float) -> bool:
    return abs(value - expected) <= tolerance * abs(expected)


UNEQUAL = {
    "exact": [Named(r"^(r|partial)\[", "of few rows: an interval of half of [-1, 1] is not estimable")],
    "released": [
        Named(
            r"p(values|_pvalue)?\[|p$|f_pvalue$", "a p-value changes by the square of its statistic times as much", 1e-2
        ),
        Named(r" near 1 ", "the residuals are small, and the rounding to the lattice counts as noise", 4e-3),
        Named(r"new ends", "the residual variance is an upper bound, by the noise of rounding", 1e-3),
        Named(r"^(partial|pca component)", "nearly 0, beside others of one", 2e-2),
        Named(r"^ols levels cov|^term F|^group difference|^lda coef", "of 14 rows, rounding is not averaged", 2e-4),
    ],
}
UNEQUAL["released"] += UNEQUAL["exact"]


def differing(found: Mapping[str, float], rows: str, tolerance: float, unequal: list[Named]) -> list[str]:
    """Return the statistics that are neither equal nor named."""
    expected = KEPT.answers[rows]
    assert set(expected) <= set(found)
    return [
        f"{key}: {found[key]!r} is not {value!r}"
        for key, value in expected.items()
        if not near(found[key], value, tolerance) and not any(named.holds(key, found[key], value) for named in unequal)
    ]


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("rows", ROWS)
def test_without_noise_every_statistic_is_that_of_other_programs(rows: str) -> None:
    assert differing(ours(exact(rows), table(rows)), rows, 1e-6, UNEQUAL["exact"]) == []


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("rows", ROWS)
def test_at_a_huge_epsilon_every_statistic_is_that_of_the_table(rows: str) -> None:
    assert differing(ours(released(rows), table(rows)), rows, 1e-4, UNEQUAL["released"]) == []


FAULTS: list[tuple[Any, str, str, str]] = [
    (group_means.GroupSums.sampling_degrees, "- 1.0", "- 0.0", "t-test Welch"),
    (group_means.GroupSums.sampling_degrees, "- self.present.sum()", "- 1.0", "group"),
    (group_means.GroupSums.sampling_variances, "self.variances", "0.95 * self.variances", "group se"),
    (group_tests._degrees, "sampling**2 / degrees", "sampling**2 / (degrees + 1.0)", "t-test Welch"),
    (group_tests.anova, "= degrees[0], test.denominator", "= degrees[0], test.denominator - 1.0", "anova"),
    (normal_equations.NormalEquations.degrees_of_freedom, "- self.n_regressors,", "- self.n_regressors - 1,", "ols"),
    (normal_equations.NormalEquations.contrast, "0.5 + 0.5 * level", "level", "ols"),
    (regression_results.ExplainedVariance.adjusted, "self.n_rows - self.with_constant", "self.n_rows - 1.0", "adj"),
    (robust_errors._Combinations.product, "result[0] += unit", "result[0] += 0.0 * unit", "HC1"),
    (robust_errors._Combinations.product, "-zero[first] * self", "0.9 * -zero[first] * self", "HC1"),
    (contrasts.Predictions.limits, "np.hypot(upper - middle, residual)", "residual", "new ends"),
    (description.Description.conf_int, "sampling, factor)", "sampling, 0.98 * factor)", "describe"),
    (correlations._sampling_variances, "(1.0 - square) ** 2\n    spread", "(1.0 - square)\n    spread", "r "),
    (correlations._Errors.parts, "independent_rows - 3.0", "independent_rows", "r "),
    (correlations._p_by_student, "1e-300) + 1.0", "1e-300)", "r p"),
    (cross_table.independence_test, "np.diag(expected * ", "np.diag(1.05 * expected * ", "chi2"),
    (classifiers._rao, "- q - 1.0 -", "- q -", "Wilks"),
    (components.pca, "eigenvalues / total", "eigenvalues / (1.01 * total)", "pca share"),
    (confidence.student_quantile, "(square + 1.0) / 4.0", "square / 4.0", "describe"),
]


@pytest.mark.long
@pytest.mark.parametrize(("function", "before", "after", "found"), FAULTS)
def test_a_fault_in_a_formula_is_found(function: Any, before: str, after: str, found: str) -> None:
    exact.cache_clear()
    with planted(function, before, after):
        wrong = [
            key for rows in ROWS for key in differing(ours(exact(rows), table(rows)), rows, 1e-6, UNEQUAL["exact"])
        ]
    exact.cache_clear()
    assert any(found in key for key in wrong), wrong
