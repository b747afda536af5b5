"""How far the privacy noise can have moved the coefficients of a ridge fit (``docs/derivations/ridge-error-bound.md``)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.pivots import MomentInterval

__all__ = ["ErrorBound", "Fit", "coefficient_error_bound", "error_bound"]

SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0)
"""θ: every share of the lower bound on a positive semi-definite matrix is one too; the best of these is used."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A ridge fit as the bounds see it.

    Attributes
    ----------
    moment : ndarray of shape (d, d)
        What was solved with.
    chosen : list of int
        Features, then the target.
    weights : ndarray of shape (k,)
    alpha : float
    intercept : bool
    smallest : float
        Least eigenvalue of the features' block of ``moment``, with the penalty.
    """

    moment: FloatArray
    chosen: list[int]
    weights: FloatArray
    alpha: float
    intercept: bool
    smallest: float


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """A bound, None where no law gives one, and what else is to be known of it."""

    value: float | None
    note: str = ""


def error_bound(release: Released, fit: Fit, failure: float) -> ErrorBound:
    """A bound on ‖ŵ − w‖ that fails with probability ≤ ``failure``, w the fit on the table itself; encoded rows."""
    if release.noisy_count is None:
        return ErrorBound(None, "no number of rows was released")
    if release.pivot is not None:
        return _by_interval(release, fit, failure)
    if release.noise is None:
        return ErrorBound(
            None,
            f"no law is known of what {release.mechanism!r} does to the moments that would give one from the release alone",
        )
    if release.noise.count_variance is None and not release.count_is_public:
        return ErrorBound(None, "the number of rows had a draw of its own, of which the noise law says nothing")
    if not fit.intercept and release.noisy_sum is not None and release.encoding.offset.any():
        return ErrorBound(
            None, "about the zero of the table's units the noises of mean and Gram matrix mix; fit an intercept"
        )
    operator = _moment_error_bound(release, fit, failure)
    curvature = max(2.0 * fit.alpha, fit.smallest - operator)
    note = "Lemma 1 of Amin et al. 2019"
    if curvature <= 0:
        return ErrorBound(math.inf, note)
    return ErrorBound(operator * math.sqrt(1.0 + float(fit.weights @ fit.weights)) / curvature, note)


def _moment_error_bound(release: Released, fit: Fit, failure: float) -> float:
    """Bound on ‖Ŝ − S‖_op on a block, Ŝ the moment matrix in use, for noise that is added cell by cell.

    ‖Ŝ − S‖ ≤ ‖Ŝ − Ŝ₀‖ + ‖Ŝ₀ − S‖, Ŝ₀ the unrepaired matrix: the first term is known exactly, the second is bounded by
    the noise law. (S_AA + 2αI)(ŵ − w) = (E b)_A with b = (−ŵ, 1) and E = Ŝ − S, so ‖ŵ − w‖ ≤ ‖E‖_op √(1 + ‖ŵ‖²)/λ, λ the least
    eigenvalue of S_AA + 2αI: at least 2α, and at least λ̂ − ‖E‖_op. Only the block of features and target counts.
    """
    noise, chosen = release.noise, fit.chosen
    assert noise is not None
    n, block, size = release.n_rows, np.ix_(chosen, chosen), len(chosen)
    raw = release.with_repair("none")
    reference = raw.unit_ball_covariance if fit.intercept else raw.unit_ball_gram / n
    parts = 1 + (1 if fit.intercept else 0) + (1 if noise.count_variance else 0)
    bound = float(np.linalg.norm((fit.moment - reference)[block], 2))
    bound += noise.operator_norm_bound(failure / parts, size) / n
    if fit.intercept:
        offset = noise.sum_norm_bound(failure / parts, size) / n
        length = float(np.linalg.norm(raw.unit_ball_mean[chosen]))
        bound += 2.0 * length * offset + offset**2
    if noise.count_variance:
        # G/n̂ − G/n and its like for the mean: ‖G/n‖ ≤ 1 and ‖μ‖ ≤ 1, so each moves by |n̂ − n|/n̂
        raised = max(0.0, n - (release.noisy_count or 0.0) - 0.5)  # where the noisy count was below its floor
        relative = (noise.count_bound(failure / parts) + 0.5 + raised) / n
        bound += relative * (3.0 + relative if fit.intercept else 1.0)
    return bound


def _by_interval(release: Released, fit: Fit, failure: float) -> ErrorBound:
    """The bound from the run's own law, whatever repair was made."""
    pivot = release.pivot
    assert pivot is not None
    found = pivot.interval(release.noisy_count, release.noisy_sum, release.noisy_gram, fit.chosen, failure)
    if found is None:
        return ErrorBound(None, "the law of the run gives none for so many features at this confidence")
    if found.constant and not fit.intercept:
        # moments about the zero of the table's units, in units of the encoding's scale
        matrix = np.eye(len(found.center))
        matrix[1:, 0] = (release.encoding.offset / release.encoding.scale)[fit.chosen]
        about_zero = found.mapped(matrix)
        found = MomentInterval(about_zero.center[1:, 1:], about_zero.spread[1:, 1:], False, found.count_error)
    n_rows = float(release.n_rows)
    of_count = 0.0 if release.count_is_public else found.count_error
    value = coefficient_error_bound(found, fit.weights, fit.alpha, n_rows, of_count)
    return ErrorBound(value, pivot.covers)


def coefficient_error_bound(
    interval: MomentInterval, weights: FloatArray, alpha: float, n_rows: float, count_error: float
) -> float:
    """Bound on ‖ŵ − w‖ for every table whose moments are in an interval, w its ridge coefficients.

    Parameters
    ----------
    interval : MomentInterval
        Of features and target, the target last.
    weights : ndarray of shape (k,)
        ŵ, from wherever.
    alpha : float
        The penalty is 2αn on each coefficient, none on the constant.
    n_rows, count_error : float
        n is within ``count_error`` of ``n_rows``.

    Returns
    -------
    float
        inf where the interval holds tables that have no fit.

    Notes
    -----
    With M = C + E, −R ⪯ E ⪯ R, and b = (ŵ, −1): (M_AA + P)(ŵ − w) = g + (Eb)_A, g = (C_AA + P)ŵ − C_Ay known, so that
    ‖ŵ − w‖_H ≤ √(gᵀH⁻¹g) + ρ√(bᵀRb) for any H ⪯ M_AA + P with R_AA ⪯ ρ²H. H = θ(C − R)_AA + P, with the best θ in [0, 1]. Where
    that says less, ‖ŵ‖ + ‖w‖, with ‖w‖ ≤ √M_yy/(2√λ) for a penalty λ.

    Examples
    --------
    >>> tight = MomentInterval(100 * np.eye(2), 1e-9 * np.eye(2), False, 0.0)
    >>> round(coefficient_error_bound(tight, np.array([0.0]), 0.0, 100, 0.0), 9)
    0.0
    >>> round(coefficient_error_bound(tight, np.array([0.5]), 0.0, 100, 0.0), 9)
    0.5
    """
    center, spread, k = interval.center, interval.spread, len(weights)
    start = 1 if interval.constant else 0
    slopes = slice(start, start + k)
    penalty = np.zeros(start + k)
    penalty[slopes] = 2.0 * alpha * n_rows
    least_penalty = np.zeros(start + k)
    least_penalty[slopes] = 2.0 * alpha * max(n_rows - count_error, 0.0)
    if start:
        constant = (center[0, -1] - center[0, slopes] @ weights) / center[0, 0] if center[0, 0] > 0 else 0.0
        fitted = np.concatenate([[constant], weights])
    else:
        fitted = weights
    beyond = np.concatenate([fitted, [-1.0]])
    gradient = center[:-1, :-1] @ fitted + penalty * fitted - center[:-1, -1]
    leverage = math.sqrt(max(float(beyond @ spread @ beyond), 0.0))
    of_count = 2.0 * alpha * count_error * float(np.linalg.norm(weights))
    lower = center[:-1, :-1] - spread[:-1, :-1]
    # no coefficients are longer than √M_yy/(2√λ), whatever the features
    length, least = max(float(center[-1, -1] + spread[-1, -1]), 0.0), float(least_penalty[-1])
    best = float(np.linalg.norm(weights)) + math.sqrt(length / least) / 2.0 if least > 1e-300 else math.inf
    for share in SHARES:
        eigenvalues, vectors = np.linalg.eigh(share * lower + np.diag(least_penalty))
        if eigenvalues[0] <= 1e-12 * max(float(eigenvalues[-1]), 0.0) or eigenvalues[0] < 1e-300:
            continue
        root = vectors / np.sqrt(eigenvalues)  # H⁻¹ = root rootᵀ
        reach = float(np.linalg.norm(root[slopes], 2))
        ratio = math.sqrt(max(float(np.linalg.eigvalsh(root.T @ spread[:-1, :-1] @ root)[-1]), 0.0))
        best = min(best, reach * (float(np.linalg.norm(root.T @ gradient)) + ratio * leverage + reach * of_count))
    return best
