"""Time of ``dpm.release`` of a NumPy array, as a ratio to NumPy's plain ``X.T @ X`` in the same run.

``python -m benchmarks.speed.releases`` writes the table, and what it was measured with, into docs/evidence/scale.md.

The array is the user's: numbers in their own units, a tenth of them beyond the bounds, which a release clips, shifts, scales,
rounds and sums; then it draws discrete Gaussian noise and repairs. Processor time of one thread; each release has a product just
before it. The share of each step is for the release with the median time. With machine code where there is any (Numba, the extra
``fast``), loaded before, and by NumPy.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from threadpoolctl import threadpool_limits

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.speed.timing import least_and_middle, processor, without_machine_code
from dpmoments.privacy import filter as privacy_filter
from dpmoments.rows.compiled import why_not_compiled
from dpmoments.rows.sources.source import LocalSource

ROWS = {10: 2_000_000, 100: 300_000, 500: 60_000}
TURNS = 5

Turn = tuple[float, float, float]
"""The ratio, and the shares of the pass and of the noise."""


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

    with mock.patch.object(owner, name, wrapper):
        yield


def measured(table: np.ndarray, schema: dpm.Schema) -> Turn:
    """A release, and a product just before it."""
    spent: dict[str, float] = {}
    start = time.process_time()
    table.T @ table
    product = time.process_time() - start
    with timed(LocalSource, "summarize", spent), timed(privacy_filter, "noised", spent):
        start = time.process_time()
        dpm.release(table, schema, epsilon=1.0, delta=1e-9, mechanism="gaussian", threads=1)
        whole = time.process_time() - start
    return whole / product, spent["summarize"] / whole, spent["noised"] / whole


def both_ways(n_rows: int, n_features: int) -> tuple[list[Turn], list[Turn]]:
    """With machine code and without it, turn by turn; the first turn, which loads what it needs, is not counted."""
    table = np.random.default_rng(n_features).uniform(-5.0, 105.0, (n_rows, n_features))
    schema = dpm.Schema(*(dpm.Numeric(f"c{index}", 0, 100) for index in range(n_features)))
    fast, slow = list[Turn](), list[Turn]()
    with threadpool_limits(1, user_api="blas"):
        for _ in range(TURNS + 1):
            fast.append(measured(table, schema))
            with without_machine_code():
                slow.append(measured(table, schema))
    return fast[1:], slow[1:]


def lines() -> Iterator[str]:
    yield (
        f"{processor()}; processor time of one core; {TURNS} turns; Python {platform.python_version()}, "
        f"NumPy {np.__version__}, dpmoments {dpm.__version__}."
    )
    yield ""
    yield from head("d | rows | release | pass | noise | rest | release, without `fast`", "rrrrrrr")
    for n_features, n_rows in ROWS.items():
        fast, slow = both_ways(n_rows, n_features)
        _, of_pass, of_noise = sorted(fast)[len(fast) // 2]
        shares = " | ".join(f"{100 * share:.0f} %" for share in (of_pass, of_noise, 1.0 - of_pass - of_noise))
        of_fast, of_slow = (least_and_middle([ratio for ratio, _, _ in way]) for way in (fast, slow))
        yield f"| {n_features} | {n_rows:,} | {of_fast} | {shares} | {of_slow} |"


if __name__ == "__main__":
    why_not_compiled()  # loads it
    write_part(EVIDENCE / "scale.md", "releases", lines())
