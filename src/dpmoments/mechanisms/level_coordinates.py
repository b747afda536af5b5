"""Coordinates of rows about the public center of one-hot levels, where rows are shorter.

A level of a block of k has norm 1 about 0 and √(1 − 1/k) about 1/k, where no row is moved, and a complete block lies in k − 1
dimensions. The map is linear in the row with a constant appended, public, and made of integers: sums over rows are mapped
after they are made, without rounding. Proof: ``docs/evidence/derivations/public-center.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpmoments.base.arrays import FloatArray, IntegerArray
from dpmoments.rows.moments import ExactMoments
from dpmoments.schema.constraints import Constraints, LevelBlock
from dpmoments.schema.encoding import LATTICE
from dpmoments.schema.schema import Schema

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
            sizes = _contrast_steps(step, k)
            return [sum(size**2 for size in sizes[j:]) + (j * sizes[j - 1] if j else 0) ** 2 for j in range(k)]
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
