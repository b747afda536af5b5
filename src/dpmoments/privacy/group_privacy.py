"""Largest loss on one row that keeps the stated cost for units of several rows.

Group privacy, inverted.

Proofs: ``docs/evidence/derivations/privacy-units.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import Loss, LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves.inversion import safe_root
from dpmoments.privacy.unit import PrivacyUnit

_ROUNDING = 1e-12
"""Relative error allowed for in computing e^ε."""
_MIN_EPSILON_SHARE = 2.0**-10
"""Smallest fraction of ε/k at which δ stays.

Below it ρ hardly depends on ε, and δ is reduced instead.
"""


def allowance_for_rows(cost: PrivacyBudget, loss_unit: LossUnit, privacy_unit: PrivacyUnit | None) -> Loss:
    """Return the largest total loss on one row for which units of k rows have the cost.

    By ``loss_unit``: ε is divided by k; ρ, which grows with the square of a distance, by k²; (ε, δ) becomes ε/k and the δ′ for
    which δ′(e^ε − 1)/(e^(ε/k) − 1) ≤ δ, rounded down. ``privacy_unit`` None means that rows are the units.
    """
    whole = allowance(cost, loss_unit)
    k = 1 if privacy_unit is None else privacy_unit.max_rows
    if k == 1:
        return whole
    if loss_unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
        return Loss(loss_unit, whole.amount / k**2)
    if loss_unit is LossUnit.EPSILON:
        return Loss(loss_unit, whole.amount / k)
    return Loss(loss_unit, whole.amount / k, whole.delta / Fraction(_delta_factor(float(whole.amount), k)))


def _delta_factor(epsilon: float, k: int) -> float:
    """Return (e^ε − 1)/(e^(ε/k) − 1), rounded up: the sum of e^(iε/k), i = 0, …, k − 1."""
    try:
        factor = math.expm1(epsilon) / math.expm1(epsilon / k) * (1.0 + _ROUNDING)
    except (OverflowError, ZeroDivisionError):
        factor = math.inf
    if not factor < math.inf:
        raise InputValueError(Message("no-delta-for-a-row", epsilon=epsilon, rows=k))
    return factor


def loss_for_units(loss: Loss, rows_per_unit: int) -> Loss | None:
    """Return the loss on a unit of k rows of draws with this loss on one.

    None if losses are (ε, δ) (δ grows with e^ε).
    """
    if rows_per_unit == 1:
        return loss
    if loss.unit is LossUnit.EPSILON_DELTA:
        return None
    power = 1 if loss.unit is LossUnit.EPSILON else 2
    return Loss(loss.unit, loss.amount * rows_per_unit**power)


def budget_for_rows(cost: PrivacyBudget, loss_unit: LossUnit, privacy_unit: PrivacyUnit | None) -> PrivacyBudget:
    """Return the budget for which a mechanism is calibrated at sensitivities of one row.

    It allows draws at most the total loss of :func:`allowance_for_rows`, rounded down. If (ε, δ) is counted in ρ, δ stays and ε
    is reduced; if that ρ needs no ε for δ, ε/k is used and δ reduced.
    """
    if privacy_unit is None or privacy_unit.max_rows == 1:
        return cost
    wanted = allowance_for_rows(cost, loss_unit, privacy_unit)
    try:
        if cost.kind is not BudgetKind.APPROXIMATE or loss_unit is LossUnit.EPSILON_DELTA:
            return wanted.as_budget
        return _smaller_budget(cost, wanted)
    except (ArithmeticError, ValueError) as reason:
        raise InputValueError(Message("nothing-for-a-row", cost=cost, rows=privacy_unit.max_rows)) from reason


def _smaller_budget(cost: PrivacyBudget, wanted: Loss) -> PrivacyBudget:
    """Return the (ε′, δ′) that allows no more than the wanted ρ."""
    # δ stays unless no ε is small enough for it.

    def excess(epsilon: float, delta: float) -> float:
        allowed = allowance(PrivacyBudget.approximate(epsilon, delta), wanted.unit).amount
        return float(allowed / wanted.amount - 1) if allowed != wanted.amount else 0.0

    share = math.sqrt(float(wanted.amount / allowance(cost, wanted.unit).amount))  # 1/k
    epsilon, delta = cost.epsilon * share, cost.delta
    if excess(_MIN_EPSILON_SHARE * cost.epsilon * share, cost.delta) < 0.0:
        epsilon = safe_root(lambda epsilon: excess(epsilon, cost.delta), epsilon, safe="below")
    else:
        # No larger δ is asked about: with δ itself this ε allows too much already, and δ must stay below 1.
        delta = safe_root(lambda delta: excess(epsilon, min(delta, cost.delta)), cost.delta * share, safe="below")
    result = PrivacyBudget.approximate(epsilon, delta)
    if not allowance(result, wanted.unit).within(wanted):
        raise AssertionError("the inverted budget allows too much: a defect, please report it")
    return result
