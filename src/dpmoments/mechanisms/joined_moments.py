"""Moments of a table from the noisy answers of a standardized run.

Two draws are joined, and what clipping hides is estimated.
The last draw has the Gram matrix of rows whose singles were clipped to a ball; the first has sums and squares that no ball
clipped, with more noise. A mean is joined from both. What clipping took from a variance is estimated from its share of the
noisy clipped excess, and from the difference of the two variances; covariances are scaled alike, so that correlations stay.
What remains unknown of it is noise of the release like any other (``docs/evidence/derivations/standardized.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpmoments.base.arrays import FloatArray
from dpmoments.mechanisms.row_coordinates import LatticeCoordinates
from dpmoments.mechanisms.shape import RunResult
from dpmoments.moments.models import StandardizedModel
from dpmoments.moments.posterior import surety_of_fractions

_LEAST_COUNTS = 1.0, 10.0
"""Bounds of the least divisor of noisy sums, which is three noise SDs of the count."""
_SPREAD_OF_MEANS = 0.8
"""Bias of a mean, in the shift of a column that has its share of the clipped excess."""
_SPREAD_OF_SHARES = 0.8
"""SD of a column's share of the clipped excess, in roots of what it has of all variances."""
_NOISE_OF_EXCESS = 0.06
"""Part of the noise of the excess that may be rows: most cells far out hold none."""
_MOST_STRETCH = 4.0
"""Most factor by which what clipping hides may lengthen a column."""


def divisor(count: float, noise: float) -> float:
    """Return what sums are divided by, given the noise SD of the count."""
    least, most = _LEAST_COUNTS
    return max(count, min(max(3.0 * noise, least), most))


@dataclass(frozen=True, slots=True, eq=False)
class RoughMoments:
    """Noisy count, and rough means and variances of singles in column units, without a ball."""

    count: float
    count_variance: float  # 0 if the count is public
    mean: FloatArray  # (singles,)
    mean_variance: FloatArray  # (singles,), of the noise of the means
    center: FloatArray  # (singles,), near the mean: by further rounds, or as the schema states it
    deviation: FloatArray  # (singles,), posterior
    variance: FloatArray  # (singles,), noisy; NaN where the schema states a typical range
    variance_noise: FloatArray  # (singles,), its noise SD

    @property
    def divisor(self) -> float:
        """Number that sums are divided by."""
        return divisor(self.count, math.sqrt(self.count_variance))


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """Ball that singles were clipped to, in units of their scales."""

    square: float  # squared radius
    excess: float  # noisy Σ(‖z‖² − R²)₊
    excess_noise: float  # noise SD of the excess
    farther: float  # what rows beyond the last edge may have more than that


@dataclass(frozen=True, slots=True, eq=False)
class LastDraw:
    """Noisy Σ z zᵀ, z = (constant, coordinates)."""

    matrix: FloatArray
    constant: float
    variance: float  # of the noise on the diagonal; half of it off the diagonal
    rate: float | None  # of matrix Laplace noise
    public_count: int | None


def joined_moments(
    lattice: LatticeCoordinates, last: LastDraw, rough: RoughMoments | None, ball: Ball | None
) -> RunResult:
    """Return count, sum and Gram matrix about the center, encoded, and the model of their noise."""
    of, one, w = lattice.of, 2.0**lattice.bits, last.constant
    d, m, singles = of.n_features, len(of.singles), list(of.singles)
    count, count_variance = float(last.matrix[0, 0]) / w**2, last.variance / w**4
    if last.public_count is not None:
        count, count_variance = float(last.public_count), 0.0
    elif rough is not None:
        trust = count_variance / (count_variance + rough.count_variance)
        count, count_variance = trust * rough.count + (1.0 - trust) * count, trust * rough.count_variance
    noise_of_count = math.sqrt(count_variance)
    n = max(divisor(count, noise_of_count), noise_of_count)  # products of means are as large as 1/n
    mean = last.matrix[0, 1:] / (w * n)
    covariance = last.matrix[1:, 1:] / n - np.outer(mean, mean)
    of_mean = np.full(len(mean), last.variance / 2.0 / (w * n) ** 2)
    of_rough, stretch, unknown = np.zeros(len(mean)), np.ones(len(mean)), np.zeros(len(mean))
    if rough is not None:
        ones = np.array([of.ones[feature] for feature in singles])
        unit = 1.0 / (lattice.scale * ones)  # column units in one of z
        shift = np.zeros(m)
        if ball is not None:
            clipped = _clipped(
                covariance[:m, :m].diagonal(), math.sqrt(last.variance) / n, rough, unit, lattice, ball, n
            )
            stretch[:m], unknown[:m], shift = clipped
        first, second = rough.mean_variance / unit**2, of_mean[:m]
        trust = first / (first + second)
        by_rough = (rough.mean * ones - lattice.center) * lattice.scale
        # of the bias of the last draw, normal beforehand, the difference of the two means tells something
        told = shift**2 / np.maximum(shift**2 + first + second, np.finfo(float).tiny)
        bias = told * (first + second) + (told * (mean[:m] - by_rough)) ** 2
        mean[:m] = trust * mean[:m] + (1.0 - trust) * by_rough
        of_mean[:m] *= trust**2
        of_rough[:m] = (1.0 - trust) ** 2 * first + trust**2 * bias
    covariance *= np.outer(stretch, stretch)
    back = lattice.back
    gram = back @ (covariance + np.outer(mean, mean)) @ back.T * n
    scales, rough_variances, clipping = np.zeros(d), np.zeros(d), np.zeros(d)
    sum_variances = np.full(d, last.variance / 2.0 / (w * n) ** 2)
    scales[singles] = stretch[:m] / lattice.scale
    sum_variances[singles] = of_mean[:m] / stretch[:m] ** 2
    rough_variances[singles] = of_rough[:m] / lattice.scale**2 * n**2
    clipping[singles] = n * unknown[:m] / lattice.scale**2
    for block, sizes in zip(of.blocks, lattice.sizes, strict=True):
        step = sizes[0] * (math.sqrt(2.0) if block.complete else 1.0) if sizes else 1.0
        scales[block.features] = of.ones[block.start] * one / step
    model = StandardizedModel(
        n_features=d,
        family="gaussian" if last.rate is None else "matrix-laplace",
        variance=last.variance,
        rate=last.rate,
        scales=scales,
        block_sizes=of.block_sizes,
        sum_variances=sum_variances * n**2,
        rough_variances=rough_variances,
        clipping=clipping,
        count_variance=count_variance,
    )
    return RunResult(
        count=count, sum=back @ mean * n, gram=(gram + gram.T) / 2.0, center=lattice.whole_center, model=model
    )


def _clipped(
    variances: FloatArray,
    noise: float,
    rough: RoughMoments,
    unit: FloatArray,
    lattice: LatticeCoordinates,
    ball: Ball,
    n: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return stretches of singles, and SDs of the unknown part on variances and on means."""
    square = (lattice.limit / 2.0**lattice.bits) ** 2
    parts = ball.excess, _NOISE_OF_EXCESS * ball.excess_noise, ball.farther
    excess, excess_noise, farther = (square / ball.square * part / n for part in parts)
    held = np.maximum(variances, noise)
    share = held / held.sum()
    expected = share * (max(excess, 0.0) + excess_noise)
    shift = _SPREAD_OF_MEANS * (max(excess, 0.0) + excess_noise) * np.sqrt(share) / (2.0 * math.sqrt(square))
    known = np.isfinite(rough.variance)
    difference = np.where(known, rough.variance / unit**2 - variances, 0.0)
    spread = np.where(known, np.hypot(rough.variance_noise / unit**2, noise), np.inf)
    # a Boolean that lacks more than clipping takes holds fractions, and 1 − mean² is not its variance
    of_fractions = np.array(lattice.of.of_two_values) & (surety_of_fractions(difference - 3.0 * expected, spread) > 0.0)
    spread = np.where(of_fractions, np.inf, spread)
    lost, _ = _posterior_loss(difference, spread, expected)
    # one column may have all of the excess, and no share says which
    most = _SPREAD_OF_SHARES * (expected + share * farther) / np.sqrt(np.maximum(share, 1e-12))
    _, left = _posterior_loss(difference, spread, most)
    stretch = np.clip(np.sqrt((held + lost) / held), 1.0, _MOST_STRETCH)
    return stretch, left, shift


def _posterior_loss(difference: FloatArray, spread: FloatArray, expected: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return posterior mean and SD of a loss ≥ 0, exponential beforehand, measured with noise."""
    told = np.isfinite(spread) & (expected > 0.0)
    spread, mean = np.where(told, spread, 1.0), np.where(told, expected, 1.0)
    center = (np.where(told, difference, 0.0) - spread**2 / mean) / spread
    # a normal distribution cut off at 0: its mean and variance by the inverse Mills ratio
    ratio = math.sqrt(2.0 / math.pi) / scipy.special.erfcx(-center / math.sqrt(2.0))
    lost = spread * np.maximum(center + ratio, 0.0)
    left = spread * np.sqrt(np.clip(1.0 - center * ratio - ratio**2, 0.0, 1.0))
    return np.where(told, lost, expected), np.where(told, left, expected)
