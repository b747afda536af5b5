"""The structured repair against the spectral one, on tables with categories.

``python -m benchmarks.practice.structure`` measures and writes the tables of ``docs/evidence/practice.md``; some five
minutes on one core. Real tables beside Adult, Wine and Airfoil come with scikit-learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from dpmoments import Boolean, Categorical, Numeric, Schema
from dpmoments.base.arrays import FloatArray

EPSILONS = (0.3, 1.0, 3.0, 10.0)
DELTAS = (0.0, 1e-9)
SEEDS = 20
SEEDS_OF_LARGE = 5
LARGE = 20_000
BOUNDS = dpm.mechanisms.Auto(rule="least-error")
"""At the public bounds, where the linear constraints hold."""
PAGE = EVIDENCE / "practice.md"

Table = tuple[Any, Schema]


def levels(count: int) -> list[str]:
    """Names of the levels of a made-up column."""
    return [f"l{level}" for level in range(count)]


def made_of_classes(
    seed: int,
    n: int,
    sizes: list[int],
    *,
    booleans: int = 0,
    numerics: int = 0,
    dependence: float = 0.5,
    rarity: float = 0.0,
    width: float = 0.5,
    missing: bool = False,
) -> Table:
    """Columns that depend on one of four hidden classes with probability ``dependence``, and otherwise on nothing.

    Level k of the independent part has a share ∝ k^(−rarity). Numeric columns have a standard deviation of a quarter of
    ``width`` of their bounds. ``missing`` empties a tenth of every other categorical column.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, 4, n)
    cells: dict[str, Any] = {}
    columns: list[Any] = []
    for index, size in enumerate(sizes):
        alone = 1.0 / np.arange(1, size + 1) ** rarity
        of_class = rng.dirichlet(np.full(size, 0.3), 4)
        shares = dependence * of_class + (1.0 - dependence) * alone / alone.sum()
        codes = (shares[hidden].cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, size - 1)
        values = np.array(levels(size), dtype=object)[codes]
        empty = missing and index % 2 == 1
        if empty:
            values[rng.random(n) < 0.1] = None
        cells[f"c{index}"] = values
        columns.append(Categorical(f"c{index}", levels(size), missing="zero" if empty else "error"))
    for index in range(booleans):
        shares = dependence * rng.random(4) + (1.0 - dependence) * 0.3
        cells[f"b{index}"] = rng.random(n) < shares[hidden]
        columns.append(Boolean(f"b{index}"))
    loads = rng.normal(size=(4, numerics))
    for index in range(numerics):
        values = dependence * loads[hidden, index] + np.sqrt(1.0 - dependence**2) * rng.normal(size=n)
        cells[f"x{index}"] = np.clip(0.5 * width * values, -1, 1) + 10
        columns.append(Numeric(f"x{index}", 9, 11))
    return pd.DataFrame(cells), Schema(*columns)


def of_factors(seed: int, n: int, d: int, rank: int) -> Table:
    """Numeric columns of low rank, and a category cut from them."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, rank))
    values = np.clip(0.25 * factors @ rng.normal(size=(rank, d)) + 0.02 * rng.normal(size=(n, d)), -1, 1)
    table = pd.DataFrame(values, columns=[f"x{index}" for index in range(d)])
    table["group"] = np.where(factors[:, 0] > 0.5, "a", np.where(factors[:, 1] > 0, "b", "c"))
    return table, Schema(*[Numeric(f"x{index}", -1, 1) for index in range(d)], Categorical("group", ["a", "b", "c"]))


def chain(seed: int, n: int, length: int, size: int, stay: float) -> Table:
    """Columns that are each the one before with probability ``stay``, else a level drawn at random; the first in numbers, too."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, size, n)]
    for _ in range(length - 1):
        codes.append(np.where(rng.random(n) < stay, codes[-1], rng.integers(0, size, n)))
    table = pd.DataFrame({f"c{index}": np.array(levels(size))[code] for index, code in enumerate(codes)})
    table["amount"] = codes[0] + rng.exponential(1.0, n)
    columns = [Categorical(f"c{index}", levels(size)) for index in range(length)]
    return table, Schema(*columns, Numeric("amount", 0, 50))


def survey(seed: int, n: int, questions: int, zeros: float) -> Table:
    """Answers on a scale of five that lean one way with the person, regions of Zipf shares, flags, amounts that are mostly 0."""
    rng = np.random.default_rng(seed)
    lean = rng.normal(size=n)
    shares = 1.0 / np.arange(1, 26)
    cells: dict[str, Any] = {"region": rng.choice(levels(25), n, p=shares / shares.sum())}
    columns: list[Any] = [Categorical("region", levels(25))]
    for index in range(questions):
        scores = np.clip(np.round(3 + 0.7 * lean + rng.normal(size=n)), 1, 5).astype(int)
        cells[f"q{index}"] = scores
        columns.append(Categorical(f"q{index}", [1, 2, 3, 4, 5]))
    for index in range(3):
        cells[f"flag{index}"] = rng.random(n) < 1 / (1 + np.exp(2 - lean * index))
        columns.append(Boolean(f"flag{index}"))
    for index in range(3):
        cells[f"amount{index}"] = np.where(rng.random(n) < zeros, 0.0, np.exp(rng.normal(3 + 0.3 * lean, 1.0, n)))
        columns.append(Numeric(f"amount{index}", 0, 1000))
    return pd.DataFrame(cells), Schema(*columns)


def cut_normals(seed: int, n: int, d: int, correlation: float) -> Table:
    """Normal columns, neighbors correlated, every second one cut into two to six levels at random places."""
    rng = np.random.default_rng(seed)
    values = np.empty((n, d))
    values[:, 0] = rng.normal(size=n)
    for index in range(1, d):
        values[:, index] = correlation * values[:, index - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=n)
    cells: dict[str, Any] = {}
    columns: list[Any] = []
    for index in range(d):
        name = f"v{index}"
        if index % 2 == 0:
            cuts = np.sort(rng.normal(size=2 + index % 5 - 1))
            cells[name] = np.array(levels(len(cuts) + 1))[np.searchsorted(cuts, values[:, index])]
            columns.append(Categorical(name, levels(len(cuts) + 1)))
        else:
            cells[name] = values[:, index]
            columns.append(Numeric(name, -5, 5))
    return pd.DataFrame(cells), Schema(*columns)


def nested(seed: int, n: int, regions: int, cities: int) -> Table:
    """Every city in one region, a trade that depends on the region, wages that depend on both, a flag."""
    rng = np.random.default_rng(seed)
    city = rng.choice(regions * cities, n, p=rng.dirichlet(np.full(regions * cities, 0.7)))
    region = city // cities
    trades = rng.dirichlet(np.ones(7), regions)
    trade = (trades[region].cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, 6)
    wage = np.exp(rng.normal(3, 0.4, n) + 0.1 * trade + 0.1 * region)
    table = pd.DataFrame(
        {
            "city": np.array(levels(regions * cities))[city],
            "region": np.array(levels(regions))[region],
            "trade": np.array(levels(7))[trade],
            "wage": wage,
            "union": rng.random(n) < 0.1 + 0.1 * (trade % 3),
        }
    )
    schema = Schema(
        Categorical("city", levels(regions * cities)),
        Categorical("region", levels(regions)),
        Categorical("trade", levels(7)),
        Numeric("wage", 0, 500),
        Boolean("union"),
    )
    return table, schema


def passengers(seed: int, n: int) -> Table:
    """Class, sex, port (sometimes empty), age, skewed fare, relatives, and whether they arrived, which depends on the others."""
    rng = np.random.default_rng(seed)
    grade = rng.choice(3, n, p=[0.25, 0.2, 0.55])
    woman = rng.random(n) < 0.35
    port = np.array(["c", "q", "s", None], dtype=object)[rng.choice(4, n, p=[0.18, 0.09, 0.72, 0.01])]
    fare = np.exp(rng.normal(4.2 - 0.9 * grade, 0.7, n))
    arrived = rng.random(n) < 1 / (1 + np.exp(1.2 + 0.8 * (grade - 1) - 2.5 * woman))
    table = pd.DataFrame(
        {
            "class": np.array(levels(3))[grade],
            "sex": np.where(woman, "f", "m"),
            "port": port,
            "age": np.clip(rng.normal(30 + 4 * (2 - grade), 13, n), 0, 90),
            "fare": fare,
            "relatives": rng.poisson(0.9, n),
            "arrived": arrived,
        }
    )
    schema = Schema(
        Categorical("class", levels(3)),
        Categorical("sex", ["f", "m"]),
        Categorical("port", ["c", "q", "s"], missing="zero"),
        Numeric("age", 0, 100),
        Numeric("fare", 0, 1000),
        Numeric("relatives", 0, 10),
        Boolean("arrived"),
    )
    return table, schema


def with_datasets(name: str, **options: Any) -> Table:
    """A table of :mod:`dpmoments.datasets`."""
    found = getattr(dpm.datasets, name)(**options)
    return found.frame, found.schema


def airfoil_of_levels() -> Table:
    """Airfoil with the three columns that the experimenters set as categories."""
    table, schema = with_datasets("airfoil")
    table = table.to_pandas()
    columns: list[Any] = []
    for column in schema.columns:
        if column.name in ("frequency", "chord_length", "free_stream_velocity"):
            table[column.name] = table[column.name].map(lambda value: f"{value:g}")
            columns.append(Categorical(column.name, sorted(table[column.name].unique())))
        else:
            columns.append(column)
    return table, Schema(*columns)


def bounded(found: Any, target: Any, *, flags: tuple[str, ...] = ()) -> Table:
    """A table of scikit-learn; bounds are the power of ten, or twice or five times one, next above every column's values."""
    table = found.frame.copy()
    columns: list[Any] = []
    for name in table.columns:
        if name == "target" and target is not None:
            table[name] = table[name].astype(int)
            columns.append(target)
        elif name in flags:
            table[name] = table[name] > table[name].mean()
            columns.append(Boolean(name))
        else:
            reach = float(np.abs(table[name]).max())
            power = 10.0 ** np.floor(np.log10(reach))
            bound = next(power * step for step in (1, 2, 5, 10) if power * step >= reach)
            columns.append(Numeric(name, -bound if table[name].min() < 0 else 0, bound))
    return table, Schema(*columns)


def digits_of_sixteen() -> Table:
    """The handwritten digits, every fourth pixel, and which digit it is."""
    found = load_digits(as_frame=True).frame
    pixels = [name for name in found.columns if name != "target"][::4]
    table = found[[*pixels, "target"]].assign(target=found["target"].astype(int))
    return table, Schema(*[Numeric(name, 0, 16) for name in pixels], Categorical("target", list(range(10))))


SEEN: Mapping[str, Callable[[], Table]] = {
    "Adult": lambda: with_datasets("adult"),
    "Wine, cultivar": lambda: with_datasets("wine", cultivar=True),
    "Airfoil, settings as levels": airfoil_of_levels,
    "iris": lambda: bounded(load_iris(as_frame=True), Categorical("target", [0, 1, 2])),
    "breast cancer, Boolean": lambda: bounded(load_breast_cancer(as_frame=True), Boolean("target")),
    "loose bounds": lambda: made_of_classes(1, 5000, [4, 5, 6, 8], numerics=5, dependence=0.6, width=0.1),
    "rare levels": lambda: made_of_classes(2, 10_000, [20] * 5, booleans=2, dependence=0.4, rarity=1.5),
    "independent": lambda: made_of_classes(3, 3000, [6] * 5, booleans=3, numerics=2, dependence=0.0),
    "strongly dependent": lambda: made_of_classes(4, 3000, [4, 5, 6, 7], booleans=2, numerics=3, dependence=0.98),
    "Booleans": lambda: made_of_classes(5, 2000, [], booleans=20, dependence=0.7),
    "few levels each": lambda: made_of_classes(6, 1000, [2, 3, 4] * 3, dependence=0.6),
    "low rank": lambda: of_factors(7, 1000, 10, 2),
    "empty cells": lambda: made_of_classes(8, 8000, [4, 6, 10, 12], booleans=3, numerics=4, rarity=1.0, missing=True),
    "mostly numeric": lambda: made_of_classes(10, 2000, [3], booleans=1, numerics=12, width=0.6),
}
"""Tables that were looked at while the repair was made and its constants were set."""
UNSEEN: Mapping[str, Callable[[], Table]] = {
    "digits": digits_of_sixteen,
    "diabetes, sex": lambda: bounded(load_diabetes(as_frame=True, scaled=False), None, flags=("sex",)),
    "chain, strong": lambda: chain(21, 5000, 8, 6, 0.9),
    "chain, weak": lambda: chain(22, 5000, 8, 6, 0.3),
    "chain, few rows": lambda: chain(23, 400, 5, 4, 0.6),
    "survey": lambda: survey(24, 4000, 10, 0.8),
    "survey, few rows": lambda: survey(25, 500, 6, 0.5),
    "survey, many rows": lambda: survey(26, 100_000, 20, 0.9),
    "classes, rare levels": lambda: made_of_classes(27, 20_000, [30, 12, 5, 2], booleans=6, numerics=6, rarity=1.2),
    "classes, empty cells": lambda: made_of_classes(28, 2000, [5, 5, 5, 5], numerics=3, dependence=0.3, missing=True),
    "low rank, many columns": lambda: of_factors(29, 3000, 25, 3),
}
"""Tables that were run when the constants were first frozen. Two changes followed: shares of levels pulled to their average, and
the weight of the spectral repair in cells of two levels."""
FRESH: Mapping[str, Callable[[], Table]] = {
    "cut normals, 1,500 rows": lambda: cut_normals(41, 1500, 12, 0.6),
    "cut normals, 20,000 rows": lambda: cut_normals(42, 20_000, 20, 0.8),
    "cities in regions": lambda: nested(43, 10_000, 5, 6),
    "cities in regions, few rows": lambda: nested(44, 800, 4, 3),
    "lots": lambda: chain(45, 50_000, 3, 40, 0.0),
    "passengers": lambda: passengers(46, 900),
    "passengers, more rows": lambda: passengers(47, 12_000),
}
"""Tables that were run when they were frozen again. One change followed: where noise is above all rows, single features come
from the spectral repair of all features."""
LAST: Mapping[str, Callable[[], Table]] = {
    "classes, few rows": lambda: made_of_classes(
        61, 700, [5, 3, 8, 2], booleans=2, numerics=3, dependence=0.6, rarity=0.8
    ),
    "classes, many columns": lambda: made_of_classes(62, 6000, [4] * 15, booleans=10, numerics=10, dependence=0.4),
    "survey, very few rows": lambda: survey(63, 300, 5, 0.7),
    "passengers, few rows": lambda: passengers(64, 300),
    "cut normals, few rows": lambda: cut_normals(65, 400, 9, 0.4),
    "cities in regions, 3,000 rows": lambda: nested(66, 3000, 6, 5),
    "chain, moderate": lambda: chain(67, 1200, 6, 3, 0.7),
}
"""Tables run first after that, with other seeds and sizes; nothing was tuned afterwards."""


def errors(table: Table, epsilon: float, delta: float, exact: FloatArray) -> tuple[float, float]:
    """Mean relative errors of the covariance in encoded units, spectral and structured, over releases of seeds 0, 1, …"""
    frame, schema = table
    seeds = SEEDS_OF_LARGE if len(frame) > LARGE else SEEDS
    found: dict[str, list[float]] = {"spectral": [], "structured": []}
    for seed in range(seeds):
        released = dpm.release(frame, schema, epsilon=epsilon, delta=delta, mechanism=BOUNDS, insecure_seed=seed)
        for repair, seen in found.items():
            off = released.with_repair(repair).unit_ball_covariance - exact
            seen.append(float(np.linalg.norm(off) / np.linalg.norm(exact)))
    return float(np.mean(found["spectral"])), float(np.mean(found["structured"]))


def without_noise(table: Table) -> dpm.MomentRelease:
    """A release at an ε beyond all use, not repaired: the table's own moments."""
    return dpm.release(*table, epsilon=1e13, neighbors="replace_one", repair="none", insecure_seed=0)


GROUPS = {"frozen constants": LAST, "third run": FRESH, "second run": UNSEEN, "looked at": SEEN}
"""By when they were first run, the last first."""
HEAD = [
    f"| tables | δ | table | n | d | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} | gain |",
    f"| --- | --- | --- | ---: | ---: |{' ---: |' * (len(EPSILONS) + 1)}",
]


def gains(group: str, tables: Mapping[str, Callable[[], Table]], delta: float) -> tuple[list[str], str]:
    """One row a table: both errors and their ratio at each ε; and the geometric mean and the least of all ratios."""
    ratios, lines = [], []
    for name, make in tables.items():
        table = make()
        exact = without_noise(table).unit_ball_covariance
        cells = [errors(table, epsilon, delta, exact) for epsilon in EPSILONS]
        ratio = [spectral / structured for spectral, structured in cells]
        ratios += ratio
        shown = " | ".join(
            f"{spectral:.3g} → {structured:.3g} (×{gain:.2f})"
            for (spectral, structured), gain in zip(cells, ratio, strict=True)
        )
        mean = float(np.exp(np.mean(np.log(ratio))))
        lines.append(
            f"| {group} | {delta:g} | {name} | {len(table[0]):,} | {table[1].n_features} | {shown} | ×{mean:.2f} |"
        )
    return lines, f"×{np.exp(np.mean(np.log(ratios))):.2f}, least ×{min(ratios):.2f} (δ = {delta:g})"


def cross_table(rows: str = "education", columns: str = "occupation") -> Iterator[str]:
    """Root mean square error of the counts of a cross table of Adult, read off the released Gram matrix."""
    table = SEEN["Adult"]()
    yield "| δ | repair | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |"
    yield "| --- | --- |" + " ---: |" * len(EPSILONS)
    exact = without_noise(table)
    cells = np.ix_(*([name.startswith(f"{of}=") for name in exact.feature_names] for of in (rows, columns)))
    scale = exact.encoding.row_norm**2
    for delta in DELTAS:
        for repair in ("none", "spectral", "structured"):
            shown = []
            for epsilon in EPSILONS:
                squares = []
                for seed in range(SEEDS_OF_LARGE):
                    released = dpm.release(
                        *table, epsilon=epsilon, delta=delta, mechanism=BOUNDS, repair=repair, insecure_seed=seed
                    )
                    squares.append(np.mean((scale * (released.unit_ball_gram - exact.unit_ball_gram)[cells]) ** 2))
                shown.append(f"{np.sqrt(np.mean(squares)):.3g}")
            yield f"| {delta:g} | `{repair}` | {' | '.join(shown)} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    table_lines, in_short = HEAD, list[str]()
    for part, tables in GROUPS.items():
        found = [gains(part, tables, delta) for delta in DELTAS]
        table_lines = [*table_lines, *(line for lines, _ in found for line in lines)]
        in_short.append(f"- **{part}**: {'; '.join(words for _, words in found)}.")
        print(in_short[-1], flush=True)
    write_part(PAGE, "structured", [*in_short, "", *table_lines])
    write_part(PAGE, "cross-table", cross_table())
