"""Mistakes in schema files are named with their lines, all at once; descriptions are public text that changes nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.foundation.values import number_as_text
from dpmoments.schema import Schema
from support.said import Said, refused

AGE = "columns:\n  - name: age\n    kind: numeric\n    lower: 0\n    upper: 100\n"
TOWN = "  - {name: town, kind: categorical, levels: [LEVELS]}\n"


def at(line: int, fault: Said) -> Said:
    """The refusal of a schema with one mistake, in a line."""
    return Said(".yaml: ", mistakes=(Said("line ", line=line, fault=fault),))


def syntax(line: int, fault: Said) -> Said:
    """The refusal of a file that is not YAML, by a line."""
    return Said("is not a YAML file", fault=Said("(line ", line=line, fault=fault))


MISTAKES: dict[str, tuple[str, Said]] = {
    "thousands": (
        AGE.replace("100", "1,000"),
        at(
            5,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="upper",
                problem=Said(": write ", number="1000", text="1,000"),
            ),
        ),
    ),
    "underscore": (
        AGE.replace("100", "1_000"),
        at(
            5,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="upper",
                problem=Said(": write ", number="1000"),
            ),
        ),
    ),
    "decimal comma": (
        AGE.replace("0\n", "1,5\n", 1),
        at(
            4,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="lower",
                problem=Said(": write ", number="1.5", text="1,5"),
            ),
        ),
    ),
    "german": (
        AGE.replace("100", "1.000.000,5"),
        at(
            5,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="upper",
                problem=Said(": write ", number="1000000.5", text="1.000.000,5"),
            ),
        ),
    ),
    "blank between": (
        AGE.replace("100", "1 000"),
        at(
            5,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="upper",
                problem=Said(": write ", number="1000"),
            ),
        ),
    ),
    "unit": (
        AGE.replace("100", "100 years"),
        at(
            5,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="upper",
                problem=Said("digits with a decimal point, without a unit or", text="100 years"),
            ),
        ),
    ),
    "date": (
        AGE.replace("100", "2020-01-31"),
        at(
            5,
            Said(
                "must be a number, got the text",
                column="age",
                parameter="upper",
                problem=Said("a column with dates for bounds is of kind date,", text="2020-01-31"),
            ),
        ),
    ),
    "date bound": (
        AGE.replace("numeric", "date").replace("100", "31.01.2020"),
        at(
            4,
            Said(
                "must be",
                column="age",
                expected="a date, as in '2015-01-31' or '2015-01-31T12:00:00'",
                parameter="lower",
                value=0,
            ),
        ),
    ),
    "tab": (AGE.replace("    lower", "\tlower"), syntax(4, Said("it is indented with a tab, but YAML allows only"))),
    "no colon": (AGE.replace("lower:", "lower"), syntax(5, Said("a colon is missing or superfluous, here or in the"))),
    "no colon at the end": (
        AGE.replace("upper:", "upper"),
        syntax(6, Said("a colon is missing or superfluous, here or in the")),
    ),
    "no blank after the colon": (
        AGE.replace("upper: ", "upper:"),
        syntax(6, Said("a colon is missing or superfluous, here or in the")),
    ),
    "an indent and no colon": (
        AGE.replace("    upper:", "      upper"),
        at(
            2,
            Said(
                "a value runs on from line",
                fault=Said("has no bounds (", column="column 'age'", names=("upper",)),
                first=4,
                last=5,
            ),
        ),
    ),
    "no blank in the name": (
        "columns:\n  - name:age\n",
        at(2, Said("every column is a mapping with a name and a kind:")),
    ),
    "open quote": (AGE.replace("100", '"100'), syntax(6, Said("a quote is opened and not closed"))),
    "repeated": (AGE + "    lower: 5\n", syntax(6, Said("a key occurs twice in one entry"))),
    "misspelt": (
        AGE.replace("upper", "uper"),
        at(
            5,
            Said(
                "has unknown entries",
                column="column 'age'",
                names=("'uper'",),
                question=Said("did you mean", close=("upper",)),
            ),
        ),
    ),
    "misspelt above": (
        AGE + "row_nrom: 3\n",
        at(
            6,
            Said("unknown entries in the schema", name="row_nrom", question=Said("did you mean", close=("row_norm",))),
        ),
    ),
    "comma in braces": (
        "columns:\n- {name: a, kind: numeric, lower: 0, upper: 1,000}\n",
        at(
            2,
            Said(
                "has unknown entries",
                column="column 'a'",
                names=("'000'",),
                question=Said("(in braces a comma ends an entry: write 1000, not"),
            ),
        ),
    ),
    "reversed": (AGE.replace("100", "-5"), at(4, Said("must be below upper=", column="age", lower=0.0, upper=-5.0))),
    "blank": (AGE.replace("100", ""), at(5, Said("has no bounds (", column="column 'age'", names=("upper",)))),
    "truth values": (
        AGE + TOWN.replace("LEVELS", "true, false"),
        at(6, Said("levels must be strings or integers (Boolean is for", column="town")),
    ),
    "mixed": (
        AGE + TOWN.replace("LEVELS", "1, 2, x"),
        at(6, Said("levels must be all strings or all integers (in a file, put", column="town")),
    ),
    "twice": (
        AGE + TOWN.replace("LEVELS", "no, yes, no"),
        at(6, Said("a level is listed twice in levels", column="town", level="no")),
    ),
    "twice as text": (
        AGE + TOWN.replace("LEVELS", "'1', \"1\""),
        at(6, Said("a level is listed twice in levels", column="town")),
    ),
    "kind": (
        AGE.replace("numeric", "number"),
        at(
            3,
            Said(
                "has kind",
                column="column 'age'",
                kind="number",
                kinds=("numeric", "categorical", "boolean", "date", "power", "product"),
            ),
        ),
    ),
    "levels without a list": (
        AGE + "  - name: ward\n    kind: categorical\n    levels: A12, B03, ICU\n",
        at(
            8,
            Said("levels is a text, not a list: put them in [ ],", column="column 'ward'", parts=("A12", "B03", "ICU")),
        ),
    ),
    "one level and no list": (
        AGE + "  - {name: ward, kind: categorical, levels: 7}\n",
        at(6, Said("levels is a text, not a list: put them in [ ],", column="column 'ward'", parts=("7",))),
    ),
    "levels without commas": (
        AGE + TOWN.replace("LEVELS", "A12 B03 ICU"),
        at(
            6,
            Said(
                ']; if it really is one, quote it: levels: ["',
                column="column 'town'",
                level="A12 B03 ICU",
                parts=("A12", "B03", "ICU"),
            ),
        ),
    ),
    "levels on one line of a list": (
        AGE + "  - name: ward\n    kind: categorical\n    levels:\n    - A12, B03\n",
        at(
            9,
            Said(
                ']; if it really is one, quote it: levels: ["',
                column="column 'ward'",
                level="A12, B03",
                parts=("A12", "B03"),
            ),
        ),
    ),
    "digits that are text": (
        AGE + TOWN.replace("LEVELS", "01067, 10115, 80331"),
        at(
            6,
            Said(
                "is a number: put all in quotes, levels: [",
                column="column 'town'",
                number="10115",
                parts=('"01067"', '"10115"', "…"),
                text="01067",
            ),
        ),
    ),
    "typographic quotes": (
        AGE.replace("age", "“Alter”"),
        at(
            2,
            Said(
                ", which YAML reads as part of it: write",
                bare="Alter",
                column="column '“Alter”'",
                marks=("“", "”"),
                text="“Alter”",
            ),
        ),
    ),
    "typographic quotes round a level": (
        AGE + TOWN.replace("LEVELS", "„Nord“, Ost"),
        at(
            6,
            Said(
                ", which YAML reads as part of it: write",
                bare="Nord",
                column="column 'town'",
                marks=("„", "“"),
                text="„Nord“",
            ),
        ),
    ),
    "two columns with the same name": (
        AGE + AGE[9:],
        Said(".yaml: ", mistakes=(Said("two columns are named", first=2, name="age", second=6),)),
    ),
    "thousands or decimals": (
        AGE.replace("100", "50.000"),
        at(
            5,
            Said(
                ": ",
                entry="column 'age'",
                fault=Said(
                    ": ",
                    entry="upper",
                    fault=Said(", because a point starts the decimals: write", number="50", text="50.000"),
                ),
            ),
        ),
    ),
    "thousands in a list": (
        AGE.replace("    lower: 0\n    upper: 100", "    scale: [1, -5.000]"),
        at(
            4,
            Said(
                ": ",
                entry="column 'age'",
                fault=Said(
                    ": ",
                    entry="scale",
                    fault=Said(", because a point starts the decimals: write", number="-5", text="-5.000"),
                ),
            ),
        ),
    ),
    "thousands above": (
        AGE + "row_norm: 2.000\n",
        at(
            6,
            Said(
                ": ",
                entry="row_norm",
                fault=Said(", because a point starts the decimals: write", number="2", text="2.000"),
            ),
        ),
    ),
    "open bracket": (
        AGE + "  - name: ward\n    kind: categorical\n    levels: [a, b\n    missing: error\n",
        syntax(8, Said("that opens there is not closed with", closing="]", opening="[")),
    ),
    "open brace": (
        AGE + "  - {name: x, kind: boolean\n  - {name: y, kind: boolean}\n",
        syntax(6, Said("that opens there is not closed with", closing="}", opening="{")),
    ),
    "comma in a list": (
        AGE + TOWN.replace("LEVELS", '"a" "b"'),
        syntax(6, Said("that opens there is not closed with", closing="]", opening="[")),
    ),
    "no blank after the dash": (
        AGE.replace("- ", "-"),
        syntax(2, Said("add a space after the - that begins a column")),
    ),
    "no blank after a dash": (
        AGE + "  -name: x\n   kind: boolean\n",
        syntax(6, Said("add a space after the - that begins a column")),
    ),
    "no blank after the dash, read all the same": (
        "columns:\n  -name: age\n  kind: boolean\n",
        at(2, Said("add a space after the - that begins a column")),
    ),
    "indented less": (
        AGE.replace("    lower", "   lower"),
        syntax(4, Said("its indent differs: indent it like the line above,")),
    ),
    "indented more": (
        AGE.replace("    lower", "     lower"),
        syntax(4, Said("its indent differs: indent it like the line above,")),
    ),
    "a column indented more": (
        AGE + "    - name: x\n      kind: boolean\n",
        syntax(6, Said("its indent differs: indent it like the line above,")),
    ),
    "several": (
        AGE.replace("100", "1,000") + TOWN.replace("LEVELS", ""),
        Said(
            ".yaml: ",
            mistakes=(
                Said(
                    "line ",
                    line=5,
                    fault=Said("must be a number, got the text", problem=Said(": write ", number="1000")),
                ),
                Said("line ", line=6, fault=Said(" has no ", column="column 'town'", names=("levels",))),
            ),
            advice=Said("Fill these in from public knowledge"),
        ),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_where_it_is(name: str, tmp_path: Path) -> None:
    text, said = MISTAKES[name]
    (tmp_path / "s.yaml").write_text(text)
    with refused(said, path=str(tmp_path / "s.yaml")):
        Schema.load(tmp_path / "s.yaml")


def test_words_that_yaml_takes_for_others_stay_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(AGE + TOWN.replace("LEVELS", "no, yes, on, off, y, 2020-01-31"))
    assert Schema.load(tmp_path / "s.yaml").columns[1].levels == ("no", "yes", "on", "off", "y", "2020-01-31")


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


def test_a_text_is_no_list_of_levels() -> None:
    with refused("is one text: give a list of levels"):
        dpm.Categorical("ward", "A12, B03")  # type: ignore[arg-type]


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
