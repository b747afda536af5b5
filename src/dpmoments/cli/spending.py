"""The commands that spend a budget: release, release-mean."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import dpmoments
from dpmoments.cli.errors import StoppedError, notes_of
from dpmoments.cli.options import (
    BUDGET_PANEL,
    Data,
    Dataset,
    Decimal,
    Delimiter,
    Delta,
    Encoding,
    Engine,
    Epsilon,
    FalseText,
    InsecureSeed,
    LedgerFile,
    MaxRowsPerUnit,
    Mean,
    MechanismOptions,
    MissingUnit,
    NeighborsOption,
    Null,
    Output,
    PrivacyUnitColumn,
    Progress,
    Radius,
    Rho,
    Scale,
    SchemaFile,
    Thousands,
    TrueText,
    Yes,
    budget_of,
    data_of,
    mean_mechanism_of,
    mechanism_of,
    privacy_unit_of,
    text_format_of,
)
from dpmoments.cli.tables import complain, print_command, print_text
from dpmoments.foundation.documents import check_output
from dpmoments.mechanisms.registry import MEAN_MECHANISMS
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.repair.repair import Repair
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import COST_SPENT

Released = TypeVar("Released", MomentRelease, MeanRelease, GroupReleases)


def release(
    data: Data,
    schema: SchemaFile,
    neighbors: NeighborsOption,
    output: Output,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    n_rows: Annotated[
        int | None,
        typer.Option(
            "--n-rows",
            min=1,
            help="The number of rows, only if it is public from elsewhere than the table.",
            rich_help_panel=BUDGET_PANEL,
        ),
    ] = None,
    mechanism: Annotated[
        str, typer.Option("--mechanism", help="A name that 'dpmoments mechanisms' lists.", rich_help_panel="Method")
    ] = "auto",
    option: MechanismOptions = None,
    mean: Mean = True,
    repair: Annotated[
        Repair, typer.Option("--repair", help="Post-processing of the noisy moments.", rich_help_panel="Method")
    ] = Repair.AUTO,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Release each group of rows by itself: the levels of a categorical or Boolean column. The budget is spent once.",
        ),
    ] = None,
    privacy_unit: PrivacyUnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
    missing_unit: MissingUnit = "error",
    dataset: Dataset = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    null: Null = None,
    true: TrueText = None,
    false: FalseText = None,
    ledger: LedgerFile = None,
    engine: Engine = "local",
    yes: Yes = False,
    progress: Progress = None,
    insecure_seed: InsecureSeed = None,
) -> None:
    """Release count, mean and second moment of a table, once: this spends budget.

    All that can be refused is refused before a row is read. In a terminal you are
    asked before anything is spent, unless --yes is given; in a script the
    command itself is the answer. Quote a glob, so that the shell leaves it alone.
    With --by there is a release for every level of a column, all in one file.

    Example:

      dpmoments release 'people/*.parquet' --schema people.yaml \\
        --epsilon 1 --neighbors add_remove --output people.json
    """
    table = _one_path(data)
    text_format = text_format_of(delimiter, encoding, decimal, thousands, null, true, false)
    rows = data_of(table, engine)
    budget = budget_of(epsilon, delta, rho)
    configured = mechanism_of(mechanism, option or [])
    unit = privacy_unit_of(privacy_unit, max_rows_per_unit, missing_unit)
    description = Schema.load(schema)
    if by is not None and unit is not None:
        raise typer.BadParameter(
            "a person may have rows in several groups: release the whole table", param_hint="--privacy-unit, --by"
        )
    if by is not None and n_rows is not None:
        raise typer.BadParameter(
            "the groups' numbers of rows are private: leave --n-rows out", param_hint="--n-rows, --by"
        )
    _ask(table, description, budget, neighbors, mechanism, output, unit=unit, yes=yes, insecure_seed=insecure_seed)
    options: dict[str, Any] = dict(
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        mechanism=configured,
        mean=mean,
        repair=repair,
        output=output,
        dataset=dataset,
        privacy_unit=unit,
        text_format=text_format,
        ledger=ledger,
        progress=_bar(progress),
        insecure_seed=insecure_seed,
    )
    if by is not None:
        groups = _kept(output, lambda: dpmoments.release_groups(rows, description, by=by, **options))
        what = f"count, mean and second moment of each of {len(groups)} groups by {by}"
        _report(groups, output, what if mean else f"the second moment of each of {len(groups)} groups by {by}")
        return
    released = _kept(output, lambda: dpmoments.release(rows, description, n_rows=n_rows, **options))
    exactness = "exact" if released.count_is_public else "noisy"
    count = "" if released.noisy_count is None else f" of {released.n_rows:,} rows ({exactness})"
    what = "count, mean and second moment" if released.noisy_sum is not None else "the second moment"
    _report(released, output, f"{what}{count}", f"; repair {released.repair}")


def release_mean(
    data: Data,
    schema: SchemaFile,
    neighbors: NeighborsOption,
    output: Output,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mechanism: Annotated[
        str,
        typer.Option("--mechanism", help=f"One of {', '.join(MEAN_MECHANISMS)}.", rich_help_panel="Method"),
    ] = "variance-aware",
    radius: Radius = None,
    scale: Scale = None,
    option: MechanismOptions = None,
    privacy_unit: PrivacyUnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
    missing_unit: MissingUnit = "error",
    dataset: Dataset = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    null: Null = None,
    true: TrueText = None,
    false: FalseText = None,
    ledger: LedgerFile = None,
    engine: Engine = "local",
    yes: Yes = False,
    progress: Progress = None,
    insecure_seed: InsecureSeed = None,
) -> None:
    """Release the mean of a table alone, once: this spends budget.

    No second moment comes with it, so no analysis works on it. All of the budget
    is spent on the mean, and on the number of rows where it is private.

    Example:

      dpmoments release-mean people.parquet --schema people.yaml \\
        --rho 0.5 --neighbors add_remove --output mean.json
    """
    table = _one_path(data)
    text_format = text_format_of(delimiter, encoding, decimal, thousands, null, true, false)
    rows = data_of(table, engine)
    budget = budget_of(epsilon, delta, rho)
    configured = mean_mechanism_of(mechanism, option or [], radius=radius, scale=scale)
    unit = privacy_unit_of(privacy_unit, max_rows_per_unit, missing_unit)
    description = Schema.load(schema)
    _ask(table, description, budget, neighbors, mechanism, output, unit=unit, yes=yes, insecure_seed=insecure_seed)
    released = _kept(
        output,
        lambda: dpmoments.release_mean(
            rows,
            description,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbors=neighbors,
            mechanism=configured,
            output=output,
            dataset=dataset,
            privacy_unit=unit,
            text_format=text_format,
            ledger=ledger,
            progress=_bar(progress),
            insecure_seed=insecure_seed,
        ),
    )
    exactness = "exact" if released.count_is_public else "noisy"
    _report(released, output, f"the mean of {released.n_rows:,} rows ({exactness})")


def _one_path(data: list[str]) -> str:
    if len(data) > 1:
        raise typer.BadParameter("one path is read: put a glob in quotes, 'people/*.parquet'", param_hint="DATA")
    return data[0]


def _ask(
    table: str,
    schema: Schema,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    mechanism: str,
    output: Path,
    *,
    unit: PrivacyUnit | None,
    yes: bool,
    insecure_seed: int | None,
) -> None:
    """Refuse an output that cannot be written, warn of a seed, and ask a person at a terminal."""
    check_output(output)
    if insecure_seed is not None:
        complain(
            "WARNING: NOT PRIVATE. --insecure-seed makes noise that anyone can repeat and subtract: the release will protect "
            "nobody. Never publish it."
        )
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        protected = "" if unit is None else f"; protected: {unit.in_words}"
        question = (
            f"Spend {budget} ({neighbors}{protected}) on {table}: {schema.n_features} features, mechanism {mechanism}, "
            f"written to {output}?"
        )
        if not typer.confirm(question, err=True):
            complain("dpmoments: nothing was spent")
            raise typer.Exit(1)


def _bar(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


def _kept(output: Path, make: Callable[[], Released]) -> Released:
    """What was released; where its file cannot be written after all, it is saved elsewhere."""
    try:
        return make()
    except KeyboardInterrupt as stop:
        raise StoppedError("; ".join(notes_of(stop))) from None
    except dpmoments.UnsavedReleaseError as error:
        # The budget is spent: the release must not be lost with the disk that was to hold it.
        refuge = Path(tempfile.mkdtemp(prefix="dpmoments-")) / output.name
        try:
            error.release.save(refuge)
        except OSError:
            reason = error.__cause__ or error
            reason.add_note(COST_SPENT)
            raise reason from None
        complain(f"dpmoments: {output} could not be written after all; the release is kept in {refuge}")
        raise typer.Exit(1) from None


def _report(released: MomentRelease | MeanRelease | GroupReleases, output: Path, what: str, method: str = "") -> None:
    one = released.releases[0] if isinstance(released, GroupReleases) else released
    features, columns = len(one.feature_names), len(one.schema.table_columns)
    print_text(f"Wrote {output}: {what}, {features} features from {columns} columns, by {one.mechanism}{method}.")
    print_text()
    print_text(released.privacy.in_words())
    print_text()
    print_text("Next:")
    print_command(f"dpmoments show {output}")
