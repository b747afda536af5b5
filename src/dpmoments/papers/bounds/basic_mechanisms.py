"""Errors of the Laplace and exponential mechanisms (Amin et al. 2019, Lemmas 3 and 4)."""

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
    """Bound the largest absolute value of independent draws, with probability 1 − ``failure``.

    ``scale`` is the scale of Laplace noise, or the standard deviation of Gaussian noise. ``"sharp"`` is the exact quantile;
    ``"paper"`` is scale·ln(k/β), a union bound for Laplace noise only (Amin et al. 2019, Lemma 3).

    >>> round(largest_noise(2.0, 13, 0.05), 3), round(largest_noise(2.0, 13, 0.05, constants="paper"), 3)
    (11.074, 11.121)
    """
    check_probability(failure)
    check_positive("scale", scale, or_zero=True)
    if n_draws < 1:
        raise InputValueError(f"n_draws={n_draws!r} must be at least 1")
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

    Gaussian noise: the quantile of the χ distribution. Laplace noise: ‖Y‖₂² ≤ max|Y_i|·‖Y‖₁, where ‖Y‖₁ is Gamma(k); half of
    the failure for each, or √k·max|Y_i| with all of it if that is smaller. Lemma 6 of the paper has only √k·max|Y_i|.

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
    """Bound the probability that the exponential mechanism misses by over ``shortfall``.

    An outcome has density ∝ exp(t·score), t = ``temperature``, with respect to a base measure of total mass 1. ``near_measure``
    is (a lower bound on) the base measure of the outcomes with a score within ``near`` of the best, 0 ≤ near ≤ shortfall.

    The bound is e^{−t(shortfall − near)} / near_measure. Amin et al. (2019), Lemma 4, is the case near = shortfall/2. **As
    printed it is false**: it multiplies by the measure instead of dividing (McSherry & Talwar 2007, Lemma 7). One outcome of
    score 1 among N of score 0 is missed with probability near 1, however small 1/N is.

    >>> round(exponential_mechanism_failure(2.0, 10.0, near=5.0, near_measure=0.01), 5)
    0.00454
    """
    check_positive("temperature", temperature, or_zero=True)
    if not 0.0 <= near <= shortfall < math.inf:
        raise InputValueError(f"need 0 <= near <= shortfall, got near={near!r} and shortfall={shortfall!r}")
    if not 0.0 < near_measure <= 1.0:
        raise InputValueError(
            f"near_measure={near_measure!r} must be a fraction of the base measure, above 0 and at most 1"
        )
    return min(1.0, math.exp(-temperature * (shortfall - near)) / near_measure)
