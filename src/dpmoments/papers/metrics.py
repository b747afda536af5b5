"""Errors of estimates, as the papers report them.

They need the exact moments, so they are for public and synthetic tables, and for a curator's own use: **an error measured on a
private table is not private**, and no budget pays for it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.checks import check_finite, check_not_negative, check_positive, check_vector, symmetric_part
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray

ASYMMETRY = 1e-9
"""Largest |M − Mᵀ| attributed to rounding, as a fraction of the largest entry."""


def normalized_frobenius_error(estimate: npt.ArrayLike, reference: npt.ArrayLike, *, n_rows: float = 1.0) -> float:
    """Return ‖Ĝ − G‖_F / n: the error of Amin et al. (2019), section 4.

    Both are symmetric: sums Σ x xᵀ with the number of rows in ``n_rows``, or moments that are averages already.

    >>> normalized_frobenius_error([[13.0, 4.0], [4.0, 2.0]], [[10.0, 4.0], [4.0, 6.0]], n_rows=100)
    0.05
    """
    check_positive("n_rows", n_rows)
    return float(np.linalg.norm(_difference(estimate, reference)) / n_rows)


def spectral_error(estimate: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Return ‖Ĉ − C‖₂ of symmetric matrices: the largest error of the variance of a direction.

    The norm of Kapralov & Talwar (2013) and of Lemma 1 of Amin et al. (2019).

    >>> spectral_error([[3.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 2.0]])
    2.0
    """
    return float(np.abs(np.linalg.eigvalsh(_difference(estimate, reference))).max())


def mahalanobis_error(estimate: npt.ArrayLike, reference: npt.ArrayLike) -> float:
    """Return ‖Σ^{−1/2} Σ̂ Σ^{−1/2} − I‖_F, the error of a covariance relative to the truth.

    ``reference`` is Σ, positive definite. Unchanged if x becomes Mx + m for an invertible M. Source: Biswas et al.
    (2020), section 1.2; ‖Σ̂ − Σ‖_Σ in lecture 18 (``docs/evidence/notation.md``), section 2.

    >>> mahalanobis_error([[8.0, 0.0], [0.0, 1.0]], [[4.0, 0.0], [0.0, 1.0]])
    1.0
    """
    difference, (scale, root) = _difference(estimate, reference), _root(_symmetric(reference, "reference"))
    half = np.linalg.solve(root, difference / np.outer(scale, scale))
    return float(np.linalg.norm(np.linalg.solve(root, half.T)))


def mahalanobis_mean_error(
    estimate: npt.ArrayLike, reference: npt.ArrayLike, covariance: npt.ArrayLike | None = None
) -> float:
    """Return ‖Σ^{−1/2}(μ̂ − μ)‖₂, the error of a mean in standard deviations of the rows.

    ``covariance`` is Σ, positive definite; with the identity, the default, it is the Euclidean error. Source: Biswas et
    al. (2020), sections 1.2 and 3.

    >>> mahalanobis_mean_error([3.0, 4.0], [0.0, 0.0]), mahalanobis_mean_error([3.0, 0.0], [0.0, 0.0], [[9, 0], [0, 1]])
    (5.0, 1.0)
    """
    difference, other = _vector(estimate, "estimate"), _vector(reference, "reference")
    if difference.shape != other.shape:
        raise _shapes_differ("estimate", difference, "reference", other)
    difference = difference - other
    if covariance is not None:
        matrix = _symmetric(covariance, "covariance")
        if matrix.shape != (len(difference),) * 2:
            raise _shapes_differ("covariance", matrix, "estimate", difference)
        scale, root = _root(matrix, "covariance")
        difference = np.linalg.solve(root, difference / scale).astype(np.float64, copy=False)
    return float(np.linalg.norm(difference))


def principal_angles(estimate: npt.ArrayLike, reference: npt.ArrayLike) -> FloatArray:
    """Return the principal angles between two subspaces, in radians, in ascending order.

    Linearly independent columns span the subspaces, shapes (d, k) and (d, l); for
    :class:`~dpmoments.analysis.components.PrincipalComponents` pass ``components.T``. All angles are 0 if they span the
    same space; the cosine of the angle between two single vectors is their absolute inner product, as Biswas et al.
    (2020) report it in section 4.2. Angles near 0 and near π/2 are equally accurate (Knyazev & Argentati 2002).

    >>> principal_angles([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0], [2.0, 0.0]]).round(4)
    array([0.    , 1.5708])
    """
    first, second = _columns(estimate, "estimate"), _columns(reference, "reference")
    if len(first) != len(second):
        raise _shapes_differ("estimate", first, "reference", second)
    return np.asarray(scipy.linalg.subspace_angles(first, second)[::-1], dtype=np.float64)


def excess_ridge_risk(
    coefficients: npt.ArrayLike, second_moment: npt.ArrayLike, cross_moment: npt.ArrayLike, *, alpha: float = 0.0
) -> float:
    """Return F(ŵ) − min F, F(w) = ‖Xw − y‖²/(2n) + α‖w‖².

    The loss of a ridge fit on the table itself: ``coefficients`` are ŵ, ``second_moment`` is S = XᵀX/n of the features
    (their covariance, for a fit with an intercept), and ``cross_moment`` Xᵀy/n: ½(ŵ − w)ᵀ(S + 2αI)(ŵ − w), w the
    minimizer. The objective is of Amin et al. (2019), section 1.1; at α = 0 twice the value is the excess mean squared
    error on the rows.

    >>> excess_ridge_risk([1.0, 0.0], [[1.0, 0.0], [0.0, 4.0]], [2.0, 0.0])
    0.5
    """
    check_not_negative("alpha", alpha)
    moment, cross = _symmetric(second_moment, "second_moment"), _vector(cross_moment, "cross_moment")
    weights = _vector(coefficients, "coefficients")
    if weights.shape != cross.shape:
        raise _shapes_differ("coefficients", weights, "cross_moment", cross)
    if moment.shape != cross.shape * 2:
        raise _shapes_differ("second_moment", moment, "cross_moment", cross)
    system = moment + 2.0 * alpha * np.eye(len(moment))
    scale, root = _root(system, "second_moment + 2·alpha·I")
    # ŵ − w = System⁻¹(System·ŵ − c), so that only the residual is divided by small eigenvalues.
    residual = np.linalg.solve(root, (system @ weights - cross) / scale)
    return 0.5 * float(residual @ residual)


def _symmetric(value: npt.ArrayLike, name: str) -> FloatArray:
    matrix = np.asarray(value, dtype=np.float64)
    symmetric_part(matrix, name, tolerance=ASYMMETRY)
    return matrix


def _vector(value: npt.ArrayLike, name: str) -> FloatArray:
    vector = np.asarray(value, dtype=np.float64)
    check_vector(name, vector)
    return vector


def _columns(value: npt.ArrayLike, name: str) -> FloatArray:
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim != 2 or not 1 <= matrix.shape[1] <= matrix.shape[0]:
        raise InputValueError(
            f"{name} has shape {matrix.shape}: give shape (d, k) with k ≤ d, one column per basis vector"
        )
    check_finite(name, matrix)
    lengths = np.linalg.norm(matrix, axis=0)
    singular = np.linalg.svd(matrix / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
    if not singular[-1] > len(matrix) * np.finfo(np.float64).eps:
        raise InputValueError(
            f"the columns of {name} are linearly dependent: give as many as the subspace has dimensions"
        )
    return matrix


def _shapes_differ(first: str, array: FloatArray, second: str, other: FloatArray) -> InputValueError:
    return InputValueError(f"{first} has shape {array.shape} and {second} {other.shape}, which do not fit each other")


def _difference(estimate: npt.ArrayLike, reference: npt.ArrayLike) -> FloatArray:
    result, other = _symmetric(estimate, "estimate"), _symmetric(reference, "reference")
    if result.shape != other.shape:
        raise _shapes_differ("estimate", result, "reference", other)
    return result - other


def _root(matrix: FloatArray, name: str = "reference") -> tuple[FloatArray, FloatArray]:
    """Return standard deviations s and the Cholesky factor L of the correlations."""
    # The matrix is diag(s) L Lᵀ diag(s).
    diagonal = np.diagonal(matrix)
    if (diagonal > 0).all():
        scale = np.sqrt(diagonal)
        correlations = matrix / np.outer(scale, scale)
        if float(np.linalg.eigvalsh(correlations)[0]) > len(matrix) * np.finfo(np.float64).eps:
            return scale, np.linalg.cholesky(correlations)
    raise InputValueError(
        f"{name} is singular or has a negative eigenvalue, so an error relative to it is undefined: drop "
        "features that are constant or sums of others, use the Frobenius or spectral error of moments (no "
        "inverse needed), or raise alpha for the risk of a ridge fit"
    )
