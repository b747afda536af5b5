"""How often 95 % intervals of means, differences, correlations, coefficients and predictions hold the truth.

Rows are drawn with replacement, so that the table is the population, and released by default. Answers of a release without
noise of the table are the truth. Only answers that are estimable count: those with a number.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables import Made, chosen
from benchmarks.practice.tables.synthetic import Columns, described
from dpmoments.analysis import confidence, group_means

PAGE = EVIDENCE / "regression-coverage.md"
BUDGETS = tuple((epsilon, delta) for delta in (0.0, 1e-6) for epsilon in (0.5, 1.0, 3.0))
"""Under ε alone the default mechanism; under (ε, δ) Gaussian noise, for the default is often the same there."""
LARGEST = 30_000
"""Rows of a table; of a larger one every second is left out until it has no more."""
KINDS = ("means", "differences", "correlations", "coefficients", "predictions", "robust", "related")
"""``robust`` and ``related`` are coefficients and correlations of releases with products."""
RELEASES = 200
Cell = tuple[str, float, float]
"""Table, ε and δ."""


@dataclass(frozen=True)
class Questions:
    """What is asked of a table: differences of ``of`` between the levels of ``groups``, if it has them, and two regressions.

    Products are released for that of ``target`` on ``robust``.
    """

    groups: str
    of: str
    target: str
    features: tuple[str, ...]
    robust: tuple[str, ...]


def tailed() -> Made:
    """Make 6,000 rows with two columns of heavy tails, and residuals with one."""
    rng = np.random.default_rng(29_001)
    n = 6_000
    area = rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2])
    wealth = np.minimum(rng.pareto(1.5, n) * 5e3, 1e6)
    years = rng.integers(0, 40, n)
    spent = np.minimum(np.exp(rng.normal(3.0, 1.0, n) + 0.02 * years), 5_000.0)
    score = np.clip(50.0 + 0.4 * years + 4.0 * (area == "south") + 6.0 * rng.standard_t(4, n), 0.0, 150.0)
    return described({
        "area": (area, ("north", "south", "east")), "wealth": (wealth, (0, 1e6)), "years": (years, (0, 40)),
        "spent": (spent, (0, 5_000)), "score": (score, (0, 150)),
    })  # fmt: skip


def answered() -> Made:
    """Make 8,000 rows of a survey: four categoricals, one of them with rare levels, two Booleans, and a number."""
    rng = np.random.default_rng(29_002)
    n, levels = 8_000, [["a", "b", "c"], [f"d{index}" for index in range(8)], ["none", "some", "much"], ["x", "y"]]
    codes = [
        rng.choice(len(names), n, p=np.arange(len(names), 0, -1) / np.arange(1, len(names) + 1).sum())
        for names in levels
    ]
    codes[2] = np.where(rng.random(n) < 0.4, np.minimum(codes[0], 2), codes[2])
    member = rng.random(n) < 0.2 + 0.15 * codes[0]
    owner = rng.random(n) < 0.03
    hours = np.clip(20.0 + 5.0 * codes[2] + 3.0 * member + rng.normal(0.0, 9.0, n), 0.0, 80.0)
    names = ("region", "trade", "training", "form")
    columns: Columns = {
        name: (np.array(words)[code], tuple(words)) for name, words, code in zip(names, levels, codes, strict=True)
    }
    return described(columns | {"member": (member, None), "owner": (owner, None), "hours": (hours, (0, 80))})


def uneven() -> Made:
    """Make 6,000 rows whose residuals' deviation grows tenfold with a regressor."""
    rng = np.random.default_rng(29_003)
    n = 6_000
    load, age, night = rng.uniform(0.0, 10.0, n), rng.normal(0.0, 1.0, n), rng.random(n) < 0.3
    time = np.clip(2.0 * load - 1.5 * age + night + rng.normal(0.0, 1.0, n) * (0.5 + 0.5 * load), -20.0, 45.0)
    shift = np.where(night, "night", np.where(rng.random(n) < 0.5, "early", "late"))
    return described({
        "load": (load, (0, 10)), "age": (np.clip(age, -4.0, 4.0), (-4, 4)), "night": (night, None), "time": (time, (-20, 45)),
        "shift": (shift, ("night", "early", "late")),
    })  # fmt: skip


def spread() -> Made:
    """Make 6,000 rows in which large values of one column go with large ones of another, of either sign."""
    rng = np.random.default_rng(29_004)
    n = 6_000
    size = np.minimum(np.exp(rng.normal(0.0, 0.5, n)), 5.0)
    change = np.clip(size * rng.normal(0.05, 0.6, n), -8.0, 8.0)
    side = np.where(rng.random(n) < 0.5, "left", "right")
    costs = np.clip(change + rng.normal(0.0, 1.0, n), -10.0, 10.0)
    return described({
        "size": (size, (0, 5)), "change": (change, (-8, 8)), "costs": (costs, (-10, 10)), "side": (side, ("left", "right")),
    })  # fmt: skip


def adult() -> Made:
    frame, schema = chosen(names=["adult"])[0].make()
    names = ("age", "education-num", "hours-per-week", "race", "sex", "capital-loss", "income")
    columns = [column for column in schema.table_columns if column.name in names]
    return frame.select(list(names)), dpm.Schema(*columns)


MADE = {"tailed": tailed, "answered": answered, "uneven": uneven, "spread": spread}
"""Tables that were written for this measurement, after every constant of the library."""
FRESH = {**MADE, "adult": adult}
TABLES = {
    "tailed": Questions("area", "score", "score", ("years", "area"), ("years",)),
    "answered": Questions("training", "hours", "hours", ("member", "training", "region"), ("member", "owner")),
    "uneven": Questions("shift", "time", "time", ("load", "age"), ("load", "age")),
    "spread": Questions("side", "costs", "costs", ("size", "change"), ("size", "change")),
    "adult": Questions("sex", "age", "hours-per-week", ("age", "sex", "education-num"), ("age", "education-num")),
    "airfoil": Questions(
        *("", "", "sound_pressure_level", ("frequency", "angle_of_attack", "free_stream_velocity")),
        ("frequency", "free_stream_velocity"),
    ),
    "fair": Questions(
        "occupation", "age", "affairs", ("rate_marriage", "age", "religious", "educ"), ("rate_marriage", "age")
    ),
    "modechoice": Questions("choice", "ttme", "gc", ("ttme", "invc", "hinc"), ("ttme", "invc")),
    "flower-pixels": Questions("", "", "blue", ("down", "right", "red", "green"), ("red", "green")),
}


@cache
def table(name: str) -> tuple[pa.Table, dpm.Schema, dpm.Schema]:
    """Return rows without missing values, the schema, and the one of the second regression with its products."""
    frame, schema = FRESH[name]() if name in FRESH else chosen(names=[name])[0].make()
    rows = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame.dropna(), preserve_index=False)
    while len(rows) > LARGEST:
        rows = rows.take(pa.array(np.arange(0, len(rows), 2)))
    asked = TABLES[name]
    used = [column for column in schema.table_columns if column.name in (asked.target, *asked.robust)]
    return rows, schema, dpm.Schema(*used).with_products([column.name for column in used])


def answers(release: Any, name: str) -> dict[str, np.ndarray]:
    """Return estimates and limits by kind, shape (m, 3)."""
    asked, means = TABLES[name], release.describe()
    fit = release.ols(asked.target, list(asked.features), reference=references(asked.features))
    predicted = fit.get_prediction(places(name))
    result = {
        "means": np.column_stack([means.mean, means.conf_int()]),
        "correlations": related(release),
        "coefficients": np.column_stack([fit.params.to_numpy()[1:], fit.conf_int().to_numpy()[1:]]),
        "predictions": np.column_stack([predicted.predicted_mean, predicted.conf_int()]),
    }
    if asked.groups:
        found = release.group_means(asked.groups, [asked.of]).differences
        result["differences"] = np.column_stack([found.difference[0], found.lower[0], found.upper[0]])
    return result


def related(release: Any, columns: list[str] | None = None) -> np.ndarray:
    """Return correlations and their limits, shape (m, 3)."""
    found = release.correlations(columns)
    pairs = np.tril_indices(len(found.feature_names), -1)
    counted = found.comparable[pairs]
    return np.column_stack([each[pairs][counted] for each in (found.correlation, found.lower, found.upper)])


def answers_by_products(release: Any, name: str) -> dict[str, np.ndarray]:
    asked = TABLES[name]
    fit = release.ols(asked.target, list(asked.robust), reference=references(asked.robust))
    slopes = np.column_stack([fit.params.to_numpy()[1:], fit.conf_int().to_numpy()[1:]])
    return {"robust": slopes, "related": related(release, [*asked.robust, asked.target])}


@cache
def places(name: str) -> pd.DataFrame:
    """Return three rows of the table at which predictions are made."""
    rows = table(name)[0]
    return rows.take(pa.array([0, len(rows) // 3, 2 * len(rows) // 3])).to_pandas()


def references(features: tuple[str, ...]) -> dict[str, str]:
    return {
        name: level for name, level in (("training", "none"), ("region", "a"), ("area", "north")) if name in features
    }


@cache
def exact(name: str, which: int) -> Any:
    """Return a release of the table without noise: with one of its two schemas."""
    rows, *schemas = table(name)
    options: dict[str, Any] = {"epsilon": 1e13, "delta": 1e-9, "mechanism": "gaussian", "repair": "none"}
    return dpm.release(rows, schemas[which], insecure_seed=0, **options)


@cache
def truth(name: str) -> dict[str, np.ndarray]:
    result = answers(exact(name, 0), name) | answers_by_products(exact(name, 1), name)
    return {kind: values[:, 0] for kind, values in result.items()}


def measured(cell: Cell) -> dict[str, tuple[int, int]]:
    """Return the numbers of estimable answers and of intervals that hold the truth, by kind."""
    warnings.simplefilter("ignore")
    for module in (group_means, confidence):  # p-values are found by bisection, and not asked for
        module.p_by_inversion = lambda _, shape: np.full(shape, np.nan)  # type: ignore[attr-defined]
    name, epsilon, delta = cell
    rows, *schemas = table(name)
    mechanism = "gaussian" if delta else "auto"
    total = {kind: np.zeros(2, dtype=int) for kind in KINDS}
    for seed in range(RELEASES):
        drawn = rows.take(pa.array(np.random.default_rng([seed, 9]).integers(0, len(rows), len(rows))))
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
        release, products = (dpm.release(drawn, each, insecure_seed=seed, threads=1, **budget) for each in schemas)
        expected = truth(name)
        found = answers(release, name) | answers_by_products(products, name)
        for kind, values in found.items():
            if not np.isfinite(expected[kind]).all():
                raise AssertionError(f"{cell}: an answer without noise is not estimable: {kind} {expected[kind]}")
            known = np.isfinite(values).all(axis=1)
            holds = (values[:, 1] <= expected[kind]) & (expected[kind] <= values[:, 2])
            total[kind] += [int(known.sum()), int((known & holds).sum())]
    return {kind: (int(counts[0]), int(counts[1])) for kind, counts in total.items()}


def lines_of(found: dict[Cell, dict[str, tuple[int, int]]]) -> Iterator[str]:
    yield from head(f"table | ε, δ | releases | {' | '.join(KINDS)}", "llr" + "r" * len(KINDS))
    for (name, epsilon, delta), counts in found.items():
        cells = []
        for kind in KINDS:
            known, held = counts[kind]
            asked = RELEASES * len(truth(name).get(kind, ()))
            cells.append(f"{held / known:.3f} ({known / asked:.2f})" if known else "–")
        yield f"| {name} | {epsilon:g}, {delta:g} | {RELEASES} | {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--made", action="store_true", help="tables made for this, Adult and Airfoil, in place of real ones"
    )
    of_made = parser.parse_args().made
    names = [name for name in TABLES if (name in FRESH or name == "airfoil") == of_made]
    cells = [(name, *budget) for name in names for budget in BUDGETS]
    with ProcessPoolExecutor(2) as pool:
        found = dict(zip(cells, pool.map(measured, cells), strict=True))
    write_part(PAGE, "made" if of_made else "answers", lines_of(found))
