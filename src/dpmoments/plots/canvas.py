"""Axes, color-blind safe colors, titles and letters of all plots."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from dpmoments.analysis.answers import MAX_LABEL_LENGTH, escaped, in_floating_point
from dpmoments.analysis.answers import label as shortened
from dpmoments.analysis.released import Moments
from dpmoments.base.errors import InputValueError, out_of_range, wrong_type
from dpmoments.base.values import is_finite_number
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        for letter in filter(missing.__contains__, text):
            wide = unicodedata.east_asian_width(letter) in "WF"
            left = self._wide if wide and self._wide else self._others or self._wide
            if left and letter not in self._of:
                self._of[letter] = left.pop()
        return "".join(self._of.get(letter, escaped(letter)) if letter in missing else letter for letter in text)

    def restored(self, text: str) -> str:
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
    names = "−" + "".join(schema.feature_names) + "".join(column.name for column in schema.columns)
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


def plot_of_release(draw: Callable[Arguments, Drawn]) -> Callable[Arguments, Drawn]:
    """Wrap a method that draws a ``release``.

    It gets fonts for the release's names, and raises errors of floating point.
    """

    @in_floating_point
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


CERTAIN = "#00508c"
"""Color of what is clear, and of positive values; marks are circles."""
OPPOSITE = "#b35900"
"""Color of negative values, whose marks are squares, so that gray print shows the sign."""
PRIVACY = OPPOSITE
"""Color of privacy noise and the noise floor."""
NOISE_COLOR = "#767d86"
"""Color of values decided by noise, whose marks are hollow."""
INK, SECONDARY, LINE, SHADE = "#1b1f24", "#4d5560", "#c9ced6", "#e6eaee"
TEXT_SIZE = 9.0
SMALL_TEXT = 8.0
_LINE_HEIGHT = 1.35
_LETTERS_AN_INCH, _SMALL_LETTERS_AN_INCH = 12.0, 16.0
"""Letters per inch of a title and of the smaller text below it."""
_KEY = 0.5
"""Width in inches of a legend mark and its padding."""
_NARROWEST = 2.5
"""Width in inches below which a title may overflow the axes."""
POINTS_AN_INCH = 72.0


def axes_of(ax: Axes | None, width: float, height: float) -> Axes:
    from matplotlib.axes import Axes

    if ax is None:
        from matplotlib import pyplot

        _, made = pyplot.subplots(figsize=(width, height), layout="constrained")
        return made
    if not isinstance(ax, Axes):
        raise wrong_type("ax", "a matplotlib axes", ax)
    return ax


def sized(ax: Axes | None, figsize: tuple[float, float] | None) -> Axes | None:
    """Return the axes of a new figure of this size in inches, or the given ones."""
    if figsize is None:
        return ax
    if ax is not None:
        raise InputValueError("figsize= is the size of a new figure, and ax= is of another one: give one of them")
    if len(figsize) != 2 or not all(is_finite_number(side) and 0.0 < float(side) <= _MAX_INCHES for side in figsize):
        raise out_of_range("figsize", figsize, "a width and a height in inches")
    return axes_of(None, *map(float, figsize))


_CAPTION = "caption"
_MAX_INCHES = 300.0
"""Longest side of a figure in inches."""


def captioned(ax: Axes, caption: bool) -> Axes:
    """Return the axes; without ``caption``, remove the lines below the title."""
    if not caption:
        for text in [text for text in ax.texts if text.get_gid() == _CAPTION]:
            text.remove()
        ax.set_title(ax.get_title(loc="left"), loc="left", fontsize=TEXT_SIZE + 2.0, pad=6.0, **literal_text())
    return ax


def legend_below(ax: Axes) -> None:
    """Draw the legend below the axis label, in two columns if they fit."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    room = (1.0 - ax.get_position().x0) * figure.get_size_inches()[0]
    longest = max(map(len, ax.get_legend_handles_labels()[1]), default=0)
    columns = 2 if 2.0 * (longest / _SMALL_LETTERS_AN_INCH + _KEY) <= room else 1
    ax.legend(
        fontsize=SMALL_TEXT,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        borderaxespad=4.6,
        ncols=columns,
        frameon=False,
    )


def entitle(ax: Axes, title: str, *meaning: str, grow: bool) -> None:
    """Set the title, and below it in smaller letters the meaning of the marks."""
    # Empty paragraphs of `meaning` are skipped. If `grow`, the figure becomes taller, so that the axes keep their size.
    from matplotlib.text import Text

    figure = ax.get_figure(root=True)
    assert figure is not None
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)  # labels take their part of the width
    index, (wide, high) = ax.get_position(), figure.get_size_inches()
    alone = grow or len(figure.axes) == 1
    title, meaning = drawable(title), tuple(map(drawable, meaning))
    written = [title, *meaning, *(text.get_text() for text in ax.findobj(Text))]
    if any(map(ESCAPED.search, written)):
        meaning = (*meaning, "\\u…: a letter that no font here has")
    width = max((1.0 - index.x0 if alone else index.width) * wide, _NARROWEST)
    lines = textwrap.wrap(title, int(width * _LETTERS_AN_INCH))
    small = [line for words in meaning for line in textwrap.wrap(words, int(width * _SMALL_LETTERS_AN_INCH))]
    block = _LINE_HEIGHT * SMALL_TEXT * len(small)
    if grow:
        figure.set_size_inches(wide, high + (block + _LINE_HEIGHT * TEXT_SIZE * len(lines)) / POINTS_AN_INCH)
    ax.set_title("\n".join(lines), loc="left", fontsize=TEXT_SIZE + 2.0, pad=6.0 + block, **literal_text())
    ax.annotate(
        "\n".join(small),
        (0.0, 1.0),
        (0.0, 4.0),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="left",
        va="bottom",
        fontsize=SMALL_TEXT,
        linespacing=_LINE_HEIGHT - 0.15,
        color=SECONDARY,
        annotation_clip=False,
        gid=_CAPTION,
        in_layout=False,  # the title keeps its height free, and its width is no matter of the axes
        **literal_text(),
    )


# What a picture says where it cannot be drawn: what was asked, why it cannot be, and what can.


def require_mean(release: Moments, what: str) -> None:
    if release.noisy_sum is None:
        require_count(release, what)
        refused = (
            f"cannot plot {what}: it is made of deviations from the mean, and no mean was released (mean=False): "
            "release.plot.spectrum() needs none, and a release made "
        )
        raise InputValueError(f"{refused}with mean=True has one", shell=f"{refused}without --no-mean has one")


def require_count(release: Moments, what: str) -> None:
    if release.noisy_count is None:
        refused = f"cannot plot {what}: the release has no row count (mean=False under add_remove): a release made "
        advice = ", or with a public number of rows, has one"
        raise InputValueError(f"{refused}with mean=True{advice}", shell=f"{refused}without --no-mean{advice}")
