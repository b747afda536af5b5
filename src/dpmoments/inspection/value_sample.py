"""Values found in a table, counted: all of them where they are few, else those of least hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from zlib import crc32

from dpmoments.inspection.unreadable import CellValue

__all__ = ["MOST_VALUES", "ValueSample"]

MOST_VALUES = 256
LONGEST_TEXT = 80
"""Characters kept of a value."""


@dataclass(eq=False, repr=False)
class ValueSample:
    """The values of least hash, at most ``MOST_VALUES``, each with the exact number of its cells.

    A value that is among those of the whole table is among those of every part that holds it. So its count is exact, what is
    kept does not depend on order, partitioning or threads, and memory does not grow with the table.

    Attributes
    ----------
    counts : dict
        Hash → (value, cells). The hash is of the whole value, a checksum that is found fast and then a hash that tells values
        apart; of a long text the beginning is kept.
    complete : bool
        Whether no value was left out.
    """

    counts: dict[bytes, tuple[CellValue, int]] = field(default_factory=dict)
    complete: bool = True

    def add(self, found: Mapping[CellValue, int]) -> None:
        """Count values, each found in a number of cells."""
        limit = self._limit()
        for (kind, text), times in found.items():
            whole = f"{kind} {text}".encode()
            first = crc32(whole).to_bytes(4)
            if limit is not None and first > limit:
                self.complete = False
                continue
            key = first + hashlib.blake2b(whole, digest_size=16).digest()
            # The text after the number of kept characters is told by an ellipsis.
            short = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
            known = self.counts.get(key, ((kind, short), 0))
            self.counts[key] = (known[0], known[1] + times)
            if len(self.counts) > 4 * MOST_VALUES:
                self._keep_least()
                limit = self._limit()
        self._keep_least()

    def merged(self, other: ValueSample) -> ValueSample:
        """The sample of the cells of both."""
        both = dict(self.counts)
        for key, (value, times) in other.counts.items():
            both[key] = (value, both.get(key, (value, 0))[1] + times)
        result = ValueSample(both, self.complete and other.complete)
        result._keep_least()
        return result

    def most_frequent_first(self) -> list[tuple[CellValue, int]]:
        """The values kept, by how many cells hold them, then by text."""
        return sorted(self.counts.values(), key=lambda entry: (-entry[1], entry[0]))

    def _limit(self) -> bytes | None:
        """The beginning of the largest hash kept, above which no value is among those of least hash; None while there is room."""
        return max(self.counts)[:4] if len(self.counts) == MOST_VALUES else None

    def _keep_least(self) -> None:
        if len(self.counts) > MOST_VALUES:
            self.counts = {key: self.counts[key] for key in nsmallest(MOST_VALUES, self.counts)}
            self.complete = False
