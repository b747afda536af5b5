"""The mean within public bounds: its sensitivity, its noise, the ball, and that it is the default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.means import bounded_sums
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from support.drawn_releases import planted
from support.said import refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Boolean("smoker"),
    dpm.Categorical("region", ["north", "south", "east", "west"], other="zero"),
    dpm.Product("age", "smoker"),
)
BUDGETS = {"pure": dict(epsilon=1.0), "ρ": dict(rho=0.1), "(ε, δ)": dict(epsilon=1.0, delta=1e-6)}


def frame(n_rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n_rows),
            "smoker": rng.random(n_rows) < 0.3,
            "region": rng.choice(["north", "south", "east", "elsewhere"], n_rows),
        }
    )


def numbers(values: np.ndarray, **options: Any) -> dpm.MeanRelease:
    names = [f"x{index}" for index in range(values.shape[1])]
    schema = dpm.Schema(*(dpm.Numeric(name, -1, 1) for name in names))
    return dpm.release_mean(pd.DataFrame(values, columns=names), schema, **options)


def test_a_row_has_at_most_one_nonzero_entry_for_each_column() -> None:
    rows = Rows.of(frame(50), SCHEMA)
    allowed = MomentShape.of(SCHEMA, mean=True).max_nonzero
    assert allowed == len(SCHEMA.columns) == 4
    for index in range(50):
        one = Rows.of(frame(50).iloc[index : index + 1], SCHEMA).moments(bits=20)
        assert np.count_nonzero(one.sum) <= allowed
        assert np.abs(np.array(one.sum, dtype=float)).sum() <= np.sqrt(allowed) * 2.0**20
    assert rows.count() == 50


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_default_where_the_schema_has_bounds(budget: str, neighbors: Neighbors) -> None:
    released = dpm.release_mean(frame(300), SCHEMA, neighbors=neighbors, insecure_seed=0, **BUDGETS[budget])
    assert released.mechanism == "bounded-sums"
    lower, upper = SCHEMA.feature_bounds
    assert ((released.mean >= lower - 1e-9) & (released.mean <= upper + 1e-9)).all()
    low, high = released.conf_int().T
    assert ((low >= lower - 1e-9) & (low <= released.mean) & (released.mean <= high) & (high <= upper + 1e-9)).all()
    assert released.privacy.budget == dpm.PrivacyBudget.of(**BUDGETS[budget]) or released.privacy.budget.delta == 0.0


def test_the_default_without_bounds() -> None:
    values = np.random.default_rng(0).normal(size=(400, 2))
    for budget, name in ((dict(rho=0.5), "variance-aware"), (dict(epsilon=2.0), "log-scale-histogram")):
        assert dpm.release_mean(values, dpm.Schema.unbounded(2), insecure_seed=0, **budget).mechanism == name


def z_squares(values: np.ndarray, **options: Any) -> np.ndarray:
    """Squares of the error in stated standard deviations, of 150 releases."""
    errors = []
    for seed in range(150):
        released = numbers(values, insecure_seed=seed, **options)
        errors.append((released.mean - values.mean(axis=0)) / released.standard_errors)
    return np.square(errors)


@pytest.mark.parametrize("budget", [dict(epsilon=1.0), dict(rho=0.1)])
def test_the_stated_noise_is_that_of_the_mean(budget: dict[str, Any]) -> None:
    def within(squares: np.ndarray) -> bool:
        of_runs = squares.mean(axis=1)
        return bool(abs(of_runs.mean() - 1.0) < 4.0 * of_runs.std() / np.sqrt(len(of_runs)) + 0.02)

    values = np.random.default_rng(1).uniform(-1, 1, (400, 4)) ** 2
    assert within(z_squares(values, **budget))
    with planted(bounded_sums._CountAndSums.of_sums, "return noise_deviation(", "return 0.7 * noise_deviation("):
        assert not within(z_squares(values, **budget))


@pytest.mark.parametrize("budget", [dict(epsilon=1.0), dict(rho=0.1)])
def test_rows_in_a_small_part_of_their_bounds_get_less_noise(budget: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    narrow, wide = np.clip(rng.normal(0.3, 0.04, (20_000, 2)), -1, 1), rng.uniform(-1, 1, (20_000, 2))
    found = {name: numbers(values, insecure_seed=0, **budget) for name, values in (("narrow", narrow), ("wide", wide))}
    assert "steps" in found["narrow"].diagnostics
    assert (found["narrow"].standard_errors < 0.5 * found["wide"].standard_errors).all()


def test_an_approximate_budget_is_spent_on_the_smaller_noise() -> None:
    kinds = [
        make_mean_mechanism("bounded-sums")
        .plan(MomentShape(d), dpm.PrivacyBudget.approximate(1.0, 1e-6), "add_remove")
        .budget.pure
        for d in (2, 100)
    ]
    assert kinds == [True, False]


def test_rows_without_bounds_are_refused() -> None:
    with refused("mechanism-needs-row-bound"):
        dpm.release_mean(np.zeros((3, 1)), dpm.Schema.unbounded(1), rho=1.0, mechanism="bounded-sums")
