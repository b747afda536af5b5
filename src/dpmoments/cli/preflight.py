"""The command that looks at the private table: for the eyes of whoever holds it alone."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import dpmoments
from dpmoments.cli.options import Engine, Mean, Progress, SchemaFile, data_of
from dpmoments.cli.tables import complain, printing
from dpmoments.cli.text_options import (
    Decimal,
    Delimiter,
    Encoding,
    FalseText,
    Null,
    Thousands,
    TrueText,
    text_format_of,
)
from dpmoments.cli.unit_options import MaxRowsPerUnit, MissingUnit, PrivacyUnitColumn, privacy_unit_of
from dpmoments.inspection.messages import Outcome
from dpmoments.schema.schema import Schema

__all__ = ["preflight"]


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
    found = dpmoments.preflight(
        data_of(table, engine), Schema.load(schema), mean=mean, privacy_unit=unit, text_format=written, progress=bar
    )
    with printing():
        found.show()
    if found.outcome is not Outcome.WORKS:
        raise typer.Exit(int(found.outcome))
