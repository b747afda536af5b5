"""What a release would be made with, all of it public, and the noise that its plan then has in the table's units."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpmoments.mechanisms.adaptive_ball import AdaptiveBallPlan
from dpmoments.mechanisms.base import Mechanism, MomentShape, Plan
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.planning.ball_law import ball_laws
from dpmoments.planning.imagined_release import LawOfRun, NoiseInUnits
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.unit import PrivacyUnit

__all__ = ["Setting", "laws_of_plan", "worst_laws"]


@dataclass(frozen=True, eq=False)
class Setting:
    """A release that could be made.

    Attributes
    ----------
    typical : TypicalTable
        With the schema.
    n_rows : int
        With a privacy unit, of the rows that count.
    budget : PrivacyBudget
    neighbors : Neighbors
    mechanism : Mechanism
    rivals : tuple of Mechanism
        Others that may be the better choice once something is changed.
    privacy_unit : PrivacyUnit or None
        For whom the budget is, where that is not one row.
    """

    typical: TypicalTable
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    mechanism: Mechanism
    rivals: tuple[Mechanism, ...] = ()
    privacy_unit: PrivacyUnit | None = None

    @property
    def plan(self) -> Plan:
        """The plan of the release, with count and mean; of one for units, what runs on the rows that count.

        Raises
        ------
        ValueError, OverflowError
            If it is not possible.
        """
        # Where the number of rows is private a release plans without it.
        n_rows = self.n_rows if self.neighbors.table_size_is_public else None
        shape = MomentShape.of(self.typical.schema, mean=True, n_rows=n_rows)
        return plan_before_release(self.mechanism, shape, self.budget, self.neighbors, self.privacy_unit)

    @property
    def noise(self) -> NoiseInUnits | None:
        """The noise of the plan; None where its law is not known.

        Raises
        ------
        ValueError, OverflowError
            If the plan is not possible.
        """
        laws = laws_of_plan(self.plan, self.typical, self.n_rows)
        return None if laws is None else NoiseInUnits(self.typical, self.n_rows, laws)

    def with_budget(self, size: float) -> Setting:
        """With another ε (the same δ), or ρ."""
        budget = self.budget
        if budget.kind is BudgetKind.ZCDP:
            return replace(self, budget=PrivacyBudget.zcdp(size))
        if budget.kind is BudgetKind.PURE:
            return replace(self, budget=PrivacyBudget.pure(size))
        return replace(self, budget=PrivacyBudget.approximate(size, budget.delta))

    @property
    def size_of_budget(self) -> float:
        """ε, or ρ."""
        return self.budget.rho if self.budget.kind is BudgetKind.ZCDP else self.budget.epsilon


def laws_of_plan(plan: Plan, typical: TypicalTable, n_rows: int) -> tuple[LawOfRun, ...] | None:
    """What the law of the noise can turn out to be; None where no closed one is known, or no mean is released."""
    if isinstance(plan, AdaptiveBallPlan):
        return ball_laws(plan, typical, n_rows)
    law = plan.noise
    if law is None or law.sum_variance is None or law.count_variance is None or plan.shape.row_norm is None:
        return None
    return (LawOfRun(1.0, law),)


def worst_laws(plan: Plan) -> tuple[LawOfRun, ...] | None:
    """For a plan that adapts to the table: what no table makes worse; None for others."""
    return (LawOfRun(1.0, plan.guaranteed.noise),) if isinstance(plan, AdaptiveBallPlan) else None
