"""Where a mechanism wins, as a map over rows and ε, and in words: by the grid that mechanism_grid.py keeps."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.patches import Patch

from benchmarks.practice.choose_a_mechanism import LOOKS
from benchmarks.practice.mechanism_grid import EPSILONS, KINDS, ROWS, SETTINGS, Panel

NOT_RIVALS = ("auto", "inverse-gaussian")
"""The first is one of the others, and the second is told what the others are not."""
SETTING_OF: Mapping[str, str] = {
    "isotropic": "few-columns",
    "log-scale-histogram": "one-column",
    "private-preconditioning": "second-moment-alone",
}
"""Of mechanisms of the covariance that the usual setting does not serve, or in which they win nowhere."""
ALIKE = 1.05
EDGES = (0.25, 0.5, 2.0**-0.5, 1.0 / ALIKE, ALIKE, 2.0**0.5, 2.0, 4.0)
COLORS = ("#053061", "#2166ac", "#67a9cf", "#c6dfee", "#f7f7f7", "#fbd5b0", "#f4a460", "#d1731f", "#7f3b08")
"""Blue where the mechanism wins, brown where it loses; colors that no common color blindness confuses."""
NOISE = "#b0b0b0"
LETTERS = 11
WIDTH, HEIGHT = 3.3, 2.3
"""Of a panel, in inches: two stand side by side on a telephone."""


@dataclass(frozen=True)
class Standing:
    """How one mechanism stands in one panel.

    Attributes
    ----------
    ratio : ndarray of shape (len(EPSILONS), len(ROWS))
        Its error over the least of the others; NaN where it cannot run, infinite nowhere.
    noise : ndarray of bool, same shape
        Where even the least error says nothing: its own included, unless it is no rival of the others.
    """

    ratio: np.ndarray
    noise: np.ndarray

    @property
    def seen(self) -> np.ndarray:
        return self.ratio[~self.noise & ~np.isnan(self.ratio)]


def setting_of(about: str, name: str) -> str:
    """The setting in which a mechanism is shown."""
    if about == "mean":
        return "bounded-means" if name == "bounded-sums" else "means"
    return SETTING_OF.get(name, "columns")


def rivals(panel: Panel, name: str) -> list[str]:
    return [other for other in panel.errors if other != name and other not in NOT_RIVALS]


def standing(panel: Panel, name: str) -> Standing:
    own = panel.errors[name]
    others = np.fmin.reduce([panel.errors[other] for other in rivals(panel, name)])
    least = others if name in NOT_RIVALS else np.fmin(own, others)
    return Standing(own / others, ~(least < panel.useless))


def kinds_of(grid: Mapping[str, Panel], about: str, name: str) -> Iterator[tuple[str, dict[float, Panel]]]:
    """The kinds of budget that a mechanism takes in its setting, with their panels."""
    setting = setting_of(about, name)
    all_kinds = {
        kind: {value: grid[f"{setting} {value:g} {kind}"] for value in SETTINGS[setting].panels}
        for kind in SETTINGS[setting].kinds
    }
    stated = {kind for kind, panels in all_kinds.items() if any(name in panel.errors for panel in panels.values())}
    yield from ((kind, panels) for kind, panels in all_kinds.items() if kind in stated or not stated)


def words_of_map(grid: Mapping[str, Panel], about: str, name: str) -> list[str]:
    """A sentence or two for every kind of budget, and one for every panel in which it wins."""
    lines = []
    for kind, panels in kinds_of(grid, about, name):
        titles = SETTINGS[setting_of(about, name)].panels
        found = {titles[value]: standing(panel, name) for value, panel in panels.items() if name in panel.errors}
        lines.append(f"- **{_capital(KINDS[kind])}**: {in_words(found)}")
    return lines


def in_words(found: Mapping[str, Standing]) -> str:
    """Where it wins, by how much, and how far it falls behind elsewhere, from its standings by the titles of the panels."""
    if not found:
        return "no error is forecast."
    ratios = np.concatenate([one.seen for one in found.values()])
    if not len(ratios):
        return "in every cell in which it runs even the least error says nothing."
    won = ratios < 1.0
    said = f"least error in {_share(won)} of {len(ratios)} cells"
    if won.any():
        gain = f"the next up to {_times(1.0 / ratios.min())} it"
        said += f" ({gain})"
    said += f", within 5 % of it in {_share(ratios <= ALIKE)}"
    if (ratios > 1.0).any():
        typical = statistics.median(ratios[ratios > 1.0].tolist())
        said += f"; elsewhere typically {_times(typical)} it, at worst {_times(ratios.max())}"
    return f"{said}."


def words_of_choices(grid: Mapping[str, Panel]) -> list[str]:
    """What ``auto`` takes, and how far it is from the least error, for every kind of budget."""
    lines = []
    for kind, panels in kinds_of(grid, "covariance", "auto"):
        seen, taken = [], Counter[str]()
        for panel in panels.values():
            one = standing(panel, "auto")
            seen.append(one.seen)
            taken.update(name for name in np.array(panel.taken, dtype=object)[~one.noise] if name is not None)
        ratios = np.concatenate(seen)
        shares = ", ".join(f"`{name}` in {100.0 * count / len(ratios):.0f} %" for name, count in taken.most_common())
        lines.append(
            f"- **{_capital(KINDS[kind])}**: of {len(ratios)} cells {shares}; within 5 % of the least error of all mechanisms in "
            f"{_share(ratios <= ALIKE)}, at worst {_times(ratios.max())} that."
        )
    return lines


def draw_map(grid: Mapping[str, Panel], about: str, name: str, path: Path) -> None:
    """A column of panels for every kind of budget: the ratio to the least error of the others."""
    columns = dict(kinds_of(grid, about, name))
    colors = ListedColormap(COLORS)
    norm = BoundaryNorm([0.0, *EDGES, np.inf], len(COLORS))
    figure, panels = _panels(columns, SETTINGS[setting_of(about, name)].panels)
    for panel, found in panels:
        if name not in found.errors:
            _mark(panel, np.ones((len(EPSILONS), len(ROWS)), dtype=bool))
            continue
        one = standing(found, name)
        shown = np.ma.masked_where(one.noise | np.isnan(one.ratio), one.ratio)
        panel.pcolormesh(shown, cmap=colors, norm=norm, edgecolors="white", linewidth=0.4)
        _hatch(panel, one.noise & ~np.isnan(one.ratio))
        _mark(panel, np.isnan(one.ratio))
    labels = ["< ¼", "¼ – ½", "½ – 0.71", "0.71 – 0.95", "alike", "1.05 – 1.4", "1.4 – 2", "2 – 4", "> 4"]
    handles = [
        Patch(facecolor=color, edgecolor="0.6", label=label) for color, label in zip(COLORS, labels, strict=True)
    ]
    _finish(figure, handles, f"error of {name} / least error of the others", path)


def draw_choices(grid: Mapping[str, Panel], path: Path) -> None:
    """What ``auto`` takes, a color a mechanism."""
    columns = dict(kinds_of(grid, "covariance", "auto"))
    figure, panels = _panels(columns, SETTINGS["columns"].panels)
    names = sorted({name for _, found in panels for line in found.taken for name in line if name is not None})
    colors = ListedColormap([LOOKS[name][0] for name in names])
    for panel, found in panels:
        taken = np.array([[np.nan if name is None else names.index(name) for name in line] for line in found.taken])
        noise = standing(found, "auto").noise
        shown = np.ma.masked_where(noise | np.isnan(taken), taken)
        panel.pcolormesh(shown, cmap=colors, vmin=-0.5, vmax=len(names) - 0.5, edgecolors="white", linewidth=0.4)
        _hatch(panel, noise)
        _mark(panel, np.isnan(taken))
    _finish(figure, [Patch(facecolor=LOOKS[name][0], label=name) for name in names], "auto takes", path)


def _panels(
    columns: Mapping[str, Mapping[float, Panel]], titles: Mapping[float, str]
) -> tuple[plt.Figure, list[tuple[plt.Axes, Panel]]]:
    """Axes for every panel, with their ticks and titles."""
    n_columns, n_lines = len(columns), len(titles)
    mpl.rcParams["font.size"] = LETTERS
    figure, axes = plt.subplots(
        n_lines,
        n_columns,
        figsize=(max(WIDTH * n_columns, 4.2), HEIGHT * n_lines + 1.5),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    found = []
    for column, (kind, panels) in enumerate(columns.items()):
        for line, (value, panel) in enumerate(panels.items()):
            axis = axes[line][column]
            axis.set_title(f"{titles[value]}, {KINDS[kind]}", fontsize=LETTERS)
            axis.set_xticks(
                [place + 0.5 for place in range(0, len(ROWS), 2)], [f"$10^{power}$" for power in range(2, 8)]
            )
            axis.set_yticks([place + 0.5 for place in range(len(EPSILONS))], [f"{epsilon:g}" for epsilon in EPSILONS])
            axis.set_xlim(0, len(ROWS))
            axis.set_ylim(0, len(EPSILONS))
            axis.tick_params(labelsize=LETTERS - 2)
            found.append((axis, panel))
    for line in range(n_lines):
        axes[line][0].set_ylabel("ε")
    for column in range(n_columns):
        axes[-1][column].set_xlabel("rows")
    return figure, found


def _hatch(panel: plt.Axes, where: np.ndarray) -> None:
    """Gray, hatched cells."""
    for line, column in zip(*np.nonzero(where), strict=True):
        panel.add_patch(
            plt.Rectangle((column, line), 1, 1, facecolor="#e4e4e4", edgecolor=NOISE, hatch="////", linewidth=0)
        )


def _mark(panel: plt.Axes, where: np.ndarray) -> None:
    """A small cross in blank cells."""
    lines, columns = np.nonzero(where)
    panel.plot(columns + 0.5, lines + 0.5, linestyle="none", marker="x", markersize=4, color="0.55")


_NARROW = 5.0
"""Width in inches that three columns of a legend need."""


def _finish(figure: plt.Figure, handles: Sequence[Patch], title: str, path: Path) -> None:
    more = [Patch(facecolor="#e4e4e4", edgecolor=NOISE, hatch="////", label="all noise")]
    cross = plt.Line2D(
        [], [], linestyle="none", marker="x", markersize=5, color="0.55", label="cannot run, or states no error"
    )
    figure.legend(
        handles=[*handles, *more, cross],
        loc="outside lower center",
        ncols=3 if figure.get_figwidth() > _NARROW else 2,
        frameon=False,
        fontsize=LETTERS - 1.5,
        title=title,
        title_fontsize=LETTERS - 0.5,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, facecolor="white", metadata={"Software": None})
    plt.close(figure)


def _share(cells: np.ndarray) -> str:
    if not cells.any():
        return "none"
    return "all" if cells.all() else f"{100.0 * cells.mean():.0f} %" if cells.mean() > 0.005 else "under 1 %"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 9.995 else f"{ratio:,.0f} times" if ratio < 1e6 else "over a million times"


def _capital(words: str) -> str:
    return words if words.startswith("δ") else words[0].upper() + words[1:]
