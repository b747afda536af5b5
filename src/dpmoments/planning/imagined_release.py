"""From the law of a plan's noise to the noise on means, standard deviations, shares, correlations and coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmoments.analysis.confidence import deviations_for
from dpmoments.analysis.correlations import KNOWN_VARIANCE
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.noise.law import NoiseLaw
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.schema.constraints import Constraints

__all__ = ["EXPLAINED", "LEVEL", "LawOfRun", "NoiseInUnits"]

LEVEL = 0.95
"""Confidence of the half-widths."""
EXPLAINED = 0.5
"""Share of the variance that the regressors of a typical regression explain together."""


@dataclass(frozen=True)
class LawOfRun:
    """The law that the noise of a run can turn out to have.

    Attributes
    ----------
    probability : float
    law : NoiseLaw
    centered : bool
        Whether moments are released about a centre near the mean, on which noise in the count then tells little.
    """

    probability: float
    law: NoiseLaw
    centered: bool = False


@dataclass(frozen=True, eq=False)
class NoiseInUnits:
    """Standard deviations of the noise that a plan adds, before any repair, to first order, as ``describe`` states them.

    Attributes
    ----------
    typical : TypicalTable
    n_rows : int
    laws : tuple of LawOfRun
        More than one where the run chooses: numbers are then root mean squares over what it may choose.
    """

    typical: TypicalTable
    n_rows: int
    laws: tuple[LawOfRun, ...]

    @cached_property
    def mean(self) -> FloatArray:
        """On the mean of every feature (the share, of flags and levels), in the table's units, shape (d,).

        Of (noise of the sum − mean · noise of the count)/n, the mean in units of the encoding.
        """
        _, means = self.typical.in_unit_ball

        def variance(law: NoiseLaw, means: FloatArray) -> FloatArray:
            return np.asarray(_of_sum(law) + means**2 * _of_count(law))

        return self._certain(self._averaged(variance, means) / self.n_rows * self._scale)

    @cached_property
    def mean_half_width(self) -> FloatArray:
        """Half the width of a 95 % interval for the noise on the mean alone, shape (d,)."""
        return self.mean * self._deviations(self.mean)

    @cached_property
    def standard_deviation(self) -> FloatArray:
        """On the standard deviation of every feature, in the table's units, shape (d,)."""
        known, scale = self.typical.standard_deviations, self._scale

        def moved(of_variance: FloatArray) -> FloatArray:
            noise = of_variance * scale**2
            # as in a description: no root moves further than the root of the noise on the variance
            quotient = np.divide(noise, 2.0 * known, out=np.sqrt(noise), where=known > 0.0)
            return np.asarray(np.minimum(np.sqrt(noise), quotient))

        return self._root_mean_square([moved(noise) for noise in self._of_variance])

    @cached_property
    def standard_deviation_half_width(self) -> FloatArray:
        """Half the width of a 95 % interval for the noise on the standard deviation alone, shape (d,)."""
        return self.standard_deviation * self._deviations(self.standard_deviation)

    @property
    def count(self) -> FloatArray:
        """On the number of rows for which a flag is true, or that have a level, shape (d,); NaN for columns of numbers."""
        encoding = self.typical.schema.encoding(mean=True)
        offsets = encoding.offset / encoding.scale

        def variance(law: NoiseLaw, offsets: FloatArray) -> FloatArray:
            return np.asarray(_of_sum(law) + offsets**2 * _of_count(law))

        noise = self._averaged(variance, offsets, centered=offsets) * self._scale
        return np.where(self.typical.shares, noise, np.nan)

    @cached_property
    def correlation(self) -> FloatArray:
        """On the correlation of every two features that are not correlated, shape (d, d); NaN within a column.

        First order, whatever its size: :attr:`correlation_is_noise` says where it tells nothing.
        """
        deviations, means = self.typical.in_unit_ball

        def of_law(part: LawOfRun) -> FloatArray:
            squares = np.zeros_like(means) if part.centered else means**2
            cells = (
                part.law.off_diagonal_variance
                + np.add.outer(squares, squares) * _of_sum(part.law)
                + np.outer(squares, squares) * _of_count(part.law)
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                found = np.sqrt(cells) / np.outer(deviations, deviations) / self.n_rows
            return (
                found if len(self.laws) == 1 else np.minimum(found, 1.0)
            )  # a rare bad run loses what there is, not more

        noise = self._root_mean_square([of_law(part) for part in self.laws])
        columns = np.array(self.typical.columns, dtype=object)
        noise[columns[:, None] == columns[None, :]] = np.nan
        noise[~np.isfinite(noise)] = np.nan
        return noise

    @property
    def mean_is_noise(self) -> BoolArray:
        """Whether the noise on a mean is as large as the spread of a guess within the bounds, shape (d,)."""
        lower, upper = self.typical.schema.feature_bounds
        return np.asarray(self.mean >= (upper - lower) / math.sqrt(12.0))

    @property
    def standard_deviation_is_noise(self) -> BoolArray:
        """Whether the noise on a variance is as large as itself, shape (d,)."""
        return self._variance_is_below(1.0)

    @property
    def standard_deviation_is_rough(self) -> BoolArray:
        """Whether the first order says too little of a standard deviation, shape (d,).

        Normal noise of t times a variance moves its root by t/2·(1 + 15t²/16 + …)^½, in the root mean square.
        """
        return self._variance_is_below(KNOWN_VARIANCE)

    @property
    def correlation_is_noise(self) -> BoolArray:
        """Features whose correlations will be said to be indistinguishable from noise, their variance being lost, shape (d,)."""
        return self._variance_is_below(KNOWN_VARIANCE)

    def _variance_is_below(self, times: float) -> BoolArray:
        """Whether a variance is so many times its noise at most, in half of all runs or more, shape (d,)."""
        variances = (self.typical.standard_deviations / self._scale) ** 2
        lost = [
            part.probability * ((variances <= times * noise) & (noise > 0.0))
            for part, noise in zip(self.laws, self._of_variance, strict=True)
        ]
        return np.asarray(np.sum(lost, axis=0) >= 0.5 * sum(part.probability for part in self.laws))

    def typical_correlation(self, among: Sequence[int] | None = None) -> float:
        """Median of the noise on correlations of two columns of numbers; of any two columns where there are fewer; else NaN."""
        pairs = self.correlation[self._typical_pairs(among)]
        return float(np.median(pairs)) if len(pairs) else math.nan

    @property
    def typical_correlation_is_noise(self) -> bool:
        """Whether most of those pairs are lost."""
        first, second = self._typical_pairs(None)
        lost = self.correlation_is_noise
        return bool(2 * np.sum(lost[first] | lost[second]) > len(first))

    @property
    def worst_correlation(self) -> tuple[str, str, float]:
        """The two features on whose correlation there is most noise, and how much; no names where there is one column."""
        first, second = np.nonzero(np.tril(np.isfinite(self.correlation), -1))
        if not len(first):
            return "", "", math.nan
        worst = int(np.argmax(self.correlation[first, second]))
        names = self.typical.schema.feature_names
        return names[second[worst]], names[first[worst]], float(self.correlation[first[worst], second[worst]])

    def _typical_pairs(self, among: Sequence[int] | None) -> tuple[IntegerArray, IntegerArray]:
        chosen = np.arange(len(self.mean)) if among is None else np.asarray(among, dtype=int)
        numbers = chosen[~self.typical.shares[chosen]]
        for candidates in (numbers, chosen):
            first, second = (candidates[places] for places in np.tril_indices(len(candidates), -1))
            apart = np.isfinite(self.correlation[first, second])
            if apart.any():
                return first[apart], second[apart]
        return np.zeros(0, dtype=int), np.zeros(0, dtype=int)

    @property
    def regressors(self) -> int:
        """k of the typical regression: all features but one, and one level of each column of levels."""
        blocks = sum(
            int(len(places) > 1 and bool(self.typical.shares[places[0]]))
            for places in self.typical.features_of_columns.values()
        )
        return max(1, len(self.typical.columns) - blocks - 1)

    @property
    def coefficient(self) -> float:
        """On a standardised coefficient: k uncorrelated regressors, alike in their noise, that explain half of the variance.

        To first order the noise on R⁻¹r, R the correlations of the regressors and r those with what is regressed, is
        σ√(1 + Σβ²), σ the noise on a correlation. The noise on R spreads its eigenvalues over a semicircle of variance s² = kσ²
        about 1, over which 1/λ² has the mean (1/√(1 − 4s²) − 1)/(2s²). Infinite where the semicircle reaches 0.
        """
        sigma, k = self.typical_correlation(), self.regressors
        square = (k - 1) * sigma**2
        if not math.isfinite(sigma):
            return math.nan
        if 4.0 * square >= 1.0:
            return math.inf
        spread = (1.0 / math.sqrt(1.0 - 4.0 * square) - 1.0) / (2.0 * square) if square > 1e-9 else 1.0
        return sigma * math.sqrt((1.0 + EXPLAINED) * spread)

    @property
    def coefficient_is_noise(self) -> bool:
        """Whether a regression on all columns has no answer, or one that is noise."""
        sigma = self.typical_correlation()
        if not math.isfinite(sigma):
            return False
        edge = sigma * math.sqrt(self.regressors) * (2.0 + self.regressors ** (-2.0 / 3.0))
        return self.typical_correlation_is_noise or edge >= 1.0

    def at(self, n_rows: int) -> NoiseInUnits:
        """The same laws with another number of rows."""
        return replace(self, n_rows=n_rows)

    @property
    def _scale(self) -> FloatArray:
        return self.typical.schema.encoding(mean=True).scale

    @cached_property
    def _of_variance(self) -> tuple[FloatArray, ...]:
        """On the variance of every feature in the unit ball, shape (d,), for each law: of a share p that on p(1 − p)."""
        deviations, means = self.typical.in_unit_ball
        variances, shares = deviations**2, self.typical.means
        found = []
        for part in self.laws:
            about = np.zeros_like(means) if part.centered else means
            of_count = (about**2 - variances) ** 2 * _of_count(part.law)
            square = part.law.diagonal_variance + 4.0 * about**2 * _of_sum(part.law) + of_count
            if not part.centered:  # about a centre a share's variance is read off the second moment
                of_share = (_of_sum(part.law) + about**2 * _of_count(part.law)) / self._scale**2
                square = np.where(self._indicators, (1.0 - 2.0 * np.clip(shares, 0.0, 1.0)) ** 2 * of_share, square)
            found.append(self._certain(np.sqrt(square) / self.n_rows))
        return tuple(found)

    @property
    def _indicators(self) -> BoolArray:
        """Features that are 0 or 1 in every row as the schema's constraints know them."""
        constraints = Constraints.of(self.typical.schema, mean=True)
        found = np.zeros(len(self.typical.columns), dtype=bool)
        for block in constraints.blocks:
            found[block.features] = True
        found[list(constraints.flags)] = True
        return found

    def _certain(self, noise: FloatArray) -> FloatArray:
        """0 for a column of one level, whose share is 1 in every table."""
        found = np.array(noise, dtype=np.float64)
        found[list(Constraints.of(self.typical.schema, mean=True).certain)] = 0.0
        return found

    def _averaged(
        self,
        variance: Callable[[NoiseLaw, FloatArray], FloatArray],
        means: FloatArray,
        centered: FloatArray | None = None,
    ) -> FloatArray:
        """Root of the mean variance over what a run can turn out to be; means are 0 about a centre."""
        zeros = np.zeros_like(means) if centered is None else centered
        return self._root_mean_square(
            [np.sqrt(variance(part.law, zeros if part.centered else means)) for part in self.laws]
        )

    def _root_mean_square(self, found: Sequence[FloatArray]) -> FloatArray:
        """Over what a run can turn out to be."""
        parts = [part.probability * values**2 for part, values in zip(self.laws, found, strict=True)]
        return np.asarray(np.sqrt(np.sum(parts, axis=0)))

    def _deviations(self, noise: FloatArray) -> FloatArray:
        likely = max(self.laws, key=lambda part: part.probability).law
        return deviations_for(LEVEL, likely, noise**2, np.zeros_like(noise))


def _of_sum(law: NoiseLaw) -> float:
    return law.sum_variance or 0.0


def _of_count(law: NoiseLaw) -> float:
    return law.count_variance or 0.0
