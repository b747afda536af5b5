"""Gaussian noise on the inverse of the Gram matrix (Sheffet 2015, appendix B)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.base.checks import check_one_of, check_positive
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, finite_numbers
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism, Plan
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.papers.laws import GaussianDraw
from dpmoments.papers.models import InverseNormalModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import Sensitivity, count, inverse_gram_frobenius, row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_MEAN_SHARE = 0.1
"""Budget share of count and mean, if they are released."""


@dataclass(frozen=True)
class InverseGaussianPlan(Plan):
    """Calibrated :class:`InverseGaussian`."""

    mechanism: InverseGaussian
    smallest_eigenvalue: float  # w², the lower bound that the caller asserts
    inverse_scale: float  # σ of the symmetric noise on the inverse: standard deviation of its diagonal entries
    # with `count_scale`: noise standard deviations of the entries of the sum of rows and of the count; None without
    # such noise
    sum_scale: float | None
    count_scale: float | None

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    @property
    def details(self) -> Mapping[str, Any]:
        return {
            "smallest_eigenvalue": self.smallest_eigenvalue,
            "inverse_noise_scale": self.inverse_scale,
            "sum_noise_scale": self.sum_scale,
            "count_noise_scale": self.count_scale,
        }

    @property
    def expected_count_error(self) -> float | None:
        return super().expected_count_error if self.count_scale is None else self.count_scale

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        moments = rows.moments()
        eigenvalues, eigenvectors = np.linalg.eigh(moments.gram.astype(np.float64) * moments.scale**2)
        exact = (eigenvectors / np.maximum(eigenvalues, self.smallest_eigenvalue)) @ eigenvectors.T
        sensitivity = self.mechanism.sensitivity(self.shape.n_features, self.neighbors)
        law = GaussianDraw(self.inverse_scale, symmetric=True)
        inverse = privacy_filter.draw("inverse-gram", law, exact, sensitivity)
        total, noisy_count = None, self.released_count(moments.count, privacy_filter)
        if self.sum_scale is not None:
            exact_sum = moments.sum.astype(np.float64) * moments.scale
            total = privacy_filter.draw("sum", GaussianDraw(self.sum_scale), exact_sum, row_sum_l2(self.neighbors))
        if self.count_scale is not None:
            law, one_row = GaussianDraw(self.count_scale), count(self.neighbors)
            noisy_count = float(privacy_filter.draw("count", law, [float(moments.count)], one_row)[0])

        # Eigenvalues of the inverse are clipped to their range. The upper end is 1/w². The lower end is 1/n if n is public,
        # since the trace of G is at most n. If n is private it is the noise scale, below which an eigenvalue of the inverse
        # is not distinguishable from zero.
        highest = 1.0 / self.smallest_eigenvalue
        lowest = self.inverse_scale if self.shape.n_rows is None else 1.0 / max(self.shape.n_rows, 1)
        eigenvalues, eigenvectors = np.linalg.eigh(inverse)
        root = eigenvectors / np.sqrt(np.clip(eigenvalues, min(lowest, highest), highest))
        return RunResult(
            count=noisy_count,
            sum=total,
            gram=root @ root.T,
            diagnostics={"inverse": inverse.tolist()},
            model=self._model_of_run(inverse),
        )

    def _model_of_run(self, inverse: FloatArray) -> InverseNormalModel:
        scale, laplace = (self.count_scale, False) if self.count_scale is not None else self.own_count_noise
        return InverseNormalModel(
            n_features=self.shape.n_features,
            count_scale=scale,
            count_is_laplace=laplace,
            inverse=inverse,
            inverse_scale=self.inverse_scale,
            smallest_eigenvalue=self.smallest_eigenvalue,
            sum_scale=self.sum_scale,
        )

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        rows, d = diagnostics.get("inverse"), self.shape.n_features
        if not isinstance(rows, list) or len(rows) != d:
            raise InputValueError("the diagnostics do not have inverse of a run")
        return self._model_of_run(np.array([finite_numbers(row, d, "inverse") for row in rows])).to_dict()


@dataclass(frozen=True)
class InverseGaussian(Mechanism):
    """Release G⁻¹ plus symmetric Gaussian noise, and the Gram matrix as its inverse.

    For tables known in advance to be well conditioned: the smallest eigenvalue of G = Σ x xᵀ (rows in the unit ball) is at
    least w², which the caller asserts from public knowledge. **Never look it up in the table.**

    **Privacy.** ρ-zCDP or (ε, δ)-DP, whether the assertion is true or not: eigenvalues of G below w² are raised to it, and the
    inverse of the raised matrix has Frobenius sensitivity Δ/w⁴, where Δ is the sensitivity of G
    (``docs/evidence/derivations/inverse_gaussian.md``). If the assertion is false the release is inaccurate, but still private.
    The paper's sensitivity, B²/(w²(w² − B²)), is larger, and in the paper the guarantee rests on the assertion. Count and mean,
    if released, are part of the same Gaussian mechanism.

    The released inverse is among the diagnostics of the result.

    Parameters
    ----------
    smallest_eigenvalue : float
        w²; required for every run.
    calibration : {"exact", "paper"}
        ``"paper"``: the sensitivity of Theorem B.5; needs w² > 1.

    Examples
    --------
    >>> shape, budget = MomentShape(10, mean=False), PrivacyBudget.zcdp(0.5)
    >>> InverseGaussian(100.0).plan(shape, budget, "add_remove").inverse_scale  # doctest: +ELLIPSIS
    0.000100000000000000...
    >>> InverseGaussian().plan(shape, budget, "add_remove")
    Traceback (most recent call last):
        ...
    dpmoments.base.errors.InputValueError: inverse-gaussian needs a public lower bound on the smallest eigenvalue ...
    """

    smallest_eigenvalue: float | None = None
    calibration: Literal["exact", "paper"] = "exact"

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    summary: ClassVar[str] = (
        "Gaussian noise on the inverse of the Gram matrix; needs a public bound on its smallest eigenvalue"
    )
    source: ClassVar[str] = "Sheffet 2015, Theorem B.5; smaller, unconditional sensitivity"

    def __post_init__(self) -> None:
        check_one_of("calibration", self.calibration, ("exact", "paper"))
        if self.smallest_eigenvalue is not None:
            check_positive("smallest_eigenvalue", self.smallest_eigenvalue)

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> InverseGaussianPlan:
        if self.smallest_eigenvalue is None:
            raise InputValueError(
                "inverse-gaussian needs a public lower bound on the smallest eigenvalue of Σ x xᵀ (rows in the "
                "unit ball): pass smallest_eigenvalue=, known without the table, or use another mechanism"
            )
        with_count = shape.mean and not shape.count_is_public(neighbors)
        whole = self.drawable_budget(budget)
        parts = (
            [1.0 - _MEAN_SHARE, *([_MEAN_SHARE / 2.0] * 2 if with_count else [_MEAN_SHARE])] if shape.mean else [1.0]
        )
        for_inverse, *for_mean = [part.rho for part in whole.split(*parts)]
        return InverseGaussianPlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            smallest_eigenvalue=self.smallest_eigenvalue,
            inverse_scale=zcdp_noise_scale(for_inverse, self.sensitivity(shape.n_features, neighbors).value),
            sum_scale=zcdp_noise_scale(for_mean[0], row_sum_l2(neighbors).value) if shape.mean else None,
            count_scale=zcdp_noise_scale(for_mean[1], count(neighbors).value) if with_count else None,
        )

    def sensitivity(self, n_features: int, neighbors: Neighbors) -> Sensitivity:
        """Return the Frobenius sensitivity of the inverse."""
        assert self.smallest_eigenvalue is not None
        bound = self.smallest_eigenvalue
        if self.calibration == "paper" and bound <= 1.0:
            raise InputValueError(
                f"smallest_eigenvalue={bound:g}: the paper's sensitivity, 1/(w²(w² − 1)), needs a bound above 1 "
                "(the squared norm of a row); use calibration='exact'"
            )
        published = 1.0 if self.calibration == "paper" else 0.0
        return inverse_gram_frobenius(neighbors, n_features, bound, published)
