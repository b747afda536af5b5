"""Sheffet's multiple-regressions experiment at tiny size: what its tables hold, and what the techniques may spend."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from benchmarks.papers.sheffet.outputs import (
    EPSILON,
    GAUSS_AS_DRAWN,
    GAUSS_SHIFTED,
    LABELS,
    LEAST_SQUARES,
    NOT_PRIVATE,
    OTHERS,
    POWERS,
    SIX,
    lasso,
    lasso_table,
    regress,
    release,
    repair_table,
    tables_of,
)
from benchmarks.papers.sheffet.techniques import (
    ADAPTED,
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
from benchmarks.papers.summed_once import SummedOnce
from scipy import stats

from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors

ADD_REMOVE = Neighbors.ADD_REMOVE


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


@pytest.fixture(scope="module")
def tiny():
    return release(9, tables=2, runs=2, neighbors=ADD_REMOVE)


def test_a_tiny_run_has_every_technique_of_the_paper_twice_and_every_baseline_once(tiny) -> None:
    private = set(product((*SIX, ADAPTED), ("paper", "exact")))
    assert set(tiny.matrices) == private | {(label, "") for label in NOT_PRIVATE}
    for (label, _), matrices in tiny.matrices.items():
        assert len(matrices) == (2 if label == LEAST_SQUARES else 4)
        assert all(matrix.shape == (21, 21) for matrix in matrices)
    found = {
        (9, others, key): regress(matrices, others) for others in OTHERS for key, matrices in tiny.matrices.items()
    }
    assert all((errors.others <= errors.whole + 1e-12).all() for errors in found.values())
    assert all(errors.others.max() == 0.0 for (_, others, _), errors in found.items() if others == 0)
    lines = tables_of([tiny], found)
    assert sum(line.startswith("| paper | ") for line in lines) == 7 * (len(OTHERS) + 1)
    assert len(repair_table([tiny], found)) == 4 + 2 + 1
    assert len(lasso_table([tiny], 1)) == 4 + len(tiny.matrices) + 1
    # At 2^9 rows Gaussian noise is far from positive definite; as drawn, nothing is done to it.
    assert all(tiny.repaired[GAUSS_SHIFTED, calibration] == [True] * 4 for calibration in ("paper", "exact"))
    assert not any(tiny.repaired[GAUSS_AS_DRAWN, "paper"])
    for shifted in tiny.matrices[GAUSS_SHIFTED, "exact"]:
        assert np.linalg.eigvalsh(shifted)[0] > 0.0


def test_least_squares_and_the_lasso_are_exact_on_the_models_second_moment() -> None:
    """No noise: no error, and the lasso keeps every base feature and leaves most of the other outputs out."""
    model = outputs_as_features(0)
    for others in OTHERS:
        assert regress([model.covariance * 123.0], others).whole[0] < 1e-12
    zeros = lasso(model.covariance * 1e6, 10**6)
    assert zeros.base == 0
    assert zeros.others >= 5


def test_the_lasso_on_a_release_is_not_sparse_where_it_should_be() -> None:
    """Without privacy it leaves out most of the other outputs and no base feature; from no release does it tell the two apart."""
    found = release(14, tables=1, runs=3, neighbors=ADD_REMOVE)
    for key, matrices in found.matrices.items():
        zeros = [lasso(matrix, 2**14) for matrix in matrices]
        base = np.mean([zero.base for zero in zeros]) / BASE
        others = np.mean([zero.others for zero in zeros]) / (OUTPUTS - 1)
        if key[0] == LEAST_SQUARES:
            assert base == 0.0
            assert others >= 0.5
        elif key[0] not in NOT_PRIVATE:
            assert others < 0.4, key
            assert abs(others - base) < 0.3, key


def test_every_technique_spends_the_budget_and_the_two_adaptive_ones_start_from_the_same_degrees() -> None:
    model, degrees = outputs_as_features(0), {}
    rows = SummedOnce(model.table(2**9, np.random.default_rng(0)), ADD_REMOVE)
    asked = [technique for technique in techniques() if technique.label in LABELS]
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
    rows = SummedOnce(np.zeros((1, 21)), ADD_REMOVE)
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
    drawn = [projection_without_a_ridge(gram, 7, rng)[0, 0] * 7 / gram[0, 0] for _ in range(2000)]
    assert stats.kstest(drawn, stats.chi2(7).cdf).pvalue > 0.01
    precision = np.linalg.inv(gram)
    posterior = [np.linalg.inv(posterior_without_a_ridge(gram, 7, rng))[0, 0] / precision[0, 0] for _ in range(2000)]
    assert stats.kstest(posterior, stats.chi2(7).cdf).pvalue > 0.01
    assert stats.kstest(drawn, stats.chi2(8).cdf).pvalue < 1e-6
    assert stats.kstest(posterior, stats.chi2(6).cdf).pvalue < 1e-6
