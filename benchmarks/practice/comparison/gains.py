"""What one contender gains over another, from releases at the same seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.practice.comparison.contenders import Cell
from benchmarks.practice.comparison.records import Record

__all__ = ["Gain", "cell_gains", "geometric_mean"]

LEAST_ERROR = 1e-12
"""Errors below it count as this: rounding."""


@dataclass(frozen=True)
class Gain:
    """error of the first / error of the second: above 1 where the second is better.

    Attributes
    ----------
    logs : ndarray of shape (seeds,)
        Its logarithm seed by seed.
    """

    logs: npt.NDArray[np.float64]

    @property
    def factor(self) -> float:
        """The geometric mean over seeds; NaN where nothing was measured."""
        return math.exp(float(self.logs.mean())) if len(self.logs) else math.nan

    @property
    def log_error(self) -> float:
        """Standard error of the mean logarithm."""
        return float(self.logs.std(ddof=1) / math.sqrt(len(self.logs))) if len(self.logs) > 1 else math.nan

    @property
    def standard_error(self) -> float:
        """Of the factor."""
        return self.factor * self.log_error

    def is_below(self, level: float) -> bool:
        """By more than its standard error."""
        return self.factor + self.standard_error < level

    def __str__(self) -> str:
        return "–" if math.isnan(self.factor) else f"{self.factor:.2f} ± {self.standard_error:.2f}"


def cell_gains(records: Iterable[Record], first: str, second: str, kind: str) -> dict[Cell, Gain]:
    """Cell by cell of one table, over the seeds that both have; cells where an error is not defined are left out."""
    by_name: dict[str, dict[Cell, Record]] = {first: {}, second: {}}
    for record in records:
        if record.contender in by_name:
            by_name[record.contender][record.cell] = record
    found = {}
    for cell, record in by_name[first].items():
        other = by_name[second].get(cell)
        if other is None:
            continue
        seeds = min(record.seeds, other.seeds)
        before, after = (np.maximum(one.errors(kind, seeds), LEAST_ERROR) for one in (record, other))
        logs = np.log(before) - np.log(after)
        if np.isfinite(logs).all():
            found[cell] = Gain(logs)
    return found


def geometric_mean(gains: Iterable[Gain]) -> Gain:
    """Seed by seed, over cells or tables: the noise of one seed is alike in many of them, so that they are not independent."""
    kept = [gain.logs for gain in gains if len(gain.logs)]
    if not kept:
        return Gain(np.empty(0))
    seeds = min(map(len, kept))
    return Gain(np.mean([logs[:seeds] for logs in kept], axis=0))
