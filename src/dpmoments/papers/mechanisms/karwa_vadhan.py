"""Karwa & Vadhan (2018), coordinate by coordinate.

The scale, a bin near the mean, the mean of values near it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.base import ZCDP_LOSS_UNITS
from dpmoments.mechanisms.coordinatewise import (
    ClampedMean,
    CoordinateValue,
    DistanceFrom,
    choice_epsilon,
    choose,
    coordinate_warnings,
    examined_mean,
    examined_noise,
    require_workable_loss,
    zoom,
)
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows, noise_of_coordinates
from dpmoments.mechanisms.reliability import marked_names
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.messages.message import Message
from dpmoments.papers.mechanisms.symmetric_quantiles import CERTAIN, RESOLUTION, private_quantile
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import rank_score
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_MIN_EXPONENT, _MAX_EXPONENT = -40, 2
"""Exponents of the scales searched, 2^−40 to 4 times the radius.

Bins that floating point can resolve.
"""

_FULLEST_BIN = 0.3
"""Fraction of normal values in the fullest bin one SD wide.

0.34 at worst and 0.38 at best, by bin position.
"""


@dataclass(frozen=True)
class KarwaVadhanPlan(MeanPlan):
    """Calibrated :class:`KarwaVadhan`.

    The privacy loss of each step for one coordinate (None for a public scale).
    """

    radius: float
    scale: float | None
    scale_loss: PrivacyBudget | None
    location_loss: PrivacyBudget
    mean_loss: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        least, n_rows = math.ldexp(self.radius, _MIN_EXPONENT), assumed.n_rows
        scales = [
            _likeliest_scale(deviation, self.radius) if self.scale is None else max(self.scale, least)
            for deviation in assumed.standard_deviations.tolist()
        ]
        return np.array([examined_noise(self.mean_loss, _half_width(scale, n_rows), n_rows) for scale in scales])

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows, d = self.count_of(rows, privacy_filter), self.shape.n_features
        scales, centers, widths = (np.empty(d) for _ in range(3))
        result, certain = list[ClampedMean](), list[bool]()
        for j in range(d):
            scales[j] = self._scale(rows, privacy_filter, j)
            centers[j] = self._locate(rows, privacy_filter, j, float(scales[j]))
            certain.append(self._resolves(float(scales[j]), n_rows))
            widths[j] = _half_width(float(scales[j]), n_rows)
            result.append(
                examined_mean(
                    rows,
                    privacy_filter,
                    self.mean_loss,
                    feature=j,
                    center=float(centers[j]),
                    half_width=float(widths[j]),
                    n_rows=n_rows,
                )
            )
        # Noise below the resolution of the search decides nothing.
        least_noise = math.ldexp(self.radius, _MIN_EXPONENT)
        names = rows.schema.feature_names
        warnings = coordinate_warnings(names, result, self.radius, least_noise=least_noise)
        if not all(certain):
            warnings.append(Message("location-lost", names=marked_names(names, [not one for one in certain])))
        diagnostics = {
            "scales": scales.tolist(),
            "centers": centers.tolist(),
            "half_widths": widths.tolist(),
            "noise_scales": [one.noise_scale for one in result],
            "shares_clamped": [one.share_clamped for one in result],
            "warnings": tuple(warnings),
        }
        means = np.array([one.mean for one in result])
        pure = self.mean_loss.kind is BudgetKind.PURE
        noise = noise_of_coordinates(result, centers.tolist(), self.expected_count_error, n_rows, pure=pure)
        return NoisyMean(np.clip(means, -self.radius, self.radius), n_rows, diagnostics, noise)

    def _scale(self, rows: Rows, privacy_filter: PrivacyFilter, feature: int) -> float:
        least = math.ldexp(self.radius, _MIN_EXPONENT)
        if self.scale_loss is None:
            assert self.scale is not None
            return max(self.scale, least)
        return private_scale(rows, privacy_filter, self.scale_loss, feature=feature, radius=self.radius)

    def _locate(self, rows: Rows, privacy_filter: PrivacyFilter, feature: int, scale: float) -> float:
        """Return the middle of a bin of width ``scale`` with many rows."""
        # Exponential mechanism on the counts.
        lower, upper, widths = self._bins(scale)
        for index, (width, part) in enumerate(zip(widths, self.location_loss.split(*[1.0] * len(widths)), strict=True)):
            edges = np.linspace(lower, upper, round((upper - lower) / width) + 1)
            counts = rows.histogram(CoordinateValue(feature), edges).counts
            what = Message("coordinate-bin", feature=feature + 1, level=index + 1)
            chosen = choose(counts, rank_score(rows.neighbors), part, privacy_filter, what)
            lower, upper = float(edges[chosen]), float(edges[chosen + 1])
        return min(max((lower + upper) / 2.0, -self.radius), self.radius)

    def _bins(self, scale: float) -> tuple[float, float, Sequence[float]]:
        """Return the ends of the location search and the bin widths, level by level."""
        lower, upper = -self.radius - scale / 2.0, self.radius + scale / 2.0
        return lower, upper, zoom(lower, upper, scale)

    def _resolves(self, scale: float, n_rows: float) -> bool:
        """Return True if a bin with _FULLEST_BIN of the rows clearly outweighs all others."""
        # SYMQ has the same margin.
        lower, upper, widths = self._bins(scale)
        part, *_ = self.location_loss.split(*[1.0] * len(widths))
        cells = round((upper - lower) / widths[0])
        return choice_epsilon(part) * _FULLEST_BIN * n_rows / 2.0 >= CERTAIN * math.log(cells)


@dataclass(frozen=True)
class KarwaVadhan(MeanMechanism):
    """Private scale, private location and noisy clamped mean of each coordinate.

    If no scale is given, a quarter of the budget finds it: a private median, and a log-scale histogram of the distances from it
    (bins [2^i, 2^{i+1})). The next quarter finds a bin of width σ near the mean; the rest is the noisy mean, clamped to that
    bin ± σ√(2 ln n) and projected on the public range. No step depends on the order of rows, as pairs of rows would.

    **Privacy.** The budget is divided among coordinates and steps. The searches are exponential mechanisms over a finite range,
    pure ε or ε²/8-zCDP; the mean is an exact discrete release, divided by the public n. Of its budget, 4 % pays for noisy
    counts of clamped values and of values further from the bin than that noise.

    Parameters
    ----------
    radius : float, optional
        Bound on the mean of every coordinate. Default: 1 for rows in the unit ball; otherwise required.
    scale : float, optional
        Standard deviation of every coordinate, if it is public.

    Examples
    --------
    >>> shape = MomentShape(2, n_rows=1000, row_norm=None)
    >>> plan = KarwaVadhan(radius=1e6, scale=1.0).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one")
    >>> plan.location_loss, plan.mean_loss
    (PrivacyBudget.zcdp(rho=0.0625), PrivacyBudget.zcdp(rho=0.1875))
    """

    radius: float | None = None
    scale: float | None = None

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = ZCDP_LOSS_UNITS
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset({Neighbors.REPLACE_ONE})
    summary: ClassVar[str] = "each coordinate: private scale, private bin, clamped mean"
    source: ClassVar[str] = "Karwa & Vadhan 2018; finite range, exponential mechanism, scale about a private median"

    def __post_init__(self) -> None:
        self.require_positive("radius", "scale")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> KarwaVadhanPlan:
        count_loss, rest = self.divide_for_count(shape, budget, neighbors)
        share, *_ = rest.split(*[1.0] * shape.n_features)
        scale_loss = None
        if self.scale is None:
            scale_loss, location, mean = share.split(0.25, 0.25, 0.5)
        else:
            location, mean = share.split(0.25, 0.75)
        require_workable_loss(mean)
        radius = self.known_radius(self.radius, shape)
        return KarwaVadhanPlan(
            self, shape, neighbors, budget, radius, self.scale, scale_loss, location, mean, count_loss=count_loss
        )


def _half_width(scale: float, n_rows: float) -> float:
    """Return the clamp's half width."""
    # Half a bin and √(2 ln n) SDs, beyond which about one of n normal values lies at most.
    return scale * (0.5 + math.sqrt(2.0 * math.log(max(n_rows, 3.0))))


def _scale_edges(radius: float) -> FloatArray:
    """Return the edges of the bins in which the scale is searched."""
    return radius * np.exp2(np.arange(_MIN_EXPONENT, _MAX_EXPONENT + 1, dtype=np.float64))


def _likeliest_scale(deviation: float, radius: float) -> float:
    """Return the result of :func:`private_scale` for normal values, without noise."""
    # The values have this standard deviation.
    edges = _scale_edges(radius)
    below = 2.0 * scipy.special.ndtr(edges / deviation) - 1.0
    below[0], below[-1] = 0.0, 1.0  # values outside the bins are counted in the outermost
    return float(edges[1:][int(np.argmax(np.diff(below)))])


def private_scale(
    rows: Rows, privacy_filter: PrivacyFilter, loss: PrivacyBudget, *, feature: int, radius: float
) -> float:
    """Estimate the standard deviation of one coordinate to a factor of about 2.5."""
    # The result is the likeliest power of two for the distance from the median: for normal values it most often lies in
    # a bin [2^i, 2^{i+1}) about σ, and the upper edge of the chosen bin is returned. The outermost bins also count the
    # distances outside all bins. (Karwa & Vadhan 2018; lecture 18, section 1.2, has infinitely many bins about 0.)
    for_median, for_scale = loss.split(0.5, 0.5)
    median = private_quantile(
        rows, privacy_filter, for_median, feature=feature, level=0.5, radius=radius, width=RESOLUTION * radius
    )
    edges = _scale_edges(radius)
    exact = rows.histogram(DistanceFrom(feature, median), edges)
    counts = np.array(exact.counts)
    counts[0] += exact.below
    counts[-1] += exact.above
    what = Message("coordinate-scale", feature=feature + 1)
    return float(edges[1:][choose(counts, rank_score(rows.neighbors), for_scale, privacy_filter, what)])
