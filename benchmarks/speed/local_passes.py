"""Releases of Parquet files on one machine, relative to what a plain program needs to read the same files.

``python -m benchmarks.speed.local_passes`` prints two measurements of ten numeric columns:

- a release of 10⁷ rows over scanning the file with pyarrow and ``X.T @ X`` on its batches, turn by turn (minimum and median):
  both cores of a machine take part in a release, a scan takes one;
- peak memory (libraries included) of a release of ten such files, in a process of its own. The files are hard links to one,
  which a reader reads as often as it meets them.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.speed.memory import Shape, write
from benchmarks.speed.timing import cost_of, interleaved, least_and_middle, processor

SHAPE = Shape(10_000_000, 10, (), ".parquet")
ROWS_PER_WRITE, TURNS, COPIES = 1_000_000, 5, 10
IMPORTING = "import dpmoments as dpm; from benchmarks.speed.local_passes import SHAPE"


def scan_and_multiply(path: Path) -> None:
    total = np.zeros((10, 10))
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        for batch in file.iter_batches(65_536, use_threads=False):
            rows = np.column_stack([column.to_numpy() for column in batch.columns])
            total += rows.T @ rows


def main() -> None:
    print(f"{processor()}; {SHAPE.n_rows:,} rows")
    with tempfile.TemporaryDirectory() as name:
        path, links = Path(name) / "0.parquet", Path(name) / "links"
        write(SHAPE, path, SHAPE.n_rows, ROWS_PER_WRITE)
        links.mkdir()
        for copy in range(COPIES):
            os.link(path, links / f"{copy}.parquet")
        released = f"dpm.release({str(links / '*.parquet')!r}, SHAPE.schema, epsilon=1.0, mechanism='laplace')"
        (least, _), (peak, _) = (cost_of(code) for code in (IMPORTING, f"{IMPORTING}; {released}"))
        print(f"memory of {COPIES * SHAPE.n_rows:,} × 10: {peak:.0f} MB (importing alone {least:.0f} MB)", flush=True)
        jobs: dict[str, Callable[[], object]] = {
            "scan": lambda: scan_and_multiply(path),
            "release": lambda: dpm.release(path, SHAPE.schema, epsilon=1.0, mechanism="laplace"),
        }
        seconds = interleaved(jobs, TURNS, time.perf_counter)
        ratios = [release / scan for scan, release in zip(seconds["scan"], seconds["release"], strict=True)]
        print(f"release / scan and X.T @ X: minimum, median {least_and_middle(ratios)}")


if __name__ == "__main__":
    main()
