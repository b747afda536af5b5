"""Exact moments of batches of rows: clip, round to the lattice, multiply.

Reproducible to the bit.

:class:`MovedNumbers` clips chosen features to a ball before. Moved features are rounded to the lattice that the sums use, and
their norm is checked there in whole numbers: the sums round them again, which changes nothing
(``docs/evidence/derivations/exact-sums.md``, section 8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, NDArray

from dpmoments.base.errors import InputTypeError
from dpmoments.base.values import FloatArray
from dpmoments.rows.compiled import CellRules, CompiledSums, can_be_compiled, compiled_sums, is_loaded
from dpmoments.rows.moments import ExactMoments, add_limbs, split_limbs
from dpmoments.rows.rounding import RowMap, RowRounder
from dpmoments.rows.summary import (
    Adapted,
    Missing,
    Summary,
    blas_threads,
    checked_block,
    require_exact_products,
    summarize_in_threads,
)


@dataclass(frozen=True, eq=False)
class MovedNumbers:
    """Map of rows whose chosen features are taken about a center, scaled, and clipped to a ball.

    Each row depends on that row only.

    >>> moved = MovedNumbers((1, 2), np.array([0.5, 0.0]), 8, 4, "drop")
    >>> moved(np.array([[0.25, 0.5, 0.25], [0.25, 0.5, -1.0], [0.25, np.nan, 0.0]]))
    array([[ 0.25  ,  0.    ,  0.25  ],
           [ 0.25  ,  0.    , -0.4375],
           [ 0.25  ,     nan,     nan]])
    """

    features: tuple[int, ...]
    center: FloatArray  # (number of features,), their center, from public numbers and noisy answers
    limit: int  # radius of the ball, in units of 2^−bits
    bits: int  # of the lattice on which the rows are summed
    missing: Missing  # rule for rows with a missing value, which the summary applies
    scale: FloatArray | None = None  # (number of features,), factors, as public as the center; None: 1

    def __call__(self, block: npt.NDArray[Any]) -> FloatArray:
        rows: FloatArray = np.array(block, dtype=np.float64, order="C")
        chosen = list(self.features)
        missing = ~np.isfinite(rows[:, chosen])
        row_map = RowMap.of(
            len(chosen),
            bits=self.bits,
            radius=1.0,
            center=self.center,
            linear=None,
            missing="center",
            limit=self.limit,
            scale=self.scale,
        )
        rounded = RowRounder(row_map, max(len(rows), 1)).round(np.ascontiguousarray(rows[:, chosen])).rows
        rows[:, chosen] = rounded * 2.0**-self.bits
        if self.missing != "center":
            rows[np.ix_(np.flatnonzero(missing.any(axis=1)), np.array(chosen))] = np.nan
        return rows


_CELLS_PER_STEP = 131_072  # one megabyte of float64: buffers stay in the processor's cache
_MIN_ROWS_PER_STEP = 1024  # below it, adding d × d results to the sums would take a noticeable time
_STEPS_PER_TASK = 4
_ROWS_BEFORE_COMPILED = (
    500_000  # rows of a thread that NumPy sums in the time that Numba takes to load; none once it is
)
_CELLS_BEFORE_COMPILED = 16_000_000  # the same of wide rows that NumPy encodes
_PRODUCTS_PER_CARRY = 256  # each at most 2^53: int64 holds 1023


def exact_moments(
    blocks: Iterable[NDArray[Any]],
    n_features: int,
    *,
    bits: int = 20,
    radius: float = 1.0,
    center: ArrayLike | None = None,
    linear: ArrayLike | None = None,
    missing: Missing = "error",
    threads: int | None = None,
) -> ExactMoments:
    """Compute count, sum and Gram matrix of rows as exact integers.

    Each row is mapped to ``w = linear @ (x − center)``, clipped to ``‖w‖ ≤ radius``, and rounded to the lattice
    ``radius·2^-bits``; the integer rows are then summed without rounding.

    Guarantee. The lattice row is a function of the row's own values (and of the public arguments): not of its index,
    batch, memory layout, number of threads, BLAS or processor. Its norm is at most the radius in integer arithmetic. So
    adding or removing a row changes ``sum`` by exactly a vector of norm ≤ 2^bits and ``gram`` by exactly its outer
    product, of Frobenius and nuclear norm ≤ 4^bits. Proof: ``docs/evidence/derivations/exact-sums.md``.

    ====================  ==============================================================================
    row                   outcome
    ====================  ==============================================================================
    NaN or infinite       ``missing``: ValueError; the value becomes that of ``center`` (0 without one);
                          or the row contributes zeros and is counted in ``dropped``
    zero row              zeros
    longer than radius    scaled to the radius less √d/2 lattice units, so that rounding cannot exceed it
    1e300, subnormal      like any other
    empty block           nothing
    ====================  ==============================================================================

    ``radius``, ``center`` and ``linear`` (reproducible to about 2^-40) are public; ``bits`` is at most 24 and at most
    (53 − ⌈log₂ d⌉)/2. A block is never modified, and must keep its values until the call returns: another thread may read it
    after the next one is requested.
    """
    summary = MomentSummary(n_features, bits, radius, center, linear, missing, keep_dropped=True)

    def steps() -> Iterator[NDArray[Any]]:
        for block in blocks:
            checked = checked_block(block, n_features)
            for start in range(0, checked.shape[0], summary.rows_per_task):
                yield checked[start : start + summary.rows_per_task]

    return summarize_in_threads(summary, steps(), lambda block: block, threads)


def transformed_norms(
    block: NDArray[Any],
    *,
    bits: int = 20,
    radius: float = 1.0,
    center: ArrayLike | None = None,
    linear: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    missing: Missing = "error",
) -> NDArray[np.float64]:
    """Compute the norm of each mapped row before clipping, shape (n,).

    Arguments as in :func:`exact_moments`. ``‖linear @ (x − center)‖`` to within √k/2 lattice units (√k·2^-bits relative
    for rows of more than 2^26 units), from the same deterministic encoding: a function of the row's own values only.
    Dropped rows give 0; norms beyond 1.8e308, infinity.
    """
    if not isinstance(block, np.ndarray) or block.ndim != 2:
        raise InputTypeError("a block must be a two-dimensional NumPy array")
    n_rows, n_features = block.shape
    checked = checked_block(block, n_features)
    row_map = RowMap.of(
        n_features, bits=bits, radius=radius, center=center, linear=linear, scale=scale, missing=missing
    )
    require_exact_products()
    norms = np.empty(n_rows)
    step = min(_rows_per_step(row_map), max(n_rows, 1))
    rounder = RowRounder(row_map, step)
    with blas_threads(1):
        for start in range(0, n_rows, step):
            norms[start : start + step] = rounder.norms(checked[start : start + step])
    return norms


def _rows_per_step(row_map: RowMap) -> int:
    """Return the number of rows per product: a cache full, and few enough to be exact."""
    width = max(row_map.n_inputs, row_map.lattice.n_features)
    return min(max(_CELLS_PER_STEP // width, _MIN_ROWS_PER_STEP), row_map.lattice.rows_per_product)


@dataclass(frozen=True, eq=False)
class MomentSummary(Summary["RunningMoments", ExactMoments]):
    """Exact moments as a summary: the arguments and the guarantee of :func:`exact_moments`.

    If ``keep_dropped``, a dropped row is counted in ``count`` and ``dropped``; else it leaves no trace.
    """

    n_features: int
    bits: int = 20
    radius: float = 1.0
    center: ArrayLike | None = None
    linear: ArrayLike | None = None
    missing: Missing = "error"
    keep_dropped: bool = False
    scale: ArrayLike | None = None  # (d,), a factor for each feature in place of `linear`
    limit: int | None = None  # largest norm of a lattice row, if it is below 2^bits

    def __post_init__(self) -> None:
        _ = self.row_map  # refuses arguments that cannot be, before any row is read
        require_exact_products()

    @cached_property
    def row_map(self) -> RowMap:
        """Map applied to each row."""
        return RowMap.of(
            self.n_features,
            bits=self.bits,
            radius=self.radius,
            center=self.center,
            linear=self.linear,
            missing=self.missing,
            limit=self.limit,
            scale=self.scale,
        )

    @property
    def is_weighted(self) -> bool:
        return True

    @property
    def rows_per_task(self) -> int:
        return _STEPS_PER_TASK * _rows_per_step(self.row_map)

    def of_numbers(self, rules: CellRules) -> OfNumbers | None:
        return (
            OfNumbers(self, rules) if self.missing == "drop" and can_be_compiled(self.row_map, numbers=True) else None
        )

    def start(self) -> RunningMoments:
        return RunningMoments(self.row_map, _rows_per_step(self.row_map))

    def add(self, running: RunningMoments, block: NDArray[Any]) -> None:
        running.add(checked_block(block, self.n_features))

    def finish(self, running: RunningMoments) -> ExactMoments:
        moments = running.moments()
        return moments if self.keep_dropped else moments.without_dropped()


@dataclass(frozen=True, eq=False)
class NumberBlock:
    """Rows of a table of numbers, shape (n, d), which may be encoded here or in machine code."""

    n_rows: int  # n
    numbers: Callable[[], NDArray[Any]]  # returns the rows before any rule, missing values as NaN
    encoded: Callable[[], NDArray[Any]]  # returns the encoded rows, NaN if dropped
    encoded_numbers: Callable[[NDArray[Any]], NDArray[Any]]  # returns the encoded rows of some of `numbers()`


@dataclass(frozen=True)
class OfNumbers(Adapted["RunningMoments", ExactMoments]):
    """Exact moments of :class:`NumberBlock` batches, with the bits of their encoded rows."""

    summary: MomentSummary
    rules: CellRules

    def add(self, running: RunningMoments, block: Any) -> None:
        running.add_numbers(block, self.rules)


class RunningMoments:
    """Running exact sums of one thread.

    Three levels, each emptied into the next before it could become inexact: a float64 sum of products over at most
    2^(53 − 2·bits) rows, an int64 sum of at most 256 of those, and two-limb integers.
    """

    def __init__(self, row_map: RowMap, rows_per_step: int) -> None:
        lattice = row_map.lattice
        n_features = lattice.n_features
        self._lattice = lattice
        self._row_map = row_map
        self._rounder = RowRounder(row_map, rows_per_step)
        self._compiled: dict[bool, CompiledSums] = {}  # of numbers before their encoding, and of encoded rows
        self._ones = np.ones(rows_per_step)
        self._sums = np.zeros((n_features + 1, n_features))  # row 0 is Σz, the others Σzzᵀ
        self._step_gram = np.empty((n_features, n_features))
        self._rows_in_sums = 0
        self._integers = np.zeros(self._sums.shape, dtype=np.int64)
        self._products_in_integers = 0
        self._limbs = split_limbs(self._integers)
        self._count = self._dropped = self._clipped = 0

    def add(self, block: NDArray[Any]) -> None:
        """Add a batch of any number of encoded rows."""
        compiled, step = self._loaded(len(block), None), self._rounder.max_rows
        for start in range(0, len(block), step):
            rows = block[start : start + step]
            if compiled is None:
                self._add_step(rows)
            else:
                self._add_compiled(compiled, rows, lambda special: special)

    def add_numbers(self, block: NumberBlock, rules: CellRules) -> None:
        """Add a batch of numbers, encoded in machine code where possible and worth loading."""
        compiled, step = self._loaded(block.n_rows, rules), self._rounder.max_rows
        if compiled is None:
            self.add(checked_block(block.encoded(), self._row_map.n_inputs))
            return
        numbers = block.numbers()
        for start in range(0, block.n_rows, step):
            if not self._add_compiled(compiled, numbers[start : start + step], block.encoded_numbers):
                block.encoded()
                raise AssertionError("a cell was refused that its column admits: a defect, please report it")

    def _loaded(self, n_rows: int, rules: CellRules | None) -> CompiledSums | None:
        """Return machine code for batches of numbers (else of encoded rows), if worth loading."""
        kind = rules is not None
        if kind not in self._compiled and can_be_compiled(self._row_map, numbers=kind):
            n_rows += self._count
            cells = n_rows * self._row_map.n_inputs
            worth_it = is_loaded() or n_rows >= _ROWS_BEFORE_COMPILED or cells >= _CELLS_BEFORE_COMPILED
            if worth_it and (compiled := compiled_sums(self._row_map, self._rounder.max_rows, rules)) is not None:
                self._compiled[kind] = compiled
        return self._compiled.get(kind)

    def _add_compiled(
        self, compiled: CompiledSums, rows: NDArray[Any], encode: Callable[[NDArray[Any]], NDArray[Any]]
    ) -> bool:
        """Add rows in machine code, and special ones here; return False if a rule refuses a cell."""
        self._make_room(len(rows))
        added = compiled.add(rows, self._sums)
        if added is None:
            return False
        special, clipped, dropped = added
        self._note(len(rows) - len(special), len(rows), clipped, dropped)
        if len(special):
            self._add_step(encode(rows[special]))
        return True

    def _note(self, n_counted: int, n_summed: int, clipped: int, dropped: int) -> None:
        self._count += n_counted
        self._rows_in_sums += n_summed
        self._clipped += clipped
        self._dropped += dropped

    def _make_room(self, n_rows: int) -> None:
        """Empty the float64 sums if ``n_rows`` more rows could make them inexact."""
        if self._rows_in_sums + n_rows > self._lattice.rows_per_product:
            self._empty_sums()

    def _add_step(self, block: NDArray[Any]) -> None:
        n_rows = block.shape[0]
        rounded = self._rounder.round(block)
        self._make_room(n_rows)
        # A product of an array with its own transpose is computed as a symmetric rank-k update, at half the
        # cost.
        np.matmul(rounded.rows.T, rounded.rows, out=self._step_gram)
        self._sums[0] += np.dot(self._ones[:n_rows], rounded.rows)
        self._sums[1:] += self._step_gram
        self._note(n_rows, n_rows, rounded.clipped, rounded.dropped)

    def _empty_sums(self) -> None:
        self._integers += self._sums.astype(np.int64)
        self._sums[:] = 0.0
        self._rows_in_sums = 0
        self._products_in_integers += 1
        if self._products_in_integers == _PRODUCTS_PER_CARRY:
            self._carry()

    def _carry(self) -> None:
        self._limbs = add_limbs(self._limbs, split_limbs(self._integers))
        self._integers[:] = 0
        self._products_in_integers = 0

    def moments(self) -> ExactMoments:
        """Return the moments of everything added."""
        self._empty_sums()
        self._carry()
        return ExactMoments(
            count=self._count,
            dropped=self._dropped,
            clipped=self._clipped,
            bits=self._lattice.bits,
            radius=self._lattice.radius,
            limbs=self._limbs,
        )
