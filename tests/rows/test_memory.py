"""A release of a Parquet file takes no more memory for more rows."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.speed.timing import cost_of

FEW, MANY = 1_000_000, 6_000_000  # fewer rows fill no part
SLACK_MB = 100
"""What allocators keep or not from run to run."""
SHAPE = """
import dpmoments as dpm
import pyarrow.parquet as pq
from pathlib import Path
from benchmarks.speed.memory import Shape, write
shape = Shape(0, 6, (4,), ".parquet")
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc"),
]


def peak_mb(code: str) -> float:
    """Peak memory of a process of its own."""
    return cost_of(SHAPE + code)[0]


@pytest.mark.parametrize("row_group", [1024 * 1024, MANY], ids=["usual row groups", "one row group"])
def test_peak_memory_does_not_grow_with_the_table(tmp_path: Path, row_group: int) -> None:
    few, many = (str(tmp_path / name) for name in ("few.parquet", "many.parquet"))
    for path, n_rows in ((few, FEW), (many, MANY)):
        peak_mb(f"write(shape, Path({path!r}), {n_rows}, {row_group})")
    release, whole = (
        [peak_mb(f"dpm.release({table}, shape.schema, epsilon=1.0)") for table in tables]
        for tables in ((repr(few), repr(many)), (f"pq.read_table({few!r})", f"pq.read_table({many!r})"))
    )
    assert release[1] - release[0] < SLACK_MB
    # planted fault: a table read whole
    assert whole[1] - whole[0] > 1.5 * SLACK_MB
