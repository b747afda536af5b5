"""Drawings inside a page: a figure as an SVG element that a screen reader reads out and no browser has to fetch."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup

from dpmoments.foundation.visible_text import visible
from dpmoments.plots.letters import StandIns, fonts_of_reader
from dpmoments.reporting.report_sections import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["drawn"]

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
DOTS_AN_INCH = 130
FONTS = ["DejaVu Sans", "Verdana", "Arial", "Helvetica", "sans-serif"]


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
        "font.sans-serif": FONTS,
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
            file, format="svg", dpi=DOTS_AN_INCH, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    root = ElementTree.fromstring(file.getvalue())
    for element in root.iter():
        element.text = element.text and stand_ins.restored(element.text)
    _name_apart(root, name)
    _describe(root, name, title, description)
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _name_apart(root: ElementTree.Element, name: str) -> None:
    """Ids that no other picture of the page has, and no style or metadata that reaches beyond this one."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{SVG}}}metadata" or (
                child.tag == f"{{{SVG}}}defs" and child.find(f"{{{SVG}}}style") is not None
            ):
                parent.remove(child)
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                element.set(key, f"{name}-{value}".replace(" ", "-"))
            elif key in ("href", f"{{{XLINK}}}href") and value.startswith("#"):
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
    named = ElementTree.Element(f"{{{SVG}}}title", id=f"{name}-title")
    named.text = visible(title)
    said = ElementTree.Element(f"{{{SVG}}}desc", id=f"{name}-description")
    said.text = visible(description)
    root[:0] = [named, said]
