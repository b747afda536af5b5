"""
Time of the exact clipped pass over a table in memory, as a ratio to NumPy's plain ``X.T @ X`` in the same run.

``python -m benchmarks.speed.kernel`` [--repeats 7] [--quick] [--one-core] [--details]

Each line is one number of features d: minimum and median, over the turns, of the ratio of a pass to the product just before
it, so that what else the machine does falls on both. ``inside``: rows all within the ball; ``clipped``: standard normal rows,
nearly all to be clipped. With machine code where there is any (Numba, the extra ``fast``), and by NumPy alone, as without it.

``--one-core`` has both take one thread, and compares processor times, which other work on the machine disturbs least.
``--page`` writes the table, and what it was measured with, into docs/evidence/scale.md.
``--details`` adds ``F order``, clipped rows stored by columns; ``linear``, the clipped pass after a reproducible d × d map; and
``usual``, the usual float way in NumPy (norms, scale, multiply), which proves nothing.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import dpmoments
from benchmarks.pages import EVIDENCE, write_part
from dpmoments.rows import kernel
from dpmoments.rows.compiled import MAX_FEATURES, why_not_compiled
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.summary import usable_cores

TARGETS = {10: (2.5, 3.0), 50: (1.3, None), 100: (1.3, None), 500: (1.3, None)}
ROWS = {10: 2_000_000, 50: 1_000_000, 100: 1_000_000, 500: 100_000}


def processor() -> str:
    """Its name, and how many cores of it are used."""
    described = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in described.splitlines() if line.startswith("model name")]
    return f"{names[0] if names else 'unknown processor'}, {usable_cores()} cores"


@contextmanager
def without_machine_code(wanted: bool = True) -> Iterator[None]:
    """Have NumPy sum all rows, as where Numba is not installed."""
    before = kernel.can_be_compiled
    if wanted:
        kernel.can_be_compiled = lambda *_, **__: False
    try:
        yield
    finally:
        kernel.can_be_compiled = before


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


def paired_ratios(
    jobs: dict[str, Callable[[], object]], plain: Callable[[], object], repeats: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Of every job's time to that of ``plain`` just before it, turn by turn, after one turn that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            seconds = []
            for step in (plain, job):
                start = clock()
                step()
                seconds.append(clock() - start)
            if turn:
                found[name].append(seconds[1] / seconds[0])
    return found


def measure(
    n_rows: int, n_features: int, repeats: int, *, details: bool = False, one_core: bool = False
) -> dict[str, list[float]]:
    """Ratios for one shape, turn by turn."""
    rng = np.random.default_rng(n_features)
    rows = rng.standard_normal((n_rows, n_features))
    inside = rows / (2.0 * np.sqrt(n_features))
    inside /= np.maximum(1.0, np.linalg.norm(inside, axis=1, keepdims=True))
    threads = 1 if one_core else None

    def by_numpy(table: np.ndarray) -> Callable[[], object]:
        def run() -> object:
            with without_machine_code():
                return exact_moments([table], n_features, threads=threads)

        return run

    jobs: dict[str, Callable[[], object]] = {
        "inside": lambda: exact_moments([inside], n_features, threads=threads),
        "clipped": lambda: exact_moments([rows], n_features, threads=threads),
    }
    if n_features <= MAX_FEATURES:
        jobs |= {"inside, NumPy": by_numpy(inside), "clipped, NumPy": by_numpy(rows)}
    if details:
        by_columns = np.asfortranarray(rows)
        matrix = np.eye(n_features) + rng.standard_normal((n_features, n_features)) / n_features

        def usual() -> None:
            clipped = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
            clipped.T @ clipped

        jobs |= {
            "F order": lambda: exact_moments([by_columns], n_features, threads=threads),
            "linear": lambda: exact_moments([rows], n_features, linear=matrix, threads=threads),
            "usual": usual,
        }
    clock = time.process_time if one_core else time.perf_counter
    with threadpool_limits(threads, user_api="blas"):
        return paired_ratios(jobs, lambda: rows.T @ rows, repeats, clock)


def page_lines(found: dict[int, dict[str, list[float]]], repeats: int, one_core: bool) -> Iterator[str]:
    """The table of docs/evidence/scale.md, after what it was measured with."""
    cores = "processor time of one core" if one_core else "by the clock, on all cores"
    yield (
        f"{processor()}; {cores}; {repeats} turns; Python {platform.python_version()}, NumPy {np.__version__}, dpmoments "
        f"{dpmoments.__version__}."
    )
    yield ""
    yield "| d | rows | inside the ball | all clipped | inside, without `fast` | clipped, without `fast` |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    for n_features, ratios in found.items():
        cells = [
            f"{min(ratios[name]):.2f}, {statistics.median(ratios[name]):.2f}" if name in ratios else "the same"
            for name in ("inside", "clipped", "inside, NumPy", "clipped, NumPy")
        ]
        yield f"| {n_features} | {ROWS[n_features]:,} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7, help="timed turns")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--details", action="store_true", help="other layouts and ways")
    parser.add_argument("--one-core", action="store_true", help="processor time of one thread each")
    parser.add_argument("--page", action="store_true", help="write the table into docs/evidence/scale.md")
    options = parser.parse_args()
    if options.page and options.quick:
        parser.error("the page is of whole tables: leave out --quick")
    all_found: dict[int, dict[str, list[float]]] = {}
    used, turns = "one core used; " if options.one_core else "", f"{options.repeats} turns"
    print(f"{processor()}; {used}{turns}; machine code: {why_not_compiled() or 'Numba'}")
    print("| d | rows | | minimum | median | target |\n| ---: | ---: | --- | ---: | ---: | ---: |")
    for n_features, n_rows in ROWS.items():
        n_measured = n_rows // 10 if options.quick else n_rows
        targets = dict(zip(("inside", "clipped"), TARGETS[n_features], strict=True))
        found = measure(n_measured, n_features, options.repeats, details=options.details, one_core=options.one_core)
        all_found[n_features] = found
        for name, ratios in found.items():
            target = targets.get(name) or ""
            least, middle = min(ratios), statistics.median(ratios)
            print(f"| {n_features} | {n_measured:,} | {name} | {least:.2f} | {middle:.2f} | {target} |", flush=True)
    if options.page:
        write_part(EVIDENCE / "scale.md", "kernel", page_lines(all_found, options.repeats, options.one_core))


if __name__ == "__main__":
    main()
