"""The picture of covariances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.correlations import correlations
from dpmoments.analysis.description import describe
from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.levels import chosen_features, columns_of
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.plots.canvas import entitle
from dpmoments.plots.covariance_noise import covariance_noise
from dpmoments.plots.letters import label
from dpmoments.plots.matrices import (
    MOST_NUMBERED,
    NumberedCells,
    draw_matrix,
    matrix_axes,
    with_color_bar,
)
from dpmoments.plots.refusals import require_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_covariance"]

ROUNDING = 1e-9
"""Of the noise: what a repair made 0 comes out of floating point as less than this."""
LEAST_SHARE = 1e-4
"""Of the largest colour: where the noise is smaller, or not known, colours are linear below this."""


def plot_covariance(
    release: Released, columns: Sequence[str] | None = None, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Covariances as coloured cells; see :meth:`dpmoments.plots.accessor.ReleasePlots.covariance`."""
    from matplotlib.colors import SymLogNorm

    require_mean(release, "covariances")
    chosen = chosen_features(release, columns)
    values, noise = release.covariance[np.ix_(chosen, chosen)], covariance_noise(release, chosen)
    half_widths = np.outer(release.encoding.unit[chosen], release.encoding.unit[chosen])
    shown = values / half_widths
    largest = float(np.abs(shown).max()) or 1.0
    known = np.isfinite(noise).all()
    typical = float(np.median(noise / half_widths)) if known else float("nan")
    linear = min(max(typical if known else 0.0, LEAST_SHARE * largest), 0.99 * largest)
    names = tuple(release.feature_names[place] for place in chosen)
    lost, warning = _decided_by_noise(release, chosen, level)
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
        cells=NumberedCells(_numbers(np.where(np.abs(values) < ROUNDING * noise, 0.0, values)), _numbers(noise, "±")),
    )
    with_color_bar(
        ax, image, "covariance, each column over half its range", noise=typical, ticks=_ticks(linear, largest)
    )
    off = np.tril_indices(len(chosen), -1)
    stand_out = f"{int((~lost)[off].sum())} of {len(off[0])} pairs stand out of the noise" if known else "noise unknown"
    cells = "numbers in cells: in the table's units" + (", ± the standard deviation of the noise" if known else "")
    colors = f"colours are linear up to the noise (black lines, ±{typical:.2g}) and logarithmic above"
    entitle(
        ax,
        f"covariances: {stand_out}" if len(chosen) > 1 else f"variance of {label(names[0])}",
        cells if len(chosen) <= MOST_NUMBERED else "",
        f"{f'hatched: {NOT_DISTINGUISHABLE}; ' if lost.any() else ''}{colors}"
        if known
        else f"hatched: {law_in_words(None)}",
        warning,
        grow=grow,
    )
    return ax


def _decided_by_noise(release: Released, chosen: Sequence[int], level: float) -> tuple[BoolArray, str]:
    """Variances as ``describe`` marks their roots, covariances as ``correlations`` says of their signs; and what warns."""
    described = describe(release)
    lost = np.diag(np.array(described.standard_deviation_is_noise)[list(chosen)])
    if release.noise is None:
        lost[:] = True
    if len(chosen) > 1:
        names = [release.feature_names[place] for place in chosen]
        verdict = np.array(correlations(release, names, level=level).verdict, dtype=object)
        lost = lost | (verdict == NOT_DISTINGUISHABLE) | (verdict == NOISE_UNKNOWN)
    return lost, described.warning


def _ticks(linear: float, largest: float) -> list[float]:
    """0 and powers of 10 above the linear part, 4 at most.

    Examples
    --------
    >>> _ticks(0.002, 0.5)
    [-0.1, -0.01, 0.0, 0.01, 0.1]
    """
    powers = list(range(math.ceil(math.log10(2.0 * linear)), math.floor(math.log10(largest)) + 1))
    above = [10.0**power for power in powers[:: -max(1, math.ceil(len(powers) / 4))]][::-1]
    return [*(-tick for tick in reversed(above)), 0.0, *above]


def _numbers(values: FloatArray, sign: str = "") -> list[list[str]]:
    return [[f"{sign}{value:.3g}" if np.isfinite(value) else "" for value in line] for line in values.tolist()]
