"""Values found in a table, counted: all of them where they are few, else those of least hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from dpmoments.cells.unreadable import CellValue

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
        Hash → (value, cells). The hash is of the whole value; of a long text the beginning is kept.
    complete : bool
        Whether no value was left out.
    """

    counts: dict[bytes, tuple[CellValue, int]] = field(default_factory=dict)
    complete: bool = True

    def add(self, found: Mapping[CellValue, int]) -> None:
        """Count values, each found in a number of cells."""
        limit = max(self.counts) if len(self.counts) == MOST_VALUES else None
        for (kind, text), times in found.items():
            key = hashlib.blake2b(f"{kind} {text}".encode(), digest_size=16).digest()
            if limit is not None and key > limit:
                self.complete = False
                continue
            # The text after the number of kept characters is told by an ellipsis.
            short = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
            known = self.counts.get(key, ((kind, short), 0))
            self.counts[key] = (known[0], known[1] + times)
            if len(self.counts) > 4 * MOST_VALUES:
                self._keep_least()
                limit = max(self.counts)
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

    def _keep_least(self) -> None:
        if len(self.counts) > MOST_VALUES:
            self.counts = {key: self.counts[key] for key in nsmallest(MOST_VALUES, self.counts)}
            self.complete = False
