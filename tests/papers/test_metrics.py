"""The errors that benchmarks report, against their definitions, their invariances, and what they must refuse."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy.linalg import expm, sqrtm

from dpmoments import metrics
from support.said import refused

RNG = np.random.default_rng(5)


def positive_definite(d: int, rng: np.random.Generator) -> np.ndarray:
    root = rng.normal(size=(d, d + 2))
    return root @ root.T


def symmetric(d: int, rng: np.random.Generator) -> np.ndarray:
    half = rng.normal(size=(d, d))
    return half + half.T


@pytest.mark.parametrize("d", [1, 2, 7])
def test_definitions(d: int) -> None:
    rng = np.random.default_rng(d)
    truth, estimate, mean, guess = positive_definite(d, rng), symmetric(d, rng), rng.normal(size=d), rng.normal(size=d)
    root = np.linalg.inv(np.real(sqrtm(truth)))
    squares = sum((estimate[i, j] - truth[i, j]) ** 2 for i in range(d) for j in range(d))
    assert metrics.normalized_frobenius_error(estimate, truth, n_rows=50) == pytest.approx(math.sqrt(squares) / 50)
    assert metrics.normalized_frobenius_error(estimate / 50, truth / 50) == pytest.approx(math.sqrt(squares) / 50)
    assert metrics.spectral_error(estimate, truth) == pytest.approx(np.linalg.svd(estimate - truth)[1][0])
    defined = np.linalg.norm(root @ estimate @ root - np.eye(d))
    assert metrics.mahalanobis_error(estimate, truth) == pytest.approx(defined, rel=1e-8)
    assert metrics.mahalanobis_mean_error(guess, mean, truth) == pytest.approx(np.linalg.norm(root @ (guess - mean)))
    assert metrics.mahalanobis_mean_error(guess, mean) == pytest.approx(np.linalg.norm(guess - mean))


def test_mahalanobis_errors_do_not_know_units_or_coordinates() -> None:
    d, rng = 5, np.random.default_rng(2)
    truth, estimate, mean, guess = positive_definite(d, rng), symmetric(d, rng), rng.normal(size=d), rng.normal(size=d)
    units = np.diag([1e-8, 1e6, 1.0, 1e3, 1e-3])
    for change in (expm(rng.normal(size=(d, d))), units):
        moved = change @ truth @ change.T
        moved_estimate = change @ estimate @ change.T
        error = metrics.mahalanobis_error(estimate, truth)
        assert metrics.mahalanobis_error(moved_estimate, (moved + moved.T) / 2) == pytest.approx(error, rel=1e-8)
        mean_error = metrics.mahalanobis_mean_error(guess, mean, truth)
        offset = rng.normal(size=d)
        shifted = metrics.mahalanobis_mean_error(change @ guess + offset, change @ mean + offset, (moved + moved.T) / 2)
        assert shifted == pytest.approx(mean_error, rel=1e-6)
    # planted fault: the Frobenius error is not affine invariant, and this test would see it
    assert metrics.normalized_frobenius_error(units @ estimate @ units, units @ truth @ units) != pytest.approx(
        metrics.normalized_frobenius_error(estimate, truth), rel=1e-3
    )


def test_principal_angles_of_known_planes() -> None:
    angle = 0.3
    plane = np.array([[1.0, 0.0], [0.0, math.cos(angle)], [0.0, math.sin(angle)]])
    flat = np.eye(3)[:, :2]
    np.testing.assert_allclose(metrics.principal_angles(plane, flat), [0.0, angle], atol=1e-15)
    # any basis of the same plane, in any order and of any length
    np.testing.assert_allclose(
        metrics.principal_angles(plane @ [[0.0, -2.0], [1.0, 5.0]], flat), [0.0, angle], atol=1e-14
    )
    # a tiny angle, which arccos of a cosine would lose
    tilted = np.array([[1.0], [1e-12], [0.0]])
    np.testing.assert_allclose(metrics.principal_angles(tilted, flat[:, :1]), [1e-12], rtol=1e-6)
    first, second = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 2))
    projections = [basis @ np.linalg.pinv(basis) for basis in (first, second)]
    largest = np.linalg.norm(projections[0] - projections[1], 2)
    assert math.sin(metrics.principal_angles(first, second)[-1]) == pytest.approx(largest)
    one, other = first[:, 0] / np.linalg.norm(first[:, 0]), second[:, 0] / np.linalg.norm(second[:, 0])
    assert math.cos(metrics.principal_angles(one[:, None], other[:, None])[0]) == pytest.approx(abs(one @ other))
    assert metrics.principal_angles(first, RNG.normal(size=(6, 3))).shape == (2,)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 10.0])
def test_excess_risk_is_the_difference_of_objectives_on_the_rows(alpha: float) -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 3))
    target, n = rows @ [1.0, -2.0, 0.5] + rng.normal(size=200), 200

    def objective(w: np.ndarray) -> float:
        return float(np.mean((rows @ w - target) ** 2) / 2 + alpha * w @ w)

    moment, cross = rows.T @ rows / n, rows.T @ target / n
    best = np.linalg.solve(moment + 2 * alpha * np.eye(3), cross)
    fit = best + rng.normal(size=3)
    found = metrics.excess_ridge_risk(fit, moment, cross, alpha=alpha)
    assert found == pytest.approx(objective(fit) - objective(best), rel=1e-9)
    # planted fault: a penalty of α instead of Amin's 2α in the normal equations is not the minimiser
    if alpha:
        assert (
            metrics.excess_ridge_risk(np.linalg.solve(moment + alpha * np.eye(3), cross), moment, cross, alpha=alpha)
            > 0
        )


I2, SINGULAR = np.eye(2), np.ones((2, 2))
SHAPE, MISFIT, INFINITE = "has shape", "which do not fit each other", "holds NaN or infinity: use finite numbers"
NO_ERROR = "is singular or has a negative eigenvalue, so an error"
DEPENDENT = "are linearly dependent: give as many as the subspace has"
ASYMMETRIC = "is not symmetric: pass (M + Mᵀ)/2 if the difference is"
REFUSED = [
    (metrics.normalized_frobenius_error, (np.ones((2, 3)), I2), SHAPE),
    (metrics.normalized_frobenius_error, (I2, np.eye(3)), MISFIT),
    (metrics.normalized_frobenius_error, (I2, [[np.nan, 0], [0, 1]]), INFINITE),
    (metrics.normalized_frobenius_error, ([[0, 1], [2, 0]], I2), ASYMMETRIC),
    (partial(metrics.normalized_frobenius_error, n_rows=0), (I2, I2), "must be"),
    (partial(metrics.normalized_frobenius_error, n_rows=math.inf), (I2, I2), "must be"),
    (metrics.normalized_frobenius_error, (np.zeros((0, 0)), np.zeros((0, 0))), SHAPE),
    (metrics.spectral_error, ([[math.inf, 0], [0, 1]], I2), INFINITE),
    (metrics.spectral_error, (np.ones(2), I2), SHAPE),
    (metrics.mahalanobis_error, (I2, SINGULAR), NO_ERROR),
    (metrics.mahalanobis_error, (I2, [[1.0, 2.0], [2.0, 1.0]]), NO_ERROR),
    (metrics.mahalanobis_error, (np.eye(3), I2), MISFIT),
    (metrics.mahalanobis_mean_error, ([1.0], [1.0, 2.0]), MISFIT),
    (metrics.mahalanobis_mean_error, ([[1.0]], [1.0]), SHAPE),
    (metrics.mahalanobis_mean_error, ([1.0, 2.0], [1.0, np.nan]), INFINITE),
    (metrics.mahalanobis_mean_error, ([1.0, 2.0], [1.0, 2.0], np.eye(3)), MISFIT),
    (metrics.mahalanobis_mean_error, ([1.0, 2.0], [1.0, 2.0], SINGULAR), NO_ERROR),
    (metrics.principal_angles, (np.ones((2, 3)), I2), SHAPE),
    (metrics.principal_angles, (SINGULAR, I2), DEPENDENT),
    (metrics.principal_angles, (I2, np.eye(3)), MISFIT),
    (metrics.principal_angles, (I2 * np.nan, I2), INFINITE),
    (metrics.principal_angles, ([1.0, 0.0], I2), SHAPE),
    (partial(metrics.excess_ridge_risk, alpha=-1.0), ([1.0, 1.0], I2, [1.0, 1.0]), "must be"),
    (partial(metrics.excess_ridge_risk, alpha=math.nan), ([1.0, 1.0], I2, [1.0, 1.0]), "must be"),
    (metrics.excess_ridge_risk, ([1.0, 1.0], SINGULAR, [1.0, 1.0]), NO_ERROR),
    (metrics.excess_ridge_risk, ([1.0], I2, [1.0, 1.0]), MISFIT),
    (metrics.excess_ridge_risk, ([1.0] * 3, I2, [1.0] * 3), MISFIT),
    (metrics.excess_ridge_risk, ([1.0, math.inf], I2, [1.0, 1.0]), INFINITE),
]


def test_what_has_no_error_is_refused() -> None:
    for error, arguments, code in REFUSED:
        with refused(code):
            error(*arguments)


def test_a_ridge_makes_a_singular_table_comparable() -> None:
    assert metrics.excess_ridge_risk([0.0, 0.0], SINGULAR, [1.0, 1.0], alpha=0.1) > 0
