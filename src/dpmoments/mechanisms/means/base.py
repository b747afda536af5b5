"""The contract of a mechanism for means alone: frozen options, a plan made without data, then one run."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.base import Arithmetic, MomentShape
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_rho
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows

__all__ = ["MeanMechanism", "MeanPlan", "NoisyMean", "rho_of"]


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """What a run releases, in the units in which rows are encoded.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    count : float
        Exact where the number of rows is public, else noisy.
    diagnostics : mapping
        What else the run learned privately; covered by the plan's cost.
    """

    mean: FloatArray
    count: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MeanPlan(ABC):
    """A calibrated mechanism, made without data.

    Attributes
    ----------
    mechanism : MeanMechanism
    shape : MomentShape
    neighbors : Neighbors
    cost : PrivacyBudget
        What :meth:`run` spends.
    """

    mechanism: MeanMechanism
    shape: MomentShape
    neighbors: Neighbors
    cost: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    @abstractmethod
    def run(self, rows: Rows, generator: np.random.Generator) -> NoisyMean:
        """Read the rows and draw the noise: the one step that spends the budget."""

    def check_rows(self, rows: Rows) -> None:
        """Refuse rows that do not have the shape this plan was made for."""
        if rows.n_features != self.shape.n_features:
            raise ValueError(
                f"the plan is for {self.shape.n_features} features and the rows have {rows.n_features}: "
                "make the plan from the same schema"
            )
        if rows.neighbors is not self.neighbors:
            raise ValueError(
                f"the plan is for neighbors={str(self.neighbors)!r} and the rows were opened for {str(rows.neighbors)!r}, which "
                "treats dropped rows otherwise: make both for the same relation"
            )


@dataclass(frozen=True)
class MeanMechanism(ABC):
    """Frozen options of one published estimator of means. Subclasses are dataclasses whose fields are the options."""

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset(Neighbors)
    name: ClassVar[str]
    summary: ClassVar[str]
    source: ClassVar[str]

    @property
    def options(self) -> dict[str, Any]:
        """The options as plain values."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def plan(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors | str) -> MeanPlan:
        """Calibrate to ``budget`` without reading data.

        Raises
        ------
        ValueError
            If the mechanism cannot serve this kind of budget, relation or shape.
        """
        neighbors = Neighbors.of(neighbors)
        if budget.kind not in self.budget_kinds:
            kinds = ", ".join(sorted(map(str, self.budget_kinds)))
            raise ValueError(f"means by {self.name!r} cannot spend a budget of {budget}: give it one of kind {kinds}")
        if neighbors not in self.supported_neighbors:
            known = " or ".join(repr(str(relation)) for relation in sorted(self.supported_neighbors))
            raise ValueError(f"means by {self.name!r} are not defined for neighbors={str(neighbors)!r}: use {known}")
        if shape.n_rows == 0:
            raise ValueError("a table that is publicly empty has no mean")
        return self.calibrate(shape, budget, neighbors)

    @abstractmethod
    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> MeanPlan:
        """Make the plan; ``plan`` has already checked what the class attributes promise."""

    def require_positive(self, *names: str) -> None:
        """Raise unless the options named are positive finite numbers, or None."""
        for name in names:
            value = getattr(self, name)
            if value is not None and not (
                not isinstance(value, bool) and isinstance(value, int | float) and 0.0 < value < math.inf
            ):
                raise ValueError(f"{name}={value!r} must be a positive finite number")

    def known_radius(self, radius: float | None, shape: MomentShape) -> float:
        """The public bound on the mean: as given, or 1 for rows in the unit ball."""
        if radius is not None:
            return radius
        if shape.row_norm is None:
            raise ValueError(
                f"means by {self.name!r} need a public bound on the mean: give radius, or use variance-aware"
            )
        return shape.row_norm

    def known_scale(self, scale: float | None, shape: MomentShape) -> float:
        """The public bound on a standard deviation: as given, or 1/√d for rows in the unit ball."""
        if scale is not None:
            return scale
        if shape.row_norm is None:
            raise ValueError(
                f"means by {self.name!r} need a public bound on the standard deviation: give scale, or use variance-aware"
            )
        return shape.row_norm / math.sqrt(shape.n_features)


def rho_of(budget: PrivacyBudget) -> float:
    """ρ of a zCDP budget, or the largest ρ that implies an (ε, δ) budget."""
    return budget.rho if budget.kind is BudgetKind.ZCDP else zcdp_rho(budget.epsilon, budget.delta)
