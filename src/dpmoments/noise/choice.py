"""One of finitely many things, with probabilities by their scores."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpmoments.noise.entropy import SecureGenerator

__all__ = ["choose_by_score"]


def choose_by_score(
    scores: npt.NDArray[np.float64] | npt.NDArray[np.int64], rate: float, generator: np.random.Generator
) -> int:
    """Draw an index i with probability ∝ exp(rate·scores[i]).

    Parameters
    ----------
    scores : ndarray of shape (m,)
    rate : float
    generator : numpy.random.Generator
        With a :class:`~dpmoments.noise.entropy.SecureGenerator` and integer scores the draw is OpenDP's, exact in rational
        arithmetic; else it is made in floating point by the Gumbel trick, in log space: no weight overflows.

    Returns
    -------
    int

    Examples
    --------
    >>> from dpmoments.noise.entropy import insecure_generator, secure_generator
    >>> scores = np.array([0, 1000, 3])
    >>> choose_by_score(scores, 1.0, secure_generator()), choose_by_score(scores, 1.0, insecure_generator(0))
    (1, 1)
    """
    if scores.dtype == object:
        raise TypeError("scores must be float64 or integers that fit in int64")
    if isinstance(generator, SecureGenerator) and np.issubdtype(scores.dtype, np.integer) and rate > 0.0:
        import opendp.prelude as opendp

        opendp.enable_features("contrib")
        space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.linf_distance(T="i64")
        # Gumbel noise of scale 1/rate, rounded up; the measure named decides between that and another noise.
        scale = math.nextafter(1.0 / rate, math.inf)
        chosen = opendp.m.make_noisy_max(*space, opendp.zero_concentrated_divergence(), scale=scale)
        return int(chosen(scores.tolist()))
    return int(np.argmax(rate * scores.astype(np.float64) + generator.gumbel(size=len(scores))))
