"""Zero-concentrated differential privacy.

Noise scales, and conversions valid for *any* rho-zCDP mechanism.

For every order ``alpha = 1 + b > 1``, a Rényi divergence of at most ``alpha * rho`` gives (Canonne, Kamath &
Steinke 2020, Proposition 12)

    delta(epsilon) = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha,

    log delta = b ((1 + b) rho - epsilon) - b log(1 + 1/b) - log(1 + b),

convex in ``b``. Its minimum is where ``(1 + 2 b) rho + log(b / (1 + b)) = epsilon``, and there
``log(1/delta) = rho b^2 + log(1 + b)``. Every order gives a valid bound, so an inexact minimiser costs
accuracy, never privacy.
"""

import math
from fractions import Fraction

from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.one_variable import brent_root
from dpmoments.privacy.curves.inversion import require_delta, require_nonnegative, require_positive, safe_root

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
