"""Estimators of means: wrong radii and few rows, what runs say against themselves, and each rule at its boundary."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.base.message import Message
from dpmoments.mechanisms.means.base import ClippedSums, NoisyMean
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms import coinpress_mean, coordinatewise, variance_aware
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean, last_step_warnings
from dpmoments.papers.mechanisms.coordinatewise import beyond_radius, coordinate_warnings
from dpmoments.papers.mechanisms.row_norm_histogram import (
    NormHistogram,
    clipped_norm,
    noise_margin,
    spread_about_mean,
    warning_of,
)
from dpmoments.papers.mechanisms.variance_aware import norm_quantile, search_warnings, shrunk_move
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from references.plain_answers import recorded
from support.opened_filter import filter_that_pays
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


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize(
    "value", [0.0, 7.3, -1e-90, 1e200, 1.7e308], ids=["zero", "7.3", "-1e-90", "1e200", "the largest number"]
)
def test_the_variance_aware_mean_of_constant_rows(value: float, neighbors: str) -> None:
    """The radius shrank below what the lattice takes, after the budget was spent."""
    for (n, d), budget in itertools.product([(1, 1), (1, 30), (20, 1), (200, 2)], [ZCDP, PrivacyBudget.zcdp(1e6)]):
        noisy = run("variance-aware", np.full((n, d), value), budget, neighbors=neighbors)
        assert np.isfinite(noisy.mean).all()
        if n == 200 and abs(value) < 1e100 and budget is not ZCDP:
            np.testing.assert_allclose(noisy.mean, value, rtol=1e-6, atol=1e-70)
        if abs(value) > 1e100:
            assert noisy.diagnostics["warnings"]


def test_rows_spread_over_all_scales_do_not_stop_a_run() -> None:
    rng = np.random.default_rng(3)
    for n, d in ((20, 1), (200, 3)):
        table = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-250, 250, size=(n, 1))
        for budget in (ZCDP, PrivacyBudget.zcdp(1e6)):
            assert np.isfinite(run("variance-aware", table, budget).mean).all()


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


def test_a_search_that_did_not_arrive_says_so() -> None:
    """Rows a million standard deviations away, and a budget for six rounds: the answer is off by a thousand of them."""
    for seed in range(4):
        table = np.random.default_rng(seed).normal(1e6, 1.0, (250, 50))
        noisy = run("variance-aware", table, seed=seed)
        far = np.linalg.norm(noisy.mean - table.mean(axis=0)) > 100.0
        assert far == bool(noisy.diagnostics["warnings"])
    enough = np.random.default_rng(0).normal(1e6, 1.0, (1000, 20))
    assert not said(run("variance-aware", enough))


def test_rows_far_from_the_others_are_told_of() -> None:
    table = np.zeros((4000, 3))
    table[:200] = np.random.default_rng(5).normal(50.0, 5.0, (200, 3))
    noisy = run("variance-aware", table)
    assert np.abs(noisy.mean).max() < 1.0  # the mean of the rows is 2.5
    assert "outlying-rows-clipped" in said(noisy)
    assert noisy.diagnostics["share_far"] == pytest.approx(0.05, abs=0.02)
    table[:800] = np.random.default_rng(5).normal(50.0, 5.0, (800, 3))  # so many are counted in
    noisy = run("variance-aware", table)
    np.testing.assert_allclose(noisy.mean, 10.0, atol=0.5)
    assert not said(noisy)
    assert not said(run("variance-aware", np.random.default_rng(6).standard_t(3, (2000, 3))))


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


def test_noise_at_a_radius_a_thousand_times_too_wide_is_said() -> None:
    table = np.random.default_rng(2).normal(3.0, 1.0, (1000, 3))
    for budget, seed in itertools.product(BUDGETS, range(3)):
        assert "mean-lost" in said(run("naive", table, budget, seed, radius=5e3, scale=1.0))
        assert "mean-lost" in said(run("naive", table, budget, seed, radius=5.0, scale=1e4))
    for name in ("karwa-vadhan", "symq"):  # their searches reach so far: the answer is right, and nothing is to be said
        noisy = run(name, table, radius=5e3)
        assert said(noisy) == []
        np.testing.assert_allclose(noisy.mean, 3.0, atol=0.3)


@pytest.mark.parametrize("name", ["karwa-vadhan", "naive", "symq", "coinpress", "variance-aware"])
def test_so_few_rows_that_noise_decides_are_said(name: str) -> None:
    silent = 0
    for seed in range(5):
        table = np.random.default_rng(seed).normal(3.0, 1.0, (12, 3))
        silent += not run(name, table, seed=seed).diagnostics["warnings"]
    assert silent == 0


def test_values_that_were_clamped_are_told_of() -> None:
    """2 % of the values make the mean, and the clamp takes most of each: an answer near 0 where 1 is right, without a word."""
    rng = np.random.default_rng(4)
    table = np.where(rng.random((20_000, 2)) < 0.02, 50.0, 0.0)
    for name, options in (("naive", {"radius": 1.0, "scale": 1.0}), ("karwa-vadhan", {"radius": 100.0})):
        noisy = run(name, table, **options)
        assert noisy.mean[0] < 0.5
        assert "values-clipped" in said(noisy)
        np.testing.assert_allclose(noisy.diagnostics["shares_clamped"], 0.02, atol=0.005)


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


def test_normal_rows_within_coinpress_bounds_are_not_called_clipped() -> None:
    """A histogram in which few bins stood out said so in 6 of 20 runs."""
    for seed in range(8):
        table = np.random.default_rng(seed).normal(1.0, 1.0, (250, 50))
        assert said(run("coinpress", table, seed=seed, radius=70.0, scale=1.0)) == []


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

EDGES = np.array([1.0, 2.0, 4.0])


@pytest.mark.parametrize("trials", [1, 7])
def test_noise_passes_a_margin_with_probability_one_in_a_thousand(trials: int) -> None:
    normal, laplace = stats.norm(scale=2.5), stats.laplace(scale=2.5 / math.sqrt(2.0))
    assert trials * normal.sf(noise_margin(2.5, trials, pure=False)) == pytest.approx(1e-3, rel=1e-9)
    assert trials * laplace.sf(noise_margin(2.5, trials, pure=True)) == pytest.approx(1e-3, rel=1e-9)


def histogram(*counts: float, noise_scale: float = 1.0) -> NormHistogram:
    return NormHistogram(EDGES, np.array(counts), noise_scale)


def test_a_quantile_is_the_upper_edge_of_the_first_bin_that_reaches_it() -> None:
    counted = histogram(100.0, 100.0, 0.0, 200.0)
    levels = {0.1: 1.0, 0.25: 1.0, 0.26: 2.0, 0.5: 2.0, 0.51: 4.0, 1.0: 4.0}
    assert {level: norm_quantile(counted, level) for level in levels} == levels
    assert norm_quantile(histogram(0.0, 0.0, 100.0, 0.0), 0.5) == 4.0
    # Bins that noise explains hold no rows.
    assert norm_quantile(histogram(3.0, 0.0, 100.0, 0.0), 0.01) == 4.0
    assert norm_quantile(histogram(3.0, 2.0, -3.0, 1.0), 0.5) is None


def test_the_clipped_norm_takes_rows_at_their_upper_edge_or_the_radius() -> None:
    counted = histogram(10.0, 20.0, 30.0, 40.0)
    assert clipped_norm(counted, 3.0) == pytest.approx(math.sqrt((10 * 1 + 20 * 4 + 70 * 9) / 100))
    assert clipped_norm(counted, 100.0) == pytest.approx(math.sqrt((10 * 1 + 20 * 4 + 30 * 16 + 40 * 1e4) / 100))
    assert clipped_norm(counted, 1e200) == pytest.approx(math.sqrt(0.4) * 1e200)
    assert clipped_norm(histogram(3.0, 2.0, -3.0, 1.0), 3.0) is None
    assert clipped_norm(histogram(100.0, 0.0, 0.0, 0.0), 3.0) == 1.0


def test_a_step_is_shortened_by_the_share_of_noise_in_its_square() -> None:
    move = np.array([2.0, 1.0, 2.0])
    np.testing.assert_allclose(shrunk_move(move, 1.5), move * (1.0 - 2.25 / 9.0))
    np.testing.assert_allclose(shrunk_move(np.full(6, 2.0), 1.5), np.full(6, 2.0) * (1.0 - 4 * 2.25 / 24.0))
    np.testing.assert_array_equal(shrunk_move(move, 4.0), np.zeros(3))
    np.testing.assert_array_equal(shrunk_move(move[:2], 4.0), move[:2])
    np.testing.assert_array_equal(shrunk_move(move[:1], 4.0), move[:1])
    for d in (1, 3):
        np.testing.assert_array_equal(shrunk_move(np.zeros(d), 1.0), np.zeros(d))


def test_the_spread_of_rows_is_what_their_mean_leaves_of_their_norm() -> None:
    assert spread_about_mean(5.0, 4.0, 1.0) == pytest.approx(math.sqrt(25 - (16 - 1)))
    assert spread_about_mean(5.0, 1.0, 3.0) == 5.0
    assert spread_about_mean(5.0, 6.0, 1.0) == 0.0
    assert spread_about_mean(5e200, 4e200, 0.0) == pytest.approx(3e200)


def test_a_warning_names_the_marked_features() -> None:
    assert warning_of("mean-lost", list("abc"), [True, False, True]) == [Message("mean-lost", names=("a", "c"))]
    assert warning_of("mean-lost", list("abc"), [False] * 3) == []
    with pytest.raises(ValueError, match="zip"):
        warning_of("mean-lost", list("abc"), [True])


@dataclass(frozen=True)
class Made:
    """What is known of the mean of one coordinate."""

    mean: float = 0.0
    noise_scale: float = 0.25
    share_clamped: float = 0.0
    clamping_shows: bool = False
    noise_decides: bool = False


def test_a_mean_is_beyond_the_radius_from_four_deviations_of_noise_on() -> None:
    means = [3.0, np.nextafter(3.0, 4.0), -3.0, np.nextafter(-3.0, -4.0), 0.0]
    assert beyond_radius([Made(mean) for mean in means], 2.0) == [False, True, False, True, False]


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


def doubts(seen: tuple[float, float] | None, *, moved: float, entry: float, spread: float = 100.0) -> list[str]:
    """Codes of the warnings about a last step in 4 dimensions, of a ball of radius 2."""
    noise = 2.0 * entry
    return codes(last_step_warnings(moved, 2.0, entry, noise, spread, seen))


def test_a_last_step_of_one_and_a_half_balls_and_noise_is_too_long() -> None:
    """√((1.5·2)² + (√4·2)²) + 4·2 = 13."""
    assert doubts((1.0, 0.0), entry=2.0, moved=13.0) == []
    assert doubts((1.0, 0.0), entry=2.0, moved=np.nextafter(13.0, 14.0)) == ["rows-mostly-clipped"]


def test_most_rows_are_clipped_from_three_quarters_on_of_half_of_them() -> None:
    for outside, seen, words in (
        (np.nextafter(0.75, 1.0), 0.5, ["rows-mostly-clipped"]),
        (0.75, 1.0, []),
        (1.0, np.nextafter(0.5, 0.0), []),
        (1.0, 0.9, ["rows-mostly-clipped"]),
    ):
        assert doubts((seen, outside), entry=0.1, moved=0.0) == words
    assert doubts(None, entry=0.1, moved=0.0) == []


def test_noise_decides_from_half_of_the_spread_on() -> None:
    for spread in (2.0, 1.0):
        entry = spread / 4.0  # of 4 entries
        assert doubts(None, entry=entry, moved=0.0, spread=spread) == []
        assert doubts(None, entry=np.nextafter(entry, 2.0), moved=0.0, spread=spread) == ["mean-lost"]


def test_the_spread_of_a_coinpress_mean_is_that_of_the_rows_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of √d where the histogram saw nothing, or else of what it saw, less the distance moved."""
    asked = list[tuple[float, ...]]()

    def said(moved: float, ball: float, entry: float, noise: float, spread: float, seen: Any) -> list[Message]:
        asked.append((moved, ball, entry, noise, spread, *(seen or ())))
        return []

    monkeypatch.setattr(coinpress_mean, "last_step_warnings", said)
    rows = Rows.of(np.random.default_rng(0).normal(size=(2000, 4)), Schema.unbounded(4), neighbors="replace_one")
    for norm in (None, 1.9):
        plan = CoinPressMean(radius=10.0, scale=1.0).plan(
            MomentShape(4, n_rows=2000, row_norm=None), PrivacyBudget.zcdp(0.5), "replace_one"
        )
        monkeypatch.setattr(coinpress_mean, "clipped_norm", lambda *_, found=norm: found)
        found = plan.run(rows, PrivacyFilter(plan, insecure_generator(0)))
        moved, ball, entry, noise, spread, seen, outside = asked[-1]
        step = found.diagnostics["steps"][-1]
        assert (ball, entry, noise) == (step["mean_radius"], step["noise_scale"], 2.0 * step["noise_scale"])
        assert moved == pytest.approx(float(np.linalg.norm(found.mean - step["center"])))
        assert spread == (2.0 if norm is None else spread_about_mean(norm, moved, noise))
        assert outside == found.diagnostics["share_outside"]
        assert 0.5 < seen <= 1.1


# Where each rule of an estimator of means changes its mind: at the boundary it says nothing, a last place beyond it acts.


def above(number: float) -> float:
    return math.nextafter(number, math.inf)


def below(number: float) -> float:
    return math.nextafter(number, -math.inf)


def factor_of(product: float, number: float) -> float:
    """The float that times ``number`` is ``product``, to the last place."""
    found = next(
        (
            factor
            for factor in (product / number, above(product / number), below(product / number))
            if factor * number == product
        ),
        None,
    )
    assert found is not None
    return found


def test_tails_as_heavy_as_the_factor_says_are_not_heavier(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(1).standard_t(2.0, (4000, 5))
    options: dict[str, Any] = {"radius": 9.0, "scale": 1.0}
    shells = list[float]()

    def shell_radius(*arguments: float) -> float:
        shells.append(coinpress_shell_radius(*arguments))
        return shells[-1]

    coinpress_shell_radius = coinpress_mean.normal_norm_radius
    monkeypatch.setattr(coinpress_mean, "normal_norm_radius", shell_radius)
    widened = recorded("coinpress", table, ZCDP, **options)[0].diagnostics["steps"][-1]["radius"]
    planned = recorded("coinpress", table, ZCDP, **options, clip="gaussian")[0].diagnostics["steps"][-1]["radius"]
    assert widened > planned
    at_the_factor = factor_of(widened, shells[1])  # the second shell: that of the histogram
    for factor, radius in ((at_the_factor, planned), (below(at_the_factor), widened)):
        monkeypatch.setattr(coinpress_mean, "_HEAVIER", factor)
        assert recorded("coinpress", table, ZCDP, **options)[0].diagnostics["steps"][-1]["radius"] == radius


def test_a_clamped_mean_three_deviations_from_the_center_is_more_than_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows.of(np.full((50, 1), 0.3), Schema.unbounded(1), neighbors="replace_one", threads=1)
    plan = CoinPressMean(radius=1.0, scale=1.0).plan(MomentShape(1, n_rows=50, row_norm=None), ZCDP, "replace_one")

    def examined() -> coordinatewise.ClampedMean:
        door = PrivacyFilter(plan, insecure_generator(1))
        loss = PrivacyBudget.zcdp(0.01)
        return coordinatewise.Coordinate(rows, door, 0).examined_mean(loss, 0.0, 2.0, 50.0)

    found = examined()
    assert found.noise_scale > 0.3  # so that no value is farther from the center than noise
    at_the_factor = factor_of(abs(found.mean), found.noise_scale)
    for factor, decides in ((at_the_factor, False), (above(at_the_factor), True)):
        monkeypatch.setattr(coordinatewise, "_FROM_CENTER", factor)
        assert examined().noise_decides == decides


def run_of(d: int = 3, n: int = 1000) -> variance_aware._Run:
    """A variance-aware run that has drawn nothing yet."""
    shape = MomentShape(d, n_rows=n, row_norm=None)
    plan = variance_aware.VarianceAware().plan(shape, ZCDP, "replace_one")
    rows = Rows.of(np.zeros((n, d)), Schema.unbounded(d), neighbors="replace_one", threads=1)
    return variance_aware._Run(plan, rows, PrivacyFilter(plan, insecure_generator(0)))


def test_the_search_stops_where_floating_point_ends() -> None:
    run = run_of()
    assert run.resolution == 2e-100
    run.center = np.array([0.0, -8.0, 2.0])
    assert run.resolution == 2.0**-37


def test_far_rows_show_from_a_hundredth_and_what_noise_passes_once_in_a_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two counts with noise of 5 each, of 1000 rows: 10 and 3.0902·√2·5 = 21.85 more."""
    for counts, shows in (((900.0, 20.0, 11.86), True), ((900.0, 20.0, 11.84), False)):
        histogram = NormHistogram(np.array([1.0, 2.0]), np.array(counts), 5.0)
        monkeypatch.setattr(variance_aware, "noisy_norm_histogram", lambda *_, found=histogram, **__: found)
        assert run_of().far_rows(np.eye(3), 1.0) == (pytest.approx(sum(counts[1:]) / 1000), shows)
    asked = list[np.ndarray]()
    for counts, share in (((0.0, -20.0, 1.0), 0.0), ((0.0, 900.0, 200.0), 1.0)):
        histogram = NormHistogram(np.array([1.0, 2.0]), np.array(counts), 5.0)
        monkeypatch.setattr(
            variance_aware,
            "noisy_norm_histogram",
            lambda _rows, _filter, _what, _rho, edges, *_, found=histogram: asked.append(edges) or found,
        )
        assert run_of().far_rows(np.eye(3), 1.0)[0] == share
    assert asked[0][0] == 4.0  # radii
    bound = 0.01 + noise_margin(math.sqrt(2.0) * 5.0, 1, pure=False)
    for count, shows in ((bound, False), (above(bound), True)):
        histogram = NormHistogram(np.array([1.0, 2.0]), np.array([0.0, count, 0.0]), 5.0)
        monkeypatch.setattr(variance_aware, "noisy_norm_histogram", lambda *_, found=histogram, **__: found)
        run = run_of()
        run.n_rows = 1.0  # so that nothing is rounded
        assert run.far_rows(np.eye(3), 1.0)[1] == shows


def test_what_the_variance_aware_mean_says_of_its_last_step() -> None:
    def said(norm: float, noise: float, moved: float = 0.0, *, settled: bool = False) -> list[str]:
        return codes(search_warnings(norm, moved, noise, settled=settled))

    assert said(4.0, 2.0) == []
    assert said(4.0, above(2.0)) == ["mean-lost"]
    assert said(8.0, 3.0, 5.0) == []  # √((0.5·8)² + 3²)
    assert said(8.0, 3.0, above(5.0)) == ["search-unsettled"]
    assert said(8.0, 3.0, above(5.0), settled=True) == []


def test_scales_and_radii_are_kept_in_the_range_of_the_lattice() -> None:
    for given, kept in ((1e-101, 1e-100), (1e-100, 1e-100), (3.0, 3.0), (1e100, 1e100), (1e101, 1e100)):
        assert variance_aware._within_range(given) == kept


# A quarter of the rows up to 1, half of them up to 2, all of them up to 4.
QUARTERS = NormHistogram(np.array([1.0, 2.0, 4.0]), np.array([3e6, 3e6, 6e6, 0.0]), 1.0)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a variance-aware run asks for, of which every histogram is QUARTERS and no step moves the center."""
    asked = list[dict[str, Any]]()

    def histogram(_run: Any, rho: float, linear: np.ndarray, typical: float, octaves: int) -> NormHistogram:
        asked.append({"rho": rho, "scales": 1.0 / np.diagonal(linear), "typical": typical, "octaves": octaves})
        return QUARTERS

    def clipped(_run: Any, rho: float, linear: np.ndarray, radius: float, **options: Any) -> ClippedSums:
        asked.append({"rho": rho, "scales": 1.0 / np.diagonal(linear), "radius": radius} | options)
        return ClippedSums(np.zeros(_run.d), 0.0, np.full(_run.d, _run.n_rows), 0.0)

    def far_rows(_run: Any, linear: np.ndarray, radius: float) -> tuple[float, bool]:
        asked.append({"scales": 1.0 / np.diagonal(linear), "far from": radius})
        return 0.0, False

    for stub in (histogram, clipped, far_rows):
        monkeypatch.setattr(variance_aware._Run, stub.__name__, stub)
    return asked


def test_a_search_whose_rounds_are_not_worth_making_ends_at_the_median(seen: list[dict[str, Any]]) -> None:
    run = run_of(d=100, n=10)
    run.find_center()
    assert run.radius == 2.0
    assert not run.settled
    assert [one["typical"] for one in seen] == [1.0]


def test_no_last_radius_is_below_the_median(seen: list[dict[str, Any]]) -> None:
    run = run_of(d=100, n=10)  # so much noise that the balance alone would take the least radius
    assert QUARTERS.best_radius(1, run.noise_error(run.left), 0.1) == 1.0
    run.finish()
    assert [one["far from"] for one in seen if "far from" in one] == [2.0]
    assert [one["radius"] for one in seen if "radius" in one] == [2.0]


def test_a_search_at_the_resolution_has_settled(seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    for resolution, rounds in ((2.0, 1), (below(2.0), 3)):
        seen.clear()
        monkeypatch.setattr(variance_aware._Run, "resolution", resolution)
        monkeypatch.setattr(NormHistogram, "best_radius", lambda *_: 2.0)
        run = run_of(d=3, n=1000)
        run.find_center()
        assert run.settled
        # Two radii that are alike settle it, and a last round is made with four times the budget.
        assert [one["radius"] for one in seen if "radius" in one] == [2.0] * rounds


def test_a_histogram_that_just_fits_into_what_is_left_is_made(
    seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(d=100, n=10)  # of rounds that are not worth making: nothing is kept for them
    run.total, run.radius = 50.0, 1.0
    for left, made in ((38.5, 1), (below(38.5), 0)):  # three quarters are kept, and 2 % pays for a histogram
        seen.clear()
        monkeypatch.setattr(variance_aware._Run, "left", left)
        monkeypatch.setattr(variance_aware._Run, "noise_error", lambda *_: 0.75)
        run.find_center()
        assert len(seen) == made


def test_rounds_and_scales_are_tried_where_noise_just_allows_them(
    seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the clipping radius for a round, the squares themselves for a scale."""
    for error, radii in ((0.5, [1.0]), (above(0.5), [])):
        seen.clear()
        monkeypatch.setattr(variance_aware._Run, "noise_error", lambda *_, found=error: found)
        monkeypatch.setattr(variance_aware._Run, "resolution", 1.0)
        monkeypatch.setattr(NormHistogram, "best_radius", lambda *_: 1.0)
        run_of(d=2, n=1000).find_center()
        assert [one["radius"] for one in seen if "radius" in one] == radii
    costs = list[float]()
    monkeypatch.setattr(variance_aware._Run, "squares_error", lambda _run, rho: costs.append(rho) or above(1.0))
    run = run_of(d=2, n=1000)
    run.radius = 1.0
    seen.clear()
    run.find_scales()
    assert (seen, run.spread.tolist()) == ([], [1.0 / math.sqrt(2.0)] * 2)
    monkeypatch.setattr(variance_aware._Run, "squares_error", lambda *_: 1.0)
    run.find_scales()
    assert len([one for one in seen if "radius" in one]) == 2
    np.testing.assert_allclose(costs, [0.5 * 0.05 * 0.5 / 3, 0.5 * 0.05 * 0.5 * 2 / 3])  # of ρ = 0.5


def test_what_two_counts_say_of_a_clamped_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clamping shows beyond a hundredth and a margin; noise decides where fewer than half of the values are larger."""
    rows = Rows.of(np.zeros((50, 1)), Schema.unbounded(1), neighbors="replace_one", threads=1)
    loss = PrivacyBudget.zcdp(0.01)
    count_noise = 2.0 / math.sqrt(2.0 * 0.02 * 0.01) / 2.0 / 50.0
    margin = noise_margin(count_noise, 1, pure=False)
    monkeypatch.setattr(coordinatewise, "_FROM_CENTER", 100.0)
    for clamped, larger, shows, decides in (
        (0.01 + margin * 0.999999, 0.5, False, False),
        (0.01 + margin * 1.000001, below(0.5), True, True),
    ):
        shares = iter([clamped, larger])
        monkeypatch.setattr(coordinatewise.Coordinate, "share_beyond", lambda *_, found=shares: next(found))
        door = filter_that_pays(loss, "replace_one", insecure_generator(1))
        found = coordinatewise.Coordinate(rows, door, 0).examined_mean(loss, 0.0, 2.0, 50.0)
        assert (found.clamping_shows, found.noise_decides) == (shows, decides)


def test_a_value_at_no_finite_distance_is_beyond() -> None:
    rows = Rows.of(np.array([[1.5e308], [0.0]]), Schema.unbounded(1), neighbors="replace_one", threads=1)
    loss = PrivacyBudget.zcdp(1e6)
    door = filter_that_pays(loss, "replace_one", insecure_generator(0))
    assert coordinatewise.Coordinate(rows, door, 0).share_beyond(loss, -1e308, 1e307, 2.0, "clamped-values") == 1.0


@pytest.mark.parametrize("radius", [1e-50, 1.0, 1e50])
def test_whether_quantiles_can_be_found_does_not_depend_on_the_units(radius: float) -> None:
    """√(8·ρ/6)·0.35·n/2 ≥ 2·ln 4096 from 117 rows on: half the budget a quantile, three levels each."""
    plan = make_mean_mechanism("symq", radius=radius).plan(MomentShape(1, n_rows=9, row_norm=None), ZCDP, "replace_one")
    assert [plan._resolves(0.35, n) for n in (116.0, 117.0)] == [False, True]


def test_a_search_that_never_settles_ends_after_forty_rounds(
    seen: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    radii = iter(2.0**-place for place in range(100))
    monkeypatch.setattr(NormHistogram, "best_radius", lambda *_: next(radii))
    monkeypatch.setattr(variance_aware._Run, "left", 0.5)  # as if nothing were ever spent
    run = run_of(d=3, n=1000)
    run.find_center()
    assert not run.settled
    assert [one["radius"] for one in seen if "radius" in one] == [2.0**-place for place in range(40)]
