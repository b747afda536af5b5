"""Errors of the rules for missing values: ``python -m benchmarks.practice.missing_values`` writes the table of a page.

Ten columns of a normal copula with correlations of 0.5: five normal ones and five lognormal ones, which fill a small part of
their bounds. Values are missing completely at random, so that the complete table is the truth for every rule.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part

RULES = ("drop", "center", "fill", "available", "available, no fill")
_FILLED = ("fill", "available")
EPSILONS = (0.5, 1.0, 3.0)
ROWS = (1_000, 20_000)
SEEDS = 20
N_COLUMNS = 10


@dataclass(frozen=True)
class Pattern:
    """Columns that lack values, and the share that each lacks."""

    columns: int
    share: float


PATTERNS = (Pattern(1, 0.03), Pattern(3, 0.03), Pattern(9, 0.03), Pattern(1, 0.2))


def schema(rule: str, lacking: int) -> dpm.Schema:
    columns = []
    for index in range(N_COLUMNS):
        lower, upper, fill = (0.0, 120.0, 45.0) if index % 2 else (0.0, 200_000.0, 25_000.0)
        kept = rule.partition(",")[0] if index < lacking else "error"
        columns.append(dpm.Numeric(f"x{index}", lower, upper, kept, fill=fill if kept == rule in _FILLED else None))
    return dpm.Schema(*columns)


def table(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    scores = np.sqrt(0.5) * (rng.standard_normal((n_rows, 1)) + rng.standard_normal((n_rows, N_COLUMNS)))
    rows = np.empty((n_rows, N_COLUMNS))
    rows[:, 1::2] = np.clip(40.0 + 12.0 * scores[:, 1::2], 0.0, 120.0)
    rows[:, ::2] = np.clip(30_000.0 * np.exp(0.5 * scores[:, ::2] - 0.125), 0.0, 200_000.0)
    return rows


def errors(n_rows: int, pattern: Pattern, rule: str, epsilon: float, seed: int) -> np.ndarray:
    """Return the errors of one release, shape (3, k).

    Of means, in standard deviations; of standard deviations, relative; and of correlations. Of the columns that lack values.
    """
    rng = np.random.default_rng([n_rows, pattern.columns, int(100 * pattern.share), seed])
    rows = table(n_rows, rng)
    mean, deviation, correlation = rows.mean(axis=0), rows.std(axis=0), np.corrcoef(rows.T)
    lacking = slice(0, pattern.columns)
    rows[:, lacking][rng.random((n_rows, pattern.columns)) < pattern.share] = np.nan
    release = dpm.release(rows, schema(rule, pattern.columns), epsilon=epsilon, insecure_seed=seed)
    spread = np.sqrt(np.diag(release.covariance))
    off = (np.nan_to_num(release.correlation) - correlation)[lacking, -1]
    return np.array([((release.mean - mean) / deviation)[lacking], (spread / deviation - 1.0)[lacking], off])


def lines() -> Iterator[str]:
    names = [f"{name}: {error}" for name in ("mean", "SD", "correlation") for error in ("bias", "RMSE")]
    yield f"| rows | columns lacking | ε | rule | {' | '.join(names)} |"
    yield "| ---: | --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for n_rows in ROWS:
        for pattern in PATTERNS:
            lack = f"{pattern.columns} × {pattern.share:.0%}".replace("%", " %")
            for epsilon in EPSILONS:
                for rule in RULES:
                    found = np.array([errors(n_rows, pattern, rule, epsilon, seed) for seed in range(SEEDS)])
                    # the two kinds of columns have biases of opposite signs: their size is what counts
                    bias = np.abs(found.mean(axis=0)).mean(axis=1)
                    rmse = np.sqrt((found**2).mean(axis=(0, 2)))
                    cells = " | ".join(f"{b:.3f} | {r:.3f}" for b, r in zip(bias, rmse, strict=True))
                    yield f"| {n_rows:,} | {lack} | {epsilon:g} | `{rule}` | {cells} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_part(EVIDENCE / "missing-values.md", "measured", lines())
