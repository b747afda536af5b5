"""Structured repair: constraints of the encoding, and shrinkage of weak dependence.

Derivation: ``docs/evidence/derivations/repairs.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair.levels import CompletedLevels, IndexArray, level_shares, possible_covariance, possible_mean
from dpmoments.repair.spectral import SpectralNoise, bulk_and_outlier_eigenvalues
from dpmoments.schema.constraints import Constraints, LevelBlock


@dataclass(frozen=True, slots=True)
class CellVariances:
    """Noise variances of Gram entries, in column units.

    An entry of features i and j has ``off_diagonal`` · q_i q_j, one on the diagonal ``diagonal`` · q_i². ``relative`` holds q;
    None where all are 1. Features of one column have the same.
    """

    diagonal: float
    off_diagonal: float
    relative: FloatArray | None = None

    @classmethod
    def of(cls, law: NoiseLaw, row_norm: float, relative: FloatArray | None = None) -> CellVariances:
        """Compute mean ones from a noise distribution, which is for rows in the unit ball."""
        d = law.n_features
        on = float(law.variance(np.arange(1, d + 1)[:, None], np.ones((d, 1, 1))).sum())
        off = max(law.energy - on, 0.0) / (d * (d - 1)) if d > 1 else on / 2.0
        return cls(on / d * row_norm**4, off * row_norm**4, relative)

    def each(self, size: int) -> FloatArray:
        """Return q of all features, shape (size,)."""
        return np.ones(size) if self.relative is None else self.relative

    def of_block(self, block: LevelBlock) -> float:
        """Return q of a column's levels."""
        return 1.0 if self.relative is None else float(self.relative[block.start])


def relative_noise(constraints: Constraints) -> FloatArray | None:
    """Return q, or None if columns have equal shares of the unit ball."""
    # Noise is isotropic there. Weights and typical ranges make the shares differ.
    scale = 1.0 if constraints.row_norm is None else constraints.row_norm
    relative = (constraints.units / scale) ** 2
    return None if np.ptp(relative) <= _ROUNDING_OF_UNITS else relative


_ROUNDING_OF_UNITS = 1e-9
"""Maximum difference between q of columns with equal shares."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Noisy count, sum Σu and Gram matrix Σuuᵀ, in column units.

    ``sum_variance`` is the noise variance of each entry of the sum; an entry with infinite variance is not read.
    """

    count: float
    sum: FloatArray
    gram: FloatArray
    sum_variance: FloatArray


def implied_count(gram: FloatArray, variances: CellVariances, constraints: Constraints) -> float | None:
    """Estimate the row count from the Gram matrix, or return None without a complete block."""
    # The diagonal of each complete block, and the cells of every two of them, add up to it; averaged by precision.
    weighted = weight = 0.0
    complete = [block for block in constraints.blocks if block.complete]
    for index, block in enumerate(complete):
        own = variances.of_block(block)
        precision = _precision(block.size * variances.diagonal * own**2)
        weighted += precision * float(np.diag(gram)[block.features].sum())
        weight += precision
        for other in complete[:index]:
            precision = _precision(block.size * other.size * variances.off_diagonal * own * variances.of_block(other))
            weighted += precision * float(gram[block.features, other.features].sum())
            weight += precision
    return weighted / weight if complete else None


def project(noisy: NoisySums, variances: CellVariances, constraints: Constraints) -> NoisySums:
    """Return the nearest sums that satisfy every linear constraint (about 0, rows not clipped).

    It is x̂ = x − VAᵀ(AVAᵀ)⁻¹Ax, where x holds all sums and cells, V their variances and A the constraints. No linear system
    is solved: given the sum s, the blocks of a complete column are independent and corrected in closed form, and their margins
    are independent estimates of s, so that s is a weighted average (``docs/evidence/derivations/repairs.md``).
    """
    count, gram = noisy.count, noisy.gram.copy()
    complete = [block for block in constraints.blocks if block.complete]
    total, variance = _sums(noisy, variances, constraints, complete)
    for block in constraints.blocks:
        gram[block.features, block.features] = np.diag(total[block.features])
    for flag in constraints.flags:
        gram[flag, flag] = count
    known = np.isfinite(variance)
    for index, block in enumerate(complete):
        inside = block.features
        outside = known.copy()
        for other in complete:
            outside[other.features] = False
        rows = np.flatnonzero(outside)
        gram[rows, inside] += ((total[rows] - gram[rows, inside].sum(axis=1)) / block.size)[:, None]
        gram[inside, rows] = gram[rows, inside].T
        for other in complete[:index]:
            cells = gram[inside, other.features]
            cells = cells + (total[inside] - cells.sum(axis=1))[:, None] / other.size
            cells = cells + (total[other.features] - cells.sum(axis=0))[None, :] / block.size
            gram[inside, other.features] = cells
            gram[other.features, inside] = cells.T
    return replace(noisy, sum=total, gram=gram, sum_variance=variance)


def _sums(
    noisy: NoisySums, variances: CellVariances, constraints: Constraints, complete: list[LevelBlock]
) -> tuple[FloatArray, FloatArray]:
    """Return the precision-weighted sum of the rows, and its variances."""
    d = constraints.n_features
    precision = _precisions(noisy.sum_variance)
    weighted = noisy.sum * precision
    on_diagonal = np.zeros(d, dtype=bool)
    for block in constraints.blocks:
        on_diagonal[block.features] = True
    relative = variances.each(d)
    weight = _precisions(variances.diagonal * relative**2)
    weighted[on_diagonal] += (weight * np.diag(noisy.gram))[on_diagonal]
    precision[on_diagonal] += weight[on_diagonal]
    for block in complete:
        beside = block.size * variances.off_diagonal * variances.of_block(block)
        weight = _precisions(beside * relative)
        outside = np.ones(d, dtype=bool)
        outside[block.features] = False
        weighted[outside] += weight[outside] * noisy.gram[outside, block.features].sum(axis=1)
        precision[outside] += weight[outside]
    with np.errstate(divide="ignore"):
        variance = np.asarray(1.0 / precision)
    total = np.where(precision > 0.0, weighted / np.where(precision > 0.0, precision, 1.0), 0.0)
    for block in complete:
        levels = total[block.features]
        total[block.features] = levels + (noisy.count - levels.sum()) / block.size
        variance[block.features] *= 1.0 - 1.0 / block.size
    return total, variance


# Noise that was added about the public center of levels, 1/k for each of k: other cells are independent there.


def center_of_levels(constraints: Constraints) -> FloatArray:
    """Return the center in column units, shape (d,); 0 for features outside blocks."""
    center = np.zeros(constraints.n_features)
    for block in constraints.blocks:
        center[block.features] = 1.0 / (block.size if block.complete else max(block.size, 2))
    return center


@dataclass(frozen=True, slots=True)
class CenteredVariances:
    """Noise variances of cells, sums and count about the center of levels, in column units."""

    cells: CellVariances
    of_sum: float
    of_count: float

    @classmethod
    def of(cls, law: NoiseLaw, constraints: Constraints) -> CenteredVariances | None:
        """Return them if the noise was added about the center of levels, else None."""
        complete = [block for block in constraints.blocks if block.complete]
        m = constraints.n_features - len(complete)
        if not constraints.blocks or not m:
            return None
        scale = 1.0 if constraints.row_norm is None else constraints.row_norm
        about = law.about(-center_of_levels(constraints) / constraints.units)
        if not about.energy < law.energy * (1.0 - _ENERGY_ROUNDING):
            return None
        start = np.zeros(constraints.n_features + 1)
        start[0] = 1.0
        of_sums = about.covariance_of_product(start)[1:, 1:]
        of_all = float(np.trace(of_sums))
        left = [float(of_sums[block.features, block.features].sum()) for block in complete]
        if max(left, default=0.0) > _VARIANCE_ROUNDING * of_all:
            return None
        cell = about.energy / (m * (m + 1)) * scale**4
        return cls(
            CellVariances(2.0 * cell, cell, relative_noise(constraints)), of_all / m * scale**2, law.count_variance
        )


_ENERGY_ROUNDING = 1e-6
_VARIANCE_ROUNDING = 1e-9
"""Variance of the sum over a complete block, as a fraction of all, that is rounding."""


def project_about_center(noisy: NoisySums, variances: CenteredVariances, constraints: Constraints) -> NoisySums:
    """Return the nearest sums about the center of levels that satisfy every linear constraint."""
    # The number of rows is weighted with the traces of complete blocks and the squares of flags, and the sums with
    # their own blocks, by precision. All other cells are free (`docs/evidence/derivations/public-center.md`).
    cell, total, gram = variances.cells.off_diagonal, noisy.sum.copy(), noisy.gram.copy()
    count = _count_about_center(noisy, variances, constraints)
    variance = variances.of_sum * variances.cells.each(len(total))
    for block in constraints.blocks:
        own = variances.cells.of_block(block)
        of_sum, of_block = _precision(variances.of_sum * own), _precision(2.0 * cell * own**2)
        inside, k = block.features, block.size
        squared = gram[inside, inside]
        if block.complete:
            share = max(1.0 - 2.0 / k, 0.0)
            squares = np.diag(squared) - np.trace(squared) / k
            precision = of_sum + share * of_block
            levels = (of_sum * (total[inside] - total[inside].mean()) + of_block * squares) / precision
            if k <= 2:
                levels = total[inside] - total[inside].mean()
            centering = np.eye(k) - 1.0 / k
            total[inside], variance[inside] = levels, (1.0 - 1.0 / k) / precision
            gram[inside, inside] = centering @ np.diag(levels + count / k) @ centering
            continue
        c = 1.0 / max(k, 2)
        rest = squared - count * c**2
        weighted = of_sum * (total[inside] + count * c) + of_block * (np.diag(rest) - 2.0 * c * rest.sum(axis=1))
        alone = of_sum + of_block * (1.0 - 4.0 * c + 2.0 * c**2 * k)
        together = 2.0 * c**2 * of_block
        levels = (weighted - together * weighted.sum() / (alone + together * k)) / alone
        total[inside] = levels - count * c
        variance[inside] = (1.0 - together / (alone + together * k)) / alone
        gram[inside, inside] = np.diag(levels) - c * (levels[:, None] + levels[None, :]) + count * c**2
    for flag in constraints.flags:
        gram[flag, flag] = count
    return NoisySums(count, total, gram, variance)


def _count_about_center(noisy: NoisySums, variances: CenteredVariances, constraints: Constraints) -> float:
    """Return the precision-weighted number of rows, at least 1 and its standard deviation."""
    cell = variances.cells.off_diagonal
    precision = _precision(variances.of_count)
    weighted = precision * noisy.count
    for block in constraints.blocks:
        if block.complete and block.size > 1:
            share = 1.0 - 1.0 / block.size
            one = share**2 * _precision(2.0 * cell * (block.size - 1) * variances.cells.of_block(block) ** 2)
            weighted += one / share * float(np.trace(noisy.gram[block.features, block.features]))
            precision += one
    relative = variances.cells.each(len(noisy.sum))
    for flag in constraints.flags:
        one = _precision(2.0 * cell * float(relative[flag]) ** 2)
        weighted += one * float(noisy.gram[flag, flag])
        precision += one
    return max(1.0, weighted / precision, math.sqrt(1.0 / precision))


def _precision(variance: float) -> float:
    """Return 1/variance, or a huge finite weight for a value without noise."""
    return 0.0 if math.isinf(variance) else 1.0 / max(variance, _MIN_VARIANCE)


def _precisions(variances: FloatArray) -> FloatArray:
    return 1.0 / np.maximum(variances, _MIN_VARIANCE)


_MIN_VARIANCE = 1e-200


_SPREADS = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8])
"""Standard deviations τ_k of the prior's components, in correlations."""
_STEPS = 40
"""Number of EM steps."""
_MIN_SPREAD = 1e-40
"""Minimum prior variance, in squared correlations: an entry without noise is kept."""


def _posterior_moments(
    cells: FloatArray, noise_variances: FloatArray, scales: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return E[θ_i | x_i] and Var(θ_i | x_i) by empirical Bayes."""
    # x_i ~ N(θ_i, s_i²) and θ_i ~ c_i·Σ_k π_k N(0, τ_k²), with π of maximum likelihood. The prior is in correlations:
    # with c = √(v_i v_j) most pairs have one near 0, and the cells show how many do not (Robbins 1956; mixture of
    # Stephens 2017). Each mean is between 0 and x_i; it is 0 if c is.
    means, variances = np.zeros_like(cells), np.zeros_like(cells)
    possible = scales > 0.0
    if not possible.any():
        return means, variances
    x = cells[possible, None]
    noise = noise_variances[possible, None]
    prior = (scales[possible, None] * _SPREADS) ** 2
    spread = np.maximum(noise + prior, _MIN_SPREAD * scales[possible, None] ** 2)
    log_likelihood = -0.5 * (np.log(spread) + x**2 / spread)
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    weights = np.full(len(_SPREADS), 1.0 / len(_SPREADS))
    for _ in range(_STEPS):
        weights = weights * (likelihood.T @ (1.0 / (likelihood @ weights))) / len(x)
    posterior = likelihood * weights / (likelihood @ weights)[:, None]
    kept = prior / spread
    mean = (posterior * kept).sum(axis=1) * x[:, 0]
    means[possible] = mean
    variances[possible] = (posterior * (kept * noise + (kept * x) ** 2)).sum(axis=1) - mean**2
    return means, np.maximum(variances, 0.0)


_WEIGHT_OF_WHOLE = 0.5
"""Weight of the spectral repair of all features for single ones, times their fraction."""
_WEIGHT_OF_WHOLE_ON_LEVELS = 0.05
"""Weight of the spectral repair of all features in entries of two levels."""
_WEIGHT_OF_PRIOR = 0.5
"""Weight of the posterior mean for a flag and a single feature (else spectral repair)."""

_FRACTIONS = 6.0
"""Noise SDs by which a Boolean column's squares fall short if it must hold fractions."""
_MOVED = 0.1
"""Fraction by which clipping rows to a ball may reduce those squares."""
_ROUNDING = 1e-4
"""Fraction by which rounding rows to a lattice may reduce those squares."""

_LEVEL, _FLAG, _SINGLE = 2, 3, 5
"""Kinds of feature; the product identifies a pair of kinds."""

_MIN_UNCERTAINTY = 1e-280
"""Minimum sum of variances to divide by, so that quotients stay finite."""
_SWEEPS = 5
"""Number of sweeps over all columns, each correcting its own margins."""


def structured_moments(
    noisy: NoisySums,
    noise: NoiseLaw,
    constraints: Constraints,
    whole: FloatArray | None,
    *,
    rows_moved: bool,
    center: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return mean (about 0) and covariance of a possible table near the noisy moments.

    All are in column units; ``noise`` is for rows in the unit ball about the same center. ``whole`` is the covariance after the
    spectral repair of all features, or None without a mean. If ``rows_moved`` (rows were clipped, levels and Booleans too),
    no linear constraint holds exactly and none is used; inequalities are.

    1. Linear constraints (:func:`~dpmoments.repair.structured.project`; if the noise was added about the center of levels,
       :func:`~dpmoments.repair.structured.project_about_center`).
    2. Means clipped to their bounds, shares of levels projected onto the simplex.
    3. Entries of two levels, or of a level and a single feature: posterior means, with one prior for each pair of kinds.
    4. Entries of single features (numeric or Boolean): spectral repair, of these only and of all features.
    5. The nearest possible covariance (:func:`~dpmoments.repair.levels.possible_covariance`).
    """
    scale = 1.0 if constraints.row_norm is None else constraints.row_norm
    variances = CellVariances.of(noise, scale, relative_noise(constraints))
    origin = np.zeros(constraints.n_features) if center is None else center
    projected = not rows_moved and not origin[~_is_free(constraints)].any()
    centered = CenteredVariances.of(noise, constraints) if projected else None
    if centered is not None:
        of_levels = center_of_levels(constraints)
        variances, origin = centered.cells, origin + of_levels
        noisy = _about(noisy, of_levels)
    constraints = _without_fractions(noisy, noise, variances, constraints, origin, _MOVED if rows_moved else _ROUNDING)
    if centered is not None:
        noisy = project_about_center(noisy, centered, constraints)
    elif projected:
        noisy = project(noisy, variances, constraints)
    from_origin = noisy.sum / noisy.count
    mean = possible_mean(_steadied(origin + from_origin, noisy, constraints), constraints)
    levels = CompletedLevels.of(constraints, mean)
    about = mean if center is None else from_origin
    of_single = _spectral(noisy, levels.single, about, noise, scale)
    spread = levels.extended(noisy.gram / noisy.count - np.outer(from_origin, from_origin))
    of_cells = levels.extended_variances(
        _cell_variances(noisy, from_origin, variances, constraints, projected=projected)
    )
    deviations = _deviations(np.diag(of_single), levels)
    estimate, uncertainty = _shrunk_to_independence(spread, of_cells, of_single, deviations, levels)
    if whole is not None:
        d = constraints.n_features
        of_levels = np.logical_and.outer(levels.is_level[:d], levels.is_level[:d])
        weight = np.where(of_levels, _WEIGHT_OF_WHOLE_ON_LEVELS, _WEIGHT_OF_WHOLE * len(levels.single) / d)
        block = np.ix_(levels.single, levels.single)
        weight[block] = np.maximum(weight[block], _lost_in_noise(math.sqrt(noise.energy) * scale**2, noisy.count))
        estimate[:d, :d] += weight * (whole - estimate[:d, :d])
    _make_margins_agree(estimate, uncertainty, levels)
    return mean, possible_covariance(estimate, levels)


def _is_free(constraints: Constraints) -> BoolArray:
    """Return True for features that are neither levels nor flags, shape (d,)."""
    result = np.zeros(constraints.n_features, dtype=bool)
    result[list(constraints.free)] = True
    return result


def _about(noisy: NoisySums, center: FloatArray) -> NoisySums:
    """Return sums as sums about a center, which is from their own."""
    cross = np.outer(center, noisy.sum - noisy.count / 2.0 * center)
    return replace(noisy, sum=noisy.sum - noisy.count * center, gram=noisy.gram - cross - cross.T)


def _without_fractions(
    noisy: NoisySums,
    noise: NoiseLaw,
    variances: CellVariances,
    constraints: Constraints,
    origin: FloatArray,
    tolerance: float,
) -> Constraints:
    """Drop Boolean columns that must hold fractions (mean square far below 1)."""
    flags = np.array(constraints.flags, dtype=np.intp)
    if not len(flags):
        return constraints
    about = origin[flags]
    squares = noisy.gram[flags, flags] + 2.0 * about * noisy.sum[flags] + noisy.count * about**2
    of_sums = about**2 * noisy.sum_variance[flags]
    of_squares = variances.diagonal * variances.each(len(origin))[flags] ** 2
    variance = of_squares + 4.0 * of_sums + (1.0 - about**2) ** 2 * noise.count_variance
    whole = noisy.count - squares <= _FRACTIONS * np.sqrt(variance) + 1.0 + tolerance * noisy.count
    return replace(constraints, flags=tuple(flags[whole].tolist()))


def _lost_in_noise(noise: float, count: float) -> float:
    """Return the weight of the spectral repair of all features for single ones, 1 − n/‖N‖_F."""
    return 1.0 - count / noise if noise > count else 0.0


def _steadied(mean: FloatArray, noisy: NoisySums, constraints: Constraints) -> FloatArray:
    """Shrink shares of levels towards their average by what noise explains (James & Stein 1961)."""
    steadied = mean.copy()
    for block in constraints.blocks:
        shares, variance = mean[block.features], float(noisy.sum_variance[block.features].mean()) / noisy.count**2
        deviations = shares - shares.mean()
        observed, dimensions = float(deviations @ deviations), block.size - 1
        if dimensions > 2 and observed > 0.0:
            kept = max(0.0, 1.0 - (dimensions - 2) * variance / observed)
            steadied[block.features] = shares.mean() + kept * deviations
    return steadied


def _spectral(noisy: NoisySums, single: IndexArray, about: FloatArray, noise: NoiseLaw, scale: float) -> FloatArray:
    """Return the spectral repair of the single features only, as a covariance."""
    # In column units although weighted columns differ in noise there: columns are more alike in them, and where noise is
    # isotropic a weighted number loses more by the pooling of eigenvalues than its noise is smaller.
    if not len(single):
        return np.zeros((0, 0))
    mean = about[single]
    spread = noisy.gram[np.ix_(single, single)] - noisy.count * np.outer(mean, mean)
    eigenvalues, eigenvectors = np.linalg.eigh(spread / scale**2)
    law = SpectralNoise.of(noise.about(-about / scale).restricted(single.tolist()))
    repaired = bulk_and_outlier_eigenvalues(eigenvalues, law, noisy.count * len(single) / scale**2)
    return np.asarray((eigenvectors * repaired) @ eigenvectors.T * (scale**2 / noisy.count))


def _cell_variances(
    noisy: NoisySums, mean: FloatArray, variances: CellVariances, constraints: Constraints, *, projected: bool
) -> FloatArray:
    """Return noise variances of the covariance entries, shape (d, d)."""
    left = np.ones(constraints.n_features)
    for block in constraints.blocks:
        if block.complete and projected:
            left[block.features] = 1.0 - 1.0 / block.size
    of_means = np.outer(mean**2, noisy.sum_variance)
    relative = variances.each(constraints.n_features)
    of_cells = variances.off_diagonal * np.outer(left, left) * np.outer(relative, relative)
    return np.asarray((of_cells + of_means + of_means.T) / noisy.count**2)


def _deviations(variances: FloatArray, levels: CompletedLevels) -> FloatArray:
    """Return standard deviations, shape (d + incomplete blocks,)."""
    result = np.zeros(len(levels.is_level))
    result[levels.single] = variances
    for column in levels.columns:
        result[column.features] = column.shares * (1.0 - column.shares)
    result[levels.flags] = levels.flag_variances
    return np.asarray(np.sqrt(np.maximum(result, 0.0)))


def _shrunk_to_independence(
    spread: FloatArray, of_cells: FloatArray, of_single: FloatArray, deviations: FloatArray, levels: CompletedLevels
) -> tuple[FloatArray, FloatArray]:
    """Return posterior means and variances of entries with a level or flag, else ``of_single``."""
    size = len(levels.is_level)
    estimate, uncertainty = np.zeros((size, size)), np.zeros((size, size))
    estimate[np.ix_(levels.single, levels.single)] = of_single
    kind = np.where(levels.is_level, _LEVEL, _SINGLE)
    kind[levels.flags] = _FLAG
    column_of = np.arange(size)
    for column in levels.columns:
        column_of[column.features] = column.features[0]
    first, second = np.triu_indices(size, 1)
    pair = np.where(column_of[first] == column_of[second], 0, kind[first] * kind[second])
    for cells in (_LEVEL * _LEVEL, _LEVEL * _FLAG, _LEVEL * _SINGLE, _FLAG * _FLAG, _FLAG * _SINGLE):
        i, j = first[pair == cells], second[pair == cells]
        result, variance = _posterior_moments(spread[i, j], of_cells[i, j], deviations[i] * deviations[j])
        if cells in (_FLAG * _FLAG, _FLAG * _SINGLE):
            result = _WEIGHT_OF_PRIOR * result + (1.0 - _WEIGHT_OF_PRIOR) * estimate[i, j]
        estimate[i, j] = estimate[j, i] = result
        uncertainty[i, j] = uncertainty[j, i] = variance
    return estimate, uncertainty


def _make_margins_agree(estimate: FloatArray, uncertainty: FloatArray, levels: CompletedLevels) -> None:
    """Make covariances with a column's levels sum to 0, in place; uncertain ones change most."""
    for _ in range(_SWEEPS):
        for column in levels.columns:
            inside = column.features
            weights = uncertainty[:, inside]
            total = weights.sum(axis=1, keepdims=True)
            sums = estimate[:, inside].sum(axis=1, keepdims=True)
            cells = estimate[:, inside] - weights * np.divide(
                sums, total, out=np.zeros_like(sums), where=total > _MIN_UNCERTAINTY
            )
            estimate[:, inside] = cells
            estimate[inside, :] = cells.T


# The structured repair of a second moment that was released without a mean.

_MAX_SHARE = 0.5
_MAX_NOISE = 2.0
"""Noise in rows per row beyond which the spectral repair is kept.

It is also kept with more numeric columns.
"""
_ROUNDS = 30
_NEGLIGIBLE = 1e-4
"""Negative eigenvalues that the projections may leave, in units of the diagonal's roots."""


def structured_second_moment(
    gram: FloatArray, count: float | None, noise: NoiseLaw, constraints: Constraints, whole: FloatArray
) -> FloatArray:
    """Return the Gram matrix Σuuᵀ of a possible table near a noisy one released without a mean.

    A complete block holds the row count and every feature's sum, so the matrix is repaired as if count and mean had been
    released. Without a complete block, with mostly numeric columns or with little budget, ``whole`` (the spectral repair) is
    made possible instead: about 0 the spectral repair gains more than the margins do, since the direction of the mean is above
    the noise floor.
    """
    d = constraints.n_features
    scale = 1.0 if constraints.row_norm is None else constraints.row_norm
    variances = CellVariances.of(noise, scale, relative_noise(constraints))
    implied = implied_count(gram, variances, constraints)
    n = max(1.0, (implied or 0.0) if count is None else count)
    complete = [block for block in constraints.blocks if block.complete]
    free = list(constraints.free)
    outweighed = len(free) > _MAX_SHARE * d or math.sqrt(noise.energy) * scale**2 > _MAX_NOISE * n
    if not complete or (free and outweighed):
        return possible_second_moment(whole, count, constraints)
    sums, variance = np.zeros(d), np.full(d, np.inf)
    sums[free] = np.mean([whole[block.features, free].sum(axis=0) for block in complete], axis=0)
    variance[free] = variances.off_diagonal * variances.each(d)[free]
    mean, covariance = structured_moments(
        NoisySums(n, sums, gram, variance), noise, constraints, None, rows_moved=False
    )
    return np.asarray(n * (covariance + np.outer(mean, mean)))


def possible_second_moment(gram: FloatArray, count: float | None, constraints: Constraints) -> FloatArray:
    """Return a possible positive semi-definite Gram matrix near a given one.

    Levels of one column share no rows; joint counts are between 0 and the smaller count; a feature's sum over the rows of a
    level is within its bounds times their number. Alternating projections onto these and the positive semi-definite matrices;
    a remaining eigenvalue −λ, in units of the diagonal's roots, is removed by scaling cells of counts off the diagonal by
    1/(1 + λ) (if bounds exclude 0 they then hold only nearly).
    """
    d = constraints.n_features
    diagonal = np.maximum(np.diag(gram), 0.0)
    if count is not None:
        for block in constraints.blocks:
            shares = level_shares(diagonal[block.features] / count, complete=block.complete)
            diagonal[block.features] = count * shares
    counted = np.zeros(d, dtype=bool)
    for block in constraints.blocks:
        counted[block.features] = True
    # Cell (i, j) of a counted j is the sum of u_i over the rows that j counts.
    rows = diagonal[None, :]
    least = np.where(counted[None, :], _times(constraints.lower[:, None], rows), -np.inf)
    most = np.where(counted[None, :], _times(constraints.upper[:, None], rows), np.inf)
    least, most = np.maximum(least, least.T), np.minimum(most, most.T)
    for block in constraints.blocks:
        least[block.features, block.features] = most[block.features, block.features] = 0.0
    np.fill_diagonal(least, diagonal)
    np.fill_diagonal(most, np.where(counted, diagonal, np.inf))
    least[:, diagonal == 0.0] = least[diagonal == 0.0, :] = most[:, diagonal == 0.0] = most[diagonal == 0.0, :] = 0.0
    roots = np.where(diagonal > 0.0, np.sqrt(diagonal), 1.0)
    units = np.outer(roots, roots)
    possible = np.clip(gram, least, most)
    for _ in range(_ROUNDS):
        eigenvalues, eigenvectors = np.linalg.eigh(possible / units)
        if eigenvalues[0] >= -_NEGLIGIBLE:
            break
        definite = (eigenvectors * np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
        possible = np.clip(definite * units, least, most)
    lack = max(0.0, -float(np.linalg.eigvalsh(possible / units)[0]))
    share = lack / (1.0 + lack)
    free = np.ix_(constraints.free, constraints.free)
    mixed = (1.0 - share) * possible
    mixed[free] = possible[free]
    np.fill_diagonal(mixed, np.where(counted, diagonal, (1.0 + share) * np.diag(possible)))
    return np.asarray((mixed + mixed.T) / 2.0)


def _times(bound: FloatArray, rows: FloatArray) -> FloatArray:
    """Return bound · rows; an infinite bound times no rows is 0."""
    return np.where(rows > 0.0, bound * np.where(rows > 0.0, rows, 1.0), 0.0)
