"""What a block may hold, and what becomes of cells that are not finite numbers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Missing", "checked_block", "fill_missing"]

Missing = Literal["error", "center", "drop"]


def checked_block(block: object, n_features: int) -> NDArray[Any]:
    """Refuse what is not a block of rows.

    Parameters
    ----------
    block : ndarray, shape (n, n_features)
        bool, integer or floating point of at most 64 bits. Integers beyond 2^53 become the nearest float64.
    n_features : int

    Raises
    ------
    TypeError
        If it is not an array, is masked (the mask would be lost), or holds something other than real numbers.
    ValueError
        If it has the wrong number of dimensions or columns. The number of rows is private and not shown.
    """
    if not isinstance(block, np.ndarray):
        raise TypeError(f"a block must be a NumPy array, got {type(block).__name__}")
    if isinstance(block, np.ma.MaskedArray):
        raise TypeError("a block must not be a masked array: fill masked cells with NaN and choose `missing`")
    if block.dtype.kind not in "biuf" or block.dtype.itemsize > 8:
        raise TypeError(f"a block must hold integers, float32 or float64, got dtype {block.dtype}")
    if block.ndim != 2:
        raise ValueError(f"a block must be two-dimensional, got {block.ndim} dimensions (one array: [array])")
    if block.shape[1] != n_features:
        raise ValueError(f"a block must have {n_features} columns, got {block.shape[1]}")
    return np.asarray(block)


def fill_missing(values: NDArray[np.float64], missing: Missing) -> int:
    """Apply the rule for NaN and infinite cells, in place.

    Parameters
    ----------
    values : ndarray, shape (n, d)
        Cells less the center: 0 is the center.
    missing : {"error", "center", "drop"}

    Returns
    -------
    int
        Rows dropped, that is, set to zeros.

    Raises
    ------
    ValueError
        If a cell is missing under ``"error"``. The message holds nothing of the row.

    Examples
    --------
    >>> values = np.array([[np.nan, 1.0], [2.0, 3.0]])
    >>> fill_missing(values, "drop"), values.tolist()
    (1, [[0.0, 0.0], [2.0, 3.0]])
    """
    finite = np.isfinite(values)
    if finite.all():
        return 0
    if missing == "error":
        raise ValueError("a cell is NaN or infinite and missing='error': clean the rows, or choose 'center' or 'drop'")
    if missing == "center":
        values[~finite] = 0.0
        return 0
    lost = ~finite.all(axis=1)
    values[lost] = 0.0
    return int(np.count_nonzero(lost))
