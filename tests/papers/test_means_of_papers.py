"""Estimators of means: wrong radii and few rows, what runs say against themselves, and each rule at its boundary."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.base.message import Message
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.coordinatewise import coordinate_warnings
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from support.said import codes, refused, warned

# Estimators of means where the radius is wrong, rows are few, constant or extreme: right answers, or a warning.

ZCDP = PrivacyBudget.zcdp(0.5)
BUDGETS = [ZCDP, PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.pure(1.0)]
OPTIONS: dict[str, dict[str, Any]] = {
    "coinpress": {"radius": 10.0, "scale": 1.0},
    "karwa-vadhan": {"radius": 10.0},
    "naive": {"radius": 10.0, "scale": 1.0},
    "symq": {"radius": 10.0},
    "variance-aware": {},
}


def run(
    name: str,
    table: np.ndarray,
    budget: PrivacyBudget = ZCDP,
    seed: int = 0,
    neighbors: str = "replace_one",
    **options: Any,
) -> NoisyMean:
    """One release, whose receipt must show that all was spent."""
    n, d = table.shape
    shape = MomentShape(d, n_rows=n if neighbors == "replace_one" else None, row_norm=None)
    plan = make_mean_mechanism(name, **(options or OPTIONS[name])).plan(shape, budget, neighbors)
    privacy_filter = PrivacyFilter(plan, insecure_generator(seed))
    noisy = plan.run(Rows.of(table, Schema.unbounded(d), neighbors=neighbors, threads=1), privacy_filter)
    assert privacy_filter.close().exhausts
    return noisy


def said(noisy: NoisyMean) -> list[str]:
    return codes(noisy.diagnostics["warnings"])


# The variance-aware mean ------------------------------------------------------------------------------------------------------


@pytest.mark.long(sets=2)
@pytest.mark.parametrize(("n", "d", "most"), [(250, 50, 0.65), (250, 100, 1.4), (100, 30, 2.0), (100, 10, 0.6)])
def test_the_variance_aware_mean_survives_few_rows(n: int, d: int, most: float) -> None:
    """It clipped every row about a center that noise had moved: 1.0, 5.0, over 4 and 1.2."""
    errors, outside = [], []
    for seed in range(6):
        table = np.random.default_rng(seed).normal(1.0, 1.0, (n, d))
        noisy = run("variance-aware", table, seed=seed)
        errors.append(float(np.linalg.norm(noisy.mean - table.mean(axis=0))))
        outside.append(noisy.diagnostics["share_outside"])
    assert np.median(errors) < most
    assert max(outside) <= 0.6


@pytest.mark.long(sets=2)
@pytest.mark.parametrize(("n", "d"), [(300, 1), (300, 2), (300, 3), (1000, 5)])
def test_an_ample_budget_is_not_called_too_small(n: int, d: int) -> None:
    """It was, for 300 rows in all of 20 runs, where noise was half of the error from sampling."""
    for seed in range(5):
        table = np.random.default_rng(seed).normal(1.0, 1.0, (n, d))
        noisy = run("variance-aware", table, seed=seed)
        assert np.linalg.norm(noisy.mean - table.mean(axis=0)) < 1.5 * math.sqrt(d / n)
        assert not {"rows-unseen", "mean-lost"} & {*said(noisy)}


def test_a_budget_that_is_too_small_is_called_so() -> None:
    for n, d, rho in ((2000, 3, 1e-8), (20, 1, 0.5), (30, 30, 0.5)):
        table = np.random.default_rng(1).normal(3.0, 1.0, (n, d))
        assert {"rows-unseen", "mean-lost"} & {*said(run("variance-aware", table, PrivacyBudget.zcdp(rho)))}


# A wrong radius ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coinpress", "karwa-vadhan", "naive", "symq"])
@pytest.mark.parametrize("budget", BUDGETS, ids=["zcdp", "approximate", "pure"])
def test_a_wrong_radius_is_said_and_a_right_one_is_not(name: str, budget: PrivacyBudget) -> None:
    if budget.kind not in make_mean_mechanism(name, **OPTIONS[name]).budget_kinds:
        pytest.skip("not for this kind of budget")
    scale = {"scale": 1.0} if "scale" in OPTIONS[name] else {}
    for seed, center in enumerate((3.0, -3.0)):
        table = np.random.default_rng(seed).normal(center, 1.0, (3000, 2))
        right = run(name, table, budget, seed, radius=5.0, **scale)
        assert said(right) == []
        assert np.abs(right.mean - center).max() < 0.3
        narrow = run(name, table, budget, seed, radius=0.3, **scale)
        assert {"mean-beyond-radius", "values-beyond-radius"} & {*said(narrow)}, name
        # Found to lie outside, it is released as it is: nearer to the truth than the edge. Karwa–Vadhan always ends in the range.
        assert (np.abs(narrow.mean).max() <= 0.3) == (name == "karwa-vadhan")
        far = run(name, table + math.copysign(1e9, center), budget, seed, radius=5.0, **scale)
        assert {"mean-beyond-radius", "values-beyond-radius", "rows-mostly-clipped"} & {*said(far)}


def test_values_that_were_clamped_are_told_of() -> None:
    """2 % of the values make the mean, and the clamp takes most of each: an answer near 0 where 1 is right, without a word."""
    rng = np.random.default_rng(4)
    table = np.where(rng.random((20_000, 2)) < 0.02, 50.0, 0.0)
    for name, options in (("naive", {"radius": 1.0, "scale": 1.0}), ("karwa-vadhan", {"radius": 100.0})):
        noisy = run(name, table, **options)
        assert noisy.mean[0] < 0.5
        assert "values-clipped" in said(noisy)
        np.testing.assert_allclose(noisy.diagnostics["shares_clamped"], 0.02, atol=0.005)


@pytest.mark.long(sets=2)
@pytest.mark.parametrize("name", ["naive", "symq", "karwa-vadhan", "coinpress"])
def test_noise_does_not_carry_an_answer_out_of_the_public_range(name: str) -> None:
    for n, seed in itertools.product((1, 3, 40), range(4)):
        table = np.random.default_rng(n).normal(0.0, 1.0, (n, 3))
        assert (np.abs(run(name, table, seed=seed).mean) <= 10.0 * (1 + 1e-12)).all()


@pytest.mark.parametrize("name", ["naive", "symq", "karwa-vadhan", "coinpress"])
def test_public_numbers_beyond_floating_point_are_refused_before_anything_is_spent(name: str) -> None:
    for radius in (1e300, 1e-300):
        with refused("]: give the table in other units"):
            make_mean_mechanism(name, radius=radius)


@pytest.mark.parametrize("name", ["naive", "karwa-vadhan"])
def test_a_budget_below_the_lattice_is_refused_by_the_plan(name: str) -> None:
    with refused("per entry would hide a table of any size: give a larger"):
        make_mean_mechanism(name, **OPTIONS[name]).plan(
            MomentShape(100, n_rows=10, row_norm=None), PrivacyBudget.pure(1e-10), "replace_one"
        )


def test_a_warning_is_issued_and_kept() -> None:
    table = np.random.default_rng(7).normal(80.0, 1.0, (2000, 2))
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("weight", 0, 100))
    with warned("mean-beyond-radius", dpm.ReleaseWarning, names=("age", "weight")):
        released = dpm.release_mean(
            table, schema, rho=0.5, neighbors="replace_one", mechanism="naive", radius=0.01, scale=0.01
        )
    assert released.warnings
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dpm.release_mean(table, schema, rho=0.5, neighbors="replace_one", mechanism="naive")


# What estimators of means say against themselves: each rule at hand-made numbers, and at its boundary.


@dataclass(frozen=True)
class Made:
    """What is known of the mean of one coordinate."""

    mean: float = 0.0
    noise_scale: float = 0.25
    share_clamped: float = 0.0
    clamping_shows: bool = False
    noise_decides: bool = False


def test_each_doubt_names_its_features_alone() -> None:
    def said(*found: Made, least_noise: float = 0.0) -> list[Message]:
        return coordinate_warnings("abcd"[: len(found)], found, 2.0, least_noise=least_noise)

    fine = Made()
    assert said(fine, fine) == []
    assert said(fine, Made(9.0), Made(-9.0)) == [Message("mean-beyond-radius", names=("b", "c"))]
    most, some = Made(share_clamped=0.51, clamping_shows=True), Made(share_clamped=0.5, clamping_shows=True)
    rare = replace(some, share_clamped=0.0213)
    assert said(fine, most) == [Message("mostly-clipped", names=("b",))]
    assert said(some, rare, replace(most, clamping_shows=False)) == [
        Message("values-clipped", share=0.5, names=("a", "b"))
    ]
    assert said(fine, rare) == [Message("values-clipped", share=0.0213, names=("b",))]
    assert codes(said(most, rare)) == ["mostly-clipped", "values-clipped"]
    lost = Made(noise_decides=True)
    assert said(fine, lost) == [Message("mean-lost", names=("b",))]
    assert said(lost, least_noise=0.25) == []
    assert len(said(lost, least_noise=0.2499)) == 1
    assert codes(said(Made(9.0), most, rare, lost)) == [
        *("mean-beyond-radius", "mostly-clipped", "values-clipped", "mean-lost")
    ]


# Where each rule of an estimator of means changes its mind: at the boundary it says nothing, a last place beyond it acts.


# A quarter of the rows up to 1, half of them up to 2, all of them up to 4.
