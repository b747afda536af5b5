"""Tables whose types another library guesses from the cells: one row would decide how all others are read.

With ``abc`` in a column of ``007`` the others stay ``007``; without it they become 7. So a table of this kind is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from dpmoments.foundation.table_libraries import pa
from dpmoments.schema.columns import Column, Coordinate, Numeric

__all__ = ["guessed_formats", "require_keys_of_text", "require_no_guess_of_duckdb", "require_no_guess_of_polars"]

POLARS_SCANS = re.compile(r"^\s*(Csv|NDJson) SCAN ", re.MULTILINE | re.IGNORECASE)
POLARS_KEYS = re.compile(r"^\s*\w+ SCAN \[(.*)\]$", re.MULTILINE)
DUCKDB_SCANS = re.compile(r"read_?\s?(csv|json|ndjson)", re.IGNORECASE)
KEY = re.compile(r"(?:^|[/\\ ])([^/\\=]+)=[^/\\]*[/\\]")


def require_no_guess_of_polars(plan: str, names: list[str]) -> None:
    """Raise where the plan of a LazyFrame reads text files, or the names of folders.

    Parameters
    ----------
    plan : str
        As written, not optimised. It may quote cells, and is not shown.
    names : list of str
        Of the frame's columns.

    Raises
    ------
    TypeError
    """
    if found := POLARS_SCANS.search(plan):
        raise TypeError(
            f"the lazy frame scans {found[1].upper()} files, whose types Polars guesses from the first cells, so that one row "
            "would decide how others are read: pass the path of CSV files, or write the table to Parquet with stated types"
        )
    keys = {unquote(key) for paths in POLARS_KEYS.findall(plan) for key in KEY.findall(paths)}
    if used := sorted(key for key in keys if key in names or f'"{key}"' in plan):
        raise TypeError(
            f"the lazy frame's column {', '.join(map(repr, used))} is in the names of folders, whose types Polars guesses "
            "from all of them, so that one row would decide how others are read: pass the folder's path, or scan the files with "
            "hive_partitioning=False and leave the column out"
        )


def require_no_guess_of_duckdb(plan: str) -> None:
    """Raise where the plan of a relation reads CSV or JSON files. It is not shown.

    Raises
    ------
    TypeError
    """
    if found := DUCKDB_SCANS.search(plan):
        raise TypeError(
            f"the relation reads {found[1].upper()} files, whose types DuckDB guesses from their cells, so that one row would "
            "decide how others are read: pass the path of CSV files, or load them into a table of stated types, CREATE TABLE "
            "people (age DOUBLE, region VARCHAR); INSERT INTO people FROM ..., and pass that"
        )


def require_keys_of_text(dataset: Any, names: tuple[str, ...], columns: Mapping[str, Column]) -> None:
    """Raise where a column that is read comes from the names of an Arrow dataset's folders, and of it no text is left.

    A number is the same of whatever type it is; a level or a unit is not.

    Raises
    ------
    TypeError
    """
    for child in getattr(dataset, "children", None) or ():
        require_keys_of_text(child, names, columns)
    for key in _keys(dataset):
        kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if key.name in names and not text and not isinstance(columns.get(key.name), Numeric | Coordinate):
            raise TypeError(
                f"the dataset's column {key.name!r} is in the names of folders and was made of type {kind}, which Arrow guesses "
                "from all of them, so that one row would decide how others are read: pass the folder's path, or "
                f"ds.dataset(..., partitioning=ds.partitioning(pa.schema([({key.name!r}, pa.string())]), flavor='hive'))"
            )


def _keys(dataset: Any) -> list[Any]:
    """The fields of a dataset that the names of its folders hold."""
    partitioning = getattr(dataset, "partitioning", None)
    if partitioning is not None:
        return list(partitioning.schema)
    import pyarrow.dataset as ds  # imports pandas where it is installed, which takes as long as all else here

    if not isinstance(dataset, ds.FileSystemDataset):
        return []
    # The parts of a dataset made of several no longer know; their files do.
    names = {name for part in dataset.get_fragments() for name in ds.get_partition_keys(part.partition_expression)}
    return [field for field in dataset.schema if field.name in names]


def guessed_formats(dataset: Any) -> list[str]:
    """Kinds of file in a dataset that declare no types."""
    children = getattr(dataset, "children", None)
    if children is not None:
        return sorted({kind for child in children for kind in guessed_formats(child)})
    kind = getattr(getattr(dataset, "format", None), "default_extname", "")
    return [kind] if kind in ("csv", "json") else []
