"""Functions that Numba compiles for :mod:`dpmoments.rows.compiled`.

Importing this file requires Numba.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputFloatingPointError
from dpmoments.rows.lattice import EXACT

IntegerArray = NDArray[np.int64]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _load_tile(block: FloatArray, by_columns: bool, start: int, n: int, tile: FloatArray) -> None:
    """Copy a few rows of a batch, shape (n, d) or (d, n) ``by_columns``, column by column."""
    d = tile.shape[0]
    if by_columns:
        for j in range(d):
            for k in range(n):
                tile[j, k] = block[j, start + k]
    else:
        for k in range(n):
            for j in range(d):
                tile[j, k] = block[start + k, j]


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _fill_tile(
    start: int,
    n: int,
    center: FloatArray,
    has_center: bool,
    units: float,
    limit: float,
    beyond_doubt: float,
    target: float,
    tile: FloatArray,
    squares: FloatArray,
    special: IntegerArray,
    n_special: int,
    clipped: int,
) -> tuple[int, int]:
    """Compute a tile's lattice rows in place."""
    # Special rows become zeros, and their indices are recorded.
    d = tile.shape[0]
    for k in range(n):
        squares[k] = 0.0
    for j in range(d):
        column, shift = tile[j], center[j]
        for k in range(n):
            value = column[k] - shift if has_center else column[k]
            rounded = np.rint(value * units)
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
            raise InputFloatingPointError("a lattice row is beyond the radius: this is a defect of the kernel")
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
def add_rows(
    block: FloatArray,
    n_rows: int,
    by_columns: bool,
    center: FloatArray,
    has_center: bool,
    units: float,
    limit: float,
    beyond_doubt: float,
    target: float,
    tile: FloatArray,
    squares: FloatArray,
    products: FloatArray,
    sums: FloatArray,
    special: IntegerArray,
) -> tuple[int, int]:
    d, rows_per_tile = tile.shape[0], squares.shape[0]
    n_special, clipped = 0, 0
    products[:] = 0.0
    for first in range(0, n_rows, rows_per_tile):
        n = min(rows_per_tile, n_rows - first)
        _load_tile(block, by_columns, first, n, tile)
        n_special, clipped = _fill_tile(
            first, n, center, has_center, units, limit, beyond_doubt, target, tile, squares, special, n_special, clipped
        )
        _add_products(tile, n, products, sums)
    for i in range(d):
        for j in range(i + 1):
            sums[1 + i, j] += products[i, j]
            if j < i:
                sums[1 + j, i] += products[i, j]
    return n_special, clipped
