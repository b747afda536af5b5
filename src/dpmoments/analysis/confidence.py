"""Levels of confidence, intervals, and estimates whose interval, p-value and errors agree.

How many standard deviations, and what a ratio of noisy sums can be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from dpmoments.analysis.answers import Column
from dpmoments.base.values import BoolArray, FloatArray
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
    half = np.where(np.isfinite(half), half, 0.0)  # all numbers: no bound cuts a part off that the other side lacks
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


# The rule by which every table says what a release resolves.
#
# ``docs/evidence/derivations/resolvability.md``.
#
# An interval by itself decides on the verdict, Holm's correction marks those that hold among all comparisons of a page, the
# width of an interval decides whether a number is printed, and the standard deviations of a forecast on what will be seen.

ERROR_RATE = 0.05
"""Probability that any comparison that is forecast to hold among all of a table is false."""
POWER = 0.8
"""Probability with which an effect of the size that a forecast names is resolved."""
MAX_WIDTH_SHARE = 0.5
"""Width of an interval from which on a value is not estimable.

As a fraction of what was public before.
"""

NOT_CLEAR_NOISE = "not clear (noise)"
NOT_CLEAR_ROWS = "not clear (too few rows)"
NOT_ESTIMABLE = "not estimable at this budget"
NOT_ESTIMABLE_ROWS = "not estimable (too few rows)"
"""Verdict if sampling error, more than noise, makes an interval wide."""
NOISE_UNKNOWN = "noise unknown"
"""Verdict if ``release.noise`` is None, which a note below the table explains."""

UNCLEAR = (NOT_CLEAR_NOISE, NOT_CLEAR_ROWS, NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS, NOISE_UNKNOWN)
"""Verdicts that state no finding."""


def not_clear(privacy: float, sampling: float, *, can_be_estimated: bool = True) -> str:
    """Return "not clear", or "not estimable", with the larger of two variances as its reason."""
    by_noise, by_rows = (NOT_CLEAR_NOISE, NOT_CLEAR_ROWS) if can_be_estimated else (NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS)
    return by_rows if privacy < sampling else by_noise


def decided(value: float, said: str) -> str:
    """Return what is said, or that the noise is unknown if the value that decides is NaN.

    >>> decided(0.01, "groups differ"), decided(np.nan, "groups differ")
    ('groups differ', 'noise unknown')
    """
    return NOISE_UNKNOWN if np.isnan(value) else said


_TAILS = np.array([1e-14, 1e-11, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5])


_FARTHEST = 38.0
"""Largest normal quantile that is tried: its tail is the smallest that a number can hold."""


@lru_cache(maxsize=8)
def half_widths(noise: NoiseLaw | CountNoise) -> Callable[..., FloatArray]:
    """Return the half-width of an interval, in standard errors.

    A function of a normal quantile z, the noise's share, and the degrees of freedom of the sampling variance.

    The share is the fraction of the variance caused by privacy noise. At the quantile of a level the function equals
    :func:`~dpmoments.analysis.confidence.deviations_for`.
    """
    normal = -scipy.special.ndtri(_TAILS / 2.0)[::-1]
    quantiles = np.array([noise.quantile(1.0 - tail / 2.0, of="cell") for tail in _TAILS[::-1]])
    excess = _monotone(normal, np.maximum(quantiles - normal, 0.0))

    # beyond the last tail a quantile grows by the square of the normal one, as it does with exponential tails
    last = excess(normal[-2:])
    growth = float(last[1] - last[0]) / float(normal[-1] ** 2 - normal[-2] ** 2)

    def half_width(z: FloatArray, share: FloatArray, degrees: FloatArray | float = math.inf) -> FloatArray:
        further = growth * np.maximum(z**2 - normal[-1] ** 2, 0.0)
        beyond = excess(np.clip(z, normal[0], normal[-1])) + further
        return np.asarray(student_quantile(z, share, degrees) + beyond * share**2)

    return half_width


def _monotone(x: FloatArray, y: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the cubic interpolant of Fritsch & Butland (1984), monotone where ``y`` is."""
    # As scipy.interpolate.PchipInterpolator, which takes half a second to import.
    steps = np.diff(x)
    slopes = np.diff(y) / steps
    before, after = 2.0 * steps[1:] + steps[:-1], steps[1:] + 2.0 * steps[:-1]
    turning = slopes[1:] * slopes[:-1] <= 0.0
    left, right = np.where(turning, 1.0, slopes[:-1]), np.where(turning, 1.0, slopes[1:])
    within = np.where(turning, 0.0, (before + after) / (before / left + after / right))
    first = _end_slope(steps[0], steps[1], slopes[0], slopes[1])
    last = _end_slope(steps[-1], steps[-2], slopes[-1], slopes[-2])
    rise = np.concatenate([[first], within, [last]])

    def interpolant(at: FloatArray) -> FloatArray:
        i = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(steps) - 1)
        h, t = steps[i], (at - x[i]) / steps[i]
        value = (1.0 + 2.0 * t) * (1.0 - t) ** 2 * y[i] + t**2 * (3.0 - 2.0 * t) * y[i + 1]
        return np.asarray(value + h * t * (1.0 - t) * ((1.0 - t) * rise[i] - t * rise[i + 1]))

    return interpolant


def _end_slope(step: float, further: float, slope: float, beyond: float) -> float:
    """Return the slope at an end by three points, of the sign of the nearest two."""
    result = ((2.0 * step + further) * slope - step * beyond) / (step + further)
    if result * slope <= 0.0:
        return 0.0
    return 3.0 * slope if slope * beyond < 0.0 and abs(result) > 3.0 * abs(slope) else result


def p_by_inversion(excludes: Callable[[FloatArray], BoolArray], shape: tuple[int, ...]) -> FloatArray:
    """Return 1 − level of the widest intervals that exclude "nothing there"."""
    # `excludes` takes a normal quantile per row and returns whether the interval of that width excludes it.
    low, high = np.zeros(shape), np.full(shape, _FARTHEST)
    for _ in range(54):
        middle = (low + high) / 2.0
        outside = excludes(middle)
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    return 2.0 * scipy.special.ndtr(-low)


def p_values(
    deviations: FloatArray,
    privacy: FloatArray,
    sampling: FloatArray,
    noise: NoiseLaw | CountNoise | None,
    degrees: FloatArray | float = math.inf,
) -> FloatArray:
    """Return two-sided p-values of estimates this many standard errors from "nothing there"."""
    # The p-value is 1 − level of the interval that just reaches "nothing there", with the tails of the noise
    # distribution, so that p < 0.05 exactly when the 95 % interval excludes it.
    size = np.abs(np.asarray(deviations, dtype=float))
    if noise is None:
        return np.full(size.shape, np.nan)
    total = privacy + sampling
    share = np.divide(privacy, total, out=np.zeros_like(total), where=total > 0.0)
    half_width = half_widths(noise)
    result = p_by_inversion(lambda z: half_width(z, share, degrees) < size, size.shape)
    return np.where(np.isnan(size), np.nan, result)


def hidden_by_noise(
    values: FloatArray,
    noise: FloatArray,
    law: NoiseLaw | CountNoise | None,
    tested: BoolArray,
    counts_as: FloatArray | None = None,
) -> BoolArray:
    """Return a mask of values that noise does not distinguish from 0."""
    # By Holm's correction over those that are `tested`, whose noise SDs are above 0.
    none = np.zeros_like(noise)
    if law is None or not tested.any():
        return np.zeros(noise.shape, dtype=bool)
    far = np.divide(np.maximum(values, 0.0), noise, out=none.copy(), where=tested)
    p = np.where(tested, p_values(far, noise**2, none, law), np.nan)
    return tested & ~holds_among_all(p, np.ones(p.shape) if counts_as is None else counts_as, 0.95)


def most_with_noise(values: FloatArray, noise: FloatArray, law: NoiseLaw | CountNoise | None) -> FloatArray:
    """Return upper ends of 95 % intervals of values that are 0 or above."""
    size = np.maximum(values, 0.0)
    return size if law is None else size + deviations_for(0.95, law, noise**2, np.zeros_like(noise)) * noise


def largest_holding(p: FloatArray, counts_as: FloatArray, level: float) -> float:
    """Return the largest p/``counts_as`` of the comparisons that hold among all; −1 without any."""
    # Holm's (1979) correction with weights: the chance that any comparison that holds is false is at most 1 − level,
    # whatever the weights. k levels count as k − 1 comparisons, so that a column of many takes little from the others.
    known = ~np.isnan(p)
    ratio, weight = p[known] / counts_as[known], counts_as[known]
    order = np.argsort(ratio, kind="stable")
    remaining = np.cumsum(weight[order][::-1])[::-1]
    fails = np.append(ratio[order] * remaining >= error_rate(level), True)
    n_holding = int(np.argmax(fails))
    return float(ratio[order][n_holding - 1]) if n_holding else -1.0


def holds_among_all(p: FloatArray, counts_as: FloatArray, level: float, cutoff: float | None = None) -> BoolArray:
    """Return a mask of the comparisons that hold among all of a page, by its cutoff.

    The page is the table itself by default.
    """
    largest = largest_holding(p, counts_as, level) if cutoff is None else cutoff
    return np.nan_to_num(p / counts_as, nan=np.inf) <= largest


def estimable(
    lower: FloatArray, upper: FloatArray, least: FloatArray | float, greatest: FloatArray | float
) -> BoolArray:
    """Return a mask of the intervals that are bounded and short."""
    # They are shorter than half of the public range [least, greatest].
    width = np.asarray(upper, dtype=float) - np.asarray(lower, dtype=float)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(width) & (width < MAX_WIDTH_SHARE * (np.asarray(greatest) - np.asarray(least))))


def smallest_seen(privacy: FloatArray, sampling: FloatArray, comparisons: int, noise: NoiseLaw) -> FloatArray:
    """Return the effect resolved with 80 % probability in a table of this many comparisons."""
    # By Bonferroni's bound, which Holm's correction never falls short of. The variances are those at "nothing there".
    total = privacy + sampling
    share = np.divide(privacy, total, out=np.zeros_like(total), where=total > 0.0)
    z = float(-scipy.special.ndtri(ERROR_RATE / (2.0 * max(comparisons, 1))))
    reach = half_widths(noise)(np.full(total.shape, z), share) + float(scipy.special.ndtri(POWER))
    return reach * np.sqrt(total)


def sign_verdicts(
    estimate: FloatArray,
    p: FloatArray,
    privacy: FloatArray,
    sampling: FloatArray,
    can_be_estimated: BoolArray,
    level: float,
    *,
    words: tuple[str, str] = ("positive", "negative"),
) -> list[str]:
    """Return the verdict of each interval by itself: a sign where it excludes 0."""
    certain = np.nan_to_num(p, nan=1.0) < error_rate(level)
    by_noise = privacy >= sampling
    unclear = np.where(by_noise, NOT_CLEAR_NOISE, NOT_CLEAR_ROWS)
    result = np.where(can_be_estimated, unclear, np.where(by_noise, NOT_ESTIMABLE, NOT_ESTIMABLE_ROWS)).astype(object)
    result[certain & (estimate > 0.0)], result[certain & (estimate < 0.0)] = words
    result[np.isnan(p)] = NOISE_UNKNOWN
    return [str(word) for word in result]


def verdict_columns(verdicts: Sequence[str], holds: BoolArray) -> list[Column]:
    """Return the columns of verdicts, and of marks that they hold among all of the page."""
    cells = ["holds" if each else "" for each in holds.tolist()]
    marks = Column("holds_among_all", holds.tolist(), "among all", cells)
    return [Column("verdict", verdicts, "verdict"), marks]


def format_findings(holds: BoolArray, what: str, level: float) -> str:
    """Return the heading of a table of comparisons: those that hold among all of the page."""
    certain = int(holds.sum())
    chance = f" ({100.0 * error_rate(level):.3g} % chance that any of these is false)" if certain else ""
    return f"{certain:,} of {len(holds):,} {what} hold among all{chance}"
