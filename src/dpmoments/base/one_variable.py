"""Roots of functions of one variable, and integrals of positive ones with one peak.

``scipy.optimize`` takes longer to load than a release takes.

Integrals are given and returned as logarithms, as privacy curves are such integrals: a density times
``1 - exp(epsilon - loss)`` if that is positive. In the far tail the peak is narrow, its location in a wide interval is
unknown, and its height is far below the smallest float. So the peak is first enclosed, using only values of the logarithm,
and then integrated by Gauss-Legendre panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpmoments.base.errors import InputArithmeticError, shown
from dpmoments.base.values import FloatArray

_DROP = 45.0  # the enclosure leaves out values below exp(-45) of the peak
_CELLS = 64
_CELL_MIDDLES = (np.arange(_CELLS, dtype=np.float64) + 0.5) / _CELLS
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 16
_POINTS = ((np.arange(_PANELS)[:, None] + 0.5 * (_NODES + 1.0)) / _PANELS).ravel()
_POINT_WEIGHTS = np.tile(0.5 * _WEIGHTS / _PANELS, _PANELS)


def log_integral(log_integrand: Callable[[FloatArray], FloatArray], lower: float, upper: float) -> float:
    """Return the logarithm of the integral of ``exp(log_integrand)`` over a finite interval."""
    # The vectorized integrand is smooth inside the interval, with one peak, and never evaluated at the ends. The
    # relative error of the integral is around `1e-13` beyond that of the integrand.
    for _ in range(60):
        width = upper - lower
        values = log_integrand(lower + width * _CELL_MIDDLES)
        peak = float(np.max(values))
        if peak == -math.inf:
            return -math.inf
        kept = np.flatnonzero(values >= peak - _DROP)
        first, last = max(int(kept[0]) - 1, 0), min(int(kept[-1]) + 1, _CELLS - 1)
        if last - first + 1 > _CELLS // 2:
            break
        lower, upper = lower + first * (width / _CELLS), lower + (last + 1) * (width / _CELLS)
    values = log_integrand(lower + (upper - lower) * _POINTS)
    peak = float(np.max(values))
    return peak + math.log((upper - lower) * float(np.sum(_POINT_WEIGHTS * np.exp(values - peak))))


def log_integral_above(log_integrand: Callable[[FloatArray], FloatArray], lower: float, width: float) -> float:
    """Return the logarithm of the integral of ``exp(log_integrand)`` from ``lower`` to infinity."""
    # The integrand falls at least exponentially in the end; `width` is any guess of how far the peak reaches above
    # `lower`.
    steps = 2.0 ** np.arange(-60.0, 61.0)
    values = log_integrand(lower + width * steps)
    peak = int(np.argmax(values))
    below = np.flatnonzero(values[peak:] < values[peak] - 2.0 * _DROP)
    if below.size == 0:
        raise InputArithmeticError("the integrand does not fall off within floating-point range")
    return log_integral(log_integrand, lower, lower + width * float(steps[peak + int(below[0])]))


def log_or_minus_infinity(x: FloatArray) -> FloatArray:
    """Return the logarithm of non-negative numbers: minus infinity at zero, without a warning."""
    with np.errstate(divide="ignore"):
        logarithm: FloatArray = np.log(x)
    return logarithm


def log_gamma_density(x: FloatArray, shape: float) -> FloatArray:
    """Return the log density of the gamma distribution of unit scale.

    It is relatively accurate, also at large shapes.

    Written with ``z = x / shape - 1`` as ``-shape (z - log(1 + z)) - log x + log(shape / 2 pi) / 2 - (Stirling's error)``: the
    large terms of the textbook form cancel here before anything is rounded (Loader 2000).
    """
    z = (x - shape) / shape
    constant = 0.5 * math.log(shape / (2.0 * math.pi)) - stirling_error(shape)
    near = np.abs(z) < 0.5
    log_ratio = np.where(near, np.log1p(np.where(near, z, 0.0)), np.log(x / shape))
    return -shape * (z - log_ratio) - np.log(x) + constant


def stirling_error(shape: float) -> float:
    """Return the error of Stirling's formula."""
    # `log Gamma(s) - ((s - 1/2) log s - s + log(2 pi) / 2)`.
    if shape < 30.0:
        return math.lgamma(shape) - ((shape - 0.5) * math.log(shape) - shape + 0.5 * math.log(2.0 * math.pi))
    s = 1.0 / (shape * shape)
    return (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / shape


def brent_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> float:
    """Return a root of a continuous function between two points at which its signs differ."""
    # Brent's method (1973, "Algorithms for minimization without derivatives", chapter 4). It has the operations of
    # `scipy.optimize.brentq` in the same order: the results have the same bits.

    def value(x: float) -> float:
        result = float(function(x))
        if math.isnan(result):
            raise InputArithmeticError(f"the function is not a number at {shown(x)}, so no root can be found")
        return result

    previous, current, opposite = float(low), float(high), 0.0
    at_previous, at_current, at_opposite = value(previous), value(current), 0.0
    if at_previous == 0.0:
        return previous
    if at_current == 0.0:
        return current
    if (at_previous < 0.0) == (at_current < 0.0):
        raise InputArithmeticError(f"no root of the function was found between {shown(low)} and {shown(high)}")
    step_before = step = 0.0
    for _ in range(maxiter):
        if at_previous != 0.0 and at_current != 0.0 and (at_previous < 0.0) != (at_current < 0.0):
            opposite, at_opposite = previous, at_previous
            step_before = step = current - previous
        if abs(at_opposite) < abs(at_current):
            previous, current, opposite = current, opposite, current
            at_previous, at_current, at_opposite = at_current, at_opposite, at_current
        tolerance = (xtol + rtol * abs(current)) / 2.0
        half = (opposite - current) / 2.0
        if at_current == 0.0 or abs(half) < tolerance:
            return current
        interpolated = math.inf
        if abs(step_before) > tolerance and abs(at_current) < abs(at_previous):
            if previous == opposite:
                interpolated = -at_current * (current - previous) / (at_current - at_previous)
            else:
                slope = (at_previous - at_current) / (previous - current)
                other = (at_opposite - at_current) / (opposite - current)
                divisor = other * slope * (at_opposite - at_previous)
                if divisor != 0.0:
                    interpolated = -at_current * (at_opposite * other - at_previous * slope) / divisor
        if 2.0 * abs(interpolated) < min(abs(step_before), 3.0 * abs(half) - tolerance):
            step_before, step = step, interpolated
        else:
            step_before = step = half
        previous, at_previous = current, at_current
        current += step if abs(step) > tolerance else math.copysign(tolerance, half)
        at_current = value(current)
    raise InputArithmeticError(f"no root of the function was found between {shown(low)} and {shown(high)}")
