"""Cells of the column that tells people apart, read without stopping: which of them name nobody, and are not missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.cells.text_numbers import decoded_without
from dpmoments.cells.units import nameless_cells, unit_ids
from dpmoments.foundation.arrays import BoolArray
from dpmoments.foundation.table_libraries import pa
from dpmoments.foundation.text_format import TextFormat
from dpmoments.inspection.unreadable import UnreadableColumn, raised_by_reading, type_in_words

__all__ = ["UnitCells", "read_unit_cells"]


@dataclass(frozen=True, eq=False, repr=False)
class UnitCells:
    """Cells of a column that tells people apart.

    Attributes
    ----------
    ids : pyarrow large_binary array, length n
        As :func:`dpmoments.cells.units.unit_ids` gives them; null where a cell is unreadable.
    unreadable, kind
        As those of :class:`dpmoments.inspection.unreadable.NumberCells`.
    """

    ids: Any
    unreadable: BoolArray
    kind: str | None = None


def read_unit_cells(cells: Any, column: str, *, written: TextFormat | None = None) -> UnitCells:
    """Read the cells of a column that tells people apart, whatever they hold.

    Parameters
    ----------
    cells : pyarrow.Array, pyarrow.ChunkedArray, ndarray of objects or UnreadableColumn, length n
    column : str
    written : TextFormat, optional
        How they are written, where they are the bytes of a text file.

    Examples
    --------
    >>> read = read_unit_cells(pa.array([7.0, 7.5, None]), "person_id")
    >>> read.ids.to_pylist(), read.unreadable.tolist()
    ([b'7', None, None], [False, True, False])
    """
    if isinstance(cells, UnreadableColumn):
        return UnitCells(pa.nulls(cells.n_cells, pa.large_binary()), np.ones(cells.n_cells, dtype=bool), cells.kind)
    unreadable = np.zeros(len(cells), dtype=bool)
    if written is not None:
        cells, unreadable = decoded_without(cells, written.nulls)
    try:
        ids = unit_ids(cells, column, strict=False)
    except raised_by_reading():  # by the column's type
        return UnitCells(
            pa.nulls(len(cells), pa.large_binary()), np.ones(len(cells), dtype=bool), type_in_words(cells.type)
        )
    return UnitCells(ids, unreadable | nameless_cells(cells))
