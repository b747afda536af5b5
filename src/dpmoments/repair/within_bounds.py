"""Variances within what bounds and means allow."""

from __future__ import annotations

import numpy as np

from dpmoments.foundation.arrays import FloatArray

__all__ = ["within_bounds"]

ROUNDING = 1e-12


def within_bounds(
    mean: FloatArray | None,
    gram: FloatArray,
    count: int | None,
    box: tuple[FloatArray, FloatArray] | None,
    center: FloatArray | None,
) -> tuple[FloatArray | None, FloatArray]:
    """Moments whose variances are at most (u − μ)(μ − l), the most that values in [l, u] of mean μ can have.

    A column with more is scaled down about its mean, which leaves its correlations as they are.
    """
    if mean is None or count is None or box is None:
        return mean, gram
    position = mean if center is None else center + mean
    most = np.maximum((box[1] - position) * (position - box[0]), 0.0)
    spread = gram / count - np.outer(mean, mean)
    variances = np.diag(spread)
    over = variances > most * (1.0 + ROUNDING)
    if not over.any():
        return mean, gram
    shares = np.ones(len(mean))
    shares[over] = np.sqrt(most[over] / variances[over])
    return mean, count * (spread * np.outer(shares, shares) + np.outer(mean, mean))
