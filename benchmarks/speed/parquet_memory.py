"""
Peak memory of the release of a large Parquet file, and its time relative to a plain read of the same columns.

``python -m benchmarks.speed.parquet_memory`` [--rows 20000000] [--row-group 1048576] [--one-row-group]

A file of six numeric columns and one of text is written in a temporary folder, batch by batch. Each measurement runs in a
process of its own, which imports what a release imports, so that peaks can be compared: ``import`` reads nothing, ``read``
goes through the file with pyarrow and keeps nothing, ``release`` releases count, mean and second moment.

The peak is ``ru_maxrss``, what the process ever held in memory, libraries included. A process starts from the peak of the one
that started it, so that the table too is written by a process of its own.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm

LIMIT_MB = 500
REGIONS = ("north", "south", "east", "west")
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("income", 0, 200_000, missing="center"),
    dpm.Numeric("height", 1.0, 2.5),
    dpm.Numeric("weight", 20, 250),
    dpm.Numeric("score", -4, 4),
    dpm.Numeric("visits", 0, 50),
    dpm.Categorical("region", REGIONS),
)
ROWS_PER_WRITE = 250_000


def write_table(path: Path, n_rows: int, row_group: int) -> None:
    """Write the table in row groups of ``row_group`` rows, a part at a time where they are small."""
    rng = np.random.default_rng(0)
    writer = None
    per_write = row_group if row_group > 4 * ROWS_PER_WRITE else ROWS_PER_WRITE
    waiting: list[pa.RecordBatch] = []
    for start in range(0, n_rows, per_write):
        size = min(per_write, n_rows - start)
        income = rng.lognormal(10.5, 0.6, size)
        income[rng.random(size) < 0.02] = np.nan
        batch = pa.record_batch(
            {
                "age": rng.integers(0, 101, size),
                "income": pa.array(income, from_pandas=True),
                "height": rng.normal(1.7, 0.1, size),
                "weight": rng.normal(75, 15, size).astype(np.float32),
                "score": rng.standard_normal(size),
                "visits": rng.poisson(3.0, size).astype(np.int32),
                "region": pa.DictionaryArray.from_arrays(
                    rng.integers(0, 4, size, np.int8), REGIONS
                ).dictionary_decode(),
            }
        )
        if writer is None:
            writer = pq.ParquetWriter(path, batch.schema)
        waiting.append(batch)
        if sum(map(len, waiting)) >= row_group or start + size == n_rows:
            writer.write_table(pa.Table.from_batches(waiting), row_group_size=row_group)
            waiting = []
    assert writer is not None
    writer.close()


def run(job: str, path: str, n_rows: int, row_group: int) -> dict[str, float]:
    """One job in this process: its seconds, and the peak of the process in MB."""
    start = time.perf_counter()
    if job == "write":
        write_table(Path(path), n_rows, row_group)
    if job == "read":
        for batch in pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20).iter_batches(
            65_536, use_threads=False
        ):
            del batch
    if job == "release":
        dpm.release(path, SCHEMA, epsilon=1.0)
    if job == "whole":
        dpm.release(pq.read_table(path), SCHEMA, epsilon=1.0)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure(job: str, path: Path, n_rows: int = 0, row_group: int = 0) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.parquet_memory", "--job", job, "--path", str(path)]
    command += ["--rows", str(n_rows), "--row-group", str(row_group)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--row-group", type=int, default=1024 * 1024, help="rows of a row group (pyarrow's default)")
    parser.add_argument("--one-row-group", action="store_true", help="the whole file as one row group")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--job", choices=["write", "import", "read", "release", "whole"], help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(run(options.job, options.path, options.rows, options.row_group)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        measure("write", path, options.rows, options.rows if options.one_row_group else options.row_group)
        groups = pq.read_metadata(path).num_row_groups
        print(f"{options.rows:,} rows, {groups} row groups, {path.stat().st_size / 1e6:,.0f} MB")
        results: dict[str, list[dict[str, float]]] = {"import": [], "read": [], "release": []}
        for _ in range(options.repeats):
            for job, values in results.items():
                values.append(measure(job, path))
    for job, values in results.items():
        seconds = min(value["seconds"] for value in values)
        peak = max(value["peak_mb"] for value in values)
        print(f"{job:8} peak {peak:6.0f} MB  {seconds:7.2f} s")
    ratio = min(value["seconds"] for value in results["release"]) / min(value["seconds"] for value in results["read"])
    peak = max(value["peak_mb"] for value in results["release"])
    print(f"release: {ratio:.2f} times the time of a plain read; peak {peak:.0f} MB (limit {LIMIT_MB} MB)")
    sys.exit(peak > LIMIT_MB)


if __name__ == "__main__":
    main()
