"""The picture of correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.analysis.correlations import Correlations, correlations
from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.plots.canvas import entitle
from dpmoments.plots.matrices import NumberedCells, draw_matrix, matrix_axes, with_color_bar
from dpmoments.plots.refusals import require_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_correlation"]


def plot_correlation(
    release: Released, columns: Sequence[str] | None = None, *, level: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Correlations as coloured cells; see :meth:`dpmoments.plots.accessor.ReleasePlots.correlation`."""
    require_mean(release, "correlations")
    found = correlations(release, columns, level=level)
    return draw_correlations(found, ax)


def draw_correlations(found: Correlations, ax: Axes | None = None) -> Axes:
    """The picture of an answer of ``release.correlations()``."""
    from matplotlib.colors import Normalize

    size = len(found.feature_names)
    verdict = np.array(found.verdict, dtype=object)
    grow = ax is None
    ax = matrix_axes(ax, size, size)
    half = (found.upper - found.lower) / 2.0
    off = ~np.eye(size, dtype=bool)
    image = draw_matrix(
        ax,
        np.where(off, found.correlation, 1.0),
        Normalize(-1.0, 1.0),
        rows=found.feature_names,
        columns=found.feature_names,
        is_noise=(verdict == NOT_DISTINGUISHABLE) | (verdict == NOISE_UNKNOWN),
        groups=found.columns_of_features,
        cells=NumberedCells(_numbers(found.correlation), _numbers(half, "±")),
    )
    told = half[np.isfinite(found.privacy_noise) & off]  # where a variance is lost the interval is all of [-1, 1]
    typical = float(np.median(told)) if len(told) else float("nan")
    with_color_bar(ax, image, "correlation", noise=typical)
    title = found.heading[0] if found.noise_known else "correlations: noise unknown"
    entitle(ax, title, *_meaning(found, verdict, typical), found.warning, grow=grow)
    return ax


def _meaning(
    found: Correlations, verdict: np.ndarray[tuple[int, ...], np.dtype[np.object_]], typical: float
) -> list[str]:
    half = (
        f"black lines on the colour bar: half a {found.level:.0%} interval, ±{typical:.2g} (the median)"
        if np.isfinite(typical)
        else "no pair has both variances out of the noise, so that every correlation may be anything from −1 to 1"
    )
    if not found.noise_known:
        said = [f"hatched: {law_in_words(None)}"]
    elif (verdict == NOT_DISTINGUISHABLE).any():
        said = [f"hatched: {NOT_DISTINGUISHABLE}, since the interval holds 0; {half}"]
    else:
        said = [half]
    if not np.isfinite(found.correlation).all():
        said.append("grey and crossed: no correlation, since a released variance is not above 0")
    return said


def _numbers(values: FloatArray, sign: str = "") -> list[list[str]]:
    return [
        ["" if row == column and sign else _two(value, sign) for column, value in enumerate(line)]
        for row, line in enumerate(values.tolist())
    ]


def _two(value: float, sign: str) -> str:
    return f"{sign}{round(value, 2) + 0.0:.2f}" if np.isfinite(value) else ("" if sign else "–")
