"""Functions that Numba, which this file needs, compiles for :mod:`dpmoments.rows.compiled`."""

from __future__ import annotations

import math

import numba
import numpy as np

from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.rows.rounding import EXACT

RoundingConstants = tuple[FloatArray, bool, FloatArray, float, float, float]
"""Center, if subtracted, lattice units by feature, squared limit, beyond doubt, target."""
CellConstants = tuple[FloatArray, BoolArray, BoolArray, float, float]
"""Fields of :class:`dpmoments.rows.compiled.CellRules`, in order."""


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _load_tile(block: FloatArray, by_columns: bool, start: int, n: int, tile: FloatArray) -> None:
    """Copy a few rows of a batch, shape (n, d) or (d, n) ``by_columns``, column by column."""
    d = tile.shape[0]
    if by_columns:
        for j in range(d):
            for k in range(n):
                tile[j, k] = block[j, start + k]
    else:
        whole = n - n % 8
        for first in range(0, whole, 8):  # eight rows at a time: a line of the cache of each column
            for j in range(d):
                for k in range(first, first + 8):
                    tile[j, k] = block[start + k, j]
        for k in range(whole, n):
            for j in range(d):
                tile[j, k] = block[start + k, j]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _encode_tile(n: int, cells: CellConstants, center: FloatArray, tile: FloatArray, lost: BoolArray) -> int:
    """Encode a tile in place; return the number of dropped rows (now the center), −1 if refused."""
    rules, drops, refuses, largest, row_norm = cells
    d = tile.shape[0]
    some_lost = False
    for j in range(d):
        column = tile[j]
        lower, upper, replacement = rules[j, 0], rules[j, 1], rules[j, 2]
        offset, unit, weight = rules[j, 3], rules[j, 4], rules[j, 5]
        n_missing = 0
        for k in range(n):
            n_missing += 0 if abs(column[k]) < np.inf else 1  # so written that a NaN counts
        if n_missing > 0:
            if refuses[j]:
                return -1
            if drops[j] and not some_lost:
                some_lost = True
                for k in range(n):
                    lost[k] = False
            for k in range(n):
                if not abs(column[k]) < np.inf:
                    column[k] = replacement
                    if drops[j]:
                        lost[k] = True
        for k in range(n):
            value = column[k]
            value = lower if value < lower else value
            value = upper if value > upper else value
            value = (value - offset) / unit * weight
            value = -largest if value < -largest else value
            value = largest if value > largest else value
            column[k] = value / row_norm
    if not some_lost:
        return 0
    n_lost = 0
    for k in range(n):
        if lost[k]:
            n_lost += 1
            for j in range(d):
                tile[j, k] = center[j]
    return n_lost


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _fill_tile(
    start: int,
    n: int,
    rounding: RoundingConstants,
    tile: FloatArray,
    squares: FloatArray,
    special: IntegerArray,
    n_special: int,
    clipped: int,
) -> tuple[int, int]:
    """Compute a tile's lattice rows in place."""
    # Special rows become zeros, and their indices are recorded.
    center, has_center, units, limit, beyond_doubt, target = rounding
    d = tile.shape[0]
    for k in range(n):
        squares[k] = 0.0
    for j in range(d):
        column, shift, unit = tile[j], center[j], units[j]
        for k in range(n):
            value = column[k] - shift if has_center else column[k]
            rounded = np.rint(value * unit)
            column[k] = rounded
            squares[k] += rounded * rounded
    n_over = 0
    for k in range(n):
        n_over += 0 if squares[k] <= limit else 1  # so written that a NaN counts
    if n_over == 0:
        return n_special, clipped
    for k in range(n):
        square = squares[k]
        if square <= limit:
            squares[k] = 1.0
        elif square < EXACT:
            clipped += 1 if square > beyond_doubt else 0
            squares[k] = target / math.sqrt(square)
        else:
            special[n_special] = start + k
            n_special += 1
            squares[k] = 0.0
            for j in range(d):
                tile[j, k] = 0.0
    for j in range(d):
        column = tile[j]
        for k in range(n):
            column[k] = np.rint(column[k] * squares[k])
    for k in range(n):
        squares[k] = 0.0
    for j in range(d):
        column = tile[j]
        for k in range(n):
            squares[k] += column[k] * column[k]
    for k in range(n):
        if not squares[k] <= limit:
            raise AssertionError("a lattice row is beyond the radius: a defect, please report it")
    return n_special, clipped


# Partial sums of integers below 2^53 are exact in any order, so that they may be taken several at a time.
@numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _add_products(tile: FloatArray, n: int, products: FloatArray, sums: FloatArray) -> None:
    """Add the lower triangle of Σzzᵀ to ``products``, in 2 × 2 blocks, and Σz to ``sums[0]``."""
    d = tile.shape[0]
    for i in range(0, d, 2):
        first, second = tile[i], tile[min(i + 1, d - 1)]
        of_first, of_second = 0.0, 0.0
        for k in range(n):
            of_first += first[k]
            of_second += second[k]
        sums[0, i] += of_first
        if i + 1 < d:
            sums[0, i + 1] += of_second
        for j in range(0, i + 1, 2):
            third, fourth = tile[j], tile[min(j + 1, d - 1)]
            p13, p14, p23, p24 = 0.0, 0.0, 0.0, 0.0
            for k in range(n):
                p13 += first[k] * third[k]
                p14 += first[k] * fourth[k]
                p23 += second[k] * third[k]
                p24 += second[k] * fourth[k]
            # Where d is odd the last row or column is there twice, and its copies go to cells that nobody reads.
            products[i, j] += p13
            products[i, j + 1] += p14
            products[i + 1, j] += p23
            products[i + 1, j + 1] += p24


@numba.njit(nogil=True, cache=True, error_model="numpy")
def round_numbers(
    block: FloatArray,
    first: int,
    n: int,
    by_columns: bool,
    encodes: bool,
    cells: CellConstants,
    rounding: RoundingConstants,
    tile: FloatArray,
    squares: FloatArray,
    lost: BoolArray,
    special: IntegerArray,
    n_special: int,
    clipped: int,
) -> tuple[int, int, int]:
    """Encode ``n`` rows of numbers, if they are not, and round them to the lattice, in a tile."""
    # Return the number of special rows so far, of clipped rows so far, and of dropped rows, −1 if a cell is refused.
    _load_tile(block, by_columns, first, n, tile)
    dropped = _encode_tile(n, cells, rounding[0], tile, lost) if encodes else 0
    if dropped < 0:
        return n_special, clipped, dropped
    n_special, clipped = _fill_tile(first, n, rounding, tile, squares, special, n_special, clipped)
    return n_special, clipped, dropped


@numba.njit(nogil=True, cache=True, error_model="numpy")
def add_numbers(
    block: FloatArray,
    n_rows: int,
    by_columns: bool,
    encodes: bool,
    cells: CellConstants,
    rounding: RoundingConstants,
    tile: FloatArray,
    squares: FloatArray,
    lost: BoolArray,
    special: IntegerArray,
    products: FloatArray,
    sums: FloatArray,
) -> tuple[int, int, int]:
    rows_per_tile = squares.shape[0]
    n_special, clipped, dropped = 0, 0, 0
    products[:] = 0.0
    for first in range(0, n_rows, rows_per_tile):
        n = min(rows_per_tile, n_rows - first)
        n_special, clipped, dropped_here = round_numbers(
            block, first, n, by_columns, encodes, cells, rounding, tile, squares, lost, special, n_special, clipped
        )
        if dropped_here < 0:
            return n_special, clipped, dropped_here
        dropped += dropped_here
        _add_products(tile, n, products, sums)
    # The lower triangle of the products goes to both triangles of the sums.
    for i in range(sums.shape[1]):
        for j in range(i + 1):
            sums[1 + i, j] += products[i, j]
            if j < i:
                sums[1 + j, i] += products[i, j]
    return n_special, clipped, dropped


@numba.njit(nogil=True, cache=True, error_model="numpy")
def add_marginals(
    block: FloatArray,
    cells: CellConstants,
    center: FloatArray,
    units: FloatArray,
    one: float,
    tile: FloatArray,
    lost: BoolArray,
    sums: FloatArray,
) -> int:
    """Add Σz and Σz² of every column; return the number of kept rows, −1 if a cell is refused."""
    kept, n_rows = 0, block.shape[0]
    for first in range(0, n_rows, lost.shape[0]):
        n = min(lost.shape[0], n_rows - first)
        _load_tile(block, False, first, n, tile)
        dropped = _encode_tile(n, cells, center, tile, lost)
        if dropped < 0:
            return -1
        kept += n - dropped
        for j in range(tile.shape[0]):
            column, shift, unit = tile[j], center[j], units[j]
            total, squares = 0.0, 0.0
            for k in range(n):
                value = (column[k] - shift) * unit
                value = -one if value < -one else value
                value = one if value > one else value
                value = np.rint(value)
                total += value
                squares += value * value
            sums[0, j] += total
            sums[1, j] += squares
    return kept


@numba.njit(nogil=True, cache=True, error_model="numpy")
def count_lengths(
    block: FloatArray,
    cells: CellConstants,
    center: FloatArray,
    units: FloatArray,
    scale: float,
    edges: FloatArray,
    tile: FloatArray,
    squares: FloatArray,
    lost: BoolArray,
    counts: IntegerArray,
) -> int:
    """Count kept rows by length; return their number, −1 if a cell is refused."""
    kept, n_rows = 0, block.shape[0]
    for first in range(0, n_rows, lost.shape[0]):
        n = min(lost.shape[0], n_rows - first)
        _load_tile(block, False, first, n, tile)
        squares[:n] = 0.0
        dropped = _encode_tile(n, cells, center, tile, lost)
        if dropped < 0:
            return -1
        kept += n - dropped
        for j in range(tile.shape[0]):
            column, shift, unit = tile[j], center[j], units[j]
            for k in range(n):
                rounded = np.rint((column[k] - shift) * unit)
                squares[k] += rounded * rounded
        for k in range(n):
            if dropped == 0 or not lost[k]:
                length = math.sqrt(squares[k]) * scale
                cell = 0
                while cell < edges.shape[0] and length >= edges[cell]:
                    cell += 1
                counts[cell] += 1
    return kept
