"""Facts found by a preflight check: exact counts, for the curator only.

Each part of a table is counted by itself, and the facts of parts are added.
"""

from __future__ import annotations

import difflib
import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from heapq import nsmallest
from typing import Any, Literal, Self
from zlib import crc32

from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.units import UnitCounts
from dpmoments.schema.columns import Categorical, Column
from dpmoments.schema.declared import is_missing_label
from dpmoments.schema.schema import Schema

CellValue = tuple[Literal["text", "number", "form", "type"], str]
"""Kind and text of a value.

Text, a number, the form of a text (every digit a 9), or the name of its type.
"""
_ALIKE = 0.6
"""Min similarity (difflib) of a value and the level suggested for it."""
_MAX_VALUES = 256
_MAX_TEXT_LENGTH = 80
"""Max characters kept of a value."""
_MAX_CODES = 3
_CODES_SHARE = 0.95
"""Fraction of the values beyond a bound that at most ``_MAX_CODES`` codes make up."""


@dataclass(frozen=True, repr=False)
class FoundValue:
    """Value that is not a level of its column, or cannot be read.

    Only its beginning if it is long.

    ``nearest`` is the most similar declared level. If ``same``, they differ only in case, spaces or the format of a
    number.
    """

    value: CellValue
    cells: int
    nearest: str | int | None = None
    same: bool = False


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

    def __add__(self, other: ValueSample) -> ValueSample:
        both = dict(self.counts)
        for key, (value, times) in other.counts.items():
            both[key] = (value, both.get(key, (value, 0))[1] + times)
        result = ValueSample(both, self.complete and other.complete)
        result._keep_least()
        return result

    def most_frequent_first(self) -> list[FoundValue]:
        """Return the sampled values, by count, then by text."""
        return [FoundValue(*entry) for entry in sorted(self.counts.values(), key=lambda entry: (-entry[1], entry[0]))]

    def codes(self, cells: int, bounds: tuple[float, float], labels: Mapping[str, str]) -> list[str]:
        """Return values beyond bounds that look like codes for a missing one.

        They are those whose labels say so, and up to three that are repeated, far from the bounds or written like codes (99,
        −8), and make up nearly all of ``cells`` values.
        """
        every = self.most_frequent_first()
        if named := [value.value[1] for value in every if is_missing_label(labels.get(value.value[1]))]:
            return named
        repeated = [value for value in every[:_MAX_CODES] if value.cells > 1]
        enough = sum(value.cells for value in repeated) >= _CODES_SHARE * cells > 0
        lower, upper = bounds
        far = [
            re.fullmatch(r"-\d+|[789]+", value.value[1])
            or max(lower - float(value.value[1]), float(value.value[1]) - upper) > (upper - lower) / 2
            for value in repeated
        ]
        return [value.value[1] for value in repeated] if enough and all(far) else []

    def _limit(self) -> bytes | None:
        """Return the prefix of the largest hash kept, above which no value is kept."""
        # None if there is room.
        return max(self.counts)[:4] if len(self.counts) == _MAX_VALUES else None

    def _keep_least(self) -> None:
        if len(self.counts) > _MAX_VALUES:
            self.counts = {key: self.counts[key] for key in nsmallest(_MAX_VALUES, self.counts)}
            self.complete = False


_NOT_ADDED = {"added": False}
"""Marks what is the same for all parts, and what is computed when all are counted."""


@dataclass(eq=False, repr=False)
class Facts:
    """Counts of a part of a table, to be added to those of another part."""

    def __add__(self, other: Self) -> Self:
        counts = [one.name for one in fields(self) if one.metadata.get("added", True)]
        return replace(self, **{name: _sum(getattr(self, name), getattr(other, name)) for name in counts})


def _sum(first: Any, second: Any) -> Any:
    if isinstance(first, dict) and not isinstance(first, Counter):
        of_both = {key: _sum(count, second[key]) for key, count in first.items() if key in second}
        return first | second | of_both
    return first if second is None else first + second


@dataclass(eq=False, repr=False)
class RuleFacts(Facts):
    """Rows that one rule of one column drops.

    All of them, those not dropped by an earlier rule, and those dropped by no other.
    """

    column: str = field(metadata=_NOT_ADDED)
    rule: str = field(metadata=_NOT_ADDED)
    rows: int = 0
    first: int = 0
    alone: int = 0


@dataclass(frozen=True, repr=False)
class ShiftFacts:
    """Shift of a column's mean by fill values, among rows that no rule drops."""

    cells: int  # values put in place of missing or unreadable ones
    mean: float  # mean with these less the mean of the other values, clipped to the bounds; in original units
    # noise SD of the mean of a release with `budget`, in original units; None if it is not known beforehand
    noise: float | None
    budget: PrivacyBudget


@dataclass(eq=False, repr=False)
class ColumnFacts(Facts):
    """Counts of one column's values."""

    column: Column = field(metadata=_NOT_ADDED)
    empty: int = 0  # with `infinite`: missing values: null or NaN (the frame library decides which), and infinite ones
    infinite: int = 0
    # with `above`: finite values outside the bounds; with a scale range, values beyond the radius from its center
    below: int = 0
    above: int = 0
    between: int = 0  # of a Boolean: values between 0 and 1
    unknown: int = 0  # values that are not a level
    # values that are neither missing nor of the kind that the column needs: its `missing` rule applies, and a refused
    # type stops a release. In a categorical column such a value is an unknown level.
    unreadable: int = 0
    like_numbers: int = 0  # those that are text and would be numbers if the column were converted
    # by decimal mark, and mark between groups of three digits: those that are text and would be numbers with them
    marks: Counter[tuple[str, str]] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)  # of a date: those that would be dates in another format
    midnight: int = 0  # of a date: values later on the day of the upper bound, which is its midnight
    types: Counter[str] = field(default_factory=Counter)  # rows by a type of the column that stops a release
    levels: Counter[int] = field(default_factory=Counter)  # rows by the index of their level
    # values found `below` and `above` the bounds, `unknown` levels, and `unreadable` text by its form, with every digit as 9
    found: dict[str, ValueSample] = field(default_factory=dict)
    # where a public value takes the place of missing ones, in rows that no rule drops: missing values, others, and the sum
    # of these in small steps between the bounds
    filled: int = 0
    present: int = 0
    steps: int = 0
    shift: ShiftFacts | None = field(default=None, metadata=_NOT_ADDED)  # computed from these when all are counted
    labels: Mapping[str, str] = field(default_factory=dict, metadata=_NOT_ADDED)  # of codes, in the table's file

    def add_found(self, what: str, values: Mapping[CellValue, int]) -> None:
        """Count values of a kind."""
        if values:
            self.found.setdefault(what, ValueSample()).add(values)

    def values(self, what: str) -> list[FoundValue]:
        """Return the values found, most frequent first."""
        result = self.found.get(what, ValueSample()).most_frequent_first()
        if what != "unknown" or not isinstance(self.column, Categorical):
            return result
        levels = self.column.levels
        return [FoundValue(one.value, one.cells, *nearest_level(one.value, levels)) for one in result]

    @property
    def all_values_listed(self) -> bool:
        """True if these are all values, False for a sample."""
        return all(sample.complete for what, sample in self.found.items() if what in ("unknown", "unreadable"))

    @property
    def codes(self) -> list[str]:
        """Repeated numbers that make up nearly all of the values below or above the bounds."""
        below, above = (self.found.get(side, ValueSample()) for side in ("below", "above"))
        bounds = self.column.bounds
        return [*below.codes(self.below, bounds, self.labels), *above.codes(self.above, bounds, self.labels)]

    @property
    def missing(self) -> int:
        """Number of values to which the column's ``missing`` rule applies."""
        return self.empty + self.infinite

    @property
    def stops(self) -> bool:
        """True if a release stops with an error at this column."""
        return bool(self.types or (self.column.missing == "error" and (self.missing or self.unreadable)))

    @property
    def never_seen(self) -> list[str | int]:
        """Declared levels without a row."""
        levels = self.column.levels if isinstance(self.column, Categorical) else ()
        return [level for index, level in enumerate(levels) if not self.levels[index]]

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, private."""
        plain: dict[str, Any] = {
            "empty": self.empty,
            "unreadable": self.unreadable,
            "like_numbers": self.like_numbers,
            "types": sorted(self.types),
            "unreadable_values": self._plain_values("unreadable"),
            "all_values_listed": self.all_values_listed,
            "stops": self.stops,
        }
        if isinstance(self.column, Categorical):
            known = () if self.column.finds_levels else self.column.levels
            levels = {str(level): self.levels[index] for index, level in enumerate(known)}
            return plain | {"unknown": self.unknown, "unknown_values": self._plain_values("unknown"), "levels": levels}
        return plain | {
            "infinite": self.infinite,
            "probable_codes": self.codes,
            "numbers_with_other_marks": [
                {"decimal": decimal, "thousands": thousands or None, "cells": cells}
                for (decimal, thousands), cells in self.marks.items()
            ],
            "below": self.below,
            "above": self.above,
            "between": self.between,
            "later_on_the_day_of_the_upper_bound": self.midnight,
            "dates_in_another_format": dict(self.formats),
            "shift": None if self.shift is None else asdict(self.shift) | {"budget": self.shift.budget.to_dict()},
        }

    def _plain_values(self, what: str) -> list[dict[str, Any]]:
        return [
            {"kind": found.value[0], "text": found.value[1], "cells": found.cells}
            | ({"nearest": found.nearest} if what == "unknown" else {})
            for found in self.values(what)
        ]


@dataclass(frozen=True, repr=False)
class AbsentColumn:
    """Column of the schema that the table lacks: its name there and in the table.

    ``close`` is the similar name of a column of the table, if any; ``others`` are the columns that the schema does not use.
    """

    column: str
    name: str
    close: str | None
    others: tuple[str, ...] = ()


@dataclass(eq=False, repr=False)
class UnitFacts(Facts):
    """Counts of privacy units."""

    privacy_unit: PrivacyUnit = field(metadata=_NOT_ADDED)
    missing: int = 0  # rows without a unit
    # values that cannot name a unit: the unit's `missing` rule applies, and a refused type stops a release
    unreadable: int = 0
    types: Counter[str] = field(default_factory=Counter)  # rows by a type of the column that stops a release
    # units with kept rows, and those above the contribution bound; counted in passes of their own
    counts: UnitCounts = field(default_factory=lambda: UnitCounts(0, 0, 0, 0, 0, 0.0, 0.0), metadata=_NOT_ADDED)

    @property
    def stops(self) -> bool:
        """True if a release stops with an error at this column."""
        return bool(self.types or (self.privacy_unit.missing == "error" and (self.missing or self.unreadable)))

    @property
    def rule_text(self) -> str:
        """Units whose rows are left out, or whose weights are reduced."""
        if self.privacy_unit.max_rows is None:
            return "a total weight above the cap"
        return f"more than {self.privacy_unit.max_rows:,} {'row' if self.privacy_unit.max_rows == 1 else 'rows'}"

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, private."""
        bounded = "weight" if self.privacy_unit.max_rows is None else "rows"
        return {
            **self.privacy_unit.to_dict(),
            "rows_without_a_unit": self.missing,
            "unreadable": self.unreadable,
            "types": sorted(self.types),
            "units": self.counts.units,
            "rows": self.counts.rows,
            f"units_with_more_{bounded}": self.counts.units_over,
            f"rows_of_units_with_more_{bounded}": self.counts.rows_of_units_over,
            "rows_that_do_not_count": self.counts.beyond,
            "stops": self.stops,
        }


@dataclass(eq=False, repr=False)
class TableFacts(Facts):
    """Counts of a table's rows."""

    schema: Schema = field(metadata=_NOT_ADDED)
    columns: dict[str, ColumnFacts]
    # every rule that can drop rows, in schema order, those of a privacy unit last
    rules: dict[tuple[str, str], RuleFacts]
    derived: dict[str, int]  # rows in which a derived feature uses a clipped or filled-in value
    unit: UnitFacts | None  # with a privacy unit
    rows: int = 0  # rows read
    kept: int = 0  # rows that a release counts: not dropped, and within the contribution bound
    stopping: int = 0  # rows with a value that stops a release
    whole: int = 0  # kept rows without such a value, before the contribution bound
    shortened: int = 0  # those that the row-norm bound, or the ball, scales down
    # lines of delimited files with more or fewer fields than the first, which stop a release; not among the rows
    ragged: int = 0
    text_rows: int = 0  # rows that hold text in every column of numbers, dates and Booleans, of two or more
    # a column of the table whose name is that of an identifier, its values and its rows, if no privacy unit is given
    repeated: tuple[str, int, int] | None = field(default=None, metadata=_NOT_ADDED)
    # sums over kept rows with sampling weights: of the weights, of the capped ones, and of the squares of these
    weights: float = 0.0
    capped_weights: float = 0.0
    squared_weights: float = 0.0
    failures: list[str] = field(default_factory=list)  # files that could not be read to their end
    # columns of the schema that the table lacks; `schema` has the others
    absent: tuple[AbsentColumn, ...] = field(default=(), metadata=_NOT_ADDED)

    @classmethod
    def of(cls, schema: Schema, privacy_unit: PrivacyUnit | None) -> TableFacts:
        """Return the facts of no rows."""

        def dropping() -> Iterator[tuple[str, str]]:
            for column in schema.table_columns:
                if column.missing == "drop":
                    yield column.name, "missing"
                if isinstance(column, Categorical) and column.other == "drop":
                    yield column.name, "other"
            if privacy_unit is not None and privacy_unit.missing == "drop":
                yield privacy_unit.column, "missing"

        return cls(
            schema,
            {column.name: ColumnFacts(column) for column in schema.table_columns},
            {rule: RuleFacts(*rule) for rule in dropping()},
            {column.name: 0 for column in schema.derived_columns},
            None if privacy_unit is None else UnitFacts(privacy_unit),
        )

    def limit_units(self, counts: UnitCounts) -> None:
        """Set the counts of units, and keep what is within the contribution bound."""
        assert self.unit is not None, "the table was checked for rows"
        self.unit.counts = counts
        if self.unit.privacy_unit.max_rows is None:
            self.capped_weights, self.squared_weights = counts.capped_weights, counts.squared_weights
            return
        self.kept -= counts.beyond
        rule = self.unit.privacy_unit.column, self.unit.rule_text
        self.rules[rule] = RuleFacts(*rule, *(3 * [counts.beyond]))

    @property
    def stops(self) -> bool:
        """True if a release of this table stops with an error."""
        of_unit = self.unit is not None and self.unit.stops
        return (
            bool(self.failures or self.ragged or self.absent)
            or of_unit
            or any(column.stops for column in self.columns.values())
        )

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, private."""
        return {
            "private": True,
            "a_release_stops": self.stops,
            "rows": self.rows,
            "rows_kept": self.kept,
            "rows_with_a_cell_at_which_a_release_stops": self.stopping,
            "rows_kept_without_these": self.whole,
            "rows_shortened": self.shortened,
            "rules": [vars(rule).copy() for rule in self.rules.values()],
            "columns": {name: column.to_plain() for name, column in self.columns.items()},
            "derived": self.derived,
            "lines_with_more_or_fewer_cells": self.ragged,
            "rows_of_text": self.text_rows,
            "repeated_identifier": self.repeated,
            "files_not_read_to_their_end": self.failures,
            "absent_columns": [asdict(column) | {"others": list(column.others)} for column in self.absent],
            "privacy_unit": None if self.unit is None else self.unit.to_plain(),
        }


def nearest_level(value: CellValue, levels: Sequence[str | int]) -> tuple[str | int | None, bool]:
    """Return the most similar declared level, and True if only the spelling differs."""
    if value[0] not in ("text", "number"):
        return None, False
    text = _folded(value[1])
    by_text: dict[str, str | int] = {}
    by_number: dict[float, str | int] = {}
    for level in levels:
        folded = _folded(str(level))
        by_text.setdefault(folded, level)
        if (number := _number(folded)) is not None:
            by_number.setdefault(number, level)
    if text in by_text:
        return by_text[text], True
    if (number := _number(text)) is not None and number in by_number:
        return by_number[number], True
    close = difflib.get_close_matches(text, by_text, n=1, cutoff=_ALIKE) if text else []
    return (by_text[close[0]], False) if close else (None, False)


def _folded(text: str) -> str:
    """Normalize case, spaces and Unicode spellings, which readers overlook."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _number(text: str) -> float | None:
    with suppress(ValueError):
        number = float(text)
        return number if math.isfinite(number) else None
    return None
