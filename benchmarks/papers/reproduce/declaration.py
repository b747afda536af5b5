"""What a figure is: its data, methods, grid, trials and metric, what the paper says of it, and how that is judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np

EXACT = " — under exact calibration"
"""Ends a claim that is judged with other constants than the paper's."""
Settings = Mapping[str, Any]
"""Names, numbers and strings alone: what is hashed."""


def digest(*content: Any) -> str:
    """Sixteen hexadecimal digits of what a declaration says."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Method:
    """A curve, or several where the experiment measures more than one thing of it."""

    label: str
    settings: Settings = field(default_factory=dict)  # what the experiment needs to know of it
    most_trials: int | None = None  # fewer trials than the figure has, for a method that takes long
    style: Settings = field(default_factory=dict)  # for the plotter; changes no result


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    settings: Settings  # the data, and what else is held fixed
    points: Sequence[float]  # the grid
    quick: Sequence[float]  # those of them that a quick run has
    published: str | None = None  # file of the curves that the authors published, where ``DPMOMENTS_DATA`` has it
    axis: str | None = None  # what x is, where it is not what the figure says
    # Of the methods that have fewer trials than the figure, even fewer, where a trial takes long here.
    slow_trials: int | None = None
    fewer: Mapping[float, int] = field(default_factory=dict)  # trials at points of many rows, by point

    def __post_init__(self) -> None:
        if not set(self.quick) <= set(self.points):
            raise ValueError(f"{self.title}: a quick run has points that the grid has not")


class Verdict(StrEnum):
    """Whether a claim of a paper was found again; the page has the one rule of all verdicts."""

    REPRODUCED = "reproduced"
    CHANGED = "reproduced with changes"
    INCOMPARABLE = "not comparable"
    FAILS = "does not hold"

    @property
    def answer(self) -> str:
        return {Verdict.REPRODUCED: "yes", Verdict.CHANGED: "in part"}.get(self, "no")


MAX_EXCEPTIONS = 0.5
"""Below this fraction of cells against it, a claim is still reproduced, with changes."""


@dataclass(frozen=True)
class Outcome:
    verdict: Verdict
    found: str

    @classmethod
    def graded(cls, reproduced: bool, changed: bool, found: str) -> Outcome:
        return cls(Verdict.REPRODUCED if reproduced else Verdict.CHANGED if changed else Verdict.FAILS, found)

    @classmethod
    def by_share(cls, against: int, cells: int, found: str) -> Outcome:
        """The verdict that follows from the number of cells that are against a claim."""
        return cls.graded(against == 0, against / cells < MAX_EXCEPTIONS, found)


@dataclass(frozen=True)
class Claim:
    """What is said, in our words, and its judgement by the results; None if what it is compared with is not at hand."""

    says: str
    rule: Callable[[Any], Outcome | None]  # of the figure's `Results`, which are read by declarations
    # Settings that the paper does not state, or that are lost in our copy: without them the claim cannot be refuted.
    unknown: str = ""
    # What would have to be true for the claim to hold, and how that was tried: no claim on a page is refuted without it.
    needs: str = ""
    ours: bool = False  # A question of ours and no claim of the paper: it has an answer, not a verdict

    def judge(self, results: Any) -> Outcome | None:
        """Apply the rule; a refutation says what the claim needs."""
        outcome = self.rule(results)
        if outcome is None or outcome.verdict is not Verdict.FAILS or self.ours:
            return outcome
        if unknown := self.unknown or results.figure.unknown:
            return Outcome(Verdict.INCOMPARABLE, f"{outcome.found}. {unknown}")
        return Outcome(Verdict.FAILS, f"{outcome.found}. {self.needs}" if self.needs else outcome.found)


question = partial(Claim, ours=True)


@dataclass(frozen=True)
class Instead:
    """What a user of the paper's method takes now; the factor is the ratio of errors in every cell."""

    of: str
    use: str
    words: str
    metric: str = "error"
    panels: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a paper, or one beside them, which has no number."""

    name: str
    number: str = ""
    title: str
    experiment: str  # module of ``experiments`` whose ``measure`` runs one trial of one point
    # What the axes show.
    axis: str
    error: str
    panels: Sequence[Panel]
    methods: Sequence[Method]
    trials: int
    quick_trials: int = 3
    summary: str = "mean"  # or "trimmed mean", "median", "standard deviation", of the trials of a point
    # What the page says.
    claims: Sequence[Claim] = ()
    instead: Sequence[Instead] = ()
    unknown: str = ""  # that of every claim which does not say its own
    # Curves of other figures: labels of methods by name. Those of panels of the same titles are drawn as well.
    borrowed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    log_axis: bool = True
    log_error: bool = True
    columns: int = 3  # panels in a row
    drawn: Sequence[str] = ()  # metrics that the picture shows; all of them where none is named
    # Or "balls", or "best", the least of what was measured of a method, shaded up to the most.
    drawing: str = "curves"
    reference: float | None = None  # where a horizontal line is drawn
    block: int = 10  # trials of a task after the first

    def trials_of(self, method: Method, panel: Panel, x: float) -> int:
        """Return the number of trials of a full run at a point."""
        trials = min(self.trials, panel.fewer.get(x, self.trials))
        if method.most_trials is None:
            return trials
        return min(trials, method.most_trials, panel.slow_trials or trials)

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
        return np.random.default_rng(self.seed(*names, of=of))
