"""Categories and Booleans: independent, dependent and rare levels, beside numbers and alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import FloatArray, correlated_normals

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


def entry(name: str, half: Half, make: Callable[[], Made], target: str | None = "flag") -> Entry:
    return Entry(name, half, "categories", False, make, target)


TABLES = (
    entry("mixed-independent-5000", "design", mixed(5_000, 4, (4, 6), 501)),
    entry("mixed-dependent-1000", "design", mixed(1_000, 3, (3, 5), 502, dependence=0.6)),
    entry("mixed-rare-50000", "design", mixed(50_000, 3, (8, 10), 503, dependence=0.4, rare=True)),
    entry("flags-2000", "design", booleans(2_000, 10, 504, dependence=0.3), "flag0"),
    entry("levels-500", "design", all_categorical(500, (3, 4, 5), 505, dependence=0.5, rare=False), None),
    entry("levels-30000", "design", all_categorical(30_000, (5, 8, 12), 506, dependence=0.3, rare=True), None),
    entry("mixed-independent-100000", "judge", mixed(100_000, 3, (4, 5), 511)),
    entry("mixed-dependent-10000", "judge", mixed(10_000, 4, (5, 7), 512, dependence=0.5)),
    entry("mixed-rare-3000", "judge", mixed(3_000, 5, (7, 9), 513, dependence=0.3, rare=True)),
    entry("flags-300", "judge", booleans(300, 6, 514, dependence=0.2), "flag0"),
    entry("flags-50000", "judge", booleans(50_000, 14, 515, dependence=0.4), "flag0"),
    entry("levels-5000", "judge", all_categorical(5_000, (4, 6, 9), 516, dependence=0.4, rare=False), None),
    entry("levels-50000", "judge", all_categorical(50_000, (4, 6, 15), 517, dependence=0.2, rare=True), None),
)
