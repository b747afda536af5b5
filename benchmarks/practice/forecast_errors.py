"""Forecasts in the table's units against simulated releases: forecast/simulated, by table and mechanism.

``OMP_NUM_THREADS=1 python -m benchmarks.practice.forecast_errors`` writes the parts of ``docs/evidence/forecast-errors.md``.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables import Made, chosen
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.planning.forecast_noise import ForecastNoise

TABLES = (
    "wine", "airfoil", "diabetes", "adult-numbers", "loose-10000", "student-500", "clusters-500", "mixed-dependent-1000",
)  # fmt: skip
RELEASES = 60
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
WITHIN = 0.15

Moments = tuple[FloatArray, FloatArray, FloatArray]
"""Means, standard deviations (0 for a negative variance) and correlations."""


def moments(table: Made, mechanism: str, seed: int, options: dict[str, Any]) -> Moments:
    """Those of one release, before repair."""
    released = dpm.release(*table, mechanism=mechanism, insecure_seed=seed, threads=1, repair="none", **options)
    covariance = released.covariance
    roots = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.clip(covariance / np.outer(roots, roots), -1.0, 1.0)
    return released.mean, roots, correlation


def compared(
    name: str, table: Made, truth: Moments, n_rows: int, mechanism: str, options: dict[str, Any]
) -> Iterator[pd.DataFrame]:
    """Simulate, and forecast with three guesses: finite forecast/simulated by guess and measure, none where all is noise."""
    schema = table[1]
    runs = [moments(table, mechanism, seed, options) for seed in range(RELEASES)]
    simulated = {}
    for measure, exact, values in zip(MEASURES, truth, map(np.array, zip(*runs, strict=True)), strict=True):
        simulated[measure] = np.sqrt(np.nanmean((values - exact) ** 2, axis=0))
        simulated[measure + ALONE] = np.nanstd(values, axis=0)
    mean, deviation, _ = truth
    names, possible, (lower, upper) = schema.feature_names, deviation > 0.0, schema.feature_bounds
    shares = {name for column in schema.columns if not isinstance(column, dpm.Numeric) for name in column.feature_names}
    middle = dict(zip(names, np.clip(mean, lower, upper).tolist(), strict=True))
    widest = np.minimum(deviation, (upper - lower) / 2.0)
    spread = {name: float(widest[place]) for place, name in enumerate(names) if possible[place]}
    guesses: dict[str, dict[str, Any]] = {
        "sd and mean": dict(typical_sd=spread, typical_mean=middle),
        "sd": dict(typical_sd=spread),
        "none": {},
    }
    for guess, given in guesses.items():
        noise = dpm.forecast(schema, n_rows=n_rows, **options, **given).noise_of(mechanism)
        for measure, (values, known) in stated(noise, possible, [name in shares for name in names]).items():
            for kind in (measure, measure + ALONE):
                ratio = (values / simulated[kind])[known]
                found = pd.DataFrame({"ratio": ratio[np.isfinite(ratio)]})
                yield found.assign(table=name, mechanism=mechanism, guess=guess, measure=kind)


def stated(
    noise: ForecastNoise, possible: BoolArray, shares: Sequence[bool]
) -> dict[str, tuple[FloatArray, BoolArray]]:
    """Each measure's numbers and which of them are stated: those that are called noise are not.

    A variance is lost where none of its correlations is stated.
    """
    apart = ~np.isnan(noise.correlation)
    lost = apart.any(axis=1) & (noise.correlation_is_noise | ~apart).all(axis=1)
    pairs = np.tril(apart, -1) & np.outer(possible, possible) & ~noise.correlation_is_noise
    return {
        "mean": (noise.mean, possible & ~np.array(noise.description.mean_is_noise)),
        "sd": (noise.standard_deviation, possible & ~np.array(shares) & ~lost),
        "correlation": (noise.correlation, pairs),
    }


def by_table(found: pd.DataFrame, mechanisms: Sequence[str]) -> Iterable[str]:
    """A line a table and mechanism: the medians, least and largest over its columns and budgets."""
    guessed = [f"{measure}: {words} guessed" for words in ("sd and mean", "nothing") for measure in MEASURES]
    yield from head(f"table | mechanism | {' | '.join(guessed)}", "ll" + "r" * len(guessed))
    pooled = found.groupby(["table", "mechanism", "guess", "measure"])["ratio"].agg(["median", "min", "max"])
    cells = {key: f"{median:.2f} ({least:.2f} to {most:.2f})" for key, median, least, most in pooled.itertuples()}
    for table in found["table"].unique():
        for mechanism in mechanisms:
            keys = [(table, mechanism, guess, measure) for guess in ("sd and mean", "none") for measure in MEASURES]
            yield f"| {table} | {mechanism} | {' | '.join(cells.get(key, 'noise') for key in keys)} |"


def summary(found: pd.DataFrame, mechanisms: Sequence[str], of: str = "") -> Iterable[str]:
    yield from head(f"guessed | {' | '.join(MEASURES)}", "l" + "r" * len(MEASURES))
    for guess in ("sd and mean", "sd", "none"):
        cells = []
        for measure in MEASURES:
            asked = (found["guess"] == guess) & (found["measure"] == measure + of) & found["mechanism"].isin(mechanisms)
            here = found[asked]
            if here.empty:
                cells.append("noise")
                continue
            values, medians = here["ratio"], here.groupby(["table", "mechanism"])["ratio"].median()
            within, of_tables = (
                np.mean(np.abs(np.log(ratios)) <= np.log(1.0 + WITHIN)) for ratios in (values, medians)
            )
            low, high = np.quantile(values, [0.05, 0.95])
            cells.append(f"{values.median():.2f} ({low:.2f}, {high:.2f}); {within:.0%}, {of_tables:.0%}")
        yield f"| {guess} | {' | '.join(cells)} |"


if __name__ == "__main__":
    frames: list[pd.DataFrame] = []
    warnings.simplefilter("ignore")
    for entry in chosen(names=TABLES):
        started, table = time.perf_counter(), entry.make()
        # By a release whose noise is too small to matter.
        truth = moments(table, "gaussian", 0, dict(rho=1e18, neighbors="replace_one"))
        about: dict[str, Any] = dict(neighbors="replace_one", mechanism="gaussian", insecure_seed=0)
        n_rows = dpm.release(*table, rho=1.0, **about).n_rows
        for options, mechanisms in SETTINGS:
            for mechanism in mechanisms:
                frames += compared(entry.name, table, truth, n_rows, mechanism, options)
        print(f"{entry.name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    found = pd.concat(frames, ignore_index=True)
    parts = {
        "design additive summary": summary(found, ADDITIVE),
        "design standardized summary": summary(found, ("standardized",)),
        "design standardized alone summary": summary(found, ("standardized",), ALONE),
        "design additive": by_table(found, ADDITIVE),
        "design standardized": by_table(found, ("standardized",)),
    }
    for name, lines in parts.items():
        write_part(EVIDENCE / "forecast-errors.md", name, lines)
