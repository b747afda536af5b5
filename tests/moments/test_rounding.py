"""The error of rounding rows to the lattice is covered: by every functional, and by what a release prints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy

import dpmoments as dpm
from dpmoments.analysis.confidence import deviations_for
from dpmoments.moments import law
from dpmoments.moments.cells import LaplaceCells
from dpmoments.moments.law import COVER, NoiseLaw, Rounding
from dpmoments.rows.kernel import exact_moments

BITS = 6


def table(rng: np.random.Generator, d: int, n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return exact moments of (1, x), the error of those on the lattice, and the moments halfway."""
    few = rng.uniform(-0.4, 0.4, (3, d)) / np.sqrt(d)  # rows of three kinds: nothing averages out
    rows = few[rng.integers(0, 3, n)]
    moments = exact_moments([rows], d, bits=BITS)
    true = np.column_stack([np.ones(n), rows])
    near = np.column_stack([np.ones(n), np.rint(rows * 2.0**BITS) * 2.0**-BITS])
    assert (near[:, 1:].sum(axis=0) == moments.sum * moments.scale).all()
    assert (near[:, 1:].T @ near[:, 1:] == moments.gram * moments.scale**2).all()
    halfway = (true + near) / 2.0
    return true.T @ true, near.T @ near - true.T @ true, halfway.T @ halfway


def largest_shares(seed: int, d: int, *, fault: float = 1.0) -> float:
    """Return the largest error of a functional in the SDs that cover it, over functionals made to be large."""
    rng = np.random.default_rng(seed)
    _, error, halfway = table(rng, d)
    covers = Rounding.of(np.full(d, 0.5 * 2.0**-BITS), halfway)
    weights = rng.normal(size=(200, d + 1, d + 1))
    weights[100:] = np.einsum("i,pj->pij", np.sign(error[0]), rng.normal(size=(100, d + 1)))  # sums that add up
    weights += np.swapaxes(weights, 1, 2)
    found = np.abs(np.einsum("pij,ij->p", weights, error))
    deviations = np.sqrt(covers.variance(np.tile(np.arange(d + 1), (200, 1)), weights) * fault) / COVER
    return float((found / deviations).max())


@pytest.mark.parametrize("d", [1, 2, 6])
def test_no_functional_is_off_by_more_than_the_bound(d: int) -> None:
    shares = [largest_shares(seed, d) for seed in range(40)]
    assert max(shares) <= 1.0 + 1e-9
    # planted: as if the errors of the columns were independent
    assert d < 6 or max(largest_shares(seed, d, fault=1.0 / d) for seed in range(40)) > 1.0


def test_every_method_is_of_one_distribution() -> None:
    """Covariances of all cells of N = S + Sᵀ, written out, give every other number."""
    rng = np.random.default_rng(1)
    root, other = rng.normal(size=(2, 4, 4))
    root[0] = 0.0
    noise = Rounding(root @ root.T, other @ other.T)
    e, g = noise.errors, noise.rows
    cells = np.einsum("ik,jl->ijkl", e, g) + np.einsum("jk,il->ijkl", e, g)
    cells = cells + np.swapaxes(cells, 2, 3)  # Cov(N_ij, N_kl)
    weights = rng.normal(size=(5, 4, 4))
    weights += np.swapaxes(weights, 1, 2)
    every = np.arange(4)
    covariance = np.einsum("pij,ijkl,qkl->pq", weights, cells, weights)
    np.testing.assert_allclose(noise.covariance(every, weights), covariance)
    np.testing.assert_allclose(noise.variance(np.tile(every, (5, 1)), weights), np.diag(covariance))
    np.testing.assert_allclose(noise.cell_variances(every), np.einsum("ijij->ij", cells))
    a, s = rng.normal(size=(2, 3, 4))
    squares = a[:, :, None] * a[:, None, :] - np.einsum("pi,ij->pij", s, np.eye(4))
    of_squares = np.einsum("pij,ijkl,pkl->p", squares, cells, squares)
    np.testing.assert_allclose(noise.variance_of_squares(a, s), of_squares)
    b, u = rng.normal(size=(2, 4))
    product = np.einsum("ijkl,j,l->ik", cells, b, b)
    np.testing.assert_allclose(noise.covariance_of_product(b), product)
    np.testing.assert_allclose(noise.covariance_of_product(b, [1, 3]), product[np.ix_([1, 3], [1, 3])])
    change = np.einsum("ijkl,l,k->ij", cells, b, u) + np.einsum("ijkl,j,k->il", cells, b, u)
    np.testing.assert_allclose(noise.mixed_derivative(u, b), change)
    matrix = rng.normal(size=(3, 4))
    carried = np.einsum("ai,bj,ijkl,ck,dl->abcd", matrix, matrix, cells, matrix, matrix)
    np.testing.assert_allclose(noise.carried(matrix).cell_variances(np.arange(3)), np.einsum("abab->ab", carried))


def test_errors_of_one_sign_add_up_in_pools() -> None:
    parts = [Rounding.of(np.full(2, 1e-3), np.diag([n, 0.3 * n, 0.1 * n])) for n in (100.0, 900.0)]
    of_sum = np.array([[0, 1]]), np.array([[[0.0, 0.5], [0.5, 0.0]]])
    one, other, both = (np.sqrt(float(part.variance(*of_sum)[0])) for part in (*parts, parts[0] + parts[1]))
    assert both == pytest.approx(one + other)
    law = NoiseLaw.additive(LaplaceCells(), 2, diagonal=1.0, off_diagonal=1.0, of_sum=1.0, of_count=1.0)
    assert law.rounding is None
    assert law.count_variance == 1.0


@pytest.mark.parametrize("laplace", [False, True])
def test_an_error_beside_noise_keeps_every_level(laplace: bool) -> None:
    bias = np.geomspace(0.01, 100.0, 400)
    for level in (0.5, 0.6, 0.68, 0.8, 0.9, 0.95, 0.99, 0.999):
        variances = dict(diagonal=1.0, off_diagonal=1.0, of_sum=1.0, of_count=1.0)
        noise = NoiseLaw.additive(LaplaceCells(), 2, **variances) if laplace else None
        whole = np.hypot(1.0, COVER * bias)
        reach = deviations_for(level, noise, whole**2, np.zeros_like(bias)) * whole
        law = scipy.stats.laplace(scale=np.sqrt(0.5)) if laplace else scipy.stats.norm()
        assert (law.cdf(reach - bias) - law.cdf(-reach - bias) >= level).all()


# What is printed: a table of few values, of which n·ε is that of a nation.

N, EPSILON = 2000, 2.5e5
SCHEMA = dpm.Schema(dpm.Numeric("x", 0, 7), dpm.Boolean("b"), dpm.Numeric("c", 0, 100))


def few_values() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x, b = np.where(np.arange(N) % 2, 1.0, 3.0), np.arange(N) % 10 < 3
    return pd.DataFrame({"x": x, "b": b, "c": rng.beta(2.0, 3.0, N) * 40.0 + 10.123})


def share_covered(mechanism: str, **budget: Any) -> float:
    """Return the smallest share of runs in which ±1.96 of the printed noise holds a column's mean."""
    rows, inside = few_values(), []
    for seed in range(8):
        if mechanism in ("naive", "bounded-sums", "coinpress"):
            found = dpm.release_mean(
                rows, SCHEMA, mechanism=mechanism, neighbors="replace_one", insecure_seed=seed, **budget
            )
            mean, noise = found.mean, found.standard_errors
        else:
            answer = dpm.release(rows, SCHEMA, mechanism=mechanism, insecure_seed=seed, **budget).describe()
            assert answer.noisy_mean is not None
            mean, noise = answer.noisy_mean, answer.mean_noise
        inside.append(np.abs(mean - rows.mean().to_numpy()) <= 1.96 * noise)
    return float(np.mean(inside, axis=0).min())


CASES = {
    "matrix-laplace": {"epsilon": EPSILON},
    "laplace": {"epsilon": EPSILON},
    "gaussian": {"rho": EPSILON**2 / 8.0},
    "naive": {"epsilon": EPSILON},
    "bounded-sums": {"epsilon": EPSILON},
    "coinpress": {"rho": EPSILON**2 / 8.0},
}


@pytest.mark.long
@pytest.mark.parametrize("mechanism", CASES)
def test_printed_noise_covers_rounding(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert share_covered(mechanism, **CASES[mechanism]) == 1.0
    monkeypatch.setattr(Rounding, "is_negligible", lambda *_: True)  # planted: the bound is left out
    monkeypatch.setattr(law, "COVER", 0.0)
    assert share_covered(mechanism, **CASES[mechanism]) == 0.0
