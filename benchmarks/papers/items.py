"""The papers item by item: writes docs/evidence/papers.md from docs/evidence/papers.yaml.

    python -m benchmarks.papers.items

Nothing is measured here. ``tests/site/test_papers.py`` checks that every name, file and test of the list exists,
and that the page is current.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "evidence" / "papers.yaml"
PAGE = ROOT / "docs" / "evidence" / "papers.md"
STATUSES = ("covered", "otherwise", "in part", "not yet")
KINDS = (
    *("definition", "guarantee", "algorithm", "option", "bound", "metric", "baseline"),
    *("data", "preprocessing", "experiment", "claim"),
)
ESCAPED = "\\|"
JUDGED = ("reproduction.md", "beside-the-figures.md")
VERDICT = re.compile(
    r"^\| (?P<says>.*?) \| (?:\*\*)?(?P<verdict>reproduced with changes|reproduced|not comparable|does not hold|not compared)"
    r"(?:\*\*)? \|"
)
HEAD = """\
# The papers, item by item

What a reader of the five papers could look for, and where it is in this library. Written from [papers.yaml](papers.yaml) by
`python -m benchmarks.papers.items`; a test checks that every name, file and test below exists.

Claims that figures were judged by have their verdicts, from [the papers' figures](reproduction.md) and
[beside them](beside-the-figures.md).

*Covered*: it is here, and the tests named would fail were it wrong. *Otherwise*: it is here in another way, or is not to be here,
for the reason given. *In part* and *not yet*: what is missing is said. Experiments count as covered only where a test holds what
they show. Items are in our words; sections are those of the papers.
"""


def load() -> list[dict[str, Any]]:
    """The papers with their items, as written."""
    papers: list[dict[str, Any]] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return papers


def page(papers: Sequence[Mapping[str, Any]]) -> str:
    """The whole page in Markdown."""
    lines, known = [HEAD, *counts(papers)], verdicts()
    for paper in papers:
        lines += ["", f"## {paper['short']}", "", f"{paper['paper']}.", ""]
        lines += ["| section | | item | status | where, and why | tests |", "| --- | --- | --- | --- | --- | --- |"]
        lines += [row(item, known) for item in paper["items"]]
    return "\n".join(lines) + "\n"


def counts(papers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many items of each paper have each status."""
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
        figure = ""
        for line in (PAGE.parent / name).read_text(encoding="utf-8").splitlines():
            if line.startswith("### "):
                figure = line.removeprefix("### ").partition(":")[0]
            elif judged := VERDICT.match(line):
                found[f"{figure}: {judged['says'].replace(ESCAPED, '|')}"] = judged["verdict"]
    return found


def row(item: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """One item as a row of its table."""
    where = ", ".join(place(name) for name in item["where"])
    why = f". {sentence(item['because'])}" if "because" in item else ""
    if "verdicts" in item:
        each = (f"{claim.partition(':')[0]} *{known.get(claim, 'not judged')}*" for claim in item["verdicts"])
        why = f"{why or '.'} Verdicts: {', '.join(each)}."
    cells = (
        item["section"],
        item["kind"],
        item["item"],
        f"**{item['status']}**" if item["status"] == "covered" else item["status"],
        where + why,
        ", ".join(f"[{name.split('::', 1)[1]}](../../{name.split('::')[0]})" for name in item.get("tests", ())),
    )
    return f"| {' | '.join(cell.replace('|', ESCAPED) for cell in cells)} |"


def place(name: str) -> str:
    """A name of the library as code, a file as a link."""
    if name.startswith("dpmoments"):
        return f"`{name}`"
    file, _, inside = name.partition("::")
    target = posixpath.relpath(file, "docs/evidence")
    return f"[{f'{Path(file).name}, {inside}' if inside else Path(file).name}]({target})"


def sentence(words: str) -> str:
    """With a capital at its beginning and a full stop at its end."""
    return f"{words[0].upper()}{words[1:]}" + ("" if words.endswith(".") else ".")


def main() -> None:
    """Write the page."""
    papers = load()
    PAGE.write_text(page(papers), encoding="utf-8")
    print("\n".join(counts(papers)))


if __name__ == "__main__":
    main()
