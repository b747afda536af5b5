"""Additive Wishart noise: the table plus a batch of random rows (Sheffet 2015, section 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.message import Query
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.mechanisms.additive import (
    AdditivePlan,
    Noise,
    augmented_dimension,
    augmented_gram,
    choose_augmentation,
    choose_bits,
    taken_apart,
)
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.lattice_noise import under_law
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult, positive_definite
from dpmoments.moments.models import AdditiveModel
from dpmoments.papers.curves import additive_wishart_degrees, additive_wishart_delta, additive_wishart_scale
from dpmoments.papers.laws import AdditiveWishartDraw
from dpmoments.papers.models import ScaledWishartModel
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import Sensitivity, gram_frobenius, row_norm_square
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_MAX_POWER = 26
"""Largest exponent of the default degrees of freedom beyond the dimension, a power of two."""
_SLACK = 1e-12
"""Tolerated rounding of an eigenvalue of V below 1."""
_TOLERATED_EXCESS = 1.01
"""Tolerated ratio of the default's error to its limit, the error of the Gaussian mechanism."""


@dataclass(frozen=True)
class WishartNoise(Noise):
    """Wishart(s²I, k) noise on the Gram matrix, less its mean."""

    dimension: int
    degrees: int  # k
    scale: float  # s², in unit-ball units
    cost: PrivacyBudget

    family: ClassVar[str] = "wishart"
    arithmetic: ClassVar[Arithmetic] = Arithmetic.LATTICE_ROUNDED

    @property
    def details(self) -> Mapping[str, Any]:
        return {"degrees_of_freedom": self.degrees, "scale": self.scale}

    @property
    def matrix_rate(self) -> float:  # type: ignore[override]
        return 1.0 / (2.0 * self.scale)

    def deviation(self, dimension: int) -> float:
        return self.scale * (self.degrees + math.sqrt(2.0 * self.degrees))  # its mean is on the lattice, too

    def variances(self, dimension: int, bits: int) -> tuple[float, float]:
        beside = self.degrees * self.scale**2
        return 2.0 * beside, beside

    def added(
        self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray, sensitivity: Sensitivity, bits: int
    ) -> FloatArray:
        law = AdditiveWishartDraw(self.dimension, self.degrees, self.scale, bits)
        return under_law(privacy_filter, what, law, query, sensitivity, bits=2 * bits, claim=self.cost)


@dataclass(frozen=True)
class ScaledWishartPlan(Plan):
    """Calibrated :class:`AdditiveWishart` with noise of scale matrix s²V.

    Source: Sheffet 2015, Theorem B.3.

    Rows V^{−1/2}x have norm at most 1 as V ⪰ I; their sums get noise of scale s²I and are mapped back. ``whitened``, the
    plan for the rows V^{−1/2}x, gives the guarantee for any V: rows that V makes longer would be clipped.
    """

    mechanism: AdditiveWishart
    whitened: AdditivePlan
    noise: WishartNoise

    arithmetic: ClassVar[Arithmetic] = Arithmetic.LATTICE_ROUNDED

    @property
    def model(self) -> ScaledWishartModel:
        (scale, laplace) = self.own_count_noise
        matrix = np.array(self.mechanism.scale_matrix)
        return ScaledWishartModel(
            n_features=self.shape.n_features,
            degrees=self.noise.degrees,
            scale=self.noise.scale,
            scale_matrix=(matrix + matrix.T) / 2.0,
            augmentation=self.whitened.augmentation,
            count_is_noisy=not self.count_is_public,
            count_scale=scale,
            count_is_laplace=laplace,
        )

    @property
    def details(self) -> Mapping[str, Any]:
        return self.whitened.details

    @property
    def expected_error(self) -> float:
        """Root of E‖W − kS‖_F² = k((tr S)² + tr S²), W ~ Wishart(S, k)."""
        noise, eigenvalues = self.noise, np.linalg.eigvalsh(np.array(self.mechanism.scale_matrix))
        return noise.scale * math.sqrt(noise.degrees * (eigenvalues.sum() ** 2 + np.square(eigenvalues).sum()))

    @property
    def expected_count_error(self) -> float | None:
        return self.whitened.expected_count_error if self.count_loss is None else super().expected_count_error

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        plan, (eigenvalues, eigenvectors) = self.whitened, np.linalg.eigh(np.array(self.mechanism.scale_matrix))
        root = (eigenvectors * np.sqrt(eigenvalues)) @ eigenvectors.T
        moments = rows.moments(None, np.linalg.inv(root), bits=plan.bits)
        noisy = plan.add_noise(privacy_filter, "mapped-rows", augmented_gram(moments, plan.augmentation))
        result = taken_apart(noisy, plan.augmentation, self.released_count(moments.count, privacy_filter))
        gram = root @ result.gram @ root
        total = None if result.sum is None else root @ result.sum
        return replace(result, sum=total, gram=0.5 * (gram + gram.T), model=self.model)


@dataclass(frozen=True)
class PositiveDefinitePlan(Plan):
    """Calibrated :class:`AdditiveWishart` that keeps part of the noise's mean if it must.

    Source: Sheffet 2015, Algorithm 3.

    ``unbiased`` is the same plan with the whole mean of the noise subtracted.
    """

    unbiased: AdditivePlan
    noise: WishartNoise

    arithmetic: ClassVar[Arithmetic] = Arithmetic.LATTICE_ROUNDED

    @property
    def details(self) -> Mapping[str, Any]:
        return self.unbiased.details

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        noisy = self.unbiased.run(rows, privacy_filter)
        count = noisy.count if self.count_loss is None else self.released_count(rows.count(), privacy_filter)
        # The part of the noise's mean to add back. It is 0 for a positive definite matrix. Else it is all but
        # s²(√k − √D − √(2 ln(4/δ)))², which the noise exceeds in every direction with probability 1 − δ/4.
        noise, log_term, kept = self.noise, math.log(4.0 / self.cost.delta), 0.0
        if np.linalg.eigvalsh(noisy.gram)[0] <= 0.0:
            root = math.sqrt(noise.degrees) - math.sqrt(noise.dimension) - math.sqrt(2.0 * log_term)
            kept = noise.scale * (noise.degrees - max(root, 0.0) ** 2)
        gram = noisy.gram + kept * np.eye(len(noisy.gram))
        model = None if kept else self._unbiased_model
        return replace(noisy, count=count, gram=gram, diagnostics={"kept_shift": kept}, model=model)

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        return None if diagnostics.get("kept_shift") else self._unbiased_model.to_dict()

    @property
    def _unbiased_model(self) -> AdditiveModel:
        scale, laplace = self.own_count_noise
        return replace(self.unbiased.model, count_scale=scale, count_is_laplace=laplace)


@dataclass(frozen=True)
class AdditiveWishart(Mechanism):
    """Release G + W − shift·I with W ~ Wishart(s²I, k): the table with k normal rows appended.

    **Privacy.** (ε, δ)-DP, from the exact privacy curve for rows added or removed and for rows replaced
    (``docs/evidence/derivations/additive_wishart.md``). Integer sums; the noise is drawn in floating point and rounded to the
    lattice.

    For a given guarantee the error falls as k grows and s² shrinks, towards that of symmetric Gaussian noise. The paper's
    choice, s = B and k = d + (14/ε²)·2 ln(4/δ), is far from there: at d = 50, ε = 1, δ = 10⁻⁶ its error is 7 times as large.

    Parameters
    ----------
    degrees_of_freedom : int, optional
        k, above the dimension of the matrix. Default: the smallest power of two beyond the dimension that is within 1 % of the
        limit (at most 2²⁶).
    debias : {"mean", "positive-definite"}
        ``"mean"`` subtracts ks², the mean of the noise: the release is unbiased and its noise distribution is known.
        ``"positive-definite"`` is the paper's rule: ks² if the Gram matrix stays positive definite, else the smaller s²(√k − √D
        − √(2 ln(4/δ)))²; count and sum are unbiased in both cases.
    calibration : {"exact", "paper"}
        ``"paper"``: Theorem 4.1's k, with s² = B².
    scale_matrix : nested sequence of shape (d, d), optional
        V ⪰ I, for W ~ Wishart(s²V, k) (Theorem B.3), for example if V is the scale of a prior; in encoded units. The noise is
        nowhere smaller than with the default, I.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> shape, budget = MomentShape(50, mean=False), PrivacyBudget.approximate(1.0, 1e-6)
    >>> paper = AdditiveWishart(calibration="paper").plan(shape, budget, "add_remove")
    >>> paper.noise.degrees, paper.noise.scale, round(paper.expected_error)
    (475, 1.0, 1101)
    >>> round(AdditiveWishart().plan(shape, budget, "add_remove").expected_error)
    152
    """

    degrees_of_freedom: int | None = None
    debias: Literal["mean", "positive-definite"] = "mean"
    calibration: Literal["exact", "paper"] = "exact"
    scale_matrix: Sequence[Sequence[float]] | None = field(default=None, repr=False)

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.APPROXIMATE})
    summary: ClassVar[str] = "a Wishart matrix added to the Gram matrix: random rows appended to the table"
    source: ClassVar[str] = "Sheffet 2015, Algorithm 3; exact calibration"

    def __post_init__(self) -> None:
        check_one_of("calibration", self.calibration, ("exact", "paper"))
        check_one_of("debias", self.debias, ("mean", "positive-definite"))
        if self.calibration == "paper" and self.degrees_of_freedom is not None:
            raise InputValueError("the paper's calibration sets the degrees of freedom: leave degrees_of_freedom out")
        if self.scale_matrix is None:
            return
        matrix = positive_definite(self.scale_matrix, "scale_matrix")
        if float(np.linalg.eigvalsh(np.array(matrix))[0]) < 1.0 - _SLACK:
            raise InputValueError(
                "scale_matrix has an eigenvalue below 1: it must be at least the identity in every direction, for "
                "rows in the unit ball"
            )
        if self.debias != "mean":
            raise InputValueError("scale_matrix needs debias='mean'")
        object.__setattr__(self, "scale_matrix", matrix)

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> Plan:
        augmentation = choose_augmentation(
            shape, lambda w: row_norm_square(neighbors, w).value, noisy_count=not shape.count_is_public(neighbors)
        )
        sensitivity = row_norm_square(neighbors, augmentation)
        dimension = augmented_dimension(shape.n_features, augmentation)
        beyond, scale = self._degrees_and_scale(dimension, budget, neighbors)
        noise = WishartNoise(dimension, dimension + beyond, scale * sensitivity.value, budget)
        bits = choose_bits(noise.deviation(dimension), shape.n_features)
        plan = AdditivePlan(self, shape, neighbors, budget, augmentation, bits, noise, sensitivity)
        if self.scale_matrix is not None:
            if len(self.scale_matrix) != shape.n_features:
                raise InputValueError(
                    f"scale_matrix has {len(self.scale_matrix)} rows; the table has {shape.n_features} features"
                )
            return ScaledWishartPlan(self, shape, neighbors, budget, whitened=plan, noise=noise)
        if self.debias == "mean":
            return plan
        return PositiveDefinitePlan(self, shape, neighbors, budget, unbiased=plan, noise=noise)

    def _degrees_and_scale(self, dimension: int, budget: PrivacyBudget, neighbors: Neighbors) -> tuple[int, float]:
        """Return k − D and s²/B²."""
        if self.calibration == "paper":
            paper = math.floor(14.0 / budget.epsilon**2 * 2.0 * math.log(4.0 / budget.delta))
            # The larger of the paper's and the exact value is private even if the paper's proof is incomplete.
            return max(paper, additive_wishart_degrees(budget.epsilon, budget.delta, 1.0, neighbors)), 1.0
        if self.degrees_of_freedom is None:
            # The smallest power of two within 1 % of the least error.
            limit = gaussian_noise_scale(
                budget.epsilon, budget.delta, gram_frobenius(neighbors, max(dimension, 2)).value
            )
            low, high = 0, _MAX_POWER
            while low < high:
                middle = (low + high) // 2
                enough = _TOLERATED_EXCESS * limit / math.sqrt(2.0 * (2**middle + dimension))
                near = additive_wishart_delta(budget.epsilon, 2**middle, enough, neighbors) <= budget.delta
                low, high = (low, middle) if near else (middle + 1, high)
            return 2**low, additive_wishart_scale(budget.epsilon, budget.delta, 2**low, neighbors)
        beyond = self.degrees_of_freedom - dimension
        if not 1 <= beyond <= 2**_MAX_POWER:
            raise InputValueError(
                f"degrees_of_freedom={shown(self.degrees_of_freedom)} must be above {dimension}, the rows of the "
                f"matrix (features, and one more for count and mean), and at most {dimension + 2**_MAX_POWER}"
            )
        return beyond, additive_wishart_scale(budget.epsilon, budget.delta, beyond, neighbors)
