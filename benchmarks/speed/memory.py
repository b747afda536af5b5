"""Peak memory of releases of large files and wide tables, and what of it is libraries and results.

``python -m benchmarks.speed.memory`` writes the table, and what it was measured with, into docs/evidence/scale.md.

Tables are written batch by batch into a temporary folder (10⁷ rows of 50 numbers: 4 GB of Parquet, then 5 GB of CSV), and removed
when they have been read. Every job runs once, in a process of its own: a release of a few rows with the same columns, whose peak
holds the libraries, the result and the noise, and a release of the table. The difference is what reading needs. The peak is
VmHWM, what the process ever held in memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.speed.timing import peak_kilobytes, processor

ROWS_PER_WRITE = 100_000
FEW_ROWS = 10
THREADS = 2


@dataclass(frozen=True)
class Shape:
    """A table: its rows, its numbers, the levels of its categories, and the format of its file."""

    n_rows: int
    numbers: int
    levels: tuple[int, ...]
    ending: str

    @property
    def schema(self) -> dpm.Schema:
        numbers = [dpm.Numeric(f"x{index}", -4, 4) for index in range(self.numbers)]
        texts = [dpm.Categorical(f"c{index}", _words(size)) for index, size in enumerate(self.levels)]
        return dpm.Schema(*numbers, *texts)

    @property
    def name(self) -> str:
        counted = [f"{self.numbers:,} numbers"] if self.numbers else []
        counted += [f"{len(self.levels)} columns of {self.levels[0]:,} levels"] if self.levels else []
        return f"{self.n_rows:,} rows of {' and '.join(counted)}, {'CSV' if self.ending == '.csv' else 'Parquet'}"


SHAPES = (
    Shape(10_000_000, 50, (), ".parquet"),
    Shape(10_000_000, 50, (), ".csv"),
    Shape(100_000, 2_000, (), ".parquet"),
    Shape(1_000_000, 0, (50,) * 40, ".parquet"),
    Shape(1_000_000, 6, (1_000, 1_000), ".parquet"),
    Shape(1_000_000, 6, (1_000, 1_000), ".csv"),
)


def _words(size: int) -> list[str]:
    return [f"level number {level}" for level in range(size)]


def write(shape: Shape, path: Path, n_rows: int) -> None:
    """Write normal numbers with six digits after the point, and levels drawn evenly."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, ROWS_PER_WRITE):
        size = min(ROWS_PER_WRITE, n_rows - start)
        cells = {f"x{index}": pa.array(rng.standard_normal(size).round(6)) for index in range(shape.numbers)}
        for index, k in enumerate(shape.levels):
            codes = rng.integers(0, k, size).astype(np.int32)
            cells[f"c{index}"] = pa.DictionaryArray.from_arrays(codes, _words(k)).dictionary_decode()
        batch = pa.record_batch(cells)
        if writer is None:
            opened: Callable[..., pa.csv.CSVWriter] = pa.csv.CSVWriter if shape.ending == ".csv" else pq.ParquetWriter
            writer = opened(path, batch.schema)
        writer.write_batch(batch)
    assert writer is not None
    writer.close()


def run(path: Path, shape: Shape) -> None:
    """Release a file in this process; print the peak of the process in MB, and its seconds of processor time."""
    reading = dict(text_format=dpm.TextFormat()) if shape.ending == ".csv" else {}
    dpm.release(path, shape.schema, rho=0.5, mechanism="gaussian", threads=THREADS, **reading)
    print(json.dumps([peak_kilobytes() / 1024, time.process_time()]))


def measured(shape: Shape, n_rows: int, folder: Path) -> tuple[float, float]:
    """The same in a process of its own."""
    path = folder / f"{n_rows}{shape.ending}"
    write(shape, path, n_rows)
    code = (
        f"from pathlib import Path; from benchmarks.speed.memory import Shape, run; run(Path({str(path)!r}), {shape!r})"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True)
    path.unlink()
    peak, seconds = json.loads(done.stdout)
    return peak, seconds


def lines() -> Iterator[str]:
    yield f"{processor()}; {THREADS} threads; dpmoments {dpm.__version__}."
    yield ""
    yield from head("table | release of ten rows | release | reading | processor seconds", "lrrrr")
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            few, _ = measured(shape, FEW_ROWS, Path(folder))
            whole, seconds = measured(shape, shape.n_rows, Path(folder))
            yield f"| {shape.name} | {few:.0f} MB | {whole:.0f} MB | {whole - few:.0f} MB | {seconds:.0f} |"


if __name__ == "__main__":
    write_part(EVIDENCE / "scale.md", "memory", lines())
