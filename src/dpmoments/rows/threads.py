"""Mapping of a summary over batches in threads, and merging of the results."""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, reduce
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from dpmoments.base.errors import InputRuntimeError, InputValueError, out_of_range, shown
from dpmoments.rows.summary import Result, Running, Summary

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


_Multiply = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def _products_are_exact(multiply: _Multiply = np.matmul) -> bool:
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
