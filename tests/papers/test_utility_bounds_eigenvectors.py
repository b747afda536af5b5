"""The bounds of Amin et al. (2019): against exact laws, and on runs at fixed seeds, each with a planted fault."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from benchmarks.papers.amin.utility_bounds import error_bound_on, released_error_bound, temperatures_at_least
from scipy import stats

from dpmoments.mechanisms.shape import MomentShape
from dpmoments.noise import sample_bingham
from dpmoments.papers.bounds import (
    cap_measure,
    direction_failure,
    direction_shortfall,
    direction_shortfall_closed_form,
    eigenvector_release_error,
    exponential_mechanism_failure,
    largest_noise,
    least_leading_eigenvalue,
    rank_error,
    reconstruction_error,
    released_eigenvector_error,
    weighted_shortfall,
)
from dpmoments.papers.mechanisms.eigenvectors import IterativeEigenvectors, IterativeEigenvectorsPlan
from dpmoments.papers.sphere import sample_orthonormal_frame
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from support.said import refused

SPECTRUM = np.array([600.0, 300.0, 100.0, 50.0, 10.0])
CHANCE = 1e-4
"""Probability with which a right bound fails a test here."""


def within(failures: int, trials: int, failure: float) -> bool:
    """Whether so many failures are no sign that a bound fails with a larger probability than it states."""
    return failures <= int(stats.binom.ppf(1.0 - CHANCE, trials, failure))


# ---------------------------------------------------------------- Lemmas 3 and 4


@pytest.mark.parametrize("n_draws", [1, 13, 106])
@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-6])
def test_the_largest_noise_is_the_exact_quantile_and_below_lemma_3(n_draws: int, failure: float) -> None:
    for kind, law in (("laplace", stats.laplace), ("gaussian", stats.norm)):
        bound = largest_noise(3.0, n_draws, failure, kind=kind)  # type: ignore[arg-type]
        outside = 2.0 * law.sf(bound / 3.0)
        assert -math.expm1(n_draws * math.log1p(-outside)) == pytest.approx(failure, rel=1e-9)
    assert largest_noise(3.0, n_draws, failure) <= largest_noise(3.0, n_draws, failure, constants="paper")


@pytest.mark.parametrize("n_others", [10, 100, 10_000])
def test_lemma_4_divides_by_the_measure_and_is_false_as_printed(n_others: int) -> None:
    """One outcome of score 1, the others of score 0, the base measure uniform."""
    temperature, shortfall, near, share = 2.0, 0.8, 0.4, 1.0 / (n_others + 1)
    missed = n_others / (n_others + math.exp(temperature))
    assert missed <= exponential_mechanism_failure(temperature, shortfall, near=near, near_measure=share)
    as_printed = math.exp(-temperature * near) * share
    assert missed > as_printed


# ---------------------------------------------------------------- Lemmas 5, 7 and 8


@pytest.mark.parametrize("n_features", [2, 3, 10, 50])
@pytest.mark.parametrize("radius", [0.1, 1.0, 1.5, 1.9])
def test_the_measure_of_a_cap_is_exact_and_above_lemma_7(n_features: int, radius: float) -> None:
    angle = 2.0 * mpmath.asin(radius / 2.0)
    part = mpmath.quad(lambda x: mpmath.sin(x) ** (n_features - 2), [0, angle])
    whole = mpmath.quad(lambda x: mpmath.sin(x) ** (n_features - 2), [0, mpmath.pi / 2, mpmath.pi])
    assert cap_measure(radius, n_features) == pytest.approx(float(part / whole), rel=1e-9)
    assert cap_measure(radius, n_features, constants="paper") <= cap_measure(radius, n_features)


@pytest.mark.parametrize("constants", ["sharp", "paper"])
@pytest.mark.parametrize("eigenvalues", [SPECTRUM, np.r_[500.0, np.zeros(9)], np.r_[40.0, 39.0, 0.0]])
def test_a_direction_misses_no_more_than_lemma_5_says(eigenvalues: np.ndarray, constants: Any) -> None:
    temperature, failure, trials = 0.1, 0.1, 2_000
    spread = float(eigenvalues[0] - eigenvalues[-1])
    bound = direction_shortfall(failure, temperature, spread, len(eigenvalues), constants=constants)

    def failures(heat: float) -> int:
        drawn = sample_bingham(heat * np.diag(eigenvalues), trials, np.random.default_rng(2))
        return int((eigenvalues[0] - drawn**2 @ eigenvalues > bound).sum())

    assert within(failures(temperature), trials, failure)
    if bound < 0.9 * spread:  # planted fault: draws a hundred times as hot
        assert not within(failures(temperature / 100.0), trials, failure)


@pytest.mark.parametrize("constants", ["sharp", "paper"])
def test_shortfall_and_failure_are_inverses(constants: Any) -> None:
    for failure, temperature, spread, d in [(0.05, 0.5, 1e4, 5), (1e-9, 0.25, 1e6, 50), (0.5, 3.0, 1e3, 2)]:
        shortfall = direction_shortfall(failure, temperature, spread, d, constants=constants)
        assert 0.0 < shortfall < spread
        found = direction_failure(shortfall, temperature, spread, d, constants=constants)
        assert found == pytest.approx(failure, rel=1e-6)
    assert direction_shortfall(0.05, 1e-9, 10.0, 5, constants=constants) == 10.0  # nothing but the certain bound


def test_the_closed_form_of_lemma_5_is_above_lemma_8_where_its_proof_holds() -> None:
    for temperature, largest, d in [(0.25, 1e3, 5), (0.01, 1e5, 20), (1.0, 50.0, 3)]:
        closed = direction_shortfall_closed_form(0.05, temperature, largest, d)
        assert closed >= direction_shortfall(0.05, temperature, largest, d, constants="paper")
    with refused("below 1 its proof does not hold: use direction_shortfall"):
        direction_shortfall_closed_form(0.05, 1000.0, 0.01, 5)


# ---------------------------------------------------------------- Lemma 6


def test_the_reconstruction_error_is_attained() -> None:
    rng = np.random.default_rng(3)
    for rank in (5, 3, 1):
        frame = np.linalg.qr(rng.standard_normal((5, 5))).Q[:, :rank]
        missed = SPECTRUM[:rank] - np.einsum("ji,j,ji->i", frame, SPECTRUM, frame)
        exact = float(np.linalg.norm(np.diag(SPECTRUM) - (frame * SPECTRUM[:rank]) @ frame.T))
        assert reconstruction_error(SPECTRUM, missed, 0.0) == pytest.approx(exact, rel=1e-9)
        assert reconstruction_error(SPECTRUM, missed, 0.0, constants="paper") == pytest.approx(exact, rel=1e-9)
        noise = rng.laplace(size=rank)
        noisy = float(np.linalg.norm(np.diag(SPECTRUM) - (frame * (SPECTRUM[:rank] + noise)) @ frame.T))
        assert noisy <= reconstruction_error(SPECTRUM, missed, float(np.linalg.norm(noise)))
    with refused("one per eigenvalue"):
        reconstruction_error([1.0], [0.0, 0.0], 0.0)


# ---------------------------------------------------------------- Theorem 2 and its corollaries


def runs(plan: IterativeEigenvectorsPlan, trials: int) -> list[tuple[float, Any]]:
    """Errors on 2,000 rows along the axes, whose Gram matrix has the eigenvalues ``SPECTRUM``."""
    counts = np.array([1100, 550, 200, 100, 50])
    table = np.repeat(np.diag(np.sqrt(SPECTRUM / counts)), counts, axis=0)
    rows = Rows.of(table, Schema.unit_ball(5), mean=plan.shape.mean, neighbors=plan.neighbors, threads=1)
    found = []
    for seed in range(trials):
        noisy = plan.run(rows, PrivacyFilter.open(plan, insecure_seed=seed))
        found.append((float(np.linalg.norm(noisy.gram - np.diag(SPECTRUM))), noisy.diagnostics))
    return found


def plan_for(budget: PrivacyBudget, neighbors: Neighbors, mean: bool, **options: Any) -> IterativeEigenvectorsPlan:
    shape = MomentShape(5, n_rows=2000 if neighbors.table_size_is_public else None, mean=mean)
    plan = IterativeEigenvectors(**options).plan(shape, budget, neighbors)
    assert isinstance(plan, IterativeEigenvectorsPlan)
    return plan


@pytest.mark.long
@pytest.mark.parametrize(
    ("budget", "neighbors", "mean", "options"),
    [
        (PrivacyBudget.pure(1.0), Neighbors.REPLACE_ONE, False, dict(allocation="adaptive", calibration="paper")),
        (PrivacyBudget.pure(4.0), Neighbors.ADD_REMOVE, True, {}),
        (PrivacyBudget.pure(0.05), Neighbors.REPLACE_ONE, True, dict(allocation="uniform")),
        (PrivacyBudget.zcdp(0.5), Neighbors.ADD_REMOVE, True, dict(rank=2)),
    ],
)
def test_the_bounds_hold_on_runs(budget: PrivacyBudget, neighbors: Neighbors, mean: bool, options: Any) -> None:
    plan, trials, failure = plan_for(budget, neighbors, mean, **options), 60, 0.2
    beforehand = error_bound_on(plan, SPECTRUM, failure)
    over_prior = over_released = 0
    for error, diagnostics in runs(plan, trials):
        over_prior += error > beforehand
        over_released += error > released_error_bound(plan, diagnostics, failure)
        reach = largest_noise(plan.eigenvalue_scale, 5, 1e-9, kind="laplace" if plan.pure else "gaussian")
        noisy = np.array(diagnostics["eigenvalues"])
        drawn = np.array(diagnostics["temperatures"])
        assert (temperatures_at_least(plan, noisy, noisy) <= drawn).all()
        assert (temperatures_at_least(plan, noisy, noisy) >= (1.0 - 1e-9) * drawn)[: plan.rank - 1].all()
        assert (temperatures_at_least(plan, np.maximum(noisy - reach, 0.0), noisy + reach) <= drawn).all()
    assert within(over_prior, trials, failure)
    assert within(over_released, trials, failure)


def test_bounds_are_those_of_the_paper_with_its_constants() -> None:
    """An independent evaluation of the proof of Theorem 2: β/(2d) each, Lemma 8 by bisection."""
    t, scale, failure, d = 0.05, 8.0, 0.05, 5
    square = 0.0
    for place, eigenvalue in enumerate(SPECTRUM):
        low, high = 1e-9, SPECTRUM[0]
        for _ in range(200):
            middle = (low + high) / 2
            log_bound = math.log(2) - t * middle / 2 + (d - place - 1) * math.log(8 * SPECTRUM[0] / middle)
            low, high = (middle, high) if log_bound > math.log(failure / (2 * d)) else (low, middle)
        square += 2 * eigenvalue * (high if place < d - 1 else 0.0)
    expected = math.sqrt(square) + math.sqrt(d) * scale * math.log(2 * d / failure)
    found = eigenvector_release_error(SPECTRUM, [t] * d, scale, failure, constants="paper")
    assert found == pytest.approx(expected, rel=1e-6)
    assert eigenvector_release_error(SPECTRUM, [t] * d, scale, failure) < found
    released = SPECTRUM - 3.0
    from_release = released_eigenvector_error(released, [t] * d, scale, failure, constants="paper")
    raised = released + scale * math.log(2 * d / failure)
    assert from_release == pytest.approx(
        eigenvector_release_error(raised, [t] * d, scale, failure, constants="paper"), rel=1e-9
    )


def test_the_distance_from_the_best_rank_needs_a_gap() -> None:
    """The remark after Theorem 2: with two equal leading eigenvalues the distance grows as λ, not as √λ."""
    rng, temperature, distances = np.random.default_rng(6), 0.25, []
    for largest in (1e4, 1e6):
        eigenvalues = np.array([largest, largest, 0.0])
        best = np.diag([largest, 0.0, 0.0])
        drawn = sample_bingham(temperature * np.diag(eigenvalues), 400, rng)
        found = np.linalg.norm(best - largest * drawn[:, :, None] * drawn[:, None, :], axis=(1, 2))
        distances.append(float(np.median(found)))
        assert (found <= rank_error(eigenvalues, [temperature], 0.0, 0.05) * (1 + 1e-12)).all()
    assert distances[1] / distances[0] == pytest.approx(100.0, rel=0.1)
    # with a gap it does grow as √λ: λ₂ fixed
    gapped = [rank_error([largest, 1.0, 0.0], [temperature], 0.0, 0.05) for largest in (1e4, 1e6)]
    assert 8.0 < gapped[1] / gapped[0] < 15.0
    drawn = sample_bingham(temperature * np.diag([1e4, 1.0, 0.0]), 2_000, rng)
    found = np.linalg.norm(np.diag([1e4, 0.0, 0.0]) - 1e4 * drawn[:, :, None] * drawn[:, None, :], axis=(1, 2))
    assert within(int((found > rank_error([1e4, 1.0, 0.0], [temperature], 0.0, 0.1)).sum()), 2_000, 0.1)
    assert not within(int((found > 0.2 * gapped[0]).sum()), 2_000, 0.1)


@pytest.mark.parametrize("constants", ["sharp", "paper"])
def test_from_the_least_leading_eigenvalue_on_the_relative_error_is_small(constants: Any) -> None:
    relative, temperature, scale, d, failure = 0.2, 1.0 / 20.0, 4.0, 4, 0.05
    least = least_leading_eigenvalue(relative, temperature, scale, d, failure, constants=constants)
    rng = np.random.default_rng(7)
    for rest in ([least] * 3, [0.5 * least, 0.1 * least, 0.0], [least, least, 0.0]):
        eigenvalues = np.array([least, *rest])
        bound = eigenvector_release_error(eigenvalues, [temperature] * d, scale, failure, constants=constants)
        assert bound <= relative * least * (1.0 + 1e-6)
        frame = sample_orthonormal_frame(np.diag(eigenvalues), [temperature] * d, rng)[0]
        noisy = (frame * (eigenvalues + rng.laplace(0.0, scale, d))) @ frame.T
        assert np.linalg.norm(noisy - np.diag(eigenvalues)) <= relative * least
    worst = np.array([*[0.9 * least] * 3, 0.0 if constants == "sharp" else 0.9 * least])
    assert (
        eigenvector_release_error(worst, [temperature] * d, scale, failure, constants=constants)
        > 0.9 * relative * least
    )


def test_the_printed_condition_of_corollary_2_is_empty_at_large_epsilon() -> None:
    """At ε ≥ d/ζ its right side is not positive, yet the noise on eigenvalues of a small table is no smaller for it."""
    d, relative, epsilon = 5, 0.5, 10.0
    assert 2 * d**3 / (epsilon * relative**2) * math.log(d / (epsilon * relative)) <= 0.0
    noise = np.random.default_rng(8).laplace(0.0, 4.0 / epsilon, (2_000, d))
    tiny = 0.01
    assert (np.linalg.norm(noise, axis=1) > relative * tiny).mean() > 0.99
    assert least_leading_eigenvalue(relative, epsilon / (8 * d), 4.0 / epsilon, d, 0.01) > tiny


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: largest_noise(1.0, 0, 0.1), "must be a whole number"),
        (lambda: largest_noise(1.0, 3, 1.0), "must be"),
        (
            lambda: largest_noise(1.0, 3, 0.1, kind="gaussian", constants="paper"),
            "constants='paper' needs Laplace noise: the paper has no",
        ),
        (lambda: exponential_mechanism_failure(1.0, 1.0, near=2.0, near_measure=0.5), "must be"),
        (lambda: exponential_mechanism_failure(1.0, 1.0, near=0.5, near_measure=0.0), "must be"),
        (lambda: cap_measure(3.0, 5), "must be"),
        (lambda: direction_shortfall(0.1, -1.0, 1.0, 3), "must be"),
        (lambda: direction_failure(0.0, 1.0, 1.0, 3), "must be"),
        (lambda: weighted_shortfall([1.0], [1.0, 1.0], 1.0, 3, 0.1), "which do not fit each other"),
        (lambda: weighted_shortfall([-1.0], [1.0], 1.0, 3, 0.1), "must be"),
        (lambda: eigenvector_release_error([1.0, -1.0], [1.0], 1.0, 0.1), "must be"),
        (lambda: rank_error([1.0, 0.5], [1.0, 1.0], 1.0, 0.1), "one per eigenvalue"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, code: str) -> None:
    with refused(code):
        call()
