"""Commands derived from Python functions.

Each parameter has an option, with its type, default and words.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from rich.markup import escape

from dpmoments.base.databases import DatabaseQuery
from dpmoments.base.errors import InputValueError, listed, shown
from dpmoments.base.table_files import ENGINES, EngineFiles
from dpmoments.base.text_files import TextFormat
from dpmoments.cli.output import naming
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import make_mean_mechanism, make_mechanism
from dpmoments.moments.repair import Repair
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.schema.schema import Schema

BUDGET_PANEL = "Privacy"
_METHOD_PANEL = "Method"
_TEXT_PANEL = "Text files (CSV) and workbooks"

# What a numpydoc docstring says of the parameters: the command line and the pages of the mechanisms read it.


class ParameterWords(NamedTuple):
    """Documentation of one parameter: the text after its name, and the text below it."""

    kind: str
    text: str


def describe_parameters(documented: Any) -> dict[str, ParameterWords]:
    """Parse a docstring's parameter section, by name, with lines joined; empty without one.

    >>> def area(width, height):
    ...     '''An area.
    ...
    ...     Parameters
    ...     ----------
    ...     width, height : float
    ...         In meters.
    ...     '''
    >>> describe_parameters(area)["height"]
    ParameterWords(kind='float', text='In meters.')
    """
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.getdoc(documented) or "", re.S | re.M)
    kinds: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (section[1] if section else "").splitlines():
        if line and not line.startswith(" "):
            listed, _, kind = line.partition(" : ")
            names = listed.split(", ")
            kinds |= dict.fromkeys(names, kind)
        else:
            for name in names:
                lines.setdefault(name, []).append(line.strip())
    return {name: ParameterWords(kind, " ".join(filter(None, lines.get(name, [])))) for name, kind in kinds.items()}


def without_marks(text: str) -> str:
    """Remove markup that only documentation pages show: ``code`` and :class:`references`."""
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", lambda match: match[1] or match[2], text)


# An option of a command: a parameter gives its name, its type and its default, and a table or its docstring the words.

REQUIRED = inspect.Parameter.empty
_AS_DECLARED = object()
_FLAGS = {"n_components": ("-k", "--components")}
"""Options with other names than their parameters."""


@dataclass(frozen=True)
class Option:
    """Command-line settings of a parameter.

    ``kind`` is the type of a value and ``default`` the command's default (``REQUIRED``: none); both default to the
    parameter's own. An ``argument`` is given by position. ``flags`` follow from the name by default.
    """

    help: str
    panel: str | None = None
    metavar: str | None = None
    kind: Any = None
    default: Any = _AS_DECLARED
    least: int | None = None
    argument: bool = False
    flags: tuple[str, ...] = ()

    def parameter(self, name: str, hint: Any = None, declared: Any = None) -> inspect.Parameter:
        """Return the option as a parameter that typer reads, of this type hint and declared default."""
        default = declared if self.default is _AS_DECLARED else self.default
        kind, several, parser = _kind(name, self.kind or hint)
        value: Any = list[kind] if several else kind  # type: ignore[valid-type]  # made here, for typer alone
        shown: dict[str, Any] = {
            "help": self.help,
            "metavar": self.metavar,
            "min": self.least,
            "rich_help_panel": self.panel,
            "show_default": default is not None and default is not REQUIRED,
            "parser": parser,
        }
        # ``features`` is a repeatable ``--feature``, and Booleans also have ``--no-``
        dashed = name.replace("_", "-").removesuffix("s" if several else "")
        flags = self.flags or _FLAGS.get(name) or (f"--{dashed}/--no-{dashed}" if kind is bool else f"--{dashed}",)
        stated = typer.Argument(**shown) if self.argument else typer.Option(*flags, **shown)
        return inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[value if default is not None else value | None, stated],
            default=default,
        )


def documented_option(parameter: inspect.Parameter, hint: Any, text: str) -> Option:
    """Return the option of a parameter, with the words of a docstring.

    A parameter without a default is an argument.
    """
    kind, several, _ = _kind(parameter.name, hint)
    required = parameter.default is REQUIRED
    return Option(
        escape(without_marks(text)) + (" May be repeated." if several else ""),
        metavar=parameter.name.upper() if required else None,
        least=1 if kind is int and parameter.name.startswith("n_") else None,
        argument=required,
    )


def _kind(name: str, hint: Any) -> tuple[Any, bool, Callable[[str], Any] | None]:
    """Return the type of one value, True if several are allowed, and a parser if typer has none."""
    if hint is Any:  # a frame, read once it is known that the release can be analyzed
        return Path, False, None
    # a mapping is for programs: every function that takes one takes a list of names too
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    members = tuple(member for member in members if member is not NoneType and get_origin(member) is not Mapping)
    words = [word for member in members if get_origin(member) is Literal for word in get_args(member)]
    plain = [member for member in members if isinstance(member, type) and get_origin(member) is None]
    numbers = [member for member in plain if member in (int, float)]
    if not words:
        choices = [member for member in plain if issubclass(member, StrEnum)]
        if single := next((kind for kind in (*choices, Path, bool) if kind in plain), None):
            return single, False, None
        if str in plain and not numbers:  # an object, or its name
            return str, False, None
        if len(numbers) == len(members) == 1:
            return numbers[0], False, None
    elif all(isinstance(word, str) for word in words):
        if len(members) == 1:
            return StrEnum(name.title(), {word: word for word in words}), False, None
        if len(numbers) == 1 and len(members) == 2:
            return Any, False, lambda text: text if text in words else numbers[0](text)
    if len(members) == 1 and get_origin(members[0]) in (Sequence, list, tuple):
        kind, several, parser = _kind(name, get_args(members[0])[0])
        if not several:
            return kind, True, parser
    raise AssertionError(
        f"parameter {name!r} is of type {hint}, which no option has: use str, bool, int, float, a Literal of words, "
        "a number or such a Literal, or a sequence of one of them, each or None; or Any, for a frame"
    )


_OPTIONS: dict[str, Option] = {
    "file": Option("A release, a JSON file.", metavar="FILE", argument=True),
    "as_json": Option("Print JSON, for programs.", flags=("--json",)),
    "overwrite": Option("Overwrite an existing page.", flags=("--overwrite",)),
    "yes": Option("Do not ask before spending.", flags=("--yes", "-y")),
    "no_ledger": Option(
        "Charge no ledger: the spent budget is recorded nowhere.", BUDGET_PANEL, flags=("--no-ledger",)
    ),
    "data": Option(
        "A Parquet, Feather, CSV, Excel, Stata, SPSS or SAS file, a quoted glob, or a folder.",
        metavar="DATA",
        argument=True,
    ),
    "database": Option(
        "Read a database in place of DATA: sqlite:///people.db or postgresql://user@host/name. Default: the environment "
        "variable DPMOMENTS_DATABASE, which keeps a password out of the shell's history.",
        "Database",
        "URL",
    ),
    "query": Option("The rows to read: one SELECT.", "Database", "SQL"),
    "engine": Option(
        f"Engine that reads the files: local (this process), {', '.join(ENGINES)}. The result does not depend on it."
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
    "option": Option("An option of the mechanism; may be repeated.", _METHOD_PANEL, "KEY=VALUE"),
    "mean": Option("Release count and mean in addition to the second moment, or only the second moment."),
    "repair": Option("Post-processing of the noisy moments.", _METHOD_PANEL, default=Repair.AUTO),
    "n_rows": Option("The number of rows, only if it is public independently of the table.", BUDGET_PANEL, least=1),
    "output": Option("Where to write the release; never overwritten.", default=REQUIRED),
    "dataset": Option("Dataset name, stored in the release. Releases of the same dataset cannot be pooled."),
    "ledger": Option(
        "Charge the budget to this ledger, in which --dataset has a grant ('dpmoments ledger grant').", BUDGET_PANEL
    ),
    "progress": Option("Show a progress bar; default: in a terminal."),
    "insecure_seed": Option("FOR TESTS ONLY: repeatable noise. Such a release protects nobody.", least=0),
    "radius": Option("Public bound on the mean, for a mechanism that needs one; in encoded units.", _METHOD_PANEL),
    "scale": Option(
        "Public bound on the standard deviation, for a mechanism that needs one; in encoded units.", _METHOD_PANEL
    ),
    "privacy_unit": Option(
        "Protect all rows with one value of this column together, such as a person's; the schema does not list it.",
        BUDGET_PANEL,
        "COLUMN",
    ),
    "max_rows_per_unit": Option(
        "Contribution bound: max rows per unit; noise is K times that for single rows. Not for weighted rows.",
        BUDGET_PANEL,
        "K",
    ),
    "missing_unit": Option("Treatment of rows without a unit: error or drop.", BUDGET_PANEL, "error|drop"),
    "codebook": Option(
        "Public codebook: Frictionless, CSVW, Croissant (.json), DDI (.xml), a REDCap dictionary or a sheet (.csv, .xlsx). "
        "May be repeated.",
        metavar="FILE",
        kind=list[str],
    ),
    "delimiter": Option("Delimiter: ';', '|', tab. Default: a comma; a tab in .tsv files.", _TEXT_PANEL, "MARK"),
    "encoding": Option("Encoding: latin-1, cp1252, utf-16, …; default: utf-8.", _TEXT_PANEL),
    "decimal": Option("Decimal mark; default: a point.", _TEXT_PANEL, "MARK"),
    "thousands": Option("Thousands separator.", _TEXT_PANEL, "MARK"),
    "sheet": Option("Sheet of a workbook: its name, or its number from 1; default: the first.", _TEXT_PANEL, "NAME"),
    "header_line": Option("Line with the names of the columns; default: the first.", _TEXT_PANEL, "LINE", int, least=1),
    "first_line": Option(
        "Line of the first record, if others, such as units, are below the names.", _TEXT_PANEL, "LINE", int, least=2
    ),
    "null": Option("Null marker; may be repeated.", _TEXT_PANEL, "TEXT"),
    "true": Option("Text for true, such as 'ja'; may be repeated.", _TEXT_PANEL, "TEXT"),
    "false": Option("Text for false; may be repeated.", _TEXT_PANEL, "TEXT"),
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
_WITHOUT_OPTION = ("threads", "options")
"""Parameters set by other means: ``DPMOMENTS_THREADS``, or names in ``--option``."""

# What a person writes in place of an object. A parser's parameters are options, and its errors name those that were given.


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


def _tables_of(by: Sequence[str] | None = None, *, schema: Schema) -> list[list[str]] | None:
    return None if by is None else [columns_of_table(text, schema) for text in by]


def column_and_feature(text: str, schema: Schema) -> tuple[str, str]:
    """Parse ``COLUMN:OF`` into a grouping column and a feature; both names may contain a colon."""
    parts = text.split(":")
    splits = [(":".join(parts[:index]), ":".join(parts[index:])) for index in range(1, len(parts))]
    columns, features = {column.name for column in schema.columns}, set(schema.feature_names)
    known = [(by, of) for by, of in splits if by in columns and of in columns | features]
    if len(known) != 1:
        raise InputValueError(
            f"{shown(text)} does not name one column of levels and one feature: write COLUMN:OF, such as "
            f"sex:income, of the release's columns {listed([*list(columns)[:12]])}"
        )
    return known[0]


def numbers_by_name(given: Sequence[str] | None) -> dict[str, float]:
    """Parse ``NAME=NUMBER``, each name once.

    >>> numbers_by_name(["age=15", "a=b=0.5"])
    {'age': 15.0, 'a=b': 0.5}
    """
    result: dict[str, float] = {}
    for text in given or ():
        name, _, digits = text.rpartition("=")
        try:
            value = float(digits)
        except ValueError:
            name = ""
        if not name:
            raise InputValueError(f"{shown(text)} is not NAME=NUMBER")
        if name in result:
            raise InputValueError(f"{shown(name)} is given twice")
        result[name] = value
    return result


def data_of(
    data: Sequence[str] | None = None, database: str | None = None, query: str | None = None, engine: str = "local"
) -> str | EngineFiles | DatabaseQuery:
    """Return the table to read: a query on a database, or a path, for this process or an engine.

    >>> data_of(["people.csv"], None, None), data_of(None, "sqlite:///people.db", "SELECT * FROM people")
    ('people.csv', DatabaseQuery('sqlite://…', 'SELECT * FROM people'))
    """
    url = database or os.environ.get("DPMOMENTS_DATABASE")
    if query and url and not data and engine == "local":
        return DatabaseQuery(url, query)
    if query is not None or database is not None:
        raise InputValueError("a database is read by its URL and a query, without DATA and without an engine")
    if not data:
        raise InputValueError("name a file, a quoted glob or a folder, or a database and a query")
    if len(data) > 1:
        raise InputValueError("give one path: put a glob in quotes, 'people/*.parquet'")
    if engine not in ("local", *ENGINES):
        raise InputValueError(f"unknown engine {shown(engine)}: use one of {', '.join(['local', *ENGINES])}")
    return data[0] if engine == "local" else EngineFiles(data[0], engine)


def shell_arguments(data: str | EngineFiles | DatabaseQuery) -> str:
    """Return the words of a command that name a table."""
    # The URL of a server is left out, since it may hold a password.
    if not isinstance(data, DatabaseQuery):
        return shlex.quote(str(getattr(data, "path", data)))
    url = shlex.quote(data.url) if data.scheme == "sqlite" else '"$DPMOMENTS_DATABASE"'
    return f"--database {url} --query {shlex.quote(data.query)}"


def mechanism_of(mechanism: str, option: Sequence[str] | None = None) -> Mechanism:
    """Return the named mechanism with options given as ``key=value``.

    A value is read as JSON if valid (numbers, true, false, null, lists), else as text.

    >>> mechanism_of("standardized", ["clip=false"])
    Standardized(clip=False)
    """
    return make_mechanism(mechanism, **_values_by_key(option))


def mean_mechanism_of(
    mechanism: str, option: Sequence[str] | None = None, radius: float | None = None, scale: float | None = None
) -> MeanMechanism | str:
    """Return the named mean-only mechanism with its options; two of them have their own flags.

    >>> mean_mechanism_of("symq", ["quantile=0.4"], radius=10.0)
    SymmetricQuantiles(radius=10.0, quantile=0.4)
    """
    flags = {key: value for key, value in (("radius", radius), ("scale", scale)) if value is not None}
    options = _values_by_key(option, flags)
    if mechanism == "auto" and options:
        raise InputValueError(f"auto has no options: leave out {', '.join(options)}, or name an estimator")
    return mechanism if mechanism == "auto" else make_mean_mechanism(mechanism, **options)


def _values_by_key(given: Sequence[str] | None, flags: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Parse ``key=value``, each key once and none of the flags."""
    result: dict[str, Any] = dict(flags or {})
    for text in given or ():
        key, separator, value = text.partition("=")
        if not separator:
            raise InputValueError(f"{shown(text)} is not key=value")
        if key in result:
            raise InputValueError(f"{shown(key)} is given twice")
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        result[key] = tuple(read) if isinstance(read, list) else read
    return result


def _privacy_unit_of(
    privacy_unit: str | None = None, max_rows_per_unit: int | None = None, missing_unit: str = "error"
) -> PrivacyUnit | None:
    """Return the privacy unit that the options name; None if each row is its own unit."""
    if privacy_unit is None:
        if max_rows_per_unit is not None or missing_unit != "error":
            raise InputValueError("it goes with --privacy-unit: give both")
        return None
    return PrivacyUnit(privacy_unit, max_rows_per_unit, missing_unit)  # type: ignore[arg-type]


def _text_format_of(
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    null: Sequence[str] | None = None,
    true: Sequence[str] | None = None,
    false: Sequence[str] | None = None,
    sheet: str | None = None,
    header_line: int | None = None,
    first_line: int | None = None,
    *,
    schema: Schema | None = None,
) -> TextFormat | None:
    """Return the text format that the options describe, else as in the schema; None without any."""
    delimiter = "\t" if delimiter in ("tab", "\\t") else delimiter
    marks = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "thousands": thousands}
    given: dict[str, Any] = {key: value for key, value in marks.items() if value}
    given |= {key: words for key, words in (("nulls", null), ("true", true), ("false", false)) if words}
    if sheet:
        given["sheet"] = int(sheet) if sheet.isdecimal() else sheet
    if header_line is not None:
        given["skip_lines"] = header_line - 1
    before = (schema and schema.text_format) or TextFormat()
    if first_line is not None:
        given["skip_below"] = first_line - 2 - given.get("skip_lines", before.skip_lines)
        if given["skip_below"] < 0:
            raise InputValueError(f"the first record, in line {first_line}, is not below the line of names")
    return replace(before, **given) if given else None


def _progress_of(progress: bool | None = None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


OBJECTS: Mapping[str, Callable[..., Any]] = {
    "data": data_of,
    "schema": lambda schema: Schema.load(schema),
    "mechanism": mechanism_of,
    "privacy_unit": _privacy_unit_of,
    "text_format": _text_format_of,
    "by": _tables_of,
    "progress": _progress_of,
}


def options_of(
    function: Callable[..., Any],
    *,
    leave_out: Collection[str] = (),
    own: Mapping[str, Option] | None = None,
    objects: Mapping[str, Callable[..., Any]] = OBJECTS,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a body, with an option for each parameter of a Python function."""
    # The body gets the function's arguments as a dict, and its own parameters by name, annotated for typer or with an
    # entry in `own`, which also overrides options. `leave_out` names omitted parameters and options. `objects` maps
    # parameters that are objects to their parsers; one with the keyword `schema` gets the schema. A parameter that no
    # table describes has the words of the docstring, and is an argument if it has no default.
    own = own or {}
    words, documented = _OPTIONS | dict(own), describe_parameters(function)
    hints, made = get_type_hints(function), dict[str, inspect.Parameter]()
    parts: dict[str, list[str]] = {}
    for name, declared in inspect.signature(function).parameters.items():
        if name in leave_out or name in _WITHOUT_OPTION:
            continue
        read = {name: declared}
        if parser := objects.get(name):
            read = {
                part: stated.replace(default=declared.default) if stated.default is REQUIRED else stated
                for part, stated in inspect.signature(parser, eval_str=True).parameters.items()
                if stated.kind is not stated.KEYWORD_ONLY
            }
        parts[name] = [part for part in read if part not in leave_out]
        for part in parts[name]:
            hint = hints[name] if read[part].annotation is REQUIRED or not parser else read[part].annotation
            option = words.get(part)
            if option is None:
                if part not in documented:
                    raise AssertionError(
                        f"{function.__qualname__} has the parameter {part!r}, and no option describes it"
                    )
                option = documented_option(read[part], hint, documented[part].text)
            made[part] = option.parameter(part, hint, read[part].default)

    parsed = [name for name in parts if name in objects and name != "schema"] if "schema" in parts else []
    by_schema = [name for name in parsed if "schema" in inspect.signature(objects[name]).parameters]

    def decorate(body: Callable[..., None]) -> Callable[..., None]:
        _, *others = inspect.signature(body, eval_str=True).parameters.values()
        own_parameters = [_described(other, own) for other in others]
        required = [other for other in own_parameters if other.default is REQUIRED]
        shown = [*required, *made.values(), *(other for other in own_parameters if other not in required)]
        shown.sort(key=lambda parameter: parameter.default is not REQUIRED)

        def command(**written: Any) -> None:
            arguments: dict[str, Any] = {}
            if {"schema", "neighbors"} <= parts.keys() and "goals" not in parts:  # goals may stand in for a budget
                with naming("--epsilon, --delta, --rho"):
                    PrivacyBudget.of(**{part: written[part] for part in ("epsilon", "delta", "rho")})
            # the schema's file is read when all else is known to be well written, but for what the schema decides
            for name in sorted(parts, key=lambda name: (name in by_schema, name == "schema")):
                given = {part: written.pop(part) for part in parts[name]}
                if name not in objects:
                    arguments[name] = given[name]
                    continue
                more = {"schema": arguments["schema"]} if name in by_schema else {}
                stated = [part for part, value in given.items() if value != made[part].default] or [*given]
                flags = ("DATA" if part == "data" else f"--{part.replace('_', '-')}" for part in stated)
                with nullcontext() if name == "schema" else naming(", ".join(flags)):
                    arguments[name] = objects[name](**given, **more)
            body({name: arguments[name] for name in parts}, **written)

        command.__name__, command.__doc__ = body.__name__, body.__doc__
        return _with_signature(command, shown)

    return decorate


def with_options(**own: Option) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Describe the parameters of a command: by ``own`` words, or by those that commands share."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(command, eval_str=True).parameters.values()
        return _with_signature(command, [_described(parameter, own) for parameter in parameters])

    return decorate


def _described(parameter: inspect.Parameter, own: Mapping[str, Option]) -> inspect.Parameter:
    if option := own.get(parameter.name) or _OPTIONS.get(parameter.name):
        return option.parameter(parameter.name, parameter.annotation, parameter.default)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _with_signature(command: Callable[..., None], shown: Sequence[inspect.Parameter]) -> Callable[..., None]:
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return command
