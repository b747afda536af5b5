"""Preflight check of a private table, for its curator only, before anything is spent.

The table is compared with its schema, value by value and rule by rule, as in :mod:`dpmoments.rows.encode`. Nothing here enters a
release.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import nsmallest
from os import PathLike
from typing import Any, NoReturn, SupportsIndex, TextIO, TypeGuard
from zlib import crc32

import numpy as np

from dpmoments.cells.objects import NO_LEVEL
from dpmoments.cells.reading import MISSING, UNKNOWN
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputTypeError
from dpmoments.foundation.progress import watched
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.text_format import TextFormat
from dpmoments.inspection.facts import (
    AbsentColumn,
    ColumnFacts,
    FoundValue,
    RuleFacts,
    ShiftFacts,
    TableFacts,
    UnitFacts,
    nearest_level,
)
from dpmoments.inspection.messages import (
    BLANK,
    Outcome,
    Seriousness,
    Verdict,
    column_lines,
    row_lines,
    shown_as,
    verdicts,
)
from dpmoments.inspection.unreadable import (
    CellValue,
    UnreadableColumn,
    read_level_cells,
    read_number_cells,
    read_unit_cells,
    written_value,
)
from dpmoments.mechanisms.counts import Counts
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.messages.wording import closest
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.sources.engine import EngineSource
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.opening import columns_of_array, open_source
from dpmoments.rows.summary import Summary
from dpmoments.rows.threads import summarize_in_threads
from dpmoments.rows.units import ROUNDS, UnitBlock, UnitCounts, counts_of_units
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.constraints import schema_of_tables
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.drafting import draft
from dpmoments.schema.encoding import may_be_shortened
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema, require_schema

# Values found in a table, counted: all of them where they are few, else those of least hash.

_MAX_VALUES = 256
_MAX_TEXT_LENGTH = 80
"""Max characters kept of a value."""
_MAX_CODES = 3
_CODES_SHARE = 0.95
"""Fraction of the values beyond a bound that at most ``_MAX_CODES`` codes make up."""


@dataclass(eq=False, repr=False)
class ValueSample:
    """Values with the smallest hashes, at most ``_MAX_VALUES``, each with its exact count.

    A value selected for the whole table is selected in every part that holds it. So its count is exact, the sample does
    not depend on order, partitioning or threads, and memory does not grow with the table. ``counts`` maps the hash of
    the whole value (a fast checksum, then a cryptographic hash) to the value, shortened if long, and its count;
    ``complete`` is True if no value was left out.
    """

    counts: dict[bytes, tuple[CellValue, int]] = field(default_factory=dict)
    complete: bool = True

    def add(self, values: Mapping[CellValue, int]) -> None:
        """Add values with their counts."""
        limit = self._limit()
        for (kind, text), times in values.items():
            whole = f"{kind} {text}".encode()
            first = crc32(whole).to_bytes(4)
            if limit is not None and first > limit:
                self.complete = False
                continue
            key = first + hashlib.blake2b(whole, digest_size=16).digest()
            # The text after the number of kept characters is told by an ellipsis.
            short = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[:_MAX_TEXT_LENGTH]}…"
            known = self.counts.get(key, ((kind, short), 0))
            self.counts[key] = (known[0], known[1] + times)
            if len(self.counts) > 4 * _MAX_VALUES:
                self._keep_least()
                limit = self._limit()
        self._keep_least()

    def merged(self, other: ValueSample) -> ValueSample:
        """Return the sample of both."""
        both = dict(self.counts)
        for key, (value, times) in other.counts.items():
            both[key] = (value, both.get(key, (value, 0))[1] + times)
        result = ValueSample(both, self.complete and other.complete)
        result._keep_least()
        return result

    def most_frequent_first(self) -> list[tuple[CellValue, int]]:
        """Return the sampled values and counts, by count, then by text."""
        return sorted(self.counts.values(), key=lambda entry: (-entry[1], entry[0]))

    def dominant(self, cells: int) -> list[tuple[CellValue, int]]:
        """Return up to three values that are repeated and make up nearly all of ``cells`` values."""
        frequent = self.most_frequent_first()[:_MAX_CODES]
        repeated = [(value, times) for value, times in frequent if times > 1]
        return repeated if sum(times for _, times in repeated) >= _CODES_SHARE * cells > 0 else []

    def _limit(self) -> bytes | None:
        """Return the prefix of the largest hash kept, above which no value is kept."""
        # None if there is room.
        return max(self.counts)[:4] if len(self.counts) == _MAX_VALUES else None

    def _keep_least(self) -> None:
        if len(self.counts) > _MAX_VALUES:
            self.counts = {key: self.counts[key] for key in nsmallest(_MAX_VALUES, self.counts)}
            self.complete = False


_USUAL_EPSILON = 1.0
"""ε of the noise that shifts are compared with, if no budget is given."""
_STEPS = 2**30
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
        for name, own in source.names_read.items():
            try:
                cells[own] = source.written_cells(part, name)
            except TypeError:
                cells[own] = UnreadableColumn("neither plain numbers nor text", len(part))
        return cls(len(part), cells, source.text_of_cells)


@dataclass(eq=False, repr=False)
class SurveyCounts:
    """Sums over rows, exact and private.

    ``counts`` holds values or rows by ``("rows", what)``, ``("column", name, what)``, ``("level", name, index)``,
    ``("type", name, type)``, ``("rule", name, rule, what)``, ``("derived", name)``, ``("unit", what)`` or ``("unit
    type", type)``. ``values`` maps (name, what) to the values found: ``"unknown"`` levels, and ``"unreadable"`` ones.
    """

    counts: Counter[tuple[str | int, ...]] = field(default_factory=Counter)
    values: dict[tuple[str, str], ValueSample] = field(default_factory=dict)

    def merged(self, other: SurveyCounts) -> SurveyCounts:
        """Return the counts of the rows of both."""
        keys = self.values.keys() | other.values.keys()
        nothing = ValueSample()
        values = {key: self.values.get(key, nothing).merged(other.values.get(key, nothing)) for key in keys}
        return SurveyCounts(self.counts + other.counts, values)


@dataclass(frozen=True)
class _Survey(Summary[SurveyCounts, SurveyCounts]):
    """Summary that checks every value: it gets :class:`SurveyPart` in place of encoded rows."""

    schema: Schema
    mean: bool = True
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
        """Schema without rules that stop, if a row may exceed the row-norm bound; else None."""
        if not may_be_shortened(self.schema.columns, self.schema.row_norm):
            return None
        plain = self.schema.without_cleaning
        return plain.with_columns([_lenient(column) for column in plain.columns])


def _candidate_units(survey: _Survey, part: SurveyPart) -> Any:
    """Return the units of kept rows that have one: a large_binary array without nulls."""
    look = _Look(survey, SurveyCounts(), part)
    look.take()
    return look.units_of_candidates()


class _Look:
    """Check of one part of a table."""

    def __init__(self, survey: _Survey, running: SurveyCounts, part: SurveyPart) -> None:
        self._survey, self._running, self._part = survey, running, part
        nothing = np.zeros(part.n_rows, dtype=bool)
        self._stopping = nothing.copy()  # rows with a cell at which a release stops
        self._drops: list[tuple[str, str, BoolArray]] = []  # by column and rule, in the schema's order
        self._changed: dict[str, BoolArray] = {}  # cells that a rule moved or filled in
        self._read: dict[str, Any] = {}  # cells as they were read, for rows that may be shortened
        self._filled: list[tuple[Numeric | Date | Boolean, BoolArray, FloatArray]] = []  # missing cells, clipped values
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
        """Return the units of kept rows, after the check: a large_binary array without nulls."""
        return self._units.filter(pc.and_(pc.is_valid(self._units), pa.array(~self._dropped)))

    def _look_at_numbers(self, column: Numeric | Date | Boolean | Coordinate) -> None:
        read = read_number_cells(self._part.cells[column.name], column, written=self._part.written)
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
        for (decimal, thousands), number in read.marks.items():
            self._add(("marks", column.name, decimal, thousands), number)
        if isinstance(column, Numeric):
            self._values(column.name, "below", _counted_numbers(values[below]))
            self._values(column.name, "above", _counted_numbers(values[above]))
        missing = empty | infinite
        self._values(column.name, "unreadable", read.counts)
        self._note(column, read.unreadable, read.kind, missing)
        if _is_filled(column) and read.kind is None:
            self._filled.append((column, missing | read.unreadable, np.clip(values, lower, upper)))
        self._changed[column.name] = missing | below | above | read.unreadable
        if self._survey.lenient_schema is not None:
            self._read[column.name] = pa.array(values)

    def _look_at_levels(self, column: Categorical) -> None:
        read = read_level_cells(self._part.cells[column.name], column, written=self._part.written)
        missing = (read.codes == MISSING) & ~read.unreadable
        unknown = read.codes == UNKNOWN
        self._count(missing, "column", column.name, "empty")
        self._count(unknown, "column", column.name, "unknown")
        for index, number in enumerate(np.bincount(read.codes[read.codes >= 0]).tolist()):
            self._add(("level", column.name, index), number)
        self._values(column.name, "unknown", read.unknown)
        self._note(column, read.unreadable, read.kind, missing)
        if column.other == "drop":
            self._drops.append((column.name, "other", unknown))
        self._changed[column.name] = missing | unknown | read.unreadable
        if self._survey.lenient_schema is not None:
            texts = pa.array([*map(str, column.levels), NO_LEVEL], pa.large_string())
            indices = np.where(read.codes >= 0, read.codes, len(column.levels))
            self._read[column.name] = texts.take(pa.array(indices, mask=read.codes == MISSING))

    def _look_at_units(self, unit: PrivacyUnit) -> None:
        read = read_unit_cells(self._part.cells[unit.column], unit.column, written=self._part.written)
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
        """Count unreadable values of a column of any kind, and apply the missing rule to them."""
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
        for column, missing, values in self._filled:
            present = ~missing & ~before
            self._count(missing & ~before, "column", column.name, "filled")
            self._count(present, "column", column.name, "present")
            lower, upper = column.bounds
            steps = np.rint((values[present] / 2 - lower / 2) / (upper / 2 - lower / 2) * _STEPS)
            self._add(("column", column.name, "steps"), int(steps.astype(np.int64).sum()))
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

    def _values(self, name: str, what: str, values: Mapping[CellValue, int]) -> None:
        if values:
            self._running.values.setdefault((name, what), ValueSample()).add(values)

    def _count(self, mask: BoolArray, *key: str | int) -> None:
        self._add(key, int(np.count_nonzero(mask)))

    def _add(self, key: tuple[str | int, ...], number: int) -> None:
        if number:
            self._running.counts[key] += number


def _counted_numbers(values: FloatArray) -> dict[CellValue, int]:
    """Count numbers by their text."""
    numbers, times = np.unique(values, return_counts=True)
    return {written_value(number): count for number, count in zip(numbers.tolist(), times.tolist(), strict=True)}


def _is_filled(column: Numeric | Date | Boolean | Coordinate) -> TypeGuard[Numeric | Date | Boolean]:
    """Restrict to columns in which a public value within bounds replaces a missing one."""
    bounded = not (isinstance(column, Coordinate) or (isinstance(column, Numeric) and column.rough is not None))
    return bounded and column.missing in ("center", "fill")


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
    if isinstance(column, Coordinate):
        return -np.inf, np.inf
    if isinstance(column, Numeric) and column.rough is not None:
        _, _, center, radius = column.rough
        return center - radius, center + radius
    return column.bounds


def _shortened(block: FloatArray) -> BoolArray:
    """Mark encoded rows that are longer than the ball by more than rounding, shape (n,)."""
    squares = np.zeros(len(block))
    with np.errstate(over="ignore"):  # infinite squares are of long rows
        for feature in block.T:
            squares += feature * feature
    return np.asarray(squares > (1.0 + _ROUNDING) ** 2)  # not of dropped rows, which are NaN


def survey_table(
    source: LocalSource[Any] | EngineSource,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> tuple[SurveyCounts, list[str]]:
    """Check a table in one pass, file by file."""
    # Return also the files that could not be read to their end, in text that quotes no value; rows read before are
    # counted.
    if isinstance(source, EngineSource):
        found_there: tuple[SurveyCounts, list[str]]
        found_there = source.mapped(_survey_of_partition, _merged_surveys, (SurveyCounts(), []), on_block)
        return found_there
    survey = _survey_of(source)
    failures: list[str] = []
    ragged = SurveyCounts()

    def note_ragged_line() -> None:
        ragged.counts["rows", "ragged"] += 1

    parts = _parts(source, note_ragged_line, failures, on_block)
    result = summarize_in_threads(survey, parts, lambda pair: _surveyed(*pair), threads)
    return survey.merge(result, ragged), failures


def _survey_of_partition(source: LocalSource[Any]) -> tuple[SurveyCounts, list[str]]:
    return survey_table(source, threads=1)


def _merged_surveys(
    first: tuple[SurveyCounts, list[str]], second: tuple[SurveyCounts, list[str]]
) -> tuple[SurveyCounts, list[str]]:
    return first[0].merged(second[0]), [*first[1], *second[1]]


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
    unit = source.privacy_unit
    assert unit is not None, "the table was opened for rows"
    return counts_of_units(_SurveyedUnits(source), unit.max_rows, threads=threads, on_block=on_block)


@dataclass(frozen=True, eq=False, repr=False)
class _SurveyedUnits:
    """Table of which no value stops a pass over its units."""

    source: LocalSource[Any] | EngineSource

    def summarize_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        if isinstance(self.source, EngineSource):
            nothing = summary.finish(summary.start())
            return self.source.mapped(partial(_units_of_partition, summary), summary.merge, nothing, on_block)
        survey = _survey_of(self.source)
        parts = _parts(self.source, lambda: None, [], on_block)

        def block(pair: tuple[LocalSource[Any], Any]) -> Any:
            ids = _candidate_units(survey, SurveyPart.of(*pair))
            return UnitBlock(ids, np.zeros((len(ids), 0)))

        return summarize_in_threads(summary, parts, block, threads)


def _units_of_partition(summary: Summary[Any, Any], source: LocalSource[Any]) -> Any:
    return _SurveyedUnits(source).summarize_units(summary, threads=1)


def _survey_of(source: LocalSource[Any]) -> _Survey:
    return _Survey(source.schema, source.mean, source.privacy_unit)


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


def _surveyed(source: LocalSource[Any], part: Any) -> Any:
    return SurveyPart.of(source, part)


_MARK = "PRIVATE │ "
"""Mark of every line, so that a copied line stays marked."""
_HIDDEN = "Preflight(<private>: call .show())"
_FILLER = "\1"
"""Filler after a character that takes two terminal columns."""
_WIDTH = 100
_MIN_WIDTH = 40
_WARNING = (
    "For the curator only: exact facts about the table, without a privacy guarantee. A notebook, log or "
    "terminal history that stores these lines stores private facts. No budget was spent, nothing was written."
)
_ADVICE = (
    "Change the schema only from public knowledge (a codebook, legislation, how the column was recorded): units "
    "of measurement, spellings of levels, a wrong column. A bound or a level chosen because of these facts is "
    "read from the table, and a release's guarantee requires a schema that is not."
)


def preflight(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    by: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
    mean: bool = True,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
) -> Preflight:
    """Check a private table as a release would read it, and report what does not fit its schema.

    Parameters
    ----------
    data : array, frame, path or relation
        As for :func:`dpmoments.release`.
    schema : Schema
    epsilon, delta, rho : float
        Budget of the planned release, whose noise the shift by a rule for missing values is compared with. Default:
        ε = 1. Nothing is spent.
    by : list of str, or list of lists of str, optional
        Columns of contingency tables, as for :func:`dpmoments.release_counts`: only these are read and checked.
    mean : bool
        As for the planned release.
    privacy_unit : PrivacyUnit, optional
        As for the planned release: adds the number of units, of those above the contribution bound, and of the rows
        that it leaves out.
    text_format : TextFormat, optional
        As for :func:`dpmoments.release`.
    threads : int, optional
        Default: the usable cores. Findings do not depend on it.
    progress : bool or callable
        As for :func:`dpmoments.release`.

    Returns
    -------
    Preflight
        Private: its text form shows nothing; ``.show()`` prints.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If the table does not have the schema's columns or cannot be opened at all, or the privacy unit's column is
        missing or has an unusable type.

    Notes
    -----
    **Privacy.** It spends no budget and has no guarantee: it is exact, for those who may see the table anyway.
    Decisions made because of it depend on the table. Corrections of units of measurement, spellings of levels or a
    wrong column, according to public knowledge, leave a schema that public knowledge gives, and a release with it keeps
    its guarantee; bounds or levels chosen to fit the table do not (``docs/preflight.md``). No min, max or quantile is
    computed; of a column whose rule fills in missing values, by how much that shifts its mean.

    It takes one pass over the data, and with a privacy unit three (one more for every eight million rows of people with
    several). Comparisons are as in a release, so ``rows_kept`` is the count that a release uses. Memory does not
    grow with the number of rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dpmoments import Numeric
    >>> checked = preflight(pa.table({"height": [171.0, 183.0]}), Schema(Numeric("height", 0.3, 2.3)))
    >>> checked
    Preflight(<private>: call .show())
    >>> checked.private_facts()["columns"]["height"]["above"]
    2
    """
    require_schema(schema)
    if by is not None:
        counted = schema_of_tables(schema, Counts.of(schema, by, None).by)
        data, schema = columns_of_array(data, schema, counted.names), counted
    usual = epsilon is None and rho is None
    budget = PrivacyBudget.of(epsilon=_USUAL_EPSILON if usual else epsilon, delta=delta, rho=rho)
    if privacy_unit is not None:
        require_unit(privacy_unit, schema.reserved_names, Neighbors.ADD_REMOVE)
    with watched(progress) as on_block:
        schema, absent = _without_absent(data, schema, privacy_unit, text_format)
        source = open_source(data, schema, mean, privacy_unit, text_format)
        with on_block.passing(source.pass_length):
            result, failures = survey_table(source, threads=threads, on_block=on_block)
        units = None
        if privacy_unit is not None:
            with on_block.passing(source.pass_length, ROUNDS):
                units = survey_units(source, threads=threads, on_block=on_block)
    unit = None if privacy_unit is None or units is None else _unit_facts(privacy_unit, result, units)
    facts = _facts(schema, result, failures, unit, absent)
    return Preflight(_with_shifts(facts, result.counts, budget, mean=mean))


def _with_shifts(
    facts: TableFacts, counts: Counter[tuple[str | int, ...]], budget: PrivacyBudget, *, mean: bool
) -> TableFacts:
    """Add the shift of the means of columns in which a value replaces missing ones."""

    def count(column: ColumnFacts, what: str) -> int:
        return counts["column", column.column.name, what]

    if not any(count(column, "filled") and count(column, "present") for column in facts.columns):
        return facts
    noise = _noise_of_means(facts, budget, mean=mean)
    columns = []
    for column in facts.columns:
        filled, present = count(column, "filled"), count(column, "present")
        if filled and present:
            kind = column.column
            assert isinstance(kind, Numeric | Date | Boolean)
            lower, upper = kind.bounds
            share = count(column, "steps") / present / _STEPS
            there = lower * (1.0 - share) + upper * share
            shift = (kind.replacement - there) * (filled / (filled + present))
            column = replace(column, shift=ShiftFacts(filled, shift, noise.get(kind.name), budget))
        columns.append(column)
    return replace(facts, columns=tuple(columns))


def _noise_of_means(facts: TableFacts, budget: PrivacyBudget, *, mean: bool) -> dict[str, float]:
    """Forecast the noise SD of each feature's mean; empty if it is not known beforehand."""
    if not (mean and facts.kept):
        return {}
    unit = None if facts.unit is None else facts.unit.privacy_unit
    try:
        typical, mechanism = TypicalTable.of(facts.schema), make_mechanism("auto")
        noise = ReleasePlan(typical, facts.kept, budget, Neighbors.ADD_REMOVE, mechanism, unit).noise
    except (ValueError, OverflowError):  # a refusal, which the forecast shows, or numbers beyond all tables
        return {}
    return {} if noise is None else dict(zip(facts.schema.feature_names, noise.mean.tolist(), strict=True))


def _without_absent(
    data: Any, schema: Schema, privacy_unit: PrivacyUnit | None, text_format: TextFormat | None
) -> tuple[Schema, tuple[AbsentColumn, ...]]:
    """Return the schema of the columns that the table has, so that the others hide nothing."""
    # If the table cannot be opened for another reason, the schema is returned as it is.
    try:
        open_source(data, schema, True, privacy_unit, text_format)
    except ValueError:
        try:
            names = draft(data, text_format or schema.text_format if isinstance(data, str | PathLike) else None).names
        except (TypeError, ValueError, OSError):
            return schema, ()
    else:
        return schema, ()
    absent = {column.name: name for name, column in schema.columns_by_source.items() if name not in names}
    kept = [
        column
        for column in schema.columns
        if column.name not in absent
        and not (isinstance(column, DerivedColumn) and absent.keys() & set(column.stated.factors))
    ]
    if not absent or not kept or (privacy_unit is not None and privacy_unit.column not in names):
        return schema, ()
    free = [name for name in names if name not in schema.columns_by_source]
    if privacy_unit is not None:
        free.remove(privacy_unit.column)
    columns = tuple(
        AbsentColumn(own, name, closest(name, free).get("close"), tuple(free)) for own, name in absent.items()
    )
    return schema.with_columns(kept, row_norm=False), columns


class Preflight:
    """Findings of a preflight check; made by :func:`preflight`.

    Its ``str``, ``repr`` and notebook form show nothing of the table, and it can be neither pickled nor copied, so that
    it does not enter a log, cache or report by accident.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dpmoments import Categorical
    >>> checked = preflight(pa.table({"ward": ["a", "b", "icu"]}), Schema(Categorical("ward", ["A", "B", "ICU"])))
    >>> str(checked)
    'Preflight(<private>: call .show())'
    >>> checked.stops_a_release
    False
    """

    __slots__ = ("_facts",)

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts

    @property
    def stops_a_release(self) -> bool:
        """True if a release of this table stops with an error; private."""
        return self._facts.stops

    @property
    def outcome(self) -> Outcome:
        """Outcome of a release of this table; private.

        Worthless: most rows, or most values of a column, are lost.
        """
        if self._facts.stops:
            return Outcome.STOPS
        lost = any(verdict.seriousness <= Seriousness.COLUMN_LOST for verdict in verdicts(self._facts))
        return Outcome.WORTHLESS if lost else Outcome.WORKS

    def show(self, file: TextIO | None = None) -> None:
        """Print the findings, every line marked as private. Notebooks and logs keep printed text.

        Parameters
        ----------
        file : text stream, optional
            Default: standard output.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpmoments import Numeric
        >>> preflight(pa.table({"age": [44.0, 130.0]}), Schema(Numeric("age", 0, 120))).show()
        PRIVATE │ For the curator only: ...
        """
        stream = sys.stdout if file is None else file
        width = _WIDTH
        if stream.isatty():
            width = max(min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH), _MIN_WIDTH)
        encoding = getattr(stream, "encoding", None) or "utf-8"
        for line in self._marked_lines(width):
            stream.write(line.encode(encoding, "replace").decode(encoding) + "\n")

    def private_facts(self) -> dict[str, Any]:
        """Return all findings as plain values for a program; private.

        Returns
        -------
        dict
            Counts of rows and values, rules, columns, unknown levels, and ``verdicts`` by severity: all, and each column's.
        """
        plain, result = self._facts.to_plain(), verdicts(self._facts)
        for name, column in plain["columns"].items():
            column["verdicts"] = [_verdict_as_dict(verdict) for verdict in result if verdict.column == name]
        return plain | {"verdicts": [*map(_verdict_as_dict, result)]}

    def _marked_lines(self, width: int) -> Iterator[str]:
        for line in self._lines():
            indent = len(line) - len(line.lstrip())
            wrapped = textwrap.wrap(
                "".join(map(_as_wide_as_shown, line.strip())),
                width - len(_MARK),
                initial_indent=" " * indent,
                subsequent_indent=" " * (indent + 2 if indent else 0),
                break_on_hyphens=False,
            )
            for piece in wrapped or [""]:
                yield (_MARK + piece.replace(_FILLER, "").replace(BLANK, " ")).rstrip()

    def _lines(self) -> Iterator[str]:
        facts = self._facts
        yield _WARNING
        yield ""
        result = verdicts(facts)
        reasons = [
            str(index)
            for index, verdict in enumerate(result, 1)
            if verdict.seriousness in (Seriousness.UNREAD, Seriousness.STOPS)
        ]
        if self.outcome is Outcome.STOPS:
            numbers = " and ".join(filter(None, [", ".join(reasons[:-1]), reasons[-1]]))
            left = f"The table has {facts.rows:,} rows"
            if facts.kept < facts.rows:
                left = f"Its rules leave {facts.kept:,} of {facts.rows:,} rows"
            if facts.stopping and facts.whole:
                left += f"; {facts.whole:,} without those that stop it"
            yield f"A release of this table STOPS with an error: see {numbers} below. {left}."
        elif self.outcome is Outcome.WORTHLESS:
            yield (
                f"A release of this table would RUN, AND BE WORTHLESS in part or whole: it counts "
                f"{facts.kept:,} of {facts.rows:,} rows, and the first finding below causes no error."
            )
        else:
            yield f"A release of this table works: it counts {facts.kept:,} of {facts.rows:,} rows."
        if not result:
            yield "Every cell fits the schema."
        for number, verdict in enumerate(result, 1):
            yield f"  {number}. {verdict.words[0].upper()}{verdict.words[1:]}{'' if verdict.words.endswith('?') else '.'}"
        yield ""
        if lines := [*row_lines(facts)]:
            yield from lines
            yield ""
        yield "Columns:"
        yield from column_lines(facts, result)
        yield ""
        yield _ADVICE
        if facts.unit is not None:
            yield f"How many rows of a {shown_as(facts.unit.privacy_unit.column, quoted=False)} count is also such a bound."

    def __repr__(self) -> str:
        return _HIDDEN

    def _repr_html_(self) -> str:
        return "<code>Preflight(&lt;private&gt;: call .show())</code>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise InputTypeError("a Preflight holds private facts and is neither pickled nor copied: run preflight again")


def _verdict_as_dict(verdict: Verdict) -> str:
    return verdict.words.replace(BLANK, " ")


def _as_wide_as_shown(character: str) -> str:
    """Return a displayable character, padded to its width, so that the terminal breaks no line."""
    if not character.isprintable() and character != BLANK:
        return character.encode("unicode_escape", "backslashreplace").decode()
    return character + _FILLER if unicodedata.east_asian_width(character) in "WF" else character


def _facts(
    schema: Schema, survey: SurveyCounts, failures: list[str], unit: UnitFacts | None, absent: tuple[AbsentColumn, ...]
) -> TableFacts:
    counts = survey.counts
    dropping = [pair for column in schema.table_columns for pair in _dropping_rules(column)]
    if unit is not None and unit.privacy_unit.missing == "drop":
        dropping.append((unit.privacy_unit.column, "missing"))
    rules = [
        RuleFacts(name, rule, *(counts["rule", name, rule, what] for what in ("rows", "first", "alone")))
        for name, rule in dropping
    ]
    if unit is not None:  # only of rows that no rule drops
        rules.append(RuleFacts(unit.privacy_unit.column, unit.rule_text, *(3 * [unit.beyond])))
    return TableFacts(
        schema=schema,
        rows=counts["rows", "read"],
        kept=counts["rows", "kept"] - (0 if unit is None else unit.beyond),
        stopping=counts["rows", "stopping"],
        whole=counts["rows", "whole"],
        shortened=counts["rows", "shortened"],
        columns=tuple(_column_facts(column, survey) for column in schema.table_columns),
        rules=tuple(rules),
        derived={column.name: counts["derived", column.name] for column in schema.derived_columns},
        ragged=counts["rows", "ragged"],
        failures=tuple(failures),
        unit=unit,
        absent=absent,
    )


def _unit_facts(privacy_unit: PrivacyUnit, survey: SurveyCounts, units: UnitCounts) -> UnitFacts:
    return UnitFacts(
        privacy_unit,
        missing=survey.counts["unit", "missing"],
        unreadable=survey.counts["unit", "unreadable"],
        types=tuple(sorted(str(key[1]) for key in survey.counts if key[0] == "unit type")),
        units=units.units,
        rows=units.rows,
        units_over=units.units_over,
        rows_of_units_over=units.rows_of_units_over,
        beyond=units.beyond,
    )


def _dropping_rules(column: Column) -> Iterator[tuple[str, str]]:
    if column.missing == "drop":
        yield column.name, "missing"
    if isinstance(column, Categorical) and column.other == "drop":
        yield column.name, "other"


def _column_facts(column: Column, survey: SurveyCounts) -> ColumnFacts:
    name = column.name

    def cells(what: str) -> int:
        return survey.counts["column", name, what]

    levels = column.levels if isinstance(column, Categorical) else ()
    unknown, unreadable = (survey.values.get((name, what), ValueSample()) for what in ("unknown", "unreadable"))
    return ColumnFacts(
        column=column,
        empty=cells("empty"),
        infinite=cells("infinite"),
        below=cells("below"),
        above=cells("above"),
        between=cells("between"),
        unreadable=cells("unreadable"),
        like_numbers=cells("like numbers"),
        marks=tuple((str(key[2]), str(key[3]), n) for key, n in survey.counts.items() if key[:2] == ("marks", name)),
        codes=tuple(
            code
            for side in ("below", "above")
            for code, _ in survey.values.get((name, side), ValueSample()).dominant(cells(side))
        ),
        types=tuple(sorted(str(key[2]) for key in survey.counts if key[:2] == ("type", name))),
        unreadable_values=tuple(FoundValue(value, times) for value, times in unreadable.most_frequent_first()),
        unknown=cells("unknown"),
        unknown_values=tuple(
            FoundValue(value, times, *nearest_level(value, levels)) for value, times in unknown.most_frequent_first()
        ),
        complete=unknown.complete and unreadable.complete,
        levels=tuple(survey.counts["level", name, index] for index in range(len(levels))),
        shift=None,
    )
