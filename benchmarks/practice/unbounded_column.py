"""One column with no bound: errors of ``log-scale-histogram``, and whether a release warns where it is wrong.

``python -m benchmarks.practice.unbounded_column`` prints the tables of ``docs/unbounded-column.md``; some 15 minutes on one core.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms import CoinPress, LogScaleHistogram
from dpmoments.mechanisms.base import Mechanism, MomentShape
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema

TRIALS = 40
SIZES = (200, 1000, 10_000, 100_000)
EPSILONS = (0.1, 1.0, 3.0)
OFFSETS = (0.0, 1e3, 1e9)
SCALES = (1e-6, 1.0, 1e6)
FAILED = 1.0
"""A release has failed where its mean is more than a standard deviation off, or its standard deviation by a factor e."""

Drawn = Callable[[np.random.Generator, int], FloatArray]
COLUMNS: Mapping[str, Drawn] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "t, 3 degrees": lambda rng, n: rng.standard_t(3, n) / 3.0**0.5,
    "uniform": lambda rng, n: rng.uniform(-(3.0**0.5), 3.0**0.5, n),
    "Laplace": lambda rng, n: rng.laplace(size=n) / 2.0**0.5,
    "lognormal": lambda rng, n: np.exp(rng.normal(size=n)) / 2.161,
    "two points": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "90 % zeros": lambda rng, n: np.where(rng.random(n) < 0.1, rng.exponential(1.0, n), 0.0) / 0.436,
    "constant": lambda _, n: np.zeros(n),
}
"""Columns of standard deviation 1, but the last. Constants were set on the first two."""


@dataclass(frozen=True)
class Cell:
    """Errors of some releases.

    Attributes
    ----------
    mean : ndarray
        |released mean − mean of the rows| in standard deviations of the rows.
    deviation : ndarray
        |ln(released standard deviation / that of the rows)|, infinite where the released variance is not positive.
    sampling : tuple of float
        Medians of what sampling does to both, without privacy.
    warned : ndarray of bool
    """

    mean: FloatArray
    deviation: FloatArray
    warned: np.ndarray

    @property
    def failed(self) -> np.ndarray:
        """Releases that are no answer."""
        bad: np.ndarray = (self.mean > FAILED) | (self.deviation > FAILED)
        return bad


def budget_of(kind: str, epsilon: float) -> PrivacyBudget:
    """ε, (ε, 10⁻⁶), or ρ = ε²/2."""
    if kind == "ε":
        return PrivacyBudget.pure(epsilon)
    return PrivacyBudget.approximate(epsilon, 1e-6) if kind == "(ε, δ)" else PrivacyBudget.zcdp(epsilon**2 / 2.0)


def released(
    mechanism: Mechanism, values: FloatArray, budget: PrivacyBudget, neighbors: Neighbors, seed: int
) -> tuple[float, float, bool]:
    """Mean and variance of one release, and whether it warns."""
    n_rows = len(values) if neighbors.table_size_is_public else None
    plan = mechanism.plan(MomentShape(1, n_rows=n_rows, row_norm=None), budget, neighbors)
    rows = Rows.of(values[:, None], Schema.unbounded(1), neighbors=neighbors, threads=1)
    noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))
    return float(noisy.mean[0]), float(noisy.covariance[0, 0]), bool(noisy.diagnostics["warnings"])


def cell(
    column: str,
    n: int,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    *,
    offset: float = 0.0,
    scale: float = 1.0,
    mechanism: Mechanism | None = None,
    trials: int = TRIALS,
    first_seed: int = 0,
) -> Cell:
    """Releases of ``trials`` columns."""
    errors, warned = np.empty((trials, 2)), np.empty(trials, dtype=bool)
    for trial in range(trials):
        values = scale * (offset + COLUMNS[column](np.random.default_rng(first_seed + trial), n))
        spread = float(np.std(values - values[0])) or scale  # about a row: beside 10⁹ squares lose the spread
        center = values[0] + float(np.mean(values - values[0]))
        mean, variance, warned[trial] = released(
            mechanism or LogScaleHistogram(), values, budget, neighbors, first_seed + trial
        )
        ratio = np.log(max(variance, 0.0) ** 0.5 / spread) if variance > 0.0 else np.inf
        errors[trial] = abs(mean - center) / spread, abs(ratio)
    return Cell(errors[:, 0], errors[:, 1], warned)
