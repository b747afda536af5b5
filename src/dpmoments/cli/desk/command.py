"""Command that opens the desk on this machine."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from dpmoments.cli.options import data_of
from dpmoments.cli.tables import print_command, print_text
from dpmoments.foundation.errors import InputModuleNotFoundError, InputValueError
from dpmoments.foundation.table_files import EngineFiles
from dpmoments.messages.message import Message


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
        raise InputModuleNotFoundError(Message("desk-needs-libraries")) from None
    from dpmoments.cli.desk.journey import Journey

    if not folder.is_dir():
        raise InputValueError(Message("not-a-folder", path=folder))
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
