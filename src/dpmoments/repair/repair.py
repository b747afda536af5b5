"""Repairs: corrections of a noisy Gram matrix and mean to those of a possible table.

Post-processing: repairs read the noise distribution and no row, so they cost no privacy.
"""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair.levels import CompletedLevels, possible_covariance, possible_mean
from dpmoments.repair.spectral import (
    SpectralNoise,
    bulk_and_outlier_eigenvalues,
    pooled_spread,
    possible_eigenvalues,
    rotation_invariant_eigenvalues,
)
from dpmoments.repair.structured import NoisySums, possible_second_moment, structured_moments, structured_second_moment
from dpmoments.schema.constraints import Constraints

# Variances within what bounds and means allow.

_ROUNDING = 1e-12


def _clip_to_bounds(
    mean: FloatArray | None,
    gram: FloatArray,
    count: int | None,
    box: tuple[FloatArray, FloatArray] | None,
    center: FloatArray | None,
) -> tuple[FloatArray | None, FloatArray]:
    """Clip variances to (u − μ)(μ − l), the maximum for values in [l, u] with mean μ."""
    if mean is None or count is None or box is None:
        return mean, gram
    position = mean if center is None else center + mean
    most = np.maximum((box[1] - position) * (position - box[0]), 0.0)
    spread = gram / count - np.outer(mean, mean)
    variances = np.diag(spread)
    over = variances > most * (1.0 + _ROUNDING)
    if not over.any():
        return mean, gram
    shares = np.ones(len(mean))
    shares[over] = np.sqrt(most[over] / variances[over])
    return mean, count * (spread * np.outer(shares, shares) + np.outer(mean, mean))


_TRACE_AT_BOUND = 0.2
"""Prior probability that a second moment attains its trace bound (all rows of norm 1)."""

_SHIFT_FAILURE = 0.05
"""Failure probability of the noise bound of ``noise-shift``."""


class Repair(StrEnum):
    """Method that turns noisy moments into those of a possible table.

    ``AUTO``: ``STRUCTURED`` if the schema has a categorical or Boolean column, else ``SPECTRAL``. ``STRUCTURED``: enforce the
    counts, margins and bounds of the encoding, and shrink dependence between columns that is not distinguishable from noise.
    ``SPECTRAL``: pool eigenvalues below the noise floor and correct the others one by one. ``NONE``: no change. ``CLIP``: clip
    eigenvalues to [0, n]. ``SHIFT``: add the smallest multiple of the identity that makes the matrix positive semi-definite.
    ``NOISE_SHIFT``: if an eigenvalue is negative, add cI, where c bounds the noise's spectral norm (a ridge for regressions on
    collinear columns). ``SHRINK``: shrink towards a multiple of the identity by the share that the noise explains.
    ``ROTATION_INVARIANT``: replace every eigenvalue by its expectation along its noisy eigenvector.

    Without a noise distribution every method that needs one becomes ``CLIP``, except that ``STRUCTURED`` also corrects counts.
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
        if value not in tuple(cls):
            raise InputValueError(Message("not-one-of", parameter="repair", value=value, choices=[*map(str, cls)]))
        return cls(value)


def exact_law(noise: NoiseLaw | None) -> NoiseLaw | None:
    """Return the noise without rounding; None if it is exact only given more than a release."""
    return None if noise is None or noise.caveats else replace(noise, rounding=None)


def repair_moments(
    count: int | None,
    noisy_sum: FloatArray | None,
    noisy_gram: FloatArray,
    noise: NoiseLaw | None,
    repair: Repair,
    *,
    box: tuple[FloatArray, FloatArray] | None,
    center: FloatArray | None = None,
    constraints: Constraints | None = None,
    rows_moved: bool = False,
) -> tuple[FloatArray | None, FloatArray]:
    """Repair the mean and Gram matrix, about ``center``, of rows in the unit ball.

    ``count`` may be public or noisy. ``box`` holds public bounds on the mean. ``constraints`` are used by ``STRUCTURED`` and
    ``AUTO``. If ``rows_moved`` (rows were clipped, not only their numbers), the constraints that are equations hold only nearly
    and are not used. The repair makes the covariance gram/count − mean·meanᵀ positive semi-definite.
    """
    structured = constraints is not None and constraints.counts and repair in (Repair.AUTO, Repair.STRUCTURED)
    if structured and constraints is not None:
        spectral = repair_moments(count, noisy_sum, noisy_gram, noise, Repair.SPECTRAL, box=box, center=center)
        result = _structured(count, noisy_sum, noisy_gram, noise, constraints, spectral, center, rows_moved)
        return _clip_to_bounds(*result, count, box, center)
    if noisy_sum is None or count is None:
        return None, repair_gram(noisy_gram, noise, repair, None if box is None else count, _TRACE_AT_BOUND)
    mean = noisy_mean = noisy_sum / count
    if repair is Repair.NONE:
        return mean, noisy_gram
    if box is not None:
        origin = np.zeros_like(mean) if center is None else center
        possible = np.clip(origin + mean, *box)
        mean = possible / max(1.0, float(np.linalg.norm(possible))) - origin
    # About a center that the run estimated, the noise on the mean is not that on the spread: only the mean is moved.
    about = mean if center is None else noisy_mean
    spread = noisy_gram - count * np.outer(about, about)
    upper = None if box is None else count
    if noise is not None:
        noise = noise.about(-mean)  # to first order, of Σ(x − μ)(x − μ)ᵀ with the noisy count and mean
    repaired = repair_gram(spread, noise, repair, upper) + count * np.outer(mean, mean)
    return _clip_to_bounds(mean, repaired, count, box, center) if repair is Repair.AUTO else (mean, repaired)


def _structured(
    count: int | None,
    noisy_sum: FloatArray | None,
    noisy_gram: FloatArray,
    noise: NoiseLaw | None,
    constraints: Constraints,
    spectral: tuple[FloatArray | None, FloatArray],
    center: FloatArray | None,
    rows_moved: bool,
) -> tuple[FloatArray | None, FloatArray]:
    """Apply the structured repair in column units; ``spectral`` is the spectral result."""
    units = constraints.units
    squares = np.outer(units, units)
    result, gram = spectral[0], spectral[1] * squares
    if result is None or noisy_sum is None or count is None:
        if noise is None or rows_moved:
            repaired = possible_second_moment(gram, count, constraints)
        else:
            repaired = structured_second_moment(noisy_gram * squares, count, noise, constraints, gram)
        return None, repaired / squares
    origin = np.zeros(len(gram)) if center is None else center * units
    whole = gram / count - np.outer(result, result) * squares
    if noise is None:
        mean = possible_mean(origin + result * units, constraints)
        levels = CompletedLevels.of(constraints, mean)
        covariance = possible_covariance(levels.extended(whole), levels)
    else:
        variance = noise.sum_variances * units**2
        noisy = NoisySums(float(count), noisy_sum * units, noisy_gram * squares, variance)
        about = None if center is None else origin
        mean, covariance = structured_moments(noisy, noise, constraints, whole, rows_moved=rows_moved, center=about)
    mean = (mean - origin) / units
    return mean, count * (covariance / squares + np.outer(mean, mean))


def repair_gram(
    gram: FloatArray, noise: NoiseLaw | None, repair: Repair, upper: float | None, attained: float = 0.0
) -> FloatArray:
    """Repair one symmetric matrix of trace at most ``upper``.

    ``attained`` is the prior probability that the trace equals ``upper``.
    """
    if repair is Repair.NONE:
        return gram
    if repair is Repair.SHIFT:
        return shift(gram)
    if repair is Repair.CLIP or noise is None:
        return clip(gram, upper)
    if repair is Repair.NOISE_SHIFT:
        return noise_shift(gram, noise)
    if repair is Repair.SHRINK:
        return shrink(gram, noise, upper)
    if repair is Repair.ROTATION_INVARIANT:
        return _rotation_invariant(gram, noise, upper)
    return adapt(gram, noise, upper, attained)


def clip(gram: FloatArray, upper: float | None = None) -> FloatArray:
    """Clip eigenvalues to [0, upper], the nearest such matrix (Amin et al. 2019)."""
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    bounded = np.clip(eigenvalues, 0.0, math.inf if upper is None else upper)
    return _from_eigen(bounded, eigenvectors)


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
    return _from_eigen(possible_eigenvalues(estimate, upper), eigenvectors)


def _rotation_invariant(gram: FloatArray, noise: NoiseLaw, upper: float | None = None) -> FloatArray:
    """Replace eigenvalues by their expectation along the noisy eigenvectors, made possible."""
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    expected = rotation_invariant_eigenvalues(eigenvalues, SpectralNoise.of(noise))
    return _from_eigen(possible_eigenvalues(expected, upper), eigenvectors)


def adapt(gram: FloatArray, noise: NoiseLaw, upper: float | None = None, attained: float = 0.0) -> FloatArray:
    """Pool the eigenvalues below the noise floor, and correct those above it one by one.

    >>> from dpmoments.noise import AdditiveModel
    >>> sizes = dict(diagonal_variance=1.0, off_diagonal_variance=0.5, sum_variance=None, count_variance=0.0)
    >>> law = AdditiveModel(n_features=3, family="gaussian", **sizes).law()
    >>> adapt(np.diag([100.0, 1.0, -1.0]), law).round(1)
    array([[100. ,   0. ,   0. ],
           [  0. ,   0.4,   0. ],
           [  0. ,   0. ,   0. ]])
    """
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    estimate = bulk_and_outlier_eigenvalues(eigenvalues, SpectralNoise.of(noise), upper, attained)
    return _from_eigen(estimate, eigenvectors)


def _from_eigen(eigenvalues: FloatArray, eigenvectors: FloatArray) -> FloatArray:
    matrix = (eigenvectors * eigenvalues) @ eigenvectors.T
    symmetric: FloatArray = (matrix + matrix.T) / 2.0
    return symmetric


# The number of rows that sums are divided by, kept away from 0 where the noise on it is as large as itself.

_MIN = 1.0
"""Minimum noisy count, in SDs of its noise (``docs/evidence/derivations/repairs.md``)."""
_FEW_ROWS = 10.0
"""Warn about a noisy count below this many noise standard deviations."""


def floored_count(noisy_count: float, noise: NoiseLaw | None) -> float:
    """Return the row count to divide by: at least 1, and at least its noise standard deviation."""
    return max(1.0, noisy_count, _MIN * _deviation(noise))


def few_rows_message(noisy_count: float | None, noise: NoiseLaw | None) -> Message | None:
    """Warn of a noisy count that is small against its noise; None if it is not, or is not noisy."""
    deviation = _deviation(noise)
    if noisy_count is None or noisy_count >= _FEW_ROWS * deviation:
        return None
    return Message("too-few-rows", rows=noisy_count, noise=deviation)


def _deviation(noise: NoiseLaw | None) -> float:
    return 0.0 if noise is None else math.sqrt(noise.count_variance)
