"""Eigenvectors drawn one after another by the exponential mechanism.

Source: Amin et al. 2019, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import check_one_of, check_probability
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.lattice_noise import count_scale
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.bounds.arguments import Constants, NoiseKind
from dpmoments.papers.bounds.eigenvectors import eigenvector_release_error, largest_noise, released_eigenvector_error
from dpmoments.papers.laws import Directions
from dpmoments.papers.mechanisms.spectral import (
    Calibration,
    SpectralPlan,
    check_options,
    cut_budget,
    projected_cells,
    temperature,
)
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import quadratic_form
from dpmoments.privacy.unit import Neighbors

Allocation = Literal["gaps", "adaptive", "uniform"]

_FAILURE = 0.05
"""Default failure probability β."""


@dataclass(frozen=True)
class IterativeEigenvectorsPlan(SpectralPlan):
    """Calibrated :class:`IterativeEigenvectors`."""

    mechanism: IterativeEigenvectors

    def mean_squares(self, eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
        return projected_cells(eigenvalues, temperatures, variance)

    def draw_directions(
        self, gram: FloatArray, eigenvalues: FloatArray, privacy_filter: PrivacyFilter
    ) -> tuple[FloatArray, list[float]]:
        temperatures = np.zeros(self.rank)
        if self.direction_budget is not None:
            n_paid = min(self.rank, len(gram) - 1)  # the last direction is fixed up to its sign by the others
            weights = self._weights(eigenvalues)[:n_paid]
            parts = self.direction_budget.split(*map(float, weights))
            calibration = self.mechanism.calibration
            temperatures[:n_paid] = [temperature(part, self.neighbors, calibration) for part in parts]
        law = Directions(tuple(temperatures.tolist()), len(gram))
        drawn = privacy_filter.draw("directions", law, gram, quadratic_form(self.neighbors))
        return _orthonormal(drawn), temperatures.tolist()

    def _weights(self, eigenvalues: FloatArray, others: FloatArray | None = None) -> FloatArray:
        """Return weights proportional to the directions' budget shares."""
        d, others = len(eigenvalues), eigenvalues if others is None else others
        if self.mechanism.allocation == "uniform":
            return np.ones(d)
        if self.pure:
            floor = self.eigenvalue_scale * math.log(2.0 * d / self.mechanism.failure)
        else:
            floor = self.eigenvalue_scale * math.sqrt(2.0 * math.log(2.0 * d / self.mechanism.failure))
        importance = eigenvalues + floor
        if self.mechanism.allocation == "gaps":
            below = np.cumsum(others[::-1])[::-1] - others  # sum of the smaller ones
            importance = np.arange(d - 1, -1, -1) * eigenvalues - below + floor
        # Minimizes Σ importance_i/t_i for a given Σ ε_i, ε_i ∝ t_i (pure), or Σ ρ_i, ρ_i ∝ t_i² (zCDP).
        return np.asarray(np.maximum(importance, floor) ** (1.0 / 2.0 if self.pure else 2.0 / 3.0))

    def temperatures_at_least(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Bound the temperatures of a run below, for noisy eigenvalues in [low, high]."""
        # Shape (rank,).
        result = np.zeros(self.rank)
        if self.direction_budget is None:
            return result
        n_paid = min(self.rank, len(low) - 1)
        least, most = self._weights(low, high)[:n_paid], self._weights(high, low)[:n_paid]
        shares = least / (least + (most.sum() - most))
        whole = temperature(self.direction_budget, self.neighbors, self.mechanism.calibration)
        result[:n_paid] = whole * (shares if self.pure else np.sqrt(shares)) * (1.0 - 2.0**-40)
        return result

    def error_bound_on(
        self, eigenvalues: FloatArray, failure: float = _FAILURE, *, constants: Constants = "sharp"
    ) -> float:
        """Bound ‖G − Ĝ‖_F with probability 1 − ``failure``, for these descending eigenvalues of G."""
        # Amin et al. (2019), Theorem 2; `constants` as for `dpmoments.papers.bounds.eigenvector_release_error`.
        kind = self._noise_kind
        slack = self._slack(0.05 * failure)
        reach = largest_noise(self.eigenvalue_scale, len(eigenvalues), 0.25 * failure, kind=kind) + slack
        low, high = np.maximum(eigenvalues - reach, 0.0), eigenvalues + reach
        return eigenvector_release_error(
            eigenvalues,
            self.temperatures_at_least(low, high),
            self.eigenvalue_scale,
            0.7 * failure,
            slack=slack,
            kind=kind,
            constants=constants,
        )

    def released_error_bound(
        self, diagnostics: Mapping[str, Any], failure: float = _FAILURE, *, constants: Constants = "sharp"
    ) -> float:
        """Bound ‖G − Ĝ‖_F from a run's ``diagnostics`` (Amin et al. 2019, Corollary 1)."""
        public = self.shape.n_rows if self.count_is_public else None
        return released_eigenvector_error(
            diagnostics["eigenvalues"],
            diagnostics["temperatures"],
            self.eigenvalue_scale,
            0.95 * failure,
            most=math.inf if public is None else float(public),
            slack=self._slack(0.05 * failure),
            kind=self._noise_kind,
            constants=constants,
        )

    @property
    def _noise_kind(self) -> NoiseKind:
        return "laplace" if self.pure else "gaussian"

    def _slack(self, failure: float) -> float:
        """Bound the other errors of noisy eigenvalues."""
        # Two lattice units, and a clip at a noisy number of rows.
        rounding = 2.0 * math.sqrt(self.shape.n_features) * 4.0**-self.bits
        if self.count_is_public:
            return rounding
        if self.sum_scale is not None:
            return rounding + largest_noise(self.sum_scale, 1, failure, kind=self._noise_kind) + 1.0
        if self.count_loss is None:
            return rounding
        pure = self.count_loss.kind is BudgetKind.PURE
        return (
            rounding
            + largest_noise(count_scale(self.count_loss), 1, failure, kind="laplace" if pure else "gaussian")
            + 1.0
        )


@dataclass(frozen=True)
class IterativeEigenvectors(Mechanism):
    """Release Σ λ̂_i θ̂_i θ̂_iᵀ.

    Noisy eigenvalues, and directions each drawn orthogonal to those before it.

    Direction i has density ∝ exp(t_i θᵀGθ) on the unit vectors orthogonal to the directions before it, and is drawn exactly
    (see :func:`dpmoments.noise.sample_bingham`). Eigenvalues get discrete Laplace (pure ε) or Gaussian (zCDP) noise. The time
    is O(d³).

    **Privacy.** ε-DP or ρ-zCDP by composition of the eigenvalues, each direction, and sum and count if released. A direction's
    budget may depend on the noisy eigenvalues only; the last of d directions is fixed by the others and costs nothing. The
    directions come from a floating-point sampler on the sphere, for which no proof exists at the level of bits: arithmetic
    ``idealized``.

    Parameters
    ----------
    allocation : {"gaps", "adaptive", "uniform"}
        Division of the directions' budget; λ̂ are the noisy eigenvalues and τ is a bound on their noise. ``"uniform"``: equally
        (IT-U). ``"adaptive"``: ε_i ∝ √(λ̂_i + τ) (the paper's Corollary 1, AD). ``"gaps"``: ε_i ∝ √(Σ_{j>i} (λ̂_i − λ̂_j) + τ),
        which minimizes the error to first order. Under zCDP the powers are 2/3, not 1/2.
    rank : int, optional
        Number of directions, and rank of the release. Default: all.
    calibration : {"tight", "paper"}
        ``"paper"``: takes 2 as the sensitivity of the eigenvalues and of θᵀGθ under both relations, which is more noise than ε
        requires; for comparison.
    sum_share : float, optional
        Budget share of the sum of rows (and the count if it is private), if they are released. Default: the share that brings
        the root mean square norm of its noise to n/5, between 0.1 and 0.3; 0.1 if n is private.
    eigenvalue_share : float, optional
        Share of the rest for the eigenvalues. Default: by the same rule, from 0.2 (0.1 under zCDP) to 0.5.
    failure : float
        β: τ bounds the noise on all eigenvalues with probability 1 − β. It affects only the division of the budget.

    Examples
    --------
    >>> plan = IterativeEigenvectors().plan(MomentShape(10, mean=False), PrivacyBudget.pure(1.0), "add_remove")
    >>> plan.rank, round(plan.eigenvalue_scale, 6)
    (10, 5.0)
    """

    allocation: Allocation = "gaps"
    rank: int | None = None
    calibration: Calibration = "tight"
    sum_share: float | None = None
    eigenvalue_share: float | None = None
    failure: float = _FAILURE

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.PURE, BudgetKind.ZCDP})
    summary: ClassVar[str] = (
        "eigenvectors drawn one after another on the sphere; its error grows as √n, that of additive noise does not"
    )
    source: ClassVar[str] = "Amin et al. 2019, Algorithm 1; exact sampler of Kent, Ganeiber & Mardia 2018"

    def __post_init__(self) -> None:
        check_one_of("allocation", self.allocation, ("gaps", "adaptive", "uniform"))
        check_probability("failure", self.failure)
        check_options(self.rank, self.calibration, self.sum_share, self.eigenvalue_share)

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> IterativeEigenvectorsPlan:
        d = shape.n_features
        return IterativeEigenvectorsPlan(
            **cut_budget(
                self,
                shape,
                budget,
                neighbors,
                rank=self.rank,
                n_paid=min(self.rank or d, d - 1),
                calibration=self.calibration,
                sum_share=self.sum_share,
                eigenvalue_share=self.eigenvalue_share,
            )
        )


def _orthonormal(vectors: FloatArray) -> FloatArray:
    """Return the orthonormal columns nearest to those of ``vectors``."""
    # These are orthonormal up to rounding.
    basis, triangle = np.linalg.qr(vectors)
    return np.asarray(basis * np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0))
