"""Output perturbation of ridge regression: the baseline P of Amin et al. 2019, after Chaudhuri, Monteleoni & Sarwate 2011."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from benchmarks.practice.regression.vector_noise import vector_noise
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors

FloatArray = npt.NDArray[np.float64]


def minimiser_sensitivity(penalty: float, bound: float, neighbors: Neighbors) -> float:
    """How far the minimiser of ‖Xw − y‖² + α‖w‖² over ‖w‖ ≤ W moves, rows and targets of norm 1 at most.

    The objective is 2α-strongly convex, so minimisers of two of them are apart by at most ‖∇(difference)‖/(2α), taken at
    either. One row more or less: 2|xᵀw − y|‖x‖ ≤ 2(W + 1), hence (W + 1)/α. A row replaced: (W + 2)/α.
    """
    return (bound + (1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)) / penalty


def constrained_ridge(gram: FloatArray, cross: FloatArray, penalty: float, bound: float) -> FloatArray:
    """The minimiser itself: (G + (α + ν)I)⁻¹c with the least ν ≥ 0 that keeps it within the bound."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    along = vectors.T @ cross
    shrunk = np.maximum(eigenvalues, 0.0) + penalty

    def beyond(multiplier: float) -> float:
        return float(np.linalg.norm(along / (shrunk + multiplier))) - bound

    multiplier = 0.0
    if beyond(0.0) > 0.0:
        multiplier = float(brentq(beyond, 0.0, float(np.linalg.norm(along)) / bound, xtol=1e-14, rtol=1e-13))
    return np.asarray(vectors @ (along / (shrunk + multiplier)))


@dataclass(frozen=True)
class OutputPerturbation:
    """The constrained ridge solution with noise on it.

    Attributes
    ----------
    penalty : float
        α, of the sum over the rows.
    bound : float
        W.
    """

    penalty: float
    bound: float

    def fits(
        self, gram: FloatArray, cross: FloatArray, budget: PrivacyBudget, runs: int, rng: np.random.Generator
    ) -> FloatArray:
        """Weights of independent runs, shape (k, runs); add-remove."""
        exact = constrained_ridge(gram, cross, self.penalty, self.bound)
        sensitivity = minimiser_sensitivity(self.penalty, self.bound, Neighbors.ADD_REMOVE)
        return exact[:, None] + vector_noise((len(cross), runs), sensitivity, budget, 1.0, rng)
