"""What tests of several files share because it takes long to start, and the marks that say which suites a test is in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent

MARKS = {
    "law": (
        "noise",
        "audit",
        "privacy/test_laws.py",
        "privacy/test_curve_",
        "mechanisms/test_coinpress",
        "mechanisms/test_mean",
    )
    + ("papers", "contracts/test_contract.py", "contracts/test_noise_contract.py", "repair/test_structured_repair.py"),
    "process": (
        "rows/test_spark",
        "rows/test_dask.py",
        "rows/test_memory.py",
        "rows/test_compiled.py",
        "rows/test_sources.py",
    )
    + (
        "ledger/test_ledger_processes.py",
        "spending/test_stopping.py",
        "spending/test_full_disk.py",
        "contracts/test_fuzz.py",
    )
    + ("contracts/test_interrupted_import.py", "contracts/test_entrances.py", "contracts/test_nothing_on_disk.py")
    + ("contracts/test_types.py", "estimators"),
    "site": ("site", "plots"),
}
"""Folders and beginnings of file names whose tests take most of the time: samples compared with an exact law, programs that are
started (Spark, a browser, several processes), pages and pictures. ``make test-fast`` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.path.is_relative_to(TESTS):
            if item.path.is_relative_to(TESTS.parent / "benchmarks"):
                item.add_marker("law")
            continue
        where = item.path.relative_to(TESTS).as_posix()
        for mark, beginnings in MARKS.items():
            if where.startswith(beginnings):
                item.add_marker(mark)


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of two threads; for tests that are marked ``of_spark``."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
    from support.spark_session import start

    session = start("local[2,4]")  # a task may fail three times
    yield session
    session.stop()
