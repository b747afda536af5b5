"""What a figure is: its data, methods, grid, trials and metric, what the paper says of it, and how that is judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from benchmarks.papers.reproduce.results import Results

__all__ = ["Claim", "Figure", "Instead", "Method", "Outcome", "Panel", "Point", "Verdict", "digest"]

Settings = Mapping[str, Any]
"""Names, numbers and strings alone: what is hashed."""


def digest(*content: Any) -> str:
    """Sixteen hexadecimal digits of what a declaration says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Method:
    """A curve, or several where the experiment measures more than one thing of it.

    Attributes
    ----------
    label : str
    settings : mapping
        What the experiment needs to know of it.
    most_trials : int or None
        Fewer trials than the figure has, for a method that takes long.
    style : mapping
        For the plotter; changes no result.
    """

    label: str
    settings: Settings = field(default_factory=dict)
    most_trials: int | None = None
    style: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes
    ----------
    title : str
    settings : mapping
        The data, and what else is held fixed.
    points : sequence of float
        The grid.
    quick : sequence of float
        Those of them that a quick run has.
    published : str or None
        File of the curves that the authors published, where ``DPMOMENTS_DATA`` has it.
    axis : str or None
        What x is, where it is not what the figure says.
    slow_trials : int or None
        Of the methods that have fewer trials than the figure, even fewer, where a trial takes long here.
    """

    title: str
    settings: Settings
    points: Sequence[float]
    quick: Sequence[float]
    published: str | None = None
    axis: str | None = None
    slow_trials: int | None = None

    def __post_init__(self) -> None:
        if not set(self.quick) <= set(self.points):
            raise ValueError(f"{self.title}: a quick run has points that the grid has not")


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    CHANGED = "reproduced with changes"
    FAILS = "does not hold"


@dataclass(frozen=True)
class Outcome:
    """A verdict and the numbers behind it."""

    verdict: Verdict
    found: str


@dataclass(frozen=True)
class Claim:
    """What is said, in our words, and its judgement by the results; None where what it compares with is not at hand."""

    says: str
    judge: Callable[[Results], Outcome | None]


@dataclass(frozen=True)
class Instead:
    """What a user of the paper's method takes now; the factor is the ratio of errors in every cell."""

    of: str
    use: str
    words: str
    metric: str = "error"
    panels: Sequence[str] | None = None


@dataclass(frozen=True)
class Figure:
    """One figure of a paper, or one beside them, which has no number.

    Attributes
    ----------
    name, paper, number, title : str
    experiment : str
        Module of ``experiments`` whose ``measure`` runs one trial of one point.
    axis, error : str
        What the axes show.
    panels, methods : sequence
    trials, quick_trials : int
    summary : {"mean", "trimmed mean", "median", "standard deviation"}
        Of the trials of a point.
    claims, instead, notes : sequence
        What the page says.
    borrowed : mapping
        Curves of another figure: its name, and labels of its methods. Those of panels of the same titles are drawn as well.
    log_axis, log_error : bool
    columns : int
        Panels in a row.
    drawn : sequence of str
        Metrics that the picture shows; all of them where none is named.
    drawing : {"curves", "best", "balls"}
        "best" draws the least of what was measured of a method, and shades up to the most.
    reference : float or None
        Where a horizontal line is drawn.
    block : int
        Trials of a task after the first.
    """

    name: str
    paper: str
    number: str
    title: str
    experiment: str
    axis: str
    error: str
    panels: Sequence[Panel]
    methods: Sequence[Method]
    trials: int
    quick_trials: int = 3
    summary: str = "mean"
    claims: Sequence[Claim] = ()
    instead: Sequence[Instead] = ()
    notes: Sequence[str] = ()
    borrowed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    log_axis: bool = True
    log_error: bool = True
    columns: int = 3
    drawn: Sequence[str] = ()
    drawing: str = "curves"
    reference: float | None = None
    block: int = 10

    def trials_of(self, method: Method, panel: Panel) -> int:
        """How many a full run has."""
        if method.most_trials is None:
            return self.trials
        return min(self.trials, method.most_trials, panel.slow_trials or self.trials)

    def blocks(self) -> list[tuple[int, int]]:
        """Trials of one task each: those of a quick run, then the rest."""
        starts = [0, *range(self.quick_trials, self.trials, self.block)]
        return list(zip(starts, [*starts[1:], self.trials], strict=True))


@dataclass(frozen=True)
class Point:
    """One trial at one place of a panel, and its randomness: seeds are derived from names, never from an order of work."""

    settings: Settings
    x: float
    trial: int

    def seed(self, *names: Any, of: Sequence[str] | None = None) -> int:
        """A seed for what is named; with ``of`` the same for all panels that agree in these settings."""
        known = self.settings if of is None else {name: self.settings.get(name) for name in of}
        return int(digest(list(names), dict(known), float(self.x), self.trial)[:15], 16)

    def rng(self, *names: Any, of: Sequence[str] | None = None) -> np.random.Generator:
        """A generator of its own for what is named."""
        return np.random.default_rng(self.seed(*names, of=of))
