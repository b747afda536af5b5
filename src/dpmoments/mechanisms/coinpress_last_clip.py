"""The clipping radius of CoinPress's last step, widened where a private histogram of norms shows heavy tails."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.mechanisms.coinpress_ellipsoid import Ellipsoid
from dpmoments.mechanisms.noisy_step import StepNoise
from dpmoments.mechanisms.norm_histogram import noisy_tail_histograms, tail_edges
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows

__all__ = ["FAR", "LastClip", "histogram_share", "widened_clip"]

HISTOGRAM_SHARE = 0.02
"""Share of the last step's budget that buys the histogram of norms, for ten features or more."""
LARGEST_HISTOGRAM_SHARE = 0.1
FAR = 4.0
"""A last radius above this multiple of the planned one is warned of."""
AFFORDABLE = 0.1
"""Rows along unchecked directions widen the clip as far as that, or until noise is this fraction of every variance."""


@dataclass(frozen=True, slots=True)
class LastClip:
    """The last step's budget and clipping radius, and what the histogram of norms says of it.

    Attributes
    ----------
    rho : float
        What the last step may spend.
    radius : float
    outside : float or None
        Estimated share of rows beyond the planned radius; None without a histogram.
    left_out : bool
        Whether rows were seen too far out to widen the clip to them.
    unseen_tail : float
        A tail of about this share of the rows could have gone unseen.
    """

    rho: float
    radius: float
    outside: float | None = None
    left_out: bool = False
    unseen_tail: float = 0.0


def histogram_share(n_features: int) -> float:
    """Share of the last step's budget for the histogram of norms.

    A tail of c rows is worth a wider clip where its part in the covariance, c/√d, exceeds the noise, which is in proportion to
    d: from c ∝ d^1.5 on. With few features thin tails matter, and the histogram must see them.

    Examples
    --------
    >>> [round(histogram_share(d), 3) for d in (1, 3, 5, 10, 50)]
    [0.1, 0.1, 0.057, 0.02, 0.02]
    """
    return min(LARGEST_HISTOGRAM_SHARE, HISTOGRAM_SHARE * max(1.0, math.pow(10.0 / n_features, 1.5)))


def widened_clip(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    planned: LastClip,
    ellipsoid: Ellipsoid,
    *,
    n_rows: float,
    mean: bool,
) -> LastClip:
    """The clip after a part of the planned budget went into a histogram of norms.

    **Privacy.** That part, by the histogram alone.
    """
    d = len(ellipsoid.center)
    share = histogram_share(d)
    for_histogram, rest = PrivacyBudget.zcdp(planned.rho).split(share, 1.0 - share)
    # A row very far out along directions enlarged unchecked only says how far these were enlarged: it is counted apart.
    whole, apart = noisy_tail_histograms(
        rows,
        privacy_filter,
        "histogram of norms",
        for_histogram.rho,
        edges=tail_edges(planned.radius),
        center=ellipsoid.center,
        linear=ellipsoid.linear,
        apart=ellipsoid.linear[ellipsoid.unchecked],
    )
    noise = StepNoise.calibrated(d, rest.rho, rows.neighbors, mean=mean)
    noise_error = noise.noise_scale * math.sqrt(d * (d + 1) / 2.0) / n_rows
    affordable = math.sqrt(AFFORDABLE * math.sqrt(d) / noise_error)
    near = apart.typical_norms <= max(FAR * planned.radius, affordable)
    histogram = replace(whole, counts=whole.counts + np.where(near, apart.occupied, 0.0))
    best = histogram.best_radius(2, noise_error, 1.0 / math.sqrt(d))
    return LastClip(
        rest.rho,
        # Never below the planned radius: for normal rows that is the better choice, since it suffers from no bins and no noise.
        max(planned.radius, best or 0.0),
        outside=histogram.share_above(planned.radius),
        left_out=bool((apart.occupied > 0.0)[~near].any()),
        unseen_tail=2.0 * whole.least_seen / n_rows,
    )
