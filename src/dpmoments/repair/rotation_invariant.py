"""Rotation-invariant repair: eigenvalues moved to what they are expected to be along the noisy eigenvectors."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.repair.spectral import SpectralNoise

__all__ = ["possible_eigenvalues", "rotation_invariant_eigenvalues", "stieltjes_transform"]


BANDWIDTH = 1.3
"""Of the kernel, in units of √v·d^(−1/3). Errors change by under 2 % between 1.0 and 1.5 (``docs/derivations/repairs.md``)."""
LARGEST_BLOCK = 2**21


def rotation_invariant_eigenvalues(eigenvalues: FloatArray, noise: SpectralNoise) -> FloatArray:
    """Expected values of v_iᵀ G v_i, v_i the eigenvectors of a noisy matrix G + N.

    Of all matrices with the noisy eigenvectors, Σ v_i v_iᵀ (v_iᵀ G v_i) is nearest to G in Frobenius norm. For large d, noise
    that is free from G and no knowledge of the eigenvectors of G, v_iᵀ G v_i is close to

        λ_i − Im[R(g) g]/Im g,  g = lim (1/d) Σ_j 1/(λ_i − i0 − λ_j),

    R the R-transform of the noise (Bun, Allez, Bouchaud & Potters 2016). For Gaussian noise that is λ_i − 2v·Re g: the
    same as minimising Stein's unbiased risk estimate eigenvalue by eigenvalue.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        λ, of the noisy matrix, ascending.
    noise : SpectralNoise

    Returns
    -------
    ndarray of shape (d,)
        Ascending, between the least and the largest λ; negative values are possible.

    Examples
    --------
    >>> noise = SpectralNoise(size=3, cell_variance=0.5, trace_variance=3.0)
    >>> rotation_invariant_eigenvalues(np.array([0.0, 20.0, 100.0]), noise).round(1)
    array([  0.1,  20. , 100. ])
    """
    if noise.variance == 0.0:
        return eigenvalues
    bandwidth = BANDWIDTH * math.sqrt(noise.variance) * noise.size ** (-1.0 / 3.0)
    g = stieltjes_transform(eigenvalues, bandwidth)
    expected = eigenvalues - np.imag(noise.correction(g)) / np.imag(g)
    monotone = scipy.optimize.isotonic_regression(expected).x  # the true values ascend with λ; the estimates need not
    return np.clip(monotone, eigenvalues[0], eigenvalues[-1])


def stieltjes_transform(eigenvalues: FloatArray, bandwidth: float) -> npt.NDArray[np.complex128]:
    """g = h + iπρ at every eigenvalue, ρ their density smoothed by a normal kernel and h its Hilbert transform.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
    bandwidth : float
        Standard deviation b of the kernel.

    Returns
    -------
    ndarray of complex, shape (d,)
        The limit from below of ∫ρ(y)/(x − y)dy. The kernel's own transform is (√2/b)·D(x/(√2 b)), D Dawson's function.
    """
    d = len(eigenvalues)
    result = np.empty(d, dtype=np.complex128)
    step = max(1, LARGEST_BLOCK // d)
    for start in range(0, d, step):
        distance = (eigenvalues[start : start + step, None] - eigenvalues[None, :]) / (math.sqrt(2.0) * bandwidth)
        result.real[start : start + step] = scipy.special.dawsn(distance).mean(axis=1) * math.sqrt(2.0) / bandwidth
        result.imag[start : start + step] = np.exp(-(distance**2)).mean(axis=1) * math.sqrt(math.pi / 2.0) / bandwidth
    return result


def possible_eigenvalues(eigenvalues: FloatArray, upper: float | None) -> FloatArray:
    """The nearest eigenvalues, ascending with their index, that a Gram matrix of trace at most ``upper`` can have.

    The Euclidean projection on {x : 0 ≤ x, Σx ≤ upper} after an isotonic regression: subtract the least amount that, with
    negative values set to zero, brings the sum down to ``upper``. (Each is then at most ``upper``, too.)

    Examples
    --------
    >>> possible_eigenvalues(np.array([-2.0, 1.0, 5.0]), upper=4.0)
    array([0., 0., 4.])
    >>> possible_eigenvalues(np.array([-2.0, 1.0, 2.0]), upper=4.0)
    array([0., 1., 2.])
    """
    ascending = scipy.optimize.isotonic_regression(eigenvalues).x
    positive: FloatArray = np.maximum(ascending, 0.0)
    if upper is None or float(positive.sum()) <= upper:
        return positive
    descending = ascending[::-1]
    excess = (np.cumsum(descending) - upper) / np.arange(1, len(descending) + 1)
    kept = np.flatnonzero(descending > excess)  # empty where ``upper`` is lost in the rounding of the largest value
    within: FloatArray = np.maximum(ascending - excess[kept[-1] if len(kept) else 0], 0.0)
    return within
