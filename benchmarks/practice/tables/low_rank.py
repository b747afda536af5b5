"""Many columns that a few hidden ones explain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import with_target, within


def factors(n: int, d: int, rank: int, width: float, seed: int) -> Callable[[], Made]:
    """Normal factors, normal loadings divided by √rank, and a tenth of noise."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        loadings = rng.standard_normal((rank, d)) / np.sqrt(rank)
        rows = rng.standard_normal((n, rank)) @ loadings + 0.1 * rng.standard_normal((n, d))
        return within(with_target(rng, rows), -width, width)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    return Entry(name, half, "low-rank", False, make, "y")


TABLES = (
    entry("factors-1000", "design", factors(1_000, 19, 3, 10.0, 401)),
    entry("factors-50000", "design", factors(50_000, 29, 2, 5.0, 402)),
    entry("factors-3000", "judge", factors(3_000, 24, 2, 8.0, 411)),
    entry("factors-20000", "judge", factors(20_000, 39, 4, 10.0, 412)),
)
