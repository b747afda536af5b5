"""Pages of the docs whose tables are measured: each benchmark writes its own part, and the prose stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["DOCS", "write_part"]

DOCS = Path(__file__).parents[1] / "docs"


def write_part(page: Path, name: str, lines: Iterable[str]) -> None:
    """Replace what is between ``<!-- name: begin -->`` and ``<!-- name: end -->``.

    Raises
    ------
    ValueError
        If the page has no such part.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = page.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page.name} has no part between {begin} and {end}")
    body = "\n".join(lines).strip("\n")
    page.write_text(f"{before}{begin}\n\n{body}\n\n{end}{after}", encoding="utf-8")
