"""Peak memory of releases of large files and wide tables, and what of it is libraries and results.

``python -m benchmarks.speed.memory`` writes the table, and what it was measured with, into docs/evidence/scale.md.

Tables are written batch by batch into a temporary folder (10⁷ rows of 50 numbers: 4 GB of Parquet, then 5 GB of CSV), and removed
when they have been read. Every job runs once, in a process of its own: a release of a few rows with the same columns, whose peak
holds the libraries, the result and the noise, and a release of the table. The difference is what reading needs. The peak is
VmHWM, what the process ever held in memory.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.speed.timing import cost_of, processor

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


def write(shape: Shape, path: Path, n_rows: int, rows_per_write: int = ROWS_PER_WRITE) -> None:
    """Write normal numbers with six digits after the point, and levels drawn evenly; a row group at a time."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, rows_per_write):
        size = min(rows_per_write, n_rows - start)
        cells = {f"x{index}": pa.array(rng.standard_normal(size).round(6)) for index in range(shape.numbers)}
        for index, k in enumerate(shape.levels):
            codes = rng.integers(0, k, size).astype(np.int32)
            cells[f"c{index}"] = pa.DictionaryArray.from_arrays(codes, _words(k)).dictionary_decode()
        batch = pa.record_batch(cells)
        if writer is None:
            opened: Callable[..., pa.csv.CSVWriter] = pa.csv.CSVWriter if shape.ending == ".csv" else pq.ParquetWriter
            writer = opened(path, batch.schema)
        writer.write_table(pa.Table.from_batches([batch]), size)
    assert writer is not None
    writer.close()


def release(path: str, shape: Shape) -> None:
    """Release a file in this process."""
    reading = dict(text_format=dpm.TextFormat()) if shape.ending == ".csv" else {}
    dpm.release(path, shape.schema, rho=0.5, mechanism="gaussian", threads=THREADS, **reading)


def measured(shape: Shape, n_rows: int, folder: Path) -> tuple[float, float]:
    """Peak in MB, and seconds of the processor, of a release of so many rows in a process of its own."""
    path = folder / f"{n_rows}{shape.ending}"
    write(shape, path, n_rows)
    cost = cost_of(f"from benchmarks.speed.memory import Shape, release; release({str(path)!r}, {shape!r})")
    path.unlink()
    return cost


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
