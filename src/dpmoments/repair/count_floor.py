"""The number of rows that sums are divided by, kept away from 0 where the noise on it is as large as itself."""

from __future__ import annotations

import math

from dpmoments.noise.law import NoiseLaw

__all__ = ["FEW_ROWS", "few_rows_in_words", "floored_count"]


LEAST = 1.0
"""A noisy count is taken for at least this many standard deviations of its noise (``docs/derivations/repairs.md``)."""
FEW_ROWS = 10.0
"""A noisy count below this many standard deviations of its noise is warned of."""


def floored_count(noisy_count: float, noise: NoiseLaw | None) -> float:
    """The number of rows to divide by: the noisy one, but at least 1 and at least the standard deviation of its noise.

    Where a table has few rows for the budget the noisy count can be 0 or below, and what is divided by it explodes. Of a count
    below the floor nothing is known but that it is small against its noise.

    Examples
    --------
    >>> from dpmoments.noise import GaussianNoise
    >>> law = GaussianNoise(2, 2.0, 1.0, 1.0, 100.0)
    >>> floored_count(1000.0, law), floored_count(-3.0, law), floored_count(-3.0, None)
    (1000.0, 10.0, 1.0)
    """
    return max(1.0, noisy_count, LEAST * _deviation(noise))


def few_rows_in_words(noisy_count: float | None, noise: NoiseLaw | None) -> str:
    """What is to be said where a noisy count is small against its noise; empty where it is not, or is not noisy.

    Examples
    --------
    >>> from dpmoments.noise import GaussianNoise
    >>> few_rows_in_words(43.0, GaussianNoise(2, 2.0, 1.0, 1.0, 100.0))[:62]
    'too few rows for this budget: their number was found to be 43 '
    """
    deviation = _deviation(noise)
    if noisy_count is None or noisy_count >= FEW_ROWS * deviation:
        return ""
    return (
        f"too few rows for this budget: their number was found to be {noisy_count:,.0f} ± {deviation:,.0f}, and all that is "
        "divided by it may be mostly noise: more rows, or a larger budget"
    )


def _deviation(noise: NoiseLaw | None) -> float:
    return 0.0 if noise is None or noise.count_variance is None else math.sqrt(noise.count_variance)
