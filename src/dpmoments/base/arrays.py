"""Array types, bordered matrices, and the order of sizes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntegerArray: TypeAlias = npt.NDArray[Any]
"""int64, or Python integers in an object array if int64 could overflow."""


ROUNDING = 1e-9
"""Relative difference up to which sizes count as equal: processors round differently."""


def bordered(corner: float, side: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return [[corner, sideᵀ], [side, matrix]], such as a Gram matrix with sums and a count."""
    return np.block([[np.array([[corner]]), side[None, :]], [side[:, None], matrix]])


def first_largest(sizes: FloatArray) -> IntegerArray:
    """Return the place of the largest size, the first of those equal but for rounding."""
    # Such as those of the two levels of a column: which of them is larger depends on the processor.
    largest = sizes.max(axis=-1, keepdims=True)
    return np.asarray(np.argmax(sizes >= largest - ROUNDING * np.abs(largest), axis=-1))


def directions_of(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, largest first, and its directions as rows."""
    # Any basis belongs to eigenvalues that are equal but for rounding, such as zeros: the features' order decides.
    eigenvalues, vectors = np.linalg.eigh(matrix)
    rounding = 256.0 * np.finfo(float).eps * np.abs(eigenvalues).max(initial=0.0)
    apart = np.flatnonzero(np.diff(eigenvalues) > rounding) + 1
    for equal in np.split(np.arange(len(eigenvalues)), apart):
        if len(equal) > 1:
            own = vectors[:, equal]
            vectors[:, equal] = own @ np.linalg.eigh(own.T @ (np.arange(len(own))[:, None] * own))[1]
    return eigenvalues[::-1], vectors.T[::-1]


def leading_positive(rows: FloatArray) -> FloatArray:
    """Return rows, (p, k), each times the sign of its largest entry."""
    leading = np.take_along_axis(rows, first_largest(np.abs(rows))[:, None], axis=1)
    return np.where(leading < 0.0, -rows, rows)


def largest_first(sizes: FloatArray) -> IntegerArray:
    """Return the order from the largest size down; equal ones but for rounding keep theirs."""
    mantissas, exponents = np.frexp(sizes)
    return np.argsort(-np.ldexp(np.round(mantissas * 2.0**30), exponents), kind="stable")
