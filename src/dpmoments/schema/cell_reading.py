"""Values of Arrow arrays and of arrays of Python objects, read as numbers or as levels.

Text is compared with the levels exactly, spaces and case included; the empty text is a level if the column lists it.
Integer levels match integers, floats (an integer column with gaps) and text (``3`` or ``3.0``); if levels are text, a
whole number matches the text of its integer. No error names a value.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError
from dpmoments.base.table_libraries import pa, pc, type_name
from dpmoments.base.text_files import TextFormat
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.schema.cells import (
    FARTHEST,
    TextCells,
    column_format,
    decoded_bytes,
    is_text,
    nulls,
    object_numbers,
    object_texts,
    plain_object,
    read_objects,
    scaled,
    text_dates,
    text_flags,
    text_numbers,
    utf8_text,
    without_marks,
)
from dpmoments.schema.column import MarkedMissing, numbers_of, texts_of
from dpmoments.schema.columns import NAME_WORDS, OTHER, Boolean, Categorical, Coordinate, NameColumn, Numeric
from dpmoments.schema.dates import EPOCH, MICROSECONDS, Date

CodeArray = npt.NDArray[np.int64]
NumberColumn = Numeric | Date | Boolean | Coordinate

UNKNOWN, MISSING = -1, -2
"""Codes of values outside the column's levels, and of missing values."""


def numbers(cells: Any, column: NumberColumn) -> tuple[FloatArray, BoolArray]:
    """Convert values to float64, shape (n,), NaN if missing or unreadable.

    The second result marks values that are neither missing nor of the kind that the column needs.

    >>> numbers(pa.array([True, None, False]), Boolean("smoker"))
    (array([ 1., nan,  0.]), array([False, False, False]))
    >>> numbers(np.array([True, "yes"], dtype=object), Boolean("smoker"))
    (array([ 1., nan]), array([False,  True]))
    """
    if isinstance(column, Date):
        if isinstance(cells, np.ndarray):
            return object_dates(cells, column)
        return _gather_pairs(cells, lambda chunk: date_numbers(chunk, column))
    if not isinstance(cells, np.ndarray):
        return _gather_pairs(cells, lambda chunk: _plain_numbers(chunk, column))
    values, unreadable = object_numbers(cells)
    cleaned, wrong = _cleaned(values.copy(), column)
    # true and false themselves are no codes, as in a column of them
    flags = np.array(read_objects(cells, lambda cell: isinstance(cell, bool | np.bool_), False), dtype=bool)
    cleaned[flags] = values[flags]
    indices = np.flatnonzero(unreadable)
    unreadable |= wrong & ~flags
    texts = read_objects(cells[indices], lambda cell: utf8_text(plain_object(cell)), None)
    held = pa.array(texts, pa.large_string())
    if column.reads_text:
        cleaned[indices], unread = _numbers_of_text(held, column)
        unreadable[indices] = unread | np.array([text is None for text in texts], dtype=bool)
    elif column.missing_values:
        marks = pa.array(texts_of(column.missing_values), pa.large_string())
        unreadable[indices] = ~np.asarray(pc.is_in(held, marks).to_numpy(zero_copy_only=False), dtype=bool)
    return cleaned, unreadable


def text_values(texts: Any, column: NumberColumn, of_file: TextFormat | None = None) -> TextCells:
    """Parse text, of a file in a format if one is given, as a column's numbers or dates."""
    if isinstance(column, Date):
        return text_dates(texts, column, of_file or TextFormat())
    read = text_flags if isinstance(column, Boolean) else text_numbers
    return read(texts, column_format(column, of_file))


def _plain_numbers(chunk: Any, column: Numeric | Boolean | Coordinate) -> tuple[FloatArray, BoolArray]:
    """Convert an Arrow array to float64, and mark unreadable values, like :func:`numbers`."""
    kind = chunk.type
    if pa.types.is_boolean(kind):
        return _as_floats(pc.cast(chunk, pa.uint8())), np.zeros(len(chunk), dtype=bool)
    if is_text(kind) and column.reads_text:
        return _numbers_of_text(chunk, column)
    if pa.types.is_decimal(kind):
        # Through text, which rounds each cell correctly: the direct cast's rounding depends on the type's scale.
        chunk = pc.cast(chunk, pa.string())
    elif pa.types.is_temporal(kind):
        raise InputTypeError(
            f"column '{column.name}' holds dates or times, and a {column.kind} column needs numbers: describe "
            "it as Date, with dates for bounds"
        )
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        options = {"numeric": 'decimal="."', "boolean": "true_values and false_values"}.get(column.kind)
        or_read = f"; or state {options} in the schema, and text is read" if is_text(kind) and options else ""
        raise InputTypeError(
            f"column '{column.name}' has type {type_name(kind)} in the table and a {column.kind} column needs numbers: "
            f"convert it, or describe it as Categorical{or_read}"
        )
    return _cleaned(_as_floats(chunk), column, _FLOATS.get(str(kind)))


_FLOATS: Mapping[str, type[np.floating[Any]]] = {"float": np.float32, "halffloat": np.float16}
"""Types of floats that round a number of the schema, as they rounded the table's."""


def _as_floats(chunk: Any) -> FloatArray:
    values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)


def _numbers_of_text(chunk: Any, column: Numeric | Boolean | Coordinate) -> tuple[FloatArray, BoolArray]:
    texts, broken = decoded_bytes(chunk)
    read = text_values(texts, column)
    unreadable = read.unparsable | broken
    values = np.where(unreadable, np.nan, read.values)
    return values if isinstance(column, Boolean) else _cleaned(values, column)[0], unreadable


def _cleaned(
    values: FloatArray, column: Numeric | Boolean | Coordinate, held_as: type[np.floating[Any]] | None = None
) -> tuple[FloatArray, BoolArray]:
    """Apply the column's missing values and codes to numbers; mark numbers outside its codes."""
    # Only a column with codes marks any. Numbers of the schema are compared as the type ``held_as`` of the column
    # holds them.

    def among(marks: MarkedMissing) -> BoolArray:
        if not marks:
            return np.zeros(len(values), dtype=bool)
        numbers = np.array(numbers_of(marks))
        if held_as is not None:
            with np.errstate(over="ignore"):
                numbers = numbers.astype(held_as).astype(np.float64)
        return np.isin(values, numbers[np.isfinite(numbers)])  # infinite: no number that the column can hold

    missing, wrong = among(column.missing_values or ()), np.zeros(len(values), dtype=bool)
    if isinstance(column, Boolean) and numbers_of(column.codes):
        true, false = among(column.true_values or ()), among(column.false_values or ())
        wrong = np.isfinite(values) & ~missing & ~true & ~false & (values != 0.0) & (values != 1.0)
        values = np.where(true, 1.0, np.where(false, 0.0, np.where(wrong, np.nan, values)))
    if missing.any():
        values = np.where(missing, np.nan, values)
    return values, wrong


# Dates and times as numbers in a column's unit since its origin. A column of objects may mix dates, times and text.

_PER_SECOND = {"s": 1, "ms": 1_000, "us": MICROSECONDS, "ns": 1_000_000_000}
_DAY = 86_400 * MICROSECONDS
_UNREADABLE: Any = object()
"""Placeholder of an object that is not a date."""


def date_numbers(chunk: Any, column: Date) -> tuple[FloatArray, BoolArray]:
    """Convert an Arrow array of dates, timestamps, text or nulls to float64.

    NaN if missing or unreadable.

    The second result marks texts that are not dates in the column's format.

    >>> column = Date("day", "2020-01-01", "2021-01-01")
    >>> date_numbers(pa.array(["2020-01-31", None, "2020-01-31T12:00:00+01:00"]), column)
    (array([30.        ,         nan, 30.45833333]), array([False, False, False]))
    """
    kind = chunk.type
    if pa.types.is_null(kind):
        return np.full(len(chunk), np.nan), np.zeros(len(chunk), dtype=bool)
    if is_text(kind):
        read = text_dates(chunk, column, TextFormat(), only_empty=True)
        return read.values, read.unparsable
    if pa.types.is_date32(kind):
        times = scaled(pc.cast(chunk, pa.int32()), _DAY)
    elif pa.types.is_date64(kind):
        times = scaled(pc.cast(chunk, pa.int64()), 1_000)
    elif pa.types.is_timestamp(kind):  # with a zone or without, it counts from 1970 in UTC
        per_second = _PER_SECOND[kind.unit]
        counts = pc.cast(chunk, pa.int64())
        if per_second <= MICROSECONDS:
            times = scaled(counts, MICROSECONDS // per_second)
        else:
            times = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False).astype(np.int64) // 1_000
    else:
        raise InputTypeError(
            f"column '{column.name}' has a type without dates; a date column needs dates, timestamps or text: "
            "convert it, or describe it as Numeric"
        )
    result = column.numbers(times)
    result[nulls(chunk)] = np.nan
    return without_marks(result, column), np.zeros(len(chunk), dtype=bool)


def object_dates(cells: npt.NDArray[np.object_], column: Date) -> tuple[FloatArray, BoolArray]:
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
        unreadable |= wrong
    return without_marks(result, column), unreadable


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
        if abs(days) > FARTHEST // _DAY:
            return FARTHEST if days > 0 else -FARTHEST
        return int(cell.astype("datetime64[us]").astype(np.int64))
    if isinstance(cell, dt.datetime):
        shift = cell.utcoffset() or dt.timedelta(0)
        moment = int((cell.replace(tzinfo=None) - EPOCH - shift) // dt.timedelta(microseconds=1))
        return max(-FARTHEST, min(FARTHEST, moment))
    if isinstance(cell, dt.date):
        return max(-FARTHEST, min(FARTHEST, int((cell - EPOCH.date()).days) * _DAY))
    return _UNREADABLE


def level_codes(cells: Any, column: Categorical) -> CodeArray:
    """Return the index of each value's level, ``UNKNOWN`` or ``MISSING``, shape (n,).

    >>> level_codes(pa.array(["south", "west", None]), Categorical("region", ["north", "south"])).tolist()
    [1, -1, -2]
    """
    integers = isinstance(column.levels[0], int)
    if isinstance(cells, np.ndarray):
        cells = object_texts(cells, integers=integers)
    spellings, nothing = column.spellings
    known = spellings | dict.fromkeys(nothing, MISSING)
    if integers:  # such as a frame with gaps writes
        known = {f"{text}.0": code for text, code in known.items() if _is_integer(text)} | known
    # What is not a level is `other`, if that is one.
    unknown = column.levels.index(column.other) if column.other in column.levels else UNKNOWN
    value_set, code_of = pa.array(list(known), pa.large_string()), np.array([*known.values(), unknown], dtype=np.int64)

    def read(chunk: Any) -> CodeArray:
        kind = chunk.type
        if is_text(kind) or pa.types.is_null(kind) or (pa.types.is_integer(kind) and not integers):
            chunk = pc.cast(chunk, pa.large_string())
            if column.strip or column.casefold:
                return _folded_codes(chunk, column, known, unknown)
            missing = pc.is_null(chunk)
            if is_text(kind) and "" not in known:
                missing = pc.fill_null(pc.equal(chunk, ""), True)
        elif pa.types.is_floating(kind) and not integers:
            chunk, missing = _whole_number_texts(chunk), pc.is_null(chunk, nan_is_null=True)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            by_number = {float(text): code for text, code in known.items() if _is_integer(text)}
            values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            of_number = np.array([*by_number.values(), unknown], dtype=np.int64)[_index_of(values, list(by_number))]
            return np.where(np.isnan(values), MISSING, of_number)
        else:
            raise InputTypeError(
                f"column '{column.name}' has type {type_name(kind)} in the table and a categorical column needs "
                "text or integers: convert it, or describe it as Numeric or Boolean"
            )
        position = pc.fill_null(pc.index_in(chunk, value_set=value_set), len(known))
        codes: CodeArray = code_of[position.to_numpy(zero_copy_only=False)]
        codes[missing.to_numpy(zero_copy_only=False).astype(bool)] = MISSING
        return codes

    return gather(cells, read, MISSING)


def name_words(cells: Any, column: NameColumn) -> tuple[FloatArray, BoolArray]:
    """Return the text of each value as numbers, and a mask of missing values.

    Numbers, shape (n, ``NAME_WORDS``), are 0 for a value that cannot be published: a missing one, or text that is long or not
    printable.
    """
    missing = level_codes(cells, column) == MISSING
    if isinstance(cells, np.ndarray):
        cells = object_texts(cells, integers=False)
    names = [b""]

    def read(chunk: Any) -> CodeArray:
        texts = _whole_number_texts(chunk) if pa.types.is_floating(chunk.type) else pc.cast(chunk, pa.large_string())
        distinct = pc.dictionary_encode(texts)
        first = len(names)
        names.extend(_name(text, column) for text in pc.cast(distinct.dictionary, pa.large_binary()).to_pylist())
        indices = pc.fill_null(distinct.indices, -first).to_numpy(zero_copy_only=False)
        return np.asarray(indices + first, dtype=np.int64)

    indices = np.where(missing, 0, gather(cells, read, 0))
    held = np.frombuffer(b"".join(name.ljust(6 * NAME_WORDS, b"\0") for name in names), np.uint8)
    words: FloatArray = held.reshape(len(names), NAME_WORDS, 6) @ 256.0 ** np.arange(6)  # whole numbers below 2^48
    return words[indices], missing


def _name(text: bytes, column: NameColumn) -> bytes:
    """Return the text as it would be published, or an empty one."""
    with suppress(UnicodeDecodeError):
        name = column.folded(text.decode())
        if name.isprintable() and name != OTHER and len(name.encode()) <= 6 * NAME_WORDS:
            return name.encode()
    return b""


def name_of(words: FloatArray) -> str:
    """Return the text that :func:`name_words` holds in numbers, shape (``NAME_WORDS``,)."""
    return b"".join(int(word).to_bytes(6, "little") for word in words).rstrip(b"\0").decode()


def _is_integer(text: str) -> bool:
    """Return True for the text of an integer as Python writes it, of at most 17 digits."""
    return len(text) < 18 and text.removeprefix("-").isdecimal() and str(int(text)) == text


def _index_of(values: FloatArray, keys: list[float]) -> npt.NDArray[np.int64]:
    """Return the index of each value among keys, shape (n,)."""
    # It is the number of keys if no key equals the value.
    if not keys:
        return np.zeros(len(values), dtype=np.int64)
    order = np.argsort(keys)
    nearest = np.minimum(np.searchsorted(np.array(keys)[order], values), len(keys) - 1)
    return np.where(np.array(keys)[order][nearest] == values, order[nearest], len(keys))


def _folded_codes(chunk: Any, column: Categorical, known: Mapping[str, int], unknown: int) -> CodeArray:
    """Return the codes of folded texts; each distinct text is looked up once."""
    distinct = pc.dictionary_encode(chunk)
    held = pc.cast(distinct.dictionary, pa.large_binary()).to_pylist()
    codes = []
    for cell in held:
        # what is not UTF-8 gets halves of surrogate pairs, which no level has
        text = column.folded(cell.decode(errors="surrogateescape"))
        codes.append(known.get(text, MISSING if text == "" else unknown))
    indices = pc.fill_null(distinct.indices, len(codes)).to_numpy(zero_copy_only=False)
    result: CodeArray = np.array([*codes, MISSING], dtype=np.int64)[indices]
    return result


def _whole_number_texts(chunk: Any) -> Any:
    """Format whole numbers among floats as text, null elsewhere."""
    values = pc.cast(chunk, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    whole = np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < 2.0**63)
    texts = pc.cast(pa.array(np.where(whole, values, 0.0).astype(np.int64)), pa.large_string())
    return pc.if_else(pa.array(whole), texts, pa.scalar(None, pa.large_string()))


def gather(cells: Any, read: Callable[[Any], npt.NDArray[Any]], null: Any) -> npt.NDArray[Any]:
    """Apply ``read`` to the plain arrays of ``cells``.

    Of a dictionary array, it reads the dictionary only.
    """
    parts = []
    for part in cells.chunks or [pa.nulls(0, cells.type)] if isinstance(cells, pa.ChunkedArray) else [cells]:
        chunk = pc.run_end_decode(part) if pa.types.is_run_end_encoded(part.type) else part
        if not pa.types.is_dictionary(chunk.type):
            parts.append(read(chunk))
            continue
        of_values = read(chunk.dictionary)
        if not chunk.null_count and len(of_values):
            parts.append(np.take(of_values, chunk.indices.to_numpy()))
            continue
        indices = pc.fill_null(pc.cast(chunk.indices, pa.int64()), len(of_values))
        parts.append(np.take(np.append(of_values, of_values.dtype.type(null)), indices.to_numpy(zero_copy_only=False)))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _gather_pairs(cells: Any, read: Callable[[Any], tuple[FloatArray, BoolArray]]) -> tuple[FloatArray, BoolArray]:
    """Apply ``read``, which returns values and a mask, to the plain arrays of ``cells``."""
    masks: list[BoolArray] = []

    def values_of(chunk: Any) -> FloatArray:
        values, marked = read(chunk)
        masks.append(marked)
        return values

    result = gather(cells, values_of, np.nan)
    parts = iter(masks)  # by chunk, in the same order
    return result, gather(cells, lambda _: next(parts), False)


# Values of the privacy unit's column, read as the bytes that name a unit.
#
# Two rows are of one unit exactly if these bytes are equal (no hash). They do not depend on how a table holds the
# column, nor on other rows:
#
# ======================================  ====================================================================
# value                                   unit
# ======================================  ====================================================================
# integer                                 its decimal digits, as text: ``7`` is the unit of the text ``7``
# whole number in a column of floats      that integer: pandas makes floats of integers as soon as one is missing
# text                                    the text, spaces and case included; ``7.0`` is ``7``, as such a frame is written
# to CSV,
#                                         and ``-0.0`` is ``0``
# bytes, UUID                             the bytes
# null, NaN, empty, usual null marker     none: the unit's ``missing`` rule
# any other value                         none, as if it were missing: the unit's ``missing`` rule
# a type that holds none of these         refused, before any value is read
# ======================================  ====================================================================
#
# A float that is not whole, or so large that two integers may round to it in its column's type, names no unit: it could
# merge two people.

_NO_UNIT = (*TextFormat().null_markers, "<NA>", "NaT")
"""Null markers. Rows of many people would otherwise be one unit, and none of them protected."""
_WHOLE_FLOAT = r"\A(-?[0-9]+)\.0\z"
"""Pattern for Arrow, whose ``$`` matches only at the end.

Python's also matches before a final newline.
"""
_NO_ID: bytes | None = b""
"""Placeholder of an object that names no unit."""
_EXACT_INTEGERS = {2: 2.0**11, 4: 2.0**24, 8: 2.0**53}
"""Magnitude below which each whole float is one integer, by the float's bytes."""


def unit_ids(cells: Any, column: str) -> Any:
    """Return the bytes that name each row's unit, null if none.

    A large_binary array of length n. ``column`` is the name for messages.
    """
    with suppress(pa.ArrowException):  # whose message may quote a cell
        if isinstance(cells, np.ndarray):
            result = read_objects(cells, _object_id, _NO_ID)
            return pa.array([cell or None for cell in result], pa.large_binary())
        chunks = cells.chunks or [pa.nulls(0, cells.type)] if isinstance(cells, pa.ChunkedArray) else [cells]
        read = [_chunk_ids(chunk, column) for chunk in chunks]
        return read[0] if len(read) == 1 else pa.concat_arrays([pa.array([], pa.large_binary()), *read])
    raise InputTypeError(
        f"column '{column}' identifies privacy units and holds values that cannot be read as text or bytes: "
        "it must hold integers, whole numbers, text, bytes or UUIDs. Convert it to text first"
    )


def _chunk_ids(chunk: Any, column: str) -> Any:
    if pa.types.is_run_end_encoded(chunk.type):
        chunk = pc.run_end_decode(chunk)
    if pa.types.is_dictionary(chunk.type):
        return _chunk_ids(chunk.dictionary, column).take(chunk.indices)
    if isinstance(chunk.type, pa.BaseExtensionType):
        chunk = chunk.storage
    kind = chunk.type
    if pa.types.is_null(kind):
        return pa.nulls(len(chunk), pa.large_binary())
    if pa.types.is_integer(kind):
        return _as_bytes(chunk.cast(pa.large_string()))
    if pa.types.is_floating(kind):
        values = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False)
        missing = np.isnan(values) | ~_whole_or_missing(chunk)
        integers = pa.array(np.where(missing, 0.0, values).astype(np.int64)).cast(pa.large_string())
        return _as_bytes(_null_where(integers, pa.array(missing)))
    if is_text(kind):
        return _as_bytes(_plain_texts(chunk.cast(pa.large_string())))
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_binary_view(kind)
    ):
        result = chunk.cast(pa.large_binary())
        return _null_where(result, pc.equal(pc.binary_length(result), 0))
    held = "nested values" if pa.types.is_nested(kind) else re.split(r"[\[(<]", str(kind))[0]
    raise InputTypeError(
        f"column '{column}' identifies privacy units and holds {'true and false' if held == 'bool' else held}: it must "
        "hold integers, whole numbers, text, bytes or UUIDs. Convert it to text first"
    )


def _plain_texts(texts: Any) -> Any:
    """Replace null markers by null, and whole floats by their integer."""
    texts = _null_where(texts, pc.is_in(texts, value_set=pa.array(_NO_UNIT, pa.large_string())))
    if pc.any(pc.ends_with(texts, pattern=".0")).as_py():
        texts = pc.if_else(pc.equal(texts, "-0.0"), "0", texts)  # a frame's −0.0, which is 0
        texts = pc.replace_substring_regex(texts, pattern=_WHOLE_FLOAT, replacement=r"\1")
    return texts


def nameless_cells(cells: Any) -> BoolArray:
    """Mark values that name no unit and are not missing, shape (n,).

    Their type is one that :func:`unit_ids` accepts.
    """
    if isinstance(cells, np.ndarray):
        ids = read_objects(cells, _object_id, _NO_ID)
        return np.array([found == _NO_ID for found in ids], dtype=np.bool_)

    def nameless(chunk: Any) -> BoolArray:
        return ~_whole_or_missing(chunk) if pa.types.is_floating(chunk.type) else np.zeros(len(chunk), dtype=bool)

    return gather(cells, nameless, False)


def _whole_or_missing(chunk: Any) -> BoolArray:
    """Mark floats that are missing or exactly one integer, shape (n,)."""
    limit = _EXACT_INTEGERS[chunk.type.bit_width // 8]
    values = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(np.isnan(values) | ((values == np.rint(values)) & (np.abs(values) < limit)))


def _object_id(cell: object) -> bytes | None:
    plain = plain_object(cell)
    if plain is None:
        return None
    if isinstance(plain, UUID):
        return int.to_bytes(plain.int, 16)
    if type(plain) is bytes:
        return plain or None
    if type(plain) is str:
        if plain in _NO_UNIT:
            return None
        if (whole := re.fullmatch(r"(-?[0-9]+)\.0", plain)) is not None:
            plain = "0" if whole[1] == "-0" else whole[1]
        return str(plain).encode(errors="surrogatepass")  # halves of surrogate pairs are kept apart
    if isinstance(plain, float | np.floating):
        number = float(plain)
        limit = _EXACT_INTEGERS[min(plain.itemsize if isinstance(plain, np.floating) else 8, 8)]
        return str(int(number)).encode() if number.is_integer() and abs(number) < limit else _NO_ID
    # Python refuses to write out integers of thousands of digits in decimal.
    return str(plain).encode() if type(plain) is int and abs(plain) < 10**1000 else _NO_ID


def _null_where(values: Any, empty: Any) -> Any:
    return pc.if_else(pc.fill_null(empty, True), pa.scalar(None, values.type), values)


def _as_bytes(texts: Any) -> Any:
    return texts.cast(pa.large_binary())
