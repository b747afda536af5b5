"""The lattice rows of one block, for tests of the encoding: exactly those that the kernel sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmoments.rows.rounding import RowMap, RowRounder
from dpmoments.rows.summary import Missing, blas_threads, checked_block


def lattice_rows(
    block: NDArray[Any],
    *,
    bits: int = 20,
    radius: float = 1.0,
    center: ArrayLike | None = None,
    linear: ArrayLike | None = None,
    missing: Missing = "error",
) -> NDArray[np.float64]:
    """Integer-valued rows (n, k); the arguments are those of ``exact_moments``."""
    n_rows, n_features = block.shape
    checked = checked_block(block, n_features)
    row_map = RowMap.of(n_features, bits=bits, radius=radius, center=center, linear=linear, missing=missing)
    with blas_threads(1):
        return RowRounder(row_map, max(n_rows, 1)).round(checked).rows.copy()
