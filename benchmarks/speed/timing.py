"""What benchmarks of speed and memory share."""

from __future__ import annotations

import json
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

from dpmoments.rows import kernel
from dpmoments.rows.summary import usable_cores


def processor_name() -> str:
    """The processor's own name for itself, where the system tells."""
    info = Path("/proc/cpuinfo")
    described = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in described if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def processor() -> str:
    """Its name, and how many cores of it are used."""
    return f"{processor_name()}, {usable_cores()} cores"


def peak_kilobytes() -> int:
    """What this process ever held in memory; ``getrusage`` begins with the peak of the process that started this one."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def cost_of(code: str) -> tuple[float, float]:
    """Peak memory in MB, libraries included, and processor seconds of a process of its own that runs this code."""
    ending = "import json, time; from benchmarks.speed.timing import peak_kilobytes"
    said = f"{code}\n{ending}; print(json.dumps([peak_kilobytes() / 1024, time.process_time()]))"
    command, root = [sys.executable, "-W", "ignore", "-c", said], Path(__file__).parents[2]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    peak, seconds = json.loads(done.stdout.splitlines()[-1])
    return peak, seconds


def without_machine_code() -> AbstractContextManager[object]:
    """Have NumPy sum all rows, as where Numba is not installed."""
    return mock.patch.object(kernel, "can_be_compiled", return_value=False)


def interleaved(
    jobs: dict[str, Callable[[], object]], turns: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Times of each job, the jobs taking turns, after one turn that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            start = clock()
            job()
            if turn:
                found[name].append(clock() - start)
    return found


def least_and_middle(values: list[float]) -> str:
    return f"{min(values):.2f}, {statistics.median(values):.2f}"
