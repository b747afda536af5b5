"""Noise on what is made of released moments.

Variances of linear functionals of Σ w wᵀ, in coordinates an analysis chooses.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dpmoments.analysis.confidence import NOISE_UNKNOWN
from dpmoments.analysis.released import Moments, chosen_features, named_features, needs_mean, pairs_of_levels
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, bordered, directions_of, first_largest
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.repair import Repair
from dpmoments.moments.spectral import SpectralNoise
from dpmoments.schema.constraints import Constraints

WHY_NOISE_UNKNOWN = (
    f"{NOISE_UNKNOWN}: the mechanism left a bias in the moments, or does not state its noise distribution"
)
"""Why ``release.noise`` is None."""


@dataclass(frozen=True, eq=False)
class LocalMoments:
    """Σ w wᵀ as released, before any repair, w = (1, (value − location)/unit), and its noise.

    A functional ΣᵢⱼWᵢⱼUᵢⱼ has a symmetric matrix of weights W. To first order every result of an analysis is one, with its
    gradient as the weights. Functionals of a few features are given by *places* (indices: 0 is the constant, f + 1 feature f)
    and weights on those.
    """  # language: ok

    moments: FloatArray  # (d + 1, d + 1): U above
    n_rows: float  # divisor of sums: the count, kept away from 0
    # with `unit`: (d,), in original units: the released mean and the encoding's scale; 0 and 1 for features that are
    # not shifted or scaled
    location: FloatArray
    unit: FloatArray
    # noise distribution of the released moments; None if they are biased on purpose: every variance is then NaN
    law: NoiseLaw | None
    shift: FloatArray  # with `stretch`: (d,), t and s of w = t + s·x, x the encoded row about the release's center
    stretch: FloatArray
    # most rows of one privacy unit: sampling variances are at most this multiple of those of independent rows
    rows_per_unit: int
    opposite: IntegerArray | None = None  # (d,), or None, see `with_opposites`
    gaps: FloatArray = field(default_factory=lambda: np.zeros(0))  # (d,), missing over present values of each feature
    # (d, d), n/n_jk − 1 less the gaps of both, n_jk the rows that have both values
    joint_gaps: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def of(cls, release: Moments, as_they_are: Collection[int] = (), *, about_zero: bool = False) -> LocalMoments:
        """Return the moments of a release about its unrepaired mean."""
        # Features `as_they_are` are neither shifted nor scaled, such as levels, whose sums are counts. `about_zero`
        # accepts a release without a mean: its moments are then about the zero of the encoding, and its sums 0.
        if release.noisy_sum is None and not about_zero:
            raise needs_mean()
        n_rows, encoding = float(release.sample_size), release.encoding
        total = np.zeros(len(release.feature_names)) if release.noisy_sum is None else release.noisy_sum
        mean = total / n_rows
        origin = encoding.offset if release.center is None else encoding.decode_mean(release.center)
        location, unit = origin + encoding.scale * mean, encoding.scale.copy()
        shift, stretch = -mean, np.ones(len(mean))
        kept = list(as_they_are)
        location[kept], unit[kept], shift[kept], stretch[kept] = 0.0, 1.0, origin[kept], encoding.scale[kept]
        count = n_rows if release.noisy_count is None else release.noisy_count
        released = bordered(count, total, release.noisy_gram)
        units = np.append(1.0, stretch)
        moments = released * np.outer(units, units)
        moments[1:] += np.outer(shift, moments[0])
        moments[:, 1:] += np.outer(moments[:, 0], shift)
        return cls(
            moments,
            n_rows,
            location,
            unit,
            release.noise,
            shift,
            stretch,
            rows_per_unit=release.privacy.rows_per_unit,
            gaps=gaps_of(release),
            joint_gaps=joint_gaps_of(release),
        )

    @property
    def independent_rows(self) -> float:
        """Number of independent rows whose sampling variances are at least those of these rows."""
        # One of each full unit.
        return self.n_rows / self.rows_per_unit

    def with_opposites(self, opposite: IntegerArray) -> LocalMoments:
        """Replace w_f by (w_f − w_g)/2 for features f and g of which exactly one is 1 in every row."""
        # The two are one number with independent noise: their mean is less noisy. `opposite` is g for every f, −1
        # without one.
        if (opposite < 0).all():
            return self
        own = np.flatnonzero(opposite >= 0)
        halves, location = _halved(opposite), self.location.copy()
        location[own] = (1.0 + self.location[own] - self.location[opposite[own]]) / 2.0
        return replace(self, moments=halves @ self.moments @ halves.T, location=location, opposite=opposite)

    def variances(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return the variances of the noise on P functionals, shape (P,).

        None of them uses both of two opposites.

        ``indices`` are (P, m) indices, the first of each 0 and −1 for none; ``weights`` have shape (P, m, m).
        """
        if self.law is None:
            return np.full(len(weights), np.nan)
        if self.opposite is not None:
            # from weights on (1, (w_f − w_g)/2) to weights on (1, w): the opposites are last, −1 for none
            others, size = np.where(indices[:, 1:] > 0, self.opposite[indices[:, 1:] - 1], -1), indices.shape[1]
            has_one = others >= 0
            own = np.concatenate([np.ones((len(indices), 1)), np.where(has_one, 0.5, 1.0)], axis=1)
            spread = np.concatenate([np.eye(size) * own[:, :, None], np.zeros((*indices.shape, size - 1))], axis=2)
            row = np.arange(1, size)
            spread[:, row, size + row - 1] = np.where(has_one, -0.5, 0.0)
            weights = np.einsum("pij,pik,pjl->pkl", weights, spread, spread, optimize=True)
            indices = np.concatenate([indices, np.where(has_one, others + 1, -1)], axis=1)
        return self.law.variance(indices, self._of_released(indices, weights))

    def variances_of_squares(self, chosen: IntegerArray, vectors: FloatArray, subtracted: FloatArray) -> FloatArray:
        """Return the variances of the noise on aᵀUa − Σ sᵢUᵢᵢ, shape (P,)."""
        # Vectors a and s have an entry for the constant and one for each chosen feature, (P, k + 1).
        if self.law is None:
            return np.full(len(vectors), np.nan)
        matrix = np.diag(np.append(1.0, self.stretch))
        matrix[1:, 0] = self.shift
        if self.opposite is not None:
            matrix = _halved(self.opposite) @ matrix
        return self.law.carried(matrix[np.append(0, chosen + 1)]).variance_of_squares(vectors, subtracted)

    def covariance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return the noise covariance of P functionals of the same m indices, the first 0, (P, P)."""
        if self.opposite is not None:
            raise InputValueError("covariances are defined for unrepaired moments only")
        if self.law is None:
            return np.full((len(weights), len(weights)), np.nan)
        result = self._of_released(np.broadcast_to(indices, (len(weights), len(indices))), weights)
        return self.law.covariance(indices, result)

    def cell_variances(self, chosen: IntegerArray) -> FloatArray:
        """Return the variances of the noise on the entries of Σ w wᵀ of some features, (k, k)."""
        size = len(chosen)
        first, second = np.triu_indices(size)
        indices = np.stack([np.zeros(len(first), dtype=int), chosen[first] + 1, chosen[second] + 1], axis=1)
        weights = np.zeros((len(first), 3, 3))
        weights[:, 1, 2] = weights[:, 2, 1] = 0.5
        on_diagonal = first == second
        indices[on_diagonal, 2] = -1  # none: an index occurs once
        weights[on_diagonal] = 0.0
        weights[on_diagonal, 1, 1] = 1.0
        result = np.empty((size, size))
        result[first, second] = result[second, first] = self.variances(indices, weights)
        return result

    def _of_released(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Convert weights on Σ w wᵀ to weights on Σ z zᵀ, z = (1, x)."""
        chosen = indices[:, 1:] - 1
        used = chosen >= 0
        chosen = np.maximum(chosen, 0)
        shift, stretch = np.where(used, self.shift[chosen], 0.0), np.where(used, self.stretch[chosen], 0.0)
        if indices.shape[1] <= _FEW_INDICES:
            size, shift, stretch = indices.shape[1], shift.T, stretch.T
            result = functionals_of(size, len(weights))
            corner = weights[:, 0, 0].copy()
            for i in range(1, size):
                on_shift = weights[:, i, 0] + sum(weights[:, i, j] * shift[j - 1] for j in range(1, size))
                corner += shift[i - 1] * (weights[:, i, 0] + on_shift)
                result[:, i, 0] = result[:, 0, i] = on_shift * stretch[i - 1]
                for j in range(1, i + 1):
                    result[:, i, j] = result[:, j, i] = weights[:, i, j] * (stretch[i - 1] * stretch[j - 1])
            result[:, 0, 0] = corner
            return result
        shift = np.concatenate([np.ones((len(indices), 1)), shift], axis=1)
        on_shift = (weights @ shift[:, :, None])[:, :, 0]
        result = np.empty_like(weights)
        result[:, 0, 0] = np.einsum("pi,pi->p", on_shift, shift)
        result[:, 0, 1:] = result[:, 1:, 0] = on_shift[:, 1:] * stretch
        np.multiply(weights[:, 1:, 1:], stretch[:, :, None], out=result[:, 1:, 1:])
        result[:, 1:, 1:] *= stretch[:, None, :]
        return result


_FEW_INDICES = 4
"""Max indices of a functional whose weights are converted entry by entry."""


def functionals_of(size: int, count: int) -> FloatArray:
    """Return weights 0 of functionals on a few indices, shape (count, size, size)."""
    # of which one entry is stored for all functionals, then the next
    return np.moveaxis(np.zeros((size, size, count)), 2, 0)


def semidefinite(matrix: FloatArray) -> FloatArray:
    """Return the nearest positive semi-definite matrix."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T)


def _halved(opposite: IntegerArray) -> FloatArray:
    """Return the map from w_f to (w_f − w_g)/2 for opposites f and g, on (1, w)."""
    own = np.flatnonzero(opposite >= 0)
    result = np.eye(len(opposite) + 1)
    result[own + 1, own + 1] = 0.5
    result[own + 1, opposite[own] + 1] = -0.5
    return result


def gaps_of(release: Moments) -> FloatArray:
    """Return the number of missing values of each feature over that of present ones, shape (d,)."""
    if release.present is None:
        return np.zeros(len(release.feature_names))
    return 1.0 / release.present - 1.0


def joint_gaps_of(release: Moments) -> FloatArray:
    """Return n/n_jk − 1 less the gaps of both features, shape (d, d)."""
    # n_jk is the number of rows with both values.
    gaps = gaps_of(release)
    if release.both_present is None:
        return np.zeros((len(gaps), len(gaps)))
    return 1.0 / release.both_present - 1.0 - gaps[:, None] - gaps[None, :]


def covariance_of_gaps(
    weights: FloatArray, covariance: FloatArray, gaps: FloatArray, joint_gaps: FloatArray | None
) -> FloatArray:
    """Return n times what missing values add to the covariance of P forms Σ W_jk C_jk, (P, P)."""
    # docs/evidence/derivations/missing-values.md, section 5, for normal rows; C is their covariance
    own, result = np.diag(covariance), np.zeros((len(weights), len(weights)))
    for v in np.flatnonzero(gaps):
        line = 2.0 * weights[:, v]
        line[:, v] -= weights[:, v, v]
        along = line @ covariance
        result += gaps[v] * (own[v] * along @ line.T + np.outer(along[:, v], along[:, v]))
    if joint_gaps is None:
        return result
    for v, w in np.argwhere(np.triu(joint_gaps, 1) > 0.0):
        pair = 2.0 * weights[:, v, w]
        result += joint_gaps[v, w] * (own[v] * own[w] + covariance[v, w] ** 2) * np.outer(pair, pair)
    return result


def bilinear(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the weights of aᵀ U b: (a bᵀ + b aᵀ)/2, over the last axis."""
    product = first[..., :, None] * second[..., None, :]
    return (product + np.swapaxes(product, -1, -2)) / 2.0


def noise_edges(cells: FloatArray, components: FloatArray, law: NoiseLaw | None) -> FloatArray:
    """Return the noise edge on the span of each component and those after it."""
    # With P the projection on that span, E‖PNPe_j‖² = tr(P Cov(N b)), b = Pe_j, is the sum of a row of variances. Of
    # more than 64 components some take the edge of one a little before them, which is a little larger.
    if law is None:
        return np.full(len(components), np.nan)
    d, spectral = len(cells), SpectralNoise.of(law)
    beyond = spectral.edge / (2.0 * math.sqrt(spectral.variance)) if spectral.variance > 0.0 else 1.0
    result, between = np.empty(len(components)), cells - np.diag(np.diag(cells))
    index = 0
    while index < len(components):
        following = min(index + max(1, index // _EDGES_PER_OCTAVE), len(components))
        before = components[:index]
        away = before.T @ before  # P = 1 − away
        kept = 1.0 - np.diag(away)
        squares = away**2
        squares[np.diag_indices(d)] = kept**2
        carried = -before @ (away * between)
        within = np.einsum("ti,ti->i", before, (carried @ before.T) @ before - 2.0 * carried)
        rows = np.maximum(kept, 0.0) @ cells @ squares + within
        # the 95 % quantile of the largest eigenvalue of the noise on a matrix of this size
        largest = math.sqrt(float(np.max(rows, initial=0.0))) * (2.0 + math.pow(d - index, -2.0 / 3.0))
        result[index:following] = largest * max(1.0, beyond)
        index = following
    return result


_EDGES_PER_OCTAVE = 32
"""From this many components on, an edge serves for those up to 1/32 beyond its own."""


def describe_law(law: NoiseLaw | None) -> str:
    """Return the note below a table whose noise is not known; empty if it is known."""
    return "" if law is not None else f"{WHY_NOISE_UNKNOWN}; so nothing here has an interval"


# Variances of features as inference reads them: of a level or a Boolean by its share, of others by the second moment.


def share_mask(release: Moments) -> BoolArray:
    """Return a mask of levels and Booleans, whose means are shares, shape (d,)."""
    result = np.zeros(len(release.feature_names), dtype=bool)
    constraints = Constraints.of(release.schema, mean=True)
    for block in constraints.blocks:
        result[block.features] = True
    result[list(constraints.flags)] = True
    return result


def indicator_mask(release: Moments) -> BoolArray:
    """Return a mask of features that are 0 or 1 in every row, shape (d,)."""
    # These are levels and Booleans (assumed to hold no fractions) of rows that were not moved.
    return share_mask(release) & (not release.rows_moved)


def opposite_levels(release: Moments) -> IntegerArray:
    """Return the other level of each feature's column, shape (d,); −1 if it has not two.

    Every row has one of the two levels.

    Rows clipped about a noisy center keep a sum near 1; a caveat of the noise says that intervals leave clipping out.
    """
    result = np.full(len(release.feature_names), -1)
    for first, near_one in pairs_of_levels(release):
        if near_one:
            result[first], result[first + 1] = first + 1, first
    return result


@dataclass(frozen=True, eq=False)
class FeatureVariances:
    """n times the variance of every feature, unrepaired, and its gradient.

    A feature that is 0 or 1 has n p(1 − p): its only noise is the noise of the count.
    """

    values: FloatArray  # (d,), in squared units of the `LocalMoments`
    weights: FloatArray  # (d, 2, 2), the gradient on (1, w_f)
    of_share: BoolArray  # (d,), true for n p(1 − p)
    share: FloatArray  # (d,), p, between 0 and 1; NaN for other features

    @classmethod
    def of(cls, release: Moments, moments: LocalMoments, *, as_shown: bool = False) -> FeatureVariances:
        """Return the variances of all features about ``moments.location``.

        It must be the mean of every feature.

        ``as_shown`` asks for the variances of ``release.covariance``: most repairs take a level's from its second moment.
        """
        d = len(moments.location)
        # these repairs make the covariance of a column's levels diag(p) − ppᵀ
        by_shares = not as_shown or release.repair in (Repair.AUTO, Repair.STRUCTURED)
        zero_one = indicator_mask(release) & by_shares
        share = np.where(zero_one, moments.location, np.nan)
        possible = np.clip(share, 0.0, 1.0)
        values, weights = np.diag(moments.moments)[1:].copy(), np.zeros((d, 2, 2))
        weights[:, 1, 1] = 1.0
        unit = moments.unit
        spread = possible * (1.0 - possible)
        values[zero_one] = (moments.n_rows * spread / unit**2)[zero_one]
        # n p(1 − p), p = s/n: its derivatives are 1 − 2p in s and p² in n; s = unit·Σw + p·n
        weights[zero_one, 1, 1] = 0.0
        of_sum = (1.0 - 2.0 * possible) / unit
        weights[zero_one, 0, 1] = weights[zero_one, 1, 0] = of_sum[zero_one] / 2.0
        weights[zero_one, 0, 0] = (spread / unit**2)[zero_one]
        certain = list(Constraints.of(release.schema, mean=True).certain) if by_shares else []
        values[certain], weights[certain] = 0.0, 0.0  # a column of one level: its share is 1 in every table
        return cls(values, weights, zero_one, possible)

    def noise(self, moments: LocalMoments) -> FloatArray:
        """Return the SDs of the noise on the values, shape (d,); NaN if it is not known."""
        return np.sqrt(moments.variances(self._places, self.weights))

    def noise_per_row(self, moments: LocalMoments) -> FloatArray:
        """Return the SDs of the noise on values/n, n being noisy as well, shape (d,)."""
        # NaN if unknown.
        weights, of_mean = self.weights.copy(), np.zeros_like(self.weights)
        weights[:, 0, 0] -= self.values / moments.n_rows
        # the gradient of p(1 − p) vanishes at 1/2, where the square of the noise on p is left: its variance is 2σ⁴
        of_mean[self.of_share, 0, 1] = of_mean[self.of_share, 1, 0] = 0.5
        first, of_means = (moments.variances(self._places, each) / moments.n_rows**2 for each in (weights, of_mean))
        return np.sqrt(first + 2.0 * of_means**2)

    @property
    def _places(self) -> IntegerArray:
        d = len(self.values)
        return np.stack([np.zeros(d, dtype=int), np.arange(d) + 1], axis=1)


# Covariances of features in units of their deviations or of the noise, repaired and not, and what of them the noise leaves.

SINGULAR = 1e-9
"""A direction of less than this share of the largest variance is one of none."""


@dataclass(frozen=True, eq=False)
class Standardized:
    """The covariance of some features in chosen units, its directions, and the noise on it."""

    features: IntegerArray  # (k,), indices in the release; every variance is above 0
    mean: FloatArray  # with `scale`: (k,), released mean in original units, and the divisors of deviations
    scale: FloatArray
    covariance: FloatArray  # (k, k), repaired
    noisy: FloatArray  # (k, k), before repair, in the same units
    cells: FloatArray  # (k, k), variances of the noise on its entries; NaN if not known
    # with `directions`: (k,) and (k, k), of `covariance`, the largest first; rows are directions
    eigenvalues: FloatArray
    directions: FloatArray
    edge: FloatArray  # (k,), noise edge in a direction and those after it; NaN if not known
    moments: LocalMoments

    @classmethod
    def of(cls, release: Moments, chosen: Sequence[int], *, by_deviation: bool = True) -> Standardized:
        """Return the moments of ``chosen`` features, without those of released variance 0."""
        # `by_deviation` divides by released standard deviations, else by the encoding's scale, in which noise is
        # isotropic.
        moments, variances = LocalMoments.of(release), np.diag(release.covariance)
        features = np.array([feature for feature in chosen if variances[feature] > 0.0], dtype=int)
        if not len(features):
            raise InputValueError(
                "no feature has a released variance above 0: the noise hides them all, or they are constant; name "
                "other columns"
            )
        scale = np.sqrt(variances[features]) if by_deviation else release.encoding.scale[features]
        covariance = release.covariance[np.ix_(features, features)] / np.outer(scale, scale)
        in_units = moments.unit[features] / scale
        squares = np.outer(in_units, in_units) / moments.n_rows
        cells = moments.cell_variances(features) * squares**2
        eigenvalues, directions = directions_of(covariance)
        return cls(
            features=features,
            mean=release.mean[features],
            scale=scale,
            covariance=covariance,
            noisy=moments.moments[np.ix_(features + 1, features + 1)] * squares,
            cells=cells,
            eigenvalues=eigenvalues,
            directions=directions,
            edge=noise_edges(cells, directions, moments.law),
            moments=moments,
        )

    @property
    def stands_out(self) -> BoolArray:
        """Directions whose variance before repair is beyond what noise makes."""
        # Where that is not known, those of any variance.
        varies = self.eigenvalues > SINGULAR * max(float(self.eigenvalues[0]), 0.0)
        if self.moments.law is None:
            return varies
        result = np.einsum("pi,ij,pj->p", self.directions, self.noisy, self.directions)
        return np.asarray(varies & (result > self.edge))


def precision(release: Moments) -> tuple[FloatArray, int]:
    """Return Σ⁺ on the directions above the noise floor, and the number of other directions.

    :func:`dpmoments.analysis.components.mahalanobis` measures by Σ⁺. No direction is kept if no released variance is above 0.

    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).normal(0, 0.2, (50_000, 2))
    >>> inverse, n_noise = precision(dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0))
    >>> inverse.round() + 0.0, n_noise
    (array([[25.,  0.],
           [ 0., 25.]]), 0)
    """
    d = len(release.feature_names)
    result = np.zeros((d, d))
    if release.noisy_sum is None:
        raise needs_mean()
    if not (np.diag(release.covariance) > 0.0).any():
        return result, d
    standardized = Standardized.of(release, range(d), by_deviation=False)
    kept = standardized.stands_out
    scaled = standardized.directions[kept] / standardized.scale  # in the table's units
    block = np.ix_(standardized.features, standardized.features)
    result[block] = (scaled.T / standardized.eigenvalues[kept]) @ scaled
    return result, d - int(kept.sum())


def comparisons_of(release: Moments, features: Sequence[int]) -> FloatArray:
    """Return the comparisons that each feature counts as, shape (k,)."""
    # All k levels of a column add up to one: together they are k − 1.
    result, chosen = np.ones(len(features)), np.asarray(features)
    for block in Constraints.of(release.schema, mean=True).blocks:
        inside, size = (chosen >= block.start) & (chosen < block.stop), block.stop - block.start
        if block.complete and size > 1 and inside.sum() == size:
            result[inside] = 1.0 - 1.0 / size
    return result


def without_redundant_levels(release: Moments, columns: Sequence[str] | None) -> list[int]:
    """Drop the most frequent level of every column whose levels add up to one."""
    chosen = chosen_features(release, columns)
    shares = release.mean
    for block in Constraints.of(release.schema, mean=True).blocks:
        whole = set(range(block.start, block.stop))
        if block.complete and whole <= set(chosen):
            chosen.remove(block.start + int(first_largest(shares[block.features])))
    return chosen


def independent_features(release: Moments, columns: Sequence[str] | None, *, word: str = "columns") -> list[int]:
    """Return the features named, in their order and without redundant levels; by default all."""
    named = None if columns is None else named_features(release, columns, word=word)
    kept = without_redundant_levels(release, columns)
    return kept if named is None else [index for index in named if index in kept]
