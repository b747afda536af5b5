"""Entries of a schema file for many columns: lists, patterns, defaults and lists of items."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpmoments as dpm
from dpmoments.schema import Schema
from support.said import refused

ITEMS = ["A1", "A2", "A3", "B1"]


def loaded(tmp_path: Path, text: str) -> Schema:
    (tmp_path / "s.yaml").write_text(text)
    return Schema.load(tmp_path / "s.yaml")


@pytest.mark.parametrize("name", ["[A1, A2, A3]", '"A*"', '"A[1-3]"', '["A[12]", A3]'])
def test_one_entry_for_many_columns(name: str, tmp_path: Path) -> None:
    schema = loaded(
        tmp_path,
        f"names: [A1, A2, A3, B1]\ndefaults: {{missing: available, other: zero}}\nitem_lists: {{a: 'A*'}}\ncolumns:\n"
        f"- name: {name}\n  kind: categorical\n  levels: [1, 2]\n  description: {{A2: second}}\n"
        "- {name: B1, kind: numeric, lower: 0, upper: 1, missing: drop}\n- {kind: power, column: B1, exponent: 2}\n",
    )
    items = [dpm.Categorical(item, [1, 2], "available", "zero") for item in ITEMS[:3]]
    expected = Schema(*items, dpm.Numeric("B1", 0, 1, "drop"), dpm.Power("B1", 2), item_lists={"a": ITEMS[:3]})
    assert schema == expected
    assert [column.description for column in schema.table_columns] == [None, "second", None, None]
    schema.save(tmp_path / "again.yaml")
    assert Schema.load(tmp_path / "again.yaml") == schema
    assert (tmp_path / "again.yaml").read_text().count("kind: categorical") == 1  # a short file stays short
    assert Schema.from_dict(schema.to_dict()) == schema


def test_an_entry_of_its_own_is_outside_a_pattern(tmp_path: Path) -> None:
    text = 'names: [A1, A2]\ncolumns:\n- {name: "A*", kind: boolean}\n- {name: A2, kind: numeric, lower: 0, upper: 9}\n'
    assert loaded(tmp_path, text) == Schema(dpm.Boolean("A1"), dpm.Numeric("A2", 0, 9))


def test_names_with_the_characters_of_patterns_are_names(tmp_path: Path) -> None:
    schema = Schema(dpm.Boolean("pay [EUR]"), dpm.Boolean("a*b"), dpm.Boolean("why?"))
    schema.save(tmp_path / "s.yaml")
    assert Schema.load(tmp_path / "s.yaml") == schema


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('columns:\n- {name: "A*", kind: boolean}\n', "line 2: name: 'A*' is a pattern: list the names"),
        ('names: [A1]\ncolumns:\n- {name: "B*", kind: boolean}\n', "line 3: name: 'B*' matches none of the names"),
        ('names: [wages]\ncolumns:\n- {name: "wagess*", kind: boolean}\n', "none of the names. Did you mean 'wages'?"),
        ("columns:\n- {name: [A1, A1], kind: boolean}\n", "'A1'"),
        (
            "columns:\n- {name: [A1, A2], kind: boolean}\n- {name: A2, kind: boolean}\n",
            "line 3: two columns are named 'A2'",
        ),
        ("columns:\n- {name: [A1, A2], kind: boolean, source: x}\n", "and no source"),
        (
            "columns:\n- {name: [A1, A2], kind: numeric, lower: 0, upper: }\n",
            "line 2: column 'A1' has no bounds (upper)",
        ),
        ("columns:\n- {name: [A1], kind: boolean, description: {B: x}}\n", "description is of 'B'"),
        ("names: 5\ncolumns:\n- {name: a, kind: boolean}\n", "holds texts"),
        ("columns:\n- {name: [{a: 1}], kind: boolean}\n", "line 2: a list of names of columns holds texts"),
        ("defaults: available\ncolumns:\n- {name: a, kind: boolean}\n", "must be a mapping"),
        (
            "item_lists: {a: [B]}\ncolumns:\n- {name: a, kind: boolean}\n",
            "item_lists: 'a': 'B' matches none of the names. They are 'a'",
        ),
        ("columns:\n- {name: a, kind: boolean, confirmed: false}\n", "is not confirmed"),
    ],
)
def test_mistakes_are_named(text: str, said: str, tmp_path: Path) -> None:
    with refused(said):
        loaded(tmp_path, text)


def test_lists_of_items_follow_the_columns() -> None:
    schema = Schema(*(dpm.Boolean(item) for item in ITEMS), item_lists={"a": ["A*"], "all": ITEMS})
    assert schema.item_lists == {"a": ("A1", "A2", "A3"), "all": tuple(ITEMS)}
    assert schema.with_columns(schema.columns[:3]).item_lists == {"a": ("A1", "A2", "A3")}
    with refused("must be a list of names", TypeError):
        Schema(dpm.Boolean("a"), item_lists={"x": [3]})  # type: ignore[list-item]
