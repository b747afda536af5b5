"""Values of tables, in their many types, read as numbers or levels.

The same for a release and for a prediction.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.table_libraries import nw, pa, pc
from dpmoments.base.text_files import TextFormat
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.schema.column import texts_of
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema.dates import MICROSECONDS, MONTHS, Date, date_pattern

# Columns of frames and arrays as values, and Python objects read one by one.
#
# A column of objects may hold anything. A type inferred for a whole batch would let one row's value decide how another's
# is read, and so would an error: an unreadable object affects only itself, whatever its methods raise.

ObjectArray = npt.NDArray[np.object_]
Found = TypeVar("Found")

NO_LEVEL = "\0 no level"
"""Text of a value that cannot be a level."""


def series_cells(series: nw.Series[Any], name: str) -> Any:
    """Return a frame column's values as Arrow arrays or an array of Python objects."""
    # Only its type decides which.
    native = series.to_native()
    native_type = getattr(native, "dtype", None)
    # Arrow cannot join chunks whose dictionaries hold nulls.
    if isinstance(native, pa.ChunkedArray):
        return native
    if hasattr(native_type, "pyarrow_dtype"):
        return native.array.__arrow_array__()
    # Of objects in pandas, narwhals would look at cells for a type; Python's texts may have halves of surrogate pairs.
    of_categories = getattr(getattr(native_type, "categories", None), "dtype", native_type)
    objects = isinstance(of_categories, np.dtype) and of_categories.kind == "O"
    objects |= of_categories is not native_type and getattr(of_categories, "storage", None) == "python"
    if objects or series.dtype == nw.Object:
        return np.asarray(native.to_numpy(), dtype=object)
    if isinstance(native_type, np.dtype) and (native_type.kind == "f" or not native_type.isnative):
        return array_cells(series.to_numpy())
    with suppress(Exception):  # whose message may quote a cell
        return series.to_arrow()
    if getattr(native_type, "storage", None) == "python":  # text, one of which has half of a surrogate pair
        held = [
            str.__str__(cell).encode(errors="surrogatepass") if isinstance(cell, str) else None
            for cell in series.to_list()
        ]
        return pa.array(held, pa.large_binary()).view(pa.large_string())
    raise InputTypeError(f"column '{name}' of the frame does not hold plain numbers or text: convert it first")


def array_cells(cells: npt.NDArray[Any]) -> Any:
    """Return an Arrow array of the declared width, NaN kept, or an array of Python objects."""
    if cells.dtype.kind == "O":
        return cells
    held = np.float64 if cells.dtype.char == "g" else cells.dtype.newbyteorder("=")
    with np.errstate(over="ignore", invalid="ignore"):  # a long double beyond float64 is infinite
        return pa.array(np.ascontiguousarray(cells, dtype=held))


def object_numbers(cells: ObjectArray) -> tuple[npt.NDArray[np.float64], BoolArray]:
    """Convert Python, NumPy and decimal numbers and Booleans to float64.

    NaN if missing or unreadable. The second result marks objects of other types. None, NaN and pandas' missing values
    are missing.
    """
    result = read_objects(cells, _number, None)
    unreadable = np.fromiter((number is None for number in result), np.bool_, len(result))
    return np.array(result, dtype=np.float64), unreadable  # None becomes NaN


def object_texts(cells: ObjectArray, *, integers: bool) -> Any:
    """Convert strings and integers to a large_string array.

    Null if missing, ``NO_LEVEL`` if they cannot be levels. If ``integers``, the column's levels are integers, and
    floats such as 3.0 are allowed.
    """
    texts: list[str | None] = read_objects(cells, lambda cell: _text(plain_object(cell), integers), NO_LEVEL)
    return pa.array(texts, pa.large_string())


def read_objects(cells: Iterable[object], read: Callable[[Any], Found], unreadable: Found) -> list[Found]:
    """Read each object; return ``unreadable`` for those whose methods raise."""
    with suppress(Exception):  # which is found again below
        return [read(cell) for cell in cells]
    result = []
    for cell in cells:
        try:
            result.append(read(cell))
        except Exception:  # told by the caller; what is raised may quote the cell
            result.append(unreadable)
    return result


def plain_object(cell: object) -> Any:
    """Return a value as a plain object, without the methods of its own type; None if missing."""
    # These may raise, or warn and quote the value. Floats of NumPy keep their width; what no reader accepts stays.
    kind = type(cell)
    if cell is None or kind.__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, float):
        number = float.__float__(cell)
        return None if math.isnan(number) else number
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, int):
        return cell if kind is bool else int.__int__(cell)
    if isinstance(cell, bytes):
        return bytes.__getitem__(cell, slice(None))
    if isinstance(cell, Decimal):
        return None if Decimal.is_nan(cell) else cell
    if isinstance(cell, np.generic) and kind.__module__ == "numpy":
        if isinstance(cell, np.datetime64):
            return None if np.isnat(cell) else cell
        if isinstance(cell, np.floating):
            return None if np.isnan(cell) else cell
        return cell.item() if isinstance(cell, np.integer | np.bool_) and kind is not np.timedelta64 else cell
    return cell


def utf8_text(plain: object) -> str | None:
    """Return a plain object if it is text of UTF-8, else None."""
    if type(plain) is str:
        with suppress(UnicodeEncodeError):
            plain.encode()
            return plain
    return None


def _number(cell: object) -> float | None:
    """Convert an object to a number: NaN if missing, None if unreadable."""
    if type(cell) is float:  # as most of them are
        return cell
    plain = plain_object(cell)
    if plain is None:
        return math.nan
    kind = type(plain)
    try:
        if kind in (float, int, bool, Fraction) or (isinstance(plain, np.floating) and kind.__module__ == "numpy"):
            return float(plain)
        return Decimal.__float__(plain) if isinstance(plain, Decimal) else None
    except OverflowError:  # an integer or a fraction beyond the range of float64
        return math.inf if plain > 0 else -math.inf


def _text(plain: Any, integers: bool) -> str | None:
    if plain is None:
        return None
    if type(plain) is int:
        # Python refuses to write out integers of thousands of digits, and none of them is a level.
        return str(plain) if abs(plain) < 10**1000 else NO_LEVEL
    if isinstance(plain, float | np.floating):
        number = float(plain)
        if integers:
            return str(number + 0.0)  # −0.0 becomes 0.0
        # Whole numbers as their integers, as in a column of floats; no other number is a level.
        return str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else NO_LEVEL
    text = utf8_text(plain)
    return NO_LEVEL if text is None else text


_READABLE_KINDS = "biufOUSTM"
"""Kinds of NumPy types that a column may have; the column's reader decides about bytes."""
_ARROW_TIMES = ("D", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable:
    """Table of equally long columns that do not share a library or a type.

    Columns come from :func:`declared_column`.
    """

    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) > 1:
            raise InputValueError("the columns of the table have different lengths: each needs one value per row")

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def cells(self, name: str, part: slice = slice(0, None)) -> Any:  # narwhals 2.0 refuses slice(None)
        """Return the values of some rows of a column: an Arrow array, or an array of Python objects."""
        column = self.columns[name][part]
        if isinstance(column, nw.Series):
            return series_cells(column, name)
        if column.dtype.kind in "UT":  # Arrow would refuse all cells for half of a surrogate pair in one
            texts = (
                cell.encode(errors="replace").decode() if isinstance(cell, str) else None for cell in column.tolist()
            )
            return pa.array(texts, pa.large_string())
        if column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] not in _ARROW_TIMES:
            return objects_of(column, len(column))
        with suppress(pa.ArrowException, TypeError, ValueError):  # whose message may quote a cell
            return array_cells(column)
        raise InputTypeError(f"column '{name}' cannot be converted to plain numbers or text: convert it first")


def declared_column(values: Any, name: str) -> Any:
    """Return a column as a NumPy array or a narwhals Series, of its declared type.

    The array has one dimension. Lists, tuples and other sequences declare no type: they become arrays of objects, so
    that no value decides how another is read.
    """
    library = type(values).__module__.split(".")[0]
    if library == "pyarrow" and isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    elif library == "pandas" and hasattr(values, "dtype") and not hasattr(values, "iloc"):  # an index, or bare cells
        import pandas

        values = pandas.Series(values, dtype=values.dtype)
    series = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    cells = declared_array(values, name)
    if cells.ndim != 1:
        raise InputValueError(f"column '{name}' must have one dimension, one value per row, and has {cells.ndim}")
    if cells.dtype.kind not in _READABLE_KINDS:
        raise InputTypeError(
            f"column '{name}' has NumPy's type {cells.dtype.type.__name__}, which is not a type of numbers, "
            "text or dates: convert it"
        )
    return cells


def declared_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return an array of the values' declared type; a sequence becomes an array of objects."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(
            f"'{name}' is a masked array, whose mask would be lost: fill it, array.filled(np.nan), and choose "
            "each column's missing rule"
        )
    if isinstance(values, list | tuple):
        return objects_of(values, len(values))
    elsewhere = type(values).__module__.split(".")[0] in ("dask", "pyspark")
    if not elsewhere and (isinstance(values, memoryview | array) or hasattr(values, "__array__")):
        return np.asarray(values)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return objects_of(values, len(values))
    raise InputTypeError(
        f"'{name}' must be an array, a list, or a column of a frame in memory, got {type(values).__name__}: "
        "convert it, for instance to a NumPy array"
    )


def objects_of(cells: Iterable[object], n_cells: int) -> npt.NDArray[np.object_]:
    """Return an array of objects, shape (n_cells,); a list among them is one value."""
    return np.fromiter(cells, dtype=object, count=n_cells)


# Numbers, Booleans and dates in text values, in a given text format.
#
# With the default format they are read as Arrow's CSV reader does: spaces and tabs around a number are ignored, ``inf``
# and ``nan`` in any case are non-finite numbers, and null markers are compared exactly. Times with a zone are converted to UTC;
# times without one are assumed to be in UTC. Fractions of a microsecond are cut off.


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
        nulls = tuple(text for text in nulls if text not in (*true, *false))
        words = {"true": true, "false": false} if true or false else {"true": stated.true, "false": stated.false}
        options = {option: tuple(text for text in texts if text not in nulls) for option, texts in words.items()}
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
    trimmed = pc.utf8_trim(pc.fill_null(texts, ""), " \t")
    whole, mark = r"\d+", re.escape(text_format.decimal)
    if text_format.thousands is not None:
        whole = rf"(?:\d{{1,3}}(?:{re.escape(text_format.thousands)}\d{{3}})+|\d+)"
    finite = rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"
    pattern = rf"^[+-]?(?:{finite}|(?i:inf|infinity|nan(?:\([A-Za-z0-9_]*\))?))$"
    readable = pc.match_substring_regex(trimmed, pattern)

    # Without thousands marks, and with a point as the decimal mark.
    thousands, decimal = text_format.thousands, text_format.decimal
    if not (decimal + (thousands or "")).isascii() or not len(trimmed):
        trimmed = trimmed if thousands is None else pc.replace_substring(trimmed, thousands, "")
        trimmed = pc.replace_substring(trimmed, decimal, ".")
    elif thousands is not None or decimal != ".":
        # Byte by byte, three times as fast: no byte of another character in UTF-8 is that of an ASCII mark.
        _, offsets, held = trimmed.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[trimmed.offset : trimmed.offset + len(trimmed) + 1]
        content = np.frombuffer(held or b"", dtype=np.uint8)[: ends[-1]]
        if thousands is not None:
            kept = content != ord(thousands)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)])[ends]
            content = content[kept]
        plain = np.where(content == ord(decimal), np.uint8(ord(".")), content)
        trimmed = pa.LargeStringArray.from_buffers(len(trimmed), pa.py_buffer(ends), pa.py_buffer(plain))

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


def _as_flags(flags: Any) -> BoolArray:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


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
    nothing = pc.and_not(nothing, pa.array(broken))
    pattern = date_pattern(column.format)
    parts = pc.extract_regex(pc.utf8_trim(readable, " \t"), pattern)
    times, possible = _times(parts, re.findall(r"\(\?P<(\w+)>", pattern))
    values = pa.array(without_marks(column.numbers(times), column))
    result = TextCells.of(values, nothing, pa.array(possible & ~broken))  # what is not UTF-8 is no date
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

    def whole(group: str) -> IntegerArray:
        if group not in groups:
            return np.zeros(len(parts), dtype=np.int64)
        texts = pc.utf8_ltrim(pc.struct_field(parts, groups.index(group)), " ")
        given = pc.if_else(pc.equal(pc.binary_length(texts), 0), "0", texts)  # a part that may be left out
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
        zones = pc.fill_null(pc.struct_field(parts, groups.index("zone")), "")
        texts = pc.replace_substring(zones, ":", "")
        texts = pc.if_else(pc.is_in(texts, pa.array(["", "Z"], texts.type)), "+0000", pc.utf8_rpad(texts, 5, "0"))
        hours = scaled(pc.cast(pc.utf8_slice_codeunits(texts, 1, 3), pa.int64()), 1)
        minutes = scaled(pc.cast(pc.utf8_slice_codeunits(texts, 3, 5), pa.int64()), 1)
        ahead = np.where(pc.starts_with(texts, "-").to_numpy(zero_copy_only=False), -1, 1)
        times -= ahead * (hours * 60 + minutes) * 60 * MICROSECONDS
        possible &= (hours < 24) & (minutes < 60)
    return np.where(possible, times, 0), possible


def _first_of_month(year: IntegerArray, month: IntegerArray) -> IntegerArray:
    """Compute days from 1970 to the first of a month, in the Gregorian calendar throughout."""
    months = (year - 1970) * 12 + month - 1
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
