"""Cells to encoded rows: the per-row rules of the schema, applied to one batch of columns.

Every cell has exactly one outcome, whatever it holds, and a row's encoding depends on that row alone:

================================  ==========================================================================
cell                              outcome
================================  ==========================================================================
number inside the bounds          mapped affinely
number outside the bounds         moved to the nearer bound, then mapped
number in a column with a scale   mapped affinely, as ±1e200 if beyond it
null, NaN, +inf, −inf             the column's ``missing`` rule: error, midpoint or centre, or row dropped
level of a categorical            one-hot
unknown level                     the column's ``other`` rule: row dropped, or no level
null or empty text (categorical)  the column's ``missing`` rule: error, no level, or row dropped
================================  ==========================================================================

A number beyond the range of float64 is infinite. What cells of each type are read as, :mod:`dpmoments.cells.reading` says. A
boolean column takes numbers too, as a numeric column with bounds 0 and 1 would.

A derived feature is computed from the outcomes for its columns, after those rules, and has none of its own.

A dropped row is a row of NaN here; the kernel turns it into zeros. No error names a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from dpmoments.array_types import BoolArray, FloatArray
from dpmoments.cells.reading import MISSING, UNKNOWN, CodeArray, level_codes, numbers
from dpmoments.rows.block_memory import BlockMemory
from dpmoments.rows.cells import dropped_by_missing
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Date, Numeric
from dpmoments.schema.derived import DerivedColumn, feature_slices
from dpmoments.schema.numeric import LARGEST_CELL
from dpmoments.schema.schema import Schema

__all__ = ["encode_columns", "largest_block"]

MOST_ROWS_PER_BLOCK = 65_536
MOST_CELLS_PER_BLOCK = 1 << 22


def largest_block(schema: Schema) -> int:
    """How many rows are encoded at a time, so that a block takes 32 megabytes at most, or 64 rows.

    Examples
    --------
    >>> largest_block(Schema.unit_ball(2)), largest_block(Schema.unit_ball(1000))
    (65536, 4194)
    """
    return min(MOST_ROWS_PER_BLOCK, max(64, MOST_CELLS_PER_BLOCK // schema.n_features))


def encode_columns(
    columns: Mapping[str, Any], schema: Schema, *, mean: bool, memory: BlockMemory | None = None
) -> FloatArray:
    """Encode columns of equal length n.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array, pyarrow.ChunkedArray or ndarray of objects
    schema : Schema
    mean : bool
        See :meth:`dpmoments.Schema.encoding`.
    memory : BlockMemory, optional
        Where the rows are put; they are overwritten there by the next. Without it they are the caller's.

    Returns
    -------
    ndarray of shape (n, d)
        Rows of norm ≤ 1 up to rounding, where the schema bounds every column and its row norm is the default; dropped
        rows are NaN throughout.

    Raises
    ------
    ValueError
        If a cell is missing in a column whose rule is ``"error"``.
    TypeError
        If a column's type cannot hold what the schema says.
    """
    n_rows = len(columns[schema.names[0]])
    block = (BlockMemory() if memory is None else memory).block(n_rows, schema.n_features)
    drop = np.zeros(n_rows, dtype=bool)
    encoding = schema.encoding(mean=mean)
    factors = {factor.name for column in schema.derived_columns for factor in column.factors}
    ruled: dict[str, FloatArray] = {}  # cells as their columns' rules left them, in the table's units
    places = list(zip(schema.columns, feature_slices(schema.columns), strict=True))
    for column, place in places:
        if not isinstance(column, DerivedColumn):
            drop |= _apply_rules(columns[column.name], column, block[:, place])
            if column.name in factors:
                ruled[column.name] = block[:, place].copy(order="F")
            if not isinstance(column, Categorical):  # levels are encoded as they are
                encoding.encode_cells(block[:, place.start], place.start, out=block[:, place.start])
            encoding.scale_into_ball(block[:, place], place.start)  # while the column is in the processor's cache
    for column, place in places:
        if isinstance(column, DerivedColumn):
            values = column.values([ruled[factor.name] for factor in column.factors])
            for feature, cells in zip(range(place.start, place.stop), values.T, strict=True):
                encoding.encode_cells(cells, feature, out=block[:, feature])
            encoding.scale_into_ball(block[:, place], place.start)
    if drop.any():
        block[drop] = np.nan
    return block


def _apply_rules(cells: Any, column: Column, out: FloatArray) -> BoolArray:
    """Fill ``out``, shape (n, k) for k features, with their values in the table's units; return which rows are dropped, (n,)."""
    with suppress(pa.ArrowException):  # whose message may quote a cell
        if isinstance(column, Categorical):
            return _one_hot(level_codes(cells, column), column, out)
        values = numbers(cells, column)
        missing = ~np.isfinite(values)
        dropped = dropped_by_missing(missing, column.missing, column.name, cell="empty or non-finite", instead="center")
        _move_within_bounds(values, missing, column, out[:, 0])
        return dropped
    raise TypeError(f"column {column.name!r} cannot be converted to plain numbers or text: convert it first")


def _move_within_bounds(
    values: FloatArray, missing: BoolArray, column: Numeric | Date | Boolean | Coordinate, out: FloatArray
) -> None:
    """Missing cells at the column's centre, all others moved into its bounds; a coordinate has none."""
    if missing.any():
        values = np.where(missing, column.offset(mean=True)[0], values)
    if isinstance(column, Coordinate):
        out[:] = values
    elif isinstance(column, Numeric) and column.scale is not None:
        np.clip(values, -LARGEST_CELL, LARGEST_CELL, out=out)
    else:
        np.clip(values, *column.bounds, out=out)


def _one_hot(codes: CodeArray, column: Categorical, out: FloatArray) -> BoolArray:
    dropped = dropped_by_missing(codes == MISSING, column.missing, column.name, cell="empty", instead="zero")
    known = np.flatnonzero(codes >= 0)
    out[:] = 0.0
    out[known, codes[known]] = 1.0
    return dropped | (codes == UNKNOWN) if column.other == "drop" else dropped
