"""Restriction to rows with given levels of a column; others are left out before encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.cells.reading import MISSING, level_codes, numbers, strict_numbers
from dpmoments.foundation.arrays import BoolArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.messages.message import Message
from dpmoments.rows.summary import dropped_by_missing
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Level, grouping_column, levels_of, schema_of_groups
from dpmoments.schema.schema import Schema


@dataclass(frozen=True)
class Restriction:
    """Selection of rows by their level of one column, and the schema of the other columns.

    ``column`` (Categorical or Boolean) is read but not encoded. A row without one of its levels is left out, whatever
    the column's rule; with ``missing="error"``, a missing value is still an error, as is an unreadable one of a
    Boolean.
    """

    column: Categorical | Boolean
    levels: tuple[Level, ...]
    schema: Schema

    @classmethod
    def of(cls, schema: Schema, by: str, levels: Sequence[Level]) -> Restriction:
        """Return the restriction to rows with one of these levels in the column ``by``."""
        column = grouping_column(schema, by)
        known = levels_of(column)
        if unknown := [level for level in levels if not any(level is one or _same(level, one) for one in known)]:
            raise InputValueError(Message("unknown-group", level=unknown[0], column=by, known=[*known]))
        return cls(column, tuple(levels), schema_of_groups(schema, by))

    def applied(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other columns of a batch, limited to the selected rows."""
        with suppress(pa.ArrowException):  # whose message may quote a cell
            kept = self._kept(columns[self.column.name])
            return {name: _rows(columns[name], kept) for name in self.schema.names}
        raise InputTypeError(Message("column-not-divided", column=self.column.name))

    def _kept(self, cells: Any) -> BoolArray:
        """Return the mask of selected rows, shape (n,)."""
        if isinstance(self.column, Categorical):
            codes = level_codes(cells, self.column)
            missing, instead = codes == MISSING, "zero"
        else:
            strict = self.column.missing == "error"
            values = strict_numbers(cells, self.column) if strict else numbers(cells, self.column)[0]
            missing, instead = ~np.isfinite(values), "fill"
            if self.column.missing == "fill":
                values, missing = np.where(missing, self.column.replacement, values), np.zeros_like(missing)
            # as the cell would be encoded: beyond 0 and 1 at the nearer; between them it is no level
            codes = np.where(values >= 1.0, 1, np.where(values <= 0.0, 0, -1))
        dropped_by_missing(missing, self.column.missing, self.column.name, cell="empty", instead=instead)
        indices = [levels_of(self.column).index(level) for level in self.levels]
        kept: BoolArray = np.isin(codes, indices) & ~missing
        return kept


def _same(first: Level, second: Level) -> bool:
    return type(first) is type(second) and first == second


def _rows(cells: Any, kept: BoolArray) -> Any:
    if isinstance(cells, np.ndarray):
        return cells[kept]
    chunks = cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]
    ends = np.cumsum([len(chunk) for chunk in chunks])
    parts = np.split(kept, ends[:-1]) if len(chunks) else []
    result = [_plain(chunk).filter(pa.array(part)) for chunk, part in zip(chunks, parts, strict=True)]
    return pa.chunked_array(result, type=None if result else cells.type)


def _plain(chunk: Any) -> Any:
    """Convert an array to a type that Arrow can filter."""
    if pa.types.is_run_end_encoded(chunk.type):
        chunk = pc.run_end_decode(chunk)
    if pa.types.is_string_view(chunk.type):
        return chunk.cast(pa.large_string())
    return chunk
