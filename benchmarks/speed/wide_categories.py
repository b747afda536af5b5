"""Time of an additive mechanism's pass over tables of categories, counted and dense; and what a release at d = 2,000 takes.

``python -m benchmarks.speed.wide_categories`` prints what docs/evidence/scale.md says.

Tables are written as Parquet files in a temporary folder; passes are of one thread, in turns in one run, and shown as minimum and
median of processor time, which other work on the machine moves less than time by the clock.

- ``adult``: Adult's 15 columns, d = 106, its rows repeated. ``counted`` is the pass as it is made, ``dense`` the same with a
  feature for every level; both must give the same bits.
- ``wide``: four text columns, one of 1,000 levels and three of 50, d = 1,150. ``counted`` against ``scan``, PyArrow reading
  and decoding the same columns in batches of the same size, as text; ``scan, codes`` reads them as dictionaries.
- ``release``: 40 columns of 50 levels, 10⁵ rows, each mechanism in a process of its own: time of the release, and of reading the
  covariance with two repairs; peak memory (``ru_maxrss``).
"""

from __future__ import annotations

import resource
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
from benchmarks.speed.timing import interleaved, least_and_middle, processor
from dpmoments.datasets import adult
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
N_ROWS, ROWS_PER_BATCH, TURNS = 1_000_000, 65_536, 9


def coded(sizes: list[int], n_rows: int) -> tuple[dpm.Schema, pa.Table]:
    """Columns of so many levels, each level as likely as any other."""
    rng = np.random.default_rng(0)
    columns, cells = [], {}
    for place, size in enumerate(sizes):
        levels = [f"level number {level}" for level in range(size)]
        columns.append(dpm.Categorical(f"c{place}", levels))
        cells[f"c{place}"] = pa.DictionaryArray.from_arrays(rng.integers(0, size, n_rows).astype(np.int32), levels)
    return dpm.Schema(*columns), pa.table(cells)


def compare(title: str, jobs: dict[str, Callable[[], Any]]) -> None:
    """Jobs in turns: minimum and median of their times, and of each one's time over the first one's, turn by turn."""
    seconds = interleaved(jobs, TURNS, time.process_time)
    print(title)
    first, *_ = seconds.values()
    for name, times in seconds.items():
        ratios = [each / one for each, one in zip(times, first, strict=True)]
        print(f"  {name:<12} {least_and_middle(times)} s, × the first {least_and_middle(ratios)}", flush=True)


def compare_adult(folder: Path) -> None:
    data = adult(complete=False)
    table = pa.concat_tables([data.frame] * (N_ROWS // len(data.frame) + 1)).slice(0, N_ROWS)
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
    compare(f"adult: {N_ROWS:,} rows, d = {data.schema.n_features}", {"counted": rows.moments, "dense": dense})


def compare_wide(folder: Path) -> None:
    schema, table = coded([1000, 50, 50, 50], N_ROWS)
    path = folder / "wide.parquet"
    plain = pa.table({name: table[name].combine_chunks().dictionary_decode() for name in table.column_names})
    pq.write_table(plain, path)
    rows = Rows.of(path, schema, threads=1)

    def scan(dictionaries: list[str]) -> None:
        file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=dictionaries)
        for batch in file.iter_batches(ROWS_PER_BATCH, use_threads=False):
            del batch

    jobs = {"scan": lambda: scan([]), "counted": rows.moments, "scan, codes": lambda: scan(list(schema.names))}
    compare(f"wide: {N_ROWS:,} rows, d = {schema.n_features}", jobs)


def release_once(mechanism: str) -> None:
    """Print seconds of the processor, and the peak so far, of every step; in this process."""
    schema, table = coded([50] * 40, 100_000)

    def step(name: str, job: Callable[[], Any]) -> Any:
        used = time.process_time()
        made = job()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {name:<12} {time.process_time() - used:6.1f} s, peak so far {peak:6.0f} MB", flush=True)
        return made

    release = step("release", lambda: dpm.release(table, schema, mechanism=mechanism, **MECHANISMS[mechanism]))
    for repair in REPAIRS:
        step(repair, lambda repair=repair: release.with_repair(repair).covariance)


def main() -> None:
    print(processor())
    with tempfile.TemporaryDirectory() as folder:
        compare_adult(Path(folder))
        compare_wide(Path(folder))
    for mechanism in MECHANISMS:
        print(f"release: {mechanism}, d = 2,000", flush=True)
        code = f"from benchmarks.speed.wide_categories import release_once; release_once({mechanism!r})"
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


if __name__ == "__main__":
    main()
