"""Repairs of papers, loaded by the names of :class:`dpmoments.moments.Repair`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from dpmoments.base.values import FloatArray
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.repair import Repair, from_eigen
from dpmoments.moments.spectral import (
    SpectralNoise,
    pooled_spread,
    possible_eigenvalues,
    rotation_invariant_eigenvalues,
)

_SHIFT_FAILURE = 0.05
"""Failure probability of the noise bound of ``noise-shift``."""


def shift(gram: FloatArray) -> FloatArray:
    """Add the smallest multiple of the identity that leaves no negative eigenvalue.

    >>> shift(np.diag([3.0, -1.0]))
    array([[4., 0.],
           [0., 0.]])
    """
    smallest = float(np.linalg.eigvalsh(gram)[0])
    return gram if smallest >= 0 else gram - smallest * np.eye(len(gram))


def noise_shift(gram: FloatArray, noise: NoiseLaw) -> FloatArray:
    """Add c·I if an eigenvalue is negative; c bounds the noise (Sheffet 2015, section 6)."""
    # The bound on the spectral norm (`gram_bound`) holds with probability 95 %; c is what makes the smallest eigenvalue
    # zero, if that is more.
    smallest = float(np.linalg.eigvalsh(gram)[0])
    if smallest >= 0:
        return gram
    return gram + max(noise.gram_bound(_SHIFT_FAILURE), -smallest) * np.eye(len(gram))


def shrink(gram: FloatArray, noise: NoiseLaw, upper: float | None = None) -> FloatArray:
    """Shrink towards a multiple of the identity, then project onto possible eigenvalues."""
    # With m = tr(gram)/d, the result is m·I + (1 − ω)(gram − m·I), where ω is the share of ‖gram − m·I‖_F² that the
    # noise explains (Ledoit & Wolf 2004, with known noise energy).
    spectral = SpectralNoise.of(noise)
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    trace = max(float(np.trace(gram)), 0.0)
    largest = trace + 2.0 * math.sqrt(spectral.trace_variance)
    if upper is not None:
        trace, largest = min(trace, upper), min(largest, upper)
    deviations = eigenvalues - eigenvalues.mean()
    estimate = trace / len(gram) + pooled_spread(deviations, spectral, largest)
    return from_eigen(possible_eigenvalues(estimate, upper), eigenvectors)


def rotation_invariant(gram: FloatArray, noise: NoiseLaw, upper: float | None = None) -> FloatArray:
    """Replace eigenvalues by their expectation along the noisy eigenvectors, made possible."""
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    expected = rotation_invariant_eigenvalues(eigenvalues, SpectralNoise.of(noise))
    return from_eigen(possible_eigenvalues(expected, upper), eigenvectors)


REPAIRS: Mapping[Repair, Callable[[FloatArray, NoiseLaw, float | None], FloatArray]] = {
    Repair.SHIFT: lambda gram, noise, upper: shift(gram),  # noqa: ARG005
    Repair.NOISE_SHIFT: lambda gram, noise, upper: noise_shift(gram, noise),  # noqa: ARG005
    Repair.SHRINK: shrink,
    Repair.ROTATION_INVARIANT: rotation_invariant,
}
"""Function of the Gram matrix, the noise and a bound on the trace."""
