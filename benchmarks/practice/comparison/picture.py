"""docs/evidence/images/practice-design.png and practice-judge.png: the gain on every table, one dot a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.lines import Line2D

from benchmarks.practice.comparison.gains import Gain, geometric_mean

if TYPE_CHECKING:
    from benchmarks.practice.comparison.page import Compared

__all__ = ["draw"]

COLORS = {0.3: "#0072b2", 1.0: "#56b4e9", 3.0: "#e69f00", 10.0: "#d55e00"}
"""Okabe & Ito, who chose them for eyes that see fewer colors; ε."""
MARKERS = {0.3: "o", 1.0: "s", 3.0: "D", 10.0: "^"}
TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
SPACE = 0.21
"""Inches a table."""


def draw(tables: Sequence[Compared], path: Path) -> None:
    """Pure ε on the left, (ε, δ) on the right; geometric means over both relations."""
    drawn = [one for one in tables if one.gains["covariance"]]
    if not drawn:
        return
    ordered = sorted(drawn, key=lambda one: (not one.entry.real, one.entry.dominant))[::-1]
    figure, axes = plt.subplots(
        1, 2, figsize=(10.0, SPACE * len(ordered) + 1.4), sharex=True, sharey=True, layout="constrained", squeeze=True
    )
    for axis, spends_delta, title in zip(axes, (False, True), ("pure ε", "ε and δ = 1e-9"), strict=True):
        for place, one in enumerate(ordered):
            for epsilon, color in COLORS.items():
                gain = _over_relations(one, epsilon, spends_delta)
                if len(gain.logs):
                    axis.plot(
                        gain.factor, place, MARKERS[epsilon], color=color, markersize=5.5, markeredgecolor="white",
                        markeredgewidth=0.5,
                    )  # fmt: skip
        axis.set_xscale("log")
        axis.axvline(1.0, color="#444444", linewidth=1.0, zorder=0)
        axis.grid(axis="both", color="#e6e6e6", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set_title(title, fontsize=11)
        axis.set_xlabel("error of the covariance before / now")
        for spine in ("top", "right", "left"):
            axis.spines[spine].set_visible(False)
        axis.tick_params(axis="y", length=0)
        edges = [i for i in range(1, len(ordered)) if _kind(ordered[i]) != _kind(ordered[i - 1])]
        for edge in edges:
            axis.axhline(edge - 0.5, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
    least, most = axes[0].get_xlim()
    ticks = [tick for tick in TICKS if least <= tick <= most]
    for axis in axes:
        axis.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
        axis.minorticks_off()
    axes[0].set_yticks(range(len(ordered)), [one.entry.name for one in ordered], fontsize=8.5)
    axes[0].set_ylim(-0.8, len(ordered) - 0.2)
    for first in [0, *[i for i in range(1, len(ordered)) if _kind(ordered[i]) != _kind(ordered[i - 1])]]:
        last = max(i for i in range(len(ordered)) if _kind(ordered[i]) == _kind(ordered[first]))
        axes[1].annotate(
            _kind(ordered[first]), (1.01, (first + last) / 2), xycoords=("axes fraction", "data"), rotation=270,
            va="center", fontsize=9, color="#444444",
        )  # fmt: skip
    handles = [
        Line2D([], [], color=color, marker=MARKERS[epsilon], linestyle="", label=f"ε = {epsilon:g}")
        for epsilon, color in COLORS.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _kind(one: Compared) -> str:
    if one.entry.dominant:
        return "dominant rows"
    return "real tables" if one.entry.real else "synthetic"


def _over_relations(one: Compared, epsilon: float, spends_delta: bool) -> Gain:
    gains = one.gains["covariance"].items()
    return geometric_mean(gain for cell, gain in gains if cell.epsilon == epsilon and (cell.delta > 0) == spends_delta)
