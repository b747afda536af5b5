"""One small table in every form it can come in, and what its moments are by a slow, obvious reference."""

from __future__ import annotations

import bz2
import gzip
import math
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.moments import ExactMoments
from dpmoments.schema import Schema
from dpmoments.schema.cells import ColumnTable, declared_column

N_ROWS = 400
REGIONS = ("north", "south", "ea,st", 'we"st', "Größe", "")
SCHEMA = Schema(
    dpm.Power("visits", 3),
    dpm.Numeric("age", 0, 100, missing="center"),
    dpm.Numeric("visits", -5, 5),
    dpm.Numeric("price", 0, 20, missing="drop"),
    dpm.Boolean("member", missing="center"),
    dpm.Product("region", "age"),
    dpm.Product("member", "price"),
    dpm.Categorical("region", REGIONS[:4], missing="zero", other="zero"),
    dpm.Categorical("code", [1, 2, 30], missing="drop", other="drop"),
)


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def duckdb_connection() -> duckdb.DuckDBPyConnection:
    """A connection to the one database in memory: a database of its own takes twenty milliseconds to open."""
    return _database().cursor()


def make_table(n_rows: int = N_ROWS, seed: int = 3) -> pa.Table:
    """Cells of every kind: inside and outside the bounds, missing, unknown."""
    rng = np.random.default_rng(seed)

    def gaps(values: list[Any], share: float) -> list[Any]:
        return [None if rng.random() < share else value for value in values]

    return pa.table(
        {
            "age": pa.array(gaps(rng.normal(50, 40, n_rows).tolist(), 0.1), pa.float64()),
            "visits": pa.array(rng.integers(-9, 9, n_rows), pa.int64()),
            "price": pa.array(gaps((rng.integers(-300, 2500, n_rows) / 100).tolist(), 0.05), pa.float64()),
            "member": pa.array(gaps(rng.choice([True, False], n_rows).tolist(), 0.1), pa.bool_()),
            "region": pa.array(gaps(rng.choice(REGIONS, n_rows).tolist(), 0.1), pa.string()),
            "code": pa.array(gaps(rng.choice([1, 2, 30, 4], n_rows).tolist(), 0.1), pa.int64()),
            "unread": pa.array([f"secret {i}" for i in range(n_rows)]),
        }
    )


TABLE = make_table()


def reference_rows(table: pa.Table, schema: Schema, *, mean: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The cell rules, row by row in plain Python: encoded rows (n, d), and which are dropped (n,)."""
    encoded, dropped = [], []
    for row in table.to_pylist():
        kept: dict[str, list[float]] = {}
        drop = False
        for column in schema.table_columns:
            cell = row[column.name]
            if isinstance(column, dpm.Categorical):
                missing = cell is None or cell == ""
                drop |= (missing and column.missing == "drop") or (
                    not missing and cell not in column.levels and column.other == "drop"
                )
                kept[column.name] = [float(cell == level) for level in column.levels]
                continue
            missing = cell is None or not math.isfinite(cell)
            drop |= missing and column.missing == "drop"
            lower, upper = column.bounds
            kept[column.name] = [(lower + upper) / 2 if missing else min(max(float(cell), lower), upper)]
        for derived in schema.derived_columns:
            if isinstance(derived.stated, dpm.Power):
                kept[derived.name] = [math.prod(kept[derived.stated.column] * derived.stated.exponent)]
            else:
                first, second = derived.stated.factors
                kept[derived.name] = [one * other for one in kept[first] for other in kept[second]]
        values = [
            (value - offset) / unit
            for column in schema.columns
            for value, offset, unit in zip(
                kept[column.name], column.offset(mean), column.unit_length(mean), strict=True
            )
        ]
        encoded.append([value / schema.row_norm for value in values])
        dropped.append(drop)
    return np.array(encoded).reshape(len(encoded), schema.n_features), np.array(dropped, dtype=bool)


def reference_moments(table: pa.Table, schema: Schema = SCHEMA) -> ExactMoments:
    rows, dropped = reference_rows(table, schema)
    rows[dropped] = np.nan
    return exact_moments([rows], schema.n_features, missing="drop", threads=1).without_dropped()


EXPECTED = reference_moments(TABLE)


def with_column(name: str, column: Any, table: pa.Table = TABLE) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def cast(table: pa.Table = TABLE, /, **types: pa.DataType) -> pa.Table:
    for name, kind in types.items():
        table = with_column(name, table[name].cast(kind), table)
    return table


def objects(name: str, table: pa.Table = TABLE) -> np.ndarray:
    cells = np.empty(len(table), dtype=object)
    cells[:] = table[name].to_pylist()
    return cells


def dictionary(name: str, table: pa.Table, kind: pa.DataType | None = None, *, with_null: bool = False) -> pa.Table:
    """The table with a column of indices into its distinct texts; of nulls, into a null among these if it has one."""
    cells = table[name].combine_chunks()
    texts = cells.drop_null().unique()
    places = pc.index_in(cells, texts)
    if with_null:
        places, texts = pc.fill_null(places, len(texts)), pa.array([*texts.to_pylist(), None], texts.type)
    return with_column(name, pa.DictionaryArray.from_arrays(places, texts.cast(kind or texts.type)), table)


def decimals(table: pa.Table = TABLE) -> list[Decimal | None]:
    return [None if cell is None else Decimal(str(cell)) for cell in table["price"].to_pylist()]


def csv_text(table: pa.Table, delimiter: str = ",", *, quote: str = "needed") -> bytes:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(table, sink, pa_csv.WriteOptions(delimiter=delimiter, quoting_style=quote))
    return bytes(sink.getvalue())


def plain_csv(table: pa.Table) -> bytes:
    """As pandas writes a frame: floats for integers with gaps, True and False, quotes where needed."""
    return table.to_pandas().to_csv(index=False).encode()


FORMS: dict[str, Callable[..., Any]] = {
    "arrow": lambda t=TABLE: t,
    "arrow chunked": lambda t=TABLE: pa.concat_tables([t.slice(0, 7), t.slice(7, 0), t.slice(7, 300), t.slice(307)]),
    "arrow batch": lambda t=TABLE: t.combine_chunks().to_batches()[0],
    "arrow sliced": lambda t=TABLE: pa.concat_tables([t.slice(0, 3), t]).combine_chunks().slice(len(t.slice(0, 3))),
    "arrow large_string": lambda t=TABLE: cast(t, region=pa.large_string()),
    "arrow string_view": lambda t=TABLE: cast(t, region=pa.string_view()),
    "arrow dictionary": lambda t=TABLE: cast(t, region=pa.dictionary(pa.int8(), pa.string())),
    "arrow dictionary of integers": lambda t=TABLE: with_column("code", t["code"].dictionary_encode(), t),
    "arrow dictionaries that differ": lambda t=TABLE: pa.concat_tables(
        [
            with_column("region", part["region"].combine_chunks().dictionary_encode(), part)
            for part in (t.slice(0, len(t) // 4), t.slice(len(t) // 4))
        ]
    ),
    "arrow dictionary with a null": lambda t=TABLE: dictionary("region", t, with_null=True),
    "arrow dictionary of views": lambda t=TABLE: dictionary("region", t, pa.string_view()),
    "arrow runs": lambda t=TABLE: with_column("region", pc.run_end_encode(t["region"].combine_chunks()), t),
    "arrow decimal": lambda t=TABLE: with_column("price", pa.array(decimals(t), pa.decimal128(9, 2)), t),
    "arrow wide decimal": lambda t=TABLE: with_column("price", pa.array(decimals(t), pa.decimal256(60, 30)), t),
    "arrow decimal in a dictionary": lambda t=TABLE: with_column(
        "price", pa.array(decimals(t), pa.decimal128(9, 2)).dictionary_encode(), t),
    "arrow small integers": lambda t=TABLE: cast(t, visits=pa.int8(), code=pa.uint8(), member=pa.int8()),
    "arrow integers as floats": lambda t=TABLE: cast(t, visits=pa.float32(), code=pa.float64()),
    "arrow half floats": lambda t=TABLE: with_column("visits", pa.array(t["visits"].to_numpy().astype(np.float16)), t),
    "arrow digits": lambda t=TABLE: cast(t, code=pa.string()),
    "pandas": lambda t=TABLE: t.to_pandas(),
    "pandas nullable": lambda t=TABLE: t.to_pandas().convert_dtypes(),
    "pandas of arrow": lambda t=TABLE: t.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas categories": lambda t=TABLE: t.to_pandas().astype({"region": "category", "code": "category"}),
    "pandas odd index": lambda t=TABLE: t.to_pandas().set_index(pd.Index([1] * len(t))),
    "pandas columns shuffled": lambda t=TABLE: t.to_pandas()[t.column_names[::-1]],
    "pandas objects": lambda t=TABLE: pd.DataFrame(
        {name: pd.Series(objects(name, t), dtype=object) for name in t.column_names if name != "unread"}),
    "pandas decimals": lambda t=TABLE: t.to_pandas().assign(price=pd.Series(decimals(t), dtype=object)),
    "pandas another column twice": lambda t=TABLE: pd.concat([t.to_pandas(), t.to_pandas()[["unread"]]], axis=1),
    "columns of several libraries": lambda t=TABLE: ColumnTable(
        {
            name: declared_column(column, name)
            for name, column in {
                "age": t["age"],
                "visits": t["visits"].to_numpy(),
                "price": decimals(t),
                "member": objects("member", t),
                "region": pl.from_arrow(t["region"]),
                "code": t["code"].to_pandas().astype("Int64"),
            }.items()
        }
    ),
    "arrow dataset": lambda t=TABLE: ds.dataset(t),
    "arrow dataset filtered": lambda t=TABLE: ds.dataset(
        pa.concat_tables([t, with_column("unread", pa.array(["other"] * len(t)), t)])).filter(ds.field("unread") != "other"),
    "polars": lambda t=TABLE: pl.from_arrow(t),
    "polars lazy": lambda t=TABLE: pl.from_arrow(t).lazy(),
    "polars categories": lambda t=TABLE: pl.from_arrow(t).with_columns(pl.col("region").cast(pl.Categorical)),
    "polars enum": lambda t=TABLE: pl.from_arrow(t).with_columns(pl.col("region").cast(pl.Enum([*REGIONS, "007", "7"]))),
    "polars decimals": lambda t=TABLE: pl.from_arrow(with_column("price", pa.array(decimals(t), pa.decimal128(9, 2)), t)),
    "polars objects": lambda t=TABLE: pl.from_arrow(t).with_columns(pl.Series("code", t["code"].to_pylist(), dtype=pl.Object)),
    "duckdb": lambda t=TABLE: duckdb_connection().from_arrow(t),
    "duckdb filtered": lambda t=TABLE: duckdb_connection().from_arrow(t).filter("unread is not null"),
    "duckdb decimal and enum": lambda t=TABLE: duckdb_connection().from_arrow(t).project(
        "*replace (price::decimal(9,2) as price,"
        " region::enum('north','south','ea,st','we\"st','Größe','','007','7') as region, code::hugeint::int as code)"
    ),
}  # fmt: skip
"""Every form as a function of an Arrow table with these columns, all or more."""


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def parquet(path: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def arrow_file(path: Path, table: pa.Table = TABLE, *, rows: int = N_ROWS, stream: bool = False) -> Path:
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def feather_file(path: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    feather.write_feather(table, path, **options)
    return path


def parquet_parts(folder: Path, ending: str = ".parquet", table: pa.Table = TABLE) -> Path:
    cut = len(table) // 4
    for key, start, stop in (("a", 0, cut), ("b", cut, cut), ("c", cut, cut + 1), ("d", cut + 1, len(table))):
        name = folder / f"part={key}" / f"part{ending}"
        name.parent.mkdir(parents=True, exist_ok=True)
        part = table.slice(start, max(stop - start, 0))
        if ending == ".parquet":
            pq.write_table(part, name, row_group_size=37)
        else:
            name.write_bytes(csv_text(part))
    return folder


def folder_with_leftovers(folder: Path, table: pa.Table = TABLE) -> Path:
    parquet_parts(folder, table=table)
    for name in ("_temporary/0/part.parquet", ".part.parquet.swp.parquet", "_metadata", "_SUCCESS", "notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((folder / "part=a" / "part.parquet").read_bytes())
    return folder


FILES: dict[str, Callable[..., Any]] = {
    "parquet": lambda tmp, t=TABLE: parquet(tmp / "t.parquet", t),
    "parquet as text": lambda tmp, t=TABLE: str(parquet(tmp / "t.pq", t)),
    "parquet small row groups": lambda tmp, t=TABLE: parquet(tmp / "t.parquet", t, row_group_size=5),
    "parquet no dictionary": lambda tmp, t=TABLE: parquet(tmp / "t.parquet", t, use_dictionary=False, compression="zstd"),
    "parquet with checksums": lambda tmp, t=TABLE: parquet(
        tmp / "t.parquet", t, write_page_checksum=True, data_page_version="2.0"),
    "parquet of polars": lambda tmp, t=TABLE: (pl.from_arrow(t).write_parquet(tmp / "t.parquet"), tmp / "t.parquet")[1],
    "parquet of pandas": lambda tmp, t=TABLE: (t.to_pandas().to_parquet(tmp / "t.parquet"), tmp / "t.parquet")[1],
    "parquet glob": lambda tmp, t=TABLE: str(parquet_parts(tmp, table=t) / "*" / "part.par*"),
    "parquet deep glob": lambda tmp, t=TABLE: str(parquet_parts(tmp, table=t) / "**" / "*.parquet"),
    "parquet folder": lambda tmp, t=TABLE: parquet_parts(tmp, table=t),
    "parquet folder with leftovers": folder_with_leftovers,
    "feather": lambda tmp, t=TABLE: feather_file(tmp / "t.feather", t),
    "feather plain, in small batches": lambda tmp, t=TABLE: feather_file(
        tmp / "t.feather", t, compression="uncompressed", chunksize=7),
    "feather of pandas": lambda tmp, t=TABLE: (t.to_pandas().to_feather(tmp / "t.feather"), tmp / "t.feather")[1],
    "feather of polars": lambda tmp, t=TABLE: (pl.from_arrow(t).write_ipc(tmp / "t.ipc"), tmp / "t.ipc")[1],
    "feather of dictionaries": lambda tmp, t=TABLE: feather_file(
        tmp / "t.feather", cast(t, region=pa.dictionary(pa.int8(), pa.string()))),
    "arrow file of small batches": lambda tmp, t=TABLE: arrow_file(tmp / "t.arrow", t, rows=7),
    "arrow stream": lambda tmp, t=TABLE: arrow_file(tmp / "t.arrows", t, rows=50, stream=True),
    "arrow folder": lambda tmp, t=TABLE: (
        arrow_file(tmp / "a.arrow", t.slice(0, 30)), feather_file(tmp / "b.feather", t.slice(30)), tmp)[-1],
    "dataset over parquet": lambda tmp, t=TABLE: ds.dataset(parquet_parts(tmp, table=t), partitioning="hive"),
    "dataset over feather": lambda tmp, t=TABLE: ds.dataset(feather_file(tmp / "t.feather", t, chunksize=33), format="feather"),
    "csv with an index": lambda tmp, t=TABLE: write(tmp / "t.csv", t.to_pandas().to_csv().encode()),
    "csv": lambda tmp, t=TABLE: write(tmp / "t.csv", csv_text(t)),
    "csv all in quotes": lambda tmp, t=TABLE: write(tmp / "t.CSV", csv_text(t, quote="all_valid")),
    "csv of pandas": lambda tmp, t=TABLE: write(tmp / "t.csv", plain_csv(t)),
    "csv of polars": lambda tmp, t=TABLE: write(tmp / "t.csv", pl.from_arrow(t).write_csv().encode()),
    "csv of duckdb": lambda tmp, t=TABLE: (duckdb_connection().from_arrow(t).write_csv(str(tmp / "t.csv")), tmp / "t.csv")[1],
    "csv windows": lambda tmp, t=TABLE: write(tmp / "t.csv", b"\xef\xbb\xbf" + csv_text(t).replace(b"\n", b"\r\n")),
    "csv last line open": lambda tmp, t=TABLE: write(tmp / "t.csv", csv_text(t).rstrip(b"\n")),
    "csv gz": lambda tmp, t=TABLE: write(tmp / "t.csv.gz", gzip.compress(csv_text(t))),
    "csv bz2": lambda tmp, t=TABLE: write(tmp / "t.csv.bz2", bz2.compress(csv_text(t))),
    "csv folder": lambda tmp, t=TABLE: parquet_parts(tmp, ".csv", t),
    "csv glob, some compressed": lambda tmp, t=TABLE: (
        write(tmp / "a.csv", csv_text(t.slice(0, 30))),
        write(tmp / "b.csv.gz", gzip.compress(csv_text(t.slice(30)))),
        str(tmp / "?.csv*"),
    )[-1],
    "csv cells of many lines": lambda tmp, t=TABLE: write(
        tmp / "t.csv", csv_text(with_column("unread", pa.array(["one\ntwo\r\n,\"three\"\n"] * len(t)), t), quote="all_valid")
    ),
    "csv odd header": lambda tmp, t=TABLE: write(
        tmp / "t.csv",
        b'"' + csv_text(t.rename_columns({"unread": 'un"r,e\nad'})).lstrip(b'"'),
    ),
    "tsv": lambda tmp, t=TABLE: write(tmp / "t.tsv", csv_text(t, "\t")),
    "text": lambda tmp, t=TABLE: write(tmp / "t.txt", csv_text(t)),
    "duckdb over parquet": lambda tmp, t=TABLE: duckdb_connection().read_parquet(str(parquet(tmp / "t.parquet", t))),
    "polars over parquet": lambda tmp, t=TABLE: pl.scan_parquet(parquet(tmp / "t.parquet", t)),
}  # fmt: skip


def a_third_of_forms(first: int) -> list[Any]:
    """Names of all forms, two thirds of them marked slow: ``test_sources`` reads each of them by default."""
    names = [*FORMS, *FILES]
    return [
        name if place % 3 == first else pytest.param(name, marks=pytest.mark.slow) for place, name in enumerate(names)
    ]
