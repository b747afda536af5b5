"""Auto: plan every closed-form mechanism that the budget allows and take the one with the least expected error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmoments.mechanisms.base import Mechanism, MomentShape, Plan
from dpmoments.mechanisms.coinpress import CoinPress
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.isotropic import Isotropic
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors

__all__ = ["Auto"]

CANDIDATES: tuple[Mechanism, ...] = (MatrixLaplace(), Isotropic(), Gaussian(), Laplace())


@dataclass(frozen=True)
class Auto(Mechanism):
    """The additive mechanism with the least expected error on the Gram matrix, or CoinPress; the choice reads no data.

    Under an (ε, δ) budget the pure mechanisms are candidates at ε: in few dimensions, or at a very small δ, matrix Laplace or
    isotropic noise is smaller than Gaussian noise; the release then states that it spent ε alone. Where columns give rough
    scales in place of bounds, it is :class:`~dpmoments.mechanisms.CoinPress`.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> Auto().plan(MomentShape(13), PrivacyBudget.pure(1.0), "replace_one").mechanism.name
    'matrix-laplace'
    >>> Auto().plan(MomentShape(2), PrivacyBudget.pure(1.0), "replace_one").mechanism.name
    'isotropic'
    >>> Auto().plan(MomentShape(50), PrivacyBudget.approximate(1.0, 1e-6), "replace_one").mechanism.name
    'gaussian'
    """

    counts_rows: ClassVar[bool] = True  # the mechanism chosen does
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    summary: ClassVar[str] = "the additive mechanism with the least expected error at your budget, chosen without data"
    source: ClassVar[str] = "this library"

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        if shape.row_norm is not None or shape.rough_scale is None:
            super().check_support(shape, budget, neighbors)
        elif budget.kind is BudgetKind.PURE:
            raise ValueError(
                f"a budget of {budget} cannot be spent on columns that give a scale in place of bounds: it needs a bound on "
                "every row. Give rho, or epsilon and delta > 0, or give every column lower and upper"
            )

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        if shape.row_norm is None:
            return CoinPress().plan(shape, budget, neighbors)
        plans, refusals = list[Plan](), list[ValueError]()
        for mechanism in CANDIDATES:
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
        return min(plans, key=lambda plan: plan.expected_error or float("inf"))
