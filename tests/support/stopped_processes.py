"""Processes that are told to stop in mid-release.

    python stopped_processes.py WHEN KIND MECHANISM FOLDER [WHEN KIND MECHANISM FOLDER ...]

As a program, it forks one for each, in its folder, and prints a JSON document of their exit codes and last words. Each fork
spares the seconds that imports take. A child that runs the command has a library that spoils the exit code as the interpreter
ends, as Arrow sometimes does whose thread is still reading.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

import dpmoments as dpm
import dpmoments.cli
from dpmoments.__main__ import main
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.kernel import RunningMoments
from dpmoments.rows.sources import text

drawn: list[bool] = []


def stop_before(owner: Any, name: str, due: Callable[[], bool]) -> None:
    """Have this process get the signal of Ctrl-C before a function is run."""
    original = getattr(owner, name)

    def stopped(*arguments: Any, **options: Any) -> Any:
        if due():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        return original(*arguments, **options)

    setattr(owner, name, stopped)


def note_draws() -> None:
    original = PrivacyFilter.draw

    def draw(self: PrivacyFilter, *arguments: Any, **options: Any) -> Any:
        drawn.append(True)
        return original(self, *arguments, **options)

    PrivacyFilter.draw = draw  # type: ignore[method-assign]


def run(when: str, kind: str, mechanism: str) -> int:
    text._CSV_BLOCK_BYTES = 1 << 16
    note_draws()
    match when:
        case "in the first pass":
            stop_before(RunningMoments, "add", lambda: True)
        case "while a block is read":
            stop_before(text._WholeLineEnds, "_following", lambda: True)
        case "in a later pass":
            stop_before(text._WholeLineEnds, "_following", lambda: bool(drawn))
        case "by a bad cell":  # while a slow disk is read ahead
            stop_before(text._WholeLineEnds, "_following", lambda: bool(time.sleep(0.05)))  # type: ignore[func-returns-value]
        case "as it is repaired":
            stop_before(importlib.import_module("dpmoments.spending.release"), "moment_release", lambda: True)
    if kind == "relation":
        try:
            relation, schema = duckdb.sql("select * from 'people.parquet'"), dpm.Schema.load("people.yaml")
            options = {"output": "people.json", "dataset": "people", "ledger": "budget.db"}
            dpm.release(relation, schema, epsilon=1.0, mechanism=mechanism, **options)
        except KeyboardInterrupt as stopped:
            print("dpmoments: stopped;", *stopped.__notes__, file=sys.stderr)
            return 130
        return 0
    arguments = ["release", f"people.{kind}", "--schema", "people.yaml", "--epsilon", "1", "--neighbors", "add_remove"]
    arguments += ["--ledger", "budget.db", "--dataset", "people", "--output", "people.json", "--mechanism", mechanism]
    sys.argv[1:] = arguments
    atexit.register(os._exit, 70)
    return main()


if __name__ == "__main__":
    given, outcomes = sys.argv[1:], []
    for first in range(0, len(given), 4):
        *what, folder = given[first : first + 4]
        child = os.fork()
        if not child:
            os.chdir(folder)
            for stream, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(f"../{Path(folder).name}.{name}", os.O_CREAT | os.O_WRONLY), stream)
            sys.exit(run(*what))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        outcomes.append([code, *(Path(f"{folder}.{name}").read_text() for name in ("out", "err"))])
    print(json.dumps(outcomes))
