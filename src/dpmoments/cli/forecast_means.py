"""What a release of a mean alone would be worth, before anything is spent: forecast-mean."""

from __future__ import annotations

from typing import Annotated

import typer

import dpmoments
from dpmoments.cli.forecasts import N_ROWS
from dpmoments.cli.options import AsJson, Delta, Epsilon, NeighborsOption, Radius, Rho, Scale, SchemaFile, budget_of
from dpmoments.cli.tables import print_json, print_table, print_text
from dpmoments.cli.unit_options import MaxRowsPerUnit, PrivacyUnitColumn, privacy_unit_of
from dpmoments.schema.schema import Schema

__all__ = ["forecast_mean"]


def forecast_mean(
    schema: SchemaFile,
    n_rows: Annotated[int, typer.Option("--n-rows", min=1, help=N_ROWS)],
    neighbors: NeighborsOption,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    privacy_unit: PrivacyUnitColumn = None,
    max_rows_per_unit: MaxRowsPerUnit = None,
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
    unit = privacy_unit_of(privacy_unit, max_rows_per_unit)
    table = dpmoments.forecast_mean(
        Schema.load(schema),
        n_rows=n_rows,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        privacy_unit=unit,
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
