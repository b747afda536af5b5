"""Every interval, p-value, prediction and synthetic moment against draws; each check has faults that it finds.

A check returns standardized errors z, a replication a row: their mean square is 1 if the stated errors are right. A replication
is one release of fresh rows, drawn from the law of its noise (``support/drawn_releases.py``). The standard error of the mean
square is taken over replications, since the answers of one release go together. Mean squares are far more powerful than counts
of misses: an interval that is 9 % short has one of 1.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtri

import dpmoments as dpm
from dpmoments.analysis import (
    classifiers,
    components,
    confidence,
    contrasts,
    correlations,
    description,
    functionals,
    group_means,
    group_tests,
    inverted_test,
    normal_equations,
    regression_results,
    regressors,
    robust_errors,
    synthetic,
)
from dpmoments.analysis import cross_table as cross_tables
from dpmoments.analysis.confidence import Estimate
from support import drawn_releases
from support.coefficients import intervals_of, inverted_p_value
from support.drawn_releases import planted, without_bisection

pytestmark = pytest.mark.long(sets=None)

Z = float(ndtri(0.975))
Replications = tuple[Iterator[np.ndarray], int]
Check = Callable[[], Replications]


class Fault(NamedTuple):
    """A place in the code, and what would stand there."""

    function: Any
    before: str
    after: str


# The tables --------------------------------------------------------------------------------------------------------------

MEANS = np.array([7.0, 1.0, 0.0, 0.0, 0.0, -2.0])
FACTORS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.8, 0.6, 0.0, 0.0, 0.0, 0.0],
        [0.9, 0.0, 0.436, 0.0, 0.0, 0.0],
        [0.0, 0.5, 0.0, 0.866, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.3, 0.2, 0.0, 0.1, 0.0, 0.5],
    ]
)
COVARIANCE = FACTORS @ FACTORS.T
MILD = np.eye(6) + 0.3 * np.diag(np.ones(5), -1)
MILD[5, :4] = [0.4, -0.3, 0.2, 0.1]
MILD[5, 4] = 0.0
"""Features of a regression: noise that is as large as sampling hides none of them."""
OF_FIT = MILD @ MILD.T
SLOPES = np.linalg.solve(OF_FIT[:5, :5], OF_FIT[:5, 5])
CONSTANT = MEANS[5] - MEANS[:5] @ SLOPES
RESIDUAL = float(OF_FIT[5, 5] - OF_FIT[5, :5] @ SLOPES)
NUMBERS = dpm.Schema(*(dpm.Numeric(name, -9, 9) for name in "abcdey"))
GROUPS = dpm.Schema(
    dpm.Categorical("group", ["one", "two", "far"]),
    dpm.Boolean("flag"),
    dpm.Numeric("y", -4, 16),
)
PRODUCTS = dpm.Schema(dpm.Numeric("x", -4, 4), dpm.Boolean("flag"), dpm.Numeric("y", -9, 9)).with_products(
    ["x", "flag", "y"]
)
SHARES, GROUP_MEANS = np.array([0.3, 0.2, 0.5]), np.array([-1.0, -1.0, 13.0])


@cache
def template(
    schema: dpm.Schema,
    mechanism: str = "gaussian",
    max_rows: int | None = None,
    repair: str = "none",
    **budget: float,
) -> dpm.MomentRelease:
    """A release whose rows do not matter; most checks are of moments as drawn, and a repair would take half of their time."""
    return drawn_releases.template(schema, mechanism, max_rows, repair=repair, **(budget or {"rho": 400.0}))


def drawn(release: dpm.MomentRelease, rows: np.ndarray, rng: np.random.Generator | None) -> dpm.MomentRelease:
    """Of the template's law, which would be made anew in a third of the time."""
    result = drawn_releases.drawn(release, rows, rng)
    result.__dict__["noise"] = release.noise
    return result


def numbers(rng: np.random.Generator, n_rows: int, factors: np.ndarray = FACTORS) -> np.ndarray:
    return MEANS + rng.standard_normal((n_rows, 6)) @ factors.T


def grouped(rng: np.random.Generator, n_rows: int, means: np.ndarray = GROUP_MEANS) -> np.ndarray:
    group = rng.choice(3, n_rows, p=SHARES)
    flag = rng.random(n_rows) < 0.4
    return np.column_stack([np.eye(3)[group], flag, means[group] + rng.standard_normal(n_rows)])


def replications(n: int, one: Callable[[np.random.Generator], Any]) -> Replications:
    """The errors of each replication in turn, and how many replications the check has."""
    return ((np.asarray(one(np.random.default_rng([7, seed])), dtype=float) for seed in range(n)), n)


def of_interval(lower: Any, upper: Any, truth: Any) -> np.ndarray:
    """z of an interval: the error of its middle in standard errors."""
    lower, upper = np.asarray(lower), np.asarray(upper)
    return np.asarray(((lower + upper) / 2.0 - truth) / ((upper - lower) / (2.0 * Z)))


def of_p_value(p_value: Any) -> np.ndarray:
    """z of a p-value that is uniform."""
    return np.asarray(ndtri(np.asarray(p_value) / 2.0))


# The checks --------------------------------------------------------------------------------------------------------------

CHECKS: list[Any] = []


def held(slack: float, *faults: Fault, slow: bool = False) -> Callable[[Check], Check]:
    """Add a check to the table, with its slack beside three standard errors and the faults that it finds."""

    def add(check: Check) -> Check:
        CHECKS.append(pytest.param(check, slack, faults, id=check.__name__, marks=[pytest.mark.slow] * slow))
        return check

    return add


@held(0.05, Fault(correlations._Errors.interval, "np.sqrt(privacy", "0.8 * np.sqrt(privacy"))
def correlation_intervals() -> Replications:
    pairs = np.tril_indices(6, -1)
    deviations = np.sqrt(np.diag(COVARIANCE))
    truth = np.arctanh((COVARIANCE / np.outer(deviations, deviations))[pairs])

    def one(rng: np.random.Generator) -> np.ndarray:
        found = correlations.correlations(drawn(template(NUMBERS, rho=10_000.0), numbers(rng, 400), rng))
        return of_interval(np.arctanh(found.lower[pairs]), np.arctanh(found.upper[pairs]), truth)

    return replications(42, one)


@held(0.05, Fault(correlations._Errors.privacy, "rho**2 * self.of_scale", "0.0"))
def correlation_intervals_under_noise() -> Replications:
    pairs = np.tril_indices(6, -1)
    deviations = np.sqrt(np.diag(COVARIANCE))
    truth = (COVARIANCE / np.outer(deviations, deviations))[pairs]
    far = np.abs(truth) > 0.4

    def one(rng: np.random.Generator) -> np.ndarray:
        found = correlations.correlations(drawn(template(NUMBERS, repair="auto", rho=10.0), numbers(rng, 4_000), rng))
        return of_interval(found.lower[pairs][far], found.upper[pairs][far], truth[far])

    return replications(54, one)


@held(
    0.1,
    Fault(correlations._Errors.parts, "self.times * ", ""),
    Fault(robust_errors.PairProducts.variances, "- r[:, None] * self.squares", "- 0.0 * self.squares"),
)
def correlations_by_products() -> Replications:
    """Large values go with large ones of either sign: sampling is 1.7 times that of normal rows."""

    def rows(rng: np.random.Generator, n_rows: int) -> np.ndarray:
        size, x, y = 0.5 + rng.random(n_rows), *rng.standard_normal((2, n_rows))
        x, y = 1.0 + size**2 * x / 2.0, -2.0 + size**2 * (0.6 * x + 0.8 * y)
        flag = rng.random(n_rows) < 0.3
        return np.column_stack([x, flag, y, x**2, y**2, x * flag, x * y, flag * y])

    truth = np.arctanh(0.6)

    def one(rng: np.random.Generator) -> np.ndarray:
        found = correlations.correlations(drawn(template(PRODUCTS, rho=10_000.0), rows(rng, 1_000), rng), ["x", "y"])
        return of_interval(np.arctanh(found.lower[1, 0]), np.arctanh(found.upper[1, 0]), truth)

    return replications(136, one)


@held(
    0.1,
    Fault(group_tests._between_groups, "gradient, own = 2.0 *", "gradient, own = 0.5 *"),
    Fault(group_means._total_variance, "result / moments.n_rows, noise /", "result / moments.n_rows, 0.4 * noise /"),
)
def sums_of_squares() -> Replications:
    """Between groups and of their total, of rows that stay."""
    rows = grouped(np.random.default_rng(0), 600)
    exact = np.array(group_tests.anova(drawn(template(GROUPS), rows, None), "y", "group").sum_of_squares)

    def one(rng: np.random.Generator) -> np.ndarray:
        found = group_tests.anova(drawn(template(GROUPS, rho=5.0), rows, rng), "y", "group")
        return np.array([found.sum_of_squares[0] - exact[0], sum(found.sum_of_squares) - exact.sum()]) / [
            found.noise[0],
            found.noise[2],
        ]

    return replications(60, one)


@held(
    0.05,
    Fault(correlations._privacy_variances, "correlation[i, :i, None, None]", "0.0 * correlation[i, :i, None, None]"),
    Fault(correlations.partial_correlation, " / (1.0 - inside**2)", ""),
    slow=True,
)
def partial_correlation_intervals() -> Replications:
    inverse = np.linalg.inv(OF_FIT)
    root = np.sqrt(np.diag(inverse))
    pairs = np.tril_indices(6, -1)
    truth = np.arctanh((-inverse / np.outer(root, root))[pairs])

    def one(rng: np.random.Generator) -> np.ndarray:
        found = correlations.partial_correlation(drawn(template(NUMBERS, rho=1_000.0), numbers(rng, 400, MILD), rng))
        return of_interval(np.arctanh(found.lower[pairs]), np.arctanh(found.upper[pairs]), truth)

    return replications(240, one)


@held(0.15, Fault(correlations._sampling_variances, "square / (4.0 * p_q)", "0.0 * p_q"))
def correlations_of_levels() -> Replications:
    """Of the levels of one column with the other's, and with the number."""
    means = np.array([0.0, 0.0, 3.0])
    big = grouped(np.random.default_rng(0), 400_000, means)
    truth = np.corrcoef(big.T)
    i, j = np.array([3, 3, 4]), np.array([0, 1, 2])

    def one(rng: np.random.Generator) -> np.ndarray:
        found = correlations.correlations(drawn(template(GROUPS), grouped(rng, 600, means), rng))
        return of_interval(np.arctanh(found.lower[i, j]), np.arctanh(found.upper[i, j]), np.arctanh(truth[i, j]))

    return replications(36, one)


@held(0.05, Fault(description.Description.conf_int, "sampling, factor)", "sampling, 0.75 * factor)"))
def mean_intervals() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        found = description.describe(drawn(template(NUMBERS, rho=20.0), numbers(rng, 1_000), rng)).conf_int()
        return of_interval(*found.T, MEANS)

    return replications(60, one)


@held(0.07, Fault(description._sampling_variance, "np.divide(noise**2,", "np.divide(0.0 * noise,"))
def mean_intervals_by_noisy_variances() -> Replications:
    """As large as the variances: what the sampling errors are made of is known to a third."""

    def one(rng: np.random.Generator) -> np.ndarray:
        found = description.describe(drawn(template(NUMBERS, rho=10.0), numbers(rng, 300), rng)).conf_int()
        return of_interval(*found.T, MEANS)[:5]

    return replications(150, one)


@held(0.05, Fault(confidence.deviations_for, "+ beyond * share**2", "- 0.0 * share"), slow=True)
def mean_intervals_of_laplace_noise() -> Replications:
    """A share: how often intervals miss, whose tails are the law's."""

    def one(rng: np.random.Generator) -> np.ndarray:
        found = description.describe(drawn(template(NUMBERS, "laplace", epsilon=3.0), numbers(rng, 300), rng)).conf_int(
            0.99
        )
        return 10.0 * ((found[:, 0] > MEANS) | (found[:, 1] < MEANS))

    return replications(360, one)


@held(0.05, Fault(description._deviation_noise, "2.0 * known", "1.8 * known"))
def noise_of_standard_deviations() -> Replications:
    rows = numbers(np.random.default_rng(0), 300)
    exact = rows.std(axis=0)

    def one(rng: np.random.Generator) -> np.ndarray:
        found = description.describe(drawn(template(NUMBERS, rho=200.0), rows, rng))
        assert found.standard_deviation is not None
        return (found.standard_deviation - exact) / found.standard_deviation_noise

    return replications(75, one)


@held(0.05, Fault(confidence.fieller_interval, "(covariance[0] + extra)", "(covariance[0] + 0.5 * extra)"))
def means_of_groups() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        found = group_means.group_means(drawn(template(GROUPS, repair="auto"), grouped(rng, 400), rng), "group", ["y"])
        return of_interval(found.lower[0], found.upper[0], GROUP_MEANS)

    return replications(42, one)


@held(0.05, Fault(group_means._combined, "first**2 + second**2 -", "first**2 + 0.0 * second -"))
def differences_of_groups() -> Replications:
    truth = np.array([0.0, -14.0, -14.0])

    def one(rng: np.random.Generator) -> np.ndarray:
        found = group_means.group_means(drawn(template(GROUPS), grouped(rng, 400), rng), "group", ["y"]).differences
        return of_interval(found.lower[0], found.upper[0], truth)

    return replications(72, one)


@held(
    0.05,
    Fault(
        group_tests._tested,
        "weights @ sums.covariance @ weights)",
        "weights[k:] @ sums.covariance[k:, k:] @ weights[k:])",
    ),
)
def t_tests() -> Replications:
    """Of two groups with one mean; the third is far away, so that noise on the counts would count as a difference."""

    def one(rng: np.random.Generator) -> np.ndarray:
        release = drawn(template(GROUPS, rho=1.0), grouped(rng, 300), rng)
        levels = group_means.Levels.of(release, "group")
        sums = group_means.GroupSums.of(release, release.feature_names.index("y"), levels)
        return of_p_value(group_tests._tested(sums, [0, 1])[3])

    return replications(600, one)


@held(0.05, Fault(normal_equations.NormalEquations.own_noise, "(self.design_map", "(0.5 * self.design_map"))
def analyses_of_variance() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        rows = grouped(rng, 300, np.full(3, 5.0))
        return of_p_value(group_tests.anova(drawn(template(GROUPS, rho=5.0), rows, rng), "y", "group").p_value)

    return replications(108, one)


@held(0.05, Fault(functionals.LocalMoments.independent_rows, "self.rows_per_unit", "1.5"))
def answers_of_copied_rows() -> Replications:
    """Each person has three equal rows: the worst case of dependence, in which the bound on sampling errors is attained."""
    pairs = np.tril_indices(6, -1)
    truth = np.arctanh((OF_FIT / np.sqrt(np.outer(np.diag(OF_FIT), np.diag(OF_FIT))))[pairs])
    largest = np.sort(np.linalg.eigvalsh(OF_FIT))[-1:]

    def one(rng: np.random.Generator) -> np.ndarray:
        release = drawn(template(NUMBERS, max_rows=3, rho=1e6), np.tile(numbers(rng, 400, MILD), (3, 1)), rng)
        fit = release.ols("y")
        assert fit.equations is not None
        related = [release.correlations(), release.partial_correlation()]
        spread = release.pca(1, scaling="units").conf_int()
        inverse = -np.linalg.inv(OF_FIT)
        np.fill_diagonal(inverse, -np.diag(inverse))
        partial = np.arctanh((inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse))))[pairs])
        z = [
            of_interval(*release.describe().conf_int().T, MEANS),
            *(
                of_interval(np.arctanh(each.lower[pairs]), np.arctanh(each.upper[pairs]), wanted)
                for each, wanted in zip(related, (truth, partial), strict=True)
            ),
            of_interval(*intervals_of(fit.equations, 0.95).T, np.append(CONSTANT, SLOPES)),
            of_interval(spread[:, 0], spread[:, 1], largest),
        ]
        return np.array([np.sqrt(np.mean(each**2)) for each in z])

    return replications(24, one)


def copied_groups(rng: np.random.Generator) -> dpm.MomentRelease:
    rows = np.tile(grouped(rng, 300, np.full(3, 5.0)), (3, 1))
    return drawn(template(GROUPS, max_rows=3, rho=1e6), rows, rng)


@held(0.05, Fault(normal_equations.NormalEquations.sampling_shape, "self.rows_per_unit * result", "result"))
def analyses_of_variance_of_copied_groups() -> Replications:
    return replications(66, lambda rng: of_p_value(copied_groups(rng).anova("y", "group").p_value))


@held(
    0.05,
    Fault(
        group_means.GroupSums.sampling_variances, "self.safe_counts / self.moments.rows_per_unit", "self.safe_counts"
    ),
)
def answers_of_copied_groups() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        release = copied_groups(rng)
        means = release.group_means("group", ["y"])
        p_values = [
            release.cross_table("group", "flag").p_value,
            release.t_test("y", "group", ["one", "two"]).p_value,
        ]
        middle = np.sqrt(np.mean(of_interval(means.lower[0], means.upper[0], 5.0) ** 2))
        return np.append(of_p_value(p_values), middle)

    return replications(27, one)


@held(0.05, Fault(cross_tables.independence_test, "sampling = rows", "sampling = 0.6 * rows"))
def independence_tests() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        release = drawn(template(GROUPS), grouped(rng, 300), rng)
        first, second = (group_means.Levels.of(release, name) for name in ("group", "flag"))
        joint, _, privacy, rows = cross_tables._joint_counts(release, first, second)
        return of_p_value(cross_tables.independence_test(joint, privacy, rows, release.noise)[2])

    return replications(94, one)


@held(
    0.05,
    Fault(
        components._explained_variance_noise,
        "_MIN_SAMPLING * normal) / moments",
        "_MIN_SAMPLING * normal) / 4.0 / moments",
    ),
)
def explained_variances() -> Replications:
    truth = np.sort(np.linalg.eigvalsh(COVARIANCE))[::-1][:1]

    def one(rng: np.random.Generator) -> np.ndarray:
        found = components.pca(
            drawn(template(NUMBERS, rho=100.0), numbers(rng, 1_000), rng), 1, scaling="units"
        ).conf_int()
        return of_interval(found[:, 0], found[:, 1], truth)

    return replications(102, one)


def fitted(rng: np.random.Generator) -> regression_results.FittedLine:
    return drawn(template(NUMBERS, rho=1_000.0), numbers(rng, 1_000, MILD), rng).ols("y")


def equations_of(release: dpm.MomentRelease, features: list[str] | None = None) -> normal_equations.NormalEquations:
    """Those of a fit of y, without its estimates: their search takes most of the time of a fit under heavy noise."""
    chosen = regressors.Regressors.chosen(release, "y", features, None, None)
    products = robust_errors.ResidualProducts.of(release, chosen, required=features is not None)
    equations = normal_equations.NormalEquations.of(release, chosen, products)
    assert equations is not None
    return equations


def of_fit(rng: np.random.Generator, rho: float) -> normal_equations.NormalEquations:
    return equations_of(drawn(template(NUMBERS, rho=rho), numbers(rng, 1_000, MILD), rng))


@held(0.05, Fault(normal_equations.NormalEquations.contrast, "reach = float", "reach = 0.85 * float"))
def coefficient_intervals() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        equations = of_fit(rng, 1_000.0)
        assert equations.delta_method_valid
        return of_interval(*intervals_of(equations, 0.95).T, np.append(CONSTANT, SLOPES))

    return replications(150, one)


TRUTH = np.append(CONSTANT, SLOPES)
COMBINED = np.array([[0, 1.0, -1.0, 0, 0, 0], [1.0, 4.0, 1.0, 0, 0, 0]])


@held(
    0.05,
    Fault(normal_equations.NormalEquations.contrast, "weights @ part @ weights", "0.7 * (weights @ part @ weights)"),
)
def contrast_intervals() -> Replications:
    """Of a difference of two slopes that go together, and of the line at a row."""

    def one(rng: np.random.Generator) -> np.ndarray:
        found = [of_fit(rng, 1_000.0).contrast(weights, 0.95) for weights in COMBINED]
        return of_interval([each.lower for each in found], [each.upper for each in found], COMBINED @ TRUTH)

    return replications(150, one)


@held(
    0.05,
    Fault(
        normal_equations.NormalEquations.joint_test,
        "statistic = max(float(excess @ solved), 0.0) / q",
        "statistic = float(excess @ solved)",
    ),
)
def joint_tests() -> Replications:
    def one(rng: np.random.Generator) -> np.ndarray:
        return of_p_value(of_fit(rng, 1_000.0).joint_test(COMBINED, COMBINED @ TRUTH).p_value)

    return replications(108, one)


PLANE = dpm.Schema(*(dpm.Numeric(name, -9, 9) for name in "aby"))


@held(
    0.1,
    Fault(normal_equations.NormalEquations._rotated, "np.linalg.inv(basis).T", "np.linalg.inv(basis)"),
    Fault(normal_equations.NormalEquations.joint_test, "chdtrc(q, ", "chdtrc(1, "),
)
def inverted_joint_tests() -> Replications:
    """Of two restrictions, where noise is too large for the delta method."""
    matrix = np.array([[0.0, 1.0, -1.0], [1.0, 2.0, 1.0]])

    def one(rng: np.random.Generator) -> np.ndarray:
        x = rng.standard_normal((1_000, 2)) + [1.0, -2.0]
        rows = np.column_stack([x, x @ [0.5, 0.4] + rng.standard_normal(1_000)])
        equations = equations_of(drawn(template(PLANE, rho=10.0), rows, rng))
        assert not equations.delta_method_valid
        return of_p_value(equations.joint_test(matrix, np.array([0.1, 1.4])).p_value)

    return replications(69, one)


def unequal(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Rows whose residuals vary with x and the flag, with their products: HC1 errors are 1.45 and 1.15 times the classical."""
    x, flag = rng.standard_normal(n_rows), (rng.random(n_rows) < 0.3).astype(float)
    y = 1.0 + 0.5 * x - 0.7 * flag + (0.4 + 0.8 * np.abs(x) + 0.5 * flag) * rng.standard_normal(n_rows)
    return np.column_stack([x, flag, y, x**2, y**2, x * flag, x * y, flag * y])


def of_unequal(rng: np.random.Generator, n_rows: int, rho: float) -> normal_equations.NormalEquations:
    return equations_of(drawn(template(PRODUCTS, rho=rho), unequal(rng, n_rows), rng), ["x", "flag"])


@held(
    0.05,
    Fault(robust_errors.ResidualProducts.covariance, "self.moments @ carried.T", "(0.6 * self.moments) @ carried.T"),
)
def robust_intervals() -> Replications:
    """By the delta method: the products are noisy."""

    def one(rng: np.random.Generator) -> np.ndarray:
        equations = of_unequal(rng, 1_000, 100.0)
        assert equations.robust
        assert equations.delta_method_valid
        return of_interval(*intervals_of(equations, 0.95).T, np.array([1.0, 0.5, -0.7]))[1:]

    return replications(210, one)


@held(0.1, Fault(inverted_test.Search.at, "self._n_rows * self._sampling", "self._n_rows * 0.1 * self._sampling"))
def robust_inverted_p_values() -> Replications:
    """Of the true slope, where noise is too large for the delta method and sampling is most of the error."""

    def one(rng: np.random.Generator) -> np.ndarray:
        equations = of_unequal(rng, 300, 60.0)
        assert not equations.delta_method_valid
        return of_p_value(inverted_p_value(equations, 1, 0.5))

    return replications(132, one)


@held(0.05, Fault(normal_equations.NormalEquations.residual_variance, "/ over", "/ (3.0 * over)"))
def coefficient_p_values() -> Replications:
    """Of slopes that are 0 where sampling and noise decide: the fifth feature has nothing to do with the target."""

    def one(rng: np.random.Generator) -> np.ndarray:
        return of_p_value(of_fit(rng, 1_000.0).estimates(0.95)[5].p_value)

    return replications(90, one)


@held(0.1, Fault(inverted_test.Search.at, "scaled = self._noise", "scaled = 0.4 * self._noise"))
def inverted_p_values() -> Replications:
    """Of the true slopes, where noise is too large for the delta method."""

    def one(rng: np.random.Generator) -> np.ndarray:
        equations = of_fit(rng, 60.0)
        assert not equations.delta_method_valid
        return of_p_value([inverted_p_value(equations, place, SLOPES[place - 1]) for place in (1, 5)])

    return replications(72, one)


@held(0.1, Fault(normal_equations.NormalEquations.joint_test, "chdtrc(q, ", "chdtrc(2 + q, "))
def whole_fits() -> Replications:
    """p of the whole fit where the target has nothing to do with the features."""

    def one(rng: np.random.Generator) -> np.ndarray:
        rows = numbers(rng, 1_000, MILD)
        rows[:, 5] = -2.0 + rng.standard_normal(1_000)
        return of_p_value(equations_of(drawn(template(NUMBERS, rho=60.0), rows, rng)).overall_test.p_value)

    return replications(135, one)


CLASSES = dpm.Schema(dpm.Categorical("group", ["one", "two", "far"]), *(dpm.Numeric(name, -9, 9) for name in "ab"))


@held(
    0.05,
    Fault(classifiers.CoefficientErrors.privacy, "np.maximum(result, 0.0)", "0.2 * np.maximum(result, 0.0)"),
    Fault(classifiers.CoefficientErrors.sampling, "apart) / self", "apart) / 9.0 / self"),
)
def discriminant_coefficients() -> Replications:
    """Of three normal groups, where noise is as large as sampling."""
    within, means = np.array([[1.0, 0.5], [0.5, 1.5]]), np.array([[0.0, 0.0], [1.0, 0.5], [0.5, -1.0]])
    truth = (means - SHARES @ means) @ np.linalg.inv(within)
    root = np.linalg.cholesky(within).T

    def one(rng: np.random.Generator) -> np.ndarray:
        group = rng.choice(3, 6_000, p=SHARES)
        rows = np.column_stack([np.eye(3)[group], means[group] + rng.standard_normal((6_000, 2)) @ root])
        found = classifiers.lda(drawn(template(CLASSES, rho=2.0), rows, rng), "group", shrinkage=0.0)
        return np.asarray((found.coef - truth) / found.standard_errors)

    return replications(90, one)


KINDS = dpm.Schema(dpm.Boolean("group"), dpm.Numeric("a", -9, 9))


@held(
    0.2, Fault(classifiers.CoefficientErrors.privacy, "(widening**2 - 1.0) * shared**2", "0.0 * shared**2"), slow=True
)
def discriminant_coefficients_near_the_gate() -> Replications:
    """Where few releases state errors: more often one whose noise has made the variance within groups larger."""

    def one(rng: np.random.Generator) -> np.ndarray:
        group = rng.random(3_000) < 0.4
        rows = np.column_stack([group, np.where(group, 1.0, -1.0) + rng.standard_normal(3_000)])
        found = classifiers.lda(drawn(template(KINDS, rho=0.11), rows, rng), "group", shrinkage=0.0)
        return np.asarray((found.coef - np.array([[-0.8], [1.2]])) / found.standard_errors)

    each, n = replications(120, one)
    return (z for z in each if not np.isnan(z).any()), n


@held(0.1, Fault(regression_results.ExplainedVariance._of, "4.0 * nearest", "1.0 * nearest"))
def shares_explained() -> Replications:
    truth = 1.0 - RESIDUAL / OF_FIT[5, 5]

    def one(rng: np.random.Generator) -> np.ndarray:
        explained = fitted(rng).explained
        assert explained is not None
        return (explained.share - truth) / math.hypot(explained.privacy_error, explained.sampling_error)

    return replications(120, one)


NEW = np.array([[4.0, 1.0, 0.0, 0.0, 0.0], [6.0, 2.0, 1.5, 0.5, -1.0]])


def predicted(rng: np.random.Generator) -> Any:
    equations, rows = of_fit(rng, 1_000.0), np.column_stack([np.ones(2), NEW])
    return contrasts.Predictions(rows, equations, rows @ equations.coefficients, 0.95)


@held(0.1, Fault(contrasts.Predictions.limits, "residual = quantile", "residual = 0.7 * quantile"))
def predictions_of_new_rows() -> Replications:
    """The middle of an interval is right; its width allows for noise on the residuals, and is judged by misses."""

    def one(rng: np.random.Generator) -> np.ndarray:
        found = predicted(rng).limits(obs=True)
        new = CONSTANT + NEW @ SLOPES + math.sqrt(RESIDUAL) * rng.standard_normal(2)
        return of_interval(found[:, 0], found[:, 1], new)

    return replications(84, one)


@held(0.05)
def pooled_answers() -> Replications:
    """Means and slopes of two releases of different budgets, pooled."""
    two = [
        dpm.release(np.zeros((1_000, 6)), NUMBERS, rho=rho, mechanism="gaussian", insecure_seed=int(rho))
        for rho in (300.0, 3_000.0)
    ]

    def one(rng: np.random.Generator) -> np.ndarray:
        parts = [drawn(one, numbers(rng, 500, MILD), rng) for one in two]
        pooled = dpm.pool(parts)
        means = of_interval(*pooled.describe().conf_int().T, MEANS)
        fit = pooled.ols("y")
        assert fit.equations is not None
        covariance = fit.equations.privacy_covariance + fit.equations.sampling_covariance
        errors = np.sqrt(np.diag(covariance))[1:]
        slopes = (fit.equations.coefficients[1:] - SLOPES) / errors
        return np.concatenate([means, slopes])

    return replications(36, one)


@held(0.1, Fault(synthetic._margin, "max(variance, 0.0) /", "1.06 * max(variance, 0.0) /"))
def synthetic_moments() -> Replications:
    """Variances and covariances of drawn rows beside the release's, in standard errors of 20,000 rows."""
    release = drawn(template(NUMBERS, rho=1e6), numbers(np.random.default_rng(0), 2_000), np.random.default_rng(1))
    truth = release.covariance
    first, second = np.tril_indices(6)
    deviations = np.sqrt((np.diag(truth)[first] * np.diag(truth)[second] + truth[first, second] ** 2) / 20_000.0)

    def one(rng: np.random.Generator) -> np.ndarray:
        found = np.cov(synthetic.synthetic_rows(release, 20_000, int(rng.integers(1 << 30))).to_numpy().T)
        return (found - truth)[first, second] / deviations

    return replications(6, one)


@held(0.3)
def synthetic_means() -> Replications:
    rows = grouped(np.random.default_rng(0), 2_000, np.array([0.0, 0.0, 2.0]))
    release = drawn(template(GROUPS, rho=1e6), rows, np.random.default_rng(1))

    def one(rng: np.random.Generator) -> np.ndarray:
        found = synthetic.synthetic_rows(release, 5_000, int(rng.integers(1 << 30)))
        shares = [(found["group"] == level).mean() for level in ("one", "two", "far")]
        means = np.array([*shares, found["flag"].mean(), found["y"].mean()])
        return (means - release.mean) / np.sqrt(np.diag(release.covariance) / 5_000.0)

    return replications(10, one)


def distance(errors: Sequence[np.ndarray], slack: float) -> float:
    """How far the mean square is from 1, in the distance allowed: three standard errors and the slack."""
    squares = (np.array(errors).reshape(len(errors), -1) ** 2).mean(axis=1)
    error = float(squares.std(ddof=1)) / math.sqrt(len(squares))
    return abs(float(squares.mean()) - 1.0) / (3.0 * error + slack)


def is_found(check: Check, slack: float) -> bool:
    """True if the replications of a check are too far from 1 together, or the first quarter, half or three quarters of them."""
    each, n = check()
    errors: list[np.ndarray] = []
    for part in (1, 2, 3, 4) if n >= 40 else (4,):
        errors += islice(each, part * n // 4 - len(errors))
        if distance(errors, slack) > 1.0:
            return True
    return False


@pytest.mark.parametrize(("check", "slack", "faults"), CHECKS)
def test_stated_errors_are_those_of_draws_and_faults_in_them_are_found(
    check: Check, slack: float, faults: Sequence[Fault], monkeypatch: pytest.MonkeyPatch
) -> None:
    without_bisection(monkeypatch)
    monkeypatch.setattr(
        cross_tables, "_feasible_counts", lambda _, one, other: np.zeros((len(one.names), len(other.names)), dtype=int)
    )
    assert distance(list(check()[0]), slack) < 1.0
    for fault in faults:
        with planted(*fault):
            assert is_found(check, slack), fault.after


# Fourteen rows without noise ---------------------------------------------------------------------------------------------------

SMALL = dpm.Schema(
    dpm.Categorical("group", ["one", "two"]),
    dpm.Boolean("flag"),
    dpm.Numeric("y", -6, 14),
    dpm.Numeric("x", -6, 14),
    dpm.Product("y", "group"),
)
FEW = 14


@cache
def few_rows() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    group = np.array(["one", "two"])[(np.arange(FEW) >= 8).astype(int)]
    x = rng.normal(2.0, 1.5, FEW)
    y = 0.5 * x + rng.normal(1.0, 1.0, FEW) * np.where(group == "one", 1.0, 2.5)
    return pd.DataFrame({"group": group, "flag": rng.random(FEW) < 0.5, "y": y, "x": x})


@cache
def few() -> dpm.MomentRelease:
    return dpm.release(few_rows(), SMALL, epsilon=1e12, mechanism="gaussian", delta=1e-9, insecure_seed=0)


# Identities ----------------------------------------------------------------------------------------------------------------


def p_at_the_ends() -> list[float]:
    """Of the inverted test: 1 − level at both ends of its interval."""
    equations = of_fit(np.random.default_rng(3), 60.0)
    assert not equations.delta_method_valid
    limits = intervals_of(equations, 0.9)
    return [inverted_p_value(equations, place, end) for place in (0, 1, 5) for end in limits[place]]


def test_the_p_value_at_the_ends_of_an_interval_is_one_less_its_level() -> None:
    np.testing.assert_allclose(p_at_the_ends(), 0.1, rtol=2e-3)
    with planted(normal_equations.NormalEquations._inverted, "chdtri(1, 1.0 - level)", "chdtri(1, 1.0 - 0.99 * level)"):
        assert np.abs(np.array(p_at_the_ends()) - 0.1).max() > 0.005


def test_products_are_over_the_noisy_count_of_one_row_at_least() -> None:
    release = drawn(template(PRODUCTS, rho=100.0), unequal(np.random.default_rng(1), 500), np.random.default_rng(0))
    chosen = regressors.Regressors.chosen(release, "y", ["x", "flag"], None, None)
    for count, counted in ((480.25, 480.25), (1.5, 1.5), (0.25, 1.0), (None, float(release.n_rows))):
        given = SimpleNamespace(
            **{name: getattr(release, name) for name in ("schema", "encoding", "zero_of_units", "noise", "noisy_sum")},
            **{name: getattr(release, name) for name in ("noisy_gram", "feature_names", "n_rows", "sample_size")},
            noisy_count=count,
        )
        products = robust_errors.ResidualProducts.of(given, chosen)  # type: ignore[arg-type]
        assert products is not None
        assert products.moments[0, 0] == counted


def ends_of_means() -> np.ndarray:
    """(S − θN)² over the variance of S − θN, by noise and sampling, at both ends of each interval: the quantile squared."""
    release = drawn(template(NUMBERS, rho=0.001), numbers(np.random.default_rng(0), 3_000), np.random.default_rng(1))
    found, law = release.describe(), release.noise
    assert law is not None
    assert found.noisy_mean is not None
    encoding, squares = release.encoding, []
    for side in found.conf_int().T:
        theta = (side - encoding.offset) / encoding.scale
        if release.center is not None:
            theta = theta - release.center
        weights = np.zeros((6, 2, 2))
        weights[:, 0, 1] = weights[:, 1, 0] = 0.5
        weights[:, 0, 0] = -theta
        indices = np.stack([np.zeros(6, dtype=int), np.arange(6) + 1], axis=1)
        sampling = found.sampling_variance * release.n_rows**2 / encoding.scale**2
        score = np.asarray(release.noisy_sum) - theta * release.n_rows
        squares.append(score**2 / (law.variance(indices, weights) + sampling))
    return np.asarray(squares)


def test_the_ends_of_a_mean_are_those_at_which_it_is_rejected() -> None:
    """The count is noisy, and its noise is also that of a mean away from the center."""
    np.testing.assert_allclose(ends_of_means(), Z**2, rtol=1e-6)
    for function, before, after in (
        (description.Description.conf_int, "self.mean_count_covariance", "0.0 * self.mean_count_covariance"),
        (description.Description.conf_int, "(self.count_noise or 0.0)", "0.0"),
        (description.mean_noise, "- of_count) / 2.0", "- of_count)"),
    ):
        with planted(function, before, after):
            assert np.abs(ends_of_means() / Z**2 - 1.0).max() > 0.001, after


# Closed forms of parts ------------------------------------------------------------------------------------------------------


def test_rounding_makes_no_negative_variance_of_a_correlation() -> None:
    one, zero = np.ones(1), np.zeros(1)
    errors = correlations._Errors(zero, zero, one, zero, None, None, None, None, one, one)  # type: ignore[arg-type]
    assert errors.privacy(np.array([0.5])) == 0.0


def test_sums_of_squares_are_parts_of_their_total() -> None:
    """The sum between groups may exceed what noise leaves of the total."""
    within = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        release = drawn(template(GROUPS, rho=0.002), grouped(rng, 300, np.zeros(3)), rng)
        within.append(group_tests.anova(release, "y", "group").sum_of_squares[1])
    assert min(within) == 0.0
    assert max(within) > 0.0


def test_a_sum_of_squares_is_lost_if_groups_are_not_clear_and_noise_exceeds_a_mean_square() -> None:
    """Clear groups are not lost, and without degrees of freedom nothing is divided."""
    answer = group_tests.anova(few(), "y", "group")
    unclear = replace(answer, test=replace(answer.test, p_value=0.9), noise_between=1e9)
    assert unclear.lost
    assert not replace(unclear, test=replace(answer.test, p_value=0.0)).lost
    assert not replace(unclear, noise_between=0.0).lost
    assert replace(unclear, degrees=(1.0, 0.0)).lost
    upper, lower = answer.degrees
    edge = upper * answer.sum_of_squares[1] / lower
    assert replace(unclear, noise_between=edge * 1.001).lost
    assert not replace(unclear, noise_between=edge * 0.999).lost


def test_a_coefficient_without_bounds_is_not_counted_among_the_comparisons() -> None:
    fit = few().ols("y", ["x", "flag"])
    assert fit.equations is not None
    slope = Estimate.of_interval(1.0, 0.1, 1.9, 0.03, 0.95, 0.5)
    fit.equations._estimates[0.95] = (fit.estimates[0], slope, Estimate.not_estimable(0.95))
    assert fit.verdict == ("", "positive", "not estimable at this budget")
    assert fit.holds_among_all.tolist() == [False, True, False]


def test_no_share_that_is_explained_exceeds_one() -> None:
    shares = []
    for seed in (0, 3, 7):
        rng = np.random.default_rng(seed)
        shares.append(
            drawn(template(NUMBERS, rho=0.5), numbers(rng, 100), rng).ols("y", ["a", "b", "c"]).released_r_squared
        )
    assert 0.0 <= min(shares) <= max(shares) <= 1.0
    assert 1.0 in shares


def test_variances_of_components_of_correlations_are_those_of_draws() -> None:
    """Deviations of 100 draws over what is stated, of the first component."""
    found = []
    for seed in range(100):
        release = drawn(template(NUMBERS, rho=1e6), numbers(np.random.default_rng(seed), 1_000), None)
        answer = components.pca(release, 1, scaling="correlation")
        found.append((answer.explained_variance[0], answer.sampling_noise[0]))
    values, stated = np.array(found).T
    assert 0.85 < values.std(ddof=1) / np.sqrt(np.mean(stated**2)) < 1.15
