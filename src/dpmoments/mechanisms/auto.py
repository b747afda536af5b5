"""Auto: standardized with bounds and a mean, else the additive mechanism of least error."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message
from dpmoments.mechanisms.additive import Gaussian, Isotropic, Laplace, MatrixLaplace
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.standardized import Standardized
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors

_CANDIDATES: tuple[Mechanism, ...] = (MatrixLaplace(), Isotropic(), Gaussian(), Laplace())


@dataclass(frozen=True)
class Auto(Mechanism):
    """A good mechanism for the budget and the schema; the choice reads no data.

    Where every column has bounds and the mean is released, that is :class:`~dpmoments.mechanisms.Standardized`. Otherwise
    (without the mean, or for rows in the unit ball) it is the additive mechanism of least expected error on the Gram matrix.

    Under an (ε, δ) budget the pure additive mechanisms are candidates at ε: in few dimensions, or at a very small δ, matrix
    Laplace or isotropic noise is smaller than Gaussian noise; the release then states that it spent pure ε. If columns have scale
    ranges in place of bounds, it is :class:`~dpmoments.mechanisms.CoinPress`; for one column without bounds, if it also has no
    scale range or the budget is pure, :class:`~dpmoments.mechanisms.LogScaleHistogram`.

    Parameters
    ----------
    rule : {"practice", "least-error"}
        ``"least-error"``: always the additive mechanism with the least expected error, at the public bounds.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> from dpmoments import Numeric, Schema
    >>> shape = MomentShape.of(Schema(Numeric("age", 0, 100), Numeric("height", 100, 220)), mean=True)
    >>> Auto().plan(shape, PrivacyBudget.pure(1.0), "add_remove").mechanism.name
    'standardized'
    >>> Auto().plan(MomentShape(13), PrivacyBudget.pure(1.0), "replace_one").mechanism.name
    'matrix-laplace'
    >>> Auto().plan(MomentShape(2), PrivacyBudget.pure(1.0), "replace_one").mechanism.name
    'isotropic'
    >>> Auto().plan(MomentShape(50), PrivacyBudget.approximate(1.0, 1e-6), "replace_one").mechanism.name
    'gaussian'
    """  # language: ok

    rule: Literal["practice", "least-error"] = "practice"

    takes_weights: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True  # the mechanism chosen does
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    summary: ClassVar[str] = (
        "standardized where columns have bounds, else the additive mechanism of least error; reads no data"
    )
    source: ClassVar[str] = "this library"

    def __post_init__(self) -> None:
        check_one_of("rule", self.rule, ("practice", "least-error"))

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        if _one_column_without_bounds(shape, budget):
            make_mechanism("log-scale-histogram").check_support(shape, budget, neighbors)
        elif shape.row_norm is not None or shape.rough_scale is None:
            super().check_support(shape, budget, neighbors)
        elif budget.kind is BudgetKind.PURE:
            raise InputValueError(
                f"a budget of {budget} needs bounds on every column, and some have a scale range instead (one such "
                "column by itself is allowed). Give rho, or epsilon and delta > 0, or give every column lower and upper"
            )

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        if _one_column_without_bounds(shape, budget):
            return make_mechanism("log-scale-histogram").plan(shape, budget, neighbors)
        if shape.row_norm is None:
            return make_mechanism("coinpress").plan(shape, budget, neighbors)
        plans, refusals = list[Plan](), list[ValueError]()
        if self.rule == "practice" and shape.coordinates is not None:
            try:
                plan = Standardized().plan(shape, budget, neighbors)
                facts = {"mechanism": plan.mechanism.name, "kind": str(plan.cost.kind)}
                return replace(plan, chosen_because=Message("rough-private-scales", **facts))
            except ValueError as refusal:
                refusals.append(refusal)
        for mechanism in _CANDIDATES:
            spend = budget
            if budget.kind is BudgetKind.APPROXIMATE and BudgetKind.APPROXIMATE not in mechanism.budget_kinds:
                spend = PrivacyBudget.pure(budget.epsilon)
            if spend.kind not in mechanism.budget_kinds:
                continue
            try:
                plans.append(mechanism.plan(shape, spend, neighbors))
            except ValueError as refusal:  # another may do at this budget
                refusals.append(refusal)
        if not plans:
            raise refusals[0]
        plans.sort(key=lambda plan: plan.expected_error or math.inf)
        best, second = plans[0], plans[1] if len(plans) > 1 else None
        because: dict[str, Any] = {"mechanism": best.mechanism.name, "kind": str(best.cost.kind)}
        if second is not None and second.expected_error and best.expected_error:
            because |= {"second": second.mechanism.name, "times": second.expected_error / best.expected_error}
        return replace(best, chosen_because=Message("least-error", **because, **budget.facts))


def _one_column_without_bounds(shape: MomentShape, budget: PrivacyBudget) -> bool:
    """Return True if only LogScaleHistogram works: CoinPress needs a scale, and no pure ε."""
    alone = shape.n_features == 1 and shape.row_norm is None
    return alone and (shape.rough_scale is None or budget.kind is BudgetKind.PURE)
