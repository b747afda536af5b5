"""Means of coordinates, one after another.

The naive clamp, Karwa & Vadhan (2018) and SYMQ (Du et al. 2020), and what they share: clamped means, private searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.errors import out_of_range
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.base import ZCDP_LOSS_UNITS
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.moments.law import with_rounding
from dpmoments.moments.models import MeanModel
from dpmoments.papers.mechanisms.log_scale_histogram import (
    ColumnQueries,
    CoordinateValue,
    DistanceFrom,
    choice_epsilon,
    choose,
    noised,
    total_sensitivity,
)
from dpmoments.papers.mechanisms.mapped_rows import FROM_EDGE, noise_margin, warning_of
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import rank_score
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.histogram import Histogram
from dpmoments.rows.rows import Rows

MAX_BINS = 4096
"""Max number of bins of one level of a search; a range that needs more has several levels."""

_CHECK_SHARE = 0.02
"""Share of a clamped mean's loss for each of the two counts that examine it."""


@dataclass(frozen=True, slots=True)
class ClampedMean:
    """Noisy clamped mean, and the evidence of two noisy counts."""

    mean: float
    noise_scale: float  # its noise SD
    share_clamped: float  # noisy fraction of values beyond the clamp, in [0, 1]
    clamping_shows: bool  # true if that is above _MIN_CLAMPED by more than noise
    # true if fewer than half of the values are further than `noise_scale` from the clamp's center, and the mean is no
    # further from it than noise explains
    noise_decides: bool


_MIN_CLAMPED = 0.01
"""Fraction of clamped values above which a warning is given."""
_FROM_CENTER = 3.0
"""Noise SDs from the clamp's center beyond which a mean is more than noise."""


@dataclass(frozen=True, slots=True)
class Coordinate(ColumnQueries):
    """Questions about one coordinate, with a public range."""

    def examined_mean(self, loss: PrivacyBudget, center: float, half_width: float) -> ClampedMean:
        """Return :meth:`clamped_mean`, with counts of values beyond the clamp and the noise.

        **Privacy.** ``loss`` under replace-one.
        """
        for_mean, *checks = _with_checks(loss)
        mean = self.clamped_mean(for_mean, center, half_width)
        noise, least = examined_noise(loss, half_width, self.n_rows), math.nextafter(half_width, math.inf)
        beyond_clamp = self.share_beyond(checks[0], center, least, "clamped-values")
        beyond_noise = self.share_beyond(checks[1], center, noise, "values-beyond-noise")
        # A count's noise is 1/half_width of that of a mean clamped to ±half_width, on half the range.
        pure = loss.kind is BudgetKind.PURE
        margin = noise_margin(_mean_noise(checks[0], 0.5, self.n_rows), self.rows.n_features, pure=pure)
        return ClampedMean(
            mean,
            noise,
            min(max(beyond_clamp, 0.0), 1.0),
            clamping_shows=beyond_clamp > _MIN_CLAMPED + margin,
            noise_decides=beyond_noise < 0.5 and abs(mean - center) < _FROM_CENTER * noise,
        )

    def share_beyond(self, loss: PrivacyBudget, center: float, least: float, code: str) -> float:
        """Return the noisy fraction of rows with |x − center| ≥ ``least``, maybe out of [0, 1]."""
        exact = self.rows.histogram(DistanceFrom(self.feature, center), [least, math.inf])
        signed = int(exact.counts.sum()) + exact.above - exact.below
        sensitivity = total_sensitivity(self.rows.neighbors, loss)
        noisy = noised(self.privacy_filter, self.about(code), [signed], sensitivity, loss)
        return 0.5 + 0.5 * float(noisy[0]) / self.n_rows

    def chosen(self, scores: npt.NDArray[Any], loss: PrivacyBudget, code: str, **facts: Any) -> int:
        """Choose a bin from scores that one replaced row changes by at most 1."""
        return choose(scores, rank_score(self.rows.neighbors), loss, self.privacy_filter, self.about(code, **facts))

    def search(
        self,
        ends: tuple[float, float],
        width: float,
        loss: PrivacyBudget,
        scores: Callable[[Histogram, float, float], npt.NDArray[Any]],
        code: str,
        **facts: Any,
    ) -> float:
        """Return the middle of a bin about ``width`` wide, found by dividing chosen bins."""
        lower, upper = ends
        widths = zoom(lower, upper, width)
        for index, (cell, part) in enumerate(zip(widths, loss.split(*[1.0] * len(widths)), strict=True)):
            edges = np.linspace(lower, upper, round((upper - lower) / cell) + 1)
            histogram = self.rows.histogram(CoordinateValue(self.feature), edges)
            chosen = self.chosen(scores(histogram, lower, upper), part, code, **facts, level=index + 1)
            lower, upper = float(edges[chosen]), float(edges[chosen + 1])
        return (lower + upper) / 2.0

    def quantile(self, loss: PrivacyBudget, *, level: float, radius: float, width: float) -> float:
        """Return a value near the ``level`` quantile, to within ``width``, in [−2·radius, 2·radius].

        A bin's score is minus the distance from level·n to the interval of ranks the bin covers.
        """
        ends = -2.0 * radius, 2.0 * radius

        def scores(histogram: Histogram, lower: float, upper: float) -> FloatArray:
            ranks = histogram.below + np.concatenate([[0], np.cumsum(histogram.counts)])
            # Values outside the range count at its ends: else all bins would be alike if most values were outside.
            ranks[0] = 0 if lower <= ends[0] else ranks[0]
            ranks[-1] = histogram.total if upper >= ends[1] else ranks[-1]
            target = level * histogram.total
            return -np.maximum(np.maximum(ranks[:-1] - target, target - ranks[1:]), 0.0)

        return self.search(ends, width, loss, scores, "coordinate-quantile", quantile=level)

    def scale(self, loss: PrivacyBudget, *, radius: float) -> float:
        """Estimate the standard deviation to a factor of about 2.5."""
        # The result is the likeliest power of two for the distance from the median: for normal values it most often lies in
        # a bin [2^i, 2^{i+1}) about σ, and the upper edge of the chosen bin is returned. The outermost bins also count the
        # distances outside all bins. (Karwa & Vadhan 2018; lecture 18, section 1.2, has infinitely many bins about 0.)
        for_median, for_scale = loss.split(0.5, 0.5)
        median = self.quantile(for_median, level=0.5, radius=radius, width=RESOLUTION * radius)
        edges = _scale_edges(radius)
        exact = self.rows.histogram(DistanceFrom(self.feature, median), edges)
        counts = np.array(exact.counts)
        counts[0] += exact.below
        counts[-1] += exact.above
        return float(edges[1:][self.chosen(counts, for_scale, "coordinate-scale")])


def require_workable_loss(loss: PrivacyBudget) -> None:
    """Raise for a loss whose :func:`examined_mean` would have noise beyond the lattice."""
    # Before any row is read.
    choose_bits(noise_scale_for(_with_checks(loss)[0], total_sensitivity(Neighbors.REPLACE_ONE, loss).value))


def examined_noise(loss: PrivacyBudget, half_width: float, n_rows: float) -> float:
    """Return the noise SD of :func:`examined_mean` under replace-one, rounding included."""
    part = _with_checks(loss)[0]
    bits = choose_bits(noise_scale_for(part, total_sensitivity(Neighbors.REPLACE_ONE, part).value))
    return float(with_rounding(_mean_noise(part, half_width, n_rows), 0.5 * half_width * 2.0**-bits))


def _with_checks(loss: PrivacyBudget) -> tuple[PrivacyBudget, ...]:
    """Return the parts of an examined mean: for itself, and for each of the two counts."""
    return loss.split(1.0 - 2.0 * _CHECK_SHARE, _CHECK_SHARE, _CHECK_SHARE)


def _mean_noise(loss: PrivacyBudget, half_width: float, n_rows: float) -> float:
    """Return the noise SD of a mean of values clamped to an interval, under replace-one."""
    # The interval has this half width.
    scale = noise_scale_for(loss, total_sensitivity(Neighbors.REPLACE_ONE, loss).value) * half_width / n_rows
    return noise_deviation(scale, pure=loss.kind is BudgetKind.PURE)


def zoom(lower: float, upper: float, width: float) -> Sequence[float]:
    """Return bin widths, level by level, of a search of [lower, upper] down to ``width``."""
    # Each level has at most MAX_BINS bins.
    ratio = (upper - lower) / width
    levels = max(1, math.ceil(math.log(ratio) / math.log(MAX_BINS) - 1e-9))
    factor = ratio ** (1.0 / levels)
    return [width * factor ** (levels - 1 - level) for level in range(levels)]


def released_means(
    plan: NaivePlan | KarwaVadhanPlan,
    examined: Sequence[ClampedMean],
    centers: Sequence[float],
    n_rows: float,
    means: FloatArray,
    warnings: Sequence[Message],
    diagnostics: Mapping[str, Any],
) -> NoisyMean:
    """Return the result of a run of coordinates' means, each clamped about its center."""
    moved = np.array([one.mean for one in examined]) - np.array(centers)
    noise = MeanModel(
        "laplace" if plan.mean_loss.kind is BudgetKind.PURE else "gaussian",
        np.array([one.noise_scale for one in examined]),
        np.abs(moved) * ((plan.expected_count_error or 0.0) / n_rows),
        clipped=max((one.share_clamped for one in examined if one.clamping_shows), default=0.0),
        bias_suspected=any(one.clamping_shows for one in examined),
    )
    said = {
        **diagnostics,
        "noise_scales": [one.noise_scale for one in examined],
        "shares_clamped": [one.share_clamped for one in examined],
        "warnings": tuple(warnings),
    }
    return NoisyMean(means, n_rows, said, noise)


def beyond_radius(examined: Sequence[ClampedMean], radius: float) -> list[bool]:
    """Mark the means outside [−radius, radius] by more than noise explains."""
    return [abs(one.mean) > radius + FROM_EDGE * one.noise_scale for one in examined]


def coordinate_warnings(
    names: Sequence[str], examined: Sequence[ClampedMean], radius: float, *, least_noise: float = 0.0
) -> list[Message]:
    """Return warnings on clamped means of coordinates."""
    # Their means are stated to be in [−radius, radius].
    most = [one.clamping_shows and one.share_clamped > 0.5 for one in examined]
    some = [one.clamping_shows and not one.share_clamped > 0.5 for one in examined]
    largest = max((one.share_clamped for one, here in zip(examined, some, strict=True) if here), default=0.0)
    lost = [one.noise_decides and one.noise_scale > least_noise for one in examined]
    return [
        *warning_of("mean-beyond-radius", names, beyond_radius(examined, radius)),
        *warning_of("mostly-clipped", names, most),
        *warning_of("values-clipped", names, some, share=largest),
        *warning_of("mean-lost", names, lost),
    ]


@dataclass(frozen=True)
class NaivePlan(MeanPlan):
    """Calibrated :class:`Naive`: coordinates clamped to ±half_width, ``mean_loss`` each."""

    radius: float
    half_width: float
    mean_loss: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE
    error_needs_rows: ClassVar[bool] = False

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        return np.full(self.shape.n_features, examined_noise(self.mean_loss, self.half_width, assumed.n_rows))

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows = self.count_of(rows, privacy_filter)
        result = [
            Coordinate(rows, privacy_filter, feature, n_rows).examined_mean(self.mean_loss, 0.0, self.half_width)
            for feature in range(self.shape.n_features)
        ]
        means = np.array([one.mean for one in result])
        # Noise beyond the range is clipped; a mean further out shows that the range is wrong.
        means = np.where(beyond_radius(result, self.radius), means, np.clip(means, -self.radius, self.radius))
        warnings = coordinate_warnings(rows.schema.feature_names, result, self.radius)
        return released_means(self, result, [0.0] * len(result), n_rows, means, warnings, {})


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


RESOLUTION = 2.0**-34
"""Width of the finest bin of a quantile search, as a fraction of the radius."""
CERTAIN = 2.0
"""Min ratio of the right bin's score to what many wrong bins gain by their number."""


@dataclass(frozen=True)
class SymmetricQuantilesPlan(MeanPlan):
    """Calibrated :class:`SymmetricQuantiles`.

    The range, the bin width, and the privacy loss of one quantile.
    """

    radius: float
    resolution: float
    loss: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        low, n = self.mechanism.options["quantile"], assumed.n_rows
        height = math.exp(-(float(scipy.special.ndtri(low)) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
        # The midpoint of exact quantiles has variance b/(2f²n), and its difference from the mean does not depend on the mean.
        sampling = low / (2.0 * height**2 * n) - 1.0 / n
        # Only one level of the search resolves rows. Its choice is off by a Laplace number of ranks, of variance 8/ε².
        ranks = 2.0 / choice_epsilon(self.level_loss)
        return assumed.standard_deviations * math.sqrt(sampling + (ranks / (height * n)) ** 2)

    @property
    def level_loss(self) -> PrivacyBudget:
        """Privacy loss of one level of the search for a quantile."""
        part, *_ = self.loss.split(*[1.0] * len(zoom(-2.0 * self.radius, 2.0 * self.radius, self.resolution)))
        return part

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows = self.count_of(rows, privacy_filter)
        low, options = self.mechanism.options["quantile"], {"radius": self.radius, "width": self.resolution}
        coordinates = [Coordinate(rows, privacy_filter, feature, n_rows) for feature in range(self.shape.n_features)]
        pairs = np.array(
            [[one.quantile(self.loss, level=level, **options) for level in (low, 1.0 - low)] for one in coordinates]
        )
        means = pairs.mean(axis=1)
        scales = (pairs.max(axis=1) - means) / -float(scipy.special.ndtri(low))
        # Both quantiles beyond the radius, and not by noise: two thirds of the values lie there.
        beyond = np.abs(pairs).min(axis=1) > self.radius
        beyond &= pairs[:, 0] * pairs[:, 1] > 0.0
        resolves = self._resolves(low, n_rows)
        beyond &= resolves
        warnings = warning_of("values-beyond-radius", rows.schema.feature_names, beyond.tolist())
        if not resolves:
            warnings.append(Message("mean-lost"))
        diagnostics = {"quantiles": pairs.tolist(), "scales": scales.tolist(), "warnings": tuple(warnings)}
        return NoisyMean(np.where(beyond, means, np.clip(means, -self.radius, self.radius)), n_rows, diagnostics)

    def _resolves(self, level: float, n_rows: float) -> bool:
        """Return True if the right bin outweighs all others."""
        # e^(ε·level·n/2) against their number, with a margin.
        return choice_epsilon(self.level_loss) * level * n_rows / 2.0 >= CERTAIN * math.log(MAX_BINS)


@dataclass(frozen=True)
class SymmetricQuantiles(MeanMechanism):
    """Midpoint of the private quantiles b and 1 − b of each coordinate.

    The mean of a symmetric distribution. Quantiles are searched in twice the radius. A midpoint beyond the radius is
    clipped to it, unless both of its quantiles are beyond it.

    **Privacy.** Half of a coordinate's budget for each quantile, an exponential mechanism over a grid (several levels
    of 4096 bins if the range is wide), pure ε or ε²/8-zCDP.

    Parameters
    ----------
    radius : float, optional
        Bound on the mean of every coordinate. Default: 1 for rows in the unit ball; otherwise required.
    quantile : float
        b; 0.35 in the paper.

    Examples
    --------
    >>> shape = MomentShape(1, n_rows=1000, row_norm=None)
    >>> SymmetricQuantiles(radius=10.0).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one").loss
    PrivacyBudget.zcdp(rho=0.25)
    """

    radius: float | None = None
    quantile: float = 0.35

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = ZCDP_LOSS_UNITS
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset({Neighbors.REPLACE_ONE})
    public_name: ClassVar[str | None] = "symq"
    summary: ClassVar[str] = "each coordinate: midpoint of two private quantiles"
    source: ClassVar[str] = "Du, Foot, Moniot, Bray & Groce 2020 (SYMQ)"

    def __post_init__(self) -> None:
        self.require_positive("radius")
        if not 0.0 < self.quantile < 0.5:
            raise out_of_range("quantile", self.quantile, "above 0 and below 0.5")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> SymmetricQuantilesPlan:
        radius = self.known_radius(self.radius, shape)
        count_loss, rest = self.divide_for_count(shape, budget, neighbors)
        half, *_ = rest.split(*[1.0] * (2 * shape.n_features))
        return SymmetricQuantilesPlan(
            self, shape, neighbors, budget, radius, radius * RESOLUTION, half, count_loss=count_loss
        )


_MIN_EXPONENT, _MAX_EXPONENT = -40, 2
"""Exponents of the scales searched, 2^−40 to 4 times the radius."""

_FULLEST_BIN = 0.3
"""Fraction of normal values in the fullest bin one SD wide: 0.34 to 0.38, by position."""


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
        n_rows, deviations = assumed.n_rows, assumed.standard_deviations
        if self.scale is not None:
            scales = [max(self.scale, math.ldexp(self.radius, _MIN_EXPONENT))] * len(deviations)
        else:
            # The results of `Coordinate.scale` for normal values of these SDs, without noise.
            edges = _scale_edges(self.radius)
            below = 2.0 * scipy.special.ndtr(edges / deviations[:, None]) - 1.0
            below[:, 0], below[:, -1] = 0.0, 1.0  # values outside the bins are counted in the outermost
            scales = edges[1:][np.diff(below).argmax(axis=1)].tolist()
        return np.array([examined_noise(self.mean_loss, _half_width(scale, n_rows), n_rows) for scale in scales])

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows, least = self.count_of(rows, privacy_filter), math.ldexp(self.radius, _MIN_EXPONENT)
        scales, centers, widths, result = list[float](), list[float](), list[float](), list[ClampedMean]()
        for feature in range(self.shape.n_features):
            one = Coordinate(rows, privacy_filter, feature, n_rows)
            scales.append(max(self.scale or 0.0, least))
            if self.scale_loss is not None:
                scales[-1] = one.scale(self.scale_loss, radius=self.radius)

            # The middle of a bin as wide as the scale, with many rows.
            lower, upper, _ = self._bins(scales[-1])
            middle = one.search(
                (lower, upper),
                scales[-1],
                self.location_loss,
                lambda histogram, _lower, _upper: histogram.counts,
                "coordinate-bin",
            )
            centers.append(min(max(middle, -self.radius), self.radius))
            widths.append(_half_width(scales[-1], n_rows))
            result.append(one.examined_mean(self.mean_loss, centers[-1], widths[-1]))

        # Noise below the resolution of the search decides nothing.
        names = rows.schema.feature_names
        warnings = coordinate_warnings(names, result, self.radius, least_noise=least)
        warnings += warning_of("location-lost", names, [not self._resolves(scale, n_rows) for scale in scales])
        means = np.clip(np.array([one.mean for one in result]), -self.radius, self.radius)
        diagnostics = {"scales": scales, "centers": centers, "half_widths": widths}
        return released_means(self, result, centers, n_rows, means, warnings, diagnostics)

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
