"""Filters of engines and datasets keep a row by its own cells, or are refused."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources import arrow
from dpmoments.rows.sources import spark as spark_source
from support.said import refused
from support.spark_session import of_spark

N_ROWS = 16
NAN, INF = math.nan, math.inf
ODD = pa.table(
    {
        "x": [NAN, 1.0, 2.0, NAN, NAN, NAN, NAN, NAN, None, -0.0, 0.0, INF, -INF, 5e-324, 3.0, 10.0],
        "f": pa.array([0.1, None, NAN, 0.5] * 4, pa.float32()),
        "i": pa.array([2**53, 2**53 + 1, None, -(2**63)] * 4, pa.int64()),
        "k": pa.array([5, 6, 2**53 + 1, -7] * 4, pa.int64()),
        "b": pa.array([1, -128, 127, None] * 4, pa.int8()),
        "u": pa.array([1, 200, None, 0] * 4, pa.uint8()),
        "o": [True, False, None, True] * 4,
        "s": ["a", "A", None, "a "] * 4,
        "t": ["é", "e\u0301", "", "NaN"] * 4,
        "row": pa.array(range(N_ROWS), pa.int16()),
    }
)
SCHEMA = dpm.Schema(dpm.Categorical("row", [*range(N_ROWS)]), dpm.Numeric("x", -4, 4, missing="center"))


def kept(rows: Rows) -> list[int]:
    """Which rows were summed, by the counts of their levels."""
    moments = rows.moments()
    return [index for index in range(N_ROWS) if moments.gram[index][index] > 0]


def files(folder: Path, rows_per_group: int) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(2):
        part = ODD.slice(number * N_ROWS // 2, N_ROWS // 2)
        pq.write_table(part, folder / f"{number}.parquet", row_group_size=rows_per_group)
    return folder


pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
# pandas warns of what Dask does
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'dpmoments[dask]'")


def on_spark(test: Any) -> Any:
    for mark in of_spark:
        test = mark(test)
    return test


@pytest.mark.long
@on_spark
def test_no_row_decides_whether_spark_keeps_another(spark: Any, tmp_path: Path) -> None:
    """Spark skips a group of rows by its least and largest number, of which NaN is neither, though it is greater than all."""
    condition = "x > 5 or row > 99"
    few, all_rows = (
        spark.read.parquet(str(files(tmp_path / str(size), size))).filter(condition) for size in (3, N_ROWS)
    )
    assert few.count() != all_rows.count()
    expected = [0, 3, 4, 5, 6, 7, 11, 15]
    assert kept(Rows.of(few, SCHEMA)) == kept(Rows.of(all_rows, SCHEMA)) == expected
    assert few.count() != all_rows.count()  # the session is as it was


@pytest.mark.long
@on_spark
def test_no_row_decides_what_a_cache_of_spark_keeps(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Caches skip batches of rows as files do; one that was filled with groups left out is refused."""
    spark.conf.set("spark.sql.inMemoryColumnarStorage.batchSize", "3")
    cached = spark.read.parquet(str(files(tmp_path, N_ROWS))).coalesce(1).cache()
    try:
        cached.count()
        condition = "x > 5 or row > 99"
        expected = [0, 3, 4, 5, 6, 7, 11, 15]
        assert kept(Rows.of(cached.filter(condition), SCHEMA)) == expected
        monkeypatch.setattr("dpmoments.rows.sources.spark._SKIPPING", ())
        assert kept(Rows.of(cached.filter(condition), SCHEMA)) != expected
        again = cached.filter(condition).cache()
        scanned = spark.read.parquet(str(files(tmp_path / "few", 3))).filter("x > 5 or x < -99").cache()
        for filled in (again, scanned, scanned.select("row", "x")):
            with refused("the Spark frame reads a cache of rows that a scan filtered"):
                Rows.of(filled, SCHEMA)
        for frame in (again, scanned):
            frame.unpersist()
        Rows.of(scanned, SCHEMA)
    finally:
        cached.unpersist()
        spark.conf.unset("spark.sql.inMemoryColumnarStorage.batchSize")


def test_settings_of_spark_are_changed_by_one_pass_at_a_time() -> None:
    session = SimpleNamespace(conf=Settings())
    inside = threading.Barrier(2)
    seen: list[set[str]] = []

    def plan() -> None:
        with spark_source._read_row_by_row(session):
            with suppress(threading.BrokenBarrierError):
                inside.wait(0.2)  # nobody else comes
            seen.append({session.conf.get(name) for name in spark_source._SKIPPING})

    threads = [threading.Thread(target=plan) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [{"false"}] * 2
    assert {session.conf.get(name) for name in spark_source._SKIPPING} == {"true"}


class Settings(dict[str, str]):
    """Settings of a session, all of them true at first."""

    def get(self, name: str, default: str = "true") -> str:
        return super().get(name, default)

    set = dict.__setitem__


@pytest.mark.long
def test_a_filter_of_what_polars_lets_others_scan_is_refused(tmp_path: Path) -> None:
    lazy = pl.scan_pyarrow_dataset(ds.dataset(files(tmp_path, 3)))
    with refused("the lazy frame filters rows that another library scans", TypeError):
        Rows.of(lazy.filter(pl.col("x") != 1), SCHEMA)
    assert kept(Rows.of(lazy, SCHEMA)) == [*range(N_ROWS)]


DUCKDB_CONDITIONS = ("x > 5", "NOT x <= 5", "x > 5 OR row > 99", "x BETWEEN 4 AND 'NaN'", "f > 0.4", "x = 'NaN'")


def kept_of_duckdb(connection: duckdb.DuckDBPyConnection, table: str, condition: str) -> list[int]:
    return kept(Rows.of(connection.sql(f"SELECT row, x FROM {table} WHERE {condition}"), SCHEMA))


def differing_conditions(tmp_path: Path) -> Iterator[str]:
    """Conditions by which files, or a view of them, keep other rows than a table in memory."""
    connection = duckdb.connect()
    connection.register("odd", ODD)
    connection.execute("CREATE TABLE held AS SELECT * FROM odd")
    tables = [f"'{files(tmp_path / str(size), size)}/*.parquet'" for size in (3, N_ROWS)]
    connection.execute(f"CREATE VIEW seen AS SELECT * FROM {tables[0]}")
    before = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    for condition in DUCKDB_CONDITIONS:
        expected = kept_of_duckdb(connection, "held", condition)
        if any(kept_of_duckdb(connection, table, condition) != expected for table in (*tables, "seen")):
            yield condition
    assert connection.execute("SELECT current_setting('disabled_optimizers')").fetchall() == before


@pytest.mark.long
def test_no_row_decides_whether_duckdb_keeps_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(differing_conditions(tmp_path)) == []
    monkeypatch.setattr(arrow, "_SKIPPING", ())
    assert any(differing_conditions(tmp_path))


def test_optimizers_that_were_off_stay_off(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("SET disabled_optimizers = 'top_n'")
    relation = connection.sql(f"SELECT row, x FROM '{files(tmp_path, 3)}/*.parquet' WHERE x > 5")
    rows = Rows.of(relation, SCHEMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow.RelationSource, "sliced", lambda *_, **__: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            rows.moments()
    assert connection.execute("SELECT current_setting('disabled_optimizers')").fetchall() == [("top_n",)]
    assert kept(Rows.of(relation, SCHEMA)) == [0, 3, 4, 5, 6, 7, 11, 15]


X = ds.field("x")


@pytest.mark.long
def test_filters_of_datasets_and_of_dask_that_skip_nan_by_chance_are_refused(tmp_path: Path) -> None:
    folder = files(tmp_path, 3)
    dataset = ds.dataset(folder)
    for negated in (X != 5, ~(X <= 5), (X <= 5) == False, ~X.isin([5.0]), (ds.field("row") > 3) & (X != 5)):  # noqa: E712
        with refused("or uses a function of it: Arrow skips groups of rows by", TypeError):
            Rows.of(dataset.filter(negated), SCHEMA)
    for plain in (X > 5, (X <= 0) | (ds.field("row") == 3), ds.field("i") != 5, ds.field("s") != "a"):
        expected = ODD.filter(plain).column("row").to_pylist()
        assert kept(Rows.of(dataset.filter(plain), SCHEMA)) == sorted(expected)
    for filters in (
        [("x", "!=", 5.0)],
        [[("row", ">", 3)], [("x", "not in", [5.0])]],
        [("s", "!=", "a"), ("x", "<", 5.0)],
    ):
        with refused("filters= that negate a comparison of 'x'", TypeError):
            Rows.of(dd.read_parquet(folder, filters=filters), SCHEMA)
    pushed = dd.read_parquet(folder, filesystem="arrow")
    with refused("filters= that negate a comparison of 'x'", TypeError):
        Rows.of(pushed[pushed.x != 5.0], SCHEMA)
    assert kept(Rows.of(dd.read_parquet(folder, filters=[("x", ">", 5.0)]), SCHEMA)) == [11, 15]
    assert kept(Rows.of(dd.read_parquet(folder, filters=[("s", "!=", "a")]), SCHEMA))
