"""Tables of rows in the unit ball whose exact sums are made once, however many mechanisms draw their noise on them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

import dpmoments as dpm
from dpmoments.mechanisms.additive import AdditivePlan
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.repair import Repair, repair_gram
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows


class SummedOnce(Rows):
    """Rows of which sums that no step transforms are made once a lattice."""

    def moments(self, center: Any = None, linear: Any = None, radius: float = 1.0, *, bits: int = 20) -> ExactMoments:
        if center is not None or linear is not None or radius != 1.0:
            return super().moments(center, linear, radius, bits=bits)
        if bits not in self._kept:
            self._kept[bits] = super().moments(bits=bits)
        return self._kept[bits]

    @cached_property
    def _kept(self) -> dict[int, ExactMoments]:
        return {}

    @cached_property
    def n_rows(self) -> int:
        return self.moments().count

    @cached_property
    def gram(self) -> np.ndarray:
        """The Gram matrix in unit-ball units, of rows clipped to the ball."""
        moments = self.moments()
        return np.asarray(moments.gram, dtype=np.float64) * moments.scale**2

    def plan(self, mechanism: Mechanism, budget: PrivacyBudget) -> Plan:
        """For the second moment alone, one row replaced by another, as Amin et al. (2019) release it."""
        return mechanism.plan(MomentShape.of(self.schema, mean=False, n_rows=self.n_rows), budget, self.neighbors)


def summed_once(table: np.ndarray, neighbors: Neighbors | str = Neighbors.REPLACE_ONE) -> SummedOnce:
    return SummedOnce.of(table, dpm.Schema.unit_ball(table.shape[1]), mean=False, neighbors=neighbors, threads=1)


def repaired(plan: Plan, noisy_gram: np.ndarray, n_rows: int, repair: Repair) -> np.ndarray:
    """A second moment alone after a repair."""
    law = plan.model.law() if isinstance(plan, AdditivePlan) else None
    return repair_gram(noisy_gram, law, repair, n_rows)
