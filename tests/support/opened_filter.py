"""Filters for tests: one that pays for a part of a mechanism and nothing more, one that refuses nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.mechanisms.base import _LOSS_UNITS
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter, PrivatePlan
from dpmoments.privacy.laws import DrawLaw
from dpmoments.privacy.sampling import noised
from dpmoments.privacy.sensitivity import Sensitivity
from dpmoments.privacy.unit import Neighbors, PrivacyUnit


@dataclass(frozen=True)
class Allowance:
    """What a filter asks of a plan, without a mechanism."""

    cost: PrivacyBudget
    neighbors: Neighbors
    loss_unit: LossUnit
    privacy_unit: PrivacyUnit | None = None


def filter_that_pays(
    cost: PrivacyBudget, neighbors: Neighbors | str, generator: np.random.Generator, unit: LossUnit | None = None
) -> PrivacyFilter:
    """A filter for one run that may lose ``cost``, counted in the unit usual for it unless one is named."""
    return PrivacyFilter(Allowance(cost, Neighbors.of(neighbors), unit or _LOSS_UNITS[cost.kind]), generator)


class Unchecked:
    """Draws whatever it is asked for: planted faults, which a filter would refuse, are run through it."""

    def __init__(self, plan: PrivatePlan, generator: np.random.Generator) -> None:
        self.unit, self._generator = plan.loss_unit, generator

    def draw(
        self, what: str, law: DrawLaw, query: Any, sensitivity: Sensitivity, claim: PrivacyBudget | None = None
    ) -> Any:
        del what, sensitivity, claim
        return noised(law, query, self._generator)


def run_unchecked(plan: Any, rows: Any, generator: np.random.Generator) -> Any:
    """One run in which nothing is counted or refused."""
    return plan.run(rows, Unchecked(plan, generator))
