"""Parsing of what a person writes in place of an object.

The objects are tables, budgets, mechanisms, units and text formats.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

import typer

from dpmoments.base.databases import DatabaseQuery
from dpmoments.base.errors import InputValueError, listed, shown
from dpmoments.base.table_files import ENGINES, EngineFiles
from dpmoments.base.text_format import TextFormat
from dpmoments.cli.output import bad_option
from dpmoments.mechanisms.base import ConfiguredMechanism, Mechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.schema.schema import Schema

Configured = TypeVar("Configured", bound=ConfiguredMechanism[Any])


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


def tables_of(by: Sequence[str] | None = None, *, schema: Schema) -> list[list[str]] | None:
    """Return the columns of each table, given as ``COLUMN:COLUMN``."""
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


_DATABASE_AND_QUERY = "a database is read by its URL and a query, without DATA and without an engine"
OPTIONS_EXCLUSIVE = "give one of these options, not several"


def needs_option(hint: str, option: str) -> typer.BadParameter:
    """Return the error of an option that goes with another, which is absent."""
    return bad_option(hint, f"it goes with {option}: give both")


def given_twice(hint: str, value: str) -> typer.BadParameter:
    """Return the error of an option that has a value twice."""
    return bad_option(hint, f"{shown(value)} is given twice")


def budget_of(epsilon: float | None, delta: float, rho: float | None) -> PrivacyBudget:
    try:
        return PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    except ValueError as error:
        raise bad_option("--epsilon, --delta, --rho", error) from error


def data_of(
    data: Sequence[str] | None = None, database: str | None = None, query: str | None = None, engine: str = "local"
) -> str | EngineFiles | DatabaseQuery:
    """Return the table to read: a query on a database, or a path, for this process or an engine.

    >>> data_of(["people.csv"], None, None), data_of(None, "sqlite:///people.db", "SELECT * FROM people")
    ('people.csv', DatabaseQuery('sqlite://…', 'SELECT * FROM people'))
    """
    if query is not None or (database is not None and not data):
        database = database or os.environ.get("DPMOMENTS_DATABASE")
        if data or engine != "local" or not (database and query):
            raise bad_option("--database, --query", _DATABASE_AND_QUERY)
        return DatabaseQuery(database, query)
    if database is not None:
        raise bad_option("DATA, --database", OPTIONS_EXCLUSIVE)
    if not data:
        raise bad_option("DATA", "name a file, a quoted glob or a folder, or a database and a query")
    if len(data) > 1:
        raise bad_option("DATA", "give one path: put a glob in quotes, 'people/*.parquet'")
    path = data[0]
    if engine == "local":
        return path
    if engine not in ENGINES:
        known = ", ".join(["local", *ENGINES])
        raise bad_option("--engine", f"unknown engine {shown(engine)}: use one of {known}, or pass the path itself")
    return EngineFiles(path, engine)


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
    from dpmoments.mechanisms.registry import MECHANISMS

    return _configured(mechanism, MECHANISMS, map(_key_and_value, option or []))


def mean_mechanism_of(
    mechanism: str, option: Sequence[str] | None = None, radius: float | None = None, scale: float | None = None
) -> MeanMechanism | str:
    """Return the named mean-only mechanism with its options; two of them have their own flags.

    >>> mean_mechanism_of("symq", ["quantile=0.4"], radius=10.0)
    SymmetricQuantiles(radius=10.0, quantile=0.4)
    """
    from dpmoments.mechanisms.registry import MEAN_MECHANISMS

    flags = [(f"--{key}", key, value) for key, value in (("radius", radius), ("scale", scale)) if value is not None]
    given = [*flags, *map(_key_and_value, option or [])]
    if mechanism == "auto":
        if given:
            keys = ", ".join(key for _, key, _ in given)
            raise bad_option(given[0][0], f"mechanism='auto' has no options: leave out {keys}, or name an estimator")
        return mechanism
    return _configured(mechanism, MEAN_MECHANISMS, given)


def _configured(
    name: str, classes: Mapping[str, type[Configured]], given: Iterable[tuple[str, str, Any]]
) -> Configured:
    """Return the named mechanism with options given as (text, key, value)."""
    if name not in classes:
        from dpmoments.mechanisms.registry import MEAN_MECHANISMS, unknown_mechanism

        raise bad_option("--mechanism", unknown_mechanism(name, classes, of_means=classes is MEAN_MECHANISMS))
    known = [option.name for option in fields(classes[name])]
    values: dict[str, Any] = {}
    written: dict[str, None] = {}
    for flag, key, value in given:
        written[flag] = None
        if key not in known:
            options = f"its options are {', '.join(known)}" if known else "it takes no options"
            raise bad_option(flag, f"mechanism '{name}' has no option {shown(key)}: {options}")
        if key in values:
            raise given_twice(flag, key)
        values[key] = value
    try:
        return classes[name](**values)
    except (TypeError, ValueError) as error:
        raise bad_option(", ".join(written) or "--mechanism", error) from error


def _key_and_value(option: str) -> tuple[str, str, Any]:
    key, separator, text = option.partition("=")
    if not separator:
        raise bad_option("--option", f"{shown(option)} is not key=value")
    try:
        value = json.loads(text)
    except ValueError:
        return "--option", key, text
    return "--option", key, tuple(value) if isinstance(value, list) else value


def privacy_unit_of(
    privacy_unit: str | None = None, max_rows_per_unit: int | None = None, missing_unit: str = "error"
) -> PrivacyUnit | None:
    """Return the privacy unit that the options name; None if each row is its own unit."""
    if privacy_unit is None:
        if max_rows_per_unit is not None or missing_unit != "error":
            raise needs_option("--max-rows-per-unit, --missing-unit", "--privacy-unit")
        return None
    if max_rows_per_unit is None:
        raise bad_option(
            "--max-rows-per-unit",
            "state the contribution bound, the most rows of one unit that count (--max-rows-per-unit 5)",
        )
    try:
        return PrivacyUnit(privacy_unit, max_rows_per_unit, missing_unit)  # type: ignore[arg-type]
    except ValueError as refusal:
        raise bad_option("--privacy-unit", refusal) from None


def progress_of(progress: bool | None = None) -> bool:
    """Return True if a progress bar is wanted; by default in a terminal."""
    return sys.stderr.isatty() if progress is None else progress


def text_format_of(
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    null: Sequence[str] | None = None,
    true: Sequence[str] | None = None,
    false: Sequence[str] | None = None,
    *,
    schema: Schema | None = None,
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
        return replace((schema and schema.text_format) or TextFormat(), **given)
    except (TypeError, ValueError) as error:
        raise bad_option(", ".join(f"--{'null' if key == 'nulls' else key}" for key in given), error) from error
