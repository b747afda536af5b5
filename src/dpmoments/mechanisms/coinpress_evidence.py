"""What earlier steps of CoinPress say of later ones: rows that a clip took away were once seen.

Clipping only takes away from E[w wᵀ], so what a step saw, less its noise, bounds the covariance from below for good. A
direction that a later step finds smaller has lost rows to the clip: it must not be enlarged again. The reasons are in
``docs/derivations/coinpress.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import BoolArray, FloatArray

__all__ = ["Evidence", "Observation", "upper"]

SURE = 2.0
"""A variance counts as seen where it is this many standard deviations of the noise above the noise's spectral edge."""
VISIBLE = 0.75
"""A direction above this fraction of the noise's spectral edge, on average over the steps before, is not enlarged further."""
STEPS_BEFORE = 2
"""How many steps are remembered."""
RESOLVED = 0.5
"""Only directions of less measured variance than this can have lost most of their rows."""


def upper(first: FloatArray, second: FloatArray) -> FloatArray:
    """A matrix ⪰ both: ``first`` plus the positive part of ``second − first``; ``first`` itself where that is nothing."""
    eigenvalues, eigenvectors = np.linalg.eigh(second - first)
    if eigenvalues[-1] <= 0.0:
        return first
    above = eigenvectors[:, eigenvalues > 0.0] * np.sqrt(eigenvalues[eigenvalues > 0.0])
    total: FloatArray = first + above @ above.T
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What one step measured, in the coordinates of the present one.

    Attributes
    ----------
    covariance : ndarray of shape (d, d)
        Noisy; not above Cov(w) but for its noise.
    noise : ndarray of shape (d, d)
        vᵀ·noise·v is the standard deviation of vᵀ·covariance·v.
    """

    covariance: FloatArray
    noise: FloatArray

    @classmethod
    def now(cls, covariance: FloatArray, noise: float) -> Observation:
        """The present step's."""
        return cls(covariance, noise * np.eye(len(covariance)))

    @property
    def bound(self) -> FloatArray:
        """A lower bound on Cov(w)."""
        matrix: FloatArray = self.covariance - (math.sqrt(2.0 * len(self.covariance)) + SURE) * self.noise
        return matrix

    def moved(self, step: FloatArray) -> Observation:
        """The same after w ← step·w."""
        return Observation(step @ self.covariance @ step.T, step @ self.noise @ step.T)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Observations of earlier steps, the last one first."""

    observations: tuple[Observation, ...] = ()

    def raised(self, covariance: FloatArray) -> FloatArray:
        """The covariance, not below what the last step saw."""
        return upper(covariance, self.observations[0].bound) if self.observations else covariance

    def resolved(self, directions: FloatArray) -> BoolArray:
        """Of the columns of ``directions``, those in which the two last steps saw variance above their noise, shape (k,)."""
        if len(self.observations) < STEPS_BEFORE:
            return np.full(directions.shape[1], False)
        least = VISIBLE * math.sqrt(2.0 * len(directions))
        seen = [_forms(directions, one.covariance) / _forms(directions, one.noise) for one in self.observations]
        together: BoolArray = np.mean(seen, axis=0) > least
        return together

    def held(self, now: Observation) -> FloatArray:
        """Positive semi-definite: what the covariance is to be taken for at least, where rows were clipped; 0 where none were."""
        if not self.observations:
            return np.zeros_like(now.covariance)
        before, edge = self.observations[0], math.sqrt(2.0 * len(now.covariance))
        excess, vectors = np.linalg.eigh(before.bound - now.covariance - edge * now.noise)
        lost = vectors[:, excess > 0.0]
        # Variance ps² of rows at distance s, now measured as λ = pγ²: at the scale √(ps²/λ) they fit into the clip.
        measured = np.maximum(_forms(lost, now.covariance), 0.5 * edge * _forms(lost, now.noise))
        matrix: FloatArray = (lost * (_forms(lost, before.covariance) / measured)) @ lost.T
        return matrix

    def moved(self, step: FloatArray, now: Observation) -> Evidence:
        """With the present step's observation, after w ← step·w."""
        return Evidence(tuple(one.moved(step) for one in (now, *self.observations)[:STEPS_BEFORE]))


def _forms(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """vᵀ·matrix·v for every column v."""
    forms: FloatArray = np.einsum("ij,ij->j", vectors, matrix @ vectors)
    return forms
