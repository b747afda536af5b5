"""Moments of a table from the noisy answers of a standardized run.

Two draws are joined, and what clipping hides is estimated.
The last draw has the Gram matrix of rows whose singles were clipped to a ball; the first has sums and squares that no ball
clipped, with more noise. A mean is joined from both. What clipping took from variances is estimated from the noisy histogram of
lengths, and from the difference of the two variances. Covariances are lengthened alike, and more along the first directions.
What remains unknown of it is noise of the release like any other (``docs/evidence/derivations/standardized.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmoments.base.arrays import FloatArray, IntegerArray
from dpmoments.mechanisms.row_coordinates import LatticeCoordinates
from dpmoments.mechanisms.shape import RunResult
from dpmoments.moments.models import StandardizedModel, lost_along
from dpmoments.moments.posterior import surety_of_fractions

_LEAST_COUNTS = 1.0, 10.0
"""Bounds of the least divisor of noisy sums, which is three noise SDs of the count."""
_SPREAD_OF_MEANS = 0.8
"""Bias of a mean, in the shift of a column that has what it may of the clipped excess."""
_SPREAD_OF_SHARES = 0.85
"""SD of a column's share of the clipped excess, in roots of what it has of all variances."""
_ALONG, _SPREAD_ALONG = 0.6, 0.45
"""Share, and its SD, of a loss along the first directions; normal rows have 1."""
_CELLS_INSIDE, _MOST_BEYOND = 2, 16
"""Cells before the radius from which a tail is found, and most cells beyond the last edge."""
_TAILS = np.exp(np.linspace(-1.0, 1.0, 9)), np.linspace(0.0, 1.6, 13), 0.8 * np.linspace(0.0, 1.0, 11) ** 3
"""Levels, slopes and bends of the logarithm of counts beyond the radius."""
_LEAST_FALL, _OFF_PARABOLA = 0.3, 0.3
"""Least slope six cells on, and SD of a count about the parabola, as a share of it."""
_CLEAR, _FARTHEST = 4.5, 4.0
"""Noise SDs from which rows off any tail count, and their most square over the last edge."""
_OTHER_TAILS = 1.4
"""Factor of the excess's SD, since no tail is quite like these."""
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
    variance_noise: FloatArray  # (singles,), its noise SD, but for the count's
    by_count: FloatArray  # (singles,), its change with the logarithm of the count

    @property
    def divisor(self) -> float:
        """Number that sums are divided by."""
        return divisor(self.count, math.sqrt(self.count_variance))


@dataclass(frozen=True, eq=False)
class Ball:
    """Ball that singles were clipped to, in units of their scales."""

    square: float  # squared radius
    edges: FloatArray  # lower edges of the cells of the histogram of squared lengths
    counts: FloatArray  # noisy
    noise: float  # noise SD of a count
    corner: float  # largest squared length

    @cached_property
    def excess(self) -> tuple[float, float]:
        """Return posterior mean and SD of Σ(‖z‖² − R²)₊ by the noisy histogram."""
        # beyond the mode the logarithm of a count is about a parabola of its cell's place, also of heavy tails
        radius = int(np.searchsorted(self.edges, self.square))
        first, noise = max(radius - _CELLS_INSIDE, 2), max(self.noise, 0.5)
        seen, step = self.counts[first:], math.log(self.edges[1] / self.edges[0])
        last = len(seen) - 1  # this cell has no end
        beyond = min(max(math.ceil(math.log(self.corner / self.edges[-1]) / step), 1), _MOST_BEYOND)
        place = np.arange(float(last + beyond))
        level, slope, bend = (grid.reshape(-1, 1) for grid in np.meshgrid(*_TAILS, indexing="ij"))
        falls = (slope + 6.0 * bend >= _LEAST_FALL).ravel()
        level, slope, bend = level[falls] * max(seen[:2].mean(), noise), slope[falls], bend[falls]
        rows = level * np.exp(-place * (slope + 0.5 * bend * place))
        fall = np.maximum(slope + bend * (place + 0.5), 1e-3)
        middle = self.edges[first] * np.exp(step * (place + 1.0 / fall - 1.0 / np.expm1(fall)))
        beyond_ball = rows * np.maximum(middle - self.square, 0.0) * (place >= radius - first)
        rows, beyond_ball = (np.column_stack([x[:, :last], x[:, last:].sum(axis=1)]) for x in (rows, beyond_ball))

        # counts are about those of a tail, but for rows that are clearly there; each tail has a likelihood
        of_rows = (_OFF_PARABOLA * rows) ** 2 + np.maximum((seen - rows) ** 2 - (_CLEAR * noise) ** 2, 0.0)
        variance = of_rows + noise**2
        likelihood = -0.5 * ((seen - rows) ** 2 / variance + np.log(variance)).sum(axis=1)
        weight = np.exp(likelihood - likelihood.max())
        weight /= weight.sum()
        per_row = beyond_ball / rows
        far = math.sqrt(self.edges[-1] * min(max(self.corner, self.edges[-1]), _FARTHEST**2 * self.edges[-1]))
        per_row[:, last] = np.maximum(per_row[:, last], far - self.square)
        # without noise counts are as seen: nothing is beyond a ball that no row left
        told = of_rows / np.maximum(of_rows + self.noise**2, np.finfo(float).tiny)
        of_tail = (per_row * (rows + told * (seen - rows))).sum(axis=1)
        left = (per_row**2 * told * self.noise**2).sum(axis=1)
        mean = float(weight @ of_tail)
        return max(mean, 0.0), _OTHER_TAILS * math.sqrt(float(weight @ (left + (of_tail - mean) ** 2)))


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
    of_total, along = 0.0, 0.0
    if rough is not None:
        ones = np.array([of.ones[feature] for feature in singles])
        unit = 1.0 / (lattice.scale * ones)  # column units in one of z
        shift = np.zeros(m)
        if ball is not None:
            held, noise = covariance[:m, :m].copy(), math.sqrt(last.variance) / n
            np.fill_diagonal(held, np.maximum(held.diagonal(), noise))
            square = (lattice.limit / one) ** 2
            total, of_total = (square / ball.square / n * part for part in ball.excess)
            share = held.diagonal() / held.trace()
            farthest = ((ones + np.abs(lattice.center)) * lattice.scale) ** 2
            farthest /= farthest.sum()
            # a column of wide bounds may have most of the long rows
            of_excess = np.sqrt(np.maximum(share, (share + farthest) / 2.0))
            shift = _SPREAD_OF_MEANS * math.hypot(total, of_total) * of_excess / (2.0 * math.sqrt(square))
            by_count = rough.by_count / unit**2 / n
            difference = rough.variance / unit**2 - by_count * (rough.count - n) - held.diagonal()
            spread = np.hypot(rough.variance_noise / unit**2, noise)
            # a Boolean that lacks more than clipping takes holds fractions, and 1 − mean² is not its variance
            may_lack = 3.0 * share * (total + of_total)
            lacking = surety_of_fractions(np.nan_to_num(difference) - may_lack, spread) > 0.0
            known = np.isfinite(difference) & ~(np.array(of.of_two_values) & lacking)
            measured = difference, spread, by_count * noise_of_count, np.flatnonzero(known)
            lost, left = _lost(held, farthest, (total, of_total), measured)
            longer = np.clip(1.0 + lost / held.diagonal(), 1.0, _MOST_STRETCH**2)
            stretch[:m], left = np.sqrt(longer), left / np.outer(longer, longer)
            total, of_total = max(float(np.sum(lost / longer)), 0.0), math.sqrt(max(float(left.sum()), 0.0))
            covariance[:m, :m] += _ALONG * total * lost_along(held)
            along = _SPREAD_ALONG * math.hypot(total, of_total)
            own = np.maximum(left.diagonal() - (of_total * share) ** 2, 0.01 * left.diagonal())
            unknown[:m] = np.sqrt(np.maximum(own, 0.0) / np.maximum(1.0 - share, 0.5))  # rounding may leave it below 0
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
    clipping[singles] = n * unknown[:m] * scales[singles] ** 2
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
        clipping_total=n * of_total,
        clipping_along=n * along,
        count_variance=count_variance,
    )
    return RunResult(
        count=count, sum=back @ mean * n, gram=(gram + gram.T) / 2.0, center=lattice.whole_center, model=model
    )


def _lost(
    held: FloatArray,
    farthest: FloatArray,
    excess: tuple[float, float],
    measured: tuple[FloatArray, FloatArray, FloatArray, IntegerArray],
) -> tuple[FloatArray, FloatArray]:
    """Return what clipping took from variances, and the covariance of what is unknown.

    ``farthest`` are shares of the largest square of a row, ``excess`` is the total and its SD. ``measured`` are differences of
    variances with and without a ball, their own SDs, those by the count, which all have in common, and where they tell.
    """
    difference, spread, by_count, known = measured
    square = held @ held
    share = (1.0 - _ALONG) * held.diagonal() / held.trace() + _ALONG * square.diagonal() / square.trace()
    expected = share * excess[0]
    # one column may have most of the total: a large one, or one of wide bounds
    own = (share + farthest) / 2.0
    apart = (_SPREAD_OF_SHARES * math.hypot(*excess)) ** 2 * (np.diag(own) - np.outer(own, own))
    prior = apart + excess[1] ** 2 * np.outer(share, share)
    noise = np.diag(spread[known] ** 2) + np.outer(by_count[known], by_count[known])
    gain = np.linalg.solve(prior[np.ix_(known, known)] + noise, prior[known]).T
    return expected + gain @ (difference - expected)[known], prior - gain @ prior[known]
