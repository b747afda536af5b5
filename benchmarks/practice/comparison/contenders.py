"""What competes: the default as it was, the default as it is, and any mechanism with any repair by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dpmoments as dpm
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.repair import Repair
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors

BEFORE, NOW = "before", "now"
ADDITIVE = ("matrix-laplace", "isotropic", "gaussian", "laplace")
"""Among which the default of version 0.1 chose."""


@dataclass(frozen=True)
class Cell:
    epsilon: float
    delta: float
    neighbors: str

    @property
    def budget(self) -> PrivacyBudget:
        return PrivacyBudget.of(epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class Contender:
    """How a table is released.

    `name` is ``before``: the additive mechanism of least expected error with the spectral repair, the default of version
    0.1; ``now``: whatever a release does by default; or a mechanism of the registry, alone (with the default repair) or with
    one, as in ``gaussian/shrink``.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name in (BEFORE, NOW):
            return
        mechanism, _, repair = self.name.partition("/")
        make_mechanism(mechanism)
        if repair:
            Repair.of(repair)

    def options(self, schema: dpm.Schema, n_rows: int, cell: Cell) -> dict[str, Any] | None:
        """Arguments of :func:`dpmoments.release`; None where the mechanism has nothing for that budget or schema."""
        if self.name == NOW:
            return asked(cell, cell.budget)
        neighbors = Neighbors.of(cell.neighbors)
        shape = MomentShape.of(schema, mean=True, n_rows=n_rows if neighbors.table_size_is_public else None)
        name, _, repair = self.name.partition("/")
        if self.name == BEFORE:
            repair = Repair.SPECTRAL
        plans = dict[Mechanism, Plan]()
        for mechanism in map(make_mechanism, ADDITIVE if self.name == BEFORE else [name]):
            plan = planned(mechanism, shape, cell)
            if plan is not None:
                plans[mechanism] = plan
        if not plans:
            return None
        chosen = min(plans, key=lambda mechanism: plans[mechanism].expected_error or float("inf"))
        options = asked(cell, spent(chosen, cell.budget)) | {"mechanism": chosen}
        return options | {"repair": repair} if repair else options


def asked(cell: Cell, budget: PrivacyBudget) -> dict[str, Any]:
    return {"epsilon": budget.epsilon, "delta": budget.delta, "neighbors": cell.neighbors}


def spent(mechanism: Mechanism, budget: PrivacyBudget) -> PrivacyBudget:
    """What a mechanism spends of an (ε, δ) budget: ε alone, where it knows no δ."""
    pure = budget.kind is BudgetKind.APPROXIMATE and BudgetKind.APPROXIMATE not in mechanism.budget_kinds
    return PrivacyBudget.pure(budget.epsilon) if pure else budget


def planned(mechanism: Mechanism, shape: MomentShape, cell: Cell) -> Plan | None:
    try:
        return mechanism.plan(shape, spent(mechanism, cell.budget), cell.neighbors)
    except ValueError:
        return None
