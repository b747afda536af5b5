"""Privacy loss of one draw from each noise distribution.

Both relations, every unit of loss.

A draw's class is its public description. It states the loss for a query of a given sensitivity, and refuses a unit in which its
loss does not add up. Each has its derivation in ``docs/evidence/derivations``, and ``tests/privacy/test_laws.py`` compares each
loss with the exact distribution. Draws that only mechanisms of papers make have
their classes in the wing of papers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.checks import is_whole
from dpmoments.base.errors import InputTypeError, InputValueError, out_of_range
from dpmoments.base.loaded_classes import LoadedClasses
from dpmoments.base.values import is_finite_number, rounded_up
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import (
    PrivacyCurve,
    bounded_range_delta,
    discrete_laplace_delta,
    laplace_delta,
    pure_to_zcdp,
    randomized_response_delta,
)
from dpmoments.privacy.sensitivity import Norm, Sensitivity
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class DrawLaw(ABC):
    """Description of one draw: frozen, plain parameters, registered by name."""

    name: ClassVar[str]
    norm: ClassVar[Norm]
    """Norm in which the query's sensitivity must be stated."""
    dimensions: ClassVar[tuple[int, ...]] = (1,)
    """Dimensions that its query may have: 0 of a number, 1 of a vector, 2 of a symmetric matrix."""

    on_lattice: ClassVar[bool] = False
    """True if its noise is of integers, for integer queries only."""
    is_gaussian: ClassVar[bool] = False
    """True if losses of its draws add up like those of normal noise, before becoming a curve."""
    delta_is_of_bound: ClassVar[bool] = False
    """True if δ is the failure probability of a bound that later draws rely on."""
    attained_alone: ClassVar[bool] = False
    """True if its loss is attained by tables without other rows only."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            name, kind, value = entry.name, entry.type, getattr(self, entry.name)
            stated = f"{name} of a {self.name} draw"
            if value is None and kind == "float | None":
                continue
            if kind == "bool":
                if not isinstance(value, bool):
                    raise InputTypeError(f"{stated} must be true or false")
            elif kind == "int":
                if isinstance(value, bool) or not isinstance(value, int):
                    raise InputTypeError(f"{stated} must be a whole number")
                if value < (0 if name == "bits" else 1) or (name == "bits" and value > _MAX_BITS):
                    raise InputValueError(f"{stated} is out of range")
            else:
                several = isinstance(kind, str) and kind.startswith("tuple")
                if several and not isinstance(value, tuple):
                    raise InputTypeError(f"{stated} must be a tuple")
                values = value if several else (value,)
                if not all(map(is_finite_number, values)):
                    raise InputValueError(f"{stated} must be {'finite numbers' if several else 'a finite number'}")
                if name not in _SIGNED and any(each < 0.0 or (name in _POSITIVE and each == 0.0) for each in values):
                    raise InputValueError(f"{stated} must be {'above 0' if name in _POSITIVE else '0 or above'}")

    def loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget | None = None) -> Loss:
        """Return the privacy loss of a draw, exactly or rounded up."""
        # `claim` is the (ε, δ) that the plan states for the draw, if it has an exact curve instead of a formula.
        if sensitivity.norm is not self.norm:
            raise InputValueError(
                f"{self.name} noise needs a sensitivity in {self.norm}, got one in {sensitivity.norm}"
            )
        return self._loss(sensitivity, unit) if claim is None else self._claimed_loss(sensitivity, unit, claim)

    @abstractmethod
    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss: ...

    def _claimed_loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget) -> Loss:
        raise InputValueError(f"a draw of {self.name} has a price of its own and takes no claim")

    @abstractmethod
    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        """Return privacy curves of the parts of a draw, one after another.

        None if no more than its price is known.

        Gaussian draws have none: its losses add up before they become a curve (``docs/evidence/derivations/privacy-profile.md``).
        """

    @property
    def lattice_scales(self) -> tuple[float, ...]:
        """Scales of discrete normal noise, in lattice units; empty for other noise."""
        return ()

    @property
    def eigenvalue_floor(self) -> float:
        """Lower bound on the query's smallest eigenvalue that the loss relies on; 0 for none."""
        return 0.0

    def expected(self, query: Any) -> Any:
        """Return the mean or most likely answer to a query, for forecasts."""
        return np.asarray(query)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        """Return True if some neighboring tables attain all the loss of a draw of ``size`` numbers."""
        return False

    def fits(self, n_dimensions: int) -> bool:
        """Return True if its query may have this number of dimensions."""
        return n_dimensions in self.dimensions

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise ValueError if its noise, and so its loss, is not for a query of that shape."""
        if not self.fits(len(shape)) or len(set(shape)) > 1 or 0 in shape:
            raise InputValueError(f"a draw of {self.name} is not for a query of shape {shape}")
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in _SIZES and value != shape[0]:
                raise InputValueError(f"a draw of {self.name} for {value} rows is not for a query of shape {shape}")
            if isinstance(value, tuple) and entry.name != "blocks" and not 0 < len(value) <= shape[0]:
                raise InputValueError(
                    f"a draw of {self.name} with {len(value)} {entry.name} is not for a query of shape {shape}"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {"name": self.name} | asdict(self)

    def refused(self, unit: LossUnit) -> ValueError:
        """Return the error for a unit in which its loss does not add up."""
        return InputValueError(f"a loss of {self.name} is not counted in {unit}")


def pure_loss(law: DrawLaw, epsilon: Fraction, unit: LossUnit) -> Loss:
    """Return the loss of a draw whose log-ratio is at most ``epsilon``, in any unit."""
    if unit in (LossUnit.EPSILON, LossUnit.EPSILON_DELTA):
        return Loss(unit, epsilon)
    if unit is LossUnit.RHO:
        return Loss(unit, Fraction(pure_to_zcdp(math.nextafter(float(epsilon), math.inf))))
    raise law.refused(unit)


# Sensitivities that some two neighbors attain. ``tests/privacy/test_sensitivity.py`` has them.
_ATTAINED = ("count", "count_l1", "gram_frobenius", "gram_nuclear", "sums_in_body")


def attains(sensitivity: Sensitivity) -> bool:
    """Return True if some two neighboring tables attain the sensitivity."""
    given = dict(sensitivity.arguments)
    if sensitivity.neighbors is Neighbors.REPLACE_ONE and (w := given.get("augmentation", 0.0)):
        # two rows orthogonal beside the constant: in two dimensions or more, if w² is no more than ‖x‖² can be
        return sensitivity.name in _ATTAINED and given["n_features"] > 1 and w * w <= given.get("row_square", 1.0)  # type: ignore[operator]
    return sensitivity.name in _ATTAINED


_MAX_BITS = 64
_POSITIVE = ("scale", "scales", "off_diagonal_scale", "rate", "delta")
_SIGNED = ("temperatures",)
_SIZES = ("dimension", "n_features")
"""Parameters that are the number of rows of the query."""


_ROUNDING = 1e-6
"""Relative excess of the scale off the diagonal that is rounding."""


@dataclass(frozen=True)
class GaussianLaw(DrawLaw):
    """Normal noise, of integers or of reals: ρ = Δ²/(2σ²), σ = ``scale``."""

    scale: float

    is_gaussian: ClassVar[bool] = True
    norm: ClassVar[Norm] = Norm.L2

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        if unit not in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
            raise self.refused(unit)
        if min(self.lattice_scales, default=math.inf) < unit.least_lattice_scale:
            raise InputValueError(
                "the noise is too small in lattice units for its composition to be proven: use a finer lattice"
            )
        return Loss(unit, Fraction(sensitivity.value) ** 2 / Fraction(self.scale) ** 2 / 2)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
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

    def fits(self, n_dimensions: int) -> bool:
        return n_dimensions == (1 if self.off_diagonal_scale is None else 2)

    @property
    def lattice_scales(self) -> tuple[float, ...]:
        return (self.scale,) if self.off_diagonal_scale is None else (self.scale, self.off_diagonal_scale)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        if (
            self.off_diagonal_scale is not None
            and 2 * Fraction(self.off_diagonal_scale) ** 2 < Fraction(self.scale) ** 2
        ):
            raise InputValueError("noise off the diagonal must be at least 1/√2 of that on it")
        return super()._loss(sensitivity, unit)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        # off the diagonal no more noise than the Frobenius norm asks for
        beside = self.off_diagonal_scale
        least = beside is not None and beside <= self.scale * math.sqrt(0.5) * (1.0 + _ROUNDING)
        return (size == 1 or least) and attains(sensitivity)


@dataclass(frozen=True)
class LatticeNormLaw(DrawLaw):
    """Noise on integers with probability ∝ exp(−‖k‖/b): ε = Δ/b.

    In its norm each move is a sum of ‖k‖ moves of length 1, so that it has the curve of one integer that moves by Δ.
    """

    scale: float

    on_lattice: ClassVar[bool] = True

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        return pure_loss(self, Fraction(sensitivity.value) / Fraction(self.scale), unit)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        shift = math.floor(sensitivity.value)  # of integers
        delta = partial(discrete_laplace_delta, shift=shift, scale=self.scale)
        return (PrivacyCurve(delta, rounded_up(Fraction(shift) / Fraction(self.scale))),)


@dataclass(frozen=True)
class DiscreteLaplace(LatticeNormLaw):
    """Independent discrete Laplace noise on integers (of a matrix: its triangle): the ℓ1 norm."""

    name: ClassVar[str] = "discrete-laplace"
    norm: ClassVar[Norm] = Norm.L1
    dimensions: ClassVar[tuple[int, ...]] = (1, 2)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return size == 1 and attains(sensitivity)


@dataclass(frozen=True)
class KNorm(LatticeNormLaw):
    """K-norm noise (Hardt & Talwar 2010): the gauge of a box times cross-polytopes.

    ``blocks`` are the sizes of the blocks of last coordinates: ‖k‖ is the largest of |k| over the coordinates before them and of
    Σ|k| over each block (``docs/evidence/derivations/k-norm.md``).
    """

    blocks: tuple[int, ...] = ()

    name: ClassVar[str] = "k-norm"
    norm: ClassVar[Norm] = Norm.BODY

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(is_whole(size) and size >= 1 for size in self.blocks):
            raise InputValueError(f"blocks of a {self.name} draw is out of range")

    def check_shape(self, shape: tuple[int, ...]) -> None:
        super().check_shape(shape)
        if sum(self.blocks) > shape[0]:
            raise InputValueError(f"a draw of {self.name} is not for a query of shape {shape}")
        # Below, few sizes that the sampler proposes are accepted; above, they may leave int64.
        least, most = shape[0] / 4.0, 2.0**52 / (shape[0] + 1)
        if not least <= self.scale <= most:
            raise out_of_range("scale", self.scale, f"between {least:g} and {most:g}")

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        if sensitivity.blocks != self.blocks:  # a bound in the gauge of another body
            raise InputValueError(f"blocks of a {self.name} draw is out of range")
        return super()._loss(sensitivity, unit)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        return attains(sensitivity)


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
    dimensions: ClassVar[tuple[int, ...]] = (2,)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
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


@dataclass(frozen=True)
class Choice(DrawLaw):
    """Exponential mechanism over finitely many scores, probability ∝ exp(ε·score/2).

    Its log-ratios range over an interval of length εΔ: ε·Δ, and (εΔ)²/8-zCDP (bounded range, Cesar & Rogers 2021).
    """

    epsilon: float

    name: ClassVar[str] = "choice"
    norm: ClassVar[Norm] = Norm.SCORE

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        width = self._width(sensitivity)
        return Loss(unit, width**2 / 8) if unit is LossUnit.RHO else pure_loss(self, width, unit)

    def _width(self, sensitivity: Sensitivity) -> Fraction:
        return Fraction(self.epsilon) * Fraction(sensitivity.value)

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        return (bounded_range_curve(self._width(sensitivity)),)

    def expected(self, query: Any) -> int:
        return int(np.argmax(query))


def bounded_range_curve(width: Fraction) -> PrivacyCurve:
    """Return the curve of a draw whose log-ratios are in an interval of this length."""
    reach = rounded_up(width)
    return PrivacyCurve(partial(bounded_range_delta, width=reach), reach)


@dataclass(frozen=True)
class LevelSelection(DrawLaw):
    """Names whose number of rows plus noise is above a threshold, with this sum.

    It costs (ε, δ) for each number that changes by 1. The threshold is the least for which a name of one row comes out with
    probability δ or less; the probability of publishing a name is then the largest possible (Desfontaines, Voss, Gipson &
    Mandayam 2022; ``docs/evidence/derivations/found-levels.md``).
    """

    epsilon: float
    delta: float

    name: ClassVar[str] = "level-selection"
    norm: ClassVar[Norm] = Norm.NAMES
    dimensions: ClassVar[tuple[int, ...]] = (0,)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.weights  # or their refusal

    @property
    def weights(self) -> tuple[int, ...]:
        """Whole weights of the noise 0, …, k.

        Each is at most e^ε times the next, and the last at most δ times the sum over −k, …, k.
        """
        return _threshold_weights(self.epsilon, self.delta)

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        if unit is not LossUnit.EPSILON_DELTA:
            raise self.refused(unit)
        moved = Fraction(sensitivity.value)
        return Loss(unit, moved * Fraction(self.epsilon), moved * Fraction(self.delta))

    def curves(self, sensitivity: Sensitivity) -> tuple[PrivacyCurve, ...]:
        return (PrivacyCurve(self._delta_at, math.inf),) * int(sensitivity.value)

    def _delta_at(self, epsilon: float) -> float:
        return min(self.delta + randomized_response_delta(epsilon, self.epsilon), 1.0)

    def rows_for(self, probability: float) -> int:
        """Return from how many rows on a name has this probability, 1/2 or more, of being published."""
        missed = list(accumulate(reversed(self.weights)))  # of noise −k, …, 0, over the sum of all weights
        missing = bisect(missed, (1.0 - probability) * (2 * missed[-1] - self.weights[0]))
        return 2 * len(self.weights) - 1 - missing


_BITS, _LEAST_WEIGHT, _MOST_STEPS = 128, 1 << 64, 1 << 17
"""Bits of e^ε, the weight of the rarest noise, and the largest threshold."""


@lru_cache(maxsize=64)
def _threshold_weights(epsilon: float, delta: float) -> tuple[int, ...]:
    (rate, unit), (share, whole) = min(epsilon, 40.0).as_integer_ratio(), delta.as_integer_ratio()
    term, order = 1 << _BITS, 0
    factor = term  # the series of e^ε, every term rounded down
    while term:
        order += 1
        term = term * rate // (unit * order)
        factor += term
    weights, total = [_LEAST_WEIGHT], _LEAST_WEIGHT  # from k down, and their sum on both sides of 0
    while share * total < whole * _LEAST_WEIGHT:
        if len(weights) > _MOST_STEPS:
            raise out_of_range("epsilon", epsilon, f"large enough to publish a name that {_MOST_STEPS:,} rows have")
        total += weights[-1]
        weights.append(weights[-1] * factor >> _BITS)
        total += weights[-1]
    return tuple(reversed(weights))


LAWS: Mapping[str, type[DrawLaw]] = LoadedClasses(
    {
        "additive-wishart": "dpmoments.papers.laws:AdditiveWishartDraw",
        "choice": "dpmoments.privacy.laws:Choice",
        "directions": "dpmoments.papers.laws:Directions",
        "discrete-gaussian": "dpmoments.privacy.laws:DiscreteGaussian",
        "discrete-laplace": "dpmoments.privacy.laws:DiscreteLaplace",
        "eigenvalue-bound": "dpmoments.papers.laws:EigenvalueBound",
        "gaussian": "dpmoments.papers.laws:GaussianDraw",
        "isotropic": "dpmoments.privacy.laws:IsotropicDraw",
        "k-norm": "dpmoments.privacy.laws:KNorm",
        "level-selection": "dpmoments.privacy.laws:LevelSelection",
        "matrix-laplace": "dpmoments.privacy.laws:MatrixLaplaceDraw",
        "raised-wishart-sampling": "dpmoments.papers.laws:RaisedWishartSampling",
        "wishart-sampling": "dpmoments.papers.laws:WishartSampling",
    }
)
"""Every kind of draw by name. Those of papers are loaded on first use."""
