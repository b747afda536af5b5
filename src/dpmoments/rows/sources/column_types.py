"""Refusal of tables whose types another library guesses.

One row would decide how all others are read.

With ``abc`` in a column of ``007`` the others stay ``007``; without it they become 7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from dpmoments.cells.text_numbers import column_format, text_flags, text_numbers
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.table_libraries import pa
from dpmoments.messages.message import Message
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric

_POLARS_SCANS = re.compile(r"^\s*(Csv|NDJson) SCAN ", re.MULTILINE | re.IGNORECASE)
_POLARS_KEYS = re.compile(r"^\s*\w+ SCAN \[([\s\S]*?)(?=^\s*PROJECT |\Z)", re.MULTILINE)
_DUCKDB_SCANS = re.compile(r"read_?\s?(csv|json|ndjson)", re.IGNORECASE)
_DUCKDB_MEMORY = re.compile(r"pandas[_ ]scan", re.IGNORECASE)
_KEY = re.compile(r"(?:^|[/\\ ])([^/\\=]+)=[^/\\]*(?=[/\\])")


def require_no_guess_of_polars(plan: str, names: list[str]) -> None:
    """Raise if the plan of a LazyFrame reads text files or folder names.

    The plan may quote values and is not shown.
    """
    if match := _POLARS_SCANS.search(plan):
        raise InputTypeError(Message("polars-guessed-types", format=match[1].upper()))
    keys = {unquote(key) for paths in _POLARS_KEYS.findall(plan) for key in _KEY.findall(paths)}
    if used := sorted(key for key in keys if key in names or f'"{key}"' in plan):
        raise InputTypeError(Message("polars-folder-types", columns=[*used]))


def require_no_guess_of_duckdb(plan: str) -> None:
    """Raise if a relation's plan reads CSV or JSON files, or pandas or NumPy data.

    The plan is not shown.

    DuckDB guesses types of objects, and the plan does not state which columns hold objects.
    """
    if match := _DUCKDB_SCANS.search(plan):
        raise InputTypeError(Message("duckdb-guessed-types", format=match[1].upper()))
    if _DUCKDB_MEMORY.search(plan):
        raise InputTypeError(Message("duckdb-object-types"))


def require_keys_of_text(dataset: Any, names: tuple[str, ...], columns: Mapping[str, Column]) -> None:
    """Raise if a column comes from folder names of an Arrow dataset and is no longer text.

    Only columns that are read are checked.

    A number is the same whatever its type; a level or a unit is not.
    """
    for child in getattr(dataset, "children", None) or ():
        require_keys_of_text(child, names, columns)
    for key in _keys(dataset):
        kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if key.name in names and not text and not isinstance(columns.get(key.name), Numeric | Coordinate):
            raise InputTypeError(Message("arrow-folder-types", column=key.name, type=kind))


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


def differing_types(dataset: Any, names: tuple[str, ...]) -> str | None:
    """Describe a file of an Arrow dataset whose types differ so that a cast may fail or round.

    None without one.

    Only footers are read. For a dataset with a filter every column is checked.
    """
    filters = bool(getattr(dataset, "_scan_options", None))
    for held in _schemas_of_files(dataset):
        for field in dataset.schema:
            index = held.get_field_index(field.name)
            if index < 0 or not (filters or field.name in names) or _widens(held.field(index).type, field.type):
                continue
            return (
                f"a file of the dataset has the column {field.name!r} as {held.field(index).type}, and the dataset has it as "
                f"{field.type}, the type of another file: one cell would decide whether the cast succeeds. For files of several "
                "types pass the folder's path"
            )
    return None


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


# Cells that the names of folders hold, as in ``year=2020/region=north/part.parquet`` (hive partitioning).

_NOTHING = ("", "__HIVE_DEFAULT_PARTITION__")


def folder_keys(path: Path, folder: Path | None) -> dict[str, str | None]:
    """Return the column values in the folder names between a file and ``folder``.

    None means null.

    >>> folder_keys(Path("data/year=2020/region=a%20b/part.parquet"), Path("data"))
    {'year': '2020', 'region': 'a b'}
    """
    if folder is None or not path.is_relative_to(folder):
        return {}
    pairs = [part.partition("=") for part in path.relative_to(folder).parts[:-1] if "=" in part]
    return {unquote(name): None if text in _NOTHING else unquote(text) for name, _, text in pairs}


def key_cells(text: str | None, column: Column | None, n_rows: int) -> Any:
    """Return a constant Arrow column of a type that the schema column accepts.

    It is text without a schema column.
    """
    if text is None:
        return pa.nulls(n_rows)
    if column is None or isinstance(column, Categorical | Date):
        return pa.repeat(pa.scalar(text), n_rows)
    read = text_flags if isinstance(column, Boolean) else text_numbers
    result = read(pa.array([text]), column_format(column))
    if result.unparsable[0] and column.missing == "error":
        raise InputValueError(Message("folder-not-a-value", column=column.name, kind=column.kind))
    value = result.values[0]
    if isinstance(column, Boolean):  # whose codes are read: 0 and 1 are none
        return pa.array([None if np.isnan(value) else bool(value)] * n_rows, pa.bool_())
    return pa.array(np.full(n_rows, value))
