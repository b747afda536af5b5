"""A run whose draws are pure and Gaussian in turn, and which spends both parts of its allowance."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpmoments.foundation.values import rounded_down
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.accounting import LossUnit, allowance_for_rows
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice, DiscreteGaussian, DiscreteLaplace
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import count, count_l1, rank_score
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from support.opened_filter import Allowance

MIXED = LossUnit.PURE_AND_GAUSSIAN
COST = PrivacyBudget.approximate(1.0, 1e-6)
CELL, CELLS = np.array([3]), np.array([3, 4])
FINE = count(Neighbors.ADD_REMOVE).in_units(
    2.0**30
)  # a count in units so small that its noise is wide enough to compose


def opened(unit: PrivacyUnit | None = None) -> PrivacyFilter:
    """The filter of a run with both kinds of draws."""
    return PrivacyFilter(Allowance(COST, Neighbors.ADD_REMOVE, MIXED, unit), insecure_generator(0))


def gaussian_of(rho: Fraction, sensitivity: Sensitivity = FINE) -> DiscreteGaussian:
    """Noise that loses this ρ, or a little less."""
    return DiscreteGaussian(sensitivity.value / math.sqrt(2.0 * float(rho)) * (1.0 + 1e-12))


def spent_whole(unit: PrivacyUnit | None = None) -> Receipt:
    """The receipt of a run that spends both parts, a Gaussian draw between pure ones."""
    opening, allowed = opened(unit), allowance_for_rows(COST, MIXED, unit)
    half = rounded_down(allowed.amount) / 2.0
    opening.draw("first", Choice(half), CELLS, rank_score(Neighbors.ADD_REMOVE))
    opening.draw("between", gaussian_of(allowed.rho), CELL, FINE)
    opening.draw("last", DiscreteLaplace(1.0 / half * (1.0 + 1e-15)), CELL, count_l1(Neighbors.ADD_REMOVE))
    return opening.close()
