"""The cells of Σz and Σzzᵀ, put together of counts and sums by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dpmoments.rows.lattice import Lattice
from dpmoments.rows.level_block import LevelLayout
from dpmoments.rows.moments import LIMB_BITS, Moments, add_limbs, split_limbs

__all__ = ["moments_of_levels", "scaled_limbs"]

IntegerArray = NDArray[np.int64]
Pack = tuple[int, ...]

PART_BITS = 14
"""Of the integers that are multiplied at a time: times a factor of 48 bits they stay inside int64."""


def moments_of_levels(
    layout: LevelLayout,
    lattice: Lattice,
    packs: Sequence[Pack],
    numbers: Moments | None,
    counts: Sequence[IntegerArray],
    joint: Sequence[IntegerArray],
    sums: Sequence[IntegerArray],
) -> IntegerArray:
    """Σz (row 0) and Σzzᵀ (the others) as two-limb integers, shape (2, d + 1, d).

    Parameters
    ----------
    layout : LevelLayout
    lattice : Lattice
    packs : sequence of tuple of int
        Places of columns that are counted together.
    numbers, counts, joint, sums
        As :class:`~dpmoments.rows.level_sums.LevelSums` has them.
    """
    cells = _Cells(layout, lattice, np.zeros((2, layout.n_features + 1, layout.n_features), np.int64))
    if numbers is not None:
        rows = np.append(0, layout.numbers + 1)
        cells.limbs[:, rows[:, np.newaxis], layout.numbers] = numbers.limbs
    for pack, of_levels, by_level in zip(packs, counts, sums, strict=True):
        for place in pack:
            cells.fill_column(place, cells.marginal(of_levels, pack, (place,)))
            if len(by_level):
                cells.fill_numbers(place, np.array([cells.marginal(row, pack, (place,)) for row in by_level]))
        for one, two in combinations(pack, 2):
            cells.fill_pair(one, two, cells.marginal(of_levels, pack, (one, two)))
    for table, (first, second) in zip(joint, combinations(packs, 2), strict=True):
        for one, two in product(first, second):
            cells.fill_pair(one, two, cells.marginal(table, first + second, (one, two)))
    return cells.limbs


@dataclass(frozen=True, eq=False, repr=False)
class _Cells:
    layout: LevelLayout
    lattice: Lattice
    limbs: IntegerArray

    def marginal(self, table: IntegerArray, pack: Pack, kept: Pack) -> IntegerArray:
        """Sums over all columns of a pack but some, without the cells of rows that have no level."""
        columns = [self.layout.columns[place] for place in pack]
        others = tuple(axis for axis, place in enumerate(pack) if place not in kept)
        found: IntegerArray = table.reshape([column.n_codes for column in columns]).sum(axis=others)
        return found[tuple(slice(self.layout.columns[place].n_levels) for place in kept)]

    def fill_column(self, place: int, counts: IntegerArray) -> None:
        features, value = self._features(place), self._value(place)
        self.limbs[:, 0, features] = scaled_limbs(counts, value)
        self.limbs[:, features + 1, features] = scaled_limbs(counts, value**2)

    def fill_numbers(self, place: int, sums: IntegerArray) -> None:
        self._fill(self.layout.numbers, self._features(place), scaled_limbs(sums, self._value(place)))

    def fill_pair(self, one: int, two: int, counts: IntegerArray) -> None:
        factor = self._value(one) * self._value(two)
        self._fill(self._features(one), self._features(two), scaled_limbs(counts, factor))

    def _fill(self, rows: IntegerArray, columns: IntegerArray, limbs: IntegerArray) -> None:
        """A block of Σzzᵀ and its transpose."""
        self.limbs[:, rows[:, np.newaxis] + 1, columns] = limbs
        self.limbs[:, columns[:, np.newaxis] + 1, rows] = limbs.transpose(0, 2, 1)

    def _features(self, place: int) -> IntegerArray:
        column = self.layout.columns[place]
        return np.arange(column.start, column.start + column.n_levels)

    def _value(self, place: int) -> int:
        """What a level of a column is on the lattice."""
        return int(np.rint(self.layout.columns[place].value * self.lattice.units_per_one))


def scaled_limbs(values: IntegerArray, factor: int) -> IntegerArray:
    """Integers times a factor from 0 to 2^48, as two limbs, shape (2, *s).

    Examples
    --------
    >>> scaled_limbs(np.array([3, -(2**60)]), 2**20).tolist()
    [[0, -1048576], [3145728, 0]]
    """
    total = split_limbs(np.zeros_like(values))
    rest, shift = values, 0
    while not np.all(np.abs(rest) < 1 << PART_BITS):
        total = add_limbs(total, _shifted((rest & ((1 << PART_BITS) - 1)) * np.int64(factor), shift))
        rest, shift = rest >> PART_BITS, shift + PART_BITS
    return add_limbs(total, _shifted(rest * np.int64(factor), shift))


def _shifted(values: IntegerArray, shift: int) -> IntegerArray:
    """Integers times 2^shift as two limbs."""
    low = (1 << (LIMB_BITS - shift)) - 1
    return np.stack([values >> (LIMB_BITS - shift), (values & low) << shift])
