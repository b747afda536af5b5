"""Typical ranges, right and wrong, against none: what they gain and what they cost, on real and synthetic tables.

    OMP_NUM_THREADS=1 python -m benchmarks.practice.typical_ranges

Writes its part of ``docs/evidence/forecast-errors.md``.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables.entry import correlations, plain_rows
from benchmarks.practice.typical_tables import Table, looked_at_tables, tables, unseen_tables
from dpmoments.base.values import FloatArray
from dpmoments.schema.columns import Column, Numeric
from dpmoments.schema.schema import Schema

BUDGETS = [(epsilon, delta) for delta in (0.0, 1e-9) for epsilon in (0.3, 1.0, 3.0, 10.0)]
SEEDS = 20
METRICS = ("correlations", "covariance in own sd")


@dataclass(frozen=True, slots=True)
class Guess:
    """A guess of every numeric column's range; right is the mean ± 2 sd."""

    name: str
    width: float = 1.0  # factor of the right width
    # Whether a fair coin says, for each column in each run, if the width is too large or too small by that factor.
    random: bool = False
    shift: float = 0.0  # distance of the middle from the mean, in sd; a fair coin says to which side
    first: bool = False  # whether the first column's width alone is wrong

    def of(self, column: Numeric, cells: FloatArray, seed: int, place: int) -> tuple[float, float]:
        """The range, rounded as a person would, its middle inside the bounds."""
        mean, deviation = float(cells.mean()), float(cells.std())
        of_width, of_place = np.random.default_rng([seed, place]).choice([-1.0, 1.0], size=2)
        width = 1.0 if self.first and place > 0 else self.width ** (of_width if self.random else 1.0)
        middle = float(np.clip(mean + self.shift * of_place * deviation, *column.bounds))
        return rounded(middle - 2.0 * width * deviation, middle + 2.0 * width * deviation)


GUESSES = (
    Guess("right"),
    Guess("2 × too wide", width=2.0),
    Guess("2 × too narrow", width=0.5),
    Guess("width off by 2 ×", width=2.0, random=True),
    Guess("place off by 1 sd", shift=1.0),
    Guess("both off", width=2.0, random=True, shift=1.0),
    Guess("one 1000 × too narrow", width=1e-3, first=True),
)
WITHIN_PROMISE = {"2 × too wide", "2 × too narrow", "width off by 2 ×", "place off by 1 sd", "both off"}


def guessed(table: Table, guess: Guess, seed: int) -> Schema:
    columns: list[Column] = []
    for place, column in enumerate(table.schema.columns):
        if isinstance(column, Numeric):
            cells = table.cells(column)
            if cells.std() > 0:
                column = replace(column, typical=guess.of(column, cells, seed, place))
        columns.append(column)
    return Schema(*columns)


def rounded(lower: float, upper: float) -> tuple[float, float]:
    """The ends to the nearest multiples of a power of ten, the largest that is at most a quarter of the width."""
    step = 10.0 ** math.floor(math.log10((upper - lower) / 4.0))
    return step * round(lower / step), step * round(upper / step)


def errors(covariance: FloatArray, truth: FloatArray) -> list[float]:
    """Relative Frobenius errors: of the correlations, and of the covariance in each column's own sd."""
    deviations = np.sqrt(np.diag(truth))
    ideal = truth / np.outer(deviations, deviations)
    correlation = correlations(covariance)
    np.fill_diagonal(correlation, 1.0)
    found = [
        np.linalg.norm(correlation - ideal) / np.linalg.norm(ideal),
        np.linalg.norm((covariance - truth) / np.outer(deviations, deviations)) / np.linalg.norm(ideal),
    ]
    return [float(value) for value in found]


def measured(table: Table, schema_of: Callable[[int], Schema]) -> FloatArray:
    """Errors, shape (budgets, seeds, metrics)."""
    rows = plain_rows(table.frame, table.schema)
    kept = rows.std(axis=0) > 0  # a level that never occurs has no correlation
    truth = np.cov(rows.T, bias=True)[np.ix_(kept, kept)]
    found = np.empty((len(BUDGETS), SEEDS, len(METRICS)))
    options: dict[str, Any] = dict(neighbors="add_remove", mechanism=dpm.mechanisms.Auto(rule="least-error"), threads=1)
    warnings.simplefilter("ignore")
    for seed in range(SEEDS):
        schema = schema_of(seed)
        for place, (epsilon, delta) in enumerate(BUDGETS):
            asked = options | {"epsilon": epsilon, "delta": delta, "insecure_seed": 1000 * place + seed}
            released = dpm.release(table.frame, schema, **asked)
            found[place, seed] = errors(released.covariance[np.ix_(kept, kept)], truth)
    return found


Errors = dict[str, FloatArray]
"""Without typical ranges (""), and with each guess: geometric means over ε, arrays of shape (pure and δ, metrics)."""


def errors_on(table: Table) -> Errors:
    schemas = {"": lambda _: table.schema} | {guess.name: partial(guessed, table, guess) for guess in GUESSES}
    logs = {name: np.log(measured(table, schema_of).mean(axis=1)) for name, schema_of in schemas.items()}
    return {name: np.exp([half.mean(axis=0) for half in np.split(each, 2)]) for name, each in logs.items()}


def rows(tables_of: str, found: dict[str, Errors]) -> Iterable[str]:
    """A line a metric and table: pure ε and δ in each cell."""
    for (metric, name), (table, of) in product(enumerate(METRICS), found.items()):
        without = of[""][:, metric]
        cells = [", ".join(f"{error:.3g}" for error in without)]
        cells += [", ".join(f"{gain:.2f}" for gain in without / of[guess.name][:, metric]) for guess in GUESSES]
        yield f"| {tables_of} | {name} | {table} | {' | '.join(cells)} |"


def summary(found: dict[str, Errors]) -> str:
    """The least, the mean and the largest gain in each metric."""
    words = []
    for metric, name in enumerate(METRICS):
        right, wrong = (
            np.array([(of[""] / of[guess])[:, metric] for of in found.values() for guess in guesses])
            for guesses in (["right"], WITHIN_PROMISE)
        )
        gained, kept = (float(np.exp(np.log(gains).mean())) for gains in (right, wrong))
        words.append(
            f"{name[0].upper()}{name[1:]}: right guesses × {gained:.2f} (from {right.min():.2f} to {right.max():.2f}), "
            f"wrong ones × {kept:.2f} (from {wrong.min():.2f})."
        )
    return " ".join(words)


if __name__ == "__main__":
    lines: list[str] = []
    names = " | ".join(guess.name for guess in GUESSES)
    table_lines = [*head(f"tables | error of | table | error without | {names}", "lllr" + "r" * len(GUESSES))]
    parts = {
        "Tables that two constants were chosen on": tables(),
        "Tables of a second round, which gave the third": looked_at_tables(),
        "Tables unseen until then": unseen_tables(),
    }
    for heading, those in parts.items():
        found: dict[str, Errors] = {}
        for table in those:
            started = time.perf_counter()
            found[table.name] = errors_on(table)
            print(f"{table.name}: {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        lines.append(f"- **{heading}.** {summary(found)}")
        table_lines += rows(heading, found)
    part = [f"{SEEDS} releases a figure.", "", *lines, "", *table_lines]
    write_part(EVIDENCE / "forecast-errors.md", "measured", part)
