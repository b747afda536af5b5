"""How often 95 % intervals of means, differences, correlations and coefficients hold the truth, on tables of the judge half.

Rows are drawn with replacement, so that the table is the population, and released by default. Answers of a release without
noise of the table are the truth; if a release clips rows to a ball, of the table's rows clipped to that ball. Only answers that
are estimable count: those with a number.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.tables import chosen
from dpmoments.rows.rows import Rows

PAGE = EVIDENCE / "regression-coverage.md"
BUDGETS = tuple((epsilon, delta) for delta in (0.0, 1e-6) for epsilon in (0.5, 1.0, 3.0))
"""Under ε alone the default mechanism; under (ε, δ) Gaussian noise, for the default is often the same there."""
LARGEST = 30_000
"""Rows of a table; of a larger one every second is left out until it has no more."""
KINDS = ("means", "differences", "correlations", "coefficients", "robust")


@dataclass(frozen=True)
class Questions:
    """What is asked of a table.

    Attributes
    ----------
    groups, of : str
        Differences of ``of`` between the levels of ``groups``; empty without such a column.
    target : str
    features : tuple of str
        Of the regression.
    robust : tuple of str
        Features of the second one, for which the products are released.
    """

    groups: str
    of: str
    target: str
    features: tuple[str, ...]
    robust: tuple[str, ...]


def tailed() -> tuple[pa.Table, dpm.Schema]:
    """Make 6,000 rows with two columns of heavy tails, and residuals with one."""
    rng = np.random.default_rng(29_001)
    n = 6_000
    area = rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2])
    wealth = np.minimum(rng.pareto(1.5, n) * 5e3, 1e6)
    years = rng.integers(0, 40, n)
    spent = np.minimum(np.exp(rng.normal(3.0, 1.0, n) + 0.02 * years), 5_000.0)
    score = np.clip(50.0 + 0.4 * years + 4.0 * (area == "south") + 6.0 * rng.standard_t(4, n), 0.0, 150.0)
    columns = {"area": area, "wealth": wealth, "years": years, "spent": spent, "score": score}
    return pa.table(columns), dpm.Schema(
        dpm.Categorical("area", ["north", "south", "east"]),
        dpm.Numeric("wealth", 0, 1e6),
        dpm.Numeric("years", 0, 40),
        dpm.Numeric("spent", 0, 5_000),
        dpm.Numeric("score", 0, 150),
    )


def answered() -> tuple[pa.Table, dpm.Schema]:
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
    columns = {name: np.array(words)[code] for name, words, code in zip(names, levels, codes, strict=True)}
    columns |= {"member": member, "owner": owner, "hours": hours}
    kinds = [dpm.Categorical(name, words) for name, words in zip(names, levels, strict=True)]
    return pa.table(columns), dpm.Schema(
        *kinds, dpm.Boolean("member"), dpm.Boolean("owner"), dpm.Numeric("hours", 0, 80)
    )


def uneven() -> tuple[pa.Table, dpm.Schema]:
    """Make 6,000 rows whose residuals' deviation grows tenfold with a regressor."""
    rng = np.random.default_rng(29_003)
    n = 6_000
    load, age, night = rng.uniform(0.0, 10.0, n), rng.normal(0.0, 1.0, n), rng.random(n) < 0.3
    time = np.clip(2.0 * load - 1.5 * age + night + rng.normal(0.0, 1.0, n) * (0.5 + 0.5 * load), -20.0, 45.0)
    shift = np.where(night, "night", np.where(rng.random(n) < 0.5, "early", "late"))
    columns = {"load": load, "age": np.clip(age, -4.0, 4.0), "night": night, "time": time, "shift": shift}
    return pa.table(columns), dpm.Schema(
        dpm.Numeric("load", 0, 10),
        dpm.Numeric("age", -4, 4),
        dpm.Boolean("night"),
        dpm.Numeric("time", -20, 45),
        dpm.Categorical("shift", ["night", "early", "late"]),
    )


MADE = {"tailed": tailed, "answered": answered, "uneven": uneven}
"""Tables that were written for this measurement, after every constant of the library."""
TABLES = {
    "tailed": Questions("area", "score", "score", ("years", "area"), ("years",)),
    "answered": Questions("training", "hours", "hours", ("member", "training", "region"), ("member", "owner")),
    "uneven": Questions("shift", "time", "time", ("load", "age"), ("load", "age")),
    "fair": Questions(
        "occupation", "age", "affairs", ("rate_marriage", "age", "religious", "educ"), ("rate_marriage", "age")
    ),
    "modechoice": Questions("choice", "ttme", "gc", ("ttme", "invc", "hinc"), ("ttme", "invc")),
    "flower-pixels": Questions("", "", "blue", ("down", "right", "red", "green"), ("red", "green")),
}


@cache
def table(name: str) -> tuple[pa.Table, dpm.Schema, dpm.Schema]:
    """Return rows without missing values, the schema, and the one of the second regression with its products."""
    frame, schema = MADE[name]() if name in MADE else chosen(names=[name])[0].make()
    rows = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame.dropna(), preserve_index=False)
    while len(rows) > LARGEST:
        rows = rows.take(pa.array(np.arange(0, len(rows), 2)))
    asked = TABLES[name]
    used = [column for column in schema.table_columns if column.name in (asked.target, *asked.robust)]
    return rows, schema, dpm.Schema(*used).with_products([column.name for column in used])


def answers(release: Any, asked: Questions) -> dict[str, np.ndarray]:
    """Return estimates and limits by kind, shape (m, 3)."""
    means, related = release.describe(), release.correlations()
    pairs = np.tril_indices(len(related.feature_names), -1)
    counted = related.comparable[pairs]
    result = {
        "means": np.column_stack([means.mean, means.conf_int()]),
        "correlations": np.column_stack(
            [each[pairs][counted] for each in (related.correlation, related.lower, related.upper)]
        ),
        "coefficients": coefficients(release, asked.target, asked.features),
    }
    if asked.groups:
        found = release.group_means(asked.groups, [asked.of]).differences
        result["differences"] = np.column_stack([found.difference[0], found.lower[0], found.upper[0]])
    return result


def coefficients(release: Any, target: str, features: tuple[str, ...]) -> np.ndarray:
    """Return estimates and limits of slopes, shape (m, 3)."""
    fit = release.ols(target, list(features), reference=references(features))
    return np.column_stack([fit.params.to_numpy()[1:], fit.conf_int().to_numpy()[1:]])


def references(features: tuple[str, ...]) -> dict[str, str]:
    """Return the reference levels of the categoricals among features."""
    return {
        name: level for name, level in (("training", "none"), ("region", "a"), ("area", "north")) if name in features
    }


@cache
def exact(name: str, which: int) -> Any:
    """Return a release of the table without noise: with one of its two schemas."""
    rows, *schemas = table(name)
    options: dict[str, Any] = {"epsilon": 1e13, "delta": 1e-9, "mechanism": "gaussian", "repair": "none"}
    return dpm.release(rows, schemas[which], insecure_seed=0, **options)


def population(name: str, which: int, release: Any) -> Any:
    """Return what ``exact`` does, of rows clipped to the ball of a release."""
    whole = exact(name, which)
    if release.center is None:
        return whole
    rows, *schemas = table(name)
    radius = float(release.diagnostics["radius"])
    sums = Rows.of(rows, schemas[which], mean=True, threads=1).moments(release.center, None, radius, bits=22)
    gram = np.asarray(sums.gram, dtype=float) * sums.scale**2
    total = np.asarray(sums.sum, dtype=float) * sums.scale
    return replace(whole, noisy_count=float(sums.count), noisy_sum=total, noisy_gram=gram, center=release.center)


@cache
def truth(name: str) -> dict[str, np.ndarray]:
    """Return the answers on the table itself."""
    asked = TABLES[name]
    result = answers(exact(name, 0), asked) | {"robust": coefficients(exact(name, 1), asked.target, asked.robust)}
    return {kind: values[:, 0] for kind, values in result.items()}


def measured(cell: tuple[str, float, float, int]) -> dict[str, tuple[int, int]]:
    """Return the numbers of estimable answers and of intervals that hold the truth, by kind."""
    warnings.simplefilter("ignore")
    name, epsilon, delta, replications = cell
    asked, (rows, *schemas) = TABLES[name], table(name)
    mechanism = "gaussian" if delta else "auto"
    total = {kind: np.zeros(2, dtype=int) for kind in KINDS}
    for seed in range(replications):
        drawn = rows.take(pa.array(np.random.default_rng([seed, 9]).integers(0, len(rows), len(rows))))
        budget: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
        release, products = (dpm.release(drawn, each, insecure_seed=seed, threads=1, **budget) for each in schemas)
        found, expected = answers(release, asked), dict(truth(name))
        found["robust"] = coefficients(products, asked.target, asked.robust)
        if release.center is not None:
            expected |= {kind: each[:, 0] for kind, each in answers(population(name, 0, release), asked).items()}
        if products.center is not None:
            expected["robust"] = coefficients(population(name, 1, products), asked.target, asked.robust)[:, 0]
        for kind, values in found.items():
            known = np.isfinite(values).all(axis=1)
            holds = (values[:, 1] <= expected[kind]) & (expected[kind] <= values[:, 2])
            total[kind] += [int(known.sum()), int((known & holds).sum())]
    return {kind: (int(counts[0]), int(counts[1])) for kind, counts in total.items()}


def lines_of(found: dict[tuple[str, float, float, int], dict[str, tuple[int, int]]]) -> Iterator[str]:
    """Return the page's part: shares of intervals that hold the truth, and of answers that are estimable in brackets."""
    yield f"| table | ε, δ | releases | {' | '.join(KINDS)} |"
    yield f"| --- | --- | ---: |{' ---: |' * len(KINDS)}"
    for (name, epsilon, delta, replications), counts in found.items():
        cells = []
        for kind in KINDS:
            known, held = counts[kind]
            asked = replications * len(truth(name).get(kind, ()))
            cells.append(f"{held / known:.3f} ({known / asked:.2f})" if known else "–")
        yield f"| {name} | {epsilon:g}, {delta:g} | {replications} | {' | '.join(cells)} |"


def main() -> None:
    """Measure every cell, keeping what is there already, and write the page's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--results", type=Path, default=Path("answers-coverage.jsonl"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--made", action="store_true", help="the tables made for this, in place of the judge half's")
    options = parser.parse_args()
    done = {}
    if options.results.exists():
        for line in options.results.read_text(encoding="utf-8").splitlines():
            cell, counts = json.loads(line)
            done[tuple(cell)] = counts
    names = [name for name in TABLES if (name in MADE) == options.made]
    every = [(name, *budget) for name in names for budget in BUDGETS]
    most = {cell: max((known[3] for known in done if known[:3] == cell), default=0) for cell in every}
    cells = [(*cell, max(most[cell], options.replications)) for cell in every]
    left = [cell for cell in cells if cell not in done]
    with ProcessPoolExecutor(options.workers) as pool, options.results.open("a", encoding="utf-8") as file:
        for cell, counts in zip(left, pool.map(measured, left), strict=True):
            done[cell] = counts
            file.write(json.dumps([cell, counts]) + "\n")
            file.flush()
            print(cell, counts, flush=True)
    write_part(PAGE, "made" if options.made else "answers", lines_of({cell: done[cell] for cell in cells}))


if __name__ == "__main__":
    main()
