"""README.md and the site's first page: every figure is that of the page, or of the run, that it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.pages import DOCS, part_of
from benchmarks.practice.comparison.contenders import NOW
from benchmarks.practice.readme import INDEX, READ, README, TABLES, Row, accuracy_row, in_lines, measured
from tools.documentation.screenshots import MOST_BYTES

QUICK = ("airfoil", "digits", "wine", "adult-numbers")


@pytest.mark.parametrize("name", READ)
def test_figures_of_other_pages_are_those_of_the_pages(name: str) -> None:
    assert part_of(README, name) == "\n".join(in_lines(READ[name]())), "run make readme"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in TABLES]
)
def test_the_table_of_errors_is_what_releases_give(name: str) -> None:
    line = accuracy_row(TABLES[name], measured(name))
    for page in (README, INDEX):
        assert line in part_of(page, "accuracy").splitlines(), "run make readme"


def test_the_least_error_is_bold() -> None:
    assert accuracy_row("x", Row(1000, 3, {"peers": 2.0, "before": 0.5, NOW: 0.25})).endswith(
        "| 2.0 | 0.50 | **0.25** |"
    )


def test_the_first_page_of_the_site_begins_as_the_readme() -> None:
    readme, index = README.read_text(encoding="utf-8"), INDEX.read_text(encoding="utf-8")
    first, accuracy = readme.index("## How accurate is it?"), readme.index("<!-- accuracy: end -->")
    assert index.startswith(readme[:first].replace("docs/images/", "images/"))
    assert readme[first:accuracy] in index


def test_screenshots_are_there_and_small() -> None:
    pages = [README, *sorted(DOCS.glob("*.md")), Path(README.parent, "CONTRIBUTING.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name in ("readme-report.png", "notebook-card.png", "site.png", "report.png", "planner.png"):
        assert re.search(rf"\]\((docs/)?images/{name}\)", text)
        assert (DOCS / "images" / name).stat().st_size <= MOST_BYTES
