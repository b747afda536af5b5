"""What a search shows first: pages that say how, before proofs, measurements and papers that say why."""

from __future__ import annotations

from typing import Any

LAST = (
    "derivations/",
    "papers.md",
    "reproduction.md",
    "repository/",
    "beside-the-figures.md",
    "sheffet-",
)
BOOST = 0.3


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as it is, with its weight in the search."""
    if page.file.src_uri.startswith(LAST):
        page.meta["search"] = {"boost": BOOST} | page.meta.get("search", {})
    return markdown
