"""Errors of matrices released by eigenvalues and sampled eigenvectors (Amin et al. 2019).

Lemmas 5 to 8, Theorem 2 and Corollaries 1 and 2 as numbers. ``constants="paper"`` follows the paper's proof,
``"sharp"`` ours: ``docs/evidence/derivations/utility-bounds-eigenvectors.md``, also for where the paper as printed is
false.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.checks import check_between, check_not_negative, check_positive
from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.one_variable import brent_root
from dpmoments.base.values import FloatArray
from dpmoments.papers.bounds.arguments import Constants, NoiseKind, checked, descending


@checked
def largest_noise(
    scale: float, n_draws: int, failure: float, *, kind: NoiseKind = "laplace", constants: Constants = "sharp"
) -> float:
    """Bound the largest absolute value of independent draws, with probability 1 − ``failure``.

    ``scale`` is a standard deviation if the noise is Gaussian. ``"sharp"`` is the exact quantile, ``"paper"``
    scale·ln(k/β) (Lemma 3).

    >>> round(largest_noise(2.0, 13, 0.05), 3), round(largest_noise(2.0, 13, 0.05, constants="paper"), 3)
    (11.074, 11.121)
    """
    if constants == "paper":
        if kind != "laplace":
            raise InputValueError("constants='paper' needs Laplace noise: the paper has no other bound; use 'sharp'")
        return scale * math.log(n_draws / failure)
    # Each draw stays inside with probability (1 − β)^(1/k).
    outside = -math.expm1(math.log1p(-failure) / n_draws)
    if kind == "laplace":
        return -scale * math.log(outside)
    return -scale * float(scipy.special.ndtri(0.5 * outside))


@checked
def noise_norm(scale: float, n_draws: int, failure: float, *, kind: NoiseKind = "laplace") -> float:
    """Bound the Euclidean norm of independent noise draws, with probability 1 − ``failure``.

    The quantile of the χ distribution; for Laplace noise by ‖Y‖₂² ≤ max|Y_i|·‖Y‖₁, or Lemma 6's √k·max|Y_i| if that is
    smaller.

    >>> round(noise_norm(2.0, 13, 0.05), 2), round(13**0.5 * largest_noise(2.0, 13, 0.05), 2)
    (22.88, 39.93)
    """
    if kind == "gaussian":
        return scale * math.sqrt(float(scipy.special.chdtri(n_draws, failure)))
    plain = math.sqrt(n_draws) * largest_noise(scale, n_draws, failure)
    total = scale * float(scipy.special.gammainccinv(n_draws, 0.5 * failure))
    return min(plain, math.sqrt(largest_noise(scale, n_draws, 0.5 * failure) * total))


@checked
def exponential_mechanism_failure(temperature: float, shortfall: float, *, near: float, near_measure: float) -> float:
    """Bound the probability that the exponential mechanism misses by over ``shortfall``.

    e^{−t(shortfall − near)}/near_measure: ``near_measure`` is the base measure of the outcomes with a score within
    ``near`` of the best. Lemma 4 is the case near = shortfall/2, and false as printed: it multiplies by the measure.

    >>> round(exponential_mechanism_failure(2.0, 10.0, near=5.0, near_measure=0.01), 5)
    0.00454
    """
    check_between("near", near, 0.0, shortfall)
    if not 0.0 < near_measure <= 1.0:
        raise out_of_range("near_measure", near_measure, "a fraction, above 0 and at most 1")
    return min(1.0, math.exp(-temperature * (shortfall - near)) / near_measure)


# Shortfall of a direction drawn by the exponential mechanism (Amin et al. 2019, Lemmas 5, 7 and 8).


@checked
def cap_measure(radius: float, n_features: int, *, constants: Constants = "sharp") -> float:
    """Return the fraction of the unit sphere in R^d within ``radius`` of one of its points.

    ``"sharp"`` is exact, ``"paper"`` the lower bound ½(r/2)^{d−1} (Lemma 7; Ball 1997, Lemma 2.3).

    >>> cap_measure(2.0**0.5, 3), round(cap_measure(2.0**0.5, 3, constants="paper"), 9)
    (0.5, 0.25)
    """
    check_between("radius", radius, 0.0, 2.0)
    if constants == "paper":
        return 0.5 * (0.5 * radius) ** (n_features - 1)
    if n_features == 1:
        return 0.5 if radius < 2.0 else 1.0
    # The points at distance r have height h = 1 − r²/2, and h² has a Beta distribution under the uniform measure.
    height = 1.0 - 0.5 * radius * radius
    half = 0.5 * float(scipy.special.betainc(0.5 * (n_features - 1), 0.5, max(0.0, 1.0 - height * height)))
    return half if height >= 0.0 else 1.0 - half


@checked
def log_partition_at_most(heat: npt.ArrayLike, n_features: npt.ArrayLike) -> FloatArray:
    """Bound −log E[exp(−t·q(u))], u uniform on the sphere in R^d, for all forms 0 ≤ q ≤ heat/t.

    q(u) = λ₁ − uᵀCu, and ``heat`` is t·(λ₁ − λ_d): the smaller of two bounds by Jensen's inequality.

    >>> log_partition_at_most([0.0, 1.0, 1e4], 10).round(2)
    array([ 0.  ,  0.9 , 38.84])
    """
    h, d = np.asarray(heat, dtype=np.float64), np.asarray(n_features, dtype=np.float64)
    ratio = (
        scipy.special.gammaln(h + 0.5 * d)
        - scipy.special.gammaln(h + 0.5)
        + scipy.special.gammaln(0.5)
        - scipy.special.gammaln(0.5 * d)
    )
    return np.asarray(np.minimum(h * (d - 1.0) / d, ratio))


@checked
def direction_failure(
    shortfall: float, temperature: float, spread: float, n_features: int, *, constants: Constants = "sharp"
) -> float:
    """Bound the probability that a direction misses over ``shortfall`` of the top variance.

    For u of density ∝ exp(t uᵀCu) on the sphere in R^d; ``spread`` is at least λ₁ − λ_d (λ₁ in the paper). Lemma 8, t =
    ε/4.

    >>> round(direction_failure(40.0, 0.5, 1000.0, 5), 6), round(direction_failure(80.0, 0.5, 1000.0, 5, constants="paper"), 3)
    (0.00069, 0.412)
    """
    check_positive("shortfall", shortfall)
    if shortfall > spread or n_features == 1:
        return 0.0
    if constants == "paper":
        log_bound = (
            math.log(2.0) - 0.5 * temperature * shortfall + (n_features - 1) * math.log(8.0 * spread / shortfall)
        )
    else:
        log_bound = float(log_partition_at_most(temperature * spread, n_features)) - temperature * shortfall
    return math.exp(min(log_bound, 0.0))


@checked
def direction_shortfall(
    failure: float, temperature: float, spread: float, n_features: int, *, constants: Constants = "sharp"
) -> float:
    """Bound the part of the top variance that a direction misses.

    It holds with probability 1 − ``failure``. The inverse of :func:`direction_failure`, at most ``spread`` (Lemma 5,
    whose constants are hidden in an O(·)).

    >>> [round(direction_shortfall(0.05, 0.5, 1000.0, 5, constants=whose), 1) for whose in ("sharp", "paper")]
    [31.4, 87.1]
    """
    if n_features == 1 or spread == 0.0:
        return 0.0
    if temperature == 0.0:
        return spread
    if constants == "sharp":
        log_bound = float(log_partition_at_most(temperature * spread, n_features)) - math.log(failure)
        return min(spread, log_bound / temperature)

    def excess(log_shortfall: float) -> float:
        shortfall = math.exp(log_shortfall)
        log_ratio = (n_features - 1) * (math.log(8.0 * spread) - log_shortfall)
        return math.log(2.0 / failure) - 0.5 * temperature * shortfall + log_ratio

    if excess(math.log(spread)) >= 0.0:
        return spread
    least = -700.0 + math.log(spread)
    return math.exp(brent_root(excess, least, math.log(spread), xtol=1e-13))


@checked
def direction_shortfall_closed_form(failure: float, temperature: float, largest: float, n_features: int) -> float:
    """Return the τ of the proof of Lemma 5: (2/t) ln(e + 2(8λ₁)^{d−1}/β), or λ₁ if that is less.

    >>> round(direction_shortfall_closed_form(0.05, 0.25, 1000.0, 5), 1)
    317.1
    """
    log_term = float(
        np.logaddexp(1.0, math.log(2.0 / failure) + (n_features - 1) * math.log(8.0 * max(largest, 1e-300)))
    )
    shortfall = 2.0 / max(temperature, 1e-300) * log_term
    if shortfall < 1.0:
        raise InputValueError(
            f"the closed form gives {shortfall:g}; below 1 its proof does not hold: use direction_shortfall"
        )
    return min(shortfall, largest)


@checked
def weighted_shortfall(
    weights: npt.ArrayLike,
    temperatures: npt.ArrayLike,
    spread: float,
    n_features: int,
    failure: float,
    *,
    most: npt.ArrayLike | None = None,
) -> float:
    """Bound Σ w_i s_i over directions drawn one after another, with probability 1 − ``failure``.

    Direction i, on the sphere in R^{d−i+1}, misses s_i ≤ λ₁(C_i) − θ̂_iᵀCθ̂_i, at most ``most`` (default: ``spread``,
    at least λ₁ − λ_d). Weights and temperatures may depend on noisy eigenvalues. Chernoff's bound for the sum, Σ
    (w_i/t_i)·A_i + ln(1/β)·max w_i/t_i with A_i of :func:`log_partition_at_most`; directions for which the certain
    bound is better use that.

    >>> round(weighted_shortfall([1000.0, 500.0], [0.5, 0.5], 1000.0, 5, 0.05))
    41330
    """
    w, t = np.asarray(weights, dtype=np.float64), np.asarray(temperatures, dtype=np.float64)
    if w.shape != t.shape or w.ndim != 1 or len(w) > n_features:
        raise InputValueError(f"weights has shape {w.shape} and temperatures {t.shape}, which do not fit each other")
    check_not_negative("weights", float(w.min(initial=0.0)))
    check_not_negative("temperatures", float(t.min(initial=0.0)))
    certain = w * (spread if most is None else np.asarray(most, dtype=np.float64))
    drawable = t > 0.0
    ratios = np.where(drawable, w / np.where(drawable, t, 1.0), math.inf)
    drawn = np.full(len(w), math.inf)
    sizes = (n_features - np.arange(len(w)))[drawable]
    drawn[drawable] = ratios[drawable] * log_partition_at_most(t[drawable] * spread, sizes)
    log_term = -math.log(failure)
    # Directions bounded by their draws: the best choice among those with the smallest ratios.
    best = float(certain.sum())
    for limit in np.unique(ratios[drawn < certain]):
        total = float(np.where(ratios <= limit, np.minimum(drawn, certain), certain).sum())
        best = min(best, total + log_term * float(limit))
    return best


@checked
def reconstruction_error(
    eigenvalues: npt.ArrayLike, shortfalls: npt.ArrayLike, eigenvalue_error: float, *, constants: Constants = "sharp"
) -> float:
    """Bound ‖C − Σ_{i≤k} λ̂_i θ̂_i θ̂_iᵀ‖_F from what k orthonormal directions miss.

    √(‖C − C_k‖_F² + 2 Σ w_i s_i) + ``eigenvalue_error``, C_k the best approximation of rank k. The weights are λ_i
    (``"paper"``, Lemma 6), or λ_i − λ_d if k = d, since the shortfalls then sum to 0.

    >>> reconstruction_error([4.0, 1.0], [2.0, 0.0], 0.0, constants="paper")
    4.0
    >>> round(reconstruction_error([4.0, 1.0], [2.0], 0.0), 3)
    4.123
    """
    values, missed = descending(eigenvalues), np.asarray(shortfalls, dtype=np.float64)
    rank = len(missed)
    if missed.ndim != 1 or rank > len(values):
        raise InputValueError(f"got {rank} shortfalls: give from 0 to {len(values)}, one per eigenvalue")
    floor = values[-1] if constants == "sharp" and rank == len(values) else 0.0
    square = float(values[rank:] @ values[rank:]) + 2.0 * float((values[:rank] - floor) @ missed)
    return math.sqrt(max(square, 0.0)) + eigenvalue_error


@checked
def eigenvector_release_error(
    eigenvalues: npt.ArrayLike,
    temperatures: npt.ArrayLike,
    eigenvalue_scale: float,
    failure: float,
    *,
    slack: float = 0.0,
    kind: NoiseKind = "laplace",
    constants: Constants = "sharp",
) -> float:
    """Bound ‖C − Ĉ‖_F for Algorithm 1 from the true eigenvalues (Theorem 2).

    It holds with probability 1 − ``failure``. ``temperatures`` belong to the k ≤ d directions (any number for the last
    of d), ``eigenvalue_scale`` is the scale of the noise on every eigenvalue, and ``slack`` bounds its other errors:
    rounding, a clip at a noisy n.

    >>> spectrum, t = [600.0, 300.0, 100.0, 50.0, 10.0], [0.25] * 5
    >>> errors = [eigenvector_release_error(spectrum, t, 8.0, 0.05, constants=whose) for whose in ("sharp", "paper")]
    >>> list(map(round, errors))
    [365, 641]
    """
    values, t = descending(eigenvalues), np.asarray(temperatures, dtype=np.float64)
    d, rank = len(values), len(t)
    if constants == "paper":
        shortfalls = _paper_shortfalls(values, t, failure)
        worst = largest_noise(eigenvalue_scale, d, 0.5 * failure, kind=kind, constants="paper")
        return reconstruction_error(values, shortfalls, math.sqrt(rank) * worst + slack, constants="paper")
    norm = noise_norm(eigenvalue_scale, rank, 0.5 * failure, kind=kind)
    return _drawn_error(values, float(values[-1]), t, 0.5 * failure) + norm + slack


@checked
def released_eigenvector_error(
    released: npt.ArrayLike,
    temperatures: npt.ArrayLike,
    eigenvalue_scale: float,
    failure: float,
    *,
    most: float = math.inf,
    slack: float = 0.0,
    kind: NoiseKind = "laplace",
    constants: Constants = "sharp",
) -> float:
    """Bound the error of :func:`eigenvector_release_error` from released eigenvalues.

    Corollary 1, for any temperatures: λ_i ≤ λ̂_i + τ, τ a bound on the noise of all eigenvalues. ``released`` are in
    descending order; ``most`` is a public upper bound on the eigenvalues: n, if it is public.

    >>> round(released_eigenvector_error([610.0, 296.0, 104.0, 48.0, 0.0], [0.25] * 5, 8.0, 0.05, most=1100.0))
    399
    """
    noisy, t = np.asarray(released, dtype=np.float64), np.asarray(temperatures, dtype=np.float64)
    d, rank = len(noisy), len(t)
    if constants == "paper":
        worst = largest_noise(eigenvalue_scale, d, 0.5 * failure, kind=kind, constants="paper") + slack
        highest = descending(np.maximum(noisy + worst, 0.0))
        shortfalls = _paper_shortfalls(highest, t, failure)
        return reconstruction_error(highest, shortfalls, math.sqrt(rank) * worst, constants="paper")
    # A quarter of β for the largest error of an eigenvalue, a quarter for their norm.
    worst = largest_noise(eigenvalue_scale, d, 0.25 * failure, kind=kind) + slack
    highest = descending(np.clip(noisy + worst, 0.0, most))
    norm = noise_norm(eigenvalue_scale, rank, 0.25 * failure, kind=kind)
    return _drawn_error(highest, max(float(noisy[-1]) - worst, 0.0), t, 0.5 * failure) + norm + slack


def _drawn_error(highest: FloatArray, least: float, temperatures: FloatArray, failure: float) -> float:
    """Bound the error of drawn directions, for eigenvalues between bounds."""
    d, rank = len(highest), len(temperatures)
    floor, paid = (least if rank == d else 0.0), min(rank, d - 1)
    above, weights = np.maximum(highest[:paid] - least, 0.0), np.maximum(highest[:paid] - floor, 0.0)
    missed = weighted_shortfall(weights, temperatures[:paid], float(above.max(initial=0.0)), d, failure, most=above)
    return math.sqrt(float(highest[rank:] @ highest[rank:]) + 2.0 * missed)


@checked
def rank_error(
    eigenvalues: npt.ArrayLike,
    temperatures: npt.ArrayLike,
    eigenvalue_scale: float,
    failure: float,
    *,
    kind: NoiseKind = "laplace",
) -> float:
    """Bound ‖C_k − Ĉ_k‖_F for k < d drawn directions, with probability 1 − ``failure``.

    √(2 Σ (λ_i + λ₁λ_{k+1}/(λ_k − λ_{k+1})) s_i) plus the norm of the noise. The paper states it after Theorem 2 without
    the gap; without one only the certain √(2 Σ_{i≤k} λ_i²) holds.

    >>> spectrum = [1e6, 100.0, 100.0, 0.0]
    >>> round(rank_error(spectrum, [0.25], 8.0, 0.05)), round(rank_error([1e6, 1e6, 0.0], [0.25], 8.0, 0.05))
    (13567, 1414243)
    """
    values, t = descending(eigenvalues), np.asarray(temperatures, dtype=np.float64)
    d, rank = len(values), len(t)
    if not 0 < rank < d:
        raise InputValueError(f"got {rank} temperatures: give from 1 to {d - 1}, one per eigenvalue")
    noise = noise_norm(eigenvalue_scale, rank, 0.5 * failure, kind=kind)
    most, gap = 2.0 * float(values[:rank] @ values[:rank]), float(values[rank - 1] - values[rank])
    if gap > 0.0:
        weights = values[:rank] + values[0] * values[rank] / gap
        missed = weighted_shortfall(weights, t, float(values[0] - values[-1]), d, 0.5 * failure)
        most = min(most, 2.0 * missed)
    return math.sqrt(most) + noise


@checked
def least_leading_eigenvalue(
    relative_error: float,
    temperature: float,
    eigenvalue_scale: float,
    n_features: int,
    failure: float,
    *,
    kind: NoiseKind = "laplace",
    constants: Constants = "sharp",
) -> float:
    """Return the λ₁ above which ‖C − Ĉ‖_F ≤ ζλ₁ with probability 1 − ``failure``.

    Corollary 2: ζ is ``relative_error``, the ``temperature`` of all directions ε/(8d), and ``eigenvalue_scale``
    2/(ε/2).

    >>> round(least_leading_eigenvalue(0.1, 1.0 / 80, 4.0, 10, 0.01)), round(2 * 10**3 / 0.1**2 * math.log(10 / 0.1))
    (3902827, 921034)
    """
    check_positive("temperature", temperature)

    def relative(largest: float) -> float:
        # All weights are largest at λ = (λ₁, …, λ₁, 0): an upper bound over all spectra with that λ₁.
        spectrum = np.full(n_features, largest)
        if constants == "sharp":
            spectrum[-1] = 0.0
        t = np.full(n_features, temperature)
        bound = eigenvector_release_error(spectrum, t, eigenvalue_scale, failure, kind=kind, constants=constants)
        return bound / largest

    # The bound over λ₁ falls as λ₁ grows.
    low, high = math.log(1e-12), math.log(1e-12)
    while relative(math.exp(high)) > relative_error:
        low, high = high, high + 4.0
        if high > 600.0:
            raise InputValueError(
                f"no number in floating-point range reaches relative_error={shown(relative_error)}: use a larger one"
            )
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if relative(math.exp(middle)) > relative_error else (low, middle)
    return math.exp(high)


def _paper_shortfalls(eigenvalues: FloatArray, temperatures: FloatArray, failure: float) -> FloatArray:
    """Return Lemma 8's bounds at β/(2d) each, with λ₁(C) for λ₁(C_i), as for Theorem 2."""
    d = len(eigenvalues)
    return np.array(
        [
            direction_shortfall(0.5 * failure / d, float(t), float(eigenvalues[0]), d - index, constants="paper")
            for index, t in enumerate(temperatures)
        ]
    )
