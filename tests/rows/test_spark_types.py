"""Spark frames are accepted only if their plan shows that the types of their columns were declared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.rows.rows import Rows
from support.said import refused
from support.spark_session import of_spark

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
pytestmark = [*of_spark, pytest.mark.long(sets=None)]

SCHEMA = dpm.Schema(dpm.Categorical("c", ["007", "7"], missing="zero", other="zero"), dpm.Numeric("x", 0, 10))
TYPES = "c string, x double"
TABLE = pa.table({"c": ["007", "7"], "x": [3.0, 4.0]})


def text(tmp: Path, ending: str, header: str = "c,x\n") -> str:
    cells = {
        "csv": header + "007,3\n7,4\n",
        "json": '{"c": "007", "x": 3.0}\n{"c": "7", "x": 4.0}\n',
        "xml": "<t><r><c>007</c><x>3.0</x></r></t>",
    }[ending]
    (tmp / "texts").mkdir(exist_ok=True)
    (tmp / "texts" / f"t.{ending}").write_text(cells)
    return str(tmp / "texts" / f"t.{ending}")


def folders(tmp: Path, key: str = "c") -> str:
    for number in ("007", "7"):
        (tmp / "keys" / f"{key}={number}").mkdir(parents=True)
        pq.write_table(TABLE.drop_columns([key]), tmp / "keys" / f"{key}={number}" / "0.parquet")
    return str(tmp / "keys")


def parquet(tmp: Path) -> str:
    pq.write_table(TABLE, tmp / "t.parquet")
    return str(tmp / "t.parquet")


def viewed(_spark: Any, frame: Any, name: str) -> str:
    frame.createOrReplaceTempView(name)
    return name


def catalog(spark: Any, tmp: Path, kind: str, path: str, columns: str = "", options: str = "") -> Any:
    name = f"{kind}_{abs(hash(str(tmp)))}"
    spark.sql(f"CREATE TABLE {name} {columns} USING {kind} {options} LOCATION '{path}'")
    frame = spark.table(name)
    frame.schema  # noqa: B018  # it is read from the catalog
    return frame


def second_version(spark: Any, make: Callable[[], Any]) -> Any:
    """A frame made while Spark reads files by its second interface."""
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        return make()
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


def numbered(frame: Any) -> Any:
    """The same columns, of types that the schema can read."""
    return frame.selectExpr("cast(c AS string) AS c", "cast(x AS double) AS x")


def inferred(spark: Any, tmp: Path) -> Any:
    return spark.read.json(text(tmp, "json"))


def good(spark: Any) -> Any:
    return spark.createDataFrame(TABLE)


def csv(spark: Any) -> Any:
    return spark.read.option("header", "true")


REFUSED: dict[str, Callable[[Any, Path], Any]] = {
    "csv, inferred": lambda s, tmp: csv(s).csv(text(tmp, "csv"), inferSchema=True),
    "csv, inferred, cast": lambda s, tmp: numbered(csv(s).csv(text(tmp, "csv"), inferSchema=True)),
    "csv without a header": lambda s, tmp: s.read.csv(text(tmp, "csv", "")).toDF("c", "x"),
    "csv by its path": lambda s, tmp: s.sql(f"SELECT _c0 AS c, _c1 AS x FROM csv.`{text(tmp, 'csv')}`"),
    "json": inferred,
    "json by its path": lambda s, tmp: s.sql(f"SELECT * FROM json.`{text(tmp, 'json')}`"),
    "json lines in memory": lambda s, _: s.read.json(s.sparkContext.parallelize(['{"c": "7", "x": 3.0}'])),
    "xml": lambda s, tmp: s.read.option("rowTag", "r").xml(text(tmp, "xml")),
    "json in a view": lambda s, tmp: s.table(viewed(s, inferred(s, tmp), "json_view")),
    "a union with json": lambda s, tmp: good(s).union(inferred(s, tmp)),
    "a join with json": lambda s, tmp: good(s).join(inferred(s, tmp).select("c"), "c"),
    "json, cached": lambda s, tmp: inferred(s, tmp).cache(),
    "json in a filter": lambda s, tmp: s.sql(
        f"SELECT * FROM {viewed(s, good(s), 'good')} WHERE EXISTS (SELECT 1 FROM "
        f"{viewed(s, inferred(s, tmp), 'json_view')} j WHERE j.c = good.c)"
    ),
    "json in a scalar": lambda s, tmp: s.sql(
        f"SELECT c, x + (SELECT max(x) FROM {viewed(s, inferred(s, tmp), 'json_view')}) AS x FROM {viewed(s, good(s), 'good')}"
    ),
    "a row's own query of json": lambda s, tmp: s.sql(
        f"SELECT g.c, z AS x FROM {viewed(s, good(s), 'good')} g, "
        f"LATERAL (SELECT max(x) AS z FROM {viewed(s, inferred(s, tmp), 'json_view')})"
    ),
    "json in a catalog": lambda s, tmp: catalog(s, tmp, "json", text(tmp, "json"), f"({TYPES})"),
    "csv in a catalog, inferred": lambda s, tmp: catalog(
        s, tmp, "csv", text(tmp, "csv"), options="OPTIONS (header true, inferSchema true)"
    ),
    "a local checkpoint": lambda s, tmp: inferred(s, tmp).localCheckpoint(),
    "rows of a frame": lambda s, tmp: inferred(s, tmp).rdd.toDF(),
    "lines of a file": lambda s, tmp: (
        s.sparkContext.textFile(text(tmp, "csv", "")).map(lambda line: line.split(",")).toDF(["c", "x"])
    ),
    "folders": lambda s, tmp: s.read.parquet(folders(tmp)),
    "folders, renamed": lambda s, tmp: (
        s.read.parquet(folders(tmp)).selectExpr("cast(c AS int) AS k", "x").selectExpr("cast(k AS string) AS c", "x")
    ),
    "folders in a filter": lambda s, tmp: s.read.parquet(folders(tmp)).filter("c = 7").selectExpr("'7' AS c", "x"),
    "folders with a schema of the rest": lambda s, tmp: s.read.schema("x double").parquet(folders(tmp)),
    "a command": lambda s, _: s.sql("SHOW TABLES").selectExpr("tableName AS c", "1.0 AS x"),
    "files as they are": lambda s, tmp: s.read.format("binaryFile").load(text(tmp, "csv")).selectExpr("path AS c", "1.0 AS x"),
    "csv of a schema, stopped by a cell": lambda s, tmp: (
        s.read.schema(TYPES).option("Mode", "failfast").csv(text(tmp, "csv", ""))
    ),
    "a stream": lambda s, tmp: s.readStream.schema(TYPES).json(str(Path(text(tmp, "json")).parent)),
    "csv of a schema": lambda s, tmp: s.read.schema(TYPES).csv(text(tmp, "csv", "")),
    "json of a schema, by the second interface": lambda s, tmp: second_version(
        s, lambda: s.read.schema(TYPES).json(text(tmp, "json"))
    ),
    "folders of a schema": lambda s, tmp: s.read.schema(TYPES).parquet(folders(tmp)),
    "folders that nobody asks for": lambda s, tmp: s.read.parquet(folders(tmp)).selectExpr("'7' AS c", "x"),
    "folders in a view, that nobody asks for": lambda s, tmp: (
        s.table(viewed(s, s.read.parquet(folders(tmp)), "keys")).selectExpr("*", "'7' AS d").selectExpr("d AS c", "x")
    ),
}  # fmt: skip

ACCEPTED: dict[str, Callable[[Any, Path], Any]] = {
    "parquet": lambda s, tmp: s.read.parquet(parquet(tmp)),
    "parquet, merged": lambda s, tmp: s.read.option("mergeSchema", True).parquet(parquet(tmp)).filter("x > 0"),
    "orc": lambda s, tmp: (good(s).write.orc(str(tmp / "orc")), s.read.orc(str(tmp / "orc")))[1],
    "parquet in a catalog": lambda s, tmp: catalog(s, tmp, "parquet", parquet(tmp)),
    "folders, without their names": lambda s, tmp: (
        s.read.option("recursiveFileLookup", True).parquet(folders(tmp)).selectExpr("'7' AS c", "x")
    ),
    "text": lambda s, tmp: s.read.text(text(tmp, "csv", "")).selectExpr(
        "split(value, ',')[0] AS c", "cast(split(value, ',')[1] AS double) AS x"
    ),
    "folders in a catalog": lambda s, tmp: (
        good(s).write.option("path", str(tmp / "table")).partitionBy("c").saveAsTable(f"keys_{abs(hash(str(tmp)))}"),
        s.table(f"keys_{abs(hash(str(tmp)))}"),
    )[1],
    "a list": lambda s, _: s.createDataFrame([("7", 3.0)], ["c", "x"]),
    "an RDD in memory": lambda s, _: s.sparkContext.parallelize([("7", 3.0)]).union(
        s.sparkContext.parallelize([("007", 3.0)])).toDF(["c", "x"]),
    "a common table": lambda s, _: s.sql(
        f"WITH g AS (SELECT * FROM {viewed(s, good(s), 'good')}) SELECT * FROM g UNION ALL SELECT * FROM g"
    ),
}  # fmt: skip


@pytest.mark.long(sets=5)
@pytest.mark.parametrize("name", REFUSED)
def test_a_frame_of_types_that_may_be_inferred_is_refused(spark: Any, name: str, tmp_path: Path) -> None:
    reason = "a streaming frame of Spark has no end" if name.startswith("a stream") else "the Spark frame reads"
    with refused(reason, TypeError) as caught:
        Rows.of(REFUSED[name](spark, tmp_path), SCHEMA)
    assert "007" not in str(caught.value)


@pytest.mark.long
@pytest.mark.parametrize("make", ACCEPTED.values(), ids=ACCEPTED)
def test_a_frame_of_declared_types_is_read(spark: Any, make: Any, tmp_path: Path) -> None:
    assert Rows.of(make(spark, tmp_path), SCHEMA).moments().count > 0


@pytest.mark.slow
def test_a_single_float_of_a_partition_is_read_by_its_type_alone(spark: Any) -> None:
    """Marks and limits of IDs are rounded to it, with and without NaN; types are refused without a row."""
    schema = dpm.Schema(dpm.Numeric("x", 0, 100, missing="drop", missing_values=[99.9]))
    for gap in ([], [float("nan")]):
        cells = {"x": [99.9, 7.0, 3.0, 4.0, *gap], "id": [1.0, 2.0, 2.0**24, 3.0, *gap]}
        whole = pa.table({name: pa.array(column, pa.float32()) for name, column in cells.items()})
        frame = spark.createDataFrame(whole).repartition(3)
        assert Rows.of(frame, schema, privacy_unit=dpm.PrivacyUnit("id", 1, "drop")).bounded((1, 2)).count() == 2
    with refused("column needs numbers: convert it, or describe it as", TypeError, column="x"):
        Rows.of(spark.createDataFrame(pa.table({"x": pa.array([], pa.string())})), schema)
