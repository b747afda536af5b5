"""Standardized: rough private scales, a ball for rows in units of them, one noise there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy

from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, is_finite_number
from dpmoments.mechanisms.additive import COARSEST_BITS, budget_too_small, choose_bits
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism, Plan, split_for_rows
from dpmoments.mechanisms.lattice_noise import (
    noise_deviation,
    noise_scale_for,
    off_diagonal,
    under_law,
    with_gaussian_noise,
    with_noise,
)
from dpmoments.mechanisms.shape import Arithmetic, LatticeCoordinates, MomentShape, RowCoordinates, RunResult
from dpmoments.moments.models import StandardizedModel, lost_along
from dpmoments.moments.possible import posterior_variance, surety_of_fractions
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import KNorm, MatrixLaplaceDraw
from dpmoments.privacy.sensitivity import (
    ROUGH_CENTER,
    ROUGH_WEIGHT,
    gram_frobenius,
    gram_nuclear,
    histogram_l1,
    histogram_l2,
    rough_sums_l2,
    sums_in_body,
)
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.histogram import MarginalSums
from dpmoments.rows.rows import Rows

# Moments of a table from the noisy answers of a standardized run.
#
# Two draws are joined, and what clipping hides is estimated.
# The last draw has the Gram matrix of rows whose singles were clipped to a ball; the first has sums and squares that no ball
# clipped, with more noise. A mean is joined from both. What clipping took from variances is estimated from the noisy histogram of
# lengths, and from the difference of the two variances. Covariances are lengthened alike, and more along the first directions.
# What remains unknown of it is noise of the release like any other (``docs/evidence/derivations/standardized.md``).

_LEAST_COUNTS = 1.0, 10.0
"""Bounds of the least divisor of noisy sums, which is three noise SDs of the count."""
_SPREAD_OF_MEANS = 0.8
"""Bias of a mean, in the shift of a column that has what it may of the clipped excess."""
_SPREAD_OF_SHARES = 0.85
"""SD of a column's share of the clipped excess, in roots of what it has of all variances."""
_ALONE, _SIZE_ALONE = 0.5, 2.5
"""Chance that one number has the whole excess, and the SD of its size.

The SD is in units of the excess as the histogram has it, and 1 where no difference is measured.
"""
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
    apart = np.ones(m)
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
            by_count = rough.by_count / unit**2 / n
            plain = rough.variance / unit**2 - by_count * (rough.count - n)
            # either value of a Boolean is shortened by its own length, and by what the other columns add
            ends = (np.array([[-1.0], [1.0]]) * ones - lattice.center) * lattice.scale
            variances = held.diagonal()
            others, squares = variances.sum() - variances, variances @ variances - variances**2
            shortened = ends * _shortening(ends**2, others, squares, square)[0]
            of_two = np.array(of.of_two_values)
            apart = np.where(of_two, (ends[1] - ends[0]) / (shortened[1] - shortened[0]), 1.0)
            # one that lacks more than clipping takes holds fractions, and 1 − mean² is not its variance
            may_lack = apart**2 * held.diagonal() + 3.0 * held.diagonal() / held.trace() * (total + of_total)
            spread = np.hypot(rough.variance_noise / unit**2, noise * apart**2)
            lacking = of_two & (surety_of_fractions(np.nan_to_num(plain) - may_lack, spread) > 0.0)
            apart[lacking] = 1.0
            mean[:m] = np.where(apart > 1.0, ends[0] + (mean[:m] - shortened[0]) * apart, mean[:m])
            of_mean[:m] *= apart**2
            flags = np.flatnonzero(apart > 1.0)
            shares = (mean[flags] - ends[0, flags]) / (ends[1, flags] - ends[0, flags])
            covariance[np.ix_(flags, flags)] -= _together(ends[:, flags], shares, flags, variances, square)
            covariance[:m] *= apart[:, None]
            covariance[:, :m] *= apart
            held *= np.outer(apart, apart)
            difference = plain - held.diagonal()
            share = held.diagonal() / held.trace()
            farthest = ((ones + np.abs(lattice.center)) * lattice.scale) ** 2
            farthest /= farthest.sum()
            # a column of wide bounds may have most of the long rows
            of_excess = np.sqrt(np.maximum(share, (share + farthest) / 2.0))
            known = np.isfinite(difference) & ~lacking
            measured = difference, spread, by_count * noise_of_count, np.flatnonzero(known)
            lost, left, alone = _lost(held, farthest, (total, of_total), measured, ~of_two)
            of_numbers = np.sqrt(lost**2 + left.diagonal() + alone) * ~of_two
            farther = np.maximum(math.hypot(total, of_total) * of_excess, of_numbers)
            shift = _SPREAD_OF_MEANS * farther / (2.0 * math.sqrt(square))
            lost[apart > 1.0] = 0.0
            longer = np.clip(1.0 + lost / held.diagonal(), 1.0, _MOST_STRETCH**2)
            stretch[:m] = np.sqrt(longer)
            longer *= apart**2
            left /= np.outer(longer, longer)
            alone /= longer**2
            total, of_total = max(float(np.sum(lost / longer)), 0.0), math.sqrt(max(float(left.sum()), 0.0))
            covariance[:m, :m] += _ALONG * total * lost_along(held)
            along = _SPREAD_ALONG * math.hypot(total, of_total)
            own = np.maximum(left.diagonal() - (of_total * share) ** 2, 0.01 * left.diagonal())
            own = np.maximum(own, 0.0) + alone  # rounding may leave it below 0
            unknown[:m] = np.sqrt(own / np.maximum(1.0 - share, 0.5))
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
    stretch[:m] *= apart
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


def _shortening(
    own: FloatArray, others: FloatArray, squares: FloatArray, square: float
) -> tuple[FloatArray, FloatArray]:
    """Return means of s and s², s = min(1, R/√(z² + v)), z² in a row's own columns.

    v, in the others, is about χ²: ``others`` is the sum of their variances, ``squares`` that of the variances' squares.
    """
    others = np.maximum(others, np.finfo(float).tiny ** 0.25)
    part = 2.0 / 9.0 * np.minimum(squares / others**2, 1.0)  # Wilson & Hilferty (1931)
    quantiles = scipy.special.ndtri((np.arange(8.0) + 0.5) / 8.0).tolist()
    mean, mean_square = np.zeros_like(own), np.zeros_like(own)
    for normal in quantiles:
        beside = others * np.maximum(1.0 - part + normal * np.sqrt(part), 0.0) ** 3
        factor = square / np.maximum(own + beside, square)
        mean += np.sqrt(factor) / len(quantiles)
        mean_square += factor / len(quantiles)
    return mean, mean_square


def _together(
    ends: FloatArray, shares: FloatArray, flags: IntegerArray, variances: FloatArray, square: float
) -> FloatArray:
    """Return the covariances that a ball gives to two-valued columns without relation, (k, k).

    Rows with the rarer value of both are shortened more than either value says.
    """
    own = variances[flags]
    others = np.maximum(variances.sum() - own[:, None] - own, 0.0)
    squares = np.maximum(variances @ variances - own[:, None] ** 2 - own**2, 0.0)
    lengths = ends[:, None, :, None] ** 2 + ends[:, None, :] ** 2
    by_one, by_square = _shortening(lengths, others, squares, square)
    chance = np.clip([1.0 - shares, shares], 0.0, 1.0)
    alone = np.einsum("ai,bj,abij->ij", chance * ends, chance, by_one)
    result = np.einsum("ai,bj,abij->ij", chance * ends, chance * ends, by_square) - alone * alone.T
    np.fill_diagonal(result, 0.0)
    return np.asarray(result)


def _lost(
    held: FloatArray,
    farthest: FloatArray,
    excess: tuple[float, float],
    measured: tuple[FloatArray, FloatArray, FloatArray, IntegerArray],
    numbers: BoolArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what clipping took from variances, and what is unknown of it.

    The unknown is a covariance, and a further variance of each number: it may have a long tail of its own.
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
    both = prior[np.ix_(known, known)] + noise
    gain = np.linalg.solve(both, prior[known]).T
    rest = (difference - expected)[known]
    lost, left = expected + gain @ rest, prior - gain @ prior[known]

    # or one number has all of it, and more than the histogram shows: as likely as its difference makes it
    inverse, precision, pull = np.linalg.inv(noise), np.zeros(len(own)), np.zeros(len(own))
    precision[known], pull[known] = inverse.diagonal(), inverse @ difference[known]
    size = np.full(len(own), max(math.hypot(*excess), np.finfo(float).tiny ** 0.25))
    size[known] *= _SIZE_ALONE
    of_size = 1.0 / (1.0 / size**2 + precision)
    whole = of_size * (excess[0] / size**2 + pull)
    usual = difference[known] @ inverse @ difference[known] - rest @ np.linalg.solve(both, rest)
    usual += np.linalg.slogdet(noise)[1] - np.linalg.slogdet(both)[1]
    likelihood = 0.5 * (whole**2 / of_size - (excess[0] / size) ** 2 + np.log(of_size / size**2) - usual)
    likelihood = np.where(numbers, likelihood, -np.inf)
    most = likelihood.max(initial=0.0)
    chance = _ALONE * own / own[numbers].sum() * np.exp(likelihood - most)
    chance /= chance.sum() + (1.0 - _ALONE) * math.exp(-most)
    return lost, left, chance * ((whole - lost) ** 2 + of_size)


# The mechanism: its runs ask for the draws that are joined above.

_SHARE_OF_SCALES, _SHARE_OF_RADIUS = 0.15, 0.06
_LEAST_SHARE = 0.3
"""Part of these shares that any table pays; the rest grows with the share of singles."""
_SHARE_OF_ROUND, _ROUNDS = 0.08, 3
"""Share of each further round for numbers with far too wide bounds, and the most rounds."""
_CONSTANT = 0.15
"""Squared constant over the squared length of a row: what means get of the last step."""
_LOST, _FLOOR_OF_BOOLEANS, _LEAST_VARIANCE = 1.5, 3.0, 0.02
"""Noise SDs of a mean square: a number's variance below the first is lost in noise.

A Boolean's variance is at least the second number of them, and at least the last one."""
_HEDGE, _HEDGE_OF_BOOLEANS = (0.25, 0.002, 3.0), 0.6
"""A number's scale is SD^(1 − η), to leave room for heavy tails.

η = .25·clip(.002/τ, 1, 3), τ the noise of a correlation."""
_CELLS, _RATIO = 18, 1.3
"""Cells of the histogram of squared lengths, and the ratio of their edges."""
_BEYOND_NOISE, _SEEN = 2.5, 0.3
"""Noise SDs from which the rows beyond a cell are more than noise, and the least share seen.

Rows are clipped only if at least this share of them is seen in the histogram."""
_WEIGHT_OF_CLIPPING = (1.5, 0.01, 5.0)
"""Weight of clipped squares against noise: 1.5/√D·clip((.01/τ)^f, 1, 5).

D is the number of singles, f their share of the coordinates."""
_PURE_IF_BELOW = 0.8
"""Under (ε, δ) spend pure ε if its last noise is below this multiple of Gaussian noise.

Step 1 is better with Gaussian noise."""
_BITS_OF_SUMS, _MOST_NOISE_OF_SUMS = (5, 20), 2.0**50
"""Fewest and most bits of a single in step 1, and the most noise in units of its lattice.

With the fewest y₀ is a whole number of units; where noise would pass the most, bits are fewer."""


@dataclass(frozen=True)
class StandardizedPlan(Plan):
    """Calibrated :class:`Standardized`."""

    mechanism: Standardized
    coordinates: RowCoordinates
    budget: PrivacyBudget  # what the draws may lose together: ε or ρ
    bits: int  # lattice exponent of the last step
    bits_of_sums: int  # of singles in step 1

    @property
    def arithmetic(self) -> Arithmetic:  # type: ignore[override]
        return Arithmetic.LATTICE_ROUNDED if self.is_pure else Arithmetic.EXACT_LATTICE

    @property
    def is_pure(self) -> bool:
        """True if the budget is an ε."""
        return self.budget.kind is BudgetKind.PURE

    @property
    def details(self) -> Mapping[str, Any]:
        return {"noise": "matrix-laplace" if self.is_pure else "gaussian", "lattice_bits": self.bits}

    @property
    def share_of_singles(self) -> float:
        """Share f of the coordinates that are singles."""
        return len(self.coordinates.singles) / max(self.coordinates.n_coordinates, 1)

    def share(self, whole: float) -> float:
        """Return a share of the budget, less where few coordinates are singles."""
        return whole * (_LEAST_SHARE + (1.0 - _LEAST_SHARE) * self.share_of_singles)

    @property
    def lengths(self) -> FloatArray:
        """Factor by which `weight=` lengthens each single."""
        return np.array([self.coordinates.lengths[feature] for feature in self.coordinates.singles])

    @property
    def passes(self) -> int | None:
        return None if self.coordinates.has_numbers else self.most_passes

    @property
    def most_passes(self) -> int:
        # number of weighted rows, rough sums, further rounds, lengths, and the Gram matrix
        return (3 + self._most_rounds if self.coordinates.has_numbers else 1) + (self.rows_loss is not None)

    @property
    def _most_rounds(self) -> int:
        return _ROUNDS if self.mechanism.clip else 0

    @property
    def left_at_least(self) -> float:
        """Share of the budget that the last step has in any run."""
        if not self.coordinates.has_numbers:
            return 1.0
        rounds = self._most_rounds * _SHARE_OF_ROUND
        return 1.0 - self.share(_SHARE_OF_SCALES) - self.share(_SHARE_OF_RADIUS) - rounds

    def bits_for_sums(self) -> int:
        """Return the lattice exponent of step 1: the finest on which the noise stays within bounds."""
        n_sums = 2 * len(self.coordinates.singles) + 1
        share = min(self.share(_SHARE_OF_SCALES), _SHARE_OF_ROUND)
        of_one = (
            2.0 * n_sums / (share * self.budget.epsilon)
            if self.is_pure
            else 16.0 * n_sums / math.sqrt(share * self.budget.rho)
        )
        bits = math.floor((math.log2(_MOST_NOISE_OF_SUMS / of_one) - self.shape.weight_bits) / 2.0)
        if bits < _BITS_OF_SUMS[0]:
            raise budget_too_small(of_one)
        return min(bits, _BITS_OF_SUMS[1])

    def noise_of_gram(self, square: float, share: float) -> float:
        """Return the noise SD off the diagonal at the last step, for rows of a squared length."""
        # The length includes the constant.
        factor = 1.0 if self.neighbors is Neighbors.ADD_REMOVE else 2.0
        if self.is_pure:
            return (
                factor * square / (share * self.budget.epsilon) * math.sqrt(self.coordinates.n_coordinates / 2.0 + 1.0)
            )
        return math.sqrt(factor) * square / math.sqrt(4.0 * share * self.budget.rho)

    def check_rows(self, rows: Rows) -> None:
        super().check_rows(rows)
        if (RowCoordinates.of(rows.schema) or RowCoordinates.of_numbers(rows.n_features)) != self.coordinates:
            raise InputValueError(
                "the plan is for a schema with other levels, on which its sensitivity depends: make the plan from "
                "the same schema"
            )

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        rows = rows.in_unit_ball()
        coordinates, left = self.coordinates, 1.0
        center, scale = np.zeros(len(coordinates.singles)), 1.0 / self.lengths
        square = float(self.lengths @ self.lengths)
        rough: RoughMoments | None = None
        ball: Ball | None = None
        counted = self.noisy_rows(rows, privacy_filter)
        answers = [np.array([counted["n_rows"]])] if counted else []
        if coordinates.has_numbers:
            left -= self.share(_SHARE_OF_SCALES)
            rough, spent = self._rough_moments(rows, privacy_filter, answers)
            left -= spent
            left -= self.share(_SHARE_OF_RADIUS)
            center, scale, square, ball = self._ball(rows, privacy_filter, rough, left, answers)
        lattice = coordinates.on_lattice(center, scale, square, self.bits)
        result, noisy = self._released(rows, privacy_filter, lattice, rough, ball)
        answers.append(noisy[np.triu_indices(len(noisy))])
        # all else follows from the answers, so that a file can be checked (`audit/verification.py`)
        said: dict[str, Any] = {"answers": [answer.tolist() for answer in answers], **counted}
        if ball is not None:
            said |= {"squared_radius": ball.square, "clipped_excess": ball.excess[0]}
        return replace(result, diagnostics=said, rules=self.rules_of_run(said))

    def rules_of_run(self, diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        if "squared_radius" not in diagnostics:
            return ()
        square = diagnostics["squared_radius"]
        if not is_finite_number(square) or not square > 0.0:
            raise InputValueError(
                "squared_radius of the diagnostics must be a number above 0: the file was changed after the release"
            )
        return (Message("rows-scaled-to-ball", radius=math.sqrt(square)),)

    # Step 1 -------------------------------------------------------------------------------------------------------------

    def _rough_moments(
        self, rows: Rows, privacy_filter: PrivacyFilter, answers: list[FloatArray]
    ) -> tuple[RoughMoments, float]:
        """Return rough means and SDs, and the share of the budget that further rounds took."""
        coordinates = self.coordinates
        number, known = np.array(coordinates.is_number), np.array([one is not None for one in coordinates.typical])
        ones = np.array([coordinates.ones[feature] for feature in coordinates.singles])
        squared = number & ~known
        sums = rows.marginal_sums(coordinates.singles, np.zeros(len(ones)), 1.0 / ones, bits=self.bits_of_sums)
        counted = not self.count_is_public
        noisy, noise = self._noisy_sums(
            privacy_filter, "rough-sums", sums, squared, self.share(_SHARE_OF_SCALES), counted=counted
        )
        answers.append(noisy)
        of_count = noise
        count = float(noisy[0]) if counted else float(sums.count)
        n = divisor(count, noise if counted else 0.0)
        totals, squares = noisy[counted : counted + len(ones)], noisy[counted + len(ones) :]
        mean = np.clip(totals / n, -1.0, 1.0)
        variance = np.clip(1.0 - mean**2, max(_FLOOR_OF_BOOLEANS * noise / n, _LEAST_VARIANCE), 1.0)
        per_square = 2.0 if self.is_pure else float(ROUGH_WEIGHT)
        of_square = np.full(len(ones), noise / n / per_square)
        raw = self._mean_squares(squares, n) - mean[squared] ** 2
        variance[squared] = posterior_variance(raw, of_square[squared], np.ones(len(raw)))
        plain, of_plain = np.full(len(ones), np.nan), np.full(len(ones), np.nan)
        # of the mean square and of the mean; both are divided by the count
        of_plain[squared] = noise / n * np.sqrt(1.0 / per_square**2 + 4.0 * mean[squared] ** 2)
        by_count = np.zeros(len(ones))
        by_count[squared] = counted * (mean[squared] ** 2 - raw + self._mean_squares(np.zeros(len(raw)), n))
        plain[squared] = raw
        mean_variance = (noise / n) ** 2 * (1.0 + mean**2 if counted else np.ones(len(ones)))
        two_values = np.array(coordinates.of_two_values)
        plain[two_values] = 1.0 - mean[two_values] ** 2
        of_plain[two_values] = 2.0 * np.abs(mean[two_values]) * np.sqrt(mean_variance[two_values])
        center, reach, spent = mean.copy(), np.ones(len(ones)), 0.0
        for index, stated in enumerate(coordinates.typical):
            if stated is not None:
                center[index], variance[index] = stated[0], stated[1] ** 2
        for _ in range(self._most_rounds):
            chosen = np.flatnonzero(squared & (variance <= _LOST * of_square * reach**2))
            if not len(chosen):
                break
            reach[chosen] = 4.0 * np.sqrt(variance[chosen])
            features = tuple(coordinates.singles[index] for index in chosen)
            sums = rows.marginal_sums(
                features, center[chosen] * ones[chosen], 1.0 / (reach[chosen] * ones[chosen]), bits=self.bits_of_sums
            )
            noisy, noise = self._noisy_sums(
                *(privacy_filter, "rough-sums-again", sums, np.ones(len(chosen), dtype=bool), _SHARE_OF_ROUND),
                counted=False,
            )
            answers.append(noisy)
            spent += _SHARE_OF_ROUND
            shift = np.clip(noisy[: len(chosen)] / n, -1.0, 1.0)
            of_square[chosen] = noise / n / per_square
            raw = self._mean_squares(noisy[len(chosen) :], n) - shift**2
            center[chosen] = np.clip(center[chosen] + shift * reach[chosen], -1.0, 1.0)
            variance[chosen] = posterior_variance(raw, of_square[chosen], np.ones(len(chosen))) * reach[chosen] ** 2
        count_variance = of_count**2 if counted else 0.0
        rough = RoughMoments(
            count, count_variance, mean, mean_variance, center, np.sqrt(variance), plain, of_plain, by_count
        )
        return rough, spent

    def _noisy_sums(
        self,
        privacy_filter: PrivacyFilter,
        what: str,
        sums: MarginalSums,
        squared: BoolArray,
        share: float,
        *,
        counted: bool,
    ) -> tuple[FloatArray, float]:
        """Return noisy answers and their noise SD: count (if counted), sums and centered squares."""
        loss, one = self.budget.split(share, 1.0 - share)[0], 1 << self.bits_of_sums
        count, totals, squares = sums.count, sums.sums, sums.squares[squared]
        if self.is_pure:
            whole = [*([count * one**2] if counted else []), *(totals * one), *(2 * squares - count * one**2)]
            body = np.array(whole, dtype=object)  # numbers beyond 64 bits would become floats
            in_body = sums_in_body(self.neighbors, len(body))
            bits = 2 * self.bits_of_sums + self.shape.weight_bits
            # no less than the sampler draws; a huge budget keeps the rest for the last step
            scale = max(noise_scale_for(loss, in_body.value), math.ldexp(len(body) / 4.0, -bits))
            law = KNorm(math.ldexp(scale, bits))
            noisy = under_law(privacy_filter, what, law, body, in_body, bits=bits)
            return noisy, math.sqrt((len(body) + 1) * (len(body) + 2) / 3.0) * scale
        unit, weight, center = ROUGH_WEIGHT.denominator, ROUGH_WEIGHT.numerator, int(ROUGH_CENTER * one**2)
        body = np.array(
            [
                *([unit * count * one**2] if counted else []),
                *(unit * totals * one),
                *(weight * (squares - count * center)),
            ],
            dtype=object,
        )
        in_l2 = rough_sums_l2(self.neighbors, int(squared.sum()), int((~squared).sum()), counted=float(counted))
        scale = zcdp_noise_scale(loss.rho, in_l2.value)
        bits = 2 * self.bits_of_sums + self.shape.weight_bits + unit.bit_length() - 1
        return with_gaussian_noise(privacy_filter, what, body, in_l2, scale, bits=bits), scale

    def _mean_squares(self, centered: FloatArray, n: float) -> FloatArray:
        """Return mean squares from their noisy centered sums."""
        if self.is_pure:
            return 0.5 + centered / (2.0 * n)
        return float(ROUGH_CENTER) + centered / (float(ROUGH_WEIGHT) * n)

    # Steps 2 and 3 ------------------------------------------------------------------------------------------------------

    def _ball(
        self, rows: Rows, privacy_filter: PrivacyFilter, rough: RoughMoments, left: float, answers: list[FloatArray]
    ) -> tuple[FloatArray, FloatArray, float, Ball | None]:
        """Return center and scale of singles in column units, squared radius, and what was found."""
        coordinates = self.coordinates
        number, s = np.array(coordinates.is_number), rough.deviation
        levels, k = math.fsum(coordinates.level_squares), coordinates.n_coordinates + 1
        noise = self.noise_of_gram(2.0 * (1.0 + _CONSTANT) * (len(s) + levels), left) / rough.divisor
        usual, turn, most = _HEDGE
        hedge = np.where(number, usual * min(max(turn / noise, 1.0), most), _HEDGE_OF_BOOLEANS)
        excess_of_scale = s ** (-2.0 * hedge) / self.lengths**2  # λ: E z² of a single is 1/λ
        scale = s * np.sqrt(excess_of_scale)
        corner = float((((1.0 + np.abs(rough.center)) / scale) ** 2).sum())
        edges = np.asarray(float((1.0 / excess_of_scale).sum()) / 3.0 * _RATIO ** np.arange(float(_CELLS)))
        middles = edges * math.sqrt(_RATIO)
        middles[0] = edges[0]
        # noisy numbers of rows by squared length
        share = self.share(_SHARE_OF_RADIUS)
        loss_of_radius = self.budget.split(share, 1.0 - share)[0]
        ones = np.array([coordinates.ones[feature] for feature in coordinates.singles])
        exact = rows.lengths(coordinates.singles, rough.center * ones, 1.0 / (scale * ones), np.sqrt(edges[1:]))
        query = np.concatenate([[exact.below], exact.counts, [exact.above]])
        sensitivity = histogram_l1(self.neighbors) if self.is_pure else histogram_l2(self.neighbors)
        noise_scale = noise_scale_for(loss_of_radius, sensitivity.value)
        noisy = with_noise(privacy_filter, "row-lengths", query, sensitivity, noise_scale, bits=0, pure=self.is_pure)
        deviation = noise_deviation(noise_scale, pure=self.is_pure)
        answers.append(noisy)
        if self.shape.weight_bits:  # numbers of rows become sums of weights
            mean_weight = rough.divisor / max(float(noisy.sum()), rough.divisor)
            noisy, deviation = noisy * mean_weight, deviation * mean_weight
        tail = np.cumsum(noisy[::-1])[::-1]
        beyond_noise = tail > _BEYOND_NOISE * deviation * np.sqrt(np.arange(_CELLS, 0, -1))
        held = np.where(np.cumprod(beyond_noise) > 0, noisy, 0.0)
        middles[-1] = math.sqrt(edges[-1] * min(max(corner, edges[-1] * _RATIO), edges[-1] * _RATIO**4))
        candidates = np.append(edges, max(corner, edges[-1]))  # not clipping is a candidate
        excess = [float((held * np.maximum(middles - square, 0.0) * (edges >= square)).sum()) for square in candidates]
        heavy, at, largest = _WEIGHT_OF_CLIPPING

        def loss(index: int) -> float:
            square = float(candidates[index])
            total = (math.sqrt(square * float(excess_of_scale.sum())) + levels) ** 2 / (
                k * float(excess_of_scale.mean())
            )
            of_noise = self.noise_of_gram((1.0 + _CONSTANT) * (total if levels else square), left)
            weight = (
                heavy
                / math.sqrt(len(s))
                * min(max((at * rough.divisor / of_noise) ** self.share_of_singles, 1.0), largest)
            )
            return float((of_noise * k) ** 2 + (weight * max(excess[index], 0.0)) ** 2)

        clips = self.mechanism.clip and held.sum() >= _SEEN * rough.divisor
        best = min(range(2, len(candidates)), key=loss) if clips else len(candidates) - 1
        square = float(candidates[best])
        ball = Ball(square, edges, noisy, deviation, corner) if best < len(edges) else None
        if levels:  # beside levels the ball weighs as √(R²·Σλ)
            shrink = float(excess_of_scale.sum()) / square
            scale, square = scale / math.sqrt(shrink), square * shrink
        return rough.center, scale, square, ball

    # Step 4 -------------------------------------------------------------------------------------------------------------

    def _released(
        self,
        rows: Rows,
        privacy_filter: PrivacyFilter,
        lattice: LatticeCoordinates,
        rough: RoughMoments | None,
        ball: Ball | None,
    ) -> tuple[RunResult, FloatArray]:
        """Release the Gram matrix with the budget left, and join its means with the rough ones."""
        singles, one = list(self.coordinates.singles), 2.0**self.bits
        if singles:
            moments = rows.moments_of_moved(singles, lattice.center, lattice.limit, bits=self.bits, scale=lattice.scale)
        else:
            moments = rows.moments(bits=self.bits)
        constant = round(math.sqrt(_CONSTANT * lattice.square))
        w, row_square, k = constant / one, lattice.square / one**2, self.coordinates.n_coordinates
        left, query = privacy_filter.left.as_budget, lattice.augmented_gram(moments, constant)
        bits = self.bits + self.shape.weight_bits // 2
        rate: float | None = None
        if self.is_pure:
            nuclear = gram_nuclear(self.neighbors, k, w, row_square)
            rate = float(np.nextafter(left.epsilon / nuclear.value, 0.0))
            law = MatrixLaplaceDraw(rate, bits)
            noisy = under_law(privacy_filter, "count-sum-gram", law, query, nuclear, bits=2 * bits)
            variance = (k + 2) / rate**2
        else:
            frobenius = gram_frobenius(self.neighbors, k, w, row_square)
            sigma = zcdp_noise_scale(left.rho, frobenius.value)
            noisy = with_gaussian_noise(
                *(privacy_filter, "count-sum-gram", query, frobenius, sigma),
                bits=2 * bits,
                off_diagonal_scale=off_diagonal(sigma),
            )
            variance = sigma**2
        public = moments.count if self.count_is_public else None
        return joined_moments(lattice, LastDraw(noisy, w, variance, rate, public), rough, ball), noisy


@dataclass(frozen=True)
class Standardized(Mechanism):
    """Noise for rows in units of rough private SDs, clipped to a ball; the default with bounds.

    Steps: rough means and SDs of numbers and Booleans, again for numbers whose bounds are far too wide; rows in units of those
    SDs, levels about their public center; a noisy histogram of the rows' lengths, from which the radius of a ball is chosen
    (not clipping is always a candidate); the count, sum and Gram matrix of the rows there with isotropic noise. Where all columns
    are levels or Booleans, everything but the last step is public.

    **Privacy.** Under pure ε the steps are K-norm noise, Laplace noise and matrix Laplace noise, and their ε add up. Under ρ and
    (ε, δ) all are exact discrete Gaussian releases. Every decision reads noisy numbers only
    (``docs/evidence/derivations/standardized.md``).

    Parameters
    ----------
    clip : bool
        False: no row is clipped, whatever it costs, for tables in which few rows make up much of a column (wealth, firms).

    Examples
    --------
    >>> plan = Standardized().plan(MomentShape(10), PrivacyBudget.pure(1.0), "add_remove")
    >>> plan.details["noise"], round(plan.left_at_least, 2)
    ('matrix-laplace', 0.55)
    """

    clip: bool = True

    takes_weights: ClassVar[bool] = True
    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    summary: ClassVar[str] = "noise in units of rough private SDs, for rows clipped to a ball there"
    source: ClassVar[str] = "this library (docs/evidence/derivations/standardized.md)"

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        super().check_support(shape, budget, neighbors)
        if not shape.mean:
            refused = "'standardized' releases means with the second moment: release "
            raise InputValueError(f"{refused}with mean=True", shell=f"{refused}without --no-mean")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> StandardizedPlan:
        coordinates = shape.coordinates or RowCoordinates.of_numbers(shape.n_features)
        whole = self.drawable_budget(budget)
        plan = StandardizedPlan(
            self, shape, neighbors, budget, coordinates=coordinates, budget=whole, bits=0, bits_of_sums=0
        )
        if budget.kind is BudgetKind.APPROXIMATE:  # in few dimensions pure noise is smaller
            pure = PrivacyBudget.pure(budget.epsilon)
            as_pure = replace(plan, cost=pure, budget=pure)
            left = plan.left_at_least
            is_less = as_pure.noise_of_gram(1.0, left) < _PURE_IF_BELOW * plan.noise_of_gram(1.0, left)
            plan = as_pure if is_less else plan
        rows_loss, rest = split_for_rows(plan.budget, shape, neighbors)
        plan = replace(plan, budget=rest, rows_loss=rows_loss)
        noise = plan.noise_of_gram(1.0 + _CONSTANT, plan.left_at_least) * math.sqrt(2.0)
        bits = choose_bits(math.ldexp(noise, shape.weight_bits), max(shape.n_features, coordinates.n_coordinates + 1))
        while not coordinates.fit(bits):
            bits -= 1
            if bits < COARSEST_BITS:
                raise budget_too_small(noise)
        return replace(plan, bits=bits, bits_of_sums=plan.bits_for_sums() if coordinates.has_numbers else 0)
