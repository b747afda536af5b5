"""A few rows far from all others that carry much of the covariance: wealth, firms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import correlated_normals, with_target, within

N_ROWS = 20_000


def far_rows(few: int, d: int, width: float, spread: float, seed: int) -> Callable[[], Made]:
    """Normal rows of that standard deviation, and a few near one corner of the bounds, ± width."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        rows = with_target(rng, spread * correlated_normals(rng, N_ROWS, d))
        rows[:few, :d] = width * rng.uniform(0.7, 1.0, (few, d))
        return within(rows, -width, width)

    return make


def firms(few: int, d: int, seed: int) -> Callable[[], Made]:
    """Lognormal sizes in units of a small firm, and a few that are thousands of times as large in every column."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        sizes = np.exp(correlated_normals(rng, N_ROWS, d, 0.8))
        sizes[:few] = rng.uniform(2_000.0, 10_000.0, (few, d))
        return within(with_target(rng, sizes), 0.0, 10_000.0)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    return Entry(name, half, "dominant-rows", False, make, "y", dominant=True)


TABLES = (
    entry("far-rows-10", "design", far_rows(10, 6, 100.0, 1.0, 601)),
    entry("far-rows-40", "design", far_rows(40, 8, 100.0, 2.0, 602)),
    entry("firms-20", "design", firms(20, 5, 603)),
    entry("far-rows-20", "judge", far_rows(20, 7, 100.0, 1.5, 611)),
    entry("firms-10", "judge", firms(10, 6, 612)),
    entry("firms-40", "judge", firms(40, 8, 613)),
)
