"""Rounding decides nothing: moments that differ by a few roundings, as on another processor, have the same answers."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import dpmoments as dpm
from contracts.analyses import AnalysisCase, Numbers, released
from contracts.comparison_cases import EVERY_ANALYSIS
from dpmoments.base.values import directions_of, leading_positive
from dpmoments.cli.analyses import analyses
from support.drawn_releases import drawn, nudged, planted, template

TOLERANCE = 1e-6
BUDGETS = {"usual": 1.0, "scarce": 0.05}
TWO_LEVELS = dpm.Schema(
    dpm.Numeric("x", -4, 4), dpm.Categorical("kind", ["a", "b"]), dpm.Categorical("group", list("uvwxy"))
)
"""Levels whose entries in a component are opposites, and levels of equal shares."""


@cache
def release_of(budget: str) -> dpm.MomentRelease:
    return released(epsilon=BUDGETS[budget], repair="auto")


def answer_of(case: AnalysisCase, release: dpm.MomentRelease) -> Numbers | str:
    try:
        return case.numbers(analyses()[case.name](release, **case.arguments))
    except ValueError as error:
        return str(error)


def assert_same(found: Numbers | str, expected: Numbers | str) -> None:
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected
        return
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        same = math.isclose(found[key], value, rel_tol=TOLERANCE, abs_tol=1e-9)
        assert same or (math.isnan(value) and math.isnan(found[key])), (key, found[key], value)


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("case", EVERY_ANALYSIS, ids=[case.id for case in EVERY_ANALYSIS])
def test_rounding_decides_no_number_of_an_analysis(case: AnalysisCase, budget: str) -> None:
    release = release_of(budget)
    for seed in range(3):
        assert_same(answer_of(case, nudged(release, np.random.default_rng(seed))), answer_of(case, release))


def of_ties(seed: int, moved: bool) -> dict[str, float]:
    """Signs of components and axes, and reference levels, of a release in which sizes are equal by construction."""
    rng, n = np.random.default_rng(seed), 800
    kind, group = (np.eye(levels)[rng.integers(levels, size=n)] for levels in (2, 5))
    made = drawn(template(TWO_LEVELS, "gaussian", rho=1.0), np.column_stack([rng.normal(size=n), kind, group]), rng)
    made = nudged(made, np.random.default_rng(seed)) if moved else made
    values = [
        made.pca(7, columns=made.feature_names).components,
        made.lda("kind", ["x", "group"]).axes,
        made.graphical_lasso().precision,
    ]
    return {f"{part} {i}": value for part, each in enumerate(values) for i, value in enumerate(each.ravel().tolist())}


def test_ties_are_decided_by_the_order_of_features() -> None:
    for seed in range(4):
        assert_same(of_ties(seed, True), of_ties(seed, False))


NUMBERS = dpm.Schema(*(dpm.Numeric(name, -4, 4) for name in "abcdefg"))


def of_noise(seed: int, moved: bool) -> dict[str, float]:
    """A penalty and moments of a release in which noise hides everything, so that its repair leaves equal eigenvalues."""
    rng = np.random.default_rng(seed)
    made = drawn(template(NUMBERS, "gaussian", rho=0.003), rng.normal(size=(200, 7)).clip(-4, 4), rng)
    made = nudged(made, np.random.default_rng(seed)) if moved else made
    line = made.ridge("g")
    values = [np.array([line.alpha]), line.coefficients * 1e20, np.nan_to_num(made.correlation)]
    return {f"{part} {i}": value for part, each in enumerate(values) for i, value in enumerate(each.ravel().tolist())}


@pytest.mark.long
def test_where_noise_hides_everything_rounding_decides_nothing() -> None:
    for seed in range(12):
        assert_same(of_noise(seed, True), of_noise(seed, False))


@pytest.mark.long
def test_a_variance_that_is_rounding_is_found() -> None:
    with planted(dpm.MomentRelease.unit_ball_covariance, "<= _ROUNDING", "<= -1.0"), pytest.raises(AssertionError):
        test_where_noise_hides_everything_rounding_decides_nothing()


def test_a_sign_that_rounding_decides_is_found() -> None:
    fault = planted(leading_positive, "first_largest(np.abs(rows))", "np.argmax(np.abs(rows), axis=1)")
    with fault, pytest.raises(AssertionError):
        test_ties_are_decided_by_the_order_of_features()


def test_a_basis_that_rounding_decides_is_found() -> None:
    """Two columns of levels leave two directions without variance."""
    with planted(directions_of, "len(equal) > 1", "len(equal) > 99"), pytest.raises(AssertionError):
        test_ties_are_decided_by_the_order_of_features()
