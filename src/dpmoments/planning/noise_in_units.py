"""From the law of a plan's noise to the noise on means, standard deviations, shares, correlations and coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmoments.analysis.confidence import deviations_for
from dpmoments.analysis.correlations import KNOWN_VARIANCE
from dpmoments.array_types import BoolArray, FloatArray, IntegerArray
from dpmoments.noise_law import NoiseLaw
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.schema.constraints import Constraints

__all__ = ["EXPLAINED", "LEVEL", "LawOfRun", "NoiseInUnits"]

LEVEL = 0.95
"""Confidence of the half-widths."""
EXPLAINED = 0.5
"""Share of the variance that the regressors of a typical regression explain together."""
ROUGH_VARIANCE = 0.5
"""Noise on a variance beyond so much of it is too large for the first order to say what it does to the standard deviation."""


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
        More than one where the run chooses: variances are then averaged.
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
        noise, known = self._of_variance * self._scale**2, self.typical.standard_deviations
        # as in a description: no root moves further than the root of the noise on the variance
        quotient = np.divide(noise, 2.0 * known, out=np.sqrt(noise), where=known > 0.0)
        return np.asarray(np.minimum(np.sqrt(noise), quotient))

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

        def variance(law: NoiseLaw, means: FloatArray) -> FloatArray:
            squares = means**2
            return np.asarray(
                law.off_diagonal_variance
                + np.add.outer(squares, squares) * _of_sum(law)
                + np.outer(squares, squares) * _of_count(law)
            )

        with np.errstate(divide="ignore", invalid="ignore"):
            noise = self._averaged(variance, means) / np.outer(deviations, deviations) / self.n_rows
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
        variances = (self.typical.standard_deviations / self._scale) ** 2
        return np.asarray((self._of_variance >= variances) & (self._of_variance > 0.0))

    @property
    def standard_deviation_is_rough(self) -> BoolArray:
        """Whether the first order says too little of a standard deviation, by more than a tenth, shape (d,).

        Normal noise of t times a variance moves its root by t/2·(1 + 15t²/16 + …)^½, in the root mean square.
        """
        variances = (self.typical.standard_deviations / self._scale) ** 2
        return np.asarray(self._of_variance > ROUGH_VARIANCE * variances)

    @property
    def correlation_is_noise(self) -> BoolArray:
        """Features whose correlations will be said to be indistinguishable from noise, their variance being lost, shape (d,)."""
        variances = (self.typical.standard_deviations / self._scale) ** 2
        return np.asarray(variances <= KNOWN_VARIANCE * self._of_variance)

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
    def _of_variance(self) -> FloatArray:
        """On the variance of every feature, in the unit ball, shape (d,): of a share p that on p(1 − p)."""
        deviations, means = self.typical.in_unit_ball
        variances = deviations**2

        def variance(law: NoiseLaw, means: FloatArray) -> FloatArray:
            about_zero = means**2 - variances
            return np.asarray(law.diagonal_variance + 4.0 * means**2 * _of_sum(law) + about_zero**2 * _of_count(law))

        noise = self._averaged(variance, means) / self.n_rows
        indicators = self._indicators
        shares = np.abs(1.0 - 2.0 * np.clip(self.typical.means, 0.0, 1.0)) * self.mean / self._scale**2
        uncentered = sum(part.probability for part in self.laws if not part.centered)
        if uncentered > 0.0:  # about a centre a share's variance is read off the second moment
            noise = np.where(indicators, np.sqrt(uncentered * shares**2 + (1.0 - uncentered) * noise**2), noise)
        return self._certain(noise)

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
        parts = [part.probability * variance(part.law, zeros if part.centered else means) for part in self.laws]
        return np.asarray(np.sqrt(np.sum(parts, axis=0)))

    def _deviations(self, noise: FloatArray) -> FloatArray:
        likely = max(self.laws, key=lambda part: part.probability).law
        return deviations_for(LEVEL, likely, noise**2, np.zeros_like(noise))


def _of_sum(law: NoiseLaw) -> float:
    return law.sum_variance or 0.0


def _of_count(law: NoiseLaw) -> float:
    return law.count_variance or 0.0
