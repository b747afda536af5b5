"""Accuracy for normal rows, with every constant: covariances of lecture 18, and CoinPress.

Lecture 18 (Kamath, Li, Singhal & Ullman 2018) has rows of mean zero and covariance Σ, I ⪯ Σ ⪯ κI, and errors ‖Σ^{−½}(M
− Σ)Σ^{−½}‖_F. The functions follow the steps of CoinPress (Biswas et al. 2020) with ``constants="paper"``; its Theorems
2.2 and 2.4 have O(·). Derivations: ``docs/evidence/derivations/utility-bounds-wishart.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.checks import check_probability
from dpmoments.base.errors import InputValueError
from dpmoments.moments.spectral import normal_norm_quantile
from dpmoments.papers.bounds.arguments import checked, least_rows, rows_needed
from dpmoments.papers.mechanisms.coinpress_mean import (
    normal_matrix_norm,
    normal_norm_square,
    normal_second_moment_error,
)
from dpmoments.papers.mechanisms.coinpress_schedule import last_step_shares
from dpmoments.papers.models import wishart_eigenvalue_range, wishart_frobenius_quantile
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

    ``shares`` is the budget share of each step, by default :func:`theorem_shares` of the best number of steps.
    ``step_failure`` is β of one step's clipping radius and ball, by default failure/(2t) for t steps. The number of
    rows is public for both ``neighbors``.

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


coinpress_mean_rows_needed = rows_needed(coinpress_mean_error)


@checked
def coinpress_mean_theorem(error: float, n_features: int, radius: float, rho: float, failure: float) -> float:
    """Return Theorem 2.2's number of rows, with 1 for its constant and hidden logarithms.

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
    """Bound ‖Σ^{−½}(Σ̂ − Σ)Σ^{−½}‖_F for rows N(0, Σ), I ⪯ Σ ⪯ ``spread``·I.

    The other arguments are as for :func:`coinpress_mean_error`.

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


coinpress_covariance_rows_needed = rows_needed(coinpress_covariance_error)


@checked
def coinpress_covariance_theorem(error: float, n_features: int, spread: float, rho: float, failure: float) -> float:
    """Return Theorem 2.4's number of rows, with 1 for its constant and hidden logarithms.

    >>> round(coinpress_covariance_theorem(0.2, 5, 100.0, 0.5, 0.05))
    2504
    """
    d = n_features
    rows = d**2 / error**2 + d**2 / (error * math.sqrt(rho)) + math.sqrt(d**3 * math.log(max(spread, 1.0)) / rho)
    return rows * math.log(1.0 / failure)


RESCALE = 1.05
"""Factor in a round that keeps the smallest variance above 1 despite noise."""
CONTRACTION = 0.9
"""Ratio of κ after a round to κ before it."""
ROUNDS_SHARE = 0.5
"""Budget share of the rounds."""


@checked
def empirical_covariance_error(n_rows: int, n_features: int, failure: float) -> float:
    """Return the 1 − ``failure`` quantile of the error of normal rows' second moment (Fact 2.1).

    >>> round(empirical_covariance_error(1000, 4, 0.05), 2)
    0.19
    """
    return wishart_frobenius_quantile(n_features, n_rows, failure) / n_rows


@checked
def spectral_sampling_error(n_rows: int, n_features: int, failure: float) -> float:
    """Bound the sampling error in spectral norm, with probability 1 − ``failure`` (Lemma 2.4).

    >>> round(spectral_sampling_error(1000, 4, 0.05), 2)
    0.16
    """
    if n_rows < n_features:
        return math.inf
    low, high = wishart_eigenvalue_range(n_features, n_rows, failure)
    return max(high / n_rows - 1.0, 1.0 - low / n_rows)


@checked
def noisy_second_moment_error(
    n_rows: int,
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    *,
    neighbors: Neighbors | str = "replace_one",
    clip_constant: float = 2.0,
    clip_failure: float = 0.05,
) -> float:
    """Bound the error of the clipped second moment with Gaussian noise (Lemma 2.2).

    It holds with probability 1 − ``failure``. Rows are clipped to √(Cκd ln(n/τ)): κ is ``spread``, C ``clip_constant``
    and τ ``clip_failure``. The bound is inf if rows are clipped with more than that probability.

    >>> round(noisy_second_moment_error(100_000, 5, 1.0, 0.5, 0.1), 3)
    0.033
    """
    square = clip_constant * spread * n_features * math.log(n_rows / clip_failure)
    left = failure - n_rows * float(scipy.special.chdtrc(n_features, square / spread))
    if left <= 0.0 or n_rows < n_features:
        return math.inf
    scale = gram_frobenius(Neighbors.of(neighbors), n_features).value * square / (n_rows * math.sqrt(2.0 * rho))
    cells = n_features * (n_features + 1) / 2.0
    return empirical_covariance_error(n_rows, n_features, left / 2.0) + scale * math.sqrt(
        float(scipy.special.chdtri(cells, left / 2.0))
    )


noisy_second_moment_rows_needed = rows_needed(noisy_second_moment_error)


@checked
def preconditioning_round_holds(sampling: float, noise: float, spread: float) -> bool:
    """Return True if a round surely takes I ⪯ Σ ⪯ κI to I ⪯ PΣPᵀ ⪯ 0.9κI (Theorem 2.3).

    ``sampling`` is the spectral error of the empirical covariance in the norm of Σ, ``noise`` the spectral norm of the
    noise on the second moment in units of κ = ``spread``.

    >>> preconditioning_round_holds(0.1, 0.008, 1000.0), preconditioning_round_holds(0.1, 0.01, 1000.0)
    (True, False)
    """
    if sampling >= 1.0:
        return False
    least = 1.0 / RESCALE**2
    above = (0.5 + noise) / (1.0 - sampling) <= CONTRACTION * least
    slope = 0.125 - noise / 4.0 - (1.0 + sampling) / (4.0 * spread)
    if not above or slope <= 0.0:
        return False
    mixed = (least - 0.25) / slope
    share = mixed * (1.0 + sampling) / spread
    kept = 1.0 - share + share * (1.0 - sampling) / (1.0 + sampling) - 2.0 * noise * mixed
    return share <= 1.0 and kept >= least


@checked
def preconditioning_rows_needed(
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    *,
    stop_at: float = 1000.0,
    neighbors: Neighbors | str = "replace_one",
    clip_constant: float = 2.0,
    clip_failure: float = 0.05,
) -> int:
    """Return the rows for which every round down to κ ≤ ``stop_at`` holds (Corollary 2.6).

    Parameters are as for :func:`preconditioned_covariance_error`; ``rho`` is the budget of all rounds together.

    >>> 50_000 < preconditioning_rows_needed(2, 1500.0, 0.25, 0.05) < 200_000
    True
    """
    relation, rounds = Neighbors.of(neighbors), n_rounds(spread, stop_at)
    if not rounds:
        return n_features

    settings = spread, rho, failure, rounds, relation, clip_constant, clip_failure
    return least_rows(lambda n: 0.0 if _rounds_hold(n, n_features, *settings) else 1.0, 0.5)


@checked
def preconditioned_covariance_error(
    n_rows: int,
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    *,
    stop_at: float = 1000.0,
    neighbors: Neighbors | str = "replace_one",
    clip_constant: float = 2.0,
    clip_failure: float = 0.05,
) -> float:
    """Bound the error of private preconditioning (Corollary 2.6, second part).

    Half of ρ and half of ``failure`` are for the rounds, down to κ ≤ ``stop_at``; the other options are as for
    :func:`noisy_second_moment_error`. The bound is inf if some round may fail.

    >>> round(preconditioned_covariance_error(20_000_000, 5, 1500.0, 0.5, 0.1), 2)
    0.1
    """
    relation, rounds = Neighbors.of(neighbors), n_rounds(spread, stop_at)
    options = clip_constant, clip_failure
    last, own = ((1.0 - ROUNDS_SHARE) * rho, failure / 2.0) if rounds else (rho, failure)
    if rounds and not _rounds_hold(n_rows, n_features, spread, rho - last, own, rounds, relation, *options):
        return math.inf
    return noisy_second_moment_error(
        n_rows,
        n_features,
        spread * CONTRACTION**rounds,
        last,
        own,
        neighbors=relation,
        clip_constant=clip_constant,
        clip_failure=clip_failure,
    )


preconditioned_covariance_rows_needed = rows_needed(preconditioned_covariance_error)


def n_rounds(spread: float, stop_at: float) -> int:
    """Return the number of rounds until κ is at most ``stop_at``."""
    return max(0, math.ceil(math.log(spread / stop_at) / -math.log(CONTRACTION)))


def _rounds_hold(
    n_rows: int,
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    rounds: int,
    relation: Neighbors,
    clip_constant: float,
    clip_failure: float,
) -> bool:
    """Return True if all rounds hold with probability 1 − ``failure``; all read the same rows."""
    square = clip_constant * n_features * math.log(n_rows / clip_failure)
    left = failure - n_rows * float(scipy.special.chdtrc(n_features, square))
    if left <= 0.0:
        return False
    sampling = spectral_sampling_error(n_rows, n_features, left / 2.0)
    scale = gram_frobenius(relation, n_features).value * square / (n_rows * math.sqrt(2.0 * rho / rounds))
    noise = scale * normal_norm_quantile(n_features, left / (2.0 * rounds))
    return all(preconditioning_round_holds(sampling, noise, spread * CONTRACTION**done) for done in range(rounds))


def normal_smallest_eigenvalue(covariance: npt.ArrayLike, n_rows: int, *, failure: float = 1e-9) -> float:
    """Return a lower bound on the smallest eigenvalue of the Gram matrix of normal rows.

    λ_min(Σ)·(√(n − 1) − √d − √(2 ln(1/β)))₊², for any mean of the rows, β = ``failure`` (Davidson & Szarek 2001;
    Sheffet 2015, Corollary B.2, has mean 0). It serves as ``smallest_eigenvalue`` of ``johnson-lindenstrauss`` and
    ``inverse-wishart``, whose guarantee does not rest on it. ``covariance`` is Σ, in the units of the Gram matrix.

    >>> round(normal_smallest_eigenvalue([[0.04, 0.01], [0.01, 0.09]], 10_000), 1)
    323.3
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-9):
        raise InputValueError(f"covariance must be a symmetric matrix, got shape {matrix.shape}")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < 0.0:
        raise InputValueError("covariance must be positive semi-definite: it has a negative eigenvalue")
    check_probability("failure", failure)
    root = math.sqrt(max(n_rows - 1, 0)) - math.sqrt(len(matrix)) - math.sqrt(-2.0 * math.log(failure))
    return least * max(root, 0.0) ** 2
