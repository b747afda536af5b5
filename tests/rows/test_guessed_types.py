"""Readers of other libraries that guess types from cells: one row would change how all others are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.rows.rows import Rows
from support.said import refused

SCHEMA = dpm.Schema(dpm.Categorical("c", ["007", "7"]), dpm.Numeric("x", 0, 10))
NUMBERS = dpm.Schema(dpm.Numeric("x", 0, 10))
HIVE = ds.partitioning(pa.schema([("c", pa.string())]), flavor="hive")


def folder(tmp: Path) -> Path:
    """A folder of files by c."""
    for key in ("007", "7"):
        (tmp / "h" / f"c={key}").mkdir(parents=True)
        pq.write_table(pa.table({"x": [3.0] * 5}), tmp / "h" / f"c={key}" / "part.parquet")
    return tmp / "h"


def nested_folders(tmp: Path) -> Path:
    """A folder of files by b and c."""
    table = pa.table({"b": ["1"] * 9, "c": ["7"] * 9, "x": [3.0] * 9})
    pq.write_to_dataset(table, tmp / "n", partition_cols=["b", "c"])
    return tmp / "n"


def text(tmp: Path, ending: str) -> str:
    cells = {"csv": "c,x\n" + "007,3\n" * 9, "ndjson": '{"c": "007", "x": 3}\n' * 9}[ending]
    (tmp / f"t.{ending}").write_text(cells)
    return str(tmp / f"t.{ending}")


def duck(query: str, *before: str) -> Any:
    connection = duckdb.connect()
    for statement in before:
        connection.execute(statement)
    return connection.sql(query)


def cells_of_objects() -> pd.DataFrame:
    """In pandas, of which DuckDB looks at the cells for a type."""
    return pd.DataFrame({"c": pd.Series([7.0] * 9 + ["007"], dtype=object), "x": [3.0] * 10})


def registered(*queries: str) -> Any:
    connection = duckdb.connect()
    connection.register("people", cells_of_objects())
    for query in queries[:-1]:
        connection.execute(query)
    return connection.sql(queries[-1])


def array_relation() -> Any:
    arrays = {"c": np.array(["7", 7], dtype=object), "x": np.array([3.0, 3.0])}  # noqa: F841 (DuckDB finds it by its name)
    return duckdb.connect().sql("FROM arrays")


def files_of(tmp: Path, *columns: Any) -> Path:
    """A folder of files with a column x each, and beside it text in c."""
    (tmp / "f").mkdir()
    for number, cells in enumerate(columns):
        pq.write_table(pa.table({"c": ["7"] * len(cells), "x": cells}), tmp / "f" / f"{number}.parquet")
    return tmp / "f"


REFUSED: dict[str, Callable[[Path], Any]] = {
    "polars csv, in a query": lambda tmp: pl.scan_csv(text(tmp, "csv")).filter(pl.col("x") > 1).cache().sort("x"),
    "polars csv, joined": lambda tmp: pl.LazyFrame({"x": [3]}).join(pl.scan_csv(text(tmp, "csv")), on="x"),
    "polars folders, by default": lambda tmp: pl.scan_parquet(folder(tmp)),
    "polars folders below one with a line break": lambda tmp: pl.scan_parquet(
        folder((tmp / "a\nb").absolute()), hive_partitioning=True
    ),
    "polars folders in folders": lambda tmp: pl.scan_parquet(nested_folders(tmp), hive_partitioning=True).drop("b"),
    "polars folders of names with a line break": lambda tmp: pl.scan_parquet(
        folder(tmp / "b=a\nb]\n"), hive_partitioning=True
    ),
    "polars folders, renamed": lambda tmp: (
        pl.scan_parquet(folder(tmp)).select(pl.col("c").alias("d"), "x").rename({"d": "k"}).with_columns(c=pl.col("k"))
    ),
    "polars folders, filtered": lambda tmp: (
        pl.scan_parquet(folder(tmp)).filter(pl.col("c") == 7).select("x").with_columns(c=pl.lit("7"))
    ),
    "arrow folders, together": lambda tmp: ds.dataset([ds.dataset(folder(tmp), partitioning="hive")]),
    "duckdb csv of its own": lambda tmp: duckdb.connect().read_csv(text(tmp, "csv")),
    "duckdb json": lambda tmp: duck(f"SELECT * FROM read_json('{text(tmp, 'ndjson')}')"),
    "duckdb csv, in a view": lambda tmp: duck(
        "SELECT * FROM v", f"CREATE VIEW v AS SELECT * FROM '{text(tmp, 'csv')}'"
    ),
    "duckdb csv, deep in a query": lambda tmp: duck(
        f"SELECT * FROM (SELECT a.c, max(a.x) AS x FROM '{text(tmp, 'csv')}' a JOIN range(9) b(i) ON a.x > b.i "
        "GROUP BY a.c UNION ALL SELECT '7', 3) ORDER BY x LIMIT 5"
    ),
    "duckdb pandas, by a name": lambda _: registered("FROM people"),
    "duckdb pandas, in a view": lambda _: registered("CREATE TEMP VIEW v AS SELECT * FROM people", "FROM v"),
    "duckdb pandas, deep in a query": lambda _: registered(
        "SELECT c, x FROM (SELECT * FROM people UNION ALL SELECT '7', 3) WHERE x IN (SELECT x FROM people)"
    ),
    "duckdb arrays": lambda _: array_relation(),
}


CODES = {
    "polars folders": "is in the names of folders, whose types Polars guesses from",
    "polars": "files, whose types Polars guesses from the first cells, and",
    "arrow folders": "which Arrow guesses from all of them, and one row would",
    "duckdb pandas": "the relation reads a pandas frame or NumPy arrays, and",
    "duckdb arrays": "the relation reads a pandas frame or NumPy arrays, and",
    "duckdb": "files, whose types DuckDB guesses from their cells, and one",
}
"""Codes of the refusals, by how the names begin: the first that fits."""


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("form", REFUSED)
def test_a_table_whose_types_are_guessed_is_refused(tmp_path: Path, form: str) -> None:
    with refused(next(code for begins, code in CODES.items() if form.startswith(begins)), TypeError):
        Rows.of(REFUSED[form](tmp_path), SCHEMA)


TAKEN: dict[str, Callable[[Path], tuple[Any, dpm.Schema]]] = {
    "the path of the folder": lambda tmp: (folder(tmp), SCHEMA),
    "arrow folders as text": lambda tmp: (ds.dataset(folder(tmp), partitioning=HIVE), SCHEMA),
    "arrow folders that are not read": lambda tmp: (ds.dataset(folder(tmp), partitioning="hive"), NUMBERS),
    "arrow folders as numbers": lambda tmp: (
        ds.dataset(folder(tmp), partitioning="hive"),
        dpm.Schema(dpm.Numeric("c", 0, 9), dpm.Numeric("x", 0, 10)),
    ),
    "polars folders that are not read": lambda tmp: (pl.scan_parquet(folder(tmp), hive_partitioning=False), NUMBERS),
    "duckdb parquet": lambda tmp: (duck(f"SELECT x FROM '{folder(tmp) / 'c=7' / 'part.parquet'}' UNION ALL SELECT 1"), NUMBERS),
    "duckdb arrow": lambda _: (duckdb.connect().from_arrow(pa.table({"x": [3.0]})), NUMBERS),
    "duckdb table": lambda _: (
        duck("FROM t", "CREATE TABLE t (c VARCHAR, x DOUBLE)", "INSERT INTO t VALUES ('007', 3)"),
        SCHEMA,
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", TAKEN)
def test_what_states_its_types_is_taken(tmp_path: Path, form: str) -> None:
    data, schema = TAKEN[form](tmp_path)
    assert Rows.of(data, schema).moments().count > 0


def test_a_unit_in_the_names_of_folders_is_refused(tmp_path: Path) -> None:
    with refused("which Arrow guesses from all of them, and one row would", TypeError, column="c"):
        Rows.of(ds.dataset(folder(tmp_path), partitioning="hive"), NUMBERS, privacy_unit=dpm.PrivacyUnit("c", 1))


@pytest.mark.parametrize("odd", [7, 2**40])
@pytest.mark.parametrize("together", [False, True])
def test_files_of_a_dataset_that_differ_in_type_are_refused(tmp_path: Path, odd: int, together: bool) -> None:
    """Arrow casts to the types of the first file; whether a cell passes would be a matter of that cell."""
    made = files_of(tmp_path, pa.array([7, 8], pa.int32()), pa.array([7, odd], pa.int64()))
    dataset = ds.dataset([ds.dataset(made)]) if together else ds.dataset(made)
    for data in (dataset, dataset.filter(ds.field("x") > 0)):
        with refused(", the type of another file: one cell would decide", TypeError):
            Rows.of(data, NUMBERS)
    assert Rows.of(made, NUMBERS).count() == 4
    assert Rows.of(dataset, dpm.Schema(dpm.Categorical("c", ["7", "8"]))).count() == 4  # x is not read


def test_files_of_a_dataset_may_lack_a_column_or_hold_it_as_codes(tmp_path: Path) -> None:
    made = files_of(tmp_path, pa.array([7.0]), pa.array([8.0]))
    pq.write_table(pa.table({"c": ["7"]}), made / "2.parquet")
    assert Rows.of(ds.dataset(made), dpm.Schema(dpm.Numeric("x", 0, 10, missing="drop"))).count() == 2
