"""Facts found by a preflight check: exact counts, for the curator only."""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpmoments.inspection.unreadable import CellValue
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.schema.columns import Categorical, Column
from dpmoments.schema.schema import Schema

_ALIKE = 0.6
"""Min similarity (difflib) of a value and the level suggested for it."""


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


@dataclass(frozen=True, repr=False)
class RuleFacts:
    """Rows that one rule of one column drops.

    All of them, those not dropped by an earlier rule, and those dropped by no other.
    """

    column: str
    rule: str
    rows: int
    first: int
    alone: int


@dataclass(frozen=True, repr=False)
class ShiftFacts:
    """Shift of a column's mean by fill values, among rows that no rule drops."""

    cells: int  # values put in place of missing or unreadable ones
    mean: float  # mean with these less the mean of the other values, clipped to the bounds; in original units
    # noise SD of the mean of a release with `budget`, in original units; None if it is not known beforehand
    noise: float | None
    budget: PrivacyBudget

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, private."""
        return {"cells": self.cells, "mean": self.mean, "noise": self.noise, "budget": self.budget.to_dict()}


@dataclass(frozen=True, eq=False, repr=False)
class ColumnFacts:
    """Counts of one column's values."""

    column: Column
    empty: int  # with `infinite`: missing values: null or NaN (the frame library decides which), and infinite ones
    infinite: int
    # with `above`: finite values outside the bounds; with a scale range, values beyond the radius from its center
    below: int
    above: int
    between: int  # of a Boolean: values between 0 and 1
    # values that are neither missing nor of the kind that the column needs: its `missing` rule applies, and a refused
    # type stops a release. In a categorical column such a value is an unknown level.
    unreadable: int
    like_numbers: int  # those that are text and would be numbers if the column were converted
    # decimal mark, mark between groups of three digits, and the number of those that are text and would be numbers with them
    marks: tuple[tuple[str, str, int], ...]
    codes: tuple[CellValue, ...]  # repeated numbers that make up nearly all of the values below or above the bounds
    types: tuple[str, ...]  # types of the column that stop a release
    # with `unknown_values`: most frequent first; unreadable text by its form, with every digit as 9
    unreadable_values: tuple[FoundValue, ...]
    unknown: int  # values that are not a level
    unknown_values: tuple[FoundValue, ...]
    complete: bool  # true if these are all values, False for a sample
    levels: tuple[int, ...]  # count of every level
    shift: ShiftFacts | None  # None unless the column's rule fills missing values, and it has missing and other values

    @property
    def missing(self) -> int:
        """Number of values to which the column's ``missing`` rule applies."""
        return self.empty + self.infinite

    @property
    def stops(self) -> bool:
        """True if a release stops with an error at this column."""
        return bool(self.types or (self.column.missing == "error" and (self.missing or self.unreadable)))

    @property
    def never_seen(self) -> tuple[str | int, ...]:
        """Declared levels without a row."""
        if not isinstance(self.column, Categorical):
            return ()
        return tuple(level for level, cells in zip(self.column.levels, self.levels, strict=True) if not cells)


@dataclass(frozen=True, repr=False)
class AbsentColumn:
    """Column of the schema that the table lacks: its name there and in the table.

    ``close`` is the similar name of a column of the table, if any; ``others`` are the columns that the schema does not use.
    """

    column: str
    name: str
    close: str | None
    others: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, private."""
        return {"column": self.column, "name": self.name, "close": self.close, "others": list(self.others)}


@dataclass(frozen=True, repr=False)
class UnitFacts:
    """Counts of privacy units."""

    privacy_unit: PrivacyUnit
    missing: int  # rows without a unit
    # values that cannot name a unit: the unit's `missing` rule applies, and a refused type stops a release
    unreadable: int
    types: tuple[str, ...]  # types of the column that stop a release
    units: int  # with `rows`: units with kept rows, and these rows
    rows: int
    units_over: int  # with `rows_of_units_over`: units above the contribution bound, and their rows
    rows_of_units_over: int
    beyond: int  # rows of these above the bound

    @property
    def stops(self) -> bool:
        """True if a release stops with an error at this column."""
        return bool(self.types or (self.privacy_unit.missing == "error" and (self.missing or self.unreadable)))

    @property
    def rule_text(self) -> str:
        """Units whose rows are left out."""
        return f"more than {self.privacy_unit.max_rows:,} {'row' if self.privacy_unit.max_rows == 1 else 'rows'}"

    def to_plain(self) -> dict[str, Any]:
        """Return plain values, private."""
        return {
            **self.privacy_unit.to_dict(),
            "rows_without_a_unit": self.missing,
            "unreadable": self.unreadable,
            "types": list(self.types),
            "units": self.units,
            "rows": self.rows,
            "units_with_more_rows": self.units_over,
            "rows_of_units_with_more_rows": self.rows_of_units_over,
            "rows_that_do_not_count": self.beyond,
            "stops": self.stops,
        }


@dataclass(frozen=True, eq=False, repr=False)
class TableFacts:
    """Counts of a table's rows."""

    schema: Schema
    rows: int  # rows read
    kept: int  # rows that a release counts: not dropped, and within the contribution bound
    stopping: int  # rows with a value that stops a release
    whole: int  # kept rows without such a value, before the contribution bound
    shortened: int  # those that the row-norm bound, or the ball, scales down
    columns: tuple[ColumnFacts, ...]
    rules: tuple[RuleFacts, ...]  # every rule that can drop rows, in schema order, those of a privacy unit last
    derived: Mapping[str, int]  # derived feature → rows in which it uses a clipped or filled-in value
    # lines of delimited files with more or fewer fields than the first, which stop a release; not among the rows
    ragged: int
    failures: tuple[str, ...]  # files that could not be read to their end
    unit: UnitFacts | None = None  # with a privacy unit
    absent: tuple[AbsentColumn, ...] = ()  # columns of the schema that the table lacks; `schema` has the others

    @property
    def stops(self) -> bool:
        """True if a release of this table stops with an error."""
        of_unit = self.unit is not None and self.unit.stops
        return (
            bool(self.failures or self.ragged or self.absent) or of_unit or any(column.stops for column in self.columns)
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
            "rules": [vars(rule).copy() for rule in self.rules],
            "columns": {column.column.name: _plain_column(column) for column in self.columns},
            "derived": dict(self.derived),
            "lines_with_more_or_fewer_cells": self.ragged,
            "files_not_read_to_their_end": list(self.failures),
            "absent_columns": [column.to_plain() for column in self.absent],
            "privacy_unit": None if self.unit is None else self.unit.to_plain(),
        }


def _plain_column(facts: ColumnFacts) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "empty": facts.empty,
        "unreadable": facts.unreadable,
        "like_numbers": facts.like_numbers,
        "types": list(facts.types),
        "unreadable_values": [_plain_value(value) for value in facts.unreadable_values],
        "all_values_listed": facts.complete,
        "stops": facts.stops,
    }
    if isinstance(facts.column, Categorical):
        levels = dict(zip(map(str, facts.column.levels), facts.levels, strict=True))
        unknown = [_plain_value(value) | {"nearest": value.nearest} for value in facts.unknown_values]
        return plain | {"unknown": facts.unknown, "unknown_values": unknown, "levels": levels}
    return plain | {
        "infinite": facts.infinite,
        "probable_codes": [text for _, text in facts.codes],
        "numbers_with_other_marks": [
            {"decimal": decimal, "thousands": thousands or None, "cells": cells}
            for decimal, thousands, cells in facts.marks
        ],
        "below": facts.below,
        "above": facts.above,
        "between": facts.between,
        "shift": None if facts.shift is None else facts.shift.to_plain(),
    }


def _plain_value(sample: FoundValue) -> dict[str, Any]:
    kind, text = sample.value
    return {"kind": kind, "text": text, "cells": sample.cells}


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
