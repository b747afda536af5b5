"""Matrix product rows @ matrixᵀ in which a row's result has the same bits wherever the row stands in a block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["SlicedMatrix", "row_peaks"]

_MAX_ENTRY = 1e120
# Exponents are not taken below these: smaller values are split on a fixed grid, so that 2^(p − e) cannot overflow.
_LEAST_EXPONENT = -900
_LEAST_MATRIX_EXPONENT = -400


@dataclass(frozen=True, eq=False)
class SlicedMatrix:
    """A k × d matrix cut into slices of p-bit integers, so that products with rows are exact.

    With p = ⌊(53 − ⌈log₂ d⌉)/2⌋, a row v is written ``v ≈ 2^(e−p) (V₁ + 2^(−p−1) V₂)`` and a row of the
    matrix ``a ≈ 2^(g−p) (B₁ + 2^(−p−1) B₂)``, with integers of magnitude ≤ 2^p and e, g the binary exponents
    of the largest entries. Each of V₁B₁ᵀ, V₁B₂ᵀ and V₂B₁ᵀ is a sum of d products of at most 2^(2p), hence
    exact in whatever order a BLAS adds them; the three are then added elementwise, in a fixed order. A BLAS
    product of v and a themselves would round differently at the edge of a block than inside it, so that the
    presence of one row could change the bits of another.

    Error of an entry: at most ``3 d 2^(−2p) max|v| max|a|`` (``docs/derivations/exact-sums.md``, section 5).

    Attributes
    ----------
    slice_bits : int
        p.
    leading : ndarray, shape (d, 2k)
        ``2^(g−p) [B₁ᵀ, 2^(−p−1) B₂ᵀ]``, by which V₁ is multiplied.
    trailing : ndarray, shape (d, k)
        ``2^(g−2p−1) B₁ᵀ``, by which V₂ is multiplied.
    """

    slice_bits: int
    leading: NDArray[np.float64]
    trailing: NDArray[np.float64]

    @classmethod
    def of(cls, matrix: ArrayLike) -> SlicedMatrix:
        """Cut a matrix into slices.

        Parameters
        ----------
        matrix : array_like, shape (k, d)
            Public, or computed from earlier noisy outputs. Entries of magnitude up to 1e120.

        Raises
        ------
        ValueError
            If it is not a finite two-dimensional array of such entries, or d exceeds 2^13.
        """
        entries = np.array(matrix, dtype=np.float64)
        if entries.ndim != 2 or entries.shape[0] < 1 or entries.shape[1] < 1:
            raise ValueError(f"the matrix must be two-dimensional and not empty, got shape {entries.shape}")
        if not np.all(np.abs(entries) <= _MAX_ENTRY):
            raise ValueError(f"the matrix must have finite entries of magnitude at most {_MAX_ENTRY:g}")
        n_inner = entries.shape[1]
        slice_bits = (53 - (n_inner - 1).bit_length()) // 2
        if slice_bits < 20:
            raise ValueError(f"{n_inner} columns are too many for an accurate exact product; at most 8192")
        exponents = np.maximum(np.frexp(row_peaks(entries))[1], _LEAST_MATRIX_EXPONENT)[:, None]
        scaled = entries * np.ldexp(1.0, slice_bits - exponents)
        first = np.rint(scaled)
        second = np.rint((scaled - first) * 2.0 ** (slice_bits + 1))
        unit, fine_unit = np.ldexp(1.0, exponents - slice_bits), np.ldexp(1.0, exponents - 2 * slice_bits - 1)
        leading = np.ascontiguousarray(np.vstack([first * unit, second * fine_unit]).T)
        trailing = np.ascontiguousarray((first * fine_unit).T)
        return cls(slice_bits, leading, trailing)

    @property
    def n_inputs(self) -> int:
        """d."""
        return int(self.leading.shape[0])

    @property
    def n_outputs(self) -> int:
        """k."""
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
        """The matrix times each row, as float64 values and, for each row, the exponent of a power of two to multiply by.

        Parameters
        ----------
        values : ndarray, shape (n, d)
            Finite; **overwritten**.
        peaks : ndarray, shape (n,)
            Largest magnitude of each row, from :func:`row_peaks`.
        work : ndarray, shape (n, d), optional
        leading_out : ndarray, shape (n, 2k), optional
        out : ndarray, shape (n, k), optional
            Overwritten; they save allocations.

        Returns
        -------
        image : ndarray, shape (n, k)
        exponents : ndarray of int32, shape (n,)
            ``values @ matrix.T ≈ image · 2^exponents``; kept apart so that rows of 1e300 do not overflow.
        """
        exponents = np.maximum(np.frexp(peaks)[1], _LEAST_EXPONENT) - self.slice_bits
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
    """Largest magnitude in each row, NaN where the row has one.

    Parameters
    ----------
    values : ndarray, shape (n, d)
    scratch : ndarray, shape (n, d), optional

    Returns
    -------
    ndarray, shape (n,)

    Examples
    --------
    >>> row_peaks(np.array([[1.0, -3.0], [0.0, np.nan]]))
    array([ 3., nan])
    """
    peaks: NDArray[np.float64] = np.maximum.reduce(np.abs(values, out=scratch), axis=1)
    return peaks
