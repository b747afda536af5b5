"""Weighted answers of samples drawn with unequal chances from a known population: bias, coverage, and cost.

``python -m benchmarks.practice.survey_weights`` writes the table of ``docs/goals.md``, in hours: a line per population, number of
rows, ε and answer. The schools are ``apipop`` of R's `survey`, which must be installed.
"""

from __future__ import annotations

import io
import subprocess
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from dpmoments.analysis.description import described
from dpmoments.analysis.group_means import means_by
from dpmoments.base.values import FloatArray

# Frozen before the first sample was drawn.
SAMPLES, COSTS, SIZES, BUDGETS, SEED = 200, 8, (3_000, 10_000, 1_000), (0.5, 1.0, 3.0), 54
_TABLE = Path(__file__).parents[2] / "docs" / "evidence" / "tables" / "survey-weights.csv"


@dataclass(frozen=True)
class Population:
    """A population, its schema without weights, and the chances of its rows."""

    rows: pd.DataFrame
    columns: tuple[Any, ...]
    chances: FloatArray
    mean: str
    share: str
    by: str
    regressors: tuple[str, ...]


def _cps() -> Population:
    """Adults of the Current Population Survey of 1994; chances fall with their weight, and by group."""
    table = dpm.datasets.adult()
    rows = pd.DataFrame({name: np.asarray(table.frame[name]) for name in table.frame.schema.names})
    kept = ("age", "education-num", "hours-per-week", "race", "sex", "income")
    columns = tuple(column for column in table.schema.columns if column.name in kept)
    black = (rows["race"] == "Black").to_numpy()
    chances = (rows["hours-per-week"] + 20.0).to_numpy() * np.where(black, 2.0, 1.0)
    chances *= np.random.default_rng(SEED).gamma(4.0, 0.25, len(rows)) + 0.2
    regressors = ("age", "education-num")
    return Population(rows[list(kept)], columns, chances, "hours-per-week", "race=Black", "sex", regressors)


def _schools() -> Population:
    """Schools of California; chances rise with enrollment, which goes with the other columns."""
    script = "suppressMessages(library(survey)); data(api); write.csv(apipop, stdout())"
    printed = subprocess.run(["Rscript", "--vanilla", "-e", script], capture_output=True, text=True, check=True).stdout
    rows = pd.read_csv(io.StringIO(printed)).dropna(subset=["enroll", "api00", "meals", "ell", "full"])
    rows["awards"] = rows["awards"] == "Yes"
    columns = (
        dpm.Numeric("api00", 200, 1_000),
        dpm.Numeric("meals", 0, 100),
        dpm.Numeric("ell", 0, 100),
        dpm.Numeric("full", 0, 100),
        dpm.Boolean("awards"),
        dpm.Categorical("stype", ["E", "H", "M"]),
    )
    names = [column.name for column in columns]
    chances = rows["enroll"].to_numpy(float)
    return Population(rows[names], columns, chances, "api00", "stype=H", "awards", ("meals", "ell"))


POPULATIONS: dict[str, Callable[[], Population]] = {"CPS": _cps, "schools": _schools}
Answers = dict[str, tuple[float, float, float]]


def _answers(population: Population, release: dpm.MomentRelease) -> Answers:
    """Return value and interval of each question."""
    found = described(release, tested=False)[[population.mean, population.share]]
    ends, means = found.conf_int(), found.mean
    assert means is not None
    share = release.estimate(lambda mean, _: mean[0], [population.share])
    by_group = means_by(release, population.by, [population.mean], 0.95, tested=False).differences
    difference, lower, upper = (float(part[0, 0]) for part in (by_group.difference, by_group.lower, by_group.upper))
    fit = release.ols(population.mean, list(population.regressors))
    low, high = fit.estimates[-len(fit.coefficients)].lower, fit.estimates[-len(fit.coefficients)].upper
    return {
        "mean": (float(means[0]), *map(float, ends[0])),
        "share": (float(means[1]), *map(float, ends[1])),
        "share by estimate": (float(share.value[0]), float(share.lower[0]), float(share.upper[0])),
        "difference": (difference, lower, upper),
        "slope": (float(fit.coefficients[0]), low, high),
    }


def _release(schema: dpm.Schema, rows: pd.DataFrame, epsilon: float, seed: int) -> dpm.MomentRelease:
    return dpm.release(rows, schema, epsilon=epsilon, insecure_seed=seed, threads=1)


def _sample(name: str, population: Population, n: int, index: int) -> Iterator[list[str | float]]:
    """Draw one sample and return its answers for each ε."""
    rng = np.random.default_rng([SEED, n, index])
    chances = population.chances / population.chances.sum()
    chosen = rng.choice(len(chances), n, p=chances)
    rows = population.rows.iloc[chosen].reset_index(drop=True)
    unweighted = dpm.Schema(*population.columns)
    weight = dpm.SamplingWeight("weight", population=float(len(chances)), sample_size=n)
    for epsilon in BUDGETS:
        weighted = rows.assign(weight=1.0 / (n * chances[chosen]))
        released = _release(dpm.Schema(*population.columns, weight), weighted, epsilon, index)
        cost = np.nan
        if index < COSTS:
            plain = _release(unweighted, rows, epsilon, index)
            noise = [described(each, tested=False).mean_noise for each in (released, plain)]
            cost = float(np.median(noise[0] / noise[1]))
        for question, (value, low, high) in _answers(population, released).items():
            yield [name, n, epsilon, index, question, value, low, high, cost]


def main() -> None:
    """Write the table: bias in SDs of the answers, coverage, and noise over that without weights."""
    names = ["population", "n", "epsilon", "sample", "answer", "value", "lower", "upper", "noise_ratio"]
    populations = {name: make() for name, make in POPULATIONS.items()}
    each = product(populations.items(), SIZES, range(SAMPLES))
    samples = pd.DataFrame([line for of, n, index in each for line in _sample(*of, n, index)], columns=names)
    truths = {
        name: _answers(each, _release(dpm.Schema(*each.columns), each.rows, 1e11, 0))
        for name, each in populations.items()
    }
    lines = []
    for (name, n, epsilon, answer), group in samples.groupby(["population", "n", "epsilon", "answer"], sort=False):
        truth, *_ = truths[str(name)][str(answer)]
        known = group[np.isfinite(group["value"])]
        held = (group["lower"] <= truth) & (truth <= group["upper"])
        bias = float((known["value"] - truth).mean() / known["value"].std())
        ratio = float(group["noise_ratio"].median())
        lines.append([name, n, epsilon, answer, len(group), *(f"{x:.3f}" for x in (bias, held.mean(), ratio))])
    head = ["population", "n", "epsilon", "answer", "samples", "bias_in_sd", "coverage", "noise_ratio"]
    pd.DataFrame(lines, columns=head).to_csv(_TABLE, index=False)


if __name__ == "__main__":
    warnings.simplefilter("ignore", dpm.ReleaseWarning)
    main()
