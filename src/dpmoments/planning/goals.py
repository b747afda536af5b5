"""Goals of a forecast: met or missed, and the budget and rows that they take."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpmoments.analysis.answers import Column
from dpmoments.analysis.goals import GoalResult, Goals
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.schema.goals import Goal

_DIGITS = (*range(100, 200, 5), *range(200, 500, 10), *range(500, 1000, 20))
_SIZES = (*(float(f"{digits}e{power}") for power in range(-7, 0) for digits in _DIGITS), 100.0)
"""Budgets that are tried, at most 5 % apart, in the digits that are printed."""
_ROWS = tuple(digits * 10**power for power in range(10) for digits in _DIGITS)


def expected(plan: ReleasePlan, goals: Sequence[Goal]) -> tuple[GoalResult, ...] | None:
    """Return what a planned release would state; None if that is not known."""
    try:
        likely = plan.likely
    except (ValueError, OverflowError):  # no such release can be planned
        return None
    if not plan.mean or likely[0].release.noise is None:
        return None
    several = [noise.results(goals) for noise in likely]
    return tuple(map(_mean, zip(*several, strict=True)))


def _mean(results: Sequence[GoalResult]) -> GoalResult:
    """Return the mean of several results; the worst if their cells are not the same."""
    worst = max(results, key=lambda result: result.reached)
    if any(result.cells != worst.cells for result in results):
        return worst
    return replace(worst, half_widths=np.mean([result.half_widths for result in results], axis=0))


def _met(plan: ReleasePlan, goals: Sequence[Goal]) -> bool:
    # one goal after the other: the first that is missed decides
    return all((results := expected(plan, [goal])) is not None and bool(results[0].met) for goal in goals)


def smallest(sizes: Sequence[float], start: float, met: Callable[[float], bool]) -> float | None:
    """Return the smallest size that is enough; None if none is."""
    low, high, index, factor = -1, len(sizes), bisect_left(sizes, start), 2.0
    while high - low > 1:
        index = min(max(index, low + 1), high - 1)
        low, high = (low, index) if met(sizes[index]) else (index, high)
        index = (low + high) // 2
        if low < 0 or high == len(sizes):
            index = bisect_left(sizes, sizes[high] / factor if low < 0 else sizes[low] * factor)
            factor **= 2
    return sizes[high] if high < len(sizes) else None


@dataclass(frozen=True, eq=False, repr=False)
class ForecastGoals(Goals):
    """Goals against what a planned release would state, and the budget that each takes.

    Attributes
    ----------
    setting : ReleasePlan
    budgets : tuple of float or None
        Smallest ε (at this δ), or ρ, that meets each goal; None if 100 is not enough.
    """

    setting: ReleasePlan
    budgets: tuple[float | None, ...]
    size: ClassVar[str] = "expected"

    facts: ClassVar[tuple[str, ...]] = (*Goals.facts, "budget_for_all", "rows_for_all", "dear: dear_question")

    @classmethod
    def of(cls, setting: ReleasePlan, goals: Sequence[Goal]) -> ForecastGoals | None:
        """Return the goals of a plan; None without goals, or if its noise is unknown."""
        results = expected(setting, goals) if goals else None
        if results is None:
            return None

        def needed(goal: Goal, start: float) -> float | None:
            return smallest(_SIZES, start, lambda size: _met(setting.with_budget(size), [goal]))

        budgets, start = list[float | None](), setting.size_of_budget
        for goal in goals:
            budgets.append(needed(goal, start))
            start = budgets[-1] or start
        return cls(results, setting, tuple(budgets))

    def at(self, size: float) -> ForecastGoals:
        """Return the goals at another budget that meets them."""
        setting = self.setting.with_budget(size)
        results = expected(setting, self.goals)
        assert results is not None, "the goals were met there"
        return replace(self, results=results, setting=setting)

    @property
    def goals(self) -> list[Goal]:
        """The goals."""
        return [result.goal for result in self.results]

    @cached_property
    def budget_for_all(self) -> float | None:
        """Smallest ε (at this δ), or ρ, that meets all goals; None if 100 is not enough."""
        # The largest of these, unless the noise jumps.
        known = [budget for budget in self.budgets if budget is not None]
        if len(known) < len(self.budgets):
            return None
        sizes = (size for size in _SIZES if size >= max(known))
        return next((size for size in sizes if _met(self.setting.with_budget(size), self.goals)), None)

    @cached_property
    def rows_for_all(self) -> int | None:
        """Smallest number of rows that meets all goals at this budget; None if 10¹² are not enough."""
        setting, goals = self.setting, self.goals
        found = smallest(_ROWS, setting.n_rows, lambda rows: _met(replace(setting, n_rows=int(rows)), goals))
        return None if found is None else int(found)

    @property
    def dear(self) -> Goal:
        """The goal that takes the largest budget."""
        sizes = [math.inf if budget is None else budget for budget in self.budgets]
        excess = [result.reached / result.goal.margin for result in self.results]
        return max(zip(sizes, excess, self.goals, strict=True), key=lambda each: each[:2])[2]

    @property
    def dear_question(self) -> str:
        """Question of the goal that takes the largest budget."""
        return self.dear.question

    def _columns(self) -> list[Column]:
        said = ["none" if budget is None else f"{budget:.3g}" for budget in self.budgets]
        name = {"ε": "epsilon", "ρ": "rho"}[self.setting.symbol]
        return [*super()._columns(), Column(name, [*self.budgets], f"{self.setting.symbol} needed", said)]

    @property
    def remarks(self) -> tuple[str, ...]:
        symbol, size, several = self.setting.symbol, self.budget_for_all, len(self.results) > 1
        rows = ""
        if not self.met and self.rows_for_all is not None:
            rows = f"{self.rows_for_all:,} rows at {self.setting.budget_text}"
        if size is None:
            lost = [goal for goal, budget in zip(self.goals, self.budgets, strict=True) if budget is None]
            least = expected(self.setting.with_budget(_SIZES[-1]), lost) or ()
            at_best = ", ".join(f"{best.goal.question} is {best.text(best.reached)}" for best in least)
            said = f"no budget meets all goals: at {symbol} = {_SIZES[-1]:g}, {at_best}{rows and f'; {rows} would'}"
        else:
            said = f"{'all goals take' if several else 'it takes'} {symbol} = {size:.3g}{rows and f', or {rows}'}"
            said += f"; {self.dear.question} takes most" if several else ""
        return (*super().remarks, said)
