"""Excel, Stata, SPSS and SAS: types, value labels, dates, headers; and folders of several kinds."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.rows.rows import Rows
from support.said import refused
from support.workbooks import open_document, workbook

pyreadstat = pytest.importorskip("pyreadstat")
pytest.importorskip("python_calamine")

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 120, "drop"),
    dpm.Categorical("region", ["north", "south"], "zero", "zero"),
    dpm.Boolean("smoker", "drop"),
    dpm.Date("seen", "2020-01-01", "2021-01-01", "fill", fill="2020-07-01"),
)
ROWS = [
    (30.5, "north", True, dt.datetime(2020, 2, 1)),
    (None, "south", False, dt.datetime(2020, 3, 1)),
    (61, "elsewhere", False, None),
    (44, None, True, dt.datetime(2020, 12, 24)),
]


def expected() -> object:
    names = SCHEMA.names
    table = pa.table({name: [row[index] for row in ROWS] for index, name in enumerate(names)})
    return Rows.of(table, SCHEMA).moments()


def test_a_workbook_is_read_cell_by_cell(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", [["unread", *SCHEMA.names], *(["secret", *row] for row in ROWS)])
    assert Rows.of(path, SCHEMA).moments() == expected()
    assert dpm.Schema.draft(path).names == ("unread", *SCHEMA.names)


def test_empty_rows_of_a_workbook_are_no_rows(tmp_path: Path) -> None:
    empty = [None] * 4
    path = workbook(tmp_path / "t.xlsx", [list(SCHEMA.names), ROWS[0], empty, *ROWS[1:], empty])
    assert Rows.of(path, SCHEMA).moments() == expected()
    assert Rows.of(path, SCHEMA).table_size() == 4
    # so that a row replaced by an empty one would change a number that replace_one publishes
    for data in (path, tmp_path, dpm.EngineFiles(path, "dask")):
        with refused("under replace_one the number of rows is public"):
            Rows.of(data, SCHEMA, neighbors="replace_one")


def test_a_table_inside_a_sheet(tmp_path: Path) -> None:
    """Titles above the names, units below them, and names merged over two lines of the header."""
    header = [["Ward 7", None, None, None], ["age", "region", "habits", None], [None, None, "smoker", "seen"]]
    path = workbook(tmp_path / "t.xlsx", [*header, ["years", "", "", ""], *ROWS], merged=["A2:A3", "B2:B3", "C2:D2"])
    inside = dpm.TextFormat(sheet="people", skip_lines=2, skip_below=1)
    assert dpm.Schema.draft(path, text_format=inside).names == SCHEMA.names
    assert Rows.of(path, SCHEMA, text_format=inside).moments() == expected()
    assert (
        Rows.of(path, SCHEMA.with_text_format(dpm.TextFormat(sheet=1, skip_lines=2, skip_below=1))).moments()
        == expected()
    )
    with refused("has no sheet 'persons': its sheets are 'people'"):
        dpm.Schema.draft(path, text_format=dpm.TextFormat(sheet="persons"))
    with refused("which state their own format"):
        Rows.of(path, SCHEMA, text_format=dpm.TextFormat(delimiter=";"))
    with refused("must be the name of a sheet"):
        dpm.TextFormat(sheet=0)


def test_a_sheet_of_an_open_document(tmp_path: Path) -> None:
    sheets = {"notes": [["see the other sheet"]], "people": [["age"], [30.5], [None], [61]]}
    path = open_document(tmp_path / "t.ods", sheets)
    schema = dpm.Schema(SCHEMA.columns[0], text_format=dpm.TextFormat(sheet="people"))
    assert Rows.of(path, schema).table_size() == 2
    assert dpm.Schema.draft(path).names == ("see the other sheet",)


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_labels_are_levels_of_text_and_codes_are_levels_of_integers(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{ending}"
    frame = pd.DataFrame({"region": [1.0, 2.0, 3.0, float("nan"), 2.0]})
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav}[ending]
    write(frame, str(path), variable_value_labels={"region": {1: "north", 2: "south"}})
    by_label = dpm.Schema(dpm.Categorical("region", ["north", "south", "3"], "zero", "zero"))
    by_code = dpm.Schema(dpm.Categorical("region", [1, 2, 3], "zero", "zero"))
    sums = Rows.of(pa.table({"region": ["north", "south", "3", None, "south"]}), by_label).moments().sum.tolist()
    for schema in (by_label, by_code):
        assert Rows.of(path, schema).moments().sum.tolist() == sums


@pytest.mark.parametrize("ending", [".dta", ".sav", ".xpt"])
def test_dates_are_those_of_the_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{ending}"
    days = [dt.date(2020, 2, 1), dt.date(2020, 12, 24), dt.date(1950, 1, 1)]
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}[ending]
    write(pd.DataFrame({"seen": days, "age": [1.0, 2.0, 3.0]}), str(path))
    schema = dpm.Schema(SCHEMA.columns[3], SCHEMA.columns[0])
    assert (
        Rows.of(path, schema).moments() == Rows.of(pa.table({"seen": days, "age": [1.0, 2.0, 3.0]}), schema).moments()
    )


def test_files_are_read_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"age": [float(row) for row in range(100)]})
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"))
    schema = dpm.Schema(SCHEMA.columns[0])
    whole = Rows.of(frame, schema).moments()
    for rows in (1, 7, 50, 100, 101):
        monkeypatch.setattr("dpmoments.rows.sources.office._ROWS_PER_READ", rows)
        assert Rows.of(tmp_path / "t.sav", schema).moments() == whole


def test_a_folder_of_several_kinds_is_one_table(tmp_path: Path) -> None:
    names = list(SCHEMA.names)
    workbook(tmp_path / "a.xlsx", [names, *ROWS[:1]])
    (tmp_path / "b.csv").write_text("age;region;smoker;seen\n;south;false;2020-03-01\n")
    pq.write_table(
        pa.table({name: [row[index] for row in ROWS[2:]] for index, name in enumerate(names)}), tmp_path / "c.parquet"
    )
    schema = SCHEMA.with_text_format(dpm.TextFormat(delimiter=";"))
    assert Rows.of(tmp_path, schema).moments() == expected()
    facts = dpm.preflight(tmp_path, schema).private_facts()
    assert facts["rows"] == 4
    assert facts["columns"]["age"]["empty"] == 1
    assert facts["columns"]["region"]["unknown"] == 1
    restricted = Rows.of(tmp_path, schema).where("smoker", True)
    assert restricted.count() == 2


def test_damaged_files_are_refused_without_their_content(tmp_path: Path) -> None:
    for name in ("t.xlsx", "t.dta", "t.sav", "t.sas7bdat", "t.xpt"):
        (tmp_path / name).write_bytes(b"secret secret secret")
        for read in (lambda path: Rows.of(path, SCHEMA), dpm.Schema.draft):
            with refused((" cannot be read: ", "cannot be read: damaged, truncated, or not")) as caught:
                read(tmp_path / name)
            assert "secret" not in str(caught.value)
