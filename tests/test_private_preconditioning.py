"""Private preconditioning: right where its constants reach, and honest where they do not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmoments as dpm
from cases import run_plan
from dpmoments.mechanisms.base import MomentShape, NoisyMoments
from dpmoments.mechanisms.private_preconditioning import CONTRACTION, RESCALE, SHRINK, _shrink_long
from dpmoments.noise.entropy import insecure_generator
from dpmoments.rows.rows import Rows

BOUNDS = (1.0, 100.0)


def run(table: np.ndarray, mechanism: dpm.mechanisms.base.Mechanism, rho: float, seed: int = 0) -> NoisyMoments:
    n, d = table.shape
    plan = mechanism.plan(
        MomentShape(d, n_rows=n, mean=False, row_norm=None), dpm.PrivacyBudget.zcdp(rho), "replace_one"
    )
    return run_plan(plan, Rows.of(table, dpm.Schema.unbounded(d), neighbors=plan.neighbors), insecure_generator(seed))


def relative_error(gram: np.ndarray, n: int, scales: np.ndarray) -> float:
    return float(np.linalg.norm(gram / n / np.outer(scales, scales) - np.eye(len(scales))))


def test_it_works_with_enough_rows_and_coinpress_with_fewer() -> None:
    rng, scales = np.random.default_rng(0), np.array([10.0, 1.0])
    many = rng.normal(size=(60_000, 2)) * scales
    found = run(many, dpm.mechanisms.PrivatePreconditioning(BOUNDS), 2.0)
    assert relative_error(found.gram, len(many), scales) < 0.06
    assert found.diagnostics["warnings"] == []
    few = many[:1500]
    loose = run(few, dpm.mechanisms.PrivatePreconditioning(BOUNDS), 2.0)
    assert any("noise of a round" in text for text in loose.diagnostics["warnings"])
    tight = run(few, dpm.mechanisms.CoinPress(BOUNDS), 2.0)
    assert relative_error(tight.gram, len(few), scales) < 0.15


def test_a_round_takes_the_bound_down_and_keeps_the_lower_one() -> None:
    """Without noise: I ⪯ Σ ⪯ κI gives I ⪯ PΣP ⪯ 0.9κI, for any κ ≥ 8 and any spectrum."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        kappa = math.exp(rng.uniform(math.log(8.0), math.log(1e6)))
        eigenvalues = np.exp(rng.uniform(0.0, math.log(kappa), size=4))
        q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        covariance = (q * eigenvalues) @ q.T
        step = RESCALE * _shrink_long(covariance, kappa / 2)
        after = np.linalg.eigvalsh(step @ covariance @ step)
        assert after[0] >= 1.0 - 1e-9
        assert after[-1] <= CONTRACTION * kappa
    # planted fault: halving below κ = 8 can undercut the lower bound
    covariance = np.diag([1.0, 2.1])
    step = RESCALE * _shrink_long(covariance, 4.0 / 2)
    assert np.linalg.eigvalsh(step @ covariance @ step)[0] < 1.0
    assert SHRINK**2 * 8.0 / 2 >= 1.0


def test_the_product_of_rounds_is_undone_from_both_sides() -> None:
    rng = np.random.default_rng(2)
    root = np.linalg.cholesky(np.array([[80.0, 30.0], [30.0, 14.0]]))
    table = rng.normal(size=(60_000, 2)) @ root.T
    found = run(table, dpm.mechanisms.PrivatePreconditioning(BOUNDS), 2.0)
    whitened = np.linalg.solve(root, np.linalg.solve(root, found.gram / len(table)).T)
    assert np.linalg.norm(whitened - np.eye(2)) < 0.06
    # planted fault: undoing the product of the rounds as if it were symmetric, P⁻¹MP⁻¹
    last = np.array(found.diagnostics["steps"][-1]["linear"])
    middle, inverse = last @ found.gram @ last.T, np.linalg.inv(last)
    wrong = np.linalg.solve(root, np.linalg.solve(root, inverse @ middle @ inverse / len(table)).T)
    assert np.linalg.norm(wrong - np.eye(2)) > 0.1


def test_an_unlimited_budget_gives_the_second_moment_of_the_rows() -> None:
    rng = np.random.default_rng(2)
    root = np.linalg.cholesky(np.array([[90.0, 20.0, 0.0], [20.0, 30.0, 5.0], [0.0, 5.0, 3.0]]))
    table = rng.normal(size=(5000, 3)) @ root.T
    found = run(table, dpm.mechanisms.PrivatePreconditioning((1.0, 200.0)), 1e12)
    np.testing.assert_allclose(found.gram, table.T @ table, rtol=1e-3)


def test_number_of_rounds_follows_from_the_range() -> None:
    shape, budget = MomentShape(3, n_rows=100, mean=False, row_norm=None), dpm.PrivacyBudget.zcdp(1.0)
    for highest, rounds in ((5.0, 0), (8.0, 0), (80.0, 22), (8e4, 88)):
        plan = dpm.mechanisms.PrivatePreconditioning((1.0, highest)).plan(shape, budget, "replace_one")
        assert plan.details["rounds"] == rounds


def test_impossible_requests_are_refused() -> None:
    for options, words in (
        ({"eigenvalue_bounds": (3.0, 2.0)}, "lowest"),
        ({"stop_at": 4.0}, "at least 8"),
        ({"clip_constant": 0.0}, "positive"),
        ({"failure": 1.0}, "probability"),
    ):
        with pytest.raises(ValueError, match=words):
            dpm.mechanisms.PrivatePreconditioning(**options)
    budget = dpm.PrivacyBudget.zcdp(1.0)
    with pytest.raises(ValueError, match="mean=False"):
        dpm.mechanisms.PrivatePreconditioning().plan(MomentShape(3, n_rows=10), budget, "replace_one")
    shape = MomentShape(3, n_rows=10, mean=False, row_norm=None)
    with pytest.raises(ValueError, match="needs a range"):
        dpm.mechanisms.PrivatePreconditioning().plan(shape, budget, "replace_one")
