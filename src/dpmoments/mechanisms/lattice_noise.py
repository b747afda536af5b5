"""Exact integer queries with discrete noise.

The draws of every mechanism with ``exact-lattice`` arithmetic.

A query is an integer number of units of 2^−bits. Draws of Gaussian noise that compose under (ε, δ) need noise of 2^20 units or
more for the proof (``docs/evidence/derivations/composition.md``): the query is then counted in smaller units before noise is
added.
"""

from __future__ import annotations

import math
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dpmoments.base.message import Query
from dpmoments.base.values import FloatArray
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import DiscreteGaussian, DiscreteLaplace, DrawLaw
from dpmoments.privacy.sensitivity import Sensitivity, count, count_l1
from dpmoments.privacy.unit import Neighbors


def noise_scale_for(part: PrivacyBudget, sensitivity: float) -> float:
    """Return the Laplace scale of a loss in ε, or the Gaussian SD of one in ρ; rounded up."""
    if part.kind is BudgetKind.PURE:
        return math.nextafter(math.nextafter(sensitivity, math.inf) / part.epsilon, math.inf)
    return zcdp_noise_scale(part.rho, sensitivity)


def noise_deviation(scale: float, *, pure: bool) -> float:
    """Return the noise SD for a scale of :func:`noise_scale_for`."""
    return scale * math.sqrt(2.0) if pure else scale


def off_diagonal(noise_scale: float) -> float:
    """Return σ/√2, rounded up."""
    # The SD off the diagonal of symmetric noise isotropic in Frobenius norm.
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
    """Return the answer with discrete Laplace (``pure``) or discrete Gaussian noise."""
    if pure:
        law = DiscreteLaplace(math.ldexp(scale, bits))
        return under_law(privacy_filter, what, law, query, sensitivity, bits=bits)
    return with_gaussian_noise(privacy_filter, what, query, sensitivity, scale, bits=bits)


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
    """Return the answer to an integer query with discrete Gaussian noise.

    In floating point, in units of 1.

    ``what`` names the query in the receipt, ``query`` is in units of 2^−bits, ``sensitivity`` and ``scale`` (the noise SD) in
    units of 1; ``off_diagonal_scale`` is the SD off the diagonal of a symmetric matrix.
    """
    least = scale if off_diagonal_scale is None else min(scale, off_diagonal_scale)
    finer = finer_bits(math.ldexp(least, bits), privacy_filter.unit.least_lattice_scale)
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
    """Return the answer to an integer query under a noise distribution, in units of 1.

    The distribution is in units of 2^−bits.

    ``claim`` is the plan's stated cost, for a distribution with an exact curve; the rest as for :func:`with_gaussian_noise`.
    """
    noisy = privacy_filter.draw(what, law, np.asarray(query), sensitivity.in_units(2.0**bits), claim)
    return np.asarray(noisy, dtype=np.float64) * 2.0**-bits


def finer_bits(scale: float, least: float) -> int:
    """Return the powers of two by which a noise scale must grow to reach ``least``."""
    if scale >= least:
        return 0
    mantissa, exponent = math.frexp(least / scale)
    return exponent - 1 if mantissa == 0.5 else exponent


# The number of rows by itself: a part of the budget, where a mechanism has no cell for it or needs it first.

COUNT_SHARE = 0.01
"""Budget share of the number of rows in runs that count first, and of weighted rows."""
_PLANNED_SHARES = MappingProxyType({BudgetKind.ZCDP: 0.05, BudgetKind.PURE: 0.1, BudgetKind.APPROXIMATE: 0.1})
"""Budget share of the number of rows if every moment is divided by it."""
# Laplace noise falls with it, Gaussian with its root.


def split_for_count(whole: PrivacyBudget, share: float | None = None) -> tuple[PrivacyBudget, PrivacyBudget]:
    """Return the budgets of the row count and of the rest."""
    # Laplace noise needs no δ, so under (ε, δ) all of δ remains.
    share = _PLANNED_SHARES[whole.kind] if share is None else share
    if whole.kind is not BudgetKind.APPROXIMATE:
        for_count, rest = whole.split(share, 1.0 - share)
        return for_count, rest
    for_count, rest = PrivacyBudget.pure(whole.epsilon).split(share, 1.0 - share)
    return for_count, PrivacyBudget.approximate(rest.epsilon, whole.delta)


def noisy_count(n_rows: int, privacy_filter: PrivacyFilter, loss: PrivacyBudget, neighbors: Neighbors) -> float:
    """Return a number of rows plus discrete noise, rounded, at least 1."""
    # Laplace noise if the loss is pure, else Gaussian noise.
    pure = loss.kind is BudgetKind.PURE
    sensitivity = count_l1(neighbors) if pure else count(neighbors)
    noisy = with_noise(privacy_filter, "count", [n_rows], sensitivity, count_scale(loss), bits=0, pure=pure)
    return max(1.0, float(round(noisy[0])))


def count_scale(loss: PrivacyBudget) -> float:
    """Return the noise scale of :func:`noisy_count`."""
    # A count's sensitivity is equal under both relations.
    return noise_scale_for(loss, count(Neighbors.ADD_REMOVE).value)


def count_error(loss: PrivacyBudget) -> float:
    """Return the noise SD of :func:`noisy_count`."""
    return noise_deviation(count_scale(loss), pure=loss.kind is BudgetKind.PURE)
