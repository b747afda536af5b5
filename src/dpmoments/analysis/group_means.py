"""Groups of a column: counts, sums, means and differences, with their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, lru_cache
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
    rounded_cells,
    step_errors,
)
from dpmoments.analysis.available_cases import Presence
from dpmoments.analysis.confidence import (
    NOT_CLEAR_NOISE,
    deviations_for,
    estimable,
    fieller_interval,
    format_findings,
    half_widths,
    holding,
    holds_among_all,
    p_by_inversion,
    sign_verdicts,
    verdict_columns,
    within_bounds,
)
from dpmoments.analysis.functionals import (
    FeatureVariances,
    LocalMoments,
    bilinear,
    comparisons_of,
    describe_law,
    indicator_mask,
)
from dpmoments.analysis.released import (
    Moments,
    cautions_by_code,
    chosen_features,
    columns_with_indices,
    dates_in,
    needs_mean,
)
from dpmoments.base.errors import InputTypeError, InputValueError, listed, meant
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, bordered
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.repair import Repair
from dpmoments.schema.columns import Categorical
from dpmoments.schema.constraints import grouping_column
from dpmoments.schema.dates import Date


@dataclass(frozen=True, eq=False)
class Levels:
    """Groups of a categorical or Boolean column: sums of features that count their rows."""

    column: str
    names: tuple[str, ...]  # `region=north`, …; of a Boolean `smoker=false` and `smoker=true`
    features: list[int]  # the column's features in the release
    # (k, 1 + number of features), weights[g] · (1, a row's features) is 1 if the row is in group g, else 0
    weights: FloatArray

    @classmethod
    def of(cls, release: Moments, name: str) -> Levels:
        """Return the groups of a column."""
        column = grouping_column(release.schema, name)
        [features] = [list(own) for each, own in columns_with_indices(release) if each.name == name]
        if isinstance(column, Categorical):
            return cls(name, column.feature_names, features, np.eye(len(features) + 1)[1:])
        return cls(name, (f"{name}=false", f"{name}=true"), features, np.array([[1.0, -1.0], [0.0, 1.0]]))

    def chosen(self, names: Sequence[str]) -> Levels:
        """Select groups by full name or by level."""
        if isinstance(names, str):
            raise InputTypeError("groups are a list of names, not one string")
        full = [name if name in self.names else f"{self.column}={name}" for name in map(str, names)]
        if unknown := [name for name in full if name not in self.names]:
            absent = listed(name.removeprefix(f"{self.column}=") for name in unknown)
            advice = f"Its levels are {listed(self.names)}."
            raise InputValueError(f"'{self.column}' has no level {absent}.{meant(unknown[0], self.names, advice)}")
        if len(set(full)) < len(full):
            raise InputValueError("a level is named twice")
        indices = [index for index, name in enumerate(self.names) if name in full]
        return Levels(self.column, tuple(self.names[index] for index in indices), self.features, self.weights[indices])

    def noisy_counts(self, release: Moments, *others: int) -> tuple[FloatArray, FloatArray]:
        """Return the rows of each group as released, and the SDs of their noise, each (k,)."""
        if (present := PresentRows.of(release, self.features[0], *others)) is not None:
            return present.counts(present.of_groups(self))
        moments = LocalMoments.of(release, self.features)
        indices = np.array([0, *(index + 1 for index in self.features)])
        weights = bilinear(self.weights, np.eye(len(indices))[0])
        released = np.einsum("pij,ij->p", weights, moments.moments[np.ix_(indices, indices)])
        return released, np.sqrt(moments.variances(np.tile(indices, (len(weights), 1)), weights))

    def row_counts(self, release: Moments) -> IntegerArray:
        """Return the rows of each group near the repaired ones, shape (k,)."""
        # Only rows that have a value of the column are counted.
        rows = release.sample_size * (1.0 if release.present is None else float(release.present[self.features[0]]))
        return whole_counts(np.clip(self.shares(release.mean), 0.0, 1.0) * rows, release.sample_size)

    def shares(self, mean: FloatArray) -> FloatArray:
        """Return the share of the rows in each group at these means of features, shape (k,)."""
        return self.weights[:, 0] + self.weights[:, 1:] @ mean[self.features]

    def own_values(self, release: Moments, feature: str) -> list[int | None]:
        """Find for each group the product of ``feature`` and its level, None if not in the schema."""
        names = release.feature_names
        result: list[int | None] = []
        for name in self.names:
            of_level = self.column if name == f"{self.column}=true" and len(self.features) == 1 else name
            both = [f"{feature}:{of_level}", f"{of_level}:{feature}"]
            result.append(next((names.index(product) for product in both if product in names), None))
        return result


def whole_counts(counts: FloatArray, most: int) -> IntegerArray:
    """Round counts ≥ 0 to whole numbers by largest remainders.

    Their sum is the rounded sum, at most ``most``.

    >>> whole_counts(np.array([1.3, 2.6, 3.1]), 10).tolist()
    [1, 3, 3]
    """
    total = float(counts.sum())
    wanted = min(round(total), most)
    scaled = counts * (wanted / total) if total > 0.0 else counts
    whole = np.floor(scaled).astype(np.int64)
    whole[np.argsort(whole - scaled, kind="stable")[: wanted - int(whole.sum())]] += 1
    return whole


_OWN_VARIANCE = 2.0
"""Min size of a group's own second moment, in SDs of its noise, for it to be used."""


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of one feature y over k groups, unrepaired.

    y about its released mean, in units of the encoding.
    """

    # with `sums`: (k,), rows of each group as released (may be negative), and Σ y over them; only rows that have both
    # values
    counts: FloatArray
    sums: FloatArray
    covariance: FloatArray  # (2k, 2k), noise covariance of the counts, then the sums; NaN if not known
    variances: FloatArray  # (k,), variance of y within each group; 0 or above
    own: BoolArray  # (k,), true for a group's own variance, False for the pooled one
    total_variance: float  # variance of y over all rows; 0 or above
    total_noise: float  # its noise SD; NaN if not known
    location: float  # with `unit`: y = (value − location)/unit
    unit: float
    moments: LocalMoments
    effects: FloatArray  # (k,), factors of the sampling variances by weights
    some_missing: bool = False  # true if values of y or of the column of the groups can be missing

    @classmethod
    def of(cls, release: Moments, feature: int, levels: Levels) -> GroupSums:
        """Return the sums of a feature over groups."""
        if feature in levels.features:
            raise InputValueError(
                f"'{release.feature_names[feature]}' is of the column '{levels.column}' that makes the groups: name "
                "another"
            )
        products = levels.own_values(release, release.feature_names[feature])
        as_they_are = [*levels.features, *(product for product in products if product is not None)]
        moments = LocalMoments.of(release, as_they_are)
        indices = np.array([0, *(index + 1 for index in levels.features), feature + 1])
        k = len(levels.names)
        group = np.concatenate([levels.weights, np.zeros((k, 1))], axis=1)
        constant, value = np.eye(len(indices))[0], np.eye(len(indices))[-1]
        weights = np.concatenate([bilinear(group, constant), bilinear(group, value)])
        released = np.einsum("pij,ij->p", weights, moments.moments[np.ix_(indices, indices)])
        counts, sums = released[:k], released[k:]
        covariance = moments.covariance(indices, weights)
        total, total_noise = _total_variance(release, feature)
        # for variances, means are shrunk to the range that the total variance allows
        most = np.sqrt(total * np.maximum(counts.sum(), 1.0) / np.maximum(counts, 1.0))
        means = np.clip(sums / np.maximum(counts, 1.0), -most, most)
        # what the noise alone makes groups differ by is not between them
        by_noise = np.diag(np.nan_to_num(covariance, nan=0.0))[k:] / np.maximum(counts, 1.0)
        between = max(0.0, float(np.sum(np.maximum(counts, 0.0) * means**2) - by_noise.sum())) / moments.n_rows
        variances, own = np.full(k, max(0.0, total - between)), np.zeros(k, dtype=bool)
        location, unit = float(moments.location[feature]), float(moments.unit[feature])
        if indicator_mask(release)[feature]:
            share = np.clip(location + unit * means, 0.0, 1.0)
            share = (share * np.maximum(counts, 0.0) + 0.5) / (np.maximum(counts, 0.0) + 1.0)
            variances, own = share * (1.0 - share) / unit**2, np.ones(k, dtype=bool)
        elif any(product is not None for product in products):
            _put_own(moments, levels, feature, products, means, counts, variances, own)
        present = PresentRows.of(release, levels.features[0], feature)
        if present is not None and release.both_present is not None:
            rows = max(float(release.both_present[levels.features[0], feature]) * moments.n_rows, 1.0)
            moments = replace(moments, n_rows=rows)
            terms = np.tile(present.of_groups(levels), (2, 1))
            of_row = np.repeat([present.presence(feature), present.value(feature, location, unit)], k, axis=0)
            released, covariance = present.totals(terms, of_row)
            counts, sums = released[:k], released[k:]
        effects = np.ones(k)
        if release.weighting is not None:
            ratios = release.weighting.of_groups(levels.weights, levels.features, release.mean)
            effects = ratios * release.weighting.stated[feature]
        return cls(
            counts,
            sums,
            covariance,
            variances,
            own,
            total,
            total_noise,
            location,
            unit,
            moments,
            effects,
            present is not None,
        )

    @property
    def means(self) -> FloatArray:
        """The group means Σy/count, in original units."""
        return self.location + self.unit * self.sums / self.safe_counts

    @cached_property
    def safe_counts(self) -> FloatArray:
        """The counts, 1 at least."""
        return np.maximum(self.counts, 1.0)

    @property
    def count_noise(self) -> FloatArray:
        """Standard deviation of the noise on each count."""
        return np.sqrt(np.diag(self.covariance)[: len(self.counts)])

    @property
    def covariance_of_means(self) -> FloatArray:
        """Noise covariance of the group means Σy/count, to first order, shape (k, k)."""
        means = self.sums / self.safe_counts
        gradient = np.hstack([np.diag(-means / self.safe_counts), np.diag(1.0 / self.safe_counts)])
        return gradient @ self.covariance @ gradient.T

    @property
    def present(self) -> BoolArray:
        """Mask of the groups that have rows, as far as noise lets it be seen, shape (k,)."""
        return self.counts >= np.maximum(0.5, np.nan_to_num(self.count_noise, nan=0.0))

    @cached_property
    def sampling_degrees(self) -> FloatArray:
        """Degrees of freedom of the groups' variances, shape (k,): n_g − 1, or n − groups if pooled."""
        own = self.safe_counts / self.moments.rows_per_unit - 1.0
        return np.maximum(np.where(self.own, own, self.moments.independent_rows - self.present.sum()), 1.0)

    @cached_property
    def sampling_variances(self) -> FloatArray:
        """Sampling variances of the group means, shape (k,)."""
        # Variances are over all rows: unbiased ones are larger by n over the degrees; at most the variances.
        independent = self.safe_counts / self.moments.rows_per_unit
        over = np.where(self.own, independent, self.moments.independent_rows)
        return self.effects * self.variances / np.maximum(independent * self.sampling_degrees / over, 1.0)


def _total_variance(release: Moments, feature: int) -> tuple[float, float]:
    """Return the variance over all rows and its noise SD; repaired if noise dominates it."""
    moments = LocalMoments.of(release)
    every = FeatureVariances.of(release, moments)
    result, noise = float(every.values[feature]), float(every.noise(moments)[feature])
    if result <= _OWN_VARIANCE * np.nan_to_num(noise, nan=0.0):
        return max(0.0, float(release.unit_ball_covariance[feature, feature])), noise / moments.n_rows
    return result / moments.n_rows, noise / moments.n_rows


def _put_own(
    moments: LocalMoments,
    levels: Levels,
    feature: int,
    products: list[int | None],
    means: FloatArray,
    counts: FloatArray,
    variances: FloatArray,
    own: BoolArray,
) -> None:
    """Replace the pooled variance by the group's own if Σy² is the sum of a product feature."""
    location, unit = moments.location[feature], moments.unit[feature]
    whole = moments.moments[feature + 1, feature + 1] * unit**2
    for index, product in enumerate(products):
        if product is not None:
            # about the mean of all rows, from values as they are: Σ(v − m)² = Σv² − 2mΣv + m²·count
            of_level = moments.moments
            total, sum_of = of_level[product + 1, product + 1], of_level[0, product + 1]
            square = (total - 2.0 * location * sum_of + location**2 * counts[index]) / unit**2
            weight = np.zeros((1, 2, 2))
            weight[0] = [[location**2, -location], [-location, 1.0]]
            weight /= unit**2
            noise = float(np.sqrt(moments.variances(np.array([[0, product + 1]]), weight)[0]))
        elif len(products) == 2 and len(levels.features) == 1 and products[1] is not None and index == 0:
            other = products[1]
            total, sum_of = moments.moments[other + 1, other + 1], moments.moments[0, other + 1]
            of_true = total - 2.0 * location * sum_of + location**2 * counts[1]
            square = (whole - of_true) / unit**2
            noise = float(np.sqrt(moments.cell_variances(np.array([feature]))[0, 0]))
        else:
            continue
        if counts[index] > 0.0 and square > _OWN_VARIANCE * np.nan_to_num(noise, nan=0.0):
            result = square / counts[index] - means[index] ** 2
            if result > 0.0:
                variances[index], own[index] = result, True


@dataclass(frozen=True, eq=False)
class PresentRows:
    """Sums over rows of products of presences and values.

    A *term* is a combination of t = (1, presence of each feature, value of each feature), values in the table's units and 0
    where they are missing. The sum of a product of two terms is linear in the moments as drawn.
    """

    groups: IntegerArray  # (d,), as in `Presence`
    # of each pooled release: t as a combination of what was drawn, its moments, and the noise on these
    parts: tuple[tuple[FloatArray, FloatArray, NoiseLaw | None], ...]

    @classmethod
    def of(cls, release: Moments, *features: int) -> PresentRows | None:
        """Return them if one of these features can be missing, else None."""
        if release.present is None:
            return None
        every = cls._of(release)
        return every if every.groups[list(features)].any() else None

    @staticmethod
    @lru_cache(maxsize=4)
    def _of(release: Moments) -> PresentRows:
        """Return those of a release, which its features share."""
        parts, groups = [], np.zeros(0, dtype=int)
        for drawn in release.drawn_parts:
            assert drawn.noisy_sum is not None
            assert drawn.noisy_count is not None
            presence = Presence.of(drawn.schema, drawn.center)
            groups, d = presence.groups, len(presence.groups)
            there = presence.indicators[groups]
            encoding = drawn.encoding
            values = encoding.offset[:d, None] * there + encoding.scale[:d, None] * presence.values
            moments = bordered(drawn.noisy_count, drawn.noisy_sum, drawn.noisy_gram)
            parts.append((np.vstack([presence.indicators[:1], there, values]), moments, drawn.noise))
        return PresentRows(groups, tuple(parts))

    def presence(self, feature: int) -> FloatArray:
        """Return the term that is 1 where the feature is present, else 0."""
        return np.asarray(np.eye(1, 2 * len(self.groups) + 1, 1 + feature)[0])

    def value(self, feature: int, location: float, unit: float) -> FloatArray:
        """Return the term (value − location)/unit, 0 where the value is missing."""
        of_value = np.eye(1, 2 * len(self.groups) + 1, 1 + len(self.groups) + feature)[0]
        return np.asarray((of_value - location * self.presence(feature)) / unit)

    def of_groups(self, levels: Levels) -> FloatArray:
        """Return the terms that are 1 in the rows of each group, else 0."""
        result = np.outer(levels.weights[:, 0], self.presence(levels.features[0]))
        for weight, feature in zip(levels.weights[:, 1:].T, levels.features, strict=True):
            result += np.outer(weight, self.value(feature, 0.0, 1.0))
        return result

    def totals(self, first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sums of products of P terms with P others, and the covariance of their noise."""
        # The covariance is NaN if the noise is not known.
        size = len(first)
        result, covariance = np.zeros(size), np.zeros((size, size))
        for combination, moments, law in self.parts:
            one, other = first @ combination, second @ combination
            result += np.einsum("pi,ij,pj->p", one, moments, other)
            used = np.flatnonzero(one.any(axis=0) | other.any(axis=0))
            used = used if used[0] == 0 else np.append(0, used)
            if law is None:
                covariance += np.nan
            else:
                covariance += law.covariance(used, bilinear(one[:, used], other[:, used]))
        return result, covariance

    def counts(self, groups: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the rows of each group as released, and the standard deviations of their noise."""
        constant = np.eye(1, 2 * len(self.groups) + 1)[0]  # the term that is 1 in every row
        result, covariance = self.totals(groups, np.tile(constant, (len(groups), 1)))
        return result, np.sqrt(np.diag(covariance))


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
    _: KW_ONLY
    # largest p/`counts_as` of a difference that holds among all of a page; None: by Holm's correction over this table
    cutoff: float | None = None
    of_features: FloatArray  # (m,), comparisons that each feature counts as
    dates: tuple[Date | None, ...]  # (m,), the column of each feature if it holds dates

    facts = ("level", "**: *")

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The two groups of each difference."""
        return tuple(combinations(self.groups, 2))

    @cached_property
    def verdict(self) -> tuple[tuple[str, ...], ...]:
        """Verdict on each difference by its own interval, feature by feature."""
        signs = sign_verdicts(
            np.sign(self.lower + self.upper).ravel(),
            self.p_value.ravel(),
            self.privacy_noise.ravel() ** 2,
            self.sampling_noise.ravel() ** 2,
            np.isfinite(self.difference.ravel()),
            self.level,
        )
        higher = {"positive": 0, "negative": 1}
        named = [
            f"{pair[higher[sign]]} higher" if sign in higher else sign
            for pair, sign in zip(self.pairs * len(self.features), signs, strict=True)
        ]
        p = len(self.pairs)
        return tuple(tuple(named[row * p : (row + 1) * p]) for row in range(len(self.features)))

    @property
    def comparisons(self) -> tuple[FloatArray, FloatArray]:
        """The p-values of all differences, and the comparisons that each counts as, shape (m · p,)."""
        # all pairs of k groups are k − 1
        return self.p_value.ravel(), np.repeat(self.of_features * 2.0 / len(self.groups), len(self.pairs))

    @property
    def holds_among_all(self) -> BoolArray:
        """True for differences that also hold among all comparisons of the page, shape (m, p).

        The chance that any of them is false is at most 1 − ``level``.
        """
        held = holds_among_all(*self.comparisons, self.level, self.cutoff)
        return held.reshape(self.p_value.shape)

    @property
    def finding(self) -> str:
        """The number of differences that hold among all, as a sentence."""
        return format_findings(self.holds_among_all.ravel(), "differences", self.level)

    @property
    def remarks(self) -> tuple[str, ...]:
        if not (self.privacy_noise > 0.5 * self.sampling_noise).any():
            return ()
        return (
            "Intervals of differences combine those of two means; ols() inverts one test, and its ends differ slightly.",
        )

    def _columns(self) -> list[Column]:
        pairs = self.pairs * len(self.features)
        names = [name for name in self.features for _ in self.pairs]
        errors = step_errors(np.hypot(self.privacy_noise, self.sampling_noise), self.lower, self.upper)
        dates = [date for date in self.dates for _ in self.pairs]
        ends, difference = intervals(self.lower, self.upper, errors), self.difference.ravel()
        return [
            Column("feature", names, "feature", label=True),
            Column("group", [one for one, _ in pairs], label=True),
            Column("other", [other for _, other in pairs], label=True),
            Column(head="difference of means", cells=[f"{one} − {other}" for one, other in pairs]),
            Column("difference", difference, "estimate", rounded_cells(difference, errors), dates=dates),
            Column("lower", self.lower.ravel(), format_level(self.level), ends, dates=dates),
            Column("upper", self.upper.ravel()),
            Column("p_value", self.p_value.ravel()),
            *verdict_columns([word for words in self.verdict for word in words], self.holds_among_all.ravel()),
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
    low, high = (sums.location + sums.unit * end for end in ends)
    return within_bounds(low, high, *bounds)


def differences_of_means(
    sums: GroupSums,
    bounds: tuple[float, float],
    level: float,
    degrees: FloatArray | None = None,
    *,
    tested: bool = True,
) -> tuple[FloatArray, ...]:
    """Return ends, noise, sampling error and p-value of the difference of every pair of groups."""
    # It combines the intervals of two means and the correlation of their noise (Zou & Donner 2008).
    one, other = np.triu_indices(len(sums.counts), 1)
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
        # what noise two means have in common says nothing of an end that is a bound
        cut = (np.minimum(low, low_other) <= bounds[0]) | (np.maximum(high, high_other) >= bounds[1])
        common = np.where(cut, np.minimum(shared, 0.0), shared)
        return (
            a - b - _combined(a - low, high_other - b, common),
            a - b + _combined(high - a, b - low_other, common),
        )

    degrees = sums.sampling_degrees if degrees is None else degrees
    half = deviations_for(level, noise, of_mean, sampling, degrees)
    lower, upper = at(half[one], half[other])
    deviations = [np.sqrt(part) * sums.unit for part in parts]
    if not tested:
        return lower, upper, *deviations, np.full(one.shape, np.nan)
    half_width = half_widths(noise)

    def excludes_zero(z: FloatArray) -> BoolArray:
        lower, upper = at(*(half_width(z, share[group], degrees[group]) for group in (one, other)))
        return (lower > 0.0) | (upper < 0.0)

    return lower, upper, *deviations, p_by_inversion(excludes_zero, one.shape)


def _combined(first: FloatArray, second: FloatArray, correlation: FloatArray) -> FloatArray:
    bounded = np.isfinite(first) & np.isfinite(second)
    shared = correlation * np.where(bounded, first, 0.0) * np.where(bounded, second, 0.0)
    return np.sqrt(np.maximum(0.0, first**2 + second**2 - 2.0 * shared))


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
        Within the public bounds, and within the interval; NaN for a group with a noise-dominated count, and where noise
        makes the interval half of the bounds or longer.
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
        lost, privacy, sampling = self.lost.tolist() * m, self.privacy_noise.ravel(), self.sampling_noise.ravel()
        errors = np.hypot(privacy, sampling)
        widths = step_errors(np.where(np.isfinite(errors), errors, np.inf), self.lower, self.upper)
        unknown = np.isnan(self.mean.ravel()).tolist()
        means = [LOST if gone else cell for cell, gone in zip(rounded_cells(self.mean, widths), unknown, strict=True)]
        dates = [date for date in self.differences.dates for _ in range(k)]
        low, high = self.lower.ravel(), self.upper.ravel()
        return [
            Column("feature", [name for name in self.features for _ in range(k)], "feature", label=True),
            Column("group", [*self.groups] * m, "group", label=True),
            Column("count", np.tile(self.counts, m), "rows", [f"{count:,}" for count in self.counts.tolist()] * m),
            Column("count_noise", np.tile(self.count_noise, m), "± noise", rounded_cells(*[self.count_noise] * 2) * m),
            Column("mean", self.mean.ravel(), "mean", means, errors=widths, dates=dates),
            Column("privacy_noise", privacy, "± privacy", rounded_cells(privacy, privacy), dates=dates),
            Column("sampling_noise", sampling, "± sampling", rounded_cells(sampling, sampling), dates=dates),
            Column("lower", low, format_level(self.level), errors=widths, upper=high, dates=dates),
            Column("upper", high),
            Column("lost", lost),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        lost = ", ".join(name for name, gone in zip(self.groups, self.lost, strict=True) if gone)
        differences = self.differences
        n_pairs = len(differences.features) * len(differences.pairs)
        known, more = self.noise_known, n_pairs > _SHOWN_DIFFERENCES
        repaired = f"means{_OF_MISSING if self.some_missing else ''} are after repair, ± noise and intervals before it"
        pooled = "sampling: equal group variances are assumed (pooled variance)"
        return (
            f"{lost}: number of rows {NOT_CLEAR_NOISE}, so that nothing is said of the mean" if lost else "",
            pooled if known and not self.own_variance else "",
            "" if known else describe_law(None),
            repaired if known and self.repaired else "",
            "rows: those of the group; a mean is of those with both values" if self.some_missing else "",
            differences.finding if n_pairs else "",
            aligned(differences.table()) if n_pairs and not more else "",
            *(differences.remarks if n_pairs and not more else ()),
            f"{n_pairs} differences of means: see .differences, or --json" if more else "",
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
    return means_by(release, by, of, confidence_level(level))


def means_by(release: Moments, by: str, of: Sequence[str] | None, level: float, *, tested: bool = True) -> GroupMeans:
    """Return the means of groups; p-values of differences take most of the time."""
    if release.noisy_sum is None:
        raise needs_mean("group means")
    levels = Levels.of(release, by)
    chosen = chosen_features(release, of)
    if of is None:
        chosen = [feature for feature in chosen if feature not in levels.features]
    if not chosen:
        raise InputValueError(f"the release has only the features of '{by}': nothing else has a mean by it")
    sums = [GroupSums.of(release, feature, levels) for feature in chosen]
    result = repaired_means(release, levels, chosen)
    low, high = (bound[chosen].tolist() for bound in release.schema.feature_bounds)
    bounds = list(zip(low, high, strict=True))
    parts = [_intervals(each, *limits, level) for each, limits in zip(sums, bounds, strict=True)]
    lower, upper, privacy, sampling = (np.array([part[index] for part in parts]) for index in range(4))
    if release.weighting is not None:
        deviations = np.sqrt(np.maximum(np.diag(release.covariance)[chosen], 0.0))
        hidden = release.weighting.hidden_by_cap(deviations)[:, None]
        lower, upper = lower - hidden, upper + hidden
    law, repaired = release.noise, release.repair is not Repair.NONE
    kept = (privacy > _REPAIRED_FROM * sampling) & repaired
    of_rows, count_noise = levels.noisy_counts(release, *chosen)
    if PresentRows.of(release, levels.features[0], *chosen) is not None:
        # repaired means are of other rows than their errors: worth it only where noise is far larger than sampling
        for row, each, limits, noisy in zip(result, sums, bounds, kept, strict=True):
            row[:] = np.where(noisy, row, np.clip(each.means, *limits)) if each.some_missing else row
    lost = _lost(of_rows, count_noise, law, level)
    least, greatest = np.array(bounds).T[:, :, None]
    lower, upper = (np.clip(end, least, greatest) for end in holding(lower, upper, result))
    unknown = lost | (~estimable(lower, upper, least, greatest) & (privacy > sampling) & (law is not None))
    differences = [
        differences_of_means(each, limits, level, tested=tested) for each, limits in zip(sums, bounds, strict=True)
    ]
    one, other = np.triu_indices(len(lost), 1)
    of_pairs = result[:, one] - result[:, other]
    low_pairs, high_pairs, privacy_pairs, sampling_pairs, p_pairs = (
        np.array(part).reshape(of_pairs.shape) for part in zip(*differences, strict=True)
    )
    either = lost[one] | lost[other]
    if law is not None:
        noisy_means = np.clip([each.means for each in sums], least, greatest)
        before = noisy_means[:, one] - noisy_means[:, other]
        p_pairs = np.where(of_pairs * before > 0.0, p_pairs, 1.0)  # else 0 is between it and what its interval is of
        ends = holding(low_pairs, high_pairs, of_pairs)
        low_pairs, high_pairs = (np.clip(end, least - greatest, greatest - least) for end in ends)
        held = estimable(low_pairs, high_pairs, least - greatest, greatest - least) | (privacy_pairs <= sampling_pairs)
        held |= low_pairs * high_pairs > 0.0  # which is higher is told, and so is by how much
        of_pairs = np.where(held, of_pairs, np.nan)
    names = tuple(release.feature_names[feature] for feature in chosen)
    return GroupMeans(
        by=by,
        features=names,
        groups=levels.names,
        counts=levels.row_counts(release),
        count_noise=count_noise,
        some_missing=any(each.some_missing for each in sums),
        repaired=repaired and any(not each.some_missing or row.any() for each, row in zip(sums, kept, strict=True)),
        mean=np.where(unknown, np.nan, result),
        privacy_noise=np.where(unknown, np.nan, privacy),
        sampling_noise=np.where(unknown, np.nan, sampling),
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
            of_features=comparisons_of(release, chosen),
            dates=tuple(map(dates_in(release.schema).get, names)),
        ),
        level=level,
        noise_known=law is not None,
        own_variance=all(bool(each.own.all()) for each in sums),
        warning=cautions_by_code(release),
    )


def repaired_means(release: Moments, levels: Levels, chosen: list[int]) -> FloatArray:
    """Return the repaired means of the groups within their bounds, shape (m, k)."""
    mean, covariance, n = release.mean, release.covariance, float(release.sample_size)
    shares = levels.shares(mean)
    crossed = covariance[np.ix_(chosen, levels.features)] @ levels.weights[:, 1:].T
    shift = np.divide(crossed, shares, out=np.zeros_like(crossed), where=shares > 1.0 / (2.0 * n))
    low, high = (bound[chosen][:, None] for bound in release.schema.feature_bounds)
    return np.clip(mean[chosen][:, None] + shift, low, high)


def _lost(counts: FloatArray, count_noise: FloatArray, law: NoiseLaw | None, level: float) -> BoolArray:
    """Return a mask of groups whose count is not distinguishable from 0."""
    noise = np.nan_to_num(count_noise, nan=0.0)
    half = deviations_for(level, law, noise**2, np.zeros_like(noise))
    return counts <= np.maximum(half * noise, 0.5)


def _intervals(
    sums: GroupSums, low: float, high: float, level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the interval and both parts of its SD for every group, in original units."""
    k = len(sums.counts)
    privacy, sampling = np.sqrt(np.diag(sums.covariance_of_means)), np.sqrt(sums.sampling_variances)
    if sums.moments.law is None:
        unknown = np.full(k, np.nan)
        return unknown, unknown, unknown, sampling * sums.unit
    half = deviations_for(level, sums.moments.law, privacy**2, sampling**2, sums.sampling_degrees)
    lower, upper = _ratio_intervals(sums, np.arange(k), half, (low, high))
    return lower, upper, privacy * sums.unit, sampling * sums.unit
