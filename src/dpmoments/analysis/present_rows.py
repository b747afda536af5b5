"""Counts and sums of the rows whose values are present, straight from the moments as drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.functionals import bilinear
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair.available_cases import Presence


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
    def of(cls, release: Released, *features: int) -> PresentRows | None:
        """Return them if one of these features can be missing, else None."""
        if release.present is None:
            return None
        parts, groups = [], np.zeros(0, dtype=int)
        for drawn in release.drawn_parts:
            assert drawn.noisy_sum is not None
            assert drawn.noisy_count is not None
            presence = Presence.of(drawn.schema, drawn.center)
            groups, d = presence.groups, len(presence.groups)
            there = presence.indicators[groups]
            encoding = drawn.encoding
            values = encoding.offset[:d, None] * there + encoding.scale[:d, None] * presence.values
            total = drawn.noisy_sum
            moments = np.block([[np.array([[drawn.noisy_count]]), total[None, :]], [total[:, None], drawn.noisy_gram]])
            parts.append((np.vstack([presence.indicators[:1], there, values]), moments, drawn.noise))
        return cls(groups, tuple(parts)) if groups[list(features)].any() else None

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
