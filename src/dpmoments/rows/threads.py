"""Map a summary over blocks in threads, and merge what the threads return."""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from typing import Any, TypeVar

import numpy.typing as npt

from dpmoments.rows.blas import single_threaded_blas, usable_cores
from dpmoments.rows.summary import Summary

__all__ = ["THREADS_VARIABLE", "stated_threads", "summarise_in_threads"]

Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")

THREADS_VARIABLE = "DPMOMENTS_THREADS"
WAITING_PER_THREAD = 4
"""Parts read ahead for each thread; it bounds what is kept of the table in memory."""


def stated_threads(threads: int | None) -> int | None:
    """How many threads a pass was said to take, by its caller or else by the environment; None where neither says.

    Raises
    ------
    ValueError
        If that is not a positive whole number.
    """
    if threads is not None:
        if threads < 1:
            raise ValueError(f"threads={threads} must be at least 1: leave it out for one a core")
        return threads
    written = os.environ.get(THREADS_VARIABLE, "").strip()
    if not written:
        return None
    if not re.fullmatch("[0-9]{1,6}", written) or int(written) < 1:
        raise ValueError(
            f"the environment variable {THREADS_VARIABLE}={written!r} is no number of threads: set it to a whole number from 1 "
            "up, or unset it for one a core"
        )
    return int(written)


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
        Default: what the environment variable ``DPMOMENTS_THREADS`` says, else the cores this process may use. The result does
        not depend on it.

    Raises
    ------
    ValueError
        If that is not a positive whole number.
    Exception
        Whatever reading, encoding or adding raises; the other threads then stop.
    """
    n_threads = stated_threads(threads) or usable_cores()
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
