"""The picture of a regression's coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dpmoments.analysis.description import describe
from dpmoments.analysis.functionals import NOT_DISTINGUISHABLE
from dpmoments.analysis.lasso import lasso
from dpmoments.analysis.regression import ols, ridge
from dpmoments.analysis.regression_results import NO_EFFECT, CoefficientTable
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.plots.canvas import entitle
from dpmoments.plots.intervals import (
    PARTS,
    IntervalLine,
    draw_intervals,
    interval_axes,
    privacy_part,
)
from dpmoments.plots.letters import label
from dpmoments.plots.refusals import require_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_coefficients", "plot_coefficients"]

FITS: dict[str, Any] = {"ols": ols, "ridge": ridge, "lasso": lasso}
MOST_COEFFICIENTS = 25


def plot_coefficients(
    release: Released,
    target: str,
    features: Sequence[str] | None = None,
    *,
    method: Literal["ols", "ridge", "lasso"] = "ols",
    per: Literal["deviation", "unit"] = "deviation",
    n_coefficients: int = MOST_COEFFICIENTS,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Coefficients with their intervals; see :meth:`dpmoments.plots.accessor.ReleasePlots.coefficients`."""
    if method not in FITS:
        raise ValueError(f"method={method!r} is no regression of a release: use {', '.join(map(repr, FITS))}")
    if per not in ("deviation", "unit"):
        raise ValueError(f"per={per!r}: use 'deviation', a feature's standard deviation, or 'unit', one unit of it")
    if n_coefficients < 1:
        raise ValueError(f"n_coefficients={n_coefficients!r} shows nothing: give 1 or more")
    require_count(release, "coefficients")
    fit = FITS[method](release, target, features, **options)
    found = describe(release)
    spread = found.root_mean_square if found.standard_deviation is None else found.standard_deviation
    assert spread is not None
    of_feature = dict(zip(found.feature_names, spread.tolist(), strict=True))
    deviations = np.array([of_feature[name] for name in fit.features])
    return draw_coefficients(fit, deviations if per == "deviation" else None, n_coefficients, ax)


def draw_coefficients(
    fit: CoefficientTable,
    deviations: FloatArray | None = None,
    n_coefficients: int = MOST_COEFFICIENTS,
    ax: Axes | None = None,
) -> Axes:
    """The picture of the answer of a regression.

    Parameters
    ----------
    fit : CoefficientTable
    deviations : ndarray of shape (k,), optional
        Standard deviations of the features, by which coefficients are multiplied so that one axis serves all.
    n_coefficients : int
        Those with the smallest p-values are shown, where there are more.
    ax : Axes, optional
    """
    per = np.ones(len(fit.features)) if deviations is None else np.nan_to_num(deviations, nan=0.0)
    verdict = fit.verdict[1:] if fit.with_intercept else fit.verdict
    lower, upper = np.asarray(fit.conf_int()).T
    half = privacy_part(lower, upper, fit.privacy_errors, fit.standard_errors)
    order = np.argsort(np.nan_to_num(fit.p_values, nan=2.0), kind="stable")[:n_coefficients]
    lines = [
        IntervalLine(
            label(fit.features[place]),
            _times(fit.coefficients[place], per[place]),
            _times(lower[place], per[place]),
            _times(upper[place], per[place]),
            _times(half[place], per[place]),
            verdict[place],
        )
        for place in np.sort(order).tolist()
    ]
    grow = ax is None
    ax = interval_axes(ax, len(lines))
    target = label(fit.target)
    draw_intervals(
        ax,
        lines,
        f"change of {target} per standard deviation of the feature"
        if deviations is not None
        else f"change of {target} per unit",
        about=0.0,
    )
    entitle(ax, *_words(fit, lines), grow=grow)
    return ax


def _times(number: float, deviation: float) -> float:
    """NaN where noise hides the deviation: nothing is then known of the product."""
    return number * deviation if deviation > 0.0 else float("nan")


def _words(fit: CoefficientTable, lines: Sequence[IntervalLine]) -> list[str]:
    """The title, and what the marks mean."""
    if fit.inference is None:
        title = f"{fit.method} regression of {label(fit.target)}: noise unknown"
        return [
            title,
            "hollow: this mechanism has no closed law of its noise, so that no coefficient has an interval",
            fit.warning,
        ]
    lower, upper = fit.r_squared_interval()
    whole = f": the whole fit is {NOT_DISTINGUISHABLE}" if fit.is_noise else ""
    title = (
        f"{fit.method} regression of {label(fit.target)}, R² {fit.r_squared:.2f} ({lower:.2f} to {upper:.2f}){whole}"
    )
    said = {line.word for line in lines}
    hollow = [f"noise: {NOT_DISTINGUISHABLE}"] if NOT_DISTINGUISHABLE in said else []
    hollow += [f"may be 0: {NO_EFFECT}, whatever the noise"] if NO_EFFECT in said else []
    thick = PARTS if any(np.isfinite(line.privacy) for line in lines) else ""
    k = len(fit.features)
    fewer = f"the {len(lines)} of {k} coefficients that stand out most; " if len(lines) < k else ""
    marks = "; ".join(
        filter(None, [f"{fewer}{fit.level:.0%} intervals", thick, *(f"hollow, {words}" for words in hollow)])
    )
    return [title, marks, fit.help if fit.is_noise else "", fit.warning]
