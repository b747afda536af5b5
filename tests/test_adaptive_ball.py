"""Adaptive ball: against a plain one that is given the same noisy answers, its bounds, its noise and its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plain_ball
from dpmoments.audit.recording import Recorder
from dpmoments.mechanisms import AdaptiveBall, MomentShape
from dpmoments.mechanisms.base import NoisyMoments
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema
from plain_ball import BallAnswers, Found

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
) -> tuple[NoisyMoments, Recorder, Any]:
    """One run, everything that it asked, and its plan."""
    schema = Schema.unit_ball(table.shape[1], missing="drop" if drops else "center") if schema is None else schema
    plan = AdaptiveBall().plan(
        MomentShape.of(schema, mean=True, n_rows=len(table) if neighbors is REPLACE else None), budget, neighbors
    )
    recorder = Recorder(plan, insecure_generator(seed))
    noisy = plan.run(Rows.of(table, schema, mean=True, neighbors=neighbors, threads=1), recorder)
    receipt = recorder.close()
    assert receipt.exhausts
    noise = plan.noise_of_run(noisy.diagnostics, receipt)
    assert noise == noisy.noise
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


def assert_same(noisy: NoisyMoments, found: Found) -> None:
    """Moments, centre, law, diagnostics, warning and rules, to rounding."""
    close = {"rtol": 1e-8, "atol": 1e-12}
    np.testing.assert_allclose(noisy.count, found.count, **close)
    np.testing.assert_allclose(noisy.sum, found.sum, **close)
    np.testing.assert_allclose(noisy.gram, found.gram, **close)
    assert (noisy.center is None) == (found.center is None)
    if noisy.center is not None:
        np.testing.assert_allclose(noisy.center, found.center, **close)
    law = noisy.noise
    assert law is not None
    variances = (law.diagonal_variance, law.sum_variance, law.count_variance)
    np.testing.assert_allclose(variances, found.variances, rtol=1e-8)
    said = dict(noisy.diagnostics)
    warned = said.pop("warnings", [])
    assert list(said) == list(found.diagnostics)
    for name, value in found.diagnostics.items():
        assert said[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-7, abs=1e-12)), name
    assert len(warned) == (1 if found.warning else 0)
    assert all(words in warned[0] for words in found.warning)
    assert len(noisy.rules) == (1 if found.said else 0)
    assert all(words in noisy.rules[0] for words in found.said)


Table = Callable[[], np.ndarray]

TABLES: dict[str, tuple[Table, str | None]] = {
    "ball": (lambda: rows_near(6000, 3), "ball"),
    "ball of many rows": (lambda: rows_near(40_000, 3, 0.3), "ball"),
    "ball about a far centre": (lambda: rows_near(6000, 3) + [0.6, 0.1, -0.2], "ball"),
    "ball of rows a way out": (lambda: with_far_rows(40_000, 3, 25), None),
    "few rows": (lambda: rows_near(40, 3), "few"),
    "screened": (lambda: at_the_edge(25_000, 3), "screened"),
    "full after the search": (lambda: at_the_edge(2500, 3), "full"),
    "guard": (lambda: with_far_rows(6000, 3, 60), "guard"),
    "identical rows": (lambda: np.full((5000, 2), 0.25), "ball"),
    "beyond the unit ball": (lambda: at_the_edge(4000, 3, 3.0), "full"),
    "one row": (lambda: rows_near(1, 3), "few"),
    "constant column": (lambda: rows_near(6000, 3) * [1.0, 0.0, 1.0], "ball"),
    "zeros but one": (lambda: np.vstack([np.zeros((5999, 3)), [[0.0, 0.0, 1.0]]]), "ball"),
    "one column": (lambda: rows_near(5000, 1), "ball"),
    "two columns": (lambda: rows_near(5000, 2), "ball"),
    "many columns": (lambda: rows_near(20_000, 40), "ball"),
}


@both_relations
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", TABLES)
def test_a_run_is_that_of_the_plain_implementation(name: str, budget: str, neighbors: Neighbors) -> None:
    make, path = TABLES[name]
    table = make()
    noisy, recorder, _ = recorded(table, BUDGETS[budget], neighbors)
    found = plainly(table, recorder, BUDGETS[budget], neighbors)
    assert_same(noisy, found)
    print(name, budget, neighbors, found.path, path)
