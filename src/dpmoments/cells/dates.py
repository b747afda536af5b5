"""Dates and times as numbers in a column's unit since its origin.

Times with a zone are converted to UTC; times without one are assumed to be in UTC. Every value is read by itself: a
column of objects may mix both, and dates with times. Fractions of a microsecond are cut off.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.cells.objects import plain_object, read_objects, utf8_text
from dpmoments.cells.text_numbers import TextCells, decoded_bytes, is_nothing, is_text
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputTypeError
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.text_format import TextFormat
from dpmoments.schema.column import texts_of
from dpmoments.schema.dates import MICROSECONDS, MONTHS, Date, date_pattern

_PER_SECOND = {"s": 1, "ms": 1_000, "us": MICROSECONDS, "ns": 1_000_000_000}
_DAY = 86_400 * MICROSECONDS
_FARTHEST = 2**62
"""Max microseconds from 1970: 146,000 years, outside all bounds. Times beyond are clipped."""
_EPOCH = dt.datetime(1970, 1, 1)
_UNREADABLE: Any = object()
"""Placeholder of an object that is not a date."""
_IntegerArray = npt.NDArray[np.int64]


def date_numbers(chunk: Any, column: Date) -> tuple[FloatArray, BoolArray | None]:
    """Convert an Arrow array of dates, timestamps, text or nulls to float64.

    NaN if missing or unreadable.

    The second result marks texts that are not dates in the column's format, None without any.

    >>> column = Date("day", "2020-01-01", "2021-01-01")
    >>> date_numbers(pa.array(["2020-01-31", None, "2020-01-31T12:00:00+01:00"]), column)
    (array([30.        ,         nan, 30.45833333]), None)
    """
    kind = chunk.type
    if pa.types.is_null(kind):
        return np.full(len(chunk), np.nan), None
    if is_text(kind):
        read = text_dates(chunk, column, TextFormat(), only_empty=True)
        return read.values, read.unparsable if read.unparsable.any() else None
    if pa.types.is_date32(kind):
        times = _scaled(pc.cast(chunk, pa.int32()), _DAY)
    elif pa.types.is_date64(kind):
        times = _scaled(pc.cast(chunk, pa.int64()), 1_000)
    elif pa.types.is_timestamp(kind):  # with a zone or without, it counts from 1970 in UTC
        per_second = _PER_SECOND[kind.unit]
        counts = pc.cast(chunk, pa.int64())
        if per_second <= MICROSECONDS:
            times = _scaled(counts, MICROSECONDS // per_second)
        else:
            times = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False).astype(np.int64) // 1_000
    else:
        raise InputTypeError(
            f"column '{column.name}' has a type without dates; a date column needs dates, timestamps or text: "
            "convert it, or describe it as Numeric"
        )
    result = column.numbers(times)
    result[_nulls(chunk)] = np.nan
    return _without_marks(result, column), None


def object_dates(cells: npt.NDArray[np.object_], column: Date) -> tuple[FloatArray, BoolArray | None]:
    """Convert dates, times and text among Python objects like :func:`date_numbers`."""
    # Other objects are unreadable.
    result = np.full(len(cells), np.nan)
    unreadable = np.zeros(len(cells), dtype=bool)
    texts: list[str | None] = [None] * len(cells)
    for index, moment in enumerate(read_objects(cells, _moment, _UNREADABLE)):
        if isinstance(moment, str):
            texts[index] = moment
        elif moment is _UNREADABLE:
            unreadable[index] = True
        elif moment is not None:
            result[index] = column.numbers(np.array([moment]))[0]
    if any(text is not None for text in texts):
        parsed, wrong = date_numbers(pa.array(texts, pa.large_string()), column)
        result = np.where(np.isnan(parsed), result, parsed)
        unreadable |= False if wrong is None else wrong
    return _without_marks(result, column), unreadable if unreadable.any() else None


def text_dates(cells: Any, column: Date, text_format: TextFormat, *, only_empty: bool = False) -> TextCells:
    """Convert a column of text to dates."""
    # If `only_empty`, only the empty text is a null marker, as in frames.
    texts = pc.cast(cells, pa.large_string())
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    distinct = pc.dictionary_encode(texts, null_encoding="encode")  # a table has fewer days than rows
    readable, broken = decoded_bytes(distinct.dictionary)
    marks = texts_of(column.missing_values or ())
    nothing = is_nothing(readable, (*(("",) if only_empty else text_format.null_markers), *marks))
    pattern = date_pattern(column.format)
    parts = pc.extract_regex(pc.utf8_trim(readable, " \t"), pattern)
    times, possible = _times(parts, re.findall(r"\(\?P<(\w+)>", pattern))
    result = TextCells.of(pa.array(_without_marks(column.numbers(times), column)), nothing, pa.array(possible))
    if broken.any():  # what is not UTF-8 is no date
        result = TextCells(
            np.where(broken, np.nan, result.values), result.missing & ~broken, result.unparsable | broken
        )
    indices = distinct.indices.to_numpy(zero_copy_only=False)
    return TextCells(result.values[indices], result.missing[indices], result.unparsable[indices])


def _without_marks(values: FloatArray, column: Date) -> FloatArray:
    """Replace the dates that mean a missing value by NaN."""
    if column.missing_numbers:
        values[np.isin(values, column.missing_numbers)] = np.nan
    return values


def _moment(cell: object) -> Any:
    """Convert to microseconds since 1970 in UTC."""
    # Text stays, None if missing, ``_UNREADABLE`` if not a date.
    cell = plain_object(cell)
    if cell is None:
        return None
    if isinstance(cell, str):
        text = utf8_text(cell)
        return _UNREADABLE if text is None else text
    if isinstance(cell, np.datetime64):
        days = int(cell.astype("datetime64[D]").astype(np.int64))
        if abs(days) > _FARTHEST // _DAY:
            return _FARTHEST if days > 0 else -_FARTHEST
        return int(cell.astype("datetime64[us]").astype(np.int64))
    if isinstance(cell, dt.datetime):
        shift = cell.utcoffset() or dt.timedelta(0)
        return int((cell.replace(tzinfo=None) - _EPOCH - shift) // dt.timedelta(microseconds=1))
    if isinstance(cell, dt.date):
        return int((cell - _EPOCH.date()).days) * _DAY
    return _UNREADABLE


def _scaled(counts: Any, factor: int) -> _IntegerArray:
    """Multiply counts by ``factor`` microseconds, limited to ``_FARTHEST``; 0 if null."""
    plain = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    most = _FARTHEST // factor
    scaled: _IntegerArray = np.clip(plain, -most, most) * factor
    return scaled


def _nulls(chunk: Any) -> BoolArray:
    return np.asarray(pc.is_null(chunk).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _times(parts: Any, groups: list[str]) -> tuple[_IntegerArray, BoolArray]:
    """Compute microseconds since 1970 from date parts, and a mask of valid days and times."""
    matched = ~_nulls(parts)

    def whole(group: str, usual: int = 0) -> _IntegerArray:
        if group not in groups:
            return np.full(len(parts), usual, dtype=np.int64)
        texts = pc.utf8_ltrim(pc.struct_field(parts, groups.index(group)), " ")
        given = pc.if_else(pc.equal(pc.binary_length(texts), 0), str(usual), texts)  # a part that may be left out
        return _scaled(pc.cast(given, pa.int64()), 1)

    year, month, day = whole("year"), whole("month"), whole("day")
    if "short_year" in groups:
        short = whole("short_year")
        year = np.where(short < 69, 2000, 1900) + short
    if "month_name" in groups:
        names = pc.utf8_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, groups.index("month_name")), 0, 3))
        month = _scaled(pc.index_in(names, pa.array(MONTHS, names.type)), 1) + 1
    hour, minute, second = whole("hour"), whole("minute"), whole("second")
    possible = matched & (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    possible &= (hour < 24) & (minute < 60) & (second < 60)
    first = _first_of_month(np.where(possible, year, 1970), np.where(possible, month, 1))
    following = _first_of_month(np.where(possible, year + month // 12, 1970), np.where(possible, month % 12 + 1, 2))
    possible &= day <= following - first
    times = ((first + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second) * MICROSECONDS
    if "fraction" in groups:
        digits = pc.utf8_slice_codeunits(pc.struct_field(parts, groups.index("fraction")), 0, 6)
        times += _scaled(pc.cast(pc.utf8_rpad(digits, 6, "0"), pa.int64()), 1)
    if "zone" in groups:
        minutes, in_a_day = _zone_minutes(pc.struct_field(parts, groups.index("zone")))
        times -= minutes * 60 * MICROSECONDS
        possible &= in_a_day
    return np.where(possible, times, 0), possible


def _first_of_month(year: _IntegerArray, month: _IntegerArray) -> _IntegerArray:
    """Compute days from 1970 to the first of a month, in the Gregorian calendar throughout."""
    months = (year - 1970) * 12 + month - 1
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _zone_minutes(zones: Any) -> tuple[_IntegerArray, BoolArray]:
    """Convert zones such as ``+01:30`` to minutes ahead of UTC, and a mask of those below a day."""
    texts = pc.replace_substring(pc.fill_null(zones, ""), ":", "")
    plain = pc.if_else(pc.is_in(texts, pa.array(["", "Z"], texts.type)), "+0000", pc.utf8_rpad(texts, 5, "0"))
    hours = _scaled(pc.cast(pc.utf8_slice_codeunits(plain, 1, 3), pa.int64()), 1)
    minutes = _scaled(pc.cast(pc.utf8_slice_codeunits(plain, 3, 5), pa.int64()), 1)
    ahead = np.where(pc.starts_with(plain, "-").to_numpy(zero_copy_only=False), -1, 1)
    return ahead * (hours * 60 + minutes), (hours < 24) & (minutes < 60)
