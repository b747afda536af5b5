"""Exact privacy loss between two tables, where the density of the output is known."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import NoiseLaw
from dpmoments.noise.sphere import envelope_parameter
from dpmoments.rows.moments import Moments

__all__ = ["bingham_epsilon", "bingham_log_normalizer", "bingham_rho", "noise_epsilon"]

ORDERS = 1.0 + np.geomspace(1e-3, 1e3, 121)
"""Rényi orders tried; the supremum over all of them is larger by less than a thousandth."""


def noise_epsilon(law: NoiseLaw, first: Moments, second: Moments, delta: float) -> float | None:
    """The least ε for which (ε, δ) holds between two tables under additive noise of a known law.

    Parameters
    ----------
    law : NoiseLaw
        Its :meth:`~dpmoments.noise.law.NoiseLaw.privacy_loss` is what is returned.
    first, second : Moments
        Exact moments of the two tables, rows of norm 1 at most.
    delta : float
        0 for the laws that are pure.

    Returns
    -------
    float or None
        None where no closed form is known. Infinite where a cell that differs has no noise.

    Notes
    -----
    Laplace and matrix Laplace noise is pure: its loss at δ = 0 is returned whatever ``delta`` is.
    """
    return law.privacy_loss(
        gram_shift=_gram(second) - _gram(first),
        sum_shift=_sum(second) - _sum(first),
        count_shift=float(second.count - first.count),
        delta=delta,
    )


def _gram(moments: Moments) -> FloatArray:
    return np.asarray(moments.gram, dtype=np.float64) * moments.scale**2


def _sum(moments: Moments) -> FloatArray:
    return np.asarray(moments.sum, dtype=np.float64) * moments.scale


def bingham_epsilon(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Largest log-ratio, in either order, of the Bingham densities ∝ exp(uᵀMu) of two matrices.

    sup_u |uᵀ(M₁ − M₂)u − log Z₁ + log Z₂|, which an eigenvector of M₁ − M₂ attains.

    Parameters
    ----------
    first, second : array_like of shape (d, d), symmetric
        Temperature times Gram matrix, on the two tables.

    Examples
    --------
    >>> round(bingham_epsilon(np.diag([3.0, 2.0]), np.diag([2.0, 3.0])), 9)
    1.0
    """
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    shifts = np.linalg.eigvalsh(ours - theirs)
    constant = bingham_log_normalizer(np.linalg.eigvalsh(theirs)) - bingham_log_normalizer(np.linalg.eigvalsh(ours))
    return float(max(abs(shifts[0] + constant), abs(shifts[-1] + constant)))


def bingham_rho(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The least ρ for which the Bingham densities ∝ exp(uᵀMu) of two matrices are ρ-zCDP apart, in either order.

    sup_α D_α/α, with D_α = (log Z(αM₁ + (1 − α)M₂) − α log Z(M₁) + (α − 1) log Z(M₂))/(α − 1).

    Parameters
    ----------
    first, second : array_like of shape (d, d), symmetric
        Temperature times Gram matrix, on the two tables.

    Examples
    --------
    >>> 0.3 < bingham_rho(np.diag([3.0, 0.0]), np.diag([0.0, 3.0])) / (6.0**2 / 8.0) < 0.6
    True
    """
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    largest = 0.0
    for one, other in ((ours, theirs), (theirs, ours)):
        ends = [bingham_log_normalizer(np.linalg.eigvalsh(matrix)) for matrix in (one, other)]
        for order in ORDERS:
            mixed = bingham_log_normalizer(np.linalg.eigvalsh(order * one + (1.0 - order) * other))
            divergence = (mixed - order * ends[0] + (order - 1.0) * ends[1]) / (order - 1.0)
            largest = max(largest, float(divergence / order))
    return largest


def bingham_log_normalizer(eigenvalues: npt.ArrayLike) -> float:
    """log E[exp(Σ eigenvalues_i u_i²)] for u uniform on the sphere, by one contour integral.

    With λ_i = max − eigenvalues_i the mean of e^{−uᵀΛu} is Γ(d/2)·(1/2πi)∫ e^s Π (s + λ_i)^{−1/2} ds
    (``docs/derivations/bingham.md``). The contour is a parabola through the saddle point, which stays off the cut,
    and on it the trapezoid rule converges geometrically. In the plane it is exp(trace/2)·I₀(gap/2).

    Parameters
    ----------
    eigenvalues : array_like of shape (d,)

    Examples
    --------
    >>> from scipy.special import i0
    >>> bool(abs(bingham_log_normalizer(np.array([1.0, 0.0])) - (0.5 + np.log(i0(0.5)))) < 1e-10)
    True
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    d, top = len(values), float(values.max())
    gaps = top - values
    if d == 1:
        return top
    if d == 2:
        return top + math.log(float(scipy.special.i0e(gaps.max() / 2.0)))
    saddle = envelope_parameter(gaps) / 2.0
    step = 0.05 / math.sqrt(d)
    grid = np.arange(-math.sqrt(40.0 / saddle), math.sqrt(40.0 / saddle), step)
    root = 1.0 + 1j * grid
    point = saddle * root**2
    log_terms = point - saddle
    for gap in gaps:
        log_terms -= 0.5 * np.log((point + gap) / (saddle + gap))
    integral = float((np.exp(log_terms) * 2.0 * saddle * root).real.sum()) * step / (2.0 * math.pi)
    log_scale = saddle - 0.5 * float(np.log(saddle + gaps).sum())
    return top + math.lgamma(d / 2.0) + log_scale + math.log(integral)
