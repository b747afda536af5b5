"""Bounds on the extreme eigenvalues of Wishart and symmetric normal matrices.

They are quantiles, and hold up to a stated probability.

Two bounds of each hold, and the smaller one is used: a tail bound in closed form, and a quantile simulated once from a fixed
seed, equal on every machine with the same NumPy. The eigenvalues of both matrices equal those of tridiagonal matrices of
independent normal and χ entries (Dumitriu & Edelman 2002), so a simulated matrix costs a few numbers per row. No noise is drawn
here, and no record is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.checks import check_at_least, check_between, check_probability

_SEED = 20_150_701
_MAX_DRAWS = 20_000
_MAX_ENTRIES = 200_000
"""Max number of simulated matrices times their rows, but at least ``_MIN_DRAWS`` matrices."""
_MIN_DRAWS = 4_000
_MAX_SIZE = 400
"""Size from which only the tail bound is used, since it is within a few per cent."""
_SAFETY = 5.0
"""SDs subtracted from a simulated tail.

It is too light with probability below e^(−12.5), by Chernoff's bound.
"""
_MIN_BEYOND = 20.0
"""Min number of simulated matrices beyond a quantile.

With fewer only the tail bound is used.
"""
_BISECTIONS = 40


@lru_cache(maxsize=256)
def wishart_eigenvalue_range(size: int, degrees: float, failure: float) -> tuple[float, float]:
    """Return an interval with all eigenvalues of a Wishart matrix of scale I.

    It fails with probability ``failure`` at most.

    Each end has half the failure probability. In closed form (√ν − √m − t)₊² and (√ν + √m + t)², t = √(2 ln(2/failure)), m =
    ``size`` and ν = ``degrees`` ≥ m (Davidson & Szarek 2001, Theorem II.13). Both ends are exact quantiles of χ²_ν for m = 1.
    """
    check_at_least("size", size)
    check_between("degrees", degrees, size, math.inf)
    check_probability("failure", failure)
    side = failure / 2.0
    if size == 1:
        return float(scipy.special.chdtri(degrees, 1.0 - side)), float(scipy.special.chdtri(degrees, side))
    reach = math.sqrt(size) + math.sqrt(2.0 * math.log(1.0 / side))
    low, high = max(math.sqrt(degrees) - reach, 0.0) ** 2, (math.sqrt(degrees) + reach) ** 2
    draws, beyond = _draws(size, side)
    if not beyond:
        return low, high
    main, beside = _wishart_draws(size, degrees, draws)
    with np.errstate(all="ignore"):
        # a value that too few fall short of, or pass
        smallest = _least(lambda x: _outside(_all_above(main, beside, x)) > beyond, low, degrees)
        largest = _least(lambda x: _outside(_all_below(main, beside, x)) <= beyond, degrees / 2.0, high)
    return max(low, smallest[0]), min(high, largest[1])


@lru_cache(maxsize=256)
def normal_norm_quantile(size: int, failure: float) -> float:
    """Bound the spectral norm of a symmetric normal matrix, except with probability ``failure``."""
    # Variances are 1 on and ½ off the diagonal. In closed form √(2m) + √(2 ln(2/failure)), m = `size` (Gaussian
    # concentration about a mean of at most √(2m)).
    check_at_least("size", size)
    check_probability("failure", failure)
    if size == 1:
        return -float(scipy.special.ndtri(failure / 2.0))
    bound = math.sqrt(2.0 * size) + math.sqrt(2.0 * math.log(2.0 / failure))
    draws, beyond = _draws(size, failure)
    if not beyond:
        return bound
    with np.errstate(all="ignore"):
        generator = np.random.default_rng([_SEED, size])
        main = generator.standard_normal((size, draws))
        beside = generator.chisquare(size - 1.0 - np.arange(size - 1), (draws, size - 1)).T / 2.0
        within = _least(
            lambda x: _outside(_all_below(main, beside, x) & _all_below(-main, beside, x)) <= beyond, 0.0, bound
        )
    return min(bound, within[1])


@lru_cache(maxsize=256)
def wishart_frobenius_quantile(size: int, degrees: float, failure: float) -> float:
    """Bound ‖W − νI‖_F, W a Wishart matrix of scale I, except with probability ``failure``."""
    # With too few draws, √m times the larger distance of an end of `wishart_eigenvalue_range` from ν.
    low, high = wishart_eigenvalue_range(size, degrees, failure)
    bound = math.sqrt(size) * max(high - degrees, degrees - low)
    draws, beyond = _draws(size, failure)
    if size == 1 or not beyond:
        return bound
    main, beside = _wishart_draws(size, degrees, draws)
    norms = np.sqrt(np.square(main - degrees).sum(axis=0) + 2.0 * beside.sum(axis=0))
    return min(bound, float(np.partition(norms, draws - 1 - beyond)[draws - 1 - beyond]))


def _wishart_draws(size: int, degrees: float, draws: int) -> tuple[FloatArray, FloatArray]:
    """Return diagonals and squared off-diagonals of tridiagonal matrices, one per column."""
    # They have the eigenvalues of Wishart matrices.
    generator = np.random.default_rng([_SEED, size])
    steps = np.arange(size)
    diagonal = generator.chisquare(degrees - steps, (draws, size)).T
    below = generator.chisquare(size - 1.0 - steps[:-1], (draws, size - 1)).T
    # L Lᵀ of a lower bidiagonal L
    main = diagonal.copy()
    main[1:] += below
    return main, diagonal[:-1] * below


def _draws(size: int, tail: float) -> tuple[int, int]:
    """Return the number of matrices to simulate, and how many may be beyond a quantile."""
    # 0 if too few would.
    draws = max(_MIN_DRAWS, min(_MAX_DRAWS, _MAX_ENTRIES // size))
    expected = draws * tail
    left = expected - _SAFETY * math.sqrt(expected)
    return draws, math.floor(left) if left >= _MIN_BEYOND and size <= _MAX_SIZE else 0


def _least(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return the ends of a short interval in which a condition begins to hold."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if holds(middle):
            high = middle
        else:
            low = middle
    return low, high


def _all_below(main: FloatArray, beside: FloatArray, value: float) -> BoolArray:
    """Return True for tridiagonal matrices with all eigenvalues below ``value``."""
    # Every pivot of T − value·I is negative.
    pivot = main[0] - value
    below: BoolArray = pivot < 0.0
    for entry, square in zip(main[1:], beside, strict=True):
        pivot = entry - value - square / pivot
        below &= pivot < 0.0
    return below


def _outside(within: BoolArray) -> int:
    """Count the draws that are not within."""
    return len(within) - int(np.count_nonzero(within))


def _all_above(main: FloatArray, beside: FloatArray, value: float) -> BoolArray:
    """Return True for tridiagonal matrices with all eigenvalues above ``value``."""
    return _all_below(-main, beside, -value)
