"""Exact privacy curves of Wishart draws.

Releasing ``Wishart_d(G + w^2 I, r)`` (Sheffet's Johnson-Lindenstrauss projection and, with the inverse taken, his
inverse-Wishart draw) is releasing r normal vectors of covariance ``G + w^2 I``. Let ``q = B^2 / w^2``, ``k = q / (2 (1
+ q))``. Between tables that differ by one row x of norm at most B,

* with or without x (add-remove), the worst pair is r normal numbers of variance ``1 + q`` against variance 1;
* with x replaced by y (replace-one, two features or more), the worst pair is the product of that pair with the
  same pair in reverse order. Given one of two rotated coordinates the other is a *Gaussian mechanism*: delta
  is the Gaussian curve at ``mu = q sqrt(2 V / (1 + q))``, averaged over V, a gamma variable of shape r/2.

Every other pair is a post-processing of these; ``docs/evidence/derivations/johnson_lindenstrauss.md`` has the proofs.
They replace the bounds of Sheffet (2015), Theorems 3.1, 4.1 and 5.1. Inversions are on the safe side, and rechecked by
evaluating the curve.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import numpy as np
import scipy

from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.one_variable import (
    brent_root,
    log_gamma_density,
    log_integral,
    log_integral_above,
    log_or_minus_infinity,
    stirling_error,
)
from dpmoments.base.values import FloatArray
from dpmoments.privacy.curves import log_delta_of_ratio, require_delta, require_nonnegative, require_positive, safe_root
from dpmoments.privacy.unit import Neighbors

_RELATIVE_ERROR = 1e-9
"""Error of delta that inversions allow for; tests find 1e-10 against 40 digits."""


_KNEES = (1.0, 6.0, 40.0)
"""Losses at which integrals are split: 1 − exp(−loss) rises up to about 1, then is flat."""


def wishart_sampling_log_delta(
    epsilon: float, degrees_of_freedom: float, padding: float, neighbors: Neighbors | str
) -> float:
    """Return the natural logarithm of :func:`wishart_sampling_delta`."""
    epsilon = require_nonnegative("epsilon", epsilon)
    degrees = require_positive("degrees_of_freedom", degrees_of_freedom)
    padding = require_positive("padding", padding)
    if degrees < 1.0:
        raise out_of_range("degrees_of_freedom", degrees_of_freedom, "at least 1")
    if Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        log_delta = _replaced(epsilon, degrees, padding)
    else:
        log_delta = max(_with_row(epsilon, degrees, padding), _without_row(epsilon, degrees, padding))
    return min(log_delta, 0.0)


@lru_cache(maxsize=1024)
def _with_row(epsilon: float, degrees: float, padding: float) -> float:
    """Return log delta with the row against without it."""
    # The loss is large at large sums of squares.
    slope = 0.5 / (1.0 + padding)  # k; the loss is k T - (r/2) log(1 + q), T the sum of squares
    threshold = (epsilon + 0.5 * degrees * math.log1p(1.0 / padding)) / slope
    unit = 2.0 * (1.0 + 1.0 / padding)  # T / unit is gamma of shape r/2

    def log_integrand(root: FloatArray) -> FloatArray:
        # T = threshold + root^2: no cancellation beside the threshold, and no singularity where that is near 0.
        beyond = root * root
        density: FloatArray = log_gamma_density((threshold + beyond) / unit, 0.5 * degrees) + np.log(2.0 * root / unit)
        return density + np.log(-np.expm1(-slope * beyond))

    knees = sorted([0.0, math.sqrt(threshold), *(math.sqrt(knee / slope) for knee in _KNEES)])
    pieces = [log_integral(log_integrand, first, last) for first, last in pairwise(knees)]
    pieces.append(log_integral_above(log_integrand, knees[-1], math.sqrt(unit)))
    return _log_sum(pieces)


@lru_cache(maxsize=1024)
def _without_row(epsilon: float, degrees: float, padding: float) -> float:
    """Return log delta without the row against with it."""
    # The loss is large at small sums of squares.
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

    widths = [0.0, *(math.sqrt(min(knee / slope, 0.5 * threshold)) for knee in _KNEES)]
    pieces = [log_integral(beside, first, last) for first, last in pairwise(widths) if first < last]
    return _log_sum([*pieces, log_integral(below, 0.0, math.sqrt(threshold - widths[-1] ** 2))])


def _log_sum(logarithms: list[float]) -> float:
    """Return the logarithm of a sum of numbers given by their logarithms."""
    largest = max(logarithms)
    return largest if largest == -math.inf else largest + math.log(math.fsum(math.exp(x - largest) for x in logarithms))


@lru_cache(maxsize=1024)
def _replaced(epsilon: float, degrees: float, padding: float) -> float:
    """Return log delta of one row against another orthogonal to it: a normal of random scale."""
    factor = math.sqrt(2.0 / (padding * (1.0 + padding)))  # q sqrt(2 / (1 + q))

    def log_integrand(root: FloatArray) -> FloatArray:
        log_delta = log_delta_of_ratio(epsilon, factor * root)
        return np.asarray(log_gamma_density(root * root, 0.5 * degrees) + np.log(2.0 * root) + log_delta)

    return log_integral_above(log_integrand, 0.0, math.sqrt(degrees))


def wishart_sampling_delta(
    epsilon: float, degrees_of_freedom: float, padding: float, neighbors: Neighbors | str
) -> float:
    """Return the exact δ(ε) of drawing from Wishart(G + w² I, r), or from its inverse.

    ``degrees_of_freedom`` is r (ν of the inverse), at least 1, and ``padding`` is w²/B²: a public lower bound on the
    smallest eigenvalue *without* the row in question. Under ``replace_one`` it is an upper bound for one feature.
    Attained by rows of full norm in directions that the other rows leave empty.
    """
    return math.exp(wishart_sampling_log_delta(epsilon, degrees_of_freedom, padding, neighbors))


def wishart_sampling_padding(
    epsilon: float, delta: float, degrees_of_freedom: float, neighbors: Neighbors | str
) -> float:
    """Return the smallest padding w²/B² at which the draw is (epsilon, delta)-DP."""
    epsilon = require_positive("epsilon", epsilon)
    excess = _excess(lambda padding: wishart_sampling_log_delta(epsilon, degrees_of_freedom, padding, neighbors), delta)
    # Nearly a Gaussian mechanism of noise-to-sensitivity ratio padding / sqrt(r / 2), with a heavier tail.
    log_inverse_delta = -math.log(delta)
    start = (math.sqrt(degrees_of_freedom * log_inverse_delta) + log_inverse_delta) / epsilon
    return safe_root(excess, start, safe="above")


def wishart_sampling_degrees(epsilon: float, delta: float, padding: float, neighbors: Neighbors | str) -> int:
    """Return the most degrees of freedom for which the draw is (epsilon, delta)-DP."""
    epsilon = require_positive("epsilon", epsilon)
    excess = _excess(lambda degrees: wishart_sampling_log_delta(epsilon, max(degrees, 1.0), padding, neighbors), delta)
    if excess(1.0) > 0.0:
        raise InputValueError(
            f"padding={shown(padding)} is too small for epsilon={shown(epsilon)}, delta={shown(delta)}: not "
            "even one degree of freedom is private; pad more"
        )
    log_inverse_delta = -math.log(delta)
    start = max(1.0, (epsilon * padding) ** 2 / (2.0 * (log_inverse_delta + epsilon)))
    return _most_degrees(excess, start)


def _excess(log_delta: Callable[[float], float], delta: float) -> Callable[[float], float]:
    """Return the logarithm of δ beyond the wanted one, as a function of the parameter sought."""
    target = math.log(require_delta(delta)) - _RELATIVE_ERROR
    return lambda parameter: log_delta(parameter) - target


def _most_degrees(excess: Callable[[float], float], start: float) -> int:
    degrees = math.floor(safe_root(excess, start, safe="below")) + 1
    while degrees > 1 and excess(degrees) > 0.0:
        degrees -= 1
    return degrees


# The exact privacy curve of adding a Wishart matrix to the Gram matrix.


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


def additive_wishart_log_delta(
    epsilon: float, excess_degrees: float, scale: float, neighbors: Neighbors | str
) -> float:
    """Return the natural logarithm of :func:`additive_wishart_delta`."""
    epsilon = require_nonnegative("epsilon", epsilon)
    m = require_positive("excess_degrees", excess_degrees)
    if m < 1.0:
        raise out_of_range("excess_degrees", excess_degrees, "at least 1")
    a = 1.0 / require_positive("scale", scale)
    candidates = [_without_row_of_additive_wishart(epsilon, m, a), _with_row_of_additive_wishart(epsilon, m, a)]
    if Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        candidates.append(_replaced_of_additive_wishart(epsilon, m, a))
    return min(max(candidates), 0.0)


def _log_chi_square_density(x: FloatArray, degrees: float) -> FloatArray:
    return log_gamma_density(0.5 * x, 0.5 * degrees) - math.log(2.0)


@lru_cache(maxsize=1024)
def _without_row_of_additive_wishart(epsilon: float, m: float, a: float) -> float:
    """Return log delta of chi^2_{m+1} against chi^2_{m+1} + a: the loss is infinite below a."""

    def log_certain(root: FloatArray) -> FloatArray:
        return np.asarray(_log_chi_square_density(root * root, m + 1.0) + np.log(2.0 * root))

    certain = log_integral(log_certain, 0.0, math.sqrt(a))
    if m == 1.0:
        return certain
    exponent = (2.0 * epsilon + a) / (m - 1.0)
    beyond = a / math.expm1(exponent) if exponent < 700.0 else 0.0  # the loss exceeds epsilon up to a + beyond
    if beyond < 1e-300:
        return certain

    def log_uncertain(root: FloatArray) -> FloatArray:
        x, gap = a + root * root, beyond - root * root
        # e^(epsilon - loss) = (1 - a gap / (x beyond))^((m-1)/2): nothing cancels near the threshold.
        ratio = np.minimum(a * gap / (x * beyond), 1.0 - 1e-16)  # below 1 but for rounding
        excess = 0.5 * (m - 1.0) * np.log1p(-ratio)
        gain = log_or_minus_infinity(-np.expm1(excess))
        return np.asarray(_log_chi_square_density(x, m + 1.0) + np.log(2.0 * root) + gain)

    return float(np.logaddexp(certain, log_integral(log_uncertain, 0.0, math.sqrt(beyond))))


@lru_cache(maxsize=1024)
def _with_row_of_additive_wishart(epsilon: float, m: float, a: float) -> float:
    """Return log delta of chi^2_{m+1} + a against chi^2_{m+1}: the loss is below a/2, and rises."""
    if a <= 2.0 * epsilon:
        return -math.inf
    if m == 1.0:
        return math.log(-math.expm1(epsilon - 0.5 * a))
    exponent = (a - 2.0 * epsilon) / (m - 1.0)
    if exponent > 1.0:
        # The noise is small compared with the row: delta is large, and a plain difference loses no digits.
        threshold = a * math.exp(-exponent) / -math.expm1(-exponent)
        own, other = scipy.special.gammaincc(0.5 * (m + 1.0), 0.5 * np.array([threshold, threshold + a])).tolist()
        difference = own - (math.exp(epsilon + math.log(other)) if other > 0.0 else 0.0)
        return math.log(difference) if difference > 0.0 else -math.inf
    threshold = a / math.expm1(exponent)

    def log_integrand(root: FloatArray) -> FloatArray:
        gap = root * root
        x = threshold + gap
        # As above: e^(epsilon - loss) = (1 - a gap / (x (threshold + a)))^((m-1)/2).
        excess = 0.5 * (m - 1.0) * np.log1p(-a * gap / (x * (threshold + a)))
        gain = log_or_minus_infinity(-np.expm1(excess))
        return np.asarray(_log_chi_square_density(x, m + 1.0) + np.log(2.0 * root) + gain)

    return log_integral_above(log_integrand, 0.0, math.sqrt(m))


@lru_cache(maxsize=1024)
def _replaced_of_additive_wishart(epsilon: float, m: float, a: float) -> float:
    """Return log δ of the orthogonal replacement."""
    # It is a symmetric beta shifted by a/p, averaged over p.
    n = m + 2.0
    # The density of p is p^(n-1) K_0(p) / (2^(n-2) Gamma(n/2)^2): nearly a gamma density of shape n - 1/2.
    constant = (
        (n - 1.0) * math.log1p(-0.5 / n)
        + math.log(2.0)
        + 0.5
        - 0.5 * math.log(2.0 * math.pi)
        + stirling_error(n - 0.5)
        - 2.0 * stirling_error(0.5 * n)
    )

    def log_density(p: FloatArray) -> FloatArray:
        return np.asarray(log_gamma_density(p, n - 0.5) + 0.5 * np.log(p) + np.log(scipy.special.k0e(p)) + constant)

    def log_certain(root: FloatArray) -> FloatArray:
        # Substituting p = root^4 removes the logarithmic singularity of K_0 at 0.
        return np.asarray(log_density(root**4) + np.log(4.0 * root**3))

    def log_uncertain(root: FloatArray) -> FloatArray:
        p = 0.5 * a + root * root
        return np.asarray(log_density(p) + np.log(2.0 * root) + _log_correlation_delta(epsilon, m, a / p))

    # Below p = a/2 the supports of the two distributions are disjoint.
    certain = log_integral(log_certain, 0.0, (0.5 * a) ** 0.25)
    return float(np.logaddexp(certain, log_integral_above(log_uncertain, 0.0, math.sqrt(n))))


def _log_correlation_delta(epsilon: float, m: float, shift: FloatArray) -> FloatArray:
    """Return log delta of two densities ∝ ``(1 - c^2)^((m-1)/2)`` with centers ``shift`` apart."""
    power = 0.5 * (m - 1.0)
    h = np.minimum(shift, 2.0)
    certain: FloatArray = scipy.special.betainc(power + 1.0, power + 1.0, 0.5 * h)  # where the other density is 0
    if power == 0.0:
        return log_or_minus_infinity(certain)
    t = math.tanh(0.5 * epsilon / power)
    root = np.sqrt(h * h + 4.0 * t * t * (1.0 - 0.25 * h * h))
    threshold = 2.0 * t * (1.0 - 0.25 * h * h) / np.maximum(h + root, 1e-300) - 0.5 * h
    # Elsewhere the loss exceeds epsilon for c from the threshold to 1 - h. With c = 1 - h - v^2 both densities
    # are smooth in v. Beyond |c| = last the density is below exp(-45) of its peak in the range.
    peak = np.maximum(threshold, 0.0)
    last = np.sqrt(-math.expm1(-45.0 / power) + peak * peak * math.exp(-45.0 / power))
    low = np.sqrt(np.maximum(1.0 - h - last, 0.0))
    width = np.maximum(np.sqrt(np.maximum(1.0 - h - threshold, 0.0)) - low, 0.0)
    v = low[:, None] + width[:, None] * _NODES
    c = (1.0 - h)[:, None] - v * v
    other = np.maximum(v * v * (2.0 - v * v), 1e-300)  # 1 - (c + h)^2
    loss = power * np.log1p(np.maximum(h[:, None] * (2.0 * c + h[:, None]) / other, 0.0))
    x = power + 1.0
    log_norm = x * math.log1p(0.5 / x) + 0.5 * math.log(x) - 0.5 + stirling_error(x + 0.5) - stirling_error(x)
    small = np.abs(c) < 0.5
    log_own = np.where(small, np.log1p(-np.where(small, c * c, 0.0)), np.log(np.maximum((1.0 - c) * (1.0 + c), 1e-300)))
    log_law = power * log_own + (log_norm - 0.5 * math.log(math.pi))
    values = np.exp(log_law) * -np.expm1(np.minimum(epsilon - loss, 0.0))
    uncertain = width * np.sum(_WEIGHTS * values * 2.0 * v, axis=1)
    return log_or_minus_infinity(np.minimum(certain + uncertain, 1.0))


def additive_wishart_delta(epsilon: float, excess_degrees: float, scale: float, neighbors: Neighbors | str) -> float:
    """Return the exact δ(ε) of adding a Wishart matrix of scale s² I, k degrees of freedom.

    ``excess_degrees`` is k − d, at least 1, and ``scale`` s²/B². Attained by a full-norm row, or by its replacement by
    an orthogonal one (with few degrees of freedom by a zero row). If G + W less the row is not positive definite, the
    two tables are distinguished with certainty, and the Rényi divergence of every order is infinite
    (``docs/evidence/derivations/additive_wishart.md``).
    """
    return math.exp(additive_wishart_log_delta(epsilon, excess_degrees, scale, neighbors))


def additive_wishart_degrees(epsilon: float, delta: float, scale: float, neighbors: Neighbors | str) -> int:
    """Return the smallest excess k − d of degrees of freedom at which the noise is (ε, δ)-DP."""
    epsilon = require_positive("epsilon", epsilon)
    a = 1.0 / require_positive("scale", scale)
    excess = _excess(lambda m: additive_wishart_log_delta(epsilon, max(m, 1.0), scale, neighbors), delta)
    if excess(1.0) <= 0.0:
        return 1
    # The Gaussian limit, m = (a / mu)^2 / 2 with epsilon = mu sqrt(2 log(1/delta)), plus a term for the heavier tail.
    log_inverse_delta = -math.log(delta)
    start = a * a * (log_inverse_delta + epsilon) / epsilon**2 + a * log_inverse_delta / epsilon + 1.0
    m = max(math.ceil(safe_root(excess, start, safe="above")) - 1, 1)
    while excess(m) > 0.0:
        m += 1
    return m


def additive_wishart_scale(epsilon: float, delta: float, excess_degrees: float, neighbors: Neighbors | str) -> float:
    """Return the smallest noise scale s²/B² at which the noise is (epsilon, delta)-DP.

    As k grows, ``scale * sqrt(2 * excess_degrees)`` tends to the noise scale of the Gaussian mechanism, from above.
    """
    epsilon = require_positive("epsilon", epsilon)
    excess = _excess(lambda scale: additive_wishart_log_delta(epsilon, excess_degrees, scale, neighbors), delta)
    start = math.sqrt((epsilon - math.log(delta)) / require_positive("excess_degrees", excess_degrees)) / epsilon
    return safe_root(excess, start, safe="above")


# A privacy bound for drawing a Wishart matrix around a Gram matrix whose small eigenvalues were raised.


def raised_wishart_log_delta(epsilon: float, degrees_of_freedom: float, ratio: float) -> float:
    """Return the natural logarithm of :func:`raised_wishart_delta`."""
    epsilon = require_nonnegative("epsilon", epsilon)
    degrees = require_positive("degrees_of_freedom", degrees_of_freedom)
    ratio = require_positive("ratio", ratio)
    if degrees < 1.0:
        raise out_of_range("degrees_of_freedom", degrees_of_freedom, "at least 1")
    kappa, half = 1.0 / ratio, 0.5 * degrees
    highest = ratio * (1.0 - 2.0**-30)
    if highest <= 1.0:
        return 0.0  # there is no order of 2 or more whose divergence is finite

    def slope(beta: float) -> float:
        """Return the derivative of the exponent, increasing in the order less 1."""
        within = 1.0 - beta * kappa
        return half * (beta * kappa * kappa / within - _log1p_beyond(kappa)) - epsilon - math.log1p(1.0 / beta)

    # Any order gives a bound: the best need not be met exactly.
    if slope(1.0) >= 0.0:
        beta = 1.0
    elif slope(highest) <= 0.0:
        beta = highest
    else:
        beta = brent_root(slope, 1.0, highest, xtol=1e-12, rtol=1e-12)
    # beta times the divergence; the parts linear in kappa cancel and are left out.
    divergence = -half * (beta * _log1p_beyond(kappa) + _log1p_beyond(-beta * kappa))
    return min(divergence - beta * epsilon - math.log1p(beta) - beta * math.log1p(1.0 / beta), 0.0)


def _log1p_beyond(x: float) -> float:
    """Return log(1 + x) − x, without cancellation."""
    if abs(x) > 0.01:
        return math.log1p(x) - x
    return -x * x * math.fsum((-x) ** k / (k + 2.0) for k in range(9))


def raised_wishart_delta(epsilon: float, degrees_of_freedom: float, ratio: float) -> float:
    """Return an upper bound on the δ(ε) of drawing from Wishart(f(G) + pI, r), or its inverse.

    ``ratio`` is ψ/F, the smallest possible eigenvalue of f(G) + pI over the Frobenius sensitivity of G. With κ = F/ψ
    the bound is the least e^{β(D − ε)} β^β (1 + β)^{−(1+β)} over 1 ≤ β < ψ/F, D = −(r/2)·[log(1 + κ) + log(1 − βκ)/β]
    the Rényi divergence of order 1 + β (Canonne, Kamath & Steinke 2020, Proposition 12). Not attained: it needs a ratio
    5 to 12 % above the one by the exact curve.
    """
    return math.exp(raised_wishart_log_delta(epsilon, degrees_of_freedom, ratio))


def raised_wishart_ratio(epsilon: float, delta: float, degrees_of_freedom: float) -> float:
    """Return the smallest ψ/F at which the draw is proven (epsilon, delta)-DP."""
    epsilon = require_positive("epsilon", epsilon)
    excess = _excess(lambda ratio: raised_wishart_log_delta(epsilon, degrees_of_freedom, ratio), delta)
    log_inverse_delta = -math.log(delta)
    start = 1.0 + (math.sqrt(degrees_of_freedom * log_inverse_delta) + log_inverse_delta) / epsilon
    return safe_root(excess, start, safe="above")


def raised_wishart_degrees(epsilon: float, delta: float, ratio: float) -> int:
    """Return the most degrees of freedom for which the draw is proven (ε, δ)-DP; 0 if none is."""
    epsilon = require_positive("epsilon", epsilon)
    excess = _excess(lambda degrees: raised_wishart_log_delta(epsilon, max(degrees, 1.0), ratio), delta)
    if excess(1.0) > 0.0:
        return 0
    start = max(1.0, (epsilon * ratio) ** 2 / (2.0 * (epsilon - math.log(delta))))
    return _most_degrees(excess, start)
