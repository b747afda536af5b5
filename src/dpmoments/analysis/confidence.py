"""Levels of confidence, and intervals: how many standard deviations, and what a ratio of noisy sums can be."""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.law import NoiseLaw

__all__ = ["confidence_level", "deviations_for", "fieller_interval", "level_in_words"]


def confidence_level(level: float) -> float:
    """The level, if it is a confidence of 0.5 or more.

    Raises
    ------
    ValueError
        If it is below 0.5, as statsmodels' ``alpha`` is, or not below 1.

    Examples
    --------
    >>> confidence_level(0.05)
    Traceback (most recent call last):
    ...
    ValueError: level=0.05: level is a confidence such as 0.95; statsmodels' alpha is 1 − level
    """
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.5 <= level < 1.0:
        raise ValueError(f"level={level!r}: level is a confidence such as 0.95; statsmodels' alpha is 1 − level")
    return float(level)


def level_in_words(level: float) -> str:
    """As a head of a column.

    Examples
    --------
    >>> level_in_words(0.95), level_in_words(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100.0 * level:.6g} %"


def deviations_for(level: float, law: NoiseLaw | None, privacy: FloatArray, sampling: FloatArray) -> FloatArray:
    """Half the width of a two-sided interval, in standard deviations of noise and sampling together.

    The normal quantile z where sampling decides. Where one noisy cell does, that of the law: between them
    z + (q − z)·share², share the privacy noise's of the variance, as excess kurtosis adds up.

    Parameters
    ----------
    level : float
    law : NoiseLaw or None
    privacy, sampling : ndarray
        Variances.

    Examples
    --------
    >>> from dpmoments.noise import LaplaceNoise
    >>> law = LaplaceNoise(1, 2.0, 2.0, 2.0, 2.0)
    >>> deviations_for(0.95, law, np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0])).round(3)
    array([1.96 , 2.   , 2.118])
    """
    upper = (1.0 + level) / 2.0
    normal = float(scipy.special.ndtri(upper))
    if law is None:
        return np.full(np.shape(privacy), normal)
    total = privacy + sampling
    share = np.divide(privacy, total, out=np.zeros_like(total), where=total > 0.0)
    beyond = max(0.0, _standard_quantile(law, upper) - normal)
    return np.asarray(normal + beyond * share**2)


@lru_cache(maxsize=256)
def _standard_quantile(law: NoiseLaw, level: float) -> float:
    return law.standard_quantile(level, diagonal=False)


def fieller_interval(
    numerator: float, denominator: float, covariance: FloatArray, extra: float, deviations: float
) -> tuple[float, float]:
    """All θ with (a − θb)² ≤ q²(V_aa − 2θV_ab + θ²V_bb + extra): what a/b can be (Fieller 1954).

    Parameters
    ----------
    numerator, denominator : float
        a and b as observed.
    covariance : ndarray of shape (2, 2)
        Of their noise.
    extra : float
        What else varies in a − θb.
    deviations : float
        q.

    Returns
    -------
    tuple of float
        −∞ and ∞ where b is not distinguishable from 0.

    Examples
    --------
    >>> fieller_interval(20.0, 10.0, np.zeros((2, 2)), 25.0, 2.0)
    (1.0, 3.0)
    >>> fieller_interval(20.0, 10.0, np.diag([0.0, 100.0]), 25.0, 2.0)
    (-inf, inf)
    """
    square = deviations**2
    leading = denominator**2 - square * float(covariance[1, 1])
    middle = numerator * denominator - square * float(covariance[0, 1])
    rest = numerator**2 - square * (float(covariance[0, 0]) + extra)
    discriminant = middle**2 - leading * rest
    if not (leading > 0.0 and discriminant >= 0.0 and denominator > 0.0):
        return -math.inf, math.inf
    root = math.sqrt(discriminant)
    return (middle - root) / leading, (middle + root) / leading
