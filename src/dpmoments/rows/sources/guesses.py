"""Refusals of tables whose library guesses types from cells, or skips rows by those around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from dpmoments.foundation.errors import InputTypeError, listed, shown
from dpmoments.foundation.table_libraries import pa
from dpmoments.schema.columns import Column, Coordinate
from dpmoments.schema.numeric import Numeric

_POLARS_SCANS = re.compile(r"^\s*(Csv|NDJson) SCAN ", re.MULTILINE | re.IGNORECASE)
_POLARS_FILTERS = re.compile(r"^\s*(FILTER|SELECTION)\b", re.MULTILINE)
_POLARS_KEYS = re.compile(r"^\s*\w+ SCAN \[([\s\S]*?)(?=^\s*PROJECT |\Z)", re.MULTILINE)
_DUCKDB_SCANS = re.compile(r"read_?\s?(csv|json|ndjson)", re.IGNORECASE)
_DUCKDB_MEMORY = re.compile(r"pandas[_ ]scan", re.IGNORECASE)
_NEGATING = re.compile(r"\w\(|\b(true|false|null|not)\b", re.IGNORECASE)
"""Functions and constants in a filter's text, by which a comparison can be negated."""
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
            f"the lazy frame's column {listed([*used])} is in the names of folders, whose types Polars guesses "
            "from all of them, and one row would decide how others are read: pass the folder's path, or scan "
            "the files with hive_partitioning=False and leave the column out"
        )


def require_no_guess_of_duckdb(plan: str) -> None:
    """Raise if a relation's plan reads CSV or JSON files, or pandas or NumPy data.

    The plan is not shown. DuckDB guesses types of objects, and the plan does not state which columns hold objects.
    """
    if match := _DUCKDB_SCANS.search(plan):
        raise InputTypeError(
            f"the relation reads {match[1].upper()} files, whose types DuckDB guesses from their cells, and one "
            "row would decide how others are read: pass the path of CSV files, or load them into a table of "
            "stated types, CREATE TABLE people (age DOUBLE, region VARCHAR); COPY people FROM 'people.csv', "
            "and pass that"
        )
    if _DUCKDB_MEMORY.search(plan):
        raise InputTypeError(
            "the relation reads a pandas frame or NumPy arrays, and types of objects DuckDB guesses from the "
            "cells, and one row would decide how others are read: pass the frame itself; or, for a query, make "
            "an Arrow table of stated types of it, pyarrow.Table.from_pandas(frame, schema=...)"
        )


def require_no_skipped_nan(dataset: Any) -> None:
    """Raise if another row may decide whether the filter of a dataset keeps a row of NaN."""
    for child in getattr(dataset, "children", None) or ():
        require_no_skipped_nan(child)
    filters = (getattr(dataset, "_scan_options", None) or {}).get("filter")
    if filters is not None and (columns := columns_of_skipped_nan(str(filters), dataset.schema)):
        raise InputTypeError(
            f"the filter negates a comparison of {listed(columns)}, or uses a function of it: Arrow skips "
            "groups of rows by their least and largest number, which leave NaN out, and one row would decide "
            "whether a row of NaN is kept: use <, <=, ==, >, >= joined by & and |, or filter the table in "
            "memory, dataset.to_table().filter(...)"
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


def require_keys_of_text(dataset: Any, names: tuple[str, ...], columns: Mapping[str, Column]) -> None:
    """Raise if a column comes from folder names of an Arrow dataset and is no longer text.

    Only columns that are read are checked. A number is the same whatever its type; a level or a unit is not.
    """
    for child in getattr(dataset, "children", None) or ():
        require_keys_of_text(child, names, columns)
    for key in _keys(dataset):
        kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if key.name in names and not text and not isinstance(columns.get(key.name), Numeric | Coordinate):
            raise InputTypeError(
                f"the dataset's column '{key.name}' is in the names of folders and was made of type {kind}, which "
                "Arrow guesses from all of them, and one row would decide how others are read: pass the folder's "
                f"path, or ds.dataset(..., partitioning=ds.partitioning(pa.schema([('{key.name}', pa.string())]), "
                "flavor='hive'))"
            )


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


def differing_types(dataset: Any, names: tuple[str, ...]) -> str:
    """Describe a file of an Arrow dataset whose types differ so that a cast may fail or round.

    None without one. Only footers are read. For a dataset with a filter every column is checked.
    """
    filters = bool(getattr(dataset, "_scan_options", None))
    for held in _schemas_of_files(dataset):
        for column in dataset.schema:
            index = held.get_field_index(column.name)
            if index < 0 or not (filters or column.name in names) or _widens(held.field(index).type, column.type):
                continue
            return (
                f"a file of the dataset has the column {shown(column.name)} as {held.field(index).type}, and the dataset has it "
                f"as {column.type}, the type of another file: one cell would decide whether the cast succeeds. For files of "
                "several types pass the folder's path"
            )
    return ""


def _schemas_of_files(dataset: Any) -> Iterator[Any]:
    """Iterate over the files' schemas; a dataset with a filter does not expose its fragments."""
    for child in getattr(dataset, "children", None) or ():
        yield from _schemas_of_files(child)
    for path in getattr(dataset, "files", None) or ():
        yield dataset.format.make_fragment(path, filesystem=dataset.filesystem).physical_schema


def _widens(held: Any, wanted: Any) -> bool:
    """Return True if every value of one Arrow type is a value of the other."""
    held, wanted = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (held, wanted))
    if held == wanted or pa.types.is_null(held):
        return True
    for of_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer, pa.types.is_floating):
        if of_kind(held) and of_kind(wanted):
            return bool(held.bit_width <= wanted.bit_width)
    return all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in (held, wanted))


def guessed_formats(dataset: Any) -> list[str]:
    """Return the file formats in a dataset that declare no types."""
    children = getattr(dataset, "children", None)
    if children is not None:
        return sorted({kind for child in children for kind in guessed_formats(child)})
    kind = getattr(getattr(dataset, "format", None), "default_extname", "")
    return [kind] if kind in ("csv", "json") else []
