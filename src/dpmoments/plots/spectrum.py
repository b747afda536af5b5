"""The picture of a spectrum: the variances of the principal components against what noise alone would make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.components import SCALINGS, PrincipalComponents, Scaling, pca
from dpmoments.analysis.functionals import NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.released import Released
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
)
from dpmoments.plots.refusals import require_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_spectrum", "plot_spectrum"]

DECADES_BELOW = 1.5
"""The axis ends so far below the least floor or variance that stands out; what is smaller is drawn at its end."""


def plot_spectrum(
    release: Released, columns: Sequence[str] | None = None, *, scaling: Scaling = "bounds", ax: Axes | None = None
) -> Axes:
    """Variances of the components; see :meth:`dpmoments.plots.accessor.ReleasePlots.spectrum`."""
    require_count(release, "a spectrum")
    return draw_spectrum(pca(release, columns=columns, scaling=scaling), ax)


def draw_spectrum(found: PrincipalComponents, ax: Axes | None = None) -> Axes:
    """The picture of the variances of an answer of ``release.pca()``."""
    from matplotlib.ticker import MaxNLocator

    k = len(found.explained_variance)
    grow = ax is None
    ax = axes_of(ax, min(max(5.2, 3.2 + 0.25 * k), 10.0), 4.4)
    variance, edge, place = found.explained_variance, found.noise_edge, np.arange(1, k + 1)
    known, is_noise = found.noise is not None, found.is_noise
    least = _least_shown(found)
    shown = np.maximum(variance, least)
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
            label="within what noise alone makes",
        )
        ax.stairs(floor, steps, baseline=None, color=PRIVACY, linewidth=1.6, label="noise floor (95 of 100 releases)")
        low, high = np.maximum(found.conf_int().T, least)
        out = ~is_noise
        error = np.abs(np.stack([shown - low, high - shown]))
        if out.any():
            ax.errorbar(
                place[out],
                shown[out],
                yerr=error[:, out],
                fmt="o",
                markersize=size,
                color=CERTAIN,
                elinewidth=1.2,
                label="stands out, with its 95 % interval",
            )
        if is_noise.any():
            ax.plot(
                place[is_noise],
                shown[is_noise],
                "o",
                markersize=size,
                markerfacecolor="white",
                markeredgecolor=NOISE_COLOR,
                label=NOT_DISTINGUISHABLE,
            )
    else:
        ax.plot(
            place, shown, "D", markersize=size, markerfacecolor="white", markeredgecolor=CERTAIN, label="noise unknown"
        )
    beyond = variance < least
    if beyond.any():
        ax.plot(place[beyond], shown[beyond], "v", markersize=size, color=NOISE_COLOR, label="below the axis, or 0")
    ax.set_xlim(0.5, k + 0.5)
    ax.set_ylim(bottom=least * 0.8)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=12, min_n_ticks=1))
    ax.set_xlabel("component", fontsize=TEXT_SIZE)
    about = "variance" if found.centered else "second moment about 0"
    ax.set_ylabel(about, fontsize=TEXT_SIZE)
    ax.tick_params(labelsize=SMALL_TEXT)
    ax.grid(axis="y", alpha=0.3)
    legend_below(ax)
    certain = f"{int((~is_noise).sum())} of {k} stand out of the noise" if known else "noise unknown"
    entitle(
        ax,
        f"principal components: {certain}",
        f"{SCALINGS[found.scaling]}; what stands out is told by variances before repair"
        if known
        else SCALINGS[found.scaling],
        law_in_words(found.noise),
        found.warning,
        grow=grow,
    )
    return ax


def _least_shown(found: PrincipalComponents) -> float:
    """Where the axis ends: on a logarithmic one 0 has no place."""
    edges = found.noise_edge[np.isfinite(found.noise_edge) & (found.noise_edge > 0.0)]
    certain = found.explained_variance[~found.is_noise & (found.explained_variance > 0.0)]
    every = np.concatenate([edges, certain])
    if not len(every):
        return 1.0
    return float(max(every.min() * 10.0**-DECADES_BELOW, every.max() * 1e-12))
