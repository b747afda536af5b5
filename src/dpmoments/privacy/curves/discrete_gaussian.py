"""Analytic Gaussian calibration for exact discrete Gaussian noise, with a proven margin.

Discrete Gaussian noise of scale s on the integers is compared with a *continuous* normal of variance ``s^2 - 1/12`` rounded to
the nearest integer: the rounding puts the 1/12 back, so the two agree to fourth order. The rounded normal is a post-processing
of the continuous one and inherits its exact privacy curve; the remaining difference is bounded coordinate by coordinate on a
set of almost full probability. The proof is in ``docs/evidence/derivations/discrete-gaussian.md``.
"""

import math

from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.privacy.curves.gaussian import RELATIVE_ERROR, gaussian_log_delta, gaussian_noise_scale
from dpmoments.privacy.curves.inversion import require_delta, require_nonnegative, require_positive, safe_root

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
        raise InputValueError(
            Message("out-of-range", parameter="n_coordinates", value=n_coordinates, expected="one-or-more")
        )
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
