"""Symmetric Gaussian noise on the Gram matrix, exact on the integer lattice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dpmoments.mechanisms.base import Arithmetic, Mechanism, MomentShape
from dpmoments.mechanisms.parts.additive import (
    AdditivePlan,
    choose_augmentation,
    choose_bits,
    lattice_scale,
    symmetric_from_triangle,
)
from dpmoments.noise.lattice import discrete_gaussian
from dpmoments.noise_law import GaussianNoise
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import discrete_gaussian_noise_scale, gaussian_noise_scale, zcdp_noise_scale
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import gram_frobenius

__all__ = ["Gaussian", "GaussianPlan"]

SQRT_HALF = math.sqrt(0.5)


@dataclass(frozen=True)
class GaussianPlan(AdditivePlan):
    """A calibrated :class:`Gaussian`.

    Attributes
    ----------
    noise_scale : float
        Standard deviation σ of the diagonal entries, unit-ball units.
    off_diagonal_scale : float
        σ/√2 (never below it), or σ for the papers' variant.
    """

    noise_scale: float
    off_diagonal_scale: float

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def cell_variances(self) -> tuple[float, float]:
        return self.noise_scale**2, self.off_diagonal_scale**2

    @property
    def noise(self) -> GaussianNoise:
        return GaussianNoise(**self.moment_variances)

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise_scale": self.noise_scale, "augmentation": self.augmentation, "lattice_bits": self.bits}

    def draw(self, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        size = self.dimension
        diagonal = discrete_gaussian(lattice_scale(self.noise_scale, self.bits), size, generator)
        off_diagonal_scale = lattice_scale(self.off_diagonal_scale, self.bits)
        return symmetric_from_triangle(
            diagonal, discrete_gaussian(off_diagonal_scale, size * (size - 1) // 2, generator)
        )


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Release the Gram matrix plus symmetric normal noise: variance σ² on the diagonal, σ²/2 off it.

    That is noise isotropic in the Frobenius geometry, in which the sensitivity is measured; the usual "Analyze Gauss" puts
    σ² everywhere for the same privacy and √2 more error.

    **Privacy.** ρ-zCDP with σ = Δ/√(2ρ), or (ε, δ)-DP with σ from the exact curve of the Gaussian mechanism (Balle & Wang
    2018), Δ the Frobenius sensitivity. The noise is the exact discrete Gaussian on integer sums; for (ε, δ) the proven margin
    between the discrete and the continuous law is added (``docs/derivations/discrete-gaussian.md``), under one part in 10⁶.

    Parameters
    ----------
    variance : {"isotropic", "entrywise"}
        ``"entrywise"`` is the papers' variant, for comparison.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> plan = Gaussian().plan(MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> round(plan.noise_scale, 6), round(plan.expected_error, 4)
    (1.0, 7.4162)
    """

    variance: Literal["isotropic", "entrywise"] = "isotropic"

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    summary: ClassVar[str] = (
        "symmetric normal noise on the Gram matrix; exact arithmetic; the default under (ε, δ) and ρ"
    )
    source: ClassVar[str] = "Dwork et al. 2014 (Analyze Gauss), isotropic; Balle & Wang 2018 calibration"

    def __post_init__(self) -> None:
        if self.variance not in ("isotropic", "entrywise"):
            raise ValueError(f"variance={self.variance!r}: use 'isotropic' or 'entrywise'")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> GaussianPlan:
        def sensitivity(w: float) -> float:
            return gram_frobenius(neighbors, shape.n_features, w)

        diagonal_ratio = 2.0 if self.variance == "isotropic" else 1.0
        augmentation = choose_augmentation(shape, neighbors, sensitivity, diagonal_ratio)
        noise_scale, bits = _noise_scale(sensitivity(augmentation), shape, augmentation, budget)
        off_diagonal_scale = noise_scale
        if self.variance == "isotropic":
            off_diagonal_scale = math.nextafter(math.nextafter(noise_scale * SQRT_HALF, math.inf), math.inf)
        return GaussianPlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            augmentation=augmentation,
            bits=bits,
            noise_scale=noise_scale,
            off_diagonal_scale=off_diagonal_scale,
        )


def _noise_scale(
    sensitivity: float, shape: MomentShape, augmentation: float, budget: PrivacyBudget
) -> tuple[float, int]:
    """σ in unit-ball units and the lattice exponent it is calibrated on."""
    if budget.kind is BudgetKind.ZCDP:
        noise_scale = zcdp_noise_scale(budget.rho, sensitivity)
        return noise_scale, choose_bits(noise_scale, shape.n_features)
    bits = choose_bits(gaussian_noise_scale(budget.epsilon, budget.delta, sensitivity), shape.n_features)
    dimension = shape.n_features + (1 if augmentation else 0)
    on_lattice = discrete_gaussian_noise_scale(
        budget.epsilon,
        budget.delta,
        lattice_scale(sensitivity, bits),
        n_coordinates=dimension * (dimension + 1) // 2,
        smallest_ratio=SQRT_HALF,
    )
    return math.ldexp(on_lattice, -2 * bits), bits
