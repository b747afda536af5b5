"""Kernel steps for narrow rows in machine code (Numba).

The same bits as NumPy's, several times faster.

NumPy passes over a batch once for each step (subtract, multiply, round, square, clip), and a matrix product of narrow
rows mostly moves memory. Here a few hundred rows at a time take all steps while they are in the cache.

Every number equals that of :mod:`dpmoments.rows.rounding`: elementwise steps are the same IEEE operations in the same
order, and sums are of integers below 2^53, so their order is free. Special rows (non-finite values, norms without an
exact square) are left out and returned, and the caller uses NumPy for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmoments.base.arrays import BoolArray, FloatArray
from dpmoments.rows.lattice import Lattice
from dpmoments.rows.rounding import RowMap

MAX_FEATURES = 32
"""Max features: wider rows spend most time in the matrix product, at which BLAS is best."""
_ROWS_PER_TILE = 512
"""Rows that take all steps together; 32 columns of them are 128 kilobytes."""


def can_be_compiled(row_map: RowMap) -> bool:
    """Return True if batches of such rows are summed in machine code when Numba is installed."""
    narrow = row_map.linear is None and row_map.n_inputs <= MAX_FEATURES
    return narrow and _numba_is_installed()


def can_be_encoded(row_map: RowMap) -> bool:
    """Return True if machine code encodes such rows when Numba is installed."""
    # Wide rows too: only their products are left to BLAS.
    return row_map.linear is None and _numba_is_installed()


def is_loaded() -> bool:
    """Return True if this process has loaded the machine code: using it costs nothing more."""
    return f"{__package__}.machine_code" in sys.modules


@cache
def _numba_is_installed() -> bool:
    """Return True if Numba is installed; cached, since the search takes as long as a small pass."""
    return find_spec("numba") is not None


class CompiledSums:
    """Sums of lattice rows over batches of at most ``max_rows`` rows, in one thread's buffers."""

    def __init__(self, row_map: RowMap, max_rows: int) -> None:
        d = row_map.n_inputs
        self._add_rows = _machine_code()
        self._rounding = _rounding_constants(row_map)
        self._columns = np.empty((d, max_rows))  # for blocks that are not stored row by row
        # Columns 4096 bytes apart would share one set of the cache's lines.
        self._tile = np.empty((d, _ROWS_PER_TILE + 8))
        self._squares = np.empty(_ROWS_PER_TILE)
        self._lower = np.zeros((d + 1, d + 1))
        self._special = np.empty(max_rows, dtype=np.int64)

    def add(self, block: NDArray[Any], sums: FloatArray) -> tuple[NDArray[np.int64], int]:
        """Add Σz (row 0) and Σzzᵀ (other rows) of a checked batch to ``sums``, shape (d + 1, d)."""
        # Return the indices of special rows, which were left out, and the number of added rows certainly beyond the
        # radius.
        numbers, by_columns = _row_or_column_stored(block, self._columns)
        n_special, clipped = self._add_rows(
            *(numbers, block.shape[0], by_columns, self._rounding),
            *(self._tile, self._squares, self._lower, sums, self._special),
        )
        return self._special[:n_special], clipped


def _row_or_column_stored(block: NDArray[Any], columns: FloatArray) -> tuple[NDArray[Any], bool]:
    """Return a batch if it is row by row, else its copy in ``columns`` and True."""
    if block.dtype == np.float64 and block.flags.c_contiguous:
        return block, False
    np.copyto(columns[:, : block.shape[0]], block.T)
    return columns, True


def _rounding_constants(row_map: RowMap) -> tuple[FloatArray, bool, FloatArray, float, float, float]:
    lattice, has_center = row_map.lattice, row_map.center is not None
    center = np.zeros(row_map.n_inputs) if row_map.center is None else row_map.center
    limits = lattice.squared_limit, lattice.squared_beyond_doubt, lattice.clip_target
    return center, has_center, row_map.units, *limits


@dataclass(frozen=True, eq=False)
class CellRules:
    """Constants by which numbers of a table become encoded features.

    A number x that is missing becomes the replacement; then x becomes clip((clip(x) − offset)/unit · weight)/row_norm,
    clipped first to its bounds, then to ±``largest``. The operations match :mod:`dpmoments.rows.encode`.
    """

    features: FloatArray  # (d, 6), lower bound, upper bound, replacement, offset, unit and weight
    drops: BoolArray  # with `refuses`: (d,), true if a missing value drops its row, or stops the pass
    refuses: BoolArray
    largest: float  # with `row_norm`: bound before the division by `row_norm`; infinite if nothing can overflow
    row_norm: float


class CompiledNumbers:
    """Sums of lattice rows over batches of at most ``max_rows`` rows of numbers not yet encoded."""

    # Its buffers belong to one thread.

    def __init__(self, row_map: RowMap, rules: CellRules, max_rows: int) -> None:
        from dpmoments.rows.machine_code import add_numbers, round_numbers

        d = row_map.n_inputs
        self._add_numbers: Callable[..., Any] = add_numbers
        self._round_numbers: Callable[..., Any] = round_numbers
        cells = rules.features, rules.drops, rules.refuses, rules.largest, rules.row_norm
        self._constants = cells, _rounding_constants(row_map)
        self._narrow = d <= MAX_FEATURES
        rows_per_tile = _ROWS_PER_TILE if self._narrow else max_rows
        self._columns = np.empty((d, max_rows))
        self._buffers = (
            np.empty((d, rows_per_tile + 8)),
            np.empty(rows_per_tile),
            np.empty(rows_per_tile, dtype=bool),
            np.empty(max_rows, dtype=np.int64),
        )
        self._products = np.zeros((d + 1, d + 1)) if self._narrow else np.empty((d, d))

    def add(self, block: NDArray[Any], sums: FloatArray) -> tuple[NDArray[np.int64], int, int] | None:
        """Add Σz (row 0) and Σzzᵀ (other rows) of numbers, (n, d), to ``sums``, (d + 1, d)."""
        # Return the indices of special rows, which were left out, and the numbers of clipped and of dropped rows; None,
        # with part of the sums added, if a column's rule refuses a cell.
        n_rows = block.shape[0]
        numbers, by_columns = _row_or_column_stored(block, self._columns)
        if self._narrow:
            found = self._add_numbers(
                numbers, n_rows, by_columns, *self._constants, *self._buffers, self._products, sums
            )
        else:
            found = self._round_numbers(numbers, 0, n_rows, by_columns, *self._constants, *self._buffers, 0, 0)
        n_special, clipped, dropped = found
        if dropped < 0:
            return None
        if not self._narrow:
            rows = self._buffers[0][:, :n_rows]
            np.matmul(rows, rows.T, out=self._products)
            sums[0] += rows.sum(axis=1)
            sums[1:] += self._products
        return self._buffers[3][:n_special], clipped, dropped


class CompiledFeatures:
    """Sums of single features and lengths of rows, over batches of numbers not yet encoded."""

    # Its buffers belong to one thread.

    def __init__(self, rules: CellRules) -> None:
        from dpmoments.rows.machine_code import add_marginals, count_lengths

        self._add_marginals: Callable[..., Any] = add_marginals
        self._count_lengths: Callable[..., Any] = count_lengths
        self._cells = rules.features, rules.drops, rules.refuses, rules.largest, rules.row_norm
        self._tile = np.empty((len(rules.drops), _ROWS_PER_TILE + 8))
        self._squares = np.empty(_ROWS_PER_TILE)
        self._lost = np.zeros(_ROWS_PER_TILE, dtype=bool)

    def sums(self, numbers: NDArray[Any], center: FloatArray, units: FloatArray, one: float) -> tuple[int, FloatArray]:
        """Return the number of kept rows, and Σz and Σz², shape (2, d)."""
        # z is (x − center) · units clipped to ±one.
        rows = np.ascontiguousarray(numbers, dtype=np.float64)
        sums = np.zeros((2, rows.shape[1]))
        kept = self._add_marginals(rows, self._cells, center, units, one, self._tile, self._lost, sums)
        return int(kept), sums

    def count_lengths(
        self,
        numbers: NDArray[Any],
        center: FloatArray,
        units: FloatArray,
        scale: float,
        edges: FloatArray,
        counts: NDArray[np.int64],
    ) -> int:
        """Count rows by √Σz² · scale between edges; return −1 if a rule refuses one."""
        # z is (x − center) · units, rounded.
        rows = np.ascontiguousarray(numbers, dtype=np.float64)
        buffers = self._tile, self._squares, self._lost
        return int(self._count_lengths(rows, self._cells, center, units, scale, edges, *buffers, counts))


def compiled_features(rules: CellRules) -> CompiledFeatures | None:
    """Return sums and lengths in machine code; None if not installed, or wrong on fixed numbers."""
    usable = _numba_is_installed() and why_not_compiled() is None and _encodes_exactly()
    return CompiledFeatures(rules) if usable else None


def compiled_numbers(row_map: RowMap, rules: CellRules, max_rows: int) -> CompiledNumbers | None:
    """Return sums of numbers in machine code."""
    # None if it fails on fixed numbers, or sums do (`why_not_compiled`).
    usable = why_not_compiled() is None and _encodes_exactly()
    return CompiledNumbers(row_map, rules, max_rows) if usable else None


@cache
def _encodes_exactly() -> bool:
    """Return True if fixed numbers become the integers that NumPy makes of them."""
    rules = CellRules(
        np.tile([-0.3, 0.7, 0.1, 0.2, 0.51, 0.93], (3, 1)), np.array([True, False, False]), np.zeros(3, bool), 1e3, 1.7
    )
    lattice = Lattice(3, bits=20, radius=1.0)
    numbers = np.sin(np.arange(3 * 700.0)).reshape(700, 3)
    numbers[::50, 1] = np.nan
    filled = np.where(np.isnan(numbers), 0.1, numbers)
    encoded = np.clip((np.clip(filled, -0.3, 0.7) - 0.2) / 0.51 * 0.93, -1e3, 1e3) / 1.7
    rounded = np.rint(encoded * lattice.units_per_one).astype(np.int64)
    sums = np.zeros((4, 3))
    try:
        CompiledNumbers(RowMap(3, lattice, "drop", None, None), rules, 700).add(numbers, sums)
    except Exception:  # as in why_not_compiled
        return False
    return np.array_equal(sums, np.vstack([rounded.sum(axis=0), np.einsum("ij,ik->jk", rounded, rounded)]))


def compiled_sums(row_map: RowMap, max_rows: int) -> CompiledSums | None:
    """Return sums in machine code; None if :func:`why_not_compiled` has a reason."""
    return CompiledSums(row_map, max_rows) if why_not_compiled() is None else None


@cache
def why_not_compiled() -> str | None:
    """Return why this process does not use machine code although Numba is installed.

    None if it does. Privacy rests on exact sums: once per process, sums of fixed integers show whether the compiler
    reorders operations.
    """
    lattice = Lattice(5, bits=20, radius=1.0)
    integers = (np.arange(5 * 700, dtype=np.int64) * 2_654_435_761 % (1 << 18)).reshape(700, 5)
    integers[:, ::2] *= -1
    sums = np.zeros((6, 5))
    try:
        CompiledSums(RowMap(5, lattice, "drop", None, None), 700).add(integers * lattice.scale, sums)
    except Exception as error:  # whatever an installation that is not whole raises; NumPy's path gives the same bits
        return f"Numba cannot be used: {type(error).__name__}"
    exact = np.vstack([integers.sum(axis=0), np.einsum("ij,ik->jk", integers, integers)])
    return None if np.array_equal(sums, exact) else "Numba's sums of integers are not exact"


def _machine_code() -> Callable[..., Any]:
    from dpmoments.rows.machine_code import add_rows as made  # Numba takes half a second to import

    add_rows: Callable[..., Any] = made
    return add_rows
