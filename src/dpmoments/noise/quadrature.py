"""Integrals of positive functions with one peak, given and returned as logarithms.

Privacy curves are such integrals: a density times ``1 - exp(epsilon - loss)`` if that is positive. In the far tail the peak is
narrow, its location in a wide interval is unknown, and its height is far below the smallest float. So the peak is first
enclosed, using only values of the logarithm, and then integrated by Gauss-Legendre panels.
"""

import math
from collections.abc import Callable

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputArithmeticError
from dpmoments.messages.message import Message

_DROP = 45.0  # the enclosure leaves out values below exp(-45) of the peak
_CELLS = 64
_CELL_MIDDLES = (np.arange(_CELLS, dtype=np.float64) + 0.5) / _CELLS
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_PANELS = 16
_POINTS = ((np.arange(_PANELS)[:, None] + 0.5 * (_NODES + 1.0)) / _PANELS).ravel()
_POINT_WEIGHTS = np.tile(0.5 * _WEIGHTS / _PANELS, _PANELS)


def log_integral(log_integrand: Callable[[FloatArray], FloatArray], lower: float, upper: float) -> float:
    """Return the logarithm of the integral of ``exp(log_integrand)`` over a finite interval.

    The vectorized integrand is smooth inside the interval, with one peak, and never evaluated at the ends. The relative error
    of the integral is around ``1e-13`` beyond that of the integrand.
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
    """Return the logarithm of the integral of ``exp(log_integrand)`` from ``lower`` to infinity.

    The integrand falls at least exponentially in the end; ``width`` is any guess of how far the peak reaches above ``lower``.
    """
    steps = 2.0 ** np.arange(-60.0, 61.0)
    values = log_integrand(lower + width * steps)
    peak = int(np.argmax(values))
    below = np.flatnonzero(values[peak:] < values[peak] - 2.0 * _DROP)
    if below.size == 0:
        raise InputArithmeticError(Message("integrand-does-not-fall"))
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
    density: FloatArray = -shape * (z - log_ratio) - np.log(x) + constant
    return density


def stirling_error(shape: float) -> float:
    """Return the error of Stirling's formula.

    ``log Gamma(s) - ((s - 1/2) log s - s + log(2 pi) / 2)``.
    """
    if shape < 30.0:
        return math.lgamma(shape) - ((shape - 0.5) * math.log(shape) - shape + 0.5 * math.log(2.0 * math.pi))
    s = 1.0 / (shape * shape)
    return (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / shape
