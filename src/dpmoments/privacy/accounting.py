"""Units in which the losses of one run add up, and the total that a cost allows.

Proofs: ``docs/evidence/derivations/composition.md``, ``docs/evidence/derivations/privacy-units.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from dpmoments.base.errors import InputValueError
from dpmoments.base.values import no_less, rounded_down, rounded_up
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import MIN_COMPOSED_SCALE, discrete_gaussian_rho, safe_root
from dpmoments.privacy.unit import PrivacyUnit

# Largest ε for the joint Gaussian curve. Beyond it the curve is useless and its inversion overflows.
_MAX_JOINT_EPSILON = 1e20


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
            raise InputValueError("a loss must not be negative")

    def __add__(self, other: Loss) -> Loss:
        if self.unit is not other.unit:
            raise InputValueError(f"losses in {self.unit} and {other.unit} do not add up")
        return Loss(self.unit, self.amount + other.amount, self.delta + other.delta)

    def __sub__(self, other: Loss) -> Loss:
        if self.unit is not other.unit:
            raise InputValueError(f"a loss in {other.unit} cannot be subtracted from one in {self.unit}")
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
        amount, delta = rounded_down(self.amount), rounded_down(self.delta)
        if self.unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
            return PrivacyBudget.zcdp(amount)
        return PrivacyBudget.pure(amount) if self.unit is LossUnit.EPSILON else PrivacyBudget.approximate(amount, delta)

    @classmethod
    def none(cls, unit: LossUnit) -> Loss:
        """Return no loss."""
        return cls(unit, Fraction(0))

    @classmethod
    def total(cls, losses: Iterable[Loss], unit: LossUnit) -> Loss:
        """Return the sum of losses, each in this unit."""
        return sum(losses, cls.none(unit))


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
    raise InputValueError(f"losses counted in {unit} do not add up to a cost of {cost!s}")


_ROUNDING = 1e-12
"""Relative error allowed for in computing e^ε."""
# Smallest fraction of ε/k at which δ stays. Below it ρ hardly depends on ε, and δ is reduced instead.
_MIN_EPSILON_SHARE = 2.0**-10


def allowance_for_rows(cost: PrivacyBudget, loss_unit: LossUnit, privacy_unit: PrivacyUnit | None) -> Loss:
    """Return the largest total loss on one row for which units of k rows have the cost."""
    # By `loss_unit`: ε is divided by k; ρ, which grows with the square of a distance, by k²; (ε, δ) becomes ε/k and the δ′
    # for which δ′(e^ε − 1)/(e^(ε/k) − 1) ≤ δ, rounded down.
    # `privacy_unit` None means that rows are the units.
    whole = allowance(cost, loss_unit)
    k = 1 if privacy_unit is None else privacy_unit.rows_per_unit
    if k == 1:
        return whole
    if loss_unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
        return Loss(loss_unit, whole.amount / k**2)
    if loss_unit is LossUnit.EPSILON:
        return Loss(loss_unit, whole.amount / k)
    # (e^ε − 1)/(e^(ε/k) − 1), the sum of e^(iε/k), i = 0, …, k − 1, rounded up.
    epsilon = float(whole.amount)
    try:
        factor = math.expm1(epsilon) / math.expm1(epsilon / k) * (1.0 + _ROUNDING)
    except (OverflowError, ZeroDivisionError):
        factor = math.inf
    if not factor < math.inf:
        raise InputValueError(
            f"ε = {epsilon:g} for units of {k} rows leaves no δ for a single row, since δ grows with e^ε over a "
            "unit's rows: use a smaller epsilon, or a budget in rho"
        )
    return Loss(loss_unit, whole.amount / k, whole.delta / Fraction(factor))


def loss_for_units(loss: Loss, rows_per_unit: int) -> Loss | None:
    """Return the loss on a unit of k rows of draws with this loss on one."""
    # None if losses are (ε, δ) (δ grows with e^ε).
    if rows_per_unit == 1:
        return loss
    if loss.unit is LossUnit.EPSILON_DELTA:
        return None
    power = 1 if loss.unit is LossUnit.EPSILON else 2
    return Loss(loss.unit, loss.amount * rows_per_unit**power)


def budget_for_rows(cost: PrivacyBudget, loss_unit: LossUnit, privacy_unit: PrivacyUnit | None) -> PrivacyBudget:
    """Return the budget for which a mechanism is calibrated at sensitivities of one row."""
    # It allows draws at most the total loss of `allowance_for_rows`, rounded down. If (ε, δ) is counted in ρ, δ stays
    # and ε is reduced; if that ρ needs no ε for δ, ε/k is used and δ reduced.
    if privacy_unit is None or privacy_unit.rows_per_unit == 1:
        return cost
    wanted = allowance_for_rows(cost, loss_unit, privacy_unit)

    def excess(epsilon: float, delta: float) -> float:
        allowed = allowance(PrivacyBudget.approximate(epsilon, delta), loss_unit).amount
        return float(allowed / wanted.amount - 1) if allowed != wanted.amount else 0.0

    try:
        if cost.kind is not BudgetKind.APPROXIMATE or loss_unit is LossUnit.EPSILON_DELTA:
            return wanted.as_budget
        share = math.sqrt(float(wanted.amount / allowance(cost, loss_unit).amount))  # 1/k
        epsilon, delta = cost.epsilon * share, cost.delta
        if excess(_MIN_EPSILON_SHARE * cost.epsilon * share, cost.delta) < 0.0:
            epsilon = safe_root(lambda epsilon: excess(epsilon, cost.delta), epsilon, safe="below")
        else:
            # No larger δ is asked about: with δ itself this ε allows too much already, and δ must stay below 1.
            delta = safe_root(lambda delta: excess(epsilon, min(delta, cost.delta)), cost.delta * share, safe="below")
        result = PrivacyBudget.approximate(epsilon, delta)
        if not allowance(result, loss_unit).within(wanted):
            raise AssertionError("the inverted budget allows too much: a defect, please report it")
        return result
    except (ArithmeticError, ValueError) as reason:
        raise InputValueError(
            f"a budget of {cost} for units of {privacy_unit.rows_per_unit} rows leaves nothing for a single row that "
            "can be calculated with: let fewer rows of a unit count, or spend more"
        ) from reason
