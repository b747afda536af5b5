"""Integer lattice of the rows: constants, limits and scaling into the ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmoments.base.errors import InputValueError, shown

EXACT = 2.0**53
"""Integers of magnitude up to 2^53 are float64 numbers, and so are their sums below it."""

NARROW = 32
"""Feature count below which NumPy's overhead per row exceeds its work per value."""

_MAX_BITS = 24
_MIN_RADIUS, _MAX_RADIUS = 1e-140, 1e140  # keeps radius² and 2^bits/radius far from under- and overflow
_MARGIN = 2.0**-6  # lattice units; rounding in the clip factor moves a norm by less than 2^-26 units


@dataclass(frozen=True)
class Lattice:
    """Integer rows z of norm ‖z‖ ≤ 2^bits that represent x = z·radius·2^-bits.

    ``radius`` is in the caller's units. A ``limit`` below 2^bits, in lattice units, bounds the norm in its place.
    """

    n_features: int
    bits: int
    radius: float
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise InputValueError(f"n_features must be at least 1, got {self.n_features}")
        if not _MIN_RADIUS <= self.radius <= _MAX_RADIUS:
            raise InputValueError(f"radius must lie in [{_MIN_RADIUS:g}, {_MAX_RADIUS:g}], got {shown(self.radius)}")
        least = max(1, (self._dimension_bits + 1) // 2)
        most = min(_MAX_BITS, (53 - self._dimension_bits) // 2)
        if least > most:
            raise InputValueError(f"{self.n_features} features are too many for exact float64 products")
        if not least <= self.bits <= most:
            raise InputValueError(
                f"bits must lie in [{least}, {most}] for {self.n_features} features, got {self.bits}: with fewer, "
                "rounding could change a row by more than half the radius; with more, float64 sums would be inexact"
            )
        if self.limit is not None and not (math.sqrt(self.n_features) / 2.0 + 1.0 <= self.limit <= 2**self.bits):
            raise AssertionError(
                "a lattice's limit is above 2^bits, or too small to clip to: a defect, please report it"
            )

    @property
    def _dimension_bits(self) -> int:
        """⌈log₂ d⌉."""
        return (self.n_features - 1).bit_length()

    @property
    def scale(self) -> float:
        """Size of one lattice unit in the caller's units, radius·2^-bits (exact)."""
        return self.radius * 2.0**-self.bits

    @property
    def units_per_one(self) -> float:
        """2^bits/radius: the factor from values to lattice units, before rounding."""
        return 2.0**self.bits / self.radius

    @property
    def norm(self) -> float:
        """Largest norm of a row in lattice units, 2^bits or the limit."""
        return 2.0**self.bits if self.limit is None else float(self.limit)

    @property
    def squared_limit(self) -> float:
        """Square of :attr:`norm`: upper bound on a row's sum of squares."""
        return self.norm**2

    @property
    def clip_target(self) -> float:
        """:attr:`norm` − √d/2 − 2^-6."""
        # A row of this norm still has norm at most `norm` after rounding.
        return self.norm - math.sqrt(self.n_features) / 2.0 - _MARGIN

    @property
    def squared_beyond_doubt(self) -> float:
        """(:attr:`norm` + √d/2 + 2^-6)²."""
        # A rounded row of a larger squared norm exceeded the radius before rounding.
        return (self.norm + math.sqrt(self.n_features) / 2.0 + _MARGIN) ** 2

    @property
    def peak_bits(self) -> int:
        """Largest k ≥ bits for which d squares of magnitude 2^(2k) sum to at most 2^53."""
        return (53 - self._dimension_bits) // 2

    @property
    def rows_per_product(self) -> int:
        """2^(53 − 2·bits): max rows of one matrix product without a partial sum above 2^53."""
        return 1 << (53 - 2 * self.bits)


def squared_norms(
    rows: NDArray[np.float64], *, scratch: NDArray[np.float64] | None = None, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Compute the sum of squares of each integer-valued row, shape (n,), exact below 2^53.

    Any order of summation, fused or not, gives the same result if the exact sum is below 2^53, and a result *not below*
    2^53 (a larger number, infinity or NaN) otherwise: rounding is monotone and the terms are nonnegative
    (``docs/evidence/derivations/exact-sums.md``, lemma 1). So the fastest order for the memory layout may be used. ``scratch``,
    shape (n, d), is overwritten.
    """
    n_rows, n_features = rows.shape
    if out is None:
        out = np.empty(n_rows)
    if rows.flags.f_contiguous and not rows.flags.c_contiguous:
        np.einsum("ij,ij->i", rows, rows, out=out)
    elif n_features >= NARROW:
        np.vecdot(rows, rows, out=out)
    else:  # narrow rows: one call per row costs more than storing all squares
        np.dot(np.multiply(rows, rows, out=scratch), np.ones(n_features), out=out)
    return out


def clip_rows(
    rows: NDArray[np.float64],
    norms: NDArray[np.float64],
    over: NDArray[np.bool_],
    lattice: Lattice,
    *,
    scratch: NDArray[np.float64] | None = None,
) -> None:
    """Scale the rows marked ``over`` into the ball, in place."""
    # `norms` are exact sums of squares, also updated.
    marked = np.flatnonzero(over)
    if 4 * marked.size > over.size:  # many: one pass over all rows, the others with a factor of 1
        factors = np.sqrt(norms)
        with np.errstate(divide="ignore"):  # zero rows
            np.divide(lattice.clip_target, factors, out=factors)
        np.copyto(factors, 1.0, where=~over)
        if rows.flags.c_contiguous and rows.shape[1] < NARROW:  # one loop per row costs more than repeating the factors
            flat = rows.reshape(-1)
            np.multiply(flat, np.repeat(factors, rows.shape[1]), out=flat)
        else:
            np.multiply(rows, factors[:, None], out=rows)
        np.rint(rows, out=rows)
        squared_norms(rows, scratch=scratch, out=norms)
    elif marked.size:
        few = np.rint(rows[marked] * (lattice.clip_target / np.sqrt(norms[marked]))[:, None])
        rows[marked] = few
        norms[marked] = squared_norms(few)
    _shrink_into_ball(rows, norms, lattice)


def _shrink_into_ball(rows: NDArray[np.float64], norms: NDArray[np.float64], lattice: Lattice) -> None:
    """Check every norm in exact integers.

    Shrink rows beyond the radius, rounding toward zero, in place. After the scaling in :func:`clip_rows` no row is
    beyond it (lemma 3 of ``docs/evidence/derivations/exact-sums.md``). Privacy rests on this bound, so it is checked on
    the rows themselves, not only by an analysis of rounding errors. Each pass lowers the magnitude of every nonzero
    entry of a marked row by at least one, so the loop ends; in IEEE arithmetic one pass is enough.
    """
    while True:
        beyond = np.flatnonzero(~(norms <= lattice.squared_limit))
        if beyond.size == 0:
            return
        if not np.all(norms[beyond] <= EXACT):
            raise AssertionError("a lattice row has no exact norm: a defect, please report it")
        factors = lattice.norm * (1.0 - 2.0**-40) / np.sqrt(norms[beyond])
        fewer = np.trunc(rows[beyond] * factors[:, None])
        rows[beyond] = fewer
        norms[beyond] = squared_norms(fewer)
