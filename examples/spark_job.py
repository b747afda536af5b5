"""A release of a Spark DataFrame: two threads here, as many executors as you have elsewhere.

``python examples/spark_job.py`` needs ``pip install "dpmoments[spark]"`` and Java 17 or later. The table is made up,
in a temporary folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import dpmoments as dpm

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("income", 0, 200_000, missing="fill", fill=30_000),
    dpm.Categorical("region", ["north", "south", "east", "west"], missing="zero", other="zero"),
)


def write_made_up_people(folder: Path) -> None:
    """Eight files of 25,000 rows."""
    rng = np.random.default_rng(0)
    for number in range(8):
        people = {
            "age": rng.uniform(18, 90, 25_000),
            "income": rng.lognormal(10.3, 0.5, 25_000),
            "region": rng.choice(["north", "south", "east", "west"], 25_000),
        }
        pq.write_table(pa.table(people), folder / f"{number}.parquet")


def main() -> None:
    """Release twice, by Spark and by this process, and compare the bits."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_made_up_people(folder)
        options: dict[str, Any] = dict(
            epsilon=1.0, neighbors="add_remove", insecure_seed=0
        )  # FOR THE COMPARISON ALONE: repeats the noise
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python: it must have dpmoments, too
        spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
        released = dpm.release(spark.read.parquet(str(folder)), SCHEMA, **options)
        spark.stop()
        alone = dpm.release(folder, SCHEMA, **options)
    print(f"about {released.n_rows:,.0f} rows; mean age {released.mean[0]:.1f}; spent {released.privacy.budget}")
    print("the same bits as a local pass:", released.noisy_gram.tobytes() == alone.noisy_gram.tobytes())


if __name__ == "__main__":
    main()
