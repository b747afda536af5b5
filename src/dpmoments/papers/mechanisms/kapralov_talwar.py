"""Eigenvectors by the exponential mechanism with subtraction in place of projection.

Source: Kapralov & Talwar 2013.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.messages.message import Message
from dpmoments.papers.laws import Directions
from dpmoments.papers.mechanisms.spectral import (
    Calibration,
    SpectralPlan,
    check_options,
    cut_budget,
    subtracted_cells,
    temperature,
)
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import quadratic_form
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class KapralovTalwarPlan(SpectralPlan):
    """Calibrated :class:`KapralovTalwar`."""

    mechanism: KapralovTalwar

    @property
    def temperatures(self) -> list[float]:
        """Temperature t of every draw."""
        if self.direction_budget is None:
            return [0.0] * self.rank
        parts = self.direction_budget.split(*[1.0] * self.rank)
        return [temperature(part, self.neighbors, self.mechanism.calibration) for part in parts]

    def mean_squares(self, eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
        return subtracted_cells(eigenvalues, temperatures, variance)

    def draw_directions(
        self, gram: FloatArray, eigenvalues: FloatArray, privacy_filter: PrivacyFilter
    ) -> tuple[FloatArray, list[float]]:
        directions = np.empty((len(gram), self.rank))
        temperatures = self.temperatures
        remaining = gram
        for step, strength in enumerate(temperatures):
            law = Directions((strength,), len(gram), projected=False)
            drawn = privacy_filter.draw(
                Message("direction", direction=step + 1), law, remaining, quadratic_form(self.neighbors)
            )[:, 0]
            direction = drawn / np.linalg.norm(drawn)  # the filter has rounded it
            directions[:, step] = direction
            remaining = remaining - eigenvalues[step] * np.outer(direction, direction)
        return directions, temperatures


@dataclass(frozen=True)
class KapralovTalwar(Mechanism):
    """Release Σ λ̂_i θ̂_i θ̂_iᵀ, each direction drawn from the whole sphere.

    It is drawn after subtracting the earlier terms.

    As compared by Amin et al. (2019): noisy eigenvalues drawn once, direction i with density ∝ exp(t θᵀC_iθ), C_1 = G and
    C_{i+1} = C_i − λ̂_i θ̂_i θ̂_iᵀ, budget in equal parts. The directions are not orthogonal, and what one draw misses stays in
    the matrix. Mostly for comparison: :class:`IterativeEigenvectors` does better on most tables. Each direction takes one
    eigendecomposition.

    **Privacy.** ε-DP or ρ-zCDP by composition: given earlier outputs, C_i differs from G by a constant, so that every score
    θᵀC_iθ has the sensitivity of θᵀGθ. The directions come from a floating-point sampler on the sphere: arithmetic
    ``idealized``.

    Parameters
    ----------
    rank : int, optional
        Number of directions. Default: all.
    calibration : {"tight", "paper"}
        ``"paper"``: sensitivity 2 of both eigenvalues and θᵀGθ under either relation, for comparison.
    sum_share, eigenvalue_share : float, optional
        As for :class:`IterativeEigenvectors`.

    Examples
    --------
    >>> plan = KapralovTalwar(rank=3).plan(MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> plan.details["rank"]
    3
    """

    rank: int | None = None
    calibration: Calibration = "tight"
    sum_share: float | None = None
    eigenvalue_share: float | None = None

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE, BudgetKind.ZCDP})
    summary: ClassVar[str] = "eigenvectors drawn on the sphere, subtracted rather than projected out; for comparison"
    source: ClassVar[str] = "Kapralov & Talwar 2013, as in Amin et al. 2019"

    def __post_init__(self) -> None:
        check_options(self.rank, self.calibration, self.sum_share, self.eigenvalue_share)

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> KapralovTalwarPlan:
        d = shape.n_features
        return KapralovTalwarPlan(
            **cut_budget(
                self,
                shape,
                budget,
                neighbors,
                rank=self.rank,
                n_paid=0 if d == 1 else self.rank or d,
                calibration=self.calibration,
                sum_share=self.sum_share,
                eigenvalue_share=self.eigenvalue_share,
            )
        )
