"""Time of a pass on Dask and on Spark, relative to a local pass over the same Parquet files; and what a user would write instead.

``python -m benchmarks.speed.engines`` prints the tables of docs/evidence/scale.md, in about ten minutes where the machine does
nothing else. Files of float64 columns, 2^18 rows each, are written in a temporary folder. In one run, on the same two cores:

- ``local``: ``Rows.of(folder).moments()`` in two threads;
- Dask, on a cluster of two processes of one thread: of ``EngineFiles(folder, "dask")``, of ``dask.dataframe.read_parquet``, of
  that frame after a comparison that keeps every row, and after a query that does; ``dask.array``'s ``x.T @ x``;
- Spark, on ``local[2]`` after start-up: the same four, and ``RowMatrix.computeGramianMatrix`` of the frame.

Every pass is tried to give the local bits. Shown are minimum and median over the repeats (at most two of what takes longest), of
seconds and of the ratio to a local pass just before, by the clock and in processor time (which other work on the machine moves
less), and the memory of the workers with all the files and with a quarter of them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # comes with distributed
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.speed.timing import least_and_middle, peak_kilobytes, processor
from dpmoments.rows.rows import Rows

N_ROWS, ROWS_PER_FILE, N_COLUMNS, REPEATS = 10_000_000, 1 << 18, 50, 3
NAMES = [f"x{number}" for number in range(N_COLUMNS)]
SCHEMA = dpm.Schema(*(dpm.Numeric(name, -3, 3) for name in NAMES))
USED: dict[psutil.Process, float] = {}
"""Processor seconds of every process that this one started, as they were last seen."""


def write_files(folder: Path) -> None:
    """Normal columns; a few cells are beyond the bounds."""
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, N_ROWS, ROWS_PER_FILE)):
        size = min(ROWS_PER_FILE, N_ROWS - start)
        columns = {name: rng.normal(size=size) for name in NAMES}
        pq.write_table(pa.table(columns), folder / f"{number:05}.parquet", use_dictionary=False)


def compare(name: str, step: Callable[[], Any], local: Callable[[], Any], repeats: int = REPEATS) -> None:
    """One line of the result: each run has a local pass just before it, so that both meet the same load."""
    step()
    found = []
    for _ in range(repeats):
        before = cost_of(local)
        cost = cost_of(step)
        found.append((cost[0], cost[0] / before[0], cost[1] / before[1]))
    shown = [least_and_middle(list(column)) for column in zip(*found, strict=True)]
    print(f"| {name} | {' | '.join(shown)} |", flush=True)


def cost_of(step: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of processors in this process and all that it started."""
    began, used = time.perf_counter(), processor_seconds()
    step()
    return time.perf_counter() - began, processor_seconds() - used


def processor_seconds() -> float:
    """Of this process and its descendants; of one that has ended, what it had used when it was last looked at."""
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            USED[process] = sum(process.cpu_times()[:2])
    return sum(USED.values())


def workers_of_spark() -> list[int]:
    """Memory of Spark's Python workers now, in bytes."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            if "pyspark.daemon" in process.cmdline():
                found.append(process.memory_info().rss)
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


COMPARISON = "x0 > -1e300"
QUERY = "x0 > -1e300 or x1 > -1e300"
"""Filters that keep every row: one that is applied as files are read, and one that the engine applies."""


CLUSTER: dict[str, Any] = dict(n_workers=2, threads_per_worker=1, dashboard_address=":0")


def compare_all(engine: str, reader: str, tables: tuple[Any, ...], local: Rows) -> None:
    """Passes over files, over a frame of them, over that frame after a comparison, and over it after another filter."""
    names = (
        "`EngineFiles`",
        f"frame of `{reader}`",
        "that frame after a comparison",
        "that frame after another filter",
    )
    expected = local.moments()
    for name, data, repeats in zip(names, tables, (REPEATS, REPEATS, REPEATS, 2), strict=True):
        rows = Rows.of(data, SCHEMA)
        assert rows.moments() == expected
        compare(f"{engine}, {name}", rows.moments, local.moments, repeats)


def measure_dask(folder: Path, local: Rows) -> None:
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    with LocalCluster(**CLUSTER) as cluster, Client(cluster):
        frame = dd.read_parquet(folder)
        filtered = frame[frame.x0 > -1e300], frame.query(QUERY)
        compare_all("Dask", "read_parquet", (dpm.EngineFiles(folder, "dask"), frame, *filtered), local)
        array = frame.to_dask_array(lengths=True)
        compare("Dask, `x.T @ x` of the array of that frame", lambda: (array.T @ array).compute(), local.moments)


def memory_of_dask(folders: tuple[Path, Path]) -> None:
    """Peak of the larger of two workers, new for every measurement."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    for kind in ("`EngineFiles`", "frame after another filter"):
        shown = []
        for folder in folders:
            with LocalCluster(**CLUSTER) as cluster, Client(cluster) as client:
                data = dpm.EngineFiles(folder, "dask") if "Engine" in kind else dd.read_parquet(folder).query(QUERY)
                Rows.of(data, SCHEMA).moments()
                shown.append(f"{1024 * max(client.run(peak_kilobytes).values()) / 1e6:.0f} MB")
        print(f"| Dask, {kind} | {' | '.join(shown)} |", flush=True)


def session_of_spark() -> Any:
    """Of two threads."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    began = time.perf_counter()
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    print(f"(Spark starts in {time.perf_counter() - began:.1f} s)", flush=True)
    return spark


def measure_spark(spark: Any, folder: Path, local: Rows) -> None:
    """Passes in a session that has started."""
    from pyspark.ml.feature import VectorAssembler
    from pyspark.mllib.linalg.distributed import RowMatrix
    from pyspark.mllib.util import MLUtils

    frame = spark.read.parquet(str(folder))
    filtered = frame.filter(COMPARISON), frame.filter(QUERY)
    compare_all("Spark", "read.parquet", (dpm.EngineFiles(folder, "spark"), frame, *filtered), local)
    vectors = VectorAssembler(inputCols=NAMES, outputCol="row").transform(frame).select("row")
    matrix = RowMatrix(MLUtils.convertVectorColumnsFromML(vectors, "row"))
    name = "Spark, `RowMatrix.computeGramianMatrix` of that frame"
    compare(name, matrix.computeGramianMatrix, local.moments, 2)


def memory_of_spark(spark: Any, folders: tuple[Path, Path]) -> None:
    """Largest of the Python workers seen, which earlier passes have used."""
    for kind in ("`EngineFiles`", "frame after another filter"):
        shown = []
        for folder in folders:
            frame = spark.read.parquet(str(folder)).filter(QUERY)
            data = dpm.EngineFiles(folder, "spark") if "Engine" in kind else frame
            with Watched() as watched:
                Rows.of(data, SCHEMA).moments()
            shown.append(f"{watched.peak / 1e6:.0f} MB")
        print(f"| Spark's Python worker, {kind} | {' | '.join(shown)} |", flush=True)


def main() -> None:
    """Write the files, and measure."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        folder, part = Path(temporary) / "all", Path(temporary) / "part"
        folder.mkdir()
        part.mkdir()
        write_files(folder)
        for file in sorted(folder.iterdir())[::4]:
            (part / file.name).hardlink_to(file)
        print(f"{N_ROWS:,} x {N_COLUMNS}; {processor()}, load before {os.getloadavg()[0]:.1f}\n")
        local = Rows.of(folder, SCHEMA, threads=2)
        print("| | seconds | by the clock, × local pass | processor time, × local pass |\n| --- | --- | --- | --- |")
        compare("local pass over the files, 2 threads", local.moments, local.moments)
        measure_dask(folder, local)
        spark = session_of_spark()
        measure_spark(spark, folder, local)
        print("\n| memory of a worker | a quarter of the rows | all |\n| --- | --- | --- |")
        memory_of_spark(spark, (part, folder))
        spark.stop()
        memory_of_dask((part, folder))


if __name__ == "__main__":
    main()
