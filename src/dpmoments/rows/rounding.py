"""Rounding of a batch's rows to lattice rows, each a function of its own row's values only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.values import FloatArray
from dpmoments.rows.summary import Missing, fill_missing

# Integer lattice of the rows: constants, limits and scaling into the ball.

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


# Matrix product rows @ matrixᵀ in which a row's result has the same bits wherever the row stands in a block.

_MAX_ENTRY = 1e120
# Exponents are not taken below these: smaller values are split on a fixed grid, so that 2^(p − e) cannot overflow.
_MIN_EXPONENT = -900
_MIN_MATRIX_EXPONENT = -400


@dataclass(frozen=True, eq=False)
class SlicedMatrix:
    """A k × d matrix cut into slices of p-bit integers, so that products with rows are exact.

    With p = ⌊(53 − ⌈log₂ d⌉)/2⌋, a row v is written ``v ≈ 2^(e−p) (V₁ + 2^(−p−1) V₂)`` and a row of the matrix ``a ≈
    2^(g−p) (B₁ + 2^(−p−1) B₂)``, with integers of magnitude ≤ 2^p and e, g the binary exponents of the largest entries.
    Each of V₁B₁ᵀ, V₁B₂ᵀ and V₂B₁ᵀ is a sum of d products of at most 2^(2p), hence exact in any order of a BLAS; the
    three are then added elementwise, in a fixed order. A BLAS product of v and a themselves would round differently at
    the edge of a batch than inside it, so the presence of one row could change the bits of another. Error of an entry:
    at most ``3 d 2^(−2p) max|v| max|a|`` (``docs/evidence/derivations/exact-sums.md``, section 5).
    """

    slice_bits: int  # p
    leading: NDArray[np.float64]  # (d, 2k): `2^(g−p) [B₁ᵀ, 2^(−p−1) B₂ᵀ]`, the factor of V₁
    trailing: NDArray[np.float64]  # (d, k): `2^(g−2p−1) B₁ᵀ`, the factor of V₂

    @classmethod
    def of(cls, matrix: ArrayLike) -> SlicedMatrix:
        """Split a matrix, shape (k, d), with entries up to 1e120."""
        # Public, or computed from earlier noisy outputs.
        entries = np.array(matrix, dtype=np.float64)
        if entries.ndim != 2 or entries.shape[0] < 1 or entries.shape[1] < 1:
            raise InputValueError(f"the matrix must be two-dimensional and not empty, got shape {entries.shape}")
        if not np.all(np.abs(entries) <= _MAX_ENTRY):
            raise InputValueError(f"the matrix must have finite entries of magnitude at most {_MAX_ENTRY:g}")
        n_inner = entries.shape[1]
        slice_bits = (53 - (n_inner - 1).bit_length()) // 2
        if slice_bits < 20:
            raise InputValueError(f"{n_inner} columns are too many for an accurate exact product; at most 8192")
        exponents = np.maximum(np.frexp(row_peaks(entries))[1], _MIN_MATRIX_EXPONENT)[:, None]
        scaled = entries * np.ldexp(1.0, slice_bits - exponents)
        first = np.rint(scaled)
        second = np.rint((scaled - first) * 2.0 ** (slice_bits + 1))
        unit, fine_unit = np.ldexp(1.0, exponents - slice_bits), np.ldexp(1.0, exponents - 2 * slice_bits - 1)
        leading = np.ascontiguousarray(np.vstack([first * unit, second * fine_unit]).T)
        trailing = np.ascontiguousarray((first * fine_unit).T)
        return cls(slice_bits, leading, trailing)

    @property
    def n_inputs(self) -> int:
        return int(self.leading.shape[0])

    @property
    def n_outputs(self) -> int:
        return int(self.trailing.shape[1])

    def image(
        self,
        values: NDArray[np.float64],
        peaks: NDArray[np.float64],
        *,
        work: NDArray[np.float64] | None = None,
        leading_out: NDArray[np.float64] | None = None,
        out: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """Multiply each row by the matrix.

        ``values @ matrix.T ≈ image · 2^exponents``, shapes (n, k) and (n,). The exponents are separate so that rows of
        1e300 do not overflow. ``values``, shape (n, d), is finite and **overwritten**; ``peaks`` is from
        :func:`row_peaks`. The optional arrays (shapes (n, d), (n, 2k) and (n, k)) are overwritten to save allocations.
        """
        exponents = np.maximum(np.frexp(peaks)[1], _MIN_EXPONENT) - self.slice_bits
        np.multiply(values, np.ldexp(1.0, -exponents)[:, None], out=values)
        first = np.rint(values, out=work)
        leading = np.matmul(first, self.leading, out=leading_out)
        np.subtract(values, first, out=values)
        np.multiply(values, 2.0 ** (self.slice_bits + 1), out=values)
        second = np.rint(values, out=values)
        image = np.matmul(second, self.trailing, out=out)
        np.add(image, leading[:, self.n_outputs :], out=image)
        np.add(image, leading[:, : self.n_outputs], out=image)
        return image, exponents


def row_peaks(values: NDArray[np.float64], *, scratch: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Compute the largest magnitude in each row, shape (n,), NaN for rows with NaN."""
    peaks: NDArray[np.float64] = np.maximum.reduce(np.abs(values, out=scratch), axis=1)
    return peaks


_MAX_CENTER = 2.0**900  # a finite cell minus such a number stays finite
_MAX_FACTOR_EXPONENT = 1000


@dataclass(frozen=True, eq=False)
class RowMap:
    """Map of a row before rounding, with its lattice and its rule for missing values."""

    # ``x → linear @ (x − center)``, or ``(x − center) · scale``.

    n_inputs: int
    lattice: Lattice
    missing: Missing
    center: FloatArray | None
    linear: SlicedMatrix | None
    scale: FloatArray | None = None  # (d,), a factor for each feature; not with `linear`

    @classmethod
    def of(
        cls,
        n_inputs: int,
        *,
        bits: int,
        radius: float,
        center: ArrayLike | None,
        linear: ArrayLike | None,
        missing: Missing,
        limit: int | None = None,
        scale: ArrayLike | None = None,
    ) -> RowMap:
        """Check the arguments of :func:`dpmoments.rows.kernel.exact_moments` and combine them."""
        check_one_of("missing", missing, ("error", "center", "drop"))
        shift: FloatArray | None = None
        if center is not None:
            shift = np.array(center, dtype=np.float64)
            if shift.shape != (n_inputs,):
                raise InputValueError(f"center must have shape ({n_inputs},), got {shift.shape}")
            if not np.all(np.abs(shift) <= _MAX_CENTER):
                raise InputValueError(f"center must be finite and at most {_MAX_CENTER:.2g} in magnitude")
        sliced: SlicedMatrix | None = None
        if linear is not None:
            sliced = SlicedMatrix.of(linear)
            if sliced.n_inputs != n_inputs:
                raise InputValueError(f"linear must have shape (k, {n_inputs}), got {np.shape(linear)}")
        factors: FloatArray | None = None
        if scale is not None:
            factors = np.array(scale, dtype=np.float64)
            if factors.shape != (n_inputs,) or sliced is not None or not (np.abs(factors) <= _MAX_ENTRY).all():
                raise AssertionError("a scale is one finite number for each feature, without a matrix: a defect")
        n_outputs = n_inputs if sliced is None else sliced.n_outputs
        return cls(n_inputs, Lattice(n_outputs, bits, float(radius), limit), missing, shift, sliced, factors)

    @property
    def units(self) -> FloatArray:
        """Lattice units in one unit of each feature, shape (d,) without a matrix."""
        units = self.lattice.units_per_one
        return np.full(self.n_inputs, units) if self.scale is None else units * self.scale


@dataclass(frozen=True, eq=False)
class LatticeRows:
    """Lattice rows of one batch.

    Integer-valued float64, shape (n, d), ``Σz² ≤ 2^(2·bits)`` in every row. ``clipped`` counts rows certainly beyond
    the radius before rounding, ``dropped`` rows dropped by the missing rule.
    """

    rows: FloatArray
    clipped: int
    dropped: int


class RowRounder:
    """Rounder of batches of up to ``max_rows`` rows in one thread's own buffers."""

    def __init__(self, row_map: RowMap, max_rows: int) -> None:
        self._map = row_map
        self.max_rows = max_rows
        n_outputs = row_map.lattice.n_features
        self._rows = np.empty(max_rows * n_outputs)
        self._scratch = np.empty(max_rows * n_outputs)
        self._norms = np.empty(max_rows)
        if row_map.linear is not None:
            self._values = np.empty(max_rows * row_map.n_inputs)
            self._work = np.empty(max_rows * row_map.n_inputs)
            self._leading = np.empty(max_rows * 2 * n_outputs)
            self._image = np.empty(max_rows * n_outputs)

    def round(self, block: NDArray[Any]) -> LatticeRows:
        """Round a checked batch to lattice rows, in buffers that the next call overwrites."""
        # Overflow and NaN are expected here: they mark the rows that need special treatment.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            unclipped = self._unclipped(block)
            squares, huge, lattice = unclipped.squares, unclipped.huge, self._map.lattice
            clipped = 0
            over = ~(squares <= lattice.squared_limit)  # written so that a NaN would count as over
            over[huge.index] = True
            if over.any():
                beyond_doubt = squares > lattice.squared_beyond_doubt
                beyond_doubt[huge.index] = True
                clipped = int(np.count_nonzero(beyond_doubt))
                clip_rows(unclipped.rows, squares, over, lattice, scratch=unclipped.scratch)
        return LatticeRows(unclipped.rows, clipped, unclipped.dropped)

    def norms(self, block: NDArray[Any]) -> FloatArray:
        """Compute the norms of a batch's mapped rows before clipping, shape (n,)."""
        # In the caller's units.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            unclipped = self._unclipped(block)
            norms: FloatArray = np.sqrt(unclipped.squares) * self._map.lattice.scale
            norms[unclipped.huge.index] = unclipped.huge.norms
        return norms

    def _unclipped(self, block: NDArray[Any]) -> _Unclipped:
        """Round the mapped rows without clipping those beyond the radius."""
        if self._map.linear is not None:
            return self._round_image(block, self._map.linear)
        # Missing values and huge rows get a sum of squares of at least ``EXACT`` = 2^53.
        n_rows, order = block.shape[0], _memory_order(block)
        rows = _as_buffer(self._rows, block.shape, order)
        scratch = _as_buffer(self._scratch, block.shape, order)
        units: FloatArray | float = self._map.lattice.units_per_one if self._map.scale is None else self._map.units
        if self._map.center is None and block.dtype == np.float64:
            np.multiply(block, units, out=rows)
        else:
            self._load(block, out=rows)
            np.multiply(rows, units, out=rows)
        np.rint(rows, out=rows)
        squares = squared_norms(rows, scratch=scratch, out=self._norms[:n_rows])
        dropped, huge = 0, _HugeRows.none()
        index = np.flatnonzero(~(squares < EXACT))
        if index.size:
            values = self._load(block[index])
            dropped = fill_missing(values, self._map.missing)
            retried = np.rint(values * units)
            squares_retried = squared_norms(retried)
            still = np.flatnonzero(~(squares_retried < EXACT))
            no_exponents = np.zeros(still.size, dtype=np.int32)
            scaled = values[still] if self._map.scale is None else values[still] * self._map.scale
            huge, shrunk = _HugeRows.of(index[still], scaled, no_exponents, self._map.lattice)
            retried[still], squares_retried[still] = shrunk, huge.squares
            rows[index], squares[index] = retried, squares_retried
        return _Unclipped(rows, scratch, squares, dropped, huge)

    def _round_image(self, block: NDArray[Any], linear: SlicedMatrix) -> _Unclipped:
        """Round ``linear @ (x − center)``; missing values show in the row's largest magnitude."""
        n_rows, lattice = block.shape[0], self._map.lattice
        # Many operations here act on whole rows; for narrow rows they are fastest column by column.
        order = "F" if block.shape[1] < NARROW else _memory_order(block)
        values = _as_buffer(self._values, block.shape, order)
        work = _as_buffer(self._work, block.shape, order)
        self._load(block, out=values)
        peaks = row_peaks(values, scratch=work)
        dropped = 0
        index = np.flatnonzero(~(peaks < np.inf))
        if index.size:
            filled = values[index]
            dropped = fill_missing(filled, self._map.missing)
            values[index], peaks[index] = filled, row_peaks(filled)
        shape = (n_rows, lattice.n_features)
        image, exponents = linear.image(
            values,
            peaks,
            work=work,
            leading_out=_as_buffer(self._leading, (n_rows, 2 * lattice.n_features), order),
            out=_as_buffer(self._image, shape, order),
        )
        rows = _as_buffer(self._rows, shape, order)
        scratch = _as_buffer(self._scratch, shape, order)
        # A factor beyond 2^1000 could overflow, so it is capped. Nonzero entries of the image are at least 2^-453:
        # a row whose factor is capped is still huge, or zero, as it would be without the cap.
        largest = _MAX_FACTOR_EXPONENT - np.frexp(lattice.units_per_one)[1]
        factors = np.ldexp(lattice.units_per_one, np.minimum(exponents, largest))
        np.multiply(image, factors[:, None], out=rows)
        np.rint(rows, out=rows)
        squares = squared_norms(rows, scratch=scratch, out=self._norms[:n_rows])
        huge = _HugeRows.none()
        index = np.flatnonzero(~(squares < EXACT))
        if index.size:
            huge, shrunk = _HugeRows.of(index, image[index], exponents[index], lattice)
            rows[index], squares[index] = shrunk, huge.squares
        return _Unclipped(rows, scratch, squares, dropped, huge)

    def _load(self, block: NDArray[Any], *, out: FloatArray | None = None) -> FloatArray:
        """Compute ``block − center`` in float64, elementwise."""
        if out is None:
            out = np.empty(block.shape)
        if self._map.center is not None and block.dtype == np.float64:
            np.subtract(block, self._map.center, out=out)
            return out
        np.copyto(out, block)
        if self._map.center is not None:
            np.subtract(out, self._map.center, out=out)
        return out


@dataclass(frozen=True, eq=False)
class _Unclipped:
    """Integer rows and their exact sums of squares, before the clip; all finite."""

    rows: FloatArray
    scratch: FloatArray
    squares: FloatArray
    dropped: int
    huge: _HugeRows


@dataclass(frozen=True, eq=False)
class _HugeRows:
    """Rows too long for an exact sum of squares: indices, scaled sums of squares, and norms."""

    index: NDArray[np.intp]
    squares: FloatArray
    norms: FloatArray

    @classmethod
    def none(cls) -> _HugeRows:
        return cls(np.empty(0, np.intp), np.empty(0), np.empty(0))

    @classmethod
    def of(
        cls, index: NDArray[np.intp], values: FloatArray, exponents: NDArray[np.int32], lattice: Lattice
    ) -> tuple[_HugeRows, FloatArray]:
        """Scale finite rows by powers of two so that the largest entry is in [2^(k−1), 2^k); round."""
        shifts = lattice.peak_bits - np.frexp(row_peaks(values))[1]
        shrunk = np.rint(values * np.ldexp(1.0, shifts)[:, None])
        squares = squared_norms(shrunk)
        return cls(index, squares, np.ldexp(np.sqrt(squares), exponents - shifts)), shrunk


def _memory_order(block: NDArray[Any]) -> Literal["C", "F"]:
    """Return the batch's memory order: buffers in the same order are filled fastest."""
    return "F" if abs(block.strides[0]) < abs(block.strides[1]) else "C"


def _as_buffer(flat: FloatArray, shape: tuple[int, ...], order: Literal["C", "F"]) -> FloatArray:
    """Return a view of the start of a flat buffer with this shape, contiguous in this order."""
    return flat[: shape[0] * shape[1]].reshape(shape, order=order)
