"""The accounts of a file, kept in memory between uses and brought up to the file at each of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from dpmoments.foundation.ledger_errors import LedgerError
from dpmoments.ledger.accounts import Accounts
from dpmoments.ledger.appending import Appending
from dpmoments.ledger.database import LedgerFile
from dpmoments.privacy.origin import LedgerEntry

__all__ = ["KeptAccounts"]


class KeptAccounts:
    """What was read of a file once is not read again; that it is still there is looked at.

    Parameters
    ----------
    file : LedgerFile

    Attributes
    ----------
    seen : LedgerEntry or None
        The last entry that was read: the file must have it at every use.
    """

    def __init__(self, file: LedgerFile) -> None:
        self.file = file
        self._accounts: Accounts | None = None
        self.seen: LedgerEntry | None = None
        self._lock = RLock()

    def make(self) -> None:
        """Make the file if there is none; not in place of one that was there before."""
        with self._lock:
            if self.seen is None and not self.file.exists():
                self.file.create()

    @contextmanager
    def reading(self) -> Iterator[Accounts]:
        """The accounts as the file has them."""
        with self._lock, self.file.opened() as connection:
            yield self._caught_up(connection)

    @contextmanager
    def writing(self) -> Iterator[Appending]:
        """A transaction that begins with the lock on the file: what is checked in it is what is written after."""
        with self._lock:
            try:
                with self.file.opened(writing=True) as connection:
                    accounts = self._caught_up(connection)
                    yield Appending(connection, accounts)
                self.seen = accounts.head
            except BaseException:
                if self._accounts is not None and self._accounts.head != self.seen:
                    self._accounts = None  # what was counted was not written
                raise

    def _caught_up(self, connection: sqlite3.Connection) -> Accounts:
        """The accounts with every entry of the file; entries that were read before are read no more, if they are still there."""
        identity = self.file.identity(connection)
        accounts = self._accounts if self._accounts is not None else Accounts(identity)
        if self.seen is not None:
            query = "SELECT hash FROM history WHERE number = ?"
            found = connection.execute(query, (self.seen.number,)).fetchone()
            if identity != self.seen.ledger or found != (self.seen.hash,):
                self._accounts = None
                raise LedgerError(
                    f"{self.file.shown} is not the ledger that was opened, or not all of it: it was cut, restored from an older "
                    "copy, or replaced. Look into it before anything is released"
                )
        self._accounts = None
        for number, text, digest in connection.execute(
            "SELECT number, entry, hash FROM history WHERE number > ? ORDER BY number", (accounts.number,)
        ):
            accounts.read(number, text, digest)
        self._accounts, self.seen = accounts, accounts.head
        return accounts
