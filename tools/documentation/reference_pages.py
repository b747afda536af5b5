"""A page for each class and function of the reference; the pages of ``docs/api`` become lists of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

DOCS = Path(__file__).parents[2] / "docs"
DIRECTIVE = re.compile(r"^::: (\S+)\n(?! )", re.M)
"""Without options: a directive with options stays where it is."""


@dataclass(frozen=True)
class Entry:
    """A class or function: where it is imported from, what it is, its page, and the first line of its docstring."""

    path: str
    is_class: bool
    folder: str
    first_line: str

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def page(self) -> str:
        """Page under ``docs``: ``forecast`` and ``Forecast`` are two pages also where the case of letters is ignored."""
        return f"{self.folder}/{'class-' if self.is_class else ''}{self.name.lower()}.md"

    @property
    def line(self) -> str:
        """Line of the list, on the page ``docs/FOLDER.md``."""
        words = re.sub(r"(?::\w+:)?``?~?([^`]+)``?", r"`\1`", self.first_line)
        return f"- [`{self.name}`]({self.page.partition('/')[2]}): {words}"


def entries(path: str, folder: str) -> Iterator[Entry]:
    """Yield the class or function of a directive, or those of a module: of its ``__all__``, or made in it."""
    try:
        module = import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        found = getattr(import_module(owner), name)
        first = (inspect.getdoc(found) or "").partition("\n")[0]
        yield Entry(path, inspect.isclass(found), folder, first)
        return
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == path and name[0] != "_"]
    for name in getattr(module, "__all__", own):
        if callable(getattr(module, name)):
            yield from entries(f"{path}.{name}", folder)


def listed(page: str) -> list[Entry]:
    """Return all entries of one page of the reference, such as ``api/releases.md``."""
    directives = DIRECTIVE.findall((DOCS / page).read_text(encoding="utf-8"))
    found = [entry for path in directives for entry in entries(path, page.removesuffix(".md"))]
    return found if len(found) > 1 else []


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to the reader site."""
    if Path(config["docs_dir"]) != DOCS:
        return files
    for path in sorted((DOCS / "api").glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for entry in listed(f"api/{path.name}"):
            content = (
                f"::: {entry.path}\n    options:\n      heading_level: 1\n\nListed under [{title}](../{path.name}).\n"
            )
            files.append(File.generated(config, entry.page, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Put a list in the place of the directives of a page."""
    source = page.file.src_uri
    if Path(config["docs_dir"]) != DOCS or not re.fullmatch(r"api/[\w-]+\.md", source) or not listed(source):
        return markdown
    folder = source.removesuffix(".md")
    return DIRECTIVE.sub(
        lambda found: "".join(f"{entry.line}\n" for entry in entries(found[1], folder)), f"{markdown}\n"
    )
