"""Commands of the keeper of budgets: ledger grant, show, history, verify."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

import dpmoments
from dpmoments.analysis.answers import aligned
from dpmoments.base.errors import shown
from dpmoments.cli.options import BUDGET_PANEL, Option, options_of, with_options
from dpmoments.cli.output import bad_option, complain, naming, print_checks, print_command, print_json, print_text
from dpmoments.privacy.grants import Grant
from dpmoments.privacy.origin import LedgerEntry

ledger = typer.Typer(
    rich_markup_mode="rich",
    help="Manage the privacy budgets of datasets: granted, spent and remaining.\n\n"
    "Example:\n\n  dpmoments ledger grant budget.db people-2026 --epsilon 3 \\\n    --delta 1e-6 --neighbors add_remove",
)

_OF_DATASETS = {
    "file": Option("The ledger.", metavar="FILE", argument=True),
    "dataset": Option("Only this dataset.", metavar="DATASET", argument=True),
}


@ledger.command("grant")
@options_of(
    dpmoments.Ledger.grant,
    leave_out=("self",),
    own={
        "file": _OF_DATASETS["file"],
        "dataset": Option("Dataset name in the ledger.", metavar="DATASET", argument=True),
        "mu": Option("μ of Gaussian privacy, instead of ε.", BUDGET_PANEL),
        "composition": Option("Under ε and δ: composition rule of the releases' privacy losses."),
        "reason": Option("Why the amount changes, once some of it is spent."),
        "by": Option("Who decided that."),
        "privacy_unit": Option(
            "Privacy unit: row, or the column that identifies units with several rows.", default="row"
        ),
    },
    objects={"unit": lambda privacy_unit: privacy_unit},
)
def grant(options: dict[str, Any], file: Path) -> None:
    """Grant a dataset its budget; creates the ledger if needed.

    Another grant to the same dataset replaces the amount, which cannot be lowered
    below the spent budget. Once some is spent, --reason and --by are needed.

    Example:

      dpmoments ledger grant budget.db people-2026 --epsilon 3 \\
        --delta 1e-6 --neighbors add_remove
    """
    amount = {name: value for name, value in options.items() if name not in ("dataset", "reason", "by")}
    with naming("the budget"):
        Grant.of(**amount)
    dataset, granted = options["dataset"], dpmoments.Ledger(file).grant(**options)
    print_text(f"{dataset}: {granted} is granted ({granted.neighbors}, privacy unit: {granted.unit}).")
    print_text("Next:")
    protected = "" if granted.unit == "row" else f"--privacy-unit {shlex.quote(granted.unit)} --max-rows-per-unit K "
    print_command(
        f"dpmoments release DATA --schema SCHEMA --epsilon 1 --neighbors {granted.neighbors} {protected}--output RELEASE "
        f"--ledger {shlex.quote(str(file))} --dataset {shlex.quote(dataset)}"
    )


@ledger.command("show")
@with_options(**_OF_DATASETS)
def show(file: Path, dataset: str | None = None, as_json: bool = False) -> None:
    """Show granted, spent and remaining budgets. Reads no table, spends nothing.

    Example:

      dpmoments ledger show budget.db
    """
    kept = dpmoments.Ledger(file)
    accounts = [kept.account(name) for name in (kept.datasets if dataset is None else (dataset,))]
    if as_json:
        print_json({"ledger": str(file), "datasets": [account.to_dict() for account in accounts]})
        return
    for account in accounts:
        print_text(f"{account}\n")
    if not accounts:
        print_text("No dataset has a budget yet.")


@ledger.command("history")
@with_options(**_OF_DATASETS)
def history(file: Path, dataset: str | None = None, as_json: bool = False) -> None:
    """Show every grant, reservation, commit and refund, in order.

    Entries are in the order of their numbers. Times are from the clock, in UTC.

    Example:

      dpmoments ledger history budget.db people-2026
    """
    entries = dpmoments.Ledger(file).history(dataset)
    if as_json:
        print_json({"ledger": str(file), "entries": [entry.to_dict() for entry in entries]})
        return
    rows = [
        (str(entry.number), entry.time, entry.dataset, str(entry.action), entry.description, f"{entry.hash[:8]}…")
        for entry in entries
    ]
    print_text(aligned([("entry", "time", "dataset", "", "", "hash"), *rows], numbers=False))


@ledger.command("verify")
@with_options(
    file=_OF_DATASETS["file"],
    release=Option("A release charged to the ledger; may be repeated."),
    head=Option("A head that was stored elsewhere.", metavar="NUMBER:HASH"),
)
def verify(file: Path, release: list[Path] | None = None, head: str | None = None) -> None:
    """Check that a ledger is complete and contains its releases. Exit code 1 if not.

    The chain of hashes reveals entries that were changed, removed or moved. Only a
    later release, or a head stored elsewhere, reveals that the last entries are
    missing or that the file is an older copy.

    Example:

      dpmoments ledger verify budget.db --release people.json
    """
    kept = dpmoments.Ledger(file)
    releases = [dpmoments.load(path) for path in release or []]
    entry = None
    if head is not None:
        number, _, digest = head.partition(":")
        try:
            entry = LedgerEntry.from_dict({"ledger": kept.identity, "number": int(number), "hash": digest})
        except ValueError:
            refusal = f"{shown(head)} is not a head: give a number and a hash, as printed by 'dpmoments ledger verify'"
            raise bad_option("--head", refusal) from None
    if failed := print_checks(kept.verify(releases, head=entry)):
        complain(f"dpmoments: {file} is not reliable: {failed}")
        raise typer.Exit(1)
