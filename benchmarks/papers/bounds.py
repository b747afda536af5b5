"""How often bounds on errors miss: ``python -m benchmarks.papers.bounds`` prints the last tables of the page.

The page is ``docs/evidence/utility-bounds-eigenvectors.md``: bounds on regression coefficients beside a fit, Sheffet's theorems
before there is any data, and the rows that an error needs by CoinPress (Theorems 2.2 and 2.4) and lecture 18 (Lemma 2.2, Theorem
2.3, Corollary 2.6) against errors measured there, of fresh normal rows in every run. Fixed seeds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc

import dpmoments as dpm
from benchmarks.pages import head
from dpmoments import mechanisms, utility_bounds
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means import CoinPressMean
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress
from dpmoments.papers.sampling import inverse_wishart, wishart
from dpmoments.privacy.curves import additive_wishart_scale

LEVEL, TRIALS, DRAWS = 0.95, 100, 1000
ALPHA = 0.001
DELTA = 1e-6
SUMMARY = "failures | P(as many) | median error | median bound | bound/error | largest | vacuous"


@dataclass(frozen=True)
class Case:
    """A table of encoded rows; the regression asked of it is the last feature on the others."""

    name: str
    rows: np.ndarray

    @property
    def schema(self) -> dpm.Schema:
        return dpm.Schema.unit_ball(self.rows.shape[1])


def cases() -> Iterator[Case]:
    """Three tables in the unit ball: well spread, normal with ten features, and one measured in a wind tunnel."""
    rng = np.random.default_rng(1)
    mixing = np.array([[1.0, 0.3, 0.2], [0.0, 0.7, 0.1], [0.0, 0.0, 0.4]])
    yield Case("uniform, d = 3, n = 20,000", rng.uniform(-0.5, 0.5, (20_000, 3)) @ mixing)
    base = rng.normal(0.0, 0.12, (20_000, 10))
    base[:, 9] = base[:, :9] @ rng.normal(0.0, 0.4, 9) + rng.normal(0.0, 0.06, 20_000)
    yield Case("normal, d = 10, n = 20,000", base / np.maximum(1.0, 1.0001 * np.linalg.norm(base, axis=1))[:, None])
    airfoil = dpm.datasets.airfoil()
    table = np.column_stack([np.asarray(airfoil.frame[name], dtype=float) for name in airfoil.schema.feature_names])
    encoding = airfoil.schema.encoding(mean=True)
    yield Case("airfoil, d = 6, n = 1,503", (table - encoding.offset) / encoding.scale)


def mechanisms_for(case: Case, mean: bool) -> Iterator[tuple[str, Mechanism]]:
    """Everything whose noise is not added cell by cell; what must be asserted is asserted truly."""
    yield "johnson-lindenstrauss", mechanisms.JohnsonLindenstrauss()
    yield "johnson-lindenstrauss, r = 64", mechanisms.JohnsonLindenstrauss(64)
    yield "johnson-lindenstrauss, r = 64, adaptive", mechanisms.JohnsonLindenstrauss(64, adaptive=True)
    yield "inverse-wishart", mechanisms.InverseWishart()
    yield "inverse-wishart, ν = 64", mechanisms.InverseWishart(64)
    smallest = float(np.linalg.eigvalsh(case.rows.T @ case.rows)[0])
    yield "inverse-gaussian", mechanisms.InverseGaussian(0.9 * smallest)
    yield "coinpress", mechanisms.CoinPress()
    if not mean:
        yield "private-preconditioning", mechanisms.PrivatePreconditioning((1e-3, 1.0))


def coefficients(rows: np.ndarray, mean: bool) -> np.ndarray:
    about = rows - rows.mean(axis=0) if mean else rows
    moment = about.T @ about / len(rows)
    found: np.ndarray = np.linalg.solve(moment[:-1, :-1] + 2 * ALPHA * np.eye(len(moment) - 1), moment[:-1, -1])
    return found


def as_clipped(rows: np.ndarray, release: dpm.MomentRelease) -> np.ndarray:
    """The rows as the last step of a recursive estimator clipped them; others see them as they are."""
    if "steps" not in release.diagnostics:
        return rows
    step = release.diagnostics["steps"][-1]
    linear, center = np.array(step["linear"]), np.array(step.get("center", np.zeros(rows.shape[1])))
    scaled = (rows - center) @ linear.T
    shrunk = scaled * np.minimum(1.0, step["radius"] / np.linalg.norm(scaled, axis=1))[:, None]
    found: np.ndarray = center + np.linalg.solve(linear, shrunk.T).T
    return found


def exceeded(failures: int, trials: int, allowed: float) -> float:
    """P(at least so many failures) if each had just the allowed probability: below 0.001 the bound does not hold."""
    return float(bdtrc(failures - 1, trials, allowed)) if failures else 1.0


def summary(errors: Sequence[float], bounds: Sequence[float], sizes: Sequence[float], allowed: float) -> str:
    """One row of a table: failures, exact binomial, how loose, how often the bound vouches for nothing."""
    error, bound, size = map(np.array, (errors, bounds, sizes))
    failures, finite = int((error > bound).sum()), np.isfinite(bound)
    ratio = bound[finite] / error[finite]
    loose = f"{np.median(ratio):.1f} | {ratio.max():.0f}" if finite.any() else "– | –"
    typical = f"{np.median(error):.2g} | {np.median(bound):.2g}"
    empty = np.mean(bound >= size)
    chance = exceeded(failures, len(error), allowed)
    return f"{failures} of {len(error)} | {chance:.2g} | {typical} | {loose} | {empty:.0%}"


def beside_a_fit() -> None:
    """The bound that ``release.ridge`` prints, over mechanisms, tables and budgets."""
    print(*head(f"table, mean | ε | mechanism | {SUMMARY}", "l" * 10), sep="\n")
    for case in cases():
        for mean in (True, False):
            for epsilon in (0.5, 2.0):
                for name, mechanism in mechanisms_for(case, mean):
                    row = beside(case, mean, epsilon, mechanism)
                    about = f"{case.name}, {'with' if mean else 'without'} mean"
                    print(f"| {about} | {epsilon:g} | {name} | {row} |", flush=True)


def beside(case: Case, mean: bool, epsilon: float, mechanism: Mechanism) -> str:
    errors, bounds, sizes = [], [], []
    whole = coefficients(case.rows, mean)
    asked: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "mean": mean}
    asked["n_rows"] = None if mean else len(case.rows)
    for seed in range(TRIALS):
        release = dpm.release(case.rows, case.schema, mechanism=mechanism, insecure_seed=seed, **asked)
        fit = release.ridge(release.feature_names[-1], alpha=ALPHA, level=LEVEL)
        clipped = as_clipped(case.rows, release)
        exact = whole if clipped is case.rows else coefficients(clipped, mean)
        errors.append(float(np.linalg.norm(fit.unit_ball_coefficients - exact)))
        assert fit.unit_ball_error_bound is not None
        bounds.append(fit.unit_ball_error_bound)
        sizes.append(float(np.linalg.norm(fit.unit_ball_coefficients)))
    return summary(errors, bounds, sizes, 1.0 - LEVEL)


def theorems() -> None:
    """The utility theorems before there is any data, against draws; β of the table, Gram matrix alone, ε = 1."""
    print("", *head(f"theorem | table | {SUMMARY}", "l" * 9), sep="\n")
    for case in cases():
        gram, k, n = case.rows.T @ case.rows, case.rows.shape[1] - 1, len(case.rows)
        beta = np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
        residual = float(gram[-1, -1] - gram[-1, :-1] @ beta) / n
        smallest, size = float(np.linalg.eigvalsh(gram[:-1, :-1])[0]), float(np.linalg.norm(beta))
        for name, bound, draw in _claims(gram, k, n, smallest, residual, size):
            rng = np.random.default_rng(7)
            errors = []
            for _ in range(DRAWS):
                drawn = draw(rng)
                errors.append(float(np.linalg.norm(np.linalg.solve(drawn[:-1, :-1], drawn[:-1, -1]) - beta)))
            row = summary(errors, [bound] * DRAWS, [size] * DRAWS, 1.0 - LEVEL)
            print(f"| {name} | {case.name} | {row} |", flush=True)


def _claims(
    gram: np.ndarray, k: int, n: int, smallest: float, residual: float, size: float
) -> Iterator[tuple[str, float, Callable[[np.random.Generator], np.ndarray]]]:
    unit, failure = np.eye(k + 1), 1.0 - LEVEL
    for degrees in (256, 4096):
        for subtracted in (False, True):
            bound = utility_bounds.johnson_lindenstrauss_bound(
                n, smallest / n, residual, size, k,
                epsilon=1.0, delta=DELTA, degrees=degrees, failure=failure, padding_subtracted=subtracted,
            )  # fmt: skip
            root = np.linalg.cholesky(gram + bound.padding * unit)

            def project(
                rng: np.random.Generator, root: np.ndarray = root, degrees: int = degrees,
                off: float = bound.padding if subtracted else 0.0,
            ) -> np.ndarray:  # fmt: skip
                return wishart(root, degrees, rng) / degrees - off * unit

            kind = "taken off" if subtracted else "kept"
            yield f"3.2, r = {degrees:,}, padding {kind}", bound.total, project
        scale = math.sqrt((residual * n + bound.padding * (1 + size**2)) / (smallest + bound.padding))
        radius = utility_bounds.posterior_draw_radius(k, degrees, k + 1, failure)
        shrinkage = utility_bounds.ridge_distance_bound(size, bound.padding, smallest)

        def posterior(rng: np.random.Generator, root: np.ndarray = root, degrees: int = degrees) -> np.ndarray:
            return inverse_wishart(root, degrees, rng)

        yield f"5.1's draw, ν = {degrees:,}, padding kept", radius * scale + shrinkage, posterior
    degrees = k + 1 + 42
    noise = additive_wishart_scale(1.0, DELTA, degrees - k - 1, "add_remove")
    for subtracted in (False, True):
        limit = utility_bounds.additive_wishart_bound(
            size, smallest, k, degrees=degrees, scale=noise, failure=failure, mean_subtracted=subtracted
        )

        def add(
            rng: np.random.Generator, off: float = degrees * noise if subtracted else 0.0, noise: float = noise
        ) -> np.ndarray:
            return gram + wishart(math.sqrt(noise) * unit, degrees, rng) - off * unit

        yield f"C.3, k = {degrees}, mean {'taken off' if subtracted else 'kept'}", limit, add
    sigma = 4.0
    limit = utility_bounds.gaussian_noise_bound(size, smallest, k, noise_scale=sigma, failure=failure)

    def normal(rng: np.random.Generator) -> np.ndarray:
        cells = rng.normal(0.0, sigma, (k + 1, k + 1)) / math.sqrt(2.0)
        return gram + (cells + cells.T) / math.sqrt(2.0)

    yield f"C.1, σ = {sigma:g}", limit, normal


# Rows that an error needs.

RHO, RUNS = 0.5, 60
FAILURE = 1.0 - LEVEL
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
        ours = np.median(mean_runs(CoinPressMean(radius=radius, scale=1.0), d, n, radius, RUNS // 4))
        form = utility_bounds.coinpress_mean_theorem(target, d, radius, RHO, FAILURE)
        errors = mean_runs(theirs, d, n, radius, RUNS)
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
        ours = np.median(covariance_runs(mechanisms.CoinPress(bounds), scales, n, RUNS // 4))
        form = utility_bounds.coinpress_covariance_theorem(target, d, spread, RHO, FAILURE)
        errors = covariance_runs(theirs, scales, n, RUNS)
        row(f"2.4, d = {d}, K = {spread:,.0f}, {len(split)} steps", target, n, form, errors, f"{ours:.3g}")


def lecture() -> None:
    for d, kappa, target in ((3, 1.0, 0.2), (10, 1.0, 0.5), (10, 4.0, 0.5)):
        n = utility_bounds.noisy_second_moment_rows_needed(target, d, kappa, RHO, FAILURE)
        logs = np.log(n / FAILURE) * np.sqrt(np.log(1 / FAILURE))
        form = (d**2 + np.log(1 / FAILURE)) / target**2 + kappa * d**2 * logs / (target * np.sqrt(RHO))
        naive = mechanisms.PrivatePreconditioning((1.0, kappa))
        scales = np.ones(d)
        other = np.median(covariance_runs(mechanisms.CoinPress((1.0, kappa)), scales, n, RUNS // 4))
        errors = covariance_runs(naive, scales, n, RUNS)
        row(f"Lemma 2.2, d = {d}, κ = {kappa:g}", target, n, form, errors, f"{other:.3g}")
    d, kappa, target = 3, 1500.0, 0.5
    n = utility_bounds.preconditioned_covariance_rows_needed(target, d, kappa, RHO, FAILURE)
    rounds = utility_bounds.preconditioning_rows_needed(d, kappa, RHO / 2, FAILURE / 2)
    logs = np.log(1 / FAILURE)
    form = (d**2 + logs) / target**2 + d**2 * np.log(n / FAILURE) * np.sqrt(logs) / (target * np.sqrt(RHO))
    form += d**1.5 * logs**2 * np.sqrt(np.log(kappa) / RHO)
    recursive = mechanisms.PrivatePreconditioning((1.0, kappa), stop_at=1000.0)
    scales = np.array([1.0, 10.0, np.sqrt(kappa)])
    errors = covariance_runs(recursive, scales, n, RUNS // 10)  # millions of rows
    row(f"Corollary 2.6, d = {d}, κ = {kappa:,.0f} (rounds: {rounds:,} rows)", target, n, form, errors)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    beside_a_fit()
    theorems()
    heads = "theorem | α | rows needed | the theorem's form, constant 1 | failures | P(as many) | median error there | α/median"
    print(*head(f"{heads} | largest | median of our default", "l" * 10), sep="\n")
    means()
    covariances()
    lecture()
