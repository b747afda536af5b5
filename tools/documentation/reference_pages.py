"""A page for each class, method and function of the reference; other pages of ``docs/api`` list them."""

from __future__ import annotations

import inspect
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

DOCS = Path(__file__).parents[2] / "docs"
ANALYSES = "api/analyses"
DIRECTIVE = re.compile(r"^::: (\S+)\n(?! )", re.M)
"""Without options: it gets a page of its own."""
DIRECTIVE_IN_PLACE = re.compile(r"^::: (\S+)\n    options:\n((?:      .*\n)+)", re.M)
"""With options: it stays where it is, and only the methods of a class get pages."""


@dataclass(frozen=True)
class Entry:
    """A class, method or function: its path, itself, the folder of its page, and whether inherited methods are listed."""

    path: str
    found: Any
    folder: str
    inherited: bool = False

    @property
    def name(self) -> str:
        """Last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def title(self) -> str:
        """Name, after that of its class."""
        is_method = inspect.isfunction(self.found) and "." in self.found.__qualname__
        return ".".join(self.path.split(".")[-2:]) if is_method else self.name

    @property
    def page(self) -> str:
        """Page under ``docs``: ``forecast`` and ``Forecast`` are two pages also where the case of letters is ignored."""
        return f"{self.folder}/{'class-' if inspect.isclass(self.found) else ''}{self.name.lower()}.md"

    def line(self, source: str) -> str:
        """Return the line of the list on the page ``source``."""
        words = re.sub(r"(?::\w+:)?``?~?([^`]+)``?", r"`\1`", (inspect.getdoc(self.found) or "").partition("\n")[0])
        return f"- [`{self.name}`]({posixpath.relpath(self.page, posixpath.dirname(source))}): {words}\n"

    @cached_property
    def methods(self) -> tuple[Entry, ...]:
        """Public methods of a class that have a docstring; analyses have pages of their own."""
        if not inspect.isclass(self.found):
            return ()
        functions: dict[str, Any] = {}
        for owner in self._owners:
            for name, value in vars(owner).items():
                function = getattr(value, "__func__", value)
                is_method = inspect.isfunction(function) and "." in function.__qualname__
                if name[0] != "_" and is_method and function.__doc__:
                    functions.setdefault(name, function)
        folder = self.page.removesuffix(".md")
        return tuple(Entry(f"{self.path}.{name}", function, folder) for name, function in functions.items())

    @property
    def _owners(self) -> list[type]:
        """Classes whose methods are listed: an answer has those of a base class in its own file, which has no page."""
        if self.inherited:
            return [owner for owner in self.found.__mro__ if owner.__module__.startswith("dpmoments.")]
        if self.folder.startswith(f"{ANALYSES}/"):
            return [owner for owner in self.found.__mro__ if owner.__module__ == self.found.__module__]
        return [self.found]

    @property
    def analyses(self) -> tuple[Entry, ...]:
        """Analyses of a release, which stand in the class as functions and have pages of their own."""
        functions = [value for value in vars(self.found).values() if inspect.isfunction(value)]
        pages = (f"{ANALYSES}/{function.__name__}.md" for function in functions)
        stay = (entry for page in pages if (DOCS / page).exists() for entry in in_place(page))
        return tuple(replace(entry, folder=ANALYSES) for entry in stay if entry.found in functions)

    def directive(self, level: int, source: str) -> str:
        """Return the text that describes it on the page ``source``: a class with a list of its methods."""
        options = [f"heading_level: {level}", *["inherited_members: true"] * self.inherited]
        if not inspect.isclass(self.found):
            options += [f"heading: {self.title}", f"toc_label: {self.title}"]
        elif self.methods:
            options.append(f'filters: ["!^_", "!^({"|".join(method.name for method in self.methods)})$"]')
        text = f"::: {self.path}\n    options:\n" + "".join(f"      {option}\n" for option in options)
        if not self.methods:
            return text
        lines = (entry.line(source) for entry in (*self.analyses, *self.methods))
        return f"{text}\n{'#' * (level + 1)} Methods of {self.name}\n\n{''.join(lines)}"

    def text(self, above: str) -> str:
        """Return its page, below links to the pages that list it."""
        return f"---\ntitle: {self.title}\n---\n\n{above}\n\n{self.directive(1, self.page)}"

    def link(self, label: str, target: str) -> str:
        """Return a link from its page to another one."""
        return f"[{label}]({posixpath.relpath(target, posixpath.dirname(self.page))})"


def entries(path: str, folder: str) -> Iterator[Entry]:
    """Yield the class or function of a directive, or those of a module: of its ``__all__``, or made in it."""
    try:
        module = import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        yield Entry(path, getattr(import_module(owner), name), folder)
        return
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == path and name[0] != "_"]
    for name in getattr(module, "__all__", own):
        found = getattr(module, name)
        if callable(found):  # what a module loads on demand is not in its text
            yield from entries(f"{path if name in vars(module) else found.__module__}.{name}", folder)


def listed(page: str) -> list[Entry]:
    """Return all entries of one page of the reference, such as ``api/releases.md``, that have pages of their own."""
    directives = DIRECTIVE.findall((DOCS / page).read_text(encoding="utf-8"))
    return [entry for path in directives for entry in entries(path, page.removesuffix(".md"))]


def in_place(page: str) -> list[Entry]:
    """Return the entries that stay on a page of the reference."""
    directives = DIRECTIVE_IN_PLACE.findall((DOCS / page).read_text(encoding="utf-8"))
    return [_stays(path, options, page) for path, options in directives]


def _stays(path: str, options: str, page: str) -> Entry:
    """Return the entry of a directive with options."""
    (entry,) = entries(path, page.removesuffix(".md"))
    return replace(entry, inherited="inherited_members: true" in options)


def reference() -> Iterator[str]:
    """Yield the pages of ``docs/api``."""
    yield from sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "api").rglob("*.md"))


def pages() -> Iterator[tuple[str, str]]:
    """Yield each page that is added, and its text."""
    for source in reference():
        title = (DOCS / source).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for entry in listed(source):
            yield entry.page, entry.text(entry.link(title, source))
            for method in entry.methods:
                yield method.page, method.text(f"{method.link(title, source)} › {method.link(entry.name, entry.page)}")
        for entry in in_place(source):
            for method in entry.methods:
                yield method.page, method.text(method.link(title, source))


def on_files(files: Files, config: Any) -> Files:
    """Add the pages to the reader site."""
    for page, text in pages() if Path(config["docs_dir"]) == DOCS else ():
        files.append(File.generated(config, page, content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Put a list in the place of the directives of a page, and of the methods of classes that stay."""
    source = page.file.src_uri
    if Path(config["docs_dir"]) != DOCS or not (DOCS / source).exists() or not source.startswith("api/"):
        return markdown
    folder = source.removesuffix(".md")
    markdown = DIRECTIVE_IN_PLACE.sub(
        lambda found: _stays(found[1], found[2], source).directive(2, source), f"{markdown}\n"
    )
    return DIRECTIVE.sub(lambda found: "".join(entry.line(source) for entry in entries(found[1], folder)), markdown)
