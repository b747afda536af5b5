"""Noise added to every coordinate of a query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import rounded_up
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves.composed import PrivacyCurve, discrete_laplace_delta, laplace_delta
from dpmoments.privacy.distances import Norm, Sensitivity
from dpmoments.privacy.laws.base import Answer, DrawLaw, attains, pure_loss

_ROUNDING = 1e-6
"""Relative excess of the scale off the diagonal that is rounding."""


@dataclass(frozen=True)
class GaussianLaw(DrawLaw):
    """Normal noise, of integers or of reals: ρ = Δ²/(2σ²), σ = ``scale``."""

    scale: float

    is_gaussian: ClassVar[bool] = True
    norm: ClassVar[Norm] = Norm.L2

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        del claim
        if unit not in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
            raise self.refused(unit)
        if unit is LossUnit.GAUSSIAN_RHO and min(self.lattice_scales, default=math.inf) < unit.least_lattice_scale:
            raise InputValueError(Message("noise-too-small-for-lattice"))
        return Loss(unit, Fraction(sensitivity.value) ** 2 / Fraction(self.scale) ** 2 / 2)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        del sensitivity
        return ()


@dataclass(frozen=True)
class DiscreteGaussian(GaussianLaw):
    """Independent discrete Gaussian noise on integers.

    ρ = Δ²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4).

    On a symmetric matrix each entry of the upper triangle has separate noise, σ on the diagonal and ``off_diagonal_scale`` ≥
    σ/√2 off it: then Σ (Δ_ij/σ_ij)² ≤ ‖Δ‖_F²/σ². For a vector that is None. σ = ``scale`` is in units of the query.
    """

    off_diagonal_scale: float | None = None

    on_lattice: ClassVar[bool] = True
    name: ClassVar[str] = "discrete-gaussian"

    @property
    def answers(self) -> Answer:
        return Answer.VECTOR if self.off_diagonal_scale is None else Answer.MATRIX

    @property
    def lattice_scales(self) -> tuple[float, ...]:
        return (self.scale,) if self.off_diagonal_scale is None else (self.scale, self.off_diagonal_scale)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        if (
            self.off_diagonal_scale is not None
            and 2 * Fraction(self.off_diagonal_scale) ** 2 < Fraction(self.scale) ** 2
        ):
            raise InputValueError(Message("noise-off-diagonal"))
        return super()._loss(sensitivity, unit, claim)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        # off the diagonal no more noise than the Frobenius norm asks for
        beside = self.off_diagonal_scale
        least = beside is not None and beside <= self.scale * math.sqrt(0.5) * (1.0 + _ROUNDING)
        return (size == 1 or least) and attains(sensitivity)


@dataclass(frozen=True)
class GaussianDraw(GaussianLaw):
    """Normal noise drawn in floating point.

    σ on every entry, or σ on and σ/√2 off the diagonal of a symmetric matrix.

    The losses are as for :class:`DiscreteGaussian`; idealized.
    """

    symmetric: bool = False

    name: ClassVar[str] = "gaussian"

    @property
    def answers(self) -> Answer:
        return Answer.MATRIX if self.symmetric else Answer.VECTOR

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return (size == 1 or self.symmetric) and attains(sensitivity)


@dataclass(frozen=True)
class DiscreteLaplace(DrawLaw):
    """Independent discrete Laplace noise on integers: ε = Δ₁/b.

    On a symmetric matrix, it is on the upper triangle.
    """

    scale: float

    on_lattice: ClassVar[bool] = True
    name: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[Norm] = Norm.L1

    @property
    def answers(self) -> Answer:
        return Answer.EITHER

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        del claim
        return pure_loss(self, Fraction(sensitivity.value) / Fraction(self.scale), unit)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        shift = math.floor(sensitivity.value)  # of integers
        delta = partial(discrete_laplace_delta, shift=shift, scale=self.scale)
        return (PrivacyCurve(delta, rounded_up(Fraction(shift) / Fraction(self.scale))),)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return size == 1 and attains(sensitivity)


@dataclass(frozen=True)
class NormDraw(DrawLaw):
    """Noise on a symmetric integer matrix, rounded to its lattice.

    Its log density falls by at most rate·‖X‖ under a shift X.

    ε = rate·Δ, Δ the sensitivity in that norm. ``rate`` is c, for a matrix in encoded units; the query is in units of
    2^(−2·bits) of those.
    """

    rate: float
    bits: int

    on_lattice: ClassVar[bool] = True

    @property
    def answers(self) -> Answer:
        return Answer.MATRIX

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None) -> Loss:
        del claim
        return pure_loss(self, self._epsilon(sensitivity), unit)

    def _epsilon(self, sensitivity: Sensitivity) -> Fraction:
        return Fraction(self.rate) / (1 << 2 * self.bits) * Fraction(sensitivity.value)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        loss = rounded_up(self._epsilon(sensitivity))
        return (PrivacyCurve(partial(laplace_delta, loss=loss), loss),)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return size == 1 and attains(sensitivity)


@dataclass(frozen=True)
class MatrixLaplaceDraw(NormDraw):
    """Difference of two Wisharts: the nuclear norm."""

    name: ClassVar[str] = "matrix-laplace"
    norm: ClassVar[Norm] = Norm.NUCLEAR


@dataclass(frozen=True)
class IsotropicDraw(NormDraw):
    """Density ∝ exp(−rate·‖N‖_F): the Frobenius norm."""

    name: ClassVar[str] = "isotropic"
    norm: ClassVar[Norm] = Norm.L2
