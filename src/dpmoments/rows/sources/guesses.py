"""Refusals of tables whose library guesses types from cells, or skips rows by other rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from dpmoments.base.errors import InputTypeError, listed, shown
from dpmoments.base.table_libraries import pa
from dpmoments.rows.sources.source import Reading
from dpmoments.schema.columns import Coordinate, Numeric

_POLARS_SCANS = re.compile(r"^\s*(Csv|NDJson) SCAN ", re.MULTILINE | re.IGNORECASE)
_POLARS_FILTERS = re.compile(r"^\s*(FILTER|SELECTION)\b", re.MULTILINE)
_POLARS_KEYS = re.compile(r"^\s*\w+ SCAN \[([\s\S]*?)(?=^\s*PROJECT |\Z)", re.MULTILINE)
_DUCKDB_SCANS = re.compile(r"read_?\s?(csv|json|ndjson)", re.IGNORECASE)
_DUCKDB_MEMORY = re.compile(r"pandas[_ ]scan", re.IGNORECASE)
_NEGATING = re.compile(r"\w\(|\b(true|false|null|not)\b", re.IGNORECASE)
"""Functions and constants in a filter's text, by which a comparison can be negated."""
_STATING_TYPES = {"", "parquet", "arrow", "feather", "orc"}
"""Formats of an Arrow dataset that state types; "" is a table in memory."""
_KEY = re.compile(r"(?:^|[/\\ ])([^/\\=]+)=[^/\\]*(?=[/\\])")


def require_no_guess_of_polars(plan: str, names: list[str]) -> None:
    """Raise if the plan of a LazyFrame reads text files or folder names."""
    # The plan may quote values and is not shown.
    if match := _POLARS_SCANS.search(plan):
        raise InputTypeError(
            f"the lazy frame scans {match[1].upper()} files, whose types Polars guesses from the first cells, "
            "and one row would decide how others are read: pass the path of CSV files, or write the table to "
            "Parquet with stated types"
        )
    if "PYTHON SCAN" in plan and _POLARS_FILTERS.search(plan):
        raise InputTypeError(
            "the lazy frame filters rows that another library scans, such as an Arrow dataset, which may skip "
            "groups of rows so that one row decides whether a row of NaN is kept: use pl.scan_parquet(...), or "
            "collect() before the filter"
        )
    keys = {unquote(key) for paths in _POLARS_KEYS.findall(plan) for key in _KEY.findall(paths)}
    if used := sorted(key for key in keys if key in names or f'"{key}"' in plan):
        raise InputTypeError(
            f"the lazy frame's column {listed(used)} is in the names of folders, whose types Polars guesses "
            "from all of them, and one row would decide how others are read: pass the folder's path, or scan "
            "the files with hive_partitioning=False and leave the column out"
        )


def require_no_guess_of_duckdb(plan: str) -> None:
    """Raise if a relation's plan reads CSV or JSON files, or pandas or NumPy data."""
    # It is not shown. DuckDB guesses types of objects, and the plan does not state which columns hold objects.
    if match := _DUCKDB_SCANS.search(plan):
        raise InputTypeError(
            f"the relation reads {match[1].upper()} files, whose types DuckDB guesses from their cells, and one row "
            "would decide how others are read: pass the path of CSV files, or load them into a table of stated types, "
            "CREATE TABLE people (age DOUBLE, region VARCHAR); COPY people FROM 'people.csv', and pass that"
        )
    if _DUCKDB_MEMORY.search(plan):
        raise InputTypeError(
            "the relation reads a pandas frame or NumPy arrays, and types of objects DuckDB guesses from the "
            "cells, and one row would decide how others are read: pass the frame itself; or, for a query, make "
            "an Arrow table of stated types of it, pyarrow.Table.from_pandas(frame, schema=...)"
        )


def require_no_guess_of_arrow(dataset: Any, reading: Reading) -> None:
    """Raise if one row may decide how an Arrow dataset reads or keeps others, from footers only."""
    parts = list(_with_children(dataset))
    formats = {getattr(getattr(part, "format", None), "default_extname", "") for part in parts}
    if guessed := sorted(formats - _STATING_TYPES):
        raise InputTypeError(
            f"the dataset is of {' and '.join(guessed)} files, whose types Arrow guesses from the first cells, and one "
            "row would decide how others are read: pass the path of CSV files, or a dataset of Parquet or Feather files"
        )
    for part in parts:
        filters = (getattr(part, "_scan_options", None) or {}).get("filter")
        if filters is not None and (columns := columns_of_skipped_nan(str(filters), part.schema)):
            raise InputTypeError(
                f"the filter negates a comparison of {listed(columns)}, or uses a function of it: Arrow skips "
                "groups of rows by their least and largest number, which leave NaN out, and one row would decide "
                "whether a row of NaN is kept: use <, <=, ==, >, >= joined by & and |, or filter the table in "
                "memory, dataset.to_table().filter(...)"
            )
        for key in _keys(part):  # a number is the same whatever its type; a level or a unit is not
            kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            is_number = isinstance(reading.schema.columns_by_source.get(key.name), Numeric | Coordinate)
            if key.name in reading.names and not text and not is_number:
                raise InputTypeError(
                    f"the dataset's column '{key.name}' is in the names of folders and was made of type {kind}, which "
                    "Arrow guesses from all of them, and one row would decide how others are read: pass the folder's "
                    f"path, or ds.dataset(..., partitioning=ds.partitioning(pa.schema([('{key.name}', pa.string())]), "
                    "flavor='hive'))"
                )
    _require_same_types(dataset, parts, reading.names)


def _with_children(dataset: Any) -> Iterator[Any]:
    yield dataset
    for child in getattr(dataset, "children", None) or ():
        yield from _with_children(child)


def _require_same_types(dataset: Any, parts: list[Any], names: tuple[str, ...]) -> None:
    """Raise if the types of a file differ from the dataset's so that a cast may fail or round."""
    # A dataset with a filter may read every column, and does not expose its fragments.
    filtered = any(getattr(part, "_scan_options", None) for part in parts)
    columns = [column for column in dataset.schema if filtered or column.name in names]
    files = ((part, path) for part in parts for path in getattr(part, "files", None) or ())
    for part, path in files:
        held = part.format.make_fragment(path, filesystem=part.filesystem).physical_schema
        for column in columns:
            index = held.get_field_index(column.name)
            if index >= 0 and not _widens(held.field(index).type, column.type):
                raise InputTypeError(
                    f"a file of the dataset has the column {shown(column.name)} as {held.field(index).type}, and the "
                    f"dataset has it as {column.type}, the type of another file: one cell would decide whether the cast "
                    "succeeds. For files of several types pass the folder's path"
                )


def columns_of_skipped_nan(filters: str, schema: Any) -> list[str]:
    """Return the columns that a filter names and whose NaN it may keep by chance."""
    # Groups of rows are skipped by their least and largest number, which leave NaN out. Comparisons that NaN fails,
    # joined by and and or, keep no NaN; what negates them may. Nested columns may hold NaN.
    if not ("!" in filters or _NEGATING.search(filters)):
        return []
    return [field.name for field in schema if field.name in filters and _may_hold_nan(field.type)]


def _may_hold_nan(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_floating(kind) or pa.types.is_nested(kind))


def _keys(dataset: Any) -> list[Any]:
    """Return the fields of a dataset that come from folder names."""
    partitioning = getattr(dataset, "partitioning", None)
    if partitioning is not None:
        return list(partitioning.schema)
    import pyarrow.dataset as ds  # imports pandas where it is installed, which takes as long as all else here

    if not isinstance(dataset, ds.FileSystemDataset):
        return []
    # The parts of a dataset made of several no longer know; their files do.
    names = {name for part in dataset.get_fragments() for name in ds.get_partition_keys(part.partition_expression)}
    return [field for field in dataset.schema if field.name in names]


def _widens(held: Any, wanted: Any) -> bool:
    """Return True if every value of one Arrow type is a value of the other."""
    held, wanted = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (held, wanted))
    if held == wanted or pa.types.is_null(held):
        return True
    for of_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer, pa.types.is_floating):
        if of_kind(held) and of_kind(wanted):
            return bool(held.bit_width <= wanted.bit_width)
    return all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in (held, wanted))
