"""The ridge parameter from the noise: its posterior mean against enumeration, its noise against releases, and its ends."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.analysis import regression
from dpmoments.analysis.regression import automatic_alpha, expected_coefficients
from support.noise_models import gaussian

pytestmark = pytest.mark.long

CELL = 1e-4
"""Standard deviation of the noise on a cell off the diagonal, for one row's moments."""


def made_up(covariance: np.ndarray, cell: float = CELL, n_rows: int = 1000, raw: np.ndarray | None = None) -> Any:
    """A release of those moments, with Gaussian noise of that size and a mean of 0."""
    d = len(covariance)
    variance = (cell * n_rows) ** 2
    unrepaired = SimpleNamespace(unit_ball_covariance=covariance if raw is None else raw, unit_ball_mean=np.zeros(d))
    return SimpleNamespace(
        noise=gaussian(d, 2.0 * variance, variance, 1e-12, 0.0).law(),
        feature_names=tuple(f"x{i}" for i in range(d)),
        n_rows=n_rows,
        sample_size=float(n_rows),
        noisy_sum=np.zeros(d),
        unit_ball_covariance=covariance,
        with_repair=lambda name: {"none": unrepaired}[name],
    )


def moments(coefficients: np.ndarray, variances: np.ndarray, residual: float = 1e-2) -> np.ndarray:
    """Covariance of independent features of those variances, and of a target that depends on them."""
    cross = variances * coefficients
    covariance = np.diag([*variances, coefficients @ cross + residual])
    covariance[:-1, -1] = covariance[-1, :-1] = cross
    return covariance


def enumerated(s: np.ndarray, c: np.ndarray, v: float, target_variance: float) -> np.ndarray:
    """The posterior mean, with every combination of the coefficients' scales as a hypothesis of its own."""
    scales = [scale / np.mean([0.25, 1.0, 4.0]) for scale in (0.25, 1.0, 4.0)]
    weights, means = [], []
    for exponent, step in itertools.product((0.0, 0.5), range(40)):
        share = (step + 0.5) / 40.0
        common = share * target_variance / np.sum(s ** (1.0 - exponent)) * s**-exponent
        noise = v * (1.0 + common.sum())
        for own in itertools.product(scales, repeat=len(s)):
            prior = common * own
            marginal = s**2 * prior + noise
            weights.append(math.exp(-0.5 * np.sum(c**2 / marginal)) / math.sqrt(np.prod(marginal)))
            means.append(s * prior * c / marginal)
    return np.average(means, axis=0, weights=weights)


@pytest.mark.parametrize("cell", [1e-4, 3e-3, 2e-2])
def test_expected_coefficients_are_the_average_over_all_hypotheses(cell: float) -> None:
    s = np.array([0.001, 0.01, 0.04])
    covariance = moments(np.array([0.5, -0.3, 0.2]), s)
    rotation, _ = np.linalg.qr(np.random.default_rng(4).normal(size=(3, 3)))
    outer = np.eye(4)
    outer[:3, :3] = rotation
    found = expected_coefficients(made_up(outer @ covariance @ outer.T, cell), [0, 1, 2], 3, intercept=True)
    expected = enumerated(s, covariance[:3, 3], cell**2, covariance[3, 3])
    np.testing.assert_allclose(found, rotation @ expected, rtol=1e-8)


def test_cross_moments_are_those_before_the_repair_and_half_of_what_it_took_is_gone() -> None:
    s, raw_cross = np.array([0.01, 0.02]), np.array([0.004, -0.003])
    covariance = moments(np.array([0.1, 0.1]), s)
    raw = covariance.copy()
    raw[:2, 2] = raw[2, :2] = raw_cross
    raw[0, 1] = raw[1, 0] = math.sqrt(3.0) * 1e-3 / 2.0  # ‖D‖² is a quarter of E‖N_AA‖² = 6·10⁻⁶
    found = expected_coefficients(made_up(covariance, 1e-3, raw=raw), [0, 1], 2, intercept=True)
    np.testing.assert_allclose(found, enumerated(s, raw_cross, 0.875e-6, covariance[2, 2]), rtol=1e-9)


def test_no_neighboring_penalty_fits_the_expected_coefficients_better() -> None:
    s = np.array([0.002, 0.01, 0.04])
    covariance, cell = moments(np.array([0.5, -0.3, 0.2]), s), 2e-3
    release = made_up(covariance, cell)
    alpha = automatic_alpha(release, [0, 1, 2], 3, intercept=True)
    expected = expected_coefficients(release, [0, 1, 2], 3, intercept=True)

    def loss(penalty: float) -> float:
        return float(np.sum((s + cell) * (covariance[:3, 3] / (s + penalty) - expected) ** 2))

    assert loss(2.0 * alpha) < min(loss(1.7 * alpha), loss(2.3 * alpha))


def release_of(rows: np.ndarray, **options: Any) -> dpm.MomentRelease:
    return dpm.release(
        rows, dpm.Schema.unit_ball(rows.shape[1]), **({"mechanism": "gaussian", "delta": 1e-6} | options)
    )


def rows_far_out(n_rows: int = 400) -> np.ndarray:
    rng = np.random.default_rng(3)
    x = rng.uniform(-0.2, 0.2, (n_rows, 3)) + np.array([0.4, -0.3, 0.2])
    return np.column_stack([x, 0.3 * x[:, 0] + rng.uniform(-0.1, 0.1, n_rows)])


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
def test_the_noise_it_reckons_with_is_that_of_releases(intercept: bool) -> None:
    rows = rows_far_out()
    exact = np.cov(rows.T, bias=True) if intercept else rows.T @ rows / len(rows)
    energies, reckoned = [], []
    for seed in range(250):
        release = release_of(rows, epsilon=20.0, neighbors="replace_one", repair="none", insecure_seed=seed)
        found = release.unit_ball_covariance if intercept else release.unit_ball_gram / release.n_rows
        energies.append(np.sum((found - exact) ** 2))
        reckoned.append(regression._cell_variance(release, release, intercept, np.ones(4)))
    # Of the noise on the mean the Gram matrix about the table's zero holds nothing: the unit ball's zero is that of the table.
    error = np.std(energies) / math.sqrt(len(energies))
    assert np.mean(energies) == pytest.approx(4 * 5 * np.mean(reckoned), abs=3.0 * error)
    without_mean = release.noise_model.off_diagonal_variance / len(rows) ** 2
    if intercept:  # the noise on the mean is seen
        assert abs(np.mean(energies) - 4 * 5 * without_mean) > 6.0 * error


def test_about_the_zero_of_the_table_a_center_is_as_far_as_it_is() -> None:
    """Σ(u + o)(u + o)ᵀ, u about a center c of the unit ball and o = c + offset/scale: the noise on Σu counts o."""
    release = made_up(np.eye(3))
    release.noise = gaussian(3, 2.0, 1.0, 0.5, 0.0).law()
    release.noisy_sum = np.array([30.0, 0.0, 0.0])
    release.unit_ball_mean = np.array([0.03, 0.2, 0.1])  # c = (0, 0.2, 0.1)
    release.encoding = SimpleNamespace(offset=np.array([2.0, 0.0, 4.0]), scale=np.array([4.0, 1.0, 10.0]))
    expected = (1.0 + 2.0 * (0.5**2 + 0.2**2 + 0.5**2) * 0.5 / 3.0) / release.n_rows**2
    assert regression._cell_variance(release, release, False, np.ones(3)) == pytest.approx(expected)


def test_it_falls_with_the_noise_and_the_fit_becomes_least_squares() -> None:
    rows = rows_far_out(2000)
    found = [
        automatic_alpha(release_of(rows, epsilon=epsilon, insecure_seed=1), [0, 1, 2], 3, intercept=True)
        for epsilon in (1.0, 30.0, 1e3, 1e6)
    ]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1e-7
    release = release_of(rows, epsilon=1e6, insecure_seed=1)
    fit = release.ridge("x3", alpha=found[-1])
    exact = np.linalg.lstsq(rows[:, :3] - rows[:, :3].mean(axis=0), rows[:, 3] - rows[:, 3].mean())[0]
    np.testing.assert_allclose(fit.coefficients, exact, atol=1e-3)


def test_without_noise_there_is_enough_for_levels_that_add_up_to_one() -> None:
    exact = np.array([[0.25, -0.25, 0.1], [-0.25, 0.25, -0.1], [0.1, -0.1, 1.0]])
    release = made_up(exact, 0.0)
    alpha = automatic_alpha(release, [0, 1], 2, intercept=True)
    found = np.linalg.solve(exact[:2, :2] + 2.0 * alpha * np.eye(2), exact[:2, 2])
    assert 0.0 < alpha < 1e-9
    np.testing.assert_allclose(found, [0.2, -0.2], rtol=1e-5)  # solved with a ridge of 1e-9
