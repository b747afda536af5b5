"""Distributions of one noise entry ("cell"), and of a sum of noisy counts.

Quantiles, tails of sums, and bounds on norms, one small class per family.

A cell is described in its own standard deviations. The tail of a sum of independent cells follows from their cumulant
generating functions, by one integral in the complex plane for any families.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.checks import check_probability
from dpmoments.base.one_variable import (
    brent_root,
    log_gamma_density,
    log_integral,
    log_integral_above,
    log_or_minus_infinity,
)
from dpmoments.base.values import FloatArray

_STEPS_PER_SD = 2048
"""Grid points in one SD of a sum: a finer lattice is coarsened, and quantiles rounded up."""
_FAR = 800.0
"""Scales from 0 beyond which the probability of noise is 0 in floating point."""
_SMALL_SCALE = 8.0
"""Lattice units below which a discrete Gaussian's variance is not its parameter's square."""


@dataclass(frozen=True, slots=True)
class CountNoise:
    """Sum of ``cells`` independent draws on the multiples of ``step``.

    P(z) ∝ exp(−|z|/scale) for ``laplace``, exp(−z²/(2·scale²)) for ``gaussian``.
    """

    law: str
    scale: float
    step: float = 1.0
    cells: int = 1

    def of_sum(self, cells: int) -> CountNoise:
        """Return the noise of a sum of several such counts."""
        return replace(self, cells=self.cells * cells)

    @property
    def standard_deviation(self) -> float:
        """SD of the noise, in rows."""
        if self.law == "laplace":
            tail = math.exp(-self.step / self.scale)
            of_cell = 2.0 * tail * (self.step / math.expm1(-self.step / self.scale)) ** 2
        elif self.scale >= _SMALL_SCALE * self.step:
            of_cell = self.scale**2
        else:
            points = np.arange(-100.0, 101.0)
            weights = np.exp(-0.5 * (points * min(self.step / self.scale, _FAR)) ** 2)
            of_cell = float(self.step**2 * (weights @ points**2) / weights.sum())
        return math.sqrt(self.cells * of_cell)

    def half_width(self, level: float) -> float:
        """Return the smallest bound on the noise with probability ``level`` or more, in rows."""
        check_probability("level", level)
        step, within = _distribution(self)
        reached = int(np.searchsorted(within, level))
        return step * (reached + (step != self.step))

    def quantile(self, level: float, *, of: str = "cell") -> float:
        """Return the quantile at ``level``, above one half, in SDs; ``of`` makes no difference."""
        return self.half_width(2.0 * level - 1.0) / max(self.standard_deviation, 1e-300)


@lru_cache(maxsize=64)
def _distribution(noise: CountNoise) -> tuple[float, FloatArray]:
    """Return a step, and the probabilities of noise of at most 0, 1, 2, … steps."""
    # The characteristic function of one draw on a grid, to the power of the number of draws; the grid is so wide that
    # what wraps around has probability below 1e-18.
    deviation = noise.standard_deviation
    step = max(noise.step, deviation / _STEPS_PER_SD)
    reach = 45.0 * noise.scale + 12.0 * deviation
    size = 1 << max(4, math.ceil(math.log2(2.0 * reach / step + 2.0)))
    distance = np.minimum(np.arange(size), size - np.arange(size)) * min(step / noise.scale, _FAR)
    weights = np.exp(-distance if noise.law == "laplace" else -0.5 * distance**2)
    weights /= weights.sum()
    if noise.cells > 1:
        weights = np.maximum(np.fft.irfft(np.fft.rfft(weights) ** noise.cells, size), 0.0)
    within = weights[: size // 2].copy()
    within[1:] *= 2.0
    within = np.cumsum(within)
    within.setflags(write=False)
    return step, within


ComplexArray = npt.NDArray[np.complex128]
_TAIL_DIGITS = 1e-11
"""Relative size at which the integral for a tail is cut off; the answer has about 8 digits."""
_MAX_POINTS = 2**17


_NO_COUNT = 1e-6
"""Ratio of the noise of a count to that of a sum below which it makes no difference."""

# Quantiles that hold for every distribution.


def cantelli_quantile(level: float) -> float:
    """Return the bound ±√(p/(1 − p)) on the quantile of any standardized variable."""
    # p is the larger side.
    return math.sqrt(level / (1.0 - level)) if level >= 0.5 else -math.sqrt((1.0 - level) / level)


# Quantiles of the difference of two gamma variables: the cells of noise made of Wisharts.

MIN_SHAPE = 0.5
"""Smallest gamma shape, that of one squared normal.

Below it Cantelli's (wider) inequality is used.
"""
# Shape from which a difference of two counts as normal. Its fourth cumulant is 3/a of the squared variance.
_MAX_DIFFERENCE_SHAPE = 1e8


def gamma_difference_quantile(level: float, shape: float) -> float:
    """Return the quantile of (G − G′)/√(2a), G and G′ independent Gamma(a).

    Below a = 1/2 the bound of Cantelli's inequality.

    The distribution is symmetric; its upper quantile is the root of :func:`_gamma_difference_log_tail`, bracketed by Chernoff's
    inequality at half the largest exponent: P(G − G′ > x) ≤ e^{−x/2}(4/3)^a.
    """
    if shape < MIN_SHAPE:
        return cantelli_quantile(level)
    if shape > _MAX_DIFFERENCE_SHAPE:
        return float(scipy.special.ndtri(level))
    if level == 0.5:
        return 0.0
    deviation, log_probability = math.sqrt(2.0 * shape), math.log(min(level, 1.0 - level))
    furthest = 2.0 * (shape * math.log(4.0 / 3.0) - log_probability) / deviation
    root = root_of(lambda x: _gamma_difference_log_tail(x * deviation, shape) - log_probability, 0.0, furthest)
    return math.copysign(root, level - 0.5)


def _gamma_difference_log_tail(x: float, shape: float) -> float:
    """Return log P(G − G′ > x) for independent Gamma(a) variables, x ≥ 0."""
    if x == 0.0:
        return math.log(0.5)

    def log_integrand(u: FloatArray) -> FloatArray:
        y = np.exp(u)
        return np.asarray(log_gamma_density(y, shape) + u + scipy.special.log_ndtr(-x / np.sqrt(2.0 * y)))

    # The peak in y is at most near (a + √(a² + x²))/2; far below min(x, x²) the normal factor leaves nothing.
    highest = math.log(10.0 * (shape + x) + 100.0)
    lowest = math.log(min(x, x * x, 1.0)) - 10.0
    return log_integral(log_integrand, lowest, highest)


def root_of(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an excess to 13 digits."""
    return brent_root(excess, low, high, xtol=1e-13, rtol=1e-13)


@dataclass(frozen=True)
class CellFamily(ABC):
    """Distribution of a symmetric matrix C of mean 0 with uncorrelated cells.

    These are the cells on and above the diagonal.

    All members are frozen and compare by value. ``rotation_invariant`` refers to cells of variance v off the diagonal and 2v on
    it.
    """

    name: ClassVar[str]
    rotation_invariant: ClassVar[bool] = True
    skewed: ClassVar[bool] = False
    """True if a diagonal cell reaches further from 0 on one side than on the other."""
    of_matrices: ClassVar[bool] = False
    """True for the noise of a whole matrix, whose cells depend on a rate."""

    @classmethod
    def at_rate(cls, square: float) -> CellFamily:  # noqa: ARG003 - for families of matrices
        """Return the family for the variance of a diagonal cell times the squared rate."""
        return cls()

    @abstractmethod
    def quantile(self, level: float, *, diagonal: bool) -> float:
        """Return the quantile of one cell, in its standard deviations."""

    @abstractmethod
    def log_moment(self, s: ComplexArray, *, diagonal: bool) -> ComplexArray:
        """Return log E exp(sX) of a cell of variance 1."""

    @abstractmethod
    def pole(self, *, diagonal: bool) -> float:
        """Return the smallest s > 0 for which E exp(sX) is infinite, or inf."""

    @abstractmethod
    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        """Bound ‖Q C Qᵀ‖, Q with ``size`` orthonormal rows, except with probability ≤ ``failure``."""
        # `cells`, shape (m, m), are the variances of C. A family that is not rotation invariant ignores `size`.

    def vector_bound(self, covariance: FloatArray, failure: float) -> float:
        """Bound the length of a linear image of cells of one row of C, from its covariance."""
        # Here by Chebyshev.
        return math.sqrt(float(np.trace(covariance)) / failure)

    def skews(self, size: int, diagonal_variance: float) -> tuple[float, float]:
        """Return κ₊ and κ₋ of the R-transform of a large matrix of ``size`` rows."""
        # R(g) = v g/((1 − κ₊g)(1 + κ₋g)).
        return 0.0, 0.0


def largest_diagonal(cells: FloatArray) -> float:
    """Return the smallest v for which variance v on and v/2 off the diagonal covers ``cells``."""
    doubled = 2.0 * cells
    np.fill_diagonal(doubled, np.diag(cells))
    return float(doubled.max(initial=0.0))


@dataclass(frozen=True)
class GaussianCells(CellFamily):
    """Independent normal cells.

    Norm: σ(√(2m) + √(2 ln(2/β))), σ² = max(diagonal, 2·off-diagonal) (Gaussian concentration about E‖N‖ ≤ σ√(2m)). Vector: √tr
    Σ + √(2‖Σ‖ ln(1/β)).
    """

    name: ClassVar[str] = "gaussian"

    def quantile(self, level: float, *, diagonal: bool) -> float:
        return float(scipy.special.ndtri(level))

    def log_moment(self, s: ComplexArray, *, diagonal: bool) -> ComplexArray:
        return 0.5 * s * s

    def pole(self, *, diagonal: bool) -> float:
        return math.inf

    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        reach = math.sqrt(2.0 * size) + math.sqrt(2.0 * math.log(2.0 / failure))
        return math.sqrt(largest_diagonal(cells)) * reach

    def vector_bound(self, covariance: FloatArray, failure: float) -> float:
        largest = float(np.linalg.norm(covariance, 2)) if covariance.any() else 0.0
        return math.sqrt(float(np.trace(covariance))) + math.sqrt(2.0 * largest * math.log(1.0 / failure))


@dataclass(frozen=True)
class LaplaceCells(CellFamily):
    """Independent Laplace cells.

    The norm is at most m times a bound on the largest of m(m + 1)/2 cells, by a union bound.
    """

    name: ClassVar[str] = "laplace"
    rotation_invariant: ClassVar[bool] = False

    def quantile(self, level: float, *, diagonal: bool) -> float:
        tail = math.log(2.0 * min(level, 1.0 - level)) / math.sqrt(2.0)
        return tail if level < 0.5 else -tail

    def log_moment(self, s: ComplexArray, *, diagonal: bool) -> ComplexArray:
        return np.asarray(-np.log1p(-0.5 * s * s))

    def pole(self, *, diagonal: bool) -> float:
        return math.sqrt(2.0)

    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        m = len(cells)
        return math.sqrt(float(cells.max(initial=0.0)) / 2.0) * math.log(m * (m + 1) / 2.0 / failure) * m


@dataclass(frozen=True)
class KNormCells(CellFamily):
    """Coordinates of K-norm noise in D = ``dimension`` dimensions.

    X = r·v, r ~ Gamma(D + 1), v a coordinate of a uniform point of the body. |v| ~ Beta(1, m), m = ``block`` the size of its
    block and 1 in the box, and |X| is a mixture of Gamma(1), …, Gamma(D − m + 1): ``docs/evidence/derivations/k-norm.md``.
    Coordinates are uncorrelated, and not independent. Norm: a union bound, as for Laplace cells.
    """

    dimension: int
    block: int = 1

    name: ClassVar[str] = "k-norm"
    rotation_invariant: ClassVar[bool] = False

    @property
    def variance(self) -> float:
        """Variance of X, the squared noise SD in units of the squared scale."""
        return 2.0 * (self.dimension + 1) * (self.dimension + 2) / ((self.block + 1) * (self.block + 2))

    @cached_property
    def _weights(self) -> FloatArray:
        """Weights of Gamma(1), Gamma(2), … in the mixture, from 1 to D − m + 1."""
        steps = np.arange(self.dimension - self.block)
        ratios = (self.dimension - self.block - steps) / (self.dimension - 1.0 - steps)
        return np.cumprod(np.append(self.block / self.dimension, ratios))

    def quantile(self, level: float, *, diagonal: bool) -> float:
        if level == 0.5:
            return 0.0
        tail, shapes = 2.0 * min(level, 1.0 - level), np.arange(1.0, len(self._weights) + 1.0)
        furthest = float(scipy.special.gammainccinv(self.dimension + 1.0, tail))
        reached = root_of(lambda x: float(self._weights @ scipy.special.gammaincc(shapes, x)) - tail, 0.0, furthest)
        return math.copysign(reached / math.sqrt(self.variance), level - 0.5)

    def half_width(self, level: float, count_ratio: float) -> float:
        """Return the t with P(|X + count_ratio·Y| ≤ t) = ``level``, both standardized.

        X and Y are coordinates of the same draw, Y of the box, as the count is.
        """
        if count_ratio < _NO_COUNT:
            return self.quantile(0.5 + 0.5 * level, diagonal=False)
        own = 1.0 / math.sqrt(self.variance)
        other = count_ratio / math.sqrt(KNormCells(self.dimension).variance)
        shape, tail = self.dimension + 1.0, math.log1p(-level)

        def integrated_tail(z: FloatArray) -> FloatArray:
            """Return ∫ P(v > u) du from z on."""
            above = 0.5 * np.maximum(1.0 - np.abs(z), 0.0) ** (self.block + 1) / (self.block + 1)
            return above + np.maximum(-z, 0.0)

        def excess(t: float) -> float:
            def log_integrand(r: FloatArray) -> FloatArray:
                inner, outer = (integrated_tail((t / r + side * other) / own) for side in (-1.0, 1.0))
                return log_gamma_density(r, shape) + log_or_minus_infinity(np.maximum(inner - outer, 0.0) * own / other)

            return log_integral_above(log_integrand, t / (own + other), shape) - tail

        furthest = (own + other) * float(scipy.special.gammainccinv(shape, 1.0 - level))
        return brent_root(excess, 1e-9 * furthest, furthest, xtol=1e-9 * furthest)

    def log_moment(self, s: ComplexArray, *, diagonal: bool) -> ComplexArray:
        z, shapes = np.asarray(s) / math.sqrt(self.variance), np.arange(1.0, len(self._weights) + 1.0)
        exponents = np.stack([-np.multiply.outer(np.log1p(sign * z), shapes) for sign in (-1.0, 1.0)])
        largest = exponents.real.max(axis=(0, -1))
        scaled = np.exp(exponents - largest[..., None]).sum(axis=0) @ self._weights
        with np.errstate(divide="ignore"):
            return np.asarray(largest + np.log(0.5 * scaled))

    def pole(self, *, diagonal: bool) -> float:
        return math.sqrt(self.variance)

    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        m = len(cells)
        reach = self.quantile(1.0 - failure / (m * (m + 1.0)), diagonal=False)
        return math.sqrt(float(cells.max(initial=0.0))) * reach * m


def _gamma_bound(failure: float, shape: float) -> float:
    """Return the bound that a Gamma variable stays below except with probability ``failure``."""
    # Source: Laurent & Massart 2000.
    x = -math.log(failure)
    return shape + math.sqrt(2.0 * shape * x) + x


def mixture_bound(covariance: FloatArray, failure: float, shape: float) -> float:
    """Bound the length of √(Y/a)·Z, Y ~ Gamma(a) and Z normal of this covariance."""
    # So are the cells of one row off the diagonal, if the matrix is made of normal rows: given the column that they
    # share, they are normal, and Y is its squared length.
    of_normal = GaussianCells().vector_bound(covariance, failure / 2.0)
    chebyshev = math.sqrt(float(np.trace(covariance)) / failure)
    return min(math.sqrt(_gamma_bound(failure / 2.0, shape) / shape) * of_normal, chebyshev)


def difference_log_moment(s: ComplexArray, shape: float) -> ComplexArray:
    return np.asarray(-shape * np.log1p(-s * s / (2.0 * shape)))


class _DifferenceCells(CellFamily):
    """Cells that are differences of two Gamma variables of one shape."""

    of_matrices: ClassVar[bool] = True

    @abstractmethod
    def _shape(self, diagonal: bool) -> float:
        """Return the shape of both variables, on or off the diagonal."""

    def quantile(self, level: float, *, diagonal: bool) -> float:
        return gamma_difference_quantile(level, self._shape(diagonal))

    def log_moment(self, s: ComplexArray, *, diagonal: bool) -> ComplexArray:
        return difference_log_moment(s, self._shape(diagonal))

    def pole(self, *, diagonal: bool) -> float:
        return math.sqrt(2.0 * self._shape(diagonal))

    def vector_bound(self, covariance: FloatArray, failure: float) -> float:
        return mixture_bound(covariance, failure, self._shape(False))


@dataclass(frozen=True)
class IsotropicCells(_DifferenceCells):
    """Density ∝ e^{−c‖C‖_F}: C = √(2Y)·Z/c, Y ~ Gamma(a), Z symmetric normal.

    ``docs/evidence/derivations/isotropic.md``.

    Every cell, standardized, is the difference of two Gamma(a), exactly; so is every linear image of one row, times a normal
    vector. Norm: that of Z times √(2Y)/c, each at half the failure probability, or that of ‖C‖_F ~ Gamma(2a − 1)/c. ``shape``
    is a, half of the variance of a diagonal cell times c².
    """

    shape: float

    name: ClassVar[str] = "isotropic"

    @classmethod
    def at_rate(cls, square: float) -> CellFamily:
        return cls(square / 2.0)

    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        deviation = math.sqrt(largest_diagonal(cells))
        of_normal = math.sqrt(2.0 * size) + math.sqrt(2.0 * math.log(4.0 / failure))
        by_mixture = deviation * math.sqrt(_gamma_bound(failure / 2.0, self.shape) / self.shape) * of_normal
        rate_times_deviation = math.sqrt(2.0 * self.shape)
        by_length = _gamma_bound(failure, max(2.0 * self.shape - 1.0, 1.0)) * deviation / rate_times_deviation
        return min(by_mixture, by_length)

    def _shape(self, diagonal: bool) -> float:
        return self.shape


@dataclass(frozen=True)
class MatrixLaplaceCells(_DifferenceCells):
    """Difference of two Wisharts, C ∝ UᵀU − VᵀV.

    U and V are standard normal of ν = ``degrees`` rows.

    Cells: on the diagonal the difference of two Gamma(ν/2), off it that of two Gamma(ν). Norm: the singular values of U and V
    leave √ν ± (√m + t) with probability ≤ e^{−t²/2} on each side (Davidson & Szarek 2001).
    """

    degrees: float

    name: ClassVar[str] = "matrix-laplace"

    @classmethod
    def at_rate(cls, square: float) -> CellFamily:
        return cls(square)

    def norm_bound(self, cells: FloatArray, failure: float, size: int) -> float:
        root = math.sqrt(self.degrees)
        unit = math.sqrt(largest_diagonal(cells)) / root  # 1/c
        largest = (root + math.sqrt(size) + math.sqrt(2.0 * math.log(2.0 / failure))) ** 2 * unit / 2.0
        reach = math.sqrt(size) + math.sqrt(2.0 * math.log(4.0 / failure))
        return min(largest, 2.0 * root * reach * unit) if reach < root else largest

    def skews(self, size: int, diagonal_variance: float) -> tuple[float, float]:
        skew = size * math.sqrt(diagonal_variance / self.degrees) / 2.0
        return skew, skew

    def _shape(self, diagonal: bool) -> float:
        return self.degrees / 2.0 if diagonal else self.degrees


@lru_cache(maxsize=1024)
def sum_quantile(level: float, parts: tuple[tuple[CellFamily, float, bool], ...]) -> float:
    """Return the quantile of a sum of independent cells, in its standard deviations."""
    # P(X > x) = (1/2πi)∫ e^{K(s) − sx}/s ds along a vertical line through the saddle point, where nothing cancels: the
    # tail keeps its relative accuracy however small it is. The saddle point is sought, and x = K′(s) − 1/s follows from it.
    # No quantile is beyond that of Cantelli's inequality.
    total = math.sqrt(math.fsum(deviation**2 for _, deviation, _ in parts))
    parts = tuple((family, deviation / total, diagonal) for family, deviation, diagonal in parts if deviation > 0.0)
    if len(parts) == 1:
        return parts[0][0].quantile(level, diagonal=parts[0][2])
    if all(isinstance(family, GaussianCells) for family, _, _ in parts):
        return float(scipy.special.ndtri(level))
    side = 1.0 if level >= 0.5 else -1.0
    wanted = math.log(min(level, 1.0 - level))
    # the pole of a one-sided cell is on its own side; that of the others bounds both
    ends = [
        family.pole(diagonal=diagonal) / deviation
        for family, deviation, diagonal in parts
        if side > 0.0 or not (diagonal and family.skewed)
    ]
    pole = min(ends, default=math.inf)

    @cache
    def at(place: float) -> tuple[float, float]:
        saddle = math.exp(place) if math.isinf(pole) else pole * float(scipy.special.expit(place))
        return _tail_at(saddle, pole, side, parts)

    near, far, furthest = 0.0, 1.0, abs(cantelli_quantile(level))
    while at(near)[1] < wanted:
        near, far = near - 1.0, near
    while at(far)[1] > wanted and at(far)[0] < furthest:
        near, far = far, far + 1.0
    if at(far)[1] > wanted:
        return side * furthest
    return side * min(at(brent_root(lambda place: at(place)[1] - wanted, near, far, xtol=1e-9))[0], furthest)


def _tail_at(
    saddle: float, pole: float, side: float, parts: Sequence[tuple[CellFamily, float, bool]]
) -> tuple[float, float]:
    """Return the x of a saddle point, and log P(side·X > x)."""

    def exponent(s: Any) -> Any:
        """Return K(s) − log s."""
        value = -np.log(s)
        for family, deviation, diagonal in parts:
            value = value + family.log_moment(side * deviation * s, diagonal=diagonal)
        return value

    distance = min(saddle, pole - saddle)
    small = 1e-8 * distance
    beside = complex(exponent(complex(saddle, small)))
    x, step = beside.imag / small, 0.15 * distance
    peak = beside.real - saddle * x
    total, start, block = 0.5, 1, 256
    while start < _MAX_POINTS:
        s = saddle + 1j * step * np.arange(start, start + block)
        values = np.exp(exponent(s) - s * x - peak)
        total += float(np.real(values).sum())
        if float(np.abs(values[-8:]).max()) * block < _TAIL_DIGITS:
            break
        start, block = start + block, 2 * block
    return x, peak + math.log(max(total * step / math.pi, 1e-300))
