"""Check that a Spark frame's column types are declared.

Of inferred types, one row would decide how others are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dpmoments.foundation.table_libraries import pa, pq

# Spark frames that are nothing but Parquet files: these are read as files, without a detour over the JVM's rows.

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
"""Spark types that Parquet holds without conversion, and the same type's Arrow name.

Dates may differ.
"""
_OTHER_READING = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
"""Settings that make Spark skip rows, or match columns by something other than their names."""


def scanned_files(frame: Any, names: Sequence[str]) -> tuple[Path, ...] | None:
    """Return the local Parquet files whose rows are exactly those of a frame.

    None unless its optimized plan proves it.

    All of the files hold the columns in the frame's types. None if the plan has further steps, reads from a cache or a
    catalog or with options, or converts types.
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
    return frame.select(*("`" + name.replace("`", "``") + "`" for name in names))


def items(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]


def kind_of(node: Any) -> str:
    """Return the class name of a JVM object, without its package."""
    return str(node.getClass().getSimpleName())


def _reads_everything(session: Any, relation: Any) -> bool:
    """Return True if every row of the listed files is read unchanged."""
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


_SPARK = "org.apache.spark.sql."
_DATASOURCES = f"{_SPARK}execution.datasources."
_JDBC_TABLE = f"{_DATASOURCES}v2.jdbc.JDBCTable"
_LEAVES = frozenset(
    [
        *(f"{_SPARK}catalyst.plans.logical.{name}" for name in ("LocalRelation", "OneRowRelation", "Range")),
        *(
            f"{_SPARK}catalyst.plans.logical.{name}" for name in ("CTERelationRef", "UnionLoopRef")
        ),  # of a visible child
        f"{_SPARK}catalyst.catalog.HiveTableRelation",
    ]
)
"""Plan leaves that read no file whose types Spark might infer."""
_DECLARED = frozenset(
    [
        *(
            f"{_DATASOURCES}{name}"
            for name in ("parquet.ParquetFileFormat", "orc.OrcFileFormat", "text.TextFileFormat")
        ),
        *(f"{_DATASOURCES}v2.{name}" for name in ("parquet.ParquetTable", "orc.OrcTable", "text.TextTable")),
        f"{_DATASOURCES}jdbc.JDBCRelation",
        _JDBC_TABLE,
        *(f"{_SPARK}{name}" for name in ("hive.orc.OrcFileFormat", "avro.AvroFileFormat", "v2.avro.AvroTable")),
    ]
)
"""Formats and relations that store the types of their columns."""
_DECLARED_WITH_KEYS = ("org.apache.spark.sql.delta.", "org.apache.iceberg.spark.")
"""Packages of table formats, which also declare the types of partition columns."""
_CSV = frozenset([f"{_DATASOURCES}csv.CSVFileFormat", f"{_DATASOURCES}v2.csv.CSVTable"])
_INFERRED = frozenset(
    [f"{_DATASOURCES}{name}" for name in ("json.JsonFileFormat", "v2.json.JsonTable", "xml.XmlFileFormat")]
)
"""Formats whose columns Spark infers, unless it is given a schema."""
_RDDS = frozenset(
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
"""RDDs of data that this process gave to Spark.

Files, queries, shuffles and checkpoints use others.
"""
_PASSING = frozenset(
    ["Filter", "GlobalLimit", "Join", "LocalLimit", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort"]
    + ["SubqueryAlias", "View"]
)
"""Nodes that use the columns of their expressions and pass the others on."""
_REMEDY = "give the types, spark.read.schema('age double, region string'), or pass CSV files as EngineFiles(path, engine='spark')"
_ONE_ROW = "and one row would decide how others are read"


@dataclass(frozen=True)
class _FileScan:
    """Facts of a file scan in a plan."""

    format: str
    options: Mapping[str, str]
    in_catalog: bool
    schema: frozenset[str] | None
    keys: Mapping[int, str]

    @property
    def problem(self) -> str | None:
        """Reason why its types are not known to be declared, or None."""
        if _declares_types(self.format):
            return None
        if self.format not in _CSV | _INFERRED:
            return _unknown(self.format)
        name = "CSV" if self.format in _CSV else "XML" if "xml" in self.format else "JSON"
        if self.in_catalog:
            return (
                f"the Spark frame reads a table of {name} files from a catalog, which does not show that its types were "
                f"declared rather than inferred: copy it to a table of Parquet files with stated types, or {_REMEDY}"
            )
        if self.options.get("mode", "").casefold() == "failfast":
            return (
                f"the Spark frame reads {name} files with mode='FAILFAST', which stops every pass at a value of "
                f"another type: use mode='PERMISSIVE', the default, which makes it missing"
            )
        if self.schema is not None:
            return None
        if self.format in _INFERRED or self.options.get("inferschema", "false").casefold() != "false":
            return (
                f"the Spark frame reads {name} files, whose types Spark infers from their cells, {_ONE_ROW}: {_REMEDY}"
            )
        if self.options.get("header", "false").casefold() != "true":
            return (
                "the Spark frame reads CSV files without a header line, whose first row decides how many columns there are: "
                f"say header=True where they have one, or {_REMEDY}"
            )
        return None

    @property
    def inferred_keys(self) -> dict[int, str]:
        """Columns from folder names whose types Spark inferred from all of them."""
        if self.in_catalog or self.format.startswith(_DECLARED_WITH_KEYS):
            return {}
        return {number: name for number, name in self.keys.items() if name.casefold() not in (self.schema or ())}


def _declares_types(class_name: str) -> bool:
    """Return True if a format, relation or table of this class stores its columns' types."""
    return class_name in _DECLARED or class_name.startswith(_DECLARED_WITH_KEYS)


def undeclared_types(frame: Any, names: Sequence[str]) -> str | None:
    """Return why the types of a frame's columns are not known to be declared; None if they are.

    Reads no row.
    """
    plan = selected(frame, names)._jdf.queryExecution().analyzed()
    subqueries = items(plan.subqueriesAll())
    leaves = [leaf for one in (plan, *subqueries) for leaf in items(one.collectLeaves())]
    scans = []
    for leaf in leaves:
        name = str(leaf.getClass().getName())
        if name in _LEAVES:
            continue
        if name == f"{_SPARK}execution.LogicalRDD":
            if not _in_memory(leaf.rdd()):
                return (
                    "the Spark frame is made of an RDD, a checkpoint or a query that hides where its types come from: pass the "
                    "frame that it was made of, or write it to Parquet files with stated types and pass these"
                )
            continue
        scan = _scan_of(leaf, name)
        if problem := scan.problem:
            return problem
        scans.append(scan)
    keys = {number: name for scan in scans for number, name in scan.inferred_keys.items()}
    if not keys:
        return None
    used = set(keys) if subqueries else _used_attributes(plan, _ids(plan.output()))
    if named := sorted({keys[number] for number in used & set(keys)}):
        return (
            f"the Spark frame uses the column {', '.join(map(repr, named))} from the names of folders, whose type Spark infers "
            f"from all of them, {_ONE_ROW}: name it in the schema of the reader, spark.read.schema('{named[0]} string, ...')"
        )
    return None


def _in_memory(rdd: Any) -> bool:
    """Return True if an RDD consists of this process's data, transformed row by row."""
    return all(str(one.getClass().getName()) in _RDDS for one in lineage(rdd))


def lineage(rdd: Any) -> Iterable[Any]:
    """Yield an RDD and all its ancestors."""
    waiting, seen = [rdd], set()
    while waiting:
        one = waiting.pop()
        if (number := one.id()) not in seen:
            seen.add(number)
            yield one
            waiting += [dependency.rdd() for dependency in items(one.dependencies())]


def _used_attributes(plan: Any, wanted: set[int]) -> set[int]:
    """Return the IDs of the leaf attributes that a plan uses for attributes of its result."""
    children = items(plan.children())
    if not children:
        return wanted
    kind = kind_of(plan)
    if kind == "Project":
        kept = (one for one in items(plan.projectList()) if one.exprId().id() in wanted)
        needed = set().union(*(_ids(one.references().toSeq()) for one in kept))
    elif kind in _PASSING:
        needed = wanted | _ids(plan.references().toSeq())
    elif kind == "Union":
        indices = [index for index, one in enumerate(items(plan.output())) if one.exprId().id() in wanted]
        outputs = [items(child.output()) for child in children]
        needed = {output[index].exprId().id() for output in outputs for index in indices}
    else:  # all that it is given
        needed = set().union(_ids(plan.references().toSeq()), *(_ids(child.output()) for child in children))
    return set().union(*(_used_attributes(child, needed) for child in children))


def _ids(attributes: Any) -> set[int]:
    return {one.exprId().id() for one in items(attributes)}


def _scan_of(leaf: Any, name: str) -> _FileScan:
    """Return the facts of a leaf; only its class if it reads no files."""
    if name == f"{_DATASOURCES}LogicalRelation":
        relation = leaf.relation()
        class_name = str(relation.getClass().getName())
        if class_name != f"{_DATASOURCES}HadoopFsRelation":
            return _FileScan(class_name, {}, False, None, {})
        options = {str(pair._1()).casefold(): str(pair._2()) for pair in items(relation.options().toSeq())}
        keys = _keys(leaf, relation.partitionSchema())
        of_files, in_catalog = str(relation.fileFormat().getClass().getName()), leaf.catalogTable().isDefined()
        return _FileScan(of_files, options, in_catalog, _user_schema(relation.location()), keys)
    if name == f"{_DATASOURCES}v2.DataSourceV2Relation":
        table = leaf.table()
        class_name = str(table.getClass().getName())
        if class_name not in (_DECLARED | _CSV | _INFERRED) - {_JDBC_TABLE}:
            return _FileScan(class_name, {}, False, None, {})
        options = {str(key).casefold(): str(value) for key, value in dict(leaf.options()).items()}
        keys = _keys(leaf, table.fileIndex().partitionSchema())
        schema = _names(table.userSpecifiedSchema())
        return _FileScan(class_name, options, leaf.catalog().isDefined(), schema, keys)
    return _FileScan(name, {}, False, None, {})


def _keys(leaf: Any, schema: Any) -> dict[int, str]:
    names = {str(name).casefold() for name in schema.fieldNames()}
    if not names:
        return {}
    return {one.exprId().id(): str(one.name()) for one in items(leaf.output()) if str(one.name()).casefold() in names}


def _user_schema(location: Any) -> frozenset[str] | None:
    """Return the columns of the schema that a file list was given, from its private field."""
    kind = location.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if field.getName() == "userSpecifiedSchema":
                field.setAccessible(True)
                return _names(field.get(location))
        kind = kind.getSuperclass()
    return None


def _names(schema: Any) -> frozenset[str] | None:
    return frozenset(str(name).casefold() for name in schema.get().fieldNames()) if schema.isDefined() else None


def _unknown(class_name: str) -> str:
    return (
        f"the Spark frame reads a source, {class_name.rpartition('.')[2]}, that does not show that its types were declared "
        f"rather than inferred: write it to Parquet files with stated types and pass these, or {_REMEDY}"
    )
