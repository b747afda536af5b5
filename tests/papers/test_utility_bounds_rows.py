"""Rows that an error needs, by CoinPress and lecture 18, against runs of the mechanisms; planted faults in their constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import bdtrc

import dpmoments as dpm
from dpmoments import mechanisms, utility_bounds
from dpmoments.mechanisms.means import CoinPressMean
from dpmoments.papers.bounds import normal_smallest_eigenvalue
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress
from support.said import refused

PAPER_STEP = 0.05 / 60


def as_rare_as(failures: int, trials: int, probability: float) -> bool:
    return failures == 0 or float(bdtrc(failures - 1, trials, probability)) > 1e-4


def test_the_mean_of_coinpress_needs_the_rows_that_it_says() -> None:
    d, radius, rho, failure, trials = 3, 50.0, 0.5, 0.2, 40
    split = utility_bounds.theorem_shares(4)
    given: dict[str, Any] = dict(shares=split, step_failure=PAPER_STEP)
    n = utility_bounds.coinpress_mean_rows_needed(0.3, d, radius, rho, failure, **given)
    assert utility_bounds.coinpress_mean_error(n, d, radius, rho, failure, **given) <= 0.3
    assert utility_bounds.coinpress_mean_error(n - 1, d, radius, rho, failure, **given) > 0.3
    mechanism = CoinPressMean(radius=radius, scale=1.0, constants="paper", clip="gaussian", split=split)
    errors = []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(n, d)) + 20.0
        release = dpm.release_mean(
            rows, dpm.Schema.unbounded(d), rho=rho, neighbors="replace_one", mechanism=mechanism, insecure_seed=seed
        )
        errors.append(float(np.linalg.norm(release.mean - 20.0)))
    assert as_rare_as(int((np.array(errors) > 0.3).sum()), trials, failure)
    # planted fault: half the noise and half the sampling
    assert not as_rare_as(int((np.array(errors) > 0.15).sum()), trials, failure)


def test_the_mean_bound_is_the_noise_of_the_plan() -> None:
    """The last step's noise is the one that the mechanism plans, to the last digits."""
    d, radius, rho, n, failure = 4, 30.0, 0.7, 500, 0.1
    split = utility_bounds.theorem_shares(3)
    plan = CoinPressMean(radius=radius, scale=1.0, constants="paper", clip="gaussian", split=split).plan(
        mechanisms.base.MomentShape(d, n_rows=n, row_norm=None), dpm.PrivacyBudget.zcdp(rho), "replace_one"
    )
    assert plan.balls is not None
    from scipy.special import chdtri

    noise = 2.0 * plan.balls.radii[-1] / (n * math.sqrt(2.0 * 0.5 * rho))
    expected = math.sqrt(chdtri(d, failure - 3 * PAPER_STEP)) * math.hypot(noise, 1.0 / math.sqrt(n))
    found = utility_bounds.coinpress_mean_error(n, d, radius, rho, failure, shares=split, step_failure=PAPER_STEP)
    # The plan's last clip is for β/4 of its own, a little nearer than that of a step before.
    assert expected < found < 1.04 * expected


def covariance_errors(mechanism: Any, scales: np.ndarray, n: int, trials: int, rho: float) -> np.ndarray:
    errors, d = [], len(scales)
    for seed in range(trials):
        rows = np.random.default_rng(seed).normal(size=(n, d)) * scales
        release = dpm.release(
            rows,
            dpm.Schema.unbounded(d),
            rho=rho,
            neighbors="replace_one",
            mechanism=mechanism,
            mean=False,
            repair="none",
            insecure_seed=seed,
        )
        errors.append(float(np.linalg.norm(release.second_moment / np.outer(scales, scales) - np.eye(d))))
    return np.array(errors)


@pytest.mark.long
def test_the_covariance_of_coinpress_needs_the_rows_that_it_says() -> None:
    d, spread, rho, failure, trials, target = 2, 10.0, 0.5, 0.2, 15, 0.4
    split = utility_bounds.theorem_shares(3)
    given: dict[str, Any] = dict(shares=split, step_failure=PAPER_STEP)
    n = utility_bounds.coinpress_covariance_rows_needed(target, d, spread, rho, failure, **given)
    mechanism = PaperCoinPress((1.0, spread), split=split)
    errors = covariance_errors(mechanism, np.array([1.0, math.sqrt(spread)]), n, trials, rho)
    assert as_rare_as(int((errors > target).sum()), trials, failure)
    assert not as_rare_as(int((errors > target / 20).sum()), trials, failure)
    # sampling alone is a part of it, and the range another
    assert target > utility_bounds.empirical_covariance_error(n, d, failure)
    wider = utility_bounds.coinpress_covariance_error(n, d, 4 * spread, rho, failure, **given)
    assert wider > target


@pytest.mark.slow
def test_the_clipped_second_moment_of_the_lecture_needs_the_rows_that_it_says() -> None:
    d, rho, failure, trials, target = 3, 0.5, 0.2, 30, 0.3
    n = utility_bounds.noisy_second_moment_rows_needed(target, d, 1.0, rho, failure)
    errors = covariance_errors(mechanisms.PrivatePreconditioning((1.0, 1.0)), np.ones(d), n, trials, rho)
    assert as_rare_as(int((errors > target).sum()), trials, failure)
    # planted faults: a constant halved; the noise of added rows on replaced ones is √2 too small
    assert not as_rare_as(int((errors > target / 2).sum()), trials, failure)
    fewer = utility_bounds.noisy_second_moment_rows_needed(target, d, 1.0, rho, failure, neighbors="add_remove")
    assert fewer < 0.8 * n
    assert math.isinf(utility_bounds.noisy_second_moment_error(n, d, 1.0, rho, 0.01, clip_constant=0.5))


@pytest.mark.parametrize("seed", range(4))
def test_a_round_that_is_said_to_hold_does(seed: int) -> None:
    """Errors as large as it allows, in random directions and in the worst ones: 0.9κ above, 1 below; twenty times is too much."""
    d, kappa, sampling, noise = 4, 2_000.0, 0.15, 0.008
    assert utility_bounds.preconditioning_round_holds(sampling, noise, kappa)
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(200):
        turn, other = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
        variances = np.exp(rng.uniform(0.0, math.log(kappa), d))
        variances[0], variances[-1] = 1.0, kappa * rng.uniform(0.4, 1.0)
        root = turn * np.sqrt(variances)
        for scale in (1.0, 20.0):
            error = (other * rng.choice([-1.0, 1.0], d)) @ other.T
            tilted = np.outer(turn[:, 0], turn[:, -1])  # a short direction drawn towards the longest
            noise_matrix = rng.choice([-1.0, 1.0]) * (error if rng.random() < 0.5 else tilted + tilted.T)
            empirical = root @ (np.eye(d) + sampling * error) @ root.T
            noisy = empirical + scale * noise * kappa * noise_matrix
            eigenvalues, vectors = np.linalg.eigh(noisy)
            step = 1.05 * (vectors * np.where(eigenvalues >= kappa / 2, 0.5, 1.0)) @ vectors.T
            after = np.linalg.eigvalsh(step @ (root @ root.T) @ step)
            holds = after[0] >= 1.0 - 1e-9 and after[-1] <= 0.9 * kappa * (1 + 1e-9)
            assert holds or scale > 1.0
            broken += not holds
    assert broken


@pytest.mark.slow
def test_rounds_need_rows_and_the_whole_needs_more() -> None:
    rounds = utility_bounds.preconditioning_rows_needed(3, 1_500.0, 0.25, 0.05)
    assert math.isinf(utility_bounds.preconditioned_covariance_error(rounds // 4, 3, 1_500.0, 0.5, 0.1))
    assert utility_bounds.preconditioned_covariance_error(4 * rounds, 3, 1_500.0, 0.5, 0.1) < math.inf
    # no rounds where the range is short: Lemma 2.2 with all of the budget
    whole = utility_bounds.preconditioned_covariance_error(10**6, 3, 10.0, 0.5, 0.1)
    assert whole == utility_bounds.noisy_second_moment_error(10**6, 3, 10.0, 0.5, 0.1)
    assert not utility_bounds.preconditioning_round_holds(1.5, 0.0, 2_000.0)
    assert not utility_bounds.preconditioning_round_holds(0.1, 0.001, 8.0)


def test_sampling_errors_are_quantiles() -> None:
    rng, n, d, trials = np.random.default_rng(0), 60, 4, 2_000
    rows = rng.normal(size=(trials, n, d))
    gap = np.swapaxes(rows, 1, 2) @ rows / n - np.eye(d)
    for norm, bound in (
        (np.linalg.norm(gap, axis=(1, 2)), utility_bounds.empirical_covariance_error(n, d, 0.1)),
        (np.linalg.norm(gap, 2, axis=(1, 2)), utility_bounds.spectral_sampling_error(n, d, 0.1)),
    ):
        assert as_rare_as(int((norm > bound).sum()), trials, 0.1)
        assert not as_rare_as(int((norm > 0.8 * bound).sum()), trials, 0.1)
    assert math.isinf(utility_bounds.spectral_sampling_error(3, 4, 0.1))


@pytest.mark.parametrize(
    ("given", "code", "parameter"),
    [
        (dict(failure=2), "must be", "failure"),
        (dict(step_failure=0.0), "must be", "step_failure"),
        (dict(rho=0), "must be", "rho"),
        (dict(rho=math.nan), "must be", "rho"),
        (dict(radius=-1.0), "must be", "radius"),
        (dict(n_features=-1), "must be a whole number", "n_features"),
        (dict(n_rows=10.5), "must be a whole number, got", "n_rows"),
        (dict(rho="1"), "must be a number, got", "rho"),
        (dict(rho=True), "must be a number, got", "rho"),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], code: str, parameter: str) -> None:
    usual: dict[str, Any] = dict(n_rows=2000, n_features=5, radius=1.0, rho=0.5, failure=0.05)
    with refused(code, TypeError if "got" in code else ValueError, parameter=parameter):
        utility_bounds.coinpress_mean_error(**(usual | given))


# The least eigenvalue of normal rows of a known covariance.

COVARIANCE = np.array([[0.02, 0.01, 0.0], [0.01, 0.03, 0.0], [0.0, 0.0, 0.01]])


@pytest.mark.parametrize("mean", [0.0, 0.2])
def test_a_least_eigenvalue_fails_no_more_often_than_it_says(mean: float) -> None:
    rng, n, failure, runs = np.random.default_rng(4), 200, 0.3, 1000
    rows = rng.multivariate_normal(np.full(3, mean), COVARIANCE, (runs, n))
    least = np.linalg.eigvalsh(np.swapaxes(rows, 1, 2) @ rows)[:, 0]
    failed = int((least < normal_smallest_eigenvalue(COVARIANCE, n, failure=failure)).sum())
    assert stats.binomtest(failed, runs, failure, alternative="greater").pvalue > 1e-3
    # Planted fault: without √d and the quantile it would fail in most runs of rows about 0.
    planted = float(np.linalg.eigvalsh(COVARIANCE)[0]) * n
    assert mean or stats.binomtest(int((least < planted).sum()), runs, failure, alternative="greater").pvalue < 1e-6


def test_a_least_eigenvalue_is_what_it_says() -> None:
    root = math.sqrt(499) - math.sqrt(3) - math.sqrt(2 * math.log(1e4))
    expected = float(np.linalg.eigvalsh(COVARIANCE)[0]) * root**2
    assert normal_smallest_eigenvalue(COVARIANCE, 500, failure=1e-4) == pytest.approx(expected, rel=1e-12)
    assert normal_smallest_eigenvalue(COVARIANCE, 20) == normal_smallest_eigenvalue(COVARIANCE, 0) == 0.0


def test_a_least_eigenvalue_saves_the_projection_its_padding() -> None:
    """Sheffet, Corollary B.2, second part: the projection of normal rows needs no w²."""
    shape, budget = (
        dpm.mechanisms.shape.MomentShape(3, n_rows=50_000, mean=False),
        dpm.PrivacyBudget.approximate(1.0, 1e-6),
    )
    known = normal_smallest_eigenvalue(COVARIANCE, 50_000)
    plain = dpm.mechanisms.JohnsonLindenstrauss(50).plan(shape, budget, "replace_one")
    told = dpm.mechanisms.JohnsonLindenstrauss(50, smallest_eigenvalue=known).plan(shape, budget, "replace_one")
    assert told.details["padding"] == 0.0 < plain.details["padding"]


@pytest.mark.parametrize(
    ("covariance", "failure", "code"),
    [
        (np.ones((2, 3)), 0.1, "covariance must be a symmetric matrix, got shape"),
        ([[1.0, 0.5], [0.0, 1.0]], 0.1, "covariance must be a symmetric matrix, got shape"),
        ([[1.0, 2.0], [2.0, 1.0]], 0.1, "covariance must be positive semi-definite: it has a"),
        (np.eye(2), 1.0, "must be"),
    ],
)
def test_what_is_no_covariance(covariance: np.ndarray, failure: float, code: str) -> None:
    with refused(code):
        normal_smallest_eigenvalue(covariance, 100, failure=failure)
