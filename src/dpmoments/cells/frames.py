"""Columns of frames and arrays as cells: Arrow arrays, or arrays of Python objects."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.table_libraries import nw, pa

__all__ = ["array_cells", "series_cells"]


def series_cells(series: nw.Series[Any], name: str) -> Any:
    """An Arrow array, or an array of Python objects."""
    native_type = getattr(series.to_native(), "dtype", None)
    if series.dtype == nw.Object or (isinstance(native_type, np.dtype) and native_type.kind == "O"):
        return np.asarray(series.to_numpy(), dtype=object)
    if isinstance(native_type, np.dtype) and native_type in (np.float64, np.float32):
        values = series.to_numpy()
        if not np.isnan(values).any():  # else pandas means empty cells, for which Arrow looks cell by cell
            return array_cells(values)
    with suppress(Exception):  # whose message may quote a cell
        return series.to_arrow()
    raise TypeError(f"column {name!r} of the frame does not hold plain numbers or text: convert it first")


def array_cells(cells: npt.NDArray[Any]) -> Any:
    """An Arrow array, or an array of Python objects."""
    if cells.dtype.kind == "O":
        return cells
    if cells.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a long double beyond float64 is infinite
            return pa.array(np.ascontiguousarray(cells, dtype=np.float64))
    return pa.array(np.ascontiguousarray(cells, dtype=cells.dtype.newbyteorder("=")))
