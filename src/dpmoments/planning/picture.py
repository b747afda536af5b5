"""Plots of a forecast: noise by column, and noise by budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from dpmoments.analysis.answers import number, rounded
from dpmoments.base.checks import not_one_of
from dpmoments.base.errors import InputValueError, shown
from dpmoments.planning.forecast_noise import ForecastNoise, ReleasePlan
from dpmoments.plots.canvas import (
    CERTAIN,
    HATCH,
    NOISE_COLOR,
    PRIVACY,
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


MAX_FEATURES = 30
_FACTORS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets of the plot, relative to that of the forecast."""
_AS_LARGE = 1.0


def plot_forecast(
    setting: ReleasePlan,
    noise: ForecastNoise,
    title: str,
    *,
    against: Literal["columns", "budget"],
    n_features: int = MAX_FEATURES,
    ax: Axes | None = None,
) -> Axes:
    """Plot the noise on the noisiest features, or on a typical correlation by budget."""
    if against == "columns":
        return _plot_columns(noise, f"{title}: {setting.mechanism.name}", n_features, ax)
    if against == "budget":
        return _plot_against_budget(setting, title, ax)
    raise not_one_of("against", against, ("columns", "budget"))


def _plot_columns(noise: ForecastNoise, title: str, n_features: int, ax: Axes | None) -> Axes:
    """Plot the noise on mean and SD of every feature, relative to its typical SD."""
    if n_features < 1:
        raise InputValueError(f"n_features must be at least 1, got {shown(n_features)}")
    typical, said = noise.typical, noise.description
    lost_means, lost_spreads = np.array(said.mean_is_noise), said.deviation_limits > 0.0
    names, deviations = typical.schema.feature_names, typical.standard_deviations
    with np.errstate(divide="ignore", invalid="ignore"):
        of_mean, of_spread = noise.mean / deviations, noise.standard_deviation / deviations
    of_spread = np.where(typical.shares, np.nan, of_spread)
    worst = np.nan_to_num(np.fmax(of_mean, of_spread), nan=np.inf, posinf=np.inf)
    chosen = np.sort(np.argsort(-worst, kind="stable")[:n_features])
    grow = ax is None
    ax = axes_of(ax, 8.0, min(max(3.0, 1.8 + 0.28 * len(chosen)), 12.0))
    ax.set_xscale("log")
    rows = np.arange(len(chosen))
    for values, lost, marker, color, words in (
        (of_mean, lost_means, "o", CERTAIN, "on the mean"),
        (of_spread, lost_spreads, "D", PRIVACY, "on the standard deviation"),
    ):
        drawn, gone = values[chosen], lost[chosen]
        known = np.isfinite(drawn) & (drawn > 0.0)
        solid, hollow = known & ~gone, known & gone
        ax.plot(drawn[solid], rows[solid], marker, color=color, markersize=6, label=words)
        ax.plot(drawn[hollow], rows[hollow], marker, markerfacecolor="white", color=NOISE_COLOR, markersize=6)
    finite = np.concatenate([values[chosen][np.isfinite(values[chosen])] for values in (of_mean, of_spread)])
    finite = finite[finite > 0.0]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.1, 0.1)
    right = max(2.0 * float(high), 2.0 * _AS_LARGE)
    ax.axvspan(_AS_LARGE, right, facecolor="#f3f3f3", edgecolor="#bdbdbd", hatch=HATCH, linewidth=0.0, zorder=0)
    ax.set_xlim(float(low) / 2.0, right)
    ax.set_ylim(len(chosen) - 0.4, -0.6)
    ax.set_yticks(rows)
    ax.set_yticklabels([label(names[index]) for index in chosen], fontsize=TEXT_SIZE, **literal_text())
    ax.tick_params(axis="x", labelsize=SMALL_TEXT)
    ax.set_xlabel("noise SD, relative to the column's typical SD", fontsize=TEXT_SIZE)
    ax.grid(axis="x", alpha=0.3)
    _in_units(ax, noise, chosen.tolist())
    legend_below(ax)
    assumed = "typical sd; ~: assumed" if typical.assumed[chosen].any() else "typical sd"
    fewer = f"the {len(chosen)} of {len(names)} features with the most noise; " if len(chosen) < len(names) else ""
    marks = "hatched: noise as large as the column's spread; hollow: noise-dominated"
    entitle(
        ax,
        title,
        f"{fewer}{marks}",
        f"on the right: ± on the mean, ± on the sd, in original units ({assumed})",
        grow=grow,
    )
    return ax


def _in_units(ax: Axes, noise: ForecastNoise, chosen: Sequence[int]) -> None:
    """Write the numbers in original units to the right of each line."""
    typical, said = noise.typical, noise.description
    for row, index in enumerate(chosen):
        of_mean, of_deviation = noise.mean[index], noise.standard_deviation[index]
        mean = "noise" if said.mean_is_noise[index] else f"± {rounded(of_mean, of_mean)}"
        deviation = "noise" if said.deviation_limits[index] > 0.0 else f"± {rounded(of_deviation, of_deviation)}"
        known = f"{'~' if typical.assumed[index] else ''}{number(float(f'{typical.standard_deviations[index]:.3g}'))}"
        words = mean + ("" if typical.shares[index] else f", {deviation}") + f"  ({known})"
        ax.annotate(
            words,
            (1.0, row),
            (6, 0),
            xycoords=ax.get_yaxis_transform(),
            textcoords="offset points",
            va="center",
            fontsize=SMALL_TEXT,
            annotation_clip=False,
            **literal_text(),
        )


def _plot_against_budget(setting: ReleasePlan, title: str, ax: Axes | None) -> Axes:
    """Plot the noise on a typical correlation (or one column's mean) against the budget."""
    grow = ax is None
    ax = axes_of(ax, 6.4, 4.4)
    ax.set_xscale("log")
    ax.set_yscale("log")
    one_column = math.isnan(_known(setting, False)[0])
    sizes = [factor * setting.size_of_budget for factor in _FACTORS]
    result = [_known(setting.with_budget(size), one_column) for size in sizes]
    values, lost = np.array([value for value, _ in result]), np.array([gone for _, gone in result])
    ax.plot(sizes, values, "-", color=CERTAIN, linewidth=1.4)
    ax.plot(np.array(sizes)[~lost], values[~lost], "o", color=CERTAIN, markersize=6, label=setting.mechanism.name)
    ax.plot(np.array(sizes)[lost], values[lost], "o", color=CERTAIN, markerfacecolor="white", markersize=6)
    any_lost = bool((lost & np.isfinite(values)).any())
    ax.axvline(setting.size_of_budget, color="#404040", linestyle=":", linewidth=1.2, label="this forecast")
    ax.set_xticks(sizes, labels=[f"{size:.3g}" for size in sizes])
    ax.minorticks_off()
    ax.tick_params(labelsize=SMALL_TEXT)
    ax.set_xlabel(f"budget, {setting.symbol}", fontsize=TEXT_SIZE)
    ax.set_ylabel(
        "noise on the mean, in standard deviations" if one_column else "noise on a typical correlation",
        fontsize=TEXT_SIZE,
    )
    ax.grid(alpha=0.3)
    ax.legend(fontsize=SMALL_TEXT)
    entitle(ax, title, "standard deviations, before repair", "hollow: hidden by noise" if any_lost else "", grow=grow)
    return ax


def _known(setting: ReleasePlan, one_column: bool) -> tuple[float, bool]:
    """Return the noise on a typical correlation or mean, and True if it hides that.

    A hidden correlation is drawn at 1.
    """
    if (noise := setting.known_noise) is None:
        return math.nan, False
    if one_column:
        return float(np.max(noise.mean_in_deviations)), all(noise.description.mean_is_noise)
    deviation = noise.typical_correlation()
    return min(deviation, 1.0), math.isinf(deviation)
