"""Steps that refine targets read the same rows, to the last bit, however a table comes in, and are charged once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.releases.moment_release import MomentRelease
from support.said import refused
from support.spark_session import of_spark

N = 600
RNG = np.random.default_rng(3)
AGE, SCORE = RNG.uniform(20.0, 80.0, N), RNG.uniform(0.0, 1.0, N)
FRAME = pd.DataFrame(
    {
        "age": np.where(RNG.random(N) < 0.05, np.nan, AGE),
        "score": SCORE,
        "region": RNG.choice(["north", "south"], N),
        "income": AGE + 30.0 * SCORE + RNG.normal(0.0, 4.0, N),
        "person": RNG.integers(0, 200, N),
    }
)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, missing="drop"),
    dpm.Numeric("score", 0, 1),
    dpm.Categorical("region", ["north", "south"]),
    dpm.Numeric("income", 0, 200),
)


def released(data: Any, **options: Any) -> MomentRelease:
    chosen = {"rho": 4.0, "targets": ["income", "score"], "insecure_seed": 5, **options}
    return dpm.release(data, SCHEMA, **chosen)


def bits(release: MomentRelease) -> dict[str, Any]:
    """All of a release but its number and time."""
    entries = release.to_dict()
    del entries["origin"]
    return entries


def dask(folder: Path) -> Any:
    del folder
    frames = pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'dpmoments[dask]'")
    return frames.from_pandas(FRAME.sample(frac=1.0, random_state=1), npartitions=4)


def parquet(folder: Path) -> str:
    for part, first in enumerate(range(0, N, 250)):
        pq.write_table(TABLE.slice(first, 250), folder / f"{part}.parquet", row_group_size=100)
    return str(folder / "*.parquet")


@pytest.mark.parametrize("unit", [None, dpm.PrivacyUnit("person", max_rows=2)], ids=["rows", "units"])
@pytest.mark.parametrize("make", [dask, parquet], ids=["dask", "parquet"])
def test_frames_of_engines_and_files_give_the_bits_of_a_local_frame(
    make: Callable[[Path], Any], unit: dpm.PrivacyUnit | None, tmp_path: Path
) -> None:
    release = released(make(tmp_path), privacy_unit=unit)
    assert bits(release) == bits(released(FRAME, privacy_unit=unit))
    assert release.ridge("income").refined


class TestSpark:
    pytestmark = of_spark

    @pytest.mark.slow
    def test_a_frame_gives_the_bits_of_a_local_one(self, spark: Any) -> None:
        frame = spark.createDataFrame(TABLE).repartition(3)
        options: dict[str, Any] = {"privacy_unit": dpm.PrivacyUnit("person", max_rows=2), "targets": ["income"]}
        assert bits(released(frame, **options)) == bits(released(FRAME, **options))


def test_rows_of_a_unit_beyond_its_bound_are_in_no_step() -> None:
    far = pd.DataFrame({"age": 80.0, "score": 1.0, "region": "north", "income": 0.0, "person": 999}, index=range(300))
    known = FRAME.dropna().assign(person=range(len(FRAME.dropna())))
    unit = dpm.PrivacyUnit("person", max_rows=2)
    release = released(pd.concat([known, far]), rho=1e4, mechanism="gaussian", privacy_unit=unit)
    assert release.n_rows == pytest.approx(len(known) + 2, abs=0.1)
    assert release.ridge("income").params["age"] == pytest.approx(1.0, abs=0.05)
    [entry, _] = release.diagnostics["targets"]
    assert entry["clipped"] == pytest.approx(2.0, abs=0.5)


def test_a_ledger_is_charged_the_whole_cost_once(tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "budget.db")
    ledger.grant("people", rho=4.5)
    release = released(FRAME, dataset="people", ledger=ledger, insecure_seed=None)
    assert release.receipt.exhausts
    assert ledger.left("people").rho == pytest.approx(0.5)
    with refused("budget-exceeded", dpm.BudgetExceededError):
        released(FRAME, dataset="people", ledger=ledger, insecure_seed=None)
