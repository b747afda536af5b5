"""Write a page per analysis and per class of the reference: ``python -m tools.documentation.analyses``.

A page has the first line of the docstring, what ``docs/api/analyses.yaml`` adds, and the docstring itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import dpmoments as dpm

API = Path(__file__).parents[2] / "docs" / "api"
FOLDER = API / "analyses"
CLASSES = {
    "moment-release": "dpmoments.releases.moment_release.MomentRelease",
    "mean-release": "dpmoments.releases.mean_release.MeanRelease",
    "counts-release": "dpmoments.releases.counts_release.CountsRelease",
}
"""Classes with so many members that each has a page, by its name."""
OPTIONS = "    options:\n      heading_level: 2\n"


@cache
def texts() -> Mapping[str, Mapping[str, Any]]:
    """Return what ``analyses.yaml`` says, by the name of the analysis."""
    found: Mapping[str, Mapping[str, Any]] = yaml.safe_load((API / "analyses.yaml").read_text(encoding="utf-8"))
    return found


def analyses() -> dict[str, Any]:
    """Return the functions that are methods of a release, by name."""
    return {
        name: found
        for name, found in vars(dpm.MomentRelease).items()
        if name[0] != "_" and getattr(found, "__module__", "").startswith("dpmoments.analysis.")
    }


def page(name: str) -> str:
    """Return the page of an analysis in Markdown."""
    function, text = analyses()[name], texts()[name]
    first = (inspect.getdoc(function) or "").splitlines()[0]
    lines = [f"# {name}", "", f"{text['asks']} {first.partition(':')[0].rstrip('.')}.", ""]
    lines += ["```text", text["formula"], "```", "", f"**Assumed.** {text['assumed']}", ""]
    lines += [f"**Noise.** {text['unclear']}", "", "| elsewhere | here |", "| --- | --- |"]
    lines += [f"| {tool}: `{call}` | `release.{name}(…)` |" for tool, call in text["elsewhere"].items()]
    if "figure" in text:
        lines += ["", f"![{text['asks']}](../../images/{text['figure']})"]
    lines += ["", f"::: {function.__module__}.{function.__name__}", OPTIONS.rstrip()]
    if "answers" in text:
        lines += ["", "## What it returns"]
    for answer in text.get("answers", ()):
        lines += ["", f"::: {answer}"]
    return "\n".join(lines) + "\n"


def index() -> Iterator[str]:
    """Yield the lines of the table of all analyses."""
    yield "| analysis | what it answers |"
    yield "| --- | --- |"
    for name in texts():
        yield f"| [`{name}`](analyses/{name}.md) | {texts()[name]['asks']} |"


def pages() -> dict[Path, str]:
    """Return every generated page by its path."""
    found = {FOLDER / f"{name}.md": page(name) for name in texts()}
    for stem, path in CLASSES.items():
        title = path.rpartition(".")[2]
        found[API / f"{stem}.md"] = f"# {title}\n\n::: {path}\n{OPTIONS}      inherited_members: true\n"
    return found


def main() -> None:
    """Write every page."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    print("\n".join(index()))


if __name__ == "__main__":
    main()
