"""Roots of functions of one variable.

``scipy.optimize`` takes longer to load than a release takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpmoments.foundation.errors import InputArithmeticError


def brent_root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> float:
    """Return a root of a continuous function between two points at which its signs differ.

    Brent's method (1973, "Algorithms for minimization without derivatives", chapter 4). It has the operations of
    ``scipy.optimize.brentq`` in the same order: the results have the same bits.

    Parameters
    ----------
    function : callable
        It takes and returns a float.
    low, high : float
        Two points; the function has different signs there, or is zero at one.
    xtol, rtol : float
        The result is within ``xtol + rtol·|root|`` of a root.
    maxiter : int
        Maximum number of steps.

    Raises
    ------
    ArithmeticError
        If the signs agree, a value is not a number, or the steps do not suffice.

    Examples
    --------
    >>> round(brent_root(lambda x: x * x - 2.0, 0.0, 2.0), 9)
    1.414213562
    """

    def value(x: float) -> float:
        result = float(function(x))
        if math.isnan(result):
            raise InputArithmeticError.of("root-not-a-number", x=x)
        return result

    previous, current, opposite = float(low), float(high), 0.0
    at_previous, at_current, at_opposite = value(previous), value(current), 0.0
    if at_previous == 0.0:
        return previous
    if at_current == 0.0:
        return current
    if (at_previous < 0.0) == (at_current < 0.0):
        raise InputArithmeticError.of("no-root", low=low, high=high)
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
    raise InputArithmeticError.of("no-root", low=low, high=high)
