"""Cleaning rules of a schema: every value by itself, alike in every kind of table, recorded in the release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.planning.preflight import preflight
from dpmoments.rows.rows import Rows
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Numeric("pay", 0, 200_000, "fill", fill=30_000, decimal=",", thousands=".", source="INC_TOT"),
    dpm.Numeric("age", 0, 100, "drop", missing_values=[999, "unknown"]),
    dpm.Categorical(
        "region", ["Ost", "West"], "zero", "zero", aliases={"Ost": ["East", "ost."]}, strip=True, casefold=True
    ),
    dpm.Categorical("code", [1, 2], "zero", "zero", aliases={1: ["one"], 2: [22]}),
    dpm.Boolean("smoker", "fill", fill=False, true_values=["ja", 1], false_values=["nein", 2]),
    dpm.Date("day", "2020-01-01", "2021-01-01", "fill", fill="2020-07-01", missing_values=["?", "1900-01-01"]),
    missing_values=[-9, "NA", ""],
    text_format=dpm.TextFormat(delimiter=";"),
)
WRITTEN = [
    ("1.234,5", "44", " OST ", "1", "ja", "2020-03-01"),
    ("-9", "999", "east", "one", "nein", "?"),
    ("", "unknown", "west", "22", "2", "1900-01-01"),
    ("NA", "7", "x", "-9", "1", "2020-02-01"),
    ("70.000", "0", "NA", "7", "-9", ""),
    ("12,5", "100", "WEST", "2", "nein", "2020-12-31"),
]
MEANT: list[tuple[Any, ...]] = [
    (1234.5, 44, "Ost", 1, True, "2020-03-01"),
    (30_000.0, None, "Ost", 1, False, "2020-07-01"),
    (30_000.0, None, "West", 2, False, "2020-07-01"),
    (30_000.0, 7, None, None, True, "2020-02-01"),
    (70_000.0, 0, None, None, False, "2020-07-01"),
    (12.5, 100, "West", 2, False, "2020-12-31"),
]
"""What the rules make of them, by hand."""
HELD = ("INC_TOT", "age", "region", "code", "smoker", "day")


def column(index: int) -> list[Any]:
    return [row[index] for row in WRITTEN]


def text_table() -> pa.Table:
    return pa.table({name: column(index) for index, name in enumerate(HELD) if name != "age"} | {"age": ages()})


def ages() -> pa.Array:
    return pa.array([None if text == "unknown" else int(text) for text in column(1)])


def of_objects() -> pd.DataFrame:
    """Numbers where a spreadsheet has some, text elsewhere."""
    numbers = {"1": 1, "2": 2, "22": 22, "-9": -9, "7": 7, "999": 999, "44": 44.0, "0": 0, "100": 100}
    cells = {
        name: pd.Series([numbers.get(text, text) for text in column(index)], dtype=object)
        for index, name in enumerate(HELD)
    }
    return pd.DataFrame(cells)


def csv(folder: Path) -> Path:
    pd.DataFrame(WRITTEN, columns=list(HELD)).to_csv(folder / "t.csv", index=False, sep=";")
    return folder / "t.csv"


def parquet(folder: Path) -> Path:
    pq.write_table(text_table(), folder / "t.parquet")
    return folder / "t.parquet"


FORMS: dict[str, Callable[[Path], Any]] = {
    "csv": csv,
    "parquet": parquet,
    "arrow": lambda _: text_table(),
    "polars": lambda _: pl.from_arrow(text_table()),
    "dictionaries": lambda _: pa.table(
        {name: text_table()[name].combine_chunks().dictionary_encode() for name in HELD}
    ),
    "pandas of objects": lambda _: of_objects(),
    "array": lambda _: of_objects().to_numpy(),
}
PLAIN = dpm.Schema(
    *(
        dpm.Numeric("pay", 0, 200_000),
        dpm.Numeric("age", 0, 100, "drop"),
        dpm.Categorical("region", ["Ost", "West"], "zero", "zero"),
        dpm.Categorical("code", [1, 2], "zero", "zero"),
        dpm.Boolean("smoker"),
        dpm.Date("day", "2020-01-01", "2021-01-01"),
    )
)


def meant() -> pa.Table:
    return pa.table({name: [row[index] for row in MEANT] for index, name in enumerate(PLAIN.names)})


@pytest.mark.parametrize("name", FORMS)
def test_the_rules_give_what_was_meant_in_every_form(name: str, tmp_path: Path) -> None:
    found = Rows.of(FORMS[name](tmp_path), SCHEMA).moments()
    assert found == Rows.of(meant(), PLAIN).moments()
    assert found.count == 4


@pytest.mark.parametrize("name", ["csv", "arrow", "pandas of objects"])
def test_preflight_reads_by_the_same_rules(name: str, tmp_path: Path) -> None:
    facts = preflight(FORMS[name](tmp_path), SCHEMA).private_facts()
    assert facts["rows_kept"] == 4
    columns = facts["columns"]
    assert {name: columns[name]["empty"] for name in columns} == {
        "pay": 3, "age": 2, "region": 1, "code": 1, "smoker": 1, "day": 3
    }  # fmt: skip
    assert columns["region"]["levels"] == {"Ost": 2, "West": 2}
    assert columns["code"]["levels"] == {"1": 2, "2": 2}
    assert all(columns[name]["unreadable"] == 0 for name in columns)


def test_a_column_has_its_own_format_in_a_file_of_another(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1.5;1.000,5\n2.5;\n")
    schema = dpm.Schema(
        dpm.Numeric("a", 0, 10),
        dpm.Numeric("b", 0, 2000, "fill", fill=0, decimal=",", thousands="."),
        text_format=dpm.TextFormat(delimiter=";"),
    )
    expected = Rows.of(np.array([[1.5, 1000.5], [2.5, 0.0]]), schema.without_cleaning)
    assert Rows.of(tmp_path / "t.csv", schema).moments() == expected.moments()


def test_numbers_of_the_schema_are_found_in_columns_of_small_floats() -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 200, "drop", missing_values=[99.9]))
    for kind in (pa.float64(), pa.float32(), pa.float16()):
        cells = np.array([1.0, 99.9]).astype(kind.to_pandas_dtype())
        for gap in ([], [np.nan]):
            held = np.append(cells, gap).astype(cells.dtype)
            assert [Rows.of(made, schema).count() for made in (pa.table({"a": held}), pd.DataFrame({"a": held}))] == [
                1,
                1,
            ]


def test_a_number_outside_the_codes_of_a_boolean_is_missing() -> None:
    smoker = dpm.Boolean("smoker", "drop", true_values=[1], false_values=[2])
    assert Rows.of(pa.table({"smoker": [1, 2, 9, 0]}), dpm.Schema(smoker)).count() == 3
    strict = dpm.Schema(dpm.Boolean("smoker", true_values=[1], false_values=[2]))
    with refused("has a cell that is missing, not finite or not readable, and", column="smoker"):
        Rows.of(pa.table({"smoker": [1, 2, 9]}), strict).count()


def test_a_filled_value_has_a_group() -> None:
    smoker = dpm.Boolean("smoker", "fill", fill=False, true_values=["ja"], false_values=["nein"])
    rows = Rows.of(
        pa.table({"smoker": ["ja", "nein", "?", None], "a": [1.0] * 4}), dpm.Schema(smoker, dpm.Numeric("a", 0, 2))
    )
    assert [rows.where("smoker", level).count() for level in (True, False)] == [1, 3]


def test_codes_are_applied_once(tmp_path: Path) -> None:
    """True is 2 and false is 1: what is read as 0 or 1 is no code any more."""
    (tmp_path / "t.csv").write_text("smoker\n2\n1\n2\n")
    schema = dpm.Schema(dpm.Boolean("smoker", true_values=[2], false_values=[1]))
    expected = Rows.of(pa.table({"smoker": [True, False, True]}), dpm.Schema(dpm.Boolean("smoker"))).moments()
    for table in (tmp_path / "t.csv", pa.table({"smoker": [2, 1, 2]}), pa.table({"smoker": [2.0, 1.0, 2.0]})):
        assert Rows.of(table, schema).moments() == expected
    mixed = pd.DataFrame({"smoker": pd.Series([2, False, True], dtype=object)})
    assert Rows.of(mixed, schema).moments() == expected


def test_the_levels_of_a_column_are_not_missing_values_of_the_table() -> None:
    schema = dpm.Schema(
        dpm.Categorical("country", ["NA", "DE"]),
        dpm.Categorical("code", [-9, 1]),
        dpm.Boolean("flag", true_values=[-9], false_values=[0]),
        dpm.Numeric("a", 0, 10, missing_values=[]),
        missing_values=[-9, "NA"],
    )
    assert [column.missing_values for column in schema.table_columns] == [(-9,), ("NA",), ("NA",), ()]
    assert dpm.Schema.from_dict(schema.to_dict()) == schema
    assert [entry.get("missing_values") for entry in schema.to_dict()["columns"]] == [None, None, None, []]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: dpm.Numeric("a", 0, 1, "fill"), "missing='fill' needs fill=, a public value that replaces"),
        (lambda: dpm.Numeric("a", 0, 1, fill=0.5), "goes with missing='fill', or with 'available' in a column"),
        (lambda: dpm.Numeric("a", 0, 1, "fill", fill=2), "is outside the bounds"),
        (lambda: dpm.Date("a", "2020-01-01", "2021-01-01", "fill", fill="2030-01-01"), "is outside the bounds"),
        (lambda: dpm.Numeric("a", 0, 1, thousands="."), "column"),
        (lambda: dpm.Numeric("a", 0, 1, missing_values="NA"), "must be a list of texts and numbers"),
        (
            lambda: dpm.Numeric("a", 0, 1, missing_values=[None]),
            "it must be a list of texts and finite numbers (in a file",
        ),
        (lambda: dpm.Numeric("a", 0, 1, source=""), "must be"),
        (lambda: dpm.Boolean("a", true_values=[1], false_values=[1]), "is both in true_values and in false_values"),
        (lambda: dpm.Boolean("a", true_values=[1], missing_values=[1]), "is in missing_values and means true or false"),
        (lambda: dpm.Boolean("a", "fill", fill=0.5), "must be"),  # type: ignore[arg-type]
        (
            lambda: dpm.Categorical("a", ["x", "X"], casefold=True),
            "levels, aliases, strip and casefold must leave every level",
        ),
        (
            lambda: dpm.Categorical("a", ["x", "y"], aliases={"x": ["z"], "y": ["z"]}),
            "levels, aliases, strip and casefold must leave every level",
        ),
        (lambda: dpm.Categorical("a", ["x"], aliases={"z": ["w"]}), "which is not one of its levels"),
        (lambda: dpm.Categorical("a", ["x"], aliases={"x": "w"}), "must be a list of texts: ["),
        (
            lambda: dpm.Categorical("a", ["x"], missing_values=["x"]),
            "is both in missing_values and a spelling of the level",
        ),
        (
            lambda: dpm.Schema(dpm.Numeric("a", 0, 1, source="b"), dpm.Numeric("b", 0, 1)),
            "two columns of the schema are read from the same column",
        ),
        (lambda: dpm.Schema(dpm.Numeric("a", 0, 1), text_format=";"), "must be"),  # type: ignore[arg-type]
        (lambda: dpm.TextFormat.from_dict({"delimeter": ";"}), "text_format has unknown entries"),
    ],
)
def test_contradictions_are_refused(make: Callable[[], Any], code: str) -> None:
    with refused(code, (TypeError, ValueError)):
        make()


def test_a_unit_is_not_a_column_under_another_name() -> None:
    schema = dpm.Schema(dpm.Numeric("years", 0, 100, source="age"))
    for name in ("age", "years"):
        with refused("is in the schema, so it would be a feature of the release"):
            Rows.of(pa.table({"age": [1.0]}), schema, privacy_unit=dpm.PrivacyUnit(name, 1))


def test_a_release_records_the_rules_and_the_format(tmp_path: Path) -> None:
    table = csv(tmp_path)
    made = dpm.release(table, SCHEMA, epsilon=1.0, insecure_seed=1)
    made.save(tmp_path / "r.json")
    assert dpm.load(tmp_path / "r.json").schema == SCHEMA
    table.write_text(table.read_text().replace(";", "|"))
    other = dpm.TextFormat(delimiter="|")
    assert dpm.release(table, SCHEMA, epsilon=1.0, text_format=other, insecure_seed=1).schema.text_format == other
    assert "missing values count as 30000" in made.privacy.describe()
    mean = dpm.release_mean(table, SCHEMA, epsilon=1.0, text_format=other, insecure_seed=1)
    assert mean.schema.text_format == other


def test_releases_of_tables_that_are_written_differently_are_pooled() -> None:
    plain = dpm.Schema(dpm.Numeric("pay", 0, 10), dpm.Categorical("region", ["Ost", "West"]))
    german = dpm.Schema(
        dpm.Numeric("pay", 0, 10, decimal=",", source="INC"),
        dpm.Categorical("region", ["Ost", "West"], aliases={"Ost": ["East"]}),
        missing_values=[-9],
    )
    tables = (
        (pa.table({"pay": [1.5, 2.5] * 50, "region": ["Ost", "West"] * 50}), plain),
        (pa.table({"INC": ["1,5", "2,5"] * 50, "region": ["East", "West"] * 50}), german),
    )
    made = [dpm.release(table, schema, epsilon=1.0, insecure_seed=seed) for seed, (table, schema) in enumerate(tables)]
    assert dpm.pool(made).schema.names == ("pay", "region")


def test_an_estimator_reads_by_the_schemas_names() -> None:
    from dpmoments.estimators import DPCovariance

    frame = pd.DataFrame({"pay": ["1,5", "2,5"] * 20})
    schema = dpm.Schema(dpm.Numeric("pay", 0, 10, decimal=",", source="INC"))
    fit = DPCovariance(schema=schema, epsilon=1.0, insecure_seed=0).fit(frame)
    assert fit.release_.schema.columns[0].source is None
