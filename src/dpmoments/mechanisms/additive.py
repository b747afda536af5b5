"""Parts shared by the mechanisms that add noise to the whole Gram matrix.

The augmented row, the lattice, the sum.

A row x of the unit ball is augmented to z = (w, x), so that one symmetric matrix Σ z zᵀ holds the count, the sum and the Gram
matrix (``docs/evidence/derivations/additive.md``). The matrix is an exact integer on the lattice of spacing 2^(−2·bits); noise is
added as integers (in ``privacy/filter.py``), before any conversion to floating point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.level_coordinates import LATTICE_BITS, LevelCoordinates
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.messages.message import Query
from dpmoments.noise.models import AdditiveModel, CenteredLevelsModel
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

_FINEST_BITS = 20
COARSEST_BITS = 6
MAX_NOISE = 2.0**46
"""Upper limit on noise SDs in lattice units: far inside int64, and float64 draws below 2^52."""
_AUGMENTATION_STEPS = 64
"""Denominator of w, a multiple of 1/64: w·2^bits is an integer on every lattice in use."""


def choose_bits(noise_scale: float, n_features: int = 1) -> int:
    """Return the lattice exponent b for noise of SD ``noise_scale`` on the Gram matrix.

    In unit-ball units.

    The finest lattice, b ≤ 20, on which the noise stays below 2^46 units of 2^(−2b): coarser only if the noise hides the
    rounding of rows, or if rows of ``n_features`` entries need it for exact products.
    """
    if noise_scale * 4.0**COARSEST_BITS > MAX_NOISE:
        raise InputValueError(
            f"the budget is too small: noise of {noise_scale:.3g} per entry would hide a table of any size: "
            "give a larger budget"
        )
    bits = min(_FINEST_BITS, (53 - (n_features - 1).bit_length()) // 2)
    while noise_scale * 4.0**bits > MAX_NOISE:
        bits -= 1
    return bits


def choose_augmentation(
    shape: MomentShape,
    sensitivity: Callable[[float], float],
    *,
    noisy_count: bool,
    diagonal_ratio: float = 2.0,
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
class AdditivePlan(Plan):
    """Uncorrelated noise on the entries of the augmented Gram matrix."""

    augmentation: float  # w, a multiple of 1/64; 0 for a Gram matrix without count and mean
    bits: int  # lattice exponent: rows are multiples of 2^−bits, the Gram matrix of 2^(−2·bits)
    # coordinates in which the noise is added, about the public center of levels; None: the encoded features
    levels: LevelCoordinates | None = field(default=None, kw_only=True)

    family: ClassVar[str]
    """Name of its noise in files."""

    @property
    def dimension(self) -> int:
        """Rows of the noisy matrix: features or coordinates, and 1 more with count and mean."""
        return noise_dimension(self.shape, self.levels, self.augmentation)

    @property
    @abstractmethod
    def cell_variances(self) -> tuple[float, float]:
        """Noise variances on and off the diagonal of the augmented Gram matrix, unit-ball units."""

    @property
    def noise_rate(self) -> float | None:
        """Rate c of a family of whole matrices."""
        return None

    @property
    def model(self) -> AdditiveModel:
        diagonal, off_diagonal = self.cell_variances
        w, (scale, laplace) = self.augmentation, self.own_count_noise
        count_variance = diagonal / w**4 if w else None
        entries: dict[str, Any] = dict(
            n_features=self.shape.n_features,
            family=self.family,
            diagonal_variance=diagonal,
            off_diagonal_variance=off_diagonal,
            sum_variance=off_diagonal / w**2 if w else None,
            count_variance=0.0 if self.count_is_public else count_variance,
            rate=self.noise_rate,
            count_scale=scale,
            count_is_laplace=laplace,
        )
        if self.levels is None:
            return AdditiveModel(**entries)
        return CenteredLevelsModel(center=self.levels.center, block_sizes=self.levels.block_sizes, **entries)

    @property
    def expected_error(self) -> float:
        return self.model.frobenius_error

    @property
    def expected_count_error(self) -> float | None:
        variance = self.model.count_variance
        if self.count_loss is not None or variance is None:
            return super().expected_count_error
        return math.sqrt(variance)

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """Sensitivity of the augmented Gram matrix, unit-ball units."""

    @abstractmethod
    def add_noise(self, privacy_filter: PrivacyFilter, what: Query, query: IntegerArray) -> FloatArray:
        """Return the noisy augmented Gram matrix, unit-ball units."""
        # `query` is in units of 2^(−2·bits).

    @property
    def passes(self) -> int | None:
        return 1

    def check_rows(self, rows: Rows) -> None:
        super().check_rows(rows)
        require_levels(rows, self.levels)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        return self.released(rows.moments(bits=self.bits), privacy_filter)

    def released(self, moments: ExactMoments, privacy_filter: PrivacyFilter) -> RunResult:
        """Release moments of rows of norm at most 1, in units of their radius, with noise."""
        what = "count-sum-gram" if self.augmentation else "gram"
        if self.levels is not None:
            values = self.add_noise(privacy_filter, what, self.levels.augmented_gram(moments, self.augmentation))
            known = self.released_count(moments.count, privacy_filter)
            count, total, gram = self.levels.about_zero(values, self.augmentation, known)
            return RunResult(count=count, sum=total, gram=gram, model=self.model)
        values = self.add_noise(privacy_filter, what, augmented_gram(moments, self.augmentation))
        result = taken_apart(values, self.augmentation, self.released_count(moments.count, privacy_filter))
        return replace(result, model=self.model)


def noise_dimension(shape: MomentShape, levels: LevelCoordinates | None, augmentation: float) -> int:
    """Return the rows of the noisy matrix of features, or of coordinates of levels."""
    return augmented_dimension(shape.n_features if levels is None else levels.n_coordinates, augmentation)


def row_square_of(levels: LevelCoordinates | None) -> float:
    """Return the largest squared norm of a row of features, or of coordinates of levels."""
    return 1.0 if levels is None else levels.row_square


def require_levels(rows: Rows, levels: LevelCoordinates | None) -> None:
    """Refuse rows of a schema with other levels."""
    if levels is not None and LevelCoordinates.of(rows.schema) != levels:
        raise InputValueError(
            "the plan is for a schema with other levels, on which its sensitivity depends: make the plan from "
            "the same schema"
        )


def too_coarse_for_levels(shape: MomentShape, bits: int) -> bool:
    """Return True if levels are not exact on the lattice."""
    return shape.levels is not None and bits < LATTICE_BITS


def choose_augmentation_about_levels(
    shape: MomentShape,
    neighbors: Neighbors,
    sensitivity: Callable[[MomentShape, Neighbors, float], float],
    **assumed: float,
) -> float:
    """Choose the appended constant for noise in coordinates of levels, if the shape has them."""
    # Otherwise by `choose_augmentation` with the other arguments.

    def of_constant(w: float) -> float:
        return sensitivity(shape, neighbors, w)

    noisy_count = not shape.count_is_public(neighbors)
    if shape.levels is None or not shape.mean:
        return choose_augmentation(shape, of_constant, noisy_count=noisy_count, **assumed)
    return shape.levels.choose_augmentation(of_constant, noisy_count=noisy_count, mean_weight=shape.mean_weight)


def augmented_dimension(n_features: int, augmentation: float) -> int:
    """Return the entries of the augmented row z = (w, x)."""
    # d + 1, or d if `augmentation` (w) is 0.
    return n_features + (1 if augmentation else 0)


def taken_apart(
    matrix: FloatArray, augmentation: float, count: float | None, diagnostics: Mapping[str, Any] | None = None
) -> RunResult:
    """Split a noisy :func:`augmented_gram` (unit-ball units) into count, sum and Gram matrix."""
    # `count` if known otherwise.
    result: Mapping[str, Any] = {} if diagnostics is None else diagnostics
    if not augmentation:
        return RunResult(count=count, sum=None, gram=matrix, diagnostics=result)
    return RunResult(
        count=count if count is not None else float(matrix[0, 0]) / augmentation**2,
        sum=matrix[0, 1:] / augmentation,
        gram=np.ascontiguousarray(matrix[1:, 1:]),
        diagnostics=result,
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
