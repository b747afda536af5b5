"""Means within public bounds: error and coverage of ``bounded-sums`` beside Laplace sums and the means of a full release.

``python -m benchmarks.practice.means_within_bounds`` prints the table of ``docs/evidence/regression-coverage.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from dpmoments.base.values import FloatArray

TRIALS = 100
BUDGETS: dict[str, dict[str, Any]] = {
    "ε = 1": dict(epsilon=1.0),
    "(1, 10⁻⁶)": dict(epsilon=1.0, delta=1e-6),
    "ρ = 0.1": dict(rho=0.1),
}
SIZES = ((1000, 3), (1000, 12), (50_000, 3), (50_000, 12))
Made = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
ROWS: dict[str, Made] = {
    "uniform": lambda rng, size: rng.uniform(-1.0, 1.0, size),
    "0 or 1": lambda rng, size: np.where(rng.random(size) < 0.2, 1.0, -1.0),
    "normal, SD a tenth": lambda rng, size: np.clip(rng.normal(-0.2, 0.1, size), -1.0, 1.0),
    "exponential, SD a tenth": lambda rng, size: np.clip(rng.exponential(0.1, size) - 1.0, -1.0, 1.0),
}
"""Columns within [−1, 1]."""


def laplace_sums(table: FloatArray, rng: np.random.Generator) -> FloatArray:
    """ε = 1 divided evenly among the count and the sums."""
    n, d = table.shape
    noisy: FloatArray = (table.sum(axis=0) + rng.laplace(0.0, d + 1.0, d)) / (n + rng.laplace(0.0, d + 1.0))
    return noisy


def cell(rows: str, n: int, d: int, budget: dict[str, Any]) -> str:
    """RMSE over that of Laplace sums at ε = 1, over that of the release's means, and coverage of 95 % intervals."""
    names = [f"x{index}" for index in range(d)]
    schema = dpm.Schema(*(dpm.Numeric(name, -1, 1) for name in names))
    squares, held = np.zeros(3), 0.0
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        table = ROWS[rows](rng, (n, d))
        frame, mean = pd.DataFrame(table, columns=names), table.mean(axis=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpm.ReleaseWarning)
            found = dpm.release_mean(frame, schema, insecure_seed=trial, threads=1, **budget)
            whole = dpm.release(frame, schema, insecure_seed=trial, threads=1, **budget)
        answers = (found.mean, laplace_sums(table, rng), whole.mean)
        squares += [float(np.mean((answer - mean) ** 2)) for answer in answers]
        low, high = found.conf_int().T
        held += float(np.mean((low <= mean) & (mean <= high))) / TRIALS
    ours, of_laplace, of_release = np.sqrt(squares)
    return f"{ours / of_laplace:.2f}; {ours / of_release:.2f}; {held:.0%}"


def lines() -> Iterator[str]:
    """One line for each kind of rows and size; one column for each budget."""
    yield f"| rows | n | d | {' | '.join(BUDGETS)} |"
    yield f"| --- | ---: | ---: |{' ---: |' * len(BUDGETS)}"
    for rows in ROWS:
        for n, d in SIZES:
            yield f"| {rows} | {n:,} | {d} | {' | '.join(cell(rows, n, d, budget) for budget in BUDGETS.values())} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
