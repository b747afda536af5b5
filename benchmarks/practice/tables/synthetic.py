"""Tables drawn from known laws: a family for each of the ways in which columns are difficult."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.practice.tables import codebooks
from benchmarks.practice.tables.entry import Entry, Half, Made
from dpmoments.base.values import FloatArray

Rng = np.random.Generator
IntArray = npt.NDArray[np.int64]
Public = tuple[float, float] | tuple[str, ...] | None
"""Bounds of a number, levels of a category, None for a Boolean."""
Columns = dict[str, tuple[npt.NDArray[Any], Public]]
"""Cells, and what is public of them."""


def table(
    family: str,
    name: str,
    half: Half,
    seed: int,
    law: Callable[..., Made],
    *sizes: Any,
    target: str | None,
    **options: Any,
) -> Entry:
    """Rows by a law, which gets a generator of that seed, the sizes and the options."""
    return Entry(name, half, family, False, lambda: law(np.random.default_rng(seed), *sizes, **options), target)


# What laws are put together from.


def correlated_normals(rng: Rng, n: int, d: int, correlation: float = 0.5) -> FloatArray:
    """Standard normal columns, every pair with that correlation, shape (n, d)."""
    shared = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, d))
    return np.asarray(np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own, dtype=np.float64)


def with_target(rng: Rng, columns: FloatArray, noise: float = 0.5) -> FloatArray:
    """The columns, and one more: half the sum of the first three, in their standard deviations, and normal noise."""
    first = columns[:, :3]
    spread = np.maximum(first.std(axis=0), 1e-12)
    target = 0.5 * ((first - first.mean(axis=0)) / spread).sum(axis=1) + noise * rng.standard_normal(len(columns))
    return np.column_stack([columns, target])


def within(columns: FloatArray, lower: float, upper: float) -> Made:
    """Columns x0, x1, … with the same public bounds; ``y`` for the last, between −10 and 10."""
    *features, target = columns.T
    return described(
        {f"x{j}": (cells, (lower, upper)) for j, cells in enumerate(features)} | {"y": (target, (-10, 10))}
    )


def described(columns: Columns) -> Made:
    """The frame and its schema."""
    frame = pd.DataFrame({name: cells for name, (cells, _) in columns.items()})
    return codebooks.described({name: public for name, (_, public) in columns.items()}, frame)


def named(word: str, codes: IntArray, k: int) -> tuple[npt.NDArray[Any], Public]:
    levels = tuple(f"{word}{i}" for i in range(k))
    return np.array(levels)[codes], levels


def by_rank(score: FloatArray, shares: FloatArray) -> IntArray:
    """Codes of those shares, which grow with the score."""
    places = (np.argsort(np.argsort(score)) + 0.5) / len(score)
    return np.asarray(np.searchsorted(np.cumsum(shares)[:-1], places), dtype=np.int64)


# Loose and tight bounds: normal columns inside bounds ten times too wide, and columns that fill theirs.


def loose(rng: Rng, n: int, d: int, width: float) -> Made:
    """Normal columns of standard deviation 1 about a common point, within ± width."""
    return within(with_target(rng, correlated_normals(rng, n, d) + width / 10.0), -width, width)


def tight(rng: Rng, n: int, d: int) -> Made:
    """Columns pushed to both ends of 0 to 1, correlated."""
    return within(with_target(rng, 1.0 / (1.0 + np.exp(-2.0 * correlated_normals(rng, n, d)))), 0.0, 1.0)


bounded = partial(table, "bounded", target="y")

BOUNDED = (
    bounded("loose-300", "design", 101, loose, 300, 7, 30.0),
    bounded("loose-10000", "design", 102, loose, 10_000, 11, 50.0),
    bounded("tight-1000", "design", 103, tight, 1_000, 7),
    bounded("tight-100000", "design", 104, tight, 100_000, 5),
    bounded("loose-30", "judge", 111, loose, 30, 5, 20.0),
    bounded("loose-3000", "judge", 112, loose, 3_000, 9, 40.0),
    bounded("loose-300000", "judge", 113, loose, 300_000, 4, 100.0),
    bounded("tight-3000", "judge", 114, tight, 3_000, 11),
    bounded("tight-20000", "judge", 115, tight, 20_000, 5),
)


# Lognormal columns, columns of mostly zeros, and heavy tails: few large cells, and bounds that hold them.


def lognormal(rng: Rng, n: int, d: int, sigma: float, upper: float) -> Made:
    """Exponentials of normal columns; what is above the bound is moved to it."""
    return within(with_target(rng, np.exp(sigma * correlated_normals(rng, n, d))), 0.0, upper)


def zero_inflated(rng: Rng, n: int, d: int, share: float, upper: float) -> Made:
    """Spending: a share of the rows spends a lognormal sum in a column, the others nothing."""
    spent = 20.0 * np.exp(correlated_normals(rng, n, d)) * (rng.random((n, d)) < share)
    return within(with_target(rng, spent), 0.0, upper)


def heavy_tails(rng: Rng, n: int, d: int, width: float) -> Made:
    """Student's t of 3 degrees of freedom, whole rows far out together."""
    rows = correlated_normals(rng, n, d, 0.3) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3.0)
    return within(with_target(rng, rows), -width, width)


skewed = partial(table, "skewed", target="y")

SKEWED = (
    skewed("lognormal-1000", "design", 201, lognormal, 1_000, 7, 1.0, 100.0),
    skewed("lognormal-30000", "design", 202, lognormal, 30_000, 5, 0.7, 50.0),
    skewed("zeros-20000", "design", 203, zero_inflated, 20_000, 8, 0.1, 1_000.0),
    skewed("student-500", "design", 204, heavy_tails, 500, 6, 50.0),
    skewed("student-50000", "design", 205, heavy_tails, 50_000, 6, 100.0),
    skewed("lognormal-300", "judge", 211, lognormal, 300, 5, 0.8, 50.0),
    skewed("lognormal-5000", "judge", 212, lognormal, 5_000, 9, 1.0, 200.0),
    skewed("zeros-2000", "judge", 213, zero_inflated, 2_000, 6, 0.15, 500.0),
    skewed("zeros-100000", "judge", 214, zero_inflated, 100_000, 5, 0.05, 1_000.0),
    skewed("student-10000", "judge", 215, heavy_tails, 10_000, 8, 50.0),
)


# Rows about a few centers, far apart for their spread.


def clusters(rng: Rng, n: int, d: int, shares: tuple[float, ...], width: float) -> Made:
    """Normal rows of standard deviation 1 about centers whose cells are uniform within ± width/2."""
    centers = rng.uniform(-width / 2.0, width / 2.0, (len(shares), d))
    rows = centers[rng.choice(len(shares), n, p=shares)] + rng.standard_normal((n, d))
    return within(with_target(rng, rows), -width, width)


clustered = partial(table, "clustered", target="y")

CLUSTERED = (
    clustered("clusters-500", "design", 301, clusters, 500, 9, (0.4, 0.35, 0.25), 20.0),
    clustered("clusters-30000", "design", 302, clusters, 30_000, 6, (0.6, 0.4), 30.0),
    clustered("clusters-2000", "judge", 311, clusters, 2_000, 7, (0.5, 0.5), 25.0),
    clustered("clusters-20000", "judge", 312, clusters, 20_000, 11, (0.55, 0.25, 0.1, 0.1), 20.0),
)


# Many columns that a few hidden ones explain.


def factors(rng: Rng, n: int, d: int, rank: int, width: float) -> Made:
    """Normal factors, normal loadings divided by √rank, and a tenth of noise."""
    loadings = rng.standard_normal((rank, d)) / np.sqrt(rank)
    rows = rng.standard_normal((n, rank)) @ loadings + 0.1 * rng.standard_normal((n, d))
    return within(with_target(rng, rows), -width, width)


low_rank = partial(table, "low-rank", target="y")

LOW_RANK = (
    low_rank("factors-1000", "design", 401, factors, 1_000, 19, 3, 10.0),
    low_rank("factors-50000", "design", 402, factors, 50_000, 29, 2, 5.0),
    low_rank("factors-3000", "judge", 411, factors, 3_000, 24, 2, 8.0),
    low_rank("factors-20000", "judge", 412, factors, 20_000, 39, 4, 10.0),
)


# Categories and Booleans: independent, dependent and rare levels, beside numbers and alone.


def mixed(
    rng: Rng, n: int, numbers: int, levels: tuple[int, ...], *, dependence: float = 0.0, rare: bool = False
) -> Made:
    """Numbers of standard deviation 10 about 40, categories, and a Boolean.

    Shares of levels fall as 1/i, or halve from level to level where they are rare.
    """
    hidden, rest = rng.standard_normal(n), np.sqrt(1.0 - dependence**2)
    own = correlated_normals(rng, n, numbers, 0.3)
    columns: Columns = {
        f"x{j}": (40.0 + 10.0 * (dependence * hidden + rest * own[:, j]), (0, 100)) for j in range(numbers)
    }
    for j, k in enumerate(levels):
        score = dependence * hidden + rest * rng.standard_normal(n)
        weights = 0.5 ** np.arange(k) if rare else 1.0 / np.arange(1.0, k + 1.0)
        places = np.argsort(np.argsort(score)) / n
        codes = np.searchsorted(np.cumsum(weights / weights.sum())[:-1], places, side="right")
        columns[f"c{j}"] = named("level", codes, k)
    columns["flag"] = dependence * hidden + rng.standard_normal(n) > 0.5, None
    return described(columns)


def booleans(rng: Rng, n: int, d: int, *, dependence: float) -> Made:
    """Flags of a twentieth to a half of the rows."""
    flags = correlated_normals(rng, n, d, dependence) > np.linspace(0.0, 1.6, d)
    return described({f"flag{j}": (flags[:, j], None) for j in range(d)})


categories = partial(table, "categories", target="flag")
flags = partial(table, "categories", target="flag0")

CATEGORIES = (
    categories("mixed-independent-5000", "design", 501, mixed, 5_000, 4, (4, 6)),
    categories("mixed-dependent-1000", "design", 502, mixed, 1_000, 3, (3, 5), dependence=0.6),
    categories("mixed-rare-50000", "design", 503, mixed, 50_000, 3, (8, 10), dependence=0.4, rare=True),
    flags("flags-2000", "design", 504, booleans, 2_000, 10, dependence=0.3),
    categories("mixed-independent-100000", "judge", 511, mixed, 100_000, 3, (4, 5)),
    categories("mixed-dependent-10000", "judge", 512, mixed, 10_000, 4, (5, 7), dependence=0.5),
    categories("mixed-rare-3000", "judge", 513, mixed, 3_000, 5, (7, 9), dependence=0.3, rare=True),
    flags("flags-300", "judge", 514, booleans, 300, 6, dependence=0.2),
    flags("flags-50000", "judge", 515, booleans, 50_000, 14, dependence=0.4),
)


def questionnaire(rng: Rng, n: int, levels: tuple[int, ...], *, loading: float) -> Made:
    """A survey of categories only: items of a few levels that grow with one of two hidden attitudes."""
    attitudes, columns = rng.standard_normal((n, 2)), Columns()
    for j, k in enumerate(levels):
        score = loading * attitudes[:, j % 2] + np.sqrt(1.0 - loading**2) * rng.standard_normal(n)
        columns[f"q{j}"] = named("answer", by_rank(score, rng.dirichlet(np.full(k, 8.0))), k)
    return described(columns)


ITEMS = table(
    "questionnaires", "items-12x4-5000", "design", 601, questionnaire, 5_000, (4,) * 12, loading=0.5, target=None
)


# Numbers beside categories and Booleans of which one level holds most rows, as in a census or a register.


def register(
    rng: Rng, n: int, numbers: int, levels: tuple[int, ...], flags: int, *, largest: float, dependence: float
) -> Made:
    """Normal and log-normal numbers in turn; every categorical and Boolean column depends on a hidden normal number.

    One level has the share ``largest``, the others have 1/i of what it leaves.
    """
    hidden, rest = rng.standard_normal(n), np.sqrt(1.0 - dependence**2)
    own, columns = correlated_normals(rng, n, numbers, 0.2), Columns()
    for j in range(numbers):
        score = dependence * hidden + rest * own[:, j]
        cells = np.clip(40.0 + 12.0 * score if j % 2 == 0 else 15.0 * np.exp(0.6 * score), 0.0, 100.0)
        columns[f"x{j}"] = cells, (0, 100)
    for j, k in enumerate(levels):
        score = dependence * hidden + rest * rng.standard_normal(n)
        others = 1.0 / np.arange(1.0, k)
        shares = np.concatenate([[largest], (1.0 - largest) * others / others.sum()])
        columns[f"c{j}"] = named("level", by_rank(score, shares), k)
    for j in range(flags):
        score = dependence * hidden + rest * rng.standard_normal(n)
        columns[f"flag{j}"] = score > np.quantile(score, largest), None
    return described(columns)


skewed_levels = partial(table, "skewed levels", target="x0")

SKEWED_LEVELS = (
    skewed_levels("register-2000", "design", 701, register, 2_000, 3, (5, 8), 2, largest=0.8, dependence=0.4),
    skewed_levels("register-20000", "design", 702, register, 20_000, 4, (6, 6, 12), 1, largest=0.7, dependence=0.3),
    skewed_levels("register-5000", "judge", 711, register, 5_000, 3, (4, 9, 6), 1, largest=0.75, dependence=0.5),
    skewed_levels("register-1000", "judge", 712, register, 1_000, 4, (5, 5), 2, largest=0.85, dependence=0.3),
    skewed_levels("register-30000", "judge", 713, register, 30_000, 5, (14, 7), 1, largest=0.65, dependence=0.4),
)


# A few rows, far from all others, that carry much of the covariance: no rule that keeps to where most rows are can be right.

N_ROWS = 20_000


def far_rows(rng: Rng, few: int, d: int, width: float, spread: float) -> Made:
    """Normal rows of that standard deviation, and a few near one corner of the bounds, ± width."""
    rows = with_target(rng, spread * correlated_normals(rng, N_ROWS, d))
    rows[:few, :d] = width * rng.uniform(0.7, 1.0, (few, d))
    return within(rows, -width, width)


def firms(rng: Rng, few: int, d: int) -> Made:
    """Lognormal sizes in units of a small firm, and a few that are thousands of times as large in every column."""
    sizes = np.exp(correlated_normals(rng, N_ROWS, d, 0.8))
    sizes[:few] = rng.uniform(2_000.0, 10_000.0, (few, d))
    return within(with_target(rng, sizes), 0.0, 10_000.0)


dominant_rows = partial(table, "dominant-rows", target="y")

DOMINANT_ROWS = (
    dominant_rows("far-rows-10", "design", 601, far_rows, 10, 6, 100.0, 1.0),
    dominant_rows("far-rows-40", "design", 602, far_rows, 40, 8, 100.0, 2.0),
    dominant_rows("firms-20", "design", 603, firms, 20, 5),
    dominant_rows("far-rows-20", "judge", 611, far_rows, 20, 7, 100.0, 1.5),
    dominant_rows("firms-10", "judge", 612, firms, 10, 6),
    dominant_rows("firms-40", "judge", 613, firms, 40, 8),
)

TABLES = (*BOUNDED, *SKEWED, *CLUSTERED, *LOW_RANK, *CATEGORIES, ITEMS, *SKEWED_LEVELS, *DOMINANT_ROWS)
