"""Pages of the docs whose tables are measured: each benchmark writes its own part, and the prose stays as it is.

A long table goes into a CSV file beside its page, which links to it: a page is read, a file is searched.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from markdown.extensions.toc import slugify

DOCS = Path(__file__).parents[1] / "docs"
EVIDENCE = DOCS / "evidence"
MAX_ROWS, MAX_WORDS = 12, 150
"""A table with more rows or words goes into a file."""
MAX_COLUMNS = 4
"""Columns that a link to a file names."""
FOLDER = "tables"
TABLE = re.compile(r"^(?P<table>(?:\|.*\n)+)|^#+ (?P<heading>.*)$", re.M)
IN_A_FILE = re.compile(rf"^\[[\d,]+ rows\]\(({FOLDER}/[\w-]+\.csv)\).*$", re.M)


def write_part(page: Path, name: str, lines: Iterable[str]) -> None:
    """Replace what is between ``<!-- name: begin -->`` and ``<!-- name: end -->``."""
    before, _, after = _cut(page, name)
    body = _with_files(page, "\n".join(lines).strip("\n") + "\n", name)
    page.write_text(f"{before}\n\n{body}\n{after}", encoding="utf-8")


def part_of(page: Path, name: str) -> str:
    """Return what was written there, with the tables that are in files."""
    return IN_A_FILE.sub(lambda link: _read_table(page.parent / link[1]), _cut(page, name)[1].strip("\n"))


def head(names: str, sides: str) -> tuple[str, str]:
    """The first lines of a table: names with bars between them, and on which side (l or r) each column stands.

    Examples
    --------
    >>> head("d | rows", "rl")
    ('| d | rows |', '| ---: | --- |')
    """
    return f"| {names} |", "|" + "".join(" ---: |" if side == "r" else " --- |" for side in sides)


def two_digits(value: float, whole_from: float = 10.0) -> str:
    """Or a whole number, or a dash for what is not known.

    Examples
    --------
    >>> two_digits(0.123), two_digits(12.3)
    ('0.12', '12')
    """
    if not math.isfinite(value):
        return "–"
    return f"{value:.2g}" if abs(value) < whole_from else f"{value:.0f}"


def tables_in(markdown: str) -> Iterator[dict[str, str]]:
    """Every line of every table, its cells by the head of their column.

    Examples
    --------
    >>> list(tables_in("| d | rows |\\n| ---: | --- |\\n| 10 | many |"))
    [{'d': '10', 'rows': 'many'}]
    """
    head: list[str] = []
    for line in markdown.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        cells = _cells(line)
        if not head:
            head = cells
        elif set(line) - set("|-: "):
            yield dict(zip(head, cells, strict=True))


def _with_files(page: Path, text: str, name: str) -> str:
    """Return the text with links to files in place of long tables, which are written."""
    numbers: Counter[str] = Counter()
    part = ""

    def linked(found: re.Match[str]) -> str:
        nonlocal part
        if found["heading"] is not None:
            part = slugify(re.sub(r":.*", "", found["heading"]), "-")
            return found[0]
        lines = found["table"].splitlines()
        if len(lines) - 2 <= MAX_ROWS and len(found["table"].split()) <= MAX_WORDS:
            return found[0]
        number = str(numbers[part] + 1) if numbers[part] else ""
        stem = "-".join(word for word in (page.stem, name.replace(" ", "-"), part, number) if word)
        numbers[part] += 1
        file = page.parent / FOLDER / f"{stem}.csv"
        file.parent.mkdir(exist_ok=True)
        with file.open("w", encoding="utf-8", newline="") as stream:
            rows = [_cells(line) for line in (lines[0], *lines[2:])]
            csv.writer(stream, lineterminator="\n").writerows([cell.replace("**", "") for cell in row] for row in rows)
        columns = [cell for cell in _cells(lines[0]) if cell]
        end = "." if len(columns) <= MAX_COLUMNS else ", …"
        return f"[{len(lines) - 2:,} rows]({FOLDER}/{file.name}): {', '.join(columns[:MAX_COLUMNS])}{end}\n"

    return TABLE.sub(linked, text)


def _read_table(file: Path) -> str:
    """Return a file's table in Markdown."""
    with file.open(encoding="utf-8", newline="") as stream:
        head, *rows = csv.reader(stream)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _cut(page: Path, name: str) -> tuple[str, str, str]:
    """A page before a part (its mark included), within it, and after it."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    within, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page.name} has no part between {begin} and {end}")
    return before + begin, within, end + after
