"""One step of a multivariate mean: noisy sums of rows clipped to a ball, and of the squares of their coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.lattice_noise import with_gaussian_noise
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import gram_frobenius, row_sum_l2
from dpmoments.rows.rows import Rows

__all__ = ["ClippedSums", "noisy_clipped_sums"]


@dataclass(frozen=True, slots=True)
class ClippedSums:
    """Noisy sums of clipped rows w.

    Attributes
    ----------
    sum : ndarray of shape (k,)
    sum_scale : float
        Standard deviation of the noise on an entry of ``sum``.
    squares : ndarray of shape (k,) or None
        Noisy sums of w_j².
    squares_scale : float
    """

    sum: FloatArray
    sum_scale: float
    squares: FloatArray | None = None
    squares_scale: float = 0.0


def noisy_clipped_sums(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    what: str,
    *,
    rho: float,
    center: FloatArray,
    linear: FloatArray,
    radius: float,
    squares_rho: float = 0.0,
) -> ClippedSums:
    """Release Σw of w = linear·(x − center) clipped to ‖w‖ ≤ radius and, for ``squares_rho``, the sums of w_j² as well.

    **Privacy.** (rho + squares_rho)-zCDP: discrete Gaussian noise on exact integer sums. Σw moves by at most radius
    (add-remove) or 2·radius. The squares are the diagonal of the Gram matrix, so they move by no more in ℓ2 than it does
    in Frobenius norm.
    """
    k, neighbors = len(linear), rows.neighbors
    of_sum, of_squares = row_sum_l2(neighbors), gram_frobenius(neighbors, k)
    scale = zcdp_noise_scale(rho, of_sum.value)
    squares_scale = zcdp_noise_scale(squares_rho, of_squares.value) if squares_rho else 0.0
    bits = choose_bits(max(scale, squares_scale), k)
    moments = rows.moments(center, linear, radius, bits=bits)
    total = with_gaussian_noise(privacy_filter, f"{what}: sum", moments.sum, of_sum, scale, bits=bits) * radius
    if not squares_rho:
        return ClippedSums(total, scale * radius)
    exact_squares = np.diagonal(moments.gram)
    squares = with_gaussian_noise(
        privacy_filter, f"{what}: squares", exact_squares, of_squares, squares_scale, bits=2 * bits
    )
    return ClippedSums(total, scale * radius, squares * radius**2, squares_scale * radius**2)
