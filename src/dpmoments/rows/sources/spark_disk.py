"""Spark frames whose rows the engine would write to a disk as it reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmoments.rows.sources.spark_scans import items, kind_of, selected
from dpmoments.rows.sources.spark_types import lineage

ENCRYPTION = "spark.io.encryption.enabled"
EVENT_LOG = "spark.eventLog.enabled"
_STREAMED = frozenset(
    f"{name}Exec"
    for name in (
        *(
            "BatchScan",
            "ExternalRDDScan",
            "FileSourceScan",
            "HiveTableScan",
            "LocalTableScan",
            "OneRowRelation",
            "RDDScan",
        ),
        *("Range", "RowDataSourceScan", "EmptyRelation", "ColumnarToRow", "RowToColumnar", "WholeStageCodegen"),
        *("Coalesce", "DeserializeToObject", "Expand", "Filter", "Generate", "LocalLimit", "MapElements", "MapInArrow"),
        *("MapInPandas", "MapPartitions", "Project", "PythonMapInArrow", "Sample", "SerializeFromObject", "Union"),
    )
) | {"InputAdapter"}
"""Steps of a plan that take rows one after the other, or batch by batch, and keep none."""


def rows_on_disk(frame: Any, names: Sequence[str]) -> str | None:
    """Return why reading a frame would leave something of its rows on a disk; None if it would not. No row is read.

    Steps that shuffle, broadcast, sort, aggregate or cache on a disk write rows into Spark's local folders in clear, unless the
    session encrypts its files. The event log holds exact numbers of rows, whether they are encrypted or not.

    Parameters
    ----------
    names : sequence of str
        The columns that are to be read.
    """
    session = frame.sparkSession
    if _is_set(session, EVENT_LOG):
        return (
            "Spark's event log is on, and would hold how many rows each step of the frame has: start the session with "
            f"{EVENT_LOG}=false, or write the table to Parquet files and pass these"
        )
    if _is_set(session, ENCRYPTION):
        return None
    step = _writing_step(selected(frame, names)._jdf.queryExecution().executedPlan())
    if step is None:
        return None
    return (
        f"the plan of the Spark frame has a step, {step}, that may write rows to a disk in clear: start the session with "
        f"{ENCRYPTION}=true, or write the table to Parquet files and pass these"
    )


def _is_set(session: Any, name: str) -> bool:
    """Return True if a setting of the session's context is true."""
    return str(session.sparkContext.getConf().get(name, "false")).casefold() == "true"


def _writing_step(plan: Any) -> str | None:
    """Return the name of a step that may write rows to a disk; None if there is none."""
    kind = kind_of(plan)
    if kind == "AdaptiveSparkPlanExec":
        return _writing_step(plan.initialPlan())  # what it would become is not known before it runs
    if kind == "InMemoryTableScanExec":
        builder = plan.relation().cacheBuilder()
        return "a cache on a disk" if builder.storageLevel().useDisk() else _writing_step(builder.cachedPlan())
    if kind == "RDDScanExec" and any(one.getStorageLevel().useDisk() for one in lineage(plan.rdd())):
        return "a cache on a disk"
    if kind not in _STREAMED:
        return kind.removesuffix("Exec")
    below = (*items(plan.children()), *items(plan.subqueries()))
    return next((step for step in map(_writing_step, below) if step is not None), None)
