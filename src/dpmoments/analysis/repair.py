"""Repairs: a noisy Gram matrix made possible again, and more accurate, using only the public noise law.

Post-processing: nothing here sees a row, and nothing here costs privacy.
"""

from __future__ import annotations

import math
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from dpmoments.noise_law import NoiseLaw

__all__ = ["Repair", "clip", "repair_moments", "shift", "shrink"]

FloatArray = npt.NDArray[np.float64]


class Repair(StrEnum):
    """How noisy moments are made those of a possible table.

    ``AUTO``: ``SHRINK`` where the noise law is known, else ``CLIP``. ``NONE``: as the mechanism returned them. ``CLIP``:
    eigenvalues into [0, n]. ``SHIFT``: add the least multiple of the identity that makes the matrix positive
    semi-definite. ``SHRINK``: towards a multiple of the identity, by as much as the noise explains.
    """

    AUTO = "auto"
    NONE = "none"
    CLIP = "clip"
    SHIFT = "shift"
    SHRINK = "shrink"

    @classmethod
    def of(cls, value: Repair | str) -> Repair:
        """Return the repair named by ``value``.

        Raises
        ------
        ValueError
            If there is no such repair.
        """
        try:
            return cls(value)
        except ValueError:
            raise ValueError(f"repair={value!r}: use one of {', '.join(map(repr, map(str, cls)))}") from None


def repair_moments(
    count: int | None,
    noisy_sum: FloatArray | None,
    noisy_gram: FloatArray,
    noise: NoiseLaw | None,
    repair: Repair,
    *,
    box: tuple[FloatArray, FloatArray] | None,
) -> tuple[FloatArray | None, FloatArray]:
    """Mean and Gram matrix of rows in the unit ball, repaired.

    Parameters
    ----------
    count : int or None
        Number of rows, public or noisy.
    noisy_sum : ndarray of shape (d,) or None
    noisy_gram : ndarray of shape (d, d)
    noise : NoiseLaw or None
    repair : Repair
    box : pair of ndarrays of shape (d,), optional
        Public bounds on the mean, into which a repaired mean is moved.

    Returns
    -------
    mean : ndarray of shape (d,) or None
    gram : ndarray of shape (d, d)
        With a mean, the covariance gram/count − mean·meanᵀ is what the repair makes positive semi-definite.
    """
    if noisy_sum is None or count is None:
        mean = None if noisy_sum is None else noisy_sum
        return mean, repair_gram(noisy_gram, noise, repair, None if box is None else count)
    mean = noisy_sum / count
    if repair is Repair.NONE:
        return mean, noisy_gram
    if box is not None:
        mean = np.clip(mean, *box)
        mean = mean / max(1.0, float(np.linalg.norm(mean)))
    spread = noisy_gram - count * np.outer(mean, mean)
    upper = None if box is None else count
    return mean, repair_gram(spread, noise, repair, upper) + count * np.outer(mean, mean)


def repair_gram(gram: FloatArray, noise: NoiseLaw | None, repair: Repair, upper: float | None) -> FloatArray:
    """Apply a repair to one symmetric matrix; ``upper`` bounds its trace (a public or noisy n), None where unknown."""
    if repair is Repair.NONE:
        return gram
    if repair is Repair.SHIFT:
        return shift(gram)
    if repair is Repair.CLIP or noise is None:
        return clip(gram, upper)
    return shrink(gram, noise, upper)


def clip(gram: FloatArray, upper: float | None = None) -> FloatArray:
    """Move eigenvalues into [0, upper]: the nearest matrix in Frobenius norm with such eigenvalues (Amin et al. 2019).

    Examples
    --------
    >>> clip(np.diag([3.0, -1.0]), upper=2.0)
    array([[2., 0.],
           [0., 0.]])
    """
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    bounded = np.clip(eigenvalues, 0.0, math.inf if upper is None else upper)
    return _from_eigen(bounded, eigenvectors)


def shift(gram: FloatArray) -> FloatArray:
    """Add the least multiple of the identity that leaves no negative eigenvalue (Sheffet 2015, section 6).

    Examples
    --------
    >>> shift(np.diag([3.0, -1.0]))
    array([[4., 0.],
           [0., 0.]])
    """
    smallest = float(np.linalg.eigvalsh(gram)[0])
    return gram if smallest >= 0 else gram - smallest * np.eye(len(gram))


def shrink(gram: FloatArray, noise: NoiseLaw, upper: float | None = None) -> FloatArray:
    """Shrink towards a multiple of the identity, then clip.

    With m = tr(gram)/d, the matrix becomes m·I + (1 − ω)(gram − m·I), where ω is the share of ‖gram − m·I‖_F² that the noise
    explains: the known mean square of its traceless part over the observed square (Ledoit & Wolf 2004, with the
    noise energy known instead of estimated).

    Examples
    --------
    >>> law = NoiseLaw("gaussian", 2, 0.02, 0.01, None, 0.0)
    >>> shrink(np.diag([3.0, 1.0]), law).round(3)
    array([[2.985, 0.   ],
           [0.   , 1.015]])
    """
    d = len(gram)
    center = float(np.trace(gram)) / d
    if upper is not None:
        center = min(max(center, 0.0), upper / d)
    deviation = gram - center * np.eye(d)
    energy = (d - 1) * noise.diagonal_variance + d * (d - 1) * noise.off_diagonal_variance
    observed = float(np.sum(deviation**2))
    weight = 1.0 if observed <= energy else energy / observed
    return clip(center * np.eye(d) + (1.0 - weight) * deviation, upper)


def _from_eigen(eigenvalues: FloatArray, eigenvectors: FloatArray) -> FloatArray:
    matrix = (eigenvectors * eigenvalues) @ eigenvectors.T
    symmetric: FloatArray = (matrix + matrix.T) / 2.0
    return symmetric
