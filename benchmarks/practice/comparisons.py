"""Whether intervals and tests of releases hold: coverage of 95 % intervals, and rejections at 5 % where there is nothing.

    OMP_NUM_THREADS=1 python -m benchmarks.practice.comparisons [--anova 4000]

Writes its parts of ``docs/evidence/regression-coverage.md``. Every replication draws a table anew and releases it.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables.entry import plain_rows
from benchmarks.practice.typical_tables import DIABETES
from dpmoments.base.values import FloatArray

LEVEL = 0.95
POPULATION = 1_000_000
BUDGETS = [(epsilon, delta) for delta in (0.0, 1e-9) for epsilon in (0.3, 1.0, 3.0, 10.0)]
NEIGHBORS = ("add_remove", "replace_one")
KINDS = ("means", "correlations", "partial correlations", "group means", "differences", "explained variances")
TESTS = ("anova", "t-test", "chi-square")
REPLICATIONS, RESAMPLES = 1000, 300


@dataclass(frozen=True, eq=False)
class Population:
    """What tables are drawn from: features in the release's order, and how a table looks."""

    name: str
    schema: dpm.Schema
    features: FloatArray
    table: Callable[[np.random.Generator], pa.Table]
    by: str
    two: str
    of: tuple[str, ...]
    columns: tuple[str, ...]
    null: tuple[str, str, str, str] | None = None
    """A feature that depends on nothing, a column of several groups, one of two, and a column that those do not depend on."""


class Tally:
    """Of one setting: how many intervals were asked for, told and hold, and how often tests rejected."""

    def __init__(self) -> None:
        self.told, self.asked, self.held, self.rejected = Counter[str](), Counter[str](), Counter[str](), Counter[str]()

    def add(self, kind: str, lower: FloatArray, upper: FloatArray, truth: FloatArray, told: FloatArray) -> None:
        lower, upper, truth, told = (np.ravel(values) for values in (lower, upper, truth, told.astype(bool)))
        slack = 1e-9 * (1.0 + np.abs(truth))
        held = (lower <= truth + slack) & (truth - slack <= upper) & told
        self.asked[kind] += len(held)
        self.told[kind] += int(told.sum())
        self.held[kind] += int(held.sum())

    def coverage(self, kind: str) -> str:
        if not self.told[kind]:
            return "–"
        share = self.held[kind] / self.told[kind]
        told = self.told[kind] / self.asked[kind]
        return f"{share:.3f}" + ("" if told > 0.995 else f" ({told:.0%} told)")


def synthetic(n: int) -> Population:
    """Normal, skewed and uniform numbers, groups that differ, and columns that depend on nothing."""
    schema = dpm.Schema(
        dpm.Numeric("age", 0, 100),
        dpm.Numeric("income", 0, 200),
        dpm.Numeric("score", -5, 5),
        dpm.Categorical("region", ["north", "south", "east"]),
        dpm.Boolean("smoker"),
        dpm.Categorical("ward", ["a", "b", "c", "d"]),
    )

    def table(rng: np.random.Generator, size: int = n) -> pa.Table:
        region, smoker = rng.choice(3, size, p=[0.5, 0.3, 0.2]), rng.random(size) < 0.3
        age = np.clip(rng.normal(45, 14, size) + 6 * (region == 1), 0, 100)
        income = np.clip(rng.gamma(4.0, 12.0, size) + 0.5 * age + 10 * smoker, 0, 200)
        return pa.table({
            "age": age, "income": income, "score": rng.uniform(-4, 4, size),
            "region": np.array(["north", "south", "east"])[region], "smoker": smoker,
            "ward": np.array(["a", "b", "c", "d"])[rng.choice(4, size, p=[0.4, 0.3, 0.2, 0.1])],
        })  # fmt: skip

    features = plain_rows(table(np.random.default_rng(0), POPULATION), schema)
    return Population(
        f"synthetic, n = {n:,}", schema, features, table, "region", "smoker", ("age", "income"),
        ("age", "income", "score", "smoker"), ("score", "region", "smoker", "ward"),
    )  # fmt: skip


def resampled(name: str, frame: pa.Table, schema: dpm.Schema, n: int, **asked: object) -> Population:
    """Rows of a table with replacement: the table is the population."""

    def table(rng: np.random.Generator) -> pa.Table:
        return frame.take(pa.array(rng.integers(0, len(frame), n)))

    return Population(name, schema, plain_rows(frame, schema), table, **asked)  # type: ignore[arg-type]


def real_tables() -> list[Population]:
    """Adult's numbers and a few of its groups, 10,000 rows at a time; diabetes, all 442."""
    from sklearn.datasets import load_diabetes

    adult = dpm.datasets.adult()
    names = ("age", "education-num", "hours-per-week", "capital-gain", "sex", "race", "income")
    kept = dpm.Schema(*(column for column in adult.schema.columns if column.name in names))
    frame = adult.frame.select([column.name for column in kept.columns]).drop_null()
    raw = load_diabetes(scaled=False)
    diabetes = np.column_stack([raw.data, raw.target])
    table = pa.table(dict(zip(DIABETES, diabetes.T, strict=True)) | {"man": diabetes[:, 1] > 1.5})
    schema = dpm.Schema(
        *(dpm.Numeric(name, *bounds) for name, bounds in DIABETES.items() if name != "sex"), dpm.Boolean("man")
    )
    return [
        resampled(
            "Adult, n = 10,000", frame, kept, 10_000, by="race", two="sex", of=("age", "hours-per-week", "education-num"),
            columns=("age", "education-num", "hours-per-week"),
        ),
        resampled(
            "diabetes, n = 442", table, schema, 442, by="man", two="man", of=("age", "bmi", "progression"),
            columns=("bmi", "bp", "progression"),
        ),
    ]  # fmt: skip


def measured(population: Population, replications: int, seed: int, **options: object) -> Tally:
    """One setting, run again and again."""
    tally, features = Tally(), population.features
    names = list(population.schema.feature_names)
    mean, covariance = features.mean(axis=0), np.cov(features.T, bias=True)
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    levels = {
        by: {name: features[:, names.index(name)] for name in names if name.startswith(f"{by}=")}
        or {f"{by}=false": 1.0 - features[:, names.index(by)], f"{by}=true": features[:, names.index(by)]}
        for by in (population.by, population.two)
    }
    places = [names.index(name) for name in population.of]
    group_truth = {
        by: np.array([[np.average(features[:, place], weights=rows) for rows in groups.values()] for place in places])
        for by, groups in levels.items()
    }
    partial_places = [names.index(name) for name in population.columns]
    inverse = np.linalg.inv(covariance[np.ix_(partial_places, partial_places)])
    partial = -inverse / np.sqrt(np.outer(np.diag(inverse), np.diag(inverse)))
    unit = population.schema.encoding(mean=True).unit
    eigenvalues = np.linalg.eigvalsh(covariance / np.outer(unit, unit))[::-1]
    for run in range(replications):
        rng = np.random.default_rng([seed, run])
        released = dpm.release(
            population.table(rng), population.schema, insecure_seed=int(rng.integers(2**31)), **options
        )  # type: ignore[arg-type]
        interval = released.describe().conf_int(LEVEL)
        tally.add("means", interval[:, 0], interval[:, 1], mean, np.ones(len(mean)))
        found = released.correlations(level=LEVEL)
        shown = [names.index(name) for name in found.feature_names]  # of two levels one
        lower = np.tril_indices(len(shown), -1)
        column = np.array(found.columns_of_features)
        apart = column[lower[0]] != column[lower[1]]
        pair = (lower[0][apart], lower[1][apart])
        told = ~((found.lower[pair] <= -1.0) & (found.upper[pair] >= 1.0))
        tally.add("correlations", found.lower[pair], found.upper[pair], correlation[np.ix_(shown, shown)][pair], told)
        given = released.partial_correlation(list(population.columns), level=LEVEL)
        lower = np.tril_indices(len(given.feature_names), -1)
        order = [population.columns.index(name) for name in given.feature_names]
        tally.add(
            "partial correlations", given.lower[lower], given.upper[lower], partial[np.ix_(order, order)][lower],
            np.full(len(lower[0]), given.identified),
        )  # fmt: skip
        for by, truth in group_truth.items():
            means = released.group_means(by, list(population.of), level=LEVEL)
            order = [population.of.index(name) for name in means.features]
            told = np.broadcast_to(~means.lost, means.mean.shape)
            tally.add("group means", means.lower, means.upper, truth[order], told)
            apart = np.array([[a - b for a, b in combinations(row, 2)] for row in truth[order]])
            both = np.array([a and b for a, b in combinations(~means.lost, 2)], dtype=bool)
            differences = means.differences
            tally.add("differences", differences.lower, differences.upper, apart, np.broadcast_to(both, apart.shape))
        components = released.pca(3, scaling="bounds")
        interval = components.conf_int(LEVEL)
        tally.add("explained variances", interval[:, 0], interval[:, 1], eigenvalues[:3], ~components.is_noise)
        if population.null is not None:
            target, several, two, other = population.null
            p_values = {
                "anova": released.anova(target, several).p_value,
                "t-test": released.t_test(target, two).p_value,
                "chi-square": released.cross_table(several, other).p_value,
            }
            for test, p_value in p_values.items():
                tally.rejected[test] += int(p_value < 1.0 - LEVEL)
    return tally


def rejections_by_anova(replications: int) -> float:
    """Of a difference that is none, at (10, 1e-9) under add_remove: the setting whose figure of 1,000 stands out, again."""
    population, rejected = synthetic(3_000), 0
    for run in range(replications):
        rng = np.random.default_rng([77, run])
        table, budget = population.table(rng), {"epsilon": 10.0, "delta": 1e-9, "neighbors": "add_remove"}
        released = dpm.release(table, population.schema, insecure_seed=run, **budget)  # type: ignore[arg-type]
        rejected += released.anova("score", "region").p_value < 1.0 - LEVEL
    return rejected / replications


def main() -> None:
    """Measure every setting and write both tables; a budget under one relation here, under the other there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anova", type=int, help="only print how often anova rejects in so many tables of one setting")
    anova = parser.parse_args().anova
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    warnings.simplefilter("ignore", UserWarning)
    if anova:
        print(rejections_by_anova(anova))
        return
    start = time.monotonic()
    coverage, rejections = (
        [*head(f"table | budget | {' | '.join(of)}", "ll" + "l" * len(of))] for of in (KINDS, TESTS)
    )
    for population in (synthetic(3_000), *real_tables()):
        real = population.null is None
        for place, (epsilon, delta) in enumerate(BUDGETS):
            # Each in half of the settings, at small and large budgets.
            neighbors = NEIGHBORS[(place + place // 4 + real) % 2]
            budget = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "") + f", {neighbors}"
            runs = RESAMPLES if real else REPLICATIONS
            tally = measured(population, runs, place, epsilon=epsilon, delta=delta, neighbors=neighbors)
            setting = f"| {population.name} | {budget}"
            coverage.append(f"{setting} | {' | '.join(map(tally.coverage, KINDS))} |")
            print(coverage[-1], flush=True)
            if not real:
                shares = " | ".join(f"{tally.rejected[test] / runs:.3f}" for test in TESTS)
                rejections.append(f"{setting} | {shares} |")
    minutes = math.ceil((time.monotonic() - start) / 60.0)
    counts = f"{REPLICATIONS:,} synthetic tables and {RESAMPLES:,} resamples a setting"
    closing = f"\n{counts}; {minutes} minutes on a shared core."
    write_part(EVIDENCE / "regression-coverage.md", "comparisons", [*coverage, closing])
    write_part(EVIDENCE / "regression-coverage.md", "rejections", rejections)


if __name__ == "__main__":
    main()
