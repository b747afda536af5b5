"""Moments of one unbounded column, and the mean of several, one after another.

The scale by a log-scale histogram, then noisy clipped moments.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.base import ZCDP_LOSS_UNITS, Mechanism, Plan
from dpmoments.mechanisms.coordinatewise import clamped_mean
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for, with_noise
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.reliability import marked_names
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.mechanisms.unbounded_column import (
    CLIP_SHARE,
    HISTOGRAM_SHARE,
    LARGE_TAIL,
    ClippedColumn,
    LocatedColumn,
    column_losses,
    column_warnings,
    normal_clip,
    pure_if_less_noise,
    share_of,
)
from dpmoments.messages.message import Message
from dpmoments.noise.models import MeanModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import (
    gram_entrywise_l1,
    gram_frobenius,
    row_sum_l1,
    row_sum_l2,
    sum_and_square_l1,
    sum_and_square_l2,
)
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_MAX_NOISE_PER_SPREAD = 0.5
"""Noise over the upper quartile of the distances above which noise dominates a mean.

Distances are from the center.
"""


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
        errors: FloatArray = normal_clip(noise, n_rows) * noise / n_rows * assumed.standard_deviations
        return errors

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows, d = self.count_of(rows, privacy_filter), self.shape.n_features
        whole, *_ = privacy_filter.left.as_budget.split(*[1.0] * d)
        located = [
            LocatedColumn.find(rows, privacy_filter, whole, feature=feature, n_rows=n_rows) for feature in range(d)
        ]
        # The rest of easy searches is shared by all columns.
        share, *_ = privacy_filter.left.as_budget.split(*[1.0] * d)
        for_count, for_mean = share.split(CLIP_SHARE[share.kind], 1.0 - CLIP_SHARE[share.kind])
        noise = self._deviation(for_mean)
        columns = [
            one.clipped(rows, privacy_filter, for_count, one.histogram.clip_radius(1, noise, n_rows)) for one in located
        ]
        loss, *_ = privacy_filter.left.as_budget.split(*[1.0] * d)
        means = [
            clamped_mean(
                rows,
                privacy_filter,
                loss,
                feature=feature,
                center=one.located.center.value,
                half_width=one.radius,
                n_rows=n_rows,
            )
            for feature, one in enumerate(columns)
        ]
        noises = [self._deviation(loss) * one.radius / n_rows for one in columns]
        diagnostics = {
            "centers": [one.located.center.value for one in columns],
            "scales": [one.located.histogram.scale for one in columns],
            "half_widths": [one.radius for one in columns],
            "noise_scales": noises,
            "shares_clamped": [one.share_clipped for one in columns],
            "shares_unseen": [one.share_unseen for one in columns],
            "warnings": tuple(_warnings(rows.schema.feature_names, columns, noises)),
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
        pure = loss.kind is BudgetKind.PURE
        sensitivity = row_sum_l1(self.neighbors, 1) if pure else row_sum_l2(self.neighbors)
        return noise_deviation(noise_scale_for(loss, sensitivity.value), pure=pure)


def _warnings(names: tuple[str, ...], columns: list[ClippedColumn], noises: list[float]) -> list[Message]:
    result = column_warnings(names, columns)
    spreads = [one.located.histogram.upper_quartile(one.located.n_rows) for one in columns]
    decided = [
        noise > _MAX_NOISE_PER_SPREAD * spread and not one.is_constant
        for one, noise, spread in zip(columns, noises, spreads, strict=True)
    ]
    if any(decided):
        result.append(Message("mean-lost", names=marked_names(names, decided)))
    return result


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
"""w of the pair (wΣx, Σx²).

Mean and SD then have equal noise for a clip at four standard deviations.
"""
_NOISE_DECIDES = 0.5
"""Noise-dominated beyond this.

Noise as a fraction of the variance, or the mean's noise as a fraction of an SD.
"""


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
        located = LocatedColumn.find(
            rows,
            privacy_filter,
            privacy_filter.left.as_budget,
            feature=0,
            n_rows=n_rows,
            about_zero=not self.shape.mean,
        )
        left = privacy_filter.left.as_budget
        for_count, rest = left.split(CLIP_SHARE[left.kind], 1.0 - CLIP_SHARE[left.kind])
        radius = located.histogram.clip_radius(2, self._deviation(rest), n_rows)
        column = located.clipped(rows, privacy_filter, for_count, radius)
        return self._moments(rows, privacy_filter, column, n_rows)

    def _moments(self, rows: Rows, privacy_filter: PrivacyFilter, column: ClippedColumn, n_rows: float) -> RunResult:
        """Release the noisy sums of the clipped column, with the remaining budget."""
        loss, center, radius = privacy_filter.left.as_budget, column.located.center.value, column.radius
        sensitivity, pure = self._sensitivity(loss), loss.kind is BudgetKind.PURE
        scale = noise_scale_for(loss, sensitivity.value)
        bits = choose_bits(scale)
        exact = rows.moments(np.array([center]), np.eye(1), radius, bits=bits)
        query, what = [int(exact.gram[0, 0])], Message("squares")
        if self.shape.mean:
            query, what = [int(exact.sum[0]) * round(_AUGMENTATION * 2**bits), *query], Message("sum-and-squares")
        values = with_noise(privacy_filter, what, query, sensitivity, scale, bits=2 * bits, pure=pure)
        square, deviation = float(values[-1]) * radius**2, noise_deviation(scale, pure=pure) / n_rows
        mean, of_mean = 0.0, 0.0
        if self.shape.mean:
            mean, of_mean = float(values[0]) / _AUGMENTATION * radius / n_rows, deviation / _AUGMENTATION * radius
        variance = square / n_rows - mean**2
        of_variance = math.hypot(deviation * radius**2, 2.0 * mean * of_mean)
        diagnostics = {
            "center": center,
            "scale": column.located.histogram.scale,
            "radius": radius,
            "share_clipped": column.share_clipped,
            "share_unseen": column.share_unseen,
            "noise_on_mean": of_mean if self.shape.mean else None,
            "noise_on_variance": of_variance,
            "warnings": (
                *column_warnings(rows.schema.feature_names, [column]),
                *_doubts(column, variance, of_variance, of_mean),
            ),
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
        """Return the sensitivity of the sums of a column in [−1, 1]."""
        # In the norm of the noise of ``loss``.
        pure = loss.kind is BudgetKind.PURE
        if not self.shape.mean:
            return gram_entrywise_l1(self.neighbors, 1) if pure else gram_frobenius(self.neighbors, 1)
        return (sum_and_square_l1 if pure else sum_and_square_l2)(self.neighbors, _AUGMENTATION)

    def _deviation(self, loss: PrivacyBudget) -> float:
        """Return the noise SD of the sum of squares at radius 1."""
        scale = noise_scale_for(loss, self._sensitivity(loss).value)
        return noise_deviation(scale, pure=loss.kind is BudgetKind.PURE)


def _doubts(column: ClippedColumn, variance: float, of_variance: float, of_mean: float) -> list[Message]:
    """Return warnings if noise dominates the variance or the mean."""
    if column.is_constant:
        return [Message("values-mostly-equal")]
    result = []
    if of_variance > _NOISE_DECIDES * variance:
        result.append(Message("variance-lost"))
    # If the variance is lost in noise the located scale stands for it.
    if of_mean > _NOISE_DECIDES * math.sqrt(max(variance, column.located.histogram.scale**2)):
        result.append(Message("mean-lost"))
    return result


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
