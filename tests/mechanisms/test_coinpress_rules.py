"""The rules of a CoinPress run one at a time, at their edges: evidence, ellipsoids, the last clip, what a run says of itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.coinpress import (
    _FAR,
    Ellipsoid,
    Evidence,
    Observation,
    StepRules,
    _histogram_share,
    _LastClip,
    _run_diagnostics,
    _widened_clip,
)
from dpmoments.mechanisms.coinpress_schedule import Schedule
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.rows.rows import Rows
from support.opened_filter import filter_that_pays
from support.said import codes

UP, DOWN = 1 + 1e-9, 1 - 1e-9


def seen(*variances: float, noise: float = 0.01) -> Observation:
    return Observation.now(np.diag(variances), noise)


def widened(table: np.ndarray, rho: float, radius: float, n_rows: float, *, unchecked: tuple[bool, ...]) -> _LastClip:
    d = table.shape[1]
    place = Ellipsoid(np.zeros(d), np.eye(d), Evidence(), np.zeros((d, d)), np.array(unchecked))
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="add_remove")
    paying = filter_that_pays(PrivacyBudget.zcdp(rho), "add_remove", insecure_generator(0))
    return _widened_clip(rows, paying, _LastClip(rho, radius), place, n_rows=n_rows, mean=False)


def rows_that_afford(radius: float, rho: float) -> float:
    """n at which noise on a radius is a tenth of every variance of two: √3·r²/(n√(2·0.9ρ)) = √2/10."""
    return math.sqrt(3.0) * radius**2 / math.sqrt(1.8 * rho) / (0.1 * math.sqrt(2.0))


@pytest.mark.parametrize(
    ("distance", "typical"), [(6.0, math.sqrt(2.0**2.5 * 8.0)), (9.0, math.sqrt(8.0 * 2.0**3.5)), (100.0, 2.0**6.75)]
)
def test_rows_along_unchecked_directions_widen_the_clip_to_four_radii_or_where_noise_is_a_tenth(
    distance: float, typical: float
) -> None:
    """The bin they are in stands for its geometric middle."""
    assert _FAR == 4.0
    table, rho = np.zeros((1200, 2)), 1e4
    table[:1000, 0], table[1000:, 1] = 1.0, distance
    for afford, near in ((1.0, typical <= 8.0), (typical * DOWN, typical <= 8.0), (typical * UP, True)):
        found = widened(table, rho, 2.0, rows_that_afford(afford, rho), unchecked=(False, True))
        assert found.left_out is not near
        assert found.outside == pytest.approx(1.0 / 6.0 if near else 0.0, abs=1e-3)
        assert found.rho == pytest.approx(0.9 * rho, rel=1e-12)
        if not near:
            assert found.radius == 2.0
    one = np.vstack([np.ones((1000, 2)), [[0.0, distance]]])
    assert widened(one, rho, 2.0, rows_that_afford(1.0, rho), unchecked=(False, True)).left_out is (typical > 8.0)
    # Checked, they are rows like others, however far.
    far = widened(table, rho, 2.0, rows_that_afford(1.0, rho), unchecked=(False, False))
    assert (far.left_out, far.outside) == (False, pytest.approx(1.0 / 6.0, abs=1e-3))


def test_a_clip_is_as_planned_where_no_rows_are_seen() -> None:
    for radius in (1e-3, 0.5, 3.0):
        found = widened(np.ones((3, 2)), 1e-3, radius, 3.0, unchecked=(False, False))
        assert (found.radius, found.outside, found.left_out) == (radius, 0.0, False)
        seen = 1.0 / math.sqrt(2.0 * 1e-4) * 4.6748854
        assert found.unseen_tail == pytest.approx(2.0 * seen / 3.0, rel=1e-6)
    assert _LastClip(0.5, 2.0) == _LastClip(0.5, 2.0, outside=None, left_out=False, unseen_tail=0.0)


def test_the_histograms_share_falls_with_the_features_from_a_tenth_to_a_fiftieth() -> None:
    assert [_histogram_share(d) for d in (1, 2, 3, 10, 11, 1000)] == [0.1, 0.1, 0.1, 0.02, 0.02, 0.02]
    for d in (4, 5, 9):
        assert _histogram_share(d) == pytest.approx(0.02 * (10.0 / d) ** 1.5, rel=1e-12)


def warned(
    *,
    d: int = 4,
    n_rows: float = 100.0,
    predicted: float = 0.1,
    planned: float = 3.0,
    radius: float = 3.0,
    noise: float = 0.01,
    fill: float = 0.1,
    half_seen: bool = False,
    **clip: Any,
) -> list[str]:
    schedule = Schedule((1.0,), (1.0,), predicted)
    steps = [{"radius": radius, "noise_scale": noise, "fill": fill, "center": [0.0] * d}]
    rules, last = StepRules(n_rows, planned, planned, schedule), _LastClip(1.0, radius, **clip)
    found = _run_diagnostics(steps, rules, last, half_seen)
    assert found["steps"] is steps
    assert found["predicted_mahalanobis"] == predicted
    assert (found["share_outside"], found["share_unseen"]) == (last.outside, last.unseen_tail)
    return codes(found["warnings"])


def test_every_warning_begins_where_it_should() -> None:
    assert warned() == []
    assert [warned(outside=share) for share in (None, 0.5, 0.5 * UP)] == [[], [], ["rows-outside-bounds"]]
    assert [warned(predicted=2.0 * f) for f in (1.0, UP)] == [[], ["small-eigenvalues-lost"]]  # √d
    assert [warned(radius=12.0 * f) for f in (1.0, UP)] == [[], ["clip-widened"]]  # four times as wide
    assert [warned(unseen_tail=0.06 * f) for f in (1.0, UP)] == [[], ["rows-unseen-tail"]]
    assert [warned(lost=0.5 * f) for f in (1.0, UP)] == [[], ["variance-of-outlying-rows"]]  # √d / 4
    assert [warned(n_rows=n) for n in (4.0, 4.0 * DOWN)] == [[], ["fewer-rows-than-features"]]
    assert [warned(left_out=out, half_seen=half) for out in (False, True) for half in (False, True)] == [
        [],
        ["variance-of-few-rows"],
        ["variance-of-few-rows"],
        ["variance-of-few-rows"],
    ]


def test_noise_is_most_of_a_release_where_it_is_above_the_signal() -> None:
    """√(d(d + 1)/2) deviations against √d, or more where the clip had to be widened and is filled."""
    limit = 2.0 / math.sqrt(10.0)
    assert [warned(noise=limit * f) for f in (DOWN, UP)] == [[], ["noise-above-covariance"]]
    assert [warned(noise=limit * f, radius=4.0, fill=0.25) for f in (DOWN, UP)] == [[], ["noise-above-covariance"]]
    assert [warned(noise=3.0 * limit * f, radius=4.0, fill=0.75) for f in (DOWN, UP)] == [
        [],
        ["noise-above-covariance"],
    ]


def test_a_ball_that_is_full_is_warned_of_where_the_clip_is_the_planned_one() -> None:
    """From halfway between d and radius² on, and four deviations of the noise on the trace."""
    limit = (4 + 9) / (2 * 9) + 4 * 0.05 * 2 / 9
    assert [warned(fill=limit * f, noise=0.05) for f in (DOWN, UP)] == [[], ["rows-outside-bounds"]]
    assert [warned(fill=limit * f, noise=0.05, outside=0.5) for f in (DOWN, UP)] == [[], ["rows-outside-bounds"]]
    assert warned(fill=1.0, noise=0.05, radius=3.0 * UP) == []
    narrow = (4 + 9) / (2 * 9) + 4 * 0.05 * 2 / 4
    assert [warned(fill=narrow * f, noise=0.05, radius=2.0) for f in (DOWN, UP)] == [[], ["rows-outside-bounds"]]
