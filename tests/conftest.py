"""What tests of several files share because it takes long to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of two threads; for tests that are marked ``of_spark``."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
    from support.spark_session import start

    session = start("local[2,4]")  # a task may fail three times
    yield session
    session.stop()
