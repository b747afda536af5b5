"""What priorities buy and cost: the weight of one column, and that of means, on tables of the design half.

``OMP_NUM_THREADS=1 python -m benchmarks.practice.priorities`` writes its part of ``docs/evidence/practice.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables import Made, chosen
from benchmarks.practice.tables.entry import exact_moments
from dpmoments.base.values import FloatArray

BUDGETS: dict[str, dict[str, float]] = {"ε = 1": {"epsilon": 1.0}, "(1, 10⁻⁹)": {"epsilon": 1.0, "delta": 1e-9}}
TABLES = {"items-12x4-5000": "q0", "mixed-dependent-1000": "c0", "loose-10000": "x0"}
"""Tables and the column that counts more."""
WEIGHTS = (4.0, 16.0)
SEEDS = 20
MEAN_WEIGHTS = (1 / 16, 1 / 4, 4.0, 16.0)


def weighted(schema: dpm.Schema, column: str, weight: float) -> dpm.Schema:
    """Return the schema with a weight on one column."""
    return dpm.Schema(*(replace(one, weight=weight) if one.name == column else one for one in schema.columns))


def errors(table: Made, column: str, schema: dpm.Schema, budget: dict[str, Any]) -> FloatArray:
    """Squared errors of: a column's pairs, all other pairs, the covariance, and means, each summed over the features."""
    data, stated = table
    (_, exact_mean, exact), units = exact_moments(data, stated), stated.encoding().scale
    own = np.zeros(len(units), dtype=bool)
    features = next(one for one in stated.columns if one.name == column).feature_names
    own[[stated.feature_names.index(feature) for feature in features]] = True
    result = []
    for seed in range(SEEDS):
        release = dpm.release(data, schema, **budget, threads=1, insecure_seed=seed)
        squares = (release.covariance / np.outer(units, units) - exact) ** 2
        mean = (release.mean - stated.encoding().decode_mean(exact_mean)) / units
        pairs = squares[own][:, ~own].sum(), squares[~own][:, ~own].sum()
        result.append([*pairs, squares.sum(), float(mean @ mean)])
    return np.array(result)


def ratio(first: FloatArray, second: FloatArray) -> str:
    """Return first/second, the geometric mean over seeds and its standard error."""
    logs = (np.log(first) - np.log(second)) / 2.0
    factor = float(np.exp(logs.mean()))
    return f"{factor:.2f} ± {factor * float(logs.std(ddof=1)) / np.sqrt(len(logs)):.2f}"


def lines() -> Iterator[str]:
    """Both tables."""
    yield f"Errors over those without a weight, at the same {SEEDS} seeds; ± is a standard error."
    yield ""
    yield "| table, column | budget | weight | its covariances with others | the other covariances | means |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    plain: dict[tuple[str, str], FloatArray] = {}
    tables = {name: chosen(names=[name])[0].make() for name in TABLES}
    for (name, column), (budget, options) in product(TABLES.items(), BUDGETS.items()):
        table, schema = tables[name], tables[name][1]
        plain[name, budget] = before = errors(table, column, schema, options)
        for weight in WEIGHTS:
            after = errors(table, column, weighted(schema, column, weight), options)
            cells = " | ".join(ratio(after[:, place], before[:, place]) for place in (0, 1, 3))
            yield f"| {name}, {column} | {budget} | {weight:g} | {cells} |"
    yield ""
    yield from head("table | budget | weight of means | covariance | means", "llrrr")
    for (name, column), (budget, options), weight in product(TABLES.items(), BUDGETS.items(), MEAN_WEIGHTS):
        schema = dpm.Schema(*tables[name][1].columns, mean_weight=weight)
        after = errors(tables[name], column, schema, options)
        cells = " | ".join(ratio(after[:, place], plain[name, budget][:, place]) for place in (2, 3))
        yield f"| {name} | {budget} | {weight:g} | {cells} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    write_part(EVIDENCE / "practice.md", "priorities", lines())
