"""Pass over a table that reads and counts every value, and that nothing stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from dpmoments.base.arrays import BoolArray, FloatArray
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_format import TextFormat
from dpmoments.planning.facts import ColumnFacts, TableFacts, UnitFacts
from dpmoments.planning.unreadable import (
    CellValue,
    ReadCells,
    UnreadableColumn,
    read_level_cells,
    read_number_cells,
    read_unit_cells,
    written_value,
)
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.sources.engine import EngineSource
from dpmoments.rows.sources.source import LocalSource
from dpmoments.rows.summary import Summary
from dpmoments.rows.threads import summarize_in_threads
from dpmoments.rows.units import UnitBlock, UnitCounts, counts_of_units
from dpmoments.schema.cells.objects import NO_LEVEL
from dpmoments.schema.cells.reading import MISSING, UNKNOWN
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import may_be_shortened
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

STEPS = 2**30
"""Steps between the bounds: values are summed as integers, in any order of rows."""
_ROUNDING = 1e-9
"""Rows longer than the ball by less than this fraction are not reported.

Rounding does that to rows of norm 1.
"""


@dataclass(frozen=True, eq=False, repr=False)
class SurveyPart:
    """Values of a part of a table, before any rule, by column."""

    n_rows: int
    cells: Mapping[str, Any]
    written: TextFormat | None = None

    @classmethod
    def of(cls, source: LocalSource[Any], part: Any) -> SurveyPart:
        """Return the columns of a part; a column that cannot be read does not affect the others."""
        cells: dict[str, Any] = {}
        for name, own in source.reading.names_read.items():
            try:
                cells[own] = source.written_cells(part, name)
            except TypeError:
                cells[own] = UnreadableColumn("neither plain numbers nor text", len(part))
        return cls(len(part), cells, source.text_of_cells)


@dataclass(eq=False, repr=False)
class _Rows:
    """Rows of a part that stop a release or are dropped."""

    stopping: BoolArray  # (n,), rows with a value at which a release stops
    drops: dict[tuple[str, str], BoolArray]  # rows that a rule drops, by column and rule, in the schema's order

    def apply_rule(
        self, facts: ColumnFacts | UnitFacts, name: str, rule: str, read: ReadCells, missing: BoolArray
    ) -> None:
        """Count unreadable values, and apply a ``missing`` rule to them as to missing ones."""
        facts.unreadable += int(np.count_nonzero(read.unreadable))
        if read.kind is None:
            missing = missing | read.unreadable
        else:  # refused by its type, whatever the rule
            self.stopping |= read.unreadable
            if len(missing):
                facts.types[read.kind] += len(missing)
        if rule == "error":
            self.stopping |= missing
        elif rule == "drop":
            self.drops[name, "missing"] = missing


@dataclass(frozen=True)
class Survey(Summary[TableFacts, TableFacts]):
    """Summary that checks every value: it gets :class:`SurveyPart` in place of encoded rows."""

    schema: Schema
    mean: bool = True
    privacy_unit: PrivacyUnit | None = None

    def start(self) -> TableFacts:
        return TableFacts.of(self.schema, self.privacy_unit)

    def add(self, running: TableFacts, block: Any) -> None:
        self.count(running, block)

    def finish(self, running: TableFacts) -> TableFacts:
        return running

    def merge(self, first: TableFacts, second: TableFacts) -> TableFacts:
        return first + second

    @cached_property
    def lenient_schema(self) -> Schema | None:
        """Schema without rules that stop, if a row may exceed the row-norm bound; else None."""
        if not may_be_shortened(self.schema.columns, self.schema.row_norm):
            return None
        plain = self.schema.without_cleaning
        return plain.with_columns([_lenient(column) for column in plain.columns])

    def count(self, facts: TableFacts, part: SurveyPart) -> Any:
        """Add a part to the facts; return the units of its kept rows, if rows have units."""
        rows = _Rows(np.zeros(part.n_rows, dtype=bool), {})
        changed: dict[str, BoolArray] = {}  # values that a rule moved or filled in
        held: dict[str, Any] = {}  # values as they were read
        filled: list[tuple[ColumnFacts, BoolArray, FloatArray]] = []  # missing values, and clipped ones

        for column in self.schema.table_columns:
            of_column, cells = facts.columns[column.name], part.cells[column.name]
            if isinstance(column, Categorical):
                read = read_level_cells(cells, column, written=part.written)
                missing, outside = (read.values == MISSING) & ~read.unreadable, read.values == UNKNOWN
                _count_levels(of_column, read, missing, outside)
                held[column.name] = read.values
            else:
                read = read_number_cells(cells, column, written=part.written)
                missing = ~np.isfinite(read.values) & ~read.unreadable
                lower, upper = _expected(column)
                outside = _count_numbers(of_column, read, missing, lower, upper)
                held[column.name] = pa.array(read.values)
                is_bounded = column.rough is None and not isinstance(column, Coordinate)
                if is_bounded and column.missing in ("center", "fill") and read.kind is None:
                    filled.append((of_column, missing | read.unreadable, np.clip(read.values, lower, upper)))
            rows.apply_rule(of_column, column.name, column.missing, read, missing)
            if isinstance(column, Categorical) and column.other == "drop":
                rows.drops[column.name, "other"] = outside
            changed[column.name] = missing | outside | read.unreadable

        for derived in self.schema.derived_columns:
            of_changed = np.logical_or.reduce([changed[name] for name in derived.stated.factors])
            facts.derived[derived.name] += int(np.count_nonzero(of_changed))

        units = None
        if self.privacy_unit is not None and facts.unit is not None:
            column_of_units = self.privacy_unit.column
            read = read_unit_cells(part.cells[column_of_units], column_of_units, written=part.written)
            units = read.values
            missing = ~units.is_valid().to_numpy(zero_copy_only=False).astype(bool) & ~read.unreadable
            facts.unit.missing += int(np.count_nonzero(missing))
            rows.apply_rule(facts.unit, column_of_units, self.privacy_unit.missing, read, missing)

        dropped = self._count_rows(facts, rows, held)
        for of_column, missing, values in filled:
            _count_filled(of_column, missing & ~dropped, values[~missing & ~dropped])
        return None if units is None else units.filter(pc.and_(pc.is_valid(units), pa.array(~dropped)))

    def _count_rows(self, facts: TableFacts, rows: _Rows, held: Mapping[str, Any]) -> BoolArray:
        """Count rows by the rules that drop them, and return which are dropped."""
        n_rows = len(rows.stopping)
        reasons = sum(rows.drops.values(), start=np.zeros(n_rows, dtype=np.int64))
        dropped = np.zeros(n_rows, dtype=bool)
        for rule, of_rule in rows.drops.items():
            counts = facts.rules[rule]
            counts.rows += int(np.count_nonzero(of_rule))
            counts.first += int(np.count_nonzero(of_rule & ~dropped))
            counts.alone += int(np.count_nonzero(of_rule & (reasons == 1)))
            dropped |= of_rule
        whole = ~dropped & ~rows.stopping
        facts.rows += n_rows
        facts.kept += int(np.count_nonzero(~dropped))
        facts.stopping += int(np.count_nonzero(rows.stopping))
        facts.whole += int(np.count_nonzero(whole))

        lenient = self.lenient_schema
        if lenient is not None:
            columns = dict(held)
            for column in self.schema.table_columns:
                if isinstance(column, Categorical):  # its codes as levels again, null if missing
                    texts = pa.array([*map(str, column.levels), NO_LEVEL], pa.large_string())
                    codes = held[column.name]
                    indices = np.where(codes >= 0, codes, len(column.levels))
                    columns[column.name] = texts.take(pa.array(indices, mask=codes == MISSING))
            encoded: FloatArray = encode_columns(columns, lenient, mean=self.mean)
            squares = np.zeros(n_rows)
            with np.errstate(over="ignore"):  # infinite squares are of long rows
                for feature in encoded.T:
                    squares += feature * feature
            longer = squares > (1.0 + _ROUNDING) ** 2  # not of dropped rows, which are NaN
            facts.shortened += int(np.count_nonzero(whole & longer))
        return dropped


def _count_levels(facts: ColumnFacts, read: ReadCells, missing: BoolArray, unknown: BoolArray) -> None:
    facts.empty += int(np.count_nonzero(missing))
    facts.unknown += int(np.count_nonzero(unknown))
    facts.levels.update(dict(enumerate(np.bincount(read.values[read.values >= 0]).tolist())))
    facts.add_found("unknown", read.found)


def _count_numbers(facts: ColumnFacts, read: ReadCells, missing: BoolArray, lower: float, upper: float) -> BoolArray:
    """Count the values of a column of numbers, and return which are outside its bounds."""
    infinite = np.isinf(read.values)
    below, above = (read.values < lower) & ~infinite, (read.values > upper) & ~infinite
    facts.empty += int(np.count_nonzero(missing & ~infinite))
    facts.infinite += int(np.count_nonzero(infinite))
    facts.below += int(np.count_nonzero(below))
    facts.above += int(np.count_nonzero(above))
    facts.like_numbers += read.like_numbers
    facts.marks.update(read.marks)
    facts.add_found("unreadable", read.found)
    if isinstance(facts.column, Boolean):
        facts.between += int(np.count_nonzero((read.values > lower) & (read.values < upper)))
    if isinstance(facts.column, Numeric):
        facts.add_found("below", _counted_numbers(read.values[below]))
        facts.add_found("above", _counted_numbers(read.values[above]))
    outside: BoolArray = below | above
    return outside


def _count_filled(facts: ColumnFacts, filled: BoolArray, present: FloatArray) -> None:
    """Count missing values that a public value replaces, and add up the others."""
    assert not isinstance(facts.column, Coordinate)
    lower, upper = facts.column.bounds
    steps = np.rint((present / 2 - lower / 2) / (upper / 2 - lower / 2) * STEPS)
    facts.filled += int(np.count_nonzero(filled))
    facts.present += len(present)
    facts.steps += int(steps.astype(np.int64).sum())


def _counted_numbers(values: FloatArray) -> dict[CellValue, int]:
    numbers, times = np.unique(values, return_counts=True)
    return {written_value(number): count for number, count in zip(numbers.tolist(), times.tolist(), strict=True)}


def _lenient(column: SchemaColumn) -> SchemaColumn:
    """Return a column in which a missing value stops nothing."""
    # Derived features are rebuilt from such columns.
    if isinstance(column, DerivedColumn):
        return column
    if isinstance(column, Date):  # whose values are read already
        column = Numeric(
            column.name, *column.bounds, column.missing, fill=None if column.fill is None else column.replacement
        )
    if column.missing != "error":
        return column
    rule: Any = "zero" if isinstance(column, Categorical) else "center"
    return replace(column, missing=rule)


def _expected(column: Numeric | Date | Boolean | Coordinate) -> tuple[float, float]:
    """Return the expected range: the bounds, or the range of the mean with a scale range."""
    if column.rough is None:
        return column.bounds
    _, _, center, radius = column.rough
    return center - radius, center + radius


def survey_table(
    source: LocalSource[Any] | EngineSource,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> TableFacts:
    """Check a table in one pass, file by file; rows read before a failure are counted."""
    survey = Survey(source.reading.schema, source.reading.mean, source.reading.privacy_unit)
    if isinstance(source, EngineSource):
        facts: TableFacts = source.mapped(partial(survey_table, threads=1), survey.merge, survey.start(), on_block)
        return facts
    of_files = survey.start()

    def note_ragged_line() -> None:
        of_files.ragged += 1

    def block(pair: tuple[LocalSource[Any], Any]) -> Any:
        return SurveyPart.of(*pair)

    parts = _parts(source, note_ragged_line, of_files.failures, on_block)
    result = summarize_in_threads(survey, parts, block, threads)
    return survey.merge(result, of_files)


def survey_units(
    source: LocalSource[Any] | EngineSource,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> UnitCounts:
    """Count the units of kept rows that have one, in two or more passes.

    Whatever else the table holds.

    :func:`survey_table` reports files that cannot be read to their end.
    """
    unit = source.reading.privacy_unit
    assert unit is not None, "the table was opened for rows"
    return counts_of_units(_SurveyedUnits(source), unit.max_rows, threads=threads, on_block=on_block)


@dataclass(frozen=True, eq=False, repr=False)
class _SurveyedUnits:
    """Table of which no value stops a pass over its units."""

    source: LocalSource[Any] | EngineSource

    def summarize(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        if isinstance(self.source, EngineSource):
            nothing = summary.finish(summary.start())
            return self.source.mapped(partial(_units_of_partition, summary), summary.merge, nothing, on_block)
        survey = Survey(self.source.reading.schema, self.source.reading.mean, self.source.reading.privacy_unit)
        parts = _parts(self.source, lambda: None, [], on_block)

        def block(pair: tuple[LocalSource[Any], Any]) -> Any:
            ids = survey.count(survey.start(), SurveyPart.of(*pair))
            return UnitBlock(ids, np.zeros((len(ids), 0)))

        return summarize_in_threads(summary, parts, block, threads)


def _units_of_partition(summary: Summary[Any, Any], source: LocalSource[Any]) -> Any:
    return _SurveyedUnits(source).summarize(summary, threads=1)


def _parts(
    source: LocalSource[Any],
    on_ragged_line: Callable[[], None],
    failures: list[str],
    on_block: Callable[[int], None] | None,
) -> Iterator[tuple[LocalSource[Any], Any]]:
    """Iterate over the parts of a table, file by file, with their sources."""
    # A failing file does not stop the others.
    for piece in source.unconverted(on_ragged_line).one_by_one():
        try:
            for part, length in piece.measured(piece.parts()):
                yield piece, part
                if on_block is not None:
                    on_block(length)
        except (ValueError, OSError, MemoryError) as error:  # what read_quietly raises
            failures.append(str(error))
