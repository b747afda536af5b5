"""The repair of moments whose noise was added about the public center of levels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.noise.cells import GaussianCells
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair.structured import (
    CellVariances,
    CenteredVariances,
    NoisySums,
    center_of_levels,
    project_about_center,
)
from dpmoments.schema.constraints import Constraints

SCHEMA = dpm.Schema(
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Categorical("job", ["a", "b", "c", "d"]),
    dpm.Categorical("sex", ["f", "m"]),
    dpm.Boolean("smoker"),
)
CELL, OF_SUM, OF_COUNT = 1.5, 4.0, 30.0


UNEQUAL = np.array([0.3, 0.3, 0.3, 2.0, 2.0, 2.0, 2.0, 0.6, 0.6, 5.0])
"""Relative noise q of the features of ``SCHEMA``, one number for a column."""


def least_squares(
    noisy: NoisySums, constraints: Constraints, of_count: float, relative: np.ndarray | None = None
) -> tuple[float, np.ndarray]:
    """Count and sums of the generalized least squares, solved as one system over everything that constraints tie together."""
    d = constraints.n_features
    rows, values, weights = [], [], []
    q = np.ones(d) if relative is None else relative

    def observe(row: np.ndarray, value: float, variance: float) -> None:
        rows.append(row), values.append(value), weights.append(1.0 / np.sqrt(variance))

    unit = np.eye(1 + d)  # the number of rows, then Σu of every level (about 0)
    observe(unit[0], noisy.count, of_count)
    for block in constraints.blocks:
        inside, k = np.arange(block.start, block.stop), block.size
        c = 1.0 / k if block.complete else 1.0 / max(k, 2)
        for feature in inside:
            observe(unit[1 + feature] - c * unit[0], noisy.sum[feature], OF_SUM * q[feature])
        for i in range(k):
            for j in range(i, k):
                row = (i == j) * unit[1 + inside[i]] - c * (unit[1 + inside[i]] + unit[1 + inside[j]]) + c * c * unit[0]
                observe(row, noisy.gram[inside[i], inside[j]], CELL * (1.0 + (i == j)) * q[inside[i]] ** 2)
        if block.complete:  # exactly
            observe(unit[1 + inside].sum(axis=0) - unit[0], 0.0, 1e-14)
    for flag in constraints.flags:
        observe(unit[0], noisy.gram[flag, flag], 2.0 * CELL * q[flag] ** 2)
    weight = np.array(weights)
    used = np.any(np.array(rows) != 0.0, axis=0)
    found = np.linalg.lstsq(np.array(rows)[:, used] * weight[:, None], np.array(values) * weight, rcond=None)[0]
    every = np.zeros(1 + d)
    every[used] = found
    return float(every[0]), every[1:]


def noisy_moments(constraints: Constraints, seed: int) -> NoisySums:
    """Sums about the center with noise in the coordinates of complete blocks."""
    rng, d, n = np.random.default_rng(seed), constraints.n_features, 200
    rows = np.zeros((n, d))
    for block in constraints.blocks:
        level = rng.integers(0, block.size + (not block.complete), n)
        rows[level < block.size, block.start + level[level < block.size]] = 1.0
    for flag in constraints.flags:
        rows[:, flag] = rng.choice([-1.0, 1.0], n)
    rows -= center_of_levels(constraints)
    cells = rng.normal(size=(d, d)) * np.sqrt(CELL)
    noise = np.triu(cells, 1) + np.triu(cells, 1).T + np.diag(rng.normal(size=d) * np.sqrt(2 * CELL))
    inside = np.eye(d)
    for block in constraints.blocks:
        if block.complete:
            inside[block.features, block.features] -= 1.0 / block.size
    total = rows.sum(axis=0) + inside @ rng.normal(size=d) * np.sqrt(OF_SUM)
    return NoisySums(n + 3.0, total, rows.T @ rows + inside @ noise @ inside, np.full(d, OF_SUM))


@pytest.mark.parametrize("relative", [None, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_generalized_least_squares(seed: int, relative: np.ndarray | None) -> None:
    constraints = Constraints.of(SCHEMA, mean=True)
    noisy = noisy_moments(constraints, seed)
    variances = CenteredVariances(CellVariances(2 * CELL, CELL, relative), OF_SUM, OF_COUNT)
    found = project_about_center(noisy, variances, constraints)
    count, total = least_squares(noisy, constraints, OF_COUNT, relative)
    assert found.count == pytest.approx(count, rel=1e-6)
    about = total - count * center_of_levels(constraints)
    levels = slice(0, 9)
    np.testing.assert_allclose(found.sum[levels], about[levels], rtol=1e-5, atol=1e-4)
    q = np.ones(constraints.n_features) if relative is None else relative
    assert found.sum_variance[9] == pytest.approx(OF_SUM * q[9])  # what constraints say nothing of
    assert abs(found.count - 203.0) > 0.01  # a count that was left alone would be no least squares


@pytest.mark.parametrize("seed", range(3))
def test_levels_that_rows_may_lack_given_the_count(seed: int) -> None:
    schema = dpm.Schema(
        dpm.Categorical("job", ["a", "b", "c", "d"], missing="zero"), dpm.Categorical("one", ["x"], missing="zero")
    )
    constraints = Constraints.of(schema, mean=True)
    noisy = noisy_moments(constraints, seed)
    found = project_about_center(noisy, CenteredVariances(CellVariances(2 * CELL, CELL), OF_SUM, 0.0), constraints)
    count, total = least_squares(noisy, constraints, 1e-14)
    assert found.count == pytest.approx(count, rel=1e-6)
    np.testing.assert_allclose(found.sum, total - count * center_of_levels(constraints), rtol=1e-5, atol=1e-4)


def test_noise_about_zero_is_not_taken_for_noise_about_the_center() -> None:
    constraints = Constraints.of(SCHEMA, mean=True)
    d = constraints.n_features
    plain = NoiseLaw.additive(GaussianCells(), d, diagonal=2.0, off_diagonal=1.0, of_sum=4.0, of_count=9.0)
    assert CenteredVariances.of(plain, constraints) is None
    release = dpm.release(_table(), SCHEMA, mechanism="gaussian", rho=1.0, insecure_seed=0)
    assert release.noise is not None
    found = CenteredVariances.of(release.noise, constraints)
    assert found is not None
    assert release.noise_model is not None
    scale = float(constraints.units[0])
    stated = release.noise_model.off_diagonal_variance  # type: ignore[attr-defined]
    assert found.cells.off_diagonal == pytest.approx(stated * scale**4, rel=1e-3)
    pooled = dpm.pool([release, dpm.release(_table(), SCHEMA, mechanism="gaussian", rho=1.0, insecure_seed=1)])
    assert pooled.noise is not None
    both = CenteredVariances.of(pooled.noise, constraints)
    assert both is not None
    assert both.cells.off_diagonal == pytest.approx(2.0 * found.cells.off_diagonal, rel=1e-9)


def _table() -> pa.Table:
    n = 50
    return pa.table(
        {
            "region": (["north", "south", "east"] * n)[:n],
            "job": (["a", "b", "c", "d"] * n)[:n],
            "sex": (["f", "m"] * n)[:n],
            "smoker": ([True, False, False] * n)[:n],
        }
    )
