"""Means of features by group, their intervals, and how sure their differences are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from dpmoments.analysis.answers import (
    Answer,
    Column,
    aligned,
    confidence_level,
    format_level,
    in_floating_point,
    rounded_cells,
)
from dpmoments.analysis.confidence import deviations_for, fieller_interval
from dpmoments.analysis.functionals import describe_law
from dpmoments.analysis.group_sums import GroupSums, Levels, PresentRows
from dpmoments.analysis.released import Moments, cautions_by_code, chosen_features, needs_mean
from dpmoments.analysis.resolvability import (
    NOT_CLEAR_NOISE,
    format_findings,
    half_widths,
    p_by_inversion,
    sign_verdicts,
)
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair.repair import Repair

# Differences of the means of groups, pair by pair: estimates, intervals, and which mean is higher.


@dataclass(frozen=True, eq=False, repr=False)
class GroupDifferences(Answer):
    """Differences of the means of two groups, pair by pair, in the table's units."""

    features: tuple[str, ...]
    groups: tuple[str, ...]
    # with `lower` and `upper`: (m, p), first group minus second, and its interval, for m features and the p pairs of
    # groups in `itertools.combinations` order
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    # with `sampling_noise`: (m, p), standard deviations of the two parts of its error, to first order
    privacy_noise: FloatArray
    sampling_noise: FloatArray
    # (m, p), of each difference by itself; below 0.05 exactly when 0 is outside its 95 % interval. NaN if the noise is
    # unknown.
    p_value: FloatArray
    level: float
    cutoff: float | None = None  # largest p-value of a clear sign; None: by Holm's correction over this table

    facts = ("level", "**: *")

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The two groups of each difference."""
        return tuple(combinations(self.groups, 2))

    @cached_property
    def verdict(self) -> tuple[tuple[str, ...], ...]:
        """Conclusion for each difference, feature by feature."""
        # The chance that any conclusion of the table is false is at most 5 %.
        signs = sign_verdicts(
            np.sign(self.lower + self.upper).ravel(),
            self.p_value.ravel(),
            self.privacy_noise.ravel() ** 2,
            self.sampling_noise.ravel() ** 2,
            np.isfinite(self.difference.ravel()),
            cutoff=self.cutoff,
        )
        higher = {"positive": 0, "negative": 1}
        named = [
            f"{pair[higher[sign]]} higher" if sign in higher else sign
            for pair, sign in zip(self.pairs * len(self.features), signs, strict=True)
        ]
        p = len(self.pairs)
        return tuple(tuple(named[row * p : (row + 1) * p]) for row in range(len(self.features)))

    @property
    def finding(self) -> str:
        """The number of differences that are clear, as a sentence."""
        return format_findings([word for row in self.verdict for word in row], "differences", "clear")

    def _columns(self) -> list[Column]:
        pairs = self.pairs * len(self.features)
        names = [name for name in self.features for _ in self.pairs]
        errors = np.hypot(self.privacy_noise, self.sampling_noise)
        return [
            Column("feature", names, "feature", label=True),
            Column("group", [one for one, _ in pairs], label=True),
            Column("other", [other for _, other in pairs], label=True),
            Column(head="difference of means", cells=[f"{one} − {other}" for one, other in pairs]),
            Column("difference", self.difference.ravel(), "estimate", errors=errors),
            Column("lower", self.lower.ravel(), format_level(self.level), errors=errors, upper=self.upper),
            Column("upper", self.upper.ravel()),
            Column("p_value", self.p_value.ravel()),
            Column("verdict", [word for words in self.verdict for word in words], "verdict"),
        ]


def _ratio_intervals(
    sums: GroupSums, group: IntegerArray, half_width: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Return Fieller's intervals of some groups' means, in original units."""
    # They are within the public bounds.
    k, covariance = len(sums.counts), sums.covariance
    parts = covariance[k + group, k + group], covariance[group, k + group], covariance[group, group]
    extra = sums.safe_counts[group] ** 2 * sums.sampling_variances[group]
    ends = fieller_interval(sums.sums[group], sums.counts[group], parts, extra, half_width)
    low, high = (np.clip(sums.location + sums.unit * end, *bounds) for end in ends)
    return low, high


def _differences(sums: GroupSums, bounds: tuple[float, float], level: float) -> tuple[FloatArray, ...]:
    """Return ends, noise, sampling error and p-value of the difference of every pair of groups."""
    # It combines the intervals of two means and the correlation of their noise (Zou & Donner 2008).
    one, other = np.array(list(combinations(range(len(sums.counts)), 2)), dtype=np.intp).reshape(-1, 2).T
    privacy, sampling = sums.covariance_of_means, sums.sampling_variances
    of_mean = np.diag(privacy)
    total = of_mean + sampling
    parts = (
        np.maximum(of_mean[one] + of_mean[other] - 2.0 * privacy[one, other], 0.0),
        sampling[one] + sampling[other],
    )
    noise = sums.moments.law
    if noise is None:
        unknown = np.full(len(one), np.nan)
        return unknown, unknown, unknown, np.sqrt(parts[1]) * sums.unit, unknown
    product = np.sqrt(total[one] * total[other])
    shared = np.divide(privacy[one, other], product, out=np.zeros_like(product), where=product > 0.0).clip(-1.0, 1.0)
    middle = sums.location + sums.unit * sums.sums / sums.safe_counts
    share = np.divide(of_mean, total, out=np.zeros_like(total), where=total > 0.0)

    def at(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the intervals for these half-widths of the two means."""
        ends = [_ratio_intervals(sums, group, half, bounds) for group, half in ((one, first), (other, second))]
        (low, high), (low_other, high_other) = ends
        a, b = np.clip(middle[one], low, high), np.clip(middle[other], low_other, high_other)
        return (
            a - b - _combined(a - low, high_other - b, shared),
            a - b + _combined(high - a, b - low_other, shared),
        )

    half_width = half_widths(noise)

    def excludes_zero(z: FloatArray) -> BoolArray:
        lower, upper = at(half_width(z, share[one]), half_width(z, share[other]))
        return (lower > 0.0) | (upper < 0.0)

    half = deviations_for(level, noise, of_mean, sampling)
    lower, upper = at(half[one], half[other])
    deviations = [np.sqrt(part) * sums.unit for part in parts]
    return lower, upper, *deviations, p_by_inversion(excludes_zero, one.shape)


def _combined(first: FloatArray, second: FloatArray, correlation: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(0.0, first**2 + second**2 - 2.0 * correlation * first * second))


_OF_MISSING = " of complete columns, and others whose noise is over 3 times their sampling error,"
_REPAIRED_FROM = 3.0
"""Ratio of noise to sampling error from which means with missing values are repaired.

Measured: repair takes a quarter to a third off their error there, and adds to it where noise is small.
"""
_SHOWN_DIFFERENCES = 30
"""Max number of differences for which the text of the means ends with them."""
LOST = "lost in noise"


@dataclass(frozen=True, eq=False, repr=False)
class GroupMeans(Answer):
    """Means of m features over the rows of k groups, in the table's units.

    Attributes
    ----------
    by : str
    features, groups : tuple of str
    counts : integer ndarray of shape (k,)
        Rows of each group, 0 or above: the margins of a cross table, whose columns have a level in every row.
    count_noise : ndarray of shape (k,)
        Noise SD of the counts, before repair; NaN if not known.
    mean : ndarray of shape (m, k)
        Within the public bounds, and within the interval; NaN for a group with a noise-dominated count.
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
        True if every group's own variance is in the release; else equal variances are assumed.
    some_missing : bool
        True if values of the features or of the column of the groups can be missing.
    repaired : bool
        True if means are after repair. Those of features or groups with missing values never are.
    warning : str
    """

    by: str
    features: tuple[str, ...]
    groups: tuple[str, ...]
    counts: IntegerArray
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
    some_missing: bool = False
    repaired: bool = False
    warning: str = ""

    facts = ("by", "level", "means: *", "differences", "warning")

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"means by {self.by}",)

    def _columns(self) -> list[Column]:
        m, k = self.mean.shape
        lost = self.lost.tolist() * m

        errors = np.hypot(self.privacy_noise, self.sampling_noise)
        widths = np.where(np.isfinite(errors), errors, self.upper - self.lower)

        def unless_lost(values: FloatArray, errors: FloatArray, word: str) -> list[str]:
            return [word if gone else cell for cell, gone in zip(rounded_cells(values, errors), lost, strict=True)]

        return [
            Column("feature", [name for name in self.features for _ in range(k)], "feature", label=True),
            Column("group", [*self.groups] * m, "group", label=True),
            Column("count", np.tile(self.counts, m), "rows", [f"{count:,}" for count in self.counts.tolist()] * m),
            Column("count_noise", np.tile(self.count_noise, m), "± noise", rounded_cells(*[self.count_noise] * 2) * m),
            Column("mean", self.mean.ravel(), "mean", unless_lost(self.mean, errors, LOST)),
            *(
                Column(f"{part}_noise", values.ravel(), f"± {part}", unless_lost(values, values, "–"))
                for part, values in (("privacy", self.privacy_noise), ("sampling", self.sampling_noise))
            ),
            Column("lower", self.lower.ravel(), format_level(self.level), errors=widths, upper=self.upper),
            Column("upper", self.upper.ravel()),
            Column("lost", lost),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        lost = ", ".join(name for name, gone in zip(self.groups, self.lost, strict=True) if gone)
        differences = self.differences
        n_pairs = len(differences.features) * len(differences.pairs)
        return (
            f"{lost}: number of rows {NOT_CLEAR_NOISE}, so that nothing is said of the mean" if lost else "",
            ""
            if self.own_variance or not self.noise_known
            else "sampling: equal group variances are assumed (pooled variance)",
            describe_law(None) if not self.noise_known else "",
            f"means{_OF_MISSING if self.some_missing else ''} are after repair, ± noise and intervals before it"
            if self.repaired and self.noise_known
            else "",
            "rows: those of the group; a mean is of those with both values" if self.some_missing else "",
            differences.finding if n_pairs else "",
            aligned(differences.table()) if 0 < n_pairs <= _SHOWN_DIFFERENCES else "",
            f"{n_pairs} differences of means: see .differences, or --json" if n_pairs > _SHOWN_DIFFERENCES else "",
            self.warning,
        )


@in_floating_point
def group_means(release: Moments, by: str, of: Sequence[str] | None = None, *, level: float = 0.95) -> GroupMeans:
    """Compute means over the rows of each group, with intervals and differences.

    Free of privacy cost.

    Parameters
    ----------
    release : Moments
    by : str
        A categorical or Boolean column.
    of : sequence of str, optional
        Columns or features; default: all except those of that column.
    level : float
        Confidence of the intervals.

    Returns
    -------
    GroupMeans
        Its ``differences`` compare every two groups.

    Raises
    ------
    ValueError
        If a name is unknown, ``by`` holds numbers, the level is below 0.5, or no mean was released.

    Notes
    -----
    A mean is a ratio of two noisy sums; its interval is Fieller's (1954), all means consistent with noise and sampling within
    the public bounds. A difference combines the intervals of its two means and the correlation of their noise
    (Zou & Donner 2008). Sampling: the variance within groups is pooled, unless the schema has the product of the
    feature and the group's level as a feature.

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
        raise needs_mean("group means")
    levels = Levels.of(release, by)
    chosen = chosen_features(release, of)
    if of is None:
        chosen = [feature for feature in chosen if feature not in levels.features]
    if not chosen:
        raise InputValueError(f"the release has only the features of '{by}': nothing else has a mean by it")
    sums = [GroupSums.of(release, feature, levels) for feature in chosen]
    result = _repaired_means(release, levels, chosen)
    bounds = [
        (float(low[index]), float(high[index])) for index in chosen for low, high in [release.schema.feature_bounds]
    ]
    parts = [_intervals(each, *limits, level) for each, limits in zip(sums, bounds, strict=True)]
    lower, upper, privacy, sampling = (np.array([part[index] for part in parts]) for index in range(4))
    law, repaired = release.noise, release.repair is not Repair.NONE
    kept = (privacy > _REPAIRED_FROM * sampling) & repaired
    of_rows, count_noise = sums[0].counts, sums[0].count_noise
    if (present := PresentRows.of(release, levels.features[0], *chosen)) is not None:
        of_rows, count_noise = present.counts(present.of_groups(levels.weights, levels.features))
        # repaired means are of other rows than their errors: worth it only where noise is far larger than sampling
        for row, each, limits, noisy in zip(result, sums, bounds, kept, strict=True):
            row[:] = np.where(noisy, row, np.clip(each.means, *limits)) if each.some_missing else row
    lost = _lost(of_rows, count_noise, law, level)
    mean = result if law is None else np.clip(result, lower, upper)
    differences = [_differences(each, limits, level) for each, limits in zip(sums, bounds, strict=True)]
    of_pairs = np.array([[a - b for a, b in combinations(row, 2)] for row in mean.tolist()]).reshape(len(mean), -1)
    low_pairs, high_pairs, privacy_pairs, sampling_pairs, p_pairs = (
        np.array(part).reshape(of_pairs.shape) for part in zip(*differences, strict=True)
    )
    either = np.array([a or b for a, b in combinations(lost.tolist(), 2)], dtype=bool)
    of_pairs = of_pairs if law is None else np.clip(of_pairs, low_pairs, high_pairs)
    names = tuple(release.feature_names[feature] for feature in chosen)
    return GroupMeans(
        by=by,
        features=names,
        groups=levels.names,
        counts=levels.row_counts(release),
        count_noise=count_noise,
        some_missing=any(each.some_missing for each in sums),
        repaired=repaired and any(not each.some_missing or row.any() for each, row in zip(sums, kept, strict=True)),
        mean=np.where(lost, np.nan, mean),
        privacy_noise=np.where(lost, np.nan, privacy),
        sampling_noise=np.where(lost, np.nan, sampling),
        lower=lower,
        upper=upper,
        lost=lost,
        differences=GroupDifferences(
            names,
            levels.names,
            np.where(either, np.nan, of_pairs),
            low_pairs,
            high_pairs,
            privacy_pairs,
            sampling_pairs,
            p_pairs,
            level,
        ),
        level=level,
        noise_known=law is not None,
        own_variance=all(bool(each.own.all()) for each in sums),
        warning=cautions_by_code(release),
    )


def _repaired_means(release: Moments, levels: Levels, chosen: Sequence[int]) -> FloatArray:
    """Return the repaired means of the groups within their bounds, shape (m, k)."""
    mean, covariance, n = release.mean, release.covariance, float(release.n_rows)
    indices = list(levels.features)
    shares = levels.weights[:, 0] + levels.weights[:, 1:] @ mean[indices]
    crossed = covariance[np.ix_(list(chosen), indices)] @ levels.weights[:, 1:].T
    shift = np.divide(crossed, shares, out=np.zeros_like(crossed), where=shares > 1.0 / (2.0 * n))
    low, high = (bound[list(chosen)][:, None] for bound in release.schema.feature_bounds)
    return np.asarray(np.clip(mean[list(chosen)][:, None] + shift, low, high))


def _lost(counts: FloatArray, count_noise: FloatArray, law: NoiseLaw | None, level: float) -> BoolArray:
    """Return a mask of groups whose count is not distinguishable from 0."""
    noise = np.nan_to_num(count_noise, nan=0.0)
    half = deviations_for(level, law, noise**2, np.zeros_like(noise))
    return np.asarray(counts <= np.maximum(half * noise, 0.5))


def _intervals(
    sums: GroupSums, low: float, high: float, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the interval and both parts of its SD for every group, in original units."""
    k = len(sums.counts)
    privacy, sampling = np.sqrt(np.diag(sums.covariance_of_means)), np.sqrt(sums.sampling_variances)
    if sums.moments.law is None:
        unknown = np.full(k, np.nan)
        return unknown, unknown, unknown, sampling * sums.unit
    half = deviations_for(level, sums.moments.law, privacy**2, sampling**2)
    lower, upper = _ratio_intervals(sums, np.arange(k), half, (low, high))
    return lower, upper, privacy * sums.unit, sampling * sums.unit
