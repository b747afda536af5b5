"""Moments of one unbounded column, and the mean of several, one after another.

A private median, a log-scale histogram of the distances from it, then noisy clipped moments. Both searches cover all of a stated
range of floating point, in bins that grow with the distance from 0 or from the center. So no draw needs a δ to leave empty bins
out, and none depends on the order of rows (``docs/evidence/derivations/log_scale_histogram.md``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message, Query
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.base import ZCDP_LOSS_UNITS, Mechanism, Plan
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for, split_for_count, with_noise
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.moments.models import MeanModel
from dpmoments.papers.mechanisms.mapped_rows import FALSE_TAIL, NormHistogram, noise_margin, warning_of
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice
from dpmoments.privacy.sensitivity import (
    Sensitivity,
    count,
    count_l1,
    gram_entrywise_l1,
    gram_frobenius,
    histogram_l1,
    histogram_l2,
    median_score,
    row_sum_l1,
    row_sum_l2,
    sum_and_square_l1,
    sum_and_square_l2,
)
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows


def total_sensitivity(neighbors: Neighbors, loss: PrivacyBudget) -> Sensitivity:
    """Return the sensitivity of the sum of one coordinate in [−1, 1], for the noise of ``loss``."""
    return row_sum_l1(neighbors, 1) if loss.kind is BudgetKind.PURE else row_sum_l2(neighbors)


def noise_sd(loss: PrivacyBudget, sensitivity: float) -> float:
    """Return the SD of the noise that ``loss`` buys."""
    return noise_deviation(noise_scale_for(loss, sensitivity), pure=loss.kind is BudgetKind.PURE)


def noised(
    privacy_filter: PrivacyFilter, what: Query, query: Any, sensitivity: Sensitivity, loss: PrivacyBudget, bits: int = 0
) -> FloatArray:
    """Return integers plus discrete noise that costs ``loss``."""
    # Laplace noise for a pure loss, else Gaussian.
    scale = noise_scale_for(loss, sensitivity.value)
    return with_noise(privacy_filter, what, query, sensitivity, scale, bits=bits, pure=loss.kind is BudgetKind.PURE)


def choose(
    scores: npt.NDArray[Any], sensitivity: Sensitivity, loss: PrivacyBudget, privacy_filter: PrivacyFilter, what: Query
) -> int:
    """Choose an index by the exponential mechanism.

    Its probability is ∝ exp(ε·score/(2Δ)), Δ the sensitivity.

    **Privacy.** ε-DP, with bounded range ε, hence ε²/8-zCDP (Cesar & Rogers 2021): a zCDP loss ρ allows ε = √(8ρ).
    """
    # Two units in the last place down: the square root and the quotient may round up.
    law = Choice(math.nextafter(math.nextafter(choice_epsilon(loss) / sensitivity.value, 0.0), 0.0))
    return int(privacy_filter.draw(what, law, scores, sensitivity))


def choice_epsilon(loss: PrivacyBudget) -> float:
    """Return the ε of an exponential mechanism that costs ``loss``."""
    return loss.epsilon if loss.kind is BudgetKind.PURE else math.sqrt(8.0 * loss.rho)


@dataclass(frozen=True, slots=True)
class CoordinateValue:
    """Row statistic: one coordinate."""

    feature: int

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return one column of a batch, shape (m, d) → (m,)."""
        return block[:, self.feature]


@dataclass(frozen=True, slots=True)
class DistanceFrom:
    """Row statistic |x − center| of one coordinate x; inf if it overflows floating point."""

    feature: int
    center: float

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return the distances in one column of a batch, shape (m, d) → (m,)."""
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(block[:, self.feature] - self.center))


_MAX_EXPONENT = 200
"""Exponent of the range of values, 2^±200: smaller ones count as 0, larger as the largest."""
_CELLS_PER_OCTAVE = 64
_CELLS = 2**16
"""Max number of bins of a level of the search after the first."""
_MAX_LEVELS = 6
"""Max number of levels: bins are then as fine as floating point, for any rows."""
_MIN_CELLS = 8
_RANK_ERROR, _MAX_RANK_ERROR = 0.125, 0.4
"""Target and max useful distance from the median at the end of a level, as part of the rows."""
_CERTAIN = 3.0
"""Exponent by which the bins nearer than that outweigh all others together."""
_CONCENTRATED = 0.65
"""Fraction of the rows above which a bin and its two neighbors are divided further."""
_COUNT_ERROR = 0.03
"""Planned noise on that fraction; a third of the rows is ten times as much."""
_MAX_COUNT_NOISE = 2.0**40
"""Max noise of a count: more would save next to nothing, and soon exceed what can be drawn."""

Shares = Mapping[BudgetKind, float]
_LEVEL_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.08, BudgetKind.ZCDP: 0.04})
_LEVEL_COUNT_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.02, BudgetKind.ZCDP: 0.01})
"""Max shares of a column's budget for a level of the search, and for the count after it."""

_NEAR = 2
"""Octaves on either side of the fullest bin whose counts are used even if within noise."""
_UPPER_QUARTILE = 1.1503493803760079
"""Upper quartile of the absolute value of a standard normal variable."""
_MIN_BEYOND, _MAX_BEYOND = 0.5, 0.1
"""Min rows, and max fraction of rows, that a clip leaves outside if they are normal."""
_PLACES = np.exp2((np.arange(8.0) + 1.0) / 8.0)
"""Assumed positions of a bin's rows relative to its lower edge, up to the upper one."""


@dataclass(frozen=True, slots=True)
class Center:
    """Private median."""

    value: float
    settled: bool  # true if the search ended with rows no longer in few bins, or bins as fine as floating point
    certain: bool  # true if every level could afford to find a bin near the median, by public numbers only


def share_of(whole: PrivacyBudget, share: float) -> PrivacyBudget:
    """Return a share of a budget in ε or ρ, rounded down."""
    return whole.split(share, 1.0 - share)[0]


@dataclass(frozen=True, slots=True)
class ColumnQueries:
    """Questions about one column of a table, and the filter that answers them."""

    rows: Rows
    privacy_filter: PrivacyFilter
    feature: int
    n_rows: float  # public or noisy

    def about(self, code: str, **facts: Any) -> Message:
        """Return what a question is called in the receipt."""
        return Message(code, feature=self.feature + 1, **facts)

    def clamped_mean(self, loss: PrivacyBudget, center: float, half_width: float) -> float:
        """Return the noisy mean of the column clamped to center ± half_width.

        **Privacy.** ``loss`` under replace-one. The integer sum moves by at most twice the half width; its noise is discrete
        Gaussian for a zCDP loss, discrete Laplace for a pure one.
        """
        linear, offset = np.zeros((1, self.rows.n_features)), np.zeros(self.rows.n_features)
        linear[0, self.feature], offset[self.feature] = 1.0, center
        sensitivity = total_sensitivity(self.rows.neighbors, loss)
        bits = choose_bits(noise_scale_for(loss, sensitivity.value))
        total = self.rows.moments(offset, linear, half_width, bits=bits).sum
        noisy = noised(self.privacy_filter, self.about("coordinate-mean"), total, sensitivity, loss, bits)
        return center + float(noisy[0]) * half_width / self.n_rows

    def number_beyond(self, loss: PrivacyBudget, what: Query, center: float, least: float) -> float:
        """Return the noisy number of rows with |x − center| ≥ ``least``; costs ``loss``."""
        exact = self.rows.histogram(DistanceFrom(self.feature, center), [least, math.inf])
        sensitivity = (count_l1 if loss.kind is BudgetKind.PURE else count)(self.rows.neighbors)
        beyond = [int(exact.counts.sum()) + exact.above]
        return float(noised(self.privacy_filter, what, beyond, sensitivity, loss)[0])

    def center(self, whole: PrivacyBudget) -> Center:
        """Return a value near the median."""
        # To within its spread or floating-point resolution.
        edges, certain, value = _float_line(), True, 0.0
        sensitivity, pure = median_score(self.rows.neighbors), whole.kind is BudgetKind.PURE
        for level in range(1, _MAX_LEVELS + 1):
            # Of m cells, those more than r rows from the median have weight m·e^(−εr/Δ) in all.
            exponent = sensitivity.value * (math.log(len(edges)) + _CERTAIN) / self.n_rows
            enough = exponent / _RANK_ERROR
            loss = _at_most(whole, enough if pure else enough**2 / 8.0, _LEVEL_SHARE[whole.kind])
            certain = certain and choice_epsilon(loss) >= exponent / _MAX_RANK_ERROR
            histogram = self.rows.histogram(CoordinateValue(self.feature), edges)
            ranks = histogram.below + np.concatenate([[0], np.cumsum(histogram.counts)])
            if level == 1:  # values beyond count at the ends: else all cells would be alike where most lie there
                ranks[0], ranks[-1] = 0, histogram.total
            before, after = 2 * ranks[:-1] - histogram.total, histogram.total - 2 * ranks[1:]
            scores = -np.maximum(np.maximum(before, after), 0)
            chosen = choose(scores, sensitivity, loss, self.privacy_filter, self.about("median", level=level))
            value = float(edges[chosen] + edges[chosen + 1]) / 2.0
            lower, upper = float(edges[max(chosen - 1, 0)]), float(edges[min(chosen + 2, len(edges) - 1)])
            finest = 2.0 * float(np.spacing(max(abs(lower), abs(upper))))
            cells = min(_CELLS, int((upper - lower) / finest))
            if cells < _MIN_CELLS or float(edges[chosen]) < 0.0 < float(edges[chosen + 1]):
                return Center(value, True, certain)
            deviation = min(_COUNT_ERROR * self.n_rows, _MAX_COUNT_NOISE)
            of_count = math.sqrt(2.0) / deviation if pure else 0.5 / deviation**2
            beyond = self.number_beyond(
                _at_most(whole, of_count, _LEVEL_COUNT_SHARE[whole.kind]),
                self.about("rows-far-from-median", level=level),
                value,
                math.nextafter(max(upper - value, value - lower), math.inf),
            )
            if beyond > (1.0 - _CONCENTRATED) * self.n_rows:
                return Center(value, True, certain)
            edges = np.linspace(lower, upper, cells + 1)
        return Center(value, False, certain)

    def distances(self, loss: PrivacyBudget, center: float) -> OctaveHistogram:
        """Count |x − center| in all octaves up to 2^200."""
        # From 2^−200, or from 8 units in the last place of the center.
        least = max(-_MAX_EXPONENT, math.frexp(center)[1] - 50) if center else -_MAX_EXPONENT
        edges = np.exp2(np.arange(least, _MAX_EXPONENT + 1, dtype=np.float64))
        exact = self.rows.histogram(DistanceFrom(self.feature, center), edges)
        pure = loss.kind is BudgetKind.PURE
        sensitivity = (histogram_l1 if pure else histogram_l2)(self.rows.neighbors)
        query = np.concatenate([[exact.below], exact.counts, [exact.above]])
        counts = noised(self.privacy_filter, self.about("log-scale-histogram"), query, sensitivity, loss)
        return OctaveHistogram(edges, counts, noise_sd(loss, sensitivity.value), FALSE_TAIL, pure)


@lru_cache(maxsize=1)
def _float_line() -> FloatArray:
    """Return the edges of the first level: 64 bins per octave for either sign, one bin about 0."""
    octaves = np.exp2(np.arange(-_MAX_EXPONENT, _MAX_EXPONENT, dtype=np.float64))
    within = 1.0 + np.arange(_CELLS_PER_OCTAVE) / _CELLS_PER_OCTAVE
    positive = np.append(np.outer(octaves, within).ravel(), 2.0**_MAX_EXPONENT)
    edges: FloatArray = np.concatenate([-positive[::-1], positive])
    edges.setflags(write=False)
    return edges


def _at_most(whole: PrivacyBudget, needed: float, share: float) -> PrivacyBudget:
    """Return the loss that is needed, at most this share of the whole."""
    available = whole.epsilon if whole.kind is BudgetKind.PURE else whole.rho
    return share_of(whole, min(share, needed / available))


def normal_clip(noise: float, n_rows: float) -> float:
    """Return the clip, in SDs of normal rows, that as many rows exceed as the noise counts."""
    beyond = min(max(noise, _MIN_BEYOND), _MAX_BEYOND * n_rows)
    return -float(scipy.special.ndtri(beyond / (2.0 * n_rows)))


@dataclass(frozen=True, slots=True, eq=False)
class OctaveHistogram(NormHistogram):
    """Noisy counts of |x − c| in octaves [2^i, 2^(i+1)), and of smaller and larger ones."""

    @property
    def fullest(self) -> int:
        """Index of the bin with the largest noisy count."""
        return int(np.argmax(self.counts))

    @property
    def scale(self) -> float:
        """2^i of the fullest bin: for normal rows 0.47σ to 0.93σ (lecture 18, section 1.2)."""
        return float(self.edges[max(self.fullest - 1, 0)])

    @property
    def stands_out(self) -> bool:
        """True if the fullest bin holds more than noise."""
        return float(self.counts[self.fullest]) > self.least_seen

    @property
    def believed(self) -> FloatArray:
        """Noisy counts above the noise or near the fullest bin, shape (m + 1,)."""
        result = self.occupied
        near = slice(max(self.fullest - _NEAR, 0), self.fullest + _NEAR + 1)
        result[near] = np.maximum(self.counts[near], 0.0)
        return result

    def upper_quartile(self, n_rows: float) -> float:
        """Return the distance that a quarter of the rows exceed, by interpolation within a bin."""
        wanted, believed = 0.25 * n_rows, self.believed
        for index in range(len(believed) - 1, -1, -1):
            here = float(believed[index])
            if here > 0.0 and here >= wanted:
                upper = float(self.edges[min(index, len(self.edges) - 1)])
                lower = float(self.edges[index - 1]) if index > 0 else upper
                return upper - (upper - lower) * max(wanted, 0.0) / here
            wanted -= here
        return float(self.edges[min(self.fullest, len(self.edges) - 1)])

    def clip_radius(self, power: int, noise: float, n_rows: float) -> float:
        """Return the radius at which to clip the distances |w| for Σ|w|^p, p = ``power``.

        It balances noise against bias.

        At the best radius as many rows lie beyond it as the noise counts: r^p·noise grows by ``noise``, the noise SD of Σ|w|^p
        at radius 1, and the part cut off falls by the rows beyond, per unit of r^p. For normal rows that is a quantile, with σ
        from the upper quartile. It is larger if rows above the noise make noise and bias together smaller there.
        """
        of_normal = self.upper_quartile(n_rows) / _UPPER_QUARTILE * normal_clip(noise, n_rows)
        least, occupied = max(of_normal, float(self.edges[0])), self.occupied
        present = np.flatnonzero(occupied)
        if len(present) == 0:
            return least

        # The radius of least noise and bias for the rows above the noise.
        farthest = float(self.edges[min(int(present[-1]), len(self.edges) - 1)])
        lower = np.concatenate([self.edges[:1] / 2.0, self.edges])[present] / farthest
        indices = np.minimum(np.outer(lower, _PLACES), 1.0) ** power
        radii = np.exp2(-np.arange(4.0 * len(self.edges)) / 4.0) ** power
        bias = np.maximum(indices[None] - radii[:, None, None], 0.0).mean(axis=2) @ occupied[present]
        best = float(radii[int(np.argmin(np.hypot(noise * radii, bias)))])
        return max(least, farthest * math.pow(best, 1.0 / power))


# One column without bounds, from search to clip: the shares of its budget, what was found, and what speaks against it.

_COUNT_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.05, BudgetKind.ZCDP: 0.02})
"""Budget share of the number of rows, if it is private."""
HISTOGRAM_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.15, BudgetKind.ZCDP: 0.1})
"""Share of a column's budget for the log-scale histogram."""
CLIP_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.04, BudgetKind.ZCDP: 0.02})
"""Share of the then remaining budget for the number of clipped rows."""
_MIN_LEFT = 0.1
"""Lower bound on the share of a column's budget that its sums have in any run."""
_MIN_CLIPPED = 0.01
"""Fraction of clipped rows above which a warning is given."""
LARGE_TAIL = 0.1
"""Fraction of rows in an unseen tail above which a warning is given."""


@dataclass(frozen=True, slots=True)
class LocatedColumn:
    """Center of a column, and the histogram of distances from it."""

    queries: ColumnQueries
    center: Center
    histogram: OctaveHistogram

    @classmethod
    def find(cls, queries: ColumnQueries, whole: PrivacyBudget, *, about_zero: bool = False) -> LocatedColumn:
        """Search for the center, unless it is 0, and count the distances from it."""
        # It uses a part of `whole`.
        center = Center(0.0, settled=True, certain=True) if about_zero else queries.center(whole)
        return cls(queries, center, queries.distances(share_of(whole, HISTOGRAM_SHARE[whole.kind]), center.value))

    def clipped(self, loss: PrivacyBudget, radius: float) -> ClippedColumn:
        """Add a noisy count of the rows beyond ``radius``, which costs ``loss``."""
        queries, least = self.queries, math.nextafter(radius, math.inf)
        beyond = queries.number_beyond(loss, queries.about("clipped-rows-of-feature"), self.center.value, least)
        share, deviation = beyond / queries.n_rows, noise_sd(loss, 1.0) / queries.n_rows
        margin = noise_margin(deviation, queries.rows.n_features, pure=loss.kind is BudgetKind.PURE)
        shows = share > _MIN_CLIPPED + margin
        found = self.queries, self.center, self.histogram
        return ClippedColumn(*found, radius, min(max(share, 0.0), 1.0), shows)


@dataclass(frozen=True, slots=True)
class ClippedColumn(LocatedColumn):
    """Column and its clip."""

    # ``clipping_shows`` is True if the noisy ``share_clipped`` is above _MIN_CLIPPED by more than noise.

    radius: float
    share_clipped: float
    clipping_shows: bool

    @property
    def share_unseen(self) -> float:
        """Fraction of rows in a tail that the histogram may miss."""
        return min(1.0, self.histogram.least_seen / self.queries.n_rows)

    @property
    def is_constant(self) -> bool:
        """True if most rows are within the histogram's resolution of the center."""
        return self.histogram.fullest == 0


def pure_if_less_noise(budget: PrivacyBudget, drawable_budget: PrivacyBudget, n_columns: int) -> PrivacyBudget:
    """Return pure ε for (ε, δ) if its Laplace noise is less than normal noise."""
    # The normal noise is of `drawable_budget`. It is less for few columns.
    if budget.kind is not BudgetKind.APPROXIMATE:
        return budget
    pure = PrivacyBudget.pure(budget.epsilon)
    of_pure, of_zcdp = (whole.split(*[1.0] * n_columns)[0] for whole in (pure, drawable_budget))
    return pure if noise_sd(of_pure, 1.0) < noise_sd(of_zcdp, 1.0) else budget


def column_losses(
    whole: PrivacyBudget, n_columns: int, *, private_count: bool
) -> tuple[PrivacyBudget | None, PrivacyBudget]:
    """Return the budgets of the number of rows, if that is private, and of each column."""
    for_count = None
    if private_count:
        for_count, whole = split_for_count(whole, _COUNT_SHARE[whole.kind])
    of_column, *_ = whole.split(*[1.0] * n_columns)
    # The sensitivity of a column's sums is 2 at most.
    choose_bits(noise_scale_for(share_of(of_column, _MIN_LEFT), 2.0))
    return for_count, of_column


def column_warnings(names: Sequence[str], columns: Sequence[ClippedColumn]) -> list[Message]:
    """Return the warnings on moments of clipped columns."""
    lost = [not (one.center.certain and one.histogram.stands_out) for one in columns]
    clipped, unseen = [one.clipping_shows for one in columns], [one.share_unseen for one in columns]
    largest = max((one.share_clipped for one in columns if one.clipping_shows), default=0.0)
    return [
        *warning_of("location-lost", names, lost),
        *warning_of("search-unsettled", names, [not one.center.settled for one in columns]),
        *warning_of("values-clipped", names, clipped, share=largest),
        *warning_of("values-unseen", names, [share > LARGE_TAIL for share in unseen], share=max(unseen)),
    ]


_MAX_NOISE_PER_SPREAD = 0.5
"""Noise over the upper quartile of distances from the center, above which it dominates."""


@dataclass(frozen=True)
class LogScaleHistogramMeanPlan(MeanPlan):
    """Calibrated :class:`LogScaleHistogramMean`."""

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        """Return the errors if the search for a center were free: with many rows it is nearly so."""
        whole, n_rows = self.mechanism.drawable_budget(self.cost), assumed.n_rows
        _, column = column_losses(whole, self.shape.n_features, private_count=self.count_loss is not None)
        located = share_of(column, 1.0 - HISTOGRAM_SHARE[column.kind])
        noise = self._deviation(share_of(located, 1.0 - CLIP_SHARE[column.kind]))
        return np.asarray(normal_clip(noise, n_rows) * noise / n_rows * assumed.standard_deviations)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows, d = self.count_of(rows, privacy_filter), self.shape.n_features
        whole, *_ = privacy_filter.left.as_budget.split(*[1.0] * d)
        queries = [ColumnQueries(rows, privacy_filter, feature, n_rows) for feature in range(d)]
        located = [LocatedColumn.find(each, whole) for each in queries]
        # The rest of easy searches is shared by all columns.
        share, *_ = privacy_filter.left.as_budget.split(*[1.0] * d)
        for_count, for_mean = share.split(CLIP_SHARE[share.kind], 1.0 - CLIP_SHARE[share.kind])
        noise = self._deviation(for_mean)
        columns = [one.clipped(for_count, one.histogram.clip_radius(1, noise, n_rows)) for one in located]
        loss, *_ = privacy_filter.left.as_budget.split(*[1.0] * d)
        means = [one.queries.clamped_mean(loss, one.center.value, one.radius) for one in columns]
        noises = [self._deviation(loss) * one.radius / n_rows for one in columns]
        names = rows.schema.feature_names
        warnings = column_warnings(names, columns)
        decided = [
            noise > _MAX_NOISE_PER_SPREAD * one.histogram.upper_quartile(n_rows) and not one.is_constant
            for one, noise in zip(columns, noises, strict=True)
        ]
        warnings += warning_of("mean-lost", names, decided)
        diagnostics = {
            "centers": [one.center.value for one in columns],
            "scales": [one.histogram.scale for one in columns],
            "half_widths": [one.radius for one in columns],
            "noise_scales": noises,
            "shares_clamped": [one.share_clipped for one in columns],
            "shares_unseen": [one.share_unseen for one in columns],
            "warnings": tuple(warnings),
        }
        moved = np.abs(np.array(means) - np.array(diagnostics["centers"]))
        law = MeanModel(
            "laplace" if loss.kind is BudgetKind.PURE else "gaussian",
            np.array(noises),
            moved * ((self.expected_count_error or 0.0) / n_rows),
            clipped=max((one.share_clipped for one in columns if one.clipping_shows), default=0.0),
            bias_suspected=any(one.clipping_shows or one.share_unseen > LARGE_TAIL for one in columns),
        )
        return NoisyMean(np.array(means), n_rows, diagnostics, law)

    def _deviation(self, loss: PrivacyBudget) -> float:
        """Return the noise SD of a sum of values in [−1, 1]."""
        return noise_sd(loss, total_sensitivity(self.neighbors, loss).value)


@dataclass(frozen=True)
class LogScaleHistogramMean(MeanMechanism):
    """Mean of columns with no bound and no scale range, coordinate by coordinate.

    Lecture 18, sections 1.1 and 1.2.

    Each column: a private median in a stated range of floating point (bins of 2^−6 of an octave, then finer ones if most rows
    are in few bins), a log-scale histogram of the distances from it, and the mean of values clipped between noise and bias. No
    known or finite fourth moment is needed: heavy tails show in the histogram, and the clip is wider.

    **Privacy.** Pure ε, (ε, δ) or ρ, for either relation; the budget is divided evenly among the columns.

    Examples
    --------
    >>> shape = MomentShape(2, row_norm=None)
    >>> LogScaleHistogramMean().plan(shape, PrivacyBudget.pure(1.0), "add_remove").count_loss
    PrivacyBudget.pure(epsilon=0.05)
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = ZCDP_LOSS_UNITS
    public_name: ClassVar[str | None] = "log-scale-histogram"
    summary: ClassVar[str] = "each coordinate: private median, log-scale histogram, clipped mean; no radius, no scale"
    source: ClassVar[str] = "lecture 18, sections 1.1 and 1.2, after Karwa & Vadhan 2018; finite range, private median"

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> LogScaleHistogramMeanPlan:
        d = shape.n_features
        spent = pure_if_less_noise(budget, self.drawable_budget(budget), d)
        count_loss, _ = column_losses(self.drawable_budget(spent), d, private_count=shape.n_rows is None)
        return LogScaleHistogramMeanPlan(self, shape, neighbors, spent, count_loss=count_loss)


_AUGMENTATION = 0.625
"""w of (wΣx, Σx²): noise of mean and SD is then equal for a clip at four SDs."""
_NOISE_DECIDES = 0.5
"""Noise over the variance, or of the mean over an SD, above which it dominates."""


@dataclass(frozen=True)
class LogScaleHistogramPlan(Plan):
    """Calibrated :class:`LogScaleHistogram`."""

    mechanism: LogScaleHistogram

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    @property
    def expected_count_error(self) -> float | None:
        return 0.0 if self.shape.n_rows is not None else super().expected_count_error

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        n_rows = float(self.shape.n_rows or 0) or self.released_count(rows.count(), privacy_filter)
        assert n_rows is not None
        queries = ColumnQueries(rows, privacy_filter, 0, n_rows)
        located = LocatedColumn.find(queries, privacy_filter.left.as_budget, about_zero=not self.shape.mean)
        left = privacy_filter.left.as_budget
        for_count, rest = left.split(CLIP_SHARE[left.kind], 1.0 - CLIP_SHARE[left.kind])
        noise = noise_sd(rest, self._sensitivity(rest).value)  # of the sum of squares at radius 1
        radius = located.histogram.clip_radius(2, noise, n_rows)
        column = located.clipped(for_count, radius)

        # The noisy sums of the clipped column, with the remaining budget.
        loss, center = privacy_filter.left.as_budget, located.center.value
        sensitivity = self._sensitivity(loss)
        bits = choose_bits(noise_scale_for(loss, sensitivity.value))
        exact = rows.moments(np.array([center]), np.eye(1), radius, bits=bits)
        query, what = [int(exact.gram[0, 0])], Message("squares")
        if self.shape.mean:
            query, what = [int(exact.sum[0]) * round(_AUGMENTATION * 2**bits), *query], Message("sum-and-squares")
        values = noised(privacy_filter, what, query, sensitivity, loss, 2 * bits)
        square, deviation = float(values[-1]) * radius**2, noise_sd(loss, sensitivity.value) / n_rows
        mean, of_mean = 0.0, 0.0
        if self.shape.mean:
            mean, of_mean = float(values[0]) / _AUGMENTATION * radius / n_rows, deviation / _AUGMENTATION * radius
        variance = square / n_rows - mean**2
        of_variance = math.hypot(deviation * radius**2, 2.0 * mean * of_mean)
        warnings = column_warnings(rows.schema.feature_names, [column])
        if column.is_constant:
            warnings.append(Message("values-mostly-equal"))
        else:
            if of_variance > _NOISE_DECIDES * variance:
                warnings.append(Message("variance-lost"))
            # If the variance is lost in noise the located scale stands for it.
            if of_mean > _NOISE_DECIDES * math.sqrt(max(variance, column.histogram.scale**2)):
                warnings.append(Message("mean-lost"))
        diagnostics = {
            "center": center,
            "scale": column.histogram.scale,
            "radius": radius,
            "share_clipped": column.share_clipped,
            "share_unseen": column.share_unseen,
            "noise_on_mean": of_mean if self.shape.mean else None,
            "noise_on_variance": of_variance,
            "warnings": tuple(warnings),
        }
        released = self.shape.mean or self.neighbors.table_size_is_public
        return RunResult(
            count=n_rows if released else None,
            sum=np.array([mean * n_rows]) if self.shape.mean else None,
            gram=np.array([[square]]),
            center=np.array([center]) if self.shape.mean else None,
            diagnostics=diagnostics,
        )

    def _sensitivity(self, loss: PrivacyBudget) -> Sensitivity:
        """Return the sensitivity of the sums of a column in [−1, 1], in the norm of the noise."""
        pure = loss.kind is BudgetKind.PURE
        if not self.shape.mean:
            return gram_entrywise_l1(self.neighbors, 1) if pure else gram_frobenius(self.neighbors, 1)
        return (sum_and_square_l1 if pure else sum_and_square_l2)(self.neighbors, _AUGMENTATION)


@dataclass(frozen=True)
class LogScaleHistogram(Mechanism):
    """Count, mean and variance of one column with no bound and no scale range.

    Lecture 18, section 1.2, has rows of mean zero: the fullest of the bins [2^i, 2^(i+1)) over |x| is σ to a constant factor,
    and the second moment of rows clipped to a multiple of it has little noise. Its bins are infinitely many; those of a stated
    range of floating point, 2^−200 to 2^200, are 402, and with noise on every bin no δ is needed. If a mean is released a
    private median is found first, in levels of some 50,000 bins, and distances and moments are about it. The same histogram
    gives a clip that balances noise and bias. ``mean=False`` is the lecture's setting, about 0.

    **Privacy.** Pure ε, (ε, δ) or ρ, by adaptive composition: a number of rows, exponential mechanisms on ranks, noisy counts
    and sums. Their number depends on noisy answers; the privacy filter holds them to the budget
    (``docs/evidence/derivations/log_scale_histogram.md``). Nothing is assumed about the rows.

    Examples
    --------
    >>> import dpmoments as dpm
    >>> incomes = np.random.default_rng(0).normal(40_000.0, 9_000.0, (5000, 1))
    >>> released = dpm.release(incomes, dpm.Schema.unbounded(1), epsilon=1.0, insecure_seed=0)
    >>> released.mechanism, bool(abs(released.mean[0] - 40_000) < 500), bool(abs(released.covariance[0, 0] ** 0.5 - 9_000) < 500)
    ('log-scale-histogram', True, True)
    """

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = ZCDP_LOSS_UNITS
    needs_row_norm: ClassVar[bool] = False
    counts_rows: ClassVar[bool] = True
    most_features: ClassVar[int | None] = 1
    summary: ClassVar[str] = "mean and variance of one column with no bound and no scale, under any budget"
    source: ClassVar[str] = "lecture 18, section 1.2, after Karwa & Vadhan 2018; finite range, private median"

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> LogScaleHistogramPlan:
        if shape.n_rows == 0:
            raise InputValueError("log-scale-histogram needs rows: this table is publicly empty")
        spent = pure_if_less_noise(budget, self.drawable_budget(budget), 1)
        count_loss, _ = column_losses(self.drawable_budget(spent), 1, private_count=shape.n_rows is None)
        return LogScaleHistogramPlan(self, shape, neighbors, spent, count_loss=count_loss)
