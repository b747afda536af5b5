"""The score test of "nothing but noise and sampling": the one reference law behind every test of a release."""

from __future__ import annotations

import math

import numpy as np
import scipy

from dpmoments.analysis.confidence import deviations_for
from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import NoiseLaw

__all__ = ["probability_in_words", "score_test"]

NEGLIGIBLE = 1e-10
"""Directions in which less than this share of the largest variance is left do not vary."""


def score_test(
    scores: FloatArray, privacy: FloatArray, sampling: FloatArray, degrees: int, law: NoiseLaw | None
) -> tuple[float, int, float]:
    """Sᵀ(V + W)⁺S for scores S that are normal with mean 0 and covariance V + W where there is nothing to find.

    Every direction counts by what noise and sampling together leave of it, so that a direction full of noise hides no other.

    Parameters
    ----------
    scores : ndarray of shape (k,)
        S.
    privacy, sampling : ndarray of shape (k, k)
        V and W.
    degrees : int
        Directions in which S can differ from 0; those of least variance beyond them are left out.
    law : NoiseLaw or None
        For tails heavier than normal ones, in the measure in which noise decides.

    Returns
    -------
    tuple
        χ², its degrees of freedom, and the p-value; NaN where the noise is not known.

    Examples
    --------
    >>> found = score_test(np.array([3.0, -3.0]), np.zeros((2, 2)), np.array([[1.0, -1.0], [-1.0, 1.0]]), 1, None)
    >>> round(found[0], 6), found[1]
    (9.0, 1)
    """
    if degrees < 1 or not len(scores):
        return 0.0, 0, 1.0
    if np.isnan(privacy).any():
        return math.nan, degrees, math.nan
    # each score in its own deviation, so that counts of a few rows do not vanish beside those of millions
    deviations = np.sqrt(np.maximum(np.diag(privacy + sampling), 0.0))
    own = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0.0)
    eigenvalues, vectors = np.linalg.eigh((privacy + sampling) * np.outer(own, own))
    kept = np.arange(len(scores)) >= len(scores) - degrees
    kept &= eigenvalues > NEGLIGIBLE * max(float(eigenvalues[-1]), 0.0)
    if not kept.any():
        return 0.0, 0, 1.0
    whitened = (vectors[:, kept] / np.sqrt(eigenvalues[kept])).T * own
    of_noise = float(np.einsum("ij,jk,ik->", whitened, privacy, whitened)) / int(kept.sum())
    of_noise = min(max(of_noise, 0.0), 1.0)
    value = float(np.sum((whitened @ scores) ** 2))
    heavy = float(deviations_for(0.95, law, np.array(of_noise), np.array(1.0 - of_noise)))
    normal = float(deviations_for(0.95, None, np.array(0.0), np.array(1.0)))
    return value, int(kept.sum()), float(scipy.stats.chi2.sf(value * (normal / heavy) ** 2, int(kept.sum())))


def probability_in_words(value: float) -> str:
    """A p-value as it is printed.

    Examples
    --------
    >>> probability_in_words(0.04321), probability_in_words(1e-9), probability_in_words(float("nan"))
    ('p = 0.0432', 'p < 0.0001', 'noise unknown')
    """
    if math.isnan(value):
        return "noise unknown"
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.4f}"
