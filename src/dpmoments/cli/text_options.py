"""Options that say how a text file is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from dpmoments.foundation.text_format import TextFormat

__all__ = ["Decimal", "Delimiter", "Encoding", "FalseText", "Null", "Thousands", "TrueText", "text_format_of"]

TEXT_PANEL = "Text files (CSV): how they are written"
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="MARK",
        help="Between cells: ';', '|', tab. Default: a comma; a tab in .tsv files.",
        rich_help_panel=TEXT_PANEL,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="latin-1, cp1252, utf-16, …; default: utf-8.", rich_help_panel=TEXT_PANEL),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="The decimal mark; default: a point.", rich_help_panel=TEXT_PANEL),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands", metavar="MARK", help="The mark between groups of three digits.", rich_help_panel=TEXT_PANEL
    ),
]
Null = Annotated[
    list[str] | None,
    typer.Option(
        "--null", metavar="TEXT", help="Stands for an empty cell; may be repeated.", rich_help_panel=TEXT_PANEL
    ),
]
TrueText = Annotated[
    list[str] | None,
    typer.Option(
        "--true", metavar="TEXT", help="Stands for true, as 'ja' may; may be repeated.", rich_help_panel=TEXT_PANEL
    ),
]
FalseText = Annotated[
    list[str] | None,
    typer.Option("--false", metavar="TEXT", help="Stands for false; may be repeated.", rich_help_panel=TEXT_PANEL),
]


def text_format_of(
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    thousands: str | None,
    null: Sequence[str] | None,
    true: Sequence[str] | None = None,
    false: Sequence[str] | None = None,
) -> TextFormat | None:
    """How text files are written, by the options; None where none is given.

    Raises
    ------
    typer.BadParameter
        If an option is not what it must be.

    Examples
    --------
    >>> text_format_of("tab", None, ",", None, ["k.A."])
    TextFormat(delimiter='\\t', decimal=',', nulls=('k.A.',))
    """
    marks = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    words = {"nulls": null, "true": true, "false": false}
    given: dict[str, Any] = {key: value for key, value in (marks | words).items() if value}
    if not given:
        return None
    if delimiter in ("tab", "\\t"):
        given["delimiter"] = "\t"
    try:
        return TextFormat(**given)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(
            str(error), param_hint=", ".join(f"--{'null' if key == 'nulls' else key}" for key in given)
        ) from error
