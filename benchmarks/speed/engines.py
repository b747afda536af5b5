"""
Time of a pass on Dask and on Spark, relative to a local pass over the same Parquet files; and what a user would write instead.

``python -m benchmarks.speed.engines`` [--rows 10000000] [--columns 50] [--repeats 3]

Files of float64 columns, 2^18 rows each, are written in a temporary folder. In one run, on the same two cores:

- ``local``: ``Rows.of(folder).moments()`` in two threads;
- ``dask frame``, ``dask files``: the same of ``dask.dataframe.read_parquet`` and of ``EngineFiles(folder, "dask")``, on a cluster
  of two processes of one thread; against ``dask.array``'s ``x.T @ x`` of the same frame there;
- ``spark frame``, ``spark files``: the same of ``spark.read.parquet`` and ``EngineFiles(folder, "spark")``, on ``local[2]``,
  after start-up; against ``RowMatrix.computeGramianMatrix`` of the same frame there.

Every pass is tried to give the local bits. Shown are minimum and median over the repeats, of seconds and of the ratio to a
local pass just before, by the clock and in processor time (which other work on the machine moves less), and the peak memory of
the workers with all the files and with a quarter of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm
from dpmoments.rows.rows import Rows

ROWS_PER_FILE = 1 << 18
USED: dict[int, int] = {}
OURS: set[int] = set()
"""Ticks of every process seen, and which of them this one started."""


def write_files(folder: Path, n_rows: int, names: list[str]) -> None:
    """Normal columns; a few cells are beyond the bounds."""
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        size = min(ROWS_PER_FILE, n_rows - start)
        columns = {name: rng.normal(size=size) for name in names}
        pq.write_table(pa.table(columns), folder / f"{number:05}.parquet", use_dictionary=False)


def compare(name: str, step: Callable[[], Any], local: Callable[[], Any], repeats: int) -> None:
    """One line of the result: each run has a local pass just before it, so that both meet the same load."""
    step()
    found = []
    for _ in range(repeats):
        before = cost_of(local)
        cost = cost_of(step)
        found.append((*cost, cost[0] / before[0], cost[1] / before[1]))
    columns = list(zip(*found, strict=True))
    shown = [f"{min(column):6.2f} {statistics.median(column):6.2f}" for column in columns]
    print(f"{name:<16} wall {shown[0]} s, x local {shown[2]};  processor {shown[1]} s, x local {shown[3]}", flush=True)


def cost_of(step: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of processors in this process and all that it started."""
    began, used = time.perf_counter(), processor_seconds()
    step()
    return time.perf_counter() - began, processor_seconds() - used


def processor_seconds() -> float:
    """Of this process and its descendants; of one that has ended, what it had used when it was last looked at."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        parents[int(process.name)] = int(fields[1])
        USED[int(process.name)] = sum(map(int, fields[11:13]))
    waiting = {os.getpid()}
    while waiting:
        OURS.update(waiting)
        waiting = {process for process, parent in parents.items() if parent in waiting}
    return float(sum(USED[process] for process in OURS) / os.sysconf("SC_CLK_TCK"))


def workers_of_spark() -> list[int]:
    """Memory of Spark's Python workers now, in bytes."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"pyspark.daemon" in (process / "cmdline").read_bytes():
                found.append(int((process / "statm").read_text().split()[1]) * resource.getpagesize())
        except OSError:  # it has ended
            continue
    return found


class Watched:
    """The largest worker of Spark seen while a block runs."""

    def __enter__(self) -> Watched:
        self.peak, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.05):
            self.peak = max([self.peak, *workers_of_spark()])


def peak_of_process() -> int:
    """Peak memory of this process in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_dask(
    folder: Path, part: Path, schema: dpm.Schema, expected: Any, local: Callable[[], Any], repeats: int
) -> None:
    """Passes on a cluster of two processes."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    options: dict[str, Any] = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    for data in (part, folder):
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            Rows.of(dd.read_parquet(data), schema).moments()
            peak = max(client.run(peak_of_process).values())
            print(
                f"dask worker, {'all' if data is folder else 'a quarter'} of the rows: {peak / 1e6:.0f} MB", flush=True
            )
    with LocalCluster(**options) as cluster, Client(cluster):
        frame = dd.read_parquet(folder)
        for name, rows in (
            ("dask frame", Rows.of(frame, schema)),
            ("dask files", Rows.of(dpm.EngineFiles(folder, "dask"), schema)),
        ):
            assert rows.moments() == expected
            compare(name, rows.moments, local, repeats)
        array = frame.to_dask_array(lengths=True)
        compare("dask x.T @ x", lambda: (array.T @ array).compute(), local, repeats)


def measure_spark(
    folder: Path, part: Path, schema: dpm.Schema, expected: Any, local: Callable[[], Any], repeats: int
) -> None:
    """Passes in a session of two threads."""
    from pyspark.ml.feature import VectorAssembler
    from pyspark.mllib.linalg.distributed import RowMatrix
    from pyspark.mllib.util import MLUtils
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    began = time.perf_counter()
    builder = (
        SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g").config("spark.ui.enabled", "false")
    )
    spark = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(f"spark starts in {time.perf_counter() - began:.1f} s", flush=True)
    for data in (part, folder):
        with Watched() as watched:
            Rows.of(spark.read.parquet(str(data)), schema).moments()
        which = "all" if data is folder else "a quarter"
        print(f"spark's Python worker, {which} of the rows: {watched.peak / 1e6:.0f} MB", flush=True)
    frame = spark.read.parquet(str(folder))
    for name, rows in (
        ("spark frame", Rows.of(frame, schema)),
        ("spark files", Rows.of(dpm.EngineFiles(folder, "spark"), schema)),
    ):
        assert rows.moments() == expected
        compare(name, rows.moments, local, repeats)
    vectors = VectorAssembler(inputCols=list(schema.names), outputCol="row").transform(frame).select("row")
    matrix = RowMatrix(MLUtils.convertVectorColumnsFromML(vectors, "row"))
    compare("spark RowMatrix", matrix.computeGramianMatrix, local, repeats)
    spark.stop()


def main() -> None:
    """Write the files, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [f"x{number}" for number in range(arguments.columns)]
    schema = dpm.Schema(*(dpm.Numeric(name, -3, 3) for name in names))
    with tempfile.TemporaryDirectory() as temporary:
        folder, part = Path(temporary) / "all", Path(temporary) / "part"
        folder.mkdir()
        part.mkdir()
        write_files(folder, arguments.rows, names)
        for file in sorted(folder.iterdir())[::4]:
            (part / file.name).hardlink_to(file)
        load = os.getloadavg()[0]
        processor = next(
            (
                line.split(": ")[1]
                for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")
            ),
            platform.machine(),
        )
        print(
            f"{arguments.rows:,} x {arguments.columns}; {processor.strip()}, {os.cpu_count()} cores, load before {load:.1f}"
        )
        rows = Rows.of(folder, schema, threads=2)
        expected = rows.moments()
        compare("local", rows.moments, rows.moments, arguments.repeats)
        measure_dask(folder, part, schema, expected, rows.moments, arguments.repeats)
        measure_spark(folder, part, schema, expected, rows.moments, arguments.repeats)


if __name__ == "__main__":
    main()
