"""How often intervals of regression coefficients hold the population's, by replications of data and noise."""

from __future__ import annotations

import math
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import binom, chi2
from scipy.stats import t as student

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables import chosen
from benchmarks.practice.tables.entry import exact_moments
from dpmoments.base.values import FloatArray

PAGE = EVIDENCE / "regression-coverage.md"
LEVEL = 0.95
LEAST, MOST = 0.93, 0.985
BUDGETS = ((0.3, 0.0, "add_remove"), (1.0, 1e-9, "replace_one"), (3.0, 1e-9, "add_remove"), (10.0, 0.0, "replace_one"))
SYNTHETIC = ("independent", "correlated", "skewed", "one-hot")
NUMBERS_BOUND, TARGET_BOUND = 6.0, 14.0
LEVEL_SHARES = {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1}
REAL: dict[str, tuple[str, tuple[str, ...]]] = {
    "wine": ("alcohol", ("ash", "magnesium", "proline")),
    "airfoil": ("sound_pressure_level", ()),
    "diabetes": ("target", ("age", "bmi", "bp")),
    "china-pixels": ("blue", ()),
    "adult": ("hours-per-week", ("age", "education-num", "sex", "marital-status", "income")),
}
REPLICATIONS, RESAMPLES = 2_000, 300
WIDTHS_EVERY = 40
"""Widths of the inverted test are found in one replication of so many: they take a search."""


@dataclass(frozen=True)
class Setting:
    table: str
    n_rows: int
    n_features: int
    epsilon: float
    delta: float
    neighbors: str
    replications: int


# Tables -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """Rows drawn anew for every replication, and what their least squares is."""

    schema: dpm.Schema
    draw: Callable[[int, np.random.Generator], Any]
    target: str
    features: list[str]
    coefficients: dict[str, float]
    reference: dict[str, str]


@cache
def synthetic(kind: str, n_features: int) -> Population:
    levels = [f"group={level}" for level in LEVEL_SHARES]
    n_numbers = n_features - 1 - (len(levels) if kind == "one-hot" else 0)
    names = [f"x{place}" for place in range(n_numbers)]
    slopes = np.linspace(1.0, -0.5, n_numbers) / math.sqrt(n_numbers)
    steps = np.linspace(0.0, 0.6, len(levels)) if kind == "one-hot" else np.zeros(0)
    columns: list[Any] = [dpm.Numeric(name, -NUMBERS_BOUND, NUMBERS_BOUND) for name in names]
    if kind == "one-hot":
        columns.append(dpm.Categorical("group", list(LEVEL_SHARES)))
    schema = dpm.Schema(*columns, dpm.Numeric("y", -TARGET_BOUND, TARGET_BOUND))
    mix = np.linalg.cholesky(0.6 ** np.abs(np.subtract.outer(np.arange(n_numbers), np.arange(n_numbers))))

    def draw(n_rows: int, rng: np.random.Generator) -> pa.Table:
        if kind == "independent":
            rows = rng.uniform(-3.0, 3.0, (n_rows, n_numbers))
        else:
            rows = rng.normal(size=(n_rows, n_numbers)) @ mix.T
        skewed = rng.exponential(1.0, n_rows) - 1.0
        residual = skewed if kind == "skewed" else rng.normal(size=n_rows)
        table = {name: rows[:, place] for place, name in enumerate(names)}
        y = rows @ slopes + residual
        if kind == "one-hot":
            codes = rng.choice(len(LEVEL_SHARES), n_rows, p=list(LEVEL_SHARES.values()))
            y = y + steps[codes]
            table["group"] = np.array(list(LEVEL_SHARES))[codes]
        return pa.table(table | {"y": y})

    coefficients = dict(zip([*names, *levels[: len(steps)]], [*slopes.tolist(), *steps.tolist()], strict=True))
    reference = {"group": "a"} if kind == "one-hot" else {}
    return Population(schema, draw, "y", [*names, *(["group"] if reference else [])], coefficients, reference)


@cache
def resampled(name: str) -> tuple[Population, int]:
    """Rows of a real table drawn with replacement: the table is the population."""
    frame, schema = chosen(names=[name])[0].make()
    target, named = REAL[name]
    frame = frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame, preserve_index=False)
    features = list(named) or [column.name for column in schema.columns if column.name != target]
    n_rows, mean, covariance = exact_moments(frame, schema)
    blocks = {column.name: column.feature_names for column in schema.columns}
    names, scale = list(schema.feature_names), schema.encoding(mean=True).scale
    reference, places = {}, []
    for feature in features:
        block = [names.index(level) for level in blocks[feature]]
        if len(block) > 1:
            most = max(block, key=lambda place: mean[place])
            reference[feature] = names[most].removeprefix(f"{feature}=")
            block.remove(most)
        places += block
    y = names.index(target)
    slopes = np.linalg.solve(covariance[np.ix_(places, places)], covariance[places, y]) * scale[y] / scale[places]
    coefficients = {names[place]: float(slope) for place, slope in zip(places, slopes, strict=True)}

    def draw(size: int, rng: np.random.Generator) -> pa.Table:
        return frame.take(pa.array(rng.integers(0, len(frame), size)))

    return Population(schema, draw, target, features, coefficients, reference), n_rows


def settings() -> Iterator[Setting]:
    """Every cell: real tables at every budget; then all kinds, numbers of rows and of features, with budgets in turn."""
    for name in REAL:
        for budget in BUDGETS if name != "adult" else BUDGETS[1:3]:
            yield Setting(name, 0, 0, *budget, RESAMPLES)
    place = 0
    for kind in SYNTHETIC:
        for n_rows in (1_000, 10_000):
            for n_features in (3, 10, 20) if kind != "one-hot" else (6, 10, 20):
                for step in range(2):
                    budget = BUDGETS[(place + 2 * step) % len(BUDGETS)]
                    yield Setting(kind, n_rows, n_features, *budget, REPLICATIONS)
                place += 1
        yield Setting(kind, 100_000, 10, *BUDGETS[place % len(BUDGETS)], REPLICATIONS)


# One cell -----------------------------------------------------------------------------------------------------------------


def measured(setting: Setting) -> dict[str, Any]:
    """One cell, from seeds of its own: shares of the coefficients tried, but for ``one``, a coefficient a replication."""
    warnings.simplefilter("ignore")
    if setting.table in SYNTHETIC:
        population, n_rows = synthetic(setting.table, setting.n_features), setting.n_rows
    else:
        population, n_rows = resampled(setting.table)
    found: list[tuple[bool, FloatArray, FloatArray]] = []
    widths, inverted, one, one_identified = [], [], 0, 0
    budget: dict[str, Any] = dict(epsilon=setting.epsilon, delta=setting.delta, neighbors=setting.neighbors)
    for replication in range(setting.replications):
        rng = np.random.default_rng([replication, n_rows, setting.n_features, int(10 * setting.epsilon)])
        rows = population.draw(n_rows, rng)
        release = dpm.release(rows, population.schema, insecure_seed=replication, threads=1, **budget)
        fit = release.ols(population.target, population.features, reference=population.reference)
        equations = fit.equations
        assert equations is not None
        truth = np.array([population.coefficients[name] for name in fit.features])
        identified = bool(equations.identified)
        if identified:
            widths.append(np.median(fit.standard_errors / fit.sampling_errors))
        linear = equations.delta_method_valid
        if linear:
            limits = fit.conf_int(LEVEL).to_numpy()[-len(truth) :]
            covered = (limits[:, 0] <= truth) & (truth <= limits[:, 1])
        else:
            # an interval is the hull of the values that the test does not reject; two coefficients in turn
            tried = [(replication + step) % len(truth) for step in range(min(2, len(truth)))]
            start, least = np.append(-equations.solution, 1.0), []
            for place in tried:
                unit = float(equations.units_map[1 + place, 1 + place])
                fixed = {1 + place: -truth[place] / unit, equations.n_regressors: 1.0}
                least.append(equations.search.least(fixed, [start]).statistic)
            covered = chi2.sf(least, 1) >= 1 - LEVEL
        variance = np.diag(equations.sampling_covariance)[1:]
        reach = student.ppf(0.5 + LEVEL / 2, equations.degrees_of_freedom) * np.sqrt(np.maximum(variance, 0.0))
        naive = np.abs(equations.coefficients[1:] - truth) <= reach
        found.append((identified, covered, naive))
        place = replication % len(covered) if linear else 0
        one += int(covered[place])
        one_identified += int(covered[place]) if identified else 0
        if linear and replication % WIDTHS_EVERY == 0:
            lower, upper = equations.search.limits(1, 3.8415, equations.beyond)
            inverted.append((upper - lower) * equations.units_map[1, 1] / (limits[0, 1] - limits[0, 0]))

    def share(outcomes: list[FloatArray]) -> float:
        return float(np.concatenate(outcomes).mean()) if outcomes else math.nan

    kept = [covered for identified, covered, _ in found if identified]
    return {
        "rows drawn from": setting.table,
        "n": n_rows,
        "features": setting.n_features or "–",
        "ε": setting.epsilon,
        "relation": f"{'1e-9' if setting.delta else '0'}, {setting.neighbors.replace('_', '-')}",
        "replications": setting.replications,
        "identified": len(kept) / len(found),
        "covered where identified": share(kept),
        "covered": share([covered for _, covered, _ in found]),
        "naive": share([naive for _, _, naive in found]),
        "width / naive": float(np.median(widths)) if widths else math.nan,
        "inverted / delta": float(np.median(inverted)) if inverted else math.nan,
        "one": one,
        "one identified": one_identified,
        "n identified": len(kept),
    }


# The page -----------------------------------------------------------------------------------------------------------------


SHOWN = {
    "identified": 2, "covered where identified": 3, "covered": 3, "naive": 3, "width / naive": 2, "inverted / delta": 2,
}  # fmt: skip
"""Digits of the columns of shares and ratios."""


def lines_of(rows: list[dict[str, Any]]) -> Iterator[str]:
    yield from head(f"rows drawn from | n | features | ε, δ, relation | {' | '.join(SHOWN)}", "lrrl" + "r" * len(SHOWN))
    for row in rows:
        shown = [f"{row[name]:.{digits}f}" if math.isfinite(row[name]) else "–" for name, digits in SHOWN.items()]
        about = f"{row['rows drawn from']} | {row['n']:,} | {row['features']} | {row['ε']:g}, {row['relation']}"
        yield f"| {about} | {' | '.join(shown)} |"


def verdict(rows: list[dict[str, Any]]) -> Iterator[str]:
    """The family-wise binomial test, one coefficient a replication: Bonferroni over all cells and both limits."""
    for words, kind in (("synthetic", True), ("resampled", False)):
        cells, checks = [row for row in rows if (row["rows drawn from"] in SYNTHETIC) == kind], []
        for row in cells:
            cell, n, one = f"{row['rows drawn from']}, ε = {row['ε']:g}", row["n identified"], row["one identified"]
            checks.append((binom.cdf(row["one"], row["replications"], LEAST), f"{cell}: below .93"))
            if n >= 50:
                checks.append((binom.cdf(one, n, LEAST), f"{cell}: below .93 where identified"))
                checks.append((binom.sf(one - 1, n, MOST), f"{cell}: above .985 where identified"))
        rejected = sorted({what for p, what in checks if p < 0.05 / len(checks)})
        said = "; ".join(rejected) if rejected else "none"
        yield f"- {words}: {len(cells)} cells, {len(checks)} hypotheses at .05 together; rejected: {said}."


if __name__ == "__main__":
    started, outcomes = time.perf_counter(), []
    with ProcessPoolExecutor(2) as pool:
        for outcome in pool.map(measured, settings()):
            outcomes.append(outcome)
            print(f"{time.perf_counter() - started:6.0f} s {outcome}", flush=True)
    counts = f"{REPLICATIONS:,} replications a synthetic cell, {RESAMPLES} a real one."
    stamp = f"dpmoments {dpm.__version__}, {platform.machine()}, {counts}"
    write_part(PAGE, "coverage", [stamp, "", *lines_of(outcomes), "", *verdict(outcomes)])
