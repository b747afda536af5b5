"""Spark frames that are nothing but Parquet files: these are read as files, without a detour over the JVM's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dpmoments.foundation.table_libraries import pa, pq

_SAME_IN_BOTH = {
    "double": "double",
    "float": "float",
    "long": "int64",
    "integer": "int32",
    "short": "int16",
    "byte": "int8",
    "boolean": "bool",
    "string": "string",
}
"""Types of Spark that Parquet holds without a conversion, and what Arrow calls the type it reads the same; dates may not be."""
_OTHER_READING = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
"""Settings under which Spark leaves rows out, or finds columns by something else than their names."""


def scanned_files(frame: Any, names: Sequence[str]) -> tuple[Path, ...] | None:
    """The files whose rows are the rows of a frame, each once; None unless its optimised plan says so beyond doubt.

    Parameters
    ----------
    names : sequence of str
        The columns that are to be read.

    Returns
    -------
    tuple of Path or None
        Local Parquet files, all of which hold the columns, in the types that the frame has. None where the plan has any step
        more, reads from a cache or a catalog, or with options, or where types are converted as they are read.
    """
    types = {field.name: _SAME_IN_BOTH.get(field.dataType.typeName()) for field in frame.schema.fields}
    plan = selected(frame, names)._jdf.queryExecution().optimizedPlan()
    if kind_of(plan) == "Project":
        kept = plan.projectList()
        if any(kind_of(kept.apply(index)) != "AttributeReference" for index in range(kept.size())):
            return None  # a name for another column, or a computed one
        plan = plan.child()
    if kind_of(plan) != "LogicalRelation" or any(types[name] is None for name in names):
        return None
    relation = plan.relation()
    if kind_of(relation) != "HadoopFsRelation" or not _reads_everything(frame.sparkSession, relation):
        return None
    indices = [urlsplit(str(index)) for index in relation.location().inputFiles()]
    if not indices or any(index.scheme != "file" or index.netloc for index in indices):
        return None
    paths = tuple(Path(unquote(index.path)) for index in indices)
    return paths if all(_holds(path, names, types) for path in paths) else None


def selected(frame: Any, names: Sequence[str]) -> Any:
    """Return the frame of these columns alone."""
    return frame.select(*("`" + name.replace("`", "``") + "`" for name in names))


def items(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def kind_of(node: Any) -> str:
    """Return the name of a JVM object's class, without its package."""
    return str(node.getClass().getSimpleName())


def _reads_everything(session: Any, relation: Any) -> bool:
    """Whether every row of the files it lists is read, as it is."""
    options = relation.options()
    plain = options.isEmpty() or (options.size() == 1 and options.contains("path"))
    plain &= not len(
        relation.partitionSchema().fieldNames()
    )  # a key in folder names comes before a column of that name
    of_files = (
        kind_of(relation.fileFormat()) == "ParquetFileFormat" and kind_of(relation.location()) == "InMemoryFileIndex"
    )
    return plain and of_files and all(session.conf.get(name) == "false" for name in _OTHER_READING)


def _holds(path: Path, names: Sequence[str], types: Mapping[str, Any]) -> bool:
    held = pq.read_schema(path)
    alike = [name.casefold() for name in held.names]  # Spark's names are the same in capitals
    return all(
        alike.count(name.casefold()) == 1
        and name in held.names
        and held.field(name).type == pa.type_for_alias(types[name])
        for name in names
    )
