"""Processes told to stop in mid-release: nothing half-written, the ledger says what was spent, and so does the last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked"), pytest.mark.long(sets=None)]
PROGRAM = Path(__file__).parents[1] / "support" / "stopped_processes.py"
NOTHING = "dpmoments: stopped; nothing was spent"
ALL = "dpmoments: stopped; noise was drawn before this: the whole cost counts as spent"
BAD_CELL = "dpmoments: column 'x' has a cell that is missing, not finite or not readable"
STOPS = (
    ("in the first pass", "parquet", "laplace", 130, NOTHING),
    ("while a block is read", "csv", "laplace", 130, NOTHING),
    ("in the first pass", "relation", "laplace", 130, NOTHING),
    ("in a later pass", "csv", "standardized", 130, ALL),
    ("as it is repaired", "parquet", "laplace", 130, ALL),
    ("by a bad cell", "csv", "laplace", 1, BAD_CELL),
)


def prepared(folder: Path, when: str, table: pa.Table) -> None:
    folder.mkdir()
    pq.write_table(table, folder / "people.parquet")
    pa_csv.write_csv(table, folder / "people.csv")
    if when == "by a bad cell":
        lines = (folder / "people.csv").read_text().splitlines(keepends=True)
        (folder / "people.csv").write_text("".join([*lines[:50], "here,0.5\n", *lines[50:] * 4]))
    dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1)).save(folder / "people.yaml")
    dpm.Ledger(folder / "budget.db").grant("people", epsilon=1.0)


@pytest.mark.slow
def test_a_process_that_is_stopped(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.random(30_000), "y": rng.random(30_000)})
    folders = [tmp_path / str(place) for place in range(len(STOPS))]
    given: list[str] = []
    for folder, (when, kind, mechanism, _, _) in zip(folders, STOPS, strict=True):
        prepared(folder, when, table)
        given += [when, kind, mechanism, str(folder)]
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *given], capture_output=True, text=True, timeout=300, check=True
    )
    for folder, (when, _, _, code, said), outcome in zip(folders, STOPS, json.loads(done.stdout), strict=True):
        told = outcome.pop().splitlines()
        assert (when, *outcome, len(told)) == (when, code, "", 1)
        assert told[0].startswith(said)
        left = {path.name for path in folder.iterdir()} - {"budget.db-wal", "budget.db-shm"}
        assert left == {"people.parquet", "people.csv", "people.yaml", "budget.db"}
        ledger = dpm.Ledger(folder / "budget.db")
        assert ledger.spent("people").epsilon == (1.0 if said == ALL else 0.0)
        assert all(check.passed for check in ledger.verify())
