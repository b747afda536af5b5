"""Bounds: on coefficients from the law of a run, of the theorems of Sheffet, CoinPress and lecture 18; with planted faults."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import bdtr, bdtrc

import dpmoments as dpm
from dpmoments import mechanisms, utility_bounds
from dpmoments.analysis.regression import _coefficient_error_bound
from dpmoments.mechanisms.means import CoinPressMean
from dpmoments.moments.models import MomentInterval
from dpmoments.papers.bounds import normal_smallest_eigenvalue
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress
from dpmoments.papers.models import LastStepModel
from dpmoments.papers.sampling import inverse_wishart, wishart
from dpmoments.releases.moment_release import MomentRelease
from support.said import refused

pytestmark = pytest.mark.long

D = 3
BUDGET: dict[str, Any] = dict(epsilon=1.0, delta=1e-6)
TABLE = np.random.default_rng(3).uniform(-0.5, 0.5, (3_000, D)) @ np.array([[1, 0.3, 0.2], [0, 0.7, 0.1], [0, 0, 0.4]])


def as_rare_as(failures: int, trials: int, probability: float) -> bool:
    """Whether so many failures are possible for a bound that fails with at most that probability."""
    return failures == 0 or float(bdtrc(failures - 1, trials, probability)) > 1e-4


def as_often_as(failures: int, trials: int, probability: float) -> bool:
    """Whether so few failures are possible for one that fails with exactly that probability."""
    return float(bdtr(failures, trials, probability)) > 1e-4


# Quantiles ------------------------------------------------------------------------------------------------------------


# Theorems of Sheffet --------------------------------------------------------------------------------------------------


def draws_of(inverse: bool, degrees: int, trials: int, scale: np.ndarray) -> np.ndarray:
    rng, root = np.random.default_rng(0), np.linalg.cholesky(scale)
    make = inverse_wishart if inverse else wishart
    return np.array([make(root, degrees, rng) for _ in range(trials)])


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("features", [(0, 1, 2), (1,)])
def test_the_laws_of_drawn_coefficients_are_exact(inverse: bool, features: tuple[int, ...]) -> None:
    """Each radius is passed as often as it says, no more and no less; also where features are left out."""
    dimension, degrees, trials, failure, k = 4, 11, 3_000, 0.2, len(features)
    scale = np.array([[4.0, 1.0, 0.5, 1.0], [1.0, 2.0, 0.3, 0.7], [0.5, 0.3, 1.0, 0.2], [1.0, 0.7, 0.2, 3.0]])
    block = [*features, 3]
    inner = scale[np.ix_(block, block)]
    beta = np.linalg.solve(inner[:-1, :-1], inner[:-1, -1])
    residual = inner[-1, -1] - inner[-1, :-1] @ beta
    before, after = [], []
    for drawn in draws_of(inverse, degrees, trials, scale)[:, np.array(block)[:, None], block]:
        found = np.linalg.solve(drawn[:-1, :-1], drawn[:-1, -1])
        before.append((found - beta) @ inner[:-1, :-1] @ (found - beta) / residual)
        after.append((found - beta) @ drawn[:-1, :-1] @ (found - beta) / (drawn[-1, -1] - drawn[-1, :-1] @ found))
    if inverse:
        radius = utility_bounds.posterior_draw_radius(k, degrees, dimension, failure)
        wrong = utility_bounds.posterior_draw_radius(k, degrees + 4, dimension, failure)
    else:
        radius = utility_bounds.projected_ridge_radius(k, degrees, failure)
        wrong = utility_bounds.projected_ridge_radius(k, degrees + 4, failure)
    released = utility_bounds.released_coefficient_radius(
        k, degrees, 1.0, failure, dimension=dimension if inverse else None
    )
    for squares, limit in ((before, radius), (after, released)):
        failures = int((np.array(squares) > limit**2).sum())
        assert as_rare_as(failures, trials, failure)
        assert as_often_as(failures, trials, failure)
    # planted faults: four degrees of freedom too many, half the radius
    assert not as_rare_as(int((np.array(before) > wrong**2).sum()), trials, failure)
    assert not as_rare_as(int((np.array(after) > released**2 / 4).sum()), trials, failure)


def test_the_draw_from_the_posterior_is_the_better_one_at_few_degrees_of_freedom() -> None:
    """Section 5.1 leaves it open whether it is; with k = D − 1 the exact laws tell."""
    for degrees in (12, 20, 200):
        assert utility_bounds.posterior_draw_radius(9, degrees, 10, 0.05) < utility_bounds.projected_ridge_radius(
            9, degrees, 0.05
        )


def test_the_shrinkage_of_ridge_regression_is_bounded_and_attained() -> None:
    gram, penalty = np.diag([9.0, 4.0, 1.0]), 0.5
    for beta in np.random.default_rng(0).normal(size=(50, 3)):
        moved = np.linalg.norm(np.linalg.solve(gram + penalty * np.eye(3), gram @ beta) - beta)
        assert moved <= utility_bounds.ridge_distance_bound(float(np.linalg.norm(beta)), penalty, 1.0) * (1 + 1e-12)
    assert utility_bounds.ridge_distance_bound(2.0, penalty, 1.0) == pytest.approx(2.0 / 3.0)


def failures_of(bound: float, beta: np.ndarray, draws: np.ndarray) -> int:
    found = np.linalg.solve(draws[:, :-1, :-1], draws[:, :-1, -1:])[..., 0]
    return int((np.linalg.norm(found - beta, axis=1) > bound).sum())


def test_utility_bounds_before_there_is_data_hold_and_fail_if_a_constant_is_halved() -> None:
    gram, trials, failure = TABLE.T @ TABLE, 600, 0.1
    beta = np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
    residual, size = float(gram[-1, -1] - gram[-1, :-1] @ beta), float(np.linalg.norm(beta))
    smallest, n = float(np.linalg.eigvalsh(gram[:-1, :-1])[0]), len(TABLE)
    rng = np.random.default_rng(1)
    for subtracted in (False, True):
        given = dict(epsilon=4.0, delta=1e-6, degrees=512, failure=failure, padding_subtracted=subtracted)
        bound = utility_bounds.johnson_lindenstrauss_bound(n, smallest / n, residual / n, size, 2, **given)  # type: ignore[arg-type]
        root = np.linalg.cholesky(gram + bound.padding * np.eye(3))
        off = bound.padding * np.eye(3) if subtracted else 0.0
        draws = np.array([wishart(root, 512, rng) / 512 - off for _ in range(trials)])
        assert math.isfinite(bound.total)
        assert as_rare_as(failures_of(bound.total, beta, draws), trials, failure)
        # planted fault: a quarter of it, or the shrinkage forgotten
        assert not as_rare_as(failures_of(bound.total / (8 if subtracted else 4), beta, draws), trials, failure)
    noise = dict(degrees=20, scale=2.0, failure=failure)
    for subtracted in (False, True):
        limit = utility_bounds.additive_wishart_bound(size, smallest, 2, mean_subtracted=subtracted, **noise)  # type: ignore[arg-type]
        mean = 40.0 * np.eye(3) if subtracted else 0.0
        added = np.array([gram + wishart(math.sqrt(2.0) * np.eye(3), 20, rng) - mean for _ in range(trials)])
        assert as_rare_as(failures_of(limit, beta, added), trials, failure)
        assert not as_rare_as(failures_of(limit / 8, beta, added), trials, failure)
    cells = rng.normal(0.0, 3.0, (trials, 3, 3))
    limit = utility_bounds.gaussian_noise_bound(size, smallest, 2, noise_scale=3.0, failure=failure)
    drawn = gram + (cells + np.swapaxes(cells, 1, 2)) / 2.0
    assert as_rare_as(failures_of(limit, beta, drawn), trials, failure)
    assert not as_rare_as(failures_of(limit / 8, beta, drawn), trials, failure)
    assert math.isinf(utility_bounds.gaussian_noise_bound(size, 1.0, 2, noise_scale=3.0, failure=failure))


# The law of a run -----------------------------------------------------------------------------------------------------

RUNS = {
    "projection": mechanisms.JohnsonLindenstrauss(40),
    "projection, ridge kept": mechanisms.JohnsonLindenstrauss(40, subtract_padding=False),
    "projection, adaptive": mechanisms.JohnsonLindenstrauss(20, adaptive=True),
    "posterior draw": mechanisms.InverseWishart(40),
    "inverse": mechanisms.InverseGaussian(20.0),
    "coinpress": mechanisms.CoinPress(),
}


def inside(interval: MomentInterval, exact: np.ndarray) -> bool:
    """Whether a matrix is between center − spread and center + spread."""
    gap = exact - interval.center
    lowest = min(float(np.linalg.eigvalsh(interval.spread + sign * gap)[0]) for sign in (1.0, -1.0))
    return lowest >= -1e-9 * float(np.trace(interval.spread))


def rows_as_seen(release: MomentRelease) -> np.ndarray:
    """As the last step clipped them, where there is one."""
    model = release.noise_model
    if not isinstance(model, LastStepModel):
        return TABLE
    scaled = (TABLE - model.center) @ model.linear.T
    shrunk = (
        scaled * np.minimum(1.0, release.diagnostics["steps"][-1]["radius"] / np.linalg.norm(scaled, axis=1))[:, None]
    )
    return model.center + np.linalg.solve(model.linear, shrunk.T).T


def run(name: str, seed: int, mean: bool, neighbors: str) -> MomentRelease:
    known = {} if mean or neighbors == "replace_one" else {"n_rows": len(TABLE)}
    return dpm.release(
        TABLE,
        dpm.Schema.unit_ball(D),
        mechanism=RUNS[name],
        mean=mean,
        neighbors=neighbors,
        insecure_seed=seed,
        **BUDGET,
        **known,
    )


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize(("mean", "neighbors"), [(True, "add_remove"), (False, "replace_one")])
def test_the_interval_of_a_run_holds_the_exact_moments(name: str, mean: bool, neighbors: str) -> None:
    """At its level, for two of three features; an interval of a quarter of the width does not."""
    chosen, failure, trials, misses, narrow = [0, 2], 0.3, 30, 0, 0
    for seed in range(trials):
        release = run(name, seed, mean, neighbors)
        assert release.noise_model is not None
        found = release.noise_model.interval(release, chosen, failure)
        assert found is not None
        assert found.constant == mean
        rows = rows_as_seen(release)[:, chosen]
        rows = np.column_stack([np.ones(len(rows)), rows]) if mean else rows
        misses += not inside(found, rows.T @ rows)
        narrow += not inside(dataclasses.replace(found, spread=found.spread / 4.0), rows.T @ rows)
    assert as_rare_as(misses, trials, failure)
    assert not as_rare_as(narrow, trials, failure)


@pytest.mark.slow
def test_the_bound_on_coefficients_holds_for_every_table_in_the_interval() -> None:
    """Random and extreme members of the interval, fits from anywhere; and it is nearly reached."""
    rng, closest = np.random.default_rng(0), 0.0
    for trial in range(300):
        constant, k = bool(trial % 2), 2
        size = k + 1 + constant
        rows = rng.normal(size=(40, size)) + 0.3
        if constant:
            rows[:, 0] = 1.0
        center = rows.T @ rows
        root = rng.normal(size=(size, size))
        spread = root @ root.T * 10.0 ** rng.uniform(-3, 0.3)
        interval = MomentInterval(center, spread, constant, 0.0)
        # E = R^½KR^½ with ‖K‖ ≤ 1
        half = np.linalg.cholesky(spread + 1e-12 * np.eye(size))
        signs = rng.choice([-1.0, 1.0], size)
        turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
        exact = center + half @ (turn * signs) @ turn.T @ half.T
        alpha = float(rng.choice([0.0, 0.02]))
        penalty = 2 * alpha * 40 * np.diag([0.0] * constant + [1.0] * k)
        if np.linalg.eigvalsh(exact)[0] <= 0:
            continue
        truth = np.linalg.solve(exact[:-1, :-1] + penalty, exact[:-1, -1])[constant:]
        fit = np.linalg.solve(center[:-1, :-1] + penalty, center[:-1, -1])[constant:] + rng.choice(
            [0.0, 0.1]
        ) * rng.normal(size=k)
        bound = _coefficient_error_bound(interval, fit, alpha, 40.0, 0.0)
        error = float(np.linalg.norm(fit - truth))
        assert error <= bound * (1 + 1e-6)
        closest = max(closest, error / bound)
    assert closest > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["projection", "posterior draw", "coinpress"])
def test_the_bound_beside_a_fit_holds_and_is_of_use(name: str) -> None:
    errors, bounds = [], []
    for seed in range(20):
        release = run(name, seed, True, "add_remove")
        fit = release.ridge("x2", alpha=0.01, level=0.8)
        moment = np.cov(rows_as_seen(release).T, bias=True)
        exact = np.linalg.solve(moment[:2, :2] + 0.02 * np.eye(2), moment[:2, 2])
        errors.append(float(np.linalg.norm(fit.unit_ball_coefficients - exact)))
        assert fit.unit_ball_error_bound is not None
        bounds.append(fit.unit_ball_error_bound)
    assert as_rare_as(int((np.array(errors) > bounds).sum()), 20, 0.2)
    assert np.median(np.array(bounds) / errors) < 30.0
    assert not as_rare_as(int((np.array(errors) > np.array(bounds) / 30).sum()), 20, 0.2)


def test_the_answer_says_what_a_bound_is_about_and_where_it_says_nothing() -> None:
    clipped = run("coinpress", 0, True, "add_remove").ridge("x2", alpha=0.01)
    assert "what clipping took away comes on top" in clipped.summary()
    assert clipped.to_dict()["error_bound_note"] == clipped.error_bound_note
    asserted = run("inverse", 0, True, "add_remove").ridge("x2", alpha=0.01)
    assert "smallest_eigenvalue" in asserted.error_bound_note
    assert "asserted-smallest-eigenvalue" in asserted.summary()
    assert "moved the encoded coefficients" not in asserted.summary()  # a bound above their norm
    small = dpm.release(
        TABLE[:100],
        dpm.Schema.unit_ball(D),
        mechanism=RUNS["projection"],
        mean=False,
        neighbors="replace_one",
        insecure_seed=0,
        **BUDGET,
    )
    beyond = small.ridge("x2", alpha=0.01)
    assert beyond.unit_ball_error_bound is not None
    assert beyond.unit_ball_error_bound > np.linalg.norm(beyond.unit_ball_coefficients)
    assert "moved the encoded coefficients" not in beyond.summary()
    other = dpm.release(
        TABLE, dpm.Schema.unit_ball(D), mechanism="iterative-eigenvectors", epsilon=1.0, insecure_seed=0
    )
    fit = other.ridge("x2", alpha=0.01)
    assert fit.unit_ball_error_bound is None
    assert "conditional on more than the release" in fit.error_bound_note


# Files ----------------------------------------------------------------------------------------------------------------


# Rows that an error needs, by CoinPress and lecture 18, against runs of the mechanisms.

PAPER_STEP = 0.05 / 60


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


def test_the_theorem_of_means_needs_no_rows_for_a_radius_of_one_deviation() -> None:
    """Its three terms, of which the last is that of the search."""
    of_errors = 10 / 0.2**2 + 10 / (0.2 * math.sqrt(0.5))
    for radius, search in ((1.0, 0.0), (0.5, 0.0), (math.e, math.sqrt(10 / 0.5))):
        found = utility_bounds.coinpress_mean_theorem(0.2, 10, radius, 0.5, 0.05)
        assert found == pytest.approx((of_errors + search) * math.log(20.0))


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


def test_what_cannot_be_is_refused_by_name() -> None:
    usual: dict[str, Any] = dict(n_rows=2000, n_features=5, radius=1.0, rho=0.5, failure=0.05)
    no_number = "must be a number, got"
    for parameter, value, code in (
        ("failure", 2, "must be"),
        ("step_failure", 0.0, "must be"),
        ("rho", 0, "must be"),
        ("rho", math.nan, "must be"),
        ("radius", -1.0, "must be"),
        ("n_features", -1, "must be a whole number"),
        ("n_rows", 10.5, "must be a whole number, got"),
        ("rho", "1", no_number),
        ("rho", True, no_number),
    ):
        with refused(code, TypeError if "got" in code else ValueError, parameter=parameter):
            utility_bounds.coinpress_mean_error(**(usual | {parameter: value}))


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


def test_what_is_no_covariance() -> None:
    asymmetric = "covariance must be a symmetric matrix, got shape"
    indefinite = "covariance must be positive semi-definite: it has a"
    for covariance, failure, code in (
        (np.ones((2, 3)), 0.1, asymmetric),
        ([[1.0, 0.5], [0.0, 1.0]], 0.1, asymmetric),
        ([[1.0, 2.0], [2.0, 1.0]], 0.1, indefinite),
        (np.eye(2), 1.0, "must be"),
    ):
        with refused(code):
            normal_smallest_eigenvalue(np.array(covariance), 100, failure=failure)
