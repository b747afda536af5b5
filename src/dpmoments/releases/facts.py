"""Facts about a release that an auditor's statement and a registry entry share."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dpmoments.foundation.errors import InputValueError
from dpmoments.ledger import Ledger
from dpmoments.ledger.ledger import originals
from dpmoments.messages.message import Message
from dpmoments.privacy.profile import PrivacyProfile, RunCurve
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.statement import PrivacyStatement


class Told(Protocol):
    """Release of any kind, as an auditor sees it."""

    @property
    def id(self) -> str:
        """Unique id of the release."""

    @property
    def dataset(self) -> str | None:
        """Curator's name of the dataset."""

    @property
    def privacy(self) -> PrivacyStatement:
        """Privacy statement."""

    @property
    def receipt(self) -> Receipt:
        """List of all noise draws."""

    @property
    def warnings(self) -> tuple[Message, ...]:
        """Reasons not to trust it, found privately."""

    @property
    def runs(self) -> Sequence[Any]:
        """Releases of one run each that it consists of."""

    @property
    def privacy_curve(self) -> RunCurve:
        """Smallest proven δ at any ε."""

    @property
    def privacy_profile(self) -> PrivacyProfile:
        """Tightest known privacy profile."""


def protected_unit(release: Told) -> str:
    """Describe the privacy unit."""
    unit = release.privacy.privacy_unit
    return "one row of the table" if unit is None else unit.in_words


def describe_neighbors(release: Told) -> str:
    """Describe the neighboring tables."""
    if release.privacy.neighbors.table_size_is_public:
        return (
            "Neighboring tables have the same number of rows and differ in the values of one row (replace-one, "
            "change-one distance 1)."
        )
    unit = release.privacy.privacy_unit
    if unit is not None:
        return (
            f"Neighboring tables differ by the presence of all rows with one value of {unit.column}, however many "
            "(add-remove of a unit)."
        )
    return "Neighboring tables differ by the presence of one row (add-remove, symmetric distance 1)."


def describe_runs(release: Told) -> tuple[str, ...]:
    """Describe the mechanisms with their options, and the noise draws."""
    runs = Counter(_describe_run(run.mechanism, run.mechanism_options) for run in release.runs)
    lines = [f"Mechanism: {words}{'' if times == 1 else f', {times} times'}." for words, times in runs.items()]
    laws = Counter(draw.law.name for draw in release.receipt.draws)
    drawn = ", ".join(f"{times} {name}" for name, times in laws.items())
    return (*lines, f"Draws of noise on the receipt: {drawn or 'none'}.")


def _describe_run(mechanism: str, options: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{key}={value}" for key, value in options.items())
    return f"{mechanism} ({shown})" if shown else mechanism


def describe_composition(release: Told) -> str:
    """Describe how the losses within the release add up."""
    receipt = release.receipt
    count = len(receipt.draws)
    draws = "One draw, which loses" if count == 1 else f"{count} draws, which together lose"
    k = receipt.rows_per_unit
    of_row = (
        ""
        if k == 1
        else f" on one row of the {k:,} of a unit that count, and by group privacy the stated budget on the unit"
    )
    parts = f"{draws} {receipt.total} of {receipt.allowance} allowed{of_row}, counted in {receipt.unit}."
    groups = {draw.group for draw in receipt.draws} - {None}
    if not groups:
        return parts
    disjoint = f"A row is in one of {len(groups)} disjoint groups or tables"
    return f"{parts} {disjoint}, of which the one that lost most counts (parallel composition)."


def unprotected_quantities(release: Told) -> tuple[str, ...]:
    """List facts that the release contains without noise; none may come from the table."""
    run = release.runs[0]
    schema, size_is_public = run.schema, release.privacy.neighbors.table_size_is_public
    columns = "; ".join(
        f"{column.name} ({column.kind}, {column.public_values_text}, missing: {column.missing})"
        for column in schema.columns
    )
    reported = [f"the schema: names of columns, bounds, levels and rules for missing cells: {columns}"]
    if schema.row_norm is not None and not run.holds_counts:
        reported.append(f"the norm to which encoded rows are clipped: {schema.row_norm:g}")
    if size_is_public:
        reported.append("the number of rows of the table, which replace-one makes public")
    elif any(one.count_is_public for one in release.runs):
        reported.append("the number of rows, which the curator gave as public from elsewhere")
    if len(release.runs) > 1:
        reported.append(f"that there are {len(release.runs)} groups or tables, and their names")
    reported += [
        "the mechanism, its options and the numbers that its plan settled on",
        "the budget, the neighboring relation and the version of the program",
        "that the run ended without an error (an observer of the machine also learns its time, memory and passes over the "
        "data)",
    ]
    return tuple(reported)


def post_processing(release: Told) -> tuple[str, ...]:
    """List computations that used only noisy answers."""
    repairs = sorted({str(run.repair) for run in release.runs if hasattr(run, "repair")})
    free = []
    if repairs:
        free.append(
            f"the repair of noisy moments ({', '.join(repairs)}): counts of at least 1, second moments made "
            "consistent with each other and with the schema"
        )
    if len(release.runs) > 1:
        free.append("adding up, or listing side by side, the releases of several groups or tables")
    if release.runs[0].holds_counts:
        return (
            "the repair of noisy counts: whole numbers, none negative",
            "shares, margins, intervals and tests of the tables",
        )
    free.append("every analysis of the release: means, regressions, components, tests, synthetic rows")
    return tuple(free)


# What an auditor is told of the other releases of the same table: what a ledger knows, or that none was kept.


def composition_so_far(release: Told, ledger: Ledger | str | os.PathLike[str] | None = None) -> str:
    """Describe the total over all releases of the dataset.

    Without a ledger, the entries that the release names are listed.
    """
    charged = [(one.origin.dataset, one.origin.ledger) for one in originals(release)]
    if ledger is None:
        entries = list(dict.fromkeys(entry for _, entry in charged if entry is not None))
        if not entries:
            return Message("no-ledger").text()
        reported = "; ".join(
            f"entry {entry.number} of the ledger {entry.ledger[:8]}…, hash {entry.hash[:16]}…" for entry in entries
        )
        return f"Charged as {reported}. See the ledger for the total over all releases of this table."
    opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
    failed = [check for check in opened.verify([release]) if not check.passed]
    if failed:
        raise InputValueError(
            Message("ledger-does-not-confirm", path=opened.path, what=failed[0].what, detail=failed[0].detail)
        )
    reported = "; ".join(
        _describe_account(opened, dataset) for dataset in dict.fromkeys(name for name, _ in charged if name)
    )
    return f"By the ledger {opened.identity[:8]}…, whose chain of hashes contains this release: {reported}."


def _describe_account(ledger: Ledger, dataset: str) -> str:
    account = ledger.account(dataset)
    left_open = "" if not account.n_open else f" and {account.n_open} uncommitted reservations, which also count,"
    return (
        f"{account.n_released} releases of {dataset!r}{left_open} spent {account.spent.in_words()} of the "
        f"{account.grant.amount.in_words()} granted"
        + "".join(f"; the grant was changed from {change}" for change in account.changes)
    )
