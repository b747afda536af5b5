"""The results of a figure, by panel, method and metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import trim_mean

from benchmarks.papers.reproduce.declaration import Figure, Method, Panel

TRIMMED = 0.1
"""From either end, as CoinPress does."""
TWO_ERRORS = 0.97725
"""The normal law below two standard errors."""
LEAST = "least"
"""Stands for the least of all that was measured of a method at a point."""
FACTS = ("machine", "cpu", "python", "numpy", "dpmoments", "commit", "date")
"""What pages say of the runs that results are of."""
Key = tuple[str, str, str]
"""Panel, method, metric."""


def unmeasured(what: str) -> Any:
    raise ValueError(f"nothing measured of {what}: run its figure first")


def center(summary: str, values: np.ndarray) -> float:
    if summary == "median":
        return float(np.median(values))
    if summary == "trimmed mean":
        return float(trim_mean(values, TRIMMED))
    if summary == "standard deviation":
        return float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return float(values.mean())


def relative_error(summary: str, values: np.ndarray) -> float:
    """Standard error of that, as a share of it; infinite for one trial, where nothing is known of it.

    Few trials tell little of their own spread: it is widened as Student's t is wider than the normal law, at two standard errors.
    """
    n, middle = len(values), center(summary, values)
    if n < 2 or not middle > 0.0:
        return math.inf
    wider = float(stdtrit(n - 1, TWO_ERRORS)) / 2.0
    if summary == "standard deviation":
        return wider / math.sqrt(2.0 * (n - 1))
    if summary == "mean":
        return wider * float(values.std(ddof=1)) / math.sqrt(n) / middle
    low, high = np.percentile(values, [25, 75])
    return wider * 1.25 * float(high - low) / 1.349 / math.sqrt(n) / middle


class Results:
    """Values by panel, method, metric and point."""

    def __init__(
        self, figure: Figure, values: Mapping[Key, Mapping[float, np.ndarray]], facts: Mapping[str, Any]
    ) -> None:
        self.figure, self.facts = figure, facts
        self.points = values

    @classmethod
    def of(cls, figure: Figure, frames: Iterable[pd.DataFrame]) -> Results:
        """From a figure's results as they are kept, and those of figures that it borrows curves from."""
        values: dict[Key, dict[float, np.ndarray]] = {}
        facts: dict[str, set[str]] = {}
        for frame in (frame for frame in frames if len(frame)):
            for key, rows in frame.sort_values("trial").groupby(["panel", "method", "metric"]):
                values[key] = {x: at["value"].to_numpy() for x, at in rows.groupby("x")}
            for name in FACTS:
                facts.setdefault(name, set()).update(frame[name])
        return cls(figure, values, {name: sorted(known) for name, known in facts.items()})

    @property
    def panels(self) -> list[Panel]:
        there = {panel for panel, _, _ in self.points}
        return [panel for panel in self.figure.panels if panel.title in there]

    @property
    def trials(self) -> tuple[int, int]:
        """Fewest and most of a point, of methods that draw anything: the others need one trial."""
        drawn_once = {method.label for method in self.figure.methods if method.most_trials == 1}
        known = [(label, points) for (_, label, _), points in self.points.items()]
        counts = [len(values) for label, points in known if label not in drawn_once for values in points.values()]
        return (min(counts), max(counts)) if counts else (0, 0)

    @property
    def trials_in_words(self) -> str:
        fewest, most = self.trials
        return f"{fewest} trials a point" if fewest == most else f"{fewest} to {most} trials a point"

    @property
    def is_full(self) -> bool:
        """Whether every point of the grid is there with all its trials."""
        return all(
            len(self.values(panel.title, method.label, metric, x)) >= self.figure.trials_of(method, panel, x)
            for panel in self.figure.panels
            for method in self.figure.methods
            for metric in (self.metrics(method.label, panel.title) or ["none"])
            for x in panel.points
        )

    def metrics(self, method: str, panel: str | None = None) -> list[str]:
        """What was measured of a method, in a panel or in any."""
        return list(
            dict.fromkeys(metric for title, label, metric in self.points if label == method and panel in (None, title))
        )

    def values(self, panel: str, method: str, metric: str, x: float) -> np.ndarray:
        """Of all trials; none where there are none. Of the metric called least, those of the one that is least in the mean."""
        if metric == LEAST:
            each = (self.values(panel, method, known, x) for known in self.metrics(method))
            return min((values for values in each if len(values)), key=np.mean, default=np.array([]))
        empty: np.ndarray = np.array([])
        return self.points.get((panel, method, metric), {}).get(float(x), empty)

    def center(self, panel: str, method: str, metric: str, x: float) -> float:
        return center(self.figure.summary, self.values(panel, method, metric, x))

    def curve(self, panel: str, method: str, metric: str) -> np.ndarray:
        """Points, summaries of their trials, and quartiles of these, shape (4, points)."""
        points = self.points.get((panel, method, metric), {})
        return np.array([
            (x, center(self.figure.summary, values), *np.percentile(values, [25, 75])) for x, values in points.items()
        ]).reshape(-1, 4).T  # fmt: skip

    def ratios(
        self, method: str, other: str, *, metric: str = "error", panels: Sequence[str] | None = None
    ) -> Iterator[tuple[str, float, float, float]]:
        """Of every cell that both have: panel, x, error of ``method`` over that of ``other``, its relative standard error."""
        for panel in self.figure.panels:
            if panels is not None and panel.title not in panels:
                continue
            for x in panel.points:
                both = self.values(panel.title, method, metric, x), self.values(panel.title, other, metric, x)
                if len(both[0]) and len(both[1]):
                    first, then = (center(self.figure.summary, values) for values in both)
                    if math.isfinite(first) and then > 0.0:
                        spread = math.hypot(*(relative_error(self.figure.summary, values) for values in both))
                        yield panel.title, x, first / then, spread

    def over(self, method: str, other: str, *panels: str) -> dict[tuple[str, float], float]:
        """The ratio of errors in every cell that both have, by panel and x; without any no claim may pass for one that holds."""
        cells = self.ratios(method, other, panels=panels or None)
        return {(panel, x): ratio for panel, x, ratio, _ in cells} or unmeasured(f"{method} against {other}")

    def by_panel(self, method: str, other: str, panels: Iterable[str] | None = None) -> dict[str, list[float]]:
        """The same ratios in the order of x, by panel."""
        titles = panels or [panel.title for panel in self.panels]
        return {title: list(self.over(method, other, title).values()) for title in titles}

    def at_the_end(self, method: str, other: str) -> dict[str, float]:
        """The ratio at the largest x of every panel."""
        return {panel: ratio for (panel, _), ratio in self.over(method, other).items()}

    def errors(self, panel: str, methods: Iterable[Method], x: float) -> dict[str, float]:
        """Those of the methods that were measured there, by label."""
        labels = [method.label for method in methods if len(self.values(panel, method.label, "error", x))]
        return {label: self.center(panel, label, "error", x) for label in labels}

    def measured(self, panel: str, method: str) -> list[float]:
        """The points at which its error was measured."""
        return list(self.points.get((panel, method, "error"), {}))
