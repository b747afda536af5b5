"""
Time of an additive mechanism's pass over tables of categorical columns, counted and dense; and what a release at d = 2,000 takes.

``python -m benchmarks.speed.wide_categories`` [--rows 1000000] [--repeats 7] [--features 2000] [--skip-release]

Tables are written as Parquet files in a temporary folder; passes are of one thread, in turns in one run, and shown as minimum and
median of processor time (which other work on the machine moves less) and of time by the clock.

- ``adult``: Adult's 15 columns, d = 106, its rows repeated. ``counted`` is the pass as it is made, ``dense`` the same with a
  feature for every level; both must give the same bits.
- ``wide``: four text columns, one of 1,000 levels and three of 50, d = 1,150. ``counted`` against ``scan``, PyArrow reading
  and decoding the same columns in batches of the same size, as text; ``scan, codes`` reads them as dictionaries.
- ``release``: 40 columns of 50 levels, 10⁵ rows, each mechanism in a process of its own: time of the release, of the noise
  in it, and of reading the covariance with two repairs; peak memory (``ru_maxrss``).
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm
from dpmoments.datasets import adult
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.level_sums import OfEncodedRows
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.source import LocalSource
from dpmoments.rows.summary import summarize_in_threads

MECHANISMS: dict[str, dict[str, Any]] = {
    "gaussian": {"rho": 0.5},
    "laplace": {"epsilon": 1.0},
    "matrix-laplace": {"epsilon": 1.0},
}
REPAIRS = ("clip", "structured")
ROWS_PER_BATCH = 65_536


def coded(sizes: list[int], n_rows: int) -> tuple[dpm.Schema, pa.Table]:
    """Columns of so many levels, each level as likely as any other."""
    rng = np.random.default_rng(0)
    columns, cells = [], {}
    for place, size in enumerate(sizes):
        levels = [f"level number {level}" for level in range(size)]
        columns.append(dpm.Categorical(f"c{place}", levels))
        cells[f"c{place}"] = pa.DictionaryArray.from_arrays(rng.integers(0, size, n_rows).astype(np.int32), levels)
    return dpm.Schema(*columns), pa.table(cells)


def compare(title: str, jobs: dict[str, Callable[[], Any]], repeats: int) -> None:
    """Jobs in turns: minimum and median of their times, and of the first one's share in each of the others', turn by turn."""
    processor: dict[str, list[float]] = {name: [] for name in jobs}
    clock: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name, job in jobs.items():
            start, used = time.perf_counter(), time.process_time()
            job()
            if turn:  # the first warms up
                clock[name].append(time.perf_counter() - start)
                processor[name].append(time.process_time() - used)
    print(title)
    for name, times in processor.items():
        print(f"  {name:<12} processor {_shown(times)} s, clock {_shown(clock[name])} s")
    first, *others = jobs
    for other in others:
        ratios = [two / one for one, two in zip(processor[first], processor[other], strict=True)]
        print(f"  {other} / {first}: processor {_shown(ratios)}", flush=True)


def _shown(values: list[float]) -> str:
    return f"min {min(values):.3f} median {statistics.median(values):.3f}"


def compare_adult(folder: Path, n_rows: int, repeats: int) -> None:
    data = adult(complete=False)
    table = pa.concat_tables([data.frame] * (n_rows // len(data.frame) + 1)).slice(0, n_rows)
    path = folder / "adult.parquet"
    pq.write_table(table, path)
    rows = Rows.of(path, data.schema, threads=1)
    source = rows.source
    assert isinstance(source, LocalSource)
    summary = MomentSummary(data.schema.n_features, missing="drop")

    def dense() -> Any:
        return summarize_in_threads(OfEncodedRows(summary), source.parts(), source.encode_levels, 1)  # type: ignore[arg-type]

    if rows.moments() != dense():
        raise SystemExit("the two ways differ")
    compare(f"adult: {n_rows:,} rows, d = {data.schema.n_features}", {"counted": rows.moments, "dense": dense}, repeats)


def compare_wide(folder: Path, n_rows: int, repeats: int) -> None:
    schema, table = coded([1000, 50, 50, 50], n_rows)
    path = folder / "wide.parquet"
    plain = pa.table({name: table[name].combine_chunks().dictionary_decode() for name in table.column_names})
    pq.write_table(plain, path)
    rows = Rows.of(path, schema, threads=1)

    def scan(dictionaries: list[str]) -> None:
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=dictionaries)
        for batch in file.iter_batches(ROWS_PER_BATCH, use_threads=False):
            del batch

    jobs = {"scan": lambda: scan([]), "counted": rows.moments, "scan, codes": lambda: scan(list(schema.names))}
    compare(f"wide: {n_rows:,} rows, d = {schema.n_features}", jobs, repeats)


def release_once(mechanism: str, n_features: int) -> dict[str, list[float]]:
    """Seconds by the clock and of the processor, and the peak so far in MB, of every step; in this process."""
    schema, table = coded([n_features // 40] * 40, 100_000)
    found: dict[str, list[float]] = {}
    draw = PrivacyFilter.draw

    def step(name: str, job: Callable[[], Any]) -> Any:
        start, used = time.perf_counter(), time.process_time()
        made = job()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found[name] = [time.perf_counter() - start, time.process_time() - used, peak]
        return made

    def timed(self: PrivacyFilter, *given: Any, **options: Any) -> Any:
        return step("noise", lambda: draw(self, *given, **options))

    PrivacyFilter.draw = timed  # type: ignore[method-assign]
    release = step("release", lambda: dpm.release(table, schema, mechanism=mechanism, **MECHANISMS[mechanism]))
    for repair in REPAIRS:
        step(repair, lambda repair=repair: release.with_repair(repair).covariance)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--skip-release", action="store_true")
    parser.add_argument("--job", choices=MECHANISMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(release_once(options.job, options.features)))
        return
    model = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    print(f"{model[0] if model else platform.processor()}, {len(model)} cores")
    with tempfile.TemporaryDirectory() as folder:
        compare_adult(Path(folder), options.rows, options.repeats)
        compare_wide(Path(folder), options.rows, options.repeats)
    for mechanism in [] if options.skip_release else MECHANISMS:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.speed.wide_categories", "--job", mechanism]
        command += ["--features", str(options.features)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        print(f"release: {mechanism}, d = {options.features}")
        for name, (clock, processor, peak) in json.loads(done.stdout).items():
            print(
                f"  {name:<12} clock {clock:6.1f} s, processor {processor:6.1f} s, peak so far {peak:6.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
