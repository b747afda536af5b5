"""Words of every message, for every audience: golden files that ``make words`` writes again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dpmoments.base import wordings
from dpmoments.base.message import KINDS, Message
from dpmoments.base.wordings import WORDINGS, Audience, Wording

WORDS = Path(__file__).parent.parent / "golden" / "words"
TOPICS: Mapping[str, tuple[Mapping[str, Wording], tuple[Audience, ...]]] = {
    "rules": (wordings.RULES, ("analyst",)),
    "guarantees": (wordings.GUARANTEES, ("analyst",)),
    "warnings": (wordings.WARNINGS, ("analyst", "curator", "shell")),
    "caveats": (wordings.CAVEATS, ("analyst",)),
    "reasons": (wordings.REASONS, ("analyst", "curator")),
    "queries": (wordings.QUERIES, ("short",)),
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
    "entry": 2,
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
    "not-in-ledger": {"reason": "The ledger budget.db is locked by another use in this process. Try again."},
    "weighted-rows": {"total": 117e6, "effective": 5_400.0},
    "rows-of-query": {"clauses": ("JOIN", "LIMIT")},
    "group-of-rows": {"column": "region", "level": "north"},
    "public-levels": {"column": "region", "other": "drop"},
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
    return known if KINDS[kind](known) else BY_KIND[kind]


def examples(code: str) -> Iterator[Message]:
    """A message without, and one with, all facts that may be absent."""
    kinds = WORDINGS[code].facts
    needed = {name: kind for name, kind in kinds.items() if not name.endswith("?")}
    every = {name.removesuffix("?"): kind for name, kind in kinds.items()}
    every = {name: kind for name, kind in every.items() if name not in ABSENT.get(code, ())}
    some = [] if code in ("least-error", "pooled-part") or needed == every else [needed]
    for chosen in (*some, every):
        facts = {name: example_of(code, name, kind) for name, kind in chosen.items()}
        yield Message(code, **facts)


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of every golden file."""
    for topic, (known, audiences) in TOPICS.items():
        for audience in audiences:
            lines = [f"{code}\n    {message.text(audience)}" for code in known for message in examples(code)]
            yield f"{topic}-{audience}.txt", "\n".join(lines) + "\n"


@pytest.mark.parametrize(("name", "text"), list(pages()), ids=[name for name, _ in pages()])
def test_words_are_those_that_were_read(name: str, text: str) -> None:
    assert text == (WORDS / name).read_text(encoding="utf-8"), "read the difference, then: make words"


def test_golden_files_are_few_and_all_in_use() -> None:
    known = {name for name, _ in pages()}
    assert {path.name for path in WORDS.iterdir()} == known
    assert len(known) <= 20


def test_every_code_has_one_topic() -> None:
    topics = [known for known, _ in TOPICS.values()]
    assert sum(map(len, topics)) == len(WORDINGS)


def test_an_analyst_is_not_told_what_only_a_curator_can_do() -> None:
    for code in WORDINGS:
        for message in examples(code):
            said = message.text("analyst")
            assert "dpm." not in said
            assert "--" not in said
            assert not any(
                f"{word} " in WORDINGS[code].analyst for word in ("Give", "larger", "budget", "release with")
            )


def test_the_shell_is_given_commands() -> None:
    for code in wordings.WARNINGS:
        for message in examples(code):
            assert "dpm." not in message.text("shell")
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
