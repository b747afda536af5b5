"""CoinPress: runs against a slow reference and the published errors, rules at their edges, and plans."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.papers.reproduce.experiments.covariances import released_covariance, rotation, whitened_error
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.audit.replay import Recorder
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.mechanisms.coinpress import CoinPress, StepRules, _LastClip, _run_diagnostics
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean, PaperCoinPress
from dpmoments.papers.mechanisms.coinpress_schedule import Schedule
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from dpmoments.schema.encoding import RoughScale
from references.reference_coinpress import Rules, Run, rules
from support.said import codes, refused

pytestmark = pytest.mark.long(sets=None)

# CoinPress against the published curves and the released code's mistakes; what its steps spend, keep and warn of.

D = 10
WIDE = 10 * math.sqrt(D)


def half_wide(spread: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The papers' skewed covariance: half the eigenvalues ``spread``, half 1, in random directions; and its root."""
    q, eigenvalues = rotation(D, rng), np.r_[np.full(D // 2, spread), np.ones(D - D // 2)]
    return (q * eigenvalues) @ q.T, (q * np.sqrt(eigenvalues)) @ q.T


def run(
    table: np.ndarray,
    mechanism: Any,
    seed: int,
    rho: float = 0.5,
    *,
    mean: bool = False,
    neighbors: str = "replace_one",
) -> RunResult:
    n, d = table.shape
    n_rows = n if neighbors == "replace_one" else None
    shape = MomentShape(d, n_rows=n_rows, mean=mean, row_norm=None)
    plan = mechanism.plan(shape, dpm.PrivacyBudget.zcdp(rho), neighbors)
    return run_plan(plan, Rows.of(table, dpm.Schema.unbounded(d), neighbors=neighbors), insecure_generator(seed))


def errors(estimator: Any, n: int, skewed: bool, trials: int, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    found = []
    for trial in range(trials):
        truth, root = half_wide(WIDE, rng) if skewed else (np.eye(D), np.eye(D))
        found.append(whitened_error(estimator(rng.normal(size=(n, D)) @ root, trial), truth))
    return float(stats.trim_mean(found, 0.1))


@pytest.mark.long
@pytest.mark.parametrize("skewed", [False, True], ids=["isotropic", "skewed"])
def test_default_parameters_come_close_to_no_privacy(skewed: bool) -> None:
    """Published: 0.306 isotropic, 0.356 skewed (1.2 at three steps); without privacy 0.191."""

    def ours(table: np.ndarray, seed: int) -> np.ndarray:
        mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, WIDE))
        return run(table, mechanism, seed).gram / len(table)

    def released(table: np.ndarray, seed: int) -> np.ndarray:
        return released_covariance(table, WIDE, 0.5, 3, np.random.default_rng(seed), mended=False)

    assert errors(ours, 3000, skewed, 12) <= 0.225
    # planted fault: the released program's two mistakes
    assert errors(released, 3000, skewed, 12) > 0.225


def test_the_error_does_not_grow_with_the_range() -> None:
    def ours(table: np.ndarray, seed: int) -> np.ndarray:
        mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, 1e6 * math.sqrt(D)))
        return run(table, mechanism, seed).gram / len(table)

    assert errors(ours, 7000, False, 6) <= 0.14


@pytest.mark.slow
def test_unknown_mean_costs_little() -> None:
    rng = np.random.default_rng(3)
    covariance_errors, mean_errors, uncentered = [], [], []
    for trial in range(6):
        truth, root = half_wide(WIDE, rng)
        center = rng.normal(size=D) * 300
        table = rng.normal(size=(4000, D)) @ root + center
        mechanism = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, WIDE), mean_radius=3000.0)
        noisy = run(table, mechanism, trial, mean=True)
        assert noisy.sum is not None
        covariance_errors.append(whitened_error(noisy.covariance, truth))
        mean_errors.append(float(np.linalg.norm(np.linalg.solve(root, noisy.mean - center))))
        blind = run(table, dpm.mechanisms.CoinPress(eigenvalue_bounds=(1.0, 9e6)), trial, mean=False)
        uncentered.append(whitened_error(blind.gram / len(table) - np.outer(center, center), truth))
    assert np.mean(covariance_errors) < 0.21  # 0.166 without privacy
    assert np.mean(mean_errors) < 0.06  # 0.049 without privacy
    # planted fault: not recentring, and taking even the true mean off afterwards
    assert np.mean(uncentered) > 1.0


def test_an_anchor_is_a_change_of_coordinates() -> None:
    rng = np.random.default_rng(5)
    root = np.linalg.cholesky(half_wide(50.0, rng)[0])
    anchor = root @ root.T
    eigenvalues, eigenvectors = np.linalg.eigh(anchor)
    symmetric_root = (eigenvectors * np.sqrt(eigenvalues)) @ eigenvectors.T
    table = rng.normal(size=(3000, D))
    plain = run(table, dpm.mechanisms.CoinPress((0.5, 2.0)), 4)
    moved = run(table @ symmetric_root, dpm.mechanisms.CoinPress((0.5, 2.0), anchor=anchor.tolist()), 4)
    np.testing.assert_allclose(moved.gram, symmetric_root @ plain.gram @ symmetric_root, rtol=1e-3, atol=1.0)


def test_under_epsilon_and_delta_the_steps_are_counted_as_one_gaussian_mechanism() -> None:
    """More ρ than zCDP gives for the same (ε, δ), and all of it is spent."""
    table = np.random.default_rng(11).normal(size=(500, 3))
    budget = dpm.PrivacyBudget.approximate(1.0, 1e-6)
    for neighbors, n_rows in (("replace_one", 500), ("add_remove", None)):
        for mechanism in (
            dpm.mechanisms.CoinPress((1.0, 100.0)),
            dpm.mechanisms.PrivatePreconditioning(eigenvalue_bounds=(1.0, 100.0)),
        ):
            plan = mechanism.plan(MomentShape(3, n_rows=n_rows, mean=False, row_norm=None), budget, neighbors)
            privacy_filter = PrivacyFilter(plan, insecure_generator(0))
            plan.run(Rows.of(table, dpm.Schema.unbounded(3), neighbors=neighbors), privacy_filter)
            receipt = privacy_filter.close()
            assert receipt.unit is LossUnit.GAUSSIAN_RHO
            assert receipt.exhausts
            assert receipt.total.amount > Fraction(1.1 * budget.to_rho())
            assert receipt.total.amount <= allowance(budget, LossUnit.GAUSSIAN_RHO).amount


def test_one_row_moves_a_step_by_no_more_than_its_sensitivity_and_by_all_of_it() -> None:
    rng = np.random.default_rng(2)
    table, radius, center = rng.normal(size=(50, 4)), 1.7, rng.normal(size=4)
    linear = np.linalg.qr(rng.normal(size=(4, 4)))[0] * 3.0
    worst = 0.0
    for trial in range(60):
        other = table.copy()
        other[0] = rng.normal(size=4) * 10.0 ** rng.integers(-2, 200 if trial % 7 == 0 else 5)
        if trial == 0:  # orthogonal, both far outside
            table[0] = center + np.linalg.solve(linear, np.array([1e6, 0, 0, 0]))
            other[0] = center + np.linalg.solve(linear, np.array([0, 1e6, 0, 0]))
        moments = [Rows.of(rows, dpm.Schema.unbounded(4)).moments(center, linear, radius) for rows in (table, other)]
        difference = (moments[0].gram - moments[1].gram).astype(float) * moments[0].scale ** 2
        worst = max(worst, float(np.linalg.norm(difference)))
    assert worst <= math.sqrt(2) * radius**2
    assert worst == pytest.approx(math.sqrt(2) * radius**2, rel=1e-4)


def test_the_steps_spend_no_more_than_the_budget_and_all_of_it() -> None:
    rng = np.random.default_rng(1)
    shape = MomentShape(3, n_rows=500, mean=False, row_norm=None)
    for rho in (0.5, 1e-3, 7.0):
        for options in ({}, {"constants": "paper"}, {"split": (1.0, 2.0, 10.0)}, {"steps": 6}):
            kind = PaperCoinPress if "constants" in options else dpm.mechanisms.CoinPress
            plan = kind((1.0, 100.0), **options).plan(shape, dpm.PrivacyBudget.zcdp(rho), "replace_one")
            privacy_filter = PrivacyFilter(plan, insecure_generator(0))
            rows = Rows.of(rng.normal(size=(500, 3)), dpm.Schema.unbounded(3), neighbors="replace_one")
            noisy = plan.run(rows, privacy_filter)
            spent = sum(Fraction(step["rho"]) for step in noisy.diagnostics["steps"])
            assert Fraction(rho) * Fraction(999, 1000) <= spent <= Fraction(rho)
            drawn = privacy_filter.close().total.amount
            assert Fraction(rho) * Fraction(999_999_999, 1_000_000_000) <= drawn <= Fraction(rho)


def test_every_ellipsoid_is_kept_and_holds_the_rows() -> None:
    rng = np.random.default_rng(8)
    root = half_wide(WIDE, rng)[1]
    table = rng.normal(size=(8000, D)) @ root
    noisy = run(table, dpm.mechanisms.CoinPress((1.0, WIDE)), 0)
    steps = noisy.diagnostics["steps"]
    volumes = []
    for step in steps:
        images = (table - np.array(step["center"])) @ np.array(step["linear"]).T
        assert np.mean(np.linalg.norm(images, axis=1) <= step["radius"]) > 0.95
        volumes.append(-np.linalg.slogdet(np.array(step["linear"]))[1])
    # half of the eigenvalues are 1/31.6 of the first bound: 8.6 in the logarithm of the volume
    assert volumes[0] - volumes[-1] > 6.0
    assert noisy.diagnostics["warnings"] == ()


def test_heavy_tails_widen_the_last_clip() -> None:
    rng = np.random.default_rng(4)
    table = rng.normal(size=(8000, D)) / np.sqrt(rng.chisquare(5, size=8000) / 3)[:, None]
    bounds = (1.0, WIDE)
    adaptive = run(table, dpm.mechanisms.CoinPress(bounds), 0)
    normal = run(table, dpm.mechanisms.CoinPress(bounds, clip="gaussian"), 0)
    assert whitened_error(adaptive.gram / 8000, np.eye(D)) < 0.6 * whitened_error(normal.gram / 8000, np.eye(D))


# A run of CoinPress against a slow reference that is given the same answers: every query, every step, and what comes out.


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


@pytest.mark.long(sets=7)
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
    assert plan.expected_count_error == pytest.approx(0.0 if case.replace else 1.0 / math.sqrt(0.02 * case.rho))
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


# What a run says of itself, at the edges; and rows that are not normal.

UP, DOWN = 1 + 1e-9, 1 - 1e-9


def warned(
    *,
    d: int = 4,
    n_rows: float = 100.0,
    predicted: float = 0.1,
    planned: float = 3.0,
    radius: float = 3.0,
    noise: float = 0.01,
    fill: float = 0.1,
    half_seen: bool = False,
    **clip: Any,
) -> list[str]:
    schedule = Schedule((1.0,), (1.0,), predicted)
    steps = [{"radius": radius, "noise_scale": noise, "fill": fill, "center": [0.0] * d}]
    rules, last = StepRules(n_rows, planned, planned, schedule), _LastClip(1.0, radius, **clip)
    found = _run_diagnostics(steps, rules, last, half_seen)
    assert found["steps"] is steps
    assert found["predicted_mahalanobis"] == predicted
    assert (found["share_outside"], found["share_unseen"]) == (last.outside, last.unseen_tail)
    return codes(found["warnings"])


def test_every_warning_begins_where_it_should() -> None:
    assert warned() == []
    assert [warned(outside=share) for share in (None, 0.5, 0.5 * UP)] == [[], [], ["rows-outside-bounds"]]
    assert [warned(predicted=2.0 * f) for f in (1.0, UP)] == [[], ["small-eigenvalues-lost"]]  # √d
    assert [warned(radius=12.0 * f) for f in (1.0, UP)] == [[], ["clip-widened"]]  # four times as wide
    assert [warned(unseen_tail=0.06 * f) for f in (1.0, UP)] == [[], ["rows-unseen-tail"]]
    assert [warned(noise=math.sqrt(0.4) * f) for f in (DOWN, UP)] == [[], ["noise-above-covariance"]]
    assert [warned(lost=0.5 * f) for f in (1.0, UP)] == [[], ["variance-of-outlying-rows"]]  # √d / 4
    assert [warned(n_rows=n) for n in (4.0, 4.0 * DOWN)] == [[], ["fewer-rows-than-features"]]
    assert [warned(left_out=out, half_seen=half) for out in (False, True) for half in (False, True)] == [
        [],
        ["variance-of-few-rows"],
        ["variance-of-few-rows"],
        ["variance-of-few-rows"],
    ]


@pytest.mark.filterwarnings("ignore::dpmoments.ReleaseWarning")
def test_a_rare_flag_does_not_ruin_the_other_columns() -> None:
    """Before: variances of 494 and 278 for true 1."""
    schema = dpm.Schema(*(dpm.Numeric(name, scale=(0.1, 100.0)) for name in "ab"), dpm.Boolean("c"))
    for seed in range(2):
        rng = np.random.default_rng([seed, 1])
        table = np.column_stack([rng.normal(size=(20_000, 2)), rng.random(20_000) < 0.005])
        found = dpm.release(
            table, schema, mechanism="coinpress", epsilon=3.0, delta=1e-6, insecure_seed=seed, threads=1
        )
        ratios = np.diag(found.covariance) / table.var(axis=0)
        assert np.abs(ratios[:2] - 1.0).max() < 0.05
        assert abs(ratios[2] - 1.0) < 0.2


# What CoinPress takes from its options before any row is read.


@pytest.mark.parametrize("kind", [CoinPress, CoinPressMean])
def test_the_edges_of_what_options_may_be(kind: Any) -> None:
    needed = {} if kind is CoinPress else {"radius": 1.0}
    for steps in (1, 2, 999, 1000):
        assert kind(steps=steps, **needed).steps == steps
    for steps in (0, -1, 1001, True, False):
        with refused("must be", parameter="steps"):
            kind(steps=steps, **needed)
    for split in ((), (0.0, 1.0), (1.0, -1.0), (1.0, math.inf), (math.nan,)):
        with refused("give one positive share per step"):
            kind(split=split, **needed)
    assert kind(split=(5e-324, 1.0), **needed).split == (5e-324, 1.0)
    assert kind(split=[1, 2, 5], **needed).split == (0.125, 0.25, 0.625)
    assert kind(split=(1, 3), steps=2, **needed).split == (0.25, 0.75)
    with refused("shares and steps="):
        kind(split=(1, 3), steps=1, **needed)
    with refused(": use '"):
        kind(clip="none", **needed)
    with refused(": use '"):
        PaperCoinPress(constants="none")  # type: ignore[arg-type]
