"""Naive coordinatewise means: clamp every coordinate to the public range and add noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.coordinatewise import (
    beyond_radius,
    coordinate_warnings,
    examined_mean,
    examined_noise,
    require_workable_loss,
)
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows, noise_of_coordinates
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows


@dataclass(frozen=True)
class NaivePlan(MeanPlan):
    """Calibrated :class:`Naive`: every coordinate is clamped to ±half_width, and costs ``loss``."""

    radius: float
    half_width: float
    loss: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE
    error_needs_rows: ClassVar[bool] = False

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        return np.full(self.shape.n_features, examined_noise(self.loss, self.half_width, assumed.n_rows))

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows = self.count_of(rows, privacy_filter)
        result = [
            examined_mean(
                rows, privacy_filter, self.loss, feature=feature, center=0.0, half_width=self.half_width, n_rows=n_rows
            )
            for feature in range(self.shape.n_features)
        ]
        means = np.array([one.mean for one in result])
        # Noise beyond the range is clipped; a mean further out shows that the range is wrong.
        means = np.where(beyond_radius(result, self.radius), means, np.clip(means, -self.radius, self.radius))
        diagnostics = {
            "noise_scales": [one.noise_scale for one in result],
            "shares_clamped": [one.share_clamped for one in result],
            "warnings": tuple(coordinate_warnings(rows.schema.feature_names, result, self.radius)),
        }
        pure = self.loss.kind is BudgetKind.PURE
        noise = noise_of_coordinates(result, [0.0] * len(result), self.expected_count_error, n_rows, pure=pure)
        return NoisyMean(means, n_rows, diagnostics, noise)


@dataclass(frozen=True)
class Naive(MeanMechanism):
    """Mean of each coordinate clamped to ±(R + 3σ), clipped to ±R after noise.

    A baseline of Biswas et al. (2020).

    **Privacy.** The budget is divided among the coordinates (ρ/d under zCDP, ε/d under pure composition); each is an exact
    discrete release with sensitivity 2(R + 3σ)/n. Of its budget, 4 % pays for noisy counts of the clamped values and of values
    larger than the noise.

    Parameters
    ----------
    radius : float, optional
        R: bound on the mean of every coordinate. Default: 1 for rows in the unit ball; otherwise required.
    scale : float, optional
        σ: bound on the standard deviation of every coordinate.

    Examples
    --------
    >>> shape = MomentShape(50, n_rows=1000, row_norm=None)
    >>> Naive(radius=70.0, scale=1.0).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one").half_width
    73.0
    """

    radius: float | None = None
    scale: float | None = None

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset({Neighbors.REPLACE_ONE})
    summary: ClassVar[str] = "each coordinate clamped to its public range"
    source: ClassVar[str] = "baseline of Biswas, Dong, Kamath & Ullman 2020"

    def __post_init__(self) -> None:
        self.require_positive("radius", "scale")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> NaivePlan:
        radius = self.known_radius(self.radius, shape)
        half_width = radius + 3.0 * self.known_scale(self.scale, shape)
        count_loss, rest = self.divide_for_count(shape, budget, neighbors)
        loss, *_ = rest.split(*[1.0] * shape.n_features)
        require_workable_loss(loss)
        return NaivePlan(self, shape, neighbors, budget, radius, half_width, loss, count_loss=count_loss)
