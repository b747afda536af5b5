"""Estimators of means: wrong radii and few rows, what runs say against themselves, and each rule at its boundary."""

from __future__ import annotations

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
from support.said import codes, warned

# Estimators of means where the radius is wrong, rows are few, constant or extreme: right answers, or a warning.

ZCDP = PrivacyBudget.zcdp(0.5)
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
