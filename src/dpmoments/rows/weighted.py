"""Summaries of rows with sampling weights: exact integer sums of each row times its weight.

A weight w is a whole number t from 0 to T = 2^:data:`~dpmoments.schema.columns.WEIGHT_BITS`, the nearest to T·w/W, and T from
the cap W on. The rows whose t has a binary digit are summed like a table of their own, one sum for each digit; twice the sum of
the higher digits plus that of the next is Σ t·q, in integers, whatever q is. Each row's t depends on that row only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic

import numpy as np

from dpmoments.base.arrays import FloatArray, IntegerArray
from dpmoments.rows.level_sums import CodedBlock, LevelLayout, OfEncodedRows, counting_levels
from dpmoments.rows.summary import Result, Running, Summary
from dpmoments.schema.columns import WEIGHT_BITS, WeightColumn
from dpmoments.schema.schema import Schema

_ONE = 1 << WEIGHT_BITS


@dataclass(frozen=True)
class WeightCells:
    """Cells of the sampling weights among those of encoded rows."""

    feature: int  # index of the weight among the features as rows are read
    offset: float  # with `scale`: t/T of an encoded weight x is offset + scale·x
    scale: float
    released: bool  # false: the weight is no feature of what is summed

    @classmethod
    def of(cls, schema: Schema) -> WeightCells:
        """Return the cells of rows that are read by this schema, with a mean."""
        column, features = next(pair for pair in schema.columns_with_slices if isinstance(pair[0], WeightColumn))
        assert isinstance(column, WeightColumn)
        cap, offset = column.bounds[1], float(column.offset(True)[0])
        scale = float(schema.encoding().scale[features.start])
        return cls(features.start, offset / cap, scale / cap, column.released)

    def whole(self, cells: FloatArray) -> IntegerArray:
        """Return t of encoded weights, 0 of dropped rows."""
        share = np.nan_to_num(self.offset + self.scale * cells, nan=0.0)
        whole: IntegerArray = np.rint(np.clip(share, 0.0, 1.0) * _ONE).astype(np.int64)
        return whole

    def within_units(self, rows: FloatArray, of_units: IntegerArray) -> FloatArray:
        """Return rows with t/T behind, reduced where the rows of a unit have more than 1.

        ``of_units`` are Σ t of each row's unit. The weight as a feature becomes the unit's: Σ t² is then Σ (Σ_unit t)², which
        sampling errors need.
        """
        own, together = self.whole(rows[:, self.feature]), np.minimum(of_units, _ONE)
        own = own * together // np.maximum(of_units, 1)
        if not self.released:
            return np.column_stack([np.delete(rows, self.feature, axis=1), own / _ONE])
        result = np.column_stack([rows, own / _ONE])
        result[:, self.feature] = (together / _ONE - self.offset) / self.scale
        return result


BEHIND = WeightCells(-1, 0.0, 1.0, False)
"""Cells of t/T behind the features."""


@dataclass(frozen=True, eq=False)
class Weighted(Summary[list[Running], tuple[Result, ...]], Generic[Running, Result]):
    """Summary of weighted rows: a result for each binary digit, the highest first.

    A summary that counts rows by 1, whatever their weight, has one result.
    """

    summary: Summary[Running, Result]
    cells: WeightCells

    takes_levels: ClassVar[bool] = True

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    @property
    def is_weighted(self) -> bool:
        return self.summary.is_weighted

    @property
    def digits(self) -> range:
        return range(WEIGHT_BITS, -1, -1) if self.summary.is_weighted else range(1)

    def by_levels(self, schema: Schema, layout: LevelLayout) -> Weighted[Any, Any]:
        """Return the same summary of rows with level codes."""
        own, of_own = (schema, layout) if self.cells.released else (schema.without_weight, self._without_weight(layout))
        counting = counting_levels(self.summary, own, of_own)
        inner: Summary[Any, Any] = counting or (
            self.summary if self.summary.takes_levels else OfEncodedRows(self.summary)
        )
        return Weighted(inner, self.cells)

    def start(self) -> list[Running]:
        return [self.summary.start() for _ in self.digits]

    def add(self, running: list[Running], block: Any) -> None:
        weights = self._weights(block) if self.is_weighted else None
        if not self.cells.released:
            block = self._without(block)
        if weights is None:
            self.summary.add(running[0], block)
            return
        is_coded = isinstance(block, CodedBlock)
        for digit, part in zip(self.digits, running, strict=True):
            chosen = np.flatnonzero(weights >> digit & 1)
            if len(chosen):
                self.summary.add(part, block.chosen(chosen) if is_coded else block[chosen])

    def _weights(self, block: Any) -> IntegerArray:
        """Return t of each row."""
        if isinstance(block, CodedBlock):
            return self.cells.whole(block.numbers[:, self._index(block.layout)])
        return self.cells.whole(block[:, self.cells.feature])

    def _without(self, block: Any) -> Any:
        """Return the rows without the weight."""
        if not isinstance(block, CodedBlock):
            return np.delete(block, self.cells.feature, axis=1)
        numbers = np.asfortranarray(np.delete(block.numbers, self._index(block.layout), axis=1))
        return replace(block, layout=self._without_weight(block.layout), numbers=numbers)

    def _index(self, layout: LevelLayout) -> int:
        """Return the weight's index among the numbers."""
        return int(np.searchsorted(layout.numbers, self.cells.feature))

    def _without_weight(self, layout: LevelLayout) -> LevelLayout:
        kept = layout.numbers[:-1]  # it is the last column
        encoding, slices = layout.encoding.of_features(np.arange(len(kept))), dict([*layout.slices.items()][:-1])
        return replace(layout, n_features=layout.n_features - 1, numbers=kept, encoding=encoding, slices=slices)

    def finish(self, running: list[Running]) -> tuple[Result, ...]:
        return tuple(map(self.summary.finish, running))

    def merge(self, first: tuple[Result, ...], second: tuple[Result, ...]) -> tuple[Result, ...]:
        return tuple(self.summary.merge(*pair) for pair in zip(first, second, strict=True))

    def total(self, digits: tuple[Any, ...]) -> Any:
        """Return Σ t·q from its digits."""
        merge = self.summary.merge
        total, *rest = digits
        for digit in rest:
            total = merge(merge(total, total), digit)
        return total
