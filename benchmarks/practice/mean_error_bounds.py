"""How often the 95 % interval of a released mean holds the mean of the table's rows, by estimator and kind of rows.

``python -m benchmarks.practice.mean_error_bounds [mechanism …]`` prints the table of ``docs/evidence/regression-coverage.md``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import dpmoments as dpm
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpm.ReleaseWarning)
            found = dpm.release_mean(
                table,
                dpm.Schema.unbounded(d),
                mechanism=name,
                insecure_seed=trial,
                threads=1,
                **options_of(name, d),
                **budget,
            )
        low, high = found.conf_int(LEVEL).T
        mean = table.mean(axis=0)
        held.append((low <= mean) & (mean <= high))
        warned += bool(found.warnings)
    return f"{np.mean(held):.0%} ({warned / trials:.0%})"


def lines(names: Sequence[str]) -> Iterator[str]:
    """One row a mechanism, kind of rows and number of features; one column a budget and number of rows."""
    heads = ["ρ = ½", "ε = 1 or (1, 10⁻⁶)"]
    cells = [f"{head}, n = {n:,}" for head in heads for n in SIZES]
    yield f"| mechanism | rows | d | {' | '.join(cells)} |"
    yield f"| --- | --- | ---: |{' ---: |' * len(cells)}"
    for name in names:
        budgets = ZCDP | (PURE if name in COORDINATEWISE else APPROXIMATE)
        for rows in ROWS:
            for d in INTERVALS:
                if name in COORDINATEWISE and d > 5:
                    continue
                found = [cell(name, rows, d, n, budget) for budget in budgets.values() for n in SIZES]
                yield f"| {name} | {rows} | {d} | {' | '.join(found)} |"


if __name__ == "__main__":
    for line in lines(sys.argv[1:] or ("coinpress", "variance-aware", *COORDINATEWISE)):
        print(line, flush=True)
