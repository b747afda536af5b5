"""
Time of a preflight, as a ratio to one pass of a release (exact moments) over the same file in the same run; and the memory that a
preflight adds as the table grows.

``python -m benchmarks.speed.preflight`` [--rows 1000000] [--repeats 5]

One thread each, interleaved, ratios of medians. The last line is the peak of resident memory (Linux) that a preflight of 1 and of
8 copies of the mixed table (as many files) adds to what the process had.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.speed.kernel import interleaved_medians
from dpmoments.rows.rows import Rows

LEVELS = ("a", "b", "c")


def tables(n_rows: int) -> dict[str, tuple[pa.Table, dpm.Schema]]:
    """Tables by name, each with its schema."""
    rng = np.random.default_rng(0)

    def numbers(count: int) -> dict[str, pa.Array]:
        return {f"x{i}": pa.array(rng.normal(50, 30, n_rows)) for i in range(count)}

    def columns(count: int) -> list[dpm.Numeric]:
        return [dpm.Numeric(f"x{i}", 0, 100, missing="drop") for i in range(count)]

    texts = {f"c{i}": pa.array(rng.choice([*LEVELS, "D"], n_rows)) for i in range(3)}
    codes = {"k": pa.array(rng.integers(0, 9, n_rows))}
    names = {"c0": pa.array(rng.integers(0, 10**9, n_rows)).cast(pa.string())}
    kinds = [dpm.Categorical(name, LEVELS) for name in texts]
    return {
        "10 numeric columns": (pa.table(numbers(10)), dpm.Schema(*columns(10))),
        "10 numeric columns, row_norm=1": (pa.table(numbers(10)), dpm.Schema(*columns(10), row_norm=1.0)),
        "mixed, a quarter of levels unknown": (
            pa.table(numbers(6) | texts | codes),
            dpm.Schema(*columns(6), *kinds, dpm.Categorical("k", list(range(8)))),
        ),
        "every level unknown, all different": (pa.table(numbers(9) | names), dpm.Schema(*columns(9), kinds[0])),
    }


def added_memory(path: Path, schema: Path) -> float:
    """Megabytes of resident memory that a preflight adds in a fresh process."""
    code = (
        "import re, sys, dpmoments as dpm\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
        "schema = dpm.Schema.load(sys.argv[2]); before = peak()\n"
        "dpm.preflight(sys.argv[1], schema, threads=1); print((peak() - before) / 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path, schema], capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name, (table, schema) in tables(options.rows).items():
            mixed = name.startswith("mixed")
            paths = [folder / "table.parquet"] + ([folder / "table.csv"] if mixed else [])
            pq.write_table(table, paths[0])
            if mixed:
                pa_csv.write_csv(table, paths[1])
            for path in paths:
                seconds = interleaved_medians(
                    {
                        "release": lambda path=path, schema=schema: Rows.of(path, schema, threads=1).moments(),
                        "preflight": lambda path=path, schema=schema: dpm.preflight(path, schema, threads=1),
                    },
                    options.repeats,
                )
                ratio = seconds["preflight"] / seconds["release"]
                print(f"{name}, {path.suffix[1:]}: {ratio:.2f} of a pass ({seconds['preflight']:.2f} s)", flush=True)
            if mixed:
                schema.save(folder / "schema.yaml")
                for copies in (1, 8):
                    several = folder / str(copies)
                    several.mkdir()
                    for copy in range(copies):
                        pq.write_table(table, several / f"{copy}.parquet")
                added = [added_memory(folder / str(copies), folder / "schema.yaml") for copies in (1, 8)]
        print(f"memory added: {added[0]:.0f} MB for {options.rows:,} rows, {added[1]:.0f} MB for {8 * options.rows:,}")


if __name__ == "__main__":
    main()
