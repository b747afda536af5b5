"""Warnings if noise or clipping dominates an estimated mean.

They follow from noisy values and public numbers only.

Derivations: ``docs/evidence/derivations/means.md``, "What a release says against itself".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from dpmoments.mechanisms.row_norm_histogram import NormHistogram

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
NOISE_DECIDES = 0.5
"""RMS noise over the rows' RMS distance from their mean, above which noise dominates."""
FROM_EDGE = 4.0
"""SDs of an entry by which noise does not exceed a radius.

Its norm does not exceed the norm's root mean square by that either.
"""


def noise_margin(standard_deviation: float, trials: int, *, pure: bool) -> float:
    """Return the margin that noise exceeds in none of ``trials`` draws."""
    # It fails with probability _FALSE_ALARM.
    tail = _FALSE_ALARM / trials
    return standard_deviation * (-math.log(2.0 * tail) / math.sqrt(2.0) if pure else -float(scipy.special.ndtri(tail)))


def clipped_norm(histogram: NormHistogram, radius: float) -> float | None:
    """Return the RMS of norms clipped at ``radius``, at upper bin edges."""
    # None if no bin holds more than noise.
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    relative = np.minimum(np.append(histogram.edges, math.inf) / radius, 1.0)
    return radius * math.sqrt(float(occupied @ relative**2) / total)


def spread_about_mean(norm: float, moved: float, noise: float) -> float:
    """Return the rows' RMS distance from their mean."""
    # Their RMS distance from a point `moved` ± `noise` away from it is `norm`.
    ratio, doubt = moved / norm, noise / norm  # of squares, norm² may be beyond floating point
    return norm * math.sqrt(max(1.0 - max(ratio**2 - doubt**2, 0.0), 0.0))


def marked_names(names: Sequence[str], marked: Sequence[bool]) -> tuple[str, ...]:
    """Return the chosen features as a warning names them."""
    return tuple(name for name, one in zip(names, marked, strict=True) if one)
