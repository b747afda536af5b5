"""What follows in a history: counted in, and written, within one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from dpmoments.ledger.accounts import Accounts
from dpmoments.ledger.history import Action, HistoryEntry

__all__ = ["Appending"]


class Appending:
    """Appends entries in a transaction that holds the lock on the file.

    Parameters
    ----------
    connection : sqlite3.Connection
    accounts : Accounts
        With every entry of the file.
    """

    def __init__(self, connection: sqlite3.Connection, accounts: Accounts) -> None:
        self._connection = connection
        self.accounts = accounts

    def __call__(self, action: Action, dataset: str, content: Mapping[str, Any]) -> HistoryEntry:
        """Append an entry, if it may follow."""
        entry = self.accounts.follow(action, dataset, content)
        self._connection.execute("INSERT INTO history VALUES (?, ?, ?)", (entry.number, entry.text, entry.hash))
        return entry
