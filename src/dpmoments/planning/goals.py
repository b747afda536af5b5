"""Goals of a forecast: which are met, what budget and how many rows they take, and what else would help."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpmoments.analysis.answers import Column
from dpmoments.analysis.goals import GoalResult, Goals, goal_results
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.schema.goals import Goal
from dpmoments.spending.imagined import LENGTHS

_DIGITS = (*range(100, 200, 5), *range(200, 500, 10), *range(500, 1000, 20))
_SIZES = (*(float(f"{digits}e{power}") for power in range(-8, 0) for digits in _DIGITS), 100.0)
"""Budgets that are tried, at most 5 % apart, in few digits: what is printed is what was tried."""
_LIKELY = 3
"""Releases whose mean is expected: measured, that of 12 is within a tenth of it."""
_ROWS = tuple(digits * 10**power for power in range(10) for digits in _DIGITS)


def expected(plan: ReleasePlan, goals: Sequence[Goal]) -> tuple[GoalResult, ...] | None:
    """Return what a planned release would state; None if it cannot be planned, or its noise is unknown.

    Where noise decides on a ball to which rows are clipped, it is the mean of three releases, which differ in that.
    """
    noise = plan.known_noise
    if noise is None:
        return None
    if all(draw.what.code != LENGTHS for draw in noise.release.receipt.draws):
        return goal_results(noise.release, goals)
    several = [goal_results(plan.imagined_with(seed).release, goals) for seed in range(_LIKELY)]
    return tuple(map(_mean, zip(*several, strict=True)))


def _mean(results: Sequence[GoalResult]) -> GoalResult:
    """Return the mean of what several releases state; the worst if they do not state the same numbers."""
    worst = max(results, key=lambda result: result.reached)
    if any(result.cells != worst.cells for result in results):
        return worst
    return replace(worst, half_widths=np.mean([result.half_widths for result in results], axis=0))


def _excess(plan: ReleasePlan, goals: Sequence[Goal]) -> float:
    """Return the log of the largest noise over its margin; infinite if a number would not be stated."""
    results = expected(plan, goals)
    if results is None or any(math.isnan(result.reached) for result in results):
        return math.inf
    largest = max(result.reached / result.goal.margin for result in results)
    return math.log(largest) if largest > 0.0 else -math.inf


def _smallest(sizes: Sequence[float], start: float, excess: Callable[[float], float]) -> float | None:
    """Return the first size whose excess, the log of noise over margin, is at most 0; None without any."""
    low, high, guess = -1, len(sizes), min(bisect_left(sizes, start), len(sizes) - 1)
    before, slope, steps = (math.nan, math.nan), -1.0, 0
    while high - low > 1:
        at, value = math.log(sizes[guess]), excess(sizes[guess])
        low, high, steps = (low, guess, steps + 1) if value <= 0.0 else (guess, high, steps + 1)
        if math.isfinite(value - before[1]) and at != before[0]:
            slope = min(max((value - before[1]) / (at - before[0]), -1.0), -0.01)
        before = at, value
        # Along the line through the last two; every third step halves what is left, since noise falls along no line.
        if math.isfinite(value) and steps % 3:
            guess = min(max(bisect_left(sizes, math.exp(min(at - value / slope, 99.0))), low + 1), high - 1)
        else:
            guess = (low + high) // 2
    return sizes[high] if high < len(sizes) else None


@dataclass(frozen=True, eq=False, repr=False)
class ForecastGoals(Goals):
    """Goals against what a planned release would state, and the budget that each takes.

    Attributes
    ----------
    setting : ReleasePlan
    """

    setting: ReleasePlan
    size: ClassVar[str] = "expected"

    facts: ClassVar[tuple[str, ...]] = (*Goals.facts, "budget_for_all", "rows_for_all", "dear: dear_question")

    @classmethod
    def of(cls, setting: ReleasePlan, goals: Sequence[Goal]) -> ForecastGoals | None:
        """Return the goals of a plan; None without goals, or if its noise is unknown."""
        results = expected(setting, goals) if goals else None
        return None if results is None else cls(results, setting)

    @property
    def goals(self) -> list[Goal]:
        """The goals."""
        return [result.goal for result in self.results]

    @cached_property
    def budgets(self) -> tuple[float | None, ...]:
        """Smallest ε (at this δ), or ρ, that meets each goal; None if 100 is not enough."""
        return tuple(self._budget([goal]) for goal in self.goals)

    @cached_property
    def budget_for_all(self) -> float | None:
        """Smallest ε (at this δ), or ρ, that meets all goals; None if 100 is not enough."""
        if None in self.budgets:
            return None
        largest = max(budget for budget in self.budgets if budget is not None)
        # Where noise falls without a jump, this is it.
        return largest if _excess(self.setting.with_budget(largest), self.goals) <= 0.0 else self._budget(self.goals)

    def _budget(self, goals: Sequence[Goal]) -> float | None:
        start = self.setting.size_of_budget
        return _smallest(_SIZES, start, lambda size: _excess(self.setting.with_budget(size), goals))

    @cached_property
    def rows_for_all(self) -> int | None:
        """Smallest number of rows, in three digits, that meets all goals at this budget."""

        def excess(n_rows: float) -> float:
            return _excess(replace(self.setting, n_rows=int(n_rows)), self.goals)

        found = _smallest(_ROWS, self.setting.n_rows, excess)
        return None if found is None else int(found)

    @property
    def dear(self) -> Goal:
        """The goal that takes the largest budget."""
        sizes = [math.inf if budget is None else budget for budget in self.budgets]
        excess = [result.reached / result.goal.margin for result in self.results]
        return max(zip(sizes, excess, self.goals, strict=True), key=lambda each: each[:2])[2]

    @property
    def dear_question(self) -> str:
        """What it asks."""
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
