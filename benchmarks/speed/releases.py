"""
Time of ``dpm.release`` of a NumPy array, as a ratio to NumPy's plain ``X.T @ X`` in the same run.

``python -m benchmarks.speed.releases`` [--repeats 5] [--quick] [--page]

The array is the user's: numbers in their own units, a tenth of them beyond the bounds, which a release clips, shifts, scales,
rounds and sums; then it draws discrete Gaussian noise and repairs. (``benchmarks.speed.kernel`` measures only the pass over rows
that are encoded already.) Processor time of one thread; each release has a product just before it. The share of each step is for
the release with the median time. With machine code where there is any (Numba, the extra ``fast``), loaded before, and by NumPy.

``--page`` writes the table, and what it was measured with, into docs/evidence/scale.md.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.speed.kernel import processor, without_machine_code
from dpmoments.privacy import filter as privacy_filter
from dpmoments.rows.compiled import why_not_compiled
from dpmoments.rows.sources.source import LocalSource

ROWS = {10: 2_000_000, 100: 300_000, 500: 60_000}


@contextmanager
def timed(owner: Any, name: str, spent: dict[str, float]) -> Iterator[None]:
    """Add the processor time of a function's calls to ``spent``."""
    function = getattr(owner, name)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            spent[name] = spent.get(name, 0.0) + time.process_time() - start

    setattr(owner, name, wrapper)
    try:
        yield
    finally:
        setattr(owner, name, function)


def turns(n_rows: int, n_features: int) -> Callable[[], tuple[float, float, float]]:
    """What measures a release once: its ratio to a product just before it, and the shares of the pass and of the noise."""
    table = np.random.default_rng(n_features).uniform(-5.0, 105.0, (n_rows, n_features))
    schema = dpm.Schema(*(dpm.Numeric(f"c{index}", 0, 100) for index in range(n_features)))

    def turn() -> tuple[float, float, float]:
        spent: dict[str, float] = {}
        start = time.process_time()
        table.T @ table
        product = time.process_time() - start
        with timed(LocalSource, "summarize", spent), timed(privacy_filter, "noised", spent):
            start = time.process_time()
            dpm.release(table, schema, epsilon=1.0, delta=1e-9, mechanism="gaussian", threads=1)
            whole = time.process_time() - start
        return whole / product, spent["summarize"] / whole, spent["noised"] / whole

    return turn


def measure(n_rows: int, n_features: int, repeats: int) -> dict[str, list[tuple[float, float, float]]]:
    """For both ways, turn by turn: the ratio, and the shares of the pass and of the noise."""
    release = turns(n_rows, n_features)
    ways: dict[str, Callable[[], Any]] = {"fast": release, "NumPy": lambda: numpy_alone(release)}
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    with threadpool_limits(1, user_api="blas"):
        for turn in range(repeats + 1):
            for name, way in ways.items():
                ratio_and_shares = way()
                if turn:  # the first loads what it needs
                    found[name].append(ratio_and_shares)
    return found


def numpy_alone(job: Callable[[], Any]) -> Any:
    with without_machine_code():
        return job()


def page_lines(found: dict[int, dict[str, list[tuple[float, float, float]]]], repeats: int) -> Iterator[str]:
    yield (
        f"{processor()}; processor time of one core; {repeats} turns; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, dpmoments {dpm.__version__}."
    )
    yield ""
    yield "| d | rows | release | pass | noise | rest | release, without `fast` |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for n_features, ways in found.items():
        ratios = {name: [turn[0] for turn in turns] for name, turns in ways.items()}
        _, of_pass, of_noise = sorted(ways["fast"])[len(ways["fast"]) // 2]
        shares = " | ".join(f"{100 * share:.0f} %" for share in (of_pass, of_noise, 1.0 - of_pass - of_noise))
        fast, slow = (f"{min(ratios[name]):.2f}, {statistics.median(ratios[name]):.2f}" for name in ("fast", "NumPy"))
        yield f"| {n_features} | {ROWS[n_features]:,} | {fast} | {shares} | {slow} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="timed turns")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--page", action="store_true", help="write the table into docs/evidence/scale.md")
    options = parser.parse_args()
    if options.page and options.quick:
        parser.error("the page is of whole tables: leave out --quick")
    why_not_compiled()  # loads it
    found = {d: measure(n // 10 if options.quick else n, d, options.repeats) for d, n in ROWS.items()}
    print("\n".join(page_lines(found, options.repeats)))
    if options.page:
        write_part(EVIDENCE / "scale.md", "releases", page_lines(found, options.repeats))


if __name__ == "__main__":
    main()
