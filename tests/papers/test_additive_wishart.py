"""Additive Wishart noise: its law, both debiasing rules, its privacy end to end, and the gain over the paper's choice."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy import curves
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilterError
from dpmoments.privacy.sampling import insecure_generator
from support.opened_filter import run_unchecked
from support.rows_read_once import RowsReadOnce
from support.said import refused

pytestmark = pytest.mark.long

RELATIONS = ["add_remove", "replace_one"]
LOOSE = PrivacyBudget.approximate(0.5, 0.1)
USUAL = PrivacyBudget.approximate(1.0, 1e-6)
AdditiveWishart = dpm.mechanisms.AdditiveWishart


def draws(plan, table, size, seed, run=run_plan):
    rows, generator = RowsReadOnce(table, plan.neighbors), insecure_generator(seed)
    return np.array([run(plan, rows, generator).gram for _ in range(size)])


def p_values(noise, degrees, scale):
    """uᵀWu/s² is chi-square with k degrees of freedom, 1/(uᵀW⁻¹u s²) with k − d + 1."""
    d = noise.shape[1]
    u = np.ones(d) / math.sqrt(d)
    along = np.einsum("i,sij,j->s", u, noise, u) / scale
    inverse = 1 / np.einsum("i,sij,j->s", u, np.linalg.inv(noise), u) / scale
    return stats.kstest(along, stats.chi2(degrees).cdf).pvalue, stats.kstest(
        inverse, stats.chi2(degrees - d + 1).cdf
    ).pvalue


@pytest.mark.slow
def test_law_is_that_of_appended_normal_rows():
    table = np.random.default_rng(0).uniform(-0.5, 0.5, (15, 3))
    plan = AdditiveWishart(9).plan(MomentShape(3, mean=False), LOOSE, "add_remove")
    noise = draws(plan, table, 2500, seed=1) - table.T @ table + 9 * plan.noise.scale * np.eye(3)
    assert min(p_values(noise, 9, plan.noise.scale)) > 1e-3
    # Planted faults: a degree of freedom too many, noise of a wrong scale, the mean left out.
    assert min(p_values(noise, 10, plan.noise.scale)) < 1e-6
    assert min(p_values(noise, 9, 1.1 * plan.noise.scale)) < 1e-6
    assert p_values(noise - plan.noise.scale * np.eye(3), 9, plan.noise.scale)[0] < 1e-6


SCALE = np.array([[3.0, 1.0, 0.2], [1.0, 2.0, 0.0], [0.2, 0.0, 1.5]])


@pytest.mark.slow
def test_a_scale_matrix_shapes_the_noise():
    """W ~ Wishart(s²V, k) (Theorem B.3): after V^{−1/2} on both sides it is the noise of the default."""
    table = np.random.default_rng(0).uniform(-0.5, 0.5, (15, 3))
    plan = AdditiveWishart(9, scale_matrix=SCALE).plan(MomentShape(3, mean=False), LOOSE, "add_remove")
    plain = AdditiveWishart(9).plan(MomentShape(3, mean=False), LOOSE, "add_remove")
    scale = plan.whitened.noise.scale
    assert (plan.whitened.noise.degrees, scale) == (plain.noise.degrees, plain.noise.scale)
    errors = draws(plan, table, 2500, seed=1) - table.T @ table
    factor = np.linalg.inv(np.linalg.cholesky(SCALE))

    def whitened(matrix):
        return factor @ (errors + 9 * scale * matrix) @ factor.T

    assert min(p_values(whitened(SCALE), 9, scale)) > 1e-3
    # Planted faults: noise of the default's shape, the mean of another shape taken off.
    assert min(p_values(whitened(np.eye(3)), 9, scale)) < 1e-6
    assert min(p_values(errors + 9 * scale * SCALE, 9, scale)) < 1e-6
    squares = np.square(errors).sum((1, 2))
    assert (
        abs(squares.mean() / plan.expected_error**2 - 1) < 4 * squares.std() / math.sqrt(2500) / plan.expected_error**2
    )


def advantage_on_worst_neighbors(plan, size, run=run_plan):
    """P[E | first] − e^ε P[E | second] for the tables and the event that attain δ, and its standard error."""
    mean = plan.noise.degrees * plan.noise.scale * np.eye(2)
    row, other = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    power = 0.5 * (plan.noise.degrees - 2 - 1)

    def log_density(w):
        inside = w[0, 0] > 0 and np.linalg.det(w) > 0
        return power * math.log(np.linalg.det(w)) - np.trace(w) / (2 * plan.noise.scale) if inside else -math.inf

    if plan.neighbors == "replace_one":
        tables, shifts = [np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], [row, other]
    else:
        tables, shifts = [np.zeros((0, 2)), np.array([[1.0, 0.0]])], [0 * row, row]

    def event(m):
        return log_density(m + mean - shifts[0]) - log_density(m + mean - shifts[1]) > plan.cost.epsilon

    growth = math.exp(plan.cost.epsilon)
    hits = [np.mean([event(m) for m in draws(plan, table, size, 2 + i, run)]) for i, table in enumerate(tables)]
    error = math.sqrt((hits[0] * (1 - hits[0]) + growth**2 * hits[1] * (1 - hits[1])) / size)
    return hits[0] - growth * hits[1], error


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_worst_neighbors_attain_delta(neighbors):
    plan = AdditiveWishart(8).plan(MomentShape(2, n_rows=1, mean=False), LOOSE, neighbors)
    advantage, error = advantage_on_worst_neighbors(plan, 800)
    assert abs(advantage - LOOSE.delta) < 4 * error
    # Planted fault: a third of the scale leaks more than δ.
    faulty = replace(plan, noise=replace(plan.noise, scale=plan.noise.scale / 3))
    advantage, error = advantage_on_worst_neighbors(faulty, 300, run_unchecked)
    assert advantage > LOOSE.delta + 4 * error
    with refused("This is a defect of the mechanism", PrivacyFilterError):
        draws(faulty, np.array([[1.0, 0.0]]), 1, seed=0)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_paper_calibration_and_the_gain_over_it(neighbors):
    shape = MomentShape(50, n_rows=1000, mean=False)
    paper = AdditiveWishart(calibration="paper").plan(shape, USUAL, neighbors)
    assert (paper.noise.degrees, paper.noise.scale) == (50 + 425, 1.0)
    # The paper's scale with the exact number of degrees, and both chosen.
    beyond = curves.additive_wishart_degrees(1.0, 1e-6, 1.0, neighbors)
    chosen = AdditiveWishart().plan(shape, USUAL, neighbors)
    same_scale = math.sqrt((50 + beyond) * 50 * 51)
    assert paper.expected_error > 2 * same_scale > 2 * 1.5 * chosen.expected_error
    limit = curves.gaussian_noise_scale(1.0, 1e-6, 1.0 if neighbors == "add_remove" else math.sqrt(2.0))
    gaussian_error = limit * math.sqrt(50 * 51 / 2)
    assert gaussian_error < chosen.expected_error <= 1.01 * gaussian_error
    assert curves.additive_wishart_delta(1.0, chosen.noise.degrees - 50, chosen.noise.scale, neighbors) <= 1e-6


def test_positive_definite_rule():
    budget, shape = USUAL, MomentShape(3, mean=False)
    plan = AdditiveWishart(60, debias="positive-definite").plan(shape, budget, "add_remove")
    assert plan.model is None
    assert plan.expected_error is None
    big = 0.5 * np.eye(3).repeat(2000, axis=0)
    noisy = run_plan(plan, RowsReadOnce(big), insecure_generator(4))
    assert noisy.diagnostics["kept_shift"] == 0.0
    assert noisy.model.to_dict() == plan.unbiased.model.to_dict()
    # A table of no rows: all of the mean cannot be taken off, and what stays makes the release positive definite.
    empty = [run_plan(plan, RowsReadOnce(np.zeros((0, 3))), insecure_generator(seed)) for seed in range(200)]
    kept = np.array([noisy.diagnostics["kept_shift"] for noisy in empty])
    assert [noisy.model is None for noisy in empty] == (kept > 0).tolist()
    scale, k = plan.unbiased.noise.scale, 60
    root = math.sqrt(k) - math.sqrt(3) - math.sqrt(2 * math.log(4e6))
    assert set(kept) <= {0.0, scale * (k - max(root, 0) ** 2)}
    assert np.mean(kept > 0) > 0.9
    assert min(np.linalg.eigvalsh(noisy.gram)[0] for noisy in empty) > 0
    # Planted fault: the rule's matrix with the whole mean taken off is not positive definite.
    assert (
        min(np.linalg.eigvalsh(noisy.gram - shift * np.eye(3))[0] for noisy, shift in zip(empty, kept, strict=True)) < 0
    )


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("degrees", [None, 30])
def test_scale_is_that_of_the_curve_for_an_augmented_row(neighbors, degrees):
    """A row (w, x) has the square 1 + w², and the curve is for rows of square 1."""
    plan = AdditiveWishart(degrees).plan(MomentShape(3), USUAL, neighbors)
    beyond, square = plan.noise.degrees - plan.dimension, 1.0 + plan.augmentation**2
    assert plan.dimension == 4
    assert square > 1.0
    assert plan.noise.degrees == 30 or degrees is None
    assert plan.noise.scale == curves.additive_wishart_scale(1.0, 1e-6, beyond, plan.neighbors) * square
    assert plan.model.rate == pytest.approx(0.5 / plan.noise.scale, rel=1e-12)
    exact = curves.additive_wishart_delta(1.0, beyond, plan.noise.scale / square, plan.neighbors)
    assert (
        exact
        <= 1e-6
        < curves.additive_wishart_delta(1.0, beyond, plan.noise.scale / square * (1 - 1e-6), plan.neighbors)
    )


def test_refusals_say_what_to_do():
    with refused(": use '", parameter="debias"):
        AdditiveWishart(debias="none")
    with refused("the paper's calibration sets the degrees of freedom: leave"):
        AdditiveWishart(50, calibration="paper")
    with refused(": use '", parameter="calibration"):
        AdditiveWishart(calibration="tight")
    for fewest_or_most in (5, 4 + 2**26):
        plan = AdditiveWishart(fewest_or_most).plan(MomentShape(4, mean=False), USUAL, "add_remove")
        assert plan.noise.degrees == fewest_or_most
    with refused("the rows of the matrix (features, and one more for count"):
        AdditiveWishart(5 + 2**26).plan(MomentShape(4, mean=False), USUAL, "add_remove")
    with refused("the rows of the matrix (features, and one more for count"):
        AdditiveWishart(4).plan(MomentShape(4, mean=False), USUAL, "add_remove")
    with refused("cannot spend a budget of"):
        AdditiveWishart().plan(MomentShape(4), PrivacyBudget.zcdp(0.5), "add_remove")
