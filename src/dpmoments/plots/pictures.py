"""Pictures of relations, of a spectrum, and of the steps that located the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmoments.analysis.components import SCALINGS, PrincipalComponents
from dpmoments.analysis.confidence import NOT_CLEAR_NOISE, NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS
from dpmoments.analysis.correlations import Correlations
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.released import Release
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, finite_numbers, is_finite_number
from dpmoments.plots.canvas import (
    CERTAIN,
    INK,
    LINE,
    NOISE_COLOR,
    OPPOSITE,
    PRIVACY,
    SHADE,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    label,
    legend_below,
    literal_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Picture of relations: a cell for each two columns, with the strongest clear correlation.


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


# Picture of a spectrum: the variances of the principal components, and the noise floor.

_HOLLOW = "hollow: the variance before or after repair, whichever is smaller"
_DECADES_BELOW = 1.5
"""Decades that the axis extends below the smallest floor or clear variance."""


def draw_spectrum(answer: PrincipalComponents, ax: Axes | None = None) -> Axes:
    """Plot the variances of an answer of ``release.pca()``."""
    from matplotlib.ticker import MaxNLocator

    k = len(answer.explained_variance)
    grow = ax is None
    ax = axes_of(ax, min(max(5.2, 3.2 + 0.25 * k), 10.0), 4.4)
    variance, edge, index = answer.explained_variance, answer.noise_edge, np.arange(1, k + 1)
    known, is_noise = answer.noise is not None, answer.is_noise
    least = _least_shown(answer)
    # a component is noise if the smaller of its variances before and after repair is within the floor
    drawn = np.where(is_noise, np.minimum(variance, answer.noisy_variance), variance)
    shown = np.maximum(drawn, least)
    size = 6.0 if k <= 40 else 4.0
    ax.set_yscale("log")
    if known:
        steps = np.arange(k + 1) + 0.5
        floor = np.maximum(edge, least)
        ax.fill_between(
            steps,
            least,
            np.append(floor, floor[-1]),
            step="post",
            color=SHADE,
            linewidth=0.0,
            label="below the noise floor",
        )
        ax.stairs(floor, steps, baseline=None, color=PRIVACY, linewidth=1.6, label="noise floor (95 of 100 releases)")
        low, high = np.maximum(answer.conf_int().T, least)
        out = ~is_noise
        error = np.abs(np.stack([shown - low, high - shown]))
        if out.any():
            ax.errorbar(
                index[out],
                shown[out],
                yerr=error[:, out],
                fmt="o",
                markersize=size,
                color=CERTAIN,
                elinewidth=1.2,
                label="above the noise floor, with 95 % interval",
            )
        if is_noise.any():
            ax.plot(
                index[is_noise],
                shown[is_noise],
                "o",
                markersize=size,
                markerfacecolor="white",
                markeredgecolor=NOISE_COLOR,
                label=NOT_CLEAR_NOISE,
            )
    else:
        ax.plot(
            index, shown, "D", markersize=size, markerfacecolor="white", markeredgecolor=CERTAIN, label="noise unknown"
        )
    beyond = drawn < least
    if beyond.any():
        ax.plot(index[beyond], shown[beyond], "v", markersize=size, color=NOISE_COLOR, label="below the axis, or 0")
    ax.set_xlim(0.5, k + 0.5)
    ax.set_ylim(bottom=least * 0.8)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12, min_n_ticks=1))
    ax.set_xlabel("component", fontsize=TEXT_SIZE)
    about = "variance" if answer.centered else "second moment about 0"
    ax.set_ylabel(about, fontsize=TEXT_SIZE)
    ax.tick_params(labelsize=SMALL_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    certain = f"{int((~is_noise).sum())} of {k} are above the noise floor" if known else "noise unknown"
    entitle(
        ax,
        f"principal components: {certain}",
        f"{SCALINGS[answer.scaling]}; {_HOLLOW}" if is_noise.any() else SCALINGS[answer.scaling],
        describe_law(answer.noise),
        answer.warning,
        grow=grow,
    )
    return ax


def _least_shown(answer: PrincipalComponents) -> float:
    """Return the lower end of the logarithmic axis."""
    edges = answer.noise_edge[np.isfinite(answer.noise_edge) & (answer.noise_edge > 0.0)]
    certain = answer.explained_variance[~answer.is_noise & (answer.explained_variance > 0.0)]
    every = np.concatenate([edges, certain])
    if not len(every):
        return 1.0
    return float(max(every.min() * 10.0**-_DECADES_BELOW, every.max() * 1e-12))


# Plot of the steps by which a mechanism located the rows.

_MAX_STEPS = 1000
_LOGARITHMIC_BELOW = 0.05
_MAX_NAMED = 8


def draw_steps(release: Release, ax: Axes | None = None) -> Axes:
    """Plot half-widths of the region of each step along every feature, relative to the first."""
    if release.mechanism == "pooled":
        raise InputValueError(
            "cannot plot steps: a pooled release was made by several runs. Plot those of one: release.parts[0].plot.steps()"
        )
    if "steps" not in release.diagnostics:
        raise InputValueError(
            f"cannot plot steps: {release.mechanism} has only one step. Mechanisms with steps are coinpress and "
            "private-preconditioning, and of means coinpress and variance-aware"
        )
    widths: FloatArray | None = None
    with suppress(TypeError, KeyError, ValueError, OverflowError, np.linalg.LinAlgError):
        widths, relative_noise = _recorded(release, list(release.diagnostics["steps"]))
    if widths is None:  # a release file is untrusted: what its entries hold instead does not matter
        raise InputValueError(
            "cannot plot steps: the diagnostics contain impossible steps, so the file was changed after the release"
        )
    n, grow, of_mean = len(widths), ax is None, "mean_radius" in release.diagnostics["steps"][0]
    ax = axes_of(ax, min(max(5.6, 2.5 + 0.6 * n), 10.0), 4.2)
    sizes, positions = widths / widths[0], np.arange(1, n + 1)
    middle = np.median(sizes, axis=1)
    spread = sizes.min(axis=1), sizes.max(axis=1)
    if not np.allclose(*spread, rtol=1e-3):
        ax.fill_between(positions, *spread, color=CERTAIN, alpha=0.2, linewidth=0.0, label="range over features")
    ax.plot(positions, middle, "o-", color=CERTAIN, label="half-width of the region (median feature)")
    noise = middle * relative_noise
    if np.isfinite(noise).any():
        of_noise = "noise on the mean" if of_mean else "standard deviations that noise hides"
        ax.plot(positions, noise, "s--", color=PRIVACY, markerfacecolor="white", label=of_noise)
    if min(middle.min(), np.nanmin(noise, initial=1.0)) < _LOGARITHMIC_BELOW:
        ax.set_yscale("log")
    else:
        ax.set_ylim(0.0, 1.08 * float(sizes.max()))
    named = positions[:: -max(1, -(-n // _MAX_NAMED))][::-1]
    names = [*map(str, named[:-1]), f"{n} (last)"]
    ax.set_xticks(named, names, fontsize=SMALL_TEXT, **literal_text())
    ax.set_xlim(0.7, n + 0.3)
    ax.tick_params(axis="y", labelsize=SMALL_TEXT)
    ax.set_xlabel("step", fontsize=TEXT_SIZE)
    ax.set_ylabel("width relative to the first region", fontsize=TEXT_SIZE)
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize=SMALL_TEXT)
    title = f"after {n} steps the region is {middle[-1]:.2g} × as wide as at first" if n > 1 else "one region"
    what = "region known to contain the mean" if of_mean else "rows outside were clipped to it"
    entitle(ax, f"{release.mechanism}: {title}", what, grow=grow)
    return ax


def _recorded(release: Release, steps: list[Any]) -> tuple[FloatArray, FloatArray]:
    """Return half-widths, shape (steps, d), in each feature's units, and their relative noise."""
    # A step's region holds the encoded rows with ‖linear·(x − center)‖ ≤ radius; units cancel in ratios to the first.
    d = len(release.feature_names)
    if not 0 < len(steps) <= _MAX_STEPS:
        raise ValueError
    widths, noise = np.empty((len(steps), d)), np.full(len(steps), math.nan)
    for index, step in enumerate(steps):
        if "scales" in step:
            linear = np.diag(1.0 / finite_numbers(step["scales"], d, "scales"))
        else:
            rows = step.get("linear", release.diagnostics.get("linear", ()))
            linear = np.array([finite_numbers(row, d, "linear") for row in rows]).reshape(d, d)
        of_mean = "mean_radius" in steps[0]
        radius = _positive(step["mean_radius" if of_mean else "radius"])
        widths[index] = np.linalg.norm(np.linalg.inv(linear), axis=1) * radius
        if "noise_scale" in step:  # of a mean the noise is of the length of rows, of a covariance of its square
            scale = _positive(step["noise_scale"])
            noise[index] = (scale if of_mean else math.sqrt(scale)) / radius
    if not (np.isfinite(widths).all() and (widths > 0.0).all()):
        raise ValueError
    return widths, noise


def _positive(value: object) -> float:
    if not is_finite_number(value) or not float(value) > 0.0:
        raise ValueError
    return float(value)
