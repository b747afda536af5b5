"""The picture of the means of a feature by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.group_means import LOST, GroupMeans, group_means
from dpmoments.analysis.levels import feature_place
from dpmoments.analysis.released import Released
from dpmoments.plots.canvas import entitle
from dpmoments.plots.intervals import (
    PARTS,
    IntervalLine,
    draw_intervals,
    interval_axes,
    privacy_part,
)
from dpmoments.plots.letters import label
from dpmoments.plots.refusals import require_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_groups", "plot_groups"]


def plot_groups(release: Released, by: str, of: str, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Means by group with their intervals; see :meth:`dpmoments.plots.accessor.ReleasePlots.groups`."""
    require_mean(release, "means of groups")
    if not isinstance(of, str):
        raise TypeError(
            f"of={of!r}: a picture is of the means of one feature; name it, and draw another picture for another"
        )
    of = release.feature_names[feature_place(release, of)]
    return draw_groups(group_means(release, by, [of], level=level), ax)


def draw_groups(found: GroupMeans, ax: Axes | None = None) -> Axes:
    """The picture of an answer of ``release.group_means()`` for one feature."""
    total = np.hypot(found.privacy_noise[0], found.sampling_noise[0])
    half = privacy_part(found.lower[0], found.upper[0], found.privacy_noise[0], total)
    lines = []
    for place, name in enumerate(found.groups):
        noise = f" ± {found.count_noise[place]:,.0f}" if np.isfinite(found.count_noise[place]) else ""
        level = name.removeprefix(f"{found.by}=")
        lines.append(
            IntervalLine(
                f"{label(level, 20)}  ({found.counts[place]:,.0f}{noise})",
                float(found.mean[0, place]),
                float(found.lower[0, place]),
                float(found.upper[0, place]),
                float(half[place]),
                LOST if found.lost[place] else "" if found.noise_known else NOISE_UNKNOWN,
            )
        )
    grow = ax is None
    ax = interval_axes(ax, len(lines))
    feature = label(found.features[0])
    draw_intervals(ax, lines, f"mean of {feature}")
    ax.set_ylabel(f"{label(found.by)}  (rows ± noise)", parse_math=False, usetex=False)
    lost = f"hatched: {LOST}, the number of rows {NOT_DISTINGUISHABLE}" if found.lost.any() else ""
    intervals = f"{found.level:.0%} intervals, {PARTS}" if found.noise_known else law_in_words(None)
    pooled = "" if found.own_variance or not found.noise_known else "; groups are taken to vary alike"
    entitle(ax, f"mean of {feature} by {label(found.by)}", f"{intervals}{pooled}", lost, found.warning, grow=grow)
    return ax
