"""Additive noise, and the choice of a mechanism, as papers have them: not in the registry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from dpmoments.base.errors import InputValueError, out_of_range
from dpmoments.mechanisms.additive import Gaussian, GaussianNoise, Laplace, Noise
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.eigenvectors import IterativeEigenvectors
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class EntrywiseGaussian(Gaussian):
    """Gaussian noise of variance σ² on every entry, above the diagonal too.

    That is "Analyze Gauss" (Dwork et al. 2014). It has the privacy of :class:`~dpmoments.mechanisms.Gaussian`, and √2 more error.

    Examples
    --------
    >>> plan = EntrywiseGaussian().plan(MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> round(plan.expected_error, 4)
    10.0
    """

    diagonal_ratio: ClassVar[float] = 1.0
    about_levels: ClassVar[bool] = False
    summary: ClassVar[str] = "normal noise of one variance on every entry of the Gram matrix; for comparison"
    source: ClassVar[str] = "Dwork et al. 2014 (Analyze Gauss)"

    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        scale = super().noise_for(budget, sensitivity).deviation(1)
        return GaussianNoise(scale, scale)


@dataclass(frozen=True)
class PaperLaplace(Laplace):
    """Laplace noise of scale 2D/ε, times 1 + w² with count and mean.

    The baseline L of Amin et al. (2019), which adds more noise than its ε needs.

    Examples
    --------
    >>> plan = PaperLaplace().plan(MomentShape(2, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> round(plan.noise.noise_scale, 9)
    4.0
    """

    unspent_reason: ClassVar[str | None] = "the paper's noise is more than its budget requires"
    summary: ClassVar[str] = "independent Laplace noise of the published scale on every entry; for comparison"
    source: ClassVar[str] = "Amin et al. 2019, baseline L"

    def noise_unit(self, shape: MomentShape, neighbors: Neighbors, augmentation: float) -> float:
        return 2.0 * (shape.n_features + (1 if augmentation else 0)) * (1.0 + augmentation**2)


@dataclass(frozen=True)
class RegimeRule(Mechanism):
    """Iterative eigenvectors if λ₁ ln λ₁ ≤ ln(1/δ)/ε or δ is 0, else the Gaussian mechanism.

    The rule of Amin et al. (2019, section 3.1), which the replication report calls hybrid. ``largest_eigenvalue`` is λ₁
    of the Gram matrix of the encoded rows, from public knowledge; default: the number of rows, if it is public.

    Examples
    --------
    >>> budget = PrivacyBudget.approximate(1.0, 1e-6)
    >>> [RegimeRule(largest).plan(MomentShape(5), budget, "add_remove").mechanism.name for largest in (2.0, 100.0)]
    ['iterative-eigenvectors', 'gaussian']
    """

    largest_eigenvalue: float | None = None

    counts_rows: ClassVar[bool] = True  # the mechanism chosen does
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE, BudgetKind.APPROXIMATE})
    summary: ClassVar[str] = "iterative eigenvectors or Gaussian noise, by a public largest eigenvalue; for comparison"
    source: ClassVar[str] = "Amin et al. 2019, section 3.1"

    def __post_init__(self) -> None:
        if self.largest_eigenvalue is not None and not 0.0 < self.largest_eigenvalue < math.inf:
            raise out_of_range("largest_eigenvalue", self.largest_eigenvalue, "a positive finite number")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        pure = PrivacyBudget.pure(budget.epsilon)
        if budget.kind is BudgetKind.PURE:
            return IterativeEigenvectors().plan(shape, pure, neighbors)
        largest = self.largest_eigenvalue if self.largest_eigenvalue is not None else shape.n_rows
        if largest is None:
            raise InputValueError(
                "the rule needs the largest eigenvalue of the Gram matrix, or the number of rows, which bounds it and "
                "is private here: give largest_eigenvalue from public knowledge"
            )
        if largest * math.log(max(largest, 1.0)) * budget.epsilon <= -math.log(budget.delta):
            return IterativeEigenvectors().plan(shape, pure, neighbors)
        return Gaussian().plan(shape, budget, neighbors)
