"""Exact integer queries with discrete noise: what every mechanism with ``exact-lattice`` arithmetic asks the privacy filter for.

A query is an integer number of units of 2^−bits. Where draws of Gaussian noise are composed under (ε, δ), the proof needs
noise of 2^20 units or more (``docs/derivations/composition.md``): the query is then counted in smaller units before noise is
added.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.messages.message import Query
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import DiscreteGaussian, DiscreteLaplace, DrawLaw
from dpmoments.privacy.sensitivity import count, count_l1
from dpmoments.privacy.unit import Neighbors


def noise_scale_for(part: PrivacyBudget, sensitivity: float) -> float:
    """Laplace scale for a part in ε, standard deviation of Gaussian noise for one in ρ; rounded up."""
    if part.kind is BudgetKind.PURE:
        return math.nextafter(math.nextafter(sensitivity, math.inf) / part.epsilon, math.inf)
    return zcdp_noise_scale(part.rho, sensitivity)


def noise_deviation(scale: float, *, pure: bool) -> float:
    """Standard deviation of noise of a scale of :func:`noise_scale_for`.

    Examples
    --------
    >>> noise_deviation(2.0, pure=False), round(noise_deviation(2.0, pure=True), 3)
    (2.0, 2.828)
    """
    return scale * math.sqrt(2.0) if pure else scale


def off_diagonal(noise_scale: float) -> float:
    """σ/√2, rounded up: what symmetric noise that is isotropic in Frobenius norm has off the diagonal."""
    return math.nextafter(math.nextafter(noise_scale * math.sqrt(0.5), math.inf), math.inf)


def with_noise(
    privacy_filter: PrivacyFilter,
    what: Query,
    query: npt.ArrayLike,
    sensitivity: Sensitivity,
    scale: float,
    *,
    bits: int,
    pure: bool,
) -> FloatArray:
    """The answer with discrete Laplace noise of that scale where ``pure``, else with discrete Gaussian noise.

    Parameters
    ----------
    privacy_filter, what, query, sensitivity, scale, bits
        As for :func:`with_gaussian_noise`.
    """
    if pure:
        return with_laplace_noise(privacy_filter, what, query, sensitivity, scale, bits=bits)
    return with_gaussian_noise(privacy_filter, what, query, sensitivity, scale, bits=bits)


def with_laplace_noise(
    privacy_filter: PrivacyFilter,
    what: Query,
    query: npt.ArrayLike,
    sensitivity: Sensitivity,
    scale: float,
    *,
    bits: int,
) -> FloatArray:
    """The answer to an integer query with discrete Laplace noise; see :func:`with_gaussian_noise`."""
    return under_law(privacy_filter, what, DiscreteLaplace(math.ldexp(scale, bits)), query, sensitivity, bits=bits)


def with_gaussian_noise(
    privacy_filter: PrivacyFilter,
    what: Query,
    query: npt.ArrayLike,
    sensitivity: Sensitivity,
    scale: float,
    *,
    bits: int,
    off_diagonal_scale: float | None = None,
) -> FloatArray:
    """The answer to an integer query with discrete Gaussian noise, as floating point.

    Parameters
    ----------
    what : Message or str
        The query, for the receipt.
    query : array_like of integers
        In units of 2^−bits.
    sensitivity : Sensitivity
        In units of 1.
    scale : float
        Standard deviation of the noise, in units of 1.
    off_diagonal_scale : float, optional
        For a symmetric matrix: the standard deviation off the diagonal.

    Returns
    -------
    ndarray
        In units of 1.
    """
    least = scale if off_diagonal_scale is None else min(scale, off_diagonal_scale)
    finer = _finer_bits(math.ldexp(least, bits), privacy_filter.unit.least_lattice_scale)
    exact = np.asarray(query)
    if finer:
        exact = exact.astype(object) * (1 << finer)  # Python integers: nothing overflows
    bits += finer
    on_lattice = None if off_diagonal_scale is None else math.ldexp(off_diagonal_scale, bits)
    law = DiscreteGaussian(math.ldexp(scale, bits), on_lattice)
    return under_law(privacy_filter, what, law, exact, sensitivity, bits=bits)


def under_law(
    privacy_filter: PrivacyFilter,
    what: Query,
    law: DrawLaw,
    query: npt.ArrayLike,
    sensitivity: Sensitivity,
    *,
    bits: int,
    claim: PrivacyBudget | None = None,
) -> FloatArray:
    """The answer to an integer query under a law in its units, 2^−bits, as floating point in units of 1.

    Parameters
    ----------
    privacy_filter, what, query, sensitivity, bits
        As for :func:`with_gaussian_noise`.
    claim : PrivacyBudget, optional
        What the plan says it costs, for a law with an exact curve.
    """
    noisy = privacy_filter.draw(what, law, np.asarray(query), sensitivity.in_units(2.0**bits), claim)
    return np.asarray(noisy, dtype=np.float64) * 2.0**-bits


def _finer_bits(scale: float, least: float) -> int:
    """By how many powers of two a noise scale must grow to reach ``least``.

    Examples
    --------
    >>> _finer_bits(3.0, 16.0), _finer_bits(16.0, 16.0), _finer_bits(5.0, 0.0)
    (3, 0, 0)
    """
    if scale >= least:
        return 0
    mantissa, exponent = math.frexp(least / scale)
    return exponent - 1 if mantissa == 0.5 else exponent


# The number of rows by itself: a part of the budget, where a mechanism has no cell for it or needs it first.

COUNT_SHARE = 0.01
"""Share of ρ for the number of rows where a run of several steps counts first."""
_PLANNED_SHARES = MappingProxyType({BudgetKind.ZCDP: 0.05, BudgetKind.PURE: 0.1, BudgetKind.APPROXIMATE: 0.1})
"""Share for the number of rows where every moment is divided by it at once: of ρ (Gaussian noise), or of ε (Laplace noise, which
falls with the share and not with its root)."""


def split_for_count(whole: PrivacyBudget, share: float | None = None) -> tuple[PrivacyBudget, PrivacyBudget]:
    """The part for the number of rows, and what is left. Laplace noise needs no δ, so under (ε, δ) all of δ is left.

    Parameters
    ----------
    share : float, optional
        Default: of _PLANNED_SHARES.

    Examples
    --------
    >>> for_count, rest = split_for_count(PrivacyBudget.approximate(1.0, 1e-6))
    >>> round(for_count.epsilon, 9), round(rest.epsilon, 9), rest.delta
    (0.1, 0.9, 1e-06)
    """
    share = _PLANNED_SHARES[whole.kind] if share is None else share
    if whole.kind is not BudgetKind.APPROXIMATE:
        for_count, rest = whole.split(share, 1.0 - share)
        return for_count, rest
    for_count, rest = PrivacyBudget.pure(whole.epsilon).split(share, 1.0 - share)
    return for_count, PrivacyBudget.approximate(rest.epsilon, whole.delta)


def noisy_count(n_rows: int, privacy_filter: PrivacyFilter, loss: PrivacyBudget, neighbors: Neighbors) -> float:
    """A number of rows plus discrete noise (Laplace where the loss is pure, else Gaussian), rounded, at least 1."""
    pure = loss.kind is BudgetKind.PURE
    sensitivity = count_l1(neighbors) if pure else count(neighbors)
    noisy = with_noise(privacy_filter, "count", [n_rows], sensitivity, count_scale(loss), bits=0, pure=pure)
    return max(1.0, float(round(noisy[0])))


def count_scale(loss: PrivacyBudget) -> float:
    """Scale of the noise of :func:`noisy_count`; the sensitivity of a count is the same under both relations."""
    return noise_scale_for(loss, count(Neighbors.ADD_REMOVE).value)


def count_error(loss: PrivacyBudget) -> float:
    """Standard deviation of the noise of :func:`noisy_count`."""
    return noise_deviation(count_scale(loss), pure=loss.kind is BudgetKind.PURE)
