"""What is known beforehand of a table whose rows are normal with a known covariance."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["normal_smallest_eigenvalue"]


def normal_smallest_eigenvalue(covariance: npt.ArrayLike, n_rows: int, *, failure: float = 1e-9) -> float:
    r"""A bound that the smallest eigenvalue of the Gram matrix of normal rows passes, except with a stated probability.

    :math:`\lambda_{\min}(\Sigma) (\sqrt{n - 1} - \sqrt d - \sqrt{2 \ln(1/\beta)})_+^2`, whatever the rows' mean. It serves as
    ``smallest_eigenvalue`` of the mechanisms ``johnson-lindenstrauss`` and ``inverse-wishart``, whose guarantee does not rest
    on it: rows of another law cost accuracy, not privacy.

    Parameters
    ----------
    covariance : array of shape (d, d)
        Σ, in the units of the Gram matrix: those in which rows are encoded, for a mechanism.
    n_rows : int
    failure : float
        β.

    Returns
    -------
    float
        0 where there are too few rows.

    Raises
    ------
    ValueError
        If the covariance is not a symmetric positive semi-definite matrix, or ``failure`` no probability.

    Notes
    -----
    Centred rows have the Gram matrix Σ^{1/2}WΣ^{1/2}, W ~ Wishart(I, n − 1), and their mean adds to it. The least singular value
    of an m × d matrix of standard normals is at least √m − √d − t, but with probability e^{−t²/2} (Davidson & Szarek 2001).
    Sheffet (2015), Corollary B.2, second part, has the case of mean 0.

    Examples
    --------
    >>> round(normal_smallest_eigenvalue([[0.04, 0.01], [0.01, 0.09]], 10_000), 1)
    323.3
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T, rtol=1e-9):
        raise ValueError(f"covariance must be a symmetric matrix, got shape {matrix.shape}")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < 0.0:
        raise ValueError("covariance must be positive semi-definite: it has a negative eigenvalue")
    if not 0.0 < failure < 1.0:
        raise ValueError(f"failure={failure!r} is a probability, above 0 and below 1")
    root = math.sqrt(max(n_rows - 1, 0)) - math.sqrt(len(matrix)) - math.sqrt(-2.0 * math.log(failure))
    return least * max(root, 0.0) ** 2
