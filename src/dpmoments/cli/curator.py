"""The commands of whoever holds the table before anything is spent: init, forecast, forecast-mean."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dpmoments
from dpmoments.analysis.answers import number
from dpmoments.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Mean,
    NeighborsOption,
    Radius,
    Rho,
    Scale,
    SchemaFile,
    budget_of,
)
from dpmoments.cli.tables import print_command, print_json, print_table, print_text
from dpmoments.cli.text_options import Decimal, Delimiter, Encoding, Null, Thousands, text_format_of
from dpmoments.schema.schema import Schema
from dpmoments.schema.template import default_output

__all__ = ["forecast", "forecast_mean", "init"]

ASSUMED = "What is assumed of the table"


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
    print_command(f"dpmoments forecast --schema {path} --n-rows ROWS --epsilon 1 --neighbors add_remove")


def forecast(
    schema: SchemaFile,
    n_rows: Annotated[
        int, typer.Option("--n-rows", min=1, help="The number of rows you expect; it scales the errors.")
    ],
    neighbors: NeighborsOption,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mean: Mean = True,
    decay: Annotated[
        float | None,
        typer.Option("--decay", help="Assume eigenvalues that fall as i^-DECAY (default 1).", rich_help_panel=ASSUMED),
    ] = None,
    spectrum: Annotated[
        str | None,
        typer.Option(
            "--spectrum",
            metavar="NUMBERS",
            help="Assume these eigenvalues of the encoded rows' second moment, with commas between them. A public guess, "
            "never computed from the table.",
            rich_help_panel=ASSUMED,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the expected error of every mechanism. Reads no data, spends nothing.

    The error of the second moment is the root mean square of its Frobenius norm,
    that of the mean the root mean square of its length: for rows encoded to length
    1 at most, and before the repair, which lowers large errors. Where it depends on
    the table it is marked with ~, and the line above the numbers says what is assumed.

    Example:

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove
    """
    budget = budget_of(epsilon, delta, rho)
    table = dpmoments.forecast(
        Schema.load(schema),
        n_rows=n_rows,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        mean=mean,
        spectrum=None if spectrum is None else _numbers(spectrum),
        decay=decay,
    )
    if as_json:
        rows = [
            {
                "mechanism": row.mechanism,
                "second_moment_error": row.second_moment_error,
                "mean_error": row.mean_error,
                "arithmetic": row.arithmetic,
                "guaranteed_error": row.guaranteed_error,
                "chosen_because": row.chosen_because,
                "refusal": row.refusal,
                "assumed": row.assumed,
                "mean_assumed": row.mean_assumed,
            }
            for row in table
        ]
        assumption = {"spectrum": list(table.assumption.spectrum), "units": table.assumption.units}
        print_json(
            {
                "n_rows": n_rows,
                "budget": budget.to_dict(),
                "neighbors": str(neighbors),
                "assumption": assumption,
                "mechanisms": rows,
                "derived_cost": None if table.derived_cost is None else table.derived_cost.to_dict(),
            }
        )
        return
    print_text(f"Expected error for {n_rows:,} rows, {budget}, {neighbors}; {table.units}, before repair")
    if any(row.assumed for row in table):
        print_text(f"~ assumes: {table.assumption.words}")
    print_table(
        ("mechanism", "second moment", "mean", "arithmetic"),
        (
            (
                row.mechanism,
                row.second_moment_shown if row.assumed else number(row.second_moment_error),
                row.mean_shown if row.mean_assumed else number(row.mean_error),
                row.arithmetic or "–",
            )
            for row in table
            if row.refusal is None
        ),
        numbers=("second moment", "mean"),
    )
    for remark in table.remarks:
        print_text(remark)
    for row in table:
        if row.refusal is not None:
            print_text(f"not {row.mechanism}: {row.refusal}")


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--spectrum {text!r}: give numbers with commas between them, as in 0.3,0.1,0.05") from None


def forecast_mean(
    schema: SchemaFile,
    n_rows: Annotated[
        int, typer.Option("--n-rows", min=1, help="The number of rows you expect; it scales the errors.")
    ],
    neighbors: NeighborsOption,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    radius: Radius = None,
    scale: Scale = None,
    standard_deviation: Annotated[
        list[str] | None,
        typer.Option(
            "--standard-deviation",
            metavar="[FEATURE=]NUMBER",
            help="Of the rows assumed, in the table's units: of all features, or of one; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the expected error of every estimator of means alone. Reads no data.

    The error is the root mean square of its length, and that of every feature, in
    the table's units. What is marked ~ is for rows assumed: normal ones, of the
    standard deviations given (default: --scale, or what the bounds allow).

    Example:

      dpmoments forecast-mean --schema people.yaml --n-rows 50000 \\
        --rho 0.5 --neighbors replace_one --standard-deviation age=15
    """
    budget_of(epsilon, delta, rho)
    table = dpmoments.forecast_mean(
        Schema.load(schema),
        n_rows=n_rows,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        radius=radius,
        scale=scale,
        standard_deviation=_deviations(standard_deviation or []),
    )
    if as_json:
        print_json(table.to_dict())
        return
    print_text(table.title)
    for head, *rows in (table.table(), table.feature_table()):
        if rows and len(head) > 1:
            print_table(head, rows, numbers=[name for name in head[1:] if name != "arithmetic"])
            print_text()
    if table.assumption_in_words:
        print_text(table.assumption_in_words)
    for line in table.refusals():
        print_text(line)


def _deviations(given: list[str]) -> float | dict[str, float] | None:
    """One number for all features, or one for each that is named; None where nothing was given.

    Raises
    ------
    typer.BadParameter
        If a text is neither, or one for all stands beside others, or a feature is named twice.
    """
    named: dict[str, float] = {}
    for text in given:
        name, separator, digits = text.rpartition("=")
        try:
            value = float(digits)
        except ValueError:
            raise typer.BadParameter(
                f"{text!r} is no number, and no feature=number", param_hint="--standard-deviation"
            ) from None
        if not separator:
            if len(given) > 1:
                raise typer.BadParameter(
                    f"{text!r} is for all features: leave the others out, or name a feature with each",
                    param_hint="--standard-deviation",
                )
            return value
        if name in named:
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="--standard-deviation")
        named[name] = value
    return named or None
