"""The synthetic tables of the papers: correlated rows in the unit ball, and rows of heavy tails."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray


def amin_synthetic(
    n_rows: int,
    n_features: int,
    rng: np.random.Generator,
    *,
    columns: Literal["standardized", "centered", "drawn"] = "standardized",
    scaling: Literal["unit", "largest"] = "unit",
) -> NDArray[np.float64]:
    """Correlated Gaussian rows of norm 1: Algorithm 3 of Amin et al. 2019, appendix C.1.

    With Z an ``(n_rows, n_features)`` standard normal matrix and U an ``(n_features, n_features)`` matrix of
    independent uniforms on [0, 1), drawn in this order, X = ZU. Its columns are then brought to mean 0 and variance 1
    (`columns`), and its rows to norm 1 (`scaling`). U has positive entries, so all features are positively correlated:
    one eigenvalue of the second moment stands far above the others.

    Parameters
    ----------
    n_rows, n_features
        Shape of the table, each at least 1.
    rng
        Source of the randomness. The table is test data: it needs no cryptographic generator.
    columns
        What is done to the columns of this sample before its rows are scaled. "standardized": mean 0 and variance 1
        (population; a column that does not vary, which only ``n_rows = 1`` gives, becomes 0). "centered": mean 0.
        "drawn": nothing.
    scaling
        "unit" divides every row by its own norm, so every row has norm 1 (a zero row, which only ``n_rows =
        1`` with columns about their mean gives, stays zero). "largest" divides all rows by the largest norm, which
        keeps their ratios.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Rows of norm at most 1, up to rounding; `Schema.unit_ball` fits them.

    Raises
    ------
    ValueError
        If a size is below 1, or `columns` or `scaling` is unknown.

    Notes
    -----
    **The reading.** In the paper a column of its d × n matrix is a person, and ``Normalize`` is said to give every
    column mean 0, variance 1 and norm 1. No column can have all three: mean 0 and variance 1 make its norm √d. So they
    are taken of different things: norm 1 of the person, since that is what the privacy guarantee asks for, and mean 0
    and variance 1 of the feature, which is what standardising a table means. The norm comes last. In the other order
    rows would be longer than 1; in this one the variances are no longer exactly 1, nor the means 0. The paper mixes
    features by UX, which in our rows is ZUᵀ; U and Uᵀ have one law.

    "centered" follows the released code of Dong, Liang & Yi 2022 ("Differentially Private Covariance Revisited"),
    which generates X = ZU, centres it and scales the rows; with "unit" it is their case of one norm bucket.

    Examples
    --------
    >>> import numpy as np
    >>> rows = amin_synthetic(1000, 5, np.random.default_rng(0))
    >>> rows.shape, bool(np.allclose(np.linalg.norm(rows, axis=1), 1.0))
    ((1000, 5), True)
    """
    _require_sizes(n_rows, n_features)
    if columns not in ("standardized", "centered", "drawn"):
        raise ValueError(f"columns must be 'standardized', 'centered' or 'drawn'; got {columns!r}")
    if scaling not in ("unit", "largest"):
        raise ValueError(f"scaling must be 'unit' or 'largest'; got {scaling!r}")
    normals = rng.standard_normal((n_rows, n_features))
    mixing = rng.random((n_features, n_features))
    rows: NDArray[np.float64] = normals @ mixing
    if columns != "drawn":
        rows -= rows.mean(axis=0)
    if columns == "standardized" and n_rows > 1:
        rows /= rows.std(axis=0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    if scaling == "largest":
        norms = np.full_like(norms, norms.max())
    return rows / np.where(norms > 0.0, norms, 1.0)


def multivariate_laplace(n_rows: int, n_features: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows of the symmetric multivariate Laplace law, of mean 0 and covariance I.

    A row is √W·z with z standard normal and W exponential of mean 1, independent: spherically symmetric, with coordinates that
    are Laplace of variance 1 and uncorrelated but not independent (one large coordinate goes with other large ones).

    Parameters
    ----------
    n_rows, n_features
        Shape of the table, each at least 1.
    rng
        Source of the randomness. The table is test data: it needs no cryptographic generator.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Raises
    ------
    ValueError
        If a size is below 1.

    Notes
    -----
    Named without a formula in Biswas et al. 2020 (CoinPress), section 3, Figure 5; the code released with that paper draws
    independent Laplace coordinates in its place.

    Examples
    --------
    >>> import numpy as np
    >>> rows = multivariate_laplace(100_000, 2, np.random.default_rng(0))
    >>> bool(np.allclose(np.cov(rows.T), np.eye(2), atol=0.05))
    True
    """
    _require_sizes(n_rows, n_features)
    rows: NDArray[np.float64] = rng.standard_normal((n_rows, n_features)) * np.sqrt(
        rng.standard_exponential((n_rows, 1))
    )
    return rows


def multivariate_student(
    n_rows: int, n_features: int, rng: np.random.Generator, *, degrees: float = 3.0
) -> NDArray[np.float64]:
    """Rows of the multivariate Student t law, of mean 0 and covariance I.

    A row is z·√((ν − 2)/V) with z standard normal and V a χ² of ν degrees of freedom, independent: spherically symmetric, with
    coordinates that are Student t of ν degrees, scaled to variance 1.

    Parameters
    ----------
    n_rows, n_features
        Shape of the table, each at least 1.
    rng
        Source of the randomness. The table is test data: it needs no cryptographic generator.
    degrees
        ν, above 2: there is no covariance at 2 or below.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Raises
    ------
    ValueError
        If a size is below 1, or `degrees` is not above 2.

    Notes
    -----
    With ν = 3, Figure 5 of Biswas et al. 2020 (CoinPress), section 3, by its text; the code released with that paper draws
    independent coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> rows = multivariate_student(100_000, 2, np.random.default_rng(0), degrees=8.0)
    >>> bool(np.allclose(np.cov(rows.T), np.eye(2), atol=0.05))
    True
    """
    _require_sizes(n_rows, n_features)
    if not degrees > 2.0:
        raise ValueError(f"degrees={degrees!r} must be above 2: below, the law has no covariance")
    squares = rng.chisquare(degrees, (n_rows, 1))
    rows: NDArray[np.float64] = rng.standard_normal((n_rows, n_features)) * np.sqrt((degrees - 2.0) / squares)
    return rows


def _require_sizes(n_rows: int, n_features: int) -> None:
    if n_rows < 1 or n_features < 1:
        raise ValueError(f"n_rows and n_features must be at least 1; got {n_rows} and {n_features}")
