"""A regression known in advance: releases with ``targets``, measured beside what else one would do.

    python -m benchmarks.practice.regression.refinement [--half design|peers|judge] [--tables Wine,Airfoil]

measures and writes the tables of ``docs/evidence/derivations/refined-regression.md``; an hour on one quiet
core. With ``--tables`` it prints those and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.comparison.errors import Truth
from benchmarks.practice.regression.adassp import adassp
from benchmarks.practice.regression.cases import CASES
from benchmarks.practice.regression.excess_risk import Regression
from benchmarks.practice.regression.noisy_gradient_descent import NoisyGradientDescent
from benchmarks.practice.regression.single_regression import SingleRegression
from benchmarks.practice.tables import Made, chosen, fresh_regressions, made
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.releases.moment_release import MomentRelease

__all__ = ["DESIGN"]

FloatArray = npt.NDArray[np.float64]

PAGE = EVIDENCE / "derivations" / "refined-regression.md"
BUDGETS = ((1.0, 1e-6), (3.0, 1e-9))
SEEDS = 10
DESCENT = NoisyGradientDescent(steps=300, clip=0.3, rate=1.5)
"""The setting with which gradient descent was ahead of a release at these budgets."""
DESIGN = (
    "breast-cancer", "anes96", "randhie", "macrodata", "loose-300", "loose-10000", "tight-1000", "lognormal-1000",
    "lognormal-30000", "zeros-20000", "student-500", "clusters-500", "clusters-30000", "factors-1000",
    "mixed-independent-5000", "mixed-dependent-1000", "flags-2000", "far-rows-10", "firms-20",
    # the judge of the constants before
    "iris", "china-pixels", "loose-3000", "tight-3000", "tight-20000", "lognormal-5000", "zeros-2000", "student-10000",
    "clusters-2000", "factors-3000", "mixed-dependent-10000", "mixed-rare-3000", "flags-300", "flags-50000",
    "register-5000", "register-30000", "far-rows-20", "firms-10",
    # and the one before this
    "fair", "star98", "modechoice", "grunfeld", "adult-2000", "adult-numbers", "loose-300000", "tight-100000",
    "lognormal-300", "zeros-100000", "student-50000", "clusters-20000", "factors-20000", "mixed-independent-100000",
    "mixed-rare-50000", "register-1000", "register-20000", "far-rows-40", "firms-40",
)  # fmt: skip
"""Tables on which the constants were chosen, besides those of the peers' page."""
JUDGE = tuple(table.name for table in fresh_regressions.TABLES)
"""Tables on which none of them was chosen, run once."""
HALVES = {"design": DESIGN, "judge": JUDGE}
SLOW = ("Adult", "Flower")
"""Measured last."""
METHODS = ("refined", "one release", "gradient descent", "AdaSSP")
LOST = 1.1


@dataclass(frozen=True, eq=False)
class Cell:
    """One regression at one budget.

    Attributes
    ----------
    excess : dict of str to float
        Medians over the seeds, at least 1e-6.
    correlation_loss : float
        Median correlation error of the release with a target, over that of the one without.
    clipped : float
        Mean upper bound on the share of clipped rows, as printed; NaN where the target is not refined.
    """

    table: str
    target: str
    n_rows: int
    n_features: int
    explained_share: float
    budget: tuple[float, float]
    excess: dict[str, float]
    correlation_loss: float
    clipped: float

    @property
    def quotient(self) -> float:
        """Excess risk over that of the best of the others."""
        return self.excess[METHODS[0]] / min(self.excess[name] for name in METHODS[1:])


def jobs(half: str, names: Sequence[str] | None) -> Iterator[tuple[str, Made, tuple[str, ...]]]:
    """Tables with their targets: those of ``DESIGN``, of the peers' page, or of ``JUDGE``."""
    if half == "peers":
        for case in sorted(CASES, key=lambda case: case.name in SLOW):
            if names is None or case.name in names:
                for table in case.table():
                    yield case.name, table, case.targets
        return
    for entry in chosen(None, [name for name in HALVES[half] if names is None or name in names]):
        table = made(entry)
        if table is not None and entry.target is not None:
            yield entry.name, table, (entry.target,)


def measured(name: str, table: Made, targets: Sequence[str]) -> Iterator[Cell]:
    """All targets of a table at all budgets."""
    data, schema = table
    for target in targets:
        whole, truth = Truth.of(data, schema, target), Regression.of(data, schema, target)
        single = SingleRegression.of(data, schema, target)
        gram, cross = single.moments()
        for epsilon, delta in BUDGETS:
            budget, spent = PrivacyBudget.of(epsilon=epsilon, delta=delta), {"epsilon": epsilon, "delta": delta}
            plain = [dpm.release(data, schema, insecure_seed=seed, **spent) for seed in range(SEEDS)]
            refined = [
                dpm.release(data, schema, targets=[target], insecure_seed=seed, **spent) for seed in range(SEEDS)
            ]
            rng = np.random.default_rng(0)
            descents = DESCENT.fits(single.rows, single.target, budget, SEEDS, rng, float(np.linalg.eigvalsh(gram)[-1]))
            excess = {
                "refined": [truth.excess_of_fit(one.ridge(target)) for one in refined],
                "one release": [truth.excess_of_fit(one.ridge(target)) for one in plain],
                "gradient descent": [single.excess(run, truth) for run in descents.T],
                "AdaSSP": [single.excess(adassp(gram, cross, budget, rng), truth) for _ in range(SEEDS)],
            }
            errors = [
                np.median([whole.correlation_error(correlated(one)) for one in each]) for each in (refined, plain)
            ]
            yield Cell(
                name, target, truth.n_rows, len(truth.features), truth.explained_share, (epsilon, delta),
                {method: max(float(np.median(values)), 1e-6) for method, values in excess.items()},
                float(errors[0] / errors[1]),
                clipped_share([one.ridge(target) for one in refined]),
            )  # fmt: skip


def clipped_share(fits: Sequence[dpm.analysis.regression_results.FittedLine]) -> float:
    """Mean upper bound on the share of clipped rows of refined fits; NaN where none is."""
    refined = [fit.clipping.share for fit in fits if fit.refined]
    return float(np.mean(refined)) if refined else np.nan


def correlated(release: MomentRelease) -> FloatArray:
    """Covariance in encoded units."""
    return np.asarray(release.unit_ball_covariance)


def digits(value: float) -> str:
    """Two significant digits."""
    return "–" if np.isnan(value) else f"{value:.2g}" if abs(value) < 10.0 else f"{min(value, 1e6):.0f}"


def lines(cells: Sequence[Cell]) -> Iterator[str]:
    """One line a cell, and the summary."""
    yield (f"| table, target | n | k | R² | ε, δ | {' | '.join(METHODS)} | correlations | clipped |")
    yield "| --- |" + " --- |" * (len(METHODS) + 6)
    for cell in cells:
        best = min(METHODS, key=lambda name, cell=cell: cell.excess[name])  # type: ignore[misc]
        shown = [f"**{digits(cell.excess[name])}**" if name == best else digits(cell.excess[name]) for name in METHODS]
        yield (
            f"| {cell.table}, {cell.target} | {cell.n_rows:,} | {cell.n_features} | {cell.explained_share:.2f} | "
            f"{cell.budget[0]:g}, {cell.budget[1]:g} | {' | '.join(shown)} | × {cell.correlation_loss:.2f} | "
            f"{'plain' if np.isnan(cell.clipped) else format(cell.clipped, '.3f')} |"
        )
    means = [digits(geometric_mean(cell.excess[name] for cell in cells)) for name in METHODS]
    yield f"| geometric mean | | | | | {' | '.join(means)} | | |"
    yield ""
    held, kept = (sum(value <= most for value in values) for values, most in (
        ([cell.quotient for cell in cells], LOST), ([cell.correlation_loss for cell in cells], 1.15)
    ))  # fmt: skip
    yield (
        f"Refined at most 1.1 × the best of the other three in {held} of {len(cells)} cells; correlations lose at most 15 % in "
        f"{kept}."
    )


def geometric_mean(values: Iterable[float]) -> float:
    """exp of the mean of the logarithms."""
    return float(np.exp(np.mean(np.log(list(values)))))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("design", "peers", "judge"), help="all, if left out")
    parser.add_argument("--tables", help="names, with commas")
    options = parser.parse_args()
    names = None if options.tables is None else [name.strip() for name in options.tables.split(",")]
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    for half in [options.half] if options.half else ["design", "peers", "judge"]:
        cells: list[Cell] = []
        for job in jobs(half, names):
            cells += measured(*job)
            print(f"{half}: {job[0]}", flush=True)
            if names is None:  # after each table, so that an interrupted run leaves what it measured
                write_part(PAGE, half, lines(cells))
        print("\n".join(lines(cells)), flush=True)


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    main()
