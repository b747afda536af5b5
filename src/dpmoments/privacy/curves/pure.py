r"""Privacy curves of pure mechanisms: how little their δ is at an ε below their own.

A pure mechanism of loss t is (t, 0)-private, and (ε, δ)-private with a δ > 0 for ε < t too. How small that δ is depends on
what is known of the mechanism:

* nothing more: :func:`randomised_response_delta`;
* its noise is added, and its log density moves by no more than the distance of a shift in some norm:
  :func:`laplace_delta`, since every point on the way from one query to the other is a query too;
* discrete Laplace noise on integers: :func:`discrete_laplace_delta`, the same on a lattice;
* its log-ratios lie in an interval of length t, wherever that lies: :func:`bounded_range_delta`.

Each is the curve of a pair of laws, and so composes; ``docs/derivations/privacy-profile.md`` has the proofs. An ε below 0 is
accepted: composition asks for it.
"""

import math

__all__ = ["bounded_range_delta", "discrete_laplace_delta", "laplace_delta", "randomised_response_delta"]

_SLACK = 2.0**-50
"""Added to every δ above 0: more than the rounding of the few operations that make it."""


def _rounded_up(delta: float) -> float:
    return min(max(delta, 0.0) + _SLACK, 1.0)


def _beyond(epsilon: float, loss: float) -> float | None:
    """δ where ε is not within (−t, t), for all pure mechanisms of loss t; None within."""
    if epsilon >= loss:
        return 0.0
    return _rounded_up(-math.expm1(epsilon)) if epsilon <= -loss else None


def randomised_response_delta(epsilon: float, loss: float) -> float:
    r"""Least :math:`\delta(\varepsilon)` that every pure mechanism of a given loss keeps.

    .. math:: \delta = \frac{1 - e^{\varepsilon - t}}{1 + e^{-t}}

    Parameters
    ----------
    epsilon : float
    loss : float
        t, the ε of the mechanism; non-negative.

    Returns
    -------
    float
        Rounded up; 0 at ``epsilon >= loss``.

    References
    ----------
    Kairouz, Oh & Viswanath (2015), *The composition theorem for differential privacy*, Theorem 2.

    Examples
    --------
    >>> round(randomised_response_delta(0.0, 1.0), 6), randomised_response_delta(1.0, 1.0)
    (0.462117, 0.0)
    """
    if (certain := _beyond(epsilon, loss)) is not None:
        return certain
    return _rounded_up(-math.expm1(epsilon - loss) / (1.0 + math.exp(-loss)))


def laplace_delta(epsilon: float, loss: float) -> float:
    r"""Least :math:`\delta(\varepsilon)` of Laplace noise, and a bound for all noise that is Lipschitz in some norm.

    .. math:: \delta = 1 - e^{(\varepsilon - t)/2}

    Parameters
    ----------
    epsilon : float
    loss : float
        t: the sensitivity over the scale, non-negative.

    Returns
    -------
    float
        Rounded up; 0 at ``epsilon >= loss``.

    Examples
    --------
    >>> round(laplace_delta(0.0, 1.0), 6), laplace_delta(1.0, 1.0)
    (0.393469, 0.0)
    """
    if (certain := _beyond(epsilon, loss)) is not None:
        return certain
    return _rounded_up(-math.expm1(0.5 * (epsilon - loss)))


def discrete_laplace_delta(epsilon: float, shift: int, scale: float) -> float:
    r"""Least :math:`\delta(\varepsilon)` of discrete Laplace noise on an integer that moves by ``shift``.

    With :math:`r = e^{-1/b}`, the largest over integers j of :math:`1 - (r^{t+1-j} + e^{\varepsilon} r^j)/(1 + r)`. It bounds
    independent noise on several integers that move by ``shift`` in all.

    Parameters
    ----------
    epsilon : float
    shift : int
        t, at least 0.
    scale : float
        b, in the same units.

    Returns
    -------
    float
        Rounded up; 0 at ``epsilon >= shift/scale``.

    Examples
    --------
    >>> round(discrete_laplace_delta(0.0, 1, 1.0), 6), round(discrete_laplace_delta(0.0, 10**6, 1e6), 6)
    (0.462117, 0.393469)
    """
    if (certain := _beyond(epsilon, shift / scale)) is not None:
        return certain
    middle = math.floor(0.5 * (shift + 1 + epsilon * scale))
    missed = min(
        math.exp(-(shift + 1 - place) / scale) + math.exp(epsilon - place / scale)
        for place in {min(max(place, 1), shift) for place in (middle - 1, middle, middle + 1)}
    )
    return _rounded_up(1.0 - missed / (1.0 + math.exp(-1.0 / scale)))


def bounded_range_delta(epsilon: float, width: float) -> float:
    r"""Least :math:`\delta(\varepsilon)` that every mechanism keeps whose log-ratios range over an interval of a given length.

    .. math:: \delta = \frac{(1 - e^{(\varepsilon - \eta)/2})^2}{1 - e^{-\eta}}

    Parameters
    ----------
    epsilon : float
    width : float
        η: of the exponential mechanism ∝ exp(ε₀·score/2) with scores of sensitivity Δ, it is ε₀Δ.

    Returns
    -------
    float
        Rounded up; 0 at ``epsilon >= width``.

    References
    ----------
    Dong, Durfee & Rogers (2020), *Optimal differential privacy composition for exponential mechanisms*, section 3.

    Examples
    --------
    >>> round(bounded_range_delta(0.0, 1.0), 6), round(randomised_response_delta(0.0, 0.5), 6)
    (0.244919, 0.244919)
    """
    if (certain := _beyond(epsilon, width)) is not None:
        return certain
    return _rounded_up(math.expm1(0.5 * (epsilon - width)) ** 2 / -math.expm1(-width))
