"""Figures cut into tasks: some trials of one point of one panel, for those methods that have no results yet."""

from __future__ import annotations

import ast
import importlib
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.papers.reproduce.declaration import Figure, Method, Panel, Point, digest

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
