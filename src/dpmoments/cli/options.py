"""Arguments and options that several commands share, and what turns their text into values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors

__all__ = [
    "AsJson",
    "Delta",
    "Epsilon",
    "Mean",
    "NeighborsOption",
    "ReleaseFile",
    "Rho",
    "SchemaFile",
    "budget_of",
    "mechanism_of",
]

BUDGET_PANEL = "Privacy: what is spent, and on what"

SchemaFile = Annotated[
    Path, typer.Option("--schema", help="The public schema of the table, a YAML file from 'dpmoments init'.")
]
ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="A release, a JSON file.", show_default=False)]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", help="ε. Alone: pure differential privacy.", rich_help_panel=BUDGET_PANEL),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta", help="δ, for (ε, δ): well below one over the number of rows.", rich_help_panel=BUDGET_PANEL
    ),
]
Rho = Annotated[
    float | None,
    typer.Option("--rho", help="ρ of zero-concentrated privacy, instead of ε.", rich_help_panel=BUDGET_PANEL),
]
NeighborsOption = Annotated[
    Neighbors,
    typer.Option(
        "--neighbors",
        help="What is hidden: add_remove, whether a row is in the table (the number of rows is private); replace_one, "
        "what a row says (the number of rows is public).",
        rich_help_panel=BUDGET_PANEL,
    ),
]
Mean = Annotated[
    bool,
    typer.Option(
        "--mean/--no-mean",
        help="Release count and mean beside the second moment, or the second moment alone.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def budget_of(epsilon: float | None, delta: float, rho: float | None) -> PrivacyBudget:
    """The budget that the options ask for.

    Raises
    ------
    typer.BadParameter
        If they do not make one.
    """
    try:
        return PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--epsilon, --delta, --rho") from error


def mechanism_of(name: str, options: Sequence[str]) -> Mechanism:
    """The mechanism named, with options given as ``key=value``.

    A value is read as JSON where it is JSON (numbers, true, false, null, lists), else as text.

    Raises
    ------
    typer.BadParameter
        If there is no such mechanism or option, or the mechanism refuses a value.

    Examples
    --------
    >>> mechanism_of("laplace", ["calibration=paper"])
    Laplace(calibration='paper')
    """
    classes = MECHANISMS
    if name not in classes:
        raise typer.BadParameter(
            f"there is no mechanism {name!r}: use one of {', '.join(classes)} ('dpmoments mechanisms' describes them)",
            param_hint="--mechanism",
        )
    known = [option.name for option in fields(classes[name])]
    values: dict[str, Any] = {}
    for option in options:
        key, separator, text = option.partition("=")
        if not separator:
            raise typer.BadParameter(f"{option!r} is not key=value", param_hint="--option")
        if key not in known:
            takes = f"its options are {', '.join(known)}" if known else "it takes no options"
            raise typer.BadParameter(f"mechanism {name!r} has no option {key!r}: {takes}", param_hint="--option")
        if key in values:
            raise typer.BadParameter(f"{key!r} is given twice", param_hint="--option")
        values[key] = _option_value(text)
    try:
        return make_mechanism(name, **values)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--option") from error


def _option_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value
