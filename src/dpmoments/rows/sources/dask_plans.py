"""Checks of a Dask collection's plan.

Types are declared, and no row is stored between tasks.

Both examine the plan before anything is read, and refuse what they do not recognize.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dpmoments.foundation.errors import InputTypeError
from dpmoments.foundation.table_libraries import pa
from dpmoments.rows.sources.engine import Reading
from dpmoments.schema.columns import Categorical
from dpmoments.schema.numeric import Numeric

OF_COLUMNS = ("ArrowStringConversion", "Projection")
"""Plan steps that leave rows and values unchanged.

Storage of text, and selection of columns.
"""
_IN_MEMORY = ("FromPandas", "FromPandasDivisions")
_PARQUET = ("ReadParquetPyarrowFS", "ReadParquetFSSpec")
_ORC_READER = ("dask.dataframe.io.orc.core", "_read_orc")
_KEEPING_PARTITIONS = (
    "Concat",
    "FromMap",
    "FromMapProjectable",
    "FusedIO",
    "FusedParquetIO",
    "Partitions",
    "Repartition",
)
"""Plan steps that build a partition from whole other partitions."""
_EXACT_IN_FLOAT64 = 2**53
_ON_DISK = ("DiskShuffle", "HashJoinP2P", "P2PShuffle")
_TRANSFER = ("distributed.shuffle.", "partd")

_FILES_INSTEAD = 'dpmoments.EngineFiles(path, engine="dask"), which reads every cell by the schema'
_OF_DELAYED = "is made of, or with, delayed objects (as from_delayed and read_json do)"
_UNDECLARED = (
    "the Dask frame {what}, so pandas may guess types in each partition, and one row would decide how others are "
    "read (a long line of a CSV file shifts the columns of the lines around it, also with dtype=). Pass "
    f"{_FILES_INSTEAD}; or write the table to Parquet with stated types and pass dask.dataframe.read_parquet(path)"
)


def _plan_nodes(expression: Any) -> Iterator[Any]:
    """Yield every expression of a plan once, including fused steps and arguments."""
    waiting, seen = [expression], set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple):
            waiting += node
        elif isinstance(node, dict):
            waiting += node.values()
        elif _is_expression(node) and node._name not in seen:
            seen.add(node._name)
            yield node
            waiting += node.operands


def _is_expression(node: Any) -> bool:
    return not isinstance(node, type) and hasattr(node, "operands") and hasattr(node, "_parameters")


def _kind(node: Any) -> str:
    return type(node).__name__


def require_declared_types(plan: Any) -> None:
    """Raise TypeError unless a frame consists of tables in memory or files with stated types."""
    from dask.base import is_dask_collection

    for node in _plan_nodes(plan):
        operands = _operands(node)
        if not any(map(_is_expression, operands)):
            _require_declared(node)
        if any(is_dask_collection(operand) and not _is_expression(operand) for operand in operands):
            raise InputTypeError(_UNDECLARED.format(what=_OF_DELAYED))


def require_types_of_readers(plan: Any, reading: Reading) -> None:
    """Raise TypeError if a Parquet or ORC reader guesses a column's type, or may round it.

    It reads the simplified plan.
    """
    behind = _behind_columns(plan)
    only_columns = _kind(behind) in _PARQUET or _is_orc(behind)
    for node in _plan_nodes(plan):
        if _kind(node) in _PARQUET:
            _require_keys_of_text(node, reading, only_columns)
        if _kind(node) in _PARQUET or _is_orc(node):
            _require_exact_integers(node, reading, only_columns)


def _operands(node: Any) -> list[Any]:
    result: list[Any] = []
    for operand in node.operands:
        held = operand.values() if isinstance(operand, dict) else operand
        result += held if isinstance(operand, list | tuple | dict) else [operand]
    return result


def _behind_columns(node: Any) -> Any:
    while _kind(node) in OF_COLUMNS:
        node = node.frame
    return node


def _require_declared(leaf: Any) -> None:
    """Raise TypeError unless a leaf of a plan is a table in memory or a file with stated types."""
    kind = _kind(leaf)
    of_dask = type(leaf).__module__.startswith("dask.dataframe.")
    if of_dask and (kind in _IN_MEMORY or kind in _PARQUET or kind == "Literal"):
        return
    if of_dask and kind == "FromArray" and isinstance(leaf.operand("frame"), np.ndarray):
        return
    if of_dask and _is_orc(leaf):
        return
    if kind == "FromGraph":
        raise InputTypeError(
            "the Dask frame does not show how it was made: it was persisted, or comes from a bag, an array or a graph. Its "
            f"types may be guessed from its cells. Pass the frame before persist(), Parquet files, or {_FILES_INSTEAD}"
        )
    if kind in ("DelayedsExpr", "_DelayedExpr"):
        what = _OF_DELAYED
    elif kind.startswith("FromMap"):
        what = "is read by a function for each partition (as read_csv, read_table, read_fwf and from_map do)"
    else:
        what = f"comes from a source of the kind {kind}"
    raise InputTypeError(_UNDECLARED.format(what=what))


def _is_orc(node: Any) -> bool:
    if not _kind(node).startswith("FromMap"):
        return False
    reader = node.operand("func")
    return (getattr(reader, "__module__", ""), getattr(reader, "__name__", "")) == _ORC_READER


def _require_keys_of_text(reader: Any, reading: Reading, only_columns: bool) -> None:
    """Raise TypeError if a column from folder names is used and is not text.

    Types that do not matter are accepted.
    """
    columns = {column.name: column for column in reading.schema.columns}
    filters = "" if reader.operand("filters") is None else str(reader.operand("filters"))
    for name in sorted(_guessed_keys(reader)):
        a_number = only_columns and isinstance(columns.get(name), Numeric)
        if (name in reader.columns and not a_number) or name in filters:
            raise InputTypeError(
                f"the Dask frame's column {name!r} is in the names of folders, and its type is guessed from all of them, so that "
                'one row would decide how others are read. Pass dpmoments.EngineFiles(folder, engine="dask"), or state the '
                f'type: read_parquet(folder, dataset={{"partitioning": pyarrow.dataset.partitioning(pyarrow.schema([({name!r}, '
                'pyarrow.string())]), flavor="hive")})'
            )


def _guessed_keys(reader: Any) -> set[str]:
    """Return the columns from folder names whose type is not text."""
    info = reader._dataset_info
    if "ds" in info:
        keys, schema = set(info["partition_names"]), info["ds"].schema
    else:
        import pyarrow.dataset as ds

        keys, schema = set(), info["schema"]
        for wrapped in info["fragments"]:
            keys |= set(ds.get_partition_keys(getattr(wrapped, "fragment", wrapped).partition_expression))
    return {name for name in keys if not _is_text(schema.field(name).type)}


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _require_exact_integers(reader: Any, reading: Reading, only_columns: bool) -> None:
    """Raise TypeError if pandas could round a level or ID.

    A missing value turns a partition's integers into floats.
    """
    exact = {
        column.name: f"column {column.name!r} has levels"
        for column in reading.schema.columns
        if isinstance(column, Categorical) and any(_is_long(level) for level in column.levels)
    }
    if reading.privacy_unit is not None:
        exact[reading.privacy_unit.column] = f"the privacy unit's column {reading.privacy_unit.column!r} may have ids"
    known = {column.name for column in reading.schema.columns}
    for name in sorted(_rounded_columns(reader)):
        if name in exact:
            what = exact[name]
        elif exact and name not in known and not only_columns:
            what = f"{next(reversed(exact.values()))} (made, it may be, of {name!r})"
        else:
            continue
        raise InputTypeError(
            f"{what} of more than 53 bits, which pandas rounds if another cell of the partition is empty. "
            'Read Parquet files with dask.dataframe.read_parquet(..., dtype_backend="pyarrow"), or pass '
            'dpmoments.EngineFiles(path, engine="dask")'
        )


def _rounded_columns(reader: Any) -> set[str]:
    """Return the columns whose 64-bit integers pandas may convert to floats."""
    if _kind(reader) not in _PARQUET:
        return {name for name, dtype in reader._meta.dtypes.items() if dtype in (np.int64, np.uint64)}
    info = reader._dataset_info
    if (info["kwargs"] if "ds" in info else reader.kwargs or {}).get("dtype_backend"):
        return set()
    schema = info["ds"].schema if "ds" in info else info["schema"]
    return {
        name for name in reader.columns if name in schema.names and schema.field(name).type in (pa.int64(), pa.uint64())
    }


def _is_long(level: Any) -> bool:
    try:
        return abs(int(level)) >= _EXACT_IN_FLOAT64
    except ValueError:
        return False


def require_array_in_memory(graph: Mapping[Any, Any]) -> None:
    """Raise TypeError unless a graph starts only from NumPy arrays in memory."""
    for node in graph.values():
        if not node.dependencies and not isinstance(getattr(node, "value", None), np.ndarray):
            raise InputTypeError(
                "the Dask array holds Python objects and is not made of a NumPy array in memory: their types "
                "may be guessed in each block: use astype(float), or pass Parquet files"
            )


def storing_steps(expression: Any) -> list[str]:
    """Return the kinds of steps that combine parts of several partitions.

    They store rows between tasks.
    """
    from dask.dataframe.dask_expr._expr import Blockwise

    return sorted(
        {
            _kind(node)
            for node in _plan_nodes(expression)
            if not isinstance(node, Blockwise) and _kind(node) not in _KEEPING_PARTITIONS and _kind(node) != "Literal"
        }
    )


def columns_of_memory(expression: Any) -> Any:
    """Return the plan of a pandas table's columns without Dask's conversion to text.

    None for other plans.
    """
    if _kind(expression) in _IN_MEMORY and "pyarrow_strings_enabled" in expression._parameters:
        return expression.substitute_parameters({"pyarrow_strings_enabled": False})
    if _kind(expression) not in OF_COLUMNS:
        return None
    frame = columns_of_memory(expression.frame)
    if frame is None or _kind(expression) == "ArrowStringConversion":
        return frame
    return expression.substitute_parameters({"frame": frame})


def require_no_disk(expression: Any) -> None:
    """Raise TypeError if a step of a lowered plan writes rows to disk."""
    if found := sorted({_kind(node) for node in _plan_nodes(expression)} & set(_ON_DISK)):
        raise InputTypeError(
            f'the Dask frame\'s plan has a {found[0]}, which writes rows to a disk: use shuffle_method="tasks", or write the '
            'prepared table to Parquet files and pass dpmoments.EngineFiles(path, engine="dask")'
        )


def graph_of_nodes(collection: Any) -> dict[Any, Any]:
    """Return the graph of a collection, with all tasks in one form."""
    from dask._task_spec import convert_legacy_graph

    graph: dict[Any, Any] = convert_legacy_graph(dict(collection.__dask_graph__()))
    return graph


def require_no_transfer(graph: Mapping[Any, Any]) -> None:
    """Raise TypeError if a task of an array's graph passes blocks through files."""
    for node in graph.values():
        if str(getattr(getattr(node, "func", None), "__module__", "")).startswith(_TRANSFER):
            raise InputTypeError(
                'the Dask array is rechunked by files of workers (p2p): use rechunk(..., method="tasks"), or pass Parquet files'
            )
