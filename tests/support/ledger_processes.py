"""Processes that share a ledger: some spend until they are refused, some are killed while they release.

    python ledger_processes.py spend LEDGER N_PROCESSES N_SPENDS EPSILON
    python ledger_processes.py release LEDGER N_PROCESSES N_RELEASES EPSILON
    python ledger_processes.py kill LEDGER N_KILLS SEED

As a program, it forks them, and prints one JSON document. Forks are cheap: a kill costs milliseconds, and not the second that
imports take.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import numpy as np

import dpmoments as dpm
from dpmoments.privacy.accounting import LossUnit

DATASET = "people"
SCHEMA = dpm.Schema.unit_ball(2)
TABLE = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
MEMORY = Path("/dev/shm")
"""Where a transaction need not wait for a disk. Locks and kills are the same there; a power cut is not what is tested."""
LONGEST_LIFE = 5
"""Of a process that is killed, in releases of this machine as busy as it is."""
COUNTED_LIFE = 2
"""Of a process that is killed at a call of a function, in releases."""


@contextmanager
def quick_folder(usual: Path) -> Iterator[Path]:
    """A folder in memory where there is such a file system, else the usual one."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield usual
        return
    with TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


def in_child(work: Callable[[], int]) -> tuple[int, int]:
    """Its process id, and a descriptor from which the number that it returns can be read."""
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        return child, reader
    code = 1
    try:
        os.write(writer, str(work()).encode())
        code = 0
    finally:
        os._exit(code)


def spend(ledger: str, n_spends: int, epsilon: float, all_spent: Barrier) -> int:
    """How many of so many spends were allowed; nobody makes a second one before all have made the first."""
    kept, allowed, cost = dpm.Ledger(ledger, timeout=120.0), 0, dpm.PrivacyBudget.pure(epsilon)
    for place in range(n_spends):
        try:
            entry = kept.reserve(
                DATASET,
                cost,
                LossUnit.EPSILON,
                neighbors="add_remove",
                release=f"{os.getpid()}-{place}",
                mechanism="test",
            )
        except dpm.BudgetExceededError:
            continue
        allowed += 1
        kept.commit(entry)
        if place == 0:
            all_spent.wait(timeout=120.0)
    return allowed


def make_releases(ledger: str, n_releases: int, epsilon: float) -> int:
    """How many of so many releases were made, each written beside the ledger."""
    made = 0
    for place in range(n_releases):
        output = Path(ledger).parent / f"{os.getpid()}-{place}.json"
        try:
            dpm.release(
                TABLE,
                SCHEMA,
                epsilon=epsilon,
                mechanism="laplace",
                ledger=ledger,
                dataset=DATASET,
                output=output,
                threads=1,
            )
        except dpm.BudgetExceededError:
            continue
        made += 1
    return made


def run_together(n_processes: int, work: Callable[[], int]) -> dict[str, object]:
    children = [in_child(work) for _ in range(n_processes)]
    made = [int(os.read(reader, 100) or b"-1") for _, reader in children]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in children]
    return {"made": made, "codes": codes}


def counted(work: Callable[[], object], last: float = float("inf")) -> int:
    """Calls of functions since the first reservation, those of C among them; at the last one the process kills itself."""
    n_calls, reserved = 0, False

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal n_calls, reserved
        reserved = reserved or (event == "return" and frame.f_code is dpm.Ledger.reserve.__code__)
        n_calls += reserved and event in ("call", "c_call")
        if n_calls > last:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    work()
    sys.setprofile(None)
    return n_calls


def kill(ledger: str, n_kills: int, seed: int) -> dict[str, object]:
    """Kill processes that release in a loop: some at a random moment, as many at a random call of a function.

    How many calls there are between two steps of a release does not depend on the machine, nor on what is in the ledger.
    """
    draw = np.random.default_rng(seed)
    start = time.monotonic()
    run_together(1, lambda: make_releases(ledger, LONGEST_LIFE, 1e-6))
    moments = draw.uniform(0.0, time.monotonic() - start, n_kills).tolist()
    child, reader = in_child(lambda: counted(lambda: make_releases(ledger, COUNTED_LIFE, 1e-6)))
    calls = draw.integers(0, int(os.read(reader, 100)), n_kills).tolist()
    os.waitpid(child, 0)
    os.close(reader)
    for moment in moments:
        child, reader = in_child(lambda: make_releases(ledger, 10**6, 1e-6))
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
        wait_for_killed(child, reader)
    for call in calls:
        wait_for_killed(*in_child(lambda last=call: counted(lambda: make_releases(ledger, 10**6, 1e-6), last)))  # type: ignore[misc]
    return {"kills": 2 * n_kills}


def wait_for_killed(child: int, reader: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    os.close(reader)


if __name__ == "__main__":
    action, path, *rest = sys.argv[1:]
    dpm.release(
        TABLE, SCHEMA, epsilon=1.0, mechanism="laplace", threads=1
    )  # what is imported late is imported before forks
    if action == "kill":
        print(json.dumps(kill(path, int(rest[0]), int(rest[1]))))
    else:
        n_processes, each, cost = int(rest[0]), int(rest[1]), float(rest[2])
        begun = get_context("fork").Barrier(n_processes)
        works = {"spend": lambda: spend(path, each, cost, begun), "release": lambda: make_releases(path, each, cost)}
        print(json.dumps(run_together(n_processes, works[action])))
