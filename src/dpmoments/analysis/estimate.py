"""One estimated number with interval, p-value and errors that cannot contradict each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy


@dataclass(frozen=True)
class Estimate:
    """A number that a release estimates.

    Attributes
    ----------
    value : float
        In [lower, upper]; NaN if it is not estimable.
    lower, upper : float
        Confidence interval; both finite or, if it is not estimable, both infinite.
    p_value : float
        Of the hypothesis that the number is 0: below 1 − level exactly if 0 is outside the interval. NaN if it is not estimable.
    privacy, sampling : float
        Parts of the standard error caused by the privacy noise and by sampling; NaN if it is not estimable.
    level : float

    Raises
    ------
    ValueError
        If the attributes contradict each other.

    Examples
    --------
    >>> Estimate.of_interval(2.0, 1.0, 3.0, 0.001, 0.95, 0.5).standard_error.__round__(3)
    0.51
    """

    value: float
    lower: float
    upper: float
    p_value: float
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
        if (self.p_value < 1.0 - self.level) != (not self.lower <= 0.0 <= self.upper):
            raise AssertionError("a p-value is below 1 − level exactly if 0 is outside the interval")

    @classmethod
    def of_interval(
        cls, value: float, lower: float, upper: float, p_value: float, level: float, privacy_share: float
    ) -> Estimate:
        """Return the estimate with the standard error that its interval implies.

        It is half the width over the normal quantile.

        Parameters
        ----------
        privacy_share : float
            Fraction of the variance caused by the privacy noise.
        """
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
