"""One small table in every form it can come in, and what its moments are by a slow, obvious reference."""

from __future__ import annotations

import bz2
import gzip
import math
from collections.abc import Callable
from decimal import Decimal
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

import dpmoments as dpm
from dpmoments.cells.columns import ColumnTable, declared_column
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.moments import Moments
from dpmoments.schema import Schema

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
            for value, offset, unit in zip(kept[column.name], column.offset(mean), column.unit(mean), strict=True)
        ]
        encoded.append([value / schema.row_norm for value in values])
        dropped.append(drop)
    return np.array(encoded).reshape(len(encoded), schema.n_features), np.array(dropped, dtype=bool)


def reference_moments(table: pa.Table, schema: Schema = SCHEMA) -> Moments:
    rows, dropped = reference_rows(table, schema)
    rows[dropped] = np.nan
    return exact_moments([rows], schema.n_features, missing="drop", threads=1).without_dropped()


EXPECTED = reference_moments(TABLE)


def with_column(name: str, column: Any, table: pa.Table = TABLE) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def cast(**types: pa.DataType) -> pa.Table:
    table = TABLE
    for name, kind in types.items():
        table = with_column(name, table[name].cast(kind), table)
    return table


def objects(name: str) -> np.ndarray:
    return np.array(TABLE[name].to_pylist(), dtype=object)


def decimals(table: pa.Table = TABLE) -> list[Decimal | None]:
    return [None if cell is None else Decimal(str(cell)) for cell in table["price"].to_pylist()]


def csv_text(table: pa.Table, delimiter: str = ",", *, quote: str = "needed") -> bytes:
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(table, sink, pa_csv.WriteOptions(delimiter=delimiter, quoting_style=quote))
    return bytes(sink.getvalue())


def plain_csv(table: pa.Table) -> bytes:
    """As pandas writes a frame: floats for integers with gaps, True and False, quotes where needed."""
    return table.to_pandas().to_csv(index=False).encode()


FORMS: dict[str, Callable[[], Any]] = {
    "arrow": lambda: TABLE,
    "arrow chunked": lambda: pa.concat_tables([TABLE.slice(0, 7), TABLE.slice(7, 0), TABLE.slice(7, 300), TABLE.slice(307)]),
    "arrow batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "arrow sliced": lambda: pa.concat_tables([make_table(50, 9), TABLE]).combine_chunks().slice(50),
    "arrow large_string": lambda: cast(region=pa.large_string()),
    "arrow string_view": lambda: cast(region=pa.string_view()),
    "arrow dictionary": lambda: cast(region=pa.dictionary(pa.int8(), pa.string())),
    "arrow dictionary of integers": lambda: with_column("code", TABLE["code"].dictionary_encode()),
    "arrow dictionaries that differ": lambda: pa.concat_tables(
        [
            with_column("region", part["region"].combine_chunks().dictionary_encode(), part)
            for part in (TABLE.slice(0, 90), TABLE.slice(90))
        ]
    ),
    "arrow dictionary with a null": lambda: with_column(
        "region",
        pa.DictionaryArray.from_arrays(
            pc.fill_null(pc.index_in(TABLE["region"].combine_chunks(), pa.array(REGIONS)), 6), pa.array([*REGIONS, None])
        ),
    ),
    "arrow dictionary of views": lambda: with_column(
        "region",
        pa.DictionaryArray.from_arrays(
            pc.index_in(TABLE["region"].combine_chunks(), pa.array(REGIONS)), pa.array(REGIONS, pa.string_view())
        ),
    ),
    "arrow runs": lambda: with_column("region", pc.run_end_encode(TABLE["region"].combine_chunks())),
    "arrow decimal": lambda: with_column("price", pa.array(decimals(), pa.decimal128(9, 2))),
    "arrow wide decimal": lambda: with_column("price", pa.array(decimals(), pa.decimal256(60, 30))),
    "arrow decimal in a dictionary": lambda: with_column("price", pa.array(decimals(), pa.decimal128(9, 2)).dictionary_encode()),
    "arrow small integers": lambda: cast(visits=pa.int8(), code=pa.uint8(), member=pa.int8()),
    "arrow integers as floats": lambda: cast(visits=pa.float32(), code=pa.float64()),
    "arrow half floats": lambda: with_column("visits", pa.array(TABLE["visits"].to_numpy().astype(np.float16))),
    "arrow digits": lambda: cast(code=pa.string()),
    "pandas": lambda: TABLE.to_pandas(),
    "pandas nullable": lambda: TABLE.to_pandas().convert_dtypes(),
    "pandas of arrow": lambda: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas categories": lambda: TABLE.to_pandas().astype({"region": "category", "code": "category"}),
    "pandas odd index": lambda: TABLE.to_pandas().set_index(pd.Index([1] * N_ROWS)),
    "pandas columns shuffled": lambda: TABLE.to_pandas()[["code", "unread", "region", "member", "price", "visits", "age"]],
    "pandas objects": lambda: pd.DataFrame({name: pd.Series(objects(name), dtype=object) for name in SCHEMA.names}),
    "pandas decimals": lambda: TABLE.to_pandas().assign(price=pd.Series(decimals(), dtype=object)),
    "pandas another column twice": lambda: pd.concat([TABLE.to_pandas(), TABLE.to_pandas()[["unread"]]], axis=1),
    "columns of several libraries": lambda: ColumnTable({
        name: declared_column(column, name)
        for name, column in {
            "age": TABLE["age"],
            "visits": TABLE["visits"].to_numpy(),
            "price": decimals(),
            "member": objects("member"),
            "region": pl.from_arrow(TABLE["region"]),
            "code": TABLE["code"].to_pandas().astype("Int64"),
        }.items()
    }),
    "arrow dataset": lambda: ds.dataset(TABLE),
    "arrow dataset filtered": lambda: ds.dataset(
        pa.concat_tables([TABLE, with_column("unread", pa.array(["other"] * N_ROWS))])).filter(ds.field("unread") != "other"),
    "polars": lambda: pl.from_arrow(TABLE),
    "polars lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "polars categories": lambda: pl.from_arrow(TABLE).with_columns(pl.col("region").cast(pl.Categorical)),
    "polars enum": lambda: pl.from_arrow(TABLE).with_columns(pl.col("region").cast(pl.Enum(REGIONS))),
    "polars decimals": lambda: pl.from_arrow(with_column("price", pa.array(decimals(), pa.decimal128(9, 2)))),
    "polars objects": lambda: pl.from_arrow(TABLE).with_columns(pl.Series("code", TABLE["code"].to_pylist(), dtype=pl.Object)),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
    "duckdb filtered": lambda: duckdb.connect().from_arrow(TABLE).filter("unread is not null"),
    "duckdb decimal and enum": lambda: duckdb.connect().from_arrow(TABLE).project(
        "*replace (price::decimal(9,2) as price, region::enum('north','south','ea,st','we\"st','Größe','') as region,"
        " code::hugeint::int as code)"
    ),
}  # fmt: skip


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


def parquet_parts(folder: Path, ending: str = ".parquet") -> Path:
    for start, stop in ((0, 100), (100, 100), (100, 101), (101, N_ROWS)):
        name = folder / f"part={'abcd'[len(list(folder.iterdir()))]}" / f"part{ending}"
        name.parent.mkdir(parents=True, exist_ok=True)
        part = TABLE.slice(start, stop - start)
        if ending == ".parquet":
            pq.write_table(part, name, row_group_size=37)
        else:
            name.write_bytes(csv_text(part))
    return folder


def folder_with_leftovers(folder: Path) -> Path:
    parquet_parts(folder)
    for name in ("_temporary/0/part.parquet", ".part.parquet.swp.parquet", "_metadata", "_SUCCESS", "notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((folder / "part=a" / "part.parquet").read_bytes())
    return folder


FILES: dict[str, Callable[[Path], Any]] = {
    "parquet": lambda tmp: parquet(tmp / "t.parquet"),
    "parquet as text": lambda tmp: str(parquet(tmp / "t.pq")),
    "parquet small row groups": lambda tmp: parquet(tmp / "t.parquet", row_group_size=1),
    "parquet no dictionary": lambda tmp: parquet(tmp / "t.parquet", use_dictionary=False, compression="zstd"),
    "parquet with checksums": lambda tmp: parquet(tmp / "t.parquet", write_page_checksum=True, data_page_version="2.0"),
    "parquet of polars": lambda tmp: (pl.from_arrow(TABLE).write_parquet(tmp / "t.parquet"), tmp / "t.parquet")[1],
    "parquet of pandas": lambda tmp: (TABLE.to_pandas().to_parquet(tmp / "t.parquet"), tmp / "t.parquet")[1],
    "parquet glob": lambda tmp: str(parquet_parts(tmp) / "*" / "part.par*"),
    "parquet deep glob": lambda tmp: str(parquet_parts(tmp) / "**" / "*.parquet"),
    "parquet folder": parquet_parts,
    "parquet folder with leftovers": folder_with_leftovers,
    "feather": lambda tmp: feather_file(tmp / "t.feather"),
    "feather plain, in small batches": lambda tmp: feather_file(tmp / "t.feather", compression="uncompressed", chunksize=7),
    "feather of pandas": lambda tmp: (TABLE.to_pandas().to_feather(tmp / "t.feather"), tmp / "t.feather")[1],
    "feather of polars": lambda tmp: (pl.from_arrow(TABLE).write_ipc(tmp / "t.ipc"), tmp / "t.ipc")[1],
    "feather of dictionaries": lambda tmp: feather_file(tmp / "t.feather", cast(region=pa.dictionary(pa.int8(), pa.string()))),
    "arrow file of small batches": lambda tmp: arrow_file(tmp / "t.arrow", rows=3),
    "arrow stream": lambda tmp: arrow_file(tmp / "t.arrows", rows=50, stream=True),
    "arrow folder": lambda tmp: (
        arrow_file(tmp / "a.arrow", TABLE.slice(0, 30)), feather_file(tmp / "b.feather", TABLE.slice(30)), tmp)[-1],
    "dataset over parquet": lambda tmp: ds.dataset(parquet_parts(tmp), partitioning="hive"),
    "dataset over feather": lambda tmp: ds.dataset(feather_file(tmp / "t.feather", chunksize=33), format="feather"),
    "csv with an index": lambda tmp: write(tmp / "t.csv", TABLE.to_pandas().to_csv().encode()),
    "csv": lambda tmp: write(tmp / "t.csv", csv_text(TABLE)),
    "csv all in quotes": lambda tmp: write(tmp / "t.CSV", csv_text(TABLE, quote="all_valid")),
    "csv of pandas": lambda tmp: write(tmp / "t.csv", plain_csv(TABLE)),
    "csv of polars": lambda tmp: write(tmp / "t.csv", pl.from_arrow(TABLE).write_csv().encode()),
    "csv of duckdb": lambda tmp: (duckdb.connect().from_arrow(TABLE).write_csv(str(tmp / "t.csv")), tmp / "t.csv")[1],
    "csv windows": lambda tmp: write(tmp / "t.csv", b"\xef\xbb\xbf" + csv_text(TABLE).replace(b"\n", b"\r\n")),
    "csv last line open": lambda tmp: write(tmp / "t.csv", csv_text(TABLE).rstrip(b"\n")),
    "csv gz": lambda tmp: write(tmp / "t.csv.gz", gzip.compress(csv_text(TABLE))),
    "csv bz2": lambda tmp: write(tmp / "t.csv.bz2", bz2.compress(csv_text(TABLE))),
    "csv folder": lambda tmp: parquet_parts(tmp, ".csv"),
    "csv glob, some compressed": lambda tmp: (
        write(tmp / "a.csv", csv_text(TABLE.slice(0, 30))),
        write(tmp / "b.csv.gz", gzip.compress(csv_text(TABLE.slice(30)))),
        str(tmp / "?.csv*"),
    )[-1],
    "csv cells of many lines": lambda tmp: write(
        tmp / "t.csv", csv_text(with_column("unread", pa.array(["one\ntwo\r\n,\"three\"\n"] * N_ROWS)), quote="all_valid")
    ),
    "csv odd header": lambda tmp: write(
        tmp / "t.csv", b'"' + csv_text(TABLE.rename_columns([*SCHEMA.names, 'un"r,e\nad'])).lstrip(b'"')
    ),
    "tsv": lambda tmp: write(tmp / "t.tsv", csv_text(TABLE, "\t")),
    "text": lambda tmp: write(tmp / "t.txt", csv_text(TABLE)),
    "duckdb over parquet": lambda tmp: duckdb.connect().read_parquet(str(parquet(tmp / "t.parquet"))),
    "polars over parquet": lambda tmp: pl.scan_parquet(parquet(tmp / "t.parquet")),
}  # fmt: skip
