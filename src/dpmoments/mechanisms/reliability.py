"""Warnings if noise or clipping dominates an estimated mean.

They follow from noisy values and public numbers only.

Derivations: ``docs/evidence/derivations/means.md``, "What a release says against itself".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.coinpress_schedule import normal_norm_radius
from dpmoments.mechanisms.row_norm_histogram import NormHistogram
from dpmoments.messages.message import Message

_FALSE_ALARM = 1e-3
"""Bound on the probability that noise raises one kind of warning in a run.

All coordinates together.
"""
MAX_CLIPPED = 0.75
"""Max plausible clipped fraction.

At most half of normal rows within the bounds, with room for noise.
"""
MAX_SEEN = 0.75
"""Fraction of rows that a histogram must see to show how heavy their tails are."""
_NOISE_DECIDES = 0.5
"""RMS noise over the rows' RMS distance from their mean, above which noise dominates."""
FROM_EDGE = 4.0
"""SDs of an entry by which noise does not exceed a radius.

Its norm does not exceed the norm's root mean square by that either.
"""
_FAR = 1.5
"""Radii of the planned ball beyond which a last step shows that the mean was outside."""
_HALF = 0.5
"""Fraction of rows that the histogram of norms must see to say that most are clipped."""
_UNSETTLED = 0.5
"""Fraction of the rows' norm above which the last step shows that rows are far.

After a search that did not settle.
"""
_HEAVIER = 1.3
"""Ratio of the histogram's best radius to the normal one above which tails are heavy.

The normal one is for rows of equal norm.
"""


def noise_margin(standard_deviation: float, trials: int, *, pure: bool) -> float:
    """Return the margin that noise exceeds in none of ``trials`` draws."""
    # It fails with probability _FALSE_ALARM.
    tail = _FALSE_ALARM / trials
    return standard_deviation * (-math.log(2.0 * tail) / math.sqrt(2.0) if pure else -float(scipy.special.ndtri(tail)))


def norm_quantile(histogram: NormHistogram, level: float) -> float | None:
    """Return the upper edge of the bin with the ``level`` quantile of the norms."""
    # None if no bin holds more than noise.
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    index = int(np.searchsorted(np.cumsum(occupied), level * total))
    return float(histogram.edges[min(index, len(histogram.edges) - 1)])


def clipped_norm(histogram: NormHistogram, radius: float) -> float | None:
    """Return the RMS of norms clipped at ``radius``, at upper bin edges."""
    # None if no bin holds more than noise.
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    relative = np.minimum(np.append(histogram.edges, math.inf) / radius, 1.0)
    return radius * math.sqrt(float(occupied @ relative**2) / total)


def shrunk_move(noisy_mean: FloatArray, noise_scale: float) -> FloatArray:
    """Return a noisy step towards the mean, shortened by the noise share of its square.

    Unchanged in one or two dimensions.

    The positive part of James & Stein (1961). If the step is only noise, the center stays instead of drifting off.
    """
    square = float(noisy_mean @ noisy_mean)
    noise = max(len(noisy_mean) - 2, 0) * noise_scale**2
    return noisy_mean * max(0.0, 1.0 - noise / square) if square > 0.0 else noisy_mean


def spread_about_mean(norm: float, moved: float, noise: float) -> float:
    """Return the rows' RMS distance from their mean."""
    # Their RMS distance from a point `moved` ± `noise` away from it is `norm`.
    ratio, doubt = moved / norm, noise / norm  # of squares, norm² may be beyond floating point
    return norm * math.sqrt(max(1.0 - max(ratio**2 - doubt**2, 0.0), 0.0))


def heavy_tails(histogram: NormHistogram, best: float, noise_error: float, spread: FloatArray) -> bool:
    """Return True if the best clipping radius far exceeds that of normal rows.

    These have an equal root mean square norm.

    ``best`` is its best radius at ``noise_error`` (the Euclidean error from noise at radius 1) and a bias of 1/√d. ``spread``
    holds the coordinates' variances up to a factor: a norm is about that of (Σv)²/Σv² equal ones.
    """
    relative = np.minimum(histogram.typical_norms / best, 1.0)
    occupied = histogram.occupied
    norm = best * math.sqrt(float(occupied @ relative**2) / float(occupied.sum()))
    shares = spread / spread.max()
    alike = max(1, round(float(shares.sum()) ** 2 / float(shares @ shares)))
    of_normal = normal_norm_radius(alike, noise_error, math.sqrt(1.0 / alike)) / math.sqrt(alike)
    return best > _HEAVIER * of_normal * norm


def last_step_warnings(
    moved: float, ball: float, entry: float, noise: float, spread: float, seen: tuple[float, float] | None
) -> list[Message]:
    """Return warnings from the length ``moved`` of the last of several shrinking steps."""
    # `ball` is the radius of the ball planned for the mean, `entry` and `noise` the noise of an entry and its RMS norm,
    # `spread` the rows' RMS distance from their mean, and `seen` the fractions of rows that the histogram of norms saw,
    # and of those beyond the planned clipping radius.
    result = []
    far = moved > math.hypot(_FAR * ball, noise) + FROM_EDGE * entry
    if far or (seen is not None and seen[0] >= _HALF and seen[1] > MAX_CLIPPED):
        result.append(Message("rows-mostly-clipped"))
    if noise > _NOISE_DECIDES * spread:
        result.append(Message("mean-lost"))
    return result


def search_warnings(norm: float, moved: float, noise: float, *, settled: bool) -> list[Message]:
    """Return warnings from the length ``moved`` of a last step, given the rows' RMS norm."""
    # `settled` if the search ended.
    if noise > _NOISE_DECIDES * spread_about_mean(norm, moved, noise):
        return [Message("mean-lost")]
    if not settled and moved > math.hypot(_UNSETTLED * norm, noise):
        return [Message("search-unsettled", names=())]
    return []


def marked_names(names: Sequence[str], marked: Sequence[bool]) -> tuple[str, ...]:
    """Return the chosen features as a warning names them."""
    return tuple(name for name, one in zip(names, marked, strict=True) if one)


class Examined(Protocol):
    """Evidence on the mean of one coordinate."""

    @property
    def mean(self) -> float:
        """Noisy mean, not yet clipped to the public range."""

    @property
    def noise_scale(self) -> float:
        """Noise SD of the mean."""

    @property
    def share_clamped(self) -> float:
        """Noisy fraction of clamped values."""

    @property
    def clamping_shows(self) -> bool:
        """True if that fraction is more than noise."""

    @property
    def noise_decides(self) -> bool:
        """True if the noise is larger than most values."""


def beyond_radius(examined: Sequence[Examined], radius: float) -> list[bool]:
    """Mark the means outside [−radius, radius] by more than noise explains."""
    return [abs(one.mean) > radius + FROM_EDGE * one.noise_scale for one in examined]


def coordinate_warnings(
    names: Sequence[str], examined: Sequence[Examined], radius: float, *, least_noise: float = 0.0
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
