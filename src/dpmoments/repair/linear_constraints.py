"""Projection of noisy sums onto the encoding's linear constraints, weighted by the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.terms import NoiseLaw
from dpmoments.schema.constraints import Constraints, LevelBlock


@dataclass(frozen=True, slots=True)
class CellVariances:
    """Mean noise variance of a Gram entry on and off the diagonal, in column units."""

    diagonal: float
    off_diagonal: float

    @classmethod
    def of(cls, law: NoiseLaw, row_norm: float) -> CellVariances:
        """Compute both from a noise distribution, which is for rows in the unit ball."""
        d = law.n_features
        on = float(law.variance(np.arange(1, d + 1)[:, None], np.ones((d, 1, 1))).sum())
        off = max(law.energy - on, 0.0) / (d * (d - 1)) if d > 1 else on / 2.0
        return cls(diagonal=on / d * row_norm**4, off_diagonal=off * row_norm**4)


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
    """Estimate the row count from the Gram matrix, or return None without a complete block.

    The diagonal of each complete block, and the cells of every two of them, add up to it; averaged by precision.
    """
    weighted = weight = 0.0
    complete = [block for block in constraints.blocks if block.complete]
    for index, block in enumerate(complete):
        precision = _precision(block.size * variances.diagonal)
        weighted += precision * float(np.diag(gram)[block.features].sum())
        weight += precision
        for other in complete[:index]:
            precision = _precision(block.size * other.size * variances.off_diagonal)
            weighted += precision * float(gram[block.features, other.features].sum())
            weight += precision
    return weighted / weight if complete else None


def project(noisy: NoisySums, variances: CellVariances, constraints: Constraints) -> NoisySums:
    """Return the nearest sums that satisfy every linear constraint (about 0, rows not clipped).

    It is x̂ = x − VAᵀ(AVAᵀ)⁻¹Ax, where x holds all sums and cells, V their variances and A the constraints. No linear system
    is solved: given the sum s, the blocks of a complete column are independent and corrected in closed form, and their margins
    are independent estimates of s, so that s is a weighted average (``docs/evidence/derivations/repairs.md``).

    Examples
    --------
    >>> from dpmoments import Categorical, Schema
    >>> constraints = Constraints.of(Schema(Categorical("region", ["north", "south"])), mean=True)
    >>> noisy = NoisySums(100.0, np.array([41.0, 63.0]), np.array([[39.0, 2.0], [2.0, 61.0]]), np.ones(2))
    >>> projected = project(noisy, CellVariances(1.0, 0.5), constraints)
    >>> projected.sum, projected.gram
    (array([39., 61.]), array([[39.,  0.],
           [ 0., 61.]]))
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
    precision = np.array([_precision(value) for value in noisy.sum_variance])
    weighted = np.where(precision > 0.0, noisy.sum, 0.0) * precision
    on_diagonal = np.zeros(d, dtype=bool)
    for block in constraints.blocks:
        on_diagonal[block.features] = True
    weight = _precision(variances.diagonal)
    weighted[on_diagonal] += weight * np.diag(noisy.gram)[on_diagonal]
    precision[on_diagonal] += weight
    for block in complete:
        weight = _precision(block.size * variances.off_diagonal)
        outside = np.ones(d, dtype=bool)
        outside[block.features] = False
        weighted[outside] += weight * noisy.gram[outside, block.features].sum(axis=1)
        precision[outside] += weight
    with np.errstate(divide="ignore"):
        variance = np.where(precision > 0.0, 1.0 / precision, np.inf)
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
        if not about.energy < law.energy * (1.0 - _ROUNDING):
            return None
        start = np.zeros(constraints.n_features + 1)
        start[0] = 1.0
        of_sums = about.covariance_of_product(start)[1:, 1:]
        of_all = float(np.trace(of_sums))
        left = [float(of_sums[block.features, block.features].sum()) for block in complete]
        if max(left, default=0.0) > _NEGLIGIBLE * of_all:
            return None
        cell = about.energy / (m * (m + 1)) * scale**4
        return cls(CellVariances(2.0 * cell, cell), of_all / m * scale**2, law.count_variance)


_ROUNDING = 1e-6
_NEGLIGIBLE = 1e-9
"""Variance of the sum over a complete block, as a fraction of all, that is rounding."""


def project_about_center(noisy: NoisySums, variances: CenteredVariances, constraints: Constraints) -> NoisySums:
    """Return the nearest sums about the center of levels that satisfy every linear constraint.

    The number of rows is weighted with the traces of complete blocks and the squares of flags, and the sums with their own
    blocks, by precision. All other cells are free (``docs/evidence/derivations/public-center.md``).

    Examples
    --------
    >>> from dpmoments import Categorical, Schema
    >>> constraints = Constraints.of(Schema(Categorical("region", ["north", "south"])), mean=True)
    >>> noisy = NoisySums(100.0, np.array([-11.0, 11.0]), np.array([[24.0, -24.0], [-24.0, 24.0]]), np.ones(2))
    >>> variances = CenteredVariances(CellVariances(2.0, 1.0), 1.0, 0.0)
    >>> projected = project_about_center(noisy, variances, constraints)
    >>> projected.sum, projected.gram
    (array([-11.,  11.]), array([[ 25., -25.],
           [-25.,  25.]]))
    """
    cell, total, gram = variances.cells.off_diagonal, noisy.sum.copy(), noisy.gram.copy()
    count = _count_about_center(noisy, variances, constraints)
    variance = np.full(len(total), variances.of_sum)
    of_sum, of_block = _precision(variances.of_sum), _precision(2.0 * cell)
    for block in constraints.blocks:
        inside, k = block.features, block.size
        own = gram[inside, inside]
        if block.complete:
            share = max(1.0 - 2.0 / k, 0.0)
            squares = np.diag(own) - np.trace(own) / k
            precision = of_sum + share * of_block
            levels = (of_sum * (total[inside] - total[inside].mean()) + of_block * squares) / precision
            if k <= 2:
                levels = total[inside] - total[inside].mean()
            centering = np.eye(k) - 1.0 / k
            total[inside], variance[inside] = levels, (1.0 - 1.0 / k) / precision
            gram[inside, inside] = centering @ np.diag(levels + count / k) @ centering
            continue
        c = 1.0 / max(k, 2)
        rest = own - count * c**2
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
            one = share**2 * _precision(2.0 * cell * (block.size - 1))
            weighted += one / share * float(np.trace(noisy.gram[block.features, block.features]))
            precision += one
    for flag in constraints.flags:
        weighted += _precision(2.0 * cell) * float(noisy.gram[flag, flag])
        precision += _precision(2.0 * cell)
    return max(1.0, weighted / precision, math.sqrt(1.0 / precision))


def _precision(variance: float) -> float:
    """Return 1/variance, or a huge finite weight for a value without noise."""
    return 0.0 if math.isinf(variance) else 1.0 / max(variance, 1e-200)
