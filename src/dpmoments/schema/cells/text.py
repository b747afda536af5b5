"""Numbers, Booleans and dates in text values, in a given text format.

With the default format they are read as Arrow's CSV reader does: spaces and tabs around a number are ignored, ``inf``
and ``nan`` in any case are non-finite numbers, and null markers are compared exactly. Times with a zone are converted to UTC;
times without one are assumed to be in UTC. Fractions of a microsecond are cut off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmoments.base.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_format import TextFormat
from dpmoments.schema.cells.objects import NO_LEVEL
from dpmoments.schema.column import texts_of
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema.dates import MICROSECONDS, MONTHS, Date, date_pattern

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
    marks = column.missing_values or ()
    if isinstance(column, Boolean):
        return bool(marks or column.codes)
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


# Dates and times, in microseconds since 1970.

FARTHEST = 2**62
"""Max microseconds from 1970: 146,000 years, outside all bounds. Times beyond are clipped."""


def text_dates(cells: Any, column: Date, text_format: TextFormat, *, only_empty: bool = False) -> TextCells:
    """Convert a column of text to dates."""
    # If `only_empty`, only the empty text is a null marker, as in frames.
    distinct = pc.dictionary_encode(_plain_texts(cells), null_encoding="encode")  # a table has fewer days than rows
    readable, broken = decoded_bytes(distinct.dictionary)
    marks = texts_of(column.missing_values or ())
    nothing = is_nothing(readable, (*(("",) if only_empty else text_format.null_markers), *marks))
    pattern = date_pattern(column.format)
    parts = pc.extract_regex(pc.utf8_trim(readable, " \t"), pattern)
    times, possible = _times(parts, re.findall(r"\(\?P<(\w+)>", pattern))
    result = TextCells.of(pa.array(without_marks(column.numbers(times), column)), nothing, pa.array(possible))
    if broken.any():  # what is not UTF-8 is no date
        result = TextCells(
            np.where(broken, np.nan, result.values), result.missing & ~broken, result.unparsable | broken
        )
    indices = distinct.indices.to_numpy(zero_copy_only=False)
    return TextCells(result.values[indices], result.missing[indices], result.unparsable[indices])


def without_marks(values: FloatArray, column: Date) -> FloatArray:
    """Replace the dates that mean a missing value by NaN."""
    if column.missing_numbers:
        values[np.isin(values, column.missing_numbers)] = np.nan
    return values


def scaled(counts: Any, factor: int) -> IntegerArray:
    """Multiply counts by ``factor`` microseconds, limited to ``FARTHEST``; 0 if null."""
    plain = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    most = FARTHEST // factor
    scaled: IntegerArray = np.clip(plain, -most, most) * factor
    return scaled


def nulls(chunk: Any) -> BoolArray:
    """Return the mask of null values, shape (n,)."""
    return np.asarray(pc.is_null(chunk).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _times(parts: Any, groups: list[str]) -> tuple[IntegerArray, BoolArray]:
    """Compute microseconds since 1970 from date parts, and a mask of valid days and times."""
    matched = ~nulls(parts)

    def whole(group: str, usual: int = 0) -> IntegerArray:
        if group not in groups:
            return np.full(len(parts), usual, dtype=np.int64)
        texts = pc.utf8_ltrim(pc.struct_field(parts, groups.index(group)), " ")
        given = pc.if_else(pc.equal(pc.binary_length(texts), 0), str(usual), texts)  # a part that may be left out
        return scaled(pc.cast(given, pa.int64()), 1)

    year, month, day = whole("year"), whole("month"), whole("day")
    if "short_year" in groups:
        short = whole("short_year")
        year = np.where(short < 69, 2000, 1900) + short
    if "month_name" in groups:
        names = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, groups.index("month_name")), 0, 3))
        month = scaled(pc.index_in(names, pa.array(MONTHS, names.type)), 1) + 1
    hour, minute, second = whole("hour"), whole("minute"), whole("second")
    possible = matched & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    possible &= (hour < 24) & (minute < 60) & (second < 60)
    first = _first_of_month(np.where(possible, year, 1970), np.where(possible, month, 1))
    following = _first_of_month(np.where(possible, year + month // 12, 1970), np.where(possible, month % 12 + 1, 2))
    possible &= day <= following - first
    times = ((first + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second) * MICROSECONDS
    if "fraction" in groups:
        digits = pc.utf8_slice_codeunits(pc.struct_field(parts, groups.index("fraction")), 0, 6)
        times += scaled(pc.cast(pc.utf8_rpad(digits, 6, "0"), pa.int64()), 1)
    if "zone" in groups:
        minutes, in_a_day = _zone_minutes(pc.struct_field(parts, groups.index("zone")))
        times -= minutes * 60 * MICROSECONDS
        possible &= in_a_day
    return np.where(possible, times, 0), possible


def _first_of_month(year: IntegerArray, month: IntegerArray) -> IntegerArray:
    """Compute days from 1970 to the first of a month, in the Gregorian calendar throughout."""
    months = (year - 1970) * 12 + month - 1
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _zone_minutes(zones: Any) -> tuple[IntegerArray, BoolArray]:
    """Convert zones such as ``+01:30`` to minutes ahead of UTC, and a mask of those below a day."""
    texts = pc.replace_substring(pc.fill_null(zones, ""), ":", "")
    plain = pc.if_else(pc.is_in(texts, pa.array(["", "Z"], texts.type)), "+0000", pc.utf8_rpad(texts, 5, "0"))
    hours = scaled(pc.cast(pc.utf8_slice_codeunits(plain, 1, 3), pa.int64()), 1)
    minutes = scaled(pc.cast(pc.utf8_slice_codeunits(plain, 3, 5), pa.int64()), 1)
    ahead = np.where(pc.starts_with(plain, "-").to_numpy(zero_copy_only=False), -1, 1)
    return ahead * (hours * 60 + minutes), (hours < 24) & (minutes < 60)
