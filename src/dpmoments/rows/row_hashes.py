"""Keyed hashes of units and of encoded rows, whole blocks at a time.

They decide in which order rows are taken, and never whether two units are one: a collision changes which rows of a unit
count, and not how many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray

__all__ = ["HASH_BITS", "HashArray", "candidate_hashes", "copy_hashes", "mixed", "row_hashes", "unit_hashes"]

HashArray = npt.NDArray[np.uint64]

HASH_BITS = 32
"""Of hashes of rows, so that a unit's number and one of them are sorted as one number."""
ODD = np.uint64(0x9E3779B97F4A7C15)
WORD = 8


def unit_hashes(ids: Any, key: int) -> HashArray:
    """A keyed hash of the bytes of each unit, shape (n,).

    Parameters
    ----------
    ids : pyarrow large_binary array without nulls
    key : int
        64 bits.

    Examples
    --------
    >>> import pyarrow as pa
    >>> first, second, again = unit_hashes(pa.array([b"a", b"b", b"a"], pa.large_binary()), 3).tolist()
    >>> first == again, first == second
    (True, False)
    """
    if len(ids) == 0:
        return np.zeros(0, np.uint64)
    _, offsets, data = ids.buffers()
    ends = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1]
    held = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data is not None else np.zeros(0, np.uint8)
    padded = np.concatenate([held, np.zeros(WORD, np.uint8)])
    starts, lengths = ends[:-1] - ends[0], np.diff(ends)
    hashes = mixed(lengths.astype(np.uint64) ^ np.uint64(key))
    active = np.arange(len(ids))
    for done in range(0, int(lengths.max()), WORD):
        active = active[lengths[active] > done]
        words = padded[(starts[active] + done)[:, None] + np.arange(WORD)]
        words[np.arange(WORD) >= (lengths[active] - done)[:, None]] = 0
        hashes[active] = mixed(hashes[active] ^ words.view("<u8")[:, 0])
    return hashes


def row_hashes(rows: FloatArray, of_units: HashArray, key: int) -> HashArray:
    """The first ``HASH_BITS`` bits of :func:`candidate_hashes`, shape (n,)."""
    return candidate_hashes(rows, of_units, key) >> np.uint64(64 - HASH_BITS)


def candidate_hashes(rows: FloatArray, of_units: HashArray, key: int) -> HashArray:
    """A keyed hash of unit and encoded row, 64 bits, shape (n,).

    The unit is part of it, so that no row is ahead in all units at once. −0.0 is 0.0.

    Parameters
    ----------
    rows : ndarray, shape (n, d)
        Finite.
    of_units : ndarray of uint64, shape (n,)
        From :func:`unit_hashes`.
    key : int
        64 bits.
    """
    hashes = mixed(of_units ^ np.uint64(key))
    for column in rows.T:
        hashes ^= np.ascontiguousarray(column + 0.0).view(np.uint64)
        hashes *= ODD
        hashes ^= hashes >> np.uint64(32)
    return mixed(hashes)


def copy_hashes(hashes: HashArray, copies: npt.NDArray[np.int64]) -> HashArray:
    """A hash of each copy of rows that are equal, ``HASH_BITS`` bits, from the row's and the number of the copy, shape (n,)."""
    return mixed((hashes << np.uint64(HASH_BITS)) + ODD * copies.astype(np.uint64)) >> np.uint64(64 - HASH_BITS)


def mixed(values: HashArray) -> HashArray:
    """A bijection of 64-bit numbers that changes half of the bits for one (the finaliser of splitmix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
