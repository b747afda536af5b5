"""Plots of feature matrices as colored cells: correlations and covariances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import scipy

from dpmoments.analysis.correlations import Correlations, correlations
from dpmoments.analysis.description import describe
from dpmoments.analysis.functionals import FeatureVariances, LocalMoments, describe_law, indicator_mask, shows_shares
from dpmoments.analysis.released import Moments, chosen_features, columns_of
from dpmoments.analysis.resolvability import NOT_ESTIMABLE
from dpmoments.base.arrays import BoolArray, FloatArray
from dpmoments.plots.canvas import (
    DIVERGING,
    FAINT,
    HATCH,
    POINTS_AN_INCH,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    ink_on,
    label,
    literal_text,
    room_for_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.image import AxesImage


_MAX_NUMBERED = 12
"""Maximum number of rows or columns for numbers in cells."""
_MAX_LABELLED = 45
"""Number of features above which a column of levels has one label."""
_MIN, _MAX, _NARROWEST_FIGURE = 3.2, 11.0, 6.4
"""Side lengths in inches."""
_INCHES_A_FEATURE = 0.3
_MAX_HATCHED = 400
"""Number of hatched cells above which they become one shape, to save time and file size."""
_MIN_TEXT, _LEADING = 6.5, 1.1


def matrix_axes(ax: Axes | None, n_rows: int, n_columns: int) -> Axes:
    """Return axes for this many rows and columns of cells, with room for labels."""
    wide, high = (min(max(_INCHES_A_FEATURE * size, 1.0), _MAX - 2.8) for size in (n_columns, n_rows))
    if max(n_rows, n_columns) <= _MAX_NUMBERED:  # numbers want room
        wide, high = 0.66 * n_columns, 0.5 * n_rows
    return axes_of(ax, max(_NARROWEST_FIGURE, wide + 2.8), max(_MIN, high + 1.6))


def draw_matrix(
    ax: Axes,
    values: FloatArray,
    norm: Normalize,
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    is_noise: BoolArray,
    groups: Sequence[str] = (),
    texts: Sequence[Sequence[str]] = (),
    left_out: BoolArray | None = None,
) -> AxesImage:
    """Draw the cells, their marks and labels, and lines between columns of the table."""
    # Cells of `values` that are NaN are crossed out, those in `is_noise` hatched. `groups` is the table's column of
    # each row, if rows and columns are the same features. `texts` of cells are written only if they are few. Cells of `left_out`
    # stay empty.
    from matplotlib import colormaps

    colors = colormaps[DIVERGING].with_extremes(bad=FAINT)
    drawn = np.ones(values.shape, dtype=bool) if left_out is None else ~left_out
    lost = np.asarray(is_noise) & np.isfinite(values) & drawn
    few = max(values.shape) <= _MAX_LABELLED
    # among many cells hatching alone is not enough for what stands out to be seen
    shown = np.ma.masked_invalid(values if few else np.where(lost, 0.0, values))
    shown = np.ma.masked_array(shown, np.ma.getmaskarray(shown) | ~drawn)
    if not drawn.all():
        colors = colors.with_extremes(bad="white")
    image = ax.imshow(shown, cmap=colors, norm=norm, interpolation="nearest", aspect="auto")
    _hatched(ax, lost, HATCH, "noise decides", "#555555" if few else "#b5b5b5")
    _hatched(ax, ~np.isfinite(values) & drawn, "xxxx", "no number", "#555555" if few else "#8c8c8c")
    if texts and max(values.shape) <= _MAX_NUMBERED:
        _write(ax, values, norm, texts, is_noise, drawn)
    if len(set(groups)) < len(groups):  # lines between columns of the table, if any has several features
        for index, (before, after) in enumerate(pairwise(groups)):
            if before != after:
                ax.axhline(index + 0.5, color="#404040", linewidth=0.5)
                ax.axvline(index + 0.5, color="#404040", linewidth=0.5)
    _name(ax, rows, columns, groups)
    return image


def with_color_bar(
    ax: Axes, image: AxesImage, words: str, *, noise: float = float("nan"), ticks: Sequence[float] = ()
) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    bar = figure.colorbar(image, ax=ax, shrink=0.75, pad=0.02, aspect=28)
    bar.set_label(words, fontsize=TEXT_SIZE, **literal_text())
    bar.ax.tick_params(labelsize=SMALL_TEXT)
    if ticks:
        bar.set_ticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])
        bar.ax.minorticks_off()
    if np.isfinite(noise) and noise > 0.0:
        for index in (-noise, noise):
            bar.ax.axhline(index, color="black", linewidth=1.2)


def _hatched(ax: Axes, where: BoolArray, hatch: str, gid: str, color: str) -> None:
    if not where.any():
        return
    if where.sum() > _MAX_HATCHED:
        _draw_as_one(ax, where, hatch, gid, color)
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


def _draw_as_one(ax: Axes, where: BoolArray, hatch: str, gid: str, color: str) -> None:
    """Draw the cells as one shape of their runs in each row; vector formats rasterize it."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    edges = np.diff(np.pad(where, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    row, start = np.nonzero(edges == 1)
    stop = np.nonzero(edges == -1)[1]
    left, right, bottom, top = start - 0.5, stop - 0.5, row - 0.5, row + 0.5
    corners = np.stack(
        [np.stack(point, axis=1) for point in ((left, bottom), (right, bottom), (right, top), (left, top))], axis=1
    )
    vertices = np.concatenate([corners, corners[:, :1]], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], len(row))
    shape = PathPatch(
        Path(vertices, codes),
        transform=ax.transData,
        hatch=hatch,
        facecolor="none",
        edgecolor=color,
        linewidth=0.0,
        gid=gid,
    )
    shape.set_rasterized(True)
    ax.add_artist(shape)  # add_patch would look for the extrema of each of its curves


def _write(
    ax: Axes, values: FloatArray, norm: Normalize, texts: Sequence[Sequence[str]], is_noise: BoolArray, drawn: BoolArray
) -> None:
    from matplotlib import colormaps

    colors = colormaps[DIVERGING](norm(values))
    for row, column in np.argwhere(drawn).tolist():
        on_paper = is_noise[row, column] or not np.isfinite(values[row, column])
        paper = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "boxstyle": "round,pad=0.1"}
        ax.text(
            column,
            row,
            texts[row][column],
            ha="center",
            va="center",
            fontsize=SMALL_TEXT - 0.5,
            linespacing=1.1,
            color="black" if on_paper else ink_on(colors[row, column]),
            bbox=paper if is_noise[row, column] else None,
            **literal_text(),
        )


def _name(ax: Axes, rows: Sequence[str], columns: Sequence[str], groups: Sequence[str]) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    size = figure.get_size_inches() * np.array([ax.get_position().width, ax.get_position().height])
    for names, axis, inches in ((columns, ax.xaxis, size[0]), (rows, ax.yaxis, size[1])):
        indices, shown = _labels(names, groups)
        cell = inches / len(names) * POINTS_AN_INCH
        nearest = min((after - before for before, after in pairwise(indices)), default=1.0)
        text_size = min(TEXT_SIZE, max(_MIN_TEXT, cell * nearest / _LEADING))
        kept = room_for_labels(indices, 0.999 * text_size * _LEADING / cell)
        axis.set_ticks([indices[index] for index in kept])
        axis.set_ticklabels([label(shown[index]) for index in kept], fontsize=text_size, **literal_text())
    many = len(columns) > 4 or max(map(len, columns)) > 8
    ax.tick_params(axis="x", rotation=90 if many else 0, length=2)
    ax.tick_params(axis="y", length=2)


def _labels(names: Sequence[str], groups: Sequence[str]) -> tuple[list[float], list[str]]:
    """Return positions and texts of labels."""
    # One per feature, or one per column if there are many.
    if len(names) <= _MAX_LABELLED or len(groups) != len(names):
        return [float(index) for index in range(len(names))], list(names)
    of_column: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        of_column.setdefault(group, []).append(index)
    return [float(np.mean(indices)) for indices in of_column.values()], list(of_column)


# The picture of correlations.

_HATCHED = "hatched: does not hold among all pairs"


def related_together(answer: Correlations) -> Correlations:
    """Return an answer with its features in the order of a hierarchical clustering by 1 − |r|."""
    if len(answer.feature_names) < 3:
        return answer
    distance = 1.0 - np.minimum(np.abs(np.nan_to_num(answer.correlation, nan=0.0)), 1.0)
    pairs = distance[np.triu_indices(len(distance), 1)]
    tree = scipy.cluster.hierarchy.linkage(pairs, "average", optimal_ordering=len(distance) <= _MAX_LABELLED)
    return answer[[answer.feature_names[index] for index in scipy.cluster.hierarchy.leaves_list(tree)]]


def draw_correlations(answer: Correlations, ax: Axes | None = None, *, triangle: bool = False) -> Axes:
    """Plot an answer of ``release.correlations()``; with ``triangle``, each pair once."""
    from matplotlib.colors import Normalize

    size = len(answer.feature_names)
    grow = ax is None
    ax = matrix_axes(ax, size, size)
    half = (answer.upper - answer.lower) / 2.0
    off = ~np.eye(size, dtype=bool)
    image = draw_matrix(
        ax,
        np.where(off, answer.correlation, 1.0),
        Normalize(-1.0, 1.0),
        rows=answer.feature_names,
        columns=answer.feature_names,
        is_noise=_left(answer),
        groups=answer.columns_of_features,
        texts=_numbers_and_noise(
            answer.correlation, np.where(off, half, np.nan), lambda value: f"{round(value, 2) + 0.0:.2f}", "–"
        ),
        left_out=np.triu(np.ones((size, size), dtype=bool)) if triangle else None,
    )
    reported = half[np.isfinite(answer.privacy_noise) & off]  # where a variance is lost the interval is all of [-1, 1]
    typical = float(np.median(reported)) if len(reported) else float("nan")
    with_color_bar(ax, image, "correlation", noise=typical)
    title = answer.heading[0] if answer.noise_known else "correlations: noise unknown"
    entitle(ax, title, *_meaning(answer, typical), answer.warning, grow=grow)
    return ax


def _meaning(answer: Correlations, typical: float) -> list[str]:
    half = (
        f"black lines on the color bar: half a {answer.level:.0%} interval, ±{typical:.2g} (the median)"
        if np.isfinite(typical)
        else "no pair has two variances above their noise: every correlation may be anything from −1 to 1"
    )
    said = [f"{_HATCHED}; {half}" if _left(answer).any() else half]
    if not answer.noise_known:
        said = [f"hatched: {describe_law(None)}"]
    if not np.isfinite(answer.correlation).all():
        said.append(f"gray and crossed: {NOT_ESTIMABLE}")
    return said


def _left(answer: Correlations) -> BoolArray:
    """Return a mask of the compared pairs that do not hold among all."""
    return np.asarray((np.array(answer.verdict, dtype=object) != "") & ~answer.holds_among_all)


def _numbers_and_noise(
    values: FloatArray, noise: FloatArray, form: Callable[[float], str], absent: str = ""
) -> list[list[str]]:
    """Return the texts of cells: a number, or ``absent`` for NaN.

    The noise is below it, if it is known.
    """

    def text(value: float, error: float) -> str:
        shown = form(value) if np.isfinite(value) else absent
        return f"{shown}\n±{form(error)}" if np.isfinite(error) else shown

    return [list(map(text, *lines)) for lines in zip(values.tolist(), noise.tolist(), strict=True)]


# The noise on released covariances, to first order.


def _covariance_noise(release: Moments, chosen: Sequence[int]) -> FloatArray:
    """Return noise SDs of covariances before repair, shape (k, k), in original units."""
    # To first order; NaN without a noise distribution. If the repair sets covariances of a column's levels, and
    # variances of Boolean columns, from shares, so is their noise, as in ``release.describe()``.
    moments = LocalMoments.of(release)
    indices = np.asarray(chosen, dtype=int)
    unit = moments.unit[indices]
    first, second = np.tril_indices(len(indices), -1)
    i, j = indices[first], indices[second]
    weights = np.zeros((len(i), 3, 3))
    weights[:, 1, 2] = weights[:, 2, 1] = 0.5
    # about the mean the sums are 0, and so is what noise on them does
    weights[:, 0, 0] = -moments.moments[i + 1, j + 1] / moments.n_rows
    if shows_shares(release):  # of two levels of a column: −p_i p_j has the noise of p_j s_i + p_i s_j
        columns, by_shares = np.array(columns_of(release, range(len(moments.location)))), indicator_mask(release)
        same = (columns[i] == columns[j]) & by_shares[i] & by_shares[j]
        shares = np.clip(moments.location, 0.0, 1.0) / moments.unit
        weights[same] = 0.0
        for index, other in ((1, j), (2, i)):
            weights[same, 0, index] = weights[same, index, 0] = -shares[other[same]] / 2.0
    variances = moments.variances(np.stack([np.zeros(len(i), dtype=int), i + 1, j + 1], axis=1), weights)
    result = np.diag(FeatureVariances.of(release, moments, as_shown=True).noise_per_row(moments)[indices])
    result[first, second] = result[second, first] = np.sqrt(variances) / moments.n_rows
    return np.asarray(result * np.outer(unit, unit))


# The picture of covariances.

_ROUNDING = 1e-9
"""Relative size, to the noise, of rounding errors of entries that a repair set to 0."""
_MIN_SHARE = 1e-4
"""Minimum linear range of the color scale, relative to the largest value."""


def draw_covariances(release: Moments, columns: Sequence[str] | None, level: float, ax: Axes | None = None) -> Axes:
    from matplotlib.colors import SymLogNorm

    chosen = chosen_features(release, columns)
    values, noise = release.covariance[np.ix_(chosen, chosen)], _covariance_noise(release, chosen)
    half_widths = np.outer(release.encoding.unit[chosen], release.encoding.unit[chosen])
    shown = values / half_widths
    largest = float(np.abs(shown).max()) or 1.0
    known = np.isfinite(noise).all()
    typical = float(np.median(noise / half_widths)) if known else float("nan")
    linear = min(max(typical if known else 0.0, _MIN_SHARE * largest), 0.99 * largest)
    names = tuple(release.feature_names[index] for index in chosen)
    described = describe(release)
    lost = np.diag(described.deviation_limits[chosen] > 0.0)
    if release.noise is None:
        lost[:] = True
    title = f"variance of {label(names[0])}"
    if len(chosen) > 1:
        pairs = correlations(release, names, level=level)
        lost = lost | _left(pairs)
        title = pairs.heading[0].replace("correlations", "covariances", 1) if known else "covariances: noise unknown"
    grow = ax is None
    ax = matrix_axes(ax, len(chosen), len(chosen))
    image = draw_matrix(
        ax,
        shown,
        SymLogNorm(linear, vmin=-largest, vmax=largest),
        rows=names,
        columns=names,
        is_noise=lost,
        groups=columns_of(release, chosen),
        texts=_numbers_and_noise(
            np.where(np.abs(values) < _ROUNDING * noise, 0.0, values), noise, lambda value: f"{value:.3g}"
        ),
    )
    with_color_bar(
        ax,
        image,
        "covariance, numbers and Booleans over half their range",
        noise=typical,
        ticks=_ticks(linear, largest),
    )
    cells = "numbers in cells: in original units" + (", ± noise SD" if known else "")
    colors = f"colors are linear up to the noise (black lines, ±{typical:.2g}) and logarithmic above"
    entitle(
        ax,
        title,
        cells if len(chosen) <= _MAX_NUMBERED else "",
        f"{'hatched: does not hold among all pairs; ' if lost.any() else ''}{colors}"
        if known
        else f"hatched: {describe_law(None)}",
        described.warning,
        grow=grow,
    )
    return ax


def _ticks(linear: float, largest: float) -> list[float]:
    """Return 0 and at most 4 powers of 10 above the linear range, with both signs."""
    powers = list(range(math.ceil(math.log10(2.0 * linear)), math.floor(math.log10(largest)) + 1))
    above = [10.0**power for power in powers[:: -max(1, math.ceil(len(powers) / 4))]][::-1]
    return [*(-tick for tick in reversed(above)), 0.0, *above]
