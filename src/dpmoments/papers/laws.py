"""Draws that only mechanisms of papers make, and their privacy losses.

Wishart draws are private only by their own exact curve. They take a *claim*, the (ε, δ) that the plan states for them, and check
it on the curve: it is never trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, rounded_up
from dpmoments.papers.curves import additive_wishart_delta, raised_wishart_delta, wishart_sampling_delta
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import PrivacyCurve, laplace_delta
from dpmoments.privacy.laws import DrawLaw, GaussianLaw, attains, bounded_range_curve, pure_loss
from dpmoments.privacy.sensitivity import Norm, Sensitivity
from dpmoments.privacy.unit import Neighbors

_STEPS = 10
"""Steps of the power method for a direction that is drawn on its own."""


@dataclass(frozen=True)
class GaussianDraw(GaussianLaw):
    """Normal noise drawn in floating point.

    σ on every entry, or σ on and σ/√2 off the diagonal of a symmetric matrix. The losses are as for
    :class:`DiscreteGaussian`; idealized.
    """

    symmetric: bool = False

    name: ClassVar[str] = "gaussian"

    def fits(self, n_dimensions: int) -> bool:
        return n_dimensions == (2 if self.symmetric else 1)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return (size == 1 or self.symmetric) and attains(sensitivity)


@dataclass(frozen=True)
class Directions(DrawLaw):
    """Unit vectors, direction i with density ∝ exp(t_i uᵀCu).

    If ``projected``, each is orthogonal to those before it. The log-ratio of a draw ranges over an interval of length η
    = tΔ under add-remove, where uᵀCu moves one way for all u, and 2tΔ under replace-one: ε = Σ η_i, and Σ η_i²/8-zCDP.
    The last of d orthogonal directions is fixed by the others and free; in one dimension every direction is.
    """

    temperatures: tuple[float, ...]
    n_features: int
    projected: bool = True

    name: ClassVar[str] = "directions"
    norm: ClassVar[Norm] = Norm.ROW
    dimensions: ClassVar[tuple[int, ...]] = (2,)

    @property
    def n_paid(self) -> int:
        """Number of directions that cost anything."""
        if self.n_features == 1:
            return 0
        return min(len(self.temperatures), self.n_features - 1) if self.projected else len(self.temperatures)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        widths = self._widths(sensitivity)
        if unit is LossUnit.RHO:
            return Loss(unit, sum((width**2 for width in widths), Fraction(0)) / 8)
        return pure_loss(self, sum(widths, Fraction(0)), unit)

    def _widths(self, sensitivity: Sensitivity) -> list[Fraction]:
        sides = 1 if sensitivity.neighbors is Neighbors.ADD_REMOVE else 2
        return [abs(Fraction(t)) * sides * Fraction(sensitivity.value) for t in self.temperatures[: self.n_paid]]

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        return tuple(bounded_range_curve(width) for width in self._widths(sensitivity))

    def expected(self, query: Any) -> FloatArray:
        matrix: FloatArray = np.asarray(query, dtype=np.float64)
        if self.projected:
            return np.linalg.eigh(matrix)[1][:, ::-1][:, : len(self.temperatures)]
        vector = np.eye(len(matrix))[np.argmax(np.diag(matrix))]
        for _ in range(_STEPS):  # each of many directions is drawn by itself, and about the first is enough
            longer = matrix @ vector
            if not (length := float(np.linalg.norm(longer))) > 0.0:
                break
            vector = longer / length
        return np.repeat(vector[:, None], len(self.temperatures), axis=1)


@dataclass(frozen=True)
class EigenvalueBound(DrawLaw):
    """Lower bound on the smallest eigenvalue.

    Laplace noise, an allowance subtracted, rounded down. ε = Δ/scale. The δ is not for the draw, which is pure, but for
    later draws that rely on it: the bound is too high with probability ½e^{−allowance/scale}.
    """

    scale: float
    allowance: float

    delta_is_of_bound: ClassVar[bool] = True
    name: ClassVar[str] = "eigenvalue-bound"
    norm: ClassVar[Norm] = Norm.L1
    dimensions: ClassVar[tuple[int, ...]] = (0,)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
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

    def expected(self, query: Any) -> float:
        return max(0.0, float(query) - self.allowance)


def _exact_curve(delta: Callable[[float], float]) -> tuple[PrivacyCurve, ...]:
    """Return a curve for ε ≥ 0 only, whose losses have no end."""
    return (PrivacyCurve(delta, math.inf),)


def _padded(query: Any, least: float, padding: float) -> FloatArray:
    """Return a matrix whose eigenvalues are raised to ``least`` and then padded."""
    values, vectors = np.linalg.eigh(np.asarray(query, dtype=np.float64))
    return np.asarray((vectors * (np.maximum(values, least) + padding)) @ vectors.T)


@dataclass(frozen=True)
class _ClaimedDraw(DrawLaw):
    """Draw of a symmetric matrix whose cost is a claimed (ε, δ), checked on its exact curve."""

    dimensions: ClassVar[tuple[int, ...]] = (2,)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        raise self.refused(unit)

    def _claimed_loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget) -> Loss:
        if unit is not LossUnit.EPSILON_DELTA or claim.kind is not BudgetKind.APPROXIMATE:
            raise self.refused(unit)
        (curve,) = self.curves(sensitivity)
        if not curve.delta(claim.epsilon) <= claim.delta:
            raise InputValueError(
                f"a draw of {self.name} costs more than the plan claims: its exact δ is above the stated one"
            )
        return Loss(unit, Fraction(claim.epsilon), Fraction(claim.delta))


@dataclass(frozen=True)
class AdditiveWishartDraw(_ClaimedDraw):
    """Wishart(s²I, k) noise less its mean on a symmetric integer matrix, rounded to its lattice.

    A claimed (ε, δ). ``degrees`` is k, ``scale`` s² for a matrix in encoded units; the query is in units of 2^(−2·bits)
    of those.
    """

    dimension: int
    degrees: int
    scale: float
    bits: int

    on_lattice: ClassVar[bool] = True
    name: ClassVar[str] = "additive-wishart"
    norm: ClassVar[Norm] = Norm.ROW

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        beyond, ratio = self.degrees - self.dimension, self.scale / math.ldexp(sensitivity.value, -2 * self.bits)
        return _exact_curve(lambda epsilon: additive_wishart_delta(epsilon, beyond, ratio, sensitivity.neighbors))

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return sensitivity.neighbors is Neighbors.ADD_REMOVE or size > 1


@dataclass(frozen=True)
class WishartSampling(_ClaimedDraw):
    """One draw around the padded Gram matrix, Wishart or inverse Wishart, rescaled to its mean.

    A claimed (ε, δ).
    """

    degrees: int  # ν
    padding: float  # ψ, added to every eigenvalue
    # A lower bound on the smallest eigenvalue of the matrix before padding, without any one row: 0, or from an
    # `EigenvalueBound` drawn before, one row subtracted
    floor: float = 0.0
    inverse: bool = False

    attained_alone: ClassVar[bool] = True
    name: ClassVar[str] = "wishart-sampling"
    norm: ClassVar[Norm] = Norm.ROW

    @property
    def eigenvalue_floor(self) -> float:
        return self.floor

    def expected(self, query: Any) -> FloatArray:
        return _padded(query, 0.0, self.padding)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        degrees, ratio = self.degrees, (self.padding + self.floor) / sensitivity.value
        return _exact_curve(lambda epsilon: wishart_sampling_delta(epsilon, degrees, ratio, sensitivity.neighbors))

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return self.floor == 0.0 and (sensitivity.neighbors is Neighbors.ADD_REMOVE or size > 1)


@dataclass(frozen=True)
class RaisedWishartSampling(_ClaimedDraw):
    """Draw like :class:`WishartSampling` around a matrix with raised eigenvalues.

    Those below a public number are raised to it first. The draw raises them itself: its loss relies on no bound on the
    eigenvalues of the query.
    """

    degrees: int  # ν
    padding: float  # ψ, added to every eigenvalue
    raised: float  # value to which smaller eigenvalues are raised, before padding
    inverse: bool = False

    name: ClassVar[str] = "raised-wishart-sampling"
    norm: ClassVar[Norm] = Norm.L2

    def expected(self, query: Any) -> FloatArray:
        return _padded(query, self.raised, self.padding)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        degrees, ratio = self.degrees, (self.padding + self.raised) / sensitivity.value
        return _exact_curve(lambda epsilon: raised_wishart_delta(epsilon, degrees, ratio))
