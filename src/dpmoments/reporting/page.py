"""Pages: templates filled in with every text escaped, whoever wrote it."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from dpmoments.analysis.answers import Answer
from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE
from dpmoments.analysis.group_means import LOST
from dpmoments.analysis.regression_results import NO_EFFECT
from dpmoments.foundation.errors import visible
from dpmoments.plots.letters import StandIns, fonts_of_reader

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def filled_in(template: str, **content: Any) -> str:
    """A page as text.

    Parameters
    ----------
    template : str
        Name of a file in ``templates/``.
    **content
        What it names. Texts are escaped, and what a browser obeys instead of showing is spelled out; only what this package made
        itself (``markupsafe.Markup``) is taken as it is.
    """
    return _environment().get_template(template).render(**content)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("dpmoments.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    """Before escaping; what is markup already stays."""
    return visible(value) if type(value) is str else value


# What a page is made of: sections with paragraphs, tables and pictures, as templates read them.

NOISE = "noise"
_NOTHING = "nothing"
_DECIDED_BY_NOISE = (NOISE, _NOTHING, LOST, NOISE_UNKNOWN, NOT_DISTINGUISHABLE, NO_EFFECT)
"""Words that stand where a number would say nothing."""
_VERDICT = "verdict"
_LONG = 12
"""A table of more rows scrolls in a box of its own."""
_NUMBER = re.compile(r"[<>~±]?\s*[-+−]?[\d,]*\.?\d+(e[-+]?\d+)?\s*%?|[-+−]?(inf|∞)|nan|–|\[.*\]")


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    is_noise : bool
        Whether its words say that noise decides.
    """

    text: str
    is_noise: bool = False
    is_number: bool = False


@dataclass(frozen=True)
class PageTable:
    """A table under a caption; the first column names the rows.

    Attributes
    ----------
    head : tuple of str
    """

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def is_long(self) -> bool:
        """Whether it scrolls in a box."""
        return len(self.rows) > _LONG

    @property
    def number_columns(self) -> tuple[bool, ...]:
        """Columns whose cells are numbers, or say that noise is there in place of one."""
        return tuple(
            bool(column)
            and any(cell.is_number for cell in column)
            and all(cell.is_number or cell.is_noise for cell in column)
            for column in zip(*self.rows, strict=True)
        ) or (False,) * len(self.head)

    @property
    def lost(self) -> tuple[bool, ...]:
        """Rows of which some cell says that noise decides."""
        return tuple(any(cell.is_noise for cell in row) for row in self.rows)

    @classmethod
    def of(cls, caption: str, rows: Sequence[Sequence[str]]) -> PageTable:
        """Rows of text, the head first; a verdict stands before the numbers, where a narrow screen shows it too."""
        if rows[0][-1] == _VERDICT:
            rows = [(row[0], row[-1], *row[1:-1]) for row in rows]
        head, *body = rows
        return cls(
            caption, tuple(head), tuple(tuple(_cell(index, text) for index, text in enumerate(row)) for row in body)
        )


@dataclass(frozen=True)
class Picture:
    """A drawing inside the page, and what it says in words.

    Attributes
    ----------
    svg : Markup
        Made by :mod:`dpmoments.reporting.page`, every text in it escaped.
    """

    svg: Markup
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of a page under a heading.

    Attributes
    ----------
    anchor : str
        What links within the page name.
    lead : tuple of str
        Paragraphs before the rest.
    remarks : tuple of str
        Paragraphs after it, which say what the numbers are and what speaks against them.
    warning : str
        What speaks against reading any of it; it stands at the head of the page.
    refusal : str
        Why there is nothing to show, where there is nothing.
    """

    title: str
    anchor: str
    lead: tuple[str, ...] = ()
    picture: Picture | None = None
    tables: tuple[PageTable, ...] = ()
    remarks: tuple[str, ...] = ()
    warning: str = ""
    refusal: str = ""


def table_of(caption: str, answer: Answer, most: int | None = None) -> PageTable:
    """The table of an analysis, its first rows where there are more than ``most``."""
    rows = answer.table()
    return PageTable.of(caption, rows if most is None else rows[: most + 1])


def _cell(place: int, text: str) -> Cell:
    decided = place > 0 and text in _DECIDED_BY_NOISE
    return Cell(text, decided, place > 0 and _NUMBER.fullmatch(text) is not None)


# Drawings inside a page: a figure as an _SVG element that a screen reader reads out and no browser has to fetch.

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_DOTS_AN_INCH = 130
_FONTS = ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"]


def drawn(
    name: str, width: float, height: float, draw: Callable[[Axes], object], *, title: str, description: str
) -> Picture:
    """A picture of so many inches.

    Parameters
    ----------
    name : str
        Letters, digits and hyphens, of this picture alone on its page: its ids begin with it.
    width, height : float
        Inches.
    draw : callable
        Draws into the axes.
    title : str
        What it is a picture of; its caption too.
    description : str
        What it shows, in words.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.family": ["sans-serif"],
        "font.sans-serif": _FONTS,
    }
    with rc_context(settings), fonts_of_reader() as stand_ins:
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        draw(figure.subplots())
        element = _element(figure, name, title, description, stand_ins)
    return Picture(Markup(element), title)  # serialised by ElementTree


def _element(figure: Figure, name: str, title: str, description: str, stand_ins: StandIns) -> str:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        figure.savefig(
            file,
            format="svg",
            dpi=_DOTS_AN_INCH,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    root = ElementTree.fromstring(file.getvalue())
    for element in root.iter():
        element.text = element.text and stand_ins.restored(element.text)
    _name_apart(root, name)
    _describe(root, name, title, description)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _name_apart(root: ElementTree.Element, name: str) -> None:
    """Ids that no other picture of the page has, and no style or metadata that reaches beyond this one."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{_SVG}}}metadata" or (
                child.tag == f"{{{_SVG}}}defs" and child.find(f"{{{_SVG}}}style") is not None
            ):
                parent.remove(child)
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                element.set(key, f"{name}-{value}".replace(" ", "-"))
            elif key in ("href", f"{{{_XLINK}}}href") and value.startswith("#"):
                element.set(key, f"#{name}-{value[1:]}".replace(" ", "-"))
            elif "url(#" in value:
                element.set(key, value.replace("url(#", f"url(#{name}-"))


def _describe(root: ElementTree.Element, name: str, title: str, description: str) -> None:
    """A role, a name and a description; sizes that follow the page."""
    height, width = root.attrib.pop("height"), root.attrib.pop("width")
    root.attrib.pop("version", None)
    root.set(
        "style",
        f"width: {width}; aspect-ratio: {width.removesuffix('pt')} / {height.removesuffix('pt')}; stroke-linejoin: round",
    )
    root.set("role", "img")
    root.set("aria-label", f"{visible(title)}. {visible(description)}")
    named = ElementTree.Element(f"{{{_SVG}}}title", id=f"{name}-title")
    named.text = visible(title)
    said = ElementTree.Element(f"{{{_SVG}}}desc", id=f"{name}-description")
    said.text = visible(description)
    root[:0] = [named, said]
