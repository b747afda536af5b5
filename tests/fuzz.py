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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

__all__ = ["READERS", "SHARES", "Outcome", "run", "tried"]

MEMORY_BYTES = 1 << 30
SECONDS_PER_INPUT = 20
SHARES: Mapping[str, float] = {
    "release": 0.30, "mean-release": 0.20, "schema": 0.30, "csv": 0.10, "frame": 0.06, "parquet": 0.04,
}  # fmt: skip
"""Of all inputs; the slow readers get fewer."""


def readers() -> dict[str, Callable[[Random, Path], bool]]:
    import fuzzed_documents
    import fuzzed_tables

    return {
        "release": fuzzed_documents.fuzz_release,
        "mean-release": fuzzed_documents.fuzz_mean_release,
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


def _too_long(number: int, frame: FrameType | None) -> None:
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


def child(reader: str, seed: int, start: int, stop: int) -> None:
    """Inputs one after another; a line for each that begins, is accepted or is a fault."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = Path(name)
        for number in range(3):  # imports and pools of threads
            tried(reader, -1, number, folder)
        if sys.platform == "linux":
            _bound_memory()
        signal.signal(signal.SIGALRM, _too_long)
        for number in range(start, stop):
            os.write(3, f"begin {number}\n".encode())
            signal.alarm(SECONDS_PER_INPUT)
            accepted, fault = tried(reader, seed, number, folder)
            signal.alarm(0)
            if accepted:
                os.write(3, b"accepted\n")
            if fault is not None:
                os.write(3, f"fault {fault}\n".encode())
    os._exit(0)  # what libraries do at the end of a process is no matter of files


def run(reader: str, cases: int, *, seed: int = 0, start: int = 0) -> Outcome:
    """Inputs of one reader in child processes; one that dies is a fault, and the next goes on after it."""
    began, at, stop = time.monotonic(), start, start + cases
    accepted, faults = 0, []
    while at < stop and len(faults) < 100:
        reading, writing = os.pipe()
        command = [sys.executable, __file__, "--child", "--reader", reader, "--seed", str(seed), "--start", str(at)]
        process = subprocess.Popen(
            ["/bin/sh", "-c", f'exec "$@" 3>&{writing}', "sh", *command, "--cases", str(stop - at)],
            pass_fds=(writing,),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(writing)
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "begin":
                    at = int(rest)
                accepted += word == "accepted"
                if word == "fault":
                    faults.append(rest)
        if process.wait() == 0:
            break
        faults.append(f"{at}: the process died ({process.returncode})")
        at += 1
    return Outcome(reader, cases, accepted, tuple(faults), time.monotonic() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, help="inputs; shared out among the readers, or all for one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first input")
    parser.add_argument("--reader", choices=READERS, action="append")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.reader[0], given.seed, given.start, given.start + given.cases)
    chosen = given.reader or READERS
    total = sum(SHARES[reader] for reader in chosen)
    failed = False
    for reader in chosen:
        outcome = run(reader, round(given.cases * SHARES[reader] / total), seed=given.seed, start=given.start)
        failed |= bool(outcome.faults)
        print(outcome, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
