"""The list of the papers' items: names, files and tests in it exist, reasons are given, and the page is current."""

from __future__ import annotations

import ast
import csv
import importlib
import io
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from benchmarks.pages import part_of
from benchmarks.papers.items import ITEMS, KINDS, PAGE, ROOT, STATUSES, counts, every_item, load, verdicts
from benchmarks.papers.reproduce.declaration import EXACT

pytestmark = pytest.mark.long(sets=None)

PAPERS = load()
FIELDS = {"section", "kind", "item", "status", "because", "where", "tests", "verdicts"}
STATUSES_OF = {
    "reproduced": {"covered", "in part"},
    "not compared": {"covered", "in part"},
    "reproduced with changes": {"in part"},
    "not comparable": {"in part"},
    "does not hold": {"otherwise"},
}
"""Statuses that an item may have by its worst verdict, the best first."""


@cache
def names_of(file: Path) -> frozenset[str]:
    """Functions, classes and constants of a file, those of a class as ``Class::function``."""
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def in_the_library(name: str) -> bool:
    """Whether a dotted name is a module, or something that can be reached from one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            if not (hasattr(found, attribute) or attribute in getattr(found, "__dataclass_fields__", {})):
                return False
            found = getattr(found, attribute, None)
        return True
    return False


def in_the_repository(name: str) -> bool:
    """Whether a file is there, and in it what is named after ``::``."""
    file, _, inside = name.partition("::")
    return (ROOT / file).is_file() and (not inside or inside in names_of(ROOT / file))


def contradictions(item: Mapping[str, Any]) -> Iterator[str]:
    """What an item says otherwise than the pages of figures do."""
    known, order = verdicts(), [*STATUSES_OF]
    named = item.get("verdicts", ())
    yield from (f"names a claim that no page judges: {claim}" for claim in named if claim not in known)
    found = [known[claim] for claim in named if claim in known]
    if found and item["status"] not in STATUSES_OF[worst := max(found, key=order.index)]:
        yield f"is {item['status']}, where a claim of it is judged as {worst}"


def faults(item: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with an item, in words."""
    if unknown := item.keys() - FIELDS:
        yield f"has {', '.join(sorted(unknown))}, which no item has"
    for field in ("section", "kind", "item", "status", "where"):
        if not item.get(field):
            yield f"has no {field}"
            return
    if item["kind"] not in KINDS:
        yield f"is a {item['kind']}: {', '.join(KINDS)}"
    if item["status"] not in STATUSES:
        yield f"has the status {item['status']}: {', '.join(STATUSES)}"
    if item["status"] == "covered" and not item.get("tests"):
        yield "is covered and names no test"
    if item["status"] != "covered" and not item.get("because"):
        yield "gives no reason"
    if item["status"] == "covered" and "because" in item:
        yield "is covered, which needs no reason"
    for name in item["where"]:
        if not (in_the_library(name) if name.startswith("dpmoments") else in_the_repository(name)):
            yield f"points to {name}, which is not there"
    yield from contradictions(item)
    for name in item.get("tests", ()):
        if "::test_" not in name or not in_the_repository(name):
            yield f"names the test {name}, which is not there"


def test_every_item_is_as_it_says() -> None:
    found = [
        f"{paper['short']}, {item.get('section')}, {item.get('item')!r} {fault}"
        for paper in PAPERS
        for item in paper["items"]
        for fault in faults(item)
    ]
    assert not found, "\n".join(found)


def test_the_page_is_current() -> None:
    again = "run python -m benchmarks.papers.items"
    assert part_of(PAGE, "counts") == "\n".join(counts(PAPERS)), again
    assert all(f"- **{paper['short']}**: {paper['paper']}." in PAGE.read_text(encoding="utf-8") for paper in PAPERS), (
        again
    )
    assert ITEMS.read_text(encoding="utf-8") == every_item(PAPERS), again


def test_the_list_is_long_enough_and_says_nothing_twice() -> None:
    said = [(paper["short"], item["section"], item["item"]) for paper in PAPERS for item in paper["items"]]
    assert len(said) >= 133
    assert len(set(said)) == len(said)
    assert [paper["short"] for paper in PAPERS] == ["Amin et al.", "Replication", "Sheffet", "Lecture 18", "CoinPress"]


GOOD = {
    "section": "1",
    "kind": "algorithm",
    "item": "something",
    "status": "covered",
    "where": [
        "dpmoments.papers.mechanisms.eigenvectors.PaperLaplace",
        "docs/evidence/notation.md",
        "benchmarks/papers/items.py::counts",
    ],
    "tests": [
        "tests/site/test_papers.py::test_a_planted_fault_is_found",
        "tests/papers/test_sphere.py::TestCoordinateLaw::test_exact",
    ],
}
PLANTED = [
    ({"status": "not yet"}, "gives no reason"),
    ({"status": "otherwise", "because": ""}, "gives no reason"),
    ({"tests": []}, "names no test"),
    ({"because": "it is"}, "needs no reason"),
    ({"wher": ["docs/evidence/notation.md"]}, "has wher"),
    ({"where": ["dpmoments.mechanisms.Laplacian"]}, "points to dpmoments.mechanisms.Laplacian"),
    ({"where": ["docs/nothing.md"]}, "points to"),
    ({"where": ["benchmarks/papers/items.py::pages"]}, "points to"),
    ({"tests": ["tests/site/test_papers.py::test_nothing"]}, "names the test"),
    ({"tests": ["tests/papers/test_sphere.py::TestNothing::test_exact"]}, "names the test"),
    ({"tests": ["tests/site/test_papers.py"]}, "names the test"),
]


@pytest.mark.parametrize(("change", "words"), PLANTED)
def test_a_planted_fault_is_found(change: dict[str, Any], words: str) -> None:
    assert list(faults(GOOD)) == []
    assert any(words in fault for fault in faults(GOOD | change))


def test_the_list_in_a_file_has_a_row_per_item() -> None:
    head, *rows = csv.reader(io.StringIO(every_item(PAPERS)))
    assert len(rows) == sum(len(paper["items"]) for paper in PAPERS)
    assert {len(row) for row in rows} == {len(head)}


def test_every_claim_that_a_page_judges_is_an_item_and_has_its_status() -> None:
    judged = {claim for claim in verdicts() if not claim.endswith((EXACT, ": the published curves"))}
    named = {claim for paper in PAPERS for item in paper["items"] for claim in item.get("verdicts", ())}
    assert judged == {claim for claim in named if not claim.endswith(EXACT)}


def test_a_status_against_the_verdict_is_found() -> None:
    claim = next(claim for claim, verdict in verdicts().items() if verdict == "does not hold")
    item = {"section": "1", "kind": "claim", "item": "x", "status": "covered", "verdicts": [claim]}
    assert list(contradictions(item)) == ["is covered, where a claim of it is judged as does not hold"]
    assert not list(contradictions(item | {"status": "otherwise"}))
    assert list(contradictions(item | {"verdicts": ["amin-1a: nobody said so"]}))
