"""Means of features over the rows of each group, their intervals, and how sure their differences are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpmoments.analysis.answers import (
    Answer,
    Column,
    aligned,
    confidence_level,
    format_level,
    in_floating_point,
    intervals,
    number,
)
from dpmoments.analysis.confidence import deviations_for, fieller_interval
from dpmoments.analysis.functionals import NO_MEAN, NOISE_UNKNOWN, NOT_DISTINGUISHABLE, describe_law
from dpmoments.analysis.group_sums import GroupSums, Levels
from dpmoments.analysis.released import Released, cautions_by_code, chosen_features
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputValueError

# Differences of the means of groups, pair by pair: estimates, intervals, and which mean is higher.


@dataclass(frozen=True, eq=False, repr=False)
class GroupDifferences(Answer):
    """Differences of the means of two groups, pair by pair, in the table's units.

    Attributes
    ----------
    features : tuple of str
    groups : tuple of str
    difference, lower, upper : ndarray of shape (m, p)
        First group less second, and its interval, for m features and the p pairs of groups in ``itertools.combinations`` order.
    """

    features: tuple[str, ...]
    groups: tuple[str, ...]
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float

    facts = ("level", "**: *")

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

    def _columns(self) -> list[Column]:
        pairs = self.pairs * len(self.features)
        names = [name for name in self.features for _ in self.pairs]
        return [
            Column("feature", names, "feature", label=True),
            Column("group", [one for one, _ in pairs], label=True),
            Column("other", [other for _, other in pairs], label=True),
            Column(head="difference of means", cells=[f"{one} − {other}" for one, other in pairs]),
            Column("difference", self.difference.ravel(), "estimate"),
            Column("lower", self.lower.ravel(), format_level(self.level), intervals(self.lower, self.upper)),
            Column("upper", self.upper.ravel()),
            Column("verdict", [word for words in self.verdict for word in words], "verdict"),
        ]


def _higher(one: str, other: str, lower: float, upper: float) -> str:
    if math.isnan(lower):
        return NOISE_UNKNOWN
    if lower > 0.0 or upper < 0.0:
        return f"{one if lower > 0.0 else other} higher"
    return NOT_DISTINGUISHABLE


def _intervals_of_differences(sums: GroupSums, lower: FloatArray, upper: FloatArray) -> tuple[list[float], list[float]]:
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


_SHOWN_DIFFERENCES = 30
"""The text of the means ends with their differences where there are no more than these."""
LOST = "lost in noise"


@dataclass(frozen=True, eq=False, repr=False)
class GroupMeans(Answer):
    """Means of m features over the rows of k groups, in the table's units.

    Attributes
    ----------
    by : str
    features, groups : tuple of str
    counts : ndarray of shape (k,)
        Rows of each group, 0 or above.
    count_noise : ndarray of shape (k,)
        Standard deviation of their noise, before repair; NaN where it is not known.
    mean : ndarray of shape (m, k)
        Within the public bounds, and within the interval; NaN for a group whose count is lost in the noise.
    privacy_noise, sampling_noise : ndarray of shape (m, k)
        Standard deviations of the two parts of the error, to first order.
    lower, upper : ndarray of shape (m, k)
        Interval of the mean of the group's population, within the public bounds.
    lost : ndarray of bool, shape (k,)
        Groups whose count is not distinguishable from 0.
    differences : GroupDifferences
    level : float
    noise_known : bool
    own_variance : bool
        Whether every group's own variance is in the release, else groups are taken to vary alike.
    warning : str
    """

    by: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    counts: FloatArray
    count_noise: FloatArray
    mean: FloatArray
    privacy_noise: FloatArray
    sampling_noise: FloatArray
    lower: FloatArray
    upper: FloatArray
    lost: BoolArray
    differences: GroupDifferences
    level: float
    noise_known: bool = True
    own_variance: bool = False
    warning: str = ""

    facts = ("by", "level", "means: *", "differences", "warning")

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"means by {self.by}",)

    def _columns(self) -> list[Column]:
        m, k = self.mean.shape
        lost = self.lost.tolist() * m

        def unless_lost(values: FloatArray, word: str) -> list[str]:
            return [word if gone else number(value) for value, gone in zip(values.ravel().tolist(), lost, strict=True)]

        return [
            Column("feature", [name for name in self.features for _ in range(k)], "feature", label=True),
            Column("group", [*self.groups] * m, "group", label=True),
            Column("count", np.tile(self.counts, m), "rows", [f"{count:,.0f}" for count in self.counts.tolist()] * m),
            Column("count_noise", np.tile(self.count_noise, m), "± noise"),
            Column("mean", self.mean.ravel(), "mean", unless_lost(self.mean, LOST)),
            Column("privacy_noise", self.privacy_noise.ravel(), "± privacy", unless_lost(self.privacy_noise, "–")),
            Column("sampling_noise", self.sampling_noise.ravel(), "± sampling", unless_lost(self.sampling_noise, "–")),
            Column("lower", self.lower.ravel(), format_level(self.level), intervals(self.lower, self.upper)),
            Column("upper", self.upper.ravel()),
            Column("lost", lost),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        lost = ", ".join(name for name, gone in zip(self.groups, self.lost, strict=True) if gone)
        differences = self.differences
        n_pairs = len(differences.features) * len(differences.pairs)
        return (
            f"{lost}: number of rows {NOT_DISTINGUISHABLE}, so that nothing is said of the mean" if lost else "",
            ""
            if self.own_variance or not self.noise_known
            else "sampling: groups are taken to vary alike (pooled variance)",
            describe_law(None) if not self.noise_known else "",
            aligned(differences.table()) if 0 < n_pairs <= _SHOWN_DIFFERENCES else "",
            f"{n_pairs} differences of means: see .differences, or --json" if n_pairs > _SHOWN_DIFFERENCES else "",
            self.warning,
        )


@in_floating_point
def group_means(release: Released, by: str, of: Sequence[str] | None = None, *, level: float = 0.95) -> GroupMeans:
    """Means of features over the rows of each group, with intervals and differences: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Released
    by : str
        A categorical or Boolean column.
    of : sequence of str, optional
        Columns or features; default: all that are not of that column.
    level : float
        Confidence of the intervals.

    Returns
    -------
    GroupMeans
        With ``differences``, of every two groups.

    Raises
    ------
    ValueError
        If a name is unknown, ``by`` holds numbers, the level is below 0.5, or no mean was released.

    Notes
    -----
    A mean is a ratio of two noisy sums; its interval is Fieller's (1954), of all means that noise and sampling do not speak
    against, within the public bounds. A difference combines the intervals of its two means and the correlation of their noise
    (Zou & Donner 2008). Sampling: the variance within groups is pooled, but where the schema has the product of the feature
    and the group's level as a feature of its own.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> region = rng.choice(["north", "south"], 50_000)
    >>> table = pa.table({"region": region, "income": rng.uniform(10, 20, 50_000) + 10 * (region == "north")})
    >>> schema = dpm.Schema(dpm.Categorical("region", ["north", "south"]), dpm.Numeric("income", 0, 60))
    >>> found = dpm.release(table, schema, epsilon=1.0, insecure_seed=0).group_means("region", ["income"])
    >>> found.mean.round(), found.differences.verdict
    (array([[25., 15.]]), (('region=north higher',),))
    """
    level = confidence_level(level)
    if release.noisy_sum is None:
        raise InputValueError(f"group means: {NO_MEAN}")
    levels = Levels.of(release, by)
    chosen = chosen_features(release, of)
    if of is None:
        chosen = [feature for feature in chosen if feature not in levels.features]
    if not chosen:
        raise InputValueError(f"there is no feature besides those of {by!r}: nothing has a mean by it")
    sums = [GroupSums.of(release, feature, levels) for feature in chosen]
    counts, result = _repaired(release, levels, chosen)
    bounds = [
        (float(low[index]), float(high[index])) for index in chosen for low, high in [release.schema.feature_bounds]
    ]
    parts = [_intervals(each, *limits, level) for each, limits in zip(sums, bounds, strict=True)]
    lower, upper, privacy, sampling = (np.array([part[index] for part in parts]) for index in range(4))
    lost = _lost(sums[0], level)
    law = release.noise
    mean = result if law is None else np.clip(result, lower, upper)
    differences = [
        _intervals_of_differences(each, low, high) for each, low, high in zip(sums, lower, upper, strict=True)
    ]
    of_pairs = np.array([[a - b for a, b in combinations(row, 2)] for row in mean.tolist()]).reshape(len(mean), -1)
    low_pairs = np.array([low for low, _ in differences]).reshape(of_pairs.shape)
    high_pairs = np.array([high for _, high in differences]).reshape(of_pairs.shape)
    either = np.array([a or b for a, b in combinations(lost.tolist(), 2)], dtype=bool)
    of_pairs = of_pairs if law is None else np.clip(of_pairs, low_pairs, high_pairs)
    names = tuple(release.feature_names[feature] for feature in chosen)
    return GroupMeans(
        by=by,
        features=names,
        groups=levels.names,
        counts=counts,
        count_noise=sums[0].count_noise,
        mean=np.where(lost, np.nan, mean),
        privacy_noise=np.where(lost, np.nan, privacy),
        sampling_noise=np.where(lost, np.nan, sampling),
        lower=lower,
        upper=upper,
        lost=lost,
        differences=GroupDifferences(
            names, levels.names, np.where(either, np.nan, of_pairs), low_pairs, high_pairs, level
        ),
        level=level,
        noise_known=law is not None,
        own_variance=all(bool(each.own.all()) for each in sums),
        warning=cautions_by_code(release),
    )


def _repaired(release: Released, levels: Levels, chosen: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Counts and means of the groups by the repaired moments, counts 0 or above and means within bounds, (k,) and (m, k)."""
    mean, covariance, n = release.mean, release.covariance, float(release.n_rows)
    indices = list(levels.features)
    shares = levels.weights[:, 0] + levels.weights[:, 1:] @ mean[indices]
    crossed = covariance[np.ix_(list(chosen), indices)] @ levels.weights[:, 1:].T
    shift = np.divide(crossed, shares, out=np.zeros_like(crossed), where=shares > 1.0 / (2.0 * n))
    low, high = (bound[list(chosen)][:, None] for bound in release.schema.feature_bounds)
    return np.clip(shares, 0.0, 1.0) * n, np.clip(mean[list(chosen)][:, None] + shift, low, high)


def _lost(sums: GroupSums, level: float) -> BoolArray:
    """Groups whose count is not distinguishable from 0."""
    noise = np.nan_to_num(sums.count_noise, nan=0.0)
    half = deviations_for(level, sums.moments.law, noise**2, np.zeros_like(noise))
    return np.asarray(sums.counts <= np.maximum(half * noise, 0.5))


def _intervals(
    sums: GroupSums, low: float, high: float, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Interval, and the two parts of the deviation, for every group, in the table's units."""
    k = len(sums.counts)
    privacy, sampling = np.sqrt(sums.privacy_variances), np.sqrt(sums.sampling_variances)
    if sums.moments.law is None:
        unknown = np.full(k, np.nan)
        return unknown, unknown, unknown, sampling * sums.unit
    half = deviations_for(level, sums.moments.law, privacy**2, sampling**2)
    lower, upper = np.empty(k), np.empty(k)
    for group in range(k):
        both = [group, k + group]
        a, b = float(sums.sums[group]), float(sums.counts[group])
        covariance = sums.covariance[np.ix_(both, both)][::-1, ::-1]
        extra = float(sums.safe_counts[group] * sums.variances[group])
        ends = fieller_interval(a, b, covariance, extra, float(half[group]))
        lower[group], upper[group] = (sums.location + sums.unit * end for end in ends)
    return np.clip(lower, low, high), np.clip(upper, low, high), privacy * sums.unit, sampling * sums.unit
