"""Pass over a table that reads and counts every value, and that nothing stops.

A release stops at the first column whose type it refuses and, depending on the rules, at the first unreadable value.
Here the same readers find all of them, so that all faults of a table are reported at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import compress
from typing import Any

import numpy as np

from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_files import TextFormat
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.planning.facts import CellValue, ColumnFacts, TableFacts, UnitFacts
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.sources.engine import EngineSource
from dpmoments.rows.sources.source import LocalSource
from dpmoments.rows.summary import Summary, summarize_in_threads
from dpmoments.rows.units import UnitBlock, UnitCounts, counts_of_units
from dpmoments.schema.cell_reading import (
    MISSING,
    UNKNOWN,
    NumberColumn,
    level_codes,
    nameless_cells,
    numbers,
    text_values,
    unit_ids,
)
from dpmoments.schema.cells import (
    NO_LEVEL,
    TextCells,
    column_format,
    decoded_bytes,
    decoded_levels,
    decoded_without,
    is_text,
    null_markers,
    read_objects,
    text_numbers,
)
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric, WeightColumn
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import may_be_shortened
from dpmoments.schema.schema import Schema

STEPS = 2**30
"""Steps between the bounds: values are summed as integers, in any order of rows."""
_DATE_FORMATS = (
    None,
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%Y%m%d",
    "%d %b %Y",
    "%d%b%Y",
    "%d.%m.%y",
)
"""Formats in which dates that cannot be read are tried; None: ISO 8601."""
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

    def finish(self, running: TableFacts) -> TableFacts:
        return running

    def merge(self, first: TableFacts, second: TableFacts) -> TableFacts:
        return first + second

    @cached_property
    def lenient_schema(self) -> Schema | None:
        """Schema without rules that stop, if a row may exceed the row-norm bound; else None."""
        if not may_be_shortened(self.schema.columns, self.schema.row_norm):
            return None
        plain, columns = self.schema.without_cleaning, list[SchemaColumn]()
        for stated in plain.columns:
            column = stated
            if isinstance(column, Date):  # whose values are read already
                fill = None if column.fill is None else column.replacement
                column = Numeric(column.name, *column.bounds, column.missing, fill=fill)
            if not isinstance(column, DerivedColumn) and column.missing == "error":
                rule: Any = "zero" if isinstance(column, Categorical) else "center"
                column = replace(column, missing=rule)
            columns.append(column)
        return plain.with_columns(columns)

    def add(self, facts: TableFacts, part: Any) -> Any:
        """Add a part to the facts; return the units of its kept rows, if rows have units."""
        rows = _Rows(np.zeros(part.n_rows, dtype=bool), {})
        weights: FloatArray | None = None
        changed: dict[str, BoolArray] = {}  # values that a rule moved or filled in
        held: dict[str, Any] = {}  # values as they were read
        filled: list[tuple[ColumnFacts, BoolArray, FloatArray]] = []  # missing values, and clipped ones
        # unreadable and missing values of columns that are not categorical
        wrong: list[tuple[BoolArray, BoolArray]] = []

        for column in self.schema.table_columns:
            of_column, cells = facts.columns[column.name], part.cells[column.name]
            if isinstance(column, Categorical):
                read = read_level_cells(cells, column, written=part.written)
                missing, outside = (read.values == MISSING) & ~read.unreadable, read.values == UNKNOWN
                of_column.empty += int(np.count_nonzero(missing))
                of_column.unknown += int(np.count_nonzero(outside))
                of_column.levels.update(dict(enumerate(np.bincount(read.values[read.values >= 0]).tolist())))
                of_column.add_found("unknown", read.found)
                held[column.name] = read.values
            else:
                read = read_number_cells(cells, column, written=part.written)
                if isinstance(column, WeightColumn):
                    read = replace(read, values=np.where(read.values < 0.0, np.nan, read.values))
                    weights = read.values
                missing = ~np.isfinite(read.values) & ~read.unreadable
                lower, upper = column.bounds
                if column.rough is not None:  # the range of the mean
                    _, _, center, radius = column.rough
                    lower, upper = center - radius, center + radius
                outside = _count_numbers(of_column, read, missing, lower, upper)
                wrong.append((read.unreadable & (read.kind is None), missing))
                held[column.name] = pa.array(read.values)
                is_bounded = column.rough is None and not isinstance(column, Coordinate)
                if is_bounded and column.missing in ("center", "fill") and read.kind is None:
                    filled.append((of_column, missing | read.unreadable, np.clip(read.values, lower, upper)))
            rows.apply_rule(of_column, column.name, column.missing, read, missing)
            if isinstance(column, Categorical) and column.other == "drop":
                rows.drops[column.name, "other"] = outside
            changed[column.name] = missing | outside | read.unreadable

        if len(wrong) > 1:
            nothing_read = np.logical_and.reduce([unreadable | missing for unreadable, missing in wrong])
            texts = np.add.reduce([unreadable.astype(int) for unreadable, _ in wrong])
            facts.text_rows += int(np.count_nonzero(nothing_read & (texts > 1)))
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
        if weights is not None and self.schema.sampling_weight is not None:
            kept = weights[~dropped & np.isfinite(weights)]
            capped = np.minimum(kept, self.schema.sampling_weight.bounds[1])
            facts.weights += float(kept.sum())
            facts.capped_weights += float(capped.sum())
            facts.squared_weights += float(capped @ capped)
        for of_column, missing, values in filled:
            lower, upper = of_column.column.bounds
            present = values[~missing & ~dropped]
            steps = np.rint((present / 2 - lower / 2) / (upper / 2 - lower / 2) * STEPS)
            of_column.filled += int(np.count_nonzero(missing & ~dropped))
            of_column.present += len(present)
            of_column.steps += int(steps.astype(np.int64).sum())
        if units is None:
            return None
        kept = units.is_valid().to_numpy(zero_copy_only=False).astype(bool) & ~dropped
        cells = np.zeros((len(kept), 0)) if weights is None else np.nan_to_num(weights, nan=0.0)[:, None]
        return UnitBlock(units.filter(pa.array(kept)), cells[kept])

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
    facts.formats.update(read.formats)
    if isinstance(facts.column, Date) and len(str(facts.column.upper)) == len("2015-01-01"):
        day = 86_400 * 1_000_000 / facts.column.unit_microseconds
        facts.midnight += int(np.count_nonzero(above & (read.values < upper + day)))
    facts.add_found("unreadable", read.found)
    if isinstance(facts.column, Boolean):
        facts.between += int(np.count_nonzero((read.values > lower) & (read.values < upper)))
    if isinstance(facts.column, Numeric):
        facts.add_found("below", _counted_numbers(read.values[below]))
        facts.add_found("above", _counted_numbers(read.values[above]))
    outside: BoolArray = below | above
    return outside


def _counted_numbers(values: FloatArray) -> dict[CellValue, int]:
    numbers, times = np.unique(values, return_counts=True)
    return {written_value(number): count for number, count in zip(numbers.tolist(), times.tolist(), strict=True)}


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

    def block(pair: tuple[LocalSource[Any], Any]) -> Any:
        return SurveyPart.of(*pair)

    result = summarize_in_threads(survey, _parts(source, of_files, on_block), block, threads)
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
    rows, weight = _SurveyedUnits(source), source.reading.schema.sampling_weight
    if weight is not None:
        return counts_of_units(rows, weight.bounds[1], weighted=True, threads=threads, on_block=on_block)
    return counts_of_units(rows, unit.rows_per_unit, threads=threads, on_block=on_block)


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
        parts = _parts(self.source, survey.start(), on_block)

        def block(pair: tuple[LocalSource[Any], Any]) -> Any:
            return survey.add(survey.start(), SurveyPart.of(*pair))

        return summarize_in_threads(summary, parts, block, threads)


def _units_of_partition(summary: Summary[Any, Any], source: LocalSource[Any]) -> Any:
    return _SurveyedUnits(source).summarize(summary, threads=1)


def _parts(
    source: LocalSource[Any], facts: TableFacts, on_block: Callable[[int], None] | None
) -> Iterator[tuple[LocalSource[Any], Any]]:
    """Iterate over the parts of a table, file by file, with their sources; note faults of files."""

    def note_ragged_line() -> None:
        facts.ragged += 1

    # A failing file does not stop the others.
    for piece in source.unconverted(note_ragged_line).one_by_one():
        try:
            for part, length in piece.measured(piece.parts()):
                yield piece, part
                if on_block is not None:
                    on_block(length)
        except (ValueError, OSError, MemoryError) as error:  # what read_quietly raises
            facts.failures.append(str(error))


# Values of one column: which could not be read, and what they hold.

_NOT_UTF8: CellValue = ("type", "text that is not UTF-8")
_DIGITS = re.compile(r"\d")


def _raised_by_reading() -> tuple[type[Exception], ...]:
    """Return the exceptions that reading a column may raise because of its type."""
    return TypeError, ValueError, ArithmeticError, pa.ArrowException


@dataclass(frozen=True, repr=False)
class UnreadableColumn:
    """Placeholder of a column whose type no reader accepts."""

    kind: str
    n_cells: int


@dataclass(frozen=True, eq=False, repr=False)
class ReadCells:
    """Values of a column, whatever they hold."""

    # (n,): numbers, NaN if missing or unreadable; codes of :func:`dpmoments.schema.cell_reading.level_codes`;
    # or units, null if none
    values: Any
    # (n,), neither missing nor of the kind that the column needs; of a categorical column only by the column's type, since
    # any other such value is an unknown level
    unreadable: BoolArray
    kind: str | None = None  # the column's type, if it stops a release, whatever the values
    # counts of the unreadable values, text by its form so that it reveals no number; of a categorical, of unknown levels
    found: Mapping[CellValue, int] = field(default_factory=dict)
    like_numbers: int = 0  # count of those that are text and would be numbers
    # count of those that are text and would be numbers with another decimal mark, and mark between groups of three digits
    marks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    formats: Mapping[str, int] = field(default_factory=dict)  # counts of texts that would be dates in another format

    @classmethod
    def of_type(cls, values: Any, kind: Any) -> ReadCells:
        """Return the values of a column whose type no reader accepts."""
        kind = kind if isinstance(kind, str) else "nested values" if pa.types.is_nested(kind) else str(kind)
        return cls(values, np.ones(len(values), dtype=bool), kind)


def read_number_cells(cells: Any, column: NumberColumn, *, written: TextFormat | None = None) -> ReadCells:
    """Read the values of a column of numbers, or bytes of a text file in the format ``written``."""
    if isinstance(cells, UnreadableColumn):
        return ReadCells.of_type(np.full(cells.n_cells, np.nan), cells.kind)
    kind = None
    if written is not None:
        cells, _ = decoded_bytes(cells)  # what is not UTF-8 is no number either
        read = _read_texts(cells, column, written)
        values, unreadable = read.values, read.unparsable
    else:
        try:
            values, unreadable = numbers(cells, column)
        except _raised_by_reading():
            refused = ReadCells.of_type(np.full(len(cells), np.nan), cells.type)
            parts = [] if isinstance(cells, np.ndarray) else [_plain(part) for part in _chunks(cells)]
            if not all(is_text(part.type) for part in parts) or isinstance(cells, np.ndarray):
                return refused
            values, kind = refused.values, refused.kind
            cells = pa.concat_arrays([pa.array([], pa.large_string()), *(decoded_bytes(part)[0] for part in parts)])
            unreadable = pc.is_valid(cells).to_numpy(zero_copy_only=False).astype(bool)
    if not (counted := _counted(cells, unreadable)):
        return ReadCells(values, unreadable, kind)
    forms, like_numbers, marks, formats = _other_readings(counted, column, written)
    return ReadCells(values, unreadable, kind, forms, like_numbers if written is None else 0, marks, formats)


def read_level_cells(cells: Any, column: Categorical, *, written: TextFormat | None = None) -> ReadCells:
    """Read the values of a categorical column, like :func:`read_number_cells`."""
    if isinstance(cells, UnreadableColumn):
        return ReadCells.of_type(np.full(cells.n_cells, MISSING), cells.kind)
    held, broken = cells, np.zeros(len(cells), dtype=bool)
    if written is not None:
        held, broken = decoded_levels(cells, null_markers(column, written))
    try:
        codes = level_codes(held, column)
    except _raised_by_reading():
        return ReadCells.of_type(np.full(len(cells), MISSING), cells.type)
    unknown = _counted(held, (codes == UNKNOWN) & ~broken)
    if broken.any():
        unknown[_NOT_UTF8] += int(np.count_nonzero(broken))
    return ReadCells(codes, np.zeros(len(cells), dtype=bool), found=unknown)


def read_unit_cells(cells: Any, column: str, *, written: TextFormat | None = None) -> ReadCells:
    """Read the values of the privacy unit's column, like :func:`read_number_cells`."""
    if isinstance(cells, UnreadableColumn):
        return ReadCells.of_type(pa.nulls(cells.n_cells, pa.large_binary()), cells.kind)
    unreadable = np.zeros(len(cells), dtype=bool)
    if written is not None:
        cells, unreadable = decoded_without(cells, written.nulls)
    try:
        ids = unit_ids(cells, column)
    except _raised_by_reading():
        return ReadCells.of_type(pa.nulls(len(cells), pa.large_binary()), cells.type)
    return ReadCells(ids, unreadable | nameless_cells(cells))


def _read_texts(texts: Any, column: NumberColumn, written: TextFormat) -> TextCells:
    read = text_values(texts, column, written)
    if isinstance(column, Boolean | Date):
        return read
    values = numbers(pa.array(read.values), column)[0]  # without those that mean a missing one
    return TextCells(values, np.isnan(values) & ~read.unparsable | read.missing, read.unparsable)


def _counted(cells: Any, wanted: BoolArray) -> Counter[CellValue]:
    """Count the wanted values by what they hold."""
    if isinstance(cells, np.ndarray):
        return Counter(read_objects(cells[wanted], written_value, ("type", "object")))
    result: Counter[CellValue] = Counter()
    start = 0
    for part in _chunks(cells):
        chosen = wanted[start : start + len(part)]
        start += len(part)
        if not chosen.any():
            continue
        counts = _plain(part).filter(pa.array(chosen)).value_counts()
        values, broken = counts.field("values"), np.zeros(len(counts), dtype=bool)
        if is_text(values.type):
            values, broken = decoded_bytes(values)
        times = counts.field("counts").tolist()
        for value, is_broken, number in zip(values.to_pylist(), broken.tolist(), times, strict=True):
            result[_NOT_UTF8 if is_broken else written_value(value)] += number
    return result


def _chunks(cells: Any) -> list[Any]:
    return list(cells.chunks) if isinstance(cells, pa.ChunkedArray) else [cells]


def _plain(part: Any) -> Any:
    """Decode an array of a type that Arrow cannot filter or count."""
    plain = pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part
    if pa.types.is_dictionary(plain.type):
        return _plain(plain.dictionary).take(plain.indices)
    if pa.types.is_string_view(plain.type):
        return pc.cast(plain, pa.large_string())
    return pc.cast(plain, pa.float32()) if pa.types.is_float16(plain.type) else plain


def _other_readings(
    counts: Mapping[CellValue, int], column: NumberColumn, written: TextFormat | None = None
) -> tuple[Counter[CellValue], int, dict[tuple[str, str], int], dict[str, int]]:
    """Count texts by form, and those that are numbers, or numbers and dates written otherwise.

    >>> from dpmoments.schema.columns import Numeric
    >>> _other_readings({("text", "1,5"): 3, ("text", "1.234,5"): 2, ("text", "x"): 9}, Numeric("pay", 0, 1))[2]
    {(',', ''): 3, (',', '.'): 5}
    >>> date = Date("seen", "2019-01-01", "2021-01-01", format="%m/%d/%Y")
    >>> _other_readings({("text", "31.01.2020"): 3}, date)[3]  # ISO 8601 would be ""
    {'%d.%m.%Y': 3}
    """
    texts = [text for kind, text in counts if kind == "text"]
    cells = pa.array(texts, pa.large_string())

    numeric = ~np.isnan(_read_texts(cells, column, TextFormat()).values)
    like = set(compress(texts, numeric))
    forms: Counter[CellValue] = Counter()
    for (kind, text), times in counts.items():
        if kind != "text":
            forms[kind, text] += times
        elif text not in like:
            forms["form", _DIGITS.sub("9", text)] += times

    marks: dict[tuple[str, str], int] = {}
    if isinstance(column, Numeric):
        decimal, other = (",", ".") if column_format(column, written).decimal == "." else (".", ",")
        for thousands in ("", other):
            values = text_numbers(cells, TextFormat(decimal=decimal, thousands=thousands or None)).values
            marks[decimal, thousands] = sum(counts["text", text] for text in compress(texts, np.isfinite(values)))

    formats: dict[str, int] = {}
    if isinstance(column, Date) and texts:
        for form in _DATE_FORMATS:
            values = text_values(cells, replace(column, format=form), TextFormat()).values
            if dates := sum(counts["text", text] for text in compress(texts, np.isfinite(values))):
                formats[form or ""] = dates
    return forms, sum(counts["text", text] for text in like), marks, formats


def written_value(cell: object) -> CellValue:
    """Describe a value as text; what is neither text nor a number, by its type only."""
    if isinstance(cell, str):
        return "text", str.__str__(cell).encode(errors="replace").decode()
    if isinstance(cell, bool | np.bool_):
        return "type", "true or false"
    if isinstance(cell, int | np.integer):
        whole = int.__int__(cell) if isinstance(cell, int) else int(cell)
        return "number", str(whole) if abs(whole) < 10**40 else "an integer of more than 40 digits"
    if isinstance(cell, float | np.floating):
        # a whole one is written as its integer, as the readers take it
        number = float.__float__(cell) if isinstance(cell, float) else float(cell)
        return "number", str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else repr(number)
    return "type", type(cell).__name__
