"""What follows from the variances of cells of a symmetric matrix of noise that are uncorrelated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from dpmoments.array_types import FloatArray

__all__ = ["UncorrelatedCells"]


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
        rows = np.arange(len(vector)) if chosen is None else np.asarray(chosen)
        variances = self.cell_variances[rows]
        # two entries of N b share one cell of N
        covariance = variances[:, rows] * np.outer(vector[rows], vector[rows])
        covariance[np.diag_indices(len(rows))] = variances @ vector**2
        return covariance

    def functional_variance(self, weights: FloatArray) -> float:
        """Var(Σ Aᵢⱼ Nᵢⱼ) for a symmetric A of shape (d + 1, d + 1)."""
        squares = self.cell_variances * weights**2
        return float(2.0 * squares.sum() - np.trace(squares))
