"""A mean without a public radius or scale: clip at private quantiles of the norm, then in coordinates scaled by their spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.base import Arithmetic, MomentShape
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean
from dpmoments.mechanisms.means.parts.clipped_mean import noisy_clipped_sums
from dpmoments.mechanisms.parts.noisy_step import count_first, first_count_error, require_workable_budget
from dpmoments.mechanisms.parts.norm_histogram import NormHistogram, noisy_norm_histogram, norm_edges
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import histogram_l2, row_sum_l2
from dpmoments.rows.rows import Rows

__all__ = ["VarianceAware", "VarianceAwarePlan"]

MOST_ROUNDS = 40
EXPLORATION = 0.25
"""Largest share of ρ that the search for the centre may spend."""
CONTRACTION = 0.25
"""Planned noise of a round of the search, as a share of its clipping radius."""
CALM = 0.6
"""The search has settled when a round's clipping radius is more than this share of the one before."""
HISTOGRAM_ERROR = 0.06
"""Planned noise on a bin of a histogram, as a share of the number of rows."""
SCALES = 0.05
"""Share of ρ for estimating the spread of every coordinate."""
LAST_HISTOGRAM = 0.02
SEARCH_OCTAVES = 120


@dataclass(frozen=True)
class VarianceAwarePlan(MeanPlan):
    """A calibrated :class:`VarianceAware`."""

    rho: float

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def expected_count_error(self) -> float | None:
        return first_count_error(self.rho, self.shape.n_rows is None)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        run = _Run.start(self, rows, privacy_filter)
        run.find_center()
        if self.shape.n_features > 1 and run.radius is not None:
            run.find_scales()
        return run.finish()


@dataclass(frozen=True)
class VarianceAware(MeanMechanism):
    """Mean of rows about which nothing is known: no radius, no scale, no covariance.

    (i) The centre is searched for in rounds: a noisy histogram of distances from it (bins from 2^−120 to 2^120) gives a
    clipping radius, and the noisy clipped mean a new centre, until the radius settles. (ii) Noisy sums of squares give the
    spread σ̂_j of each coordinate, in two rounds. (iii) Most of the budget is spent on the clipped mean of (x − c)/√σ̂, at a
    radius that balances noise against clipping on a last histogram; the result is mapped back to the original units.

    The noise is then proportional to Σσ_j instead of √d·(Σσ_j²)^{1/2}. This is PLAN (Aumüller, Lebeda, Nelson & Pagh 2024) with
    the private norm quantile of Huang, Liang & Yi (2021).

    **Privacy.** ρ-zCDP by adaptive composition of exact discrete Gaussian releases. The number of rounds of the search depends on
    earlier noisy outputs; whatever it is, the privacy filter refuses a release that would pass the budget (Feldman & Zrnic
    2021).

    Examples
    --------
    >>> shape = MomentShape(50, n_rows=1000, row_norm=None)
    >>> VarianceAware().plan(shape, PrivacyBudget.zcdp(0.5), "replace_one").rho
    0.5
    """

    summary: ClassVar[str] = "no radius, no scale: private norm quantiles, then noise shaped by the coordinates' spread"
    source: ClassVar[str] = "after Huang, Liang & Yi 2021 and Aumüller, Lebeda, Nelson & Pagh 2024 (PLAN)"

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> VarianceAwarePlan:
        rho = self.divisible(budget).rho
        require_workable_budget(rho, None)
        return VarianceAwarePlan(self, shape, neighbors, budget, rho=rho)


@dataclass
class _Run:
    """The state of one run."""

    rows: Rows
    privacy_filter: PrivacyFilter
    neighbors: Neighbors
    total: float
    n_rows: float
    center: FloatArray
    spread: FloatArray
    radius: float | None
    steps: list[dict[str, Any]]

    @classmethod
    def start(cls, plan: VarianceAwarePlan, rows: Rows, privacy_filter: PrivacyFilter) -> _Run:
        d = plan.shape.n_features
        n_rows, rho = count_first(rows, privacy_filter, plan.rho, plan.shape.n_rows)
        return cls(rows, privacy_filter, plan.neighbors, rho, n_rows, np.zeros(d), np.ones(d), radius=None, steps=[])

    @property
    def left(self) -> float:
        """What remains of ρ."""
        return self.privacy_filter.left.as_budget.rho

    @property
    def d(self) -> int:
        return len(self.center)

    def noise_error(self, rho: float) -> float:
        """Root mean square error of a mean from noise at clipping radius 1."""
        return row_sum_l2(self.neighbors).value * math.sqrt(self.d / (2.0 * rho)) / self.n_rows

    def histogram(self, rho: float, linear: FloatArray, typical: float, octaves: int) -> NormHistogram:
        return noisy_norm_histogram(
            self.rows,
            self.privacy_filter,
            f"histogram of norms {len(self.steps) + 1}",
            rho,
            edges=norm_edges(typical, octaves=octaves),
            center=self.center,
            linear=linear,
        )

    def recenter(self, rho: float, linear: FloatArray, radius: float) -> float:
        """Move the centre by the noisy mean of the clipped rows; return the standard deviation of the noise on an entry."""
        sums = noisy_clipped_sums(
            self.rows,
            self.privacy_filter,
            f"step {len(self.steps) + 1}",
            rho=rho,
            center=self.center,
            linear=linear,
            radius=radius,
        )
        self.record(linear, radius, rho)
        self.center = self.center + np.linalg.solve(linear, sums.sum / self.n_rows)
        return sums.sum_scale / self.n_rows

    def record(self, linear: FloatArray, radius: float, rho: float) -> None:
        """Keep the step for the diagnostics: rows were clipped to {x : ‖linear·(x − center)‖ ≤ radius}."""
        self.steps.append(
            {
                "center": self.center.tolist(),
                "scales": (1.0 / np.diagonal(linear)).tolist(),
                "radius": radius,
                "rho": rho,
            }
        )

    def find_center(self) -> None:
        """Clip at a radius from private distances to the centre, move the centre, and stop when the radius no longer shrinks."""
        identity, least_left = np.eye(self.d), (1.0 - EXPLORATION) * self.total
        bin_scale = histogram_l2(self.neighbors).value / (HISTOGRAM_ERROR * max(self.n_rows, 1.0))
        for_histogram = min(bin_scale**2 / 2.0, 0.02 * self.total)
        # The ρ at which noise_error(ρ) = CONTRACTION.
        for_mean = min(self.noise_error(1.0) ** 2 / CONTRACTION**2, 0.04 * self.total)
        settled = False
        for _ in range(MOST_ROUNDS):
            round_cost = for_mean * (4.0 if settled else 1.0)
            if self.left - for_histogram - round_cost < least_left:
                return
            typical = 1.0 if self.radius is None else self.radius
            histogram = self.histogram(for_histogram, identity, typical, SEARCH_OCTAVES)
            radius = histogram.best_radius(1, self.noise_error(round_cost), 1.0)
            if radius is None:  # no bin stands out of the noise: spend more on the next histogram
                for_histogram *= 4.0
                continue
            self.recenter(round_cost, identity, radius)
            before, self.radius = self.radius, radius
            if settled:
                return
            settled = before is not None and radius > CALM * before

    def find_scales(self) -> None:
        """Estimate every coordinate's spread from noisy squares, in two rounds; variances below the noise are raised to it."""
        assert self.radius is not None
        self.spread = np.full(self.d, self.radius / math.sqrt(self.d))
        for share in (1.0 / 3.0, 2.0 / 3.0):
            cost = share * SCALES * self.total
            linear = np.diag(1.0 / self.spread)
            histogram = self.histogram(0.2 * cost, linear, math.sqrt(self.d), 24)
            radius = histogram.best_radius(1, self.noise_error(0.3 * cost), 1.0) or 1.5 * math.sqrt(self.d)
            sums = noisy_clipped_sums(
                self.rows,
                self.privacy_filter,
                f"step {len(self.steps) + 1}",
                rho=0.3 * cost,
                squares_rho=0.5 * cost,
                center=self.center,
                linear=linear,
                radius=radius,
            )
            self.record(linear, radius, 0.8 * cost)
            assert sums.squares is not None
            mean, noise = sums.sum / self.n_rows, sums.sum_scale / self.n_rows
            # E[m̂²] exceeds m² by the variance of the noise.
            variance = sums.squares / self.n_rows - mean**2 + noise**2
            self.center = self.center + self.spread * mean
            self.spread = self.spread * np.sqrt(np.maximum(variance, sums.squares_scale / self.n_rows))

    def finish(self) -> NoisyMean:
        """Spend the rest of the budget on the mean of (x − c)/√spread."""
        linear = np.diag(1.0 / np.sqrt(self.spread))
        # Expected norm of a scaled row: (Σ σ_j)^{1/2} once the spread is known.
        typical = math.sqrt(float(self.spread.sum()))
        if self.radius is not None and self.d == 1:
            typical = self.radius
        histogram = self.histogram(LAST_HISTOGRAM * self.left, linear, typical, SEARCH_OCTAVES)
        rest = self.left
        radius = histogram.best_radius(1, self.noise_error(rest), math.sqrt(1.0 / self.d))
        warnings = []
        if radius is None:
            radius = 1.5 * typical
            warnings.append("the budget is too small to see where the rows are: more rows or a larger rho are needed")
        self.recenter(rest, linear, radius)
        return NoisyMean(
            self.center,
            self.n_rows,
            {
                "steps": self.steps,
                "spread": self.spread.tolist() if self.d > 1 else None,
                "share_outside": histogram.share_above(radius),
                "warnings": warnings,
            },
        )
