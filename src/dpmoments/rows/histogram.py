"""Exact row counts: all rows, by a statistic of each, by levels or by names in columns."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Generic, TypeAlias

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.rows.compiled import CellRules, CompiledFeatures, compiled_features
from dpmoments.rows.kernel import NumberBlock, transformed_norms
from dpmoments.rows.level_sums import CodedBlock
from dpmoments.rows.rounding import RowMap
from dpmoments.rows.summary import Adapted, Missing, PrivateSums, Result, Summary, plain_rows
from dpmoments.schema.cell_reading import name_of
from dpmoments.schema.columns import NAME_WORDS, Boolean, Categorical
from dpmoments.schema.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellCounts(PrivateSums):
    """Exact counts of every table: of cells, flattened row by row, or by name."""

    tables: tuple[Any, ...]


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

    def codes(self, block: FloatArray | CodedBlock) -> npt.NDArray[np.int64]:
        """Return every row's level index, shape (n,); the number of levels if it has none."""
        if self.is_boolean:
            values = block.numbers[:, self.index] if isinstance(block, CodedBlock) else block[:, self.start]
            result = (values >= 0.0).astype(np.int64)
            if self.may_lack:
                result[values == 0.0] = self.n_levels
            return result
        if isinstance(block, CodedBlock):
            return np.asarray(block.codes[self.index], dtype=np.int64)
        one_hot = block[:, self.start : self.start + self.n_levels]
        return np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), self.n_levels)


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
        for column, features in schema.columns_with_slices:
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
            raise InputValueError(f"'{unknown[0]}' is not a categorical or Boolean column of the schema")
        names = list(columns)
        indices = tuple(tuple(names.index(name) for name in by) for by in tables)
        return cls(tuple(columns.values()), indices, missing)

    takes_levels: ClassVar[bool] = True

    def start(self) -> list[IntegerArray]:
        return [np.zeros(prod(self.columns[index].n_levels for index in by), np.int64) for by in self.tables]

    def add(self, running: list[IntegerArray], block: Any) -> None:
        rows = block.kept() if isinstance(block, CodedBlock) else plain_rows(block, self.missing)
        codes = [column.codes(rows) for column in self.columns]
        for counts, by in zip(running, self.tables, strict=True):
            cells, known = np.zeros(len(rows), np.int64), np.ones(len(rows), dtype=bool)
            for index in by:
                cells = cells * self.columns[index].n_levels + codes[index]
                known &= codes[index] < self.columns[index].n_levels
            counts += np.bincount(cells[known], minlength=len(counts))

    def finish(self, running: list[IntegerArray]) -> CellCounts:
        return CellCounts(tuple(counts.copy() for counts in running))


@dataclass(frozen=True)
class NameSummary(Summary[list[Counter[bytes]], CellCounts]):
    """Row counts by name; a row has one name in a column, or none.

    ``starts`` are the first features of the columns (:class:`~dpmoments.schema.columns.NameColumn`).
    """

    starts: tuple[int, ...]
    missing: Missing

    def start(self) -> list[Counter[bytes]]:
        return [Counter() for _ in self.starts]

    def add(self, running: list[Counter[bytes]], block: npt.NDArray[Any]) -> None:
        rows = plain_rows(block, self.missing)
        for counts, first in zip(running, self.starts, strict=True):
            words = np.ascontiguousarray(rows[:, first : first + NAME_WORDS])
            names, times = np.unique(
                words[words.any(axis=1)].view(f"V{words.itemsize * NAME_WORDS}"), return_counts=True
            )
            counts.update(dict(zip((name.tobytes() for name in names), times.tolist(), strict=True)))

    def finish(self, running: list[Counter[bytes]]) -> CellCounts:
        return CellCounts(
            tuple(Counter({name_of(np.frombuffer(name)): n for name, n in counts.items()}) for counts in running)
        )


CountArray: TypeAlias = npt.NDArray[np.int64]

RowStatistic: TypeAlias = Callable[[FloatArray], FloatArray]
"""Map from a batch of shape (m, d), C-contiguous float64 in unit-ball units, to m values.

Each value depends on its row only, to the last bit, whatever the batch. Mechanisms use frozen dataclasses, which every
engine can send to its workers.
"""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histogram(PrivateSums):
    """Exact counts of a row statistic.

    Attributes
    ----------
    counts : ndarray of shape (len(edges) − 1,), int64
        Rows with edges[i] ≤ statistic < edges[i + 1].
    below, above : int
        Rows below the first edge; rows at or above the last edge, NaN included.
    """

    counts: CountArray
    below: int
    above: int

    @property
    def total(self) -> int:
        """Number of all rows, inside the edges or not."""
        return int(self.counts.sum()) + self.below + self.above


@dataclass(frozen=True, eq=False)
class HistogramSummary(Summary[CountArray, Histogram]):
    """Row counts by a statistic; a row that ``missing`` drops is in no bin."""

    statistic: RowStatistic
    edges: FloatArray
    missing: Missing = "error"

    def __post_init__(self) -> None:
        edges = np.asarray(self.edges, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2 or not (np.diff(edges) > 0).all():
            raise InputValueError("edges must be at least two increasing numbers")
        object.__setattr__(self, "edges", edges)

    def start(self) -> CountArray:
        return np.zeros(len(self.edges) + 1, dtype=np.int64)

    def add(self, running: CountArray, block: npt.NDArray[Any]) -> None:
        rows = plain_rows(block, self.missing)
        values = np.asarray(self.statistic(rows), dtype=np.float64)
        if values.shape != (len(rows),):
            raise InputValueError("the statistic did not return one value per row")  # the number of rows is private
        # NaN sorts last, so it is counted above.
        running += np.bincount(np.searchsorted(self.edges, values, side="right"), minlength=len(running))

    def finish(self, running: CountArray) -> Histogram:
        return Histogram(running[1:-1].copy(), int(running[0]), int(running[-1]))


@dataclass(frozen=True)
class RowCount(Summary[list[int], int]):
    """Number of rows, including dropped ones if ``keep_dropped``."""

    missing: Missing = "error"
    keep_dropped: bool = False

    def start(self) -> list[int]:
        return [0]  # a list, since batches are counted in place

    takes_levels: ClassVar[bool] = True

    def add(self, running: list[int], block: npt.NDArray[Any] | CodedBlock) -> None:
        if isinstance(block, CodedBlock):
            running[0] += len(block if self.keep_dropped else block.kept())
            return
        whole = self.keep_dropped and self.missing == "drop"
        running[0] += len(block if whole else plain_rows(block, self.missing))

    def finish(self, running: list[int]) -> int:
        return running[0]

    def merge(self, first: int, second: int) -> int:
        return first + second


def require_rowwise(statistic: RowStatistic, n_features: int) -> None:
    """Reject a statistic that depends on the row's position or batch."""
    # It is tested on synthetic rows.
    made_up = np.random.default_rng(0).standard_normal((67, n_features)) / np.sqrt(n_features)
    together = np.asarray(statistic(made_up.copy()), dtype=np.float64)
    if together.shape != (len(made_up),):
        raise InputValueError(
            f"the statistic returned shape {together.shape} for {len(made_up)} rows: return one value per row"
        )
    backwards = np.asarray(statistic(np.ascontiguousarray(made_up[::-1])), dtype=np.float64)[::-1]
    parts = [statistic(made_up[start:stop].copy()) for start, stop in ((0, 1), (1, 4), (4, 37), (37, 67))]
    for again in (backwards, np.concatenate(parts)):
        if not np.array_equal(together, again, equal_nan=True):
            raise InputValueError(
                "a row's statistic depends on other rows, so one row could change the bins of others: compute it row "
                "by row (a sum along axis 1, or dpmoments.rows.kernel.transformed_norms), not by a matrix product"
            )


# Exact sums and squares of single features and counts of rows by length, for rough scales.
#
# A value is scaled about a center and rounded to a lattice, element by element: the result depends on nothing else. Sums
# and squares clip it to [−1, 1] first; a length is the root of a sum of squares. All are integers, or made of them, so that no
# order changes a bit. A table of numbers takes these steps in machine code where that is worth loading, with the same bits.

_ROWS_BEFORE_COMPILED = 100_000
"""Rows of a block from which machine code is worth loading."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginalSums(PrivateSums):
    """Exact count, Σz and Σz² of lattice values |z| ≤ 2^bits, as Python integers: private data."""

    count: int
    sums: IntegerArray  # (k,), Σz
    squares: IntegerArray  # (k,), Σz²


@dataclass(eq=False)
class RunningFeatures:
    """Running counts or sums of one thread, and its machine code once it is loaded."""

    counts: IntegerArray
    rows: int = 0
    compiled: CompiledFeatures | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class _OfFeatures(Summary[RunningFeatures, Result], Generic[Result]):
    """Summary of features (x − center) · scale, both of these public or from noisy answers."""

    features: tuple[int, ...]
    center: FloatArray
    scale: FloatArray
    missing: Missing = field(default="error", kw_only=True)

    takes_levels: ClassVar[bool] = True

    def chosen(self, block: Any) -> FloatArray:
        """Return the features of the kept rows of a batch, C-contiguous."""
        if isinstance(block, CodedBlock):
            rows = block.kept().numbers[:, np.searchsorted(block.layout.numbers, self.features)]
        else:
            rows = plain_rows(block, self.missing)[:, list(self.features)]
        return np.ascontiguousarray(rows)

    def of_numbers(self, rules: CellRules) -> OfNumbersAlone | None:
        """Return the same summary of batches of numbers, if these are all features."""
        every = self.features == tuple(range(len(rules.drops)))
        return OfNumbersAlone(self, rules) if every and self.missing == "drop" else None

    @abstractmethod
    def add_numbers(self, running: RunningFeatures, compiled: CompiledFeatures, numbers: npt.NDArray[Any]) -> bool:
        """Add rows of numbers before rules, in machine code; return False if a rule refuses a cell."""


@dataclass(frozen=True)
class OfNumbersAlone(Adapted[RunningFeatures, Any]):
    """Summary of batches of numbers before encoding, in machine code if that is worth loading."""

    summary: _OfFeatures[Any]
    rules: CellRules

    def add(self, running: RunningFeatures, block: Any) -> None:
        assert isinstance(block, NumberBlock)
        if running.compiled is None and block.n_rows + running.rows >= _ROWS_BEFORE_COMPILED:
            running.compiled = compiled_features(self.rules)
        if running.compiled is None:
            running.rows += block.n_rows
            self.summary.add(running, block.encoded())
        elif not self.summary.add_numbers(running, running.compiled, block.numbers()):
            block.encoded()  # raises what the column's rule says
            raise AssertionError("a cell was refused that its column admits: a defect, please report it")


@dataclass(frozen=True, eq=False)
class MarginalSummary(_OfFeatures[MarginalSums]):
    """Sums and sums of squares, each value clipped to ±1 and rounded to a multiple of 2^−bits."""

    bits: int

    is_weighted = True

    @property
    def _step(self) -> int:
        """Rows whose squares add up to at most 2^53."""
        return 1 << (53 - 2 * self.bits)

    def start(self) -> RunningFeatures:
        return RunningFeatures(np.zeros((3, len(self.features)), dtype=object))  # rows 0 to 2: count, Σz and Σz²

    def add(self, running: RunningFeatures, block: Any) -> None:
        rows, one, step = self.chosen(block), 2.0**self.bits, self._step
        for start in range(0, len(rows), step):
            values = (rows[start : start + step] - self.center) * (self.scale * one)
            np.rint(np.clip(values, -one, one, out=values), out=values)
            sums = np.stack([values.sum(axis=0), np.einsum("ij,ij->j", values, values)])
            running.counts[0] += len(values)
            running.counts[1:] += sums.astype(np.int64).astype(object)

    def add_numbers(self, running: RunningFeatures, compiled: CompiledFeatures, numbers: npt.NDArray[Any]) -> bool:
        one = 2.0**self.bits
        for start in range(0, len(numbers), self._step):
            kept, sums = compiled.sums(numbers[start : start + self._step], self.center, self.scale * one, one)
            if kept < 0:
                return False
            running.counts[0] += kept
            running.counts[1:] += sums.astype(np.int64).astype(object)
        return True

    def finish(self, running: RunningFeatures) -> MarginalSums:
        counts = running.counts
        return MarginalSums(int(counts[0, 0]), counts[1].copy(), counts[2].copy())


@dataclass(frozen=True, eq=False)
class LengthSummary(_OfFeatures[Histogram]):
    """Counts of rows by ‖(x − center) · scale‖ between edges, resolved to 2^−20 of the first."""

    edges: FloatArray

    @cached_property
    def _row_map(self) -> RowMap:
        return RowMap.of(
            len(self.features),
            bits=20,
            radius=float(self.edges[0]),
            center=self.center,
            linear=None,
            scale=self.scale,
            missing="center",
        )

    def start(self) -> RunningFeatures:
        return RunningFeatures(np.zeros(len(self.edges) + 1, dtype=np.int64))

    def add(self, running: RunningFeatures, block: Any) -> None:
        rows = self.chosen(block)
        lengths = transformed_norms(rows, radius=float(self.edges[0]), center=self.center, scale=self.scale)
        cells = np.searchsorted(self.edges, lengths, side="right")
        running.counts += np.bincount(cells, minlength=len(running.counts))

    def add_numbers(self, running: RunningFeatures, compiled: CompiledFeatures, numbers: npt.NDArray[Any]) -> bool:
        units, scale = self._row_map.units, self._row_map.lattice.scale
        return compiled.count_lengths(numbers, self.center, units, scale, self.edges, running.counts) >= 0

    def finish(self, running: RunningFeatures) -> Histogram:
        counts = running.counts
        return Histogram(counts[1:-1].copy(), int(counts[0]), int(counts[-1]))
