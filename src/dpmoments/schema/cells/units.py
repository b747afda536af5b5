"""Values of the privacy unit's column, read as the bytes that name a unit.

Two rows are of one unit exactly if these bytes are equal (no hash). They do not depend on how a table holds the
column, nor on other rows:

======================================  ====================================================================
value                                   unit
======================================  ====================================================================
integer                                 its decimal digits, as text: ``7`` is the unit of the text ``7``
whole number in a column of floats      that integer: pandas makes floats of integers as soon as one is missing
text                                    the text, spaces and case included; ``7.0`` is ``7``, as such a frame is written
to CSV,
                                        and ``-0.0`` is ``0``
bytes, UUID                             the bytes
null, NaN, empty, usual null marker     none: the unit's ``missing`` rule
any other value                         none, as if it were missing: the unit's ``missing`` rule
a type that holds none of these         refused, before any value is read
======================================  ====================================================================

A float that is not whole, or so large that two integers may round to it in its column's type, names no unit: it could
merge two people.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from uuid import UUID

import numpy as np

from dpmoments.base.arrays import BoolArray
from dpmoments.base.errors import InputTypeError
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_format import TextFormat
from dpmoments.schema.cells.objects import plain_object, read_objects
from dpmoments.schema.cells.reading import gather
from dpmoments.schema.cells.text import is_text

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
        chunks = cells.chunks or [pa.array([], cells.type)] if isinstance(cells, pa.ChunkedArray) else [cells]
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
        # Halves of surrogate pairs are kept apart.
        return None if plain in _NO_UNIT else _plain_text(plain).encode(errors="surrogatepass")
    if isinstance(plain, float | np.floating):
        number = float(plain)
        limit = _EXACT_INTEGERS[min(plain.itemsize if isinstance(plain, np.floating) else 8, 8)]
        return str(int(number)).encode() if number.is_integer() and abs(number) < limit else _NO_ID
    # Python refuses to write out integers of thousands of digits in decimal.
    return str(plain).encode() if type(plain) is int and abs(plain) < 10**1000 else _NO_ID


def _plain_text(text: str) -> str:
    """Convert a single text that is not a null marker like :func:`_plain_texts`."""
    result = re.fullmatch(r"(-?[0-9]+)\.0", text)
    if result is None:
        return text
    return "0" if result[1] == "-0" else result[1]


def _null_where(values: Any, empty: Any) -> Any:
    return pc.if_else(pc.fill_null(empty, True), pa.scalar(None, values.type), values)


def _as_bytes(texts: Any) -> Any:
    return texts.cast(pa.large_binary())
