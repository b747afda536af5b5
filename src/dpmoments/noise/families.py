"""The noise laws of the mechanisms of this package, one small class each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, is_finite_number, require_kinds, require_known, shown
from dpmoments.noise.law import NoiseLaw, cantelli_quantile, register_noise_law
from dpmoments.noise.quadrature import log_gamma_density, log_integral

# Quantiles of a gamma variable and of the difference of two: the laws of one cell of noise made of Wisharts.

_MIN_SHAPE = 0.5
"""That of one squared normal; no Wishart has cells below it, and Cantelli's inequality stands in, which is wider."""
_MAX_LIBRARY_SHAPE = 1e4
"""Far above it SciPy's incomplete gamma functions lose their lower tail (12 % of 5·10⁻¹⁰ at a shape of 2²⁵)."""
_MAX_SHAPE = 1e12
"""From here on a gamma variable is normal: six deviations out they differ by 10⁻⁵ of one."""
_MAX_DIFFERENCE_SHAPE = 1e8
"""From here on a difference of two is: its fourth cumulant is 3/a of the squared variance, and it has no third."""
_REACH = 60.0
"""Standard deviations beyond a quantile that are integrated; from a shape of 10⁴ on no law has tails that reach further."""


def gamma_quantile(level: float, shape: float) -> float:
    """Quantile of (G − a)/√a, G a Gamma(a) variable.

    Parameters
    ----------
    level : float
        Between 0 and 1.
    shape : float
        a; below 1/2 the bound of Cantelli's inequality is returned.

    Notes
    -----
    At large shapes the root of the integrated tail, between bounds that hold but with probability e^{−x} (Laurent & Massart
    2000): −√(2x) below and √(2x) + x/√a above.

    Examples
    --------
    >>> round(gamma_quantile(0.5, 1.0), 6), round(math.log(2.0) - 1.0, 6)
    (-0.306853, -0.306853)
    """
    if shape < _MIN_SHAPE:
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
    return _root(lambda deviations: log_tail(deviations) - log_probability, *ends)


def gamma_difference_quantile(level: float, shape: float) -> float:
    """Quantile of (G − G′)/√(2a), G and G′ independent Gamma(a) variables.

    Parameters
    ----------
    level : float
        Between 0 and 1.
    shape : float
        a; below 1/2 the bound of Cantelli's inequality is returned.

    Notes
    -----
    The law is symmetric; its upper quantile is the root of :func:`_gamma_difference_log_tail`, bracketed by Chernoff's
    inequality at half the largest exponent: P(G − G′ > x) ≤ e^{−x/2}(4/3)^a.

    Examples
    --------
    The difference of two exponentials is a Laplace variable:

    >>> round(gamma_difference_quantile(0.9, 1.0) * math.sqrt(2.0), 6), round(math.log(0.5 / 0.1), 6)
    (1.609438, 1.609438)
    """
    if shape < _MIN_SHAPE:
        return cantelli_quantile(level)
    if shape > _MAX_DIFFERENCE_SHAPE:
        return float(scipy.special.ndtri(level))
    if level == 0.5:
        return 0.0
    deviation, log_probability = math.sqrt(2.0 * shape), math.log(min(level, 1.0 - level))
    furthest = 2.0 * (shape * math.log(4.0 / 3.0) - log_probability) / deviation
    root = _root(lambda x: _gamma_difference_log_tail(x * deviation, shape) - log_probability, 0.0, furthest)
    return math.copysign(root, level - 0.5)


def _gamma_difference_log_tail(x: float, shape: float) -> float:
    """log P(G − G′ > x) for independent Gamma(a) variables, x ≥ 0."""
    if x == 0.0:
        return math.log(0.5)

    def log_integrand(u: FloatArray) -> FloatArray:
        y = np.exp(u)
        value: FloatArray = log_gamma_density(y, shape) + u + scipy.special.log_ndtr(-x / np.sqrt(2.0 * y))
        return value

    # The peak in y is at most near (a + √(a² + x²))/2; far below min(x, x²) the normal factor leaves nothing.
    highest = math.log(10.0 * (shape + x) + 100.0)
    lowest = math.log(min(x, x * x, 1.0)) - 10.0
    return log_integral(log_integrand, lowest, highest)


def _root(excess: Callable[[float], float], low: float, high: float) -> float:

    return float(scipy.optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-13))


@register_noise_law
@dataclass(frozen=True)
class GaussianNoise(NoiseLaw):
    """Independent normal cells.

    Spectral norm of m rows: σ(√(2m) + √(2 ln(2/β))) for the isotropic law (Gaussian concentration around E‖N‖_op ≤ σ√(2m),
    two-sided by symmetry), and the same with √2σ for equal variances. Sum: √(variance)·(√m + √(2 ln(1/β))).
    Loss: the curve of two normals at distance μ, μ² = Σ Δ²/variance over the cells (Balle & Wang 2018).

    Examples
    --------
    >>> law = GaussianNoise(3, 2.0, 1.0, None, 0.0)
    >>> round(law.frobenius_error, 3), round(law.cell_quantile(0.975, diagonal=False), 3)
    (3.464, 1.96)
    """

    name: ClassVar[str] = "gaussian"

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        scale = math.sqrt(max(self.diagonal_variance, 2.0 * self.off_diagonal_variance))
        return scale * (math.sqrt(2.0 * m) + math.sqrt(2.0 * math.log(2.0 / failure)))

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        m = self._bounded_rows(failure, size)
        return math.sqrt(self.sum_variance) * (math.sqrt(m) + math.sqrt(2.0 * math.log(1.0 / failure)))

    def count_bound(self, failure: float) -> float:
        if self.count_variance is None:
            raise ValueError("no count was released")
        return math.sqrt(self.count_variance) * math.sqrt(2.0 * math.log(2.0 / failure))

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - the same on all cells

        return float(scipy.special.ndtri(level))


@register_noise_law
@dataclass(frozen=True)
class LaplaceNoise(NoiseLaw):
    """Independent Laplace cells.

    Spectral norm of m rows: m times the largest of m(m+1)/2 entries, by a union bound. Loss: Σ |Δ|/scale over the cells,
    reached where every cell lies beyond both means.
    """

    name: ClassVar[str] = "laplace"

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        return math.sqrt(self.diagonal_variance / 2.0) * math.log(m * (m + 1) / 2.0 / failure) * m

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - the same on all cells
        tail = math.log(2.0 * min(level, 1.0 - level)) / math.sqrt(2.0)
        return tail if level < 0.5 else -tail


@register_noise_law
@dataclass(frozen=True)
class IsotropicNoise(NoiseLaw):
    """Density ∝ e^{−c‖N‖_F} on the augmented matrix: variances 2a/c², a/c², a = (m + 1)/2, m the cells of its triangle.

    N = √(2Y)·Z/c with Y ~ Gamma(a) and Z symmetric normal noise of variances 1 and 1/2, independent
    (``docs/derivations/isotropic.md``): every cell, standardised, is the difference of two Gamma(a), exactly.

    Bounds: that of Z as for :class:`GaussianNoise`, times √(2Y)/c, each at half the failure probability; a Gamma(a) is below
    a + √(2ax) + x but with probability e^{−x} (Laurent & Massart 2000). For matrices that of ‖N‖_F, Gamma(m)/c, where it is
    less.

    Loss: c times the norm of the released shift in svec coordinates. The log density of those cells falls along a ray at a
    rate of at most c, and of c far out.

    Attributes
    ----------
    rate : float
        c.
    """

    rate: float

    name: ClassVar[str] = "isotropic"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rate > 0:
            raise ValueError("the noise law has no rate: it must be above 0")
        if not math.isfinite(self.diagonal_variance * self.rate * self.rate):
            raise ValueError(
                f"no isotropic noise of rate={self.rate!r} has diagonal_variance={self.diagonal_variance!r}"
            )

    def of_rows_in_ball(self, radius: float) -> NoiseLaw:
        return replace(self, **self._scaled_variances(radius), rate=self.rate / radius**2)

    @property
    def mixing_shape(self) -> float:
        """a above."""
        return self.diagonal_variance * self.rate * self.rate / 2.0

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        of_normal = math.sqrt(2.0 * m) + math.sqrt(2.0 * math.log(4.0 / failure))
        by_mixture = math.sqrt(self.diagonal_variance) * self._mixing_bound(failure / 2.0) * of_normal
        coordinates = max(2.0 * self.mixing_shape - 1.0, 1.0)
        return min(by_mixture, _gamma_bound(failure, coordinates) / self.rate)

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        m = self._bounded_rows(failure, size)
        of_normal = math.sqrt(m) + math.sqrt(2.0 * math.log(2.0 / failure))
        return math.sqrt(self.sum_variance) * self._mixing_bound(failure / 2.0) * of_normal

    def count_bound(self, failure: float) -> float:
        return -self.count_quantile(failure / 2.0)

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - the same on all cells
        return gamma_difference_quantile(level, self.mixing_shape)

    def _mixing_bound(self, failure: float) -> float:
        """What √(Y/a) stays below but with probability ``failure``."""
        a = self.mixing_shape
        return math.sqrt(_gamma_bound(failure, a) / a) if a > 0.0 else 1.0


def _gamma_bound(failure: float, shape: float) -> float:
    """What a Gamma variable stays below but with probability ``failure`` (Laurent & Massart 2000)."""
    x = -math.log(failure)
    return shape + math.sqrt(2.0 * shape * x) + x


@dataclass(frozen=True)
class NoiseOfWisharts(NoiseLaw):
    """What the laws made of Wisharts of scale matrix I/(2c) share.

    Attributes
    ----------
    rate : float
        c.
    """

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rate > 0:
            raise ValueError("the noise law has no rate: it must be above 0")
        if not math.isfinite(self.diagonal_variance * self.rate * self.rate):
            raise ValueError(f"no Wishart of rate={self.rate!r} has diagonal_variance={self.diagonal_variance!r}")

    def of_rows_in_ball(self, radius: float) -> NoiseLaw:
        return replace(self, **self._scaled_variances(radius), rate=self.rate / radius**2)


@register_noise_law
@dataclass(frozen=True)
class MatrixLaplaceNoise(NoiseOfWisharts):
    """The difference of two Wisharts, N = (UᵀU − VᵀV)/(2c) with U, V ν × d standard normal: variances ν/c², ν/(2c²).

    Spectral norm of m rows: the singular values of U and V leave √ν ± (√m + t) with probability ≤ e^{−t²/2} a side (Davidson
    & Szarek 2001), so ‖N‖ ≤ (√ν + √m + t)²/(2c) with two such events, and 2√ν(√m + t)/c with four.

    Quantiles: a diagonal cell of UᵀU is χ²_ν, so one of N is the difference of two Gamma(ν/2)/c. Off the diagonal
    u_i u_j = ((u_i + u_j)² − (u_i − u_j)²)/4 turns a cell of UᵀU into the difference of two χ²_ν/2, and one of N into that of
    two Gamma(ν)/(2c).

    Loss: c‖Δ‖_*, Δ the shift of the augmented matrix: reached where Ĝ − G is definite if Δ is semi-definite (the density
    there is ∝ e^{−c·tr}), else the limit far along Δ (``docs/derivations/matrix_laplace.md``). None where the
    count cell is not released beside a sum: a marginal law without a closed form.
    """

    name: ClassVar[str] = "matrix-laplace"

    @property
    def spectral_skews(self) -> tuple[float, float]:
        skew = self.n_features / (2.0 * self.rate)
        return skew, skew

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        root = math.sqrt(self.diagonal_variance * self.rate**2)
        largest = (root + math.sqrt(m) + math.sqrt(2.0 * math.log(2.0 / failure))) ** 2 / (2.0 * self.rate)
        reach = math.sqrt(m) + math.sqrt(2.0 * math.log(4.0 / failure))
        return min(largest, 2.0 * root * reach / self.rate) if reach < root else largest

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:
        squared_rate = self.rate * self.rate
        shape = (
            self.diagonal_variance * squared_rate / 2.0 if diagonal else 2.0 * self.off_diagonal_variance * squared_rate
        )
        return gamma_difference_quantile(level, shape)


@register_noise_law
@dataclass(frozen=True)
class WishartNoise(NoiseOfWisharts):
    """One Wishart less its mean, N = (UᵀU − kI)/(2c) with U k × d standard normal: variances k/(2c²), k/(4c²).

    Spectral norm of m rows: the singular values of U, as for :class:`MatrixLaplaceNoise`; two events. Quantiles: a diagonal
    cell is (χ²_k − k)/(2c), one off the diagonal the difference of two Gamma(k/2)/(2c).
    """

    name: ClassVar[str] = "wishart"

    @property
    def spectral_skews(self) -> tuple[float, float]:
        return self.n_features / (2.0 * self.rate), 0.0

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        m = self._bounded_rows(failure, size)
        degrees = 2.0 * self.diagonal_variance * self.rate**2
        root, reach = math.sqrt(degrees), math.sqrt(m) + math.sqrt(2.0 * math.log(2.0 / failure))
        above, below = (root + reach) ** 2 - degrees, degrees - max(root - reach, 0.0) ** 2
        return max(above, below) / (2.0 * self.rate)

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:
        squared_rate = self.rate * self.rate
        if diagonal:
            return gamma_quantile(level, self.diagonal_variance * squared_rate)
        return gamma_difference_quantile(level, 2.0 * self.off_diagonal_variance * squared_rate)


# The law of the noise on a mean released alone, coordinate by coordinate.

_LAWS = ("gaussian", "laplace")
_ALIKE = 1e-6
"""Laplace scales that differ by less than this share are taken for equal, where the general formula would lose all digits."""
_STANDARD_LAPLACE = math.sqrt(0.5)
"""The scale of a Laplace variable of variance 1."""


@dataclass(frozen=True, eq=False)
class MeanNoise:
    """Noise on every coordinate of a mean, in the units in which rows are encoded: that of the last step, and of the count.

    A sum with noise of standard deviation s is divided by the number of rows n. Where n is itself noisy, with standard
    deviation s_n, the mean of the clipped rows, ``m`` away from the last centre, is wrong by (s·Z + m·s_n·Z′)/n to first
    order; Z and Z′ are independent and both of the law named.

    **It is the noise alone.** What clipping moves the mean by is not in it, nor that rows are a sample.

    Attributes
    ----------
    law : {"gaussian", "laplace"}
    deviations : ndarray of shape (d,)
        s/n.
    count_deviations : ndarray of shape (d,)
        |m|·s_n/n; 0 where the number of rows is public.
    clipped : float or None
        Noisy share of the rows that the last step clipped, 0 where none stood out of the noise (of coordinates clipped one by one
        the largest share); None where nothing was spent on it.
    bias_suspected : bool
        Whether, by what the run saw of its rows, clipping may have moved the mean by more than the noise.

    Examples
    --------
    >>> law = MeanNoise("gaussian", np.array([3.0]), np.array([4.0]))
    >>> law.standard_deviations, law.half_widths(0.95).round(3)
    (array([5.]), array([9.8]))
    """

    law: str
    deviations: FloatArray
    count_deviations: FloatArray
    clipped: float | None = None
    bias_suspected: bool = False

    def __post_init__(self) -> None:
        if self.law not in _LAWS:
            raise ValueError(f"the noise of a mean is {' or '.join(_LAWS)}, not {shown(self.law)}")
        if self.deviations.shape != self.count_deviations.shape or self.deviations.ndim != 1:
            raise ValueError("the noise of a mean has deviations and count_deviations, one of each a coordinate")
        for values in (self.deviations, self.count_deviations):
            if not (np.isfinite(values).all() and (values >= 0.0).all()):
                raise ValueError("the noise of a mean has standard deviations that are no finite numbers, 0 or above")
            values.setflags(write=False)
        if self.clipped is not None and not 0.0 <= self.clipped <= 1.0:
            raise ValueError(f"the noise of a mean has clipped={self.clipped!r}, which is no share of rows")

    @property
    def standard_deviations(self) -> FloatArray:
        """Of the noise of both kinds together, shape (d,)."""
        together: FloatArray = np.hypot(self.deviations, self.count_deviations)
        return together

    def half_widths(self, level: float) -> FloatArray:
        """What the size of the noise on a coordinate stays below with probability ``level``, shape (d,).

        Each coordinate by itself: of d of them together fewer are below.

        Raises
        ------
        ValueError
            If ``level`` is not above 0 and below 1.
        """
        if not (is_finite_number(level) and 0.0 < level < 1.0):
            raise ValueError(f"level={level!r} is a probability, above 0 and below 1")
        if self.law == "gaussian":
            return self.standard_deviations * float(scipy.special.ndtri(0.5 + 0.5 * level))
        larger = np.maximum(self.deviations, self.count_deviations)
        smaller = np.minimum(self.deviations, self.count_deviations)
        pairs = zip(larger.tolist(), smaller.tolist(), strict=True)
        widths: FloatArray = larger * np.array([_laplace_half_width(level, *pair) for pair in pairs])
        return widths

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; no bit is lost."""
        return {
            "law": self.law,
            "deviations": self.deviations.tolist(),
            "count_deviations": self.count_deviations.tolist(),
            "clipped": self.clipped,
            "bias_suspected": self.bias_suspected,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], n_features: int) -> MeanNoise:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        require_known(content, cls.__dataclass_fields__, "noise")
        require_kinds(content, law=str, bias_suspected=bool)
        clipped = content["clipped"]
        if not (clipped is None or is_finite_number(clipped)):
            raise ValueError(f"the noise of a mean has clipped={shown(clipped)}, which is no share of rows")
        deviations, of_count = (
            finite_numbers(content[name], n_features, name) for name in ("deviations", "count_deviations")
        )
        return cls(content["law"], deviations, of_count, clipped, content["bias_suspected"])


def _laplace_half_width(level: float, larger: float, smaller: float) -> float:
    """Below which |X + Y| is with probability ``level``, in units of ``larger``.

    X and Y are independent Laplace variables of these standard deviations. For scales a > b,
    P(|X + Y| > t) = (a²e^{−t/a} − b²e^{−t/b})/(a² − b²), and (1 + t/(2a))e^{−t/a} for a = b. Both are below 2e^{−t/(2a)}, which
    bounds the search.

    Examples
    --------
    >>> round(_laplace_half_width(0.95, 1.0, 0.0), 4), round(math.log(20.0) / math.sqrt(2.0), 4)
    (2.1183, 2.1183)
    """
    left = 1.0 - level
    ratio = smaller / larger if larger > 0.0 else 0.0
    if ratio == 0.0:
        return -math.log(left) * _STANDARD_LAPLACE

    def excess(t: float) -> float:
        """Beyond t of the larger scale, less what may be."""
        if ratio > 1.0 - _ALIKE:
            return (1.0 + 0.5 * t) * math.exp(-t) - left
        return (math.exp(-t) - ratio * ratio * math.exp(-t / ratio)) / (1.0 - ratio * ratio) - left

    result = scipy.optimize.brentq(excess, 0.0, 2.0 * math.log(2.0 / left) + 1.0)
    return float(result) * _STANDARD_LAPLACE
