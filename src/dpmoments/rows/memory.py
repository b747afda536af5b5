"""Chunks from tables in memory: NumPy arrays, and pandas, Polars and Arrow frames through narwhals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpmoments.rows.encode import encode_columns
from dpmoments.schema import Schema

__all__ = ["ArraySource", "FrameSource", "require_columns"]

FloatArray = npt.NDArray[np.float64]
ROWS_PER_BLOCK = 65_536


@dataclass(frozen=True, eq=False)
class ArraySource:
    """Rows of a two-dimensional NumPy array, its columns in the order of the schema."""

    array: npt.NDArray[Any]
    schema: Schema
    centered: bool

    def __post_init__(self) -> None:
        array, n_columns = self.array, len(self.schema.columns)
        if array.ndim != 2:
            raise ValueError(
                f"an array of {array.ndim} dimensions is not a table: pass shape (rows, columns), "
                "array.reshape(-1, 1) for a single column"
            )
        if array.dtype.names is not None or array.dtype.kind not in "biufO":
            raise TypeError(
                f"an array of dtype {array.dtype} is not a table of numbers: pass a numeric array, or a pandas, Polars or "
                "Arrow frame with named columns"
            )
        if array.shape[1] != n_columns:
            raise ValueError(
                f"the array has {array.shape[1]} columns and the schema {n_columns}: an array's columns are the schema's, "
                "in order"
            )

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.array)

    @property
    def raw(self) -> bool:
        """Whether blocks are the caller's own numbers: the kernel then applies the missing rule itself."""
        return self.array.dtype.kind in "iuf" and self.array.dtype.itemsize <= 8 and self.schema.is_coordinates

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Encoded blocks, shape (≤ 65,536, d); views of the caller's array where nothing needs encoding."""
        if self.raw and self.schema.row_norm in (None, 1.0):
            yield self.array
            return
        for start in range(0, self.n_rows, ROWS_PER_BLOCK):
            part = self.array[start : start + ROWS_PER_BLOCK]
            if self.raw:
                yield part / self.schema.row_norm
                continue
            columns = {
                name: _to_arrow(np.ascontiguousarray(part[:, index]), name)
                for index, name in enumerate(self.schema.names)
            }
            yield encode_columns(columns, self.schema, centered=self.centered)


@dataclass(frozen=True, eq=False)
class FrameSource:
    """Rows of an eager frame that narwhals knows: pandas, Polars, Arrow, Modin, cuDF."""

    frame: nw.DataFrame[Any]
    schema: Schema
    centered: bool

    raw = False

    def __post_init__(self) -> None:
        require_columns(self.frame.columns, self.schema, "the frame")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def blocks(self) -> Iterator[FloatArray]:
        """Encoded blocks, shape (≤ 65,536, d)."""
        for start in range(0, self.n_rows, ROWS_PER_BLOCK):
            part = self.frame[start : start + ROWS_PER_BLOCK]
            columns = {name: _series_to_arrow(part[name], name) for name in self.schema.names}
            yield encode_columns(columns, self.schema, centered=self.centered)


def require_columns(found: list[str], schema: Schema, where: str, *, from_first_line: bool = False) -> None:
    """Raise unless every column of the schema stands exactly once among ``found``.

    Parameters
    ----------
    found : list of str
    schema : Schema
    where : str
        What is being read, for the message.
    from_first_line : bool
        The names are the first line of a text file. Where that line is a record, they are cells, and no message shows them.

    Raises
    ------
    ValueError
        Naming the columns that are absent or repeated.
    """
    if absent := [name for name in schema.names if name not in found]:
        known = f"its columns are {', '.join(map(repr, found))}"
        if from_first_line:
            known = "its first line must hold the names of the columns"
        raise ValueError(f"{where} has no column {', '.join(map(repr, absent))}; {known}")
    if repeated := [name for name in schema.names if found.count(name) > 1]:
        raise ValueError(f"{where} has more than one column named {', '.join(map(repr, repeated))}: rename them")


def _series_to_arrow(series: nw.Series[Any], name: str) -> Any:
    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _mixed(name) from None  # the original message quotes a cell


def _to_arrow(values: npt.NDArray[Any], name: str) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise _mixed(name) from None  # the original message quotes a cell


def _mixed(name: str) -> TypeError:
    return TypeError(
        f"column {name!r} mixes types or holds objects that are neither numbers nor text: convert it to one type first"
    )
