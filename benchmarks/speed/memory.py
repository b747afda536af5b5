"""
Peak memory of releases of large files and wide tables, and what of it is libraries and results.

``python -m benchmarks.speed.memory`` [--rows 10000000] [--columns 50] [--only CSV] [--page]

Tables are written batch by batch into a temporary folder (10⁷ rows of 50 numbers: 4 GB of Parquet, then 5 GB of CSV), and removed
when they have been read. Every job runs once, in a process of its own: ``nothing`` imports what a release imports and reads a
table of a few rows with the same columns, so that its peak holds the libraries, the result and the noise; ``release`` reads the
table. The difference is what reading needs. The peak is VmHWM, what the process ever held in memory.

``--page`` writes the table, and what it was measured with, into docs/evidence/scale.md.
"""

from __future__ import annotations

import argparse
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
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.speed.kernel import processor

ROWS_PER_WRITE = 100_000
FEW_ROWS = 10
THREADS = 2


@dataclass(frozen=True)
class Shape:
    """A table: its numbers, the levels of its categories, its rows, and the format of its file."""

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


def shapes(n_rows: int, n_columns: int) -> tuple[Shape, ...]:
    return (
        Shape(n_rows, n_columns, (), ".parquet"),
        Shape(n_rows, n_columns, (), ".csv"),
        Shape(n_rows // 100, 2_000, (), ".parquet"),
        Shape(n_rows // 10, 0, (50,) * 40, ".parquet"),
        Shape(n_rows // 10, 6, (1_000, 1_000), ".parquet"),
        Shape(n_rows // 10, 6, (1_000, 1_000), ".csv"),
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


def run(path: Path, shape: Shape) -> dict[str, float]:
    """Release a file in this process: the peak of the process in MB, and its seconds of processor time."""
    reading = dict(text_format=dpm.TextFormat()) if shape.ending == ".csv" else {}
    dpm.release(path, shape.schema, rho=0.5, mechanism="gaussian", threads=THREADS, **reading)
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return {"peak": peak, "seconds": time.process_time()}


def measure(shape: Shape, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Release a few rows, then the table."""
    found = []
    for n_rows in (FEW_ROWS, shape.n_rows):
        path = folder / f"{n_rows}{shape.ending}"
        write(shape, path, n_rows)
        code = (
            "import json; from pathlib import Path; from benchmarks.speed.memory import Shape, run; "
            f"print(json.dumps(run(Path({str(path)!r}), {shape!r})))"
        )
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
        path.unlink()
    return found[0], found[1]


def page_lines(found: dict[str, tuple[dict[str, float], dict[str, float]]]) -> Iterator[str]:
    yield f"{processor()}; {THREADS} threads; dpmoments {dpm.__version__}."
    yield ""
    yield "| table | release of ten rows | release | reading | processor seconds |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, (few, all_rows) in found.items():
        reading = all_rows["peak"] - few["peak"]
        yield f"| {name} | {few['peak']:.0f} MB | {all_rows['peak']:.0f} MB | {reading:.0f} MB | {all_rows['seconds']:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--only", default="", help="tables whose names have this in them")
    parser.add_argument("--page", action="store_true", help="write the table into docs/evidence/scale.md")
    options = parser.parse_args()
    if options.page and options.only:
        parser.error("the page is of all tables: leave out --only")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes(options.rows, options.columns):
            if options.only not in shape.name:
                continue
            found[shape.name] = measure(shape, Path(folder))
            print(shape.name, *found[shape.name], file=sys.stderr, flush=True)
    print("\n".join(page_lines(found)))
    if options.page:
        write_part(EVIDENCE / "scale.md", "memory", page_lines(found))


if __name__ == "__main__":
    main()
