"""Random matrices that are private by an exact (ε, δ) curve.

One of them relies on a bound, which is here too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import ClassVar

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import rounded_up
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves.composed import PrivacyCurve, laplace_delta
from dpmoments.privacy.curves.wishart import additive_wishart_delta, raised_wishart_delta, wishart_sampling_delta
from dpmoments.privacy.distances import Norm, Sensitivity
from dpmoments.privacy.laws.base import Answer, DrawLaw
from dpmoments.privacy.unit import Neighbors

# A plan that is run many times asks for the same point of a curve every time.
_additive_wishart_delta = lru_cache(maxsize=256)(additive_wishart_delta)
_raised_wishart_delta = lru_cache(maxsize=256)(raised_wishart_delta)
_wishart_sampling_delta = lru_cache(maxsize=256)(wishart_sampling_delta)


@dataclass(frozen=True)
class EigenvalueBound(DrawLaw):
    """Lower bound on the smallest eigenvalue.

    Laplace noise, an allowance subtracted, rounded down.

    ε = Δ/scale. The δ is not for the draw, which is pure, but for later draws that rely on it: the bound is too high with
    probability ½e^{−allowance/scale}.
    """

    scale: float
    allowance: float

    delta_is_of_bound: ClassVar[bool] = True
    name: ClassVar[str] = "eigenvalue-bound"
    norm: ClassVar[Norm] = Norm.L1

    @property
    def answers(self) -> Answer:
        return Answer.NUMBER

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        del claim
        if unit is not LossUnit.EPSILON_DELTA:
            raise self.refused(unit)
        # The quotient rounded down: at 700 its last place is 2⁻⁴³ of the failure. Two least floats for where those are coarse.
        exponent = math.nextafter(self.allowance / self.scale, 0.0)
        failure = 0.5 * math.exp(-exponent) * (1.0 + 2.0**-48) + 1e-323
        return Loss(unit, Fraction(sensitivity.value) / Fraction(self.scale), Fraction(failure))

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        """Return the curve of the draw itself, without the δ for later draws that rely on it."""
        loss = rounded_up(Fraction(sensitivity.value) / Fraction(self.scale))
        return (PrivacyCurve(partial(laplace_delta, loss=loss), loss),)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        del sensitivity, size
        return False


@dataclass(frozen=True)
class AdditiveWishartDraw(DrawLaw):
    """Wishart(s²I, k) noise less its mean on a symmetric integer matrix, rounded to its lattice.

    A claimed (ε, δ).

    ``degrees`` is k, ``scale`` s² for a matrix in encoded units; the query is in units of 2^(−2·bits) of those.
    """

    dimension: int
    degrees: int
    scale: float
    bits: int

    claims: ClassVar[bool] = True
    on_lattice: ClassVar[bool] = True
    name: ClassVar[str] = "additive-wishart"
    norm: ClassVar[Norm] = Norm.ROW

    @property
    def answers(self) -> Answer:
        return Answer.MATRIX

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        return _claimed(self, claim, unit, sensitivity)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        beyond, ratio = self.degrees - self.dimension, self.scale / math.ldexp(sensitivity.value, -2 * self.bits)
        return _exact_curve(lambda epsilon: _additive_wishart_delta(epsilon, beyond, ratio, sensitivity.neighbors))

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return sensitivity.neighbors is Neighbors.ADD_REMOVE or size > 1


@dataclass(frozen=True)
class WishartSampling(DrawLaw):
    """One draw around the padded Gram matrix, Wishart or inverse Wishart, rescaled to its mean.

    A claimed (ε, δ).

    Attributes
    ----------
    degrees : int
        ν.
    padding : float
        ψ, added to every eigenvalue.
    floor : float
        A lower bound on the smallest eigenvalue of the matrix before padding, without any one row: 0, or from an
        :class:`EigenvalueBound` drawn before, one row subtracted.
    """

    degrees: int
    padding: float
    floor: float = 0.0
    inverse: bool = False

    claims: ClassVar[bool] = True
    attained_alone: ClassVar[bool] = True
    name: ClassVar[str] = "wishart-sampling"
    norm: ClassVar[Norm] = Norm.ROW

    @property
    def answers(self) -> Answer:
        return Answer.MATRIX

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        return _claimed(self, claim, unit, sensitivity)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        degrees, ratio = self.degrees, (self.padding + self.floor) / sensitivity.value
        return _exact_curve(lambda epsilon: _wishart_sampling_delta(epsilon, degrees, ratio, sensitivity.neighbors))

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return self.floor == 0.0 and (sensitivity.neighbors is Neighbors.ADD_REMOVE or size > 1)


@dataclass(frozen=True)
class RaisedWishartSampling(DrawLaw):
    """Draw like :class:`WishartSampling` around a matrix with raised eigenvalues.

    Those below a public number are raised to it first.

    The draw raises them itself: its loss relies on no bound on the eigenvalues of the query.

    Attributes
    ----------
    degrees : int
        ν.
    padding : float
        ψ, added to every eigenvalue.
    raised : float
        Value to which smaller eigenvalues are raised, before padding.
    """

    degrees: int
    padding: float
    raised: float
    inverse: bool = False

    claims: ClassVar[bool] = True
    name: ClassVar[str] = "raised-wishart-sampling"
    norm: ClassVar[Norm] = Norm.L2

    @property
    def answers(self) -> Answer:
        return Answer.MATRIX

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        return _claimed(self, claim, unit, sensitivity)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        degrees, ratio = self.degrees, (self.padding + self.raised) / sensitivity.value
        return _exact_curve(lambda epsilon: _raised_wishart_delta(epsilon, degrees, ratio))

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        del sensitivity, size
        return False


def _exact_curve(delta: Callable[[float], float]) -> tuple[PrivacyCurve, ...]:
    """Return a curve for ε ≥ 0 only, whose losses have no end."""
    return (PrivacyCurve(delta, math.inf),)


def _claimed(law: DrawLaw, claim: PrivacyBudget | None, unit: LossUnit, sensitivity: Sensitivity) -> Loss:
    if unit is not LossUnit.EPSILON_DELTA or claim is None or claim.kind is not BudgetKind.APPROXIMATE:
        raise law.refused(unit)
    (curve,) = law.curves(sensitivity)
    if not curve.delta(claim.epsilon) <= claim.delta:
        raise InputValueError(Message("draw-above-claim", distribution=law.name))
    return Loss(unit, Fraction(claim.epsilon), Fraction(claim.delta))
