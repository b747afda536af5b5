"""Accuracy of CoinPress (Biswas et al. 2020, Theorems 2.2 and 2.4), with every constant.

The steps follow ``constants="paper"``: public clipping radii, and noise known before there is any data. The functions
follow the steps themselves; the theorems have O(·). Derivations: ``docs/evidence/derivations/utility-bounds-wishart.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import scipy

from dpmoments.mechanisms.coinpress_schedule import (
    last_step_shares,
    normal_matrix_norm,
    normal_norm_square,
    normal_second_moment_error,
)
from dpmoments.noise.extreme_eigenvalues import wishart_frobenius_quantile
from dpmoments.papers.bounds.arguments import checked, least_rows
from dpmoments.privacy.sensitivity import gram_frobenius, row_sum_l2
from dpmoments.privacy.unit import Neighbors

_MAX_STEPS = 12
"""Largest number of steps tried if none is given."""


@checked
def theorem_shares(n_steps: int) -> tuple[float, ...]:
    """Return the budget shares of the theorems: half for the last step, the rest split equally.

    >>> theorem_shares(3)
    (0.25, 0.25, 0.5)
    """
    return last_step_shares(n_steps, 0.5)


@checked
def coinpress_mean_error(
    n_rows: int,
    n_features: int,
    radius: float,
    rho: float,
    failure: float,
    *,
    shares: Sequence[float] | None = None,
    neighbors: Neighbors | str = "replace_one",
    step_failure: float | None = None,
) -> float:
    """Bound ‖μ̂ − μ‖ with probability 1 − ``failure``, for rows N(μ, I) with ‖μ‖ ≤ ``radius``.

    Parameters
    ----------
    shares : sequence of float, optional
        Budget share of each step. Default: :func:`theorem_shares` of the best number of steps.
    neighbors : {"replace_one", "add_remove"}
        The number of rows is public under both here.
    step_failure : float, optional
        β of one step's clipping radius and ball. Default: failure/(2t) for t steps. (Figure 2, and the mechanism with
        ``constants="paper"``, has β/4 for the last step and β/4(t − 1) for each other.)

    Examples
    --------
    >>> round(coinpress_mean_error(2000, 10, 100.0, 0.5, 0.05), 3)
    0.113
    """
    relation = Neighbors.of(neighbors)
    splits = [theorem_shares(t) for t in range(1, _MAX_STEPS + 1)] if shares is None else [shares]
    sensitivity = row_sum_l2(relation).value

    def of(split: Sequence[float]) -> float:
        one = failure / (2.0 * len(split)) if step_failure is None else step_failure
        left = failure - len(split) * one
        if left <= 0.0:
            return math.inf
        shell = math.sqrt(normal_norm_square(n_features, one / n_rows))
        ball, about, deviation = math.sqrt(normal_norm_square(n_features, one)), radius, math.inf
        for share in split:
            noise = sensitivity * (about + shell) / (n_rows * math.sqrt(2.0 * share * rho))
            deviation = math.hypot(1.0 / math.sqrt(n_rows), noise)
            about = ball * deviation
        return math.sqrt(float(scipy.special.chdtri(n_features, left))) * deviation

    return min(of(split) for split in splits)


@checked
def coinpress_mean_rows_needed(
    error: float,
    n_features: int,
    radius: float,
    rho: float,
    failure: float,
    *,
    shares: Sequence[float] | None = None,
    neighbors: Neighbors | str = "replace_one",
    step_failure: float | None = None,
) -> int:
    """Return the fewest rows for a :func:`coinpress_mean_error` of at most ``error``.

    Theorem 2.2.

    >>> coinpress_mean_rows_needed(0.2, 10, 100.0, 0.5, 0.05) < 1500
    True
    """
    relation = Neighbors.of(neighbors)
    return least_rows(
        lambda n: coinpress_mean_error(
            n, n_features, radius, rho, failure, shares=shares, neighbors=relation, step_failure=step_failure
        ),
        error,
    )


@checked
def coinpress_mean_theorem(error: float, n_features: int, radius: float, rho: float, failure: float) -> float:
    """Return Theorem 2.2's number of rows, with 1 for its constant and hidden logarithms.

    It is (d/α² + d/(α√ρ) + √(d ln R)/√ρ)·ln(1/β).

    >>> round(coinpress_mean_theorem(0.2, 10, 100.0, 0.5, 0.05))
    990
    """
    d = n_features
    rows = d / error**2 + d / (error * math.sqrt(rho)) + math.sqrt(d * math.log(max(radius, 1.0)) / rho)
    return rows * math.log(1.0 / failure)


@checked
def coinpress_covariance_error(
    n_rows: int,
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    *,
    shares: Sequence[float] | None = None,
    neighbors: Neighbors | str = "replace_one",
    step_failure: float | None = None,
) -> float:
    """Bound ‖Σ^{−½}(Σ̂ − Σ)Σ^{−½}‖_F with probability 1 − ``failure``.

    Rows are N(0, Σ) with I ⪯ Σ ⪯ KI.

    ``spread`` is K; the other arguments are as for :func:`coinpress_mean_error`.

    >>> round(coinpress_covariance_error(50_000, 5, 100.0, 0.5, 0.05), 3)
    0.051
    """
    d, relation = n_features, Neighbors.of(neighbors)
    splits = [theorem_shares(t) for t in range(1, _MAX_STEPS + 1)] if shares is None else [shares]
    sensitivity, cells = gram_frobenius(relation, d).value, d * (d + 1) / 2.0

    def of(split: Sequence[float]) -> float:
        # clip and sampling once, for all steps read the same rows; the noise of every step but the last
        one = failure / (2.0 * (len(split) + 1)) if step_failure is None else step_failure
        left = failure - (len(split) + 1) * one
        if left <= 0.0 or n_rows < d:
            return math.inf
        clip = normal_norm_square(d, one / n_rows)
        edge, ridge = normal_matrix_norm(d, one), normal_second_moment_error(n_rows, d, one)
        wide, scale = spread, math.inf
        for index, share in enumerate(split):
            scale = sensitivity * clip / (n_rows * math.sqrt(2.0 * share * rho))
            if index < len(split) - 1:
                wide = 1.0 + ridge + (ridge + 3.0 * edge * scale) * wide
        exact = wishart_frobenius_quantile(d, n_rows, left / 2.0) / n_rows
        return exact + wide * scale * math.sqrt(float(scipy.special.chdtri(cells, left / 2.0)))

    return min(of(split) for split in splits)


@checked
def coinpress_covariance_rows_needed(
    error: float,
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    *,
    shares: Sequence[float] | None = None,
    neighbors: Neighbors | str = "replace_one",
    step_failure: float | None = None,
) -> int:
    """Return the fewest rows for a :func:`coinpress_covariance_error` of at most ``error``.

    Theorem 2.4.

    >>> coinpress_covariance_rows_needed(0.2, 5, 100.0, 0.5, 0.05) < 20_000
    True
    """
    relation = Neighbors.of(neighbors)
    return least_rows(
        lambda n: coinpress_covariance_error(
            n, n_features, spread, rho, failure, shares=shares, neighbors=relation, step_failure=step_failure
        ),
        error,
    )


@checked
def coinpress_covariance_theorem(error: float, n_features: int, spread: float, rho: float, failure: float) -> float:
    """Return Theorem 2.4's number of rows, with 1 for its constant and hidden logarithms.

    It is (d²/α² + d²/(α√ρ) + √(d³ ln K)/√ρ)·ln(1/β).

    >>> round(coinpress_covariance_theorem(0.2, 5, 100.0, 0.5, 0.05))
    2504
    """
    d = n_features
    rows = d**2 / error**2 + d**2 / (error * math.sqrt(rho)) + math.sqrt(d**3 * math.log(max(spread, 1.0)) / rho)
    return rows * math.log(1.0 / failure)
