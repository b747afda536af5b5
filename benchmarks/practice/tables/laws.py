"""Rows of known laws, from which the synthetic families are put together."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Made

FloatArray = npt.NDArray[np.float64]


def correlated_normals(rng: np.random.Generator, n: int, d: int, correlation: float = 0.5) -> FloatArray:
    """Standard normal columns, every pair with that correlation, shape (n, d)."""
    shared = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, d))
    return np.asarray(np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own, dtype=np.float64)


def with_target(rng: np.random.Generator, columns: FloatArray, noise: float = 0.5) -> FloatArray:
    """The columns, and one more: half the sum of the first three, in their standard deviations, and normal noise."""
    first = columns[:, :3]
    spread = np.maximum(first.std(axis=0), 1e-12)
    target = 0.5 * ((first - first.mean(axis=0)) / spread).sum(axis=1) + noise * rng.standard_normal(len(columns))
    return np.column_stack([columns, target])


def within(columns: FloatArray, lower: float, upper: float) -> Made:
    """Columns x0, x1, … with the same public bounds; ``y`` for the last, between −10 and 10."""
    d = columns.shape[1]
    names = [*(f"x{j}" for j in range(d - 1)), "y"]
    schema = dpm.Schema(*(dpm.Numeric(name, lower, upper) for name in names[:-1]), dpm.Numeric("y", -10, 10))
    return pd.DataFrame(columns, columns=names), schema
