"""Options that say whom a release protects, where that is not a row."""

from __future__ import annotations

from typing import Annotated

import typer

from dpmoments.cli.options import BUDGET_PANEL
from dpmoments.privacy.unit import PrivacyUnit

__all__ = ["MaxRowsPerUnit", "MissingUnit", "PrivacyUnitColumn", "privacy_unit_of"]

PrivacyUnitColumn = Annotated[
    str | None,
    typer.Option(
        "--privacy-unit",
        metavar="COLUMN",
        help="Protect all rows with one value of this column together, such as a person's; the schema does not list it.",
        rich_help_panel=BUDGET_PANEL,
    ),
]
MaxRowsPerUnit = Annotated[
    int | None,
    typer.Option(
        "--max-rows-per-unit",
        metavar="K",
        help="How many rows of a unit count; noise is K times that for rows.",
        rich_help_panel=BUDGET_PANEL,
    ),
]
MissingUnit = Annotated[
    str,
    typer.Option(
        "--missing-unit",
        metavar="error|drop",
        help="What becomes of rows without a unit.",
        rich_help_panel=BUDGET_PANEL,
    ),
]


def privacy_unit_of(column: str | None, max_rows: int | None, missing: str = "error") -> PrivacyUnit | None:
    """The privacy unit that the options name; None where rows are protected each by itself.

    Raises
    ------
    typer.BadParameter
        If they do not go together, or a value cannot be.
    """
    if column is None:
        if max_rows is not None or missing != "error":
            raise typer.BadParameter(
                "it is for a privacy unit: name its column", param_hint="--max-rows-per-unit, --missing-unit"
            )
        return None
    if max_rows is None:
        raise typer.BadParameter(
            "say how many rows of a unit count: --max-rows-per-unit 5", param_hint="--max-rows-per-unit"
        )
    try:
        return PrivacyUnit(column, max_rows, missing)  # type: ignore[arg-type]
    except ValueError as refusal:
        raise typer.BadParameter(str(refusal), param_hint="--privacy-unit") from None
