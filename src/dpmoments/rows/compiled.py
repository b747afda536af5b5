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

from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.rows.rounding import Lattice, RowMap

MAX_FEATURES = 32
"""Max features: wider rows spend most time in the matrix product, at which BLAS is best."""
_ROWS_PER_TILE = 512
"""Rows that take all steps together; 32 columns of them are 128 kilobytes."""


def can_be_compiled(row_map: RowMap, *, numbers: bool) -> bool:
    """Return True if machine code sums such rows when Numba is installed."""
    # Wide rows only if they are `numbers` before their encoding: products of wide rows are left to BLAS.
    return row_map.linear is None and (numbers or row_map.n_inputs <= MAX_FEATURES) and _numba_is_installed()


def is_loaded() -> bool:
    """Return True if this process has loaded the machine code: using it costs nothing more."""
    return f"{__package__}.machine_code" in sys.modules


@cache
def _numba_is_installed() -> bool:
    """Return True if Numba is installed; cached, since the search takes as long as a small pass."""
    return find_spec("numba") is not None


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


class CompiledSums:
    """Sums of lattice rows over batches of at most ``max_rows`` rows, in one thread's buffers.

    With ``rules`` the batches are of numbers before their encoding, else of encoded rows.
    """

    def __init__(self, row_map: RowMap, max_rows: int, rules: CellRules | None = None) -> None:
        from dpmoments.rows.machine_code import add_numbers, round_numbers  # Numba takes half a second to import

        d, lattice = row_map.n_inputs, row_map.lattice
        self._add_numbers: Callable[..., Any] = add_numbers
        self._round_numbers: Callable[..., Any] = round_numbers
        encodes, no = rules is not None, np.zeros(d, bool)
        rules = rules or CellRules(np.empty((d, 6)), no, no, np.inf, 1.0)
        cells = rules.features, rules.drops, rules.refuses, rules.largest, rules.row_norm
        has_center, center = row_map.center is not None, np.zeros(d) if row_map.center is None else row_map.center
        limits = lattice.squared_limit, lattice.squared_beyond_doubt, lattice.clip_target
        self._constants = encodes, cells, (center, has_center, row_map.units, *limits)
        self._narrow = d <= MAX_FEATURES
        rows_per_tile = _ROWS_PER_TILE if self._narrow else max_rows
        self._columns = np.empty((d, max_rows))  # for blocks that are not stored row by row
        self._buffers = (
            np.empty((d, rows_per_tile + 8)),  # columns 4096 bytes apart would share one set of the cache's lines
            np.empty(rows_per_tile),
            np.empty(rows_per_tile, dtype=bool),
            np.empty(max_rows, dtype=np.int64),
        )
        self._products = np.zeros((d + 1, d + 1)) if self._narrow else np.empty((d, d))

    def add(self, block: NDArray[Any], sums: FloatArray) -> tuple[NDArray[np.int64], int, int] | None:
        """Add Σz (row 0) and Σzzᵀ (other rows) of a batch, (n, d), to ``sums``, (d + 1, d)."""
        # Return the indices of special rows, which were left out, and the numbers of rows certainly beyond the radius and
        # of dropped rows; None, with part of the sums added, if a column's rule refuses a cell.
        n_rows, by_columns = block.shape[0], not (block.dtype == np.float64 and block.flags.c_contiguous)
        if by_columns:
            np.copyto(self._columns[:, :n_rows], block.T)
            block = self._columns
        if self._narrow:
            found = self._add_numbers(block, n_rows, by_columns, *self._constants, *self._buffers, self._products, sums)
        else:
            found = self._round_numbers(block, 0, n_rows, by_columns, *self._constants, *self._buffers, 0, 0)
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
    """Return sums and lengths in machine code; None if not installed, or if it is not used."""
    return CompiledFeatures(rules) if _numba_is_installed() and why_not_compiled() is None else None


def compiled_sums(row_map: RowMap, max_rows: int, rules: CellRules | None) -> CompiledSums | None:
    """Return sums in machine code; None if :func:`why_not_compiled` has a reason."""
    return CompiledSums(row_map, max_rows, rules) if why_not_compiled() is None else None


@cache
def why_not_compiled() -> str | None:
    """Return why this process does not use machine code although Numba is installed.

    None if it does. Privacy rests on exact sums: once per process, sums of fixed integers, and of fixed numbers that are
    encoded, show whether the compiler reorders operations.
    """
    rounded = (np.arange(5 * 700, dtype=np.int64) * 2_654_435_761 % (1 << 18)).reshape(700, 5)
    rounded[:, ::2] *= -1
    lattice = Lattice(5, bits=20, radius=1.0)
    numbers = np.sin(np.arange(5 * 700.0)).reshape(700, 5)
    numbers[::50, 1] = np.nan
    drops = np.arange(5) == 0
    rules = CellRules(np.tile([-0.3, 0.7, 0.1, 0.2, 0.51, 0.93], (5, 1)), drops, np.zeros(5, bool), 1e3, 2.3)
    clipped = np.clip(np.where(np.isnan(numbers), 0.1, numbers), -0.3, 0.7)
    encoded = np.clip((clipped - 0.2) / 0.51 * 0.93, -1e3, 1e3) / 2.3
    by_numpy = np.rint(encoded * lattice.units_per_one).astype(np.int64)
    for rows, integers, of_rows in ((rounded * lattice.scale, rounded, None), (numbers, by_numpy, rules)):
        sums = np.zeros((6, 5))
        try:
            CompiledSums(RowMap(5, lattice, "drop", None, None), 700, of_rows).add(rows, sums)
        except (
            Exception
        ) as error:  # whatever an installation that is not whole raises; NumPy's path gives the same bits
            return f"Numba cannot be used: {type(error).__name__}"
        if not np.array_equal(sums, np.vstack([integers.sum(axis=0), np.einsum("ij,ik->jk", integers, integers)])):
            return "Numba's sums of integers are not exact"
    return None
