"""CoinPress where rows are not normal: rare flags, columns mostly zero, thin tails; and what it says where it cannot do well."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.analysis.released import cautions
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows
from support.said import codes

FEW_ROWS = "variance-of-few-rows"
TAIL = "rows-unseen-tail"


def release(
    frame: pd.DataFrame, columns: list[Any], seed: int, epsilon: float = 1.0, **options: Any
) -> dpm.MomentRelease:
    budget = {"epsilon": epsilon, "delta": 1e-6} | options
    with warnings.catch_warnings(action="ignore"):
        return dpm.release(frame, dpm.Schema(*columns), mechanism="coinpress", insecure_seed=seed, threads=1, **budget)


def normals_beside(extra: np.ndarray, seed: int) -> pd.DataFrame:
    """Two standard normal columns and another one."""
    normal = np.random.default_rng(seed).normal(size=(len(extra), 2))
    return pd.DataFrame({"a": normal[:, 0], "b": normal[:, 1], "c": extra})


def ratios(released: dpm.MomentRelease, frame: pd.DataFrame) -> np.ndarray:
    """Released variances over the table's own."""
    return np.diag(released.covariance) / frame.astype(float).var(ddof=0).to_numpy()


NUMBERS = [dpm.Numeric(name, scale=(0.1, 100.0)) for name in "ab"]


@pytest.mark.parametrize("share", [0.005, 0.02])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_a_rare_flag_does_not_ruin_the_other_columns(share: float, epsilon: float) -> None:
    """Before: variances of 494 and 278 for true 1 (0.5 %, ε = 3)."""
    found = []
    for seed in range(2):
        frame = normals_beside(np.random.default_rng([seed, 1]).random(20_000) < share, seed)
        found.append(ratios(release(frame, [*NUMBERS, dpm.Boolean("c")], seed, epsilon), frame))
    assert np.abs(np.array(found)[:, :2] - 1.0).max() < 0.05
    assert np.median(np.abs(np.array(found)[:, 2] - 1.0)) < (0.2 if share * epsilon < 0.01 else 0.1)


def test_a_flag_that_the_schema_calls_a_number_is_found_or_warned_of() -> None:
    for epsilon, share, found_out in ((1.0, 0.005, False), (3.0, 0.03, True)):
        for seed in range(2):
            frame = normals_beside((np.random.default_rng([seed, 2]).random(20_000) < share).astype(float), seed)
            columns = [dpm.Numeric(name, scale=(0.01, 100.0)) for name in "abc"]
            released = release(frame, columns, seed, epsilon)
            ratio = ratios(released, frame)
            np.testing.assert_allclose(ratio[:2], 1.0, atol=0.08)
            if found_out:
                assert ratio[2] == pytest.approx(1.0, abs=0.1)
            else:
                assert FEW_ROWS in codes(released.warnings)


def beside_mostly_zero(seed: int, epsilon: float) -> tuple[dpm.MomentRelease, float]:
    """A release, and how far off the variances of the two normal columns are."""
    rng = np.random.default_rng([seed, 3])
    frame = normals_beside(rng.lognormal(size=6000) * (rng.random(6000) < 0.05), seed)
    released = release(frame, [dpm.Numeric(name, scale=(0.01, 100.0)) for name in "abc"], seed, epsilon)
    return released, float(np.abs(ratios(released, frame)[:2] - 1.0).max())


def test_a_column_that_is_mostly_zero_gets_no_worse_with_a_larger_budget() -> None:
    """Before, 6000 rows, zero in 95 %: error 1.5 at ε = 3."""
    errors = [float(np.median([beside_mostly_zero(seed, epsilon)[1] for seed in range(5)])) for epsilon in (3.0, 10.0)]
    assert max(errors) < 0.2
    assert errors[1] <= errors[0] + 0.02


@pytest.mark.slow
def test_a_column_that_is_mostly_zero_and_ruins_the_others_is_warned_of() -> None:
    """At ε = 1 it does so in 45 of 60 runs; 43 of them say that the noise on every column has grown."""
    runs = [beside_mostly_zero(seed, 1.0) for seed in range(16)]
    ruined = [released for released, error in runs if error > 0.25]
    assert ruined
    silent = [released for released in ruined if not any("as wide as planned" in text for text in released.warnings)]
    assert len(silent) <= 2


def test_adult_by_scale_beside_race() -> None:
    """Before: relative errors of 4 × 10⁴ at ε = 1, 3 at ε = 3."""
    frame = dpm.datasets.adult().frame.select(["age", "hours-per-week", "race"])
    race = next(column for column in dpm.datasets.adult().schema.columns if column.name == "race")
    columns = [dpm.Numeric("age", scale=(1, 1000)), dpm.Numeric("hours-per-week", scale=(1, 1000)), race]
    truth = np.var(np.array([frame["age"].to_numpy(), frame["hours-per-week"].to_numpy()], dtype=float), axis=1)
    for seed in range(2):
        released = release(frame, columns, seed)
        np.testing.assert_allclose(np.diag(released.covariance)[:2], truth, rtol=0.03)


def test_thin_tails_are_found_or_warned_of() -> None:
    """5 % of rows at 10 standard deviations. Before: variance 0.38 × the truth at 10,000 rows, 0.2 × at 1000, no warning."""
    for n, found_out in ((10_000, True), (1000, False)):
        rows = []
        for seed in range(3):
            rng = np.random.default_rng([seed, 4])
            table = rng.normal(size=(n, 2)) * np.where(rng.random(n) < 0.05, 10.0, 1.0)[:, None]
            frame = pd.DataFrame(table, columns=["a", "b"])
            released = release(frame, NUMBERS, seed)
            rows.append(ratios(released, frame))
            assert rows[-1].min() > 0.5 or TAIL in codes(released.warnings)
        if found_out:
            assert np.median(rows) > 0.7


def test_ordinary_rows_warn_of_nothing() -> None:
    rng = np.random.default_rng(5)
    table = rng.normal(size=(5000, 4)) @ np.diag([1.0, 2.0, 5.0, 10.0])
    frame = pd.DataFrame(table, columns=list("abcd"))
    columns = [dpm.Numeric(name, scale=(0.1, 100.0)) for name in "abcd"]
    for seed in range(2):
        assert release(frame, columns, seed, rho=0.5, epsilon=None, delta=0.0).warnings == ()


def test_noise_that_drowns_the_covariance_is_said() -> None:
    rng = np.random.default_rng(6)
    shape = MomentShape(20, n_rows=300, mean=False, row_norm=None)
    plan = dpm.mechanisms.CoinPress((1.0, 100.0)).plan(shape, dpm.PrivacyBudget.zcdp(0.01), "replace_one")
    rows = Rows.of(rng.normal(size=(300, 20)), dpm.Schema.unbounded(20), neighbors="replace_one")
    noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(0)))
    assert "noise-above-covariance" in codes(noisy.diagnostics["warnings"])


def test_what_thin_tails_may_have_lost_is_said_of_every_column_without_bounds() -> None:
    """15 % of 3,000 rows Pareto: far too small a deviation, from rows that no histogram of this budget can show."""
    rng = np.random.default_rng(3)
    pareto = np.where(rng.random(3000) < 0.15, rng.pareto(2.0, 3000), 0.0)
    columns = [*NUMBERS, dpm.Numeric("c", scale=(0.1, 100.0)), dpm.Boolean("d")]
    lost = []
    for extra in (pareto, rng.normal(size=3000)):
        frame = normals_beside(extra, 3).assign(d=rng.random(3000) < 0.5)
        released = release(frame, columns, 3)
        assert released.warnings == ()
        [said] = [message for message in cautions(released) if message.code == "tail-not-excluded"]
        assert list(said.facts["names"]) == ["a", "b", "c"]
        assert said.facts["share"] == released.diagnostics["share_unseen"]
        assert str(said) in str(released.describe())
        assert "clipped-in-last-step" not in codes(cautions(released))
        lost.append(ratios(released, frame)[2] < 0.25)
    assert lost == [True, False]
    bounded = release(normals_beside(pareto, 3), [dpm.Numeric(name, -100, 100) for name in "abc"], 3)
    assert "clipped-in-last-step" in codes(cautions(bounded))
