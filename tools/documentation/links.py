"""What leads out of the documentation: pages beside the README are taken into the site, and other files are named, not linked.

A page read in the repository links to tests, benchmarks and source files; the site, which is read from a disk, has none of them.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
TAKEN = ("SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")
WORKER = "https://unpkg.com/iframe-worker/shim"
FETCHED = re.compile(r"""<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="(https?://[^"]*)""")
LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """The pages beside the README, as ``repository/NAME``."""
    for name in TAKEN:
        files.append(File.generated(config, f"repository/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links for the site: see :func:`link_in_site`."""
    return LINK.sub(lambda found: link_in_site(page.file.src_uri, *found.groups(default="")), markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page with the search's worker from beside it, so that nothing is fetched.

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
    """The page that is shown where a page is missing, likewise."""
    return output_content.replace(WORKER, "/iframe-worker.js")


def link_in_site(source: str, label: str, target: str, anchor: str) -> str:
    """A link of the page ``source`` (its path under docs/) as the site needs it.

    Examples
    --------
    >>> link_in_site("threat-model.md", "SECURITY", "../SECURITY.md", "")
    '[SECURITY](repository/SECURITY.md)'
    >>> link_in_site("derivations/means.md", "`test_means.py`", "../../tests/test_means.py", "")
    '`test_means.py`'
    >>> link_in_site("repository/SECURITY.md", "limits", "docs/known-limits.md", "#levels")
    '[limits](../known-limits.md#levels)'
    """
    if "://" in target:
        return f"[{label}]({target}{anchor})"
    folder = posixpath.dirname(source)
    from_repository = "." if folder == "repository" else posixpath.join("docs", folder)
    path = posixpath.normpath(posixpath.join(from_repository, target))
    if path in TAKEN:
        path = f"docs/repository/{path}"
    if path.startswith("docs/"):
        return f"[{label}]({posixpath.relpath(path.removeprefix('docs/'), folder or '.')}{anchor})"
    return label
