"""Pages of the docs whose tables are measured: each benchmark writes its own part, and the prose stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["DOCS", "EVIDENCE", "part_of", "tables_in", "write_part"]

DOCS = Path(__file__).parents[1] / "docs"
EVIDENCE = DOCS / "evidence"


def write_part(page: Path, name: str, lines: Iterable[str]) -> None:
    """Replace what is between ``<!-- name: begin -->`` and ``<!-- name: end -->``.

    Raises
    ------
    ValueError
        If the page has no such part.
    """
    before, _, after = _cut(page, name)
    body = "\n".join(lines).strip("\n")
    page.write_text(f"{before}\n\n{body}\n\n{after}", encoding="utf-8")


def part_of(page: Path, name: str) -> str:
    """What was written there.

    Raises
    ------
    ValueError
        If the page has no such part.
    """
    return _cut(page, name)[1].strip("\n")


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
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not head:
            head = cells
        elif set(line) - set("|-: "):
            yield dict(zip(head, cells, strict=True))


def _cut(page: Path, name: str) -> tuple[str, str, str]:
    """A page before a part (its mark included), within it, and after it."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    within, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page.name} has no part between {begin} and {end}")
    return before + begin, within, end + after
