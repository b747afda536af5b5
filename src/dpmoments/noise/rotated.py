"""Noise whose cells are independent in other coordinates than those of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.uncorrelated_cells import covariance_of_product, variance_of_functional

__all__ = ["RotatedNoise"]


@dataclass(frozen=True, eq=False)
class RotatedNoise:
    """N = R C Rᵀ on Σ z zᵀ, z = (1, x − c): C is symmetric, of mean 0, and its cells on and above the diagonal are uncorrelated.

    R and the variances are taken from what was released, as if they had been fixed before: where noise is drawn around moments
    that are not known, that is a **linearisation** about the release, good where noise is small beside the moments
    (``docs/derivations/noise-of-runs.md``).

    Attributes
    ----------
    matrix : ndarray of shape (d + 1, m)
        R.
    variances : ndarray of shape (m, m)
        Of the cells of C; symmetric.
    count_is_exact : bool
        Whether the number of rows was known, so that the cell N₀₀ is 0 whatever R C Rᵀ has there.
    about : str
        What the law is conditional on, a sentence.

    Raises
    ------
    ValueError
        If the shapes do not fit, or a number is not finite, or a variance negative.

    Examples
    --------
    >>> law = RotatedNoise(np.eye(3), np.array([[0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]]))
    >>> law.product_covariance(np.array([1.0, 0.0, 2.0]), [1, 2]).tolist()
    [[5.0, 0.0], [0.0, 9.0]]
    >>> round(law.direction_variance(np.array([0.0, 0.6, 0.8])), 9)
    1.0
    """

    matrix: FloatArray
    variances: FloatArray
    count_is_exact: bool = False
    about: str = ""

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.variances.shape != (self.matrix.shape[1],) * 2:
            raise ValueError(
                f"R has shape {self.matrix.shape} and the variances {self.variances.shape}: a row and a column of them for every "
                "column of R are needed"
            )
        if not (np.isfinite(self.matrix).all() and np.isfinite(self.variances).all() and (self.variances >= 0.0).all()):
            raise ValueError("R and the variances of the noise must be finite, and the variances 0 or above")

    def product_covariance(self, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
        """Cov(N b).

        Parameters
        ----------
        vector : ndarray of shape (d + 1,)
            b.
        chosen : sequence of int, optional
            Entries of N b that are wanted (0 is that of the constant); default: all.
        """
        rows = np.arange(len(vector)) if chosen is None else np.asarray(chosen)
        inner = self.matrix.T @ vector
        rotated = self.matrix[rows]
        # R Cov(C v) Rᵀ, v = Rᵀb
        found: FloatArray = rotated @ covariance_of_product(self.variances, inner) @ rotated.T
        places = np.flatnonzero(rows == 0)
        if self.count_is_exact and len(places):
            # (N b)₀ without b₀N₀₀, N₀₀ = rᵀC r
            first = self.matrix[0]
            twice = 2.0 * self.variances
            twice[np.diag_indices(len(first))] /= 2.0
            shared = vector[0] * (rotated @ (first * (twice @ (first * inner))))
            found[places] -= shared
            found[:, places] -= shared[:, None]
            of_count = variance_of_functional(self.variances, np.outer(first, first))
            found[np.ix_(places, places)] += vector[0] ** 2 * of_count
        return found

    def functional_variance(self, weights: FloatArray) -> float:
        """Var(Σ Aᵢⱼ Nᵢⱼ) for a symmetric A of shape (d + 1, d + 1)."""
        if self.count_is_exact:
            weights = weights.copy()
            weights[0, 0] = 0.0
        return variance_of_functional(self.variances, self.matrix.T @ weights @ self.matrix)

    def direction_variance(self, direction: FloatArray) -> float:
        """Var(uᵀN u)/2 for u over z, shape (d + 1,): the variance of a cell off the diagonal, were N alike in all directions."""
        return 0.5 * self.functional_variance(np.outer(direction, direction))
