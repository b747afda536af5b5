"""Plan of the moments of a release with targets, and the noise of the steps.

``docs/evidence/derivations/refined-regression.md`` has the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import rounded_down
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.messages.message import Message
from dpmoments.messages.wording import closest
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.sensitivity import row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.kernel import LONGEST
from dpmoments.schema.schema import Schema

RELEASE_SHARE = 0.75
"""Share of ρ for moments with Gaussian noise; the refining steps have the rest.

Pure moments have the share of ε that ``pure-and-gaussian`` fixes.
"""
STEPS = 6
_GROWTH = 1.15
"""Budget of a step over that of the step before."""
KEPT = 0.7
"""Weight of all earlier steps in the next average."""
_CLIP, _CLIP_POWER = 0.854, 0.3
"""Clip over the typical length of a product: a factor, and a power of signal over noise."""


def check_targets(schema: Schema, targets: Sequence[str]) -> None:
    """Raise unless the targets are features that steps can refine."""
    is_list = isinstance(targets, Collection) and not isinstance(targets, str)
    if not is_list or not all(isinstance(name, str) for name in targets):
        raise InputTypeError(Message("names-one-text", what="targets"))
    names = schema.feature_names
    for name in targets:
        if name not in names:
            raise InputValueError(Message("unknown-feature", name=name, features=len(names), **closest(name, names)))
    if len(set(targets)) < len(targets):
        raise InputValueError(Message("feature-twice"))
    if targets and schema.has_available:
        raise InputValueError(Message("targets-of-present-values"))


def budget_of_moments(shape: MomentShape, budget: PrivacyBudget, loss_unit: LossUnit) -> PrivacyBudget:
    """Return the ρ or the pure ε for the moments; refuse what allows no steps."""
    require_steps(shape, budget)
    whole = allowance(budget, loss_unit)
    if loss_unit is LossUnit.PURE_AND_GAUSSIAN:
        return PrivacyBudget.pure(rounded_down(whole.amount))
    return whole.as_budget.split(RELEASE_SHARE, 1.0 - RELEASE_SHARE)[0]


def rho_of_steps(budget: PrivacyBudget, loss_unit: LossUnit) -> float:
    """Return the ρ of all steps of all targets."""
    whole = allowance(budget, loss_unit)
    if loss_unit is LossUnit.PURE_AND_GAUSSIAN:
        return rounded_down(whole.rho)
    return float(whole.as_budget.rho * (1.0 - RELEASE_SHARE))


def require_steps(shape: MomentShape, budget: PrivacyBudget) -> None:
    """Raise ValueError for a shape or a budget that allows no steps."""
    if budget.kind is BudgetKind.PURE:
        raise InputValueError(Message("targets-need-delta", budget=budget))
    if not shape.mean:
        raise InputValueError(Message("targets-need-mean"))
    if shape.row_norm is None:
        raise InputValueError(Message("mechanism-needs-row-bound", mechanism="targets"))


def budgets_of_steps(rho: float) -> FloatArray:
    """Return the ρ of every step, of their sum."""
    parts = _GROWTH ** np.arange(STEPS)
    return np.asarray(rho * parts / parts.sum())


def signal_of_steps(n_rows: float, size: float, rho: float) -> float:
    """Return the size of the signal over the noise of all steps, at least 1."""
    # `size` is the mean squared length of the whitened regressors with the constant.
    return max(n_rows * math.sqrt(2.0 * rho) / size, 1.0)


def clip_of_products(signal: float, residual: float, size: float) -> float:
    """Return the length to which a row's product of residual and regressors is clipped."""
    # `residual` is a variance.
    return float(_CLIP * signal**_CLIP_POWER * math.sqrt(residual * size))


def noise_of_average(clip: float, rho: float, neighbors: Neighbors) -> float:
    """Return the noise SD of a coordinate of the last average of steps, as a sum over the rows."""
    total = variance = 0.0
    for spent in budgets_of_steps(rho):
        total = KEPT * total + float(spent)
        new = float(spent) / total
        step = LONGEST * clip * zcdp_noise_scale(float(spent), row_sum_l2(neighbors).value)
        variance = (1.0 - new) ** 2 * variance + (new * step) ** 2
    return math.sqrt(variance)


def has_gaussian_noise(mechanism: Mechanism) -> bool:
    """Return True if every draw of a mechanism under (ε, δ) is Gaussian."""
    return mechanism.loss_units[BudgetKind.APPROXIMATE] is GAUSSIAN_LOSS_UNITS[BudgetKind.APPROXIMATE]


def plan_of_moments(
    mechanism: Mechanism, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, loss_unit: LossUnit
) -> Plan:
    """Return the plan of the moments with their share; refuse noise of another kind."""
    share = budget_of_moments(shape, budget, loss_unit)
    if loss_unit is LossUnit.PURE_AND_GAUSSIAN:
        return mechanism.plan(shape, share, neighbors)
    plan = mechanism.plan(shape, share, neighbors) if share.kind in mechanism.budget_kinds else None
    chosen = mechanism if plan is None else plan.mechanism
    if plan is None or not has_gaussian_noise(chosen):
        raise InputValueError(Message("targets-need-gaussian-noise", mechanism=chosen.name))
    return plan
