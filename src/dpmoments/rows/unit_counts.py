"""How many units there are, how many have more rows than count, and how many rows that leaves out: exact, and private.

In the rounds of :mod:`dpmoments.rows.units`, so that memory is bounded: candidates are counted by a hash of their
unit, and then those of as many buckets as memory allows are collected and told apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.table_libraries import pa
from dpmoments.rows.unit_tally import Tallied
from dpmoments.rows.units import (
    BYTES_BESIDE_ROW,
    COLLECTED_BYTES,
    Candidates,
    NoSummary,
    PartOfAPass,
    UnitBlock,
    UnitSource,
    bucket_shares,
)

__all__ = ["UnitCounts", "counts_of_units"]

KEY = 0
"""Of the hash into buckets. Which rows count is not asked here, so that nothing depends on it."""


@dataclass(frozen=True, repr=False)
class UnitCounts:
    """Candidates by unit.

    Attributes
    ----------
    units, rows : int
        Units that have a candidate, and candidates.
    units_over, rows_of_units_over : int
        Units with more candidates than count, and their candidates.
    beyond : int
        Candidates that do not count: those above the limit, summed over these units.
    """

    units: int
    rows: int
    units_over: int
    rows_of_units_over: int
    beyond: int


def counts_of_units(
    source: UnitSource,
    max_rows: int,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> UnitCounts:
    """Count the units of a table, in two rounds.

    Parameters
    ----------
    source : UnitSource
        Whose blocks may have rows of no features.
    max_rows : int
        How many rows of a unit count.
    threads, on_block
        As for :func:`dpmoments.rows.units.selection_of_units`.
    """
    _, tally = source.summarise_units(Tallied(NoSummary(), (KEY, KEY)), threads=threads, on_block=on_block)
    buckets = tally.counts
    units, over = int(np.count_nonzero(buckets == 1)), np.zeros(0, np.int64)
    shares = list(bucket_shares(buckets, 1, COLLECTED_BYTES // BYTES_BESIDE_ROW))
    reported = None if on_block is None else PartOfAPass(on_block, len(shares))
    for wanted in shares:
        collected = source.summarise_units(Candidates(KEY, wanted), threads=threads, on_block=reported)
        of_units = _rows_of_units(collected)
        units += len(of_units)
        over = np.append(over, of_units[of_units > max_rows])
    rows_of_over = int(over.sum())
    return UnitCounts(units, int(buckets.sum()), len(over), rows_of_over, rows_of_over - max_rows * len(over))


def _rows_of_units(collected: tuple[UnitBlock, ...]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The number of candidates of each unit collected, in no order."""
    ids = pa.concat_arrays([pa.array([], pa.large_binary()), *(block.ids for block in collected)])
    units = ids.dictionary_encode()  # exact: bytes are compared
    return np.bincount(units.indices.to_numpy(zero_copy_only=False), minlength=len(units.dictionary)).astype(np.int64)
