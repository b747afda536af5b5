"""What CoinPress knows after each step: an ellipsoid that holds nearly all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.mechanisms.coinpress_schedule import ClipSquares, Schedule, normal_matrix_norm
from dpmoments.mechanisms.noisy_step import NoisyStep

# What earlier steps of CoinPress say of later ones: rows that a clip took away were once seen.

_SURE = 2.0
"""A variance counts as seen where it is this many standard deviations of the noise above the noise's spectral edge."""
_VISIBLE = 0.75
"""A direction above this fraction of the noise's spectral edge, on average over the steps before, is not enlarged further."""
_STEPS_BEFORE = 2
"""How many steps are remembered."""
_RESOLVED = 0.5
"""Only directions of less measured variance than this can have lost most of their rows."""


def _upper(first: FloatArray, second: FloatArray) -> FloatArray:
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
        matrix: FloatArray = self.covariance - (math.sqrt(2.0 * len(self.covariance)) + _SURE) * self.noise
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
        return _upper(covariance, self.observations[0].bound) if self.observations else covariance

    def resolved(self, directions: FloatArray) -> BoolArray:
        """Of the columns of ``directions``, those in which the two last steps saw variance above their noise, shape (k,)."""
        if len(self.observations) < _STEPS_BEFORE:
            return np.full(directions.shape[1], False)
        least = _VISIBLE * math.sqrt(2.0 * len(directions))
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
        return Evidence(tuple(one.moved(step) for one in (now, *self.observations)[:_STEPS_BEFORE]))


def _forms(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """vᵀ·matrix·v for every column v."""
    forms: FloatArray = np.einsum("ij,ij->j", vectors, matrix @ vectors)
    return forms


def spectral_edge(n_features: int) -> float:
    """Largest eigenvalue, for large d, of a symmetric normal matrix with standard deviation 1 on its diagonal: √(2d).

    Off the diagonal the standard deviation is 1/√2. In one dimension the function returns 1.
    """
    return math.sqrt(2.0 * n_features) if n_features > 1 else 1.0


@dataclass(frozen=True, slots=True)
class StepRules:
    """Parameters of a run, from public numbers or a noisy count.

    Attributes
    ----------
    radius, last_radius : float
        Clipping radius of the steps before the last, and of the last.
    sampling_ridge, failure : float
        η of :meth:`Ellipsoid.ridged`, and the probability that noise exceeds its ν.
    """

    n_rows: float
    radius: float
    last_radius: float
    sampling_ridge: float
    failure: float
    schedule: Schedule

    @classmethod
    def of(cls, n_rows: float, clips: ClipSquares, schedule: Schedule) -> StepRules:
        """The rules of a schedule that was planned with these clips."""
        return cls(n_rows, math.sqrt(clips.early), math.sqrt(clips.last), clips.ridge, clips.failure, schedule)


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """The map w = linear·(x − center) of rows x; if the bounds hold, E[w wᵀ] ⪯ I.

    Attributes
    ----------
    center : ndarray of shape (d,)
    linear : ndarray of shape (d, d)
        Invertible; not symmetric from the second step on.
    evidence : Evidence
        What earlier steps measured.
    held : ndarray of shape (d, d)
        Positive semi-definite: directions are enlarged no further than if Cov(w) ⪰ held, since their rows would be clipped.
    unchecked : ndarray of bool, shape (d,)
        The coordinates of w that were enlarged much since they were last measured, or had lost rows to the clip then; none where
        all did.
    """

    center: FloatArray
    linear: FloatArray
    evidence: Evidence
    held: FloatArray
    unchecked: BoolArray

    @classmethod
    def first(
        cls, n_features: int, anchor: FloatArray | None, largest: float, held: FloatArray | None = None
    ) -> Ellipsoid:
        """The ellipsoid of the bounds: E[x xᵀ] ⪯ largest·anchor; ``held`` for the rows x."""
        if anchor is None:
            root = np.eye(n_features)
        else:
            eigenvalues, eigenvectors = np.linalg.eigh(anchor)
            root = (eigenvectors / np.sqrt(eigenvalues)) @ eigenvectors.T
        linear = root / math.sqrt(largest)
        return cls(
            np.zeros(n_features),
            linear,
            Evidence(),
            np.zeros_like(linear) if held is None else linear @ held @ linear.T,
            np.full(n_features, False),
        )

    def estimate(self, release: NoisyStep, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """Noisy covariance of w, and the centre moved to the noisy mean.

        Noise of variance s² on the entries of the estimated mean m̂ makes E[m̂ m̂ᵀ] too large by s²I. Subtracting m̂ m̂ᵀ from
        the second moment therefore takes off s²I too much, which is added back.
        """
        second_moment = release.gram / n_rows
        if release.sum is None:
            return second_moment, self.center
        mean = release.sum / n_rows
        excess = (release.sum_scale / n_rows) ** 2 * np.eye(len(mean))
        center = self.center + np.linalg.solve(self.linear, mean)
        return second_moment - np.outer(mean, mean) + excess, center

    def floored(self, release: NoisyStep, n_rows: float, floor: float, *, final: bool) -> Ellipsoid:
        """The next ellipsoid: eigenvalues below ``floor`` times the noise's spectral edge are raised to it.

        The noise hides smaller variances. The rescaling enlarges these directions, so that a later step can resolve them.
        Clipping only takes away, so what a step saw above its noise bounds the covariance from below for good: a direction that a
        later step finds smaller has lost rows to the clip. It is not enlarged again but reduced, to where these rows fit.
        """
        covariance, center = self.estimate(release, n_rows)
        now = Observation.now(covariance, self.noise(release, n_rows))
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        least = floor * spectral_edge(len(center)) * release.gram_scale / n_rows
        kept = self.evidence.resolved(eigenvectors)
        if final:  # what noise made too large by less than a factor of two is put right before the last step
            kept &= eigenvalues < _RESOLVED
        outer = (eigenvectors * np.maximum(eigenvalues, np.where(kept, 1.0, least))) @ eigenvectors.T
        held = _upper(self.held, self.evidence.held(now))
        values, vectors = np.linalg.eigh(_upper(self.evidence.raised(outer), held))
        step = vectors.T / np.sqrt(values)[:, None]
        measured = np.einsum("ij,ij->j", vectors, covariance @ vectors)
        unchecked = (values < _RESOLVED) | (measured < _RESOLVED * values)
        return Ellipsoid(
            center,
            step @ self.linear,
            self.evidence.moved(step, now),
            step @ held @ step.T,
            unchecked & ~unchecked.all(),
        )

    def noise(self, release: NoisyStep, n_rows: float) -> float:
        """Standard deviation of the noise on a diagonal entry of :meth:`estimate`."""
        scale = release.gram_scale / n_rows
        if release.sum is None:
            return scale
        # The noise e of m̂ is in m̂m̂ᵀ as m̂eᵀ + em̂ᵀ.
        return math.hypot(scale, 2.0 * float(np.linalg.norm(release.sum)) / n_rows * release.sum_scale / n_rows)

    def ridged(self, release: NoisyStep, n_rows: float, sampling: float, failure: float) -> Ellipsoid:
        """The paper's next ellipsoid, from U = Z₊ + (η + ν)I.

        η is ``sampling``; ν bounds the largest eigenvalue of the noise except with probability ``failure``.
        """
        covariance, center = self.estimate(release, n_rows)
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        ridge = sampling + normal_matrix_norm(len(center), failure) * release.gram_scale / n_rows
        step = eigenvectors.T / np.sqrt(np.maximum(eigenvalues, 0.0) + ridge)[:, None]
        return Ellipsoid(center, step @ self.linear, self.evidence, self.held, self.unchecked)

    def covariance(self, release: NoisyStep, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """The final estimates: covariance of x, with negative eigenvalues set to 0, and mean of x."""
        covariance, center = self.estimate(release, n_rows)
        eigenvalues, eigenvectors = np.linalg.eigh(self.evidence.raised(covariance))
        root = np.linalg.solve(self.linear, eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)))
        return root @ root.T, center

    def half_seen(self, release: NoisyStep, n_rows: float) -> bool:
        """Whether the last step saw far less in an unchecked direction than it had been enlarged to hold, though not nothing.

        Either it varies less than was planned for, or few rows make up its variance, and these were clipped.
        """
        # Directions that are held are at a scale at which their rows fit.
        enlarged = self.unchecked & (np.diag(self.held) < _RESOLVED)
        measured, noise = np.diag(self.estimate(release, n_rows)[0])[enlarged], self.noise(release, n_rows)
        return bool(((measured > 4.0 * noise) & (measured < 0.5 * _RESOLVED)).any())

    def record(self, radius: float, rho: float, release: NoisyStep, n_rows: float) -> dict[str, Any]:
        """The step as plain values: rows were clipped to {x : ‖linear·(x − center)‖ ≤ radius}.

        ``fill`` is the noisy mean of ‖w‖²/radius²: 1 where every row was clipped.
        """
        return {
            "center": self.center.tolist(),
            "linear": self.linear.tolist(),
            "radius": radius,
            "rho": rho,
            "noise_scale": release.gram_scale / n_rows,
            "fill": float(np.trace(release.gram)) / (n_rows * radius**2),
        }
