"""The law of noise R C Rᵀ, and of runs that state a model, computed in the plain way from whole matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.base.values import FloatArray
from dpmoments.moments.models import WithOwnCount
from dpmoments.papers.models import InverseNormalModel, LastStepModel, WishartModel


@dataclass(frozen=True, eq=False)
class RotatedNoise:
    """N = R C Rᵀ on Σ z zᵀ, z = (1, x − c), C symmetric of uncorrelated cells; N₀₀ is 0 where the number of rows was known."""

    matrix: FloatArray
    variances: FloatArray
    count_is_exact: bool = False

    def covariance(self, weights: FloatArray) -> FloatArray:
        """Cov(Σ Aᵢⱼ Nᵢⱼ, Σ Bᵢⱼ Nᵢⱼ) for symmetric A, B in ``weights``, shape (functionals, d + 1, d + 1)."""
        weights = np.array(weights)
        if self.count_is_exact:
            weights[:, 0, 0] = 0.0
        inner = self.matrix.T @ weights @ self.matrix
        halved = (
            self.variances - np.diag(np.diag(self.variances)) / 2.0
        )  # each cell beside the diagonal stands there twice
        return np.asarray(2.0 * np.einsum("pij,qij,ij->pq", inner, inner, halved))

    def product_covariance(self, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
        """Cov(N b), or of some of its entries."""
        units = np.eye(len(vector))
        weights = np.array([np.outer(unit, vector) for unit in (units if chosen is None else units[list(chosen)])])
        return self.covariance((weights + weights.transpose(0, 2, 1)) / 2.0)


def plain_law(release: Any, model: WithOwnCount) -> RotatedNoise | None:
    if isinstance(model, WishartModel):
        return _of_draw(release, model)
    if isinstance(model, LastStepModel):
        return _of_last_step(release, model)
    if isinstance(model, InverseNormalModel):
        d, square = model.n_features, model.inverse_scale**2
        # (G⁻¹ + Y)⁻¹ − G = −ĜYĜ to first order
        gram, cells = release.noisy_gram, _symmetric_cells(d, square)
        of_sum = 0.0 if model.sum_scale is None else model.sum_scale**2
        return _beside(_count_variance(model), of_sum, gram, cells)
    return None


def _of_draw(release: Any, model: WishartModel) -> RotatedNoise | None:
    """W = Σ^½(I + C)Σ^½, with Σ for its own draw W: any root does, since the law of C is that of all its rotations."""
    if not model.subtracted:
        return None
    beyond = model.degrees - model.dimension - 3.0
    if model.inverse and beyond <= 0.0:
        return None
    d, constant = model.n_features, bool(model.augmentation)
    drawn = release.noisy_gram + model.padding * np.eye(d)
    if constant:
        if release.noisy_sum is None:
            return None
        beside = model.augmentation * release.noisy_sum
        drawn = np.block([[np.array([[model.corner]]), beside[None, :]], [beside[:, None], drawn]])
    cells = _symmetric_cells(len(drawn), 2.0 / (beyond if model.inverse else model.degrees))
    eigenvalues, vectors = np.linalg.eigh(drawn)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    if not constant:
        return _beside(_count_variance(model), 0.0, root, cells)
    root[0] /= model.augmentation
    return RotatedNoise(root, cells, release.count_is_public)


def _of_last_step(release: Any, model: LastStepModel) -> RotatedNoise:
    """Noise on the moments of (1, w), w = A(x − c), carried to x about the release's center."""
    d = model.n_features
    matrix = np.eye(d + 1)
    matrix[1:, 1:] = np.linalg.inv(model.linear)
    matrix[1:, 0] = model.center if release.center is None else model.center - release.center
    cells = np.zeros((d + 1, d + 1))
    cells[0, 0] = _count_variance(model)
    cells[0, 1:] = cells[1:, 0] = model.sum_scale**2
    cells[1:, 1:] = _symmetric_cells(d, model.gram_scale**2)
    return RotatedNoise(matrix, cells)


def _beside(count_variance: float, sum_variance: float, matrix: FloatArray, cells: FloatArray) -> RotatedNoise:
    """Noise M C Mᵀ on the Gram matrix, with noise of their own on the sum (alike in all directions) and the count."""
    d, m = matrix.shape
    rows = np.zeros((d + 1, 1 + d + m))
    rows[:, : d + 1] = np.eye(d + 1)
    rows[1:, d + 1 :] = matrix
    variances = np.zeros((1 + d + m,) * 2)
    variances[0, 0] = count_variance
    variances[0, 1 : d + 1] = variances[1 : d + 1, 0] = sum_variance
    variances[d + 1 :, d + 1 :] = cells
    return RotatedNoise(rows, variances)


def _symmetric_cells(size: int, diagonal: float) -> FloatArray:
    """Variances of symmetric noise whose law all rotations leave: half as large off the diagonal."""
    cells = np.full((size, size), 0.5 * diagonal)
    np.fill_diagonal(cells, diagonal)
    return cells


def _count_variance(model: WithOwnCount) -> float:
    return model.count_scale**2 * (2.0 if model.count_is_laplace else 1.0)
