"""A number for the rows of a table that does not depend on their order: two passes over one table give the same.

It finds a frame that is made anew, with other rows, for every pass. It guards no secret, and no release holds it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np

from dpmoments.cells.objects import read_objects
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.rows.row_hashes import HashArray, mixed, unit_hashes

__all__ = ["Fingerprint"]

WORD = (1 << 64) - 1
STEP = 0xD1342543DE82EF95
"""Odd; its powers are the columns' multipliers."""
EMPTY = np.uint64(0x5851F42D4C957F2D)
"""Stands for a cell that holds nothing."""
READ = (str, bytes, Number, np.generic, date, UUID)
"""Types of objects that some reader takes."""
ROWS_AT_A_TIME = 8_192
"""Their hashes stay in the processor's cache, and are too small for an allocator to give back to the system."""


class Fingerprint:
    """Σ over rows of a hash of the row's cells, modulo 2^64.

    Examples
    --------
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
        """Add rows, given as columns of one length: Arrow arrays, or arrays of Python objects."""
        found = [cell_words(cells) for cells in columns.values()]
        n_rows = len(found[0])
        hashes, terms = np.empty((2, min(ROWS_AT_A_TIME, n_rows)), np.uint64)
        for start in range(0, n_rows, ROWS_AT_A_TIME):
            size, multiplier = min(ROWS_AT_A_TIME, n_rows - start), 1
            hashes[:size] = 0
            for words in found:
                multiplier = multiplier * STEP & WORD
                np.multiply(words[start : start + size], np.uint64(multiplier), out=terms[:size])
                hashes[:size] += terms[:size]
            self.value = (self.value + int(np.add.reduce(mixed(hashes[:size])))) & WORD


def cell_words(cells: Any) -> HashArray:
    """A number of 64 bits for each cell, shape (n,): the same for equal cells of one type."""
    if isinstance(cells, np.ndarray):
        return np.array(read_objects(cells, _object_word, 0), np.uint64)
    if isinstance(cells, pa.ChunkedArray):
        words = [cell_words(chunk) for chunk in cells.chunks]
        return words[0] if len(words) == 1 else np.concatenate([np.zeros(0, np.uint64), *words])
    if pa.types.is_run_end_encoded(cells.type):
        return cell_words(pc.run_end_decode(cells))
    found = _looked_up(_words(cells.dictionary), cells) if pa.types.is_dictionary(cells.type) else _words(cells)
    return np.where(cells.is_null().to_numpy(zero_copy_only=False), EMPTY, found) if cells.null_count else found


def _object_word(cell: object) -> int:
    """Of an object that no reader takes, its type alone: what else it shows may be an address in memory."""
    if isinstance(cell, READ) or cell is None:
        return zlib.crc32(repr(cell).encode(errors="backslashreplace"))
    return zlib.crc32(type(cell).__qualname__.encode(errors="backslashreplace"))


def _words(cells: Any) -> HashArray:
    kind = cells.type
    if pa.types.is_null(kind):
        return np.zeros(len(cells), np.uint64)
    if pa.types.is_boolean(kind):
        return _words(cells.cast(pa.uint8()))
    if pa.types.is_temporal(kind):
        cells = cells.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        kind = cells.type
    if pa.types.is_floating(kind):
        values = cells.to_numpy(zero_copy_only=False)  # NaN for nothing
        return np.ascontiguousarray(values, np.float64).view(np.uint64)
    if pa.types.is_integer(kind):
        filled = pc.fill_null(cells, pa.scalar(0, kind)).to_numpy(zero_copy_only=False)
        whole: HashArray = filled.astype(np.uint64, casting="unsafe")
        return whole
    with suppress(pa.ArrowException):
        texts = pc.fill_null(cells.cast(pa.large_binary()), b"").dictionary_encode()  # levels are few
        return _looked_up(unit_hashes(texts.dictionary, 0), texts)
    return cell_words(np.array([*cells.to_pylist(), None], dtype=object)[:-1])


def _looked_up(words: HashArray, cells: Any) -> HashArray:
    """What stands for the entries of a dictionary, for each cell; anything for one that holds nothing."""
    places = pc.fill_null(cells.indices, pa.scalar(0, cells.indices.type)).to_numpy(zero_copy_only=False)
    return words[places] if len(words) else np.zeros(len(places), np.uint64)
