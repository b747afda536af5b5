"""Releases of Parquet files on one machine, relative to what a plain program needs to read the same files.

``python -m benchmarks.speed.local_passes`` prints two measurements of ten numeric columns:

- a release of 10⁷ rows over scanning the file with pyarrow and ``X.T @ X`` on its batches, turn by turn (minimum and median):
  both cores of a machine take part in a release, a scan takes one;
- peak memory (libraries included) of a release of ten such files, in a process of its own. The files are hard
  links to one, which a reader reads as often as it meets them.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.speed.timing import cost_of, interleaved, least_and_middle, processor

SCHEMA = dpm.Schema(*(dpm.Numeric(f"x{column}", -4, 4) for column in range(10)))
N_ROWS, ROWS_PER_WRITE, TURNS, COPIES = 10_000_000, 1_000_000, 5, 10
IMPORTING = "import dpmoments as dpm; from benchmarks.speed.local_passes import SCHEMA"


def write_table(path: Path) -> None:
    """Standard normal numbers."""
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in SCHEMA.names])) as writer:
        for _ in range(N_ROWS // ROWS_PER_WRITE):
            writer.write_batch(pa.record_batch({name: rng.standard_normal(ROWS_PER_WRITE) for name in SCHEMA.names}))


def scan_and_multiply(path: Path) -> None:
    total = np.zeros((10, 10))
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        for batch in file.iter_batches(65_536, use_threads=False):
            rows = np.column_stack([column.to_numpy() for column in batch.columns])
            total += rows.T @ rows


def main() -> None:
    print(f"{processor()}; {N_ROWS:,} rows")
    with tempfile.TemporaryDirectory() as name:
        path, links = Path(name) / "0.parquet", Path(name) / "links"
        write_table(path)
        links.mkdir()
        for copy in range(COPIES):
            os.link(path, links / f"{copy}.parquet")
        released = f"dpm.release({str(links / '*.parquet')!r}, SCHEMA, epsilon=1.0, mechanism='laplace')"
        (least, _), (peak, _) = (cost_of(code) for code in (IMPORTING, f"{IMPORTING}; {released}"))
        print(f"memory of {COPIES * N_ROWS:,} × 10: {peak:.0f} MB (importing alone {least:.0f} MB)", flush=True)
        jobs: dict[str, Callable[[], object]] = {
            "scan": lambda: scan_and_multiply(path),
            "release": lambda: dpm.release(path, SCHEMA, epsilon=1.0, mechanism="laplace"),
        }
        seconds = interleaved(jobs, TURNS, time.perf_counter)
        ratios = [release / scan for scan, release in zip(seconds["scan"], seconds["release"], strict=True)]
        print(f"release / scan and X.T @ X: minimum, median {least_and_middle(ratios)}")


if __name__ == "__main__":
    main()
