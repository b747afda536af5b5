"""Lognormal columns, columns of mostly zeros, and heavy tails: few large cells, and bounds that hold them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import correlated_normals, with_target, within


def lognormal(n: int, d: int, sigma: float, upper: float, seed: int) -> Callable[[], Made]:
    """Exponentials of normal columns; what is above the bound is moved to it."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        return within(with_target(rng, np.exp(sigma * correlated_normals(rng, n, d))), 0.0, upper)

    return make


def zero_inflated(n: int, d: int, share: float, upper: float, seed: int) -> Callable[[], Made]:
    """Spending: a share of the rows spends a lognormal sum in a column, the others nothing."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        spent = 20.0 * np.exp(correlated_normals(rng, n, d)) * (rng.random((n, d)) < share)
        return within(with_target(rng, spent), 0.0, upper)

    return make


def heavy_tails(n: int, d: int, width: float, seed: int) -> Callable[[], Made]:
    """Student's t of 3 degrees of freedom, whole rows far out together."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        rows = correlated_normals(rng, n, d, 0.3) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3.0)
        return within(with_target(rng, rows), -width, width)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    return Entry(name, half, "skewed", False, make, "y")


TABLES = (
    entry("lognormal-1000", "design", lognormal(1_000, 7, 1.0, 100.0, 201)),
    entry("lognormal-30000", "design", lognormal(30_000, 5, 0.7, 50.0, 202)),
    entry("zeros-20000", "design", zero_inflated(20_000, 8, 0.1, 1_000.0, 203)),
    entry("student-500", "design", heavy_tails(500, 6, 50.0, 204)),
    entry("student-50000", "design", heavy_tails(50_000, 6, 100.0, 205)),
    entry("lognormal-300", "judge", lognormal(300, 5, 0.8, 50.0, 211)),
    entry("lognormal-5000", "judge", lognormal(5_000, 9, 1.0, 200.0, 212)),
    entry("zeros-2000", "judge", zero_inflated(2_000, 6, 0.15, 500.0, 213)),
    entry("zeros-100000", "judge", zero_inflated(100_000, 5, 0.05, 1_000.0, 214)),
    entry("student-10000", "judge", heavy_tails(10_000, 8, 50.0, 215)),
)
