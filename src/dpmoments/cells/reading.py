"""Values of Arrow arrays and of arrays of Python objects, read as numbers or as levels.

Text is compared with the levels exactly, spaces and case included; the empty text is a level if the column lists it.
Integer levels match integers, floats (an integer column with gaps) and text (``3`` or ``3.0``); if levels are text, a
whole number matches the text of its integer. No error names a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.cells.dates import date_numbers, object_dates
from dpmoments.cells.objects import object_numbers, object_texts
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputTypeError
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.messages.message import Message
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric

CodeArray = npt.NDArray[np.int64]
NumberColumn = Numeric | Date | Boolean | Coordinate

UNKNOWN, MISSING = -1, -2
"""Codes of values outside the column's levels, and of missing values."""


def numbers(cells: Any, column: NumberColumn) -> tuple[FloatArray, BoolArray | None]:
    """Convert values to float64, shape (n,), NaN if missing or unreadable.

    The second result marks values that are neither missing nor of the kind that the column needs; None if there are
    none.

    >>> numbers(pa.array([True, None, False]), Boolean("smoker"))
    (array([ 1., nan,  0.]), None)
    >>> numbers(np.array([True, "yes"], dtype=object), Boolean("smoker"))
    (array([ 1., nan]), array([False,  True]))
    """
    if isinstance(cells, np.ndarray):
        return object_dates(cells, column) if isinstance(column, Date) else object_numbers(cells)
    if isinstance(column, Date):
        unreadable: list[BoolArray] = []

        def read_dates(chunk: Any) -> FloatArray:
            values, wrong = date_numbers(chunk, column)
            unreadable.append(np.zeros(len(values), dtype=bool) if wrong is None else wrong)
            return values

        result = _gather(cells, read_dates, np.nan)
        if not any(part.any() for part in unreadable):
            return result, None
        parts = iter(unreadable)  # by chunk, in the same order
        wrong = _gather(cells, lambda _: next(parts), False)
        return result, wrong if wrong.any() else None

    def read(chunk: Any) -> FloatArray:
        kind = chunk.type
        if pa.types.is_boolean(kind):
            chunk = pc.cast(chunk, pa.uint8())
        elif pa.types.is_decimal(kind):
            # Through text, which rounds each cell correctly: the direct cast's rounding depends on the type's scale.
            chunk = pc.cast(chunk, pa.string())
        elif pa.types.is_temporal(kind):
            raise InputTypeError(
                f"column {column.name!r} holds dates or times, and a {column.kind} column needs numbers: "
                f"describe it as Date, with dates for bounds"
            )
        elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise InputTypeError(
                f"column {column.name!r} has type {_type_name(kind)} in the table and a {column.kind} column needs numbers: "
                "convert it, or describe it as Categorical"
            )
        values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    return _gather(cells, read, np.nan), None


def strict_numbers(cells: Any, column: NumberColumn) -> FloatArray:
    """Convert values like :func:`numbers`, but raise if one is unreadable."""
    values, unreadable = numbers(cells, column)
    if unreadable is not None:
        raise InputTypeError(_unreadable_cell(column))
    return values


def _unreadable_cell(column: NumberColumn) -> Message | str:
    """Describe why a column's values cannot be read, and what to do."""
    if isinstance(column, Date):
        written = {} if column.format is None else {"format": column.format}
        return Message("not-a-date", column=column.name, **written)
    return (
        f"column {column.name!r} holds objects, one of which is not a number: convert the column to numbers first, or "
        "describe it as Categorical"
    )


def level_codes(cells: Any, column: Categorical) -> CodeArray:
    """Return the index of each value's level, ``UNKNOWN`` or ``MISSING``, shape (n,).

    >>> level_codes(pa.array(["south", "west", None]), Categorical("region", ["north", "south"])).tolist()
    [1, -1, -2]
    """
    integers = isinstance(column.levels[0], int)
    if isinstance(cells, np.ndarray):
        cells = object_texts(cells, integers=integers)
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
            raise InputTypeError(
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
    """Format whole numbers among floats as text, null elsewhere."""
    values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    whole = np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < 2.0**63)
    texts = pc.cast(pa.array(np.where(whole, values, 0.0).astype(np.int64)), pa.large_string())
    return pc.if_else(pa.array(whole), texts, pa.scalar(None, pa.large_string()))


def _gather(cells: Any, read: Callable[[Any], npt.NDArray[Any]], null: float) -> npt.NDArray[Any]:
    """Apply ``read`` to the plain arrays of ``cells``.

    Of a dictionary array, only to its dictionary.
    """
    parts = []
    for part in cells.chunks or [pa.array([], cells.type)] if isinstance(cells, pa.ChunkedArray) else [cells]:
        chunk = pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part
        if not pa.types.is_dictionary(chunk.type):
            parts.append(read(chunk))
            continue
        of_values = read(chunk.dictionary)
        if not chunk.null_count and len(of_values):
            parts.append(np.take(of_values, chunk.indices.to_numpy()))
            continue
        indices = pc.fill_null(pc.cast(chunk.indices, pa.int64()), len(of_values))
        parts.append(np.take(np.append(of_values, of_values.dtype.type(null)), indices.to_numpy(zero_copy_only=False)))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _type_name(kind: Any) -> str:
    """Format an Arrow type without what may come from values: field names, digits, widths."""
    if pa.types.is_nested(kind):
        return "nested values"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "binary" if pa.types.is_fixed_size_binary(kind) else str(kind)
