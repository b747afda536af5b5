"""What one pass over a table computes, in a form that any engine can map over partitions and merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy.typing as npt

__all__ = ["Adapted", "Summary"]

Running = TypeVar("Running")
Result = TypeVar("Result")


class Summary(ABC, Generic[Running, Result]):
    """Sums of integers over rows: start, add blocks, finish a partition, merge partitions.

    A summary is a frozen dataclass of plain values, so that an engine can send it to where the rows are. Each partition (or
    thread) has a running sum of its own; what it finishes with is made of integers and travels back. Merging is commutative
    and associative to the last bit, and ``finish(start())`` is its neutral element: no engine, order, partitioning or retry
    changes a bit of the result.
    """

    @property
    def rows_per_task(self) -> int:
        """How many rows at a time suit a thread, where blocks can be cut at no cost."""
        return 65_536

    @property
    def takes_levels(self) -> bool:
        """Whether blocks may be of type :class:`~dpmoments.rows.level_block.LevelBlock`, too."""
        return False

    @abstractmethod
    def start(self) -> Running:
        """A new running sum, of no rows; it is used by one thread alone."""

    @abstractmethod
    def add(self, running: Running, block: npt.NDArray[Any]) -> None:
        """Add a block of encoded rows, shape (n, d), to a running sum. The block is neither changed nor kept."""

    @abstractmethod
    def finish(self, running: Running) -> Result:
        """What was added so far, exact; private data."""

    @abstractmethod
    def merge(self, first: Result, second: Result) -> Result:
        """The result for the rows of both."""


@dataclass(frozen=True)
class Adapted(Summary[Running, Result]):
    """A summary that is given blocks of another kind: ``add`` makes of them what ``summary`` takes.

    Attributes
    ----------
    summary : Summary
    """

    summary: Summary[Running, Result]

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    def start(self) -> Running:
        return self.summary.start()

    def finish(self, running: Running) -> Result:
        return self.summary.finish(running)

    def merge(self, first: Result, second: Result) -> Result:
        return self.summary.merge(first, second)
