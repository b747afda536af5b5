"""Mistakes in schema files are named with their lines, all at once; descriptions are public text that changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.base.values import number_as_text
from dpmoments.schema import Schema
from support.said import Said, refused

AGE = "columns:\n  - name: age\n    kind: numeric\n    lower: 0\n    upper: 100\n"
TOWN = "  - {name: town, kind: categorical, levels: [LEVELS]}\n"


INDENT = "check the indent, colons and quotes there and in the line before"
BRACKET = "a bracket that opens there is not closed, or lacks a comma"
DASH = "add a space after the - that begins a column"


def no_yaml(line: int, advice: str) -> str:
    return f" is not a YAML file (line {line}): {advice}"


def no_number(text: str, advice: str) -> str:
    return f"line 5: column 'age': upper must be a number, got the text '{text}': {advice}"


def town(levels: str) -> str:
    return AGE + TOWN.replace("LEVELS", levels)


def of_town(advice: str) -> str:
    return f"line 6: column 'town': {advice}"


MISTAKES: list[tuple[str, str]] = [
    (AGE.replace("100", "1,000"), no_number("1,000", "write 1000")),
    (AGE.replace("100", "100 years"), no_number("100 years", "digits with a decimal")),
    (AGE.replace("100", "2020-01-31"), no_number("2020-01-31", "a column with dates for")),
    (
        AGE.replace("numeric", "date").replace("100", "31.01.2020"),
        "line 4: column 'age': lower must be a date, as in '2015-01-31' or '2015-01-31T12:00:00', got 0",
    ),
    (AGE.replace("    lower", "\tlower"), no_yaml(4, "it is indented with a tab, but YAML allows only spaces")),
    (AGE.replace("lower:", "lower"), no_yaml(5, INDENT)),
    (AGE.replace("    upper:", "      upper"), "line 2: column 'age' has no bounds (upper). Fill these in"),
    (
        "columns:\n  - name:age\n",
        "line 2: every column is a mapping with a name and a kind: add a space after each colon",
    ),
    (AGE.replace("100", '"100'), no_yaml(6, INDENT)),
    (AGE + "    lower: 5\n", no_yaml(6, "a key occurs twice in one entry")),
    (AGE.replace("upper", "uper"), "line 5: column 'age' has unknown entries 'uper' (did you mean 'upper'?): use"),
    (AGE + "row_nrom: 3\n", "line 6: unknown entries in the schema: 'row_nrom' (did you mean 'row_norm'?)"),
    (
        "columns:\n- {name: a, kind: numeric, lower: 0, upper: 1,000}\n",
        "line 2: column 'a' has unknown entries '000' (in braces a comma ends an entry: write 1000, not",
    ),
    (AGE.replace("100", "-5"), "line 4: column 'age': lower=0.0 must be below upper=-5.0"),
    (
        AGE.replace("100", ""),
        "line 5: column 'age' has no bounds (upper). Fill these in from public knowledge (they are never",
    ),
    (town("true, false"), of_town("levels must be strings or integers (Boolean is for true/false; in a file,")),
    (town("1, 2, x"), of_town("levels must be all strings or all integers (in a file, put the numbers into")),
    (town("no, yes, no"), of_town("a level is listed twice in levels, 'no'")),
    (
        AGE.replace("numeric", "number"),
        "line 3: column 'age' has kind 'number': use numeric, categorical, boolean, date, sampling_weight, power, product",
    ),
    (
        AGE + "  - name: ward\n    kind: categorical\n    levels: A12, B03, ICU\n",
        "line 8: column 'ward': levels is a text, not a list: put them in [ ], levels: [A12, B03, ICU]",
    ),
    (
        AGE + "  - {name: ward, kind: categorical, levels: 7}\n",
        "line 6: column 'ward': levels is a text, not a list: put them in [ ], levels: [7]",
    ),
    (town("A12 B03 ICU"), of_town("levels holds one level, 'A12 B03 ICU': with commas it would be levels: [A12,")),
    (
        AGE + "  - name: ward\n    kind: categorical\n    levels:\n    - A12, B03\n",
        "line 9: column 'ward': levels holds one level, 'A12, B03': with commas it would be levels: [A12,",
    ),
    (town("01067, 10115, 80331"), of_town("01067 is text because it begins with 0, but 10115 is a number: put all in")),
    (
        AGE.replace("age", "“Alter”"),
        "line 2: column '“Alter”': “Alter” has typographic quotes, “, ”, which YAML reads as part of it:",
    ),
    (town("„Nord“, Ost"), of_town("„Nord“ has typographic quotes, „, “, which YAML reads as part of it: write")),
    (AGE + AGE[9:], "line 6: two columns are named 'age': rename or delete one"),
    (
        AGE.replace("100", "150.000"),
        "line 5: column 'age': upper: 150.000 is 150, because a point starts the decimals: write 150, or 150000",
    ),
    (
        AGE.replace("    lower: 0\n    upper: 100", "    scale: [1, -5.000]"),
        "line 4: column 'age': scale: -5.000 is -5, because a point starts the decimals: write -5, or -5000",
    ),
    (AGE + "row_norm: 2.000\n", "line 6: row_norm: 2.000 is 2, because a point starts the decimals: write 2, or 2000"),
    (AGE + "  - name: ward\n    kind: categorical\n    levels: [a, b\n    missing: error\n", no_yaml(8, BRACKET)),
    (town('"a" "b"'), no_yaml(6, BRACKET)),
    (AGE.replace("- ", "-"), no_yaml(2, DASH)),
    ("columns:\n  -name: age\n  kind: boolean\n", "line 2: add a space after the - that begins a column"),
    (AGE.replace("    lower", "   lower"), no_yaml(4, INDENT)),
    (AGE + "    - name: x\n      kind: boolean\n", no_yaml(6, INDENT)),
    (
        AGE.replace("100", "1,000") + TOWN.replace("LEVELS", ""),
        "line 5: column 'age': upper must be a number, got the text '1,000': write 1000; "
        "line 6: column 'town' has no levels. Fill these in from public knowledge",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), MISTAKES)
def test_a_mistake_is_named_where_it_is(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    between = "" if sentence.startswith(" ") else ": "
    with pytest.raises(ValueError, match=re.escape(f"{path}{between}{sentence}")):
        Schema.load(path)


def test_what_was_meant_is_taken_as_it_is(tmp_path: Path) -> None:
    text = (
        AGE.replace("100", "1.375").replace("lower: 0", "lower: 0.000")
        + TOWN.replace("LEVELS", '"A12 B03 ICU"')
        + "  - {name: code, kind: categorical, levels: [01067, 01069]}\n"
        + "  - {name: street, kind: categorical, levels: [New York, ’s-Hertogenbosch]}\n"
        + '  - {name: "“Alter”", kind: boolean, description: “so” 5.000}\n'
        + "  - name: one\n    kind: categorical\n    levels:\n    - New York\n"
    )
    (tmp_path / "s.yaml").write_text(text)
    schema = Schema.load(tmp_path / "s.yaml")
    assert schema.names == ("age", "town", "code", "street", "“Alter”", "one")
    assert [column.levels for column in schema.columns if isinstance(column, dpm.Categorical)] == [
        ("A12 B03 ICU",),
        ("01067", "01069"),
        ("New York", "’s-Hertogenbosch"),
        ("New York",),
    ]
    schema.save(tmp_path / "again.yaml")
    assert Schema.load(tmp_path / "again.yaml") == schema


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("1,000,000.5", "write 1000000.5"),
        ("1'000", "write 1000"),
        ("1_0", "write 10"),
        ("-1,5", "write -1.5"),
        ("1.234,5", "write 1234.5"),
        ("", "digits with"),
        ("12%", "without a unit"),
        ("-2,000", "write -2000"),
    ],
)
def test_how_a_number_is_written(text: str, advice: str) -> None:
    assert advice in number_as_text(text)
    with refused("must be a number, got the text", TypeError, column="a"):
        dpm.Numeric("a", 0, text)  # type: ignore[arg-type]


DESCRIBED = Schema(
    dpm.Numeric("age", 0, 100, description="Age at admission in years"),
    dpm.Boolean("smokes", description="Smokes: now or ever #1"),
    dpm.Categorical("town", ["a", "b"], description="Größe [bold]x[/bold]"),
)


def plain(schema: Schema) -> Schema:
    return Schema.from_dict(
        {
            **schema.to_dict(),
            "columns": [
                {key: value for key, value in column.to_dict().items() if key != "description"}
                for column in schema.columns
            ],
        }
    )


def test_descriptions_travel_and_change_nothing(tmp_path: Path) -> None:
    table = pa.table({"age": [30.0, 40.0] * 50, "smokes": [True, False] * 50, "town": ["a", "b"] * 50})
    DESCRIBED.save(tmp_path / "s.yaml")
    assert [column.description for column in Schema.load(tmp_path / "s.yaml").columns] == [
        c.description for c in DESCRIBED.columns
    ]
    assert plain(DESCRIBED) == DESCRIBED
    assert hash(plain(DESCRIBED)) == hash(DESCRIBED)
    assert "description" not in plain(DESCRIBED).to_dict()["columns"][0]
    released = dpm.release(table, DESCRIBED, epsilon=1.0, dataset="one", insecure_seed=1, output=tmp_path / "r.json")
    assert dpm.load(tmp_path / "r.json").schema.columns[0].description == "Age at admission in years"
    other = dpm.release(table, plain(DESCRIBED), epsilon=1.0, dataset="two", insecure_seed=2)
    assert released.privacy.describe() == other.privacy.describe()
    pooled = dpm.pool([released, other])
    assert pooled.schema.columns[0].description == "Age at admission in years"  # those of the first
    assert dpm.pool([other, released]).schema.columns[0].description is None


@pytest.mark.parametrize("text", ["", " ", "two\nlines", "x" * 301, "bell\a", "\u202eturned", "\x1b[31mred", 3, ["a"]])
def test_descriptions_that_cannot_be(text: object) -> None:
    refusal = Said("its description must be one line of printable characters", column="a")
    if not isinstance(text, str) or not text.strip():
        refusal = Said("must be", column="a", expected="a text, or left out", parameter="description")
    for column in (dpm.Numeric("a", 0, 1), dpm.Boolean("a"), dpm.Categorical("a", ["x"]), dpm.Coordinate("a")):
        with refused(refusal, (TypeError, ValueError)):
            Schema.from_dict({"columns": [column.to_dict() | {"description": text}]})
