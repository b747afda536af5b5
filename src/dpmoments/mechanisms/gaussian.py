"""Symmetric Gaussian noise on the Gram matrix, exact on the integer lattice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.checks import check_one_of
from dpmoments.mechanisms.additive import (
    AdditivePlan,
    choose_augmentation_about_levels,
    choose_bits,
    row_square_of,
    too_coarse_for_levels,
)
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism
from dpmoments.mechanisms.lattice_noise import off_diagonal, with_gaussian_noise
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.messages.message import Query
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class GaussianPlan(AdditivePlan):
    """Calibrated :class:`Gaussian`."""

    noise_scale: float  # standard deviation σ of the diagonal entries, unit-ball units
    off_diagonal_scale: float  # σ/√2 (never below it), or σ for the papers' variant

    family: ClassVar[str] = "gaussian"
    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def cell_variances(self) -> tuple[float, float]:
        return self.noise_scale**2, self.off_diagonal_scale**2

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise_scale": self.noise_scale, "augmentation": self.augmentation, "lattice_bits": self.bits}

    @property
    def sensitivity(self) -> Sensitivity:
        return gram_frobenius(self.neighbors, self.shape.n_features, self.augmentation, row_square_of(self.levels))

    def add_noise(self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray) -> FloatArray:
        return with_gaussian_noise(
            privacy_filter,
            what,
            query,
            self.sensitivity,
            self.noise_scale,
            bits=2 * self.bits,
            off_diagonal_scale=self.off_diagonal_scale,
        )


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Release the Gram matrix plus symmetric normal noise.

    Variance σ² on the diagonal, σ²/2 off it.

    That is noise isotropic in the Frobenius geometry, in which the sensitivity is measured; the usual "Analyze Gauss" puts σ²
    everywhere for the same privacy and √2 more error.

    **Privacy.** ρ-zCDP with σ = Δ/√(2ρ), or (ε, δ)-DP with σ from the exact curve of the Gaussian mechanism (Balle & Wang
    2018), Δ the Frobenius sensitivity. The noise is the exact discrete Gaussian on integer sums; for (ε, δ) the proven margin
    between the discrete and the continuous distribution is added (``docs/evidence/derivations/discrete-gaussian.md``), under one
    part in 10⁶.

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
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    summary: ClassVar[str] = (
        "symmetric normal noise on the Gram matrix; exact arithmetic; the default under (ε, δ) and ρ"
    )
    source: ClassVar[str] = "Dwork et al. 2014 (Analyze Gauss), isotropic; Balle & Wang 2018 calibration"

    def __post_init__(self) -> None:
        check_one_of("variance", self.variance, ("isotropic", "entrywise"))

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> GaussianPlan:
        if self.variance != "isotropic":
            shape = replace(shape, levels=None)
        augmentation = choose_augmentation_about_levels(
            shape, neighbors, self.noise_sensitivity, diagonal_ratio=2.0 if self.variance == "isotropic" else 1.0
        )
        return self.augmented(shape, budget, neighbors, augmentation)

    def noise_sensitivity(self, shape: MomentShape, neighbors: Neighbors, augmentation: float) -> float:
        """Return the quantity that noise is proportional to, for an appended constant w."""
        return gram_frobenius(neighbors, shape.n_features, augmentation, row_square_of(shape.levels)).value

    def augmented(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, augmentation: float
    ) -> GaussianPlan:
        """Return the plan for a given constant w."""
        sensitivity = self.noise_sensitivity(shape, neighbors, augmentation)
        noise_scale = zcdp_noise_scale(self.drawable_budget(budget).rho, sensitivity)
        bits = choose_bits(noise_scale, shape.n_features)
        if too_coarse_for_levels(shape, bits):
            return self.augmented(replace(shape, levels=None), budget, neighbors, augmentation)
        return GaussianPlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            augmentation=augmentation,
            bits=bits,
            levels=shape.levels,
            noise_scale=noise_scale,
            off_diagonal_scale=off_diagonal(noise_scale) if self.variance == "isotropic" else noise_scale,
        )
