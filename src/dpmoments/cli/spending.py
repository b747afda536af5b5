"""Commands that spend a budget: release, release-mean, release-counts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

import dpmoments
from dpmoments.cli.arguments import budget_of, columns_of_table, mean_mechanism_of
from dpmoments.cli.options import BUDGET_PANEL, OBJECTS, SPLIT, TABLES, Option, Yes, options_of
from dpmoments.cli.output import StoppedError, bad_option, complain, notes_of, print_command, print_text, refuge
from dpmoments.foundation.documents import check_output
from dpmoments.mechanisms.counts import Counts
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, automatic_mean
from dpmoments.messages.message import Message
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.release_warning import AnyRelease
from dpmoments.schema.constraints import schema_of_tables
from dpmoments.spending.run import COST_SPENT

NoLedger = Annotated[
    bool,
    typer.Option(
        "--no-ledger", help="Charge no ledger: the spent budget is recorded nowhere.", rich_help_panel=BUDGET_PANEL
    ),
]

OneRelease = TypeVar("OneRelease", MomentRelease, MeanRelease, CountsRelease, GroupReleases)


@options_of(
    dpmoments.release,
    own={
        "by": Option(
            "Release each level of a categorical or Boolean column separately. The budget is spent once.",
            metavar="COLUMN",
        )
    },
)
def release(options: dict[str, Any], by: str | None = None, yes: Yes = False, no_ledger: NoLedger = False) -> None:
    """Release a table's count, mean and second moment, once: this spends budget.

    All checks that need no data run before a row is read. At a terminal it
    asks before it spends, unless --yes is given; in a script it does not ask.
    Quote a glob, so that the shell does not expand it. With --by, one file contains
    a release for each level of a column.

    Example:

      dpmoments release 'people/*.parquet' --schema people.yaml \\
        --epsilon 1 --neighbors add_remove --output people.json
    """
    if by is not None and options["privacy_unit"] is not None:
        raise bad_option("--privacy-unit, --by", Message("groups-of-units"))
    if by is not None and options["n_rows"] is not None:
        raise bad_option("--n-rows, --by", Message("rows-of-groups"))
    _ask(options, yes=yes, no_ledger=no_ledger)
    if by is not None:
        del options["n_rows"]
        groups = _kept(options, lambda: dpmoments.release_groups(by=by, **options))
        what = "count, mean and second moment" if options["mean"] else "the second moment"
        _report(groups, options, f"{what} of each of {len(groups)} groups by {by}")
        return
    released = _kept(options, lambda: dpmoments.release(**options))
    exactness = "exact" if released.count_is_public else "noisy"
    count = "" if released.noisy_count is None else f" of {released.n_rows:,} rows ({exactness})"
    what = "count, mean and second moment" if released.noisy_sum is not None else "the second moment"
    _report(released, options, f"{what}{count}", f"; repair {released.repair}")


@options_of(
    dpmoments.release_mean,
    own={"mechanism": Option(f"auto, or one of {', '.join(MEAN_MECHANISMS)}.", "Method")},
    objects={**OBJECTS, "mechanism": (("mechanism", "option", "radius", "scale"), mean_mechanism_of)},
)
def release_mean(options: dict[str, Any], yes: Yes = False, no_ledger: NoLedger = False) -> None:
    """Release only the mean of a table, once: this spends budget.

    It has no second moment, so analyses do not work on it. The whole budget is spent
    on the mean, and on the number of rows if it is private.

    Example:

      dpmoments release-mean people.parquet --schema people.yaml \\
        --rho 0.5 --neighbors add_remove --output mean.json
    """
    _ask(options, yes=yes, no_ledger=no_ledger)
    released = _kept(options, lambda: dpmoments.release_mean(**options))
    exactness = "exact" if released.count_is_public else "noisy"
    _report(released, options, f"the mean of {released.n_rows:,} rows ({exactness})")


@options_of(dpmoments.release_counts, own={"by": TABLES, "split": SPLIT})
def release_counts(options: dict[str, Any], yes: Yes = False, no_ledger: NoLedger = False) -> None:
    """Release only contingency tables, once: this spends budget.

    Each count has less noise than in the cross tables of a release, since the whole
    budget is spent on counts. Only the columns of the tables are read.

    Example:

      dpmoments release-counts people.parquet --schema people.yaml \\
        --by region:sex --epsilon 1 --neighbors add_remove --output counts.json
    """
    options["by"] = [columns_of_table(text, options["schema"]) for text in options["by"]]
    chosen = Counts.of(options["schema"], options["by"], options["split"])
    asked = options | {"mechanism": chosen, "schema": schema_of_tables(options["schema"], chosen.by)}
    _ask(asked, yes=yes, no_ledger=no_ledger)
    if options["progress"] is None:
        options["progress"] = sys.stderr.isatty()
    released = _kept(options, lambda: dpmoments.release_counts(**options))
    cells = sum(table.counts.size for table in released.tables)
    _report(released, options, f"counts of {cells:,} cells of {', '.join(map(_named, released.by))}")


def _named(by: tuple[str, ...]) -> str:
    return " by ".join(by)


def _ask(options: dict[str, Any], *, yes: bool, no_ledger: bool) -> None:
    """Reject invalid budgets and outputs, warn about a seed, ask, and yield a progress bar."""
    if no_ledger and options["ledger"] is not None:
        raise bad_option("--ledger, --no-ledger", Message("options-exclusive"))
    if options["ledger"] is None and not no_ledger:
        if not yes and sys.stdin.isatty() and sys.stderr.isatty():
            raise bad_option("--ledger, --no-ledger", Message("nothing-counted"))
        if options["insecure_seed"] is None:
            complain(f"Warning: not charged to a ledger: {Message('nothing-counted').text('shell')}")
    budget = budget_of(options["epsilon"], options["delta"], options["rho"])
    check_output(options["output"])
    if options["insecure_seed"] is not None:
        complain(
            "Warning: NOT PRIVATE. --insecure-seed makes noise that anyone can reproduce and subtract: the "
            "release will protect nobody. Never publish it."
        )
    if options["mechanism"] == "auto":
        options["mechanism"] = automatic_mean(options["schema"], budget)
    unit, data = options["privacy_unit"], options["data"]
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        protected = "" if unit is None else f"; privacy unit: {unit.description}"
        question = (
            f"Spend {budget} ({options['neighbors']}{protected}) on {getattr(data, 'path', data)}: "
            f"{options['schema'].n_features} features, mechanism {options['mechanism'].name}, written to {options['output']}?"
        )
        if not typer.confirm(question, err=True):
            complain("dpmoments: nothing was spent")
            raise typer.Exit(1)
    if options["progress"] is None:
        options["progress"] = sys.stderr.isatty()


def _kept(options: dict[str, Any], make: Callable[[], OneRelease]) -> OneRelease:
    """Return the release; if its file cannot be written after all, save it elsewhere."""
    output = options["output"]
    try:
        return make()
    except KeyboardInterrupt as stop:
        raise StoppedError("; ".join(notes_of(stop))) from None
    except dpmoments.UnsavedReleaseError as error:
        # The budget is spent: the release must not be lost with the disk that was to hold it.
        path = refuge(output.name)
        try:
            error.release.save(path)
        except OSError:
            reason = error.__cause__ or error
            reason.add_note(COST_SPENT)
            raise reason from None
        complain(f"dpmoments: {output} could not be written after all; the release is saved in {path}")
        raise typer.Exit(1) from None


def _report(released: AnyRelease, options: dict[str, Any], what: str, method: str = "") -> None:
    output = options["output"]
    one = released.releases[0] if isinstance(released, GroupReleases) else released
    features, columns = len(one.feature_names), len(one.schema.table_columns)
    print_text(f"Wrote {output}: {what}, {features} features from {columns} columns, by {one.mechanism}{method}.")
    print_text()
    print_text(released.privacy.describe())
    print_text()
    if options["ledger"] is not None:
        account = dpmoments.Ledger(options["ledger"]).account(options["dataset"])
        print_text(f"Remaining for {account.dataset}: {account.left_text}, of {account.grant} granted.")
        print_text()
    print_text("Next:")
    print_command(f"dpmoments show {output}")
