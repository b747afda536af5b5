"""Exact privacy curves and their inversion, always rounded to the safe side.

A curve is the smallest delta for which a mechanism is (epsilon, delta)-differentially private, as a function of epsilon.
Calibration inverts a curve and is rechecked by evaluating the curve at its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal

import numpy as np
import scipy

from dpmoments.base.checks import check_not_negative, check_positive
from dpmoments.base.errors import InputArithmeticError, InputValueError, out_of_range, shown
from dpmoments.base.one_variable import brent_root
from dpmoments.base.values import FloatArray

# Inversion of a monotone privacy curve, always ending on the safe side.

_MAX_EXCESS = 1e300  # stands in for an infinite excess, which the root finder cannot interpolate
_MAX_STEPS = 200


def safe_root(excess: Callable[[float], float], start: float, *, safe: Literal["above", "below"]) -> float:
    """Find a root of a monotone function of a positive number, on the side where it is ≤ 0.

    An argument is safe exactly when ``excess(x) <= 0``, usually ``log(delta(x)) - log(delta_wanted)`` plus an allowance for
    rounding; ``safe`` says whether large or small arguments are. Any positive ``start`` works; near the root is faster. At the
    result ``excess`` *was evaluated* and was not positive; it is within a few units in the last place of the boundary (or as
    close as rounding errors in ``excess`` allow).
    """

    def finite_excess(x: float) -> float:
        value = excess(x)
        if math.isnan(value):
            raise InputArithmeticError(f"the privacy curve is not a number at {shown(x)}")
        return min(max(value, -_MAX_EXCESS), _MAX_EXCESS)

    towards_safe = 1.0 if safe == "above" else -1.0
    start_is_safe = finite_excess(start) <= 0.0
    step = -towards_safe if start_is_safe else towards_safe
    near, far, width = start, start, 1.0
    for _ in range(_MAX_STEPS):
        near, far = far, far * 2.0 ** (step * width)
        if not 0.0 < far < math.inf:
            raise InputArithmeticError("no boundary between safe and unsafe parameters within floating-point range")
        if (finite_excess(far) <= 0.0) != start_is_safe:
            break
        width = min(2.0 * width, 64.0)
    else:
        raise InputArithmeticError("no boundary between safe and unsafe parameters within floating-point range")
    root = brent_root(finite_excess, near, far, xtol=5e-324, rtol=8.9e-16, maxiter=500)

    # The root finder may stop on either side of the root: walk to the safe side and evaluate there.
    ulps = 2.0
    for _ in range(_MAX_STEPS):
        if finite_excess(root) <= 0.0:
            return root
        root *= 1.0 + towards_safe * ulps * 2.0**-53
        ulps *= 2.0
        if ulps > 2.0**50:
            break
    raise InputArithmeticError("the privacy curve is not monotone near its root")


# Checks of the public parameters that every privacy curve takes.


def require_positive(name: str, value: float) -> float:
    """Return ``value`` as a float, or raise if it is not a positive finite number."""
    check_positive(name, number := float(value))
    return number


def require_nonnegative(name: str, value: float) -> float:
    """Return ``value`` as a float, or raise if it is negative, infinite or not a number."""
    check_not_negative(name, number := float(value))
    return number


def require_delta(value: float) -> float:
    """Return ``value`` as a float, or raise if it is not strictly between 0 and 1."""
    number = float(value)
    if not 0.0 < number < 1.0:
        raise InputValueError(
            f"delta must lie strictly between 0 and 1; got {shown(value)}. For delta = 0 use a mechanism for "
            "pure differential privacy or a zCDP budget."
        )
    return number


# Zero-concentrated differential privacy.
#
# Noise scales, and conversions valid for *any* rho-zCDP mechanism.
#
# For every order ``alpha = 1 + b > 1``, a Rényi divergence of at most ``alpha * rho`` gives (Canonne, Kamath &
# Steinke 2020, Proposition 12)
#
#     delta(epsilon) = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha,
#
#     log delta = b ((1 + b) rho - epsilon) - b log(1 + 1/b) - log(1 + b),
#
# convex in ``b``. Its minimum is where ``(1 + 2 b) rho + log(b / (1 + b)) = epsilon``, and there
# ``log(1/delta) = rho b^2 + log(1 + b)``. Every order gives a valid bound, so an inexact minimiser costs
# accuracy, never privacy.

_UNIT = 2.0**-52
_MAX_LOG = 690.0  # orders from 1 + exp(-690) to 1 + exp(690) are searched


def zcdp_noise_scale(rho: float, sensitivity: float) -> float:
    r"""Return the noise scale Δ/√(2ρ) at which the Gaussian mechanism is ρ-zCDP, rounded up.

    The smallest float with ``sensitivity**2 <= 2 * rho * noise_scale**2`` in exact arithmetic. Bun & Steinke (2016),
    Proposition 1.6; for the discrete Gaussian, Canonne, Kamath & Steinke (2020), Theorem 4.

    >>> zcdp_noise_scale(0.5, sensitivity=2.0)
    2.0
    """
    rho = require_positive("rho", rho)
    sensitivity = require_positive("sensitivity", sensitivity)
    least = Fraction(sensitivity) ** 2 / (2 * Fraction(rho))

    def is_enough(scale: float) -> bool:
        return Fraction(scale) ** 2 >= least

    scale = sensitivity / math.sqrt(2.0 * rho)
    if not 0.0 < scale < math.inf:
        raise InputValueError(
            f"no float holds the noise scale for rho={shown(rho)}, sensitivity={shown(sensitivity)}; rescale"
        )
    while is_enough(below := math.nextafter(scale, 0.0)):
        scale = below
    while not is_enough(scale):
        scale = math.nextafter(scale, math.inf)
    return scale


def _log_delta_at_order(order_excess: float, rho: float, epsilon: float) -> float:
    """Return the bound on log delta at the order ``1 + order_excess``, allowing for rounding."""
    b = order_excess
    terms = (b * (1.0 + b) * rho, -b * epsilon, -b * math.log1p(1.0 / b), -math.log1p(b))
    return math.fsum(terms) + 8.0 * _UNIT * math.fsum(abs(term) for term in terms)


def zcdp_log_delta(rho: float, epsilon: float) -> float:
    """Return the natural logarithm of :func:`zcdp_delta`, finite if that underflows."""
    rho = require_positive("rho", rho)
    epsilon = require_nonnegative("epsilon", epsilon)

    def slope(log_b: float) -> float:
        return (1.0 + 2.0 * math.exp(log_b)) * rho - epsilon - math.log1p(math.exp(-log_b))

    low, high = -_MAX_LOG, _MAX_LOG
    if slope(low) >= 0.0:
        return 0.0
    log_b = high if slope(high) <= 0.0 else brent_root(slope, low, high, xtol=1e-13, rtol=1e-14, maxiter=500)
    return min(_log_delta_at_order(math.exp(log_b), rho, epsilon), 0.0)


def zcdp_delta(rho: float, epsilon: float) -> float:
    r"""Return the smallest δ such that, by the bound below, ρ-zCDP implies (ε, δ)-DP, rounded up.

    .. math:: \delta = \inf_{\alpha > 1}
        \frac{e^{(\alpha-1)(\alpha\rho-\varepsilon)}}{\alpha-1}\Bigl(1-\frac1\alpha\Bigr)^{\alpha}

    Canonne, Kamath & Steinke (2020), "The discrete Gaussian for differential privacy", Proposition 12 and Corollary 13; it
    improves on Bun & Steinke (2016), Lemma 3.5. At most 1.
    """
    return min(math.exp(zcdp_log_delta(rho, epsilon)) * (1.0 + 4.0 * _UNIT), 1.0)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the least ε such that, by :func:`zcdp_delta`, ρ-zCDP implies (ε, δ)-DP."""
    # On the safe side, rechecked by evaluating `zcdp_delta`; 0 if δ by itself suffices.
    rho = require_positive("rho", rho)
    delta = require_delta(delta)
    if zcdp_delta(rho, 0.0) <= delta:
        return 0.0
    log_inverse_delta = -math.log(delta)
    # At the optimal order rho b^2 + log(1 + b) = log(1/delta): a starting point close to the root.
    upper = math.sqrt(log_inverse_delta / rho)
    b = brent_root(lambda b: rho * b * b + math.log1p(b) - log_inverse_delta, 0.0, upper * (1.0 + 1e-9), xtol=1e-300)
    start = (1.0 + 2.0 * b) * rho + math.log(b) - math.log1p(b)
    return safe_root(
        lambda epsilon: zcdp_delta(rho, epsilon) / delta - 1.0, start if start > 0.0 else rho, safe="above"
    )


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ such that, by :func:`zcdp_delta`, ρ-zCDP implies (ε, δ)-DP.

    It is on the safe side, rechecked by evaluating ``zcdp_delta``.

    >>> rho = zcdp_rho(1.0, 1e-6)
    >>> round(rho, 5), zcdp_delta(rho, 1.0) <= 1e-6
    (0.02436, True)
    """
    epsilon = require_positive("epsilon", epsilon)
    delta = require_delta(delta)
    log_inverse_delta = -math.log(delta)
    start = (math.sqrt(log_inverse_delta + epsilon) - math.sqrt(log_inverse_delta)) ** 2  # Bun & Steinke 2016
    if start <= 0.0:
        start = epsilon * epsilon / (4.0 * log_inverse_delta)
    log_delta = math.log(delta)

    def excess(rho: float) -> float:
        log_ratio = zcdp_log_delta(rho, epsilon) - log_delta
        # Near the root use the very comparison that the caller will make: delta itself, not its logarithm.
        return zcdp_delta(rho, epsilon) / delta - 1.0 if abs(log_ratio) < 1e-9 else log_ratio

    return safe_root(excess, start, safe="below")


def pure_to_zcdp(epsilon: float) -> float:
    r"""Return the smallest rho such that every epsilon-DP mechanism is rho-zCDP, rounded up.

    It is :math:`\varepsilon\tanh(\varepsilon/2)`. Every :math:`\varepsilon`-DP pair of distributions post-processes randomized
    response (Kairouz, Oh & Viswanath 2015), whose Rényi divergence of order :math:`\alpha` is :math:`(f(s) - f(u))/(\alpha -
    1)` with :math:`f = \log\cosh`, :math:`u = \varepsilon/2` and :math:`s = (2\alpha - 1)u`. As a function of :math:`s^2`,
    :math:`f` has the decreasing derivative :math:`\tanh(s)/(2s)`; so, by the mean value theorem, :math:`f(s) - f(u) \le (s^2 -
    u^2)\tanh(u)/(2u) = \alpha(\alpha - 1)\,\varepsilon\tanh(\varepsilon/2)`. Equality holds as :math:`\alpha \to 1`: the
    constant is the best possible. It improves on the :math:`\varepsilon^2/2` of Bun & Steinke (2016), Proposition 1.4.
    """
    epsilon = require_nonnegative("epsilon", epsilon)
    if epsilon == 0.0:
        return 0.0
    return math.nextafter(epsilon * math.tanh(0.5 * epsilon) * (1.0 + 2.0 * _UNIT), math.inf)


# Exact privacy curves of Gaussian and discrete Gaussian noise, and their inverses.
#
# With ``mu = sensitivity / noise_scale``, ``a = mu/2 - epsilon/mu`` and ``b = a - mu`` (Balle & Wang 2018, Theorem 8),
#
# delta(epsilon) = Phi(a) - exp(epsilon) Phi(b).
#
# Since ``exp(epsilon) phi(b) = phi(a)``, and ``Phi(x) / phi(x) = M(x) = int_0^inf exp(x t - t^2/2) dt``, it is
#
# delta(epsilon) = phi(a) (M(a) - M(b)) = phi(a) int_0^inf exp(a t - t^2/2) (1 - exp(-mu t)) dt,
#
# a positive integrand: nothing cancels, nothing overflows, and only the factor ``phi(a)`` is tiny in the far tail.
#
# Discrete Gaussian noise of scale s on the integers is compared with a *continuous* normal of variance ``s^2 - 1/12`` rounded to
# the nearest integer: the rounding puts the 1/12 back, so the two agree to fourth order. The rounded normal is a post-processing
# of the continuous one and inherits its exact privacy curve; the remaining difference is bounded coordinate by coordinate on a
# set of almost full probability. The proof is in ``docs/evidence/derivations/discrete-gaussian.md``.

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


def gaussian_log_delta(epsilon: float, sensitivity: float, noise_scale: float) -> float:
    """Return the logarithm of :func:`gaussian_delta`, relative error of δ below 1e-11."""
    epsilon = require_nonnegative("epsilon", epsilon)
    sensitivity = require_positive("sensitivity", sensitivity)
    noise_scale = require_positive("noise_scale", noise_scale)
    # a = mu/2 - epsilon/mu, correctly rounded: at large epsilon the two terms all but cancel.
    e, s, n = Fraction(epsilon), Fraction(sensitivity), Fraction(noise_scale)
    try:
        a = float((s * s - 2 * e * n * n) / (2 * s * n))
    except OverflowError:
        a = math.inf if s * s > 2 * e * n * n else -math.inf
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


_QUANTILE_ERROR = 1e-12  # relative, of the normal quantile
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
    return 2.0 * half * (1.0 + _QUANTILE_ERROR)


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


# Privacy curve of several draws together, from the curves of each.
#
# A privacy curve δ(ε), as a function of :math:`\gamma = e^\varepsilon`, is convex: it belongs to a pair of distributions (P, Q)
# that represents the draw. Its chords over a grid of ε lie above it, and are the curve of a discrete pair with privacy losses on
# the grid. Losses of draws add up, so their distributions are convolved; the resulting curve lies above the true one ("connecting
# the dots", Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022; composition: Zhu, Dong & Wang 2022, Theorem 10).
# ``docs/evidence/derivations/privacy-profile.md`` has the proof.

_N_STEPS = 2_000
"""Steps of the grid, from 0 to the largest loss of all draws together."""
_MAX_LOSS = 100.0
"""Largest loss: beyond it 1 is lost in e^ε + 1 in floating point."""
_MAX_CURVES = 5_000
"""Max number of curves: more take minutes, and no mechanism composes as many draws."""
_MASS_ROUNDING = 1e-10
"""Addition to δ for rounding of second differences; the tests find less than a tenth of it."""


@dataclass(frozen=True)
class PrivacyCurve:
    """Curve δ(ε) of one draw, and the loss up to which it is followed."""

    delta: Callable[[float], float]  # δ at an ε, which may be negative; equal for either order of the two tables
    reach: float  # the largest loss, or one beyond which the rest is so small that it may count as infinite


@dataclass(frozen=True)
class ComposedCurve:
    """Distribution of the total privacy loss of several draws on a grid; any larger is infinite."""

    losses: FloatArray
    masses: FloatArray
    infinite: float

    def delta(self, epsilon: float) -> float:
        """Return δ at an ε: never less than the draws have."""
        above = self.losses > epsilon
        beyond = -np.expm1(epsilon - self.losses[above])
        return min(float(self.masses[above] @ beyond) + self.infinite + _MASS_ROUNDING, 1.0)


def composed(curves: Sequence[PrivacyCurve]) -> ComposedCurve | None:
    """Return the curve of draws with these curves, each chosen adaptively."""
    # None if it overflows or there are too many.
    reach = math.fsum(curve.reach for curve in curves)
    if not 0.0 < reach <= _MAX_LOSS or len(curves) > _MAX_CURVES:
        return None
    step = reach / _N_STEPS
    masses: FloatArray = np.ones(1)
    first, kept = 0, 1.0
    for curve in curves:
        last = math.ceil(curve.reach / step)
        grid = step * np.arange(-last, last + 1)
        # Dots in γ at the grid points, with (0, 1) before the first.
        gammas = np.concatenate([[0.0], np.exp(grid)])
        deltas = np.concatenate([[1.0], [curve.delta(float(loss)) for loss in grid]])
        dots = _convex(gammas, deltas)
        slopes = np.append(np.diff(deltas[dots]) / np.diff(gammas[dots]), 0.0)  # 0 after the last dot
        own = np.zeros(len(gammas))
        # A second difference below 0 is rounding: with 0 in its place the curve lies higher.
        own[dots[1:]] = np.maximum(np.diff(slopes), 0.0) * gammas[dots[1:]]
        masses = np.asarray(np.convolve(masses, own[1:]), dtype=np.float64)
        first, kept = first - last, kept * (1.0 - float(deltas[-1]))
    losses: FloatArray = step * np.arange(first, first + len(masses), dtype=np.float64)
    return ComposedCurve(losses, masses, max(1.0 - kept, 0.0))


def _convex(gammas: FloatArray, deltas: FloatArray) -> list[int]:
    """Return the indices on the lower convex hull."""
    # Bounds on a convex curve may be joined if that is lower.
    kept: list[int] = []
    for index in range(len(gammas)):
        while len(kept) > 1:
            before, last = kept[-2], kept[-1]
            rise = (deltas[last] - deltas[before]) * (gammas[index] - gammas[before])
            if rise < (deltas[index] - deltas[before]) * (gammas[last] - gammas[before]):
                break
            kept.pop()
        kept.append(index)
    return kept


# Privacy curves of pure mechanisms: how little their δ is at an ε below their own.

_SLACK = 2.0**-50
"""Addition to every δ above 0: more than the rounding of the few operations that make it."""


def _rounded_up(delta: float) -> float:
    return min(max(delta, 0.0) + _SLACK, 1.0)


def _beyond(epsilon: float, loss: float) -> float | None:
    """Return δ if ε is outside (−t, t), for all pure mechanisms of loss t; None inside."""
    if epsilon >= loss:
        return 0.0
    return _rounded_up(-math.expm1(epsilon)) if epsilon <= -loss else None


def randomized_response_delta(epsilon: float, loss: float) -> float:
    r"""Return the δ(ε) that every pure mechanism of loss t keeps, rounded up.

    It is 0 from ε = t on.

    .. math:: \delta = \frac{1 - e^{\varepsilon - t}}{1 + e^{-t}}

    Kairouz, Oh & Viswanath (2015), *The composition theorem for differential privacy*, Theorem 2.
    """
    if (certain := _beyond(epsilon, loss)) is not None:
        return certain
    return _rounded_up(-math.expm1(epsilon - loss) / (1.0 + math.exp(-loss)))


def laplace_delta(epsilon: float, loss: float) -> float:
    r"""Return the δ(ε) of Laplace noise.

    It bounds the δ(ε) of all noise whose log density is Lipschitz in some norm.

    .. math:: \delta = 1 - e^{(\varepsilon - t)/2}

    t = ``loss`` is the sensitivity over the scale. Rounded up; 0 at ``epsilon >= loss``.
    """
    if (certain := _beyond(epsilon, loss)) is not None:
        return certain
    return _rounded_up(-math.expm1(0.5 * (epsilon - loss)))


def discrete_laplace_delta(epsilon: float, shift: int, scale: float) -> float:
    r"""Return the δ(ε) of discrete Laplace noise on an integer that moves by ``shift``."""
    # With :math:`r = e^{-1/b}`, b the scale, the largest over integers j of :math:`1 - (r^{t+1-j} + e^{\varepsilon}
    # r^j)/(1 + r)`. It bounds independent noise on several integers that move by t = `shift` in all. Rounded up; 0 at
    # `epsilon >= shift/scale`.
    if (certain := _beyond(epsilon, shift / scale)) is not None:
        return certain
    middle = math.floor(0.5 * (shift + 1 + epsilon * scale))
    missed = min(
        math.exp(-(shift + 1 - index) / scale) + math.exp(epsilon - index / scale)
        for index in {min(max(index, 1), shift) for index in (middle - 1, middle, middle + 1)}
    )
    return _rounded_up(1.0 - missed / (1.0 + math.exp(-1.0 / scale)))


def bounded_range_delta(epsilon: float, width: float) -> float:
    r"""Return the δ(ε) of mechanisms with log-ratios in an interval of length η = ``width``.

    .. math:: \delta = \frac{(1 - e^{(\varepsilon - \eta)/2})^2}{1 - e^{-\eta}}

    For the exponential mechanism ∝ exp(ε₀·score/2) with scores of sensitivity Δ, η is ε₀Δ. Rounded up; 0 at ``epsilon >=
    width``. Dong, Durfee & Rogers (2020), *Optimal differential privacy composition for exponential mechanisms*, section 3.
    """
    if (certain := _beyond(epsilon, width)) is not None:
        return certain
    return _rounded_up(math.expm1(0.5 * (epsilon - width)) ** 2 / -math.expm1(-width))


def __getattr__(name: str) -> Any:
    """Load a curve of the papers' draws when it is first used."""
    if name.startswith(("additive_wishart_", "raised_wishart_", "wishart_sampling_")):
        return getattr(import_module("dpmoments.papers.curves"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
