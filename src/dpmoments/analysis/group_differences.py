"""Differences of the means of groups, pair by pair: estimates, intervals, and which mean is higher."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dpmoments.analysis.answers import TableAnswer, finite_or_none, number
from dpmoments.analysis.confidence import level_in_words
from dpmoments.analysis.functionals import NOISE_UNKNOWN, NOT_DISTINGUISHABLE
from dpmoments.analysis.group_sums import GroupSums
from dpmoments.foundation.arrays import FloatArray

__all__ = ["GroupDifferences", "intervals_of_differences"]


@dataclass(frozen=True, eq=False, repr=False)
class GroupDifferences(TableAnswer):
    """Differences of the means of two groups, pair by pair, in the table's units.

    Attributes
    ----------
    features : tuple of str
    groups : tuple of str
    difference, lower, upper : ndarray of shape (m, p)
        First group less second, and its interval, for m features and the p pairs of groups in ``itertools.combinations`` order.
    level : float
    """

    features: tuple[str, ...]
    groups: tuple[str, ...]
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The two groups of each difference."""
        return tuple(combinations(self.groups, 2))

    @property
    def verdict(self) -> tuple[tuple[str, ...], ...]:
        """Which group's mean is higher, or "not distinguishable from noise", feature by feature."""
        return tuple(
            tuple(_higher(*pair, low, high) for pair, low, high in zip(self.pairs, lower, upper, strict=True))
            for lower, upper in zip(self.lower.tolist(), self.upper.tolist(), strict=True)
        )

    def table(self) -> list[tuple[str, ...]]:
        """A feature and a pair a line."""
        lines = [
            (name, f"{one} − {other}", number(difference), f"[{number(low)}, {number(high)}]", words)
            for name, *rest in zip(self.features, self.difference, self.lower, self.upper, self.verdict, strict=True)
            for (one, other), difference, low, high, words in zip(self.pairs, *rest, strict=True)
        ]
        return [("feature", "difference of means", "estimate", level_in_words(self.level), "verdict"), *lines]

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """A feature and a pair a row."""
        return {
            "feature": [name for name in self.features for _ in self.pairs],
            "group": [one for _ in self.features for one, _ in self.pairs],
            "other": [other for _ in self.features for _, other in self.pairs],
            "difference": finite_or_none(self.difference.ravel()),
            "lower": finite_or_none(self.lower.ravel()),
            "upper": finite_or_none(self.upper.ravel()),
            "verdict": [word for words in self.verdict for word in words],
        }

    def to_dict(self) -> dict[str, Any]:
        """The differences as JSON holds them."""
        return {"level": self.level} | {name: list(values) for name, values in self.columns().items()}


def _higher(one: str, other: str, lower: float, upper: float) -> str:
    if math.isnan(lower):
        return NOISE_UNKNOWN
    if lower > 0.0 or upper < 0.0:
        return f"{one if lower > 0.0 else other} higher"
    return NOT_DISTINGUISHABLE


def intervals_of_differences(sums: GroupSums, lower: FloatArray, upper: FloatArray) -> tuple[list[float], list[float]]:
    """Intervals of the differences of two groups' means, from theirs (Zou & Donner 2008, with correlated estimates)."""
    middle = np.clip(sums.location + sums.unit * sums.sums / sums.safe_counts, lower, upper)
    covariance = sums.covariance_of_means
    deviations = np.sqrt(np.diag(covariance) + sums.sampling_variances)
    low, high = [], []
    for one, other in combinations(range(len(middle)), 2):
        product = float(deviations[one] * deviations[other])
        shared = min(max(float(covariance[one, other]) / product, -1.0), 1.0) if product > 0.0 else 0.0
        difference = float(middle[one] - middle[other])
        below = (float(middle[one] - lower[one]), float(upper[other] - middle[other]))
        above = (float(upper[one] - middle[one]), float(middle[other] - lower[other]))
        low.append(difference - _combined(*below, shared))
        high.append(difference + _combined(*above, shared))
    return low, high


def _combined(first: float, second: float, correlation: float) -> float:
    if not (math.isfinite(first) and math.isfinite(second)):
        return first + second
    return math.sqrt(max(0.0, first**2 + second**2 - 2.0 * correlation * first * second))
