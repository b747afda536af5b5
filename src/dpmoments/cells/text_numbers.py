"""Numbers and Booleans in text values, in a given text format; correctly rounded.

With the default format they are read as Arrow's CSV reader does: spaces and tabs around a number are ignored, ``inf``
and ``nan`` in any case are non-finite numbers, and null markers are compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmoments.cells.objects import NO_LEVEL
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.text_format import TextFormat
from dpmoments.schema.column import texts_of
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric

_BLANKS = " \t"


@dataclass(frozen=True, eq=False, repr=False)
class TextCells:
    """Parsed column of text."""

    values: FloatArray  # (n,), NaN if missing or not parseable
    missing: BoolArray  # (n,), missing values and non-finite numbers: the column's `missing` rule applies to them
    unparsable: BoolArray  # (n,), all other values that are not readable

    def __repr__(self) -> str:
        return "TextCells(values=<private>)"

    @classmethod
    def of(cls, values: Any, nothing: Any, readable: Any) -> TextCells:
        """Combine Arrow's results."""
        # Values, mask of missing values, and mask of readable ones among the others.
        empty = _as_flags(nothing)
        unparsable = ~empty & ~_as_flags(readable)
        result = np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)
        result[empty | unparsable] = np.nan
        return cls(result, ~np.isfinite(result) & ~unparsable, unparsable)


def column_format(column: Numeric | Date | Boolean | Coordinate, of_file: TextFormat | None = None) -> TextFormat:
    """Return the format of a column's text: what the column states, else that of its file.

    >>> german = Numeric("pay", 0, 100, decimal=",", missing_values=["k.A.", -9])
    >>> column_format(german, TextFormat(thousands=" ", nulls=["-"]))
    TextFormat(decimal=',', nulls=('-', 'k.A.', '-9', '-9.0'))
    """
    stated = TextFormat() if of_file is None else of_file
    if isinstance(column, Coordinate):
        return stated
    options: dict[str, Any] = {}
    nulls = (*stated.nulls, *texts_of(column.missing_values or ()))
    if isinstance(column, Numeric) and column.reads_text:
        options = {"decimal": column.decimal or ".", "thousands": column.thousands}
    if isinstance(column, Boolean):
        true, false = (texts_of(values or ()) for values in (column.true_values, column.false_values))
        if true or false:
            options = {"true": true, "false": false}
        nulls = tuple(text for text in nulls if text not in (*true, *false))
        options |= {
            "true": tuple(text for text in options.get("true", stated.true) if text not in nulls),
            "false": tuple(text for text in options.get("false", stated.false) if text not in nulls),
        }
    return replace(stated, nulls=tuple(dict.fromkeys(nulls)), **options)


def needs_text(column: Numeric | Date | Boolean | Coordinate) -> bool:
    """Return True if numbers in a text file are to be read in a format of the column's own.

    >>> needs_text(Numeric("pay", 0, 100, missing_values=[-9])), needs_text(Numeric("pay", 0, 100, missing_values=["-"]))
    (False, True)
    """
    if isinstance(column, Coordinate):
        return False
    marks = column.missing_values or ()
    if isinstance(column, Boolean):
        return bool(marks or column.true_values or column.false_values)
    usual = TextFormat().null_markers
    stated = any(isinstance(mark, str) and mark not in usual for mark in marks)
    return stated or (isinstance(column, Numeric) and column.reads_text)


def text_numbers(cells: Any, text_format: TextFormat) -> TextCells:
    """Parse a column of text as numbers."""
    texts = _plain_texts(cells)
    nothing = is_nothing(texts, text_format.null_markers)
    trimmed = pc.utf8_trim(pc.fill_null(texts, ""), _BLANKS)
    readable = pc.match_substring_regex(trimmed, _pattern(text_format))
    trimmed = _with_a_point(trimmed, text_format)
    usable = pc.fill_null(pc.and_(readable, pc.invert(nothing)), False)
    digits = pc.if_else(usable, trimmed, pa.scalar("nan", trimmed.type))
    return TextCells.of(pc.cast(digits, pa.float64()), nothing, readable)


def text_flags(cells: Any, text_format: TextFormat) -> TextCells:
    """Parse a column of text as Booleans, 0 and 1."""
    texts = _plain_texts(cells)
    nothing = is_nothing(texts, text_format.null_markers)
    true, false = (
        pc.is_in(texts, pa.array(words, texts.type)) for words in (text_format.true_markers, text_format.false_markers)
    )
    return TextCells.of(pc.cast(true, pa.float64()), nothing, pc.or_(true, false))


def decoded_bytes(cells: Any) -> tuple[Any, BoolArray]:
    """Convert bytes or text to text, and a mask of invalid UTF-8."""
    # Arrow checks no text that it gets or reads.
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
    """Decode like :func:`decoded_bytes`, with null for invalid UTF-8 and null markers."""
    texts, unreadable = decoded_bytes(cells)
    nothing = pc.or_(pa.array(unreadable), pc.is_in(texts, pa.array(nulls, texts.type)))
    return pc.if_else(nothing, pa.scalar(None, texts.type), texts), unreadable


def decoded_levels(cells: Any, nulls: Sequence[str]) -> tuple[Any, BoolArray]:
    """Decode like :func:`decoded_without`, with ``NO_LEVEL`` for invalid UTF-8."""
    texts, broken = decoded_without(cells, nulls)
    return pc.if_else(pa.array(broken), pa.scalar(NO_LEVEL, texts.type), texts), broken


def null_markers(column: Categorical | Date, text_format: TextFormat) -> list[str]:
    """Return the null markers of a column of text; of a categorical only stated ones."""
    # `NA` may be a level.
    if isinstance(column, Date):
        return list(text_format.null_markers)
    levels = set(map(str, column.levels))
    return [word for word in text_format.nulls if word not in levels]


def is_text(kind: Any) -> bool:
    """Return True for an Arrow type of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_nothing(texts: Any, null_markers: tuple[str, ...]) -> Any:
    """Mark texts that are null or a null marker."""
    return pc.or_(pc.is_null(texts), pc.is_in(texts, pa.array(null_markers, texts.type)))


def _plain_texts(cells: Any) -> Any:
    texts = pc.cast(cells, pa.large_string())
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _with_a_point(texts: Any, text_format: TextFormat) -> Any:
    """Remove thousands marks, and replace the decimal mark by a point."""
    thousands, decimal = text_format.thousands, text_format.decimal
    if not (decimal + (thousands or "")).isascii() or not len(texts):
        texts = texts if thousands is None else pc.replace_substring(texts, thousands, "")
        return pc.replace_substring(texts, decimal, ".")
    if thousands is None and decimal == ".":
        return texts
    # Byte by byte, three times as fast: no byte of another character in UTF-8 is that of an ASCII mark.
    _, offsets, held = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(held or b"", dtype=np.uint8)[: ends[-1]]
    if thousands is not None:
        kept = content != ord(thousands)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)])[ends]
        content = content[kept]
    plain = np.where(content == ord(decimal), np.uint8(ord(".")), content)
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(plain))


def _as_flags(flags: Any) -> BoolArray:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _pattern(text_format: TextFormat) -> str:
    """Return the RE2 pattern of a number in the format, without surrounding spaces."""
    whole, mark = r"\d+", re.escape(text_format.decimal)
    if text_format.thousands is not None:
        whole = rf"(?:\d{{1,3}}(?:{re.escape(text_format.thousands)}\d{{3}})+|\d+)"
    finite = rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"
    return rf"^[+-]?(?:{finite}|(?i:inf|infinity|nan(?:\([A-Za-z0-9_]*\))?))$"
