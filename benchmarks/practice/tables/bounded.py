"""Loose and tight bounds: normal columns inside bounds ten times too wide, and columns that fill theirs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import correlated_normals, with_target, within


def loose(n: int, d: int, width: float, seed: int) -> Callable[[], Made]:
    """Normal columns of standard deviation 1 about a common point, within ± width."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        rows = with_target(rng, correlated_normals(rng, n, d) + width / 10.0)
        return within(rows, -width, width)

    return make


def tight(n: int, d: int, seed: int) -> Callable[[], Made]:
    """Columns pushed to both ends of 0 to 1, correlated."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        rows = with_target(rng, 1.0 / (1.0 + np.exp(-2.0 * correlated_normals(rng, n, d))))
        return within(rows, 0.0, 1.0)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    return Entry(name, half, "bounded", False, make, "y")


TABLES = (
    entry("loose-300", "design", loose(300, 7, 30.0, 101)),
    entry("loose-10000", "design", loose(10_000, 11, 50.0, 102)),
    entry("tight-1000", "design", tight(1_000, 7, 103)),
    entry("tight-100000", "design", tight(100_000, 5, 104)),
    entry("loose-30", "judge", loose(30, 5, 20.0, 111)),
    entry("loose-3000", "judge", loose(3_000, 9, 40.0, 112)),
    entry("loose-300000", "judge", loose(300_000, 4, 100.0, 113)),
    entry("tight-3000", "judge", tight(3_000, 11, 114)),
    entry("tight-20000", "judge", tight(20_000, 5, 115)),
)
