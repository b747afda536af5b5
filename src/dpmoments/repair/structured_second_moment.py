"""The structured repair of a second moment that was released without a mean."""

from __future__ import annotations

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import NoiseLaw
from dpmoments.repair.levels import level_shares
from dpmoments.repair.linear_constraints import CellVariances, NoisySums, implied_count
from dpmoments.repair.structured import structured_moments
from dpmoments.schema.constraints import Constraints

__all__ = ["possible_second_moment", "structured_second_moment"]

LARGEST_SHARE = 0.5
LARGEST_NOISE = 2.0
"""With more numeric columns than this share of the features, or more noise than so many rows for each row, the spectral repair
is kept."""
ROUNDS = 30
NEGLIGIBLE = 1e-4
"""Alternating projections at most, and the negative eigenvalues that they may leave, in units of the diagonal's roots."""


def structured_second_moment(
    gram: FloatArray, count: float | None, noise: NoiseLaw, constraints: Constraints, whole: FloatArray
) -> FloatArray:
    """The Gram matrix Σuuᵀ of a table that a noisy one, released alone, can be of; rows not moved.

    Level counts are on its diagonal, and a complete block holds the number of rows and the sum of every feature: with those it is
    the repair of count, mean and Gram matrix. Without a complete block, with mostly numeric columns, or with little budget, the
    spectral repair is made possible instead: about 0 the direction of the mean stands out of the noise, and the margins are worth
    less than that.

    Parameters
    ----------
    gram : ndarray of shape (d, d)
        In column units.
    count : float or None
        Where it was released, or is public.
    noise : NoiseLaw
    constraints : Constraints
    whole : ndarray of shape (d, d)
        The Gram matrix after the spectral repair, in column units.

    Returns
    -------
    ndarray of shape (d, d)
    """
    d = constraints.n_features
    scale = 1.0 if constraints.row_norm is None else constraints.row_norm
    variances = CellVariances.of(noise, scale)
    implied = implied_count(gram, variances, constraints)
    n = max(1.0, (implied or 0.0) if count is None else count)
    complete = [block for block in constraints.blocks if block.complete]
    free = list(constraints.free)
    outweighed = len(free) > LARGEST_SHARE * d or noise.frobenius_error * scale**2 > LARGEST_NOISE * n
    if not complete or (free and outweighed):
        return possible_second_moment(whole, count, constraints)
    sums, variance = np.zeros(d), np.full(d, np.inf)
    sums[free] = np.mean([whole[block.features, free].sum(axis=0) for block in complete], axis=0)
    variance[free] = variances.off_diagonal
    mean, covariance = structured_moments(
        NoisySums(n, sums, gram, variance), noise, constraints, None, rows_moved=False
    )
    return np.asarray(n * (covariance + np.outer(mean, mean)))


def possible_second_moment(gram: FloatArray, count: float | None, constraints: Constraints) -> FloatArray:
    """A Gram matrix near a given one that is positive semi-definite, with counts that a table can have.

    Levels of one column have no rows in common; joint counts are between 0 and the lesser of the two counts; the sum of a feature
    over the rows of a level is within the feature's bounds times their number. Alternating projections onto such matrices and
    onto the positive semi-definite ones; what then is left, −λ as the least eigenvalue in units of the diagonal's roots, is
    mended by scaling the cells of counts off the diagonal by 1/(1 + λ) (towards 0, which a column whose bounds leave 0 out does
    not allow: there the bounds hold nearly).

    Examples
    --------
    >>> from dpmoments import Categorical, Schema
    >>> constraints = Constraints.of(Schema(Categorical("region", ["north", "south"], missing="zero")), mean=False)
    >>> possible_second_moment(np.array([[40.0, -3.0], [-3.0, -1.0]]), None, constraints)
    array([[40.,  0.],
           [ 0.,  0.]])
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
    rows = np.where(counted, diagonal, 0.0)[None, :]
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
    for _ in range(ROUNDS):
        eigenvalues, eigenvectors = np.linalg.eigh(possible / units)
        if eigenvalues[0] >= -NEGLIGIBLE:
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
    """bound · rows; an infinite bound times no row is 0."""
    return np.where(rows > 0.0, bound * np.where(rows > 0.0, rows, 1.0), 0.0)
