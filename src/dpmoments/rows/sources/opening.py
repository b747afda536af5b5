"""Which source reads what a user passes."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from dpmoments.rows.sources.arrow import RelationSource, file_source
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import ArraySource, FrameSource, LazySource, require_columns
from dpmoments.schema.schema import Schema

__all__ = ["open_source"]


def open_source(data: Any, schema: Schema, mean: bool) -> LocalSource[Any]:
    """The source for an array, frame, path, glob, folder or relation. Only names, types and file footers are looked at.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If it is none of these, or does not have the schema's columns.
    """
    if isinstance(data, str | PathLike):
        return file_source(data if isinstance(data, str) else Path(data), schema, mean)
    if isinstance(data, np.ndarray):
        return ArraySource(schema, mean, data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        raise TypeError(
            "a RecordBatchReader can be read once, and some mechanisms need several passes: pass the Parquet files, "
            "a DuckDB relation, or reader.read_all()"
        )
    library = type(data).__module__.split(".")[0]
    if library in ("duckdb", "_duckdb") and hasattr(data, "project"):
        return RelationSource(schema, mean, data)
    if library == "scipy" and hasattr(data, "toarray"):
        raise TypeError("sparse matrices are not supported: pass a dense array or a frame")
    if library == "polars" and hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return LazySource(schema, mean, data)
    # narwhals refuses a frame with repeated names, wanted or not, in a message that lists them.
    if isinstance(data, pa.Table):
        require_columns(data.column_names, schema, "the table")
        data = data.select(list(schema.names))
    if library == "pandas" and getattr(getattr(data, "columns", None), "has_duplicates", False):
        require_columns(list(data.columns), schema, "the frame")
        data = data.loc[:, list(schema.names)]
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return FrameSource(schema, mean, frame)
    raise TypeError(
        f"cannot read a table from {type(data).__name__}: pass a NumPy array, a pandas, Polars or Arrow frame, a path or glob of "
        "Parquet or CSV files, or a DuckDB relation"
    )
