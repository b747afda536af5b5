"""Noise models of mechanisms of papers, whose noise is not added cell by cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import scipy

from dpmoments.base.checks import check_at_least, check_between, check_positive, check_probability
from dpmoments.base.one_variable import log_gamma_density, log_integral
from dpmoments.base.values import FloatArray, bordered
from dpmoments.moments.cells import (
    MIN_SHAPE,
    CellFamily,
    ComplexArray,
    GaussianCells,
    LaplaceCells,
    cantelli_quantile,
    difference_log_moment,
    gamma_difference_quantile,
    largest_diagonal,
    mixture_bound,
    root_of,
)
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import (
    MomentInterval,
    NoiseModel,
    ReleasedMoments,
    WithOwnCount,
    require_entry,
    symmetric_cells,
)
from dpmoments.moments.spectral import SEED, all_below, least_value, n_draws, normal_norm_quantile, outside
from dpmoments.moments.terms import NoiseTerm

# Noise cells of Wishart matrices, and quantiles of their extreme eigenvalues.
#
# Only mechanisms of papers draw them.

_MAX_LIBRARY_SHAPE = 1e4
"""Largest shape for SciPy's incomplete gamma; far above its lower tail is off by 12 %."""
_MAX_SHAPE = 1e12
"""Shape from which a gamma variable counts as normal: 10⁻⁵ SDs off six SDs out."""
_REACH = 60.0
"""SDs integrated beyond a quantile: at shapes from 10⁴ on no tail reaches further."""


def gamma_quantile(level: float, shape: float) -> float:
    """Return the quantile of (G − a)/√a, G a Gamma(a) variable.

    Below a = ``shape`` = 1/2 the bound of Cantelli's inequality. At large shapes it is the root of the integrated tail,
    between bounds that hold except with probability e^{−x} (Laurent & Massart 2000): −√(2x) below and √(2x) + x/√a
    above.
    """
    if shape < MIN_SHAPE:
        return cantelli_quantile(level)
    if shape > _MAX_SHAPE:
        return float(scipy.special.ndtri(level))
    lower, root_shape = level < 0.5, math.sqrt(shape)
    if shape <= _MAX_LIBRARY_SHAPE:
        value = scipy.special.gammaincinv(shape, level) if lower else scipy.special.gammainccinv(shape, 1.0 - level)
        return (float(value) - shape) / root_shape

    def log_density(deviations: FloatArray) -> FloatArray:
        return log_gamma_density(shape + root_shape * deviations, shape) + math.log(root_shape)

    def log_tail(deviations: float) -> float:
        if lower:
            return log_integral(log_density, max(deviations - _REACH, -root_shape), deviations)
        return log_integral(log_density, deviations, deviations + _REACH)

    log_probability = math.log(min(level, 1.0 - level))
    furthest = math.sqrt(-2.0 * log_probability)
    ends = (-furthest, 1.0) if lower else (-1.0, furthest - log_probability / root_shape)
    return root_of(lambda deviations: log_tail(deviations) - log_probability, *ends)


@dataclass(frozen=True)
class WishartCells(CellFamily):
    """Wishart less its mean, C ∝ UᵀU − kI, U standard normal of k = ``degrees`` rows.

    Cells: (χ²_k − k) on the diagonal, the difference of two Gamma(k/2) off it. Norm: the singular values of U.
    """

    degrees: float

    name: ClassVar[str] = "wishart"
    skewed: ClassVar[bool] = True
    of_matrices: ClassVar[bool] = True

    @classmethod
    def at_rate(cls, square: float) -> CellFamily:
        return cls(2.0 * square)

    def quantile(self, level: float, *, diagonal: bool) -> float:
        shape = self.degrees / 2.0
        return gamma_quantile(level, shape) if diagonal else gamma_difference_quantile(level, shape)

    def log_moment(self, s: ComplexArray, *, diagonal: bool) -> ComplexArray:
        shape = self.degrees / 2.0
        if not diagonal:
            return difference_log_moment(s, shape)
        root = math.sqrt(shape)
        return np.asarray(-shape * np.log1p(-s / root) - s * root)

    def pole(self, *, diagonal: bool) -> float:
        return math.sqrt(self.degrees / 2.0) if diagonal else math.sqrt(self.degrees)

    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        root = math.sqrt(self.degrees)
        unit = math.sqrt(2.0 * largest_diagonal(cells)) / root  # 1/c
        reach = math.sqrt(size) + math.sqrt(2.0 * math.log(2.0 / failure))
        above, below = (root + reach) ** 2 - self.degrees, self.degrees - max(root - reach, 0.0) ** 2
        return max(above, below) * unit / 2.0

    def vector_bound(self, covariance: FloatArray, failure: float) -> float:
        return mixture_bound(covariance, failure, self.degrees / 2.0)

    def skews(self, size: int, diagonal_variance: float) -> tuple[float, float]:
        return size * math.sqrt(2.0 * diagonal_variance / self.degrees) / 2.0, 0.0


@lru_cache(maxsize=256)
def wishart_eigenvalue_range(size: int, degrees: float, failure: float) -> tuple[float, float]:
    """Return an interval with all eigenvalues of a Wishart matrix of scale I.

    It fails with probability ``failure`` at most. Each end has half the failure probability. In closed form (√ν − √m −
    t)₊² and (√ν + √m + t)², t = √(2 ln(2/failure)), m = ``size`` and ν = ``degrees`` ≥ m (Davidson & Szarek 2001,
    Theorem II.13). Both ends are exact quantiles of χ²_ν for m = 1.
    """
    check_at_least("size", size)
    check_between("degrees", degrees, size, math.inf)
    check_probability("failure", failure)
    side = failure / 2.0
    if size == 1:
        return float(scipy.special.chdtri(degrees, 1.0 - side)), float(scipy.special.chdtri(degrees, side))
    reach = math.sqrt(size) + math.sqrt(2.0 * math.log(1.0 / side))
    low, high = max(math.sqrt(degrees) - reach, 0.0) ** 2, (math.sqrt(degrees) + reach) ** 2
    draws, beyond = n_draws(size, side)
    if not beyond:
        return low, high
    main, beside = _wishart_draws(size, degrees, draws)
    with np.errstate(all="ignore"):
        # a value that too few fall short of, or pass
        smallest = least_value(lambda x: outside(all_below(-main, beside, -x)) > beyond, low, degrees)
        largest = least_value(lambda x: outside(all_below(main, beside, x)) <= beyond, degrees / 2.0, high)
    return max(low, smallest[0]), min(high, largest[1])


@lru_cache(maxsize=256)
def wishart_frobenius_quantile(size: int, degrees: float, failure: float) -> float:
    """Bound ‖W − νI‖_F, W a Wishart matrix of scale I, except with probability ``failure``."""
    # With too few draws, √m times the larger distance of an end of `wishart_eigenvalue_range` from ν.
    low, high = wishart_eigenvalue_range(size, degrees, failure)
    bound = math.sqrt(size) * max(high - degrees, degrees - low)
    draws, beyond = n_draws(size, failure)
    if size == 1 or not beyond:
        return bound
    main, beside = _wishart_draws(size, degrees, draws)
    norms = np.sqrt(np.square(main - degrees).sum(axis=0) + 2.0 * beside.sum(axis=0))
    return min(bound, float(np.partition(norms, draws - 1 - beyond)[draws - 1 - beyond]))


def _wishart_draws(size: int, degrees: float, draws: int) -> tuple[FloatArray, FloatArray]:
    """Return diagonals and squared off-diagonals of tridiagonal matrices, one per column."""
    # They have the eigenvalues of Wishart matrices.
    generator = np.random.default_rng([SEED, size])
    steps = np.arange(size)
    diagonal = generator.chisquare(degrees - steps, (draws, size)).T
    below = generator.chisquare(size - 1.0 - steps[:-1], (draws, size - 1)).T
    # L Lᵀ of a lower bidiagonal L
    main = diagonal.copy()
    main[1:] += below
    return main, diagonal[:-1] * below


_LINEARIZED = "linearized"
"""Caveat: the noise distribution is linearized about the release.

It is good if noise is small relative to the moments.
"""
_ASSERTED_EIGENVALUE = "asserted-smallest-eigenvalue"
"""Caveat: the distribution holds if no eigenvalue is below the one that the caller asserted."""


def _gram_term(family: CellFamily, matrix: FloatArray, cells: FloatArray) -> NoiseTerm:
    """Return noise M C Mᵀ on the Gram matrix only."""
    return NoiseTerm(family, cells, np.vstack([np.zeros((1, matrix.shape[1])), matrix]))


@dataclass(frozen=True, kw_only=True, eq=False)
class LastStepModel(WithOwnCount):
    """Normal noise on the sums of the last step of a recursive estimator.

    It sums w = linear·(x − center), clipped to a ball.

    SDs are σ on and σ/√2 off the diagonal of Σ w wᵀ, and s on Σ w. With κ = σ/(√2 s) the moments of (κ, w) have the noise of a
    symmetric normal matrix except for its corner, which has none: that makes its spectral norm no larger at any level
    (``docs/evidence/derivations/utility-bounds-wishart.md``).
    """

    linear: FloatArray  # (d, d)
    center: FloatArray  # (d,)
    step_gram: FloatArray  # (d, d), as the step released it, in the units of w, before post-processing
    step_sum: FloatArray | None  # (d,) or None
    gram_scale: float  # with `sum_scale`: σ and s
    sum_scale: float

    name: ClassVar[str] = "last-step"
    arrays: ClassVar[Mapping[str, int]] = {"linear": 2, "center": 1, "step_gram": 2, "step_sum": 1}
    # The distribution is for the rows as the last step clipped them, and leaves out the effect of clipping.
    condition: ClassVar[str] = "clipped-in-last-step"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_sum is not None:
            check_positive("sum_scale", self.sum_scale)

    def law(self, released: ReleasedMoments) -> NoiseLaw | None:
        d = self.n_features
        shift = self.center if released.center is None else self.center - released.center
        matrix = np.eye(d + 1)
        try:
            matrix[1:, 1:] = np.linalg.inv(self.linear)
        except np.linalg.LinAlgError:
            return None
        matrix[1:, 0] = shift
        cells = np.zeros((d + 1, d + 1))
        cells[0, 1:] = cells[1:, 0] = self.sum_scale**2
        cells[1:, 1:] = symmetric_cells(d, self.gram_scale**2)
        return self._with_count([NoiseTerm(GaussianCells(), cells, matrix)], [self.condition], shift)

    def interval(self, released: ReleasedMoments, chosen: Sequence[int], failure: float) -> MomentInterval | None:
        # what the step released is used: the mechanism has repaired what was released of it
        back, count = np.linalg.inv(self.linear)[list(chosen)], released.noisy_count
        parts = 2.0 if self.count_scale else 1.0
        of_count = self.count_bound(failure / parts)
        if self.step_sum is None:
            reach = self.gram_scale * normal_norm_quantile(len(back), failure / parts)
            return MomentInterval(back @ self.step_gram @ back.T, reach * (back @ back.T), False, of_count)
        if count is None:
            return None
        kappa = self.gram_scale / (math.sqrt(2.0) * self.sum_scale)
        moments = bordered(kappa**2 * count, kappa * self.step_sum, self.step_gram)
        start = np.zeros((1, 1 + self.n_features))
        start[0, 0] = 1.0 / kappa
        matrix = np.block([[start], [self.center[list(chosen)][:, None] / kappa, back]])
        reach = self.gram_scale * normal_norm_quantile(len(matrix), failure / parts)
        constant = np.concatenate([[1.0], self.center[list(chosen)]])
        spread = reach * (matrix @ matrix.T) + of_count * np.outer(constant, constant)
        return MomentInterval(matrix @ moments @ matrix.T, spread, True, of_count)


@dataclass(frozen=True, kw_only=True, eq=False)
class InverseNormalModel(WithOwnCount):
    """Symmetric normal noise on the inverse of the Gram matrix; normal noise on the sum."""

    inverse: FloatArray  # (d, d), as released
    inverse_scale: float  # noise SD of its diagonal entries; 1/√2 of it off the diagonal
    smallest_eigenvalue: float  # lower bound that the caller asserted
    sum_scale: float | None  # noise SD of each entry of the sum; None if no sum was released

    name: ClassVar[str] = "inverse-normal"
    arrays: ClassVar[Mapping[str, int]] = {"inverse": 2}
    condition: ClassVar[str] = _ASSERTED_EIGENVALUE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("smallest_eigenvalue", self.smallest_eigenvalue)

    def law(self, released: ReleasedMoments) -> NoiseLaw:
        # (G⁻¹ + Y)⁻¹ − G = −ĜYĜ to first order
        d, gram = self.n_features, released.noisy_gram
        terms = [_gram_term(GaussianCells(), gram, symmetric_cells(d, self.inverse_scale**2))]
        if self.sum_scale is not None:
            of_sum = np.zeros((d + 1, d + 1))
            of_sum[0, 1:] = of_sum[1:, 0] = self.sum_scale**2
            terms.append(NoiseTerm(GaussianCells(), of_sum))
        return self._with_count(terms, [self.condition, _LINEARIZED])

    def interval(self, released: ReleasedMoments, chosen: Sequence[int], failure: float) -> MomentInterval | None:
        count, total = released.noisy_count, released.noisy_sum
        parts = 1.0 + (self.sum_scale is not None) + (self.count_scale > 0.0)
        if count is None or (self.sum_scale is not None and total is None):
            return None
        of_count = self.count_bound(failure / parts)
        # Each eigenvalue of the Gram matrix is at most its trace, and so at most the number of rows.
        reach = self.inverse_scale * normal_norm_quantile(self.n_features, failure / parts)
        eigenvalues, vectors = np.linalg.eigh(self.inverse)
        least = 1.0 / max(count + of_count, self.smallest_eigenvalue)
        low = (vectors / np.maximum(eigenvalues + reach, least)) @ vectors.T
        high = np.eye(self.n_features) / least
        if eigenvalues[0] - reach > least:
            high = (vectors / (eigenvalues - reach)) @ vectors.T
        block = np.ix_(chosen, chosen)
        center, spread = (high + low)[block] / 2.0, (high - low)[block] / 2.0
        if self.sum_scale is None or total is None:
            return MomentInterval(center, spread, False, of_count)
        m = len(chosen)
        of_sum = self.sum_scale * (math.sqrt(m) + math.sqrt(2.0 * math.log(parts / failure)))
        # ±(e₀eᵀ + ee₀ᵀ) ⪯ ‖e‖(η e₀e₀ᵀ + I/η) for every η > 0
        weight = math.sqrt(max(count, 1.0) * m / max(float(np.trace(center)), self.smallest_eigenvalue))
        return MomentInterval(
            bordered(count, total[list(chosen)], center),
            bordered(of_count + of_sum * weight, np.zeros(m), spread + of_sum / weight * np.eye(m)),
            True,
            of_count,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class WishartModel(WithOwnCount):
    """One draw W around Σ = Σ z zᵀ + ψI, z = (w, x).

    Wishart(Σ, ν)/ν, or (ν − D − 1) times inverse Wishart(Σ, ν). The block of any features is of the same kind: m rows
    of the first have Wishart(Σ, ν)/ν, of the second inverse Wishart with ν − D + m degrees. So ν Σ^{−½}WΣ^{−½}, or (ν −
    D − 1) Σ^{½}W⁻¹Σ^{½}, is a Wishart matrix of scale I, and the range of its eigenvalues bounds Σ from both sides
    (``docs/evidence/derivations/utility-bounds-wishart.md``).
    """

    degrees: float  # ν
    padding: float  # ψ, in unit-ball units
    # true if the released moments are W less ψI; otherwise they are biased, with no noise distribution
    subtracted: bool
    inverse: bool
    augmentation: float  # w; 0 if only the Gram matrix was drawn
    corner: float  # the entry of W for the constant, or 0
    raised: float  # value to which smaller eigenvalues were raised before the draw; 0 for none

    name: ClassVar[str] = "wishart-sampling"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("degrees", self.degrees, self.dimension + (2.0 if self.inverse else 0.0), math.inf)

    @property
    def condition(self) -> str:
        return _ASSERTED_EIGENVALUE if self.raised else ""

    @property
    def dimension(self) -> int:
        """D, the rows of the whole matrix."""
        return self.n_features + (1 if self.augmentation else 0)

    def law(self, released: ReleasedMoments) -> NoiseLaw | None:
        # W = Σ^½(I + C)Σ^½, with Σ for its own draw W: any root does, since the law of C is that of all its rotations
        beyond = self.degrees - self.dimension - 3.0
        drawn = self._drawn(released, range(self.n_features))
        if not self.subtracted or drawn is None or (self.inverse and beyond <= 0.0):
            return None
        cells = symmetric_cells(len(drawn), 2.0 / (beyond if self.inverse else self.degrees))
        family: CellFamily = GaussianCells() if self.inverse else WishartCells(self.degrees)
        eigenvalues, vectors = np.linalg.eigh(drawn)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        caveats = list(filter(None, [_LINEARIZED, self.condition]))
        if not self.augmentation:
            return self._with_count([_gram_term(family, root, cells)], caveats)
        root[0] /= self.augmentation
        known = None
        if released.count_is_public:
            known = np.append(1.0, np.zeros(self.n_features)), root[0]
        return NoiseLaw((NoiseTerm(family, cells, root, known),), tuple(sorted(caveats)))

    def _drawn(self, released: ReleasedMoments, chosen: Sequence[int]) -> FloatArray | None:
        """Return W of some features."""
        block, back = released.noisy_gram[np.ix_(chosen, chosen)], self.padding if self.subtracted else 0.0
        drawn: FloatArray = block + back * np.eye(len(chosen))
        if not self.augmentation:
            return drawn
        if released.noisy_sum is None:
            return None
        return bordered(self.corner, self.augmentation * released.noisy_sum[list(chosen)], drawn)

    def interval(self, released: ReleasedMoments, chosen: Sequence[int], failure: float) -> MomentInterval | None:
        parts, count = 2 if self.count_scale else 1, released.noisy_count
        drawn = self._drawn(released, chosen)
        if drawn is None:
            return None
        # aW ⪯ Σ ⪯ bW for the block of these rows: a is ``low`` and b ``high``.
        beyond = self.degrees - self.dimension
        if self.inverse:
            low, high = wishart_eigenvalue_range(len(drawn), beyond + len(drawn), failure / parts)
            low, high = low / (beyond - 1.0), high / (beyond - 1.0)
        else:
            least, most = wishart_eigenvalue_range(len(drawn), self.degrees, failure / parts)
            low, high = self.degrees / most, self.degrees / least if least > 0.0 else math.inf
        if not np.isfinite(high):
            return None
        size = np.eye(len(drawn))
        result = MomentInterval(
            drawn * (low + high) / 2.0 - self.padding * size,
            drawn * (high - low) / 2.0,
            False,
            self.count_bound(failure / 2.0),
        )
        if not self.augmentation:
            return result
        unit = np.ones(len(drawn))
        unit[0] = 1.0 / self.augmentation
        result = MomentInterval(result.center, result.spread, True, 0.0).mapped(np.diag(unit))
        if count is None:
            return result
        off = abs(count - float(result.center[0, 0])) + float(result.spread[0, 0]) + 0.5
        return MomentInterval(result.center, result.spread, True, off)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedBasisModel(NoiseModel):
    """Errors of a mechanism that draws eigenvectors.

    Uncorrelated entries in the released eigenbasis.
    """

    cells: FloatArray  # (d, d), mean squares of the entries, eigenvalues in descending order
    # with `count_variance`: noise variances of each entry of the sum, and of the count; None if they were not released
    sum_variance: float | None
    count_variance: float | None
    laplace: bool  # true if that noise is Laplace, False if normal

    name: ClassVar[str] = "released-basis"
    arrays: ClassVar[Mapping[str, int]] = {"cells": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        require_entry(
            (self.cells >= 0.0).all() and (self.cells == self.cells.T).all(),
            "cells",
            "symmetric, finite and not negative",
        )

    def law(self, released: ReleasedMoments) -> NoiseLaw:
        d = self.n_features
        beside = np.zeros((d + 1, d + 1))
        beside[0, 1:] = beside[1:, 0] = self.sum_variance or 0.0
        beside[0, 0] = self.count_variance or 0.0
        basis = np.linalg.eigh(released.noisy_gram)[1][:, ::-1]
        family: CellFamily = LaplaceCells() if self.laplace else GaussianCells()
        terms = _gram_term(GaussianCells(), basis, self.cells), NoiseTerm(family, beside)
        return NoiseLaw(terms, (_LINEARIZED,))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaledWishartModel(WithOwnCount):
    """Sum of k normal rows of covariance s²V added to the table's, less their mean."""

    degrees: float  # k
    scale: float  # s²
    scale_matrix: FloatArray  # (d, d): V
    augmentation: float  # w; 0 if no sum was released
    count_is_noisy: bool  # true if the number of rows comes from the draw

    name: ClassVar[str] = "scaled-wishart"
    arrays: ClassVar[Mapping[str, int]] = {"scale_matrix": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("degrees", self.degrees)
        check_positive("scale", self.scale)
        definite = (self.scale_matrix == self.scale_matrix.T).all() and np.linalg.eigvalsh(self.scale_matrix)[0] > 0.0
        require_entry(definite, "scale_matrix", "symmetric and positive definite")

    def law(self, released: ReleasedMoments | None = None) -> NoiseLaw:
        return self.fixed_law

    @property
    def fixed_law(self) -> NoiseLaw:
        d, w, variance = self.n_features, self.augmentation, self.degrees * self.scale**2
        matrix = np.eye(d + 1)
        matrix[1:, 1:] = np.linalg.cholesky(self.scale_matrix)
        cells = np.zeros((d + 1, d + 1))
        cells[1:, 1:] = symmetric_cells(d, 2.0 * variance)
        if w:
            cells[0, 1:] = cells[1:, 0] = variance / w**2
            cells[0, 0] = 2.0 * variance / w**4 if self.count_is_noisy else 0.0
        return self._with_count([NoiseTerm(WishartCells(self.degrees), cells, matrix)], ())
