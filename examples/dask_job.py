"""A release of files that a cluster of Dask reads: two processes here, as many machines as you have elsewhere.

``python examples/dask_job.py`` needs ``pip install 'dpmoments[dask]'``. The table is made up, in a temporary folder.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

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
    """Release twice, by the cluster and by this process, and compare the bits."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_made_up_people(folder)
        options: dict[str, Any] = dict(
            epsilon=1.0, neighbors="add_remove", insecure_seed=0
        )  # FOR THE COMPARISON ALONE: repeats the noise
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
            # A dask.dataframe.DataFrame or a dask.array.Array is passed as it is.
            released = dpm.release(dpm.EngineFiles(folder, engine="dask"), SCHEMA, **options)
        alone = dpm.release(folder, SCHEMA, **options)
    print(f"about {released.n_rows:,.0f} rows; mean age {released.mean[0]:.1f}; spent {released.privacy.budget}")
    print("the same bits as a local pass:", released.noisy_gram.tobytes() == alone.noisy_gram.tobytes())


if __name__ == "__main__":
    main()
