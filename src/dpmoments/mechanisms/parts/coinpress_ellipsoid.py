"""What CoinPress knows after each step: an ellipsoid that holds nearly all rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.parts.coinpress_schedule import Schedule
from dpmoments.mechanisms.parts.noisy_step import NoisyStep

__all__ = ["Ellipsoid", "StepRules", "run_diagnostics", "spectral_edge"]


SURE = 2.0
"""A variance counts as seen where it is above the noise's spectral edge by more than this many standard deviations of the noise."""


def spectral_edge(n_features: int) -> float:
    """Largest eigenvalue, for large d, of a symmetric normal matrix with standard deviation 1 on its diagonal: √(2d).

    Off the diagonal the standard deviation is 1/√2. In one dimension the function returns 1.
    """
    return math.sqrt(2.0 * n_features) if n_features > 1 else 1.0


@dataclass(frozen=True, slots=True)
class StepRules:
    """Parameters of a run, from public numbers or a noisy count: clipping radius, ridge and schedule."""

    n_rows: float
    radius: float
    sampling_ridge: float
    failure: float
    schedule: Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """The map w = linear·(x − center) of rows x; if the bounds hold, E[w wᵀ] ⪯ I.

    Attributes
    ----------
    center : ndarray of shape (d,)
    linear : ndarray of shape (d, d)
        Invertible; not symmetric from the second step on.
    seen : ndarray of shape (d, d)
        Not definite: earlier steps saw that Cov(w) ⪰ seen, but for their noise.
    held : ndarray of shape (d, d)
        Positive semi-definite: directions are enlarged no further than if Cov(w) ⪰ held, since their rows would be clipped.
    """

    center: FloatArray
    linear: FloatArray
    seen: FloatArray
    held: FloatArray

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
        linear, unit = root / math.sqrt(largest), np.eye(n_features)
        return cls(np.zeros(n_features), linear, -unit, 0.0 * unit if held is None else linear @ held @ linear.T)

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

    def floored(self, release: NoisyStep, n_rows: float, floor: float) -> Ellipsoid:
        """The next ellipsoid: eigenvalues below ``floor`` times the noise's spectral edge are raised to it.

        The noise hides smaller variances. The rescaling enlarges these directions, so that a later step can resolve them.
        Clipping only takes away, so what a step saw above its noise bounds the covariance from below for good: a direction that a
        later step finds smaller has lost rows to the clip. It is not enlarged again but reduced, to where these rows fit.
        """
        covariance, center = self.estimate(release, n_rows)
        d = len(center)
        edge = spectral_edge(d) * release.gram_scale / n_rows
        sure = (math.sqrt(2.0 * d) + SURE) * release.gram_scale / n_rows
        if release.sum is not None:  # the noise e of m̂ is in m̂m̂ᵀ as m̂eᵀ + em̂ᵀ
            sure += float(np.linalg.norm(release.sum)) / n_rows * (math.sqrt(d) + SURE) * release.sum_scale / n_rows
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        resolved = np.maximum(eigenvalues, floor * edge)
        outer = (eigenvectors * resolved) @ eigenvectors.T
        seen = upper(covariance - sure * np.eye(d), self.seen)
        held = upper(self.held, self._clipped(covariance, edge, floor))
        outer = upper(upper(outer, self.seen), held)
        values, vectors = np.linalg.eigh(outer)
        step = vectors.T / np.sqrt(values)[:, None]
        return Ellipsoid(
            center, step @ self.linear, step @ seen @ step.T, step @ held @ step.T
        )

    def _clipped(self, covariance: FloatArray, edge: float, floor: float) -> FloatArray:
        """Where ``seen`` is above the covariance by more than the noise: the scale at which the rows that were clipped fit.

        If a share p of rows at distance s makes up the variance ps² of a direction, ℓ or more, and they were clipped to
        the radius γ, then λ = pγ² is measured: s²/γ² ≥ ℓ/λ.
        """
        excess, vectors = np.linalg.eigh(self.seen - covariance - edge * np.eye(len(covariance)))
        lost = vectors[:, excess > 0.0]
        known = np.einsum("ij,ik,kj->j", lost, self.seen, lost)
        measured = np.maximum(np.einsum("ij,ik,kj->j", lost, covariance, lost), floor * edge)
        matrix: FloatArray = (lost * (known / measured)) @ lost.T
        return matrix

    def ridged(self, release: NoisyStep, n_rows: float, sampling: float, failure: float) -> Ellipsoid:
        """The paper's next ellipsoid, from U = Z₊ + (η + ν)I.

        η is ``sampling``; ν bounds the largest eigenvalue of the noise except with probability ``failure``.
        """
        covariance, center = self.estimate(release, n_rows)
        bound = math.sqrt(2.0 * len(center)) + math.sqrt(2.0 * math.log(2.0 / failure))
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        ridge = sampling + bound * release.gram_scale / n_rows
        step = eigenvectors.T / np.sqrt(np.maximum(eigenvalues, 0.0) + ridge)[:, None]
        return Ellipsoid(center, step @ self.linear, self.seen, self.held)

    def covariance(self, release: NoisyStep, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """The final estimates: covariance of x, with negative eigenvalues set to 0, and mean of x."""
        covariance, center = self.estimate(release, n_rows)
        eigenvalues, eigenvectors = np.linalg.eigh(upper(covariance, self.seen))
        root = np.linalg.solve(self.linear, eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)))
        return root @ root.T, center

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


def upper(first: FloatArray, second: FloatArray) -> FloatArray:
    """A matrix ⪰ both: ``first`` plus the positive part of what ``second`` has above it; ``first`` itself where that is nothing."""
    eigenvalues, eigenvectors = np.linalg.eigh(second - first)
    if eigenvalues[-1] <= 0.0:
        return first
    above = eigenvectors[:, eigenvalues > 0.0] * np.sqrt(eigenvalues[eigenvalues > 0.0])
    total: FloatArray = first + above @ above.T
    return total


def run_diagnostics(steps: list[dict[str, Any]], rules: StepRules, outside: float | None, d: int) -> dict[str, Any]:
    """Ellipsoid of every step, predicted error and warnings; all computed from noisy outputs and public numbers."""
    found: list[str] = []
    final = steps[-1]
    planned = rules.radius**2
    # Rows that obey the bounds have E‖w‖² ≤ d. The limit on ``fill`` is halfway between d and radius², plus four standard
    # deviations of the noise.
    limit = (d + planned) / (2.0 * planned) + 4.0 * final["noise_scale"] * math.sqrt(d) / final["radius"] ** 2
    if (outside is not None and outside > 0.5) or (final["radius"] ** 2 <= planned and final["fill"] > limit):
        found.append(
            "most rows were clipped: they lie far outside the stated bounds (or have very heavy tails); "
            "widen the schema's scale or radius, or eigenvalue_bounds or mean_radius"
        )
    if rules.schedule.scales[-1] > 4.0:
        found.append(
            "the budget is too small for this range of eigenvalues: the smallest ones are lost in the noise "
            "(more rows, a larger rho, or a narrower range)"
        )
    if rules.n_rows < d:
        found.append("there are fewer rows than features: the covariance of the rows is singular, whatever its noise")
    return {
        "steps": steps,
        "predicted_mahalanobis": rules.schedule.predicted_error,
        "share_outside": outside,
        "warnings": found,
    }
