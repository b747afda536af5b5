"""Rows that an error needs by the theorems, against errors measured there: ``python -m benchmarks.papers.coinpress.rows_needed``.

Prints the last tables of ``docs/evidence/utility-bounds-eigenvectors.md``: CoinPress (Theorems 2.2 and 2.4) and lecture 18 (Lemma
2.2, Theorem 2.3, Corollary 2.6). Every run has fresh normal rows. Fixed seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.papers.sheffet.coefficient_bounds import exceeded
from dpmoments import mechanisms, utility_bounds
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means import CoinPressMean
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress

RHO, LEVEL = 0.5, 0.95
FAILURE = 1.0 - LEVEL
TRIALS = 60
ASKED: dict[str, Any] = {"rho": RHO, "neighbors": "replace_one"}
PAPER_STEP = 0.05 / 60
"""β of a step of the mechanism with ``constants="paper"``."""


def row(title: str, target: float, rows: int, form: float, errors: list[float], other: str = "–") -> None:
    """One row: the rows needed, the theorem's form, errors measured there."""
    found = np.array(errors)
    failures = int((found > target).sum())
    chance = exceeded(failures, len(found), FAILURE)
    print(
        f"| {title} | {target:g} | {rows:,} | {form:,.0f} | {failures} of {len(found)} | {chance:.2g} | {np.median(found):.3g} | "
        f"{target / np.median(found):.1f} | {target / found.min():.0f} | {other} |",
        flush=True,
    )


def mean_runs(mechanism: CoinPressMean, d: int, n: int, radius: float, trials: int) -> list[float]:
    """‖μ̂ − μ‖ of each run, μ at three quarters of the radius."""
    errors = []
    for seed in range(trials):
        rng = np.random.default_rng([1, d, seed])
        mu = rng.normal(size=d)
        mu *= 0.75 * radius / np.linalg.norm(mu)
        rows = mu + rng.normal(size=(n, d))
        release = dpm.release_mean(rows, dpm.Schema.unbounded(d), mechanism=mechanism, insecure_seed=seed, **ASKED)
        errors.append(float(np.linalg.norm(release.mean - mu)))
    return errors


def covariance_runs(mechanism: Mechanism, scales: np.ndarray, n: int, trials: int) -> list[float]:
    """‖Σ^{−½}(Σ̂ − Σ)Σ^{−½}‖_F of each run, Σ with these standard deviations in turned coordinates."""
    d, errors = len(scales), []
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(d, d)))[0]
    for seed in range(trials):
        rng = np.random.default_rng([2, d, seed])
        rows = (rng.normal(size=(n, d)) * scales) @ turn.T
        asked = ASKED | {"mechanism": mechanism, "mean": False, "repair": "none", "insecure_seed": seed}
        release = dpm.release(rows, dpm.Schema.unbounded(d), **asked)
        error = turn.T @ release.second_moment @ turn / np.outer(scales, scales) - np.eye(d)
        errors.append(float(np.linalg.norm(error)))
    return errors


def best_steps(error_of: Callable[[tuple[float, ...]], float]) -> tuple[float, ...]:
    """The theorem's split, of the best number of steps."""
    return min((utility_bounds.theorem_shares(t) for t in range(1, 13)), key=error_of)


def means() -> None:
    for d, radius, target in ((5, 10.0, 0.3), (5, 1e4, 0.3), (20, 100.0, 0.5), (20, 100.0, 0.2)):
        n = utility_bounds.coinpress_mean_rows_needed(target, d, radius, RHO, FAILURE, step_failure=PAPER_STEP)
        split = best_steps(
            lambda shares, n=n, d=d, radius=radius: utility_bounds.coinpress_mean_error(  # type: ignore[misc]
                n, d, radius, RHO, FAILURE, shares=shares, step_failure=PAPER_STEP
            )
        )
        theirs = CoinPressMean(radius=radius, scale=1.0, constants="paper", clip="gaussian", split=split)
        ours = np.median(mean_runs(CoinPressMean(radius=radius, scale=1.0), d, n, radius, TRIALS // 4))
        form = utility_bounds.coinpress_mean_theorem(target, d, radius, RHO, FAILURE)
        errors = mean_runs(theirs, d, n, radius, TRIALS)
        row(f"2.2, d = {d}, R = {radius:,.0f}, {len(split)} steps", target, n, form, errors, f"{ours:.3g}")


def covariances() -> None:
    for d, spread, target in ((3, 100.0, 0.3), (10, 1e4, 0.5)):
        n = utility_bounds.coinpress_covariance_rows_needed(target, d, spread, RHO, FAILURE, step_failure=PAPER_STEP)
        split = best_steps(
            lambda shares, n=n, d=d, spread=spread: utility_bounds.coinpress_covariance_error(  # type: ignore[misc]
                n, d, spread, RHO, FAILURE, shares=shares, step_failure=PAPER_STEP
            )
        )
        bounds = (1.0, spread)
        theirs = PaperCoinPress(bounds, split=split)
        scales = np.sqrt(np.geomspace(1.0, spread, d))
        ours = np.median(covariance_runs(mechanisms.CoinPress(bounds), scales, n, TRIALS // 4))
        form = utility_bounds.coinpress_covariance_theorem(target, d, spread, RHO, FAILURE)
        errors = covariance_runs(theirs, scales, n, TRIALS)
        row(f"2.4, d = {d}, K = {spread:,.0f}, {len(split)} steps", target, n, form, errors, f"{ours:.3g}")


def lecture() -> None:
    for d, kappa, target in ((3, 1.0, 0.2), (10, 1.0, 0.5), (10, 4.0, 0.5)):
        n = utility_bounds.noisy_second_moment_rows_needed(target, d, kappa, RHO, FAILURE)
        logs = np.log(n / FAILURE) * np.sqrt(np.log(1 / FAILURE))
        form = (d**2 + np.log(1 / FAILURE)) / target**2 + kappa * d**2 * logs / (target * np.sqrt(RHO))
        naive = mechanisms.PrivatePreconditioning((1.0, kappa))
        scales = np.ones(d)
        other = np.median(covariance_runs(mechanisms.CoinPress((1.0, kappa)), scales, n, TRIALS // 4))
        errors = covariance_runs(naive, scales, n, TRIALS)
        row(f"Lemma 2.2, d = {d}, κ = {kappa:g}", target, n, form, errors, f"{other:.3g}")
    d, kappa, target = 3, 1500.0, 0.5
    n = utility_bounds.preconditioned_covariance_rows_needed(target, d, kappa, RHO, FAILURE)
    rounds = utility_bounds.preconditioning_rows_needed(d, kappa, RHO / 2, FAILURE / 2)
    logs = np.log(1 / FAILURE)
    form = (d**2 + logs) / target**2 + d**2 * np.log(n / FAILURE) * np.sqrt(logs) / (target * np.sqrt(RHO))
    form += d**1.5 * logs**2 * np.sqrt(np.log(kappa) / RHO)
    recursive = mechanisms.PrivatePreconditioning((1.0, kappa), stop_at=1000.0)
    scales = np.array([1.0, 10.0, np.sqrt(kappa)])
    errors = covariance_runs(recursive, scales, n, TRIALS // 10)  # millions of rows
    row(f"Corollary 2.6, d = {d}, κ = {kappa:,.0f} (rounds: {rounds:,} rows)", target, n, form, errors)


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        "| theorem | α | rows needed | the theorem's form, constant 1 | failures | P(as many) | median error there | α/median | "
        "largest | median of our default |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    means()
    covariances()
    lecture()


if __name__ == "__main__":
    main()
