"""Random symmetric matrices in floating point: normal, matrix Laplace, isotropic, Wishart."""

from __future__ import annotations

import math

import numpy as np

from dpmoments.base.arrays import FloatArray
from dpmoments.base.checks import check_at_least, check_positive
from dpmoments.base.errors import InputArithmeticError


def symmetric_gaussian(
    n_features: int, noise_scale: float, rng: np.random.Generator, *, isotropic: bool = True
) -> FloatArray:
    """Draw a symmetric matrix of normal noise, SD σ = ``noise_scale`` on the diagonal.

    Shape (n_features, n_features).

    With ``isotropic`` the variance is σ²/2 off the diagonal, so that the noise is isotropic in svec (the Frobenius geometry in
    which the sensitivity is measured); without it σ² everywhere, as in "Analyze Gauss" (Dwork et al. 2014): the same privacy
    with √2 more Frobenius error.
    """
    off_diagonal = noise_scale / math.sqrt(2.0) if isotropic else noise_scale
    noise = np.triu(off_diagonal * rng.standard_normal((n_features, n_features)), 1)
    noise += noise.T
    noise[np.diag_indices(n_features)] = noise_scale * rng.standard_normal(n_features)
    return noise


def matrix_laplace(d: int, rate: float, rng: np.random.Generator) -> FloatArray:
    """Draw the difference of two Wisharts, N = (W₁ − W₂)/(2·rate).

    W₁, W₂ ~ Wishart_d(I, d+1) are independent.

    Its density f satisfies |log f(N + X) − log f(N)| ≤ rate·‖X‖_* for every symmetric X (‖·‖_* the nuclear norm), so added to a
    query of nuclear sensitivity Δ it is rate·Δ-DP; at d = 1 it is the Laplace distribution of scale 1/rate. Proof in
    ``docs/evidence/derivations/matrix_laplace.md``. Entries are uncorrelated, with variance (d+1)/rate² on and (d+1)/(2 rate²)
    off the diagonal.

    Parameters
    ----------
    d : int
        Dimension.
    rate : float
        c above; noise is proportional to 1/rate.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (d, d), symmetric

    Examples
    --------
    >>> noise = matrix_laplace(4, 0.5, np.random.default_rng(0))
    >>> noise.shape, bool((noise == noise.T).all())
    ((4, 4), True)
    """
    _check_size_and_rate(d, rate)
    # The same distribution by one product: with U = (P+Q)/√2 and V = (P−Q)/√2, UᵀU − VᵀV = PᵀQ + QᵀP.
    product = rng.standard_normal((d + 1, d)).T @ rng.standard_normal((d + 1, d))
    return (product + product.T) / (2.0 * rate)


def isotropic(d: int, rate: float, rng: np.random.Generator) -> FloatArray:
    """Draw a symmetric matrix N of density ∝ exp(−rate·‖N‖_F), shape (d, d).

    In svec coordinates, the diagonal and √2 times the entries above it, m = d(d+1)/2 in all: a uniform direction times a
    Gamma(m, 1/rate) radius. Added to a query of Frobenius sensitivity Δ it is rate·Δ-DP; at d = 1 it is the Laplace
    distribution of scale 1/rate. Proof in ``docs/evidence/derivations/isotropic.md``. Entries are uncorrelated, not independent,
    with variance (m+1)/rate² on and (m+1)/(2 rate²) off the diagonal.
    """
    _check_size_and_rate(d, rate)
    # An isotropic normal matrix has a uniform direction; its norm is 0 with probability 2^−50 at most, and then refused.
    direction = symmetric_gaussian(d, 1.0, rng)
    norm = float(np.linalg.norm(direction))
    if norm == 0.0:
        raise InputArithmeticError("a noise draw was zero: nothing was released; run again")
    return (rng.standard_gamma(d * (d + 1) / 2) / rate / norm) * direction


def _check_size_and_rate(d: int, rate: float) -> None:
    check_at_least("d", d)
    check_positive("rate", rate)
