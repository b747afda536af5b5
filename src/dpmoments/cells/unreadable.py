"""Cells read one column at a time without stopping: which of them a release could not read, and what stands in them.

A release stops at the first cell that it cannot read. Here each such cell is found, by the same readers, so that all faults of a
table can be told at once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpmoments.array_types import BoolArray, FloatArray
from dpmoments.cells.dates import text_dates
from dpmoments.cells.objects import object_texts
from dpmoments.cells.reading import MISSING, UNKNOWN, CodeArray, level_codes, numbers
from dpmoments.cells.text_numbers import TextCells, null_words, text_flags, text_numbers
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Date, Numeric
from dpmoments.table_libraries import pa, pc
from dpmoments.text_files.text_format import TextFormat

__all__ = [
    "CellValue",
    "LevelCells",
    "NumberCells",
    "UnreadableColumn",
    "decoded_without",
    "raised_by_reading",
    "read_level_cells",
    "read_number_cells",
    "refused_objects",
    "type_in_words",
    "without_objects",
]

NumberColumn = Numeric | Date | Boolean | Coordinate
CellValue = tuple[Literal["text", "number", "form", "type"], str]
"""A cell as text, and what it is: text, a number, the form of a text (every digit a 9), or the name of its type."""
NOT_UTF8: CellValue = ("type", "text that is not UTF-8")
DIGITS = re.compile(r"\d")


def raised_by_reading() -> tuple[type[Exception], ...]:
    """What is raised where a cell cannot be read."""
    return TypeError, ValueError, ArithmeticError, pa.ArrowException


@dataclass(frozen=True, repr=False)
class UnreadableColumn:
    """In place of the cells of a column whose type no reader takes."""

    kind: str
    n_cells: int


@dataclass(frozen=True, eq=False, repr=False)
class NumberCells:
    """Cells of a column of numbers.

    Attributes
    ----------
    values : ndarray of shape (n,)
        NaN where a cell is missing or unreadable.
    unreadable : ndarray of bool, shape (n,)
        Cells at which a release stops.
    kind : str or None
        The column's type, where a release stops at that, whatever the cells.
    found : mapping of CellValue to int
        What the unreadable cells hold, and in how many of them; text by its form, so that no number is read off it.
    like_numbers : int
        How many of them are text that would be a number.
    """

    values: FloatArray
    unreadable: BoolArray
    kind: str | None = None
    found: Mapping[CellValue, int] = field(default_factory=dict)
    like_numbers: int = 0


@dataclass(frozen=True, eq=False, repr=False)
class LevelCells:
    """Cells of a categorical column.

    Attributes
    ----------
    codes : ndarray of shape (n,)
        As :func:`dpmoments.cells.reading.level_codes` gives them; MISSING where a cell is unreadable.
    unreadable, kind, found
        As those of :class:`NumberCells`.
    unknown : mapping of CellValue to int
        Values that are no level, and in how many cells.
    """

    codes: CodeArray
    unreadable: BoolArray
    kind: str | None = None
    found: Mapping[CellValue, int] = field(default_factory=dict)
    unknown: Mapping[CellValue, int] = field(default_factory=dict)


def read_number_cells(cells: Any, column: NumberColumn, *, written: TextFormat | None = None) -> NumberCells:
    """Read the cells of a column of numbers, whatever they hold.

    Parameters
    ----------
    cells : pyarrow.Array, pyarrow.ChunkedArray, ndarray of objects or UnreadableColumn, length n
    column : Numeric, Date, Boolean or Coordinate
    written : TextFormat, optional
        How they are written, where they are the bytes of a text file.

    Examples
    --------
    >>> read = read_number_cells(np.array([1, "12.5", "n/a", None], dtype=object), Numeric("age", 0, 120))
    >>> read.values.tolist(), read.unreadable.tolist(), read.like_numbers, dict(read.found)
    ([1.0, nan, nan, nan], [False, True, True, False], 1, {('form', 'n/a'): 1})
    """
    if isinstance(cells, UnreadableColumn):
        return NumberCells(np.full(cells.n_cells, np.nan), np.ones(cells.n_cells, dtype=bool), cells.kind)
    if written is not None:
        texts, _ = decoded_bytes(cells)  # what is not UTF-8 is no number either
        return _of_texts(texts, column, _read_texts(texts, column, written))
    if isinstance(column, Date) and (dates := _as_texts(cells)) is not None:
        return _of_texts(dates, column, text_dates(dates, column, TextFormat(), only_empty=True))
    try:
        values = numbers(cells, column)
    except raised_by_reading():  # told below, cell by cell
        values = np.full(len(cells), np.nan)
    else:
        return NumberCells(values, np.zeros(len(cells), dtype=bool))
    if isinstance(cells, np.ndarray):
        unreadable = refused_objects(cells, lambda cell: numbers(cell, column))
        values = numbers(without_objects(cells, unreadable), column)
        found, like_numbers = _forms(Counter(map(_written, cells[unreadable])), column)
        return NumberCells(values, unreadable, found=found, like_numbers=like_numbers)
    kind, unreadable = type_in_words(cells.type), np.ones(len(cells), dtype=bool)
    if (texts := _as_texts(cells)) is None:
        return NumberCells(values, unreadable, kind)
    unreadable = ~_flags(pc.is_null(texts))
    found, like_numbers = _forms(_counted(texts, unreadable), column)
    return NumberCells(values, unreadable, kind, found, like_numbers)


def read_level_cells(cells: Any, column: Categorical, *, written: TextFormat | None = None) -> LevelCells:
    """Read the cells of a categorical column, whatever they hold.

    Parameters
    ----------
    cells : pyarrow.Array, pyarrow.ChunkedArray, ndarray of objects or UnreadableColumn, length n
    column : Categorical
    written : TextFormat, optional
        As for :func:`read_number_cells`.

    Examples
    --------
    >>> read = read_level_cells(pa.array(["A", "a", "a", None]), Categorical("ward", ["A", "B"]))
    >>> read.codes.tolist(), dict(read.unknown)
    ([0, -1, -1, -2], {('text', 'a'): 2})
    """
    if isinstance(cells, UnreadableColumn):
        return LevelCells(np.full(cells.n_cells, MISSING), np.ones(cells.n_cells, dtype=bool), cells.kind)
    unreadable = np.zeros(len(cells), dtype=bool)
    found: Counter[CellValue] = Counter()
    if written is not None:
        cells, unreadable = decoded_without(cells, null_words(column, written))
        found = Counter({NOT_UTF8: int(unreadable.sum())} if unreadable.any() else {})
    elif isinstance(cells, np.ndarray):
        integers = isinstance(column.levels[0], int)
        try:
            object_texts(cells, column.name, integers=integers)
        except raised_by_reading():
            unreadable = refused_objects(cells, lambda cell: object_texts(cell, column.name, integers=integers))
            found = Counter(map(_written, cells[unreadable]))
            cells = without_objects(cells, unreadable)
    try:
        codes = level_codes(cells, column)
    except raised_by_reading():
        return LevelCells(np.full(len(cells), MISSING), np.ones(len(cells), dtype=bool), type_in_words(cells.type))
    unknown = codes == UNKNOWN
    return LevelCells(codes, unreadable, None, found, _counted(cells, unknown) if unknown.any() else {})


def _of_texts(texts: Any, column: NumberColumn, read: TextCells) -> NumberCells:
    found, _ = _forms(_counted(texts, read.unparseable), column) if read.unparseable.any() else ({}, 0)
    return NumberCells(read.values, read.unparseable, found=found)


def _read_texts(texts: Any, column: NumberColumn, written: TextFormat) -> TextCells:
    if isinstance(column, Date):
        return text_dates(texts, column, written)
    return (text_flags if isinstance(column, Boolean) else text_numbers)(texts, written)


def refused_objects(cells: npt.NDArray[Any], read: Callable[[npt.NDArray[Any]], Any]) -> BoolArray:
    """Which objects a reader does not take, each alone, shape (n,)."""
    refused = np.zeros(len(cells), dtype=bool)
    for place in range(len(cells)):
        try:
            read(cells[place : place + 1])
        except raised_by_reading():
            refused[place] = True
    return refused


def without_objects(cells: npt.NDArray[Any], refused: BoolArray) -> npt.NDArray[Any]:
    """The same objects, None in place of some."""
    kept = cells.copy()
    kept[refused] = None
    return kept


def decoded_bytes(cells: Any) -> tuple[Any, BoolArray]:
    """Bytes or text as text, and which of them are not UTF-8, shape (n,).

    Arrow looks at no byte of a text column that it is given, or reads from a file.
    """
    if pa.types.is_string_view(cells.type):
        cells = pc.cast(cells, pa.large_string())
    try:
        return pc.cast(cells, pa.large_binary()).cast(pa.large_string()), np.zeros(len(cells), dtype=bool)
    except pa.ArrowException:  # some cell is not: they are told one by one
        held = pc.cast(cells, pa.large_binary()).to_pylist()
        texts = [None if cell is None else cell.decode(errors="replace") for cell in held]
        whole = [text is None or text.encode() == cell for text, cell in zip(texts, held, strict=True)]
        return pa.array(texts, pa.large_string()), ~np.array(whole, dtype=bool)


def decoded_without(cells: Any, nulls: Sequence[str]) -> tuple[Any, BoolArray]:
    """As :func:`decoded_bytes`, null where a cell is not UTF-8 or one of the words for nothing."""
    texts, unreadable = decoded_bytes(cells)
    nothing = pc.or_(pa.array(unreadable), pc.is_in(texts, pa.array(nulls, texts.type)))
    return pc.if_else(nothing, pa.scalar(None, texts.type), texts), unreadable


def _counted(cells: Any, wanted: BoolArray) -> Counter[CellValue]:
    """What stands in the wanted cells."""
    found: Counter[CellValue] = Counter()
    if isinstance(cells, np.ndarray):
        return Counter(map(_written, cells[wanted]))
    start = 0
    for part in cells.chunks if isinstance(cells, pa.ChunkedArray) else [cells]:
        chosen = wanted[start : start + len(part)]
        start += len(part)
        if not chosen.any():
            continue
        plain = pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part
        if pa.types.is_dictionary(plain.type):
            values, indices = plain.dictionary, pc.fill_null(plain.indices, 0).to_numpy(zero_copy_only=False)
            places, times = np.unique(indices[chosen], return_counts=True)
            values = _countable(values).take(pa.array(places))
        else:
            counted = _countable(plain).take(pa.array(np.flatnonzero(chosen))).value_counts()
            values, times = counted.field("values"), counted.field("counts").to_numpy()
        if _is_text(values.type):
            values, broken = decoded_bytes(values)
        else:
            broken = np.zeros(len(values), dtype=bool)
        for value, is_broken, number in zip(values.to_pylist(), broken.tolist(), times.tolist(), strict=True):
            found[NOT_UTF8 if is_broken else _written(value)] += number
    return found


def _countable(cells: Any) -> Any:
    """The same cells in a type of which Arrow can count the values."""
    if pa.types.is_string_view(cells.type):
        return pc.cast(cells, pa.large_string())
    return pc.cast(cells, pa.float32()) if pa.types.is_float16(cells.type) else cells


def _forms(found: Mapping[CellValue, int], column: NumberColumn) -> tuple[Counter[CellValue], int]:
    """Texts by their form, and how many are numbers; these are in no form."""
    texts = [text for kind, text in found if kind == "text"]
    numeric = ~np.isnan(_read_texts(pa.array(texts, pa.large_string()), column, TextFormat()).values)
    like = {text for text, is_number in zip(texts, numeric.tolist(), strict=True) if is_number}
    forms: Counter[CellValue] = Counter()
    for (kind, text), times in found.items():
        if kind != "text":
            forms[kind, text] += times
        elif text not in like:
            forms["form", DIGITS.sub("9", text)] += times
    return forms, sum(times for (kind, text), times in found.items() if kind == "text" and text in like)


def _written(cell: object) -> CellValue:
    """A cell as text; what is neither text nor a number is told by its type alone."""
    if isinstance(cell, str):
        return "text", cell.encode(errors="replace").decode()
    if isinstance(cell, bool | np.bool_):
        return "type", "true or false"
    if isinstance(cell, int | np.integer):
        return "number", str(cell) if abs(int(cell)) < 10**40 else "an integer of more than 40 digits"
    if isinstance(cell, float | np.floating):
        number = float(cell)  # a whole one is written as its integer, as the readers take it
        return "number", str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else repr(number)
    return "type", type(cell).__name__


def _as_texts(cells: Any) -> Any | None:
    """Cells of any type of text as large_string, shape (n,); None where they are of another type."""
    if isinstance(cells, np.ndarray):
        return None
    whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
    parts = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    plain = [pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part for part in parts]
    for part in plain:
        if not _is_text(part.type.value_type if pa.types.is_dictionary(part.type) else part.type):
            return None
    return pa.concat_arrays([pa.array([], pa.large_string()), *map(_texts, plain)])


def _texts(part: Any) -> Any:
    if not pa.types.is_dictionary(part.type):
        return decoded_bytes(part)[0]
    return decoded_bytes(part.dictionary)[0].take(part.indices)


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _flags(cells: Any) -> BoolArray:
    found: BoolArray = cells.to_numpy(zero_copy_only=False).astype(bool)
    return found


def type_in_words(kind: Any) -> str:
    return "nested values" if pa.types.is_nested(kind) else str(kind)
