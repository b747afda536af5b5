r"""The exact privacy curve of drawing a Wishart matrix whose scale is the padded Gram matrix.

Releasing ``Wishart_d(G + w^2 I, r)`` (Sheffet's Johnson-Lindenstrauss projection and, with the inverse taken,
his inverse-Wishart draw) is releasing r normal vectors of covariance ``G + w^2 I``. Let ``q = B^2 / w^2``,
``k = q / (2 (1 + q))``. Between tables that differ by one row x of norm at most B,

* with or without x (add-remove), the worst pair is r normal numbers of variance ``1 + q`` against variance 1;
* with x replaced by y (replace-one, two features or more), the worst pair is the product of that pair with the
  same pair in reverse order. Given one of two rotated coordinates the other is a *Gaussian mechanism*: delta
  is the Gaussian curve at ``mu = q sqrt(2 V / (1 + q))``, averaged over V, a gamma variable of shape r/2.

Every other pair is a post-processing of these; ``docs/derivations/johnson_lindenstrauss.md`` has the proofs.
"""

import math
from itertools import pairwise

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.quadrature import log_gamma_density, log_integral, log_integral_above
from dpmoments.privacy.curves.arguments import require_delta, require_nonnegative, require_positive
from dpmoments.privacy.curves.gaussian import log_delta_of_ratio
from dpmoments.privacy.curves.inversion import safe_root
from dpmoments.privacy.neighbors import Neighbors

__all__ = [
    "wishart_sampling_degrees",
    "wishart_sampling_delta",
    "wishart_sampling_log_delta",
    "wishart_sampling_padding",
]

RELATIVE_ERROR = 1e-9
"""Error of delta that every inversion allows for; tests find it below 1e-10 (against 40-digit arithmetic)."""


KNEES = (1.0, 6.0, 40.0)
"""1 - exp(-loss) rises from 0 within losses of about 1, after which it is flat: the integrals are cut here."""


def wishart_sampling_log_delta(
    epsilon: float, degrees_of_freedom: float, padding: float, neighbors: Neighbors | str
) -> float:
    """Return the natural logarithm of :func:`wishart_sampling_delta`.

    Examples
    --------
    >>> round(wishart_sampling_log_delta(1.0, 50, 200.0, "add_remove"), 3)
    -154.823
    """
    epsilon = require_nonnegative("epsilon", epsilon)
    degrees = require_positive("degrees_of_freedom", degrees_of_freedom)
    padding = require_positive("padding", padding)
    if degrees < 1.0:
        raise ValueError(f"degrees_of_freedom must be at least 1; got {degrees_of_freedom!r}")
    if Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        log_delta = _replaced(epsilon, degrees, padding)
    else:
        log_delta = max(_with_row(epsilon, degrees, padding), _without_row(epsilon, degrees, padding))
    return min(log_delta, 0.0)


def _with_row(epsilon: float, degrees: float, padding: float) -> float:
    """Log delta of the law with the row against the law without: the loss is large at large sums of squares."""
    slope = 0.5 / (1.0 + padding)  # k; the loss is k T - (r/2) log(1 + q), T the sum of squares
    threshold = (epsilon + 0.5 * degrees * math.log1p(1.0 / padding)) / slope
    unit = 2.0 * (1.0 + 1.0 / padding)  # T / unit is gamma of shape r/2

    def log_integrand(root: FloatArray) -> FloatArray:
        # T = threshold + root^2: no cancellation beside the threshold, and no singularity where that is near 0.
        beyond = root * root
        density: FloatArray = log_gamma_density((threshold + beyond) / unit, 0.5 * degrees) + np.log(2.0 * root / unit)
        return density + np.log(-np.expm1(-slope * beyond))

    knees = sorted([0.0, math.sqrt(threshold), *(math.sqrt(knee / slope) for knee in KNEES)])
    pieces = [log_integral(log_integrand, first, last) for first, last in pairwise(knees)]
    pieces.append(log_integral_above(log_integrand, knees[-1], math.sqrt(unit)))
    return _log_sum(pieces)


def _without_row(epsilon: float, degrees: float, padding: float) -> float:
    """Log delta of the law without the row against the law with it: the loss is large at small sums of squares."""
    slope = 0.5 / (1.0 + padding)
    threshold = (0.5 * degrees * math.log1p(1.0 / padding) - epsilon) / slope
    if threshold <= 0.0:
        return -math.inf

    def below(root: FloatArray) -> FloatArray:
        # T = root^2, which removes the singularity at 0 that few degrees of freedom bring.
        density: FloatArray = log_gamma_density(0.5 * root * root, 0.5 * degrees) + np.log(root)
        return density + np.log(-np.expm1(slope * (root * root - threshold)))

    def beside(root: FloatArray) -> FloatArray:
        # T = threshold - root^2, which cancels nothing beside the threshold.
        short = root * root
        density: FloatArray = log_gamma_density(0.5 * (threshold - short), 0.5 * degrees) + np.log(root)
        return density + np.log(-np.expm1(-slope * short))

    widths = [0.0, *(math.sqrt(min(knee / slope, 0.5 * threshold)) for knee in KNEES)]
    pieces = [log_integral(beside, first, last) for first, last in pairwise(widths) if first < last]
    return _log_sum([*pieces, log_integral(below, 0.0, math.sqrt(threshold - widths[-1] ** 2))])


def _log_sum(logarithms: list[float]) -> float:
    """Logarithm of a sum of numbers given by theirs."""
    largest = max(logarithms)
    return largest if largest == -math.inf else largest + math.log(math.fsum(math.exp(x - largest) for x in logarithms))


def _replaced(epsilon: float, degrees: float, padding: float) -> float:
    """Log delta of one row against another orthogonal to it: a normal of random scale."""
    factor = math.sqrt(2.0 / (padding * (1.0 + padding)))  # q sqrt(2 / (1 + q))

    def log_integrand(root: FloatArray) -> FloatArray:
        log_delta = log_delta_of_ratio(epsilon, factor * root)
        density: FloatArray = log_gamma_density(root * root, 0.5 * degrees) + np.log(2.0 * root) + log_delta
        return density

    return log_integral_above(log_integrand, 0.0, math.sqrt(degrees))


def wishart_sampling_delta(
    epsilon: float, degrees_of_freedom: float, padding: float, neighbors: Neighbors | str
) -> float:
    r"""Exact :math:`\delta(\varepsilon)` of drawing from Wishart(G + w² I, r), or from its inverse.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    degrees_of_freedom : float
        r (for the inverse Wishart law, ν); at least 1. Not necessarily an integer.
    padding : float
        :math:`w^2/B^2`: a public lower bound on the smallest eigenvalue of the scale matrix *without* the row
        in question, in units of the squared row norm.
    neighbors : Neighbors or str
        ``"add_remove"``, or ``"replace_one"`` (derived for two features or more; an upper bound for one).

    Returns
    -------
    float
        Attained where the other rows leave the directions of the rows in question empty, so that only the padding
        is there, and these rows have full norm.

    References
    ----------
    Sheffet (2015), "Private approximations of the 2nd-moment matrix using existing techniques in linear
    regression", Theorems 3.1 and 5.1, whose bounds it replaces;
    ``docs/derivations/johnson_lindenstrauss.md``.

    Examples
    --------
    >>> round(wishart_sampling_delta(1.0, 50, 26.86, "add_remove") * 1e6, 2)
    1.0
    >>> round(wishart_sampling_delta(1.0, 50, 31.60, "replace_one") * 1e6, 2)
    1.0
    """
    return math.exp(wishart_sampling_log_delta(epsilon, degrees_of_freedom, padding, neighbors))


def wishart_sampling_padding(
    epsilon: float, delta: float, degrees_of_freedom: float, neighbors: Neighbors | str
) -> float:
    """Smallest padding w²/B² at which the draw is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    degrees_of_freedom : float
        At least 1.
    neighbors : Neighbors or str

    Returns
    -------
    float
        On the safe side, rechecked by evaluating :func:`wishart_sampling_delta` there.

    Examples
    --------
    >>> round(wishart_sampling_padding(1.0, 1e-6, 50, "add_remove"), 2)
    26.86
    >>> round(wishart_sampling_padding(0.1, 1e-6, 50, "replace_one"), 2)
    270.45
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR
    neighbors = Neighbors.of(neighbors)

    def excess(padding: float) -> float:
        return wishart_sampling_log_delta(epsilon, degrees_of_freedom, padding, neighbors) - target

    # Nearly a Gaussian mechanism of noise-to-sensitivity ratio padding / sqrt(r / 2), with a heavier tail.
    log_inverse_delta = -math.log(delta)
    start = (math.sqrt(degrees_of_freedom * log_inverse_delta) + log_inverse_delta) / epsilon
    return safe_root(excess, start, safe="above")


def wishart_sampling_degrees(epsilon: float, delta: float, padding: float, neighbors: Neighbors | str) -> int:
    """Largest number of degrees of freedom for which the draw is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    padding : float
        As in :func:`wishart_sampling_delta`.
    neighbors : Neighbors or str

    Returns
    -------
    int
        On the safe side, rechecked by evaluating :func:`wishart_sampling_delta` there.

    Raises
    ------
    ValueError
        If even one degree of freedom is not private.

    Examples
    --------
    >>> wishart_sampling_degrees(1.0, 1e-6, 99.995, "add_remove")
    1000
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR
    neighbors = Neighbors.of(neighbors)

    def excess(degrees: float) -> float:
        return wishart_sampling_log_delta(epsilon, max(degrees, 1.0), padding, neighbors) - target

    if excess(1.0) > 0.0:
        raise ValueError(
            f"padding={padding!r} is too small for epsilon={epsilon!r}, delta={delta!r}: "
            "not even one degree of freedom is private; pad more"
        )
    log_inverse_delta = -math.log(delta)
    start = max(1.0, (epsilon * padding) ** 2 / (2.0 * (log_inverse_delta + epsilon)))
    degrees = math.floor(safe_root(excess, start, safe="below")) + 1
    while degrees > 1 and excess(degrees) > 0.0:
        degrees -= 1
    return degrees
