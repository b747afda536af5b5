"""Mechanisms that add noise of one family to the whole Gram matrix.

Gaussian, Laplace, isotropic and matrix Laplace noise.

A row x of the unit ball is augmented to z = (w, x), so that one symmetric matrix Σ z zᵀ holds the count, the sum and the Gram
matrix (``docs/evidence/derivations/additive.md``). The matrix is an exact integer on the lattice of spacing 2^(−2·bits); noise is
added as integers (in ``privacy/filter.py``), before any conversion to floating point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Query
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism, Plan, split_for_rows
from dpmoments.mechanisms.lattice_noise import noise_scale_for, off_diagonal, under_law, with_gaussian_noise, with_noise
from dpmoments.mechanisms.shape import LATTICE_BITS, Arithmetic, LevelCoordinates, MomentShape, RunResult
from dpmoments.moments.models import AdditiveModel, CenteredLevelsModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import IsotropicDraw, MatrixLaplaceDraw
from dpmoments.privacy.sensitivity import Sensitivity, gram_entrywise_l1, short_rows_frobenius, short_rows_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

_FINEST_BITS = 20
COARSEST_BITS = 6
MAX_NOISE = 2.0**46
"""Upper limit on noise SDs in lattice units: far inside int64, and float64 draws below 2^52."""
_AUGMENTATION_STEPS = 64
"""Denominator of w, a multiple of 1/64: w·2^bits is an integer on every lattice in use."""


def budget_too_small(noise: float) -> InputValueError:
    """Return the refusal of a budget with this noise on an entry."""
    too_small = f"the budget is too small: noise of {noise:.3g} per entry would hide a table of any size"
    return InputValueError(f"{too_small}: give a larger budget")


def choose_bits(noise_scale: float, n_features: int = 1) -> int:
    """Return the lattice exponent b for noise of SD ``noise_scale`` on the Gram matrix.

    In unit-ball units.

    The finest lattice, b ≤ 20, on which the noise stays below 2^46 units of 2^(−2b): coarser only if the noise hides the
    rounding of rows, or if rows of ``n_features`` entries need it for exact products.
    """
    if noise_scale * 4.0**COARSEST_BITS > MAX_NOISE:
        raise budget_too_small(noise_scale)
    bits = min(_FINEST_BITS, (53 - (n_features - 1).bit_length()) // 2)
    while noise_scale * 4.0**bits > MAX_NOISE:
        bits -= 1
    return bits


def choose_augmentation(
    shape: MomentShape, sensitivity: Callable[[float], float], *, noisy_count: bool, diagonal_ratio: float = 2.0
) -> float:
    """Choose the appended constant w in (0, 1] of least worst-case error of the covariance.

    0 without count and mean.

    To first order the error of G/n − μμᵀ has mean square (1/n²)·s(w)²·[d·r + d(d−1) + 2(d+1)‖μ‖²/w² + r/w⁴] times the
    off-diagonal variance at unit sensitivity, r = ``diagonal_ratio`` the ratio of diagonal to off-diagonal variance and s(w) =
    ``sensitivity``; the last term, times ‖Cov + μμᵀ‖_F² ≤ 1, applies only if the count comes from the noisy matrix. w minimizes
    it over the multiples of 1/64. The terms of mean and count are multiplied by the shape's ``mean_weight``.
    """
    if not shape.mean:
        return 0.0
    d = shape.n_features
    of_count = diagonal_ratio if noisy_count else 0.0

    def mean_square_error(w: float) -> float:
        of_mean, of_size = 2 * (d + 1) / w**2, of_count / w**4
        terms = d * diagonal_ratio + d * (d - 1) + shape.mean_weight * (of_mean + of_size)
        return sensitivity(w) ** 2 * terms

    return min((step / _AUGMENTATION_STEPS for step in range(1, _AUGMENTATION_STEPS + 1)), key=mean_square_error)


@dataclass(frozen=True)
class Noise(ABC):
    """Calibrated noise of one family, in unit-ball units."""

    family: ClassVar[str]
    """Name in files."""
    arithmetic: ClassVar[Arithmetic]
    matrix_rate: ClassVar[float | None] = None
    """Rate c of a family of whole matrices."""

    @property
    @abstractmethod
    def details(self) -> Mapping[str, Any]:
        """Calibrated numbers, for the record of the release."""

    @abstractmethod
    def deviation(self, dimension: int) -> float:
        """Return the SD on the diagonal of a matrix with ``dimension`` rows."""

    @abstractmethod
    def variances(self, dimension: int, bits: int) -> tuple[float, float]:
        """Return the variances on and off the diagonal."""

    @abstractmethod
    def added(
        self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray, sensitivity: Sensitivity, bits: int
    ) -> FloatArray:
        """Return the noisy matrix, in unit-ball units; the query is in units of 2^(−2·bits)."""


@dataclass(frozen=True)
class AdditivePlan(Plan):
    """Uncorrelated noise on the entries of the augmented Gram matrix."""

    augmentation: float  # w, a multiple of 1/64; 0 for a Gram matrix without count and mean
    bits: int  # lattice exponent: rows are multiples of 2^−bits, the Gram matrix of 2^(−2·bits)
    noise: Noise
    sensitivity: Sensitivity  # of the augmented Gram matrix, unit-ball units
    # coordinates in which the noise is added, about the public center of levels; None: the encoded features
    levels: LevelCoordinates | None = None

    @property
    def arithmetic(self) -> Arithmetic:  # type: ignore[override]
        return self.noise.arithmetic

    @property
    def dimension(self) -> int:
        """Rows of the noisy matrix: features or coordinates, and 1 more with count and mean."""
        return noise_dimension(self.shape, self.levels, self.augmentation)

    @property
    def cell_variances(self) -> tuple[float, float]:
        """Noise variances on and off the diagonal of the augmented Gram matrix, unit-ball units."""
        return self.noise.variances(self.dimension, self.bits_of_sums)

    @property
    def bits_of_sums(self) -> int:
        """Lattice exponent of sums, finer than the exponent of rows if these are weighted."""
        return self.bits + self.shape.weight_bits // 2

    @property
    def details(self) -> Mapping[str, Any]:
        return {**self.noise.details, "augmentation": self.augmentation, "lattice_bits": self.bits}

    @property
    def model(self) -> AdditiveModel:
        diagonal, beside = self.cell_variances
        w, (scale, laplace) = self.augmentation, self.own_count_noise
        count_variance = diagonal / w**4 if w else None
        entries: dict[str, Any] = dict(
            n_features=self.shape.n_features,
            family=self.noise.family,
            diagonal_variance=diagonal,
            off_diagonal_variance=beside,
            sum_variance=beside / w**2 if w else None,
            count_variance=0.0 if self.count_is_public else count_variance,
            rate=self.noise.matrix_rate,
            count_scale=scale,
            count_is_laplace=laplace,
        )
        if self.levels is None:
            return AdditiveModel(**entries)
        return CenteredLevelsModel(center=self.levels.center, block_sizes=self.levels.block_sizes, **entries)

    @property
    def passes(self) -> int:
        return 1 if self.rows_loss is None else 2

    @property
    def expected_error(self) -> float:
        return self.model.frobenius_error

    @property
    def expected_count_error(self) -> float | None:
        variance = self.model.count_variance
        if self.count_loss is not None or variance is None:
            return super().expected_count_error
        return math.sqrt(variance)

    def check_rows(self, rows: Rows) -> None:
        super().check_rows(rows)
        if self.levels is not None and LevelCoordinates.of(rows.schema) != self.levels:
            raise InputValueError(
                "the plan is for a schema with other levels, on which its sensitivity depends: make the plan from "
                "the same schema"
            )

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        said = self.noisy_rows(rows, privacy_filter)
        moments, w = rows.moments(bits=self.bits), self.augmentation
        query = augmented_gram(moments, w) if self.levels is None else self.levels.augmented_gram(moments, w)
        values = self.add_noise(privacy_filter, "count-sum-gram" if w else "gram", query)
        known = self.released_count(moments.count, privacy_filter)
        if self.levels is None:
            return replace(taken_apart(values, w, known, said), model=self.model)
        return RunResult(*self.levels.about_zero(values, w, known), model=self.model, diagnostics=said)

    def add_noise(self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray) -> FloatArray:
        """Return the noisy augmented Gram matrix, in unit-ball units."""
        # `query` is in units of 2^(−2·bits).
        return self.noise.added(privacy_filter, what, query, self.sensitivity, self.bits_of_sums)


@dataclass(frozen=True)
class AdditiveMechanism(Mechanism):
    """Release the augmented Gram matrix plus noise in proportion to its sensitivity."""

    diagonal_ratio: ClassVar[float] = 2.0
    """Ratio of the noise's variances on and off the diagonal."""
    takes_weights: ClassVar[bool] = True
    about_levels: ClassVar[bool] = True
    """True if the noise is less for rows about the public center of their levels."""

    @staticmethod
    @abstractmethod
    def sensitivity(neighbors: Neighbors, n_features: int, augmentation: float, row_square: float) -> Sensitivity:
        """Return the sensitivity of the augmented Gram matrix, in the norm of the noise."""

    @abstractmethod
    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        """Return the noise that costs the budget."""

    def noise_unit(self, shape: MomentShape, neighbors: Neighbors, augmentation: float) -> float:
        """Return the quantity that noise is proportional to, for an appended constant w."""
        return self.sensitivity(neighbors, shape.n_features, augmentation, row_square_of(shape.levels)).value

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> AdditivePlan:
        if not self.about_levels:
            shape = replace(shape, schema=None)
        noisy_count = not shape.count_is_public(neighbors)

        def unit(w: float) -> float:
            return self.noise_unit(shape, neighbors, w)

        if shape.levels is None or not shape.mean:
            augmentation = choose_augmentation(shape, unit, noisy_count=noisy_count, diagonal_ratio=self.diagonal_ratio)
        else:
            augmentation = shape.levels.choose_augmentation(
                unit, noisy_count=noisy_count, mean_weight=shape.mean_weight
            )
        noise, bits = self._noise_and_bits(shape, budget, neighbors, augmentation)
        if shape.levels is not None and bits < LATTICE_BITS:  # levels are not exact on the lattice
            shape = replace(shape, schema=None)
            noise, bits = self._noise_and_bits(shape, budget, neighbors, augmentation)
        sensitivity = self.sensitivity(neighbors, shape.n_features, augmentation, row_square_of(shape.levels))
        rows_loss = split_for_rows(self.drawable_budget(budget), shape, neighbors)[0]
        parts = augmentation, bits, noise, sensitivity, shape.levels
        return AdditivePlan(self, shape, neighbors, budget, *parts, rows_loss=rows_loss)

    def _noise_and_bits(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, augmentation: float
    ) -> tuple[Noise, int]:
        whole = split_for_rows(self.drawable_budget(budget), shape, neighbors)[1]
        noise = self.noise_for(whole, self.noise_unit(shape, neighbors, augmentation))
        deviation = noise.deviation(noise_dimension(shape, shape.levels, augmentation))
        return noise, choose_bits(math.ldexp(deviation, shape.weight_bits), shape.n_features)


def row_square_of(levels: LevelCoordinates | None) -> float:
    """Return the largest squared norm of a row of features, or of coordinates of levels."""
    return 1.0 if levels is None else levels.row_square


def noise_dimension(shape: MomentShape, levels: LevelCoordinates | None, augmentation: float) -> int:
    """Return the rows of the noisy matrix of features, or of coordinates of levels."""
    return augmented_dimension(shape.n_features if levels is None else levels.n_coordinates, augmentation)


def augmented_dimension(n_features: int, augmentation: float) -> int:
    """Return the entries of the augmented row z = (w, x)."""
    # d + 1, or d if `augmentation` (w) is 0.
    return n_features + (1 if augmentation else 0)


def taken_apart(
    matrix: FloatArray, augmentation: float, count: float | None, diagnostics: Mapping[str, Any] | None = None
) -> RunResult:
    """Split a noisy :func:`augmented_gram` (unit-ball units) into count, sum and Gram matrix."""
    # `count` if known otherwise.
    if not augmentation:
        return RunResult(count=count, sum=None, gram=matrix, diagnostics=diagnostics or {})
    return RunResult(
        count=count if count is not None else float(matrix[0, 0]) / augmentation**2,
        sum=matrix[0, 1:] / augmentation,
        gram=np.ascontiguousarray(matrix[1:, 1:]),
        diagnostics=diagnostics or {},
    )


def augmented_gram(moments: ExactMoments, augmentation: float, *, count: bool = True) -> IntegerArray:
    """Return Σ z zᵀ for z = (w, x) in exact integers."""
    # The shape is (d, d) if w is 0. Without `count` the entry w²n is 0.
    if not augmentation:
        return moments.gram
    lattice_w = round(augmentation * 2**moments.bits)
    d = len(moments.sum)
    # Python integers: w²·n·2^(2·bits) passes int64 at a few million rows.
    matrix = np.empty((d + 1, d + 1), dtype=object)
    matrix[0, 0] = lattice_w**2 * moments.count if count else 0
    matrix[0, 1:] = matrix[1:, 0] = moments.sum.astype(object) * lattice_w
    matrix[1:, 1:] = moments.gram
    return matrix


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """Normal noise, exact on the lattice."""

    noise_scale: float  # standard deviation σ of the diagonal entries
    off_diagonal_scale: float  # σ/√2, never below it

    family: ClassVar[str] = "gaussian"
    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise_scale": self.noise_scale}

    def deviation(self, dimension: int) -> float:
        return self.noise_scale

    def variances(self, dimension: int, bits: int) -> tuple[float, float]:
        return self.noise_scale**2, self.off_diagonal_scale**2

    def added(
        self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray, sensitivity: Sensitivity, bits: int
    ) -> FloatArray:
        scale, beside = self.noise_scale, self.off_diagonal_scale
        return with_gaussian_noise(
            privacy_filter, what, query, sensitivity, scale, bits=2 * bits, off_diagonal_scale=beside
        )


@dataclass(frozen=True)
class Gaussian(AdditiveMechanism):
    """Release the Gram matrix plus symmetric normal noise.

    Variance σ² on the diagonal, σ²/2 off it.

    That is noise isotropic in the Frobenius geometry, in which the sensitivity is measured; the usual "Analyze Gauss" puts σ²
    everywhere for the same privacy and √2 more error.

    **Privacy.** ρ-zCDP with σ = Δ/√(2ρ), or (ε, δ)-DP with σ from the exact curve of the Gaussian mechanism (Balle & Wang
    2018), Δ the Frobenius sensitivity. The noise is the exact discrete Gaussian on integer sums; for (ε, δ) the proven margin
    between the discrete and the continuous distribution is added (``docs/evidence/derivations/discrete-gaussian.md``), under one
    part in 10⁶.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> plan = Gaussian().plan(MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> round(plan.noise.noise_scale, 6), round(plan.expected_error, 4)
    (1.0, 7.4162)
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    summary: ClassVar[str] = "symmetric normal noise on the Gram matrix; exact arithmetic"
    source: ClassVar[str] = "Dwork et al. 2014 (Analyze Gauss), isotropic; Balle & Wang 2018 calibration"

    sensitivity = staticmethod(short_rows_frobenius)

    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        scale = zcdp_noise_scale(budget.rho, sensitivity)
        return GaussianNoise(scale, off_diagonal(scale))


@dataclass(frozen=True)
class LaplaceNoise(Noise):
    """Laplace noise of one scale on every entry, exact on the lattice."""

    noise_scale: float

    family: ClassVar[str] = "laplace"
    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise_scale": self.noise_scale}

    def deviation(self, dimension: int) -> float:
        return math.sqrt(2.0) * self.noise_scale

    def variances(self, dimension: int, bits: int) -> tuple[float, float]:
        # 1/(2 sinh²(1/2s)) for the discrete distribution of scale s in lattice units.
        half = 0.5 / math.ldexp(self.noise_scale, 2 * bits)
        variance = 0.0 if half > 300 else 0.5 / math.sinh(half) ** 2 * 16.0**-bits
        return variance, variance

    def added(
        self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray, sensitivity: Sensitivity, bits: int
    ) -> FloatArray:
        return with_noise(privacy_filter, what, query, sensitivity, self.noise_scale, bits=2 * bits, pure=True)


@dataclass(frozen=True)
class Laplace(AdditiveMechanism):
    """Release the Gram matrix plus independent Laplace noise on its diagonal and upper triangle.

    **Privacy.** ε-DP, in exact integer arithmetic (discrete Laplace noise on integer sums). The scale is Δ₁/ε with Δ₁ the ℓ1
    sensitivity of the triangle, min(d/√2 + 1, √(d(d+3)/2)) under replace-one and (d+1)/2 under add-remove
    (``docs/evidence/derivations/sensitivities.md``).

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> plan = Laplace().plan(MomentShape(2, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> round(plan.noise.noise_scale, 9)
    1.5
    """

    diagonal_ratio: ClassVar[float] = 1.0
    about_levels: ClassVar[bool] = False
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE})
    summary: ClassVar[str] = "independent Laplace noise on every entry; exact arithmetic, error grows as d²"
    source: ClassVar[str] = "Amin et al. 2019, baseline L; tight constants derived here"

    @staticmethod
    def sensitivity(neighbors: Neighbors, n_features: int, augmentation: float, row_square: float) -> Sensitivity:  # noqa: ARG004
        return gram_entrywise_l1(neighbors, n_features, augmentation)

    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        return LaplaceNoise(noise_scale_for(budget, sensitivity))


# Noise of whole matrices, drawn in floating point: by the Frobenius and by the nuclear norm.


@dataclass(frozen=True)
class MatrixNoise(Noise):
    """Noise with a density that falls at rate c with a norm of the matrix.

    Isotropic: density ∝ exp(−c‖N‖_F). Matrix Laplace: (W₁ − W₂)/(2c), a difference of two Wisharts.
    """

    rate: float
    draw: type[IsotropicDraw | MatrixLaplaceDraw]

    arithmetic: ClassVar[Arithmetic] = Arithmetic.LATTICE_ROUNDED

    @classmethod
    def calibrated(
        cls, epsilon: float, sensitivity: float, draw: type[IsotropicDraw | MatrixLaplaceDraw]
    ) -> MatrixNoise:
        """Return the noise that costs ε."""
        # One unit in the last place down: the quotient must not round above ε/Δ.
        return cls(float(np.nextafter(epsilon / sensitivity, 0.0)), draw)

    @property
    def family(self) -> str:  # type: ignore[override]
        return self.draw.name

    @property
    def matrix_rate(self) -> float:  # type: ignore[override]
        return self.rate

    @property
    def details(self) -> Mapping[str, Any]:
        return {"rate": self.rate}

    def _square(self, dimension: int) -> int:
        """Return the variance on the diagonal at rate 1."""
        return dimension * (dimension + 1) // 2 + 1 if self.draw is IsotropicDraw else dimension + 1

    def deviation(self, dimension: int) -> float:
        return math.sqrt(self._square(dimension)) / self.rate

    def variances(self, dimension: int, bits: int) -> tuple[float, float]:
        diagonal = self._square(dimension) / self.rate**2
        return diagonal, diagonal / 2.0

    def added(
        self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray, sensitivity: Sensitivity, bits: int
    ) -> FloatArray:
        return under_law(privacy_filter, what, self.draw(self.rate, bits), query, sensitivity, bits=2 * bits)


@dataclass(frozen=True)
class Isotropic(AdditiveMechanism):
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
    >>> shape, budget = MomentShape(2, mean=False), PrivacyBudget.pure(1.0)
    >>> [round(mechanism.plan(shape, budget, "replace_one").expected_error, 3) for mechanism in (Isotropic(), MatrixLaplace())]
    [4.899, 6.0]
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE})
    summary: ClassVar[str] = "noise by the Frobenius norm on the Gram matrix; least error in two or three dimensions"
    source: ClassVar[str] = (
        "the norm mechanism of Hardt & Talwar 2010 in the Frobenius norm (docs/evidence/derivations/isotropic.md)"
    )

    sensitivity = staticmethod(short_rows_frobenius)

    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        return MatrixNoise.calibrated(budget.epsilon, sensitivity, IsotropicDraw)


@dataclass(frozen=True)
class MatrixLaplace(AdditiveMechanism):
    """Release the Gram matrix plus N = (W₁ − W₂)/(2c), W₁, W₂ ~ Wishart_D(I, D+1) independent.

    D = d, or d + 1 with count and mean.

    **Privacy.** ε-DP with c = ε/Δ, Δ the nuclear sensitivity of the (augmented) Gram matrix: the density of N changes by a
    factor of at most e^{c‖X‖_*} under a shift X (``docs/evidence/derivations/matrix_laplace.md``). At d = 1 it is the Laplace
    mechanism. The root mean square error is (d(d+1)²/2)^{1/2}/c, growing as d^{1.5}/ε; independent Laplace entries give d²/ε. It
    is not the least known: the K-norm distribution of the nuclear norm (d'Orsi & Novikov 2025) has 0.91 to 0.96 of it, and no
    exact sampler beyond small d. They and Nikolov (2023) were the first to show such rates under pure ε.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> plan = MatrixLaplace().plan(MomentShape(13, mean=False), PrivacyBudget.pure(1.0), "replace_one")
    >>> plan.cost, round(plan.expected_error, 1)
    (PrivacyBudget.pure(epsilon=1.0), 71.4)
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE})
    summary: ClassVar[str] = "difference of two Wisharts on the Gram matrix"
    source: ClassVar[str] = "this library (docs/evidence/derivations/matrix_laplace.md)"

    sensitivity = staticmethod(short_rows_nuclear)

    def noise_for(self, budget: PrivacyBudget, sensitivity: float) -> Noise:
        return MatrixNoise.calibrated(budget.epsilon, sensitivity, MatrixLaplaceDraw)
