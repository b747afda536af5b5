"""Variances of the error Ĝ − G of mechanisms that draw eigenvectors, cell by cell in the released eigenbasis."""

from __future__ import annotations

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray

_MAX_CONCENTRATION = 1e8
"""SciPy's Bessel functions are NaN far above it; I₁/I₀ is 1 − 1/(2κ) to 16 digits from here on."""


def projected_cells(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
    """Mean squares of the cells of V̂ᵀ(Ĝ − G)V̂ where each direction is drawn orthogonal to those before it.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        The noisy ones, in descending order.
    temperatures : ndarray of shape (rank,)
        tᵢ of direction i.
    variance : float
        Of the noise on an eigenvalue.

    Returns
    -------
    ndarray of shape (d, d)

    Notes
    -----
    Direction i leans towards j > i by an angle φ of density ∝ exp(tᵢ Δ cos²φ), Δ = λᵢ − λⱼ, so that 2φ is von Mises of
    concentration κ = tᵢΔ/2. Cell (i, j) is ½Δ sin 2φ, of variance (Δ/2tᵢ)·I₁(κ)/I₀(κ), and Δ sin²φ, of mean
    ½Δ(1 − I₁(κ)/I₀(κ)), is what moves from one diagonal cell to the other: Δ/2t and 1/2t where κ is large, Δ²/8 and Δ/2 at its
    most. These second-order means and what two leans at once do to a cell are added (``docs/derivations/noise-of-runs.md``).

    Examples
    --------
    >>> projected_cells(np.array([900.0, 100.0]), np.array([0.5, 0.0]), 2.0).round(1).tolist()
    [[5.0, 798.0], [798.0, 5.0]]
    """
    cells, losses = _leaning(*_pairs(eigenvalues, temperatures, variance))
    return _with_second_order(cells, losses, eigenvalues, len(temperatures), variance)


def subtracted_cells(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> FloatArray:
    """The same where each direction is drawn from the whole sphere, after the terms before it were subtracted.

    Parameters
    ----------
    eigenvalues, temperatures, variance
        As for :func:`projected_cells`.

    Returns
    -------
    ndarray of shape (d, d)

    Notes
    -----
    What draw i leaves in cell (i, j), c of variance (Δ/2tᵢ)·I₁/I₀ as above, is still there when j is drawn: direction j follows
    it, leaning by c/λⱼ, and takes it away. In its place comes its own random lean against a direction in which nothing is left, a
    gap of λⱼ. It takes c away as far as c is small beside λⱼ.

    Examples
    --------
    >>> subtracted_cells(np.array([900.0, 100.0]), np.array([0.5, 0.5]), 2.0).round(1).tolist()
    [[283.4, 156.9], [156.9, 283.4]]
    """
    rank, d = len(temperatures), len(eigenvalues)
    drawn = np.arange(d) < rank
    left, losses = _leaning(*_pairs(eigenvalues, temperatures, variance))
    left = np.triu(left, 1)
    square = left.sum(axis=0)
    kept = np.where(drawn, square / (square + eigenvalues**2 + variance), 1.0)
    strengths = np.zeros(d)
    strengths[:rank] = temperatures
    own, lost = _leaning(eigenvalues, 0.5 * strengths * eigenvalues)
    cells = left * kept + np.triu(np.tile(np.where(drawn, own, 0.0), (d, 1)), 1)
    # the larger eigenvalue of [[0, c], [c, λⱼ]] less λⱼ, shared among the directions that left something
    followed = np.where(drawn, 0.5 * (np.sqrt(eigenvalues**2 + 4.0 * square) - eigenvalues), 0.0)
    shares = np.divide(left, square, out=np.zeros_like(left), where=square > 0.0)
    # released directions are not orthogonal: the eigenbasis turns by (own lean)·λⱼ/Δ, as far as they are separated
    turned = (
        2.0
        * own
        / np.sqrt(np.maximum(np.subtract.outer(eigenvalues, eigenvalues) ** 2 + 4.0 * own, np.finfo(float).tiny))
    )
    moved = shares * followed + np.triu(np.where(drawn, lost + turned, 0.0), 1)
    return _with_second_order(cells + cells.T, losses + moved + moved.T, eigenvalues, rank, variance)


def _with_second_order(
    cells: FloatArray, moved: FloatArray, eigenvalues: FloatArray, rank: int, variance: float
) -> FloatArray:
    """Cells off the diagonal with what pairs of leans add, and the diagonal: noise, and what leans move along it."""
    indices = np.arange(len(eigenvalues))
    means = (np.sign(np.subtract.outer(indices, indices)) * moved).sum(axis=1)
    result = cells + moved @ moved
    diagonal = variance + means**2 + 2.0 * (moved**2).sum(axis=1)
    if rank < len(eigenvalues):  # what was not drawn is missing, up to the largest eigenvalue left
        diagonal[rank:] += float(eigenvalues[rank]) ** 2
    result[indices, indices] = diagonal
    return result


def _pairs(eigenvalues: FloatArray, temperatures: FloatArray, variance: float) -> tuple[FloatArray, FloatArray]:
    """Δ and κ of all pairs; a gap counts for no less than the noise on it."""
    gaps = np.sqrt(np.subtract.outer(eigenvalues, eigenvalues) ** 2 + 2.0 * variance)
    np.fill_diagonal(gaps, 0.0)
    strengths = np.zeros(len(eigenvalues))
    strengths[: len(temperatures)] = temperatures
    first = np.minimum.outer(np.arange(len(eigenvalues)), np.arange(len(eigenvalues)))
    return gaps, 0.5 * strengths[first] * gaps


def _leaning(gaps: FloatArray, concentrations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Δ²/4 · E sin² 2φ and Δ · E sin² φ, 2φ von Mises."""
    known = np.minimum(concentrations, _MAX_CONCENTRATION)
    ratio = scipy.special.ive(1, known) / scipy.special.ive(0, known)
    ratio = np.where(concentrations > known, 1.0 - 0.5 / np.maximum(concentrations, 1.0), ratio)
    over = np.divide(ratio, concentrations, out=np.full_like(ratio, 0.5), where=concentrations > 1e-8)
    return 0.25 * gaps**2 * over, 0.5 * gaps * (1.0 - ratio)
