"""The law of the noise on a mean, from that of its last step and of the count: noisy values and public numbers alone.

Derivation: ``docs/derivations/means.md``, "How far a mean may be from the rows'".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.coordinatewise import ClampedMean
from dpmoments.noise.mean_noise import MeanNoise

__all__ = ["noise_of_coordinates", "noise_of_last_step"]


def noise_of_coordinates(
    found: Sequence[ClampedMean], centers: Sequence[float], count_error: float | None, n_rows: float, *, pure: bool
) -> MeanNoise:
    """Of means of coordinates, each clamped about its centre.

    Parameters
    ----------
    found : sequence of ClampedMean
    centers : sequence of float
    count_error : float or None
        Standard deviation of the noise on the number of rows: 0 where it is public.
    n_rows : float
        As the sums were divided by it.
    pure : bool
        Whether the noise is Laplace, of the sums and of the count.
    """
    moved = np.array([one.mean for one in found]) - np.array(centers)
    return MeanNoise(
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
) -> MeanNoise:
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
    return MeanNoise(
        "gaussian",
        entry * np.sqrt((back * back).sum(axis=1)),
        np.abs(back @ moved) * ((count_error or 0.0) / n_rows),
        clipped=clipped,
        bias_suspected=bias_suspected,
    )
