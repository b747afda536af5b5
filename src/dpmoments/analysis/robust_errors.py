"""Sampling errors from released products of columns.

They assume neither equal variances nor normal rows.

With z the regressors and e = bᵀ(z, y) the residual, every z_a e is a linear combination of features if the schema has the
products of each regressor with each regressor and the target. The sampling covariance of Σ z e, Σ e² z zᵀ, is then a function of
the released second moments (HC1, White 1980; ``docs/evidence/derivations/regression-inference.md``), and so is the sampling
variance of a correlation (``docs/evidence/derivations/resolvability.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from dpmoments.analysis.formula import Products, WithTerms, monomial_name
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Moments
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, IntegerArray, bordered
from dpmoments.moments.law import NoiseLaw

CLEAR = 0.25
"""Max noise of the robust variances, as a share of each, to use the robust correlations."""

_SPREAD_ABOVE, _SPREAD_BELOW = 1.5, 0.7
"""Noise at which a ratio above 1, or below, is drawn half the way to 1.

Ratios are of robust to classical variances. Chosen on a grid of ratios, noise and privacy noise, so that coverage is
within 0.93 and 0.98 in most cells.
"""
_LEAST = 0.25
"""Least ratio that noise can make."""

_MIN_EIGENVALUE = 1e-6
"""Smallest eigenvalue of robust correlations, as residuals of 0 would make some 0."""


def moments_with_constant(release: Moments) -> FloatArray:
    """Return Σ w wᵀ as released, w the constant and all features about the release's center."""
    count = float(release.sample_size) if release.noisy_count is None else max(float(release.noisy_count), 1.0)
    total = np.zeros(len(release.feature_names)) if release.noisy_sum is None else release.noisy_sum
    return bordered(count, total, release.noisy_gram)


@dataclass(frozen=True, eq=False)
class _Combinations:
    """Products of two features as combinations of released features."""

    # These are w, the constant and features about the release's center; factors are in encoded units about `zero`.

    release: Moments
    products: Products
    zero: FloatArray
    used: list[int]

    @classmethod
    def of(
        cls, release: Moments, products: Products, pairs: Iterable[tuple[int, int]], zero: FloatArray
    ) -> _Combinations:
        """Return those of ``pairs`` of features, whose products are all there."""
        pairs = list(pairs)
        made = (products.product(*pair) for pair in pairs)
        used = {products.index[one] for one in made if one is not None}
        return cls(release, products, zero, sorted(used.union(*pairs)))

    @cached_property
    def _position(self) -> dict[int, int]:
        return {feature: index + 1 for index, feature in enumerate(self.used)}

    def factor(self, feature: int | None) -> FloatArray:
        """Return a feature, or the constant, as a combination of w."""
        result = np.zeros(len(self.used) + 1)
        if feature is None:
            result[0] = 1.0
        else:
            result[0], result[self._position[feature]] = self.release.zero_of_units[feature] - self.zero[feature], 1.0
        return result

    def product(self, first: int | None, second: int | None) -> FloatArray:
        """Return a product of features, or of one and the constant, as a combination of w."""
        if first is None or second is None:
            return self.factor(second if first is None else first)
        zero, scale = self.zero, self.release.encoding.scale
        # (x/s − t)(x'/s' − t') with values x, of which x x' is a feature
        result = -zero[first] * self.factor(second) - zero[second] * self.factor(first)
        result[0] -= zero[first] * zero[second]
        one = self.products.product(first, second)
        if one is not None:
            feature = self.products.index[one]
            unit = scale[feature] / (scale[first] * scale[second])
            result[self._position[feature]] += unit
            result[0] += unit * self.release.zero_of_units[feature]
        return np.asarray(result)


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
    def of(cls, release: Moments, chosen: Regressors, *, required: bool = False) -> ResidualProducts | None:
        """Return the products of a regression; None if the release does not have all of them."""
        # Raise if they are `required` and not all there; the message names those that are missing.
        if release.noise is None or not (required or release.schema.derived_columns):
            return None
        products = Products.of(release.schema)
        chosen_features = [*chosen.features, chosen.target]
        base, weights = (release.base, release.weights) if isinstance(release, WithTerms) else (release, None)
        every = (
            chosen_features if weights is None else np.flatnonzero(weights[chosen_features, 1:].any(axis=0)).tolist()
        )
        pairs = list(combinations_with_replacement(every, 2))
        made = (products.product(*pair) for pair in pairs)
        missing = sorted({monomial_name(one) for one in made if one is not None and one not in products.index})
        if missing:
            if not required:
                return None
            refused = (
                "HC1 errors need the products of all regressors and the target; not in this release: "
                f"{', '.join(missing)}."
            )
            raise InputValueError(
                f"{refused} A release of schema.with_products([...]) has them.",
                shell=f"{refused} They must be columns 'kind: power' or 'kind: product' of the schema of the release.",
            )
        zero = base.zero_of_units if chosen.intercept else np.zeros(len(base.feature_names))
        combinations = _Combinations.of(base, products, pairs, zero)
        factors = [None, *every]
        # the constant, the regressors and the target, as combinations of the factors
        carried = np.eye(len(chosen_features) + 1)
        if weights is not None:
            scale = release.encoding.scale[chosen_features]
            slopes = weights[chosen_features, 1:][:, every] * base.encoding.scale[every] / scale[:, None]
            constants = weights[chosen_features, 0] / scale * (not chosen.intercept)
            carried = np.block([[np.eye(1, len(every) + 1)], [constants[:, None], slopes]])
        first = 0 if chosen.intercept else 1
        of_factors = np.array([[combinations.product(one, other) for other in factors] for one in factors])
        of_all = np.einsum("au,uvi,bv->aib", carried[first:-1], of_factors, carried[first:], optimize=True)
        rows = np.array([0, *(feature + 1 for feature in combinations.used)])
        taken = np.eye(len(base.feature_names) + 1)[rows]
        moments = moments_with_constant(base)[np.ix_(rows, rows)]
        assert base.noise is not None
        return cls(of_all, moments, base.noise.carried(taken))

    def covariance(self, beyond: FloatArray, basis: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ e² v vᵀ for v = ``basis`` z and e at b, and the noise SDs of its diagonal."""
        # Shapes (k, k) and (k,).
        carried: FloatArray = basis @ (self.weights @ beyond)
        noise = np.array([self.noise.variance_of_square(row) for row in carried])
        return np.asarray(carried @ self.moments @ carried.T), np.sqrt(np.maximum(noise, 0.0))


@dataclass(frozen=True, eq=False)
class PairProducts:
    """Sampling variances of correlations of P pairs, from released products."""

    # (P, m), those of the features that a pair uses among (1, all features), the first 0, −1 for none
    indices: IntegerArray
    # with `squares`: (P, m), uv and (u² + v²)/2 as combinations of these features, u and v standardized
    product: FloatArray
    squares: FloatArray
    moments: FloatArray  # (P, m, m), their second moments as released
    noise: NoiseLaw

    @classmethod
    def of(
        cls, release: Moments, pairs: IntegerArray, location: FloatArray, deviations: FloatArray
    ) -> tuple[PairProducts, IntegerArray] | None:
        """Return the products of the pairs that have all, with their indices; None without any."""
        # `location` holds means in original units, `deviations` standard deviations in encoded units
        if release.noise is None or not release.schema.derived_columns:
            return None
        products = Products.of(release.schema)
        own = [products.product(feature, feature) in products.index for feature in range(len(location))]
        made = (products.product(*pair) if own[pair[0]] and own[pair[1]] else frozenset() for pair in pairs.tolist())
        kept = [index for index, one in enumerate(made) if one is None or one in products.index]
        if not kept:
            return None
        zero, width = location / release.encoding.scale, 0
        found = []
        for i, j in pairs[kept].tolist():
            terms = _Combinations.of(release, products, [(i, j), (i, i), (j, j)], zero)
            of_pair, *squares = (
                terms.product(one, other) / (deviations[one] * deviations[other])
                for one, other in ((i, j), (i, i), (j, j))
            )
            found.append(([0, *(feature + 1 for feature in terms.used)], of_pair, (squares[0] + squares[1]) / 2.0))
            width = max(width, len(of_pair))
        indices = np.full((len(found), width), -1)
        product, halves = np.zeros((2, len(found), width))
        for row, (used, of_pair, of_squares) in enumerate(found):
            indices[row, : len(used)], product[row, : len(used)], halves[row, : len(used)] = used, of_pair, of_squares
        whole = moments_with_constant(release)
        moments = whole[indices[:, :, None], indices[:, None, :]]  # −1 has weights of 0
        return cls(indices, product, halves, moments, release.noise), np.array(kept)

    def variances(self, r: FloatArray, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """Return n times the sampling variances of r, and their noise SDs."""
        # they are E ψ² of ψ = uv − r(u² + v²)/2
        rows = self.product - r[:, None] * self.squares
        value = np.einsum("pi,pij,pj->p", rows, self.moments, rows) / n_rows
        noise = self.noise.variance(self.indices, rows[:, :, None] * rows[:, None, :])
        return np.asarray(value), np.sqrt(noise) / n_rows


def known_ratio(ratio: FloatArray, noise: FloatArray) -> FloatArray:
    """Return robust over classical variances, drawn toward 1 by their noise."""
    # Noise counts for more below 1, since an interval that is too short costs more than one that is too long. What is
    # left of the noise, of variance s², adds s² over the ratio: an interval whose variance is noisy misses too often.
    weight = 1.0 / (1.0 + (noise / np.where(ratio > 1.0, _SPREAD_ABOVE, _SPREAD_BELOW)) ** 2)
    drawn = np.maximum(1.0 + (ratio - 1.0) * weight, _LEAST)
    return drawn + (weight * noise) ** 2 / drawn


def robust_covariance(robust: FloatArray, noise: FloatArray, classical: FloatArray) -> FloatArray:
    """Combine a noisy robust covariance with the classical one."""
    # The result is positive definite: variances by `known_ratio`, with the correlations of `robust` if all noise is
    # small, else of `classical`. `noise` holds the noise SDs of the diagonal of `robust`.
    own, other = np.diag(robust), np.maximum(np.diag(classical), np.finfo(float).tiny)
    known = np.sqrt(other * known_ratio(own / other, noise / other))
    if not (noise < CLEAR * own).all():
        return np.asarray(classical * np.outer(known, known) / np.outer(np.sqrt(other), np.sqrt(other)))
    root = np.sqrt(own)
    eigenvalues, vectors = np.linalg.eigh(robust / np.outer(root, root))
    return np.asarray(np.outer(known, known) * ((vectors * np.maximum(eigenvalues, _MIN_EIGENVALUE)) @ vectors.T))
