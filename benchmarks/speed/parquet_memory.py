"""Peak memory of one job on a Parquet file of six numeric columns and one of text: writing it, or a release of it.

``tests/rows/test_memory.py`` runs each job in a process of its own. The peak is ``ru_maxrss``, what the process ever held in
memory, libraries included; ``whole`` releases the table after reading it whole.
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpmoments as dpm

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=["write", "release", "whole"], required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--rows", type=int, default=0)
    parser.add_argument("--row-group", type=int, default=0)
    options = parser.parse_args()
    if options.job == "write":
        write_table(Path(options.path), options.rows, options.row_group)
    else:
        table = options.path if options.job == "release" else pq.read_table(options.path)
        dpm.release(table, SCHEMA, epsilon=1.0)
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
