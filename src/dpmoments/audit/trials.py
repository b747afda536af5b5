"""A plan on the two tables of a pair: what an audit runs, and what it compares with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.audit.directions import one_direction_epsilon
from dpmoments.audit.exact import noise_epsilon
from dpmoments.audit.outcomes import RepeatedRows, RepeatedUnits, repeated_rows, repeated_units, run_repeatedly
from dpmoments.audit.pairs import NeighboringPair
from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.base import CalibratedPlan, Mechanism, MomentShape, NoisyMoments, Plan
from dpmoments.mechanisms.units import UnitsPlan, plan_before_release
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_epsilon
from dpmoments.privacy.unit import PrivacyUnit

__all__ = ["Trial", "make_trials", "stated_promise", "worst_exact"]


ZCDP_DELTA = 0.01
"""δ at which a ρ-zCDP promise is audited: large, so that the events it speaks of are seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A plan on the two tables of a pair, held to a cost at a δ.

    Attributes
    ----------
    plan : Plan
        Whose laws are known: for units, that for the rows that count.
    run_plan : CalibratedPlan
        What is run.
    """

    pair: NeighboringPair
    plan: Plan
    run_plan: CalibratedPlan[NoisyMoments]
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

    @property
    def is_exact(self) -> bool:
        """Whether the two tables are neighbours whose rows that count are always the same."""
        alike = (rows.selected_alike for rows in (self.first, self.second) if isinstance(rows, RepeatedUnits))
        return self.pair.rows_apart == 1 and all(alike)

    def passes(self, generator: np.random.Generator) -> int:
        """How often one run passes over the rows."""
        before = self.second.passes[0]
        run_repeatedly(self.run_plan, self.second, 1, generator)
        return self.second.passes[0] - before

    def run(self, size: int, generator: np.random.Generator) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
        first, first_failure = run_repeatedly(self.run_plan, self.first, size, generator)
        second, second_failure = run_repeatedly(self.run_plan, self.second, size, generator)
        if first_failure is not None and second_failure is not None:
            raise RuntimeError(f"every run failed on both tables of {self.pair.name!r}") from first_failure
        return first, second


def make_trials(
    mechanism: Mechanism, budget: PrivacyBudget, pairs: Sequence[NeighboringPair], mean: bool
) -> list[Trial]:
    """A plan on every pair whose number of rows the mechanism accepts."""
    plans: dict[tuple[MomentShape, PrivacyUnit | None], Plan | ValueError] = {}
    for pair in pairs:
        if (asked := (_shape(pair, mean), pair.privacy_unit)) not in plans:
            try:
                plans[asked] = plan_before_release(mechanism, asked[0], budget, pair.neighbors, pair.privacy_unit)
            except ValueError as refusal:
                plans[asked] = refusal
    runs = {
        asked: plan if asked[1] is None else UnitsPlan.of(plan, budget, asked[1])
        for asked, plan in plans.items()
        if isinstance(plan, Plan)
    }
    costs = {plan.cost for plan in runs.values()}
    cost = costs.pop() if len(costs) == 1 else budget
    trials = []
    for pair in pairs:
        asked = _shape(pair, mean), pair.privacy_unit
        if isinstance(plan := plans[asked], Plan):
            trials.append(Trial(pair, plan, runs[asked], *_tables(pair), cost, stated_promise(cost)[1]))
    if trials:
        return trials
    if refusals := [plan for plan in plans.values() if isinstance(plan, ValueError)]:
        raise refusals[0]
    raise ValueError("there is no pair of tables to audit on")


def _tables(pair: NeighboringPair) -> tuple[RepeatedRows, RepeatedRows]:
    if pair.privacy_unit is None:
        return (
            repeated_rows(pair.first, pair.neighbors, pair.schema),
            repeated_rows(pair.second, pair.neighbors, pair.schema),
        )
    return (
        repeated_units(pair.first, pair.first_units, pair.privacy_unit, pair.schema),
        repeated_units(pair.second, pair.second_units, pair.privacy_unit, pair.schema),
    )


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
        if not trial.is_exact:
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
