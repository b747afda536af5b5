"""Coordinates of a row in which noise and answers have the same size.

Singles are in rough SDs, levels about a public center.
A single is a number or a Boolean. Singles are scaled about a rough center and clipped to a ball; levels never move. A complete
block of k levels has k − 1 contrasts about 1/k, and every row the same length there. A block that rows may lack (an indicator of
a missing value is one of a single level) keeps k coordinates. The map is linear in the row with a constant appended. Singles are
mapped before they are rounded, levels afterwards, by integers: no sum of levels is rounded
(``docs/evidence/derivations/standardized.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmoments.base.arrays import FloatArray, IntegerArray
from dpmoments.rows.moments import ExactMoments
from dpmoments.schema.columns import Boolean, Categorical, Numeric, WeightColumn
from dpmoments.schema.constraints import LevelBlock
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, MissingIndicator
from dpmoments.schema.encoding import column_weight, may_be_shortened
from dpmoments.schema.schema import Schema

_MARGIN = 1e-3
"""Share of the lattice that stays free, so that no rounding takes a row out of it."""


@dataclass(frozen=True)
class RowCoordinates:
    """Singles and levels of a row, as the schema states them: public."""

    n_features: int
    singles: tuple[int, ...]  # features that are numbers or Booleans
    is_number: tuple[bool, ...]  # of each single; a Boolean is −1 or 1
    of_two_values: tuple[bool, ...]  # of each single: true for a Boolean without a fill, which is a fraction
    typical: tuple[
        tuple[float, float] | None, ...
    ]  # of each single: center and SD that the schema states, column units
    blocks: tuple[LevelBlock, ...]
    ones: tuple[float, ...]  # (d,), encoded value of a level that is there, and of the half-width of a single
    lengths: tuple[float, ...]  # (d,), factor by which `weight=` lengthens a feature

    @classmethod
    def of(cls, schema: Schema) -> RowCoordinates | None:
        """Return the coordinates of a schema's rows; None without any, or if a column lacks bounds."""
        columns = schema.columns
        bounded = all(column.is_bounded for column in columns)
        if schema.row_norm is None or not bounded or may_be_shortened(columns, schema.row_norm):
            return None
        encoding = schema.encoding(mean=True)
        singles, is_number, of_two_values, blocks = list[int](), list[bool](), list[bool](), list[LevelBlock]()
        lengths, typical = list[float](), list[tuple[float, float] | None]()
        ones = np.ones((1, schema.n_features))
        for column, features in schema.columns_with_slices:
            lengths += [column_weight(column) ** 0.25] * (features.stop - features.start)
            if isinstance(column, Categorical | MissingIndicator):
                complete = isinstance(column, Categorical) and column.complete and column.missing != "available"
                blocks.append(LevelBlock(features.start, features.stop, complete))
                for feature in range(features.start, features.stop):
                    encoding.encode_cells(ones[:, feature], feature, out=ones[:, feature])
                continue
            singles += range(features.start, features.stop)
            is_flag = isinstance(column, Boolean) or (isinstance(column, DerivedColumn) and column.is_flag)
            is_number += [not is_flag] * (features.stop - features.start)
            without_fill = isinstance(column, Boolean) and column.missing in ("drop", "error")
            of_two_values += [without_fill] * (features.stop - features.start)
            stated = column.typical_within_bounds if isinstance(column, Numeric | Date) else None
            of_column = None
            if stated is not None:
                low, high = (
                    (end - float(column.offset(mean=True)[0])) / float(column.unit_length(mean=True)[0])
                    for end in stated
                )
                of_column = (low + high) / 2.0, (high - low) / 4.0
            typical += [of_column] * (features.stop - features.start)
        if sum(is_number) == 1 and isinstance(columns[-1], WeightColumn):
            is_number[-1] = False  # beside levels and Booleans all scales are public
        if not singles and all(_width(block) == 0 for block in blocks):
            return None
        encoding.scale_into_ball(ones)
        return cls(
            schema.n_features,
            tuple(singles),
            tuple(is_number),
            tuple(of_two_values),
            tuple(typical),
            tuple(blocks),
            tuple(ones[0].tolist()),
            tuple(lengths),
        )

    @classmethod
    def of_numbers(cls, n_features: int) -> RowCoordinates:
        """Return the coordinates of rows of numbers in the unit ball, for plans without a schema."""
        every = tuple(range(n_features))
        ones = (1.0,) * n_features
        return cls(
            n_features,
            singles=every,
            is_number=(True,) * n_features,
            of_two_values=(False,) * n_features,
            typical=(None,) * n_features,
            blocks=(),
            ones=ones,
            lengths=ones,
        )

    @cached_property
    def has_numbers(self) -> bool:
        """True if scales must be found: all else of levels and Booleans is public."""
        return any(self.is_number)

    @cached_property
    def n_coordinates(self) -> int:
        """Dimensions of a row."""
        return len(self.singles) + sum(_width(block) for block in self.blocks)

    @property
    def block_sizes(self) -> FloatArray:
        """Size of each feature's complete block, 0 for other features; shape (d,)."""
        sizes = np.zeros(self.n_features)
        for block in self.blocks:
            sizes[block.features] = block.size if block.complete else 0
        return sizes

    @cached_property
    def level_squares(self) -> tuple[float, ...]:
        """Squared length of a row in each block, in units of a single of length 1: 2√k."""
        return tuple(2.0 * math.sqrt(block.size) * self.lengths[block.start] ** 2 for block in self.blocks)

    def fit(self, bits: int) -> bool:
        """Return True if a lattice of spacing 2^−bits holds every row, at any scales of singles."""
        one, m = 4.0**bits, len(self.singles)
        ends = [np.rint(self.ones[block.start] * 2.0**bits) for block in self.blocks]
        room = one - sum(end**2 for end in ends)
        least = math.fsum(min(self.lengths[feature], 1.0 / self.lengths[feature]) ** 2 for feature in self.singles)
        if m:  # the smallest ball of singles, less what rounding may add, has some units
            room = (
                min(room, one * least / (least + math.fsum(self.level_squares)))
                - 16.0 * (math.sqrt(m) / 2.0 + 1.0) ** 2
            )
        # a block's integers are 1 or more, and lengthen its rows by so much at most
        of_rounding = sum((block.size + 1) ** 2 for block in self.blocks)
        return min(ends, default=1.0) >= 1.0 and room >= 0.0 and of_rounding <= _MARGIN * one

    def on_lattice(self, center: FloatArray, scale: FloatArray, square: float, bits: int) -> LatticeCoordinates:
        """Return the lattice of rows in a ball of this squared radius."""
        # Singles are (u − center)/scale, u in column units.
        one = 2.0**bits
        ends = tuple(int(np.rint(self.ones[block.start] * one)) for block in self.blocks)
        total = square + math.fsum(self.level_squares)
        limit = math.isqrt(4**bits - sum(end**2 for end in ends))
        limit = min(limit, math.floor((1.0 - _MARGIN) * one * math.sqrt(square / total)))
        reach = limit - math.sqrt(len(self.singles)) / 2.0 - 1.0 if self.singles else (1.0 - _MARGIN) * one
        unit = reach / math.sqrt(square if self.singles else total)
        sizes = tuple(
            _sizes(block, unit * math.sqrt(of_block))
            for block, of_block in zip(self.blocks, self.level_squares, strict=True)
        )
        ones = np.array([self.ones[feature] for feature in self.singles])
        return LatticeCoordinates(self, center * ones, unit / one / (scale * ones), limit, bits, ends, sizes)


def _width(block: LevelBlock) -> int:
    return block.size - block.complete


def _middle(block: LevelBlock) -> float:
    """Return the center of a level: 1/k, and 1/2 of a single one that rows may lack."""
    return 1.0 / block.size if block.complete else 1.0 / max(block.size, 2)


def _sizes(block: LevelBlock, length: float) -> tuple[int, ...]:
    """Return the sizes of a block's coordinates for rows of at most this length, rounded down."""
    # Contrasts a_j·(e_1 + … + e_j − j·e_(j+1)) of a complete block, of length a_j·√(j(j + 1)); else one size of all
    # levels.
    k, middle = block.size, _middle(block)
    step = length / math.sqrt(max(1.0 - 1.0 / k, middle**2 if k == 1 else 0.0)) if k > 1 or not block.complete else 0.0
    if block.complete:
        return tuple(max(1, math.floor(step / math.sqrt(j * (j + 1)))) for j in range(1, k))
    return (max(2, math.floor(step)),)


@dataclass(frozen=True, eq=False)
class LatticeCoordinates:
    """Coordinates with the numbers found in a run: singles in a ball, and integers for levels."""

    of: RowCoordinates
    center: FloatArray  # (singles,), encoded
    scale: FloatArray  # (singles,), factors of encoded singles about the center, into the unit ball
    limit: int  # radius of their ball, in units of 2^−bits
    bits: int
    ends: tuple[int, ...]  # encoded level of each block, in units of 2^−bits
    sizes: tuple[tuple[int, ...], ...]

    @property
    def square(self) -> int:
        """Largest squared length of a row, in units of 4^−bits."""
        return (self.limit**2 if self.of.singles else 0) + sum(
            max(_squares(block, sizes)) for block, sizes in zip(self.of.blocks, self.sizes, strict=True)
        )

    @property
    def whole_center(self) -> FloatArray:
        """Center of all features, encoded, shape (d,)."""
        result = np.zeros(self.of.n_features)
        result[list(self.of.singles)] = self.center
        for block in self.of.blocks:
            result[block.features] = self.of.ones[block.start] * _middle(block)
        return result

    @property
    def back(self) -> FloatArray:
        """Matrix M of x − center = M·coordinates, shape (d, coordinates)."""
        result, at = np.zeros((self.of.n_features, self.of.n_coordinates)), len(self.of.singles)
        result[list(self.of.singles), np.arange(at)] = 1.0 / self.scale
        for block, sizes in zip(self.of.blocks, self.sizes, strict=True):
            one, width = self.of.ones[block.start], _width(block)
            if block.complete:
                for j, size in enumerate(sizes, 1):
                    unit = one / (size * 2.0**-self.bits * j * (j + 1))
                    result[block.start : block.start + j, at + j - 1] = unit
                    result[block.start + j, at + j - 1] = -j * unit
            else:
                result[block.features, at : at + width] = np.eye(width) * one / (sizes[0] * 2.0**-self.bits)
            at += width
        return result

    def augmented_gram(self, moments: ExactMoments, constant: int) -> IntegerArray:
        """Return the exact Σ z zᵀ, z = (constant, coordinates), in units of 4^−bits."""
        # The moments are of rows whose singles are in coordinates already.
        d = self.of.n_features
        matrix = np.empty((d + 1, d + 1), dtype=object)
        matrix[0, 0], matrix[1:, 1:] = moments.count, moments.gram
        matrix[0, 1:] = matrix[1:, 0] = moments.sum
        return self._mapped(self._mapped(matrix, constant).T, constant)

    def _mapped(self, matrix: IntegerArray, constant: int) -> IntegerArray:
        """Map the rows of a matrix of (1, x) to those of z."""
        parts = [matrix[:1] * constant, matrix[1 + np.array(self.of.singles, dtype=np.intp)]]
        for block, end, sizes in zip(self.of.blocks, self.ends, self.sizes, strict=True):
            rows = matrix[1 + block.start : 1 + block.stop]
            counts = rows // end
            if (counts * end != rows).any():
                raise AssertionError("a level is neither absent nor its lattice value: a defect, please report it")
            if block.complete:
                order = np.arange(1, block.size, dtype=object)[:, None]
                sums = np.cumsum(counts, axis=0)[:-1]
                parts.append((sums - order * counts[1:]) * np.array(sizes, dtype=object)[:, None])
            else:
                parts.append(counts * sizes[0] - matrix[:1] * round(sizes[0] * _middle(block)))
        return np.concatenate(parts)


def _squares(block: LevelBlock, sizes: tuple[int, ...]) -> list[int]:
    """Return squared lengths of the levels of a block (any and none, if rows may lack one)."""
    k = block.size
    if block.complete:
        return [sum(size**2 for size in sizes[j:]) + (j * sizes[j - 1] if j else 0) ** 2 for j in range(k)]
    middle = round(sizes[0] * _middle(block))
    return [(sizes[0] - middle) ** 2 + (k - 1) * middle**2, k * middle**2]
