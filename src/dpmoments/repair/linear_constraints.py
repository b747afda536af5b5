"""The linear step of the structured repair: noisy sums moved to the nearest that the encoding allows, weighted by the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.terms import NoiseLaw
from dpmoments.schema.constraints import Constraints, LevelBlock


@dataclass(frozen=True, slots=True)
class CellVariances:
    """Mean variances of the noise in column units, on a cell of the Gram matrix on or off its diagonal."""

    diagonal: float
    off_diagonal: float

    @classmethod
    def of(cls, law: NoiseLaw, row_norm: float) -> CellVariances:
        """Those of a law, which is for rows in the unit ball."""
        d = law.n_features
        on = float(law.variance(np.arange(1, d + 1)[:, None], np.ones((d, 1, 1))).sum())
        off = max(law.energy - on, 0.0) / (d * (d - 1)) if d > 1 else on / 2.0
        return cls(diagonal=on / d * row_norm**4, off_diagonal=off * row_norm**4)


@dataclass(frozen=True, slots=True, eq=False)
class NoisySums:
    """Sums over the rows, in column units.

    Attributes
    ----------
    sum : ndarray of shape (d,)
        Σu; entries of infinite variance are not read.
    gram : ndarray of shape (d, d)
        Σuuᵀ.
    sum_variance : ndarray of shape (d,)
        Of the noise on each entry of the sum; infinite where nothing is known of it.
    """

    count: float
    sum: FloatArray
    gram: FloatArray
    sum_variance: FloatArray


def implied_count(gram: FloatArray, variances: CellVariances, constraints: Constraints) -> float | None:
    """The number of rows, from a Gram matrix alone; None without a complete block.

    Each complete block's diagonal adds up to it, and so do the cells of every two complete blocks: averaged by their precisions.

    Examples
    --------
    >>> from dpmoments import Categorical, Schema
    >>> constraints = Constraints.of(Schema(Categorical("region", ["north", "south"])), mean=False)
    >>> implied_count(np.diag([40.0, 60.0]), CellVariances(1.0, 0.5), constraints)
    100.0
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
    """The sums nearest to noisy ones, in the metric of the noise, that satisfy every linear constraint at the given count.

    It is x̂ = x − VAᵀ(AVAᵀ)⁻¹Ax for x all sums and cells, V their variances and A the constraints of
    :class:`~dpmoments.schema.constraints.Constraints`, and takes no linear system to solve: given the sum s, every block of cells
    of a complete block is independent of the others and is corrected in closed form; and what each says of s (its margins) is
    independent of what the others say, so that s is a weighted average (``docs/derivations/repairs.md``).

    Parameters
    ----------
    noisy : NoisySums
        About 0, of rows that were not clipped; its ``sum_variance`` is read for what the sum itself says.

    Returns
    -------
    NoisySums
        With the variances that are left on the sum.

    Examples
    --------
    >>> from dpmoments import Categorical, Schema
    >>> constraints = Constraints.of(Schema(Categorical("region", ["north", "south"])), mean=True)
    >>> noisy = NoisySums(100.0, np.array([41.0, 63.0]), np.array([[39.0, 2.0], [2.0, 61.0]]), np.ones(2))
    >>> found = project(noisy, CellVariances(1.0, 0.5), constraints)
    >>> found.sum, found.gram
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
    """The sum of the rows from all that says something of it, and its variances."""
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


def _precision(variance: float) -> float:
    """1/variance; where there is no noise, so much that what has some does not matter beside it."""
    return 0.0 if math.isinf(variance) else 1.0 / max(variance, 1e-200)
