"""What follows from the variances of cells of a symmetric matrix of noise that are uncorrelated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from dpmoments.foundation.arrays import FloatArray

__all__ = ["UncorrelatedCells", "covariance_of_product", "variance_of_functional"]


def covariance_of_product(variances: FloatArray, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
    """Cov(C b), or that of some entries, for a symmetric C of uncorrelated cells with these variances."""
    rows = np.arange(len(vector)) if chosen is None else np.asarray(chosen)
    of_rows = variances[rows]
    # two entries of C b share one cell of C
    covariance = of_rows[:, rows] * np.outer(vector[rows], vector[rows])
    covariance[np.diag_indices(len(rows))] = of_rows @ vector**2
    return covariance


def variance_of_functional(variances: FloatArray, weights: FloatArray) -> float:
    """Var(Σ Aᵢⱼ Cᵢⱼ) for symmetric A and C, the cells of C uncorrelated with these variances."""
    squares = variances * weights**2
    return float(2.0 * squares.sum() - np.trace(squares))


class UncorrelatedCells(ABC):
    """Noise N on Σ z zᵀ, z = (1, x), whose cells on and above the diagonal are uncorrelated and of mean 0."""

    @property
    @abstractmethod
    def cell_variances(self) -> FloatArray:
        """Variances of the cells, shape (d + 1, d + 1)."""

    def product_covariance(self, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
        """Cov(N b).

        Parameters
        ----------
        vector : ndarray of shape (d + 1,)
            b.
        chosen : sequence of int, optional
            Entries of N b that are wanted (0 is that of the constant); default: all.
        """
        return covariance_of_product(self.cell_variances, vector, chosen)

    def functional_variance(self, weights: FloatArray) -> float:
        """Var(Σ Aᵢⱼ Nᵢⱼ) for a symmetric A of shape (d + 1, d + 1)."""
        return variance_of_functional(self.cell_variances, weights)
