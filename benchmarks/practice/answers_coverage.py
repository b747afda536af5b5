"""How often 95 % intervals of means, differences, correlations and coefficients hold the truth, on tables of the judge half.

Rows are drawn with replacement, so that the table is the population, and released by default. Answers of a release without
noise of the table are the truth. Only answers that are estimable count: those with a number.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.tables import chosen

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


TABLES = {
    "fair": Questions(
        "occupation", "age", "affairs", ("rate_marriage", "age", "religious", "educ"), ("rate_marriage", "age")
    ),
    "modechoice": Questions("choice", "ttme", "gc", ("ttme", "invc", "hinc"), ("ttme", "invc")),
    "flower-pixels": Questions("", "", "blue", ("down", "right", "red", "green"), ("red", "green")),
}


@cache
def table(name: str) -> tuple[pa.Table, dpm.Schema, dpm.Schema]:
    """Return rows without missing values, the schema, and the one of the second regression with its products."""
    frame, schema = chosen(names=[name])[0].make()
    rows = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame.dropna(), preserve_index=False)
    while len(rows) > LARGEST:
        rows = rows.take(pa.array(np.arange(0, len(rows), 2)))
    asked = TABLES[name]
    used = [column for column in schema.table_columns if column.name in (asked.target, *asked.robust)]
    return rows, schema, dpm.Schema(*used).with_products([column.name for column in used])


def answers(release: Any, robust: Any, asked: Questions) -> dict[str, np.ndarray]:
    """Return estimates and limits by kind, shape (m, 3)."""
    means, related = release.describe(), release.correlations()
    pairs = np.tril_indices(len(related.feature_names), -1)
    counted = related.comparable[pairs]
    result = {
        "means": np.column_stack([means.mean, means.conf_int()]),
        "correlations": np.column_stack(
            [each[pairs][counted] for each in (related.correlation, related.lower, related.upper)]
        ),
    }
    if asked.groups:
        found = release.group_means(asked.groups, [asked.of]).differences
        result["differences"] = np.column_stack([found.difference[0], found.lower[0], found.upper[0]])
    for kind, source, features in (("coefficients", release, asked.features), ("robust", robust, asked.robust)):
        fit = source.ols(asked.target, list(features))
        result[kind] = np.column_stack([fit.params.to_numpy()[1:], fit.conf_int().to_numpy()[1:]])
    return result


@cache
def truth(name: str) -> dict[str, np.ndarray]:
    """Return the answers on the table itself."""
    rows, *schemas = table(name)
    exact = [
        dpm.release(rows, schema, epsilon=1e13, delta=1e-9, mechanism="gaussian", repair="none", insecure_seed=0)
        for schema in schemas
    ]
    return {kind: values[:, 0] for kind, values in answers(*exact, TABLES[name]).items()}


def measured(cell: tuple[str, float, float, int]) -> dict[str, tuple[int, int]]:
    """Return the numbers of estimable answers and of intervals that hold the truth, by kind."""
    warnings.simplefilter("ignore")
    name, epsilon, delta, replications = cell
    rows, schema, products = table(name)
    expected, mechanism = truth(name), "gaussian" if delta else "auto"
    total = {kind: np.zeros(2, dtype=int) for kind in KINDS}
    for seed in range(replications):
        drawn = rows.take(pa.array(np.random.default_rng([seed, 9]).integers(0, len(rows), len(rows))))
        released = [
            dpm.release(drawn, each, epsilon=epsilon, delta=delta, mechanism=mechanism, insecure_seed=seed, threads=1)
            for each in (schema, products)
        ]
        for kind, values in answers(*released, TABLES[name]).items():
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
    options = parser.parse_args()
    done = {}
    if options.results.exists():
        for line in options.results.read_text(encoding="utf-8").splitlines():
            cell, counts = json.loads(line)
            done[tuple(cell)] = counts
    cells = [(name, *budget, options.replications) for name in TABLES for budget in BUDGETS]
    left = [cell for cell in cells if cell not in done]
    with ProcessPoolExecutor(options.workers) as pool, options.results.open("a", encoding="utf-8") as file:
        for cell, counts in zip(left, pool.map(measured, left), strict=True):
            done[cell] = counts
            file.write(json.dumps([cell, counts]) + "\n")
            file.flush()
            print(cell, counts, flush=True)
    write_part(PAGE, "answers", lines_of({cell: done[cell] for cell in cells}))


if __name__ == "__main__":
    main()
