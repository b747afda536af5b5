"""A pass over the rows that a selection keeps, which finds nothing unless the table is the one that the selection was made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from dpmoments.rows.summary import Adapted, Summary
from dpmoments.rows.threads import summarise_in_threads
from dpmoments.rows.unit_tally import Tallied, require_same_table
from dpmoments.rows.units import UnitSelection, UnitSource

__all__ = ["summarise_selected"]

Running = TypeVar("Running")
Result = TypeVar("Result")


def summarise_selected(
    source: UnitSource,
    summary: Summary[Running, Result],
    selection: UnitSelection,
    *,
    threads: int | None = None,
    on_block: Callable[[int], None] | None = None,
) -> Result:
    """Summarise the rows that count, in one pass over the table.

    Parameters
    ----------
    source : UnitSource
    summary : Summary
    selection : UnitSelection
    threads, on_block
        As for :meth:`dpmoments.rows.sources.source.Source.summarise`.

    Raises
    ------
    ValueError
        If the table is no longer what it was when the selection was made. What the pass found is then lost, so that no draw of
        noise is made of it.
    """
    sent = replace(selection, repeated=selection.repeated[:0])  # wherever the source is, which needs no more
    tallied = Tallied(SelectedRows(summary, sent), selection.key)
    found, tally = source.summarise_units(tallied, threads=threads, on_block=on_block)
    require_same_table(selection.fingerprint, tally)
    repeated = np.array_split(selection.repeated, len(selection.repeated) // summary.rows_per_task + 1)
    return summary.merge(found, summarise_in_threads(summary, repeated, lambda block: block, 1))


@dataclass(frozen=True)
class SelectedRows(Adapted[Running, Result]):
    """A summary of the rows of :class:`UnitBlock` that a selection keeps in place.

    Attributes
    ----------
    selection : UnitSelection
    """

    selection: UnitSelection

    def add(self, running: Running, block: Any) -> None:
        self.summary.add(running, self.selection.kept(block))
