"""Command-line options derived from signatures of Python functions, and their parsing."""

from __future__ import annotations

import inspect
import json
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import typer

from dpmoments.cli.output import bad_option
from dpmoments.foundation.databases import DatabaseQuery
from dpmoments.foundation.table_files import ENGINES, EngineFiles
from dpmoments.foundation.text_format import TextFormat
from dpmoments.messages.message import Message
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.repair.repair import Repair
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    from dpmoments.mechanisms.base import ConfiguredMechanism, Mechanism
    from dpmoments.mechanisms.means.base import MeanMechanism

Configured = TypeVar("Configured", bound="ConfiguredMechanism[Any]")

BUDGET_PANEL = "Privacy"
_METHOD_PANEL = "Method"
_TEXT_PANEL = "Text files (CSV)"

ReleaseFile = Annotated[Path, typer.Argument(metavar="FILE", help="A release, a JSON file.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Overwrite an existing page.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")]

# Options of a command, made of the signature of a Python function: a parameter gives its name, its type and its default, and a
# table the words, and what a person at a terminal writes in place of an object.

REQUIRED = inspect.Parameter.empty
_AS_DECLARED = object()


@dataclass(frozen=True)
class Option:
    """Command-line settings of a parameter.

    ``kind`` is the type of a value and ``default`` the command's default (``REQUIRED``: none); both default to the
    parameter's own. An ``argument`` is given by position.
    """

    help: str
    panel: str | None = None
    metavar: str | None = None
    kind: Any = None
    default: Any = _AS_DECLARED
    least: int | None = None
    argument: bool = False

    def parameter(self, name: str, hint: Any = None, declared: Any = None) -> inspect.Parameter:
        """Return the option as a parameter that typer reads."""
        # For the type `hint` and the default `declared`.
        default = declared if self.default is _AS_DECLARED else self.default
        kind = self.kind or _kind_of_value(hint)
        dashed = name.replace("_", "-")
        shown: dict[str, Any] = {"help": self.help, "metavar": self.metavar, "rich_help_panel": self.panel}
        stated = (
            typer.Argument(show_default=False, **shown)
            if self.argument
            else typer.Option(f"--{dashed}/--no-{dashed}" if kind is bool else f"--{dashed}", min=self.least, **shown)
        )
        value: Any = kind if default is not None else kind | None
        return inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[value, stated], default=default
        )


def _kind_of_value(hint: Any) -> Any:
    """Return the command-line type of a parameter: a choice, a path, a number, or text."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words = [member for member in members if isinstance(member, type) and issubclass(member, StrEnum)]
    return next((kind for kind in (*words, Path, bool, int, float, str) if kind in members), str)


_OPTIONS: dict[str, Option] = {
    "data": Option(
        "A Parquet, Feather, CSV, Excel, Stata, SPSS or SAS file, a quoted glob, or a folder.",
        None,
        "DATA",
        list[str],
        None,
        argument=True,
    ),
    "database": Option(
        "Read a database in place of DATA: sqlite:///people.db or postgresql://user@host/name. Default: the environment "
        "variable DPMOMENTS_DATABASE, which keeps a password out of the shell's history.",
        "Database",
        "URL",
        str,
    ),
    "query": Option("The rows to read: one SELECT.", "Database", "SQL", str),
    "engine": Option(
        f"Engine that reads the files: local (this process), {', '.join(ENGINES)}. The result does not depend on it.",
        kind=str,
        default="local",
    ),
    "schema": Option("The public schema of the table, a YAML file from 'dpmoments init'.", kind=Path, default=REQUIRED),
    "epsilon": Option("ε; without δ: pure differential privacy.", BUDGET_PANEL),
    "delta": Option("δ, for (ε, δ): well below one over the number of rows.", BUDGET_PANEL),
    "rho": Option("ρ of zero-concentrated differential privacy, instead of ε.", BUDGET_PANEL),
    "neighbors": Option(
        "Neighboring relation: add_remove hides whether a row is in the table (the number of rows is private); "
        "replace_one hides the values of a row (the number of rows of the table is public).",
        BUDGET_PANEL,
        default=REQUIRED,
    ),
    "mechanism": Option("Mechanism name; 'dpmoments mechanisms' lists them.", _METHOD_PANEL),
    "option": Option("An option of the mechanism; may be repeated.", _METHOD_PANEL, "KEY=VALUE", list[str]),
    "mean": Option("Release count and mean in addition to the second moment, or only the second moment."),
    "repair": Option("Post-processing of the noisy moments.", _METHOD_PANEL, default=Repair.AUTO),
    "n_rows": Option("The number of rows, only if it is public independently of the table.", BUDGET_PANEL, least=1),
    "output": Option("Where to write the release; never overwritten.", default=REQUIRED),
    "dataset": Option("Dataset name, stored in the release. Releases of the same dataset cannot be pooled."),
    "ledger": Option(
        "Charge the budget to this ledger, in which --dataset has a grant ('dpmoments ledger grant').", BUDGET_PANEL
    ),
    "progress": Option("Show a progress bar; default: in a terminal.", default=None),
    "insecure_seed": Option("FOR TESTS ONLY: repeatable noise. Such a release protects nobody.", least=0),
    "radius": Option(
        "Public bound on the mean, for a mechanism that needs one; in encoded units.", _METHOD_PANEL, kind=float
    ),
    "scale": Option(
        "Public bound on the standard deviation, for a mechanism that needs one; in encoded units.",
        _METHOD_PANEL,
        kind=float,
    ),
    "privacy_unit": Option(
        "Protect all rows with one value of this column together, such as a person's; the schema does not list it.",
        BUDGET_PANEL,
        "COLUMN",
        str,
    ),
    "max_rows_per_unit": Option(
        "Contribution bound: max rows per unit; noise is K times that for single rows.", BUDGET_PANEL, "K", int
    ),
    "missing_unit": Option(
        "Treatment of rows without a unit: error or drop.", BUDGET_PANEL, "error|drop", str, "error"
    ),
    "delimiter": Option("Delimiter: ';', '|', tab. Default: a comma; a tab in .tsv files.", _TEXT_PANEL, "MARK", str),
    "encoding": Option("Encoding: latin-1, cp1252, utf-16, …; default: utf-8.", _TEXT_PANEL, kind=str),
    "decimal": Option("Decimal mark; default: a point.", _TEXT_PANEL, "MARK", str),
    "thousands": Option("Thousands separator.", _TEXT_PANEL, "MARK", str),
    "null": Option("Null marker; may be repeated.", _TEXT_PANEL, "TEXT", list[str]),
    "true": Option("Text for true, such as 'ja'; may be repeated.", _TEXT_PANEL, "TEXT", list[str]),
    "false": Option("Text for false; may be repeated.", _TEXT_PANEL, "TEXT", list[str]),
}
TABLES = Option(
    "Columns of a table, with colons between them: region:sex. May be repeated, for several tables.",
    metavar="COLUMN[:COLUMN…]",
    kind=list[str],
    default=REQUIRED,
)
SPLIT = Option(
    "Budget share of each table, in the order of --by; repeated like it. Default: equal.",
    BUDGET_PANEL,
    "NUMBER",
    list[float],
)
_UNIT_OPTIONS = ("privacy_unit", "max_rows_per_unit", "missing_unit")
_TEXT_OPTIONS = ("delimiter", "encoding", "decimal", "thousands", "null", "true", "false")
_WITHOUT_OPTION = ("threads", "options")
"""Parameters set by other means: ``DPMOMENTS_THREADS``, or names in ``--option``."""

Epsilon, Delta, Rho, NeighborsOption = (
    _OPTIONS[name].parameter(name, hint, default).annotation
    for name, hint, default in (
        ("epsilon", float | None, None),
        ("delta", float, 0.0),
        ("rho", float | None, None),
        ("neighbors", Neighbors, REQUIRED),
    )
)

Reader = Callable[..., Any]


def _objects() -> dict[str, tuple[Sequence[str], Reader]]:
    """Return the parameters that are objects, with their options and parsers."""
    # Options describe them.
    return {
        "data": (("data", "database", "query", "engine"), data_of),
        "schema": (("schema",), Schema.load),
        "mechanism": (("mechanism", "option"), mechanism_of),
        "privacy_unit": (_UNIT_OPTIONS, privacy_unit_of),
        "text_format": (_TEXT_OPTIONS, text_format_of),
    }


def options_of(
    function: Callable[..., Any],
    *,
    leave_out: Collection[str] = (),
    own: Mapping[str, Option] | None = None,
    objects: Mapping[str, tuple[Sequence[str], Reader]] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a body, with an option for each parameter of a Python function."""
    # The body gets the function's arguments as a dict, and its own parameters by name, annotated for typer or with an
    # entry in `own`, which also overrides options. `leave_out` names omitted parameters and options. `objects` maps
    # parameters that are objects to their options and a parser.
    own = own or {}
    words, objects = _OPTIONS | dict(own), _objects() | dict(objects or {})
    hints, made = get_type_hints(function), dict[str, inspect.Parameter]()
    parts: dict[str, list[str]] = {}
    for name, declared in inspect.signature(function).parameters.items():
        if name in leave_out or name in _WITHOUT_OPTION:
            continue
        parts[name] = [part for part in (objects[name][0] if name in objects else (name,)) if part not in leave_out]
        for part in parts[name]:
            if part not in words:
                raise AssertionError(f"{function.__qualname__} has the parameter {part!r}, and no option describes it")
            made[part] = words[part].parameter(part, hints[name], declared.default if part == name else None)

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        _, *others = inspect.signature(body, eval_str=True).parameters.values()
        shown = list(made.values())
        for other in others:
            if other.name in own:
                shown.append(own[other.name].parameter(other.name, other.annotation, other.default))
            else:
                shown.append(other.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        shown.sort(key=lambda parameter: parameter.default is not REQUIRED)

        def command(**written: Any) -> None:
            given = {name: [written.pop(part) for part in parts[name]] for name in parts}
            arguments = {}
            for name in sorted(
                parts, key="schema".__eq__
            ):  # its file is read when all else is known to be well written
                arguments[name] = objects[name][1](*given[name]) if name in objects else given[name][0]
            schema = arguments.get("schema")
            if isinstance(schema, Schema) and arguments.get("text_format") is not None:
                arguments["text_format"] = text_format_of(*given["text_format"], of_schema=schema.text_format)
            body(arguments, **written)

        command.__name__, command.__doc__ = body.__name__, body.__doc__
        command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]  # what typer reads
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return command

    return decorate


def columns_of_table(text: str, schema: Schema) -> list[str]:
    """Parse ``COLUMN:COLUMN`` into the columns of a table; a name may contain a colon.

    >>> from dpmoments import Boolean
    >>> columns_of_table("a:b:c", Schema(Boolean("a:b"), Boolean("c")))
    ['a:b', 'c']
    """
    known = set(schema.names)
    parts, result = text.split(":"), list[str]()
    while parts:
        size = next((size for size in range(len(parts), 0, -1) if ":".join(parts[:size]) in known), 1)
        result.append(":".join(parts[:size]))
        parts = parts[size:]
    return result


def budget_of(epsilon: float | None, delta: float, rho: float | None) -> PrivacyBudget:
    """Return the budget that the options request."""
    try:
        return PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    except ValueError as error:
        raise bad_option("--epsilon, --delta, --rho", error) from error


def data_of(
    paths: Sequence[str] | None, database: str | None = None, query: str | None = None, engine: str = "local"
) -> str | EngineFiles | DatabaseQuery:
    """Return the table to read: a query on a database, or a path, for this process or an engine.

    >>> data_of(["people.csv"], None, None), data_of(None, "sqlite:///people.db", "SELECT * FROM people")
    ('people.csv', DatabaseQuery('sqlite://…', 'SELECT * FROM people'))
    """
    if query is not None or (database is not None and not paths):
        database = database or os.environ.get("DPMOMENTS_DATABASE")
        if paths or engine != "local" or not (database and query):
            raise bad_option("--database, --query", Message("database-and-query"))
        return DatabaseQuery(database, query)
    if database is not None:
        raise bad_option("DATA, --database", Message("options-exclusive"))
    if not paths:
        raise bad_option("DATA", Message("table-needed"))
    if len(paths) > 1:
        raise bad_option("DATA", Message("one-path"))
    path = paths[0]
    if engine == "local":
        return path
    if engine not in ENGINES:
        raise bad_option("--engine", Message("unknown-engine", engine=engine, engines=["local", *ENGINES]))
    return EngineFiles(path, engine)


def shell_arguments(data: str | EngineFiles | DatabaseQuery) -> str:
    """Return the words of a command that name a table."""
    # The URL of a server is left out, since it may hold a password.
    if not isinstance(data, DatabaseQuery):
        return shlex.quote(str(getattr(data, "path", data)))
    url = shlex.quote(data.url) if data.scheme == "sqlite" else '"$DPMOMENTS_DATABASE"'
    return f"--database {url} --query {shlex.quote(data.query)}"


def mechanism_of(name: str, options: Sequence[str] | None) -> Mechanism:
    """Return the named mechanism with options given as ``key=value``.

    A value is read as JSON if valid (numbers, true, false, null, lists), else as text.

    >>> mechanism_of("laplace", ["calibration=paper"])
    Laplace(calibration='paper')
    """
    from dpmoments.mechanisms.registry import MECHANISMS

    return _configured(name, MECHANISMS, map(_key_and_value, options or []))


def mean_mechanism_of(
    name: str, options: Sequence[str] | None, radius: float | None = None, scale: float | None = None
) -> MeanMechanism | str:
    """Return the named mean-only mechanism with its options; two of them have their own flags.

    >>> mean_mechanism_of("symq", ["quantile=0.4"], radius=10.0)
    SymmetricQuantiles(radius=10.0, quantile=0.4)
    """
    from dpmoments.mechanisms.registry import MEAN_MECHANISMS

    flags = [(f"--{key}", key, value) for key, value in (("radius", radius), ("scale", scale)) if value is not None]
    given = [*flags, *map(_key_and_value, options or [])]
    if name == "auto":
        if given:
            raise bad_option(given[0][0], Message("auto-has-no-options", options=[key for _, key, _ in given]))
        return name
    return _configured(name, MEAN_MECHANISMS, given)


def _configured(
    name: str, classes: Mapping[str, type[Configured]], given: Iterable[tuple[str, str, Any]]
) -> Configured:
    """Return the named mechanism with options given as (text, key, value)."""
    if name not in classes:
        from dpmoments.mechanisms.registry import MEAN_MECHANISMS, unknown_mechanism

        refusal = unknown_mechanism(name, classes, of_means=classes is MEAN_MECHANISMS)
        raise bad_option("--mechanism", refusal)
    known = [option.name for option in fields(classes[name])]
    values: dict[str, Any] = {}
    written: dict[str, None] = {}
    for flag, key, value in given:
        written[flag] = None
        if key not in known:
            refusal = (
                Message("unknown-mechanism-option", mechanism=name, option=key, options=known)
                if known
                else Message("mechanism-without-options", mechanism=name, option=key)
            )
            raise bad_option(flag, refusal)
        if key in values:
            raise bad_option(flag, Message("value-twice", value=key))
        values[key] = value
    try:
        return classes[name](**values)
    except (TypeError, ValueError) as error:
        raise bad_option(", ".join(written) or "--mechanism", error) from error


def _key_and_value(option: str) -> tuple[str, str, Any]:
    key, separator, text = option.partition("=")
    if not separator:
        raise bad_option("--option", Message("option-form", value=option, form="key=value"))
    return "--option", key, _option_value(text)


def _option_value(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def registry_fields(given: Sequence[str]) -> dict[str, Any]:
    """Parse a registry entry's fields given as ``field=text``; authors are separated by ``;``.

    >>> registry_fields(["curator=A hospital", "authors=Ada; Grace"])
    {'curator': 'A hospital', 'authors': ['Ada', 'Grace']}
    """
    from dpmoments.releases.statements import registry_entry

    known = [
        name for name, entry in inspect.signature(registry_entry).parameters.items() if entry.kind is entry.KEYWORD_ONLY
    ]
    fields_given: dict[str, Any] = {}
    for text in given:
        field, separator, value = text.partition("=")
        if not separator:
            raise bad_option("--fill", Message("option-form", value=text, form="FIELD=TEXT"))
        if field not in known:
            raise bad_option("--fill", Message("not-one-of", parameter="FIELD", value=field, choices=known))
        if field in fields_given:
            raise bad_option("--fill", Message("value-twice", value=field))
        fields_given[field] = [name.strip() for name in value.split(";")] if field == "authors" else value
    return fields_given


def privacy_unit_of(column: str | None, max_rows: int | None, missing: str = "error") -> PrivacyUnit | None:
    """Return the privacy unit that the options name; None if each row is its own unit."""
    if column is None:
        if max_rows is not None or missing != "error":
            raise bad_option(
                "--max-rows-per-unit, --missing-unit", Message("option-needs-option", option="--privacy-unit")
            )
        return None
    if max_rows is None:
        raise bad_option("--max-rows-per-unit", Message("contribution-bound-needed"))
    try:
        return PrivacyUnit(column, max_rows, missing)  # type: ignore[arg-type]
    except ValueError as refusal:
        raise bad_option("--privacy-unit", refusal) from None


def text_format_of(
    delimiter: str | None,
    encoding: str | None,
    decimal: str | None,
    thousands: str | None,
    null: Sequence[str] | None,
    true: Sequence[str] | None = None,
    false: Sequence[str] | None = None,
    *,
    of_schema: TextFormat | None = None,
) -> TextFormat | None:
    r"""Return the text format that the options describe; None without any.

    What no option states is as in the schema.

    >>> text_format_of("tab", None, ",", None, ["k.A."])
    TextFormat(delimiter='\t', decimal=',', nulls=('k.A.',))
    """
    marks = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    words = {"nulls": null, "true": true, "false": false}
    given: dict[str, Any] = {key: value for key, value in (marks | words).items() if value}
    if not given:
        return None
    if delimiter in ("tab", "\\t"):
        given["delimiter"] = "\t"
    try:
        return replace(of_schema or TextFormat(), **given)
    except (TypeError, ValueError) as error:
        raise bad_option(", ".join(f"--{'null' if key == 'nulls' else key}" for key in given), error) from error
