"""Which Gaussian mechanism hides less than any ε-differentially private one: the conversion from pure to Gaussian privacy."""

import math

import scipy

from dpmoments.privacy.curves.arguments import require_nonnegative

__all__ = ["pure_to_gaussian"]

_RELATIVE_ERROR = 1e-12
_SMALL = 1.0
"""Below it the probability 1/(1 + e^ε) is near one half, and its normal quantile loses digits."""


def pure_to_gaussian(epsilon: float) -> float:
    r"""Smallest mu such that every epsilon-DP mechanism is mu-Gaussian differentially private.

    Parameters
    ----------
    epsilon : float
        Non-negative.

    Returns
    -------
    float
        Mu, rounded up.

    Notes
    -----
    It is :math:`\mu = -2\,\Phi^{-1}\bigl(1/(1 + e^{\varepsilon})\bigr)`. The trade-off curve of randomised response, which every
    :math:`\varepsilon`-DP pair of laws post-processes, is made of two straight lines with a corner at
    :math:`(a, a)`, :math:`a = 1/(1 + e^{\varepsilon})`. The curve of two normals, :math:`\Phi(\Phi^{-1}(1 - \alpha) - \mu)`, is
    convex with the same ends, so it lies below both lines exactly where it does not exceed :math:`a` at :math:`a`; there it is
    :math:`a` for this :math:`\mu`. So the constant is the best possible.

    References
    ----------
    Kairouz, Oh & Viswanath (2015) for randomised response; Dong, Roth & Su (2022), Section 2, for trade-off curves.

    Examples
    --------
    >>> round(pure_to_gaussian(1.0), 6)
    1.232035
    >>> round(pure_to_gaussian(1e-6) / 1e-6, 6)
    1.253314
    """
    epsilon = require_nonnegative("epsilon", epsilon)
    if epsilon == 0.0:
        return 0.0
    if epsilon < _SMALL:
        half = math.sqrt(2.0) * float(scipy.special.erfinv(math.tanh(0.5 * epsilon)))
    else:
        half = -float(scipy.special.ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon))))
    return 2.0 * half * (1.0 + _RELATIVE_ERROR)
