r"""How much a direction drawn by the exponential mechanism can miss (Amin et al. 2019, Lemmas 5, 7 and 8).

Every function takes the temperature t of a draw, whose density is ∝ exp(t uᵀCu) on the unit sphere: ε/4 in the paper, ε or ε/2
here (``docs/derivations/iterative_eigenvectors.md``). ``constants="paper"`` gives what the proofs of the paper's appendix B give,
with their constants written out; ``"sharp"`` what is proven in ``docs/derivations/utility-bounds-eigenvectors.md``.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.papers.bounds.arguments import (
    Constants,
    check_dimension,
    check_draw,
    check_positive,
    check_probability,
    checked,
)

__all__ = [
    "cap_measure",
    "direction_failure",
    "direction_shortfall",
    "direction_shortfall_closed_form",
    "log_partition_at_most",
    "weighted_shortfall",
]


@checked
def cap_measure(radius: float, n_features: int, *, constants: Constants = "sharp") -> float:
    """Share of the unit sphere in R^d within Euclidean distance ``radius`` of one of its points.

    Parameters
    ----------
    radius : float
        From 0 to 2.
    n_features : int
        d.
    constants : {"sharp", "paper"}
        ``"sharp"``: exact. ``"paper"``: the lower bound ½(r/2)^{d−1}.

    Notes
    -----
    Source: Amin et al. (2019), Lemma 7 (Ball 1997, Lemma 2.3).

    Examples
    --------
    >>> cap_measure(2.0**0.5, 3), round(cap_measure(2.0**0.5, 3, constants="paper"), 9)
    (0.5, 0.25)
    """
    if not 0.0 <= radius <= 2.0:
        raise ValueError(f"radius={radius!r}: two points of the unit sphere are 0 to 2 apart")
    check_dimension(n_features)
    if constants == "paper":
        return 0.5 * (0.5 * radius) ** (n_features - 1)
    if n_features == 1:
        return 0.5 if radius < 2.0 else 1.0
    # The points at distance r have height h = 1 − r²/2, and h² has a Beta law under the uniform measure.
    height = 1.0 - 0.5 * radius * radius
    half = 0.5 * float(scipy.special.betainc(0.5 * (n_features - 1), 0.5, max(0.0, 1.0 - height * height)))
    return half if height >= 0.0 else 1.0 - half


@checked
def log_partition_at_most(heat: npt.ArrayLike, n_features: npt.ArrayLike) -> FloatArray:
    """Upper bound on −log E[exp(−t·q(u))] over the uniform u of the sphere in R^d, for every form 0 ≤ q ≤ heat/t.

    Here q(u) = λ₁ − uᵀCu, and ``heat`` is t·(λ₁ − λ_d).

    Notes
    -----
    With c = u₁², q ≤ (λ₁ − λ_d)(1 − c), so the mean is at least E e^{−h(1−c)}, h the heat. Two bounds on that, by Jensen's
    inequality: e^{−h(d−1)/d}; and E_K[E c^K] ≥ E c^h, K a Poisson variable of mean h, which is a ratio of Beta functions.

    Examples
    --------
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
    """Bound on the probability that a drawn direction misses more than ``shortfall`` of the largest variance.

    The event is uᵀCu < λ₁(C) − shortfall for u of density ∝ exp(t uᵀCu) on the sphere in R^d.

    Parameters
    ----------
    shortfall : float
        τ > 0.
    temperature : float
        t.
    spread : float
        λ₁ − λ_d, or anything above it; the paper has λ₁.
    n_features : int
        d.
    constants : {"sharp", "paper"}
        ``"paper"``: 2 e^{−tτ/2} (8λ₁/τ)^{d−1}. ``"sharp"``: e^{−tτ} times the exponential of :func:`log_partition_at_most`.

    Notes
    -----
    Source: Amin et al. (2019), Lemma 8 (t = ε/4). Its proof drops the sign of an exponent in one line; the lemma is right.

    Examples
    --------
    >>> round(direction_failure(40.0, 0.5, 1000.0, 5), 6), round(direction_failure(80.0, 0.5, 1000.0, 5, constants="paper"), 3)
    (0.00069, 0.412)
    """
    check_draw(temperature, spread, n_features)
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
    """How much of the largest variance a drawn direction misses at most, with probability 1 − ``failure``.

    Parameters
    ----------
    failure : float
        β.
    temperature, spread, n_features, constants
        As for :func:`direction_failure`, whose inverse this is; never more than ``spread``.

    Notes
    -----
    Source: Amin et al. (2019), Lemma 5, which hides its constants in an O(·).

    Examples
    --------
    >>> [round(direction_shortfall(0.05, 0.5, 1000.0, 5, constants=whose), 1) for whose in ("sharp", "paper")]
    [31.4, 87.1]
    """
    check_probability(failure)
    check_draw(temperature, spread, n_features)
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
    return math.exp(float(scipy.optimize.brentq(excess, least, math.log(spread), xtol=1e-13)))


@checked
def direction_shortfall_closed_form(failure: float, temperature: float, largest: float, n_features: int) -> float:
    """The τ that the paper's proof of Lemma 5 takes: (2/t) ln(e + 2(8λ₁)^{d−1}/β), or λ₁ where that is less.

    Parameters
    ----------
    failure, temperature, n_features
        As for :func:`direction_shortfall`.
    largest : float
        λ₁.

    Raises
    ------
    ValueError
        If τ is below 1: the proof divides by τ^{d−1} and needs τ ≥ 1, which the paper does not say. It holds at all ε ≤ 8.

    Examples
    --------
    >>> round(direction_shortfall_closed_form(0.05, 0.25, 1000.0, 5), 1)
    317.1
    """
    check_probability(failure)
    check_draw(temperature, largest, n_features)
    log_term = float(
        np.logaddexp(1.0, math.log(2.0 / failure) + (n_features - 1) * math.log(8.0 * max(largest, 1e-300)))
    )
    shortfall = 2.0 / max(temperature, 1e-300) * log_term
    if shortfall < 1.0:
        raise ValueError(
            f"the closed form gives {shortfall:g}, below 1, where its proof does not hold: use direction_shortfall"
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
    """Bound on Σ w_i s_i over directions drawn one after another, with probability 1 − ``failure``.

    s_i ≤ λ₁(C_i) − θ̂_iᵀCθ̂_i, what direction i misses of the largest variance of C on the complement of those before it.

    Parameters
    ----------
    weights : array_like of shape (k,)
        w_i, none negative. They and the temperatures may depend on noisy eigenvalues drawn beforehand.
    temperatures : array_like of shape (k,)
        At most those of the draws.
    spread : float
        At least λ₁(C) − λ_d(C).
    n_features : int
        d; direction i is drawn on a sphere in R^{d−i+1}.
    failure : float
        β.
    most : array_like of shape (k,), optional
        What s_i never passes; default: ``spread``.

    Notes
    -----
    Σ (w_i/t_i) A_i + ln(1/β) max w_i/t_i, A_i of :func:`log_partition_at_most`: Chernoff's bound for the sum, where one bound for
    each direction would pay ln(k/β) for all. A direction for which that is worse than what is certain takes what is certain.

    Examples
    --------
    >>> round(weighted_shortfall([1000.0, 500.0], [0.5, 0.5], 1000.0, 5, 0.05))
    41330
    """
    w, t = np.asarray(weights, dtype=np.float64), np.asarray(temperatures, dtype=np.float64)
    if w.shape != t.shape or w.ndim != 1 or len(w) > n_features:
        raise ValueError(f"weights of shape {w.shape}, temperatures of shape {t.shape}: give one of each a direction")
    if (w < 0.0).any() or (t < 0.0).any():
        raise ValueError("weights and temperatures cannot be negative")
    check_probability(failure)
    check_positive("spread", spread, or_zero=True)
    certain = w * (spread if most is None else np.asarray(most, dtype=np.float64))
    drawable = t > 0.0
    ratios = np.where(drawable, w / np.where(drawable, t, 1.0), math.inf)
    drawn = np.full(len(w), math.inf)
    sizes = (n_features - np.arange(len(w)))[drawable]
    drawn[drawable] = ratios[drawable] * log_partition_at_most(t[drawable] * spread, sizes)
    log_term = -math.log(failure)
    # Which directions count by their draws: the best choice among those with the smallest ratios.
    best = float(certain.sum())
    for limit in np.unique(ratios[drawn < certain]):
        total = float(np.where(ratios <= limit, np.minimum(drawn, certain), certain).sum())
        best = min(best, total + log_term * float(limit))
    return best
