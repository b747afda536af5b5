"""Independent Laplace noise on the Gram matrix: the baseline of Amin et al. (2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.checks import check_one_of
from dpmoments.mechanisms.additive import AdditivePlan, choose_augmentation, choose_bits
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.lattice_noise import noise_scale_for, with_laplace_noise
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.messages.message import Query
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import gram_entrywise_l1
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class LaplacePlan(AdditivePlan):
    """Calibrated :class:`Laplace`.

    ``noise_scale`` is the Laplace scale of every entry, unit-ball units.
    """

    noise_scale: float

    family: ClassVar[str] = "laplace"
    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def cell_variances(self) -> tuple[float, float]:
        # 1/(2 sinh²(1/2s)) for the discrete distribution of scale s in lattice units.
        scale = math.ldexp(self.noise_scale, 2 * self.bits)
        half = 0.5 / scale
        variance = 0.0 if half > 300 else 0.5 / math.sinh(half) ** 2 * 16.0**-self.bits
        return variance, variance

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise_scale": self.noise_scale, "augmentation": self.augmentation, "lattice_bits": self.bits}

    @property
    def sensitivity(self) -> Sensitivity:
        return gram_entrywise_l1(self.neighbors, self.shape.n_features, self.augmentation)

    @property
    def unspent_reason(self) -> str | None:
        paper = self.mechanism.options["calibration"] == "paper"
        return "the paper's noise is more than its budget requires" if paper else None

    def add_noise(self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray) -> FloatArray:
        return with_laplace_noise(privacy_filter, what, query, self.sensitivity, self.noise_scale, bits=2 * self.bits)


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Release the Gram matrix plus independent Laplace noise on its diagonal and upper triangle.

    **Privacy.** ε-DP, in exact integer arithmetic (discrete Laplace noise on integer sums).

    Parameters
    ----------
    calibration : {"tight", "paper"}
        ``"tight"``: scale Δ₁/ε with Δ₁ the ℓ1 sensitivity of the triangle, min(d/√2 + 1, √(d(d+3)/2)) under replace-one and
        (d+1)/2 under add-remove (``docs/evidence/derivations/sensitivities.md``). ``"paper"``: scale 2D/ε (times 1 + w² with
        count and mean), the baseline L of Amin et al. (2019), for comparison; it adds more noise than its ε needs.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> plan = Laplace().plan(MomentShape(2, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> round(plan.noise_scale, 9)
    1.5
    """

    calibration: Literal["tight", "paper"] = "tight"

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE})
    summary: ClassVar[str] = "independent Laplace noise on every entry; exact arithmetic, error grows as d²"
    source: ClassVar[str] = "Amin et al. 2019, baseline L; tight constants derived here"

    def __post_init__(self) -> None:
        check_one_of("calibration", self.calibration, ("tight", "paper"))

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> LaplacePlan:
        def sensitivity(w: float) -> float:
            if self.calibration == "paper":
                return 2.0 * (shape.n_features + (1 if w else 0)) * (1.0 + w * w)
            return gram_entrywise_l1(neighbors, shape.n_features, w).value

        noisy_count = not shape.count_is_public(neighbors)
        augmentation = choose_augmentation(shape, sensitivity, noisy_count=noisy_count, diagonal_ratio=1.0)
        noise_scale = noise_scale_for(budget, sensitivity(augmentation))
        return LaplacePlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            augmentation=augmentation,
            bits=choose_bits(math.sqrt(2.0) * noise_scale, shape.n_features),
            noise_scale=noise_scale,
        )
