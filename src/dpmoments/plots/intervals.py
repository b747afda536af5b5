"""Numbers with their intervals, a line each: filled where they stand out, hollow and in words where noise decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.functionals import NOT_DISTINGUISHABLE
from dpmoments.analysis.regression_results import NO_EFFECT
from dpmoments.foundation.arrays import FloatArray
from dpmoments.plots.canvas import (
    CERTAIN,
    FAINT,
    HATCH,
    NOISE_COLOR,
    PRIVACY,
    SECONDARY,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
)
from dpmoments.plots.letters import as_it_stands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PARTS", "IntervalLine", "draw_intervals", "interval_axes", "privacy_part"]

PARTS = "thick: the part that is privacy's noise"
SHORT = {NOT_DISTINGUISHABLE: "noise", NO_EFFECT: "may be 0"}
"""Words of the analyses as there is room for them."""
ROOM = 1.15
FAR = 3.0
"""A number that noise decides widens the axis up to so many times what stands out; beyond, an arrow points to it."""
INCHES_A_LINE = 0.3


@dataclass(frozen=True)
class IntervalLine:
    """One line of the picture.

    Attributes
    ----------
    name : str
        As it is shown (:func:`dpmoments.plots.canvas.label`).
    value, lower, upper : float
        NaN for a value of which nothing is said; ends may be infinite, or NaN where they are not known.
    privacy : float
        Half the interval that privacy's noise alone would make; NaN where it is not known.
    word : str
        What is said of it where it does not stand out: empty where it does.
    """

    name: str
    value: float
    lower: float
    upper: float
    privacy: float
    word: str

    @property
    def ends(self) -> list[float]:
        """Value and ends, as far as they are finite."""
        return [end for end in (self.value, self.lower, self.upper) if np.isfinite(end)]


def interval_axes(ax: Axes | None, n_lines: int) -> Axes:
    """Axes with room for so many lines."""
    return axes_of(ax, 7.2, min(max(2.6, 1.7 + INCHES_A_LINE * n_lines), 14.0))


def draw_intervals(ax: Axes, lines: Sequence[IntervalLine], words: str, *, about: float | None = None) -> None:
    """Draw the lines from above, with arrows where an interval goes on beyond the axes.

    Parameters
    ----------
    ax : Axes
    lines : sequence of IntervalLine
    words : str
        Below the axis.
    about : float, optional
        A number that the axis holds, and that has a line of its own: 0 for coefficients.
    """
    left, right = _limits(lines, about)
    if about is not None:
        ax.axvline(about, color="#404040", linewidth=0.8)
    for place, line in enumerate(lines):
        _draw(ax, place, line, left, right)
        if line.word:
            ax.annotate(
                SHORT.get(line.word, line.word),
                (1.0, place),
                (6, 0),
                xycoords=ax.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                fontsize=SMALL_TEXT,
                color=SECONDARY,
                annotation_clip=False,
                **as_it_stands(),
            )
    ax.set_xlim(left, right)
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_yticks(range(len(lines)))
    ax.set_yticklabels([line.name for line in lines], fontsize=TEXT_SIZE, **as_it_stands())
    ax.set_xlabel(words, fontsize=TEXT_SIZE, **as_it_stands())
    ax.tick_params(axis="x", labelsize=SMALL_TEXT)
    ax.grid(axis="x", alpha=0.3)


def privacy_part(lower: FloatArray, upper: FloatArray, privacy: FloatArray, total: FloatArray) -> FloatArray:
    """Half the width that intervals would have of privacy's noise alone, by its share of the standard errors.

    Examples
    --------
    >>> privacy_part(np.array([0.0]), np.array([10.0]), np.array([3.0]), np.array([5.0]))
    array([3.])
    """
    share = np.divide(privacy, total, out=np.full_like(total, np.nan), where=total > 0.0)
    half = (upper - lower) / 2.0
    return np.asarray(np.where(np.isfinite(half), half, np.nan) * share)


def _draw(ax: Axes, place: int, line: IntervalLine, left: float, right: float) -> None:
    color = CERTAIN if not line.word else NOISE_COLOR
    low, high = (float(np.clip(np.nan_to_num(end, nan=line.value), left, right)) for end in (line.lower, line.upper))
    if not np.isfinite(line.value):  # lost: all that is known is within this band
        if np.isfinite(low) and np.isfinite(high):
            ax.barh(
                place, high - low, left=low, height=0.5, facecolor="white", edgecolor=FAINT, hatch=HATCH, linewidth=0.0
            )
        return
    ax.plot([low, high], [place, place], color=color, linewidth=1.2, solid_capstyle="butt")
    for end, shown, marker in ((line.lower, left, "<"), (line.upper, right, ">")):
        if (end < left and marker == "<") or (end > right and marker == ">"):
            ax.plot(shown, place, marker, color=color, markersize=6, clip_on=False)
    if np.isfinite(line.privacy):
        inside = np.clip([line.value - line.privacy, line.value + line.privacy], max(low, left), min(high, right))
        ax.plot(inside, [place, place], color=PRIVACY, linewidth=4.0, alpha=0.55, solid_capstyle="butt")
    if left <= line.value <= right:
        ax.plot(line.value, place, "o", color=color, markerfacecolor=color if not line.word else "white", markersize=6)


def _limits(lines: Sequence[IntervalLine], about: float | None) -> tuple[float, float]:
    """Wide enough for what stands out; for all that is finite where nothing does."""
    certain = [end for line in lines if not line.word for end in line.ends]
    values = [line.value for line in lines if line.word and np.isfinite(line.value)]
    ends = certain or [end for line in lines for end in line.ends]
    if certain:
        reach = FAR * max(map(abs, certain))
        ends += [value for value in values if abs(value) <= reach]
    if about is not None:
        ends = [*ends, about]
    if not ends:
        return -1.0, 1.0
    low, high = min(ends), max(ends)
    spread = (high - low) or abs(high) or 1.0
    return low - (ROOM - 1.0) * spread, high + (ROOM - 1.0) * spread
