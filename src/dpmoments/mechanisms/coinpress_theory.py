"""Clips, ridges and balls of CoinPress by its theory, which hold except with a stated probability (section 2; loose)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmoments.mechanisms.normal_rows import normal_matrix_norm, normal_norm_square, normal_second_moment_error

__all__ = ["BallClips", "ClipSquares", "covariance_theory", "mean_theory"]


@dataclass(frozen=True, slots=True)
class ClipSquares:
    """How far a covariance's steps clip, and what they know afterwards.

    Attributes
    ----------
    early, last : float
        γ², the square of the clipping radius, of the steps before the last and of the last.
    contraction : float
        Noise of deviation σ on the diagonal leaves uncertainty contraction·σ in every direction.
    ridge : float
        η: what a step adds to all directions for the error of sampling.
    failure : float
        Probability that the noise of a step leaves more; 0 where none is stated.
    """

    early: float
    last: float
    contraction: float
    ridge: float = 0.0
    failure: float = 0.0


@dataclass(frozen=True, slots=True)
class BallClips:
    """γ of a mean's steps, before the last and last, which is also the norm that a step's error does not pass, in deviations."""

    early: float
    last: float


def covariance_theory(n_features: int, n_rows: float, early: float, last: float) -> ClipSquares:
    """For steps before the last that may fail with probability ``early``, and a last one with ``last``.

    A third of ``early`` is for each of what can go wrong: a row is clipped, the sampling error passes η, the noise passes ν.
    The paper names these three; how its supplement divides β_s among them is not known here.
    """
    each = early / 3.0
    return ClipSquares(
        early=normal_norm_square(n_features, each / n_rows),
        last=normal_norm_square(n_features, last / n_rows),
        contraction=2.0 * normal_matrix_norm(n_features, each),
        ridge=normal_second_moment_error(n_rows, n_features, each),
        failure=each,
    )


def mean_theory(n_features: int, n_rows: float, early: float, last: float) -> BallClips:
    """γ = √(d + 2√(d ln(n/β_s)) + 2 ln(n/β_s)) of both kinds of steps (Biswas et al. 2020, Figure 2, MVM, step 1)."""
    squares = [normal_norm_square(n_features, failure / n_rows) for failure in (early, last)]
    return BallClips(*map(math.sqrt, squares))
