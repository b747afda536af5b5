"""Bound on the extreme eigenvalues of symmetric normal matrices.

Bounds for Wishart matrices are in ``papers/cells.py``.

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

from dpmoments.base.arrays import BoolArray, FloatArray
from dpmoments.base.checks import check_at_least, check_probability

SEED = 20_150_701
_MAX_DRAWS = 20_000
_MAX_ENTRIES = 200_000
"""Max number of simulated matrices times their rows, but at least ``_MIN_DRAWS`` matrices."""
_MIN_DRAWS = 4_000
_MAX_SIZE = 400
"""Size from which only the tail bound is used, since it is within a few per cent."""
# SDs subtracted from a simulated tail. It is too light with probability below e^(−12.5), by Chernoff's bound.
_SAFETY = 5.0
# Min number of simulated matrices beyond a quantile. With fewer only the tail bound is used.
_MIN_BEYOND = 20.0
_BISECTIONS = 40


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
    draws, beyond = n_draws(size, failure)
    if not beyond:
        return bound
    with np.errstate(all="ignore"):
        generator = np.random.default_rng([SEED, size])
        main = generator.standard_normal((size, draws))
        beside = generator.chisquare(size - 1.0 - np.arange(size - 1), (draws, size - 1)).T / 2.0
        within = least_value(
            lambda x: outside(all_below(main, beside, x) & all_below(-main, beside, x)) <= beyond, 0.0, bound
        )
    return min(bound, within[1])


def n_draws(size: int, tail: float) -> tuple[int, int]:
    """Return the number of matrices to simulate, and how many may be beyond a quantile."""
    # 0 if too few would.
    draws = max(_MIN_DRAWS, min(_MAX_DRAWS, _MAX_ENTRIES // size))
    expected = draws * tail
    left = expected - _SAFETY * math.sqrt(expected)
    return draws, math.floor(left) if left >= _MIN_BEYOND and size <= _MAX_SIZE else 0


def least_value(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return the ends of a short interval in which a condition begins to hold."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if holds(middle):
            high = middle
        else:
            low = middle
    return low, high


def all_below(main: FloatArray, beside: FloatArray, value: float) -> BoolArray:
    """Return True for tridiagonal matrices with all eigenvalues below ``value``."""
    # Every pivot of T − value·I is negative.
    pivot = main[0] - value
    below: BoolArray = pivot < 0.0
    for entry, square in zip(main[1:], beside, strict=True):
        pivot = entry - value - square / pivot
        below &= pivot < 0.0
    return below


def outside(within: BoolArray) -> int:
    """Count the draws that are not within."""
    return len(within) - int(np.count_nonzero(within))
