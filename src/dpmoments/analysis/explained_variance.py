"""R² of a regression on noisy moments, less what the noise is expected to add to it, and its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.foundation.arrays import FloatArray

__all__ = ["ExplainedVariance"]


@dataclass(frozen=True)
class ExplainedVariance:
    """A share of the target's variance.

    Attributes
    ----------
    share : float
        R², in [0, 1]; 0 where the target's variance is lost in the noise.
    privacy_error, sampling_error : float
        Standard deviations of what noise and sampling do to it.
    degrees_of_freedom : float
        n − k.
    n_rows : float
    """

    share: float
    privacy_error: float
    sampling_error: float
    degrees_of_freedom: float
    n_rows: float

    @classmethod
    def of_population(cls, equations: NormalEquations) -> ExplainedVariance:
        """R² of the population's least squares, where the equations are identified.

        Notes
        -----
        The residual sum of squares of the noisy fit is bᵀM b − gᵀM_AA⁻¹g at the true b, g = (N b)_A: too small by
        tr(M_AA⁻¹ Cov(g)) on average, which is added back. Its error is bᵀN b to first order, and 2 tr((M_AA⁻¹Cov(g))²) is the
        variance of the second.
        """
        return cls._of(
            equations, equations.solution, np.asarray(np.linalg.pinv(equations.gram), dtype=np.float64), times=1.0
        )

    @classmethod
    def of_line(cls, equations: NormalEquations, slopes: FloatArray, penalty: float) -> ExplainedVariance:
        """What a released line explains of the population: for lines that are shrunk, or whose equations are not identified.

        Parameters
        ----------
        equations : NormalEquations
            Encoded rows about the release's centre.
        slopes : ndarray
            Of the encoded features, without the constant.
        penalty : float
            What was added to the diagonal of Σ x xᵀ for it, or would have to be.
        """
        solution, ridge = slopes, penalty * np.eye(len(slopes))
        if equations.with_constant:
            moments = equations.moments
            middle = float(moments[0, -1] - moments[0, 1:-1] @ slopes) / float(moments[0, 0])
            solution = np.concatenate([[middle], slopes])
            ridge = np.diag([0.0, *np.diag(ridge)])
        eigenvalues, vectors = np.linalg.eigh(equations.possible_gram + ridge)
        inverse = (vectors / np.maximum(eigenvalues, max(equations.noise_floor, 1e-300))) @ vectors.T
        return cls._of(equations, solution, inverse, times=2.0)

    @classmethod
    def _of(
        cls, equations: NormalEquations, solution: FloatArray, inverse: FloatArray, *, times: float
    ) -> ExplainedVariance:
        moments, n_rows, k = equations.moments, equations.n_rows, equations.n_regressors
        beyond = np.append(-solution, 1.0)
        of_target = np.zeros(k + 1)
        of_target[-1] = 1.0
        if equations.with_constant:
            of_target[0] = -float(moments[0, -1]) / float(moments[0, 0])
        total = float(of_target @ moments @ of_target)
        degrees = max(n_rows - k, 1.0)
        if total <= 0.0:
            return cls(0.0, math.inf, math.inf, degrees, n_rows)
        product = inverse @ equations.noise_covariance(beyond)
        residual = float(beyond @ moments @ beyond) + times * float(np.trace(product))
        share = min(max(1.0 - residual / total, 0.0), 1.0)
        gradient = (1.0 - share) * np.outer(of_target, of_target) - np.outer(beyond, beyond)
        carried = equations.carry.T @ gradient @ equations.carry / total
        second_order = 2.0 * times * float(np.trace(product @ product)) / total**2
        privacy = equations.noise.functional_variance(carried) + max(second_order, 0.0)
        sampling = 4.0 * share * (1.0 - share) ** 2 / n_rows + 2.0 * (k - equations.with_constant) / n_rows**2
        return cls(share, math.sqrt(privacy), math.sqrt(sampling), degrees, n_rows)

    @property
    def adjusted(self) -> float:
        """1 − (1 − R²)(n − 1)/(n − k)."""
        return 1.0 - (1.0 - self.share) * max(self.n_rows - 1.0, 1.0) / self.degrees_of_freedom

    def interval(self, level: float) -> tuple[float, float]:
        """A confidence interval within [0, 1]."""
        if math.isinf(self.privacy_error):
            return 0.0, 1.0
        reach = float(scipy.special.ndtri(0.5 + 0.5 * level)) * math.hypot(self.privacy_error, self.sampling_error)
        return max(self.share - reach, 0.0), min(self.share + reach, 1.0)
