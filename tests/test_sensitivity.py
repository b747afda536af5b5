"""Every sensitivity: attained by explicit neighbours, exceeded by none that a search finds."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import (
    gram_entrywise_l1,
    gram_frobenius,
    gram_nuclear,
    quadratic_form,
    row_sum_l2,
    sorted_eigenvalues_l1,
    sorted_eigenvalues_l2,
)

AUGMENTATIONS = [0.0, 0.25, 0.5, 1.0]
Norm = Callable[[np.ndarray], float]


def frobenius(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix))


def nuclear(matrix: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvalsh(matrix)).sum())


def entrywise(matrix: np.ndarray) -> float:
    return float(np.abs(matrix[np.triu_indices(len(matrix))]).sum())


def entrywise_without_count(matrix: np.ndarray) -> float:
    return entrywise(matrix) - abs(float(matrix[0, 0]))


def outer(w: float, x: np.ndarray) -> np.ndarray:
    z = np.concatenate([[w], x]) if w else x
    return np.outer(z, z)


def worst_replacement(d: int, w: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors with inner product −w²."""
    x, y = np.zeros(d), np.zeros(d)
    x[0] = 1.0
    y[0], y[1] = -(w**2), math.sqrt(1 - w**4)
    return x, y


def found_by_search(norm: Norm, w: float, d: int, replace: bool, seed: int = 0) -> float:
    """The largest change that random rows (full norm, short, sparse, dropped) give."""
    rng = np.random.default_rng(seed)
    largest = 0.0
    for trial in range(3000):
        x, y = rng.normal(size=(2, d)) * (rng.random((2, d)) < rng.choice([0.3, 1.0]))
        if trial % 5 == 0:
            x, y = np.sign(x), np.sign(y)
        for row in (x, y):
            size = np.linalg.norm(row)
            row *= 0 if size == 0 else (1.0 if trial % 3 else rng.random()) / size
        largest = max(largest, norm(outer(w, x) - outer(w, y)) if replace else norm(outer(w, x)))
    return largest


@pytest.mark.parametrize("w", AUGMENTATIONS)
@pytest.mark.parametrize("d", [2, 3, 7])
def test_gram_under_replace_one_is_attained_and_not_exceeded(d: int, w: float) -> None:
    x, y = worst_replacement(d, w)
    for norm, sensitivity in [(frobenius, gram_frobenius), (nuclear, gram_nuclear)]:
        stated = sensitivity(Neighbors.REPLACE_ONE, d, w)
        found = found_by_search(norm, w, d, replace=True)
        assert found <= stated * (1 + 1e-12)
        if norm is frobenius or w == 0:
            assert norm(outer(w, x) - outer(w, y)) == pytest.approx(stated, rel=1e-12)
    # planted fault: the add-remove value is exceeded by the same pair
    assert frobenius(outer(w, x) - outer(w, y)) > gram_frobenius(Neighbors.ADD_REMOVE, d, w) * 1.2


@pytest.mark.parametrize("w", AUGMENTATIONS)
def test_nuclear_norm_is_attained_where_augmented_rows_are_orthogonal(w: float) -> None:
    x, y = worst_replacement(3, w)
    assert np.concatenate([[w], x]) @ np.concatenate([[w], y]) == pytest.approx(0.0, abs=1e-15)
    assert nuclear(outer(w, x) - outer(w, y)) == pytest.approx(gram_nuclear(Neighbors.REPLACE_ONE, 3, w), rel=1e-12)


@pytest.mark.parametrize("w", AUGMENTATIONS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_gram_under_add_remove_is_attained_and_not_exceeded(d: int, w: float) -> None:
    flat = np.full(d, 1 / math.sqrt(d))
    for norm, sensitivity in [(frobenius, gram_frobenius), (nuclear, gram_nuclear), (entrywise, gram_entrywise_l1)]:
        stated = sensitivity(Neighbors.ADD_REMOVE, d, w)
        assert norm(outer(w, flat)) == pytest.approx(stated, rel=1e-12)
        assert norm(outer(w, flat)) <= stated * (1 + 4e-16) or norm is not entrywise
        assert found_by_search(norm, w, d, replace=False) <= stated * (1 + 1e-12)


@pytest.mark.parametrize("w", AUGMENTATIONS)
@pytest.mark.parametrize("d", [1, 2, 4, 10])
def test_entrywise_under_replace_one_is_not_exceeded(d: int, w: float) -> None:
    stated = gram_entrywise_l1(Neighbors.REPLACE_ONE, d, w)
    norm = entrywise_without_count if w else entrywise
    assert found_by_search(norm, w, d, replace=True) <= stated * (1 + 1e-12)


@pytest.mark.parametrize("d", [2, 4, 10, 50])
def test_entrywise_under_replace_one_is_nearly_attained(d: int) -> None:
    """Δ₁ is the largest spread of eigenvalues over sign matrices (off-diagonal halved); one block matrix comes close."""
    half = d // 2
    ones, identity = np.ones((half, half)), np.eye(half)
    signs = np.block([[ones + identity, ones], [ones, -ones - identity]]) / 2
    eigenvectors = np.linalg.eigh(signs)[1]
    reached = entrywise(outer(0, eigenvectors[:, -1]) - outer(0, eigenvectors[:, 0]))
    assert reached == pytest.approx(math.hypot(d + 1, 1) / math.sqrt(2), rel=1e-12)
    stated = gram_entrywise_l1(Neighbors.REPLACE_ONE, d)
    assert 0.92 * stated < reached <= stated
    # planted fault: the add-remove value does not cover this pair
    assert reached > gram_entrywise_l1(Neighbors.ADD_REMOVE, d) * 1.2


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_entrywise_under_replace_one_covers_every_sign_matrix(d: int) -> None:
    cells = [(i, j) for i in range(d) for j in range(i, d)]
    largest = 0.0
    for pattern in range(2 ** len(cells)):
        matrix = np.zeros((d, d))
        for bit, (i, j) in enumerate(cells):
            matrix[i, j] = matrix[j, i] = (1 if pattern >> bit & 1 else -1) * (1.0 if i == j else 0.5)
        eigenvalues = np.linalg.eigvalsh(matrix)
        largest = max(largest, eigenvalues[-1] - (eigenvalues[0] if d > 1 else 0.0))
    assert largest <= gram_entrywise_l1(Neighbors.REPLACE_ONE, d) * (1 + 1e-12)


@pytest.mark.parametrize("w", [0.25, 0.5])
def test_in_one_dimension(w: float) -> None:
    one, zero, other = np.array([1.0]), np.array([0.0]), np.array([-1.0])
    assert gram_frobenius(Neighbors.REPLACE_ONE, 1) == frobenius(outer(0, one) - outer(0, zero)) == 1.0
    assert gram_nuclear(Neighbors.REPLACE_ONE, 1) == 1.0
    assert gram_entrywise_l1(Neighbors.REPLACE_ONE, 1) == 1.0
    for pair in [(one, zero), (one, other)]:
        change = outer(w, pair[0]) - outer(w, pair[1])
        assert frobenius(change) <= gram_frobenius(Neighbors.REPLACE_ONE, 1, w)
        assert nuclear(change) <= gram_nuclear(Neighbors.REPLACE_ONE, 1, w)


def test_a_dropped_row_keeps_the_constant() -> None:
    """Encoded as (w, 0) a dropped row obeys every bound; encoded as 0 it would move the count cell under replace-one."""
    w, x = 0.5, np.array([1.0, 0.0])
    kept = outer(w, x) - outer(w, np.zeros(2))
    assert frobenius(kept) <= gram_frobenius(Neighbors.REPLACE_ONE, 2, w)
    assert kept[0, 0] == 0.0
    planted = outer(w, x) - np.zeros((3, 3))
    assert planted[0, 0] != 0.0


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_sums_and_quadratic_forms(neighbors: Neighbors) -> None:
    x = np.array([0.6, 0.8])
    replaced = -x if neighbors is Neighbors.REPLACE_ONE else np.zeros(2)
    assert np.linalg.norm(x - replaced) == pytest.approx(row_sum_l2(neighbors))
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(2000, 3, 2))
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    change = np.abs((pairs[:, 0] * pairs[:, 2]).sum(1) ** 2 - (pairs[:, 1] * pairs[:, 2]).sum(1) ** 2)
    assert change.max() <= quadratic_form(neighbors)
    assert quadratic_form(neighbors) == 1.0  # attained: u = x, the other row orthogonal
    assert abs((x @ x) ** 2 - (np.array([-0.8, 0.6]) @ x) ** 2) == pytest.approx(1.0)


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("d", [2, 5])
def test_sorted_eigenvalues(neighbors: Neighbors, d: int) -> None:
    rng = np.random.default_rng(1)
    l1 = l2 = 0.0
    for _ in range(500):
        table = rng.normal(size=(6, d)) * (rng.random((6, d)) < 0.5) * rng.choice([0.0, 1.0])
        x, y = rng.normal(size=(2, d))
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        first = table.T @ table + np.outer(x, x)
        second = table.T @ table + (np.outer(y, y) if neighbors is Neighbors.REPLACE_ONE else 0)
        gap = np.linalg.eigvalsh(first) - np.linalg.eigvalsh(second)
        l1, l2 = max(l1, float(np.abs(gap).sum())), max(l2, float(np.linalg.norm(gap)))
    assert l1 <= sorted_eigenvalues_l1(neighbors, d) * (1 + 1e-9)
    assert l2 <= sorted_eigenvalues_l2(neighbors, d) * (1 + 1e-9)
    if neighbors is Neighbors.ADD_REMOVE:
        assert l1 == pytest.approx(1.0)
        assert l2 == pytest.approx(1.0)
    else:
        # x ⊥ y where the rest has its eigenvalues a unit apart: one eigenvalue up by 1, another down by 1
        rest = np.diag(np.arange(d, dtype=float) * 3)
        e = np.eye(d)
        gap = np.linalg.eigvalsh(rest + np.outer(e[0], e[0])) - np.linalg.eigvalsh(rest + np.outer(e[1], e[1]))
        assert np.abs(gap).sum() == pytest.approx(sorted_eigenvalues_l1(neighbors, d))
        assert np.linalg.norm(gap) == pytest.approx(sorted_eigenvalues_l2(neighbors, d))


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="n_features"):
        gram_frobenius(Neighbors.ADD_REMOVE, 0)
    with pytest.raises(ValueError, match="augmentation"):
        gram_nuclear(Neighbors.ADD_REMOVE, 2, 1.5)
