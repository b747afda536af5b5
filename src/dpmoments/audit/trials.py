"""A plan on the two tables of a pair: what an audit runs, and what it compares with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.audit.directions import one_direction_epsilon
from dpmoments.audit.exact import noise_epsilon
from dpmoments.audit.outcomes import RepeatedRows, repeated_rows, run_repeatedly
from dpmoments.audit.pairs import NeighboringPair
from dpmoments.mechanisms.base import Mechanism, MomentShape, Plan
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_epsilon

__all__ = ["Trial", "make_trials", "stated_promise", "worst_exact"]


ZCDP_DELTA = 0.01
"""δ at which a ρ-zCDP promise is audited: large, so that the events it speaks of are seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A plan on the two tables of a pair, held to a cost at a δ."""

    pair: NeighboringPair
    plan: Plan
    first: RepeatedRows
    second: RepeatedRows
    cost: PrivacyBudget
    delta: float

    @property
    def grams(self) -> tuple[FloatArray, FloatArray]:
        """The exact Gram matrices, each of shape (d, d)."""
        first, second = (
            np.asarray(moments.gram, dtype=np.float64) * moments.scale**2
            for moments in (self.first.moments(), self.second.moments())
        )
        return first, second

    def passes(self, generator: np.random.Generator) -> int:
        """How often one run passes over the rows."""
        before = self.second.passes[0]
        run_repeatedly(self.plan, self.second, 1, generator)
        return self.second.passes[0] - before

    def run(self, size: int, generator: np.random.Generator) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
        first, first_failure = run_repeatedly(self.plan, self.first, size, generator)
        second, second_failure = run_repeatedly(self.plan, self.second, size, generator)
        if first_failure is not None and second_failure is not None:
            raise RuntimeError(f"every run failed on both tables of {self.pair.name!r}") from first_failure
        return first, second


def make_trials(
    mechanism: Mechanism, budget: PrivacyBudget, pairs: Sequence[NeighboringPair], mean: bool
) -> list[Trial]:
    """A plan on every pair whose number of rows the mechanism accepts."""
    plans: dict[MomentShape, Plan | ValueError] = {}
    for pair in pairs:
        if (shape := _shape(pair, mean)) not in plans:
            try:
                plans[shape] = mechanism.plan(shape, budget, pair.neighbors)
            except ValueError as refusal:
                plans[shape] = refusal
    costs = {plan.cost for plan in plans.values() if isinstance(plan, Plan)}
    cost = costs.pop() if len(costs) == 1 else budget
    trials = []
    for pair in pairs:
        if isinstance(plan := plans[_shape(pair, mean)], Plan):
            first, second = (repeated_rows(table, pair.neighbors, pair.schema) for table in (pair.first, pair.second))
            trials.append(Trial(pair, plan, first, second, cost, stated_promise(cost)[1]))
    if trials:
        return trials
    if refusals := [plan for plan in plans.values() if isinstance(plan, ValueError)]:
        raise refusals[0]
    raise ValueError("there is no pair of tables to audit on")


def _shape(pair: NeighboringPair, mean: bool) -> MomentShape:
    n_rows = len(pair.first) if pair.neighbors.table_size_is_public else None
    return MomentShape.of(pair.schema, mean=mean, n_rows=n_rows)


def stated_promise(cost: PrivacyBudget) -> tuple[float, float]:
    """(ε, δ) as a cost states or implies it."""
    if cost.kind is BudgetKind.ZCDP:
        return zcdp_epsilon(cost.rho, ZCDP_DELTA), ZCDP_DELTA
    return cost.epsilon, cost.delta


def worst_exact(trials: Sequence[Trial]) -> tuple[float | None, str]:
    """The largest exact loss over the pairs of neighbours, where the laws that the plan states are known."""
    worst: float | None = None
    where = ""
    for trial in trials:
        if trial.pair.rows_apart > 1:
            continue
        tables = trial.first.moments(), trial.second.moments()
        law = trial.plan.noise
        if law is None:
            loss = one_direction_epsilon(trial.plan, *tables, trial.delta)
        else:
            loss = noise_epsilon(law, *tables, trial.delta)
        if loss is not None and (worst is None or loss > worst):
            worst, where = loss, trial.pair.name
    return worst, where
