"""Exponential mechanisms: one of finitely many options, or directions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from dpmoments.foundation.values import rounded_up
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves.composed import PrivacyCurve, bounded_range_delta
from dpmoments.privacy.distances import Norm, Sensitivity
from dpmoments.privacy.laws.base import Answer, DrawLaw, pure_loss
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class Choice(DrawLaw):
    """Exponential mechanism over finitely many scores, probability ∝ exp(ε·score/2).

    Its log-ratios range over an interval of length εΔ: ε·Δ, and (εΔ)²/8-zCDP (bounded range, Cesar & Rogers 2021).
    """

    epsilon: float

    name: ClassVar[str] = "choice"
    norm: ClassVar[Norm] = Norm.SCORE

    @property
    def answers(self) -> Answer:
        return Answer.VECTOR

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        del claim
        width = self._width(sensitivity)
        return Loss(unit, width**2 / 8) if unit is LossUnit.RHO else pure_loss(self, width, unit)

    def _width(self, sensitivity: Sensitivity) -> Fraction:
        return Fraction(self.epsilon) * Fraction(sensitivity.value)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        return (_bounded_range_curve(self._width(sensitivity)),)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        del sensitivity, size
        return False


@dataclass(frozen=True)
class Directions(DrawLaw):
    """Unit vectors, direction i with density ∝ exp(t_i uᵀCu).

    If ``projected``, each is orthogonal to those before it.

    The log-ratio of a draw ranges over an interval of length η = tΔ under add-remove, where uᵀCu moves one way for all u, and
    2tΔ under replace-one: ε = Σ η_i, and Σ η_i²/8-zCDP. The last of d orthogonal directions is fixed by the others and free; in
    one dimension every direction is.
    """

    temperatures: tuple[float, ...]
    n_features: int
    projected: bool = True

    name: ClassVar[str] = "directions"
    norm: ClassVar[Norm] = Norm.ROW

    @property
    def n_paid(self) -> int:
        """Number of directions that cost anything."""
        if self.n_features == 1:
            return 0
        return min(len(self.temperatures), self.n_features - 1) if self.projected else len(self.temperatures)

    @property
    def answers(self) -> Answer:
        return Answer.MATRIX

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        del claim
        widths = self._widths(sensitivity)
        if unit is LossUnit.RHO:
            return Loss(unit, sum((width**2 for width in widths), Fraction(0)) / 8)
        return pure_loss(self, sum(widths, Fraction(0)), unit)

    def _widths(self, sensitivity: Sensitivity) -> list[Fraction]:
        sides = 1 if sensitivity.neighbors is Neighbors.ADD_REMOVE else 2
        return [abs(Fraction(t)) * sides * Fraction(sensitivity.value) for t in self.temperatures[: self.n_paid]]

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        return tuple(_bounded_range_curve(width) for width in self._widths(sensitivity))

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        del sensitivity, size
        return False


def _bounded_range_curve(width: Fraction) -> PrivacyCurve:
    reach = rounded_up(width)
    return PrivacyCurve(partial(bounded_range_delta, width=reach), reach)
