"""Checks that a ledger is intact and contains the releases charged to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dpmoments.foundation.errors import LedgerError
from dpmoments.ledger.accounts import Accounts, Action
from dpmoments.ledger.grants import unit_name
from dpmoments.privacy.origin import LedgerEntry


@dataclass(frozen=True, slots=True)
class LedgerCheck:
    """Result of one check."""

    what: str
    passed: bool
    detail: str


def check_history(connection: sqlite3.Connection, ledger: str) -> tuple[Accounts, list[LedgerCheck]]:
    """Check the file's structure, the chain of hashes, and the sums of all entries."""
    problems = [problem for (problem,) in connection.execute("PRAGMA integrity_check").fetchall()]
    whole = LedgerCheck("the file's structure", problems == ["ok"], "; ".join(map(str, problems[:3])))
    accounts, broken = Accounts(ledger), ""
    for number, text, digest in connection.execute("SELECT number, entry, hash FROM history ORDER BY number"):
        try:
            accounts.read(number, text, digest)
        except LedgerError as reason:
            broken = str(reason)
            break
    head = accounts.head
    words = f"{accounts.number} entries" + ("" if head is None else f", head {head.number}:{head.hash}")
    chain = LedgerCheck("the chain of hashes and the order of entries", not broken, broken or words)
    faults = accounts.faults()
    sums = LedgerCheck(
        "recomputed losses of releases",
        not faults,
        "; ".join(faults[:3]) or f"{len(accounts.reservations)} reservations, within every grant",
    )
    return accounts, [whole, chain, sums]


def check_head(accounts: Accounts, head: LedgerEntry) -> LedgerCheck:
    """Check that the history contains a head that was kept elsewhere."""
    what = f"the head kept from entry {head.number}"
    if fault := _fault_of_place(accounts, head):
        return LedgerCheck(what, False, fault)
    return LedgerCheck(what, True, f"{accounts.number - head.number} entries were added since")


def check_release(accounts: Accounts, release: Any) -> LedgerCheck:
    """Check that a release is in the history as it states."""
    origin = release.origin
    what = f"{origin.label}, {origin.id[:8]}…"
    if origin.ledger is None:
        return LedgerCheck(what, False, "it was not charged to a ledger")
    if fault := _fault_of_place(accounts, origin.ledger):
        return LedgerCheck(what, False, fault)
    held = accounts.reservations.get(origin.ledger.number)
    run = origin.id if origin.group is None else origin.group.run
    if held is None or (held.release, held.dataset) != (run, origin.dataset):
        return LedgerCheck(what, False, f"entry {origin.ledger.number} belongs to another release")
    if held.state is Action.REFUND:
        return LedgerCheck(what, False, f"its reservation, entry {origin.ledger.number}, was refunded")
    if held.cost != release.privacy.budget:
        return LedgerCheck(what, False, f"entry {origin.ledger.number} has another cost, {held.cost}")
    if (held.neighbors, held.unit) != (release.privacy.neighbors, unit_name(release.privacy.privacy_unit)):
        return LedgerCheck(
            what,
            False,
            f"entry {origin.ledger.number} is for neighbors={str(held.neighbors)!r} and the unit {held.unit!r}",
        )
    state = "committed" if held.state is Action.COMMIT else "reserved, never committed: it counts as spent"
    return LedgerCheck(what, True, f"{held.cost} in entry {origin.ledger.number}, {state}")


def originals(release: Any) -> Iterator[Any]:
    """Yield the releases that were charged: those in a grouped or pooled release."""
    for name in ("releases", "parts"):
        if (parts := getattr(release, name, None)) is not None:
            for part in parts:
                yield from originals(part)
            return
    yield release


def _fault_of_place(accounts: Accounts, entry: LedgerEntry) -> str:
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
