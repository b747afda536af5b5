"""Units in which the losses of one run add up, and the total loss that a stated cost allows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import no_less, rounded_down, rounded_up
from dpmoments.messages.message import Message
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves.discrete_gaussian import MIN_COMPOSED_SCALE, discrete_gaussian_rho

_MAX_JOINT_EPSILON = 1e20
"""Largest ε for the joint Gaussian curve.

Beyond it the curve is useless and its inversion overflows.
"""


class LossUnit(StrEnum):
    """Unit in which losses of draws are counted.

    The theorems are in ``docs/evidence/derivations/composition.md``.

    ``EPSILON``: pure losses ε add up. ``RHO``: zCDP losses ρ add up, and imply an (ε, δ) cost if one is stated.
    ``GAUSSIAN_RHO``: if every draw is Gaussian, ρ = μ²/2 also adds up, and the whole run loses no more than one Gaussian
    mechanism of that μ (with a proven margin if the noise is discrete), which is less than ρ-zCDP in general.
    ``EPSILON_DELTA``: (ε, δ) losses add up, ε and δ separately.
    """

    EPSILON = "epsilon"
    RHO = "rho"
    GAUSSIAN_RHO = "gaussian-rho"
    EPSILON_DELTA = "epsilon-delta"

    @property
    def least_lattice_scale(self) -> float:
        """Min SD of discrete Gaussian noise, in lattice units, for which the composition is proven."""
        return MIN_COMPOSED_SCALE if self is LossUnit.GAUSSIAN_RHO else 0.0


@dataclass(frozen=True, slots=True)
class Loss:
    """Exact amount of loss in one unit; ``delta`` is 0 except for ``EPSILON_DELTA``."""

    unit: LossUnit
    amount: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.amount < 0 or self.delta < 0:
            raise InputValueError(Message("loss-negative"))

    def __add__(self, other: Loss) -> Loss:
        if self.unit is not other.unit:
            raise InputValueError(Message("losses-of-other-units", first=self.unit, second=other.unit))
        return Loss(self.unit, self.amount + other.amount, self.delta + other.delta)

    def __sub__(self, other: Loss) -> Loss:
        if self.unit is not other.unit:
            raise InputValueError(Message("loss-not-subtracted", unit=other.unit, unit_2=self.unit))
        return Loss(self.unit, self.amount - other.amount, self.delta - other.delta)

    def __str__(self) -> str:
        """Format the loss in its unit, rounded up."""
        symbol = "ρ" if self.unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO) else "ε"
        amount = f"{symbol} = {no_less(rounded_up(self.amount))}"
        return f"{amount}, δ = {no_less(rounded_up(self.delta), 3)}" if self.unit is LossUnit.EPSILON_DELTA else amount

    def within(self, other: Loss) -> bool:
        """Return True if it is no more than ``other``."""
        return self.unit is other.unit and self.amount <= other.amount and self.delta <= other.delta

    @property
    def as_budget(self) -> PrivacyBudget:
        """Budget that a run can divide among its draws: never more than the loss."""
        amount = rounded_down(self.amount)
        if self.unit is LossUnit.EPSILON:
            return PrivacyBudget.pure(amount)
        if self.unit is LossUnit.EPSILON_DELTA:
            return PrivacyBudget.approximate(amount, rounded_down(self.delta))
        return PrivacyBudget.zcdp(amount)

    @classmethod
    def none(cls, unit: LossUnit) -> Loss:
        """Return no loss."""
        return cls(unit, Fraction(0))


@lru_cache(maxsize=256)
def allowance(cost: PrivacyBudget, unit: LossUnit) -> Loss:
    """Return the largest total loss of a run's draws that keeps its stated cost."""
    kind = cost.kind
    if kind is BudgetKind.PURE and unit is LossUnit.EPSILON:
        return Loss(unit, Fraction(cost.epsilon))
    if kind is not BudgetKind.PURE and unit is LossUnit.RHO:
        return Loss(unit, Fraction(cost.to_rho()))
    if kind is BudgetKind.APPROXIMATE:
        if unit is LossUnit.GAUSSIAN_RHO:
            # Both are proven. The margin of the joint curve grows with ε, and passes its gain where budgets are beyond all use.
            joint = discrete_gaussian_rho(cost.epsilon, cost.delta) if cost.epsilon <= _MAX_JOINT_EPSILON else 0.0
            return Loss(unit, Fraction(max(cost.to_rho(), joint)))
        if unit is LossUnit.EPSILON_DELTA:
            return Loss(unit, Fraction(cost.epsilon), Fraction(cost.delta))
    raise InputValueError(Message("losses-not-a-cost", unit=unit, cost=str(cost)))
