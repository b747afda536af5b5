"""Adaptive ball: against a plain one that is given the same noisy answers; its bounds, its noise, its files."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.audit.replay import Recorder, replay, replay_everywhere, replay_on_any_table
from dpmoments.audit.verification import checks
from dpmoments.mechanisms import AdaptiveBall
from dpmoments.mechanisms.ball_search import BallEvidence
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise.models import AdditiveModel
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.rows.rows import Rows
from dpmoments.schema import Categorical, Numeric, Schema
from references import plain_ball
from references.plain_answers import assert_same_messages
from references.plain_ball import BallAnswers, Found
from support.forged_files import forge, more_noise
from support.said import codes, refused

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
both_relations = pytest.mark.parametrize("neighbors", list(Neighbors))

BUDGETS = {
    "pure": PrivacyBudget.pure(1.0),
    "approximate": PrivacyBudget.approximate(1.0, 1e-6),
    "rho": PrivacyBudget.zcdp(0.5),
}


def rows_near(n: int, d: int, spread: float = 0.05, seed: int = 0) -> np.ndarray:
    """Rows about a mean off zero, all of them well inside the unit ball."""
    table = np.random.default_rng(seed).normal(0.0, spread / np.sqrt(d), (n, d))
    table[:, 0] += 0.3
    return table


def at_the_edge(n: int, d: int, radius: float = 1.0, seed: int = 0) -> np.ndarray:
    table = np.random.default_rng(seed).normal(size=(n, d))
    return np.asarray(radius * table / np.linalg.norm(table, axis=1, keepdims=True))


def with_far_rows(n: int, d: int, n_far: int, seed: int = 0) -> np.ndarray:
    table = rows_near(n, d, seed=seed)
    table[:n_far] = at_the_edge(n_far, d, seed=seed)
    return table


def two_shells() -> np.ndarray:
    """About as many rows at the edge as may lie beyond a ball, and the others not far from there."""
    return np.vstack([at_the_edge(100, 3), at_the_edge(1500, 3, 0.9, seed=1)])


def dropped_in_part(table: np.ndarray, each: int = 7) -> np.ndarray:
    table = table.copy()
    table[::each, 0] = np.nan
    return table


def recorded(
    table: np.ndarray,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    *,
    seed: int = 0,
    schema: Schema | None = None,
    drops: bool = False,
    recorder_class: type[Recorder] = Recorder,
) -> tuple[RunResult, Recorder, Any]:
    """One run, everything that it asked, and its plan."""
    schema = Schema.unit_ball(table.shape[1], missing="drop" if drops else "center") if schema is None else schema
    plan = AdaptiveBall().plan(
        MomentShape.of(schema, mean=True, n_rows=len(table) if neighbors is REPLACE else None), budget, neighbors
    )
    recorder = recorder_class(plan, insecure_generator(seed))
    noisy = plan.run(Rows.of(table, schema, mean=True, neighbors=neighbors, threads=1), recorder)
    receipt = recorder.close()
    assert receipt.exhausts
    assert noisy.model is not None
    assert plan.model_entries(noisy.diagnostics, receipt) == noisy.model.to_dict()
    assert plan.rules_of_run(noisy.diagnostics) == noisy.rules
    return noisy, recorder, plan


def plainly(
    encoded: np.ndarray,
    recorder: Recorder,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    *,
    drops: bool = False,
    box: Any = None,
) -> Found:
    kept = encoded[np.isfinite(encoded).all(axis=1)]
    d, replace_one, public = encoded.shape[1], neighbors is REPLACE, neighbors is REPLACE and not drops
    loss, pure, coarse = plain_ball.loss_of(budget, d, replace_one=replace_one, noisy_count=not public)
    answers = BallAnswers(recorder.exchanges, replace_one=replace_one, pure=pure, coarse=coarse)
    return plain_ball.adaptive_ball(kept, loss, answers, count_is_public=public, box=box)


def assert_same(noisy: RunResult, found: Found) -> None:
    """Moments, center, law, diagnostics, warning and rules, to rounding."""
    close = {"rtol": 1e-8, "atol": 1e-12}
    np.testing.assert_allclose(noisy.count, found.count, **close)
    np.testing.assert_allclose(noisy.sum, found.sum, **close)
    np.testing.assert_allclose(noisy.gram, found.gram, **close)
    assert (noisy.center is None) == (found.center is None)
    if noisy.center is not None:
        np.testing.assert_allclose(noisy.center, found.center, **close)
    law = noisy.model
    assert isinstance(law, AdditiveModel)
    variances = (law.diagonal_variance, law.sum_variance, law.count_variance)
    np.testing.assert_allclose(variances, found.variances, rtol=1e-8)
    said = dict(noisy.diagnostics)
    warned = said.pop("warnings", [])
    assert list(said) == list(found.diagnostics)
    for name, value in found.diagnostics.items():
        assert said[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-7, abs=1e-12)), name
    assert_same_messages(warned, found.warning)
    assert_same_messages(noisy.rules, found.said)


Table = Callable[[], np.ndarray]

TABLES: dict[str, tuple[Table, dict[str, str]]] = {
    "near their mean": (lambda: rows_near(6000, 3), {"pure": "ball", "approximate": "ball", "rho": "ball"}),
    "wide": (lambda: rows_near(40_000, 3, 0.3), {"rho": "ball"}),
    "about a far center": (lambda: rows_near(6000, 3) + [0.6, 0.1, -0.2], {"pure": "ball", "rho": "ball"}),
    "few far rows": (lambda: with_far_rows(6000, 3, 3), {"pure": "ball", "rho": "ball"}),
    "too few rows": (lambda: rows_near(40, 3), {"pure": "few", "approximate": "few", "rho": "few"}),
    "at the edge": (lambda: at_the_edge(25_000, 3), {"pure": "screened", "approximate": "screened", "rho": "screened"}),
    "fewer at the edge": (lambda: at_the_edge(1600, 3), {"pure": "full", "rho": "full"}),
    "two shells": (two_shells, {"pure": "full", "rho": "full"}),
    "far rows": (lambda: with_far_rows(6000, 3, 60), {"rho": "full"}),
    "far rows among many": (lambda: with_far_rows(40_000, 3, 60), {"pure": "guard"}),
    "fewer far rows among many": (lambda: with_far_rows(40_000, 3, 25), {"rho": "guard"}),
    "all alike": (lambda: np.full((5000, 2), 0.25), {"pure": "ball", "approximate": "ball", "rho": "ball"}),
    "beyond the unit ball": (lambda: at_the_edge(4000, 3, 3.0), {"rho": "screened"}),
    "one row": (lambda: rows_near(1, 3), {"pure": "few", "approximate": "few", "rho": "few"}),
    "no row": (lambda: np.zeros((0, 3)), {"pure": "few", "approximate": "few", "rho": "few"}),
    "a constant column": (lambda: rows_near(6000, 3) * [1.0, 0.0, 1.0], {"pure": "ball", "rho": "ball"}),
    "zeros but one": (lambda: np.vstack([np.zeros((5999, 3)), [[0.0, 0.0, 1.0]]]), {"pure": "ball", "rho": "ball"}),
    "one column": (lambda: rows_near(5000, 1), {"pure": "ball", "approximate": "ball", "rho": "ball"}),
    "two columns": (lambda: rows_near(5000, 2), {"pure": "ball", "approximate": "ball", "rho": "ball"}),
    "many columns": (lambda: rows_near(20_500, 40), {"pure": "ball", "approximate": "ball", "rho": "ball"}),
    "many columns at the edge": (lambda: at_the_edge(20_500, 40), {"approximate": "screened"}),
    "many columns, far rows": (lambda: with_far_rows(9000, 40, 380), {"approximate": "guard"}),
    "many columns, few rows": (lambda: rows_near(30, 40), {"approximate": "few"}),
}
PATHS = {"few", "screened", "full", "guard", "ball"}


@both_relations
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", TABLES)
def test_a_run_is_that_of_the_plain_implementation(name: str, budget: str, neighbors: Neighbors) -> None:
    make, paths = TABLES[name]
    table = make()
    for seed in range(2):
        noisy, recorder, _ = recorded(table, BUDGETS[budget], neighbors, seed=seed)
        found = plainly(table, recorder, BUDGETS[budget], neighbors)
        assert_same(noisy, found)
        if seed == 0 and budget in paths and name != "no row" and neighbors is ADD:
            assert found.path == paths[budget]


def test_every_path_is_taken_under_every_kind_of_budget() -> None:
    for budget in ("pure", "rho"):
        assert {paths.get(budget) for _, paths in TABLES.values()} >= PATHS
    assert {paths.get("approximate") for _, paths in TABLES.values()} >= PATHS - {"full"}
    of_many = AdaptiveBall().plan(MomentShape(40), BUDGETS["approximate"], ADD)
    of_few = AdaptiveBall().plan(MomentShape(3), BUDGETS["approximate"], ADD)
    assert of_many.cost == BUDGETS["approximate"]
    assert of_few.cost == PrivacyBudget.pure(1.0)


class ManyOutside(Recorder):
    """Answers that put 4,000 more rows outside the ball."""

    def _answer(self, made: Any, query: Any) -> Any:
        answer = super()._answer(made, query)
        return answer + 4000 * int(made.sensitivity.units) if made.what.code == "ball-outside" else answer


@both_relations
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_ball_that_holds_few_rows_is_not_taken(budget: str, neighbors: Neighbors) -> None:
    table = rows_near(5000, 3)
    noisy, recorder, _ = recorded(table, BUDGETS[budget], neighbors, recorder_class=ManyOutside)
    assert noisy.diagnostics["public_bounds"] == "ball-holds-few-rows"
    assert noisy.center is None
    found = plainly(table, recorder, BUDGETS[budget], neighbors)
    assert found.path == "emptied"
    assert_same(noisy, found)


@pytest.mark.parametrize("n", [600, 2000])
def test_columns_of_one_distance_give_no_warning_of_outlying_rows(n: int) -> None:
    """Every row is farther than the largest radius; a search without the public bounds among its choices takes the smallest."""
    table = np.sign(np.random.default_rng(4).standard_normal((n, 6))) / np.sqrt(6.0)
    for seed in range(20):
        noisy, _, _ = recorded(table, PrivacyBudget.pure(3.0), ADD, seed=seed)
        assert noisy.diagnostics["public_bounds"] in ("rows-fill-bounds", "few-rows-for-ball")
        assert "warnings" not in noisy.diagnostics


@pytest.mark.parametrize("budget", ["pure", "rho"])
def test_a_far_cluster_is_seen_and_said(budget: str) -> None:
    """A table of three in a thousand rows near a corner keeps the public bounds in most runs, with a warning in most."""
    table = rows_near(20_000, 8, 0.2) - 0.6 * np.eye(8)[0]
    table[:60] = 0.95 * np.eye(8)[0]
    said = []
    for seed in range(10):
        noisy, _, _ = recorded(table, BUDGETS[budget], ADD, seed=seed)
        said.append((noisy.diagnostics.get("public_bounds", "ball"), "warnings" in noisy.diagnostics))
    assert sum(reason == "ball" for reason, _ in said) <= 3
    assert sum(warned for _, warned in said) >= (5 if budget == "pure" else 0)
    assert all(reason == "ball-clips-too-much" for reason, warned in said if warned)


@both_relations
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    "name", ["near their mean", "few far rows", "too few rows", "far rows among many", "many columns"]
)
def test_the_same_where_a_rule_drops_rows(name: str, budget: str, neighbors: Neighbors) -> None:
    table = dropped_in_part(TABLES[name][0]())
    noisy, recorder, _ = recorded(table, BUDGETS[budget], neighbors, drops=True)
    assert isinstance(noisy.model, AdditiveModel)
    assert noisy.model.count_variance
    assert_same(noisy, plainly(table, recorder, BUDGETS[budget], neighbors, drops=True))


@both_relations
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1, 5.0, 80.0, 1e6])
@pytest.mark.parametrize("kind", list(BUDGETS))
def test_the_same_with_little_and_with_much_to_spend(kind: str, epsilon: float, neighbors: Neighbors) -> None:
    budget = {
        "pure": PrivacyBudget.pure(epsilon),
        "approximate": PrivacyBudget.approximate(epsilon, 1e-6),
        "rho": PrivacyBudget.zcdp(epsilon**2 / 8.0),
    }[kind]
    for table in (rows_near(4100, 4), with_far_rows(4100, 4, 20)):
        noisy, recorder, _ = recorded(table, budget, neighbors)
        assert_same(noisy, plainly(table, recorder, budget, neighbors))


def columns_and_cells(name: str) -> tuple[Schema, np.ndarray, np.ndarray]:
    """Bounded columns, a table of them, and its encoded rows."""
    low, high = np.array([0.0, -5.0, 100.0]), np.array([10.0, 5.0, 300.0])
    schema = Schema(*[Numeric(f"c{j}", low[j], high[j]) for j in range(3)])
    rng = np.random.default_rng(5)
    table = {
        "inside": rng.normal([2.0, 1.0, 120.0], [0.1, 0.1, 4.0], (5000, 3)),
        "all outside": rng.normal([99.0, 99.0, -99.0], 1.0, (5000, 3)),
        "one side outside": rng.normal([2.0, 5.0, 90.0], [0.1, 2.0, 20.0], (5000, 3)),
    }[name]
    encoded = np.clip((table - (low + high) / 2.0) / ((high - low) / 2.0), -1.0, 1.0) / np.sqrt(3.0)
    return schema, table, encoded


@both_relations
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", ["inside", "all outside", "one side outside"])
def test_the_same_with_bounds(name: str, budget: str, neighbors: Neighbors) -> None:
    schema, table, encoded = columns_and_cells(name)
    noisy, recorder, _ = recorded(table, BUDGETS[budget], neighbors, schema=schema)
    box = (-np.full(3, 1 / np.sqrt(3.0)), np.full(3, 1 / np.sqrt(3.0)))
    assert_same(noisy, plainly(encoded, recorder, BUDGETS[budget], neighbors, box=box))


@both_relations
@pytest.mark.parametrize(
    "budget", [PrivacyBudget.pure(1e13), PrivacyBudget.zcdp(1e20), PrivacyBudget.approximate(1e15, 0.5)]
)
def test_with_an_unlimited_budget_the_moments_are_exact(budget: PrivacyBudget, neighbors: Neighbors) -> None:
    for table in (rows_near(300, 3), with_far_rows(300, 3, 5), at_the_edge(300, 3)):
        noisy, _, _ = recorded(table, budget, neighbors)
        np.testing.assert_allclose(noisy.count, 300.0, atol=1e-6)
        np.testing.assert_allclose(noisy.second_moment_sum, table.T @ table, atol=2e-3)
        np.testing.assert_allclose(noisy.mean, table.mean(axis=0), atol=1e-5)


# ---------------------------------------------------------------- what is not told


PATH_TABLES = {
    "few": lambda: rows_near(50, 3),
    "screened": lambda: at_the_edge(5000, 3, 0.95),
    "full": lambda: with_far_rows(600, 3, 400),
    "guard": lambda: with_far_rows(5000, 3, 12),
    "ball": lambda: rows_near(5000, 3),
}


def path_of(noisy: RunResult) -> str:
    reason = str(noisy.diagnostics.get("public_bounds", ""))
    if "few" in reason:
        return "few"
    if "fill" in reason:
        return "full"
    return "guard" if reason else "ball"


@both_relations
@pytest.mark.parametrize(
    "budget", [PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(1.0, 1e-6)]
)
@pytest.mark.parametrize("drops", [False, True])
def test_nothing_unpaid_for_leaves_a_run_on_any_path(drops: bool, budget: PrivacyBudget, neighbors: Neighbors) -> None:
    """Neighbors of tables that end in each way, and unrelated ones, with the same answers."""
    d = 12 if budget.delta > 0 else 3
    reached = set()
    for name, make in PATH_TABLES.items():
        table = np.hstack([make(), np.zeros((len(make()), d - 3))])
        if drops:
            table = dropped_in_part(table)
        schema = Schema.unit_ball(d, missing="drop" if drops else "center")
        n_rows = len(table) if neighbors is REPLACE else None
        plan = AdaptiveBall().plan(MomentShape.of(schema, mean=True, n_rows=n_rows), budget, neighbors)

        def rows(cells: np.ndarray, schema: Schema = schema) -> Rows:
            return Rows.of(cells, schema, mean=True, neighbors=neighbors, threads=1)

        others = [np.full(d, np.nan)] if drops else []
        for place, row in enumerate([np.zeros(d), np.eye(d)[0], -np.eye(d)[1], np.full(d, 1e9), *others], start=3):
            other = np.delete(table, place, axis=0)
            if neighbors is REPLACE:
                other = np.insert(other, 0, row, axis=0)
            elif place > 3:
                other = np.insert(table, 0, row, axis=0)
            assert replay(plan, rows(table), rows(other), insecure_generator(place)) == (), name
        unrelated = np.random.default_rng(1).normal(0.0, 0.4, table.shape)
        assert replay(plan, rows(table), rows(unrelated), insecure_generator(9), any_table=True) == ()
        assert replay(plan, rows(unrelated), rows(table), insecure_generator(9), any_table=True) == ()
        noisy, _, _ = recorded(table, budget, neighbors, seed=9, drops=drops)
        reached.add(path_of(noisy))
    assert reached >= {"few", "full", "ball"}


@both_relations
@pytest.mark.parametrize(
    "budget", [PrivacyBudget.pure(60.0), PrivacyBudget.zcdp(200.0), PrivacyBudget.approximate(60.0, 1e-9)]
)
def test_replay_reaches_the_ball_on_small_tables_with_large_budgets(
    budget: PrivacyBudget, neighbors: Neighbors
) -> None:
    """The tables of `replay_everywhere` are too small for a search at the budgets of `tests/contracts/cases.py`."""
    assert replay_everywhere(AdaptiveBall(), budget, neighbors, insecure_generator(1)) == ()
    assert replay_on_any_table(AdaptiveBall(), budget, neighbors, insecure_generator(2), sizes=(40, 700)) == ()
    noisy, _, _ = recorded(rows_near(40, 3), budget, neighbors)
    assert path_of(noisy) == "ball"


def test_a_row_more_cannot_be_seen_where_few_rows_make_up_a_column() -> None:
    """`dominant_rows` looks for no ball, and is the additive mechanism at the public bounds."""
    for budget, name in ((BUDGETS["pure"], "matrix-laplace"), (BUDGETS["rho"], "gaussian")):
        plan = AdaptiveBall(dominant_rows=True).plan(MomentShape(3), budget, ADD)
        assert plan.mechanism.name == name
        assert plan.cost == budget
    table = with_far_rows(6000, 3, 8)
    released = dpm.release(
        table,
        Schema.unit_ball(3),
        epsilon=1e9,
        mechanism=AdaptiveBall(dominant_rows=True),
        insecure_seed=0,
        repair="none",
    )
    np.testing.assert_allclose(released.noisy_gram, table.T @ table, atol=1e-2)
    assert "radius" not in released.diagnostics
    assert len(released.privacy.rules) == len(Schema.unit_ball(3).rules)


# ---------------------------------------------------------------- what it says of the rows that were moved


def moved(table: np.ndarray, noisy: RunResult) -> np.ndarray:
    """The rows as the release has them, about its center."""
    about = table - noisy.center
    lengths = np.linalg.norm(about, axis=1, keepdims=True)
    return np.asarray(about * np.minimum(1.0, noisy.diagnostics["radius"] / np.maximum(lengths, 1e-300)))


def broken_bounds(table: np.ndarray, budget: PrivacyBudget, trials: int) -> tuple[int, int]:
    """In how many runs some bound did not hold, and how many ended in a ball."""
    broken = in_ball = 0
    for seed in range(trials):
        noisy, _, _ = recorded(table, budget, ADD, seed=seed)
        if noisy.center is None:
            continue
        in_ball += 1
        about, clipped, said = table - noisy.center, moved(table, noisy), noisy.diagnostics
        outside = float((np.linalg.norm(about, axis=1) > said["radius"] * (1.0 + 1e-5)).mean())
        trace = float((about**2).sum() - (clipped**2).sum()) / len(table)
        mean = float(np.linalg.norm(about.mean(axis=0) - clipped.mean(axis=0)))
        held = (
            outside <= said["share_beyond_bound"]
            and trace <= said["trace_bias_bound"] + 1e-9
            and mean <= said["mean_bias_bound"] + 1e-9
        )
        broken += not held
    return broken, in_ball


def half_moon(n: int, n_far: int, at: float) -> np.ndarray:
    """Most rows near their mean, some on one side."""
    table = rows_near(n, 3, 0.04)
    table[:n_far, 1] += at
    return table


TRIALS = 120


@pytest.mark.parametrize("budget", ["pure", "rho"])
def test_bounds_hold_in_nineteen_runs_of_twenty(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = half_moon(6000, 120, 0.2)
    most = int(stats.binom.ppf(1.0 - 1e-4, TRIALS, 0.05))
    broken, in_ball = broken_bounds(table, BUDGETS[budget], TRIALS)
    assert in_ball > 0.5 * TRIALS
    assert broken <= most
    # planted fault: noisy numbers taken as they are
    monkeypatch.setattr(BallEvidence, "_reach", lambda _, deviation: 0.0 * deviation)
    broken, _ = broken_bounds(table, BUDGETS[budget], TRIALS)
    assert broken > most


def test_no_noisy_answer_bounds_clipping_by_0() -> None:
    """An answer far below 0 is allowed for by the noise, and is no certainty that no row was clipped."""
    noisy, _, _ = recorded(rows_near(6000, 3), BUDGETS["pure"], ADD, seed=0)
    assert noisy.center is not None
    said = [
        BallEvidence(0.4, rows, 100.0, excess, 5.0, 1.5, pure).diagnostics(noisy)
        for rows in (-1000.0, 0.0, 1000.0)
        for excess in (-50.0, 0.0, 50.0)
        for pure in (True, False)
    ]
    for name in ("share_beyond_bound", "trace_bias_bound", "mean_bias_bound"):
        bounds = [each[name] for each in said]
        assert min(bounds) > 0.0
        assert len(set(bounds[:4])) == 2  # below 0 as at 0, under each law


# ---------------------------------------------------------------- its noise, its files


def squared_scores(noisy: RunResult, table: np.ndarray, law: AdditiveModel) -> list[float]:
    """Mean squares of what is left after the moved rows' moments, in the law's deviations: diagonal, off it, sum, count."""
    rows = moved(table, noisy)
    off_gram, off_sum = noisy.gram - rows.T @ rows, np.asarray(noisy.sum) - rows.sum(axis=0)
    upper = np.triu_indices(3, 1)
    found = [
        float(np.mean(np.diag(off_gram) ** 2)) / law.diagonal_variance,
        float(np.mean(off_gram[upper] ** 2)) / law.off_diagonal_variance,
        float(np.mean(off_sum**2)) / (law.sum_variance or 0.0),
    ]
    return found + ([(float(noisy.count or 0.0) - len(table)) ** 2 / law.count_variance] if law.count_variance else [])


@both_relations
@pytest.mark.parametrize("budget", ["pure", "rho"])
def test_the_law_of_a_run_is_that_of_its_cells(budget: str, neighbors: Neighbors) -> None:
    table, found, wrong = half_moon(6000, 60, 0.15), list[list[float]](), list[list[float]]()
    for seed in range(110):
        noisy, _, _ = recorded(table, BUDGETS[budget], neighbors, seed=1000 + seed)
        if noisy.center is None:
            continue
        assert isinstance(noisy.model, AdditiveModel)
        found.append(squared_scores(noisy, table, noisy.model))
        # planted fault: the ball's radius once in place of twice
        radius = noisy.diagnostics["radius"]
        wrong.append(squared_scores(noisy, table, noisy.model.in_ball(1.0 / np.sqrt(radius))))
    scores = np.array(found)
    assert len(scores) > 80
    deviations = scores.std(axis=0) / np.sqrt(len(scores))
    assert (np.abs(scores.mean(axis=0) - 1.0) < 5.0 * deviations).all()
    assert not (
        np.abs(np.array(wrong).mean(axis=0) - 1.0) < 5.0 * np.array(wrong).std(axis=0) / np.sqrt(len(scores))
    ).all()


@pytest.fixture(params=["pure", "rho"])
def in_a_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    budget: dict[str, float] = {"pure": {"epsilon": 1.0}, "rho": {"rho": 0.5}}[request.param]
    path = tmp_path / "ball.json"
    dpm.release(
        half_moon(6000, 60, 0.15),
        Schema.unit_ball(3),
        mechanism="adaptive-ball",
        insecure_seed=3,
        output=path,
        **budget,
    )
    return path


def failed(path: Path) -> list[str]:
    return [check.what for check in checks(dpm.load(path)) if check.passed is False]


def test_a_file_holds_all_of_a_release_in_a_ball(in_a_file: Path) -> None:
    released = dpm.load(in_a_file)
    assert released.mechanism == "adaptive-ball"
    assert 0.0 < released.diagnostics["radius"] < 0.9
    assert "rows-clipped-to-ball" in codes(released.privacy.rules)
    assert released.center is not None
    assert failed(in_a_file) == []
    again = MomentRelease.from_dict(released.to_dict())
    np.testing.assert_array_equal(again.noisy_gram, released.noisy_gram)
    np.testing.assert_array_equal(again.center, released.center)
    assert again.diagnostics == released.diagnostics
    assert again.to_dict() == released.to_dict()


def set_radius(content: dict[str, Any], radius: Any) -> None:
    content["diagnostics"]["radius"] = radius


def halve(content: dict[str, Any], bound: str, fact: str) -> None:
    """State half of a bound, in the diagnostics and in the privacy statement."""
    content["diagnostics"][bound] *= 0.5
    [rule] = [rule for rule in content["privacy"]["rules"] if rule["code"].endswith("-clipped-to-ball")]
    rule["facts"][fact] = content["diagnostics"][bound]


FORGERIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a smaller radius": lambda content: set_radius(content, 0.5 * content["diagnostics"]["radius"]),
    "no radius": lambda content: content["diagnostics"].pop("radius"),
    "a radius in words": lambda content: set_radius(content, "small"),
    "a radius of many": lambda content: set_radius(content, [0.1, 0.2]),
    "a radius of nothing": lambda content: set_radius(content, 0.0),
    "a radius below zero": lambda content: set_radius(content, -content["diagnostics"]["radius"]),
    "a radius beyond floating point": lambda content: set_radius(content, 1e200),
    "no share": lambda content: content["diagnostics"].pop("share_beyond_bound"),
    "another share": lambda content: content["diagnostics"].update(share_beyond_bound=0.5),
    "a share in words": lambda content: content["diagnostics"].update(share_beyond_bound=["none"]),
    "half the bound on rows, in the statement too": lambda content: halve(content, "share_beyond_bound", "outside"),
    "half the bound on the trace, in the statement too": lambda content: halve(content, "trace_bias_bound", "trace"),
    "half the bound on the mean, in the statement too": lambda content: halve(content, "mean_bias_bound", "mean"),
    "fewer rows outside": lambda content: content["diagnostics"].update(rows_beyond=-5.0),
    "less noise": lambda content: content["noise"].update(
        diagonal_variance=0.5 * content["noise"]["diagonal_variance"],
        off_diagonal_variance=0.5 * content["noise"]["off_diagonal_variance"],
    ),
    "a draw less": lambda content: content["receipt"]["draws"].pop(1),
    "draws in another order": lambda content: content["receipt"]["draws"].reverse(),
    "less noise on record": lambda content: more_noise(content, 0.9),
    "more noise on record": lambda content: more_noise(content, 1.1),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_ball_is_found(name: str, in_a_file: Path) -> None:
    forge(in_a_file, FORGERIES[name])
    with contextlib.suppress(ValueError):  # some are refused on reading
        assert failed(in_a_file)


@pytest.mark.parametrize("numbers_alone", [False, True])
def test_bounds_are_computed_again_where_the_table_limits_the_count(numbers_alone: bool, tmp_path: Path) -> None:
    """Under replace-one with rows dropped: noisy counts above the table's size are cut before the bounds are made."""
    rng = np.random.default_rng(11)
    table = pd.DataFrame(rng.normal(size=(3000, 3)), columns=list("abc"))
    columns: list[Any] = [Numeric(name, -10, 10, missing="drop") for name in table]
    if numbers_alone:
        table["level"] = rng.choice(["p", "q", "r", "s"], 3000)
        columns.append(Categorical("level", ["p", "q", "r", "s"]))
    path, counts = tmp_path / "ball.json", []
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dpm.release(table, Schema(*columns), epsilon=1.0, neighbors="replace_one", insecure_seed=seed, output=path)
        released = dpm.load(path)
        assert released.numbers_alone == numbers_alone
        assert released.noisy_count is not None
        counts.append(released.noisy_count)
        assert failed(path) == []
        forge(path, lambda content: halve(content, "trace_bias_bound", "trace"))
        assert failed(path)
        path.unlink()
    assert min(counts) < 3000.0 == max(counts)


def test_it_needs_the_mean() -> None:
    with refused("ball-needs-mean"):
        AdaptiveBall().plan(MomentShape(3, mean=False), BUDGETS["pure"], ADD)


def test_it_needs_bounds() -> None:
    with refused("mechanism-needs-row-bound"):
        AdaptiveBall().plan(MomentShape(3, row_norm=None), BUDGETS["pure"], ADD)
