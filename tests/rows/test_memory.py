"""A release of a Parquet file takes no more memory for more rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FEW, MANY = 1_000_000, 6_000_000  # fewer rows fill no part
SLACK_MB = 100
"""What allocators keep or not from run to run."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs elsewhere"),
]


def peak_mb(job: str, path: Path, rows: int = 0, row_group: int = 0) -> float:
    """Peak resident memory of one job of the benchmark, run in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.parquet_memory", "--job", job, "--path", str(path)]
    command += ["--rows", str(rows), "--row-group", str(row_group)]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["peak_mb"])


@pytest.mark.parametrize("row_group", [1024 * 1024, MANY], ids=["usual row groups", "one row group"])
def test_peak_memory_does_not_grow_with_the_table(tmp_path: Path, row_group: int) -> None:
    few, many = tmp_path / "few.parquet", tmp_path / "many.parquet"
    peak_mb("write", few, FEW, row_group)
    peak_mb("write", many, MANY, row_group)
    growth = peak_mb("release", many) - peak_mb("release", few)
    assert growth < SLACK_MB
    # planted fault: a table read whole
    assert peak_mb("whole", many) - peak_mb("whole", few) > 1.5 * SLACK_MB
