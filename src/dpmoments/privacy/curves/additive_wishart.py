r"""The exact privacy curve of adding a Wishart matrix to the Gram matrix.

Release ``G + W`` with ``W ~ Wishart_d(s^2 I, k)``, ``m = k - d >= 1``, and rows of norm at most B; ``a = B^2
/ s^2``. The density of W is log-concave, so the worst of the differences that one row can make is an extreme
point of their set:

* add-remove: a full-norm row x. Only ``1 / (x' W^-1 x)`` matters: a chi-square variable of m + 1 degrees of
  freedom, shifted by a;
* replace-one, two features or more: ``B^2 (u u' - v v')`` with u and v orthogonal unit vectors, or a full-norm
  row alone, as above. In the basis that puts the difference off the diagonal, and given the diagonal of the
  2 x 2 block, it shifts a correlation c with density proportional to ``(1 - c^2)^((m-1)/2)`` by ``a / p``,
  where p is the geometric mean of two chi-square variables of m + 2 degrees of freedom.

Proofs: ``docs/derivations/additive_wishart.md``.
"""

import math

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.quadrature import (
    log_gamma_density,
    log_integral,
    log_integral_above,
    log_or_minus_infinity,
    stirling_error,
)
from dpmoments.privacy.curves.arguments import require_delta, require_nonnegative, require_positive
from dpmoments.privacy.curves.inversion import safe_root
from dpmoments.privacy.neighbors import Neighbors

__all__ = [
    "additive_wishart_degrees",
    "additive_wishart_delta",
    "additive_wishart_log_delta",
    "additive_wishart_scale",
]

RELATIVE_ERROR = 1e-9
"""Error of delta that every inversion allows for; tests find it below 1e-10 (against 40-digit arithmetic)."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS


def additive_wishart_log_delta(
    epsilon: float, excess_degrees: float, scale: float, neighbors: Neighbors | str
) -> float:
    """Return the natural logarithm of :func:`additive_wishart_delta`.

    Examples
    --------
    >>> round(additive_wishart_log_delta(1.0, 200, 1.0, "add_remove"), 2)
    -50.22
    """
    epsilon = require_nonnegative("epsilon", epsilon)
    m = require_positive("excess_degrees", excess_degrees)
    if m < 1.0:
        raise ValueError(f"excess_degrees must be at least 1 (k > d); got {excess_degrees!r}")
    a = 1.0 / require_positive("scale", scale)
    candidates = [_without_row(epsilon, m, a), _with_row(epsilon, m, a)]
    if Neighbors.of(neighbors) is Neighbors.REPLACE_ONE:
        candidates.append(_replaced(epsilon, m, a))
    return min(max(candidates), 0.0)


def _log_chi_square_density(x: FloatArray, degrees: float) -> FloatArray:
    return log_gamma_density(0.5 * x, 0.5 * degrees) - math.log(2.0)


def _without_row(epsilon: float, m: float, a: float) -> float:
    """Log delta of chi^2_{m+1} against chi^2_{m+1} + a: the loss is large at small values, infinite below a."""

    def log_certain(root: FloatArray) -> FloatArray:
        density: FloatArray = _log_chi_square_density(root * root, m + 1.0) + np.log(2.0 * root)
        return density

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
        density: FloatArray = _log_chi_square_density(x, m + 1.0) + np.log(2.0 * root) + gain
        return density

    return float(np.logaddexp(certain, log_integral(log_uncertain, 0.0, math.sqrt(beyond))))


def _with_row(epsilon: float, m: float, a: float) -> float:
    """Log delta of chi^2_{m+1} + a against chi^2_{m+1}: the loss is large at large values, but below a/2."""
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
        density: FloatArray = _log_chi_square_density(x, m + 1.0) + np.log(2.0 * root) + gain
        return density

    return log_integral_above(log_integrand, 0.0, math.sqrt(m))


def _replaced(epsilon: float, m: float, a: float) -> float:
    """Log delta of the orthogonal replacement: a symmetric beta distribution shifted by a/p, averaged over p."""
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
        density: FloatArray = log_gamma_density(p, n - 0.5) + 0.5 * np.log(p) + np.log(scipy.special.k0e(p)) + constant
        return density

    def log_certain(root: FloatArray) -> FloatArray:
        # Substituting p = root^4 removes the logarithmic singularity of K_0 at 0.
        density: FloatArray = log_density(root**4) + np.log(4.0 * root**3)
        return density

    def log_uncertain(root: FloatArray) -> FloatArray:
        p = 0.5 * a + root * root
        density: FloatArray = log_density(p) + np.log(2.0 * root) + _log_correlation_delta(epsilon, m, a / p)
        return density

    # Below p = a/2 the supports of the two distributions are disjoint.
    certain = log_integral(log_certain, 0.0, (0.5 * a) ** 0.25)
    return float(np.logaddexp(certain, log_integral_above(log_uncertain, 0.0, math.sqrt(n))))


def _log_correlation_delta(epsilon: float, m: float, shift: FloatArray) -> FloatArray:
    """Log delta of two densities proportional to ``(1 - c^2)^((m-1)/2)`` whose centres are ``shift`` apart."""
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
    r"""Exact :math:`\delta(\varepsilon)` of adding a Wishart matrix of scale s² I and k degrees of freedom.

    Parameters
    ----------
    epsilon : float
        Non-negative.
    excess_degrees : float
        :math:`m = k - d`, at least 1.
    scale : float
        :math:`s^2/B^2`: the scale of the noise in units of the squared row norm.
    neighbors : Neighbors or str
        ``"add_remove"``, or ``"replace_one"`` (derived for two features or more; an upper bound for one).

    Returns
    -------
    float
        Attained by a full-norm row, or by the replacement of one full-norm row by another orthogonal to it.
        (With few degrees of freedom the replacement of a full-norm row by a zero row can be worse still; the
        larger value is returned.)

    Notes
    -----
    Where rows can be told apart with certainty — where ``G + W`` less the row is not positive definite — the
    loss is infinite, and so is the Rényi divergence of every order: this mechanism has no Rényi or zCDP
    guarantee.

    References
    ----------
    Sheffet (2015), Theorem 4.1, whose bound it replaces; ``docs/derivations/additive_wishart.md``.

    Examples
    --------
    >>> additive_wishart_delta(1.0, 42, 1.0, "add_remove") < 1e-6 < additive_wishart_delta(1.0, 41, 1.0, "add_remove")
    True
    """
    return math.exp(additive_wishart_log_delta(epsilon, excess_degrees, scale, neighbors))


def additive_wishart_degrees(epsilon: float, delta: float, scale: float, neighbors: Neighbors | str) -> int:
    """Smallest excess k − d of degrees of freedom at which the noise is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    scale : float
        s²/B², as in :func:`additive_wishart_delta`.
    neighbors : Neighbors or str

    Returns
    -------
    int
        Rounded to the safe side, and rechecked by evaluating :func:`additive_wishart_delta` there.

    Examples
    --------
    >>> additive_wishart_degrees(1.0, 1e-6, 1.0, "add_remove"), additive_wishart_degrees(0.5, 1e-6, 1.0, "add_remove")
    (42, 85)
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR
    a = 1.0 / require_positive("scale", scale)
    neighbors = Neighbors.of(neighbors)

    def excess(m: float) -> float:
        return additive_wishart_log_delta(epsilon, max(m, 1.0), scale, neighbors) - target

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
    """Smallest noise scale s²/B² at which the noise is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).
    excess_degrees : float
        k − d, at least 1.
    neighbors : Neighbors or str

    Returns
    -------
    float
        On the safe side, rechecked by evaluating :func:`additive_wishart_delta` there.

    Notes
    -----
    As k grows the noise tends to the symmetric Gaussian noise of the same guarantee, from above:
    ``scale * sqrt(2 * excess_degrees)`` tends to the noise scale of the Gaussian mechanism.

    Examples
    --------
    >>> round(additive_wishart_scale(1.0, 1e-6, 42, "add_remove"), 4)
    0.9964
    """
    epsilon = require_positive("epsilon", epsilon)
    target = math.log(require_delta(delta)) - RELATIVE_ERROR
    neighbors = Neighbors.of(neighbors)

    def excess(scale: float) -> float:
        return additive_wishart_log_delta(epsilon, excess_degrees, scale, neighbors) - target

    start = math.sqrt((epsilon - math.log(delta)) / require_positive("excess_degrees", excess_degrees)) / epsilon
    return safe_root(excess, start, safe="above")
