"""Every reader of a file or a table, given changed inputs by the hundred thousand: `make fuzz`.

Each reader runs in a child process that may not take more than 1 GB above what it starts with, nor more than 20 seconds for one
input. Seed, reader and number name an input: a run can be cut short, gone on with (`--start`), and one input tried again
(`--start 123 --cases 1 --reader csv`).
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

__all__ = ["READERS", "SHARES", "Outcome", "run", "tried"]

MEMORY_BYTES = 1 << 30
SECONDS_PER_INPUT = 20
REPORT = 1
"""Where a child writes what becomes of its inputs: a pipe."""
SHARES: Mapping[str, float] = {
    "release": 0.25, "several": 0.10, "mean-release": 0.10, "counts-release": 0.05, "schema": 0.30,
    "csv": 0.10, "frame": 0.06, "parquet": 0.04,
}  # fmt: skip
"""Of all inputs; the slow readers get fewer."""


def readers() -> dict[str, Callable[[Random, Path], bool]]:
    from support import fuzzed_documents, fuzzed_tables

    return {
        "release": fuzzed_documents.fuzz_release,
        "several": fuzzed_documents.fuzz_several,
        "mean-release": fuzzed_documents.fuzz_mean_release,
        "counts-release": fuzzed_documents.fuzz_counts_release,
        "schema": fuzzed_documents.fuzz_schema,
        "csv": fuzzed_tables.fuzz_csv,
        "frame": fuzzed_tables.fuzz_frame,
        "parquet": fuzzed_tables.fuzz_parquet,
    }


READERS = tuple(SHARES)


@dataclass(frozen=True)
class Outcome:
    """What came of the inputs of one reader."""

    reader: str
    inputs: int
    accepted: int
    faults: tuple[str, ...]
    seconds: float

    def __str__(self) -> str:
        head = f"{self.reader:<13}{self.inputs:>8,} inputs, {self.accepted:>7,} accepted, {len(self.faults)} faults, "
        return "\n".join([f"{head}{self.seconds:.0f} s", *(f"    {fault}" for fault in self.faults[:20])])


class _TooLongError(BaseException):
    """No reader catches it."""


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise _TooLongError


def tried(reader: str, seed: int, number: int, folder: Path) -> tuple[bool, str | None]:
    """One input: whether it was accepted, and the fault that was found."""
    try:
        return readers()[reader](Random(f"{reader}-{seed}-{number}"), folder), None
    except _TooLongError:
        return False, f"{number}: more than {SECONDS_PER_INPUT} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return False, f"{number}: {type(error).__name__}: {' '.join(str(error).split())[:240]}"


def _bound_memory() -> None:
    """Address space at most 1 GB beyond that of the libraries, which are loaded and warm by now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def child(plan: Sequence[tuple[str, int, int]], seed: int) -> None:
    """Inputs of (reader, first, last + 1) one after another; a line for each that begins, is accepted or is a fault."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        signal.signal(signal.SIGALRM, _too_long)
        for reader, _, _ in plan:
            signal.alarm(SECONDS_PER_INPUT)
            tried(reader, -1, 0, folder)  # imports, seeds and pools of threads
            signal.alarm(0)
        if sys.platform == "linux":
            _bound_memory()
        for reader, start, stop in plan:
            for number in range(start, stop):
                os.write(REPORT, f"begin {reader} {number}\n".encode())
                signal.alarm(SECONDS_PER_INPUT)
                accepted, fault = tried(reader, seed, number, folder)
                signal.alarm(0)
                if accepted:
                    os.write(REPORT, b"accepted\n")
                if fault is not None:
                    os.write(REPORT, f"fault {fault}\n".encode())
    os._exit(0)  # what libraries do at the end of a process is no matter of files


def run(cases: Mapping[str, int], *, seed: int = 0, start: int = 0) -> tuple[Outcome, ...]:
    """Inputs of each reader in a child process; where it dies that is a fault, and another goes on after it."""
    plan = [(reader, start, start + number) for reader, number in cases.items()]
    accepted, seconds = Counter[str](), Counter[str]()
    faults: dict[str, list[str]] = {reader: [] for reader in cases}
    while plan and sum(map(len, faults.values())) < 100:
        reader, number, began = plan[0][0], plan[0][1], time.monotonic()
        for line in _reports(plan, seed):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "begin":
                seconds[reader] += time.monotonic() - began
                began = time.monotonic()
                reader, number = rest.split()[0], int(rest.split()[1])
            elif word == "accepted":
                accepted[reader] += 1
            elif word == "fault":
                faults[reader].append(rest)
            elif word != "done":
                faults[reader].append(f"{number}: the process died")
                left = [reader for reader, _, _ in plan].index(reader)
                rest_of_it = [(reader, number + 1, plan[left][2])] if number + 1 < plan[left][2] else []
                plan = [*rest_of_it, *plan[left + 1 :]]
                break
        else:
            plan = []
    return tuple(
        Outcome(reader, cases[reader], accepted[reader], tuple(faults[reader]), seconds[reader]) for reader in cases
    )


def _reports(plan: Sequence[tuple[str, int, int]], seed: int) -> Iterator[str]:
    """The lines of a child, and in the end ``died`` if it did."""
    reading, writing = os.pipe()
    given = [f"{reader}:{start}:{stop}" for reader, start, stop in plan]
    process = subprocess.Popen(
        [sys.executable, __file__, "--seed", str(seed), "--report", str(writing), "--child", *given],
        pass_fds=(writing,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        yield from lines
    if process.wait() != 0:
        yield "died"


def main() -> int:
    global REPORT
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cases", type=int, default=100_000, help="inputs; shared out among the readers, or all for one"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--reader", choices=READERS, action="append")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--report", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        REPORT = given.report
        child(
            [(reader, int(start), int(stop)) for reader, start, stop in (part.split(":") for part in given.child)],
            given.seed,
        )
    chosen = given.reader or READERS
    total = sum(SHARES[reader] for reader in chosen)
    failed = False
    for reader in chosen:
        (outcome,) = run({reader: round(given.cases * SHARES[reader] / total)}, seed=given.seed, start=given.start)
        failed |= bool(outcome.faults)
        print(outcome, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
