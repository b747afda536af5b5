"""Plot of a forecast: the smallest correlation whose sign would be clear, by budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpmoments.planning.forecast_noise import IN_HOW_MANY, ReleasePlan
from dpmoments.plots.canvas import (
    CERTAIN,
    INK,
    OPPOSITE,
    SECONDARY,
    SHADE,
    SMALL_TEXT,
    TEXT_SIZE,
    axes_of,
    entitle,
    legend_below,
)
from dpmoments.privacy.budget import MAX_LOSS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Budgets of the plot, relative to that of the forecast."""
_MARKS = (("o", CERTAIN), ("s", OPPOSITE))
_SIZES = {0.1: "weak", 0.3: "moderate", 0.5: "strong"}
"""Conventions of Cohen (1988)."""
MEANING = f"In {IN_HOW_MANY}, for half of the pairs, despite privacy noise and sampling error. Shaded: stays hidden."
_LOWEST_TOP = 0.35
"""Lowest top of the axis: a moderate correlation is in the picture."""


def clear_by_budget(setting: ReleasePlan) -> dict[str, dict[str, float]]:
    """Return the smallest correlations of clear sign, by budget and kind of pair."""
    plans = [setting.with_budget(size) for f in _FACTORS if (size := f * setting.size_of_budget) <= MAX_LOSS]
    known = {plan.budget_text: plan.known_noise for plan in plans}
    return {budget: {} if noise is None else noise.smallest_between for budget, noise in known.items()}


def plot_clear(setting: ReleasePlan, title: str, ax: Axes | None) -> Axes:
    """Plot the smallest correlation whose sign would be clear, against the budget."""
    by_budget = clear_by_budget(setting)
    grow = ax is None
    ax = axes_of(ax, 5.6, 3.4)
    places = np.arange(len(by_budget))
    asked = by_budget[setting.budget_text]
    sizes = {kind: np.array([smallest.get(kind, math.inf) for smallest in by_budget.values()]) for kind in asked}
    everything = np.concatenate([*sizes.values()])
    top = 1.0 if np.isinf(everything).any() else min(max(_LOWEST_TOP, 1.15 * float(everything.max())), 1.0)

    hidden = np.minimum(np.min([*sizes.values()], axis=0), top)
    ax.fill_between(places, 0.0, hidden, color=SHADE, linewidth=0.0, zorder=0)
    for (kind, smallest), (marker, color) in zip(sizes.items(), _MARKS, strict=False):
        none = np.isinf(smallest)
        ax.plot(places, np.where(none, top, smallest), ":", color=color, linewidth=1.6)
        ax.plot(places, np.where(none, math.nan, smallest), f"{marker}-", color=color, label=f"between {kind}")
        ax.plot(places[none], np.full(none.sum(), top), marker, color=color, markerfacecolor="white", clip_on=False)
    for size, word in _SIZES.items():
        if size <= top:
            ax.axhline(size, color=SECONDARY, linestyle=":", linewidth=0.8, zorder=0)
            ax.text(places[-1] + 0.22, size, f"{word}\n", va="center", ha="right", fontsize=SMALL_TEXT, color=SECONDARY)
    ax.axvline([*by_budget].index(setting.budget_text), color=INK, linestyle="--", linewidth=1.2, label="asked for")
    ax.set_ylim(0.0, top)
    ax.set_xlim(-0.25, places[-1] + 0.25)
    ax.set_xticks(places, labels=[budget.partition(",")[0] for budget in by_budget])
    ax.tick_params(labelsize=SMALL_TEXT)
    ax.set_ylabel("smallest correlation of clear sign", fontsize=TEXT_SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    legend_below(ax)
    entitle(ax, title, MEANING, "Hollow: no sign is clear." if np.isinf(everything).any() else "", grow=grow)
    return ax
