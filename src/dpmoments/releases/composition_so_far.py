"""What an auditor is told of the other releases of the same table: what a ledger knows, or that none was kept."""

from __future__ import annotations

import os

from dpmoments.ledger import Ledger
from dpmoments.ledger.verification import originals
from dpmoments.releases.facts import Told

__all__ = ["NO_LEDGER", "composition_so_far"]

NO_LEDGER = "No ledger was used: composition with other releases of the same people is not tracked here."


def composition_so_far(release: Told, ledger: Ledger | str | os.PathLike[str] | None = None) -> str:
    """What all releases of the dataset come to.

    Parameters
    ----------
    release : MomentRelease, MeanRelease, GroupReleases or PooledRelease
    ledger : Ledger or path, optional
        That the release was charged to. Without it, the entries that the release names are told.

    Raises
    ------
    ValueError
        If the ledger does not hold the release, or does not pass its own checks.
    LedgerError
        If its file cannot be used.
    """
    charged = [(one.origin.dataset, one.origin.ledger) for one in originals(release)]
    if ledger is None:
        entries = list(dict.fromkeys(entry for _, entry in charged if entry is not None))
        if not entries:
            return NO_LEDGER
        told = "; ".join(
            f"entry {entry.number} of the ledger {entry.ledger[:8]}…, hash {entry.hash[:16]}…" for entry in entries
        )
        return f"Charged as {told}. What all releases of the table come to, that ledger says."
    opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    failed = [check for check in opened.verify([release]) if not check.passed]
    if failed:
        raise ValueError(
            f"the ledger {opened.path} does not vouch for this release: {failed[0].what}: {failed[0].detail}"
        )
    told = "; ".join(
        _account_in_words(opened, dataset) for dataset in dict.fromkeys(name for name, _ in charged if name)
    )
    return f"By the ledger {opened.identity[:8]}…, whose chain of hashes holds this release: {told}."


def _account_in_words(ledger: Ledger, dataset: str) -> str:
    account = ledger.account(dataset)
    left_open = (
        ""
        if not account.n_open
        else f" and {account.n_open} reserved that were never recorded as made, which count too"
    )
    return (
        f"{account.n_released} releases of {dataset!r}{left_open} come to {account.spent.in_words()} of the "
        f"{account.grant.amount.in_words()} granted"
    )
