"""The number of rows that sums are divided by, kept away from 0 where the noise on it is as large as itself."""

from __future__ import annotations

import math

from dpmoments.noise_law import NoiseLaw

__all__ = ["FEW_ROWS", "few_rows_in_words", "floored_count"]


LEAST_SHARE = 0.5
"""A noisy count is taken for at least this many standard deviations of its noise."""
FEW_ROWS = 4.0
"""A noisy count below this many standard deviations of its noise is warned of."""


def floored_count(noisy_count: float, noise: NoiseLaw | None) -> float:
    """The number of rows to divide by: the noisy one, but at least 1 and at least half the standard deviation of its noise.

    Where a table has few rows for the budget the noisy count can be 0 or negative, and whatever is divided by it has no mean error
    at all. Below the floor nothing is known but that the number is small against its noise.

    Examples
    --------
    >>> from dpmoments.noise_law import GaussianNoise
    >>> law = GaussianNoise(2, 2.0, 1.0, 1.0, 100.0)
    >>> floored_count(1000.0, law), floored_count(-3.0, law), floored_count(-3.0, None)
    (1000.0, 5.0, 1.0)
    """
    return max(1.0, noisy_count, LEAST_SHARE * _deviation(noise))


def few_rows_in_words(noisy_count: float | None, noise: NoiseLaw | None) -> str | None:
    """What is to be said where a noisy count is small against its noise; None where it is not."""
    deviation = _deviation(noise)
    if noisy_count is None or deviation == 0.0 or noisy_count >= FEW_ROWS * deviation:
        return None
    return (
        f"too few rows for this budget: their number is known to ± {deviation:,.0f} only, and was found to be {noisy_count:,.0f}. Means, "
        "covariances and all that is computed from them are mostly noise: use a larger budget or more rows"
    )


def _deviation(noise: NoiseLaw | None) -> float:
    return 0.0 if noise is None or noise.count_variance is None else math.sqrt(noise.count_variance)
