"""Moments of present values, pair by pair, from moments that count missing values.

They are of the noisy moments as drawn, and are repaired afterwards with their own noise: shares and covariances of present
values come from different rows, so those of repaired moments would be impossible again
(``docs/evidence/derivations/missing-values.md``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmoments.base.values import FloatArray, IntegerArray, bordered
from dpmoments.moments.cells import GaussianCells
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm
from dpmoments.schema.columns import Boolean, Categorical, Numeric
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import MissingIndicator, presence_column
from dpmoments.schema.schema import Schema

_UNIFORM = 12.0
"""Squared width of a range over the variance of a uniform distribution on it."""


@dataclass(frozen=True, eq=False)
class Presence:
    """Values and their presence as linear combinations of what is drawn."""

    groups: IntegerArray  # (d,), features with the same missing values have the same number; 0 for features without any
    # (d, m + 1), x of each feature, 0 where it is missing, as a combination of the constant and the m drawn features
    # about the center
    values: FloatArray
    indicators: FloatArray  # (groups, m + 1): 1 if the values of the group are present, else 0, as such a combination

    @classmethod
    def of(cls, drawn: Schema, center: FloatArray | None) -> Presence:
        """Return the combinations for a schema with indicators."""
        m = drawn.n_features
        origin = np.zeros(m) if center is None else center
        scale = drawn.encoding(mean=True).scale
        places = np.hstack([origin[:, None], np.eye(m)])
        constant = np.eye(1, m + 1)[0]
        columns = drawn.columns_with_slices
        of_column: dict[str, FloatArray] = {}
        for column, features in columns:
            if isinstance(column, MissingIndicator):
                of_column[column.stated.column] = constant - scale[features.start] * places[features.start]
            elif isinstance(column, Categorical) and column.missing == "available":
                of_column[column.name] = scale[features] @ places[features]
        names = list(of_column)
        groups: list[int] = []
        stand_in = np.zeros(m)
        for column, features in columns:
            if not isinstance(column, MissingIndicator):
                name = presence_column(column)
                groups += [0 if name is None else 1 + names.index(name)] * len(column.feature_names)
                if isinstance(column, Numeric | Date | Boolean) and name is not None:
                    stand_in[features] = (column.replacement - drawn.encoding(mean=True).offset[features]) / scale[
                        features
                    ]
        d, indicators = len(groups), np.array([constant, *of_column.values()])
        values = places[:d] - stand_in[:d, None] * (constant - indicators[groups])
        return cls(np.array(groups), values, indicators)


@dataclass(frozen=True, eq=False)
class AvailableCases:
    """Means and covariances of the rows in which the values are present.

    A mean is of the rows with a value; a covariance of the rows with both values, about their means.
    """

    total: FloatArray  # (d,), sum of all rows about the center if their values had these means
    gram: FloatArray  # (d, d), the same for the Gram matrix
    center: FloatArray | None  # (d,) or None
    shares: FloatArray  # (d,), share of the rows that have a value
    both: FloatArray  # (d, d), share of the rows that have two values
    noise_map: FloatArray  # (d + 1, m + 1): T: the noise is T N Tᵀ, N that of what was drawn, and `rest`
    rest: NoiseLaw | None  # noise on covariances by that of the numbers of rows

    @classmethod
    def of(
        cls,
        drawn: Schema,
        count: float,
        total: FloatArray,
        gram: FloatArray,
        center: FloatArray | None,
        law: NoiseLaw | None,
    ) -> AvailableCases:
        """Return them for noisy moments of the drawn features; ``count`` is above 0."""
        presence = Presence.of(drawn, center)
        groups, indicators = presence.groups, presence.indicators
        d, constant = len(groups), indicators[0]
        moments = bordered(count, total, gram)
        present = np.clip(indicators @ moments @ constant, min(1.0, count), count)
        n_present = present[groups]
        lower, upper = (end[:d] for end in drawn.encoding(mean=True).values_in_ball(*drawn.feature_bounds))
        means = np.clip(presence.values @ moments @ constant / n_present, lower, upper)
        about = presence.values - means[:, None] * indicators[groups]
        both = _rows_with_both(indicators, moments, present, law)
        n_both = both[np.ix_(groups, groups)]
        left = about @ moments @ indicators[groups].T / n_both  # means of one feature where the other is present
        covariance = about @ moments @ about.T / n_both - left * left.T
        origin = None if center is None else center[:d]
        from_center = means if origin is None else means - origin
        shares = n_present / count
        noise_map = np.vstack([constant, about / shares[:, None] + np.outer(from_center, constant)])
        return cls(
            count * from_center,
            count * (covariance + np.outer(from_center, from_center)),
            origin,
            shares,
            n_both / count,
            noise_map,
            None if law is None else _of_counts(covariance, indicators, groups, present, both, law),
        )

    def law(self, drawn: NoiseLaw) -> NoiseLaw:
        """Return the noise on these moments, to first order."""
        carried = drawn.carried(self.noise_map)
        return carried if self.rest is None else carried + self.rest


def _rows_with_both(
    indicators: FloatArray, moments: FloatArray, present: FloatArray, law: NoiseLaw | None
) -> FloatArray:
    """Return the numbers of rows that have the values of two groups, shape (groups, groups)."""
    count = present[0]
    product = np.outer(present, present) / count
    low = np.maximum(present[:, None] + present[None, :] - count, 0.0)
    high = np.minimum(present[:, None], present[None, :])
    result = product.copy()
    size = len(present)
    if law is not None and size > 2:
        first, second = np.triu_indices(size, 1)
        keep = first > 0
        first, second = first[keep], second[keep]
        noisy = indicators @ moments @ indicators.T
        variance = np.maximum(_variances(law, indicators[first], indicators[second]), 0.0)
        square = (high - low)[first, second] ** 2 / _UNIFORM
        weight = np.divide(square, square + variance, out=np.zeros_like(square), where=square > 0.0)
        mixed = product[first, second] + weight * (noisy - product)[first, second]
        result[first, second] = result[second, first] = mixed
    result = np.clip(result, np.maximum(low, min(1.0, count)), high)
    np.fill_diagonal(result, present)
    return np.asarray(result)


def _of_counts(
    covariance: FloatArray,
    indicators: FloatArray,
    groups: IntegerArray,
    present: FloatArray,
    both: FloatArray,
    law: NoiseLaw,
) -> NoiseLaw | None:
    """Return the noise on n times the covariances from noisy row counts; None without any."""
    size = len(present)
    if size == 1:
        return None
    count, constant = present[0], indicators[0]
    first, second = np.triu_indices(size)
    # the number of rows with both, at first order that of independent gaps, less the number of rows
    share = present / count
    shift = np.array(
        [
            (indicators[i] - share[i] * constant)
            if i == j
            else share[j] * (indicators[i] - share[i] * constant) + share[i] * (indicators[j] - share[j] * constant)
            for i, j in zip(np.maximum(first, second), np.minimum(first, second), strict=True)
        ]
    )
    of_number = np.zeros((size, size))
    variance = np.maximum(_variances(law, shift, np.broadcast_to(constant, shift.shape)), 0.0)
    of_number[first, second] = of_number[second, first] = variance / both[first, second] ** 2
    np.fill_diagonal(of_number, 0.0)  # there T states more noise than there is
    d = len(groups)
    cells = np.zeros((d + 1, d + 1))
    cells[1:, 1:] = (count * covariance) ** 2 * of_number[np.ix_(groups, groups)]
    return NoiseLaw((NoiseTerm(GaussianCells(), (cells + cells.T) / 2.0),))


def _variances(law: NoiseLaw, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the variances of the noise on firstᵀ M second, row by row."""
    result = []
    for one, other in zip(first, second, strict=True):
        used = np.flatnonzero((one != 0.0) | (other != 0.0))
        product = np.outer(one[used], other[used])
        result.append(law.variance(used, (product + product.T)[None] / 2.0)[0])
    return np.array(result)
