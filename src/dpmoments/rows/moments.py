"""Exact, mergeable integer sums of lattice rows, which every data engine gives a mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpmoments.base.errors import InputOverflowError, InputValueError
from dpmoments.rows.rounding import Lattice

# An integer is stored as high·2^60 + low with 0 ≤ low < 2^60, which makes the pair unique. Two lows add up to
# less than 2^61, so an addition carries at most one into the high limb.
LIMB_BITS = 60
_LOW_MASK = (1 << LIMB_BITS) - 1

# 2^63 rows of at most 2^48 a cell reach 2^111: 2^51 in the high limb. The bound is on the count alone.
_MAX_COUNT = 1 << 63


def split_limbs(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Split int64 integers, shape s, into ``[high, low]``, shape (2, *s)."""
    # `high·2^60 + low`, `0 ≤ low < 2^60`.
    return np.stack([values >> LIMB_BITS, values & _LOW_MASK])


def add_limbs(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add two arrays of two-limb integers, shape (2, ...), with carry."""
    low = left[1] + right[1]
    return np.stack([left[0] + right[0] + (low >> LIMB_BITS), low & _LOW_MASK])


@dataclass(frozen=True, eq=False, repr=False)
class ExactMoments:
    """Exact integer sums of encoded rows: count, Σz and Σzzᵀ with z = lattice row; x = z·scale.

    Sums of integers do not depend on order, so merging is associative and commutative to the last bit: any
    engine, chunking or thread count gives the same object. The values are private data: ``repr`` shows none.

    Attributes
    ----------
    count : int
        Number of rows, dropped ones included.
    dropped : int
        Number of dropped rows; they contribute zeros to ``sum`` and ``gram``.
    clipped : int
        Rows whose norm exceeded the radius by more than lattice rounding explains (√d/2 units). A private diagnostic.
    bits : int
        The radius is 2^bits lattice units.
    radius : float
        Max norm of a row, in the caller's units.
    limbs : ndarray of int64, shape (2, d + 1, d), read-only
        Σz (row 0) and Σzzᵀ (rows 1 to d) as two-limb integers, see :func:`split_limbs`. Exact up to 2^63
        rows.

    Examples
    --------
    >>> from dpmoments.rows.kernel import exact_moments
    >>> moments = exact_moments([np.array([[0.5, 0.0], [0.25, -0.5]])], 2, bits=3)
    >>> moments.count, moments.sum.tolist(), moments.gram.tolist()
    (2, [6, -4], [[20, -8], [-8, 16]])
    >>> (moments.sum * moments.scale).tolist(), (moments + moments).count
    ([0.75, -0.5], 4)
    """

    count: int
    dropped: int
    clipped: int
    bits: int
    radius: float
    limbs: NDArray[np.int64]

    def __post_init__(self) -> None:
        shape = self.limbs.shape
        if len(shape) != 3 or shape[0] != 2 or shape[1] != shape[2] + 1 or self.limbs.dtype != np.int64:
            raise InputValueError(f"limbs must be int64 of shape (2, d + 1, d), got {self.limbs.dtype} {shape}")
        Lattice(shape[2], self.bits, self.radius)  # refuses a pair of bits and radius that no rows can have
        if not (0 <= self.dropped <= self.count and 0 <= self.clipped <= self.count):
            raise InputValueError("need 0 <= dropped <= count and 0 <= clipped <= count")
        if self.count > _MAX_COUNT:
            raise InputOverflowError("more than 2^63 rows: the sums would no longer be exact")
        frozen = self.limbs.view()
        frozen.setflags(write=False)
        object.__setattr__(self, "limbs", frozen)

    def merge(self, other: ExactMoments) -> ExactMoments:
        """Return the moments of both sets of rows.

        Raises
        ------
        ValueError
            If the number of features, the bits or the radius differ.
        OverflowError
            Beyond 2^63 rows.
        """
        mine = (self.n_features, self.bits, self.radius)
        theirs = (other.n_features, other.bits, other.radius)
        if mine != theirs:
            raise InputValueError(
                f"cannot merge moments on different lattices: (features, bits, radius) are {mine} and {theirs}; "
                "compute both with the same ones"
            )
        return ExactMoments(
            count=self.count + other.count,
            dropped=self.dropped + other.dropped,
            clipped=self.clipped + other.clipped,
            bits=self.bits,
            radius=self.radius,
            limbs=add_limbs(self.limbs, other.limbs),
        )

    def without_dropped(self) -> ExactMoments:
        """Return the same sums without the dropped rows in the count."""
        return replace(self, count=self.count - self.dropped, dropped=0)

    def __add__(self, other: object) -> ExactMoments:
        return self.merge(other) if isinstance(other, ExactMoments) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactMoments):
            return NotImplemented
        numbers = ("count", "dropped", "clipped", "bits", "radius")
        same_numbers = all(getattr(self, name) == getattr(other, name) for name in numbers)
        return same_numbers and np.array_equal(self.limbs, other.limbs)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a compact form for other processes."""
        # The lower triangle of Σzzᵀ, one integer per entry if all fit.
        numbers = (self.count, self.dropped, self.clipped, self.bits, self.radius)
        gram = self.limbs[:, 1:]
        if not np.array_equal(gram, gram.transpose(0, 2, 1)):
            return ExactMoments, (*numbers, np.asarray(self.limbs))
        packed = np.concatenate([self.limbs[:, 0], gram[:, *np.tril_indices(self.n_features)]], axis=1)
        joined = _join_limbs(packed)
        return _unpacked, (*numbers, self.n_features, packed if joined.dtype == object else joined)

    def __repr__(self) -> str:
        lattice = f"n_features={self.n_features}, bits={self.bits}, radius={self.radius!r}"
        return f"Moments({lattice}, values=<private>)"

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.limbs.shape[2])

    @property
    def scale(self) -> float:
        """Size of one lattice unit: ``sum·scale`` and ``gram·scale²`` are in the caller's units."""
        return Lattice(self.n_features, self.bits, self.radius).scale

    @property
    def sum(self) -> NDArray[Any]:
        """Exact Σz, shape (d,): int64 if every entry fits, else Python integers in an object array."""
        return _join_limbs(self.limbs[:, 0])

    @property
    def gram(self) -> NDArray[Any]:
        """Exact Σzzᵀ, shape (d, d): int64 if every entry fits, else Python integers."""
        return _join_limbs(self.limbs[:, 1:])


def _unpacked(
    count: int, dropped: int, clipped: int, bits: int, radius: float, n_features: int, packed: NDArray[np.int64]
) -> ExactMoments:
    """Rebuild moments from Σz and the lower triangle of Σzzᵀ."""
    # One limb, shape (d + d(d + 1)/2,), or two.
    both = split_limbs(packed) if packed.ndim == 1 else packed
    limbs = np.empty((2, n_features + 1, n_features), dtype=np.int64)
    limbs[:, 0] = both[:, :n_features]
    rows, columns = np.tril_indices(n_features)
    limbs[:, 1 + rows, columns] = limbs[:, 1 + columns, rows] = both[:, n_features:]
    return ExactMoments(count, dropped, clipped, bits, radius, limbs)


def _join_limbs(limbs: NDArray[np.int64]) -> NDArray[Any]:
    """Convert two-limb integers, shape (2, *s), to int64 or Python integers, shape s."""
    # To int64 if all fit.
    high, low = limbs
    if np.all((high >= -8) & (high < 8)):  # high·2^60 + low is in [-2^63, 2^63)
        return cast("NDArray[Any]", high * np.int64(1 << LIMB_BITS) + low)
    return cast("NDArray[Any]", high.astype(object) * (1 << LIMB_BITS) + low.astype(object))
