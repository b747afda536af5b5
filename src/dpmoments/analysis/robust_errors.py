"""Sampling errors for residuals of unequal variance (HC1, White 1980).

They come from released products of columns.

With z the regressors and e = bᵀ(z, y) the residual, every z_a e is a linear combination of features if the schema has the
products of each regressor with each regressor and the target. The sampling covariance of Σ z e, Σ e² z zᵀ, is then a function of
the released second moments (``docs/evidence/derivations/regression-inference.md``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.noise.terms import NoiseLaw
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import DerivedColumn, Power
from dpmoments.schema.schema import Schema

CLEAR = 0.25
"""Max noise of a robust variance, as a share of it, to use one below the classical."""

_MIN_EIGENVALUE = 1e-6
"""Smallest eigenvalue of robust correlations, as residuals of 0 would make some 0."""

_Monomial = frozenset[tuple[str, int]]
"""Features of columns with their exponents."""


def _monomials(schema: Schema) -> list[_Monomial]:
    """Return every feature as a product of features of columns."""
    result: list[_Monomial] = []
    for column in schema.columns:
        if not isinstance(column, DerivedColumn):
            result += [frozenset({(feature, 1)}) for feature in column.feature_names]
        elif isinstance(column.stated, Power):
            result.append(frozenset({(column.stated.column, column.stated.exponent)}))
        else:
            first, second = (factor.feature_names for factor in column.factors)
            result += [frozenset({(one, 1), (other, 1)}) for one in first for other in second]
    return result


@dataclass(frozen=True)
class _Products:
    """Products of features, by what they are made of."""

    monomials: Sequence[_Monomial]
    zero_one: frozenset[str]  # features of columns that are 0 or 1
    column_of: dict[str, str]  # the categorical column of each level
    index: dict[_Monomial, int]

    @classmethod
    def of(cls, schema: Schema) -> _Products:
        monomials = _monomials(schema)
        levels = {
            level: column.name
            for column in schema.table_columns
            if isinstance(column, Categorical)
            for level in column.feature_names
        }
        flags = {column.name for column in schema.table_columns if isinstance(column, Boolean) and column.is_flag}
        index = {monomial: i for i, monomial in reversed(list(enumerate(monomials)))}
        return cls(monomials, frozenset(flags | set(levels)), levels, index)

    def product(self, first: int, second: int) -> _Monomial | None:
        """Return the product of two features; None if it is 0 in every row."""
        exponents: Counter[str] = Counter()
        for index in (first, second):
            exponents.update(dict(self.monomials[index]))
        columns = [self.column_of[name] for name in exponents if name in self.column_of]
        if len(set(columns)) < len(columns):
            return None
        return frozenset((name, 1 if name in self.zero_one else power) for name, power in exponents.items())


def _name(monomial: _Monomial) -> str:
    """Return the name of a product as a formula writes it."""
    return ":".join(name if power == 1 else f"{name}^{power}" for name, power in sorted(monomial))


@dataclass(frozen=True, eq=False)
class ResidualProducts:
    """Products of the regressors with the residual of a regression.

    They are functions of released features.
    """

    # (k, m, k + 1), z_a e is Σ weights[a, i, u] b_u w_i for w the constant and the features that are used, about the
    # release's center
    weights: FloatArray
    moments: FloatArray  # (m, m): Σ w wᵀ as released
    noise: NoiseLaw  # its noise

    @classmethod
    def of(cls, release: Released, chosen: Regressors, *, required: bool = False) -> ResidualProducts | None:
        """Return the products of a regression; None if the release does not have all of them."""
        # Raise if they are `required` and not all there; the message names those that are missing.
        if release.noise is None or not (required or release.schema.derived_columns):
            return None
        products = _Products.of(release.schema)
        every = [*chosen.features, chosen.target]
        made = {pair: products.product(*pair) for pair in combinations_with_replacement(every, 2)}
        missing = sorted({_name(one) for one in made.values() if one is not None and one not in products.index})
        if missing:
            if not required:
                return None
            raise InputValueError(Message("no-robust-errors", missing=missing))
        scale, zero = release.encoding.scale, release.zero_of_units
        shift = zero if chosen.intercept else np.zeros(len(scale))
        used = sorted({*every, *(products.index[one] for one in made.values() if one is not None)})
        position = {feature: index + 1 for index, feature in enumerate(used)}
        size = len(used) + 1

        def factor(feature: int | None) -> FloatArray:
            """Return a regressor as a combination of w."""
            result = np.zeros(size)
            if feature is None:
                result[0] = 1.0
            else:
                result[0], result[position[feature]] = zero[feature] - shift[feature], 1.0
            return result

        def product(first: int | None, second: int | None) -> FloatArray:
            if first is None or second is None:
                return factor(second if first is None else first)
            # (x/s − t)(x'/s' − t') with values x, of which x x' is a feature
            result = -shift[first] * factor(second) - shift[second] * factor(first)
            result[0] -= shift[first] * shift[second]
            one = made[(first, second) if (first, second) in made else (second, first)]
            if one is not None:
                feature = products.index[one]
                unit = scale[feature] / (scale[first] * scale[second])
                result[position[feature]] += unit
                result[0] += unit * zero[feature]
            return np.asarray(result)

        regressors = [*([None] if chosen.intercept else []), *chosen.features]
        weights = [[product(one, other) for other in (*regressors, chosen.target)] for one in regressors]
        rows = np.array([0, *(feature + 1 for feature in used)])
        moments = np.zeros((size, size))
        moments[1:, 1:] = release.noisy_gram[np.ix_(used, used)]
        moments[0, 0] = release.n_rows if release.noisy_count is None else max(float(release.noisy_count), 1.0)
        if release.noisy_sum is not None:
            moments[0, 1:] = moments[1:, 0] = release.noisy_sum[used]
        taken = np.eye(len(release.feature_names) + 1)[rows]
        return cls(np.swapaxes(np.array(weights), 1, 2), moments, release.noise.carried(taken))

    def covariance(self, beyond: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ e² v vᵀ for v = ``basis`` z and e at b, and the noise SDs of its diagonal."""
        # Shapes (k, k) and (k,).
        carried: FloatArray = basis @ (self.weights @ beyond)
        noise = np.array([self.noise.variance_of_square(row) for row in carried])
        return np.asarray(carried @ self.moments @ carried.T), np.sqrt(np.maximum(noise, 0.0))


def robust_or_larger(robust: FloatArray, noise: FloatArray, classical: FloatArray) -> FloatArray:
    """Combine two covariances: the robust one if it is known, else the larger of both."""
    # The result is positive definite: `robust` without eigenvalues near or below 0 if all noise is small, else
    # `classical` with its diagonal scaled to the robust one's, or left unchanged if that is smaller and noisy. `noise`
    # holds the noise SDs of the diagonal of `robust`.
    own, other = np.diag(robust), np.maximum(np.diag(classical), np.finfo(float).tiny)
    clear = noise < CLEAR * own
    if clear.all():
        root = np.sqrt(own)
        eigenvalues, vectors = np.linalg.eigh(robust / np.outer(root, root))
        return np.asarray(np.outer(root, root) * ((vectors * np.maximum(eigenvalues, _MIN_EIGENVALUE)) @ vectors.T))
    times = np.sqrt(np.where(clear, own, np.maximum(own, other)) / other)
    return np.asarray(classical * np.outer(times, times))
