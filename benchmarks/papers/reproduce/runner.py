"""Results on disk, figures cut into tasks, and a run of what is missing over processes of one thread each."""

from __future__ import annotations

import ast
import importlib
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import dpmoments as dpm
from benchmarks.papers.reproduce.declaration import Figure, Method, Panel, Point, digest
from benchmarks.speed.timing import processor_name

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "reproduction"


@cache
def circumstances() -> Mapping[str, str]:
    """Machine, versions, and the commit of the sources, with a + where files differ from it; none outside a checkout."""
    try:
        asked = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        commit = asked.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "cpu": processor_name(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "dpmoments": dpm.__version__,
        "commit": commit,
    }


class Store:
    """One Parquet file a finished task, by figure: a run that was broken off goes on."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def parts(self, figure: Figure) -> Path:
        return self.folder / "parts" / figure.name

    def add(self, figure: Figure, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the results of a task; the file is there whole or not at all."""
        folder = self.parts(figure)
        folder.mkdir(parents=True, exist_ok=True)
        date = datetime.now(UTC).date().isoformat()
        partial = folder / f".{task}.{os.getpid()}"  # names with a dot are not read
        pd.DataFrame(rows).assign(**circumstances(), date=date).to_parquet(partial, index=False)
        partial.replace(folder / f"{task}.parquet")

    def read(self, figure: Figure) -> pd.DataFrame:
        """All results of the present declaration, one row a value."""
        folder = self.parts(figure)
        if not any(folder.glob("*.parquet")):
            return pd.DataFrame({"unit": []})
        found = pq.read_table(folder).to_pandas()
        return found[found["unit"].isin({unit.key for unit in units(figure, quick=False)})]


# Figures cut into tasks: some trials of one point of one panel, for those methods that have no results yet.

EXPERIMENTS = "benchmarks.papers.reproduce.experiments"


@cache
def source(experiment: str) -> str:
    """Fingerprint of the code of an experiment and of its tables: what is measured is part of the declaration.

    Of the statements, so that neither layout nor words change it.
    """
    folder = Path(__file__).parent / "experiments"
    trees = [ast.parse((folder / f"{name}.py").read_text(encoding="utf-8")) for name in (experiment, "tables")]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [part for part in body if not is_text(part)]  # type: ignore[attr-defined]
    return digest([ast.dump(tree) for tree in trees])


def is_text(statement: ast.stmt) -> bool:
    """A docstring, or the words under a constant."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


@dataclass(frozen=True)
class Unit:
    """One method in one block of trials at one point; ``key`` changes with anything that may change its results."""

    figure: Figure
    panel: Panel
    x: float
    start: int
    stop: int
    method: Method

    @property
    def key(self) -> str:
        return digest(
            self.figure.experiment,
            source(self.figure.experiment),
            dict(self.panel.settings),
            float(self.x),
            [self.start, self.stop],
            self.method.label,
            dict(self.method.settings),
        )


def units(figure: Figure, *, quick: bool) -> Iterator[Unit]:
    """All that a run of a figure needs; without its claims, which do not travel to other processes."""
    plain = replace(figure, claims=())
    for start, stop in figure.blocks()[: 1 if quick else None]:
        for panel in figure.panels:
            for x in panel.quick if quick else panel.points:
                for method in figure.methods:
                    most = figure.trials_of(method, panel, x)
                    if start < most:
                        yield Unit(plain, panel, x, start, min(stop, most), method)


Task = tuple[Unit, ...]
"""Units that share panel, point and trials, and so their data."""


def tasks(figures: Sequence[Figure], done: Collection[str], *, quick: bool) -> list[Task]:
    """What is missing: the points and trials of a quick run of all figures first, then ever more trials of all of them."""
    early = {unit.key for figure in figures for unit in units(figure, quick=True)}
    shared: dict[tuple[Any, ...], list[Unit]] = {}
    known = set(done)
    for place, figure in enumerate(figures):
        for unit in units(figure, quick=quick):
            key = unit.key
            if key not in known:
                known.add(key)
                which = (key not in early, unit.start, place, figure.panels.index(unit.panel), unit.x)
                shared.setdefault(which, []).append(unit)
    return [tuple(shared[which]) for which in sorted(shared)]


def carried_out(task: Task) -> list[dict[str, Any]]:
    """One row a value."""
    first, figure = task[0], task[0].figure
    experiment = importlib.import_module(f"{EXPERIMENTS}.{figure.experiment}")
    by_label = {unit.method.label: unit for unit in task}
    rows = []
    for trial in range(first.start, max(unit.stop for unit in task)):
        methods = [unit.method for unit in task if trial < unit.stop]
        point = Point(first.panel.settings, first.x, trial)
        for label, metric, value in experiment.measure(point, methods):
            about = {"unit": by_label[label].key, "panel": first.panel.title, "method": label, "x": float(first.x)}
            rows.append(about | {"trial": trial, "seed": point.seed(label), "metric": metric, "value": float(value)})
    if missing := set(by_label) - {row["method"] for row in rows}:
        raise ValueError(f"{figure.name}, {first.panel.title}, {first.x:g}: nothing measured of {sorted(missing)}")
    return rows


# A run of what is missing.

BETWEEN_LINES = 10.0
"""Seconds between two lines of progress."""


def worked(task: Task, store: Store) -> tuple[str, str]:
    """Keep the results of a task; return its figure, and why its table cannot be had."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows are clipped and budgets small on purpose
        try:
            rows = carried_out(task)
        except OSError as error:
            return task[0].figure.name, str(error)
    store.add(task[0].figure, digest([unit.key for unit in task]), rows)
    return task[0].figure.name, ""


def run(figures: Sequence[Figure], store: Store, *, quick: bool, workers: int = 2) -> int:
    """Run what is missing, but figures whose tables cannot be had; return the number of tasks that were run."""
    done = {key for figure in figures for key in store.read(figure)["unit"]}
    pending = tasks(figures, done, quick=quick)
    finished, left_out = 0, set[str]()
    start = said = time.monotonic()
    # No more than two tasks a worker wait at a time, so that what is left out is not tried again and a run can be stopped.
    jobs = (joblib.delayed(worked)(task, store) for task in pending if task[0].figure.name not in left_out)
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        for name, reason in joblib.Parallel(workers, return_as="generator_unordered")(jobs):
            finished += not reason
            if reason and name not in left_out:
                left_out.add(name)
                print(f"{name} is left out: {reason}", file=sys.stderr, flush=True)
            if (now := time.monotonic()) - said > BETWEEN_LINES:
                said, gone = now, timedelta(seconds=round(now - start))
                print(f"{finished}/{len(pending)} tasks, {gone} gone; {name}", file=sys.stderr, flush=True)
    return finished


def progress(figure: Figure, store: Store) -> str:
    """How many of its units have results."""
    wanted = {unit.key for unit in units(figure, quick=False)}
    return f"{figure.name:<26} {len(wanted & set(store.read(figure)['unit'])):>5} of {len(wanted):>5} units"
