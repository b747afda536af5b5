"""What the rounds of a search for the rows cost, and the noise that a part of ρ buys."""

from __future__ import annotations

import math

from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import histogram_l2, row_sum_l2

__all__ = ["USEFUL", "mean_error", "round_costs"]

CONTRACTION = 0.25
"""Planned noise of a round of the search, as a share of its clipping radius."""
HISTOGRAM_ERROR = 0.06
"""Planned noise on a bin of a histogram, as a share of the number of rows."""
USEFUL = 0.5
"""A round whose planned noise is more than this share of its clipping radius brings no centre nearer, and is not made."""


def mean_error(neighbors: Neighbors, n_rows: float, rho: float, n_features: int) -> float:
    """Root mean square error of a mean from noise at clipping radius 1."""
    return row_sum_l2(neighbors).value * math.sqrt(n_features / (2.0 * rho)) / n_rows


def round_costs(neighbors: Neighbors, n_rows: float, total: float, n_features: int) -> tuple[float, float]:
    """ρ of the histogram and of the mean of one round of the search."""
    bin_scale = histogram_l2(neighbors).value / (HISTOGRAM_ERROR * max(n_rows, 1.0))
    for_histogram = min(bin_scale**2 / 2.0, 0.02 * total)
    # The ρ at which the noise is CONTRACTION.
    for_mean = mean_error(neighbors, n_rows, 1.0, n_features) ** 2 / CONTRACTION**2
    # Six rounds at least, or two where only so few are worth making.
    most = 0.04 if mean_error(neighbors, n_rows, 0.04 * total, n_features) <= USEFUL else 0.1
    return for_histogram, min(for_mean, most * total)
