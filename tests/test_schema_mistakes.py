"""Mistakes in schema files are named with their lines, all at once; descriptions are public text that changes nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.schema import Schema
from dpmoments.schema.checks import number_as_text

AGE = "columns:\n  - name: age\n    kind: numeric\n    lower: 0\n    upper: 100\n"
TOWN = "  - {name: town, kind: categorical, levels: [LEVELS]}\n"
MISTAKES = {
    "thousands": (
        AGE.replace("100", "1,000"),
        "line 5: column 'age': upper must be a number, got the text '1,000'.*write 1000$",
    ),
    "underscore": (AGE.replace("100", "1_000"), "line 5: .*write 1000$"),
    "decimal comma": (AGE.replace("0\n", "1,5\n", 1), "line 4: .*'1,5'.*write 1.5$"),
    "german": (AGE.replace("100", "1.000.000,5"), "line 5: .*write 1000000.5$"),
    "blank between": (AGE.replace("100", "1 000"), "line 5: .*write 1000$"),
    "unit": (AGE.replace("100", "100 years"), "line 5: .*no unit"),
    "date": (AGE.replace("100", "2020-01-31"), "line 5: .*of kind date"),
    "date bound": (
        AGE.replace("numeric", "date").replace("100", "31.01.2020"),
        "line 4: column 'age': lower=0 must be a date",
    ),
    "tab": (AGE.replace("    lower", "\tlower"), r"\(line 4\): it is indented with a tab"),
    "no colon": (AGE.replace("lower:", "lower"), r"\(line 5\): a colon is missing"),
    "no colon at the end": (AGE.replace("upper:", "upper"), r"\(line 6\): a colon is missing .*or in the line before"),
    "no blank after the colon": (AGE.replace("upper: ", "upper:"), "a colon is missing"),
    "an indent and no colon": (
        AGE.replace("    upper:", "      upper"),
        "'age' has no bounds .*runs on from line 4 to 5: is a colon",
    ),
    "no blank in the name": ("columns:\n  - name:age\n", "line 2: .*a blank belongs after each colon"),
    "open quote": (AGE.replace("100", '"100'), "a quote is opened and not closed"),
    "repeated": (AGE + "    lower: 5\n", r"a key stands twice in one entry \(line 6\)"),
    "misspelt": (AGE.replace("upper", "uper"), r"line 5: .*'uper' \(did you mean 'upper'\?\)"),
    "misspelt above": (
        AGE + "row_nrom: 3\n",
        r"line 6: unknown entries in the schema: 'row_nrom' \(did you mean 'row_norm'\?\)",
    ),
    "comma in braces": (
        "columns:\n- {name: a, kind: numeric, lower: 0, upper: 1,000}\n",
        "line 2: .*write 1000, not 1,000",
    ),
    "reversed": (AGE.replace("100", "-5"), "line 4: column 'age': lower=0.0 must be below upper=-5.0"),
    "blank": (AGE.replace("100", ""), r"line 5: column 'age' has no bounds \(upper\). Fill these in"),
    "truth values": (
        AGE + TOWN.replace("LEVELS", "true, false"),
        "line 6: column 'town': levels must be .*quote true, false",
    ),
    "mixed": (AGE + TOWN.replace("LEVELS", "1, 2, x"), "line 6: .*put the numbers into quotes"),
    "twice": (AGE + TOWN.replace("LEVELS", "no, yes, no"), "line 6: .*listed twice in levels, 'no'"),
    "twice as text": (AGE + TOWN.replace("LEVELS", "'1', \"1\""), "line 6: .*listed twice in levels, '1'"),
    "kind": (AGE.replace("numeric", "number"), "line 3: column 'age' has kind 'number': use numeric"),
    "several": (
        AGE.replace("100", "1,000") + TOWN.replace("LEVELS", ""),
        "line 5: .*write 1000; line 6: column 'town' has no levels. Fill",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_where_it_is(name: str, tmp_path: Path) -> None:
    text, words = MISTAKES[name]
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        Schema.load(tmp_path / "s.yaml")
    assert str(tmp_path / "s.yaml") in str(caught.value)


def test_words_that_yaml_takes_for_others_stay_what_was_written(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(AGE + TOWN.replace("LEVELS", "no, yes, on, off, y, 2020-01-31"))
    assert Schema.load(tmp_path / "s.yaml").columns[1].levels == ("no", "yes", "on", "off", "y", "2020-01-31")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("1,000,000.5", "write 1000000.5"),
        ("1'000", "write 1000"),
        ("1_0", "write 10"),
        ("-1,5", "write -1.5"),
        ("1.234,5", "write 1234.5"),
        ("", "digits with"),
        ("12%", "no unit"),
        ("-2,000", "write -2000"),
    ],
)
def test_how_a_number_is_written(text: str, advice: str) -> None:
    assert number_as_text(text).endswith(advice) or advice in number_as_text(text)
    with pytest.raises(TypeError, match="column 'a': upper must be a number, got the text"):
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
    assert released.privacy.in_words() == other.privacy.in_words()
    pooled = dpm.pool([released, other])
    assert pooled.schema.columns[0].description == "Age at admission in years"  # those of the first
    assert dpm.pool([other, released]).schema.columns[0].description is None


@pytest.mark.parametrize("text", ["", " ", "two\nlines", "x" * 301, "bell\a", "\u202eturned", "\x1b[31mred", 3, ["a"]])
def test_descriptions_that_cannot_be(text: object) -> None:
    for column in (dpm.Numeric("a", 0, 1), dpm.Boolean("a"), dpm.Categorical("a", ["x"]), dpm.Coordinate("a")):
        with pytest.raises((TypeError, ValueError), match=r"column 'a'.*description"):
            Schema.from_dict({"columns": [column.to_dict() | {"description": text}]})
