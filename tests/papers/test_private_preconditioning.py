"""Private preconditioning: right where its constants reach, and honest where they do not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.audit.replay import Recorder
from dpmoments.base.message import Message
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.bounds.normal_rows import CONTRACTION, RESCALE
from dpmoments.papers.mechanisms.private_preconditioning import _SHRINK, _shrink_long
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from support.said import codes, refused

pytestmark = pytest.mark.long(sets=None)

BOUNDS = (1.0, 100.0)


def run(table: np.ndarray, mechanism: dpm.mechanisms.base.Mechanism, rho: float, seed: int = 0) -> RunResult:
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
    assert found.diagnostics["warnings"] == ()
    few = many[:1500]
    loose = run(few, dpm.mechanisms.PrivatePreconditioning(BOUNDS), 2.0)
    assert "rounds-too-noisy" in codes(loose.diagnostics["warnings"])
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
    assert _SHRINK**2 * 8.0 / 2 >= 1.0


def test_impossible_requests_are_refused() -> None:
    for options, code in (
        ({"eigenvalue_bounds": (3.0, 2.0)}, "give (lowest, highest) with 0 < lowest ≤ highest, finite"),
        ({"stop_at": 4.0}, "must be"),
        ({"clip_constant": 0.0}, "must be"),
        ({"failure": 1.0}, "must be"),
    ):
        with refused(code):
            dpm.mechanisms.PrivatePreconditioning(**options)
    budget = dpm.PrivacyBudget.zcdp(1.0)
    with refused("private-preconditioning estimates the second moment"):
        dpm.mechanisms.PrivatePreconditioning().plan(MomentShape(3, n_rows=10), budget, "replace_one")
    shape = MomentShape(3, n_rows=10, mean=False, row_norm=None)
    with refused("private-preconditioning needs a range of eigenvalues of the"):
        dpm.mechanisms.PrivatePreconditioning().plan(shape, budget, "replace_one")


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(
    ("d", "options", "rounds"),
    [
        (3, {"eigenvalue_bounds": (0.5, 40.0)}, 22),
        (3, {"eigenvalue_bounds": (2.0, 60.0), "stop_at": 20.0, "clip_constant": 1.5, "failure": 0.2}, 4),
        (2, {"eigenvalue_bounds": (1.0, 8.0)}, 0),
        (1, {"eigenvalue_bounds": (0.5, 40.0)}, 22),
    ],
)
def test_a_run_is_the_references(replace: bool, d: int, options: dict[str, Any], rounds: int) -> None:
    """The lecture's recursion in plain NumPy, given the same answers: every query, radius, scale, and the result."""
    rho, n = 5.0, 800.0
    table = (
        np.random.default_rng(d).normal(size=(800, d))
        @ np.array([[5.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 2.0]])[:d, :d]
    )
    neighbors = "replace_one" if replace else "add_remove"
    shape = MomentShape(d, n_rows=800 if replace else None, mean=False, row_norm=None)
    plan = dpm.mechanisms.PrivatePreconditioning(**options).plan(shape, PrivacyBudget.zcdp(rho), neighbors)
    recorder = Recorder(plan, insecure_generator(d))
    found = plan.run(Rows.of(table, dpm.Schema.unbounded(d), neighbors=neighbors), recorder)
    exchanges, left = recorder.exchanges, rho
    if not replace:
        count, *exchanges = exchanges
        n, left = float(round(count.answer[0] / count.made.sensitivity.units)), 0.99 * rho
        assert plan.expected_count_error == pytest.approx(math.sqrt(0.5 / (0.01 * rho)), rel=1e-9)
    else:
        assert plan.expected_count_error == 0.0
    assert plan.details == {"rho": rho, "rounds": rounds}
    (lowest, highest), factor = options["eigenvalue_bounds"], options.get("clip_constant", 2.0)
    kappa, linear, noisy_rounds = highest / lowest, np.eye(d) / math.sqrt(lowest), False
    steps = found.diagnostics["steps"]
    assert len(exchanges) == len(steps) == rounds + 1
    for index, (exchange, step) in enumerate(zip(exchanges, steps, strict=True)):
        share = 1.0 if not rounds else 0.5 / rounds if index < rounds else 0.5
        radius = math.sqrt(factor * kappa * d * math.log(n / options.get("failure", 0.05)))
        units = exchange.made.sensitivity.units
        deviation = (1.0 if d == 1 or not replace else math.sqrt(2.0)) / math.sqrt(2.0 * left * share)
        assert exchange.made.what == Message("gram", **({"round": index + 1} if index < rounds else {"last": True}))
        assert exchange.made.law.scale / units == pytest.approx(deviation, rel=1e-9)
        np.testing.assert_allclose(step["linear"], linear, rtol=1e-9, atol=1e-12)
        assert (step["radius"], step["kappa"]) == (pytest.approx(radius, rel=1e-9), pytest.approx(kappa, rel=1e-9))
        assert step["noise_scale"] == pytest.approx(deviation * radius**2 / n, rel=1e-9)
        rows = table @ linear.T
        rows *= np.minimum(1.0, radius / np.linalg.norm(rows, axis=1))[:, None] / radius
        np.testing.assert_allclose(exchange.query.astype(float) / units, rows.T @ rows, atol=0.1)
        answer = exchange.answer.astype(float) / units * radius**2
        if index < rounds:
            noisy_rounds |= deviation * radius**2 / n * (math.sqrt(2.0 * d) if d > 1 else 1.0) > kappa / 10.0
            values, vectors = np.linalg.eigh(answer / n)
            linear = 1.05 * (vectors * np.where(values >= kappa / 2.0, 0.5, 1.0)) @ vectors.T @ linear
            kappa *= 0.9
    inverse = np.linalg.inv(linear)
    np.testing.assert_allclose(
        found.gram, inverse @ answer @ inverse.T, rtol=1e-9, atol=1e-9 * np.abs(found.gram).max()
    )
    assert np.array_equal(found.gram, found.gram.T)
    assert (found.count, found.sum, found.center) == (n if replace else None, None, None)
    assert codes(found.diagnostics["warnings"]) == ["rounds-too-noisy"] * noisy_rounds
