"""The rules of a CoinPress run one at a time, at their edges: evidence, ellipsoids, the last clip, what a run says of itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dpmoments as dpm
from dpmoments.mechanisms.coinpress import (
    Ellipsoid,
    Evidence,
    StepRules,
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


def widened(table: np.ndarray, rho: float, radius: float, n_rows: float, *, unchecked: tuple[bool, ...]) -> _LastClip:
    d = table.shape[1]
    place = Ellipsoid(np.zeros(d), np.eye(d), Evidence(), np.zeros((d, d)), np.array(unchecked))
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="add_remove")
    paying = filter_that_pays(PrivacyBudget.zcdp(rho), "add_remove", insecure_generator(0))
    return _widened_clip(rows, paying, _LastClip(rho, radius), place, n_rows=n_rows, mean=False)


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
