"""Ledger file: one SQLite database, created atomically and durable after each transaction."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from dpmoments.foundation.errors import InputValueError, LedgerError

_APPLICATION = 0x64706D4C
"""SQLite application id of a ledger."""
_VERSION = 1
_OBJECTS = (
    "CREATE TABLE history (number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE identity (id TEXT NOT NULL)",
    "CREATE TRIGGER history_is_never_cut BEFORE DELETE ON history "
    "BEGIN SELECT RAISE(ABORT, 'the history of a ledger is never cut'); END",
    "CREATE TRIGGER history_is_never_changed BEFORE UPDATE ON history "
    "BEGIN SELECT RAISE(ABORT, 'the history of a ledger is never changed'); END",
)
"""Tables, and triggers that prevent mistakes (anyone who can write the file can drop them)."""
_ID_DIGITS = 32
_TEMPORARY = (".dpmoments-", ".part")
"""Prefix and suffix of the temporary name of a new ledger."""


class LedgerFile:
    """Ledger's path, opened again for every use, so that a moved or replaced file is noticed."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.shown = os.fspath(path)
        if "\0" in self.shown:
            raise InputValueError(f"{self.shown!r} cannot be the name of a file")
        self.path = Path(path).absolute()
        self.timeout = timeout

    def exists(self) -> bool:
        """Return True if the file exists; raise LedgerError if it cannot."""
        if self.path.is_dir():
            raise LedgerError(f"{self.shown} is a folder: name the ledger's file in it")
        if not self.path.parent.is_dir():
            raise LedgerError(f"the folder {self.path.parent} of the ledger does not exist")
        return self.path.exists()

    def create(self) -> None:
        """Make an empty ledger, unless another process has made one meanwhile."""
        temporary = self.path.parent / f"{_TEMPORARY[0]}{secrets.token_hex(8)}{_TEMPORARY[1]}"
        try:
            with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
                for statement in _OBJECTS:
                    connection.execute(statement)
                connection.execute("INSERT INTO identity VALUES (?)", (secrets.token_hex(_ID_DIGITS // 2),))
                connection.execute("COMMIT")
            _publish(temporary, self.path)
        except sqlite3.Error as reason:
            self._explain(reason)
        except OSError as reason:
            raise LedgerError(f"the ledger {self.shown} cannot be made: {reason.strerror}") from None
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    @contextmanager
    def opened(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction, committed to disk at the end or rolled back if the block raises."""
        if not self.exists():
            raise LedgerError(
                f"the ledger {self.shown} does not exist: create it with ledger.grant('people-2026', epsilon=…)"
            )
        self._require_one_name()
        connection = None
        try:
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw", uri=True, timeout=self.timeout, isolation_level=None
            )
            self._configure(connection)
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            self._check(connection)
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as reason:
            self._explain(reason)
        finally:
            if connection is not None:
                connection.close()  # a transaction that was not committed is rolled back

    def _require_one_name(self) -> None:
        """Raise LedgerError if the file has several hard links.

        SQLite names its journal after the path that is opened.
        """
        try:
            n_names = _count_names(self.path)
        except OSError:  # gone, or not to be looked at: SQLite says which
            return
        if n_names > 1:
            raise LedgerError(
                f"{self.shown} has {n_names} names (hard links): a transaction under one name is not seen under another, so that "
                "budget could be spent twice. Delete all names but one, and open the ledger by that or by a symbolic link to it "
                f"('find FOLDER -samefile {self.shown}' lists them; make backups by copying)"
            )

    def _configure(self, connection: sqlite3.Connection) -> None:
        # On the disk before the call returns, folder included; on macOS past the drive's own cache too.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA trusted_schema = OFF")

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            empty = self.path.stat().st_size == 0
            result = (
                "an empty file, perhaps the rest of a damaged ledger" if empty else "an SQLite file of another program"
            )
            raise LedgerError(f"{self.shown} is not a ledger but {result}. Name another file; it was not changed")
        if version != _VERSION:
            raise LedgerError(
                f"{self.shown} is a ledger of file version {version}, and this library knows version {_VERSION}: use the version "
                "of dpmoments that wrote it, or a newer one; it was not changed"
            )
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "delete":
            raise LedgerError(
                f"the ledger {self.shown} is in journal mode {mode!r}, which another program set: ledgers are kept in mode "
                "'delete' (PRAGMA journal_mode = DELETE puts it back)"
            )
        statements = connection.execute("SELECT sql FROM sqlite_master").fetchall()
        if sorted(str(statement) for (statement,) in statements) != sorted(_OBJECTS):
            raise LedgerError(
                f"{self.shown} is damaged, or was changed by another program: its tables are not a ledger's"
            )

    def identity(self, connection: sqlite3.Connection) -> str:
        """Return the ledger's id."""
        rows = connection.execute("SELECT id FROM identity").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], str) or len(rows[0][0]) != _ID_DIGITS:
            raise LedgerError(f"{self.shown} is damaged: it has no id of its own")
        return str(rows[0][0])

    def _explain(self, reason: sqlite3.Error) -> NoReturn:
        """Raise LedgerError with the meaning of an SQLite error."""
        code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
        words = {
            sqlite3.SQLITE_BUSY: f"is locked: another process has been writing it for {self.timeout:g} s. Try again",
            sqlite3.SQLITE_LOCKED: "is locked by another use in this process. Try again",
            sqlite3.SQLITE_READONLY: "cannot be written: the file, its folder or the disk is read-only",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened: look at its permissions, and at those of its folder",
            sqlite3.SQLITE_PERM: "cannot be opened: look at its permissions",
            sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
            sqlite3.SQLITE_IOERR: "cannot be read or written: the disk refuses (full, or failing)",
            sqlite3.SQLITE_NOTADB: "is not an SQLite file, or is damaged at its beginning",
            sqlite3.SQLITE_CORRUPT: "is damaged: restore a copy, and check it with 'dpmoments ledger verify' and its releases",
        }.get(code, f"cannot be used ({reason})")
        raise LedgerError(f"the ledger {self.shown} {words}") from reason


def _count_names(path: Path) -> int:
    """Return the number of hard links of a file, without its temporary names."""
    path = path.resolve()
    while True:
        before = path.stat()
        if before.st_nlink <= 1:
            return 1
        made_under = 0
        for entry in os.scandir(path.parent):
            if entry.name.startswith(_TEMPORARY[0]) and entry.name.endswith(_TEMPORARY[1]):
                with suppress(FileNotFoundError):
                    made_under += os.path.samestat(entry.stat(follow_symlinks=False), before)
        if path.stat().st_nlink == before.st_nlink:
            return before.st_nlink - made_under


def _publish(temporary: Path, path: Path) -> None:
    """Move the finished file to its name in one step, unless another process was first."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links: the name is taken first, by one process alone
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return
        os.replace(temporary, path)
    with suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
