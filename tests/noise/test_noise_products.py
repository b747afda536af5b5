"""Covariances of what analyses make of the noise, against draws of it."""

from __future__ import annotations

import numpy as np
import pytest

from dpmoments.noise.families import GaussianNoise, MatrixLaplaceNoise
from dpmoments.noise.law import NoiseLaw

DRAWS = 40_000
LAWS: list[NoiseLaw] = [
    GaussianNoise(3, 2.0, 1.0, 4.0, 9.0),
    GaussianNoise(3, 2.0, 1.0, 4.0, 0.0),
    GaussianNoise(3, 1.0, 1.0, None, None),
    MatrixLaplaceNoise(3, 10.0, 5.0, 5.0, 10.0, 1.0),
]


def drawn(law: NoiseLaw, rng: np.random.Generator) -> np.ndarray:
    """Noise on Σ z zᵀ, shape (draws, d + 1, d + 1)."""
    d = law.n_features + 1
    if isinstance(law, MatrixLaplaceNoise):
        degrees = round(law.diagonal_variance * law.rate**2)
        first, second = rng.normal(size=(2, DRAWS, degrees, d))
        return (np.swapaxes(first, 1, 2) @ first - np.swapaxes(second, 1, 2) @ second) / (2.0 * law.rate)
    noise = rng.normal(size=(DRAWS, d, d)) * np.sqrt(law.cell_variances)
    return np.triu(noise) + np.swapaxes(np.triu(noise, 1), 1, 2)


@pytest.mark.parametrize("law", LAWS, ids=["noisy count", "public count", "no sum", "matrix laplace"])
def test_covariances_of_products_are_those_of_draws(law: NoiseLaw) -> None:
    rng = np.random.default_rng(0)
    noise, vector = drawn(law, rng), np.array([0.7, -1.0, 0.4, 2.0])
    stated, found = law.product_covariance(vector), np.cov((noise @ vector).T)
    np.testing.assert_allclose(found, stated, rtol=0.03, atol=0.03 * stated.max())
    without_the_shared_cells = np.diag(np.diag(stated))
    assert np.abs(found - without_the_shared_cells).max() > 0.06 * stated.max()  # what the check above would find
    chosen = [0, 2]
    np.testing.assert_array_equal(law.product_covariance(vector, chosen), stated[np.ix_(chosen, chosen)])


@pytest.mark.parametrize("law", LAWS, ids=["noisy count", "public count", "no sum", "matrix laplace"])
def test_variances_of_functionals_are_those_of_draws(law: NoiseLaw) -> None:
    rng = np.random.default_rng(1)
    noise, weights = drawn(law, rng), rng.normal(size=(4, 4))
    weights = weights + weights.T - np.diag(np.diag(weights))
    found = float(np.var((noise * weights).sum(axis=(1, 2))))
    assert found == pytest.approx(law.functional_variance(weights), rel=0.03)
    cell_by_cell = float((law.cell_variances * weights**2).sum())  # the two cells of a pair taken for two draws
    assert found != pytest.approx(cell_by_cell, rel=0.1)
