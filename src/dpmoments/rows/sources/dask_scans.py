"""Dask frames that are nothing but Parquet files: these are read as files, without a detour over pandas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpmoments.foundation.table_libraries import pq
from dpmoments.rows.sources.dask_plans import OF_COLUMNS

__all__ = ["scanned_files"]


def scanned_files(frame: Any, names: Sequence[str]) -> tuple[Path, ...] | None:
    """The files whose rows are the rows of a frame, each once; None unless its plan says so beyond doubt.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    names : sequence of str
        The columns that are to be read.

    Returns
    -------
    tuple of Path or None
        Local Parquet files, all of which hold the columns, in one type each. None where the plan has any step more (a filter, a
        selection of partitions, a cast), or reads with options that change what is read.
    """
    plan: Any = getattr(frame, "expr", None)
    while type(plan).__name__ in OF_COLUMNS:
        plan = plan.frame
    if type(plan).__name__ != "ReadParquetFSSpec" or not _reads_everything(plan):
        return None
    info = plan._dataset_info
    if info.get("has_metadata_file") is not False:
        return None  # a list of groups of rows, which need not be all of a file's
    if "file" not in _names_of(getattr(info.get("fs"), "protocol", None)) or not hasattr(info.get("ds"), "files"):
        return None
    table, paths = info["ds"].schema, tuple(map(Path, info["ds"].files))
    for path in paths:
        held = pq.read_schema(path)
        if any(held.names.count(name) != 1 or held.field(name).type != table.field(name).type for name in names):
            return None  # Dask fills, or casts
    return paths or None


def _reads_everything(plan: Any) -> bool:
    """Whether every row is read, by the reader that a local pass uses, without a conversion that was asked for."""
    options = dict(zip(plan._parameters, plan.operands, strict=False))
    needed = {"filters", "categories", "_partitions", "_series", "engine", "kwargs", "storage_options"}
    if not needed <= set(options):
        return False  # another version of Dask
    unset = all(not options[name] for name in ("filters", "categories", "storage_options", "_series"))
    plain = set(options["kwargs"] or ()) <= {"dtype_backend"} and options["engine"] in ("pyarrow", "auto")
    return unset and plain and options["_partitions"] is None


def _names_of(protocol: Any) -> tuple[str, ...]:
    return (protocol,) if isinstance(protocol, str) else tuple(protocol or ())
