"""Counts of rows by the names in columns whose levels a release finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.rows.summary import Missing, Summary, plain_rows
from dpmoments.schema.cells.reading import name_of
from dpmoments.schema.columns import NAME_WORDS


@dataclass(frozen=True, eq=False, repr=False)
class NameCounts:
    """Number of rows with each name, for each column: private data."""

    by_column: tuple[Counter[str], ...]

    def merge(self, other: NameCounts) -> NameCounts:
        """Return the counts of both sets of rows."""
        return NameCounts(tuple(one + two for one, two in zip(self.by_column, other.by_column, strict=True)))


@dataclass(frozen=True)
class NameSummary(Summary[list[Counter[bytes]], NameCounts]):
    """Row counts by name; a row has one name in a column, or none.

    ``starts`` are the first features of the columns (:class:`~dpmoments.schema.columns.NameColumn`).
    """

    starts: tuple[int, ...]
    missing: Missing

    def start(self) -> list[Counter[bytes]]:
        return [Counter() for _ in self.starts]

    def add(self, running: list[Counter[bytes]], block: npt.NDArray[Any]) -> None:
        rows = plain_rows(block, self.missing)
        for counts, first in zip(running, self.starts, strict=True):
            words = np.ascontiguousarray(rows[:, first : first + NAME_WORDS])
            names, times = np.unique(
                words[words.any(axis=1)].view(f"V{words.itemsize * NAME_WORDS}"), return_counts=True
            )
            counts.update(dict(zip((name.tobytes() for name in names), times.tolist(), strict=True)))

    def finish(self, running: list[Counter[bytes]]) -> NameCounts:
        return NameCounts(
            tuple(Counter({name_of(np.frombuffer(name)): n for name, n in counts.items()}) for counts in running)
        )
