"""Plan of the moments of a release with targets, and what it refuses.

``docs/evidence/derivations/refined-regression.md`` has the derivation.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.messages.message import Message
from dpmoments.messages.wording import closest
from dpmoments.privacy.accounting import allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from dpmoments.schema.schema import Schema

RELEASE_SHARE = 0.75
"""Share of ρ for the moments; the refining steps have the rest."""


def check_targets(schema: Schema, targets: Sequence[str]) -> None:
    """Raise unless the targets are features that steps can refine."""
    if isinstance(targets, str) or not all(isinstance(name, str) for name in targets):
        raise InputTypeError(Message("names-one-text", what="targets"))
    names = schema.feature_names
    for name in targets:
        if name not in names:
            raise InputValueError(Message("unknown-feature", name=name, features=len(names), **closest(name, names)))
    if len(set(targets)) < len(targets):
        raise InputValueError(Message("feature-twice"))
    if targets and schema.has_available:
        raise InputValueError(Message("targets-of-present-values"))


def budget_of_moments(shape: MomentShape, budget: PrivacyBudget) -> PrivacyBudget:
    """Return the ρ for the moments; refuse a shape or a budget that allows no steps."""
    if budget.kind is BudgetKind.PURE:
        raise InputValueError(Message("targets-need-delta", budget=budget))
    if not shape.mean:
        raise InputValueError(Message("targets-need-mean"))
    if shape.row_norm is None:
        raise InputValueError(Message("mechanism-needs-row-bound", mechanism="targets"))
    drawable = allowance(budget, GAUSSIAN_LOSS_UNITS[budget.kind]).as_budget
    return drawable.split(RELEASE_SHARE, 1.0 - RELEASE_SHARE)[0]


def has_gaussian_noise(mechanism: Mechanism) -> bool:
    """Return True if every draw of a mechanism under (ε, δ) is Gaussian."""
    return mechanism.loss_units[BudgetKind.APPROXIMATE] is GAUSSIAN_LOSS_UNITS[BudgetKind.APPROXIMATE]


def plan_of_moments(mechanism: Mechanism, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
    """Return the plan of the moments with their share; refuse noise that is not Gaussian."""
    plan = mechanism.plan(shape, budget_of_moments(shape, budget), neighbors)
    if not has_gaussian_noise(plan.mechanism):
        raise InputValueError(Message("targets-need-gaussian-noise", mechanism=plan.mechanism.name))
    return plan
