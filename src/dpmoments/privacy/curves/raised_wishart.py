r"""A privacy bound for drawing a Wishart matrix around a Gram matrix whose small eigenvalues were raised.

The scale matrix is :math:`f(G) + pI`, f raising every eigenvalue below a bound to it. On neighbours these differ by more than one
row: f is no monotone function of matrices. But it moves no further than G in Frobenius norm, by at most F, and no eigenvalue is
below psi, the bound plus p. So the generalised eigenvalues of two of them obey :math:`\sum (\mu_i - 1)^2 \le \kappa^2`,
:math:`\kappa = F/\psi`, and the Rényi divergence of any order of 2 or more is largest where one of them takes it all,
:math:`1 + \kappa`. This holds for every table, with or without eigenvalues below the bound;
``docs/derivations/johnson_lindenstrauss.md`` has the proof.
"""

import math

import scipy

from dpmoments.privacy.curves.arguments import require_delta, require_nonnegative, require_positive
from dpmoments.privacy.curves.inversion import safe_root

__all__ = ["raised_wishart_degrees", "raised_wishart_delta", "raised_wishart_log_delta", "raised_wishart_ratio"]

RELATIVE_ERROR = 1e-9
"""Error of delta that every inversion allows for; tests find it below 1e-10 (against 40-digit arithmetic)."""


def raised_wishart_log_delta(epsilon: float, degrees_of_freedom: float, ratio: float) -> float:
    """Return the natural logarithm of :func:`raised_wishart_delta`.

    Examples
    --------
    >>> round(raised_wishart_log_delta(1.0, 50, 200.0), 1)
    -151.2
    """
    epsilon = require_nonnegative("epsilon", epsilon)
    degrees = require_positive("degrees_of_freedom", degrees_of_freedom)
    ratio = require_positive("ratio", ratio)
    if degrees < 1.0:
        raise ValueError(f"degrees_of_freedom must be at least 1; got {degrees_of_freedom!r}")
    kappa, half = 1.0 / ratio, 0.5 * degrees
    highest = ratio * (1.0 - 2.0**-30)
    if highest <= 1.0:
        return 0.0  # there is no order of 2 or more whose divergence is finite

    def slope(beta: float) -> float:
        """Derivative of the exponent, increasing in the order less 1."""
        within = 1.0 - beta * kappa
        return half * (beta * kappa * kappa / within - _log1p_beyond(kappa)) - epsilon - math.log1p(1.0 / beta)

    # Any order gives a bound: the best need not be met exactly.
    if slope(1.0) >= 0.0:
        beta = 1.0
    elif slope(highest) <= 0.0:
        beta = highest
    else:
        beta = float(scipy.optimize.brentq(slope, 1.0, highest, xtol=1e-12, rtol=1e-12))
    # beta times the divergence; the parts linear in kappa cancel and are left out.
    divergence = -half * (beta * _log1p_beyond(kappa) + _log1p_beyond(-beta * kappa))
    return min(divergence - beta * epsilon - math.log1p(beta) - beta * math.log1p(1.0 / beta), 0.0)


def _log1p_beyond(x: float) -> float:
    """log(1 + x) − x, without cancellation."""
    if abs(x) > 0.01:
        return math.log1p(x) - x
    return -x * x * math.fsum((-x) ** k / (k + 2.0) for k in range(9))


def raised_wishart_delta(epsilon: float, degrees_of_freedom: float, ratio: float) -> float:
    r"""An upper bound on :math:`\delta(\varepsilon)` of drawing from Wishart(f(G) + pI, r), or its inverse.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    degrees_of_freedom : float
        r (for the inverse Wishart law, ν); at least 1.
    ratio : float
        :math:`\psi/F`: the least eigenvalue that f(G) + pI can have, over the Frobenius sensitivity of G.

    Returns
    -------
    float
        :math:`\min_{1 \le \beta < \psi/F} e^{\beta(D_{1+\beta} - \varepsilon)} \beta^\beta (1 + \beta)^{-(1+\beta)}` with
        :math:`D_{1+\beta} = -\tfrac{r}{2}[\log(1 + \kappa) + \log(1 - \beta\kappa)/\beta]`; 1 where that is not below 1. Not
        attained: a ratio some 5 to 12 percent above that of the exact curve of padding is needed at usual budgets.

    References
    ----------
    Sheffet (2015), Theorems 3.1 and 5.1, Corollary B.2, which assert the bound instead; Canonne, Kamath & Steinke (2020),
    Proposition 12, for the conversion; ``docs/derivations/johnson_lindenstrauss.md``.

    Examples
    --------
    >>> round(raised_wishart_delta(1.0, 50, 29.86) * 1e6, 2)
    1.0
    """
    return math.exp(raised_wishart_log_delta(epsilon, degrees_of_freedom, ratio))


def raised_wishart_ratio(epsilon: float, delta: float, degrees_of_freedom: float) -> float:
    """Smallest ψ/F at which the draw is shown to be (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    degrees_of_freedom : float
        At least 1.

    Returns
    -------
    float
        On the safe side, rechecked by evaluating :func:`raised_wishart_delta` there.

    Examples
    --------
    >>> round(raised_wishart_ratio(1.0, 1e-6, 50), 2)
    29.86
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR
    log_inverse_delta = -math.log(delta)
    start = 1.0 + (math.sqrt(degrees_of_freedom * log_inverse_delta) + log_inverse_delta) / epsilon
    return safe_root(
        lambda ratio: raised_wishart_log_delta(epsilon, degrees_of_freedom, ratio) - target, start, safe="above"
    )


def raised_wishart_degrees(epsilon: float, delta: float, ratio: float) -> int:
    """Largest number of degrees of freedom for which the draw is shown to be (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    ratio : float
        As in :func:`raised_wishart_delta`.

    Returns
    -------
    int
        On the safe side, rechecked by evaluating :func:`raised_wishart_delta` there; 0 where not even one is.

    Examples
    --------
    >>> raised_wishart_degrees(1.0, 1e-6, 30.0), raised_wishart_degrees(1.0, 1e-6, 1.0)
    (50, 0)
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR

    def excess(degrees: float) -> float:
        return raised_wishart_log_delta(epsilon, max(degrees, 1.0), ratio) - target

    if excess(1.0) > 0.0:
        return 0
    start = max(1.0, (epsilon * ratio) ** 2 / (2.0 * (epsilon - math.log(delta))))
    degrees = math.floor(safe_root(excess, start, safe="below")) + 1
    while degrees > 1 and excess(degrees) > 0.0:
        degrees -= 1
    return degrees
