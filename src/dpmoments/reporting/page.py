"""Pages: templates with every text escaped, and pictures as inline SVG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

from dpmoments.analysis.confidence import UNCLEAR
from dpmoments.analysis.group_means import LOST
from dpmoments.base.errors import visible
from dpmoments.plots.canvas import (
    CERTAIN,
    INK,
    LINE,
    NOISE_COLOR,
    OPPOSITE,
    SECONDARY,
    SHADE,
    captioned,
    fonts_of_reader,
)
from dpmoments.plots.intervals import IntervalChart

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes


_PACKAGE = "dpmoments.reporting"


def filled_in(template: str, package: str = _PACKAGE, **content: Any) -> str:
    """Render a file of ``templates/`` with this content.

    The template is in ``package``, and can include those of this one.

    Texts are escaped, and characters that a browser obeys instead of showing are spelled out; only ``markupsafe.Markup``, which
    this package makes itself, is inserted unchanged.
    """
    return _environment(package).get_template(template).render(**content)


@cache
def _environment(package: str) -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(_PACKAGE)]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = lambda name: escape(visible(name)).replace("=", Markup("=<wbr>"))
    return environment


def _shown(value: Any) -> Any:
    """Make control characters visible, except in markup."""
    return visible(value) if type(value) is str else value


# What a page is made of: sections with paragraphs, tables and pictures, as templates read them.

NOISE = "noise"
_DECIDED_BY_NOISE = (NOISE, "nothing", LOST, *UNCLEAR)
"""Texts shown in place of a number or a verdict that would carry no information."""
_VERDICT = "verdict"
_NUMBER = re.compile(
    r"(~?below )?[<>~±≤]?\s*[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?\s*(%|seconds|minutes|hours|days|weeks|months|years)?"
    r"|\d{4}-\d\d-\d\d(T[\d:.]+)?|[-+−]?(inf|∞)|nan|–|\[.*\]"
)
"""Numbers, durations, dates, and what stands for a number."""


@dataclass(frozen=True)
class Cell:
    """Table cell; ``is_noise`` is True if its text means "decided by noise"."""

    text: str
    is_noise: bool = False
    is_number: bool = False


@dataclass(frozen=True)
class PageTable:
    """Table with a caption; the first column names the rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def number_columns(self) -> tuple[bool, ...]:
        """True for columns of numbers, or of "noise" in place of numbers."""
        columns = [[row[index] for row in self.rows] for index in range(len(self.head))]
        return tuple(
            any(cell.is_number for cell in column) and all(cell.is_number or cell.is_noise for cell in column)
            for column in columns
        )

    @property
    def lost(self) -> tuple[bool, ...]:
        """True for rows with a cell decided by noise."""
        return tuple(any(cell.is_noise for cell in row) for row in self.rows)

    @classmethod
    def of(cls, caption: str, rows: Sequence[Sequence[str]]) -> PageTable:
        """Make a table from rows of text, head first; a verdict and its mark follow the name."""
        if _VERDICT in rows[0]:
            at = rows[0].index(_VERDICT)
            rows = [(row[0], *row[at:], *row[1:at]) for row in rows]
        head, *body = rows
        cells = (
            tuple(
                Cell(text, index > 0 and text in _DECIDED_BY_NOISE, index > 0 and _NUMBER.fullmatch(text) is not None)
                for index, text in enumerate(row)
            )
            for row in body
        )
        return cls(caption, tuple(head), tuple(cells))


@dataclass(frozen=True)
class Picture:
    """Drawing inside the page (escaped SVG), with a caption."""

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Section:
    """Part of a page under a heading.

    ``anchor`` is the target of links, ``lead`` are paragraphs before and ``remarks`` after the rest, ``findings`` sentences that
    hold among all comparisons, and ``refusal`` is the reason for an empty section. ``parts`` are sections within it; one that is
    ``folded`` shows its heading only, except in print.
    """

    title: str
    anchor: str
    lead: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    charts: tuple[IntervalChart, ...] = ()
    picture: Picture | None = None
    tables: tuple[PageTable, ...] = ()
    remarks: tuple[str, ...] = ()
    refusal: str = ""
    parts: tuple[Section, ...] = ()
    folded: bool = False


# Drawings inside a page: a figure as an SVG element that a screen reader reads out and no browser has to fetch.

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_DOTS_AN_INCH = 130
_COLOR = re.compile("#[0-9a-f]{6}")
_OF_PAGE = {
    CERTAIN: "var(--accent)",
    OPPOSITE: "var(--opposite)",
    NOISE_COLOR: "var(--unclear)",
    INK: "var(--ink)",
    SECONDARY: "var(--soft)",
    LINE: "var(--line)",
    SHADE: "var(--band)",
    "#ffffff": "var(--paper)",
}
"""Colors of the style sheet, so that a picture follows light and dark."""


def drawn(
    name: str, width: float, height: float, draw: Callable[[Axes], Axes], *, title: str, description: str
) -> Picture:
    """Draw a picture of this size in inches."""
    # `name` (letters, digits, hyphens) must be unique on its page: ids begin with it. `title` is the caption;
    # `description` says what it shows, for screen readers.
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"],
    }
    file = io.BytesIO()
    with rc_context(settings), fonts_of_reader() as stand_ins, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="none")
        axes = draw(figure.subplots())
        captioned(axes, caption=False).set_title("", loc="left")  # they are the caption
        undated = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(file, format="svg", dpi=_DOTS_AN_INCH, metadata=undated)
    root = ElementTree.fromstring(file.getvalue())
    for element in root.iter():
        element.text = element.text and stand_ins.restored(element.text)
    _name_apart(root, name)

    # A role, a description of what it shows, and a size and colors that follow the page.
    wide, high = root.attrib.pop("width"), root.attrib.pop("height")
    root.attrib.pop("version", None)
    shape = f"aspect-ratio: {wide.removesuffix('pt')} / {high.removesuffix('pt')}"
    root.set("style", f"width: {wide}; {shape}; stroke-linejoin: round")
    root.set("role", "img")
    root.set("aria-label", visible(description))
    for element in root.iter():
        if style := element.get("style"):
            element.set("style", _COLOR.sub(lambda found: _OF_PAGE.get(found[0], found[0]), style))

    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return Picture(Markup(ElementTree.tostring(root, encoding="unicode")), title)  # escaped by ElementTree


def _name_apart(root: ElementTree.Element, name: str) -> None:
    """Prefix ids, and drop styles and metadata that would affect the rest of the page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata" or (
                child.tag == f"{{{_SVG}}}defs" and child.find(f"{{{_SVG}}}style") is not None
            ):
                parent.remove(child)
    known: set[str] = set()
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id" and value in known:  # marks of one kind
                del element.attrib[key]
            elif key == "id":
                known.add(value)
                element.set(key, f"{name}-{value}".replace(" ", "-"))
            elif key in ("href", f"{{{_XLINK}}}href") and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}".replace(" ", "-"))
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))
