"""README.md: every figure is that of the page, or of the run, that it comes from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.pages import DOCS, part_of
from benchmarks.practice.readme import READ, README, accuracy, in_lines
from hatch_build import with_absolute_links
from tools.documentation.screenshots import MOST_BYTES

pytestmark = pytest.mark.long(sets=None)


@pytest.mark.parametrize("name", READ)
def test_figures_of_other_pages_are_those_of_the_pages(name: str) -> None:
    assert part_of(README, name) == "\n".join(in_lines(READ[name]())), "run make readme"


@pytest.mark.long
def test_the_table_of_errors_is_that_of_the_measured_runs() -> None:
    assert part_of(README, "accuracy") == "\n".join(accuracy()), "run make readme"


def test_links_of_the_package_are_absolute_and_lead_somewhere() -> None:
    text = with_absolute_links(README.read_text(encoding="utf-8"), "https://example.org")
    targets = re.findall(r"\]\(https://example.org/(?:raw|blob)/main/([^)#]+)", text)
    assert len(targets) > 10
    assert all((README.parent / target).exists() for target in targets)
    assert not [target for target in re.findall(r"\]\(([^)]+)\)", text) if not target.startswith(("https://", "#"))]


def test_screenshots_are_there_and_small() -> None:
    pages = [README, *sorted(DOCS.glob("*.md")), DOCS / "api" / "pictures.md", Path(README.parent, "CONTRIBUTING.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name in ("readme-report.png", "notebook-card.png", "report.png", "planner.png"):
        assert re.search(rf"\]\((docs/|\.\./)?images/{name}\)", text)
        assert (DOCS / "images" / name).stat().st_size <= MOST_BYTES
