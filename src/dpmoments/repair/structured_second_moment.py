"""The structured repair of a second moment that was released without a mean."""

from __future__ import annotations

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.noise_law import NoiseLaw
from dpmoments.repair.completed_levels import level_shares
from dpmoments.repair.linear_constraints import CellVariances, NoisySums, implied_count
from dpmoments.repair.structured import structured_moments
from dpmoments.schema.constraints import Constraints

__all__ = ["possible_second_moment", "structured_second_moment"]


def structured_second_moment(
    gram: FloatArray, count: float | None, noise: NoiseLaw, constraints: Constraints, whole: FloatArray
) -> FloatArray:
    """The Gram matrix Σuuᵀ of a table that a noisy one, released alone, can be of; rows not moved.

    Level counts are on its diagonal, and a complete block holds the sum of every feature (Σ_l G_cl = Σu_c), and, with no count
    released, the number of rows: with those, the repair is that of count, mean and Gram matrix. Without a complete block
    the spectral repair is made possible.

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
    if not any(block.complete for block in constraints.blocks):
        return possible_second_moment(whole, count, constraints)
    scale = 1.0 if constraints.row_norm is None else constraints.row_norm
    implied = implied_count(gram, CellVariances.of(noise, scale), constraints)
    n = max(1.0, (implied or 0.0) if count is None else count)
    unknown = NoisySums(n, np.zeros(d), gram, np.full(d, np.inf))
    mean, covariance = structured_moments(unknown, noise, constraints, None, rows_moved=False)
    return np.asarray(n * (covariance + np.outer(mean, mean)))


def possible_second_moment(gram: FloatArray, count: float | None, constraints: Constraints) -> FloatArray:
    """A Gram matrix near a given one that is positive semi-definite, with counts that a table can have.

    Levels of one column have no rows in common; joint counts are between 0 and the lesser of the two counts; the sum of a feature over
    the rows of a level is within the feature's bounds times their number. Cells are moved there, and all cells off the diagonal are
    then scaled by 1/(1 + λ), −λ the least eigenvalue in units of the diagonal's roots.

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
        flags = list(constraints.flags)
        diagonal[flags] = np.minimum(diagonal[flags], count)
    counted = np.zeros(d, dtype=bool)
    counted[list(constraints.flags)] = True
    for block in constraints.blocks:
        counted[block.features] = True
    # Cell (i, j) of a counted j is the sum of u_i over the rows that j counts.
    rows = np.where(counted, diagonal, 0.0)[None, :]
    least = np.where(counted[None, :], _times(constraints.lower[:, None], rows), -np.inf)
    most = np.where(counted[None, :], _times(constraints.upper[:, None], rows), np.inf)
    possible = np.clip(gram, np.maximum(least, least.T), np.minimum(most, most.T))
    for block in constraints.blocks:
        possible[block.features, block.features] = 0.0
    np.fill_diagonal(possible, diagonal)
    roots = np.sqrt(diagonal)
    factor = np.where(roots > 0.0, 1.0 / np.where(roots > 0.0, roots, 1.0), 0.0)
    lack = max(0.0, -float(np.linalg.eigvalsh(possible * np.outer(factor, factor))[0]))
    possible[:, diagonal == 0.0] = possible[diagonal == 0.0, :] = 0.0
    possible = possible / (1.0 + lack)
    np.fill_diagonal(possible, diagonal)
    return np.asarray((possible + possible.T) / 2.0)


def _times(bound: FloatArray, rows: FloatArray) -> FloatArray:
    """bound · rows; an infinite bound times no row is 0."""
    return np.where(rows > 0.0, bound * np.where(rows > 0.0, rows, 1.0), 0.0)
