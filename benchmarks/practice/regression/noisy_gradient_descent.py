"""Noisy gradient descent for least squares on all rows at a time (Bassily, Smith & Thakurta 2014; Abadi et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.practice.regression.vector_noise import vector_noise
from dpmoments.privacy.budget import PrivacyBudget

FloatArray = npt.NDArray[np.floating]


def clipped_gradient(
    rows: FloatArray, norms: FloatArray, target: FloatArray, weights: FloatArray, clip: float
) -> FloatArray:
    """Σ over the rows of (xᵀw − y)x, each shortened to norm ``clip``; shape (k, m) for weights of m runs.

    One row more or less moves it by ``clip`` at most, at any weights.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
    norms : ndarray of shape (n,)
        Of the rows.
    target : ndarray of shape (n,)
    weights : ndarray of shape (k, m)
    """
    residuals = rows @ weights
    residuals -= target[:, None]
    largest = np.divide(clip, norms, out=np.full_like(norms, np.inf), where=norms > 0.0)[:, None]
    np.clip(residuals, -largest, largest, out=residuals)
    return rows.T @ residuals


@dataclass(frozen=True)
class NoisyGradientDescent:
    """w ← w − (η/n)(Σ clipped gradients + noise), from 0, T times; the last w.

    Attributes
    ----------
    steps : int
        T; every step has an equal share of the budget.
    clip : float
    rate : float
        η, in units of 1/λ₁(XᵀX/n).
    """

    steps: int
    clip: float
    rate: float

    def fits(
        self,
        rows: FloatArray,
        target: FloatArray,
        budget: PrivacyBudget,
        runs: int,
        rng: np.random.Generator,
        largest_eigenvalue: float,
    ) -> FloatArray:
        """Weights of independent runs, shape (k, runs); add-remove.

        n and λ₁(XᵀX), ``largest_eigenvalue``, are the table's own and not paid for. In single precision, which
        takes half the time.
        """
        rows, target = rows.astype(np.float32), target.astype(np.float32)
        norms = np.linalg.norm(rows, axis=1)
        weights = np.zeros((rows.shape[1], runs), dtype=np.float32)
        for _ in range(self.steps):
            gradient = clipped_gradient(rows, norms, target, weights, self.clip)
            gradient += vector_noise(weights.shape, self.clip, budget, 1.0 / self.steps, rng)
            weights -= np.float32(self.rate / largest_eigenvalue) * gradient
        return weights.astype(np.float64)
