"""Summaries: one pass over the data that any engine can map over partitions and merge."""

from __future__ import annotations

import os
import re
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache, reduce
from itertools import chain, islice
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpmoments.base.errors import InputRuntimeError, InputTypeError, InputValueError, out_of_range, shown, wrong_type
from dpmoments.base.values import BoolArray, FloatArray

Running = TypeVar("Running")
Result = TypeVar("Result")


class Summary(ABC, Generic[Running, Result]):
    """Integer sums over rows: start, add batches, finish a partition, merge partitions.

    A summary is a frozen dataclass of plain values, which an engine can send to its workers. Each partition (or thread)
    has its own running sum and finishes with integers, which travel back. Merging is commutative and associative to the
    last bit, and ``finish(start())`` is its neutral element: no engine, order, partitioning or retry changes a bit of
    the result.
    """

    @property
    def rows_per_task(self) -> int:
        """Number of rows per task that suits a thread, if batches can be cut for free."""
        return 65_536

    @property
    def is_weighted(self) -> bool:
        """True if a row is summed times its sampling weight; else it counts by 1."""
        return False

    takes_levels: ClassVar[bool] = False
    """True if batches may also be of type :class:`~dpmoments.rows.level_sums.CodedBlock`."""
    takes_units: ClassVar[bool] = False
    """True if batches name each row's unit (:class:`~dpmoments.rows.units.UnitBlock`)."""

    def of_numbers(self, rules: Any) -> Summary[Any, Any] | None:
        """Return a summary in machine code of numbers before their encoding, or None."""
        # It has the same result; ``rules`` are :class:`~dpmoments.rows.compiled.CellRules`.
        return None

    @abstractmethod
    def start(self) -> Running:
        """Return a new running sum of no rows, for one thread."""

    @abstractmethod
    def add(self, running: Running, block: npt.NDArray[Any]) -> None:
        """Add encoded rows, shape (n, d), to a running sum; the batch is neither changed nor kept."""

    @abstractmethod
    def finish(self, running: Running) -> Result:
        """Return the exact sums of everything added; private data."""

    def merge(self, first: Result, second: Result) -> Result:
        """Return the result for the rows of both."""
        both: Result = first.merge(second)  # type: ignore[attr-defined]
        return both


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivateSums:
    """Sums over rows, merged entry by entry. Private data: ``repr`` shows none."""

    def merge(self, other: Self) -> Self:
        """Return the sums over both sets of rows."""
        entries = [(getattr(self, entry.name), getattr(other, entry.name)) for entry in fields(self)]
        return type(self)(*(_added(ours, theirs) for ours, theirs in entries))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(values=<private>)"


def _added(ours: Any, theirs: Any) -> Any:
    """Return the sum of two entries: numbers, arrays, counters, tuples of them, or None."""
    if isinstance(ours, tuple):
        return tuple(_added(one, two) for one, two in zip(ours, theirs, strict=True))
    return None if ours is None else ours + theirs


@dataclass(frozen=True)
class Adapted(Summary[Running, Result]):
    """Summary of another kind of batch, which ``add`` converts; ``summary`` computes the sums."""

    summary: Summary[Running, Result]

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    @property
    def is_weighted(self) -> bool:
        return self.summary.is_weighted

    def start(self) -> Running:
        return self.summary.start()

    def finish(self, running: Running) -> Result:
        return self.summary.finish(running)

    def merge(self, first: Result, second: Result) -> Result:
        return self.summary.merge(first, second)


@dataclass(frozen=True)
class Prepared(Adapted[Running, Result]):
    """Summary of batches that ``prepare`` changes first, each row by itself."""

    prepare: Callable[[Any], Any]

    def add(self, running: Running, block: Any) -> None:
        self.summary.add(running, self.prepare(block))


# What a block may hold, and what becomes of cells that are not finite numbers.

Missing = Literal["error", "center", "drop"]


def checked_block(block: object, n_features: int) -> NDArray[Any]:
    """Check a batch, (n, n_features), of numbers of at most 64 bits."""
    # Integers beyond 2^53 round to float64.
    if not isinstance(block, np.ndarray):
        raise wrong_type("block", "a NumPy array", block)
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
    """Apply the rule for NaN and infinite values, in place.

    Return the number of dropped rows, set to zeros. ``values``, shape (n, d), have the center subtracted: 0 is the
    center.
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
    """Copy the kept rows for statistics: float64, C-contiguous, every value finite."""
    rows: FloatArray = np.array(block, dtype=np.float64, order="C")
    finite = np.isfinite(rows)
    if finite.all():
        return rows
    n_dropped = fill_missing(rows, missing)
    return rows[finite.all(axis=1)] if n_dropped else rows


def dropped_by_missing(missing: BoolArray, rule: str, column: str, instead: str) -> BoolArray:
    """Return the mask of rows that a column's ``missing`` rule drops, (n,); raise if "error"."""
    # Its words do not depend on the value; ``instead`` is the rule that would fill it.
    if rule == "error" and missing.any():
        rules = "'drop'" if instead == "drop" else f"'drop' or {shown(instead)}"
        raise InputValueError(
            f"column '{column}' has a cell that is missing, not finite or not readable, and its rule for these is 'error': "
            f"choose {rules} in the schema; state how cells are written, by the column's format, decimal, "
            "true_values or missing_values, or the file's text_format; or clean the table. A preflight check counts such cells"
        )
    return missing if rule == "drop" else np.zeros_like(missing)


# Memory for encoded blocks that is asked for once, and not for every block.


class BlockMemory(threading.local):
    """Memory of each thread for its batches: the next batch of a thread overwrites the last.

    Freed and reallocated batches of some tens of megabytes come from the system page by page, each zeroed: if an
    allocator keeps little, as in a Dask worker, this takes as long as all arithmetic of a pass.
    """

    def __init__(self) -> None:
        self._cells = np.empty(0)

    def block(self, n_rows: int, n_features: int) -> FloatArray:
        """Return an array of this shape, stored column by column, with leftover content."""
        size = n_rows * n_features
        if self._cells.size < size:
            self._cells = np.empty(size)
        return self._cells[:size].reshape((n_rows, n_features), order="F")


# Mapping of a summary over batches in threads, and merging of the results.

# What the kernel needs of the linear algebra library: one thread a product, exact integer products.

_lock = threading.Lock()
_limits: list[int] = []
_usual: dict[int, int] = {}
"""Threads of each library before the first limit."""


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _blas_libraries() -> tuple[Any, ...]:
    # Cached, since the search takes 4 ms and NumPy's is loaded already.
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def blas_threads(at_most: int | None) -> Iterator[None]:
    """Limit BLAS to ``at_most`` threads per call, process-wide, while any caller is inside."""
    # With several callers inside, the smallest number holds. None: no limit.
    if at_most is None:
        yield
        return
    with _lock:
        if not _limits:
            _usual.update((index, library.num_threads) for index, library in enumerate(_blas_libraries()))
        _limits.append(at_most)
        _apply_limits()
    try:
        yield
    finally:
        with _lock:
            _limits.remove(at_most)
            _apply_limits()


def _apply_limits() -> None:
    for index, library in enumerate(_blas_libraries()):
        library.set_num_threads(min([*_limits, _usual[index]]))


def _products_are_exact(multiply: Callable[[FloatArray, FloatArray], FloatArray] = np.matmul) -> bool:
    """Return True if a matrix product is exact on fixed integers whose partial sums exceed 2^51."""
    # The integers are fixed, in the shapes and layouts of the kernel; `multiply` takes and returns float64 matrices.
    for n_rows, n_features in ((8192, 3), (4099, 17), (515, 130)):
        # Odd integers below 2^20: every low bit of their products matters.
        integers = (np.arange(n_rows * n_features, dtype=np.int64) * 2_654_435_761 % (1 << 20)) | 1
        integers = integers.reshape(n_rows, n_features)
        integers[:, ::2] *= -1
        exact = np.einsum("ij,ik->jk", integers, integers)
        for rows in (integers.astype(np.float64), np.asfortranarray(integers.astype(np.float64))):
            # The symmetric product and the general one are different routines.
            if not all(np.array_equal(multiply(rows.T, other), exact) for other in (rows, rows.copy())):
                return False
    return True


@cache
def require_exact_products() -> None:
    """Check, once per process, that NumPy's matrix products of integers are exact."""
    # A library that computes them in reduced precision (such as an accelerator's emulation) would break the bound that
    # privacy rests on.
    if not _products_are_exact():
        raise InputRuntimeError(
            "this linear algebra library rounds float64 products of integers below 2^53, but the exact sums "
            "that privacy rests on need them; use a NumPy built on a full-precision BLAS"
        )


Part = TypeVar("Part")

_THREADS_VARIABLE = "DPMOMENTS_THREADS"
_WAITING_PER_THREAD = 4
"""Parts read ahead for each thread; limits the part of the table in memory."""


def stated_threads(threads: int | None) -> int | None:
    """Return the number of threads that the caller, or else the environment, states."""
    # None if neither does.
    if threads is not None:
        if threads < 1:
            raise out_of_range("threads", threads, "at least 1: leave it out for one per core")
        return threads
    written = os.environ.get(_THREADS_VARIABLE, "").strip()
    if not written:
        return None
    if not re.fullmatch("[0-9]{1,6}", written) or int(written) < 1:
        raise InputValueError(
            f"the environment variable {_THREADS_VARIABLE}={shown(written)} is not a number of threads: set it "
            "to a whole number from 1 up, or unset it for one per core"
        )
    return int(written)


def summarize_in_threads(
    summary: Summary[Running, Result],
    parts: Iterable[Part],
    encode: Callable[[Part], npt.NDArray[Any]],
    threads: int | None = None,
) -> Result:
    """Summarize parts of a table.

    Read in the calling thread, encoded and added in ``threads`` threads. A part must keep its values until the call
    returns: it may be encoded after the next one is requested. The default of ``threads`` is ``DPMOMENTS_THREADS``,
    else the usable cores; the result does not depend on it.
    """
    n_threads = stated_threads(threads) or usable_cores()
    with blas_threads(1):  # one product per core
        unread = iter(parts)
        first = list(islice(unread, 0 if n_threads == 1 else 2))
        if len(first) < 2:  # starting a thread takes as long as encoding a thousand rows
            only = summary.start()
            for part in chain(first, unread):
                summary.add(only, encode(part))
            return summary.finish(only)
        local = threading.local()
        started: list[Running] = []

        def start_thread() -> None:
            local.running = summary.start()
            started.append(local.running)

        def add(part: Part) -> None:
            summary.add(local.running, encode(part))

        with ThreadPoolExecutor(n_threads, "summarize", start_thread) as pool:
            pending: deque[Future[None]] = deque()
            try:
                for part in chain(first, unread):
                    if len(pending) > _WAITING_PER_THREAD * n_threads:
                        pending.popleft().result()
                    pending.append(pool.submit(add, part))
                while pending:
                    pending.popleft().result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        nothing = summary.finish(summary.start())
        return reduce(summary.merge, map(summary.finish, started), nothing)
