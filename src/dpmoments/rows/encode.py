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

A number beyond the range of float64 is infinite. Text is compared with the levels as it is, blanks and case included;
the empty text is a level where the schema lists it. Integer levels are the same whether a table holds them as integers,
as floats (an integer column with gaps) or as text (``3`` or ``3.0``); where levels are text, a whole number is the text of
its integer. A boolean column takes numbers too, as a numeric
column with bounds 0 and 1 would.

A derived feature is computed from the outcomes for its columns, after those rules, and has none of its own.

A dropped row is a row of NaN here; the kernel turns it into zeros. No error names a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpmoments.array_types import BoolArray, FloatArray
from dpmoments.rows.cells import dropped_by_missing
from dpmoments.rows.objects import object_numbers, object_texts
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Numeric
from dpmoments.schema.derived import DerivedColumn, feature_slices
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.numeric import LARGEST_CELL
from dpmoments.schema.schema import Schema

__all__ = ["encode_columns", "largest_block"]

CodeArray = npt.NDArray[np.int64]

UNKNOWN, MISSING = -1, -2
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


def encode_columns(columns: Mapping[str, Any], schema: Schema, *, mean: bool) -> FloatArray:
    """Encode columns of equal length n.

    Parameters
    ----------
    columns : mapping of str to pyarrow.Array, pyarrow.ChunkedArray or ndarray of objects
    schema : Schema
    mean : bool
        See :meth:`dpmoments.Schema.encoding`.

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
    block = np.zeros((n_rows, schema.n_features), order="F")
    drop = np.zeros(n_rows, dtype=bool)
    encoding = schema.encoding(mean=mean)
    factors = {factor.name for column in schema.derived_columns for factor in column.factors}
    ruled: dict[str, FloatArray] = {}  # cells as their columns' rules left them, in the table's units
    places = list(zip(schema.columns, feature_slices(schema.columns), strict=True))
    for column, place in places:
        if not isinstance(column, DerivedColumn):
            values, dropped = _encode_column(columns[column.name], column, encoding, place.start, block[:, place])
            drop |= dropped
            if column.name in factors:
                ruled[column.name] = values
    for column, place in places:
        if isinstance(column, DerivedColumn):
            values = column.values([ruled[factor.name] for factor in column.factors])
            for feature, cells in zip(range(place.start, place.stop), values.T, strict=True):
                block[:, feature] = encoding.encode_cells(cells, feature)
    encoding.scale_into_ball(block)
    block[drop] = np.nan
    return block


def _encode_column(
    cells: Any, column: Column, encoding: Encoding, feature: int, out: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Fill ``out``, shape (n, k) for k features; return their values in the table's units, and which rows are dropped, (n,)."""
    with suppress(pa.ArrowException):  # whose message may quote a cell
        if isinstance(column, Categorical):
            return out, _one_hot(_codes(cells, column), column, out)  # levels are encoded as they are
        values = _numbers(cells, column)
        missing = ~np.isfinite(values)
        dropped = dropped_by_missing(missing, column.missing, column.name, cell="empty or non-finite", instead="center")
        values = _within_bounds(values, missing, column)
        out[:, 0] = encoding.encode_cells(values, feature)
        return values[:, np.newaxis], dropped
    raise TypeError(f"column {column.name!r} cannot be converted to plain numbers or text: convert it first")


def _within_bounds(values: FloatArray, missing: BoolArray, column: Numeric | Boolean | Coordinate) -> FloatArray:
    """Missing cells at the column's centre, all others moved into its bounds; a coordinate has none."""
    if missing.any():
        values = np.where(missing, column.offset(mean=True)[0], values)
    if isinstance(column, Coordinate):
        return values
    if isinstance(column, Numeric) and column.scale is not None:
        return np.clip(values, -LARGEST_CELL, LARGEST_CELL)
    return np.clip(values, *column.bounds)


def _one_hot(codes: CodeArray, column: Categorical, out: FloatArray) -> BoolArray:
    dropped = dropped_by_missing(codes == MISSING, column.missing, column.name, cell="empty", instead="zero")
    known = np.flatnonzero(codes >= 0)
    out[known, codes[known]] = 1.0
    return dropped | (codes == UNKNOWN) if column.other == "drop" else dropped


def _numbers(cells: Any, column: Numeric | Boolean | Coordinate) -> FloatArray:
    """Cells as float64, null as NaN, shape (n,)."""
    if isinstance(cells, np.ndarray):
        return object_numbers(cells, column.name)

    def read(chunk: Any) -> FloatArray:
        kind = chunk.type
        if pa.types.is_boolean(kind):
            chunk = pc.cast(chunk, pa.uint8())
        elif pa.types.is_decimal(kind):
            # Through text, which rounds each cell correctly: the direct cast's rounding depends on the type's scale.
            chunk = pc.cast(chunk, pa.string())
        elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise TypeError(
                f"column {column.name!r} has type {_type_name(kind)} in the table and a {column.kind} column needs numbers: "
                "convert it, or describe it as Categorical"
            )
        values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    return _gather(cells, read, np.nan)


def _codes(cells: Any, column: Categorical) -> CodeArray:
    """Position of each cell's level, ``UNKNOWN`` or ``MISSING``, shape (n,)."""
    integers = isinstance(column.levels[0], int)
    if isinstance(cells, np.ndarray):
        cells = object_texts(cells, column.name, integers=integers)
    texts = [str(level) for level in column.levels]
    value_set = pa.array(texts + [f"{text}.0" for text in texts] if integers else texts, pa.large_string())

    def read(chunk: Any) -> CodeArray:
        kind = chunk.type
        known = value_set
        if _is_text(kind) or pa.types.is_null(kind) or (pa.types.is_integer(kind) and not integers):
            chunk = pc.cast(chunk, pa.large_string())
            missing = pc.is_null(chunk)
            if _is_text(kind) and "" not in texts:
                missing = pc.fill_null(pc.equal(chunk, ""), True)
        elif pa.types.is_floating(kind) and not integers:
            chunk, missing = _whole_number_texts(chunk), pc.is_null(chunk, nan_is_null=True)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            chunk = pc.add(
                pc.cast(chunk, pa.float64(), safe=False), 0.0
            )  # −0.0, which Arrow does not find, becomes 0.0
            missing = pc.is_null(chunk, nan_is_null=True)
            known = pa.array([float(level) for level in column.levels], pa.float64())
        else:
            raise TypeError(
                f"column {column.name!r} has type {_type_name(kind)} in the table and a categorical column needs text or "
                "integers: convert it, or describe it as Numeric or Boolean"
            )
        position = pc.fill_null(pc.index_in(chunk, value_set=known), UNKNOWN)
        codes: CodeArray = position.to_numpy(zero_copy_only=False).astype(np.int64)
        codes[codes >= len(texts)] -= len(texts)
        codes[missing.to_numpy(zero_copy_only=False).astype(bool)] = MISSING
        return codes

    return _gather(cells, read, MISSING)


def _whole_number_texts(chunk: Any) -> Any:
    """Text of the whole numbers among floats, null elsewhere.

    pandas makes floats of a column of integers as soon as one cell is missing: what the others are must not depend on that.
    """
    values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    whole = np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < 2.0**63)
    texts = pc.cast(pa.array(np.where(whole, values, 0.0).astype(np.int64)), pa.large_string())
    return pc.if_else(pa.array(whole), texts, pa.scalar(None, pa.large_string()))


def _gather(cells: Any, read: Callable[[Any], npt.NDArray[Any]], null: float) -> npt.NDArray[Any]:
    """Apply ``read`` to the plain arrays that ``cells`` is made of; of a dictionary, to its values alone."""
    parts = []
    for part in cells.chunks or [pa.array([], cells.type)] if isinstance(cells, pa.ChunkedArray) else [cells]:
        chunk = pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part
        if not pa.types.is_dictionary(chunk.type):
            parts.append(read(chunk))
            continue
        of_values = read(chunk.dictionary)
        indices = pc.fill_null(pc.cast(chunk.indices, pa.int64()), len(of_values))
        parts.append(np.append(of_values, of_values.dtype.type(null))[indices.to_numpy(zero_copy_only=False)])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _type_name(kind: Any) -> str:
    """The name of an Arrow type without what may be read off cells: names of fields, digits, widths."""
    if pa.types.is_nested(kind):
        return "nested values"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "binary" if pa.types.is_fixed_size_binary(kind) else str(kind)
