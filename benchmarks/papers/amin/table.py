"""The budgets at which Amin et al. (2019) release a table, and what is done to a second moment that is released alone."""

from __future__ import annotations

import numpy as np

from dpmoments.mechanisms.additive import AdditivePlan
from dpmoments.mechanisms.base import Plan
from dpmoments.moments.repair import Repair, repair_gram

EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)


def repaired(plan: Plan, noisy_gram: np.ndarray, n_rows: int, repair: Repair) -> np.ndarray:
    """A second moment alone, of rows in the unit ball, after a repair."""
    law = plan.model.law() if isinstance(plan, AdditivePlan) else None
    return repair_gram(noisy_gram, law, repair, n_rows)
