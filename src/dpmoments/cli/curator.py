"""The command of whoever holds the table before anything else: init."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from dpmoments.cli.tables import print_command, print_text
from dpmoments.cli.text_options import Decimal, Delimiter, Encoding, Null, Thousands, text_format_of
from dpmoments.schema.schema import Schema
from dpmoments.schema.template import default_output

__all__ = ["init"]


def init(
    table: Annotated[
        str, typer.Argument(help="A Parquet, Feather or CSV file, a quoted glob, or a folder.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Where to write; default: the table's name, .yaml.", show_default=False),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    null: Null = None,
) -> None:
    """Write the schema of a table, with bounds and levels left blank.

    Only the header of the file is looked at: names of columns, and types where
    the file declares them (Parquet, Feather). The blanks are yours to fill in, from public
    knowledge; comments in the file say how.

    Example:

      dpmoments init people.parquet --output people.yaml
    """
    path = default_output(table) if output is None else output
    drafted = Schema.draft(table, text_format=text_format_of(delimiter, encoding, decimal, thousands, null))
    try:
        drafted.save(path)
    except FileExistsError:
        raise FileExistsError(
            f"{path} exists already and is not overwritten: name another file with --output"
        ) from None
    print_text(f"{path}: fill in its blanks from public knowledge, delete the columns that are not wanted, then")
    written = " ".join(
        f"{flag} {shlex.quote(text)}"
        for flag, value in (
            ("--delimiter", delimiter),
            ("--encoding", encoding),
            ("--decimal", decimal),
            ("--thousands", thousands),
            *(("--null", text) for text in null or []),
        )
        if (text := value)
    )
    print_command(f"dpmoments preflight {shlex.quote(table)} --schema {shlex.quote(str(path))} {written}".rstrip())
    print_command(
        f"dpmoments forecast --schema {shlex.quote(str(path))} --n-rows ROWS --epsilon 1 --neighbors add_remove"
    )
