"""Cells to encoded rows: the per-row rules of the schema, applied to one batch of Arrow columns.

Every cell has exactly one outcome, whatever it holds, and a row's encoding depends on that row alone:

================================  ==========================================================================
cell                              outcome
================================  ==========================================================================
number inside the bounds          mapped affinely
number outside the bounds         moved to the nearer bound, then mapped
null, NaN, +inf, −inf             the column's ``missing`` rule: error, midpoint of the bounds, or row dropped
level of a categorical            one-hot
unknown level                     the column's ``other`` rule: row dropped, or no level
null or empty text (categorical)  the column's ``missing`` rule: error, no level, or row dropped
================================  ==========================================================================

A dropped row is a row of NaN here; the kernel turns it into zeros. No error names a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpmoments.columns import Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema import Schema

__all__ = ["encode_columns"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


def encode_columns(columns: Mapping[str, Any], schema: Schema, *, centered: bool) -> FloatArray:
    """Encode Arrow columns of equal length n.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array or pyarrow.ChunkedArray
    schema : Schema
    centered : bool
        See :meth:`dpmoments.Schema.encoding`.

    Returns
    -------
    ndarray of shape (n, d)
        Rows of norm ≤ 1 up to rounding (coordinates excepted); dropped rows are NaN throughout.

    Raises
    ------
    ValueError
        If a cell is missing in a column whose rule is ``"error"``.
    TypeError
        If a column's type cannot hold what the schema says.
    """
    n_rows = len(next(iter(columns.values())))
    block = np.zeros((n_rows, schema.n_features))
    drop = np.zeros(n_rows, dtype=bool)
    start = 0
    for column in schema.columns:
        cells = columns[column.name]
        if isinstance(column, Categorical):
            drop |= _one_hot(cells, column, block[:, start : start + len(column.levels)])
        else:
            block[:, start], dropped = _affine(_numbers(cells, column), column, centered)
            drop |= dropped
        start += len(column.feature_names)
    if schema.row_norm is not None:
        block /= schema.row_norm
    block[drop] = np.nan
    return block


def _affine(values: FloatArray, column: Numeric | Boolean | Coordinate, centered: bool) -> tuple[FloatArray, BoolArray]:
    missing = ~np.isfinite(values)
    offset, unit = column.offset(centered)[0], column.unit(centered)[0]
    if not isinstance(column, Coordinate):
        lower, upper = column.bounds
        midpoint = column.offset(True)[0]
        values = np.clip(np.where(missing, midpoint, values), lower, upper)
    encoded = (values - offset) / unit
    if not missing.any():
        return encoded, missing
    if column.missing == "error":
        raise ValueError(
            f"column {column.name!r} has an empty or non-finite cell and its rule is missing='error': choose "
            "missing='center' or missing='drop' in the schema, or clean the table (nothing was spent)"
        )
    if column.missing == "center":
        encoded[missing] = 0.0 if isinstance(column, Coordinate) else encoded[missing]
        return encoded, np.zeros_like(missing)
    return encoded, missing


def _numbers(cells: Any, column: Numeric | Boolean | Coordinate) -> FloatArray:
    """Cells as float64, null as NaN."""
    cells = _decoded(cells)
    kind = cells.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (numeric or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise TypeError(
            f"column {column.name!r} has type {kind} in the table and a {column.kind} column needs numbers: "
            "convert it, or describe it as Categorical"
        )
    if pa.types.is_boolean(kind):
        cells = pc.cast(cells, pa.uint8())
    if pa.types.is_integer(kind) or pa.types.is_float16(kind):
        cells = pc.cast(cells, pa.float64(), safe=False)
    values = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


def _one_hot(cells: Any, column: Categorical, block: FloatArray) -> BoolArray:
    """Fill ``block`` (n × k) with ones at each row's level; return which rows are dropped."""
    cells = _decoded(cells)
    kind = cells.type
    integer_levels = isinstance(column.levels[0], int)
    if _is_text(kind):
        levels = [str(level) for level in column.levels]
        cells = pc.cast(cells, pa.large_string())
        missing = pc.is_null(cells)
        if "" not in levels:
            missing = pc.or_(missing, pc.fill_null(pc.equal(cells, ""), True))
        value_set = pa.array(levels, pa.large_string())
    elif pa.types.is_integer(kind) and not integer_levels:
        cells = pc.cast(cells, pa.large_string())
        missing = pc.is_null(cells)
        value_set = pa.array(column.levels, pa.large_string())
    elif pa.types.is_integer(kind) or (pa.types.is_floating(kind) and integer_levels):
        # pandas turns an integer column with gaps into floats
        cells = pc.cast(cells, pa.float64(), safe=False)
        missing = pc.is_null(cells, nan_is_null=True)
        value_set = pa.array([float(level) for level in column.levels], pa.float64())
    elif pa.types.is_null(kind):
        missing = pc.is_null(cells)
        cells, value_set = pc.cast(cells, pa.large_string()), pa.array([], pa.large_string())
    else:
        raise TypeError(
            f"column {column.name!r} has type {kind} in the table and a categorical column needs text or integers: "
            "convert it, or describe it as Numeric or Boolean"
        )
    level = pc.fill_null(pc.index_in(cells, value_set=value_set), -1).to_numpy(zero_copy_only=False)
    is_missing = missing.to_numpy(zero_copy_only=False).astype(bool)
    if column.missing == "error" and is_missing.any():
        raise ValueError(
            f"column {column.name!r} has an empty cell and its rule is missing='error': choose missing='zero' or "
            "missing='drop' in the schema, or clean the table (nothing was spent)"
        )
    known = (level >= 0) & ~is_missing
    block[np.flatnonzero(known), level[known]] = 1.0
    unknown = ~known & ~is_missing
    dropped = np.zeros(len(level), dtype=bool)
    if column.missing == "drop":
        dropped |= is_missing
    if column.other == "drop":
        dropped |= unknown
    return dropped


def _decoded(cells: Any) -> Any:
    return pc.cast(cells, cells.type.value_type) if pa.types.is_dictionary(cells.type) else cells


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
