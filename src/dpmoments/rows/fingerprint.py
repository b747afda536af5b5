"""A number for the rows of a table that does not depend on their order.

Two passes over one table give the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np

from dpmoments.base.errors import InputValueError
from dpmoments.base.table_libraries import pa, pc
from dpmoments.rows.units import HashArray, mixed, unit_hashes
from dpmoments.schema.cells.objects import read_objects
from dpmoments.schema.cells.reading import gather

_WORD = (1 << 64) - 1
_STEP = 0xD1342543DE82EF95
"""Odd; its powers are the columns' multipliers."""
_EMPTY = np.uint64(0x5851F42D4C957F2D)
"""Hash of a missing value."""
_READ = (str, bytes, Number, np.generic, date, UUID)
"""Types of objects that some reader accepts."""
_ROWS_AT_A_TIME = 8_192
"""Rows hashed at a time.

Hashes fit in the processor's cache, and are too small for an allocator to return to the system.
"""


class Fingerprint:
    """Σ over rows of a hash of the row's values, modulo 2^64.

    >>> first, again, other = Fingerprint(), Fingerprint(), Fingerprint()
    >>> first.add({"a": pa.array([1.0, 2.0]), "b": pa.array(["x", "y"])})
    >>> again.add({"a": pa.array([2.0]), "b": pa.array(["y"])})
    >>> again.add({"a": pa.array([1.0]), "b": pa.array(["x"])})
    >>> other.add({"a": pa.array([2.0, 1.0]), "b": pa.array(["x", "y"])})
    >>> first.value == again.value, first.value == other.value
    (True, False)
    """

    def __init__(self) -> None:
        self.value = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows, given as equally long columns: Arrow arrays, or arrays of Python objects."""
        result = [_cell_hashes(cells) for cells in columns.values()]
        n_rows = len(result[0])
        hashes, terms = np.empty((2, min(_ROWS_AT_A_TIME, n_rows)), np.uint64)
        for start in range(0, n_rows, _ROWS_AT_A_TIME):
            size, multiplier = min(_ROWS_AT_A_TIME, n_rows - start), 1
            hashes[:size] = 0
            for words in result:
                multiplier = multiplier * _STEP & _WORD
                np.multiply(words[start : start + size], np.uint64(multiplier), out=terms[:size])
                hashes[:size] += terms[:size]
            self.value = (self.value + int(np.add.reduce(mixed(hashes[:size])))) & _WORD


def _cell_hashes(cells: Any) -> HashArray:
    """Hash each value to 64 bits, shape (n,); equal values of one type get equal hashes."""
    if isinstance(cells, np.ndarray):
        return np.array(read_objects(cells, _object_word, 0), np.uint64)
    words: HashArray = gather(cells, _hash_words, _EMPTY)
    return words


def _object_word(cell: object) -> int:
    """Hash an object.

    One that no reader accepts is hashed by its type only, since its text may be a memory address.
    """
    known = isinstance(cell, _READ) or cell is None
    return zlib.crc32((repr(cell) if known else type(cell).__qualname__).encode(errors="backslashreplace"))


def _hash_words(cells: Any) -> HashArray:
    """Hash each value of a plain Arrow array, shape (n,)."""
    kind = cells.type
    if pa.types.is_boolean(kind):
        return _hash_words(cells.cast(pa.uint8()))
    if pa.types.is_temporal(kind):
        return _hash_words(cells.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pa.types.is_floating(kind):
        values = cells.to_numpy(zero_copy_only=False)  # NaN for nothing
        words: HashArray = np.ascontiguousarray(values, np.float64).view(np.uint64)
    elif pa.types.is_integer(kind):
        filled = pc.fill_null(cells, pa.scalar(0, kind)).to_numpy(zero_copy_only=False)
        words = filled.astype(np.uint64, casting="unsafe")
    else:
        try:
            texts = pc.fill_null(cells.cast(pa.large_binary()), b"").dictionary_encode()  # levels are few
            words = unit_hashes(texts.dictionary, 0)[texts.indices.to_numpy(zero_copy_only=False)]
        except pa.ArrowException:  # nested values
            words = _cell_hashes(np.array([*cells.to_pylist(), None], dtype=object)[:-1])
    return np.where(cells.is_null().to_numpy(zero_copy_only=False), _EMPTY, words) if cells.null_count else words


@dataclass(eq=False, repr=False)
class FirstPass:
    """Fingerprint of the first pass over a table, which later passes must match.

    Copies of a source share it.
    """

    fingerprint: int | None = None

    def require_same(self, fingerprint: int, table: str) -> None:
        """Raise ValueError unless a pass met the rows of the first."""
        if self.fingerprint is not None and self.fingerprint != fingerprint:
            raise InputValueError(
                f"{table} returned different rows in this pass than in the one before: they are recomputed each time "
                "(from random numbers, a sample, or data that change). Write it to Parquet files once, and pass those"
            )
        self.fingerprint = fingerprint
