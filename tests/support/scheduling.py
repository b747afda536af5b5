"""Which process of a parallel run gets which tests: those of a file stay together, so that what they share is made once."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

__all__ = ["FIRST", "OF_SPARK", "FilesTogether"]

OF_SPARK = (
    "tests/rows/test_row_filter.py",
    *("tests/contracts/test_entrances.py", "tests/rows/test_spark.py", "tests/rows/test_spark_types.py"),
)
"""In one process, so that one session is started."""
FIRST = (
    *OF_SPARK,
    *("tests/rows/test_spark_disk.py", "tests/analysis/test_coverage.py", "tests/privacy/test_ledger_processes.py"),
    *("tests/contracts/test_contradictions.py", "tests/desk/test_desk.py", "tests/rows/test_dask.py"),
)
"""Files that take longest, which begin first: no process waits at the end for one of them."""


class FilesTogether(LoadScopeScheduling):
    """Gives out files whole, in the order in which they were collected, and those of Spark together."""

    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "Spark" if file in OF_SPARK else file
