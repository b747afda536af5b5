"""Repairs: corrections of a noisy Gram matrix and mean to those of a possible table.

Post-processing: repairs read the noise distribution and no row, so they cost no privacy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from importlib import import_module

import numpy as np

from dpmoments.base.checks import check_one_of
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.possible import possible_moments
from dpmoments.moments.spectral import SpectralNoise, bulk_and_outlier_eigenvalues
from dpmoments.schema.constraints import Constraints


class Repair(StrEnum):
    """Method that turns noisy moments into those of a possible table.

    ``AUTO``, ``STRUCTURED``: possible means, counts and covariances near the noisy ones; what noise hides moves towards what is
    clear. ``SPECTRAL``, and these without a mean: pool eigenvalues below the noise floor and correct the others one by one.
    ``NONE``: no change.

    Of papers: ``CLIP`` (eigenvalues to [0, n]), ``SHIFT`` (add the smallest multiple of the identity that leaves no negative
    eigenvalue), ``NOISE_SHIFT`` (if one is negative, add cI, where c bounds the noise's spectral norm), ``SHRINK`` (towards a
    multiple of the identity by the share that the noise explains), ``ROTATION_INVARIANT`` (replace every eigenvalue by its
    expectation along its noisy eigenvector).

    Without a noise distribution ``AUTO`` moves only what is impossible, and every method that needs one becomes ``CLIP``.
    """

    AUTO = "auto"
    STRUCTURED = "structured"
    SPECTRAL = "spectral"
    NONE = "none"
    CLIP = "clip"
    SHIFT = "shift"
    NOISE_SHIFT = "noise-shift"
    SHRINK = "shrink"
    ROTATION_INVARIANT = "rotation-invariant"

    @classmethod
    def of(cls, value: Repair | str) -> Repair:
        """Return the repair named by ``value``, or raise ValueError."""
        check_one_of("repair", value, list(cls))
        return cls(value)


def exact_law(noise: NoiseLaw | None) -> NoiseLaw | None:
    """Return the drawn noise without rounding; None if it has conditions."""
    return None if noise is None or noise.caveats else replace(noise.drawn, rounding=None)


def repair_moments(
    count: int | None,
    noisy_sum: FloatArray | None,
    noisy_gram: FloatArray,
    noise: NoiseLaw | None,
    repair: Repair,
    constraints: Constraints,
    center: FloatArray | None = None,
) -> tuple[FloatArray | None, FloatArray]:
    """Repair mean and Gram matrix about ``center`` under constraints; ``count`` may be noisy."""
    upper = None if constraints.row_norm is None else count  # rows are in the unit ball
    if noisy_sum is None or count is None:
        return None, repair_gram(noisy_gram, noise, repair, upper)
    if repair is Repair.NONE:
        return noisy_sum / count, noisy_gram
    origin = np.zeros_like(noisy_sum) if center is None else center
    if repair in (Repair.AUTO, Repair.STRUCTURED):
        return possible_moments(count, noisy_sum, noisy_gram, noise, constraints, origin)
    mean = noisy_mean = noisy_sum / count
    if constraints.row_norm is not None:
        possible = np.clip(origin + mean, constraints.lower / constraints.units, constraints.upper / constraints.units)
        mean = possible / max(1.0, float(np.linalg.norm(possible))) - origin
    # About a center that the run estimated, the noise on the mean is not that on the spread: only the mean is moved.
    about = mean if center is None else noisy_mean
    noise = None if noise is None else noise.about(-mean)  # to first order, of Σ(x − μ)(x − μ)ᵀ
    spread = noisy_gram - count * np.outer(about, about)
    return mean, repair_gram(spread, noise, repair, upper) + count * np.outer(mean, mean)


def repair_gram(gram: FloatArray, noise: NoiseLaw | None, repair: Repair, upper: float | None) -> FloatArray:
    """Repair one symmetric matrix of trace at most ``upper``."""
    if repair is Repair.NONE:
        return gram
    if repair is Repair.CLIP or (noise is None and repair is not Repair.SHIFT):
        return clip(gram, upper)
    if noise is not None and repair in (Repair.AUTO, Repair.STRUCTURED, Repair.SPECTRAL):
        eigenvalues, eigenvectors = np.linalg.eigh(gram)
        return from_eigen(bulk_and_outlier_eigenvalues(eigenvalues, SpectralNoise.of(noise), upper), eigenvectors)
    of_papers = import_module("dpmoments.papers.repairs")
    return np.asarray(of_papers.REPAIRS[repair](gram, noise, upper))


def clip(gram: FloatArray, upper: float | None = None) -> FloatArray:
    """Clip eigenvalues to [0, upper], the nearest such matrix (Amin et al. 2019)."""
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    return from_eigen(np.clip(eigenvalues, 0.0, math.inf if upper is None else upper), eigenvectors)


def from_eigen(eigenvalues: FloatArray, eigenvectors: FloatArray) -> FloatArray:
    """Return the symmetric matrix of these eigenvalues and eigenvectors."""
    matrix = (eigenvectors * eigenvalues) @ eigenvectors.T
    return np.asarray((matrix + matrix.T) / 2.0)


# The number of rows that sums are divided by, kept away from 0 where the noise on it is as large as itself.

_FEW_ROWS = 10.0
"""Warn about a noisy count below this many noise standard deviations."""


def floored_count(noisy_count: float, noise: NoiseLaw | None) -> float:
    """Return the row count to divide by: at least 1, and at least its noise standard deviation."""
    return max(1.0, noisy_count, _deviation(noise))


def few_rows_message(noisy_count: float | None, noise: NoiseLaw | None) -> Message | None:
    """Warn of a noisy count that is small against its noise; None if it is not, or is not noisy."""
    deviation = _deviation(noise)
    if noisy_count is None or noisy_count >= _FEW_ROWS * deviation:
        return None
    return Message("too-few-rows", rows=noisy_count, noise=deviation)


def _deviation(noise: NoiseLaw | None) -> float:
    return 0.0 if noise is None else math.sqrt(noise.count_variance)
