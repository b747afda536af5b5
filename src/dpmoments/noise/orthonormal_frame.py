"""Orthonormal frames drawn one vector after another by the exponential mechanism, each orthogonal to those before it.

The plain algorithm (Amin et al. 2019, Algorithm 1) decomposes a matrix at every step, O(d⁴) in all. Here each step works in
the eigenbasis of the matrix restricted to the complement of the vectors drawn so far, and finds the next eigenbasis by the
secular equation in O(d²) (:mod:`dpmoments.noise.eigenvalue_deflation`). Vectors are mapped back a block at a time by matrix
products, and the eigenbasis is computed afresh between blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.eigenvalue_deflation import Deflation, deflate
from dpmoments.noise.sphere import sample_bingham_diagonal, symmetric_part

__all__ = ["OrthonormalFrame", "sample_orthonormal_frame"]


@dataclass(frozen=True, slots=True)
class OrthonormalFrame:
    """Orthonormal vectors in the order they were drawn, and what drawing them took.

    Attributes
    ----------
    vectors : ndarray of shape (d, rank)
        Columns are orthonormal.
    n_proposals : ndarray of shape (rank,), int64
        Proposals made for each vector.
    """

    vectors: FloatArray
    n_proposals: npt.NDArray[np.int64]


def sample_orthonormal_frame(
    matrix: npt.ArrayLike,
    temperatures: npt.ArrayLike,
    rng: np.random.Generator,
    *,
    block_size: int | None = None,
) -> OrthonormalFrame:
    """Draw orthonormal θ_1, …, θ_rank, θ_i with density ∝ exp(t_i θᵀCθ) on the sphere of (θ_1, …, θ_{i−1})^⊥.

    Parameters
    ----------
    matrix : array_like of shape (d, d)
        C: symmetric, finite, definite or not.
    temperatures : array_like of shape (rank,)
        t_i, finite, rank ≤ d. 0 draws uniformly; negative ones favour small eigenvalues. With rank = d the last vector is
        determined up to its sign by the others, whatever its temperature.
    rng : numpy.random.Generator
    block_size : int, optional
        Steps between two fresh eigendecompositions. It affects speed and rounding, not the distribution. By default a
        tenth of the remaining dimensions, at least 16.

    Returns
    -------
    OrthonormalFrame

    Raises
    ------
    ValueError
        If the matrix or the temperatures are not as described.

    Notes
    -----
    By itself this guarantees no privacy: that depends on the temperatures (docs/derivations/iterative_eigenvectors.md).

    O(d³) a full-rank draw, apart from matrix products that cost O(d⁴) with a constant below 1/50.

    Source: Amin et al. (2019), "Differentially private covariance estimation", Algorithm 1.

    Examples
    --------
    >>> frame = sample_orthonormal_frame(np.diag([5.0, 1.0, 0.0]), [40.0, 40.0, 0.0], np.random.default_rng(0))
    >>> np.abs(frame.vectors.T @ frame.vectors - np.eye(3)).max() < 1e-14
    np.True_
    """
    symmetric = symmetric_part(matrix)
    schedule = np.asarray(temperatures, dtype=np.float64)
    d = len(symmetric)
    if schedule.ndim != 1 or schedule.size > d:
        raise ValueError(
            f"temperatures have shape {schedule.shape}: give a vector of at most {d}, one for each eigenvector wanted"
        )
    if not np.isfinite(schedule).all():
        raise ValueError("the temperatures hold NaN or infinity")
    if block_size is not None and block_size < 1:
        raise ValueError(f"block_size={block_size} must be at least 1")

    eigenvalues, basis = _descending(*np.linalg.eigh(symmetric))
    vectors = np.empty((d, schedule.size))
    n_proposals = np.empty(schedule.size, dtype=np.int64)
    done = 0
    while done < schedule.size:
        length = block_size or max(16, eigenvalues.size // 10)
        block = slice(done, min(done + length, schedule.size))
        coordinates, n_proposals[block] = _draw_block(eigenvalues, schedule[block], rng)
        vectors[:, block] = basis @ coordinates
        done = block.stop
        if done < schedule.size:
            eigenvalues, basis = _restrict(eigenvalues, basis, coordinates)
    return OrthonormalFrame(vectors, n_proposals)


def _draw_block(
    eigenvalues: FloatArray, temperatures: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Draw one vector for each temperature; columns are coordinates in the eigenbasis to which ``eigenvalues`` belong."""
    deflations: list[Deflation] = []
    n_proposals = np.empty(temperatures.size, dtype=np.int64)
    for step, temperature in enumerate(temperatures):
        direction, n_proposals[step] = sample_bingham_diagonal(temperature * eigenvalues, None, rng)
        deflations.append(deflate(eigenvalues, direction))
        eigenvalues = deflations[-1].eigenvalues
    # Vector i was drawn in the i-th eigenbasis: carry all later ones back together, one basis at a time.
    coordinates = np.empty((eigenvalues.size, 0))
    for deflation in reversed(deflations):
        coordinates = np.column_stack([deflation.direction, deflation.lift(coordinates)])
    return coordinates, n_proposals


def _restrict(eigenvalues: FloatArray, basis: FloatArray, removed: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues and eigenvectors of the restriction to the complement of the columns of ``removed``."""
    complement = np.linalg.qr(removed, mode="complete").Q[:, removed.shape[1] :]
    restricted = (complement.T * eigenvalues) @ complement
    values, rotation = _descending(*np.linalg.eigh(0.5 * (restricted + restricted.T)))
    return values, basis @ (complement @ rotation)


def _descending(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    return values[::-1].copy(), vectors[:, ::-1].copy()
