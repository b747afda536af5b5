"""One contingency table: errors of ``release_counts`` and of a release's ``cross_table``, over those of a plain histogram.

``python -m benchmarks.practice.contingency_tables`` prints the table of ``docs/evidence/contingency-tables.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from dpmoments.base.arrays import FloatArray

TRIALS = 200
BUDGETS: dict[str, dict[str, Any]] = {
    "ε = 1": dict(epsilon=1.0),
    "(1, 10⁻⁶)": dict(epsilon=1.0, delta=1e-6),
    "ρ = 0.1": dict(rho=0.1),
    "ε = 0.1": dict(epsilon=0.1),
}
SHAPES = {"2 × 2": (2, 2), "9 × 3": (9, 3), "9 × 3, of 60 rows": (9, 3)}


def made_table(name: str, rng: np.random.Generator) -> tuple[pd.DataFrame, dpm.Schema, FloatArray]:
    """Return dependent rows, their schema and the exact counts."""
    k, c = SHAPES[name]
    n = 60 if "60" in name else 20_000
    shares = np.outer(0.7 ** np.arange(k), 0.6 ** np.arange(c)) + 0.02 * np.eye(k, c)
    cells = rng.choice(k * c, n, p=(shares / shares.sum()).ravel())
    frame = pd.DataFrame({"one": cells // c, "other": cells % c})
    schema = dpm.Schema(dpm.Categorical("one", range(k)), dpm.Categorical("other", range(c)))
    return frame, schema, np.bincount(cells, minlength=k * c).reshape(k, c).astype(float)


def plain_noise(rng: np.random.Generator, shape: tuple[int, ...], budget: dict[str, Any]) -> FloatArray:
    """Laplace noise at ε, normal noise at ρ."""
    if "rho" in budget:
        return rng.normal(0.0, 1.0 / np.sqrt(2.0 * budget["rho"]), shape)
    return rng.laplace(0.0, 1.0 / budget["epsilon"], shape)


def errors(name: str, budget: dict[str, Any]) -> FloatArray:
    """RMSE of a count, of: a plain histogram, noisy counts, repaired counts, and ``cross_table``."""
    squares = np.zeros(4)
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        frame, schema, exact = made_table(name, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpm.ReleaseWarning)
            found = dpm.release_counts(frame, schema, by=["one", "other"], insecure_seed=trial, threads=1, **budget)
            whole = dpm.release(frame, schema, insecure_seed=trial, threads=1, **budget)
        answers = (
            exact + plain_noise(rng, exact.shape, budget),
            found.noisy_counts,
            found.counts,
            whole.cross_table("one", "other").counts,
        )
        squares += [float(np.mean((answer - exact) ** 2)) for answer in answers]
    return np.sqrt(squares / TRIALS)


def lines() -> Iterator[str]:
    """One line for each table and budget."""
    yield "| table | budget | plain histogram, ± rows | `release_counts`, noisy | repaired | `cross_table` of a release |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for name in SHAPES:
        for budget, options in BUDGETS.items():
            first, *others = errors(name, options)
            yield f"| {name} | {budget} | {first:.2f} | {' | '.join(f'{other / first:.2f}' for other in others)} |"


if __name__ == "__main__":
    for line in lines():
        print(line, flush=True)
