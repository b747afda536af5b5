"""Letters of names: fonts that have them, where the usual one has not, and their numbers where no font here has them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from dpmoments.analysis.answers import MAX_LABEL_LENGTH, escaped
from dpmoments.analysis.answers import label as shortened
from dpmoments.schema.schema import Schema

ESCAPED = re.compile(r"\\u[0-9a-f]{4}|\\U[0-9a-f]{8}")
_NO_TEXT_FONT = re.compile("Last Resort|Color", re.IGNORECASE)
"""Fonts of empty boxes, and of coloured pictures, which matplotlib does not draw."""

_WIDE_STAND_INS = tuple(map(chr, (*range(0x4DC0, 0x4E00), *range(0x1F600, 0x1F618))))
_STAND_INS = tuple(map(chr, range(0x2801, 0x2900)))
"""Hexagrams and faces, about as wide as an ideograph, and Braille, as wide as most letters: matplotlib's own font has them."""

Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")


class StandIns:
    """Letters in whose place a picture is laid out for letters that a browser will draw, which has fonts of its own."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._wide, self._others = list(_WIDE_STAND_INS), list(_STAND_INS)

    def in_place_of(self, text: str) -> str:
        """The text as it is laid out; letters by their numbers where there are more than stand-ins."""
        if text.isascii():
            return text
        missing = _missing_letters(text) | {letter for letter in text if letter in _ALL_STAND_INS}
        return "".join(self._one(letter) if letter in missing else letter for letter in text)

    def _one(self, letter: str) -> str:
        if letter not in self._of:
            wide = unicodedata.east_asian_width(letter) in "WF"
            left = self._wide if wide and self._wide else self._others or self._wide
            if not left:
                return escaped(letter)
            self._of[letter] = left.pop()
        return self._of[letter]

    def restored(self, text: str) -> str:
        """The text itself, from that which was laid out."""
        return text.translate({ord(other): letter for letter, other in self._of.items()})


_ALL_STAND_INS = frozenset((*_WIDE_STAND_INS, *_STAND_INS))
_OF_READER: ContextVar[StandIns | None] = ContextVar("for letters that a browser will draw", default=None)


@contextmanager
def fonts_of_reader() -> Iterator[StandIns]:
    """Within it no letter is given up for want of a font: the text that is laid out is to be restored."""
    stand_ins = StandIns()
    before = _OF_READER.set(stand_ins)
    try:
        yield stand_ins
    finally:
        _OF_READER.reset(before)


_MORE: ContextVar[tuple[str, ...]] = ContextVar("families of fonts beside those set in matplotlib", default=())


@contextmanager
def fonts_for(schema: Schema) -> Iterator[None]:
    """Within it text that is drawn as it stands falls back on fonts of this machine that have the letters of a schema's names."""
    names = "".join(schema.feature_names) + "".join(column.name for column in schema.columns)
    before = _MORE.set(_families_with(frozenset(_missing_letters(names))))
    try:
        yield
    finally:
        _MORE.reset(before)


def literal_text() -> dict[str, Any]:
    """For every text with a name in it: names are data, ``$`` begins no formula, and fonts have their letters."""
    from matplotlib import rcParams

    more = {"fontfamily": [*rcParams["font.family"], *_MORE.get()]} if _MORE.get() else {}
    return {"parse_math": False, "usetex": False, **more}


def with_fonts_for_names(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """A method that draws, of an object with a ``release``, within :func:`fonts_for` its names."""

    @wraps(draw)
    def within(*arguments: Arguments.args, **options: Arguments.kwargs) -> Drawn:
        with fonts_for(arguments[0].release.schema):  # type: ignore[attr-defined]
            return draw(*arguments, **options)

    return within


def label(name: str, longest: int = MAX_LABEL_LENGTH) -> str:
    r"""A name as a picture shows it: no longer than there is room for, and in letters that can be drawn.

    Examples
    --------
    >>> label("age"), label("capital-gain-of-the-whole-household")
    ('age', 'capital-gain-of-the-whole…')
    """
    parts = [drawable(letter) for letter in shortened(name, longest)]
    while sum(map(len, parts)) > longest:
        parts = [*parts[: -2 if parts[-1] == "…" else -1], "…"]
    return "".join(parts)


def drawable(text: str) -> str:
    """The text, letters that no font at hand has by their numbers: they would be drawn as empty boxes, all alike."""
    if (stand_ins := _OF_READER.get()) is not None:
        return stand_ins.in_place_of(text)
    if not (missing := _missing_letters(text)):
        return text
    return "".join(escaped(letter) if letter in missing else letter for letter in text)


def _missing_letters(text: str) -> set[str]:
    """Letters that none of the fonts set in matplotlib has."""
    if text.isascii():
        return set()
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont

    paths = [str(findfont(FontProperties(family=[family]))) for family in (*rcParams["font.family"], *_MORE.get())]
    letters = {letter for letter in text if not letter.isascii() and letter.isprintable()}
    return {letter for letter in letters if not any(_has(path, letter) for path in paths)}


@cache
def _has(path: str, letter: str) -> bool:
    from matplotlib.font_manager import get_font

    return bool(get_font(path).get_char_index(ord(letter)))


@cache
def _families_with(letters: frozenset[str]) -> tuple[str, ...]:
    """Families of upright fonts on this machine that have the letters between them, as far as there are any."""
    from matplotlib.font_manager import fontManager
    from matplotlib.ft2font import FT2Font

    if not letters:
        return ()
    missing, result = set(letters), []
    upright = [font for font in fontManager.ttflist if font.style == "normal" and font.weight in (400, "normal")]
    for font in sorted(upright, key=lambda font: ("Sans" not in font.name, font.name)):
        if _NO_TEXT_FONT.search(font.name):
            continue
        try:
            face = FT2Font(font.fname)
        except (OSError, RuntimeError):  # a list of fonts may be older than the fonts
            continue
        has = {letter for letter in missing if face.get_char_index(ord(letter))} if face.scalable else set()
        if has:
            result.append(font.name)
            missing -= has
        if not missing:
            break
    return tuple(result)
