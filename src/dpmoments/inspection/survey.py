"""What stands in a table, cell by cell and rule by rule, against what its schema says: private counts for the curator's eyes.

Nothing here goes into a release. The comparisons are those of :mod:`dpmoments.rows.encode`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpmoments.cells.objects import NO_LEVEL
from dpmoments.cells.reading import MISSING, UNKNOWN
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.text_format import TextFormat
from dpmoments.inspection.unreadable import (
    CellValue,
    UnreadableColumn,
    read_level_cells,
    read_number_cells,
)
from dpmoments.inspection.unreadable_units import read_unit_cells
from dpmoments.inspection.value_sample import ValueSample
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.summary import Summary
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Date, Numeric
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.row_norm import may_be_shortened
from dpmoments.schema.schema import Schema

__all__ = ["Survey", "SurveyCounts", "SurveyPart", "candidate_units"]

ROUNDING = 1e-9
"""Rows that are longer than the ball by less than this share are not told of: rows of length 1 are, by rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class SurveyPart:
    """The cells of a piece of a table, before any rule, by column."""

    n_rows: int
    cells: Mapping[str, Any]

    @classmethod
    def of(cls, source: LocalSource[Any], part: Any) -> SurveyPart:
        """A piece of a source; a column that cannot be taken out of it does not stand in the way of the others."""
        cells: dict[str, Any] = {}
        for name in source.names:
            try:
                cells[name] = source.written_cells(part, name)
            except TypeError:
                cells[name] = UnreadableColumn("neither plain numbers nor text", len(part))
        return cls(len(part), cells)


@dataclass(eq=False, repr=False)
class SurveyCounts:
    """Sums over rows, exact and private.

    Attributes
    ----------
    counts : Counter
        Cells or rows, by ``("rows", what)``, ``("column", name, what)``, ``("level", name, place)``, ``("type", name, type)``,
        ``("rule", name, rule, what)``, ``("derived", name)``, ``("unit", what)`` or ``("unit type", type)``.
    values : dict
        (name, what) → values found: ``"unknown"`` levels, and what ``"unreadable"`` cells hold.
    """

    counts: Counter[tuple[str | int, ...]] = field(default_factory=Counter)
    values: dict[tuple[str, str], ValueSample] = field(default_factory=dict)

    def merged(self, other: SurveyCounts) -> SurveyCounts:
        """The counts of the rows of both."""
        keys = self.values.keys() | other.values.keys()
        nothing = ValueSample()
        values = {key: self.values.get(key, nothing).merged(other.values.get(key, nothing)) for key in keys}
        return SurveyCounts(self.counts + other.counts, values)


@dataclass(frozen=True)
class Survey(Summary[SurveyCounts, SurveyCounts]):
    """A look at every cell; unlike other summaries it is given :class:`SurveyPart` instead of encoded rows.

    Attributes
    ----------
    schema : Schema
    mean : bool
        As rows are to be encoded.
    written : TextFormat or None
        How cells are written, where they are the bytes of text files.
    privacy_unit : PrivacyUnit or None
        Where rows belong to units of several.
    """

    schema: Schema
    mean: bool = True
    written: TextFormat | None = None
    privacy_unit: PrivacyUnit | None = None

    def start(self) -> SurveyCounts:
        return SurveyCounts()

    def add(self, running: SurveyCounts, block: Any) -> None:
        _Look(self, running, block).take()

    def finish(self, running: SurveyCounts) -> SurveyCounts:
        return running

    def merge(self, first: SurveyCounts, second: SurveyCounts) -> SurveyCounts:
        return first.merged(second)

    @cached_property
    def lenient_schema(self) -> Schema | None:
        """The schema without rules that stop, where some row may be longer than the row norm; else None."""
        if not may_be_shortened(self.schema.columns, self.schema.row_norm):
            return None
        return Schema(*map(_lenient, self.schema.columns), row_norm=self.schema.row_norm)


def candidate_units(survey: Survey, part: SurveyPart) -> Any:
    """The units of the rows that no rule drops and that have one: a pyarrow large_binary array without nulls."""
    look = _Look(survey, SurveyCounts(), part)
    look.take()
    return look.units_of_candidates()


class _Look:
    """One piece of a table, looked at."""

    def __init__(self, survey: Survey, running: SurveyCounts, part: SurveyPart) -> None:
        self._survey, self._running, self._part = survey, running, part
        nothing = np.zeros(part.n_rows, dtype=bool)
        self._stopping = nothing.copy()  # rows with a cell at which a release stops
        self._drops: list[tuple[str, str, BoolArray]] = []  # by column and rule, in the schema's order
        self._changed: dict[str, BoolArray] = {}  # cells that a rule moved or filled in
        self._read: dict[str, Any] = {}  # cells as they were read, for rows that may be shortened
        self._units: Any = None  # where rows belong to units: whose each is
        self._dropped = nothing.copy()

    def take(self) -> None:
        schema = self._survey.schema
        for column in schema.table_columns:
            if isinstance(column, Categorical):
                self._look_at_levels(column)
            else:
                self._look_at_numbers(column)
        for derived in schema.derived_columns:
            resting = np.logical_or.reduce([self._changed[name] for name in derived.stated.factors])
            self._count(resting, "derived", derived.name)
        if self._survey.privacy_unit is not None:
            self._look_at_units(self._survey.privacy_unit)
        self._look_at_rows()

    def units_of_candidates(self) -> Any:
        """The units of the rows that no rule drops, once it was taken: a pyarrow large_binary array without nulls."""
        return self._units.filter(pc.and_(pc.is_valid(self._units), pa.array(~self._dropped)))

    def _look_at_numbers(self, column: Numeric | Date | Boolean | Coordinate) -> None:
        read = read_number_cells(self._part.cells[column.name], column, written=self._survey.written)
        values = read.values
        infinite = np.isinf(values)
        empty = np.isnan(values) & ~read.unreadable
        lower, upper = _expected(column)
        below, above = (values < lower) & ~infinite, (values > upper) & ~infinite
        if isinstance(column, Boolean):
            self._count((values > lower) & (values < upper), "column", column.name, "between")
        for what, cells in (("empty", empty), ("infinite", infinite), ("below", below), ("above", above)):
            self._count(cells, "column", column.name, what)
        self._add(("column", column.name, "like numbers"), read.like_numbers)
        missing = empty | infinite
        self._values(column.name, "unreadable", read.found)
        self._note(column, read.unreadable, read.kind, missing)
        self._changed[column.name] = missing | below | above | read.unreadable
        if self._survey.lenient_schema is not None:
            self._read[column.name] = pa.array(values)

    def _look_at_levels(self, column: Categorical) -> None:
        read = read_level_cells(self._part.cells[column.name], column, written=self._survey.written)
        missing = (read.codes == MISSING) & ~read.unreadable
        unknown = read.codes == UNKNOWN
        self._count(missing, "column", column.name, "empty")
        self._count(unknown, "column", column.name, "unknown")
        for place, number in enumerate(np.bincount(read.codes[read.codes >= 0]).tolist()):
            self._add(("level", column.name, place), number)
        self._values(column.name, "unknown", read.unknown)
        self._note(column, read.unreadable, read.kind, missing)
        if column.other == "drop":
            self._drops.append((column.name, "other", unknown))
        self._changed[column.name] = missing | unknown | read.unreadable
        if self._survey.lenient_schema is not None:
            texts = pa.array([*map(str, column.levels), NO_LEVEL], pa.large_string())
            places = np.where(read.codes >= 0, read.codes, len(column.levels))
            self._read[column.name] = texts.take(pa.array(places, mask=read.codes == MISSING))

    def _look_at_units(self, unit: PrivacyUnit) -> None:
        read = read_unit_cells(self._part.cells[unit.column], unit.column, written=self._survey.written)
        missing = ~read.ids.is_valid().to_numpy(zero_copy_only=False).astype(bool) & ~read.unreadable
        self._count(missing, "unit", "missing")
        self._count(read.unreadable, "unit", "unreadable")
        if read.kind is not None:
            self._add(("unit type", read.kind), self._part.n_rows)
            self._stopping |= read.unreadable
        else:
            missing |= read.unreadable
        if unit.missing == "error":
            self._stopping |= missing
        else:
            self._drops.append((unit.column, "missing", missing))
        self._units = read.ids

    def _note(self, column: Column, unreadable: BoolArray, kind: str | None, missing: BoolArray) -> None:
        """What a column of any kind has: cells that cannot be read, and a rule for missing ones, which is that for these, too."""
        self._count(unreadable, "column", column.name, "unreadable")
        if kind is not None:  # refused by its type, whatever the rule
            self._add(("type", column.name, kind), self._part.n_rows)
            self._stopping |= unreadable
        else:
            missing = missing | unreadable
        if column.missing == "error":
            self._stopping |= missing
        elif column.missing == "drop":
            self._drops.append((column.name, "missing", missing))

    def _look_at_rows(self) -> None:
        n_rows = self._part.n_rows
        reasons = np.zeros(n_rows, dtype=np.int64)
        for _, _, rows in self._drops:
            reasons += rows
        before = np.zeros(n_rows, dtype=bool)
        for name, rule, rows in self._drops:
            self._count(rows, "rule", name, rule, "rows")
            self._count(rows & ~before, "rule", name, rule, "first")
            self._count(rows & (reasons == 1), "rule", name, rule, "alone")
            before |= rows
        self._dropped = before
        whole = ~before & ~self._stopping
        self._add(("rows", "read"), n_rows)
        self._count(~before, "rows", "kept")
        self._count(self._stopping, "rows", "stopping")
        self._count(whole, "rows", "whole")
        lenient = self._survey.lenient_schema
        if lenient is not None:
            self._count(
                whole & _shortened(encode_columns(self._read, lenient, mean=self._survey.mean)), "rows", "shortened"
            )

    def _values(self, name: str, what: str, found: Mapping[CellValue, int]) -> None:
        if found:
            self._running.values.setdefault((name, what), ValueSample()).add(found)

    def _count(self, found: BoolArray, *key: str | int) -> None:
        self._add(key, int(np.count_nonzero(found)))

    def _add(self, key: tuple[str | int, ...], number: int) -> None:
        if number:
            self._running.counts[key] += number


def _lenient(column: SchemaColumn) -> SchemaColumn:
    """The same column, in which a missing cell stops nothing; derived features take their columns anew."""
    if isinstance(column, DerivedColumn) or column.missing != "error":
        return column
    return replace(column, missing="zero") if isinstance(column, Categorical) else replace(column, missing="center")


def _expected(column: Numeric | Date | Boolean | Coordinate) -> tuple[float, float]:
    """What cells are compared with: bounds, or how far from its centre a rough column's mean may be."""
    if isinstance(column, Coordinate):
        return -np.inf, np.inf
    if isinstance(column, Numeric) and column.rough is not None:
        _, _, center, radius = column.rough
        return center - radius, center + radius
    return column.bounds


def _shortened(block: FloatArray) -> BoolArray:
    """Rows of an encoded block that are longer than the ball, by more than rounding, shape (n,)."""
    squares = np.zeros(len(block))
    with np.errstate(over="ignore"):  # infinite squares are of long rows
        for feature in block.T:
            squares += feature * feature
    return np.asarray(squares > (1.0 + ROUNDING) ** 2)  # not of dropped rows, which are NaN
