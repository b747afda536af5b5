"""From Rényi divergences, which add up under composition, to (epsilon, delta); and the group path to a
replacement."""

import math
from collections.abc import Sequence

from dpmoments.privacy.curves.arguments import require_delta, require_nonnegative, require_positive

__all__ = ["renyi_delta", "renyi_epsilon", "replacement_step"]

_UNIT = 2.0**-52


def _check(orders: Sequence[float], divergences: Sequence[float]) -> None:
    if len(orders) != len(divergences) or len(orders) == 0:
        raise ValueError(
            f"got {len(orders)} orders and {len(divergences)} divergences: give one divergence for every order"
        )
    for order, divergence in zip(orders, divergences, strict=True):
        if not 1.0 < order < math.inf:
            raise ValueError(f"the orders of Rényi divergences must be finite and above 1; got {order!r}")
        if not divergence >= 0.0:
            raise ValueError(f"Rényi divergences must not be negative; got {divergence!r}")


def renyi_delta(orders: Sequence[float], divergences: Sequence[float], epsilon: float) -> float:
    r"""Smallest delta implied by bounds on the Rényi divergences of both directions.

    .. math:: \delta = \min_\alpha \frac{e^{(\alpha-1)(D_\alpha-\varepsilon)}}{\alpha-1}
              \Bigl(1-\frac1\alpha\Bigr)^\alpha

    Parameters
    ----------
    orders : sequence of float
        Each above 1.
    divergences : sequence of float
        A bound for every order; of a composition, the sum over its parts. May be infinite.
    epsilon : float
        Non-negative.

    Returns
    -------
    float
        Rounded up; 1 where the divergences say nothing.

    References
    ----------
    Canonne, Kamath & Steinke (2020), Proposition 12.

    Examples
    --------
    >>> renyi_delta([2.0, 9.0], [1.0, 4.5], 9.0) < 1.1e-17
    True
    """
    _check(orders, divergences)
    epsilon = require_nonnegative("epsilon", epsilon)
    least = 0.0
    for order, divergence in zip(orders, divergences, strict=True):
        if math.isinf(divergence):
            continue
        b = order - 1.0
        terms = (b * divergence, -b * epsilon, -b * math.log1p(1.0 / b), -math.log1p(b))
        bound = math.fsum(terms) + 8.0 * _UNIT * math.fsum(abs(term) for term in terms)
        least = min(least, bound)
    return min(math.exp(least) * (1.0 + 4.0 * _UNIT), 1.0)


def renyi_epsilon(orders: Sequence[float], divergences: Sequence[float], delta: float) -> float:
    """Smallest epsilon implied by bounds on the Rényi divergences of both directions.

    Parameters
    ----------
    orders : sequence of float
        Each above 1.
    divergences : sequence of float
        A bound for every order. May be infinite.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        On the safe side, rechecked by :func:`renyi_delta`; infinite if every divergence is.

    Examples
    --------
    >>> orders = [1.5, 2.0, 4.0, 8.0, 16.0]
    >>> round(renyi_epsilon(orders, [0.5 * order for order in orders], 1e-6), 3)
    5.543
    """
    _check(orders, divergences)
    delta = require_delta(delta)
    least = math.inf
    for order, divergence in zip(orders, divergences, strict=True):
        b = order - 1.0
        least = min(least, divergence - (math.log(delta) + math.log1p(b)) / b - math.log1p(1.0 / b))
    if math.isinf(least):
        return math.inf
    epsilon = max(least, 0.0)
    step = 8.0 * _UNIT * max(epsilon, 1e-3)
    while renyi_delta(orders, divergences, epsilon) > delta:
        epsilon += step
        step *= 2.0
    return epsilon


def replacement_step(epsilon: float, delta: float) -> tuple[float, float]:
    """The add-remove guarantee that gives (epsilon, delta) for the replacement of one row.

    A replacement is a removal and an addition. If each is (e, t)-indistinguishable, then together they are
    (2 e, t (1 + exp(e)))-indistinguishable: so e is epsilon/2 and t is delta / (1 + exp(epsilon/2)). Sound
    for every mechanism, and far from sharp: for the mechanisms here that have an exact law for replacements,
    use that.

    Parameters
    ----------
    epsilon : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    tuple of two floats
        Epsilon and delta of one step, rounded down.

    Examples
    --------
    >>> epsilon, delta = replacement_step(1.0, 1e-6)
    >>> epsilon, round(delta * 1e7, 3)
    (0.5, 3.775)
    """
    half = 0.5 * require_positive("epsilon", epsilon)
    # 1 / (1 + exp(half)) without overflow.
    share = math.exp(-half) / (1.0 + math.exp(-half))
    return half, require_delta(delta) * share * (1.0 - 4.0 * _UNIT)
