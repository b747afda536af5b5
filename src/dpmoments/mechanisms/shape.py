"""Public knowledge of a plan, before any row is read, and the result of a run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.moments.models import NoiseModel
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.schema.columns import WEIGHT_BITS, Boolean, Categorical, Numeric, WeightColumn
from dpmoments.schema.constraints import Constraints, LevelBlock, require_mean_of_weighted
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, MissingIndicator
from dpmoments.schema.encoding import LATTICE, RoughScale, column_weight, may_be_shortened
from dpmoments.schema.schema import Schema

# Coordinates of a row in which noise and answers have the same size.
#
# Singles are in rough SDs, levels about a public center.
# A single is a number or a Boolean. Singles are scaled about a rough center and clipped to a ball; levels never move.
# A complete block of k levels has k − 1 contrasts about 1/k, and every row the same length there. A block that rows
# may lack (an indicator of a missing value is one of a single level) keeps k coordinates. The map is linear in the
# row with a constant appended. Singles are mapped before they are rounded, levels afterwards, by integers: no sum of
# levels is rounded (``docs/evidence/derivations/standardized.md``).

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


# Coordinates of rows about the public center of one-hot levels, where rows are shorter.
#
# A level of a block of k has norm 1 about 0 and √(1 − 1/k) about 1/k, where no row is moved, and a complete block lies in k − 1
# dimensions. The map is linear in the row with a constant appended, public, and made of integers: sums over rows are mapped
# after they are made, without rounding. Proof: ``docs/evidence/derivations/public-center.md``.

LATTICE_BITS = LATTICE.bit_length() - 1
"""Coarsest lattice on which levels are exact."""
_MIN_STEP = 128
"""Min step of a coordinate in lattice units; rounding down raises its noise by under 1 %."""
_ON_LATTICE = 1e-9
MEAN_WEIGHT = 14.0
"""Weight of squared errors of means and shares, whose noise is not repaired."""
_COUNT_WEIGHT = 4.0
"""Weight of what the noise of the number of rows moves, which no block or flag repairs."""
_MEAN_SHARE = 0.3
"""Assumed ‖μ‖ about the center, over the largest norm of a row."""
_AUGMENTATION_STEPS = 64


@dataclass(frozen=True)
class LevelCoordinates:
    """Public map of rows to coordinates about the center of their levels."""

    blocks: tuple[LevelBlock, ...]
    # largest value of each encoded feature, in units of 2⁻¹⁶ of the unit ball; exact for levels, else rounded up
    steps: tuple[int, ...]
    flags: tuple[int, ...]  # features that are −1 or 1 times their step
    other_square: int  # largest squared norm of the features outside blocks, in units of 2⁻³²

    @classmethod
    def of(cls, schema: Schema) -> LevelCoordinates | None:
        """Return a schema's coordinates; None if rows may be scaled down or have norm 1."""
        constraints = Constraints.of(schema, mean=True)
        if not constraints.blocks or constraints.row_norm is None:
            return None
        if schema.has_available:  # a missing level moves an indicator, too
            return None
        steps = [_step(value) for value in (LATTICE / constraints.units).tolist()]
        exact, inside, start = LATTICE / constraints.units, set[int](), 0
        for block in constraints.blocks:
            inside.update(range(block.start, block.stop))
        if any(abs(float(exact[feature]) - steps[feature]) > _ON_LATTICE * steps[feature] for feature in inside):
            return None
        square = 0
        for column in schema.columns:  # at most one entry of a column is not 0
            stop = start + len(column.feature_names)
            if start not in inside:
                square += max(steps[start:stop]) ** 2
            start = stop
        longest = square + sum(steps[block.start] ** 2 for block in constraints.blocks)
        if longest > LATTICE**2:  # such a row would be shortened on the lattice, and its levels with it
            return None
        coordinates = cls(constraints.blocks, tuple(steps), constraints.flags, square)
        return coordinates if coordinates.n_coordinates and coordinates.row_square < 1.0 else None

    @cached_property
    def n_coordinates(self) -> int:
        """Dimensions of the rows; a complete block of k levels has k − 1, unless k is large."""
        return len(self.steps) - sum(self._is_reduced(block) for block in self.blocks)

    @cached_property
    def row_square(self) -> float:
        """Largest squared norm of a row, in unit-ball units; exact in floating point."""
        total = self.other_square + sum(max(self._squares(block)) for block in self.blocks)
        return total / LATTICE**2

    @cached_property
    def center(self) -> FloatArray:
        """Center of the rows in the unit ball, shape (d,)."""
        center = np.zeros(len(self.steps))
        for block in self.blocks:
            step = self.steps[block.start]
            center[block.features] = step / block.size if block.complete else _middle_step(step, block.size)
        return center / LATTICE

    @cached_property
    def block_sizes(self) -> FloatArray:
        """Size of each feature's complete block, 0 for other features; shape (d,)."""
        sizes = np.zeros(len(self.steps))
        for block in self.blocks:
            if block.complete:
                sizes[block.features] = block.size
        return sizes

    @cached_property
    def directions(self) -> FloatArray:
        """R of x − center = R·coordinates, shape (d, number of coordinates)."""
        result = np.zeros((len(self.steps), self.n_coordinates))
        first, last = 0, 0
        for start, stop, block in self._stretches():
            width = stop - start
            if block is None:
                result[start:stop, first : first + width] = np.eye(width)
            elif self._is_reduced(block):
                width -= 1
                for j, size in enumerate(_contrast_steps(self.steps[start], block.size), 1):
                    unit = self.steps[start] / (size * j * (j + 1))
                    result[start : start + j, first + j - 1] = unit
                    result[start + j, first + j - 1] = -j * unit
            else:
                result[start:stop, first : first + width] = np.eye(width) - block.complete / block.size
            first += width
            last = stop
        assert (first, last) == (self.n_coordinates, len(self.steps))
        return result

    def augmented_gram(self, moments: ExactMoments, augmentation: float) -> IntegerArray:
        """Compute exact Σ z zᵀ, z = (w, coordinates), from the moments about 0."""
        # In units of 2^(−2·bits); bits must be 16 or more.
        d, constant = len(self.steps), round(augmentation * 2**moments.bits)
        fine = 1 << (moments.bits - LATTICE_BITS)
        # Python integers, as in additive.augmented_gram
        matrix = np.empty((d + 1, d + 1), dtype=object)
        matrix[0, 0], matrix[1:, 1:] = moments.count, moments.gram
        matrix[0, 1:] = matrix[1:, 0] = moments.sum
        half = self._mapped(matrix, fine, constant)
        return self._mapped(half.T, fine, constant)

    def about_zero(
        self, matrix: FloatArray, augmentation: float, count: float | None
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return count, sum and Gram matrix about 0 of a noisy :meth:`augmented_gram`."""
        # In unit-ball units. `count` if known otherwise.
        n_rows = float(matrix[0, 0]) / augmentation**2 if count is None else count
        total = self.directions @ matrix[0, 1:] / augmentation
        about = self.directions @ matrix[1:, 1:] @ self.directions.T
        cross = np.outer(self.center, total + n_rows / 2.0 * self.center)
        return n_rows, total + n_rows * self.center, (about + about.T) / 2.0 + (cross + cross.T)

    def choose_augmentation(
        self, sensitivity: Callable[[float], float], *, noisy_count: bool, mean_weight: float = 1.0
    ) -> float:
        """Choose the appended constant w in (0, 1] with the least expected error.

        In units of the noise on a cell at sensitivity 1, the squared error is s(w)²·[m(m + 1) + μ Σ_B m_B f_B/q_B + 2ν(κS)²/w⁴],
        m coordinates in all and m_B of the column B, f_B = a_B² + 2κ(S − e_B), e_B its largest squared norm, a_B its step (0 for
        numbers), S = Σ e_B, and q_B the precision of a mean by the repair. ``mean_weight`` multiplies μ and ν.
        """
        m, total = self.n_coordinates, self.row_square
        own = {start: block for start, _, block in self._stretches() if block is not None}
        parts = list[tuple[float, float]]()  # m_B f_B and what the block itself says of its means
        for feature, step in enumerate(self.steps):
            square = (step / LATTICE) ** 2
            if (block := own.get(feature)) is not None:
                k = block.size
                size = k - 1 if block.complete else k
                energy = max(self._squares(block)) / LATTICE**2
                said = square * max(1.0 - 2.0 / k, 0.0) / 2.0
                parts.append((size * (square + 2.0 * _MEAN_SHARE * (total - energy)), said))
            elif not any(block.start <= feature < block.stop for block in self.blocks):
                of_flag = square if feature in self.flags else 0.0
                parts.append((of_flag + 2.0 * _MEAN_SHARE * (total - square), 0.0))

        def mean_square_error(w: float) -> float:
            terms = MEAN_WEIGHT * math.fsum(share / (w**2 + said) for share, said in parts)
            if noisy_count:
                terms += 2.0 * _COUNT_WEIGHT * (_MEAN_SHARE * total) ** 2 / w**4
            return sensitivity(w) ** 2 * (m * (m + 1) + mean_weight * terms)

        return min((step / _AUGMENTATION_STEPS for step in range(1, _AUGMENTATION_STEPS + 1)), key=mean_square_error)

    def _stretches(self) -> Iterator[tuple[int, int, LevelBlock | None]]:
        """Yield start, stop and block of features in order; None if they are in no block."""
        start = 0
        for block in self.blocks:
            if start < block.start:
                yield start, block.start, None
            yield block.start, block.stop, block
            start = block.stop
        if start < len(self.steps):
            yield start, len(self.steps), None

    def _is_reduced(self, block: LevelBlock) -> bool:
        """Return True if the block has k − 1 coordinates: complete, and not too long."""
        k = block.size
        return block.complete and (k == 1 or _contrast_steps(self.steps[block.start], k)[-1] >= _MIN_STEP)

    def _squares(self, block: LevelBlock) -> list[int]:
        """Return the squared norm of each level, and of "no level" if a row may lack one."""
        step, k = self.steps[block.start], block.size
        if self._is_reduced(block):
            return _squares(block, _contrast_steps(step, k))
        middle = _middle_step(step, k)
        squares = [(step - middle) ** 2 + (k - 1) * middle**2]
        return squares if block.complete else [*squares, k * middle**2]

    def _mapped(self, matrix: IntegerArray, fine: int, constant: int) -> IntegerArray:
        """Return W·matrix, W the map of (1, x) to z; a unit of the steps is ``fine`` units of x."""
        parts = [matrix[:1] * constant]
        for start, stop, block in self._stretches():
            rows = matrix[1 + start : 1 + stop]
            if block is None:
                parts.append(rows)
            elif self._is_reduced(block):
                unit = self.steps[start] * fine  # a level is 0 or this
                counts = rows // unit
                if (counts * unit != rows).any():
                    raise AssertionError("a cell of a level is neither 0 nor its step: a defect, please report it")
                sizes = [[size * fine] for size in _contrast_steps(self.steps[start], block.size)]
                order = np.arange(1, block.size, dtype=object)[:, None]
                sums = np.cumsum(counts, axis=0)[:-1]
                parts.append((sums - order * counts[1:]) * np.array(sizes, dtype=object).reshape(-1, 1))
            else:
                parts.append(rows - matrix[:1] * (_middle_step(self.steps[start], block.size) * fine))
        return np.concatenate(parts)


def _step(value: float) -> int:
    """Round up, unless ``value`` is a whole number but for rounding."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= _ON_LATTICE * value else math.ceil(value)


def _middle_step(step: int, k: int) -> int:
    """Return the center of a level that rows may lack: 1/k of its step, 1/2 if k is 1."""
    return round(step / max(k, 2))


@lru_cache(maxsize=1024)
def _contrast_steps(step: int, k: int) -> tuple[int, ...]:
    """Return a_j = ⌊step/√(j(j + 1))⌋ of a_j·(e_1 + … + e_j − j·e_(j+1)), rounded down."""
    return tuple(math.isqrt(step * step // (j * (j + 1))) for j in range(1, k))


# What is known of a table before any row is read.


@dataclass(frozen=True)
class MomentShape:
    """Public facts about the moments to release."""

    n_features: int  # d, after encoding
    # number of rows, if it is public. Under `replace_one` no plan uses it if a rule can drop a row: the number of kept
    # rows is then private.
    n_rows: int | None = None
    mean: bool = True  # true if count and mean are released with the second moment
    # bound on the Euclidean norm of an encoded row: 1 (the unit ball), or None if the schema gives no bound
    row_norm: float | None = 1.0
    rough_scale: RoughScale | None = None  # scale ranges of the encoded rows, if the schema has them in place of bounds
    drops_rows: bool = False  # true if a rule of the schema can drop a row
    # number of features of each column, of which one at most is not 0, and the largest |x| of each; default: one
    # feature a column, in [−1, 1]
    columns: tuple[tuple[int, float], ...] = ()
    schema: Schema | None = None  # what coordinates are made of; None: a table of numbers about 0
    # weight of squared errors of means relative to the default, in the choice of the appended constant
    mean_weight: float = 1.0
    # bits by which sums of weighted rows are on a finer lattice than rows; 0 without a sampling weight
    weight_bits: int = 0

    @classmethod
    def of(cls, schema: Schema, *, mean: bool, n_rows: int | None = None) -> MomentShape:
        """Return the shape of the moments of a table with this schema."""
        if schema.has_available and not mean:
            needs = "the rule 'available' for missing values of a column needs the mean, which is not released: "
            raise InputValueError(
                f"{needs}leave mean=False out, or use missing='drop' or 'fill'",
                shell=f"{needs}leave --no-mean out, or write missing: drop or fill in the schema",
            )
        if schema.mean_weight != 1.0 and not mean:
            raise InputValueError(
                f"the schema has a mean_weight, {shown(schema.mean_weight)}, and no mean is released: leave the weight out, "
                "or release the mean"
            )
        require_mean_of_weighted(schema, mean=mean)
        drawn = schema.with_indicators
        return cls(
            drawn.n_features,
            n_rows=n_rows,
            mean=mean,
            row_norm=None if schema.row_norm is None else 1.0,
            rough_scale=drawn.rough_scale(mean=mean),
            drops_rows=schema.drops_rows,
            columns=_columns(drawn),
            schema=schema,
            mean_weight=schema.mean_weight,
            weight_bits=0 if schema.sampling_weight is None else WEIGHT_BITS,
        )

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise InputValueError(f"n_features={self.n_features}: a table needs at least one feature")
        if not self.columns:
            object.__setattr__(self, "columns", ((1, 1.0),) * self.n_features)
        if self.n_rows is not None and self.n_rows < 0:
            raise InputValueError(f"n_rows={self.n_rows} must not be negative")

    @cached_property
    def levels(self) -> LevelCoordinates | None:
        """Coordinates about the public center of one-hot levels, if the schema has such columns."""
        return LevelCoordinates.of(self.schema.with_indicators) if self.schema is not None and self.mean else None

    @cached_property
    def coordinates(self) -> RowCoordinates | None:
        """Coordinates of ``standardized``, if columns have bounds and a mean is released."""
        return RowCoordinates.of(self.schema.with_indicators) if self.schema is not None and self.mean else None

    def count_is_public(self, neighbors: Neighbors) -> bool:
        """Return True if the exact number of kept rows, or their sum of weights, is public."""
        return neighbors.count_is_public(self.drops_rows) and not self.weight_bits  # a row's weight is its own


def _columns(schema: Schema) -> tuple[tuple[int, float], ...]:
    """Return the number of features of each column, and the largest |x| in them."""
    if schema.row_norm is None:
        return ()
    lower, upper = schema.encoding(mean=True).values_in_ball(*schema.feature_bounds)
    largest = np.minimum(np.maximum(np.abs(lower), np.abs(upper)), 1.0)
    sizes = [len(column.feature_names) for column in schema.columns]
    parts = np.split(largest, np.cumsum(sizes)[:-1])
    return tuple((size, float(part.max())) for size, part in zip(sizes, parts, strict=True))


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run, for rows in the unit ball."""

    count: float | None  # number of kept rows: exact if it is public, noisy if it was paid for, else None
    sum: FloatArray | None  # (d,) or None: Σ(x − center)
    gram: FloatArray  # (d, d): Σ(x − center)(x − center)ᵀ, symmetric; not repaired
    # other private results of the run (plain values and arrays); covered by the plan's cost
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    # (d,) or None, center of sum and Gram matrix, itself a private answer; None is the origin. Moments about 0 of rows
    # with a mean far from 0 hold no covariance: in float64 none is left if the mean is 10⁸ standard deviations away.
    center: FloatArray | None = None
    model: NoiseModel | None = None  # noise of this run, as stored in files; None if moments are biased on purpose
    rules: tuple[Message, ...] = ()  # treatment of rows in the run, for the privacy statement

    @property
    def mean(self) -> FloatArray:
        """E[x], not repaired, shape (d,); needs count and sum."""
        from_center = np.asarray(self.sum) / self.count
        return from_center if self.center is None else self.center + from_center

    @property
    def covariance(self) -> FloatArray:
        """Cov(x), not repaired, shape (d, d); needs count and sum."""
        from_center = np.asarray(self.sum) / self.count
        return np.asarray(self.gram / np.asarray(self.count) - np.outer(from_center, from_center))


class Arithmetic(StrEnum):
    """Basis of the stated guarantee.

    ``EXACT_LATTICE``: integer sums and exact discrete noise; the proof covers the program's arithmetic and assumes ideal random
    bits. ``LATTICE_ROUNDED``: integer sums; the noise is drawn in floating point and rounded to the lattice; the proof assumes
    that these draws have the ideal distribution. ``IDEALIZED``: the proof is for real numbers; the sampler works in floating
    point.
    """

    EXACT_LATTICE = "exact-lattice"
    LATTICE_ROUNDED = "lattice-rounded"
    IDEALIZED = "idealized"


def positive_definite(value: npt.ArrayLike, what: str) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a symmetric positive definite matrix as floats, for a frozen option."""
    matrix = np.array(value, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise InputValueError(f"{what} must be a finite square matrix, got shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
        raise InputValueError(f"{what} is not symmetric: pass (M + Mᵀ)/2 if the difference is intended")
    if not float(np.linalg.eigvalsh(matrix)[0]) > 0.0:
        raise InputValueError(f"{what} must be positive definite, but has an eigenvalue that is not positive")
    return tuple(tuple(row) for row in matrix.tolist())
