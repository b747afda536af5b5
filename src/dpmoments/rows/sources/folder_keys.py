"""Cells that the names of folders hold, as in ``year=2020/region=north/part.parquet`` (hive partitioning)."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from dpmoments.cells.text_numbers import text_flags, text_numbers
from dpmoments.foundation.table_libraries import pa
from dpmoments.foundation.text_format import TextFormat
from dpmoments.schema.columns import Boolean, Categorical, Column, Date

__all__ = ["folder_keys", "key_cells"]

NOTHING = ("", "__HIVE_DEFAULT_PARTITION__")


def folder_keys(path: Path, folder: Path | None) -> dict[str, str | None]:
    """What the folders between a file and ``folder`` say, by column; None where they say that nothing is known.

    Examples
    --------
    >>> folder_keys(Path("data/year=2020/region=a%20b/part.parquet"), Path("data"))
    {'year': '2020', 'region': 'a b'}
    """
    if folder is None or not path.is_relative_to(folder):
        return {}
    pairs = [part.partition("=") for part in path.relative_to(folder).parts[:-1] if "=" in part]
    return {unquote(name): None if text in NOTHING else unquote(text) for name, _, text in pairs}


def key_cells(text: str | None, column: Column | None, n_rows: int) -> Any:
    """A column of one cell again and again, as an Arrow array of a type that the column takes; of text for one of no schema.

    Raises
    ------
    ValueError
        If the text is none of the column's values, whose rule is ``missing="error"``. It is not quoted.
    """
    if text is None:
        return pa.nulls(n_rows)
    if column is None or isinstance(column, Categorical | Date):
        return pa.repeat(pa.scalar(text), n_rows)
    read = text_flags if isinstance(column, Boolean) else text_numbers
    found = read(pa.array([text]), TextFormat())
    if found.unparseable[0] and column.missing == "error":
        raise ValueError(
            f"column {column.name!r} is in the names of folders, one of which is no value of a {column.kind} column: describe it "
            "as Categorical"
        )
    return pa.array(np.full(n_rows, found.values[0]))
