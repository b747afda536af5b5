"""Noise on the inverse: the unconditional sensitivity, the refusal without a bound, the joint budget, the law."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.analysis import cross_table
from dpmoments.analysis.group_means import Levels
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy import curves
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from support.rows_read_once import RowsReadOnce
from support.said import refused

RELATIONS = ["add_remove", "replace_one"]
InverseGaussian = dpm.mechanisms.InverseGaussian


def raised_inverse(gram, bound):
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    return (eigenvectors / np.maximum(eigenvalues, bound)) @ eigenvectors.T


def largest_change(bound, neighbors, trials, seed):
    """Largest Frobenius change of the raised inverse over random neighbors, whether the bound holds or not."""
    generator, largest = np.random.default_rng(seed), 0.0
    for _ in range(trials):
        d = int(generator.integers(1, 5))
        spread = generator.uniform(0.0, 2.0, d) * bound
        basis = np.linalg.qr(generator.standard_normal((d, d)))[0]
        gram = (basis * spread) @ basis.T
        x, y = (basis @ vector for vector in generator.standard_normal((2, d)) ** 3)
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        other = gram + (np.outer(y, y) if neighbors == "replace_one" else 0)
        change = raised_inverse(gram + np.outer(x, x), bound) - raised_inverse(other, bound)
        largest = max(largest, float(np.linalg.norm(change)))
    return largest


@pytest.mark.long
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("bound", [0.3, 1.5, 60.0])
def test_sensitivity_holds_without_the_assertion(neighbors, bound):
    stated = InverseGaussian(bound).sensitivity(4, Neighbors.of(neighbors)).value
    assert largest_change(bound, neighbors, 800, seed=1) <= stated * (1 + 1e-9)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_paper_sensitivity_is_larger_and_refuses_small_bounds(neighbors):
    relation = Neighbors.of(neighbors)
    exact, paper = InverseGaussian(4.0), InverseGaussian(4.0, calibration="paper")
    assert paper.sensitivity(3, relation).value == pytest.approx(exact.sensitivity(3, relation).value * 4 / 3)
    with refused("the paper's sensitivity, 1/(w²(w² − 1)), needs a bound"):
        InverseGaussian(0.9, calibration="paper").plan(MomentShape(3), PrivacyBudget.zcdp(1.0), neighbors)


def test_refuses_to_run_without_an_asserted_bound():
    with refused("inverse-gaussian needs a public lower bound on the smallest"):
        InverseGaussian().plan(MomentShape(3), PrivacyBudget.zcdp(0.5), "add_remove")
    with refused("must be", parameter="smallest_eigenvalue"):
        InverseGaussian(0.0)
    with refused(": use '", parameter="calibration"):
        InverseGaussian(1.0, calibration="tight")


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("budget", [PrivacyBudget.zcdp(0.3), PrivacyBudget.approximate(2.0, 1e-7)])
def test_parts_together_are_one_gaussian_mechanism_of_the_stated_cost(neighbors, mean, budget):
    plan = InverseGaussian(10.0).plan(MomentShape(5, n_rows=50, mean=mean), budget, neighbors)
    of_gram = math.sqrt(2.0) if neighbors == "replace_one" else 1.0
    squares = [(of_gram / 100.0 / plan.inverse_scale) ** 2]
    assert (plan.sum_scale is not None) == mean
    assert (plan.count_scale is not None) == (mean and neighbors == "add_remove")
    if plan.sum_scale is not None:
        squares.append(((2.0 if neighbors == "replace_one" else 1.0) / plan.sum_scale) ** 2)
    if plan.count_scale is not None:
        squares.append((1.0 / plan.count_scale) ** 2)
    distance = math.sqrt(math.fsum(squares))
    if budget.rho:
        assert distance**2 / 2 <= budget.rho < distance**2 / 2 * (1 + 1e-12)
    else:
        assert curves.gaussian_delta(2.0, distance, 1.0) <= 1e-7
        assert curves.gaussian_delta(2.0, distance * 1.0001, 1.0) > 1e-7


@pytest.mark.slow
def test_law_of_the_released_inverse():
    table = np.random.default_rng(2).uniform(-0.57, 0.57, (400, 3))
    plan = InverseGaussian(20.0).plan(MomentShape(3, n_rows=400, mean=False), PrivacyBudget.zcdp(0.5), "replace_one")
    rows, generator = RowsReadOnce(table, "replace_one"), insecure_generator(3)
    runs = [run_plan(plan, rows, generator) for _ in range(1500)]
    gram = table.T @ table
    assert np.linalg.eigvalsh(gram)[0] > 20.0
    noise = np.array([noisy.diagnostics["inverse"] for noisy in runs]) - np.linalg.inv(gram)
    for i, j, factor in [(0, 0, 1.0), (1, 2, math.sqrt(0.5))]:
        scale = plan.inverse_scale * factor
        assert stats.kstest(noise[:, i, j], stats.norm(0, scale).cdf).pvalue > 1e-3
        assert stats.kstest(noise[:, i, j], stats.norm(0, 1.4 * scale).cdf).pvalue < 1e-6
    for noisy in runs[:50]:
        eigenvalues = np.linalg.eigvalsh(noisy.gram)
        assert eigenvalues[0] > 20.0 * (1 - 1e-9)
        assert eigenvalues[-1] < 400 * (1 + 1e-9)


def test_levels_of_shortened_rows_are_not_made_to_add_up():
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"region": rng.choice(["north", "south", "east"], 300), "age": rng.uniform(0, 90, 300)})
    columns = dpm.Categorical("region", ["north", "south", "east"]), dpm.Numeric("age", 0, 90)
    for row_norm, add_up in ((None, True), (0.9, False)):
        schema = dpm.Schema(*columns) if row_norm is None else dpm.Schema(*columns, row_norm=row_norm)
        released = dpm.release(table, schema, epsilon=1.0, mechanism="matrix-laplace", insecure_seed=0)
        total = cross_table._adding_up(released, Levels.of(released, "region")).sum(axis=0)
        assert np.allclose(total, [1.0, 0.0, 0.0, 0.0]) is add_up
