"""Rows about a few centers, far apart for their spread."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import with_target, within


def clusters(n: int, d: int, shares: tuple[float, ...], width: float, seed: int) -> Callable[[], Made]:
    """Normal rows of standard deviation 1 about centers whose cells are uniform within ± width/2."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        centers = rng.uniform(-width / 2.0, width / 2.0, (len(shares), d))
        rows = centers[rng.choice(len(shares), n, p=shares)] + rng.standard_normal((n, d))
        return within(with_target(rng, rows), -width, width)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    return Entry(name, half, "clustered", False, make, "y")


TABLES = (
    entry("clusters-500", "design", clusters(500, 9, (0.4, 0.35, 0.25), 20.0, 301)),
    entry("clusters-30000", "design", clusters(30_000, 6, (0.6, 0.4), 30.0, 302)),
    entry("clusters-2000", "judge", clusters(2_000, 7, (0.5, 0.5), 25.0, 311)),
    entry("clusters-20000", "judge", clusters(20_000, 11, (0.55, 0.25, 0.1, 0.1), 20.0, 312)),
)
