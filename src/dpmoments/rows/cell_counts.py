"""Exact counts of rows by the levels of several columns: contingency tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.rows.level_sums import LevelBlock
from dpmoments.rows.summary import Missing, Summary, plain_rows
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import feature_slices
from dpmoments.schema.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellCounts:
    """Exact counts of every table, flattened row by row. Private data: ``repr`` shows none."""

    tables: tuple[IntegerArray, ...]

    def merge(self, other: CellCounts) -> CellCounts:
        """Return the counts of both sets of rows."""
        return CellCounts(tuple(one + two for one, two in zip(self.tables, other.tables, strict=True)))

    def __repr__(self) -> str:
        return f"CellCounts({len(self.tables)} tables, values=<private>)"


@dataclass(frozen=True)
class _Counted:
    """Column of a table: where an encoded row has its level.

    ``start`` is its first feature, ``index`` its index among the level codes of a batch, or among the numbers for a Boolean.
    ``may_lack`` is True if a missing value of a Boolean is encoded as one half.
    """

    start: int
    index: int
    n_levels: int
    is_boolean: bool
    may_lack: bool

    def codes(self, block: FloatArray | LevelBlock) -> npt.NDArray[np.int64]:
        """Return every row's level index, shape (n,); the number of levels if it has none."""
        if self.is_boolean:
            values = block.numbers[:, self.index] if isinstance(block, LevelBlock) else block[:, self.start]
            result = (values >= 0.0).astype(np.int64)
            if self.may_lack:
                result[values == 0.0] = self.n_levels
            return result
        if isinstance(block, LevelBlock):
            return np.asarray(block.codes[self.index], dtype=np.int64)
        one_hot = block[:, self.start : self.start + self.n_levels]
        known: npt.NDArray[np.int64] = np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), self.n_levels)
        return known


@dataclass(frozen=True)
class CellCountSummary(Summary[list[IntegerArray], CellCounts]):
    """Counts of rows in the cells of tables: a row adds 1 to at most one cell of each.

    A Boolean value between 0 and 1 counts as the nearer of the two, and 1/2 as true unless that encodes a missing value. A row
    without a level in a column of a table is in no cell of it. ``tables`` holds indices of ``columns``.
    """

    columns: tuple[_Counted, ...]
    tables: tuple[tuple[int, ...], ...]
    missing: Missing = "error"

    @classmethod
    def of(cls, schema: Schema, tables: Sequence[Sequence[str]], missing: Missing) -> CellCountSummary:
        """Return the summary for tables of Categorical and Boolean columns of a schema, by name."""
        levels = numbers = 0
        columns: dict[str, _Counted] = {}
        for column, features in zip(schema.columns, feature_slices(schema.columns), strict=True):
            if isinstance(column, Categorical):
                columns[column.name] = _Counted(features.start, levels, len(column.levels), False, False)
                levels += 1
                continue
            if isinstance(column, Boolean):
                columns[column.name] = _Counted(
                    features.start, numbers, 2, True, column.missing in ("center", "available")
                )
            numbers += features.stop - features.start
        if unknown := [name for by in tables for name in by if name not in columns]:
            raise InputValueError(Message("not-a-column-of-levels", column=unknown[0]))
        names = list(columns)
        indices = tuple(tuple(names.index(name) for name in by) for by in tables)
        return cls(tuple(columns.values()), indices, missing)

    @property
    def takes_levels(self) -> bool:
        return True

    def start(self) -> list[IntegerArray]:
        return [np.zeros(prod(self.columns[index].n_levels for index in by), np.int64) for by in self.tables]

    def add(self, running: list[IntegerArray], block: Any) -> None:
        rows = block.kept() if isinstance(block, LevelBlock) else plain_rows(block, self.missing)
        codes = [column.codes(rows) for column in self.columns]
        for counts, by in zip(running, self.tables, strict=True):
            cells, known = np.zeros(len(rows), np.int64), np.ones(len(rows), dtype=bool)
            for index in by:
                cells = cells * self.columns[index].n_levels + codes[index]
                known &= codes[index] < self.columns[index].n_levels
            counts += np.bincount(cells[known], minlength=len(counts))

    def finish(self, running: list[IntegerArray]) -> CellCounts:
        return CellCounts(tuple(counts.copy() for counts in running))

    def merge(self, first: CellCounts, second: CellCounts) -> CellCounts:
        return first.merge(second)
