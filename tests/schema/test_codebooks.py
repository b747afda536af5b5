"""Codebooks of five formats and of sheets: what a schema takes from them, against keys that were written by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import dpmoments as dpm
from dpmoments.schema import Schema
from dpmoments.schema.document import parse_yaml
from dpmoments.schema.patterns import expanded
from support.said import refused
from support.workbooks import workbook

CODEBOOKS = Path(__file__).parent / "codebooks"
KEYS: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load((CODEBOOKS / "keys.yaml").read_text())
JUDGED = ("kind", "lower", "upper", "levels", "true_values", "false_values", "missing_values", "format")


def drafted(names: list[str], *codebooks: Path | str) -> dict[str, dict[str, Any]]:
    """The entries of a draft, by column, of a table with these names."""
    table = pd.DataFrame({name: pd.Series([], dtype=object) for name in names})
    columns = expanded(parse_yaml(str(Schema.draft(table, codebook=list(codebooks)))))["columns"]
    return {column["name"]: column for column in columns}


def judged(key: dict[str, dict[str, Any]], found: dict[str, dict[str, Any]]) -> tuple[int, int, list[str]]:
    """Columns that a key describes completely, those of them that are complete, and columns with a wrong value."""
    stated = {name: {entry: value for entry, value in found[name].items() if entry in JUDGED} for name in key}
    complete = [name for name in key if None not in key[name].values()]
    wrong = [
        name
        for name, entries in stated.items()
        if any(value is not None and key[name].get(entry) != value for entry, value in entries.items())
    ]
    return len(complete), sum(stated[name] == key[name] for name in complete), wrong


@pytest.mark.parametrize("name", KEYS)
def test_a_codebook_of_other_people_gives_what_its_key_says(name: str) -> None:
    key = KEYS[name]
    found = drafted(list(key), CODEBOOKS / name)
    n_complete, n_found, wrong = judged(key, found)
    assert n_found == n_complete
    assert not wrong
    if n_complete:
        first = next(column for column in key if None not in key[column].values())
        assert judged(key, found | {first: found[first] | {"missing_values": [-7]}})[2] == [first]


def test_all_columns_that_are_described_completely_make_a_schema() -> None:
    for name, key in KEYS.items():
        complete = [column for column in key if None not in key[column].values()]
        if complete:
            assert sorted(Schema.from_codebook(CODEBOOKS / name, complete).names) == sorted(complete)
    assert Schema.from_codebook(CODEBOOKS / "languages_csvw.json").names == ("Latitude", "Longitude")
    with refused("has no levels", names=("Name",)):
        Schema.from_codebook(CODEBOOKS / "languages_csvw.json", ["Name"])
    with refused("describes no column 'latitude'. Did you mean 'Latitude'?"):
        Schema.from_codebook(CODEBOOKS / "languages_csvw.json", ["latitude"])
    with refused("describes no column completely"):
        Schema.from_codebook(CODEBOOKS / "titanic_croissant.json")


def test_a_schema_comes_back_from_its_frictionless_form(tmp_path: Path) -> None:
    schema = Schema(
        dpm.Numeric(
            "pay",
            0,
            5000,
            decimal=",",
            thousands=".",
            description="Pay in euros",
            missing_values=[-9],
            missing="available",
        ),
        dpm.Date("seen", "2020-01-01", "2021-01-01", format="%d.%m.%Y"),
        dpm.Boolean("smoker", true_values=[1], false_values=[2]),
        dpm.Categorical("region", ["north", "south", "east"], missing_values=["k.A."], missing="available"),
        dpm.Categorical("grade", [1, 2, 3, 4]),
    )
    (tmp_path / "s.json").write_text(json.dumps(schema.to_frictionless()))
    assert Schema.from_codebook(tmp_path / "s.json") == schema


def test_conflicts_are_blank_and_name_their_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,label,min,max\nage,Age,18,99\npay,Pay,0,10\n")
    (tmp_path / "b.json").write_text(
        '{"fields": [\n{"name": "age", "type": "integer", "constraints": {"minimum": 16, "maximum": 99}}]}'
    )
    text = str(
        Schema.draft(pa.table({"age": [1.0], "weight": [1.0]}), codebook=[tmp_path / "a.csv", tmp_path / "b.json"])
    )
    assert "lower:  # conflict: 18 (a.csv, line 2) or 16 (b.json, line 2)" in text
    assert "upper: 99  # a.csv, line 2" in text
    assert '# Described in a.csv, but not a column of the table: "pay"' in text
    assert '# A column of the table, but not described in b.json: "weight"' in text
    with refused("has no bounds", names=("lower",)):
        (tmp_path / "s.yaml").write_text(text)
        Schema.load(tmp_path / "s.yaml")


def test_types_of_the_table_that_a_codebook_contradicts_are_a_conflict(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,type,min,max\nage,integer,0,120\n")
    text = str(Schema.draft(pa.table({"age": ["30"]}), codebook=tmp_path / "a.csv"))
    assert "kind:  # conflict: numeric (a.csv, line 2) or categorical (the frame says string)" in text


SHEET = [
    ["Variable", "Label", "Type", "Min", "Max", "Values", "Missing"],
    ["age", "Age in years", "integer", "18", "99", "", "-9; -8"],
    ["sex", "", "factor", "", "", "1=male; 2=female; 9=refused", ""],
    ["region", "", "factor", "", "", "north, south, east", ""],
    ["score", "", "number", "", "", "0 to 10", ""],
    ["smoker", "", "logical", "", "", "", ""],
]


@pytest.mark.parametrize("ending", ["csv", "tsv", "xlsx"])
def test_a_sheet_is_a_codebook(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"codebook.{ending}"
    if ending == "xlsx":
        pytest.importorskip("python_calamine")
        workbook(path, [[cell or None for cell in row] for row in SHEET])
    else:
        pd.DataFrame(SHEET[1:], columns=SHEET[0]).to_csv(path, index=False, sep="," if ending == "csv" else "\t")
    assert Schema.from_codebook(path) == Schema(
        dpm.Numeric("age", 18, 99, missing="available", missing_values=[-9, -8]),
        dpm.Boolean("sex", true_values=[2], false_values=[1], missing_values=[9], missing="available"),
        dpm.Categorical("region", ["north", "south", "east"]),
        dpm.Numeric("score", 0, 10),
        dpm.Boolean("smoker"),
    )


def test_values_that_a_ddi_file_calls_invalid_are_missing(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(
        '<codeBook><dataDscr><var name="age"><invalrng><item VALUE="99"/><range min="-9" max="-8"/></invalrng>'
        '<varFormat type="numeric"/></var></dataDscr></codeBook>'
    )
    assert sorted(drafted(["age"], tmp_path / "a.xml")["age"]["missing_values"]) == [-9, -8, 99]


def test_a_type_that_no_kind_fits_is_named_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,place\n")
    (tmp_path / "a.json").write_text(
        '{"fields": [{"name": "age", "type": "integer"}, {"name": "place", "type": "geopoint"}]}'
    )
    text = str(Schema.draft(tmp_path / "t.csv", codebook=tmp_path / "a.json"))
    assert "kind: numeric  # a.json, line 1\n" in text
    assert "kind:  # its type is geopoint, which no kind fits\n" in text


def test_bounds_that_a_codebook_has_from_the_data_are_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,type,missing,mean,min,max\nage,integer,0.02,41.2,18,93\n")
    (tmp_path / "b.xml").write_text(
        '<codeBook><dataDscr><var name="age"><valrng><range min="18" max="93"/></valrng><sumStat type="max">93.0</sumStat>'
        '<varFormat type="numeric"/></var></dataDscr></codeBook>'
    )
    for codebook in (tmp_path / "a.csv", tmp_path / "b.xml"):
        (column,) = drafted(["age"], codebook).values()
        assert column == {"name": "age", "kind": "numeric", "lower": None, "upper": None, "missing": "error"}
    plain = (tmp_path / "b.xml").read_text().replace("93.0", "88.0")
    (tmp_path / "b.xml").write_text(plain)
    assert drafted(["age"], tmp_path / "b.xml")["age"]["upper"] == 93


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("c.json", "{", "damaged, or not a codebook"),
        ("c.json", "[" * 100_000, "damaged, or not a codebook"),
        ("c.json", '{"fields": []}', "describes no column"),
        ("c.xml", "<codeBook><var", "damaged, or not a codebook"),
        ("c.xml", '<!DOCTYPE a [<!ENTITY b "secret">]><a>&b;</a>', "it defines entities"),
        ("c.csv", "what\nage\n", "describes no column"),
        ("c.pdf", "", "cannot read the codebook"),
    ],
)
def test_what_is_no_codebook_is_refused(name: str, content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with refused(said):
        Schema.from_codebook(tmp_path / name)


def test_a_name_or_label_of_a_codebook_is_never_yaml(tmp_path: Path) -> None:
    fields = [
        {
            "name": "a",
            "type": "string",
            "description": "x\n  - {name: b}",
            "constraints": {"enum": ["no", "x: y", "# z", "1e3"]},
        }
    ]
    (tmp_path / "c.json").write_text(json.dumps({"fields": fields}))
    found = drafted(["a"], tmp_path / "c.json")
    assert found["a"]["levels"] == ["no", "x: y", "# z", "1e3"]
    assert found["a"]["description"] == "x - {name: b}"


def labeled(path: Path, cells: list[float], labels: dict[int, str], **options: Any) -> str:
    """The draft of an SPSS or Stata file of one column, q."""
    pyreadstat = pytest.importorskip("pyreadstat")
    write = pyreadstat.write_sav if path.suffix == ".sav" else pyreadstat.write_dta
    write(
        pd.DataFrame({"q": cells}),
        str(path),
        column_labels=["A question"],
        variable_value_labels={"q": labels},
        **options,
    )
    return str(Schema.draft(path)).replace(str(path), "FILE")


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labels_of_a_statistics_file_are_levels_and_missing_codes(ending: str, tmp_path: Path) -> None:
    scale = {1: "never", 2: "at times", 3: "often", 9: "No answer"}
    ranges = {"missing_ranges": {"q": [9]}} if ending == ".sav" else {}
    (column,) = parse_yaml(labeled(tmp_path / f"t{ending}", [1.0, 2.0], scale, **ranges))["columns"]
    assert column["levels"] == ["never", "at times", "often"]
    assert column["missing_values"] == [9, "No answer"]
    assert (column["missing"], column["description"]) == ("available", "A question")
    (column,) = parse_yaml(labeled(tmp_path / f"t{ending}", [1.0], {1: "no", 2: "yes"}))["columns"]
    assert (column["kind"], column["true_values"], column["false_values"]) == ("boolean", [2], [1])
    (column,) = parse_yaml(labeled(tmp_path / f"t{ending}", [44.0], {99: "Refused"}))["columns"]
    assert (column["kind"], column["lower"], column["missing_values"]) == ("numeric", None, [99])
    ends = {0: "under 1", 95: "95 or more", 99: "Refused"}
    (column,) = parse_yaml(labeled(tmp_path / f"t{ending}", [44.0], ends))["columns"]
    assert (column["kind"], column["lower"], column["missing_values"]) == ("numeric", None, [99])


def test_labels_that_encode_made_of_the_data_wait_for_a_curator(tmp_path: Path) -> None:
    text = labeled(tmp_path / "t.dta", [1.0, 2.0], {1: "east", 2: "north", 3: "west"})
    (tmp_path / "s.yaml").write_text(text)
    with refused("is not confirmed"):
        Schema.load(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_text(text.replace("confirmed:  #", "confirmed: true  #"))
    assert Schema.load(tmp_path / "s.yaml") == Schema(dpm.Categorical("q", ["east", "north", "west"]))
    assert "confirmed" not in labeled(tmp_path / "t.dta", [1.0], {1: "north", 2: "east", 3: "west"})


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_a_draft_is_a_function_of_declarations(ending: str, tmp_path: Path) -> None:
    tables = ([1.0] * 5, [3.0, 2.0, 77.5, -4711.0] * 40)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    texts = {
        labeled(tmp_path / folder / f"t{ending}", cells, {1: "low", 2: "middle", 3: "high"})
        for folder, cells in zip("ab", tables, strict=True)
    }
    assert len(texts) == 1
    assert "4711" not in texts.pop()


def test_descriptions_in_the_metadata_of_a_parquet_file(tmp_path: Path) -> None:
    field = pa.field("age", pa.int64(), metadata={"description": "Age in years"})
    pq.write_table(pa.table([pa.array([30])], schema=pa.schema([field])), tmp_path / "t.parquet")
    (column,) = parse_yaml(str(Schema.draft(tmp_path / "t.parquet")))["columns"]
    assert (column["description"], column["kind"], column["lower"]) == ("Age in years", "numeric", None)


def test_public_bounds_of_common_columns_are_comments_alone() -> None:
    text = str(Schema.draft(pa.table({"patient_age": [1.0], "systolicBP": [1.0], "packages": [1.0]})))
    columns = parse_yaml(text)["columns"]
    assert [column["lower"] for column in columns] == [None, None, None]
    assert text.count("# perhaps ") == 2


@pytest.mark.parametrize("first", [0, 1])
def test_labels_numbered_in_turn_wait_for_a_curator(tmp_path: Path, first: int) -> None:
    """From 0 as pandas numbers them, in the order of letters whatever their case."""
    labels = dict(enumerate(["adams", "Mann", "zola"], first))
    assert "confirmed" in labeled(tmp_path / "t.dta", [1.0], labels)
    assert "confirmed" not in labeled(tmp_path / "flags.dta", [1.0], {0: "No", 1: "Yes"})


def test_a_table_is_no_codebook_of_itself(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,label\na,Ann\n")
    with refused("the table itself"):
        Schema.draft(tmp_path / "t.csv", codebook=tmp_path / "t.csv")
