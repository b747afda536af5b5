"""Order of search results: pages that say how come before proofs and files beside the README."""

from __future__ import annotations

from typing import Any

LAST = ("derivations/", "repository/")
BOOST = 0.3


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page as it is, with its weight in the search."""
    if page.file.src_uri.startswith(LAST):
        page.meta["search"] = {"boost": BOOST} | page.meta.get("search", {})
    return markdown
