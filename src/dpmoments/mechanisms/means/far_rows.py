"""A small noisy count of rows far beyond a clipping radius: it says what a mean of clipped rows leaves out."""

from __future__ import annotations

import math

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.norm_histogram import noisy_norm_histogram
from dpmoments.mechanisms.reliability import noise_margin
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import histogram_l2
from dpmoments.rows.rows import Rows

__all__ = ["far_rows", "far_rows_cost"]

COUNT_ERROR = 0.003
"""Planned noise on the count of far rows, as a share of the number of rows."""
COUNT_SHARE = 0.02
"""Largest share of ρ for that count."""
FAR_ROWS = 4.0
"""A row this many clipping radii from the centre is far: most of its length is cut off."""
LEAST_FAR = 0.01
"""Share of far rows from which a warning tells of them."""


def far_rows_cost(neighbors: Neighbors, n_rows: float, total: float) -> float:
    """What :func:`far_rows` spends of ``total``, in ρ."""
    scale = histogram_l2(neighbors).value / (COUNT_ERROR * n_rows)
    return min(scale**2 / 2.0, COUNT_SHARE * total)


def far_rows(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    *,
    center: FloatArray,
    linear: FloatArray,
    radius: float,
    n_rows: float,
    total: float,
) -> tuple[float, bool]:
    """Noisy share of rows farther than FAR_ROWS clipping radii, in [0, 1], and whether it is more than noise.

    **Privacy.** :func:`far_rows_cost` in ρ: a histogram of norms.
    """
    counted = noisy_norm_histogram(
        rows,
        privacy_filter,
        "count of far rows",
        far_rows_cost(rows.neighbors, n_rows, total),
        edges=np.array([FAR_ROWS * radius, 2.0 * FAR_ROWS * radius]),
        center=center,
        linear=linear,
    )
    share = float(counted.counts[1:].sum()) / n_rows
    margin = noise_margin(math.sqrt(2.0) * counted.noise_scale / n_rows, 1, pure=False)
    return min(max(share, 0.0), 1.0), share > LEAST_FAR + margin
