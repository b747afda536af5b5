"""What the papers state, where it is no property of one mechanism: scales, conventions, claims about errors and counts."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks.papers import datasets as papers_datasets
from benchmarks.papers.amin.acceptance_counts import log_mean_proposals, temperatures
from benchmarks.papers.amin.misprinted_bingham import mean_proposals, successive_directions
from benchmarks.papers.summed_once import SummedOnce, repaired, summed_once
from scipy.special import chdtr

import dpmoments as dpm
from dpmoments.mechanisms import (
    CoinPress,
    IterativeEigenvectors,
    Laplace,
    MatrixLaplace,
    PrivatePreconditioning,
)
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means import CoinPressMean
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.repair import Repair
from dpmoments.papers import bounds
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress, covariance_theory
from dpmoments.papers.mechanisms.eigenvectors import EntrywiseGaussian, PaperLaplace, RegimeRule
from dpmoments.papers.sphere import sample_bingham_diagonal
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator, symmetric_gaussian
from dpmoments.rows.rows import Rows
from support.said import refused

pytestmark = pytest.mark.long

AD = IterativeEigenvectors(allocation="adaptive", calibration="paper")


def errors(mechanism: Mechanism, rows: SummedOnce, epsilon: float, trials: int, delta: float = 0.0) -> np.ndarray:
    """‖Ĝ − G‖_F/n of every trial, eigenvalues moved into [0, n]."""
    shape = MomentShape(rows.n_features, n_rows=rows.n_rows, mean=False)
    plan = mechanism.plan(shape, dpm.PrivacyBudget.of(epsilon=epsilon, delta=delta), "replace_one")
    drawn = (plan.run(rows, PrivacyFilter(plan, insecure_generator(seed))).gram for seed in range(trials))
    found = [repaired(plan, gram, rows.n_rows, Repair.CLIP) for gram in drawn]
    return np.array([dpm.metrics.normalized_frobenius_error(gram, rows.gram, n_rows=rows.n_rows) for gram in found])


@cache
def adult() -> np.ndarray:
    return papers_datasets.standardized_unit_rows(dpm.datasets.adult(), include_target=True)


def test_baselines_have_the_scales_that_the_papers_state() -> None:
    """Amin's L: 2d/ε on every entry. Analyze Gauss: one variance on every entry, whatever d."""
    for d in (2, 13, 106):
        shape = MomentShape(d, n_rows=1000, mean=False)
        laplace = PaperLaplace().plan(shape, dpm.PrivacyBudget.pure(0.5), "replace_one")
        assert laplace.details["noise_scale"] == pytest.approx(2 * d / 0.5)
        tight = Laplace().plan(shape, dpm.PrivacyBudget.pure(0.5), "replace_one")
        assert tight.details["noise_scale"] < 0.7 * laplace.details["noise_scale"]
        gauss = EntrywiseGaussian().plan(shape, dpm.PrivacyBudget.zcdp(0.5), "replace_one")
        assert gauss.cell_variances == pytest.approx((2.0, 2.0))  # (√2/√(2ρ))² at ρ = ½


def test_the_alpha_of_equation_3_is_2n_times_ours() -> None:
    rng = np.random.default_rng(3)
    table = rng.uniform(-0.4, 0.4, (300, 3))
    release = dpm.release(
        table, dpm.Schema.unit_ball(3), epsilon=1e12, mean=False, neighbors="replace_one", insecure_seed=0
    )
    theirs = 10.0
    features, target = table[:, 1:], table[:, 0]
    solution = np.linalg.solve(features.T @ features + theirs * np.eye(2), features.T @ target)
    fit = release.ridge("x0", alpha=theirs / (2 * len(table)))
    np.testing.assert_allclose(fit.coefficients, solution, atol=1e-6)
    # planted fault: one α taken for the other
    assert np.abs(release.ridge("x0", alpha=theirs).coefficients - solution).max() > 1e-3


@pytest.mark.slow
def test_eigenvectors_err_as_one_over_root_n_and_additive_noise_as_one_over_n() -> None:
    """Amin et al., section 5: slopes of log error on log n."""
    rows = [summed_once(papers_datasets.algorithm_3(n, 5)) for n in (3000, 30_000, 300_000)]

    def slope(mechanism: Any) -> float:
        means = [errors(mechanism, table, 1.0, 40).mean() for table in rows]
        return float(np.polyfit(np.log([table.n_rows for table in rows]), np.log(means), 1)[0])

    assert slope(AD) == pytest.approx(-0.5, abs=0.07)
    for mechanism in (PaperLaplace(), MatrixLaplace()):
        assert slope(mechanism) == pytest.approx(-1.0, abs=0.07)


@pytest.mark.slow
def test_neither_acceptance_gives_the_counts_of_section_3_2() -> None:
    """Reported: a mean of about 2d proposals. The right rule stays below 1.2√d; the printed one never ends on Adult."""
    rng = np.random.default_rng(4)
    gram = adult().T @ adult()
    n, d = adult().shape
    eigenvalues = np.linalg.eigvalsh(gram)[::-1]
    strengths = temperatures(eigenvalues, 1.0, n, "adaptive", rng)
    right: list[float] = []

    def draw(gaps: np.ndarray) -> np.ndarray:
        right.append(math.exp(log_mean_proposals(gaps, rng, printed=False)))
        return sample_bingham_diagonal(-gaps, None, rng)[0]

    successive_directions(gram, strengths[:10], draw)
    assert max(right) < 1.2 * math.sqrt(d) * 1.1 < 2 * d
    first = strengths[0] * (eigenvalues[0] - eigenvalues)
    assert log_mean_proposals(first, rng, printed=True) / math.log(10) > 18  # one direction of 106: a mean above 10¹⁶
    # by quadrature, which in 106 dimensions takes seconds
    small = np.array([0.0, 0.25, *[12.5] * 8])
    for printed in (False, True):
        exact = math.log(mean_proposals(small, printed=printed))
        assert log_mean_proposals(small, rng, printed=printed) == pytest.approx(exact, abs=0.1)


def test_steps_and_shares_of_coinpress_are_those_asked_for() -> None:
    """t from 1 to 10, and ¾ of ρ to the last step with the paper's constants (section 3), for covariances and means."""
    covariance = MomentShape(4, n_rows=5000, mean=False, row_norm=None)
    budget = dpm.PrivacyBudget.zcdp(0.5)
    for steps in range(1, 11):
        for constants in ("practical", "paper"):
            mechanism = PaperCoinPress(eigenvalue_bounds=(1.0, 100.0), steps=steps, constants=constants)
            shares = mechanism.plan(covariance, budget, "replace_one").details["shares"]
            mean = CoinPressMean(radius=100.0, scale=1.0, steps=steps, constants=constants)
            of_mean = mean.plan(covariance, budget, "replace_one").balls.schedule.shares
            assert len(shares) == len(of_mean) == steps
            if constants == "paper":
                last = 0.75 if steps > 1 else 1.0
                assert shares == pytest.approx([0.25 / max(steps - 1, 1)] * (steps - 1) + [last])
                assert of_mean == pytest.approx(shares)


def test_the_clip_of_coinpress_by_its_theory() -> None:
    """γ² = d + 2√(d ln(n/β_s)) + 2 ln(n/β_s) and r′ = γ√(1/n + 2(r + γ)²/(n²ρ_s)), with β/4(t − 1) and β/4: Figure 2."""
    d, n, rho, radius = 7, 3000, 0.5, 50.0
    shape, budget = MomentShape(d, n_rows=n, mean=False, row_norm=None), dpm.PrivacyBudget.zcdp(rho)

    def gamma(failure: float) -> float:
        log_term = math.log(n / failure)
        found = math.sqrt(d + 2 * math.sqrt(d * log_term) + 2 * log_term)
        assert 1e-3 * failure < 1 - chdtr(d, found**2) ** n <= failure  # of n normal rows one is longer
        return found

    for failure, steps, split, share in [(0.05, 1, None, 1.0), (0.05, 2, None, 0.75), (0.01, 5, "theorems", 0.5)]:
        options = {"constants": "paper", "failure": failure, "steps": steps, "split": split}
        early, last = gamma(failure / (4 * max(steps - 1, 1))), gamma(failure / 4)
        balls = CoinPressMean(radius=radius, scale=1.0, **options).plan(shape, budget, "replace_one").balls
        known, clips = radius, []
        for _ in range(steps - 1):
            clips.append(known + early)
            noise = 2 * clips[-1] ** 2 / (n**2 * rho * (1 - share) / (steps - 1))
            known = early * math.sqrt(1 / n + noise)
        assert balls.radii == pytest.approx([*clips, known + last])
        assert balls.schedule.shares[-1] == pytest.approx(share)
        error = math.sqrt(d * (1 / n + 2 * (known + last) ** 2 / (n**2 * rho * share)))
        assert balls.schedule.predicted_error == pytest.approx(error)

        rules = PaperCoinPress(eigenvalue_bounds=(1.0, 9.0), **options).plan(shape, budget, "replace_one").rules
        third = failure / (12 * max(steps - 1, 1))  # of clip, sampling and noise
        assert (rules.radius, rules.last_radius) == pytest.approx((gamma(third), last))
        assert rules.schedule.shares == pytest.approx(balls.schedule.shares)


def test_the_ridge_of_coinpress_bounds_sampling_and_noise() -> None:
    """η + ν of its theory, for normal rows: neither is passed more often than stated, nor never."""
    d, n, rng, failure = 4, 300, np.random.default_rng(5), 0.3
    step = covariance_theory(d, n, 3 * failure, 0.1)
    rows = rng.standard_normal((2000, n, d))
    sampling = np.linalg.norm(np.swapaxes(rows, 1, 2) @ rows / n - np.eye(d), 2, axis=(1, 2))
    noise = np.linalg.norm([symmetric_gaussian(d, 1.0, rng) for _ in range(2000)], 2, axis=(1, 2))
    for found, bound, loose in ((sampling, step.ridge, 0.4), (noise, step.contraction / 2, 0.4)):
        assert (found > bound).mean() <= failure
        assert (found > loose * bound).mean() > failure


@pytest.mark.slow
def test_one_long_direction_in_an_unknown_place() -> None:
    """Lecture 18, section 2.2: Σ = I + (κ − 1)uuᵀ, which no scaling known beforehand serves; both recursive estimators find u."""
    d, kappa, rng = 6, 1e4, np.random.default_rng(2)
    u = rng.normal(size=d)
    u /= np.linalg.norm(u)
    covariance = np.eye(d) + (kappa - 1.0) * np.outer(u, u)
    n = 60_000
    table = rng.standard_normal((n, d))
    table += (math.sqrt(kappa) - 1.0) * np.outer(table @ u, u)
    shape, bounds = MomentShape(d, n_rows=n, mean=False, row_norm=None), (0.9, 1.1 * kappa)
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="replace_one")
    found = {}
    for mechanism in (CoinPress(bounds), CoinPress(bounds, steps=1), PrivatePreconditioning(bounds)):
        plan = mechanism.plan(shape, dpm.PrivacyBudget.zcdp(2.0), "replace_one")
        gram = plan.run(rows, PrivacyFilter(plan, insecure_generator(1))).gram
        found[mechanism] = dpm.metrics.mahalanobis_error(gram / n, covariance)
    several, one, preconditioned = found.values()
    assert several < 0.05
    assert preconditioned < 0.5
    assert one > 5.0 * max(several, preconditioned)  # one step, at the scale of the long direction


def test_the_rule_of_regimes() -> None:
    """Eigenvectors where λ₁ ln λ₁ ≤ ln(1/δ)/ε (Amin et al., section 3.1), by λ₁ given or by n; always where δ is 0."""

    def taken(epsilon: float, delta: float, largest: float | None, n_rows: int | None = 10_000) -> str:
        budget = dpm.PrivacyBudget.of(epsilon=epsilon, delta=delta)
        neighbors = "add_remove" if n_rows is None else "replace_one"
        plan = RegimeRule(largest_eigenvalue=largest).plan(MomentShape(5, n_rows=n_rows, mean=False), budget, neighbors)
        assert plan.cost == (dpm.PrivacyBudget.pure(epsilon) if "iterative" in plan.mechanism.name else budget)
        return plan.mechanism.name

    edge = 100.0 * math.log(100.0) * 0.05
    assert taken(0.05, math.exp(-edge * 1.001), 100.0) == "iterative-eigenvectors"
    assert taken(0.05, math.exp(-edge * 0.999), 100.0) == "gaussian"
    assert taken(0.05, 1e-6, 0.5) == taken(3.0, 0.0, None) == "iterative-eigenvectors"
    n_edge = 20.0 * math.log(20.0)
    assert [taken(1.0, math.exp(-n_edge * off), None, 20) for off in (1.001, 0.999)] == [
        "iterative-eigenvectors",
        "gaussian",
    ]
    with refused("the rule needs the largest eigenvalue of the Gram"):
        taken(1.0, 1e-6, None, None)
    with refused("cannot spend a budget of"):
        RegimeRule().plan(MomentShape(5, n_rows=9), dpm.PrivacyBudget.zcdp(1.0), "replace_one")
    with refused("must be", parameter="largest_eigenvalue"):
        RegimeRule(largest_eigenvalue=math.inf)


def test_coinpress_takes_the_shares_of_its_theorems_by_name() -> None:
    shape, budget = MomentShape(4, n_rows=50_000, row_norm=None), dpm.PrivacyBudget.zcdp(0.5)
    for constants in ("practical", "paper"):
        searched = CoinPressMean(radius=1e4, scale=1.0, split="theorems", constants=constants)
        shares = searched.plan(shape, budget, "replace_one").balls.schedule.shares
        assert shares == pytest.approx([0.5 / (len(shares) - 1)] * (len(shares) - 1) + [0.5])
        assert len(shares) > 1
    with refused("or one share per step"):
        CoinPress(split="halves")  # type: ignore[arg-type]
    with refused("must be", parameter="failure"):
        PaperCoinPress(failure=0.0)
    with refused("needs the paper's constants, since the practical ones have"):
        CoinPressMean(failure=0.01)


@pytest.mark.parametrize(
    ("d", "n", "most"), [(50, 10_000, 1.04), (2, 1000, 1.25), pytest.param(500, 1900, 2.0, marks=pytest.mark.slow)]
)
def test_what_privacy_costs_a_mean(d: int, n: int, most: float) -> None:
    """CoinPress, section 3, R = 10√d, ρ = ½: 2 % at n = 10,000, less than a factor 2 in 500 dimensions with n < 4d."""
    shape, budget = MomentShape(d, n_rows=n, row_norm=None), dpm.PrivacyBudget.zcdp(0.5)
    plan = CoinPressMean(radius=10 * math.sqrt(d), scale=1.0).plan(shape, budget, "replace_one")
    rng, found = np.random.default_rng(d), []
    for seed in range({2: 60, 50: 6, 500: 2}[d]):
        table = rng.normal(size=(n, d))
        rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="replace_one", threads=1)
        private = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed))).mean
        found.append([dpm.metrics.mahalanobis_mean_error(mean, np.zeros(d)) for mean in (private, table.mean(axis=0))])
    with_privacy, without = np.mean(found, axis=0)
    assert with_privacy < most * without
    assert with_privacy > without


def test_inexact_directions_leave_more_variance_to_the_rest() -> None:
    """Amin et al., section 3: projected onto the complement of any direction; subtracted, as Kapralov and Talwar do, not."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        table = rng.normal(size=(12, 6)) * np.array([5.0, 3.0, 2.0, 1.0, 0.5, 0.2])
        gram = table.T @ table
        values, vectors = np.linalg.eigh(gram)
        direction = vectors[:, -1] + 0.3 * rng.normal(size=6)
        direction /= np.linalg.norm(direction)
        complement = np.linalg.svd(direction[None, :])[2][1:]
        left = np.linalg.eigvalsh(complement @ gram @ complement.T)
        assert (left >= values[:-1] - 1e-9 * values[-1]).all()
        assert left.sum() > values[:-1].sum()
        subtracted = np.linalg.eigvalsh(gram - values[-1] * np.outer(direction, direction))
        assert subtracted[0] < 0.0
        assert math.isclose(subtracted.sum(), values[:-1].sum(), rel_tol=1e-9)


@pytest.mark.parametrize("spectrum", [(600.0, 300.0, 100.0, 50.0, 10.0), (5000.0, 500.0, 50.0, 5.0, 1.0)])
def test_the_split_by_roots_has_a_better_guarantee_than_equal_parts(spectrum: tuple[float, ...]) -> None:
    def bound(weights: np.ndarray, total: float) -> float:
        return bounds.eigenvector_release_error(
            list(spectrum), list(total * weights / weights.sum()), eigenvalue_scale=8.0, failure=0.05
        )

    values = np.array(spectrum)
    for total in (1.25, 12.5, 125.0):
        by_roots, equal, in_proportion = (bound(weights, total) for weights in (np.sqrt(values), values**0.0, values))
        assert by_roots < 0.95 * equal
        assert by_roots < 1.06 * in_proportion
