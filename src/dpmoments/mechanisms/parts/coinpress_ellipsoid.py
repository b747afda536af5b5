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
    """

    center: FloatArray
    linear: FloatArray

    @classmethod
    def first(cls, n_features: int, anchor: FloatArray | None, largest: float) -> Ellipsoid:
        """The ellipsoid of the bounds: E[x xᵀ] ⪯ largest·anchor."""
        if anchor is None:
            root = np.eye(n_features)
        else:
            eigenvalues, eigenvectors = np.linalg.eigh(anchor)
            root = (eigenvectors / np.sqrt(eigenvalues)) @ eigenvectors.T
        return cls(np.zeros(n_features), root / math.sqrt(largest))

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
        """
        covariance, center = self.estimate(release, n_rows)
        least = floor * spectral_edge(len(center)) * release.gram_scale / n_rows
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        return self._rescaled(np.maximum(eigenvalues, least), eigenvectors, center)

    def ridged(self, release: NoisyStep, n_rows: float, sampling: float, failure: float) -> Ellipsoid:
        """The paper's next ellipsoid, from U = Z₊ + (η + ν)I.

        η is ``sampling``; ν bounds the largest eigenvalue of the noise except with probability ``failure``.
        """
        covariance, center = self.estimate(release, n_rows)
        bound = math.sqrt(2.0 * len(center)) + math.sqrt(2.0 * math.log(2.0 / failure))
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        ridge = sampling + bound * release.gram_scale / n_rows
        return self._rescaled(np.maximum(eigenvalues, 0.0) + ridge, eigenvectors, center)

    def covariance(self, release: NoisyStep, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """The final estimates: covariance of x, with negative eigenvalues set to 0, and mean of x."""
        covariance, center = self.estimate(release, n_rows)
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
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

    def _rescaled(self, eigenvalues: FloatArray, eigenvectors: FloatArray, center: FloatArray) -> Ellipsoid:
        step = eigenvectors.T / np.sqrt(eigenvalues)[:, None]
        return Ellipsoid(center, step @ self.linear)


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
