"""Inversion of a monotone privacy curve, always ending on the safe side."""

import math
from collections.abc import Callable
from typing import Literal

from dpmoments.base.checks import check_not_negative, check_positive
from dpmoments.base.errors import InputArithmeticError, InputValueError, shown
from dpmoments.base.one_variable import brent_root

_MAX_EXCESS = 1e300  # stands in for an infinite excess, which the root finder cannot interpolate
_MAX_STEPS = 200


def safe_root(excess: Callable[[float], float], start: float, *, safe: Literal["above", "below"]) -> float:
    """Find a root of a monotone function of a positive number, on the side where it is ≤ 0.

    An argument is safe exactly when ``excess(x) <= 0``, usually ``log(delta(x)) - log(delta_wanted)`` plus an allowance for
    rounding; ``safe`` says whether large or small arguments are. Any positive ``start`` works; near the root is faster. At the
    result ``excess`` *was evaluated* and was not positive; it is within a few units in the last place of the boundary (or as
    close as rounding errors in ``excess`` allow).
    """

    def finite_excess(x: float) -> float:
        value = excess(x)
        if math.isnan(value):
            raise InputArithmeticError(f"the privacy curve is not a number at {shown(x)}")
        return min(max(value, -_MAX_EXCESS), _MAX_EXCESS)

    towards_safe = 1.0 if safe == "above" else -1.0
    start_is_safe = finite_excess(start) <= 0.0
    step = -towards_safe if start_is_safe else towards_safe
    near, far, width = start, start, 1.0
    for _ in range(_MAX_STEPS):
        near, far = far, far * 2.0 ** (step * width)
        if not 0.0 < far < math.inf:
            raise InputArithmeticError("no boundary between safe and unsafe parameters within floating-point range")
        if (finite_excess(far) <= 0.0) != start_is_safe:
            break
        width = min(2.0 * width, 64.0)
    else:
        raise InputArithmeticError("no boundary between safe and unsafe parameters within floating-point range")
    root = brent_root(finite_excess, near, far, xtol=5e-324, rtol=8.9e-16, maxiter=500)

    # The root finder may stop on either side of the root: walk to the safe side and evaluate there.
    ulps = 2.0
    for _ in range(_MAX_STEPS):
        if finite_excess(root) <= 0.0:
            return root
        root *= 1.0 + towards_safe * ulps * 2.0**-53
        ulps *= 2.0
        if ulps > 2.0**50:
            break
    raise InputArithmeticError("the privacy curve is not monotone near its root")


# Checks of the public parameters that every privacy curve takes.


def require_positive(name: str, value: float) -> float:
    """Return ``value`` as a float, or raise if it is not a positive finite number."""
    check_positive(name, number := float(value))
    return number


def require_nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float, or raise if it is negative, infinite or not a number."""
    check_not_negative(name, number := float(value))
    return number


def require_delta(value: float) -> float:
    """Return ``value`` as a float, or raise if it is not strictly between 0 and 1."""
    number = float(value)
    if not 0.0 < number < 1.0:
        raise InputValueError(
            f"delta must lie strictly between 0 and 1; got {shown(value)}. For delta = 0 use a mechanism for "
            "pure differential privacy or a zCDP budget."
        )
    return number
