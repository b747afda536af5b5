"""Errors of the default release in the units that readers read: measured before a change, frozen, and compared after it.

    OMP_NUM_THREADS=1 python -m benchmarks.practice.default_errors [--half design|judge] [--label now] [--against before]

writes ``docs/evidence/tables/default-errors-LABEL.csv``, one row a table, budget and seed, and prints what was gained. All tables
are real: those of the family "collected", on which no default was tuned, and some that were looked at often. Constants are chosen
on the design half, which is run if nothing else is said; the judge half is for when they are frozen. Releases are made and read
by public names only, so that any version can be measured.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import gmean

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head
from benchmarks.practice.tables import TABLES, Entry, Half, chosen, made
from benchmarks.practice.tables.entry import correlations, plain_rows, root_mean_square
from dpmoments.base.values import FloatArray

Budget = tuple[float, float]

BUDGETS: tuple[Budget, ...] = ((1.0, 0.0), (3.0, 0.0), (1.0, 1e-6), (3.0, 1e-6))
SEEDS, SEEDS_OF_LARGE, LARGE = 5, 3, 40_000
STUDIED = ("adult", "adult-numbers", "airfoil", "breast-cancer", "randhie", "anes96")
"""Tables of the design half that earlier defaults were made with."""
SHARES = (0.02, 0.98)
"""Levels of a share outside are not counted: what a release says of them is nearly all noise at these budgets."""
CELL = ["table", "epsilon", "delta"]
ASKED = {
    ("correlations", "numbers"): (1.8, 0.85),
    ("correlations", "levels"): (1.2, 0.92),
    ("means", ""): (1.05, 0.65),
    ("sds", ""): (1.0, 0.65),
    ("ridge", ""): (2.5, 0.0),
    ("release_mean", ""): (1.0, 0.0),
}
"""Kinds of errors, of tables of one kind or of all, with the least gain on average, and the least in a cell."""
LEAST_EXCESS = 1e-6
"""Excess risks below it count as this."""


def collection(half: Half | None = None, names: Sequence[str] | None = None) -> tuple[Entry, ...]:
    """The tables of one half, of both, or any of the collection by name."""
    if names is not None:
        return chosen(names=names)
    found = (entry for entry in TABLES if entry.family == "collected" or entry.name in STUDIED)
    return tuple(entry for entry in found if half in (None, entry.half))


@dataclass(frozen=True, eq=False)
class OwnMoments:
    """The exact moments of a table within its bounds, feature by feature in original units; the column of each, and its class.

    Features that vary count, but for levels of an extreme share.
    """

    names: npt.NDArray[np.str_]
    columns: npt.NDArray[np.str_]
    kinds: npt.NDArray[np.str_]
    n_rows: int
    mean: FloatArray
    covariance: FloatArray
    varying: npt.NDArray[np.bool_]
    counted: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema) -> OwnMoments:
        rows, own = plain_rows(data, schema), [column for column in schema.columns for _ in column.feature_names]
        columns, kind = (
            np.array([say(column) for column in own]) for say in (lambda c: c.name, lambda c: type(c).__name__)
        )
        mean, varying = rows.mean(axis=0), rows.max(axis=0) > rows.min(axis=0)
        extreme = (kind == "Categorical") & ((mean < SHARES[0]) | (mean > SHARES[1]))
        covariance, names = np.cov(rows.T, bias=True), np.array(schema.feature_names)
        return cls(names, columns, kind, len(rows), mean, covariance, varying, varying & ~extreme)

    @property
    def kind(self) -> str:
        """The part of the judgment on correlations: "levels" if more than half of the features are levels, else "numbers"."""
        return "levels" if (self.kinds == "Categorical").mean() > 0.5 else "numbers"

    @property
    def deviations(self) -> FloatArray:
        return np.sqrt(np.diagonal(self.covariance))

    def targets(self, first: str) -> list[str]:
        """At most three numbers or Booleans to predict: this one, and two from among the others."""
        others = [str(name) for name in self.names[self.kinds != "Categorical"] if name != first]
        return [first, *dict.fromkeys(others[len(others) * third // 3] for third in (1, 2) if others)]

    def mean_error(self, mean: FloatArray) -> float:
        """Root mean square over the features, in standard deviations."""
        return root_mean_square((mean - self.mean)[self.counted] / self.deviations[self.counted])

    def box_error(self, schema: dpm.Schema, epsilon: float) -> float:
        """Error of means by ideal K-norm noise on the box of the count and of sums in [−1, 1]; NaN if there are levels."""
        if "Categorical" in self.kinds:
            return math.nan
        low, high = np.array([getattr(column, "bounds", (0.0, 1.0)) for column in schema.columns]).T
        dimensions, half, middle = len(low) + 1, (high - low) / 2.0, (high + low) / 2.0
        of_sums = math.sqrt((dimensions + 1) * (dimensions + 2) / 3.0) / epsilon
        of_means = of_sums / self.n_rows * np.hypot(half, self.mean - middle)
        return root_mean_square(of_means[self.counted] / self.deviations[self.counted])

    def errors(self, release: Any) -> dict[str, float]:
        """Errors of correlations, means in SDs and SDs, and how often a correlation's privacy part holds the table's own."""
        own, numbers = correlations(self.covariance), self.counted & (self.kinds == "Numeric")
        pairs = np.triu(self.columns[:, None] != self.columns, 1) & np.outer(self.counted, self.counted)
        deviations, answer = np.sqrt(np.diagonal(release.covariance)), release.correlations(self.names.tolist())
        known = pairs & (answer.privacy_noise > 0.0) & np.isfinite(answer.correlation)
        held = np.abs(answer.correlation - own)[known] <= 1.96 * answer.privacy_noise[known]
        return {
            "correlations": root_mean_square((correlations(release.covariance) - own)[pairs]),
            "means": self.mean_error(release.mean),
            "sds": root_mean_square(deviations[numbers] / self.deviations[numbers] - 1.0),
            "coverage": float(held.mean()) if len(held) else math.nan,
        }

    def excess(self, fit: Any) -> float:
        """(Risk of a fitted line − risk of the table's own least squares) / Var(y), at least ``LEAST_EXCESS``."""
        target = list(self.names).index(fit.target)
        own, others = correlations(self.covariance), self.varying & (self.columns != self.columns[target])
        inner, cross = own[np.ix_(others, others)], own[others, target]
        explained = cross @ np.linalg.pinv(inner, rcond=1e-9, hermitian=True) @ cross
        line = -(np.arange(len(self.names)) == target).astype(float)
        line[[list(self.names).index(name) for name in fit.features]] = fit.coefficients
        risk = line @ self.covariance @ line + (fit.intercept + line @ self.mean) ** 2
        return max(float(risk / self.covariance[target, target] - 1.0 + explained), LEAST_EXCESS)


def seeds_of(own: OwnMoments) -> range:
    return range(SEEDS_OF_LARGE if own.n_rows > LARGE else SEEDS)


def measured(entry: Entry, budgets: Sequence[Budget] = BUDGETS, seeds: int | None = None) -> Iterator[dict[str, Any]]:
    """One row a budget and seed of a table; `release_mean` only under pure ε."""
    table = made(entry)
    if table is None:
        return
    data, schema = table
    own = OwnMoments.of(data, schema)
    about = {"table": entry.name, "half": entry.half, "kind": own.kind, "n": own.n_rows, "d": len(own.names)}
    targets = own.targets(entry.target) if entry.target is not None else []
    for epsilon, delta in budgets:
        for seed in seeds_of(own) if seeds is None else range(seeds):
            asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "insecure_seed": seed, "threads": 1}
            begun = time.perf_counter()
            release = dpm.release(data, schema, **asked)
            seconds = time.perf_counter() - begun
            excess = [own.excess(release.ridge(target)) for target in targets]
            yield about | {
                "epsilon": epsilon,
                "delta": delta,
                "seed": seed,
                "mechanism": release.mechanism,
                "seconds": seconds,
                **own.errors(release),
                "ridge": float(np.median(excess)) if excess else math.nan,
                "first_ridge": excess[0] if excess else math.nan,
                "release_mean": math.nan if delta else own.mean_error(dpm.release_mean(data, schema, **asked).mean),
                "box": math.nan if delta else own.box_error(schema, epsilon),
            }


def file_of(label: str) -> Path:
    """The rows of one version."""
    return EVIDENCE / "tables" / f"default-errors-{label}.csv"


def update(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of one table, in place of those that the file has of it; numbers have four digits."""
    new = pd.DataFrame(rows)
    if file.exists():
        kept = pd.read_csv(file)
        new = pd.concat([kept[kept["table"] != rows[0]["table"]], new])
    new.to_csv(file, index=False, float_format="%.4g")


def gains(before: pd.DataFrame, after: pd.DataFrame, error: str) -> pd.DataFrame:
    """Error before over error after, one row a table and budget that both have; means over seeds, of excess risks medians."""
    over_seeds = "median" if "ridge" in error else "mean"
    about = after.groupby(CELL)[["kind", "n"]].first()
    pair = [one.groupby(CELL)[error].agg(over_seeds) for one in (before, after)]
    found = about.assign(before=pair[0], after=pair[1]).dropna()
    return found.assign(gain=found["before"] / found["after"]).reset_index()


def report(before: pd.DataFrame, after: pd.DataFrame) -> Iterator[str]:
    """Averages with the worst cells of each, and every cell below what is asked."""
    low = []
    yield from head("error | tables | cells | gain | asked | worst cells", "llrrrl")
    for (error, kind), (asked, least) in ASKED.items():
        found = gains(before, after, error)
        found = found[found["kind"] == kind] if kind else found
        if len(found):
            worst = "; ".join(f"{in_words(one)} {one.gain:.2f}" for one in found.nsmallest(3, "gain").itertuples())
            yield f"| {error} | {kind or 'all'} | {len(found)} | {gmean(found['gain']):.2f} | {asked:g} | {worst} |"
            low += [(error, one) for one in found[found["gain"] < least].itertuples()]
    yield ""
    for error, one in low:
        # Sampling errors of a mean in SDs, and of the SD of normal rows.
        sampling = {"means": 1.0 / math.sqrt(one.n), "sds": 1.0 / math.sqrt(2.0 * one.n)}.get(error, 0.0)
        excused = ", below a third of the sampling error" if one.after < sampling / 3.0 else ""
        yield f"- {error} of {in_words(one)}: {one.gain:.2f} ({one.before:.2g} → {one.after:.2g}{excused})"
    for label, rows in (("before", before), ("after", after)):
        held = rows[rows["n"] >= 4_000].groupby("kind")["coverage"].agg(["mean", "min"])
        words = ", ".join(f"{kind} {one['mean']:.3f} (least {one['min']:.3f})" for kind, one in held.iterrows())
        yield f"- own correlations within the privacy part, n ≥ 4,000, {label}: {words}"
    of_means = (after["release_mean"] / after["box"]).dropna()
    yield f"- release_mean over ideal K-norm noise on the box, tables without levels: {gmean(of_means):.2f}"


def in_words(cell: Any) -> str:
    return f"{cell.table} ({cell.epsilon:g}, {cell.delta:g})"


def main() -> None:
    """Measure, and compare with what was frozen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("design", "judge"), default="design")
    parser.add_argument("--label", default="now", help="what the measured version is called")
    parser.add_argument("--against", default="before", help="the label that gains are measured against")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    entries = collection(options.half)
    commit = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--", "src"], capture_output=True, text=True
    ).stdout.strip()
    for entry in entries:
        begun = time.perf_counter()
        rows = [{"label": options.label, "commit": commit} | row for row in measured(entry)]
        if rows:
            update(file_of(options.label), rows)
        print(f"{time.perf_counter() - begun:6.0f} s  {entry.name}", flush=True)
    files = [file_of(name) for name in (options.against, options.label)]
    if options.against != options.label and all(file.exists() for file in files):
        names = {entry.name for entry in entries}
        before, after = (rows[rows["table"].isin(names)] for rows in map(pd.read_csv, files))
        print("\n".join(report(before, after)))


if __name__ == "__main__":
    main()
