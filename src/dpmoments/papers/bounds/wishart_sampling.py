"""Distances of the regressions of Sheffet (2015) from the table's, with every constant.

Coefficients of the target on k features, without an intercept: β on the table, β̃ on the release. Σ is the matrix drawn
around, G + ψI; its own coefficients are ridge coefficients with penalty ψ. Derivations:
``docs/evidence/derivations/utility-bounds-wishart.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy

from dpmoments.base.checks import check_positive
from dpmoments.base.errors import InputValueError
from dpmoments.moments.spectral import normal_norm_quantile
from dpmoments.papers.bounds.arguments import checked
from dpmoments.papers.models import wishart_eigenvalue_range
from dpmoments.privacy.curves import wishart_sampling_padding
from dpmoments.privacy.unit import Neighbors


@checked
def projected_ridge_radius(n_coefficients: int, degrees: float, failure: float) -> float:
    """Return q with P(‖Σ_AA^½(β̃ − β)‖ > q√s) = ``failure`` for a Wishart draw around Σ.

    Theorem 3.2, exactly: the ratio of squares is χ²_k/χ²_{r−k+1}. The coefficients are k = ``n_coefficients``, the
    projection has r = ``degrees`` ≥ k rows, and s = Σ_yy·A is the squared length of the residuals of β, ridge rows
    included.

    >>> round(projected_ridge_radius(5, 100, 0.05), 3), round(projected_ridge_radius(5, 10_000, 0.05), 4)
    (0.347, 0.0333)
    """
    return _ratio_root(n_coefficients, degrees - n_coefficients + 1.0, failure)


@checked
def posterior_draw_radius(n_coefficients: int, degrees: float, dimension: int, failure: float) -> float:
    """Return the radius for an inverse Wishart draw with ν = ``degrees`` (Theorem 5.1).

    The ratio is χ²_k/χ²_{ν−D+k+1}, D = ``dimension`` the rows of Σ.

    >>> round(posterior_draw_radius(5, 100, 6, 0.05), 3), round(posterior_draw_radius(5, 10_000, 6, 0.05), 4)
    (0.34, 0.0333)
    """
    return _ratio_root(n_coefficients, degrees - dimension + n_coefficients + 1.0, failure)


@checked
def released_coefficient_radius(
    n_coefficients: int, degrees: float, residual: float, failure: float, *, dimension: int | None = None
) -> float:
    """Return the radius of ‖M_AA^½(β̃ − β)‖, exactly at its level: the F test of a regression.

    M is released with its padding kept, ``residual`` is M_yy·A = M_yy − M_yA M_AA⁻¹ M_Ay, and ``dimension`` is D of an
    inverse Wishart draw, None for a projection.

    >>> round(released_coefficient_radius(5, 100, 4.0, 0.05), 3)
    0.697
    """
    k = n_coefficients
    effective = degrees if dimension is None else degrees - dimension + k + 1.0
    return _ratio_root(k, effective - k, failure) * math.sqrt(residual)


@checked
def ridge_distance_bound(coefficients_norm: float, penalty: float, smallest_eigenvalue: float) -> float:
    """Bound the distance of ridge coefficients from least squares: λ‖β‖/(λ + λ_min(G_AA)).

    >>> ridge_distance_bound(1.0, 10.0, 90.0)
    0.1
    """
    check_positive("penalty + smallest_eigenvalue", penalty + smallest_eigenvalue)
    return penalty * coefficients_norm / (penalty + smallest_eigenvalue)


@dataclass(frozen=True, slots=True)
class ProjectionBound:
    """Bound on the coefficients of a projection, before there is any data."""

    padding: float  # ψ that the budget requires
    sampling: float  # ‖β̃ − β_ψ‖, the effect of the draw
    shrinkage: float  # ‖β_ψ − β‖, the effect of the padding; 0 if it is subtracted

    @property
    def total(self) -> float:
        """Bound on ‖β̃ − β‖."""
        return self.sampling + self.shrinkage


@checked
def johnson_lindenstrauss_bound(
    n_rows: int,
    smallest_eigenvalue: float,
    residual_variance: float,
    coefficients_norm: float,
    n_coefficients: int,
    *,
    epsilon: float,
    delta: float,
    degrees: int,
    failure: float,
    neighbors: Neighbors | str = "add_remove",
    padding_subtracted: bool = False,
    row_norm_square: float = 1.0,
) -> ProjectionBound:
    """Bound the error of ridge regression by a projection, from public numbers.

    ``smallest_eigenvalue`` is of the features' second moment G_AA/n, or less; ``residual_variance`` and
    ``coefficients_norm`` are the mean square of the residuals of β and ‖β‖, or more; ``row_norm_square`` is 1, or 1 +
    w² with count and mean.

    >>> budget = dict(epsilon=1.0, delta=1e-6, degrees=256, failure=0.05)
    >>> bound = johnson_lindenstrauss_bound(100_000, 0.05, 0.01, 0.5, 5, **budget)
    >>> round(bound.padding, 1), round(bound.sampling, 3), round(bound.shrinkage, 4)
    (53.4, 0.097, 0.0053)
    """
    curve = wishart_sampling_padding(epsilon, delta, degrees, Neighbors.of(neighbors))
    padding = row_norm_square * curve
    least = n_rows * smallest_eigenvalue
    # the residuals of β, ridge rows of features and target included, are at least as long as those of β_ψ
    residual = math.sqrt(n_rows * residual_variance + padding * (1.0 + coefficients_norm**2))
    scale = math.sqrt(least + padding)
    if not padding_subtracted:
        radius = projected_ridge_radius(n_coefficients, degrees, failure)
        shrinkage = ridge_distance_bound(coefficients_norm, padding, least)
        return ProjectionBound(padding, radius * residual / scale, shrinkage)
    low, high = wishart_eigenvalue_range(n_coefficients + 1, degrees, failure)
    spread = max(1.0 - low / degrees, high / degrees - 1.0)
    left = least / (least + padding) - spread
    return ProjectionBound(padding, spread * residual / scale / left if left > 0.0 else math.inf, 0.0)


@checked
def additive_wishart_bound(
    coefficients_norm: float,
    smallest_eigenvalue: float,
    n_coefficients: int,
    *,
    degrees: int,
    scale: float,
    failure: float,
    mean_subtracted: bool,
) -> float:
    """Bound ‖β̃ − β‖ under additive Wishart noise (Theorem C.3).

    The noise N has scale s²I and k degrees of freedom. ``smallest_eigenvalue`` is λ of the features' Gram matrix,
    ``scale`` s². With t the norm of N less its mean, the bound is t√(1 + ‖β‖²)/(λ − t) if the mean ks²I is subtracted,
    else (ks²‖β‖ + t√(1 + ‖β‖²))/(λ + a), a the smallest eigenvalue of N.

    >>> noise = dict(degrees=40, scale=1.0, failure=0.05)
    >>> [round(additive_wishart_bound(0.5, 5000.0, 5, mean_subtracted=mean, **noise), 4) for mean in (True, False)]
    [0.0103, 0.0141]
    """
    low, high = wishart_eigenvalue_range(n_coefficients + 1, degrees, failure)
    norm = scale * max(high - degrees, degrees - low)
    across = norm * math.hypot(1.0, coefficients_norm)
    if not mean_subtracted:
        return (degrees * scale * coefficients_norm + across) / (smallest_eigenvalue + scale * low)
    return across / (smallest_eigenvalue - norm) if smallest_eigenvalue > norm else math.inf


@checked
def gaussian_noise_bound(
    coefficients_norm: float, smallest_eigenvalue: float, n_coefficients: int, *, noise_scale: float, failure: float
) -> float:
    """Bound ‖β̃ − β‖ under symmetric Gaussian noise (Theorem C.1), with explicit constants.

    ``noise_scale`` is the standard deviation σ on the diagonal; it is σ/√2 off it. With ‖β̃‖ and the smallest
    eigenvalue of the release the same number is a bound again: Corollary C.2.

    >>> round(gaussian_noise_bound(0.5, 5000.0, 5, noise_scale=5.0, failure=0.05), 4)
    0.0046
    """
    norm = noise_scale * normal_norm_quantile(n_coefficients + 1, failure)
    across = norm * math.hypot(1.0, coefficients_norm)
    return across / (smallest_eigenvalue - norm) if smallest_eigenvalue > norm else math.inf


def _ratio_root(above: float, below: float, failure: float) -> float:
    """Return the square root of the 1 − ``failure`` quantile of χ²_above/χ²_below."""
    if not (above >= 1.0 and below >= 1.0):
        raise InputValueError(
            f"no bound exists for {above:g} coefficients and {below:g} degrees of freedom: use more degrees of "
            "freedom, or fewer features"
        )
    return math.sqrt(above / below * float(scipy.special.fdtri(above, below, 1.0 - failure)))
