"""Arguments and options that several commands share, and what turns their text into values."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from dpmoments.foundation.table_files import ENGINES, EngineFiles
from dpmoments.foundation.text_format import TextFormat
from dpmoments.mechanisms.base import ConfiguredMechanism, Mechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.registry_entry import registry_entry

Configured = TypeVar("Configured", bound=ConfiguredMechanism[Any])

BUDGET_PANEL = "Privacy: what is spent, and on what"

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA", help="A Parquet, Feather or CSV file, a quoted glob, or a folder.", show_default=False
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        help=f"Whose workers read the files: local (this process), {', '.join(ENGINES)}. The result does not depend on it.",
    ),
]
Dataset = Annotated[
    str | None,
    typer.Option("--dataset", help="What the table is called; written into the release. None is pooled with itself."),
]
LedgerFile = Annotated[
    Path | None,
    typer.Option(
        "--ledger",
        help="Charge it to this ledger, which must have granted --dataset a budget ('dpmoments ledger grant').",
        rich_help_panel=BUDGET_PANEL,
    ),
]
Output = Annotated[Path, typer.Option("--output", help="Where to write the release; never overwritten.")]
MechanismOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="KEY=VALUE",
        help="An option of the mechanism; may be repeated.",
        rich_help_panel="Method",
    ),
]
Radius = Annotated[
    float | None,
    typer.Option(
        "--radius",
        help="A public bound on the mean, for a mechanism that needs one; in the units in which rows are encoded.",
        rich_help_panel="Method",
    ),
]
Scale = Annotated[
    float | None,
    typer.Option("--scale", help="A public bound on the standard deviation, likewise.", rich_help_panel="Method"),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]
Progress = Annotated[
    bool | None,
    typer.Option("--progress/--no-progress", help="A bar while rows are read; default: in a terminal."),
]
InsecureSeed = Annotated[
    int | None,
    typer.Option("--insecure-seed", min=0, help="FOR TESTS ALONE: repeat the noise. Such a release protects nobody."),
]
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


def data_of(path: str, engine: str) -> str | EngineFiles:
    """The table that is read: a path, for this process or for an engine.

    Raises
    ------
    typer.BadParameter
        If there is no such engine.
    """
    if engine == "local":
        return path
    if engine not in ENGINES:
        raise typer.BadParameter(
            f"there is no engine {engine!r}: use local, {' or '.join(ENGINES)}", param_hint="--engine"
        )
    return EngineFiles(path, engine)


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
    return _configured(
        name, MECHANISMS, map(_key_and_value, options), advice=" ('dpmoments mechanisms' describes them)"
    )


def mean_mechanism_of(
    name: str, options: Sequence[str], *, radius: float | None = None, scale: float | None = None
) -> MeanMechanism:
    """The mechanism for means alone, with its options; two of them have flags of their own.

    Raises
    ------
    typer.BadParameter
        As for :func:`mechanism_of`.

    Examples
    --------
    >>> mean_mechanism_of("symq", ["quantile=0.4"], radius=10.0)
    SymmetricQuantiles(radius=10.0, quantile=0.4)
    """
    flags = [(f"--{key}", key, value) for key, value in (("radius", radius), ("scale", scale)) if value is not None]
    return _configured(name, MEAN_MECHANISMS, [*flags, *map(_key_and_value, options)])


def _configured(
    name: str,
    classes: Mapping[str, type[Configured]],
    given: Iterable[tuple[str, str, Any]],
    *,
    advice: str = "",
) -> Configured:
    """The mechanism named, with options given as: how they were written, key, value."""
    if name not in classes:
        raise typer.BadParameter(
            f"there is no mechanism {name!r}: use one of {', '.join(classes)}{advice}", param_hint="--mechanism"
        )
    known = [option.name for option in fields(classes[name])]
    values: dict[str, Any] = {}
    written: dict[str, None] = {}
    for flag, key, value in given:
        written[flag] = None
        if key not in known:
            takes = f"its options are {', '.join(known)}" if known else "it takes no options"
            raise typer.BadParameter(f"mechanism {name!r} has no option {key!r}: {takes}", param_hint=flag)
        if key in values:
            raise typer.BadParameter(f"{key!r} is given twice", param_hint=flag)
        values[key] = value
    try:
        return classes[name](**values)
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint=", ".join(written) or "--mechanism") from error


def _key_and_value(option: str) -> tuple[str, str, Any]:
    key, separator, text = option.partition("=")
    if not separator:
        raise typer.BadParameter(f"{option!r} is not key=value", param_hint="--option")
    return "--option", key, _option_value(text)


def _option_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def registry_fields(given: Sequence[str]) -> dict[str, Any]:
    """What the curator fills in of an entry of the registry, given as ``field=text``; several authors with ``;`` between them.

    Raises
    ------
    typer.BadParameter
        If there is no such field, or it is given twice.

    Examples
    --------
    >>> registry_fields(["curator=A hospital", "authors=Ada; Grace"])
    {'curator': 'A hospital', 'authors': ['Ada', 'Grace']}
    """
    known = [
        name for name, entry in inspect.signature(registry_entry).parameters.items() if entry.kind is entry.KEYWORD_ONLY
    ]
    fields_given: dict[str, Any] = {}
    for text in given:
        field, separator, value = text.partition("=")
        if not separator or field not in known:
            raise typer.BadParameter(
                f"{text!r} is not FIELD=TEXT, FIELD one of {', '.join(known)}", param_hint="--fill"
            )
        if field in fields_given:
            raise typer.BadParameter(f"{field!r} is given twice", param_hint="--fill")
        fields_given[field] = [name.strip() for name in value.split(";")] if field == "authors" else value
    return fields_given


# Options that say whom a release protects, where that is not a row.

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


# Options that say how a text file is written.

_TEXT_PANEL = "Text files (CSV): how they are written"
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="MARK",
        help="Between cells: ';', '|', tab. Default: a comma; a tab in .tsv files.",
        rich_help_panel=_TEXT_PANEL,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", help="latin-1, cp1252, utf-16, …; default: utf-8.", rich_help_panel=_TEXT_PANEL),
]
Decimal = Annotated[
    str | None,
    typer.Option("--decimal", metavar="MARK", help="The decimal mark; default: a point.", rich_help_panel=_TEXT_PANEL),
]
Thousands = Annotated[
    str | None,
    typer.Option(
        "--thousands", metavar="MARK", help="The mark between groups of three digits.", rich_help_panel=_TEXT_PANEL
    ),
]
Null = Annotated[
    list[str] | None,
    typer.Option(
        "--null", metavar="TEXT", help="Stands for an empty cell; may be repeated.", rich_help_panel=_TEXT_PANEL
    ),
]
TrueText = Annotated[
    list[str] | None,
    typer.Option(
        "--true", metavar="TEXT", help="Stands for true, as 'ja' may; may be repeated.", rich_help_panel=_TEXT_PANEL
    ),
]
FalseText = Annotated[
    list[str] | None,
    typer.Option("--false", metavar="TEXT", help="Stands for false; may be repeated.", rich_help_panel=_TEXT_PANEL),
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
