"""Picture of relations: a cell for each two columns, with the strongest clear correlation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.correlations import Correlations
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.resolvability import NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS
from dpmoments.plots.canvas import (
    CERTAIN,
    INK,
    LINE,
    NOISE_COLOR,
    OPPOSITE,
    axes_of,
    entitle,
    label,
    literal_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Relation:
    """Relation of two columns, as far as a release shows it.

    ``pair`` are the features with the strongest correlation of those that hold among all comparisons, None without any;
    ``without_number`` is True if no correlation is estimable.
    """

    columns: tuple[str, str]
    pair: tuple[int, int] | None
    correlation: float
    without_number: bool


def relations(answer: Correlations) -> tuple[Relation, ...]:
    """Return the relation of every two columns that have features to compare."""
    of_column: dict[str, list[int]] = {}
    for index, column in enumerate(answer.columns_of_features or answer.feature_names):
        of_column.setdefault(column, []).append(index)
    verdict = np.array(answer.verdict, dtype=object)
    strength = np.where(answer.holds_among_all, np.abs(answer.correlation), -1.0)
    result = []
    for one, other in combinations(of_column, 2):
        block = np.ix_(of_column[other], of_column[one])
        said = verdict[block][verdict[block] != ""]
        if not len(said):
            continue
        at = divmod(int(np.argmax(np.nan_to_num(strength[block], nan=-1.0))), len(of_column[one]))
        pair = of_column[other][at[0]], of_column[one][at[1]]
        clear = bool(strength[pair] >= 0.0)
        value = float(answer.correlation[pair]) if clear else float("nan")
        result.append(
            Relation(
                (one, other),
                pair if clear else None,
                value,
                bool(np.isin(said, (NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS)).all()),
            )
        )
    return tuple(result)


def title_of_relations(answer: Correlations) -> str:
    """Return how many pairs of columns are clearly related."""
    every = relations(answer)
    clear = sum(each.pair is not None for each in every)
    return f"{clear:,} of {len(every):,} pairs of columns are clearly related"


_INCHES_A_COLUMN, _MAX_INCHES = 0.56, 11.0
_MAX_NUMBERED = 20
"""Number of columns above which cells have no numbers."""
_MIN_SIDE, _MAX_SIDE = 0.22, 0.92
"""Sides of the squares of a correlation of 0 and of 1, relative to their cells."""


def draw_association(answer: Correlations, ax: Axes | None = None) -> Axes:
    """Draw a cell for each two columns; a clear relation is an ellipse (positive) or a square."""
    from matplotlib.patches import Ellipse, Rectangle

    columns = list(dict.fromkeys(answer.columns_of_features or answer.feature_names))
    size, index = len(columns), {column: place for place, column in enumerate(columns)}
    side, grow = min(_INCHES_A_COLUMN * size, _MAX_INCHES), ax is None
    ax = axes_of(ax, side + 2.6, 0.72 * side + 0.8)
    text_size = float(np.clip(9.0 * side / (_INCHES_A_COLUMN * size), 5.0, 9.0))
    for each in relations(answer):
        x, y = (index[column] for column in each.columns)
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1.0, 1.0, facecolor="white", edgecolor=LINE, linewidth=0.6))
        if each.pair is None:
            mark = "x" if each.without_number else "."
            ax.plot(x, y, mark, color=NOISE_COLOR, markersize=4.0, gid="no number" if mark == "x" else "not clear")
            continue
        half = (_MIN_SIDE + (_MAX_SIDE - _MIN_SIDE) * abs(each.correlation) ** 0.5) / 2.0
        if each.correlation > 0.0:
            ax.add_patch(Ellipse((x, y), 2.0 * half, 2.0 * half, facecolor=CERTAIN, gid="together"))
        else:
            ax.add_patch(Rectangle((x - half, y - half), 2.0 * half, 2.0 * half, facecolor=OPPOSITE, gid="opposite"))
        if size <= _MAX_NUMBERED:
            number = f"{each.correlation:+.2f}".replace("-", "−").replace("0.", ".")
            small = text_size * min(1.0, 0.62 + 0.6 * half)
            ax.text(x, y, number, ha="center", va="center", fontsize=small, color="white", **literal_text())
    ax.set_xlim(-0.55, size - 0.4)
    ax.set_ylim(size - 0.45, -0.6)
    names = ["", *(label(column, 24) for column in columns[1:])]
    ax.set_yticks(range(size), names, fontsize=text_size, **literal_text())
    ax.set_xticks([])
    for column in columns[:-1]:
        place = index[column]
        ax.text(
            place - 0.45, place + 0.1, label(column, 18), fontsize=text_size, color=INK, va="center", **literal_text()
        )
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    entitle(ax, title_of_relations(answer), *meaning_of_relations(answer), answer.warning, grow=grow)
    return ax


def meaning_of_relations(answer: Correlations) -> Sequence[str]:
    """Return what the marks mean, a sentence each."""
    if not answer.noise_known:
        return (f"Dots: {describe_law(None)}",)
    return (
        "Each mark: the strongest clear relation between two columns; the larger, the stronger. "
        "Round: together; square: opposite.",
        "Dot: not clear among all pairs, which is not the same as none. ×: no number.",
    )
