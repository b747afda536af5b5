"""Ledger of datasets' privacy budgets: one SQLite database, durable after each transaction."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn

from dpmoments.base.documents import publish
from dpmoments.base.errors import InputValueError, LedgerError, shown
from dpmoments.base.values import check_text
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.accounts import Account, Accounts, Action, HistoryEntry, NoGrantError, ReservedCost, losses_of
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.grants import Amount, Composition, Grant, check_unit, require_dataset, unit_name
from dpmoments.privacy.origin import LedgerEntry
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check; ``passed`` is None if undecidable, with the reason in ``detail``."""

    what: str
    passed: bool | None
    detail: str


def _check_release(accounts: Accounts, release: Any) -> Check:
    """Check that a release is in the history as it states."""
    origin, privacy, entry = release.origin, release.privacy, release.origin.ledger
    run = origin.id if origin.group is None else origin.group.run
    held = None if entry is None else accounts.reservations.get(entry.number)
    if entry is None:
        fault = "it was not charged to a ledger"
    elif not (fault := _fault_of_entry(accounts, entry)):
        if held is None or (held.release, accounts.history[entry.number - 1].dataset) != (run, origin.dataset):
            fault = f"entry {entry.number} belongs to another release"
        elif accounts.ended.get(entry.number) is Action.REFUND:
            fault = f"its reservation, entry {entry.number}, was refunded"
        elif held.cost != privacy.budget and not (
            # how a release is planned for levels that it finds, and what that spends, is not known when it is charged
            release.receipt.before is not None and held.cost.covers(privacy.budget)
        ):
            fault = f"entry {entry.number} has another cost, {held.cost}"
        elif (held.neighbors, held.unit) != (privacy.neighbors, unit_name(privacy.privacy_unit)):
            fault = f"entry {entry.number} is for {held.neighbors} and the unit {held.unit!r}"
    what = f"{origin.label}, {origin.id[:8]}…"
    if fault or held is None or entry is None:
        return Check(what, False, fault)
    state = "committed" if entry.number in accounts.ended else "reserved, never committed: it counts as spent"
    return Check(what, True, f"{held.cost} in entry {entry.number}, {state}")


def originals(release: Any) -> Iterator[Any]:
    """Yield the releases that were charged: those in a grouped or pooled release."""
    for name in ("releases", "parts"):
        if (parts := getattr(release, name, None)) is not None:
            for part in parts:
                yield from originals(part)
            return
    yield release


def _fault_of_entry(accounts: Accounts, entry: LedgerEntry) -> str:
    if entry.ledger != accounts.ledger:
        return "it belongs to another ledger"
    if entry.number > accounts.number:
        return (
            f"the history ends at entry {accounts.number}, before its entry {entry.number}: the ledger was cut, or restored from "
            "an older copy"
        )
    if accounts.history[entry.number - 1].hash != entry.hash:
        return f"entry {entry.number} of the history differs: the ledger was restored from an older copy, or rewritten"
    return ""


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


_FOREIGN_ADVICE = "Name another file; it was not changed."


class LedgerFile:
    """Ledger's path, opened again for every use, so that a moved or replaced file is noticed."""

    def __init__(self, path: str | os.PathLike[str], timeout: float) -> None:
        self.shown = os.fspath(path)
        if "\0" in self.shown:
            raise InputValueError(f"{shown(self.shown)} cannot be the name of a file")
        self.path = Path(path).absolute()
        self.timeout = timeout

    def exists(self) -> bool:
        """Return True if the file exists; raise LedgerError if it cannot."""
        if self.path.is_dir():
            raise LedgerError(f"{self.shown} is a folder: name the ledger's file in it.")
        if not self.path.parent.is_dir():
            raise LedgerError(f"The folder {self.path.parent} of the ledger does not exist.")
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
            publish(temporary, self.path)
        except FileExistsError:
            return
        except sqlite3.Error as reason:
            self._explain(reason)
        except OSError as reason:
            raise LedgerError(f"The ledger {self.shown} cannot be made: {reason.strerror}.") from None
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    @contextmanager
    def opened(self, *, writing: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a transaction, committed to disk at the end or rolled back if the block raises."""
        if not self.exists():
            raise NoGrantError.of(f"The ledger {self.shown} does not exist.", "Create it with {}.", path=self.shown)
        n_names = 1
        with suppress(OSError):  # gone, or not to be looked at: SQLite says which
            n_names = _count_names(self.path)
        if n_names > 1:  # SQLite names its journal after the path that is opened
            raise LedgerError(
                f"{self.shown} has {n_names} names (hard links): a transaction under one name is not seen under another, so "
                "that budget could be spent twice. Delete all names but one, and open the ledger by that or by a symbolic link "
                f"to it ('find FOLDER -samefile {self.shown}' lists them; make backups by copying)."
            )
        connection = None
        try:
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw", uri=True, timeout=self.timeout, isolation_level=None
            )
            # On the disk before the call returns, folder included; on macOS past the drive's own cache too.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            self._check(connection)
            yield connection
            connection.execute("COMMIT")
        except sqlite3.Error as reason:
            self._explain(reason)
        finally:
            if connection is not None:
                connection.close()  # a transaction that was not committed is rolled back

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            empty = self.path.stat().st_size == 0
            content = (
                "an empty file, perhaps the rest of a damaged ledger" if empty else "an SQLite file of another program"
            )
            raise LedgerError(f"{self.shown} is not a ledger but {content}. {_FOREIGN_ADVICE}")
        if version != _VERSION:
            raise LedgerError(
                f"{self.shown} is a ledger of file version {version}, and this library knows version {_VERSION}: use the "
                "version of dpmoments that wrote it, or a newer one; it was not changed."
            )
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != "delete":
            raise LedgerError(
                f"The ledger {self.shown} is in journal mode '{mode}', which another program set: ledgers are kept in mode "
                "'delete' (PRAGMA journal_mode = DELETE puts it back)."
            )
        statements = connection.execute("SELECT sql FROM sqlite_master").fetchall()
        if sorted(str(statement) for (statement,) in statements) != sorted(_OBJECTS):
            raise LedgerError(
                f"{self.shown} is damaged, or was changed by another program: its tables are not a ledger's."
            )

    def identity(self, connection: sqlite3.Connection) -> str:
        """Return the ledger's id."""
        rows = connection.execute("SELECT id FROM identity").fetchall()
        if len(rows) != 1 or not isinstance(rows[0][0], str) or len(rows[0][0]) != _ID_DIGITS:
            raise LedgerError(f"{self.shown} is damaged: it has no id of its own.")
        return str(rows[0][0])

    def _explain(self, reason: sqlite3.Error) -> NoReturn:
        """Raise LedgerError with the meaning of an SQLite error."""
        code = getattr(reason, "sqlite_errorcode", 0) & 0xFF
        ledger = f"The ledger {self.shown}"
        permissions = f"{ledger} cannot be opened: look at its permissions, and at those of its folder."
        meanings = {
            sqlite3.SQLITE_BUSY: (
                f"{ledger} is locked: another process has been writing it for {self.timeout:g} s. Try again."
            ),
            sqlite3.SQLITE_LOCKED: f"{ledger} is locked by another use in this process. Try again.",
            sqlite3.SQLITE_READONLY: f"{ledger} cannot be written: the file, its folder or the disk is read-only.",
            sqlite3.SQLITE_CANTOPEN: permissions,
            sqlite3.SQLITE_PERM: permissions,
            sqlite3.SQLITE_FULL: f"{ledger} cannot be written: the disk is full.",
            sqlite3.SQLITE_IOERR: f"{ledger} cannot be read or written: the disk refuses (full, or failing).",
            sqlite3.SQLITE_NOTADB: (
                f"{self.shown} is not an SQLite file, or is damaged at its beginning. {_FOREIGN_ADVICE}"
            ),
            sqlite3.SQLITE_CORRUPT: (
                f"{ledger} is damaged: restore a copy, and check it with 'dpmoments ledger verify' and its releases."
            ),
        }
        raise LedgerError(meanings.get(code, f"{ledger} cannot be used ({reason}).")) from reason


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


_SECONDS_TO_WAIT = 30.0
_MAX_LINE = 300


class _Process:
    """Identity of a process; a fork gets a new one, since process ids are reused."""

    current: object = object()

    @classmethod
    def forked(cls) -> None:
        cls.current = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


def _line(option: str, text: object) -> str | None:
    """Return one line of printable text for the history; None if none is given."""
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > _MAX_LINE:
        raise InputValueError(f"{option}={shown(text)} must be one line of at most {_MAX_LINE} printable characters")
    check_text(text, option)
    return text


class Ledger:
    """Privacy budgets of datasets, and what their releases have spent.

    A release with a ledger reserves its whole cost on disk before it reads a row, and commits it when its file is
    written. A crash in between leaves a reservation, which counts as spent forever: it can waste budget, but never lets
    any be spent twice. Threads and processes may share a file (``docs/ledger.md``). Every method raises LedgerError if the
    file cannot be used, or has no grant for the dataset that is named.

    Parameters
    ----------
    path : path
        The file; :meth:`grant` creates it. Keep it on a local disk: file locks on network drives are unreliable. Copies
        of the object, in any process, use the same file.
    timeout : float
        Seconds to wait for another process that writes.

    Notes
    -----
    **Privacy.** All releases charged to a dataset, each chosen in any way from those before it, together satisfy the
    budget that it was granted, for the grant's neighbors and unit: the ledger is a privacy filter over releases (Rogers
    et al. 2016; ``docs/evidence/derivations/ledger.md``). Arithmetic is exact on numbers as written (0.1 is one tenth).

    Every entry carries a hash of all entries before it, and every release the hash of its own. Anyone who holds a
    release or an earlier head can therefore detect a ledger that was cut, edited or restored from an old copy. Without
    one, a history that was rewritten as a whole cannot be detected.

    Examples
    --------
    >>> import tempfile, numpy as np, dpmoments as dpm
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = dpm.Ledger(f"{folder.name}/budget.db")
    >>> print(ledger.grant("people-2026", epsilon=3.0, delta=1e-6))
    ε = 3, δ = 1e-06
    >>> table, schema = np.zeros((1000, 2)), dpm.Schema.unit_ball(2)
    >>> released = dpm.release(table, schema, epsilon=1.0, ledger=ledger, dataset="people-2026")
    >>> ledger.spent("people-2026").epsilon, ledger.left("people-2026").epsilon
    (1.0, 2.0)
    >>> all(check.passed for check in ledger.verify([released]))
    True
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = _SECONDS_TO_WAIT) -> None:
        self._file = LedgerFile(path, timeout)
        # the accounts of the file, kept between uses, and the last entry that was seen: a file without it was replaced
        self._accounts: Accounts | None = None
        self._seen: LedgerEntry | None = None
        self._lock = RLock()
        # by whom: never copied, written or sent, so that others cannot refund
        self._reserved: dict[LedgerEntry, object] = {}

    @property
    def path(self) -> str:
        """Path of the file, as given."""
        return self._file.shown

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def __deepcopy__(self, memo: object) -> Ledger:
        """Return the ledger itself, since a copy spends the same budget."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Open the same file in another process, where it must still be this ledger."""
        return partial(Ledger, timeout=self._file.timeout), (str(self._file.path),), {"_seen": self._seen}

    @contextmanager
    def _reading(self) -> Iterator[Accounts]:
        """Read the accounts as the file has them."""
        with self._lock, self._file.opened() as connection:
            yield self._caught_up(connection)

    @contextmanager
    def _writing(self) -> Iterator[tuple[Accounts, Callable[[Action, str, Mapping[str, Any]], HistoryEntry]]]:
        """Open a transaction under the file's lock: checks and the written entry see one state."""
        with self._lock:
            try:
                with self._file.opened(writing=True) as connection:
                    accounts = self._caught_up(connection)

                    def append(action: Action, dataset: str, content: Mapping[str, Any]) -> HistoryEntry:
                        entry = HistoryEntry.after(accounts.number, accounts.link, action, dataset, content)
                        accounts.apply(entry)
                        values = entry.number, entry.text, entry.hash
                        connection.execute("INSERT INTO history VALUES (?, ?, ?)", values)
                        return entry

                    yield accounts, append
                self._seen = accounts.head
            except BaseException:
                if self._accounts is not None and self._accounts.head != self._seen:
                    self._accounts = None  # what was counted was not written
                raise

    def _caught_up(self, connection: sqlite3.Connection) -> Accounts:
        """Read new entries, after checking that those read before are still there."""
        identity = self._file.identity(connection)
        accounts = self._accounts if self._accounts is not None else Accounts(identity)
        self._accounts = None
        if self._seen is not None:
            query = "SELECT hash FROM history WHERE number = ?"
            known = connection.execute(query, (self._seen.number,)).fetchone()
            if identity != self._seen.ledger or known != (self._seen.hash,):
                raise LedgerError(
                    f"{self._file.shown} is no longer the ledger that was opened: it was cut, restored from an older copy, or "
                    "replaced. Find out why before releasing anything."
                )
        query = "SELECT number, entry, hash FROM history WHERE number > ? ORDER BY number"
        for number, text, digest in connection.execute(query, (accounts.number,)):
            accounts.read(number, text, digest)
        self._accounts, self._seen = accounts, accounts.head
        return accounts

    def grant(
        self,
        dataset: str,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: Neighbors | str = "add_remove",
        unit: str = "row",
        composition: Composition | str = "auto",
        reason: str | None = None,
        by: str | None = None,
    ) -> Grant:
        """Grant a dataset its budget, or change the amount of its present one.

        Parameters
        ----------
        dataset : str
            Name that releases give to the dataset.
        epsilon, delta, rho, mu : float
            Pure ε; (ε, δ); ρ-zCDP; or μ-Gaussian privacy.
        neighbors : {"add_remove", "replace_one"}
            The relation of the guarantee. A release for ``add_remove`` counts twice (four times in ρ) under ``replace_one``; one
            for ``replace_one`` is refused under ``add_remove``.
        unit : str
            The privacy unit; releases for another unit are refused.
        composition : {"auto", "basic", "zcdp", "gaussian"}
            How costs add up under (ε, δ): ``basic`` adds ε and δ; ``zcdp`` and ``gaussian`` add ρ or μ², converted with all of δ.
            ``auto``: a release must fit one of three sums, ``basic`` with half of δ, or ``zcdp`` or ``gaussian`` with a
            quarter each; if the first release has no ρ, it is ``basic`` with all of δ.

        reason, by : str
            Why the amount changes, and who decided it: one line each. Needed to raise a grant of which something is spent;
            :meth:`history`, ``ledger show`` and the statement for auditors print them.

        Returns
        -------
        Grant

        Raises
        ------
        ValueError, TypeError
            If the arguments do not make a budget, or a grant is raised without a reason after something was spent.
        LedgerError
            If the new grant is below what is spent, or of another kind while something is spent; or the file cannot be used.
        """
        name = require_dataset(dataset)
        granted = Grant.of(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, neighbors=neighbors, unit=unit, composition=composition
        )
        with self._lock:
            if self._seen is None and not self._file.exists():  # never in place of one that existed before
                self._file.create()
        granted = replace(granted, reason=_line("reason", reason), by=_line("by", by))
        with self._writing() as (accounts, append):
            known = accounts.by_dataset.get(name)
            if known is not None and known.is_raised_by(granted) and None in (granted.reason, granted.by):
                refused = (
                    f"the budget of '{name}' is {known.grant}, and some of it is spent: to make it {granted}, state why and who "
                    "decided it: "
                )
                raise InputValueError(
                    f"{refused}reason='…', by='…'; the history keeps both",
                    shell=f"{refused}--reason TEXT --by NAME; the history keeps both",
                )
            append(Action.GRANT, name, granted.to_dict())
        return granted

    def account(self, dataset: str) -> Account:
        """Return the grant, sums and numbers of releases of a dataset."""
        with self._reading() as accounts:
            return accounts.account(dataset)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Datasets with a grant."""
        with self._reading() as accounts:
            return tuple(accounts.by_dataset)

    @property
    def identity(self) -> str:
        """Ledger's id, stored in each release that it was charged for."""
        with self._reading() as accounts:
            return accounts.ledger

    @property
    def head(self) -> LedgerEntry | None:
        """Number and hash of the last entry; a copy kept elsewhere detects a cut or replaced ledger."""
        with self._reading() as accounts:
            return accounts.head

    def spent(self, dataset: str) -> Amount:
        """Return the total loss of a dataset's releases, including open reservations.

        It is in the kind of the grant; under (ε, δ) it is the smallest ε that the composition rules give. Use it for
        planning: the guarantee is the grant.
        """
        return self.account(dataset).spent

    def left(self, dataset: str) -> Amount:
        """Return the maximum cost of one more release of a dataset.

        Under (ε, δ), ``epsilon`` is the maximum of a pure release, ``rho`` of a ρ-zCDP one, and ``mu`` of one with only Gaussian
        draws (alternatives, not a sum); ``delta`` is the maximum under basic composition.
        """
        return self.account(dataset).left

    def history(self, dataset: str | None = None) -> tuple[HistoryEntry, ...]:
        """Return all entries in order, or those of one dataset."""
        with self._reading() as accounts:
            if dataset is not None:
                accounts.account(dataset)
            return tuple(entry for entry in accounts.history if dataset in (None, entry.dataset))

    def reserve(
        self,
        dataset: str,
        cost: PrivacyBudget,
        loss_unit: LossUnit | str,
        *,
        neighbors: Neighbors | str,
        unit: str = "row",
        release: str,
        mechanism: str = "",
    ) -> LedgerEntry:
        """Reserve the cost of a release on disk; ``dpm.release`` does so before it reads a row.

        Parameters
        ----------
        dataset : str
        cost : PrivacyBudget
            The privacy loss that the release states, whatever its run draws.
        loss_unit : LossUnit
            Unit in which the losses of its draws add up, which decides the conversions of the cost.
        neighbors, unit
            Relation and privacy unit of the cost.
        release : str
            The release's id.
        mechanism : str
            Name for the history.

        Returns
        -------
        LedgerEntry
            For :meth:`commit`, :meth:`refund` and the release's origin.

        Raises
        ------
        BudgetExceededError
            If the grant does not allow it.
        LedgerError
            If the dataset has no grant, or one for another relation or unit; or the file cannot be used.
        """
        name, relation = require_dataset(dataset), Neighbors.of(neighbors)
        counted = LossUnit(loss_unit)
        check_unit(unit)
        with self._writing() as (accounts, append):
            account = accounts.account(name)
            account.require_for(relation, unit)
            losses = losses_of(cost, counted, relation, account.grant.neighbors)
            reserved = ReservedCost(release, mechanism, cost, counted, relation, unit, losses)
            entry = append(Action.RESERVE, name, reserved.to_dict()).of(accounts.ledger)
        self._reserved[entry] = _Process.current
        return entry

    def commit(self, entry: LedgerEntry) -> None:
        """Record that the release of a reservation was made.

        Raises
        ------
        LedgerError
            If the history does not hold the reservation, or it has ended; or the file cannot be used.
        """
        self._end(Action.COMMIT, entry)

    def refund(self, entry: LedgerEntry) -> None:
        """Refund the reservation of a run that ended before it drew any noise.

        Only the object that made the reservation, in the same process, can know this: another object for the same file,
        a copy, or the same object in a forked process is refused.

        Raises
        ------
        LedgerError
            As for :meth:`commit`, or if another object or process made the reservation.
        """
        self._end(Action.REFUND, entry)

    def _end(self, action: Action, entry: LedgerEntry) -> None:
        with self._writing() as (accounts, append):
            known = accounts.history[entry.number - 1] if 0 < entry.number <= accounts.number else None
            if known is None or known.of(accounts.ledger) != entry:
                raise LedgerError(
                    f"{self.path} is not the ledger in which entry {entry.number} was written: it was cut, restored from an "
                    "older copy, or replaced."
                )
            if action is Action.REFUND and self._reserved.get(entry) is not _Process.current:
                raise LedgerError(
                    f"This object did not reserve entry {entry.number} of {self.path} in this process: whether its run drew "
                    "noise is known only where it was reserved. It counts as spent unless that object refunds it."
                )
            append(action, known.dataset, {"reservation": entry.number})

    def verify(self, releases: Iterable[Any] = (), *, head: LedgerEntry | None = None) -> tuple[Check, ...]:
        """Check the whole file: its structure, the chain of hashes, every sum, and given releases.

        Parameters
        ----------
        releases : iterable of MomentRelease, MeanRelease or GroupReleases
            Each must be in the history with its number, hash, id, dataset and cost. A ledger that was cut, or restored from an
            older copy, does not have them.
        head : LedgerEntry, optional
            A head that was kept elsewhere: the history must contain it.

        Returns
        -------
        tuple of Check

        Raises
        ------
        LedgerError
            If the file is absent, locked, or not a ledger.
        """
        with self._file.opened() as connection:
            accounts, broken = Accounts(self._file.identity(connection)), ""
            problems = [problem for (problem,) in connection.execute("PRAGMA integrity_check").fetchall()]
            for number, text, digest in connection.execute("SELECT number, entry, hash FROM history ORDER BY number"):
                try:
                    accounts.read(number, text, digest)
                except LedgerError as reason:
                    broken = str(reason)
                    break
        last, faults = accounts.head, accounts.faults()
        entries = f"{accounts.number} entries" + ("" if last is None else f", head {last.number}:{last.hash}")
        sums = f"{len(accounts.reservations)} reservations, within every grant"
        checks = [
            Check("the file's structure", problems == ["ok"], "; ".join(map(str, problems[:3]))),
            Check("the chain of hashes and the order of entries", not broken, broken or entries),
            Check("recomputed losses of releases", not faults, "; ".join(faults[:3]) or sums),
        ]
        if head is not None:
            fault = _fault_of_entry(accounts, head)
            added = f"{accounts.number - head.number} entries were added since"
            checks.append(Check(f"the head kept from entry {head.number}", not fault, fault or added))
        return (*checks, *(_check_release(accounts, one) for release in releases for one in originals(release)))
