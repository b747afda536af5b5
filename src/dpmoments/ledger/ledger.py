"""The ledger: what each dataset's releases may lose together, what they have lost, kept in one file that survives a crash."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any

from dpmoments.foundation.errors import LedgerError
from dpmoments.ledger.accounts import Account, Accounts, Action, HistoryEntry
from dpmoments.ledger.composition import losses_of
from dpmoments.ledger.database import LedgerFile
from dpmoments.ledger.grants import Amount, Composition, Grant, check_unit, require_dataset
from dpmoments.ledger.verification import LedgerCheck, check_head, check_history, check_release, originals
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.origin import LedgerEntry
from dpmoments.privacy.unit import Neighbors

# What follows in a history: counted in, and written, within one transaction.


class Appending:
    """Appends entries in a transaction that holds the lock on the file.

    Parameters
    ----------
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


# The accounts of a file, kept in memory between uses and brought up to the file at each of them.


class _KeptAccounts:
    """What was read of a file once is not read again; that it is still there is looked at."""

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
            result = connection.execute(query, (self.seen.number,)).fetchone()
            if identity != self.seen.ledger or result != (self.seen.hash,):
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


_SECONDS_TO_WAIT = 30.0


class _Process:
    """A process, by an object that only it has: a fork makes its own, since process ids are reused."""

    current: object = object()

    @classmethod
    def forked(cls) -> None:
        """Give a new process its own object."""
        cls.current = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Process.forked)


class Ledger:
    """The privacy budgets of datasets, and what their releases spent of them.

    A release that is given a ledger reserves its whole cost, on the disk, before a row is read, and commits it when its file is
    written. A crash in between leaves a reservation, which counts as spent for ever: it can waste budget, and never lets any be
    spent twice. Threads and processes may share a file; ``docs/ledger.md`` has a session.

    Parameters
    ----------
    path : path
        The file; :meth:`grant` makes it where there is none. Keep it on a local disk: file locks of network drives are not to be
        relied on. Copies of the object, in this process or another, are of the same file.
    timeout : float
        Seconds to wait for another process that writes.

    Notes
    -----
    **Privacy.** All releases charged to a dataset, each chosen in any way from those before it, together keep the budget it was
    granted, for the grant's neighbours and unit: the ledger is a privacy filter over releases (Rogers et al. 2016;
    ``docs/derivations/ledger.md``). Numbers are exact; they are taken as they are written (0.1 is one tenth).

    Every entry of the history carries a hash of all entries before it, and every release the hash of its own. This shows a
    ledger that was cut, restored from an old copy or edited, to whoever holds a release or an earlier head; who can write the
    file and knows of no release can write another history.

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
        self._kept = _KeptAccounts(LedgerFile(path, timeout))
        self._reserved: dict[
            LedgerEntry, object
        ] = {}  # by whom: never copied, written or sent, so that others cannot refund

    @property
    def path(self) -> str:
        """The file, as it was named."""
        return self._kept.file.shown

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def __deepcopy__(self, memo: object) -> Ledger:
        """The ledger itself: a copy of what holds it spends the same budget."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process the same file, which must still be the ledger that it was here."""
        return Ledger._opened_again, (str(self._kept.file.path), self._kept.file.timeout, self._kept.seen)

    @classmethod
    def _opened_again(cls, path: str, timeout: float, seen: LedgerEntry | None) -> Ledger:
        ledger = cls(path, timeout=timeout)
        ledger._kept.seen = seen
        return ledger

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
    ) -> Grant:
        """Grant a dataset its budget, or another amount in place of the one it has.

        Parameters
        ----------
        dataset : str
            What releases call the table.
        epsilon, delta, rho, mu : float
            Pure ε; (ε, δ); ρ-zCDP; or μ-Gaussian privacy.
        neighbors : {"add_remove", "replace_one"}
            The relation of the guarantee. A release for ``add_remove`` counts twice (four times in ρ) under ``replace_one``; one
            for ``replace_one`` is refused under ``add_remove``.
        unit : str
            Whom it protects: releases for another unit are refused.
        composition : {"auto", "basic", "zcdp", "gaussian"}
            Under (ε, δ), how costs add up: part by part; in ρ, or in μ, converted with all of δ. ``auto``: part by part with half
            of δ, or in ρ or μ with a quarter each; part by part with all of it where the first release has no ρ.

        Returns
        -------
        Grant

        Raises
        ------
        ValueError, TypeError
            If the arguments make no budget.
        LedgerError
            If the new grant is below what is spent, or of another kind while something is spent; or the file cannot be used.
        """
        name = require_dataset(dataset)
        granted = Grant.of(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, neighbors=neighbors, unit=unit, composition=composition
        )
        self._kept.make()
        with self._kept.writing() as write:
            write(Action.GRANT, name, granted.to_dict())
        return granted

    def account(self, dataset: str) -> Account:
        """Grant, sums and numbers of releases of a dataset.

        Raises
        ------
        LedgerError
            If it was granted nothing, or the file cannot be used.
        """
        with self._kept.reading() as accounts:
            return accounts.account(dataset)

    @property
    def datasets(self) -> tuple[str, ...]:
        """Those that were granted a budget."""
        with self._kept.reading() as accounts:
            return tuple(accounts.by_dataset)

    @property
    def identity(self) -> str:
        """The ledger's id, which each of its releases names."""
        with self._kept.reading() as accounts:
            return accounts.ledger

    @property
    def head(self) -> LedgerEntry | None:
        """The last entry's number and hash; kept elsewhere, it shows later whether the ledger was cut or replaced."""
        with self._kept.reading() as accounts:
            return accounts.head

    def spent(self, dataset: str) -> Amount:
        """What the releases of a dataset come to, in the kind of its grant; reservations that were never committed count.

        Under (ε, δ) it is the least ε that the rules of composition give. It is for planning: what is guaranteed is the grant.

        Raises
        ------
        LedgerError
            If it was granted nothing, or the file cannot be used.
        """
        return self.account(dataset).spent

    def left(self, dataset: str) -> Amount:
        """What one more release of a dataset may cost.

        Under (ε, δ), ``epsilon`` is the most for a pure release, ``rho`` for a ρ-zCDP one and ``mu`` for one of Gaussian draws,
        each taken alone; ``delta`` the most of one that is added part by part.

        Raises
        ------
        LedgerError
            If it was granted nothing, or the file cannot be used.
        """
        return self.account(dataset).left

    def history(self, dataset: str | None = None) -> tuple[HistoryEntry, ...]:
        """All entries in their order, or those of one dataset.

        Raises
        ------
        LedgerError
            If the dataset was granted nothing, or the file cannot be used.
        """
        with self._kept.reading() as accounts:
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
        """Set aside what a release costs; on the disk when this returns. ``dpm.release`` does it before it reads a row.

        Parameters
        ----------
        dataset : str
        cost : PrivacyBudget
            What the release states, whatever a run draws.
        loss_unit : LossUnit
            In which the losses of its draws add up: what the cost may be converted to.
        neighbors, unit
            What the cost is for.
        release : str
            The release's id.
        mechanism : str
            For the history.

        Returns
        -------
        LedgerEntry
            For :meth:`commit`, :meth:`refund` and the release's origin.

        Raises
        ------
        BudgetExceededError
            If the grant does not allow it.
        LedgerError
            If nothing was granted, or for another relation or unit; or the file cannot be used.
        """
        name, relation = require_dataset(dataset), Neighbors.of(neighbors)
        counted = LossUnit(loss_unit)
        check_unit(unit)
        with self._kept.writing() as write:
            account = write.accounts.account(name)
            account.require_for(relation, unit)
            losses = losses_of(cost, counted, relation, account.grant.neighbors)
            content = {
                "release": release,
                "mechanism": mechanism,
                "cost": cost.to_dict(),
                "loss_unit": str(counted),
                "neighbors": str(relation),
                "unit": unit,
                "losses": losses.to_dict(),
            }
            entry = write(Action.RESERVE, name, content).of(write.accounts.ledger)
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
        """Refund what was reserved for a run that ended before it drew any noise.

        Only the object that reserved it can know this, in the process that it reserved it in: another object for the same file, a
        copy, or the same object in a forked process is refused.

        Raises
        ------
        LedgerError
            As for :meth:`commit`, or if another object or process reserved it.
        """
        self._end(Action.REFUND, entry)

    def _end(self, action: Action, entry: LedgerEntry) -> None:
        with self._kept.writing() as write:
            accounts = write.accounts
            known = accounts.history[entry.number - 1] if 0 < entry.number <= accounts.number else None
            if known is None or known.of(accounts.ledger) != entry:
                raise LedgerError(
                    f"{self.path} is not the ledger in which entry {entry.number} was written: it was cut, restored from an "
                    "older copy, or replaced"
                )
            if action is Action.REFUND and self._reserved.get(entry) is not _Process.current:
                raise LedgerError(
                    f"this object did not reserve entry {entry.number} of {self.path} in this process: whether its run drew "
                    "noise is known only where it was reserved. It counts as spent unless that object refunds it"
                )
            write(action, known.dataset, {"reservation": entry.number})

    def verify(self, releases: Iterable[Any] = (), *, head: LedgerEntry | None = None) -> tuple[LedgerCheck, ...]:
        """Check the whole file: its structure, every link of the chain, every sum, and that releases are in it.

        Parameters
        ----------
        releases : iterable of MomentRelease, MeanRelease or GroupReleases
            Each must be in the history, under its number, hash, id, dataset and cost. A ledger that was cut, or restored from a
            copy made before, does not have them.
        head : LedgerEntry, optional
            A head that was kept elsewhere: the history must go through it.

        Returns
        -------
        tuple of LedgerCheck

        Raises
        ------
        LedgerError
            If the file is absent, locked, or no ledger at all.
        """
        with self._kept.file.opened() as connection:
            accounts, result = check_history(connection, self._kept.file.identity(connection))
        known = [] if head is None else [check_head(accounts, head)]
        return (*result, *known, *(check_release(accounts, one) for release in releases for one in originals(release)))
