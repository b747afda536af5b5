"""Exact discrete Gaussian and discrete Laplace noise on the integers.

With a :class:`~dpmoments.noise.entropy.SecureGenerator` the draws are exact, from bits of the operating system
(:mod:`dpmoments.noise.rejection`; OpenDP's sampler below its smallest scale). With any other generator they are a seeded
stand-in for tests (a rounded normal, a difference of two geometrics), and the release is marked not private.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.noise.entropy import SecureGenerator
from dpmoments.noise.rejection import MIN_SCALE, gaussian_draws, laplace_draws

_MAX_SCALE = 2.0**52
"""Largest scale: beyond it a draw could overflow int64, so the lattice must be coarser."""


def discrete_gaussian(scale: float, size: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw integers k with probability ∝ exp(−k²/(2·scale²)), shape (size,).

    ``scale`` is in lattice units, at most ``_MAX_SCALE``, and used as the exact rational number that the float is. Added to an
    integer query of ℓ2 sensitivity Δ, the noise is Δ²/(2·scale²)-zCDP exactly (Canonne, Kamath & Steinke 2020, Theorem 4).
    """
    scale = _checked(scale)
    if isinstance(generator, SecureGenerator):
        if scale >= MIN_SCALE:
            return gaussian_draws(scale, size)
        domain, metrics, measurements = _opendp()
        return _draw(measurements.make_gaussian(domain, metrics.l2_distance(T="i64"), scale=scale), size)
    return np.rint(scale * generator.standard_normal(size)).astype(np.int64)


def discrete_laplace(scale: float, size: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw integers k with probability ∝ exp(−|k|/scale).

    Parameters and result as in :func:`discrete_gaussian`.

    Added to an integer query of ℓ1 sensitivity Δ, it is Δ/scale-DP exactly (Ghosh, Roughgarden & Sundararajan 2012).
    """
    scale = _checked(scale)
    if isinstance(generator, SecureGenerator):
        if scale >= MIN_SCALE:
            return laplace_draws(scale, size)
        domain, metrics, measurements = _opendp()
        return _draw(measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=scale), size)
    success = -math.expm1(-1.0 / scale)
    return generator.geometric(success, size) - generator.geometric(success, size)


def _draw(measurement: object, size: int) -> npt.NDArray[np.int64]:
    return np.array(measurement([0] * size), dtype=np.int64)  # type: ignore[operator]


def _opendp() -> tuple[Any, Any, Any]:
    """Return the domain of integer vectors, and OpenDP's metrics and measurements."""
    # Its prelude would load scikit-learn.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    return domains.vector_domain(domains.atom_domain(T="i64")), metrics, measurements


def _checked(scale: float) -> float:
    if not 0 < scale <= _MAX_SCALE:
        raise InputValueError(Message("not-between", parameter="scale", value=scale, least=0.0, most=_MAX_SCALE))
    return float(scale)


# One of finitely many things, with probabilities by their scores.


def choose_by_score(
    scores: npt.NDArray[np.float64] | npt.NDArray[np.int64], rate: float, generator: np.random.Generator
) -> int:
    """Draw an index i with probability ∝ exp(rate·scores[i]).

    With a :class:`~dpmoments.noise.entropy.SecureGenerator` and integer scores the draw is OpenDP's, exact in rational
    arithmetic; otherwise it is the floating-point Gumbel trick, in log space: no weight overflows.
    """
    if scores.dtype == object:
        raise AssertionError("scores must be float64 or integers that fit in int64")
    if isinstance(generator, SecureGenerator) and np.issubdtype(scores.dtype, np.integer) and rate > 0.0:
        from opendp.measures import zero_concentrated_divergence

        domain, metrics, measurements = _opendp()
        # Gumbel noise of scale 1/rate, rounded up; the measure named decides between that and another noise.
        scale = math.nextafter(1.0 / rate, math.inf)
        chosen = measurements.make_noisy_max(
            domain, metrics.linf_distance(T="i64"), zero_concentrated_divergence(), scale=scale
        )
        return int(chosen(scores.tolist()))
    return int(np.argmax(rate * scores.astype(np.float64) + generator.gumbel(size=len(scores))))
