"""Moments of rows whose levels are codes, by counting: no products of features that are mostly 0.

A pair of categorical columns is a joint count, a number and a categorical column a sum by level. Both are integers, and times
the lattice values of the levels they are the cells of Σzzᵀ that the dense pass adds up. That holds where the schema alone says
that no row can pass the radius, so that none is shortened: a level then has one value in all rows
(``docs/derivations/exact-sums.md``, section 6).

Small categorical columns are counted together: a *pack* of them is one column whose levels are the combinations of theirs. The
joint counts of two packs hold those of all pairs of their columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmoments.foundation.arrays import FloatArray
from dpmoments.rows.kernel import MomentSummary, RunningMoments
from dpmoments.rows.lattice import Lattice
from dpmoments.rows.level_block import LevelBlock, LevelLayout
from dpmoments.rows.level_cells import moments_of_levels
from dpmoments.rows.moments import Moments
from dpmoments.rows.summary import Summary
from dpmoments.schema.columns import Coordinate, Numeric
from dpmoments.schema.schema import Schema

__all__ = ["LevelSums", "LevelSumsSummary", "counting_levels", "longest_row"]

IntegerArray = NDArray[np.int64]

LARGEST_PACK = 512
"""Levels of a pack of several columns: the joint counts of two take two megabytes, of which most rows meet a small part."""
COST_OF_COUNTING = 12
"""Adding to one cell of a table takes about as long as so many multiplications and additions of a matrix product."""
ROWS_PER_STEP = 16_384
"""Rows that take all steps together, in the cache."""
MOST_ROWS = 1 << 38
"""So many lattice values, each of magnitude 2^24 at most, add up in int64."""


def longest_row(schema: Schema, layout: LevelLayout, lattice: Lattice) -> int | None:
    """The largest Σz² of an encoded row on a lattice, over all cells there might be; None where nothing bounds a column.

    A number is largest at an end of its bounds, since every step to its lattice value is monotone. Of the features of a
    categorical column, and of its product with a number, one at most is not 0.

    Examples
    --------
    >>> from dpmoments import Categorical
    >>> schema = Schema(Categorical("region", ["north", "south"]), Numeric("age", 0, 100))
    >>> longest_row(schema, LevelLayout.of(schema, mean=True), Lattice(3, bits=4, radius=1.0))  # 11² + 11²: 16/√2 is 11.3
    242
    """
    if any(
        isinstance(one, Coordinate) or (isinstance(one, Numeric) and one.scale is not None) for one in schema.columns
    ):
        return None
    encoding, units = layout.encoding, lattice.units_per_one
    ends = (np.array(schema.feature_bounds)[:, layout.numbers] - encoding.offset) / encoding.unit
    encoding.scale_into_ball(ends)
    largest = np.abs(np.rint(ends * units)).max(axis=0)
    of_numbers = [largest[place].max() for place in layout.places.values()]
    of_levels = [np.rint(column.value * units) for column in layout.columns]
    return sum(int(value) ** 2 for value in of_numbers + of_levels)


def counting_levels(summary: Summary[Any, Any], schema: Schema, layout: LevelLayout) -> LevelSumsSummary | None:
    """What gives the same result as a summary of encoded rows by counting levels; None where that cannot be, or costs more.

    It depends on the schema and the summary, which are public, and on nothing else.
    """
    if not isinstance(summary, MomentSummary) or summary.center is not None or summary.linear is not None:
        return None
    lattice = summary.row_map.lattice
    longest = longest_row(schema, layout, lattice)
    if longest is None or longest > 4**lattice.bits or not layout.columns:
        return None
    counting = LevelSumsSummary(layout, summary)
    return counting if counting.cost < layout.n_features**2 / 2 else None


@dataclass(frozen=True, eq=False, repr=False)
class LevelSums:
    """Integers over rows, from which their moments follow: private data.

    Attributes
    ----------
    count, dropped : int
        Rows, dropped ones included, and those.
    numbers : Moments or None
        Of the features that are numbers; None where there is none.
    counts : tuple of ndarray of int64
        Of the levels of each pack.
    joint : tuple of ndarray of int64
        Of the levels of each pair of packs, in the order of ``itertools.combinations``.
    sums : tuple of ndarray of int64, shape (m, levels)
        Of the lattice values of the numbers, by level of each pack.
    """

    count: int
    dropped: int
    numbers: Moments | None
    counts: tuple[IntegerArray, ...]
    joint: tuple[IntegerArray, ...]
    sums: tuple[IntegerArray, ...]

    def __post_init__(self) -> None:
        if self.count > MOST_ROWS:
            raise ValueError("more than 2^38 rows are too many for one pass: read them with an engine, Dask or Spark")

    def merge(self, other: LevelSums) -> LevelSums:
        """The sums over both sets of rows."""
        return LevelSums(
            self.count + other.count,
            self.dropped + other.dropped,
            self.numbers if self.numbers is None or other.numbers is None else self.numbers.merge(other.numbers),
            tuple(one + two for one, two in zip(self.counts, other.counts, strict=True)),
            tuple(one + two for one, two in zip(self.joint, other.joint, strict=True)),
            tuple(one + two for one, two in zip(self.sums, other.sums, strict=True)),
        )


@dataclass(frozen=True, eq=False)
class LevelSumsSummary(Summary["RunningLevelSums", LevelSums]):
    """The moments of a summary, of :class:`~dpmoments.rows.level_block.LevelBlock`; :meth:`result` has them.

    Attributes
    ----------
    layout : LevelLayout
    moments : MomentSummary
        Without centre and linear map, on a lattice on which no row is too long (:func:`longest_row`).
    """

    layout: LevelLayout
    moments: MomentSummary

    @property
    def takes_levels(self) -> bool:
        return True

    @cached_property
    def lattice(self) -> Lattice:
        """Of the rows."""
        return self.moments.row_map.lattice

    @cached_property
    def of_numbers(self) -> MomentSummary | None:
        """The moments of the features that are numbers; None where there is none."""
        m = len(self.layout.numbers)
        return replace(self.moments, n_features=m, missing="drop", keep_dropped=False) if m else None

    @cached_property
    def packs(self) -> tuple[tuple[int, ...], ...]:
        """Which columns are counted together, by their places among ``layout.columns``: the largest first, where one fits in."""
        packs: list[list[int]] = []
        sizes = [column.n_codes for column in self.layout.columns]
        for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
            for pack in packs:
                if self.levels_of(pack) * sizes[place] <= LARGEST_PACK:
                    pack.append(place)
                    break
            else:
                packs.append([place])
        return tuple(map(tuple, packs))

    def levels_of(self, pack: tuple[int, ...] | list[int]) -> int:
        """How many levels a pack has."""
        return prod(self.layout.columns[place].n_codes for place in pack)

    @property
    def cost(self) -> float:
        """Of one row, in multiplications and additions."""
        m, packs = len(self.layout.numbers), len(self.packs)
        return m**2 / 2 + COST_OF_COUNTING * (packs * (packs + 1) / 2 + m * packs)

    def start(self) -> RunningLevelSums:
        return RunningLevelSums(self)

    def add(self, running: RunningLevelSums, block: Any) -> None:
        for start in range(0, len(block), ROWS_PER_STEP):
            running.add(block.rows(start, start + ROWS_PER_STEP))

    def finish(self, running: RunningLevelSums) -> LevelSums:
        return running.sums()

    def merge(self, first: LevelSums, second: LevelSums) -> LevelSums:
        return first.merge(second)

    def result(self, sums: LevelSums) -> Moments:
        """The moments of the rows, as the dense pass finds them."""
        limbs = moments_of_levels(
            self.layout, self.lattice, self.packs, sums.numbers, sums.counts, sums.joint, sums.sums
        )
        found = Moments(sums.count, sums.dropped, 0, self.lattice.bits, self.lattice.radius, limbs)
        return found if self.moments.keep_dropped else found.without_dropped()


class RunningLevelSums:
    """Running sums of one thread; the attributes are those of :class:`LevelSums`."""

    def __init__(self, summary: LevelSumsSummary) -> None:
        self._summary = summary
        self._count = self._dropped = 0
        self._numbers: RunningMoments | None = None if summary.of_numbers is None else summary.of_numbers.start()
        m, sizes = len(summary.layout.numbers), [summary.levels_of(pack) for pack in summary.packs]
        self._scaled = np.empty((ROWS_PER_STEP, m), order="F")
        self._values = np.empty((ROWS_PER_STEP, m), np.int64, order="F")
        self._counts = tuple(np.zeros(size, np.int64) for size in sizes)
        self._joint = tuple(np.zeros(one * two, np.int64) for one, two in combinations(sizes, 2))
        self._sums = tuple(np.zeros((m, size), np.int64) for size in sizes)

    def add(self, block: LevelBlock) -> None:
        """Add a block of at most ``ROWS_PER_STEP`` rows."""
        summary = self._summary
        kept = block.kept()
        self._count += len(block)
        self._dropped += len(block) - len(kept)
        if summary.of_numbers is not None and self._numbers is not None:
            summary.of_numbers.add(self._numbers, kept.numbers)
        levels = [self._levels(kept, pack) for pack in summary.packs]
        for counts, level in zip(self._counts, levels, strict=True):
            np.add.at(counts, level, 1)
        pairs, sizes = combinations(levels, 2), combinations(map(len, self._counts), 2)
        for joint, (one, two), (_, size) in zip(self._joint, pairs, sizes, strict=True):
            np.add.at(joint, one * size + two, 1)
        values = self._lattice_values(kept.numbers)
        for sums, level in zip(self._sums, levels, strict=True):
            for total, value in zip(sums, values.T, strict=True):
                np.add.at(total, level, value)

    def _lattice_values(self, numbers: FloatArray) -> IntegerArray:
        """As the dense pass rounds them, shape (n, m), in a buffer that the next block overwrites."""
        scaled, values = self._scaled[: len(numbers)], self._values[: len(numbers)]
        np.multiply(numbers, self._summary.lattice.units_per_one, out=scaled)
        np.copyto(values, np.rint(scaled, out=scaled), casting="unsafe")
        return values

    def _levels(self, block: LevelBlock, pack: tuple[int, ...]) -> IntegerArray:
        """The level of each row in a pack of columns, shape (n,)."""
        first, *others = pack
        levels = block.codes[first]
        for place in others:
            levels = levels * self._summary.layout.columns[place].n_codes + block.codes[place]
        return levels

    def sums(self) -> LevelSums:
        """Of everything added so far."""
        of_numbers = self._summary.of_numbers
        numbers = None if of_numbers is None or self._numbers is None else of_numbers.finish(self._numbers)
        return LevelSums(self._count, self._dropped, numbers, self._counts, self._joint, self._sums)
