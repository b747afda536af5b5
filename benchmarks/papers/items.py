"""The papers item by item: writes the counts of docs/evidence/papers.md, and tables/papers.csv there, from papers.yaml.

    python -m benchmarks.papers.items

Nothing is measured here. ``tests/site/test_papers.py`` checks that every name, file and test of the list exists,
and that the page is current.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.pages import write_part
from benchmarks.papers.reproduce.declaration import Verdict

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "evidence" / "papers.yaml"
PAGE = ROOT / "docs" / "evidence" / "papers.md"
ITEMS = PAGE.parent / "tables" / "papers.csv"
STATUSES = ("covered", "otherwise", "in part", "not yet")
KINDS = (
    *("definition", "guarantee", "algorithm", "option", "bound", "metric", "baseline"),
    *("data", "preprocessing", "experiment", "claim"),
)
JUDGED = ("reproduction.csv", "beside-the-figures.csv")
VERDICTS = {*map(str, Verdict), "not compared"}


def load() -> list[dict[str, Any]]:
    papers: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return papers


def counts(papers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield f"| paper | items | {' | '.join(STATUSES)} |"
    yield "| --- | ---: |" + " ---: |" * len(STATUSES)
    total: Counter[str] = Counter()
    for paper in papers:
        found = Counter(item["status"] for item in paper["items"])
        total += found
        yield f"| {paper['short']} | {found.total()} | {' | '.join(str(found[status]) for status in STATUSES)} |"
    yield f"| all | {total.total()} | {' | '.join(str(total[status]) for status in STATUSES)} |"


def verdicts() -> Mapping[str, str]:
    """The verdict of every claim that a page judges, by figure and claim, ``"amin-1a: AD has less error …"``."""
    found = {}
    for name in JUDGED:
        with (ITEMS.parent / name).open(encoding="utf-8", newline="") as stream:
            for line in csv.DictReader(stream):
                if line["verdict"] in VERDICTS:
                    found[f"{line['figure']}: {line['claim']}"] = line["verdict"]
    return found


def reason(item: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """Why an item is not covered, and the verdicts of its claims."""
    why = item.get("because", "")
    why = f"{why[:1].upper()}{why[1:]}" + ("" if why.endswith(".") or not why else ".")
    if "verdicts" in item:
        each = (f"{claim.partition(':')[0]} *{known.get(claim, 'not judged')}*" for claim in item["verdicts"])
        why = f"{why} Verdicts: {', '.join(each)}.".strip()
    return why


def every_item(papers: Sequence[Mapping[str, Any]]) -> str:
    """All items in CSV, with where they are and the tests that hold them."""
    known, stream = verdicts(), io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    table.writerow(["paper", "section", "kind", "item", "status", "reason", "where", "tests"])
    for paper in papers:
        for item in paper["items"]:
            plain = [item[field] for field in ("section", "kind", "item", "status")]
            lists = [" ".join(item.get(field, ())) for field in ("where", "tests")]
            table.writerow([paper["short"], *plain, reason(item, known), *lists])
    return stream.getvalue()


if __name__ == "__main__":
    papers = load()
    write_part(PAGE, "counts", counts(papers))
    ITEMS.write_text(every_item(papers), encoding="utf-8")
