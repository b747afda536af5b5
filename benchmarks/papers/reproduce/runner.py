"""Results on disk, figures cut into tasks, and a run of what is missing over processes of one thread each."""

from __future__ import annotations

import ast
import importlib
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy

import dpmoments as dpm
from benchmarks.papers.reproduce.declaration import Figure, Method, Panel, Point, digest
from benchmarks.speed.timing import processor_name

# Results on disk: one Parquet file a finished task, so that a run that was broken off goes on; one a figure in the end.

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "reproduction"
METADATA = b"circumstances"
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("unit", "panel", "method")),
        ("x", pa.float64()),
        ("trial", pa.int64()),
        ("seed", pa.int64()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("seconds", pa.float64()),
    ]
)
ORDER = [(name, "ascending") for name in ("panel", "method", "metric", "x", "trial")]


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
        "scipy": scipy.__version__,
        "dpmoments": dpm.__version__,
        "commit": commit,
    }


class Store:
    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def parts(self, figure: str) -> list[Path]:
        return sorted((self.folder / "parts" / figure).glob("*.parquet"))

    def add(self, figure: str, task: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep the results of a task; the file is there whole or not at all."""
        folder = self.folder / "parts" / figure
        folder.mkdir(parents=True, exist_ok=True)
        known = dict(circumstances()) | {"date": datetime.now(UTC).isoformat(timespec="seconds")}
        table = pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)
        table = table.replace_schema_metadata({METADATA: json.dumps(known).encode()})
        partial = folder / f"{task}.{os.getpid()}.partial"
        pq.write_table(table, partial)
        partial.replace(folder / f"{task}.parquet")

    def part(self, path: Path) -> pa.Table:
        table = pq.read_table(path)
        known = json.loads(table.schema.metadata[METADATA])
        for name, value in known.items():
            table = table.append_column(name, pa.array([value] * len(table)).dictionary_encode())
        return table.replace_schema_metadata(None)

    def done(self, figure: str) -> set[str]:
        return {key for path in self.parts(figure) for key in pq.read_table(path, columns=["unit"])["unit"].to_pylist()}

    def figure_file(self, figure: str) -> Path:
        return self.folder / f"{figure}.parquet"

    def collect(self, figure: str, wanted: Collection[str]) -> Path | None:
        """Put the results of these units into one file; None where there are none."""
        asked = pa.array(sorted(wanted), pa.string())
        found, seen = [], set[str]()
        for path in self.parts(figure):
            table = self.part(path)
            keys = set(table["unit"].to_pylist()) - seen
            table = table.filter(pa.compute.is_in(table["unit"], value_set=asked))
            table = table.filter(pa.compute.is_in(table["unit"], value_set=pa.array(sorted(keys), pa.string())))
            seen |= keys
            if len(table):
                found.append(table)
        if not found:
            return None
        whole = pa.concat_tables(found).unify_dictionaries().sort_by(ORDER)
        whole = whole.add_column(0, "figure", pa.array([figure] * len(whole)).dictionary_encode())
        path = self.figure_file(figure)
        partial = path.with_suffix(f".{os.getpid()}.partial")
        pq.write_table(whole, partial)
        partial.replace(path)
        return path


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
    """All that a run of a figure needs."""
    for start, stop in figure.blocks()[: 1 if quick else None]:
        for panel in figure.panels:
            for x in panel.quick if quick else panel.points:
                for method in figure.methods:
                    most = figure.trials_of(method, panel, x)
                    if start < most:
                        yield Unit(figure, panel, x, start, min(stop, most), method)


@dataclass(frozen=True)
class Task:
    """Units that share panel, point and trials, and so their data."""

    units: tuple[Unit, ...]

    @property
    def figure(self) -> Figure:
        return self.units[0].figure

    @property
    def name(self) -> str:
        return digest([unit.key for unit in self.units])


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
    return [Task(tuple(shared[which])) for which in sorted(shared)]


def carried_out(task: Task) -> list[dict[str, Any]]:
    """One row a value. Seconds are of the processor, since the value before; what methods share is counted with the first."""
    first = task.units[0]
    experiment = importlib.import_module(f"{EXPERIMENTS}.{task.figure.experiment}")
    by_label = {unit.method.label: unit for unit in task.units}
    rows = []
    for trial in range(first.start, max(unit.stop for unit in task.units)):
        methods = [unit.method for unit in task.units if trial < unit.stop]
        point = Point(first.panel.settings, first.x, trial)
        since = time.process_time()
        for label, metric, value in experiment.measure(point, methods):
            now = time.process_time()
            rows.append(
                {
                    "unit": by_label[label].key,
                    "panel": first.panel.title,
                    "method": label,
                    "x": float(first.x),
                    "trial": trial,
                    "seed": point.seed(label),
                    "metric": metric,
                    "value": float(value),
                    "seconds": now - since,
                }
            )
            since = now
    found = {row["method"] for row in rows}
    if missing := set(by_label) - found:
        raise ValueError(f"{task.figure.name}, {first.panel.title}, {first.x:g}: nothing measured of {sorted(missing)}")
    return rows


# Runs what is missing of the figures, over processes of one thread each; keeps results task by task; says how long it takes.

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
BETWEEN_LINES = 10.0
"""Seconds between two lines of progress."""
GUESS = 0.1
"""Seconds a trial of a method of which nothing is known."""


@dataclass
class Cost:
    """Seconds of a trial by figure, panel and method, at the nearest point that was measured."""

    measured: dict[tuple[str, str, str], dict[float, list[float]]] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, figures: Sequence[Figure]) -> Cost:
        cost = cls()
        columns = ["panel", "method", "x", "trial", "seconds"]
        for figure in figures:
            for path in store.parts(figure.name):
                found = pq.read_table(path, columns=columns).group_by(columns[:4]).aggregate([("seconds", "sum")])
                for row in found.to_pylist():
                    key = figure.name, row["panel"], row["method"]
                    cost.measured.setdefault(key, {}).setdefault(row["x"], []).append(row["seconds_sum"])
        return cost

    def seconds(self, unit: Unit) -> float:
        """What a unit is expected to take."""
        known = self.measured.get((unit.figure.name, unit.panel.title, unit.method.label))
        each = GUESS
        if known:
            near = min(known, key=lambda x: abs(x - unit.x))
            # In proportion beyond the numbers of rows and features that were measured: a quick run leaves out the largest.
            grows = (unit.panel.axis or unit.figure.axis) in ("n", "d") and near == max(known)
            each = float(np.mean(known[near])) * (max(1.0, unit.x / near) if grows else 1.0)
        return each * (unit.stop - unit.start)


@contextmanager
def single_threads() -> Iterator[None]:
    """Processes started inside have linear algebra of one thread, whatever the shell says."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def worked(task: Task, store: Store) -> list[dict[str, object]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows are clipped and budgets small on purpose
        rows = carried_out(task)
    store.add(task.figure.name, task.name, rows)
    return rows


def named(figure: str, task: str, keys: Sequence[str], quick: bool, store: Store) -> list[dict[str, object]]:
    """The same in a process of its own, which finds the task by its keys: declarations do not travel."""
    from benchmarks.papers.reproduce import figures

    chosen = figures.named(figure)
    asked = set(keys)
    found = Task(tuple(unit for unit in units(chosen, quick=quick) if unit.key in asked))
    if found.name != task:
        raise ValueError(f"{figure}: its declaration changed while it was run; start again")
    return worked(found, store)


def run(figures: Sequence[Figure], store: Store, *, quick: bool, workers: int = 2) -> int:
    """Run what is missing, but figures whose tables cannot be had; collect each figure's results into its file.

    Return the number of tasks that were run. One worker is this process.
    """
    done = {key for figure in figures for key in store.done(figure.name)}
    pending = tasks(figures, done, quick=quick)
    progress = Progress(len(pending))
    if workers == 1:
        for task in pending:
            if not progress.is_out(task):
                try:
                    worked(task, store)
                    progress.after(task)
                except ConnectionError as error:
                    progress.leave_out(task, error)
    else:
        in_processes(pending, store, progress, workers, quick)
    for figure in figures:
        collect(figure, store)
    progress.end()
    return progress.finished


def in_processes(pending: Sequence[Task], store: Store, progress: Progress, workers: int, quick: bool) -> None:
    """No more than two tasks a worker wait at a time, so that a run can be stopped."""
    left = iter(pending)
    # Forked processes would inherit the threads of this one's linear algebra.
    with single_threads(), ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[list[dict[str, object]]], Task] = {}

        def fill() -> None:
            while len(running) < 2 * workers:
                task = next((task for task in left if not progress.is_out(task)), None)
                if task is None:
                    return
                keys = [unit.key for unit in task.units]
                running[pool.submit(named, task.figure.name, task.name, keys, quick, store)] = task

        fill()
        try:
            while running:
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    try:
                        future.result()
                        progress.after(task)
                    except ConnectionError as error:
                        progress.leave_out(task, error)
                fill()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def collect(figure: Figure, store: Store) -> None:
    """All results of the present declaration into one file."""
    store.collect(figure.name, {unit.key for unit in units(figure, quick=False)})


class Progress:
    def __init__(self, number: int) -> None:
        self.finished, self.all, self.out = 0, number, set[str]()
        self.start = self.said = time.monotonic()
        print(f"{number} tasks to run", file=sys.stderr, flush=True)

    def is_out(self, task: Task) -> bool:
        """Whether its figure was left out."""
        return task.figure.name in self.out

    def leave_out(self, task: Task, error: ConnectionError) -> None:
        """A figure whose table cannot be had."""
        if not self.is_out(task):
            self.out.add(task.figure.name)
            print(f"{task.figure.name} is left out: {error}", file=sys.stderr, flush=True)

    def after(self, task: Task) -> None:
        self.finished += 1
        if (now := time.monotonic()) - self.said > BETWEEN_LINES:
            self.said = now
            share = f"{self.finished}/{self.all} tasks, {shown(now - self.start)} gone"
            print(f"{share}; {task.figure.name}", file=sys.stderr, flush=True)

    def end(self) -> None:
        print(f"{self.finished} tasks in {shown(time.monotonic() - self.start)}", file=sys.stderr, flush=True)


def shown(seconds: float) -> str:
    """Hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def budget(figures: Sequence[Figure], store: Store) -> list[str]:
    """One line a figure: units that have results, and the seconds that all of them take on one core."""
    cost, lines, total, spent = Cost.of(store, figures), [], 0.0, 0.0
    for figure in figures:
        wanted = list(units(figure, quick=False))
        done: Collection[str] = store.done(figure.name)
        whole = sum(cost.seconds(unit) for unit in wanted)
        quick = sum(cost.seconds(unit) for unit in units(figure, quick=True))
        have = sum(unit.key in done for unit in wanted)
        total, spent = total + whole, spent + quick
        lines.append(
            f"{figure.name:<26} {have:>5} of {len(wanted):>5} units   quick {quick:>6.0f} s   full {whole:>7.0f} s"
        )
    return [
        *lines,
        f"{'all, one core':<46} quick {spent:>6.0f} s   full {total:>7.0f} s = {total / 7200:.1f} h on 2 cores",
    ]
