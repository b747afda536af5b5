"""Brent's root finder: the bits of SciPy's, and refusals."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize

from dpmoments.base.errors import InputArithmeticError
from dpmoments.base.one_variable import brent_root

FAMILIES: tuple[Callable[[float, float, float], Callable[[float], float]], ...] = (
    lambda a, b, c: lambda x: math.tanh(a * x + b) + 0.3 * c,
    lambda a, b, c: lambda x: x**3 * a + b * x + c,
    lambda a, b, c: lambda x: math.exp(a * x) - abs(b) - 0.1 * abs(c),
    lambda a, b, c: lambda x: a * (x - b) ** 5 + 1e-9 * c,
)


def test_roots_have_the_bits_of_scipy() -> None:
    rng, compared = np.random.default_rng(1), 0
    for family in FAMILIES * 50:
        function = family(*rng.normal(size=3))
        if function(-5.0) * function(6.0) >= 0.0:
            continue
        xtol = float(rng.choice([5e-324, 1e-13]))
        known = scipy.optimize.brentq(function, -5.0, 6.0, xtol=xtol, rtol=8.9e-16, maxiter=500)
        assert brent_root(function, -5.0, 6.0, xtol=xtol, rtol=8.9e-16, maxiter=500) == known
        compared += 1
    assert compared > 100
    assert brent_root(lambda x: x**3 + 1e18, -5e6, 6.0) == scipy.optimize.brentq(lambda x: x**3 + 1e18, -5e6, 6.0)
    assert brent_root(lambda x: x, 0.0, 1.0) == 0.0
    assert brent_root(lambda x: x - 1.0, 0.0, 1.0) == 1.0


@pytest.mark.parametrize(
    "function", [lambda x: x * x + 1.0, lambda x: math.nan * x, lambda x: math.copysign(1.0, x - 0.1)]
)
def test_no_root_is_an_error(function: Callable[[float], float]) -> None:
    with pytest.raises(InputArithmeticError, match=r"no root of the function was found between|not a number at"):
        brent_root(function, -1.0, 3.0, xtol=0.0, rtol=0.0, maxiter=30)
