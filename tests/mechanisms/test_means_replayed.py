"""Every estimator of means against a plain one that is given the same noisy answers: draws, results, diagnostics, warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpmoments.privacy.budget import PrivacyBudget
from references import plain_balls, plain_coordinates, plain_variance_aware
from references.plain_answers import assert_same, recorded

pytestmark = pytest.mark.long(sets=None)

ZCDP, PURE = PrivacyBudget.zcdp(0.5), PrivacyBudget.pure(1.0)


def normal(n: int, d: int, center: Any, deviation: Any = 1.0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(center, deviation, (n, d))


def with_far_rows(n: int, share: float, at: float) -> np.ndarray:
    """Two coordinates of spread 1, the second with a share of the rows far out."""
    table = normal(n, 2, 0.0)
    table[: int(share * n), 1] += at
    return table


def each(cases: dict[str, Any]) -> Any:
    """A test for each of the named tables with options."""
    return pytest.mark.parametrize(("table", "options"), list(cases.values()), ids=list(cases))


every_budget = pytest.mark.parametrize("budget", [ZCDP, PURE], ids=["zcdp", "pure"])


def loss_of(budget: PrivacyBudget) -> float:
    return budget.rho if budget is ZCDP else budget.epsilon


@every_budget
@each(
    {
        "ordinary": (normal(2000, 3, [3.0, -3.0, 0.0]), {"radius": 5.0, "scale": 1.0}),
        "beyond the radius": (normal(3000, 2, [8.0, 0.1]), {"radius": 4.0, "scale": 2.0}),
        "all beyond the clamp": (normal(3000, 2, [-800.0, 0.1]), {"radius": 4.0, "scale": 2.0}),
        "some beyond the clamp": (with_far_rows(3000, 0.1, 60.0), {"radius": 4.0, "scale": 2.0}),
        "few rows": (normal(12, 2, 3.0), {"radius": 10.0, "scale": 1.0}),
        "private number of rows": (normal(300, 2, 3.0), {"radius": 10.0, "scale": 1.0, "drops": True}),
    }
)
def test_naive(table: np.ndarray, options: dict[str, Any], budget: PrivacyBudget) -> None:
    found, answers = recorded("naive", table, budget, **options)
    assert_same(found, plain_coordinates.naive(table, loss_of(budget), answers, **options), answers)


@every_budget
@each(
    {
        "public scale": (normal(2000, 2, [3.0, -30.0]), {"radius": 100.0, "scale": 1.0}),
        "private scale": (normal(3000, 2, [3.0, -30.0], [1.0, 0.01]), {"radius": 100.0}),
        "wide scale": (normal(2000, 1, -3.0, 9.0), {"radius": 1.0, "scale": 7.0}),
        "mean at the end of the range": (normal(2000, 1, -10.0), {"radius": 10.0, "scale": 1.0}),
        "two levels": (normal(2000, 1, 3.0), {"radius": 1e6, "scale": 1.0}),
        "a scale below what can be told apart": (normal(2000, 1, 3.0, 0.0), {"radius": 100.0, "scale": 1e-30}),
        "beyond the range": (normal(2000, 1, 300.0), {"radius": 100.0}),
        "bins narrower than the scale": (normal(1000, 2, [10.0, -10.0]), {"radius": 10.0, "scale": 3.0}),
        "some out of sight": (with_far_rows(2000, 0.1, 1e4), {"radius": 100.0}),
        "rare large values": (with_far_rows(4000, 0.05, 60.0), {"radius": 100.0, "scale": 2.0}),
        "few rows": (normal(12, 2, 3.0), {"radius": 10.0}),
        "two rows": (normal(2, 1, 3.0), {"radius": 10.0, "scale": 1.0}),
        # In the middle of a cell of the search for the median: at distance 0.
        "constant": (np.full((500, 1), 3.0 + 2.0**-32), {"radius": 8.0}),
        "private number of rows": (normal(300, 2, 3.0), {"radius": 10.0, "drops": True}),
    }
)
def test_karwa_vadhan(table: np.ndarray, options: dict[str, Any], budget: PrivacyBudget) -> None:
    found, answers = recorded("karwa-vadhan", table, budget, **options)
    expected = plain_coordinates.karwa_vadhan(table, loss_of(budget), answers, **options)
    assert_same(found, expected, answers)


@every_budget
@each(
    {
        "ordinary": (normal(1000, 2, [3.0, -30.0]), {"radius": 100.0}),
        "another quantile": (normal(1000, 1, 3.0), {"radius": 10.0, "quantile": 0.2}),
        "beyond the radius": (normal(2000, 2, [15.0, -13.0]), {"radius": 10.0}),
        "one quantile beyond the radius": (normal(2000, 1, 10.0), {"radius": 10.0}),
        "far beyond the radius": (normal(2000, 2, [3.0, 1e4]), {"radius": 10.0}),
        "both sides": (np.repeat([[15.0], [-15.0]], 1000, axis=0), {"radius": 10.0}),
        "few rows": (normal(12, 2, 300.0), {"radius": 10.0}),
        "private number of rows": (normal(300, 2, 3.0), {"radius": 10.0, "drops": True}),
    }
)
def test_symmetric_quantiles(table: np.ndarray, options: dict[str, Any], budget: PrivacyBudget) -> None:
    found, answers = recorded("symq", table, budget, **options)
    expected = plain_coordinates.symmetric_quantiles(table, loss_of(budget), answers, **options)
    assert_same(found, expected, answers)


either_relation = pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
COVARIANCE = ((4.0, 1.0, 0.0), (1.0, 9.0, -2.0), (0.0, -2.0, 1.0))


@either_relation
@each(
    {
        "ordinary": (normal(1000, 5, 3.0), {"radius": 100.0, "scale": 1.0}),
        "gaussian clip": (normal(500, 5, 3.0), {"radius": 100.0, "scale": 2.0, "clip": "gaussian"}),
        "paper": (normal(1000, 5, 3.0), {"radius": 100.0, "scale": 1.0, "constants": "paper"}),
        "paper, many steps": (normal(500, 2, 3.0), {"radius": 9.0, "scale": 1.0, "constants": "paper", "steps": 61}),
        "three steps": (normal(500, 2, 3.0), {"radius": 100.0, "scale": 1.0, "steps": 3}),
        "own split": (normal(500, 2, 3.0), {"radius": 100.0, "scale": 1.0, "split": (1.0, 3.0)}),
        "one dimension": (normal(1000, 1, 3.0), {"radius": 100.0, "scale": 1.0}),
        "fifty dimensions": (normal(1000, 50, 3.0), {"radius": 100.0, "scale": 1.0}),
        "whitened": (normal(2000, 3, [5.0, -1.0, 2.0], [2.0, 3.0, 1.0]), {"radius": 50.0, "covariance": COVARIANCE}),
        "heavy tails": (np.random.default_rng(1).standard_t(2.0, (4000, 5)), {"radius": 9.0, "scale": 1.0}),
        "heavy tails, large budget": (
            np.random.default_rng(1).standard_t(2.0, (4000, 5)),
            {"radius": 9.0, "scale": 1.0, "rho": 5.0},
        ),
        "heavier tails": (np.random.default_rng(1).standard_t(1.5, (1500, 5)), {"radius": 9.0, "scale": 1.0}),
        "beyond the radius": (normal(2000, 3, 4.0), {"radius": 3.0, "scale": 1.0}),
        "far beyond the radius": (normal(2000, 3, 4e4), {"radius": 3.0, "scale": 1.0}),
        "at the radius": (normal(100, 3, 4.0), {"radius": 4.0 * 3.0**0.5, "scale": 1.0}),
        "narrow": (normal(1000, 2, 3.0, 0.01), {"radius": 10.0, "scale": 1.0}),
        "all that is seen is outside": (normal(220, 50, 1.0, 1.15), {"radius": 70.0, "scale": 1.0}),
        "paper, one step": (normal(500, 3, 0.0), {"radius": 0.1, "scale": 1.0, "constants": "paper"}),
        "few rows": (normal(12, 3, 3.0), {"radius": 10.0, "scale": 1.0}),
    }
)
def test_coinpress(table: np.ndarray, options: dict[str, Any], neighbors: str) -> None:
    rho, options = options.get("rho", 0.5), {name: value for name, value in options.items() if name != "rho"}
    found, answers = recorded("coinpress", table, PrivacyBudget.zcdp(rho), neighbors=neighbors, **options)
    assert_same(found, plain_balls.coinpress(table, rho, answers, **options), answers)


@pytest.mark.long(sets=10)
@either_relation
@each(
    {
        "ordinary": (normal(1000, 5, 30.0), {}),
        "one dimension": (normal(1000, 1, 30.0), {}),
        "two dimensions": (normal(500, 2, 3.0, [1.0, 0.01]), {}),
        "scales": (normal(3000, 8, 3.0, np.geomspace(1.0, 1e-4, 8)), {}),
        "not settled": (normal(250, 50, 1e6), {}),
        "far away": (normal(1000, 4, 1e9), {}),
        "rounds not worth making": (normal(100, 30, 1.0), {}),
        "nothing seen": (normal(2000, 3, 3.0), {"rho": 1e-7}),
        "seen late": (normal(60, 2, 100.0, 0.01), {}),
        "few rows": (normal(20, 1, 3.0), {}),
        "one round of scales": (normal(65, 5, 3.0), {}),
        "constant": (np.full((200, 3), 7.3), {"rho": 1e5}),
        "zero": (np.zeros((200, 2)), {"rho": 50.0}),
        "beyond the range": (np.full((200, 2), 1e200), {"rho": 50.0}),
        "far rows": (with_far_rows(4000, 0.05, 50.0), {}),
        "rows at all scales": (normal(300, 3, 0.0) * 10.0 ** normal(300, 1, 0.0, 60.0, seed=1), {"rho": 10.0}),
    }
)
def test_variance_aware(table: np.ndarray, options: dict[str, Any], neighbors: str) -> None:
    rho = options.get("rho", 0.5)
    found, answers = recorded("variance-aware", table, PrivacyBudget.zcdp(rho), neighbors=neighbors)
    assert_same(found, plain_variance_aware.variance_aware(table, rho, answers, found), answers)
