"""Parts shared by estimators that treat coordinates separately.

Clamped means, private choices, searches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for, with_noise
from dpmoments.mechanisms.reliability import FROM_EDGE, marked_names, noise_margin
from dpmoments.messages.message import Message, Query
from dpmoments.noise.rounding import with_rounding
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice
from dpmoments.privacy.sensitivity import row_sum_l1, row_sum_l2
from dpmoments.privacy.unit import Neighbors
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


def examined_mean(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    loss: PrivacyBudget,
    *,
    feature: int,
    center: float,
    half_width: float,
    n_rows: float,
) -> ClampedMean:
    """Return :func:`clamped_mean` for most of ``loss``.

    The rest counts clamped values, and values beyond the noise.

    **Privacy.** ``loss`` under replace-one.
    """
    for_mean, *checks = _with_checks(loss)
    mean = clamped_mean(
        rows, privacy_filter, for_mean, feature=feature, center=center, half_width=half_width, n_rows=n_rows
    )
    noise = examined_noise(loss, half_width, n_rows)
    beyond_clamp, beyond_noise = (
        _share_beyond(rows, privacy_filter, part, feature=feature, center=center, least=least, n_rows=n_rows, code=code)
        for part, least, code in zip(
            checks,
            (math.nextafter(half_width, math.inf), noise),
            ("clamped-values", "values-beyond-noise"),
            strict=True,
        )
    )
    # A count's noise is 1/half_width of that of a mean clamped to ±half_width, on half the range.
    margin = noise_margin(_mean_noise(checks[0], 0.5, n_rows), rows.n_features, pure=loss.kind is BudgetKind.PURE)
    return ClampedMean(
        mean,
        noise,
        min(max(beyond_clamp, 0.0), 1.0),
        clamping_shows=beyond_clamp > _MIN_CLAMPED + margin,
        noise_decides=beyond_noise < 0.5 and abs(mean - center) < _FROM_CENTER * noise,
    )


def require_workable_loss(loss: PrivacyBudget) -> None:
    """Refuse a loss whose :func:`examined_mean` would have noise beyond the lattice."""
    # Before any row is read.
    choose_bits(noise_scale_for(_with_checks(loss)[0], _of_total(Neighbors.REPLACE_ONE, loss).value))


def examined_noise(loss: PrivacyBudget, half_width: float, n_rows: float) -> float:
    """Return the noise SD of :func:`examined_mean` under replace-one, rounding included."""
    part = _with_checks(loss)[0]
    bits = choose_bits(noise_scale_for(part, _of_total(Neighbors.REPLACE_ONE, part).value))
    return float(with_rounding(_mean_noise(part, half_width, n_rows), 0.5 * half_width * 2.0**-bits))


def _with_checks(loss: PrivacyBudget) -> tuple[PrivacyBudget, ...]:
    """Return the parts of an examined mean: for itself, and for each of the two counts."""
    return loss.split(1.0 - 2.0 * _CHECK_SHARE, _CHECK_SHARE, _CHECK_SHARE)


def _mean_noise(loss: PrivacyBudget, half_width: float, n_rows: float) -> float:
    """Return the noise SD of a mean of values clamped to an interval, under replace-one."""
    # The interval has this half width.
    scale = noise_scale_for(loss, _of_total(Neighbors.REPLACE_ONE, loss).value) * half_width / n_rows
    return noise_deviation(scale, pure=loss.kind is BudgetKind.PURE)


def _of_total(neighbors: Neighbors, loss: PrivacyBudget) -> Sensitivity:
    """Return the sensitivity of the sum of one coordinate in [−1, 1], for the noise of ``loss``."""
    return row_sum_l1(neighbors, 1) if loss.kind is BudgetKind.PURE else row_sum_l2(neighbors)


def _share_beyond(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    loss: PrivacyBudget,
    *,
    feature: int,
    center: float,
    least: float,
    n_rows: float,
    code: str,
) -> float:
    """Return the noisy fraction of rows with |x − center| ≥ ``least``, x one coordinate."""
    # Noise may take it out of [0, 1].
    exact = rows.histogram(DistanceFrom(feature, center), [least, math.inf])
    signed = int(exact.counts.sum()) + exact.above - exact.below
    pure, sensitivity = loss.kind is BudgetKind.PURE, _of_total(rows.neighbors, loss)
    scale = noise_scale_for(loss, sensitivity.value)
    query = Message(code, feature=feature + 1)
    noisy = with_noise(privacy_filter, query, [signed], sensitivity, scale, bits=0, pure=pure)
    return 0.5 + 0.5 * float(noisy[0]) / n_rows


def clamped_mean(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    loss: PrivacyBudget,
    *,
    feature: int,
    center: float,
    half_width: float,
    n_rows: float,
) -> float:
    """Return the noisy mean of one coordinate clamped about ``center``.

    Values are clamped to [center − half_width, center + half_width].

    **Privacy.** ``loss`` under replace-one. The integer sum moves by at most twice the half width; its noise is discrete
    Gaussian for a zCDP loss, discrete Laplace for a pure one. It is divided by ``n_rows``, public or noisy.
    """
    linear, offset = np.zeros((1, rows.n_features)), np.zeros(rows.n_features)
    linear[0, feature], offset[feature] = 1.0, center
    pure, sensitivity = loss.kind is BudgetKind.PURE, _of_total(rows.neighbors, loss)
    scale = noise_scale_for(loss, sensitivity.value)
    bits = choose_bits(scale)
    total = rows.moments(offset, linear, half_width, bits=bits).sum
    what = Message("coordinate-mean", feature=feature + 1)
    noisy = with_noise(privacy_filter, what, total, sensitivity, scale, bits=bits, pure=pure)
    return center + float(noisy[0]) * half_width / n_rows


def choose(
    scores: npt.NDArray[Any], sensitivity: Sensitivity, loss: PrivacyBudget, privacy_filter: PrivacyFilter, what: Query
) -> int:
    """Choose an index with probability ∝ exp(ε·score/(2Δ)) (exponential mechanism).

    Δ is the sensitivity of the scores.

    **Privacy.** ε-DP, with bounded range ε, hence ε²/8-zCDP (Cesar & Rogers 2021): a zCDP loss ρ allows ε = √(8ρ).
    """
    # Two units in the last place down: the square root and the quotient may round up.
    law = Choice(math.nextafter(math.nextafter(choice_epsilon(loss) / sensitivity.value, 0.0), 0.0))
    return int(privacy_filter.draw(what, law, scores, sensitivity))


def choice_epsilon(loss: PrivacyBudget) -> float:
    """Return the ε of an exponential mechanism that costs ``loss``."""
    return loss.epsilon if loss.kind is BudgetKind.PURE else math.sqrt(8.0 * loss.rho)


def zoom(lower: float, upper: float, width: float) -> Sequence[float]:
    """Return bin widths, level by level, of a search of [lower, upper] down to ``width``."""
    # Each level has at most MAX_BINS bins.
    ratio = (upper - lower) / width
    levels = max(1, math.ceil(math.log(ratio) / math.log(MAX_BINS) - 1e-9))
    factor = ratio ** (1.0 / levels)
    return [width * factor ** (levels - 1 - level) for level in range(levels)]


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


def beyond_radius(examined: Sequence[ClampedMean], radius: float) -> list[bool]:
    """Mark the means outside [−radius, radius] by more than noise explains."""
    return [abs(one.mean) > radius + FROM_EDGE * one.noise_scale for one in examined]


def coordinate_warnings(
    names: Sequence[str], examined: Sequence[ClampedMean], radius: float, *, least_noise: float = 0.0
) -> list[Message]:
    """Return warnings on clamped means of coordinates."""
    # Their means are stated to be in [−radius, radius].
    warnings = []
    beyond = beyond_radius(examined, radius)
    if any(beyond):
        warnings.append(Message("mean-beyond-radius", names=marked_names(names, beyond)))
    most = [one.clamping_shows and one.share_clamped > 0.5 for one in examined]
    if any(most):
        warnings.append(Message("mostly-clipped", names=marked_names(names, most)))
    some = [one.clamping_shows and not one.share_clamped > 0.5 for one in examined]
    if any(some):
        largest = max(one.share_clamped for one, here in zip(examined, some, strict=True) if here)
        warnings.append(Message("values-clipped", share=largest, names=marked_names(names, some)))
    lost = [one.noise_decides and one.noise_scale > least_noise for one in examined]
    if any(lost):
        warnings.append(Message("mean-lost", names=marked_names(names, lost)))
    return warnings
