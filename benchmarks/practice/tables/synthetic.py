"""Tables drawn from known laws: a family for each of the ways in which columns are difficult."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Half, Made

# Rows of known laws, from which the synthetic families are put together.

FloatArray = npt.NDArray[np.float64]


def correlated_normals(rng: np.random.Generator, n: int, d: int, correlation: float = 0.5) -> FloatArray:
    """Standard normal columns, every pair with that correlation, shape (n, d)."""
    shared = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, d))
    return np.asarray(np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own, dtype=np.float64)


def with_target(rng: np.random.Generator, columns: FloatArray, noise: float = 0.5) -> FloatArray:
    """The columns, and one more: half the sum of the first three, in their standard deviations, and normal noise."""
    first = columns[:, :3]
    spread = np.maximum(first.std(axis=0), 1e-12)
    target = 0.5 * ((first - first.mean(axis=0)) / spread).sum(axis=1) + noise * rng.standard_normal(len(columns))
    return np.column_stack([columns, target])


def within(columns: FloatArray, lower: float, upper: float) -> Made:
    """Columns x0, x1, … with the same public bounds; ``y`` for the last, between −10 and 10."""
    d = columns.shape[1]
    names = [*(f"x{j}" for j in range(d - 1)), "y"]
    schema = dpm.Schema(*(dpm.Numeric(name, lower, upper) for name in names[:-1]), dpm.Numeric("y", -10, 10))
    return pd.DataFrame(columns, columns=names), schema


def synthetic(
    family: str, name: str, half: Half, make: Callable[[], Made], *, target: str | None = "y", dominant: bool = False
) -> Entry:
    return Entry(name, half, family, False, make, target, dominant)


# Loose and tight bounds: normal columns inside bounds ten times too wide, and columns that fill theirs.


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


entry_bounded = partial(synthetic, "bounded")

BOUNDED = (
    entry_bounded("loose-300", "design", loose(300, 7, 30.0, 101)),
    entry_bounded("loose-10000", "design", loose(10_000, 11, 50.0, 102)),
    entry_bounded("tight-1000", "design", tight(1_000, 7, 103)),
    entry_bounded("tight-100000", "design", tight(100_000, 5, 104)),
    entry_bounded("loose-30", "judge", loose(30, 5, 20.0, 111)),
    entry_bounded("loose-3000", "judge", loose(3_000, 9, 40.0, 112)),
    entry_bounded("loose-300000", "judge", loose(300_000, 4, 100.0, 113)),
    entry_bounded("tight-3000", "judge", tight(3_000, 11, 114)),
    entry_bounded("tight-20000", "judge", tight(20_000, 5, 115)),
)


# Lognormal columns, columns of mostly zeros, and heavy tails: few large cells, and bounds that hold them.


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


entry_skewed = partial(synthetic, "skewed")

SKEWED = (
    entry_skewed("lognormal-1000", "design", lognormal(1_000, 7, 1.0, 100.0, 201)),
    entry_skewed("lognormal-30000", "design", lognormal(30_000, 5, 0.7, 50.0, 202)),
    entry_skewed("zeros-20000", "design", zero_inflated(20_000, 8, 0.1, 1_000.0, 203)),
    entry_skewed("student-500", "design", heavy_tails(500, 6, 50.0, 204)),
    entry_skewed("student-50000", "design", heavy_tails(50_000, 6, 100.0, 205)),
    entry_skewed("lognormal-300", "judge", lognormal(300, 5, 0.8, 50.0, 211)),
    entry_skewed("lognormal-5000", "judge", lognormal(5_000, 9, 1.0, 200.0, 212)),
    entry_skewed("zeros-2000", "judge", zero_inflated(2_000, 6, 0.15, 500.0, 213)),
    entry_skewed("zeros-100000", "judge", zero_inflated(100_000, 5, 0.05, 1_000.0, 214)),
    entry_skewed("student-10000", "judge", heavy_tails(10_000, 8, 50.0, 215)),
)


# Rows about a few centers, far apart for their spread.


def clusters(n: int, d: int, shares: tuple[float, ...], width: float, seed: int) -> Callable[[], Made]:
    """Normal rows of standard deviation 1 about centers whose cells are uniform within ± width/2."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        centers = rng.uniform(-width / 2.0, width / 2.0, (len(shares), d))
        rows = centers[rng.choice(len(shares), n, p=shares)] + rng.standard_normal((n, d))
        return within(with_target(rng, rows), -width, width)

    return make


entry_clustered = partial(synthetic, "clustered")

CLUSTERED = (
    entry_clustered("clusters-500", "design", clusters(500, 9, (0.4, 0.35, 0.25), 20.0, 301)),
    entry_clustered("clusters-30000", "design", clusters(30_000, 6, (0.6, 0.4), 30.0, 302)),
    entry_clustered("clusters-2000", "judge", clusters(2_000, 7, (0.5, 0.5), 25.0, 311)),
    entry_clustered("clusters-20000", "judge", clusters(20_000, 11, (0.55, 0.25, 0.1, 0.1), 20.0, 312)),
)


# Many columns that a few hidden ones explain.


def factors(n: int, d: int, rank: int, width: float, seed: int) -> Callable[[], Made]:
    """Normal factors, normal loadings divided by √rank, and a tenth of noise."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        loadings = rng.standard_normal((rank, d)) / np.sqrt(rank)
        rows = rng.standard_normal((n, rank)) @ loadings + 0.1 * rng.standard_normal((n, d))
        return within(with_target(rng, rows), -width, width)

    return make


entry_low_rank = partial(synthetic, "low-rank")

LOW_RANK = (
    entry_low_rank("factors-1000", "design", factors(1_000, 19, 3, 10.0, 401)),
    entry_low_rank("factors-50000", "design", factors(50_000, 29, 2, 5.0, 402)),
    entry_low_rank("factors-3000", "judge", factors(3_000, 24, 2, 8.0, 411)),
    entry_low_rank("factors-20000", "judge", factors(20_000, 39, 4, 10.0, 412)),
)


# Categories and Booleans: independent, dependent and rare levels, beside numbers and alone.

IntArray = npt.NDArray[np.int64]


def level_shares(k: int, rare: bool) -> FloatArray:
    """Falling shares of k levels: as 1/i, or halving from level to level."""
    weights = 0.5 ** np.arange(k) if rare else 1.0 / np.arange(1.0, k + 1.0)
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def drawn_levels(rng: np.random.Generator, hidden: FloatArray, k: int, rare: bool, dependence: float) -> IntArray:
    """Codes 0 to k − 1 of those shares; normal scores whose correlation with the hidden number is `dependence`."""
    own = rng.standard_normal(len(hidden))
    score = dependence * hidden + np.sqrt(1.0 - dependence**2) * own
    ends = np.cumsum(level_shares(k, rare))[:-1]
    places = np.argsort(np.argsort(score)) / len(score)
    return np.asarray(np.searchsorted(ends, places, side="right"), dtype=np.int64)


def mixed(
    n: int, numbers: int, levels: tuple[int, ...], seed: int, *, dependence: float = 0.0, rare: bool = False
) -> Callable[[], Made]:
    """Numbers of standard deviation 10 about 40, categories, and a Boolean."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        hidden = rng.standard_normal(n)
        cells: dict[str, object] = {}
        columns: list[dpm.Numeric | dpm.Boolean | dpm.Categorical] = []
        own = correlated_normals(rng, n, numbers, 0.3)
        for j in range(numbers):
            cells[f"x{j}"] = 40.0 + 10.0 * (dependence * hidden + np.sqrt(1.0 - dependence**2) * own[:, j])
            columns.append(dpm.Numeric(f"x{j}", 0, 100))
        for j, k in enumerate(levels):
            codes = drawn_levels(rng, hidden, k, rare, dependence)
            known = tuple(f"level{i}" for i in range(k))
            cells[f"c{j}"] = np.array(known)[codes]
            columns.append(dpm.Categorical(f"c{j}", known))
        cells["flag"] = dependence * hidden + rng.standard_normal(n) > 0.5
        columns.append(dpm.Boolean("flag"))
        return pd.DataFrame(cells), dpm.Schema(*columns)

    return make


def booleans(n: int, d: int, seed: int, *, dependence: float) -> Callable[[], Made]:
    """Flags of a twentieth to a half of the rows."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        scores = correlated_normals(rng, n, d, dependence)
        cut = np.linspace(0.0, 1.6, d)
        frame = pd.DataFrame(scores > cut, columns=[f"flag{j}" for j in range(d)])
        return frame, dpm.Schema(*(dpm.Boolean(name) for name in frame.columns))

    return make


def all_categorical(n: int, levels: tuple[int, ...], seed: int, *, dependence: float, rare: bool) -> Callable[[], Made]:
    def make() -> Made:
        rng = np.random.default_rng(seed)
        hidden = rng.standard_normal(n)
        cells, columns = {}, []
        for j, k in enumerate(levels):
            known = tuple(f"level{i}" for i in range(k))
            cells[f"c{j}"] = np.array(known)[drawn_levels(rng, hidden, k, rare, dependence)]
            columns.append(dpm.Categorical(f"c{j}", known))
        return pd.DataFrame(cells), dpm.Schema(*columns)

    return make


entry_categories = partial(synthetic, "categories", target="flag")

CATEGORIES = (
    entry_categories("mixed-independent-5000", "design", mixed(5_000, 4, (4, 6), 501)),
    entry_categories("mixed-dependent-1000", "design", mixed(1_000, 3, (3, 5), 502, dependence=0.6)),
    entry_categories("mixed-rare-50000", "design", mixed(50_000, 3, (8, 10), 503, dependence=0.4, rare=True)),
    entry_categories("flags-2000", "design", booleans(2_000, 10, 504, dependence=0.3), target="flag0"),
    entry_categories(
        "levels-500", "design", all_categorical(500, (3, 4, 5), 505, dependence=0.5, rare=False), target=None
    ),
    entry_categories(
        "levels-30000", "design", all_categorical(30_000, (5, 8, 12), 506, dependence=0.3, rare=True), target=None
    ),
    entry_categories("mixed-independent-100000", "judge", mixed(100_000, 3, (4, 5), 511)),
    entry_categories("mixed-dependent-10000", "judge", mixed(10_000, 4, (5, 7), 512, dependence=0.5)),
    entry_categories("mixed-rare-3000", "judge", mixed(3_000, 5, (7, 9), 513, dependence=0.3, rare=True)),
    entry_categories("flags-300", "judge", booleans(300, 6, 514, dependence=0.2), target="flag0"),
    entry_categories("flags-50000", "judge", booleans(50_000, 14, 515, dependence=0.4), target="flag0"),
    entry_categories(
        "levels-5000", "judge", all_categorical(5_000, (4, 6, 9), 516, dependence=0.4, rare=False), target=None
    ),
    entry_categories(
        "levels-50000", "judge", all_categorical(50_000, (4, 6, 15), 517, dependence=0.2, rare=True), target=None
    ),
)


# Surveys of categories only: items of a few levels that share hidden attitudes, and columns on the person.


def item_shares(rng: np.random.Generator, k: int, concentration: float) -> FloatArray:
    """Shares of k levels: the larger the concentration, the more alike."""
    return np.asarray(rng.dirichlet(np.full(k, concentration)), dtype=np.float64)


def questionnaire(
    n: int,
    levels: tuple[int, ...],
    seed: int,
    *,
    loading: float,
    concentration: float = 8.0,
    persons: tuple[int, ...] = (),
) -> Callable[[], Made]:
    """Items that grow with one of two hidden attitudes; ``persons`` are columns with few people in most levels."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        attitudes = rng.standard_normal((n, 2))
        cells, columns = {}, []
        for j, k in enumerate((*levels, *persons)):
            is_item = j < len(levels)
            weight = loading if is_item else loading / 2.0
            score = weight * attitudes[:, j % 2] + np.sqrt(1.0 - weight**2) * rng.standard_normal(n)
            ends = np.cumsum(item_shares(rng, k, concentration if is_item else 0.7))[:-1]
            places = (np.argsort(np.argsort(score)) + 0.5) / n
            known = tuple(f"answer{i}" for i in range(k))
            cells[f"q{j}"] = np.array(known)[np.searchsorted(ends, places)]
            columns.append(dpm.Categorical(f"q{j}", known))
        return pd.DataFrame(cells), dpm.Schema(*columns)

    return make


entry_questionnaires = partial(synthetic, "questionnaires", target=None)

QUESTIONNAIRES = (
    entry_questionnaires("items-12x4-5000", "design", questionnaire(5_000, (4,) * 12, 601, loading=0.5)),
    entry_questionnaires(
        "items-8x5-3000", "design", questionnaire(3_000, (5,) * 8, 602, loading=0.7, concentration=3.0)
    ),
    entry_questionnaires(
        "items-and-persons-1500", "design", questionnaire(1_500, (3,) * 6, 603, loading=0.4, persons=(7, 5))
    ),
    entry_questionnaires("items-10x5-4000", "judge", questionnaire(4_000, (5,) * 10, 611, loading=0.6)),
    entry_questionnaires(
        "items-14x3-1000", "judge", questionnaire(1_000, (3,) * 14, 612, loading=0.4, concentration=4.0)
    ),
    entry_questionnaires("items-6x6-20000", "judge", questionnaire(20_000, (6,) * 6, 613, loading=0.3)),
    entry_questionnaires(
        "items-and-persons-6000", "judge", questionnaire(6_000, (4, 4, 5, 5, 7), 614, loading=0.5, persons=(9, 4, 6))
    ),
)


# Numbers beside categories and Booleans of which one level holds most rows, as in a census or a register.


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


entry_skewed_levels = partial(synthetic, "skewed levels", target="x0")

SKEWED_LEVELS = (
    entry_skewed_levels("register-2000", "design", register(2_000, 3, (5, 8), 2, 701, largest=0.8, dependence=0.4)),
    entry_skewed_levels(
        "register-20000", "design", register(20_000, 4, (6, 6, 12), 1, 702, largest=0.7, dependence=0.3)
    ),
    entry_skewed_levels("register-5000", "judge", register(5_000, 3, (4, 9, 6), 1, 711, largest=0.75, dependence=0.5)),
    entry_skewed_levels("register-1000", "judge", register(1_000, 4, (5, 5), 2, 712, largest=0.85, dependence=0.3)),
    entry_skewed_levels("register-30000", "judge", register(30_000, 5, (14, 7), 1, 713, largest=0.65, dependence=0.4)),
)


# A few rows far from all others that carry much of the covariance: wealth, firms.

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


entry_dominant_rows = partial(synthetic, "dominant-rows", dominant=True)

DOMINANT_ROWS = (
    entry_dominant_rows("far-rows-10", "design", far_rows(10, 6, 100.0, 1.0, 601)),
    entry_dominant_rows("far-rows-40", "design", far_rows(40, 8, 100.0, 2.0, 602)),
    entry_dominant_rows("firms-20", "design", firms(20, 5, 603)),
    entry_dominant_rows("far-rows-20", "judge", far_rows(20, 7, 100.0, 1.5, 611)),
    entry_dominant_rows("firms-10", "judge", firms(10, 6, 612)),
    entry_dominant_rows("firms-40", "judge", firms(40, 8, 613)),
)

TABLES = (
    *BOUNDED,
    *SKEWED,
    *CLUSTERED,
    *LOW_RANK,
    *CATEGORIES,
    *QUESTIONNAIRES,
    *SKEWED_LEVELS,
    *DOMINANT_ROWS,
)
