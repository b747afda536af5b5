"""Libraries that read tables, loaded with the first table.

Analyzing a release needs none of them.

``from dpmoments.foundation.table_libraries import pa, pc`` replaces ``import pyarrow as pa`` and ``import
pyarrow.compute as pc``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

__all__ = ["nw", "pa", "pa_csv", "pc", "pq"]


class LazyModule:
    """Proxy of a module that is imported when an attribute is first used."""

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load

    @cached_property
    def _module(self) -> Any:
        return self._load()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return how to rebuild the proxy."""
        # Engines pickle it with the functions that they send to workers.
        return LazyModule, (self._load,)


def _narwhals() -> Any:
    import narwhals

    return narwhals


def _pyarrow() -> Any:
    import pyarrow

    return pyarrow


def _compute() -> Any:
    import pyarrow.compute

    return pyarrow.compute


def _csv() -> Any:
    import pyarrow.csv

    return pyarrow.csv


def _parquet() -> Any:
    import pyarrow.parquet

    return pyarrow.parquet


if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
else:
    nw = LazyModule(_narwhals)
    pa = LazyModule(_pyarrow)
    pc = LazyModule(_compute)
    pa_csv = LazyModule(_csv)
    pq = LazyModule(_parquet)
