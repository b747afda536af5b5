"""docs/evidence/practice.md: gains table by table, in groups, and what lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.comparison.contenders import BEFORE, NOW, Cell
from benchmarks.practice.comparison.errors import ERRORS
from benchmarks.practice.comparison.gains import Gain, cell_gains, geometric_mean
from benchmarks.practice.comparison.picture import draw
from benchmarks.practice.comparison.records import Record
from benchmarks.practice.tables import TABLES, Entry, Half

__all__ = ["Compared", "report", "write_page"]

PAGE = EVIDENCE / "practice.md"
IMAGES = EVIDENCE / "images"
HALVES: tuple[Half, ...] = ("design", "judge")
LEAST, LEAST_DOMINANT = 0.95, 0.9
"""Gains below which a cell is named."""
RELATIONS = {"add_remove": "add-remove", "replace_one": "replace-one"}

Found = Mapping[str, Sequence[Record]]


@dataclass(frozen=True, eq=False)
class Compared:
    """Two contenders on one table."""

    entry: Entry
    records: Sequence[Record]
    first: str
    second: str

    @cached_property
    def gains(self) -> dict[str, dict[Cell, Gain]]:
        """By kind of error and cell."""
        return {kind: cell_gains(self.records, self.first, self.second, kind) for kind in ERRORS}

    def gain(self, kind: str, keep: Callable[[Cell], bool]) -> Gain:
        """Geometric mean over cells."""
        return geometric_mean(gain for cell, gain in self.gains[kind].items() if keep(cell))

    @property
    def worst(self) -> tuple[Cell, Gain] | None:
        """The cell of least gain in covariance."""
        return min(self.gains["covariance"].items(), key=lambda item: item[1].factor, default=None)

    def record(self, contender: str, cell: Cell) -> Record | None:
        """Of one contender in one cell."""
        return next((one for one in self.records if (one.contender, one.cell) == (contender, cell)), None)


def pure(cell: Cell) -> bool:
    """Whether no δ is spent."""
    return cell.delta == 0.0


def approximate(cell: Cell) -> bool:
    """Whether δ is."""
    return cell.delta > 0.0


def under(which: Callable[[Cell], bool], relation: str) -> Callable[[Cell], bool]:
    """Both."""
    return lambda cell: which(cell) and cell.neighbors == relation


def in_words(cell: Cell) -> str:
    """A budget and a relation."""
    budget = f"ε = {cell.epsilon:g}" + (f", δ = {cell.delta:g}" if cell.delta else "")
    return f"{budget}, {RELATIONS[cell.neighbors]}"


def compared(found: Found, first: str, second: str) -> list[Compared]:
    """In the order of the collection."""
    return [Compared(entry, found[entry.name], first, second) for entry in TABLES if entry.name in found]


def report(found: Found, first: str, second: str) -> list[str]:
    """All tables of the page, of the tables at hand."""
    tables = compared(found, first, second)
    return [
        *groups(tables),
        "",
        *covariance_gains(tables),
        "",
        *other_gains(tables),
        "",
        *sizes(tables),
        "",
        *losses(tables),
    ]


def groups(tables: Sequence[Compared]) -> list[str]:
    """Geometric means over tables."""
    lines = [
        "| tables | how many | covariance, pure ε | covariance, (ε, δ) | correlations, (ε, δ) | means, (ε, δ) | "
        "regression, (ε, δ) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    kinds: dict[str, Callable[[Entry], bool]] = {
        "real": lambda entry: entry.real,
        "synthetic": lambda entry: not entry.real and not entry.dominant,
        "with dominant rows": lambda entry: entry.dominant,
    }
    for half in HALVES:
        for label, keep in kinds.items():
            inside = [one for one in tables if one.entry.half == half and keep(one.entry)]
            if not inside:
                continue
            columns = [("covariance", pure), *((kind, approximate) for kind in ERRORS)]
            gains = [geometric_mean(one.gain(kind, which) for one in inside) for kind, which in columns]
            lines.append(f"| {half}, {label} | {len(inside)} | " + " | ".join(map(str, gains)) + " |")
    return lines


def covariance_gains(tables: Sequence[Compared]) -> list[str]:
    """Table by table, geometric means over ε."""
    lines = [
        "| table | n × d | pure, add-remove | pure, replace-one | (ε, δ), add-remove | (ε, δ), replace-one | worst cell |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for one in tables:
        if not one.records:
            continue
        size = one.records[0]
        cells = [
            str(one.gain("covariance", under(which, relation)))
            for which in (pure, approximate)
            for relation in RELATIONS
        ]
        worst = "–" if one.worst is None else f"{one.worst[1]} at {in_words(one.worst[0])}"
        lines.append(
            f"| {one.entry.name} | {size.n_rows:,} × {size.n_features} | " + " | ".join(cells) + f" | {worst} |"
        )
    return lines


def other_gains(tables: Sequence[Compared]) -> list[str]:
    """Correlations, means and the regression, over both relations and all ε."""
    others = [(kind, which) for kind in ERRORS[1:] for which in (pure, approximate)]
    head = [f"{kind}, {'pure' if which is pure else '(ε, δ)'}" for kind, which in others]
    lines = ["| table | " + " | ".join(head) + " |", "| --- |" + " ---: |" * len(head)]
    for one in tables:
        gains = [str(one.gain(kind, which)) for kind, which in others]
        lines.append(f"| {one.entry.name} | " + " | ".join(gains) + " |")
    return lines


def sizes(tables: Sequence[Compared]) -> list[str]:
    """Mean errors at ε = 1, δ = 1e-9, add-remove: before → now."""
    lines = [
        f"| table | mechanism now | {' | '.join(ERRORS)} | seconds now |",
        "| --- | --- |" + " ---: |" * (len(ERRORS) + 1),
    ]
    for one in tables:
        cell = Cell(1.0, 1e-9, "add_remove")
        first, second = one.record(one.first, cell), one.record(one.second, cell)
        if first is None or second is None:
            continue
        pairs = [(float(first.errors(kind).mean()), float(second.errors(kind).mean())) for kind in ERRORS]
        cells = ["–" if np.isnan(was) else f"{was:.3g} → {now:.3g}" for was, now in pairs]
        lines.append(f"| {one.entry.name} | {second.mechanism} | " + " | ".join(cells) + f" | {second.seconds:.3f} |")
    return lines


def losses(tables: Iterable[Compared]) -> list[str]:
    """Cells that lost more than their standard error explains, by name, the worst first."""
    plain: list[tuple[float, str]] = []
    dominant: list[tuple[float, str]] = []
    measured = 0
    for one in tables:
        for cell, gain in one.gains["covariance"].items():
            measured += 1
            if not gain.is_below(LEAST_DOMINANT if one.entry.dominant else LEAST):
                continue
            record = one.record(one.second, cell)
            warned = "" if record is None else f"{record.warned:.0%}"
            line = f"| {one.entry.name}, {in_words(cell)} | {gain} | {warned} |"
            (dominant if one.entry.dominant else plain).append((gain.factor, line))
    lines = [
        f"Of {measured:,} cells, {len(plain)} without dominant rows lie below {LEAST:g} by more than their standard error"
        + (":" if plain else ".")
    ]
    lines += shown(plain)
    lines += ["", f"With dominant rows, {len(dominant)} lie below {LEAST_DOMINANT:g}" + (":" if dominant else ".")]
    return lines + shown(dominant)


def shown(found: Iterable[tuple[float, str]]) -> list[str]:
    """Return a table of them, the worst first."""
    lines = [line for _, line in sorted(found)]
    return ["", "| cell | gain | releases that warned |", "| --- | ---: | ---: |", *lines] if lines else []


def write_page(found: Found, seeds: int, half: Half | None) -> None:
    """The parts of the halves that were run, and the picture."""
    for one in HALVES if half is None else (half,):
        entries = [entry for entry in TABLES if entry.half == one]
        inside = {entry.name: found[entry.name] for entry in entries if entry.name in found}
        absent = ", ".join(entry.name for entry in entries if entry.name not in found)
        source = next(
            (record.source for records in inside.values() for record in records if record.contender == NOW), "–"
        )
        picture = IMAGES / f"practice-{one}.png"
        draw(compared(inside, BEFORE, NOW), picture)
        lines = [
            f"dpmoments {dpm.__version__} (source {source}), {len(inside)} tables, {seeds} seeds."
            + (f" Not at hand, and left out: {absent}." if absent else ""),
            "",
            f"![Gains on the {one} half: pure ε on the left, (ε, δ) on the right](images/{picture.name})",
            "",
            *report(inside, BEFORE, NOW),
        ]
        write_part(PAGE, one, lines)
        print(f"wrote the part {one} of {PAGE}, and {picture}")
