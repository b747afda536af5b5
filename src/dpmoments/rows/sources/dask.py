"""Tables of Dask: DataFrames, arrays, and files that Dask's workers read.

The plan of a collection is checked before anything is read: its types must be declared, and no row stored between tasks. What
the check does not recognize is refused.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from graphlib import TopologicalSorter
from itertools import chain
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np

from dpmoments.base.errors import InputTypeError, listed
from dpmoments.base.table_libraries import nw, pa
from dpmoments.rows.sources.arrow import FileSource
from dpmoments.rows.sources.engine import (
    FAN_IN,
    EngineSource,
    FilePieces,
    JobOutcome,
    PartitionJob,
    PassProgress,
    Seal,
    require_installed,
    unquoted,
)
from dpmoments.rows.sources.memory import ArraySource, FrameSource, require_columns
from dpmoments.rows.sources.office import SeveralSource
from dpmoments.rows.sources.source import FAILED_QUERY, Reading, columns_of_skipped_nan, read_quietly
from dpmoments.rows.summary import Missing, blas_threads
from dpmoments.schema.columns import Categorical, Numeric

_OF_COLUMNS = ("ArrowStringConversion", "Projection")
"""Plan steps that leave rows and values unchanged: storage of text, selection of columns."""
_IN_MEMORY = ("FromPandas", "FromPandasDivisions", "Literal")
_PARQUET = ("ReadParquetPyarrowFS", "ReadParquetFSSpec")
_ORC_READER = ("dask.dataframe.io.orc.core", "_read_orc")
_KEEPING_PARTITIONS = (
    "Concat",
    "FromMap",
    "FromMapProjectable",
    "FusedIO",
    "FusedParquetIO",
    "Literal",
    "Partitions",
    "Repartition",
)
"""Plan steps that build a partition from whole other partitions."""
_LONG = re.compile(r"\s*[-+]?[\d_]{16,}\s*")
"""Text of an integer that float64 may round."""
_ON_DISK = ("DiskShuffle", "HashJoinP2P", "P2PShuffle")
_TRANSFER = ("distributed.shuffle.", "partd")


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


# The types of a frame's columns must be stated by its sources, and pandas must be able to hold every cell by itself.


def require_stated_types(plan: Any, simplified: Any, reading: Reading) -> None:
    """Raise TypeError unless all sources of a plan state types, and hold each cell by itself."""
    # Readers are looked at in the simplified plan, which knows the columns and filters that they get.
    unstated = map(_unstated_source, _plan_nodes(plan))
    behind = simplified
    while _kind(behind) in _OF_COLUMNS:
        behind = behind.frame
    readers = [node for node in _plan_nodes(simplified) if _kind(node) in _PARQUET or _is_orc(node)]
    changed = (_changed_by_others(reader, reading, only_columns=reader is behind) for reader in readers)
    source = next((one for one in chain(unstated, changed) if one is not None), None)
    if source is not None:
        raise InputTypeError(
            f"the Dask frame reads {source}, and one row could decide how pandas reads others of its partition. Pass "
            'the path, or dpmoments.EngineFiles(path, engine="dask"), which reads every cell by the schema; or write the '
            "table to Parquet files with stated types and pass dask.dataframe.read_parquet(path, "
            'dtype_backend="pyarrow")'
        )


def _unstated_source(node: Any) -> str | None:
    """Return the name of a plan's leaf, or of operands, without stated types; None if all have."""
    from dask.base import is_dask_collection

    operands: list[Any] = []
    for operand in node.operands:
        held = operand.values() if isinstance(operand, dict) else operand
        operands += held if isinstance(held, list | tuple) or isinstance(operand, dict) else [operand]
    if any(is_dask_collection(operand) and not _is_expression(operand) for operand in operands):
        return "delayed objects"
    if any(map(_is_expression, operands)):
        return None
    kind = _kind(node)
    stated = kind in (*_IN_MEMORY, *_PARQUET) or _is_orc(node)
    stated |= kind == "FromArray" and isinstance(node.operand("frame"), np.ndarray)
    return None if stated and type(node).__module__.startswith("dask.dataframe.") else f"the source {kind}"


def _is_orc(node: Any) -> bool:
    if not _kind(node).startswith("FromMap"):
        return False
    reader = node.operand("func")
    return (getattr(reader, "__module__", ""), getattr(reader, "__name__", "")) == _ORC_READER


def _changed_by_others(reader: Any, reading: Reading, *, only_columns: bool) -> str | None:
    """Return what a Parquet or ORC reader reads so that one cell depends on others, or None."""
    known = reading.schema.columns_by_source
    exact = {
        name
        for name, column in known.items()
        if isinstance(column, Categorical)
        and (column.finds_levels or any(map(_LONG.fullmatch, map(str, column.levels))))
    }
    if reading.privacy_unit is not None:
        exact.add(reading.privacy_unit.column)
    # 64-bit integers that pandas may convert to floats.
    if _kind(reader) not in _PARQUET:
        rounded = {name for name, dtype in reader._meta.dtypes.items() if dtype in (np.int64, np.uint64)}
    else:
        info, schema = reader._dataset_info, _parquet_schema(reader)
        by_arrow = (info["kwargs"] if "ds" in info else reader.kwargs or {}).get("dtype_backend")
        held = {name: schema.field(name).type for name in reader.columns if name in schema.names}
        rounded = set() if by_arrow else {name for name, kind in held.items() if kind in (pa.int64(), pa.uint64())}
    # A missing value turns a partition's integers into floats.
    if exact & rounded or (exact and not only_columns and rounded - set(known)):
        return "levels or ids from 64-bit integers, which pandas rounds if another cell of the partition is empty"
    if _kind(reader) not in _PARQUET:
        return None
    filters = "" if reader.operand("filters") is None else str(reader.operand("filters"))
    if columns := columns_of_skipped_nan(filters, _parquet_schema(reader)):
        # Groups of rows are skipped by their least and largest number, which leave NaN out.
        return f"Parquet files with filters= that negate a comparison of {listed(columns)}"
    for name in sorted(_guessed_keys(reader)):
        is_number = only_columns and isinstance(known.get(name), Numeric)  # the same whatever its type
        if (name in reader.columns and not is_number) or name in filters:
            return f"the column '{name}' from the names of folders, whose type is guessed from all of them"
    return None


def _parquet_schema(reader: Any) -> Any:
    info = reader._dataset_info
    return info["ds"].schema if "ds" in info else info["schema"]


def _guessed_keys(reader: Any) -> set[str]:
    """Return the columns from folder names whose type is not text."""
    info = reader._dataset_info
    if "ds" in info:
        keys = set(info["partition_names"])
    else:
        import pyarrow.dataset as ds

        fragments = (getattr(wrapped, "fragment", wrapped) for wrapped in info["fragments"])
        keys = {name for one in fragments for name in ds.get_partition_keys(one.partition_expression)}
    types = {name: _parquet_schema(reader).field(name).type for name in keys}
    held = {name: kind.value_type if pa.types.is_dictionary(kind) else kind for name, kind in types.items()}
    return {name for name, kind in held.items() if not (pa.types.is_string(kind) or pa.types.is_large_string(kind))}


def columns_of_memory(expression: Any) -> Any:
    """Return the plan of a pandas table's columns without Dask's conversion to text, or None."""
    if _kind(expression) in _IN_MEMORY and "pyarrow_strings_enabled" in expression._parameters:
        return expression.substitute_parameters({"pyarrow_strings_enabled": False})
    if _kind(expression) not in _OF_COLUMNS:
        return None
    frame = columns_of_memory(expression.frame)
    if frame is None or _kind(expression) == "ArrowStringConversion":
        return frame
    return expression.substitute_parameters({"frame": frame})


# One task for each partition of a Dask collection: it reads the partition, works on it, and returns sealed bytes.


def graph_of_nodes(collection: Any) -> dict[Any, Any]:
    """Return the graph of a collection, with all tasks in one form."""
    from dask._task_spec import convert_legacy_graph

    graph: dict[Any, Any] = convert_legacy_graph(dict(collection.__dask_graph__()))
    return graph


@dataclass(frozen=True, eq=False, repr=False)
class CutGraph:
    """Dask graph cut into one task per partition; ``stored`` steps are kept between tasks."""

    partitions: Sequence[Any]
    stored: Mapping[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Mapping[Hashable, Any], outputs: Sequence[Hashable]) -> CutGraph:
        """Split a graph whose ``outputs`` are the partitions' keys."""
        from dask._task_spec import Alias, DataNode, Task

        in_order = list(TopologicalSorter({key: node.dependencies for key, node in graph.items()}).static_order())
        if any(key not in graph for key in in_order):
            raise InputTypeError(
                "the Dask array is kept on a cluster, whose workers may write it to their disks: pass the array "
                "before persist(), or Parquet files"
            )
        needed_by: dict[Hashable, set[int]] = {key: set() for key in in_order}
        for number, output in enumerate(outputs):
            needed_by[output].add(number)
        for key in reversed(in_order):
            # What two partitions need is stored, and so is all that it is made of: two is enough to say so.
            for needed in graph[key].dependencies:
                needed_by[needed] |= set(sorted(needed_by[key])[:2])
        values = {key for key in in_order if type(graph[key]) is DataNode}  # these are in the graph, and no results
        stored = {key for key in in_order if len(needed_by[key]) > 1 and key not in values}
        stored |= {needed for key in stored for needed in graph[key].dependencies}
        own: list[list[Hashable]] = [[] for _ in outputs]
        for key in in_order:
            if len(needed_by[key]) == 1:
                own[min(needed_by[key])].append(key)
        partitions = []
        for output, keys in zip(outputs, own, strict=True):
            needed = {output}.union(*(graph[key].dependencies for key in keys)) - set(keys)
            steps = [graph[key] for key in (*(needed & values), *keys)]
            partitions.append(Task.fuse(*steps) if steps else Alias("partition", output))
        return cls(partitions, {key: graph[key] for key in in_order if key in stored})


def sealed(seal: Seal | None, value: Any) -> Any:
    """Encrypt a value; without a seal, if no result leaves memory, return it unchanged."""
    import cloudpickle

    return value if seal is None else seal.sealed(cloudpickle.dumps(value))


def opened(seal: Seal | None, value: Any) -> Any:
    """Decrypt a value."""
    import cloudpickle

    return value if seal is None else cloudpickle.loads(seal.opened(value))


@lru_cache(maxsize=1)
def _opened_job(key: bytes, value: bytes) -> Any:
    return opened(Seal(key), value)


def opened_job(seal: Seal | None, value: Any) -> PartitionJob:
    """Decrypt a job, once for all tasks of a pass in a process."""
    job: PartitionJob = value if seal is None else _opened_job(seal.key, value)
    return job


def inputs_of(task: Any) -> list[Hashable]:
    """Return the keys of the stored results that a task needs, in one order."""
    return sorted(task.dependencies, key=str)


def partition_outcome(seal: Seal | None, task: Any, number: int, job: Any, *given: Any) -> Any:
    """Read a partition and work on it."""
    # Errors are results, so that no worker logs what they quote.
    work = opened_job(seal, job)
    try:
        partition = task(dict(zip(inputs_of(task), given, strict=True)))
    except Exception as error:
        return sealed(seal, JobOutcome(frozenset([number]), None, failure=unquoted(error)))
    return sealed(seal, work.outcome(partition, number))


def merged_outcome(seal: Seal | None, job: Any, outcomes: Sequence[Any]) -> Any:
    return sealed(seal, opened_job(seal, job).merged([opened(seal, outcome) for outcome in outcomes]))


def is_of_dask(data: Any) -> bool:
    """Return True for a Dask collection, without importing Dask."""
    return type(data).__module__.split(".")[0] == "dask" and hasattr(data, "__dask_graph__")


@dataclass(frozen=True, eq=False, repr=False)
class DaskSource(EngineSource):
    """Table whose partitions are Dask tasks."""

    @abstractmethod
    def cut(self) -> CutGraph:
        """Return the tasks of its partitions."""

    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[JobOutcome, int]:
        import dask
        from dask.callbacks import Callback
        from dask.delayed import Delayed
        from dask.highlevelgraph import HighLevelGraph

        client, in_memory = _scheduler()
        cut = self.cut()
        if cut.stored:
            _require_kept_in_memory(self.where, "several of its partitions contain the same rows")
        if not cut.partitions:
            return job.merged([]), 0
        seal = None if in_memory else Seal()
        # One task for what all of them share, which may be large; names are random, so that no pass is taken for another.
        shared = dask.delayed(sealed(seal, job), pure=False, traverse=False)
        name = f"stored-{uuid4()}"
        graph = HighLevelGraph.from_collections(name, dict(cut.stored))
        leaves = [
            dask.delayed(partial(partition_outcome, seal, task, number), pure=False, traverse=False)(
                shared, *(Delayed(key, graph, layer=name) for key in inputs_of(task))
            )
            for number, task in enumerate(cut.partitions)
        ]
        merge = dask.delayed(partial(merged_outcome, seal), pure=False, traverse=False)
        level = leaves
        while len(level) > 1:
            level = [merge(shared, level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)]
        if client is not None:
            return opened(seal, _on_cluster(client, leaves, level[0], progress)), len(leaves)

        def report(_key: Any, _value: Any, _graph: Any, state: Any, _worker: Any) -> None:
            done = len(state["finished"])
            progress.tell(done / (done + sum(len(state[kind]) for kind in ("ready", "waiting", "running")) + 1))

        with blas_threads(1), Callback(posttask=report):
            (result,) = dask.compute(level[0])
        return opened(seal, result), len(leaves)


@dataclass(frozen=True, eq=False, repr=False)
class _DaskFrameSource(DaskSource):
    """Rows of a Dask DataFrame: only the columns that are read leave the scan."""

    frame: Any

    where: ClassVar[str] = "the Dask frame"

    def __post_init__(self) -> None:
        require_columns(list(self.frame.columns), self.reading.names, self.where)
        empty = read_quietly(lambda: self.frame._meta[list(self.reading.names)], self.where, FAILED_QUERY)
        FrameSource(self.reading, nw.from_native(empty)).require_types(nw.from_native(empty))

    def require_read_row_by_row(self) -> None:
        """Raise TypeError unless the plan shows declared types and stores no row between tasks."""
        from dask.dataframe.dask_expr._expr import Blockwise

        plan = self.frame.expr
        simplified = read_quietly(lambda: self._selected.expr.simplify(), self.where, FAILED_QUERY)
        require_stated_types(plan, simplified, self.reading)
        # Steps that combine parts of several partitions store rows between tasks.
        nodes = (node for node in _plan_nodes(plan) if not isinstance(node, Blockwise))
        if steps := sorted({kind for node in nodes if (kind := _kind(node)) not in _KEEPING_PARTITIONS}):
            _require_kept_in_memory(self.where, f"its plan has the steps {', '.join(steps)}")

    @property
    def _selected(self) -> Any:
        """Frame of the columns that are read; values of a table in memory are not converted to text."""
        from dask.dataframe.dask_expr import new_collection

        plan = columns_of_memory(self.frame.expr)
        frame = self.frame if plan is None else new_collection(plan)
        return frame[list(self.reading.names)]

    def cut(self) -> CutGraph:
        import dask

        # A shuffle of no stated method would write to a disk.
        with dask.config.set({"dataframe.shuffle.method": "tasks"}):
            plan = self._selected.optimize()
            if steps := sorted({_kind(node) for node in _plan_nodes(plan.expr)} & set(_ON_DISK)):
                raise InputTypeError(
                    f'the Dask frame\'s plan has a {steps[0]}, which writes rows to a disk: use shuffle_method="tasks", '
                    "or write the prepared table to Parquet files and pass "
                    'dpmoments.EngineFiles(path, engine="dask")'
                )
            return CutGraph.of(graph_of_nodes(plan), plan.__dask_keys__())


@dataclass(frozen=True, eq=False, repr=False)
class _DaskArraySource(DaskSource):
    """Rows of a two-dimensional Dask array with the schema's table columns, in order."""

    array: Any

    where: ClassVar[str] = "the Dask array"

    def __post_init__(self) -> None:
        _ = self._empty
        if self.array.dtype.kind not in "biuf":
            for node in graph_of_nodes(self.array).values():
                if not node.dependencies and not isinstance(getattr(node, "value", None), np.ndarray):
                    raise InputTypeError(
                        "the Dask array holds Python objects and is not made of a NumPy array in memory: their types "
                        "may be guessed in each block: use astype(float), or pass Parquet files"
                    )

    @property
    def _empty(self) -> ArraySource:
        """The table without rows: a check that refuses an array refuses this one."""
        array = self.array
        shape = (0, *(int(size) if size == size else 0 for size in array.shape[1:])) if array.ndim else ()
        return ArraySource(self.reading, np.empty(shape, array.dtype))

    @property
    def n_rows(self) -> int | None:
        size = self.array.shape[0]
        return int(size) if size == size else None  # NaN where chunks are of unknown size

    @property
    def missing(self) -> Missing:
        return self._empty.missing

    def cut(self) -> CutGraph:
        import dask

        (plan,) = dask.optimize(self.array.rechunk({1: -1}, method="tasks"))
        graph = graph_of_nodes(plan)
        for node in graph.values():
            if str(getattr(getattr(node, "func", None), "__module__", "")).startswith(_TRANSFER):
                raise InputTypeError(
                    'the Dask array is rechunked by files of workers (p2p): use rechunk(..., method="tasks"), or pass '
                    "Parquet files"
                )
        return CutGraph.of(graph, [key for keys in plan.__dask_keys__() for key in keys])


@dataclass(frozen=True, eq=False, repr=False)
class _DaskFilesSource(FilePieces, DaskSource):
    """Rows of files, in pieces that Dask's workers read as this process would."""

    def cut(self) -> CutGraph:
        from dask._task_spec import DataNode

        return CutGraph([DataNode("partition", piece) for piece in self.pieces])


def open_dask(data: Any, reading: Reading) -> DaskSource:
    """Return the source of a Dask collection."""
    if hasattr(data, "to_delayed") and hasattr(data, "columns") and getattr(data, "ndim", 0) == 2:
        source = _DaskFrameSource(reading, data)
        source.require_read_row_by_row()
        return source
    if hasattr(data, "rechunk") and hasattr(data, "map_blocks"):
        if reading.privacy_unit is not None:
            raise InputTypeError(
                f"an array has no column '{reading.privacy_unit.column}' in addition to the schema's: pass a Dask "
                "DataFrame, or files"
            )
        return _DaskArraySource(replace(reading, array_type=np.dtype(data.dtype)), data)
    raise InputTypeError(
        f"cannot read a table from Dask's {type(data).__name__}: pass a Dask DataFrame or a two-dimensional Dask array"
    )


def open_files_on_dask(files: FileSource | SeveralSource) -> DaskSource:
    """Return the source of files that Dask's workers read."""
    require_installed("dask")
    return _DaskFilesSource(files.reading, tuple(files.pieces()), files.n_rows)


def _scheduler() -> tuple[Any, bool]:
    """Return the client of the cluster that runs tasks, or None."""
    # Also True if this machine runs them.
    import dask
    from dask.base import get_scheduler, named_schedulers

    run = get_scheduler(collections=[dask.delayed(None)])
    client = getattr(run, "__self__", None)
    return (client if hasattr(client, "compute") else None), any(run is known for known in named_schedulers.values())


def _require_kept_in_memory(where: str, why: str) -> None:
    """Raise TypeError if the scheduler may write results to disk."""
    client, in_memory = _scheduler()
    kept = {} if in_memory or client is None else client.run(lambda dask_worker: type(dask_worker.data) is dict)
    if in_memory or (kept and all(value is True for value in kept.values())):
        return
    raise InputTypeError(
        f"{where} cannot be read on this cluster: {why}, so that workers keep rows between tasks and may write them to "
        'their disks. Write the prepared table to Parquet files and pass dpmoments.EngineFiles(path, engine="dask"); or '
        'use threads, dask.config.set(scheduler="threads"); or start every worker with '
        "distributed.worker.memory.target and distributed.worker.memory.spill set to false"
    )


def _on_cluster(client: Any, leaves: Sequence[Any], root: Any, progress: PassProgress) -> bytes:
    """Compute the root of the tree on a cluster."""
    # However the pass ends, none of its tasks continues.
    from distributed import as_completed

    *waiting, last = client.compute([*leaves, root])
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            progress.tell(done / (len(leaves) + 1))
            if future.status != "finished":
                break  # the root says why
            if future.key != last.key:
                future.release()  # the tree keeps what it has yet to merge
        result: bytes = last.result()
    except BaseException:
        client.cancel([*waiting, last])
        raise
    last.release()
    return result
