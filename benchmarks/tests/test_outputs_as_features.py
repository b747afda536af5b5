"""Sheffet's multiple-regressions experiment at tiny size: what its tables hold, what is measured, what techniques spend."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from benchmarks.papers.reproduce.declaration import Point
from benchmarks.papers.reproduce.experiments import outputs_as_features as experiment
from benchmarks.papers.reproduce.experiments.outputs_as_features import lasso
from benchmarks.papers.reproduce.figures import sheffet
from benchmarks.papers.reproduce.figures.sheffet import FIGURE_5 as FIGURE
from benchmarks.papers.reproduce.figures.sheffet import MOST, SIX
from benchmarks.papers.sheffet.techniques import (
    ADDITIVE_AS_DRAWN,
    BASE,
    DELTA,
    INVERSE_WISHART_ADAPTIVE,
    JL_ADAPTIVE,
    OUTPUTS,
    outputs_as_features,
    posterior_without_a_ridge,
    projection_without_a_ridge,
    techniques,
)
from benchmarks.papers.summed_once import summed_once
from scipy import stats

from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors

ADD_REMOVE = Neighbors.ADD_REMOVE
EPSILON = 0.5
POWERS = (10, 12, 14, 16, 18, 20)


@pytest.mark.parametrize("others", range(OUTPUTS))
def test_other_outputs_tell_nothing_in_the_model(others: int) -> None:
    """Exactly: given the base features, what made the label is all there is, and the other outputs have coefficient 0."""
    model = outputs_as_features(others)
    (regression,) = model.regressions
    assert len(regression.features) == 1 + BASE + others
    assert regression.target not in regression.features
    found = regression.coefficients(model.covariance)
    known = list(range(1 + BASE))
    np.testing.assert_allclose(found[: 1 + BASE], model.covariance[known, regression.target], atol=1e-13)
    np.testing.assert_allclose(found[1 + BASE :], 0.0, atol=1e-13)
    assert np.linalg.norm(found) == pytest.approx(1.0, rel=1e-12)
    # And it is no accident of the label: without the base features the other outputs do tell.
    if others:
        alone = model.covariance[np.ix_(regression.features[1 + BASE :], regression.features[1 + BASE :])]
        crossed = model.covariance[list(regression.features[1 + BASE :]), regression.target]
        assert np.linalg.norm(np.linalg.solve(alone, crossed)) > 0.1


def test_more_others_than_there_are_is_refused() -> None:
    for others in (-1, OUTPUTS):
        with pytest.raises(ValueError, match="one of them is the target"):
            outputs_as_features(others)


def test_tables_have_an_intercept_and_the_models_second_moment() -> None:
    model = outputs_as_features(0)
    n = 200_000
    table = model.table(n, np.random.default_rng(1)) * model.row_bound
    np.testing.assert_array_equal(table[:, 0], 1.0)
    # An entry of the second moment of n rows has variance at most (σ_ii σ_jj + σ_ij²)/n.
    spread = np.sqrt((np.outer(*2 * [np.diag(model.covariance)]) + model.covariance**2) / n)
    assert (np.abs(table.T @ table / n - model.covariance) < 5.0 * spread + 1e-12).all()


def measured(power: int, others: int, trial: int = 0) -> dict[tuple[str, str], float]:
    """One trial of every method of Figure 5."""
    settings = {"model": "many", "others": others, "epsilon": 0.5}
    found = list(experiment.measure(Point(settings, 2.0**power, trial), FIGURE.methods))
    assert len({row[:2] for row in found}) == len(found)
    return {(label, metric): value for label, metric, value in found}


def test_a_trial_has_every_technique_of_the_paper_twice_and_every_baseline_once() -> None:
    labels = {method.label for technique in SIX for method in technique}
    assert len(labels) == 12
    baselines = {method.label for method in (sheffet.LEAST_SQUARES, sheffet.PROJECTION, sheffet.POSTERIOR)}
    for others in (0, MOST):
        found = measured(9, others)
        assert {label for label, _ in found} == labels | baselines | {sheffet.DEFAULT.label}
        for label in {label for label, _ in found}:
            norm = found[label, experiment.SPURIOUS]
            assert norm <= found[label, "error"] + 1e-12
            assert (norm == 0.0) == (others == 0)
            assert ((label, experiment.OTHER_ZEROS) in found) == (others == MOST)
        # At 2^9 rows Gaussian noise is far from positive definite.
        assert all(found[method.label, experiment.NEEDED] == 1.0 for method in sheffet.SCALED_GAUSS)
        assert 0.0 <= found[sheffet.LEAST_SQUARES.label, experiment.CLIPPED] < 0.01
    assert measured(18, 0)[sheffet.SCALED_GAUSS[1].label, experiment.NEEDED] == 0.0  # and at 2^18 it is


def test_least_squares_and_the_lasso_are_exact_on_the_models_second_moment() -> None:
    """No noise: no error, and the lasso keeps every base feature and leaves most of the other outputs out."""
    model = outputs_as_features(0)
    for others in range(OUTPUTS):
        asked = outputs_as_features(others)
        (regression,) = asked.regressions
        truth = regression.coefficients(asked.covariance)
        np.testing.assert_allclose(regression.coefficients(asked.covariance * 123.0), truth, atol=1e-12)
    zeros = lasso(model.covariance * 1e6, 10**6)
    assert zeros.base == 0
    assert zeros.others >= 5


def test_the_lasso_on_a_release_is_not_sparse_where_it_should_be() -> None:
    """Without privacy it leaves out most of the other outputs and no base feature; from no release does it tell the two apart."""
    trials = [measured(14, MOST, trial) for trial in range(3)]
    for label in {label for label, _ in trials[0]}:
        base = np.mean([found[label, experiment.BASE_ZEROS] for found in trials]) / BASE
        others = np.mean([found[label, experiment.OTHER_ZEROS] for found in trials]) / MOST
        if label == sheffet.LEAST_SQUARES.label:
            assert base == 0.0
            assert others >= 0.5
        elif label not in (sheffet.PROJECTION.label, sheffet.POSTERIOR.label):
            assert others < 0.4, label
            assert abs(others - base) < 0.3, label


def test_every_technique_spends_the_budget_and_the_two_adaptive_ones_start_from_the_same_degrees() -> None:
    model, degrees = outputs_as_features(0), {}
    rows = summed_once(model.table(2**9, np.random.default_rng(0)), ADD_REMOVE)
    labels = {method.settings["technique"] for method in FIGURE.methods if "technique" in method.settings}
    asked = [technique for technique in techniques() if technique.label in labels]
    assert len(asked) == 14
    for technique in asked:
        plan = technique.plan(model, 2**9, EPSILON, ADD_REMOVE)
        assert (plan.cost.epsilon, plan.cost.delta) == (EPSILON, DELTA), technique.label
        privacy_filter = PrivacyFilter(plan, insecure_generator(0))
        plan.run(rows, privacy_filter)  # which refuses to pass the cost
        if technique.label in (JL_ADAPTIVE, INVERSE_WISHART_ADAPTIVE):
            for power in POWERS:
                started = technique.plan(model, 2**power, EPSILON, ADD_REMOVE)
                degrees[technique.label, technique.calibration, power] = started.details["degrees_of_freedom"]
    for calibration, power in product(("paper", "exact"), POWERS):
        assert degrees[JL_ADAPTIVE, calibration, power] == degrees[INVERSE_WISHART_ADAPTIVE, calibration, power]


def test_kept_means_of_the_additive_noise_are_those_of_a_wishart_matrix() -> None:
    """No rows: the mean diagonal entry of Wishart(s²I, k) is ks², its standard error over d entries and 60 draws s²√(2k/60d)."""
    model = outputs_as_features(0)
    rows = summed_once(np.zeros((1, 21)), ADD_REMOVE)
    for technique in techniques():
        if technique.label != ADDITIVE_AS_DRAWN:
            continue
        plan = technique.plan(model, 2**9, EPSILON, ADD_REMOVE)
        generator = insecure_generator(3)
        drawn = [technique.repair(plan.run(rows, PrivacyFilter(plan, generator)).gram, plan) for _ in range(60)]
        k, square = plan.details["degrees_of_freedom"], plan.details["scale"]
        error = square * np.sqrt(2.0 * k / (60 * 21))
        assert abs(np.mean([np.diag(matrix) for matrix in drawn]) - k * square) < 4.0 * error
        assert min(np.linalg.eigvalsh(matrix)[0] for matrix in drawn) > 0.0


def test_baselines_without_privacy_have_their_exact_laws() -> None:
    """Along any axis r·Wishart/Σ is χ²_r, and Σ⁻¹ over the inverse of the posterior draw's is χ²_ν."""
    rng, gram = np.random.default_rng(2), np.array([[2.0, 0.6], [0.6, 1.0]])
    drawn = [projection_without_a_ridge(gram, 7, rng)[0, 0] * 7 / gram[0, 0] for _ in range(1200)]
    assert stats.kstest(drawn, stats.chi2(7).cdf).pvalue > 0.01
    precision = np.linalg.inv(gram)
    posterior = [np.linalg.inv(posterior_without_a_ridge(gram, 7, rng))[0, 0] / precision[0, 0] for _ in range(1200)]
    assert stats.kstest(posterior, stats.chi2(7).cdf).pvalue > 0.01
    assert stats.kstest(drawn, stats.chi2(8).cdf).pvalue < 1e-6
    assert stats.kstest(posterior, stats.chi2(6).cdf).pvalue < 1e-6
