"""Libraries that read tables, loaded with the first table.

Analyzing a release needs none of them.

``from dpmoments.base.table_libraries import pa, pc`` replaces ``import pyarrow as pa`` and ``import
pyarrow.compute as pc``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["nw", "pa", "pa_csv", "pc", "pq"]


class LazyModule:
    """Proxy of a module that is imported when an attribute is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)  # the next use does not ask again
        return value

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        """Return how to rebuild the proxy, which engines send to workers with functions that use it."""
        return LazyModule, (self._name,)


if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
else:
    nw = LazyModule("narwhals")
    pa = LazyModule("pyarrow")
    pc = LazyModule("pyarrow.compute")
    pa_csv = LazyModule("pyarrow.csv")
    pq = LazyModule("pyarrow.parquet")


def type_name(kind: Any) -> str:
    """Format an Arrow type without what may come from values: field names, digits, widths."""
    if pa.types.is_nested(kind):
        return "nested values"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "binary" if pa.types.is_fixed_size_binary(kind) else str(kind)
