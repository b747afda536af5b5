"""Exact privacy curves of Gaussian and discrete Gaussian noise, and their inverses.

With ``mu = sensitivity / noise_scale``, ``a = mu/2 - epsilon/mu`` and ``b = a - mu`` (Balle & Wang 2018, Theorem 8),

delta(epsilon) = Phi(a) - exp(epsilon) Phi(b).

Since ``exp(epsilon) phi(b) = phi(a)``, and ``Phi(x) / phi(x) = M(x) = int_0^inf exp(x t - t^2/2) dt``, it is

delta(epsilon) = phi(a) (M(a) - M(b)) = phi(a) int_0^inf exp(a t - t^2/2) (1 - exp(-mu t)) dt,

a positive integrand: nothing cancels, nothing overflows, and only the factor ``phi(a)`` is tiny in the far tail.

Discrete Gaussian noise of scale s on the integers is compared with a *continuous* normal of variance ``s^2 - 1/12`` rounded to
the nearest integer: the rounding puts the 1/12 back, so the two agree to fourth order. The rounded normal is a post-processing
of the continuous one and inherits its exact privacy curve; the remaining difference is bounded coordinate by coordinate on a
set of almost full probability. The proof is in ``docs/evidence/derivations/discrete-gaussian.md``.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy

from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import out_of_range
from dpmoments.privacy.curves.inversion import require_delta, require_nonnegative, require_positive, safe_root

# Relative error of gaussian_delta: below 1e-12 in the tests, against 60 digits. Inversions leave room for it.
RELATIVE_ERROR = 1e-11

_LOG_SQRT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
_MAX_ARGUMENT = 1e100  # its square is still a float; beyond it delta is 0 or 1
_SQRT_TWO = math.sqrt(2.0)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


def _log_delta(a: FloatArray, mu: FloatArray) -> FloatArray:
    """Return log δ, elementwise."""
    # Arguments are the upper argument and the ratio of sensitivity to noise scale.
    close = mu < 0.5 * (1.0 + np.abs(a))
    # Where M(a) and M(b) are close, integrate their difference, up to where exp(-45) of it is left.
    c, m = np.where(close, a, 0.0), np.where(close, mu, 0.1)
    root = np.sqrt(c * c + 90.0)
    end = np.where(c <= 0.0, 90.0 / (root + np.abs(c)), c + root)
    t = end[..., None] * _NODES
    integrand = np.exp(c[..., None] * t - 0.5 * t * t) * -np.expm1(-m[..., None] * t)
    integrated = end * np.sum(_WEIGHTS * integrand, axis=-1)
    # Elsewhere subtract. For a > 0 compute 1 - delta, a sum of two positive terms, so that nothing cancels near delta = 1.
    lower = np.minimum(a, 0.0)
    subtracted = _SQRT_HALF_PI * (
        scipy.special.erfcx(-lower / _SQRT_TWO) - scipy.special.erfcx((mu - lower) / _SQRT_TWO)
    )
    tail_only = close | (a <= 0.0)
    positive = np.where(tail_only, 0.0, a)
    upper_tail = scipy.special.ndtr(-positive) + _SQRT_HALF_PI * scipy.special.erfcx(
        (mu - positive) / _SQRT_TWO
    ) * np.exp(-0.5 * positive * positive - _LOG_SQRT_TWO_PI)
    difference = np.where(close, integrated, subtracted)
    from_tail = -0.5 * a * a - _LOG_SQRT_TWO_PI + np.log(np.where(tail_only, difference, 1.0))
    return np.where(tail_only, from_tail, np.log1p(-np.where(tail_only, 0.0, upper_tail)))


def log_delta_of_ratio(epsilon: float, mu: FloatArray) -> FloatArray:
    """Return log δ of Gaussian mechanisms, elementwise in sensitivity / noise scale."""
    return _log_delta(np.clip(0.5 * mu - epsilon / mu, -_MAX_ARGUMENT, _MAX_ARGUMENT), mu)


def _upper_argument(epsilon: float, sensitivity: float, noise_scale: float) -> float:
    """Return ``mu/2 - epsilon/mu``, correctly rounded."""
    # At large epsilon the two terms all but cancel.
    e, s, n = Fraction(epsilon), Fraction(sensitivity), Fraction(noise_scale)
    try:
        return float((s * s - 2 * e * n * n) / (2 * s * n))
    except OverflowError:
        return math.inf if s * s > 2 * e * n * n else -math.inf


def gaussian_log_delta(epsilon: float, sensitivity: float, noise_scale: float) -> float:
    """Return the logarithm of :func:`gaussian_delta`, relative error of δ below 1e-11."""
    epsilon = require_nonnegative("epsilon", epsilon)
    sensitivity = require_positive("sensitivity", sensitivity)
    noise_scale = require_positive("noise_scale", noise_scale)
    a = _upper_argument(epsilon, sensitivity, noise_scale)
    mu = sensitivity / noise_scale
    if abs(a) > _MAX_ARGUMENT:
        return 0.0 if a > 0.0 else -math.inf
    return float(_log_delta(np.array(a), np.array(mu)))


def gaussian_delta(epsilon: float, sensitivity: float, noise_scale: float) -> float:
    r"""Return the exact δ(ε) of the Gaussian mechanism (Balle & Wang 2018, Theorem 8).

    .. math:: \delta(\varepsilon) = \Phi\Bigl(\frac{\Delta}{2\sigma} - \frac{\varepsilon\sigma}{\Delta}\Bigr)
              - e^{\varepsilon}\,\Phi\Bigl(-\frac{\Delta}{2\sigma} - \frac{\varepsilon\sigma}{\Delta}\Bigr)

    :math:`\Delta` is the ℓ2 sensitivity and :math:`\sigma` the noise SD of every coordinate. The result is the smallest delta
    for which the mechanism is (epsilon, delta)-differentially private; relative error below ``1e-11`` down to ``1e-300``.

    >>> round(gaussian_delta(1.0, sensitivity=1.0, noise_scale=1.0), 6)
    0.126937
    """
    return math.exp(gaussian_log_delta(epsilon, sensitivity, noise_scale))


def gaussian_noise_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    r"""Return the smallest noise scale at which the Gaussian mechanism is (epsilon, delta)-DP.

    The scale is on the safe side: ``gaussian_delta`` was evaluated there and, allowing for its own rounding error, does not
    exceed ``delta``. Epsilon from ``1e-6`` to ``1e12`` is tested. The textbook formula
    :math:`\Delta\sqrt{2\ln(1.25/\delta)}/\varepsilon` is wasteful for epsilon below 1 and *not private* for large epsilon, so
    it is not offered. Balle & Wang (2018), Theorem 8 and Algorithm 1.

    >>> round(gaussian_noise_scale(1.0, 1e-6, sensitivity=1.0), 4)
    4.2247
    """
    epsilon = require_positive("epsilon", epsilon)
    delta = require_delta(delta)
    sensitivity = require_positive("sensitivity", sensitivity)
    target = math.log(delta) - RELATIVE_ERROR
    # Start where Phi(a) = delta: since delta(epsilon) <= Phi(a) that is safe, and it is not far from the smallest scale.
    z = -float(scipy.special.ndtri(delta))
    root = math.sqrt(z * z + 2.0 * epsilon)
    mu = 2.0 * epsilon / (root + z) if z > 0.0 else root - z
    return safe_root(
        lambda scale: gaussian_log_delta(epsilon, sensitivity, scale) - target, sensitivity / mu, safe="above"
    )


def gaussian_epsilon(delta: float, sensitivity: float, noise_scale: float) -> float:
    """Return the least ε at which a Gaussian mechanism is (ε, δ)-DP, on the safe side."""
    # It is rechecked on the curve, and 0 if δ by itself covers the loss.
    delta = require_delta(delta)
    target = math.log(delta) - RELATIVE_ERROR
    if gaussian_log_delta(0.0, sensitivity, noise_scale) <= target:
        return 0.0
    # delta(epsilon) <= Phi(a), as above.
    mu = sensitivity / noise_scale
    start = mu * (0.5 * mu + max(-float(scipy.special.ndtri(delta)), 1.0))
    return safe_root(
        lambda epsilon: gaussian_log_delta(epsilon, sensitivity, noise_scale) - target, start, safe="above"
    )


_RELATIVE_ERROR = 1e-12
_SMALL = 1.0
"""Limit below which the normal quantile of 1/(1 + e^ε), which is near ½, loses digits."""


def pure_to_gaussian(epsilon: float) -> float:
    r"""Return the smallest μ such that ε-DP implies μ-Gaussian DP, rounded up.

    It is :math:`\mu = -2\,\Phi^{-1}\bigl(1/(1 + e^{\varepsilon})\bigr)`. The trade-off curve of randomized response, which
    every :math:`\varepsilon`-DP pair of distributions post-processes, is made of two straight lines with a corner at :math:`(a,
    a)`, :math:`a = 1/(1 + e^{\varepsilon})`. The curve of two normals, :math:`\Phi(\Phi^{-1}(1 - \alpha) - \mu)`, is convex
    with the same ends, so it lies below both lines exactly if it does not exceed :math:`a` at :math:`a`; there it is :math:`a`
    for this :math:`\mu`. So the constant is the best possible. Kairouz, Oh & Viswanath (2015) for randomized response; Dong,
    Roth & Su (2022), Section 2, for trade-off curves.
    """
    epsilon = require_nonnegative("epsilon", epsilon)
    if epsilon == 0.0:
        return 0.0
    if epsilon < _SMALL:
        half = math.sqrt(2.0) * float(scipy.special.erfinv(math.tanh(0.5 * epsilon)))
    else:
        half = -float(scipy.special.ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    return 2.0 * half * (1.0 + _RELATIVE_ERROR)


MIN_COMPOSED_SCALE = 2.0**20
"""Min SD of composed draws, in lattice units.

Then the margin to continuous noise is below 1e-9 …
"""
MAX_COMPOSED_COORDINATES = 2**30
"""… for at most this number of coordinates together."""

_ROUNDING = 1e-12  # allowed relative error of a coordinate's scale against noise_scale times its ratio
_TAIL = 30.0  # the high-probability set leaves out exp(-30) times delta


def discrete_gaussian_log_delta(
    epsilon: float, sensitivity: float, noise_scale: float, n_coordinates: int, smallest_ratio: float = 1.0
) -> float:
    """Return the natural logarithm of :func:`discrete_gaussian_delta`."""
    epsilon = require_nonnegative("epsilon", epsilon)
    sensitivity = require_positive("sensitivity", sensitivity)
    noise_scale = require_positive("noise_scale", noise_scale)
    smallest_ratio = require_positive("smallest_ratio", smallest_ratio)
    if n_coordinates < 1:
        raise out_of_range("n_coordinates", n_coordinates, "at least 1")
    m = float(n_coordinates)
    smallest_scale = noise_scale * smallest_ratio * (1.0 - _ROUNDING)
    if smallest_scale < 1.0:
        return 0.0  # the proof needs noise wider than the lattice spacing; delta = 1 is always valid
    shrink = math.sqrt(1.0 - 1.0 / (12.0 * smallest_scale**2)) * (1.0 - _ROUNDING)
    tau = smallest_scale * shrink

    log_tail = min(gaussian_log_delta(epsilon, sensitivity, noise_scale * shrink), 0.0) - _TAIL
    # Laurent & Massart (2000), Lemma 1: P[chi^2_m > m + 2 sqrt(m t) + 2 t] <= exp(-t).
    chi = math.sqrt(m + 2.0 * math.sqrt(-log_tail * m) - 2.0 * log_tail)
    radius = (chi + 0.5 * math.sqrt(m) / smallest_scale + sensitivity / noise_scale) / shrink

    if radius > 1e70:
        return 0.0  # its powers overflow, and the margin is beyond any epsilon

    # Bounds on log(discrete / rounded) and on log(rounded / discrete) inside the set, and on the first one anywhere.
    above = m / (576.0 * tau**4) + radius**2 / (3456.0 * tau**6) + radius**4 / (2880.0 * tau**4)
    theta = math.exp(-2.0 * math.pi**2 * smallest_scale**2)
    below = m * (2.0 * theta / (1.0 - theta) + 1.0 / (640.0 * tau**4)) + radius**2 / (288.0 * tau**4)
    anywhere = m / (24.0 * smallest_scale**2)

    margin = (above + below) * (1.0 + 1e-9)
    if margin >= epsilon:
        return 0.0
    reduced_epsilon = math.nextafter(epsilon - margin, 0.0)
    inside = above + gaussian_log_delta(reduced_epsilon, sensitivity, noise_scale * shrink) + RELATIVE_ERROR
    outside = anywhere + log_tail
    return min(max(inside, outside) + math.log1p(math.exp(-abs(inside - outside))), 0.0)


def discrete_gaussian_delta(
    epsilon: float, sensitivity: float, noise_scale: float, n_coordinates: int, smallest_ratio: float = 1.0
) -> float:
    r"""Return a proven upper bound on the δ of discrete Gaussian noise on an integer vector.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    sensitivity : float
        Bound on :math:`\sqrt{\sum_i (\Delta_i / w_i)^2}` over neighboring integer queries, with discrete Gaussian noise of
        scale ``noise_scale`` :math:`\times w_i` on coordinate i. For noise that is isotropic in svec (:math:`\sigma` on the
        diagonal, :math:`\sigma/\sqrt2` off it) this is the Frobenius sensitivity of the integer matrix.
    noise_scale : float
        In lattice units, positive.
    n_coordinates : int
        Number of noisy coordinates.
    smallest_ratio : float
        A lower bound on every :math:`w_i`: ``1/sqrt(2)`` for svec-isotropic noise on a symmetric matrix.

    Returns
    -------
    float
        The delta of a continuous normal whose variance is smaller by 1/12, increased by a margin of relative order
        ``n_coordinates**2 / noise_scale**4``. 1 if the proof does not apply (scales below 1).
    """
    log_delta = discrete_gaussian_log_delta(epsilon, sensitivity, noise_scale, n_coordinates, smallest_ratio)
    return math.exp(log_delta)


def discrete_gaussian_noise_scale(
    epsilon: float, delta: float, sensitivity: float, n_coordinates: int, smallest_ratio: float = 1.0
) -> float:
    """Return the noise scale at which discrete Gaussian noise is (epsilon, delta)-DP.

    It uses the analytic calibration.

    Arguments are as in :func:`discrete_gaussian_delta`, which is evaluated at the result as a recheck. The scale exceeds the
    continuous calibration by a relative ``1 / (24 * smallest_scale**2)`` and terms of fourth order: less than ``1e-8`` for
    scales of ``2**16`` or more, 500,000 coordinates and epsilon of 0.01 or more.
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR

    def excess(scale: float) -> float:
        return discrete_gaussian_log_delta(epsilon, sensitivity, scale, n_coordinates, smallest_ratio) - target

    return safe_root(excess, gaussian_noise_scale(epsilon, delta, sensitivity), safe="above")


def discrete_gaussian_rho(epsilon: float, delta: float, n_coordinates: int = MAX_COMPOSED_COORDINATES) -> float:
    r"""Return the most ρ that discrete Gaussian draws may spend for (epsilon, delta)-privacy.

    The draws may be chosen adaptively; the ρ is for all of them together.

    A draw of scale :math:`\sigma` on an integer query that moves by :math:`\Delta` spends :math:`\rho = \Delta^2/(2\sigma^2)`.
    However each draw is chosen from earlier results, draws that spend no more than the result together lose no more than one
    Gaussian mechanism of :math:`\mu = \sqrt{2\rho}`, plus the margin of :func:`discrete_gaussian_delta` for all their
    coordinates. This holds for draws of scale ``MIN_COMPOSED_SCALE`` at least, in lattice units, with at most ``n_coordinates``
    coordinates in all; the margin grows with its square.

    Dong, Roth & Su (2022) for :math:`\mu`; Smith & Thakurta (2022) for adaptively chosen :math:`\mu`;
    ``docs/evidence/derivations/composition.md`` for discrete noise.
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR

    def excess(mu: float) -> float:
        sensitivity = mu * MIN_COMPOSED_SCALE * (1.0 + 2.0**-50)
        return discrete_gaussian_log_delta(epsilon, sensitivity, MIN_COMPOSED_SCALE, n_coordinates) - target

    mu = safe_root(excess, 1.0 / gaussian_noise_scale(epsilon, delta, 1.0), safe="below")
    return 0.5 * mu * mu * (1.0 - 2.0**-50)
