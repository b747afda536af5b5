"""Commands of a curator: init, preflight, forecasts, the desk, and releases."""

from __future__ import annotations

import shlex
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

import dpmoments
from dpmoments.analysis.answers import aligned
from dpmoments.base.documents import KEEPS_A_FILE, check_output
from dpmoments.base.errors import InputFileExistsError, InputModuleNotFoundError, InputValueError, shown
from dpmoments.base.table_files import EngineFiles
from dpmoments.cli.options import (
    BUDGET_PANEL,
    OBJECTS,
    SPLIT,
    TABLES,
    Option,
    columns_of_table,
    data_of,
    mean_mechanism_of,
    numbers_by_name,
    options_of,
    shell_arguments,
    with_options,
)
from dpmoments.cli.output import (
    StoppedError,
    bad_option,
    complain,
    naming,
    needs_option,
    notes_of,
    print_answer,
    print_checks,
    print_command,
    print_json,
    print_text,
    printing,
    refuge,
)
from dpmoments.mechanisms.counts import Counts
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, automatic_mean
from dpmoments.planning.preflight import Outcome
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.grants import Grant
from dpmoments.privacy.origin import LedgerEntry
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.loading import AnyRelease
from dpmoments.schema.constraints import schema_of_tables
from dpmoments.schema.drafting import default_output
from dpmoments.schema.schema import Schema
from dpmoments.spending.release import groups_of_units
from dpmoments.spending.run import COST_SPENT

_EXCLUSIVE = "give one of these options, not several"


@with_options(
    table=Option("A file, a quoted glob, or a folder; default: chosen on a page.", metavar="[TABLE]", argument=True),
    database=Option("Read a database in place of TABLE, as preflight does.", metavar="URL"),
    query=Option("The rows to read: one SELECT.", metavar="SQL"),
    folder=Option("Folder of the schema, the ledger and the releases; no other file is written."),
)
def desk(
    table: str | None = None,
    database: str | None = None,
    query: str | None = None,
    folder: Path = Path(),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0: a free one.")] = 0,
) -> None:
    """Open the steps of a release as pages in a browser on this machine.

    Columns, privacy unit, forecast, budget, release and report, without a schema
    file to write by hand. It answers only to this machine, at an address that is
    printed and can be opened once. It writes the same files as the commands, and
    shows them on each page.

    Example:

      dpmoments desk people.csv
    """
    try:
        from dpmoments.cli.desk.app import Desk, server_of
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InputModuleNotFoundError("the desk needs Starlette and uvicorn: pip install 'dpmoments[desk]'") from None
    from dpmoments.cli.desk.journey import Journey

    if not folder.is_dir():
        raise InputValueError(f"{folder} is not a folder: make it first")
    data = None
    if table or database or query:
        with naming("TABLE, --database, --query"):
            data = data_of([table] if table else None, database, query)
    assert not isinstance(data, EngineFiles), "no option names an engine"
    journey = Journey(folder, data)
    with socket.create_server(("127.0.0.1", port)) as listening:
        opened = Desk(journey, listening.getsockname()[1])
        server = server_of(opened)
        print_text("Open this address in a browser on this machine. It opens once.")
        print_command(opened.address)
        print_text("Ctrl-C closes the desk.")
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
        if (job := journey.job) is not None and job.running:
            job.stop()
            job.wait()
            print_text(f"The {job.what} ended: {job.error or 'complete'}.")
    for path in journey.keep_unsaved():
        print_text(f"A release that could not be written is saved in {path}")
    print_text("The desk is closed.")


@options_of(
    Schema.draft,
    leave_out=("engine",),
    own={"output": Option("Output file; default: the table's name with .yaml.", default=None)},
)
def init(options: dict[str, Any], output: Path | None = None) -> None:
    """Write the schema of a table, with bounds and levels left blank.

    Reads only the header of the file: names of columns, and what the file declares
    of them: types, and the labels, missing codes and formats of SPSS, SAS and Stata.
    --codebook adds bounds, levels and missing codes. Fill in the remaining blanks from
    public knowledge; comments say how, and where each value is from. Options such as
    --delimiter are written into the schema, so that no later command needs them.

    Example:

      dpmoments init people.parquet --output people.yaml

      dpmoments init survey.csv --codebook survey-codebook.xml
    """
    table = options["data"]
    path = output or (default_output(table) if isinstance(table, str) else Path("schema.yaml"))
    drafted = Schema.draft(**options)
    try:
        drafted.save(path)
    except FileExistsError:
        raise InputFileExistsError(
            f"{path} exists already and is not overwritten. Name another file with --output."
        ) from None
    for name, file in drafted.absent.items():
        complain(f"Warning: {file} has no column '{name}': rename it there, or delete it from the schema")
    print_text(f"{path}: fill in its blanks from public knowledge, delete unwanted columns, then")
    print_command(f"dpmoments preflight {shell_arguments(table)} --schema {shlex.quote(str(path))}")
    print_command(
        f"dpmoments forecast --schema {shlex.quote(str(path))} --n-rows ROWS --epsilon 1 --neighbors add_remove"
    )
    print_text("If a person may have several rows, add to both and to a release:")
    print_command("--privacy-unit COLUMN --max-rows-per-unit K")


_COUNTED = "Check only the columns of these tables, region:sex, for release-counts. May be repeated."


# The command that looks at the private table: for the eyes of whoever holds it alone.


@options_of(dpmoments.preflight, own={"by": replace(TABLES, help=_COUNTED, default=None)})
def preflight(options: dict[str, Any]) -> None:
    """Check a private table against its schema; the output is private.

    Prints exact, PRIVATE facts, marked so on every line: values outside bounds,
    missing or unreadable, levels that are not in the schema, dropped rows, and with
    --privacy-unit how many people exceed the contribution bound.
    One run finds everything. It spends nothing, writes no file and has no privacy
    guarantee: protect its output like the table.

    Exit codes: 0 a release would work; 1 it would stop with an error; 3 it would
    run, but lose most rows or most values of a column.

    Example:

      dpmoments preflight people.parquet --schema people.yaml
    """
    if not sys.stdout.isatty():
        complain("Warning: standard output is not a terminal; the stored output is private: protect it like the table")
    result = dpmoments.preflight(**options)
    with printing():
        result.show()
    if result.outcome is not Outcome.WORKS:
        raise typer.Exit(int(result.outcome))


# What a release would be worth, before anything is spent: the forecasts, which read no data.

_ASSUMED = "Assumptions about the table"
_QUESTIONS = "Questions: which release answers them best"
_REQUIREMENTS = "Goals: how precise answers should be"
_N_ROWS = Option("Expected number of rows, which scales the errors. With --privacy-unit: of kept rows.", least=1)


@options_of(
    dpmoments.forecast,
    leave_out=("missing_unit",),
    own={
        "n_rows": _N_ROWS,
        "schema": Option("The public schema of the table, a YAML file from 'dpmoments init'.", kind=Path, default=None),
        "request": Option(
            "Show what budget a request takes: a schema file with goals; with --schema, its columns may be names.",
            _REQUIREMENTS,
        ),
        "goals": Option(
            "How precise an answer should be: 'mean(income) ± 500', 'share(smoker) ± 0.01 at 0.9', "
            "'mean(income, by=region) ± 5 %', 'difference(income, by=sex) ± 800', 'correlation(*) ± 0.03', "
            "'coefficient(income ~ age + educ, age) ± 50'. May be repeated (default: the schema's goals). Without a budget: the "
            "smallest epsilon that meets all.",
            _REQUIREMENTS,
            "GOAL",
            list[str],
        ),
        "typical_sd": Option(
            "Assumed standard deviation in original units, from public knowledge; a pattern such as 'A*=1.4' is of all features "
            "that it matches. May be repeated (default: a quarter of the schema's typical range, else a tenth of the range).",
            _ASSUMED,
            "FEATURE=NUMBER",
            list[str],
        ),
        "typical_mean": Option(
            "Assumed mean in original units, or share of a Boolean or a level; may be repeated (default: what the schema says).",
            _ASSUMED,
            "FEATURE=NUMBER",
            list[str],
        ),
        "missing_share": Option(
            "Assumed fraction of missing values; may be repeated (default: missing_share of the schema, else 0).",
            _ASSUMED,
            "COLUMN=NUMBER",
            list[str],
        ),
        "robust": Option(
            "Show what robust standard errors would cost: the columns of a regression, the target among them, separated by "
            "commas.",
            metavar="COLUMNS",
            kind=str,
        ),
        "mechanism": Option("Show the noise of this mechanism, such as gaussian; default: auto."),
        "means": Option("Compare the ways to release the means: one release, or release-mean.", _QUESTIONS, kind=bool),
        "table": Option(
            "Compare the ways to release a contingency table, region:sex: one release, or release-counts. May be repeated.",
            _QUESTIONS,
            "COLUMN[:COLUMN…]",
            list[str],
        ),
        "regression": Option(
            "Compare the ways to fit a regression, income:age:sex with the target first: a release of all columns, or of these. "
            "May be repeated.",
            _QUESTIONS,
            "TARGET:COLUMN…",
            list[str],
        ),
        "html": Option("Write a page instead, with a picture of smaller and larger budgets."),
    },
    objects={
        **OBJECTS,
        "schema": lambda schema: None if schema is None else Schema.load(schema),
        "goals": lambda goals: goals or None,
        "typical_sd": lambda typical_sd: numbers_by_name(typical_sd),
        "typical_mean": lambda typical_mean: numbers_by_name(typical_mean),
        "missing_share": lambda missing_share: numbers_by_name(missing_share),
        "robust": lambda robust: None if robust is None else robust.split(","),
        "mechanism": lambda mechanism: mechanism,
    },
)
def forecast(
    options: dict[str, Any],
    request: Path | None = None,
    means: bool = False,
    table: list[str] | None = None,
    regression: list[str] | None = None,
    html: Path | None = None,
    overwrite: bool = False,
    as_json: bool = False,
) -> None:
    """Show the expected noise of every column, and how to lower it. Reads no data.

    Numbers are standard deviations of privacy noise in original units, before the
    repair (which lowers large errors). They depend on each column's standard
    deviation: state it with --typical-sd, from public knowledge; else a tenth of
    the range is assumed, and marked with ~.

    A second table compares all mechanisms by the root mean square errors of
    correlations, and of means in standard deviations.

    With --privacy-unit the budget covers all rows of a unit together, and --n-rows
    is the number of kept rows, at most --max-rows-per-unit of each unit.

    Example:

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --typical-sd age=15

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --goal 'mean(age) ± 0.5'

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --means --table region:sex

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --html plan.html

      dpmoments forecast --schema people.yaml --request request.yaml \\
        --n-rows 50000 --neighbors add_remove
    """
    questions = _given({"--means": means, "--table": table, "--regression": regression})
    page = _given({"--html": html is not None})
    for first, second in ((questions, page), (page, _given({"--json": as_json}))):
        if first and second:
            raise bad_option(", ".join([*first, *second]), _EXCLUSIVE)
    if overwrite and html is None:
        raise needs_option("--overwrite", "--html")
    if html is not None:
        check_output(html, overwrite=overwrite, taken=KEEPS_A_FILE)
    if request is not None:
        options["schema"] = Schema.load(request, options["schema"])
    if options["schema"] is None:
        raise InputValueError("give --schema, the public schema of the table, or --request")
    if not (options["goals"] or options["schema"].goals):
        with naming("--epsilon, --delta, --rho"):
            PrivacyBudget.of(**{name: options[name] for name in ("epsilon", "delta", "rho")})
    result = dpmoments.forecast(**options)
    if questions:
        tables, regressions = (
            [columns_of_table(text, options["schema"]) for text in given or []] for given in (table, regression)
        )
        print_answer(result.ways(means=means, tables=tables, regressions=regressions), as_json)
        return
    if html is not None:
        dpmoments.report(result, html, overwrite=overwrite)
        print_text(f"Wrote {html}: open it in a browser.")
        return
    if request is not None and result.goals is not None and not as_json:
        print_text("\n".join(filter(None, [result.title, result.goals.text(), result.helpful])))
    else:
        print_answer(result, as_json)


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value]


def _deviations(standard_deviation: list[str] | None) -> float | dict[str, float] | None:
    """Parse one number for all features, or one per named feature; None if nothing was given."""
    for text in standard_deviation or ():
        digits = text.rpartition("=")[2]
        try:
            value = float(digits)
        except ValueError:
            raise InputValueError(f"{shown(text)} is neither a number nor feature=number") from None
        if standard_deviation == [digits]:
            return value
        if digits == text:
            raise InputValueError(
                f"{shown(text)} is for all features: leave the others out, or name a feature with each"
            )
    return numbers_by_name(standard_deviation) or None


@options_of(
    dpmoments.forecast_mean,
    leave_out=("missing_unit",),
    own={
        "n_rows": _N_ROWS,
        "standard_deviation": Option(
            "Assumed standard deviation in original units, of all features or of one; may be repeated.",
            None,
            "[FEATURE=]NUMBER",
        ),
    },
    objects={**OBJECTS, "standard_deviation": _deviations},
)
def forecast_mean(options: dict[str, Any], as_json: bool = False) -> None:
    """Show the expected error of every mean-only estimator. Reads no data.

    The error is the root mean square of its length, and of each feature, in original
    units. Errors marked ~ are for assumed rows: normal, with the given standard
    deviations (default: --scale, or the largest that the bounds allow).

    Example:

      dpmoments forecast-mean --schema people.yaml --n-rows 50000 \\
        --rho 0.5 --neighbors replace_one --standard-deviation age=15
    """
    print_answer(dpmoments.forecast_mean(**options), as_json)


@options_of(
    dpmoments.forecast_counts,
    leave_out=("missing_unit",),
    own={
        "n_rows": Option("Expected number of rows, for the noise relative to an average cell.", least=1),
        "by": TABLES,
        "split": SPLIT,
    },
)
def forecast_counts(options: dict[str, Any], as_json: bool = False) -> None:
    """Show the noise on the counts of contingency tables. Reads no data.

    It does not depend on the table, so that it is known exactly: the standard
    deviation of the noise on each count, and the 95 % interval.

    Example:

      dpmoments forecast-counts --schema people.yaml --by region:sex \\
        --epsilon 1 --neighbors add_remove
    """
    print_answer(dpmoments.forecast_counts(**options), as_json)


OneRelease = TypeVar("OneRelease", bound=AnyRelease)


@options_of(
    dpmoments.release,
    own={
        "by": Option(
            "Release each level of a categorical or Boolean column separately. The budget is spent once.",
            metavar="COLUMN",
        )
    },
)
def release(options: dict[str, Any], by: str | None = None, yes: bool = False, no_ledger: bool = False) -> None:
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
        raise bad_option("--privacy-unit, --by", groups_of_units())
    if by is not None and options["n_rows"] is not None:
        raise bad_option("--n-rows, --by", "the groups' numbers of rows are private: leave the number of rows out")
    _ask(options, yes=yes, no_ledger=no_ledger)
    if by is not None:
        del options["n_rows"]
        groups = _kept(options, lambda: dpmoments.release_groups(by=by, **options))
        what = "count, mean and second moment" if options["mean"] else "the second moment"
        _report(groups, options, f"{what} of each of {len(groups)} groups by {by}")
        return
    released = _kept(options, lambda: dpmoments.release(**options))
    exactness = "exact" if released.rows_noise == 0.0 else "noisy"
    unit = None if released.weighting is None else released.weighting.unit
    counted = "rows" if unit is None else f"values of {unit}"
    count = "" if released.noisy_count is None else f" of {released.n_rows:,} {counted} ({exactness})"
    what = "count, mean and second moment" if released.noisy_sum is not None else "the second moment"
    _report(released, options, f"{what}{count}", f"; repair {released.repair}")


@options_of(
    dpmoments.release_mean,
    own={"mechanism": Option(f"auto, or one of {', '.join(MEAN_MECHANISMS)}.", "Method")},
    objects={**OBJECTS, "mechanism": mean_mechanism_of},
)
def release_mean(options: dict[str, Any], yes: bool = False, no_ledger: bool = False) -> None:
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
def release_counts(options: dict[str, Any], yes: bool = False, no_ledger: bool = False) -> None:
    """Release only contingency tables, once: this spends budget.

    Each count has less noise than in the cross tables of a release, since the whole
    budget is spent on counts. Only the columns of the tables are read.

    Example:

      dpmoments release-counts people.parquet --schema people.yaml \\
        --by region:sex --epsilon 1 --neighbors add_remove --output counts.json
    """
    chosen = Counts.of(options["schema"], options["by"], options["split"])
    asked = options | {"mechanism": chosen, "schema": schema_of_tables(options["schema"], chosen.by)}
    _ask(asked, yes=yes, no_ledger=no_ledger)
    released = _kept(options, lambda: dpmoments.release_counts(**options))
    cells = sum(table.counts.size for table in released.tables)
    _report(released, options, f"counts of {cells:,} cells of {', '.join(map(' by '.join, released.by))}")


_NOTHING_COUNTED = (
    "nothing counts what releases of this table spend together. State --ledger FILE --dataset NAME ('dpmoments ledger grant' "
    "creates one), or --no-ledger"
)


def _ask(options: dict[str, Any], *, yes: bool, no_ledger: bool) -> None:
    """Reject invalid budgets and outputs, warn about a seed, and ask."""
    if no_ledger and options["ledger"] is not None:
        raise bad_option("--ledger, --no-ledger", _EXCLUSIVE)
    if options["ledger"] is None and not no_ledger:
        if not yes and sys.stdin.isatty() and sys.stderr.isatty():
            raise bad_option("--ledger, --no-ledger", _NOTHING_COUNTED)
        if options["insecure_seed"] is None:
            complain(f"Warning: not charged to a ledger: {_NOTHING_COUNTED}")
    budget = PrivacyBudget.of(**{name: options[name] for name in ("epsilon", "delta", "rho")})
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
