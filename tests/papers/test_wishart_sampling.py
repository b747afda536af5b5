"""Wishart draws, of projections, posteriors and added noise: against explicit ones, and their privacy end to end."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.wishart_sampling import paper_padding
from dpmoments.privacy import curves
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors
from support.opened_filter import run_unchecked
from support.rows_read_once import RowsReadOnce
from support.said import refused

pytestmark = pytest.mark.long

# The Johnson–Lindenstrauss mechanism against explicit projections, and its privacy end to end.

RELATIONS = ["add_remove", "replace_one"]
LOOSE = PrivacyBudget.approximate(0.5, 0.1)
USUAL = PrivacyBudget.approximate(1.0, 1e-6)
JohnsonLindenstrauss = dpm.mechanisms.JohnsonLindenstrauss


def shape_of(table, neighbors="add_remove", mean=False):
    return MomentShape(np.shape(table)[1], n_rows=len(table) if neighbors == "replace_one" else None, mean=mean)


def table_in_the_ball(n_rows, n_features, seed=0):
    table = np.random.default_rng(seed).normal(0, 0.4, (n_rows, n_features)) + 0.1
    return table / np.maximum(1.0, 1.001 * np.linalg.norm(table, axis=1, keepdims=True))


def explicit_projections(table, padding, degrees, size, seed):
    """The paper's Algorithm 1 as printed: project the table with w·I appended, many times. Shape (size, d, d)."""
    generator = np.random.default_rng(seed)
    tall = np.vstack([table, math.sqrt(padding) * np.eye(table.shape[1])])
    sketches = generator.standard_normal((size, degrees, len(tall))) @ tall
    return np.einsum("sri,srj->sij", sketches, sketches) / degrees


def smallest_p_value(first, second):
    """Two-sample Kolmogorov–Smirnov over a few functions of the matrices."""
    functions = [
        lambda m: m[:, 0, 0],
        lambda m: m[:, 0, 1],
        lambda m: np.trace(m, axis1=1, axis2=2),
        lambda m: np.linalg.eigvalsh(m)[:, 0],
        lambda m: np.linalg.slogdet(m)[1],
    ]
    return min(stats.ks_2samp(f(first), f(second)).pvalue for f in functions)


def draws(plan, table, size, seed, run=run_plan):
    rows, generator = RowsReadOnce(table, plan.neighbors), insecure_generator(seed)
    return np.array([run(plan, rows, generator).gram for _ in range(size)])


@pytest.mark.slow
def test_law_is_that_of_explicit_projections():
    table = table_in_the_ball(12, 3)
    plan = JohnsonLindenstrauss(5, subtract_padding=False).plan(shape_of(table), LOOSE, "add_remove")
    actual = draws(plan, table, 1500, seed=1)
    assert smallest_p_value(actual, explicit_projections(table, plan.padding, 5, 4000, seed=2)) > 1e-3
    # Planted faults: one row of the projection more, a tenth less padding, no padding.
    assert smallest_p_value(actual, explicit_projections(table, plan.padding, 6, 4000, seed=2)) < 1e-6
    assert smallest_p_value(actual, explicit_projections(table, 0.8 * plan.padding, 5, 4000, seed=2)) < 1e-6
    assert smallest_p_value(actual, explicit_projections(table, 1e-9, 5, 4000, seed=2)) < 1e-6


def distinguishing_advantage(plan, first, second, event, size, run=run_plan):
    """P[event | first] − e^ε P[event | second] from runs of the plan, and its standard error."""
    tables = [(5, first), (6, second)]
    hits = [np.mean([event(g) for g in draws(plan, table, size, seed, run)]) for seed, table in tables]
    growth = math.exp(plan.cost.epsilon)
    error = math.sqrt(hits[0] * (1 - hits[0]) + growth**2 * hits[1] * (1 - hits[1])) / math.sqrt(size)
    return hits[0] - growth * hits[1], error


def worst_case(plan):
    """The tables and the event that attain δ: all rows but one are zero."""
    q, r = 1.0 / plan.padding, plan.degrees
    slope = q / (2 * (1 + q)) * r / plan.padding  # the loss is slope·M_00 − ..., M the release with its padding
    if plan.neighbors is Neighbors.REPLACE_ONE:
        first, second = np.zeros((1, 2)), np.zeros((1, 2))
        first[0, 0] = second[0, 1] = 1.0
        return first, second, lambda m: slope * (m[0, 0] - m[1, 1]) > plan.cost.epsilon
    first, second = np.array([[1.0, 0.0]]), np.zeros((0, 2))
    return first, second, lambda m: slope * m[0, 0] - 0.5 * r * math.log1p(q) > plan.cost.epsilon


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_worst_neighbors_attain_delta(neighbors):
    mechanism = JohnsonLindenstrauss(4, subtract_padding=False)
    plan = mechanism.plan(MomentShape(2, n_rows=1, mean=False), LOOSE, neighbors)
    advantage, error = distinguishing_advantage(plan, *worst_case(plan), size=800)
    assert abs(advantage - LOOSE.delta) < 4 * error
    # Planted fault: a quarter of the padding, with the event that suits it, leaks more than δ.
    weak = replace(plan, padding=plan.padding / 4)
    advantage, error = distinguishing_advantage(weak, *worst_case(weak), size=500, run=run_unchecked)
    assert advantage > LOOSE.delta + 4 * error
    with refused("This is a defect of the mechanism", PrivacyFilterError):
        draws(weak, np.array([[1.0, 0.0]]), 1, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("mean", [False, True])
def test_always_positive_definite_before_the_subtraction(neighbors, adaptive, mean):
    mechanism = JohnsonLindenstrauss(6, adaptive=adaptive, subtract_padding=False)
    generator = insecure_generator(8)
    tables = [np.zeros((3, 4)), np.eye(4)[:1].repeat(50, axis=0), table_in_the_ball(200, 4)]
    if neighbors == "add_remove":
        tables.append(np.zeros((0, 4)))
    for table in tables:
        plan = mechanism.plan(shape_of(table, neighbors, mean), USUAL, neighbors)
        for _ in range(60):
            noisy = run_plan(plan, RowsReadOnce(table, neighbors), generator)
            assert np.linalg.eigvalsh(noisy.gram)[0] > 0


@pytest.mark.slow
def test_adaptive_bound_fails_exactly_as_often_as_its_share_of_delta():
    plan = JohnsonLindenstrauss(4, adaptive=True).plan(MomentShape(3, mean=False), LOOSE, "add_remove")
    assert plan.parts == (PrivacyBudget.approximate(0.25, 0.05),) * 2
    generator, size = insecure_generator(9), 5_000
    gram = np.diag([1000.0, 2000.0, 3000.0])
    failures = sum(plan._eigenvalue_bound(gram, PrivacyFilter(plan, generator)) > 1000.0 for _ in range(size))
    assert stats.binomtest(failures, size, 0.05).pvalue > 1e-3
    # Planted fault: twice the failures.
    assert stats.binomtest(2 * failures, size, 0.05).pvalue < 1e-6


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_adaptive_pads_only_what_the_table_lacks(neighbors):
    mechanism = JohnsonLindenstrauss(20, adaptive=True)
    big = table_in_the_ball(3000, 3)
    plan = mechanism.plan(shape_of(big, neighbors), USUAL, neighbors)
    inner, fixed = plan.parts[1], plan.padding
    noisy = run_plan(plan, RowsReadOnce(big, neighbors), insecure_generator(10))
    found = noisy.diagnostics
    assert found["padding"] == 0.0
    assert found["eigenvalue_bound"] > fixed + 1
    assert found["degrees_of_freedom"] > 20
    # The row that a neighbor lacks may take 1 off the smallest eigenvalue; what is left is enough, and not for one more.
    left = found["eigenvalue_bound"] - 1
    assert curves.wishart_sampling_delta(inner.epsilon, found["degrees_of_freedom"], left, neighbors) <= inner.delta
    more = found["degrees_of_freedom"] + 1
    assert curves.wishart_sampling_delta(inner.epsilon, more, left, neighbors) > inner.delta * (1 - 1e-8)
    # Planted fault: without the allowance of 1 the same degrees of freedom are not private for that neighbor.
    careless = curves.wishart_sampling_degrees(inner.epsilon, inner.delta, left + 1, neighbors)
    assert curves.wishart_sampling_delta(inner.epsilon, careless, left, neighbors) > inner.delta

    # The row that a neighbor lacks takes up to 1 off the bound; a bound below 1 saves no padding, and adds none either.
    bounds = []
    for n_rows, seed in ((60, 11), (400, 12), (400, 13)):
        small = table_in_the_ball(n_rows, 3)
        found = run_plan(
            mechanism.plan(shape_of(small, neighbors), USUAL, neighbors),
            RowsReadOnce(small, neighbors),
            insecure_generator(seed),
        ).diagnostics
        assert found["degrees_of_freedom"] == 20
        assert found["padding"] + max(found["eigenvalue_bound"] - 1, 0) == pytest.approx(fixed)
        bounds.append(found["eigenvalue_bound"])
    assert min(bounds) < 1 < max(bounds)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_paper_calibration(neighbors):
    shape = MomentShape(5, n_rows=100, mean=False)
    paper = JohnsonLindenstrauss(50, calibration="paper").plan(shape, USUAL, neighbors)
    exact = JohnsonLindenstrauss(50).plan(shape, USUAL, neighbors)
    log_term = math.log(4e6)
    assert paper.padding == pytest.approx(4 * (math.sqrt(100 * log_term) + 2 * log_term))
    assert paper.padding > 8 * exact.padding
    # Where its bound would not be enough, the exact value stands.
    huge = PrivacyBudget.approximate(1e4, 0.9)
    padding = JohnsonLindenstrauss(50, calibration="paper").plan(shape, huge, neighbors).padding
    assert curves.wishart_sampling_delta(1e4, 50, padding, neighbors) <= 0.9
    assert padding >= paper_padding(huge, 50)


@pytest.mark.parametrize("mean", [False, True])
def test_count_and_mean_ride_in_the_same_matrix(mean):
    plan = JohnsonLindenstrauss(60).plan(MomentShape(4, mean=mean), USUAL, "add_remove")
    unit = 1 + plan.augmentation**2
    assert (plan.augmentation > 0) == mean
    assert plan.padding == pytest.approx(unit * curves.wishart_sampling_padding(1.0, 1e-6, 60, "add_remove"))


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("calibration", ["exact", "paper"])
def test_a_known_eigenvalue_sets_the_projection_or_saves_padding(neighbors, mean, calibration):
    shape = MomentShape(3, n_rows=900 if neighbors == "replace_one" else None, mean=mean)
    known = 400.0

    def plan(degrees=None, eigenvalue=known):
        mechanism = JohnsonLindenstrauss(degrees, calibration=calibration, smallest_eigenvalue=eigenvalue)
        return mechanism.plan(shape, USUAL, neighbors)

    def enough(degrees, least):
        ratio = least / gram_frobenius(Neighbors(neighbors), 3, found.augmentation).value
        published = paper_padding(USUAL, degrees) <= least / (1 + found.augmentation**2) * (1 + 1e-9)
        private = curves.raised_wishart_delta(1.0, degrees, ratio) <= 1e-6 * (1 + 1e-12)
        return private and (published or calibration == "exact")

    found = plan()
    assert found.padding == 0.0
    assert 0.9 * known < found.raised <= known
    assert enough(found.degrees, found.raised)
    assert not enough(math.ceil(found.degrees * 1.01) + 1, known)
    # More degrees than it allows: what is missing is padded. Fewer: no more is raised than they rely on.
    more, fewer = plan(4 * found.degrees), plan(max(found.degrees // 4, 5))
    assert more.raised == known
    assert more.padding > 0.0
    assert enough(more.degrees, more.raised + more.padding)
    assert more.padding < plan(4 * found.degrees, None).padding
    assert fewer.padding == 0.0
    assert enough(fewer.degrees, fewer.raised)
    assert not enough(fewer.degrees, 0.999 * fewer.raised)
    # Where it would save nothing, it does nothing.
    little = plan(40, 1e-3)
    if calibration == "exact":
        assert little.raised == 0.0
        assert little.padding == plan(40, None).padding
    assert "raised_to" not in plan(40, None).details


def on_the_first_axis(square):
    """Rows in the unit ball along the first axis of the plane, with this sum of squares."""
    count = math.ceil(square)
    return np.tile([math.sqrt(square / count), 0.0], (count, 1))


@pytest.mark.slow
@pytest.mark.parametrize("inverse", [False, True])
def test_privacy_does_not_rest_on_the_known_eigenvalue(inverse):
    """Asserted far too high, on neighbors at what it is raised to: no more than δ; with a quarter of it far more."""
    kind = dpm.mechanisms.InverseWishart if inverse else JohnsonLindenstrauss
    plan = kind(7, smallest_eigenvalue=1e6, subtract_padding=False).plan(
        MomentShape(2, mean=False), LOOSE, "add_remove"
    )
    assert plan.padding == 0.0

    def advantage_of(plan, run=run_plan):
        least, degrees = plan.raised, plan.degrees
        without = on_the_first_axis(least)
        first, second = np.vstack([without, [[1.0, 0.0]]]), without
        # The likelihood ratio of a Wishart matrix W: W_00 = degrees·M_00, or 1/(W⁻¹)_00 of the inverse.
        slope, growth = 0.5 / least - 0.5 / (least + 1.0), 0.5 * degrees * math.log1p(1.0 / least)

        def event(m):
            if inverse:
                return growth - slope * least * (least + 1.0) * np.linalg.inv(m)[0, 0] * (degrees - 3) > 0.5
            return slope * degrees * m[0, 0] - growth > 0.5

        return distinguishing_advantage(plan, first, second, event, 2000, run)

    advantage, error = advantage_of(plan)
    assert advantage < LOOSE.delta + 4 * error
    weak = replace(plan, raised=plan.raised / 8)  # planted fault
    advantage, error = advantage_of(weak, run_unchecked)
    assert advantage > LOOSE.delta + 4 * error
    with refused("This is a defect of the mechanism", PrivacyFilterError):
        draws(weak, np.array([[1.0, 0.0]]), 1, seed=0)


def test_refusals_say_what_to_do():
    for eigenvalue in (0.0, -1.0, math.inf, math.nan):
        with refused("must be", parameter="smallest_eigenvalue"):
            JohnsonLindenstrauss(smallest_eigenvalue=eigenvalue)
    with refused("give smallest_eigenvalue or adaptive=True, not both: the"):
        JohnsonLindenstrauss(smallest_eigenvalue=9.0, adaptive=True)
    with refused(": use '", parameter="calibration"):
        JohnsonLindenstrauss(calibration="tight")
    for degrees in (0, 2**34 + 1):
        with refused("must be", parameter="degrees_of_freedom"):
            JohnsonLindenstrauss(degrees)
    JohnsonLindenstrauss(2**34)
    assert JohnsonLindenstrauss(5).plan(MomentShape(4), USUAL, "add_remove").degrees == 5
    with refused("rows (features, and one more for count and mean), got", rows=5):
        JohnsonLindenstrauss(4).plan(MomentShape(4), USUAL, "add_remove")
    with refused("cannot spend a budget of"):
        JohnsonLindenstrauss(9).plan(MomentShape(4), PrivacyBudget.pure(1.0), "add_remove")


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_an_adaptive_run_spends_all_of_both_parts(neighbors):
    """The bound's allowance is just what its share of delta asks for."""
    table = table_in_the_ball(300, 3)
    plan = JohnsonLindenstrauss(9, adaptive=True).plan(shape_of(table, neighbors), USUAL, neighbors)
    privacy_filter = PrivacyFilter(plan, insecure_generator(4))
    plan.run(RowsReadOnce(table, plan.neighbors), privacy_filter)
    receipt = privacy_filter.close()
    assert [draw.law.name for draw in receipt.draws] == ["eigenvalue-bound", "wishart-sampling"]
    for draw in receipt.draws:
        assert float(draw.loss.amount) == pytest.approx(0.5, rel=1e-12)
        assert float(draw.loss.delta) == pytest.approx(5e-7, rel=1e-9)
    assert receipt.exhausts


# The inverse-Wishart mechanism: its law, its privacy end to end, and the posterior.

InverseWishart = dpm.mechanisms.InverseWishart


def small_table():
    return np.random.default_rng(0).uniform(-0.5, 0.5, (20, 3))


def precision_p_value(matrices, scale, degrees, factor):
    """For X ~ Wishart⁻¹(Ψ, ν) and any u, uᵀX⁻¹u/uᵀΨ⁻¹u is chi-square with ν degrees of freedom."""
    u = np.array([1.0, -2.0, 0.5])
    precisions = np.einsum("i,sij,j->s", u, np.linalg.inv(matrices / factor), u)
    return stats.kstest(precisions / (u @ np.linalg.inv(scale) @ u), stats.chi2(degrees).cdf).pvalue


@pytest.mark.slow
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


# Additive Wishart noise: its law, both debiasing rules, its privacy end to end, and the gain over the paper's choice.

AdditiveWishart = dpm.mechanisms.AdditiveWishart


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


def worst_case_of_addition(plan):
    """The tables and the event that attain δ: a row against another one, or none."""
    mean = plan.noise.degrees * plan.noise.scale * np.eye(2)
    row, other, power = np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), 0.5 * (plan.noise.degrees - 2 - 1)

    def log_density(w):
        inside = w[0, 0] > 0 and np.linalg.det(w) > 0
        return power * math.log(np.linalg.det(w)) - np.trace(w) / (2 * plan.noise.scale) if inside else -math.inf

    replaced = plan.neighbors is Neighbors.REPLACE_ONE
    first, second = (row[:1], other[1:]) if replaced else (np.zeros((0, 2)), row[:1])
    shifts = [first.T @ first, second.T @ second]
    return (
        first,
        second,
        lambda m: log_density(m + mean - shifts[0]) - log_density(m + mean - shifts[1]) > plan.cost.epsilon,
    )


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_worst_neighbors_attain_delta_by_added_noise(neighbors):
    plan = AdditiveWishart(8).plan(MomentShape(2, n_rows=1, mean=False), LOOSE, neighbors)
    advantage, error = distinguishing_advantage(plan, *worst_case_of_addition(plan), size=800)
    assert abs(advantage - LOOSE.delta) < 4 * error
    # Planted fault: a third of the scale leaks more than δ.
    faulty = replace(plan, noise=replace(plan.noise, scale=plan.noise.scale / 3))
    worst = worst_case_of_addition(faulty)
    advantage, error = distinguishing_advantage(faulty, *worst, size=300, run=run_unchecked)
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


def test_refusals_of_additive_noise_say_what_to_do():
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
