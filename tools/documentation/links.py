"""Links of the two sites: pages beside the README are taken in, pages of the other site and files outside are rewritten.

The reader site has the pages of ``docs``, the evidence site those of ``docs/evidence``, built into the folder ``evidence``
of the first. A page read in the repository links to tests, benchmarks and source files; a site, which is read from a
disk, has none of them.
"""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Link, Navigation
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[2]
TAKEN = ("SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")
EVIDENCE = "evidence"
"""Folder of the evidence site, in ``docs`` and in the reader site."""
WORKER = "https://unpkg.com/iframe-worker/shim"
FETCHED = re.compile(r"""<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="(https?://[^"]*)""")
LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def is_evidence(config: Any) -> bool:
    """Return True for the evidence site."""
    return Path(config["docs_dir"]).name == EVIDENCE


def on_files(files: Files, config: Any) -> Files:
    """Add the pages beside the README as ``repository/NAME``; the evidence site takes the style of the reader site."""
    if is_evidence(config):
        for name in ("site.css", "iframe-worker.js"):
            files.append(File.generated(config, name, abs_src_path=str(ROOT / "docs" / name)))
        return files
    for name in TAKEN:
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_nav(nav: Navigation, config: Any, **_: Any) -> Navigation:
    """Add a link to the other site at the end of the menu."""
    other = ("For readers", "../index.html") if is_evidence(config) else ("Evidence", f"{EVIDENCE}/index.html")
    nav.items.append(Link(*other))
    return nav


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Rewrite the links of a page: see :func:`link_in_site`."""
    source = page.file.src_uri
    if is_evidence(config):
        source = f"{EVIDENCE}/{source}"
    return LINK.sub(lambda found: link_in_site(source, *found.groups(default="")), markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Take the search's worker from the site, so that nothing is fetched.

    Raises
    ------
    ValueError
        If the theme fetches anything else.
    """
    output = output.replace(WORKER, posixpath.relpath("iframe-worker.js", posixpath.dirname(page.url) or "."))
    if fetched := FETCHED.search(output):
        raise ValueError(f"{page.url} would fetch {fetched[1]} from a network: take it into docs/")
    return output


def on_post_template(output_content: str, **_: Any) -> str:
    """Rewrite the page for missing pages in the same way."""
    return output_content.replace(WORKER, "/iframe-worker.js")


def link_in_site(source: str, label: str, target: str, anchor: str) -> str:
    """Return a link of the page ``source`` (its path under docs/) as its site needs it.

    Raises
    ------
    ValueError
        If a link into the other site has no target there.

    Examples
    --------
    >>> link_in_site("threat-model.md", "SECURITY", "../SECURITY.md", "")
    '[SECURITY](repository/SECURITY.md)'
    >>> link_in_site("evidence/derivations/means.md", "`test_means.py`", "../../../tests/test_means.py", "")
    '`test_means.py`'
    >>> link_in_site("repository/SECURITY.md", "limits", "docs/threat-model.md", "#categories")
    '[limits](../threat-model.md#categories)'
    >>> link_in_site("evidence/derivations/means.md", "limits", "../../threat-model.md", "")
    '<a href="../../threat-model.html">limits</a>'
    """
    if "://" in target:
        return f"[{label}]({target}{anchor})"
    folder = posixpath.dirname(source)
    from_repository = "." if folder == "repository" else posixpath.join("docs", folder)
    path = posixpath.normpath(posixpath.join(from_repository, target))
    if path in TAKEN:
        path = f"docs/repository/{path}"
    if not path.startswith("docs/"):
        return label
    path = path.removeprefix("docs/")
    link = posixpath.relpath(path, folder or ".")
    if (path.split("/")[0] == EVIDENCE) == (source.split("/")[0] == EVIDENCE):
        return f"[{label}]({link}{anchor})"
    if path.endswith((".md", ".png")):
        if anchor and anchor.removeprefix("#") not in _anchors(path):
            raise ValueError(f"{source} links to {path}{anchor}, which is not a heading there")
        page = re.sub(r"\.md$", ".html", link)
        return f'<a href="{page}{anchor}">{label}</a>'
    return label


@cache
def _anchors(path: str) -> frozenset[str]:
    """Return the anchors of a page under docs/; none if it is not there."""
    file = ROOT / path if path.startswith("repository/") else ROOT / "docs" / path
    text = (ROOT / path.removeprefix("repository/") if path.startswith("repository/") else file).read_text("utf-8")
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return frozenset(slugify(case="lower")(re.sub(r"[`*]", "", heading), "-") for heading in plain)
