"""Counts and sums of a feature by group, with the covariance of their noise.

And with what else varies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpmoments.analysis.available_cases import Presence
from dpmoments.analysis.functionals import FeatureVariances, LocalMoments, bilinear, indicator_mask
from dpmoments.analysis.released import Moments, columns_with_indices
from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray, bordered
from dpmoments.foundation.errors import InputTypeError, InputValueError, listed, meant
from dpmoments.noise.terms import NoiseLaw
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import not_a_grouping_column, unknown_grouping_column

# Columns that sort rows into groups: the levels of a categorical, and the two of a Boolean.


@dataclass(frozen=True, eq=False)
class Levels:
    """Groups of a categorical or Boolean column: sums of features that count their rows."""

    column: str
    names: tuple[str, ...]  # `region=north`, …; of a Boolean `smoker=false` and `smoker=true`
    features: tuple[int, ...]  # the column's features in the release
    # (k, 1 + number of features), weights[g] · (1, a row's features) is 1 if the row is in group g, else 0
    weights: FloatArray

    @classmethod
    def of(cls, release: Moments, name: str) -> Levels:
        """Return the groups of a column."""
        sorting = []
        for column, features in columns_with_indices(release):
            if isinstance(column, Categorical | Boolean):
                sorting.append(column.name)
            if column.name == name:
                indices = tuple(features)
                if isinstance(column, Categorical):
                    return cls(name, column.feature_names, indices, np.eye(len(indices) + 1)[1:])
                if isinstance(column, Boolean):
                    return cls(name, (f"{name}=false", f"{name}=true"), indices, np.array([[1.0, -1.0], [0.0, 1.0]]))
        for column in release.schema.columns:
            if column.name == name:
                raise not_a_grouping_column(column, sorting)
        raise unknown_grouping_column(name, sorting)

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

    def row_counts(self, release: Moments) -> IntegerArray:
        """Return the rows of each group near the repaired ones, shape (k,)."""
        # Only rows that have a value of the column are counted.
        repaired = self.weights[:, 0] + self.weights[:, 1:] @ release.mean[list(self.features)]
        rows = release.n_rows * (1.0 if release.present is None else float(release.present[self.features[0]]))
        return whole_counts(np.clip(repaired, 0.0, 1.0) * rows, release.n_rows)

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
    n_rows: float
    location: float  # with `unit`: y = (value − location)/unit
    unit: float
    moments: LocalMoments
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
            terms = np.tile(present.of_groups(levels.weights, levels.features), (2, 1))
            of_row = np.repeat([present.presence(feature), present.value(feature, location, unit)], k, axis=0)
            released, covariance = present.totals(terms, of_row)
            counts, sums = released[:k], released[k:]
        return cls(
            counts,
            sums,
            covariance,
            variances,
            own,
            total,
            total_noise,
            moments.n_rows,
            location,
            unit,
            moments,
            present is not None,
        )

    @property
    def means(self) -> FloatArray:
        """The group means Σy/count, in original units."""
        return self.location + self.unit * self.sums / self.safe_counts

    @property
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
        return np.asarray(gradient @ self.covariance @ gradient.T)

    @property
    def sampling_variances(self) -> FloatArray:
        """Sampling variances of the group means, shape (k,)."""
        # By n − 1, or n − k if pooled, and at most the variances.
        independent = self.safe_counts / self.moments.rows_per_unit
        rows = self.moments.independent_rows
        left = np.where(self.own, independent - 1.0, independent * (1.0 - len(self.counts) / rows))
        return np.asarray(self.variances / np.maximum(left, 1.0))


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


# Counts and sums of the rows whose values are present, straight from the moments as drawn.


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

    @property
    def constant(self) -> FloatArray:
        """The term that is 1 in every row."""
        return np.asarray(np.eye(1, 2 * len(self.groups) + 1)[0])

    def presence(self, feature: int) -> FloatArray:
        """Return the term that is 1 where the feature is present, else 0."""
        return np.asarray(np.eye(1, 2 * len(self.groups) + 1, 1 + feature)[0])

    def value(self, feature: int, location: float, unit: float) -> FloatArray:
        """Return the term (value − location)/unit, 0 where the value is missing."""
        of_value = np.eye(1, 2 * len(self.groups) + 1, 1 + len(self.groups) + feature)[0]
        return np.asarray((of_value - location * self.presence(feature)) / unit)

    def of_groups(self, weights: FloatArray, features: Sequence[int]) -> FloatArray:
        """Return the terms that are 1 in the rows of each group, else 0."""
        # `weights` apply to (1, values of the features), shape (k, 1 + number of features).
        result = np.outer(weights[:, 0], self.presence(features[0]))
        for weight, feature in zip(weights[:, 1:].T, features, strict=True):
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
        result, covariance = self.totals(groups, np.tile(self.constant, (len(groups), 1)))
        return result, np.sqrt(np.diag(covariance))
