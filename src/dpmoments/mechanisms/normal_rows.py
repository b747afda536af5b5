"""What is known beforehand of normal rows, and of normal noise: tail bounds in closed form."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpmoments.papers.bounds.arguments import check_probability

__all__ = ["normal_matrix_norm", "normal_norm_square", "normal_second_moment_error", "normal_smallest_eigenvalue"]


def normal_norm_square(n_features: int, failure: float) -> float:
    """γ² = d + 2√(d ln(1/β)) + 2 ln(1/β): a normal row's ‖w‖² exceeds it with probability ≤ β (Laurent & Massart 2000)."""
    log = math.log(1.0 / failure)
    return n_features + 2.0 * math.sqrt(n_features * log) + 2.0 * log


def normal_matrix_norm(n_features: int, failure: float) -> float:
    """√(2d) + √(2 ln(2/β)), which the norm of a symmetric normal matrix exceeds with probability ≤ β.

    Its standard deviation is 1 on the diagonal and 1/√2 off it: Gaussian concentration about E‖N‖ ≤ √(2d).
    """
    return math.sqrt(2.0 * n_features) + math.sqrt(2.0 * math.log(2.0 / failure))


def normal_second_moment_error(n_rows: float, n_features: int, failure: float) -> float:
    """2s + s², s = √(d/n) + √(2 ln(2/β)/n), which ‖Σ̂ − I‖ exceeds with probability ≤ β (Davidson & Szarek 2001)."""
    error = math.sqrt(n_features / n_rows) + math.sqrt(2.0 * math.log(2.0 / failure) / n_rows)
    return 2.0 * error + error**2


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
    check_probability(failure)
    root = math.sqrt(max(n_rows - 1, 0)) - math.sqrt(len(matrix)) - math.sqrt(-2.0 * math.log(failure))
    return least * max(root, 0.0) ** 2
