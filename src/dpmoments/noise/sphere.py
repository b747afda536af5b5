"""Exact draws from the Bingham distribution on the sphere: density ∝ exp(uᵀMu).

Rejection from an angular central Gaussian envelope (Kent, Ganeiber & Mardia 2018, section 3), in the eigenbasis of M, with O(d)
per proposal. The derivation, with the two misprints that spread through public code, and the exact mean number of proposals are
in docs/evidence/derivations/bingham.md.
"""

from __future__ import annotations

import math
import operator

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import check_at_least, check_vector, symmetric_part

_BATCH_CELLS = 1 << 18
"""Normals drawn together: 2 MB, so that a batch stays in cache."""


def sample_bingham(
    matrix: npt.ArrayLike, size: int | None, rng: np.random.Generator, *, symmetry_tolerance: float = 1e-9
) -> FloatArray:
    """Draw unit vectors with density ∝ exp(uᵀ · matrix · u) on the sphere in R^d.

    This is the exponential mechanism for the direction of largest variance when ``matrix`` is a temperature times a Gram
    matrix.

    Parameters
    ----------
    matrix : array_like of shape (d, d)
        Symmetric and finite; definite or not. Adding a multiple of the identity changes nothing.
    size : int or None
        Number of independent draws; None for one vector.
    rng : numpy.random.Generator
    symmetry_tolerance : float
        Largest |matrix − matrixᵀ| accepted, as a fraction of the largest entry; only the symmetric part counts.

    Returns
    -------
    ndarray of shape (size, d), or (d,) when ``size`` is None
        One draw per row.

    Raises
    ------
    ValueError
        If the matrix is empty, not square, not finite or not symmetric, or ``size`` is negative.

    Notes
    -----
    ================================  =============================================
    matrix                            draws
    ================================  =============================================
    zero, or a multiple of I          uniform on the sphere
    1 × 1                             +1 or −1, each with probability one half
    gaps far beyond 1                 ± the leading eigenvector, to rounding
    repeated leading eigenvalue       uniform in the leading eigenspace as gaps grow
    ================================  =============================================

    On average a draw takes at most about 1.2 √d proposals, for any matrix. The distribution is exact in real arithmetic; in
    floating point no proof of privacy exists for draws on the sphere.

    Source: Kent, Ganeiber & Mardia (2018), "A new unified approach for the simulation of a wide class of directional
    distributions", J. Comput. Graph. Statist. 27(2), section 3. Amin et al. (2019), "Differentially private covariance
    estimation", Algorithm 2, prints the acceptance probability with the power −d/2 in place of +d/2, and Σ 1/(b + 2λ) = 0 for
    the equation of b, which has no root.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = sample_bingham(np.diag([50.0, 0.0, 0.0]), 1000, rng)
    >>> draws.shape, bool((draws[:, 0] ** 2).mean() > 0.95)
    ((1000, 3), True)
    """
    symmetric = symmetric_part(matrix, tolerance=symmetry_tolerance)
    eigenvalues, eigenvectors = np.linalg.eigh(symmetric)
    draws, _ = sample_bingham_diagonal(eigenvalues, size, rng)
    return np.asarray(draws @ eigenvectors.T, dtype=np.float64)


def sample_bingham_diagonal(
    eigenvalues: npt.ArrayLike, size: int | None, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Draw unit vectors with density ∝ exp(Σ eigenvalues_i · u_i²), and count the proposals.

    They are counted up to the last accepted draw.

    With λ_i = max(eigenvalues) − eigenvalues_i, p_i = 1/(b + 2λ_i) and iid standard normals g_i, the proposal is u ∝ (√p_i ·
    g_i), and (r e^{1−r})^{d/2} the probability to accept it, r = Σ g_i² / (d Σ p_i g_i²): the ratio e^{−uᵀΛu} (uᵀΩu)^{d/2} / M
    of Kent, Ganeiber & Mardia, Ω = I + 2Λ/b, in a form where nothing overflows or cancels. It is at most 1 for every b > 0, so
    the accuracy of b affects the speed, never the distribution.
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    check_vector("eigenvalues", values)
    n_draws = 1 if size is None else operator.index(size)
    check_at_least("size", n_draws, 0)

    with np.errstate(over="ignore"):  # a gap past 1.8e308 is infinite, and its coordinate rightly 0
        gaps = values.max() - values
        weights = 1.0 / (envelope_parameter(gaps) + 2.0 * gaps)
    d = values.size
    scales = np.sqrt(weights)
    # Expected proposals per draw, to within 20 %: treats Σ p_i g_i² as normal and takes that density at the mean.
    guess = 1.2 * math.sqrt(d * float(weights @ weights))
    draws = np.empty((n_draws, d))
    n_accepted = 0
    n_proposals = 0
    while n_accepted < n_draws:
        # The size is fixed before the batch is drawn, so it cannot bias which proposals are accepted.
        batch = max(1, min(math.ceil(guess * (n_draws - n_accepted)), _BATCH_CELLS // d))
        normals = rng.standard_normal((batch, d))
        squares = normals * normals
        ratio = squares.sum(axis=1) / d
        with np.errstate(divide="ignore", invalid="ignore"):  # all normals 0: no direction, and NaN is a rejection
            ratio /= np.vecdot(squares, weights)
            log_acceptance = 0.5 * d * (np.log(ratio) + (1.0 - ratio))
        accepted = np.flatnonzero(rng.standard_exponential(batch) > -log_acceptance)[: n_draws - n_accepted]
        vectors = normals[accepted] * scales
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        draws[n_accepted : n_accepted + accepted.size] = vectors
        n_accepted += accepted.size
        n_proposals += int(accepted[-1]) + 1 if n_accepted == n_draws else batch
    return (draws[0] if size is None else draws), n_proposals


def envelope_parameter(gaps: FloatArray) -> float:
    """Return the b that makes rejection cheapest.

    The root of Σ 1/(b + 2 gaps_i) = 1, with gaps λ_i ≥ 0, the smallest 0.

    Newton's method on 1/S(b), S(b) = Σ 1/(b + 2λ_i): concave and increasing, so the steps climb to the root from the left and
    cannot overshoot. At equal gaps the first step is exact.
    """
    root = float(np.count_nonzero(gaps == 0.0))
    for _ in range(100):
        inverse = 1.0 / (root + 2.0 * gaps)
        total = float(inverse.sum())
        step = total * (total - 1.0) / float(inverse @ inverse)
        if step <= 1e-15 * root:
            break
        root += step
    return root
