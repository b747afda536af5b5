"""What estimators of means say against themselves: each rule at hand-made numbers, and at its boundary."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmoments.base.message import Message
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms import coinpress_mean
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean, last_step_warnings
from dpmoments.papers.mechanisms.coordinatewise import beyond_radius, coordinate_warnings
from dpmoments.papers.mechanisms.row_norm_histogram import (
    NormHistogram,
    clipped_norm,
    marked_names,
    noise_margin,
    spread_about_mean,
)
from dpmoments.papers.mechanisms.variance_aware import norm_quantile, shrunk_move
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from support.said import codes

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


def test_marked_names_are_those_of_the_marked_features() -> None:
    assert marked_names(list("abc"), [True, False, True]) == ("a", "c")
    with pytest.raises(ValueError, match="zip"):
        marked_names(list("abc"), [True])


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
