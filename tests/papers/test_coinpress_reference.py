"""A run of CoinPress against a slow reference that is given the same answers: every query, every step, and what comes out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import Recorder
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.mechanisms.coinpress import CoinPress
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.rows.rows import Rows
from dpmoments.schema.encoding import RoughScale
from references.reference_coinpress import Rules, Run, rules
from support.said import codes


def skewed(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(3000, 4)) @ np.linalg.qr(rng.normal(size=(4, 4)))[0] * [1.0, 3.0, 30.0, 80.0]


def far(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(2000, 2)) @ [[1.0, 0.0], [3.0, 1.0]] + [300.0, -100.0]


def heavy(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(4000, 3)) / np.sqrt(rng.chisquare(3, size=4000) / 3)[:, None]


def mostly_zero(share: float, n: int) -> Callable[[np.random.Generator], np.ndarray]:
    def table(rng: np.random.Generator) -> np.ndarray:
        return np.column_stack([rng.normal(size=(n, 2)), rng.lognormal(size=n) * (rng.random(n) < share)])

    return table


def flag(rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([rng.normal(size=(3000, 2)) * [1.0, 20.0], rng.random(3000) < 0.01]) - [0.0, 0.0, 0.5]


def one_column(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(50.0, 3.0, size=(1500, 1))


@dataclass(frozen=True)
class Case:
    """A table and how it is released; ``seen`` names rules that must come into play."""

    table: Callable[[np.random.Generator], np.ndarray]
    bounds: tuple[float, float] | None
    rho: float
    mean_radius: float | None = None
    replace: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    rough: RoughScale | None = None
    seen: frozenset[str] = frozenset()
    seed: int = 0


ROUGH = RoughScale(least=(0.5, 0.5, 0.1), largest=(50.0, 50.0, 1.0), radius=(5.0, 5.0, 0.5), span=(0.0, 0.0, 1.0))
ANCHOR = ((4.0, 1.0, 0.0, 0.0), (1.0, 3.0, 0.0, 0.0), (0.0, 0.0, 100.0, 0.0), (0.0, 0.0, 0.0, 900.0))
CASES = {
    "skewed": Case(skewed, (1.0, 1e4), 0.5),
    "skewed, private count": Case(skewed, (1.0, 1e4), 0.5, replace=False),
    "anchor": Case(skewed, (0.1, 100.0), 0.5, options={"anchor": ANCHOR}),
    "far mean": Case(far, (0.1, 100.0), 0.3, 1000.0),
    "far mean, private count": Case(far, (0.1, 100.0), 0.3, 1000.0, replace=False),
    "heavy": Case(heavy, (0.5, 50.0), 0.5, seen=frozenset({"widened"})),
    "heavy, clipped as normal": Case(heavy, (0.5, 50.0), 0.5, options={"clip": "gaussian"}),
    "mostly zero": Case(
        mostly_zero(0.05, 6000),
        (1e-4, 1e4),
        2.0,
        100.0,
        seen=frozenset({"held", "not enlarged", "apart but near", "widened"}),
    ),
    "few rows, seen": Case(mostly_zero(0.01, 6000), (1e-4, 1e4), 2.0, seen=frozenset({"held", "not enlarged"})),
    "few rows, half seen": Case(mostly_zero(0.004, 6000), (1e-6, 1e4), 0.5, seen=frozenset({"half seen", "unchecked"})),
    "few rows, left out": Case(mostly_zero(0.003, 20_000), (1e-4, 1e4), 5.0, seen=frozenset({"left out"})),
    "few rows, left out, mean": Case(mostly_zero(0.003, 20_000), (1e-4, 1e4), 5.0, 100.0, seen=frozenset({"left out"})),
    "flag": Case(flag, None, 0.2, replace=False, rough=ROUGH),
    "one column": Case(one_column, (0.01, 1e4), 0.05, 1e3),
    "one column, private count": Case(one_column, (0.01, 1e4), 0.05, 1e3, replace=False),
    "given split": Case(skewed, (1.0, 1e4), 0.5, options={"split": (1, 1, 1, 2, 2, 20)}),
    "given steps": Case(skewed, (1.0, 1e4), 0.5, options={"steps": 6}),
    "paper": Case(lambda rng: skewed(rng) / 30.0, (1e-2, 20.0), 1e4, options={"constants": "paper", "steps": 4}),
    "paper, far mean": Case(far, (0.1, 1e3), 1e3, 1000.0, options={"constants": "paper"}),
}


def released(case: Case) -> tuple[np.ndarray, RunResult, Recorder, Any]:
    table = case.table(np.random.default_rng(case.seed))
    neighbors = "replace_one" if case.replace else "add_remove"
    mean = case.mean_radius is not None or case.rough is not None
    shape = MomentShape(
        table.shape[1], n_rows=len(table) if case.replace else None, mean=mean, row_norm=None, rough_scale=case.rough
    )
    kind = PaperCoinPress if "constants" in case.options else CoinPress
    plan = kind(case.bounds, case.mean_radius, **case.options).plan(shape, PrivacyBudget.zcdp(case.rho), neighbors)
    recorder = Recorder(plan, insecure_generator(case.seed))
    rows = Rows.of(table, dpm.Schema.unbounded(table.shape[1]), neighbors=neighbors)
    return table, plan.run(rows, recorder), recorder, plan


@pytest.mark.parametrize("name", CASES)
def test_a_run_is_the_references(name: str) -> None:
    case = CASES[name]
    table, found, recorder, plan = released(case)
    exchanges, rho, n, d = recorder.exchanges, case.rho, float(len(table)), table.shape[1]
    mean = case.mean_radius is not None or case.rough is not None
    if not case.replace:
        count, *exchanges = exchanges
        assert count.query.tolist() == [len(table) * int(count.made.sensitivity.units)]
        assert count.made.law.scale / count.made.sensitivity.units == pytest.approx(1 / math.sqrt(0.02 * rho), rel=1e-9)
        n, rho = max(1.0, round(count.answer[0] / count.made.sensitivity.units)), 0.99 * rho
    anchor, held = case.options.get("anchor"), None
    (lowest, highest), mean_radius = case.bounds or (0.1, 2.0 * 100.0**2 + 10.0**2), case.mean_radius or 0.0
    if case.rough is not None:
        anchor, mean_radius = np.diag([0.25, 0.25, 0.01]), math.sqrt(10.0**2 + 10.0**2 + 5.0**2)
    planned: Rules = rules(
        d,
        n,
        rho,
        (highest + mean_radius**2) / lowest,
        replace=case.replace,
        mean=mean,
        paper=case.options.get("constants") == "paper",
        steps=case.options.get("steps"),
        split=case.options.get("split"),
    )
    if case.rough is not None:
        held = np.diag([0.0, 0.0, 1.0]) / (planned.radius**2 - d)
    steps = found.diagnostics["steps"]
    assert len(steps) == len(planned.shares)
    assert found.diagnostics["predicted_mahalanobis"] == pytest.approx(planned.error, rel=1e-6)
    if case.replace:
        assert plan.details["shares"] == pytest.approx(planned.shares, rel=1e-4)
        assert plan.rules.radius == pytest.approx(planned.radius, rel=1e-5)
        assert plan.rules.n_rows == n
    else:
        assert plan.rules is None
        assert "shares" not in plan.details
    assert plan.details["spread"] == pytest.approx((highest + mean_radius**2) / lowest)
    assert plan.details["rho"] == case.rho
    # Where the minimum is flat the shares of two programs agree to fewer digits than what follows from them.
    shares = [step["rho"] / rho for step in steps]
    assert shares == pytest.approx(planned.shares, rel=1e-4)
    reference = Run(
        table,
        exchanges,
        steps,
        n,
        case.replace,
        mean,
        shares,
        rho,
        steps[0]["radius"] if len(steps) > 1 else planned.radius,
        # Where the last clip was widened, what it was planned to be: as that of the steps before.
        steps[-1]["radius"]
        if case.options.get("constants") == "paper"
        else steps[0]["radius"]
        if len(steps) > 1
        else planned.radius,
        highest + mean_radius**2,
        None if anchor is None else np.array(anchor),
        held,
        (planned.ridge, planned.failure) if case.options.get("constants") == "paper" else None,
        case.options.get("clip") != "gaussian",
    )
    assert (reference.radius, reference.last_radius) == pytest.approx((planned.radius, planned.last_radius), rel=1e-5)
    reference.play()
    assert case.seen <= reference.seen
    np.testing.assert_allclose(
        found.gram, n * reference.covariance, rtol=1e-6, atol=1e-8 * n * np.abs(reference.covariance).max()
    )
    assert np.array_equal(found.gram, found.gram.T)
    assert found.diagnostics["share_outside"] == (
        None if reference.outside is None else pytest.approx(reference.outside, rel=1e-9)
    )
    assert found.diagnostics["share_unseen"] == pytest.approx(reference.unseen, rel=1e-9)
    lost = "variance-of-few-rows" in codes(found.diagnostics["warnings"])
    assert lost == (reference.left_out or reference.half_seen)
    assert found.count == (n if mean or case.replace else None)
    if mean:
        np.testing.assert_allclose(found.center, reference.center, rtol=1e-9, atol=1e-12)
        assert found.sum.tolist() == [0.0] * d
    else:
        assert found.center is None
        assert found.sum is None
