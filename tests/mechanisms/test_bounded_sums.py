"""The mean within public bounds: its sensitivity, its noise, and that it is the default."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.audit.replay import Recorder
from dpmoments.mechanisms.means.base import BoundedSums, GaussianSumsPlan, KNormSumsPlan
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.models import MeanModel
from dpmoments.noise import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import Norm, query_distance, sums_in_body
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from support.said import refused

ADD_REMOVE, REPLACE_ONE = Neighbors
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


TABLES: dict[str, tuple[Any, dpm.Schema]] = {
    "columns": (frame(12), SCHEMA),
    "weights": (frame(12), dpm.Schema(dpm.Numeric("age", 0, 100, weight=3.0), dpm.Boolean("smoker", weight=0.5))),
    "shortened": (frame(12), dpm.Schema(dpm.Numeric("age", 20, 80), dpm.Boolean("smoker"), row_norm=0.7)),
    "unit ball": (np.vstack([np.eye(9), -np.ones((1, 9)), 2.0 * np.eye(9)]), dpm.Schema.unit_ball(9)),
    "small unit ball": (np.vstack([np.eye(2), -np.ones((1, 2))]), dpm.Schema.unit_ball(2)),
}


def queries(name: str, neighbors: Neighbors, index: int) -> tuple[KNormSumsPlan, Any]:
    """The plan, and the exact query of one row alone."""
    data, schema = TABLES[name]
    one = data.iloc[index : index + 1] if isinstance(data, pd.DataFrame) else data[index : index + 1]
    public = 1 if neighbors.table_size_is_public else None
    plan = BoundedSums().plan(MomentShape.of(schema, mean=True, n_rows=public), dpm.PrivacyBudget.pure(1.0), neighbors)
    assert isinstance(plan, KNormSumsPlan)
    recorder = Recorder(plan, insecure_generator(index))
    plan.run(Rows.of(one, schema, neighbors=neighbors, threads=1), recorder)
    return plan, recorder.exchanges[0].query


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("name", TABLES)
def test_each_row_is_in_the_body_and_some_fill_it(name: str, neighbors: Neighbors) -> None:
    """One row is a change of the query from nothing to it, by half of what is paid for where rows are replaced."""
    reached, counted = 0.0, not TABLES[name][1].drops_rows and neighbors.table_size_is_public
    for index in range(len(TABLES[name][0])):
        plan, query = queries(name, neighbors, index)
        stated = sums_in_body(neighbors, plan.body.dimension, plan.body.blocks).in_units(2.0**plan.unit_bits)
        assert len(query) == plan.body.dimension == plan.shape.n_features + (not counted)
        of_row = query if counted or neighbors is Neighbors.ADD_REMOVE else [query[0] // 2, *query[1:]]
        moved = query_distance(Norm.BODY, np.array(of_row, dtype=object), 0 * query, neighbors, plan.body.blocks)
        assert moved <= 2**plan.unit_bits <= stated.value
        # without the count, whose change of two units the rest does not share
        rest = np.array([0, *of_row[1:]] if not counted else of_row, dtype=object)
        reached = max(reached, query_distance(Norm.BODY, rest, 0 * rest, neighbors, plan.body.blocks))
    assert (
        reached > (0.95 if name in ("columns", "weights", "unit ball", "small unit ball") else 0.5) * 2**plan.unit_bits
    )


def test_the_body_is_a_box_of_numbers_with_a_block_of_levels_or_one_block() -> None:
    budget = dpm.PrivacyBudget.pure(1.0)

    def body(schema: dpm.Schema, neighbors: str = "add_remove") -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        plan = BoundedSums().plan(MomentShape.of(schema, mean=True, n_rows=None), budget, neighbors)
        assert isinstance(plan, KNormSumsPlan)
        return plan.body.dimension, plan.body.blocks, plan.body.features

    assert body(SCHEMA) == (8, (4,), (0, 1, 6, 2, 3, 4, 5))
    assert body(dpm.Schema.unit_ball(2)) == (3, (), (0, 1))
    assert body(dpm.Schema.unit_ball(9)) == (10, (9,), tuple(range(9)))


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


def errors_of_runs(rows: Rows, epsilon: float, size: int) -> tuple[np.ndarray, MeanModel]:
    """Errors of means of runs of one plan on the same rows, and the noise that the plan states for them."""
    moments = rows.moments(bits=20)
    exact, public = moments.sum * moments.scale / moments.count, rows.neighbors is REPLACE_ONE
    shape = MomentShape.of(rows.schema, mean=True, n_rows=moments.count if public else None)
    plan = BoundedSums().plan(shape, dpm.PrivacyBudget.pure(epsilon), rows.neighbors)
    assert isinstance(plan, KNormSumsPlan)
    generator = insecure_generator(0)
    noisy = [plan.noisy_sums(moments, PrivacyFilter(plan, generator)) for _ in range(size)]
    of_count = np.abs(exact) * plan.expected_count_error
    law = plan.noise_of_mean(plan.sum_deviations / moments.count, of_count / moments.count)
    return np.array([sums / count - exact for sums, count in noisy]), law


@pytest.mark.slow
def test_intervals_of_numbers_and_levels_hold_as_often_as_stated() -> None:
    rows = Rows.of(frame(4000, seed=3).replace("elsewhere", "west"), SCHEMA, threads=1)
    errors, law = errors_of_runs(rows, 1.0, 2500)

    def excess(half_widths: np.ndarray) -> np.ndarray:
        return np.abs((np.abs(errors) <= half_widths).mean(axis=0) - 0.8)

    assert excess(law.half_widths(0.8)).max() < 4.0 * 0.008
    # planted fault: Laplace noise of the same SD, which is wrong for numbers
    assert excess(stats.laplace.ppf(0.9) / np.sqrt(2.0) * law.standard_deviations)[[0, 1, 6]].min() > 4.0 * 0.008


def test_the_error_is_that_of_k_norm_noise_on_the_box() -> None:
    """√((D + 1)(D + 2)/3)/ε for each sum in units of its bounds, twice that without the count where rows are replaced."""
    schema = dpm.Schema(*(dpm.Numeric(f"x{index}", -1, 1) for index in range(9)))
    for neighbors, expected in ((ADD_REMOVE, np.sqrt(11 * 12 / 3)), (REPLACE_ONE, 2.0 * np.sqrt(10 * 11 / 3))):
        rows = Rows.of(np.zeros((1000, 9)), schema, neighbors=neighbors, threads=1)
        _, law = errors_of_runs(rows, 1.0, 1)
        np.testing.assert_allclose(3000.0 * law.standard_deviations, expected, rtol=1e-6)  # x is divided by √9


def test_an_approximate_budget_is_spent_on_the_smaller_noise() -> None:
    plans = [
        make_mean_mechanism("bounded-sums").plan(
            MomentShape(d, columns=((1, d**-0.5),) * d), dpm.PrivacyBudget.approximate(1.0, 1e-6), "add_remove"
        )
        for d in (2, 20, 200)
    ]
    assert [type(plan) for plan in plans] == [KNormSumsPlan, KNormSumsPlan, GaussianSumsPlan]


def test_a_budget_that_leaves_no_lattice_is_refused_before_a_row_is_read() -> None:
    for d in (2, 1000):
        BoundedSums().plan(MomentShape(d), dpm.PrivacyBudget.pure(1e-5), "add_remove")
        with refused("per entry would hide a table of any size: give a larger"):
            BoundedSums().plan(MomentShape(d), dpm.PrivacyBudget.pure(1e-12), "add_remove")
