"""One plan run on at most k rows of each privacy unit.

Group privacy extends its guarantee to units.

No mechanism knows about units. Its sensitivities are for one row, and it is calibrated to the loss per row that the cost for k
rows leaves (``docs/evidence/derivations/privacy-units.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.base import CalibratedPlan, ConfiguredMechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import LossUnit, budget_for_rows
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.rows.units import ROUNDS

Noisy = TypeVar("Noisy")
PlanType = TypeVar("PlanType", bound=CalibratedPlan[Any])


@dataclass(frozen=True)
class UnitsPlan(CalibratedPlan[Noisy]):
    """Plan for units that contribute at most ``max_rows`` rows; ``cost`` is for a unit.

    ``of_row`` is the plan for rows.
    """

    of_row: CalibratedPlan[Noisy]
    unit: PrivacyUnit

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("privacy units need add_remove: under replace_one the number of kept rows is private")
        if not budget_for_rows(self.cost, self.of_row.loss_unit, self.unit).covers(self.of_row.cost):
            raise InputValueError("the plan for rows costs more than a row's part of the cost for units")

    @classmethod
    def of(cls, plan: CalibratedPlan[Noisy], budget: PrivacyBudget, unit: PrivacyUnit) -> UnitsPlan[Noisy]:
        """Return the plan for units."""
        # From the plan for rows that `plan_for_rows` made with this budget.
        return cls(
            plan.mechanism,
            plan.shape,
            plan.neighbors,
            _spent(plan, budget),
            of_row=plan,
            unit=unit,
            chosen_because=plan.chosen_because,
        )

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return self.unit

    @property
    def loss_unit(self) -> LossUnit:
        return self.of_row.loss_unit

    @property
    def passes(self) -> int | None:
        return None if self.of_row.passes is None else ROUNDS + self.of_row.passes

    @property
    def unspent_reason(self) -> str | None:
        return self.of_row.unspent_reason

    @property
    def details(self) -> Mapping[str, Any]:
        return self.of_row.details

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Noisy:
        """Choose the kept rows by a key drawn for this run, and run the plan for rows on them."""
        if rows.privacy_unit != self.unit:
            raise InputValueError("the rows were opened for another privacy unit than the plan's, or for none")
        return self.of_row.run(rows.bounded(privacy_filter.selection_key()), privacy_filter)


def plan_for_rows(
    mechanism: ConfiguredMechanism[PlanType],
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    unit: PrivacyUnit | None,
) -> PlanType:
    """Return the plan for rows whose run costs a unit no more than the budget.

    ``mechanism`` supports the arguments.

    The loss per row depends on how losses add up, which is settled when ``auto`` chooses a mechanism: it chooses at its own
    loss per row, and the chosen mechanism is calibrated to the one that follows from its loss units.
    """
    if unit is None or unit.max_rows == 1:
        return mechanism.supported_plan(shape, budget, neighbors)
    first = mechanism.supported_plan(shape, budget_for_rows(budget, mechanism.loss_units[budget.kind], unit), neighbors)
    left = budget_for_rows(_spent(first, budget), first.loss_unit, unit)
    if first.cost == left:
        plan = first
    else:
        plan = replace(first.mechanism.plan(shape, left, neighbors), chosen_because=first.chosen_because)
    if plan.chosen_because is None:
        return plan
    reason = plan.chosen_because
    return replace(plan, chosen_because=Message(reason.code, **reason.facts, unit_rows=unit.max_rows))


def plan_before_release(
    mechanism: ConfiguredMechanism[PlanType],
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    unit: PrivacyUnit | None,
) -> PlanType:
    """Return the plan for rows that a release would run, for its forecast."""
    mechanism.check_support(shape, budget, neighbors)
    return plan_for_rows(mechanism, shape, budget, neighbors, unit)


def _spent(plan: CalibratedPlan[Any], budget: PrivacyBudget) -> PrivacyBudget:
    """Return the part of a budget for units that a run spends."""
    # Pure ε if the plan for rows spends no δ.
    pure = plan.cost.kind is BudgetKind.PURE and budget.kind is BudgetKind.APPROXIMATE
    return PrivacyBudget.pure(budget.epsilon) if pure else budget
