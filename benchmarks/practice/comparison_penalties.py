"""How much of the noise the graphical lasso and the discriminant should be penalized by: graphs recovered, rows told apart.

    OMP_NUM_THREADS=1 python -m benchmarks.practice.comparison_penalties

Writes its parts of ``docs/evidence/regression-coverage.md``.
"""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from dpmoments.analysis import classifiers, components
from dpmoments.base.values import FloatArray

PENALTIES = (0.5, 1.0, 2.0, 3.0, 4.0)
SHRINKAGES = (0.0, 0.01, 0.03, 0.1, 0.25, 1.0)
SIZE, N_ROWS, SEEDS = 10, 20_000, 10
GRAPHS = [(epsilon, strength) for strength in (0.35, 0.15) for epsilon in (0.1, 0.3, 1.0, 10.0)]


def chain(strength: float, seed: int) -> FloatArray:
    """Normal rows inside the unit ball (nearly all), each feature tied to the next alone."""
    precision = np.eye(SIZE)
    for one, other in pairwise(range(SIZE)):
        precision[one, other] = precision[other, one] = strength
    covariance = np.linalg.inv(precision)
    deviations = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(deviations, deviations))
    rows = np.random.default_rng(seed).normal(size=(N_ROWS, SIZE)) @ root.T
    return np.asarray(rows / (2.4 * np.sqrt(SIZE)))


def graphs() -> list[str]:
    """Shares of the true edges that are found, and of the found edges that are false, a factor a column."""
    truth = {(f"x{one}", f"x{other}") for one, other in pairwise(range(SIZE))}
    lines = [*head(f"graph | {' | '.join(f'{factor:g} ×' for factor in PENALTIES)}", "l" + "l" * len(PENALTIES))]
    for epsilon, strength in GRAPHS:
        found = {factor: np.zeros(2) for factor in PENALTIES}
        for seed in range(SEEDS):
            released = dpm.release(
                chain(strength, seed), dpm.Schema.unit_ball(SIZE), epsilon=epsilon, delta=1e-9, insecure_seed=seed
            )
            for factor in PENALTIES:
                components._PENALTY = factor
                edges = {(one, other) for one, other, _ in released.graphical_lasso().edges}
                found[factor] += [len(edges & truth), len(edges - truth)]
        cells = [
            f"{true / SEEDS / len(truth):.0%}, {false / max(1.0, true + false):.0%}" for true, false in found.values()
        ]
        lines.append(f"| ties of {strength:g}, ε = {epsilon:g}, δ = 1e-9 | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def discriminants() -> list[str]:
    """Shares of rows of the table itself that are told apart rightly, a factor a column."""
    lines = [*head(f"table | {' | '.join(f'{factor:g} ×' for factor in SHRINKAGES)}", "l" + "l" * len(SHRINKAGES))]
    wine, adult = dpm.datasets.wine(cultivar=True), dpm.datasets.adult()
    people = adult.frame.drop_null()
    settings = [
        ("Wine, cultivar", wine.frame, wine.frame, wine.schema, "cultivar", epsilon, 0.0)
        for epsilon in (3.0, 10.0, 30.0)
    ]
    settings += [
        ("Adult, income", adult.frame, people, adult.schema, "income", epsilon, delta)
        for delta in (0.0, 1e-9)
        for epsilon in (0.3, 1.0, 10.0)
    ]
    for name, frame, rows, schema, by, epsilon, delta in settings:
        right = dict.fromkeys(SHRINKAGES, 0.0)
        runs = SEEDS if frame.num_rows < 1_000 else SEEDS // 4
        for seed in range(runs):
            released = dpm.release(frame, schema, epsilon=epsilon, delta=delta, insecure_seed=seed)
            for factor in SHRINKAGES:
                classifiers._SHRINKAGE = factor
                right[factor] += float(np.mean(released.lda(by).predict(rows) == np.array(rows[by].to_pylist()))) / runs
        budget = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
        lines.append(f"| {name}, {budget} | {' | '.join(f'{share:.3f}' for share in right.values())} |")
        print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    write_part(EVIDENCE / "regression-coverage.md", "graphs", graphs())
    write_part(EVIDENCE / "regression-coverage.md", "discriminants", discriminants())
