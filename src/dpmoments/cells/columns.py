"""Columns in memory: each read by its declared type, or value by value if it declares none."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.cells.objects import array_cells, series_cells
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.table_libraries import nw, pa
from dpmoments.messages.message import Message

_READABLE_KINDS = "biufOUSTM"
"""Kinds of NumPy types that a column may have; the column's reader decides about bytes."""
_ARROW_TIMES = ("D", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable:
    """Table of equally long columns that do not share a library or a type.

    Columns come from :func:`declared_column`.
    """

    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) > 1:
            raise InputValueError(Message("column-lengths"))

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def cells(self, name: str, part: slice = slice(None)) -> Any:
        """Return the values of some rows of a column: an Arrow array, or an array of Python objects."""
        column = self.columns[name][part]
        return series_cells(column, name) if isinstance(column, nw.Series) else _array_cells(column, name)


def declared_column(values: Any, name: str) -> Any:
    """Return a column as a NumPy array or a narwhals Series, of its declared type.

    The array has one dimension.

    Lists, tuples and other sequences declare no type: they become arrays of objects, so that no value decides how
    another is read.

    >>> declared_column([1, "2", None], "age")
    array([1, '2', None], dtype=object)
    >>> declared_column(np.array([1, 2], dtype=np.int8), "age")
    array([1, 2], dtype=int8)
    """
    library = type(values).__module__.split(".")[0]
    if library == "pyarrow" and isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    elif library == "pandas" and hasattr(values, "dtype") and not hasattr(values, "iloc"):  # an index, or bare cells
        import pandas

        values = pandas.Series(values, dtype=values.dtype)
    series = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    cells = declared_array(values, name)
    if cells.ndim != 1:
        raise InputValueError(Message("column-dimensions", column=name, ndim=cells.ndim))
    if cells.dtype.kind not in _READABLE_KINDS:
        raise InputTypeError(Message("column-type", column=name, type=cells.dtype.type.__name__))
    return cells


def declared_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return an array of the values' declared type; a sequence becomes an array of objects."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(Message("masked-column", column=name))
    if isinstance(values, list | tuple):
        return objects_of(values, len(values))
    elsewhere = type(values).__module__.split(".")[0] in ("dask", "pyspark")
    if not elsewhere and (isinstance(values, memoryview | array) or hasattr(values, "__array__")):
        return np.asarray(values)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return objects_of(values, len(values))
    raise InputTypeError(Message("column-of-other-type", column=name, got=type(values).__name__))


def objects_of(cells: Iterable[object], n_cells: int) -> npt.NDArray[np.object_]:
    """Return an array of objects, shape (n_cells,); a list among them is one value."""
    return np.fromiter(cells, dtype=object, count=n_cells)


def _array_cells(column: npt.NDArray[Any], name: str) -> Any:
    if column.dtype.kind in "UT":  # Arrow would refuse all cells for half of a surrogate pair in one
        return pa.array([_whole_text(cell) for cell in column.tolist()], pa.large_string())
    if column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] not in _ARROW_TIMES:
        return objects_of(column, len(column))
    with suppress(pa.ArrowException, TypeError, ValueError):  # whose message may quote a cell
        return array_cells(column)
    raise InputTypeError(Message("column-not-plain", column=name))


def _whole_text(cell: object) -> str | None:
    return cell.encode(errors="replace").decode() if isinstance(cell, str) else None
