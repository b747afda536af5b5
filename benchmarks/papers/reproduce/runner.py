"""Runs what is missing of the figures, over processes of one thread each; keeps results task by task; says how long it takes."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow.parquet as pq

from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.store import Store
from benchmarks.papers.reproduce.tasks import Task, Unit, carried_out, tasks, units

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
                    cost.add(figure.name, row["panel"], row["method"], row["x"], row["seconds_sum"])
        return cost

    def add(self, figure: str, panel: str, method: str, x: float, seconds: float) -> None:
        self.measured.setdefault((figure, panel, method), {}).setdefault(x, []).append(seconds)

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

    def of_tasks(self, pending: Sequence[Task]) -> float:
        return sum(self.seconds(unit) for task in pending for unit in task.units)


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


def run(
    figures: Sequence[Figure], store: Store, *, quick: bool, workers: int = 2, stop_after: float | None = None
) -> int:
    """Run what is missing, but figures whose tables cannot be had; collect each figure's results into its file, return
    the number of tasks that were run.

      Parameters
      ----------
      figures : sequence of Figure
      store : Store
      quick : bool
          Only the points and trials of a quick run.
      workers : int
          Processes; 1 for this one.
      stop_after : float, optional
          Seconds after which no new task is begun.
    """
    done = {key for figure in figures for key in store.done(figure.name)}
    pending = tasks(figures, done, quick=quick)
    progress = Progress(pending, Cost.of(store, figures), workers)
    limit = None if stop_after is None else time.monotonic() + stop_after
    if workers == 1:
        for task in pending:
            if limit is not None and time.monotonic() > limit:
                break
            if not progress.is_out(task):
                try:
                    progress.after(task, worked(task, store))
                except ConnectionError as error:
                    progress.leave_out(task, error)
    else:
        in_processes(pending, store, progress, workers, limit, quick)
    for figure in figures:
        collect(figure, store)
    progress.end()
    return progress.finished


def in_processes(
    pending: Sequence[Task], store: Store, progress: Progress, workers: int, limit: float | None, quick: bool
) -> None:
    """No more than two tasks a worker wait at a time, so that a run can be stopped."""
    left = iter(pending)
    # Forked processes would inherit the threads of this one's linear algebra.
    with single_threads(), ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        running: dict[Future[list[dict[str, object]]], Task] = {}

        def fill() -> None:
            while len(running) < 2 * workers and (limit is None or time.monotonic() < limit):
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
                        progress.after(task, future.result())
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
    def __init__(self, pending: Sequence[Task], cost: Cost, workers: int) -> None:
        self.cost, self.workers = cost, workers
        self.finished, self.all = 0, len(pending)
        self.left = {task.name: task for task in pending}
        self.out: set[str] = set()
        self.start = self.said = time.monotonic()
        print(f"{self.all} tasks to run, about {shown(self.expected())}", file=sys.stderr, flush=True)

    def expected(self) -> float:
        return self.cost.of_tasks(list(self.left.values())) / self.workers

    def is_out(self, task: Task) -> bool:
        """Whether its figure was left out."""
        return task.figure.name in self.out

    def leave_out(self, task: Task, error: ConnectionError) -> None:
        """A figure whose table cannot be had."""
        if not self.is_out(task):
            self.out.add(task.figure.name)
            print(f"{task.figure.name} is left out: {error}", file=sys.stderr, flush=True)
        self.left = {name: other for name, other in self.left.items() if not self.is_out(other)}

    def after(self, task: Task, rows: Sequence[Mapping[str, object]]) -> None:
        self.finished += 1
        self.left.pop(task.name, None)
        trials: dict[tuple[str, int], float] = {}
        for row in rows:
            key = str(row["method"]), int(row["trial"])  # type: ignore[call-overload]
            trials[key] = trials.get(key, 0.0) + float(row["seconds"])  # type: ignore[arg-type]
        first = task.units[0]
        for (method, _), seconds in trials.items():
            self.cost.add(first.figure.name, first.panel.title, method, first.x, seconds)
        if (now := time.monotonic()) - self.said > BETWEEN_LINES:
            self.said = now
            share = f"{self.finished}/{self.all}"
            print(
                f"{share} tasks, {shown(now - self.start)} gone, about {shown(self.expected())} left; {task.figure.name}",
                file=sys.stderr,
                flush=True,
            )

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
