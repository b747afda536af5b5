"""Picture of a spectrum: the variances of the principal components, and the noise floor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.components import SCALINGS, PrincipalComponents
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.resolvability import NOT_CLEAR_NOISE
from dpmoments.plots.canvas import (
    CERTAIN,
    NOISE_COLOR,
    PRIVACY,
    SHADE,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    legend_below,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
