"""Matrices that a user gives as an option."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["positive_definite"]


def positive_definite(value: npt.ArrayLike, what: str) -> tuple[tuple[float, ...], ...]:
    """The rows of a symmetric positive definite matrix as plain floats, which a frozen option can hold.

    Raises
    ------
    ValueError
        If it is anything else; the message calls it ``what``.

    Examples
    --------
    >>> positive_definite([[2, 1], [1, 2]], "the anchor")
    ((2.0, 1.0), (1.0, 2.0))
    """
    matrix = np.array(value, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"{what} must be a finite square matrix, got shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
        raise ValueError(f"{what} must be symmetric")
    if not float(np.linalg.eigvalsh(matrix)[0]) > 0.0:
        raise ValueError(
            f"{what} must be positive definite: it has an eigenvalue that is not positive, a direction of which it says nothing"
        )
    return tuple(tuple(row) for row in matrix.tolist())
