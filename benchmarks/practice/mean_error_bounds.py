"""How often 95 % intervals of released means hold the means of the table's rows; errors of means within public bounds.

``python -m benchmarks.practice.mean_error_bounds`` prints two tables of ``docs/evidence/regression-coverage.md``: by estimator
and kind of rows; and of ``bounded-sums``, beside Laplace sums and the means of a full release.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import head
from dpmoments.base.values import FloatArray

LEVEL = 0.95
INTERVALS = {1: 400, 5: 300, 20: 500}
"""Of one cell of the table, by the number of features: so many releases that their intervals are about these."""
SIZES = (1000, 10_000)
COORDINATEWISE = ("naive", "karwa-vadhan")
PURE = {"replace_one, ε = 1": dict(epsilon=1.0, neighbors="replace_one")}
APPROXIMATE = {"add_remove, (1, 10⁻⁶)": dict(epsilon=1.0, delta=1e-6, neighbors="add_remove")}
ZCDP = {"replace_one, ρ = ½": dict(rho=0.5, neighbors="replace_one")}

Made = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
ROWS: dict[str, Made] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "Laplace": lambda rng, size: rng.laplace(0.0, 0.5**0.5, size),
    "t, 3 degrees": lambda rng, size: rng.standard_t(3, size) / 3.0**0.5,
    "exponential": lambda rng, size: rng.exponential(size=size) - 1.0,
    "lognormal": lambda rng, size: (np.exp(rng.normal(size=size)) - np.e**0.5) / (np.e * (np.e - 1.0)) ** 0.5,
}
"""Independent coordinates of mean 0 and variance 1, moved to a mean of 3."""


def options_of(name: str, d: int) -> dict[str, Any]:
    """What a curator would state: means within 5 of 0, a standard deviation of 1."""
    return {
        "coinpress": {"radius": 5.0 * d**0.5, "scale": 1.0},
        "naive": {"radius": 5.0, "scale": 1.0},
        "karwa-vadhan": {"radius": 5.0},
    }.get(name, {})


def cell(name: str, rows: str, d: int, n: int, budget: dict[str, Any]) -> str:
    """Share of the intervals that held their mean, and of the releases that warn."""
    held, warned = [], 0
    trials = -(-INTERVALS[d] // d)
    for trial in range(trials):
        table = 3.0 + ROWS[rows](np.random.default_rng(trial), (n, d))
        options = options_of(name, d) | budget | {"mechanism": name, "insecure_seed": trial, "threads": 1}
        found = dpm.release_mean(table, dpm.Schema.unbounded(d), **options)
        low, high = found.conf_int(LEVEL).T
        mean = table.mean(axis=0)
        held.append((low <= mean) & (mean <= high))
        warned += bool(found.warnings)
    return f"{np.mean(held):.0%} ({warned / trials:.0%})"


def lines() -> Iterator[str]:
    """One row a mechanism, kind of rows and number of features; one column a budget and number of rows."""
    heads = ["ρ = ½", "ε = 1 or (1, 10⁻⁶)"]
    cells = [f"{head}, n = {n:,}" for head in heads for n in SIZES]
    yield from head(f"mechanism | rows | d | {' | '.join(cells)}", "llr" + "r" * len(cells))
    for name in ("coinpress", "variance-aware", *COORDINATEWISE):
        budgets = ZCDP | (PURE if name in COORDINATEWISE else APPROXIMATE)
        for rows in ROWS:
            for d in INTERVALS:
                if name in COORDINATEWISE and d > 5:
                    continue
                found = [cell(name, rows, d, n, budget) for budget in budgets.values() for n in SIZES]
                yield f"| {name} | {rows} | {d} | {' | '.join(found)} |"


# Means within public bounds.

TRIALS = 100
WITHIN_BUDGETS: dict[str, dict[str, Any]] = {
    "ε = 1": dict(epsilon=1.0),
    "(1, 10⁻⁶)": dict(epsilon=1.0, delta=1e-6),
    "ρ = 0.1": dict(rho=0.1),
}
WITHIN_SIZES = ((1000, 3), (1000, 12), (50_000, 3), (50_000, 12))
WITHIN_ROWS: dict[str, Made] = {
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


def cell_within(rows: str, n: int, d: int, budget: dict[str, Any]) -> str:
    """RMSE over that of Laplace sums at ε = 1, over that of the release's means, and coverage of 95 % intervals."""
    names = [f"x{index}" for index in range(d)]
    schema = dpm.Schema(*(dpm.Numeric(name, -1, 1) for name in names))
    squares, held = np.zeros(3), 0.0
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        table = WITHIN_ROWS[rows](rng, (n, d))
        frame, mean = pd.DataFrame(table, columns=names), table.mean(axis=0)
        found = dpm.release_mean(frame, schema, insecure_seed=trial, threads=1, **budget)
        whole = dpm.release(frame, schema, insecure_seed=trial, threads=1, **budget)
        answers = (found.mean, laplace_sums(table, rng), whole.mean)
        squares += [float(np.mean((answer - mean) ** 2)) for answer in answers]
        low, high = found.conf_int().T
        held += float(np.mean((low <= mean) & (mean <= high))) / TRIALS
    ours, of_laplace, of_release = np.sqrt(squares)
    return f"{ours / of_laplace:.2f}; {ours / of_release:.2f}; {held:.0%}"


def lines_within() -> Iterator[str]:
    """One line for each kind of rows and size; one column for each budget."""
    yield from head(f"rows | n | d | {' | '.join(WITHIN_BUDGETS)}", "lrr" + "r" * len(WITHIN_BUDGETS))
    for rows in WITHIN_ROWS:
        for n, d in WITHIN_SIZES:
            cells = (cell_within(rows, n, d, budget) for budget in WITHIN_BUDGETS.values())
            yield f"| {rows} | {n:,} | {d} | {' | '.join(cells)} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    for line in chain(lines(), [""], lines_within()):
        print(line, flush=True)
