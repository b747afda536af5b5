"""Methods that spend all their budget on one regression: calibrated to it, neither more nor less, and measured alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from benchmarks.practice.regression import methods as adassp_module
from benchmarks.practice.regression.methods import (
    NoisyGradientDescent,
    OutputPerturbation,
    adassp,
    boosted_adassp,
    clipped_gradient,
    constrained_ridge,
    gaussian_distance,
    hessian_mixing,
    linear_mixing,
    minimiser_sensitivity,
    noisy_statistics,
    sketch_epsilon,
    tukey_fit,
    vector_noise,
)
from benchmarks.practice.regression.ridge_parameter import RULES, excess_by_rule
from benchmarks.practice.regression.single_regression import Regression, SingleRegression
from benchmarks.practice.regression.tuning import tuned_perturbation
from scipy import optimize, stats

import dpmoments as dpm
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import gaussian_delta
from dpmoments.privacy.unit import Neighbors

PURE, APPROXIMATE = PrivacyBudget.of(epsilon=2.0), PrivacyBudget.of(epsilon=2.0, delta=1e-6)


def moved(rows: np.ndarray, target: np.ndarray, more: np.ndarray, penalty: float, bound: float) -> float:
    """How far the constrained minimiser moves when the row ``more`` (its target last) joins."""
    gram, cross = rows.T @ rows, rows.T @ target
    x, y = more[:-1], more[-1]
    before = constrained_ridge(gram, cross, penalty, bound)
    return float(np.linalg.norm(constrained_ridge(gram + np.outer(x, x), cross + y * x, penalty, bound) - before))


@pytest.mark.parametrize("bound", [0.3, 2.0])
def test_the_sensitivity_of_the_constrained_minimiser_is_reached_and_never_passed(bound: float) -> None:
    penalty = 50.0
    limit = minimiser_sensitivity(penalty, bound, Neighbors.ADD_REMOVE)
    rng = np.random.default_rng(0)
    for _ in range(100):
        rows = rng.normal(size=(rng.integers(1, 40), 2))
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        more = np.append(rows[0] / np.linalg.norm(rows[0]), rng.choice([-1.0, 1.0]))
        assert moved(rows, rng.choice([-1.0, 1.0], len(rows)), more, penalty, bound) <= limit * (1.0 + 1e-9)
    # Many short rows pull w to −W along e₁ and hardly bend the objective; then comes (e₁, 1), against a strong penalty.
    penalty, length = 500.0, 1e-3
    limit = minimiser_sensitivity(penalty, bound, Neighbors.ADD_REMOVE)
    rows = np.zeros((round(bound * penalty / length), 2))
    rows[:, 0] = length
    assert 0.99 * limit < moved(rows, -np.ones(len(rows)), np.array([1.0, 0.0, 1.0]), penalty, bound) <= limit


def test_a_replaced_row_moves_the_minimiser_by_less_than_two_rows() -> None:
    penalty, bound, rng = 1.0, 1.0, np.random.default_rng(1)
    limit, largest = minimiser_sensitivity(penalty, bound, Neighbors.REPLACE_ONE), 0.0
    for _ in range(500):
        rows = rng.normal(size=(rng.integers(0, 4), 2)) * 0.2
        fits = []
        for _ in range(2):
            x = rng.normal(size=2)
            x /= np.linalg.norm(x)
            every, target = np.vstack([rows, x]), np.append(np.ones(len(rows)), rng.choice([-1.0, 1.0]))
            fits.append(constrained_ridge(every.T @ every, every.T @ target, penalty, bound))
        largest = max(largest, float(np.linalg.norm(fits[0] - fits[1])))
    assert 0.3 * limit < largest <= limit
    assert limit < 2.0 * minimiser_sensitivity(penalty, bound, Neighbors.ADD_REMOVE)


def test_constrained_ridge_is_the_minimiser() -> None:
    rng = np.random.default_rng(2)
    rows, target = rng.normal(size=(30, 3)), rng.normal(size=30) + 1.0
    for bound in (0.05, 10.0):
        found = constrained_ridge(rows.T @ rows, rows.T @ target, 0.5, bound)
        reference = optimize.minimize(
            lambda w: np.sum((rows @ w - target) ** 2) + 0.5 * w @ w, np.zeros(3), method="SLSQP",
            constraints={"type": "ineq", "fun": lambda w, bound=bound: bound - np.linalg.norm(w)}, tol=1e-14,
        )  # fmt: skip
        np.testing.assert_allclose(found, reference.x, atol=2e-4)
        assert np.linalg.norm(found) <= bound * (1.0 + 1e-9)


def test_pure_noise_has_a_uniform_direction_and_a_gamma_length() -> None:
    noise = vector_noise((3, 4000), 0.7, PURE, 0.5, np.random.default_rng(3))
    length = np.linalg.norm(noise, axis=0)
    assert stats.kstest(length, stats.gamma(3, scale=0.7 / (2.0 * 0.5)).cdf).pvalue > 0.01
    # Archimedes, in three dimensions; and one degree too few is noticed.
    assert stats.kstest(noise[0] / length, stats.uniform(-1.0, 2.0).cdf).pvalue > 0.01
    assert stats.kstest(length, stats.gamma(2, scale=0.7 / (2.0 * 0.5)).cdf).pvalue < 1e-6


def test_gaussian_noise_spends_the_budget_and_no_more() -> None:
    distance = gaussian_distance(APPROXIMATE)
    assert gaussian_delta(2.0, distance, 1.0) <= 1e-6 < gaussian_delta(2.0, 1.01 * distance, 1.0)
    noise = vector_noise((5, 8000), 0.7, APPROXIMATE, 0.25, np.random.default_rng(4))
    assert stats.kstest(noise.ravel() * distance * math.sqrt(0.25) / 0.7, "norm").pvalue > 0.01
    with pytest.raises(ValueError, match="no calibration"):
        gaussian_distance(PURE)


def test_output_perturbation_has_noise_of_its_sensitivity() -> None:
    nothing = np.zeros((2, 2)), np.zeros(2)
    found = OutputPerturbation(3.0, 0.5).fits(*nothing, PURE, 4000, np.random.default_rng(13))
    scale = minimiser_sensitivity(3.0, 0.5, Neighbors.ADD_REMOVE) / 2.0
    assert stats.kstest(np.linalg.norm(found, axis=0), stats.gamma(2, scale=scale).cdf).pvalue > 0.01


@pytest.mark.parametrize("steps", [1, 6])
def test_all_steps_of_gradient_descent_together_spend_the_budget(steps: int) -> None:
    """On rows of zeros only noise moves w: by T draws of Δ/σ = μ/√T, each times η/λ₁."""
    zeros = np.zeros((10, 2))
    descent = NoisyGradientDescent(steps, clip=0.3, rate=1.5)
    found = descent.fits(zeros, np.ones(10), APPROXIMATE, 5000, np.random.default_rng(5), 6.0)
    scale = 0.3 * math.sqrt(steps) / gaussian_distance(APPROXIMATE)
    assert stats.kstest(found.ravel() / (scale * math.sqrt(steps) * 1.5 / 6.0), "norm").pvalue > 0.01
    pure = descent.fits(zeros, np.ones(10), PURE, 5000, np.random.default_rng(6), 6.0)
    square = steps * 2.0 * 3.0 * (0.3 * steps / 2.0) ** 2 * (1.5 / 6.0) ** 2  # E Gamma(k, θ)² = k(k + 1)θ²
    assert np.mean(np.sum(pure**2, axis=0)) == pytest.approx(square, rel=0.06)


def test_clipped_gradients_are_those_of_a_loop_and_move_by_the_clip_at_most() -> None:
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(50, 3)) * 0.4
    rows[0] = 0.0
    target, weights = rng.normal(size=50), rng.normal(size=(3, 2))
    norms = np.linalg.norm(rows, axis=1)
    found = clipped_gradient(rows, norms, target, weights, 0.2)
    for run in range(2):
        total = np.zeros(3)
        for x, y in zip(rows, target, strict=True):
            own = (x @ weights[:, run] - y) * x
            total += own * min(1.0, 0.2 / max(float(np.linalg.norm(own)), 1e-300))
        np.testing.assert_allclose(found[:, run], total, atol=1e-12)
    shifts = []
    for row in range(50):
        others = np.arange(50) != row
        without = clipped_gradient(rows[others], norms[others], target[others], weights, 0.2)
        shifts.append(np.linalg.norm(found - without, axis=0))
    assert 0.2 * (1.0 - 1e-9) < np.max(shifts) <= 0.2 * (1.0 + 1e-9)


def spent_distance(runs: int = 4000) -> float:
    """μ of AdaSSP's three parts, from the noise that they show; each has sensitivity 1."""
    rng = np.random.default_rng(8)
    found = [noisy_statistics(1000.0 * np.eye(2), np.zeros(2), APPROXIMATE, rng) for _ in range(runs)]
    gram = np.array([[one.gram[0, 0], one.gram[1, 1], math.sqrt(2.0) * one.gram[0, 1]] for one in found])
    variances = (
        gram.var(axis=0).mean(),
        np.var([one.cross for one in found]),
        np.var([one.least_eigenvalue for one in found]),
    )
    assert np.allclose(gram.var(axis=0), variances[0], rtol=0.1)  # isotropic in the Frobenius norm
    return math.sqrt(sum(1.0 / variance for variance in variances))


def test_the_parts_of_adassp_together_spend_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spent_distance() == pytest.approx(gaussian_distance(APPROXIMATE), rel=0.03)
    monkeypatch.setattr(adassp_module, "PARTS", 2)  # as if there were two
    assert spent_distance() > 1.1 * gaussian_distance(APPROXIMATE)


def test_the_parts_of_adassp_under_a_pure_budget_have_a_third_each() -> None:
    rng = np.random.default_rng(9)
    found = [noisy_statistics(1000.0 * np.eye(2), np.zeros(2), PURE, rng) for _ in range(2500)]
    rate = 2.0 / 3.0
    assert np.var([one.gram[0, 1] for one in found]) == pytest.approx(3.0 / (2.0 * rate**2), rel=0.1)
    assert np.mean([np.linalg.norm(one.cross) for one in found]) == pytest.approx(2.0 / rate, rel=0.05)
    least = np.array([one.least_eigenvalue for one in found])
    assert np.var(least) == pytest.approx(2.0 / rate**2, rel=0.15)
    assert np.mean(least > 1000.0) == pytest.approx(adassp_module.FAILURE, abs=0.015)


def test_the_ridge_of_adassp_is_what_the_least_eigenvalue_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = adassp_module.NoisyStatistics(2.0 * np.eye(2), np.ones(2), least_eigenvalue=3.0, noise_norm=5.0)
    monkeypatch.setattr(adassp_module, "noisy_statistics", lambda *_: found)
    weights = adassp(np.eye(2), np.ones(2), PURE, np.random.default_rng(0))
    np.testing.assert_allclose(weights, [0.25, 0.25])  # 1/(2 + 5 − 3)


SCHEMA = dpm.Schema(
    dpm.Numeric("a", 0, 10, missing="drop"),
    dpm.Categorical("c", ("u", "v", "w")),
    dpm.Boolean("flag"),
    dpm.Numeric("y", -2, 8),
)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    n = 600
    frame = pd.DataFrame({"a": rng.uniform(0, 10, n), "c": rng.choice(["u", "v", "w"], n), "flag": rng.random(n) < 0.3})
    frame["y"] = np.clip(0.3 * frame["a"] + (frame["c"] == "u") - frame["flag"] + rng.normal(0, 1, n), -2, 8)
    frame.loc[0, ["a", "c", "flag", "y"]] = [10.0, "v", True, 8.0]  # a row of the largest norm
    frame.loc[[5, 9], "a"] = np.nan
    return frame


def design(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    kept = table.dropna()
    levels = [(kept["c"] == level).to_numpy(float) for level in "uvw"]
    columns = [kept["a"].to_numpy(), *levels, kept["flag"].to_numpy(float)]
    return np.column_stack(columns), kept["y"].to_numpy()


def test_a_single_regression_has_rows_of_norm_one_at_most_and_the_tables_least_squares(table: pd.DataFrame) -> None:
    single, truth = SingleRegression.of(table, SCHEMA, "y"), Regression.of(table, SCHEMA, "y")
    assert single.rows.shape == (598, 6)
    assert np.linalg.norm(single.rows, axis=1).max() == pytest.approx(1.0)
    assert np.abs(single.target).max() == pytest.approx(1.0)
    gram, cross = single.moments()
    least_squares = np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ cross
    assert single.excess(least_squares, truth) == pytest.approx(0.0, abs=1e-8)
    x, y = design(table)
    with_constant = np.column_stack([x, np.ones(len(x))])
    residual = y - with_constant @ np.linalg.lstsq(with_constant, y)[0]
    assert truth.explained_share == pytest.approx(1.0 - residual.var() / y.var(), abs=1e-5)
    weights = np.array([0.5, 0.1, -0.2, 0.3, 0.4, -0.1])
    own = np.mean((single.target - single.rows @ weights) ** 2) / single.target.var()
    assert single.excess(weights, truth) == pytest.approx(own - residual.var() / y.var(), rel=1e-4)


def test_excess_of_a_release_is_that_of_its_line_on_the_rows(table: pd.DataFrame) -> None:
    truth = Regression.of(table, SCHEMA, "y")
    release = dpm.release(table, SCHEMA, epsilon=5.0, insecure_seed=0)
    x, y = design(table)
    names = ["a", "c=u", "c=v", "c=w", "flag"]
    places, target = [release.feature_names.index(name) for name in names], release.feature_names.index("y")
    encoded = release.unit_ball_covariance
    system = encoded[np.ix_(places, places)] + 2.0 * 0.002 * np.eye(len(places))
    scale = release.encoding.scale
    slopes = np.linalg.solve(system, encoded[places, target]) * scale[target] / scale[places]
    constant = release.mean[target] - slopes @ release.mean[places]
    risk = np.mean((y - x @ slopes - constant) ** 2) / y.var()
    found = truth.excess_of_release(release, 0.002)
    assert found == pytest.approx(risk - (1.0 - truth.explained_share), rel=1e-3)
    assert found > 1e-3
    by_rule = excess_by_rule(release, truth)
    assert by_rule["hindsight"] <= min(by_rule[name] for name in RULES)  # of those that choose α


def test_more_budget_gives_less_excess_risk(table: pd.DataFrame) -> None:
    single, truth = SingleRegression.of(table, SCHEMA, "y"), Regression.of(table, SCHEMA, "y")
    gram, cross = single.moments()
    largest = float(np.linalg.eigvalsh(gram)[-1])
    plenty = PrivacyBudget.of(epsilon=500.0, delta=1e-6)
    for poor, rich in ((PrivacyBudget.pure(0.5), PrivacyBudget.pure(500.0)), (APPROXIMATE, plenty)):
        excess = []
        for budget in (poor, rich):
            rng = np.random.default_rng(12)
            tuned, descent = tuned_perturbation(single, truth, budget), NoisyGradientDescent(60, 1.0, 1.5)
            fits = (
                np.column_stack([adassp(gram, cross, budget, rng) for _ in range(20)]),
                OutputPerturbation(tuned.penalty, tuned.bound).fits(gram, cross, budget, 20, rng),
                descent.fits(single.rows, single.target, budget, 20, rng, largest),
            )
            excess.append([np.mean([single.excess(run, truth) for run in weights.T]) for weights in fits])
        assert np.all(np.array(excess[1]) < 0.5 * np.array(excess[0]))


def a_line(n_rows: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm at most 1 with a constant, and targets within −1 and 1."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(-0.4, 0.4, (n_rows, 3)), np.full(n_rows, 0.5)])
    return rows, rows @ np.array([0.5, -0.3, 0.2, 0.1]) + 0.05 * rng.standard_normal(n_rows)


@pytest.mark.parametrize("fit", [boosted_adassp, tukey_fit, linear_mixing, hessian_mixing])
def test_peers_with_a_huge_budget_find_the_line(fit: Any) -> None:
    rows, target = a_line()
    exact = np.linalg.lstsq(rows, target, rcond=None)[0]
    options = {"per_feature": 400.0} if fit is linear_mixing else {}
    found = fit(rows, target, PrivacyBudget.of(epsilon=1e4, delta=1e-6), np.random.default_rng(1), **options)
    assert np.abs(found - exact).max() < 0.02


def test_a_sketch_costs_the_known_divergence_of_two_gaussians() -> None:
    # Rows of a sketch are N(0, AᵀA): with and without a row of norm 1 along the direction of the least eigenvalue γ, the two
    # laws differ in one variance, γ − 1 in place of γ. Their Rényi divergence by quadrature, of k = 1 row.
    least, order, delta = 20.0, 4.0, 1e-5
    wide, narrow = stats.norm(scale=math.sqrt(least)), stats.norm(scale=math.sqrt(least - 1.0))
    x = np.linspace(-60.0, 60.0, 200_001)
    divergence = math.log(np.trapezoid(np.exp(order * wide.logpdf(x) + (1.0 - order) * narrow.logpdf(x)), x)) / (
        order - 1.0
    )
    formula = (order * math.log1p(-1.0 / least) - math.log1p(-order / least)) / (2.0 * (order - 1.0))
    assert formula == pytest.approx(divergence, rel=1e-6)
    epsilon = divergence + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)
    assert sketch_epsilon(least, 1, delta) <= epsilon
    assert sketch_epsilon(least, 1, delta, 3) == sketch_epsilon(least, 3, delta)
