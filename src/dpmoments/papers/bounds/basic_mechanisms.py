"""The Laplace and the exponential mechanism: how far an answer is from the truth (Amin et al. 2019, Lemmas 3 and 4)."""

from __future__ import annotations

import math

import scipy

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import check_probability
from dpmoments.papers.bounds.arguments import Constants, NoiseKind, check_positive, checked


@checked
def largest_noise(
    scale: float,
    n_draws: int,
    failure: float,
    *,
    kind: NoiseKind = "laplace",
    constants: Constants = "sharp",
) -> float:
    """Bound on the largest of independent draws of noise, in absolute value, with probability 1 − ``failure``.

    Parameters
    ----------
    scale : float
        Scale of Laplace noise, standard deviation of Gaussian noise.
    failure : float
        β.
    constants : {"sharp", "paper"}
        ``"sharp"``: the exact quantile. ``"paper"``: scale·ln(k/β), a union bound (Laplace noise alone).

    Notes
    -----
    Source: Amin et al. (2019), Lemma 3.

    Examples
    --------
    >>> round(largest_noise(2.0, 13, 0.05), 3), round(largest_noise(2.0, 13, 0.05, constants="paper"), 3)
    (11.074, 11.121)
    """
    check_probability(failure)
    check_positive("scale", scale, or_zero=True)
    if n_draws < 1:
        raise InputValueError(f"n_draws={n_draws!r} must be at least 1")
    if constants == "paper":
        if kind != "laplace":
            raise InputValueError("constants='paper': the paper has a bound for Laplace noise alone; use 'sharp'")
        return scale * math.log(n_draws / failure)
    # Each draw stays inside with probability (1 − β)^(1/k).
    outside = -math.expm1(math.log1p(-failure) / n_draws)
    if kind == "laplace":
        return -scale * math.log(outside)
    return -scale * float(scipy.special.ndtri(0.5 * outside))


@checked
def noise_norm(scale: float, n_draws: int, failure: float, *, kind: NoiseKind = "laplace") -> float:
    """Bound on the Euclidean norm of independent draws of noise, with probability 1 − ``failure``.

    Parameters
    ----------
    scale, n_draws, failure, kind
        As for :func:`largest_noise`.

    Notes
    -----
    Gaussian noise: the quantile of the χ law. Laplace noise: ‖Y‖₂² ≤ max|Y_i|·‖Y‖₁, and ‖Y‖₁ has the Gamma(k) law; half of the
    failure for each, or √k·max|Y_i| with all of it, where that is smaller. Lemma 6 of the paper has √k·max|Y_i| alone.

    Examples
    --------
    >>> round(noise_norm(2.0, 13, 0.05), 2), round(13**0.5 * largest_noise(2.0, 13, 0.05), 2)
    (22.88, 39.93)
    """
    if kind == "gaussian":
        check_probability(failure)
        check_positive("scale", scale, or_zero=True)
        return scale * math.sqrt(float(scipy.special.chdtri(n_draws, failure)))
    plain = math.sqrt(n_draws) * largest_noise(scale, n_draws, failure)
    total = scale * float(scipy.special.gammainccinv(n_draws, 0.5 * failure))
    return min(plain, math.sqrt(largest_noise(scale, n_draws, 0.5 * failure) * total))


@checked
def exponential_mechanism_failure(temperature: float, shortfall: float, *, near: float, near_measure: float) -> float:
    """Bound on the probability that the exponential mechanism misses the best score by more than ``shortfall``.

    Parameters
    ----------
    temperature : float
        t: an outcome has density ∝ exp(t·score) with respect to a base measure of total mass 1.
    near : float
        Below ``shortfall``, not negative.
    near_measure : float
        Base measure of the outcomes whose score is within ``near`` of the best, or a lower bound on it.

    Notes
    -----
    e^{−t(shortfall − near)} / near_measure. Amin et al. (2019), Lemma 4, is the case near = shortfall/2. **As printed it is
    false**: it multiplies by the measure where it must divide (McSherry & Talwar 2007, Lemma 7). One outcome of score 1 among N
    of score 0 is missed with probability near 1 however small 1/N is.

    Examples
    --------
    >>> round(exponential_mechanism_failure(2.0, 10.0, near=5.0, near_measure=0.01), 5)
    0.00454
    """
    check_positive("temperature", temperature, or_zero=True)
    if not 0.0 <= near <= shortfall < math.inf:
        raise InputValueError(f"need 0 <= near <= shortfall, got near={near!r} and shortfall={shortfall!r}")
    if not 0.0 < near_measure <= 1.0:
        raise InputValueError(f"near_measure={near_measure!r} is a share of the base measure: above 0 and at most 1")
    return min(1.0, math.exp(-temperature * (shortfall - near)) / near_measure)
