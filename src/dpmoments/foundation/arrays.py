"""Array types, bordered matrices, and the order of sizes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntegerArray: TypeAlias = npt.NDArray[Any]
"""int64, or Python integers in an object array if int64 could overflow."""


def bordered(corner: float, side: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return [[corner, sideᵀ], [side, matrix]], such as a Gram matrix with sums and a count."""
    return np.block([[np.array([[corner]]), side[None, :]], [side[:, None], matrix]])


def largest_first(sizes: FloatArray) -> IntegerArray:
    """Return the order from the largest size down; equal ones but for rounding keep theirs."""
    # Such as those of the two levels of a column: which of them is larger depends on the processor.
    mantissas, exponents = np.frexp(sizes)
    return np.argsort(-np.ldexp(np.round(mantissas * 2.0**30), exponents), kind="stable")
