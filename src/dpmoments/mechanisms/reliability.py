"""What an estimator of means says where noise or clipping decides its answer; made of noisy values and public numbers alone.

Derivations: ``docs/derivations/means.md``, "What a release says against itself".
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
"""Bound on the probability that noise alone raises one kind of warning in a run, all coordinates together."""
MAX_CLIPPED = 0.75
"""Of normal rows within the bounds at most half lie beyond a clipping radius; three quarters leave room for noise."""
MAX_SEEN = 0.75
"""A histogram that sees fewer of the rows cannot tell how heavy their tails are."""
_NOISE_DECIDES = 0.5
"""Noise decides where its root mean square passes this share of the rows' own from their mean."""
FROM_EDGE = 4.0
"""By so many standard deviations of an entry noise does not pass a radius, nor its norm the root mean square of that."""
_FAR = 1.5
"""A last step longer than this many radii of the ball that was to hold the mean shows that it was not in the ball."""
_HALF = 0.5
"""Share of the rows that must be seen in the histogram of norms before it says that most are clipped."""
_UNSETTLED = 0.5
"""Where the search did not settle, a last step longer than this share of the rows' norm shows that they are far."""
_HEAVIER = 1.3
"""Tails are heavy where the histogram's best radius exceeds that of normal rows of the same norm by this factor."""


def noise_margin(standard_deviation: float, trials: int, *, pure: bool) -> float:
    """What noise passes in none of ``trials`` draws, except with probability _FALSE_ALARM.

    Examples
    --------
    >>> round(noise_margin(1.0, 1, pure=False), 2), round(noise_margin(1.0, 1, pure=True), 2)
    (3.09, 4.39)
    """
    tail = _FALSE_ALARM / trials
    return standard_deviation * (-math.log(2.0 * tail) / math.sqrt(2.0) if pure else -float(scipy.special.ndtri(tail)))


def norm_quantile(histogram: NormHistogram, level: float) -> float | None:
    """The upper edge of the bin that holds the ``level`` quantile of the norms; None where no bin holds rows beyond doubt.

    Rows beyond the last edge are taken to lie at it.
    """
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    index = int(np.searchsorted(np.cumsum(occupied), level * total))
    return float(histogram.edges[min(index, len(histogram.edges) - 1)])


def clipped_norm(histogram: NormHistogram, radius: float) -> float | None:
    """Root mean square of norms clipped at ``radius``, each taken at the upper edge of its bin; None where no bin stands out."""
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    relative = np.minimum(np.append(histogram.edges, math.inf) / radius, 1.0)
    return radius * math.sqrt(float(occupied @ relative**2) / total)


def shrunk_move(noisy_mean: FloatArray, noise_scale: float) -> FloatArray:
    """A noisy step towards the mean, shortened by the share of its square that is noise; as it is in one or two dimensions.

    The positive part of James & Stein (1961). Where noise is all there is to it the centre stays, instead of wandering off.
    """
    square = float(noisy_mean @ noisy_mean)
    noise = max(len(noisy_mean) - 2, 0) * noise_scale**2
    return noisy_mean * max(0.0, 1.0 - noise / square) if square > 0.0 else noisy_mean


def spread_about_mean(norm: float, moved: float, noise: float) -> float:
    """Root mean square distance of rows from their mean, where it is ``norm`` from a point ``moved`` away from that mean.

    ``noise`` is the root mean square of the noise in ``moved``.

    Examples
    --------
    >>> round(spread_about_mean(5.0, 4.0, 0.0), 6), round(spread_about_mean(5.0, 0.1, 1.0), 6)
    (3.0, 5.0)
    """
    ratio, doubt = moved / norm, noise / norm  # of squares, norm² may be beyond floating point
    return norm * math.sqrt(max(1.0 - max(ratio**2 - doubt**2, 0.0), 0.0))


def heavy_tails(histogram: NormHistogram, best: float, noise_error: float, spread: FloatArray) -> bool:
    """Whether the best clipping radius is far beyond that of normal rows whose norms have the same root mean square.

    Parameters
    ----------
    best : float
        Its best radius, at ``noise_error`` and a bias of 1/√d.
    noise_error : float
        Euclidean error from noise at radius 1.
    spread : ndarray of shape (d,)
        Variances of the coordinates, up to a factor: a norm is about that of (Σv)²/Σv² of equal ones.
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
    """What the length of the last of several shrinking steps says of them.

    Parameters
    ----------
    moved : float
        That length.
    ball : float
        Radius of the ball that was to hold the mean.
    entry, noise : float
        Noise on an entry of the step, and its root mean square norm.
    spread : float
        Root mean square distance of the rows from their mean.
    seen : pair of float or None
        Share of the rows that the histogram of norms saw, and share of those beyond the planned clipping radius.
    """
    result = []
    far = moved > math.hypot(_FAR * ball, noise) + FROM_EDGE * entry
    if far or (seen is not None and seen[0] >= _HALF and seen[1] > MAX_CLIPPED):
        result.append(Message("rows-mostly-clipped"))
    if noise > _NOISE_DECIDES * spread:
        result.append(Message("mean-lost"))
    return result


def search_warnings(norm: float, moved: float, noise: float, *, settled: bool) -> list[Message]:
    """What the length of a last step says of it, where rows have that norm and its noise that size, root mean squares.

    ``settled`` is whether the search for the rows ended by itself.
    """
    if noise > _NOISE_DECIDES * spread_about_mean(norm, moved, noise):
        return [Message("mean-lost")]
    if not settled and moved > math.hypot(_UNSETTLED * norm, noise):
        return [Message("search-unsettled", names=())]
    return []


def marked_names(names: Sequence[str], marked: Sequence[bool]) -> tuple[str, ...]:
    """Return the names of the marked features."""
    return tuple(name for name, one in zip(names, marked, strict=True) if one)


class Examined(Protocol):
    """What is known of the mean of one coordinate."""

    @property
    def mean(self) -> float:
        """With noise, not yet put into the public range."""

    @property
    def noise_scale(self) -> float:
        """Standard deviation of that noise."""

    @property
    def share_clamped(self) -> float:
        """Noisy."""

    @property
    def clamping_shows(self) -> bool:
        """Whether that share is more than noise."""

    @property
    def noise_decides(self) -> bool:
        """Whether the noise is larger than most values."""


def beyond_radius(found: Sequence[Examined], radius: float) -> list[bool]:
    """Which means lie outside [−radius, radius] by more than noise explains."""
    return [abs(one.mean) > radius + FROM_EDGE * one.noise_scale for one in found]


def coordinate_warnings(
    names: Sequence[str], found: Sequence[Examined], radius: float, *, least_noise: float = 0.0
) -> list[Message]:
    """What speaks against clamped means of coordinates whose means are said to lie in [−radius, radius]."""
    warnings = []
    beyond = beyond_radius(found, radius)
    if any(beyond):
        warnings.append(Message("mean-beyond-radius", names=marked_names(names, beyond)))
    most = [one.clamping_shows and one.share_clamped > 0.5 for one in found]
    if any(most):
        warnings.append(Message("mostly-clipped", names=marked_names(names, most)))
    some = [one.clamping_shows and not one.share_clamped > 0.5 for one in found]
    if any(some):
        largest = max(one.share_clamped for one, here in zip(found, some, strict=True) if here)
        warnings.append(Message("values-clipped", share=largest, names=marked_names(names, some)))
    lost = [one.noise_decides and one.noise_scale > least_noise for one in found]
    if any(lost):
        warnings.append(Message("mean-lost", names=marked_names(names, lost)))
    return warnings
