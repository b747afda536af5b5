"""Curator's commands before a release: init, preflight and the desk."""

from __future__ import annotations

import shlex
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import dpmoments
from dpmoments.cli.arguments import columns_of_table, data_of, shell_arguments
from dpmoments.cli.options import TABLES, options_of
from dpmoments.cli.output import complain, print_command, print_text, printing
from dpmoments.foundation.errors import InputFileExistsError, InputModuleNotFoundError, InputValueError
from dpmoments.foundation.table_files import EngineFiles
from dpmoments.inspection.messages import Outcome
from dpmoments.schema.drafting import default_output
from dpmoments.schema.schema import Schema


def desk(
    table: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="A file, a quoted glob, or a folder; default: chosen on a page.", show_default=False
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Read a database in place of TABLE, as preflight does."),
    ] = None,
    query: Annotated[str | None, typer.Option("--query", metavar="SQL", help="The rows to read: one SELECT.")] = None,
    folder: Annotated[
        Path,
        typer.Option("--folder", help="Folder of the schema, the ledger and the releases; no other file is written."),
    ] = Path(),
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
    data = data_of([table] if table else None, database, query) if table or database or query else None
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


@options_of(Schema.draft, leave_out=("engine",))
def init(
    options: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Output file; default: the table's name with .yaml.", show_default=False),
    ] = None,
) -> None:
    """Write the schema of a table, with bounds and levels left blank.

    Reads only the header of the file: names of columns, and types if the file
    declares them (Parquet, Feather). Fill in the blanks from public knowledge;
    comments in the file explain how. The text format that options state, such as
    --delimiter, is written into the schema, so that no later command needs it.

    Example:

      dpmoments init people.parquet --output people.yaml
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
    if options["progress"] is None:
        options["progress"] = sys.stderr.isatty()
    if options["by"] is not None:
        options["by"] = [columns_of_table(text, options["schema"]) for text in options["by"]]
    result = dpmoments.preflight(**options)
    with printing():
        result.show()
    if result.outcome is not Outcome.WORKS:
        raise typer.Exit(int(result.outcome))
