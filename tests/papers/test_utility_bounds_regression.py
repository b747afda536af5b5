"""Bounds on regression coefficients from the law of a run, and the utility theorems of Sheffet: laws, levels, planted faults."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import bdtr, bdtrc

import dpmoments as dpm
from dpmoments import mechanisms, utility_bounds
from dpmoments.analysis.regression import _coefficient_error_bound
from dpmoments.moments.models import MomentInterval
from dpmoments.papers.models import LastStepModel
from dpmoments.papers.sampling import inverse_wishart, wishart
from dpmoments.releases.moment_release import MomentRelease

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
