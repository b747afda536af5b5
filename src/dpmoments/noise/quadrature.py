"""Integrals of positive functions with one peak, given and returned as logarithms.

Privacy curves are such integrals: a density times ``1 - exp(epsilon - loss)`` where that is positive. In the
far tail the peak is narrow, its place in a wide interval is unknown, and its height is far below the smallest
float. So the peak is first enclosed, from values of the logarithm alone, and then integrated by Gauss-Legendre
panels.
"""

import math
from collections.abc import Callable

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputArithmeticError

_DROP = 45.0  # the enclosure leaves out values below exp(-45) of the peak
_CELLS = 64
_CELL_MIDDLES = (np.arange(_CELLS, dtype=np.float64) + 0.5) / _CELLS
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 16
_POINTS = ((np.arange(_PANELS)[:, None] + 0.5 * (_NODES + 1.0)) / _PANELS).ravel()
_POINT_WEIGHTS = np.tile(0.5 * _WEIGHTS / _PANELS, _PANELS)


def log_integral(log_integrand: Callable[[FloatArray], FloatArray], lower: float, upper: float) -> float:
    """Logarithm of the integral of ``exp(log_integrand)`` over a finite interval.

    Parameters
    ----------
    log_integrand : callable
        Vectorised; smooth inside the interval, with one peak. Never called at the ends.
    lower, upper : float
        ``lower < upper``.

    Returns
    -------
    float
        Relative error of the integral around ``1e-13`` beyond that of the integrand.

    Examples
    --------
    >>> value = log_integral(lambda x: -0.5 * (x - 3.0) ** 2 * 1e8 - 900.0, 0.0, 1e4)
    >>> abs(value + 900.0 - 0.5 * math.log(2.0 * math.pi / 1e8)) < 1e-12
    True
    """
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
    """Logarithm of the integral of ``exp(log_integrand)`` from ``lower`` to infinity.

    Parameters
    ----------
    log_integrand : callable
        As in :func:`log_integral`, and falling at least exponentially in the end.
    width : float
        A guess, of any quality, of how far the peak reaches above ``lower``.

    Examples
    --------
    >>> abs(log_integral_above(lambda x: -x, 0.0, 1.0)) < 1e-12
    True
    """
    steps = 2.0 ** np.arange(-60.0, 61.0)
    values = log_integrand(lower + width * steps)
    peak = int(np.argmax(values))
    below = np.flatnonzero(values[peak:] < values[peak] - 2.0 * _DROP)
    if below.size == 0:
        raise InputArithmeticError("the integrand does not fall off within floating-point range")
    return log_integral(log_integrand, lower, lower + width * float(steps[peak + int(below[0])]))


def log_or_minus_infinity(x: FloatArray) -> FloatArray:
    """Logarithm of non-negative numbers: minus infinity at zero, without a warning.

    >>> log_or_minus_infinity(np.array([0.0, 1.0]))
    array([-inf,   0.])
    """
    with np.errstate(divide="ignore"):
        logarithm: FloatArray = np.log(x)
    return logarithm


def log_gamma_density(x: FloatArray, shape: float) -> FloatArray:
    """Log density of the gamma distribution of unit scale, accurate in relative terms at large shapes too.

    Written with ``z = x / shape - 1`` as ``-shape (z - log(1 + z)) - log x + log(shape / 2 pi) / 2 -
    (Stirling's error)``: the large terms of the textbook form cancel here before anything is rounded (Loader
    2000).

    Parameters
    ----------
    x : ndarray
        Positive.
    shape : float
        Positive.

    Returns
    -------
    ndarray
        Of the shape of ``x``.

    Examples
    --------
    >>> log_gamma_density(np.array([2.0]), 1.0)
    array([-2.])
    """
    z = (x - shape) / shape
    constant = 0.5 * math.log(shape / (2.0 * math.pi)) - stirling_error(shape)
    near = np.abs(z) < 0.5
    log_ratio = np.where(near, np.log1p(np.where(near, z, 0.0)), np.log(x / shape))
    density: FloatArray = -shape * (z - log_ratio) - np.log(x) + constant
    return density


def stirling_error(shape: float) -> float:
    """What Stirling's formula leaves out: ``log Gamma(s) - ((s - 1/2) log s - s + log(2 pi) / 2)``.

    >>> abs(stirling_error(29.9) - stirling_error(30.1)) < 2e-5
    True
    """
    if shape < 30.0:
        return math.lgamma(shape) - ((shape - 0.5) * math.log(shape) - shape + 0.5 * math.log(2.0 * math.pi))
    s = 1.0 / (shape * shape)
    return (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / shape
