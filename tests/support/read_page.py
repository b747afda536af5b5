"""A page as a browser would first take it: its elements, its attributes and its text."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "input", "br", "wbr", "img", "link", "hr"}


class Page(HTMLParser):
    """What stands in a page.

    Attributes
    ----------
    elements : list of (tag, attributes)
    text : str
        Outside scripts and styles.
    """

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.parts: list[str] = []
        self._inside: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._inside, f"</{tag}> closes nothing"
        assert self._inside.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if not set(self._inside) & {"script", "style"}:
            self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())

    @property
    def tags(self) -> Counter[str]:
        return Counter(tag for tag, _ in self.elements)

    def faults(self) -> list[str]:
        """What an offline page must not hold: references to elsewhere, handlers of events, one id twice."""
        found = []
        ids = Counter(attributes["id"] for _, attributes in self.elements if "id" in attributes)
        found += [f"the id {name} stands {times} times" for name, times in ids.items() if times > 1]
        for tag, attributes in self.elements:
            for name, value in attributes.items():
                if name.startswith("on"):
                    found.append(f"<{tag}> has {name}")
                if name in ("src", "href", "xlink:href", "action", "data") and not value.startswith(
                    ("#", "data:image/png;")
                ):
                    found.append(f"<{tag}> refers to {value[:40]}")
                if name in ("href", "xlink:href") and value.startswith("#") and value[1:] not in ids:
                    found.append(f"<{tag}> refers to {value}, which is not there")
        return found
