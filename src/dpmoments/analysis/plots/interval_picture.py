"""Numbers with their intervals, a line each: filled where they stand out, hollow and in words where noise decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.plots.canvas import (
    AS_IT_STANDS,
    CERTAIN,
    FAINT,
    HATCH,
    NOISE_COLOR,
    PRIVACY,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
)
from dpmoments.array_types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PARTS", "IntervalLine", "draw_intervals", "interval_axes", "privacy_part"]

PARTS = "thick: the part that is privacy's noise"
ROOM = 1.15
INCHES_A_LINE = 0.3


@dataclass(frozen=True)
class IntervalLine:
    """One line of the picture.

    Attributes
    ----------
    name : str
        As it is shown (:func:`dpmoments.analysis.plots.canvas.label`).
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
    ax.set_xlim(left, right)
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.set_yticks(range(len(lines)))
    ax.set_yticklabels([line.name for line in lines], fontsize=TEXT_SIZE, **AS_IT_STANDS)
    ax.set_xlabel(words, fontsize=TEXT_SIZE, **AS_IT_STANDS)
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
        middle = (max(low, left) + min(high, right)) / 2.0 if np.isfinite(low + high) else (left + right) / 2.0
        _say(ax, middle, place, line.word, ha="center")
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
    if line.word:
        to_the_left = line.value > (left + right) / 2.0
        _say(ax, low if to_the_left else high, place, line.word, ha="right" if to_the_left else "left")


def _say(ax: Axes, x: float, y: float, words: str, *, ha: str) -> None:
    """Beside what is drawn, and inside the axes."""
    ax.annotate(
        f" {words} ",
        (x, y),
        ha=ha,
        va="center",
        fontsize=SMALL_TEXT,
        color="#595959",
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "boxstyle": "round,pad=0.05"},
        **AS_IT_STANDS,
    )


def _limits(lines: Sequence[IntervalLine], about: float | None) -> tuple[float, float]:
    """Wide enough for what stands out; for all that is finite where nothing does."""
    certain = [end for line in lines if not line.word for end in line.ends]
    ends = certain or [line.value for line in lines if np.isfinite(line.value)] + [
        end for line in lines for end in line.ends
    ]
    if about is not None:
        ends = [*ends, about]
    if not ends:
        return -1.0, 1.0
    low, high = min(ends), max(ends)
    spread = (high - low) or abs(high) or 1.0
    return low - (ROOM - 1.0) * spread, high + (ROOM - 1.0) * spread
