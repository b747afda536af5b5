"""Moments of rows with level codes, by counting: no products of features that are mostly 0.

A pair of categorical columns needs a joint count, a number and a categorical column a sum by level. Both are integers;
times the levels' lattice values they are the entries of Σzzᵀ that the dense pass sums. This requires that the schema
guarantees that no row exceeds the radius, so that none is clipped: a level then has one value in all rows
(``docs/evidence/derivations/exact-sums.md``, section 6).

Small categorical columns are counted together: a *pack* is one column whose levels are the combinations of theirs. The
joint counts of two packs contain those of all pairs of their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.rows.kernel import MomentSummary, MovedNumbers, RunningMoments
from dpmoments.rows.moments import LIMB_BITS, ExactMoments, add_limbs, split_limbs
from dpmoments.rows.rounding import Lattice
from dpmoments.rows.summary import Adapted, Prepared, PrivateSums, Result, Running, Summary
from dpmoments.schema.cell_reading import CodeArray
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import columns_with_slices
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

_MAX_ROWS_PER_BLOCK = 65_536
_MAX_CELLS_PER_BLOCK = 1 << 22


def dense_rows_at_a_time(n_features: int) -> int:
    """Return the number of dense rows held at a time: at most 32 megabytes, or 64 rows."""
    return min(_MAX_ROWS_PER_BLOCK, max(64, _MAX_CELLS_PER_BLOCK // n_features))


@dataclass(frozen=True)
class LevelColumn:
    """Categorical column: first feature, encoded value, and whether a row may lack a level."""

    start: int
    n_levels: int
    may_have_none: bool
    value: float

    @property
    def features(self) -> slice:
        return slice(self.start, self.start + self.n_levels)

    @property
    def n_codes(self) -> int:
        """Number of codes of kept rows: the levels, and one more if rows may lack a level."""
        return self.n_levels + self.may_have_none


@dataclass(frozen=True, eq=False)
class LevelLayout:
    """Division of a schema's features into levels (and their products) and numbers."""

    n_features: int
    numbers: npt.NDArray[np.int64]  # (m,), indices of the features that are numbers
    encoding: Encoding  # encoding of the numbers
    slices: Mapping[str, slice]  # slice among the numbers of each non-categorical column
    columns: tuple[LevelColumn, ...]

    @classmethod
    def of(cls, schema: Schema, *, mean: bool) -> LevelLayout:
        """Return the layout of encoded rows."""
        encoding = schema.encoding(mean=mean)
        ones = np.ones((1, schema.n_features))
        encoding.scale_into_ball(ones)
        is_number, columns = np.ones(schema.n_features, dtype=bool), []
        for column, index in schema.columns_with_slices:
            if isinstance(column, Categorical) and column.coded:
                is_number[index] = False
                none = "zero" in (column.missing, column.other) or column.missing == "available"
                columns.append(LevelColumn(index.start, len(column.levels), none, float(ones[0, index.start])))
        numbers = np.flatnonzero(is_number)
        others = [column for column in schema.columns if not (isinstance(column, Categorical) and column.coded)]
        indices = {column.name: index for column, index in columns_with_slices(others)}
        return cls(schema.n_features, numbers, encoding.of_features(numbers), indices, tuple(columns))


@dataclass(frozen=True, eq=False, repr=False)
class CodedBlock:
    """Encoded rows of a batch."""

    layout: LevelLayout
    numbers: FloatArray  # (n, m), stored by columns, in the unit ball; finite in rows that are not dropped
    # (n,), level index in each categorical column; the number of levels if the row has none
    codes: tuple[CodeArray, ...]
    dropped: BoolArray  # (n,), mask of dropped rows

    def __len__(self) -> int:
        return len(self.dropped)

    def kept(self) -> CodedBlock:
        """Return the rows that are not dropped."""
        if not self.dropped.any():
            return self
        return self.chosen(np.flatnonzero(~self.dropped))

    def rows(self, start: int, stop: int) -> CodedBlock:
        codes = tuple(codes[start:stop] for codes in self.codes)
        return CodedBlock(self.layout, self.numbers[start:stop], codes, self.dropped[start:stop])

    def chosen(self, rows: npt.NDArray[np.intp]) -> CodedBlock:
        """Return some rows, by their indices."""
        codes = tuple(codes[rows] for codes in self.codes)
        return CodedBlock(self.layout, np.asfortranarray(self.numbers[rows]), codes, self.dropped[rows])

    def encoded(self) -> FloatArray:
        """Return the rows, shape (n, d), with a feature for every level."""
        # Dropped rows are NaN throughout.
        if not self.codes:
            rows: FloatArray = self.numbers.copy(order="F") if self.dropped.any() else self.numbers
        else:
            rows = np.zeros((len(self), self.layout.n_features), order="F")
            rows[:, self.layout.numbers] = self.numbers
            for column, codes in zip(self.layout.columns, self.codes, strict=True):
                known = np.flatnonzero(codes < column.n_levels)
                rows[known, column.start + codes[known]] = column.value
        rows[self.dropped] = np.nan
        return rows

    def encoded_blocks(self) -> Iterator[FloatArray]:
        """Yield :meth:`encoded` in batches of at most 32 megabytes, or 64 rows."""
        step = dense_rows_at_a_time(self.layout.n_features)
        for start in range(0, len(self), step):
            yield self.rows(start, start + step).encoded()


@dataclass(frozen=True)
class OfEncodedRows(Adapted[Running, Result]):
    """Adapter that feeds level-coded batches, a few dense rows at a time, to a summary of those."""

    def add(self, running: Running, block: Any) -> None:
        for rows in block.encoded_blocks():
            self.summary.add(running, rows)


# The cells of Σz and Σzzᵀ, put together of counts and sums by level.

_Pack = tuple[int, ...]

_PART_BITS = 14
"""Bits multiplied at a time: times a factor of 48 bits they fit in int64."""


@dataclass(frozen=True, eq=False, repr=False)
class _Cells:
    layout: LevelLayout
    lattice: Lattice
    limbs: IntegerArray

    def marginal(self, table: IntegerArray, pack: _Pack, kept: _Pack) -> IntegerArray:
        """Sum over all but some columns of a pack, without the cells of rows that have no level."""
        columns = [self.layout.columns[index] for index in pack]
        others = tuple(axis for axis, index in enumerate(pack) if index not in kept)
        result: IntegerArray = table.reshape([column.n_codes for column in columns]).sum(axis=others)
        return result[tuple(slice(self.layout.columns[index].n_levels) for index in kept)]

    def fill_column(self, index: int, counts: IntegerArray) -> None:
        features, value = self._features(index), self._value(index)
        self.limbs[:, 0, features] = _scaled_limbs(counts, value)
        self.limbs[:, features + 1, features] = _scaled_limbs(counts, value**2)

    def fill_numbers(self, index: int, sums: IntegerArray) -> None:
        self._fill(self.layout.numbers, self._features(index), _scaled_limbs(sums, self._value(index)))

    def fill_pair(self, one: int, two: int, counts: IntegerArray) -> None:
        factor = self._value(one) * self._value(two)
        self._fill(self._features(one), self._features(two), _scaled_limbs(counts, factor))

    def _fill(self, rows: IntegerArray, columns: IntegerArray, limbs: IntegerArray) -> None:
        """Fill a submatrix of Σzzᵀ and its transpose."""
        self.limbs[:, rows[:, np.newaxis] + 1, columns] = limbs
        self.limbs[:, columns[:, np.newaxis] + 1, rows] = limbs.transpose(0, 2, 1)

    def _features(self, index: int) -> IntegerArray:
        column = self.layout.columns[index]
        return np.arange(column.start, column.start + column.n_levels)

    def _value(self, index: int) -> int:
        """Return a column's level value on the lattice."""
        return int(np.rint(self.layout.columns[index].value * self.lattice.units_per_one))


def _scaled_limbs(values: IntegerArray, factor: int) -> IntegerArray:
    """Multiply integers by a factor from 0 to 2^48; return two limbs, shape (2, *s)."""
    total = split_limbs(np.zeros_like(values))
    rest, shift = values, 0
    while not np.all(np.abs(rest) < 1 << _PART_BITS):
        total = add_limbs(total, _shifted((rest & ((1 << _PART_BITS) - 1)) * np.int64(factor), shift))
        rest, shift = rest >> _PART_BITS, shift + _PART_BITS
    return add_limbs(total, _shifted(rest * np.int64(factor), shift))


def _shifted(values: IntegerArray, shift: int) -> IntegerArray:
    """Multiply integers by 2^shift; return two limbs."""
    low = (1 << (LIMB_BITS - shift)) - 1
    return np.stack([values >> (LIMB_BITS - shift), (values & low) << shift])


_MAX_PACK = 512
"""Max levels of a pack of several columns: joint counts of two packs take two megabytes."""
_COST_OF_COUNTING = 12
"""Cost of incrementing a table cell, in multiply-adds of a matrix product."""
_ROWS_PER_STEP = 16_384
"""Rows that take all steps together, in the cache."""
_MAX_ROWS = 1 << 38
"""Max rows whose lattice values, each of magnitude at most 2^24, sum within int64."""


def _longest_row(
    schema: Schema, layout: LevelLayout, lattice: Lattice, moved: MovedNumbers | None = None
) -> int | None:
    """Return the max Σz² of an encoded row on a lattice, over all possible values."""
    # None if a column is unbounded. A number is largest at an end of its bounds, since every step to its lattice value is
    # monotone. At most one feature of a categorical column, and of its product with a number, is not 0. Moved features are
    # within their ball.
    if not all(column.is_bounded for column in schema.columns):
        return None
    encoding, units = layout.encoding, lattice.units_per_one
    ends = (np.array(schema.feature_bounds)[:, layout.numbers] - encoding.offset) / encoding.unit
    encoding.scale_into_ball(ends)
    largest = np.abs(np.rint(ends * units)).max(axis=0)
    if moved is not None:
        largest[np.isin(layout.numbers, moved.features)] = 0.0
    of_numbers = [largest[index].max() for index in layout.slices.values()]
    of_levels = [np.rint(column.value * units) for column in layout.columns]
    of_ball = 0 if moved is None else moved.limit**2
    return of_ball + sum(int(value) ** 2 for value in of_numbers + of_levels)


def counting_levels(summary: Summary[Any, Any], schema: Schema, layout: LevelLayout) -> LevelSumsSummary | None:
    """Return a level-counting summary with the same result, from public arguments."""
    # None if impossible or slower.
    prepare = summary.prepare if isinstance(summary, Prepared) else None
    moved = prepare if isinstance(prepare, MovedNumbers) else None
    moments = summary.summary if isinstance(summary, Prepared) and moved is not None else summary
    if not isinstance(moments, MomentSummary) or moments.center is not None or moments.linear is not None:
        return None
    lattice = moments.row_map.lattice
    longest = _longest_row(schema, layout, lattice, moved)
    if longest is None or longest > 4**lattice.bits or not layout.columns:
        return None
    counting = LevelSumsSummary(layout, moments, moved)
    return counting if counting.cost < layout.n_features**2 / 2 else None


@dataclass(frozen=True, eq=False, repr=False)
class LevelSums(PrivateSums):
    """Integer sums over rows, from which their moments follow: private data."""

    count: int  # with `dropped`: number of rows, dropped ones included; number of dropped rows
    dropped: int
    numbers: ExactMoments | None  # moments of the numbers; None without numbers
    counts: tuple[IntegerArray, ...]  # level counts of each pack
    # joint level counts of each pair of packs, in the order of `itertools.combinations`
    joint: tuple[IntegerArray, ...]
    sums: tuple[IntegerArray, ...]  # (m, levels), sums of the numbers' lattice values, by level of each pack

    def __post_init__(self) -> None:
        if self.count > _MAX_ROWS:
            raise InputValueError(
                "more than 2^38 rows are too many for one pass: read them with an engine, Dask or Spark"
            )


@dataclass(frozen=True, eq=False)
class LevelSumsSummary(Summary["RunningLevelSums", LevelSums]):
    """Summary of :class:`~dpmoments.rows.level_sums.CodedBlock` batches.

    :meth:`result` returns the moments. ``moments`` has no center or linear map, and its lattice admits every possible
    row (:func:`_longest_row`).
    """

    layout: LevelLayout
    moments: MomentSummary
    moved: MovedNumbers | None = None  # what becomes of numbers before they are summed

    takes_levels: ClassVar[bool] = True
    is_weighted = True

    @cached_property
    def numbers_alone(self) -> MomentSummary | None:
        """Summary of the features that are numbers; None without any."""
        m = len(self.layout.numbers)
        return replace(self.moments, n_features=m, missing="drop", keep_dropped=False) if m else None

    @cached_property
    def numbers_moved(self) -> MovedNumbers | None:
        """Map :attr:`moved` for a batch of numbers only."""
        if self.moved is None:
            return None
        features = np.searchsorted(self.layout.numbers, self.moved.features)
        return replace(self.moved, features=tuple(features.tolist()))

    @cached_property
    def packs(self) -> tuple[tuple[int, ...], ...]:
        """Indices in ``layout.columns`` that are counted together, packed first-fit by size."""
        packs: list[list[int]] = []
        sizes = [column.n_codes for column in self.layout.columns]
        for index in sorted(range(len(sizes)), key=lambda column: -sizes[column]):
            for pack in packs:
                if self.levels_of(pack) * sizes[index] <= _MAX_PACK:
                    pack.append(index)
                    break
            else:
                packs.append([index])
        return tuple(map(tuple, packs))

    def levels_of(self, pack: tuple[int, ...] | list[int]) -> int:
        return prod(self.layout.columns[index].n_codes for index in pack)

    @property
    def cost(self) -> float:
        """Cost of a row, in multiply-adds."""
        m, packs = len(self.layout.numbers), len(self.packs)
        return m**2 / 2 + _COST_OF_COUNTING * (packs * (packs + 1) / 2 + m * packs)

    def start(self) -> RunningLevelSums:
        return RunningLevelSums(self)

    def add(self, running: RunningLevelSums, block: Any) -> None:
        for start in range(0, len(block), _ROWS_PER_STEP):
            running.add(block.rows(start, start + _ROWS_PER_STEP))

    def finish(self, running: RunningLevelSums) -> LevelSums:
        return running.sums()

    def result(self, sums: LevelSums) -> ExactMoments:
        """Return the moments of the rows, equal to those of the dense pass."""
        layout, packs, lattice = self.layout, self.packs, self.moments.row_map.lattice
        # Σz (row 0) and Σzzᵀ (other rows) as two-limb integers
        cells = _Cells(layout, lattice, np.zeros((2, layout.n_features + 1, layout.n_features), np.int64))
        if sums.numbers is not None:
            rows = np.append(0, layout.numbers + 1)
            cells.limbs[:, rows[:, np.newaxis], layout.numbers] = sums.numbers.limbs
        for pack, of_levels, by_level in zip(packs, sums.counts, sums.sums, strict=True):
            for index in pack:
                cells.fill_column(index, cells.marginal(of_levels, pack, (index,)))
                if len(by_level):
                    cells.fill_numbers(index, np.array([cells.marginal(row, pack, (index,)) for row in by_level]))
            for one, two in combinations(pack, 2):
                cells.fill_pair(one, two, cells.marginal(of_levels, pack, (one, two)))
        for table, (first, second) in zip(sums.joint, combinations(packs, 2), strict=True):
            for one, two in product(first, second):
                cells.fill_pair(one, two, cells.marginal(table, first + second, (one, two)))
        moments = ExactMoments(sums.count, sums.dropped, 0, lattice.bits, lattice.radius, cells.limbs)
        return moments if self.moments.keep_dropped else moments.without_dropped()


class RunningLevelSums:
    """Running sums of one thread, with the attributes of :class:`LevelSums`."""

    def __init__(self, summary: LevelSumsSummary) -> None:
        self._summary = summary
        self._count = self._dropped = 0
        self._numbers: RunningMoments | None = None if summary.numbers_alone is None else summary.numbers_alone.start()
        m, sizes = len(summary.layout.numbers), [summary.levels_of(pack) for pack in summary.packs]
        self._scaled = np.empty((_ROWS_PER_STEP, m), order="F")
        self._values = np.empty((_ROWS_PER_STEP, m), np.int64, order="F")
        self._counts = tuple(np.zeros(size, np.int64) for size in sizes)
        self._joint = tuple(np.zeros(one * two, np.int64) for one, two in combinations(sizes, 2))
        self._sums = tuple(np.zeros((m, size), np.int64) for size in sizes)

    def add(self, block: CodedBlock) -> None:
        """Add a batch of at most ``_ROWS_PER_STEP`` rows."""
        summary = self._summary
        kept = block.kept()
        self._count += len(block)
        self._dropped += len(block) - len(kept)
        if summary.numbers_moved is not None:
            kept = replace(kept, numbers=summary.numbers_moved(kept.numbers))
        if summary.numbers_alone is not None and self._numbers is not None:
            summary.numbers_alone.add(self._numbers, kept.numbers)
        levels = [self._levels(kept, pack) for pack in summary.packs]
        for counts, level in zip(self._counts, levels, strict=True):
            np.add.at(counts, level, 1)
        pairs, sizes = combinations(levels, 2), combinations(map(len, self._counts), 2)
        for joint, (one, two), (_, size) in zip(self._joint, pairs, sizes, strict=True):
            np.add.at(joint, one * size + two, 1)

        # The numbers are rounded as the dense pass does.
        scaled, values = self._scaled[: len(kept.numbers)], self._values[: len(kept.numbers)]
        np.multiply(kept.numbers, summary.moments.row_map.lattice.units_per_one, out=scaled)
        np.copyto(values, np.rint(scaled, out=scaled), casting="unsafe")
        for sums, level in zip(self._sums, levels, strict=True):
            for total, value in zip(sums, values.T, strict=True):
                np.add.at(total, level, value)

    def _levels(self, block: CodedBlock, pack: tuple[int, ...]) -> IntegerArray:
        """Return each row's level in a pack of columns, shape (n,)."""
        first, *others = pack
        levels = block.codes[first]
        for index in others:
            levels = levels * self._summary.layout.columns[index].n_codes + block.codes[index]
        return levels

    def sums(self) -> LevelSums:
        """Return the sums of everything added."""
        of_numbers = self._summary.numbers_alone
        numbers = None if of_numbers is None or self._numbers is None else of_numbers.finish(self._numbers)
        return LevelSums(self._count, self._dropped, numbers, self._counts, self._joint, self._sums)
