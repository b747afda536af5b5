"""What Rows asks of whatever engine holds the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from dpmoments.rows.cells import Missing
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.summary import Summary

__all__ = ["Source"]

Running = TypeVar("Running")
Result = TypeVar("Result")


class Source(Protocol):
    """A table that can be passed over again and again, with the same rows every time."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, dropped ones included, where it is known without a pass."""

    @property
    def pass_length(self) -> int | None:
        """What the calls of ``on_block`` add up to over a pass: rows, or an engine's hundredths; None where that is not known."""

    @property
    def missing(self) -> Missing:
        """The rule for cells of its encoded blocks that are not finite."""

    def restricted(self, restriction: Restriction) -> Source:
        """The same table, of which the rows of some levels of a column are meant alone."""

    def summarise_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """As :meth:`summarise`, of blocks that say whose each row is; where the table was opened for a privacy unit."""

    def summarise(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the partitions of the table and merge what they return."""
