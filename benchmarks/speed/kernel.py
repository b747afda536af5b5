"""
Time of the exact clipped pass over a table, as a ratio to NumPy's plain ``X.T @ X`` in the same run.

``python -m benchmarks.speed.kernel`` [--repeats 7] [--quick]

Each line is one number of features d. Timings are interleaved (one of each, again and again) and ratios are of
medians, so that what else the machine does falls on all alike. Columns:

- ``inside``: rows all within the ball; ``clipped``: standard normal rows, nearly all to be clipped; ``F order``: the
  same, stored by columns; ``one thread``: the clipped pass on one core, relative to NumPy's on one core;
- ``usual``: the usual float way in NumPy (norms, scale, multiply), which proves nothing;
- ``linear``: the clipped pass after a reproducible d × d map.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from dpmoments.rows.blas import usable_cores
from dpmoments.rows.kernel import exact_moments

TARGETS = {10: 2.5, 50: 1.3, 100: 1.3, 500: 1.3}
ROWS = {10: 1_000_000, 50: 1_000_000, 100: 1_000_000, 500: 100_000}


def interleaved_medians(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Median seconds of each job, the jobs taking turns."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if turn > 0:  # the first turn warms up
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def measure(n_rows: int, n_features: int, repeats: int) -> dict[str, float]:
    """Ratios for one shape, and the milliseconds of NumPy's product."""
    rng = np.random.default_rng(n_features)
    rows = rng.standard_normal((n_rows, n_features))
    inside = rows / (2.0 * np.sqrt(n_features))
    inside /= np.maximum(1.0, np.linalg.norm(inside, axis=1, keepdims=True))
    by_columns = np.asfortranarray(rows)
    matrix = np.eye(n_features) + rng.standard_normal((n_features, n_features)) / n_features

    def plain_on_one_core() -> None:
        with threadpool_limits(1, user_api="blas"):
            rows.T @ rows

    def usual() -> None:
        clipped = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        clipped.T @ clipped

    seconds = interleaved_medians(
        {
            "plain": lambda: rows.T @ rows,
            "inside": lambda: exact_moments([inside], n_features),
            "clipped": lambda: exact_moments([rows], n_features),
            "F order": lambda: exact_moments([by_columns], n_features),
            "usual": usual,
            "linear": lambda: exact_moments([rows], n_features, linear=matrix),
            "plain, one core": plain_on_one_core,
            "clipped, one core": lambda: exact_moments([rows], n_features, threads=1),
        },
        repeats,
    )
    ratios = {name: seconds[name] / seconds["plain"] for name in ("inside", "clipped", "F order", "usual", "linear")}
    ratios["one thread"] = seconds["clipped, one core"] / seconds["plain, one core"]
    return {"milliseconds": 1e3 * seconds["plain"], **ratios}


def main() -> None:
    """Measure every shape and print a table."""
    parser = argparse.ArgumentParser(description="Exact clipped pass relative to NumPy's X.T @ X.")
    parser.add_argument("--repeats", type=int, default=7, help="timed turns; medians are reported")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args()
    names = ["inside", "clipped", "F order", "one thread", "linear", "usual"]
    print(f"{usable_cores()} cores; time relative to NumPy's X.T @ X, medians of {options.repeats}")
    print(f"{'d':>5} {'rows':>9} {'X.T@X ms':>9} " + " ".join(f"{name:>10}" for name in names) + f" {'target':>7}")
    for n_features, n_rows in ROWS.items():
        n_measured = n_rows // 10 if options.quick else n_rows
        found = measure(n_measured, n_features, options.repeats)
        figures = " ".join(f"{found[name]:>10.2f}" for name in names)
        milliseconds, target = found["milliseconds"], TARGETS[n_features]
        print(f"{n_features:>5} {n_measured:>9} {milliseconds:>9.1f} {figures} {target:>7.1f}", flush=True)


if __name__ == "__main__":
    main()
