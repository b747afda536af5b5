"""Goals of a schema, and how precise the answers of a release are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.analysis.answers import Answer, Column, format_level, in_floating_point
from dpmoments.analysis.correlations import correlations
from dpmoments.analysis.description import described
from dpmoments.analysis.group_means import means_by
from dpmoments.analysis.regression import ols
from dpmoments.analysis.released import Moments
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray
from dpmoments.schema.goals import Goal


@dataclass(frozen=True, eq=False)
class GoalResult:
    """Half-widths of the intervals of a goal: of each mean, group, pair or coefficient."""

    goal: Goal
    cells: tuple[str, ...]
    # (k,), in the units of the margin; infinite if the release states no number, NaN if unknown
    half_widths: FloatArray

    @property
    def reached(self) -> float:
        """Largest half-width: a goal is for all that it names."""
        return float(self.half_widths.max())

    @property
    def worst(self) -> str:
        """Name of the cell with the largest one; empty if there is one cell."""
        return "" if len(self.cells) < 2 else self.cells[int(np.argmax(self.half_widths))]

    @property
    def met(self) -> bool | None:
        """True if it is within the margin; None if the noise is unknown."""
        return None if math.isnan(self.reached) else self.reached <= self.goal.margin

    def text(self, half_width: float) -> str:
        """Return a half-width in three digits, rounded so that it is on its side of the margin."""
        if not self.cells:
            return "no such number"
        if not math.isfinite(half_width):
            return "noise" if half_width > 0.0 else "unknown"
        size = 100.0 * half_width if self.goal.relative else half_width
        decimals = 2 - math.floor(math.log10(size)) if size > 0.0 else 0
        nearest = math.floor if half_width <= self.goal.margin else math.ceil
        shown = nearest(size * 10.0**decimals) / 10.0**decimals
        return f"± {shown:,.{max(decimals, 0)}f}{' %' if self.goal.relative else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class Goals(Answer):
    """Precision of a release, one row per goal.

    A goal is met if half of the interval that the analysis states is within its margin, for all that it names.

    Attributes
    ----------
    results : tuple of GoalResult
    """

    results: tuple[GoalResult, ...]
    size: ClassVar[str] = "released"

    facts: ClassVar[tuple[str, ...]] = ("goals: *", "cells")

    @property
    def met(self) -> bool:
        """True if all goals are met."""
        return all(result.met for result in self.results)

    @property
    def cells(self) -> list[dict[str, object]]:
        """Everything that the goals are about, with its half-width."""
        return [
            {"goal": result.goal.question, "cell": cell, "half_width": half, "met": half <= result.goal.margin}
            for result in self.results
            for cell, half in zip(result.cells, result.half_widths.tolist(), strict=True)
        ]

    def _columns(self) -> list[Column]:
        goals = [result.goal for result in self.results]
        reached = [result.reached for result in self.results]
        texts = [result.text(half) for result, half in zip(self.results, reached, strict=True)]
        met = [result.met for result in self.results]
        worst = [result.worst for result in self.results]
        words = {True: "met", False: "missed", None: "unknown"}
        return [
            Column("goal", [goal.question for goal in goals], "goal", label=True),
            Column("asked", [goal.margin for goal in goals], "asked", [goal.asked for goal in goals]),
            Column("level", [goal.level for goal in goals]),
            Column("relative", [goal.relative for goal in goals]),
            Column(self.size, reached, self.size, texts),
            Column("met", met, "result", [words[each] for each in met]),
            Column("worst", worst, "worst" if any(worst) else None, worst),
        ]

    @property
    def heading(self) -> tuple[str, ...]:
        missed = sum(result.met is False for result in self.results)
        said = (
            f"{missed:,} of {len(self.results):,} goals missed" if missed else "all goals met" if self.met else "goals"
        )
        [*levels] = dict.fromkeys(format_level(result.goal.level) for result in self.results)
        stated = f"{levels[0]} interval" if len(levels) == 1 else f"interval ({levels[0]} unless asked otherwise)"
        return (f"{said}; ±: half of the {stated}, by noise and sampling",)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The cells of relative goals that pass their limit."""
        return tuple(
            f"{result.goal.question}, over {100.0 * result.goal.margin:.10g} %: "
            + ", ".join(
                f"{cell} {result.text(half)}"
                for cell, half in zip(result.cells, result.half_widths, strict=True)
                if not half <= result.goal.margin
            )
            for result in self.results
            if result.goal.relative and result.met is False and len(result.cells) > 1
        )


@in_floating_point
def goal_results(release: Moments, goals: Sequence[Goal]) -> tuple[GoalResult, ...]:
    """Return how precise the release's answers are; no number where it states none."""
    return tuple(_result(release, goal) for goal in goals)


def _result(release: Moments, goal: Goal) -> GoalResult:
    ends = {"correlation": _correlations, "coefficient": _coefficients, "difference": _differences}
    names, lower, upper, values = ends.get(goal.kind, _means)(release, goal)
    half = (upper - lower) / 2.0
    # Where the noise is unknown so are the ends; where it hides a number, the ends are known or infinite.
    half = np.where(np.isnan(values) & ~np.isnan(half), np.inf, half)
    if goal.relative:
        size = np.nan_to_num(np.abs(values))
        half = np.divide(half, size, out=np.full(len(half), np.inf), where=size > 0.0)
    return GoalResult(goal, tuple(names), half if len(half) else np.array([np.inf]))


_Ends = tuple[Sequence[str], FloatArray, FloatArray, FloatArray]
"""Names, lower and upper ends, and values, NaN where the release states none."""


def _means(release: Moments, goal: Goal) -> _Ends:
    [names] = goal.features(release.schema.columns)
    if goal.by is None:
        found = described(release, tested=False)[list(names)]
        lower, upper = found.conf_int(goal.level).T
        assert found.mean is not None, "intervals need the mean"
        return names, lower, upper, np.where(found.mean_is_noise, np.nan, found.mean)
    groups = means_by(release, goal.by, names, goal.level, tested=False)
    several = len(names) > 1
    cells = [f"{name}, {group}" if several else group for name in names for group in groups.groups]
    return cells, groups.lower.ravel(), groups.upper.ravel(), groups.mean.ravel()


def _differences(release: Moments, goal: Goal) -> _Ends:
    [names] = goal.features(release.schema.columns)
    assert goal.by is not None, "the goal was checked"
    found = means_by(release, goal.by, names, goal.level, tested=False).differences
    several = len(names) > 1
    pairs = [f"{one} − {other}" for one, other in found.pairs]
    cells = [f"{name}, {pair}" if several else pair for name in names for pair in pairs]
    return cells, found.lower.ravel(), found.upper.ravel(), found.difference.ravel()


def _correlations(release: Moments, goal: Goal) -> _Ends:
    first, *others = goal.features(release.schema.columns)
    second = others[0] if others else first
    names = list(dict.fromkeys([*first, *second]))
    found = correlations(release, names, level=goal.level)
    names = list(found.feature_names)
    pairs = [
        (i, j)
        for i, one in enumerate(names)
        for j, other in enumerate(names[:i])
        if found.comparable[i, j] and ((one in first and other in second) or (other in first and one in second))
    ]
    i, j = np.array(pairs, dtype=int).reshape(-1, 2).T
    cells = [f"{names[column]} ~ {names[row]}" for row, column in pairs]
    return cells, found.lower[i, j], found.upper[i, j], found.correlation[i, j]


def _coefficients(release: Moments, goal: Goal) -> _Ends:
    formula, name = goal.names[0], goal.names[1].strip("`")
    try:
        fit = ols(release, formula, level=goal.level)
    except InputValueError:  # noise hides the rows of all levels that are asked for
        return (), np.zeros(0), np.zeros(0), np.zeros(0)
    asked = {name, *(each for column in release.schema.columns if column.name == name for each in column.feature_names)}
    chosen = [(each, said) for each, said in zip(fit.names, fit.estimates, strict=True) if each in asked]
    lower, upper = (np.array([getattr(said, end) for _, said in chosen]) for end in ("lower", "upper"))
    return (
        [each for each, _ in chosen],
        lower,
        upper,
        np.array([said.value if said.estimable else np.nan for _, said in chosen]),
    )
