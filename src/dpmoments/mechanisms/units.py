"""One plan run on the bounded rows of each privacy unit.

Group privacy extends its guarantee to units of at most k rows; units of a bounded total weight are as one row.

No mechanism knows about units. Its sensitivities are for one row, and it is calibrated to the loss per row that the cost for k
rows leaves (``docs/evidence/derivations/privacy-units.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from dpmoments.base.errors import InputValueError
from dpmoments.mechanisms.base import CalibratedPlan, Noisy, spent_by_units
from dpmoments.privacy.accounting import LossUnit, budget_for_rows
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.rows.units import ROUNDS


@dataclass(frozen=True)
class OuterPlan(CalibratedPlan[Noisy]):
    """Plan that runs another, ``inner``, on chosen rows."""

    inner: CalibratedPlan[Any]

    @classmethod
    def around(cls, inner: CalibratedPlan[Any], cost: PrivacyBudget, **own: Any) -> Self:
        """Make the plan of this cost."""
        because = inner.chosen_because
        return cls(inner.mechanism, inner.shape, inner.neighbors, cost, inner=inner, chosen_because=because, **own)

    @property
    def loss_unit(self) -> LossUnit:
        return self.inner.loss_unit

    @property
    def unspent_reason(self) -> str | None:
        return self.inner.unspent_reason

    @property
    def details(self) -> Mapping[str, Any]:
        return self.inner.details


@dataclass(frozen=True)
class UnitsPlan(OuterPlan[Noisy]):
    """Plan of ``inner``, which is for rows, for bounded units, as is the cost."""

    unit: PrivacyUnit

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("privacy units need add_remove: under replace_one the number of kept rows is private")
        if not budget_for_rows(self.cost, self.inner.loss_unit, self.unit).covers(self.inner.cost):
            raise InputValueError("the plan for rows costs more than a row's part of the cost for units")

    @classmethod
    def of(cls, plan: CalibratedPlan[Noisy], budget: PrivacyBudget, unit: PrivacyUnit) -> UnitsPlan[Noisy]:
        """Return the plan for units."""
        # From the plan for rows that `plan_for` made with this budget.
        return UnitsPlan.around(plan, spent_by_units(plan.cost, budget), unit=unit)

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return self.unit

    @property
    def passes(self) -> int | None:
        return None if self.inner.passes is None else ROUNDS + self.inner.passes

    @property
    def most_passes(self) -> int | None:
        return None if self.inner.most_passes is None else ROUNDS + self.inner.most_passes

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Noisy:
        """Bound units by a key drawn for this run, and run the plan for rows on them."""
        if rows.privacy_unit != self.unit:
            raise InputValueError("the rows were opened for another privacy unit than the plan's, or for none")
        noisy: Noisy = self.inner.run(rows.bounded(privacy_filter.selection_key()), privacy_filter)
        return noisy
