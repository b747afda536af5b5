"""Whether a table is the same at every pass: what its candidates add up to, pass by pass.

The rows that count are found in the first passes, and a unit that is within its limit there is looked at no more. So a row that
comes in later would count beside them, whatever the limit. Every pass therefore counts the candidates again, by a hash of their
unit, and adds up keyed hashes of unit and row: sums that no order, partition or thread changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.privacy.unit import SelectionKey
from dpmoments.rows.row_hashes import HashArray, candidate_hashes
from dpmoments.rows.summary import Summary

__all__ = ["BUCKET_BITS", "Tallied", "UnitTally", "buckets", "require_same_table"]

Running = TypeVar("Running")
Result = TypeVar("Result")

BUCKET_BITS = 20


@dataclass(frozen=True, eq=False, repr=False)
class UnitTally:
    """What the candidates of a pass add up to: private data.

    Attributes
    ----------
    counts : ndarray of int64, 2^``BUCKET_BITS`` of them
        Candidates by a hash of their unit.
    total : ndarray of uint64, shape (1,)
        The sum of the hashes of unit and row, modulo 2⁶⁴.
    """

    counts: npt.NDArray[np.int64]
    total: HashArray

    def fingerprint(self) -> bytes:
        """32 bytes that stand for it."""
        return blake2b(self.counts.tobytes() + self.total.tobytes(), digest_size=32).digest()


@dataclass(frozen=True)
class Tallied(Summary[tuple[Running, UnitTally], tuple[Result, UnitTally]], Generic[Running, Result]):
    """A summary of :class:`~dpmoments.rows.units.UnitBlock`, with the tally of the pass beside its result.

    Attributes
    ----------
    summary : Summary
    key : (int, int)
    """

    summary: Summary[Running, Result]
    key: SelectionKey

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    def start(self) -> tuple[Running, UnitTally]:
        return self.summary.start(), UnitTally(np.zeros(1 << BUCKET_BITS, np.int64), np.zeros(1, np.uint64))

    def add(self, running: tuple[Running, UnitTally], block: Any) -> None:
        inner, tally = running
        of_units = block.hashes(self.key[0])
        np.add.at(tally.counts, buckets(of_units), 1)
        tally.total[:] += candidate_hashes(block.rows, of_units, self.key[1]).sum(dtype=np.uint64)
        self.summary.add(inner, block)

    def finish(self, running: tuple[Running, UnitTally]) -> tuple[Result, UnitTally]:
        return self.summary.finish(running[0]), running[1]

    def merge(self, first: tuple[Result, UnitTally], second: tuple[Result, UnitTally]) -> tuple[Result, UnitTally]:
        tally = UnitTally(first[1].counts + second[1].counts, first[1].total + second[1].total)
        return self.summary.merge(first[0], second[0]), tally


def buckets(of_units: HashArray) -> npt.NDArray[np.int64]:
    """The bucket of each unit, from its hash."""
    return (of_units >> np.uint64(64 - BUCKET_BITS)).astype(np.int64)


def require_same_table(fingerprint: bytes, tally: UnitTally) -> None:
    """Raise unless a pass met the candidates of the first: before anything is made of what it found.

    Raises
    ------
    ValueError
        If it did not.
    """
    if tally.fingerprint() != fingerprint:
        raise ValueError(
            "the table was not the same at every pass over it: rows were added, taken out or changed in between, or a query "
            "draws rows at random (USING SAMPLE, random()). A unit could so have more rows than max_rows. Pass what stands "
            "still: a copy of the files, or the query's result written to a file or a table"
        )
