"""Map a summary over blocks in threads, and merge what the threads return."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import Any, TypeVar

import numpy.typing as npt

from dpmoments.rows.blas import single_threaded_blas, usable_cores
from dpmoments.rows.summary import Summary

__all__ = ["summarise_in_threads"]

Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")

WAITING_PER_THREAD = 4
"""Parts read ahead for each thread; it bounds what is kept of the table in memory."""


def summarise_in_threads(
    summary: Summary[Running, Result],
    parts: Iterable[Part],
    encode: Callable[[Part], npt.NDArray[Any]],
    threads: int | None = None,
) -> Result:
    """Summarise parts of a table.

    Parameters
    ----------
    summary : Summary
    parts : iterable
        Read one after another in the calling thread. A part must keep its values until the call returns: it may be encoded
        after the next one has been asked for.
    encode : callable
        Part ↦ block of encoded rows; called in the threads.
    threads : int, optional
        Default: the cores this process may use. The result does not depend on it.

    Raises
    ------
    ValueError
        If ``threads`` is below 1.
    Exception
        Whatever reading, encoding or adding raises; the other threads then stop.
    """
    n_threads = usable_cores() if threads is None else threads
    if n_threads < 1:
        raise ValueError(f"threads must be at least 1, got {threads}")
    with single_threaded_blas():
        if n_threads == 1:
            only = summary.start()
            for part in parts:
                summary.add(only, encode(part))
            return summary.finish(only)
        local = threading.local()
        started: list[Running] = []

        def start_thread() -> None:
            local.running = summary.start()
            started.append(local.running)

        def add(part: Part) -> None:
            summary.add(local.running, encode(part))

        with ThreadPoolExecutor(n_threads, "summarise", start_thread) as pool:
            pending: deque[Future[None]] = deque()
            try:
                for part in parts:
                    if len(pending) > WAITING_PER_THREAD * n_threads:
                        pending.popleft().result()
                    pending.append(pool.submit(add, part))
                while pending:
                    pending.popleft().result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        nothing = summary.finish(summary.start())
        return reduce(summary.merge, map(summary.finish, started), nothing)
