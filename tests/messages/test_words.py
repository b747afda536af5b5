"""Words of every message, for every audience: golden files that ``make words`` writes again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dpmoments.messages import codes
from dpmoments.messages.advice import ANALYST, AT_THE_SHELL, IN_PYTHON
from dpmoments.messages.findings import FINDINGS, SHORT
from dpmoments.messages.message import Audience, Message
from dpmoments.messages.refusals import REFUSALS

WORDS = Path(__file__).parent.parent / "golden" / "words"
TOPICS: Mapping[str, tuple[frozenset[str], tuple[Audience, ...]]] = {
    "rules": (codes.RULES, ("analyst",)),
    "guarantees": (codes.GUARANTEES, ("analyst",)),
    "warnings": (codes.WARNINGS, ("analyst", "curator", "shell")),
    "caveats": (codes.CAVEATS, ("analyst",)),
    "errors": (codes.ERRORS, ("curator", "shell")),
    "reasons": (codes.REASONS, ("analyst", "curator")),
    "queries": (codes.QUERIES, ("short",)),
}
BY_KIND: Mapping[str, Any] = {
    "number": 0.125,
    "integer": 3,
    "flag": True,
    "name": "age",
    "names": ("age", "income"),
    "numbers": (0.125, 2.0),
    "level": "north",
    "word": "drop",
    "words": ("center", "drop"),
    "amount": "ε = 1",
    "fact": "…",
    "phrase": "positive",
    "message": Message("key-twice"),
    "messages": (Message("key-twice"), Message("text-not-read")),
}
BY_NAME: Mapping[str, Any] = {
    "column": "visits",
    "unit": "patient_id",
    "neighbors": "add_remove",
    "mechanism": "gaussian",
    "kind": "pure",
    "rows": 45222,
    "noise": 0.008,
    "epsilon": 1.0,
    "delta": 1e-6,
    "rho": 0.5,
    "fallback": "matrix-laplace",
    "second": "laplace",
    "times": 1.4,
    "max_rows": 5,
    "lower": 0.0,
    "upper": 100.0,
    "level": 2,
    "radius": 0.31,
    "typical_lower": 20.0,
    "typical_upper": 60.0,
    "unit_rows": 5,
    "name": "my-query",
    "query": "Gram matrix",
    "path": "budget.db",
    "parameter": "steps",
    "value": 1.5,
    "got": "float",
    "choices": ("units", "bounds"),
    "entry": 2,
    "question": Message("did-you-mean", close=("age",)),
    "hint": Message("names-alike", names=("Age",)),
    "where": Message("of-column", column="visits"),
    "fault": Message("indent-differs"),
    "mistakes": (Message("mistake-in-line", line=3, fault=Message("indent-differs")),),
    "problem": Message("text-for-number", text="1 m"),
    "blanks": (Message("blank-entries", column="visits", names=("upper",)),),
}
BY_CODE: Mapping[str, Mapping[str, Any]] = {
    "too-few-rows": {"rows": 43.0, "noise": 10.0},
    "row-count-uncertain": {"rows": 8000.0, "noise": 1200.0},
    "delta-too-large": {"delta": 1e-3},
    "rows-scaled-to-ball": {"radius": 2.5123},
    "dates-clipped-to-bounds": {
        "column": "admitted",
        "lower": "2015-01-01",
        "upper": "2025-12-31",
        "origin": "2015-01-01",
        "unit": "days",
    },
    "partition-not-read": {"where": Message("at-line", line="rows.py:3")},
    "not-a-number-type": {"advice": Message("text-is-read-with-decimal")},
    "yaml-syntax": {"fault": Message("fault-in-line", line=3, fault=Message("indent-differs"))},
    "schema-file-mistake": {"advice": Message("fill-in-blanks")},
    "exists already": {"advice": Message("it is not overwritten; choose another name")},
    "not-in-ledger": {"reason": Message("ledger-locked", path="budget.db")},
    "rows-of-query": {"clauses": ("JOIN", "LIMIT")},
    "group-of-rows": {"column": "region", "level": "north"},
    "public-levels": {"column": "region", "other": "error"},
    "power-outside-i": {"term": "age**2", "column": "age", "exponent": 2},
    "not-categorical-in-formula": {"term": "C(age)", "column": "age"},
    "product-not-released": {"factors": ("age", "sex")},
    "no-robust-errors": {"missing": ("age^2", "age:income")},
    "unknown-term": {"term": "agee"},
    "unknown-feature": {"name": "agee", "features": 106},
    "column-of-several-features": {"name": "region", "features": ("region=north", "region=south")},
    "unknown-grouping-column": {"name": "agee", "columns": ("age", "sex")},
    "not-a-grouping-column": {"name": "age", "kind": "numeric", "columns": ("sex", "income")},
    "unknown-file-ending": {"path": "people.xlsx", "endings": (".xlsx",)},
    "unknown-mechanism": {"name": "gausian", "of_means": False, "close": "gaussian", "known": ("gaussian", "laplace")},
    "target-needed": {"columns": ("age", "income")},
    "target-not-a-column": {"name": "agee", "kind": "numeric", "columns": ("age", "income")},
    "unknown-coefficient": {"name": "agee", "coefficients": 7},
    "penalized-errors": {"method": "ridge"},
    "too-many-predictions": {"rows": 2_000, "most": 1_000},
    "unknown-column": {"name": "agee"},
    "unknown-name": {"name": "agee"},
    "unknown-level": {"column": "region", "names": ("nort",), "levels": ("north", "south"), "close": "north"},
    "no-grant": {"dataset": "people-2027", "datasets": ("people-2026",)},
    "budget-exceeded": {
        "dataset": "people-2026",
        "cost": "ε = 1, pure",
        "granted": "ε = 3",
        "spent": "ε = 2.5",
        "releases": 3,
        "remaining": "ε = 0.5",
    },
    "cost-not-countable": {
        "dataset": "people-2026",
        "cost": "0.5-zCDP",
        "granted": "ε = 3",
        "reason": "no-delta",
        "max_gaussian": 128,
    },
    "grant-of-other-unit": {"dataset": "people-2026", "granted": "row", "unit": "patient_id", "spent": True},
    "grant-of-other-relation": {"dataset": "people-2026", "granted": "add_remove", "neighbors": "replace_one"},
    "grant-fixed": {"dataset": "people-2026", "what": "unit", "granted": "row", "asked": "patient_id"},
    "grant-below-spent": {"dataset": "people-2026", "spent": "ε = 2.5", "asked": "ε = 1"},
    "draw-invalid": {"query": "count", "reason": Message("loss-negative")},
    "ledger-folder-missing": {"path": "budgets"},
    "ledger-not-made": {"reason": "Permission denied"},
    "ledger-hard-links": {"names": 2},
    "ledger-foreign": {"content": "empty"},
    "ledger-version": {"version": 2, "known": 1},
    "ledger-journal-mode": {"mode": "wal"},
    "ledger-damaged": {"what": "tables"},
    "ledger-locked": {"seconds": 5.0},
    "ledger-not-writable": {"cause": "full"},
    "ledger-failure": {"reason": "unknown error"},
    "entry-ended": {"state": "commit"},
    "entry-without-reservation": {"dataset": "people-2026"},
    "history-broken": {"reason": Message("entry-changed")},
    "directions-lost": {"directions": 2, "features": 4},
    "rough-private-scales": {"mechanism": "standardized"},
}


ABSENT: Mapping[str, frozenset[str]] = {
    "least-error": frozenset({"delta", "rho"}),
    "pooled-part": frozenset({"epsilon", "delta"}),
    **dict.fromkeys(["sum", "gram", "sum-and-gram", "squares"], frozenset({"last", "round"})),
}
"""Facts of which a message has one or another."""


def example_of(code: str, name: str, kind: str) -> Any:
    """A fact of its kind: of this code, else of this name, else any."""
    known = BY_CODE.get(code, {}).get(name, BY_NAME.get(name))
    return known if codes.KINDS[kind](known) else BY_KIND[kind]


def examples(code: str) -> Iterator[Message]:
    """A message without, and one with, all facts that may be absent."""
    kinds = codes.CODES[code]
    needed = {name: kind for name, kind in kinds.items() if not name.endswith("?")}
    every = {name.removesuffix("?"): kind for name, kind in kinds.items()}
    every = {name: kind for name, kind in every.items() if name not in ABSENT.get(code, ())}
    some = [] if code in ("least-error", "pooled-part") or needed == every else [needed]
    for chosen in (*some, every):
        facts = {name: example_of(code, name, kind) for name, kind in chosen.items()}
        yield Message(code, **facts)


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of every golden file; most refusals are the same for all readers."""
    for topic, (known, audiences) in TOPICS.items():
        for audience in audiences:
            lines = [
                f"{code}\n    {message.text(audience)}"
                for code in codes.CODES
                if code in known
                for message in examples(code)
                if code not in REFUSALS or audience != "shell" or message.text("shell") != message.text("curator")
            ]
            yield f"{topic}-{audience}.txt", "\n".join(lines) + "\n"


@pytest.mark.parametrize(("name", "text"), list(pages()), ids=[name for name, _ in pages()])
def test_words_are_those_that_were_read(name: str, text: str) -> None:
    assert text == (WORDS / name).read_text(encoding="utf-8"), "read the difference, then: make words"


def test_golden_files_are_few_and_all_in_use() -> None:
    known = {name for name, _ in pages()}
    assert {path.name for path in WORDS.iterdir()} == known
    assert len(known) <= 20


def test_every_code_has_words_and_one_topic() -> None:
    assert codes.CODES.keys() == FINDINGS.keys() | SHORT.keys()
    assert not FINDINGS.keys() & SHORT.keys()
    topics = [known for known, _ in TOPICS.values()]
    assert sum(map(len, topics)) == len(codes.CODES)
    for advice in (ANALYST, IN_PYTHON, AT_THE_SHELL):
        assert advice.keys() <= codes.CODES.keys()


def test_an_analyst_is_not_told_what_only_a_curator_can_do() -> None:
    for code in codes.CODES:
        for message in examples(code) if code not in codes.ERRORS else ():
            said = message.text("analyst")
            assert "dpm." not in said
            assert "--" not in said
            assert not any(f"{word} " in ANALYST.get(code, "") for word in ("Give", "larger", "budget", "release with"))


OF_PYTHON = frozenset(
    [
        *("weights-not-applied", "no-choice-of-rows", "no-groups-afterwards", "no-quantiles", "no-logistic-regression"),
        *("no-distribution", "other-name"),
    ]
)
"""Errors about names that only Python has, which no command can meet."""


def test_the_shell_is_given_commands() -> None:
    for code in codes.WARNINGS | codes.ERRORS:
        for message in examples(code):
            assert "dpm." not in message.text("shell") or code in OF_PYTHON
            assert "--" not in message.text("curator")


def write() -> None:
    """Write all golden files."""
    WORDS.mkdir(parents=True, exist_ok=True)
    for path in WORDS.iterdir():
        path.unlink()
    for name, text in pages():
        (WORDS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
