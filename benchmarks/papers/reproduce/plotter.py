"""Draws any figure from its results."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from benchmarks.papers.reproduce.declaration import Figure, Method, Panel, Point
from benchmarks.papers.reproduce.experiments.map_of_europe import people, private_components
from benchmarks.papers.reproduce.experiments.means import MEAN
from benchmarks.papers.reproduce.figures import named
from benchmarks.papers.reproduce.results import Results

WIDTH, HEIGHT = 4.2, 3.3
WIDTH_OF_A_SIGN = 0.055
"""Of the legend, in inches; a line and its space take half an inch more."""
COLORS_KEPT = 96
BEYOND_BEST = 30.0
"""How far up a picture of the best goes, as a factor: the worst may be a million times as much."""
MAX_BANDS = 8
"""Curves above which none has a band: bands would hide one another, and the picture says so."""


def draw(figure: Figure, results: Results, path: Path) -> None:
    """Write the picture."""
    panels = results.panels
    columns = min(figure.columns, len(panels))
    rows = -(-len(panels) // columns)
    picture, grid = plt.subplots(
        rows, columns, figsize=(WIDTH * columns, HEIGHT * rows + 1.0), squeeze=False, layout="constrained"
    )
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    for axes, panel in zip(grid.ravel(), panels, strict=False):
        if figure.drawing == "balls":
            balls(axes, panel, results)
        else:
            curves(axes, panel, results)
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel(panel.axis or figure.axis)
        axes.set_ylabel(figure.error)
    known = {}
    for axes in grid.ravel():
        known |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    beside = int(WIDTH * columns / (WIDTH_OF_A_SIGN * max(map(len, known)) + 0.5))
    picture.legend(
        known.values(), known.keys(), loc="outside lower center", ncols=max(1, min(beside, 3 * columns, 8)), fontsize=7
    )
    words = f"{figure.title}: {figure.summary}, {results.trials_in_words}{shades(results)}"
    picture.suptitle(words, fontsize=11)
    save(picture, path)


def has_bands(results: Results) -> bool:
    """True if curves have a band over the middle half of the trials."""
    few = len(list(labelled(results))) <= MAX_BANDS
    return few and results.figure.drawing == "curves" and results.figure.summary != "standard deviation"


def shades(results: Results) -> str:
    """What shaded areas show, or why there are none."""
    figure = results.figure
    if figure.drawing == "best":
        return "\nlines: at the best setting; shaded: up to the worst"
    if has_bands(results):
        return "\nshaded: the middle half of the trials"
    crowded = figure.drawing == "curves" and figure.summary != "standard deviation"
    return f"\nmore than {MAX_BANDS} curves: the spread of the trials is not shaded" if crowded else ""


def save(picture: plt.Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = io.BytesIO()
    picture.savefig(buffer, format="png", dpi=85)
    plt.close(picture)
    buffer.seek(0)
    Image.open(buffer).convert("RGB").quantize(COLORS_KEPT).save(path, optimize=True)


def labelled(results: Results) -> Iterator[Method]:
    """Methods of the figure, then those borrowed that it has not itself, with their styles."""
    figure = results.figure
    yield from figure.methods
    own = {method.label for method in figure.methods}
    for name, labels in figure.borrowed.items():
        yield from (method for method in named(name).methods if method.label in set(labels) - own)


def curves(axes: plt.Axes, panel: Panel, results: Results) -> None:
    """Errors over the grid, a band over the middle half of the trials."""
    figure = results.figure
    methods = list(labelled(results))
    bands = has_bands(results)
    best: list[float] = []
    for method in methods:
        metrics = [metric for metric in results.metrics(method.label) if metric in (figure.drawn or [metric])]
        if figure.drawing == "best":
            best += best_and_worst(axes, panel, method, results)
            continue
        for place, metric in enumerate(metrics):
            xs, centers, low, high = results.curve(panel.title, method.label, metric)
            if not np.isfinite(centers).any():
                continue
            strength = 0.25 + 0.75 * (place + 1) / len(metrics)
            style = {"lw": 1.3, "marker": "o", "ms": 2.5} | dict(method.style)
            label = method.label if place == len(metrics) - 1 else None
            (line,) = axes.plot(xs, centers, alpha=strength, label=label, **style)
            if bands and len(metrics) == 1 and results.trials[1] > 1:
                axes.fill_between(xs, low, high, color=line.get_color(), alpha=0.15, lw=0)
    if figure.reference is not None:
        axes.axhline(figure.reference, color="silver", lw=0.8, zorder=0)
    if figure.log_axis:
        axes.set_xscale("log")
    if figure.log_error:
        axes.set_yscale("log")
    if best:
        axes.set_ylim(min(best) / 2.0, BEYOND_BEST * max(best))
    axes.grid(alpha=0.25)


def best_and_worst(axes: plt.Axes, panel: Panel, method: Method, results: Results) -> list[float]:
    """The least of what was measured of a method, and lightly all up to the most; returns the least."""
    curves = [results.curve(panel.title, method.label, metric) for metric in results.metrics(method.label, panel.title)]
    if not curves:
        return []
    style = {"lw": 1.3, "marker": "o", "ms": 2.5} | dict(method.style)
    xs, (least, most) = curves[0][0], (how([curve[1] for curve in curves], axis=0) for how in (np.min, np.max))
    (line,) = axes.plot(xs, least, label=method.label, **style)
    axes.fill_between(xs, least, most, color=line.get_color(), alpha=0.12, lw=0)
    return list(map(float, least))


def balls(axes: plt.Axes, panel: Panel, results: Results) -> None:
    x = panel.points[0]
    for method, line in zip(results.figure.methods, ("-", ":"), strict=True):
        steps = [metric.split()[1] for metric in results.metrics(method.label) if metric.startswith("radius")]
        for place, step in enumerate(steps):
            radius, first, second = (
                results.values(panel.title, method.label, f"{name} {step}", x)[0]
                for name in ("radius", "first", "second")
            )
            color = f"C{place}"
            label = f"{method.label}: ball {step}"
            axes.add_patch(plt.Circle((first, second), radius, fill=False, ec=color, ls=line, label=label))
            axes.plot(first, second, "+", color=color)
    axes.plot(*MEAN, "k*", label="mean")
    axes.set_aspect("equal")
    axes.autoscale_view()


def draw_map(path: Path) -> None:
    """Figure 8 of CoinPress itself, one run a panel: a picture of people's data, which is not to be published here."""
    figure = named("coinpress-8")
    table, exact, colors = people()
    shades = [_matplotlib_color(color) for color in colors]
    released, steps, default = figure.methods
    panels = [("not private", exact)]
    for title, method, rho, t in (
        ("released, t = 1", released, 1.0, 1.0),
        ("released, t = 5", released, 1.0, 5.0),
        ("t = 5", steps, 1.0, 5.0),
        ("dpmoments", default, 1.0, 5.0),
        ("dpmoments, ρ = 0.1", default, 0.1, 5.0),
    ):
        panels.append((title, private_components(Point({"rho": rho}, t, 0), method)))
    picture, grid = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
    for axes, (title, vectors) in zip(grid.ravel(), panels, strict=True):
        axes.scatter(table @ vectors[:, 1], table @ -vectors[:, 0], c=shades, s=5)
        axes.set(title=title, xticks=[], yticks=[])
    picture.suptitle("Genes mirror geography in Europe: first two components")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=100)
    plt.close(picture)


def _matplotlib_color(name: str) -> str:
    """X11 shades are numbered (green4) and Matplotlib's are not."""
    plain = name.rstrip("0123456789")
    return {"violetred": "mediumvioletred"}.get(plain, plain)
