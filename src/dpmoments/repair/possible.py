"""One repair: moments of a possible table near noisy ones, in the coordinates in which noise is isotropic.

Equations of levels and Booleans hold exactly; a covariance of two columns is its posterior mean under one prior for each pair of
kinds, joined with the spectral repair for two singles; the result is the nearest positive semi-definite matrix in units of
variance plus noise (``docs/evidence/derivations/standardized.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair.posterior import posterior_mean, posterior_variance
from dpmoments.repair.spectral import SpectralNoise, bulk_and_outlier_eigenvalues
from dpmoments.schema.constraints import Constraints, LevelBlock

_HALF = 20.0
"""Number of singles at which the spectral repair has half the weight of the two …"""
_TURN = 0.15
"""… if the noise of a correlation is far below this."""
_SMALLEST = 0.05
"""Smallest variance of a number that its prior holds possible, in noise SDs of a covariance."""
_LEAST_OF_FLAG = 0.002
_NUMBER, _FLAG, _LEVEL = 1, 2, 3
"""Kinds of features; the product identifies a pair of kinds."""


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Noisy count, mean and second moment about a center, in column units, with the size of their noise."""

    count: float
    center: FloatArray  # (d,)
    mean: FloatArray  # (d,), about the center
    square: FloatArray  # (d, d), E[(u − center)(u − center)ᵀ]
    mean_variances: FloatArray  # (d,), of the noise on `mean`
    noise: FloatArray  # (d,): an entry i ≠ j of `square` has the noise variance noise_i · noise_j

    @classmethod
    def of(
        cls, count: float, total: FloatArray, gram: FloatArray, center: FloatArray, law: NoiseLaw, units: FloatArray
    ) -> NoisyMoments:
        """Return them for sums in encoded units; ``units`` are column units in one of those."""
        d = len(total)
        on_diagonal = law.variance(np.arange(1, d + 1)[:, None], np.ones((d, 1, 1)))
        noise = np.sqrt(on_diagonal / 2.0) * units**2 / count
        variances = law.sum_variances * (units / count) ** 2
        squares = gram / count * np.outer(units, units)
        return cls(count, center * units, total / count * units, squares, variances, noise)


def possible_moments(
    count: float,
    total: FloatArray,
    gram: FloatArray,
    law: NoiseLaw,
    constraints: Constraints,
    center: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and Gram matrix about the center, in encoded units, of a possible table near noisy moments."""
    units = constraints.units
    origin = np.zeros_like(total) if center is None else center
    noisy = NoisyMoments.of(count, total, gram, origin, law, units)
    mean = _possible_mean(noisy, constraints)
    covariance = _possible_covariance(noisy, mean, law, constraints)
    about = (mean - noisy.center) / units
    return about, count * (covariance / np.outer(units, units) + np.outer(about, about))


def _possible_mean(noisy: NoisyMoments, constraints: Constraints) -> FloatArray:
    """Return means about 0: singles within bounds, shares of levels by their sums and by the squares of their block."""
    mean = np.clip(noisy.center + noisy.mean, constraints.lower, constraints.upper)
    for block in constraints.blocks:
        at = block.features
        middle, shares = noisy.center[at], noisy.center[at] + noisy.mean[at]
        # E(u − c)² = c² + p(1 − 2c): the diagonal of the block is a second answer for its shares
        slope = 1.0 - 2.0 * middle
        tells = np.abs(slope) > 1e-9
        other = np.divide(np.diag(noisy.square)[at] - middle**2, slope, out=np.zeros_like(slope), where=tells)
        if block.complete:
            other += (1.0 - other.sum()) / block.size
        of_sum = noisy.mean_variances[at]
        of_square = np.where(tells, 2.0 * noisy.noise[at] ** 2, math.inf) / np.where(tells, slope, 1.0) ** 2
        weight = of_sum / np.maximum(of_sum + of_square, 1e-300)
        weight[~tells] = 0.0
        mean[at] = _on_simplex((1.0 - weight) * shares + weight * other, complete=block.complete)
    return mean


def _on_simplex(shares: FloatArray, *, complete: bool) -> FloatArray:
    """Return the nearest shares that are 0 or more and add up to 1, or to at most 1."""
    positive = np.maximum(shares, 0.0)
    if not complete and positive.sum() <= 1.0:
        return positive
    ordered = np.sort(shares)[::-1]
    excess = (np.cumsum(ordered) - 1.0) / np.arange(1, len(ordered) + 1)
    return np.asarray(np.maximum(shares - excess[np.flatnonzero(ordered > excess)[-1]], 0.0))


def _possible_covariance(noisy: NoisyMoments, mean: FloatArray, law: NoiseLaw, constraints: Constraints) -> FloatArray:
    d = constraints.n_features
    kind, column = np.full(d, _NUMBER), np.arange(d)
    flags = list(constraints.flags)
    kind[flags] = _FLAG
    for block in constraints.blocks:
        kind[block.features], column[block.features] = _LEVEL, block.start
    about = mean - noisy.center
    raw = noisy.square - np.outer(about, about)
    variances = _number_variances(noisy, mean, constraints, np.diag(raw))
    variances[flags] = np.maximum(1.0 - mean[flags] ** 2, _LEAST_OF_FLAG)
    result = raw.copy()
    np.fill_diagonal(result, variances)
    for block in constraints.blocks:
        shares = mean[block.features]
        result[block.features, block.features] = np.diag(shares) - np.outer(shares, shares)
    variances = np.maximum(np.diag(result), 1e-9).copy()

    # pairs of columns: posterior means, and the spectral repair for two singles
    i, j = np.triu_indices(d, 1)
    others = column[i] != column[j]
    i, j = i[others], j[others]
    of_noise = noisy.noise[i] * noisy.noise[j]
    of_noise = of_noise + about[i] ** 2 * noisy.mean_variances[j] + about[j] ** 2 * noisy.mean_variances[i]
    entries, scales, kinds = result[i, j], np.sqrt(variances[i] * variances[j]), kind[i] * kind[j]
    for pair in np.unique(kinds):
        at = kinds == pair
        entries[at] = posterior_mean(entries[at], of_noise[at], scales[at])
    singles = int((kind != _LEVEL).sum())
    if singles > 1:
        numbers = kind != _LEVEL
        of_correlation = math.exp(float(np.log(np.maximum(noisy.noise[numbers], 1e-300) / variances[numbers]).mean()))
        weight = singles / (singles + _HALF) / (1.0 + (of_correlation / _TURN) ** 2)
        spectral = _spectral(result, noisy, law, constraints, kind)
        two = (kind[i] != _LEVEL) & (kind[j] != _LEVEL)
        entries = np.where(two, (1.0 - weight) * entries + weight * spectral[i, j], entries)
    result[i, j] = result[j, i] = entries

    for block in constraints.blocks:
        if block.complete:  # covariances with a column's levels add up to 0
            outside = np.ones(d, dtype=bool)
            outside[block.features] = False
            rows = result[block.features][:, outside]
            rows = rows - rows.mean(axis=0)
            result[np.ix_(np.flatnonzero(~outside), np.flatnonzero(outside))] = rows
            result[np.ix_(np.flatnonzero(outside), np.flatnonzero(~outside))] = rows.T
    return _nearest_definite(result, noisy.noise)


def _number_variances(
    noisy: NoisyMoments, mean: FloatArray, constraints: Constraints, noisy_variances: FloatArray
) -> FloatArray:
    """Return variances with those of numbers at their posterior, in units of their noise, within what bounds allow."""
    result = np.maximum(noisy_variances, 0.0)
    numbers = np.array(constraints.free, dtype=np.intp)
    most = (constraints.upper[numbers] - mean[numbers]) * (mean[numbers] - constraints.lower[numbers])
    most = np.where(np.isfinite(most), np.maximum(most, 0.0), np.inf)
    unit = np.maximum(noisy.noise[numbers], 1e-300)
    signal = noisy_variances[numbers] / unit
    largest = np.full(len(numbers), max(float(signal.max(initial=0.0)), 1.0) * 2.0)
    found = posterior_variance(signal, np.full(len(numbers), math.sqrt(2.0)), largest) * unit
    result[numbers] = np.minimum(found, np.maximum(most, 1e-12))
    return result


def _contrasts(size: int) -> FloatArray:
    """Return k − 1 orthonormal rows that add up to 0."""
    result = np.zeros((size - 1, size))
    for j in range(1, size):
        result[j - 1, :j], result[j - 1, j] = 1.0, -j
        result[j - 1] /= math.sqrt(j * (j + 1))
    return result


def _spectral(
    covariance: FloatArray, noisy: NoisyMoments, law: NoiseLaw, constraints: Constraints, kind: IntegerArray
) -> FloatArray:
    """Return the covariance after the spectral repair, in coordinates of equal noise."""
    d = constraints.n_features
    singles = np.flatnonzero(kind != _LEVEL)
    least = float(noisy.noise[noisy.noise > 0.0].min(initial=1.0))
    size = np.sqrt(np.maximum(noisy.noise, least))
    parts, at = [], 0
    to_equal = np.zeros((len(singles) + sum(b.size - b.complete for b in constraints.blocks), d))
    to_equal[np.arange(len(singles)), singles] = 1.0 / size[singles]
    at = len(singles)
    for block in constraints.blocks:
        rows = (
            _rows_of(block) / size[block.start] * math.sqrt(max(1.0 - 1.0 / block.size, 0.0) if block.complete else 1.0)
        )
        to_equal[at : at + len(rows), block.features] = rows
        at += len(rows)
        parts.append(rows)
    carried = np.zeros((len(to_equal) + 1, d + 1))
    carried[0, 0], carried[1:, 1:] = 1.0, to_equal * constraints.units
    spectral = SpectralNoise.of(law.carried(carried))
    eigenvalues, vectors = np.linalg.eigh(to_equal @ covariance @ to_equal.T)
    repaired = bulk_and_outlier_eigenvalues(eigenvalues * noisy.count, spectral, None) / noisy.count
    back = np.linalg.pinv(to_equal)
    return np.asarray(back @ (vectors * repaired) @ vectors.T @ back.T)


def _rows_of(block: LevelBlock) -> FloatArray:
    return _contrasts(block.size) if block.complete else np.eye(block.size)


def _nearest_definite(covariance: FloatArray, noise: FloatArray) -> FloatArray:
    """Return the nearest positive semi-definite matrix in units of variance plus noise, with the same variances."""
    variances = np.maximum(np.diag(covariance), 0.0)
    units = np.sqrt(np.maximum(variances + noise, 1e-300))
    scaled = covariance / np.outer(units, units)
    eigenvalues, vectors = np.linalg.eigh((scaled + scaled.T) / 2.0)
    if eigenvalues[0] >= 0.0:
        return covariance
    definite = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T
    ratio = np.sqrt(variances / np.maximum(np.diag(definite), 1e-12))
    return np.asarray(definite * np.outer(ratio, ratio))
