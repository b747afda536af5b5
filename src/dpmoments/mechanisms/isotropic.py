"""Isotropic noise, density ∝ exp(−c‖N‖_F).

Least error under pure ε and replace-one in two or three dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.mechanisms.additive import (
    AdditivePlan,
    choose_augmentation_about_levels,
    choose_bits,
    noise_dimension,
    row_square_of,
    too_coarse_for_levels,
)
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.lattice_noise import under_law
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.messages.message import Query
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import IsotropicDraw
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class IsotropicPlan(AdditivePlan):
    """Calibrated :class:`Isotropic`; ``rate`` is c."""

    rate: float

    family: ClassVar[str] = "isotropic"
    arithmetic: ClassVar[Arithmetic] = Arithmetic.LATTICE_ROUNDED

    @property
    def cell_variances(self) -> tuple[float, float]:
        diagonal = (_svec_length(self.dimension) + 1) / self.rate**2
        return diagonal, diagonal / 2.0

    @property
    def noise_rate(self) -> float:
        return self.rate

    @property
    def details(self) -> Mapping[str, Any]:
        return {"rate": self.rate, "augmentation": self.augmentation, "lattice_bits": self.bits}

    @property
    def sensitivity(self) -> Sensitivity:
        return gram_frobenius(self.neighbors, self.shape.n_features, self.augmentation, row_square_of(self.levels))

    def add_noise(self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray) -> FloatArray:
        law = IsotropicDraw(self.rate, self.bits)
        return under_law(privacy_filter, what, law, query, self.sensitivity, bits=2 * self.bits)


@dataclass(frozen=True)
class Isotropic(Mechanism):
    """Release the Gram matrix plus symmetric N of density ∝ exp(−c‖N‖_F).

    A uniform direction, a Gamma(m, 1/c) length.

    m = D(D + 1)/2 entries in the triangle; D = d, or d + 1 with count and mean.

    **Privacy.** ε-DP with c = ε/Δ, Δ the Frobenius sensitivity of the (augmented) Gram matrix: by the triangle inequality the
    density changes by a factor of at most e^{c‖X‖_F} under a shift X (``docs/evidence/derivations/isotropic.md``). The root mean
    square error is √(m(m + 1))/c, growing as d²/ε. Under replace-one Δ is √2 and the nuclear sensitivity is 2, and the error is
    below that of :class:`~dpmoments.mechanisms.MatrixLaplace` at D = 2 and 3; elsewhere it is not. At D = 1 both are the Laplace
    mechanism.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
    >>> shape, budget = MomentShape(2, mean=False), PrivacyBudget.pure(1.0)
    >>> [round(mechanism.plan(shape, budget, "replace_one").expected_error, 3) for mechanism in (Isotropic(), MatrixLaplace())]
    [4.899, 6.0]
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE})
    summary: ClassVar[str] = "noise by the Frobenius norm on the Gram matrix; least error in two or three dimensions"
    source: ClassVar[str] = (
        "the norm mechanism of Hardt & Talwar 2010 in the Frobenius norm (docs/evidence/derivations/isotropic.md)"
    )

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> IsotropicPlan:
        augmentation = choose_augmentation_about_levels(shape, neighbors, _sensitivity)
        # One unit in the last place down: the quotient must not round above ε/Δ.
        rate = float(np.nextafter(budget.epsilon / _sensitivity(shape, neighbors, augmentation), 0.0))
        dimension = noise_dimension(shape, shape.levels, augmentation)
        bits = choose_bits(math.sqrt(_svec_length(dimension) + 1) / rate, shape.n_features)
        if too_coarse_for_levels(shape, bits):
            return self.calibrate(replace(shape, levels=None), budget, neighbors)
        return IsotropicPlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            augmentation=augmentation,
            bits=bits,
            levels=shape.levels,
            rate=rate,
        )


def _sensitivity(shape: MomentShape, neighbors: Neighbors, augmentation: float) -> float:
    return gram_frobenius(neighbors, shape.n_features, augmentation, row_square_of(shape.levels)).value


def _svec_length(dimension: int) -> int:
    """Return m, the number of entries of the upper triangle."""
    return dimension * (dimension + 1) // 2
