"""Tables of Dask: DataFrames, arrays, and files that Dask's workers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmoments.privacy.privacy_unit import PrivacyUnit
from dpmoments.rows.blas import single_threaded_blas
from dpmoments.rows.cells import Missing
from dpmoments.rows.sources.arrow import FileSource, ParquetSource
from dpmoments.rows.sources.dask_scans import scanned_files
from dpmoments.rows.sources.engine import FAN_IN, EngineSource, PassProgress, require_installed
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import ArraySource, require_columns
from dpmoments.rows.sources.partitions import Outcome, PartitionJob, Reading
from dpmoments.rows.sources.reading import FAILED_QUERY, read_quietly
from dpmoments.schema.schema import Schema
from dpmoments.table_libraries import nw

__all__ = ["is_of_dask", "open_dask", "open_files_on_dask"]


def is_of_dask(data: Any) -> bool:
    """Whether it is a collection of Dask; nothing is imported for it."""
    return type(data).__module__.split(".")[0] == "dask" and hasattr(data, "__dask_graph__")


@dataclass(frozen=True, eq=False, repr=False)
class DaskSource(EngineSource):
    """A table whose partitions are tasks of Dask."""

    def partitions(self) -> Sequence[Any]:
        """Each a delayed object, or a plain value."""
        raise NotImplementedError

    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[Outcome, int] | None:
        import dask
        from dask.base import get_scheduler

        partitions = self.partitions()
        if not partitions:
            return None
        # One task for what all of them share, which may be large; names are random, so that no pass is taken for another.
        shared = dask.delayed(job, pure=False, traverse=False)
        run, merge = dask.delayed(_outcome, pure=False), dask.delayed(_merged, pure=False)
        leaves = [run(shared, partition, number) for number, partition in enumerate(partitions)]
        level = leaves
        while len(level) > 1:
            level = [merge(shared, level[start : start + FAN_IN]) for start in range(0, len(level), FAN_IN)]
        client = getattr(get_scheduler(collections=level), "__self__", None)
        if client is not None and hasattr(client, "compute"):
            return _on_cluster(client, leaves, level[0], progress), len(leaves)
        with single_threaded_blas(), _watched(progress):
            (found,) = dask.compute(level[0])
        return found, len(leaves)


@dataclass(frozen=True, eq=False, repr=False)
class DaskFrameSource(DaskSource):
    """Rows of a Dask DataFrame: of each partition the columns that are read, and no others, leave the scan."""

    frame: Any

    def __post_init__(self) -> None:
        require_columns(list(self.frame.columns), self.reading.names, self.where)
        empty = read_quietly(lambda: self.frame._meta[list(self.reading.names)], self.where, FAILED_QUERY)
        self.reading.opened(empty).encode(
            nw.from_native(empty)
        )  # refuses types that no schema reads, before a row is read

    @property
    def where(self) -> str:
        return "the Dask frame"

    @property
    def fingerprinted(self) -> bool:
        return True

    def partitions(self) -> Sequence[Any]:
        delayed: Sequence[Any] = self.frame[list(self.reading.names)].to_delayed()
        return delayed


@dataclass(frozen=True, eq=False, repr=False)
class DaskArraySource(DaskSource):
    """Rows of a two-dimensional Dask array, its columns those of the schema that a table has, in their order."""

    array: Any

    def __post_init__(self) -> None:
        _ = self._empty

    @property
    def _empty(self) -> ArraySource:
        """The same table without rows: what refuses an array refuses this one."""
        array = self.array
        shape = (0, *(int(size) if size == size else 0 for size in array.shape[1:])) if array.ndim else ()
        return ArraySource(self.reading.schema, self.reading.mean, np.empty(shape, array.dtype))

    @property
    def where(self) -> str:
        return "the Dask array"

    @property
    def fingerprinted(self) -> bool:
        return True

    @property
    def n_rows(self) -> int | None:
        size = self.array.shape[0]
        return int(size) if size == size else None  # NaN where chunks are of unknown size

    @property
    def missing(self) -> Missing:
        return self._empty.missing

    def partitions(self) -> Sequence[Any]:
        delayed: Sequence[Any] = self.array.rechunk({1: -1}).to_delayed().ravel().tolist()
        return delayed


@dataclass(frozen=True, eq=False, repr=False)
class DaskFilesSource(DaskSource):
    """Rows of files, in pieces that Dask's workers read as this process would."""

    pieces: tuple[LocalSource[Any], ...]
    known_rows: int | None

    @property
    def where(self) -> str:
        return "the table"

    @property
    def fingerprinted(self) -> bool:
        return False  # a local pass trusts files, too

    @property
    def n_rows(self) -> int | None:
        return self.known_rows

    def partitions(self) -> Sequence[Any]:
        import dask

        return [dask.delayed(piece, pure=False, traverse=False) for piece in self.pieces]


def open_dask(data: Any, schema: Schema, mean: bool, privacy_unit: PrivacyUnit | None) -> DaskSource:
    """The source for a collection of Dask.

    Raises
    ------
    TypeError, ValueError
        If it is no table, or does not have the schema's columns.
    """
    reading = Reading(schema, mean, privacy_unit)
    if hasattr(data, "to_delayed") and hasattr(data, "columns") and getattr(data, "ndim", 0) == 2:
        return _files_or_frame(DaskFrameSource(reading, data))
    if hasattr(data, "rechunk") and hasattr(data, "map_blocks"):
        if privacy_unit is not None:
            raise TypeError(
                f"an array has no column {privacy_unit.column!r} beside the schema's: pass a Dask DataFrame, or files"
            )
        return DaskArraySource(replace(reading, array_type=np.dtype(data.dtype)), data)
    raise TypeError(
        f"cannot read a table from Dask's {type(data).__name__}: pass a Dask DataFrame or a two-dimensional Dask array"
    )


def _files_or_frame(source: DaskFrameSource) -> DaskSource:
    """The files that a frame is, where it is no more; else the frame."""
    reading = source.reading
    paths = read_quietly(lambda: scanned_files(source.frame, reading.names), source.where, FAILED_QUERY)
    if paths is None:
        return source
    return _of_files(ParquetSource(reading.schema, reading.mean, paths, privacy_unit=reading.privacy_unit))


def _of_files(files: FileSource) -> DaskFilesSource:
    reading = Reading(files.schema, files.mean, files.privacy_unit)
    return DaskFilesSource(reading, tuple(files.pieces()), files.n_rows)


def open_files_on_dask(files: FileSource) -> DaskSource:
    """The source of files that Dask's workers read.

    Raises
    ------
    ModuleNotFoundError
        If Dask is not installed.
    """
    require_installed("dask")
    return _of_files(files)


def _outcome(job: PartitionJob, partition: Any, number: int) -> Outcome:
    return job.outcome(partition, number)


def _merged(job: PartitionJob, outcomes: Sequence[Outcome]) -> Outcome:
    return job.merged(outcomes)


def _on_cluster(client: Any, leaves: Sequence[Any], root: Any, progress: PassProgress) -> Outcome:
    """Of the root of the tree, on a cluster; whatever ends the pass, nothing of it goes on there."""
    from distributed import as_completed

    *waiting, last = client.compute([*leaves, root])
    try:
        for done, future in enumerate(as_completed(waiting), 1):
            progress.tell(done / (len(leaves) + 1))
            if future.status != "finished":
                break  # the root says why
            if future.key != last.key:
                future.release()  # the tree keeps what it has yet to merge
        found: Outcome = last.result()
    except BaseException:
        client.cancel([*waiting, last])
        raise
    last.release()
    return found


def _watched(progress: PassProgress) -> Any:
    from dask.callbacks import Callback

    def told(_key: Any, _value: Any, _graph: Any, state: Any, _worker: Any) -> None:
        done = len(state["finished"])
        progress.tell(done / (done + sum(len(state[kind]) for kind in ("ready", "waiting", "running")) + 1))

    return Callback(posttask=told)
