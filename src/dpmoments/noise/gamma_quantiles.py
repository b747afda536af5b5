"""Quantiles of a gamma variable and of the difference of two: the laws of one cell of noise made of Wisharts.

Both are standardised: less their mean, in units of their standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.chebyshev import cantelli_quantile
from dpmoments.noise.quadrature import log_gamma_density, log_integral

__all__ = ["gamma_difference_log_tail", "gamma_difference_quantile", "gamma_quantile"]

SMALLEST_SHAPE = 0.5
"""That of one squared normal; no Wishart has cells below it, and Cantelli's inequality stands in, which is wider."""
LARGEST_LIBRARY_SHAPE = 1e4
"""Far above it SciPy's incomplete gamma functions lose their lower tail (12 % of 5·10⁻¹⁰ at a shape of 2²⁵)."""
LARGEST_SHAPE = 1e12
"""From here on a gamma variable is normal: six deviations out they differ by 10⁻⁵ of one."""
LARGEST_DIFFERENCE_SHAPE = 1e8
"""From here on a difference of two is: its fourth cumulant is 3/a of the squared variance, and it has no third."""
REACH = 60.0
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
    if shape < SMALLEST_SHAPE:
        return cantelli_quantile(level)
    if shape > LARGEST_SHAPE:
        return float(scipy.special.ndtri(level))
    lower, root_shape = level < 0.5, math.sqrt(shape)
    if shape <= LARGEST_LIBRARY_SHAPE:
        value = scipy.special.gammaincinv(shape, level) if lower else scipy.special.gammainccinv(shape, 1.0 - level)
        return (float(value) - shape) / root_shape

    def log_density(deviations: FloatArray) -> FloatArray:
        return log_gamma_density(shape + root_shape * deviations, shape) + math.log(root_shape)

    def log_tail(deviations: float) -> float:
        if lower:
            return log_integral(log_density, max(deviations - REACH, -root_shape), deviations)
        return log_integral(log_density, deviations, deviations + REACH)

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
    The law is symmetric; its upper quantile is the root of :func:`gamma_difference_log_tail`, bracketed by Chernoff's
    inequality at half the largest exponent: P(G − G′ > x) ≤ e^{−x/2}(4/3)^a.

    Examples
    --------
    The difference of two exponentials is a Laplace variable:

    >>> round(gamma_difference_quantile(0.9, 1.0) * math.sqrt(2.0), 6), round(math.log(0.5 / 0.1), 6)
    (1.609438, 1.609438)
    """
    if shape < SMALLEST_SHAPE:
        return cantelli_quantile(level)
    if shape > LARGEST_DIFFERENCE_SHAPE:
        return float(scipy.special.ndtri(level))
    if level == 0.5:
        return 0.0
    deviation, log_probability = math.sqrt(2.0 * shape), math.log(min(level, 1.0 - level))
    furthest = 2.0 * (shape * math.log(4.0 / 3.0) - log_probability) / deviation
    root = _root(lambda x: gamma_difference_log_tail(x * deviation, shape) - log_probability, 0.0, furthest)
    return math.copysign(root, level - 0.5)


def gamma_difference_log_tail(x: float, shape: float) -> float:
    """log P(G − G′ > x) for independent Gamma(a) variables, x ≥ 0.

    E e^{it(G − G′)} = (1 + t²)^{−a} is that of a normal of variance 2Y, Y ~ Gamma(a): P = E Φ(−x/√(2Y)). In u = log Y the
    logarithm of the integrand is concave (log Φ is concave and falls with x e^{−u/2}, which is convex): one peak.

    Parameters
    ----------
    x : float
    shape : float
        a.
    """
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
