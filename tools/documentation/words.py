"""Words of the two sites: ``python -m tools.documentation.words``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tools.documentation.notebooks import markdown

DOCS = Path(__file__).parents[2] / "docs"
MAX_WORDS = {"reader": 22_000, "evidence": 60_000}
"""Limits of the sites: what a person can finish, and what one who checks it can."""
COMMENT = re.compile(r"<!--.*?-->", re.S)
BAR = re.compile(r"[|:-]+")


def pages() -> Iterator[tuple[str, str, int]]:
    """Yield site, path under docs and words of every page, tables and code included, their bars and comments not.

    ``"reference"`` is what is looked up or run, not read through: docs/api, the list of mechanisms, and notebooks.
    """
    for path in sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]):
        text = path.read_text(encoding="utf-8")
        text = markdown(json.loads(text)) if path.suffix == ".ipynb" else text
        name = path.relative_to(DOCS)
        looked_up = name.parts[0] == "api" or path.suffix == ".ipynb" or str(name) == "mechanisms.md"
        site = "reference" if looked_up else "evidence" if name.parts[0] == "evidence" else "reader"
        yield site, str(name), sum(not BAR.fullmatch(word) for word in COMMENT.sub("", text).split())


def main() -> None:
    """Print the words of every page and each site."""
    every = list(pages())
    for site, limit in MAX_WORDS.items():
        its = [(name, number) for of, name, number in every if of == site]
        for name, number in its:
            print(f"{number:7,}  {name}")
        print(
            f"{sum(number for _, number in its):7,}  words on {len(its)} pages of the {site} site (at most {limit:,})\n"
        )


if __name__ == "__main__":
    main()
