"""Numbers beside categories and Booleans of which one level holds most rows, as in a census or a register."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import FloatArray, correlated_normals


def shares_of(k: int, largest: float) -> FloatArray:
    """One level with the share ``largest``, the others as 1/i of what it leaves."""
    rest = 1.0 / np.arange(1.0, k)
    return np.concatenate([[largest], (1.0 - largest) * rest / rest.sum()])


def register(
    n: int, numbers: int, levels: tuple[int, ...], flags: int, seed: int, *, largest: float, dependence: float
) -> Callable[[], Made]:
    """Normal and log-normal numbers in turn; every categorical and Boolean column depends on a hidden normal number."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        hidden = rng.standard_normal(n)
        own = correlated_normals(rng, n, numbers, 0.2)
        cells: dict[str, object] = {}
        columns: list[dpm.Numeric | dpm.Boolean | dpm.Categorical] = []
        for j in range(numbers):
            score = dependence * hidden + np.sqrt(1.0 - dependence**2) * own[:, j]
            cells[f"x{j}"] = np.clip(40.0 + 12.0 * score if j % 2 == 0 else 15.0 * np.exp(0.6 * score), 0.0, 100.0)
            columns.append(dpm.Numeric(f"x{j}", 0, 100))
        for j, k in enumerate(levels):
            score = dependence * hidden + np.sqrt(1.0 - dependence**2) * rng.standard_normal(n)
            places = (np.argsort(np.argsort(score)) + 0.5) / n
            known = tuple(f"level{i}" for i in range(k))
            cells[f"c{j}"] = np.array(known)[np.searchsorted(np.cumsum(shares_of(k, largest))[:-1], places)]
            columns.append(dpm.Categorical(f"c{j}", known))
        for j in range(flags):
            score = dependence * hidden + np.sqrt(1.0 - dependence**2) * rng.standard_normal(n)
            cells[f"flag{j}"] = score > np.quantile(score, largest)
            columns.append(dpm.Boolean(f"flag{j}"))
        return pd.DataFrame(cells), dpm.Schema(*columns)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    """A synthetic table whose first number a regression predicts."""
    return Entry(name, half, "skewed levels", False, make, "x0")


TABLES = (
    entry("register-2000", "design", register(2_000, 3, (5, 8), 2, 701, largest=0.8, dependence=0.4)),
    entry("register-20000", "design", register(20_000, 4, (6, 6, 12), 1, 702, largest=0.7, dependence=0.3)),
    entry("register-5000", "judge", register(5_000, 3, (4, 9, 6), 1, 711, largest=0.75, dependence=0.5)),
    entry("register-1000", "judge", register(1_000, 4, (5, 5), 2, 712, largest=0.85, dependence=0.3)),
    entry("register-30000", "judge", register(30_000, 5, (14, 7), 1, 713, largest=0.65, dependence=0.4)),
)
