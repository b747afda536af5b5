"""Filters of Spark and Dask frames that are applied as files are read, against what the engine itself keeps."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
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
from dpmoments.rows.sources import arrow, row_filter
from dpmoments.rows.sources import spark as spark_source
from dpmoments.rows.sources.row_filter import Comparison
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


def as_now(monkeypatch: pytest.MonkeyPatch, data: Any) -> Rows:
    """The rows as the engine reads them."""
    with monkeypatch.context() as patch:
        for engine in ("spark", "dask"):
            patch.setattr(f"dpmoments.rows.sources.{engine}.comparisons_of_{engine}", lambda *_: None)
        return Rows.of(data, SCHEMA)


def comparisons(rows: Rows) -> tuple[Comparison, ...]:
    source: Any = rows.source
    return tuple(source.pieces[0].comparisons) if hasattr(source, "pieces") else ()


SPARK_CONDITIONS = (
    *(
        "x > 5",
        "x >= 5",
        "x < 0",
        "x <= 0",
        "x = 0",
        "x != 1",
        "5 < x",
        "not (x > 5)",
        "x > -1e300",
        "x between 0 and 2",
    ),
    *("x is null", "x is not null", "not (x = 1 or b = 1)", "f > 0.1", "f > float(0.1)", "i > 9007199254740992"),
    *("i = 9007199254740993", "i > 5.5", "b = 127", "b > 1 and x > 0", "s = 'a'", "s != 'a'", "t = 'é'", "t = ''"),
)
"""Conditions of which Spark's own reading and ours are compared."""
SPARK_OTHERS = (
    *(
        "x > double('NaN')",
        "x in (1, 2)",
        "x <=> 1",
        "x > k",
        "x + 1 > 2",
        "x > 5 or b = 1",
        "s > 'a'",
        "lower(s) = 'a'",
    ),
    *("s = 'a' collate UNICODE_CI", "o", "u > 100", "b > 200", "cast(s as double) > 1", "hash(x) > 0"),
)
"""Conditions that Spark reads by itself."""
pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
# pandas warns of what Dask does
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'dpmoments[dask]'")


def on_spark(test: Any) -> Any:
    for mark in of_spark:
        test = mark(test)
    return test


@on_spark
def test_spark_and_the_reader_of_files_keep_the_same_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.read.parquet(str(files(tmp_path, 3)))
    numbers = set()
    for condition in SPARK_CONDITIONS:
        filtered = frame.filter(condition)
        rows, reference = Rows.of(filtered, SCHEMA), as_now(monkeypatch, filtered)
        assert (bool(comparisons(rows)), comparisons(reference)) == (True, ()), condition
        assert rows.moments() == reference.moments(), condition
        numbers.add(tuple(kept(rows)))
    assert len(numbers) > len(SPARK_CONDITIONS) // 2  # the table tells conditions apart
    chained = frame.filter("x > 0").select("x", "row", "s").filter("s = 'a'").select("row", "x")
    assert len(comparisons(Rows.of(chained, SCHEMA))) == 4
    assert Rows.of(chained, SCHEMA).moments() == as_now(monkeypatch, chained).moments()
    assert Rows.of(chained, SCHEMA).table_size() == chained.count()


@on_spark
def test_other_conditions_are_left_to_spark(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(str(files(tmp_path, N_ROWS)))
    for condition in SPARK_OTHERS:
        assert not comparisons(Rows.of(frame.filter(condition), SCHEMA)), condition
    capitals = frame.filter("S = 'a'")  # the same column for Spark
    assert kept(Rows.of(capitals, SCHEMA)) == [0, 4, 8, 12]
    collated = spark.read.schema("row short, x double, s string collate UNICODE_CI").parquet(str(tmp_path))
    assert kept(Rows.of(collated.filter("s = 'a'"), SCHEMA)) == [0, 1, 4, 5, 8, 9, 12, 13]


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


def test_a_filter_of_what_polars_lets_others_scan_is_refused(tmp_path: Path) -> None:
    lazy = pl.scan_pyarrow_dataset(ds.dataset(files(tmp_path, 3)))
    with refused("the lazy frame filters rows that another library scans", TypeError):
        Rows.of(lazy.filter(pl.col("x") != 1), SCHEMA)
    assert kept(Rows.of(lazy, SCHEMA)) == [*range(N_ROWS)]


DUCKDB_CONDITIONS = (
    *("x > 5", "x >= 4", "x <> 10", "NOT x <= 5", "x > 5 AND NOT isnan(x)", "x > 5 OR row > 99"),
    *("x BETWEEN 4 AND 'NaN'", "f > 0.4", "x = 'NaN'", "x IN (10, 'NaN')"),
)


def kept_of_duckdb(connection: duckdb.DuckDBPyConnection, table: str, condition: str) -> list[int]:
    return kept(Rows.of(connection.sql(f"SELECT row, x FROM {table} WHERE {condition}"), SCHEMA))


def differing_conditions(tmp_path: Path) -> list[str]:
    """Conditions by which files, or a view of them, keep other rows than a table in memory."""
    connection = duckdb.connect()
    connection.register("odd", ODD)
    connection.execute("CREATE TABLE held AS SELECT * FROM odd")
    tables = [f"'{files(tmp_path / str(size), size)}/*.parquet'" for size in (1, 3, N_ROWS)]
    connection.execute(f"CREATE VIEW seen AS SELECT * FROM {tables[1]}")
    before = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    found = [
        condition
        for condition in DUCKDB_CONDITIONS
        if any(
            kept_of_duckdb(connection, table, condition) != kept_of_duckdb(connection, "held", condition)
            for table in (*tables, "seen")
        )
    ]
    assert connection.execute("SELECT current_setting('disabled_optimizers')").fetchall() == before
    return found


def test_no_row_decides_whether_duckdb_keeps_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differing_conditions(tmp_path) == []
    monkeypatch.setattr(arrow, "_SKIPPING", ())
    assert differing_conditions(tmp_path)


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


def test_filters_of_datasets_and_of_dask_that_skip_nan_by_chance_are_refused(tmp_path: Path) -> None:
    folder = files(tmp_path, 3)
    dataset = ds.dataset(folder)
    for negated in (X != 5, ~(X <= 5), (X <= 5) == False, ~X.isin([5.0]), (ds.field("row") > 3) & (X != 5)):  # noqa: E712
        with refused("or uses a function of it: Arrow skips groups of rows by", TypeError):
            Rows.of(dataset.filter(negated), SCHEMA)
    for plain in (X > 5, (X <= 0) | (ds.field("row") == 3), ds.field("i") != 5, ds.field("s") != "a"):
        expected = ODD.filter(plain).column("row").to_pylist()
        assert kept(Rows.of(dataset.filter(plain), SCHEMA)) == sorted(expected)
    for filters in ([("x", "!=", 5.0)], [[("row", ">", 3)], [("x", "not in", [5.0])]]):
        with refused("filters= of the Parquet reader negate a comparison of", TypeError):
            Rows.of(dd.read_parquet(folder, filters=filters), SCHEMA)
    pushed = dd.read_parquet(folder, filesystem="arrow")
    with refused("filters= of the Parquet reader negate a comparison of", TypeError):
        Rows.of(pushed[pushed.x != 5.0], SCHEMA)
    assert kept(Rows.of(dd.read_parquet(folder, filters=[("x", ">", 5.0)]), SCHEMA)) == [11, 15]
    assert kept(Rows.of(dd.read_parquet(folder, filters=[("s", "!=", "a"), ("x", "<", 5.0)]), SCHEMA))


DASK_PREDICATES: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.x > 5.0,
    lambda t: t.x >= 0,
    lambda t: t.x < 0,
    lambda t: t.x <= -0.0,
    lambda t: t.x == 0,
    lambda t: 5 > t.x,  # noqa: SIM300
    lambda t: t.x > -1e300,
    lambda t: t.i < 0,
    lambda t: t.k > 2**53 - 1,
    lambda t: t.b == 127,
    lambda t: t.b < 300,
    lambda t: t.s == "a",
    lambda t: (t.x > 0) & (t.s == "a"),
    lambda t: (t.x > 0) & (t.k > 0) & (t.x < 9),
)
DASK_OTHERS: tuple[Callable[[Any], Any], ...] = (
    lambda t: t.x != 1,
    lambda t: (t.x > 5) | (t.k > 5),
    lambda t: ~(t.x > 5),
    lambda t: t.x < NAN,
    lambda t: t.x > t.k,
    lambda t: t.x + 1 > 2,
    lambda t: t.f > 0.1,
    lambda t: t.s > "a",
    lambda t: t.k > 2**53,
    lambda t: t.u > 100,
    lambda t: t.k > 5.5,
    lambda t: t.x > True,
    lambda t: t.x.gt(5),
)


def test_dask_and_the_reader_of_files_keep_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = dd.read_parquet(files(tmp_path, 3))
    for name, predicate in enumerate(DASK_PREDICATES):
        filtered = frame[predicate(frame)]
        rows, reference = Rows.of(filtered, SCHEMA), as_now(monkeypatch, filtered)
        assert (bool(comparisons(rows)), comparisons(reference)) == (True, ()), name
        assert rows.moments() == reference.moments(), name
        assert rows.table_size() == reference.table_size(), name
    chained = frame[frame.x > 0][["row", "x", "s"]]
    chained = chained[chained.s == "a"][["x", "row"]]
    assert len(comparisons(Rows.of(chained, SCHEMA))) == 2
    assert Rows.of(chained, SCHEMA).moments() == as_now(monkeypatch, chained).moments()


def test_other_predicates_are_left_to_dask(tmp_path: Path) -> None:
    frame = dd.read_parquet(files(tmp_path, N_ROWS))
    for name, predicate in enumerate(DASK_OTHERS):
        assert not comparisons(Rows.of(frame[predicate(frame)], SCHEMA)), name
    shifted = frame.assign(x=frame.x + 1)
    assert not comparisons(Rows.of(shifted[shifted.x > 0], SCHEMA))
    assert not comparisons(Rows.of(frame[shifted.x > 0], SCHEMA))  # of another frame
    nullable = dd.read_parquet(tmp_path, dtype_backend="pyarrow")
    assert not comparisons(Rows.of(nullable[nullable.x > 0], SCHEMA))


FAULTS: dict[str, Any] = {
    "NaN below all numbers": lambda one: replace(one, nan_is_largest=False),
    "the next operator": lambda one: replace(
        one, operator={">": ">=", "<": "<=", "!=": "=="}.get(one.operator, one.operator)
    ),
    "a value nearby": lambda one: replace(one, value=one.value + 1) if type(one.value) is int else one,
}


@on_spark
@pytest.mark.parametrize("fault", [*FAULTS, "empty cells are kept"])
def test_the_comparison_with_spark_finds_a_fault(
    spark: Any, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = spark.read.parquet(str(files(tmp_path, N_ROWS)))
    different = 0
    for condition in ("x > 5", "x < 0", "i > 9007199254740992", "s != 'a'", "x != 1"):
        filtered = frame.filter(condition)
        expected = kept(as_now(monkeypatch, filtered))
        source: Any = Rows.of(filtered, SCHEMA).source
        found = source.pieces[0].comparisons
        batch = ODD.combine_chunks().to_batches()[0]
        assert [int(row) for row in row_filter.kept_rows(batch, found)["row"].to_pylist()] == expected
        with monkeypatch.context() as patch:
            if fault in FAULTS:
                found = [FAULTS[fault](one) for one in found]
            else:
                found = [one for one in found if one.operator != "present"]
                patch.setattr(row_filter, "_mask", lambda result: result.fill_null(True).to_numpy(zero_copy_only=False))
            different += [int(row) for row in row_filter.kept_rows(batch, found)["row"].to_pylist()] != expected
    assert different
