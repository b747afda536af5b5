"""The command of whoever holds the table before anything else: init."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

import dpmoments
from dpmoments.cli.options import (
    Decimal,
    Delimiter,
    Encoding,
    Engine,
    FalseText,
    MaxRowsPerUnit,
    Mean,
    MissingUnit,
    Null,
    PrivacyUnitColumn,
    Progress,
    SchemaFile,
    Thousands,
    TrueText,
    data_of,
    privacy_unit_of,
    text_format_of,
)
from dpmoments.cli.tables import complain, print_command, print_text, printing
from dpmoments.inspection.messages import Outcome
from dpmoments.schema.drafting import default_output
from dpmoments.schema.schema import Schema


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


# The command that looks at the private table: for the eyes of whoever holds it alone.


def preflight(
    table: Annotated[
        str,
        typer.Argument(metavar="DATA", help="A Parquet or CSV file, a quoted glob, or a folder.", show_default=False),
    ],
    schema: SchemaFile,
    mean: Mean = True,
    privacy_unit: PrivacyUnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
    missing_unit: MissingUnit = "error",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    null: Null = None,
    true: TrueText = None,
    false: FalseText = None,
    engine: Engine = "local",
    progress: Progress = None,
) -> None:
    """Look at the private table for your eyes alone: what does not fit its schema.

    Prints exact, PRIVATE facts, so marked on every line: cells outside bounds,
    missing or unreadable, levels that are not in the schema, rows that rules drop,
    and with --privacy-unit how many people have more rows than count.
    Everything is found in one run. It spends nothing, writes no file and has no
    privacy guarantee: keep what it prints as you keep the table.

    Exit codes: 0 a release would work; 1 it would stop with an error; 3 it would
    run, but most rows or most cells of a column are lost.

    Example:

      dpmoments preflight people.parquet --schema people.yaml
    """
    if not sys.stdout.isatty():
        complain(
            "dpmoments: warning: standard output is no terminal, and whatever keeps it keeps private facts: treat it as you "
            "treat the table"
        )
    bar = sys.stderr.isatty() if progress is None else progress
    written = text_format_of(delimiter, encoding, decimal, thousands, null, true, false)
    unit = privacy_unit_of(privacy_unit, max_rows_per_unit, missing_unit)
    result = dpmoments.preflight(
        data_of(table, engine), Schema.load(schema), mean=mean, privacy_unit=unit, text_format=written, progress=bar
    )
    with printing():
        result.show()
    if result.outcome is not Outcome.WORKS:
        raise typer.Exit(int(result.outcome))
