r"""Privacy curve of several draws together, from the curves of each.

A privacy curve δ(ε), as a function of :math:`\gamma = e^\varepsilon`, is convex: it belongs to a pair of distributions (P, Q)
that represents the draw. Its chords over a grid of ε lie above it, and are the curve of a discrete pair with privacy losses on
the grid. Losses of draws add up, so their distributions are convolved; the resulting curve lies above the true one ("connecting
the dots", Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022; composition: Zhu, Dong & Wang 2022, Theorem 10).
``docs/evidence/derivations/privacy-profile.md`` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.base.arrays import FloatArray

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
        own, infinite = _masses(curve, step, last)
        masses = np.asarray(np.convolve(masses, own), dtype=np.float64)
        first, kept = first - last, kept * (1.0 - infinite)
    losses: FloatArray = step * np.arange(first, first + len(masses), dtype=np.float64)
    return ComposedCurve(losses, masses, max(1.0 - kept, 0.0))


def _masses(curve: PrivacyCurve, step: float, last: int) -> tuple[FloatArray, float]:
    """Return the probabilities of losses −last…last times ``step``, and of an infinite one."""
    # The curve is evaluated at the grid points ("connecting the dots").
    losses = step * np.arange(-last, last + 1)
    # Dots in γ, with (0, 1) before the first.
    gammas = np.concatenate([[0.0], np.exp(losses)])
    deltas = np.concatenate([[1.0], [curve.delta(float(loss)) for loss in losses]])
    kept = _convex(gammas, deltas)
    slopes = np.append(np.diff(deltas[kept]) / np.diff(gammas[kept]), 0.0)  # 0 after the last dot
    masses = np.zeros(len(gammas))
    # A second difference below 0 is rounding: with 0 in its place the curve lies higher.
    masses[kept[1:]] = np.maximum(np.diff(slopes), 0.0) * gammas[kept[1:]]
    return masses[1:], float(deltas[-1])


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


# r"""Privacy curves of pure mechanisms: how little their δ is at an ε below their own.

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
