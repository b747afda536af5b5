"""The inverse-Wishart mechanism: its law, its privacy end to end, and the posterior."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilterError
from support.opened_filter import run_unchecked
from support.rows_read_once import RowsReadOnce
from support.said import refused

RELATIONS = ["add_remove", "replace_one"]
LOOSE = PrivacyBudget.approximate(0.5, 0.1)
USUAL = PrivacyBudget.approximate(1.0, 1e-6)
InverseWishart = dpm.mechanisms.InverseWishart


def draws(plan, table, size, seed, run=run_plan):
    rows, generator = RowsReadOnce(table, plan.neighbors), insecure_generator(seed)
    return np.array([run(plan, rows, generator).gram for _ in range(size)])


def small_table():
    return np.random.default_rng(0).uniform(-0.5, 0.5, (20, 3))


def precision_p_value(matrices, scale, degrees, factor):
    """For X ~ Wishart⁻¹(Ψ, ν) and any u, uᵀX⁻¹u/uᵀΨ⁻¹u is chi-square with ν degrees of freedom."""
    u = np.array([1.0, -2.0, 0.5])
    precisions = np.einsum("i,sij,j->s", u, np.linalg.inv(matrices / factor), u)
    return stats.kstest(precisions / (u @ np.linalg.inv(scale) @ u), stats.chi2(degrees).cdf).pvalue


def test_law_and_planted_faults():
    table, degrees = small_table(), 12
    plan = InverseWishart(degrees, subtract_padding=False).plan(MomentShape(3, mean=False), LOOSE, "add_remove")
    matrices = draws(plan, table, 2000, seed=1)
    scale = table.T @ table + plan.padding * np.eye(3)
    factor = degrees - 3 - 1
    assert precision_p_value(matrices, scale, degrees, factor) > 1e-3
    assert precision_p_value(matrices, scale, degrees + 1, factor) < 1e-6
    assert precision_p_value(matrices, scale, degrees, degrees) < 1e-6
    assert precision_p_value(matrices, table.T @ table, degrees, factor) < 1e-6
    assert np.linalg.eigvalsh(matrices).min() > 0


def test_mean_and_spread():
    table, degrees = small_table(), 40
    plan = InverseWishart(degrees).plan(MomentShape(3, mean=False), USUAL, "add_remove")
    errors = draws(plan, table, 3000, seed=2) - table.T @ table
    scale = table.T @ table + plan.padding * np.eye(3)
    z_scores = errors.mean(axis=0) / (errors.std(axis=0) / math.sqrt(len(errors)))
    assert np.abs(z_scores).max() < 4.5
    nu, d = degrees, 3
    spread = ((nu - d + 1) * np.sum(scale**2) + (nu - d - 1) * np.trace(scale) ** 2) / ((nu - d) * (nu - d - 3))
    squares = np.sum(errors**2, axis=(1, 2))
    assert abs(squares.mean() - spread) < 5 * squares.std() / math.sqrt(len(squares))


def advantage_on_worst_neighbors(plan, size, run=run_plan):
    """P[E | first] − e^ε P[E | second] for the tables and the event that attain δ, and its standard error."""
    q, nu, factor = 1 / plan.padding, plan.degrees, plan.degrees - 3
    # The precision times ψ is a sum of ν squares along an axis: of variance 1, or 1/(1 + q) where the row lies.
    squares = lambda m: plan.padding * factor * np.diagonal(np.linalg.inv(m))  # noqa: E731
    if plan.neighbors == "replace_one":
        first, second = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
        loss = lambda m: 0.5 * q * (squares(m)[1] - squares(m)[0])  # noqa: E731
    else:
        first, second = np.zeros((0, 2)), np.array([[1.0, 0.0]])
        loss = lambda m: 0.5 * q * squares(m)[0] - 0.5 * nu * math.log1p(q)  # noqa: E731
    growth = math.exp(plan.cost.epsilon)
    tables = [(3, first), (4, second)]
    hits = [
        np.mean([loss(m) > plan.cost.epsilon for m in draws(plan, table, size, seed, run)]) for seed, table in tables
    ]
    error = math.sqrt((hits[0] * (1 - hits[0]) + growth**2 * hits[1] * (1 - hits[1])) / size)
    return hits[0] - growth * hits[1], error


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_worst_neighbors_attain_delta(neighbors):
    plan = InverseWishart(7, subtract_padding=False).plan(MomentShape(2, n_rows=1, mean=False), LOOSE, neighbors)
    advantage, error = advantage_on_worst_neighbors(plan, 3000)
    assert abs(advantage - LOOSE.delta) < 4 * error
    # Planted fault: a quarter of the padding leaks more than δ.
    weak = replace(plan, padding=plan.padding / 4)
    advantage, error = advantage_on_worst_neighbors(weak, 2000, run_unchecked)
    assert advantage > LOOSE.delta + 4 * error
    with refused("This is a defect of the mechanism", PrivacyFilterError):
        draws(weak, np.array([[1.0, 0.0]]), 1, seed=0)


def test_posterior_needs_a_public_number_of_rows():
    plan = InverseWishart(prior_degrees=7).plan(MomentShape(3, n_rows=93), USUAL, "replace_one")
    assert plan.degrees == 100
    with refused("prior_degrees makes the degrees of freedom depend on"):
        InverseWishart(prior_degrees=7).plan(MomentShape(3), USUAL, "add_remove")
    with refused("prior_degrees makes the degrees of freedom depend on"):
        InverseWishart(prior_degrees=7).plan(MomentShape(3, n_rows=93), USUAL, "add_remove")
    with refused("give degrees_of_freedom or prior_degrees, not both: they"):
        InverseWishart(50, prior_degrees=7)
    with refused("prior_degrees="):
        InverseWishart(prior_degrees=-1)
    with refused("rows (features, and one more for count and mean), got"):
        InverseWishart(7).plan(MomentShape(4, mean=False), USUAL, "add_remove")


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_padding_is_that_of_the_projection(neighbors):
    shape = MomentShape(4, n_rows=100)
    inverse = InverseWishart(64, adaptive=True).plan(shape, USUAL, neighbors)
    projection = dpm.mechanisms.JohnsonLindenstrauss(64, adaptive=True).plan(shape, USUAL, neighbors)
    assert inverse.padding == projection.padding
    assert inverse.parts == projection.parts


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_a_known_eigenvalue_is_used_as_by_the_projection(neighbors):
    shape = MomentShape(3, n_rows=990 if neighbors == "replace_one" else None)
    inverse = InverseWishart(smallest_eigenvalue=300.0).plan(shape, USUAL, neighbors)
    projection = dpm.mechanisms.JohnsonLindenstrauss(smallest_eigenvalue=300.0).plan(shape, USUAL, neighbors)
    assert inverse.details == projection.details
    assert inverse.padding == 0.0


def test_a_posterior_keeps_its_degrees_beside_a_known_eigenvalue():
    shape = MomentShape(3, n_rows=990, mean=False)
    for eigenvalue in (20.0, 1000.0):
        plan = InverseWishart(prior_degrees=10, smallest_eigenvalue=eigenvalue).plan(shape, USUAL, "replace_one")
        assert plan.degrees == 1000
        assert (plan.padding == 0.0) == (eigenvalue == 1000.0)
