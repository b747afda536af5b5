"""In which unit the losses of a mechanism's draws add up, by the kind of budget."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind

__all__ = ["GAUSSIAN_LOSS_UNITS", "LOSS_UNITS", "ZCDP_LOSS_UNITS"]

LOSS_UNITS: Mapping[BudgetKind, LossUnit] = MappingProxyType(
    {
        BudgetKind.PURE: LossUnit.EPSILON,
        BudgetKind.ZCDP: LossUnit.RHO,
        BudgetKind.APPROXIMATE: LossUnit.EPSILON_DELTA,
    }
)
GAUSSIAN_LOSS_UNITS = MappingProxyType({**LOSS_UNITS, BudgetKind.APPROXIMATE: LossUnit.GAUSSIAN_RHO})
"""For mechanisms whose every draw under (ε, δ) is Gaussian."""
ZCDP_LOSS_UNITS = MappingProxyType({**LOSS_UNITS, BudgetKind.APPROXIMATE: LossUnit.RHO})
"""For mechanisms whose draws under (ε, δ) are of several kinds, all of them zCDP."""
