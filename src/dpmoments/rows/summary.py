"""What one pass over a table computes, in a form that any engine can map over partitions and merge."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError

Running = TypeVar("Running")
Result = TypeVar("Result")


class Summary(ABC, Generic[Running, Result]):
    """Sums of integers over rows: start, add blocks, finish a partition, merge partitions.

    A summary is a frozen dataclass of plain values, so that an engine can send it to where the rows are. Each partition (or
    thread) has a running sum of its own; what it finishes with is made of integers and travels back. Merging is commutative
    and associative to the last bit, and ``finish(start())`` is its neutral element: no engine, order, partitioning or retry
    changes a bit of the result.
    """

    @property
    def rows_per_task(self) -> int:
        """How many rows at a time suit a thread, where blocks can be cut at no cost."""
        return 65_536

    @property
    def takes_levels(self) -> bool:
        """Whether blocks may be of type :class:`~dpmoments.rows.level_sums.LevelBlock`, too."""
        return False

    @abstractmethod
    def start(self) -> Running:
        """A new running sum, of no rows; it is used by one thread alone."""

    @abstractmethod
    def add(self, running: Running, block: npt.NDArray[Any]) -> None:
        """Add a block of encoded rows, shape (n, d), to a running sum. The block is neither changed nor kept."""

    @abstractmethod
    def finish(self, running: Running) -> Result:
        """What was added so far, exact; private data."""

    @abstractmethod
    def merge(self, first: Result, second: Result) -> Result:
        """The result for the rows of both."""


@dataclass(frozen=True)
class Adapted(Summary[Running, Result]):
    """A summary that is given blocks of another kind: ``add`` makes of them what ``summary`` takes."""

    summary: Summary[Running, Result]

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    def start(self) -> Running:
        return self.summary.start()

    def finish(self, running: Running) -> Result:
        return self.summary.finish(running)

    def merge(self, first: Result, second: Result) -> Result:
        return self.summary.merge(first, second)


# What a block may hold, and what becomes of cells that are not finite numbers.

Missing = Literal["error", "center", "drop"]


def checked_block(block: object, n_features: int) -> NDArray[Any]:
    """Refuse what is not a block of rows.

    Parameters
    ----------
    block : ndarray, shape (n, n_features)
        bool, integer or floating point of at most 64 bits. Integers beyond 2^53 become the nearest float64.
    """
    if not isinstance(block, np.ndarray):
        raise InputTypeError(f"a block must be a NumPy array, got {type(block).__name__}")
    if isinstance(block, np.ma.MaskedArray):
        raise InputTypeError("a block must not be a masked array: fill masked cells with NaN and choose `missing`")
    if block.dtype.kind not in "biuf" or block.dtype.itemsize > 8:
        raise InputTypeError(f"a block must hold integers, float32 or float64, got dtype {block.dtype}")
    if block.ndim != 2:
        raise InputValueError(f"a block must be two-dimensional, got {block.ndim} dimensions (one array: [array])")
    if block.shape[1] != n_features:
        raise InputValueError(f"a block must have {n_features} columns, got {block.shape[1]}")
    return np.asarray(block)


def fill_missing(values: NDArray[np.float64], missing: Missing) -> int:
    """Apply the rule for NaN and infinite cells, in place.

    Parameters
    ----------
    values : ndarray, shape (n, d)
        Cells less the center: 0 is the center.

    Returns
    -------
    int
        Rows dropped, that is, set to zeros.

    Examples
    --------
    >>> values = np.array([[np.nan, 1.0], [2.0, 3.0]])
    >>> fill_missing(values, "drop"), values.tolist()
    (1, [[0.0, 0.0], [2.0, 3.0]])
    """
    finite = np.isfinite(values)
    if finite.all():
        return 0
    if missing == "error":
        raise InputValueError(
            "a cell is NaN or infinite and missing='error': clean the rows, or choose 'center' or 'drop'"
        )
    if missing == "center":
        values[~finite] = 0.0
        return 0
    lost = ~finite.all(axis=1)
    values[lost] = 0.0
    return int(np.count_nonzero(lost))


def plain_rows(block: NDArray[Any], missing: Missing) -> FloatArray:
    """Rows as statistics read them: float64, C-contiguous, every cell finite, dropped rows left out; a copy.

    Parameters
    ----------
    block : ndarray, shape (n, d)
        Encoded rows; a row that its column rules dropped is NaN throughout.

    Examples
    --------
    >>> block = np.array([[np.nan, np.nan], [2.0, 3.0]])
    >>> plain_rows(block, "drop").tolist()
    [[2.0, 3.0]]
    """
    rows: FloatArray = np.array(block, dtype=np.float64, order="C")
    finite = np.isfinite(rows)
    if finite.all():
        return rows
    n_dropped = fill_missing(rows, missing)
    return rows[finite.all(axis=1)] if n_dropped else rows


def dropped_by_missing(missing: BoolArray, rule: str, column: str, *, cell: str, instead: str) -> BoolArray:
    """Which rows a column's rule for missing cells drops, shape (n,).

    Parameters
    ----------
    missing : ndarray of bool, shape (n,)
        Cells of the column that hold nothing.
    rule : str
        The column's ``missing`` rule.
    column : str
        Its name, for the message.
    cell : str
        What a missing cell of such a column is, for the message: ``"empty"``.
    instead : str
        The rule that fills such a cell in a column of this kind, for the message.
    """
    if rule == "error" and missing.any():
        raise InputValueError(
            f"column {column!r} has an {cell} cell and its rule is missing='error': choose missing={instead!r} or "
            "missing='drop' in the schema, or clean the table"
        )
    return missing if rule == "drop" else np.zeros_like(missing)


# Memory for encoded blocks that is asked for once, and not for every block.


class BlockMemory(threading.local):
    """Memory of each thread for one block after another: the next block of a thread overwrites its last.

    A block of some tens of megabytes that is given back and asked for again comes from the system page by page, each of them
    zeroed: where an allocator keeps little (that of a Dask worker is told to), this takes as long as all arithmetic of a pass.

    Examples
    --------
    >>> memory = BlockMemory()
    >>> first = memory.block(4, 2)
    >>> first.shape, first.flags.f_contiguous, np.shares_memory(first, memory.block(3, 2))
    ((4, 2), True, True)
    """

    def __init__(self) -> None:
        self._cells = np.empty(0)

    def block(self, n_rows: int, n_features: int) -> FloatArray:
        """An array of this shape, stored column by column; what it holds is left from before."""
        size = n_rows * n_features
        if self._cells.size < size:
            self._cells = np.empty(size)
        return self._cells[:size].reshape((n_rows, n_features), order="F")
