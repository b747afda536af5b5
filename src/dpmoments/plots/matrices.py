"""A matrix of features as coloured cells: hatched where noise decides, crossed out where there is no number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.plots.canvas import (
    DIVERGING,
    FAINT,
    HATCH,
    POINTS_AN_INCH,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    ink_on,
    room_for_labels,
)
from dpmoments.plots.letters import as_it_stands, label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.colors import Normalize
    from matplotlib.image import AxesImage

__all__ = ["MOST_NUMBERED", "NumberedCells", "draw_matrix", "matrix_axes", "with_color_bar"]

MOST_NUMBERED = 12
"""Cells hold their numbers where there are no more rows or columns than these."""
MOST_LABELLED = 45
"""With more features a column of levels has one label, its own name."""
SMALLEST, LARGEST, NARROWEST_FIGURE = 3.2, 11.0, 6.4
"""Inches of a side."""
INCHES_A_FEATURE = 0.3
MOST_HATCHED = 400
"""More hatched cells are drawn as one shape: one by one they take a minute, and in a page megabytes."""
SMALLEST_TEXT, LEADING = 6.5, 1.1


@dataclass(frozen=True)
class NumberedCells:
    """Text in cells: a number, and below it its noise.

    Attributes
    ----------
    values, noise : sequence of sequences of str
    """

    values: Sequence[Sequence[str]]
    noise: Sequence[Sequence[str]]


def matrix_axes(ax: Axes | None, n_rows: int, n_columns: int) -> Axes:
    """Axes for so many rows and columns of cells, with room for their labels."""
    wide, high = (min(max(INCHES_A_FEATURE * size, 1.0), LARGEST - 2.8) for size in (n_columns, n_rows))
    if max(n_rows, n_columns) <= MOST_NUMBERED:  # numbers want room
        wide, high = 0.66 * n_columns, 0.5 * n_rows
    return axes_of(ax, max(NARROWEST_FIGURE, wide + 2.8), max(SMALLEST, high + 1.6))


def draw_matrix(
    ax: Axes,
    values: FloatArray,
    norm: Normalize,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    is_noise: BoolArray,
    groups: Sequence[str] = (),
    cells: NumberedCells | None = None,
) -> AxesImage:
    """Draw the cells, their marks, their labels, and lines between the columns of the table.

    Parameters
    ----------
    ax : Axes
    values : ndarray of shape (r, c)
        NaN where there is no number.
    norm : Normalize
        Of the colours, centred at 0.
    rows, columns : sequence of str
        Names.
    is_noise : ndarray of bool, shape (r, c)
        Cells that noise decides: hatched.
    groups : sequence of str
        The table's column of each row, where rows and columns are the same features.
    cells : NumberedCells, optional
        Drawn where there are few.
    """
    from matplotlib import colormaps

    colors = colormaps[DIVERGING].with_extremes(bad=FAINT)
    lost = np.asarray(is_noise) & np.isfinite(values)
    few = max(values.shape) <= MOST_LABELLED
    # among many cells hatching alone is not enough for what stands out to be seen
    shown = np.ma.masked_invalid(values if few else np.where(lost, 0.0, values))
    image = ax.imshow(shown, cmap=colors, norm=norm, interpolation="nearest", aspect="auto")
    _hatched(ax, lost, HATCH, "noise decides", "#555555" if few else "#b5b5b5")
    _hatched(ax, ~np.isfinite(values), "xxxx", "no number", "#555555" if few else "#8c8c8c")
    numbered = cells is not None and max(values.shape) <= MOST_NUMBERED
    if cells is not None and numbered:
        _write(ax, values, norm, cells, is_noise)
    _separate(ax, groups)
    _name(ax, rows, columns, groups)
    return image


def with_color_bar(
    ax: Axes, image: AxesImage, words: str, *, noise: float = float("nan"), ticks: Sequence[float] = ()
) -> None:
    """A colour bar beside the cells, with what the noise reaches marked on it."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02, aspect=28)
    bar.set_label(words, fontsize=TEXT_SIZE, **as_it_stands())
    bar.ax.tick_params(labelsize=SMALL_TEXT)
    if ticks:
        bar.set_ticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])
        bar.ax.minorticks_off()
    if np.isfinite(noise) and noise > 0.0:
        for place in (-noise, noise):
            bar.ax.axhline(place, color="black", linewidth=1.2)


def _hatched(ax: Axes, where: BoolArray, hatch: str, gid: str, color: str) -> None:
    if not where.any():
        return
    n_rows, n_columns = where.shape
    shown = np.ma.masked_array(np.zeros(where.shape), ~where)
    mesh = ax.pcolor(
        np.arange(n_columns + 1) - 0.5,
        np.arange(n_rows + 1) - 0.5,
        shown,
        hatch=hatch,
        facecolor="none",
        edgecolor=color,
        linewidth=0.0,
    )
    mesh.set_gid(gid)
    if where.sum() > MOST_HATCHED:
        _draw_as_one(ax, mesh)


def _draw_as_one(ax: Axes, mesh: Collection) -> None:
    """The same cells as one shape, which is an image where the picture is made of lines."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    shape = PathPatch(
        Path.make_compound_path(*mesh.get_paths()),
        transform=mesh.get_transform(),
        hatch=mesh.get_hatch(),
        facecolor="none",
        edgecolor=mesh.get_edgecolor()[0],
        linewidth=0.0,
        zorder=mesh.get_zorder(),
        gid=mesh.get_gid(),
    )
    mesh.remove()
    ax.add_patch(shape).set_rasterized(True)


def _write(ax: Axes, values: FloatArray, norm: Normalize, cells: NumberedCells, is_noise: BoolArray) -> None:
    from matplotlib import colormaps

    colors = colormaps[DIVERGING](norm(values))
    for row, column in np.ndindex(values.shape):
        on_paper = is_noise[row, column] or not np.isfinite(values[row, column])
        paper = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "boxstyle": "round,pad=0.1"}
        below = cells.noise[row][column]
        ax.text(
            column,
            row,
            cells.values[row][column] + (f"\n{below}" if below else ""),
            ha="center",
            va="center",
            fontsize=SMALL_TEXT - 0.5,
            linespacing=1.1,
            color="black" if on_paper else ink_on(colors[row, column]),
            bbox=paper if is_noise[row, column] else None,
            **as_it_stands(),
        )


def _separate(ax: Axes, groups: Sequence[str]) -> None:
    """Lines where one column of the table ends and the next begins, if any column has several features."""
    if len(set(groups)) == len(groups):
        return
    for place, (before, after) in enumerate(pairwise(groups)):
        if before != after:
            ax.axhline(place + 0.5, color="#404040", linewidth=0.5)
            ax.axvline(place + 0.5, color="#404040", linewidth=0.5)


def _name(ax: Axes, rows: Sequence[str], columns: Sequence[str], groups: Sequence[str]) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    size = figure.get_size_inches() * np.array([ax.get_position().width, ax.get_position().height])
    for names, axis, inches in ((columns, ax.xaxis, size[0]), (rows, ax.yaxis, size[1])):
        places, shown = _labels(names, groups)
        cell = inches / len(names) * POINTS_AN_INCH
        nearest = min((after - before for before, after in pairwise(places)), default=1.0)
        text_size = min(TEXT_SIZE, max(SMALLEST_TEXT, cell * nearest / LEADING))
        kept = room_for_labels(places, 0.999 * text_size * LEADING / cell)
        axis.set_ticks([places[index] for index in kept])
        axis.set_ticklabels([label(shown[index]) for index in kept], fontsize=text_size, **as_it_stands())
    many = len(columns) > 4 or max(map(len, columns)) > 8
    ax.tick_params(axis="x", rotation=90 if many else 0, length=2)
    ax.tick_params(axis="y", length=2)


def _labels(names: Sequence[str], groups: Sequence[str]) -> tuple[list[float], list[str]]:
    """Where labels stand and what they say: a feature each, or a column of the table each where features are many."""
    if len(names) <= MOST_LABELLED or len(groups) != len(names):
        return [float(place) for place in range(len(names))], list(names)
    of_column: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        of_column.setdefault(group, []).append(place)
    return [float(np.mean(places)) for places in of_column.values()], list(of_column)
