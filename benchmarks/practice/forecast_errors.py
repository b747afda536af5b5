"""Forecasts in the table's units against simulated releases: forecast/simulated, by table and mechanism.

    OMP_NUM_THREADS=1 python -m benchmarks.practice.forecast_errors [--releases 200] [--half judge] [--write]

Defaults were chosen on the design tables, and the judge tables looked at when they were frozen. ``--write`` makes the parts of
``docs/evidence/forecast-errors.md``. DPMOMENTS_DATA names the folder with POPRES.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.tables import Made, chosen, made
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.planning.forecast_noise import ForecastNoise

DESIGN = (
    "wine", "airfoil", "diabetes", "adult-numbers", "loose-10000", "student-500", "clusters-500", "mixed-dependent-1000",
)  # fmt: skip
JUDGE = (
    "iris", "popres", "loose-3000", "tight-3000", "lognormal-5000", "student-10000", "clusters-2000", "zeros-2000",
    "mixed-dependent-10000", "levels-5000",
)  # fmt: skip
PURE = ("matrix-laplace", "isotropic", "laplace", "standardized")
GAUSSIAN = ("gaussian", "standardized")
SETTINGS: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    (dict(epsilon=1.0, neighbors="add_remove"), PURE),
    (dict(epsilon=10.0, neighbors="replace_one"), PURE),
    (dict(rho=0.5, neighbors="add_remove"), GAUSSIAN),
    (dict(epsilon=1.0, delta=1e-6, neighbors="add_remove"), GAUSSIAN),
)
ADDITIVE = ("gaussian", "matrix-laplace", "isotropic", "laplace")
MEASURES = ("mean", "sd", "correlation")
ALONE = " alone"
"""Marks the spread of the releases about their own mean: noise without what clipping moves, which standardized does."""
GUESSES = ("sd and mean", "sd", "none")
WITHIN = 0.15


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact moments of a table, features of no spread left out."""

    mean: FloatArray
    deviation: FloatArray
    correlation: FloatArray
    n_rows: int

    @classmethod
    def of(cls, table: Made) -> Truth:
        """By a release whose noise is too small to matter."""
        frame, schema = table
        found = _estimates(frame, schema, "gaussian", 0, dict(rho=1e18, neighbors="replace_one"))
        released = dpm.release(frame, schema, rho=1.0, neighbors="replace_one", mechanism="gaussian", insecure_seed=0)
        return cls(*found, n_rows=released.n_rows)


def _estimates(
    frame: Any, schema: dpm.Schema, mechanism: str, seed: int, options: dict[str, Any]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means, standard deviations (0 for a negative variance) and correlations of one release, before repair."""
    released = dpm.release(frame, schema, mechanism=mechanism, insecure_seed=seed, threads=1, repair="none", **options)
    covariance = released.covariance
    variances = np.diag(covariance)
    roots = np.sqrt(np.maximum(variances, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.clip(covariance / np.outer(roots, roots), -1.0, 1.0)
    return released.mean, roots, correlation


@dataclass(frozen=True, eq=False)
class Ratios:
    """forecast/simulated of one table, mechanism and setting, by guess and measure; empty where all is noise."""

    table: str
    mechanism: str
    setting: str
    found: dict[tuple[str, str], FloatArray]
    of_noise: float


def compared(name: str, table: Made, truth: Truth, mechanism: str, options: dict[str, Any], releases: int) -> Ratios:
    """Simulate, and forecast with three guesses."""
    frame, schema = table
    runs = [_estimates(frame, schema, mechanism, seed, options) for seed in range(releases)]
    means, deviations, correlations = (np.array(values) for values in zip(*runs, strict=True))
    simulated = {
        "mean": np.sqrt(np.mean((means - truth.mean) ** 2, axis=0)),
        "sd": np.sqrt(np.mean((deviations - truth.deviation) ** 2, axis=0)),
        "correlation": np.sqrt(np.nanmean((correlations - truth.correlation) ** 2, axis=0)),
        "mean alone": means.std(axis=0),
        "sd alone": deviations.std(axis=0),
        "correlation alone": np.nanstd(correlations, axis=0),
    }
    names = schema.feature_names
    possible = truth.deviation > 0.0
    shares = {name for column in schema.columns if not isinstance(column, dpm.Numeric) for name in column.feature_names}
    spread = {name: float(truth.deviation[place]) for place, name in enumerate(names) if possible[place]}
    middle = {name: float(truth.mean[place]) for place, name in enumerate(names)}
    lower, upper = schema.feature_bounds
    middle = {name: float(np.clip(middle[name], lower[place], upper[place])) for place, name in enumerate(names)}
    spread = {name: min(value, float((upper - lower)[names.index(name)]) / 2.0) for name, value in spread.items()}
    guesses: dict[str, dict[str, Any]] = {
        "sd and mean": dict(typical_sd=spread, typical_mean=middle),
        "sd": dict(typical_sd=spread),
        "none": {},
    }
    found: dict[tuple[str, str], FloatArray] = {}
    of_noise = 0.0
    for guess, given in guesses.items():
        forecast = dpm.forecast(schema, n_rows=truth.n_rows, **options, **given)
        noise = forecast.noise_of(mechanism)
        for measure, (values, known) in _forecast(noise, possible, [name in shares for name in names]).items():
            found[guess, measure] = (values / simulated[measure])[known]
            found[guess, measure + ALONE] = (values / simulated[measure + ALONE])[known]
        if guess == "sd and mean":
            of_noise = float(_lost(noise)[possible].mean())
    return Ratios(name, mechanism, _in_words(options), found, of_noise)


def _forecast(
    noise: ForecastNoise, possible: BoolArray, shares: Sequence[bool]
) -> dict[str, tuple[FloatArray, BoolArray]]:
    """Each measure's numbers and which of them are stated: those that are called noise are not."""
    pairs = np.tril(np.ones_like(noise.correlation, dtype=bool), -1) & ~np.isnan(noise.correlation)
    pairs &= possible[:, None] & possible[None, :] & ~noise.correlation_is_noise
    numbers = possible & ~np.array(shares)
    return {
        "mean": (noise.mean, possible & ~np.array(noise.description.mean_is_noise)),
        "sd": (noise.standard_deviation, numbers & ~_lost(noise)),
        "correlation": (noise.correlation, pairs),
    }


def _lost(noise: ForecastNoise) -> BoolArray:
    """Features whose variance is lost: none of their correlations is stated."""
    apart = ~np.isnan(noise.correlation)
    return np.asarray(apart.any(axis=1) & (noise.correlation_is_noise | ~apart).all(axis=1))


def _in_words(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


def lines_of(results: Sequence[Ratios], mechanisms: Sequence[str]) -> Iterable[str]:
    """One table of the page: a line a table and mechanism, the medians, least and largest over its columns and budgets."""
    guessed = [f"{measure}: {words} guessed" for words in ("sd and mean", "nothing") for measure in MEASURES]
    yield f"| table | mechanism | {' | '.join(guessed)} |"
    yield "| --- | --- |" + " ---: |" * (2 * len(MEASURES))
    for table in dict.fromkeys(result.table for result in results):
        for mechanism in mechanisms:
            cells = []
            for guess in ("sd and mean", "none"):
                for measure in MEASURES:
                    values = _pooled(results, guess, measure, table=table, mechanism=mechanism)
                    cells.append(
                        f"{np.median(values):.2f} ({values.min():.2f} to {values.max():.2f})"
                        if len(values)
                        else "noise"
                    )
            yield f"| {table} | {mechanism} | {' | '.join(cells)} |"


def _pooled(
    results: Sequence[Ratios], guess: str, measure: str, *, table: str | None = None, mechanism: str | None = None
) -> FloatArray:
    chosen_ones = [
        result.found[guess, measure]
        for result in results
        if table in (None, result.table) and mechanism in (None, result.mechanism)
    ]
    values = np.concatenate(chosen_ones) if chosen_ones else np.zeros(0)
    return values[np.isfinite(values)]


def summary(results: Sequence[Ratios], mechanisms: Sequence[str], of: str = "") -> Iterable[str]:
    yield f"| guessed | {' | '.join(MEASURES)} |"
    yield "| --- |" + " ---: |" * len(MEASURES)
    for guess in GUESSES:
        cells = []
        for measure in MEASURES:
            values = np.concatenate(
                [_pooled(results, guess, measure + of, mechanism=mechanism) for mechanism in mechanisms]
            )
            medians = np.array(
                [
                    np.median(ratios)
                    for table in dict.fromkeys(result.table for result in results)
                    for mechanism in mechanisms
                    if len(ratios := _pooled(results, guess, measure + of, table=table, mechanism=mechanism))
                ]
            )
            if not len(values):
                cells.append("noise")
                continue
            within, of_tables = (
                np.mean(np.abs(np.log(ratios)) <= np.log(1.0 + WITHIN)) for ratios in (values, medians)
            )
            low, high = np.quantile(values, [0.05, 0.95])
            cells.append(f"{np.median(values):.2f} ({low:.2f}, {high:.2f}); {within:.0%}, {of_tables:.0%}")
        yield f"| {guess} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, and write the page's parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--half", choices=("design", "judge"), default="judge")
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    names = arguments.tables or (DESIGN if arguments.half == "design" else JUDGE)
    results: list[Ratios] = []
    warnings.simplefilter("ignore")
    for entry in chosen(names=names):
        table = made(entry)
        if table is None:
            continue
        started, truth = time.perf_counter(), Truth.of(table)
        for options, mechanisms in SETTINGS:
            results += [
                compared(entry.name, table, truth, mechanism, options, arguments.releases) for mechanism in mechanisms
            ]
        print(f"{entry.name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    parts = {
        f"{arguments.half} additive summary": list(summary(results, ADDITIVE)),
        f"{arguments.half} standardized summary": list(summary(results, ("standardized",))),
        f"{arguments.half} standardized alone summary": list(summary(results, ("standardized",), ALONE)),
        f"{arguments.half} additive": list(lines_of(results, ADDITIVE)),
        f"{arguments.half} standardized": list(lines_of(results, ("standardized",))),
    }
    for name, lines in parts.items():
        print(f"\n{name}\n" + "\n".join(lines))
        if arguments.write:
            write_part(EVIDENCE / "forecast-errors.md", name, lines)


if __name__ == "__main__":
    main()
