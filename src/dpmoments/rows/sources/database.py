"""Rows of queries on databases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpmoments.foundation.databases import DatabaseSession
from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.rows.sources.engine import Fingerprint
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import require_columns
from dpmoments.rows.sources.office import ColumnPart
from dpmoments.rows.sources.source import FAILED_QUERY, read_quietly

_WHERE = "the query"


@dataclass(frozen=True, eq=False, repr=False)
class DatabaseSource(LocalSource[ColumnPart]):
    """Rows of a query; every pass runs it again, and must find the rows of the first.

    ``first_pass`` holds the fingerprint of the rows of the first whole pass.
    """

    session: DatabaseSession
    first_pass: list[int]

    def __post_init__(self) -> None:
        require_columns(self.session.names, self.names, _WHERE)

    def parts(self) -> Iterator[ColumnPart]:
        fingerprint = Fingerprint()
        following = partial(next, self.session.batches(self.names, self.largest_part), None)
        while (columns := read_quietly(following, _WHERE, FAILED_QUERY)) is not None:
            fingerprint.add(columns)
            yield ColumnPart(columns, len(next(iter(columns.values()))))
        if self.first_pass and self.first_pass[0] != fingerprint.value:
            raise InputValueError(Message("rows-changed-between-passes", table=_WHERE))
        self.first_pass[:] = [fingerprint.value]

    def written_cells(self, part: ColumnPart, name: str) -> Any:
        return part.columns[name]

    def __repr__(self) -> str:
        return "DatabaseSource()"
