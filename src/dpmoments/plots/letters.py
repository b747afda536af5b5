"""Fonts for the letters of names, and escapes for letters that no font has."""

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
"""Fonts of empty boxes, and of color pictures, which matplotlib does not draw."""

_WIDE_STAND_INS = tuple(map(chr, (*range(0x4DC0, 0x4E00), *range(0x1F600, 0x1F618))))
_STAND_INS = tuple(map(chr, range(0x2801, 0x2900)))
"""Letters of matplotlib's own font: as wide as most letters, and as wide as an ideograph."""

Arguments = ParamSpec("Arguments")
Drawn = TypeVar("Drawn")


class StandIns:
    """Letters used in layout in place of letters that only the browser's fonts have."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._wide, self._others = list(_WIDE_STAND_INS), list(_STAND_INS)

    def in_place_of(self, text: str) -> str:
        """Replace letters by stand-ins, or by escapes if there are not enough."""
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
        """Replace stand-ins by their letters."""
        return text.translate({ord(other): letter for letter, other in self._of.items()})


_ALL_STAND_INS = frozenset((*_WIDE_STAND_INS, *_STAND_INS))
_OF_READER: ContextVar[StandIns | None] = ContextVar("for letters that a browser will draw", default=None)


@contextmanager
def fonts_of_reader() -> Iterator[StandIns]:
    """Use stand-ins for letters inside the block; the text must be restored afterwards."""
    stand_ins = StandIns()
    before = _OF_READER.set(stand_ins)
    try:
        yield stand_ins
    finally:
        _OF_READER.reset(before)


_MORE: ContextVar[tuple[str, ...]] = ContextVar("additional font families", default=())


@contextmanager
def fonts_for(schema: Schema) -> Iterator[None]:
    """Add fonts of this machine that have the letters of a schema's names, inside the block."""
    names = "".join(schema.feature_names) + "".join(column.name for column in schema.columns)
    before = _MORE.set(_families_with(frozenset(_missing_letters(names))))
    try:
        yield
    finally:
        _MORE.reset(before)


def literal_text() -> dict[str, Any]:
    """Return text options for names: no formulas, and fonts that have their letters."""
    from matplotlib import rcParams

    more = {"fontfamily": [*rcParams["font.family"], *_MORE.get()]} if _MORE.get() else {}
    return {"parse_math": False, "usetex": False, **more}


def with_fonts_for_names(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Wrap a method that draws, of an object with a ``release``, in :func:`fonts_for`."""

    @wraps(draw)
    def within(*arguments: Arguments.args, **options: Arguments.kwargs) -> Drawn:
        with fonts_for(arguments[0].release.schema):  # type: ignore[attr-defined]
            return draw(*arguments, **options)

    return within


def label(name: str, longest: int = MAX_LABEL_LENGTH) -> str:
    """Return a name as a plot shows it: shortened, in letters that can be drawn."""
    parts = [drawable(letter) for letter in shortened(name, longest)]
    while sum(map(len, parts)) > longest:
        parts = [*parts[: -2 if parts[-1] == "…" else -1], "…"]
    return "".join(parts)


def drawable(text: str) -> str:
    """Escape letters that no available font has."""
    if (stand_ins := _OF_READER.get()) is not None:
        return stand_ins.in_place_of(text)
    if not (missing := _missing_letters(text)):
        return text
    return "".join(escaped(letter) if letter in missing else letter for letter in text)


def _missing_letters(text: str) -> set[str]:
    """Return letters that none of matplotlib's current fonts has."""
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
    """Return upright font families of this machine that have the letters, as far as possible."""
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
