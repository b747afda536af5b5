"""Reading of columns without stopping.

Which values a release could not read, and what they hold.

A release stops at the first column whose type it refuses and, depending on the rules, at the first unreadable value.
Here the same readers find all of them, so that all faults of a table are reported at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from dpmoments.base.arrays import BoolArray
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_format import TextFormat
from dpmoments.schema.cells.objects import read_objects
from dpmoments.schema.cells.reading import MISSING, UNKNOWN, NumberColumn, level_codes, numbers, text_values
from dpmoments.schema.cells.text import (
    TextCells,
    column_format,
    decoded_bytes,
    decoded_levels,
    decoded_without,
    is_text,
    null_markers,
    text_numbers,
)
from dpmoments.schema.cells.units import nameless_cells, unit_ids
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric

CellValue = tuple[Literal["text", "number", "form", "type"], str]
"""Kind and text of a value.

Text, a number, the form of a text (every digit a 9), or the name of its type.
"""
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

    # (n,): numbers, NaN if missing or unreadable; codes of :func:`dpmoments.schema.cells.reading.level_codes`;
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
            values, wrong = numbers(cells, column)
        except _raised_by_reading():
            refused = ReadCells.of_type(np.full(len(cells), np.nan), cells.type)
            if (texts := _as_texts(cells)) is None:
                return refused
            cells, values, kind = texts, refused.values, refused.kind
            wrong = pc.is_valid(texts).to_numpy(zero_copy_only=False).astype(bool)
        unreadable = np.zeros(len(cells), dtype=bool) if wrong is None else wrong
    counted = _counted(cells, unreadable)
    forms, like_numbers = _forms(counted, column) if counted else (counted, 0)
    return ReadCells(
        values,
        unreadable,
        kind,
        forms,
        like_numbers if written is None else 0,
        _other_marks(counted, column, written) if counted else {},
    )


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


def _other_marks(
    values: Mapping[CellValue, int], column: NumberColumn, written: TextFormat | None = None
) -> dict[tuple[str, str], int]:
    """Count the texts that would be numbers with the other decimal mark.

    >>> from dpmoments.schema.columns import Numeric
    >>> _other_marks({("text", "1,5"): 3, ("text", "1.234,5"): 2, ("text", "x"): 9}, Numeric("pay", 0, 1))
    {(',', ''): 3, (',', '.'): 5}
    """
    if not isinstance(column, Numeric):
        return {}
    texts = [text for kind, text in values if kind == "text"]
    cells, decimal = pa.array(texts, pa.large_string()), "," if column_format(column, written).decimal == "." else "."
    counts: dict[tuple[str, str], int] = {}
    for thousands in ("", "." if decimal == "," else ","):
        numbers = text_numbers(cells, TextFormat(decimal=decimal, thousands=thousands or None)).values
        like = {text for text, value in zip(texts, numbers.tolist(), strict=True) if np.isfinite(value)}
        counts[decimal, thousands] = sum(values["text", text] for text in like)
    return counts


def _read_texts(texts: Any, column: NumberColumn, written: TextFormat) -> TextCells:
    read = text_values(texts, column, written)
    if isinstance(column, Boolean | Date):
        return read
    values = numbers(pa.array(read.values), column)[0]  # without those that mean a missing one
    return TextCells(values, np.isnan(values) & ~read.unparsable | read.missing, read.unparsable)


def _counted(cells: Any, wanted: BoolArray) -> Counter[CellValue]:
    result: Counter[CellValue] = Counter()
    if isinstance(cells, np.ndarray):
        return Counter(read_objects(cells[wanted], written_value, ("type", "object")))
    start = 0
    for part in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        chosen = wanted[start : start + len(part)]
        start += len(part)
        if not chosen.any():
            continue
        plain = pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part
        if pa.types.is_dictionary(plain.type):
            plain, indices = plain.dictionary, pc.fill_null(plain.indices, 0).to_numpy(zero_copy_only=False)
            positions, times = np.unique(indices[chosen], return_counts=True)
        else:
            positions, times = np.flatnonzero(chosen), None
        if pa.types.is_string_view(plain.type):
            plain = pc.cast(plain, pa.large_string())
        if pa.types.is_float16(plain.type):  # whose values Arrow cannot count
            plain = pc.cast(plain, pa.float32())
        values = plain.take(pa.array(positions))
        if times is None:
            counts = values.value_counts()
            values, times = counts.field("values"), counts.field("counts").to_numpy()
        if is_text(values.type):
            values, broken = decoded_bytes(values)
        else:
            broken = np.zeros(len(values), dtype=bool)
        for value, is_broken, number in zip(values.to_pylist(), broken.tolist(), times.tolist(), strict=True):
            result[_NOT_UTF8 if is_broken else written_value(value)] += number
    return result


def _forms(counts: Mapping[CellValue, int], column: NumberColumn) -> tuple[Counter[CellValue], int]:
    """Return counts of texts by form, and the count of those that are numbers, which have none."""
    texts = [text for kind, text in counts if kind == "text"]
    numeric = ~np.isnan(_read_texts(pa.array(texts, pa.large_string()), column, TextFormat()).values)
    like = {text for text, is_number in zip(texts, numeric.tolist(), strict=True) if is_number}
    forms: Counter[CellValue] = Counter()
    for (kind, text), times in counts.items():
        if kind != "text":
            forms[kind, text] += times
        elif text not in like:
            forms["form", _DIGITS.sub("9", text)] += times
    return forms, sum(times for (kind, text), times in counts.items() if kind == "text" and text in like)


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
        number = (
            float.__float__(cell) if isinstance(cell, float) else float(cell)
        )  # a whole one is written as its integer, as the readers take it
        return "number", str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else repr(number)
    return "type", type(cell).__name__


def _as_texts(cells: Any) -> Any | None:
    """Convert text of any type to large_string, shape (n,); None for other types."""
    if isinstance(cells, np.ndarray):
        return None
    whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    parts = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    plain = [pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part for part in parts]
    for part in plain:
        if not is_text(part.type.value_type if pa.types.is_dictionary(part.type) else part.type):
            return None
    texts = [
        decoded_bytes(part.dictionary)[0].take(part.indices)
        if pa.types.is_dictionary(part.type)
        else decoded_bytes(part)[0]
        for part in plain
    ]
    return pa.concat_arrays([pa.array([], pa.large_string()), *texts])
