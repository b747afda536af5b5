"""Accuracy of private covariance estimation in lecture 18, with every constant.

Kamath, Li, Singhal & Ullman 2018.

Rows are normal, of mean zero and covariance Σ, I ⪯ Σ ⪯ κI. Errors are ‖Σ^{−½}(M − Σ)Σ^{−½}‖_F. The noise is as in our
mechanisms: symmetric, for the sensitivity of the relation (``docs/evidence/derivations/utility-bounds-wishart.md``).
"""

from __future__ import annotations

import math

import scipy

from dpmoments.noise.extreme_eigenvalues import (
    normal_norm_quantile,
    wishart_eigenvalue_range,
    wishart_frobenius_quantile,
)
from dpmoments.papers.bounds.arguments import checked, least_rows
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors

RESCALE = 1.05
"""Factor for all directions in a round.

Keeps the smallest variance above 1 although the projection is noisy.
"""
CONTRACTION = 0.9
"""Ratio of κ after a round to κ before it."""
ROUNDS_SHARE = 0.5
"""Budget share of the rounds."""


@checked
def empirical_covariance_error(n_rows: int, n_features: int, failure: float) -> float:
    """Return the 1 − ``failure`` quantile of ‖Σ^{−½}(Σ̂ − Σ)Σ^{−½}‖_F (Fact 2.1).

    Σ̂ is the second moment of n normal rows.

    The lecture has √((d² + ln(1/τ))/n) with an unstated constant; this is the quantile itself.

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

    It holds with probability 1 − ``failure``.

    ``spread`` is κ and ``rho`` the ρ of zCDP; the clipping radius is √(Cκd ln(n/τ)) with C = ``clip_constant`` and τ =
    ``clip_failure``. The bound is inf if rows are clipped with more than that probability.

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


@checked
def noisy_second_moment_rows_needed(
    error: float,
    n_features: int,
    spread: float,
    rho: float,
    failure: float,
    *,
    neighbors: Neighbors | str = "replace_one",
    clip_constant: float = 2.0,
    clip_failure: float = 0.05,
) -> int:
    """Return the fewest rows for which :func:`noisy_second_moment_error` is at most ``error``.

    The lecture's form is (d² + ln(1/τ))/α² + κd² ln(n/τ)√ln(1/τ)/(α√ρ).

    >>> noisy_second_moment_rows_needed(0.1, 5, 1.0, 0.5, 0.1) > 10_000
    True
    """
    relation = Neighbors.of(neighbors)
    return least_rows(
        lambda n: noisy_second_moment_error(
            n,
            n_features,
            spread,
            rho,
            failure,
            neighbors=relation,
            clip_constant=clip_constant,
            clip_failure=clip_failure,
        ),
        error,
    )


@checked
def preconditioning_round_holds(sampling: float, noise: float, spread: float) -> bool:
    """Return True if a round surely takes I ⪯ Σ ⪯ κI to I ⪯ PΣPᵀ ⪯ 0.9κI.

    Theorem 2.3, given the errors.

    ``sampling`` is the spectral error of the empirical covariance in the norm of Σ, ``noise`` the spectral norm of the noise on
    the second moment in units of κ, and ``spread`` is κ.

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

    It holds with probability 1 − ``failure``.

    Parameters are as for :func:`preconditioned_covariance_error`; ``rho`` is the budget of all rounds together.

    >>> 100_000 < preconditioning_rows_needed(5, 1500.0, 0.25, 0.05) < 1_000_000
    True
    """
    relation, rounds = Neighbors.of(neighbors), n_rounds(spread, stop_at)
    if not rounds:
        return n_features

    def falls_short(n: int) -> float:
        return (
            0.0
            if _rounds_hold(n, n_features, spread, rho, failure, rounds, relation, clip_constant, clip_failure)
            else 1.0
        )

    return least_rows(falls_short, 0.5)


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

    It holds with probability 1 − ``failure``.

    Half of ρ is for the rounds, and half of the failure. The rounds end at κ ≤ ``stop_at``; the other options are as for
    :func:`noisy_second_moment_error`. The bound is inf if some round may fail.

    >>> round(preconditioned_covariance_error(20_000_000, 5, 1500.0, 0.5, 0.1), 2)
    0.1
    """
    relation, rounds = Neighbors.of(neighbors), n_rounds(spread, stop_at)
    last = rho
    if rounds:
        last = (1.0 - ROUNDS_SHARE) * rho
        held = _rounds_hold(
            n_rows, n_features, spread, rho - last, failure / 2.0, rounds, relation, clip_constant, clip_failure
        )
        if not held:
            return math.inf
    return noisy_second_moment_error(
        n_rows,
        n_features,
        spread * CONTRACTION**rounds,
        last,
        failure / 2.0 if rounds else failure,
        neighbors=relation,
        clip_constant=clip_constant,
        clip_failure=clip_failure,
    )


@checked
def preconditioned_covariance_rows_needed(
    error: float,
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
    """Return the fewest rows for a :func:`preconditioned_covariance_error` of ≤ ``error``.

    >>> preconditioned_covariance_rows_needed(0.5, 5, 1500.0, 0.5, 0.1) > 1_000_000
    True
    """
    relation = Neighbors.of(neighbors)
    return least_rows(
        lambda n: preconditioned_covariance_error(
            n,
            n_features,
            spread,
            rho,
            failure,
            stop_at=stop_at,
            neighbors=relation,
            clip_constant=clip_constant,
            clip_failure=clip_failure,
        ),
        error,
    )


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
