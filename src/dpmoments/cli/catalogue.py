"""The command that lists the mechanisms and describes one; all it says is read from the registry."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import typer

from dpmoments.cli.tables import print_command, print_page, print_table, print_text
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.privacy.budget import BudgetKind
from dpmoments.privacy.neighbors import Neighbors

__all__ = ["mechanisms", "mechanisms_page"]

WITHOUT_A_PROOF = {"auto"}
"""It chooses among the others, each of which has its own."""
PAGE_HEAD = """\
# Mechanisms

Written from the registry by `dpmoments mechanisms --markdown > docs/mechanisms.md`; `dpmoments mechanisms NAME` describes one
with its options.

| name | what it does | budgets | neighbours | needs a row norm | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""
BUDGETS_SHOWN = {BudgetKind.PURE: "ε", BudgetKind.APPROXIMATE: "(ε, δ)", BudgetKind.ZCDP: "ρ"}


def mechanisms(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Describe this one in full.", show_default=False)
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the list as a page of documentation, docs/mechanisms.md.")
    ] = False,
) -> None:
    """List the mechanisms, or describe one with its options.

    Examples:

      dpmoments mechanisms
      dpmoments mechanisms matrix-laplace
    """
    classes = MECHANISMS
    if markdown and name is not None:
        raise typer.BadParameter("the page lists all mechanisms: leave the name out", param_hint="--markdown")
    if markdown:
        print_page(mechanisms_page())
    elif name is None:
        headers = ("mechanism", "budget", "neighbors", "bound on rows")
        print_table(headers, ((known, *_supports(mechanism)) for known, mechanism in classes.items()))
        print_text()
        for known, mechanism in classes.items():
            print_text(f"{known}: {mechanism.summary}. Source: {mechanism.source}.", indent=2)
        print_text()
        print_text("Described in full, and compared at your budget:")
        print_command("dpmoments mechanisms NAME")
        print_command("dpmoments forecast --help")
    elif name in classes:
        _describe(name, classes[name])
    else:
        raise typer.BadParameter(f"there is no mechanism {name!r}: use one of {', '.join(classes)}", param_hint="NAME")


def mechanisms_page() -> str:
    """The page of documentation with a line for every mechanism, in Markdown."""
    return PAGE_HEAD + "".join(_page_row(name, mechanism) for name, mechanism in MECHANISMS.items())


def _page_row(name: str, mechanism: type[Mechanism]) -> str:
    cells = (
        f"`{name}`",
        mechanism.summary,
        ", ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds),
        ", ".join(f"`{relation}`" for relation in sorted(mechanism.supported_neighbors)),
        "yes" if mechanism.needs_row_norm else "no",
        mechanism.source,
        "" if name in WITHOUT_A_PROOF else f"[proof](derivations/{mechanism.__module__.rpartition('.')[2]}.md)",
    )
    return f"| {' | '.join(cells)} |\n"


def _supports(mechanism: type[Mechanism]) -> tuple[str, str, str]:
    """Budgets, neighbouring relations, and whether rows need a public bound."""
    budgets = " ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds)
    both = mechanism.supported_neighbors >= set(Neighbors)
    relations = "both" if both else ", ".join(sorted(mechanism.supported_neighbors))
    return budgets, relations, "needed" if mechanism.needs_row_norm else "not needed"


def _describe(name: str, mechanism: type[Mechanism]) -> None:
    budgets, relations, bound = _supports(mechanism)
    print_text(f"{name}: {mechanism.summary}")
    print_text()
    print_table(
        ("", ""),
        (
            ("source", mechanism.source),
            ("budget", budgets),
            ("neighbors", relations),
            ("bound on rows", bound),
            *_options(mechanism),
        ),
    )
    print_text()
    for indent, paragraph in _paragraphs(inspect.getdoc(mechanism) or ""):
        print_text(paragraph, indent=indent)


def _options(mechanism: type[Mechanism]) -> Iterator[tuple[str, str]]:
    hints = get_type_hints(mechanism)
    for option in fields(mechanism):
        hint = hints[option.name]
        takes = " | ".join(map(str, get_args(hint))) if get_origin(hint) is Literal else str(option.type)
        default = "" if option.default is MISSING else f" (default {option.default})"
        yield "option", f"{option.name}={takes}{default}"


def _paragraphs(docstring: str) -> Iterator[tuple[int, str]]:
    """Indent and text of each paragraph, its lines joined so that they wrap at the terminal's width.

    The examples are left out: they are Python.
    """
    narrative = docstring.partition("\nExamples\n---")[0].rstrip()
    indent, lines = 0, list[str]()
    for line in narrative.splitlines():
        text = line.strip()
        own = len(line) - len(line.lstrip())
        underline = bool(text) and not text.strip("-")
        if lines and (not text or own != indent or underline or text.startswith(("* ", "- ", "==="))):
            yield indent, " ".join(lines)
            lines = []
        if not text:
            yield 0, ""
        elif not underline:
            indent, lines = own, [*lines, text]
    if lines:
        yield indent, " ".join(lines)
