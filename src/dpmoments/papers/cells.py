"""Noise cells of Wishart matrices, and quantiles of their extreme eigenvalues.

Only mechanisms of papers draw them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import scipy

from dpmoments.base.arrays import FloatArray
from dpmoments.base.checks import check_at_least, check_between, check_probability
from dpmoments.base.one_variable import log_gamma_density, log_integral
from dpmoments.moments.cells import (
    MIN_SHAPE,
    CellFamily,
    ComplexArray,
    cantelli_quantile,
    difference_log_moment,
    gamma_difference_quantile,
    largest_diagonal,
    mixture_bound,
    root_of,
)
from dpmoments.moments.extreme_eigenvalues import SEED, all_below, least_value, n_draws, outside

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
