"""What a preflight found in a table: exact counts, for the curator's eyes alone."""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpmoments.inspection.unreadable import CellValue
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.schema.columns import Categorical, Column
from dpmoments.schema.schema import Schema

_ALIKE = 0.6
"""Least similarity (difflib) of a value and the level that is named beside it."""


@dataclass(frozen=True, repr=False)
class FoundValue:
    """A value that is no level of its column, or that cannot be read.

    Attributes
    ----------
    value : CellValue
        Its beginning, where it is long.
    nearest : str or int or None
        The declared level that is most like it.
    same : bool
        Whether it differs from that level in case, blanks or the way of writing a number alone.
    """

    value: CellValue
    cells: int
    nearest: str | int | None = None
    same: bool = False


@dataclass(frozen=True, repr=False)
class RuleFacts:
    """Rows that one rule of one column drops: all, those that no rule before it drops, and those that no other drops."""

    column: str
    rule: str
    rows: int
    first: int
    alone: int


@dataclass(frozen=True, eq=False, repr=False)
class ColumnFacts:
    """Cells of one column.

    Attributes
    ----------
    empty, infinite : int
        Cells that are missing: null or NaN (which of the two, the frame library decides), and infinite ones.
    below, above : int
        Finite cells outside the bounds; of a column with a rough scale, cells farther from its centre than the radius.
    between : int
        Of a Boolean: cells between 0 and 1.
    unreadable : int
        Cells that hold neither what the column needs nor nothing: its ``missing`` rule applies, and where its type is refused a
        release stops. In a categorical column such a cell is an unknown level.
    like_numbers : int
        How many of these are text that would be a number, were the column converted.
    types : tuple of str
        Types of the column at which a release stops.
    unreadable_values, unknown_values : tuple of FoundValue
        Most frequent first; of unreadable text the form, in which every digit is a 9.
    complete : bool
        Whether these are all values, and not a sample.
    unknown : int
        Cells that are no level.
    levels : tuple of int
        Cells of every level.
    """

    column: Column
    empty: int
    infinite: int
    below: int
    above: int
    between: int
    unreadable: int
    like_numbers: int
    types: tuple[str, ...]
    unreadable_values: tuple[FoundValue, ...]
    unknown: int
    unknown_values: tuple[FoundValue, ...]
    complete: bool
    levels: tuple[int, ...]

    @property
    def missing(self) -> int:
        """Cells to which the column's ``missing`` rule applies."""
        return self.empty + self.infinite

    @property
    def stops(self) -> bool:
        """Whether a release stops with an error at this column."""
        return bool(self.types or (self.column.missing == "error" and (self.missing or self.unreadable)))

    @property
    def never_seen(self) -> tuple[str | int, ...]:
        """Declared levels that no cell has."""
        if not isinstance(self.column, Categorical):
            return ()
        return tuple(level for level, cells in zip(self.column.levels, self.levels, strict=True) if not cells)


@dataclass(frozen=True, repr=False)
class UnitFacts:
    """Whose rows they are, where rows belong to units of several.

    Attributes
    ----------
    missing : int
        Rows without a unit.
    unreadable : int
        Cells that cannot name a unit: the unit's ``missing`` rule applies, and where the type is refused a release stops.
    types : tuple of str
        Types of the column at which a release stops.
    units, rows : int
        Units that have rows which no rule drops, and these rows.
    units_over, rows_of_units_over : int
        Units with more rows than count, and their rows.
    beyond : int
        Rows of these that do not count.
    """

    privacy_unit: PrivacyUnit
    missing: int
    unreadable: int
    types: tuple[str, ...]
    units: int
    rows: int
    units_over: int
    rows_of_units_over: int
    beyond: int

    @property
    def stops(self) -> bool:
        """Whether a release stops with an error at this column."""
        return bool(self.types or (self.privacy_unit.missing == "error" and (self.missing or self.unreadable)))

    @property
    def rule_text(self) -> str:
        """Of which units rows are left out."""
        return f"more than {self.privacy_unit.max_rows:,} {'row' if self.privacy_unit.max_rows == 1 else 'rows'}"

    def to_plain(self) -> dict[str, Any]:
        """Plain values, private."""
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
    """Rows and cells of a table.

    Attributes
    ----------
    rows : int
        Rows read.
    kept : int
        Rows that no rule drops, and of a unit with too many as many as count: those that a release counts.
    stopping : int
        Rows with a cell at which a release stops.
    whole : int
        Rows that no rule drops and that have no such cell, before those of a unit are bounded.
    shortened : int
        Of these, rows that the row norm, or the ball, shortens.
    rules : tuple of RuleFacts
        Every rule that can drop rows, in the schema's order, those of a privacy unit last.
    derived : mapping of str to int
        Derived feature → rows in which it rests on a cell that was moved or filled in.
    ragged : int
        Lines of delimited files with more or fewer cells than the first, which stop a release; they are not among the rows.
    failures : tuple of str
        Files that could not be read to their end.
    unit : UnitFacts or None
        Where rows belong to units of several.
    """

    schema: Schema
    rows: int
    kept: int
    stopping: int
    whole: int
    shortened: int
    columns: tuple[ColumnFacts, ...]
    rules: tuple[RuleFacts, ...]
    derived: Mapping[str, int]
    ragged: int
    failures: tuple[str, ...]
    unit: UnitFacts | None = None

    @property
    def stops(self) -> bool:
        """Whether a release of this table stops with an error."""
        of_unit = self.unit is not None and self.unit.stops
        return bool(self.failures or self.ragged) or of_unit or any(column.stops for column in self.columns)

    def to_plain(self) -> dict[str, Any]:
        """Plain values, private."""
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
        "below": facts.below,
        "above": facts.above,
        "between": facts.between,
    }


def _plain_value(found: FoundValue) -> dict[str, Any]:
    kind, text = found.value
    return {"kind": kind, "text": text, "cells": found.cells}


def nearest_level(value: CellValue, levels: Sequence[str | int]) -> tuple[str | int | None, bool]:
    """The declared level that a value is most like, and whether they differ in their writing alone.

    Examples
    --------
    >>> nearest_level(("text", " icu"), ["A", "B", "ICU"]), nearest_level(("text", "01"), [1, 2])
    (('ICU', True), (1, True))
    >>> nearest_level(("text", "surgrey"), ["surgery", "medicine"]), nearest_level(("text", "x"), ["surgery"])
    (('surgery', False), (None, False))
    """
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
    """Text without what a reader overlooks: case, blanks around and in it, ways of writing the same letters."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _number(text: str) -> float | None:
    with suppress(ValueError):
        number = float(text)
        return number if math.isfinite(number) else None
    return None
