"""The documentation site: every public name is in the reference, every page in the menu, and every block runs."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, get_type_hints

import pytest
import yaml
from tools.documentation.words import MAX_WORDS
from tools.documentation.words import pages as words

import dpmoments as dpm
from dpmoments import audit, estimators, noise
from dpmoments.analysis.answers import Answer
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from support.doc_blocks import run_in_order

pytestmark = pytest.mark.long(sets=None)

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DIRECTIVE = re.compile(r"^::: (\S+)$", re.M)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
RUN_BY = {
    "api/command-line": "test_cli",
    "api/file-format": "test_file_format",
    "averages-and-counts": "test_docs",
    "choose-bounds": "test_rough_scale",
    "forecast": "test_forecast_units",
    "goals": "test_docs",
    "how-to-read-tables": "test_docs",
    "ledger": "test_ledger",
    "people-not-rows": "test_docs",
    "preflight": "test_docs",
    "read-a-report": "test_report",
    "scikit-learn": "test_estimators",
}
"""Pages whose blocks another test runs, with what they print."""


def public_names(module: ModuleType) -> list[str]:
    """The list of a package's face; of a file what it defines without an underscore."""
    own = [n for n, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def public_objects(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Classes and functions that can be reached from a module by public names."""
    for name in public_names(module):
        value = getattr(module, name)
        if inspect.ismodule(value):
            yield from public_objects(value)
        elif inspect.isclass(value) or inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value


def described() -> set[int]:
    """Identities of what the pages of the reference describe."""
    found = set()
    for page in (DOCS / "api").rglob("*.md"):
        for path in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            module, _, name = path.rpartition(".")
            try:
                value = getattr(importlib.import_module(module), name)
            except (ImportError, AttributeError):
                value = importlib.import_module(path)
            found |= {id(member) for _, member in public_objects(value)} if inspect.ismodule(value) else {id(value)}
    return found


def test_every_public_name_is_in_the_reference() -> None:
    wanted = dict(public_objects(dpm))
    for module in (audit, estimators, noise):
        wanted |= dict(public_objects(module))
    wanted |= {f"mechanism {name}": found for name, found in {**MECHANISMS, **MEAN_MECHANISMS}.items()}
    analyses = {
        name: found
        for name, found in vars(dpm.MomentRelease).items()
        if name[0] != "_" and getattr(found, "__module__", "").startswith("dpmoments.analysis.")
    }
    assert len(analyses) > 10
    wanted |= analyses
    answers = {f"answer of {found.__name__}": get_type_hints(found)["return"] for found in analyses.values()}
    wanted |= {name: kind for name, kind in answers.items() if inspect.isclass(kind) and issubclass(kind, Answer)}
    place = described()
    assert not [name for name, value in wanted.items() if id(value) not in place]


MAX_NAMES = 140
"""Public names that a newcomer has to tell apart: what the reference describes, and the lists of packages' faces."""


def test_public_names_are_few() -> None:
    faces = [
        dpm,
        *(importlib.import_module(name) for _, name, package in walk_packages(dpm.__path__, "dpmoments.") if package),
    ]
    listed = {
        id(getattr(face, name)) for face in faces for name in getattr(face, "__all__", ()) if not is_module(face, name)
    }
    names = described() | listed
    assert 80 < len(names) <= MAX_NAMES


def is_module(face: ModuleType, name: str) -> bool:
    return inspect.ismodule(getattr(face, name))


def test_every_page_is_in_the_menu() -> None:
    """Those of docs/evidence in the menu of the evidence site, all others in that of the reader site."""

    def pages(entry: Any) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        for value in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            yield from pages(value)

    def menu(name: str) -> list[str]:
        return list(pages(yaml.safe_load(re.sub(r"!!\S+", "", (ROOT / name).read_text(encoding="utf-8")))["nav"]))

    listed = [*menu("mkdocs.yml"), *(f"evidence/{page}" for page in menu("mkdocs-evidence.yml"))]
    written = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    written |= {page.with_suffix(".md").name for page in DOCS.glob("*.ipynb")}
    assert len(listed) == len(set(listed))
    assert {page for page in listed if not page.startswith("repository/")} == written


WITH_BLOCKS = sorted(
    str(page.relative_to(DOCS).with_suffix(""))
    for page in DOCS.rglob("*.md")
    if BLOCK.search(page.read_text(encoding="utf-8"))
)


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if page not in RUN_BY])
def test_every_block_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page continue one another, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    run_in_order(DOCS / f"{page}.md")


@pytest.mark.parametrize("page", [page for page in WITH_BLOCKS if page in RUN_BY])
def test_what_is_run_elsewhere_is(page: str) -> None:
    (test,) = (ROOT / "tests").rglob(f"{RUN_BY[page]}.py")
    assert f"{page}.md" in test.read_text(encoding="utf-8")


def test_what_the_theme_leaves_unsaid_is_said() -> None:
    import material
    from tools.documentation.accessibility import SEARCH, on_page_content, on_post_page

    search = Path(material.__file__).parent / "templates" / "partials" / "search.html"
    assert f'{SEARCH} aria-label="Search"' in on_post_page(search.read_text(encoding="utf-8"))
    assert on_page_content('<th style="text-align: right;"></th><th>rows</th>') == "<td></td><th>rows</th>"


def test_each_class_and_function_of_the_reference_has_a_page() -> None:
    """The list on a page of ``docs/api`` takes the place of its directives."""
    from types import SimpleNamespace

    from tools.documentation.reference_pages import DIRECTIVE, listed, on_page_markdown, reference

    entries = {page: listed(page) for page in reference()}
    assert {entry.name for entry in entries["api/releases.md"]} > {"release", "load", "Receipt"}
    assert {entry.name for entry in entries["api/analyses/ols.md"]} > {"FittedLine", "Predictions"}
    assert "sample_bingham" in {entry.name for entry in entries["api/building-blocks.md"]}
    for page, found in entries.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        file = SimpleNamespace(file=SimpleNamespace(src_uri=page))
        shown = on_page_markdown(text, file, {"docs_dir": str(DOCS)})
        assert not DIRECTIVE.search(shown)
        assert all(entry.line(page) in shown for entry in found)
        assert ":func:" not in shown


@pytest.mark.parametrize("site", ["evidence", "reader"])
def test_a_site_can_be_read_to_its_end(site: str) -> None:
    assert sum(number for one, _, number in words() if one == site) <= MAX_WORDS[site]
