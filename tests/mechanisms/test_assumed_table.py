"""Errors on a table that is assumed: exact ones against trials, measured ones against a literal table, none missing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from contracts.cases import CASES, N_ROWS, Case
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.row_norm_histogram import TransformedNorm
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.mechanisms.synthetic_spectrum import SyntheticSpectrum, _normal_rows, measured_errors
from dpmoments.papers.mechanisms.padded_gram import PaddedGramPlan
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

SPECTRUM = np.array([0.4, 0.2, 0.05])


def filters(plan: Plan, runs: int) -> list[PrivacyFilter]:
    return [PrivacyFilter.open(plan, insecure_seed=seed) for seed in range(runs)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_plan_has_an_error_on_an_assumed_table(case: Case) -> None:
    plan = case.plan()
    errors = plan.errors_on(SyntheticSpectrum(N_ROWS, SPECTRUM[: case.n_features]), filters(plan, 1))
    assert math.isfinite(errors.gram)
    assert errors.gram > 0.0
    if case.mean:
        assert errors.sum is not None
        assert math.isfinite(errors.sum)
        assert errors.sum > 0.0
    else:
        assert errors.sum is None
    assert errors.gram_assumed == (plan.expected_error is None)
    assert errors.sum_assumed == (case.mean and plan.expected_sum_error is None)
    if not errors.gram_assumed:
        assert errors.gram == plan.expected_error


WISHART_PLANS = [
    dpm.mechanisms.JohnsonLindenstrauss(),
    dpm.mechanisms.JohnsonLindenstrauss(60, subtract_padding=False),
    dpm.mechanisms.JohnsonLindenstrauss(40, smallest_eigenvalue=25.0),
    dpm.mechanisms.InverseWishart(60),
    dpm.mechanisms.InverseWishart(20, subtract_padding=False),
    dpm.mechanisms.InverseWishart(40, smallest_eigenvalue=25.0),
]


@pytest.mark.parametrize(
    ("mechanism", "mean"),
    [*((one, True) for one in WISHART_PLANS), (WISHART_PLANS[0], False), (WISHART_PLANS[4], False)],
)
def test_wishart_errors_are_exact(mechanism: dpm.mechanisms.Mechanism, mean: bool) -> None:
    """Against trials on the assumed table; an error half as large again is found."""
    plan = mechanism.plan(MomentShape(3, mean=mean), PrivacyBudget.approximate(1.0, 1e-6), "add_remove")
    assert isinstance(plan, PaddedGramPlan)
    assumed, trials = SyntheticSpectrum(300, SPECTRUM), 800
    stated = plan.exact_errors_on(assumed)
    assert stated is not None
    rows, squares, sums = assumed.rows(Neighbors.ADD_REMOVE, bounded=True), [], []
    for privacy_filter in filters(plan, trials):
        noisy = plan.run(rows, privacy_filter)
        squares.append(float(np.linalg.norm(noisy.gram - np.diag(assumed.eigenvalues))) ** 2)
        sums.append(0.0 if noisy.sum is None else float(noisy.sum @ noisy.sum))
    for found, exact in ((squares, stated.gram), (sums, stated.sum)):
        if exact is None:
            assert not mean
            continue
        allowed = 5.0 * float(np.std(found)) / math.sqrt(trials)
        assert abs(np.mean(found) - exact**2) < allowed
        assert abs(np.mean(found) - (1.5 * exact) ** 2) > allowed  # planted fault
        assert abs(np.mean(found) - (exact / 1.5) ** 2) > allowed


def test_an_error_that_forgets_the_raised_eigenvalues_or_the_kept_padding_is_found() -> None:
    assumed = SyntheticSpectrum(300, SPECTRUM)
    budget, shape = PrivacyBudget.approximate(1.0, 1e-6), MomentShape(3, mean=False)

    def error(plan: Any) -> float:
        return float(plan.exact_errors_on(assumed).gram)

    raised = dpm.mechanisms.JohnsonLindenstrauss(40, smallest_eigenvalue=25.0).plan(shape, budget, "add_remove")
    assert isinstance(raised, PaddedGramPlan)
    assert raised.raised > 15.0  # above the least eigenvalue
    assert error(raised) != error(replace(raised, raised=0.0))
    kept = dpm.mechanisms.JohnsonLindenstrauss(60, subtract_padding=False).plan(shape, budget, "add_remove")
    off = dpm.mechanisms.JohnsonLindenstrauss(60).plan(shape, budget, "add_remove")
    assert isinstance(kept, PaddedGramPlan)
    assert error(kept) == pytest.approx(math.hypot(error(off), math.sqrt(3) * kept.padding))


# ---------------------------------------------------------------- the made-up rows


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_assumed_rows_answer_as_a_table_in_which_they_are_repeated(neighbors: Neighbors) -> None:
    copies, spectrum = 7, np.array([2.0, 1.0, 0.25])
    assumed = SyntheticSpectrum(250 * copies, spectrum)
    rows = assumed.rows(neighbors, bounded=False)
    distinct = _normal_rows(250, 3) * np.sqrt(spectrum)
    literal = Rows.of(np.repeat(distinct, copies, axis=0), dpm.Schema.unbounded(3), neighbors=neighbors)
    center, linear = np.array([0.1, 0.0, -0.3]), np.array([[1.0, 0.2, 0.0], [0.0, 2.0, 0.0], [0.3, 0.0, 1.0]])
    for arguments in ((None, None, 3.0), (center, linear, 1.5)):
        found, expected = rows.moments(*arguments, bits=16), literal.moments(*arguments, bits=16)
        assert found.count == expected.count
        assert (found.gram == expected.gram).all()
        assert (found.sum == expected.sum).all()
    statistic = TransformedNorm(center, linear, 1.0)
    found, expected = rows.histogram(statistic, [0.5, 1.0, 2.0]), literal.histogram(statistic, [0.5, 1.0, 2.0])
    assert (found.counts.tolist(), found.below, found.above) == (
        expected.counts.tolist(),
        expected.below,
        expected.above,
    )
    assert rows.count() == literal.count() == rows.table_size()


@pytest.mark.parametrize("n_rows", [1, 2, 5, 1000, 10**12])
def test_the_gram_matrix_in_the_ball_is_the_stated_one(n_rows: int) -> None:
    moments = SyntheticSpectrum(n_rows, SPECTRUM[::-1]).rows(Neighbors.REPLACE_ONE, bounded=True).moments(bits=20)
    assert moments.count == n_rows
    stated = [[round(n_rows * SPECTRUM[i] * 4**20) if i == j else 0 for j in range(3)] for i in range(3)]
    assert moments.gram.tolist() == stated
    assert moments.sum.tolist() == [0, 0, 0]


WEIGHTS = np.diag([1.0, 0.5, 0.8])
MIDDLE = np.array([0.2, 0.0, -0.1])


@pytest.mark.parametrize(
    ("center", "linear", "radius"), [(None, WEIGHTS, 1.0), (MIDDLE, None, 1.3), (MIDDLE, WEIGHTS, 2.0)]
)
def test_mapped_moments_that_clip_no_row_of_the_ball_are_those_of_the_stated_matrix(
    center: Any, linear: Any, radius: float
) -> None:
    """Some of the synthetic rows are longer than 1: they were clipped without a word."""
    rows = SyntheticSpectrum(1000, SPECTRUM).rows(Neighbors.ADD_REMOVE, bounded=True)
    moments = rows.moments(center, linear, radius, bits=20)
    mapped, middle = (np.eye(3) if linear is None else linear), (np.zeros(3) if center is None else center)
    gram = mapped @ (np.diag(SPECTRUM) + np.outer(middle, middle)) @ mapped.T
    np.testing.assert_allclose(moments.gram.astype(float) * moments.scale**2, 1000 * gram, atol=1e-6)
    np.testing.assert_allclose(moments.sum.astype(float) * moments.scale, -1000 * mapped @ middle, atol=1e-3)
    assert moments.clipped == 0
    assert rows.clipped == []


def unequal_noise(radius: float) -> Any:
    """A run of a mechanism with unequal noise per coordinate, of rows mapped to a ball of that radius."""

    def run(rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        del privacy_filter
        linear = np.diag([1.0, 0.5, 0.25])
        moments = rows.moments(None, linear, radius, bits=20)
        back = np.linalg.inv(linear)
        gram = back @ (moments.gram.astype(float) * moments.scale**2) @ back
        return RunResult(float(moments.count), back @ (moments.sum.astype(float) * moments.scale), gram)

    return run


def test_errors_on_clipped_rows_say_so_and_others_are_of_no_clipped_row() -> None:
    """Without any noise all that is measured is what clipping takes away."""
    assumed = SyntheticSpectrum(1000, SPECTRUM)
    plan = dpm.mechanisms.Gaussian().plan(MomentShape(3), PrivacyBudget.zcdp(0.5), "add_remove")
    free = measured_errors(unequal_noise(1.0), assumed, plan.neighbors, 1.0, filters(plan, 1))
    assert free.gram < 1e-6
    assert free.clipped == 0.0
    clipped = measured_errors(unequal_noise(0.5), assumed, plan.neighbors, 1.0, filters(plan, 1))
    assert clipped.gram > 10.0
    assert 0.1 < clipped.clipped < 1.0
    unbounded = measured_errors(unequal_noise(0.5), assumed, plan.neighbors, None, filters(plan, 1))
    assert unbounded.clipped == clipped.clipped


@pytest.mark.parametrize(("n_rows", "n_features"), [(250, 1), (250, 10), (400, 100), (7, 5), (2, 3)])
def test_made_up_rows_have_the_moments_they_state(n_rows: int, n_features: int) -> None:
    rows = _normal_rows(n_rows, n_features)
    assert np.abs(rows.mean(axis=0)).max() < 1e-12
    second = rows.T @ rows / n_rows
    assert np.trace(second) == pytest.approx(n_features)
    if n_rows > 2 * n_features:
        assert np.abs(second - np.eye(n_features)).max() < 1e-12
        norms = (rows**2).sum(axis=1)
        assert 0.4 * 2 * n_features < norms.var() < 1.6 * 2 * n_features  # as of normal rows, not of rows of one length


def test_measured_errors_are_root_mean_squares_about_the_origin() -> None:
    """CoinPress releases its moments about its own center."""
    plan = dpm.mechanisms.CoinPress().plan(MomentShape(3, n_rows=5000), PrivacyBudget.zcdp(0.5), "replace_one")
    assumed = SyntheticSpectrum(5000, SPECTRUM)
    measured = measured_errors(plan.run, assumed, plan.neighbors, 1.0, filters(plan, 4))
    rows, squares, sums = assumed.rows(plan.neighbors, bounded=True), [], []
    for privacy_filter in filters(plan, 4):
        noisy = plan.run(rows, privacy_filter)
        about_zero = 5000 * (noisy.covariance + np.outer(noisy.mean, noisy.mean))
        squares.append(np.linalg.norm(about_zero - 5000 * np.diag(SPECTRUM)) ** 2)
        sums.append(np.linalg.norm(5000 * noisy.mean) ** 2)
    assert measured.gram == pytest.approx(math.sqrt(np.mean(squares)))
    assert measured.sum == pytest.approx(math.sqrt(np.mean(sums)))


def test_few_runs_are_near_many() -> None:
    """What a forecast states is a few runs' root mean square: within a third of that of 40 runs."""
    for mechanism, budget in (
        (dpm.mechanisms.IterativeEigenvectors(), PrivacyBudget.pure(1.0)),
        (dpm.mechanisms.KapralovTalwar(), PrivacyBudget.zcdp(0.5)),
    ):
        plan = mechanism.plan(MomentShape(6, n_rows=10_000, mean=False), budget, "replace_one")
        assumed = SyntheticSpectrum(10_000, np.array([0.4, 0.2, 0.13, 0.1, 0.08, 0.07]))
        few = plan.errors_on(assumed, filters(plan, plan.measured_runs)).gram
        many = plan.errors_on(
            assumed, [PrivacyFilter.open(plan, insecure_seed=1000 + seed) for seed in range(200)]
        ).gram
        assert few == pytest.approx(many, rel=1.0 / 3.0)
