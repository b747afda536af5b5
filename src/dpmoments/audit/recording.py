"""Filters for tests and audits: one that keeps the queries and answers of a run, one that gives them to another run.

They hold exact queries, which are private: no mechanism and no release may use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.distances import query_distance
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError, PrivatePlan
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.receipt import Draw
from dpmoments.privacy.unit import SelectionKey

__all__ = ["TOLERANCE", "Exchange", "Recorder", "Replayer"]

TOLERANCE = 1e-9
"""Relative rounding error allowed where the distance of two queries is measured in floating point."""


@dataclass(frozen=True)
class Exchange:
    """A query as a run made it, and what it was answered: private data, for tests and audits alone."""

    made: Draw
    query: Any = field(repr=False)
    answer: Any = field(repr=False)


class Recorder(PrivacyFilter):
    """A filter that keeps every query with its answer."""

    def __init__(self, plan: PrivatePlan, generator: np.random.Generator) -> None:
        super().__init__(plan, generator)
        self.exchanges: list[Exchange] = []
        self.keys: list[SelectionKey] = []

    def selection_key(self) -> SelectionKey:
        """As that of any filter, and kept: a run on the neighbour selects rows by the same."""
        self.keys.append(super().selection_key())
        return self.keys[-1]

    def _note(self, made: Draw, query: Any, answer: Any) -> None:
        self.exchanges.append(Exchange(made, np.array(query), np.array(answer)))


class Replayer(PrivacyFilter):
    """A filter that gives the answers of another run, and measures how far its queries are from that run's.

    Parameters
    ----------
    plan : PrivatePlan
    recorded : iterable of Exchange
        Of a run on a neighbouring table.
    same_rows : bool
        Whether that table had the same rows in another order, so that no query may move.
    any_table : bool
        Whether it is no neighbour but any table, so that a query may move as far as it likes.
    keys : sequence of (int, int)
        By which the other run selected rows of units.

    Attributes
    ----------
    faults : list of str
        A query of another law or shape, or farther from the recorded one than its sensitivity; queries that moved in more
        groups of rows than one row can stand in.
    """

    def __init__(
        self,
        plan: PrivatePlan,
        recorded: Iterable[Exchange],
        *,
        same_rows: bool = False,
        any_table: bool = False,
        keys: Sequence[SelectionKey] = (),
    ) -> None:
        super().__init__(plan, insecure_generator(0))
        self._keys = list(keys)
        self._rows_per_unit = 1 if plan.privacy_unit is None else plan.privacy_unit.max_rows
        self._same_rows, self._any_table = same_rows, any_table
        self._recorded = list(recorded)
        self.faults: list[str] = []
        self._moved_groups: set[str] = set()

    def _answer(self, made: Draw, query: Any) -> Any:
        place = len(self._draws) - 1
        if place >= len(self._recorded):
            fault = f"draw {place}, {made.what}: the other run did not make it"
            self.faults.append(fault)
            raise PrivacyFilterError(fault)
        before = self._recorded[place]
        if replace(made, size=before.made.size) != before.made:  # another shape is an infinite distance
            self.faults.append(
                f"draw {place}: {made.what} under {made.law}, before {before.made.what} under {before.made.law}"
            )
        moved = query_distance(made.sensitivity.norm, query, before.query, made.sensitivity.neighbors)
        paid_for = 0.0 if self._same_rows else self._rows_per_unit * made.sensitivity.value * (1.0 + TOLERANCE)
        if not moved <= paid_for and not (self._any_table and np.shape(query) == np.shape(before.query)):
            self.faults.append(f"draw {place}, {made.what}: moved by {moved!r} where {paid_for!r} is paid for")
        if moved > 0.0 and made.group is not None and not self._any_table:
            self._moved_groups.add(made.group)
            # A row is in one group at most, and may leave it for another where it is replaced: the rest is not paid for.
            touched = 1 if made.sensitivity.neighbors is Neighbors.ADD_REMOVE else 2
            if len(self._moved_groups) > touched:
                self.faults.append(f"draw {place}, {made.what}: moved in {len(self._moved_groups)} groups of rows")
        answer = before.answer
        return answer.copy() if answer.ndim else answer.item()

    def selection_key(self) -> SelectionKey:
        """That of the other run."""
        return self._keys.pop(0)

    def check_all_made(self) -> None:
        """Note draws of the other run that this one did not make."""
        if len(self._draws) < len(self._recorded):
            self.faults.append(f"{len(self._recorded) - len(self._draws)} draws of the other run were not made")
