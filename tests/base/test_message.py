"""Messages as data: what they hold, what files may hold, and that no fact is read as a template."""

from __future__ import annotations

import ast
import copy
import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmoments
from dpmoments.base.errors import InputError
from dpmoments.base.message import Message, lines_of, messages_of
from dpmoments.base.wordings import WARNINGS, WORDINGS
from support.said import refused

NAMED = Message("location-lost", names=("age",))


def test_a_message_is_its_code_and_facts() -> None:
    message = Message("rows-dropped", share=np.float64(0.12), rows=np.int64(45222))
    assert (message.code, dict(message.facts)) == ("rows-dropped", {"share": 0.12, "rows": 45222})
    assert [type(fact) for fact in message.facts.values()] == [int, float]
    assert message == Message("rows-dropped", rows=45222, share=0.12) != NAMED
    assert len({message, Message("rows-dropped", rows=45222, share=0.12), NAMED}) == 2
    assert repr(message) == "Message('rows-dropped', rows=45222, share=0.12)"
    assert copy.deepcopy(message) == pickle.loads(pickle.dumps(message)) == message
    with pytest.raises(FrozenInstanceError):
        message.code = "too-few-rows"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("no such code", {}),
        ("rows-dropped", {"share": 0.1}),
        ("rows-dropped", {"share": 0.1, "rows": 1.5}),
        ("rows-dropped", {"share": True, "rows": 1}),
        ("rows-dropped", {"share": 0.1, "rows": 1, "more": 1}),
        ("location-lost", {"names": "age"}),
        ("location-lost", {"names": (1,)}),
        ("two-values", {"column": "age", "missing": "in some words"}),
        ("location-lost", {"names": ("age",), "part": "north"}),
    ],
)
def test_what_is_no_message_is_refused(code: str, facts: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Message(code, **facts)
    in_file = {name: list(fact) if isinstance(fact, tuple) else fact for name, fact in facts.items()}
    with pytest.raises(InputError):
        Message.from_dict({"code": code, "facts": in_file})


@pytest.mark.parametrize(
    "held",
    [None, [], "rows-unseen", {}, {"code": []}, {"code": None}, {"code": "rows-unseen", "facts": []}, {"facts": {}},
     {"code": "rows-unseen", "text": "trust me"}, {"code": "row-norm-bound", "facts": {"norm": 1.0}},
     {"code": "location-lost", "facts": {"names": {"$tuple": [{"$float": "nan"}]}}}],
)  # fmt: skip
def test_files_hold_messages_of_the_kind_expected(held: Any) -> None:
    with pytest.raises(InputError):
        messages_of([held], WARNINGS, "the warnings")


def test_a_list_of_messages_is_a_list() -> None:
    assert messages_of([NAMED.to_dict()], WARNINGS, "the warnings") == (NAMED,)
    for held in (None, {}, "a", [NAMED.to_dict()] * 100_001):
        with refused("the warnings must be a list of messages", TypeError):
            messages_of(held, WARNINGS, "the warnings")


def test_a_file_gives_the_same_message_back() -> None:
    for message in (
        NAMED,
        Message("rows-unseen"),
        Message("values-clipped", share=math.inf, names=("a", "b")).within("north").within("1:site"),
        Message("row-count-uncertain", noise=math.nan, rows=1.5),
    ):
        again = Message.from_dict(json.loads(json.dumps(message.to_dict(), allow_nan=False)))
        assert repr(again) == repr(message)


def test_a_message_of_a_part_begins_with_its_name() -> None:
    inner = NAMED.within("region=north").within("1:people")
    assert inner.facts["part"] == ("1:people", "region=north")
    assert inner.text() == f"1:people: region=north: {NAMED.text()}"


def test_messages_that_differ_in_their_column_are_one_line() -> None:
    items = [dpmoments.Numeric(f"item{i}", 1, 6) for i in range(1, 6)]
    rules = dpmoments.Schema(*items[:2], dpmoments.Numeric("age", 0, 99), *items[2:]).rules
    first, second, *_ = lines_of(rules)
    assert first == "5 columns (item1, item2, item3 and 2 more): values clipped to [1, 6]; missing values: error."
    assert second == str(rules[2])
    assert lines_of([Message("not-private")] * 2) == (str(Message("not-private")),)


def test_no_fact_is_read_as_a_template_and_none_reaches_a_terminal() -> None:
    name = "{code} {0.__class__} %s \x1b[2J\u202e"
    for code, fact in (("location-lost", {"names": (name,)}), ("two-values", {"column": name, "missing": "drop"})):
        for audience in ("analyst", "curator", "shell", "short"):
            said = Message(code, **fact).within(name).text(audience)
            assert "{code} {0.__class__} %s" in said
            assert not set(said) & {"\x1b", "\u202e"}


def test_codes_are_plain_words() -> None:
    assert all(set(code) <= set("abcdefghijklmnopqrstuvwxyz-") for code in WORDINGS)


def misused(source: str) -> Iterator[str]:
    """Messages of a file that are unknown, or whose facts are not those of their code."""
    for node in ast.walk(ast.parse(source)) if "Message" in source else ():
        if not (isinstance(node, ast.Call) and node.args and ast.unparse(node.func) == "Message"):
            continue
        if not isinstance(node.args[0], ast.Constant):
            continue
        code = node.args[0].value
        declared = WORDINGS[code].facts if code in WORDINGS else {}
        given = {keyword.arg for keyword in node.keywords}
        known = {name.removesuffix("?") for name in declared} | {"part", None}
        needed = set() if None in given else {name for name in declared if not name.endswith("?")}
        if code not in WORDINGS or not given <= known or not needed <= given:
            yield f"{code}: {sorted(map(str, given ^ needed))}"


SOURCES = sorted(Path(dpmoments.__file__).parent.rglob("*.py"))


@pytest.mark.long
def test_every_message_that_is_made_has_the_facts_of_its_code() -> None:
    for path in SOURCES:
        assert not [*misused(path.read_text(encoding="utf-8"))], path


@pytest.mark.parametrize(
    "call", ["Message('no such code')", "Message('no-levels')", "Message('too-few-rows', rows=1, noise=2, x=2)"]
)
def test_a_message_with_other_facts_is_found(call: str) -> None:
    assert [*misused(call)]
