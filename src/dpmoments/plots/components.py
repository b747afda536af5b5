"""Plots of principal components: their loadings, and their variances with the noise floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.components import SCALINGS, PrincipalComponents
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.resolvability import NOT_CLEAR_NOISE
from dpmoments.base.arrays import largest_first
from dpmoments.base.errors import InputValueError, shown
from dpmoments.plots.canvas import (
    CERTAIN,
    HATCH,
    NOISE_COLOR,
    PRIVACY,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    legend_below,
    literal_text,
)
from dpmoments.plots.matrices import draw_matrix, matrix_axes, with_color_bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_components(answer: PrincipalComponents, n_features: int = 25, ax: Axes | None = None) -> Axes:
    """Plot the loadings of an answer of ``release.pca()``, of features with the largest ones."""
    from matplotlib.colors import Normalize

    if n_features < 1:
        raise InputValueError(f"n_features must be at least 1, got {shown(n_features)}")
    looked_at = answer.components if answer.is_noise.all() else answer.components[~answer.is_noise]
    chosen = np.sort(largest_first(np.abs(looked_at).max(axis=0))[:n_features])
    loadings = answer.components[:, chosen].T
    is_noise, known = answer.is_noise, answer.noise is not None
    k, largest = len(is_noise), float(np.abs(loadings).max())
    grow = ax is None
    ax = matrix_axes(ax, len(chosen), k)
    image = draw_matrix(
        ax,
        loadings,
        Normalize(-largest, largest),
        rows=[answer.feature_names[index] for index in chosen],
        columns=[str(index) for index in range(1, k + 1)],
        is_noise=np.broadcast_to(is_noise, loadings.shape) | (not known),
        texts=[[f"{round(value, 2) + 0.0:+.2f}" for value in line] for line in loadings.tolist()],
    )
    words = [
        "noise" if noise else f"{share:.0%}"
        for noise, share in zip(is_noise, answer.explained_variance_ratio, strict=True)
    ]
    ax.set_xticks(range(k))
    ax.set_xticklabels(
        [f"{index}\n{said}" for index, said in enumerate(words, 1)], fontsize=SMALL_TEXT, rotation=0, **literal_text()
    )
    ax.set_xlabel("component, and its share of the total variance", fontsize=TEXT_SIZE)
    with_color_bar(ax, image, "loading")
    fewer = len(chosen) < len(answer.feature_names)
    entitle(
        ax,
        f"principal components: {int((~is_noise).sum())} of the first {k} are above the noise floor"
        if known
        else "principal components: noise unknown",
        SCALINGS[answer.scaling],
        f"hatched: {NOT_CLEAR_NOISE}" if is_noise.any() else describe_law(answer.noise),
        f"the {len(chosen)} of {len(answer.feature_names)} features with the largest loadings" if fewer else "",
        answer.warning,
        grow=grow,
    )
    return ax


# The picture of a spectrum: the variances of the principal components against what noise alone would make of them.

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
            facecolor="#f3f3f3",
            edgecolor="#bdbdbd",
            hatch=HATCH,
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
    ax.grid(axis="y", alpha=0.3)
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
