r"""How far one row can move each sum: the only place in the library where a sensitivity is written down.

Rows are encoded as x with ‖x‖₂ ≤ 1. A release of count and mean beside the Gram matrix appends a constant w to every
row, z = (w, x), so that Σ z zᵀ holds w²n, wΣx and G = Σ x xᵀ; ``augmentation`` is w, and 0 means that the Gram matrix is
released alone. A row dropped by its column rules is z = (w, 0) under ``replace_one``, so every row has the same w and the
entry w²n is the same for all neighbours.

Every value below is proved in ``docs/derivations/sensitivities.md`` and attained by explicit neighbours in
``tests/test_sensitivity.py`` (the one exception, the ℓ1 bound under ``replace_one``, is marked there).
"""

from __future__ import annotations

import math

from dpmoments.privacy.neighbors import Neighbors

__all__ = [
    "gram_entrywise_l1",
    "gram_frobenius",
    "gram_nuclear",
    "histogram_l2",
    "quadratic_form",
    "row_sum_l2",
    "sorted_eigenvalues_l1",
    "sorted_eigenvalues_l2",
]


def gram_frobenius(neighbors: Neighbors, n_features: int, augmentation: float = 0.0) -> float:
    """Frobenius sensitivity of Σ z zᵀ (the ℓ2 sensitivity of its svec).

    Add-remove: ‖z zᵀ‖_F = ‖z‖² ≤ 1 + w². Replace-one: ‖z zᵀ − z′z′ᵀ‖_F² = ‖z‖⁴ + ‖z′‖⁴ − 2⟨z, z′⟩², at most
    2(1 + w²)², reached where ⟨x, x′⟩ = −w².

    Examples
    --------
    >>> gram_frobenius(Neighbors.ADD_REMOVE, 3)
    1.0
    >>> round(gram_frobenius(Neighbors.REPLACE_ONE, 3), 6)
    1.414214
    """
    _check(n_features, augmentation)
    square = 1.0 + augmentation * augmentation
    if neighbors is Neighbors.ADD_REMOVE:
        return square
    if n_features == 1 and augmentation == 0:
        return 1.0  # d = 1 has no two orthogonal rows; with w > 0 the general bound holds there, though unattained
    return _up(math.sqrt(2.0) * square)


def gram_nuclear(neighbors: Neighbors, n_features: int, augmentation: float = 0.0) -> float:
    """Nuclear-norm sensitivity of Σ z zᵀ: the trace ‖z‖² ≤ 1 + w² under add-remove, twice that under replace-one.

    Examples
    --------
    >>> gram_nuclear(Neighbors.REPLACE_ONE, 3), gram_nuclear(Neighbors.REPLACE_ONE, 1)
    (2.0, 1.0)
    """
    _check(n_features, augmentation)
    square = 1.0 + augmentation * augmentation
    if neighbors is Neighbors.ADD_REMOVE:
        return square
    return 1.0 if n_features == 1 and augmentation == 0 else 2.0 * square


def gram_entrywise_l1(neighbors: Neighbors, n_features: int, augmentation: float = 0.0) -> float:
    """ℓ1 sensitivity of the upper triangle of Σ z zᵀ with its diagonal; under replace-one without the constant entry w²n.

    Add-remove: ((Σ|z_i|)² + Σ z_i²)/2 ≤ ((w + √d)² + w² + 1)/2. Replace-one:
    min(d/√2 + 1, √(d(d+3)/2)) for the Gram matrix (proven, attained at d = 2) and w·2√d for the cells that hold wΣx.

    Examples
    --------
    >>> gram_entrywise_l1(Neighbors.ADD_REMOVE, 3)
    2.0
    """
    _check(n_features, augmentation)
    root = math.sqrt(n_features)
    if neighbors is Neighbors.ADD_REMOVE:
        gram = (n_features + 1) / 2.0
        return _up(augmentation * augmentation + augmentation * root + gram) if augmentation else gram
    # Two bounds on the eigenvalue range of a sign matrix; the first is smaller from d = 12 on, the second is attained at d = 2.
    gram = min(n_features / math.sqrt(2.0) + 1.0, math.sqrt(n_features * (n_features + 3) / 2.0))
    gram = 1.0 if n_features == 1 else gram
    return _up(gram + 2.0 * augmentation * root) if n_features > 1 or augmentation else gram


def row_sum_l2(neighbors: Neighbors) -> float:
    """ℓ2 sensitivity of Σ x: 1 under add-remove, 2 under replace-one (x′ = −x)."""
    return 1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0


def histogram_l2(neighbors: Neighbors) -> float:
    """ℓ2 sensitivity of counts over disjoint bins: one bin moves by 1, or two bins do under replace-one.

    Examples
    --------
    >>> histogram_l2(Neighbors.ADD_REMOVE)
    1.0
    """
    return 1.0 if neighbors is Neighbors.ADD_REMOVE else _up(math.sqrt(2.0))


def quadratic_form(neighbors: Neighbors) -> float:
    """Sensitivity of uᵀ G u for one unit vector u: 1 under both relations, since 0 ≤ ⟨u, x⟩² ≤ 1.

    Amin et al. (2019) use 2 under replace-one.
    """
    del neighbors
    return 1.0


def sorted_eigenvalues_l1(neighbors: Neighbors, n_features: int) -> float:
    """ℓ1 sensitivity of the sorted eigenvalues of G (Lidskii: at most the nuclear norm of the difference)."""
    return gram_nuclear(neighbors, n_features)


def sorted_eigenvalues_l2(neighbors: Neighbors, n_features: int) -> float:
    """ℓ2 sensitivity of the sorted eigenvalues of G (Hoffman & Wielandt: at most the Frobenius norm)."""
    return gram_frobenius(neighbors, n_features)


def _check(n_features: int, augmentation: float) -> None:
    if n_features < 1:
        raise ValueError(f"n_features={n_features}: a table needs at least one feature")
    if not 0 <= augmentation <= 1:
        raise ValueError(f"augmentation={augmentation}: the appended constant is between 0 and 1")


def _up(value: float) -> float:
    """Round up by two units in the last place: above the true value after the two or three roundings that precede."""
    return math.nextafter(math.nextafter(value, math.inf), math.inf)
