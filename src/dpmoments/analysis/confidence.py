"""Levels of confidence, intervals, and estimates whose interval, p-value and errors agree.

How many standard deviations, and what a ratio of noisy sums can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpmoments.base.arrays import FloatArray
from dpmoments.moments.cells import CountNoise
from dpmoments.moments.law import NoiseLaw


def error_rate(level: float) -> float:
    """Return 1 − level without the rounding error of the subtraction.

    >>> error_rate(0.95) == 0.05, 1.0 - 0.95 == 0.05
    (True, False)
    """
    return round(1.0 - level, 12)


def agreeing_p_value(p_value: float, lower: float, upper: float, level: float) -> float:
    """Return the p-value that agrees with an interval."""
    # The interval may be the hull of the values that the test does not reject.
    if lower <= 0.0 <= upper:
        return max(p_value, error_rate(level))
    return min(p_value, math.nextafter(error_rate(level), 0.0))


def within_bounds(
    lower: FloatArray, upper: FloatArray, least: FloatArray | float, greatest: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    """Return intervals within public bounds, about a bound if their middle is beyond it."""
    half = (upper - lower) / 2.0
    half = np.where(
        np.isfinite(half), half, 0.0
    )  # all numbers: no bound cuts a part off that is missing on the other side
    low, high = np.minimum(lower, greatest - half), np.maximum(upper, least + half)
    return np.clip(low, least, greatest), np.clip(high, least, greatest)


def holding(lower: FloatArray, upper: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intervals that are widened where they do not hold the value, which is then inside."""
    # An estimate after repair is the same at every level, and an interval is of noise before it. It grows by twice the
    # distance of the value, but not across 0, unless the value is there.
    low, high = 2.0 * value - lower, 2.0 * value - upper
    low = np.where(value > 0.0, np.maximum(low, value / 2.0), low)
    high = np.where(value < 0.0, np.minimum(high, value / 2.0), high)
    return np.fmin(lower, low), np.fmax(upper, high)


@dataclass(frozen=True)
class Estimate:
    """A number that a release estimates."""

    value: float  # in [lower, upper]; NaN if it is not estimable
    lower: float  # with `upper`: confidence interval; both finite or, if it is not estimable, both infinite
    upper: float
    # of the hypothesis that the number is 0: below 1 − level exactly if 0 is outside the interval. NaN if it is not
    # estimable.
    p_value: float
    # with `sampling`: parts of the standard error caused by the privacy noise and by sampling; NaN if it is not
    # estimable
    privacy: float
    sampling: float
    level: float = 0.95

    def __post_init__(self) -> None:
        finite = [math.isfinite(number) for number in (self.value, self.lower, self.upper, self.p_value)]
        if not self.estimable:
            if any(finite) or not math.isnan(self.standard_error):
                raise AssertionError("an estimate without a bounded interval has no value, p-value or standard error")
            return
        if not all(finite) or not math.isfinite(self.standard_error):
            raise AssertionError("an estimate with a bounded interval has a value, a p-value and a standard error")
        if not self.lower <= self.value <= self.upper:
            raise AssertionError("an estimate lies in its interval")
        if (self.p_value < error_rate(self.level)) != (not self.lower <= 0.0 <= self.upper):
            raise AssertionError("a p-value is below 1 − level exactly if 0 is outside the interval")

    @classmethod
    def of_interval(
        cls, value: float, lower: float, upper: float, p_value: float, level: float, privacy_share: float
    ) -> Estimate:
        """Return the estimate with the standard error that its interval implies."""
        # It is half the width over the normal quantile.
        deviation = (upper - lower) / (2.0 * float(scipy.special.ndtri(0.5 + 0.5 * level)))
        parts = math.sqrt(privacy_share), math.sqrt(1.0 - privacy_share)
        return cls(value, lower, upper, p_value, deviation * parts[0], deviation * parts[1], level)

    @classmethod
    def not_estimable(cls, level: float) -> Estimate:
        """Return the estimate of a number that the release does not bound on both sides."""
        return cls(math.nan, -math.inf, math.inf, math.nan, math.nan, math.nan, level)

    @property
    def estimable(self) -> bool:
        """True if the interval is bounded."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)

    @property
    def standard_error(self) -> float:
        """Standard error of the privacy noise and sampling together."""
        return math.hypot(self.privacy, self.sampling)


def deviations_for(
    level: float,
    law: NoiseLaw | CountNoise | None,
    privacy: FloatArray,
    sampling: FloatArray,
    degrees: FloatArray | float = math.inf,
) -> FloatArray:
    """Return half the width of a two-sided interval, in SDs of noise and sampling together."""
    # The quantile of t (:func:`student_quantile`) if sampling dominates, the quantile q of the noise distribution if
    # one noisy entry does; between them t + (q − z)·share², share the noise's fraction of the variance, as excess
    # kurtosis adds up. Arguments are variances, and the degrees of freedom of the sampling variances.
    normal = float(scipy.special.ndtri((1.0 + level) / 2.0))
    beyond = 0.0 if law is None else max(0.0, law.quantile((1.0 + level) / 2.0, of="cell") - normal)
    total = privacy + sampling
    share = np.divide(privacy, total, out=np.zeros_like(total), where=total > 0.0)
    return student_quantile(np.full(total.shape, normal), share, degrees) + beyond * share**2


def student_quantile(normal: FloatArray, share: FloatArray, degrees: FloatArray | float) -> FloatArray:
    """Return the quantile of Student's t at the level of a normal quantile."""
    # The degrees of freedom are those of the sampling variance, of which the total has the fraction 1 − share
    # (Satterthwaite 1946): the variance of the noise is known.
    if np.isinf(degrees).all():
        return normal
    degrees = np.minimum(degrees / np.square(1.0 - np.minimum(share, 1.0 - 1e-6)), 1e12)
    # by Fisher's expansion (1925) where it has ten digits, which takes a tenth of the time
    square = normal**2
    terms = (square + 1.0) / 4.0, ((5.0 * square + 16.0) * square + 3.0) / 96.0
    third = (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0
    result = np.asarray(normal * (1.0 + (terms[0] + (terms[1] + third / degrees) / degrees) / degrees))
    few = square > 0.01 * degrees
    # infinite at tails that few degrees make very wide; the squares of 1e20 do not overflow
    result[few] = np.abs(scipy.special.stdtrit(degrees[few], scipy.special.ndtr(-normal[few])))
    return np.minimum(result, 1e20)


def fieller_interval(
    numerator: FloatArray,
    denominator: FloatArray,
    covariance: tuple[FloatArray, FloatArray, FloatArray],
    extra: FloatArray,
    deviations: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the possible values of a/b, an interval (Fieller 1954)."""
    # These are all θ with (a − θb)² ≤ q²(V_aa − 2θV_ab + θ²V_bb + extra), q = `deviations`: −∞ to ∞ if b is not
    # distinguishable from 0. `covariance` is (V_aa, V_ab, V_bb) of the noise.
    square = deviations**2
    leading = denominator**2 - square * covariance[2]
    middle = numerator * denominator - square * covariance[1]
    rest = numerator**2 - square * (covariance[0] + extra)
    discriminant = middle**2 - leading * rest
    bounded = (leading > 0.0) & (discriminant >= 0.0) & (denominator > 0.0)
    root, divisor = np.sqrt(np.where(bounded, discriminant, 0.0)), np.where(bounded, leading, 1.0)
    return np.where(bounded, (middle - root) / divisor, -np.inf), np.where(bounded, (middle + root) / divisor, np.inf)


# The score test of "nothing but noise and sampling": the one reference law behind every test of a release.

_NEGLIGIBLE = 1e-10
"""Directions in which less than this share of the largest variance is left do not vary."""


def score_test(
    scores: FloatArray, privacy: FloatArray, sampling: FloatArray, degrees: int, law: NoiseLaw | CountNoise | None
) -> tuple[float, int, float]:
    """Compute Sᵀ(V + W)⁺S for normal scores S."""
    # Under the null hypothesis they have mean 0 and covariance V + W (`privacy` and `sampling`). Every direction is
    # weighted by both together, so that one full of noise hides no other; those of least variance beyond `degrees` are
    # left out. χ² is reduced for tails heavier than normal ones, and NaN without a `law`.
    if degrees < 1 or not len(scores):
        return 0.0, 0, 1.0
    if np.isnan(privacy).any():
        return math.nan, degrees, math.nan
    # each score in its own deviation, so that counts of a few rows do not vanish beside those of millions
    deviations = np.sqrt(np.maximum(np.diag(privacy + sampling), 0.0))
    own = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0.0)
    eigenvalues, vectors = np.linalg.eigh((privacy + sampling) * np.outer(own, own))
    kept = np.arange(len(scores)) >= len(scores) - degrees
    kept &= eigenvalues > _NEGLIGIBLE * max(float(eigenvalues[-1]), 0.0)
    if not kept.any():
        return 0.0, 0, 1.0
    whitened = (vectors[:, kept] / np.sqrt(eigenvalues[kept])).T * own
    of_noise = float(np.einsum("ij,jk,ik->", whitened, privacy, whitened)) / int(kept.sum())
    of_noise = min(max(of_noise, 0.0), 1.0)
    heavy = float(deviations_for(0.95, law, np.array(of_noise), np.array(1.0 - of_noise)))
    normal = float(deviations_for(0.95, None, np.array(0.0), np.array(1.0)))
    value = float(np.sum((whitened @ scores) ** 2)) * (normal / heavy) ** 2
    return value, int(kept.sum()), float(scipy.stats.chi2.sf(value, int(kept.sum())))


def format_probability(value: float, digits: int = 4) -> str:
    """Format a p-value for printing."""
    if math.isnan(value):
        return "noise unknown"
    least = 10.0**-digits
    return f"p < {least:.{digits}f}" if value < least else f"p = {value:.{digits}f}"
