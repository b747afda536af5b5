"""
Releases of Parquet files on one machine, relative to what a plain program needs to read the same files.

``python -m benchmarks.speed.local_passes`` [--rows 10000000] [--repeats 5] [--copies 10]

Three measurements, of ratios in one process, the jobs taking turns (minimum and median over the turns):

- ten numeric columns: a release, over scanning the file with pyarrow and ``X.T @ X`` on its batches;
- six numeric columns and categories of 4 and 10 levels: a release, over the scan alone;
- peak memory (``ru_maxrss``, libraries included) of a release of ``copies`` files of ten numeric columns, in a process of its
  own. The files are hard links to one, which a reader reads as often as it meets them.

With Numba (the extra ``fast``) unless ``--numpy`` is given. Both cores of a machine take part in a release; a scan takes one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.speed.kernel import processor, without_machine_code

NUMBERS = dpm.Schema(*(dpm.Numeric(f"x{column}", -4, 4) for column in range(10)))
LEVELS = {"region": tuple("abcd"), "trade": tuple("klmnopqrst")}
MIXED = dpm.Schema(*NUMBERS.columns[:6], *(dpm.Categorical(name, levels) for name, levels in LEVELS.items()))
ROWS_PER_WRITE = 1_000_000


def write_table(path: Path, schema: dpm.Schema, n_rows: int) -> None:
    """Standard normal numbers, and levels drawn evenly."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, ROWS_PER_WRITE):
        size = min(ROWS_PER_WRITE, n_rows - start)
        columns = {
            name: pa.DictionaryArray.from_arrays(
                rng.integers(0, len(LEVELS[name]), size, np.int8), LEVELS[name]
            ).dictionary_decode()
            if name in LEVELS
            else pa.array(rng.standard_normal(size))
            for name in schema.names
        }
        batch = pa.record_batch(columns)
        writer = pq.ParquetWriter(path, batch.schema) if writer is None else writer
        writer.write_batch(batch)
    assert writer is not None
    writer.close()


def batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
        yield from file.iter_batches(65_536, use_threads=False)


def scan(path: Path) -> None:
    for batch in batches(path):
        del batch


def scan_and_multiply(path: Path) -> None:
    total = np.zeros((10, 10))
    for batch in batches(path):
        rows = np.column_stack([column.to_numpy() for column in batch.columns])
        total += rows.T @ rows


def ratios(job: Callable[[], object], reference: Callable[[], object], repeats: int) -> list[float]:
    """Of the times of the two, turn by turn, after one turn that is not counted."""
    found = []
    for turn in range(repeats + 1):
        seconds = []
        for step in (reference, job):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
        if turn:
            found.append(seconds[1] / seconds[0])
    return found


def peak_mb(pattern: str) -> float:
    """Of a process that imports the library and releases the files (or imports alone, where there is no pattern)."""
    code = (
        "import resource, sys, dpmoments as dpm\n"
        "from benchmarks.speed.local_passes import NUMBERS\n"
        "if sys.argv[1]: dpm.release(sys.argv[1], NUMBERS, epsilon=1.0, mechanism='laplace')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, pattern], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--copies", type=int, default=10, help="files of the measurement of memory; 0 leaves it out")
    parser.add_argument("--numpy", action="store_true", help="without machine code, as without the extra")
    options = parser.parse_args()
    print(f"{processor()}; {options.rows:,} rows; {'NumPy alone' if options.numpy else 'with Numba'}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numbers, mixed = folder / "0.parquet", folder / "mixed.parquet"
        # A process starts from the peak of the one that started it.
        least = peak_mb("")
        for path, schema in ((numbers, NUMBERS), (mixed, MIXED)):
            write_table(path, schema, options.rows)
        if options.copies:
            links = folder / "links"
            links.mkdir()
            for copy in range(options.copies):
                os.link(numbers, links / f"{copy}.parquet")
            peak = peak_mb(str(links / "*.parquet"))
            print(
                f"memory of {options.copies * options.rows:,} × 10: {peak:.0f} MB (importing alone {least:.0f} MB)",
                flush=True,
            )

        def release(path: Path, schema: dpm.Schema) -> Callable[[], object]:
            return lambda: dpm.release(path, schema, epsilon=1.0, mechanism="laplace")

        with without_machine_code(options.numpy):
            for what, job, reference in (
                ("10 numeric, of scan and X.T @ X", release(numbers, NUMBERS), lambda: scan_and_multiply(numbers)),
                ("6 numeric, 4 and 10 levels, of scan", release(mixed, MIXED), lambda: scan(mixed)),
            ):
                found = ratios(job, reference, options.repeats)
                print(f"{what}: minimum {min(found):.2f}, median {np.median(found):.2f}", flush=True)


if __name__ == "__main__":
    main()
