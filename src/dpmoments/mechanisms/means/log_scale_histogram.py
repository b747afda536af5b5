"""Mean of unbounded columns, one after another.

A private median, a log-scale histogram, a clipped mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.base import ZCDP_LOSS_UNITS
from dpmoments.mechanisms.coordinatewise import clamped_mean
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.reliability import marked_names
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
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
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import row_sum_l1, row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_NOISE_DECIDES = 0.5
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
        noise > _NOISE_DECIDES * spread and not one.is_constant
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
