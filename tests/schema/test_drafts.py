"""Drafts of schemas: names and declared types of every table that is released, and nothing of its cells."""

from __future__ import annotations

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
from dpmoments.schema import Schema
from dpmoments.schema.document import parse_yaml
from support.said import refused

SECRET = "Schmidt-4711"


def frame(seed: int) -> pd.DataFrame:
    """Names and types are always these; cells, gaps, categories and lengths are not."""
    rng = np.random.default_rng(seed)
    n = 3 + 200 * seed
    levels = [f"{SECRET} {seed} {place}" for place in range(1 + 150 * seed)]
    return pd.DataFrame(
        {
            "age": rng.integers(0, 9, n),
            "pay": rng.normal(size=n) * 10.0 ** (9 * seed),
            "town": pd.Categorical(rng.choice(levels, n), categories=levels),
            "odd": pd.Series([SECRET if seed else 4711] * n, dtype=object),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), unit="D"),
            "smokes": rng.random(n) < 0.5,
            "visits": pd.array([None if seed else 3] * n, dtype="Int64"),
        }
    )


def arrow(seed: int) -> pa.Table:
    table = pa.Table.from_pandas(frame(seed).drop(columns="odd"), preserve_index=False)
    indices = pa.dictionary(pa.int8() if seed == 0 else pa.int32(), pa.string())
    return table.set_column(2, "town", table["town"].cast(pa.string()).cast(indices))


def file(folder: Path, name: str, write: Any) -> Path:
    folder.mkdir(exist_ok=True)
    write(folder / name)
    return folder / name


MAKE: dict[str, Any] = {
    "pandas": lambda seed, _: frame(seed),
    "pandas of arrow": lambda seed, _: frame(seed).drop(columns="odd").convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda seed, _: pl.from_arrow(arrow(seed)),
    "polars lazy": lambda seed, _: pl.from_arrow(arrow(seed)).lazy(),
    "polars enum": lambda seed, _: pl.DataFrame({"town": pl.Series([SECRET], dtype=pl.Enum([SECRET, str(seed)]))}),
    "arrow": lambda seed, _: arrow(seed),
    "arrow batch": lambda seed, _: arrow(seed).combine_chunks().to_batches()[0],
    "arrow decimal and structs": lambda seed, _: pa.table(
        {
            "m": pa.array([1], pa.decimal128(5 + seed, 2)),
            "s": pa.array([{f"{SECRET}{seed}": 1}]),
            "b": pa.array([b"x" * (1 + seed)], pa.binary(1 + seed)),
        }
    ),
    "dataset": lambda seed, _: ds.dataset(arrow(seed)),
    "duckdb": lambda seed, _: duckdb.connect().from_arrow(arrow(seed)),
    "duckdb enum": lambda seed, _: duckdb.connect().sql(
        f"select '{SECRET}'::enum('{SECRET}', 'x{seed}') as town, 1.5::decimal({9 + seed}, 2) as m"
    ),
    "parquet": lambda seed, tmp: file(tmp, "t.parquet", lambda path: frame(seed).drop(columns="odd").to_parquet(path)),
    "feather": lambda seed, tmp: file(tmp, "t.feather", lambda path: frame(seed).drop(columns="odd").to_feather(path)),
    "csv": lambda seed, tmp: file(tmp, "t.csv", lambda path: frame(seed).to_csv(path)),
    "folders": lambda seed, tmp: file(
        tmp / f"g={seed}", "t.parquet", lambda path: frame(seed)[["age"]].to_parquet(path)
    ).parents[1],
}


@pytest.mark.long(sets=7)
@pytest.mark.parametrize("name", MAKE)
def test_a_draft_is_a_function_of_names_and_types(name: str, tmp_path: Path) -> None:
    texts = []
    for seed in (0, 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        draft = Schema.draft(MAKE[name](seed, folder))
        texts.append(str(draft).replace(str(folder), "FOLDER"))
        assert SECRET not in str(draft) + repr(draft)
        assert draft.names == tuple(column["name"] for column in parse_yaml(str(draft))["columns"])
        (tmp_path / f"{seed}.yaml").unlink(missing_ok=True)
        draft.save(tmp_path / f"{seed}.yaml")
        with refused(".yaml: "):
            Schema.load(tmp_path / f"{seed}.yaml")
        with refused("exists already", FileExistsError):
            draft.save(tmp_path / f"{seed}.yaml")
    assert texts[0] == texts[1]


def test_the_kinds_follow_from_the_types(tmp_path: Path) -> None:
    kinds = {column["name"]: column["kind"] for column in parse_yaml(str(Schema.draft(frame(0))))["columns"]}
    assert kinds == {
        "age": "numeric",
        "pay": "numeric",
        "town": "categorical",
        "odd": None,
        "day": "date",
        "smokes": "boolean",
        "visits": "numeric",
    }
    text = str(Schema.draft(frame(0)))
    assert "the frame says int64; codes? then categorical" in text
    assert "the frame says object, and no cell is looked at" in text
    for name, table in (
        ("polars", pl.from_arrow(arrow(0))),
        ("duckdb", duckdb.connect().from_arrow(arrow(0))),
        ("arrow", arrow(0)),
    ):
        found = {column["name"]: column["kind"] for column in parse_yaml(str(Schema.draft(table)))["columns"]}
        assert found == {column: kind for column, kind in kinds.items() if column != "odd"}, name
    filled = (
        str(Schema.draft(frame(0)[["day"]]))
        .replace("lower:\n", "lower: 2020-01-01\n")
        .replace("upper:\n", "upper: 2023-01-01\n")
    )
    (tmp_path / "s.yaml").write_text(filled)
    assert Rows.of(frame(0), Schema.load(tmp_path / "s.yaml")).count() == 3


def test_columns_without_names_are_left_out(tmp_path: Path) -> None:
    frame(0)[["age"]].to_csv(tmp_path / "t.csv")
    indexed = frame(0)[["age"]].rename(columns={"age": "age"})
    indexed[7] = 1.0
    unnamed = pa.table({"age": [1], "__index_level_0__": [0]})
    for table in (tmp_path / "t.csv", indexed, unnamed):
        draft = Schema.draft(table)
        assert draft.names == ("age",)
        assert "# left out: columns without a name, 1" in str(draft)
    assert "left out" not in str(Schema.draft(frame(0)))


def test_text_files_of_another_format(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("größe;alter\n1;2\n".encode("utf-16"))
    stated = dpm.TextFormat(delimiter=";", encoding="utf-16")
    assert Schema.draft(tmp_path / "t.csv", text_format=stated).names == ("größe", "alter")
    with refused(" cannot be read: "):
        Schema.draft(tmp_path / "t.csv")
    (tmp_path / "u.csv").write_text(f"a;b\n{SECRET};2\n")
    with refused("its first line has") as caught:
        Schema.draft(tmp_path / "u.csv")
    assert SECRET not in str(caught.value)
    assert Schema.draft(tmp_path / "u.csv", text_format=dpm.TextFormat(delimiter=",")).names == (
        "a;b",
    )  # it was stated
    frame(0)[["age"]].to_parquet(tmp_path / "t.parquet")
    with refused("which is not a text file: leave it out"):
        Schema.draft(tmp_path / "t.parquet", text_format=stated)


def test_a_filled_draft_is_loaded_with_its_text_format(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1;ja\n")
    stated = dpm.TextFormat(
        delimiter=";", decimal=",", thousands=".", nulls=["-9"], true=["ja"], false=["nein"], quote=None
    )
    drafted = str(Schema.draft(tmp_path / "t.csv", text_format=stated))
    filled = drafted.partition("\ncolumns:\n")[0] + "\ncolumns:\n  - {name: b, kind: boolean}\n"
    (tmp_path / "s.yaml").write_text(filled)
    assert Schema.load(tmp_path / "s.yaml").text_format == stated


def test_true_and_false_without_quotes_name_options_of_a_text_format() -> None:
    assert dpm.TextFormat.from_dict(parse_yaml("{true: [ja], 'false': [nein]}")) == dpm.TextFormat(
        true=["ja"], false=["nein"]
    )
    with refused("text_format has unknown entries"):  # which of the two counts?
        dpm.TextFormat.from_dict(parse_yaml("{true: [ja], 'true': [oui]}"))


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (np.zeros((2, 2)), "an array's columns have no names to draft from: write the"),
        ([1], "pass a pandas, Polars or Arrow frame, a path or glob of"),
        (pd.DataFrame({3: [1]}), "has no columns with names"),
        (pd.concat([frame(0), frame(0)], axis=1), "has two columns with the same name: rename one"),
    ],
    ids=["array", "list", "numbers for names", "repeated"],
)
def test_what_cannot_be_drafted(data: Any, code: str) -> None:
    with refused(code, (TypeError, ValueError)):
        Schema.draft(data)


def test_feather_version_1_and_damage_are_refused(tmp_path: Path) -> None:
    schema = Schema(dpm.Numeric("age", 0, 9))
    path = tmp_path / "t.feather"
    for content in (b"FEA1 and more", b"ARROW1\0\0 and then nothing", b"", SECRET.encode()):
        path.write_bytes(content)
        for read in (lambda: Rows.of(path, schema), lambda: Schema.draft(path)):
            with refused(" cannot be read: ") as caught:
                read()
            assert SECRET not in str(caught.value)


@pytest.mark.long
def test_cells_in_the_names_of_folders(tmp_path: Path) -> None:
    table = pa.table(
        {
            "pay": [1.0, 2, 3, 50],
            "year": [2020, 2020, 2021, None],
            "town": ["a b", "ü", "a b", None],
            "day": ["2020-01-01"] * 4,
        }
    )
    flavor = ds.partitioning(
        pa.schema([("year", pa.int64()), ("town", pa.string()), ("day", pa.string())]), flavor="hive"
    )
    schema = Schema(
        dpm.Numeric("pay", 0, 10),
        dpm.Numeric("year", 2019, 2022, missing="center"),
        dpm.Categorical("town", ["a b", "ü"], missing="zero"),
        dpm.Date("day", "2019-01-01", "2021-01-01"),
    )
    expected = Rows.of(table, schema).moments()
    for kind in ("parquet", "feather"):
        ds.write_dataset(table, tmp_path / kind, format=kind, partitioning=flavor)
        glob = str(tmp_path / kind / "year=*" / "**" / f"*.{kind}")
        for data in (tmp_path / kind, glob, ds.dataset(tmp_path / kind, format=kind, partitioning=flavor)):
            assert Rows.of(data, schema).moments() == expected
    of_folders_alone = Schema(dpm.Numeric("year", 2019, 2022, missing="drop"))
    assert Rows.of(tmp_path / "parquet", of_folders_alone).moments() == Rows.of(table, of_folders_alone).moments()
    with refused("has a cell that is missing, not finite or not readable, and", column="town") as caught:
        Rows.of(tmp_path / "parquet", Schema(dpm.Numeric("town", 0, 1))).moments()
    assert "ü" not in str(caught.value)
    with refused("rename the column in the table or, if every file has"):  # one file alone is in no folder
        Rows.of(next((tmp_path / "parquet").rglob("*.parquet")), schema)


def test_files_of_several_kinds_are_one_table_or_refused(tmp_path: Path) -> None:
    """Types come from the file that declares them, whichever is first."""
    (tmp_path / "a.csv").write_text("age,region\n1,a\n")
    pq.write_table(pa.table({"region": ["a"], "age": [1.0]}), tmp_path / "b.parquet")
    assert "kind: numeric  # the file says double" in str(dpm.Schema.draft(tmp_path))
    pq.write_table(pa.table({"age": [1.0]}), tmp_path / "b.parquet")
    with refused("files of different endings have different columns, such as"):
        dpm.Schema.draft(tmp_path)


def test_columns_that_another_file_lacks_are_named(tmp_path: Path) -> None:
    for year, names in ((2023, "age,cost"), (2024, "age,total"), (2025, "cost,age"), (2026, "age")):
        (tmp_path / f"visits_{year}.csv").write_text(f"{names}\n1,2\n")
    drafted = dpm.Schema.draft(tmp_path)
    assert dict(drafted.absent) == {"cost": tmp_path / "visits_2024.csv"}
    assert 'name: "cost"  # not in "visits_2024.csv"' in str(drafted)
    assert not dpm.Schema.draft(tmp_path / "visits_2023.csv").absent
