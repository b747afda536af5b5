"""Any regression from one release, against methods that spend all their budget on one regression.

``python -m benchmarks.practice.regression`` measures and writes the tables of ``docs/evidence/regression-coverage.md``; some
fifteen minutes on one core.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, two_digits, write_part
from benchmarks.papers import datasets as papers_datasets
from benchmarks.practice.regression.methods import adassp
from benchmarks.practice.regression.single_regression import Regression, SingleRegression
from benchmarks.practice.regression.tuning import MIDDLE, tuned_descent, tuned_perturbation
from benchmarks.practice.tables import chosen
from dpmoments.base.values import FloatArray
from dpmoments.privacy.budget import PrivacyBudget

PAGE = EVIDENCE / "regression-coverage.md"
EPSILONS = (0.5, 1.0, 3.0, 10.0)
DELTAS = (0.0, 1e-9)
SEEDS, SEEDS_OF_LARGE, LARGE = 40, 20, 20_000
OURS = "one release"
PEERS = ("AdaSSP", "output perturbation, tuned", "gradient descent", "gradient descent, tuned")
METHODS = (OURS, *PEERS)
LOST = 1.1
"""A peer's mean excess risk times this below ours is a loss."""


CASES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Wine", "wine", ("alcohol",)),
    ("Diabetes", "diabetes", ("target",)),
    ("Airfoil", "airfoil", ("sound_pressure_level",)),
    ("Algorithm 3", "", ("x0",)),
    ("Adult", "adult", ("hours-per-week", "income")),
    ("Digits", "digits", ("pixel_4_4",)),
    ("Flower", "flower-pixels", ("blue",)),
)
"""Tables of the collection, and what is regressed on all their other columns; Algorithm 3 has 10,000 rows with 20 features.
No constant of the library was chosen on Algorithm 3, Digits (scikit-learn's) or Flower (the pixels of a photograph)."""


def measured(name: str, entry: str, targets: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """All budgets of one table: one row a regression and budget, excess risks by method, one a seed."""
    if entry:
        data, schema = chosen(names=[entry])[0].make()
    else:
        data, schema = papers_datasets.amin_synthetic(10_000, 20, np.random.default_rng(3)), dpm.Schema.unit_ball(20)
    truths = [Regression.of(data, schema, target) for target in targets]
    singles = [SingleRegression.of(data, schema, target) for target in targets]
    seeds = SEEDS_OF_LARGE if truths[0].n_rows >= LARGE else SEEDS
    starts = [MIDDLE] * len(truths)
    for delta, epsilon in product(DELTAS, EPSILONS):
        ours = of_releases(data, schema, truths, epsilon, delta, seeds)
        budget = PrivacyBudget.of(epsilon=epsilon, delta=delta)
        for place, (target, truth, single) in enumerate(zip(targets, truths, singles, strict=True)):
            gram, cross = single.moments()
            largest = float(np.linalg.eigvalsh(gram)[-1])
            perturbation = tuned_perturbation(single, truth, budget)
            descent = starts[place] = tuned_descent(single, truth, budget, largest, starts[place])
            rng = np.random.default_rng(0)
            descending = single.rows, single.target, budget, seeds, rng, largest
            fits = {
                "AdaSSP": np.column_stack([adassp(gram, cross, budget, rng) for _ in range(seeds)]),
                "output perturbation, tuned": perturbation.fits(gram, cross, budget, seeds, rng),
                "gradient descent": MIDDLE.fits(*descending),
                "gradient descent, tuned": descent.fits(*descending),
            }
            excess = {
                peer: np.array([single.excess(run, truth) for run in weights.T]) for peer, weights in fits.items()
            }
            setting = (
                f"α = {perturbation.penalty / truth.n_rows:.2g} n, W = {perturbation.bound:g}; "
                f"T = {descent.steps}, clip {descent.clip:g}, η = {descent.rate:g}"
            )
            yield {
                "table": f"{name}, {target}",
                "rows": truth.n_rows,
                "R²": truth.explained_share,
                "ε": epsilon,
                "δ": delta,
                OURS: ours[place],
                **excess,
                "tuned to": setting,
            }


def of_releases(
    data: object, schema: dpm.Schema, truths: Sequence[Regression], epsilon: float, delta: float, seeds: int
) -> list[FloatArray]:
    """Excess risks of every regression from the same default releases, α from the noise."""
    found: list[list[float]] = [[] for _ in truths]
    for seed in range(seeds):
        release = dpm.release(data, schema, epsilon=epsilon, delta=delta, insecure_seed=seed)
        for place, truth in enumerate(truths):
            found[place].append(truth.excess_of_fit(release.ridge(release.feature_names[truth.target])))
    return [np.array(values) for values in found]


def table_lines(found: pd.DataFrame, means: pd.DataFrame) -> Iterator[str]:
    """Mean ± its standard error / median; the best mean bold."""
    yield from head(
        f"table, target | rows | R² | ε | δ | {' | '.join(METHODS)} | tuned to", "lrrll" + "l" * (len(METHODS) + 1)
    )
    for (_, row), (_, mean) in zip(found.iterrows(), means.iterrows(), strict=True):
        cells = []
        for method in METHODS:
            values, shown = row[method], two_digits(mean[method])
            error = two_digits(float(values.std(ddof=1)) / float(np.sqrt(len(values))))
            bold = f"**{shown}**" if method == mean.idxmin() else shown
            cells.append(f"{bold} ± {error} / {two_digits(float(np.median(values)))}")
        about = f"{row['table']} | {row['rows']:,} | {row['R²']:.2f} | {row['ε']:g} | {row['δ']:g}"
        yield f"| {about} | {' | '.join(cells)} | {row['tuned to']} |"


def summary_lines(over_ours: pd.DataFrame) -> Iterator[str]:
    """Against each peer: how often it is better by more than a tenth, and the geometric mean of its excess risk over ours."""
    yield from head(
        "peer | its excess risk over ours, geometric mean | cells | it is better by more than 10 % | we are", "lllll"
    )
    for peer, quotients in over_ours.items():
        average = float(np.exp(np.log(quotients).mean()))
        lost, won = (quotients < 1.0 / LOST).sum(), (quotients > LOST).sum()
        yield f"| {peer} | {two_digits(average)} | {len(quotients)} | {lost} | {won} |"


def loss_lines(found: pd.DataFrame, means: pd.DataFrame) -> Iterator[str]:
    """The cells in which a peer is better by more than a tenth, the best peer first."""
    yield from head("regression | ε | δ | one release | better by more than 10 %", "lllll")
    for (_, row), (_, mean) in zip(found.iterrows(), means.iterrows(), strict=True):
        better = mean[LOST * mean < mean[OURS]].sort_values(kind="stable")
        if len(better):
            peers = ", ".join(f"{peer} {two_digits(value)}" for peer, value in better.items())
            yield f"| {row['table']} | {row['ε']:g} | {row['δ']:g} | {two_digits(mean[OURS])} | {peers} |"


if __name__ == "__main__":
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    begun, rows = time.perf_counter(), list[dict[str, Any]]()
    for case in CASES:
        rows += sorted(measured(*case), key=lambda row: (row["table"], row["δ"], row["ε"]))
        print(f"{time.perf_counter() - begun:6.0f} s  {case[0]}", flush=True)
    found = pd.DataFrame(rows)
    means = found[list(METHODS)].map(np.mean)
    write_part(PAGE, "summary", summary_lines(means[list(PEERS)].div(means[OURS], axis=0)))
    write_part(PAGE, "losses", loss_lines(found, means))
    write_part(PAGE, "cells", table_lines(found, means))
