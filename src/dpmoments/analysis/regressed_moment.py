"""The matrix that a regression solves with, as the release's repair leaves it."""

from __future__ import annotations

import numpy as np

from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray

__all__ = ["regressed_moment"]


def regressed_moment(release: Released, *, intercept: bool) -> FloatArray:
    """The covariance, or without an intercept the second moment about the zero of the table's units, shape (d, d).

    In units of the encoding; where no mean was released, about the zero of the unit ball.
    """
    if intercept:
        return release.unit_ball_covariance
    if release.noisy_sum is None:
        return release.unit_ball_gram / release.n_rows
    scale = release.encoding.scale
    return release.second_moment / np.outer(scale, scale)
