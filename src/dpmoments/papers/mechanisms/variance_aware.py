"""Mean without public radius or scale: clipped at private norms, in coordinates by spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.papers.mechanisms.coinpress_schedule import normal_norm_radius
from dpmoments.papers.mechanisms.mapped_rows import (
    MAX_CLIPPED,
    MAX_SEEN,
    NOISE_DECIDES,
    ClippedSums,
    MappedRows,
    NormHistogram,
    clipped_norm,
    count_first,
    first_count_error,
    left_after_count,
    noise_margin,
    noise_of_last_step,
    norm_edges,
    require_workable_budget,
    spread_about_mean,
)
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import gram_frobenius, histogram_l2, row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

# A small noisy count of rows far beyond a clipping radius: it says what a mean of clipped rows leaves out.

_COUNT_ERROR = 0.003
"""Planned noise on the count of outlying rows, as a fraction of all rows."""
_COUNT_SHARE = 0.02
"""Max share of ρ for that count."""
_FAR_ROWS = 4.0
"""Clipping radii from the center beyond which a row, mostly cut off, is outlying."""
_MIN_FAR = 0.01
"""Fraction of outlying rows above which a warning is given."""


def _far_rows_cost(neighbors: Neighbors, n_rows: float, total: float) -> float:
    """Return the part of ``total``, in ρ, that :meth:`_Run.far_rows` spends."""
    scale = histogram_l2(neighbors).value / (_COUNT_ERROR * n_rows)
    return min(scale**2 / 2.0, _COUNT_SHARE * total)


# Cost of the rounds of a search for the rows, and the noise of a part of ρ.

_CONTRACTION = 0.25
"""Planned noise of a round of the search, as a fraction of its clipping radius."""
_HISTOGRAM_ERROR = 0.06
"""Planned noise on a bin of a histogram, as a fraction of the number of rows."""
_USEFUL = 0.5
"""Planned noise over clipping radius above which a round is useless, and skipped."""


def _mean_error(neighbors: Neighbors, n_rows: float, rho: float, n_features: int) -> float:
    """Return the RMSE of a mean from noise at clipping radius 1."""
    return row_sum_l2(neighbors).value * math.sqrt(n_features / (2.0 * rho)) / n_rows


def _round_costs(neighbors: Neighbors, n_rows: float, total: float, n_features: int) -> tuple[float, float]:
    """Return ρ of the histogram and of the mean of one round of the search."""
    bin_scale = histogram_l2(neighbors).value / (_HISTOGRAM_ERROR * max(n_rows, 1.0))
    for_histogram = min(bin_scale**2 / 2.0, 0.02 * total)
    # The ρ at which the noise is _CONTRACTION.
    for_mean = _mean_error(neighbors, n_rows, 1.0, n_features) ** 2 / _CONTRACTION**2
    # Six rounds at least, or two where only so few are worth making.
    most = 0.04 if _mean_error(neighbors, n_rows, 0.04 * total, n_features) <= _USEFUL else 0.1
    return for_histogram, min(for_mean, most * total)


_MAX_ROUNDS = 40
_TYPICAL_ROUNDS = 4
"""Rounds of a search for rows near 0 or within a few thousand standard deviations of it."""
_EXPLORATION = 0.25
"""Max share of ρ for the search for the center."""
_CALM = 0.6
"""Ratio of a round's clipping radius to the one before above which the search has settled."""
_SCALES = 0.05
"""Share of ρ for estimating the spread of every coordinate."""
_LAST_HISTOGRAM = 0.02
_SEARCH_OCTAVES = 120
_SCALE_ERROR = 1.0
"""Max planned noise on a squared coordinate, over its mean, for estimating scales."""
_MIN, _MAX = 1e-100, 1e100
"""Clipping radii and scales that the lattice allows, with room for a search about them."""
_RESOLUTION = 2.0**-40
"""Part of the center's largest coordinate, near floating point, at which the search stops."""


@dataclass(frozen=True)
class VarianceAwarePlan(MeanPlan):
    """Calibrated :class:`VarianceAware`."""

    rho: float

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def expected_count_error(self) -> float:
        return first_count_error(self.rho, self.shape.n_rows is None)

    def expected_errors(self, assumed: NormalRows) -> FloatArray | None:
        """Return the noise of the last step after _TYPICAL_ROUNDS rounds; None for one coordinate.

        One coordinate has no scale estimate, and clipping about the center of the search brings more error than the
        noise (``docs/evidence/regression-coverage.md``).
        """
        if self.shape.n_features == 1:
            return None
        n, d, spread = assumed.n_rows, self.shape.n_features, assumed.standard_deviations
        total = self.rho if self.shape.n_rows is not None else left_after_count(self.rho)
        for_histogram, for_mean = _round_costs(self.neighbors, n, total, d)
        # A round after the search has settled costs four times as much.
        searched = min(_TYPICAL_ROUNDS * for_histogram + (_TYPICAL_ROUNDS + 3) * for_mean, _EXPLORATION * total)
        left = total - searched - _SCALES * total
        rest = (1.0 - _LAST_HISTOGRAM) * left - _far_rows_cost(self.neighbors, n, total)
        alike = max(1, round(float(spread.sum()) ** 2 / float(spread @ spread)))
        error = _mean_error(self.neighbors, n, rest, d)
        radius = normal_norm_radius(alike, error, math.sqrt(1.0 / d)) * math.sqrt(float(spread.sum()) / alike)
        return error * radius * np.sqrt(spread / d)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        run = _Run(self, rows, privacy_filter)
        run.find_center()
        run.find_scales()
        return run.finish()


@dataclass(frozen=True)
class VarianceAware(MeanMechanism):
    """Mean of rows with no public radius, scale or covariance.

    (i) The center is searched in rounds: a noisy histogram of distances from it (bins from 2^−120 to 2^120) gives a clipping
    radius, and the noisy clipped mean a new center, until the radius settles. (ii) Noisy sums of squares give the spread σ̂_j
    of each coordinate, in two rounds. (iii) Most of the budget is spent on the clipped mean of (x − c)/√σ̂, at a radius that
    balances noise against clipping on a last histogram; the result is mapped back to the original units.

    A step that noise would dominate is skipped: no round of (i) whose noise exceeds half its radius, no (ii) whose noise
    exceeds the squares themselves. No last radius is below the private median norm. A small count of rows far beyond it goes
    with (iii).

    The noise is then proportional to Σσ_j instead of √d·(Σσ_j²)^{1/2}. This is PLAN (Aumüller, Lebeda, Nelson & Pagh 2024) with
    the private norm quantile of Huang, Liang & Yi (2021).

    **Privacy.** ρ-zCDP by adaptive composition of exact discrete Gaussian releases. The number of rounds of the search depends
    on earlier noisy outputs; for any number, the privacy filter refuses a release that would exceed the budget (Feldman & Zrnic
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
        rho = self.drawable_budget(budget).rho
        require_workable_budget(rho, None)
        return VarianceAwarePlan(self, shape, neighbors, budget, rho=rho)


class _Run:
    """State of one run."""

    def __init__(self, plan: VarianceAwarePlan, rows: Rows, privacy_filter: PrivacyFilter) -> None:
        self.rows, self.privacy_filter, self.neighbors = rows, privacy_filter, plan.neighbors
        self.n_rows, self.total = count_first(rows, privacy_filter, plan.rho, plan.shape.n_rows)
        self.count_error, self.d = plan.expected_count_error, plan.shape.n_features
        self.center, self.spread = np.zeros(self.d), np.ones(self.d)
        self.radius: float | None = None
        self.steps: list[dict[str, Any]] = []
        self.settled, self.moved = False, 0.0

    @property
    def left(self) -> float:
        """Remaining ρ."""
        return self.privacy_filter.left.as_budget.rho

    def noise_error(self, rho: float) -> float:
        """Return :func:`_mean_error` for a part of ρ."""
        return _mean_error(self.neighbors, self.n_rows, rho, self.d)

    def mapped(self, linear: FloatArray) -> MappedRows:
        """Return the rows about the center, mapped by ``linear``."""
        return MappedRows(self.rows, self.privacy_filter, self.center, linear)

    def histogram(self, rho: float, linear: FloatArray, typical: float, octaves: int) -> NormHistogram:
        what, edges = Message("norm-histogram", histogram=len(self.steps) + 1), norm_edges(typical, octaves=octaves)
        return self.mapped(linear).norms(what, rho, edges)

    def clipped(
        self, rho: float, linear: FloatArray, radius: float, *, squares_rho: float = 0.0, shrink: bool = True
    ) -> ClippedSums:
        """Return noisy sums of clipped rows, and move the center by them; shortened if ``shrink``."""
        sums = self.mapped(linear).sums(len(self.steps) + 1, rho, radius, squares_rho)
        # Rows were clipped to {x : ‖linear·(x − center)‖ ≤ radius}.
        place = {"center": self.center.tolist(), "scales": (1.0 / np.diagonal(linear)).tolist()}
        self.steps.append({**place, "radius": radius, "rho": rho + squares_rho})
        move = sums.sum / self.n_rows
        self.moved = float(np.linalg.norm(move / radius)) * radius
        if shrink:
            move = shrunk_move(move / radius, sums.sum_scale / (self.n_rows * radius)) * radius
        self.center = np.clip(self.center + move / np.diagonal(linear), -_MAX, _MAX)
        return sums

    def find_center(self) -> None:
        """Clip at a radius from private distances and move the center, until the radius settles."""
        identity, least_left = np.eye(self.d), (1.0 - _EXPLORATION) * self.total
        for_histogram, for_mean = _round_costs(self.neighbors, self.n_rows, self.total, self.d)
        unseen = 0.0  # ρ of a histogram that was too little
        for _ in range(_MAX_ROUNDS):
            round_cost = for_mean * (4.0 if self.settled else 1.0)
            useful = self.noise_error(round_cost) <= _USEFUL
            room = self.left - least_left - (round_cost if useful else 0.0)
            if for_histogram > room:
                if self.radius is not None or room <= unseen:
                    return
                for_histogram = room  # all that is left, to see any row at all
            typical = 1.0 if self.radius is None else self.radius
            histogram = self.histogram(for_histogram, identity, typical, _SEARCH_OCTAVES)
            radius = histogram.best_radius(1, self.noise_error(round_cost), 1.0)
            if radius is None:  # no bin stands out of the noise: spend more on the next histogram
                unseen, for_histogram = for_histogram, for_histogram * 4.0
                continue
            radius = _within_range(radius)
            before, self.radius = self.radius, radius
            if not useful:
                self.radius = _within_range(norm_quantile(histogram, 0.5) or radius)
                return
            self.clipped(round_cost, identity, radius)
            resolution = max(2.0 * _MIN, _RESOLUTION * float(np.abs(self.center).max()))
            if self.settled or radius <= resolution:
                self.settled = True
                return
            self.settled = before is not None and radius > _CALM * before

    def find_scales(self) -> None:
        """Estimate spreads from noisy squares, in two rounds; no variance is below its noise."""
        if self.d == 1 or self.radius is None:
            return
        self.spread = np.full(self.d, self.radius / math.sqrt(self.d))
        for share in (1.0 / 3.0, 2.0 / 3.0):
            cost = share * _SCALES * self.total
            # Noise on the mean square of a coordinate of unit spread, clipped at √d.
            noise_scale = zcdp_noise_scale(0.5 * cost, gram_frobenius(self.neighbors, self.d).value)
            if noise_scale * self.d / self.n_rows > _SCALE_ERROR:
                continue
            linear = np.diag(1.0 / self.spread)
            histogram = self.histogram(0.2 * cost, linear, math.sqrt(self.d), 24)
            radius = histogram.best_radius(1, self.noise_error(0.3 * cost), 1.0) or 1.5 * math.sqrt(self.d)
            sums = self.clipped(0.3 * cost, linear, radius, squares_rho=0.5 * cost)
            assert sums.squares is not None
            mean, noise = sums.sum / self.n_rows, sums.sum_scale / self.n_rows
            # E[m̂²] exceeds m² by the variance of the noise.
            variance = sums.squares / self.n_rows - mean**2 + noise**2
            result = self.spread * np.sqrt(np.maximum(variance, sums.squares_scale / self.n_rows))
            self.spread = np.clip(result, _MIN, _MAX)

    def far_rows(self, linear: FloatArray, radius: float) -> tuple[float, bool]:
        """Return the noisy fraction of rows beyond _FAR_ROWS radii, and True if more than noise."""
        # It is in [0, 1]; radii are clipping radii.
        rho = _far_rows_cost(self.neighbors, self.n_rows, self.total)
        edges = np.array([_FAR_ROWS * radius, 2.0 * _FAR_ROWS * radius])
        counted = self.mapped(linear).norms("outlying-rows", rho, edges)
        share = float(counted.counts[1:].sum()) / self.n_rows
        margin = noise_margin(math.sqrt(2.0) * counted.noise_scale / self.n_rows, 1, pure=False)
        return min(max(share, 0.0), 1.0), share > _MIN_FAR + margin

    def finish(self) -> NoisyMean:
        """Release the mean of (x − c)/√spread with the remaining budget."""
        linear = np.diag(1.0 / np.sqrt(self.spread))
        # Expected norm of a scaled row: (Σ σ_j)^{1/2} once the spread is known.
        typical = math.sqrt(float(self.spread.sum()))
        if self.radius is not None and self.d == 1:
            typical = self.radius
        histogram = self.histogram(_LAST_HISTOGRAM * self.left, linear, typical, _SEARCH_OCTAVES)
        best = histogram.best_radius(1, self.noise_error(self.left), math.sqrt(1.0 / self.d))
        median = norm_quantile(histogram, 0.5)
        unseen = self.radius is None and median is None
        radius = _within_range(1.5 * typical if best is None or median is None else max(best, median))
        far, far_shows = self.far_rows(linear, radius)
        rest = self.left
        noise, outside = self.noise_error(rest) * radius, histogram.share_above(radius)
        sums = self.clipped(rest, linear, radius, shrink=False)
        warnings = [Message("rows-unseen")] if unseen else []
        if outside > MAX_CLIPPED:
            warnings.append(Message("rows-mostly-clipped"))
        elif far_shows:
            warnings.append(Message("outlying-rows-clipped", share=far))
        if not unseen:
            norm = clipped_norm(histogram, radius) or typical
            warnings += search_warnings(norm, self.moved, noise, settled=self.settled)
        diagnostics = {
            "steps": self.steps,
            "spread": self.spread.tolist() if self.d > 1 else None,
            "share_outside": outside,
            "share_far": far,
            "warnings": tuple(warnings),
        }
        law = noise_of_last_step(
            np.diag(np.sqrt(self.spread)),
            sums,
            self.count_error,
            self.n_rows,
            clipped=outside,
            bias_suspected=self.d
            == 1  # no scale is estimated, and rows are clipped about where the search left the center
            or best is None
            or float(histogram.occupied.sum()) < MAX_SEEN * self.n_rows
            or heavy_tails(histogram, best, self.noise_error(rest), self.spread),
        )
        return NoisyMean(self.center, self.n_rows, diagnostics, law)


def _within_range(radius: float) -> float:
    """Return the nearest radius that the lattice of rows allows."""
    # It leaves room for a search about it.
    return min(max(radius, _MIN), _MAX)


# What a run says against itself.

_UNSETTLED = 0.5
"""Part of the rows' norm above which a step after an unsettled search shows far rows."""
_HEAVIER = 1.3
"""Ratio of best radius to that of rows of equal norm, above which tails are heavy."""


def norm_quantile(histogram: NormHistogram, level: float) -> float | None:
    """Return the upper edge of the bin with the ``level`` quantile of the norms."""
    # None if no bin holds more than noise.
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    index = int(np.searchsorted(np.cumsum(occupied), level * total))
    return float(histogram.edges[min(index, len(histogram.edges) - 1)])


def shrunk_move(noisy_mean: FloatArray, noise_scale: float) -> FloatArray:
    """Return a noisy step towards the mean, shortened by the noise share of its square.

    The positive part of James & Stein (1961), from three dimensions on. If the step is only noise, the center stays.
    """
    square = float(noisy_mean @ noisy_mean)
    noise = max(len(noisy_mean) - 2, 0) * noise_scale**2
    return noisy_mean * max(0.0, 1.0 - noise / square) if square > 0.0 else noisy_mean


def heavy_tails(histogram: NormHistogram, best: float, noise_error: float, spread: FloatArray) -> bool:
    """Return True if the best clipping radius far exceeds the one of normal rows of equal norm.

    ``best`` is the best radius at ``noise_error`` and a bias of 1/√d. ``spread`` holds the coordinates' variances up to
    a factor: a norm is about the norm of (Σv)²/Σv² equal ones.
    """
    relative = np.minimum(histogram.typical_norms / best, 1.0)
    occupied = histogram.occupied
    norm = best * math.sqrt(float(occupied @ relative**2) / float(occupied.sum()))
    shares = spread / spread.max()
    alike = max(1, round(float(shares.sum()) ** 2 / float(shares @ shares)))
    of_normal = normal_norm_radius(alike, noise_error, math.sqrt(1.0 / alike)) / math.sqrt(alike)
    return best > _HEAVIER * of_normal * norm


def search_warnings(norm: float, moved: float, noise: float, *, settled: bool) -> list[Message]:
    """Return warnings from the length ``moved`` of a last step, given the rows' RMS norm."""
    # `settled` if the search ended.
    if noise > NOISE_DECIDES * spread_about_mean(norm, moved, noise):
        return [Message("mean-lost")]
    if not settled and moved > math.hypot(_UNSETTLED * norm, noise):
        return [Message("search-unsettled", names=())]
    return []
