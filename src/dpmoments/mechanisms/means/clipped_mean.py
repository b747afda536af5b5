"""One step of a multivariate mean: noisy sums of rows clipped to a ball, and of the squares of their coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.coordinatewise import ClampedMean
from dpmoments.mechanisms.lattice_noise import with_gaussian_noise
from dpmoments.noise.models import MeanModel
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import gram_frobenius, row_sum_l2
from dpmoments.rows.rows import Rows


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


# The law of the noise on a mean, from that of its last step and of the count: noisy values and public numbers alone.


def noise_of_coordinates(
    found: Sequence[ClampedMean], centers: Sequence[float], count_error: float | None, n_rows: float, *, pure: bool
) -> MeanModel:
    """Of means of coordinates, each clamped about its centre.

    Parameters
    ----------
    count_error : float or None
        Standard deviation of the noise on the number of rows: 0 where it is public.
    n_rows : float
        As the sums were divided by it.
    pure : bool
        Whether the noise is Laplace, of the sums and of the count.
    """
    moved = np.array([one.mean for one in found]) - np.array(centers)
    return MeanModel(
        "laplace" if pure else "gaussian",
        np.array([one.noise_scale for one in found]),
        np.abs(moved) * ((count_error or 0.0) / n_rows),
        clipped=max((one.share_clamped for one in found if one.clamping_shows), default=0.0),
        bias_suspected=any(one.clamping_shows for one in found),
    )


def noise_of_last_step(
    back: FloatArray,
    entry: float,
    moved: FloatArray,
    count_error: float | None,
    n_rows: float,
    *,
    clipped: float | None,
    bias_suspected: bool,
) -> MeanModel:
    """Of centre + back·m̂, m̂ the noisy mean of w = back⁻¹·(x − centre) clipped to a ball.

    Parameters
    ----------
    back : ndarray of shape (d, d)
    entry : float
        Standard deviation of the noise on an entry of m̂.
    moved : ndarray of shape (d,)
        m̂.
    count_error, n_rows
        As for :func:`noise_of_coordinates`.
    clipped : float or None
        Noisy share of the rows that were clipped; None where nothing looked.
    bias_suspected : bool
        Whether the norms seen have heavier tails than those of normal rows, or too few were seen. Clipping is planned to leave
        the mean of normal rows where it is; of others it moves it as far as noise does, or farther.
    """
    return MeanModel(
        "gaussian",
        entry * np.sqrt((back * back).sum(axis=1)),
        np.abs(back @ moved) * ((count_error or 0.0) / n_rows),
        clipped=clipped,
        bias_suspected=bias_suspected,
    )
